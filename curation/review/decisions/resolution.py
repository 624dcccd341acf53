"""Resolution: the decisions to replay, from all decisions of a log by a named rule."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from curation.core.canonical import canonical_json, sha256_of_bytes, sha256_of_value
from curation.core.errors import DecisionConflictError, UsageError
from curation.core.tables import grouped
from curation.core.wording import counted, examples
from curation.manifest.header import DIGEST
from curation.review.decisions.decision import Action, Decision, Stage, moment_of, row_of, sort_key

Rule = Literal["error", "majority", "senior"]
RULES: tuple[Rule, ...] = get_args(Rule)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Differing current decisions on one image at one stage, without abstentions.

    Attributes
    ----------
    votes : tuple of (str, tuple of str)
        Sorted actions, each with its sorted reviewers; ``""`` for decisions without a reviewer.
    outcome : str or None
        The action that an adjudicator or the rule chose; None without a choice (a tie, no senior, or ``error`` with
        conflicts allowed).
    reasons : dict of str to str
        Reason of each reviewer who gave one.
    """

    dataset: str
    image_id: str
    stage: Stage
    votes: tuple[tuple[Action, tuple[str, ...]], ...]
    outcome: Action | None
    reasons: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return this as one line: ``coco:000000000009 (coco, manual): remove by anna; to_near by ben``."""
        votes = "; ".join(f"{action} by {', '.join(map(self.voter, names))}" for action, names in self.votes)
        return f"{self.image_id} ({self.dataset or 'any part'}, {self.stage}): {votes}"

    def voter(self, name: str) -> str:
        """Return a reviewer with the reason: ``ben (mirror image)``."""
        return f"{name or 'unnamed'}{f' ({self.reasons[name]})' if name in self.reasons else ''}"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The decisions to replay.

    Attributes
    ----------
    decisions : tuple of Decision
        Sorted current decisions with the chosen action, one row per reviewer. Resolving them again changes nothing.
    conflicts : tuple of Conflict
        Sorted by pool, image and stage.
    rule : str
    undecided : tuple of Conflict
        Conflicts that the rule leaves open; `decisions` contains no decision on these images.
    both : tuple of Conflict
        Allowed conflicts; `decisions` contains all their decisions.
    superseded : int
        Rows that a later decision of the same reviewer replaces.
    repeated : int
        Rows that are equal to another in every field.
    abstained : int
        Current decisions ``unsure``.
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
            "conflicts": [asdict(conflict) | {"votes": dict(conflict.votes)} for conflict in self.conflicts],
        }


def resolve(
    decisions: Iterable[Decision],
    rule: Rule = "error",
    *,
    seniors: Sequence[str] = (),
    allow_conflicts: bool = False,
    adjudicators: Collection[str] = (),
) -> Resolution:
    """Return the decisions to replay: the last of each reviewer; if they differ, those that the rule chooses.

    Parameters
    ----------
    rule : {"error", "majority", "senior"}
        ``error``: differing decisions are an error. ``majority``: the action of most reviewers; a tie is undecided.
        ``senior``: the action of the first of `seniors` with a decision; undecided if none has one, or that one
        abstains.
    seniors : sequence of str
        Reviewers, the most senior first.
    allow_conflicts : bool
        Under ``error``, replay all differing decisions, in the order of the stages' steps, as the authors' code does.
    adjudicators : collection of str
        Reviewers whose decisions settle conflicts under every rule.

    Raises
    ------
    DecisionConflictError
        Decisions differ under ``error``.
    UsageError
        The rule is unknown, or does not fit `seniors`.
    """
    if rule not in RULES:
        raise UsageError("Unknown rule for conflicts", expected=", ".join(RULES), found=repr(rule[:40]))
    if (rule == "senior") != bool(seniors):
        raise UsageError(
            "The rule 'senior' needs --senior NAME, and no other rule takes it",
            where="--rule",
            hint="--rule senior --senior NAME",
        )
    rows = list(decisions)
    distinct = list(dict.fromkeys(rows))
    standing = standing_verdicts(distinct)
    outcomes = settlements(standing, adjudicators)
    chosen: list[Decision] = []
    conflicts: list[Conflict] = []
    for key, verdicts in sorted(grouped(standing, lambda row: (row.dataset, row.image_id, row.stage)).items()):
        by_action = grouped((row for row in verdicts if row.action != "unsure"), lambda row: row.action)
        votes = {action: tuple(sorted({row.reviewer for row in by_action[action]})) for action in sorted(by_action)}
        actions: set[Action | None] = {*votes} or {"unsure"}
        if len(votes) > 1:
            outcome = outcomes.get(key) or _outcome(verdicts, votes, rule, seniors)
            reasons = {row.reviewer: row.reason for row in verdicts if row.reason}
            conflicts.append(Conflict(*key, tuple(votes.items()), outcome, reasons))
            actions = actions if outcome is None and rule == "error" else {outcome}
        chosen += [row for row in verdicts if row.action in actions]
    is_open = tuple(conflict for conflict in conflicts if conflict.outcome is None)
    if rule == "error" and not allow_conflicts:
        refuse_conflicts(is_open)
    return Resolution(
        decisions=tuple(sorted(chosen, key=sort_key)),
        conflicts=tuple(conflicts),
        rule=rule,
        undecided=is_open if rule != "error" else (),
        both=is_open if rule == "error" else (),
        superseded=len(distinct) - len(standing),
        repeated=len(rows) - len(distinct),
        abstained=sum(row.action == "unsure" for row in standing),
    )


def settlements(standing: Iterable[Decision], adjudicators: Collection[str]) -> dict[tuple[str, str, Stage], Action]:
    """Return the action of adjudicators by pool, image and stage, without ``unsure``."""
    rows = (row for row in standing if row.reviewer in adjudicators and row.action != "unsure")
    return {(row.dataset, row.image_id, row.stage): row.action for row in rows}


def settled(standing: Iterable[Decision], adjudicators: Collection[str]) -> list[Decision]:
    """Return the current decisions without those that an adjudicator overruled."""
    rows = list(standing)
    outcomes = settlements(rows, adjudicators)
    return [row for row in rows if row.action == outcomes.get((row.dataset, row.image_id, row.stage), row.action)]


def _outcome(
    verdicts: Sequence[Decision], votes: Mapping[Action, tuple[str, ...]], rule: Rule, seniors: Sequence[str]
) -> Action | None:
    if rule == "majority":
        most = max(map(len, votes.values()))
        winners = [action for action, names in votes.items() if len(names) == most]
        return winners[0] if len(winners) == 1 else None
    action_of = {row.reviewer: row.action for row in verdicts}
    action = next((action_of[name] for name in seniors if name in action_of), None)
    return None if action == "unsure" else action


def refuse_conflicts(conflicts: Sequence[Conflict]) -> None:
    """Raise `DecisionConflictError` if there is any conflict; the message shows the first few."""
    if conflicts:
        raise DecisionConflictError(
            f"Decisions contradict each other on {counted(len(conflicts), 'image')}",
            where=examples((conflict.text() for conflict in conflicts), joint=" | "),
            expected="one action for an image at a stage",
            hint="--rule majority, --rule senior --senior NAME, or --on-error conflicts=keep to replay them all; "
            "curation review adjudicate --folder FOLDER --reviewer NAME has a third person settle them",
        )


def standing_verdicts(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the current decisions: the last of each reviewer on each image and stage, in the order of the rows.

    The last row has the latest date, or else the latest position; rows without a date come first. All rows without a
    reviewer are current: they may come from several people.
    """
    rows = list(dict.fromkeys(decisions))
    last: dict[Hashable, int] = {}
    for index, row in sorted(enumerate(rows), key=lambda item: moment_of(item[1]) or _EARLIEST):
        last[(row.dataset, row.image_id, row.stage, row.reviewer) if row.reviewer else index] = index
    return tuple(rows[index] for index in sorted(last.values()))


def decisions_digest(decisions: Iterable[Decision]) -> str:
    """Return ``sha256:…`` of the canonical form of decisions, sorted and each once: order and repeats do not count."""
    return sha256_of_value([row_of(row) for row in sorted(set(decisions), key=sort_key)])


def recorded_form(decisions: Iterable[Decision]) -> str:
    """Return decisions in the form of a manifest: sorted rows ``[dataset, stage, action, reason, [image, …]]``."""
    groups = grouped(decisions, lambda row: (row.dataset, row.stage, row.action, row.reason))
    rows = [[*key, sorted({row.image_id for row in several})] for key, several in sorted(groups.items())]
    return canonical_json(rows).decode("utf-8")


def recorded_digest(text: str) -> str | None:
    """Return the digest of decisions in the form of `recorded_form`; None for an empty text."""
    if re.fullmatch(DIGEST, text):
        return text
    return sha256_of_bytes(text.encode("utf-8")) if text else None
