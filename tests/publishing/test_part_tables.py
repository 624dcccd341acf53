"""Parts as tables: the rows are the lines of the list, the columns are the same whatever is known."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from curation.core.canonical import sha256_of_lines
from curation.manifest.header import ClassEntry, TaskEntry
from curation.manifest.manifest import Manifest
from curation.publishing.formats.coco import plan_coco
from curation.publishing.tables import part_schema, published_table
from curation.review.decisions.decision import Decision
from curation.sources.source import Source
from tests.publishing.published_world import CLOSED, WILDERNESS, tiny
from tests.publishing.tiny_sources import make_manifest


def rows(manifest: Manifest, part: str, *given: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = published_table(manifest, part, *given).to_pylist()
    return found


def test_every_part_has_the_same_columns_and_types() -> None:
    manifest, sources = tiny()
    evidence: list[Decision] = []
    tables = [
        published_table(manifest, "closed"),
        published_table(manifest, "closed", sources),
        published_table(manifest, "wilderness", sources, evidence),
    ]
    assert all(table.schema.equals(part_schema(), check_metadata=True) for table in tables)


def test_boxes_stand_under_the_label_view() -> None:
    manifest, sources = tiny()
    first, second = rows(manifest, "closed", sources)
    assert (first["file_name"], first["width"], first["height"]) == ("000009.jpg", 50, 40)
    assert first["roles"] == ["known"]
    assert first["objects"] == [
        {
            "category": "cat",
            "category_id": 1,
            "role": "known",
            "ignore": False,
            "bbox": [0.0, 0.0, 50.0, 40.0],
            "area": 2000.0,
            "crowd": False,
            "difficult": False,
        }
    ]
    assert [(one["category"], one["ignore"], one["difficult"]) for one in second["objects"]] == [
        ("dog", False, False),
        ("cat", True, True),
    ]
    empty, full = rows(manifest, "wilderness", sources)
    assert (empty["objects"], empty["roles"], empty["file_name"], empty["width"]) == ([], [], None, None)
    assert [(one["category"], one["category_id"], one["role"]) for one in full["objects"]] == [
        ("unknown", -1, "unknown")
    ] * 2
    # To the last bit, as the source has it.
    assert full["objects"][0]["bbox"] == [0.1, 1 / 3, 10.25, 1e-3]
    assert full["objects"][0]["area"] == 7.7


def test_objects_are_those_of_the_coco_export() -> None:
    manifest, sources = tiny()
    for part in ("closed", "wilderness"):
        (file,) = plan_coco(manifest, [part], sources).files
        data = json.loads(b"".join(file.chunks()))
        exported = [(one["category_id"], one["bbox"], one["area"]) for one in data["annotations"]]
        ours = [
            (one["category_id"], one["bbox"], one["area"])
            for row in rows(manifest, part, sources)
            for one in row["objects"]
        ]
        assert ours == exported


def test_a_line_that_names_an_image_again_is_a_row_with_all_its_boxes() -> None:
    manifest, sources = tiny()
    ids = (CLOSED[1], CLOSED[0], CLOSED[1])
    (closed, wilderness) = manifest.header.parts
    closed = msgspec.structs.replace(closed, order="listed", images=3, repeats=1, sha256=sha256_of_lines(ids))
    header = msgspec.structs.replace(manifest.header, parts=(closed, wilderness))
    found = rows(Manifest(header, {**manifest.lists, "closed": ids}), "closed", sources)
    assert [row["image_id"] for row in found] == list(ids)
    assert found[0] == found[2]
    assert len(found[0]["objects"]) == 2


def test_with_tasks_no_class_of_a_later_task_is_named() -> None:
    _, sources = tiny()
    manifest = make_manifest({"closed": ("voc", CLOSED)}, sources)
    header = msgspec.structs.replace(
        manifest.header,
        classes=(
            ClassEntry(name="cat", role="known", index=0),
            ClassEntry(name="dog", role="known", index=1),
            ClassEntry(name="elephant", role="ignored", index=-1),
        ),
        tasks=(TaskEntry(name="t1", introduced=("cat",)), TaskEntry(name="t2", introduced=("dog",))),
        parts=tuple(msgspec.structs.replace(part, task="t1") for part in manifest.header.parts),
    )
    found = rows(Manifest(header, manifest.lists), "closed", sources)
    told = [(one["category"], one["category_id"], one["role"]) for row in found for one in row["objects"]]
    assert told == [("cat", 0, "known"), ("unknown", 3, "unknown"), ("cat", 0, "known")]
    assert "dog" not in str(found)


def test_a_source_without_boxes_gives_labels() -> None:
    import numpy as np

    manifest, sources = tiny()
    voc = sources["voc"]
    pairs = np.array([[0, 0], [1, 0], [1, 1]], np.int32)
    fields = {name: getattr(voc, name) for name in voc.__dataclass_fields__}
    without = Source(**{**fields, "objects": None, "presence": pairs})
    first, second = rows(manifest, "closed", {**sources, "voc": without})
    assert first["objects"] is None
    assert first["labels"] == [{"category": "cat", "category_id": 1, "role": "known", "ignore": False}]
    assert [one["category"] for one in second["labels"]] == ["cat", "dog"]


def decision(image: str, dataset: str, **fields: str) -> Decision:
    return Decision(image_id=image, dataset=dataset, stage="manual", action="keep", **fields)


def test_decisions_stand_on_the_rows_that_they_speak_of() -> None:
    manifest = tiny()[0]
    evidence = [
        decision(WILDERNESS[0], "wilderness", reviewer="anna", reason="clear"),
        decision(WILDERNESS[0], "closed", reviewer="ben"),
        decision(WILDERNESS[1], "coco", reviewer="cleo"),
    ]
    first, second = rows(manifest, "wilderness", None, evidence)
    assert first["decisions"] == [
        {"stage": "manual", "action": "keep", "reason": "clear", "reviewer": "anna", "date": "", "batch": ""}
    ]
    assert [one["reviewer"] for one in second["decisions"]] == ["cleo"]
