"""What `curation.diff` says of two results: numbers, classes, and what makes them not comparable."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.evaluation.result import Result
from curation.extensions.diff.results import ResultDiff
from tests.worlds import owod

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


def truth() -> dict[str, Any]:
    """Return objects of two classes."""
    rng = np.random.default_rng(7)
    objects = []
    for image in range(IMAGES - 1):  # The last image is empty.
        for number in range(4):
            x, y, w, h = rng.integers(10, 60, 4).tolist()
            objects.append((image, number % 2 + 1, [x, y, w, h], number == 3 and image == 0))
    return {
        "images": [{"id": n + 1, "width": 99, "height": 99, "file_name": f"{n + 1}.jpg"} for n in range(IMAGES)],
        "annotations": [
            {"id": n, "image_id": image + 1, "category_id": label, "bbox": box, "area": box[2] * box[3],
             "iscrowd": int(crowd)}
            for n, (image, label, box, crowd) in enumerate(objects, 1)
        ],
        "categories": [{"id": 1, "name": "owl"}, {"id": 2, "name": "cat"}],
    }  # fmt: skip


def evaluated(name: str, detections: Any, **more: Any) -> Result:
    return getattr(curation.evaluate, name)(truth=more.pop("truth", truth()), detections=detections, **more)


def compared(old: Any, new: Any) -> ResultDiff:
    found = curation.diff(old, new)
    assert isinstance(found, ResultDiff)
    return found


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
    assert (zero.changed, zero.reasons) == (0, ())
    for table in ("difference", "classes"):
        frame = zero.frame(table)
        assert (frame["difference"].dropna() == 0).all()
    there, back = (compared(*both) for both in (results, results[::-1]))
    assert there.changed == back.changed > 0
    for table in ("difference", "classes"):
        one, other = there.frame(table), back.frame(table)
        np.testing.assert_allclose(one["difference"].astype(float), -other["difference"].astype(float), atol=1e-9)


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
    stray = [*drawn(1), {**drawn(1)[0], "image_id": 99}]
    (reason,) = compared(evaluated("voc", drawn(1)), evaluated("voc", stray)).reasons
    assert reason.startswith("other filter of predictions: voc test")


def test_other_variants_are_named_and_compared(tmp_path: Path) -> None:
    paths = owod.files(tmp_path, *owod.drawn())
    given = {key: paths[key] for key in ("truth", "detections", "classes")} | {"task": "t2"}
    one, other = (curation.evaluate.owod(**given, variant=name) for name in ("clean", "ore"))
    difference = compared(one, other)
    assert difference.reasons[0] == "other variant: clean and ore"
    rows = {key: (before, after) for _, key, before, after in difference.rows}
    assert rows["UR"] == (one["UR"], other["UR"])
