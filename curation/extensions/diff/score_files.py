"""Two files of OOD scores compared: sign, rank correlation, shift and scale, ties, and images of one alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.core.errors import PredictionError, UsageError
from curation.evaluation.ood.id_scores import IdScores, read_id_scores
from curation.evaluation.problem import Floats
from curation.evaluation.result import Column, Table

if TYPE_CHECKING:
    import pandas as pd

_EXACT = 1e-9
"""Of the spread of the scores, what may remain beside a shift and a scale."""


@dataclass(frozen=True, repr=False)
class ScoresDiff:
    """What differs between two files of scores.

    Attributes
    ----------
    names : tuple of str
        Of the two files.
    rows : tuple of tuple
        Of each method that both have, or the only one of each: `_COLUMNS`.
    alone : tuple of (int, str)
        How many rows are of images that one file has more often, or alone, and the first of these.
    methods_alone : tuple of tuple of str
        Methods of each file that the other lacks.
    """

    names: tuple[str, str]
    rows: tuple[tuple[Any, ...], ...]
    alone: tuple[tuple[int, str], tuple[int, str]]
    methods_alone: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def changed(self) -> int:
        """How many methods differ or are of one file alone, and rows of one file alone."""
        other = sum(bool(row[1] != "equal") for row in self.rows) + sum(map(len, self.methods_alone))
        return other + sum(count for count, _ in self.alone)

    @property
    def table(self) -> Table:
        """A row a method."""
        return Table("scores", _COLUMNS, self.rows, f"{self.names[0]} and {self.names[1]}")

    def lines(self) -> list[str]:
        """Return what a terminal shows."""
        rows = [f"rows of {name} alone: {count}, first {first}"
                for name, (count, first) in zip(self.names, self.alone, strict=True) if count]  # fmt: skip
        methods = [f"columns of {name} alone: {', '.join(methods)}"
                   for name, methods in zip(self.names, self.methods_alone, strict=True) if methods]  # fmt: skip
        return [*self.table.lines(), *rows, *methods]

    def data(self) -> dict[str, Any]:
        """Return what JSON holds."""
        alone = [
            {"file": name, "rows": count, "first": first, "methods": list(methods)}
            for name, (count, first), methods in zip(self.names, self.alone, self.methods_alone, strict=True)
        ]
        return {"changed": self.changed, "alone": alone, "scores": self.table.records()}

    def frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame."""
        return self.table.frame()

    def __repr__(self) -> str:
        return f"<ScoresDiff: {', '.join(f'{row[0]} {row[1]}' for row in self.rows)}>"


_COLUMNS = (
    Column("method"), Column("second is"), Column("n", "count"),
    Column("rank_correlation", show=".6f", head="rank correlation"),
    Column("scale", show=".6g"), Column("shift", show=".6g"), Column("largest_rest", show=".3g", head="largest rest"),
    Column("ties_before", "count", "ties in the first"), Column("ties_after", "count", "in the second"),
)  # fmt: skip


def diff_scores(old: Path, new: Path) -> ScoresDiff:
    """Return how two files of OOD scores differ, rows paired by image (the k-th of an image with the k-th), or by row.

    Raises
    ------
    PredictionError
        A file cannot be read, or its detections have no such scores.
    UsageError
        Without image ids the files have unequal lengths; or no method is in both.
    """
    first, second = read_id_scores(old), read_id_scores(new)
    for path, file in ((old, first), (new, second)):
        if file.images and not len(next(iter(file.scores.values()))):
            what, hint = "The detections state no OOD scores", "compare results: curation evaluate coco … --out DIR"
            raise PredictionError(what, where=str(path), expected="scores, or logits, of each detection", hint=hint)
    mine, theirs = first.scores, second.scores
    names = {name: name for name in mine if name in theirs}
    if not names and len(mine) == len(theirs) == 1:
        names = dict(zip(mine, theirs, strict=True))
    if not names:
        found = f"{', '.join(mine)}; {', '.join(theirs)}"[:200]
        raise UsageError("The files of scores share no method", expected="a column of one name", found=found)
    before, after, alone = _pairs(first, second)
    rows = [
        (name if name == other else f"{name}, {other}", *_compared(mine[name][before], theirs[other][after]))
        for name, other in names.items()
    ]
    unpaired = (tuple(name for name in mine if name not in names),
                tuple(name for name in theirs if name not in names.values()))  # fmt: skip
    called = (first.name, second.name) if first.name != second.name else (str(old), str(new))
    return ScoresDiff(called, tuple(rows), alone, unpaired)


def _pairs(first: IdScores, second: IdScores) -> tuple[Any, Any, Any]:
    """Return the rows that belong together; where an image has several, all must be there in both."""
    import pandas as pd

    lengths = [len(next(iter(file.scores.values()))) for file in (first, second)]
    if first.images is None or second.images is None:
        if lengths[0] != lengths[1]:
            raise UsageError(
                "Rows of the scores cannot be paired",
                expected="equal lengths, or image names (column or array 'image_id') in both",
                found=f"{lengths[0]} and {lengths[1]} rows",
            )
        return np.arange(lengths[0]), np.arange(lengths[0]), ((0, ""), (0, ""))
    frames = [pd.DataFrame({"image": names, "row": range(len(names))}) for names in (first.images, second.images)]
    counts = [frame["image"].value_counts() for frame in frames]
    equal = [frame["image"].map(counts[0]) == frame["image"].map(counts[1]) for frame in frames]
    paired = [frame[same] for frame, same in zip(frames, equal, strict=True)]
    paired = [frame.assign(nth=frame.groupby("image").cumcount()) for frame in paired]
    both = paired[0].merge(paired[1], on=["image", "nth"], suffixes=("_before", "_after"))
    rest = [sorted(frame["image"][~same]) for frame, same in zip(frames, equal, strict=True)]
    return both["row_before"], both["row_after"], tuple((len(images), images[0] if images else "") for images in rest)


def _compared(before: Floats, after: Floats) -> tuple[Any, ...]:
    """Return what follows the method in `_COLUMNS`; None where nothing varies."""
    import pandas as pd

    n = len(before)
    ties = [n - len(np.unique(values)) for values in (before, after)]
    ranks: list[Floats] = [np.asarray(pd.Series(values).rank(), np.float64) for values in (before, after)]
    if n < 2 or not np.ptp(before) or not np.ptp(after):
        alike = "equal" if np.array_equal(before, after) else "constant, or other"
        return alike if n else "of other images", n, None, None, None, None, *ties
    rho = float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    middle = before.mean()
    scale = float((before - middle) @ (after - after.mean()) / ((before - middle) @ (before - middle)))
    shift = float(after.mean() - scale * middle)
    rest = float(np.abs(after - scale * before - shift).max())
    same_order = np.array_equal(ranks[0], ranks[1])
    said = [
        (np.array_equal(before, after), "equal"),
        (np.array_equal(before, -after), "the negative"),
        (rest <= _EXACT * float(np.ptp(after)), "scaled and shifted" if scale > 0 else "negated, scaled and shifted"),
        (same_order, "of the same order"),
        (np.array_equal(ranks[0], n + 1 - ranks[1]), "of the reverse order"),
        (rho < 0, "of the other sign, by rank correlation"),
        (True, "other"),
    ]
    return next(word for holds, word in said if holds), n, rho, scale, shift, rest, *ties
