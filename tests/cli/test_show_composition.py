"""``curation show --composition``: table, JSON and CSV of a manifest with tasks."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.composition import compose
from curation.manifest.manifest import write_manifest
from tests.shell import Shell
from tests.task_world import TaskWorld, write_task_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TaskWorld:
    return write_task_world(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def folder(world: TaskWorld) -> Path:
    out = world.train_json.parent / "manifest"
    write_manifest(world.manifest, out)
    return out


def test_the_table_states_the_hidden_unknowns(world: TaskWorld, folder: Path, shell: Shell) -> None:
    lines = shell.out("show", folder, "--composition", *world.arguments()).splitlines()
    heads = lines[1].split()
    assert heads == [
        *("part", "images", "annotated", "known", "previous", "unknown"),
        *("hidden", "previous", "in", "images", "hidden", "unknown", "in", "images", "crowd"),
    ]
    for one in compose(world.manifest, world.sources):
        assert one.hidden is not None
        assert one.hidden_images is not None
        assert one.labelled is not None
        cells = next(line.split() for line in lines if line.split()[:1] == [one.part.name])
        counts = (one.hidden, one.hidden_images)
        expected = [one.images, one.annotated_images]
        expected += [one.labelled.get(role, 0) for role in ("known", "previous", "unknown")]
        expected += [count.get(role, 0) for role in ("previous", "unknown") for count in counts]
        assert [int(cell) for cell in cells[1:]] == [*expected, one.labelled["crowd"]]
    assert all(len(line) <= 130 for line in lines)


def test_json_and_csv(world: TaskWorld, folder: Path, tmp_path: Path, shell: Shell) -> None:
    command = ["show", str(folder), "--composition", *world.arguments(), "--json"]
    table = tmp_path / "classes.csv"
    data = shell.data(*command, "--out", table)
    assert data["digest"] == world.manifest.digest
    assert [Path(name).name for name in data["files"]] == ["classes.csv"]
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(world.manifest.header.parts) * len(world.manifest.header.classes)
    assert all(int(row["objects"]) == int(row["labelled"]) + int(row["hidden"]) for row in rows)
    by_part = {one["part"]: one for one in data["parts"]}
    for name, one in by_part.items():
        own = [row for row in rows if row["part"] == name]
        assert sum(int(row["labelled"]) for row in own if row["role"] == "unknown") == one["labelled_objects"].get(
            "unknown", 0
        )


def test_without_sources_nothing_is_invented(folder: Path, tmp_path: Path, shell: Shell) -> None:
    parts = shell.data("show", folder, "--composition", "--json")["parts"]
    assert {one["hidden_objects"] for one in parts} == {None}
    assert all("--source" in one["missing"] for one in parts)
    assert "Not counted" in shell.out("show", folder, "--composition")
    assert main(["show", str(folder), "--composition", "--out", str(tmp_path / "x.csv")]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--out", "x"], "goes with --composition"),
        (["--source", "train=x"], "goes with --composition"),
        (["--composition", "--source", "trian=x"], "No such source"),
    ],
)
def test_refusals(extra: list[str], message: str, folder: Path, shell: Shell) -> None:
    assert message in shell.err("show", folder, *extra)
