"""``curation show --composition``: table, JSON and CSV of a manifest with tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.manifest.manifest import write_manifest
from curation.manifest.tables import compose
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


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--out", "x"], "needs --composition"),
        (["--source", "train=x"], "needs --composition"),
        (["--composition", "--source", "trian=x"], "Unknown source"),
    ],
)
def test_refusals(extra: list[str], message: str, folder: Path, shell: Shell) -> None:
    assert message in shell.err("show", folder, *extra)
