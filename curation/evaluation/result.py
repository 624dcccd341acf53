"""`Result`: the numbers and tables of an evaluation, and all forms in which they are printed or written.

How to declare the results of a protocol
----------------------------------------
A protocol has one `Report`:

* ``measures``: a tuple of `curation.evaluation.measures.Measure`;
* ``tidy``: further tables of each scored entry, by columns;
* ``tables``: a function of a `Result` that yields `Table` records in the order of a terminal, if the tables that follow
  from ``measures`` and ``tidy`` are not enough;
* ``drawings``: a function of a `Result` that yields `Figure` records;
* ``files`` and ``figures``: the names that `Result.save` may write, known before the evaluation.

A table is declared with numbers, not with formatted texts::

    Table(
        "classes",
        (Column("class"), Column("n", "count", "objects"), Column("AP", "%"), Column("tp", "count", text=False)),
        [(name, row["n"], row["AP"], row["tp"]) for name, row in found.items()],
        title="Classes",  # without a title a terminal does not show it
        file=True,  # Result.save writes classes.csv
    )

Text, CSV, DataFrame, LaTeX and HTML follow: a `Column` states its unit (which sets its format, unless ``show`` has
another one), its head in a terminal, and whether a terminal shows it. ``printed`` are other rows for a terminal (some
of them, or a mean below). Tables with the same name form a single `Result.table`.

An ``evaluate`` function returns ``Result(REPORT, about, scored=...)``: a `Scored` for each method, part and variant,
with its numbers as rows and the facts of a leaderboard row (digests of truth and predictions, settings). `columns` are
data that are too long for JSON and that only tables and figures use. `curation.evaluation.inputs` reads the inputs. See
`curation.extensions.detection_ap.voc` for a small example.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curation.core.arguments import checked
from curation.core.entry_points import entry_points, loaded
from curation.core.errors import ResultWarning, UsageError, warn_caller
from curation.core.tables import Table as TextTable
from curation.core.tables import grouped, number_lines
from curation.core.wording import examples
from curation.evaluation.measures import Data as Data
from curation.evaluation.measures import Measure, Number, declared_values, ranked
from curation.evaluation.measures import Scored as Scored
from curation.evaluation.tables import ARROWS, formatted, in_unit, shown_unit, sign_of
from curation.evaluation.tables import Column as Column
from curation.evaluation.tables import Table as Table
from curation.evaluation.tables import Tidy as Tidy
from curation.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from curation.core.figures import Picture
    from curation.evaluation.leaderboard_rows import LeaderboardRow
    from curation.evaluation.outcomes import Outcomes

SCHEMA: dict[str, Any] = {"name": "curation.result", "version": 2}
"""Name and version of the JSON schema, which `schema_text` returns."""
PLACES = ("part", "task", "split", "case", "method", "score", "variant")
RECORDED = (*PLACES, "truth", "predictions", "settings", "operating_point", "pinned", "manifest", "of_several")
"""Fields in the JSON of each scored entry, besides its numbers."""
FIELDS_GROUP = "curation.result_fields"
"""The entry-point group of the function that writes outcomes into fields of a FiftyOne dataset."""
_SIGNS = {"share": "0 to 1"}
_NO_OUTCOMES, _MATCHES = "No per-detection outcomes", "an evaluation that matches boxes"
_MEASURES = "Measures"
_MOST_LABELS = 60
"""Characters of labels that fit into a line, beside the names and meanings of measures."""
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a result.

    Attributes
    ----------
    name : str
        Stem of its files.
    draw : callable or None
        Takes a path without suffix, writes PNG, SVG and CSV, and returns their paths; None if nothing can be drawn.
    missing : str
        Why nothing can be drawn.
    """

    name: str
    draw: Callable[[Path], list[Path]] | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """How the results of a protocol are presented.

    Attributes
    ----------
    protocol : str
    measures : tuple of Measure
        A leaderboard is ranked by the first ranked measure that one of its rows has.
    tables, drawings
        See the docstring of the module.
    algorithm : int
        Version of the evaluator: raised when a number of the same inputs may change.
    files, figures : tuple of str
        Names of CSV files and of figures, without suffix, that `Result.save` may write; may be patterns.
    tidy : tuple of Tidy
        Further tables of each scored entry.
    places : tuple of str
        Columns that identify the scored entries in those tables, a subset of `PLACES`.
    """

    protocol: str
    measures: tuple[Measure, ...]
    tables: Callable[[Result], Iterable[Table]] | None = None
    drawings: Callable[[Result], Iterable[Figure]] = lambda result: ()
    algorithm: int = 1
    files: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    tidy: tuple[Tidy, ...] = ()
    places: tuple[str, ...] = ("task", "variant")


class Result:
    """Result of an evaluation: its numbers, tables, and facts about its inputs.

    Parameters
    ----------
    report : Report
    about : mapping
        Facts about the inputs: digests, rules, records left out.
    scored : sequence of Scored
        The scored entries, with their numbers as rows.
    columns : mapping, or a function that returns it
        Curves and scores, an entry for each detection, for tables and figures.
    notes : sequence of str
        Sentences for the reader of the result.
    outcomes : function, optional
        Returns the outcomes of all detections, one for each part, by the label of the entry (``t1/clean``).

    Attributes
    ----------
    data : dict
        Protocol, version of the program and `about`: the content of ``results.json`` without the numbers.
    notes : tuple of str
        Sentences for the reader of the result, doubts about files first.
    warnings : tuple of str
        Every warning of the evaluation: those of its inputs, then the notes.
    call : dict
        Arguments of the evaluation other than defaults, with which `curation.verify` scores again (see
        `curation.evaluation.recorded_call.stated_call`).

    Examples
    --------
    The examples of the methods continue this one.

    >>> import curation
    >>> boxes = [{"image_id": 1, "bbox": [0, 0, 20, 20]}, {"image_id": 1, "bbox": [30, 30, 20, 20]}]
    >>> objects = [{"id": n, "category_id": n, "area": 400, "iscrowd": 0, **box} for n, box in enumerate(boxes, 1)]
    >>> truth = {"images": [{"id": 1, "width": 50, "height": 50, "file_name": "1.jpg"}], "annotations": objects,
    ...          "categories": [{"id": 1, "name": "owl"}, {"id": 2, "name": "unknown"}]}
    >>> detections = [{"category_id": n, "score": 0.9, **box} for n, box in enumerate(boxes, 1)]
    >>> result = curation.evaluate.owod(truth=truth, detections=detections)
    >>> result
    <Result of owod (test/clean): 28 numbers>
    >>> result["UR"], result["WI"]
    (100.0, 0.0)
    """

    def __init__(
        self,
        report: Report,
        about: Data,
        *,
        scored: Iterable[Scored] = (),
        columns: Data | Callable[[], Data] | None = None,
        notes: Iterable[str] = (),
        outcomes: Callable[[], Mapping[str, Sequence[Outcomes]]] | None = None,
    ) -> None:
        self._outcomes = outcomes
        self.report = report
        self.about = about
        self.scored = tuple(scored)
        files = [file for part in about.get("inputs", {}).values() for file in part.values()]
        doubts = [f"{file['name']}: {file['doubt']}" for file in files if isinstance(file, Mapping) and "doubt" in file]
        self.notes = tuple(dict.fromkeys([*doubts, *notes]))
        self.warnings = self.notes
        self.call: dict[str, Any] = {}
        self._columns = columns

    @cached_property
    def data(self) -> dict[str, Any]:
        """Return protocol, version of the program, and facts about the inputs."""
        return {"protocol": self.report.protocol, "curation": __version__, **self.about}

    @cached_property
    def columns(self) -> Data:
        """Return the data that are too long for JSON."""
        return (self._columns() if callable(self._columns) else self._columns) or {}

    @checked
    def outcomes(self, scored: str | None = None) -> tuple[Outcomes, ...]:
        """Return the outcomes of detections and objects of a scored entry, a record for each part.

        Parameters
        ----------
        scored : str, optional
            Label of an entry, such as ``t1/clean``; required if there are several.

        Raises
        ------
        UsageError
            The evaluation matches no boxes; or the label is missing or wrong.

        Examples
        --------
        >>> [outcomes] = result.outcomes()
        >>> outcomes.detections.scores.tolist(), outcomes.matched.tolist()
        ([0.9, 0.9], [0, 1])
        """
        return self._scored_outcomes(scored)[1]

    def _scored_outcomes(self, scored: str | None) -> tuple[str, tuple[Outcomes, ...]]:
        outcomes = self._all_outcomes
        name = next(iter(outcomes)) if scored is None and len(outcomes) == 1 else scored
        if name is None or name not in outcomes:
            raise UsageError(
                "Several entries were scored" if outcomes else _NO_OUTCOMES,
                where=self.report.protocol if scored is None else scored[:80],
                expected="scored=" + " or ".join(outcomes) if outcomes else _MATCHES,
            )
        return name, tuple(outcomes[name])

    @cached_property
    def _all_outcomes(self) -> Mapping[str, Sequence[Outcomes]]:
        return self._outcomes() if self._outcomes else {}

    @checked
    def to_fiftyone(
        self,
        dataset: Any,
        scored: str | None = None,
        *,
        key: str | None = None,
        id_field: str = "",
        missing: Literal["error", "skip"] = "error",
    ) -> dict[str, int]:
        """Write the outcome of each detection into fields of a FiftyOne dataset, with counts and saved views.

        Parameters
        ----------
        dataset : fiftyone.Dataset
            A dataset with the scored images; it needs neither truth nor predictions.
        scored : str, optional
            Label of an entry, such as ``t1/clean``; required if there are several.
        key : str, optional
            Name of the field; by default protocol and variant. The field of an earlier call is replaced; a field of
            the user is not.
        id_field : str
            Field with the image ids (see `curation.sources.fiftyone_view.sample_ids`).
        missing : {"error", "skip"}
            What to do if the dataset lacks scored images.

        Returns
        -------
        dict of str to int
            Counts of written outcomes over all samples; those of the result if no image is missing.

        Raises
        ------
        UsageError
            The evaluation matches no boxes; the dataset lacks images, or has another field or saved view of this name.
        """
        points = entry_points(FIELDS_GROUP)
        if not points:
            lacking = "This installation has no extension that writes outcomes to FiftyOne"
            raise UsageError(lacking, hint="reinstall curation; result.outcomes() has the same records")
        write_fields = loaded(points[0], "The extension that writes outcomes to FiftyOne")
        name, parts = self._scored_outcomes(scored)
        field = key or _legal(f"{self.report.protocol}_{name}".replace("/", "_")).lower()
        written: dict[str, int] = write_fields(
            dataset, parts, field, id_field=id_field, missing=missing, about=self.settings()
        )
        return written

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Return every table in the order of a terminal; the table of measures is the last."""
        return (*(self.report.tables or tidy_tables)(self), self._measures)

    @cached_property
    def _measures(self) -> Table:
        rows = [
            (*(getattr(scored, column) for column in PLACES), measure.base,
             ", ".join(f"{name}={value}" for name, value in row.parameters.items()), row.value, measure.unit,
             measure.better, row.n, row.undefined)
            for scored in self.scored
            for measure, row in declared_values(scored, self.report.measures)
        ]  # fmt: skip
        names = (*PLACES, "measure", "parameters", "value", "unit", "better", "n", "undefined")
        return Table("measures", tuple(map(Column, names)), rows, file=True)

    @property
    def measures(self) -> pd.DataFrame:
        """Return every declared number as a row: scored entry, measure, value, unit, n, and why it is undefined."""
        return self._measures.frame()

    def _numbers(self) -> Iterator[tuple[str, str, Number | None]]:
        """Yield label, key and value of every declared number."""
        for scored in self.scored:
            for measure, row in declared_values(scored, self.report.measures):
                yield scored.label, measure.key_of(row.parameters), row.value

    def numbers(self) -> dict[str, Number | None]:
        """Return every declared number by its full key, such as ``t1/clean/UR``; None if it is undefined.

        Examples
        --------
        >>> result.numbers()["test/clean/UR"]
        100.0
        """
        return {f"{label}/{key}".lstrip("/"): value for label, key, value in self._numbers()}

    def settings(self) -> dict[str, str]:
        """Return digests, versions and settings as texts, by names that experiment loggers accept.

        Examples
        --------
        >>> settings = result.settings()
        >>> settings["protocol"], settings["test_clean_iou"]
        ('owod', '>= 0.5')
        """
        settings = {"protocol": self.report.protocol, "curation": __version__, "algorithm": str(self.report.algorithm)}
        if isinstance(manifest := self.data.get("manifest"), Mapping):
            settings |= {f"manifest_{key}": str(manifest[key]) for key in ("name", "version", "digest")}
        for scored in self.scored:
            digests = {f"predictions {part}": str(file["sha256"]) for part, file in scored.predictions.items()}
            for key, value in {**scored.settings, **scored.operating_point, **digests}.items():
                settings[_legal(f"{scored.label}/{key}".lstrip("/"))] = value
        return settings

    @checked
    def __getitem__(self, key: str) -> Any:
        """Return a number by its key, ``UR`` or ``AWI@0.3``; a dict by label if several entries have it.

        Raises
        ------
        UsageError
            No such number; the message lists the keys.

        Examples
        --------
        >>> result["mAP_both"], result["test/clean/WI_at_recall@0.5"]
        (100.0, 0.0)
        """
        values = {label: value for label, name, value in self._numbers() if key in (name, f"{label}/{name}")}
        if not values:
            keys = ", ".join(dict.fromkeys(name for _, name, _ in self._numbers()))
            raise UsageError("The result has no such number", where=key[:80], expected=keys[:400] or "none")
        return next(iter(values.values())) if len(values) == 1 else values

    @checked
    def table(self, name: str) -> pd.DataFrame:
        """Return the tables with this name as a single DataFrame.

        Raises
        ------
        UsageError
            No such table; the message lists the names.

        Examples
        --------
        >>> result.table("classes")[["class", "n", "AP"]]
             class  n     AP
        0      owl  1  100.0
        1  unknown  1  100.0
        """
        import pandas as pd

        frames = [table.frame() for table in self._tables_by_name(name)]
        return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)

    @checked
    def latex(self, name: str | None = None) -> str:
        r"""Return a table in LaTeX with the rules of booktabs; without a name, the ranked measures of every entry.

        Examples
        --------
        >>> print(result.latex("unknown_classes").splitlines()[0])
        \begin{tabular}{lllrrrrrrrr}
        """
        if name is None:
            return self.summary().latex()
        return "\n".join(table.latex() for table in self._tables_by_name(name))

    def summary(self) -> Table:
        """Return the table of ranked measures, a row for each scored entry.

        Examples
        --------
        >>> result.summary().frame()[["scored", "UR", "WI"]]
               scored     UR   WI
        0  test/clean  100.0  0.0
        """
        rows_by_label, measures, shown_units = _numbers_by(self.scored, ranked(self.report.measures), _label)
        columns = [
            Column(
                key, measure.unit, f"{key} {sign_of(measure.better, shown_units[key])}".strip(),
                show=".2f" if shown_units[key] != measure.unit else "",
            )
            for key, measure in measures.items()
        ]  # fmt: skip
        rows = [(label, *map(numbers.get, measures)) for label, numbers in rows_by_label.items()]
        in_words = [
            (label, *(in_unit(numbers.get(key), each.unit, shown_units[key]) for key, each in measures.items()))
            for label, numbers in rows_by_label.items()
        ]
        return Table(
            "summary", (Column("scored", head=""), *columns), rows, title=self.report.protocol, printed=in_words
        )

    def lines(self, width: int | None = None, *, with_tables: bool = True) -> list[str]:
        """Return the lines for a terminal: all tables, or only the ranked measures if `with_tables` is false.

        Examples
        --------
        >>> result.lines(width=90, with_tables=False)[2]
        '  mAP_both      %      100.00      mean average precision, known classes ↑'
        """
        chosen, is_wide = ranked(self.report.measures), _is_wide(self)
        if with_tables or not chosen or self.report.tables is not None:
            every = (*self.tables, *_undefined_table(self, self.report.measures))
            return [
                line for table in every if table.title
                for line in (
                    _method_lines(self, self.report.measures, width)
                    if is_wide and table.title == _MEASURES else table.lines(width)
                )
            ]  # fmt: skip
        inputs = inputs_table(self.data)
        left_out = inputs.lines(width) if any(row[-1] for row in inputs.all_rows()) else []
        more = "--all prints every measure, and the tables of classes and inputs"
        lines = _method_lines(self, chosen, width) if is_wide else _measures_table(self, chosen).lines(width)
        undefined = (line for table in _undefined_table(self, chosen) for line in table.lines(width))
        return [*left_out, *lines, *undefined, more]

    def json_data(self) -> dict[str, Any]:
        """Return the content of ``results.json``: the data, its schema name, and every declared number in one list.

        Examples
        --------
        >>> result.json_data()["measures"][0]["measure"]
        'mAP_both'
        """
        data = {**self.data, "scored": [_record(scored) for scored in self.scored]}
        for table in self._tidy(lambda tidy: tidy.json):
            data[table.name] = table.records()
        call = {"call": self.call} if self.call else {}
        return {**data, **call, "schema": SCHEMA, "measures": self._measures.records()}

    def _tidy(self, is_selected: Callable[[Tidy], bool]) -> list[Table]:
        return [tidy.table(self.scored, self.report.places) for tidy in self.report.tidy if is_selected(tidy)]

    @property
    def drawings(self) -> tuple[Figure, ...]:
        """Return the figures."""
        return tuple(self.report.drawings(self))

    @checked
    def figure(self, name: str) -> Picture:
        """Return a figure, which notebooks display and which can be saved.

        Raises
        ------
        UsageError
            No such figure, or nothing to draw; the message lists the figures.

        Examples
        --------
        >>> result.figure("wilderness_impact_clean")
        <Picture wilderness_impact_clean>
        """
        from curation.core.figures import in_memory

        drawings = {drawing.name: drawing for drawing in self.drawings}
        chosen = drawings.get(name)
        if chosen is None or chosen.draw is None:
            drawable = ", ".join(drawing.name for drawing in drawings.values() if drawing.draw) or "none"
            missing = chosen.missing if chosen else "The result has no such figure"
            raise UsageError(missing, where=name[:80], expected=drawable[:400])
        return in_memory(chosen.draw, name)

    @checked
    def rows(self, name: str | None = None) -> list[LeaderboardRow]:
        """Return the leaderboard rows of the result; a method is called `name`, by default after its predictions file.

        Examples
        --------
        >>> [row] = result.rows("mine")
        >>> row.metrics["UR"]
        Metric(value=100.0, unit='%', better='higher')
        """
        from curation.evaluation.leaderboard_rows import rows_of

        return rows_of(self, name)

    @checked
    def append(self, file: Path | str, name: str | None = None) -> None:
        """Append the leaderboard rows of the result (see `rows`) to a ``.jsonl`` file, which is created if necessary.

        Raises
        ------
        LeaderboardError
            The file has another suffix, or other content.

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> result.append(f"{mkdtemp()}/rows.jsonl", "mine")
        """
        from curation.evaluation.leaderboard_rows import append_rows, check_appendable

        check_appendable(Path(file))
        append_rows(Path(file), self.rows(name))

    @checked
    def save(self, folder: Path | str, *, figures: bool = False) -> list[Path]:
        """Write the tables, including those of figures, and ``results.json`` (see `curation.core.writing`).

        Existing files are replaced only with ``--force``; files that an earlier ``results.json`` in the folder lists
        are then removed if this result has no such file.

        Parameters
        ----------
        folder : Path
        figures : bool
            Also draw the figures, as PNG and SVG.

        Returns
        -------
        list of Path
            All files written, ``results.json`` last.

        Examples
        --------
        >>> [path.name for path in result.save(mkdtemp())][-2:]
        ['measures.csv', 'results.json']
        """
        from curation.core.figures import tables_alone
        from curation.core.writing import publishing_files, write_text

        folder = Path(folder)
        for drawing in self.drawings:
            if drawing.draw is None and drawing.missing:
                self._warn(drawing.missing)
        before = _written_before(folder / "results.json")
        with publishing_files(folder, before) as new, tables_alone(alone=not figures):
            written = [
                path.name for drawing in self.drawings if drawing.draw for path in drawing.draw(new / drawing.name)
            ]
            for table in self.tables:
                if table.file:
                    written.append(f"{table.name}.csv")
                    write_text(new / written[-1], table.csv())
            content = {**self.json_data(), "written": written}
            text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
            write_text(new / "results.json", text)
        return [folder / name for name in (*written, "results.json")]

    def _warn(self, text: str) -> None:
        self.warnings = tuple(dict.fromkeys((*self.warnings, text)))
        warn_caller(text, ResultWarning)

    def _tables_by_name(self, name: str) -> list[Table]:
        tables = [table for table in self.tables if table.name == name]
        if not tables:
            names = dict.fromkeys(table.name for table in self.tables if table.name)
            raise UsageError("The result has no such table", where=name[:80], expected=", ".join(names))
        return tables

    def __repr__(self) -> str:
        labels = examples(dict.fromkeys(scored.label for scored in self.scored), 4)
        title = f"{self.report.protocol} ({labels})" if labels else self.report.protocol
        return f"<Result of {title}: {sum(1 for _ in self._numbers())} numbers>"

    def _repr_html_(self) -> str:
        return self.summary().html()


def schema_text() -> str:
    """Return the JSON Schema of the output of `Result.save` and ``--json``."""
    from importlib.resources import files

    return files("curation.evaluation").joinpath("result.schema.json").read_text(encoding="utf-8")


def _record(scored: Scored) -> dict[str, Any]:
    """Return the JSON record of a scored entry, without its numbers."""
    record = {name: getattr(scored, name) for name in RECORDED}
    return record | {"notes": list(scored.found.notes)}


def tidy_tables(result: Result) -> Iterator[Table]:
    """Yield the tables of a result: inputs, every number, then the tables declared in its report."""
    yield inputs_table(result.data)
    yield _measures_table(result, result.report.measures)
    yield from result._tidy(lambda _: True)


def _measures_table(result: Result, measures: Sequence[Measure]) -> Table:
    """Return a table of measures with a short description each, and a column for each scored entry."""
    labels = list(dict.fromkeys(scored.label for scored in result.scored))
    numbers: dict[tuple[str, str, str], dict[str, str]] = {}
    for scored in result.scored:
        for measure, row in declared_values(scored, measures):
            meaning = f"{measure.name} {ARROWS[measure.better]}" if measure.better else measure.name
            line = measure.key_of(row.parameters), _SIGNS.get(measure.unit, measure.unit), meaning
            numbers.setdefault(line, {})[scored.label] = formatted(row.value, measure.unit)
    rows = [
        (key, unit, *(row.get(label, "") for label in labels), meaning) for (key, unit, meaning), row in numbers.items()
    ]
    names = ("measure", "unit", *labels, "meaning (↑ higher, ↓ lower is better)")
    return Table("", names, rows, title=_MEASURES)


def _numbers_by(
    entries: Iterable[Scored], measures: Sequence[Measure], name_of: Callable[[Scored], str]
) -> tuple[dict[str, dict[str, Number | None]], dict[str, Measure], dict[str, str]]:
    """Return the numbers by name of the entry and key, the measure of each key, and the unit in which it is shown."""
    numbers: dict[str, dict[str, Number | None]] = {}
    measure_of: dict[str, Measure] = {}
    for scored in entries:
        of_entry = numbers.setdefault(name_of(scored), {})
        for measure, row in declared_values(scored, measures):
            key = measure.key_of(row.parameters)
            of_entry[key], measure_of[key] = row.value, measure
    units = {measure.unit for measure in measure_of.values()}
    return numbers, measure_of, {key: shown_unit(measure.unit, units) for key, measure in measure_of.items()}


def _label(scored: Scored) -> str:
    return scored.label


def _is_wide(result: Result) -> bool:
    """Return whether the result has several methods, or too many parts and variants for columns."""
    labels = {scored.label for scored in result.scored}
    return _has_several_methods(result) or sum(len(label) + 2 for label in labels) > _MOST_LABELS


def _has_several_methods(result: Result) -> bool:
    return any(len({_method(scored) for scored in entries}) > 1 for entries in grouped(result.scored, _title).values())


def _method(scored: Scored) -> tuple[str, str]:
    return scored.method if scored.of_several else "", scored.score


def _title(scored: Scored) -> str:
    return " · ".join(filter(None, (scored.task, scored.split, scored.case, scored.variant)))


def _method_lines(result: Result, measures: Sequence[Measure], width: int | None) -> list[str]:
    """Return a table for each part and variant, for a terminal: methods are its rows and measures its columns.

    If only one method was scored, its parts and variants are the rows of a single table.
    """
    several, lines = _has_several_methods(result), list[str]()
    for title, entries in grouped(result.scored, _title if several else lambda _: "").items():
        name_of = (lambda scored: "/".join(filter(None, _method(scored)))) if several else _label
        numbers, keys, units = _numbers_by(entries, measures, name_of)
        rows = tuple(
            (
                name,
                *(
                    formatted(in_unit(values[key], measure.unit, units[key]), units[key]) if key in values else ""
                    for key, measure in keys.items()
                ),
            )
            for name, values in numbers.items()
        )
        signs = [sign_of(measure.better, units[key]) for key, measure in keys.items()]
        head = f"{': '.join(filter(None, (_MEASURES, title)))} (↑ higher, ↓ lower is better)"
        table = TextTable(head, ("method" if several else "", *keys), rows)
        lines += number_lines(table, ("", *signs), leading=1, width=width)
    return lines


def _undefined_table(result: Result, measures: Sequence[Measure]) -> Iterator[Table]:
    """Yield a table of the reasons why numbers are undefined, if any is."""
    reasons: dict[str, dict[str, None]] = {}
    for scored in result.scored:
        for measure, row in declared_values(scored, measures):
            if row.value is None:
                reasons.setdefault(row.undefined, {})[measure.key_of(row.parameters)] = None
    if reasons:
        rows = [(examples(keys, 8), reason) for reason, keys in reasons.items()]
        yield Table("", ("measures", "reason"), rows, title="Undefined")


def input_rows(inputs: Data, manifest: Data | None) -> Iterator[tuple[str, ...]]:
    """Yield part, kind, file, digest and number of records left out, for each input file of each part."""
    for part, files in inputs.items():
        for kind, record in files.items():
            reported = "; ".join(f"{reason}: {count}" for reason, count in record["reported"].items())
            if "files" in record:
                yield from ((part, kind, file["name"], file["sha256"], reported) for file in record["files"])
            else:
                yield part, kind, f"{record['name']} ({record['rows']})", record["sha256"], reported
    if manifest is not None:
        yield "", "manifest", f"{manifest['name']} {manifest['version']}", manifest["digest"], ""


def inputs_table(data: Data) -> Table:
    """Return the table of input files, a row for each."""
    columns = (Column("part"), Column("kind", head=""), Column("file"), Column("digest", "digest"), Column("reported"))
    rows = list(input_rows(data["inputs"], data["manifest"]))
    return Table("inputs", columns, rows, title=f"Inputs; known classes from {data['known_classes_from']}")


def truth_digests(data: Data, *parts: str, options: Sequence[str] = ("classes", "images")) -> dict[str, Any]:
    """Return what identifies the truth of some parts: digests of its files, and the numbers of records left out."""
    inputs = data["inputs"]
    return {
        "files": {
            part: {
                "sha256": sorted(file["sha256"] for file in inputs[part]["truth"]["files"]),
                "reported": inputs[part]["truth"]["reported"],
            }
            for part in parts or inputs
        },
        "options": {option: file["sha256"] for option, file in data["option_files"].items() if option in options},
    }


def stem_of(file: Data) -> str:
    """Return the default name of a method: the stem of its predictions file."""
    return Path(file["name"]).stem


def _legal(name: str) -> str:
    """Return a name of ASCII letters, digits and underscores only, which does not start with a digit."""
    legal = _ILLEGAL.sub("_", name.replace("@", "_at_"))
    return f"_{legal}" if legal[:1].isdigit() else legal


def _written_before(path: Path) -> list[str]:
    """Return the names of figures and tables that an earlier result lists; empty if it is unreadable."""
    try:
        names = json.loads(path.read_bytes())["written"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    suffixes = (".png", ".svg", ".csv")
    return [
        name
        for name in (names if isinstance(names, list) else [])
        if isinstance(name, str) and name.endswith(suffixes) and Path(name).name == name
    ]
