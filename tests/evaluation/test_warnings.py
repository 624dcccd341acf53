"""The shell and Python say the same: warnings of a command, of its result, and those that Python raises."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.cli import main
from curation.core.errors import CurationWarning
from tests.extensions.diagnosis.mistaken import Rows, Truth, world

MISTAKES: dict[str, Callable[[Truth, Rows], tuple[Truth, Rows]]] = {
    "none": lambda truth, rows: (truth, rows),
    "boxes in shares": lambda truth, rows: (truth, in_shares(truth, rows)),
    "no detection": lambda truth, rows: (truth, []),
    "names that are nearly one": lambda truth, rows: (
        truth | {"categories": [truth["categories"][0] | {"name": " CLASS 2"}, *truth["categories"][1:]]},
        rows,
    ),
}
EXPECTED = {"none": [], "boxes in shares": ["parts of the image's size"], "no detection": ["holds no detections"],
            "names that are nearly one": ["differ only in case"]}  # fmt: skip


def in_shares(truth: Truth, rows: Rows) -> Rows:
    size = {image["id"]: (image["width"], image["height"]) for image in truth["images"]}
    return [row | {"bbox": [edge / size[row["image_id"]][k % 2] for k, edge in enumerate(row["bbox"])]} for row in rows]


def inputs_of(benchmark: str, folder: Path, truth: Truth, rows: Rows) -> Any:
    """Write the files of an evaluation and return its arguments."""
    files = {"truth": truth, "detections": rows}
    names = [category["name"] for category in truth["categories"]]
    if benchmark == "owod":
        files["detections"] = [row | {"category_id": -1} if row["category_id"] == 8 else row for row in rows]
    if benchmark == "elephant":
        wild = {
            **truth,
            "annotations": [],
            "images": [image | {"id": image["id"] + 10**6} for image in truth["images"]],
        }
        away = [row | {"image_id": row["image_id"] + 10**6} for row in rows]
        files = {"closed": truth, "wilderness": wild, "inside": rows, "outside": away}
    for name, held in files.items():
        (folder / f"{name}.json").write_text(json.dumps(held))
    path: dict[str, Any] = {name: folder / f"{name}.json" for name in files}
    if benchmark == "elephant":
        return {"truth": {part: path[part] for part in ("closed", "wilderness")},
                "detections": {"closed": path["inside"], "wilderness": path["outside"]}}  # fmt: skip
    if benchmark == "owod":
        (folder / "tasks.json").write_text(json.dumps({"tasks": [{"name": "t1", "cur": names[:5]}]}))
        path["classes"] = folder / "tasks.json"
    return path


def words_of(inputs: dict[str, Any]) -> list[str]:
    words = []
    for name, value in inputs.items():
        for part, file in value.items() if isinstance(value, dict) else [("", value)]:
            words += [f"--{name}", f"{part}={file}" if part else str(file)]
    return words


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("benchmark", ["coco", "voc", "owod", "elephant"])
def test_a_command_its_result_and_python_give_the_same_warnings(
    benchmark: str, mistake: str, tmp_path: Path, capsys: Any
) -> None:
    inputs = inputs_of(benchmark, tmp_path, *MISTAKES[mistake](*world(20, numbers=[1, 2, 3, 5, 7, 8])))
    assert main(["evaluate", benchmark, *words_of(inputs)]) == 0
    said = [line.removeprefix("warning: ") for line in capsys.readouterr().err.splitlines() if "warning: " in line]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = getattr(curation.evaluate, benchmark)(**inputs)
    raised = [warning for warning in caught if issubclass(warning.category, CurationWarning)]
    assert [str(warning.message) for warning in raised] == list(result.warnings) == said
    assert {warning.filename for warning in raised} <= {__file__}
    assert all(any(part in text for text in said) for part in EXPECTED[mistake])
    assert mistake != "none" or benchmark in ("owod", "elephant") or not said
