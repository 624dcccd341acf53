"""From ID classes and OOD sources to ranked proposals: every signal asked, every number recorded."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curation.core.errors import ProposalError
from curation.core.grouping import grouped
from curation.review.proposals.categories import (
    Judged,
    Lists,
    category_relations,
    category_table,
    judge_categories,
    label_evidence,
    nearest_classes,
)
from curation.review.proposals.evidence import detector_evidence, look_evidence, text_evidence
from curation.review.proposals.id_classes import IdClass, synsets_of
from curation.review.proposals.proposal import (
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
    SetProposal,
    Thresholds,
    Verdict,
    decimal_text,
)
from curation.signals.similarity.set_similarity import Reference, SetSimilarity, reference_statistics, set_similarity
from curation.sources.datasets import family

if TYPE_CHECKING:
    from curation.signals.similarity.embeddings import Embeddings
    from curation.sources.source import Source


@dataclass(frozen=True, slots=True)
class Suspect:
    """One image with its evidence."""

    pool: str
    image_id: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """The conclusion from the evidence on one image.

    Attributes
    ----------
    verdict : str
    reason : str
    urgency : int
        Position in the order of review: overlap by label, suspicions that agree, other suspicions, nothing known, near,
        far.
    """

    verdict: Verdict
    reason: str
    urgency: int


def finding(evidence: Sequence[Evidence], *, agreeing: int) -> Finding:
    """Return the conclusion from the evidence on one image.

    1. An annotation that is an ID class by name, alias, synset or kind: *remove*.
    2. `agreeing` kinds of suspicion or more that may mean one ID class: *remove*. A piece that names none supports any.
    3. Fewer: *undecided*, whatever the categories say.
    4. Else a near category: *near*. Else an unjudged category, or no annotation: *undecided*. Else *far*.
    """
    strongest = ordered(evidence)
    if overlap := [piece for piece in strongest if piece.kind in OVERLAPS]:
        return Finding("remove", f"remove: {overlap[0].id_class}", 0)
    if suspicions := [piece for piece in strongest if piece.kind in SUSPICIONS]:
        # The ID class that most kinds may mean; among equals that of the strongest evidence.
        names = list(dict.fromkeys(piece.id_class for piece in suspicions if piece.id_class)) or [""]
        support = {name: len({piece.kind for piece in suspicions if piece.id_class in ("", name)}) for name in names}
        name = max(names, key=lambda name: support[name])
        if support[name] >= agreeing:
            return Finding("remove", f"remove: suspected {name or 'ID class'}", 1)
        return Finding("undecided", f"suspected: {name or 'looks like ID'}", 2)
    if near := [piece for piece in strongest if piece.kind in ("near_listed", "near_kinship")]:
        return Finding("near", f"near: {near[0].id_class or 'listed'}", 4)
    if not strongest or any(piece.kind == "unjudged" for piece in strongest):
        return Finding("undecided", "undecided: nothing says how near", 3)
    return Finding("far", "far", 5)


def combine(suspects: Sequence[Suspect], *, agreeing: int, farther: Collection[str] = ()) -> tuple[Proposal, ...]:
    """Return a proposal for each image, ranked by urgency, number of kinds of evidence, strongest kind, score, and id.

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
        An image is in two sources.
    """
    pool_of: dict[str, str] = {}
    rows = []
    for suspect in suspects:
        if suspect.image_id in pool_of:
            raise ProposalError(
                "An image is in two OOD sources",
                where=suspect.image_id,
                expected="sources that share no image, or one run for each",
                found=f"{pool_of[suspect.image_id]} and {suspect.pool}",
            )
        pool_of[suspect.image_id] = suspect.pool
        evidence = ordered(suspect.evidence)
        conclusion = finding(evidence, agreeing=agreeing)
        against = [piece for piece in evidence if piece.kind in OVERLAPS or piece.kind in SUSPICIONS]
        first = next(iter(against or evidence), None)
        strength, score = (STRENGTH[first.kind], _number(first.score)) if first else (len(STRENGTH), Decimal(0))
        kinds = len({piece.kind for piece in against})
        rows.append(((conclusion.urgency, -kinds, strength, -score, suspect.image_id), suspect, evidence, conclusion))
    proposals = []
    for rank, (_, case, evidence, conclusion) in enumerate(sorted(rows, key=lambda row: row[0]), 1):
        verdict, reason = conclusion.verdict, conclusion.reason
        if verdict == "far" and case.pool in farther:
            verdict, reason = "farther", "farther"
        proposals.append(
            Proposal(
                image_id=case.image_id, proposal=verdict, reason=reason, evidence=evidence, rank=rank, pool=case.pool
            )
        )
    return tuple(proposals)


def ordered(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence by kind, the strongest first; within a kind by falling score, then by detail."""
    return tuple(sorted(evidence, key=lambda piece: (STRENGTH[piece.kind], -_number(piece.score), piece.detail)))


def _number(score: str) -> Decimal:
    return Decimal(score) if score else Decimal(0)


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
    embeddings: Embeddings | None = None
    detections: Path | None = None
    detector_classes: Mapping[int, str] = field(default_factory=dict)


class _Reference(NamedTuple):
    """The embedded ID images, and how similar they are among themselves."""

    embeddings: Embeddings
    found: Reference

    @property
    def encoder(self) -> str:
        return self.embeddings.encoder.digest

    def as_texts(self) -> dict[str, str]:
        """Return the figures as texts, for the header of a proposals file."""
        texts = {"images": str(self.found.n), "encoder": self.encoder}
        if self.found.median is not None and self.found.sigma is not None:
            texts |= {"median": decimal_text(self.found.median), "sigma": decimal_text(self.found.sigma)}
        return texts


@dataclass(frozen=True)
class _Seen:
    """What was found in one pool."""

    pool: OodPool
    judged: tuple[Judged, ...]
    categories: tuple[CategoryJudgement, ...]
    evidence: dict[str, tuple[Evidence, ...]]
    look: SetSimilarity | None
    left_out: dict[str, int]
    inputs: tuple[Input, ...]


def propose(
    classes: Sequence[IdClass],
    pools: Sequence[OodPool],
    *,
    references: Embeddings | None = None,
    prompts: Embeddings | None = None,
    thresholds: Thresholds | None = None,
    id_synsets: Mapping[str, str] | None = None,
    inputs: Iterable[Input] = (),
) -> ProposalSet:
    """Return ranked proposals for every image of the pools: proposals, not decisions (spec 3.3).

    Parameters
    ----------
    classes : sequence of IdClass
    pools : sequence of OodPool
        Of different names, sharing no image.
    references : Embeddings, optional
        Of ID images.
    prompts : Embeddings, optional
        Of texts of ID and other classes.
    thresholds : Thresholds, optional
    id_synsets : mapping of str to str, optional
        The user's own synsets of ID classes, before those of the maps.
    inputs : iterable of Input
        Files that the caller read.

    Raises
    ------
    ProposalError
        Two pools share a name or an image; a list or file does not fit.
    SimilarityError
        Embeddings of different encoders meet.
    """
    from tqdm import tqdm

    chosen = thresholds or Thresholds()
    names = [pool.name for pool in pools]
    if not names or len(set(names)) < len(names):
        listed_names = ", ".join(names) or "none"
        raise ProposalError("Every OOD source needs a unique name", expected="one or more names", found=listed_names)
    known = synsets_of([entry.name for entry in classes], given=id_synsets)
    reference = _Reference(references, reference_statistics(references)) if references else None
    seen = [
        _look_into(pool, classes, known, reference, prompts, chosen)
        for pool in tqdm(pools, desc="looking into OOD sources", disable=None, leave=False)
    ]
    sets = propose_sets(
        [row for pool in seen for row in _statistics(pool, chosen)], chosen, reference.encoder if reference else ""
    )
    suspects = [Suspect(pool.pool.name, image, evidence) for pool in seen for image, evidence in pool.evidence.items()]
    unmapped = len(classes) - len(known.keys() & {entry.name for entry in classes})
    left_out = {"ID classes without a synset": unmapped} | {key: n for pool in seen for key, n in pool.left_out.items()}
    return ProposalSet(
        id_classes=tuple(entry.name for entry in classes),
        thresholds=chosen.as_texts(),
        inputs=(*inputs, *(entry for pool in seen for entry in pool.inputs)),
        proposals=combine(suspects, agreeing=chosen.agreeing, farther=farther_pools(sets)),
        categories=tuple(row for pool in seen for row in pool.categories),
        sets=sets,
        reference=reference.as_texts() if reference else {},
        left_out={key: n for key, n in left_out.items() if n},
    )


def _look_into(
    pool: OodPool,
    classes: Sequence[IdClass],
    id_synsets: Mapping[str, str],
    reference: _Reference | None,
    prompts: Embeddings | None,
    thresholds: Thresholds,
) -> _Seen:
    source, names = pool.source, pool.source.categories.names
    synsets = synsets_of(names, dataset=family(source.dataset), given=pool.synsets)
    relations = category_relations(names, classes, synsets=synsets, id_synsets=id_synsets)
    near = nearest_classes(synsets, id_synsets)
    judged = judge_categories(names, relations, near, near_wup=thresholds.near_wup, lists=pool.lists)
    labels = label_evidence(source, judged, near_wup=thresholds.near_wup)
    evidence = dict(zip(source.image_ids.tolist(), labels, strict=True))
    embeddings, left_out = _of_pool(pool, evidence)
    inputs: list[Input] = []
    look = set_similarity(embeddings, reference.embeddings) if embeddings and reference else None
    by_signal: list[Mapping[str, Evidence]] = []
    if embeddings and prompts:
        by_signal.append(text_evidence(embeddings, prompts, classes, margin=thresholds.text_margin))
    if look and reference:
        median, sigma = reference.found.median, reference.found.sigma
        if median is not None and sigma is not None:
            by_signal.append(look_evidence(look, median=median, sigma=sigma, sigmas=thresholds.look_sigma))
    for image, piece in (pair for by_image in by_signal for pair in by_image.items()):
        evidence[image] = (*evidence[image], piece)
    if pool.detections is not None:
        detector = detector_evidence(
            pool.detections, source, pool.detector_classes, threshold=thresholds.detector_score, pool=pool.name
        )
        for image, pieces in detector.by_image.items():
            evidence[image] = (*evidence[image], *pieces)
        left_out |= {f"{pool.name}: {reason}": n for reason, n in detector.left_out.items()}
        inputs.append(detector.file)
    table = category_table(pool.name, judged, source, synsets)
    return _Seen(pool, judged, table, evidence, look, left_out, tuple(inputs))


def _of_pool(pool: OodPool, images: Collection[str]) -> tuple[Embeddings | None, dict[str, int]]:
    """Return the embeddings of the pool's images, and how many images or embeddings have no counterpart."""
    if (embeddings := pool.embeddings) is None:
        return None, {}
    rows = [row for row, id_ in enumerate(embeddings.ids) if id_ in images]
    if not rows:
        raise ProposalError(
            "The embeddings hold none of the source's images",
            where=f"embeddings of {pool.name}",
            expected=f"ids such as {next(iter(images), '')}",
            found=", ".join(embeddings.ids[:3])[:200] or "nothing",
        )
    left_out = {
        f"{pool.name}: images without an embedding": len(images) - len(rows),
        f"{pool.name}: embeddings of other images": len(embeddings.ids) - len(rows),
    }
    return embeddings if len(rows) == len(embeddings) else embeddings.take(rows), left_out


def _statistics(seen: _Seen, thresholds: Thresholds) -> list[SetStatistics]:
    # By annotations alone: a group from which similar images were taken out is dissimilar by construction.
    verdicts = {
        image: finding(
            [piece for piece in evidence if piece.kind not in SEEN_BY_MACHINE], agreeing=thresholds.agreeing
        ).verdict
        for image, evidence in seen.evidence.items()
    }
    scores = {row.category: row.nearest.score for row in seen.judged if row.nearest}
    source, groups = seen.pool.source, grouped(verdicts, lambda image: verdicts[image])
    groups_of: tuple[tuple[Group, list[str]], ...] = (
        ("near", groups.get("near", [])),
        ("far", groups.get("far", [])),
        ("all", [image for image, verdict in verdicts.items() if verdict != "remove"]),
    )
    image, category = source.class_pairs()
    statistics = []
    for group, images in groups_of:
        if images:
            held = set(images)
            chosen = np.array([id_ in held for id_ in source.image_ids.tolist()], np.bool_)
            shown_names = {source.categories.names[index] for index in np.unique(category[chosen[image]]).tolist()}
            kinships = [scores[name] for name in sorted(shown_names) if name in scores]
            statistics.append(set_statistics(seen.pool.name, group, images, seen.look, kinships))
    return statistics


_TOO_FEW = "too few embedded images"


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """What was measured on one set.

    Attributes
    ----------
    pool : str
    group : {"near", "far", "all"}
    images : int
        With an embedding.
    mean, error : float or None
        Mean of s_j, and its standard error (sample deviation over the square root of the number); None where there are
        no, or fewer than two, images.
    kinship : float or None
        Mean over the categories annotated in the set of the Wu-Palmer similarity to the nearest ID class.
    """

    pool: str
    group: Group
    images: int
    mean: float | None
    error: float | None
    kinship: float | None

    @property
    def name(self) -> str:
        """``POOL GROUP``."""
        return f"{self.pool} {self.group}"


def set_statistics(
    pool: str, group: Group, images: Collection[str], look: SetSimilarity | None, kinships: Iterable[float]
) -> SetStatistics:
    """Return the statistics of some images of a pool.

    Parameters
    ----------
    images : collection of str
        Ids of the set.
    look : SetSimilarity or None
        Of the pool to the ID images; None without embeddings.
    kinships : iterable of float
        For each category annotated in the set, in a fixed order.
    """
    held, kin = set(images), list(kinships)
    scores = zip(look.ids, look.similarity.tolist(), strict=True) if look is not None else ()
    near = np.array([score for id_, score in scores if id_ in held], np.float64)
    return SetStatistics(
        pool=pool,
        group=group,
        images=len(near),
        mean=float(near.mean()) if len(near) else None,
        error=float(near.std(ddof=1) / math.sqrt(len(near))) if len(near) > 1 else None,
        kinship=math.fsum(kin) / len(kin) if kin else None,
    )


def propose_sets(sets: Sequence[SetStatistics], thresholds: Thresholds, encoder: str = "") -> tuple[SetProposal, ...]:
    """Return a proposal for every set: near, far, farther or, wherever the evidence is thin, undecided.

    A *near* group is near if it is more similar to the ID images than its pool's far group, by more standard errors of
    the difference than `Thresholds.standard_errors`. Any other is *farther* if it is that much less similar than the
    lowest far group of the other pools, and WordNet agrees in order.

    The paper has an order (near, far, farther), not a cut: far of COCO lies nearer than near of Open Images. So a set
    is called farther only beside other sets; otherwise it stays undecided (spec 3.3).

    Parameters
    ----------
    encoder : str
        Digest of the encoder of all embeddings.
    """
    made = []
    for pool_set in sets:
        if pool_set.group == "near":
            far = next((two for two in sets if (two.pool, two.group) == (pool_set.pool, "far")), None)
            verdict, reason = _near(pool_set, far, thresholds)
        else:
            rivals = [two for two in sets if two.group == "far" and two.pool != pool_set.pool]
            verdict, reason = _against_sets(pool_set, rivals, thresholds)
        mean, error, kinship = (
            None if x is None else decimal_text(x) for x in (pool_set.mean, pool_set.error, pool_set.kinship)
        )
        made.append(
            SetProposal(
                name=pool_set.name,
                group=pool_set.group,
                proposal=verdict,
                reason=reason,
                images=pool_set.images,
                mean_similarity=mean,
                standard_error=error,
                mean_kinship=kinship,
                encoder="" if pool_set.mean is None else encoder,
            )
        )
    return tuple(made)


def farther_pools(sets: Sequence[SetProposal]) -> set[str]:
    """Return the pools whose far group is proposed farther: their far images are called farther too."""
    return {row.name.rpartition(" ")[0] for row in sets if row.group == "far" and row.proposal == "farther"}


def _near(near: SetStatistics, far: SetStatistics | None, thresholds: Thresholds) -> tuple[Verdict, str]:
    if far is None:
        return "undecided", "there is no far group to compare with"
    if (gap := _gap(near, far)) is None:
        return "undecided", _TOO_FEW
    reason = f"{gap:.1f} standard errors nearer than {far.name}"
    return ("near", reason) if gap > thresholds.standard_errors else ("undecided", f"only {reason}")


def _against_sets(near: SetStatistics, rivals: Sequence[SetStatistics], thresholds: Thresholds) -> tuple[Verdict, str]:
    known = [two for two in rivals if two.mean is not None and two.error is not None]
    if not known:
        return "undecided", "there is no other far set to compare with"
    lowest = min(known, key=lambda two: (two.mean or 0.0, two.name))
    if (gap := _gap(lowest, near)) is None:
        return "undecided", _TOO_FEW
    reason = f"{gap:.1f} standard errors below {lowest.name}"
    if gap <= thresholds.standard_errors:
        return "undecided", f"{reason}: not farther by similarity"
    if near.kinship is None or lowest.kinship is None:
        return "undecided", f"{reason}, but WordNet says nothing"
    if near.kinship >= lowest.kinship:
        return "undecided", f"{reason}, but WordNet has the other order"
    return "farther", f"{reason}, and WordNet agrees"


def _gap(higher: SetStatistics, lower: SetStatistics) -> float | None:
    """Return the difference of two means in standard errors of the difference; None where it is undefined."""
    if higher.mean is None or lower.mean is None or higher.error is None or lower.error is None:
        return None
    error, difference = math.hypot(higher.error, lower.error), higher.mean - lower.mean
    if error > 0:
        return difference / error
    return math.copysign(math.inf, difference) if difference else 0.0
