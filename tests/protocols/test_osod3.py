"""OSOD-III problems: who is known, which images count, and what must be the same in every rotation."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.benchmarks.building import read_parameters, rebuild
from curation.benchmarks.osod3.lists import FACTS, declare
from curation.benchmarks.registry import find_benchmark
from curation.core.errors import CurationError, ProtocolError
from curation.manifest.manifest import Manifest, read_manifest
from curation.sources.source import Categories, Source
from tests.protocols.osod3_world import (
    INNER_NODES,
    SIGNS,
    SPECIES,
    SUPERCLASSES,
    built,
    cub,
    name_of,
    open_images,
    signs,
)
from tests.real_files import real_files

OPEN = {
    "openimages-train": open_images("train", 300, 1),
    "openimages-validation": open_images("validation", 90, 2),
    "openimages-test": open_images("test", 120, 3),
}
CUB = {"cub-train": cub("train", 10), "cub-test": cub("test", 6)}
BIRDS = {"cub-train": cub("train", 10, SPECIES), "cub-test": cub("test", 6, SPECIES)}
MTSD = {"mtsd-train": signs("train", 400, 1), "mtsd-val": signs("val", 150, 2)}


def names(manifest: Manifest, role: str) -> list[str]:
    return [entry.name for entry in manifest.header.classes if entry.role == role]


def vehicles(rotation: int = 1, **more: Any) -> Manifest:
    return built(OPEN, superclass="vehicle", rotation=rotation, **more)


def test_superclasses_are_the_published_numbers() -> None:
    assert [len(SUPERCLASSES[one]) for one in ("animal", "vehicle")] == [96, 24]
    for one, labels in SUPERCLASSES.items():
        assert list(labels) == sorted(set(labels))
        assert not set(labels) & set(INNER_NODES[one])


@real_files("openimages")
def check_superclasses_are_those_of_the_real_tree(shared: Path) -> None:
    from curation.signals.hierarchy.hierarchy import descendants, read_open_images, superclass

    tree = shared / "data/openimages/bbox_labels_600_hierarchy.json"
    for word, root in {"animal": "/m/0jbk", "vehicle": "/m/07yv9"}.items():
        assert superclass(tree, root) == SUPERCLASSES[word]
        below = descendants(read_open_images(tree), [root]) - {root}
        assert set(INNER_NODES[word]) == below - set(SUPERCLASSES[word]) | {root}


def test_sources_lack_a_class() -> None:
    with pytest.raises(ProtocolError, match="lacks classes of the super-class"):
        built(OPEN, superclass="animal")


def test_parts_of_cub_follow_class_ids_not_lines() -> None:
    def turned(source: Source) -> Source:
        kinds, objects = source.categories, source.objects
        assert objects is not None
        return dataclasses.replace(
            source,
            categories=Categories(kinds.numbers[::-1], kinds.names[::-1], kinds.supercategories[::-1]),
            objects=dataclasses.replace(objects, category=len(kinds) - 1 - objects.category),
        )

    other = built({slot: turned(one) for slot, one in CUB.items()}, problem="cub", rotation=2)
    plain = built(CUB, problem="cub", rotation=2)
    assert set(names(other, "unknown")) == set(names(plain, "unknown"))
    assert other.lists == plain.lists


def listed(folder: Path, *parts: Sequence[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts, 1):
        (folder / f"category_t{number}.txt").write_text("".join(f"{one}\n" for one in part))
    return folder


def test_the_authors_lists_are_taken_as_they_are(tmp_path: Path) -> None:
    labels = SUPERCLASSES["vehicle"]
    parts = [labels[start::4] for start in range(4)]
    by_label = listed(tmp_path / "labels", *parts)
    by_name = listed(tmp_path / "names", *([name_of(one) for one in part] for part in parts))
    for folder in (by_label, by_name):
        manifest = vehicles(2, published=folder)
        assert manifest.header.origin == "as_published"
        assert set(names(manifest, "known")) == {name_of(one) for one in parts[1]}
        assert len(manifest.header.rule.parameters["published_digests"]) == 4  # type: ignore[arg-type]
        assert rebuild(manifest, OPEN).digest == manifest.digest
    assert vehicles().header.origin == "regenerated"
    birds = [f"Bird_{number:03}" for number in range(1, 201)]
    cub_lists = listed(tmp_path / "cub", *(birds[start::4] for start in range(4)))
    manifest = built(CUB, problem="cub", rotation=3, published=cub_lists)
    assert set(names(manifest, "unknown")) == set(birds[2::4])
    signs_lists = listed(tmp_path / "signs", SIGNS[:10], SIGNS[10:15], SIGNS[15:])
    manifest = built(MTSD, problem="mtsd", case="unknown1", published=signs_lists)
    assert names(manifest, "known") == list(SIGNS[:10])
    assert names(manifest, "unknown") == list(SIGNS[10:15])
    assert manifest.header.rule.parameters["superclass_left_out"] == SIGNS[15:]


def test_lists_that_are_not_the_authors(tmp_path: Path) -> None:
    labels = SUPERCLASSES["vehicle"]
    parts = [labels[start::4] for start in range(4)]
    wrong = {
        "all there": parts[:2],
        "twice": [labels, parts[1], parts[2], parts[3]],
        "6 classes not listed": parts[:3],
        "lists of 18, 2, 2, 2": [labels[:18], labels[18:20], labels[20:22], labels[22:]],
        "6 other classes": [*parts[:3], SUPERCLASSES["animal"][:6]],
        "empty": [*parts[:3], []],
    }
    for words, lists in wrong.items():
        with pytest.raises(CurationError, match=words):
            vehicles(published=listed(tmp_path / words, *lists))
    with pytest.raises(CurationError, match="No such folder"):
        vehicles(published=tmp_path / "nowhere")
    with pytest.raises(CurationError, match="cannot be read"):
        vehicles(published='{"parts": [[1]]}')
    # A list without the digest of a file is nobody's publication.
    for digest in ("x", "sha256:" + "g" * 64, "sha256:" + "0" * 63):
        text = json.dumps({"parts": [list(part) for part in parts], "sha256": [digest] * 4})
        with pytest.raises(CurationError, match="cannot be read"):
            vehicles(published=text)
    with pytest.raises(CurationError, match="weighting has no effect"):
        vehicles(published=listed(tmp_path / "whole", *parts), weighting="pmi")


def test_signs_that_one_split_alone_shows_have_a_role() -> None:
    source = MTSD["mtsd-val"]
    renamed = tuple("sign--new" if name == "sign--23" else name for name in source.categories.names)
    categories = Categories(source.categories.numbers, renamed, source.categories.supercategories)
    sources = {**MTSD, "mtsd-val": dataclasses.replace(source, categories=categories)}
    manifest = built(sources, problem="mtsd")
    roles = {entry.name: entry.role for entry in manifest.header.classes}
    assert {"sign--new", "sign--23"} <= set(roles)
    assert "negative" not in {roles["sign--new"], roles["sign--23"]}
    assert built(sources, problem="mtsd", graph_images="train").header.rule.parameters["cut_isolated"] == ("sign--new",)


def require_the_papers_lists(folder: Path, case: str, lines: str, sources: dict[str, Source], **settings: Any) -> None:
    """Check that a user's file which extends a case has the lists, views and counts that the paper's build has."""
    (folder / "mine.toml").write_text(f'extends = "osod3/{case}"\nname = "mylab/mine"\n{lines}')
    ours, papers = curation.build(folder / "mine.toml", sources=sources), built(sources, **settings)
    assert ours.lists == papers.lists
    assert all(ours.lists.values())
    for one, other in zip(ours.header.parts, papers.header.parts, strict=True):
        assert (one.view, one.boxes) == (other.view, other.boxes)
    for role in ("known", "unknown", "ignored"):
        entries = [{(entry.name, entry.aliases) for entry in made.header.classes if entry.role == role}
                   for made in (ours, papers)]  # fmt: skip
        assert entries[0] == entries[1]
    assert (ours.header.name, ours.header.paper, ours.header.rule.protocol) == ("mylab/mine", None, "superclass")
    assert rebuild(ours, dict(sorted(sources.items()))).digest == ours.digest


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_user_s_file_extends_open_images_and_cub(number: int, tmp_path: Path) -> None:
    lines = f"[parameters]\nrotation = {number}\n"
    settings = {"superclass": "vehicle", "rotation": number}
    require_the_papers_lists(tmp_path, "openimages-vehicle", lines, OPEN, **settings)
    lines = f'[classes]\nunknown = ["part_{number}"]\n'
    require_the_papers_lists(tmp_path, "cub", lines, BIRDS, problem="cub", rotation=number)


def test_a_file_may_call_classes_by_keys_and_name_them_otherwise(tmp_path: Path) -> None:
    tank, train = "/m/07cmd", "/m/07jdr"
    (tmp_path / "mine.toml").write_text(
        'extends = "osod3/openimages-vehicle"\nname = "mylab/mine"\n'
        f'[classes]\nknown = ["{tank}", "{name_of(train)}"]\n'
        f'[classes.aliases]\n"{tank}" = ["Panzer", "{name_of(tank)}"]\n'
    )
    classes = {entry.name: entry for entry in curation.build(tmp_path / "mine.toml", sources=OPEN).header.classes}
    assert (classes[name_of(tank)].role, classes[name_of(tank)].aliases) == ("known", (tank, "Panzer"))
    assert (classes[name_of(train)].role, classes[name_of(train)].aliases) == ("known", (train,))


def test_no_share_validates() -> None:
    train, test = built(CUB, problem="cub", val_fraction=0).header.parts
    assert (train.name, train.selection, test.name) == ("train", "Official training images of known classes.", "test")


def test_a_benchmark_of_cases_is_extended_by_case(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "osod3"\nname = "mylab/mine"\n')
    with pytest.raises(ProtocolError, match="osod3/openimages-animal, osod3/openimages-vehicle, osod3/cub, osod3/mtsd"):
        curation.build(tmp_path / "mine.toml", sources=CUB)


def test_a_user_s_file_extends_the_signs(tmp_path: Path) -> None:
    require_the_papers_lists(tmp_path, "mtsd", "", MTSD, problem="mtsd")
    require_the_papers_lists(
        tmp_path, "mtsd", '[parameters]\nsalt = "7"\nval = 0.3\n', MTSD, problem="mtsd", seed=7, val_fraction="0.3"
    )


@real_files("cub200_and_signs")
def check_cub_s_real_metadata(shared: Path, tmp_path: Path) -> None:
    from curation.sources.opening import open_path

    folder = shared / "data/cub200"
    sources = {f"cub-{part}": open_path(folder, dataset="cub200", part=part) for part in ("train", "test")}
    counts = []
    for case in (1, 2, 3, 4):
        manifest = built(sources, problem="cub", rotation=case)
        counts.append(len(manifest.ids("train")) + len(manifest.ids("val")))
        assert manifest.digest == read_manifest(COMMITTED / f"cub-{case}" / "1.0.0").digest
        unknown = f'[classes]\nunknown = ["part_{case}"]\n'
        require_the_papers_lists(tmp_path, "cub", unknown, sources, problem="cub", rotation=case)
        assert (len(manifest.ids("test")), len(names(manifest, "unknown"))) == (5794, 50)
        assert all(one.paper in (None, one.obtained) for one in manifest.header.figures)
    assert sum(counts) == 3 * 5994
    assert all(abs(count - 4496) < 20 for count in counts)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rotation": 5}, "Invalid value of rotation"),
        ({"problem": "voc"}, "Invalid value of problem"),
        ({"val_fraction": "0.9"}, "Invalid value"),
        ({"seed": "-1"}, "Invalid value"),
        ({"problem": "cub"}, "source is missing"),
        ({"case": "unknown1"}, "case has no effect"),
        ({"weighting": "pmi"}, "weighting has no effect"),
        ({"problem": "mtsd", "rotation": 2}, "rotation has no effect"),
        ({"problem": "cub", "superclass": "vehicle"}, "superclass has no effect"),
        ({"problem": "cub", "test_fraction": "0.3"}, "test_fraction has one value"),
        ({"superclass": "fruit"}, "Invalid value of superclass"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        built(OPEN, **settings)


def _declared(superclass: str, rotation: int) -> Manifest:
    given = {"superclass": superclass, "rotation": str(rotation)}
    return declare({}, read_parameters(find_benchmark("osod3"), given))


COMMITTED = Path(__file__).parents[2] / "manifests" / "osod3"


@pytest.mark.parametrize("superclass", SUPERCLASSES)
def test_committed_manifests_are_the_rule(superclass: str) -> None:
    known: list[str] = []
    for rotation in (1, 2, 3, 4):
        manifest = _declared(superclass, rotation)
        first, committed = (
            read_manifest(COMMITTED / f"openimages-{superclass}-{rotation}" / version) for version in ("1.0.0", "2.0.0")
        )
        assert committed.digest == manifest.digest
        assert committed.header.supersedes.digest == first.digest  # type: ignore[union-attr]
        # Their rule says group_of=keep.
        assert {part.view.crowd for part in first.header.parts} == {"ignore"}
        assert {part.view.crowd for part in committed.header.parts} == {"keep"}
        assert not committed.lists
        known += [entry.aliases[0] for entry in manifest.header.classes if entry.role == "known"]
    assert sorted(known) == list(SUPERCLASSES[superclass])


@real_files("openimages")
def check_names_are_those_of_the_class_descriptions(shared: Path) -> None:
    lines = (shared / "data/openimages/class-descriptions-boxable.csv").read_text("utf-8").splitlines()
    listed = dict(line.split(",", 1) for line in lines)
    names = {f"/m/{key}": name for key, name in FACTS["names"].items()}
    assert set(names) == {key for keys in (*SUPERCLASSES.values(), *INNER_NODES.values()) for key in keys}
    # Copies circulate with the name of one class left blank.
    assert all(listed[key].strip('"') in (name, "") for key, name in names.items())
