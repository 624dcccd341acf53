"""`diff`: compare two results of an evaluation, or two manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from curation.core.arguments import checked
from curation.core.errors import EvaluationError, UsageError
from curation.core.reading import InputFile
from curation.evaluation.result import PLACES, Column, Result, Table
from curation.manifest.manifest import Manifest

if TYPE_CHECKING:
    import pandas as pd

    from curation.evaluation.measures import Number
    from curation.manifest.diff import ManifestDiff

_UNNAMED = (*PLACES, "class", "undefined", "reason")
_DIGEST = len("sha256:") + 12


class _Saved(msgspec.Struct):
    protocol: str
    measures: list[_Row]
    scored: list[dict[str, Any]] = []
    inputs: dict[str, Any] = {}
    manifest: dict[str, Any] | None = None


class _Number(msgspec.Struct):
    measure: str
    parameters: str
    value: float | int | None
    unit: str = ""


_Row: Any = msgspec.defstruct("_Row", [(column, str, "") for column in PLACES], bases=(_Number,))


@dataclass(frozen=True, repr=False)
class ResultDiff:
    """The differences between two results.

    Attributes
    ----------
    protocol : str
    rows : tuple
        Entry, key, value before and value after of each number; None for undefined or missing ones.
    classes : tuple
        Entry, class, key and both values of each number of a class.
    reasons : tuple of str
        Why the two results are not comparable.
    """

    protocol: str
    rows: tuple[tuple[str, str, Number | None, Number | None], ...]
    classes: tuple[tuple[str, str, str, Number | None, Number | None], ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """Number of changed numbers, without those of single classes."""
        return sum(row[2] != row[3] for row in self.rows)

    @property
    def tables(self) -> tuple[Table, Table]:
        """Every number, and every number of a class, before, after, and the difference."""
        title = f"{self.protocol}: {self.changed} of {len(self.rows)} numbers differ"
        return (
            _table("difference", ("scored", "measure"), self.rows, title),
            _table("classes", ("scored", "class", "measure"), self.classes, "Numbers of classes that differ"),
        )

    def lines(self) -> list[str]:
        """Return the lines for a terminal: first why the results are not comparable, then the differences."""
        first = ["These are not comparable because:", *(f"  {why}" for why in self.reasons), ""] if self.reasons else []
        tables = [table for number, table in enumerate(self.tables) if not number or table.cells()]
        return [*first, *(line for table in tables for line in table.lines())]

    def frame(self, name: str = "difference") -> pd.DataFrame:
        """Return a table as a DataFrame: ``difference`` or ``classes``."""
        return next(table for table in self.tables if table.name == name).frame()

    def data(self) -> dict[str, Any]:
        """Return the data for JSON."""
        numbers, classes = (table.records() for table in self.tables)
        facts = {"protocol": self.protocol, "changed": self.changed, "not_comparable": list(self.reasons)}
        return {**facts, "measures": numbers, "classes": classes}

    def __repr__(self) -> str:
        return f"<ResultDiff of {self.protocol}: {self.changed} of {len(self.rows)} numbers differ>"


def _table(name: str, heads: Sequence[str], rows: Sequence[Any], title: str) -> Table:
    cells = [
        (*key, before, after, None if before is None or after is None else after - before)
        for *key, before, after in rows
    ]
    columns = (*heads, *(Column(head, show=".6g") for head in ("before", "after", "difference")))
    return Table(name, columns, cells, title, printed=[row for row in cells if row[-3] != row[-2]])


@checked
def diff(old: Manifest | Result | Path | str, new: Manifest | Result | Path | str) -> ManifestDiff | ResultDiff:
    """Compare two manifests, or two results of the same evaluation.

    Parameters
    ----------
    old, new : Manifest, Result, Path or str
        a manifest, its folder or NAME@VERSION; a result, its folder or JSON file

    Raises
    ------
    ManifestError, EvaluationError, UsageError
        A file is missing, or the two differ in kind or come from different evaluations.

    Examples
    --------
    >>> import curation
    >>> curation.diff("elephant/val2017", "elephant/val2017").verdict
    'none'
    """
    from curation.manifest.diff import diff_manifests
    from curation.manifest.locate import load

    if are_results(old, new):
        return diff_results(old, new)  # type: ignore[arg-type]
    return diff_manifests(*(load(side) if isinstance(side, str | Path) else side for side in (old, new)))  # type: ignore[arg-type]


def are_results(old: object, new: object) -> bool:
    """Return whether two objects, files or folders are results, not manifests; one of each is an `EvaluationError`."""
    sides = {_is_result(old): old, _is_result(new): new}
    if len(sides) == 2:
        odd = sides[False]
        missing = isinstance(odd, str | Path) and not Path(odd).exists()
        raise EvaluationError(
            "No such result" if missing else "A manifest and a result cannot be compared",
            where=str(odd),
            expected="what `curation evaluate` writes with --out",
            found="nothing" if missing else "no result",
        )
    return True in sides


def _is_result(source: object) -> bool:
    if isinstance(source, Result):
        return True
    path = Path(str(source))
    return isinstance(source, str | Path) and (
        (path / "results.json").is_file() or (path.is_file() and path.name != "manifest.json")
    )


def diff_results(old: Result | Path | str, new: Result | Path | str) -> ResultDiff:
    """Return the differences between two results of an evaluation.

    Raises
    ------
    UsageError
        The results come from different evaluations.
    EvaluationError
        A file is not a result.
    """
    (old_data, before), (new_data, after) = _read(old), _read(new)
    if before.protocol != after.protocol:
        raise UsageError("The results come from two evaluations", found=f"{before.protocol} and {after.protocol}"[:160])
    # The name of the only method or variant of each result does not distinguish numbers.
    alone = [column for column in ("part", "method", "variant") if _alone(column, before, after)]
    columns = [column for column in PLACES if column not in alone]
    first, second = (dict(_numbers(saved, columns)) for saved in (before, after))
    units = [{row.measure: row.unit for row in saved.measures} for saved in (before, after)]
    if name := next((name for name, unit in units[0].items() if unit != units[1].get(name, unit)), ""):
        raise UsageError(
            "The results give a number in two units",
            where=f"{before.protocol}: {name}"[:160],
            found=f"{units[0][name]} and {units[1][name]}",
            hint="evaluate the older one again",
        )
    rows = tuple((*key, first.get(key), second.get(key)) for key in {**first, **second})
    old_classes, new_classes = (dict(_class_numbers(data)) for data in (old_data, new_data))
    classes: Any = tuple(
        (*key[:3], old_classes.get(key), new_classes.get(key)) for key in {**old_classes, **new_classes}
    )
    counts = (f"other n of class {name}: {scored} {n} and {other}" for scored, name, key, n, other in classes
              if key in ("n", "objects") and n != other)  # fmt: skip
    reasons = dict.fromkeys((*_reasons(before, after, columns), *counts))
    return ResultDiff(before.protocol, rows, classes, tuple(reasons))


def _alone(column: str, before: _Saved, after: _Saved) -> bool:
    names = [{getattr(row, column) for row in saved.measures} for saved in (before, after)]
    return len(names[0]) == len(names[1]) == 1 and (column != "variant" or names[0] != names[1])


def _numbers(saved: _Saved, columns: Sequence[str]) -> Iterator[tuple[tuple[str, str], Number | None]]:
    for row in saved.measures:
        scored = "/".join(filter(None, (getattr(row, column) for column in columns)))
        yield (scored, f"{row.measure}[{row.parameters}]" if row.parameters else row.measure), row.value


def _class_numbers(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Number | None]]:
    """Yield the numbers of each class in the JSON of a result: a key (scored, class, column, …) and the value."""
    for name, table in data.items():
        rows = table if isinstance(table, list) and name not in ("measures", "scored") else []
        for row in (entry for entry in rows if isinstance(entry, dict) and isinstance(entry.get("class"), str)):
            label = "/".join(
                str(row[column]) for column in PLACES if row.get(column) and column not in ("part", "method")
            )
            texts = [value for key, value in row.items() if isinstance(value, str) and key not in _UNNAMED]
            for key, value in row.items():
                if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
                    yield (label, row["class"], key, name, *texts), value


def _reasons(before: _Saved, after: _Saved, columns: Sequence[str]) -> Iterator[str]:
    """Yield the reasons why numbers of two results are not comparable."""
    variants = [sorted({row.variant for row in saved.measures}) for saved in (before, after)]
    if variants[0] != variants[1]:
        yield f"other variant: {', '.join(variants[0])} and {', '.join(variants[1])}"
    sides = (before, after)
    scored = [{"/".join(filter(None, map(entry.get, columns))): entry for entry in side.scored} for side in sides]
    for label in (name for name in scored[0] if name in scored[1]):
        both = [entries[label] for entries in scored]
        for subject, key in (("truth", "truth"), ("filter or settings", "settings")):
            yield from _unlike(f"other {subject}", label, *(entry.get(key) for entry in both))
        files = [entry.get("predictions", {}) for entry in both]
        # A file named after its method may have another name in the other result.
        shared = files[0].keys() & files[1].keys()
        left = (
            {f"{part if part in shared else ''} {why}".strip(): n
             for part, file in group.items() for why, n in (file.get("reported") or {}).items()}
            for group in files
        )  # fmt: skip
        yield from _unlike("other filter of predictions", label, *left)
    images = [{part: file.get("truth", {}).get("images") for part, file in side.inputs.items()} for side in sides]
    yield from _unlike("other number of images", "", *images)
    yield from _unlike("other manifest", "", *({"digest": (side.manifest or {}).get("digest")} for side in sides))


def _unlike(subject: str, where: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _unlike(subject, f"{where} {key}".strip(), before.get(key), after.get(key))
    elif before != after:
        yield f"{subject}: {where}: {_text(before)} and {_text(after)}"[:300]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    text = "none" if value is None else str(value)
    return text[:_DIGEST] if text.startswith("sha256:") else text


def _read(source: Result | Path | str) -> tuple[dict[str, Any], _Saved]:
    """Return the JSON content of a result, and what is compared of it."""
    path = Path("results.json" if isinstance(source, Result) else source)
    path = path / "results.json" if path.is_dir() else path
    try:
        data = (
            source.json_data()
            if isinstance(source, Result)
            else msgspec.json.decode(InputFile(path, kind="result").data, type=dict[str, Any])
        )
        return data, msgspec.convert(data, _Saved)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EvaluationError(
            "The file is not a result",
            where=str(path),
            expected="what `curation evaluate` writes with --out, or prints with --json",
            found=str(error)[:200],
            hint="evaluate predictions and scores first, each with --out, and compare the results",
        ) from None
