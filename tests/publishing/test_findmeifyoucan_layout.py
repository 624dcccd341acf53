"""The published dataset: configurations, columns and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curation.benchmarks.findmeifyoucan.layout import findmeifyoucan_tables, published_schema
from curation.core.errors import PublishError
from curation.manifest.manifest import Manifest
from curation.publishing.member import Member, Request
from curation.publishing.publication import verify_repository
from curation.publishing.repository import write_repository
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import decided_world
from tests.publishing.published_world import tiny


@pytest.fixture(scope="module")
def made() -> tuple[Manifest, dict[str, Source]]:
    return decided_world()


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
    tables = findmeifyoucan_tables(Member(made[0], "unused", made[1]))
    assert all(table.split == "train" for table in tables)
    return {table.config: pa.concat_tables(table.rows()).to_pylist() for table in tables}


def test_configs_are_the_published_ones(made: tuple[Manifest, dict[str, Source]]) -> None:
    assert set(rows_of(made)) == {"coco_near_voc", "coco_far_voc", "oi_near_voc", "oi_far_voc"}
    assert published_schema().names == COLUMNS


def test_a_split_without_its_sources_is_refused_with_the_command(made: tuple[Manifest, dict[str, Source]]) -> None:
    with pytest.raises(PublishError, match="need file names and boxes") as refused:
        findmeifyoucan_tables(Member(made[0], "unused", {"openimages": made[1]["openimages"]}))
    assert "--source coco-val2017=PATH" in (refused.value.expected or "")


def test_other_manifests_and_those_without_a_split_are_refused(made: tuple[Manifest, dict[str, Source]]) -> None:
    manifest, sources = tiny()
    with pytest.raises(PublishError, match="near, far and farther"):
        findmeifyoucan_tables(Member(manifest, "unused", sources))
    with pytest.raises(PublishError, match="No near, far or farther split"):
        findmeifyoucan_tables(Member(Manifest(made[0].header, {}), "unused", made[1]))


def test_a_row_holds_the_annotations_of_its_source(made: tuple[Manifest, dict[str, Source]]) -> None:
    rows = rows_of(made)
    assert [row["image_id"] for row in rows["coco_far_voc"]] == ["1", "3", "101"]
    first = rows["coco_far_voc"][0]
    assert (first["file_name"], first["height"], first["width"], first["image"]) == ("000000000001.jpg", 480, 640, None)
    assert first["objects"] == [{"id": 2, "area": 7.5, "bbox": [10.123456, 20, 30.005, 40], "category_id": 34}]
    assert [one["name"] for one in first["categories"]] == ["kite"]
    # Open Images: texts for ids, boxes rounded to two decimals, no area, annotations counted from 0.
    fox, other = rows["oi_near_voc"]
    assert (fox["image_id"], other["image_id"], fox["dataset_origin"]) == ("bb02", "cc03", "OpenImages")
    (record,) = fox["objects"]
    assert (record["id"], record["area"], record["bbox"]) == (0, None, [10.12, 20.0, 30.0, 40.0])
    assert {row["distance_category"] for row in rows["oi_near_voc"]} == {"near"}


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
    tables = tuple(findmeifyoucan_tables(member))
    out = tmp_path / "out"
    out.mkdir()
    write_repository(Request("lab/near", "1.0.0", (member,), tables, layout="findmeifyoucan"), out)
    verify_repository(out)
    rows = datasets.load_dataset(str(out), "coco_far_voc", split="train", cache_dir=str(tmp_path / "cache"))
    assert rows.column_names == COLUMNS
    assert isinstance(rows.features["image"], datasets.Image)
    assert list(rows["image_id"]) == ["1", "3", "101"]
