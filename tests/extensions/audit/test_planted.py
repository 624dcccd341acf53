"""Sixty things planted in eleven sound folders: an audit finds them, names them rightly, and accuses nobody else."""

import re
from itertools import combinations
from pathlib import Path

import pytest

import curation
from tests.extensions.audit.planted import PLANTED, SILENCE, SOUND, Folder, Planted, text, told, write

LEAST_FOUND = 57
FORMS = {
    "plain": r"(?P<image>.+)",
    "birds": r"(?P<image>\S+)",
    "covid": r"(?P<group>.+?) (?P<image>\S+\.png)",
    "kitti": r"(?P<image>\S*(?P<group>drive_\d+)\S*)",
    "chest": r"(?P<image>(?P<group>\d{8})\S+)",
    "skin": r"(?P<group>HAM_\d+),(?P<image>[^,]+)",
    "robo": r"(?P<image>(?P<group>.+)\.rf\..+)",
    "slides": r'.*"image": "(?P<image>(?P<group>[^"]+)_patch_[^"]+)',
    "ids": r"(?:COCO_train2014_)?(?P<image>\d+)",
    "semi": r"(?P<image>\S*?(?P<group>[a-z]+_\d{6})_\S+)",
    "folds": r"(?P<image>(?P<group>\S+_g\d\d)\S*)",
}
"""How a line of each folder names its image and its group: for the sets below, which share no code with the audit."""


def rows_of(files: Folder, name: str) -> list[str]:
    folder, _, part = name.rpartition("/")
    if name.startswith("split="):
        return [row for row in files["metadata.csv"] if row.endswith(name[6:])]
    if folder.endswith("splits"):
        return list(files["coco/splits.json"][part])
    held = files[next(file for file in files if file.rsplit(".", 1)[0] == name)]
    return [one["file_name"] for one in held["images"]] if isinstance(held, dict) else list(held)


def named(folder: str, files: Folder, name: str, kind: str) -> list[str]:
    rows = [row.replace("\\", "/").strip("\ufeff\r ").removeprefix("./") for row in rows_of(files, name)]
    found = [re.match(FORMS[folder], row) for row in rows]
    return [one.groupdict().get(kind, "") for one in found if one]


def sides(folder: str, files: Folder) -> list[tuple[str, str]]:
    """Return the lists that must share no image and no group."""
    if folder == "skin":
        return [("split=train", "split=test")]
    if folder == "folds":
        return [(f"trainlist0{fold}", f"testlist0{fold}") for fold in (1, 2, 3)]
    if folder == "semi":
        return [(f"{share}pct/{kind}", "val") for share in (10, 20) for kind in ("labeled", "unlabeled")]
    if folder == "ids":
        main = [f"VOC2007/ImageSets/Main/{part}" for part in ("train", "val", "trainval", "test")]
        coco = ("coco/splits/train", "coco/splits/val")
        return [coco, *[pair for pair in combinations(main, 2) if main[2] not in pair or main[3] in pair]]
    return list(combinations([file.rsplit(".", 1)[0] for file in files], 2))


@pytest.mark.parametrize("folder", SOUND)
def test_sets_find_the_folder_sound(folder: str) -> None:
    files = SOUND[folder]()
    for pair in sides(folder, files):
        for name in pair:
            images = named(folder, files, name, "image")
            assert len(images) == len(set(images)) >= 24
            assert len(text(rows_of(files, name)).splitlines()) - len(images) == 0
        for kind in ("image", "group"):
            shared = set.intersection(*(set(named(folder, files, name, kind)) for name in pair)) - {""}
            assert not shared, (pair, kind)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.name)
def test_sets_count_what_is_planted(planted: Planted) -> None:
    sound, files = SOUND[planted.folder](), SOUND[planted.folder]()
    planted.plant(files)
    assert files != sound
    counted = {"DS1": "image", "DS2": "image", "DS4": "image", "PL7": "group"}
    for rule, _, lists, count, *words in (said.split(maxsplit=4) for said in planted.said):
        if (kind := counted.get(rule)) is None or not count.isdigit() or "if the" in " ".join(words):
            continue
        images = [
            named(planted.folder, files, name.replace("splits/", "coco/splits/"), kind) for name in lists.split(",")
        ]
        if planted.name == "no suffixes":
            images[0] = [one.removesuffix(".jpg") for one in images[0]]
        if rule == "DS1":
            assert len(images[0]) - len(set(images[0])) == int(count)
        else:
            assert len(set.intersection(*map(set, images))) == int(count)


@pytest.mark.parametrize("folder", SOUND)
def test_nobody_is_accused_in_a_sound_folder(folder: str, tmp_path: Path) -> None:
    report = curation.audit(write(SOUND[folder](), tmp_path)).data()
    assert [told(one) for one in report["statements"] if one["gravity"] not in SILENCE] == []
    assert not report["unread"]
    # What no name tells is undecidable, and never a pass.
    groups = {one["gravity"] for one in report["statements"] if one["rule"] == "PL7"}
    assert groups == {"pass" if "group" in FORMS[folder] else "undecidable"}


def test_what_is_planted_is_found_and_rightly_named(tmp_path: Path) -> None:
    assert len(PLANTED) == 60
    missed = {}
    for number, planted in enumerate(PLANTED):
        files = SOUND[planted.folder]()
        planted.plant(files)
        statements = curation.audit(write(files, tmp_path / str(number)), **planted.options).data()["statements"]
        if wrong := planted.missed(statements):
            missed[f"{planted.folder}: {planted.name}"] = wrong
    listed = "\n".join(f"{name}\n    " + "\n    ".join(wrong) for name, wrong in missed.items())
    assert len(PLANTED) - len(missed) >= LEAST_FOUND, listed
