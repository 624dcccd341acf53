"""Every planted mistake is named with a mend that works; nothing is found in sound files, however poor the detector."""

import gzip
import json
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.core.errors import CurationError
from curation.extensions.diagnosis.diagnosis import diagnose, mended
from curation.extensions.diagnosis.mistakes import RIGHT_CLASS
from tests.extensions.diagnosis.mistaken import MISTAKES, NUMBERS, Rows, Truth, world, written
from tests.real_files import real_files


def perfect(truth: Truth) -> Rows:
    """Return every object of a truth as a detection."""
    rng = np.random.default_rng(1)
    return [
        {
            "image_id": one["image_id"],
            "category_id": one["category_id"],
            "bbox": one["bbox"],
            "score": round(float(rng.uniform(0.1, 0.9)), 3),
        }
        for one in truth["annotations"]
    ]


def alike(found: Rows, wanted: Rows) -> bool:
    values = [[*one["bbox"], one["score"]] for one in found], [[*one["bbox"], one["score"]] for one in wanted]
    ids = [[(one["image_id"], one["category_id"]) for one in rows] for rows in (found, wanted)]
    # Adding, dividing and taking away again is off by some of the last bits of coordinates up to 1,000.
    return ids[0] == ids[1] and np.allclose(*values, rtol=1e-9, atol=1e-9)


@cache
def sound_ap50(seed: int, folder: Path) -> float:
    """Return AP50 of the honest detector of a world, of which a mended file has as much."""
    truth, detections = written(folder, *world(seed=seed))
    found: float = curation.evaluate.coco(truth=truth, detections=detections)["AP50"]
    return found


NAMES_OF_IMAGES = ("stems", "file names")
"""What `evaluate` may take for the id of an image: no mistake then."""


def is_read(name: str, paths: tuple[Path, Path], ap50: float) -> bool:
    """Return whether names of images are no mistake, since `evaluate` gives them the value of their ids."""
    if name not in NAMES_OF_IMAGES or diagnose(*paths).findings:
        return False
    assert curation.evaluate.coco(truth=paths[0], detections=paths[1])["AP50"] == pytest.approx(ap50)
    return True


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("seed", [7, 9])
def test_a_planted_mistake_is_named_with_a_mend_that_works(
    name: str, seed: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mistake, mend = MISTAKES[name]
    truth, rows = world(seed=seed)
    paths = written(tmp_path, truth, mistake(rows, truth))
    sound = sound_ap50(seed, tmp_path_factory.getbasetemp())
    if is_read(name, paths, sound):
        return
    found = diagnose(*paths)
    assert len(found.findings) == 1
    if name != "offset":  # Whose pixels are those that most boxes of a real detector agree on.
        assert found.mends == (mend,)
    share, after = found.findings[0].now, found.findings[0].mended
    assert share is not None
    assert after is not None
    assert after > share
    again = tmp_path / "again.json"
    again.write_text(json.dumps(mended(*paths, found.mends)))
    assert not diagnose(paths[0], again).findings
    result = curation.evaluate.coco(truth=paths[0], detections=again)
    assert result["AP50"] == pytest.approx(sound, abs=0.5 if name == "offset" else 1e-6)


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("seed", range(2))
def test_a_mend_undoes_its_mistake(name: str, seed: int, tmp_path: Path) -> None:
    mistake, _ = MISTAKES[name]
    truth, _ = world(seed=seed)
    rows = [row | {"note": number} for number, row in enumerate(perfect(truth))]
    paths = written(tmp_path, truth, mistake(rows, truth))
    if is_read(name, paths, 100):
        return
    back = mended(*paths, diagnose(*paths).mends)
    if name == "low is good":  # With every detection right no score tells: the mend is asked for.
        back = mended(*paths, ["scores=inverted"])
    assert alike(back, rows)
    assert [one["note"] for one in back] == [*range(len(rows))]


def sound_files() -> Iterator[tuple[str, Truth, Rows]]:
    rng = np.random.default_rng(0)
    truth, rows = world(seed=3)
    yield "good", truth, rows
    for skill in (0.0, 0.05, 0.1, 0.3):
        yield f"a detector that finds {skill:.0%}", *world(seed=round(100 * skill), skill=skill)
    for n in (1, 2, 3, 10):
        yield f"{n} images", *world(n_images=n, seed=n, skill=0.5)
    yield "three detections", truth, rows[:3]
    yield "no detections", truth, []
    yield "one class alone", truth, [one for one in rows if one["category_id"] == 3]
    yield "classes by chance", truth, [one | {"category_id": int(rng.choice(NUMBERS))} for one in rows]
    yield "scores by chance", truth, [one | {"score": float(rng.random())} for one in rows]
    ids = [one["id"] for one in truth["images"]]
    other = dict(zip(ids, rng.permutation(ids).tolist(), strict=True))
    yield "boxes of other images", truth, [one | {"image_id": other[one["image_id"]]} for one in rows]
    yield "one box everywhere", truth, [one | {"bbox": [0, 0, 500, 500]} for one in rows]
    yield "points", truth, [one | {"bbox": [*one["bbox"][:2], 1, 1]} for one in rows]
    yield "half of the images", truth, [one for one in rows if one["image_id"] % 2]
    yield "one class taken for another", truth, [one | {"category_id": max(2, one["category_id"])} for one in rows]
    yield "a truth of one class", *world(seed=6, numbers=[1])
    two, _ = world(seed=6, numbers=[1, 2])
    second = [one for one in perfect(two) if one["category_id"] == 2][:8]
    yield "few boxes of one of two classes", two, [one | {"category_id": 1 + (not n)} for n, one in enumerate(second)]
    small = [one for one in perfect(two) if 50 < one["bbox"][2] < 90][:6]
    few = [one | {"bbox": [one["bbox"][0] + (400 if n % 2 else 45), *one["bbox"][1:]]} for n, one in enumerate(small)]
    yield "six boxes, some off alike", two, few


@pytest.mark.parametrize(("truth", "rows"), [pytest.param(*one[1:], id=one[0]) for one in sound_files()])
def test_nothing_is_found_in_a_sound_file(truth: Truth, rows: Rows, tmp_path: Path) -> None:
    assert diagnose(*written(tmp_path, truth, rows)).findings == ()


def permuted(seed: int, kind: str) -> tuple[Truth, Rows, Rows]:
    """Draw a truth, the sound detections of which few are of rare classes, and these with their numbers permuted."""
    rng = np.random.default_rng(seed)
    numbers = sorted(rng.choice(30, int(rng.integers(3, 14)), replace=False).tolist())
    truth, rows = world(n_images=int(rng.integers(10, 60)), seed=seed % 7, numbers=numbers, skill=0.7)
    rare = {*rng.choice(numbers, int(rng.integers(0, len(numbers))), replace=False).tolist()}
    sound = [row for row in rows if row["category_id"] not in rare or rng.random() < 0.12]
    other = dict(zip(numbers, numbers, strict=True))
    if kind == "turned by one":
        other = dict(zip(numbers, [*numbers[1:], numbers[0]], strict=True))
    elif kind == "two exchanged":
        one, two = rng.choice(numbers, 2, replace=False).tolist()
        other |= {one: two, two: one}
    else:
        other = dict(zip(numbers, rng.permutation(numbers).tolist(), strict=True))
    return truth, sound, [row | {"category_id": other[row["category_id"]]} for row in sound]


def test_detections_of_unknown_objects_on_one_class_are_not_renamed(tmp_path: Path) -> None:
    truth, sound = world(seed=3, n_images=20)
    last = truth["categories"][-1]["id"]
    detections = [row | {"category_id": -1} if row["category_id"] == last else row for row in sound]
    assert diagnose(*written(tmp_path, truth, detections)).findings == ()


@pytest.mark.parametrize("kind", ["turned by one", "two exchanged", "permuted"])
def test_a_mend_of_classes_restores_the_file_or_names_what_it_cannot_tell(kind: str, tmp_path: Path) -> None:
    mended_whole = 0
    for seed in range(25):
        truth, sound, mistaken = permuted(seed, kind)
        paths = written(tmp_path, truth, mistaken)
        found = diagnose(*paths)
        if not found.mends:
            continue
        back = [row["category_id"] for row in mended(*paths, found.mends)]
        wanted = [row["category_id"] for row in sound]
        # Never do two classes become one.
        assert len({*back}) == len({*wanted}), seed
        wrong = {old["category_id"] for old, new, right in zip(mistaken, back, wanted, strict=True) if new != right}
        mended_whole += not wrong
        if wrong:
            (finding,) = found.findings
            told = finding.what.partition("cannot be identified by their boxes: ")[2]
            assert {str(old) for old in wrong} <= {*told.removesuffix(", …").split(", ")} or told.endswith("…"), seed
    assert mended_whole >= 5


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"image_id": 1, "category_id": 1, "segmentation": [[1, 2, 3, 4]], "score": 0.5}, "these are masks"),
        ({"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4, 0.5], "score": 0.5}, "oriented boxes"),
        ({"image_id": 1, "category_id": 1, "score": 0.5}, "records without four numbers in bbox"),
        ({"category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}, "records without image_id"),
    ],
)
def test_records_that_are_no_detections_are_refused(record: dict[str, Any], found: str, tmp_path: Path) -> None:
    with pytest.raises(CurationError, match=found):
        diagnose(*written(tmp_path, world(n_images=2)[0], [record] * 3))


def test_drawn_detectors_of_every_skill_are_not_accused(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for seed in range(40):
        drawn = world(
            seed=1000 + seed, n_images=int(rng.integers(1, 40)), skill=float(rng.uniform(0, 0.5)) * (seed % 3)
        )
        assert diagnose(*written(tmp_path, *drawn)).findings == (), seed


def changed(truth: Truth, rows: Rows, name: str) -> tuple[Truth, Rows]:
    if name == "exchanged":
        return truth, rows
    if name == "boxes of no size":
        return truth, [one | {"bbox": [*one["bbox"][:2], 0, 0]} for one in rows]
    if name == "all scores equal":
        return truth, [one | {"score": 1.0} for one in rows]
    if name == "scores by rounding":
        return truth, [one | {"score": max(one["score"], 1.0000001 * (one["score"] > 0.9))} for one in rows]
    if name == "parts of unstated sizes":
        unsized = [{key: one[key] for key in ("id", "file_name")} for one in truth["images"]]
        return truth | {"images": unsized}, MISTAKES["parts"][0](rows, truth)
    if name == "no scores":
        return truth, [{key: one[key] for key in one if key != "score"} for one in rows]
    if name == "no class":
        return truth, [{"class": one["category_id"]} | {key: one[key] for key in one if key[0] != "c"} for one in rows]
    if name == "one class":
        return truth, [one | {"category_id": 3} for one in rows]
    if name == "one an image":
        best: dict[int, dict[str, object]] = {}
        for one in sorted(rows, key=lambda row: -row["score"]):
            best.setdefault(one["image_id"], one)
        return truth, [*best.values()]
    other, _ = world(seed=77)
    return other, rows


UNMENDED = {
    "exchanged": "Truth and detections are exchanged",
    "boxes of no size": "All boxes are without width or height",
    "all scores equal": "All scores are equal",
    "parts of unstated sizes": "Boxes are parts of the image's size, which the truth does not state",
    "no scores": "Scores are missing",
    "scores by rounding": "Scores are slightly below 0 or above 1, as after rounding",
    "no class": "Detections name no class",
    "one class": "All detections have the same class",
    "one an image": "Each image has one detection",
    "another split": "Detections are of other images than the truth",
}


@pytest.mark.parametrize("name", UNMENDED)
def test_what_no_file_can_mend_is_named(name: str, tmp_path: Path) -> None:
    paths = written(tmp_path, *changed(*world(seed=12, skill=0.9), name))
    found = diagnose(*(reversed(paths) if name == "exchanged" else paths))
    assert [one.what[: len(UNMENDED[name])] for one in found.findings] == [UNMENDED[name]]
    assert found.mends == ()
    assert found.findings[0].command


@pytest.mark.parametrize(
    "names",
    [
        ("yolo", "1-based classes", "names of other photos", "percent"),
        ("input size", "names in capitals", "positions"),
        ("offset by less than a box", "0-based classes", "names of other photos"),
    ],
)
def test_several_mistakes_are_mended_by_one_command(
    names: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, sound = world()
    rows = sound
    for name in names:
        if name == "offset by less than a box":
            rows = [one | {"bbox": [one["bbox"][0] + 20, one["bbox"][1] - 10, *one["bbox"][2:]]} for one in rows]
        else:
            rows = MISTAKES[name][0](rows, truth)
    (folder := tmp_path / "a folder").mkdir()
    paths = written(folder, truth, rows)
    assert main(["inspect", str(paths[0]), "--detections", str(paths[1])]) == 1
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    out = folder / "mended.json"
    assert main([*command[1:-1], str(out)]) == 0
    assert main(["inspect", str(paths[0]), "--detections", str(out)]) == 0
    assert "no mistake found" in capsys.readouterr().out
    back = [(one["image_id"], one["category_id"]) for one in json.loads(out.read_bytes())]
    assert back == [(one["image_id"], one["category_id"]) for one in sound]


def in_another_form(form: str, folder: Path, truth: Truth, rows: Rows) -> Path:
    """Write results as a table, a record a line, compressed, or as YOLO's label files."""
    classes = {one["id"]: one["name"] for one in truth["categories"]}
    files = {one["id"]: one["file_name"] for one in truth["images"]}
    if form == "yolo":
        (folder / "labels").mkdir()
        (folder / "data.yaml").write_text(json.dumps({"names": [*classes.values()]}))
        parts = MISTAKES["yolo"][0](rows, truth)
        for number, name in files.items():
            lines = [
                f"{[*classes].index(one['category_id'])} {' '.join(map(str, one['bbox']))} {one['score']}\n"
                for one in parts if one["image_id"] == number
            ]  # fmt: skip
            (folder / "labels" / name).with_suffix(".txt").write_text("".join(lines))
        return folder / "labels"
    lines = [json.dumps(one) for one in rows]
    if form == "torchmetrics":
        corners = MISTAKES["corners"][0](rows, truth)
        lines = [
            json.dumps({"image_id": one["image_id"], "boxes": [one["bbox"]], "scores": [one["score"]],
                        "labels": [one["category_id"]]}) for one in corners
        ]  # fmt: skip
    if form == "csv":
        lines = ["image,class,x,y,w,h,score"]
        lines += [
            ",".join(map(str, (files[one["image_id"]], classes[one["category_id"]], *one["bbox"], one["score"])))
            for one in rows
        ]
    path = folder / f"found.{form}"
    data = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(data) if form == "jsonl.gz" else data)
    return path


@pytest.mark.parametrize("form", ["csv", "yolo", "jsonl", "jsonl.gz"])
def test_other_forms_that_evaluate_reads_are_explained_and_mended(form: str, tmp_path: Path) -> None:
    truth, rows = world()
    path, _ = written(tmp_path, truth, rows)
    given = rows if form == "yolo" else MISTAKES["corners"][0](rows, truth)
    detections = in_another_form(form, tmp_path, truth, given)
    found = diagnose(path, detections)
    assert found.mends == (() if form == "yolo" else ("boxes=xyxy",))
    out = tmp_path / "mended.json"
    words = ["inspect", str(path), "--detections", str(detections), "--mend", "boxes=xyxy", "--out"]
    if form == "yolo":
        words[5] = "boxes=xywh"
    assert main([*words, str(tmp_path / "mended.csv")]) == 2
    assert main([*words, str(out)]) == 0
    back = json.loads(out.read_bytes())
    assert alike(back, rows if form != "yolo" else sorted(rows, key=lambda one: one["image_id"]))


@real_files("voc2007")
def check_a_real_detector_is_sound_and_its_mistakes_are_named(shared: Path, tmp_path: Path) -> None:
    data = shared / "data" / "voc2007"
    truth = json.loads((data / "test_with_difficult.json").read_bytes())
    number = {one["name"]: one["id"] for one in truth["categories"]}
    truth["images"] = [one for one in truth["images"] if one["id"] % 16 == 1]
    kept = {one["id"] for one in truth["images"]}
    truth["annotations"] = [one for one in truth["annotations"] if one["image_id"] in kept]
    rows = []
    for path in sorted((data / "detections" / "a").glob("*.txt")):
        for line in path.read_text().splitlines():
            image, score, *corners = line.split()
            x, y, right, bottom = map(float, corners)
            if int(image) in kept:
                box = [x - 1, y - 1, right - x + 1, bottom - y + 1]
                called = number[path.stem.removeprefix("comp4_det_test_")]
                rows.append({"image_id": int(image), "category_id": called, "bbox": box, "score": float(score)})
    assert diagnose(*written(tmp_path, truth, rows)).findings == ()
    for name, (mistake, mend) in MISTAKES.items():
        found = diagnose(*written(tmp_path, truth, mistake(rows, truth)))
        # Of 20 classes numbered on, the first is also one more.
        same = {
            "0-based classes": ("category_ids=index0",),
            "1-based classes": (),
            "names of other photos": ("image_ids=stem",),
        }
        # Of nearly all images the longer side is 500 pixels: a square's corner is a factor.
        if name not in ("permuted", "offset", "positions", "joined twice", "padded below"):
            assert found.mends == same.get(name, (mend,)), name
        elif name == "permuted":
            # On 310 images the boxes cannot tell three classes, and a mend of the others would merge two.
            assert [(finding.evidence, finding.mend) for finding in found.findings] == [(RIGHT_CLASS, "")]
            assert "3 ids (303 detections) cannot be identified by their boxes" in found.findings[0].what
        else:
            assert len(found.mends) == 1, name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mend", "boxes=xyzw", "--out", "x.json"], "No such mend"),
        (["--mend", "boxes=xyxy", "--mend", "boxes=xywh", "--out", "x.json"], "given twice"),
        (["--mend", "classes=1", "--out", "x.json"], "KEY of image_ids"),
        (["--mend", "boxes=xyxy"], "--mend and --out belong together"),
        (["--out", "x.json"], "--mend and --out belong together"),
    ],
)
def test_a_wrong_mend_is_refused(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, detections = written(tmp_path, *world(n_images=2))
    assert main(["inspect", str(truth), "--detections", str(detections), *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[1, 2]", b"null", b"[{}]", b'[{"image_id": null}]', b'[{"image_id": [], "bbox": 3}]',
        b"[" * 100_000, b'[{"image_id": 1e400}]', b'[{"image_id": 5, "bbox": [1, "x", null, 4], "score": "high"}]',
    ],
)  # fmt: skip
def test_hostile_detections_are_explained_or_refused(content: bytes, tmp_path: Path) -> None:
    truth, detections = written(tmp_path, *world(n_images=2))
    detections.write_bytes(content)
    for pair in ((truth, detections), (detections, truth)):
        try:
            found = curation.inspect(pair[0], detections=pair[1])
        except CurationError:
            continue
        assert found.findings
