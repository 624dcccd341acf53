"""Two results compared: on annotations as published and corrected ones, from files and in memory."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.core.errors import EvaluationError, UsageError
from tests.task_world import NUMBERS, with_boxes, write_task_world


def test_what_corrected_annotations_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = write_task_world(tmp_path / "raw")
    images = [int(image.partition(":")[2]) for image in world.manifest.ids("t1-test")[::2]]
    boxes = [(image, NUMBERS["pizza"], [60 * column, 200, 30, 30.25]) for image in images for column in range(3)]
    corrected = tmp_path / "corrected.json"
    corrected.write_text(json.dumps(with_boxes(world.val_json, boxes)))
    detections = detections_of(world.val_json, more=[(image, [0, 200, 30, 30]) for image in images])
    given: dict[str, Any] = {"manifest": world.manifest, "task": "t1", "detections": detections}
    before, after = (curation.evaluate.owod(truth=truth, **given) for truth in (world.val_json, corrected))
    difference: Any = curation.diff(before, after)
    rows = {f"{one['scored']}/{one['measure']}": one for one in difference.data()["measures"]}
    assert {key: (one["before"], one["after"]) for key, one in rows.items()} == {
        f"{row['task']}/{row['variant']}/{key}": (value, other)
        for (row, key, value), (_, _, other) in zip(numbers(before), numbers(after), strict=True)
    }
    precision, unknown = rows["t1/clean/P_unknown"], rows["t1/clean/num_unknown_gt"]
    assert precision["difference"] == precision["after"] - precision["before"] > 0
    assert unknown["difference"] == 3 * len(images)
    assert rows["t1/clean/mAP_both"]["difference"] == 0
    assert repr(difference) == f"<ResultDiff of owod: {difference.changed} of {len(rows)} numbers differ>"
    for result, name in ((before, "before"), (after, "after")):
        result.save(tmp_path / name)
    assert difference == curation.diff(tmp_path / "before", tmp_path / "after/results.json")
    words = ["diff", str(tmp_path / "before"), str(tmp_path / "after")]
    assert main([*words, "--strict"]) == 1
    out = capsys.readouterr().out
    assert f"owod: {difference.changed} of {len(rows)} numbers differ" in out
    assert "P_unknown" in out
    assert "mAP_both" not in out
    assert main([*words[:2], words[1], "--strict", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] == 0


def detections_of(path: Path, *, more: list[tuple[int, list[float]]]) -> list[dict[str, Any]]:
    """Return each object of a COCO file, shifted and called unknown by turns, and some unknown objects more."""
    rows = [
        {
            "image_id": row["image_id"],
            "category_id": row["category_id"] if number % 3 and row["category_id"] in (1, 5, 17) else -1,
            "bbox": [row["bbox"][0] + 1, *row["bbox"][1:]],
            "score": 1 - number / 1000,
        }
        for number, row in enumerate(json.loads(path.read_bytes())["annotations"])
    ]
    return [*rows, *({"image_id": n, "category_id": -1, "bbox": box, "score": 0.5} for n, box in more)]


def numbers(result: Any) -> list[tuple[Any, str, Any]]:
    found = result.json_data()["measures"]
    return [(one, one["measure"] + f"[{one['parameters']}]" * bool(one["parameters"]), one["value"]) for one in found]


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    image = {"id": 1, "width": 9, "height": 9, "file_name": "1.jpg"}
    truth: dict[str, Any] = {"images": [image], "annotations": [], "categories": [{"id": 1, "name": "owl"}]}
    voc, coco = (getattr(curation.evaluate, name)(truth=truth, detections=[]) for name in ("voc", "coco"))
    with pytest.raises(UsageError, match="two evaluations"):
        curation.diff(voc, coco)
    for other, what in (
        (tmp_path / "nowhere", "No such result"),
        ("elephant/val2017", "No such result"),
        (tmp_path, "cannot be compared"),
    ):
        with pytest.raises(EvaluationError, match=what) as caught:
            curation.diff(voc, other)
        assert str(other) in str(caught.value)
    (tmp_path / "other.json").write_text('{"images": []}')
    with pytest.raises(EvaluationError, match="not a result"):
        curation.diff(voc, tmp_path / "other.json")
    np.savez(tmp_path / "scores.npz", energy=np.zeros(3))
    (tmp_path / "scores.csv").write_text("image_id,energy\na,0.5\n")
    (tmp_path / "boxes.json").write_text('[{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}]')
    for name in ("scores.npz", "scores.csv", "boxes.json"):
        for old in (tmp_path / name, voc):
            with pytest.raises(EvaluationError, match="not a result") as caught:
                curation.diff(old, tmp_path / name)
            assert "evaluate predictions and scores first" in str(caught.value.hint)
    other = voc.json_data()
    other["measures"] = [{**one, "method": "another"} for one in other["measures"]]
    (tmp_path / "other.json").write_text(json.dumps(other))
    assert curation.diff(voc, tmp_path / "other.json").changed == 0  # type: ignore[union-attr]
