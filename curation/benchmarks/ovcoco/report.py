"""How the results of ``curation evaluate ovcoco`` show themselves: measures, variants, tables."""

from __future__ import annotations

from collections.abc import Iterator
from operator import methodcaller

from curation.benchmarks.ovcoco.lists import BASE
from curation.evaluation.measures import Measure
from curation.evaluation.result import (
    Column,
    Data,
    Report,
    Result,
    Scored,
    Table,
    across,
    inputs_table,
    order_table,
    stem_of,
    truth_digests,
)

GENERALIZED, CONSTRAINED = "generalized", "constrained"
VARIANTS = {
    "ovr-cnn": "means over the precisions of all classes that have objects (OVR-CNN)",
    "detic": "means over classes; undefined where a class of the group has no object (Detic, custom_coco_eval.py)",
}
_AP50 = (
    "mean over {classes} of AP at IoU 0.5: 101 recall points, COCO's matching, at most 100 detections a class and image"
)
MEASURES = tuple(
    Measure(
        f"AP50_{group}",
        f"average precision at IoU 0.50, {classes}",
        _AP50.format(classes=classes),
        unit="share",
        better="higher",
        source="Zareian et al., CVPR 2021; Bansal et al., ECCV 2018",
        undefined=undefined,
        ranked=True,
    )
    for group, classes, undefined in (
        ("novel", "17 novel classes", "no novel class has an object; detic: one has none"),
        ("base", "48 base classes", "no base class has an object; detic: one has none"),
        ("all", "65 classes", "no class has an object; detic: one has none"),
    )
)


def _scored(data: Data) -> Iterator[Scored]:
    detections = data["inputs"]["test"]["detections"]
    for setting in data["settings"]:
        for variant in data["variants"]:
            yield Scored(
                case=setting,
                variant=variant,
                numbers=data[f"{setting}/{variant}"],
                method=stem_of(detections),
                truth=truth_digests(data),
                predictions={"test": detections},
                settings={"setting": setting, "outside": data["outside"]},
                operating_point={"iou": ">= 0.5"},
            )


def _tables(result: Result) -> Iterator[Table]:
    data, sections = result.data, result.sections
    yield inputs_table(data)
    yield across(
        "AP50, by setting and how means are taken",
        sections,
        [(one.key, "share", methodcaller("get", one.key)) for one in MEASURES],
    )
    firsts = {section["setting"]: section for section in sections.values()}
    settings = [one for one in data["settings"] if one in firsts]
    yield Table(
        "lists",
        tuple(map(Column, ("setting", "images", "n", "digest", "objects", "detections"))),
        [
            (name, group, one["images"], one["sha256"], one["objects"], one["detections"])
            for name in settings
            for group, one in firsts[name]["lists"].items()
        ],
        title="Images that were scored",
    )
    yield Table(
        "average_precision",
        (Column("setting"), Column("class"), Column("group"), Column("AP50", "share")),
        [
            (name, one, "base" if one in BASE else "novel", value)
            for name in settings
            for one, value in firsts[name]["AP50_per_class"].items()
        ],
        title="AP50 of each class",
        file=True,
    )
    yield order_table(
        {
            f"{name} {group}": count
            for name in settings
            for group, count in zip(firsts[name]["lists"], firsts[name]["decided_by_order"], strict=True)
        }
    )


# 2: of a truth with numbers of its own, COCO's number of a class that it lacks is no longer that class's.
REPORT = Report("ovcoco", MEASURES, _scored, _tables, algorithm=2, files=("average_precision",))
