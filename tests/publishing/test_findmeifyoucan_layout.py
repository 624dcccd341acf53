"""The published dataset: configurations, columns and rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import curation
from curation.benchmarks.findmeifyoucan.layout import findmeifyoucan_tables, import_published, published_schema
from curation.core.errors import MissingFileError, PublishError
from curation.manifest.manifest import Manifest
from curation.publishing.member import Member, Request
from curation.publishing.publication import verify_repository
from curation.publishing.repository import write_repository
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import decided_world
from tests.publishing.published_world import tiny
from tests.shell import Shell


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
    out = published(made, tmp_path / "out")
    verify_repository(out)
    rows = datasets.load_dataset(str(out), "coco_far_voc", split="train", cache_dir=str(tmp_path / "cache"))
    assert rows.column_names == COLUMNS
    assert isinstance(rows.features["image"], datasets.Image)
    assert list(rows["image_id"]) == ["1", "3", "101"]


def published(made: tuple[Manifest, dict[str, Source]], out: Path) -> Path:
    # Sources that no split needs (the start lists) give no labels, and are not given.
    sources = {name: one for name, one in made[1].items() if not name.startswith("vos-")}
    member = Member(made[0], "findmeifyoucan-voc", sources)
    tables = tuple(findmeifyoucan_tables(member))
    out.mkdir()
    write_repository(Request("lab/near", "1.0.0", (member,), tables, layout="findmeifyoucan"), out)
    return out


SPLITS = {"coco-near": "coco_near_voc", "coco-far": "coco_far_voc", "openimages-near": "oi_near_voc"}


@pytest.fixture(scope="module")
def repository(made: tuple[Manifest, dict[str, Source]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(made, tmp_path_factory.mktemp("hub") / "out")


@pytest.mark.parametrize("part", SPLITS)
def test_a_published_split_is_the_source_that_it_was_made_of(
    part: str, made: tuple[Manifest, dict[str, Source]], repository: Path
) -> None:
    dataset = part.partition("-")[0]
    source = curation.open_source(dataset, repository, part=SPLITS[part])
    assert tuple(source.image_ids.tolist()) == made[0].ids(part)
    assert source.objects is not None
    originals = [made[1][name] for name in made[0].part(part).sources]
    for position, image in enumerate(source.image_ids.tolist()):
        [(original, row)] = [(one, one.image_ids.tolist().index(image)) for one in originals if image in one.image_ids]
        mine, theirs = source.objects, original.objects
        assert theirs is not None
        here, there = mine.image == position, theirs.image == row
        assert mine.boxes[here] == pytest.approx(theirs.boxes[there], abs=0.005)
        names = [original.categories.names[number] for number in theirs.category[there]]
        assert [source.categories.names[number] for number in mine.category[here]] == names
        assert source.images.numbers[position] == original.images.numbers[row] or dataset == "openimages"
        assert source.images.file_names[position] == original.images.file_names[row]


def test_one_folder_is_the_truth_of_all_splits(
    made: tuple[Manifest, dict[str, Source]], repository: Path, tmp_path: Path, shell: Shell
) -> None:
    made[0].save(tmp_path / "m")
    boxes = {"coco-far": (1, [10.123456, 20, 30.005, 40]), "openimages-near": ("bb02", [10.12, 20, 30, 40])}
    (tmp_path / "id.json").write_text(json.dumps({"scores": [2.0, 3.0, 4.0]}))
    words: list[Any] = []
    for split, (image, box) in boxes.items():
        record = {"image_id": image, "bbox": box, "score": 0.9, "ood_score": 0.5}
        (tmp_path / f"{split}.json").write_text(json.dumps([record]))
        words += ["--detections", f"{split}={tmp_path / split}.json"]
    command = ("evaluate", "findmeifyoucan", *words, "--scores", tmp_path / "id.json", "--variant", "paper", "--json")
    for more in ((), ("--manifest", tmp_path / "m")):
        data = shell.data(*command, "--truth", repository, *more)
        recall = {row["split"]: row["value"] for row in data["measures"] if row["measure"] == "R_U"}
        # coco-far has three objects on three images, openimages-near three on two: one of them is found.
        assert recall == {"coco-far": 33.333, "openimages-near": 33.333}


def test_published_splits_are_imported_and_compared_with_the_rule(
    made: tuple[Manifest, dict[str, Source]], repository: Path, tmp_path: Path, shell: Shell
) -> None:
    made[0].save(tmp_path / "ours")
    text = shell.out("import", tmp_path / "ours", "--lists", repository, "--out", tmp_path / "same")
    assert "coco-far: the 3 images of findmeifyoucan/voc 1.0.0." in text
    imported = curation.load(str(tmp_path / "same"))
    assert {part: imported.ids(part) for part in imported.parts} == {part: made[0].ids(part) for part in imported.parts}
    # 1 and 3 are of val2017 and without an ID class; 101 was added.
    figures = {figure.name: figure.obtained for figure in imported.header.figures}
    assert (figures["coco-far.kept_images"], figures["coco-far.added_images"]) == (2, 1)
    # These are not the paper's splits, and nothing says so.
    assert (imported.header.origin, imported.header.paper) == ("as_published", None)
    shell.out("import", tmp_path / "same", "--lists", repository, "--out", tmp_path / "again")
    assert curation.load(str(tmp_path / "again")).digest == imported.digest
    other = tmp_path / "other/data/coco_near_voc"
    other.mkdir(parents=True)
    near, far = (parquet.read_table(repository / f"data/coco_{level}_voc/train.parquet") for level in ("near", "far"))
    parquet.write_table(pa.concat_tables([near.slice(1), far.slice(0, 1)]), other / "train.parquet")
    text = shell.out("import", tmp_path / "ours", "--lists", tmp_path / "other", "--out", tmp_path / "unlike")
    assert (
        "0 images in both; 1 image in the published split alone (coco:000000000001); 1 image in findmeifyoucan/voc"
        in text
    )
    header_only = replace(made[0], lists={})
    assert "by its figures alone" in import_published(header_only, repository).header.notes[0]
    with pytest.raises(MissingFileError, match="no configuration of a split"):
        import_published(curation.load("findmeifyoucan/bdd"), repository)


def test_published_splits_are_lists_to_identify_and_to_audit(repository: Path, tmp_path: Path, shell: Shell) -> None:
    split = repository / "data/coco_far_voc/train.parquet"
    [found] = shell.data("identify", split, "--json", status=1)["lists"]
    assert (found["form"], found["digests"]["lines"], found["verdict"]) == ("parquet", 3, "unknown")
    rule = curation.load("findmeifyoucan/voc").ids("coco-rule")
    rows = [{"file_name": f"{one.partition(':')[2]}.jpg", "image_id": str(int(one[-12:]))} for one in rule]
    parquet.write_table(pa.Table.from_pylist(rows, schema=published_schema()), tmp_path / "rule.parquet")
    [found] = shell.data("identify", tmp_path / "rule.parquet", "--json")["lists"]
    assert "findmeifyoucan/voc@1.0.0#coco-rule" in {match["name"] for match in found["matches"]}
    for level in ("near", "far"):
        rows = parquet.read_table(repository / f"data/coco_{level}_voc/train.parquet")
        shared = parquet.read_table(split).slice(0, 1)
        (tmp_path / "data" / level).mkdir(parents=True)
        parquet.write_table(
            pa.concat_tables([rows, shared]) if level == "near" else rows, tmp_path / "data" / level / "train.parquet"
        )
    roles = ("--role", "near/train=test", "--role", "far/train=train")
    text = shell.out("audit", tmp_path / "data", *roles, status=1)
    assert "near/train and far/train: both hold 1 image" in text
