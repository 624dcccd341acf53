"""Mistakes in a ground truth: boxes of another layout, boxes that leave their images, crowds alone, repeated files.

A box belongs inside its image. A layout is named only where many boxes leave their images as they are and nearly none
does under another one: the stated sizes of the images prove it, without a detector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from curation.core.wording import counted, examples
from curation.evaluation.conventions import LAYOUTS, Id, boxes_in_pixels
from curation.evaluation.problem import Bools, Floats
from curation.extensions.diagnosis.finding import Finding, box_words

_BEYOND = 2.0
"""Pixels by which a box may leave its image: annotations are rounded, and images resized."""
_FEW = 3
_MANY, _NONE = 0.05, 0.02
"""Shares of boxes that leave their images: so many under a wrong layout, at most so many under the right one."""
_SHARE, _PIXELS = 1.5, 16
EXCHANGED = ("yxhw", "cycxhw")
_WITHIN = "boxes of the truth within their images"


def leaves_image(boxes: Floats, sizes: Floats) -> Bools:
    """Return whether each box, ``x, y, w, h`` in pixels, reaches beyond its image; False where the size is unknown.

    Parameters
    ----------
    boxes : ndarray of float64, shape (n, 4)
    sizes : ndarray of float64, shape (n, 2)
        Width and height of the image of each box, NaN where unstated.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        beyond = (boxes[:, :2] < -_BEYOND) | (boxes[:, :2] + np.maximum(boxes[:, 2:], 0) > sizes + _BEYOND)
    leaving: Bools = np.asarray(beyond.any(axis=1))
    return leaving


def fitting_forms(boxes: Floats, sizes: Floats) -> list[str]:
    """Return the forms under which nearly all boxes lie within their images; none where they do as they are.

    Boxes below one pixel and a half on images of many are shares of the image's size.
    """
    known = np.isfinite(boxes).all(axis=1) & np.isfinite(sizes).all(axis=1)
    boxes, sizes = boxes[known], sizes[known]
    n = len(boxes)
    if n < _FEW:
        return []
    is_share = (np.abs(boxes) <= _SHARE).all(axis=1).mean() >= 1 - _NONE and float(np.median(sizes)) >= _PIXELS
    if not is_share and leaves_image(boxes, sizes).sum() < max(_FEW, _MANY * n):
        return []
    forms = []
    for form in (f"{layout}:0-1" if is_share else layout for layout in LAYOUTS):
        pixels = boxes_in_pixels(boxes, form, sizes)
        impossible = leaves_image(pixels, sizes) | (pixels[:, 2:] <= 0).any(axis=1)
        if impossible.sum() <= _NONE * n:
            forms.append(form)
    return forms


def layout_mistake(forms: Sequence[str], boxes: Floats, sizes: Floats, *, is_settled: bool = False) -> Finding | None:
    """Return the mistake in a truth's boxes that `fitting_forms` proves; None where it proves none.

    Boxes with y first on images whose width and height are exchanged lie within them as well: `is_settled` says that
    detections lie on objects under one form alone.
    """
    if not forms:
        return None
    leaving = leaves_image(boxes, sizes)
    # Boxes in shares of the image's size lie within it.
    is_share = ":" in forms[0]
    now = None if is_share else 1 - float(leaving.mean())
    evidence = (
        f"no box reaches beyond {_SHARE} pixels" if is_share else f"{_share(leaving)} leave their images; {_WITHIN}"
    )
    if {*forms} <= {*EXCHANGED} and not (is_settled and len(forms) == 1):
        mistake = "Either x and y of the truth's boxes, or width and height of its images, are exchanged"
        return Finding(mistake, evidence, now, command=_ASK, side="truth")
    if len(forms) > 1:
        mistake = f"The truth's boxes are {' or '.join(map(box_words, forms))}; {_EXPECTED}"
        return Finding(mistake, evidence, now, command=_ASK, side="truth")
    mended = 1 - float(leaves_image(boxes_in_pixels(boxes, forms[0], sizes), sizes).mean())
    return form_mistake(forms[0], evidence, now, None if is_share else mended)


def form_mistake(form: str, evidence: str, now: float | None, mended: float | None) -> Finding:
    """Return the finding that the boxes of a truth have a form, with the mend."""
    mistake = f"The truth's boxes are {box_words(form)}; {_EXPECTED}"
    return Finding(mistake, evidence, now, mended, f"boxes={form}", side="truth")


_EXPECTED = "expected x, y, width, height in pixels"
_ASK = "curation inspect TRUTH --detections FILE: boxes of detections may tell which"


def other_mistakes(
    boxes: Floats,
    sizes: Floats,
    *,
    crowd: Bools,
    files: Sequence[str],
    ids: Sequence[Id],
    image_at: Callable[[int], str],
    has_layout: bool = False,
) -> Iterator[Finding]:
    """Yield what is wrong with a truth besides the layout of its boxes.

    Parameters
    ----------
    boxes, sizes : ndarray of float64, shape (m, 4) and (m, 2)
        Boxes in pixels, and the size of the image of each.
    crowd : ndarray of bool, shape (m,)
    files, ids
        File name and id of each image.
    image_at : callable
        Names the image of a box.
    has_layout : bool
        Whether another layout explains that boxes leave their images.
    """
    leaving = np.zeros(len(boxes), bool) if has_layout else leaves_image(boxes, sizes)
    if leaving.any():
        rows = np.flatnonzero(leaving)
        beyond = np.nanmax(np.fmax(-boxes[rows, :2], boxes[rows, :2] + boxes[rows, 2:] - sizes[rows]))
        images = examples(dict.fromkeys(f"image {image_at(row)}" for row in rows[:100].tolist()))
        mistake = f"Boxes of the truth leave their images: {_share(leaving)}, by up to {beyond:,.0f} pixels ({images})"
        advice = "compare width and height of these images, and their boxes, with the photos"
        yield Finding(mistake, _WITHIN, 1 - float(leaving.mean()), command=advice, side="truth")
    if len(crowd) and crowd.all():
        mistake = f"All {counted(len(crowd), 'object')} of the truth are crowd: no measure has an object to find"
        yield Finding(mistake, "objects that are no crowd", 0.0, 1.0, "crowd=objects", side="truth")
    by_file = defaultdict[str, list[Id]](list)
    for file, image in zip(files, ids, strict=True):
        if file:
            by_file[file].append(image)
    if repeated := {file: same for file, same in by_file.items() if len(same) > 1}:
        ids_of_file = examples(f"{file:.80}: {' and '.join(map(str, same[:3]))}" for file, same in repeated.items())
        mistake = f"Files of the truth have several image ids: {counted(len(repeated), 'file')} ({ids_of_file})"
        advice = "list each photo once; photos of one name in several folders need the folder in file_name"
        yield Finding(mistake, "files with one id", 1 - len(repeated) / len(by_file), command=advice, side="truth")


def _share(rows: Bools) -> str:
    return f"{int(rows.sum()):,} of {counted(len(rows), 'box', 'boxes')}"
