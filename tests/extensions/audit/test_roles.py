"""Roles and families from the names of lists, or as the user says them; and which lists are compared as roles."""

from __future__ import annotations

import random

import pytest

from curation.core.errors import UsageError
from curation.extensions.audit.roles import comparisons, task_roles
from curation.extensions.audit.target import role_option
from curation.sources.list_roles import read_role

TASK_NAMES = ("t1", "t2", "t3", "t4")


@pytest.mark.parametrize(
    ("name", "role", "task"),
    [
        ("t1_train", "train", 1),
        ("t4_train", "train", 4),
        ("t2_ft", "finetune", 2),
        ("t3-finetune", "finetune", 3),
        ("task2_val", "val", 2),
        ("t1_val_segment", "val", 1),
        ("t1_known_test", "test", 1),
        ("ImageSets/Main/t2_train", "train", 2),
        ("all_task_test", "test", 0),
        ("test", "test", 0),
        ("val", "val", 0),
    ],
)
def test_upstream_names_say_the_role(name: str, role: str, task: int) -> None:
    [guess] = task_roles(name, 10, 4)
    assert (guess.role, guess.task, guess.lines) == (role, task, None)


@pytest.mark.parametrize(
    "name", ["t1_train_with_unk", "wr1", "VOC2007__test_wr1", "readme", "train", "t5_train", "c17_t2_test"]
)
def test_other_names_say_none_and_why(name: str) -> None:
    [guess] = task_roles(name, 10, 4)
    assert guess.role == ""
    assert guess.why


def test_a_validation_list_of_a_thousand_lines_a_task_is_so_many_segments() -> None:
    segments = task_roles("all_task_val", 4000, 4)
    assert [(one.role, one.task, one.lines) for one in segments] == [
        ("val", 1, (1, 1000)),
        ("val", 2, (1001, 2000)),
        ("val", 3, (2001, 3000)),
        ("val", 4, (3001, 4000)),
    ]
    assert len(task_roles("all_task_val", 3999, 4)) == 1


def test_the_known_test_list_is_a_part_of_the_whole_where_that_is_there() -> None:
    [guess] = task_roles("t1_known_test", 10, 4, ["all_task_test", "t1_known_test"])
    assert guess.role == ""


def test_several_benchmarks_in_one_folder_are_not_mixed() -> None:
    names = ["ore/t1_train", "reowod/t1_train", "ore/t2_ft"]
    for name in names:
        [guess] = task_roles(name, 10, 4, names)
        assert guess.role == ""
        assert "audit one at a time" in guess.why


def test_roles_are_read_with_a_task_by_number_or_name() -> None:
    assert (role_option("val:2", TASK_NAMES, "").role, role_option("val:t2", TASK_NAMES, "").task) == ("val", 2)
    assert role_option("test", TASK_NAMES, "").task == 0
    assert role_option("none", TASK_NAMES, "").role == ""


@pytest.mark.parametrize("text", ["", "trian:1", "train:5", "train:t9", "train", "val:-1", "val:²"])
def test_wrong_roles_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        role_option(text, TASK_NAMES, "--role")


@pytest.mark.parametrize(
    ("path", "roles", "family", "folder"),
    [
        ("train.txt", "train", "", ""),
        ("photo_train.txt", "train", "photo", ""),
        ("my_train", "train", "my", ""),
        ("eigen_train_files.txt", "train", "eigen", ""),
        ("train_COVIDx6.txt", "train", "covidx6", ""),
        ("trainlist01.txt", "train", "01", ""),
        ("imgIds_task_3_test.txt", "test", "task 3", ""),
        ("test_midog_1b.txt", "test", "midog 1b", ""),
        ("art_painting_tst.list", "test", "art painting", ""),
        ("instances_val2017.json", "val", "instances 2017", ""),
        ("image_info_test-dev2017.json", "test", "image info 2017", ""),
        ("COCO_minival.txt", "val", "coco", ""),
        ("kitti/test_files.txt", "test", "", "kitti"),
        ("10pct/labeled.txt", "train", "", "10pct"),
        ("train/_annotations.coco.json", "train", "coco", ""),
        ("splits/valid/images.txt", "val", "", "splits"),
        ("train/train.txt", "train", "", ""),
        ("a/test2017/x.json", "test", "x", "a/2017"),
        ("meta.csv[split=train]", "train", "", "meta.csv"),
        ("meta/split=query", "test", "", "meta"),
        ("trainval.txt", "train val", "", ""),
        ("bList_valTest.txt", "val test", "b", ""),
        ("train_val.txt", "train val", "", ""),
        ("test_of_train.txt", "", "of", ""),
        ("train_test_split.csv", "", "", ""),
        ("latest.txt", "", "latest", ""),
        ("gallery.txt", "", "gallery", ""),
        ("source.txt", "", "source", ""),
    ],
)
def test_a_path_says_role_and_family(path: str, roles: str, family: str, folder: str) -> None:
    guess = read_role(path)
    assert (" ".join(guess.roles), guess.family_name, guess.folder) == (roles, family, folder)


@pytest.mark.parametrize(
    ("path", "words", "why"),
    [
        ("photo_train.txt", ("train",), 'the name says "train"'),
        ("valid/list.txt", ("valid",), 'its folder says "valid"'),
        ("unlabeled.txt", ("unlabeled",), 'the name says "unlabeled": unlabelled training'),
        ("test_of_train.txt", ("test", "train"), 'the name says "test" and "train": choose with --role'),
        ("readme.txt", (), "no name says train, val or test"),
    ],
)
def test_a_guess_says_the_words_that_led_to_it(path: str, words: tuple[str, ...], why: str) -> None:
    guess = read_role(path)
    assert (guess.words, guess.why, guess.unlabelled) == (words, why, "unlabelled" in why)


def compared(paths: list[str], kind: str = "family", lines: int = 1) -> set[tuple[str, str]]:
    pairs = comparisons([read_role(path) for path in paths], [lines] * len(paths))
    return {(paths[pair.a], paths[pair.b]) for pair in pairs if pair.kind == kind}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("train val test", "train-val train-test val-test"),
        ("photo_train photo_test sketch_train sketch_test", "photo_train-photo_test sketch_train-sketch_test"),
        ("a/train a/test b/train b/test", "a/train-a/test b/train-b/test"),
        ("trainlist01 testlist01 trainlist02 testlist02", "trainlist01-testlist01 trainlist02-testlist02"),
        # A list without a family serves those of its folder and below that have none of its role.
        ("val 10pct/labeled 20pct/labeled", "10pct/labeled-val 20pct/labeled-val"),
        ("val 10pct/labeled 10pct/val", "10pct/labeled-10pct/val"),
        ("train test_a test_b train_b", "train-test_a train_b-test_b"),
        # The shortest family that another begins with serves it.
        ("train_m test_m test_m_1b", "train_m-test_m train_m-test_m_1b"),
        ("train_m train_m_1b test_m_1b_far", "train_m-test_m_1b_far"),
        ("train_m train_m_1b test_m_1b", "train_m_1b-test_m_1b"),
        ("train_7 test_7A train_1 test_10", ""),
        ("photo_train mono_test", ""),
        # A list of both roles holds the other by design.
        ("trainval train val test", "train-val train-test val-test trainval-test"),
        ("readme train notes", ""),
    ],
)
def test_lists_are_compared_within_one_folder_and_family(paths: str, expected: str) -> None:
    names = paths.split()
    assert compared(names) == {tuple(pair.split("-")) for pair in expected.split()}
    shuffled = random.Random(1).sample(names, len(names))
    assert compared(shuffled) == compared(names)


def test_parts_of_a_benchmark_begin_with_its_name() -> None:
    paths = ["train_m", "test_m", "test_m_ct", "val_m_ct", "test_other"]
    assert compared(paths, "parts") == {("test_m", "test_m_ct"), ("test_m", "val_m_ct")}
