"""Average precision of known classes and of ``unknown``, and A-OSE and WI as functions of the confidence threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from curation.benchmarks.osod3.report import DEFINITIONS, REPORT
from curation.benchmarks.osod3.truth import (
    OUTSIDE,
    OpenSetTruth,
    Outside,
    classes_of_file,
    classes_of_manifest,
    open_set_truth,
    truth_view,
)
from curation.errors import UsageError
from curation.evaluation.coco_engine import Engine, coco_decided_by_order, coco_precision
from curation.evaluation.input_order import count_tie_sensitive
from curation.evaluation.inputs import (
    READING,
    CategoryIds,
    Policy,
    Reading,
    Truth,
    by_name,
    manifest_record,
    require_manifest_for_ids,
)
from curation.evaluation.matching import assign, overlapping_pairs, positives
from curation.evaluation.open_set import counts_at_thresholds, lies_on
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.problem import Bools, ClassRoles, Detections, Floats, Stray
from curation.evaluation.readers import Boxes, TaskDetections, read_task_detections
from curation.evaluation.result import Result
from curation.evaluation.variants import IOU, Rules
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.progress import steps

Profile = Literal["clean", "voc"]
ONLY = "test"
"""Name of the only case."""
VARIANTS: dict[str, Rules] = {
    one.name: one
    for one in (
        Rules(
            name="clean",
            meaning="a detection takes the best object of its class that is still free, IoU >= 0.5; crowd regions are "
            "ignored",
            taken="best_free",
            crowd="cover",
        ),
        Rules(
            name="voc",
            meaning="a detection is compared with its best object of the class, free or not, IoU >= 0.5; crowd is "
            "ignored",
        ),
    )
}
PROFILES: dict[str, str] = {name: rules.meaning for name, rules in VARIANTS.items()}
THETAS = tuple(f"{step / 20:.2f}" for step in range(21))
_TAXONOMY_NOTES = {
    "OSOD-I": "OSOD-I detects known classes alone: AP_unk is not defined",
    "OSOD-II": "OSOD-II does not define which unknown objects must be found: unannotated ones count as false positives "
    "in AP_unk",
}


def evaluate(
    *,
    truth: Annotated[Mapping[str, Truth] | Truth, "[CASE=]FILE"],
    detections: Annotated[Mapping[str, Path] | Path, "[CASE=]FILE"],
    classes: Annotated[Mapping[str, Path] | Path | None, "[CASE=]FILE"] = None,
    manifest: Annotated[Mapping[str, str] | Manifest | str | None, "[CASE=]MANIFEST"] = None,
    category_ids: CategoryIds | None = None,
    part: Annotated[str, "PART"] = ONLY,
    outside: Outside = "delete",
    profile: Literal["clean", "voc", "all"] | tuple[Profile, ...] = "clean",
    thetas: Annotated[str | None, "T,T"] = None,
    engine: Engine | None = None,
    stray: Stray = "error",
    negative_sizes: Boxes = "error",
    reading: Reading = READING,
) -> Result:
    """Score open-set detection with defined unknowns: AP of known and unknown, A-OSE and WI over the threshold.

    ``CASE=`` tells rotations or cases apart.

    Parameters
    ----------
    truth : Path or Source, or mapping of str to such
        COCO JSON, or a dataset root
    detections : Path, or mapping of str to Path
        COCO results JSON: category_id or category, `unknown` included
    classes : Path, or mapping of str to Path, optional
        {"known": [...], "unknown": [...]}
    manifest : Manifest or str, or mapping of str to such, optional
        take classes and images from it
    category_ids : {"manifest", "truth"}, optional
        of the detections: those of the manifest's classes or those of the ground truth; to be chosen where the two
        differ
    part : str
        image list of the manifests
    outside : {"delete", "ignore"}
        objects of other classes: removed as in the paper's code, or ignored regions
    profile : {"clean", "voc", "all"}, or several of them
        matching behind A-OSE and WI
    thetas : str, optional
        confidence thresholds (default: 0, 0.05, ... 1)
    engine : {"hotcoco", "pycocotools", "both"}, optional
        default: hotcoco where installed
    stray : {"error", "drop"}
        detections on images that the ground truth lacks: refuse, or leave out and report
    negative_sizes : {"error", "empty"}
        detected boxes of negative size: refuse, or take as empty and report
    reading : Reading

    Returns
    -------
    Result
        Sections ``cases`` and ``over_cases``.

    Raises
    ------
    UsageError, MissingFileError, EvaluationError, PredictionError
        Options do not fit together; a file is not there, or does not hold what it should.
    """
    files: dict[str, Path] = by_name(detections, "--detections", "case", unnamed=ONLY)
    names = list(files)
    truths: dict[str, Truth] = by_name(truth, "--truth", "case", names, wanted=names, shared=True)
    require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
    chosen, manifests = _classes(classes, manifest, names)
    # Scores are not bounded: the paper's unknown score is a sum of three.
    policy = Policy(stray=stray, negative_sizes=negative_sizes, any_scores=True)
    opening = reading.opener()
    inputs, told = {}, list[str]()
    for case, path in steps(files.items(), "reading cases"):
        source = opening(truths[case])
        held = manifests.get(case)
        ids = reading.images_of(source) if held is None else reading.listed(held, part)
        view = None if held is None else truth_view(held, part)
        source, remarks = reading.boxed(source, held, ids)
        told += remarks
        found = open_set_truth(source, chosen[case], ids, outside=outside, view=view, category_ids=category_ids)
        inputs[case] = found, read_task_detections(path, found.task, source, reading.policy_of(policy))
    profiles: tuple[Profile, ...] = (
        ("clean", "voc") if profile == "all" else (profile,) if isinstance(profile, str) else profile
    )
    values = THETAS if thetas is None else tuple(text.strip() for text in thetas.split(","))
    cases = {
        case: evaluate_osod3(found, read.detections, profiles=profiles, thetas=values, engine=engine)
        for case, (found, read) in steps(inputs.items(), "evaluating cases")
    }
    return Result(
        REPORT,
        _about(inputs, manifests, profiles, part),
        {"cases": cases, "over_cases": over_cases(cases)},
        notes=[*told, *(note for case in cases.values() for note in case["notes"])],
        outcomes=lambda: {
            f"{case}/{name}": [single_outcomes(found, read.detections, name)]
            for case, (found, read) in inputs.items()
            for name in profiles
        },
    )


def _classes(
    classes: Mapping[str, Path] | Path | None,
    manifest: Mapping[str, str] | Manifest | str | None,
    cases: Sequence[str],
) -> tuple[dict[str, ClassRoles], dict[str, Manifest]]:
    if bool(classes) == bool(manifest):
        raise UsageError(
            "Two options name the classes" if classes else "Nothing says which classes are known and unknown",
            expected="--classes FILE, or --manifest MANIFEST",
        )
    if classes:
        paths: dict[str, Path] = by_name(classes, "--classes", "case", cases, wanted=cases, shared=True)
        return {case: classes_of_file(path, case) for case, path in paths.items()}, {}
    named: dict[str, Any] = by_name(manifest, "--manifest", "case", cases, wanted=cases, shared=True)
    manifests = {case: load_manifest(one) if isinstance(one, str) else one for case, one in named.items()}
    return {case: classes_of_manifest(one, case) for case, one in manifests.items()}, manifests


def _about(
    inputs: Mapping[str, tuple[OpenSetTruth, TaskDetections]],
    manifests: Mapping[str, Manifest],
    profiles: Sequence[str],
    part: str,
) -> dict[str, Any]:
    """Return what the numbers rest on: digests of all inputs, and the classes of each case."""
    return {
        "manifests": {case: manifest_record(one, part=part) for case, one in manifests.items()},
        "inputs": {case: {"truth": truth.file, "detections": read.read.file} for case, (truth, read) in inputs.items()},
        "category_ids": {case: truth.task.task.ids_from for case, (truth, _) in inputs.items()},
        "classes": {
            case: {
                "known": list(truth.classes.known),
                "unknown": list(truth.classes.unknown),
                "from": truth.classes.origin,
            }
            for case, (truth, _) in inputs.items()
        },
        "profiles": {name: PROFILES[name] for name in profiles},
        "definitions": DEFINITIONS,
    }


def evaluate_osod3(
    truth: OpenSetTruth,
    detections: Detections,
    *,
    profiles: Sequence[Profile] = ("clean",),
    thetas: Sequence[str] = THETAS,
    engine: Engine | None = None,
) -> dict[str, Any]:
    """Return all measures of one case.

    Parameters
    ----------
    truth : OpenSetTruth
    detections : Detections
        Labels of `OpenSetTruth.truth`: the last one is unknown.
    profiles : sequence of {"clean", "voc"}
        Readings of the matching behind A-OSE and WI; AP is the same in both.
    thetas : sequence of str
        Confidence thresholds as decimal numbers, ascending.

    Returns
    -------
    dict
        ``AP_known``, ``AP_unk`` and the same at IoU 0.50 and 0.75, ``AP_per_class``, ``curves`` by profile, counts,
        ``decided_by_order`` by ``AP`` and profile, ``notes``, and ``undefined``: the reason of each None.
    """
    values = _thresholds(thetas)
    result: dict[str, Any] = {"taxonomy": truth.classes.taxonomy, "outside": OUTSIDE[truth.outside]}
    result |= average_precisions(truth, detections, engine=engine)
    result["curves"] = {name: threshold_curve(truth, detections, name, values) for name in profiles}
    result["n"] = {
        "images": truth.truth.n_images,
        "objects": truth.file["known_objects"] + truth.file["unknown_objects"],
        "unknown_objects": truth.file["unknown_objects"],
        "outside_objects": truth.outside_objects,
        "detections": len(detections),
        "unknown_detections": int((detections.label == truth.unknown).sum()),
    }
    result["decided_by_order"] = {"AP": coco_decided_by_order(truth.truth, detections)} | {
        name: _decided_by_order(truth, detections, name) for name in profiles
    }
    note = _TAXONOMY_NOTES.get(truth.classes.taxonomy)
    result["notes"] = [note] if note else []
    return result


def _decided_by_order(truth: OpenSetTruth, detections: Detections, profile: Profile) -> int:
    """Return how many decisions of A-OSE and WI rest on order: which of some equal scores finds an object."""
    known = detections.label < truth.unknown
    matches = assign(truth.truth, detections, VARIANTS[profile])
    # A threshold keeps equal scores or none: each image of a class, and each object, is a ranking of its own.
    if profile == "clean":
        by_image = replace(detections, label=detections.image * (truth.unknown + 1) + detections.label)
        return count_tie_sensitive(by_image, matches.outcome == 1, counted=known, free=True)
    by_object = replace(detections, label=matches.claim)
    is_open = _flags(truth, detections, profile)[1]
    return count_tie_sensitive(by_object, 1 + is_open.astype(np.int8), counted=known & (matches.claim >= 0))


def average_precisions(truth: OpenSetTruth, detections: Detections, *, engine: Engine | None = None) -> dict[str, Any]:
    """Return AP of the known classes and of unknown, over IoU 0.50:0.95 and at 0.50 and 0.75, in percent.

    A class without objects (crowd aside) has no AP and leaves the mean; one with objects and no detections has 0.
    """
    precision = coco_precision(truth.truth, detections, engine=engine)
    names = truth.truth.classes
    result: dict[str, Any] = {}
    for suffix, rows in (("", slice(None)), ("50", slice(0, 1)), ("75", slice(5, 6))):
        each = [_mean(precision[place][rows]) if place in precision else None for place in range(len(names))]
        defined = [one for one in each[: truth.unknown] if one is not None]
        result[f"AP_known{suffix}"] = float(np.mean(defined)) if defined else None
        result[f"AP_unk{suffix}"] = None if truth.classes.taxonomy == "OSOD-I" else each[truth.unknown]
        if not suffix:
            result["AP_per_class"] = dict(zip(names, each, strict=True))
    if truth.classes.taxonomy == "OSOD-I":
        result["AP_per_class"]["unknown"] = None
    result["undefined"] = _reasons(result, truth)
    return result


def _mean(precision: Floats) -> float:
    return float(100 * precision.mean())


def _reasons(result: Mapping[str, Any], truth: OpenSetTruth) -> dict[str, str]:
    reasons: dict[str, str] = {}
    if result["AP_known"] is None:
        reasons["AP_known"] = "no object of a known class, crowd aside"
    if result["AP_unk"] is None:
        reasons["AP_unk"] = (
            _TAXONOMY_NOTES["OSOD-I"] if truth.classes.taxonomy == "OSOD-I" else "no unknown object, crowd aside"
        )
    return reasons


def threshold_curve(
    truth: OpenSetTruth, detections: Detections, profile: Profile, thetas: Sequence[float]
) -> list[dict[str, Any]]:
    """Return A-OSE and WI of the detections of known classes with score >= theta, for each theta.

    Matching goes from the highest score down, so that a threshold never changes what a kept detection is.
    """
    known = detections.label < truth.unknown
    outcome, is_open = _flags(truth, detections, profile)
    return counts_at_thresholds(detections.scores[known], outcome[known], is_open[known], thetas)


def single_outcomes(truth: OpenSetTruth, detections: Detections, profile: Profile) -> Outcomes:
    """Return what became of each detection and object, as A-OSE and WI of a profile count them."""
    rules, unknown = VARIANTS[profile], _unknown_objects(truth)
    matches = assign(truth.truth, detections, rules)
    known = np.flatnonzero(detections.label < truth.unknown)
    pairs = overlapping_pairs(
        truth.truth,
        detections.take(known),
        same_class=False,
        mask=unknown,
        iou_threshold=IOU,
        strict=rules.strict,
    )
    return Outcomes.of(
        truth.truth,
        detections,
        rules,
        outcome=matches.outcome,
        taken=matches.truth,
        pairs=replace(pairs, row=known[pairs.row]),
        unknown=unknown,
        counted=positives(truth.truth, rules),
    )


def _unknown_objects(truth: OpenSetTruth) -> Bools:
    return np.asarray((truth.truth.label == truth.unknown) & ~truth.truth.crowd)


def _flags(truth: OpenSetTruth, detections: Detections, profile: Profile) -> tuple[Any, Bools]:
    """Return the outcome of each detection, and which lie on an unknown object."""
    if profile not in VARIANTS:
        raise UsageError("Unknown profile", expected=", ".join(PROFILES), found=repr(profile)[:80])
    outcome = assign(truth.truth, detections, VARIANTS[profile]).outcome
    return outcome, lies_on(truth.truth, detections, _unknown_objects(truth), VARIANTS[profile])


def _thresholds(thetas: Sequence[str]) -> list[float]:
    try:
        values = [float(theta) for theta in thetas]
    except ValueError:
        values = []
    if not values or not all(np.isfinite(values)) or values != sorted(set(values)):
        raise UsageError(
            "The confidence thresholds are not usable",
            expected="finite decimal numbers in ascending order",
            found=", ".join(thetas)[:80],
        )
    return values


def over_cases(cases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean and standard deviation over cases of every AP, both with ddof 0 (default) and 1, and their number.

    The paper prints mean and deviation over 4 (Open Images, CUB) or 3 (MTSD) cases and does not say which deviation.
    """
    found: dict[str, Any] = {}
    for name in ("AP_known", "AP_unk", "AP_known50", "AP_unk50", "AP_known75", "AP_unk75"):
        values = [float(case[name]) for case in cases.values() if case[name] is not None]
        found[name] = {
            "n": len(values),
            "mean": float(np.mean(values)) if values else None,
            "std_population": float(np.std(values)) if values else None,
            "std_sample": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            "left_out": [case for case, result in cases.items() if result[name] is None],
        }
    return found
