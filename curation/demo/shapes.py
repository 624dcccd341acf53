"""Small drawings of things: six that a VOC detector knows, and nine that it does not and may mistake for them.

No two drawings of a thing are equal: paint, proportions, direction and tilt vary, and each unknown thing shares some of
its looks with a known one (a pick-up truck with a car, a slim vase with a bottle, a laptop with a screen).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import MissingExtraError

Pixels = npt.NDArray[np.uint8]
Rng = np.random.Generator
Colour = tuple[int, int, int]

_FINE = 3  # drawn this much larger and reduced, which smooths the edges
_TILT = 9.0  # degrees


def draw_thing(name: str, width: int, height: int, rng: Rng) -> tuple[Pixels, npt.NDArray[np.float64]]:
    """Return colours, shape (height, width, 3), uint8, and coverage from 0 to 1, shape (height, width), of a thing."""
    image = pillow("Image")
    canvas = image.new("RGBA", (width * _FINE, height * _FINE), (0, 0, 0, 0))
    _DRAWINGS[name](_Pen(canvas), rng)
    if rng.random() < 0.5:
        canvas = canvas.transpose(image.Transpose.FLIP_LEFT_RIGHT)
    tilted = canvas.rotate(float(rng.normal(0, _TILT / 2)), image.Resampling.BILINEAR, expand=True)
    small = np.asarray(
        tilted.crop(tilted.getbbox()).resize((width, height), image.Resampling.BOX), np.float64
    )
    light = np.linspace(1.12, 0.84, height)[:, None, None] * rng.uniform(0.75, 1.1)
    return (small[..., :3] * light).clip(0, 255).astype(np.uint8), small[..., 3] / 255


def pillow(module: str) -> Any:
    """Return a module of Pillow, or raise `MissingExtraError`: the package itself does without."""
    try:
        return importlib.import_module(f"PIL.{module}")
    except ImportError:
        raise MissingExtraError(
            "The demo draws photos and needs Pillow", hint="python -m pip install pillow"
        ) from None


class _Pen:
    """Draws in coordinates from 0 to 1 across the canvas."""

    def __init__(self, canvas: Any) -> None:
        self._draw = pillow("ImageDraw").Draw(canvas)
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


def _paint(rng: Rng) -> Colour:
    """Return the colour of a vehicle: vivid, or one of the greys that most have."""
    if rng.random() < 0.35:
        return _grey(rng, 60, 235)
    values = [int(rng.integers(150, 230)), int(rng.integers(20, 110)), int(rng.integers(30, 80))]
    red, green, blue = (values[position] for position in rng.permutation(3).tolist())
    return red, green, blue


def _grey(rng: Rng, low: int, high: int) -> Colour:
    value = int(rng.integers(low, high))
    return value, value, min(255, value + 6)


def _hide(rng: Rng, low: int, high: int) -> Colour:
    """Return a tone of fur or wool, from grey to brown."""
    value, warmth = int(rng.integers(low, high)), rng.uniform(0, 0.25)
    return value, int(value * (1 - warmth / 2)), int(value * (1 - warmth))


def _glass(rng: Rng) -> Colour:
    """Return green, brown, blue or milky glass, as bottles and vases have."""
    tones = ((40, 115, 60), (110, 70, 35), (60, 90, 150), (190, 200, 200), (35, 50, 45))
    red, green, blue = (int(value + rng.normal(0, 10)) for value in tones[rng.integers(len(tones))])
    return red, green, blue


def _wheels(pen: _Pen, *lefts: float) -> None:
    for left in lefts:
        pen.oval((28, 28, 28), left, 0.62, left + 0.22, 1)
        pen.oval((120, 120, 124), left + 0.07, 0.75, left + 0.15, 0.88)


def _car(pen: _Pen, rng: Rng) -> None:
    paint, roof = _paint(rng), rng.uniform(0, 0.12)
    nose, tail = rng.uniform(0.14, 0.28), rng.uniform(0.72, 0.97)
    pen.shape(paint, nose, 0.42, nose + 0.14, roof, tail - 0.1, roof, tail, 0.42)
    pen.box(paint, 0, 0.38, 1, 0.82)
    middle = (nose + tail) / 2 + 0.02
    pen.box((176, 204, 220), nose + 0.15, roof + 0.08, middle - 0.02, 0.38)
    pen.box((176, 204, 220), middle + 0.02, roof + 0.08, tail - 0.1, 0.38)
    _wheels(pen, 0.1, 0.66)


def _truck(pen: _Pen, rng: Rng) -> None:
    if rng.random() < 0.6:
        _pickup(pen, rng)
        return
    pen.box(_grey(rng, 120, 240), 0, 0, 0.66, 0.76)
    pen.box(_paint(rng), 0.68, 0.25, 1, 0.82)
    pen.box((176, 204, 220), 0.82, 0.32, 0.96, 0.5)
    _wheels(pen, 0.03, 0.3, 0.74)


def _pickup(pen: _Pen, rng: Rng) -> None:
    paint, cabin = _paint(rng), rng.uniform(0.4, 0.66)
    pen.shape(paint, 0.12, 0.42, 0.24, 0, cabin, 0, cabin, 0.42)
    pen.box(paint, 0, 0.38, 1, 0.82)
    pen.box((176, 204, 220), 0.26, 0.1, cabin - 0.05, 0.38)
    _wheels(pen, 0.1, 0.68)


def _bottle(pen: _Pen, rng: Rng) -> None:
    glass, shoulder, neck = _glass(rng), rng.uniform(0.2, 0.4), rng.uniform(0.12, 0.2)
    pen.box(glass, 0.5 - neck, 0, 0.5 + neck, shoulder + 0.1)
    pen.oval(glass, 0, shoulder, 1, shoulder + 0.3)
    pen.box(glass, 0, shoulder + 0.14, 1, 1)
    if rng.random() < 0.7:
        top = rng.uniform(0.52, 0.64)
        pen.box(_grey(rng, 180, 245), 0, top, 1, top + rng.uniform(0.14, 0.26))


def _vase(pen: _Pen, rng: Rng) -> None:
    clay, neck, belly = _glass(rng), rng.uniform(0.14, 0.24), rng.uniform(0.2, 0.42)
    pen.box(clay, 0.5 - neck, 0, 0.5 + neck, belly + 0.15)
    pen.box(clay, 0.4 - neck, 0, 0.6 + neck, 0.07)
    pen.oval(clay, 0, belly, 1, 1.1)
    if rng.random() < 0.5:
        pen.box(_grey(rng, 150, 235), 0.04, 0.6, 0.96, 0.68)


def _tvmonitor(pen: _Pen, rng: Rng) -> None:
    frame, foot = _grey(rng, 20, 90), rng.uniform(0.2, 0.36)
    pen.box(frame, 0, 0, 1, 0.8)
    pen.box(_picture(rng), 0.06, 0.08, 0.94, 0.72)
    pen.box(frame, 0.44, 0.8, 0.56, 0.92)
    pen.box(frame, 0.5 - foot, 0.9, 0.5 + foot, 1)


def _laptop(pen: _Pen, rng: Rng) -> None:
    frame, inset = _grey(rng, 20, 120), rng.uniform(0, 0.14)
    fold = rng.uniform(0.68, 0.84)
    pen.box(frame, inset, 0, 1 - inset, fold)
    pen.box(_picture(rng), inset + 0.06, 0.07, 0.94 - inset, fold - 0.08)
    pen.shape(_grey(rng, 60, 190), inset, fold + 0.02, 1 - inset, fold + 0.02, 1, 1, 0, 1)


def _picture(rng: Rng) -> Colour:
    """Return what a screen shows: mostly blue, at times dark."""
    if rng.random() < 0.3:
        return _grey(rng, 25, 70)
    return int(rng.integers(30, 110)), int(rng.integers(80, 150)), int(rng.integers(130, 220))


def _sheep(pen: _Pen, rng: Rng) -> None:
    wool, face = _hide(rng, 150, 250), _hide(rng, 35, 170)
    for left in (0.2, 0.34, 0.6, 0.74):
        pen.box(face, left, 0.66, left + 0.07, 1)
    pen.oval(wool, 0.04, 0.1, 0.86, 0.8)
    for _ in range(12):
        x, y = rng.uniform(0.02, 0.62), rng.uniform(0.02, 0.42)
        pen.oval(wool, x, y, x + 0.28, y + 0.38)
    pen.oval(face, 0.78, rng.uniform(0.06, 0.3), 1, rng.uniform(0.46, 0.62))


def _bear(pen: _Pen, rng: Rng) -> None:
    fur = _hide(rng, 40, 235)
    for left in (0.1, 0.26, 0.58, 0.72):
        pen.box(fur, left, 0.6, left + 0.13, 1)
    pen.oval(fur, 0, 0.12, 0.86, 0.84)
    top = rng.uniform(0, 0.25)
    pen.oval(fur, 0.7, top, 1, top + 0.42)
    pen.oval(fur, 0.74, top - 0.04, 0.82, top + 0.1)


def _zebra(pen: _Pen, rng: Rng) -> None:
    hide, stripe = _hide(rng, 190, 250), _hide(rng, 25, 70)
    for left in (0.12, 0.24, 0.6, 0.7):
        pen.box(hide, left, 0.6, left + 0.07, 1)
    pen.oval(hide, 0, 0.25, 0.85, 0.75)
    pen.shape(hide, 0.66, 0.4, 0.84, 0, 1, 0.16, 0.82, 0.5)
    for left in np.arange(0.06, 0.8, rng.uniform(0.1, 0.16)):
        pen.box(stripe, float(left), 0.3, float(left) + 0.055, 0.7)


def _elephant(pen: _Pen, rng: Rng) -> None:
    hide = _hide(rng, 85, 185)
    for left in (0.12, 0.3, 0.5, 0.64):
        pen.box(hide, left, 0.55, left + 0.13, 1)
    pen.oval(hide, 0, 0.1, 0.82, 0.8)
    pen.oval(hide, 0.62, 0, 0.98, 0.5)
    pen.box(hide, 0.9, 0.25, 1, rng.uniform(0.7, 1))


def _boat(pen: _Pen, rng: Rng) -> None:
    sail, mast = _sail(rng), rng.uniform(0.4, 0.6)
    pen.box((70, 50, 40), mast - 0.025, 0, mast + 0.025, 0.72)
    pen.shape(sail, mast + 0.04, 0.03, mast + 0.04, 0.64, 0.97, 0.64)
    if rng.random() < 0.6:
        pen.shape(sail, mast - 0.04, 0.12, mast - 0.04, 0.64, 0.1, 0.64)
    pen.shape(_paint(rng), 0, 0.7, 1, 0.7, 0.84, 1, 0.16, 1)


def _kite(pen: _Pen, rng: Rng) -> None:
    first, second, middle = _sail(rng), _sail(rng), rng.uniform(0.3, 0.62)
    pen.shape(first, 0.5, 0, 1, middle, 0.5, 0.82)
    pen.shape(second, 0.5, 0, 0, middle, 0.5, 0.82)
    pen.shape(_paint(rng), 0.5, 0.78, 0.66, 1, 0.34, 1)


def _sail(rng: Rng) -> Colour:
    return _grey(rng, 200, 250) if rng.random() < 0.6 else _paint(rng)


def _aeroplane(pen: _Pen, rng: Rng) -> None:
    metal, wing = _grey(rng, 170, 245), _grey(rng, 90, 160)
    root = rng.uniform(0.36, 0.46)
    pen.oval(metal, 0, 0.38, 1, 0.68)
    pen.shape(wing, root, 0.52, root + 0.2, 0.52, root - 0.08, 1, root - 0.2, 1)
    pen.shape(wing, root, 0.46, root + 0.16, 0.46, root, 0.08, root - 0.1, 0.08)
    pen.shape(_paint(rng), 0, 0, 0.1, 0, 0.2, 0.5, 0.06, 0.5)


def _surfboard(pen: _Pen, rng: Rng) -> None:
    board = _sail(rng)
    pen.oval(board, 0, 0.3, 1, 0.72)
    pen.box(_paint(rng), 0.1, 0.47, 0.9, 0.54)
    pen.shape(_grey(rng, 60, 170), 0.1, 0.5, 0.26, 0.5, 0.1, 1)
    pen.shape(board, 0.06, 0, 0.16, 0, 0.3, 0.4, 0.12, 0.5)


def _pizza(pen: _Pen, rng: Rng) -> None:
    pen.oval((190, 130, 70), 0, 0, 1, 1)
    pen.oval((235, 200, 110), 0.09, 0.09, 0.91, 0.91)
    for _ in range(int(rng.integers(4, 10))):
        x, y = rng.uniform(0.2, 0.65, 2)
        pen.oval((190, 50, 40), x, y, x + 0.16, y + 0.16)


_DRAWINGS: dict[str, Callable[[_Pen, Rng], None]] = {
    "aeroplane": _aeroplane,
    "boat": _boat,
    "bottle": _bottle,
    "car": _car,
    "sheep": _sheep,
    "tvmonitor": _tvmonitor,
    "bear": _bear,
    "elephant": _elephant,
    "kite": _kite,
    "laptop": _laptop,
    "pizza": _pizza,
    "surfboard": _surfboard,
    "truck": _truck,
    "vase": _vase,
    "zebra": _zebra,
}

PROPORTIONS: dict[str, float] = {
    "aeroplane": 2.1,
    "boat": 1.0,
    "bottle": 0.44,
    "car": 1.9,
    "sheep": 1.3,
    "tvmonitor": 1.3,
    "bear": 1.3,
    "elephant": 1.35,
    "kite": 0.85,
    "laptop": 1.3,
    "pizza": 1.1,
    "surfboard": 2.2,
    "truck": 1.95,
    "vase": 0.5,
    "zebra": 1.3,
}
"""Width over height of each thing."""

FLYING = frozenset({"aeroplane", "kite"})
"""Things that are in the sky rather than on the ground."""
