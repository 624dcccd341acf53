"""From ID classes and OOD sources to ranked proposals: every signal asked, every number recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from curation.errors import ProposalError
from curation.proposals.categories import (
    ClassTree,
    Judged,
    Lists,
    category_relations,
    category_table,
    judge_categories,
    label_evidence,
    nearest_classes,
)
from curation.proposals.clip_overlap import (
    Look,
    Prompts,
    Reference,
    image_of,
    look_at,
    look_evidence,
    text_evidence,
)
from curation.proposals.detector_overlap import detector_evidence
from curation.proposals.id_classes import IdClass, synsets_of
from curation.proposals.proposal import (
    OVERLAPS,
    SEEN_BY_MACHINE,
    STRENGTH,
    SUSPICIONS,
    CategoryJudgement,
    Evidence,
    Group,
    Input,
    Proposal,
    ProposalSet,
    Thresholds,
    Verdict,
)
from curation.proposals.set_distance import (
    SetStatistics,
    farther_pools,
    kinships_in,
    propose_sets,
    set_statistics,
)
from curation.sources.datasets import family

if TYPE_CHECKING:
    from curation.hierarchy import Wordnet
    from curation.similarity.embeddings import Embeddings
    from curation.sources.source import Source


@dataclass(frozen=True, slots=True)
class Suspect:
    """One image with its evidence, the strongest first."""

    pool: str
    image_id: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What evidence comes to.

    Attributes
    ----------
    verdict : str
    reason : str
    urgency : int
        Place in the order of review: overlap by label, suspicions that agree, other suspicions, nothing known, near,
        far.
    """

    verdict: Verdict
    reason: str
    urgency: int


def finding(evidence: Sequence[Evidence], *, agreeing: int) -> Finding:
    """Return what the evidence on one image comes to.

    1. An annotation that is an ID class by name, alias, synset or kind: *remove*.
    2. `agreeing` kinds of suspicion or more that may mean one ID class: *remove*. A piece that names none supports any.
    3. Fewer: *undecided*, whatever the categories say.
    4. Else a near category: *near*. Else a category that nobody judged, or no annotation: *undecided*. Else *far*.
    """
    strongest = ordered(evidence)
    overlap = [one for one in strongest if one.kind in OVERLAPS]
    if overlap:
        return Finding("remove", f"remove: {overlap[0].id_class}", 0)
    suspicions = [one for one in strongest if one.kind in SUSPICIONS]
    if suspicions:
        name, kinds = _best_supported(suspicions)
        if kinds >= agreeing:
            return Finding("remove", f"remove: suspected {name or 'ID class'}", 1)
        return Finding("undecided", f"suspected: {name or 'looks like ID'}", 2)
    kinds_seen = {one.kind for one in strongest}
    near = [one for one in strongest if one.kind in ("near_listed", "near_kinship")]
    if near:
        return Finding("near", f"near: {near[0].id_class or 'listed'}", 4)
    if "unjudged" in kinds_seen or not kinds_seen:
        return Finding("undecided", "undecided: nothing says how near", 3)
    return Finding("far", "far", 5)


def combine(suspects: Sequence[Suspect], *, agreeing: int, farther: Collection[str] = ()) -> tuple[Proposal, ...]:
    """Return one proposal an image, ranked by urgency, number of kinds of evidence, strongest kind, score, and id.

    Parameters
    ----------
    suspects : sequence of Suspect
        Each image once.
    agreeing : int
        Kinds of suspicion that propose removal.
    farther : collection of str
        Pools whose far images are called farther.

    Raises
    ------
    ProposalError
        An image stands twice.
    """
    _require_unique(suspects)
    rows = []
    for one in suspects:
        evidence = ordered(one.evidence)
        found = finding(evidence, agreeing=agreeing)
        rows.append((_rank_key(one, evidence, found), one, evidence, found))
    rows.sort(key=lambda row: row[0])
    return tuple(
        Proposal(
            image_id=one.image_id,
            proposal="farther" if found.verdict == "far" and one.pool in farther else found.verdict,
            reason="farther" if found.verdict == "far" and one.pool in farther else found.reason,
            evidence=evidence,
            rank=rank,
            pool=one.pool,
        )
        for rank, (_, one, evidence, found) in enumerate(rows, 1)
    )


def ordered(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence by kind, the strongest first; within a kind by falling score, then by detail."""
    return tuple(sorted(evidence, key=lambda one: (STRENGTH[one.kind], -_number(one.score), one.detail)))


def _best_supported(suspicions: Sequence[Evidence]) -> tuple[str, int]:
    """Return the ID class that most kinds may mean, the strongest evidence first among equals, and how many do."""
    names = list(dict.fromkeys(one.id_class for one in suspicions if one.id_class)) or [""]
    support = {name: len({one.kind for one in suspicions if one.id_class in ("", name)}) for name in names}
    best = max(names, key=lambda name: (support[name], -names.index(name)))
    return best, support[best]


def _rank_key(one: Suspect, evidence: Sequence[Evidence], found: Finding) -> tuple[int, int, int, Decimal, str]:
    against = [piece for piece in evidence if piece.kind in OVERLAPS or piece.kind in SUSPICIONS]
    telling = against or list(evidence)
    kinds = len({piece.kind for piece in against})
    first = telling[0] if telling else None
    strength = STRENGTH[first.kind] if first else len(STRENGTH)
    return found.urgency, -kinds, strength, -_number(first.score if first else ""), one.image_id


def _number(score: str) -> Decimal:
    return Decimal(score) if score else Decimal(0)


def _require_unique(suspects: Sequence[Suspect]) -> None:
    seen: dict[str, str] = {}
    for one in suspects:
        if one.image_id in seen:
            raise ProposalError(
                "An image stands in two OOD sources",
                where=one.image_id,
                expected="sources that share no image, or one run for each",
                found=f"{seen[one.image_id]} and {one.pool}",
            )
        seen[one.image_id] = one.pool


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
class Signals:
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
    signals: Signals | None = None,
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
    signals : Signals, optional
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
    asked = signals or Signals()
    _require_distinct(pools)
    known = _id_synsets(classes, id_synsets or {}, wordnet)
    told = [Input(use="wordnet", name=wordnet.name, sha256=wordnet.digest)] if wordnet else []
    seen = [
        _look_into(pool, classes, known, asked, chosen, wordnet)
        for pool in tqdm(pools, desc="looking into OOD sources", disable=None, leave=False)
    ]
    sets = propose_sets([one for pool in seen for one in _statistics(pool, chosen)], compare, chosen)
    suspects = [Suspect(one.pool.name, image, evidence) for one in seen for image, evidence in one.evidence.items()]
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
    signals: Signals,
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
    look = look_at(embeddings, signals.references.embeddings) if embeddings and signals.references else None
    inputs: list[Input] = []
    for found in _by_similarity(embeddings, look, classes, signals, thresholds):
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
    signals: Signals,
    thresholds: Thresholds,
) -> Iterable[dict[str, Evidence]]:
    if embeddings is not None and signals.prompts is not None:
        yield text_evidence(embeddings, signals.prompts, classes, margin=thresholds.text_margin)
    if look is not None and signals.references is not None and signals.references.sigma is not None:
        yield look_evidence(
            look,
            median=signals.references.median or 0.0,
            sigma=signals.references.sigma,
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
        set_statistics(seen.pool.name, group, images, seen.look, kinships_in(_shown(seen.pool.source, images), scores))
        for group, images in groups
        if images
    ]


def _shown(source: Source, images: Collection[str]) -> list[str]:
    """Return the categories that some images are annotated with."""
    held = set(images)
    chosen = np.array([one in held for one in source.image_ids.tolist()], np.bool_)
    image, category = source.class_pairs()
    return [source.categories.names[place] for place in np.unique(category[chosen[image]]).tolist()]


def _id_synsets(classes: Sequence[IdClass], given: Mapping[str, str], wordnet: Wordnet | None) -> dict[str, str]:
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
