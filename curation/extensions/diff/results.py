"""Two results of one evaluation compared, each number before and after; or a result and another evaluator's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isclose, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from curation.core.errors import EvaluationError, UsageError
from curation.core.reading import InputFile
from curation.core.tables import cell_text, csv_header
from curation.evaluation.other_evaluators import NAMES, SUMMARY, compare_with_external
from curation.evaluation.outcomes import IGNORED, OBJECTS, OUTCOMES, STATES, TRUE_POSITIVE, UNCOUNTED, frames_of
from curation.evaluation.problem import Detections
from curation.evaluation.resample import PAIRED_DEFINITION, ImageOutcomes, paired_intervals
from curation.evaluation.result import PLACES, Column, Result, Table
from curation.evaluation.score_files import open_columns
from curation.extensions.diff.score_files import ScoresDiff, diff_scores

if TYPE_CHECKING:
    import pandas as pd

    from curation.evaluation.measures import Number

_WHICH = ("before", "after")
_SHOWN, _TRIED = 10, 100
_TEXTS: dict[str, tuple[str, ...]] = {OUTCOMES: ("scored", "part", "image_id", "class", "outcome", "on_unknown"),
          OBJECTS: ("scored", "part", "image_id", "class", "unknown", "state")}  # fmt: skip
_UNNAMED = (*PLACES, "class", "undefined", "reason")
_NO_INTERVAL = (
    " No intervals of {}: outcomes keep one matching of all objects, without what these need (of sizes, a matching of "
    "the objects of each size)."
)
_DIGEST = len("sha256:") + 12
_NO_OUTCOMES = "no intervals, images or boxes: outcomes are not there of both; evaluate with --outcomes and --out"
_BOX = ("image_id", "class", "score", *"xywh", "outcome")
_BOX_SHOWN = {"score": ".4f"} | dict.fromkeys("xywh", ".1f")


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


class Paired(NamedTuple):
    """What the outcomes of two results say of their difference.

    Attributes
    ----------
    note : str
        How the intervals were made, or why there are none.
    intervals : mapping
        ``low`` and ``high`` of a difference, by what was scored, class or ``""``, and key.
    headline : str
        The measure that images explain.
    images, boxes : list of tuple
        What explains most of it: images with the difference that is left without each; boxes in them of one alone.
    """

    note: str
    intervals: Mapping[tuple[str, str, str], Mapping[str, Any]] = {}
    headline: str = ""
    images: Sequence[tuple[Any, ...]] = ()
    boxes: Sequence[tuple[Any, ...]] = ()


@dataclass(frozen=True, repr=False)
class ResultDiff:
    """What differs between two results.

    Attributes
    ----------
    protocol : str
    rows : tuple
        Of each number what was scored, its key, and its value before and after: None where undefined or not there.
    classes : tuple
        Of each number of a class what was scored, the class, the key, and both values.
    reasons : tuple of str
        What makes the two not comparable.
    passed_over : tuple of str
        What else another evaluator gives.
    """

    protocol: str
    rows: tuple[tuple[str, str, Number | None, Number | None], ...]
    classes: tuple[tuple[str, str, str, Number | None, Number | None], ...] = ()
    reasons: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    _given: tuple[Any, ...] = field(default=(), compare=False)

    @property
    def changed(self) -> int:
        """How many numbers differ, those of classes aside."""
        return sum(row[2] != row[3] for row in self.rows)

    @cached_property
    def paired(self) -> Paired:
        """What the outcomes of both say: intervals, and the images and boxes that explain the difference."""
        return _paired(self)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every number, and every number of a class, before, after, the difference, its interval; images; boxes."""
        title = f"{self.protocol}: {self.changed} of {len(self.rows)} numbers differ"
        images = ("scored", "image", Column("without it", show="+g"))
        boxes = tuple(Column(name, show=_BOX_SHOWN.get(name, "")) for name in ("of", "image", *_BOX[1:]))
        return (
            self._table("difference", ("scored", "measure"), self.rows, title),
            self._table("classes", ("scored", "class", "measure"), self.classes, "Numbers of classes that differ"),
            Table("images", images, self.paired.images, f"Images that explain most of the {self.paired.headline}"),
            Table("boxes", boxes, self.paired.boxes, "Boxes in them, of one result alone"),
        )

    def _table(self, name: str, heads: Sequence[str], rows: Sequence[Any], title: str) -> Table:
        found = []
        for *key, before, after in rows:
            gap = None if before is None or after is None else after - before
            cell = self.paired.intervals.get((key[0], key[1] if len(key) == 3 else "", key[-1]), {})
            found.append((*key, before, after, gap, cell.get("low"), cell.get("high")))
        columns = (*heads, *(Column(head, show=".6g") for head in (*_WHICH, "difference", "low", "high")))
        return Table(name, columns, found, title, printed=[row for row in found if row[-5] != row[-4]])

    def lines(self) -> list[str]:
        """Return what a terminal shows: what makes the two not comparable first, then what differs."""
        first = ["These are not comparable because:", *(f"  {why}" for why in self.reasons), ""] if self.reasons else []
        tables = [table for number, table in enumerate(self.tables) if not number or table.cells()]
        return [*first, *(line for table in tables for line in table.lines()), self.paired.note]

    def frame(self, name: str = "difference") -> pd.DataFrame:
        """Return a table as a DataFrame: ``difference``, ``classes``, ``images`` or ``boxes``."""
        return next(table for table in self.tables if table.name == name).frame()

    def data(self) -> dict[str, Any]:
        """Return what JSON holds."""
        tables = {table.name: table.records() for table in self.tables}
        facts = {"protocol": self.protocol, "changed": self.changed, "not_comparable": list(self.reasons)}
        return {**facts, "note": self.paired.note, "measures": tables.pop("difference"), **tables}

    def __repr__(self) -> str:
        return f"<ResultDiff of {self.protocol}: {self.changed} of {len(self.rows)} numbers differ>"


def compare_files(old: Any, new: Any) -> ResultDiff | ScoresDiff | None:
    """Return how two results, a result and another evaluator's file, or two files of OOD scores differ.

    None where they are none of these, but may be manifests.
    """
    kinds = _kind(old), _kind(new)
    if kinds == ("scores", "scores"):
        return diff_scores(Path(old), Path(new))
    if kinds == ("result", "other"):
        return _diff_external(_data(old), Path(new))
    if kinds == ("other", "result"):
        _saved(_data(new), new)
        raise UsageError("The result goes before another evaluator's numbers", expected=f"curation diff {new} {old}")
    if any(kinds) and not all(kinds):
        odd, kind = (new, kinds[0]) if kinds[0] else (old, kinds[1])
        missing = isinstance(odd, str | Path) and not Path(odd).exists()
        raise EvaluationError(
            "No such result" if missing else "The two are not of one kind",
            where=str(odd),
            expected="what `curation evaluate` writes with --out" if kind == "result" else f"like the other, {kind}",
            found="nothing" if missing else "no result",
        )
    return diff_results(old, new) if all(kinds) else None


def _kind(given: Any) -> str:
    """Return ``result``, ``other`` (numbers of another evaluator), ``scores``, or "" of what may be a manifest."""
    path = Path(str(given))
    if isinstance(given, Result) or (path / "results.json").is_file():
        return "result"
    if not path.is_file() or path.name == "manifest.json" or not isinstance(given, str | Path):
        return ""
    if path.suffix.lower() in (".npy", ".npz"):
        return "scores"
    data, others = InputFile(path, kind="result").data, {*NAMES, *SUMMARY, "Class"}
    if path.suffix.lower() == ".csv":
        header = csv_header(data.split(b"\n", 1)[0], EvaluationError, where=str(path))
        return "other" if others & {name.strip() for name in header} else "scores"
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "result"
    if isinstance(found, list):
        return "scores" if found and isinstance(found[0], dict) and "image_id" in found[0] else "other"
    keys = found.keys() if isinstance(found, dict) else set[str]()
    return "result" if "measures" in keys else "scores" if "scores" in keys else "other" if others & keys else "result"


def diff_results(old: Result | Path | str, new: Result | Path | str) -> ResultDiff:
    """Return how the numbers of two results of one evaluation differ.

    Raises
    ------
    UsageError
        They are of two evaluations.
    EvaluationError
        A file is no result.
    """
    data = [_data(given) for given in (old, new)]
    before, after = (_saved(*pair) for pair in zip(data, (old, new), strict=True))
    if before.protocol != after.protocol:
        raise UsageError("The results come from two evaluations", found=f"{before.protocol} and {after.protocol}"[:160])
    # One method or variant beside another: what a file of predictions is called tells no numbers apart.
    alone = [column for column in ("part", "method", "variant") if _alone(column, before, after)]
    named = [column for column in PLACES if column not in alone]
    first, second = (dict(_numbers(saved, named)) for saved in (before, after))
    units = [{row.measure: row.unit for row in saved.measures} for saved in (before, after)]
    if other := [name for name, unit in units[0].items() if unit != units[1].get(name, unit)]:
        raise UsageError(
            "The results give a number in two units",
            where=f"{before.protocol}: {other[0]}"[:160],
            found=f"{units[0][other[0]]} and {units[1][other[0]]}",
            hint="evaluate the older one again",
        )
    rows = tuple((*key, first.get(key), second.get(key)) for key in {**first, **second})
    mine, theirs = (dict(_class_numbers(result)) for result in data)
    classes: Any = tuple((*key[:3], mine.get(key), theirs.get(key)) for key in {**mine, **theirs})
    counts = (f"other n of class {name}: {of} {n} and {other}" for of, name, key, n, other in classes
              if key in ("n", "objects") and n != other)  # fmt: skip
    reasons = dict.fromkeys((*_reasons(before, after, named), *counts))
    return ResultDiff(before.protocol, rows, classes, tuple(reasons), _given=(old, new))


def _alone(column: str, before: _Saved, after: _Saved) -> bool:
    words = [{getattr(row, column) for row in saved.measures} for saved in (before, after)]
    return len(words[0]) == len(words[1]) == 1 and (column != "variant" or words[0] != words[1])


def _numbers(saved: _Saved, named: Sequence[str]) -> Iterator[tuple[tuple[str, str], Number | None]]:
    for row in saved.measures:
        scored = "/".join(filter(None, (getattr(row, column) for column in named)))
        yield (scored, f"{row.measure}[{row.parameters}]" if row.parameters else row.measure), row.value


def _class_numbers(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Number | None]]:
    """Yield the numbers of each class in the JSON of a result: what was scored, class and column, and the value."""
    for name, table in data.items():
        rows = table if isinstance(table, list) and name not in ("measures", "scored") else []
        for row in (entry for entry in rows if isinstance(entry, dict) and isinstance(entry.get("class"), str)):
            of = "/".join(str(row[column]) for column in PLACES if row.get(column) and column not in ("part", "method"))
            texts = [value for key, value in row.items() if isinstance(value, str) and key not in _UNNAMED]
            for key, value in row.items():
                if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
                    yield (of, row["class"], key, name, *texts), value


def _reasons(before: _Saved, after: _Saved, named: Sequence[str]) -> Iterator[str]:
    """Yield what makes numbers of two results not comparable."""
    variants = [sorted({row.variant for row in saved.measures}) for saved in (before, after)]
    if variants[0] != variants[1]:
        yield f"other variant: {', '.join(variants[0])} and {', '.join(variants[1])}"
    scored = [{"/".join(filter(None, map(entry.get, named))): entry for entry in of.scored} for of in (before, after)]
    for label in (name for name in scored[0] if name in scored[1]):
        both = [of[label] for of in scored]
        for what, key in (("truth", "truth"), ("filter or settings", "settings")):
            yield from _unlike(f"other {what}", label, *(entry.get(key) for entry in both))
        files = [entry.get("predictions", {}) for entry in both]
        # A file that is called after its method may have another name in the other result.
        shared = files[0].keys() & files[1].keys()
        left = (
            {f"{part if part in shared else ''} {why}".strip(): n
             for part, file in of.items() for why, n in (file.get("reported") or {}).items()}
            for of in files
        )  # fmt: skip
        yield from _unlike("other filter of predictions", label, *left)
    images = [{part: file.get("truth", {}).get("images") for part, file in of.inputs.items()} for of in (before, after)]
    yield from _unlike("other number of images", "", *images)
    yield from _unlike("other manifest", "", *({"digest": (of.manifest or {}).get("digest")} for of in (before, after)))


def _unlike(what: str, where: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _unlike(what, f"{where} {key}".strip(), before.get(key), after.get(key))
    elif before != after:
        yield f"{what}: {where}: {_said(before)} and {_said(after)}"[:300]


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    text = "none" if value is None else str(value)
    return text[:_DIGEST] if text.startswith("sha256:") else text


def _diff_external(data: dict[str, Any], path: Path) -> ResultDiff:
    saved = _saved(data, path)
    ours: dict[str, Any] = {row.measure: row.value for row in saved.measures if row.unit == "%"}
    per_class = {key[1]: value for key, value in _class_numbers(data) if key[2] == "AP"}
    ours, per_class = ({name: value and value / 100 for name, value in of.items()} for of in (ours, per_class))
    found = compare_with_external({**ours, "per_class": per_class}, path, {})
    rows = zip(*(found["against"][name] for name in ("measure", "ours", "theirs")), strict=True)
    passed = tuple(found["passed_over"])
    return ResultDiff(f"{saved.protocol} and {path.name}", tuple(("", *row) for row in rows), passed_over=passed)


def _data(given: Result | Path | str) -> dict[str, Any]:
    """Return what the JSON of a result holds, unchecked."""
    if isinstance(given, Result):
        return given.json_data()
    path = Path(given)
    path = path / "results.json" if path.is_dir() else path
    try:
        return msgspec.json.decode(InputFile(path, kind="result").data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise _no_result(path, error) from None


def _saved(data: dict[str, Any], given: Any) -> _Saved:
    try:
        return msgspec.convert(data, _Saved)
    except msgspec.ValidationError as error:
        raise _no_result(given, error) from None


def _no_result(path: Any, error: Exception) -> EvaluationError:
    return EvaluationError(
        "The file is not a result",
        where=str(path),
        expected="what `curation evaluate` writes with --out, or prints with --json",
        found=str(error)[:200],
    )


def _frames(given: Result | Path | str) -> dict[str, pd.DataFrame]:
    """Return what became of a result's detections and objects; nothing where that is not known."""
    import pandas as pd

    if isinstance(given, Result):
        return frames_of(given._all_outcomes) if given._all_outcomes else {}
    frames, folder = {}, Path(given) if Path(given).is_dir() else Path(given).parent
    for name, texts in _TEXTS.items() if (folder / f"{OUTCOMES}.csv").is_file() else ():
        columns = open_columns(folder / f"{name}.csv", (".csv",))
        numbers = ["score", *"xywh"] if name == OUTCOMES else [*"xywh"]
        if missing := sorted({*texts, *numbers} - {*columns.names}):
            what = "The table of outcomes lacks columns"
            raise EvaluationError(what, where=str(folder / f"{name}.csv"), expected=", ".join(missing))
        texts += ("found_at",) if "found_at" in columns.names else ()
        read = columns.read(numbers, texts)
        frames[name] = pd.DataFrame(read | {text: [str(cell_text(cell)) for cell in read[text]] for text in texts})
    return frames


def _paired(diff: ResultDiff) -> Paired:
    """Return what the outcomes of both results say, of what was scored in one part, on the same objects."""
    frames = [_frames(given) for given in diff._given]
    if not frames:
        others = f"; not compared: {', '.join(diff.passed_over)}" if diff.passed_over else ""
        return Paired(f"no intervals: the other evaluator gives numbers alone{others}")
    if not all(frames):
        return Paired(_NO_OUTCOMES)
    numbers = {(scored, "", key): both for scored, key, *both in diff.rows}
    numbers |= {(scored, name, key): both for scored, name, key, *both in diff.classes}
    intervals: dict[tuple[str, str, str], Any] = {}
    images: list[Any] = []
    boxes: list[Any] = []
    headline = ""
    for scored in dict.fromkeys(frames[0][OBJECTS]["scored"]):
        found, objects = ([of[name][of[name]["scored"] == scored] for of in frames] for name in (OUTCOMES, OBJECTS))
        same = ["image_id", "class", *"xywh"]
        if len(set(objects[0]["part"])) > 1 or objects[0][same].values.tolist() != objects[1][same].values.tolist():
            continue
        ids = list(dict.fromkeys(objects[0]["image_id"]))
        classes = sorted({*objects[0]["class"], *(name for frame in found for name in frame["class"])} - {""})
        if not classes:
            continue
        sides = [_image_outcomes(*both, ids, classes) for both in zip(found, objects, strict=True)]
        whole = [side.measures(np.ones(len(ids), np.int64)) for side in sides]
        # A measure that the rows give otherwise has other rules: it has no interval.
        of_key = {
            key: name
            for key in whole[0]
            for name in ((scored, *key), ("", *key))
            if all(_same(side[key], value) for side, value in zip(whole, numbers.get(name, (None, None)), strict=True))
        }
        intervals |= {of_key[key]: cell for key, cell in paired_intervals(*sides).items() if key in of_key}
        if images or not (
            first := next((("", key) for of, key, *_ in diff.rows if of == scored and ("", key) in of_key), None)
        ):
            continue
        headline = f"difference in {first[1]} of {scored}"
        alone = _alone_boxes(*found)
        left = []
        often = alone["image_id"].value_counts().to_dict()
        for image in sorted(often, key=lambda image_id: (-often[image_id], image_id))[:_TRIED]:
            weights = np.ones(len(ids), np.int64)
            weights[ids.index(image)] = 0
            before, after = (side.measures(weights)[first] for side in sides)
            # Without the only image that has objects, the measure is undefined.
            left.append((scored, image, None if isnan(after - before) else after - before))
        gap = whole[1][first] - whole[0][first]
        images = sorted(left, key=lambda row: (-inf if row[2] is None else -abs(row[2] - gap), row[1]))[:_SHOWN]
        shown = alone[alone["image_id"].isin([row[1] for row in images])].sort_values(
            "score", ascending=False, kind="stable"
        )
        boxes = list(shown[["of", *_BOX]].itertuples(index=False, name=None))[:_SHOWN]
    alone_keys = dict.fromkeys(
        key.partition("[")[0] for of, key, *both in diff.rows if None not in both and (of, "", key) not in intervals
    )
    note = PAIRED_DEFINITION + _NO_INTERVAL.format(", ".join(alone_keys)) * bool(alone_keys)
    return Paired(note, intervals, headline, images, boxes)


def _same(value: float, other: Number | None) -> bool:
    return other is not None and isclose(value, other, rel_tol=1e-9, abs_tol=1e-9)


def _alone_boxes(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return the detections that one result has and the other has not, or of another outcome."""
    import pandas as pd

    both = pd.concat([frame.assign(of=which) for frame, which in zip((before, after), _WHICH, strict=True)])
    return both.drop_duplicates(list(_BOX), keep=False)


def _image_outcomes(
    found: pd.DataFrame, objects: pd.DataFrame, ids: Sequence[str], classes: Sequence[str]
) -> ImageOutcomes:
    image_of, label_of = ({name: position for position, name in enumerate(names)} for names in (ids, classes))
    image: Any = found["image_id"].map(image_of).to_numpy(np.int32)
    label: Any = found["class"].map(label_of).to_numpy(np.int32)
    outcome = np.select([found["outcome"] == TRUE_POSITIVE, found["outcome"] == IGNORED], [1, -1], 0)[None]
    if "found_at" in found:
        signs = np.array(list("".join(found["found_at"])), "U1").reshape(len(found), 10).T
        outcome = np.select([signs == "1", signs == "x"], [1, -1], 0)
    state, unknown = objects["state"], objects["unknown"].astype(str) == "True"
    counted = state.isin([*STATES]) & (state != UNCOUNTED)
    where = objects["image_id"].map(image_of)
    n = len(ids)
    known = objects[counted & ~unknown]
    cell = known["class"].map(label_of).to_numpy(np.int64) * n + where[known.index].to_numpy(np.int64)
    hit = [unknown & (state == next(iter(STATES))), unknown & counted]
    return ImageOutcomes(
        tuple(classes),
        np.bincount(cell, minlength=len(classes) * n).reshape(-1, n),
        np.array(
            [np.bincount(where[rows], minlength=n) for rows in hit]
            + [np.bincount(image[found["on_unknown"].astype(str) == "True"], minlength=n)]
        ),
        Detections(image, label, np.zeros((len(found), 4)), found["score"].to_numpy(np.float64)),
        outcome.astype(np.int8),
    )
