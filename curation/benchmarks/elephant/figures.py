"""Figures of an evaluation, each as PNG and SVG with the CSV of what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.benchmarks.elephant.diagnosis import EDGES
from curation.evaluation.figure_panels import (
    ERROR_COLOURS,
    FLAVOURS,
    SECTION_TITLES,
    Result,
    draw_cells,
    draw_error_bars,
    draw_impacts_of_many,
    draw_impacts_of_one,
    draw_mean_precision,
    impact_of,
    label_outer,
    new_figure,
    new_panels,
    set_title,
    spread_text,
)
from curation.evaluation.figures import require_content
from curation.figure_style import INK, MUTED, SERIES, plain, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def wilderness_curve(
    results: Mapping[str, Result],
    stem: Path,
    *,
    reading: str = "macro",
    intervals: Mapping[str, Result] | None = None,
    note: str = "",
) -> list[Path]:
    """Draw wilderness impact and mAP against the wilderness ratio (Elephant paper, Fig. 5).

    Parameters
    ----------
    results : mapping of detector name to result
        Each with ``levels`` (decimal texts), ``WI[recall][reading]`` (or ``WI[recall]``) and ``mAP11``, ``mAP_area`` or
        ``mAP``: one number a level, None where undefined (a gap in the line).
    stem : Path
        Path without suffix.
    reading : str
        ``macro``, ``pooled`` or ``ratio_of_mean_precision``.
    intervals : mapping of detector name to bootstrap result, optional
        Drawn as bands around WI.
    note : str
        Added to the title: the profile, say.

    Returns
    -------
    list of Path
        PNG, SVG, CSV.
    """
    require_content(results, stem, "results")
    recalls = list(dict.fromkeys(recall for result in results.values() for recall in result["WI"]))
    if all(isinstance(impact, list) for result in results.values() for impact in result["WI"].values()):
        # The official code has one reading, whatever is asked for.
        reading = "mean_interpolated_precision"
    flavours = [name for name in FLAVOURS if any(name in result for result in results.values())]
    rows = [
        (detector, level, *(_at(impact_of(result, recall, reading), k) for recall in recalls),
         *(_at(result.get(flavour), k) for flavour in flavours))
        for detector, result in results.items()
        for k, level in enumerate(result["levels"])
    ]  # fmt: skip
    header = ("detector", "wilderness_ratio", *(f"WI_{reading}_recall_{r}" for r in recalls), *flavours)

    def draw() -> Figure:
        alone = len(results) == 1
        n_panels = 2 if alone else len(recalls) + 1
        figure, axes = new_panels(n_panels, columns=2, width=4.2, height=3.1)
        if alone:
            draw_impacts_of_one(axes[0], results, recalls, reading, intervals)
        else:
            for axis, recall in zip(axes[:-1], recalls, strict=True):
                draw_impacts_of_many(axis, results, recall, reading, intervals)
        draw_mean_precision(axes[-1], results, flavours[:2])
        set_title(figure, f"Wilderness impact ({reading.replace('_', ' ')}) and mAP", note)
        return figure

    return save_figure(draw, stem, header, rows)


def error_bars(diagnoses: Mapping[str, Result], stem: Path, *, recall: str = "0.3", note: str = "") -> list[Path]:
    """Draw the shares of each kind of error among the kept detections, per class (Elephant paper, Fig. 3).

    Parameters
    ----------
    diagnoses : mapping of detector name to the result of `curation.benchmarks.elephant.diagnosis.diagnose`
    stem : Path
    recall : str
        The operating point, a key of each diagnosis.
    """
    require_content(diagnoses, stem, "diagnoses")
    sections = [name for name in SECTION_TITLES if all(d[recall][name] is not None for d in diagnoses.values())]
    rows = [
        (detector, section, name, recall, *(counts[kind] for kind in ("correct", *ERROR_COLOURS, "ignored")))
        for detector, diagnosis in diagnoses.items()
        for section in sections
        for name, counts in _bars(diagnosis[recall], section)
    ]

    def draw() -> Figure:
        heights = [len(list(_bars(diagnosis[recall], "closed"))) for diagnosis in diagnoses.values()]
        figure = new_figure(4.6 * len(sections), sum(0.2 * height + 0.95 for height in heights) + 0.7)
        axes = figure.subplots(
            len(diagnoses), len(sections), squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights}
        )
        longest = 0.0
        for row, (detector, diagnosis) in enumerate(diagnoses.items()):
            for column, section in enumerate(sections):
                bars = list(_bars(diagnosis[recall], section))
                longest = max(longest, draw_error_bars(axes[row, column], bars, labelled=column == 0))
                prefix = f"{plain(detector)}: " if len(diagnoses) > 1 else ""
                axes[row, column].set_title(prefix + SECTION_TITLES[section])
        for axis in axes[-1]:
            # Room for the count beside the longest bar.
            axis.set(xlabel="share of kept detections (%)", xlim=(0, max(longest, 1.0) * 1.2))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        set_title(figure, f"Errors at the threshold of recall {recall}", note)
        return figure

    header = ("detector", "section", "class", "recall", "correct", *ERROR_COLOURS, "ignored")
    return save_figure(draw, stem, header, rows)


def confusion_figure(matrix: Result, stem: Path, *, title: str = "", note: str = "") -> list[Path]:
    """Draw what the detections of each known class lie on (Elephant paper, Fig. 4): log colour, zero white.

    Parameters
    ----------
    matrix : dict
        ``rows`` (predicted classes), ``columns`` (true classes) and ``counts``, shape (rows, columns), as
        `curation.benchmarks.elephant.diagnosis.full_matrix` returns them.
    """
    counts = np.asarray(matrix["counts"], np.int64).reshape(len(matrix["rows"]), len(matrix["columns"]))
    require_content(matrix["columns"] if matrix["rows"] else (), stem, "confusion matrix")
    table = [(name, *line) for name, line in zip(matrix["rows"], counts.tolist(), strict=True)]

    def draw() -> Figure:
        from matplotlib.colors import LogNorm

        n_rows, n_columns = counts.shape
        figure = new_figure(2.2 + max(0.155 * n_columns, 2.5), 1.9 + max(0.165 * n_rows, 1.0))
        axis = figure.subplots()
        shown = np.ma.masked_equal(counts, 0)
        image = axis.imshow(
            shown,
            cmap="viridis_r",
            norm=LogNorm(1, max(int(counts.max()), 10)),
            aspect="auto",
            interpolation="none",
        )
        draw_cells(axis, n_rows, n_columns)
        axis.set_xticks(range(n_columns), [plain(name, 20) for name in matrix["columns"]], rotation=90, fontsize=7)
        axis.set_yticks(range(n_rows), [plain(name, 20) for name in matrix["rows"]], fontsize=7)
        if n_columns > n_rows:
            # The known classes come first: what lies right of the line is not in the training set.
            axis.axvline(n_rows - 0.5, color=INK, linewidth=1.2)
        axis.set_xlabel("class of the object of highest IoU")
        axis.set_ylabel("detected class")
        bar = figure.colorbar(image, ax=axis, fraction=0.02, pad=0.01)
        bar.set_label("detections", fontsize=8)
        set_title(figure, title or "Confusion of detected and true classes", note)
        return figure

    return save_figure(draw, stem, ("detected", *matrix["columns"]), table)


def background_histogram(gaps: Result, stem: Path, *, note: str = "") -> list[Path]:
    """Draw how far correct detections stand above the background score, one panel a class (Elephant paper, Fig. 8).

    A class without correct detections has no panel; the table lists it.

    Parameters
    ----------
    gaps : dict
        What `curation.benchmarks.elephant.diagnosis.background_gap` returns.
    """
    shown = {name: gap for name, gap in gaps.items() if gap["hist20"] is not None}
    require_content(shown, stem, "background scores")
    rows = [
        (name, lower, upper, count)
        for name, gap in shown.items()
        for lower, upper, count in zip(EDGES[:-1].tolist(), EDGES[1:].tolist(), gap["hist20"], strict=True)
    ]

    drawn = {name: gap for name, gap in shown.items() if gap["n"]} or shown

    def draw() -> Figure:
        figure, axes = new_panels(len(drawn), columns=5, width=1.75, height=1.65)
        for axis, (name, gap) in zip(axes, drawn.items(), strict=True):
            axis.bar(
                EDGES[:-1],
                gap["hist20"],
                width=0.1,
                align="edge",
                color=SERIES[0],
                edgecolor="white",
                linewidth=0.6,
            )
            axis.axvline(0, color=INK, linewidth=0.8)
            axis.set(xlim=(-1, 1), xticks=(-1, 0, 1), title=plain(name, 20))
            axis.set_ylim(0, max(*gap["hist20"], 1) * 1.32)
            axis.grid(visible=False)
            axis.locator_params(axis="y", integer=True, nbins=3)
            axis.text(0.03, 0.96, spread_text(gap), transform=axis.transAxes, va="top", fontsize=7, color=MUTED)
        label_outer(axes, "$p_i - p_b$", "true positives")
        set_title(figure, "Background gap of correct detections", note)
        return figure

    return save_figure(draw, stem, ("class", "from", "to", "true_positives"), rows)


def _bars(at_recall: Result, section: str) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield the classes with a threshold, then all together."""
    for name, counts in at_recall[section]["per_class"].items():
        if counts is not None:
            yield name, counts
    yield "all classes", at_recall[section]["total"]


def _at(values: Sequence[Any] | None, position: int) -> Any:
    return None if values is None else values[position]
