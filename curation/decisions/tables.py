"""What decisions list: how many images by pool, stage and action, how many of them once, which ones again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from curation.decisions.decision import STAGES, Action, Decision, Stage


@dataclass(frozen=True, slots=True)
class ListCount:
    """The decisions of one pool, stage and action.

    Attributes
    ----------
    listed, unique : int
        Rows, and different images among them.
    repeated : tuple of str
        Images that stand in the list more than once from the same reviewer (or from none), sorted.
    reasons : dict of str to (int, int)
        Rows and different images by reason, in the order of the rows.
    """

    dataset: str
    stage: Stage
    action: Action
    listed: int
    unique: int
    repeated: tuple[str, ...]
    reasons: dict[str, tuple[int, int]]


def count_lists(decisions: Iterable[Decision]) -> tuple[ListCount, ...]:
    """Return the counts of every list that has rows, sorted by stage, action and pool."""
    rows: dict[tuple[Stage, Action, str], list[Decision]] = defaultdict(list)
    for one in decisions:
        rows[one.stage, one.action, one.dataset].append(one)
    order = sorted(rows, key=lambda key: (STAGES.index(key[0]), *key[1:]))
    return tuple(_count(*key, rows[key]) for key in order)


def _count(stage: Stage, action: Action, dataset: str, rows: list[Decision]) -> ListCount:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for one in rows:
        by_reason[one.reason].append(one.image_id)
    times = Counter((one.reviewer, one.image_id) for one in rows)
    return ListCount(
        dataset=dataset,
        stage=stage,
        action=action,
        listed=len(rows),
        unique=len({one.image_id for one in rows}),
        repeated=tuple(sorted({image for (_, image), n in times.items() if n > 1})),
        reasons={reason: (len(ids), len(set(ids))) for reason, ids in by_reason.items()},
    )
