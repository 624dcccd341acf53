"""Outcomes as fields of a real FiftyOne dataset: the sums over samples and over detections are the result's numbers."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.core.errors import UsageError
from curation.evaluation.result import Result
from tests.evaluation.open_world_rows import of_result
from tests.worlds import owod

pytestmark = pytest.mark.mongo
FALSE = ("open-set error", "false positive", "background")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    paths = owod.files(tmp_path_factory.mktemp("open-world"), *owod.drawn())
    keys = ("truth", "detections", "classes")
    return curation.evaluate.owod(**{key: paths[key] for key in keys}, task="t2", variant=owod.PROFILES)


@pytest.fixture
def make(fiftyone: Any, tmp_path: Path) -> Iterator[Any]:
    """Make a dataset of samples with the ids of a result's images."""
    made = []

    def of(result: Result, scored: str | None = None, *, field: str = "coco_id") -> Any:
        ids = [one.partition(":")[2] for part in result.outcomes(scored) for one in part.truth.image_ids]
        dataset = fiftyone.Dataset(f"results-{tmp_path.name}")
        made.append(dataset.name)
        dataset.add_samples(
            fiftyone.Sample(
                filepath=f"/photos/{one}.jpg",
                metadata=fiftyone.ImageMetadata(width=640, height=480),
                **{field: int(one) if field == "coco_id" else one},
            )
            for one in reversed(ids)
        )
        dataset.save_view("my view", dataset.limit(3))
        return dataset

    yield of
    for name in made:
        fiftyone.delete_dataset(name)


def outcomes_of(dataset: Any, key: str) -> list[Any]:
    return list(chain.from_iterable(one or [] for one in dataset.values(f"{key}.detections")))


@pytest.mark.parametrize("variant", owod.PROFILES)
def test_sums_over_fields_are_the_open_world_numbers(make: Any, result: Result, variant: str) -> None:
    dataset = make(result, f"t2/{variant}")
    section, key = of_result(result.json_data())[f"t2/{variant}"], f"owod_t2_{variant}"
    written = result.to_fiftyone(dataset, f"t2/{variant}")
    totals = {name: dataset.sum(f"{key}_{name}") for name in written}
    assert written == totals
    rows = section["classes"]
    assert totals["AOSE"] == section["AOSE"] > 0
    assert totals["true_positives"] == sum(row["tp"] for row in rows)
    assert totals["false_positives"] == sum(row["fp"] for row in rows)
    assert totals["ignored"] == sum(row["ignored"] for row in rows)
    assert totals["unknown_found"] == section["TP_u"]
    assert totals["unknown_called_known"] + totals["unknown_missed"] == section["FN_u"]
    # And over the detections themselves.
    detections = outcomes_of(dataset, key)
    became = Counter(one.outcome for one in detections)
    assert len(detections) == section["counts"]["detections"]
    assert sum(one.on_unknown for one in detections) == section["AOSE"]
    assert became["true positive"] == totals["true_positives"]
    assert sum(became[kind] for kind in FALSE) == totals["false_positives"]
    for row in rows:
        assert sum(one.outcome == "true positive" and one.label == row["class"] for one in detections) == row["tp"]


def test_twice_is_once_and_the_users_own_stays(make: Any, result: Result) -> None:
    dataset = make(result, "t2/clean")

    def state() -> Any:
        rows = dataset.sort_by("coco_id").values(["coco_id", "k.detections.outcome", "k_AOSE"])
        return rows, sorted(dataset.get_field_schema()), dataset.list_saved_views(), dict(dataset.info)

    result.to_fiftyone(dataset, "t2/clean", key="k")
    before = state()
    result.to_fiftyone(dataset, "t2/clean", key="k")
    assert state() == before
    result.to_fiftyone(dataset, "t2/ore", key="k")
    assert state() != before
    assert dataset.info["curation_results"]["k"]["protocol"] == "owod"
    with pytest.raises(UsageError, match="a field of this name that curation did not write"):
        result.to_fiftyone(dataset, "t2/clean", key="coco_id")
    with pytest.raises(UsageError, match="Invalid name of a field"):
        result.to_fiftyone(dataset, "t2/clean", key="k.b")
    dataset.save_view("j: open-set errors", dataset.limit(2))
    with pytest.raises(UsageError, match="a saved view of this name"):
        result.to_fiftyone(dataset, "t2/clean", key="j")
    assert not [name for name in dataset.get_field_schema() if name.startswith("j")]
    assert {"my view", "j: open-set errors"} <= set(dataset.list_saved_views())


def test_images_that_the_dataset_lacks_are_named_or_left_out(make: Any, result: Result) -> None:
    dataset = make(result, "t2/clean")
    dataset.delete_samples(dataset.match({"coco_id": 7}))
    with pytest.raises(UsageError, match="lacks scored images") as caught:
        result.to_fiftyone(dataset, "t2/clean", key="k")
    assert caught.value.found == "without 1 images: coco:000000000007"
    assert "k" not in dataset.get_field_schema()
    written = result.to_fiftyone(dataset, "t2/clean", key="k", missing="skip")
    (one,) = result.outcomes("t2/clean")
    there = one.frame()["image_id"] != "coco:000000000007"
    assert written["AOSE"] == int(one.frame()["on_unknown"][there].sum())
    dataset.clear_sample_field("metadata")
    with pytest.raises(UsageError, match="no width and height"):
        result.to_fiftyone(dataset, "t2/clean", key="m", missing="skip")
