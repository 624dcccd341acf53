"""The decisions of reviewers in a log, and the current ones after all undos.

The log is append-only. An undo is another row: it repeats the earlier decision, or ``unsure``, with a reason that
begins with ``undo``. To find the current decision of a reviewer on an image, read the rows from the top: a plain row is
pushed on a stack, an undo pops one, and the top of the stack is current.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Literal, get_args

import msgspec

from curation.core.errors import ReviewError
from curation.review.decisions.decision import ACTIONS, Decision, Stage, check_decision, moment_of
from curation.review.decisions.files import DecisionLog, read_decisions
from curation.review.decisions.resolution import settled

Verdict = Literal["keep", "remove", "near", "far", "same", "different", "unsure"]
VERDICTS: tuple[str, ...] = get_args(Verdict)

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)
CONFLICT = "conflict"
UNDO = "undo"

Key = tuple[str, str]
"""Pool (`Decision.dataset`) and image id of a decision."""
_Stack = list[tuple[int, Decision]]
"""The rows of a reviewer on an image that are not undone, each with the number of its call."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The current decisions on an image: the last of each reviewer, in the order of their first decision."""

    verdicts: tuple[Decision, ...]
    adjudicators: Collection[str] = ()

    @property
    def verdict(self) -> str | None:
        """The decision of an adjudicator or of all reviewers; ``conflict`` if they differ, None if there is none."""
        words = {word_of(verdict) for verdict in settled(self.verdicts, self.adjudicators)}
        return CONFLICT if len(words) > 1 else next(iter(words), None)

    def texts(self) -> list[str]:
        """Return one line a reviewer: ``anna: near (zebra beside horse)``."""
        return [
            f"{verdict.reviewer or 'unnamed'}: {word_of(verdict)}{f' ({verdict.reason})' if verdict.reason else ''}"
            for verdict in self.verdicts
        ]


class VerdictBook:
    """The current decisions of a log, updated when other programs append to the file.

    Parameters
    ----------
    path : Path
        The log, JSON Lines; created with the first decision.
    stage : {"manual", "candidate", "auto_override", "pair"}
        The stage of new decisions.
    manifest : str
        Digest of the manifest under review, ``""`` for none.
    adjudicators : collection of str
        Reviewers whose decisions settle conflicts.
    """

    def __init__(self, path: Path, *, stage: Stage, manifest: str = "", adjudicators: Collection[str] = ()) -> None:
        self.path = path
        self.adjudicators = adjudicators
        self.stage: Stage = stage
        self.manifest = manifest
        self.seen: tuple[int, ...] | None = None
        """State of the log file when it was last read; it differs if the file has changed."""
        self._rows: dict[Key, dict[str, _Stack]] = {}
        self._calls: dict[tuple[str, ...], int] = {}
        self._latest: dict[str, datetime] = {}
        self._singles: dict[str, list[tuple[datetime, list[Key]]]] = {}

    def refresh(self) -> None:
        """Read the log again if the file has changed. A missing file is an empty log."""
        state = self._state()
        if state == self.seen:
            return
        self._rows, self._calls, self._latest, self._singles = {}, {}, {}, {}
        if state is not None:
            for decision in read_decisions(self.path).decisions:
                self._lay(decision)
        self.seen = state

    def has_decided(self, key: Key, reviewer: str) -> bool:
        """Return whether this reviewer has a current decision on an image."""
        return bool(self._rows.get(key, {}).get(reviewer))

    def standing(self, key: Key) -> Standing:
        """Return the current decisions on an image."""
        verdicts = tuple(stack[-1][1] for stack in self._rows.get(key, {}).values() if stack)
        return Standing(verdicts, self.adjudicators)

    def all_standing(self) -> dict[Key, Standing]:
        """Return the current decisions on each image of the log, including images whose decisions are all undone."""
        return {key: self.standing(key) for key in self._rows}

    def latest(self, reviewer: str, count: int) -> list[Decision]:
        """Return a reviewer's last valid decisions, the latest first."""
        stacks = [stack for by_reviewer in self._rows.values() if (stack := by_reviewer.get(reviewer))]
        return [stack[-1][1] for stack in sorted(stacks, key=lambda stack: -stack[-1][0])[:count]]

    def seconds_each(self, reviewer: str) -> float | None:
        """Return the median time between a reviewer's decisions on one image each; None before there are three.

        A decision on many images at once does not show how long a single one takes, nor does the next decision.
        """
        calls = self._singles.get(reviewer, [])
        gaps = [
            (moment - before).total_seconds()
            for (before, earlier), (moment, keys) in pairwise(calls)
            if len(keys) == len(earlier) == 1
        ]
        return median(gaps) if len(gaps) > 1 else None

    def record(
        self, keys: Sequence[tuple[Key, str]], verdict: str, *, reason: str | None, reviewer: str | None
    ) -> list[Decision]:
        """Append one decision on some images to the log and return its rows; the log is synced when this returns.

        An image that already has this decision of this reviewer gets no further row: a key pressed again, because its
        answer was lost, is one decision and one undo.

        Parameters
        ----------
        keys : sequence of ((str, str), str)
            Pool and image of each decision, and the batch of the image.

        Raises
        ------
        ReviewError
            The stage has no such decision; reviewer or reason is missing, too long or not printable.
        """
        action = ACTIONS[self.stage].get(verdict)
        if action is None:
            message = f"{verdict[:40]!r} is not a decision of stage {self.stage!r}"
            raise ReviewError(message, expected=", ".join(ACTIONS[self.stage]))
        reviewer, reason = checked_reviewer(reviewer), checked_reason(reason)
        self.refresh()
        date, rows = self._date(reviewer), []
        for key, batch in keys:
            stack = self._rows.get(key, {}).get(reviewer)
            if stack and (stack[-1][1].action, stack[-1][1].reason) == (action, reason):
                continue
            rows.append(
                Decision(
                    image_id=key[1],
                    dataset=key[0],
                    stage=self.stage,
                    action=action,
                    reason=reason,
                    reviewer=reviewer,
                    date=date,
                    manifest=self.manifest,
                    batch=batch,
                )
            )
        self._append(rows)
        return rows

    def undo(self, reviewer: str | None) -> list[Decision]:
        """Take back a reviewer's last call of `record` that is not undone yet, and return the appended rows."""
        reviewer = checked_reviewer(reviewer)
        self.refresh()
        stacks = [stack for by_reviewer in self._rows.values() if (stack := by_reviewer.get(reviewer))]
        last = max((stack[-1][0] for stack in stacks), default=None)
        date, undone = self._date(reviewer), []
        for *below, (call, top) in stacks:
            if call == last:
                action, reason = (below[-1][1].action, below[-1][1].reason) if below else ("unsure", "")
                undo_reason = f"{UNDO}: {reason}" if reason else UNDO
                undone.append(msgspec.structs.replace(top, action=action, reason=undo_reason, date=date))
        self._append(undone)
        return undone

    def _date(self, reviewer: str) -> str:
        """Return the present moment; if the clock was set back, the first moment after the reviewer's last decision.

        Every reader takes the decision with the latest date as the last one.
        """
        moment, last = datetime.fromisoformat(now()), self._latest.get(reviewer)
        if last is not None and moment <= last < _END_OF_TIME:
            moment = last + timedelta(microseconds=1)
        return _as_text(moment)

    def _append(self, rows: Sequence[Decision]) -> None:
        if not rows:
            return
        self.refresh()
        *_, size, _ = self.seen or (0, 0)
        written = DecisionLog(self.path).extend(rows)
        after = self._state()
        # Another program may have appended rows since the log was read.
        if after is None or after[-2] != size + written:
            self.refresh()
            return
        for row in rows:
            self._lay(row)
        self.seen = after

    def _lay(self, row: Decision) -> None:
        """Push a row on its reviewer's stack, or pop one; rows of a reviewer at the same moment are a single call."""
        if (moment := moment_of(row)) is not None:
            self._latest[row.reviewer] = max(self._latest.get(row.reviewer, moment), moment)
            calls = self._singles.setdefault(row.reviewer, [])
            if calls and calls[-1][0] == moment:
                calls[-1][1].append((row.dataset, row.image_id))
            else:
                calls.append((moment, [(row.dataset, row.image_id)]))
        if row.stage != self.stage:
            return
        call_key = (row.reviewer, row.date) if row.date else (row.reviewer, "", row.dataset, row.image_id)
        call = self._calls.setdefault(call_key, len(self._calls))
        key = (row.dataset, row.image_id)
        stack = self._rows.setdefault(key, {}).setdefault(row.reviewer, [])
        if is_undo(row):
            del stack[-1:]
        else:
            stack.append((call, row))

    def _state(self) -> tuple[int, ...] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def differ(verdicts: Iterable[Decision], adjudicators: Collection[str] = ()) -> bool:
    """Return whether reviewers other than adjudicators differ on an image; ``unsure`` differs from other decisions."""
    return len({row.action for row in verdicts if row.reviewer not in adjudicators}) > 1


def is_undo(row: Decision) -> bool:
    """Return whether a row takes back the one before it instead of adding one."""
    return row.reason == UNDO or row.reason.startswith(f"{UNDO}: ")


def word_of(decision: Decision) -> str:
    """Return the reviewer's word for a decision's action: ``near`` for ``to_near``, ``add_near``, ``keep_near``."""
    words = {action: word for word, action in ACTIONS[decision.stage].items()}
    return words.get(decision.action, decision.action)


def standing_rows(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the current decisions after all undos: each reviewer's last of each image and stage, sorted."""
    stacks: dict[tuple[str, ...], list[Decision]] = {}
    for row in decisions:
        stack = stacks.setdefault((row.dataset, row.image_id, row.stage, row.reviewer), [])
        if is_undo(row):
            del stack[-1:]
        else:
            stack.append(row)
    return [stacks[key][-1] for key in sorted(stacks) if stacks[key]]


def checked_reviewer(text: object) -> str:
    """Return a reviewer's name without outer blanks.

    Raises
    ------
    ReviewError
        It is empty, or not a text.
    DecisionError
        It is long, not printable, or names several people.
    """
    name = _checked_line(text, "reviewer")
    if not name:
        raise ReviewError(
            "A decision needs a reviewer",
            where="the server of this review",
            hint="stop it and restart it with `curation review start --reviewer NAME`",
        )
    return name


def checked_reason(text: object) -> str:
    """Return a reason without outer blanks.

    Raises
    ------
    ReviewError
        It is not a text, or begins with ``undo``.
    DecisionError
        It is long or not printable.
    """
    reason = _checked_line(text, "reason")
    if reason == UNDO or reason.startswith(f"{UNDO}:"):
        hint = "begin it with another word; the key z takes a decision back"
        raise ReviewError("A reason may not begin with 'undo'", found=reason[:80], hint=hint)
    return reason


def now() -> str:
    """Return the present moment as ISO 8601 text in UTC, with microseconds so that two calls differ."""
    return _as_text(datetime.now(UTC))


def _as_text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _checked_line(text: object, field: str) -> str:
    """Return a text without outer blanks; raise `DecisionError` if a decision may not contain it."""
    if not isinstance(text, str | None):
        raise ReviewError(f"The {field} is not a text", found=ascii(text)[:80])
    line = (text or "").strip()
    blank = Decision(image_id="coco:0", dataset="", stage="manual", action="unsure")
    check_decision(msgspec.structs.replace(blank, **{field: line}), where="verdict")
    return line
