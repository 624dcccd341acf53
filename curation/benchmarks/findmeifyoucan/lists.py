"""FindMeIfYouCan: Bringing Open Set metrics to near, far and farther Out-of-Distribution Object Detection (2025).

The rule ``near-far`` selects the splits of the cases of ``findmeifyoucan.toml`` (sections 3 and A of the paper, steps
in the order of the code). This module adds the figures of the paper and the declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import zip_longest
from typing import Any

import msgspec

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import compared, manifest_of, source_entry, unread_entry
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, packaged_file
from curation.benchmarks.rules.near_far import PAPER, pair_of_file
from curation.benchmarks.rules.ood_pools import OodPair, OodPool, Splits, pair_lists
from curation.benchmarks.rules.replay import read_decisions_file as read_decisions_file
from curation.benchmarks.rules.replay import read_recorded as read_recorded
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ProtocolError
from curation.manifest.header import Figure, PartEntry, SourceEntry
from curation.manifest.manifest import Manifest
from curation.review.decisions.resolution import recorded_digest
from curation.sources.source import Source
from curation.sources.source_specs import SourceSlot

AUTHORS_DECISIONS = fact(__package__, "authors_decisions", str)
_SETTINGS = fact(__package__, "stated", dict[str, str | int])
_WANTED = fact(__package__, "wanted", dict[str, tuple[int, ...]])


@cache
def paper_file(case: str) -> BenchmarkFile:
    """Return a case of the paper as a benchmark file."""
    return packaged_file(f"findmeifyoucan/{case}")


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the splits of a pair of ID classes and OOD sources; a split that cannot be made is declared.

    Parameters
    ----------
    sources : mapping of str to Source
        A pool's start source, its published start list, and the source of its candidates if decisions add any.
    parameters : mapping
        As ``findmeifyoucan.toml`` declares them.

    Raises
    ------
    ProtocolError
        No start source is given; see also `pair_lists`.
    PresenceOnlyError
        A start source has no boxes.
    """
    starts = [pool.start for pool in _chosen(parameters).pools]
    if not {*starts} & {*sources}:
        expected = " or ".join(f"--source {start}=PATH" for start in starts)
        raise ProtocolError("No source of start images is given", expected=expected)
    return _manifest(sources, parameters)


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the published splits as a declared manifest: lists of the rule are exact, figures pin the others.

    ``curation build`` completes it with the published start lists and the decisions that the manifest pins by their
    digest, and raises an error if a figure differs.
    """
    return _manifest(sources, {**parameters, "start": "published", "decisions": AUTHORS_DECISIONS})


def slots_of(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the pools that the parameters choose."""
    used = {name for pool in _chosen(parameters).pools for name in (pool.start, pool.candidates, pool.published)}
    return tuple(slot for slot in paper_file(parameters["pair"]).slots if slot.name in used)


def _chosen(parameters: Mapping[str, Any]) -> OodPair:
    """Return the pair with the requested pools."""
    pair = pair_of_file(paper_file(parameters["pair"]))
    names = [name for name in parameters.get("pools", "").split(",") if name]
    known = [pool.name for pool in pair.pools]
    if stray := [name for name in names if name not in known]:
        raise ProtocolError(
            "The pair has no such pool", where="--set pools", expected=", ".join(known), found=repr(stray[0][:80])
        )
    return msgspec.structs.replace(pair, pools=tuple(pool for pool in pair.pools if not names or pool.name in names))


def _manifest(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    pair, decisions = _chosen(parameters), parameters["decisions"]
    made = pair_lists(
        pair, sources, decisions=decisions, start=parameters["start"], id_objects=parameters["id_objects"]
    )
    declared = any(isinstance(part, PartEntry) for part in made.parts)
    digest = recorded_digest(decisions)
    marks = [name for name in parameters["pools"].split(",") if name]
    marks += ["rule"] * (parameters["start"] == "rule") + ["automatic"] * (not decisions)
    return manifest_of(
        made.parts,
        name="-".join([pair.name, *marks]),
        title=pair.title,
        paper=PAPER,
        taxonomy="OSOD-II",
        origin="declared" if declared else "reviewed" if digest else "regenerated",
        classes=made.classes,
        sources=tuple(_source(slot, sources) for slot in slots_of(parameters) if declared or slot.name in sources),
        protocol="findmeifyoucan",
        parameters={**_SETTINGS, **parameters, "configuration_sha256": _configuration(pair)},
        figures=[figure for split in made.splits for figure in _figures(split, parameters)],
        notes=made.notes,
        decisions=digest,
    )


def _configuration(pair: OodPair) -> str:
    """Return the digest of a pair in the form of the published manifests."""

    def bounds_of(part: str) -> dict[str, int | None] | None:
        return dict(zip_longest(("more_than", "less_than"), _WANTED[part])) if part in _WANTED else None

    def fields(pool: OodPool) -> dict[str, Any]:
        by_name = {key: dict(sorted(getattr(pool, key).items())) for key in ("remove", "near")}
        bounds = {f"wanted_{level}": bounds_of(f"{pool.name}-{level}") for level in ("near", "far")}
        return msgspec.structs.asdict(pool) | by_name | (bounds if pool.has_near else dict.fromkeys(bounds))

    tables = {"pools": [*map(fields, pair.pools)], "aliases": dict(sorted(pair.aliases.items()))}
    return sha256_of_bytes(msgspec.json.encode(msgspec.structs.asdict(pair) | tables))


def _source(slot: SourceSlot, sources: Mapping[str, Source]) -> SourceEntry:
    if slot.name in sources:
        return source_entry(slot.name, sources[slot.name])
    return unread_entry(slot.name, slot.dataset, slot.part, note="from your own disk")


def _figures(split: Splits, parameters: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield every published figure of a pool, with the obtained value and the reason for a difference."""
    pool, expected = split.pool, paper_file(parameters["pair"]).expect
    obtained, why = _obtained(split), split.missing or _why(parameters)
    start = f"{pool.name}-start"
    if split.rule is not None:
        published = expected[f"{start}.images"].value
        superset = f"the rule alone: a superset of the {published} that are published after a look by hand"
        yield compared(f"{pool.name}-rule.images", len(split.rule), None, "VOS, process_coco_ood.py", superset)
    for name, figure in expected.items():
        subject = name.partition(".")[0]
        if subject in (pool.name, start, *pool.parts):
            lacking = split.missing_of(subject) if subject in pool.parts else ""
            yield compared(name, obtained.get(name), figure.value, figure.place, lacking or why)


def _obtained(split: Splits) -> dict[str, int]:
    """Return the figures of a pool that can be counted.

    With decisions, the resulting constraints are counted too: how many of its required images a split has, and how many
    of its excluded images.
    """
    pool, outcome = split.pool, split.outcome
    counts = {} if split.start is None else {f"{pool.name}-start.images": len(split.start)}
    if split.missing:
        return counts
    counts |= {f"{pool.name}.removed_images": len(outcome.removed)}
    counts |= {f"{pool.name}.near_and_far_images": len(outcome.shared)}
    for part in pool.parts:
        counts |= {f"{part}.kept_images": len(split.retained[part]), f"{part}.added_images": len(split.added[part])}
        # Images added from a missing source cannot be located.
        if not split.missing_of(part):
            images = set(split.images(part))
            required, excluded = (len(several & images) for several in split.constraints(part))
            counts |= {f"{part}.images": len(images), f"{part}.required_images": required}
            counts |= {f"{part}.excluded_images": excluded}
    return counts


def _why(parameters: Mapping[str, Any]) -> str:
    reasons = {
        "the start list is what the rule gives, not the published one": parameters["start"] == "rule",
        "the automatic stage alone: no decision was given": not parameters["decisions"],
    }
    applying = "; ".join(reason for reason, applies in reasons.items() if applies)
    return applying or "other decisions, start list or annotations than the authors'"
