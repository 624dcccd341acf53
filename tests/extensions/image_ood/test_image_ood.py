"""Image-level OOD scores: formulas in plain loops, scikit-learn's route, sets, groups, runs, images left out."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.registry import evaluation
from curation.core.errors import CurationError, CurationWarning, EvaluationError, PredictionError, UsageError
from curation.evaluation.result import Result
from curation.evaluation.separability import (
    ScoreSteps,
    aupr_trapezoid,
    auroc,
    fpr95_at_vertices,
    fpr95_first,
    fpr95_quantile,
    fpr95_rank,
)
from curation.extensions.image_ood.evaluation import OodSets, evaluation_as
from curation.extensions.image_ood.images import read_image_scores
from curation.extensions.image_ood.measures import OodRules, numbers_of, report_as
from tests.evaluation.ood_reference import area_under_roc, fpr_first, fpr_ood_positive
from tests.evaluation.ood_reference import aupr_trapezoid as trapezoid
from tests.extensions.image_ood.image_ood_rows import of_result

IDS, OODS = np.array([0.9, 0.8, 0.8, 0.7, 0.4]), np.array([0.8, 0.6, 0.4, 0.3])
EXACT = OodRules(name="exact", meaning="")
VERTICES = OodRules(name="vertices", meaning="", fpr="FPR95_ood_positive_vertices")
QUANTILE = OodRules(name="quantile", meaning="", fpr="FPR95_quantile", not_finite="repair")
RANK = OodRules(name="rank", meaning="", fpr="FPR95_rank", nothing_found=0.5)
NEAR = OodSets(
    id="seen",
    groups={"near": ("one", "two"), "far": ("three",)},
    shifted=("shifted",),
    variants={rule.name: rule for rule in (EXACT, VERTICES, QUANTILE)},
)
SCORE = evaluation_as(report_as("drawn"), NEAR)


def drawn(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    n_id, n_ood, levels = rng.integers(1, 60, 3)
    return rng.integers(0, levels, n_id).astype(float), rng.integers(0, levels, n_ood).astype(float)


@pytest.mark.parametrize("seed", range(20))
def test_against_formulas_in_plain_loops(seed: int) -> None:
    ids, oods = drawn(seed)
    steps, own, others = ScoreSteps.from_scores(ids, oods), ids.tolist(), oods.tolist()
    assert Fraction(auroc(steps)).limit_denominator(10_000) == area_under_roc(own, others)
    assert aupr_trapezoid(steps) == pytest.approx(trapezoid(own, others), abs=1e-12)
    negated = [-one for one in others], [-one for one in own]
    assert aupr_trapezoid(steps.mirrored) == pytest.approx(trapezoid(*negated), abs=1e-12)
    assert fpr95_first(steps) == fpr_first(own, others)
    assert fpr95_first(steps.mirrored) == fpr_ood_positive(own, others)


def openood(ids: Any, oods: Any) -> dict[str, float]:
    """The steps of OpenOOD's ``auc_and_fpr_recall``, on scikit-learn."""
    metrics = pytest.importorskip("sklearn.metrics")
    conf = np.concatenate([ids, oods])
    indicator = np.repeat([0, 1], [len(ids), len(oods)])
    fpr, tpr, _ = metrics.roc_curve(indicator, -conf)
    precision_in, recall_in, _ = metrics.precision_recall_curve(1 - indicator, conf)
    precision_out, recall_out, _ = metrics.precision_recall_curve(indicator, -conf)
    return {
        "AUROC": metrics.auc(fpr, tpr),
        "AUPR_IN": metrics.auc(recall_in, precision_in),
        "AUPR_OUT": metrics.auc(recall_out, precision_out),
        "FPR95": fpr[np.argmax(tpr >= 0.95)],
    }


def test_openood_on_scikit_learn() -> None:
    for seed in range(500):
        ids, oods = drawn(seed)
        expected, found = openood(ids, oods), numbers_of(ids, oods, [VERTICES])[0]
        assert found == pytest.approx(expected, abs=1e-12), seed
        assert found["FPR95"] == expected["FPR95"], seed


def test_the_vertex_that_scikit_learn_leaves_out() -> None:
    """Twenty scores, each with 5 ID and 5 OOD images: all steps are equal, so that only the ends are left."""
    scores = np.repeat(np.arange(20.0), 5)
    exact, vertices = numbers_of(scores, scores, [EXACT, VERTICES])
    assert (exact["FPR95"], vertices["FPR95"]) == (0.95, 1.0)
    assert openood(scores, scores)["FPR95"] == 1.0
    # Without scores that both share, runs keep their ends.
    apart = ScoreSteps.from_scores(scores, scores + 0.5)
    assert fpr95_at_vertices(apart) == fpr95_first(apart.mirrored)


def test_the_quantile_is_interpolated_and_includes_what_equals_it() -> None:
    # 0.05 * 9 = 0.45 between the two lowest of ten.
    assert fpr95_quantile(np.arange(10.0), np.array([0.44, 0.46, 0.47])) == pytest.approx(2 / 3)
    # A hair above 0.05 is lost in a threshold of 1001.
    assert fpr95_quantile(np.arange(1000.0, 1021), np.array([1000.0, 1001, 1002])) == pytest.approx(2 / 3)
    assert fpr95_quantile(np.array([np.nan, 1.0]), np.array([2.0])) == 0.0


def fpr_ninco(ids: list[float], oods: list[float]) -> float:
    """NINCO's ``np.mean(ood >= np.quantile(ids, 1 - 0.95))``, in Python's floats."""
    ranked, place = sorted(ids), (1 - 0.95) * (len(ids) - 1)
    low = ranked[int(place)]
    threshold = low + (ranked[min(int(place) + 1, len(ids) - 1)] - low) * (place - int(place))
    return sum(one >= threshold for one in oods) / len(oods)


def test_the_quantile_is_that_of_the_authors_floating_point(tmp_path: Path) -> None:
    """Of 21 ID scores 0.05 is the second, and 1 - 0.95 a hair more: what equals the second is not counted."""
    assert (1 - 0.95) * 20 > 1
    assert fpr95_quantile(np.arange(1.0, 22), np.array([2.0, 2, 0, 0])) == 0
    assert fpr95_quantile(np.arange(1.0, 22), np.array([2.1, 2, 0, 0])) == 0.25
    for seed in range(200):
        rng = np.random.default_rng(seed)
        ids, oods = rng.integers(0, 30, 20 * rng.integers(1, 4) + 1), rng.integers(0, 30, 9)
        assert fpr95_quantile(ids * 1.0, oods * 1.0) == fpr_ninco(ids.tolist(), oods.tolist()), seed
    write(tmp_path / "imagenet.csv", [f"c/{n}" for n in range(21)], range(1, 22))
    write(tmp_path / "ninco.csv", [f"owl/{n}" for n in range(4)], [2, 2, 0, 0])
    rows = numbers(evaluation("ninco").evaluate(scores=tmp_path, variant="ninco"), "published", "ood", "ninco")
    assert rows["classes"]["FPR95"] == rows["ninco"]["FPR95"] == 0


def test_the_rank_is_rounded_to_even_and_excludes_what_equals_it() -> None:
    # round(0.05 * 50) = round(2.5) = 2, round(0.05 * 70) = round(3.5) = 4.
    assert fpr95_rank(np.arange(50.0), np.array([1.0, 2.0, 3.0])) == pytest.approx(1 / 3)
    assert fpr95_rank(np.arange(70.0), np.array([3.0, 4.0, 5.0])) == pytest.approx(1 / 3)
    assert fpr95_rank(np.array([1.0]), np.array([2.0, 1.0])) == 0.5


def test_nothing_accepted_has_precision_one_half_in_ssb() -> None:
    steps = ScoreSteps.from_scores(np.array([2.0, 1.0]), np.array([0.0]))
    assert aupr_trapezoid(steps, start=0.5) == pytest.approx((0.75 + 1) / 2)
    assert numbers_of(np.array([2.0, 1.0]), np.array([0.0]), [RANK])[0]["AUPR_IN"] == pytest.approx(0.875)


def write(path: Path, names: list[str], scores: Any, labels: Any = None, predictions: Any = None) -> None:
    columns = {"image": names, "score": scores, "label": labels, "prediction": predictions}
    given = {key: list(values) for key, values in columns.items() if values is not None}
    lines = [",".join(given), *(",".join(map(str, row)) for row in zip(*given.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def folder(path: Path, seed: int = 0) -> Path:
    """Five sets of ten to thirty images, one of them named by folder and stem."""
    path.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for place, (name, n) in enumerate({"seen": 30, "shifted": 12, "one": 10, "two": 14, "three": 20}.items()):
        scores = rng.normal(1 if place < 2 else 0, 1, n).round(2)
        names = [f"{name}/{number:03}.jpg" for number in range(n)]
        labels = np.arange(n) % 3
        known = place < 2
        predictions = np.where(np.arange(n) % 5, labels, 3)
        write(path / f"{name}.csv", names, scores, labels if known else None, predictions if known else None)
    return path


def numbers(result: Result, *places: str) -> dict[str, Any]:
    found: Any = of_result(result.json_data())["runs"]
    for place in (next(iter(found)), *places):
        found = found[place]
    return found


def test_sets_groups_and_accuracy(tmp_path: Path) -> None:
    result = SCORE(scores=folder(tmp_path / "run"), variant="all")
    rows = numbers(result, "published", "ood", "exact")
    assert list(rows) == ["one", "two", "three", "near", "far"]
    for name in ("AUROC", "AUPR_IN", "AUPR_OUT", "FPR95"):
        assert rows["near"][name] == pytest.approx((rows["one"][name] + rows["two"][name]) / 2)
    assert rows["far"]["AUROC"] == rows["three"]["AUROC"]
    assert {row["ACC"] for row in rows.values()} == {0.8}
    shifted = numbers(result, "published", "fsood", "exact")
    # 24 of 30 and 9 of 12, pooled.
    assert {row["ACC"] for row in shifted.values()} == {33 / 42}
    assert shifted["one"]["n"] == {"id": 42, "ood": 10, "sets": 1}
    given = {name: read_image_scores(tmp_path / f"run/{name}.csv").scores for name in ("seen", "shifted", "one")}
    expected = auroc(ScoreSteps.from_scores(np.concatenate([given["seen"], given["shifted"]]), given["one"]))
    assert shifted["one"]["AUROC"] == expected
    assert result["fsood/one/exact/AUROC"] == expected
    assert set(result.table("ood")["variant"]) == {"exact", "vertices", "quantile"}


def test_a_set_that_is_not_there_leaves_its_group_open(tmp_path: Path) -> None:
    (folder(tmp_path / "run") / "two.csv").unlink()
    rows = numbers(SCORE(scores=tmp_path / "run"), "published", "ood", "exact")
    assert rows["near"]["AUROC"] is None
    assert rows["near"]["undefined"]["AUROC"] == "no scores of two"
    assert rows["far"]["AUROC"] is not None


def test_a_label_below_zero_is_no_class(tmp_path: Path) -> None:
    """A list of ID images may have -1 throughout: then no accuracy is known, rather than none right."""
    run = folder(tmp_path / "run")
    write(run / "seen.csv", ["a", "b"], [1, 2], [-1, -1], [0, 1])
    row = numbers(SCORE(scores=run), "published", "ood", "exact")["one"]
    assert row["ACC"] is None
    assert "not given" in row["undefined"]["ACC"]


@pytest.mark.parametrize("name", ["shifted.csv", "two.csv"])
def test_runs_of_unlike_sets_have_no_mean(name: str, tmp_path: Path) -> None:
    runs = {f"s{seed}": folder(tmp_path / f"s{seed}", seed) for seed in range(2)}
    (runs["s1"] / name).unlink()
    with pytest.raises(EvaluationError, match="different sets"):
        SCORE(scores=runs)


def test_several_runs_give_mean_and_population_deviation(tmp_path: Path) -> None:
    runs = {f"s{seed}": folder(tmp_path / f"s{seed}", seed) for seed in range(3)}
    result = SCORE(scores=runs)
    told = of_result(result.json_data())
    found = [told["runs"][name]["published"]["ood"]["exact"]["near"]["AUROC"] for name in runs]
    summary = told["summary"]["published"]["ood"]["exact"]["near"]
    assert (summary["AUROC"], summary["std"]["AUROC"]) == (pytest.approx(np.mean(found)), pytest.approx(np.std(found)))
    assert result["ood/near/mean/exact/AUROC_std"] == summary["std"]["AUROC"]
    assert len(result.lines()) > 10


def test_images_left_out(tmp_path: Path) -> None:
    run = folder(tmp_path / "run")
    (tmp_path / "list.txt").write_text("x/one/003.jpg -1\none/004.jpg -1\nelsewhere/009.jpg -1\n", encoding="utf-8")
    result = SCORE(scores=run, without={"mine": tmp_path / "list.txt"})
    told = result.data["lists"]["mine"]
    # Stems tell the images of one set apart: the list names 009 of every OOD set, and none of the ID sets.
    assert told["left_out"] == {"one": 3, "two": 3, "three": 3}
    given = {name: read_image_scores(run / f"{name}.csv").scores for name in ("seen", "one")}
    kept = [n for n in range(10) if n not in (3, 4, 9)]
    reduced = numbers(result, "mine", "ood", "exact")["one"]
    assert reduced["AUROC"] == auroc(ScoreSteps.from_scores(given["seen"], given["one"][kept]))


def test_verdicts_say_that_unjudged_is_not_clean(tmp_path: Path) -> None:
    run = folder(tmp_path / "run")
    rows = [
        {
            "image_id": f"drawn:one/{number:03}",
            "dataset": "one",
            "stage": "manual",
            "action": action,
            "reviewer": "anna",
        }
        # The log of a review holds what its reviewer thought before.
        for number, action in ((1, "remove"), (2, "remove"), (2, "keep"))
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "verdicts.jsonl").write_text(text + '{"image_id": "drawn:one', encoding="utf-8")
    with pytest.warns(CurationWarning, match="the last line is cut off"):
        result = SCORE(scores=run, without={"judged": tmp_path / "verdicts.jsonl"})
    assert result.data["lists"]["judged"]["left_out"] == {"one": 1}
    assert result.data["lists"]["judged"]["judged"]["one"] == 2
    assert any(
        "unjudged is not clean: 2 of 10 images of one were judged, 1 are left out" in one for one in result.notes
    )


def test_imglists_name_rows_and_tell_labels(tmp_path: Path) -> None:
    run, lists = tmp_path / "run", tmp_path / "lists"
    run.mkdir()
    lists.mkdir()
    rng = np.random.default_rng(3)
    for name, n in (("seen", 8), ("one", 6), ("two", 5), ("three", 4)):
        lines = [f"{name}/{number}.jpg {number % 2 if name == 'seen' else -1}" for number in range(n)]
        (lists / f"test_{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        np.savez(run / f"{name}.npz", conf=rng.normal(size=n).astype(np.float32), pred=np.zeros(n, int))
    result = SCORE(scores=run, lists=lists, without={"mine": lists / "test_one.txt"})
    assert numbers(result, "published", "ood", "exact")["one"]["ACC"] == 0.5
    # Names of all sets are 0 to 7: the list leaves out what it names, here all of set one.
    assert numbers(result, "mine", "ood", "exact")["one"]["AUROC"] is None
    np.savez(run / "one.npz", conf=rng.normal(size=7), pred=np.zeros(7, int))
    with pytest.raises(PredictionError, match="do not match the list"):
        SCORE(scores=run, lists=lists)


@pytest.mark.parametrize("form", ["npz", "npy", "csv"])
def test_every_form_of_a_file(tmp_path: Path, form: str) -> None:
    path, scores = tmp_path / f"one.{form}", np.array([0.5, 0.25])
    if form == "npz":
        np.savez(path, conf=scores, image_ids=np.array(["a", "b"]))
    elif form == "npy":
        np.save(path, scores)
    else:
        write(path, ["a", "b"], scores)
    found = read_image_scores(path)
    assert found.scores.tolist() == [0.5, 0.25]
    assert found.images == (None if form == "npy" else ("a", "b"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "image,mark\na,1\n"),
        ("a.csv", "image,score\na,high\n"),
        ("a.csv", "image,score\na,\n"),
        ("a.csv", "image,score,score\na,1,1\n"),
        ("a.csv", "score,label\n1,0.5\n"),
        ("a.csv", ""),
        ("a.npy", "no array"),
        ("a.npz", "no archive"),
        ("a.pkl", "pickle"),
        ("a.json", "[1, 2]"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(CurationError):
        read_image_scores(tmp_path / name)


def test_scores_that_are_not_finite(tmp_path: Path) -> None:
    run = folder(tmp_path / "run")
    write(run / "one.csv", ["a", "b", "c"], ["nan", "inf", -1])
    with pytest.raises(PredictionError, match="not finite"):
        SCORE(scores=run)
    result = SCORE(scores=run, variant="quantile")
    ids = read_image_scores(run / "seen.csv").scores
    rows = numbers(result, "published", "ood", "quantile")
    assert rows["one"]["AUROC"] == auroc(ScoreSteps.from_scores(ids, np.array([0, np.finfo(float).max, -1])))
    assert rows["one"]["FPR95"] == pytest.approx(1 / 3)
    assert any("NaN counts as 0" in note for note in result.notes)


def test_images_twice_missing_or_strange(tmp_path: Path) -> None:
    run, lists = folder(tmp_path / "run"), tmp_path / "lists"
    lists.mkdir()
    (lists / "one.txt").write_text("".join(f"one/{number:03}.jpg -1\n" for number in range(9)), encoding="utf-8")
    with pytest.raises(PredictionError, match="not in the list"):
        SCORE(scores=run, lists=lists)
    result = SCORE(scores=run, lists=lists, stray="drop")
    assert result.data["inputs"]["run"]["one"]["reported"] == {"left out: images that are not in the set": 1}
    (lists / "one.txt").write_text("".join(f"one/{number:03}.jpg -1\n" for number in range(11)), encoding="utf-8")
    with pytest.raises(PredictionError, match="have no scores"):
        SCORE(scores=run, lists=lists)
    write(run / "two.csv", ["a", "a"], [1, 2])
    with pytest.raises(PredictionError, match="Duplicate image"):
        SCORE(scores=run)


def test_requests_that_cannot_work(tmp_path: Path) -> None:
    run = folder(tmp_path / "run")
    with pytest.raises(UsageError, match="Unknown variant"):
        SCORE(scores=run, variant="none")
    (run / "four.json").write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(PredictionError, match="Unsupported extension"):
        SCORE(scores=run)
    (run / "four.json").unlink()
    with pytest.raises(UsageError, match="not a folder"):
        SCORE(scores=run / "one.csv")
    SCORE(scores=run).save(run)
    with pytest.raises(UsageError, match="holds results of an evaluation"):
        SCORE(scores=run)
    for name in ("results.json", "measures.csv", "ood.csv", "lists.csv"):
        (run / name).unlink(missing_ok=True)
    np.save(run / "one.npy", np.zeros(3))
    with pytest.raises(UsageError, match="Two files"):
        SCORE(scores=run)
    (run / "one.csv").unlink()
    listed = tmp_path / "mine.txt"
    listed.write_text("a.jpg\n")
    with pytest.raises(UsageError, match="left out by name"):
        SCORE(scores=run, without={"mine": listed})


def test_classes_of_a_set_are_sets_of_their_own(tmp_path: Path) -> None:
    by_class = evaluation_as(report_as("drawn"), OodSets(id="seen", by_class="one", variants={"quantile": QUANTILE}))
    run = tmp_path / "run"
    run.mkdir()
    write(run / "seen.csv", [f"s{n}" for n in range(20)], np.arange(20.0))
    write(run / "one.csv", ["owl/1", "owl/2", "owl/3", "elk/1"], [5.5, 7.5, 9.5, -1])
    result = by_class(scores=run)
    rows = numbers(result, "published", "ood", "quantile")
    assert list(rows) == ["one", "elk", "owl", "classes"]
    assert rows["classes"]["AUROC"] == pytest.approx((1 + rows["owl"]["AUROC"]) / 2)
    assert rows["one"]["AUROC"] == pytest.approx((1 + 3 * rows["owl"]["AUROC"]) / 4)
    write(run / "one.csv", ["one/1", "one/2"], [1, 2])
    with pytest.raises(UsageError, match="Class name clashes with a set"):
        by_class(scores=run)
    write(run / "one.csv", ["a", "b"], [1, 2])
    with pytest.raises(EvaluationError, match="class of each image"):
        by_class(scores=run)


@pytest.mark.parametrize(
    ("factor", "copied", "said"),
    [
        (-1, False, "AUROC is far below 0.5 on one, two, three"),
        (0, False, "all scores of two are equal"),
        (1, True, "has the scores of"),
        (1, False, None),
    ],
)
def test_scores_that_look_mistaken(tmp_path: Path, factor: int, copied: bool, said: str | None) -> None:
    run = folder(tmp_path / "run")
    for path in run.iterdir():
        given = read_image_scores(path)
        assert given.images is not None
        write(path, list(given.images), factor * (given.scores + (3 if path.stem == "seen" else 0)))
    if copied:
        (run / "copy.csv").write_bytes((run / "one.csv").read_bytes())
    notes = SCORE(scores=run).notes
    assert any(said in note for note in notes) if said else not notes
