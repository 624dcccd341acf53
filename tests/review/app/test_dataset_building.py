from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.review.app.dataset import BOX_COLOURS, BOX_FIELDS, EMBEDDING_KEY, FIELDS, VERDICT_COLOURS, build_dataset
from curation.signals.similarity.embeddings import Embeddings
from tests.review.app.review_world import HEIGHT, WIDTH, ReviewWorld, coco_id, write_world

# FiftyOne's own use of its packages is not ours to mend.
pytestmark = [pytest.mark.mongo, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
FIELD_NAMES = [field.name for field in FIELDS]
VOLATILE = ("_id", "_rand", "_dataset_id", "created_at", "last_modified_at")


@pytest.fixture
def name(tmp_path: Path, fiftyone: Any) -> Any:
    yield tmp_path.name
    for one in fiftyone.list_datasets():
        if one.startswith(tmp_path.name):
            fiftyone.delete_dataset(one)


@pytest.fixture(scope="module")
def built(fiftyone: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A dataset of the twelve photos, which tests only look at."""
    folder = tmp_path_factory.mktemp("built")
    yield build_dataset(fiftyone, folder.name, write_world(folder).images(), {})
    fiftyone.delete_dataset(folder.name)


def stored(dataset: Any) -> list[dict[str, Any]]:
    rows = []
    for row in dataset._sample_collection.find().sort("_id"):
        for name in BOX_FIELDS:
            for box in row[name]["detections"]:
                del box["_id"]
        rows.append({key: value for key, value in row.items() if key not in VOLATILE})
    return rows


def present(row: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a sample; a field that is null is one that is not stored."""
    return {key: value for key, value in row.items() if value is not None}


def test_written_in_bulk_is_what_fiftyone_itself_stores(fiftyone: Any, world: ReviewWorld, name: str) -> None:
    images = world.images()
    ours = build_dataset(fiftyone, name, images, {})
    theirs = build_dataset(fiftyone, name + "-slow", images, {})
    samples = [
        fiftyone.Sample(
            metadata=fiftyone.ImageMetadata(width=WIDTH, height=HEIGHT),
            **{field: sample[field] for field in ("filepath", *FIELD_NAMES)},
            **{
                field: fiftyone.Detections(
                    detections=[
                        fiftyone.Detection(label=box.label, bounding_box=box.bounding_box)
                        for box in sample[field].detections
                    ]
                )
                for field in BOX_FIELDS
            },
        )
        for sample in ours
    ]
    theirs.clear()
    theirs.add_samples(samples, expand_schema=False)
    assert [present(row) for row in stored(ours)] == [present(row) for row in stored(theirs)]
    assert all("_rand" in row for row in ours._sample_collection.find())
    # Objects of FiftyOne come back whole, and may be saved.
    sample = ours.first()
    sample["batch"] = "0009"
    sample.save()
    assert ours.match({"batch": "0009"}).values("image_id") == [coco_id(12)]


def test_boxes_are_relative_and_carry_their_class(built: Any) -> None:
    box = built.first().other.detections[0]
    assert box.bounding_box == [12 / WIDTH, 8 / HEIGHT, 48 / WIDTH, 32 / HEIGHT]
    assert box.label == "person"


def test_each_role_has_a_field_of_its_own_and_a_colour(fiftyone: Any, world: ReviewWorld, name: str) -> None:
    images = world.images()
    roles = ("known", "previous", "unknown", "negative", "ignored", *("unknown",) * 7)
    dataset = build_dataset(fiftyone, name, replace(images, boxes=replace(images.boxes, roles=roles)), {})
    counted = [[len(dataset.values(f"{field}.detections")[row]) for field in BOX_FIELDS] for row in range(6)]
    assert counted == [[1, 0, 0]] * 2 + [[0, 1, 0]] + [[0, 0, 1]] * 2 + [[0, 1, 0]]
    scheme = dataset.app_config.color_scheme
    colours = {one["path"]: {row["value"]: row["color"] for row in one["valueColors"]} for one in scheme.fields}
    assert scheme.color_by == "value"
    assert colours["verdict"] == VERDICT_COLOURS
    assert colours["proposal"]["near?"] == VERDICT_COLOURS["near"]
    labels = {field: set(dataset.distinct(f"{field}.detections.label")) for field in BOX_FIELDS}
    assert {field: {*colours[field]} for field in BOX_FIELDS} == labels
    assert [{*colours[field].values()} for field in BOX_FIELDS] == [{BOX_COLOURS[field]} for field in BOX_FIELDS]
    shown = dataset.app_config.active_fields.paths
    assert shown[:3] == list(BOX_FIELDS)
    assert set(shown) >= {"verdict", "proposal", "classes"}


def test_evidence_is_shown_as_a_proposal(built: Any) -> None:
    sample = built.match({"image_id": coco_id(9)}).first()
    assert (sample.proposal, sample.reason, sample.rank) == ("near?", "near: zebra", 4)
    assert sample.evidence_rows == [
        {
            "kind": "near_kinship",
            "why": "an annotation is of a category near to an ID class by Wu-Palmer similarity",
            "detail": "zebra is near horse",
            "score": "0.92",
            "threshold": "0.82",
            "id_class": "horse",
        }
    ]
    assert sample.id_classes == ["horse"]
    assert built.last().proposal is None


def test_ids_are_indexed_and_views_saved(built: Any) -> None:
    indexed = {"image_id", "batch", "reason", "rank", "evidence_kinds"}
    assert indexed <= set(built.get_index_information())
    assert built.list_saved_views() == ["to decide", "conflicts"]
    assert len(built.load_saved_view("to decide")) == 12


def test_images_are_sorted_by_their_embeddings(fiftyone: Any, world: ReviewWorld, name: str) -> None:
    images = world.images()
    # Image n points n tenths of a radian away from image 12; image 1 has no embedding.
    angles = {coco_id(n): (12 - n) / 10 for n in range(2, 13)}
    vectors = np.array([[np.cos(a), np.sin(a)] for a in angles.values()], np.float32)
    embeddings = Embeddings(tuple(angles), vectors, encoder_identity(), ("",) * len(angles))
    dataset = build_dataset(fiftyone, name, images, {}, embeddings=embeddings)
    query = dataset.match({"image_id": coco_id(12)}).first().id
    view = dataset.sort_by_similarity(query, k=4, brain_key=EMBEDDING_KEY)
    assert view.values("image_id") == [coco_id(n) for n in (12, 11, 10, 9)]


def encoder_identity() -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(digest="sha256:" + "0" * 64)
