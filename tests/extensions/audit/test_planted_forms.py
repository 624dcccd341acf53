"""Planted leaks of each kind in forms of others' lists, and sound folders of the same forms: facts of a drawn case.

Each form writes the same 120 names as lists of train, val and test; a leak puts five names of train into test.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from curation.cli import main
from curation.core.errors import UsageError
from curation.extensions.audit.report import Report
from curation.extensions.audit.run import audit
from curation.extensions.identify.run import identify
from tests.extensions.audit.list_forms import Parts, columns, shards, write, yolo

NAMES = [f"scans/q{number * 7919 % 100_003:05x}.png" for number in range(120)]
SOUND: Parts = {"train": NAMES[:80], "val": NAMES[80:100], "test": NAMES[100:]}
LEAK: Parts = {**SOUND, "test": [*NAMES[100:], *NAMES[:5]]}


def accused(report: Report) -> list[tuple[str, str]]:
    return [(one.rule, one.gravity) for one in report.statements if one.gravity in ("error", "warning")]


def test_the_shards_of_a_part_are_its_lists(tmp_path: Path) -> None:
    shards(tmp_path / "sound", SOUND, 2)
    report = audit(tmp_path / "sound")
    assert not accused(report)
    assert report.coverage.compared == 5
    shards(tmp_path / "leak", LEAK, 2)
    errors = [one for one in audit(tmp_path / "leak").statements if one.gravity == "error"]
    assert {one.rule for one in errors} == {"DS2"}
    assert sum(one.count for one in errors) == 5


def test_val_and_test_columns_of_one_file_are_the_same_list_line_for_line(tmp_path: Path) -> None:
    columns(tmp_path, {**SOUND, "val": SOUND["test"]})
    [error] = [one for one in audit(tmp_path).statements if one.gravity == "error"]
    assert "the same list twice (20 lines, line for line)" in error.text


def test_counts_and_flags_below_train_and_test_are_no_lists(tmp_path: Path) -> None:
    write(tmp_path, "splits_0_descriptor.csv", [",train,val,test", "luminal,400,50,50", "basal,120,15,15"])
    with pytest.raises(UsageError, match="No list of images found"):
        audit(tmp_path)
    rows = [f"{Path(name).stem},{part == 'train'},False,{part == 'test'}" for part in SOUND for name in SOUND[part]]
    write(tmp_path, "splits_0_bool.csv", [",train,val,test", *rows])
    sizes = {listed.name.rpartition("/")[2]: len(listed) for listed in audit(tmp_path).target.files}
    assert sizes == {"train": 80, "val": 0, "test": 20}


def test_a_yolo_folder_without_yaml_is_refused_with_a_command_that_works(tmp_path: Path) -> None:
    yolo(tmp_path, LEAK)
    (tmp_path / "data.yaml").unlink()
    with pytest.raises(UsageError, match="No list of images found") as refused:
        audit(tmp_path)
    hint = str(refused.value.hint)
    texts = [text for text in hint.split("'") if ": " in text]
    write(tmp_path, "data.yaml", texts)
    assert hint.endswith(f"> {tmp_path / 'data.yaml'}")
    assert accused(audit(tmp_path)) == [("DS2", "error")]
    # Without names of classes the photos are compared all the same.
    write(tmp_path, "data.yaml", texts[:-1])
    assert accused(audit(tmp_path)) == [("DS2", "error")]
    shutil.rmtree(tmp_path / "images")
    (tmp_path / "data.yaml").unlink()
    with pytest.raises(UsageError, match="No list of images found"):
        audit(tmp_path)


def test_photos_beside_a_yaml_are_opened_and_pixels_are_asked_for_with_their_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    yolo(tmp_path, SOUND)
    assert audit(tmp_path).checked_text == "checked: 120 lines in 3 lists"
    assert main(["audit", str(tmp_path), "--rules", "DS3"]) == 2
    printed = capsys.readouterr().out
    assert "the pixels of 120 of 120 images were not compared" in printed
    advice = f"--photos photos={tmp_path}"
    assert advice in printed
    assert main(["audit", str(tmp_path), "--rules", "DS3", *advice.split(maxsplit=1)]) == 0


def test_a_folder_above_class_folders_is_refused_with_the_folder_to_audit(tmp_path: Path) -> None:
    """MVTec AD: masks in ``ground_truth`` come before ``train`` by name, and each category holds its licence."""
    names = [f"ground_truth/crack/{at}_mask.png" for at in range(3)] + [f"train/good/{at}.png" for at in range(9)]
    for at, name in enumerate([*names, "test/good/0.png", "test/crack/0.png"]):
        photo = tmp_path / "bottle" / name
        photo.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 6), (at, 9 * at, 0)).save(photo)
    write(tmp_path, "bottle/license.txt", ["CC BY-NC-SA 4.0"])
    with pytest.raises(UsageError, match="No list of images found") as refused:
        audit(tmp_path)
    assert str(refused.value.hint).endswith(f"such as {tmp_path / 'bottle'}")
    write(tmp_path, "bottle/classes.txt", ["good", "crack"])
    assert audit(tmp_path / "bottle").checked_text == "checked: 11 lines in 2 lists"


@pytest.mark.parametrize(("folders", "errors"), [(("img", "mask"), 0), (("with_mask", "mask"), 2)])
def test_masks_beside_photos_are_no_class_of_equal_photos(
    folders: tuple[str, str], errors: int, tmp_path: Path
) -> None:
    """Empty masks are equal in every part; a class may be called mask."""
    for part in ("train", "test"):
        for at, folder in enumerate(folders):
            photo = tmp_path / part / folder / "0001.png"
            photo.parent.mkdir(parents=True)
            Image.new("RGB", (6, 6), (0, 0, 0) if at else (len(part), 9, 0)).save(photo)
    assert audit(tmp_path).sums.errors == errors


@pytest.mark.parametrize("name", ["nowhere", "no/where", "nowhere@1.0.0"])
def test_a_name_that_is_nothing_is_told_what_an_audit_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", name]) == 2
    told = capsys.readouterr().err
    assert "No file or folder of this name exists, and no manifest" in told
    assert "a folder of lists" in told


def test_a_file_alone_is_refused_with_a_command_that_works(tmp_path: Path) -> None:
    write(tmp_path, "train.txt", NAMES)
    with pytest.raises(UsageError, match="A file alone cannot be audited") as refused:
        audit(tmp_path / "train.txt")
    assert refused.value.hint == f"curation audit {tmp_path}"
    assert main(str(refused.value.hint).split()[1:]) == audit(tmp_path).exit_status


def test_a_role_is_said_of_a_list_as_the_report_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0, 1 and 2 say unused, train and test in one repository, and other things in others."""
    rows = [f"{name},{'012'[at % 3]}" for at, name in enumerate(NAMES)] + [f"{NAMES[1]},2"]
    write(tmp_path, "meta.csv", ["image,split", *rows])
    assert not accused(audit(tmp_path))
    printed = {row["name"].removeprefix(audit(tmp_path).folder) for row in audit(tmp_path).lists()}
    assert printed == {"split=0", "split=1", "split=2"}
    assert main(["audit", str(tmp_path), "--role", "split=1=train", "--role", "split=2=test"]) == 1
    assert "both hold 1 image" in capsys.readouterr().out
    assert audit(tmp_path, roles={"meta/split=1": "train", "split=2": "test"}).exit_status == 1
    for roles, refusal in (
        ({"meta/split=1": "train", "split=1": "test"}, "A list has two roles"),
        ({"split=9": "train"}, "Unknown list"),
        ({"split": "train"}, "Unknown list"),
    ):
        with pytest.raises(UsageError, match=refusal):
            audit(tmp_path, roles=roles)


PHOTOS = [f"photo{number:04}" for number in range(100)]
GROUPS: dict[str, tuple[Sequence[str], Sequence[str], str]] = {
    "augmented": (
        [f"img/{name}_augmented_{copy}.jpg" for name in PHOTOS[:60] for copy in range(3)],
        [f"img/{name}_augmented_3.jpg" for name in PHOTOS[55:]],
        "5 source photos on both sides",
    ),
    "aug": ([f"a/{name}.jpg" for name in PHOTOS], [f"a/{name}_aug.jpg" for name in PHOTOS[:7]], "7 source photos"),
    "flip": ([f"a/{name}.jpg" for name in PHOTOS], [f"a/{name}_hflip.jpg" for name in PHOTOS[:7]], "7 source photos"),
    "copy": ([f"{name}.jpg" for name in PHOTOS], [f"{name} - Copy (2).jpg" for name in PHOTOS[:7]], "7 source photos"),
    "frames": (
        [f"cam/frame_{number:05}.jpg" for number in range(100) if number % 5],
        [f"cam/frame_{number:05}.jpg" for number in range(0, 100, 5)],
        "1 video on both sides",
    ),
    "movies": (
        [f"MVI_{video}/img{frame:05}.jpg" for video in (20, 21) for frame in range(0, 50)],
        [f"MVI_{video}/img{frame:05}.jpg" for video in (21, 22) for frame in range(50, 60)],
        "1 video on both sides",
    ),
    "recordings": (
        [f"1-{1000 + n // 4}-{'ABCD'[n % 4]}-7.wav" for n in range(80)],
        [f"2-{1019 + n // 4}-{'ABCD'[n % 4]}-8.wav" for n in range(40)],
        "1 recording on both sides",
    ),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_groups_on_both_sides_are_told_with_their_count(kind: str, tmp_path: Path) -> None:
    train, test, said = GROUPS[kind]
    write(tmp_path, "train.txt", train)
    write(tmp_path, "test.txt", test)
    [statement] = [one for one in audit(tmp_path).statements if one.gravity in ("error", "warning")]
    assert (statement.rule, statement.gravity) == ("PL7", "warning")
    assert said in statement.text


@pytest.mark.parametrize(("value", "gravity"), [("young old", "undecidable"), ("P1 P2", "warning")])
def test_attributes_that_every_list_has_are_no_groups(value: str, gravity: str, tmp_path: Path) -> None:
    for part, names in SOUND.items():
        rows = [f"{name},{value.split()[at % 2]}" for at, name in enumerate(names)]
        write(tmp_path, f"{part}.csv", ["image,study", *rows])
    report = audit(tmp_path)
    assert {one.gravity for one in report.statements if one.rule == "PL7"} == {gravity}
    assert "studys" not in str(report.statements)
    assert audit(tmp_path, group_column="study").sums.warnings == 1


@pytest.mark.parametrize(("labels", "gravity"), [(12, "undecidable"), (4, "warning")])
def test_groups_that_are_the_labels_are_classes(labels: int, gravity: str, tmp_path: Path) -> None:
    for part, names in SOUND.items():
        rows = [f"{name},s{at % 12},{at % labels}" for at, name in enumerate(names)]
        write(tmp_path, f"{part}.csv", ["image,speaker,label", *rows])
    assert {one.gravity for one in audit(tmp_path).statements if one.rule == "PL7"} == {gravity}


@pytest.mark.parametrize(("name", "mark"), [("list_eval_partition.txt", "   "), ("list.csv", ",")])
def test_words_of_roles_beside_images_give_the_lists_of_a_text(name: str, mark: str, tmp_path: Path) -> None:
    """DeepFashion writes the part of an image after it."""
    write(tmp_path / "in", name, [f"{image}{mark}{part}" for part, images in LEAK.items() for image in images])
    report = audit(tmp_path / "in")
    assert accused(report) == [("DS2", "error")]
    assert report.coverage.compared == 3
    assert report.repair(tmp_path / "out")["status"] == 0


@pytest.mark.parametrize("words", ["Training PublicTest PrivateTest", "train val test"])
def test_a_column_whose_values_state_roles_gives_the_lists_of_a_file_without_a_role(words: str, tmp_path: Path) -> None:
    rows = [f"{name},{word}" for word, names in zip(words.split(), LEAK.values(), strict=True) for name in names]
    write(tmp_path, "meta.csv", ["image,Usage", *rows])
    assert accused(audit(tmp_path)) == [("DS2", "error")]
    # In the files of train and test such a column tells where images come from.
    (tmp_path / "meta.csv").unlink()
    for part, names in SOUND.items():
        origin = [f"{name},{('train', 'test')[at % 2]}" for at, name in enumerate(names)]
        write(tmp_path, f"{part}.csv", ["image,origin", *origin])
    report = audit(tmp_path)
    assert not accused(report)
    assert report.coverage.compared == 3


def test_a_table_of_slides_and_patients_is_a_list_of_slides(tmp_path: Path) -> None:
    for part, names in LEAK.items():
        rows = [f"case{at // 2 + len(part) * 100},{Path(name).stem},luad" for at, name in enumerate(names)]
        write(tmp_path, f"{part}.csv", ["case_id,slide_id,label", *rows])
    assert ("DS2", "error") in accused(audit(tmp_path))


@pytest.mark.parametrize(("common", "gravity"), [(1, "warning"), (0, "pass")])
def test_users_are_groups(common: int, gravity: str, tmp_path: Path) -> None:
    write(tmp_path, "train.csv", ["image,user_id", *(f"{at}.jpg,u{at // 5}" for at in range(50))])
    write(tmp_path, "test.csv", ["image,user_id", *(f"{at}.jpg,u{at // 5 - common}" for at in range(50, 70))])
    [said] = [one for one in audit(tmp_path).statements if one.rule == "PL7"]
    assert said.gravity == gravity


NO_GROUPS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "dates": (
        [f"IMG_2019_{month:02}_{day:02}.jpg" for month in range(1, 7) for day in range(1, 29, 2)],
        [f"IMG_2019_{month:02}_{day:02}.jpg" for month in range(1, 7) for day in range(2, 29, 2)],
    ),
    "car and sensor": (
        [f"log/run{run}_{car}_{sensor}.png" for run in range(12) for car in range(9) for sensor in (1, 2)],
        [f"log/run{run}_{car}_{sensor}.png" for run in range(12) for car in range(9, 12) for sensor in (1, 2)],
    ),
    "class folders of an open set": (
        [f"breed_{name}/{at}.jpg" for name in "abcdefghijklmnopq" for at in range(5)],
        [f"breed_{name}/{at}.jpg" for name in "pqrstuvwxyz" for at in range(5, 9)],
    ),
    "a month after a year": (
        [f"cam_2019_{month}_{day:02}.jpg" for month in ("jul", "aug", "sep") for day in range(1, 20)],
        [f"cam_2019_{month}_{day:02}.jpg" for month in ("jul", "aug", "sep") for day in range(20, 28)],
    ),
    "a word of all names": (
        [f"carbon_copy_{number:03}.jpg" for number in range(1, 60, 2)],
        [f"carbon_copy_{number:03}.jpg" for number in range(2, 60, 2)],
    ),
    "copies on one side": (
        [f"{name}{end}.jpg" for name in PHOTOS[:50] for end in ("", "_aug")],
        [f"{name}.jpg" for name in PHOTOS[50:]],
    ),
}


@pytest.mark.parametrize("kind", NO_GROUPS)
def test_names_that_tell_no_group_are_undecidable(kind: str, tmp_path: Path) -> None:
    for name, lines in zip(("train.txt", "test.txt"), NO_GROUPS[kind], strict=True):
        write(tmp_path, name, lines)
    report = audit(tmp_path)
    assert not accused(report)
    assert [one.gravity for one in report.statements if one.rule == "PL7"] == ["undecidable"]


def test_a_companion_on_an_equal_path_is_the_same_image_and_no_other_view(tmp_path: Path) -> None:
    write(tmp_path, "train.txt", [f"left/q{number * 7919 % 997}.png" for number in range(40)])
    write(tmp_path, "test.txt", [f"left/q{number * 7919 % 997}.png" for number in range(35, 60)])
    assert accused(audit(tmp_path)) == [("DS2", "error")]


@pytest.mark.parametrize("pattern", ["proj/scans/(p[0-9]+)", "^(p[0-9]+)", "/data/.*/(p[0-9]+)x/"])
def test_a_pattern_of_the_user_may_name_the_common_folders(pattern: str, tmp_path: Path) -> None:
    lines = [f"/data/proj/scans/p{number // 10:03}x/{number * 7919 % 9973}.png" for number in range(100)]
    write(tmp_path, "train.txt", lines[:65])
    write(tmp_path, "test.txt", lines[65:])
    [said] = [one for one in audit(tmp_path, groups=[pattern]).statements if one.rule == "PL7"]
    assert "1 group on both sides, with 5 of 65 lines of train and 5 of 35 lines of test" in said.text


@pytest.mark.parametrize("anew", [True, False])
def test_names_that_number_each_folder_anew_are_undecidable(anew: bool, tmp_path: Path) -> None:
    """SYSU-MM01 numbers the photos of each person and camera from 1; a lone photo out of a folder is no counter."""
    people = {"train": range(1, 13), "test": range(1, 5)}
    lists = {
        part: [f"cam{cam}/{person:04}/{photo:04}.jpg" for cam in (1, 2) for person in numbers for photo in range(1, 6)]
        for part, numbers in people.items()
    }
    if not anew:
        lists["test"] = [f"cam1/{person:04}/0003.jpg" for person in range(3, 9)]
    for part, lines in lists.items():
        write(tmp_path, f"{part}.txt", lines)
    report = audit(tmp_path)
    assert ([one.gravity for one in report.statements if one.rule == "DS2"] == ["undecidable"]) == anew
    assert bool(accused(report)) != anew


def test_bare_numbers_of_two_folders_are_no_relation(tmp_path: Path) -> None:
    write(tmp_path, "kitti/train.txt", [f"{number:06}" for number in range(0, 3000, 2)])
    write(tmp_path, "once/train.txt", [f"{number:06}" for number in range(0, 900, 2)])
    report = audit(tmp_path)
    assert not [one for one in report.statements if one.rule == "PL14" and "once" in one.text]


def test_numbers_meet_those_of_a_long_list_by_chance(tmp_path: Path) -> None:
    """KITTI's 3,712 train images are no VOC-COCO, and four sequences of ONCE no M-OWODB."""
    numbers = np.sort(np.random.default_rng(0).permutation(7481)[:3712]).tolist()
    write(tmp_path, "kitti.txt", [f"{number:06}" for number in numbers])
    write(tmp_path, "once.txt", ["000076", "000080", "000092", "000104"])
    for answer in identify(tmp_path).lists:
        assert (answer.verdict, answer.nearest) == ("unknown", ())


def test_images_are_counted_by_their_whole_paths(tmp_path: Path) -> None:
    write(tmp_path, "train.txt", [f"OP{at % 6}/Raw/img_{at // 6:04}_raw.png" for at in range(600)])
    [answer] = identify(tmp_path).lists
    assert answer.images == 600
    assert "folder and stem name 100 of 600 paths: relations count these" in answer.findings
