"""NINCO and ImageNet-OOD: their published lists, and what the specification counts on them."""

import csv
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from curation.benchmarks.benchmark import benchmark_facts
from curation.benchmarks.building import import_lists
from curation.benchmarks.registry import find_recipe
from curation.core.errors import DigestMismatchError
from curation.core.ids import ilsvrc2012_classes
from curation.extensions.image_ood.evaluation import sets_of
from curation.manifest.importing import pin_lists
from curation.manifest.manifest import Manifest, read_manifest
from curation.sources.published_list import read_published
from tests.real_files import provided, real_files

FILES = {
    "ninco/published": ("NINCO_OOD_classes.csv", "NINCO_popular_datasets_subsamples.csv", "NINCO_OOD_unit_tests.csv"),
    "imagenetood/published": ("imagenetood.txt",),
}
SUBSAMPLES = {
    "textures": 288, "openimage_o": 368, "imagenet_o": 309, "OOD_iNaturalist_MOS": 383, "all_species": 172,
    "OOD_Places_MOS": 153,
}  # fmt: skip
WITHOUT_VERDICTS = {
    "360OpenSet": 236, "ImageNet_1k_OOD_400_ood": 235, "COOD": 212, "SSB_hard": 208, "SSB_easy": 151
}  # fmt: skip


def test_the_sets_that_are_scored() -> None:
    ninco, imagenetood = (
        sets_of(benchmark_facts(f"curation.extensions.benchmarks.{name}")["evaluation"])
        for name in ("ninco", "imagenetood")
    )
    assert (ninco.sets, list(ninco.variants)) == (("imagenet", "ninco"), ["exact", "ninco"])
    assert (imagenetood.sets, list(imagenetood.variants)) == (("imagenet", "imagenetood"), ["exact"])


def test_lists_of_the_same_names_are_not_the_published_ones(tmp_path: Path) -> None:
    for name in FILES["ninco/published"]:
        text = "image_location,class\nx/high heels/high heels_001_a.jpg,high heels\nx/owl/owl_002_b.GIF,owl\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
    made = pin_lists(find_recipe("ninco/published")(), tmp_path)
    assert made.ids("ninco") == ("ninco:high_heels/high_heels_001_a", "ninco:owl/owl_002_b")
    assert made.header.figures[0].explanation == "the published list has another length"
    with pytest.raises(DigestMismatchError, match=r"is not the NINCO_OOD_classes\.csv"):
        import_lists("ninco/published", tmp_path)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@provided
def ninco(shared: Path) -> Manifest:
    return import_lists("ninco/published", shared / "data/atlas/ninco")


@real_files("atlas_lists")
def check_the_published_lists(shared: Path, ninco: Manifest) -> None:
    assert {part.name: part.images for part in ninco.header.parts} == {
        "ninco": 5_879, "subsamples": 2_715, "unit_tests": 6_800
    }  # fmt: skip
    of_classes = Counter(one.partition(":")[2].partition("/")[0] for one in ninco.ids("ninco"))
    assert (len(of_classes), min(of_classes.values()), max(of_classes.values())) == (64, 31, 176)
    kinds = Counter(one.partition(":")[2].partition("/")[0] for one in ninco.ids("unit_tests"))
    assert (len(kinds), set(kinds.values())) == (17, {400})
    popular = Counter(one.partition(":")[2].partition("/")[0] for one in ninco.ids("subsamples"))
    assert len(popular) == 11
    assert {name: popular[name] for name in WITHOUT_VERDICTS} == WITHOUT_VERDICTS
    assert sorted(popular.values()) == sorted([*WITHOUT_VERDICTS.values(), *SUBSAMPLES.values()])
    openood = import_lists("openood/imagenet-1k-published", shared / "data/atlas/openood")
    assert set(openood.ids("ninco")) == set(ninco.ids("ninco"))


@real_files("atlas_lists")
@pytest.mark.parametrize("name", [*FILES, "openood/imagenet-1k-published"])
def check_the_committed_header_is_what_the_recipe_makes(name: str, shared: Path) -> None:
    folder = shared / "data/atlas" / name.partition("/")[0]
    committed = read_manifest(Path(__file__).parents[3] / "manifests" / name / "1.0.0")
    assert pin_lists(find_recipe(name)(), folder).digest == committed.digest


@real_files("atlas_lists")
def check_the_list_holds_what_was_judged_out_of_distribution(shared: Path) -> None:
    """CLASS_NNN_ORIGINAL of the rows whose decision is exactly ``o``; but for three of haemulon_sciurus."""
    root = shared / "data/atlas/ninco"
    originals: dict[str, set[str]] = defaultdict(set)
    for row in rows_of(root / "NINCO_OOD_classes.csv"):
        name = row["image_location"].rpartition("/")[2]
        originals[row["class"]].add(name.removeprefix(f"{row['class']}_")[4:])
    verdicts = sorted((root / "cleaning_annotations/annotations_potential_OOD_classes").glob("*.csv"))
    assert len(verdicts) == 46
    status = Counter(
        (row["benchmark status"] or "").strip() for row in rows_of(root / "NINCO_class_names.csv") if row["filename"]
    )
    assert (status["1"], status["2"]) == (46, 18)
    found: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for path in verdicts:
        for row in rows_of(path):
            kept = row["image_location"].rpartition("/")[2] in originals[path.stem]
            found["o" if row["decision"] == "o" else "other", kept] += 1  # type: ignore[index]
            missing[path.stem] += row["decision"] == "o" and not kept
    assert found == {("o", True): 4_290, ("o", False): 3, ("other", False): 9_640 - 4_293}
    assert +missing == {"haemulon_sciurus": 3}


@real_files("atlas_lists")
def check_the_subsamples_are_what_was_judged_out_of_distribution(shared: Path) -> None:
    folder = shared / "data/atlas/ninco/cleaning_annotations/annotations_subsampled_datasets"
    for name, count in SUBSAMPLES.items():
        rows = rows_of(folder / f"{name}.csv")
        assert len({row["image_location"] for row in rows if row["decision"] == "o"}) == count, name
    index = [int(row["index"]) for row in rows_of(folder / "textures.csv")]
    assert (index[0], index[-1], index) == (12, 5_639, sorted(set(index)))
    index = [int(row["index"]) for row in rows_of(folder / "openimage_o.csv")]
    assert (index[0], index[-1], index) == (28, 17_616, sorted(set(index)))
    assert [int(row["index"]) for row in rows_of(folder / "all_species.csv")] == list(range(400))


@real_files("atlas_lists")
def check_ssb_hard_of_the_subsamples_is_not_of_the_50_files_alone(shared: Path, ninco: Manifest) -> None:
    openood = import_lists("openood/imagenet-1k-published", shared / "data/atlas/openood")
    hard = [one.partition("/")[2] for one in ninco.ids("subsamples") if one.startswith("ninco:SSB_hard/")]
    names = [one.removeprefix("SSB_hard_")[4:] for one in hard]
    listed = {one.partition(":")[2] for one in openood.ids("ssb_hard")}
    wnids = {one.partition("_")[0] for one in listed}
    assert len(names) == 208
    assert sum(one in listed for one in names) == 13
    assert sum(one.partition("_")[0] not in wnids for one in names) == 1


@real_files("atlas_lists")
def check_imagenet_ood(shared: Path) -> None:
    atlas = shared / "data/atlas"
    made = import_lists("imagenetood/published", atlas / "imagenetood")
    assert made.part("imagenetood").images == 31_802
    paths = read_published(atlas / "imagenetood/imagenetood.txt").lists[0].paths.decode().split("\n")[:-1]
    classes = Counter(path.partition("/")[0] for path in paths)
    assert (len(set(paths)), len(classes)) == (31_802, 637)
    assert (min(classes.values()), max(classes.values()), Counter(classes.values())[50]) == (47, 50, 599)
    assert not set(classes) & set(ilsvrc2012_classes())
    roles = read_published(atlas / "ssb/imagenet_ssb_splits.json").classes
    shared_classes = {role: len(set(classes) & set(names)) for role, names in roles.items()}
    assert shared_classes == {"known": 0, "unknown/Hard": 29, "unknown/Easy": 113}
    ssb = read_published(atlas / "ssb/imagenet_21k_val_files.json").lists[0]
    assert not set(ssb.stems.split()) & {path.rpartition("/")[2].removesuffix(".JPEG").encode() for path in paths}
