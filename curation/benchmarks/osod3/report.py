"""What the evaluation of open-set detection with defined unknowns measures, and how a result of it shows itself."""

from __future__ import annotations

from collections.abc import Iterator

from curation.evaluation.measures import Measure, formulas
from curation.evaluation.result import Data, Report, Scored, stem_of

_FLOOR = 0.05
_OSOD3 = "Hosoya et al., arXiv 2207.09775"


def _average(key: str, name: str, formula: str, *, is_ranked: bool = False) -> Measure:
    return Measure(
        key,
        name,
        formula,
        unit="%",
        better="higher",
        source=_OSOD3,
        undefined="no such class has objects, or the problem does not define it",
        ranked=is_ranked,
    )


def _at_theta(key: str, name: str, formula: str, *, undefined: str = "", is_ranked: bool = False) -> Measure:
    is_ratio = key.startswith("WI")
    return Measure(
        key,
        name,
        formula,
        unit="ratio" if is_ratio else "count",
        better="lower",
        source=f"{_OSOD3}, equation 1"
        if key == "WI"
        else "Miller et al., ICRA 2018"
        if key == "A_OSE"
        else "",
        undefined=undefined,
        count=() if is_ratio else ("n", "unknown_objects"),
        ranked=is_ranked,
    )


MEASURES = (
    _average(
        "AP_unk",
        "average precision of unknown",
        "COCO AP of the one class unknown, in percent",
        is_ranked=True,
    ),
    _average(
        "AP_known",
        "average precision of known classes",
        "mean over known classes with objects of COCO AP (IoU 0.50:0.95, all areas, 100 detections a class and "
        "image), in percent",
        is_ranked=True,
    ),
    _at_theta(
        "A_OSE",
        "absolute open-set error at a confidence",
        "detections of known classes, score >= theta, that overlap an unknown object with IoU >= 0.5",
        is_ranked=True,
    ),
    _at_theta(
        "WI",
        "wilderness impact at a confidence",
        "FP_open / (TP + FP - FP_open) = P_K / P_KU - 1 exactly (equation 1 of the paper)",
        undefined="no detection but those on unknown objects",
        is_ranked=True,
    ),
    _at_theta(
        "FP_open", "open-set false positives at a confidence", "those of them that are false positives"
    ),
    _at_theta(
        "WI_all_fp",
        "wilderness impact of published code at a confidence",
        "A_OSE / (TP + FP), what published code computes; not P_K / P_KU - 1",
        undefined="no detection",
    ),
    _average("AP_known50", "average precision of known classes at IoU 0.50", "AP_known at IoU 0.50"),
    _average("AP_known75", "average precision of known classes at IoU 0.75", "AP_known at IoU 0.75"),
    _average("AP_unk50", "average precision of unknown at IoU 0.50", "AP_unk at IoU 0.50"),
    _average("AP_unk75", "average precision of unknown at IoU 0.75", "AP_unk at IoU 0.75"),
)
DEFINITIONS = formulas(MEASURES, "AP_known", "AP_unk", "A_OSE", "FP_open", "WI", "WI_all_fp")


def scored(data: Data) -> Iterator[Scored]:
    """Yield what was scored: one detector on each case, under each profile."""
    for case, section in data["cases"].items():
        inputs, manifest = data["inputs"][case], data["manifests"].get(case)
        for profile, curve in section["curves"].items():
            # A detector's floor in the literature; else the lowest threshold that was asked for.
            point = next((row for row in curve if row["theta"] == _FLOOR), curve[0])
            at_theta = {key: point[key] for key in ("A_OSE", "WI", "FP_open", "WI_all_fp") if key in point}
            yield Scored(
                part=manifest["part"] if manifest else case,
                case=case,
                variant=profile,
                numbers={**section, **at_theta},
                truth={"truth": inputs["truth"], "classes": data["classes"][case]},
                predictions={case: inputs["detections"]},
                settings={"outside": section["outside"].split(":")[0], "theta": f"{point['theta']:g}"},
                method=stem_of(inputs["detections"]),
                manifest=manifest,
            )


REPORT = Report("osod3", MEASURES, scored, lambda result: ())
