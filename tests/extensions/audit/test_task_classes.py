"""Tasks from the name of a benchmark, a file, a manifest."""

from pathlib import Path

import pytest

from curation.core.errors import UsageError
from curation.extensions.audit.classes import ClassNames, classes_of, known_aliases, read_tasks
from curation.manifest.header import ClassEntry


def test_the_benchmarks_have_eighty_classes_in_four_tasks() -> None:
    for name, sizes in (("reowod", [20, 20, 20, 20]), ("ore", [20] * 4), ("s-owodb", [19, 21, 20, 20])):
        tasks = read_tasks(name)
        assert [len(task.introduced) for task in tasks] == sizes
        assert [len(task.unknown) for task in tasks] == [80 - len(task.known) for task in tasks]
        assert len(classes_of(tasks)) == 80


def test_a_file_lists_introduced_classes(tmp_path: Path) -> None:
    as_json, as_toml = tmp_path / "tasks.json", tmp_path / "tasks.toml"
    as_json.write_text('{"tasks": [{"name": "a", "introduced": ["x"]}, {"classes": ["y", "z"]}]}')
    as_toml.write_text('[[tasks]]\nname = "a"\nintroduced = ["x"]\n[[tasks]]\nclasses = ["y", "z"]\n')
    assert read_tasks(str(as_json)) == read_tasks(str(as_toml))
    first, second = read_tasks(str(as_json))
    assert (first.known, first.unknown, second.name) == (("x",), ("y", "z"), "t2")
    assert second.known == ("x", "y", "z")


def test_a_class_that_no_task_introduces_stays_unknown(tmp_path: Path) -> None:
    path = tmp_path / "tasks.toml"
    path.write_text('name = "my/own"\nunknown = ["u"]\n[[tasks]]\nname = "t1"\nclasses = ["a"]\n')
    [task] = read_tasks(str(path))
    assert (task.known, task.unknown) == (("a",), ("u",))
    assert [entry.name for entry in classes_of((task,))] == ["a", "u"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"tasks": []}',
        '{"tasks": [{"name": "a"}]}',
        '{"tasks": [{"name": "a", "introduced": ["x"], "classes": ["x"]}]}',
        '{"tasks": [{"name": "a", "introduced": ["x"]}, {"name": "a", "introduced": ["y"]}]}',
        '{"tasks": [{"name": "a", "introduced": [1]}]}',
        "[" * 100_000,
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        read_tasks(str(path))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="Unknown tasks"):
        read_tasks("no-such-benchmark")


def test_names_are_compared_after_case_and_aliases() -> None:
    entries = (
        ClassEntry(name="tv", role="known", index=0),
        ClassEntry(name="Bus", role="known", index=1, aliases=("omnibus",)),
    )
    names = ClassNames(entries)
    assert [names.position(text) for text in ("TVmonitor", " tv ", "BUS", "Omnibus", "cat")] == [0, 0, 1, 1, -1]
    assert known_aliases("airplane") == ("aeroplane",)
    assert known_aliases("cat") == ()
