from pathlib import Path

import pytest

from curation.evaluation.problem import classes_of_source
from curation.evaluation.readers import Policy, read_detections
from curation.evaluation.truth import Part, ground_truth
from curation.extensions.detection_ap.voc import voc_average_precision
from curation.sources.coco import read_coco
from tests.evaluation.worlds import detections_of, truth_of
from tests.real_files import provided, real_files
from tests.worlds.boxes import Guess, Thing

BOX = (0, 0, 10, 10)


@provided
def voc2007(shared: Path) -> Part:
    source = read_coco(shared / "data" / "voc2007" / "test_with_difficult.json")
    return ground_truth(source, classes_of_source(source))


@real_files("voc2007")
@pytest.mark.parametrize(("detector", "eleven", "area"), [("a", 72.14, 74.52), ("b", 75.21, 78.03)])
def check_the_stated_scores_of_real_detectors(
    shared: Path, voc2007: Part, detector: str, eleven: float, area: float
) -> None:
    folder = shared / "data" / "voc2007" / "detections" / detector
    read = read_detections(folder, voc2007.truth)
    found = voc_average_precision(voc2007.truth, read.detections)
    assert 100 * found["mAP11"] == pytest.approx(eleven, abs=0.02)
    assert 100 * found["mAP_area"] == pytest.approx(area, abs=0.02)
    assert sum(found["npos"].values()) == 12032


@real_files("voc2007")
def check_stray_files_and_broken_boxes_of_a_real_detector_are_reported(shared: Path, voc2007: Part) -> None:
    folder = shared / "data" / "voc2007" / "detections" / "d"
    read = read_detections(folder, voc2007.truth, Policy(stray="drop", other_classes="drop", negative_sizes="empty"))
    # comp4_det_test_C0.txt and C1.txt: 46856 and 41112 lines of no class, on images that no list holds.
    assert next(iter(read.reported.values())) == 46856 + 41112
    assert len(read.reported) == 2
    assert len(read.detections) + 46856 + 41112 == read.rows


def test_a_class_without_objects_is_null_and_listed() -> None:
    found = voc_average_precision(truth_of([Thing(0, 0, BOX)], 1, 2), detections_of([Guess(0, 0, BOX, 900)]))
    assert found["AP11"] == {"a": 1.0, "b": None}
    assert found["mAP_area"] == 1.0
    assert found["npos"] == {"a": 1, "b": 0}
