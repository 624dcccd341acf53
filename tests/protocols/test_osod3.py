"""OSOD-III problems: who is known, which images count, and what must be the same in every rotation."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from curation.benchmarks.building import read_parameters, rebuild
from curation.benchmarks.osod3.class_lists import INNER_NODES, NAMES, SUPERCLASSES, read_superclass
from curation.benchmarks.osod3.lists import declare
from curation.benchmarks.registry import find_benchmark
from curation.core.errors import CurationError, ManifestError, ProtocolError
from curation.manifest.header import ClassEntry, header_as_data
from curation.manifest.manifest import Manifest, read_manifest, write_manifest
from curation.manifest.validation import check_header
from curation.manifest.views import view_objects
from curation.sources.source import Categories, Source
from tests.protocols.osod3_world import GROUPS, OUTSIDE, SIGNS, built, cub, name_of, open_images, signs
from tests.real_files import real_files

OPEN = {
    "openimages-train": open_images("train", 300, 1),
    "openimages-validation": open_images("validation", 90, 2),
    "openimages-test": open_images("test", 120, 3),
}
CUB = {"cub-train": cub("train", 10), "cub-test": cub("test", 6)}
MTSD = {"mtsd-train": signs("train", 400, 1), "mtsd-val": signs("val", 150, 2)}


def names(manifest: Manifest, role: str) -> list[str]:
    return [entry.name for entry in manifest.header.classes if entry.role == role]


def shown(source: Source, image: str) -> set[str]:
    place = source.image_ids.tolist().index(image)
    at, category = source.class_pairs()
    return {source.categories.names[c] for i, c in zip(at.tolist(), category.tolist(), strict=True) if i == place}


def vehicles(rotation: int = 1, **more: Any) -> Manifest:
    return built(OPEN, superclass="vehicle", rotation=rotation, **more)


def test_superclasses_are_the_published_numbers() -> None:
    assert [len(SUPERCLASSES[one]) for one in ("animal", "vehicle")] == [96, 24]
    for one, labels in SUPERCLASSES.items():
        assert list(labels) == sorted(set(labels))
        assert not set(labels) & set(INNER_NODES[one])


@real_files("openimages")
def check_superclasses_are_those_of_the_real_tree(shared: Path) -> None:
    from curation.signals.hierarchy.hierarchy import superclass

    tree = shared / "data/openimages/bbox_labels_600_hierarchy.json"
    for word, root in {"animal": "/m/0jbk", "vehicle": "/m/07yv9"}.items():
        assert superclass(tree, root) == SUPERCLASSES[word]
        below = set(superclass(tree, root, "descendants"))
        assert set(INNER_NODES[word]) == below - set(SUPERCLASSES[word]) | {root}
        assert json.loads(read_superclass(f"{tree}#{root}")) == list(SUPERCLASSES[word])


def test_rotations_know_one_part_each() -> None:
    known = [set(names(vehicles(q), "known")) for q in (1, 2, 3, 4)]
    assert [len(one) for one in known] == [6] * 4
    assert len(set.union(*known)) == 24
    for q in (1, 2, 3, 4):
        manifest = vehicles(q)
        assert len(names(manifest, "unknown")) == 18
        assert set(names(manifest, "ignored")) == {name_of(one) for one in INNER_NODES["vehicle"]}
        assert set(names(manifest, "negative")) == {name_of(one) for one in OUTSIDE}
        parts = [manifest.header.rule.parameters[f"part_{place}"] for place in (1, 2, 3, 4)]
        assert {name_of(one) for one in parts[q - 1]} == known[q - 1]  # type: ignore[union-attr]
    assert len({vehicles(q).ids("test") for q in (1, 2, 3, 4)}) == 1
    assert len({vehicles(q).ids("train") for q in (1, 2, 3, 4)}) == 4


def test_images_of_open_images() -> None:
    manifest = vehicles(2)
    known, unknown = set(names(manifest, "known")), set(names(manifest, "unknown"))
    wanted = {"train": known, "val": known, "test": known | unknown}
    slots = dict(zip(("train", "val", "test"), OPEN, strict=True))
    for part, classes in wanted.items():
        source = OPEN[slots[part]]
        expected = [one for one in source.image_ids.tolist() if shown(source, one) & classes]
        assert list(manifest.ids(part)) == sorted(expected)
    seen = view_objects(manifest, "train", OPEN)
    assert {manifest.header.classes[place].role for place in set(seen.label.tolist())} == {"known"}
    tested = view_objects(manifest, "test", OPEN)
    assert {manifest.header.classes[place].role for place in set(tested.label.tolist())} == {"known", "unknown"}


def test_hidden_unknown_boxes_are_reported() -> None:
    manifest = vehicles(3)
    known, unknown = set(names(manifest, "known")), set(names(manifest, "unknown"))
    source = OPEN["openimages-train"]
    at, category = source.class_pairs()
    called = [(i, source.categories.names[c]) for i, c in zip(at.tolist(), category.tolist(), strict=True)]
    with_known = {i for i, name in called if name in known}
    expected = sum(name in unknown and i in with_known for i, name in called)
    figure = next(one for one in manifest.header.figures if one.name == "train.hidden_unknown_boxes")
    assert figure.obtained == expected > 0


def test_options_change_only_what_they_name() -> None:
    plain = vehicles()
    ignoring = vehicles(inner_nodes="ignore", group_of="drop")
    assert ignoring.lists == plain.lists
    crowded = {
        **OPEN,
        "openimages-test": open_images("test", 120, 3, crowd=list(OPEN["openimages-test"].images.native[:9])),
    }
    kept = view_objects(built(crowded, superclass="vehicle"), "test", crowded)
    dropped = view_objects(built(crowded, superclass="vehicle", group_of="drop"), "test", crowded)
    assert len(kept.label) - len(dropped.label) == int(kept.crowd.sum()) > 0
    shown_inner = view_objects(ignoring, "test", OPEN)
    roles = [ignoring.header.classes[place].role for place in shown_inner.label.tolist()]
    assert {role for role, ignored in zip(roles, shown_inner.ignore.tolist(), strict=True) if ignored} == {"ignored"}


def test_a_superclass_of_one_s_own() -> None:
    labels = json.dumps(sorted(SUPERCLASSES["vehicle"])[:8])
    manifest = built(OPEN, superclass=labels)
    assert len(names(manifest, "known")) == 2
    assert manifest.header.name == "osod3/openimages-custom-1"
    assert (manifest.header.paper, vehicles().header.paper is None) == (None, False)
    assert manifest.header.notes[0].startswith("Rule superclass (after Hosoya et al. ")
    with pytest.raises(ProtocolError, match="equal parts"):
        built(OPEN, superclass=json.dumps(sorted(SUPERCLASSES["vehicle"])[:9]))
    with pytest.raises(ProtocolError, match="no class of the super-class"):
        built(OPEN, superclass="animal")
    for text in ("fruit", "[]", "[1]", "x.json#", "x.json#/m/1#best"):
        with pytest.raises(ProtocolError, match="super-class"):
            read_superclass(text)


def test_cub_cases() -> None:
    for case in (1, 4):
        manifest = built(CUB, problem="cub", rotation=case)
        assert (len(names(manifest, "known")), len(names(manifest, "unknown"))) == (150, 50)
        unknown = set(names(manifest, "unknown"))
        train, val = set(manifest.ids("train")), set(manifest.ids("val"))
        assert not train & val
        assert len(train) + len(val) == 1500
        assert len(val) == 150
        for one in sorted(train | val)[::97]:
            assert not shown(CUB["cub-train"], one) & unknown
        assert len(manifest.ids("test")) == 1200
    assert built(CUB, problem="cub", rotation=1).ids("test") == built(CUB, problem="cub", rotation=3).ids("test")
    assert built(CUB, problem="cub", val_fraction="0").ids("val") == ()


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
        "not the parts": parts[:3],
        "lists of 18, 2, 2, 2": [labels[:18], labels[18:20], labels[20:22], labels[22:]],
        "not of this problem": [*parts[:3], SUPERCLASSES["animal"][:6]],
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


def test_a_class_outside_the_superclass_is_refused(tmp_path: Path) -> None:
    manifest = vehicles()
    stranger = next(entry for entry in manifest.header.classes if entry.role == "negative")
    as_unknown = msgspec.structs.replace(stranger, role="unknown")
    for entries, words in (
        ([as_unknown if entry is stranger else entry for entry in manifest.header.classes], "within"),
        ([entry for entry in manifest.header.classes if entry.role != "unknown"], "a role for every"),
    ):
        header = msgspec.structs.replace(manifest.header, classes=tuple(entries))
        with pytest.raises(ManifestError, match=words):
            check_header(header, where="here")


def test_drawings_are_as_the_view_says() -> None:
    test = OPEN["openimages-test"]
    assert test.objects is not None
    drawn = np.arange(len(test.objects)) % 7 == 0
    objects = dataclasses.replace(test.objects, depiction=drawn)
    sources = {**OPEN, "openimages-test": dataclasses.replace(test, objects=objects)}
    kept, left, ignored = (
        view_objects(built(sources, superclass="vehicle", depiction=one), "test", sources)
        for one in ("keep", "drop", "ignore")
    )
    assert set(kept.index.tolist()) - set(left.index.tolist()) == set(kept.index[drawn[kept.index]].tolist())
    assert (ignored.ignore == drawn[ignored.index]).all()
    plain = built(sources, superclass="vehicle").header.parts[0].view
    assert "depiction" not in header_as_data(built(sources, superclass="vehicle").header)["parts"][0]["view"]
    assert plain.depiction == "keep"


def test_images_of_each_part_are_counted() -> None:
    manifest = vehicles()
    source = OPEN["openimages-train"]
    figures = {one.name: one.obtained for one in manifest.header.figures}
    for place in (1, 2, 3, 4):
        part = {name_of(one) for one in manifest.header.rule.parameters[f"part_{place}"]}  # type: ignore[union-attr, arg-type]
        images = [one for one in source.image_ids.tolist() if shown(source, one) & part]
        assert figures[f"part_{place}.train_images"] == len(images)
    assert figures["part_1.train_images"] == len(manifest.ids("train"))


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


@real_files("cub200_and_signs")
def check_cub_s_real_metadata(shared: Path) -> None:
    from curation.sources.opening import open_path

    folder = shared / "data/cub200"
    sources = {f"cub-{part}": open_path(folder, dataset="cub200", part=part) for part in ("train", "test")}
    counts = []
    for case in (1, 2, 3, 4):
        manifest = built(sources, problem="cub", rotation=case)
        counts.append(len(manifest.ids("train")) + len(manifest.ids("val")))
        assert manifest.digest == read_manifest(COMMITTED / f"cub-{case}" / "1.0.0").digest
        assert (len(manifest.ids("test")), len(names(manifest, "unknown"))) == (5794, 50)
        assert all(one.paper in (None, one.obtained) for one in manifest.header.figures)
    assert sum(counts) == 3 * 5994
    assert all(abs(count - 4496) < 20 for count in counts)


def test_traffic_signs() -> None:
    manifests = {case: built(MTSD, problem="mtsd", case=case) for case in ("unknown1", "unknown2", "unknown12")}
    both = manifests["unknown12"]
    assert set(names(both, "known")) == set(GROUPS[0])
    assert set(names(manifests["unknown1"], "unknown")) == set(GROUPS[1])
    assert set(names(manifests["unknown2"], "unknown")) == set(GROUPS[2])
    assert "other-sign" in names(both, "negative")
    strangers = set(GROUPS[1]) | set(GROUPS[2])
    for one in both.ids("train")[::25]:
        assert not shown(MTSD["mtsd-train"], one) & strangers
    assert len({manifest.lists["test"] for manifest in manifests.values()}) == 1
    assert len({manifest.lists["train"] for manifest in manifests.values()}) == 1
    parameters = both.header.rule.parameters
    above, below = map(int, str(parameters["cut_ncut"]).split("/"))
    assert float(str(parameters["cut_lower_bound"])) <= above / below
    assert str(parameters["cut_between"]).count(";") == 2


def test_manifests_survive_the_disk_and_rebuild(tmp_path: Path) -> None:
    for place, (manifest, sources) in enumerate(
        ((vehicles(), OPEN), (built(CUB, problem="cub"), CUB), (built(MTSD, problem="mtsd"), MTSD))
    ):
        write_manifest(manifest, tmp_path / str(place))
        again = read_manifest(tmp_path / str(place))
        assert again.digest == manifest.digest
        assert rebuild(again, sources).digest == manifest.digest
        assert manifest.header.taxonomy == "OSOD-III"


def test_class_entries_have_an_index_only_where_known() -> None:
    entries: tuple[ClassEntry, ...] = vehicles().header.classes
    assert [entry.index for entry in entries if entry.role == "known"] == list(range(6))
    assert {entry.index for entry in entries if entry.role != "known"} == {-1}


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
        ({"superclass": json.dumps(sorted(SUPERCLASSES["vehicle"])[:8]), "inner_nodes": "ignore"}, "inner nodes"),
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
    assert set(NAMES) == {key for keys in (*SUPERCLASSES.values(), *INNER_NODES.values()) for key in keys}
    # Copies circulate with the name of one class left blank.
    assert all(listed[key].strip('"') in (name, "") for key, name in NAMES.items())
