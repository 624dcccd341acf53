"""The ImageNet protocols from sources to manifest: on small drawn data, and on the real names."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.benchmarks.imagenet import FIGURES, PROTOCOLS, TABLE_1, TRAIN, VAL, build
from curation.benchmarks.registry import find_benchmark
from curation.benchmarks.rules.hierarchy import RolePartition, roles_of
from curation.core.errors import ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.manifest import Manifest
from curation.sources.imagenet import read_imagenet
from curation.sources.source import Source
from tests.real_files import provided, real_files
from tests.worlds import imagenet_lists

CATS = """\
extends = "imagenet/p1"
name = "mylab/cats"
[classes]
known = ["n02127808"]
negative = []
unknown = ["n02131653"]
[parameters]
cut = "KN"
"""
Given = Callable[..., dict[str, Source]]


def parameters(**given: object) -> dict[str, Any]:
    return {one.name: one.read(str(given.get(one.name, one.default))) for one in find_benchmark("imagenet").parameters}


def classes_of_p2() -> RolePartition:
    return roles_of(PROTOCOLS["p2"], ilsvrc2012_classes())[0]


def p2_names(per_class: int, *, without: tuple[str, ...] = ()) -> dict[str, list[str]]:
    classes = classes_of_p2()
    wnids = [one for one in (*classes.known, *classes.negative) if one not in without]
    return {wnid: [f"{wnid}_{number}.JPEG" for number in range(per_class)] for wnid in wnids}


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """Return ``given(names)``: a drawn training source, and a validation source of two images for all 1,000 classes."""

    def sources(names: dict[str, Any], val: bool = True) -> dict[str, Source]:
        train = tmp_path / "train.json"
        train.write_text(json.dumps(names))
        lines = [f"ILSVRC2012_val_{place:08d}.JPEG {place % 1000}" for place in range(2000)]
        (tmp_path / "val.txt").write_text("\n".join(lines))
        found = {TRAIN: read_imagenet(train, part="train")}
        return found | ({VAL: read_imagenet(tmp_path / "val.txt", part="val")} if val else {})

    return sources


def figures(manifest: Manifest) -> dict[str, int | None]:
    return {one.name: one.obtained for one in manifest.header.figures}


def test_parts_of_a_small_world(given: Given) -> None:
    manifest = build(given(p2_names(10)), parameters(protocol="p2"))
    header, lists = manifest.header, manifest.lists
    classes = classes_of_p2()
    assert (header.name, header.origin, header.taxonomy) == ("imagenet/p2", "regenerated", "OSC")
    assert [part.order for part in header.parts] == ["listed"] * 3
    assert (len(lists["train"]), len(lists["val"]), len(lists["test"])) == (488, 122, 2 * 116)
    assert not set(lists["train"]) & set(lists["val"])
    everything = {f"imagenet:{name.removesuffix('.JPEG')}" for names in p2_names(10).values() for name in names}
    assert set(lists["train"]) | set(lists["val"]) == everything
    # Known, negative, unknown, by class and file name: image i of the validation set shows class i mod 1000.
    order = {wnid: place for place, wnid in enumerate(ilsvrc2012_classes())}
    expected = [
        f"imagenet:ILSVRC2012_val_{number:08d}"
        for wnid in (*classes.known, *classes.negative, *classes.unknown)
        for number in (order[wnid], order[wnid] + 1000)
    ]
    assert list(lists["test"]) == expected
    known = [entry for entry in header.classes if entry.role == "known"]
    assert [entry.index for entry in known] == list(range(30))
    assert [entry.name for entry in known] == sorted(entry.name for entry in known)
    assert {entry.index for entry in header.classes if entry.role != "known"} == {-1}


def test_neither_file_order_nor_class_order_has_an_influence(given: Given) -> None:
    names = p2_names(10)
    shuffled = list(names.items())
    random.Random(5).shuffle(shuffled)
    mixed = {wnid: random.Random(6).sample(several, len(several)) for wnid, several in shuffled}
    one, other = (build(given(world), parameters(protocol="p2")) for world in (names, mixed))
    assert one.lists == other.lists


def test_a_missing_class_is_refused_or_told_and_never_shifts_the_others(given: Given) -> None:
    lost = classes_of_p2().known[0]
    names = p2_names(10, without=(lost,))
    with pytest.raises(ProtocolError, match="Classes have no image in the part train") as raised:
        build(given(names), parameters(protocol="p2"))
    assert lost in (raised.value.found or "")
    told = build(given(names), parameters(protocol="p2", missing="report"))
    assert any(lost in note for note in told.header.notes)
    assert told.header.name == "imagenet/p2-report"
    whole = build(given(p2_names(10)), parameters(protocol="p2"))
    assert told.header.classes == whole.header.classes
    assert figures(told)["train.known_images"] == 29 * 8


def test_restricting_first_is_an_option_of_its_own_name(given: Given) -> None:
    classes = classes_of_p2()
    names = p2_names(10, without=(classes.known[0],))
    cut = build(given(names), parameters(protocol="p2", missing="restrict"))
    known = [entry.name for entry in cut.header.classes if entry.role == "known"]
    assert known == [*classes.known[1:], classes.negative[0]]
    assert cut.header.name == "imagenet/p2-restrict"
    assert all(figure.paper is None for figure in cut.header.figures)
    with pytest.raises(ProtocolError, match="source of the classes"):
        build({VAL: given(names)[VAL]}, parameters(protocol="p2", missing="restrict"))


def test_without_names_a_part_is_declared_and_figures_are_had(given: Given) -> None:
    counts = dict.fromkeys(p2_names(1), 10)
    manifest = build(given(counts), parameters(protocol="p2"))
    assert manifest.header.origin == "declared"
    assert set(manifest.lists) == {"test"}
    assert figures(manifest)["train.known_images"] == 240
    alone = build({TRAIN: given(p2_names(10))[TRAIN]}, parameters(protocol="p2"))
    assert set(alone.lists) == {"train", "val"}
    absent = next(one for one in alone.header.figures if one.name == "test.known_images")
    assert (absent.obtained, absent.explanation) == (None, f"needs --source {VAL}=PATH")
    with pytest.raises(ProtocolError, match="source of the classes"):
        build({}, parameters())


def test_a_file_with_other_super_classes(given: Given, tmp_path: Path) -> None:
    (tmp_path / "cats.toml").write_text(CATS)
    sources = given({wnid: [f"{wnid}_{number}.JPEG" for number in range(10)] for wnid in ilsvrc2012_classes()[280:300]})
    manifest = curation.build(
        tmp_path / "cats.toml", sources={TRAIN: tmp_path / "train.json", VAL: tmp_path / "val.txt"}
    )
    # Leopard, snow leopard, jaguar, lion, tiger, cheetah; four bears.
    assert Counter(entry.role for entry in manifest.header.classes) == {"known": 3, "negative": 3, "unknown": 4}
    assert (manifest.header.name, manifest.header.paper) == ("mylab/cats", None)
    assert manifest.header.notes == ("Rule hierarchy (after Palechor et al. 2023); data: user.",)
    assert len(manifest.lists["train"]) == 48
    names = [entry.name for entry in manifest.header.classes]
    places = [names.index(wnid_of(image, sources[VAL])) for image in manifest.ids("test")]
    assert places == [place for place in range(10) for _ in range(2)]


def wnid_of(image: str, val: Source) -> str:
    """Return the class of a validation image."""
    position = val.image_ids.tolist().index(image)
    return val.categories.names[int(val.class_pairs()[1][position])]


@pytest.mark.parametrize("name", TABLE_1)
def test_a_file_of_two_lines_makes_the_lists_of_the_paper(tmp_path: Path, name: str) -> None:
    sources = imagenet_lists.files(tmp_path)
    lists = files_lists(tmp_path, name, sources)
    assert lists == curation.build("imagenet", sources, protocol=name).lists
    assert {part: list(ids) for part, ids in lists.items()} == imagenet_lists.lists(name)


def files_lists(folder: Path, name: str, sources: Mapping[str, Path]) -> Mapping[str, tuple[str, ...]]:
    """Return the lists of a file that extends a protocol."""
    (folder / "mine.toml").write_text(f'extends = "imagenet/{name}"\nname = "mylab/mine"\n')
    return curation.build(folder / "mine.toml", sources=sources).lists


@pytest.mark.parametrize(("settings", "lines"), [
    ({"hierarchy": "dag", "seed": 7}, 'tree = "imagenet"\nseed = 7'),
    ({"missing": "report"}, 'missing = "report"'),
    ({"missing": "restrict"}, 'missing = "restrict"'),
])  # fmt: skip
def test_parameters_of_the_file_are_those_of_the_paper(
    given: Given, tmp_path: Path, settings: dict[str, Any], lines: str
) -> None:
    """Also where the training source lacks classes."""
    wnids = ilsvrc2012_classes() if "seed" in settings else tuple(p2_names(1))[::2]
    given({wnid: [f"{wnid}_{number}.JPEG" for number in range(5)] for wnid in wnids})
    sources = {TRAIN: tmp_path / "train.json", VAL: tmp_path / "val.txt"}
    text = f'extends = "imagenet/p2"\nname = "mylab/mine"\n[parameters]\n{lines}\n'
    (tmp_path / "mine.toml").write_text(text)
    mine = curation.build(tmp_path / "mine.toml", sources=sources)
    ours = curation.build("imagenet", sources, protocol="p2", **settings)
    assert mine.lists == ours.lists
    assert {note for note in ours.header.notes if note.startswith("Without")} <= {*mine.header.notes}


@real_files("imagenet")
def check_a_file_of_two_lines_makes_the_published_lists(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data/imagenet"
    sources = {TRAIN: folder / "p2_train_names.json", VAL: folder / "val.txt"}
    assert files_lists(tmp_path, "p2", sources) == curation.load("imagenet/p2").lists


@provided
def counts_and_val(shared: Path) -> dict[str, Source]:
    folder = shared / "data/imagenet"
    return {
        TRAIN: read_imagenet(folder / "train_counts.json", part="train"),
        VAL: read_imagenet(folder / "val.txt", part="val"),
    }


@real_files("imagenet")
@pytest.mark.parametrize("name", TABLE_1)
@pytest.mark.parametrize("seed", [42, 4242, 7])
def check_table_1_follows_from_the_class_sizes(counts_and_val: dict[str, Source], name: str, seed: int) -> None:
    manifest = build(counts_and_val, parameters(protocol=name, seed=seed))
    assert figures(manifest) == dict(zip(FIGURES, TABLE_1[name], strict=True))
    assert manifest.header.origin == "declared"


@real_files("imagenet")
def check_the_variant_has_118_dogs(shared: Path) -> None:
    val = {VAL: read_imagenet(shared / "data/imagenet/val.txt", part="val")}
    manifest = build(val, parameters(hierarchy="dag"))
    assert manifest.header.name == "imagenet/p1-dag"
    assert figures(manifest)["known.classes"] == 118
    roles = {entry.name: entry.role for entry in manifest.header.classes}
    assert roles["n02091032"] == roles["n02091134"] == "known"
    assert figures(manifest)["test.known_images"] == 118 * 50
