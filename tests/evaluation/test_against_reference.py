"""The package's metrics against the slow reference, on random cases full of ties, difficult and crowd objects."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from curation.benchmarks.elephant.evaluation import ElephantOptions, evaluate_elephant
from curation.benchmarks.elephant.measures import official, owod
from tests.evaluation import reference
from tests.evaluation.elephant_rows import of_evaluated, of_measured, of_owod
from tests.evaluation.reference import World
from tests.evaluation.worlds import columns_of, match, worlds
from tests.worlds.boxes import Guess, Thing

CODES = {"TP": 1, "FP": 0, "ignored": -1}


def same(ours: Any, theirs: Any) -> bool:
    if theirs is None or ours is None:
        return ours is theirs
    return bool(ours == pytest.approx(float(theirs), abs=1e-12))


def all_same(ours: Any, theirs: Any) -> bool:
    return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("difficult", ["ignore", "count"])
@pytest.mark.parametrize("strict", [False, True])
@settings(max_examples=60)
@given(world=worlds())
def test_match(difficult: Any, strict: bool, world: World) -> None:
    closed, inside, _, _ = columns_of(world)
    ours = match(closed, inside, difficult=difficult, strict=strict)
    theirs = reference.outcomes(world.closed, world.inside, difficult, strict=strict)
    assert ours.outcome.tolist() == [CODES[theirs[k]] for k in range(len(world.inside))]
    counts = [reference.count_positives(world.closed, c, difficult) for c in range(world.n_classes)]
    assert ours.n_positive.tolist() == counts


@pytest.mark.parametrize("difficult", ["ignore", "count"])
@settings(max_examples=60)
@given(world=worlds())
def test_profile_paper(difficult: Any, world: World) -> None:
    options = ElephantOptions(difficult=difficult, betas=("1.0",))
    ours = of_evaluated(evaluate_elephant(columns_of(world), options))
    section = ours["paper" if difficult == "ignore" else "paper_difficult_counted"]
    theirs: Any = reference.paper(world, difficult)
    assert section["n_wild_images"] == theirs["n_wild_images"]
    for flavour in ("mAP11_open", "mAP_area_open"):
        assert all_same([section[flavour]], [theirs[flavour]]), flavour
    for flavour in ("mAP11", "mAP_area", "mAP11_ties_in_input_order"):
        assert all_same(section[flavour], theirs[flavour]), flavour
    for recall, impact in theirs["WI"].items():
        for reading in ("macro", "pooled", "ratio_of_mean_precision"):
            assert all_same(section["WI"][recall][reading], impact[reading]), reading
        for number, name in enumerate(ours["classes"]):
            point = section["thresholds"][recall][name]
            assert (point["TP_c"], point["FP_c"]) == (impact["tp"].get(number), impact["fp"].get(number))
            assert section["WI"][recall]["fp_open"][name] == impact["opened"].get(number)


@settings(max_examples=60)
@given(world=worlds())
def test_profile_official(world: World) -> None:
    ours = of_measured(official(columns_of(world)))
    theirs: Any = reference.official(world)
    assert ours["n_wild_images"] == theirs["n_wild_images"]
    assert all_same(ours["mAP"], theirs["mAP"])
    for recall in ("0.1", "0.3", "0.5"):
        means = theirs[recall]
        assert all_same(ours["mean_interp_precision"][recall], means)
        impact = [means[0] / value - 1 if means[0] and value else None for value in means]
        assert all_same(ours["WI"][recall], impact)


@settings(max_examples=60)
@given(world=worlds())
def test_owod(world: World) -> None:
    closed, inside, wild, outside = columns_of(world)
    ours = of_owod(owod(((closed, inside), (wild, outside))))
    theirs: Any = reference.owod(world)
    assert ours["AOSE_total"] == theirs["AOSE_total"] == sum(ours["AOSE_per_class"].values())
    assert ours["AOSE_instances"] == theirs["AOSE_instances"] <= ours["n_unknown"]
    assert all_same(list(ours["WI"].values()), list(theirs["WI"].values()))


def test_the_reference_solves_the_worked_example_by_hand() -> None:
    """Section 2.11 of the specification: the oracle itself must come out right."""
    big, small = (100, 100, 100, 100), (0, 0, 20, 20)
    cats = [(0, 950, big), (1, 900, big), (2, 850, small), (2, 800, big), (3, 750, small), (3, 650, big)]
    cats += [(4, 700, small), (4, 600, big), (5, 550, small), (5, 500, big)]
    dogs = [(0, 900, (300, 100, 100, 50)), (1, 600, big)]
    wild_cats = [(0, 920, big), (1, 820, big), (2, 620, big), (4, 800, small), (5, 450, small)]
    wild_cats += [(9, 990, (100, 100, 100, 50))]
    wild_dogs = [(6, 950, (100, 100, 30, 50)), (7, 300, big)]

    def guesses(entries: Any, label: int) -> list[Guess]:
        return [Guess(image, label, box, score) for image, score, box in entries]

    world = World(
        n_classes=2,
        n_closed=10,
        n_wild=10,
        closed=(*(Thing(image, 0, big) for image in range(10)), Thing(0, 1, (300, 100, 100, 100))),
        wild=tuple(Thing(image, -1, big) for image in range(10) if image != 4),
        inside=(*guesses(cats, 0), *guesses(dogs, 1)),
        outside=(*guesses(wild_cats, 0), *guesses(wild_dogs, 1)),
    )
    found: Any = reference.paper(world)
    assert found["WI"]["0.3"]["opened"] == {0: [0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4], 1: [0] * 7 + [1] * 4}
    assert (found["WI"]["0.3"]["tp"], found["WI"]["0.3"]["fp"]) == ({0: 3, 1: 1}, {0: 1, 1: 0})
    ours = of_evaluated(evaluate_elephant(columns_of(world)))["paper"]
    assert ours["WI"]["0.3"]["fp_open"] == {"a": [0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4], "b": [0] * 7 + [1] * 4}
    assert ours["AWI"]["0.3"]["macro"]["excl_level0"] == pytest.approx(0.525, abs=1e-12)
    assert ours["AWI"]["0.3"]["pooled"]["excl_level0"] == pytest.approx(0.6, abs=1e-12)
    assert ours["thresholds"]["0.3"]["a"]["threshold"] == 0.8
    assert np.isclose(ours["mAP11"][0], float(found["mAP11"][0]), atol=1e-12)
