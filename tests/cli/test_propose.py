"""``curation review propose`` as a user runs it: what is printed, what is written, what is refused."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from curation.cli import main
from curation.review.proposals.proposal import read_proposals
from tests.review.proposals.embedding_world import stored
from tests.shell import Shell
from tests.small_world import write_small_world
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
    assert "1 remove, 1 near, 1 far, 0 farther, 1 undecided" in printed
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


def test_a_detector_adds_its_evidence(world: Path) -> None:
    rows = [{"image_id": 3, "category_id": 7, "score": 0.9, "bbox": [0, 0, 1, 1]}]
    (world / "dets.json").write_text(json.dumps(rows))
    (world / "train.json").write_text('{"categories": [{"id": 7, "name": "horse"}]}')
    more = ("--detections", str(world / "dets.json"), "--detections", f"categories={world / 'train.json'}")
    assert main(arguments(world, *more, "--out", str(world / "p.jsonl"))) == 0
    found = {one.image_id[-1]: one for one in read_proposals(world / "p.jsonl").proposals}
    assert (found["3"].proposal, found["3"].reason) == ("undecided", "suspected: horse")
    assert main(arguments(world, *more, "--set", "agreeing=1", "--out", str(world / "q.jsonl"))) == 0
    found = {one.image_id[-1]: one for one in read_proposals(world / "q.jsonl").proposals}
    assert (found["3"].proposal, found["3"].reason) == ("remove", "remove: suspected horse")


def test_stores_of_embeddings_and_prompts_add_their_evidence(world: Path) -> None:
    ood = {"coco:000000000001": [1.0, 0.1], "coco:000000000003": [0.0, 1.0], "coco:000000000004": [0.1, 1.0]}
    more = ["--embeddings", str(stored(world / "ood", ood))]
    id_store = stored(world / "id", {f"voc2007:{n}": [1.0, n / 10] for n in range(5)})
    more += ["--embeddings", f"id={id_store}"]
    more += ["--texts", str(stored(world / "texts", {"horse": [1.0, 0.0], "laptop": [0.0, 1.0]}))]
    assert main(arguments(world, *more, "--out", str(world / "p.jsonl"))) == 0
    made = read_proposals(world / "p.jsonl")
    found = {one.image_id[-1]: one for one in made.proposals}
    assert [one.kind for one in found["1"].evidence] == ["image_text", "image_image", "near_kinship"]
    assert found["1"].reason == "remove: suspected horse"
    assert found["3"].proposal == "far"
    assert {"embeddings id", "embeddings coco", "texts"} <= {one.use for one in made.inputs}
    assert made.left_out == {"coco: images without an embedding": 1}
    other = stored(world / "other", ood, model="another")
    assert main(arguments(world, *more[2:], "--embeddings", str(other), "--out", str(world / "q.jsonl"))) == 2
    assert not (world / "q.jsonl").exists()


def test_a_manifest_gives_the_classes(tmp_path: Path, world: Path, shell: Shell) -> None:
    source = write_small_world(tmp_path, n_closed=3, n_wilderness=12).coco_json
    manifest = min(Path("manifests/elephant").rglob("manifest.json")).parent
    given = ["review", "propose", "--manifest", str(manifest), "--source", f"coco-val2017={source}", "--json"]
    data = shell.data(*given)
    assert data["inputs"][0]["use"] == "manifest"
    assert sum(data["counts"].values()) == len(json.loads(source.read_text())["images"])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "near=1"), "No such threshold"),
        (("--set", "near_wup"), "NAME=VALUE"),
        (("--near", "coco=unicorn"), "unknown category"),
        (("--near", "voc=zebra"), "No such OOD source"),
        (("--synset-map", "voc=x.csv"), "synset map"),
        (("--synset-map", "id=absent.csv"), "does not exist"),
        (("--detections", "absent.json"), "category_id"),
        (("--embeddings", "id=absent"), "not embedded"),
        (("--embeddings", "absent"), "nothing to compare"),
        (("--texts", "absent"), "not embedded"),
        (("--source", "coco=again.json"), "twice"),
        (("--source", "id=again.json"), "may not name"),
    ],
)
def test_wrong_use_is_told_and_nothing_is_written(world: Path, shell: Shell, more: tuple[str, ...], said: str) -> None:
    assert said in shell.err(*arguments(world, *more, "--out", str(world / "p.jsonl")))
    assert not (world / "p.jsonl").exists()
