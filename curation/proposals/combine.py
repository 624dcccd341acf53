"""Evidence into proposals: one ordered rule, the most suspect image first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from curation.errors import ProposalError
from curation.proposals.proposal import OVERLAPS, STRENGTH, SUSPICIONS, Evidence, Proposal, Verdict


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


def combine(
    suspects: Sequence[Suspect], *, agreeing: int, farther: Collection[str] = ()
) -> tuple[Proposal, ...]:
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


def _rank_key(
    one: Suspect, evidence: Sequence[Evidence], found: Finding
) -> tuple[int, int, int, Decimal, str]:
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
