"""Decisions from files: what they say before anything is done with them, and their replay on a manifest."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from curation.arguments import checked
from curation.decisions.agreement import ListCount, StageAgreement, agreement, count_lists
from curation.decisions.application import Application, Staleness, apply_decisions, find_stale
from curation.decisions.authors_files import CategoryFinding, check_categories, read_category_lists
from curation.decisions.files import DecisionFile, read_decision_files, write_decisions
from curation.decisions.resolution import Resolution, refuse_conflicts, resolve, standing_verdicts
from curation.errors import CurationWarning, DecisionError, UsageError
from curation.manifest.diff import diff_manifests
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.slots import Reading, Sources

_RANK = {"none": 0, "patch": 1, "minor": 2, "major": 3}
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class ConflictRule:
    """What becomes of verdicts that differ.

    Attributes
    ----------
    rule
        what to do where reviewers differ: refuse (default), take what most say, or what the most senior says
    senior
        a reviewer whose word goes before that of those named later (repeatable; with --rule senior)
    allow_conflicts
        with --rule error: replay all contradicting verdicts, as the authors' code does
    """

    rule: Literal["error", "majority", "senior"] = "error"
    senior: tuple[Annotated[str, "NAME"], ...] = ()
    allow_conflicts: bool = False


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """All that is told of some decisions files."""

    files: Sequence[DecisionFile]
    lists: Sequence[ListCount]
    resolution: Resolution
    agreement: Sequence[StageAgreement]
    staleness: Staleness | None
    categories: Sequence[CategoryFinding]
    allowed: bool

    def problems(self) -> list[str]:
        """Return what ``--strict`` does not let pass."""
        found = [note for one in self.files for note in one.report.notes()]
        open_ones = self.resolution.undecided or (() if self.allowed else self.resolution.both)
        found += [f"open conflict: {one.text()}" for one in open_ones]
        found += self.staleness.notes() if self.staleness else []
        return found + [one.text() for one in self.categories if one.problem == "id_class_is_near"]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "files": [
                {
                    "name": one.report.name,
                    "format": one.report.format,
                    "sha256": one.digest,
                    "rows": one.report.rows,
                    "torn": one.report.torn,
                }
                for one in self.files
            ],
            "lists": [
                {**asdict(one), "reasons": {name: list(counts) for name, counts in one.reasons.items()}}
                for one in self.lists
            ],
            "resolution": self.resolution.data(),
            "agreement": [asdict(one) for one in self.agreement],
            "staleness": asdict(self.staleness) if self.staleness is not None else None,
            "categories": [asdict(one) for one in self.categories],
            "problems": self.problems(),
        }

    def save(self, path: Path) -> None:
        """Write the resolved decisions: ``.jsonl`` or ``.csv``.

        Raises
        ------
        DecisionError
            Verdicts contradict each other, and that is not allowed.
        """
        if not self.allowed:
            refuse_conflicts(self.resolution.both)
        write_decisions(path, self.resolution.decisions)


@checked
def report_decisions(
    files: tuple[Path, ...],
    /,
    *,
    manifest: Annotated[str | None, "M"] = None,
    categories: Path | None = None,
    rule: ConflictRule | None = None,
) -> DecisionReport:
    """Return what recorded verdicts say: counts, repeats, conflicts, agreement of reviewers, staleness.

    Parameters
    ----------
    files
        .jsonl or .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json
    manifest
        report decisions that do not fit this manifest
    categories
        the authors' lists of categories (.yaml, .json): report ID classes in the near list
    """
    rule = rule or ConflictRule()
    read = read_decision_files(files)
    rows = [one for file in read for one in file.decisions]
    resolution = resolve(rows, rule.rule, seniors=rule.senior, allow_conflicts=True)
    return DecisionReport(
        files=read,
        lists=count_lists(rows),
        resolution=resolution,
        agreement=agreement(standing_verdicts(rows)),
        staleness=find_stale(load_manifest(manifest), resolution.decisions) if manifest else None,
        categories=check_categories(read_category_lists(categories)) if categories else (),
        allowed=rule.allow_conflicts,
    )


@dataclass(frozen=True, slots=True)
class Replayed:
    """Decisions carried out on a manifest: the manifest before, what was done, and how verdicts were resolved."""

    base: Manifest
    applied: Application
    resolution: Resolution

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        made, applied = self.applied.manifest, self.applied
        return {
            "name": made.header.name,
            "version": made.header.version,
            "digest": made.digest,
            "supersedes": {"version": self.base.header.version, "digest": self.base.digest},
            "changes": [asdict(one) for one in applied.changes],
            "ineffective": [asdict(one) for one in applied.ineffective],
            "shared": list(applied.shared),
            "staleness": asdict(applied.staleness),
            "resolution": self.resolution.data(),
        }


@checked
def apply_from_files(
    manifest: str,
    /,
    *,
    decisions: tuple[Path, ...],
    near: Annotated[Mapping[str, str] | str, "[DATASET=]PART"] = NOTHING,
    far: Annotated[Mapping[str, str] | str, "[DATASET=]PART"] = NOTHING,
    version: Annotated[str, "V"],
    reason: Annotated[str, "TEXT"] = "",
    strict: bool = False,
    rule: ConflictRule | None = None,
    sources: Sources = NOTHING,
    reading: Reading | None = None,
) -> Replayed:
    """Replay recorded verdicts on a manifest: a new version that names their digest.

    Parameters
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
    decisions
        .jsonl, .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json (repeatable)
    near
        the part that is near, of decisions on DATASET or of all; one that does not exist is made
        (repeatable)
    far
        the part that is far, of decisions on DATASET or of all; one that does not exist is made
        (repeatable)
    version
        of the new manifest: MAJOR.MINOR.PATCH
    reason
        why there is a new version
    strict
        refuse stale decisions, undecided images, images both near and far, and lines cut off
    sources
        to count objects anew
    """
    # Loaded when it is used: the readers of all formats cost the help of a command 0.04 s.
    from curation.sources.given import open_slots

    rule = rule or ConflictRule()
    if len(reason) > 1000 or (reason and not reason.isprintable()):
        raise UsageError("The reason is not one line of text", where="--reason")
    base = load_manifest(manifest)
    files = read_decision_files(decisions)
    torn = [note for one in files for note in one.report.notes()]
    if torn and strict:
        raise DecisionError("A decisions file is cut off", where=torn[0], hint="leave out --strict")
    rows = [one for file in files for one in file.decisions]
    resolution = resolve(rows, rule.rule, seniors=rule.senior, allow_conflicts=rule.allow_conflicts)
    applied = apply_decisions(
        base,
        resolution,
        version=version,
        near={"": near} if isinstance(near, str) else near,
        far={"": far} if isinstance(far, str) else far,
        sources=open_slots(sources, base.slots, reading or Reading()) if sources else None,
        reason=reason,
        strict=strict,
    )
    for note in (*torn, *_doubts(base, applied)):
        warnings.warn(note, CurationWarning, stacklevel=3)
    return Replayed(base, applied, resolution)


def _doubts(base: Manifest, applied: Application) -> list[str]:
    """Return in words what a reader of the result should look at."""
    told = [*applied.staleness.notes(), *(one.text() for one in applied.ineffective)]
    if applied.shared:
        told.append(f"near and far share {len(applied.shared)} images, such as {applied.shared[0]}.")
    if not applied.changes:
        told.append("no list changed.")
    step = diff_manifests(base, applied.manifest)
    if step.stated_step is not None and _RANK[step.stated_step] < _RANK[step.verdict]:
        told.append(f"the change deserves a {step.verdict} version ({step.reason}), not a {step.stated_step} one.")
    return told
