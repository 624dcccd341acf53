"""``curation evaluate osod3`` from files, and wrong use."""

from pathlib import Path

import pytest

from curation.cli import main
from curation.ledger import LEDGER
from tests.evaluation import osod3_rows
from tests.evaluation.osod3_world import write_world
from tests.shell import Shell


def test_one_case(tmp_path: Path, shell: Shell) -> None:
    paths = write_world(tmp_path)
    given = ("evaluate", "osod3", "--truth", paths["gt"], "--detections", paths["detections"], "--classes",
             paths["classes"], "--variant", "all", "--out", tmp_path / "out")  # fmt: skip
    result = shell.data(*given, "--no-cache", "--json")
    assert osod3_rows.of_result(result)["test"]["AP_unk"] == pytest.approx(22.7228, abs=1e-4)
    written = {path.name for path in (tmp_path / "out").iterdir()} - {LEDGER}
    pictures = {f"open_set_error_{name}.csv" for name in ("clean", "voc")}
    assert written == pictures | {
        "average_precision.csv",
        "counts.csv",
        "measures.csv",
        "thresholds.csv",
        "results.json",
    }
    assert result["inputs"]["test"]["detections"]["sha256"].startswith("sha256:")


def test_cases_and_their_mean(tmp_path: Path, shell: Shell) -> None:
    paths = write_world(tmp_path)
    given = ("evaluate", "osod3", "--truth", paths["gt"], "--detections", f"t1={paths['detections']}",
             "--detections", f"t2={paths['detections']}", "--classes", paths["classes"])  # fmt: skip
    result = shell.data(*given, "--no-cache", "--json")
    assert list(osod3_rows.of_result(result)) == ["t1", "t2"]
    assert result["over_cases"]["AP_unk"]["std_population"] == 0
    assert result["over_cases"]["AP_unk"]["n"] == 2


def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    base = ["evaluate", "osod3", "--truth", str(paths["gt"]), "--detections", str(paths["detections"])]
    for more, words in (
        ([], "known"),
        (["--classes", str(tmp_path / "none.json")], "exist"),
        (["--classes", str(paths["classes"]), "--manifest", "osod3/x"], "Two options"),
        (["--classes", f"t1={paths['classes']}"], "There is no such case"),
        (["--classes", str(paths["classes"]), "--set", "thetas=a,b"], "ascending"),
    ):
        assert main([*base, *more, "--no-cache"]) != 0
        assert words in capsys.readouterr().err
