"""A small world on disk, in the layouts that VOC and COCO really have: photos, XML, image sets, instances JSON.

A photo is a landscape, things that stand or fly in it, and a camera that is never quite the same. Six kinds of things a
VOC detector knows, nine it does not and may mistake for them: no two drawings of a thing are equal (paint,
proportions, direction and tilt vary), and each unknown thing shares some of its looks with a known one (a pick-up truck
with a car, a slim vase with a bottle, a laptop with a screen).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from curation.errors import MissingExtraError
from curation.storage import write_bytes, write_text

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
    small = np.asarray(tilted.crop(tilted.getbbox()).resize((width, height), image.Resampling.BOX), np.float64)
    light = np.linspace(1.12, 0.84, height)[:, None, None] * rng.uniform(0.75, 1.1)
    return (small[..., :3] * light).clip(0, 255).astype(np.uint8), small[..., 3] / 255


def pillow(module: str) -> Any:
    """Return a module of Pillow, or raise `MissingExtraError`: the package itself does without."""
    try:
        return importlib.import_module(f"PIL.{module}")
    except ImportError:
        raise MissingExtraError("The demo draws photos and needs Pillow", hint="python -m pip install pillow") from None


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


WIDTH, HEIGHT = 160, 120
Canvas = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Owners = npt.NDArray[np.int64]

_GROUNDS = np.array([[112, 142, 84], [152, 140, 104], [104, 132, 150], [138, 142, 138]], np.float64)
_PLACES_TRIED = 3
_CROWDED = 0.3  # the share of a place that may be taken already before another is tried
_UNSEEN = 0.85


@dataclass(frozen=True, slots=True)
class Thing:
    """One object of a photo.

    Attributes
    ----------
    name : str
    box : tuple of int
        ``x, y, w, h`` in whole pixels: the extent of what is visible of it.
    hidden : float
        The share of it that other things or the edge of the photo hide.
    crowd : bool
        Whether it stands for a group whose members are not told apart.
    mask : ndarray of bool, shape (HEIGHT, WIDTH)
        Where it is visible.
    """

    name: str
    box: tuple[int, int, int, int]
    hidden: float
    crowd: bool
    mask: Mask


@dataclass(frozen=True, slots=True)
class _Cutout:
    """A drawing at its place: left, top, colours, shape (h, w, 3), and coverage from 0 to 1, shape (h, w)."""

    name: str
    x: int
    y: int
    colours: Pixels
    coverage: Canvas


def draw_scene(names: Sequence[str], rng: Rng, *, herd: str | None = None) -> tuple[Pixels, list[Thing]]:
    """Return a photo, shape (HEIGHT, WIDTH, 3), uint8, and the things that can be seen in it.

    Parameters
    ----------
    names : sequence of str
        One thing each, drawn one over the other; a thing of which hardly anything shows is not returned.
    herd : str, optional
        A thing of which a distant group is drawn first, returned as one crowd.
    """
    horizon = int(rng.integers(38, 62))
    canvas = _landscape(horizon, rng)
    owner = np.full((HEIGHT, WIDTH), -1)
    groups = []
    for number, name in enumerate([herd, *names] if herd else names):
        group = (_herd if herd and number == 0 else _alone)(name, horizon, owner, rng)
        for cutout in group:
            _paste(canvas, owner, cutout, number)
        groups.append(group)
    things = [_seen(group, owner == number) for number, group in enumerate(groups)]
    return _photograph(canvas, rng), [thing for thing in things if thing.hidden < _UNSEEN]


def _landscape(horizon: int, rng: Rng) -> Canvas:
    """Return sky and ground with clouds, bushes and stones: what a detector has to call background."""
    rows = np.arange(HEIGHT)[:, None, None]
    sky = np.array([158, 192, 222]) + rng.normal(0, 12, 3) + rows * 0.3
    ground = _GROUNDS[rng.integers(len(_GROUNDS))] + rng.normal(0, 7, 3) + rng.normal(0, 9) - (rows - horizon) * 0.25
    canvas: Canvas = np.where(rows < horizon, sky, ground) + np.zeros((HEIGHT, WIDTH, 3))
    for _ in range(int(rng.integers(0, 3))):
        _tint(canvas, _blobs(rng.uniform(5, horizon - 5), rng), np.array([238, 240, 244]), rng)
    for _ in range(int(rng.integers(0, 4))):
        stuff = np.array([[70, 100, 55], [120, 115, 108], [85, 80, 60]])[rng.integers(3)]
        _tint(canvas, _blobs(rng.uniform(horizon, HEIGHT - 4), rng), stuff + rng.normal(0, 8, 3), rng)
    return canvas


def _blobs(centre_y: float, rng: Rng) -> Canvas:
    """Return the coverage of a soft heap of ovals, shape (HEIGHT, WIDTH)."""
    sheet = pillow("Image").new("L", (WIDTH * 2, HEIGHT * 2), 0)
    brush = pillow("ImageDraw").Draw(sheet)
    centre_x, size = rng.uniform(0, WIDTH), rng.uniform(3, 9)
    for _ in range(5):
        x, y = centre_x + rng.normal(0, size), centre_y + rng.normal(0, size / 4)
        flat = size * rng.uniform(0.4, 0.8)
        brush.ellipse([2 * (x - size), 2 * (y - flat), 2 * (x + size), 2 * (y + flat)], fill=255)
    return np.asarray(sheet.resize((WIDTH, HEIGHT), pillow("Image").Resampling.BOX), np.float64) / 255


def _tint(canvas: Canvas, coverage: Canvas, colour: npt.NDArray[np.float64], rng: Rng) -> None:
    rows = np.flatnonzero(coverage.any(axis=1))
    if len(rows):
        band = slice(int(rows[0]), int(rows[-1]) + 1)
        canvas[band] += coverage[band, :, None] * rng.uniform(0.3, 0.9) * (colour - canvas[band])


def _alone(name: str, horizon: int, owner: Owners, rng: Rng) -> list[_Cutout]:
    """Return a thing at the freest of a few places: in the sky, or on the ground and larger the nearer it is."""
    candidates = [_place(name, horizon, rng) for _ in range(_PLACES_TRIED)]
    for x, y, width, height in candidates:
        taken = owner[max(y, 0) : y + height, max(x, 0) : x + width] >= 0
        if taken.mean() <= _CROWDED:
            break
    colours, coverage = draw_thing(name, width, height, rng)
    return [_Cutout(name, x, y, colours, coverage)]


def _place(name: str, horizon: int, rng: Rng) -> tuple[int, int, int, int]:
    foot = rng.uniform(14, horizon + 6) if name in FLYING else rng.uniform(horizon + 4, HEIGHT + 3)
    near = rng.uniform(0.2, 0.8) if name in FLYING else (foot - horizon) / (HEIGHT - horizon)
    area = ((13 + 26 * near) * rng.uniform(0.85, 1.2)) ** 2
    proportion = PROPORTIONS[name] * rng.uniform(0.85, 1.18)
    width, height = round((area * proportion) ** 0.5), round((area / proportion) ** 0.5)
    x = int(rng.uniform(-0.15 * width, WIDTH - 0.85 * width))
    return x, int(foot) - height, width, height


def _herd(name: str, horizon: int, _: Owners, rng: Rng) -> list[_Cutout]:
    """Return a row of small things that overlap."""
    left, foot = rng.uniform(2, WIDTH * 0.5), horizon + rng.uniform(6, 14)
    cutouts = []
    for position in range(int(rng.integers(5, 9))):
        height = int(rng.uniform(9, 13))
        width = round(height * PROPORTIONS[name])
        colours, coverage = draw_thing(name, width, height, rng)
        x = int(left + position * width * 0.6)
        cutouts.append(_Cutout(name, x, int(foot + rng.uniform(-2, 2)) - height, colours, coverage))
    return cutouts


def _paste(canvas: Canvas, owner: Owners, cutout: _Cutout, number: int) -> None:
    inside, own = _window(cutout)
    coverage = cutout.coverage[own]
    canvas[inside] += coverage[..., None] * (cutout.colours[own] - canvas[inside])
    owner[inside][coverage > 0.5] = number


def _window(cutout: _Cutout) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return where a cutout lies on the photo, and which part of the cutout that is."""
    height, width = cutout.coverage.shape
    top, left = max(cutout.y, 0), max(cutout.x, 0)
    bottom, right = min(cutout.y + height, HEIGHT), min(cutout.x + width, WIDTH)
    own = slice(top - cutout.y, bottom - cutout.y), slice(left - cutout.x, right - cutout.x)
    return (slice(top, bottom), slice(left, right)), own


def _seen(group: Sequence[_Cutout], mask: Mask) -> Thing:
    crowd = len(group) > 1
    full = sum(int((cutout.coverage > 0.5).sum()) for cutout in group)
    if not mask.any():
        return Thing(group[0].name, (0, 0, 0, 0), 1.0, crowd, mask)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    x, y = int(columns[0]), int(rows[0])
    box = (x, y, int(columns[-1]) + 1 - x, int(rows[-1]) + 1 - y)
    # The members of a group overlap by intent: what they hide of each other is not hidden from view.
    hidden = 0.0 if crowd else 1 - int(mask.sum()) / full
    return Thing(group[0].name, box, hidden, crowd, mask)


def _photograph(canvas: Canvas, rng: Rng) -> Pixels:
    """Return what a camera makes of a scene: exposure, focus and noise vary."""
    exposed = canvas * rng.uniform(0.78, 1.16) + rng.normal(0, 4, 3)
    image = pillow("Image").fromarray(exposed.clip(0, 255).astype(np.uint8))
    blurred = np.asarray(image.filter(pillow("ImageFilter").GaussianBlur(float(rng.uniform(0, 1.1)))))
    noisy = blurred + rng.normal(0, rng.uniform(3, 9), blurred.shape)
    photo: Pixels = noisy.clip(0, 255).astype(np.uint8)
    return photo


KNOWN = ("aeroplane", "boat", "bottle", "car", "sheep", "tvmonitor")
COCO_CATEGORIES = {
    "car": (3, "car", "vehicle"),
    "aeroplane": (5, "airplane", "vehicle"),
    "truck": (8, "truck", "vehicle"),
    "boat": (9, "boat", "vehicle"),
    "sheep": (20, "sheep", "animal"),
    "elephant": (22, "elephant", "animal"),
    "bear": (23, "bear", "animal"),
    "zebra": (24, "zebra", "animal"),
    "kite": (38, "kite", "sports"),
    "surfboard": (42, "surfboard", "sports"),
    "bottle": (44, "bottle", "kitchen"),
    "pizza": (59, "pizza", "food"),
    "tvmonitor": (72, "tv", "electronic"),
    "laptop": (73, "laptop", "electronic"),
    "vase": (86, "vase", "indoor"),
}
UNKNOWN = tuple(name for name in COCO_CATEGORIES if name not in KNOWN)
_COCO_NUMBERS = np.arange(9, 10_000)
MOST_COCO_IMAGES = len(_COCO_NUMBERS)
_POSES = ("Unspecified", "Left", "Right", "Frontal", "Rear")
_HARD_TO_SEE = 11  # pixels
_EMPTY, _UNKNOWN_ONLY = 0.04, 0.6
_WITH_HERD, _HERDS = 0.06, ("elephant", "zebra", "kite")


@dataclass(frozen=True, slots=True)
class World:
    """Where the two datasets lie, and a file of the class names (``known``, ``unknown``)."""

    voc_root: Path
    coco_root: Path
    classes: Path

    @property
    def coco_json(self) -> Path:
        """The annotation file of the wilderness."""
        return self.coco_root / "annotations" / "instances_train2017.json"


def draw_world(folder: Path, *, n_train: int = 160, n_test: int = 140, n_coco: int = 330, seed: int = 2020) -> World:
    """Return a world drawn into `folder`: VOC2007 train and test, and a COCO train2017 with a wilderness.

    Parameters
    ----------
    n_train, n_test : int
        VOC images, all with known things.
    n_coco : int
        COCO images; about three in five show unknown things only, a few show nothing and have no annotation.
    seed : int
        The same seed draws the same bytes.
    """
    world = World(folder / "VOCdevkit" / "VOC2007", folder / "coco", folder / "classes.json")
    streams = np.random.SeedSequence(seed).spawn(3)
    numbers = iter(range(1, n_train + n_test + 1))
    for part, count, stream in (("train", n_train, streams[0]), ("test", n_test, streams[1])):
        stems = [f"{next(numbers):06d}" for _ in range(count)]
        _write_voc(world.voc_root, part, stems, np.random.default_rng(stream))
    _write_coco(world.coco_root, n_coco, np.random.default_rng(streams[2]))
    write_text(world.classes, json.dumps({"known": KNOWN, "unknown": UNKNOWN}, indent=1) + "\n", guarded=False)
    return world


def _write_voc(root: Path, part: str, stems: list[str], rng: Rng) -> None:
    for stem in tqdm(stems, desc=f"drawing VOC {part}", disable=None):
        scene, things = _scene_with_things(_drawn(KNOWN, rng), rng)
        _write_photo(root / "JPEGImages" / f"{stem}.jpg", scene)
        objects = "".join(_voc_object(thing, str(rng.choice(_POSES))) for thing in things)
        text = (
            f"<annotation>\n<folder>VOC2007</folder>\n<filename>{stem}.jpg</filename>\n<size><width>{WIDTH}</width>"
            f"<height>{HEIGHT}</height><depth>3</depth></size>\n<segmented>0</segmented>\n{objects}</annotation>\n"
        )
        write_text(root / "Annotations" / f"{stem}.xml", text, guarded=False)
    write_text(root / "ImageSets" / "Main" / f"{part}.txt", "".join(f"{stem}\n" for stem in stems), guarded=False)


def _drawn(names: tuple[str, ...], rng: Rng) -> list[str]:
    """Return one to three names."""
    return [str(rng.choice(names)) for _ in range(int(rng.integers(1, 4)))]


def _scene_with_things(names: list[str], rng: Rng) -> tuple[Pixels, list[Thing]]:
    """Return a scene in which at least one thing can be seen: every VOC image has an object."""
    while True:
        scene, things = draw_scene(names, rng)
        if things:
            return scene, things


def _voc_object(thing: Thing, pose: str) -> str:
    x, y, width, height = thing.box
    difficult = thing.hidden > 0.35 or min(width, height) < _HARD_TO_SEE
    return (
        f"<object><name>{escape(thing.name)}</name><pose>{pose}</pose><truncated>{int(thing.hidden > 0.1)}</truncated>"
        f"<difficult>{int(difficult)}</difficult><bndbox><xmin>{x + 1}</xmin><ymin>{y + 1}</ymin>"
        f"<xmax>{x + width}</xmax><ymax>{y + height}</ymax></bndbox></object>\n"
    )


def _write_coco(root: Path, n_images: int, rng: Rng) -> None:
    # Real COCO numbers are scattered; some coincide with VOC's as integers, which must do no harm.
    numbers = sorted(int(number) for number in rng.choice(_COCO_NUMBERS, n_images, replace=False))
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in tqdm(numbers, desc="drawing COCO train2017", disable=None):
        scene, things = _coco_scene(rng)
        name = f"{number:012d}.jpg"
        _write_photo(root / "train2017" / name, scene)
        images.append({"license": 1, "file_name": name, "height": HEIGHT, "width": WIDTH, "id": number})
        annotations += [_coco_annotation(thing, number) for thing in things]
    rng.shuffle(images)
    for serial, annotation in enumerate(annotations, start=1):
        annotation["id"] = serial
    content = {
        "info": {"description": "a drawn world, for the demo of curation"},
        "licenses": [{"id": 1, "name": "CC0", "url": "https://creativecommons.org/publicdomain/zero/1.0/"}],
        "images": images,
        "annotations": annotations,
        "categories": [
            {"supercategory": group, "id": number, "name": name} for number, name, group in COCO_CATEGORIES.values()
        ],
    }
    write_text(root / "annotations" / "instances_train2017.json", json.dumps(content), guarded=False)


def _coco_scene(rng: Rng) -> tuple[Pixels, list[Thing]]:
    """Return a scene that is empty (1 in 25), of unknown things only (3 in 5), or has known ones too."""
    draw = rng.random()
    if draw < _EMPTY:
        return draw_scene([], rng)
    herd = str(rng.choice(_HERDS)) if rng.random() < _WITH_HERD else None
    names = _drawn(UNKNOWN, rng)
    if draw >= _EMPTY + _UNKNOWN_ONLY:
        names = [*names[:2], str(rng.choice(KNOWN))]
    return draw_scene(names, rng, herd=herd)


def _coco_annotation(thing: Thing, image: int) -> dict[str, Any]:
    x, y, width, height = thing.box
    outline: Any = [[x, y, x + width, y, x + width, y + height, x, y + height]]
    return {
        "segmentation": run_lengths(thing.mask) if thing.crowd else outline,
        "area": float(thing.mask.sum()) if thing.crowd else float(width * height),
        "iscrowd": int(thing.crowd),
        "image_id": image,
        "bbox": [float(x), float(y), float(width), float(height)],
        "category_id": COCO_CATEGORIES[thing.name][0],
    }


def run_lengths(mask: Mask) -> dict[str, Any]:
    """Return COCO's uncompressed run-length code: lengths down the columns, beginning with what is outside."""
    column = np.concatenate([[False], mask.ravel(order="F")])
    changes = np.flatnonzero(column[1:] != column[:-1])
    return {"counts": np.diff([0, *changes.tolist(), mask.size]).tolist(), "size": list(mask.shape)}


def _write_photo(path: Path, scene: Pixels) -> None:
    stream = BytesIO()
    pillow("Image").fromarray(scene).save(stream, "JPEG", quality=90)
    write_bytes(path, stream.getvalue(), guarded=False)
