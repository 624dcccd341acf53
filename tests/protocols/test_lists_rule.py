"""The rule ``lists``: files with digests and roles; with a source, lines are looked up and objects are counted."""

from __future__ import annotations

import json
import random
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.benchmarks.registry import recipes
from curation.benchmarks.rules.lists import published_key, read_lists
from curation.core.canonical import sha256_of_bytes, sha256_of_lines
from curation.core.errors import CurationError, CurationWarning
from tests.protocols.test_wilderness_rule import drawn
from tests.shell import Shell

FILE = """\
rule = "lists"
name = "mylab/lists"
notes = ["ours"]
[sources]
images = { dataset = "photos", required = false }
[[parts]]
name = "train"
file = "train.txt"
role = "train"
[[parts]]
name = "test"
file = "test.txt"
role = "test"
sources = ["images"]
selection = "Chosen by hand."
[[parts]]
name = "first"
file = "test.txt:1-3"
role = "test"
subset_of = "test"
[expect]
"test.images" = { value = 10, place = "our count" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with annotations, two lists of their file names, and the benchmark file."""
    coco = drawn(random.Random(1), 40, ["bolt", "nut"], 100, 3)
    coco["images"].sort(key=lambda image: image["id"])
    for number, image in enumerate(coco["images"]):
        image["file_name"] = f"day{number % 2}/{number // 2:03d}.jpg"
    (tmp_path / "photos.json").write_text(json.dumps(coco))
    names = [image["file_name"] for image in coco["images"]]
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/train.txt").write_text("".join(f"{name}\n" for name in names[10:][::-1]))
    (tmp_path / "lists/test.txt").write_text("".join(f"images/{name}\n" for name in names[:10]))
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path


def build(folder: Path, **more: Path) -> Any:
    """Build the benchmark file from the lists in its folder."""
    return curation.build(folder / "mine.toml", {"published-lists": folder / "lists", **more})


def test_lines_are_looked_up_and_objects_are_counted(folder: Path, shell: Shell) -> None:
    """Each line becomes the id of its image, in file order; counts equal those of a loop over the annotations."""
    made = build(folder, images=folder / "photos.json")
    coco = json.loads((folder / "photos.json").read_text())
    of_name = {image["file_name"]: image["id"] for image in coco["images"]}
    for part in ("train", "test"):
        lines = (folder / f"lists/{part}.txt").read_text().split()
        numbers = [of_name[line.removeprefix("images/")] for line in lines]
        assert list(made.ids(part)) == [f"photos:{number}" for number in numbers]
        entry, shown = made.part(part), [row for row in coco["annotations"] if row["image_id"] in numbers]
        assert entry.boxes["known"] == len(shown)
        assert entry.annotated_images == len({row["image_id"] for row in shown})
        assert entry.sha256 == sha256_of_lines(made.ids(part))
    assert made.ids("first") == made.ids("test")[:3]
    assert (made.header.paper, made.header.rule.protocol, made.header.origin) == (None, "lists", "regenerated")
    assert made.header.notes == ("Rule lists; data: user.", "ours")
    assert [(row.obtained, row.paper) for row in made.header.figures] == [(10, 10)]
    made.save(folder / "made")
    assert curation.verify(folder / "made", rebuild=True).ok
    assert "curation evaluate coco --truth" in shell.err("evaluate", str(folder / "made"))
    truth = json.dumps([{"image_id": row["image_id"], "category_id": row["category_id"], "bbox": row["bbox"],
                         "score": 0.5} for row in coco["annotations"]])  # fmt: skip
    (folder / "found.json").write_text(truth)
    words = ["--truth", folder / "photos.json", "--manifest", folder / "made", "--part", "test"]
    assert shell.data("evaluate", "coco", *words, "--detections", folder / "found.json", "--json")["measures"]


def test_without_a_source_the_stems_are_the_ids(folder: Path) -> None:
    """Stems that two folders share would be one image: refused, with the way out."""
    with pytest.raises(CurationError, match="names an image twice") as caught:
        build(folder)
    assert "sources={'images': PATH}" in str(caught.value.hint)
    for part in ("train", "test"):
        path = folder / f"lists/{part}.txt"
        path.write_text(path.read_text().replace("day", f"{part}-").replace("/0", "/x0").replace("-1/x", "-1/y"))
    made = build(folder)
    assert made.ids("test")[:2] == ("photos:x000", "photos:y000")
    assert made.part("test").boxes == {}


def test_parts_that_share_images_are_refused_for_own_lists_and_told_for_those_of_a_paper(folder: Path) -> None:
    """As in other rules, training images in the test are an error; published lists are what they are."""
    path = folder / "lists/train.txt"
    path.write_text(path.read_text() + "day0/000.jpg\n")
    with pytest.raises(CurationError, match="same images") as caught:
        build(folder, images=folder / "photos.json")
    assert caught.value.hint == "remove the shared ids from one of the two lists"
    paper = '[paper]\ntitle = "T"\nauthors = "A"\nyear = 2026\nvenue = "V"\nbibtex = "@misc{a, author={A}}"\n'
    (folder / "mine.toml").write_text(FILE + paper)
    with pytest.warns(CurationWarning, match="1 image is in train and in"):
        made = build(folder, images=folder / "photos.json")
    assert made.header.origin == "as_published"


def test_init_writes_digests_and_roles_and_a_changed_list_is_refused(folder: Path, shell: Shell) -> None:
    """The file builds as it is; what is no list is named in it; another list under the same name is an error."""
    (folder / "lists/valid").mkdir()
    (folder / "lists/valid/some.txt").write_text("day9/x1.jpg\n")
    (folder / "lists/classes.json").write_text('["bolt", "nut"]')
    out = folder / "new.toml"
    said = shell.out("init", "lists", folder / "lists", "--name", "my/new", "--out", out)
    assert f"next: curation build {out} --source published-lists={folder / 'lists'} --out new" in said
    images = f"images={folder / 'photos.json'}"
    said = shell.out(
        "init", "lists", folder / "lists", "--source", images, "--name", "my/new", "--out", folder / "i.toml"
    )
    assert f"--source published-lists={folder / 'lists'} --source {images} --out new" in said
    assert (folder / "i.toml").read_bytes() == out.read_bytes()
    assert "needs a folder" in shell.err("init", "lists", "--source", images, "--out", folder / "j.toml")
    written = tomllib.loads(out.read_text())
    assert {part["name"]: part["role"] for part in written["parts"]} == {
        "test": "test",
        "train": "train",
        "some": "val",
    }
    for part in written["parts"]:
        (path,) = (folder / "lists").rglob(part["file"])
        assert part["sha256"] == sha256_of_bytes(path.read_bytes())
    assert "# Left out: classes.json" in out.read_text()
    (folder / "lists/valid/some.txt").unlink()
    blocks = out.read_text().split("\n\n")
    out.write_text("\n\n".join(block for block in blocks if '"some"' not in block))
    given = {"published-lists": folder / "lists", "images": folder / "photos.json"}
    assert curation.build(out, given).parts == ("test", "train")
    (folder / "lists/test.txt").write_text("day0/001.jpg\n")
    with pytest.raises(CurationError, match=r"This test\.txt is not"):
        curation.build(out, given)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('file = "train.txt"', 'file = "trian.txt"', ["missing", "trian.txt"]),
        ('file = "train.txt"', 'fil = "train.txt"', ["line 8", "did you mean file?"]),
        ('role = "train"', 'role = "training"', ["lines 9", "role"]),
        ('role = "train"', "", ["role"]),
        ('sources = ["images"]', 'sources = ["photos"]', ["Unknown source of a part", "images"]),
        ('"test.txt:1-3"', '"test.txt:1-300"', ["lines that its file does not have"]),
        ('"test.txt:1-3"', '"test.txt:3"', ["does not state the file"]),
        ('"test.txt:1-3"', '"../test.txt"', ["does not state the file"]),
        ('subset_of = "test"', 'subset_of = "tests"', ["tests"]),
        ('subset_of = "test"', 'view = "strict"', ["Unknown view", "strict"]),
        ('subset_of = "test"', "of = [1]", ["no tasks"]),
        ('subset_of = "test"', 'sha256 = "12"', ["line 20", "sha256: and 64"]),
        ('subset_of = "test"', f'sha256 = "sha256:{"0" * 64}"', ["write its new digest into the file"]),
        ('subset_of = "test"', 'order = "any"', ["line 20", "order"]),
        ('name = "first"', 'name = "train"', ["two parts", "train"]),
        ('"mylab/lists"', '"ninco/published"', ["belongs to a benchmark"]),
        ("[expect]", "[parameters]\nx = 1\n[expect]", ["unknown key", "x"]),
        ("images = {", "[sources.more]\n[sources.images]\n#", ["does not state the source"]),
        ('"test.images"', '"test.pictures"', ["an unknown figure", "annotated_images"]),
    ],
)
def test_a_wrong_file_is_one_error(folder: Path, old: str, new: str, words: list[str]) -> None:
    """The error says where, and what would be right."""
    assert old in FILE
    (folder / "mine.toml").write_text(FILE.replace(old, new, 1))
    with pytest.raises(CurationError) as caught:
        build(folder, images=folder / "photos.json")
    assert all(word.lower() in str(caught.value).lower() for word in words), caught.value


@pytest.mark.parametrize(("line", "message"), [("day0/099.jpg", "names no image"), ("000.jpg", "several images")])
def test_a_line_that_is_no_image_of_the_source_is_refused(folder: Path, line: str, message: str) -> None:
    """Neither a stray line nor a name that two images have is passed over."""
    (folder / "lists/test.txt").write_text(f"day0/001.jpg\n{line}\n")
    (folder / "mine.toml").write_text(FILE.replace("test.txt:1-3", "test.txt:1-1").replace("value = 10", "value = 2"))
    with pytest.raises(CurationError, match=message) as caught:
        build(folder, images=folder / "photos.json")
    assert caught.value.where == "test.txt, line 2"
    assert "such lines: 1 of 2" in (caught.value.found or "")


PUBLISHED = """
[published.theirs]
name = "mylab/theirs"
title = "Lists of others"
taxonomy = "closed-set"
lists = { dataset = "their_lists", part = "all", note = "" }
[[published.theirs.parts]]
name = "train"
file = "train.txt"
role = "train"
sources = ["images"]
[[published.theirs.figures]]
name = "train.images"
place = "their page"
paper = [30]
"""


@pytest.mark.filterwarnings("ignore:10 images may be in train and in test")
@pytest.mark.parametrize("rule", ["lists", "split"])
def test_published_lists_inside_a_file_of_a_rule_are_built_by_their_key(folder: Path, rule: str) -> None:
    """They take sources, classes and views of the file, which is built as before."""
    shares = "[parameters]\nshares = { train = 0.5, test = 0.5 }\n"
    own = {
        "lists": FILE,
        "split": 'rule = "split"\nname = "mylab/split"\n[sources]\nimages = { dataset = "photos" }\n' + shares,
    }
    (folder / "mine.toml").write_text(own[rule])
    given = {"published-lists": folder / "lists"} if rule == "lists" else {}
    before = curation.build(folder / "mine.toml", {**given, "images": folder / "photos.json"})
    (folder / "mine.toml").write_text(own[rule] + PUBLISHED)
    after = curation.build(folder / "mine.toml", {**given, "images": folder / "photos.json"})
    assert after.digest == before.digest
    sources = {"published-lists": folder / "lists", "images": folder / "photos.json"}
    theirs = curation.build(folder / "mine.toml/theirs", sources)
    lines = (folder / "lists/train.txt").read_text().split()
    coco = json.loads((folder / "photos.json").read_text())
    of_name = {image["file_name"]: image["id"] for image in coco["images"]}
    assert theirs.ids("train") == tuple(f"photos:{of_name[line]}" for line in lines)
    shown = [row for row in coco["annotations"] if f"photos:{row['image_id']}" in theirs.ids("train")]
    assert theirs.part("train").boxes["known"] == len(shown)
    assert [(row.obtained, row.paper) for row in theirs.header.figures] == [(30, 30)]
    assert theirs.header.name == "mylab/theirs"
    with pytest.raises(CurationError, match="no such case"):
        curation.build(folder / "mine.toml/their", sources)


@pytest.mark.parametrize("name", ["ninco", "imagenetood", "nuowodb"])
def test_a_copy_of_a_packaged_file_declares_the_same_lists(name: str, tmp_path: Path) -> None:
    """The earlier form, ``[published.KEY]``, stays readable, also with tasks and aliases."""
    copy = tmp_path / "copy.toml"
    copy.write_bytes(files("curation.extensions.benchmarks").joinpath(f"{name}.toml").read_bytes())
    header, _ = read_lists(str(copy), published_key(str(copy)))
    assert header == recipes()[header.name]()
