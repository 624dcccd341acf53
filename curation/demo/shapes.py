"""Small drawings of things: six that a VOC detector knows, and seven that it does not and may mistake for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.errors import MissingExtraError

if TYPE_CHECKING:
    from PIL import Image

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Rng = np.random.Generator
Colour = tuple[int, int, int]

WIDTH, HEIGHT = 160, 120
_FINE = 4  # shapes are drawn this much larger and reduced, which smooths their edges


def draw_thing(name: str, width: int, height: int, rng: Rng) -> tuple[Pixels, Pixels]:
    """Return colours, shape (height, width, 3), and coverage, shape (height, width), of one thing, both uint8."""
    from_pil = _pil()
    canvas = from_pil.new("RGBA", (width * _FINE, height * _FINE), (0, 0, 0, 0))
    _DRAWINGS[name](_Pen(canvas), rng)
    small = np.asarray(canvas.resize((width, height), from_pil.Resampling.BOX), np.float64)
    colours = small[..., :3] + rng.normal(0, 5, (height, width, 1))
    return colours.clip(0, 255).astype(np.uint8), small[..., 3].astype(np.uint8)


def draw_background(rng: Rng) -> Pixels:
    """Return an empty scene, shape (120, 160, 3): a sky, a ground, their noise and a little clutter."""
    horizon = int(rng.integers(35, 75))
    rows = np.arange(HEIGHT)[:, None, None]
    sky = np.array([150, 190, 225]) + rng.normal(0, 12, 3) + rows * 0.25
    ground = np.array([120, 150, 90]) + rng.normal(0, 14, 3) - (rows - horizon) * 0.2
    scene = np.where(rows < horizon, sky, ground) + np.zeros((HEIGHT, WIDTH, 3))
    for _ in range(int(rng.integers(0, 3))):
        _add_clutter(scene, rng)
    scene += rng.normal(0, 6, scene.shape)
    return scene.clip(0, 255).astype(np.uint8)


def _add_clutter(scene: np.ndarray[Any, np.dtype[np.float64]], rng: Rng) -> None:
    """Add a soft blob of no class: what a detector has to call background."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    centre_x, centre_y = rng.uniform(10, WIDTH - 10), rng.uniform(10, HEIGHT - 10)
    spread_x, spread_y = rng.uniform(4, 12), rng.uniform(3, 9)
    blob = np.exp(-(((x - centre_x) / spread_x) ** 2 + ((y - centre_y) / spread_y) ** 2))
    scene += blob[..., None] * rng.uniform(-90, 90, 3)


class _Pen:
    """Draws in coordinates from 0 to 1 across the canvas."""

    def __init__(self, canvas: Image.Image) -> None:
        from PIL import ImageDraw

        self._draw = ImageDraw.Draw(canvas)
        self._width, self._height = canvas.size

    def _scaled(self, points: tuple[float, ...]) -> list[tuple[float, float]]:
        pairs = zip(points[::2], points[1::2], strict=True)
        return [(x * (self._width - 1), y * (self._height - 1)) for x, y in pairs]

    def box(self, colour: Colour, *points: float) -> None:
        self._draw.rectangle(self._scaled(points), fill=colour)

    def oval(self, colour: Colour, *points: float) -> None:
        self._draw.ellipse(self._scaled(points), fill=colour)

    def shape(self, colour: Colour, *points: float) -> None:
        self._draw.polygon(self._scaled(points), fill=colour)


def _vivid(rng: Rng) -> Colour:
    values = [int(rng.integers(170, 240)), int(rng.integers(20, 80)), 60]
    red, green, blue = (values[position] for position in rng.permutation(3).tolist())
    return red, green, blue


def _grey(rng: Rng, low: int, high: int) -> Colour:
    value = int(rng.integers(low, high))
    return value, value, min(255, value + 6)


def _car(pen: _Pen, rng: Rng) -> None:
    paint = _vivid(rng)
    pen.shape(paint, 0.22, 0.4, 0.34, 0, 0.7, 0, 0.84, 0.4)
    pen.box(paint, 0, 0.38, 1, 0.8)
    pen.box((200, 225, 240), 0.36, 0.1, 0.5, 0.38)
    pen.box((200, 225, 240), 0.54, 0.1, 0.68, 0.38)
    pen.oval((25, 25, 25), 0.12, 0.6, 0.36, 1)
    pen.oval((25, 25, 25), 0.64, 0.6, 0.88, 1)


def _truck(pen: _Pen, rng: Rng) -> None:
    paint = _vivid(rng)
    pen.box(_grey(rng, 190, 240), 0, 0, 0.66, 0.76)
    pen.box(paint, 0.68, 0.25, 1, 0.8)
    pen.box((200, 225, 240), 0.82, 0.32, 0.96, 0.5)
    for left in (0.06, 0.34, 0.74):
        pen.oval((25, 25, 25), left, 0.64, left + 0.2, 1)


def _bottle(pen: _Pen, rng: Rng) -> None:
    glass = (30, int(rng.integers(90, 140)), 50)
    pen.box(glass, 0.34, 0, 0.66, 0.34)
    pen.oval(glass, 0, 0.24, 1, 0.6)
    pen.box(glass, 0, 0.42, 1, 1)
    pen.box((235, 230, 200), 0.05, 0.58, 0.95, 0.8)


def _vase(pen: _Pen, rng: Rng) -> None:
    clay = (int(rng.integers(60, 120)), int(rng.integers(80, 130)), int(rng.integers(90, 180)))
    pen.box(clay, 0.2, 0, 0.8, 0.14)
    pen.box(clay, 0.36, 0.1, 0.64, 0.4)
    pen.oval(clay, 0, 0.28, 1, 0.94)
    pen.box(clay, 0.24, 0.86, 0.76, 1)


def _tvmonitor(pen: _Pen, rng: Rng) -> None:
    pen.box((30, 30, 34), 0, 0, 1, 0.8)
    pen.box((40, int(rng.integers(80, 130)), int(rng.integers(150, 210))), 0.07, 0.09, 0.93, 0.71)
    pen.box((45, 45, 48), 0.44, 0.8, 0.56, 0.92)
    pen.box((30, 30, 34), 0.25, 0.92, 0.75, 1)


def _laptop(pen: _Pen, rng: Rng) -> None:
    pen.box((60, 60, 66), 0.14, 0, 0.86, 0.66)
    pen.box((60, int(rng.integers(90, 140)), int(rng.integers(150, 220))), 0.2, 0.07, 0.8, 0.6)
    pen.shape(_grey(rng, 150, 190), 0.14, 0.68, 0.86, 0.68, 1, 1, 0, 1)


def _sheep(pen: _Pen, rng: Rng) -> None:
    wool = _grey(rng, 225, 250)
    for left in (0.2, 0.34, 0.6, 0.74):
        pen.box((50, 45, 45), left, 0.7, left + 0.07, 1)
    for _ in range(14):
        x, y = rng.uniform(0.06, 0.62), rng.uniform(0.04, 0.4)
        pen.oval(wool, x, y, x + 0.3, y + 0.42)
    pen.oval((45, 40, 40), 0.78, 0.1, 1, 0.46)


def _zebra(pen: _Pen, rng: Rng) -> None:
    hide = _grey(rng, 225, 250)
    for left in (0.12, 0.24, 0.6, 0.7):
        pen.box(hide, left, 0.6, left + 0.07, 1)
    pen.oval(hide, 0, 0.25, 0.85, 0.75)
    pen.shape(hide, 0.66, 0.4, 0.84, 0, 1, 0.16, 0.82, 0.5)
    for left in np.arange(0.06, 0.8, 0.13):
        pen.box((35, 32, 32), float(left), 0.3, float(left) + 0.055, 0.7)


def _elephant(pen: _Pen, rng: Rng) -> None:
    hide = _grey(rng, 105, 150)
    for left in (0.12, 0.3, 0.5, 0.64):
        pen.box(hide, left, 0.55, left + 0.13, 1)
    pen.oval(hide, 0, 0.1, 0.82, 0.8)
    pen.oval(hide, 0.62, 0, 0.98, 0.5)
    pen.box(hide, 0.9, 0.25, 1, 0.9)


def _boat(pen: _Pen, rng: Rng) -> None:
    pen.box((70, 50, 40), 0.47, 0, 0.52, 0.7)
    pen.shape((245, 245, 240), 0.54, 0.03, 0.54, 0.64, 0.95, 0.64)
    pen.shape((235, 235, 225), 0.45, 0.1, 0.45, 0.64, 0.12, 0.64)
    pen.shape(_vivid(rng), 0, 0.7, 1, 0.7, 0.84, 1, 0.16, 1)


def _kite(pen: _Pen, rng: Rng) -> None:
    first, second = _vivid(rng), _vivid(rng)
    pen.shape(first, 0.5, 0, 1, 0.36, 0.5, 0.8)
    pen.shape(second, 0.5, 0, 0, 0.36, 0.5, 0.8)
    pen.shape((240, 240, 230), 0.5, 0.78, 0.64, 1, 0.36, 1)


def _aeroplane(pen: _Pen, rng: Rng) -> None:
    metal = _grey(rng, 200, 245)
    pen.oval(metal, 0, 0.38, 1, 0.66)
    pen.shape((95, 105, 130), 0.42, 0.52, 0.6, 0.52, 0.34, 1, 0.24, 1)
    pen.shape((120, 130, 150), 0.44, 0.46, 0.58, 0.46, 0.42, 0.08, 0.34, 0.08)
    pen.shape(_vivid(rng), 0, 0, 0.1, 0, 0.2, 0.5, 0.06, 0.5)


def _pizza(pen: _Pen, rng: Rng) -> None:
    pen.oval((190, 130, 70), 0, 0, 1, 1)
    pen.oval((235, 200, 110), 0.09, 0.09, 0.91, 0.91)
    for _ in range(7):
        x, y = rng.uniform(0.2, 0.65, 2)
        pen.oval((190, 50, 40), x, y, x + 0.16, y + 0.16)


_DRAWINGS: dict[str, Callable[[_Pen, Rng], None]] = {
    "aeroplane": _aeroplane,
    "boat": _boat,
    "bottle": _bottle,
    "car": _car,
    "sheep": _sheep,
    "tvmonitor": _tvmonitor,
    "elephant": _elephant,
    "kite": _kite,
    "laptop": _laptop,
    "pizza": _pizza,
    "truck": _truck,
    "vase": _vase,
    "zebra": _zebra,
}

PROPORTIONS: dict[str, float] = {
    "aeroplane": 2.0,
    "boat": 1.1,
    "bottle": 0.42,
    "car": 1.9,
    "sheep": 1.3,
    "tvmonitor": 1.3,
    "elephant": 1.35,
    "kite": 0.8,
    "laptop": 1.35,
    "pizza": 1.1,
    "truck": 2.0,
    "vase": 0.6,
    "zebra": 1.3,
}
"""Width over height of each thing."""


def _pil() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError(
            "The demo draws photos and needs Pillow", hint="python -m pip install pillow"
        ) from None
    return Image
