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

from curation.evaluation.inputs import Reading
from curation.evaluation.leaderboard_rows import read_leaderboard_rows
from curation.evaluation.measures import Measure, Measured, Value
from curation.evaluation.result import Column, Report, Result, Scored, Table, schema_text
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


def test_the_table_of_measures_is_tidy_and_says_why_a_number_is_undefined() -> None:
    frame = made({"clean": 12.5, "ore": None}).measures
    assert frame["undefined"].tolist() == ["", "no unknown object"]
    assert frame["value"].tolist()[0] == 12.5
    assert math.isnan(frame["value"].tolist()[1])
    assert set(frame["task"]) == {"t1"}
    assert set(frame["unit"]) == {"%"}


def test_one_declaration_gives_text_csv_latex_and_html() -> None:
    (table, _) = made({"clean": 1.0}).tables
    assert table.lines(80)[:3] == ["Classes", "  class       AP", "  =cat & dog  0.3333"]
    assert table.csv() == f"class,AP,tp\n'=cat & dog,{1 / 3!r},2\nkite,,0\n"
    assert r"=cat \& dog & 0.3333 \\" in table.latex()
    assert r"\toprule" in table.latex()
    assert "<td>=cat &amp; dog</td><td>0.3333</td>" in table.html()


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
    assert [one for _, one in read_leaderboard_rows(tmp_path / "rows.jsonl").rows] == [row]
    assert {one.value for one in row.metrics.values() if one.value is not None} <= set(result.numbers().values())
    assert all(re.fullmatch(r"[_a-zA-Z][_a-zA-Z0-9]*", name) for name in result.settings())
