"""Plain VOC average precision on the closed part of the Elephant world: the evaluator behind the paper's Table 1."""

import json
from pathlib import Path
from typing import Any

from tests.evaluation import reference
from tests.worlds import elephant
from tests.worlds.elephant import CLASSES


def files(folder: Path) -> dict[str, Path]:
    """Write ground truth without unknown objects, and detections as VOC's text files, a file a class."""
    paths = elephant.files(folder)
    truth = json.loads(paths["truth_closed"].read_text(encoding="utf-8"))
    truth["annotations"] = [one for one in truth["annotations"] if one["category_id"] > 0]
    truth["categories"] = [one for one in truth["categories"] if one["id"] > 0]
    paths["truth_closed"].write_text(json.dumps(truth), encoding="utf-8")
    results = folder / "results"
    results.mkdir()
    guesses = elephant.world().inside
    for label, name in enumerate(CLASSES):
        lines = []
        for guess in guesses:
            x, y, w, h = guess.box
            # VOC's corners are 1-based and inclusive.
            corners = f"{x + 1}.0 {y + 1}.0 {x + w}.0 {y + h}.0"
            if guess.label == label:
                lines.append(f"{guess.image + 1:012d} {guess.score / 1000} {corners}\n")
        (results / f"comp4_det_test_{name}.txt").write_text("".join(lines), encoding="utf-8")
    return {"truth": paths["truth_closed"], "json": paths["detections_closed"], "text": results}


def expected() -> dict[str, Any]:
    """Return AP of each class in both flavours, difficult objects ignored."""
    drawn = elephant.only_closed(elephant.world())
    found: Any = reference.paper(drawn)
    result = reference.outcomes(drawn.closed, drawn.inside)
    each: dict[str, Any] = {"AP11": {}, "AP_area": {}, "npos": {}}
    for label, name in enumerate(CLASSES):
        n = reference.count_positives(drawn.closed, label, "ignore")
        events = [
            (guess.score, result[k] == "TP")
            for k, guess in enumerate(drawn.inside)
            if guess.label == label and result[k] != "ignored"
        ]
        points = reference.points(events, grouped=True)
        each["npos"][name] = n
        each["AP11"][name] = reference.eleven(points, n) if n else None
        each["AP_area"][name] = reference.area(points, n) if n else None
    keys = ("mAP11", "mAP_area", "mAP11_ties_in_input_order")
    return {**{key: found[key][0] for key in keys}, **each}
