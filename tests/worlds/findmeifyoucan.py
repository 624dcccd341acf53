"""A world for the OOD evaluator of FindMeIfYouCan: both readings, three FPR rules, two threshold rules, in loops.

Detections are given with a class, a confidence and an OOD score; some images have no object, some no detection.
"""

from pathlib import Path
from typing import Any

from tests.evaluation import ood_reference as reference
from tests.evaluation.ood_reference import Box, Found, OodWorld
from tests.worlds.coco_file import coco_content, write_all
from tests.worlds.drawing import Draws

N_IMAGES = 30
THRESHOLDS = ("zscore", "quantile")
MODES = ("official", "paper")


def drawn() -> OodWorld:
    draws = Draws("findmeifyoucan")
    objects: dict[int, list[Box]] = {}
    found: dict[int, list[Found]] = {}
    # Distinct confidences: with equal ones the order of images and of a file would decide.
    confidences = iter(sorted(range(1, 1000, 4), key=lambda one: Draws(f"confidence/{one}").below(2**32)))
    for image in range(1, N_IMAGES + 1):
        n_objects = 0 if image % 9 == 0 else draws.below(4)
        objects[image] = [
            (float(draws.below(200)), float(draws.below(150)), float(20 + draws.below(80)), float(20 + draws.below(80)))
            for _ in range(n_objects)
        ]
        rows = []
        for box in objects[image]:
            for _ in range(draws.below(4)):
                x, y, w, h = box
                if draws.one_in(5):
                    h /= 2
                elif draws.below(2):
                    x, y = x + draws.below(20), y + draws.below(20)
                rows.append(((x, y, x + w, y + h), next(confidences) / 1000, float(draws.below(60)) / 4))
        if draws.one_in(3) or image == 9:
            rows.append(((5.0, 5.0, 60.0, 61.5), next(confidences) / 1000, float(draws.below(60)) / 4))
        if rows:
            found[image] = [Found(box, confidence, score) for box, confidence, score in rows]
    ids = [float(40 + draws.below(60)) / 4 for _ in range(63)]
    return OodWorld(objects, found, ids)


def files(folder: Path) -> dict[str, Path]:
    """Write ground truth, detections and ID scores."""
    world = drawn()
    boxes = [(image, box) for image, listed in world.objects.items() for box in listed]
    rows = [(image, "fox", box, {"iscrowd": int(k % 7 == 0)}) for k, (image, box) in enumerate(boxes, 1)]
    content: dict[str, Any] = {
        "truth": coco_content({k: f"{k}.jpg" for k in world.objects}, rows, ("fox",), size=(400, 300)),
        "detections": [
            {"image_id": image, "bbox_xyxy": list(one.box), "score": one.confidence, "ood_score": one.score}
            for image, listed in world.found.items()
            for one in listed
        ],
        "id_scores": {"scores": world.ids},
    }
    return write_all(folder, content)


def expected() -> dict[str, Any]:
    """Return every number of every variant, by threshold rule."""
    world = drawn()
    ids, oods = world.ids, [one.score for listed in world.found.values() for one in listed]
    separability = {
        "AUROC": reference.area_under_roc(ids, oods),
        "AUPR_trapezoid": reference.aupr_trapezoid(ids, oods),
        "AUPR_step": reference.aupr_step(ids, oods),
        # The rule that the evaluator takes unless it is told another one.
        "FPR95": {"value": reference.fpr_first(ids, oods)},
        "FPR95_first": reference.fpr_first(ids, oods),
        "FPR95_nearest_vos": reference.fpr_nearest_vos(ids, oods),
        "FPR95_ood_positive": reference.fpr_ood_positive(ids, oods),
        "threshold_zscore": reference.zscore(ids),
        "threshold_quantile": reference.quantile(ids),
        "pct_images_without_predictions": round(100 * (N_IMAGES - len(world.found)) / N_IMAGES, 2),
    }
    values = {"zscore": reference.zscore(ids), "quantile": reference.quantile(ids)}
    return {
        rule: {
            **separability,
            "threshold": values[rule],
            **{mode: rounded(reference.open_set(world, values[rule], mode)) for mode in MODES},
        }
        for rule in THRESHOLDS
    }


def rounded(section: dict[str, float]) -> dict[str, float]:
    """Round shares as the published code does: to three decimals."""
    return {key: round(value, 3) for key, value in section.items()}
