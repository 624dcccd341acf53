"""What the paper states of the six splits beside what came out, and what a reader must know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curation.benchmarks.findmeifyoucan import facts
from curation.benchmarks.findmeifyoucan.decisions import (
    contradictions,
    disregarded,
    is_pinned_only,
    unheard_datasets,
)
from curation.benchmarks.findmeifyoucan.overlap import annotated_overlaps, near_list_overlaps
from curation.benchmarks.findmeifyoucan.pairs import PAIRS, Pair
from curation.benchmarks.findmeifyoucan.pools import Splits
from curation.benchmarks.findmeifyoucan.rules import category_counts
from curation.benchmarks.parameters import wordnet_of
from curation.hierarchy import Wordnet
from curation.manifest.header import Figure

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
        figures += _start_figures(one, facts.START[key][one.pool.name], parameters)
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
    why = "" if obtained == published else one.missing or _why(one, parameters)
    figures.append(
        Figure(
            name=f"{pool.name}-start.images",
            paper=published,
            obtained=obtained,
            place="published list of VOS",
            explanation=why,
        )
    )
    return figures


def _part_figures(key: str, one: Splits, part: str, parameters: Mapping[str, Any]) -> list[Figure]:
    kept, added = facts.KEPT[key][part], facts.ADDED[key][part]
    paper: dict[str, int | None] = {
        "images": kept + added,
        "kept_images": kept,
        "added_images": added,
        "required_images": facts.REQUIRED.get(part),
        "excluded_images": 0,
    }
    if part not in facts.REQUIRED:
        del paper["required_images"]
    obtained = _obtained(one, part)
    return [
        Figure(
            name=f"{part}.{name}",
            paper=value,
            obtained=obtained.get(name),
            place=_PLACE[name],
            explanation="" if obtained.get(name) == value else one.missing_of(part) or _why(one, parameters),
        )
        for name, value in paper.items()
    ]


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
    removed = facts.START[key][pool.name] - sum(facts.KEPT[key][part] for part in pool.parts)
    known = one.outcome is not None
    obtained: dict[str, int | None] = {
        "removed_images": len(one.removed) if known else None,
        "near_and_far_images": len(one.shared) if known else None,
    }
    paper = {"removed_images": removed}
    place = {"removed_images": "start list less Table 3", "near_and_far_images": "recorded decisions"}
    if pool.has_near:
        paper["near_and_far_images"] = facts.SHARED[pool.name]
    return [
        Figure(
            name=f"{pool.name}.{name}",
            paper=value,
            obtained=obtained[name],
            place=place[name],
            explanation="" if obtained[name] == value else one.missing or _why(one, parameters),
        )
        for name, value in paper.items()
    ]


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
    unheard = unheard_datasets(parameters["decisions"], [one.pool for one in splits])
    if unheard:
        told = ", ".join(f"{n} of {name!r}" for name, n in unheard.items())
        notes.append(f"Decisions that speak of no pool of this manifest: {told}.")
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
