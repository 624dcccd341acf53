import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation import elephant_rows
from tests.shell import Shell

CAT, DOG, UNKNOWN = 1, 2, -1
CATEGORIES = [{"id": CAT, "name": "cat"}, {"id": DOG, "name": "dog"}, {"id": UNKNOWN, "name": "unknown"}]
BOX = [10, 10, 40, 40]


def truth(images: range, category: int, difficult: int = 0) -> dict[str, Any]:
    return {
        "images": [{"id": n, "file_name": f"{n:06d}.jpg", "width": 100, "height": 100} for n in images],
        "annotations": [
            {
                "id": n,
                "image_id": n,
                "category_id": category,
                "bbox": BOX,
                "area": 1600,
                "iscrowd": 0,
                "difficult": difficult,
            }
            for n in images
        ],
        "categories": CATEGORIES,
    }


def results(images: Iterable[int], category: int = CAT) -> list[dict[str, Any]]:
    return [
        {"image_id": n, "category_id": category, "bbox": BOX, "score": 1 / (1 + n), "background_score": 0.0}
        for n in images
    ]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Ten closed cats, all found; ten wilderness objects, half of them called a cat. The image numbers collide."""
    content = {
        "truth_closed": truth(range(1, 11), CAT),
        "truth_wilderness": truth(range(1, 11), UNKNOWN),
        "detections_closed": results(range(1, 11)),
        "detections_wilderness": results(range(1, 6)),
    }
    for name, data in content.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    return {name: tmp_path / f"{name}.json" for name in content}


def arguments(files: dict[str, Path], *more: str) -> list[str]:
    given = ["evaluate", "elephant", *more]
    for part in ("closed", "wilderness"):
        given += ["--truth", f"{part}={files[f'truth_{part}']}"]
        given += ["--detections", f"{part}={files[f'detections_{part}']}"]
    return given


def write(path: Path, content: object) -> None:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def test_json_holds_digests_definitions_and_numbers(files: dict[str, Path], shell: Shell) -> None:
    found = shell.data(*arguments(files, "--json"))
    assert found["protocol"] == "elephant"
    assert found["variant"] == "paper"
    for part in ("closed", "wilderness"):
        assert found["inputs"][part]["detections"]["sha256"].startswith("sha256:")
        assert found["inputs"][part]["truth"]["files"][0]["sha256"].startswith("sha256:")
    assert [row["images"] for row in found["images"]] == [10, 10]
    assert found["definitions"]["WI"]
    found = elephant_rows.of_json(found)
    assert found["paper"]["WI"]["0.3"]["fp_open"]["cat"] == [0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3]
    assert found["paper"]["classes_left_out"] == {"dog": "no ground truth"}
    assert found["background_gap"]["cat"]["n"] == 10


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("detections_closed", "[", "cannot be read"),
        ("detections_closed", {"images": [], "annotations": []}, "ground-truth file"),
        ("detections_closed", [{**results(range(1, 2))[0], "image_id": 77}], "not in the ground truth"),
        ("detections_wilderness", [{**results(range(1, 2))[0], "score": 2}], "score"),
        ("truth_wilderness", truth(range(1, 11), DOG), "objects of known classes"),
        ("truth_closed", '{"images": [', "truth_closed.json"),
    ],
)
def test_bad_input_is_one_clear_error_and_writes_nothing(
    files: dict[str, Path], tmp_path: Path, shell: Shell, name: str, content: object, message: str
) -> None:
    write(files[name], content)
    error = shell.err(*arguments(files, "--out", str(tmp_path / "out")))
    assert message in error
    assert files[name].name in error
    assert not (tmp_path / "out").exists()


def test_stray_detections_may_be_dropped_and_are_reported(files: dict[str, Path], shell: Shell) -> None:
    write(files["detections_closed"], results(range(1, 14)))
    assert "3 such detections" in shell.err(*arguments(files))
    found = shell.data(*arguments(files, "--on-error", "stray=drop", "--json"))
    assert list(found["inputs"]["closed"]["detections"]["reported"].values()) == [3]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "recalls=0.25"], "--set recalls="),
        (["--set", "fbeta_ratios=9.0"], "wilderness images"),
        (["--bootstrap", "-1"], "bootstrap"),
        (["--part", "wilderness=wr1"], "--manifest"),
        (["--manifest", "no/such/manifest"], "manifest"),
        (["--truth", "open=x.json"], "--truth"),
        (["--truth", "closed=x.json"], "twice"),
    ],
)
def test_options_that_cannot_work(files: dict[str, Path], shell: Shell, more: list[str], message: str) -> None:
    assert message in shell.err(*arguments(files, *more))
