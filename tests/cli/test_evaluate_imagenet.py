import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.cli import main
from curation.ledger import LEDGER
from curation.manifest.manifest import write_manifest
from tests.evaluation.open_set_manifests import LISTS, TEST_LABELS, VAL_LABELS, open_set_manifest, write_truth
from tests.evaluation.oscr_cases import BACKGROUND, LABELS, SOFTMAX, table
from tests.shell import Shell


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    np.savez(tmp_path / "soft.npz", gt=np.array(LABELS, float), scores=np.array(table(SOFTMAX)))
    np.savez(tmp_path / "ground.npz", gt=np.array(LABELS, float), scores=np.array(table(BACKGROUND)))
    (tmp_path / "epochs.csv").write_text("epoch,gamma_plus,gamma_minus\n1,.25,.5\n2,.5,.75\n3,.5,.5\n")
    return {name: tmp_path / name for name in ("soft.npz", "ground.npz", "epochs.csv", "out")}


def run(*arguments: object) -> int:
    return main(["evaluate", "imagenet", *map(str, arguments)])


def as_json(shell: Shell, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = shell.data("evaluate", "imagenet", *arguments, "--json")
    return found


def error(shell: Shell, *arguments: object) -> str:
    return shell.err("evaluate", "imagenet", *arguments)


def test_the_worked_example(files: dict[str, Path], shell: Shell) -> None:
    result = as_json(shell, "--scores", files["soft.npz"], "--variant", "all", "--set", "queries=0,.1,.25,.5,.75,1")
    soft = result["classifiers"]["soft"]
    rates = soft["oscr"]["exact"]["negative"]["ccr_at_fpr"]
    assert list(rates.values()) == [0.25, 0.25, 0.625, 0.75, 0.75, 0.75]
    assert soft["oscr"]["paper"]["unknown"]["ccr_at_fpr"][".1"] is None
    assert set(result["grids"]) == {"exact", "paper", "comparison", "table2"}
    assert result["inputs"]["soft"]["scores"]["kind"] == "probabilities"
    assert result["inputs"]["soft"]["scores"]["sha256"].startswith("sha256:")


def test_tables_for_people(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--scores", files["soft.npz"], "--scores", f"val={files['soft.npz']}", "--bootstrap", "20") == 0
    text = capsys.readouterr().out
    for words in ("CCR@0.001", "0.7409", "classes of lowest accuracy", "95 % intervals over classes"):
        assert words in text


def test_the_first_epoch_may_be_number_zero(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files["epochs.csv"].write_text("epoch,gamma_plus,gamma_minus\n0,.75,.75\n1,.5,.5\n")
    assert run("--scores", files["soft.npz"], "--epochs", files["epochs.csv"]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if "epoch kept" in one]
    assert line.split() == ["epoch", "kept", "0"]


def test_the_background_column(files: dict[str, Path], shell: Shell) -> None:
    grid = ("--variant", "table2", "--set", "queries=0.25,0.5,0.75")
    result = as_json(shell, "--scores", files["ground.npz"], "--background", *grid)
    rates = result["classifiers"]["ground"]["oscr"]["table2"]["unknown"]["ccr_at_fpr"]
    assert list(rates.values()) == [0.25, None, 0.625]
    # Unsaid, the column counts as a class: labels stay valid, and nothing else could tell.
    assert len(as_json(shell, "--scores", files["ground.npz"])["classifiers"]["ground"]["classes"]) == 4


@pytest.mark.usefixtures("unpainted")
def test_files_that_are_written(files: dict[str, Path], shell: Shell) -> None:
    arguments = ("--scores", f"a={files['soft.npz']}", "--scores", f"b={files['soft.npz']}", "--epochs",
                 f"b={files['epochs.csv']}", "--variant", "all", "--bootstrap", 5)  # fmt: skip
    result = as_json(shell, *arguments, "--out", files["out"], "--figures")
    saved = json.loads((files["out"] / "results.json").read_text())
    written = saved.pop("written")
    assert saved == result
    assert result["epochs"] == {"b": {"kept": 2, "of": 3}}
    names = {path.name for path in files["out"].iterdir()} - {LEDGER}
    stems = ("oscr_exact", "oscr_paper", "oscr_comparison", "scores", "confidence")
    pictures = {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg", "csv")}
    assert names == pictures | {"metrics.csv", "classes.csv", "results.json"}
    assert set(written) == names - {"results.json"}
    with (files["out"] / "metrics.csv").open(newline="") as stream:
        metrics = {(row["classifier"], row["metric"]): row["value"] for row in csv.DictReader(stream)}
    assert metrics["a", "oscr.exact.unknown.ccr_at_fpr.0.1"] == "0.0"
    assert metrics["a", "oscr.paper.unknown.ccr_at_fpr.0.1"] == ""
    gaps = result["bootstrap"]["differences"]["b"]
    assert {cell["estimate"] for cell in gaps.values()} == {0}


def test_the_same_bytes_again(files: dict[str, Path]) -> None:
    for out in ("one", "two"):
        run("--scores", files["soft.npz"], "--bootstrap", 10, "--out", files["out"] / out)
    for path in sorted((files["out"] / "one").iterdir()):
        assert path.read_bytes() == (files["out"] / "two" / path.name).read_bytes(), path.name


def test_a_manifest_orders_and_labels(tmp_path: Path, shell: Shell) -> None:
    write_manifest(open_set_manifest(), tmp_path / "manifest")
    scores = np.random.default_rng(0).random((6, 2))
    scores /= scores.sum(axis=1, keepdims=True)
    images = np.array([one.partition(":")[2] + ".JPEG" for one in LISTS["test"]])
    np.savez(tmp_path / "test.npz", scores=scores[::-1], images=images[::-1])
    np.savez(tmp_path / "plain.npz", scores=scores, gt=np.array(TEST_LABELS))
    np.savez(tmp_path / "val.npz", scores=scores[:3], gt=np.array(VAL_LABELS))
    manifest = ("--manifest", tmp_path / "manifest", "--part", "test", "--truth", write_truth(tmp_path))
    val = ("--scores", f"val={tmp_path / 'val.npz'}", "--part", "val=val")
    named = as_json(shell, "--scores", f"x={tmp_path / 'test.npz'}", *val, *manifest)
    plain = as_json(shell, "--scores", f"x={tmp_path / 'plain.npz'}", *val, *manifest)
    assert named["classifiers"] == plain["classifiers"]
    assert named["manifest"]["parts"] == {"scores": "test", "val": "val"}
    assert named["classifiers"]["x"]["classes"][0]["class"] == "n00000001"
    assert named["classifiers"]["x"]["validation"]["n"] == {"known": 2, "negative": 1, "unknown": 0}
    swapped = error(shell, "--scores", tmp_path / "plain.npz", *manifest[:2], "--part", "val")
    assert "3 rows, in the order of part val" in swapped


def test_npy_with_labels_beside_it(tmp_path: Path, shell: Shell) -> None:
    np.save(tmp_path / "s.npy", np.array(table(SOFTMAX)))
    np.save(tmp_path / "l.npy", np.array(LABELS))
    result = as_json(shell, "--scores", tmp_path / "s.npy", "--labels", tmp_path / "l.npy")
    assert result["classifiers"]["s"]["accuracy"] == 0.75
    assert result["option_files"]["labels"]["s"]["name"] == "l.npy"
    assert "No labels given" in error(shell, "--scores", tmp_path / "s.npy")


def test_kinds_of_scores(tmp_path: Path, shell: Shell) -> None:
    probabilities = np.array(table(SOFTMAX)[1:12])
    np.savez(tmp_path / "a.npz", labels=np.array(LABELS[1:12]), mine=np.log(probabilities) + 3)
    given = ("--scores", tmp_path / "a.npz", "--key", "score=mine")
    assert "--kind logits" in error(shell, *given)
    logits = as_json(shell, *given, "--kind", "logits")["classifiers"]["a"]
    real = as_json(shell, *given, "--kind", "real")["classifiers"]["a"]
    assert logits["confidence"]["negative"]["gamma"] > 0.7
    assert real["confidence"]["negative"]["gamma"] is None
    # Maximum logit and softmax rank alike here: each row's logarithms were shifted by the same number.
    assert real["oscr"]["exact"]["negative"]["ccr_at_fpr"] == logits["oscr"]["exact"]["negative"]["ccr_at_fpr"]


def test_kind_and_background_by_classifier(files: dict[str, Path], shell: Shell) -> None:
    both = ("--scores", f"s={files['soft.npz']}", "--scores", f"g={files['ground.npz']}")
    result = as_json(shell, *both, "--background", "g=last", "--kind", "real", "--kind", "g=probabilities")
    assert result["classifiers"]["g"]["background"] == "a column"
    assert result["classifiers"]["s"]["background"] == "none"
    assert [result["inputs"][name]["scores"]["kind"] for name in "sg"] == ["real", "probabilities"]
    # What is said of one goes before what is said of all.
    again = as_json(shell, *both, "--background", "s=none", "--background", "--variant", "table2")
    assert [len(one["oscr"]) for one in again["classifiers"].values()] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--part", "test"), "--manifest MANIFEST --part PART"),
        (("--truth", "x"), "--manifest MANIFEST --part PART"),
        (("--scores", "val=b=x.npz"), "There is no such classifier"),
        (("--scores", "soft=x.npz"), "given twice"),
        (("--kind", "best"), "--kind auto|logits"),
        (("--background", "hard=last"), "with NAME one of soft"),
        (("--variant", "table2"), "no classifier has one"),
        (("--set", "queries=0.1,2"), "from 0 to 1"),
        (("--key", "score=x"), "has no scores"),
        (("--bootstrap", "-3"), "bootstrap"),
        (("--manifest", "nowhere"), "no such manifest"),
        (("--scores", "val=absent.npz"), "does not exist"),
        (("--labels", "val=l.npy"), "--scores val=soft=FILE"),
        (("--manifest", "m", "--part", "val=val"), "--scores val=FILE"),
        (("--epochs", "absent.csv"), "does not exist"),
    ],
)
def test_what_cannot_be(files: dict[str, Path], shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    assert words in error(shell, "--scores", files["soft.npz"], *arguments, "--out", files["out"])
    assert not files["out"].exists()


def test_a_setting_without_a_value_is_refused(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--scores", files["soft.npz"], "--set", "queries=", "--out", files["out"])
    assert caught.value.code == 2
    assert "expected queries=Q,Q" in capsys.readouterr().err
    assert not files["out"].exists()


def test_help_loads_no_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--help")
    assert caught.value.code == 0
    assert "--scores [NAME=]FILE" in capsys.readouterr().out
