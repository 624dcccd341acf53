"""What `curation.diff` says of two results: classes, reasons, paired intervals, images and boxes."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.core.errors import EvaluationError, UsageError
from curation.evaluation.result import Result
from curation.extensions.diff.results import ResultDiff
from tests.worlds import coco, owod

IMAGES = 6


def drawn(seed: int, *, ties: bool = True) -> list[dict[str, Any]]:
    """Return detections near the objects of `truth`, with equal scores among them."""
    rng = np.random.default_rng(seed)
    found = []
    for one in truth()["annotations"] * 2:
        box = [float(value) for value in np.maximum(one["bbox"] + rng.integers(-4, 5, 4), 1)]
        label = int(one["category_id"] if rng.random() < 0.8 else 3 - one["category_id"])
        score = round(float(rng.random()), 1 if ties else 9)
        found.append({"image_id": one["image_id"], "category_id": label, "bbox": box, "score": score})
    return found


def truth(images: list[int] | None = None) -> dict[str, Any]:
    """Return objects of two classes; image k of those asked for, repeats one after the other, is called k + 1."""
    rng = np.random.default_rng(7)
    objects = []
    for image in range(IMAGES - 1):  # The last image is empty.
        for number in range(4):
            x, y, w, h = rng.integers(10, 60, 4).tolist()
            objects.append((image, number % 2 + 1, [x, y, w, h], number == 3 and image == 0))
    chosen = list(range(IMAGES)) if images is None else images
    rows = [(place, *one[1:]) for place, image in enumerate(chosen) for one in objects if one[0] == image]
    return {
        "images": [{"id": n + 1, "width": 99, "height": 99, "file_name": f"{n + 1}.jpg"} for n in range(len(chosen))],
        "annotations": [
            {"id": n, "image_id": place + 1, "category_id": label, "bbox": box, "area": box[2] * box[3],
             "iscrowd": int(crowd)}
            for n, (place, label, box, crowd) in enumerate(rows, 1)
        ],
        "categories": [{"id": 1, "name": "owl"}, {"id": 2, "name": "cat"}],
    }  # fmt: skip


def evaluated(name: str, detections: Any, **more: Any) -> Result:
    return getattr(curation.evaluate, name)(truth=more.pop("truth", truth()), detections=detections, **more)


def compared(old: Any, new: Any) -> ResultDiff:
    found = curation.diff(old, new)
    assert isinstance(found, ResultDiff)
    return found


@pytest.mark.parametrize("name", ["voc", "coco"])
def test_intervals_are_those_of_evaluations_of_the_images_drawn(name: str) -> None:
    """200 times both results are made anew, by the evaluator itself, from copies of the five images that are drawn.

    Where COCO lets the order of the file decide between equal scores, that of copies would be another.
    """
    shown = [0, 1, 2, 3, IMAGES - 1]
    kept = truth(shown)
    found = [
        [{**one, "image_id": shown.index(one["image_id"] - 1) + 1} for one in rows if one["image_id"] - 1 in shown]
        for rows in (drawn(seed, ties=name == "voc") for seed in (1, 2))
    ]
    difference = compared(*(evaluated(name, one, truth=kept) for one in found))
    keys = {"voc": ("mAP11", "mAP_area"), "coco": ("AP", "AP50", "AP75", "AR1", "AR10", "AR100")}[name]

    @cache
    def of_copies(images: tuple[int, ...]) -> list[dict[str, Any]]:
        both = []
        for rows in found:
            copies = [
                {**one, "image_id": number}
                for one in rows
                for number, image in enumerate(images, 1)
                if one["image_id"] == image + 1
            ]
            both.append(evaluated(name, copies, truth=truth([shown[image] for image in images])).numbers())
        return both

    values: dict[str, list[float]] = {key: [] for key in keys}
    for replicate in range(200):
        words = np.random.Philox(key=np.array([0, replicate], np.uint64)).random_raw(len(shown))
        both = of_copies(tuple(sorted(int(word) * len(shown) >> 64 for word in words)))
        for key in keys:
            one, other = (numbers[f"{name}/{key}"] for numbers in both)
            if one is not None and other is not None:
                values[key].append(other - one)
    frame = difference.frame().set_index("measure")
    for key in keys:
        low, high = np.quantile(values[key], [0.025, 0.975])
        assert (frame.loc[key, "low"], frame.loc[key, "high"]) == pytest.approx((low, high), abs=1e-9), key
        assert low < high
    assert ("No intervals of APs" in difference.paired.note) == (name == "coco")


@pytest.mark.parametrize("name", ["voc", "coco", "owod"])
def test_with_itself_all_is_zero_and_exchanged_it_is_negated(name: str, tmp_path: Path) -> None:
    if name == "owod":
        paths = owod.files(tmp_path, *owod.drawn())
        given: dict[str, Any] = {key: paths[key] for key in ("truth", "classes")} | {"task": "t2"}
        rows = json.loads(Path(paths["detections"]).read_bytes())
        results = [curation.evaluate.owod(**given, detections=found) for found in (rows, rows[: len(rows) // 2])]
    else:
        results = [evaluated(name, drawn(seed)) for seed in (1, 2)]
    zero = compared(results[0], results[0])
    assert (zero.changed, zero.reasons, zero.paired.images, zero.paired.boxes) == (0, (), [], [])
    for table in ("difference", "classes"):
        frame = zero.frame(table)
        for column in ("difference", "low", "high"):
            assert (frame[column].dropna() == 0).all()
    there, back = (compared(*both) for both in (results, results[::-1]))
    assert there.changed == back.changed > 0
    for table in ("difference", "classes"):
        one, other = there.frame(table), back.frame(table)
        for column, opposite in (("difference", "difference"), ("low", "high"), ("high", "low")):
            np.testing.assert_allclose(one[column].astype(float), -other[opposite].astype(float), atol=1e-9)
    assert there.frame()["low"].notna().sum() >= 2
    assert [one[1] for one in there.paired.images] == [one[1] for one in back.paired.images]


def test_the_image_that_makes_the_difference_is_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ("image_id", "category_id", "bbox")
    perfect = [{key: one[key] for key in own} | {"score": 0.9} for one in truth()["annotations"]]
    missing = [one for one in perfect if one["image_id"] != 3]
    for name, found in (("a", perfect), ("b", missing)):
        evaluated("voc", found).save(tmp_path / name, outcomes=True)
    difference = compared(tmp_path / "a", tmp_path / "b")
    # Without the image that one lacks, the two are equal; the boxes are its four.
    scored, image, left = difference.paired.images[0]
    assert (scored, image[-1], left) == ("voc", "3", 0)
    assert [(one[0], one[1][-1], one[-1]) for one in difference.paired.boxes] == [("before", "3", "true positive")] * 4
    assert {row[:3]: row[3:] for row in difference.classes}["", "cat", "AP_area"][0] == pytest.approx(100)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["images"][0]["without it"] == 0
    assert data["measures"][0]["low"] <= data["measures"][0]["difference"] <= 0
    # Read from files it is what it is in memory.
    again = compared(evaluated("voc", perfect), evaluated("voc", missing))
    assert again.data()["measures"] == difference.data()["measures"]
    (tmp_path / "a/outcomes.csv").write_text("scored,part\n")
    with pytest.raises(EvaluationError, match="lacks columns"):
        compared(tmp_path / "a", tmp_path / "b").lines()


def few(*images: int, **more: int) -> list[dict[str, Any]]:
    """One box of 20 by 20 pixels on each image."""
    box = {"category_id": 1, "bbox": [1, 1, 20, 20], "area": 400}
    return [{"id": n, "image_id": image, "score": 1 - image / 10, **box, **more} for n, image in enumerate(images, 1)]


@pytest.mark.parametrize("name", ["voc", "coco"])
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    ("objects", "before", "after"),
    [
        (few(2), few(2, 1), few(3)),
        (few(1), few(1), few(2)),
        (few(2), [], []),
        (few(2), few(2), []),
        ([], few(2), few(1, 3)),
        ([], [], []),
        (few(1, iscrowd=1), few(1), few(2)),
    ],
)
def test_results_of_few_objects_or_detections_are_compared(
    name: str, saved: bool, objects: Any, before: Any, after: Any, tmp_path: Path
) -> None:
    given = truth() | {"annotations": [{"iscrowd": 0, **one} for one in objects]}
    results: list[Any] = [evaluated(name, found, truth=given) for found in (before, after)]
    if saved:
        for number, result in enumerate(results):
            result.save(tmp_path / str(number), outcomes=True)
        results = [tmp_path / "0", tmp_path / "1"]
    difference = compared(*results)
    data = json.loads(json.dumps(difference.data(), allow_nan=False))
    assert difference.lines()
    if difference.paired.images:
        # Without the image that has the only object there is nothing to measure, and it explains all.
        assert data["images"][0]["without it"] is None
        assert data["images"][0]["image"][-1] == str(objects[0]["image_id"])


def test_what_makes_two_results_not_comparable_is_said_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    less = truth()
    less["annotations"] = [one for one in less["annotations"] if one["id"] != 1]
    for name, given in (("a", truth()), ("b", less)):
        (tmp_path / f"{name}.json").write_text(json.dumps(given))
        evaluated("voc", drawn(1), truth=tmp_path / f"{name}.json").save(tmp_path / name)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "These are not comparable because:"
    assert any(line.strip().startswith("other truth: voc files test sha256") for line in lines[:4])
    assert "  other n of class owl:  10 and 9" in lines
    assert "no intervals" in lines[-1]
    stray = [*drawn(1), {**drawn(1)[0], "image_id": 99}]
    (reason,) = compared(evaluated("voc", drawn(1)), evaluated("voc", stray)).reasons
    assert reason.startswith("other filter of predictions: voc test")


def test_other_variants_are_named_and_compared(tmp_path: Path) -> None:
    paths = owod.files(tmp_path, *owod.drawn())
    given = {key: paths[key] for key in ("truth", "detections", "classes")} | {"task": "t2"}
    one, other = (curation.evaluate.owod(**given, variants=name) for name in ("clean", "ore"))
    difference = compared(one, other)
    assert difference.reasons[0] == "other variant: clean and ore"
    rows = {key: (before, after) for _, key, before, after in difference.rows}
    assert rows["UR"] == (one["UR"], other["UR"])


def test_outcomes_are_written_only_where_boxes_are_matched(tmp_path: Path) -> None:
    result = curation.evaluate.coco(**coco.files(tmp_path))
    written = {path.name for path in result.save(tmp_path / "out", outcomes=True)}
    assert {"outcomes.csv", "objects.csv"} <= written
    assert len(result.outcomes()[0].objects()["image_id"].unique()) == result.data["n_images"]
    (tmp_path / "found.json").write_text(json.dumps(drawn(1)))
    (tmp_path / "truth.json").write_text(json.dumps(truth()))
    words = ["--truth", str(tmp_path / "truth.json"), "--detections", str(tmp_path / "found.json"), "--outcomes"]
    assert main(["evaluate", "voc", *words]) == 2
    bare = Result(result.report, {"inputs": {}, "manifest": None, "known_classes_from": ""})
    with pytest.raises(UsageError, match="No per-detection outcomes"):
        bare.save(tmp_path / "bare", outcomes=True)
