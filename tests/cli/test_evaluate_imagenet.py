import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.cli import main
from curation.manifest.manifest import write_manifest
from tests.evaluation.classification_rows import of_result
from tests.evaluation.open_set_manifests import LISTS, TEST_LABELS, VAL_LABELS, open_set_manifest, write_truth
from tests.evaluation.oscr_cases import BACKGROUND, LABELS, SOFTMAX, table


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    np.savez(tmp_path / "soft.npz", gt=np.array(LABELS, float), scores=np.array(table(SOFTMAX)))
    np.savez(tmp_path / "ground.npz", gt=np.array(LABELS, float), scores=np.array(table(BACKGROUND)))
    return {name: tmp_path / name for name in ("soft.npz", "ground.npz", "out")}


def run(*arguments: object) -> int:
    return main(["evaluate", "imagenet", *map(str, arguments)])


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def classifiers(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = of_result(as_json(capsys, *arguments))["classifiers"]
    return found


def error(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run(*arguments) == 2
    return capsys.readouterr().err


def test_the_worked_example(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, "--scores", files["soft.npz"], "--variant", "all", "--set", "queries=0,.1,.25,.5,.75,1")
    soft = of_result(result)["classifiers"]["soft"]
    rates = soft["oscr"]["exact"]["negative"]["ccr_at_fpr"]
    assert list(rates.values()) == [0.25, 0.25, 0.625, 0.75, 0.75, 0.75]
    assert soft["oscr"]["paper"]["unknown"]["ccr_at_fpr"][".1"] is None
    assert set(result["variants"]) == {"exact", "paper", "comparison", "table2"}
    assert result["inputs"]["soft"]["scores"]["kind"] == "probabilities"
    assert result["inputs"]["soft"]["scores"]["sha256"].startswith("sha256:")


def test_the_background_column(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    grid = ("--variant", "table2", "--set", "queries=0.25,0.5,0.75")
    rates = classifiers(capsys, "--scores", files["ground.npz"], "--background", *grid)["ground"]["oscr"]["table2"][
        "unknown"
    ]["ccr_at_fpr"]
    assert list(rates.values()) == [0.25, None, 0.625]
    # Unsaid, the column counts as a class: labels stay valid, and nothing else could tell.
    assert len(classifiers(capsys, "--scores", files["ground.npz"])["ground"]["classes"]) == 4


def test_a_manifest_orders_and_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_manifest(open_set_manifest(), tmp_path / "manifest")
    scores = np.random.default_rng(0).random((6, 2))
    scores /= scores.sum(axis=1, keepdims=True)
    images = np.array([one.partition(":")[2] + ".JPEG" for one in LISTS["test"]])
    np.savez(tmp_path / "test.npz", scores=scores[::-1], images=images[::-1])
    np.savez(tmp_path / "plain.npz", scores=scores, gt=np.array(TEST_LABELS))
    np.savez(tmp_path / "val.npz", scores=scores[:3], gt=np.array(VAL_LABELS))
    manifest = ("--manifest", tmp_path / "manifest", "--part", "test", "--truth", write_truth(tmp_path))
    val = ("--scores", f"val={tmp_path / 'val.npz'}", "--part", "val=val")
    named = as_json(capsys, "--scores", f"x={tmp_path / 'test.npz'}", *val, *manifest)
    plain = as_json(capsys, "--scores", f"x={tmp_path / 'plain.npz'}", *val, *manifest)
    x = of_result(named)["classifiers"]["x"]
    assert of_result(plain)["classifiers"]["x"] == x
    # Only a named part pins the images of a classifier.
    assert [(one["method"], one["part"], one["pinned"]) for one in named["scored"]] == [("x", "test", True)]
    assert named["scored"][0]["truth"] == {"labels": named["inputs"]["x"]["scores"]["labels_sha256"]}
    assert not as_json(capsys, "--scores", tmp_path / "plain.npz")["scored"][0]["pinned"]
    assert named["manifest"]["parts"] == {"scores": "test", "val": "val"}
    assert x["classes"][0]["class"] == "n00000001"
    assert x["validation"]["n"] == {"known": 2, "negative": 1, "unknown": 0}
    swapped = error(capsys, "--scores", tmp_path / "plain.npz", *manifest[:2], "--part", "val")
    assert "3 rows, in the order of part val" in swapped


def test_kinds_of_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probabilities = np.array(table(SOFTMAX)[1:12])
    np.savez(tmp_path / "a.npz", labels=np.array(LABELS[1:12]), mine=np.log(probabilities) + 3)
    given = ("--scores", tmp_path / "a.npz", "--key", "score=mine")
    assert "--kind logits" in error(capsys, *given)
    logits = classifiers(capsys, *given, "--kind", "logits")["a"]
    real = classifiers(capsys, *given, "--kind", "real")["a"]
    assert logits["confidence"]["negative"]["gamma"] > 0.7
    assert real["confidence"]["negative"]["gamma"] is None
    # Maximum logit and softmax rank alike here: each row's logarithms were shifted by the same number.
    assert real["oscr"]["exact"]["negative"]["ccr_at_fpr"] == logits["oscr"]["exact"]["negative"]["ccr_at_fpr"]


def test_kind_and_background_by_classifier(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    both = ("--scores", f"s={files['soft.npz']}", "--scores", f"g={files['ground.npz']}")
    result = as_json(capsys, *both, "--background", "g=last", "--kind", "real", "--kind", "g=probabilities")
    found = of_result(result)["classifiers"]
    assert (found["g"]["background"], found["s"]["background"]) == ("a column", "none")
    assert [result["inputs"][name]["scores"]["kind"] for name in "sg"] == ["real", "probabilities"]
    # What is said of one goes before what is said of all.
    again = as_json(capsys, *both, "--background", "s=none", "--background", "--variant", "table2")
    assert [(one["method"], one["variant"]) for one in again["scored"]] == [("g", "table2")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--part", "test"), "--manifest MANIFEST --part PART"),
        (("--truth", "x"), "--manifest MANIFEST --part PART"),
        (("--scores", "val=b=x.npz"), "No such classifier"),
        (("--scores", "soft=x.npz"), "given twice"),
        (("--kind", "best"), "--kind auto|logits"),
        (("--background", "hard=last"), "with NAME one of soft"),
        (("--variant", "table2"), "no classifier has one"),
        (("--set", "queries=0.1,2"), "from 0 to 1"),
        (("--set", "queries="), "expected: Q,Q"),
        (("--key", "score=x"), "has no scores"),
        (("--manifest", "nowhere"), "No such manifest"),
        (("--scores", "val=absent.npz"), "does not exist"),
        (("--labels", "val=l.npy"), "--scores val=soft=FILE"),
        (("--manifest", "m", "--part", "val=val"), "--scores val=FILE"),
    ],
)
def test_what_cannot_be(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert words in error(capsys, "--scores", files["soft.npz"], *arguments, "--out", files["out"])
    assert not files["out"].exists()
