"""A drawn truth, an honest detector, and the mistakes that people make when they write its results."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Rows = list[dict[str, Any]]
Truth = dict[str, Any]
NUMBERS = [1, 2, 3, 5, 7, 8, 11, 13]


def world(
    n_images: int = 80, seed: int = 7, *, numbers: list[int] | None = None, skill: float = 0.6
) -> tuple[Truth, Rows]:
    """Draw images of different sizes with one to seven objects, and boxes near `skill` of these beside false ones."""
    truth, rows = json.loads(_drawn(n_images, seed, tuple(NUMBERS if numbers is None else numbers), skill))
    return truth, rows


@cache
def _drawn(n_images: int, seed: int, numbers: tuple[int, ...], skill: float) -> str:
    rng = np.random.default_rng(seed)
    ids = sorted(rng.choice(500_000, n_images, replace=False).tolist())
    images = [
        {
            "id": one,
            "file_name": f"{one:012d}.jpg",
            "width": int(rng.integers(300, 900)),
            "height": int(rng.integers(300, 900)),
        }
        for one in rng.permutation(ids).tolist()
    ]
    annotations, rows = [], []
    for image in images:
        width, height = image["width"], image["height"]

        def box(width: int = width, height: int = height) -> list[float]:
            w, h = width * rng.uniform(0.08, 0.4), height * rng.uniform(0.08, 0.4)
            return [round(float(one), 2) for one in (rng.uniform(0, width - w), rng.uniform(0, height - h), w, h)]

        for _ in range(int(rng.integers(1, 8))):
            number, at = int(rng.choice(numbers)), box()
            annotations.append({"id": len(annotations) + 1, "image_id": image["id"], "category_id": number, "bbox": at,
                                "area": at[2] * at[3], "iscrowd": 0})  # fmt: skip
            if rng.random() < skill:
                shaken = [round(one + float(rng.normal(0, 0.06)) * at[2 + k % 2], 2) for k, one in enumerate(at)]
                called = number if rng.random() < 0.9 else int(rng.choice(numbers))
                score = round(float(rng.uniform(0.3, 1)), 4)
                rows.append({"image_id": image["id"], "category_id": called, "bbox": shaken, "score": score})
        for _ in range(3):
            score = round(float(rng.uniform(0, 0.6)), 4)
            rows.append(
                {"image_id": image["id"], "category_id": int(rng.choice(numbers)), "bbox": box(), "score": score}
            )
    categories = [{"id": one, "name": f"class {one}"} for one in numbers]
    return json.dumps([{"images": images, "categories": categories, "annotations": annotations}, rows])


def _boxes(change: Callable[[float, float, float, float, float, float], list[float]]) -> Callable[[Rows, Truth], Rows]:
    def changed(rows: Rows, truth: Truth) -> Rows:
        sizes = {one["id"]: (one["width"], one["height"]) for one in truth["images"]}
        return [row | {"bbox": change(*row["bbox"], *sizes[row["image_id"]])} for row in rows]

    return changed


def _field(name: str, change: Callable[[Any], Any]) -> Callable[[Rows, Truth], Rows]:
    return lambda rows, truth: [row | {name: change(row[name])} for row in rows]


def _listed(name: str, table: Callable[[Truth], dict[Any, Any]]) -> Callable[[Rows, Truth], Rows]:
    def changed(rows: Rows, truth: Truth) -> Rows:
        known = table(truth)
        return [row | {name: known[row[name]]} for row in rows]

    return changed


def _in_square(x: float, y: float, w: float, h: float, W: int, H: int, before: float) -> list[float]:
    """A box in a square of 640, with this share of the margin before the image."""
    scale = 640 / max(W, H)
    left, above = (before * (640 - scale * side) for side in (W, H))
    return [scale * x + left, scale * y + above, scale * w, scale * h]


def _cycle(truth: Truth) -> dict[int, int]:
    numbers = [one["id"] for one in truth["categories"]]
    return dict(zip(numbers, [*numbers[1:], numbers[0]], strict=True))


MISTAKES: dict[str, tuple[Callable[[Rows, Truth], Rows], str]] = {
    "corners": (_boxes(lambda x, y, w, h, W, H: [x, y, x + w, y + h]), "boxes=xyxy"),
    "centres": (_boxes(lambda x, y, w, h, W, H: [x + w / 2, y + h / 2, w, h]), "boxes=cxcywh"),
    "parts": (_boxes(lambda x, y, w, h, W, H: [x / W, y / H, w / W, h / H]), "boxes=xywh:0-1"),
    "corner parts": (_boxes(lambda x, y, w, h, W, H: [x / W, y / H, (x + w) / W, (y + h) / H]), "boxes=xyxy:0-1"),
    "yolo": (_boxes(lambda x, y, w, h, W, H: [(x + w / 2) / W, (y + h / 2) / H, w / W, h / H]), "boxes=cxcywh:0-1"),
    "thousandths": (
        _boxes(lambda x, y, w, h, W, H: [1000 * x / W, 1000 * y / H, 1000 * (x + w) / W, 1000 * (y + h) / H]),
        "boxes=xyxy:0-1000",
    ),
    "swapped axes": (_boxes(lambda x, y, w, h, W, H: [y, x, h, w]), "boxes=yxhw"),
    "swapped corners": (_boxes(lambda x, y, w, h, W, H: [y, x, y + h, x + w]), "boxes=yxyx"),
    "half size": (_boxes(lambda x, y, w, h, W, H: [x / 2, y / 2, w / 2, h / 2]), "boxes=xywh:x2"),
    "input size": (
        _boxes(lambda x, y, w, h, W, H: [640 * x / W, 640 * y / H, 640 * w / W, 640 * h / H]),
        "boxes=xywh:0-640",
    ),
    "letterboxed": (_boxes(lambda *box: _in_square(*box, 0.5)), "boxes=xywh:letterbox-640"),
    "letterboxed corners": (
        _boxes(lambda *box: [(a := _in_square(*box, 0.5))[0], a[1], a[0] + a[2], a[1] + a[3]]),
        "boxes=xyxy:letterbox-640",
    ),
    "padded below": (_boxes(lambda *box: _in_square(*box, 0)), "boxes=xywh:corner-640"),
    "offset": (_boxes(lambda x, y, w, h, W, H: [x + 200, y + 120, w, h]), "boxes=xywh:-200,-120"),
    "ids off by one": (_field("image_id", lambda one: one + 1), "image_ids=-1"),
    "ids off by a million": (_field("image_id", lambda one: one + 1_000_000), "image_ids=-1000000"),
    "names of other photos": (
        _listed("image_id", lambda t: {i["id"]: i["file_name"].replace(".jpg", ".png") for i in t["images"]}),
        "image_ids=stem",
    ),
    "positions": (_listed("image_id", lambda t: {i["id"]: n for n, i in enumerate(t["images"])}), "image_ids=index0"),
    "0-based classes": (
        _listed("category_id", lambda t: {c["id"]: n for n, c in enumerate(t["categories"])}),
        "category_ids=index0",
    ),
    "1-based classes": (
        _listed("category_id", lambda t: {c["id"]: n for n, c in enumerate(t["categories"], 1)}),
        "category_ids=index1",
    ),
    "permuted": (_listed("category_id", _cycle), "category_ids=1:13,11:8,13:11,2:1,3:2,5:3,7:5,8:7"),
    "names": (_listed("category_id", lambda t: {c["id"]: c["name"] for c in t["categories"]}), "category_ids=name"),
    "names in capitals": (
        _listed("category_id", lambda t: {c["id"]: f"{c['name'].upper()} " for c in t["categories"]}),
        "category_ids=name",
    ),
    "percent": (_field("score", lambda one: 100 * one), "scores=percent"),
    "logits": (_field("score", lambda one: math.log(max(one, 1e-6) / (1 - min(one, 1 - 1e-6)))), "scores=logits"),
    "low is good": (_field("score", lambda one: 1 - one), "scores=inverted"),
    "joined twice": (lambda rows, truth: rows + rows, "duplicates=drop"),
}
"""What a mistake makes of sound results, and the mend that is wanted."""


def written(folder: Path, truth: Truth, rows: Rows) -> tuple[Path, Path]:
    paths = folder / "truth.json", folder / "detections.json"
    for path, held in zip(paths, (truth, rows), strict=True):
        path.write_text(json.dumps(held))
    return paths
