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
from curation.benchmarks.facts import fact
from curation.benchmarks.findmeifyoucan.pairs import (
    PAIRS,
    Pair,
    annotated_overlaps,
    near_list_overlaps,
    pair_of,
    read_pair,
)
from curation.benchmarks.findmeifyoucan.pools import (
    SCANS,
    Splits,
    category_counts,
    contradictions,
    disregarded,
    is_pinned_only,
    positions_in,
    read_recorded,
    split_pool,
    unmatched_datasets,
)
from curation.benchmarks.parameters import Parameter, choice, salt, stated, whole, wordnet_of, wordnet_parameter
from curation.benchmarks.parts import Part, Selection, compared, make_part, manifest_of, source_entry, unread_entry
from curation.canonical import sha256_of_bytes
from curation.decisions.resolution import recorded_digest
from curation.errors import ProtocolError
from curation.hierarchy import Wordnet
from curation.manifest.header import ClassEntry, Figure, LabelView, Paper, PartEntry, SourceEntry, Treatment
from curation.manifest.manifest import Manifest
from curation.sources.datasets import COCO_CATEGORIES, family
from curation.sources.source import Source

_ROOM = __package__
Sizes = dict[str, dict[str, int]]

PAPER = fact(_ROOM, "paper", Paper)
KEPT, ADDED, START = (fact(_ROOM, key, Sizes) for key in ("kept", "added", "start"))
REQUIRED, EXCLUDED, SHARED = (fact(_ROOM, key, dict[str, int]) for key in ("required", "excluded", "shared"))
AUTHORS_DECISIONS = fact(_ROOM, "authors_decisions", str)


START_LISTS = {
    "published": "the published start list, where the pair has one; else the rule",
    "rule": "all that the rule lets in, a superset of the published list",
}
ID_OBJECTS = {
    "unknown": "objects of an ID class that are left in a split are unknown, as published",
    "ignore": "they are neither right nor wrong",
}

PARAMETERS = (
    Parameter(
        "pair",
        "voc",
        read_pair,
        "ID classes and OOD sources: voc (near and far), bdd (farther), or your own TOML or JSON file",
    ),
    Parameter(
        "decisions",
        "",
        read_recorded,
        "file of recorded decisions (jsonl, csv, authors' manual_selection); empty for the automatic stage alone",
    ),
    Parameter("pools", "", str, "OOD sources to build, separated by commas; empty for all of the pair"),
    choice("start", START_LISTS),
    choice(
        "shared",
        ("report", "refuse"),
        "an image that decisions put into the near and into the far split: report, or refuse",
    ),
    choice("id_objects", ID_OBJECTS),
    whole("candidates", 0, "images a split to show to a reviewer; 0 for no such lists"),
    choice("scan", SCANS, default="whole_image"),
    salt("findmeifyoucan", "salt of the hash ranks of candidates"),
    wordnet_parameter(),
)


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
        By the names in `PARAMETERS`.

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
    published = {**parameters, "start": "published", "decisions": AUTHORS_DECISIONS}
    return _manifest(pair, sources, published)


def _chosen(parameters: Mapping[str, Any]) -> Pair:
    """Return the pair with the pools that were asked for."""
    pair = pair_of(parameters["pair"])
    names = [name for name in parameters["pools"].split(",") if name]
    known = [pool.name for pool in pair.pools]
    if stray := [name for name in names if name not in known]:
        raise ProtocolError(
            "The pair has no such pool", where="--set pools", expected=", ".join(known), found=repr(stray[0][:80])
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
        paper=PAPER,
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
    return unread_entry(slot.name, slot.dataset, slot.part, note="from your own disk")


def _configuration(pair: Pair) -> str:
    """Return a digest of the pair's classes, category tables and limits."""
    return sha256_of_bytes(msgspec.json.encode(pair, order="deterministic"))


def slots_of(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the pools that the parameters choose."""
    return _chosen(parameters).slots()


_SHOWN = 3
_PLACE = {
    "images": "Table 3",
    "kept_images": "Table 3, by arithmetic: the images that are not added ones",
    "added_images": "recorded decisions, FROM_CANDIDATES without repeats",
    "required_images": "recorded decisions: added, and kept as near",
    "excluded_images": "recorded decisions: removed, or moved to the other split",
}


def figures_of(pair: Pair, splits: Sequence[Splits], parameters: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Return every published figure of the pools that are built, with what was obtained and why it differs.

    Where decisions are available the constraints that follow from them are counted too: how many images of those that a
    split must contain it has, and how many of those that it must not.
    """
    key = next((name for name, one in PAIRS.items() if one.name == pair.name), "")
    if not key:
        return ()
    figures: list[Figure] = []
    for one in splits:
        figures += _start_figures(one, START[key][one.pool.name], parameters)
        for part in one.pool.parts:
            figures += _part_figures(key, one, part, parameters)
        figures += _pool_figures(key, one, parameters)
    return tuple(figures)


def _start_figures(one: Splits, published: int, parameters: Mapping[str, Any]) -> list[Figure]:
    figures = []
    pool = one.pool
    if one.rule is not None:
        figures.append(
            Figure(
                name=f"{pool.name}-rule.images",
                paper=None,
                obtained=len(one.rule),
                place="VOS, process_coco_ood.py",
                explanation=f"the rule alone: a superset of the {published} that are published after a look by hand",
            )
        )
    obtained = None if one.start is None else len(one.start)
    why = one.missing or _why(one, parameters)
    return [*figures, compared(f"{pool.name}-start.images", obtained, published, "published list of VOS", why)]


def _part_figures(key: str, one: Splits, part: str, parameters: Mapping[str, Any]) -> list[Figure]:
    kept, added = KEPT[key][part], ADDED[key][part]
    paper: dict[str, int | None] = {
        "images": kept + added,
        "kept_images": kept,
        "added_images": added,
        "required_images": REQUIRED.get(part),
        "excluded_images": 0,
    }
    if part not in REQUIRED:
        del paper["required_images"]
    obtained = _obtained(one, part)
    why = one.missing_of(part) or _why(one, parameters)
    return [compared(f"{part}.{name}", obtained.get(name), value, _PLACE[name], why) for name, value in paper.items()]


def _obtained(one: Splits, part: str) -> dict[str, int]:
    """Return what is known of a split: where the source of its added images is not given, two numbers."""
    if one.outcome is None:
        return {}
    figures = {"kept_images": len(one.kept[part]), "added_images": len(one.added[part])}
    if not one.missing_of(part):
        images = set(one.images(part))
        required, excluded = one.constraints(part)
        figures |= {
            "images": len(images),
            "required_images": len(required & images),
            "excluded_images": len(excluded & images),
        }
    return figures


def _pool_figures(key: str, one: Splits, parameters: Mapping[str, Any]) -> list[Figure]:
    pool = one.pool
    removed = START[key][pool.name] - sum(KEPT[key][part] for part in pool.parts)
    known = one.outcome is not None
    obtained: dict[str, int | None] = {
        "removed_images": len(one.removed) if known else None,
        "near_and_far_images": len(one.shared) if known else None,
    }
    paper = {"removed_images": removed}
    place = {"removed_images": "start list less Table 3", "near_and_far_images": "recorded decisions"}
    if pool.has_near:
        paper["near_and_far_images"] = SHARED[pool.name]
    why = one.missing or _why(one, parameters)
    return [compared(f"{pool.name}.{name}", obtained[name], value, place[name], why) for name, value in paper.items()]


def _why(one: Splits, parameters: Mapping[str, Any]) -> str:
    reasons = []
    if parameters["start"] == "rule":
        reasons.append("the start list is what the rule gives, not the published one")
    if not parameters["decisions"]:
        reasons.append("the automatic stage alone: no decision was given")
    return "; ".join(reasons) or "other decisions, start list or annotations than the authors'"


def notes_of(pair: Pair, splits: Sequence[Splits], parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a reader must know: overlaps with ID classes, what has no effect, shared images."""
    notes = []
    if wordnet := wordnet_of(parameters):
        notes.append(f"Overlaps by kind are those of {wordnet.name}, {wordnet.difference}.")
    if not parameters["decisions"]:
        notes.append(
            "No decisions were given: near and far are what the category lists say, a proposal and no judgement."
        )
    elif is_pinned_only(parameters["decisions"]):
        notes.append(
            "The decisions are named by their digest: `curation build` completes the splits with --decisions FILE."
        )
    notes += [f"Overlap: {one}" for one in near_list_overlaps(pair, wordnet)]
    for one in splits:
        notes += [f"Overlap: {found}" for found in _annotated(pair, one, wordnet)]
        notes += one.notes
        if left := disregarded(parameters["decisions"], one.pool):
            notes.append(
                f"{one.pool.name}: {left} decisions do not count: of this pool only manual removals for the reason "
                f"{' or '.join(map(repr, one.pool.reasons))} do."
            )
    if differing := contradictions(parameters["decisions"]):
        more = f"; and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        notes.append(
            f"Verdicts contradict each other on {len(differing)} images, and all are replayed, in the order of the "
            f"steps: {'; '.join(differing[:_SHOWN])}{more}."
        )
    unmatched = unmatched_datasets(parameters["decisions"], [one.pool for one in splits])
    if unmatched:
        told = ", ".join(f"{n} of {name!r}" for name, n in unmatched.items())
        notes.append(f"Decisions on no pool of this manifest: {told}.")
    return tuple(notes)


def _annotated(pair: Pair, one: Splits, wordnet: Wordnet | None) -> list[str]:
    """Return the overlaps found in the annotations of the splits that are available."""
    found: list[str] = []
    for part in one.pool.parts:
        if one.missing_of(part):
            continue
        counts: dict[str, int] = {}
        for selection in one.selections(part):
            for name, n in category_counts(selection.source, selection.positions).items():
                counts[name] = counts.get(name, 0) + n
        found += map(str, annotated_overlaps(pair, one.pool, part, counts, wordnet))
    return found
