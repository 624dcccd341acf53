"""All measures of the Elephant paper for a detector, as a single result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np

from curation.benchmarks.elephant import measures
from curation.benchmarks.elephant.bootstrap import wilderness_intervals
from curation.benchmarks.elephant.measures import (
    ALL_CLASSES,
    INTERPOLATED,
    KINDS,
    OFFICIAL,
    OWOD,
    PAPER,
    SHARED,
    TABLE_4_BETAS,
    TABLES,
    WR1,
    Record,
)
from curation.benchmarks.rules.wilderness import level_order
from curation.core import figures as style
from curation.core.arguments import Replicates, Seed
from curation.core.columns import distinct
from curation.core.errors import EvaluationError, UsageError
from curation.core.figures import INK, MARKERS, MUTED, RECALL_COLOURS, SERIES, SMALL, plain, save_figure, set_title
from curation.core.process import steps
from curation.evaluation import inputs, open_set
from curation.evaluation.curves import precision_recall
from curation.evaluation.figures import precision_recall_curves, require_content
from curation.evaluation.inputs import POLICY, READING, CategoryIds, Policy, Reading, Truth
from curation.evaluation.matching import Matches, OperatingPoints, assign, recall_names, tenth_names, thresholds
from curation.evaluation.measures import Measured
from curation.evaluation.open_set import LEVEL_COUNTS, LevelCounts
from curation.evaluation.outcomes import Outcomes, outcomes_by_class
from curation.evaluation.problem import Detections, GroundTruth, Scene
from curation.evaluation.result import Figure, Report, Result, Scored, Table, stem_of, tidy_tables, truth_digests
from curation.evaluation.truth import check_closed, check_wilderness, ground_truth
from curation.evaluation.variants import Difficult
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of
from curation.sources.source import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Variant = Literal["paper", "official", "all"]
VARIANTS: dict[str, str] = {
    PAPER.name: PAPER.meaning,
    OFFICIAL.name: OFFICIAL.meaning,
    "all": "both, difficult objects ignored and counted, integer and float32 level counts",
}

PARTS = ("closed", "wilderness")
RULE = "wilderness"
"""The rule of benchmarks from a user's own data."""
_TENTHS = dict(zip(tenth_names(range(1, 11)), range(1, 11), strict=True))
_BETAS = ",".join(TABLE_4_BETAS)
Texts = str | tuple[str, ...]
"""Decimal texts, with commas between them or as a tuple."""


@dataclass(frozen=True, kw_only=True)
class ElephantOptions:
    """What to compute.

    Attributes
    ----------
    variant : {"paper", "official", "all"}
        variant of the measures
    difficult : {"ignore", "count"}
        difficult objects under the paper's variant, and in all that rests on its matching
    level_counts : {"integer", "float32"}
        images of a wilderness level: floor(k*N/10), or the official code's product of a float32 ratio and N, as NumPy 1
        computes it, in double (NumPy 2 has another)
    recalls : str or tuple of str
        tenths
    fbeta_ratios : str or tuple of str, optional
        wilderness ratios (default: 0 to 4.25 in quarters, as far as images go)
    betas : str or tuple of str
        of F-beta
    fbeta_formula : {"correct", "published"}
        published: as Table 4 prints b = 0.5, without the denominator; the threshold is that of the correct one
    bootstrap : int
        replicates of confidence intervals
    seed : int
        of the bootstrap
    """

    variant: Variant = "paper"
    difficult: Difficult = "ignore"
    level_counts: LevelCounts = "integer"
    recalls: Annotated[Texts, "R,R"] = "0.1,0.3,0.5"
    fbeta_ratios: Annotated[Texts | None, "W,W"] = None
    betas: Annotated[Texts, "B,B"] = _BETAS
    fbeta_formula: measures.Formula = "correct"
    bootstrap: Replicates = 0
    seed: Seed = 0

    @property
    def tenths(self) -> tuple[int, ...]:
        """Return the recalls in tenths.

        Raises
        ------
        UsageError
            One is none of 0.1 to 1.0, or given twice.
        """
        recalls = _texts(self.recalls)
        if len(set(recalls)) != len(recalls) or not set(recalls) <= set(_TENTHS):
            where, expected = f"--set recalls={','.join(recalls)}"[:200], "different ones of " + ", ".join(_TENTHS)
            raise UsageError("The recalls are not usable", where=where, expected=expected)
        return tuple(_TENTHS[recall] for recall in recalls)


OPTIONS = ElephantOptions()


def _texts(value: Texts) -> tuple[str, ...]:
    return tuple(value.split(",")) if isinstance(value, str) else value


def evaluate(
    *,
    truth: Annotated[Mapping[str, Truth] | Truth, "PART=FILE"] = MappingProxyType({}),
    detections: Annotated[Mapping[str, Path] | Path, "PART=FILE"],
    classes: Path | None = None,
    reading: Reading = READING,
    policy: Policy = POLICY,
    manifest: Annotated[str | Manifest | None, "MANIFEST"] = None,
    category_ids: CategoryIds | None = None,
    wilderness_part: Annotated[str, "PART"] = "wilderness",
    options: ElephantOptions = OPTIONS,
) -> Result:
    """Score a detector by wilderness impact and every other measure of the Elephant paper.

    Parameters
    ----------
    truth : mapping of str to Path or Source
        COCO JSON, or a dataset root; once for closed=, once for wilderness= (default: the sources that the manifest
        remembers)
    detections : mapping of str to Path
        COCO results (a JSON list, or one record a line), a table (.csv), or a folder of label files of YOLO
        (data.yaml, labels/STEM.txt) or of VOC results (comp4_det_test_CLASS.txt); may be compressed by
        gzip; once for closed=, once for wilderness=
    classes : Path, optional
        {"known": [...], "unknown": [...]}; by default those of the manifest, else the categories of the closed truth
    reading : Reading
    policy : Policy
    manifest : str or Manifest, optional
        take its classes, and of each truth only the images of its lists
    category_ids : {"truth", "manifest"}, optional
        with --manifest, whose category ids detections use: the truth file's (default where it has ids), or the
        manifest's indices
    wilderness_part : str
        part of the manifest
    options : ElephantOptions

    Raises
    ------
    MissingFileError, EvaluationError, PredictionError
        A file is not there, or does not hold what it should.
    UsageError
        Options that cannot work together.
    """
    inputs.require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
    loaded = load_manifest(manifest) if isinstance(manifest, str) else manifest
    part_of = _parts_by_name(loaded, wilderness_part)
    names = tuple(part_of)
    files: dict[str, Path] = inputs.by_name(detections, "--detections", "part", names, wanted=names)
    sources = _sources(truth, loaded, part_of, reading)
    known = inputs.known_classes(sources["closed"], classes=classes, manifest=loaded, category_ids=category_ids)
    lists = _lists(loaded, part_of, sources)
    parts = {name: ground_truth(sources[name], known, lists.get(name)) for name in names}
    check_closed(parts["closed"])
    for name in names[1:]:
        check_wilderness(parts[name])
    others = dict.fromkeys(names[1:], parts["closed"]) | {"closed": parts[names[1]]}
    read = {
        name: inputs.detections_of(files[name], parts[name], policy, other=others[name])
        for name in steps(names, "reading detections")
    }
    closed, inside = parts["closed"].truth, read["closed"].detections
    wild = [(parts[name].truth, read[name].detections) for name in names[1:]]
    order, wilderness, outside = _wilderness(loaded, wild)
    scene = Scene(closed, inside, wilderness, outside)
    facts = inputs.about(
        known,
        {name: {"truth": parts[name].file, "detections": read[name].file} for name in names},
        manifest=inputs.manifest_record(loaded, wilderness_part=wilderness_part),
        option_files={"classes": classes},
    )
    listed = _ratio_parts(loaded, wilderness_part, wilderness)
    evaluated = evaluate_elephant(scene, options, part=wilderness_part, listed=listed, order=order)
    scored = [
        Scored(
            part=" + ".join(parts_of_row),
            variant=variant,
            method=stem_of(read["closed"].file),
            truth=truth_digests(facts, *slots),
            predictions={slot: read[slot].file for slot in slots},
            operating_point=point,
            # A class file goes before the manifest's classes: its digest is part of the truth.
            pinned=classes is None,
            found=of_part,
        )
        for variant, measured in evaluated.variants.items()
        for parts_of_row, slots, point, of_part in zip(
            (["closed"], ["closed", wilderness_part]),
            (["closed"], names),
            ({}, {"recalls": ", ".join(tenth_names(options.tenths))}),
            measures.by_part(measured),
            strict=True,
        )
    ]
    return Result(
        REPORT,
        {
            **facts,
            "variants": {name: VARIANTS[name.partition("_")[0]] for name in evaluated.variants},
            **evaluated.shared,
        },
        scored=scored,
        columns=lambda: precision_recall(
            closed.classes, inside, assign(closed, inside, replace(PAPER, difficult=options.difficult))
        ),
        outcomes=lambda: {PAPER.name: elephant_outcomes(scene, options, part=wilderness_part)},
    )


def _parts_by_name(manifest: Manifest | None, wilderness_part: str) -> dict[str, str]:
    """Return what truth and detections are given for, ``closed`` first, and the part of the manifest that each is of.

    The wilderness of a manifest of several sources is given source by source.
    """
    if manifest is None:
        if wilderness_part != "wilderness":
            raise UsageError(
                "--part wilderness=PART chooses a part of a manifest", expected="--manifest MANIFEST beside it"
            )
        return {name: name for name in PARTS}
    several = manifest.part(wilderness_part).sources if manifest.header.rule.protocol == RULE else ()
    return {"closed": "closed"} | dict.fromkeys(several if len(several) > 1 else PARTS[1:], wilderness_part)


def _sources(
    truth: Mapping[str, Truth] | Truth, manifest: Manifest | None, part_of: Mapping[str, str], reading: Reading
) -> dict[str, Source]:
    """Return the truth: the files that are given, else the sources that the manifest remembers."""
    if manifest is not None and len(part_of) > len(PARTS):
        given: dict[str, Any] = inputs.by_name(truth, "--truth", "part", tuple(part_of)) if truth else {}
        # Ids are those of the manifest's own datasets.
        slots = [slot for slot in manifest.slots if slot.name in part_of]
        opened = manifest.open_sources({name: path for name, path in given.items() if name != "closed"}, slots=slots)
        rest = {"closed": given["closed"]} if "closed" in given else {}
        closed = reading.open(rest["closed"], "closed") if rest else inputs.remembered_truth(manifest, ["closed"])
        return {name: closed if name == "closed" else opened[name] for name in part_of}
    if manifest is not None and isinstance(truth, Mapping) and not truth:
        truth = {name: inputs.remembered_truth(manifest, [part]) for name, part in part_of.items()}
    truths: dict[str, Truth] = inputs.by_name(truth, "--truth", "part", PARTS, wanted=PARTS)
    return {name: reading.open(truths[name], name) for name in steps(PARTS, "reading ground truth")}


def _lists(
    manifest: Manifest | None, part_of: Mapping[str, str], sources: Mapping[str, Source]
) -> dict[str, tuple[str, ...]]:
    """Return the ids of a manifest by what they are given for."""
    if manifest is None:
        return {}
    _, *names = part_of
    part = part_of[names[0]]
    closed, wilderness = manifest.ids("closed"), manifest.ids(part)
    if part == WR1 and len(wilderness) < len(closed):
        raise EvaluationError(
            "There are fewer wilderness images than closed ones",
            where=f"part wr1 of {manifest.header.name}",
            expected=f"{len(closed)} images",
            found=str(len(wilderness)),
            hint="--part wilderness=wilderness takes all there are",
        )
    if len(names) == 1:
        return {"closed": closed, names[0]: wilderness}
    number, _ = positions_of(wilderness, [sources[name] for name in names])
    # An image that no source holds is missed where the first one is read.
    owners = [names[place] for place in np.maximum(number, 0).tolist()]
    pairs = list(zip(wilderness, owners, strict=True))
    return {"closed": closed} | {name: tuple(image for image, owner in pairs if owner == name) for name in names}


def _wilderness(
    manifest: Manifest | None, parts: Sequence[tuple[GroundTruth, Detections]]
) -> tuple[str, GroundTruth, Detections]:
    """Return the order of the wilderness images, in words, and truth and detections in this order."""
    if manifest is None or manifest.header.rule.protocol != RULE:
        [(truth, detections)] = parts
        return "ascending image id", truth, detections
    words, order = level_order(manifest, [image for truth, _ in parts for image in truth.image_ids])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    starts = np.cumsum([0, *(truth.n_images for truth, _ in parts)])
    moved = [boxes.on(rank[start:]) for (_, boxes), start in zip(parts, starts, strict=False)]
    joined = moved[0] if len(moved) == 1 else Detections.joined(moved)
    return words, GroundTruth.joined([truth for truth, _ in parts], rank), joined


def _ratio_parts(manifest: Manifest | None, part: str, wilderness: GroundTruth) -> tuple[measures.Added, ...]:
    """Return the images of each list of a wilderness ratio, all of which are scored."""
    if manifest is None:
        return ()
    names = (
        [WR1]
        if manifest.header.rule.protocol != RULE
        else [entry.name for entry in manifest.header.parts if entry.subset_of == "wilderness" and entry.name != part]
    )
    added = []
    for name in names:
        if name in manifest.lists:
            listed = set(manifest.ids(name))
            images = np.array([image in listed for image in wilderness.image_ids], bool)
            added += [measures.Added(name, images)] if int(images.sum()) == len(listed) else []
    return tuple(added)


class Evaluated(NamedTuple):
    """What `evaluate_elephant` finds: of each variant, and what is the same under all of them."""

    variants: dict[str, Measured]
    shared: dict[str, Any]


def evaluate_elephant(
    scene: Scene,
    options: ElephantOptions = OPTIONS,
    *,
    part: str = "wilderness",
    listed: Sequence[measures.Added] = (),
    order: str = "ascending image id",
) -> Evaluated:
    """Return every number of the protocol as rows; undefined ones are None with a reason.

    Parameters
    ----------
    part : str
        What the wilderness images of the scene are called.
    listed : sequence of Added
        Lists of wilderness ratios; ``wr1`` among them is what is kept at a recall.
    order : str
        Of the wilderness images, in words.

    Returns
    -------
    Evaluated
        Variants are ``paper``, ``paper_difficult_counted``, ``official``, ``official_float32_counts``,
        ``paper_float32_counts``, …, as they were asked for. Shared are the rows of `measures.SHARED` and what they
        rest on.

    Raises
    ------
    UsageError, EvaluationError
        Options that cannot work on these parts.
    """
    if options.variant not in VARIANTS:
        raise UsageError("Unknown variant", expected=", ".join(VARIANTS), found=repr(options.variant)[:80])
    closed, wilderness = scene.closed, scene.wilderness

    @cache
    def matched(difficult: Difficult) -> tuple[Matches, OperatingPoints]:
        matches = assign(closed, scene.inside, replace(PAPER, difficult=difficult))
        return matches, thresholds(matches, scene.inside, options.tenths)

    matches, points = matched(options.difficult)
    levels = open_set.wilderness_levels(closed.n_images, wilderness.n_images, counts=options.level_counts)
    wr1 = next((added for added in listed if added.name == WR1), None)
    added = measures.at_ratio_1(scene) if wr1 is None else wr1
    # Where a list is the whole part, the rows of its levels are enough.
    listed = [each for each in listed if not each.images.all()]
    owod, errors = measures.owod(scene.parts), measures.open_set_errors(scene.parts, points)
    variants: dict[str, Measured] = {}
    for name, variant, difficult, counts in steps(list(_variants(options)), "variants"):
        if variant == OFFICIAL.name:
            measured = measures.official(scene, recalls_tenths=options.tenths, counts=counts, listed=listed)
        else:
            measured = measures.paper(scene, *matched(difficult), levels, listed)
        variants[name] = measured._replace(values=[*measured.values, *errors.values, *owod.values])
    gaps = measures.background_gap(closed, scene.inside, matches)
    bootstrap: dict[str, Any] = {"intervals": []}
    if options.bootstrap:
        bootstrap = wilderness_intervals(
            closed,
            scene.inside,
            matches,
            wilderness,
            scene.outside,
            levels=dict(zip(levels.names, levels.images.tolist(), strict=True)),
            recalls_tenths=options.tenths,
            replicates=options.bootstrap,
            seed=options.seed,
            difficult=options.difficult,
            listed=wr1,
        )
    tables: dict[str, list[Record]] = {
        "images": [
            {
                "part": name,
                "images": truth.n_images,
                "without_annotation": truth.n_images - len(distinct(truth.image)),
                "objects": len(truth.label),
                "known": int((truth.label >= 0).sum()),
                "unknown": int((truth.label < 0).sum()),
                "difficult": int(truth.difficult.sum()),
                "crowd": int(truth.crowd.sum()),
            }
            for name, (truth, _) in zip(("closed", part), scene.parts, strict=True)
        ],
        "detections": [
            {"part": of_part, "class": name, "detections": count}
            for of_part, (_, boxes) in zip(("closed", part), scene.parts, strict=True)
            for name, count in zip(
                closed.classes, np.bincount(boxes.label, minlength=len(closed.classes)).tolist(), strict=True
            )
        ],
        **errors.tables,
        **owod.tables,
        "diagnosis": measures.error_kinds(scene, matches, points, added),
        "overlaps": measures.class_overlaps(scene, points, added),
        "fbeta": measures.fbeta_operating_points(
            scene,
            matches,
            ratios=None if options.fbeta_ratios is None else _texts(options.fbeta_ratios),
            betas=_texts(options.betas),
            formula=options.fbeta_formula,
        ),
        **(gaps or {"background_gaps": [], "background_histogram": []}),
        "intervals": bootstrap.pop("intervals"),
    }
    return Evaluated(
        variants,
        {
            "variant": options.variant,
            "difficult": options.difficult,
            "level_counts": {options.level_counts: LEVEL_COUNTS[options.level_counts]},
            "definitions": measures.DEFINITIONS,
            "true_classes": list(measures.column_names(scene)),
            "wilderness_order": order,
            "fbeta_formula": {options.fbeta_formula: measures.FORMULAS[options.fbeta_formula]},
            "bootstrap": bootstrap or None,
            **tables,
            "undefined": {}
            if gaps
            else {"background_gaps": "the detections carry no background_score (only softmax detectors have one)"},
        },
    )


def elephant_outcomes(
    scene: Scene, options: ElephantOptions = OPTIONS, *, part: str = "wilderness"
) -> tuple[Outcomes, ...]:
    """Return the outcome of each detection of both parts: matched as the paper says, with our count of A-OSE.

    ``kept_at`` marks the detections at or above the closed set's threshold of a recall; on the wilderness these
    are the FP_o of wilderness impact.
    """
    rules = replace(PAPER, difficult=options.difficult)
    points = thresholds(assign(scene.closed, scene.inside, rules), scene.inside, options.tenths)
    limits = dict(zip(recall_names(points), points.threshold, strict=True))
    outcomes = []
    for name, (truth, detections) in zip(("closed", part), scene.parts, strict=True):
        kept_at = {recall: detections.scores >= limit[detections.label] for recall, limit in limits.items()}
        outcomes.append(outcomes_by_class(truth, detections, rules, strict=OWOD.strict, part=name, kept_at=kept_at))
    return tuple(outcomes)


def _variants(options: ElephantOptions) -> Iterator[tuple[str, str, Difficult, LevelCounts]]:
    """Yield name, variant, treatment of difficult objects and rule for level counts of each one asked for."""
    difficult_rule, counted = options.difficult, options.level_counts
    variants: list[tuple[str, Difficult, LevelCounts]] = [(options.variant, difficult_rule, counted)]
    if options.variant == "all":
        variants = [("paper", "ignore", counted), ("paper", "count", counted)]
        variants += [("official", difficult_rule, "integer"), ("official", difficult_rule, "float32")]
    for variant, difficult, counts in variants:
        name = variant + ("_difficult_counted" if (variant, difficult) == ("paper", "count") else "")
        yield name + ("_float32_counts" if counts == "float32" else ""), variant, difficult, counts


_ERROR_COLOURS = {
    "localization": "#56B4E9",
    "similar": "#009E73",
    "other": "#E69F00",
    "mixed_unknown": "#B8B8B8",
    "unknown_unknown": "#D55E00",
}
_PART_TITLES = {"closed": "closed set", WR1: "closed set + WR1", "ratio 1.0": "closed set + as many wilderness images"}
_FLAVOURS = {"mAP11": "mAP (11-point)", "mAP_area": "mAP (area)", "mAP": "mAP (11-point, official)"}


def wilderness_curve(
    results: Mapping[str, Mapping[str, Sequence[Record]]],
    stem: Path,
    *,
    reading: str = "macro",
    intervals: Mapping[str, Sequence[Record]] | None = None,
    note: str = "",
) -> list[Path]:
    """Draw wilderness impact and mAP against the wilderness ratio (Elephant paper, Fig. 5).

    Parameters
    ----------
    results : mapping of detector name to rows of the tables ``levels`` and ``impact``
        Of one variant; what is undefined is a gap in a line.
    stem : Path
        Path without suffix.
    reading : str
        ``macro``, ``pooled`` or ``ratio_of_mean_precision``; the official code has but one.
    intervals : mapping of detector name to rows of the table ``intervals``, optional
        Drawn as bands around WI.
    note : str
        Added to the title, such as the variant.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """
    require_content(results, stem, "results")
    # A list has no place among the levels, which are nested.
    results = {
        detector: {
            name: [row for row in result[name] if not row["ratio"].startswith("wr")] for name in ("levels", "impact")
        }
        for detector, result in results.items()
    }
    recalls = list(dict.fromkeys(row["recall"] for result in results.values() for row in result["impact"]))
    official = {name: result["impact"][0]["over_classes"] == INTERPOLATED for name, result in results.items()}
    shown_reading = INTERPOLATED if all(official.values()) else reading
    flavours = [flavour for flavour in _FLAVOURS if (flavour == "mAP") in official.values()]
    levels = {name: [row["ratio"] for row in result["levels"]] for name, result in results.items()}
    impacts = {
        (name, recall): [
            row["WI"]
            for row in result["impact"]
            if row["recall"] == recall and row["over_classes"] in (reading, INTERPOLATED)
        ]
        for name, result in results.items()
        for recall in recalls
    }
    rows = []
    for detector, result in results.items():
        columns = [impacts[detector, recall] for recall in recalls]
        for k, row in enumerate(result["levels"]):
            averages = (row.get(flavour) for flavour in flavours)
            rows.append((detector, row["ratio"], *(column[k] if column else None for column in columns), *averages))
    header = ("detector", "wilderness_ratio", *(f"WI_{shown_reading}_recall_{r}" for r in recalls), *flavours)

    def draw() -> Canvas:
        alone = len(results) == 1
        # One detector has a line a recall; several have a panel a recall.
        panels = [recalls] if alone else [[recall] for recall in recalls]
        figure, axes = style.small_multiples(len(panels) + 1, height=2.3)
        for axis, panel in zip(axes[:-1], panels, strict=True):
            lines = [(recall, detector) for recall in panel for detector in results]
            for number, (recall, detector) in enumerate(lines):
                colour = SERIES[number % len(SERIES)]
                colour = RECALL_COLOURS.get(recall, colour) if alone and set(panel) <= set(RECALL_COLOURS) else colour
                if impacts[detector, recall]:
                    label = f"recall {recall}" if alone else plain(detector)
                    _draw_line(axis, levels[detector], impacts[detector, recall], number, label, colour)
                band = [
                    row
                    for row in (intervals or {}).get(detector, ())
                    if (row["measure"], row["recall"], row["over_classes"]) == ("WI", recall, reading)
                ]
                if band:
                    _draw_band(axis, levels[detector], band, colour)
            axis.set_title("Wilderness impact" if alone else f"Impact at recall {panel[0]}")
            axis.set_ylim(bottom=0)
        if alone:
            axes[0].legend(loc="upper left")
        else:
            highest = max(axis.get_ylim()[1] for axis in axes[:-1])
            for axis in axes[:-1]:
                axis.set_ylim(0, highest)
            style.add_key(figure, axes)
        drawn = {
            (detector, flavour): [row[flavour] for row in result["levels"]]
            for detector, result in results.items()
            for flavour in flavours[:2]
            if (flavour == "mAP") == official[detector]
        }
        _draw_mean_precision(axes[-1], levels, drawn)
        style.label_outer(axes, "wilderness ratio", "wilderness impact")
        axes[-1].set_ylabel("mAP (%)")
        set_title(figure, f"Wilderness impact ({shown_reading.replace('_', ' ')}) and mAP", note)
        return figure

    return save_figure(draw, stem, header, rows)


def _draw_mean_precision(
    axis: Axes, levels: Mapping[str, Sequence[str]], averages: Mapping[tuple[str, str], Sequence[float | None]]
) -> None:
    """Draw mAP against the wilderness ratio, by detector and flavour: the first flavour solid, area AP dashed."""
    alone = len(levels) == 1
    for number, detector in enumerate(levels):
        for flavour in (flavour for name, flavour in averages if name == detector):
            dashed = flavour == "mAP_area"
            label = _FLAVOURS[flavour] if alone else "_hidden" if dashed else plain(detector)
            # The colours of a single detector's other panel are recalls.
            colour = INK if alone else ""
            line = _draw_line(axis, levels[detector], averages[detector, flavour], number, label, colour)
            if dashed:
                line.set(linestyle="--", marker="")
    several = len({flavour for _, flavour in averages}) > 1
    axis.set_title("mAP (dashed: area)" if not alone and several else "mAP")
    axis.set_ylim(bottom=0)
    if alone:
        axis.legend(loc="best")


def _draw_line(
    axis: Axes, levels: Sequence[str], values: Sequence[float | None], number: int, label: str, colour: str = ""
) -> Any:
    axis.locator_params(axis="x", nbins=6)
    x, y = list(map(float, levels)), [math.nan if value is None else value for value in values]
    look: dict[str, Any] = {"color": colour or SERIES[number % len(SERIES)], "marker": MARKERS[number % len(MARKERS)]}
    (line,) = axis.plot(x, y, markevery=max(1, len(x) // 10), label=label, **look)
    return line


def _draw_band(axis: Axes, levels: Sequence[str], interval: Sequence[Record], colour: str) -> None:
    band = [row for row in interval if row["low"] is not None and row["ratio"] in levels]
    x, low, high = ([float(row[side]) for row in band] for side in ("ratio", "low", "high"))
    label = "bootstrap interval"
    is_named = label in axis.get_legend_handles_labels()[1]
    axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0, label="" if is_named else label)


def error_bars(diagnosis: Sequence[Record], detector: str, stem: Path, *, recall: str = "0.3") -> list[Path]:
    """Draw the shares of each kind of error among the kept detections, per class (Elephant paper, Fig. 3).

    Parameters
    ----------
    diagnosis : rows of the table ``diagnosis``
        A class without a threshold has no bar.
    recall : str
        The operating point.
    """
    require_content(diagnosis, stem, "diagnosis")
    drawn = [row for row in diagnosis if row["recall"] == recall and row["correct"] is not None]
    bars = {part: part_rows for part in _PART_TITLES if (part_rows := [row for row in drawn if row["part"] == part])}
    rows = [
        (detector, part, row["class"], recall, *(row[kind] for kind in KINDS))
        for part, part_rows in bars.items()
        for row in part_rows
    ]

    def draw() -> Canvas:
        figure = style.new_figure(style.PAGE, 0.17 * len(bars["closed"]) + 1.3)
        axes = figure.subplots(1, len(bars), squeeze=False, sharex=True)[0]
        # Room for the count beside the longest bar.
        longest = max(0.01, *(_draw_error_bars(axis, bars[part]) for axis, part in zip(axes, bars, strict=True)))
        for axis, part in zip(axes, bars, strict=True):
            names = [plain(row["class"], 20) if axis is axes[0] else "" for row in bars[part]]
            axis.set_yticks(np.arange(len(names))[::-1], names)
            axis.set(title=_PART_TITLES[part], xlabel="share of kept detections", xlim=(0, longest * 1.25))
        style.add_key(figure, axes.tolist())
        set_title(figure, f"Errors at the threshold of recall {recall}")
        return figure

    return save_figure(draw, stem, ("detector", "section", "class", "recall", *KINDS), rows)


def _draw_error_bars(axis: Axes, bars: Sequence[Record]) -> float:
    """Draw one stacked bar a class, the shares of each kind of error, and return the longest."""
    positions = np.arange(len(bars))[::-1]
    totals = np.array([sum(row[kind] for kind in ("correct", *_ERROR_COLOURS)) for row in bars])
    left = np.zeros(len(bars))
    look: dict[str, Any] = {"height": 0.72, "edgecolor": "white", "linewidth": 0.5}
    for kind, colour in _ERROR_COLOURS.items():
        share = np.array([row[kind] for row in bars]) / np.maximum(totals, 1)
        if share.any():
            axis.barh(positions, share, left=left, color=colour, label=kind.replace("_", " "), **look)
        left += share
    for position, end, total in zip(positions, left, totals, strict=True):
        text = f" n = {total}" if total else " none kept"
        axis.text(end, position, text, va="center", fontsize=SMALL, color=MUTED)
    axis.set_ylim(-0.6, len(bars) - 0.4)
    axis.grid(visible=False, axis="y")
    return float(left.max())


def confusion_figure(
    overlaps: Sequence[Record], detected: Sequence[str], true: Sequence[str], stem: Path, *, note: str = ""
) -> list[Path]:
    """Draw what the detections of each known class lie on (Elephant paper, Fig. 4): log colour, zero white.

    Parameters
    ----------
    overlaps : rows of the table ``overlaps``
        Of one recall and part; the background is not drawn.
    detected, true : sequence of str
        The known classes, and these followed by all others.
    """
    require_content(true if detected else (), stem, "confusion matrix")
    counts = np.zeros((len(detected), len(true)), np.int64)
    for row in overlaps:
        if row["true"]:
            counts[detected.index(row["detected"]), true.index(row["true"])] = row["detections"]
    has_unknown = len(true) > len(detected)

    def draw() -> Canvas:
        from matplotlib.colors import LogNorm

        most = max(int(counts.max()), 10)
        figure, axis, fits = style.new_matrix(true, detected, "detected class")
        panel = np.ma.masked_equal(counts.T, 0)
        image = axis.imshow(panel, cmap="viridis_r", norm=LogNorm(1, most), aspect="auto", interpolation="none")
        for row, column in np.argwhere(counts.T).tolist() if fits else ():
            count = int(counts[column, row])
            colour = "white" if count > most**0.45 else INK
            axis.text(column, row, f"{count}", ha="center", va="center", fontsize=SMALL, color=colour)
        if has_unknown:
            # The known classes come first: what lies below the line is not in the training set.
            axis.axhline(len(detected) - 0.5, color=INK, linewidth=1.2)
        axis.set_ylabel("true class: the object of highest IoU")
        style.add_scale(figure, axis, image, "detections")
        notes = "; ".join(filter(None, [note, "below the line: unknown classes" if has_unknown else ""]))
        set_title(figure, "Confusion of true and detected classes", notes)
        return figure

    rows = [(name, *line) for name, line in zip(detected, counts.tolist(), strict=True)]
    return save_figure(draw, stem, ("detected", *true), rows)


def background_histogram(gaps: Sequence[Record], bins: Sequence[Record], stem: Path) -> list[Path]:
    """Draw the gap between class and background score of correct detections, a panel a class (Elephant paper, Fig. 8).

    A class without correct detections has no panel; the table lists it.

    Parameters
    ----------
    gaps, bins : rows of the tables ``background_gaps`` and ``background_histogram``
    """
    require_content(bins, stem, "background scores")
    names = dict.fromkeys(row["class"] for row in bins)
    class_gaps = [row for row in gaps if row["class"] in names]
    drawn = [row for row in class_gaps if row["n"]] or class_gaps

    def draw() -> Canvas:
        figure, axes = style.small_multiples(len(drawn), most=5, height=1.45)
        look: dict[str, Any] = {"color": SERIES[0], "edgecolor": "white", "linewidth": 0.6}
        for axis, gap in zip(axes, drawn, strict=True):
            own = [row for row in bins if row["class"] == gap["class"]]
            counts = [row["true_positives"] for row in own]
            axis.bar([row["from"] for row in own], counts, width=0.1, align="edge", **look)
            axis.axvline(0, color=INK, linewidth=0.8)
            axis.set(xlim=(-1, 1), xticks=(-1, 0, 1), title=plain(gap["class"], 17))
            axis.set_ylim(0, max(*counts, 1) * 1.65)
            axis.grid(visible=False)
            style.whole_numbers(axis, most=3)
            spread = "n = {n}\nmean {mean:.2f}\nstd {std_population:.2f}".format_map(gap) if gap["n"] else "n = 0"
            axis.text(0.03, 0.98, spread, transform=axis.transAxes, va="top", fontsize=SMALL, color=MUTED)
        style.label_outer(axes, "score gap", "true positives")
        set_title(figure, "Background gap of correct detections", "score of the class less that of background")
        return figure

    return save_figure(draw, stem, ("class", "from", "to", "true_positives"), [tuple(row.values()) for row in bins])


def drawings(result: Result) -> Iterator[Figure]:
    """Yield the figures of a result: those of its first variant, and those of its closed matching."""
    data, first = result.data, next(scored for scored in result.scored if scored.found.tables)
    method, tables = first.method, first.found.tables if first.found else {}
    by_name = {
        name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for name, table in tables.items()
    }
    recalls = dict.fromkeys(row["recall"] for row in data["diagnosis"])
    recall = "0.3" if "0.3" in recalls else next(iter(recalls))
    overlaps = [row for row in data["overlaps"] if row["recall"] == recall]
    # With wilderness images, where there are enough.
    part = data["diagnosis"][-1]["part"]
    lies_on = [row for row in overlaps if row["part"] == part]
    known = [row["class"] for row in by_name["classes"]]
    # The intervals are those of the paper's variant: they are not drawn around another.
    bands = {method: data["intervals"]} if first.variant.startswith(PAPER.name) else None
    marks = {method: by_name["operating_points"]} if "operating_points" in by_name else None
    has_errors = any(
        row["correct"] is not None and row["class"] != ALL_CLASSES
        for row in data["diagnosis"]
        if row["recall"] == recall
    )
    note = f"variant {first.variant.replace('_', ' ')}"
    curve = partial(wilderness_curve, {method: by_name}, intervals=bands, note=note)
    bars = partial(error_bars, data["diagnosis"], method, recall=recall)
    curves = partial(precision_recall_curves, {method: result.columns}, thresholds=marks, note="closed set")
    gaps = partial(background_histogram, data["background_gaps"], data["background_histogram"])
    yield Figure("wilderness_curve", curve)
    yield Figure("error_diagnosis", bars if has_errors else None)
    yield Figure("confusion", partial(confusion_figure, lies_on, known, data["true_classes"], note=f"recall {recall}"))
    yield Figure("precision_recall", curves if result.columns else None)
    yield Figure("background_gap", gaps if data["background_histogram"] else None)


def _tables(result: Result) -> Iterator[Table]:
    yield from tidy_tables(result)
    for table in SHARED:
        names = [column.name for column in table.columns]
        rows = [tuple(row[name] for name in names) for row in result.data[table.name]]
        printed = [row for row in rows if table.printed(row)] if table.printed else None
        title, file = table.title if rows else "", bool(rows) and table.name in REPORT.files
        yield Table(table.name, table.columns, rows, title, printed, file=file)


REPORT = Report(
    "elephant",
    measures.MEASURES,
    tables=_tables,
    drawings=drawings,
    # 2: official: closed images without annotation leave N.
    # 3: average precision is in %.
    # 4: measures of the closed set have separate rows; wr1 is the manifest's list.
    algorithm=4,
    # Figures have CSV files of what is drawn of the others.
    files=("measures", *(table.name for table in TABLES), "fbeta", "open_set_errors", "diagnosis", "background_gaps"),
    figures=("wilderness_curve", "error_diagnosis", "confusion", "precision_recall", "background_gap"),
    tidy=TABLES,
    places=("variant",),
)
