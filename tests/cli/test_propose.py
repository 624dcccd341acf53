"""``curation review propose`` as a user runs it: what is printed, what is written, what is refused."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from curation.review.proposals.proposal import read_proposals
from tests.shell import Shell
from tests.worlds.coco_file import coco_content, write_json

CATEGORIES = ("zebra", "couch", "laptop", "dog")


def coco(path: Path, images: Mapping[int, Sequence[str]]) -> Path:
    rows = [(image, name, [1, 1, 5, 5]) for image, names in images.items() for name in names]
    write_json(path, coco_content(images.keys(), rows, CATEGORIES, size=(64, 48)))
    return path


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """ID classes and an OOD source of four images."""
    (tmp_path / "id.txt").write_text("horse\nsofa\n")
    coco(tmp_path / "ood.json", {1: ["zebra"], 2: ["couch"], 3: ["laptop"], 4: []})
    return tmp_path


def arguments(world: Path, *more: str) -> list[str]:
    given = ["review", "propose", "--classes", str(world / "id.txt"), "--source", f"coco={world / 'ood.json'}"]
    return [*given, *more]


def test_proposals_are_printed_and_written(world: Path, shell: Shell) -> None:
    printed = shell.out(*arguments(world, "--out", str(world / "p.jsonl")))
    assert "a proposal, not a decision" in printed
    assert "1 remove, 1 near, 1 far, 1 undecided" in printed
    made = read_proposals(world / "p.jsonl")
    assert [one.image_id for one in made.proposals][:1] == ["coco:000000000002"]
    assert made.digest in printed


def test_json_holds_header_counts_and_digest_and_no_path(world: Path, shell: Shell) -> None:
    text = shell.out(*arguments(world, "--json", "--set", "near_wup=0.95"))
    data = json.loads(text)
    assert data["counts"]["near"] == 0
    assert data["thresholds"]["near_wup"] == "0.95"
    assert data["note"].startswith("a proposal, not a decision")
    assert {one["use"] for one in data["inputs"]} == {"id_classes", "ood coco"}
    assert str(world) not in text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "near=1"), "No such threshold"),
        (("--set", "near_wup"), "NAME=VALUE"),
        (("--near", "coco=unicorn"), "unknown category"),
        (("--near", "voc=zebra"), "No such OOD source"),
        (("--synset-map", "voc=x.csv"), "is gone"),
        (("--detections", "absent.json"), "category_id"),
        (("--embeddings", "id=absent"), "must both be embedded"),
        (("--embeddings", "absent"), "must both be embedded"),
        (("--source", "coco=again.json"), "twice"),
        (("--source", "id=again.json"), "may not name"),
    ],
)
def test_wrong_use_is_told_and_nothing_is_written(world: Path, shell: Shell, more: tuple[str, ...], said: str) -> None:
    assert said in shell.err(*arguments(world, *more, "--out", str(world / "p.jsonl")))
    assert not (world / "p.jsonl").exists()
