"""A repository as a folder: what lies in it, that others read it, and that two builds give the same bytes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from curation.core.canonical import sha256_of_bytes, sha256_of_lines
from curation.core.errors import PublishError, UsageError
from curation.manifest.manifest import Manifest, manifest_files
from curation.publishing.member import published_lists
from curation.publishing.publication import RECORD_FILE, check_repository_name, read_publication, verify_repository
from curation.publishing.repository import check_request
from curation.review.decisions.decision import Decision
from curation.review.decisions.resolution import decisions_digest
from tests.publishing.published_world import (
    CLOSED,
    REPOSITORY,
    WILDERNESS,
    changed,
    files_below,
    request_of,
    tiny,
    write,
)

HOSTILE = "x | y\n## [z](http://evil) <img src=x> `*_\x1b[2J\u202e"
EVIDENCE = (
    Decision(
        image_id=WILDERNESS[0], dataset="wilderness", stage="manual", action="keep", reviewer="anna", reason="no cat"
    ),
    Decision(image_id="coco:000000000777", dataset="wilderness", stage="manual", action="remove", reviewer="anna"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two manifests, one labelled and one that was reviewed."""
    out = tmp_path_factory.mktemp("made") / "repository"
    write(out, request())
    return out


def request() -> Any:
    manifest, sources = tiny()
    reviewed = changed(
        manifest, name="hand/reviewed", origin="reviewed", decisions=decisions_digest(EVIDENCE), version="1.1.0"
    )
    both = request_of(manifest, sources=sources, tag="3.0.0", date="2025-03-01")
    other = request_of(reviewed, evidence=EVIDENCE)
    return type(both)(
        repository=REPOSITORY,
        tag="3.0.0",
        members=(*both.members, *other.members),
        tables=(*both.tables, *other.tables),
        date="2025-03-01",
    )


def card_of(folder: Path) -> tuple[dict[str, Any], str]:
    _, header, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header), text


def test_manifests_and_lists_lie_there_verbatim(folder: Path) -> None:
    manifest = tiny()[0]
    for name, data in manifest_files(manifest).items():
        assert (folder / "manifests/hand/made/1.0.0" / name).read_bytes() == data
    assert verify_repository(folder) == read_publication(folder)


def test_two_builds_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "again", request())
    assert files_below(tmp_path / "again") == files_below(folder)


def test_the_record_has_the_digest_of_every_file(folder: Path) -> None:
    files = files_below(folder)
    publication = read_publication(folder)
    del files[RECORD_FILE]
    assert {path: file.sha256 for path, file in publication.files.items()} == {
        path: sha256_of_bytes(data) for path, data in files.items()
    }
    assert {path for path, file in publication.files.items() if file.content} == {
        path for path in files if path.endswith(".parquet") or path == "croissant.json"
    }


def test_the_card_names_every_table_once(folder: Path) -> None:
    from huggingface_hub import DatasetCard

    data, text = card_of(folder)
    configs = {one["config_name"]: one for one in data["configs"]}
    assert list(configs) == ["hand-made", "hand-reviewed"]
    assert [name for name, one in configs.items() if one.get("default")] == ["hand-made"]
    paths = [file["path"] for one in data["configs"] for file in one["data_files"]]
    assert sorted(paths) == sorted(path for path in files_below(folder) if path.endswith(".parquet"))
    assert DatasetCard.load(folder / "README.md").data.to_dict()["configs"] == data["configs"]
    # A hub's check of the header takes an address, or a file called LICENSE.
    assert data["license_link"] == f"https://huggingface.co/datasets/{REPOSITORY}"
    assert "<http://host.robots.ox.ac.uk/pascal/VOC/>" in text
    for words in ("How it was made", "Sources and licences", "curation pull lab/lists@3.0.0", "```bibtex"):
        assert words in text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_croissant_is_valid_and_reads_every_row(folder: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    data = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert data["conformsTo"][0] == "http://mlcommons.org/croissant/1.1"
    files = files_below(folder)
    root = f"https://huggingface.co/datasets/{REPOSITORY}/resolve/3.0.0/"
    digests = {one["contentUrl"].removeprefix(root): f"sha256:{one['sha256']}" for one in data["distribution"]}
    assert digests == {
        path: sha256_of_bytes(files[path]) for path in files if path not in ("croissant.json", RECORD_FILE)
    }
    # As a checker has it: the description alone, and the files wherever it keeps them.
    dataset = mlcroissant.Dataset(data, mapping={path: str(folder / path) for path in digests})
    rows = list(dataset.records("hand-made/closed"))
    assert [row["hand-made/closed/image_id"].decode() for row in rows] == CLOSED
    boxes = [one["hand-made/closed/objects/bbox"] for one in rows[1]["hand-made/closed/objects"]]
    assert [list(map(float, box)) for box in boxes] == [[5, 6, 7, 8], [10, 11, 12, 13]]
    names = [one["@id"] for one in data["recordSet"]]
    assert all(len(list(dataset.records(name))) for name in names)
    derived = data["prov:wasDerivedFrom"]
    assert [one["prov:label"] for one in derived] == ["voc2007 test", "coco test"]
    assert derived[1]["@id"] == "https://cocodataset.org/#termsofuse"
    # What CC BY asks for: the licence, and whom to name.
    assert derived[1]["sc:license"].startswith("annotations: CC-BY-4.0; ")
    assert derived[1]["prov:wasAttributedTo"]["prov:label"] == "COCO Consortium"
    assert "[CC-BY-4.0](https://spdx.org/licenses/CC-BY-4.0.html), COCO Consortium" in card_of(folder)[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_datasets_loads_every_config_offline(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    loaded = {
        name: datasets.load_dataset(str(folder), name, cache_dir=str(tmp_path))
        for name in ("hand-made", "hand-reviewed")
    }
    assert list(loaded["hand-made"]) == ["closed", "wilderness"]
    assert list(loaded["hand-made"]["closed"]["image_id"]) == CLOSED
    assert loaded["hand-made"]["closed"].features == loaded["hand-reviewed"]["closed"].features
    assert loaded["hand-reviewed"]["wilderness"][0]["decisions"][0]["reviewer"] == "anna"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_part_without_images_leaves_the_others_loadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    manifest, sources = tiny()
    none = {"images": 0, "annotated_images": 0, "boxes": {}, "sha256": sha256_of_lines(())}
    closed, wilderness = manifest.header.parts
    header = changed(manifest, parts=(msgspec.structs.replace(closed, **none), wilderness)).header
    empty = Manifest(header, {**manifest.lists, "closed": ()})
    write(tmp_path / "out", request_of(empty, sources=sources))
    verify_repository(tmp_path / "out")
    load = partial(datasets.load_dataset, str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in load("hand-made").items()} == {"wilderness": 2}
    # The table is there all the same, with the types of the others.
    tables = [tmp_path / "out/data/hand-made" / f"{part}.parquet" for part in ("closed", "wilderness")]
    assert parquet.read_schema(tables[0]) == parquet.read_schema(tables[1])
    assert parquet.read_metadata(tables[0]).num_rows == 0


def test_texts_of_a_header_do_not_steer_card_yaml_or_json(tmp_path: Path) -> None:
    manifest = tiny()[0]
    header = manifest.header
    paper = msgspec.structs.replace(
        header.paper, title=HOSTILE, authors=HOSTILE, bibtex=f"@x{{a}}\n```\n````\n{HOSTILE}"
    )
    parts = tuple(msgspec.structs.replace(part, selection=HOSTILE) for part in header.parts)
    hostile = changed(manifest, title=f"{HOSTILE}\n---\nconfigs: []", paper=paper, notes=(HOSTILE,), parts=parts)
    write(tmp_path / "out", request_of(hostile))
    data, text = card_of(tmp_path / "out")
    assert [one["config_name"] for one in data["configs"]] == ["hand-made"]
    assert "\x1b" not in text
    assert "<img" not in text.partition("## Citation")[0].replace("\\<img", "")
    verify_repository(tmp_path / "out")


def test_a_part_without_a_list_is_said_to_have_none(tmp_path: Path) -> None:
    manifest, _ = tiny()
    declared = Manifest(changed(manifest, origin="declared").header, {"closed": manifest.lists["closed"]})
    publication = write(tmp_path / "out", request_of(declared))
    (one,) = publication.manifests
    assert {part.name: bool(part.table) for part in one.parts} == {"closed": True, "wilderness": False}
    _, text = card_of(tmp_path / "out")
    assert "Parts whose list is not among the files: `wilderness`" in text
    verify_repository(tmp_path / "out")


def test_lists_of_authors_are_not_passed_on(tmp_path: Path) -> None:
    manifest = changed(tiny()[0], origin="as_published")
    assert manifest.lists
    write(tmp_path / "out", request_of(published_lists(manifest)))
    files = files_below(tmp_path / "out")
    assert [path for path in files if path.endswith(".parquet")] == []
    assert not any(one.encode() in data for one in CLOSED for data in files.values())
    data, text = card_of(tmp_path / "out")
    assert (data.get("configs"), data["viewer"]) == (None, False)
    assert "the lists are not passed on" in text


def test_sources_that_do_not_give_the_stated_counts_are_refused() -> None:
    manifest, sources = tiny()
    parts = tuple(msgspec.structs.replace(part, boxes={"known": 99}) for part in manifest.header.parts)
    with pytest.raises(PublishError, match="not those of the manifest: boxes of closed") as refused:
        check_request(request_of(changed(manifest, parts=parts), sources=sources))
    assert (refused.value.expected, refused.value.found) == ("known 99", "known 3")


def test_a_source_for_nothing_is_refused() -> None:
    manifest, sources = tiny()
    lists = {"closed": manifest.lists["closed"]}
    declared = Manifest(changed(manifest, origin="declared").header, lists)
    with pytest.raises(PublishError, match="No published list uses"):
        check_request(request_of(declared, sources=sources))


def test_annotations_that_may_not_be_passed_on_reach_no_file(tmp_path: Path) -> None:
    manifest, sources = tiny()
    mtsd = msgspec.structs.replace(manifest.header.sources[0], dataset="mtsd", namespace="mtsd")
    gated = changed(manifest, sources=(mtsd, *manifest.header.sources[1:]))
    with pytest.raises(PublishError, match="boxes and labels cannot be published"):
        write(tmp_path / "out", request_of(gated, sources=sources))
    assert files_below(tmp_path / "out") == {}
    write(tmp_path / "ids", request_of(gated))


@pytest.mark.parametrize(
    "name",
    ["lists", "a/b/c", "/b", "a/", "a b/c", "a/..", "a/b--c", "../b", "a/b.git", "-a/b", "a/" + "b" * 96, "a/b\x1b"],
)
def test_names_that_no_hub_takes_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="name of a dataset repository") as refused:
        check_repository_name(name)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(("tag", "date"), [("v1", ""), ("1.0", ""), ("1.0.0", "yesterday"), ("1.0.0", "20250301")])
def test_tags_and_dates_are_checked(tag: str, date: str) -> None:
    with pytest.raises(UsageError):
        check_request(request_of(tiny()[0], tag=tag, date=date))
