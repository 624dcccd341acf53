"""README's own-data path as a new user walks it: every printed next command runs, and every mistake gets a hint."""

import json
import random
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import curation
from curation.cli import main
from curation.manifest.built_from import BUILT_FROM_FILE, CONTENTS_FILE
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
    """Return the words of the first command that an answer names; none where it names none."""
    found = [line.removeprefix("next: curation ") for line in printed.splitlines() if line.startswith("next: ")]
    return shlex.split(found[0]) if found else []


@pytest.mark.parametrize("seed", range(4))
def test_the_way_from_own_data_to_a_leaderboard(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every next command that an answer names runs, for few and many classes."""
    n_classes = (1, 2, 3, 12)[seed]
    folder = tmp_path / "my shapes"
    draw(folder, seed, n_classes, 30 if seed == 3 else 120)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    words, walked = [*INIT, "--n-tasks", str(min(n_classes, 2)), "--out", "tasks.toml"], []
    while words:
        walked.append(words[0])
        assert main(words) == 0, words
        words, manifest = next_of(capsys.readouterr().out), words[-1]
        if walked[-1] == "verify":
            export = ["export", manifest, "--part", "t1-test", "--format", "coco", "--out", "t1.json"]
            assert main(["audit", manifest]) in (0, 1)
            assert main(export) == 0
            detect(Path("t1.json"), Path("d.json"))
            words = ["evaluate", "owod", "--manifest", manifest, "--task", "t1", "--truth", "t1.json"]
            words += ["--detections", "d.json", "--append", "results.jsonl"]
            capsys.readouterr()
    assert walked == ["init", "build", "verify", "evaluate", "leaderboard"]


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two files and the manifest ``shapes`` of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    draw(tmp_path, 5, 4, 120)
    assert main([*INIT, "--name", "mylab/shapes", "--n-tasks", "2", "--exhaustive", "--out", "tasks.toml"]) == 0
    assert main(["build", "tasks.toml", *INIT[2:], "--out", "shapes"]) == 0
    return tmp_path


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
        assert shell.out(*words).splitlines()[-1].endswith("ok: verified")
    else:
        assert "has changed since" in (said := shell.err(*words, status=2))
        assert "--source test=PATH" in said
    (shapes / "test.json").write_bytes(b"{")
    assert "--source test=PATH" in shell.err(*words, status=2)
    (shapes / "test.json").rename(shapes / "moved.json")
    assert "no longer exists" in shell.err(*words, status=2)
    (shapes / "moved.json").write_bytes(content)
    given = ["--truth" if words[0] == "evaluate" else "--source", "test=moved.json"]
    assert shell.out(*words, *([given[0], "moved.json"] if words[0] == "evaluate" else given))
    for name in (BUILT_FROM_FILE, CONTENTS_FILE):
        (shapes / "shapes" / name).write_text("[]")
        assert f"remove {Path('shapes', name)}" in shell.err(*words, status=2)
        (shapes / "shapes" / name).unlink()


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


@pytest.mark.parametrize("name", ["lab/coco", "lab/cocoa", "lab/ninco"])
def test_a_benchmark_of_ones_own_claims_no_paper_and_no_known_dataset(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    draw(tmp_path, 1, 6, 300)
    monkeypatch.chdir(tmp_path)
    assert main([*INIT, "--name", name, "--n-tasks", "2", "--out", "tasks.toml"]) == 0
    assert main(["build", "tasks.toml", *INIT[2:], "--out", "m"]) == 0
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


def coco(folder: Path) -> None:
    (folder / "coco").mkdir()
    (folder / "train.json").rename(folder / "coco" / "train.json")


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
        ("init tasks --out new.toml --source coco", "annotation file itself, such as coco/train.json", coco),
        ("init tasks --out new.toml --source shapes", "annotations that the manifest was made from", None),
        (f"build tasks.toml {' '.join(INIT[2:])} --out m", 'in [classes.aliases]: "CIRCLE" = ["circle"]', shout),
        (f"build owod {' '.join(INIT[2:])} --out m", "your own data: `curation init tasks`", None),
        (
            "build tasks.toml --source train=train.json --out m",
            "curation build tasks.toml --source test=PATH --source train=PATH --out DIR",
            None,
        ),
        ("audit train.json", "curation inspect train.json", None),
        (f"{EVALUATE} --task tasks.toml", "--task t1 names a task", results),
        (f"{EVALUATE} --task t1", "of a later task than t1? --task", results),
        ("evaluate owod --task t2 --detections d.json", "--truth is missing", results),
        (f"{EVALUATE} --task t2 --out shapes", "The folder holds a manifest", results),
        (f"{EXPORT} yolo --out shapes", "The output folder is that of a manifest", None),
        ("leaderboard scores/results.json", "--append FILE.jsonl", results),
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
