"""``curation propose`` as a user runs it: what is printed, what is written, what is refused."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from curation.cli import main
from curation.proposals.files import read_proposals

CATEGORIES = ("zebra", "couch", "laptop", "dog")


def coco(path: Path, images: Mapping[int, Sequence[str]]) -> Path:
    annotations = [(image, name) for image, names in images.items() for name in names]
    path.write_text(
        json.dumps(
            {
                "images": [
                    {"id": image, "file_name": f"{image:012d}.jpg", "width": 64, "height": 48}
                    for image in images
                ],
                "annotations": [
                    {
                        "id": number,
                        "image_id": image,
                        "category_id": CATEGORIES.index(name) + 1,
                        "bbox": [1, 1, 5, 5],
                        "area": 25,
                        "iscrowd": 0,
                    }
                    for number, (image, name) in enumerate(annotations, 1)
                ],
                "categories": [{"id": place, "name": name} for place, name in enumerate(CATEGORIES, 1)],
            }
        ),
        encoding="utf-8",
    )
    return path


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """ID classes and an OOD source of four images."""
    (tmp_path / "id.txt").write_text("horse\nsofa\n")
    coco(tmp_path / "ood.json", {1: ["zebra"], 2: ["couch"], 3: ["laptop"], 4: []})
    return tmp_path


def arguments(world: Path, *more: str) -> list[str]:
    given = [
        "propose",
        "--id-classes",
        str(world / "id.txt"),
        "--ood",
        f"coco={world / 'ood.json'}",
        "--no-cache",
    ]
    return [*given, *more]


def test_proposals_are_printed_and_written(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(world, "--out", str(world / "p.jsonl"))) == 0
    printed = capsys.readouterr().out
    assert "a proposal, not a decision" in printed
    assert "1 remove, 1 near, 1 far, 0 farther, 1 undecided" in printed
    made = read_proposals(world / "p.jsonl")
    assert [one.image_id for one in made.proposals][:1] == ["coco:000000000002"]
    assert made.digest in printed


def test_json_holds_header_counts_and_digest_and_no_path(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(world, "--json", "--set", "near_wup=0.95")) == 0
    text = capsys.readouterr().out
    data = json.loads(text)
    assert data["counts"]["near"] == 0
    assert data["thresholds"]["near_wup"] == "0.95"
    assert data["note"].startswith("a proposal, not a decision")
    assert {one["use"] for one in data["inputs"]} == {"id_classes", "ood coco"}
    assert str(world) not in text


def test_two_runs_write_the_same_bytes(world: Path) -> None:
    for name in ("a", "b"):
        main(arguments(world, "--out", str(world / name)))
    assert (world / "a").read_bytes() == (world / "b").read_bytes()


def test_a_detector_adds_its_evidence(world: Path) -> None:
    rows = [{"image_id": 3, "category_id": 7, "score": 0.9, "bbox": [0, 0, 1, 1]}]
    (world / "dets.json").write_text(json.dumps(rows))
    (world / "train.json").write_text('{"categories": [{"id": 7, "name": "horse"}]}')
    more = ("--detections", str(world / "dets.json"), "--detector-categories", str(world / "train.json"))
    assert main(arguments(world, *more, "--out", str(world / "p.jsonl"))) == 0
    found = {one.image_id[-1]: one for one in read_proposals(world / "p.jsonl").proposals}
    assert (found["3"].proposal, found["3"].reason) == ("undecided", "suspected: horse")
    assert main(arguments(world, *more, "--set", "agreeing=1", "--out", str(world / "q.jsonl"))) == 0
    found = {one.image_id[-1]: one for one in read_proposals(world / "q.jsonl").proposals}
    assert (found["3"].proposal, found["3"].reason) == ("remove", "remove: suspected horse")


def test_a_manifest_gives_the_classes(shared: Path, world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = shared / "data/coco/mini/annotations/instances_val2017.json"
    manifest = min(Path("manifests/elephant").rglob("manifest.json")).parent
    given = ["propose", "--manifest", str(manifest), "--ood", f"coco-val2017={source}", "--json"]
    assert main([*given, "--no-cache"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["inputs"][0]["use"] == "manifest"
    assert sum(data["counts"].values()) == 79


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "near=1"), "no such threshold"),
        (("--set", "near_wup"), "NAME=VALUE"),
        (("--near-classes", "coco=unicorn"), "no category"),
        (("--near-classes", "voc=zebra"), "no such OOD source"),
        (("--synset-map", "voc=x.csv"), "synset map"),
        (("--synset-map", "id=absent.csv"), "does not exist"),
        (("--detections", "absent.json"), "category_id"),
        (("--embeddings-id", "absent"), "not embedded"),
        (("--embeddings-ood", "absent"), "nothing to compare"),
        (("--texts", "absent"), "not embedded"),
        (("--tree", "coco=absent.json"), "does not exist"),
        (("--compare", "absent.jsonl"), "does not exist"),
        (("--ood", "coco=again.json"), "twice"),
        (("--ood", "id=again.json"), "may not name"),
    ],
)
def test_wrong_use_is_told_and_nothing_is_written(
    world: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    assert main(arguments(world, *more, "--out", str(world / "p.jsonl"))) == 2
    assert said in capsys.readouterr().err
    assert not (world / "p.jsonl").exists()
