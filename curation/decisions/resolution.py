"""Resolution: from all verdicts ever given to those that are replayed, by a rule that is named."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from curation.canonical import canonical_json, sha256_of_bytes, sha256_of_value
from curation.decisions.decision import Action, Decision, Stage, moment_of, row_of, sort_key
from curation.errors import DecisionConflictError, UsageError
from curation.manifest.soundness import DIGEST

Rule = Literal["error", "majority", "senior"]
RULES: tuple[Rule, ...] = get_args(Rule)
Key = tuple[str, str, Stage]
"""Pool, image and stage: what verdicts agree or differ on."""

_EARLIEST = datetime.min.replace(tzinfo=UTC)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """Standing verdicts on one image at one stage that differ, those that abstain aside.

    Attributes
    ----------
    votes : tuple of (str, tuple of str)
        Actions, sorted, each with its reviewers, sorted; ``""`` for verdicts that name none.
    outcome : str or None
        The action that the rule chose; None where it chose none (a tie, no senior, or ``error`` with conflicts
        allowed).
    """

    dataset: str
    image_id: str
    stage: Stage
    votes: tuple[tuple[Action, tuple[str, ...]], ...]
    outcome: Action | None

    def text(self) -> str:
        """Return this as one line: ``coco:000000000009 (coco, manual): remove by anna; to_near by ben``."""
        votes = "; ".join(
            f"{action} by {', '.join(name or 'unnamed' for name in names)}" for action, names in self.votes
        )
        return f"{self.image_id} ({self.dataset or 'any part'}, {self.stage}): {votes}"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The verdicts to replay.

    Attributes
    ----------
    decisions : tuple of Decision
        Sorted; each standing verdict for the chosen action, one row a reviewer. Resolving them again changes nothing.
    conflicts : tuple of Conflict
        Sorted by pool, image and stage.
    rule : str
    undecided : tuple of Conflict
        Conflicts that the rule leaves open: no verdict on these images is among `decisions`.
    both : tuple of Conflict
        Conflicts that were allowed: all their verdicts are among `decisions`.
    superseded : int
        Rows that a later verdict of the same reviewer replaces.
    repeated : int
        Rows that are equal to another in every field.
    abstained : int
        Standing verdicts ``unsure``.
    """

    decisions: tuple[Decision, ...]
    conflicts: tuple[Conflict, ...]
    rule: Rule
    undecided: tuple[Conflict, ...] = ()
    both: tuple[Conflict, ...] = ()
    superseded: int = 0
    repeated: int = 0
    abstained: int = 0

    @property
    def digest(self) -> str:
        """``sha256:…`` of the canonical form of `decisions`, every field included."""
        return decisions_digest(self.decisions)

    def data(self) -> dict[str, Any]:
        """Return it as plain data: digest, counts, conflicts."""
        return {
            "digest": self.digest,
            "decisions": len(self.decisions),
            "rule": self.rule,
            "superseded": self.superseded,
            "repeated": self.repeated,
            "abstained": self.abstained,
            "undecided": len(self.undecided),
            "conflicts": [
                {
                    "image_id": one.image_id,
                    "dataset": one.dataset,
                    "stage": one.stage,
                    "votes": {action: list(names) for action, names in one.votes},
                    "outcome": one.outcome,
                }
                for one in self.conflicts
            ],
        }


def resolve(
    decisions: Iterable[Decision],
    rule: Rule = "error",
    *,
    seniors: Sequence[str] = (),
    allow_conflicts: bool = False,
) -> Resolution:
    """Return the verdicts to replay: the last of each reviewer, and of differing ones what the rule chooses.

    Parameters
    ----------
    rule : {"error", "majority", "senior"}
        ``error``: differing verdicts are an error. ``majority``: the action of most reviewers, a tie is undecided.
        ``senior``: the action of the first in `seniors` who has a verdict; undecided where none of them has one, or
        where that one abstains.
    seniors : sequence of str
        Reviewers, the most senior first.
    allow_conflicts : bool
        Under ``error``, replay all differing verdicts, in the order of the stages' steps, as the authors' code does.

    Raises
    ------
    DecisionConflictError
        Verdicts differ, under ``error``.
    UsageError
        The rule is unknown, or needs seniors and there are none.
    """
    _check_rule(rule, seniors)
    rows = list(decisions)
    distinct = list(dict.fromkeys(rows))
    standing = standing_verdicts(distinct)
    chosen: list[Decision] = []
    conflicts: list[Conflict] = []
    for key, verdicts in _by_key(standing):
        votes = _votes(verdicts)
        actions: Collection[Action | None] = votes
        if len(votes) > 1:
            outcome = _outcome(verdicts, votes, rule, seniors)
            conflicts.append(Conflict(*key, tuple(votes.items()), outcome))
            actions = votes if rule == "error" else [outcome]
        chosen += [one for one in verdicts if one.action in (actions or ("unsure",))]
    if rule == "error" and not allow_conflicts:
        refuse_conflicts(conflicts)
    is_open = tuple(one for one in conflicts if one.outcome is None)
    return Resolution(
        decisions=tuple(sorted(chosen, key=sort_key)),
        conflicts=tuple(conflicts),
        rule=rule,
        undecided=is_open if rule != "error" else (),
        both=is_open if rule == "error" else (),
        superseded=len(distinct) - len(standing),
        repeated=len(rows) - len(distinct),
        abstained=sum(one.action == "unsure" for one in standing),
    )


def refuse_conflicts(conflicts: Sequence[Conflict]) -> None:
    """Raise `DecisionConflictError` if there is any conflict; the message shows the first few."""
    if not conflicts:
        return
    more = f"; and {len(conflicts) - _SHOWN} more" if len(conflicts) > _SHOWN else ""
    raise DecisionConflictError(
        f"Verdicts contradict each other on {len(conflicts)} images",
        where=" | ".join(one.text() for one in conflicts[:_SHOWN]) + more,
        expected="one action for an image at a stage",
        hint="--rule majority, --rule senior --senior NAME, or --on-error conflicts=keep to replay them all",
    )


def standing_verdicts(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the verdicts that stand: of each reviewer on each image and stage the last, in the order of the rows.

    Later is what has the later date; rows of one date, and those without, follow the order of the rows, and the latter
    go first. Rows that name no reviewer all stand: whether they are one person's is not known.
    """
    rows = list(dict.fromkeys(decisions))
    last: dict[tuple[str, ...], tuple[datetime, int]] = {}
    for place, one in enumerate(rows):
        if one.reviewer:
            key = (one.dataset, one.image_id, one.stage, one.reviewer)
            moment = (moment_of(one) or _EARLIEST, place)
            last[key] = max(last.get(key, moment), moment)
    stands = {place for _, place in last.values()}
    return tuple(one for place, one in enumerate(rows) if place in stands or not one.reviewer)


def decisions_digest(decisions: Iterable[Decision]) -> str:
    """Return ``sha256:…`` of the canonical form of decisions, sorted and each once: order and repeats do not count."""
    return sha256_of_value([row_of(one) for one in sorted(set(decisions), key=sort_key)])


def recorded_form(decisions: Iterable[Decision]) -> str:
    """Return decisions as a manifest holds them: rows ``[dataset, stage, action, reason, [image, …]]``, sorted."""
    images: dict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for one in decisions:
        images[one.dataset, one.stage, one.action, one.reason].add(one.image_id)
    return canonical_json([[*key, sorted(ids)] for key, ids in sorted(images.items())]).decode("utf-8")


def recorded_digest(text: str) -> str | None:
    """Return the digest of decisions in the form of `recorded_form`; None where there are none."""
    if re.fullmatch(DIGEST, text):
        return text
    return sha256_of_bytes(text.encode("utf-8")) if text else None


def _by_key(standing: Iterable[Decision]) -> list[tuple[Key, list[Decision]]]:
    found: dict[Key, list[Decision]] = defaultdict(list)
    for one in standing:
        found[one.dataset, one.image_id, one.stage].append(one)
    return sorted(found.items())


def _check_rule(rule: str, seniors: Sequence[str]) -> None:
    if rule not in RULES:
        raise UsageError("There is no such rule for conflicts", expected=", ".join(RULES), found=repr(rule[:40]))
    if rule == "senior" and not seniors:
        raise UsageError("The rule 'senior' needs to know who is", hint="--senior NAME, the most senior first")
    if rule != "senior" and seniors:
        raise UsageError(f"The rule {rule!r} knows no seniors", hint="--rule senior")


def _votes(verdicts: Sequence[Decision]) -> dict[Action, tuple[str, ...]]:
    """Return the reviewers of each action but ``unsure``, which abstains."""
    names: dict[Action, set[str]] = defaultdict(set)
    for one in verdicts:
        if one.action != "unsure":
            names[one.action].add(one.reviewer)
    return {action: tuple(sorted(names[action])) for action in sorted(names)}


def _outcome(
    verdicts: Sequence[Decision], votes: Mapping[Action, tuple[str, ...]], rule: Rule, seniors: Sequence[str]
) -> Action | None:
    if rule == "majority":
        most = max(len(names) for names in votes.values())
        winners = [action for action, names in votes.items() if len(names) == most]
        return winners[0] if len(winners) == 1 else None
    if rule == "senior":
        by_name = {one.reviewer: one.action for one in verdicts}
        action = next((by_name[name] for name in seniors if name in by_name), None)
        return None if action == "unsure" else action
    return None
