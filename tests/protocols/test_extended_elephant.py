"""A user's file that extends the Elephant paper's: the rule gives the lists of ``curation build elephant``."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.core.errors import CurationError
from curation.manifest.manifest import Manifest
from curation.sources.datasets import COCO_CATEGORIES, VOC_NAMES
from tests.protocols.test_wilderness_rule import drawn
from tests.real_files import real_files

FILE = 'extends = "elephant"\nname = "mylab/elephant"\n[parameters]\nratios = [0.5, 1]\norders = ["{}"]\n'
ORDERS = {"cpython_set": "", "cpython_set_as_listed": "-as-listed", "hash": "-hash", "id": "-id"}
"""The paper's suffix of the parts in each order; parts of a file's first order have none."""


@pytest.fixture
def world(tmp_path: Path) -> dict[str, Path]:
    """Return a closed source and a training part of VOC's classes, and COCO images of all 80 in no order."""
    rng = random.Random(3)
    coco_names = [name for _, name, _ in COCO_CATEGORIES]
    sources = {
        "voc2007-test": drawn(rng, 30, list(VOC_NAMES), 1, 2),
        "coco": drawn(rng, 400, coco_names, 9, 2),
        "voc2007-train": drawn(rng, 10, list(VOC_NAMES), 7000, 2),
    }
    for name, content in sources.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return {name: tmp_path / f"{name}.json" for name in sources}


def extended(folder: Path, text: str, sources: dict[str, Any]) -> Manifest:
    """Return what a user's file gives."""
    (folder / "mine.toml").write_text(text)
    return curation.build(folder / "mine.toml", sources=sources)


def require_the_papers_lists(mine: Manifest, paper: Manifest, names: dict[str, str]) -> None:
    """Check that both have the same parts, under the names of the paper's, with the same lists and counts."""
    parts = {names.get(part.name, part.name): part for part in mine.header.parts}
    assert list(parts) == list(paper.parts)
    for name, part in parts.items():
        assert mine.ids(part.name) == paper.ids(name)
        theirs = paper.part(name)
        assert (part.role, part.view, part.boxes, part.sha256) == (
            theirs.role,
            theirs.view,
            theirs.boxes,
            theirs.sha256,
        )


@pytest.mark.parametrize("first", ORDERS)
def test_a_file_that_extends_the_paper_gives_its_lists(first: str, world: dict[str, Path], tmp_path: Path) -> None:
    """In every order, with a training part; a rebuild is equal."""
    orders = [first, *(order for order in ORDERS if order != first)]
    paper = curation.build("elephant", sources=world, ratios="0.5,1", orders=",".join(orders))
    mine = extended(tmp_path, FILE.format('", "'.join(orders)), world)
    names = {
        f"wr{ratio}{f'-{order}' * (order != first)}": f"wr{ratio}{suffix}"
        for order, suffix in ORDERS.items()
        for ratio in ("0.5", "1")
    }
    require_the_papers_lists(mine, paper, names)
    assert (mine.header.name, mine.header.rule.protocol, mine.header.paper) == ("mylab/elephant", "wilderness", None)
    mine.save(tmp_path / "made")
    assert curation.verify(tmp_path / "made", sources=world, rebuild=True).verdict == "verified"


def test_levels_and_impact_are_those_of_the_papers_manifest(world: dict[str, Path], tmp_path: Path) -> None:
    """Levels go by id, whatever the first of the orders."""
    rng = random.Random(4)
    for name in ("voc2007-test", "coco"):
        annotations = json.loads(world[name].read_text())
        rows = [
            {"image_id": image["id"], "category_id": rng.randint(1, 3), "score": rng.random(), "bbox": [1, 1, 9, 9]}
            for image in annotations["images"]
            for _ in range(3)
        ]
        (tmp_path / f"{name}_results.json").write_text(json.dumps(rows))
    measures = []
    for manifest in (
        curation.build("elephant", sources=world, orders="hash"),
        extended(tmp_path, FILE.format("hash"), world),
    ):
        result = curation.evaluate.elephant(
            manifest=manifest,
            truth={"closed": world["voc2007-test"], "wilderness": world["coco"]},
            detections={"closed": tmp_path / "voc2007-test_results.json", "wilderness": tmp_path / "coco_results.json"},
            category_ids="manifest",
        )
        rows = result.table("impact").to_dict("records")
        measures.append([row for row in rows if not row["ratio"].startswith("wr")])
        assert result.data["wilderness_order"] == "ascending image id"
    assert measures[0] == measures[1]
    assert any(row["WI"] for row in measures[0])


def test_the_set_order_is_that_of_one_source_with_numbers(world: dict[str, Path], tmp_path: Path) -> None:
    """Several searched sources, or ids that are no numbers, have no set of integers."""
    more = FILE.format("cpython_set") + '[sources.yard]\ndataset = "yard"\n'
    with pytest.raises(CurationError, match="one searched source"):
        extended(tmp_path, more, {**world, "yard": world["coco"]})
    annotations = json.loads(world["coco"].read_text())
    for image in annotations["images"]:
        image["id"] = f"x{image['id']}"
    for each in annotations["annotations"]:
        each["image_id"] = f"x{each['image_id']}"
    (tmp_path / "text.json").write_text(json.dumps(annotations))
    text = FILE.format("cpython_set") + '[sources.coco]\ndataset = "mine"\n'
    with pytest.raises(CurationError, match="ids that are numbers"):
        extended(tmp_path, text, {**world, "coco": tmp_path / "text.json"})


@real_files("coco")
def check_the_case_val2017_gives_the_lists_of_the_packaged_manifest(shared: Path, tmp_path: Path) -> None:
    sources = {
        "voc2007-test": shared / "data/voc2007/test_with_difficult.json",
        "coco": shared / "data/coco/instances_val2017_rebuilt.json",
    }
    mine = extended(tmp_path, 'extends = "elephant/val2017"\nname = "mylab/elephant"\n', sources)
    paper = curation.load("elephant/val2017")
    require_the_papers_lists(mine, paper, {"wr0.1": "wr0.1-hash"})
