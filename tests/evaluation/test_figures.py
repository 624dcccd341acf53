"""Figures: same bytes on every run, a CSV that says what is drawn, hostile names, and nothing left on an error."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from curation.benchmarks.elephant.figures import background_histogram, confusion_figure, error_bars, wilderness_curve
from curation.benchmarks.elephant.measures import ALL_CLASSES, KINDS
from curation.core.errors import EvaluationError
from curation.evaluation.class_scores import class_scores
from curation.evaluation.figures import precision_recall_curves, unknown_figure
from curation.evaluation.oscr import oscr_figure, score_histograms
from tests.evaluation.oscr_cases import LABELS, SOFTMAX
from tests.evaluation.oscr_cases import table as softmax_table
from tests.evaluation.owod_cases import example, measured

SOFT = class_scores(LABELS, softmax_table(SOFTMAX), kind="probabilities")
RATIOS = ("0.0", "0.1", "0.2")
IMPACTS = {
    "0.1": {"macro": (0.0, 0.1, None), "pooled": (0.0, 0.2, 0.3)},
    "0.3": {"macro": (0.0, 0.25, 1 / 3), "pooled": (0.0, 0.3, 0.4)},
}
RESULT: dict[str, list[dict[str, Any]]] = {
    "levels": [
        {"ratio": ratio, "mAP11": 80 - 10 * k, "mAP_area": 81 - 10 * k, "mAP": None} for k, ratio in enumerate(RATIOS)
    ],
    "impact": [
        {"recall": recall, "over_classes": reading, "ratio": ratio, "WI": value}
        for recall, readings in IMPACTS.items()
        for reading, values in readings.items()
        for ratio, value in zip(RATIOS, values, strict=True)
    ],
}
INTERVALS = [
    {"measure": "WI", "recall": recall, "over_classes": "macro", "ratio": ratio, "low": low, "high": high}
    for recall in IMPACTS
    for ratio, low, high in (("0.0", 0.0, 0.1), ("0.1", None, None), ("0.2", 0.2, 0.5))
]
COUNTS = dict.fromkeys(KINDS, 0) | {"correct": 5, "similar": 3, "unknown_unknown": 2}
DIAGNOSIS = [
    {"recall": "0.3", "part": part, "class": name, **counts}
    for part in ("closed", "wr1")
    for name, counts in (("cat", COUNTS), ("dog", dict.fromkeys(KINDS)), (ALL_CLASSES, COUNTS))
]
CELLS = (("cat", "cat", 5), ("cat", "bear", 1), ("dog", "cat", 1), ("dog", "dog", 900), ("dog", "", 7))
OVERLAPS = [{"detected": one, "true": other, "detections": n} for one, other, n in CELLS]
CURVES = {"A": {"cat": {"recall": [0.5, 1.0], "precision": [1.0, 0.5], "score": [0.9, 0.1]}}}
THRESHOLDS = {"A": [{"recall": "0.3", "class": "cat", "threshold": 0.9, "TP": 1, "FP": 0, "reached": 0.5}]}
GAPS = [
    {"class": "cat", "n": 2, "mean": 0.5, "std_population": 0.1},
    {"class": "dog", "n": 0, "mean": None, "std_population": None},
]


def bins(name: str) -> list[dict[str, Any]]:
    return [{"class": name, "from": k / 10, "to": (k + 1) / 10, "true_positives": 2 * (k == 5)} for k in range(-10, 10)]


def draw_all(folder: Path) -> list[Path]:
    return [
        *wilderness_curve({"A": RESULT}, folder / "one", intervals={"A": INTERVALS}),
        *wilderness_curve({"A": RESULT, "B": RESULT}, folder / "two", reading="pooled", note="variant paper"),
        *error_bars(DIAGNOSIS, "A", folder / "errors"),
        *confusion_figure(OVERLAPS, ["cat", "dog"], ["cat", "dog", "bear"], folder / "confusion"),
        *precision_recall_curves(CURVES, folder / "curves", thresholds=THRESHOLDS),
        *background_histogram(GAPS, bins("cat"), folder / "gap"),
        *oscr_figure({"soft": SOFT}, folder / "oscr"),
        *score_histograms({"soft": SOFT}, folder / "scores"),
        *unknown_figure({"t1": measured(example()[0])["clean"]}, "clean", folder / "unknown"),
    ]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return draw_all(tmp_path_factory.mktemp("figures"))


def table(paths: list[Path], name: str) -> list[list[str]]:
    path = next(path for path in paths if path.name == f"{name}.csv")
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def test_every_figure_is_a_png_an_svg_and_a_csv(drawn: list[Path]) -> None:
    assert [path.suffix for path in drawn] == [".png", ".svg", ".csv"] * 9
    for path in drawn:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert min(image.size) > 200
                assert len(image.convert("RGB").getcolors(1 << 20) or []) > 20
        elif path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")  # noqa: S314


def test_same_bytes_under_another_hash_seed_and_matplotlibrc(drawn: list[Path], tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nlines.linewidth: 9\nsavefig.dpi: 30\n", encoding="utf-8")
    again = tmp_path / "again"
    code = (
        "import importlib.util, pathlib;"
        f"spec = importlib.util.spec_from_file_location('again', {str(__file__)!r});"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module);"
        f"module.draw_all(pathlib.Path({str(again)!r}))"
    )
    environment = os.environ | {
        "PYTHONHASHSEED": "7",
        "MATPLOTLIBRC": str(tmp_path / "matplotlibrc"),
        "TZ": "Asia/Tokyo",
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    for path in drawn:
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name


def test_hostile_names_are_drawn_as_text(tmp_path: Path) -> None:
    name = r"$\frac{1}$_^\n" + "x" * 300 + "\x1b[31m\n=1+1"
    wilderness_curve({name: RESULT, "B": RESULT}, tmp_path / "curve", note=name)
    confusion_figure([{"detected": name, "true": name, "detections": 1}], [name], [name], tmp_path / "m", note=name)
    error_bars([{"recall": "0.3", "part": "closed", "class": name, **COUNTS}], name, tmp_path / "e")
    precision_recall_curves({name: {name: CURVES["A"]["cat"]}}, tmp_path / "pr", note=name)
    background_histogram([GAPS[0] | {"class": name}], bins(name), tmp_path / "gap")
    assert len(list(tmp_path.glob("*.png"))) == 5


@pytest.mark.parametrize(
    "draw",
    [
        lambda stem: wilderness_curve({}, stem),
        lambda stem: error_bars([], "A", stem),
        lambda stem: confusion_figure([], [], [], stem),
        lambda stem: precision_recall_curves({}, stem),
        lambda stem: precision_recall_curves({"A": {}}, stem),
        lambda stem: background_histogram(GAPS, [], stem),
    ],
)
def test_nothing_to_draw_is_an_error_and_leaves_no_file(draw: Any, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="A figure needs"):
        draw(tmp_path / "figure")
    assert list(tmp_path.iterdir()) == []
