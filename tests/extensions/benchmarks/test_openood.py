"""OpenOOD's ImageNet-1K part: sets made of drawn files, and of the real ones held against the published lists."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.benchmark import benchmark_facts, declared_slots
from curation.benchmarks.building import import_lists
from curation.core.errors import ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.extensions.benchmarks.openood import build, hard_classes
from curation.extensions.image_ood.evaluation import sets_of
from curation.extensions.image_ood.images import listed_set
from curation.manifest.manifest import Manifest
from curation.sources.opening import open_path
from curation.sources.published_list import read_published
from tests.real_files import provided, real_files
from tests.worlds.openood import lay

SETS = sets_of(benchmark_facts("curation.extensions.benchmarks.openood")["evaluation"])
SLOTS = declared_slots("curation.extensions.benchmarks.openood")
NAME = "openood/imagenet-1k-published"
RULES = ("imagenet", "val_imagenet", "ssb_hard", "ninco", "inaturalist", "textures", "openimage_o", "val_openimage_o")


def opened(paths: dict[str, Path]) -> dict[str, Any]:
    slots = {slot.name: slot for slot in SLOTS}
    return {name: open_path(path, dataset=slots[name].dataset, part=slots[name].part) for name, path in paths.items()}


def test_the_rules_on_drawn_files(tmp_path: Path) -> None:
    made = build(opened(lay(tmp_path)), {})
    assert made.ids("imagenet") == tuple(f"imagenet:ILSVRC2012_val_{n:08}" for n in range(12) if n not in (2, 5))
    assert made.ids("val_imagenet") == ("imagenet:ILSVRC2012_val_00000002", "imagenet:ILSVRC2012_val_00000005")
    hard = sorted(f"imagenet21k:{one}_{n}" for one in hard_classes()[:3] for n in (3, 7))
    assert list(made.ids("ssb_hard")) == hard
    assert made.ids("ninco") == ("ninco:high_heels/high_heels_001_a", "ninco:owl/owl_002_b")
    assert made.ids("textures") == ("dtd:banded/banded_0004", "dtd:banded/banded_0002")
    assert made.part("textures").order == "listed"
    assert (made.ids("openimage_o"), made.ids("val_openimage_o")) == (
        ("openimages:ff01", "openimages:ff03"),
        ("openimages:ff02",),
    )
    unknown = {entry.name for entry in made.header.classes if entry.role == "unknown"}
    assert unknown == {*hard_classes(), "high heels", "owl", "banded"}
    assert made.header.notes == (f"Differs from OpenOOD's published list: {', '.join(sorted(RULES))}.",)


def test_without_the_list_for_hyper_parameters_the_union_is_a_part(tmp_path: Path) -> None:
    paths = lay(tmp_path)
    made = build(opened({"openimage_o": paths["openimage_o"]}), {})
    assert made.parts == ("openimage_o-and-val",)
    with pytest.raises(ProtocolError, match="source is missing"):
        build(opened({"val_openimage_o": paths["val_openimage_o"]}), {})
    paths["val_openimage_o"].write_text("openimage_o/images/ee.jpg -1\n", encoding="utf-8")
    with pytest.raises(ProtocolError, match="that its set lacks"):
        build(opened({name: paths[name] for name in ("openimage_o", "val_openimage_o")}), {})
    with pytest.raises(ProtocolError, match="No source is given"):
        build({}, {})


def test_ids_of_a_list_keep_the_folders_of_their_dataset(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbfimagenet_c/fog/3/ILSVRC2012_val_00000001.JPEG 0\r\nc\\snow\\1\\a b.JPEG 1\r\n")
    source = open_path(path, dataset="imagenet_c", part="val")
    assert source.image_ids.tolist() == ["imagenet_c:fog/3/ILSVRC2012_val_00000001", "imagenet_c:snow/1/a_b"]


def lists_of(shared: Path) -> Path:
    return shared / "data/atlas/openood/imagenet"


@provided
def published(shared: Path) -> Manifest:
    return import_lists(NAME, lists_of(shared))


@provided
def regenerated(shared: Path) -> Manifest:
    """All sets that rules make, from the files of their makers."""
    atlas = shared / "data/atlas"
    return build(
        opened(
            {
                "imagenet-val": shared / "data/imagenet/val.txt",
                "val_imagenet": lists_of(shared) / "val_imagenet.txt",
                "ssb": atlas / "ssb/imagenet_21k_val_files.json",
                "ninco": atlas / "ninco/NINCO_OOD_classes.csv",
                "inaturalist": atlas / "ninco/labels_of_other_datasets/OOD_iNaturalist_MOS_labels.csv",
                "textures": atlas / "vim/texture.txt",
                "openimage_o": atlas / "vim/openimage_o.txt",
                "val_openimage_o": lists_of(shared) / "val_openimage_o.txt",
            }
        ),
        {},
    )


@real_files("atlas_lists")
def check_the_published_lists_are_those_that_the_header_pins(published: Manifest) -> None:
    sizes = {part.name: part.images for part in published.header.parts}
    assert sizes == {
        "imagenet": 45_000, "val_imagenet": 5_000, "ssb_hard": 49_000, "ninco": 5_879, "inaturalist": 10_000,
        "textures": 5_160, "openimage_o": 15_869, "val_openimage_o": 1_763, "imagenet_v2": 10_000,
        "imagenet_c": 10_000, "imagenet_r": 30_000,
    }  # fmt: skip
    assert all(figure.paper == figure.obtained for figure in published.header.figures)
    # One ID set of fsood, before OpenOOD added imagenet_es.
    assert sum(sizes[name] for name in (SETS.id, *SETS.shifted)) == 95_000
    ratio = {name: round(45_000 / sizes[name], 2) for sets in SETS.groups.values() for name in sets}
    assert ratio == {"ssb_hard": 0.92, "ninco": 7.65, "inaturalist": 4.5, "textures": 8.72, "openimage_o": 2.84}


@real_files("atlas_lists")
def check_what_rules_make_is_what_is_published(published: Manifest, regenerated: Manifest) -> None:
    assert set(regenerated.parts) == set(RULES)
    for part in RULES:
        assert sorted(regenerated.ids(part)) == sorted(published.ids(part)), part
    assert regenerated.ids("textures") == published.ids("textures")
    assert regenerated.header.notes == (
        "Equal to OpenOOD's published list as a set: "
        + ", ".join(part.name for part in regenerated.header.parts)
        + ".",
    )


@real_files("atlas_lists")
def check_what_docs_say_of_the_published_lists(shared: Path) -> None:
    folder = lists_of(shared)
    read = {path.stem: read_published(path).lists[0] for path in sorted(folder.glob("*.txt"))}
    stems = {name: one.stems.decode().split("\n")[:-1] for name, one in read.items()}
    index = {wnid: number for number, wnid in enumerate(ilsvrc2012_classes())}

    def folders(name: str) -> list[str]:
        return [line.split("/")[1] for line in read[name].paths.decode().split("\n")[:-1]]

    for name, count in (("val_imagenet", 5), ("test_imagenet", 45), ("test_imagenet_c", 10), ("test_imagenet_v2", 10)):
        assert set(Counter(read[name].labels.tolist()).values()) == {count}
    assert [index[wnid] for wnid in folders("test_imagenet_r")] == read["test_imagenet_r"].labels.tolist()
    assert len(set(stems["test_imagenet_r"])) == 970
    # Images of ImageNet-O lie in folders of the class that a network took them for.
    assert set(folders("test_imagenet_o")) <= set(index)
    assert len(set(folders("test_imagenet_o"))) == 200
    textures = Counter(folders("test_textures"))
    assert (len(textures), set(textures.values())) == (43, {120})
    with (shared / "data/atlas/ninco/labels_of_other_datasets/OOD_iNaturalist_MOS_labels.csv").open(
        encoding="utf-8"
    ) as file:
        plants = list(csv.DictReader(file))
    assert (len(plants), len({row["species"] for row in plants})) == (10_000, 110)


@real_files("atlas_lists")
def check_an_imglist_names_rows_without_names(shared: Path, published: Manifest) -> None:
    listed = listed_set("imagenet_r", published, lists_of(shared))
    assert listed is not None
    assert listed.images.by_folder
    assert len(listed.images.paths) == 30_000
