"""ImageNet's layouts, drawn small: each gives the same images and classes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import AnnotationFormatError, DuplicateIdError, MissingFileError, UsageError
from curation.core.ids import ilsvrc2012_classes
from curation.sources.imagenet import NO_NAMES, class_of_images, read_imagenet, stem
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.real_files import real_files

FOX, WOLF = "n02119022", "n02114367"
NAMES = {FOX: ["n02119022_1.JPEG", "n02119022_10.JPEG"], WOLF: ["n02114367_5.JPEG"]}
IMAGES = {"n02119022_1": FOX, "n02119022_10": FOX, "n02114367_5": WOLF}


def shown(source: Source) -> dict[str, str]:
    names = [source.categories.names[one] for one in class_of_images(source)]
    return dict(zip(source.images.native.tolist(), names, strict=True))


def draw(root: Path, names: dict[str, list[str]] = NAMES) -> Path:
    for wnid, several in names.items():
        (root / wnid).mkdir(parents=True)
        for name in several:
            (root / wnid / name).touch()
    return root


def test_class_folders_under_a_root_or_alone(tmp_path: Path) -> None:
    draw(tmp_path / "train")
    for path in (tmp_path, tmp_path / "train"):
        source = open_path(path, dataset="imagenet", part="train")
        assert shown(source) == IMAGES
        assert source.image_ids.tolist()[0] == "imagenet:n02114367_5"
        assert source.categories.names == (WOLF, FOX)
        assert (source.objects, source.media_redistributable) == (None, False)
    draw(tmp_path / "kaggle" / "ILSVRC" / "Data" / "CLS-LOC" / "train")
    assert shown(read_imagenet(tmp_path / "kaggle", part="train")) == IMAGES


def test_what_is_no_image_changes_nothing_and_is_told(tmp_path: Path) -> None:
    draw(tmp_path)
    plain = read_imagenet(tmp_path, part="train")
    for name in (".DS_Store", "._n02119022_1.JPEG", "notes.txt"):
        (tmp_path / FOX / name).touch()
    (tmp_path / "README").touch()
    (tmp_path / "lost+found").mkdir()
    source = read_imagenet(tmp_path, part="train")
    assert shown(source) == IMAGES
    assert source.files == plain.files
    assert source.dropped == {"files that are no images": 3, "entries beside the class folders": 2}


@pytest.mark.parametrize("form", ["{name}", "{wnid}/{name}", "train/{wnid}/{name}"])
def test_a_list_of_training_names(tmp_path: Path, form: str) -> None:
    path = tmp_path / "train.txt"
    path.write_text("".join(form.format(wnid=FOX, name=name) + "\r\n" for name in NAMES[FOX]))
    assert shown(read_imagenet(path, part="train")) == {stem(name): FOX for name in NAMES[FOX]}


def test_names_by_class(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text(json.dumps(NAMES))
    assert shown(read_imagenet(path, part="train")) == IMAGES


def test_counts_by_class_have_no_names(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    path.write_text(json.dumps({FOX: 3, WOLF: 0}))
    source = read_imagenet(path, part="train")
    assert (len(source.images), source.categories.names) == (3, (FOX,))
    assert source.dropped == {NO_NAMES: 3}
    assert read_imagenet(path, part="val").dropped == source.dropped


def val_classes(source: Source) -> list[str]:
    assert source.images.native.tolist()[0] == "ILSVRC2012_val_00000001"
    return list(shown(source).values())


def write_truth(folder: Path, layout: str) -> Path:
    classes, order = ilsvrc2012_classes(), [WOLF, FOX, FOX]
    names = [f"ILSVRC2012_val_{number:08d}" for number in (1, 2, 3)]
    texts = {
        "val.txt": "".join(f"{name}.JPEG {classes.index(wnid)}\n" for name, wnid in zip(names, order, strict=True)),
        "LOC_val_solution.csv": "ImageId,PredictionString\n"
        + "".join(f"{name},{wnid} 1 2 3 4 {wnid} 5 6 7 8 \n" for name, wnid in zip(names, order, strict=True)),
    }
    path = folder / layout
    path.write_text(texts[layout])
    return path


LAYOUTS = ("val.txt", "LOC_val_solution.csv")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ground_truth_of_the_validation_images(tmp_path: Path, layout: str) -> None:
    source = read_imagenet(write_truth(tmp_path, layout), part="val")
    assert val_classes(source) == [WOLF, FOX, FOX]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_flat_folder_with_ground_truth_beside_it(tmp_path: Path, layout: str) -> None:
    flat = tmp_path / "val"
    flat.mkdir()
    for number in (1, 3, 9):
        (flat / f"ILSVRC2012_val_{number:08d}.JPEG").touch()
    with pytest.raises(MissingFileError, match="no class folders") as raised:
        read_imagenet(tmp_path, part="val")
    assert "LOC_val_solution.csv" in (raised.value.expected or "")
    write_truth(tmp_path, layout)
    source = read_imagenet(tmp_path, part="val")
    assert shown(source) == {"ILSVRC2012_val_00000001": WOLF, "ILSVRC2012_val_00000003": FOX}
    assert source.dropped == {
        "listed images that are not in the folder": 1,
        "images in the folder that are not listed": 1,
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "hello world\n"),
        # The development kit numbers the classes in an order of its own.
        ("ILSVRC2012_validation_ground_truth.txt", "490\n361\n"),
        ("a.txt", ""),
        ("a.txt", "ILSVRC2012_val_00000001.JPEG 65\nILSVRC2012_val_00000002.JPEG 1000\n"),
        ("a.txt", "ILSVRC2012_val_00000001.JPEG 65\nILSVRC2012_val_00000002.JPEG -1\n"),
        ("a.txt", f"{FOX}_1.JPEG\n../../etc/passwd\n"),
        ("a.txt", f"train/{WOLF}/{FOX}_1.JPEG\n"),
        ("a.txt", f"{FOX}/{FOX}_1.JPEG 0\n"),
        ("a.txt", f"{FOX}\nfox\n"),
        ("a.csv", f"ImageId,PredictionString\nx,{FOX} 1 2 3 4 {WOLF} 1 2 3 4\n"),
        ("a.csv", "ImageId,PredictionString\nx\n"),
        ("a.csv", f"ImageId,PredictionString\nILSVRC2012_val_00000001,{FOX} {'1 ' * 70_000}\n"),
        ("val_.txt", f"{FOX}\n\n{WOLF}\n"),
        ("a.json", f'{{"{FOX}": ["{WOLF}_1.JPEG"]}}'),
        ("a.json", "["),
        ("a.json", '{"fox": ["a.JPEG"]}'),
        ("a.json", f'{{"{FOX}": ["a.JPEG"], "{WOLF}": 3}}'),
        ("a.json", f'{{"{FOX}": -3}}'),
        ("a.json", f'{{"{FOX}": 99999999999}}'),
        ("a.json", f'{{"{FOX}": ["a\\u001b[31m.JPEG"]}}'),
        ("a.json", f'{{"{FOX}": [3]}}'),
    ],
)
def test_hostile_lists(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(AnnotationFormatError):
        read_imagenet(path, part="val" if "val_" in f"{name} {text}" else "train")


def test_an_image_that_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{FOX}_1.JPEG\n{FOX}_1.jpg\n")
    with pytest.raises(DuplicateIdError):
        read_imagenet(path, part="train")


def test_a_list_of_the_other_part_is_told(tmp_path: Path) -> None:
    path = write_truth(tmp_path, "val.txt")
    with pytest.raises(UsageError, match="val part") as raised:
        read_imagenet(path, part="train")
    assert raised.value.hint == f"--source imagenet-val={path}"


def test_a_plain_table_of_image_and_class(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("image,class\n" + "".join(f"{image}.JPEG,{wnid}\n" for image, wnid in IMAGES.items()))
    assert shown(read_imagenet(path, part="train")) == IMAGES
    path.write_text(f"image,class\nx,{FOX}\nx,{WOLF}\n")
    with pytest.raises(AnnotationFormatError, match="no class or several classes"):
        class_of_images(read_imagenet(path, part="train"))


@pytest.mark.parametrize("odd", [b"\xff", b"\n2"])
def test_a_file_name_that_is_no_id(tmp_path: Path, odd: bytes) -> None:
    draw(tmp_path)
    name = os.fsencode(tmp_path / FOX) + b"/n02119022_1" + odd + b".JPEG"
    try:
        Path(os.fsdecode(name)).touch()
    except OSError:
        pytest.skip("this file system does not take the name")
    with pytest.raises(AnnotationFormatError, match="cannot be an image id"):
        read_imagenet(tmp_path, part="train")


@real_files("imagenet")
def check_the_real_validation_list(shared: Path) -> None:
    source = read_imagenet(shared / "data/imagenet/val.txt", part="val")
    assert np.bincount(class_of_images(source)).tolist() == [50] * 1000
    assert source.categories.names == ilsvrc2012_classes()


@real_files("imagenet")
def check_a_tenth_of_the_real_training_names(shared: Path) -> None:
    source = read_imagenet(shared / "data/imagenet/train_names_10percent.txt", part="train")
    assert (len(source.images), len(source.categories)) == (128_116, 1000)
    assert all(native.startswith(wnid) for native, wnid in shown(source).items())
