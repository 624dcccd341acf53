"""Numbers with and without images of classes that WordNet relates to a known one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.errors import UsageError
from curation.evaluation.image_ood.evaluation import OodSets, evaluation_as
from curation.evaluation.image_ood.images import LeftOut
from curation.evaluation.image_ood.measures import OodRules, report_as
from curation.evaluation.related_classes import kin_left_out
from curation.hierarchy.related_classes import NOT_PROVEN
from tests.evaluation import classification_rows
from tests.evaluation.image_ood_rows import of_result
from tests.evaluation.test_image_ood import numbers, write
from tests.protocols.test_ssb import of_imagenet
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


def test_classifiers_with_and_without_kin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Relatives of known classes score 0.9, other unknown ones 0.5, known images 0.8 and are right."""
    manifest = of_imagenet(tmp_path, 1)
    manifest.save(tmp_path / "made")
    plain = set(of_imagenet(tmp_path, 1, without_kin="all").ids("hard"))
    ids = manifest.ids("test-hard")
    known = {f"imagenet:ILSVRC2012_val_{one + 1:08}": one for one in range(1000)}
    scores = np.zeros((len(ids), 1000))
    for row, name in enumerate(ids):
        scores[row, known.get(name, 0)] = 0.8 if name in known else 0.5 if name in plain else 0.9
    np.savez(tmp_path / "scores.npz", scores=scores, images=np.array([one.partition(":")[2] for one in ids]))
    command = ["evaluate", "ssb", "--manifest", str(tmp_path / "made"), "--part", "test-hard", "--kind", "real"]
    command += ["--truth", str(tmp_path / "val.txt"), "--scores", f"drawn={tmp_path / 'scores.npz'}", "--json"]
    assert main([*command, "--without", "related=all"]) == 0
    out, told = capsys.readouterr()
    result = json.loads(out)
    whole, left = (
        classification_rows.of_result(result)["classifiers"][name] for name in ("drawn", "drawn without-kin")
    )
    assert (whole["n"]["unknown"], left["n"]["unknown"]) == (980, 788)
    assert (whole["n"]["known"], left["n"]["known"]) == (1000, 1000)
    assert left["auroc"]["unknown"]["auroc"] == 1.0
    assert whole["auroc"]["unknown"]["auroc"] == pytest.approx(788 / 980)
    record = result["option_files"]["without_kin"]["drawn without-kin"]
    assert (record["name"], record["classes"], record["images"]) == ("without-kin", {"drawn": 192}, {"drawn": 192})
    assert record["not_proven"] == list(NOT_PROVEN)
    assert "192 of 980 classes, 192 of 980 images, below or above a known class" in told
    reported = result["inputs"]["drawn without-kin"]["scores"]["reported"]
    assert reported == {"left out: images of classes below or above a known one": 192}
    assert main([*command, "--without", "related=descendants"]) == 0
    left = classification_rows.of_result(json.loads(capsys.readouterr().out))["classifiers"]
    assert left["drawn without-descendants"]["n"]["unknown"] == 820


def test_classifiers_need_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "scores.npz", scores=np.eye(3), gt=np.array([0, 1, -2]))
    command = [
        "evaluate",
        "ssb",
        "--scores",
        str(tmp_path / "scores.npz"),
        "--kind",
        "real",
        "--without",
        "related=all",
    ]
    assert main(command) == 2
    assert "--manifest MANIFEST with known classes" in capsys.readouterr().err


@real_files("atlas_lists")
def check_openoods_near_set_without_kin(shared: Path, tmp_path: Path) -> None:
    lists = shared / "data/atlas/openood/imagenet"
    sizes = {"imagenet": 45_000, "ssb_hard": 49_000, "ninco": 5_879, "textures": 5_160}
    for place, (name, n) in enumerate(sizes.items()):
        np.savez(tmp_path / f"{name}.npz", scores=np.random.default_rng(place).normal(place == 0, 1, n))
    for which, images in (("descendants", 8_000), ("all", 9_600)):
        result = curation.evaluate("openood", scores=tmp_path, lists=lists, without_kin=which)
        (name,) = set(result.data["lists"]) - {"published"}
        told = result.data["lists"][name]
        assert told["left_out"] == {"ssb_hard": images}
        assert told["file"]["classes"] == {"ssb_hard": images // 50, "ninco": 0, "textures": 0}
        row = numbers(result, name, "ood", "exact")["ssb_hard"]
        assert (row["n"]["id"], row["n"]["ood"]) == (45_000, 49_000 - images)
        notes = " ".join(result.notes)
        assert "ninco: no image name contains a synset" in notes
        assert "textures: no image name contains a synset" in notes
