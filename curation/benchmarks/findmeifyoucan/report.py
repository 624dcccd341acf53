"""What the evaluation of out-of-distribution detection measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Iterator

from curation.evaluation.measures import Better, Measure, formulas
from curation.evaluation.ood import separability
from curation.evaluation.ood.detections import UNNAMED
from curation.evaluation.ood.separability import UNKNOWN_IF
from curation.evaluation.result import Data, Report, Scored, stem_of, truth_digests

_FMIYC = "Montoya et al., Find Me If You Can"
_EMPTY = "there are no ID detections, or no OOD detections"


def _separability(key: str, name: str, *, better: Better = "higher", is_ranked: bool = False) -> Measure:
    return Measure(
        key,
        name,
        separability.DEFINITIONS[key],
        unit="share",
        better=better,
        undefined=_EMPTY,
        count=("counts", "ood_detections"),
        ranked=is_ranked,
    )


def _rate(key: str, name: str, formula: str, *, better: Better = "higher") -> Measure:
    return Measure(
        key,
        name,
        formula,
        unit="%",
        better=better,
        source=f"{_FMIYC}, appendix D",
        undefined="the split has no object, or nothing is called unknown",
        count=("n_unknown_gt",),
        ranked=True,
    )


def _count(
    key: str, name: str, formula: str, *, better: Better | None = None, is_ranked: bool = False
) -> Measure:
    return Measure(key, name, formula, unit="count", better=better, count=("n_unknown_gt",), ranked=is_ranked)


MEASURES = (
    _separability("AUROC", "area under the ROC curve", is_ranked=True),
    _separability("AUPR_trapezoid", "area under precision and recall, by trapezoids", is_ranked=True),
    Measure(
        "FPR95",
        "false positive rate at 95 % true positive rate",
        "under the rule that was chosen",
        unit="share",
        better="lower",
        undefined=_EMPTY,
        paths=(("FPR95", "value"),),
        ranked=True,
    ),
    _rate(
        "nOSE",
        "normalised open-set error, in %",
        "official: 100 * AOSE / N_U; paper: 100 * objects_misclassified / N_U",
        better="lower",
    ),
    _count(
        "AOSE",
        "absolute open-set error",
        "detections of known classes whose best object they overlap, in both profiles",
        better="lower",
        is_ranked=True,
    ),
    _rate(
        "AP_U",
        "average precision of unknown",
        "area under the precision envelope of unknown detections by falling confidence (not OOD score), ties by "
        "image id and then file order, in %",
    ),
    _rate("P_U", "precision of unknown", "TP_U / (TP_U + FP_U), in %"),
    _rate("R_U", "recall of unknown", "TP_U / N_U, in %"),
    _separability("AUPR_step", "average precision of the scores"),
    _separability("FPR95_first", "FPR at 95 % TPR, first threshold", better="lower"),
    _separability("FPR95_nearest_vos", "FPR at 95 % TPR, nearest threshold", better="lower"),
    _separability("FPR95_ood_positive", "FPR at 95 % TPR, OOD positive", better="lower"),
    _count("n_unknown_gt", "objects", "N_U: all annotations of the split, crowd and group regions included"),
    _count("TP_U", "unknown detections that found an object", "unknown detections that found an object"),
    _count("FP_U", "unknown detections that found none", "unknown detections that found none"),
    _count(
        "objects_misclassified",
        "objects called known",
        "objects that no unknown detection found, and that are the best object of a known detection",
        better="lower",
    ),
    _count(
        "objects_ignored", "objects that were not found", "N_U - TP_U - objects_misclassified", better="lower"
    ),
)
DEFINITIONS: dict[str, str] = {
    **separability.DEFINITIONS,
    "population": "all detections on the ID test set against all detections on the OOD split, pooled over images, "
    "whatever they overlap",
    "unknown": f"a detection is called unknown where its {UNKNOWN_IF}",
    "N_U": "n_unknown_gt: all annotations of the split, crowd and group regions included",
    "TP_U, FP_U": "unknown detections that found an object, and that did not",
    "P_U, R_U": "TP_U / (TP_U + FP_U) and TP_U / N_U, in %",
    **formulas(MEASURES, "AP_U", "AOSE", "objects_misclassified", "objects_ignored", "nOSE"),
    "pct_images_without_predictions": "100 * images of the split without any detection / images of the split, images "
    "absent from the detections file included; 2 decimals",
    "wilderness impact": "left out: it has no meaning where no image shows a known class",
}


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: each score of one detector on each split, under each profile."""
    settings = data["settings"]
    for section in data["results"].values():
        split, method = section["split"], section["method"]
        inputs = data["inputs"][split]
        for profile in settings["profiles"]:
            own = section[profile] or {}
            reasons = {**section.get("undefined", {}), **own.get("undefined", {})}
            yield Scored(
                part=split,
                split=split,
                variant=profile,
                numbers={**section, **own, "undefined": reasons},
                truth=truth_digests(data, split),
                predictions={name: inputs[name] for name in ("detections", "id_scores")},
                settings={
                    "threshold": section["threshold_rule"],
                    "fpr": settings["fpr"]["rule"],
                    "official_compat": str(settings["official_compat"]).lower(),
                },
                operating_point={"t_star": str(settings["t_star"]), "threshold": str(section["threshold"])},
                method=stem_of(inputs["detections"]),
                score="" if method == UNNAMED else method,
            )


# 2: P_U is undefined without objects.
REPORT = Report("findmeifyoucan", MEASURES, scored, lambda result: (), algorithm=2)
