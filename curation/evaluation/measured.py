"""What a result of each protocol measured: one record a method, part and reading, for a leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.evaluation import voc
from curation.evaluation.headline import Measured, Result
from curation.evaluation.ood.records import UNNAMED

_FLOOR = 0.05
_TRUTH_OPTIONS = ("classes", "images")


def measured(result: Result) -> Iterator[Measured]:
    """Yield what was measured, in the order of the result.

    Parameters
    ----------
    result : mapping
        What ``curation evaluate`` prints with ``--json``.
    """
    yield from _READERS[result["protocol"]](result)


def _elephant(result: Result) -> Iterator[Measured]:
    manifest = result["manifest"]
    parts = ("closed", "wilderness" if manifest is None else manifest["wilderness_part"])
    files = {part: inputs["detections"] for part, inputs in result["inputs"].items()}
    for profile, section in result.items():
        if isinstance(section, Mapping) and "n_wild_images" in section:
            yield Measured(
                part=" + ".join(parts),
                profile=profile,
                numbers=section,
                truth=_truth(result),
                predictions=files,
                settings={},
                operating_point={"recalls": ", ".join(section["AWI"])},
                name=_stem(files["closed"]),
                # A class file goes before the manifest's classes: its digest is part of the truth.
                pinned="classes" not in result["option_files"],
            )


def _plain(result: Result) -> Iterator[Measured]:
    for one in voc.scored_of_plain(result):
        yield Measured(
            part=one.part,
            profile=one.variant,
            numbers=one.numbers,
            truth=one.truth,
            predictions=one.predictions,
            settings=one.settings,
            operating_point=one.operating_point,
            name=one.method,
        )


def _owod(result: Result) -> Iterator[Measured]:
    manifest = result["manifest"]
    parts = dict(zip(result["inputs"], () if manifest is None else manifest["parts"], strict=False))
    for task, inputs in result["inputs"].items():
        for profile in result["profiles"]:
            section = result[f"{task}/{profile}"]
            settings = section["settings"]
            yield Measured(
                part=parts.get(task, task),
                profile=profile,
                numbers=section,
                truth=_truth(result, task) | {"task": result["tasks"][task]},
                predictions={task: inputs["detections"]},
                settings={"task": task, "repeats": settings["repeats"]},
                operating_point={"WI_recall": settings["WI_recall"], "iou": settings["iou"]},
                name=_stem(inputs["detections"]),
            )


def _osod3(result: Result) -> Iterator[Measured]:
    for case, section in result["cases"].items():
        inputs, manifest = result["inputs"][case], result["manifests"].get(case)
        for profile, curve in section["curves"].items():
            # A detector's floor in the literature; else the lowest threshold that was asked for.
            point = next((row for row in curve if row["theta"] == _FLOOR), curve[0])
            yield Measured(
                part=manifest["part"] if manifest else case,
                profile=profile,
                numbers={**section, "A_OSE": point["A_OSE"], "WI": point["WI"]},
                truth={"truth": inputs["truth"], "classes": result["classes"][case]},
                predictions={case: inputs["detections"]},
                settings={"outside": section["outside"].split(":")[0], "theta": f"{point['theta']:g}"},
                operating_point={},
                name=_stem(inputs["detections"]),
                manifest=manifest,
            )


def _findmeifyoucan(result: Result) -> Iterator[Measured]:
    settings = result["settings"]
    for section in result["results"].values():
        split, method = section["split"], section["method"]
        inputs = result["inputs"][split]
        for profile in settings["profiles"]:
            yield Measured(
                part=split,
                profile=profile,
                numbers={**section, **(section[profile] or {})},
                truth=_truth(result, split),
                predictions={name: inputs[name] for name in ("detections", "id_scores")},
                settings={
                    "threshold": section["threshold_rule"],
                    "fpr": settings["fpr"]["rule"],
                    "official_compat": str(settings["official_compat"]).lower(),
                },
                operating_point={"t_star": str(settings["t_star"]), "threshold": str(section["threshold"])},
                name=_stem(inputs["detections"]),
                variant="" if method == UNNAMED else method,
            )


def _imagenet(result: Result) -> Iterator[Measured]:
    part = result["manifest"] and result["manifest"]["parts"]["scores"]
    for name, one in result["classifiers"].items():
        file = result["inputs"][name]["scores"]
        for grid, rates in one["oscr"].items():
            yield Measured(
                part=part or "",
                profile=grid,
                numbers={**one, "rates": rates["unknown"]},
                truth={"labels": file["labels_sha256"]},
                predictions={name: file},
                settings={},
                operating_point={"scores": file["kind"], "background": one["background"]},
                name=name,
                pinned=bool(part),
            )


_READERS: dict[str, Callable[[Result], Iterator[Measured]]] = {
    "elephant": _elephant,
    "voc": _plain,
    "coco": _plain,
    "owod": _owod,
    "osod3": _osod3,
    "findmeifyoucan": _findmeifyoucan,
    "imagenet": _imagenet,
}


def _truth(result: Result, *parts: str) -> dict[str, Any]:
    """Return digests of the truth of some parts and of files that name classes and images, and what was left out."""
    inputs = result["inputs"]
    return {
        "files": {
            part: {
                "sha256": sorted(file["sha256"] for file in inputs[part]["truth"]["files"]),
                "reported": inputs[part]["truth"]["reported"],
            }
            for part in parts or inputs
        },
        "options": {
            option: file["sha256"]
            for option, file in result["option_files"].items()
            if option in _TRUTH_OPTIONS
        },
    }


def _stem(file: Result) -> str:
    return Path(file["name"]).stem
