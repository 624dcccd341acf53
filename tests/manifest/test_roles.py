"""The role of a class follows from the part's task; without tasks everything stays as it was."""

from collections.abc import Callable

import msgspec
import pytest

from curation.manifest.header import ClassEntry, LabelView, TaskEntry, classes_in, header_as_data
from curation.manifest.manifest import Manifest
from curation.manifest.views import view_objects
from curation.sources.source import Source

Make = Callable[..., Manifest]
NAMES = ("cat", "aeroplane", "cow", "elephant")
TRAIN = LabelView(previous="drop", unknown="drop")
FINETUNE = LabelView(unknown="drop")


@pytest.fixture
def with_tasks(make_manifest: Make) -> Manifest:
    """Three tasks over four classes; ``smudge`` is never introduced."""
    classes = tuple(
        ClassEntry(name=name, role="known", index=index, aliases=("airplane",) if name == "aeroplane" else ())
        for index, name in enumerate(NAMES)
    )
    smudge = ClassEntry(name="smudge", role="ignored", index=4)
    tasks = tuple(
        TaskEntry(name=f"t{number}", introduced=names)
        for number, names in enumerate((("cat", "aeroplane"), ("cow",), ("elephant",)), start=1)
    )
    lists = dict.fromkeys(("t1-test", "t2-test", "t2-train", "t2-finetune"), ("toy:1", "toy:2", "toy:4"))
    base = make_manifest(lists, classes=(*classes, smudge), tasks=tasks)
    views = {"t2-train": TRAIN, "t2-finetune": FINETUNE}
    parts = tuple(
        msgspec.structs.replace(part, task=part.name[:2], view=views.get(part.name, LabelView()))
        for part in base.header.parts
    )
    return Manifest(header=msgspec.structs.replace(base.header, parts=parts), lists=lists)


def test_roles_by_task(with_tasks: Manifest) -> None:
    roles = {
        name: [entry.role for entry in classes_in(with_tasks.header, with_tasks.part(name))]
        for name in ("t1-test", "t2-test")
    }
    assert roles["t1-test"] == ["known", "known", "unknown", "unknown", "ignored"]
    assert roles["t2-test"] == ["previous", "previous", "known", "unknown", "ignored"]


def test_views_speak_of_the_task(with_tasks: Manifest, source: Source) -> None:
    """Objects: image 1 cat, difficult aeroplane, cow; image 2 elephant and a crowd of elephants; image 4 smudge."""
    counts = {
        name: view_objects(with_tasks, name, {"toy": source}).counts()
        for name in ("t1-test", "t2-test", "t2-train", "t2-finetune")
    }
    assert counts["t1-test"] == {"known": 2, "unknown": 3, "ignored": 1, "difficult": 1, "crowd": 1}
    assert counts["t2-test"] == {"known": 1, "unknown": 2, "ignored": 1, "previous": 2, "difficult": 1, "crowd": 1}
    assert counts["t2-train"] == {"known": 1, "ignored": 1, "difficult": 0, "crowd": 0}
    assert counts["t2-finetune"] == {"known": 1, "ignored": 1, "previous": 2, "difficult": 1, "crowd": 0}


def test_later_fields_are_left_out_at_their_default(manifest: Manifest, with_tasks: Manifest) -> None:
    later = {"tasks", "exhaustive", "task", "repeats", "previous"}
    data = header_as_data(manifest.header)
    records = [data, *data["sources"], *data["parts"], *(part["view"] for part in data["parts"])]
    assert not any(later & set(record) for record in records)
    data = header_as_data(with_tasks.header)
    assert len(data["tasks"]) == 3
    assert data["parts"][2]["view"]["previous"] == "drop"
