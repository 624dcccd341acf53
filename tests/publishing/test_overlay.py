"""Boxes of reviewers in a publication: a file of its own, told in card and Croissant, verified when it is pulled."""

import json
from pathlib import Path

import pytest

from curation.core.errors import CurationError
from curation.manifest.manifest import Manifest, read_manifest
from curation.publishing.hub import HubRepository, pull, push
from curation.publishing.publication import verify_repository
from curation.review.decisions.added_boxes import add_boxes, resolve_boxes
from curation.review.decisions.box_edits import Replay
from tests.fake_hub import FakeHub
from tests.publishing.published_world import CLOSED, REPOSITORY, request_of, tiny, write
from tests.review.decisions.box_logs import Scribe

pytest.importorskip("mlcroissant")
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


def reviewed() -> Manifest:
    """Return the tiny manifest with a box of no class and one of a known class."""
    manifest, sources = tiny()
    anna = Scribe("anna", (50, 40))
    anna.add(CLOSED[0], 1, "1.5 2 10 10")
    anna.add(CLOSED[0], 2, "20 2 10 10", "dog")
    anna.complete(CLOSED[0])
    return add_boxes(manifest, resolve_boxes(Replay.of(anna.rows)), sources).manifest


def test_a_publication_carries_the_file_and_a_pull_verifies_it(hub: FakeHub, tmp_path: Path) -> None:
    manifest, (_, sources) = reviewed(), tiny()
    assert manifest.added_boxes is not None
    folder = tmp_path / "written"
    publication = write(folder, request_of(manifest, sources=sources))
    path = "manifests/hand/made/1.0.0/overlay.jsonl"
    assert (folder / path).read_bytes() == manifest.added_boxes.data
    assert publication.files[path].sha256 == manifest.added_boxes.digest
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "2 boxes on 1 images, 1 of them exhaustive (rule error)" in card
    assert manifest.added_boxes.digest in card
    described = json.loads((folder / "croissant.json").read_bytes())["distribution"]
    found = [one for one in described if one["@id"] == path]
    assert [one["sha256"] for one in found] == [manifest.added_boxes.digest.removeprefix("sha256:")]
    push(HubRepository(REPOSITORY), folder, publication)
    pull(f"{REPOSITORY}@1.0.0", tmp_path / "pulled")
    assert read_manifest(tmp_path / "pulled" / "manifests/hand/made/1.0.0").added_boxes == manifest.added_boxes


def test_the_tables_hold_the_boxes_and_load(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    manifest, (_, sources) = reviewed(), tiny()
    write(tmp_path / "written", request_of(manifest, sources=sources))
    rows = datasets.load_dataset(
        str(tmp_path / "written"), manifest.header.name.replace("/", "-"), split="closed", cache_dir=str(tmp_path / "c")
    )
    boxes = {row["image_id"]: [(one["bbox"], one["role"]) for one in row["objects"]] for row in rows}
    assert ([1.5, 2, 10, 10], "unknown") in boxes[CLOSED[0]]
    assert ([20, 2, 10, 10], "known") in boxes[CLOSED[0]]


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_another_file_in_its_place_is_found(tmp_path: Path, how: str) -> None:
    write(tmp_path / "written", request_of(reviewed()))
    path = tmp_path / "written" / "manifests/hand/made/1.0.0/overlay.jsonl"
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b'"1.5"', b'"2.5"'))
    with pytest.raises(CurationError, match="overlay"):
        verify_repository(tmp_path / "written")
