"""The open-world metrics against a plain evaluator, the worked example, and the properties of the specification."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from curation.benchmarks.registry import variants_of
from curation.evaluation import open_world
from curation.evaluation.problem import Detections
from curation.evaluation.truth import TaskTruth
from curation.evaluation.variants import Rules
from tests.evaluation.open_world_rows import of_measured
from tests.evaluation.owod_cases import PROFILES, cases, detections_of, evaluated, example, once_a_line, truth_of
from tests.evaluation.owod_reference import Case, Evaluation
from tests.worlds.boxes import UNKNOWN, Guess, Thing, common, iou, size
from tests.worlds.owod import of_yolo_uniow

_, ORE, OWDETR = variants_of("owod")
FOMO, YOLO_UNIOW = (variants_of(name)[1] for name in ("rwd", "nuowodb"))
AP_KEYS = {
    "mAP_prev", "mAP_cur", "mAP_both", "AP_per_class", "AP_unknown", "classes", "profile", "profile_meaning",
    "settings",
}  # fmt: skip


def evaluate_task(truth: TaskTruth, detections: Detections, variants: list[Rules]) -> dict[str, dict[str, Any]]:
    found = open_world.evaluate_task(truth, detections, variants)
    return {f"{truth.task.name}/{name}": of_measured(one) for name, one in found.items()}


def close(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return set(ours) == set(theirs) and all(close(ours[key], theirs[key]) for key in theirs)
    if ours is None or theirs is None:
        return ours is theirs
    return bool(abs(ours - theirs) <= 1e-9)


def agree(case: Case, ours: dict[str, dict[str, Any]]) -> None:
    for profile in PROFILES:
        theirs = Evaluation(case, profile).result()
        found = {name: (ours[profile][name], value) for name, value in theirs.items()}
        assert not {name: pair for name, pair in found.items() if not close(*pair)}, profile


def exact(case: Case) -> bool:
    """Whether no continuous overlap is exactly one half: there doubles may fall on either side."""
    evaluation = Evaluation(case, "clean")
    half, seen = Fraction(1, 2), set()
    for g, guess in enumerate(case.guesses):
        for k, thing in enumerate(case.objects):
            if thing.image == guess.image:
                seen |= {iou(evaluation.drawn[g], evaluation.boxes[k])}
                seen |= {common(evaluation.drawn[g], evaluation.boxes[k]) / size(evaluation.drawn[g])}
    whole = all(value % Decimal("0.25") == 0 for one in (*case.objects, *case.guesses) for value in one.box)
    return whole or half not in seen


@given(case=cases())
def test_every_number_is_that_of_the_plain_evaluator(case: Case) -> None:
    found = evaluated(case)
    if exact(case):
        agree(case, found)
    for one in found.values():
        is_undefined_only_with_a_reason(one)
    ore, owdetr = ({k: v for k, v in found[name].items() if k not in AP_KEYS} for name in ("ore", "owdetr"))
    assert ore == owdetr


def is_undefined_only_with_a_reason(found: dict[str, Any]) -> None:
    json.dumps(found, allow_nan=False)
    empty = {name for name, value in found.items() if value is None} - {"unknown_per_class"}
    assert empty == set(found["undefined"])


@given(case=cases(repeats=True))
def test_repeated_lines_count_as_in_the_plain_evaluator(case: Case) -> None:
    case = once_a_line(case)
    found = evaluated(case)
    if exact(case):
        agree(case, found)
    for one in found.values():
        has_consistent_unknown_rates(one)


def has_consistent_unknown_rates(found: dict[str, Any]) -> None:
    for suffix in ("", "_excl_known_tp"):
        assert found[f"FN_u_star{suffix}"] <= found["FN_u"]
        if None not in (found["UR"], found[f"UDR{suffix}"], found[f"UDP{suffix}"]):
            product = found[f"UDR{suffix}"] * found[f"UDP{suffix}"] / 100
            assert found["UR"] == pytest.approx(product, abs=1e-9)
    assert found["FN_u_star_excl_known_tp"] <= found["FN_u_star"]
    assert found["TP_u"] + found["FN_u"] == found["num_unknown_gt"]
    if found["num_unknown_gt"]:
        assert found["FN_u_star"] <= found["AOSE_objects"] <= found["num_unknown_gt"]
        assert sum(row["on_unknown"] for row in found["classes"][:-1]) == found["AOSE"]


def test_the_worked_example() -> None:
    case, originals = example()
    found = evaluated(case, originals=originals)
    ore, owdetr, clean = found["ore"], found["owdetr"], found["clean"]
    assert (ore["num_unknown_gt"], ore["TP_u"], ore["FN_u_star"], ore["FN_u_star_excl_known_tp"]) == (7, 2, 2, 1)
    assert [ore[k] for k in ("UR", "UDR", "UDP")] == pytest.approx([200 / 7, 400 / 7, 50.0])
    assert (ore["AOSE"], ore["AOSE_objects"]) == (4, 3)
    assert [ore["mAP_cur"], ore["WI"], ore["AP_unknown"]] == pytest.approx([50.0, 1 / 3, 200 / 7])
    assert owdetr["AP_per_class"] == pytest.approx({"person": 700 / 11, "dog": 400 / 11})
    assert owdetr["AP_unknown"] == pytest.approx(300 / 11)
    assert (clean["num_unknown_gt"], clean["TP_u"], clean["FN_u_star_excl_known_tp"]) == (6, 3, 1)
    expected = [50.0, 500 / 6, 60.0, 230 / 3, 0.25]
    assert [clean[k] for k in ("UR", "UDR", "UDP", "mAP_both", "WI")] == pytest.approx(expected)
    assert clean["mAP_prev"] is None
    assert "no such classes" in clean["undefined"]["mAP_prev"]
    assert clean["WI_curve"]["classes_never_reaching"]["0.7"] == ["dog"]


def test_the_worked_example_by_original_class() -> None:
    case, originals = example()
    found = evaluated(case, originals=originals)["clean"]
    by_class = found["unknown_per_class"]
    assert {name: row["num_unknown_gt"] for name, row in by_class.items()} == {
        "apple": 2,
        "cup": 1,
        "kite": 1,
        "truck": 2,
    }
    assert by_class["truck"]["AOSE"] == 3
    assert by_class["truck"]["UDP"] == 50.0
    assert by_class["cup"]["UDP"] is None
    for key in ("TP_u", "FN_u", "FN_u_star", "AOSE_objects", "AOSE"):
        assert sum(row[key] for row in by_class.values()) == found[key]
    assert evaluated(case)["clean"]["unknown_per_class"] is None


def test_repeated_lines_lower_every_rate_and_raise_a_ose_of_the_worked_example() -> None:
    case, _ = example()
    doubled = once_a_line(replace(case, listed=case.listed * 2))
    for profile, once in evaluated(case).items():
        twice = evaluated(doubled)[profile]
        for name in ("UR", "UDR", "UDP", "mAP_cur", "AP_unknown"):
            assert twice[name] < once[name], name
        assert twice["AOSE"] == 2 * once["AOSE"]
        assert twice["AOSE_objects"] == 2 * once["AOSE_objects"]
        # Each object is found once, however often its image is listed.
        assert twice["num_unknown_gt"] == 2 * once["num_unknown_gt"]
        assert twice["counts"]["lines"] == 22
        assert any("repeated lines" in note for note in twice["notes"])
    ore = evaluated(doubled)["ore"]
    # Image 3's truck is found by its unknown detection: that a person is called on it too makes its second copy no
    # FN_u*. Image 2's truck and image 4's kite are called known on both lines.
    assert (ore["TP_u"], ore["FN_u"], ore["FN_u_star"]) == (2, 12, 4)


def test_the_curve_ends_in_the_reported_numbers_and_never_loses_recall() -> None:
    case, _ = example()
    for found in evaluated(case).values():
        curve = found["unknown_curve"]
        for name in ("TP_u", "UR", "P_unknown", "FN_u_star", "UDR", "UDP"):
            assert curve[name][-1] == pytest.approx(found[name])
        assert curve["UR"] == sorted(curve["UR"])
        assert curve["score"] == sorted(curve["score"], reverse=True)


BOX = Decimal(0), Decimal(0), Decimal(50), Decimal(50)


def impact_of_the_authors(tp: list[list[int]], fp: list[list[int]], on: list[list[int]], n: list[int]) -> Any:
    """``voc_eval`` and ``compute_WI_at_a_recall_level`` (ORE, OW-DETR, FOMO), of marks by class in ranked order."""
    tp_plus_fps, fps = [], []
    for rights, wrongs, opens, npos in zip(tp, fp, on, n, strict=True):
        with np.errstate(invalid="ignore"):
            rec = np.cumsum(rights) / float(npos)
        if len(rec) > 0:
            index = min(range(len(rec)), key=lambda i: abs(rec[i] - 0.8))
            tp_plus_fps.append((np.cumsum(rights) + np.cumsum(wrongs))[index])
            fps.append(np.cumsum(opens)[index])
    return np.mean(fps) / np.mean(tp_plus_fps) if tp_plus_fps else 0


CLASSES = ("bus", "cat", "dog", "owl")
WITHOUT_OBJECTS = {
    # Objects and detections, by class: d lies on the class's own object, u on the unknown one, x on nothing.
    "the smallest case": ({"dog": "d"}, {"cat": "u", "dog": "d"}, 0.5),
    "its first detection alone": ({"dog": "d"}, {"cat": "xuuu", "dog": "d"}, 0.0),
    "no detections: no part": ({"dog": "d"}, {"dog": "d"}, 0.0),
    "several such classes": ({"dog": "d"}, {"bus": "u", "cat": "ux", "owl": "xu", "dog": "d"}, 0.5),
    "no class has objects": ({}, {"cat": "ux", "dog": "x"}, 0.5),
    "a class with objects is read at 0.8": ({"dog": "d"}, {"cat": "u", "dog": "uxd"}, 0.5),
}


@pytest.mark.parametrize("named", WITHOUT_OBJECTS)
def test_the_codes_count_the_first_detection_of_a_class_without_objects(named: str) -> None:
    shown, called, expected = WITHOUT_OBJECTS[named]
    places = {"d": (1, BOX), "u": (2, BOX), "x": (3, BOX)}
    objects = [Thing(1, name, BOX) for name in shown] + [Thing(2, UNKNOWN, BOX)]
    scores = iter(range(99, 0, -1))
    guesses = [
        Guess(*(places[mark][0], name, places[mark][1]), Decimal(next(scores)) / 100)
        for name, marks in called.items()
        for mark in marks
    ]
    case = Case((), CLASSES, (1, 2, 3), tuple(objects), tuple(guesses))
    marks = [called.get(name, "") for name in CLASSES]
    theirs = impact_of_the_authors(
        [[int(mark == "d") for mark in one] for one in marks],
        [[int(mark != "d") for mark in one] for one in marks],
        [[int(mark == "u") for mark in one] for one in marks],
        [name in shown for name in CLASSES],
    )
    assert theirs == expected
    for found in of_codes(case).values():
        assert found["WI"] == expected
        # Without objects there is no AP, as before, and no recall is reached.
        assert {name for name, value in found["AP_per_class"].items() if value is None} == {*CLASSES} - {*shown}
        assert found["WI_curve"]["classes_reaching"][0] == len(shown)
        assert set(found["WI_left_out"].values()) <= {"no detections"}
        assert any("the first detection of each" in note for note in found["notes"])
    clean = evaluated(case)["clean"]
    assert set(CLASSES) - set(shown) == set(clean["WI_left_out"])


def test_where_the_first_detections_of_all_are_ignored_the_code_divides_by_zero() -> None:
    case = Case((), ("dog",), (1, 2), (Thing(1, "dog", BOX, difficult=True), Thing(2, UNKNOWN, BOX)),
                (Guess(1, "dog", BOX, Decimal("0.9")),))  # fmt: skip
    for found in of_codes(case).values():
        assert (found["WI"], found["undefined"]["WI"]) == (None, "the denominator is 0")


def of_codes(case: Case) -> dict[str, dict[str, Any]]:
    """Return the sections of every variant that is somebody's code."""
    truth = truth_of(case)
    variants = [ORE, OWDETR, FOMO, YOLO_UNIOW]
    sections = evaluate_task(truth, detections_of(case, truth), variants)
    return {one.name: sections[f"t/{one.name}"] for one in variants}


@given(case=cases())
def test_fomo_and_yolo_uniow_are_those_of_the_plain_evaluator(case: Case) -> None:
    found = of_codes(case)
    for name, one in (("fomo", case), ("yolo-uniow", of_yolo_uniow(case))):
        theirs = Evaluation(one, name).result()
        pairs = {key: (found[name][key], value) for key, value in theirs.items()}
        assert not {key: pair for key, pair in pairs.items() if not close(*pair)}, name


def test_yolo_uniow_divides_recalls_by_a_hair_more_than_the_objects() -> None:
    objects = (Thing(1, "dog", BOX), Thing(2, "dog", BOX), Thing(3, UNKNOWN, BOX))
    known = (Guess(1, "dog", BOX, Decimal("0.9")), Guess(3, "dog", BOX, Decimal("0.8")),
             Guess(2, "dog", BOX, Decimal("0.7")))  # fmt: skip
    case = Case((), ("dog",), (1, 2, 3), objects, (*known, Guess(3, UNKNOWN, BOX, Decimal("0.6"))))
    ore, uniow = (of_codes(case)[name] for name in ("ore", "yolo-uniow"))
    # Two objects, found first and third: 1/2 + 1/2 * 2/3, by recalls of 2.00001.
    assert ore["mAP_both"] == pytest.approx(100 * 5 / 6, abs=1e-12)
    assert uniow["mAP_both"] == pytest.approx(100 * (1 + 2 / 3) / 2.00001, abs=1e-12)
    assert (ore["UR"], ore["AP_unknown"]) == (100, 100)
    assert uniow["UR"] == uniow["AP_unknown"] == pytest.approx(100 / 1.00001, abs=1e-12)
    assert (round(uniow["UR"], 3), uniow["UDP"]) == (99.999, 100)
    assert uniow["UDR"] == uniow["UR"]


def test_yolo_uniow_reads_wi_at_another_detection_where_two_recalls_are_equally_near() -> None:
    """Of five objects 0.7 lies halfway between three and four found; a hair less than that is nearer to one of them."""
    objects = (*(Thing(image, "dog", BOX) for image in range(1, 6)), Thing(6, UNKNOWN, BOX))
    guesses = [Guess(image, "dog", BOX, Decimal("0.9") - image * Decimal("0.01")) for image in range(1, 5)]
    # Between the third and the fourth that are right stand three on the unknown object.
    guesses += [Guess(6, "dog", BOX, Decimal("0.865"))] * 3
    case = Case((), ("dog",), tuple(range(1, 7)), objects, tuple(guesses))
    found = of_codes(case)
    ore, uniow = (found[name]["WI_at_recall"] for name in ("ore", "yolo-uniow"))
    for level in (k / 10 for k in range(1, 10)):
        for name, more in (("ore", 0.0), ("yolo-uniow", 1e-5)):
            recalls = [tp / (5 + more) for tp in (1, 2, 3, 3, 3, 3, 4)]
            place = min(range(7), key=lambda i: abs(recalls[i] - level))
            on = (0, 0, 0, 1, 2, 3, 3)[place]
            assert found[name]["WI_at_recall"][f"{level:.1f}"] == on / (place + 1), (name, level)
    assert ore["0.7"] != uniow["0.7"]
    assert ore["0.8"] == uniow["0.8"]


def voc_ap_of_ow_detr(tp: list[int], n: int) -> float:
    """The eleven points as OW-DETR's ``voc_ap`` computes them (use_07_metric=True), all detections right."""
    hits = np.cumsum(tp)
    rec, prec = hits / float(n), hits / np.arange(1, len(tp) + 1)
    ap = 0.0
    for t in np.arange(0.0, 1.1, 0.1):
        p = 0 if np.sum(rec >= t) == 0 else np.max(prec[rec >= t])
        ap = ap + p / 11.0
    return float(ap)


@pytest.mark.parametrize("right", range(11))
def test_owdetr_reaches_its_eleven_recalls_as_its_authors_floats_do(right: int) -> None:
    def box(k: int) -> Any:
        return Decimal(100 * k), Decimal(0), Decimal(50), Decimal(50)

    objects = tuple(Thing(1, "dog", box(k)) for k in range(10))
    guesses = tuple(Guess(1, "dog", box(k), Decimal("0.9") - k * Decimal("0.01")) for k in range(right))
    found = evaluated(Case((), ("dog",), (1,), objects, guesses))["owdetr"]
    assert found["mAP_cur"] == pytest.approx(100 * voc_ap_of_ow_detr([1] * right, 10), abs=1e-12)
    # By hand: 3, 6 and 7 of ten stay below k * 0.1, which lies a hair above k / 10.
    assert found["mAP_cur"] == pytest.approx(100 * (right + (right not in (0, 3, 6, 7))) / 11)


def test_copies_of_an_object_that_was_found_are_no_fn_u_star() -> None:
    # One image on two lines, two trucks: the first is found and called a dog too, the second only called a dog.
    def box(x: int) -> Any:
        return Decimal(x), Decimal(0), Decimal(50), Decimal(50)

    objects = (Thing(1, UNKNOWN, box(0)), Thing(1, UNKNOWN, box(100)))
    guesses = (
        Guess(1, UNKNOWN, box(0), Decimal("0.9")),
        Guess(1, "dog", box(0), Decimal("0.8")),
        Guess(1, "dog", box(100), Decimal("0.7")),
    )
    case = once_a_line(Case((), ("dog",), (1, 1), objects, guesses))
    for found in evaluated(case).values():
        # N_u 4 by line, TP_u 1; the found truck's second copy is missed, but no FN_u*: only the other one's two are.
        assert [found[k] for k in ("num_unknown_gt", "TP_u", "FN_u")] == [4, 1, 3]
        assert (found["FN_u_star"], found["FN_u_star_excl_known_tp"]) == (2, 2)
        assert [found[k] for k in ("UR", "UDR", "UDP")] == pytest.approx([25, 75, 100 / 3])
        assert found["unknown_curve"]["FN_u_star"][-1] == 2
