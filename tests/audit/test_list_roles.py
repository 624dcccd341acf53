"""Roles by the names of the open-world repositories, and as the user says them."""

import pytest

from curation.audit.roles import task_roles, tasks_by_name
from curation.audit.target import PRINCIPLE
from curation.audit.targets import read_view, role_option
from curation.errors import UsageError
from curation.manifest.header import LabelView

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


def test_a_train_list_without_a_number_is_that_of_the_only_task() -> None:
    [guess] = task_roles("train", 10, 1)
    assert (guess.role, guess.task) == ("train", 0)


def test_the_number_of_tasks_by_names() -> None:
    assert tasks_by_name(["t1_train", "t3_ft", "t9_readme", "wr1"]) == 3
    assert tasks_by_name(["a"]) == 0


def test_roles_are_read_with_a_task_by_number_or_name() -> None:
    assert (role_option("val:2", TASK_NAMES, "").role, role_option("val:t2", TASK_NAMES, "").task) == ("val", 2)
    assert role_option("test", TASK_NAMES, "").task == 0
    assert role_option("none", TASK_NAMES, "").role == ""


@pytest.mark.parametrize("text", ["", "trian:1", "train:5", "train:t9", "train", "val:-1", "val:²"])
def test_wrong_roles_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        role_option(text, TASK_NAMES, "--role")


def test_views_are_read_by_role_or_by_treatment() -> None:
    assert read_view("test", "") == PRINCIPLE["test"]
    assert read_view("previous=drop,unknown=rename:unknown", "") == LabelView(previous="drop")


@pytest.mark.parametrize("text", ["", "tests", "known", "known=hide", "other=keep", "known=keep,known=drop"])
def test_wrong_views_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_view(text, "--view")
