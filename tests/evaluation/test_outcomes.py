"""Single outcomes are those that the numbers count: kinds and states sum to the result, in every variant."""

from pathlib import Path

import pytest

import curation
from curation.evaluation.outcomes import BACKGROUND, FALSE_POSITIVE, IGNORED, OPEN_SET_ERROR, TRUE_POSITIVE
from curation.evaluation.result import Result
from tests.evaluation import elephant_rows, osod3_rows
from tests.evaluation.open_world_rows import of_result
from tests.worlds import elephant, osod3, owod

FALSE = (OPEN_SET_ERROR, FALSE_POSITIVE, BACKGROUND)


def owod_result(folder: Path) -> Result:
    paths = owod.files(folder, *owod.drawn())
    keys = ("truth", "detections", "classes")
    return curation.evaluate.owod(**{key: paths[key] for key in keys}, task="t2", variant=owod.PROFILES)


@pytest.mark.parametrize("variant", owod.PROFILES)
def test_kinds_and_states_sum_to_the_open_world_numbers(tmp_path: Path, variant: str) -> None:
    result = owod_result(tmp_path)
    section = of_result(result.json_data())[f"t2/{variant}"]
    (one,) = result.outcomes(f"t2/{variant}")
    counts = one.counts()
    assert counts["A-OSE"] == section["AOSE"] > 0
    assert (counts["unknown found"], counts["unknown called known"]) == (section["TP_u"], section["FN_u_star"])
    assert counts["unknown called known"] + counts["unknown missed"] == section["FN_u"]
    frame = one.frame()
    assert len(frame) == section["counts"]["detections"]
    for row in section["classes"]:
        own = frame[frame["class"] == row["class"]]
        assert (own["outcome"] == TRUE_POSITIVE).sum() == row["tp"]
        assert own["outcome"].isin(FALSE).sum() == row["fp"]
        assert (own["outcome"] == IGNORED).sum() == row["ignored"]
        if row["on_unknown"] is not None:
            assert own["on_unknown"].sum() == row["on_unknown"]
    assert 0 < counts[OPEN_SET_ERROR] <= counts["A-OSE"]
    # Each kind occurs, so that none of the sums is one of nothing.
    assert min(counts[kind] for kind in (*FALSE, TRUE_POSITIVE, IGNORED)) > 0


def test_matched_objects_are_of_the_image_and_explain_the_kind(tmp_path: Path) -> None:
    (one,) = owod_result(tmp_path).outcomes("t2/clean")
    for row, kind in enumerate(one.frame()["outcome"]):
        matched = int(one.matched[row])
        if matched < 0:
            assert kind in (BACKGROUND, IGNORED)
            assert kind == IGNORED or one.iou[row] < 0.5
            continue
        assert one.truth.image[matched] == one.detections.image[row]
        assert one.iou[row] >= 0.5 or kind == IGNORED
        assert (kind == TRUE_POSITIVE) <= (one.truth.label[matched] == one.detections.label[row])
        assert (kind == OPEN_SET_ERROR) <= bool(one.unknown[matched])
    found = one.matched[one.kind == 0]
    assert len(set(found.tolist())) == len(found) == (one.state == 0).sum()


@pytest.mark.parametrize("variant", ["clean", "voc"])
def test_kinds_sum_to_a_ose_and_wi_over_thresholds(tmp_path: Path, variant: str) -> None:
    paths = osod3.files(tmp_path)
    result = curation.evaluate.osod3(**paths, variant=("clean", "voc"))
    (one,) = result.outcomes(f"test/{variant}")
    curve = osod3_rows.of_result(result.json_data())["test"]["curves"][variant]
    frame = one.frame()
    known = frame["class"] != "unknown"
    assert any(row["AOSE"] for row in curve)
    for row in curve:
        kept = frame[known & (frame["score"] >= row["theta"])]
        assert (kept["outcome"] == TRUE_POSITIVE).sum() == row["TP"]
        assert kept["outcome"].isin(FALSE).sum() == row["FP"]
        assert (kept["outcome"] == OPEN_SET_ERROR).sum() == row["FP_open"]
        assert kept["on_unknown"].sum() == row["AOSE"]


def test_kinds_sum_to_wilderness_impact_at_every_recall(tmp_path: Path) -> None:
    paths = elephant.files(tmp_path)
    parts = ("closed", "wilderness")
    result = curation.evaluate.elephant(
        truth={part: paths[f"truth_{part}"] for part in parts},
        detections={part: paths[f"detections_{part}"] for part in parts},
    )
    closed, wilderness = result.outcomes()
    assert (closed.part, wilderness.part) == parts
    found = elephant_rows.of_json(result.json_data())
    assert closed.counts()["A-OSE"] + wilderness.counts()["A-OSE"] == result["AOSE@all"] > 0
    section, n_wild = found["paper"], found["paper"]["n_wild_images"][-1]
    for recall, kept in closed.kept_at.items():
        points = section["thresholds"][recall].values()
        inside, outside = closed.frame()[kept], wilderness.frame()[wilderness.kept_at[recall]]
        assert (inside["outcome"] == TRUE_POSITIVE).sum() == sum(one["TP_c"] or 0 for one in points)
        assert inside["outcome"].isin(FALSE).sum() == sum(one["FP_c"] or 0 for one in points)
        on_unknown = inside["on_unknown"].sum() + outside["on_unknown"].sum()
        assert on_unknown == result[f"AOSE@{recall}"]
        at_level = wilderness.detections.image[wilderness.kept_at[recall]] < n_wild
        opened = section["WI"][recall]["fp_open"].values()
        assert at_level.sum() == sum(levels[-1] for levels in opened if levels is not None)
        assert outside["outcome"].isin(FALSE).all()
    assert len(closed.frame()) + len(wilderness.frame()) == sum(
        count for part in parts for count in found["n_detections"][part].values()
    )
