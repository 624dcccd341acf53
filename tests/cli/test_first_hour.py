"""README's own-data path as a new user walks it: every printed next command runs, and every mistake gets a hint."""

import contextlib
import json
import random
import shlex
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

import curation
from curation.benchmarks.owod.tasks import fitting_validation
from curation.cli import main
from curation.core.errors import CurationError, CurationWarning
from curation.manifest.built_from import BUILT_FROM_FILE, CONTENTS_FILE, read_built_from
from curation.manifest.manifest import read_manifest
from tests.shell import Shell

NAMES = ["circle", "square", "triangle", "star", "hexagon", "cross", "ring", "arrow", "heart", "moon", "drop", "leaf"]
INIT = ["init", "tasks", "--source", "train=train.json", "--source", "test=test.json"]


def draw(folder: Path, seed: int, n_classes: int, n_images: int) -> None:
    """Draw two COCO files, two thirds of the images for training; a rare class may be on no training image."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    weights = [1 / (1 + place) for place in range(n_classes)]
    for part, images in (
        ("train", range(1, 1 + n_images * 2 // 3)),
        ("test", range(1 + n_images * 2 // 3, 1 + n_images)),
    ):
        rows = []
        for image in images:
            for category in rng.choices(range(1, n_classes + 1), weights, k=rng.randint(1, 3)):
                number += 1
                width, height = rng.randint(10, 60), rng.randint(10, 60)
                box = [rng.randint(0, 128 - width), rng.randint(0, 96 - height), width, height]
                row = {"id": number, "image_id": image, "category_id": category, "bbox": box, "iscrowd": 0}
                rows.append(row | {"area": width * height})
        content = {
            "images": [{"id": one, "file_name": f"{one}.png", "width": 128, "height": 96} for one in images],
            "annotations": rows,
            "categories": [{"id": place, "name": name} for place, name in enumerate(NAMES[:n_classes], 1)],
        }
        (folder / f"{part}.json").write_text(json.dumps(content))


def detect(truth: Path, out: Path) -> None:
    """Write the truth as detections, with scores that are sometimes equal."""
    rng = random.Random(3)
    rows = json.loads(truth.read_text())["annotations"]
    keys = ("image_id", "category_id", "bbox")
    out.write_text(json.dumps([{key: row[key] for key in keys} | {"score": rng.randint(1, 9) / 10} for row in rows]))


def next_of(printed: str) -> list[str]:
    """Return the words of the next command that an answer names; none where it names none."""
    found = [line.removeprefix("next: curation ") for line in printed.splitlines() if line.startswith("next: ")]
    assert len(found) < 2
    return shlex.split(found[0]) if found else []


@pytest.mark.parametrize("seed", range(20))
def test_every_printed_next_command_runs(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(100 + seed)
    n_classes = (1, 2, 3, 12)[seed] if seed < 4 else rng.randint(1, 12)
    folder = tmp_path / "my shapes"
    draw(folder, seed, n_classes, 30 if seed % 5 == 3 else rng.randint(30, 300))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    words = [*INIT, "--n-tasks", str(rng.randint(1, n_classes))]
    walked = []
    while words:
        walked.append(words[0])
        if words[0] == "evaluate":
            detect(Path(words[words.index("--truth") + 1]), Path("DETECTIONS.json"))
            words += ["--append", "results.jsonl"]
        status = main(words)
        said = capsys.readouterr()
        if words[0] == "audit" and status == 1:
            # Ten test images cannot show twelve classes: a verdict, after which README goes on with the export.
            assert "CO3" in said.out
            words = ["export", words[1], "--part", "t1-test", "--format", "coco", "--out", "t1-test.json"]
            continue
        assert status == 0, (words, said.err)
        words = next_of(said.out)
    assert walked == ["init", "build", "verify", "audit", "export", "evaluate", "leaderboard"]


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two files and the manifest ``shapes`` of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    draw(tmp_path, 5, 4, 120)
    assert main([*INIT, "--name", "mylab/shapes", "--n-tasks", "2", "--exhaustive"]) == 0
    assert main(["build", "owod", "--tasks", "tasks.toml", *INIT[2:], "--out", "shapes"]) == 0
    return tmp_path


def test_the_sizes_of_the_task_file_count_and_are_the_audit_s(shapes: Path, shell: Shell) -> None:
    parameters = read_manifest(shapes / "shapes").header.rule.parameters
    written = dict(line.split(" = ") for line in (shapes / "tasks.toml").read_text().splitlines() if " = " in line)
    assert str(parameters["val_size"]) == written["validation"] != "0"
    assert str(parameters["exemplars"]) == written["exemplars"]
    assert "TI5" not in shell.out("audit", "shapes")
    assert "TI5" in shell.out("audit", "shapes", "--set", "exemplars=40")


@pytest.mark.parametrize(
    ("sizes", "fits"), [([], 0), ([9], 0), ([10], 1), ([100_000], 1000), ([25, 400], 2), ([26] * 12, 2)]
)
def test_what_fits_leaves_something_to_train_on(sizes: list[int], fits: int) -> None:
    assert fitting_validation(sizes) == fits
    assert not sizes or fits * len(sizes) < min(sizes)


def test_a_size_that_is_asked_for_wins_over_a_file_without_validation(shapes: Path) -> None:
    text = (shapes / "tasks.toml").read_text()
    (shapes / "none.toml").write_text("".join(
        "validation = 0\n" if line.startswith("validation") else line for line in text.splitlines(keepends=True)
    ))  # fmt: skip
    build = ["build", "owod", "--tasks", "none.toml", *INIT[2:], "--out"]
    assert main([*build, "without"]) == 0
    assert main([*build, "with", "--set", "val_size=2"]) == 0
    assert "t1-val" not in read_manifest(shapes / "without").parts
    assert len(read_manifest(shapes / "with").ids("t1-val")) == 2


def test_sources_are_remembered_wherever_both_were_moved_together(
    shapes: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes.rename(elsewhere := shapes.with_name("elsewhere"))
    monkeypatch.chdir(elsewhere.parent)
    assert "ok: verified" in shell.out("verify", "elsewhere/shapes")
    assert str(shapes) not in (elsewhere / "shapes" / BUILT_FROM_FILE).read_text()


@pytest.mark.parametrize("words", [["verify", "shapes"], ["audit", "shapes"], ["evaluate"]])
def test_a_file_that_moved_or_changed_is_asked_for(shapes: Path, words: list[str], shell: Shell) -> None:
    if words == ["evaluate"]:
        detect(shapes / "test.json", shapes / "d.json")
        words = ["evaluate", "owod", "--manifest", "shapes", "--task", "t2", "--detections", "d.json"]
    assert shell.out(*words)
    content = (shapes / "test.json").read_bytes()
    (shapes / "test.json").write_bytes(content + b"\n")
    if words[0] == "verify":
        assert shell.out(*words).splitlines()[-2].endswith("changed since the manifest was made: test")
    else:
        assert "has changed since" in (said := shell.err(*words, status=2))
        assert "--source test=PATH" in said
    (shapes / "test.json").write_bytes(b"{")
    assert "--source test=PATH" in shell.err(*words, status=2)
    (shapes / "test.json").rename(shapes / "moved.json")
    assert "no longer there" in shell.err(*words, status=2)
    (shapes / "moved.json").write_bytes(content)
    given = ["--truth" if words[0] == "evaluate" else "--source", "test=moved.json"]
    assert shell.out(*words, *([given[0], "moved.json"] if words[0] == "evaluate" else given))
    for name in (BUILT_FROM_FILE, CONTENTS_FILE):
        (shapes / "shapes" / name).write_text("[]")
        assert f"remove {Path('shapes', name)}" in shell.err(*words, status=2)
        (shapes / "shapes" / name).unlink()


def exchange(first: int, second: int) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for row in content["annotations"]:
            row["category_id"] = {first: second, second: first}.get(row["category_id"], row["category_id"])

    return change


def move(content: dict[str, Any]) -> None:
    content["annotations"][7]["bbox"][0] += 1


def reorder(content: dict[str, Any]) -> None:
    for name in ("images", "annotations", "categories"):
        content[name].reverse()


def add_an_unlisted_image(content: dict[str, Any]) -> None:
    content["images"].append({"id": 999, "file_name": "999.png", "width": 128, "height": 96})
    content["annotations"].append(content["annotations"][0] | {"id": 9999, "image_id": 999})


def exchange_names(content: dict[str, Any]) -> None:
    names = [row["file_name"] for row in content["images"]]
    for row, name in zip(content["images"], [*names[1:], names[0]], strict=True):
        row["file_name"] = name


def set_field(table: str, field: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for row in content[table][:5]:
            row[field] = value

    return change


CHANGES: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (exchange(1, 2), "classes"),
    (exchange(3, 4), "classes"),
    (exchange(1, 4), "classes"),
    (lambda content: content["annotations"].pop(), "classes"),
    (move, "annotations"),
    (exchange_names, "file_names"),
    (set_field("annotations", "area", 7), "details"),
    (set_field("images", "width", 77), "details"),
    (reorder, ""),
    (add_an_unlisted_image, ""),
]


def counts_of(content: dict[str, Any], listed: set[str]) -> dict[str, tuple[int, int]]:
    """Count images and boxes by class, with nothing of the package."""
    name_of = {row["id"]: row["name"] for row in content["categories"]}
    rows = [(name_of[row["category_id"]], row["image_id"]) for row in content["annotations"]]
    rows = [(name, image) for name, image in rows if str(image) in listed]
    boxes, images = Counter(name for name, _ in rows), Counter(name for name, _ in set(rows))
    return {name: (images[name], boxes[name]) for name in boxes}


@pytest.mark.parametrize(("change", "check"), CHANGES)
@pytest.mark.parametrize("cells", [0, 1 << 26])
def test_a_changed_source_is_counted_by_class(
    shapes: Path,
    change: Callable[[dict[str, Any]], object],
    check: str,
    cells: int,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("curation.manifest.verify._FEW_CELLS", cells)
    before = json.loads((shapes / "train.json").read_text())
    change(after := json.loads((shapes / "train.json").read_text()))
    (shapes / "train.json").write_text(json.dumps(after))
    fails = check not in ("", "details")
    status = int(fails)
    data = json.loads(shell.out("verify", "shapes", "--json", status=status))
    findings = {(row["check"], row["subject"]): row for row in data["findings"]}
    assert findings["files", "train"]["outcome"] == "note"
    assert data["ok"] is not fails
    assert (data["verdict"] == "verified") is not bool(check)
    if check:
        assert findings[check, "train"]["outcome"] == ("failure" if fails else "note")
    manifest = read_manifest(shapes / "shapes")
    listed = {image.partition(":")[2] for part in manifest.parts for image in manifest.ids(part)}
    recorded = read_built_from(shapes / "shapes")
    assert recorded is not None
    assert recorded.contents["train"].classes == counts_of(before, listed)
    differing = counts_of(before, listed).items() - counts_of(after, listed).items()
    assert bool(differing) == (check == "classes")
    for side, content in (("expected", before), ("found", after)):
        counts = counts_of(content, listed)
        texts = {f"{name} {counts[name][0]} images, {counts[name][1]} boxes" for name, _ in differing}
        assert set(filter(None, findings["classes", "train"][side].split("; "))) == texts
    # Without the record, roles alone are counted; the file is not called verified whatever it holds.
    (shapes / "shapes" / CONTENTS_FILE).unlink()
    verified = curation.verify("shapes")
    assert "changed since the manifest was made: train" in verified.verdict or not verified.ok
    assert verified.ok == (check != "classes" or change in (CHANGES[0][0], CHANGES[1][0]))


def export_with_photos(shapes: Path, *more: str) -> Path:
    """Export the test images of the first task as YOLO, and draw their photos."""
    from PIL import Image

    assert main(["export", "shapes", "--part", "t1-test", "--format", "yolo", "--out", "yolo", *more]) == 0
    for line in (shapes / "yolo/t1-test.txt").read_text().splitlines():
        photo = shapes / "yolo" / line
        photo.parent.mkdir(exist_ok=True)
        Image.new("RGB", (128, 96)).save(photo)
    return shapes / "yolo"


@pytest.mark.parametrize(
    ("form", "more"),
    [*((form, ()) for form in ("results", "predictions.json", "labels")), ("results", ("--set", "unknown=drop"))],
)
def test_placeholders_of_a_yolo_export_are_no_classes(
    shapes: Path, form: str, more: tuple[str, ...], shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    yolo = export_with_photos(shapes, *more)
    stated = yaml.safe_load((yolo / "data.yaml").read_text())["names"]
    assert [*stated.values()] == ["circle", "square"] + ([] if more else ["unused_2", "unused_3", "unknown"])
    test = json.loads((shapes / "test.json").read_text())
    rng = random.Random(4)
    # The classes of the file are numbered from 1 in the order of the manifest.
    rows = [
        {"image_id": row["image_id"], "category_id": row["category_id"] - 1, "score": rng.random(),
         "bbox": [row["bbox"][0], row["bbox"][1], row["bbox"][2] * 0.77, row["bbox"][3]]}
        for row in test["annotations"]
    ]  # fmt: skip
    later = sum(row["category_id"] > 1 for row in rows)
    detections = shapes / "detections.json"
    if form == "labels":
        detections = shapes / "run"
        (detections / "labels").mkdir(parents=True)
        (detections / "data.yaml").write_text("names: [circle, square, unused_2, unused_3, unknown]\n")
        for row in rows:
            x, y, w, h = row["bbox"]
            shares = ((x + w / 2) / 128, (y + h / 2) / 96, w / 128, h / 96)
            with (detections / f"labels/{row['image_id']}.txt").open("a") as file:
                file.write(" ".join(map(str, (row["category_id"], *shares, row["score"]))) + "\n")
    elif form == "results":
        detections.write_text(json.dumps(rows))
    else:
        named = [row | {"category_id": row["category_id"] + 1, "file_name": f"{row['image_id']}.png"} for row in rows]
        detections.write_text(json.dumps(named))
    capsys.readouterr()
    with contextlib.redirect_stdout(None):
        truth = COCO()
        truth.dataset = test | {"categories": test["categories"][:2]}
        truth.createIndex()
        evaluator = COCOeval(
            truth, truth.loadRes([row | {"category_id": row["category_id"] + 1} for row in rows]), "bbox"
        )
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
    given = ["--truth", yolo, "--detections", detections]
    for words in (["coco"], ["voc"], ["owod", "--manifest", "shapes", "--task", "t1"]):
        refused = shell.err("evaluate", *words, *given)
        assert f"such detections: {later}" in refused
        assert "--on-error classes=drop" in refused
        left_out = f"that are not in the ground truth: {later}"
        printed = shell.out("evaluate", *words, *given, "--on-error", "classes=drop", "--all")
        assert left_out in " ".join(printed.split())
        assert "unused" not in printed
    for evaluate in (partial(curation.evaluate.coco), partial(curation.evaluate.owod, manifest="shapes", task="t1")):
        with pytest.raises(CurationError, match="has a category that"):
            evaluate(truth=yolo, detections=detections)
    result = curation.evaluate.coco(truth=yolo, detections=detections, other_classes="drop")
    assert result.measures.set_index("measure").value["AP"] == pytest.approx(100 * evaluator.stats[0], abs=1e-9)
    told = shell.out("inspect", yolo, "--detections", detections, status=1)
    assert f"{later} of {len(rows)} detections are of classes that the truth lacks" in " ".join(told.split())


def test_photos_without_the_source_that_names_them_are_warned_of(shapes: Path) -> None:
    manifest = curation.load("shapes")
    for image in manifest.ids("t1-test"):
        (shapes / f"{image.partition(':')[2]}.png").touch()
    found = manifest.photos("t1-test", shapes)
    (shapes / "test.json").unlink()
    with pytest.warns(CurationWarning, match="looked up by id, not by the file names"):
        assert manifest.photos("t1-test", shapes) == found


@pytest.mark.parametrize("ids", ["as they are", "texts", "of files in the order of their names"])
def test_remembered_truth_gives_the_numbers_of_the_exported_one(
    ids: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    draw(tmp_path, 5, 4, 120)
    for part in ("train", "test"):
        content = json.loads((path := tmp_path / f"{part}.json").read_text())
        stems = sorted(str(image["id"]) for image in content["images"])
        # Images without a box are in no list.
        content["annotations"] = [row for row in content["annotations"] if row["image_id"] % 3]
        for image, stem in zip(content["images"], stems, strict=True):
            image["file_name"] = f"{stem}.png" if ids.startswith("of files") else image["file_name"]
        if ids == "texts":
            for row in (*content["images"], *content["annotations"]):
                key = "image_id" if "image_id" in row else "id"
                row[key] = f"photo/{row[key]}"
        path.write_text(json.dumps(content))
    assert main([*INIT, "--name", "mylab/shapes", "--n-tasks", "2", "--exhaustive"]) == 0
    assert main(["build", "owod", "--tasks", "tasks.toml", *INIT[2:], "--out", "shapes"]) == 0
    assert main(["export", "shapes", "--part", "t1-test", "--format", "coco", "--out", "t1.json"]) == 0
    words = ["evaluate", "owod", "--manifest", "shapes", "--task", "t1", "--detections", "d.json", "--json"]
    detect(tmp_path / "test.json", tmp_path / "d.json")
    rows = json.loads((tmp_path / "d.json").read_text())
    (tmp_path / "d.json").write_text(json.dumps([row for row in rows if row["category_id"] < 3]))
    remembered, exported = (json.loads(shell.out(*words, *more)) for more in ([], ["--truth", "t1.json"]))
    assert remembered["measures"] == exported["measures"]
    assert next(row["value"] for row in exported["measures"] if row["measure"] == "mAP_both") > 0


def test_no_path_is_published(shapes: Path, shell: Shell) -> None:
    pytest.importorskip("huggingface_hub")
    licences = ["--licence", "train=CC-BY-4.0", "--licence", "test=CC-BY-4.0"]
    assert main(["publish", "shapes", "--repo", "mylab/shapes", "--dry-run", "out", *licences]) == 0
    written = [path for path in (shapes / "out").rglob("*") if path.is_file()]
    assert written
    assert not [
        path for path in written if path.name in (BUILT_FROM_FILE, CONTENTS_FILE) or b"../t" in path.read_bytes()
    ]
    # A publication is audited as the manifest that it holds, and not as a folder of lists.
    assert shell.out("audit", "out").startswith("mylab/shapes 1.0.0: no error")
    assert "--repo" not in shell.err("pull", "out@1.0.0", "--out", "pulled", status=2)


@pytest.mark.parametrize("name", ["lab/coco", "lab/cocoa", "lab/voc2007", "lab/vocal-cords", "lab/mtsd", "lab/ninco"])
def test_a_benchmark_of_ones_own_claims_no_paper_and_no_known_dataset(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    draw(tmp_path, 1, 6, 300)
    monkeypatch.chdir(tmp_path)
    assert main([*INIT, "--name", name, "--n-tasks", "2"]) == 0
    assert main(["build", "owod", "--tasks", "tasks.toml", *INIT[2:], "--out", "m"]) == 0
    manifest = read_manifest(tmp_path / "m")
    assert manifest.header.paper is None
    assert manifest.header.notes[0] == "Rule tasks (after Zhao et al. 2022); data: user."
    assert {entry.licence for entry in manifest.header.sources} == {"not stated"}
    # Whether every object is annotated is not known of these data: LI1 is undecidable, and neither broken nor kept.
    assert curation.audit("m", {"train": "train.json", "test": "test.json"}).verdict("LI1") == "undecidable"
    # Ids of the user's data are no ids of a known dataset: COCO's would have twelve digits.
    word = name.partition("/")[2].replace("-", "_")
    known = word in ("coco", "voc2007", "mtsd", "ninco")
    assert {image.partition(":")[0] for image in manifest.ids("t1-train")} == {f"my_{word}" if known else word}
    licences = ["--licence", "train=MIT", "--licence", "test=MIT"]
    assert main(["publish", "m", "--repo", "lab/x", "--dry-run", "out", *licences]) == 0
    written = {path.name: path.read_text() for path in (tmp_path / "out").rglob("*") if path.suffix in (".md", ".json")}
    for file, text in written.items():
        for claim in (
            "create_t1",
            "Xiaowei",
            "Revisiting",
            "zhao2022",
            "cocodataset",
            "Flickr",
            "oxford",
            "ublished list",
        ):
            assert claim not in text, (file, claim)
    assert "[MIT](https://spdx.org/licenses/MIT.html)" in written["README.md"]


def test_the_ranked_measures_come_first_and_ties_once(shapes: Path, shell: Shell) -> None:
    detect(shapes / "test.json", shapes / "d.json")
    words = ["evaluate", "owod", "--manifest", "shapes", "--task", "t2", "--detections", "d.json"]
    said = shell.out(*words)
    assert "unknown recall (U-Recall) ↑" in said
    rows = said.split("Measures")[1].partition("\n\n")[0]
    assert [line.split()[0] for line in rows.splitlines()[2:] if line.strip()] == [
        "mAP_both", "mAP_prev", "mAP_cur", "UR", "UDR", "UDP", "AOSE_objects", "AOSE", "WI",
    ]  # fmt: skip
    assert "Classes" not in said
    whole = shell.out(*words, "--all")
    assert "WI_at_recall@0.1" in whole
    assert "Classes" in whole


def yolo(folder: Path) -> None:
    (folder / "yolo" / "labels").mkdir(parents=True)
    (folder / "yolo" / "labels" / "1.txt").write_text("0 0.5 0.5 0.1 0.1\n")


def coco(folder: Path) -> None:
    (folder / "coco").mkdir()
    (folder / "train.json").rename(folder / "coco" / "train.json")


def no_categories(folder: Path) -> None:
    content = json.loads((folder / "train.json").read_text())
    (folder / "none.json").write_text(json.dumps({key: content[key] for key in ("images", "annotations")}))


def shout(folder: Path) -> None:
    (folder / "tasks.toml").write_text((folder / "tasks.toml").read_text().replace('"circle"', '"CIRCLE"'))


def results(folder: Path) -> None:
    detect(folder / "test.json", folder / "d.json")
    score = ["evaluate", "owod", "--manifest", "shapes", "--task", "t2", "--detections", "d.json", "--out", "scores"]
    assert main(score) == 0


EVALUATE = "evaluate owod --manifest shapes --detections d.json"
EXPORT = "export shapes --part t2-test --format"


@pytest.mark.parametrize(
    ("line", "hint", "prepare"),
    [
        ("init --out new.toml --source coco", "annotation file itself, such as coco/train.json", coco),
        ("init --out new.toml --source yolo", "no data.yaml", yolo),
        ("init --out new.toml --source shapes", "annotations that the manifest was made from", None),
        ("init --out new.toml --source none.json", "lists no categories", no_categories),
        ("init --out new.toml --source https://example.com/a.json", "where: https://example.com/a.json", None),
        (f"build owod --tasks tasks.toml {' '.join(INIT[2:])} --out m", "write \"circle\" for 'CIRCLE'", shout),
        (f"build owod {' '.join(INIT[2:])} --out m", "--tasks FILE, which `curation init` writes", None),
        (
            "build owod --tasks tasks.toml --source train=train.json --out m",
            "curation build owod --tasks FILE --source train=PATH --source test=PATH --out DIR",
            None,
        ),
        ("build tasks.toml --source train=train.json --out m", "curation build owod --tasks FILE", None),
        ("import shapes --lists . --out m", "is not one of published lists", None),
        ("cut train.json -k 2 --classes tasks.toml", "where: coco\n", None),
        ("audit train.json", "curation inspect train.json", None),
        ("verify train.json", "a folder", None),
        (f"{EVALUATE} --task tasks.toml", "--task takes a name", results),
        (f"{EVALUATE} --task t1", "of a later task than t1? --task", results),
        ("evaluate owod --classes tasks.toml --truth test.json --detections d.json", "--manifest DIR", results),
        ("evaluate owod --manifest shapes --task t2 --detections https://a.b/d.json", "download it first", None),
        ("evaluate owod --task t2 --detections d.json", "--truth is missing", results),
        (f"{EVALUATE} --task t2 --out shapes", "The folder holds a manifest", results),
        (f"{EVALUATE} --task t2 --append shapes/r.jsonl", "The folder holds a manifest", results),
        (f"{EXPORT} coco --out shapes/t.json", "The folder holds a manifest", None),
        (f"{EXPORT} yolo --out shapes", "The output folder is that of a manifest", None),
        ("leaderboard scores/results.json", "--append FILE.jsonl", results),
        ("leaderboard scores", "one result", results),
    ],
)
def test_wrong_inputs_get_a_hint(
    shapes: Path, line: str, hint: str, prepare: Callable[[Path], None] | None, shell: Shell
) -> None:
    if prepare is not None:
        prepare(shapes)
    said = shell.err(*shlex.split(line), status=2)
    assert hint in said
    assert "category-ids" not in said
    assert "unknown = [" not in said
    assert "VOC" not in said.replace("VOC folder (", "")
