"""Task files: what is read, and what a slip of the pen is told."""

import json
from pathlib import Path

import pytest

from curation.benchmarks.owod.tasks import EXAMPLE, parse_tasks, read_task_file, read_task_settings
from curation.benchmarks.rules.tasks import split_of_file
from curation.core.errors import ProtocolError

FULL = """
name = "mylab/shapes"
title = "Shapes"
dataset = "shapes"
unknown = ["blob"]
ignored = ["smudge"]
exhaustive = true
[[tasks]]
name = "t1"
classes = ["circle", "square"]
[[tasks]]
name = "t2"
classes = ["star"]
[aliases]
circle = ["disc"]
[datasets]
test = "shapes_test"
"""


def write(folder: Path, text: str, name: str = "tasks.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_a_file_may_say(tmp_path: Path) -> None:
    stated = parse_tasks(read_task_file(write(tmp_path, FULL)))
    split = split_of_file(stated)
    assert [(task.name, task.introduced) for task in split.tasks] == [("t1", ("circle", "square")), ("t2", ("star",))]
    assert [(entry.name, entry.role, entry.index, entry.aliases) for entry in split.classes] == [
        ("circle", "known", 0, ("disc",)),
        ("square", "known", 1, ()),
        ("star", "known", 2, ()),
        ("blob", "unknown", -1, ()),
        ("smudge", "ignored", -1, ()),
    ]
    assert (stated.dataset("train"), stated.dataset("test")) == ("shapes", "shapes_test")
    assert all(table.exhaustive for table in stated.sources.values())


def test_json_says_the_same_as_toml(tmp_path: Path) -> None:
    content = {
        "name": "mylab/shapes",
        "dataset": "shapes",
        "tasks": [{"name": "t1", "classes": ["circle", "square"]}, {"name": "t2", "classes": ["star"]}],
    }
    as_json = read_task_file(write(tmp_path, json.dumps(content), "tasks.json"))
    assert as_json == read_task_file(write(tmp_path, EXAMPLE))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('name = "mylab/shapes"', 'name = "My Lab"', "lower-case"),
        ('name = "mylab/shapes"\n', "", "name"),
        ('classes = ["star"]', 'classes = ["circle"]', "circle twice"),
        ('classes = ["star"]', 'classes = ["Circle"]', "circle twice"),
        ('classes = ["star"]', "classes = []", "at least one class"),
        ('classes = ["star"]', 'classes = "star"', "array"),
        ('classes = ["star"]', 'classes = ["unknown"]', "none of them 'unknown'"),
        ('classes = ["star"]', 'classes = [""]', "1 to 200 characters"),
        ('classes = ["star"]', 'clases = ["star"]', "clases"),
        ('name = "t2"', 'name = "t1"', "t1 twice"),
        ('name = "t2"', 'name = "../t2"', "../t2"),
        ('name = "t2"', f'name = "{"t" * 60}"', "up to 55"),
        ('classes = ["star"]', 'classes = [" star"]', "without outer blanks"),
        ('name = "mylab/shapes"', 'name = "mylab/shapes"\nvalidation = -1', ">= 0"),
        ('name = "mylab/shapes"', 'name = "mylab/shapes"\nexemplars = "many"', "int"),
        ('dataset = "shapes"', 'dataset = "Shapes!"', "Shapes!"),
        ('dataset = "shapes"', 'dataset = "shapes"\naliases = { round = ["disc"] }', "round"),
        ('dataset = "shapes"', 'dataset = "shapes"\naliases = { circle = ["star"] }', "star twice"),
        ('dataset = "shapes"', 'dataset = "shapes"\ndatasets = { val = "x" }', "val"),
        ('dataset = "shapes"', 'dataset = "shapes"\ndataset = "again"', "overwrite"),
        ("[[tasks]]", "[[tasks]", "tasks"),
    ],
)
def test_slips(tmp_path: Path, before: str, after: str, told: str) -> None:
    assert before in EXAMPLE
    with pytest.raises(ProtocolError) as caught:
        read_task_file(write(tmp_path, EXAMPLE.replace(before, after)))
    assert told in str(caught.value)
    assert "tasks.toml" in str(caught.value)


def test_sizes_in_the_file_are_settings(tmp_path: Path) -> None:
    def settings(lines: str) -> dict[str, str]:
        found = read_task_settings(write(tmp_path, lines + EXAMPLE))
        assert found.pop("split") == "custom"
        assert parse_tasks(found.pop("tasks")).name == "mylab/shapes"
        return found

    assert settings("") == {}
    assert settings("validation = 20\nexemplars = 7\n") == {"val_size": "20", "exemplars": "7"}
    assert settings("validation = 0\nexemplars = 0\n") == {"val": "none", "exemplars": "0"}
