"""Bootstrap: an oracle that really duplicates the drawn images, known coverage, and reproducibility."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.elephant import bootstrap
from curation.evaluation.matching import Matches
from curation.evaluation.open_set import READINGS
from curation.evaluation.problem import Detections, GroundTruth, Scene
from curation.evaluation.resample import draw_units
from tests.evaluation import elephant_rows
from tests.evaluation.worlds import detections_of_rows, match, truth_of_rows

CLASSES = ("a", "b", "c")
SQUARE = [0.0, 0.0, 10.0, 10.0]
LEVELS = {"0.0": 0, "0.5": 4, "1.0": 8, "1.4": 11}


def wilderness_intervals(
    closed: GroundTruth, inside: Detections, matches: Matches, wild: GroundTruth, outside: Detections, **options: Any
) -> dict[str, Any]:
    scene = Scene(closed, inside, wild, outside)
    return elephant_rows.bootstrap(bootstrap.wilderness_intervals(scene, matches, **options))


def random_part(rng: np.random.Generator, n_images: int, *, wild: bool) -> tuple[GroundTruth, Detections]:
    """Objects on a grid, so that overlaps and equal scores are frequent."""
    m, d = 2 * n_images, 7 * n_images

    def boxes(n: int) -> Any:
        return np.column_stack([rng.integers(0, 4, n) * 10, np.zeros(n), np.full(n, 20), np.full(n, 20)])

    image, places = np.sort(rng.integers(0, n_images, m)), boxes(m)
    # The third class has no objects: it must be left out everywhere.
    label = np.full(m, -1) if wild else rng.integers(0, 2, m)
    flags = {"crowd": rng.random(m) < 0.1, "difficult": (rng.random(m) < 0.2) & (not wild)}
    truth = truth_of_rows(list(zip(image, label, places, strict=True)), n_images, CLASSES, **flags)
    found = rng.integers(0, n_images, d), rng.integers(0, 3, d), boxes(d), rng.integers(1, 9, d) / 10
    return truth, detections_of_rows(list(zip(*found, strict=True)))


def single_class(n_images: int, n_objects: int) -> GroundTruth:
    """The same object in each of the first images."""
    return truth_of_rows([(image, 0, SQUARE) for image in range(n_objects)], n_images, ("a",))


def same_score(images: Any) -> Detections:
    """One detection of the object of `single_class` in each of some images, all with one score."""
    return detections_of_rows([(image, 0, SQUARE, 0.5) for image in images])


def duplicated(truth: GroundTruth, detections: Detections, drawn: list[int]) -> tuple[GroundTruth, Detections]:
    """A part in which the image of slot k is a copy of image ``drawn[k]``."""
    objects = [(slot, row) for slot, image in enumerate(drawn) for row in np.flatnonzero(truth.image == image)]
    found = [(slot, row) for slot, image in enumerate(drawn) for row in np.flatnonzero(detections.image == image)]
    o, f = (np.array([row for _, row in pairs], np.int64) for pairs in (objects, found))
    copy = truth_of_rows(
        [(slot, truth.label[row], truth.boxes[row]) for slot, row in objects],
        len(drawn),
        truth.classes,
        crowd=truth.crowd[o],
        difficult=truth.difficult[o],
    )
    slots = np.array([slot for slot, _ in found], np.int32)
    return copy, replace(detections.take(f), image=slots)


def slow_average_precisions(hits: list[tuple[float, int]], n: int) -> tuple[Fraction, Fraction]:
    """11-point and area AP by plain fractions; hits are (score, 1 or 0)."""
    points = []
    for threshold in sorted({score for score, _ in hits}, reverse=True):
        kept = [hit for score, hit in hits if score >= threshold]
        points.append((Fraction(sum(kept), n), Fraction(sum(kept), len(kept))))

    def highest(recall: Fraction) -> Fraction:
        return max((p for r, p in points if r >= recall), default=Fraction(0))

    eleven = sum((highest(Fraction(k, 10)) for k in range(11)), Fraction(0)) / 11
    recalls = sorted({r for r, _ in points} | {Fraction(0)})
    area = sum(((r - before) * highest(r) for before, r in itertools.pairwise(recalls)), Fraction(0))
    return eleven, area


def slow_statistics(
    closed: tuple[GroundTruth, Detections], wild: tuple[GroundTruth, Detections], difficult: Any
) -> dict[str, Any]:
    """WI, AWI and mAP from the definitions, one threshold and one class at a time."""
    matches = match(*closed, difficult=difficult)
    n_closed = closed[0].n_images
    outcome = list(zip(closed[1].label.tolist(), closed[1].scores.tolist(), matches.outcome.tolist(), strict=True))
    opened = list(zip(wild[1].label.tolist(), wild[1].scores.tolist(), wild[1].image.tolist(), strict=True))
    result: dict[str, Any] = {"WI": {}}
    aps: dict[str, list[tuple[Fraction, Fraction]]] = {"closed": [], "wr1": []}
    for label, n in enumerate(matches.n_positive.tolist()):
        if n:
            hits = [(score, hit) for c, score, hit in outcome if c == label and hit >= 0]
            more = [(score, 0) for c, score, image in opened if c == label and image < n_closed]
            aps["closed"].append(slow_average_precisions(hits, n))
            aps["wr1"].append(slow_average_precisions(hits + more, n))
    for position, flavour in enumerate(("mAP11", "mAP_area")):
        result[flavour] = {
            place: float(sum(ap[position] for ap in values) / len(values)) for place, values in aps.items()
        }
    for tenths in (1, 3, 5):
        rows = []
        for label, n in enumerate(matches.n_positive.tolist()):
            scores = {score for c, score, hit in outcome if c == label and hit == 1}
            for threshold in sorted(scores, reverse=True):
                kept = [hit for c, score, hit in outcome if c == label and score >= threshold and hit >= 0]
                if sum(kept) * 10 >= tenths * n:
                    of_level = [
                        sum(c == label and score >= threshold and image < size for c, score, image in opened)
                        for size in LEVELS.values()
                    ]
                    rows.append((sum(kept), len(kept), of_level))
                    break
        result["WI"][f"0.{tenths}"] = slow_readings(rows)
    return result


def slow_readings(rows: list[tuple[int, int, list[int]]]) -> dict[str, list[float]]:
    readings: dict[str, list[float]] = {name: [] for name in READINGS}
    if not rows:
        return {name: [math.nan] * len(LEVELS) for name in READINGS}
    for k in range(len(LEVELS)):
        readings["macro"].append(sum(o[k] / kept for _, kept, o in rows) / len(rows))
        readings["pooled"].append(sum(o[k] for _, _, o in rows) / sum(kept for _, kept, _ in rows))
        closed = sum(tp / kept for tp, kept, _ in rows)
        readings["ratio_of_mean_precision"].append(closed / sum(tp / (kept + o[k]) for tp, kept, o in rows) - 1)
    return readings


def draws_of(seed: int, replicate: int, n_closed: int, n_wild: int) -> tuple[list[int], list[int]]:
    words = philox_words((seed, replicate), n_closed + n_wild)
    closed = [(word >> 32) * n_closed >> 32 for word in words[:n_closed]]
    return closed, [(word >> 32) * n_wild >> 32 for word in words[n_closed:]]


def check(cell: dict[str, Any], estimate: float, values: list[float]) -> None:
    defined = [value for value in values if not math.isnan(value)]
    assert cell["estimate"] == (None if math.isnan(estimate) else pytest.approx(estimate, abs=1e-12))
    assert cell["undefined"] == len(values) - len(defined)
    for side, quantile in (("low", 0.025), ("high", 0.975)):
        expected = pytest.approx(np.quantile(defined, quantile), abs=1e-12) if defined else None
        assert cell[side] == expected


@pytest.mark.parametrize("difficult", ["ignore", "count"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_an_evaluation_of_really_duplicated_images(seed: int, difficult: Any) -> None:
    rng = np.random.Generator(np.random.PCG64(seed))
    closed, wild = random_part(rng, 8, wild=False), random_part(rng, 11, wild=True)
    replicates = 4
    result = wilderness_intervals(
        *closed, match(*closed, difficult=difficult), *wild,
        levels=LEVELS, replicates=replicates, seed=seed, difficult=difficult,
    )  # fmt: skip
    estimates = slow_statistics(closed, wild, difficult)
    samples = []
    for replicate in range(replicates):
        one, two = draws_of(seed, replicate, 8, 11)
        samples.append(slow_statistics(duplicated(*closed, one), duplicated(*wild, two), difficult))

    for recall, readings in estimates["WI"].items():
        for reading, values in readings.items():
            drawn = np.array([sample["WI"][recall][reading] for sample in samples])
            for k, level in enumerate(LEVELS):
                cell = result["WI"][recall][reading][k]
                assert cell["level"] == level
                check(cell, values[k], drawn[:, k].tolist())
            averages = result["AWI"][recall][reading]
            check(averages["excl_level0"], float(np.mean(values[1:])), drawn[:, 1:].mean(axis=1).tolist())
            check(averages["incl_level0"], float(np.mean(values)), drawn.mean(axis=1).tolist())
    for flavour in ("mAP11", "mAP_area"):
        for place in ("closed", "wr1"):
            check(result[flavour][place], estimates[flavour][place], [sample[flavour][place] for sample in samples])


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    rng = np.random.Generator(np.random.PCG64(9))
    closed, wild = random_part(rng, 8, wild=False), random_part(rng, 11, wild=True)
    return {"parts": (*closed, match(*closed), *wild), "levels": LEVELS}


def intervals(small: dict[str, Any], **options: Any) -> dict[str, Any]:
    return wilderness_intervals(*small["parts"], **({"levels": LEVELS, "replicates": 20, "seed": 3} | options))


def philox_words(key: tuple[int, int], count: int) -> list[int]:
    """Philox4x64-10 of Salmon et al. ("Parallel random numbers: as easy as 1, 2, 3"), in plain integers."""
    mask, words = 2**64 - 1, []
    for counter in itertools.count(1):
        x, k = [counter, 0, 0, 0], list(key)
        for _ in range(10):
            one, two = 0xD2E7470EE14C6C93 * x[0], 0xCA5A826395121157 * x[2]
            x = [two >> 64 ^ x[1] ^ k[0], two & mask, one >> 64 ^ x[3] ^ k[1], one & mask]
            k = [(k[0] + 0x9E3779B97F4A7C15) & mask, (k[1] + 0xBB67AE8584CAA73B) & mask]
        words += x
        if len(words) >= count:
            break
    return words[:count]


def test_draws_follow_the_published_generator() -> None:
    words = philox_words((3, 17), 1000)
    bits = np.random.Philox(key=np.array([3, 17], np.uint64))
    drawn = draw_units(10, 1000, bits.random_raw(1000))
    assert drawn.tolist() == [(word >> 32) * 10 >> 32 for word in words]
    assert min(np.bincount(drawn)) > 60


def test_undefined_replicates_are_counted_and_small_wilderness_has_no_wr1() -> None:
    """One object in two images: a replicate without its image (about 1 in 4) has no class left."""
    closed, wild, found = single_class(2, 1), single_class(1, 0), same_score(np.arange(1))
    result = wilderness_intervals(
        closed, found, match(closed, found), wild, found, levels={"0.0": 0, "0.5": 1}, replicates=100
    )
    missing = sum(0 not in draws_of(0, replicate, 2, 1)[0] for replicate in range(100))
    assert 10 < missing < 40
    for cell in (
        result["mAP11"]["closed"],
        result["WI"]["0.3"]["macro"][1],
        result["AWI"]["0.3"]["pooled"]["excl_level0"],
    ):
        assert cell["undefined"] == missing
    assert result["mAP11"]["closed"]["low"] == 1
    # The object's image drawn once or twice, and always the one wilderness detection: WI 1/1 or 1/2.
    assert (result["WI"]["0.3"]["macro"][1]["low"], result["WI"]["0.3"]["macro"][1]["high"]) == (0.5, 1.0)
    wr1 = result["mAP11"]["wr1"]
    assert (wr1["estimate"], wr1["low"], wr1["undefined"]) == (None, None, 100)
    assert "fewer wilderness images" in wr1["reason"]
