"""Detections of drawn files through every reader: matched, refused, or doubted by the boxes; never another image."""

import contextlib
import csv
import io
import json
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import curation
from curation.benchmarks.calls import _written
from curation.cli import main
from curation.core.errors import CurationError
from curation.evaluation.problem import classes_of_source
from curation.evaluation.readers import Policy, ReadDetections, read_detections
from curation.evaluation.truth import Part, ground_truth
from tests.worlds.image_references import NUMBERS, Reference, World, forms, world

SIDE = 640
READERS = ("json", "jsonl", "csv", "yolo", "voc", "rows", "frame", "torchmetrics", "Ultralytics")


def coco_of(drawn: World, boxes: list[list[float]]) -> dict[str, Any]:
    images = [
        {"id": own, "file_name": file, "width": SIDE, "height": SIDE}
        for own, file in zip(drawn.ids, drawn.files, strict=True)
    ]
    annotations = [
        {"id": row + 1, "image_id": drawn.ids[row], "category_id": 1, "bbox": boxes[row], "area": 1, "iscrowd": 0}
        for row in drawn.part
    ]
    return {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]}


class Results:
    """Detections of one image as Ultralytics returns them."""

    def __init__(self, path: str, box: list[float], score: float) -> None:
        x, y, w, h = box
        self.path, self.names = path, {0: "cat"}
        corners = np.array([[x, y, x + w, y + h]])
        self.boxes = SimpleNamespace(xyxy=corners, conf=np.array([score]), cls=np.array([0.0]))


def given(reader: str, rows: list[tuple[Reference, list[float], float]], folder: Path) -> Any:
    """Return detections in the form of a reader: a path, or what Python holds."""
    records = [{**reference, "category_id": 1, "bbox": box, "score": score} for reference, box, score in rows]
    path = folder / f"detections.{reader}"
    if reader in ("json", "jsonl"):
        lines = "\n".join(map(json.dumps, records)) if reader == "jsonl" else json.dumps(records)
        path.write_text(lines)
        return path
    if reader == "csv":
        with path.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow([*rows[0][0], "category_id", "x", "y", "w", "h", "score"])
            table.writerows([[*reference.values(), 1, *box, score] for reference, box, score in rows])
        return path
    if reader == "rows":
        return records
    if reader == "frame":
        return pd.DataFrame(records)
    if reader == "torchmetrics":
        return [
            {**reference, "boxes": [[x, y, x + w, y + h]], "scores": [score], "labels": [1]}
            for reference, (x, y, w, h), score in rows
        ]
    if reader == "Ultralytics":
        return [Results(reference["file_name"], box, score) for reference, box, score in rows]
    names = [str(reference.get("file_name", reference.get("image_id"))) for reference, *_ in rows]
    if reader == "voc":
        path = folder / "voc"
        path.mkdir()
        lines = [
            f"{name} {score} {x + 1} {y + 1} {x + w} {y + h}"
            for name, (_, (x, y, w, h), score) in zip(names, rows, strict=True)
        ]
        (path / "comp4_det_test_cat.txt").write_text("\n".join(lines))
        return path
    path = folder / "yolo"
    (path / "labels").mkdir(parents=True)
    (path / "data.yaml").write_text("names: [cat]\n")
    for name, (_, (x, y, w, h), score) in zip(names, rows, strict=True):
        line = f"0 {(x + w / 2) / SIDE} {(y + h / 2) / SIDE} {w / SIDE} {h / SIDE} {score}\n"
        with (path / "labels" / f"{name}.txt").open("a") as file:
            file.write(line)
    return path


def fits(reader: str, form: str, references: list[Reference]) -> bool:
    names = [str(next(reversed(reference.values()))) for reference in references]
    if reader in ("yolo", "voc"):
        return all(not set(name) & {"/", "\\", " "} for name in names) and form not in ("new Ultralytics", *NUMBERS)
    return reader != "Ultralytics" or [*references[0]] == ["file_name"]


def read(
    reader: str, rows: list[tuple[Reference, list[float], float]], part: Part, folder: Path, policy: Policy
) -> Any:
    folder.mkdir()
    detections = given(reader, rows, folder)
    path = detections if isinstance(detections, Path) else _written(detections, folder)
    return read_detections(path, part.truth, policy)


@pytest.mark.filterwarnings("ignore::curation.core.errors.CurationWarning")
def test_every_reader_matches_refuses_or_doubts(tmp_path: Path) -> None:
    tally: Counter[str] = Counter()
    for number in range(500):
        rng = random.Random(f"readers {number}")
        drawn = world(rng)
        corners = np.random.default_rng(number)
        boxes = np.concatenate([corners.integers(0, 500, (30, 2)), corners.integers(20, 90, (30, 2))], axis=1)
        box_of = boxes[np.arange(len(drawn.files)) % 30].astype(float).tolist()
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(coco_of(drawn, box_of)))
        source = curation.open_source("coco", path)
        chosen = sorted(drawn.part) if rng.random() < 0.5 else None
        ids = None if chosen is None else [source.image_ids[row] for row in chosen]
        part = ground_truth(source, classes_of_source(source), ids)
        files = [drawn.files[row] for row in part.truth.file_positions.tolist()]
        every = [*forms(drawn)]
        for form, references in rng.sample(every, 6):
            rows = [row for row in range(len(references)) if rng.random() < 0.8] or [0]
            reader = rng.choice([one for one in READERS if fits(one, form, references)])
            policy = Policy(stray=rng.choice(["error", "drop"]))
            detections = [(references[row], box_of[row], (row + 1) / 100) for row in rows]
            where = f"world {number}, {form}, {reader}, {policy.stray}"
            try:
                result: ReadDetections = read(reader, detections, part, tmp_path / f"{number}-{form}", policy)
            except CurationError:
                tally["refused"] += 1
                continue
            found = result.detections
            meant = [drawn.files[round(100 * score) - 1] for score in found.scores.tolist()]
            wrong = sum(files[image] != file for image, file in zip(found.image.tolist(), meant, strict=True))
            # No box tells where a detection belongs whose image is outside the part.
            untold = form in NUMBERS and not result.doubt and not {drawn.files[row] for row in rows} & {*files}
            tally["right" if not wrong else "outside" if untold else "doubted"] += 1
            assert not wrong or untold or (form in NUMBERS and result.doubt), (where, wrong, len(rows))
    assert tally["right"] > 1700, tally
    assert tally["outside"] < 5, tally


def photos(n: int = 40, seed: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a truth of files 0001.jpg, … whose ids are shuffled, and detections beside its objects."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(n) + 1
    corners = np.concatenate([rng.integers(0, 400, (n, 2)), rng.integers(60, 200, (n, 2))], axis=1)
    images = [
        {"id": int(own), "file_name": f"{row:04d}.jpg", "width": SIDE, "height": SIDE} for row, own in enumerate(ids, 1)
    ]
    annotations = [
        {"id": row + 1, "image_id": int(ids[row]), "category_id": 1, "bbox": corners[row].tolist(), "iscrowd": 0,
         "area": int(corners[row, 2] * corners[row, 3])}
        for row in range(n)
    ]  # fmt: skip
    boxes = (corners + rng.normal(0, 6, corners.shape)).round(1).tolist()
    rows = [
        {"image_id": int(own), "category_id": 1, "bbox": box, "score": round(1 - row / 100, 2)}
        for row, (own, box) in enumerate(zip(ids, boxes, strict=True))
    ]
    return {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]}, rows


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    code = main([str(word) for word in words])
    streams = capsys.readouterr()
    return code, streams.out + streams.err


def ap_of(truth: Path, detections: Any) -> float:
    return float(curation.evaluate.coco(truth=truth, detections=detections)["AP"])


def independent_ap(truth: Path, rows: list[dict[str, Any]], folder: Path) -> float:
    """Return the AP of pycocotools, of records that have the truth's own ids."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    (path := folder / "own.json").write_text(json.dumps(rows))
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(truth))
        evaluation = COCOeval(coco, coco.loadRes(str(path)), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return 100 * float(evaluation.stats[0])


def test_numbers_of_file_names_are_doubted_and_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What Ultralytics writes for 0001.jpg: 1, in new versions with the file name beside it."""
    truth, rows = photos()
    (path := tmp_path / "truth.json").write_text(json.dumps(truth))
    right = independent_ap(path, rows, tmp_path)
    assert 40 < right < 90
    file_of = {image["id"]: image["file_name"] for image in truth["images"]}
    old = [row | {"image_id": int(file_of[row["image_id"]][:-4])} for row in rows]
    new = [row | {"file_name": file_of[truth_row["image_id"]]} for row, truth_row in zip(old, rows, strict=True)]
    stems = [row | {"image_id": file_of[row["image_id"]][:-4]} for row in rows]
    for given in (rows, new, stems):
        assert ap_of(path, given) == pytest.approx(right, abs=1e-9)
    (detections := tmp_path / "old.json").write_text(json.dumps(old))
    code, text = run(capsys, "evaluate", "coco", "--truth", path, "--detections", detections)
    assert code == 0
    assert "Image ids are the numbers of file names" in text
    code, text = run(capsys, "inspect", path, "--detections", detections)
    assert code == 1
    assert "--mend image_ids=stem_number" in text
    words = ["inspect", path, "--detections", detections, "--mend", "image_ids=stem_number", "--out"]
    assert run(capsys, *words, tmp_path / "mended.json")[0] == 0
    assert ap_of(path, tmp_path / "mended.json") == pytest.approx(right, abs=1e-9)
    assert run(capsys, "inspect", path, "--detections", tmp_path / "mended.json")[0] == 0


def joined(truth: dict[str, Any]) -> dict[int, int | str]:
    """Make the truth an export of COCO and VOC images, numbered anew; return the id in its source of each image."""
    own: dict[int, int | str] = {}
    for row, image in enumerate(truth["images"]):
        number = 3 * image["id"] + 500
        if row % 2:
            own[image["id"]], image["curation_id"] = number, f"coco:{number:012d}"
        else:
            own[image["id"]], image["curation_id"] = number - 400, f"voc2007:{number - 400:06d}"
        image["file_name"] = f"{image['curation_id'].replace(':', '/')}.jpg"
    return own


def test_detections_of_joined_sources_are_resolved_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, rows = photos()
    own = joined(truth)
    (path := tmp_path / "export.json").write_text(json.dumps(truth))
    right = independent_ap(path, rows, tmp_path)
    raw = [row | {"image_id": own[row["image_id"]]} for row in rows]
    assert ap_of(path, raw) == pytest.approx(right, abs=1e-9)
    # 3 of VOC and 3 of COCO: nothing says whose a detection is, but the id with its source does.
    truth["images"][0]["curation_id"] = f"voc2007:{own[truth['images'][1]['id']]:06d}"
    own[truth["images"][0]["id"]] = own[truth["images"][1]["id"]]
    path.write_text(json.dumps(truth))
    (detections := tmp_path / "raw.json").write_text(
        json.dumps([row | {"image_id": own[row["image_id"]]} for row in rows])
    )
    code, text = run(capsys, "evaluate", "coco", "--truth", path, "--detections", detections)
    assert code == 2
    assert truth["images"][0]["curation_id"] in text or truth["images"][1]["curation_id"] in text
    listed = {image["id"]: image["curation_id"] for image in truth["images"]}
    assert ap_of(path, [row | {"image_id": listed[row["image_id"]]} for row in rows]) == pytest.approx(right, abs=1e-9)
