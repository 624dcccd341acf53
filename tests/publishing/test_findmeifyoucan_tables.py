"""The published columns of FindMeIfYouCan: names, order, and the same objects as the authors' JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.benchmarks.findmeifyoucan.layout import findmeifyoucan_tables, plan_findmeifyoucan, published_schema
from curation.errors import ExportError, PublishError
from curation.manifest.manifest import Manifest
from curation.publishing.member import Member, Request
from curation.publishing.publication import verify_repository
from curation.publishing.repository import write_repository
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import TABLE, decided_world
from tests.publishing.published_world import tiny

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


@pytest.fixture(scope="module")
def made() -> tuple[Manifest, dict[str, Source]]:
    return decided_world()


def rows_of(made: tuple[Manifest, dict[str, Source]]) -> dict[str, list[dict[str, Any]]]:
    tables = findmeifyoucan_tables(Member(made[0], "unused", made[1]), TABLE)
    assert all(table.split == "train" for table in tables)
    return {table.config: pa.concat_tables(table.rows()).to_pylist() for table in tables}


def test_configs_are_the_published_ones(made: tuple[Manifest, dict[str, Source]]) -> None:
    assert set(rows_of(made)) == {"coco_near_voc", "coco_far_voc", "oi_near_voc", "oi_far_voc"}
    assert published_schema().names == COLUMNS


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
