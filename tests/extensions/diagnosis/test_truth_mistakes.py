"""A truth is doubted as detections are: each planted mistake is named, and mended into the right value."""

import contextlib
import copy
import io
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import curation
from curation.cli import main
from curation.core.errors import CurationError
from curation.extensions.diagnosis.diagnosis import Diagnosis, diagnose
from tests.extensions.diagnosis.mistaken import Rows, Truth, world, written


def average_precision(truth: Truth, rows: Rows) -> float:
    """Return AP in % as pycocotools has it of a sound truth and sound results."""
    annotated = COCO()
    with contextlib.redirect_stdout(io.StringIO()):
        annotated.dataset = copy.deepcopy(truth)
        annotated.createIndex()
        evaluation = COCOeval(annotated, annotated.loadRes(copy.deepcopy(rows)), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return 100 * float(evaluation.stats[0])


def evaluated(truth: Path, detections: Path) -> Any:
    return curation.evaluate.coco(truth=truth, detections=detections)


def mended(found: Diagnosis, paths: tuple[Path, Path]) -> tuple[Path, Path]:
    """Run the commands that a diagnosis prints, in the working folder, and return the files that are sound then."""
    command = found.command or next(one.command for one in found.findings if one.command.startswith("curation "))
    truth, detections = paths
    for words in (shlex.split(step) for step in command.split(" && ")):
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(words[1:]) == 0, words
        if "--detections" in words:
            detections = Path(words[-1]).resolve()
        else:
            truth = Path(words[-1]).resolve()
    return truth, detections


Box = Callable[[float, float, float, float, int, int], list[float]]
LAYOUTS: dict[str, Box] = {
    "xywh": lambda x, y, w, h, W, H: [x, y, w, h],
    "xyxy": lambda x, y, w, h, W, H: [x, y, x + w, y + h],
    "yxyx": lambda x, y, w, h, W, H: [y, x, y + h, x + w],
    "cxcywh": lambda x, y, w, h, W, H: [x + w / 2, y + h / 2, w, h],
    "yxhw": lambda x, y, w, h, W, H: [y, x, h, w],
    "cxcywh:0-1": lambda x, y, w, h, W, H: [(x + w / 2) / W, (y + h / 2) / H, w / W, h / H],
    "xywh:0-1": lambda x, y, w, h, W, H: [x / W, y / H, w / W, h / H],
}


def laid_out(rows: Rows, truth: Truth, layout: str) -> Rows:
    sizes = {one["id"]: (one["width"], one["height"]) for one in truth["images"]}
    return [row | {"bbox": LAYOUTS[layout](*row["bbox"], *sizes[row["image_id"]])} for row in rows]


@pytest.mark.parametrize("of_detections", ["xywh", "same", "cxcywh:0-1"])
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "xywh"])
def test_the_layout_of_a_truth_is_found_and_mended(
    layout: str, of_detections: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    truth, rows = world(skill=0.8)
    wrong = truth | {"annotations": laid_out(truth["annotations"], truth, layout)}
    other = layout if of_detections == "same" else of_detections
    paths = written(tmp_path, wrong, laid_out(rows, truth, other))
    found = diagnose(*paths)
    assert f"of {len(truth['annotations'])} boxes leave their images" in found.findings[0].shown or "0-1" in layout
    # Exchanged axes of everything change no number, and exchanged sizes of images look the same.
    if layout == other == "yxhw":
        assert "or width and height of its images, are exchanged" in found.findings[0].what
        return
    assert [one.mend for one in found.findings] == [f"boxes={layout}", *([f"boxes={other}"] if other != "xywh" else [])]
    files = mended(found, paths)
    assert diagnose(*files).findings == ()
    result = evaluated(*files)
    assert result["AP"] == pytest.approx(average_precision(truth, rows), abs=1e-9)
    assert result["APs"] == pytest.approx(evaluated(*written(tmp_path, truth, rows))["APs"], abs=1e-9)
    assert result.notes == ()


@pytest.mark.parametrize("layout", ["xyxy", "yxyx", "cxcywh"])
def test_every_evaluation_doubts_boxes_that_leave_their_images(layout: str, tmp_path: Path) -> None:
    truth, rows = world()
    boxes = laid_out(truth["annotations"], truth, layout)
    sizes = {one["id"]: (one["width"], one["height"]) for one in truth["images"]}
    n = sum(
        any(box[at] + box[at + 2] > sizes[one["image_id"]][at] + 2 for at in (0, 1))
        for one, box in ((one, one["bbox"]) for one in boxes)
    )
    paths = written(tmp_path, truth | {"annotations": boxes}, laid_out(rows, truth, layout))
    notes = [evaluated(*paths).notes[0], curation.evaluate.voc(truth=paths[0], detections=paths[1]).notes[0]]
    for note in notes:
        assert note.startswith("truth.json: The truth's boxes are ")
        assert f"{n} of {len(boxes)} boxes leave their images" in note
        assert "curation inspect TRUTH" in note
    (finding,) = curation.inspect(paths[0]).findings
    assert finding.mend == f"boxes={layout}"


def test_a_truth_of_crowds_alone_is_named_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    truth, rows = world()
    crowds = truth | {"annotations": [one | {"iscrowd": 1} for one in truth["annotations"]]}
    paths = written(tmp_path, crowds, rows)
    assert "All 294 objects of the truth are crowd" in evaluated(*paths).notes[0]
    found = diagnose(*paths)
    assert [one.mend for one in found.findings] == ["crowd=objects"]
    assert evaluated(*mended(found, paths))["AP"] == pytest.approx(average_precision(truth, rows), abs=1e-9)


def test_an_annotation_with_id_0_is_told(tmp_path: Path) -> None:
    truth, rows = world(n_images=6)
    zero = truth | {"annotations": [one | {"id": one["id"] - 1} for one in truth["annotations"]]}
    first = truth["annotations"][0]
    rows.append({key: first[key] for key in ("image_id", "category_id", "bbox")} | {"score": 0.999})
    ours, theirs = average_precision(truth, rows), average_precision(zero, rows)
    assert ours - theirs > 0.5
    paths = written(tmp_path, zero, rows)
    assert evaluated(*paths)["AP"] == pytest.approx(ours, abs=1e-9)
    # The file is sound: it is told, and no mistake.
    assert evaluated(*paths).notes == ()
    found = diagnose(*paths)
    assert found.findings == ()
    assert "has id 0" in found.notes[0]
    assert "has id 0" in curation.inspect(paths[0]).notes[0]


def damaged(truth: Truth, rows: Rows, name: str) -> tuple[Truth, Rows, Truth, Rows]:
    """Return truth and detections with one damage, and what is right: what a person would make of them by hand."""
    annotations = truth["annotations"]
    if name == "annotation ids that restart in each image":
        seen: dict[int, int] = {}
        again = []
        for one in annotations:
            seen[one["image_id"]] = seen.get(one["image_id"], 0) + 1
            again.append(one | {"id": seen[one["image_id"]]})
        return truth | {"annotations": again}, rows, truth, rows
    if name == "an annotation of no image":
        empty = {"id": 9999, "image_id": None, "category_id": 1, "bbox": [], "area": 0, "iscrowd": 0}
        return truth | {"annotations": [*annotations, empty]}, rows, truth, rows
    if name == "an annotation of another image and repeated ids":
        more = annotations[0] | {"image_id": 999_999_999}
        return truth | {"annotations": [*annotations, more]}, rows, truth, rows
    if name == "a mask alone, boxes of other types":
        x, y, w, h = annotations[0]["bbox"]
        mask = annotations[0] | {"bbox": [], "segmentation": [[x, y, x + w, y, x + w, y + h]]}
        bad = [annotations[0] | {"id": 9999 + n, "bbox": box} for n, box in enumerate(([[1, 2, 3, 4]], [1, 2, -3, 4]))]
        return truth | {"annotations": [mask, *annotations[1:], *bad]}, rows, truth, rows
    if name == "NaN in areas of the truth":
        areas = [one | {"area": float("nan")} for one in annotations]
        return truth | {"annotations": areas}, rows, truth, rows
    if name == "NaN":
        bad = [row | ({"bbox": [float("nan")] * 4} if n % 9 == 0 else {}) for n, row in enumerate(rows)]
        return truth, bad, truth, [row for n, row in enumerate(rows) if n % 9]
    if name == "null and short boxes":
        boxes = ({"bbox": None}, {"bbox": [1.0, 2.0]})
        return truth, [row | (boxes[n] if n < 2 else {}) for n, row in enumerate(rows)], truth, rows[2:]
    if name == "boxes as texts":
        return truth, [row | {"bbox": [*map(str, row["bbox"])]} for row in rows], truth, rows
    if name == "all as texts":
        texts = [{key: [*map(str, of)] if key == "bbox" else str(of) for key, of in row.items()} for row in rows]
        return truth, texts, truth, rows
    if name == "corners as texts":
        corners = laid_out(rows, truth, "xyxy")
        return truth, [row | {"bbox": [*map(str, row["bbox"])]} for row in corners], truth, rows
    if name == "some class ids as texts":
        few = [row | ({"category_id": str(row["category_id"])} if n < 3 else {}) for n, row in enumerate(rows)]
        return truth, few, truth, rows
    if name == "phrases that are no class":
        names = {one["id"]: one["name"] for one in truth["categories"]}
        named = [
            {"image_id": row["image_id"], "bbox": row["bbox"], "score": row["score"],
             "category": f"{names[row['category_id']]}{' .' if n % 4 == 0 else ''}"}
            for n, row in enumerate(rows)
        ]  # fmt: skip
        return truth, named, truth, [row for n, row in enumerate(rows) if n % 4]
    assert name == "a class that the truth lacks"
    return (
        truth,
        [row | ({"category_id": 12} if n % 7 == 0 else {}) for n, row in enumerate(rows)],
        truth,
        [row for n, row in enumerate(rows) if n % 7],
    )


DAMAGES = [
    "annotation ids that restart in each image", "an annotation of no image", "a mask alone, boxes of other types",
    "an annotation of another image and repeated ids", "NaN in areas of the truth", "NaN", "null and short boxes",
    "some class ids as texts",
    "boxes as texts", "all as texts", "corners as texts", "phrases that are no class", "a class that the truth lacks",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*around their masks")
@pytest.mark.parametrize("name", DAMAGES)
def test_what_evaluate_refuses_is_mended_into_the_right_value(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    truth, rows, sound, right = damaged(*world(seed=4), name)
    paths = written(tmp_path, truth, rows)
    with pytest.raises(CurationError) as refused:
        evaluated(*paths)
    assert "curation inspect" in str(refused.value)
    found = diagnose(*paths)
    assert "no mistake found" not in "\n".join(found.lines())
    files = mended(found, paths)
    assert evaluated(*files)["AP"] == pytest.approx(average_precision(sound, right), abs=1e-9)
    assert diagnose(*files).findings == ()


BROKEN: dict[str, Callable[[Truth, Rows], object]] = {
    "no categories": lambda truth, rows: truth.update(categories=[]),
    "a category id twice": lambda truth, rows: truth["categories"].append(dict(truth["categories"][0])),
    "an image id twice": lambda truth, rows: truth["images"].append(dict(truth["images"][0])),
    "a width in parts of pixels": lambda truth, rows: truth["images"][0].update(width=640.5),
    "a negative box in the truth": lambda truth, rows: truth["annotations"][0].update(bbox=[5, 5, -3, 4]),
    "mixed annotation ids": lambda truth, rows: truth["annotations"][0].update(id="a"),
    "a negative box": lambda truth, rows: rows[0].update(bbox=[5, 5, -3, 4]),
    "a box beyond any image": lambda truth, rows: rows[0].update(bbox=[5, 5, 1e9, 4]),
    "a detection of another image": lambda truth, rows: rows[0].update(image_id=999_999_999),
    "a score above 1": lambda truth, rows: rows[0].update(score=1.7),
    "no score": lambda truth, rows: rows[0].pop("score"),
    "a class id in parts": lambda truth, rows: rows[0].update(category_id=1.5),
}


@pytest.mark.parametrize("name", BROKEN)
def test_no_mistake_found_is_never_said_of_what_evaluate_refuses(name: str, tmp_path: Path) -> None:
    truth, rows = world()
    BROKEN[name](truth, rows)
    paths = written(tmp_path, truth, rows)
    with pytest.raises(CurationError):
        evaluated(*paths)
    found = diagnose(*paths)
    assert found.findings
    assert all(one.command for one in found.findings)
    if found.findings[0].side == "truth":
        assert curation.inspect(paths[0]).findings


@pytest.mark.parametrize("seed", range(6))
def test_a_sound_truth_is_not_doubted(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    truth, rows = world(seed=seed, n_images=int(rng.integers(1, 60)), skill=float(rng.uniform(0, 1)))
    # Whole pixels: a box may reach one pixel beyond its image.
    for one in truth["annotations"]:
        one["bbox"] = [float(round(side)) for side in one["bbox"]]
    if seed % 2:
        truth["images"] = [{key: one[key] for key in ("id", "file_name")} for one in truth["images"]]
    paths = written(tmp_path, truth, rows)
    assert evaluated(*paths).notes == ()
    assert diagnose(*paths).findings == ()
    assert curation.inspect(paths[0]).findings == ()
