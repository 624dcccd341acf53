"""Class folders: which photos have which class, part and id; what is left out, counted; what is refused, in words."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import curation
from curation.core.errors import AnnotationFormatError, CurationError, MissingFileError, UsageError
from curation.extensions.audit.run import audit
from curation.sources.class_folders import class_folders
from curation.sources.opening import open_path, open_slots, parts_at
from curation.sources.source import Source
from curation.sources.source_specs import SourceSlot
from tests.shell import Shell


def write(root: Path, *paths: str) -> Path:
    """Write files with their own path as content."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


def read(root: Path, part: str = "") -> Source:
    """Return the source of a user's dataset at a path."""
    return open_path(root, dataset="mine", part=part)


def shown(source: Source) -> dict[str, str]:
    """Return the class of each image."""
    image, category = source.class_pairs()
    names, natives = source.categories.names, source.images.native.tolist()
    return {natives[row]: names[code] for row, code in zip(image.tolist(), category.tolist(), strict=True)}


def test_a_folder_above_the_class_folders_names_them(tmp_path: Path) -> None:
    """As in CUB-200 as downloaded: the photos of each class are below ``images``."""
    write(tmp_path / "cub", "images/001.Albatross/a.jpg", "images/002.Auklet/b.jpg", "classes.txt", "attributes/a.txt")
    with pytest.raises(MissingFileError) as caught:
        read(tmp_path / "cub")
    assert str(caught.value.hint).endswith(str(tmp_path / "cub/images"))


@pytest.mark.parametrize("seed", range(20))
def test_every_photo_has_the_class_of_its_folder(tmp_path: Path, seed: int) -> None:
    """Ids are paths below the root, whatever the order in which the disk lists them; suffixes may differ in case."""
    rng = random.Random(seed)
    parts = rng.choice([[""], ["train", "val", "test"], ["Training", "valid"], ["train2017", "test"]])
    labels = rng.sample(["cat", "Dog", "a b", "ähre", "n02084071", "labels2", "0"], 4)
    paths = {
        f"{part}/{label}/{rng.randrange(99)}{rng.choice(['.jpg', '.PNG', '.jpeg', '.webp', '.tif'])}".lstrip("/"): label
        for part in parts
        for label in labels
        for _ in range(rng.randint(1, 6))
    }
    listed = list(paths)
    rng.shuffle(listed)
    write(tmp_path / "root", *listed)
    source = read(tmp_path / "root")
    assert shown(source) == paths
    assert source.images.native.tolist() == source.images.file_names.tolist() == sorted(paths)
    assert source.categories.names == tuple(sorted(set(paths.values())))
    assert source.dropped == {}
    assert source.image_ids[0] == f"mine:{min(paths)}"


@pytest.mark.parametrize("valid", ["val", "valid", "validation", "Valid"])
def test_a_part_is_chosen_or_all_are_read(tmp_path: Path, valid: str) -> None:
    """A source that is named after a part is that part; one of another name is the whole root."""
    root = write(tmp_path, "train/cat/1.jpg", "train/dog/1.jpg", f"{valid}/cat/1.jpg", "README.roboflow.txt")
    assert parts_at(root, "mine") == ("train", "val")
    assert shown(read(root, "val")) == {f"{valid}/cat/1.jpg": "cat"}
    slots = [SourceSlot(name, "mine", usual_part=name) for name in ("train", "images")]
    opened = open_slots({"train": root, "images": root}, slots)
    assert [len(opened[name].images) for name in ("train", "images")] == [2, 3]
    assert open_slots({"images@val": root}, slots)["images"].part == "val"
    with pytest.raises(MissingFileError, match="no part test"):
        read(root, "test")
    with pytest.raises(UsageError, match="several parts"):
        open_slots({"test": root}, [SourceSlot("test", "mine", usual_part="test")])


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    """Among classes, a train is one; folders of photos that are all named like parts are no class folders."""
    assert set(shown(read(write(tmp_path / "a", "train/1.jpg", "car/1.jpg"))).values()) == {"train", "car"}
    assert class_folders(write(tmp_path / "b", "train/1.jpg", "valid/1.jpg", "train/_annotations.coco.json")) is None
    assert class_folders(write(tmp_path / "c", "train2017/1.jpg", "val2017/1.jpg", "other/1.jpg")) is None


def test_what_is_no_photo_of_a_class_is_counted(tmp_path: Path) -> None:
    """Hidden files, other files, photos beside the classes, and links out of the root are left out."""
    root = write(
        tmp_path / "root", "cat/1.jpg", "cat/2.png", "cat/.DS_Store", ".cache/x/1.jpg", "cat/notes.txt", "0.jpg"
    )
    write(tmp_path / "elsewhere", "3.jpg")
    (root / "cat/3.jpg").symlink_to(tmp_path / "elsewhere/3.jpg")
    (root / "cat/4.jpg").symlink_to(root / "cat/1.jpg")
    (root / "dog").symlink_to(tmp_path / "elsewhere")
    source = read(root)
    assert shown(source) == {"cat/1.jpg": "cat", "cat/2.png": "cat", "cat/4.jpg": "cat"}
    assert source.dropped == {
        "hidden files and folders": 2,
        "files that are no photos": 1,
        "photos outside the class folders": 1,
        "links that lead out of the folder": 1,
        "links to folders": 1,
    }


@pytest.mark.parametrize(
    ("paths", "error", "words"),
    [
        ([], MissingFileError, "class folders (CLASS/photo.jpg)"),
        (["1.jpg"], MissingFileError, "class folders"),
        (["cat/notes.txt"], MissingFileError, "class folders"),
        ([".hidden/1.jpg"], MissingFileError, "class folders"),
        (["train/1.jpg", "test/1.jpg"], MissingFileError, "class folders"),
        (["images/1.jpg", "labels/1.txt"], MissingFileError, "data.yaml"),
        (["photos/1.jpg", "coco.json"], MissingFileError, "coco.json"),
        (["fold1/cat/1.jpg", "fold2/cat/1.jpg"], AnnotationFormatError, "fold1"),
        (["cat/1.jpg", "cat/more/2.jpg"], AnnotationFormatError, "move it up"),
        (["train/cat/more/2.jpg"], AnnotationFormatError, "train/cat"),
        (["cat/a\tb.jpg"], AnnotationFormatError, "image id"),
        (["cat/a\nb.jpg"], AnnotationFormatError, "image id"),
        (["c" * 100 + "/" + "a" * 200 + ".jpg"], AnnotationFormatError, "255"),
    ],
)
def test_a_folder_without_classes_is_refused(
    tmp_path: Path, paths: list[str], error: type[CurationError], words: str
) -> None:
    """The error says what lies there."""
    (tmp_path / "root").mkdir()
    with pytest.raises(error) as caught:
        read(write(tmp_path / "root", *paths))
    found = (str(caught.value), caught.value.expected, caught.value.found, caught.value.hint)
    assert words in "\n".join(filter(None, found))


def test_a_name_that_is_no_text_and_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 cannot be an id."""
    write(tmp_path, "cat/1.jpg")
    try:
        Path(os.fsdecode(os.fsencode(tmp_path / "cat") + b"/\xff.jpg")).write_text("x")
    except OSError:
        pytest.skip("the file system holds texts alone")
    with pytest.raises(AnnotationFormatError):
        read(tmp_path)


def test_a_known_dataset_is_not_read_from_class_folders(tmp_path: Path) -> None:
    """Folders of the user do not get the ids of a published dataset."""
    with pytest.raises(UsageError) as caught:
        open_slots({"images": write(tmp_path, "cat/1.jpg")}, [SourceSlot("images", "dtd")])
    assert 'dataset = "my_dtd"' in str(caught.value.hint)


def test_equal_listings_of_two_folders_are_not_one_source(tmp_path: Path) -> None:
    """Folders train and test that number their photos alike hold different photos, by path and by bytes."""
    write(tmp_path, *(f"{part}/cat/{n}.jpg" for part in ("train", "test") for n in range(9)), "train/dog/1.jpg")
    write(tmp_path, "test/dog/1.jpg")
    text = 'rule = "hierarchy"\nname = "my/two"\n[sources]\ntrain = { dataset = "a" }\ntest = { dataset = "b" }\n'
    (tmp_path / "two.toml").write_text(
        text + '[classes]\nknown = ["cat"]\nunknown = ["dog"]\n[parameters]\ntrain = 0.8\nval = 0.2\n'
    )
    sources = {name: tmp_path / name for name in ("train", "test")}
    assert len(curation.build(tmp_path / "two.toml", sources=sources).ids("test")) == 10
    (tmp_path / "test/cat/5.jpg").write_bytes((tmp_path / "train/cat/7.jpg").read_bytes())
    with pytest.raises(CurationError, match="same images") as caught:
        curation.build(tmp_path / "two.toml", sources=sources)
    assert str(caught.value.hint) == "remove one of the two photos of each pair"
    (tmp_path / "two.toml").write_text((tmp_path / "two.toml").read_text().replace('dataset = "b"', 'dataset = "a"'))
    with pytest.raises(CurationError, match="same images") as caught:
        curation.build(tmp_path / "two.toml", sources=sources)
    assert "a different dataset" in str(caught.value.hint)


def test_audit_compares_the_parts_of_class_folders(tmp_path: Path, shell: Shell) -> None:
    """A photo in two parts under two names is an error; a list beside the folders is audited in their place."""
    for number, path in enumerate(("train/cat/1.png", "train/dog/2.png", "test/cat/1.png", "test/dog/4.png")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).integers(0, 256, (32, 32, 3), np.uint8)
        Image.fromarray(noise).save(tmp_path / path)
    write(tmp_path, "README.roboflow.txt")
    assert shell.data("audit", tmp_path, "--json")["sums"]["undecidable"] == {}
    (tmp_path / "test/dog/9.png").write_bytes((tmp_path / "train/dog/2.png").read_bytes())
    report = shell.data("audit", tmp_path, "--json", status=1)
    assert {row["rule"] for row in report["statements"] if row["gravity"] == "error"} == {"DS2", "DS3"}
    write(tmp_path, "train.txt").joinpath("train.txt").write_text("a.jpg\n")
    assert audit(tmp_path).target.kind == "folder"
    assert "init hierarchy" in shell.err("audit", tmp_path / "train")


def test_inspect_counts_the_photos_of_each_class(tmp_path: Path, shell: Shell) -> None:
    """Photos by class and part, and what is left out."""
    write(tmp_path, "train/cat/1.jpg", "train/cat/2.jpg", "val/dog/1.jpg", "train/readme.md")
    found = shell.data("inspect", tmp_path, "--json")
    assert (found["images"], found["images_of_train"], found["images_of_val"], found["classes"]) == (3, 2, 1, 2)
    assert [(row["class"], row["images"]) for row in found["class_counts"]] == [("cat", 2), ("dog", 1)]
    assert found["notes"][0] == "Left out: 1 files that are no photos."
    assert "It holds no boxes" in found["notes"][1]
    assert shell.data("inspect", tmp_path, "--image-set", "val", "--json")["images"] == 1


def test_photos_with_label_files_beside_them_are_no_class_folders(tmp_path: Path, shell: Shell) -> None:
    write(tmp_path, "obj/1.jpg", "obj/2.jpg")
    (tmp_path / "obj" / "1.txt").write_text("2 cats of 3 on a mat")
    assert class_folders(tmp_path)
    (tmp_path / "obj" / "2.txt").write_text("0 0.5 0.5 0.25 0.125")
    assert class_folders(tmp_path) is None
    for command in (["inspect", tmp_path], ["init", "tasks", "--source", f"train={tmp_path}", "--out", "new.toml"]):
        assert "'val: obj' >" in shell.err(*command)
