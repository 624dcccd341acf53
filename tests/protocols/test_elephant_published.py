"""PROB's copy of WR1 as a manifest of published lists: its header, its import, and what it lacks."""

import json
import shutil
from pathlib import Path

import pytest

from curation.benchmarks.registry import find_recipe, recipes
from curation.cli import main
from curation.core.errors import UsageError
from curation.manifest.importing import list_slices, pin_lists
from curation.manifest.manifest import read_manifest
from tests.real_files import provided, real_files

NAME = "elephant/wr1-prob-published"
MANIFESTS = Path(__file__).parents[2] / "manifests"
HEADER, WR1 = MANIFESTS / NAME / "1.0.0", MANIFESTS / "elephant/train2017/1.1.0"


@provided
def lists(shared: Path, tmp_path: Path) -> Path:
    """The folder of PROB's repository, with the one file."""
    folder = tmp_path / "PROB/data/OWOD/ImageSets/VOC2007"
    folder.mkdir(parents=True)
    shutil.copy(shared / "data/owod/published/prob/VOC2007__test_wr1.txt", folder / "test_wr1.txt")
    return folder


def test_the_draft_names_the_parts_as_the_protocol_does() -> None:
    draft = find_recipe(NAME)()
    ours = read_manifest(WR1).header
    roles = {part.name: (part.role, part.sources, part.view) for part in ours.parts}
    assert {part.name: (part.role, part.sources, part.view) for part in draft.parts} == {
        name: roles[name] for name in ("closed", "wr1")
    }
    assert (draft.name, draft.origin, draft.taxonomy) == (NAME, "as_published", ours.taxonomy)
    assert draft.classes == ours.classes


def test_the_header_states_the_finding() -> None:
    header = read_manifest(HEADER).header
    (figure,) = [one for one in header.figures if one.name == "wr1.images"]
    assert (figure.paper, figure.obtained) == (4952, 4952 - 236)
    assert figure.explanation == "WR1 less its 236 images without annotations"
    assert "less its 236 images without annotations" in header.notes[0]
    # VOC2007 test is whole: the list of the last 4,952 lines is the closed part itself.
    closed = {part.name: part.sha256 for part in header.parts}["closed"]
    assert closed == read_manifest(WR1).part("closed").sha256


def test_a_recipe_by_a_name_that_is_near() -> None:
    with pytest.raises(UsageError) as error:
        find_recipe("elephant/wr1-published")
    assert NAME in str(error.value.hint)
    assert {name.partition("/")[0] for name in recipes()} >= {"elephant", "owod"}


@real_files("owod_lists")
def check_the_recipe_makes_the_committed_header(lists: Path) -> None:
    pinned = pin_lists(find_recipe(NAME)(), lists)
    assert pinned.digest == read_manifest(HEADER).digest
    lines = [list_slices(pinned.header)[part] for part in ("wr1", "closed")]
    assert [(one.first, one.last) for one in lines] == [(1, 4716), (4717, 9668)]


@real_files("owod_lists")
def check_the_copy_lacks_the_images_without_annotations(
    shared: Path, lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    assert main(["import", str(HEADER), "--lists", str(lists), "--out", str(copy)]) == 0
    capsys.readouterr()
    assert main(["diff", str(copy), str(WR1), "--ids", "--json"]) == 0
    (wr1,) = [part for part in json.loads(capsys.readouterr().out)["parts"] if part["part"] == "wr1"]
    annotated = (shared / "data/coco/annotated_ids_in_annotation_order_train_then_val.txt").read_text()
    assert (len(wr1["added"]), wr1["removed"]) == (236, [])
    assert not {one.removeprefix("coco:") for one in wr1["added"]} & set(annotated.split())
    # The same by the command that compares a part with somebody's list.
    published = ["--published", str(copy / "ids/wr1.txt"), "--part", "wr1"]
    assert main(["verify", str(WR1), *published]) == 1
    assert "236" in capsys.readouterr().out
