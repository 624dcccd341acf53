"""FindMeIfYouCan: Bringing Open Set metrics to near, far and farther Out-of-Distribution Object Detection (2025).

A start list of images without an ID class; the automatic stage, which removes images by category and calls others near;
recorded overrides and a first manual stage; accepted candidates, which enrich rare categories. What is not near is far,
and of BDD100k everything is farther (sections 3 and A of the paper; the steps as the code takes them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from curation.benchmarks.benchmark import fact
from curation.benchmarks.findmeifyoucan.pairs import PAIRS, pair_of
from curation.benchmarks.parts import compared, manifest_of, rule_note, source_entry, unread_entry
from curation.benchmarks.rules.near_far_lists import OWN_START, Splits, classes_of, notes_of, parts_of, split_pool
from curation.benchmarks.rules.ood_pools import OodPair
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ProtocolError
from curation.manifest.header import Figure, Paper, PartEntry, SourceEntry
from curation.manifest.manifest import Manifest
from curation.review.decisions.resolution import recorded_digest
from curation.sources.source import Source
from curation.sources.source_specs import SourceSlot

_ROOM = __package__
Sizes = dict[str, dict[str, int]]

PAPER = fact(_ROOM, "paper", Paper)
KEPT, ADDED, START = (fact(_ROOM, key, Sizes) for key in ("kept", "added", "start"))
REQUIRED, SHARED = (fact(_ROOM, key, dict[str, int]) for key in ("required", "shared"))
AUTHORS_DECISIONS = fact(_ROOM, "authors_decisions", str)


ALGORITHM_VERSION = 1
_SOURCES = fact(_ROOM, "places", dict[str, str])


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the splits of a pair of ID classes and OOD sources; a split that cannot be made is declared.

    Parameters
    ----------
    sources : mapping of str to Source
        See `Pair.slots`; a pool's start source, its published start list where it has one, and the source of its
        candidates where the decisions add any.
    parameters : mapping
        As ``findmeifyoucan.toml`` declares them.

    Raises
    ------
    ProtocolError
        No start source is given; see also `split_pool`.
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
    if _is_users(pair):
        raise ProtocolError("Only a published pair can be declared", where="--set pair", expected=", ".join(PAIRS))
    published = {**parameters, "start": "published", "decisions": AUTHORS_DECISIONS}
    return _manifest(pair, sources, published)


def _chosen(parameters: Mapping[str, Any]) -> OodPair:
    """Return the pair with the pools that were asked for."""
    pair = pair_of(parameters["pair"])
    names = [name for name in parameters["pools"].split(",") if name]
    known = [pool.name for pool in pair.pools]
    if stray := [name for name in names if name not in known]:
        raise ProtocolError(
            "The pair has no such pool", where="--set pools", expected=", ".join(known), found=repr(stray[0][:80])
        )
    return msgspec.structs.replace(pair, pools=tuple(pool for pool in pair.pools if not names or pool.name in names))


def _manifest(pair: OodPair, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    is_own = _is_users(pair)
    chosen = {**parameters, "start": OWN_START} if is_own and parameters["start"] == "published" else parameters
    splits = [split_pool(pair, pool, sources, chosen) for pool in pair.pools]
    classes = classes_of(pair, sources)
    parts = [part for split in splits for part in parts_of(split, classes, chosen)]
    declared = any(isinstance(part, PartEntry) for part in parts)
    digest = recorded_digest(parameters["decisions"])
    configuration = sha256_of_bytes(msgspec.json.encode(pair, order="deterministic"))
    return manifest_of(
        parts,
        name=pair_manifest_name(pair, parameters),
        title=pair.title or pair.name,
        paper=None if is_own else PAPER,
        taxonomy="OSOD-II",
        origin="declared" if declared else "reviewed" if digest else "regenerated",
        classes=classes,
        sources=tuple(_source(slot, sources) for slot in pair.slots() if declared or slot.name in sources),
        protocol="findmeifyoucan",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, "configuration_sha256": configuration},
        figures=[] if is_own else [figure for split in splits for figure in _figures(pair, split, parameters)],
        notes=(*([rule_note("near-far", PAPER)] if is_own else ()), *notes_of(pair, splits, parameters)),
        decisions=digest,
    )


def pair_manifest_name(pair: OodPair, parameters: Mapping[str, Any]) -> str:
    """Return the manifest's name: ``findmeifyoucan/voc``, and ``-coco``, ``-rule``, ``-automatic`` for less."""
    marks = [name for name in parameters["pools"].split(",") if name]
    if not _is_users(pair):
        marks += ["rule"] if parameters["start"] == "rule" else []
        marks += [] if parameters["decisions"] else ["automatic"]
    return "-".join([pair.name, *marks])


def _is_users(pair: OodPair) -> bool:
    """Return whether a pair is declared by the user, and none of the paper's."""
    return pair.name not in {known.name for known in PAIRS.values()}


def _source(slot: SourceSlot, sources: Mapping[str, Source]) -> SourceEntry:
    if slot.name in sources:
        return source_entry(slot.name, sources[slot.name])
    return unread_entry(slot.name, slot.dataset, slot.part, note="from your own disk")


def slots_of(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    """Return the sources of the pools that the parameters choose."""
    return _chosen(parameters).slots()


def _figures(pair: OodPair, split: Splits, parameters: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield every published figure of a pool, with what was obtained and why it differs.

    Where decisions are available the constraints that follow from them are counted too: how many images of those that a
    split must contain it has, and how many of those that it must not.
    """
    key = next(name for name, known in PAIRS.items() if known.name == pair.name)
    name, published = split.pool.name, START[key][split.pool.name]
    why = split.missing or _why(parameters)
    if split.rule is not None:
        superset = f"the rule alone: a superset of the {published} that are published after a look by hand"
        yield compared(f"{name}-rule.images", len(split.rule), None, "VOS, process_coco_ood.py", superset)
    start = None if split.start is None else len(split.start)
    yield compared(f"{name}-start.images", start, published, "published list of VOS", why)
    for part in split.pool.parts:
        n_kept, added = KEPT[key][part], ADDED[key][part]
        paper_figures = {"images": n_kept + added, "kept_images": n_kept, "added_images": added}
        paper_figures |= {"required_images": REQUIRED[part]} if part in REQUIRED else {}
        obtained, lacking = _obtained(split, part), split.missing_of(part)
        for quantity, paper in {**paper_figures, "excluded_images": 0}.items():
            yield compared(f"{part}.{quantity}", obtained.get(quantity), paper, _SOURCES[quantity], lacking or why)
    removed, shared = (None, None) if split.missing else (len(split.outcome.removed), len(split.shared))
    left_out = published - sum(KEPT[key][part] for part in split.pool.parts)
    yield compared(f"{name}.removed_images", removed, left_out, "start list less Table 3", why)
    if split.pool.has_near:
        yield compared(f"{name}.near_and_far_images", shared, SHARED[name], "recorded decisions", why)


def _obtained(split: Splits, part: str) -> dict[str, int]:
    """Return what is known of a split: where the source of its added images is not given, two numbers."""
    if split.missing:
        return {}
    figures = {"kept_images": len(split.kept[part]), "added_images": len(split.added[part])}
    if not split.missing_of(part):
        images = set(split.images(part))
        required, excluded = (len(several & images) for several in split.constraints(part))
        figures |= {"images": len(images), "required_images": required, "excluded_images": excluded}
    return figures


def _why(parameters: Mapping[str, Any]) -> str:
    reasons = {
        "the start list is what the rule gives, not the published one": parameters["start"] == "rule",
        "the automatic stage alone: no decision was given": not parameters["decisions"],
    }
    reasons_given = "; ".join(reason for reason, applies in reasons.items() if applies)
    return reasons_given or "other decisions, start list or annotations than the authors'"
