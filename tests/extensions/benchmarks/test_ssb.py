"""The Semantic Shift Benchmark: its lists from drawn data sets of the right classes, and from the real files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.building import read_parameters
from curation.benchmarks.registry import find_benchmark
from curation.cli import main
from curation.core.ids import ilsvrc2012_classes
from curation.extensions.benchmarks.ssb import PROBLEMS, build
from curation.manifest.manifest import Manifest, read_manifest
from curation.signals.hierarchy.hierarchy import ancestors
from curation.signals.hierarchy.wordnet import wordnet
from curation.sources.imagenet import read_imagenet
from curation.sources.published_list import read_published
from tests.evaluation.classification_rows import of_result
from tests.protocols.osod3_world import cub
from tests.real_files import real_files

ROOT = Path(__file__).parents[3] / "manifests"
BENCHMARK = find_benchmark("ssb")


def parameters(**given: str) -> dict[str, Any]:
    return read_parameters(BENCHMARK, given)


def of_cub(per_class: int) -> Manifest:
    return build({"cub-train": cub("train", per_class), "cub-test": cub("test", per_class)}, parameters())


def test_the_classes_partition_each_data_set() -> None:
    stated = [number for numbers in PROBLEMS["cub"]["classes"].values() for number in numbers]
    assert sorted(stated) == list(range(200))
    easy, hard = (PROBLEMS["imagenet"]["classes"][level] for level in ("easy", "hard"))
    assert (len(easy), len(hard), len({*easy, *hard, *ilsvrc2012_classes()})) == (1000, 980, 2980)


def test_cub_by_class() -> None:
    manifest = of_cub(3)
    sizes = {part.name: part.images for part in manifest.header.parts}
    of_classes = {"train": 100, "known": 100, "easy": 32, "medium": 34, "hard": 34, "test-easy": 132, "test-hard": 168}
    assert sizes == {name: 3 * classes for name, classes in of_classes.items()}
    roles = [entry.role for entry in manifest.header.classes]
    assert (roles.count("known"), roles.count("unknown")) == (100, 100)
    # Medium unknown classes count as hard in benchmarking.
    assert {*manifest.ids("known"), *manifest.ids("medium"), *manifest.ids("hard")} == {*manifest.ids("test-hard")}
    # The authors count classes from 0, CUB from 1.
    known = {entry.name for entry in manifest.header.classes if entry.role == "known"}
    names = cub("test", 1).categories.names
    assert [names[number] in known for number in (0, 1, 2, 3)] == [
        number in PROBLEMS["cub"]["classes"]["known"] for number in (0, 1, 2, 3)
    ]
    assert all(figure.explanation for figure in manifest.header.figures)


def of_imagenet(folder: Path, per_class: int, **given: str) -> Manifest:
    known = ilsvrc2012_classes()
    lines = [f"ILSVRC2012_val_{number + 1:08}.JPEG {number}" for number in range(len(known))]
    (folder / "val.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    unknown = [name for level in ("easy", "hard") for name in PROBLEMS["imagenet"]["classes"][level]]
    files = {name: [f"{name}_{number}.JPEG" for number in range(per_class)] for name in unknown}
    (folder / "files.json").write_text(json.dumps(files), encoding="utf-8")
    sources = {
        "imagenet-val": read_imagenet(folder / "val.txt", part="val"),
        "imagenet-21k": read_imagenet(folder / "files.json", part="train"),
    }
    return build(sources, parameters(problem="imagenet", **given))


def test_imagenet_by_class(tmp_path: Path) -> None:
    manifest = of_imagenet(tmp_path, 2)
    sizes = {part.name: part.images for part in manifest.header.parts}
    assert sizes == {"known": 1000, "easy": 2000, "hard": 1960, "test-easy": 3000, "test-hard": 2960}


@pytest.mark.parametrize(
    ("which", "name", "classes"), [("descendants", "without-descendants", 820), ("all", "without-kin", 788)]
)
def test_hard_classes_without_kin(which: str, name: str, classes: int, tmp_path: Path) -> None:
    manifest = of_imagenet(tmp_path, 2, without_kin=which)
    header = manifest.header
    assert header.name == f"ssb/hard-{name}"
    assert f"without the {980 - classes} classes" in header.title
    sizes = {part.name: part.images for part in header.parts}
    assert sizes == {"known": 1000, "hard": 2 * classes, "test-hard": 1000 + 2 * classes}
    assert header.rule.parameters == {"problem": "imagenet", "without_kin": which}
    kept = {entry.name for entry in header.classes if entry.role == "unknown"}
    left_out = set(PROBLEMS["imagenet"]["classes"]["hard"]) - kept
    assert (len(kept), "n01580870" in left_out) == (classes, True)
    assert all(wnid in header.notes[0] for wnid in left_out)
    assert "siblings" in header.notes[1]
    # The committed header is of the authors' 50 files a class: as many images more.
    committed = read_manifest(ROOT / f"ssb/hard-{name}/1.0.0").header
    assert (committed.classes, committed.notes, committed.title) == (header.classes, header.notes, header.title)
    assert {part.name: part.images for part in committed.parts} == {
        "known": 50_000,
        "hard": 50 * classes,
        "test-hard": 50_000 + 50 * classes,
    }


@real_files("atlas_lists")
@pytest.mark.parametrize(("which", "name"), [("descendants", "without-descendants"), ("all", "without-kin")])
def check_headers_without_kin_are_declared_again_and_completed(
    shared: Path, tmp_path: Path, which: str, name: str
) -> None:
    sources = [
        f"--source=imagenet-val={shared / 'data/imagenet/val.txt'}",
        f"--source=imagenet-21k={shared / 'data/atlas/ssb/imagenet_21k_val_files.json'}",
    ]
    committed = read_manifest(ROOT / f"ssb/hard-{name}/1.0.0")
    setting = ["--set=problem=imagenet", f"--set=without_kin={which}"]
    assert main(["build", "ssb", "--header-only", *setting, *sources, "--out", str(tmp_path / "again")]) == 0
    assert read_manifest(tmp_path / "again").digest == committed.digest
    assert main(["build", f"ssb/hard-{name}", *sources, "--out", str(tmp_path / "made")]) == 0
    made = read_manifest(tmp_path / "made")
    assert (made.header.completes, made.header.origin) == (committed.digest, "regenerated")
    assert len(made.ids("hard")) == {"all": 39_400, "descendants": 41_000}[which]


def test_scores_of_a_test_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Even known classes are right at 0.8, odd ones wrong at 0.8, unknown images 0.5: every number by hand."""
    manifest = of_imagenet(tmp_path, 1)
    manifest.save(tmp_path / "made")
    ids = [one.partition(":")[2] for one in manifest.ids("test-hard")]
    number = {f"ILSVRC2012_val_{one + 1:08}": one for one in range(1000)}
    scores = np.zeros((len(ids), 1000))
    for row, name in enumerate(ids):
        known = number.get(name)
        scores[row, 0 if known is None else known - known % 2] = 0.5 if known is None else 0.8
    np.savez(tmp_path / "scores.npz", scores=scores, images=np.array(ids))
    command = ["evaluate", "ssb", "--manifest", str(tmp_path / "made"), "--part", "test-hard", "--json"]
    given = ["--truth", str(tmp_path / "val.txt"), "--scores", f"drawn={tmp_path / 'scores.npz'}", "--kind", "real"]
    assert main([*command, *given]) == 0
    found = of_result(json.loads(capsys.readouterr().out))["classifiers"]["drawn"]
    assert found["n"] == {"known": 1000, "negative": 0, "unknown": 980}
    assert found["accuracy"] == 0.5
    # A threshold between 0.5 and 0.8 lets no unknown image pass and all that are right.
    assert found["oscr"]["exact"]["unknown"]["ccr_at_fpr"]["0.001"] == 0.5


@real_files("cub200_and_signs")
def check_cub_is_exact(shared: Path, tmp_path: Path) -> None:
    root = str(shared / "data/cub200")
    out = str(tmp_path / "made")
    assert main(["build", "ssb", "--source", f"cub-train={root}", "--source", f"cub-test={root}", "--out", out]) == 0
    header = json.loads((tmp_path / "made/manifest.json").read_text("utf-8"))
    assert [one["explanation"] for one in header["figures"]] == [""] * 6


@real_files("atlas_lists")
def check_the_class_lists_are_those_of_the_authors(shared: Path) -> None:
    """Known, unknown and all three difficulties partition each data set; what pairs known and unknown classes."""
    folder = shared / "data/atlas/ssb"
    for problem, size in (("imagenet", 2980), ("cub", 200)):
        roles = dict(read_published(folder / f"{problem}_ssb_splits.json").classes)
        stated = {level: list(map(str, names)) for level, names in PROBLEMS[problem]["classes"].items()}
        if problem == "imagenet":
            assert roles.pop("known") == tuple(ilsvrc2012_classes())
        else:
            assert sorted(roles.pop("known")) == sorted(stated.pop("known"))
        assert {role.removeprefix("unknown/").lower(): sorted(names) for role, names in roles.items()} == {
            level: sorted(names) for level, names in stated.items()
        }
        unknown = {name for names in roles.values() for name in names}
        assert len(unknown) + {"imagenet": 1000, "cub": 100}[problem] == size
    names = json.loads((folder / "index_to_class_name.json").read_text())
    # Class k of the authors is CUB's k + 1.
    own = dict(line.split() for line in (shared / "data/cub200/classes.txt").read_text().splitlines())
    assert {int(key) + 1: name for key, name in names["cub"].items()} == {
        int(key): name.partition(".")[2] for key, name in own.items()
    }
    files = read_published(folder / "imagenet_21k_val_files.json").lists[0]
    assert (len(files), len(files.groups), len(set(np.bincount(files.group_of)))) == (99_000, 1_980, 1)
    pairs = {
        problem: json.loads((folder / f"{problem}_ssb_splits.json").read_text()).get("known_unknown_pairs")
        for problem in PROBLEMS
    }
    assert {level: len(one) for level, one in pairs["imagenet"].items()} == {"Hard": 980, "Easy": 1_000}
    hard = [(one["known_class"], one["unknown_class"]) for one in pairs["imagenet"]["Hard"]]
    graph = wordnet(above={name for pair in hard for name in pair})
    above = {name: ancestors(graph, [name]) for pair in hard for name in pair}
    # SSB's own table names relatives of WordNet: the pair of 155 hard classes lies above them, of 28 below.
    assert sum(known in above[unknown] for known, unknown in hard) == 155
    assert sum(unknown in above[known] for known, unknown in hard) == 28
