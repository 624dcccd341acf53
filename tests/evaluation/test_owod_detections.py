import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import PredictionError
from curation.evaluation.problem import ClassRoles, numbered
from curation.evaluation.readers import Policy, ReadDetections, read_task_detections
from curation.evaluation.truth import task_truth
from curation.sources.opening import open_path
from tests.evaluation.owod_files import truth_file

ALIASES = {"aeroplane": "airplane"}
TASK = ClassRoles("t1", (), ("airplane", "dog"), ("cup",), "here", aliases=ALIASES)
# Ids of a manifest: positions of all classes in task order, then unknown.
NUMBERED = ClassRoles(
    "t1", (), ("airplane", "dog"), ("cup",), "here", {"airplane": 0, "dog": 1, "cup": 2}, (3, -1), ALIASES
)


def read(
    folder: Path, rows: Any, task: ClassRoles = TASK, ids: tuple[str, ...] | None = None, **options: Any
) -> ReadDetections:
    classes = ("dog", "aeroplane", "cup")
    path = truth_file(folder, classes, 3, [(1, "dog"), (2, "cup"), (3, "aeroplane")])
    source = open_path(path, dataset="coco", part="test")
    truth = task_truth(source, task, ids, repeats=options.pop("repeats", "error"))
    if not isinstance(rows, Path):
        results = folder / "results.json"
        results.write_text(json.dumps(rows), encoding="utf-8")
        rows = results
    return read_task_detections(rows, truth, source, Policy(**options))


def row(kind: int | str | None, image: int = 1, score: float = 0.5, **more: Any) -> dict[str, Any]:
    named = {"category": kind} if isinstance(kind, str) else {"category_id": kind}
    return {"image_id": image, "bbox": [1, 2, 3, 4], "score": score, **named, **more}


@pytest.mark.parametrize("seed", range(40))
def test_the_dataset_s_own_ids_are_not_taken_for_a_manifest_s(tmp_path: Path, seed: int) -> None:
    """Ids 1, 2, 4 may be of the dataset, where 4 is unknown, or indices of the manifest: neither is advised."""
    rng = random.Random(seed)
    names = [f"class{number}" for number in range(1, 9)]
    unknown = rng.sample(names, rng.randrange(1, 4))
    known = tuple(name for name in rng.sample(names, len(names)) if name not in unknown)
    index = {name: number for number, name in enumerate((*known, *rng.sample(unknown, len(unknown))))}
    objects = [(image, rng.choice(names)) for image in range(1, 41)]
    path = truth_file(tmp_path, names, 40, objects)
    source = open_path(path, dataset="coco", part="test")
    for rest in (tuple(unknown), None):
        roles = ClassRoles("t1", (), known, rest, "here", index, (len(index), -1))
        task = numbered(roles, source)
        truth = task_truth(source, task, None)
        for numbers, is_own in ((dict(zip(names, range(1, 9), strict=True)), True), (index, False)):
            box = {"bbox": [10, 10, 20, 20], "score": 0.5}
            rows = [{"image_id": image, "category_id": numbers[name], **box} for image, name in objects]
            (results := tmp_path / "results.json").write_text(json.dumps(rows), encoding="utf-8")
            with contextlib.suppress(StopIteration):
                number, name = next((numbers[name], name) for _, name in objects if name in unknown)
                with pytest.raises(PredictionError) as caught:
                    read_task_detections(results, truth, source)
                assert "--category-ids" not in str(caught.value.hint)
                if is_own:
                    assert f"category_id {number} ({name})" in str(caught.value.found)
                    assert "--on-error classes=drop" in str(caught.value.hint)
                    read = read_task_detections(results, truth, source, Policy(other_classes="drop"))
                    assert len(read.detections) == sum(name in known for _, name in objects)


@pytest.mark.parametrize(
    ("task", "kinds"),
    [
        # dog, airplane, unknown by the truth's ids (1, 2), by those of a manifest, and by name.
        (TASK, (1, 2, -1)),
        (NUMBERED, (1, 0, 3)),
        (NUMBERED, (1, 0, -1)),
        (TASK, ("dog", "airplane", "unknown")),
        (NUMBERED, ("dog", "aeroplane", "unknown")),
    ],
)
def test_ids_and_names_mean_classes(tmp_path: Path, task: ClassRoles, kinds: tuple[int | str, ...]) -> None:
    found = read(tmp_path, [row(kind) for kind in kinds], task)
    assert found.detections.label.tolist() == [1, 0, 2]
    assert found.rows == 3


@pytest.mark.parametrize(("task", "cup"), [(TASK, 3), (NUMBERED, 2), (TASK, "cup")])
def test_classes_unknown_in_the_task_are_refused_or_counted(tmp_path: Path, task: ClassRoles, cup: int | str) -> None:
    with pytest.raises(PredictionError, match="unknown in task t1") as caught:
        read(tmp_path, [row("dog"), row(cup)], task)
    assert "record 1" in (caught.value.where or "")
    found = read(tmp_path, [row("dog"), row(cup), row("dog", image=9)], task, stray="drop")
    assert len(found.detections) == 1
    assert sorted(found.reported.values()) == [1, 1]


def test_results_files_may_spell_classes_as_voc_does(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    for name in ("aeroplane", "dog", "unknown"):
        (folder / f"comp4_det_test_{name}.txt").write_text("000000000001 0.5 2 3 4 6\n")
    found = read(tmp_path, folder)
    assert sorted(found.detections.label.tolist()) == [0, 1, 2]
    assert found.detections.boxes.tolist() == [[1, 2, 3, 4]] * 3


def test_detections_count_once_a_line_however_the_file_holds_them(tmp_path: Path) -> None:
    ids = ("1", "2", "1", "1")
    once = [row("dog"), row("dog", score=0.4), row("unknown", image=2), row("unknown")]
    thrice = [one for one in once for _ in range(3 if one["image_id"] == 1 else 1)]
    for rows, told in ((once, "once an image"), (thrice, "once a line already")):
        kept = read(tmp_path, rows, ids=ids, repeats="keep")
        assert sorted(kept.detections.scores.tolist()) == [0.4] * 3 + [0.5] * 7
        assert told in kept.copies
    for rows, left_out in ((once, []), (thrice, [6])):
        dropped = read(tmp_path, rows, ids=ids, repeats="drop")
        assert dropped.detections.scores.tolist() == [0.5, 0.4, 0.5, 0.5]
        assert list(dropped.reported.values()) == left_out
    assert read(tmp_path, [], ids=ids, repeats="keep").detections.label.tolist() == []
    # Without repeats, equal rows are the detector's own.
    assert len(read(tmp_path, [row("dog")] * 2).detections) == 2
