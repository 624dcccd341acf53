"""`inspect` without a mistake means that `evaluate` reads the files; what it mends is read, and has none left."""

import contextlib
import copy
import gzip
import io
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import curation
from curation.cli import main
from curation.core.errors import CurationError
from tests.evaluation.test_class_identity import write_yolo
from tests.extensions.diagnosis.mistaken import MISTAKES, Rows, Truth, world, written
from tests.extensions.diagnosis.test_mistakes import UNMENDED, changed, in_another_form
from tests.extensions.diagnosis.test_truth_mistakes import BROKEN, DAMAGES, damaged
from tests.sources import test_cub200, test_imagenet, test_mtsd
from tests.sources.openimages_files import write_openimages

MORE: dict[str, Callable[[Truth, Rows], object]] = {
    "annotation ids that repeat": lambda truth, rows: truth["annotations"][1].update(id=1),
    "null image ids": lambda truth, rows: [one.update(image_id=None) for one in truth["annotations"][:3]],
    "a class of annotations that is not listed": lambda truth, rows: truth["annotations"][0].update(category_id=99),
    "a class of detections that is not listed": lambda truth, rows: rows[0].update(category_id=12),
    "an id beyond 64 bits": lambda truth, rows: rows[0].update(image_id=2**70),
    "a box of five numbers": lambda truth, rows: rows[0].update(bbox=[1, 2, 3, 4, 5]),
    "a crowd flag of 2": lambda truth, rows: truth["annotations"][0].update(iscrowd=2),
    "a negative area": lambda truth, rows: truth["annotations"][0].update(area=-1),
    "image ids as texts": lambda truth, rows: [one.update(id=str(one["id"])) for one in truth["images"]],
    "no detections": lambda truth, rows: rows.clear(),
    "no images": lambda truth, rows: truth["images"].clear(),
    "class names that repeat": lambda truth, rows: truth["categories"][1].update(name="class 1"),
    "fields of other types": lambda truth, rows: (
        truth["images"][0].update(curation_id=float("inf")),
        rows[0].update(bbox={"x": 1}),
        rows[1].update(score=[0.5]),
        rows[2].update(category=[], segmentation=float("nan")),
    ),
    "a pose that is a list": lambda truth, rows: truth["annotations"][0].update(pose=[]),
    "class ids as floats, and repeated annotation ids": lambda truth, rows: (
        [one.update(id=float(one["id"])) for one in truth["categories"]],
        truth["annotations"][1].update(id=1),
    ),
    "repeated annotation ids, and a width as text": lambda truth, rows: (
        truth["annotations"][1].update(id=1),
        truth["images"][0].update(width="640"),
    ),
    "class ids of 19 digits": lambda truth, rows: [
        one.update({key: one[key] + 2**62})
        for key, section in (("id", "categories"), ("category_id", "annotations"))
        for one in truth[section]
    ],
    "another class alone": lambda truth, rows: [one.update(category_id=77) for one in rows],
    "sizes of turned photos": lambda truth, rows: [
        one.update(width=one["height"], height=one["width"]) for one in truth["images"]
    ],
    "a truth of crowds alone": lambda truth, rows: [one.update(iscrowd=1) for one in truth["annotations"]],
    "corners in the truth": lambda truth, rows: [
        one.update(bbox=[*one["bbox"][:2], *(a + b for a, b in zip(one["bbox"][:2], one["bbox"][2:], strict=True))])
        for one in truth["annotations"]
    ],
}
TRUTHS = ["json", "JSON", "json.gz", "COCO root", "Roboflow", "rows", "YOLO", "VOC"]
ONLY_JSON = ("json", "JSON", "json.gz", "COCO root", "Roboflow")


def mistaken(truth: Truth, rows: Rows) -> Iterator[tuple[str, Truth, Rows]]:
    """Yield truth and detections with one mistake each."""
    yield "sound", truth, rows
    for name, (change, _) in MISTAKES.items():
        yield name, truth, change(rows, truth)
    for name in DAMAGES:
        yield name, *damaged(truth, rows, name)[:2]
    for name in UNMENDED.keys() - {"exchanged"}:
        yield name, *changed(truth, rows, name)
    for name, break_files in (BROKEN | MORE).items():
        broken = copy.deepcopy((truth, rows))
        break_files(*broken)
        yield name, *broken


def write_truth(form: str, folder: Path, truth: Truth) -> Path:
    """Write a truth in a form that `evaluate` reads."""
    text = json.dumps(truth)
    files = {
        "json": "truth.json", "JSON": "truth.JSON", "json.gz": "truth.json.gz",
        "COCO root": "root/annotations/instances_test.json",
        "Roboflow": "root/valid/_annotations.coco.json", "rows": "metadata.jsonl",
    }  # fmt: skip
    if form == "YOLO":
        return write_yolo(folder / "root", truth)
    if form == "VOC":
        return _write_voc(folder / "root", truth)
    path = folder / files[form]
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "rows":
        text = "".join(_row(image, truth) for image in truth["images"])
    path.write_bytes(gzip.compress(text.encode()) if form == "json.gz" else text.encode())
    return folder / "root" if (folder / "root").exists() else path


def _row(image: dict[str, object], truth: Truth) -> str:
    names = {one["id"]: one["name"] for one in truth["categories"]}
    shown = [one for one in truth["annotations"] if one["image_id"] == image["id"]]
    objects = {"bbox": [one["bbox"] for one in shown], "category": [names[one["category_id"]] for one in shown]}
    return json.dumps({"image_id": image["id"], **image, "objects": objects}) + "\n"


def _write_voc(root: Path, truth: Truth) -> Path:
    names = {one["id"]: one["name"] for one in truth["categories"]}
    stems = {one["id"]: Path(one["file_name"]).stem for one in truth["images"]}
    for folder in ("Annotations", "ImageSets/Main"):
        (root / folder).mkdir(parents=True)
    for image in truth["images"]:
        objects = ""
        for one in truth["annotations"]:
            if one["image_id"] == image["id"]:
                x, y, w, h = one["bbox"]
                sides = {"xmin": x + 1, "ymin": y + 1, "xmax": x + w, "ymax": y + h}
                box = "".join(f"<{side}>{at}</{side}>" for side, at in sides.items())
                objects += f"<object><name>{names[one['category_id']]}</name><bndbox>{box}</bndbox></object>"
        size = f"<size><width>{image['width']}</width><height>{image['height']}</height><depth>3</depth></size>"
        xml = f"<annotation><filename>{image['file_name']}</filename>{size}{objects}</annotation>"
        (root / "Annotations" / f"{stems[image['id']]}.xml").write_text(xml)
    (root / "ImageSets" / "Main" / "test.txt").write_text("".join(f"{stem}\n" for stem in stems.values()))
    return root


def refused(truth: Path, detections: Path, image_set: str) -> str:
    """Return why `evaluate` refuses the files, ``""`` if it reads them."""
    try:
        curation.evaluate.coco(truth=truth, detections=detections, image_set=image_set)
    except CurationError as error:
        return str(error)
    return ""


def check(truth: Path, detections: Path, image_set: str = "test") -> str:
    """Hold a diagnosis against `evaluate`, follow its commands, and return what came of it."""
    reason = refused(truth, detections, image_set)
    try:
        report = curation.inspect(truth, detections=detections)
    except CurationError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert reason
        assert "curation inspect" not in message
        # What evaluate names works, unless no record is sound.
        assert "curation inspect" not in reason or "records without" in message, reason
        return "refused"
    if not report.findings:
        assert not reason
        return "clean"
    assert all(finding.command for finding in report.findings)
    # The command that runs is no advice.
    assert not any("curation inspect TRUTH" in finding.command for finding in report.findings)
    for finding in report.findings:
        if finding.side == "truth" and truth.is_file():
            assert curation.inspect(truth).findings
    if not all(finding.command.startswith("curation inspect ") for finding in report.findings):
        return "named"
    steps = report.command.split(" && ") if report.command else [report.findings[0].command]
    for words in map(shlex.split, steps):
        with contextlib.redirect_stdout(io.StringIO()):
            assert main([*words[1:], "--force"]) == 0, words
        truth, detections = (truth, Path(words[-1])) if "--detections" in words else (Path(words[-1]), detections)
    assert not refused(truth, detections, image_set)
    assert not curation.inspect(truth, detections=detections).findings
    assert not truth.is_file() or not curation.inspect(truth).findings
    return "mended"


@pytest.mark.filterwarnings("ignore:.*is read as a separate dataset", "ignore:.*around their masks")
@pytest.mark.parametrize("form", TRUTHS)
def test_clean_means_that_evaluate_reads_it_and_a_mend_leaves_nothing(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, rows = world(n_images=14, seed=3, skill=0.9)
    outcomes: dict[str, str] = {}
    for number, (name, truth, detections) in enumerate(mistaken(sound, rows)):
        if truth != sound and form not in ONLY_JSON:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        path = write_truth(form, folder, truth)
        found = folder / "detections.json"
        if form in ("rows", "VOC", "YOLO"):
            # Their files state no category ids, or others.
            names = {one["id"]: one["name"] for one in truth["categories"]}
            detections = [
                {key: value for key, value in row.items() if key != "category_id"}
                | {"category": names.get(row.get("category_id"), "another class")}
                for row in detections
            ]
        found.write_text(json.dumps(detections))
        try:
            outcomes[name] = check(path, found, "valid" if form == "Roboflow" else "test")
        except AssertionError as error:
            raise AssertionError(f"{form}, {name}: {error}") from error
    assert outcomes["sound"] == "clean"
    counts = {outcome: [*outcomes.values()].count(outcome) for outcome in outcomes.values()}
    assert counts["mended"] >= 10, outcomes


@pytest.mark.filterwarnings("ignore:.*counted from 0")
@pytest.mark.parametrize("form", ["csv", "yolo", "jsonl", "jsonl.gz", "torchmetrics"])
def test_the_same_holds_for_other_forms_of_detections(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, rows = world(n_images=14, seed=3, skill=0.9)
    outcomes = set()
    for number, (name, truth, detections) in enumerate(mistaken(sound, rows)):
        if truth != sound or (form in ("csv", "yolo", "torchmetrics") and name not in MISTAKES.keys() | {"sound"}):
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        path, _ = written(folder, truth, rows)
        with contextlib.suppress(KeyError, ValueError):
            outcomes.add(check(path, in_another_form(form, folder, truth, detections)))
    assert {"clean", "mended"} <= outcomes


def test_annotations_in_memory_are_explained_as_their_file_is(tmp_path: Path) -> None:
    sound, rows = world(n_images=14, seed=3, skill=0.9)
    for name, truth, _ in mistaken(sound, rows):
        path, _ = written(tmp_path, truth, rows)
        if truth == sound:
            continue
        try:
            report = curation.inspect(path)
        except CurationError:
            with pytest.raises(CurationError):
                curation.inspect(truth)
            continue
        in_memory = curation.inspect(truth)
        assert [one.what for one in in_memory.findings] == [one.what for one in report.findings], name
        commands = [one.command.replace(str(path), "FILE.json") for one in report.findings]
        assert [one.command for one in in_memory.findings] == commands


@pytest.mark.parametrize("form", ["rows", "VOC"])
@pytest.mark.filterwarnings("ignore:.*is read as a separate dataset")
def test_numbers_become_names_where_a_truth_has_no_others(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    truth, rows = world(n_images=14, seed=3, skill=0.9)
    path = write_truth(form, tmp_path, truth)
    names = {one["id"]: one["name"] for one in truth["categories"]}
    order = curation.open_source("mine", path, part="test").categories.names
    for row in rows:
        row["category_id"] = order.index(names[row["category_id"]])
    (tmp_path / "detections.json").write_text(json.dumps(rows))
    # What exists is another mended file.
    (tmp_path / "mended.json").touch()
    assert check(path, tmp_path / "detections.json") == "mended"
    assert not (tmp_path / "mended.json").read_text()


def _open_images(root: Path) -> Path:
    write_openimages(root, part="validation")
    (root / "validation-image-sizes.csv").write_text(
        "image_id,width,height\n000002b66c9c498e,640,480\n00166893b16a03ab,640,480\n"
    )
    return root


PUBLISHED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "openimages": (_open_images, "validation"),
    "cub200": (test_cub200.write, "test"),
    "mtsd": (lambda root: test_mtsd.write(root) and root, "train"),
}


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_published_layouts_are_inspected_and_scored_as_they_are_built_from(dataset: str, tmp_path: Path) -> None:
    write, part = PUBLISHED[dataset]
    root = write(tmp_path / "root")
    source = curation.open_source(dataset, root, part=part)
    objects = source.require_objects("The test")
    rows = [
        {"image_id": source.images.native[image], "category": source.categories.names[category], "bbox": box,
         "score": 1 - n / 100}
        for n, (image, category, box) in enumerate(
            zip(objects.image, objects.category, objects.boxes.tolist(), strict=True))
    ]  # fmt: skip
    (tmp_path / "detections.json").write_text(json.dumps(rows))
    counts = curation.inspect(root, image_set=part).counts
    assert (counts["images"], counts["boxes"]) == (len(source.images), len(objects))
    assert curation.inspect(root, detections=tmp_path / "detections.json", image_set=part).findings == ()
    assert not refused(root, tmp_path / "detections.json", part)
    result = curation.evaluate.coco(truth=root, detections=tmp_path / "detections.json", image_set=part)
    assert result["AP"] == pytest.approx(100)


def test_what_cannot_be_scored_is_said_so(tmp_path: Path) -> None:
    [finding] = curation.inspect(write_openimages(tmp_path / "boxes", part="test")).findings
    assert "needs boxes in pixels" in finding.what
    assert "test-image-sizes.csv" in finding.command
    packed = tmp_path / "imagenet" / "ILSVRC" / "Data" / "CLS-LOC"
    test_imagenet.draw(packed / "train")
    for path in (packed / "train", tmp_path / "imagenet", *(
        test_imagenet.write_truth(tmp_path, layout) for layout in test_imagenet.LAYOUTS
    )):  # fmt: skip
        found = curation.inspect(path)
        assert (found.counts["images"], found.counts["classes"]) == (3, 2)
        assert "It holds no boxes" in found.notes[-1]
