"""Statements on responsible use: what manifests say themselves, what a publisher adds, and what is asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.cli import main
from curation.core.errors import PublishError
from curation.manifest.locate import manifest_folders
from curation.manifest.manifest import read_manifest
from curation.publishing.croissant import REQUIRED, read_statements
from curation.publishing.publication import verify_repository
from tests.publishing.published_world import files_below

STATED = {
    "dataBiases": "photos of Flickr",
    "dataSocialImpact": "none that we know",
    "hasSyntheticData": False,
    "personalSensitiveInformation": "persons in photos",
    "dataLimitations": ["small", "old"],
}


@pytest.fixture
def made(tmp_path: Path) -> Any:
    def run(*options: str) -> dict[str, Any]:
        folder = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        words = ["publish", "elephant/val2017", "--repo", "lab/lists", "--dry-run", str(folder), *options]
        assert main([*words, "--date", "2026-01-02"]) == 0
        found: dict[str, Any] = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
        return found

    return run


def test_what_a_publisher_states_joins_what_the_manifest_says(
    made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = made()
    assert "required by data tracks: dataBiases, dataSocialImpact" in capsys.readouterr().err
    assert data["rai:hasSyntheticData"] is False
    assert any("VOC" in text or "voc" in text for text in data["rai:personalSensitiveInformation"])
    (tmp_path / "rai.toml").write_text("".join(f"{key} = {json.dumps(one)}\n" for key, one in STATED.items()))
    data = made("--rai", str(tmp_path / "rai.toml"))
    assert "asked for" not in capsys.readouterr().err
    assert {f"rai:{name}" for name in REQUIRED} <= set(data)
    assert data["rai:dataSocialImpact"] == "none that we know"


def test_the_shape_is_one_that_editors_read(made: Any) -> None:
    data = made()
    for one in data["prov:wasDerivedFrom"]:
        assert {"@id", "prov:label", "sc:license"} <= set(one)
    assert len({one["@id"] for one in data["prov:wasDerivedFrom"]}) == len(data["prov:wasDerivedFrom"])
    (rule,) = data["prov:wasGeneratedBy"]
    assert rule["prov:type"]["@id"].startswith("https://www.wikidata.org/wiki/Q")
    assert rule["prov:atTime"] == data["datePublished"] == "2026-01-02"


@pytest.mark.parametrize(
    "text",
    ["dataBias = 'x'", "hasSyntheticData = 'maybe'", "dataBiases = 3", "dataBiases = [1]", "dataBiases = ", "\x00",
     f"dataBiases = '{'x' * 5000}'"],
)  # fmt: skip
def test_statements_are_checked(tmp_path: Path, text: str) -> None:
    (tmp_path / "rai.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PublishError):
        read_statements(tmp_path / "rai.toml")


COMMITTED = manifest_folders()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["elephant/val2017@1.0.0", "elephant/wr1-prob-published@1.0.0", "owod/reowod@1.0.0", "imagenet/p2@1.0.0"]
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_committed_manifest_publishes(name: str, tmp_path: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    from huggingface_hub import DatasetCard, DatasetCardData

    (tmp_path / "rai.toml").write_text("".join(f"{key} = {json.dumps(one)}\n" for key, one in STATED.items()))
    folder = tmp_path / "out"
    made = curation.publish(name, "lab/lists", dry_run=folder, rai=tmp_path / "rai.toml")
    assert made.written.remarks == ()
    publication = verify_repository(folder)
    (one,) = publication.manifests
    committed = read_manifest(COMMITTED[name])
    assert (one.digest, publication.tag) == (committed.digest, committed.header.version)
    assert files_below(folder / one.folder) == files_below(COMMITTED[name])
    assert {part.name for part in one.parts if part.table} == set(committed.lists)
    data = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    mapping = {one["@id"]: str(folder / one["@id"]) for one in data["distribution"]}
    dataset = mlcroissant.Dataset(data, mapping=mapping)
    for one in data["recordSet"]:
        assert next(iter(dataset.records(one["@id"])), None) is not None, one["@id"]
    card = DatasetCard.load(folder / "README.md", ignore_metadata_errors=False)
    assert ("| no list |" in card.text) == (set(committed.lists) != {part.name for part in committed.header.parts})
    assert all(f"`{figure.name}`" in card.text for figure in committed.header.figures)
    assert DatasetCardData(**card.data.to_dict()).to_dict() == card.data.to_dict()
    assert {"license", "tags", "task_categories", "language", "source_datasets"} <= set(card.data.to_dict())
