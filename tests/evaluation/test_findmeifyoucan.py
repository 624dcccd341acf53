from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.findmeifyoucan.detections import IdScores, OodDetections, ReadOodDetections
from curation.benchmarks.findmeifyoucan.evaluation import OPTIONS, OodOptions, check_apart, evaluate_split
from curation.core.errors import EvaluationError
from curation.evaluation.measures import Measured
from curation.evaluation.problem import Floats
from tests.evaluation.ood_reference import EXAMPLE, EXPECTED, OodWorld
from tests.evaluation.ood_worlds import columns


def ids(values: Floats | None = None, name: str = "s", images: tuple[str, ...] | None = None) -> IdScores:
    scores = np.array(EXAMPLE.ids) if values is None else values
    return IdScores({name: scores}, images, "id.json", "sha256:1", {})


def read(detections: OodDetections, images: frozenset[str] = frozenset({"1"})) -> ReadOodDetections:
    return ReadOodDetections(detections, "d.json", "sha256:2", len(detections), {}, images, None)


def values(measured: Measured) -> dict[str, Any]:
    """Return every number of a variant by its name, its details too."""
    details = dict(zip(*measured.tables["details"].values(), strict=True))
    return details | {one.measure: one.value for one in measured.values}


def evaluated(
    world: OodWorld, scores: IdScores | None = None, options: OodOptions = OPTIONS
) -> dict[str, dict[str, Any]]:
    truth, detections = columns(world)
    found = evaluate_split(truth, detections, scores or ids(), "s", options)
    return {variant: values(measured) for variant, measured in found.items()}


def only(**scores: Floats) -> ReadOodDetections:
    return read(replace(columns(EXAMPLE)[1], scores=scores))


@pytest.mark.parametrize("rule", ["zscore", "quantile", "5"])
def test_the_worked_example_in_both_readings(rule: str) -> None:
    for variant, found in evaluated(EXAMPLE, options=OodOptions(threshold=rule)).items():
        expected = EXPECTED[variant] | {"pct_images_without_predictions": 16.67}
        renamed = {"n_det": "ood_detections", "n_det_unknown": "unknown_detections"}
        expected = {renamed.get(name, name): value for name, value in expected.items() if name != "n_det_known"}
        assert {name: found[name] for name in expected} == pytest.approx(expected, abs=5e-4)
        assert found["AP_U_unrounded"] == pytest.approx(expected["AP_U"], abs=1e-12)
        assert found["threshold_zscore"] == pytest.approx(4.014467265883269, abs=1e-12)
        assert (found["threshold_quantile"], found["id_share_at_least_threshold"]) == (5.0, 0.95)
        assert found["FPR95"] == found["FPR95_first"] == 1 / 3
        assert None not in found.values()


def test_without_id_scores_all_that_rests_on_them_is_undefined() -> None:
    measured = evaluate_split(*columns(EXAMPLE), ids(np.empty(0)), "s")["paper"]
    found, why = values(measured), {one.measure: one.undefined for one in measured.values}
    assert found["AUROC"] is found["threshold"] is found["nOSE"] is None
    assert "no ID" in why["AUROC"]
    assert "no threshold" in why["nOSE"]
    assert found["pct_images_without_predictions"] == 16.67
    # A threshold of one's own needs no ID scores.
    assert evaluated(EXAMPLE, ids(np.empty(0)), OodOptions(threshold="5"))["paper"]["TP_U"] == 3


@pytest.mark.parametrize(("without", "images", "share"), [(483, 1761, 27.43), (333, 930, 35.81), (851, 1880, 45.27)])
def test_shares_of_published_counts(without: int, images: int, share: float) -> None:
    # Table 1 of the paper prints these shares for the counts that they stand for.
    world = OodWorld({k: [] for k in range(images)}, {})
    n = images - without
    some = OodDetections(
        np.arange(without, images, dtype=np.int32), np.zeros((n, 4)), np.ones(n), np.zeros(n, bool), {"s": np.ones(n)}
    )
    found = values(evaluate_split(columns(world)[0], some, ids(), "s")["paper"])
    assert (found["images_without_predictions"], found["pct_images_without_predictions"]) == (without, share)


def test_id_and_ood_must_be_apart() -> None:
    detections = columns(EXAMPLE)[1]
    assert check_apart(read(detections), ids(images=("2", "3"))) == []
    with pytest.raises(EvaluationError, match="share images"):
        check_apart(read(detections), ids(images=("1", "3")))
    assert "1 image ids" in check_apart(read(detections), ids(images=("1", "3")), shared="report")[0]
    with pytest.raises(EvaluationError, match="the same file"):
        check_apart(replace(read(detections), sha256="sha256:1"), ids())
    with pytest.raises(EvaluationError, match="different lengths"):
        check_apart(replace(read(detections), logits_length=5), replace(ids(), logits_length=6))


def test_a_monotone_change_of_the_score_moves_the_zscore_alone() -> None:
    truth, detections = columns(EXAMPLE)
    changed = replace(detections, scores={"s": detections.scores["s"] ** 3})
    for rule, same in (("quantile", True), ("zscore", False)):
        options = OodOptions(threshold=rule)
        before = values(evaluate_split(truth, detections, ids(), "s", options)["paper"])
        after = values(evaluate_split(truth, changed, ids(np.array(EXAMPLE.ids) ** 3), "s", options)["paper"])
        assert after["AUROC"] == before["AUROC"]
        assert (after["unknown_detections"] == before["unknown_detections"]) == same
