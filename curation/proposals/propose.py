"""From ID classes and OOD sources to ranked proposals: every lens asked, every number recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from curation.errors import ProposalError
from curation.proposals.category_judgement import Judged, Lists, category_table, judge_categories
from curation.proposals.category_relations import ClassTree, category_relations, nearest_classes
from curation.proposals.clip_overlap import Look, Prompts, image_of, look_at, look_evidence, text_evidence
from curation.proposals.combine import Suspect, combine, finding
from curation.proposals.detector_overlap import detector_evidence
from curation.proposals.id_classes import IdClass
from curation.proposals.labelled_overlap import label_evidence
from curation.proposals.proposal import (
    SEEN_BY_MACHINE,
    CategoryJudgement,
    Evidence,
    Group,
    Input,
    ProposalSet,
    Verdict,
)
from curation.proposals.reference import Reference
from curation.proposals.set_distance import (
    SetStatistics,
    farther_pools,
    kinships_in,
    propose_sets,
    set_statistics,
)
from curation.proposals.synsets import synsets_of
from curation.proposals.thresholds import Thresholds
from curation.sources.datasets import family

if TYPE_CHECKING:
    from curation.hierarchy import Wordnet
    from curation.similarity.embeddings import Embeddings
    from curation.sources.source import Source


@dataclass(frozen=True)
class OodPool:
    """One OOD source with what is known of its images beside their annotations.

    Attributes
    ----------
    name : str
        What decisions call it.
    source : Source
    lists : Lists
        Categories that the user calls near or far himself.
    synsets : mapping of str to str
        The user's own synsets of category names; they go before the maps made by hand.
    tree : ClassTree or None
    embeddings : Embeddings or None
    detections : Path or None
        COCO results of a detector of the ID classes.
    detector_classes : mapping of int to str
        ID class of each of the detector's category numbers.
    """

    name: str
    source: Source
    lists: Lists = field(default_factory=Lists)
    synsets: Mapping[str, str] = field(default_factory=dict)
    tree: ClassTree | None = None
    embeddings: Embeddings | None = None
    detections: Path | None = None
    detector_classes: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Lenses:
    """What serves all pools.

    Attributes
    ----------
    references : Reference or None
        The embedded ID images, and how similar they are among themselves.
    prompts : Prompts or None
    """

    references: Reference | None = None
    prompts: Prompts | None = None


@dataclass(frozen=True)
class _Seen:
    """What was found in one pool."""

    pool: OodPool
    judged: tuple[Judged, ...]
    categories: tuple[CategoryJudgement, ...]
    evidence: dict[str, tuple[Evidence, ...]]
    look: Look | None
    left_out: dict[str, int]
    inputs: tuple[Input, ...]


def propose(
    classes: Sequence[IdClass],
    pools: Sequence[OodPool],
    *,
    lenses: Lenses | None = None,
    thresholds: Thresholds | None = None,
    id_synsets: Mapping[str, str] | None = None,
    compare: Sequence[SetStatistics] = (),
    inputs: Iterable[Input] = (),
    wordnet: Wordnet | None = None,
) -> ProposalSet:
    """Return ranked proposals for every image of the pools: proposals, not decisions (spec 3.3).

    Parameters
    ----------
    classes : sequence of IdClass
    pools : sequence of OodPool
        Of different names, sharing no image.
    lenses : Lenses, optional
    thresholds : Thresholds, optional
    id_synsets : mapping of str to str, optional
        The user's own synsets of ID classes, before those of the classes and of the maps.
    compare : sequence of SetStatistics
        Far sets of other proposals, for the farther label.
    inputs : iterable of Input
        Files that the caller read.
    wordnet : Wordnet, optional
        In place of the built-in one (`curation.hierarchy.open_wordnet`); it stands among the inputs with its digest.

    Raises
    ------
    ProposalError
        Two pools share a name or an image; embeddings of different encoders meet; a list or file does not fit.
    """
    from tqdm import tqdm

    chosen = thresholds or Thresholds()
    asked = lenses or Lenses()
    _require_distinct(pools)
    known = _id_synsets(classes, id_synsets or {}, wordnet)
    told = [Input(use="wordnet", name=wordnet.name, sha256=wordnet.digest)] if wordnet else []
    seen = [
        _look_into(pool, classes, known, asked, chosen, wordnet)
        for pool in tqdm(pools, desc="looking into OOD sources", disable=None, leave=False)
    ]
    sets = propose_sets([one for pool in seen for one in _statistics(pool, chosen)], compare, chosen)
    suspects = [
        Suspect(one.pool.name, image, evidence) for one in seen for image, evidence in one.evidence.items()
    ]
    return ProposalSet(
        id_classes=tuple(one.name for one in classes),
        thresholds=chosen.as_texts(),
        inputs=(*inputs, *told, *(entry for one in seen for entry in one.inputs)),
        proposals=combine(suspects, agreeing=chosen.agreeing, farther=farther_pools(sets)),
        categories=tuple(row for one in seen for row in one.categories),
        sets=sets,
        reference=asked.references.as_texts() if asked.references else {},
        left_out=_unmapped(classes, known) | {key: n for one in seen for key, n in one.left_out.items()},
    )


def _look_into(
    pool: OodPool,
    classes: Sequence[IdClass],
    id_synsets: Mapping[str, str],
    lenses: Lenses,
    thresholds: Thresholds,
    wordnet: Wordnet | None,
) -> _Seen:
    source = pool.source
    names = source.categories.names
    synsets = synsets_of(names, dataset=family(source.dataset), given=pool.synsets, wordnet=wordnet)
    relations = category_relations(
        names, classes, synsets=synsets, id_synsets=id_synsets, tree=pool.tree, wordnet=wordnet
    )
    near = nearest_classes(synsets, id_synsets, wordnet)
    judged = judge_categories(names, relations, near, near_wup=thresholds.near_wup, lists=pool.lists)
    labels = label_evidence(source, judged, near_wup=thresholds.near_wup)
    evidence = dict(zip(source.image_ids.tolist(), labels, strict=True))
    embeddings, left_out = _of_pool(pool, evidence)
    look = look_at(embeddings, lenses.references.embeddings) if embeddings and lenses.references else None
    inputs: list[Input] = []
    for found in _by_similarity(embeddings, look, classes, lenses, thresholds):
        for image, one in found.items():
            evidence[image] = (*evidence[image], one)
    if pool.detections is not None:
        detector = detector_evidence(
            pool.detections,
            source,
            pool.detector_classes,
            threshold=thresholds.detector_score,
            pool=pool.name,
        )
        for image, pieces in detector.by_image.items():
            evidence[image] = (*evidence[image], *pieces)
        left_out |= {f"{pool.name}: {reason}": n for reason, n in detector.left_out.items()}
        inputs.append(detector.file)
    table = category_table(pool.name, judged, source, synsets)
    return _Seen(pool, judged, table, evidence, look, left_out, tuple(inputs))


def _by_similarity(
    embeddings: Embeddings | None,
    look: Look | None,
    classes: Sequence[IdClass],
    lenses: Lenses,
    thresholds: Thresholds,
) -> Iterable[dict[str, Evidence]]:
    if embeddings is not None and lenses.prompts is not None:
        yield text_evidence(embeddings, lenses.prompts, classes, margin=thresholds.text_margin)
    if look is not None and lenses.references is not None and lenses.references.sigma is not None:
        yield look_evidence(
            look,
            median=lenses.references.median or 0.0,
            sigma=lenses.references.sigma,
            sigmas=thresholds.look_sigma,
        )


def _of_pool(pool: OodPool, images: Collection[str]) -> tuple[Embeddings | None, dict[str, int]]:
    """Return the embeddings of the pool's images, and how many images or embeddings have no counterpart."""
    if pool.embeddings is None:
        return None, {}
    given = pool.embeddings
    rows = [row for row, one in enumerate(given.ids) if image_of(one) in images]
    if not rows:
        raise ProposalError(
            "The embeddings hold none of the source's images",
            where=f"embeddings of {pool.name}",
            expected=f"ids such as {next(iter(images), '')}",
            found=", ".join(given.ids[:3])[:200] or "nothing",
        )
    embedded = {image_of(given.ids[row]) for row in rows}
    counts = {
        f"{pool.name}: images without an embedding": len(images) - len(embedded),
        f"{pool.name}: embeddings of other images": len(given.ids) - len(rows),
    }
    left_out = {key: n for key, n in counts.items() if n}
    kept = given if len(rows) == len(given) else given.take(list(rows))
    return kept, left_out


def _statistics(seen: _Seen, thresholds: Thresholds) -> list[SetStatistics]:
    # By annotations alone: a group from which similar images were taken out is dissimilar by construction.
    verdicts: dict[str, Verdict] = {
        image: finding(
            [one for one in evidence if one.kind not in SEEN_BY_MACHINE], agreeing=thresholds.agreeing
        ).verdict
        for image, evidence in seen.evidence.items()
    }
    groups: tuple[tuple[Group, list[str]], ...] = (
        ("near", [image for image, verdict in verdicts.items() if verdict == "near"]),
        ("far", [image for image, verdict in verdicts.items() if verdict == "far"]),
        ("all", [image for image, verdict in verdicts.items() if verdict != "remove"]),
    )
    scores = {one.category: one.nearest.score for one in seen.judged if one.nearest}
    return [
        set_statistics(
            seen.pool.name, group, images, seen.look, kinships_in(_shown(seen.pool.source, images), scores)
        )
        for group, images in groups
        if images
    ]


def _shown(source: Source, images: Collection[str]) -> list[str]:
    """Return the categories that some images are annotated with."""
    held = set(images)
    chosen = np.array([one in held for one in source.image_ids.tolist()], np.bool_)
    image, category = source.class_pairs()
    return [source.categories.names[place] for place in np.unique(category[chosen[image]]).tolist()]


def _id_synsets(
    classes: Sequence[IdClass], given: Mapping[str, str], wordnet: Wordnet | None
) -> dict[str, str]:
    own = {one.name: one.synset for one in classes if one.synset}
    return synsets_of([one.name for one in classes], given={**own, **given}, wordnet=wordnet)


def _unmapped(classes: Sequence[IdClass], known: Mapping[str, str]) -> dict[str, int]:
    missing = sum(one.name not in known for one in classes)
    return {"ID classes without a synset": missing} if missing else {}


def _require_distinct(pools: Sequence[OodPool]) -> None:
    names = [pool.name for pool in pools]
    if not names or len(set(names)) < len(names):
        raise ProposalError(
            "Every OOD source needs a name of its own",
            expected="one or more names",
            found=", ".join(names) or "none",
        )
