"""Scores without and with boxes of reviewers: the same as two evaluations, and intervals that hold what they should."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.decisions.box_overlay import add_boxes, resolve_boxes
from curation.errors import UsageError
from curation.evaluation import overlay_effect
from curation.evaluation.inputs import Reading
from curation.evaluation.overlay_effect import _Case, _Draws
from curation.evaluation.protocols import evaluation_of
from curation.manifest.manifest import Manifest, write_manifest
from tests.decisions.box_logs import Scribe
from tests.decisions.test_box_overlay import SIZE, detections, replayed
from tests.task_world import TaskWorld, write_task_world
from tests.worlds import elephant, osod3


@pytest.fixture
def world(tmp_path: Path) -> TaskWorld:
    return write_task_world(tmp_path / "raw")


@pytest.fixture
def added(world: TaskWorld) -> Manifest:
    """Return the manifest with three unknown objects on every second test image."""
    anna = Scribe("anna", SIZE)
    for image in world.manifest.ids("t1-test")[::2]:
        for place in range(3):
            anna.add(image, anna.number + 1, f"{60 * place} 200 30 30.25")
        anna.complete(image)
    return add_boxes(world.manifest, resolve_boxes(replayed([anna])), world.sources).manifest


def found_by_a_detector(world: TaskWorld, manifest: Manifest) -> list[dict[str, Any]]:
    numbers = [int(image.partition(":")[2]) for image in manifest.ids("t1-test")[::2]]
    return detections(world, added=[(number, [0, 200, 30, 30]) for number in numbers])


def test_before_and_after_are_the_two_evaluations(world: TaskWorld, added: Manifest, tmp_path: Path) -> None:
    found = found_by_a_detector(world, added)
    given: dict[str, Any] = {"task": "t1", "detections": found, "truth": world.val_json}
    result = curation.compare_overlay("owod", manifest=added, replicates=8, **given)
    before = curation.evaluate("owod", manifest=world.manifest, **given)
    after = curation.evaluate("owod", manifest=added, **given)
    assert result.numbers() == after.numbers()
    rows = {row["measure"]: row for row in result.table("overlay").to_dict("records")}
    assert list(rows) == list(after.numbers())
    for key, row in rows.items():
        for name, one in (("before", before), ("after", after)):
            value = one.numbers()[key]
            assert (row[name] == value) if value is not None else row[name] != row[name] or row[name] is None
    precision = rows["t1/clean/P_unknown"]
    assert precision["before"] < precision["after"]
    assert precision["difference"] == precision["after"] - precision["before"]
    assert 0 < precision["low"] <= precision["difference"] <= precision["high"]
    # What boxes of reviewers cannot change has a difference of 0 in every replicate.
    assert (rows["t1/clean/mAP_both"]["low"], rows["t1/clean/mAP_both"]["high"]) == (0, 0)
    # The exported truth holds the boxes already: before is without them all the same.
    curation.export(added, "t1-test", "coco", tmp_path / "truth.json", sources={"val": world.val_json})
    again = curation.compare_overlay(
        "owod", manifest=added, replicates=8, **(given | {"truth": tmp_path / "truth.json"})
    )
    same = {row["measure"]: row for row in again.table("overlay").to_dict("records")}
    for key in ("UR", "P_unknown", "num_unknown_gt", "TP_u"):
        assert same[f"t1/clean/{key}"] == rows[f"t1/clean/{key}"]


@pytest.mark.parametrize("truth", ["raw", "exported"])
def test_every_image_drawn_once_is_the_data_as_they_are(
    world: TaskWorld, added: Manifest, tmp_path: Path, truth: str
) -> None:
    path = tmp_path / "found.json"
    path.write_text(json.dumps(found_by_a_detector(world, added)))
    file = world.val_json
    if truth == "exported":
        curation.export(added, "t1-test", "coco", tmp_path / "truth.json", sources={"val": file})
        file = tmp_path / "truth.json"
    inputs = {"manifest": added, "truth": file, "detections": path, "task": ("t1",)}
    evaluate = evaluation_of("owod")
    case = _Case.of(inputs)
    drawn = _Draws.of(case, tmp_path / "draws")
    once = [np.arange(size) for size in drawn.sizes]
    before, after = (evaluate(**one).numbers() for one in drawn.inputs(once))
    assert before == evaluate(**case.inputs("before")).numbers()
    assert after == evaluate(**case.inputs("after")).numbers()
    # Each image twice: counts double, shares stay.
    twice = [np.repeat(one, 2) for one in once]
    doubled = [evaluate(**one).numbers() for one in drawn.inputs(twice)][1]
    assert doubled["t1/clean/num_unknown_gt"] == 2 * after["t1/clean/num_unknown_gt"]
    assert doubled["t1/clean/UR"] == after["t1/clean/UR"]
    assert doubled["t1/clean/P_unknown"] == after["t1/clean/P_unknown"]


def test_a_replicate_is_that_of_hand_counted_draws(world: TaskWorld, added: Manifest, tmp_path: Path) -> None:
    """UR of a replicate by a count over the images drawn, with no bootstrap code."""
    path = tmp_path / "found.json"
    path.write_text(json.dumps(found_by_a_detector(world, added)))
    inputs = {"manifest": added, "truth": world.val_json, "detections": path, "task": ("t1",)}
    evaluate = evaluation_of("owod")
    drawn = _Draws.of(_Case.of(inputs), tmp_path / "draws")
    places = [np.random.default_rng(1).integers(0, size, size) for size in drawn.sizes]
    _, after = (evaluate(**one).numbers() for one in drawn.inputs(places))
    truth = json.loads(world.val_json.read_bytes())
    unknown = {8, 22, 59}
    boxed = set(added.ids("t1-test")[::2])
    expected = 0
    for image in [drawn.units[0][row] for row in places[0].tolist()]:
        number = int(image.partition(":")[2])
        own = [one for one in truth["annotations"] if one["image_id"] == number]
        expected += sum(one["category_id"] in unknown and not one["iscrowd"] for one in own)
        expected += 3 * (image in boxed)
    assert after["t1/clean/num_unknown_gt"] == expected


def test_the_seed_says_all_and_exhaustive_images_alone_can_be_compared(world: TaskWorld, added: Manifest) -> None:
    given: dict[str, Any] = {
        "manifest": added,
        "task": "t1",
        "truth": world.val_json,
        "detections": found_by_a_detector(world, added),
    }
    one = curation.compare_overlay("owod", replicates=5, **given).table("overlay")
    same = curation.compare_overlay("owod", replicates=5, **given).table("overlay")
    assert one.equals(same)
    assert not one.equals(curation.compare_overlay("owod", replicates=5, seed=1, **given).table("overlay"))
    some = curation.compare_overlay("owod", replicates=5, exhaustive_only=True, **given)
    rows = {row["measure"]: row for row in some.table("overlay").to_dict("records")}
    n_images = len(added.ids("t1-test")[::2])
    assert rows["t1/clean/num_unknown_gt"]["difference"] == 3 * n_images
    assert some.data["inputs"]["t1"]["truth"]["images"] == n_images
    none = curation.compare_overlay("owod", replicates=0, **given).table("overlay")
    assert none["low"].isna().all()


def test_the_command_prints_what_changed_and_writes_the_table(
    world: TaskWorld, added: Manifest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_manifest(added, tmp_path / "m")
    found = tmp_path / "found.jsonl"
    found.write_text("".join(json.dumps(row) + "\n" for row in found_by_a_detector(world, added)))
    words = ["evaluate", "owod", "--manifest", str(tmp_path / "m"), "--task", "t1", "--truth", str(world.val_json)]
    words += ["--detections", str(found), "--compare-overlay", "3", "--out", str(tmp_path / "scores")]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "Without and with boxes of reviewers" in out
    assert "t1/clean/P_unknown" in out
    assert "t1/clean/mAP_both" not in out.partition("Without and with")[2]
    assert (tmp_path / "scores" / "overlay.csv").read_text().startswith("measure,before,after,difference,low,high")
    data = json.loads((tmp_path / "scores" / "results.json").read_bytes())
    assert data["overlay_effect"]["replicates"] == 3
    assert "overlay.csv" in data["written"]


def test_without_boxes_or_with_images_of_its_own_it_is_refused(world: TaskWorld, tmp_path: Path) -> None:
    given: dict[str, Any] = {"task": "t1", "truth": world.val_json, "detections": detections(world)}
    with pytest.raises(UsageError, match="no boxes of reviewers"):
        curation.compare_overlay("owod", manifest=world.manifest, **given)
    with pytest.raises(UsageError, match="cannot be compared"):
        curation.compare_overlay("openood", scores=tmp_path)


def test_plain_detection_takes_a_file_of_boxes(world: TaskWorld, added: Manifest, tmp_path: Path) -> None:
    assert added.overlay is not None
    anna = Scribe("anna", SIZE)
    image = world.manifest.ids("t1-test")[0]
    anna.add(image, 1, "1 1 30 30", "cat")
    overlay = tmp_path / "overlay.jsonl"
    overlay.write_bytes(resolve_boxes(replayed([anna])).overlay.data)
    found = detections(world, added=[(int(image.partition(":")[2]), [1, 1, 30, 30])])
    found[-1]["category_id"] = 17
    result = curation.compare_overlay("voc", truth=world.val_json, detections=found, overlay=overlay, replicates=3)
    rows = {row["measure"]: row for row in result.table("overlay").to_dict("records")}
    assert rows["voc/mAP11"]["before"] < rows["voc/mAP11"]["after"]


def test_sets_that_share_images_are_drawn_together() -> None:
    assert overlay_effect._sets([{"a", "b"}, {"c"}, {"b", "d"}]) == [["c"], ["a", "b", "d"]]


def boxes_on(truth: Path, folder: Path) -> Path:
    """Write an overlay with a box on each of the first images of a truth."""
    anna = Scribe("anna", (64, 48))
    for place, image in enumerate(json.loads(truth.read_bytes())["images"][:8]):
        native = image["id"] if isinstance(image["id"], str) else f"{image['id']:012d}"
        anna.add(f"coco:{native}", place + 1, f"{place} 2 5 5.5")
    (folder / "overlay.jsonl").write_bytes(resolve_boxes(replayed([anna])).overlay.data)
    return folder / "overlay.jsonl"


@pytest.mark.parametrize("name", ["elephant", "osod3"])
def test_other_engines_are_compared_likewise(name: str, tmp_path: Path) -> None:
    """Two truths whose images are drawn apart, and ids that are texts: all images once is the data as they are."""
    files = {"elephant": elephant, "osod3": osod3}[name].files(tmp_path)
    if name == "elephant":
        parts = ("closed", "wilderness")
        inputs: dict[str, Any] = {
            key: {part: files[f"{key}_{part}"] for part in parts} for key in ("truth", "detections")
        }
        overlay = boxes_on(files["truth_closed"], tmp_path)
    else:
        inputs = {key: files[key] for key in ("truth", "detections", "classes")}
        overlay = boxes_on(files["truth"], tmp_path)
    inputs["reading"] = Reading(overlay=overlay)
    evaluate = evaluation_of(name)
    case = _Case.of(inputs)
    drawn = _Draws.of(case, tmp_path / "draws")
    assert len(drawn.sizes) == (2 if name == "elephant" else 1)
    found = [evaluate(**one).numbers() for one in drawn.inputs([np.arange(size) for size in drawn.sizes])]
    wanted = [evaluate(**case.inputs(which)) for which in ("before", "after")]
    assert found == [one.numbers() for one in wanted]
    assert [note.count("8 boxes of reviewers") for note in wanted[1].notes].count(1) == 1
    if name == "osod3":
        assert found[0] != found[1]
