"""The committed picture of the pipeline is what its module draws, it is legible, and it names what there is."""

import re
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
import pytest
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.transforms import Bbox

from curation.audit.rules import RULES
from curation.cli import VERBS
from curation.figure_style import STYLE
from tests.docs.pages import ROOT
from tests.docs.pipeline_figure import AUDIT, BOXES, STEM, arrows, draw, write

PINNED = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("matplotlib==")
)


@pytest.fixture(scope="module")
def figure() -> Figure:
    with style.context(STYLE, after_reset=True):
        drawn = draw()
        FigureCanvasAgg(drawn).draw()
    return drawn


def test_the_committed_picture_is_what_is_drawn(tmp_path: Path) -> None:
    if matplotlib.__version__ != PINNED["matplotlib"]:
        pytest.skip(f"another matplotlib may write other paths: drawn with {PINNED['matplotlib']}")
    drawn = write(tmp_path / STEM.name)
    assert {path.name for path in drawn} == {"pipeline.png", "pipeline.svg"}
    assert (tmp_path / "pipeline.svg").read_bytes() == STEM.with_suffix(".svg").read_bytes()
    assert STEM.with_suffix(".png").exists()


def frames(figure: Figure) -> list[Bbox]:
    (axes,) = figure.axes
    return [one.get_window_extent() for one in axes.patches if isinstance(one, FancyBboxPatch)]


def holds(outer: Bbox, inner: Bbox, margin: float) -> bool:
    return (
        outer.x0 + margin <= inner.x0
        and inner.x1 <= outer.x1 - margin
        and outer.y0 + margin <= inner.y0
        and inner.y1 <= outer.y1 - margin
    )


def test_no_box_lies_on_another(figure: Figure) -> None:
    assert len(frames(figure)) == len(BOXES) + 3  # the manifest, and two of the key
    assert not [pair for pair in combinations(frames(figure), 2) if Bbox.intersection(*pair)]


def test_every_word_stands_inside_one_box_or_outside_all(figure: Figure) -> None:
    (axes,) = figure.axes
    places = {one.get_text(): one.get_window_extent() for one in axes.texts}
    assert not [pair for pair in combinations(places.values(), 2) if Bbox.intersection(*pair)]
    for words, place in places.items():
        touched = [one for one in frames(figure) if Bbox.intersection(one, place)]
        assert len(touched) <= 1, words
        assert all(holds(one, place, margin=4) for one in touched), words
        assert holds(figure.bbox, place, margin=0), words


def test_arrows_are_level_or_upright() -> None:
    for corners in arrows():
        for (x, y), (to_x, to_y) in pairwise(corners):
            assert (x == to_x) != (y == to_y)


def test_what_the_picture_names_exists() -> None:
    commands = {name.split()[0] for one in BOXES if one.kind == "command" for name in one.name.split(", ")}
    assert commands - {"signals"} <= set(VERBS)
    assert re.findall(r"\d+", AUDIT.text) == [str(len(RULES))]
