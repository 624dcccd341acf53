"""``curation similarity neighbors`` and ``duplicates`` on stores and photos that are made on the spot."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from curation.cli import main
from tests.rounding import cosine_error


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


def test_neighbors_of_photos(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = embed(photos, tmp_path / "store")
    result = as_json(
        capsys, "similarity", "neighbors", "--queries", store, "--references", store, "-k", "2", "--out", tmp_path / "o"
    )
    assert result["queries_among_references"] == 6
    assert [row["rank"] for row in result["neighbors"]] == [1, 2] * 6
    assert all(row["id"] != row["neighbor"] for row in result["neighbors"])
    near = {row["id"].split(":")[1]: row["neighbor"].split(":")[1] for row in result["neighbors"] if row["rank"] == 1}
    # 5 is a copy of 0, 4 a smaller one of 1.
    assert (near["5"], near["0"], near["4"], near["1"]) == ("0", "5", "1", "4")
    assert (tmp_path / "o/neighbors.csv").read_text().splitlines()[0] == "id,rank,neighbor,similarity"
    # Six photos have five others each.
    assert main(["similarity", "neighbors", "--queries", str(store), "--references", str(store), "-k", "6"]) == 2
    assert "1 to 5" in capsys.readouterr().err


def test_other_images_of_the_same_name_are_neighbours(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A second folder of the same name: its 2.png is another photo, its 3.png the same one.
    other = tmp_path / "second" / "photos"
    other.mkdir(parents=True)
    shutil.copy(photos / "0.png", other / "2.png")
    shutil.copy(photos / "3.png", other / "3.png")
    given = ("--queries", embed(other, tmp_path / "q"), "--references", embed(photos, tmp_path / "r"))
    result = as_json(capsys, "similarity", "neighbors", *given, "-k", "5")
    assert result["queries_among_references"] == 1
    found: dict[str, list[str]] = {}
    for row in result["neighbors"]:
        found.setdefault(row["id"], []).append(row["neighbor"])
    assert found["photos:2"][0] in ("photos:0", "photos:5")
    assert len(found["photos:2"]) == 5
    assert set(found["photos:3"]) == {f"photos:{k}" for k in (0, 1, 2, 4, 5)}


def test_set_similarity(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = embed(photos, tmp_path / "store")
    given = (
        "similarity",
        "neighbors",
        "--queries",
        f"near={store}",
        "--queries",
        f"far={store}",
        "--references",
        store,
    )
    result = as_json(capsys, *given, "--set-similarity", "--out", tmp_path / "o")
    assert result["sets"]["near"]["mean"] == pytest.approx(1, rel=0, abs=cosine_error(352))
    assert result["reference"]["n"] == 6
    names = {path.name for path in (tmp_path / "o").iterdir()}
    assert names == {"similarity.csv", "statistics.json", "histograms.png", "histograms.svg", "histograms.csv"}


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
