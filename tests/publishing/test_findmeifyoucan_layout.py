"""The authors' files: names, fields, counts, integer ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.benchmarks.findmeifyoucan.layout import (
    PublishedCategory,
    findmeifyoucan_tables,
    open_images_categories,
    plan_findmeifyoucan,
    split_parts,
    upstream_name,
)
from curation.core.errors import ExportError, HierarchyError, PublishError
from curation.manifest.manifest import Manifest
from curation.publishing.member import Member, Request
from curation.publishing.publication import verify_repository
from curation.publishing.repository import write_repository
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import TABLE, decided_world
from tests.publishing.published_world import tiny
from tests.real_files import real_files


@pytest.fixture(scope="module")
def made() -> tuple[Manifest, dict[str, Source]]:
    return decided_world()


def contents(made: tuple[Manifest, dict[str, Source]], part: str, table: Any = ()) -> dict[str, Any]:
    plan = plan_findmeifyoucan(made[0], [part], made[1], table)
    files = {file.name: b"".join(file.chunks()) for file in plan.files}
    return {name: json.loads(data) if name.endswith(".json") else data.decode() for name, data in files.items()}


def test_the_names_are_those_of_the_code(made: tuple[Manifest, dict[str, Source]]) -> None:
    names = {part: upstream_name(made[0], part) for part in split_parts(made[0].header)}
    assert names == {
        "coco-near": "near_coco_wrt_voc",
        "coco-far": "far_coco_wrt_voc",
        "openimages-near": "near_oi_wrt_voc",
        "openimages-far": "far_oi_wrt_voc",
    }
    with pytest.raises(ExportError, match="near, far and farther"):
        upstream_name(made[0], "coco-rule")


def test_a_coco_split_holds_the_annotations_of_both_sources(made: tuple[Manifest, dict[str, Source]]) -> None:
    files = contents(made, "coco-far")
    assert set(files) == {"far_coco_wrt_voc.json", "far_coco_wrt_voc.txt"}
    data = files["far_coco_wrt_voc.json"]
    assert list(data) == ["info", "licenses", "images", "annotations", "categories"]
    assert data["images"][0] == {"id": 1, "file_name": "000000000001.jpg", "height": 480, "width": 640}
    assert [one["id"] for one in data["images"]] == [1, 3, 101]
    assert files["far_coco_wrt_voc.txt"] == "000000000001\n000000000003\n000000000101\n"
    assert [one["image_id"] for one in data["annotations"]] == [1, 101, 101]
    assert data["annotations"][0] == {
        "id": 2,
        "image_id": 1,
        "category_id": 34,
        "bbox": [10.123456, 20, 30.005, 40],
        "iscrowd": 0,
        "area": 7.5,
    }
    counts = {one["name"]: one["count"] for one in data["categories"]}
    assert len(counts) == 80
    assert {name for name, count in counts.items() if count} == {"kite"}
    assert counts["kite"] == 3


def test_open_images_ids_stay_texts_and_an_int_variant_counts_positions(
    made: tuple[Manifest, dict[str, Source]],
) -> None:
    files = contents(made, "openimages-near", TABLE)
    assert set(files) == {"near_oi_wrt_voc.json", "near_oi_wrt_voc_int_id.json", "near_oi_wrt_voc.txt"}
    texts, numbers = files["near_oi_wrt_voc.json"], files["near_oi_wrt_voc_int_id.json"]
    assert [one["id"] for one in texts["images"]] == ["bb02", "cc03"]
    assert [one["id"] for one in numbers["images"]] == [1, 2]
    assert [one["file_name"] for one in numbers["images"]] == ["bb02.jpg", "cc03.jpg"]
    position = {one["id"]: place for place, one in enumerate(texts["images"], start=1)}
    renumbered = [{**one, "image_id": position[one["image_id"]]} for one in texts["annotations"]]
    assert renumbered == numbers["annotations"]
    # Rounded to two decimals, no area, ids counted from 0; Fox is the table's number, not the source's.
    assert texts["annotations"][0] == {
        "id": 0,
        "image_id": "bb02",
        "category_id": 97,
        "bbox": [10.12, 20.0, 30.0, 40.0],
        "iscrowd": 0,
    }
    fox = next(one for one in texts["categories"] if one["name"] == "Fox")
    assert fox == {"id": 97, "name": "Fox", "supercategory": "Parent", "metacategory": "Grandparent", "count": 2}


COLUMNS = [
    "image",
    "file_name",
    "image_id",
    "height",
    "width",
    "dataset_origin",
    "distance_category",
    "objects",
    "categories",
]


def rows_of(made: tuple[Manifest, dict[str, Source]]) -> dict[str, list[dict[str, Any]]]:
    tables = findmeifyoucan_tables(Member(made[0], "unused", made[1]), TABLE)
    assert all(table.split == "train" for table in tables)
    return {table.config: pa.concat_tables(table.rows()).to_pylist() for table in tables}


def test_rows_hold_what_the_json_files_hold(made: tuple[Manifest, dict[str, Source]]) -> None:
    parts = {
        "coco_near_voc": "coco-near",
        "coco_far_voc": "coco-far",
        "oi_near_voc": "openimages-near",
        "oi_far_voc": "openimages-far",
    }
    for config, rows in rows_of(made).items():
        file = next(iter(plan_findmeifyoucan(made[0], [parts[config]], made[1], TABLE).files))
        data = json.loads(b"".join(file.chunks()))
        assert [(row["image_id"], row["file_name"], row["height"], row["width"]) for row in rows] == [
            (str(one["id"]), one["file_name"], one["height"], one["width"]) for one in data["images"]
        ]
        objects = [(row["image_id"], one) for row in rows for one in row["objects"]]
        assert sorted((image, one["id"], one["category_id"], one["bbox"], one["area"]) for image, one in objects) == (
            sorted(
                (str(one["image_id"]), one["id"], one["category_id"], one["bbox"], one.get("area"))
                for one in data["annotations"]
            )
        )
        names = {one["id"]: (one["name"], one["supercategory"]) for one in data["categories"]}
        for row in rows:
            assert {one["id"] for one in row["categories"]} == {one["category_id"] for one in row["objects"]}
            assert all((one["name"], one["supercategory"]) == names[one["id"]] for one in row["categories"])
            assert row["distance_category"] == parts[config].rpartition("-")[2]
            assert row["dataset_origin"] == ("COCO" if config.startswith("coco") else "OpenImages")
            assert row["image"] is None


def test_a_split_without_its_sources_is_refused_with_the_command(made: tuple[Manifest, dict[str, Source]]) -> None:
    with pytest.raises(PublishError, match="need file names and boxes") as refused:
        findmeifyoucan_tables(Member(made[0], "unused", {"openimages": made[1]["openimages"]}))
    assert "--source coco-val2017=PATH" in (refused.value.expected or "")


def test_other_manifests_and_those_without_a_split_are_refused(made: tuple[Manifest, dict[str, Source]]) -> None:
    manifest, sources = tiny()
    with pytest.raises(ExportError, match="near, far and farther"):
        findmeifyoucan_tables(Member(manifest, "unused", sources))
    with pytest.raises(PublishError, match="No near, far or farther split"):
        findmeifyoucan_tables(Member(Manifest(made[0].header, {}), "unused", made[1]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_repository_in_this_layout_is_whole_and_loads(
    made: tuple[Manifest, dict[str, Source]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("mlcroissant")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    # Sources that no split needs (the start lists) give no labels, and are not given.
    sources = {name: one for name, one in made[1].items() if not name.startswith("vos-")}
    member = Member(made[0], "findmeifyoucan-voc", sources)
    tables = tuple(findmeifyoucan_tables(member, TABLE))
    out = tmp_path / "out"
    out.mkdir()
    write_repository(Request("lab/near", "1.0.0", (member,), tables, layout="findmeifyoucan"), out)
    verify_repository(out)
    rows = datasets.load_dataset(str(out), "coco_far_voc", split="train", cache_dir=str(tmp_path / "cache"))
    assert rows.column_names == COLUMNS
    assert isinstance(rows.features["image"], datasets.Image)
    assert list(rows["image_id"]) == ["1", "3", "101"]


TREE = {
    "LabelName": "/m/root",
    "Subcategory": [
        {
            "LabelName": "/m/animal",
            "Subcategory": [
                {"LabelName": "/m/mammal", "Subcategory": [{"LabelName": "/m/dog"}, {"LabelName": "/m/bat"}]},
                {"LabelName": "/m/flier", "Subcategory": [{"LabelName": "/m/bat"}]},
            ],
            "Part": [{"LabelName": "/m/paw"}],
        },
        {"LabelName": "/m/coin"},
    ],
}
NAMES = {"animal": "Animal", "mammal": "Mammal", "dog": "Dog", "bat": "Bat", "flier": "Flier", "coin": "Coin"}


def files(folder: Path, tree: object = TREE) -> tuple[Path, Path]:
    (folder / "tree.json").write_text(json.dumps(tree))
    (folder / "names.csv").write_text("".join(f"/m/{key},{name}\n" for key, name in NAMES.items()))
    return folder / "tree.json", folder / "names.csv"


def test_numbers_follow_the_walk_and_a_repeated_class_keeps_its_first_number(tmp_path: Path) -> None:
    assert open_images_categories(*files(tmp_path)) == (
        PublishedCategory(1, "Animal", "Animal", "Animal"),
        PublishedCategory(2, "Mammal", "Animal", "Animal"),
        PublishedCategory(3, "Dog", "Mammal", "Animal"),
        PublishedCategory(4, "Bat", "Flier", "Animal"),
        PublishedCategory(5, "Flier", "Animal", "Animal"),
        PublishedCategory(6, "Coin", "Coin", "Coin"),
    )


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"LabelName": "/m/root", "Subcategory": [{"LabelName": "/m/none"}]}, "no name"),
        ({"LabelName": "/m/root", "Subcategory": [17]}, "cannot be read"),
        ([], "cannot be read"),
    ],
)
def test_what_is_no_tree_is_refused(tmp_path: Path, tree: object, message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        open_images_categories(*files(tmp_path, tree))


@real_files("openimages")
def check_the_real_tree_has_601_classes_each_once(shared: Path) -> None:
    folder = shared / "data/openimages"
    table = open_images_categories(folder / "bbox_labels_600_hierarchy.json", folder / "class-descriptions-boxable.csv")
    assert [one.number for one in table] == list(range(1, 602))
    by_name = {one.name: one for one in table}
    assert len(by_name) == 601
    assert (by_name["Loveseat"].supercategory, by_name["Loveseat"].metacategory) == ("Couch", "Furniture")
    assert (by_name["Coin"].supercategory, by_name["Coin"].metacategory) == ("Coin", "Coin")
