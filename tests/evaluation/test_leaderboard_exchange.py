"""A leaderboard in the forms of others, held against what those demand."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest
import yaml

from curation.cli import main
from curation.errors import UsageError
from curation.evaluation.leaderboard.board import Leaderboard, leaderboard
from curation.evaluation.leaderboard.exchange import Origin, csv, eee_records, hub_entries, latex, markdown
from curation.evaluation.leaderboard.rows import append_rows, rows_of
from tests.evaluation.leaderboard_cases import MANIFEST, row_data, write_rows
from tests.worlds.runs import every_run

ORIGIN = Origin(
    repo="lab/open-set",
    model={"ours": "lab/ours-r50"},
    organisation="A lab",
    relationship="first_party",
    deployment="self_deployed",
    availability="open_weights",
    date="2026-01-02",
)
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
BOUND = {"anyOf": [{"type": "number"}, {"enum": ["Infinity", "-Infinity"]}]}
RECORD: dict[str, Any] = {
    # What eval.schema.json 0.3.0 of evaleval/every_eval_ever demands of the fields that are written here.
    "type": "object",
    "additionalProperties": False,
    "required": ["schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info",
                 "eval_library", "evaluation_results"],
    "properties": {
        "schema_version": {"const": "0.3.0"},
        "evaluation_id": {"type": "string"},
        "evaluation_timestamp": {"type": "string"},
        "retrieved_timestamp": {"type": "string", "pattern": "^[0-9]+$"},
        "source_metadata": {
            "type": "object",
            "required": ["source_type", "source_organization_name", "evaluator_relationship"],
            "properties": {
                "source_type": {"enum": ["documentation", "evaluation_run"]},
                "evaluator_relationship": {"enum": ["first_party", "third_party", "collaborative", "other"]},
            },
        },
        "eval_library": {"required": ["name", "version"], "properties": {"additional_details": TEXTS}},
        "model_info": {
            "type": "object",
            "required": ["name", "id", "additional_details"],
            "properties": {
                "additional_details": {
                    **TEXTS,
                    "required": ["deployment_type", "model_availability"],
                    "properties": {
                        "deployment_type": {"enum": ["self_deployed", "externally_managed", "unknown"]},
                        "model_availability": {"enum": ["open_weights", "closed_weights", "unknown"]},
                    },
                }
            },
        },
        "evaluation_results": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["evaluation_name", "source_data", "metric_config", "score_details"],
                "properties": {
                    "source_data": {
                        "type": "object",
                        "required": ["dataset_name", "source_type"],
                        "properties": {"source_type": {"enum": ["hf_dataset", "other"]}, "additional_details": TEXTS},
                    },
                    "metric_config": {
                        "type": "object",
                        "required": ["lower_is_better", "score_type", "min_score", "max_score"],
                        "properties": {
                            "lower_is_better": {"type": "boolean"},
                            "score_type": {"const": "continuous"},
                            "min_score": BOUND,
                            "max_score": BOUND,
                            "metric_parameters": TEXTS,
                        },
                    },
                    "score_details": {"required": ["score"], "properties": {"score": {"type": "number"}}},
                },
            },
        },
    },
}  # fmt: skip


def rows() -> list[dict[str, Any]]:
    return [
        row_data("ours", 0.25, metrics=metrics(51.0, 0.25)),
        row_data("100% of_theirs & more", 0.5, metrics=metrics(60.0, 0.5)),
        row_data("nothing", None, metrics=metrics(60.004, None)),
    ]


def metrics(percent: float, ratio: float | None) -> dict[str, Any]:
    return {
        "mAP11": {"value": percent, "unit": "%", "better": "higher"},
        "AWI@0.3": {"value": ratio, "unit": "ratio", "better": "lower"},
    }


@pytest.fixture
def board(tmp_path: Path) -> Leaderboard:
    return leaderboard(write_rows(tmp_path / "results.jsonl", *rows()))


def test_csv_holds_every_digit_and_an_empty_cell_for_what_is_undefined(board: Leaderboard, tmp_path: Path) -> None:
    (tmp_path / "board.csv").write_text(csv(board), encoding="utf-8")
    frame = pd.read_csv(tmp_path / "board.csv").set_index("method")
    assert frame.loc["ours", "AWI@0.3"] == 0.25
    assert pd.isna(frame.loc["nothing", "AWI@0.3"])
    assert frame.loc["nothing", "mAP11"] == 60.004
    assert set(frame["data"]) == {" ".join(MANIFEST.values())}


def test_the_best_is_bold_and_equal_digits_are_equally_good(board: Leaderboard) -> None:
    text = markdown(board)
    assert text.count("**60.00**") == 2
    assert "**0.2500**" in text
    assert "| rank | method |" in text
    tables = latex(board)
    assert r"100\% of\_theirs \& more" in tables
    assert tables.count(r"\textbf{60.00}") == 2
    assert r"mAP11 $\uparrow$" in tables
    assert MANIFEST["digest"] in tables
    assert "|" not in re.search(r"begin\{tabular\}\{(.*)\}", tables)[1]  # type: ignore[index]
    for line in tables.splitlines():
        assert line.startswith("%") or re.fullmatch(r"(\\(begin|end)\{tabular\}.*|\\\w+rule|.* \\\\|)", line), line


def test_latex_compiles(board: Leaderboard, tmp_path: Path) -> None:
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("no LaTeX is at hand: the grammar is checked above")
    text = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "table.tex").write_text(text % latex(board), encoding="utf-8")
    command = [program, "-interaction=batchmode", "-halt-on-error", "-no-shell-escape", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (tmp_path / "table.log").read_text(errors="replace")[-2000:]


def test_a_record_of_each_benchmark_is_one_of_every_eval_ever(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    protocols = set()
    (tmp_path / "worlds").mkdir()
    for run in every_run(tmp_path / "worlds"):
        append_rows(file, rows_of(run.result()))
        protocols.add(run.protocol)
    records = eee_records(leaderboard(file), ORIGIN)
    assert {path.parts[1] for path in records} == protocols
    for path, text in records.items():
        record = json.loads(text)
        jsonschema.Draft7Validator(RECORD).validate(record)
        assert path.parts[0] == "data"
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json", path.name)
        for one in record["evaluation_results"]:
            low, high = (float(one["metric_config"][end].lower()) if isinstance(one["metric_config"][end], str)
                         else one["metric_config"][end] for end in ("min_score", "max_score"))  # fmt: skip
            assert low <= one["score_details"]["score"] <= high


def test_undefined_numbers_and_rows_without_any_are_left_out(board: Leaderboard) -> None:
    records = {json.loads(text)["model_info"]["id"]: json.loads(text) for text in eee_records(board, ORIGIN).values()}
    assert [len(records[name]["evaluation_results"]) for name in ("lab/ours-r50", "nothing")] == [2, 1]
    assert {path.parts[2] for path in eee_records(board, ORIGIN)} == {"lab", "unknown"}
    with pytest.raises(UsageError, match="who evaluated, and when"):
        eee_records(board, Origin())


def test_the_hub_gets_no_number_of_which_lower_is_better(board: Leaderboard, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one model"):
        hub_entries(board, ORIGIN)
    one = leaderboard(write_rows(tmp_path / "one.jsonl", rows()[0]))
    (entry,) = hub_entries(one, ORIGIN)
    assert entry["dataset"] == {"id": "lab/open-set", "task_id": "elephant/closed + wilderness/paper/mAP11"}
    assert (entry["value"], entry["date"]) == (51.0, "2026-01-02")
    assert MANIFEST["digest"] in entry["notes"]
    with pytest.raises(UsageError, match="name a dataset"):
        hub_entries(one, Origin())
    hub = pytest.importorskip("huggingface_hub")
    if hasattr(hub, "parse_eval_result_entries"):
        (read,) = hub.parse_eval_result_entries([entry])
        assert (read.dataset_id, read.value) == ("lab/open-set", 51.0)


@pytest.mark.parametrize(
    "wrong", [{"repo": "../x"}, {"repo": "a b"}, {"model": {"ours": "/ours"}}, {"date": "02.01.2026"}]
)
def test_names_and_dates_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"name on the hub|Invalid date"):
        Origin(**wrong)


def test_the_command_prints_or_writes_each_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_rows(tmp_path / "results.jsonl", rows()[0])
    origin = ["--repo", "lab/open-set", "--set", "organisation=A lab", "--date", "2026-01-02"]
    for form in ("text", "html", "markdown", "csv", "latex", "hub"):
        assert main(["leaderboard", str(file), "--format", form, *origin]) == 0
        printed = capsys.readouterr().out
        assert main(["leaderboard", str(file), "--format", form, "--out", str(tmp_path / form), *origin]) == 0
        assert (tmp_path / form).read_text(encoding="utf-8") == printed
        capsys.readouterr()
    assert yaml.safe_load((tmp_path / "hub").read_text(encoding="utf-8"))[0]["value"] == 51.0
    assert main(["leaderboard", str(file), "--format", "eee", *origin]) == 2
    assert "--out FOLDER" in capsys.readouterr().err
    assert main(["leaderboard", str(file), "--format", "eee", "--out", str(tmp_path / "eee"), *origin]) == 0
    (record,) = (tmp_path / "eee").rglob("*.json")
    assert json.loads(record.read_text(encoding="utf-8"))["model_info"]["id"] == "ours"
