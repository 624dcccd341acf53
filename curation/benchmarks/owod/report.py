"""What the evaluation of open-world detection measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Iterator

from curation.evaluation.measures import Measure, formulas
from curation.evaluation.result import Data, Report, Scored, stem_of, truth_digests

_REOWOD = "Zhao et al., arXiv 2201.00471"
_NO_UNKNOWN = "no unknown object counts in this task"
_MEAN_AP = (
    "mean AP at IoU 0.5 in % over the classes of earlier tasks, of this task, of both; "
    "classes without objects are left out and named, a class without detections counts as 0"
)


def _mean_ap(key: str, classes: str) -> Measure:
    return Measure(
        key,
        f"mean average precision of {classes} classes",
        f"mean AP at IoU 0.5 over {classes} classes with objects; a class without detections counts as 0",
        unit="%",
        better="higher",
        source="Joseph et al., CVPR 2021, section 5",
        undefined="no such class has objects",
        ranked=True,
    )


MEASURES = (
    _mean_ap("mAP_both", "all known"),
    _mean_ap("mAP_prev", "earlier tasks'"),
    _mean_ap("mAP_cur", "this task's"),
    Measure(
        "UR",
        "unknown recall",
        "TP_u / N_u, in % (unknown recall, U-Recall)",
        unit="%",
        better="higher",
        source=f"{_REOWOD}; U-Recall of Gupta et al., CVPR 2022",
        undefined=_NO_UNKNOWN,
        count=("num_unknown_gt",),
        ranked=True,
    ),
    Measure(
        "UDR",
        "unknown detection recall",
        "(TP_u + FN_u_star) / N_u, in % (unknown detection recall)",
        unit="%",
        better="higher",
        source=_REOWOD,
        undefined=_NO_UNKNOWN,
        count=("num_unknown_gt",),
        ranked=True,
    ),
    Measure(
        "UDP",
        "unknown detection precision",
        "TP_u / (TP_u + FN_u_star), in % (unknown detection precision); UR = UDR * UDP",
        unit="%",
        better="higher",
        source=_REOWOD,
        undefined=f"{_NO_UNKNOWN}, or TP_u + FN_u_star is 0",
        ranked=True,
    ),
    Measure(
        "A_OSE_objects",
        "absolute open-set error, objects",
        "distinct unknown objects with a detection of a known class on them: what the paper's text says",
        unit="count",
        better="lower",
        source="Miller et al., ICRA 2018; Joseph et al., CVPR 2021, section 5",
        undefined=_NO_UNKNOWN,
        count=("num_unknown_gt",),
        ranked=True,
    ),
    Measure(
        "A_OSE_detections",
        "absolute open-set error, detections",
        "detections of known classes on an unknown object, duplicates and true positives included: "
        "what the official code prints",
        unit="count",
        better="lower",
        source="code of ORE",
        undefined=_NO_UNKNOWN,
        count=("num_unknown_gt",),
        ranked=True,
    ),
    Measure(
        "WI",
        "wilderness impact at recall 0.8",
        "sum over known classes of detections on unknown objects / sum of TP + FP, each class at the first index "
        "whose recall is nearest to 0.8 (the official code; its denominator holds the open-set false positives)",
        unit="ratio",
        better="lower",
        source="code of ORE",
        undefined=f"{_NO_UNKNOWN}, or the denominator is 0",
        ranked=True,
    ),
    Measure(
        "WI_closed_set_denominator",
        "wilderness impact at recall 0.8 over closed-set detections",
        "the same over TP + FP without false positives on unknown objects (Dhamija et al.)",
        unit="ratio",
        better="lower",
        source="Dhamija et al., WACV 2020, equation 1",
        undefined=f"{_NO_UNKNOWN}, or the denominator is 0",
    ),
    Measure(
        "WI_at_recall@{recall}",
        "wilderness impact at a recall",
        "WI at recalls 0.1 to 0.9",
        unit="ratio",
        better="lower",
        source="code of ORE",
        undefined=f"{_NO_UNKNOWN}, or the denominator is 0",
        paths=(("WI_at_recall", "{recall}"),),
    ),
    Measure(
        "AP_unknown",
        "average precision of unknown",
        "AP of class unknown, in %",
        unit="%",
        better="higher",
        source="code of ORE",
        undefined=_NO_UNKNOWN,
        count=("num_unknown_gt",),
    ),
    Measure(
        "P_unknown",
        "precision of unknown",
        "TP_u / (TP_u + FP_u), in %; FP_u: detections called unknown that found none",
        unit="%",
        better="higher",
        source="code of ORE",
        undefined="no detection called unknown counts",
    ),
    Measure(
        "UDR_excl_known_tp",
        "unknown detection recall without known true positives",
        "UDR with FN_u_star_excl_known_tp",
        unit="%",
        better="higher",
        undefined=_NO_UNKNOWN,
        count=("num_unknown_gt",),
    ),
    Measure(
        "UDP_excl_known_tp",
        "unknown detection precision without known true positives",
        "UDP with FN_u_star_excl_known_tp",
        unit="%",
        better="higher",
        undefined=f"{_NO_UNKNOWN}, or TP_u + FN_u_star_excl_known_tp is 0",
    ),
    Measure(
        "num_unknown_gt",
        "unknown objects",
        "N_u: unknown objects that count (not difficult; clean: not crowd either), once for each line of "
        "the image list",
        unit="count",
    ),
    Measure(
        "TP_u", "found unknown objects", "unknown objects found by a detection called unknown", unit="count"
    ),
    Measure("FN_u", "missed unknown objects", "N_u - TP_u", unit="count"),
    Measure(
        "FN_u_star",
        "unknown objects called known",
        "unknown objects that no detection called unknown found, with at least one detection of a known class on them, "
        "whatever its score, once for each line of the image list; detections that are true positives of a known "
        "object included",
        unit="count",
        source=_REOWOD,
    ),
    Measure(
        "FN_u_star_excl_known_tp",
        "unknown objects called known, without known true positives",
        "the same without detections that are true positives of a known object",
        unit="count",
    ),
)
DEFINITIONS: dict[str, str] = {
    "matching": "per class, by falling score, ties in input order; the profile says which object a detection takes",
    "mAP_prev, mAP_cur, mAP_both": _MEAN_AP,
    **formulas(MEASURES, "num_unknown_gt", "AP_unknown"),
    "TP_u, FN_u": "unknown objects found by a detection called unknown, and N_u - TP_u",
    **formulas(MEASURES, "UR", "P_unknown", "FN_u_star", "FN_u_star_excl_known_tp", "UDR", "UDP"),
    **formulas(MEASURES, "A_OSE_detections", "A_OSE_objects", "WI", "WI_closed_set_denominator"),
    "WI_at_recall": "WI at recalls 0.1 to 0.9; WI_curve: 0.01 to 1.00, both denominators",
    "on": "IoU of the profile's matching threshold with the object, whatever its other detections",
}


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: one detector on the test part of each task, under each profile."""
    manifest = data["manifest"]
    parts = dict(zip(data["inputs"], () if manifest is None else manifest["parts"], strict=False))
    for task, inputs in data["inputs"].items():
        for profile in data["profiles"]:
            section = data[f"{task}/{profile}"]
            settings = section["settings"]
            yield Scored(
                part=parts.get(task, task),
                task=task,
                variant=profile,
                numbers=section,
                truth=truth_digests(data, task) | {"task": data["tasks"][task]},
                predictions={task: inputs["detections"]},
                settings={"task": task, "repeats": settings["repeats"]},
                operating_point={"WI_recall": settings["WI_recall"], "iou": settings["iou"]},
                method=stem_of(inputs["detections"]),
            )


# 2: owdetr has its recalls in floating point; with --repeats keep, copies of an object that was found are no FN_u_star.
REPORT = Report("owod", MEASURES, scored, lambda result: (), algorithm=2)
