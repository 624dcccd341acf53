"""The figure of a task composition and the table beside it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from curation.errors import EvaluationError
from curation.evaluation.composition_figure import composition_figure
from curation.manifest.composition import compose
from tests.task_world import TaskWorld, write_task_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TaskWorld:
    return write_task_world(tmp_path_factory.mktemp("tasks"))


def test_the_table_holds_what_the_figure_shows(world: TaskWorld, tmp_path: Path) -> None:
    compositions = compose(world.manifest, world.sources)
    png, svg, table = composition_figure(compositions, "hand/tasks $1", tmp_path / "tasks")
    assert (png.suffix, svg.suffix) == (".png", ".svg")
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    found = {(row["split"], row["quantity"], row["role"]): row for row in rows}
    assert len(found) == len(rows)
    for one in compositions:
        assert one.hidden is not None
        assert one.hidden_images is not None
        assert found[one.part.name, "images", ""]["count"] == str(one.images)
        for role, count in one.hidden.items():
            row = found[one.part.name, "hidden objects", role]
            assert row["count"] == str(count)
            assert row["images"] == (str(one.hidden_images[role]) if role in one.hidden_images else "")
        for role, count in one.classes.items():
            assert found[one.part.name, "classes", role]["count"] == str(count)


def test_the_same_bytes_each_time(world: TaskWorld, tmp_path: Path) -> None:
    compositions = compose(world.manifest, {"val": world.sources["val"]})
    first, again = (composition_figure(compositions, "t", tmp_path / run / "tasks") for run in ("one", "two"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_what_no_source_was_at_hand_for_has_no_count(world: TaskWorld, tmp_path: Path) -> None:
    table = composition_figure(compose(world.manifest, {}), "t", tmp_path / "tasks")[-1]
    with table.open(encoding="utf-8") as stream:
        assert {row["quantity"] for row in csv.DictReader(stream)} == {"images", "classes"}


def test_parts_without_tasks_are_not_drawn(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="needs parts with a task"):
        composition_figure((), "t", tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
