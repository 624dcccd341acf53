"""What every figure holds to: full grids, whole ticks of counts, keys of what is drawn, text that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from unittest import mock

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from curation.benchmarks.elephant.figures import background_histogram, confusion_figure, error_bars, wilderness_curve
from curation.benchmarks.elephant.measures import KINDS
from curation.benchmarks.findmeifyoucan.evaluation import measures_figure
from curation.benchmarks.findmeifyoucan.evaluation import ood_histograms as ood_histograms
from curation.benchmarks.osod3.evaluation import detectors_figure, threshold_figure
from curation.benchmarks.osod3.evaluation import evaluate as evaluate_osod3
from curation.core.figures import PAGE, SMALL
from curation.evaluation.class_scores import class_scores
from curation.evaluation.figures import impact_figure, precision_recall_curves, unknown_figure
from curation.evaluation.measures import Measured
from curation.evaluation.oscr import oscr_figure, protocols_figure, score_histograms
from curation.evaluation.result import Result
from curation.signals.cooccurrence.cut import matrix_figure, normalized_cut
from curation.signals.cooccurrence.graph import ClassGraph
from curation.signals.similarity.neighbors import similarity_histograms
from tests.evaluation.oscr_cases import BACKGROUND, LABELS, SOFTMAX, table
from tests.evaluation.osod3_world import write_world
from tests.evaluation.owod_cases import example, measured
from tests.evaluation.test_figures import CURVES, DIAGNOSIS, GAPS, INTERVALS, RESULT, bins

Drawer = Callable[[Path], Any]
SOFT = class_scores(LABELS, table(SOFTMAX), kind="probabilities")
NAMES = [f"a class of length {number:02d}" for number in range(80)]
ERRORS = dict.fromkeys(KINDS, 0) | {"correct": 5, "similar": 3, "unknown_unknown": 2}


def drawn(draw: Drawer, folder: Path) -> list[Figure]:
    """Return the figures that a function draws, after their layout."""
    found: list[Figure] = []

    def keep(figure: Figure, stream: BinaryIO, **options: Any) -> None:
        stream.write(b"a picture")
        if figure not in found:
            found.append(figure)
            figure.draw_without_rendering()

    with mock.patch.object(Figure, "savefig", keep):
        draw(folder)
    return found


def graph(n: int) -> ClassGraph:
    rng = np.random.default_rng(n)
    weights = np.triu(rng.poisson(0.7, (n, n)) * (1 + 20 * (np.arange(n)[:, None] // 9 == np.arange(n) // 9)), 1)
    weights[0, 1:] += 1
    return ClassGraph(tuple(NAMES[:n]), weights + weights.T, "counts")


def cut_figures(n: int) -> Drawer:
    def draw(folder: Path) -> None:
        matrix_figure(graph(n), normalized_cut(graph(n), 3), folder / "matrix")

    return draw


def confusion(detected: int, true: int) -> Drawer:
    counts = np.random.default_rng(0).poisson(1, (detected, true)) ** 4
    rows = [{"detected": NAMES[a], "true": NAMES[b], "detections": n} for (a, b), n in np.ndenumerate(counts)]
    names = NAMES[:detected], NAMES[:true]
    return lambda folder: confusion_figure(rows, *names, folder / "confusion", note="recall 0.3")


def curve(case: int) -> list[dict[str, Any]]:
    return [{"theta": k / 20, "AOSE": (20 - k) // 9 + case, "WI": k / 99, "WI_all_fp": 0.1} for k in range(20)]


def detectors(folder: Path) -> dict[str, Result]:
    files = write_world(folder)
    result = evaluate_osod3(truth=files["gt"], detections=files["detections"], classes=files["classes"])
    return {"FCOS": result, "Faster R-CNN": result}


def ood_measures(n: int) -> Drawer:
    values = {"AUROC": 0.9, "FPR95": 0.4, "nOSE": 12.0, "AP_U": 15.0, "P_U": None, "R_U": 20.0}
    by_split = {f"openimages_farther {k}": values for k in range(n)}
    return lambda folder: measures_figure(dict.fromkeys(map(str, range(12)), by_split), folder / "measures")


def tasks(n: int) -> dict[str, Measured]:
    world = measured(example()[0])["clean"]
    return {f"t{number + 1}": world for number in range(n)}


def gaps(n: int) -> Drawer:
    found = [GAPS[0] | {"class": name} for name in NAMES[:n]]
    return lambda folder: background_histogram(found, [row for name in NAMES[:n] for row in bins(name)], folder / "gap")


def curves(n: int) -> Drawer:
    classes = dict.fromkeys(NAMES[:n], CURVES["A"]["cat"])
    return lambda folder: precision_recall_curves({"a": classes, "b": classes}, folder / "curves")


def histograms(n: int) -> Drawer:
    chosen = dict(list(SCORES.items())[:n])
    return lambda folder: ood_histograms(chosen, dict.fromkeys(chosen, 0.5), "energy", folder / "scores")


def open_world(n: int) -> Drawer:
    def draw(folder: Path) -> None:
        impact_figure(tasks(n), "clean", folder / "impact")
        unknown_figure(tasks(n), "clean", folder / "unknown")

    return draw


RNG = np.random.default_rng(0)
SCORES = {f"split {k}": (RNG.normal(2, 1, 900), RNG.normal(0.3 * k, 1, 90)) for k in range(3)}
LOOKS = RNG.uniform(0.3, 0.9, 60).astype(np.float32)
FIGURES: dict[str, Drawer] = {
    "impact 1": lambda folder: wilderness_curve({"a": RESULT}, folder / "a", intervals={"a": INTERVALS}),
    "impact 2": lambda folder: wilderness_curve({"a": RESULT, "b": RESULT}, folder / "b", note="variant paper"),
    "errors": lambda folder: error_bars(DIAGNOSIS, "a", folder / "errors"),
    "confusion 2 x 3": confusion(2, 3),
    "confusion 20 x 80": confusion(20, 80),
    "confusion 60 x 80": confusion(60, 80),
    **{f"gap {n}": gaps(n) for n in (1, 6, 7, 20)},
    **{f"curves {n}": curves(n) for n in (1, 6, 11)},
    **{f"OOD scores {n}": histograms(n) for n in (1, 3)},
    **{f"tasks {n}": open_world(n) for n in (1, 3, 4)},
    "OSCR": lambda folder: oscr_figure({"a": SOFT, "b": SOFT}, folder / "oscr"),
    "OSCR scores": lambda folder: score_histograms(dict.fromkeys("abcd", SOFT), folder / "scores"),
    "OSCR of protocols": lambda folder: protocols_figure(
        {name: {"a": SOFT, "b": SOFT} for name in ("P1", "P2", "P3")}, folder / "protocols"
    ),
    "OSOD of detectors": lambda folder: detectors_figure(detectors(folder), folder / "detectors"),
    **{f"OOD measures {n}": ood_measures(n) for n in (2, 6)},
    "OSOD": lambda folder: threshold_figure({("I",): curve(0), ("II",): curve(1)}, folder / "osod", variant="clean"),
    "cut 12": cut_figures(12),
    "cut 80": cut_figures(80),
    "similarity": lambda folder: similarity_histograms({"COCO": {"near": LOOKS, "far": LOOKS / 2}}, folder / "look"),
}  # fmt: skip


@pytest.fixture(scope="module", params=FIGURES)
def figures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Figure]:
    return drawn(FIGURES[request.param], tmp_path_factory.mktemp("figures"))


def panels(figure: Figure) -> list[Axes]:
    return [axis for axis in figure.axes if axis.axison]


def texts(figure: Figure) -> Iterator[Text]:
    for one in figure.findobj(Text):
        if isinstance(one, Text) and one.get_visible() and one.get_text().strip():
            yield one


def tick_labels(axis: Axes) -> Iterator[list[Text]]:
    for one in (axis.xaxis, axis.yaxis):
        low, high = sorted(one.get_view_interval())
        ticks = [tick for tick in one.get_major_ticks() if low <= tick.get_loc() <= high]
        for side in ("label1", "label2"):
            labels = [getattr(tick, side) for tick in ticks]
            yield [label for label in labels if label.get_visible() and label.get_text()]


def lines_of(figure: Figure, label: str) -> list[tuple[str, int]]:
    """Return colour and number of points of each line of a figure by its label."""
    lines = [line for axis in panels(figure) for line in axis.lines if line.get_label() == label]
    return [(str(line.get_color()), len(np.asarray(line.get_xdata()))) for line in lines]


def test_a_classifier_has_one_colour_under_every_variant(tmp_path: Path) -> None:
    other = class_scores(LABELS, table(BACKGROUND), kind="probabilities", background="last")
    scores = {"a": SOFT, "b": other}
    [exact] = drawn(lambda folder: oscr_figure(scores, folder / "exact"), tmp_path)
    [table2] = drawn(lambda folder: oscr_figure(scores, folder / "table2", variant="table2"), tmp_path)
    assert {colour for colour, _ in lines_of(exact, "b")} == {colour for colour, _ in lines_of(table2, "b")}
    assert not lines_of(table2, "a")


def test_no_line_goes_on_where_no_class_is_left(tmp_path: Path) -> None:
    [task] = tasks(1).values()
    impact: dict[str, dict[str, Any]] = {
        "t1": {"classes": [0] * 100, "classes_reaching": [0] * 100, "never_reached_by": [""] * 100},
        "t2": {"classes": [2] * 100, "classes_reaching": [2] * 50 + [0] * 50, "never_reached_by": ["cat, dog"] * 100},
        "t3": {"classes": [2] * 100, "classes_reaching": [2] * 100, "never_reached_by": [""] * 100},
    }
    changed = {
        name: task._replace(tables={**task.tables, "impact": {**task.tables["impact"], **columns}})
        for name, columns in impact.items()
    }
    [figure] = drawn(lambda folder: impact_figure(changed, "clean", folder / "impact"), tmp_path)
    assert [[points for _, points in lines_of(figure, f"task {name}")] for name in impact] == [[], [50], [100]]
    assert [text.get_text() for text in panels(figure)[1].texts] == [
        "t1: no class has detections and objects\n"
        "t2: recall 0.8 is reached by none of 2 classes, and not by cat, dog\n"
        "t3: all 2 classes reach recall 0.8"
    ]


def test_no_panel_stands_alone_in_the_last_line_and_no_place_is_empty(figures: list[Figure]) -> None:
    for figure in figures:
        grids = [one for axis in figure.axes if (one := axis.get_subplotspec()) is not None]
        lines, columns = (int(number) for number in grids[0].get_geometry()[:2])
        empty = [axis for axis in figure.axes if not axis.axison and axis.get_legend() is None and not axis.texts]
        assert len(empty) < max(columns - 1, 1) or lines == 1, (lines, columns, len(empty))


def test_ticks_say_each_number_once_and_counts_whole(figures: list[Figure]) -> None:
    for figure in figures:
        for axis in panels(figure):
            for labels in tick_labels(axis):
                said = [label.get_text() for label in labels]
                assert len(set(said)) == len(said), said
            if axis.get_ylabel() in ("classes", "true positives") or axis.get_title("left") in ("classes", "images"):
                left = [label.get_text() for label in list(tick_labels(axis))[2]]
                assert left
                assert all(label.replace(",", "").isdigit() for label in left), left


def test_tick_labels_do_not_touch(figures: list[Figure]) -> None:
    for figure in figures:
        for axis in panels(figure):
            for labels in tick_labels(axis):
                boxes = [label.get_window_extent() for label in labels]
                for (one, before), (other, after) in pairwise(zip(labels, boxes, strict=True)):
                    # A line of text is a little lower than its box.
                    assert not before.padded(-0.8).overlaps(after.padded(-0.8)), (one.get_text(), other.get_text())


def test_text_can_be_read_where_the_figure_is_as_wide_as_a_page(figures: list[Figure]) -> None:
    for figure in figures:
        assert figure.get_figwidth() <= PAGE + 0.01
        assert min(one.get_fontsize() for one in texts(figure)) >= SMALL
