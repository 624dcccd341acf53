"""Little photos: a landscape, things that stand or fly in it, and a camera that is never quite the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curation.demo.shapes import FLYING, PROPORTIONS, Pixels, Rng, draw_thing, pillow

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
    ground = (
        _GROUNDS[rng.integers(len(_GROUNDS))]
        + rng.normal(0, 7, 3)
        + rng.normal(0, 9)
        - (rows - horizon) * 0.25
    )
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
