"""Decisions applied to any manifest: images leave a part, or move between near and far; the result is a new version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from curation.decisions.counting import changed_entry, changed_figures
from curation.decisions.part_sets import Change, PartSets
from curation.decisions.replay import Ineffective
from curation.decisions.resolution import Resolution
from curation.decisions.staleness import Staleness, find_stale
from curation.errors import DecisionError, UsageError
from curation.manifest.header import Rule, Supersedes
from curation.manifest.manifest import VERSION, Manifest
from curation.sources.source import Source

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Application:
    """A new version of a manifest, what changed, and what did not act.

    Attributes
    ----------
    manifest : Manifest
    changes : tuple of Change
        In the order of the parts; unchanged ones not among them.
    ineffective : tuple of Ineffective
        Decisions that found their image neither where they could take it from nor where they would put it.
    staleness : Staleness
    shared : tuple of str
        Images that stand in the near and in the far part.
    """

    manifest: Manifest
    changes: tuple[Change, ...]
    ineffective: tuple[Ineffective, ...]
    staleness: Staleness
    shared: tuple[str, ...]


def apply_decisions(
    manifest: Manifest,
    resolution: Resolution,
    *,
    version: str,
    near: Mapping[str, str] | None = None,
    far: Mapping[str, str] | None = None,
    sources: Mapping[str, Source] | None = None,
    reason: str = "",
    strict: bool = False,
) -> Application:
    """Return a new version of a manifest with decisions carried out; its header pins their digest.

    ``remove`` takes an image out of the parts that the decision speaks of (its part; of a pool the near and the far
    part, where they are named; see `curation.decisions.staleness.parts_spoken_of`), and out of their subsets.
    ``to_near`` and ``keep_near`` move it from the far part, or else from the one part that the decision names, to the
    near part; ``to_far`` the other way. ``add_near`` and ``add_far`` add it. A near or far part that does not exist is
    made like the part that its first image comes from. Order of decisions and repeats change nothing.

    Parameters
    ----------
    resolution : Resolution
    version : str
        Greater than that of `manifest`.
    near, far : mapping of str to str, optional
        Part that is near, and far, by the `dataset` of decisions; under ``""`` for all others.
    sources : mapping of str to Source, optional
        By the names in the header. Parts that change are counted anew where their sources are here; else their counts
        are dropped.
    reason : str
        Why there is a new version, for `supersedes`.
    strict : bool
        Refuse stale decisions, undecided conflicts, and images in both near and far.

    Raises
    ------
    DecisionError
        See `strict`; or a list that must contain another would no longer do so.
    MissingListError
        A list of the manifest is not at hand.
    UsageError
        The version is not greater, or decisions need a near or far part that is not named.
    """
    _check_version(version, manifest)
    for part in manifest.header.parts:
        manifest.ids(part.name)
    staleness = find_stale(manifest, resolution.decisions, sources)
    work = PartSets(manifest, dict(near or {}), dict(far or {}), dict(sources or {}))
    work.replay(resolution.decisions)
    work.keep_subsets()
    shared = work.shared()
    if strict:
        _refuse_doubtful(resolution, staleness, shared)
    changes = work.changes()
    made = _reviewed(work, changes, resolution, version, reason)
    return Application(made, changes, tuple(work.ineffective), staleness, shared)


def _reviewed(
    work: PartSets, changes: Sequence[Change], resolution: Resolution, version: str, reason: str
) -> Manifest:
    """Return the new version: changed lists in their order, counts anew, provenance."""
    header = work.header
    changed = {one.part: one for one in changes}
    lists = {name: work.ordered(name) if name in changed else work.before[name] for name in work.entries}
    parts = tuple(
        changed_entry(header, entry, lists[name], changed[name].removed, changed[name].added, work.sources)
        if name in changed
        else entry
        for name, entry in work.entries.items()
    )
    base = Manifest(header, {})
    review = {
        "review_rule": resolution.rule,
        "review_near": _named(work.near),
        "review_far": _named(work.far),
    }
    rule = Rule(
        protocol=header.rule.protocol,
        algorithm_version=header.rule.algorithm_version,
        parameters=header.rule.parameters | review,
    )
    made = msgspec.structs.replace(
        header,
        version=version,
        origin="reviewed",
        parts=parts,
        rule=rule,
        figures=changed_figures(header, parts, set(changed)),
        notes=(*header.notes, _note(resolution, changes, header.version)),
        supersedes=Supersedes(
            version=header.version, digest=base.digest, reason=reason or "decisions of reviewers"
        ),
        decisions=resolution.digest,
        completes=None,
    )
    return Manifest(made, lists)


def _named(parts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{dataset}={part}" if dataset else part for dataset, part in sorted(parts.items()))


def _note(resolution: Resolution, changes: Sequence[Change], version: str) -> str:
    told = [f"{one.part} lost {len(one.removed)} and gained {len(one.added)} images" for one in changes]
    conflicts = f"{len(resolution.conflicts)} conflicts, rule {resolution.rule}"
    if resolution.undecided:
        conflicts += f", {len(resolution.undecided)} undecided"
    return (
        f"Reviewed from version {version}: {len(resolution.decisions)} decisions ({conflicts}); "
        f"{'; '.join(told) or 'no list changed'}."
    )


def _check_version(version: str, manifest: Manifest) -> None:
    base = manifest.header.version
    if not re.fullmatch(VERSION, version) or _numbers(version) <= _numbers(base):
        raise UsageError(
            "The version is not greater than that of the manifest",
            where="--version",
            expected=f"MAJOR.MINOR.PATCH behind {base}",
            found=repr(version[:40]),
            hint="other lists deserve a new major version: `curation diff` says which step",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in version.split("."))


def _refuse_doubtful(resolution: Resolution, staleness: Staleness, shared: Sequence[str]) -> None:
    problems = [*staleness.notes(), *(f"undecided: {one.text()}." for one in resolution.undecided[:_SHOWN])]
    if shared:
        problems.append(f"{len(shared)} images would be near and far: {', '.join(shared[:_SHOWN])}.")
    if problems:
        raise DecisionError(
            "The decisions are not beyond doubt",
            found=" ".join(problems),
            hint="mend them, or leave out --strict",
        )
