"""Every form of a result comes from its declared tables."""

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pandas as pd
import pytest

from curation.core.errors import UsageError
from curation.evaluation.inputs import Reading
from curation.evaluation.leaderboard_rows import read_rows
from curation.evaluation.measures import Measure, Measured, Value
from curation.evaluation.result import Column, Figure, Report, Result, Scored, Table, schema_text, shown
from curation.extensions.detection_ap import coco_engine, voc
from tests.worlds import coco as coco_world
from tests.worlds import voc as voc_world

READ = Reading()
UR = Measure("UR", "unknown recall", "TP / n", "%", "higher", undefined="no unknown object", ranked=True)


def made(values: dict[str, float | None], **more: Any) -> Result:
    report = Report(
        "toy",
        (UR,),
        lambda result: [
            Table(
                "classes",
                (Column("class"), Column("AP", "share"), Column("tp", "count", text=False)),
                [("=cat & dog", 1 / 3, 2), ("kite", None, 0)],
                title="Classes",
                file=name == "clean",
            )
            for name in values
        ],
        **more,
    )
    scored = [
        Scored(variant=name, found=Measured([Value("UR", value)], {}), method="m", task="t1", truth={}, predictions={})
        for name, value in values.items()
    ]
    return Result(report, {"protocol": "toy"}, scored=scored, notes=("twice", "twice"))


def test_a_number_is_had_by_its_key() -> None:
    result = made({"clean": 12.5})
    assert result["UR"] == result["t1/clean/UR"] == 12.5
    two = made({"clean": 12.5, "ore": None})
    assert two["UR"] == {"t1/clean": 12.5, "t1/ore": None}
    assert two.flat() == {"t1_clean_UR": 12.5}  # what is undefined is no number for a logger
    with pytest.raises(UsageError, match="one name for loggers"):
        made({"a b": 1.0, "a-b": 2.0}).flat()
    with pytest.raises(UsageError, match="UR"):
        result["AP"]


def test_the_table_of_measures_is_tidy_and_says_why_a_number_is_undefined() -> None:
    frame = made({"clean": 12.5, "ore": None}).measures
    assert frame["undefined"].tolist() == ["", "no unknown object"]
    assert frame["value"].tolist()[0] == 12.5
    assert math.isnan(frame["value"].tolist()[1])
    assert set(frame["task"]) == {"t1"}
    assert set(frame["unit"]) == {"%"}


@pytest.mark.parametrize("whole", [False, True])
def test_a_terminal_says_why_a_number_is_undefined(whole: bool) -> None:
    about = {"inputs": {}, "manifest": None, "known_classes_from": "truth"}
    found = [made({name: value}) for name, value in (("clean", 12.5), ("ore", None))]
    lines = [Result(Report("toy", (UR,)), about, scored=one.scored).lines(80, whole=whole) for one in found]
    assert "Undefined" not in lines[0]
    at = lines[1].index("Undefined")
    assert [line.split() for line in lines[1][at + 1 : at + 3]] == [
        ["measures", "reason"],
        ["UR", "no", "unknown", "object"],
    ]


def test_tables_of_one_name_are_one_frame() -> None:
    frame = made({"clean": 1.0, "ore": 2.0}).table("classes")
    assert list(frame.columns) == ["class", "AP", "tp"]
    assert frame["tp"].tolist() == [2, 0, 2, 0]
    with pytest.raises(UsageError, match="classes"):
        made({}).table("classes")


def test_one_declaration_gives_text_csv_latex_and_html() -> None:
    (table, _) = made({"clean": 1.0}).tables
    assert table.lines(80)[:3] == ["Classes", "  class       AP", "  =cat & dog  0.3333"]
    assert table.csv() == f"class,AP,tp\n'=cat & dog,{1 / 3!r},2\nkite,,0\n"
    assert r"=cat \& dog & 0.3333 \\" in table.latex()
    assert r"\toprule" in table.latex()
    assert "<td>=cat &amp; dog</td><td>0.3333</td>" in table.html()


def test_a_result_shows_itself_shortly() -> None:
    result = made({"clean": 12.5, "ore": None})
    assert repr(result) == "<Result of toy (t1/clean, t1/ore): 2 numbers>"
    html = result._repr_html_()
    assert "UR ↑" in html
    assert "<td>12.50</td>" in html
    assert result.notes == ("twice",)
    assert r"t1/clean & 12.50 \\" in result.latex()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "share", "-"),
        (0.12345, "share", "0.1235"),
        (12.345678, "%", "12.35"),
        (0.5, "ratio", "0.5000"),
        (7, "count", "7"),
        ("sha256:" + "a" * 64, "digest", "sha256:" + "a" * 12),
        ("plain", "", "plain"),
    ],
)
def test_a_unit_says_how_a_value_is_shown(value: Any, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_a_figure_is_had_in_memory_and_one_that_is_missing_says_why(tmp_path: Path) -> None:
    paths = voc_world.files(tmp_path)
    result = voc.evaluate(truth=paths["truth"], detections=paths["json"], reading=READ)
    picture = result.figure("precision_recall")
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert picture.csv.startswith("detector,class,score,recall,precision\n")
    assert not (tmp_path / "precision_recall.png").exists()
    files = {path.name: path.read_bytes() for path in result.save(tmp_path / "out", figures=True)}
    assert files["precision_recall.svg"] == picture.images["svg"]
    alone = {path.name: path.read_bytes() for path in result.save(tmp_path / "tables")}
    assert sorted(files.keys() - alone.keys()) == ["precision_recall.png", "precision_recall.svg"]
    assert alone["precision_recall.csv"] == files["precision_recall.csv"]
    assert {path.name for path in picture.save(tmp_path / "again")} == {"again.png", "again.svg", "again.csv"}
    none = made({}, drawings=lambda result: [Figure("curve", None, "no curve: there is nothing")])
    with pytest.raises(UsageError, match="no curve"):
        none.figure("curve")


@pytest.mark.parametrize("protocol", ["voc", "coco"])
def test_json_follows_its_schema_and_tables_hold_its_numbers(protocol: str, tmp_path: Path) -> None:
    if protocol == "voc":
        paths = voc_world.files(tmp_path)
        result = voc.evaluate(truth=paths["truth"], detections=paths["text"], reading=READ)
    else:
        paths = coco_world.files(tmp_path)
        result = coco_engine.evaluate(truth=paths["truth"], detections=paths["detections"], reading=READ)
    written = {path.name: path for path in result.save(tmp_path / "out", figures=True)}
    content = json.loads(written["results.json"].read_text(encoding="utf-8"))
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(content, schema)
    assert result.numbers() == {f"{protocol}/{row['measure']}": row["value"] for row in content["measures"]}
    read = pd.read_csv(io.BytesIO(written["average_precision.csv"].read_bytes()))
    frame = result.table("average_precision")
    shown_columns = [name for name in read.columns if name != "undefined"]
    assert read[shown_columns].equals(frame[shown_columns])
    (row,) = result.rows("mine")
    assert row.name == "mine"
    result.append(tmp_path / "rows.jsonl", "mine")
    assert [one for _, one in read_rows(tmp_path / "rows.jsonl").rows] == [row]
    assert {one.value for one in row.metrics.values() if one.value is not None} <= set(result.flat().values())
    assert all(re.fullmatch(r"[_a-zA-Z][_a-zA-Z0-9]*", name) for name in (*result.flat(), *result.settings()))
