"""Open-vocabulary detection: average precision of base and of novel classes, in each setting.

AP is computed on all images of the lists (generalized), for base and novel classes on the images of each group
(constrained), or on every image (whole). A benchmark's file declares classes, settings, variants and measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from curation.benchmarks.parts import images_with
from curation.benchmarks.published import classes_in_roles
from curation.core.canonical import sha256_of_lines
from curation.core.errors import EvaluationError, PredictionError
from curation.core.process import stage
from curation.evaluation.coco_precision import coco_precision
from curation.evaluation.inputs import POLICY, READING, Policy, Reading, Truth, about
from curation.evaluation.measures import Measure, Measured, Value
from curation.evaluation.problem import Detections, GroundTruth, KnownClasses
from curation.evaluation.readers import read_detections
from curation.evaluation.result import Column, Report, Result, Scored, Tidy, stem_of, truth_digests
from curation.evaluation.truth import ground_truth
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Source

SETTINGS = {"generalized": ("all",), "constrained": ("seen", "unseen"), "whole": ("whole",)}
"""Lists that are scored in each setting."""
_SETTINGS = {
    "generalized": "images with a class of either kind, all classes together",
    "constrained": "base classes on images with a base class, and novel ones on images with a novel class",
    "whole": "all images and classes",
}
"""Help of each setting."""
OUTSIDE = "left out: detections of the 15 classes that are neither base nor novel"

_LISTS = (Column("list"), Column("images", "count"), Column("sha256", "digest", "digest"),
          *(Column(name, "count") for name in ("objects", "crowd", "detections")))  # fmt: skip


class Vocabulary(NamedTuple):
    """Classes of a benchmark in the order of its file."""

    title: str
    base: tuple[str, ...]
    novel: tuple[str, ...]
    left_out: tuple[str, ...]

    def classes_in(self, group: str) -> tuple[str, ...]:
        """Return the classes of a list or mean; the images of the list ``seen`` show at least one base class."""
        of_kind = {"seen": self.base, "base": self.base, "unseen": self.novel, "novel": self.novel}
        return of_kind.get(group, (*self.base, *self.novel))


def declared(protocol: str, facts: Mapping[str, Any]) -> tuple[Callable[..., Result], Report]:
    """Return the evaluation of the base and novel classes that a benchmark declares, and its report."""
    table, measures = facts["evaluation"], msgspec.convert(facts["measures"], tuple[Measure, ...])
    settings, variants, listed = table["settings"], table["variants"], facts["classes"][table["classes"]]
    entries = classes_in_roles(listed)
    by_role = {
        role: [entry.name for entry in entries if entry.role == role] for role in ("known", "unknown", "ignored")
    }
    names = (tuple(map(str, listed.get(role, members))) for role, members in by_role.items())
    vocabulary = Vocabulary(table["title"], *names)
    metrics = tuple(dict.fromkeys(measure.key.partition("_")[0] for measure in measures))
    averages = (Column("class"), Column("group"), *(Column(metric, "%") for metric in metrics))
    report = Report(
        protocol,
        measures,
        algorithm=table.get("algorithm", 1),
        files=("measures", "lists", "average_precision"),
        places=("case", "variant"),
        tidy=(
            Tidy("lists", _LISTS, title="Images that were scored"),
            Tidy("average_precision", averages, title=f"{' and '.join(metrics)} of each class"),
        ),
    )

    def evaluate(
        *,
        truth: Annotated[Truth, "FILE"],
        detections: Path,
        setting: str = settings[0],
        variant: str = next(iter(variants)),
        outside: Literal["error", "drop"] = "error",
        reading: Reading = READING,
        policy: Policy = POLICY,
    ) -> Result:
        """Score open-vocabulary detection: average precision of novel classes, of base classes and of both.

        Parameters
        ----------
        truth : Path or Source
            annotations with all base and novel classes; images are chosen from them by the rule of the lists
        detections : Path
            COCO results (a JSON list, or one record a line), a table (.csv), or a folder of label files of YOLO
            (data.yaml, labels/STEM.txt) or of VOC results (comp4_det_test_CLASS.txt); may be compressed by gzip
        setting : str
            {settings}
        variant : str
            {variants}
        outside : {"error", "drop"}
            detections of classes that are neither base nor novel: refuse, or leave out and report
        reading : Reading
        policy : Policy

        Raises
        ------
        MissingFileError, EvaluationError, PredictionError
            A file is missing or invalid.

        Examples
        --------
        >>> import curation
        >>> from curation.benchmarks.benchmark import fact
        >>> from curation.benchmarks.published import classes_in_roles
        >>> listed = fact("curation.extensions.benchmarks.{benchmark}", "classes", dict)["{classes}"]
        >>> names = enumerate((entry.name for entry in classes_in_roles(listed)), 1)
        >>> image = {"id": 1, "file_name": "1.jpg", "width": 60, "height": 60}
        >>> box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]}
        >>> truth = {"images": [image], "annotations": [{"id": 1, "area": 81, "iscrowd": 0, **box}]}
        >>> truth["categories"] = [{"id": number, "name": name} for number, name in names]
        >>> result = curation.evaluate.{benchmark}(truth=truth, detections=[{**box, "score": 0.9}])
        >>> round(result["{metric}_base"], 6)
        100.0
        """
        both = vocabulary.classes_in("all")
        with stage("reading ground truth"):
            source = reading.open(truth, "val2017", dataset=table.get("dataset", "coco"))
            known = _classes(source, vocabulary)
            part = ground_truth(source, known, None)
        with stage("reading detections"):
            read = read_detections(detections, part.truth, policy)
        is_scored = read.detections.label < len(both)
        if n := int((~is_scored).sum()):
            if outside == "error":
                counts = Counter(known.names[label] for label in read.detections.label[~is_scored].tolist())
                others = (f"{name} ({counts[name]:,})" for name in vocabulary.left_out if counts[name])
                raise PredictionError(
                    "Some detections have classes that are neither base nor novel",
                    where=str(detections),
                    expected=f"detections of the {len(both)} classes of {vocabulary.title}",
                    found=f"{n:,} of {', '.join(others)}"[:400],
                    hint="--on-error outside=drop leaves them out and reports their number",
                )
            read = replace(read, detections=read.detections.take(is_scored), reported={**read.reported, OUTSIDE: n})
        facts = about(known, {"test": {"truth": part.file, "detections": read.file}}, option_files={})
        chosen = [name for name in variants if variant in (name, "all")]
        scored = []
        for name in (offered for offered in settings if setting in (offered, "all")):
            with stage(f"COCO evaluation, {name}"):
                tables = _tables(name, part.truth, read.detections, source, vocabulary, metrics)
            scored += [
                Scored(
                    case=name,
                    variant=variant_name,
                    method=stem_of(read.file),
                    truth=truth_digests(facts),
                    predictions={"test": read.file},
                    settings={"setting": name, "outside": outside},
                    operating_point={"iou": ">= 0.5"},
                    found=Measured(list(_means(name, variant_name, tables, measures, vocabulary)), tables),
                )
                for variant_name in chosen
            ]
        facts |= {"outside": outside, "variants": {key: variants[key] for key in chosen}}
        return Result(report, facts, scored=scored)

    choice: Any = Literal
    evaluate.__annotations__ |= {"setting": choice[(*settings, "all")], "variant": choice[(*variants, "all")]}
    texts = {
        "{classes}": table["classes"],
        "{metric}": metrics[0],
        "{settings}": "; ".join(f"{name}: {_SETTINGS[name]}" for name in settings),
        "{variants}": "; ".join(f"{name}: {text}" for name, text in variants.items()),
    }
    for placeholder, text in texts.items():
        evaluate.__doc__ = (evaluate.__doc__ or "").replace(placeholder, text)
    return evaluate, report


def _classes(source: Source, vocabulary: Vocabulary) -> KnownClasses:
    """Return base and novel classes, then the classes left out, which a detector of all classes also has.

    Raises
    ------
    EvaluationError
        The truth lacks the category of a base or novel class.
    """
    numbers = dict(zip(source.categories.names, source.categories.category_ids, strict=True))
    both = vocabulary.classes_in("all")
    if missing := [name for name in both if name not in numbers]:
        raise EvaluationError(
            f"The truth lacks the categories of {len(missing)} of the {len(both)} classes",
            where=", ".join(record.name for record in source.files),
            expected=f"the {len(vocabulary.base)} base and {len(vocabulary.novel)} novel classes of {vocabulary.title}",
            found="none for " + ", ".join(missing)[:300],
            hint="use the annotation file of all classes; files of only seen or only unseen classes lack the others",
        )
    coco = {name: number for number, name, _ in COCO_CATEGORIES}
    # A class that the truth lacks has COCO's number, if the truth uses COCO's numbers.
    is_coco = all(numbers[name] == coco.get(name) for name in both)
    lent = {name: coco[name] for name in vocabulary.left_out if is_coco and coco[name] not in numbers.values()}
    names = (*both, *vocabulary.left_out)
    return KnownClasses(names, tuple(numbers.get(name, lent.get(name)) for name in names), vocabulary.title)


def _tables(
    setting: str,
    truth: GroundTruth,
    results: Detections,
    source: Source,
    vocabulary: Vocabulary,
    metrics: Sequence[str],
) -> dict[str, dict[str, list[Any]]]:
    """Return the average precision of each class in a setting, in %, and facts about the scored lists."""
    base = set(vocabulary.base)
    lists: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    for group in SETTINGS[setting]:
        names = dict.fromkeys(vocabulary.classes_in(group))
        shows = images_with(source, names) if group != "whole" else np.ones(len(source.images), np.bool_)
        ids = source.image_ids[shows].tolist()
        in_list = np.isin(truth.image_ids, ids)
        in_group = np.array([*(name in names for name in truth.classes), False])
        # Objects with label -1 do not count.
        objects = replace(truth, label=np.where(in_list[truth.image] & in_group[truth.label], truth.label, -1))
        guesses = results.take(in_list[results.image] & in_group[results.label])
        precision = np.full((10, 101, len(truth.classes)), np.nan)
        for label, figures in coco_precision(objects, guesses).items():
            precision[..., label] = figures
        lists.append(
            {
                "list": group,
                "images": int(in_list.sum()),
                "sha256": sha256_of_lines(sorted(ids)),
                "objects": int((objects.label >= 0).sum()),
                "crowd": int(truth.crowd[objects.label >= 0].sum()),
                "detections": len(guesses),
            }
        )
        values = {"AP50": 100 * precision[0].mean(axis=0), "AP": 100 * precision.mean(axis=(0, 1))}
        rows = {name: row for row, name in enumerate(truth.classes)}
        classes += [
            {"class": name, "group": "base" if name in base else "novel"}
            | {metric: None if np.isnan(ap := float(values[metric][rows[name]])) else ap for metric in metrics}
            for name in names
        ]
    tables = {"lists": lists, "average_precision": classes}
    return {name: {key: [row[key] for row in rows] for key in rows[0]} for name, rows in tables.items()}


def _means(
    setting: str, variant: str, tables: Mapping[str, Any], measures: Iterable[Measure], vocabulary: Vocabulary
) -> Iterator[Value]:
    """Yield the means of a variant, with a reason for each undefined mean."""
    for key in (measure.key for measure in measures):
        metric, _, group = key.partition("_")
        if group == "all" and setting == "constrained":
            continue
        values = dict(zip(tables["average_precision"]["class"], tables["average_precision"][metric], strict=True))
        names = vocabulary.classes_in(group)
        known = [values[name] for name in names if values[name] is not None]
        without = [name for name in names if values[name] is None]
        if not known or (without and variant == "detic"):
            yield Value(key, None, undefined=f"no object, crowd aside, of {', '.join(without)}"[:300])
        else:
            yield Value(key, float(np.mean(known)))
