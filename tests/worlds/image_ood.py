"""A world for image-level OOD scores: small sets with many equal scores, in plain loops over exact fractions.

The scores are whole numbers. Every number is computed from counts at each distinct score, as the specification says it;
the ROC of the variant ``openood`` loses the points that scikit-learn leaves out.
"""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.worlds.drawing import Draws

SIZES = {
    "imagenet": 50, "imagenet_v2": 12, "imagenet_c": 10, "imagenet_r": 14, "ssb_hard": 50, "ninco": 31,
    "inaturalist": 20, "textures": 50, "openimage_o": 25, "imagenetood": 40,
}  # fmt: skip
SHIFTED = ("imagenet_v2", "imagenet_c", "imagenet_r")
GROUPS = {"near": ("ssb_hard", "ninco"), "far": ("inaturalist", "textures", "openimage_o")}
CLASSES = ("elk", "newt", "owl")
SETS = {
    "openood": ("imagenet", *SHIFTED, *GROUPS["near"], *GROUPS["far"]),
    "ninco": ("imagenet", "ninco"),
    "imagenetood": ("imagenet", "imagenetood"),
}
NINETY_FIVE = Fraction(95, 100)
Points = list[tuple[int, int]]


def drawn(name: str) -> list[tuple[str, int, int, int]]:
    """Return path, score, label and prediction of each image; every score of textures is an ID score too."""
    draws, images = Draws(f"image_ood/{name}"), []
    is_id = name in ("imagenet", *SHIFTED)
    for place in range(SIZES[name]):
        score = 3 * (place % 20) if name in ("imagenet", "textures") else draws.below(50) + 8 * is_id
        folder = CLASSES[place % 7 % 3] if name == "ninco" else name
        label = draws.below(5) if is_id else -1
        images.append((f"{folder}/{name}_{place:03}.jpg", score, label, label if draws.below(4) else 5))
    return images


def files(folder: Path, protocol: str) -> dict[str, Path]:
    """Write a folder of ``.csv`` files, one a set."""
    (folder / "scores").mkdir()
    for name in SETS[protocol]:
        lines = [",".join(map(str, row)) for row in drawn(name)]
        text = "\n".join(["image,score,label,prediction", *lines]) + "\n"
        (folder / "scores" / f"{name}.csv").write_text(text, encoding="utf-8")
    return {"scores": folder / "scores"}


def auroc(ids: list[int], oods: list[int]) -> Fraction:
    won = Fraction(0)
    for one in ids:
        for other in oods:
            won += 1 if one > other else Fraction(1, 2) if one == other else 0
    return won / (len(ids) * len(oods))


def curve(positive: list[int], negative: list[int]) -> Points:
    """Return true and false positives at each distinct score, from the highest down."""
    levels = sorted({*positive, *negative}, reverse=True)
    return [(sum(one >= level for one in positive), sum(one >= level for one in negative)) for level in levels]


def aupr(positive: list[int], negative: list[int], start: Fraction = Fraction(1)) -> Fraction:
    points = [(Fraction(0), start)]
    points += [(Fraction(tp, len(positive)), Fraction(tp, tp + fp)) for tp, fp in curve(positive, negative)]
    return sum(((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points)), Fraction(0))


def kept_by_scikit_learn(points: Points) -> Points:
    """Return the ends, and the points between steps that differ in one of the counts."""
    inner = [
        here
        for before, here, after in zip(points, points[1:], points[2:], strict=False)
        if (after[0] - here[0], after[1] - here[1]) != (here[0] - before[0], here[1] - before[1])
    ]
    return [points[0], *inner, points[-1]] if len(points) > 2 else points


def first_fpr(points: Points) -> Fraction:
    n, m = points[-1]
    return next(Fraction(fp, m) for tp, fp in points if Fraction(tp, n) >= NINETY_FIVE)


def interpolated_fpr(ids: list[int], oods: list[int]) -> Fraction:
    # The authors' number, a hair above 0.05.
    ranked, place = sorted(ids), Fraction(1 - 0.95) * (len(ids) - 1)
    low = int(place)
    high = min(low + 1, len(ids) - 1)
    threshold = ranked[low] + (place - low) * (ranked[high] - ranked[low])
    return Fraction(sum(one >= threshold for one in oods), len(oods))


def ranked_fpr(ids: list[int], oods: list[int]) -> Fraction:
    threshold = sorted(ids)[round(Fraction(5, 100) * len(ids))]
    return Fraction(sum(one > threshold for one in oods), len(oods))


def fpr(variant: str, protocol: str, ids: list[int], oods: list[int]) -> Fraction:
    if protocol != "openood":
        return first_fpr(curve(ids, oods)) if variant == "exact" else interpolated_fpr(ids, oods)
    if variant == "ssb":
        return ranked_fpr(ids, oods)
    points = curve([-one for one in oods], [-one for one in ids])
    return first_fpr(points if variant == "exact" else kept_by_scikit_learn(points))


def rows(protocol: str, variant: str, id_sets: tuple[str, ...]) -> dict[str, Any]:
    """Return the numbers of every set and group."""
    images = [one for name in id_sets for one in drawn(name)]
    ids = [score for _, score, _, _ in images]
    accuracy = Fraction(sum(label == answer for _, _, label, answer in images), len(images))
    oods = {name: [row[1] for row in drawn(name)] for name in SETS[protocol] if name not in ("imagenet", *SHIFTED)}
    start = Fraction(1, 2) if variant == "ssb" else Fraction(1)
    groups = GROUPS if protocol == "openood" else {"imagenetood": ("imagenetood",)} if protocol != "ninco" else {}
    if protocol == "ninco":
        for one in CLASSES:
            oods[one] = [row[1] for row in drawn("ninco") if row[0].startswith(one)]
        groups = {"classes": CLASSES}
    found = {
        name: {
            "AUROC": auroc(ids, own),
            "AUPR_IN": aupr(ids, own, start),
            "AUPR_OUT": aupr([-one for one in own], [-one for one in ids], start),
            "FPR95": fpr(variant, protocol, ids, own),
            "ACC": accuracy,
            "n": {"id": len(ids), "ood": len(own), "sets": 1},
        }
        for name, own in oods.items()
    }
    for group, names in groups.items():
        means = {key: sum(found[name][key] for name in names) / len(names) for key in ("AUROC", "AUPR_IN", "AUPR_OUT")}
        means["FPR95"] = sum((found[name]["FPR95"] for name in names), Fraction(0)) / len(names)
        n = {"id": len(ids), "ood": sum(found[name]["n"]["ood"] for name in names), "sets": len(names)}
        found[group] = {**means, "ACC": accuracy, "n": n}
    return found


def expected() -> dict[str, Any]:
    """Return every number of the three benchmarks, by protocol, setting, variant and row."""
    return {
        "openood": {
            setting: {variant: rows("openood", variant, ids) for variant in ("exact", "openood", "ssb")}
            for setting, ids in (("ood", ("imagenet",)), ("fsood", ("imagenet", *SHIFTED)))
        },
        "ninco": {"ood": {variant: rows("ninco", variant, ("imagenet",)) for variant in ("exact", "ninco")}},
        "imagenetood": {"ood": {"exact": rows("imagenetood", "exact", ("imagenet",))}},
    }
