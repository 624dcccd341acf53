"""A manifest names a paper and a licence only of data that are proved to be the paper's."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import curation
from curation.benchmarks.attribution import attributed
from curation.core.errors import ProtocolError, PublishError
from curation.manifest.manifest import Manifest
from curation.publishing.member import TERMS, terms_of
from tests.protocols.osod3_world import SUPERCLASSES, open_images
from tests.protocols.test_wilderness_rule import drawn
from tests.real_files import real_files


def own_elephant(folder: Path) -> Manifest:
    """Build Elephant from drawn files in the slots of VOC and COCO."""
    rng = random.Random(3)
    files = {"voc2007-test": (["aeroplane", "cat"], 1), "coco": (["airplane", "zebra", "bolt"], 5000)}
    for name, (names, first) in files.items():
        (folder / f"{name}.json").write_text(json.dumps(drawn(rng, 60, names, first, 2)))
    return curation.build("elephant", sources={name: folder / f"{name}.json" for name in files}, ratios="0.2")


def test_own_files_in_the_slots_of_a_paper_are_the_users(tmp_path: Path) -> None:
    """The manifest names the rule and whom it follows, no paper and no licence of COCO; it is built again equally."""
    made = own_elephant(tmp_path)
    header = made.header
    assert (header.paper, header.notes[0]) == (None, "Rule wilderness (after Dhamija et al. 2020); data: user.")
    assert {entry.licence for entry in header.sources} == {"not stated"}
    assert "Elephant" not in header.title
    made.save(tmp_path / "made")
    assert curation.verify(tmp_path / "made", rebuild=True).verdict == "verified"


def test_the_owner_states_the_licence_of_own_files_and_a_card_names_no_paper(tmp_path: Path) -> None:
    """``--licence`` goes before the name of the slot; without it the card says that none is stated."""
    made = own_elephant(tmp_path)
    for licences, expected in (({}, "not stated"), ({"coco": "MIT"}, "MIT")):
        assert terms_of(made.header.sources[1], licences).annotations == expected
    curation.publish(made, "mylab/parts", dry_run=tmp_path / "card", licences={"coco": "MIT"}, date="2026-01-01")
    for name in ("README.md", "croissant.json"):
        text = (tmp_path / "card" / name).read_text(encoding="utf-8")
        assert "dhamija" not in text.lower().replace("after dhamija et al. 2020", "")
        assert "cocodataset.org" not in text
    row = next(
        line for line in (tmp_path / "card" / "README.md").read_text().splitlines() if line.startswith("| `coco` |")
    )
    assert "MIT" in row


def test_a_benchmark_file_states_licence_and_paper_of_its_owner(tmp_path: Path) -> None:
    """The licence of a source and the paper of the file are the owner's; a dataset's name gives the data no licence."""
    rng, names = random.Random(3), ["cow", "hen", "goat", "duck"]
    for part, first in (("train", 1), ("test", 500)):
        (tmp_path / f"{part}.json").write_text(json.dumps(drawn(rng, 60, names, first, 3)))
    paper = 'title = "T"\nauthors = "A"\nyear = 2026\nvenue = "V"\nbibtex = "@misc{a}"\n'
    (tmp_path / "mine.toml").write_text(
        'rule = "superclass"\nname = "mylab/farm"\n[sources]\ntrain = { dataset = "coco", licence = "MIT" }\n'
        f'test = {{ dataset = "coco" }}\n[classes.groups]\nall = {json.dumps(names)}\n'
        f'[parameters]\nsuperclass = "all"\n[paper]\n{paper}'
    )
    made = curation.build(
        tmp_path / "mine.toml", sources={name: tmp_path / f"{name}.json" for name in ("train", "test")}
    )
    assert made.header.paper is not None
    licences = {"train": "MIT", "test": "not stated"}
    assert {entry.name: entry.licence for entry in made.header.sources} == licences
    assert {entry.name: terms_of(entry).annotations for entry in made.header.sources} == licences
    made.save(tmp_path / "made")
    assert curation.verify(tmp_path / "made", rebuild=True).verdict == "verified"


def test_authors_lists_over_own_data_are_not_published_by_them(tmp_path: Path) -> None:
    """Class lists named as the authors' make no data of the user's own theirs."""
    source = {f"openimages-{part}": open_images(part, 120, n) for n, part in enumerate(("train", "validation", "test"))}
    for number in range(4):
        text = "".join(f"{label}\n" for label in SUPERCLASSES["vehicle"][number::4])
        (tmp_path / f"category_t{number + 1}.txt").write_text(text)
    made = curation.build("osod3", sources=source, superclass="vehicle", published=tmp_path)
    assert (made.header.paper, made.header.origin) == (None, "regenerated")


@pytest.mark.parametrize("name", ["mtsd", "bdd100k"])
def test_a_name_whose_labels_may_not_be_passed_on_stays_closed(name: str, tmp_path: Path) -> None:
    """Data under such a name need another name: the statement of a licence does not open it."""
    entry = own_elephant(tmp_path).header.sources[1]
    closed = replace(entry, dataset=name, namespace=name)
    assert terms_of(closed) == TERMS[name]
    with pytest.raises(PublishError, match="fixed") as caught:
        terms_of(closed, {"coco": "MIT"})
    assert "drop --licence coco=MIT" in str(caught.value)


@real_files("coco")
def check_official_files_keep_lists_paper_and_licence(shared: Path) -> None:
    files = {
        "voc2007-test": shared / "data/voc2007/test_with_difficult.json",
        "coco": shared / "data/coco/instances_val2017_rebuilt.json",
    }
    made = curation.build("elephant", sources=files, ratios="0.1", orders="hash")
    committed = curation.load("elephant/val2017").header
    assert (made.header.parts, made.header.figures) == (committed.parts, committed.figures)
    assert (made.header.paper, made.header.title) == (committed.paper, committed.title)
    assert [entry.licence for entry in made.header.sources] == [entry.licence for entry in committed.sources]
    with pytest.raises(PublishError, match="proved by digest") as caught:
        terms_of(made.header.sources[1], {"coco": "MIT"})
    assert "drop --licence coco=MIT" in str(caught.value)
    with pytest.raises(ProtocolError, match="proved by digest") as fixed:
        attributed(made, {"coco": "MIT"})
    assert "remove the key licence" in str(fixed.value)
    # Other bytes with the same lists are proved by the digests of these.
    other: dict[str, Any] = json.loads(files["coco"].read_text(encoding="utf-8"))
    made = curation.build("elephant", sources={**files, "coco": {**other, "info": {}}}, ratios="0.1", orders="hash")
    assert made.header.paper is not None
