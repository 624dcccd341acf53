"""Truths that declare many classes and use few: the same numbers, little memory, or a refusal in words."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.core import process
from curation.core.errors import CurationWarning, EvaluationError
from curation.core.wording import near_names
from curation.evaluation import coco_precision
from curation.extensions.detection_ap import coco_summary
from tests.worlds.version_1 import json_data

USED = 10


def world(n: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a truth of n classes, ten of them used, evenly spread, and its detections."""
    used = [1 + place * (n // USED) for place in range(USED)]
    images = [{"id": one, "file_name": f"{one}.jpg", "width": 200, "height": 100} for one in range(1, 9)]
    boxes = [(image["id"], place, [15 * place, 5, 20 + image["id"], 20]) for image in images for place in range(USED)]
    truth = {
        "images": images,
        "annotations": [
            {
                "id": row,
                "image_id": image,
                "category_id": used[place],
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": 0,
            }
            for row, (image, place, box) in enumerate(boxes, 1)
        ],
        "categories": [{"id": one, "name": f"c{one}"} for one in range(1, n + 1)],
    }
    found = [
        {"image_id": image, "category_id": used[(place + image // 7) % USED], "bbox": [box[0] + image, *box[1:]],
         "score": (7 * image + 13 * place) % 100 / 100}
        for image, place, box in boxes
    ]  # fmt: skip
    return truth, found


@pytest.mark.parametrize("library", ["hotcoco", "pycocotools"])
@pytest.mark.parametrize("at_once", [1, 3, 4])
def test_classes_in_groups_have_the_numbers_of_pycocotools_at_once(
    at_once: int, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library == "hotcoco":
        pytest.importorskip("hotcoco", reason="hotcoco is not installed")
    truth, found = world(500)
    for row, one in enumerate(truth["annotations"]):
        # Objects of every size, and one in crowd; some images show but a few of the classes.
        one |= {"area": (500, 5000, 50_000)[row % 3], "iscrowd": int(row == 5)}
    truth["annotations"] = [one for row, one in enumerate(truth["annotations"]) if row % 7]
    needed: list[int] = []
    monkeypatch.setattr(coco_precision, "require_memory", lambda n_bytes, *_, **__: needed.append(n_bytes))
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "hotcoco", None)
        whole = curation.evaluate.coco(truth=truth, detections=found)
    if library == "pycocotools":
        monkeypatch.setitem(sys.modules, "hotcoco", None)
    monkeypatch.setitem(coco_summary._statistics.__kwdefaults__, "at_once", at_once)
    grouped = curation.evaluate.coco(truth=truth, detections=found)
    assert needed == [USED * 260_000, at_once * 260_000]
    for key in coco_summary.STATISTICS:
        assert grouped[key] == pytest.approx(whole[key], abs=1e-12), key
    pairs = zip(json_data(grouped)["per_class"].items(), json_data(whole)["per_class"].items(), strict=True)
    assert all(one == other or one[1] == pytest.approx(other[1], abs=1e-12) for one, other in pairs)


def control_groups(folder: Path, paths: dict[str, dict[str, int | str]]) -> None:
    for path, files in paths.items():
        (folder / path).mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (folder / path / name).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("cgroup", "paths", "free"),
    [
        ("0::/", {".": {"memory.max": 900, "memory.current": 200, "memory.stat": "inactive_file 50"}}, 750),
        ("0::/", {".": {"memory.max": "max", "memory.current": 200, "memory.stat": "inactive_file 50"}}, None),
        (
            "0::/user/job",
            {
                "user": {"memory.max": 300, "memory.current": 100, "memory.stat": "file 7"},
                "user/job": {"memory.max": 900, "memory.current": 10, "memory.stat": "inactive_file 0"},
            },
            200,
        ),
    ],
)  # fmt: skip
def test_what_is_free_in_a_control_group(
    cgroup: str, paths: dict[str, Any], free: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "process").mkdir()
    (tmp_path / "process/cgroup").write_text(cgroup + "\n")
    control_groups(tmp_path / "groups", paths)
    monkeypatch.setattr(process, "_GROUP", tmp_path / "process/cgroup")
    monkeypatch.setattr(process, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(process, "_MACHINE", tmp_path / "none")
    assert process.available_memory() == free


def test_what_would_need_more_memory_than_there_is_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "available_memory", lambda: 1 << 30)
    process.require_memory(1 << 30, "things")
    with pytest.raises(EvaluationError, match=r"(?s)things need more memory.*about 2\.0 GiB.*found: 1\.0 GiB"):
        process.require_memory(2 << 30, "things")
    assert process.require_memory.__module__ == "curation.core.process"


def test_names_that_differ_in_case_blanks_or_form() -> None:
    composed, decomposed = "café", "cafe\u0301"
    assert near_names(["dog", "dog ", "cat", composed], ["Dog", "dog", "cat", decomposed]) == [
        ("Dog", "dog", "dog "),
        (decomposed, composed),
    ]
    assert near_names(["hot dog", "hotdog", "dogs"], ["hot dog"]) == []
    assert near_names([], []) == []


@pytest.mark.parametrize("other", ["Dog", "dog ", " dog"])
def test_near_names_in_a_truth_are_warned_of_and_move_nothing(other: str) -> None:
    truth, found = world(USED)
    expected = curation.evaluate.voc(truth=truth, detections=found)["mAP11"]
    truth["categories"][0]["name"], truth["categories"][1]["name"] = "dog", other
    with pytest.warns(CurationWarning, match=" and ".join(map(repr, sorted(["dog", other])))):
        result = curation.evaluate.voc(truth=truth, detections=found)
    assert result["mAP11"] == expected


def test_a_class_file_that_spells_a_class_otherwise_is_warned_of(tmp_path: Path) -> None:
    truth, found = world(USED)
    truth["categories"][0]["name"], truth["categories"][1]["name"] = "cafe\u0301", "ant"
    classes = tmp_path / "tasks.json"
    tasks = [
        {
            "name": "t1",
            "cur": ["ant", *(one["name"] for one in truth["categories"][2:])],
            "rest": ["caf\u00e9", "cafe\u0301"],
        }
    ]
    classes.write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
    found = [one for one in found if one["category_id"] != 1]
    with pytest.warns(CurationWarning, match=r"'cafe\\u0301' and 'caf\\xe9'"):
        curation.evaluate.owod(truth=truth, detections=found, classes=classes)
