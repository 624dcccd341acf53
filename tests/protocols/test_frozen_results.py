"""Results files of every reference method on score vectors near the objects of a drawn world stay to the byte."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import curation
from curation.benchmarks.methods import (
    LabelledBoxes,
    NaiveOptions,
    ScoreVectors,
    calibrate,
    confirm,
    expel,
    image_positions,
    keep_across_kinds,
    merge_passes,
    merged_detections,
    naive_unknown,
    read_labelled,
    read_score_vectors,
    write_results,
)
from curation.core.errors import PredictionError
from curation.evaluation.problem import KnownClasses
from curation.evaluation.truth import ground_truth
from tests.worlds import osod3
from tests.worlds.coco_file import write_json
from tests.worlds.drawing import Draws

KNOWN = osod3.KNOWN
WITHOUT_TRUTH = {name: number for number, name in enumerate(KNOWN, 1)} | {"unknown": -1}
FROZEN = {
    "naive-1": ("5d070208c8a7fa1302eca3fd", 73.47877167456416, 0.0),
    "naive-2": ("894382203958023a0bc66ab9", 62.69572085413671, 41.34804337576616),
    "naive-4": ("ca712b22aa0c6091101926ce",),
    "naive-1e9": ("cda33bc104cf0bb838606a38",),
    "naive-background": ("549f5db2f158c9c1137545d9", 38.49284928492849, 36.301849539792684),
    "pairwise-1": ("fbdea7cc622f418046510ea7", 17.302949929011735, 17.16145577510872),
    "pairwise-0.7": ("81d739f09eb6bde0ef195e55", 14.693338673556278, 16.061952455436966),
    "pairwise-0.5": ("81d739f09eb6bde0ef195e55",),
    "greedy-1": ("fbdea7cc622f418046510ea7",),
    "greedy-0.7": ("9777b9afb6acd4788e366b2d", 14.693338673556278, 15.303651596773014),
    "greedy-0.5": ("9777b9afb6acd4788e366b2d",),
    "one-0": ("3f22bab2aebe7a5d9d8ba949", 81.49281274281275, 0.0),
    "one-0.5": ("61396b33464722df44f46e88", 79.14703970397039, 0.0),
    "one-1.2": ("21ae617596b31dd05496dbe2",),
    "max_score-1.2": ("21ae617596b31dd05496dbe2",),
    "phi": ("52664da4d3b5690387cda48e",),
    "pad-0.5": ("42252a7a17c30fde90380557", 0.0, 21.82522069940984),
    "pad-0.9": ("cac08d1cb9c8b300b6434fb3", 0.0, 14.743412556358612),
    "merged": ("7ff0e840356ef7387b18b947", 86.26322522362125, 0.0),
    "merged-2": ("632feb95ecdf645ab9b9451d",),
}
"""Digest of each file, and its AP_known and AP_unk."""


def draw(folder: Path) -> None:
    truth = json.loads(osod3.files(folder)["truth"].read_text())
    draws = Draws("baselines")
    for name in ("scores", "again"):
        rows = []
        for region, thing in enumerate(truth["annotations"]):
            x, y, w, h = thing["bbox"]
            counts = [1 + draws.below(30) for _ in range(len(KNOWN) + 1)]
            label = thing["category_id"] - 1
            if label < len(KNOWN):
                counts[label] += draws.below(100)
            total = sum(counts) + 7
            box = [x + draws.below(3), y + draws.below(3), w, h]
            more = {"background_score": counts[-1] / total, "objectness": (1 + draws.below(99)) / 100}
            scores = [one / total for one in counts[:-1]]
            rows.append({"image_id": thing["image_id"], "bbox": box, "scores": scores, **more, "region": region})
        write_json(folder / f"{name}.json", rows)
    full = [one for one in truth["annotations"] if one["category_id"] <= len(KNOWN)]
    training = {**truth, "annotations": full, "categories": truth["categories"][: len(KNOWN)]}
    write_json(folder / "training.json", training)


Made = tuple[str, ScoreVectors, LabelledBoxes]


def every_method(folder: Path, ids: dict[str, int]) -> Iterator[Made]:
    scores, again = (read_score_vectors(folder / f"{name}.json") for name in ("scores", "again"))
    for text in ("1", "2", "4", "1e9"):
        yield f"naive-{text}", scores, naive_unknown(scores, NaiveOptions(float(text)))
    options = NaiveOptions(3, 0.1, 0.3, compare_background=True)
    yield "naive-background", scores, naive_unknown(scores, options)
    boxes, found = read_labelled(folder / "detections.json", KNOWN, ids)
    for reading in ("pairwise", "greedy"):
        for text in ("1", "0.7", "0.5"):
            unknown = found.label == len(KNOWN)
            kept = keep_across_kinds(boxes.image, boxes.boxes, found.scores, unknown, float(text), reading)  # type: ignore[arg-type]
            yield f"{reading}-{text}", boxes, LabelledBoxes(found.row[kept], found.label[kept], found.scores[kept])
    source = curation.open_source("coco", folder / "training.json")
    truth = ground_truth(source, KnownClasses(KNOWN, tuple(range(len(KNOWN))), "training.json")).truth
    for text in ("0", "0.5", "1.2"):
        yield f"one-{text}", again, expel(again, calibrate(scores, truth), alpha=float(text))
    yield "max_score-1.2", again, expel(again, calibrate(scores, truth), alpha=1.2, unknown="max_score")
    yield "phi", again, expel(again, calibrate(scores, truth, phi=0.95))
    assert scores.objectness is not None
    both = image_positions((*scores.image_ids, *again.image_ids))
    first, second = both[: len(scores)], both[len(scores) :]
    for theta in (0.5, 0.9):
        rows = confirm(
            first, scores.boxes, scores.objectness, second, again.boxes, again.objectness, theta=theta, top=3
        )
        yield f"pad-{theta}", scores, LabelledBoxes(rows, np.full(len(rows), len(KNOWN)), scores.objectness[rows])
    merged = merge_passes([scores, again])
    yield "merged", merged.vectors, merged_detections(merged)
    yield "merged-2", merged.vectors, merged_detections(merged, floor=0.2, iou=0.3)


def test_results_of_every_method(tmp_path: Path) -> None:
    draw(tmp_path)
    ids = {one["name"]: one["id"] for one in json.loads((tmp_path / "truth.json").read_text())["categories"]}
    ids = {name: ids[name] for name in KNOWN} | {"unknown": -1}
    merged = merge_passes([read_score_vectors(tmp_path / f"{name}.json") for name in ("scores", "again")])
    of_region = {
        "passes": merged.passes.tolist(),
        "entropy": [one if one == one else None for one in merged.entropy.tolist()],
    }
    made = {}
    for name, vectors, found in every_method(tmp_path, ids):
        own = WITHOUT_TRUTH if name in ("phi", "merged-2") else ids
        path = tmp_path / f"{name}.json"
        columns = of_region if name.startswith("merged") else None
        write_results(vectors, found, KNOWN, path, ids=own, columns=columns)
        made[name] = [hashlib.sha256(path.read_bytes()).hexdigest()[:24]]
        if len(FROZEN[name]) == 3:
            inputs = {"truth": tmp_path / "truth.json", "classes": tmp_path / "classes.json"}
            result = curation.evaluate.osod3(**inputs, detections=path)
            made[name] += [result[key] for key in ("AP_known", "AP_unk")]
    assert made == {name: list(one) for name, one in FROZEN.items()}


@pytest.mark.parametrize(
    ("row", "ids", "label"),
    [
        ({"category_id": 2}, None, None),
        ({"category_id": 2, "category": "cat"}, {"cat": 1, "dog": 2, "unknown": -1}, None),
        ({"category_id": 2}, {"cat": 1, "dog": 2, "unknown": -1}, 1),
        ({"category_id": 2, "category": "cat"}, None, 0),
    ],
)
def test_whose_ids_a_results_file_holds(
    tmp_path: Path, row: dict[str, object], ids: dict[str, int] | None, label: int | None
) -> None:
    write_json(tmp_path / "r.json", [{"image_id": 1, "bbox": [10, 10, 100, 100], "score": 0.5, **row}])
    if label is None:
        with pytest.raises(PredictionError, match="agree with category"):
            read_labelled(tmp_path / "r.json", ("cat", "dog"), ids)
    else:
        assert read_labelled(tmp_path / "r.json", ("cat", "dog"), ids)[1].label.tolist() == [label]
