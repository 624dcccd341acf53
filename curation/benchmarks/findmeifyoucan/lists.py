"""FindMeIfYouCan: Bringing Open Set metrics to near, far and farther Out-of-Distribution Object Detection (2025).

A start list of images without an ID class; the automatic stage, which removes images by category and calls others near;
recorded overrides and a first manual stage; accepted candidates, which enrich rare categories. What is not near is far,
and of BDD100k everything is farther (sections 3 and A of the paper; the steps as the code takes them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from curation.benchmarks.benchmark import SourceSlot
from curation.benchmarks.findmeifyoucan import facts
from curation.benchmarks.findmeifyoucan.expected import figures_of, notes_of
from curation.benchmarks.findmeifyoucan.pairs import PAIRS, Pair, pair_of
from curation.benchmarks.findmeifyoucan.parameters import PARAMETERS
from curation.benchmarks.findmeifyoucan.pools import Splits, split_pool
from curation.benchmarks.findmeifyoucan.rules import positions_in
from curation.benchmarks.parameters import stated
from curation.benchmarks.parts import Part, Selection, make_part, manifest_of, source_entry
from curation.canonical import sha256_of_bytes
from curation.decisions.resolution import recorded_digest
from curation.errors import ProtocolError
from curation.manifest.header import ClassEntry, LabelView, PartEntry, SourceEntry, Treatment
from curation.manifest.manifest import Manifest
from curation.sources.datasets import COCO_CATEGORIES, facts_of, family, namespace_of
from curation.sources.source import Source

ALGORITHM_VERSION = 1
_RULES = {
    "rule": "Images of {start} with no annotation, crowd included, of an ID class; images without annotation too.",
    "start": "The published start list {published}: what was left of the rule's images, or chosen without one.",
    "near": "Start images by category ({near}) and decision that are near the ID classes, and accepted candidates.",
    "far": "Start images that are neither removed nor near, and accepted candidates.",
    "farther": "Start images that are not removed.",
    "candidates": "Proposed to a reviewer for {part}: a wanted category, no ID class ({scan}).",
}


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the splits of a pair of ID classes and OOD sources, those that cannot be had declared.

    Parameters
    ----------
    sources : mapping of str to Source
        See `Pair.slots`; a pool's start source, its published start list where it has one, and the source of its
        candidates where the decisions add any.
    parameters : mapping
        See `curation.benchmarks.findmeifyoucan.parameters`.

    Raises
    ------
    ProtocolError
        No start source is given; see also `curation.benchmarks.findmeifyoucan.pools.split_pool`.
    PresenceOnlyError
        A start source has no boxes.
    """
    pair = _chosen(parameters)
    if not any(pool.start in sources for pool in pair.pools):
        raise ProtocolError(
            "No images to start from are given",
            expected=" or ".join(f"--source {pool.start}=PATH" for pool in pair.pools),
        )
    return _manifest(pair, sources, parameters)


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the published splits as a declared manifest: what the rule gives exact, the rest pinned by the figures.

    ``curation build`` completes it with the published start lists and the decisions that the manifest pins by their
    digest, and refuses if a figure comes out otherwise.
    """
    pair = _chosen(parameters)
    if pair.name not in {one.name for one in PAIRS.values()}:
        raise ProtocolError("Only a published pair can be declared", where="--set pair", expected=", ".join(PAIRS))
    published = {**parameters, "start": "published", "decisions": facts.AUTHORS_DECISIONS}
    return _manifest(pair, sources, published)


def _chosen(parameters: Mapping[str, Any]) -> Pair:
    """Return the pair with the pools that were asked for."""
    pair = pair_of(parameters["pair"])
    names = [name for name in parameters["pools"].split(",") if name]
    known = [pool.name for pool in pair.pools]
    if stray := [name for name in names if name not in known]:
        raise ProtocolError(
            "The pair has no such pool",
            where="--set pools",
            expected=", ".join(known),
            found=repr(stray[0][:80]),
        )
    return msgspec.structs.replace(pair, pools=tuple(pool for pool in pair.pools if not names or pool.name in names))


def _manifest(pair: Pair, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    splits = [split_pool(pair, pool, sources, parameters) for pool in pair.pools]
    classes = _classes(pair, sources)
    parts = [part for one in splits for part in _parts(one, classes, parameters)]
    declared = any(isinstance(part, PartEntry) for part in parts)
    digest = recorded_digest(parameters["decisions"])
    return manifest_of(
        parts,
        name=default_name(pair, parameters),
        title=pair.title or pair.name,
        paper=facts.PAPER,
        taxonomy="OSOD-II",
        origin="declared" if declared else "reviewed" if digest else "regenerated",
        classes=classes,
        sources=tuple(_source(slot, sources) for slot in pair.slots() if declared or slot.name in sources),
        protocol="findmeifyoucan",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**stated(parameters, PARAMETERS), "configuration_sha256": _configuration(pair)},
        figures=figures_of(pair, splits, parameters),
        notes=notes_of(pair, splits, parameters),
        decisions=digest,
    )


def default_name(pair: Pair, parameters: Mapping[str, Any]) -> str:
    """Return the manifest's name: ``findmeifyoucan/voc``, and ``-coco``, ``-rule``, ``-automatic`` for less."""
    marks = [name for name in parameters["pools"].split(",") if name]
    if pair.name in {one.name for one in PAIRS.values()}:
        marks += ["rule"] if parameters["start"] == "rule" else []
        marks += [] if parameters["decisions"] else ["automatic"]
    return "-".join([pair.name, *marks])


def _classes(pair: Pair, sources: Mapping[str, Source]) -> tuple[ClassEntry, ...]:
    """Return the ID classes, then every other category of the sources (of COCO always), unknown."""
    known = tuple(
        ClassEntry(name=name, role="known", index=index, aliases=pair.aliases.get(name, ()))
        for index, name in enumerate(pair.id_classes)
    )
    taken = pair.names()
    others: dict[str, None] = {}
    for pool in pair.pools:
        if family(pool.dataset) == "coco":
            others |= dict.fromkeys(name for _, name, _ in COCO_CATEGORIES if name not in taken)
        for slot in (pool.start, pool.candidates):
            if slot in sources:
                others |= dict.fromkeys(n for n in sources[slot].categories.names if n not in taken)
    return (*known, *(ClassEntry(name=name, role="unknown", index=-1) for name in others))


def _view(parameters: Mapping[str, Any]) -> LabelView:
    """Return how a split is scored: every annotation is an unknown object, crowd and group boxes included."""
    left_over: Treatment = "ignore" if parameters["id_objects"] == "ignore" else "rename:unknown"
    return LabelView(known=left_over, unknown="rename:unknown", crowd="keep", difficult="keep")


def _parts(one: Splits, classes: Sequence[ClassEntry], parameters: Mapping[str, Any]) -> list[Part | PartEntry]:
    """Return the lists of a pool, those that cannot be had without images and digest."""
    pool, view = one.pool, _view(parameters)
    words = {
        "start": pool.start,
        "published": pool.published,
        "near": ", ".join(pool.near) or "none",
        "scan": parameters["scan"],
    }

    def made(name: str, kind: str, selected: list[Selection] | None, subset_of: str = "") -> Part | PartEntry:
        rule = _RULES[kind].format(**words | {"part": name.removesuffix("-candidates")})
        if selected is not None:
            return make_part(name, "test", selected, classes, view=view, rule=rule, subset_of=subset_of)
        slots = dict.fromkeys(slot for slot in (pool.start, pool.candidates) if slot)
        return PartEntry(name=name, role="test", sources=tuple(slots), selection=rule, view=view, subset_of=subset_of)

    parts: list[Part | PartEntry] = []
    by_rule = f"{pool.name}-rule" if pool.rule else ""
    if by_rule:
        parts.append(made(by_rule, "rule", _located(one, one.rule, pool.start)))
    if parameters["start"] == "published" and one.start is not one.rule:
        parts.append(made(f"{pool.name}-start", "start", _located(one, one.start, pool.start), by_rule))
    for part in pool.parts:
        kind = "near" if part == pool.near_part else pool.distance
        parts.append(made(part, kind, None if one.missing_of(part) else one.selections(part)))
    for part, ids in one.proposed.items():
        parts.append(made(f"{part}-candidates", "candidates", _located(one, ids, pool.candidates)))
    return parts


def _located(one: Splits, ids: Sequence[str] | None, slot: str) -> list[Selection] | None:
    if ids is None:
        return None
    source = one.sources[slot]
    return [Selection(slot, source, positions_in(source, ids, f"pool {one.pool.name}", slot))]


def _source(slot: SourceSlot, sources: Mapping[str, Source]) -> SourceEntry:
    if slot.name in sources:
        return source_entry(slot.name, sources[slot.name])
    terms = facts_of(slot.dataset)
    return SourceEntry(
        name=slot.name,
        dataset=slot.dataset,
        part=slot.part,
        namespace=namespace_of(slot.dataset),
        licence=terms.licence,
        media_redistributable=terms.media_redistributable,
        files=(),
        note="from your own disk",
    )


def _configuration(pair: Pair) -> str:
    """Return a digest of the pair's classes, category tables and limits."""
    return sha256_of_bytes(msgspec.json.encode(pair, order="deterministic"))


def slots_of(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the pools that the parameters choose."""
    return _chosen(parameters).slots()
