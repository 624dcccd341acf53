from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import PredictionError
from curation.evaluation.class_scores import (
    labels_of_names,
    part_samples,
    protocol_classes,
    require_same_labels,
    rows_of_part,
)
from tests.evaluation.open_set_manifests import LISTS, TEST_LABELS, VAL_LABELS, WNIDS, open_set_manifest, write_truth

NAMES = [one.partition(":")[2] for one in LISTS["test"]]


def test_classes_of_a_manifest() -> None:
    classes = protocol_classes(open_set_manifest())
    assert classes.known == WNIDS[:2]
    assert list(classes.labels.values()) == [0, 1, -1, -2]
    assert labels_of_names([WNIDS[3], WNIDS[1]], classes, "x").tolist() == [-2, 1]
    with pytest.raises(PredictionError):
        labels_of_names(["n00000009"], classes, "x")


def test_training_names_tell_their_class_and_validation_names_do_not(tmp_path: Path) -> None:
    told = part_samples(open_set_manifest(), "val")
    assert told.labels is not None
    assert told.labels.tolist() == list(VAL_LABELS)
    assert part_samples(open_set_manifest(), "test").labels is None
    by_truth = part_samples(open_set_manifest(), "test", write_truth(tmp_path))
    assert by_truth.labels is not None
    assert by_truth.labels.tolist() == list(TEST_LABELS)


def test_rows_are_found_by_name_in_any_order() -> None:
    part = part_samples(open_set_manifest(), "test")
    shuffled = [f"val/x/{NAMES[k]}.JPEG" for k in (5, 0, 3, 1, 4, 2)]
    rows, strangers = rows_of_part(shuffled, 6, part, "x")
    assert [shuffled[row][6:-5] for row in rows] == NAMES
    assert strangers == 0
    rows, strangers = rows_of_part(["other", *shuffled], 7, part, "x", "drop")
    assert strangers == 1
    assert rows.tolist() == [2, 4, 6, 3, 5, 1]


def test_labels_must_be_those_of_the_part(tmp_path: Path) -> None:
    part = part_samples(open_set_manifest(), "test", write_truth(tmp_path))
    assert part.labels is not None
    require_same_labels(np.array(TEST_LABELS, float), part.labels, part.images, "x", 2)
    # A classifier with a background class may number negatives K.
    require_same_labels(np.where(np.array(TEST_LABELS) == -1, 2, TEST_LABELS), part.labels, part.images, "x", 2)
    with pytest.raises(PredictionError) as caught:
        require_same_labels(np.array([0, 0, 1, -1, -1, -2]), part.labels, part.images, "x", 2)
    assert str(caught.value.where) == "x: image ILSVRC2012_val_00000004"
    assert "in the order of the list" in str(caught.value.hint)
    with pytest.raises(PredictionError) as caught:
        require_same_labels(np.array(TEST_LABELS) + 1, part.labels, part.images, "x")
    assert "numbers the classes differently" in str(caught.value.hint)
