"""``curation similarity neighbors`` and ``duplicates`` on stores and photos that are made on the spot."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from curation.cli import main


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Six photos; the sixth is a copy of the first, the fifth a smaller one of the second, one file is broken."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(4):
        coarse = rng.integers(0, 255, (6, 8, 3)).astype(np.uint8)
        Image.fromarray(coarse).resize((160, 120), Image.Resampling.BICUBIC).save(folder / f"{number}.png")
    with Image.open(folder / "1.png") as second:
        second.resize((80, 60)).save(folder / "4.png")
    shutil.copy(folder / "0.png", folder / "5.png")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8 no photo")
    return folder


def embed(photos: Path, out: Path) -> Path:
    assert main(["similarity", "embed", "--photos", str(photos), "--encoder", "colour", "--out", str(out)]) == 0
    return out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_duplicates(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, "similarity", "duplicates", "--photos", photos, "--out", tmp_path / "o")
    pairs = {(row["first"], row["second"]): row["how"] for row in result["duplicates"]}
    assert pairs["0.png", "5.png"] == "same pixels"
    assert pairs["1.png", "4.png"].startswith("perceptual")
    assert len(pairs) == 2
    assert result["unreadable"] == 1
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(photos / "2.png", other / "copy.png")
    across = as_json(capsys, "similarity", "duplicates", "--photos", photos, "--against", other)["duplicates"]
    assert [(row["first"], row["second"]) for row in across] == [("2.png", "copy.png")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("neighbors", "--queries", "{none}", "--references", "{store}"), "none"),
        (("neighbors", "--queries", "{store}", "--references", "{store}", "-k", "99"), "Too few references"),
        (("neighbors", "--queries", "a={store}", "--queries", "b={store}", "--references", "{store}"), "one set"),
        (("neighbors", "--queries", "a={store}", "--queries", "a={store}", "--references", "{store}"), "twice"),
        (("neighbors", "--queries", "{store}", "--references", "{store}", "--set-similarity", "--set", "sample=paper"),
         "training images"),
        (("duplicates", "--photos", "{none}"), "does not exist"),
        (("duplicates", "--photos", "{store}"), "no photos"),
        (("duplicates", "--photos", "{photos}", "--distance", "40"), "out of range"),
    ],
)  # fmt: skip
def test_wrong_use(
    photos: Path, tmp_path: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = embed(photos, tmp_path / "store")
    capsys.readouterr()
    given = [one.format(store=store, photos=photos, none=tmp_path / "none") for one in arguments]
    assert main(["similarity", *given]) == 2
    assert words in capsys.readouterr().err
