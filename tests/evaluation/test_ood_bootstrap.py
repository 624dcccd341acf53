import math

import numpy as np
import pytest
from hypothesis import given, settings

from curation.benchmarks.findmeifyoucan.detections import IdScores
from curation.benchmarks.findmeifyoucan.measures import (
    VARIANTS,
    ImageSample,
    bootstrap_intervals,
    open_set_outcomes,
    open_set_rates,
    unknown_detections,
)
from curation.evaluation.separability import RankedScores, auroc, fpr95_first
from tests.evaluation.ood_reference import EXAMPLE, OodWorld
from tests.evaluation.ood_worlds import columns, ood_worlds

BOTH = tuple(VARIANTS.values())


def sample(world: OodWorld, images: tuple[str, ...] | None = None, threshold: float = 0.5) -> ImageSample:
    truth, detections = columns(world)
    ids = IdScores({"s": np.array(world.ids)}, images, "id", "sha256:1", {})
    unknown = unknown_detections(detections, "s", threshold)
    outcomes = [open_set_outcomes(truth, detections, unknown, one) for one in BOTH]
    return ImageSample.from_matches(truth, detections, ids, "s", outcomes)


@settings(max_examples=60)
@given(ood_worlds())
def test_unit_weights_give_the_numbers_of_the_data(world: OodWorld) -> None:
    one = sample(world)
    found = one.statistics(np.ones(one.n_images, np.int64), np.ones(one.n_id_images, np.int64))
    truth, detections = columns(world)
    if len(detections):
        ranked = RankedScores.from_scores(np.array(world.ids), detections.scores["s"])
        assert found["AUROC"] == auroc(ranked)
        assert found["FPR95_first"] == pytest.approx(fpr95_first(ranked), abs=1e-15)
    for variant in BOTH:
        outcomes = open_set_outcomes(truth, detections, unknown_detections(detections, "s", 0.5), variant)
        rates = open_set_rates(outcomes)
        for name in ("nOSE", "P_U", "R_U"):
            value = found[f"{variant.name}.{name}"]
            assert (rates[name] is None and math.isnan(value)) or value == pytest.approx(rates[name])


@settings(max_examples=40)
@given(ood_worlds())
def test_a_weight_is_a_copy_of_the_image(world: OodWorld) -> None:
    """Weights 2, 0, 1, … equal a file in which images stand twice, not at all, once."""
    one = sample(world)
    weights = np.array([2, 0, 1, 2, 0][: one.n_images])
    id_weights = np.arange(one.n_id_images) % 3
    copies = [image for image, n in zip(sorted(world.objects), weights.tolist(), strict=True) for _ in range(n)]
    ids = [score for score, n in zip(world.ids, id_weights.tolist(), strict=True) for _ in range(n)]
    copied = OodWorld(
        {k: world.objects[image] for k, image in enumerate(copies, 1)},
        {k: world.found.get(image, []) for k, image in enumerate(copies, 1)},
        ids,
    )
    found = one.statistics(weights, id_weights)
    other = sample(copied)
    expected = other.statistics(np.ones(other.n_images, np.int64), np.ones(other.n_id_images, np.int64))
    assert found == pytest.approx(expected, nan_ok=True)


def test_intervals_hold_the_estimate_and_come_again_with_the_seed() -> None:
    images = tuple(str(100 + k // 2) for k in range(len(EXAMPLE.ids)))
    one = sample(EXAMPLE, images, 5.0)
    assert one.n_id_images == 10
    first, again, other = (bootstrap_intervals(one, replicates=50, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    for name, cell in first.items():
        assert cell["low"] <= cell["estimate"] <= cell["high"], name
        assert cell["undefined"] == 0
    assert first["paper.P_U"]["estimate"] == 50
