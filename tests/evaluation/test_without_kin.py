"""Numbers with and without images of classes that WordNet relates to a known one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.core.errors import UsageError
from curation.extensions.image_ood.evaluation import OodSets, evaluation_as
from curation.extensions.image_ood.images import LeftOut, kin_left_out
from curation.extensions.image_ood.measures import OodRules, report_as
from curation.signals.hierarchy.related_classes import NOT_PROVEN
from tests.extensions.image_ood.image_ood_rows import of_result
from tests.extensions.image_ood.test_image_ood import numbers, write
from tests.real_files import real_files

# Below jay; above it; no relative of a known class; the known class itself.
BLUE_JAY, BIRD, STONE, JAY = "n01580870", "n01503061", "n09416076", "n01580077"
RULES = {"exact": OodRules(name="exact", meaning="all")}
SETS = OodSets(id="seen", groups={"all": ("near", "far")}, known="ilsvrc2012", variants=RULES)


def scored(path: Path) -> Path:
    """Ten ID images; six near ones, two of them below and one above a known class; textures without a synset."""
    path.mkdir()
    classes = [BLUE_JAY, BLUE_JAY, BIRD, STONE, STONE, STONE]
    sets = {
        "seen": [f"val/ILSVRC2012_val_{n:08}.JPEG" for n in range(10)],
        "near": [f"near/{wnid}/{wnid}_{n}.JPEG" for n, wnid in enumerate(classes)],
        "far": [f"banded/banded_{n}.jpg" for n in range(5)],
        "filed": [f"{wnid}/{wnid}_{n}.JPEG" for n, wnid in enumerate([JAY, JAY, STONE])],
    }
    for place, (name, names) in enumerate(sets.items()):
        write(path / f"{name}.csv", names, np.linspace(0, 1, len(names)) + (place == 0))
    return path


@pytest.mark.parametrize(("which", "kept", "classes"), [("descendants", 4, 1), ("all", 3, 2)])
def test_images_of_kin_are_left_out(which: Any, kept: int, classes: int, tmp_path: Path) -> None:
    score = evaluation_as(report_as("drawn"), SETS)
    result = score(scores=scored(tmp_path / "run"), without_kin=which, bootstrap=20)
    name = {"descendants": "without-descendants", "all": "without-kin"}[which]
    told = result.data["lists"][name]
    assert told["left_out"] == {"near": 6 - kept}
    assert told["file"]["classes"] == {"near": classes, "far": 0, "filed": 0}
    assert told["file"]["images"] == {"near": 6 - kept, "far": 0, "filed": 0}
    assert numbers(result, name, "ood", "exact")["near"]["n"]["ood"] == kept
    assert numbers(result, "published", "ood", "exact")["near"]["n"]["ood"] == 6
    assert of_result(result.json_data())["bootstrap"]["runs"]["run"]["differences"][name]
    notes = " ".join(result.notes)
    assert f"near: {classes} of 3 classes, {6 - kept} of 6 images" in notes
    assert "by WordNet 3.0 nouns" in notes
    assert "far: no image name contains a synset" in notes
    # The same numbers as with a list of these images.
    images = ("0", "1") if which == "descendants" else ("0", "1", "2")
    wnids = (BLUE_JAY, BLUE_JAY, BIRD)
    own = LeftOut.of("own", [f"{wnid}_{n}" for n, wnid in zip(images, wnids, strict=False)], {"near"})
    again = score(scores=tmp_path / "run", without={"own": own})
    assert numbers(again, "own") == numbers(result, name)
    assert all(text in notes for text in NOT_PROVEN)
    # Filed under a known class itself: told, and not left out.
    assert "2 images filed under a known class itself stay" in notes


def test_what_says_nothing_of_kin_is_refused(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    (run / "near.csv").unlink()
    (run / "filed.csv").unlink()
    score = evaluation_as(report_as("drawn"), SETS)
    with pytest.raises(UsageError, match="No image name contains a synset"):
        score(scores=run, without_kin="all")
    nothing = OodSets(id="seen", groups={"all": ("far",)}, variants=RULES)
    with pytest.raises(UsageError, match="Known classes are not given"):
        evaluation_as(report_as("drawn"), nothing)(scores=run, without_kin="all")
    with pytest.raises(UsageError, match="Duplicate name of a list"):
        score(scores=run, without={"without-kin": LeftOut.of("x", ["far/1"], {"far"})}, without_kin="all")
    with pytest.raises(UsageError, match="Known classes are not given"):
        kin_left_out([], [], "all")


@real_files("atlas_lists")
def check_openoods_near_set_without_kin(shared: Path, tmp_path: Path) -> None:
    lists = shared / "data/atlas/openood/imagenet"
    sizes = {"imagenet": 45_000, "ssb_hard": 49_000, "ninco": 5_879, "textures": 5_160}
    for place, (name, n) in enumerate(sizes.items()):
        np.savez(tmp_path / f"{name}.npz", scores=np.random.default_rng(place).normal(place == 0, 1, n))
    for which, images in (("descendants", 8_000), ("all", 9_600)):
        result = curation.evaluate.openood(scores=tmp_path, lists=lists, without_kin=which)
        (name,) = set(result.data["lists"]) - {"published"}
        told = result.data["lists"][name]
        assert told["left_out"] == {"ssb_hard": images}
        assert told["file"]["classes"] == {"ssb_hard": images // 50, "ninco": 0, "textures": 0}
        row = numbers(result, name, "ood", "exact")["ssb_hard"]
        assert (row["n"]["id"], row["n"]["ood"]) == (45_000, 49_000 - images)
        notes = " ".join(result.notes)
        assert "ninco: no image name contains a synset" in notes
        assert "textures: no image name contains a synset" in notes
