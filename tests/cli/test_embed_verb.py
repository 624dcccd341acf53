"""``curation similarity embed`` from the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.cli import main
from curation.signals.similarity.embeddings import open_embeddings
from tests.real_files import real_files
from tests.signals.similarity.clip_world import write_photos

pytest.importorskip("PIL.Image")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main(["similarity", "embed", *map(str, arguments), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    root = tmp_path / "coco"
    for number, path in enumerate(write_photos(root / "val2017", 3), start=1):
        path.rename(path.with_name(f"{number:012d}.png"))
    content = {
        "images": [{"id": n, "file_name": f"{n:012d}.png", "width": 40, "height": 30} for n in (1, 2, 3, 4)],
        "annotations": [
            {"id": n, "image_id": 1 + n % 2, "category_id": 1, "bbox": [n, n, 9, 9], "area": 81, "iscrowd": 0}
            for n in range(1, 6)
        ],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (root / "annotations").mkdir()
    (root / "annotations" / "instances_val2017.json").write_text(json.dumps(content))
    return root


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--encoder", "colour"], "Give exactly one input to embed"),
        (["--photos", "a", "--texts", "b", "--encoder", "colour"], "Give exactly one input to embed"),
        (["--photos", "nowhere"], "does not exist"),
        (["--photos", "a", "--encoder", "colour", "--model", "ViT-B-32"], "Two encoders"),
        (["--photos", "a", "--encoder", "colour", "--photos", "c=b"], "requires --source NAME"),
        (["--photos", "a", "--encoder", "colour", "--set", "batch=0"], "at least 1, at most 65536"),
        (["--photos", "a", "--encoder", "colour", "--set", "precision=float16"], "--set precision requires --model"),
        (["--photos", "nowhere", "--encoder", "colour"], "does not exist"),
        (["--texts", "nowhere", "--encoder", "colour"], "does not exist"),
        (["--source", "coco=nowhere", "--encoder", "colour"], "does not exist"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["similarity", "embed", *arguments, "--out", str(tmp_path / "s")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


@real_files("coco_table")
def check_real_photos_of_coco(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = shared / "data" / "coco" / "mini"
    data = run(capsys, "--source", f"coco@val2017={root}", "--encoder", "colour", "--out", tmp_path / "s")
    assert (data["embedded"], data["skipped"]) == (79, {})
    like = open_embeddings(tmp_path / "s").normalised()
    like = like @ like.T - np.eye(79, dtype=np.float32) * 2
    # All photos are different.
    assert like.max() < 0.999
