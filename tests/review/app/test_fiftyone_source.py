"""A real FiftyOne dataset as a source: ids, classes and boxes are those of the file that it was loaded from."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.core.errors import CurationError, UsageError
from curation.sources.fiftyone_view import in_pixels

pytestmark = pytest.mark.mongo
IMAGES = [(7, "b.jpg", 640, 427), (3, "a.jpg", 100, 80), (12, "c.jpg", 333, 500)]
BOXES = [(7, 17, [236.98, 142.51, 24.7, 69.5], 0), (7, 5, [0.1, 0.7, 639.9, 3.33], 1), (12, 17, [1, 2, 3, 4], 0)]


def shapes() -> dict[str, Any]:
    return {
        "images": [dict(zip(("id", "file_name", "width", "height"), one, strict=True)) for one in IMAGES],
        "annotations": [
            {"id": 50 + k, "image_id": image, "category_id": kind, "bbox": box, "area": 7.5 + k, "iscrowd": crowd}
            for k, (image, kind, box, crowd) in enumerate(BOXES)
        ],
        "categories": [{"id": 17, "name": "owl", "supercategory": "bird"}, {"id": 5, "name": "cup"},
                       {"id": 9, "name": "absent"}],
    }  # fmt: skip


@pytest.fixture(scope="module")
def dataset(fiftyone: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What FiftyOne's own importer makes of a COCO file; a test that changes it changes a clone."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("source")
    (folder / "photos").mkdir()
    for _, name, width, height in IMAGES:
        Image.new("RGB", (width, height)).save(folder / "photos" / name)
    (folder / "shapes.json").write_text(json.dumps(shapes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = load(fiftyone, folder / "photos", folder / "shapes.json", folder.name)
    yield made
    fiftyone.delete_dataset(made.name)


def load(fiftyone: Any, photos: Path, labels: Path, name: str) -> Any:
    return fiftyone.Dataset.from_dir(
        dataset_type=fiftyone.types.COCODetectionDataset,
        data_path=str(photos),
        labels_path=str(labels),
        include_id=True,
        label_field="ground_truth",
        label_types="detections",
        name=name,
    )


def boxes_of(source: curation.Source) -> list[tuple[Any, ...]]:
    objects = source.require_objects("A test")
    names = np.array(source.categories.names, object)[objects.category]
    columns = (source.image_ids[objects.image].tolist(), names.tolist(), objects.crowd.tolist(), objects.boxes.tolist())
    return sorted((image, name, crowd, *box) for image, name, crowd, box in zip(*columns, strict=True))


def test_ids_classes_and_boxes_are_those_of_the_file(dataset: Any) -> None:
    file, found = curation.open_source("shapes", shapes()), curation.open_source("shapes", dataset)
    assert sorted(found.image_ids.tolist()) == sorted(file.image_ids.tolist()) == ["shapes:12", "shapes:3", "shapes:7"]
    assert found.images.numbers.tolist() == [3, 7, 12]
    assert (found.categories.names, found.categories.numbers) == (file.categories.names, file.categories.numbers)
    assert boxes_of(found) == boxes_of(file)


def test_a_dataset_and_a_saved_view_go_by_name(dataset: Any, tmp_path: Path, capsys: Any) -> None:
    dataset = dataset.clone(persistent=True)
    dataset.save_view("two of them", dataset.limit(2))
    by_name = curation.open_source("shapes", f"fiftyone:{dataset.name}")
    assert by_name.files == curation.open_source("shapes", dataset).files
    assert len(curation.open_source("shapes", f"fiftyone:{dataset.name}#two of them").images) == 2
    with pytest.raises(UsageError, match="no such dataset"):
        curation.open_source("shapes", "fiftyone:nothing")
    with pytest.raises(UsageError, match="no such saved view") as caught:
        curation.open_source("shapes", f"fiftyone:{dataset.name}#three of them")
    assert caught.value.expected == "two of them"
    out = tmp_path / "tasks.toml"
    words = ["init", "tasks", "--name", "my/shapes", "--n-tasks", "2", "--out", str(out)]
    words += ["--source", f"train=fiftyone:{dataset.name}"]
    # One dataset does not train and test.
    assert main([*words, "--source", f"test=fiftyone:{dataset.name}"]) == 2
    assert "3 images are in train and in test" in capsys.readouterr().err
    assert not out.exists()
    assert main(words) == 0
    assert '"owl"' in out.read_text()


def test_what_cannot_be_carried_is_an_error(dataset: Any, fiftyone: Any) -> None:
    for change, message in (
        (lambda one: one.clear_sample_field("metadata"), "does not state the size of its photo"),
        (lambda one: one.set_values("ground_truth_coco_id", [1, None, 2]), "A sample has no id"),
        (lambda one: one.set_values("ground_truth_coco_id", [1, 1, 2]), "twice|repeat|unique|same|more than once"),
        (lambda one: one.info.update(categories=[{"id": 1, "name": "owl"}]), "does not number"),
        (lambda one: one.delete_sample_field("ground_truth_detections"), "The field of the boxes is ambiguous"),
    ):
        changed = dataset.clone()
        change(changed)
        with pytest.raises(CurationError, match=message):
            curation.open_source("shapes", changed)
    with pytest.raises(UsageError, match="no such field of boxes") as caught:
        curation.open_source("shapes", dataset, label_field="metadata")
    assert caught.value.expected == "label_field=ground_truth_detections"
    with pytest.raises(UsageError, match="no such field"):
        curation.open_source("shapes", dataset, id_field="coco")
    with pytest.raises(UsageError, match="are for FiftyOne"):
        curation.open_source("shapes", shapes(), id_field="coco")
    videos = fiftyone.Dataset()
    videos.add_sample(fiftyone.Sample(filepath="a.mp4"))
    with pytest.raises(UsageError, match="The samples are not images"):
        curation.open_source("shapes", videos)


def test_boxes_come_back_as_the_decimals_that_they_were() -> None:
    rng = np.random.default_rng(5)
    sizes = np.repeat(rng.integers(1, 5000, (4000, 2)), 2, axis=0)[:4000].astype(float)
    sizes = np.concatenate([sizes, sizes], axis=1)
    for places in (0, 2, 6):
        boxes = np.round(rng.random((4000, 4)) * sizes, places)
        assert np.array_equal(in_pixels(boxes / sizes, sizes), boxes)


def test_predictions_of_a_view_are_scored_as_their_file(dataset: Any, fiftyone: Any, tmp_path: Path) -> None:
    names = {17: "owl", 5: "cup"}
    results = [
        {"image_id": image, "category_id": kind, "bbox": box, "score": 0.25 * (k + 1)}
        for k, (image, kind, box, _) in enumerate(BOXES)
    ]
    held = dataset.clone()
    for sample in held.iter_samples(autosave=True):
        size = [sample.metadata.width, sample.metadata.height] * 2
        sample["predictions"] = fiftyone.Detections(
            detections=[
                fiftyone.Detection(
                    label=names[one["category_id"]],
                    bounding_box=[a / b for a, b in zip(one["bbox"], size, strict=True)],
                    confidence=one["score"],
                )
                for one in results
                if one["image_id"] == sample["ground_truth_coco_id"]
            ]
        )
    expected = curation.evaluate.voc(truth=curation.open_source("shapes", shapes()), detections=results)
    truth = curation.open_source("shapes", held, label_field="ground_truth_detections")
    found = curation.evaluate.voc(truth=truth, detections=held)
    assert found.numbers() == expected.numbers()
    held.delete_sample_field("predictions")
    with pytest.raises(UsageError, match="no such field of boxes"):
        curation.evaluate.voc(truth=truth, detections=held)


def test_a_sample_and_a_deleted_dataset_are_one_error(dataset: Any, fiftyone: Any) -> None:
    gone = dataset.clone()
    view, sample = gone.limit(1), dataset.first()
    gone.delete()
    rows = [{"image_id": 12, "category": "owl", "bbox": [1, 2, 3, 4], "score": 0.5}]
    for given in (gone, view, sample, [sample]):
        for inputs in ({"truth": given, "detections": rows}, {"truth": shapes(), "detections": given}):
            with pytest.raises(UsageError, match=r"deleted|iterated|Unsupported|neither rows nor a source"):
                curation.evaluate.voc(**inputs)
        with pytest.raises(UsageError, match=r"deleted|iterated|Unsupported|neither rows nor a source"):
            curation.open_source("shapes", given)
    with pytest.raises(UsageError, match="deleted"):
        curation.evaluate.voc(truth=shapes(), detections={"test": gone})
