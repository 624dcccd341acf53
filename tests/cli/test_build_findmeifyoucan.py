"""FindMeIfYouCan on the command line: build, complete, verify, export."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from curation.sources.datasets import COCO_CATEGORIES
from tests.shell import Shell
from tests.worlds.coco_file import coco_content, write_json

NUMBERS = {name: number for number, name, _ in COCO_CATEGORIES}
VAL = {1: ["kite"], 2: ["zebra"], 3: ["person"], 4: [], 5: ["pizza"]}
TRAIN = {101: ["kite"], 102: ["kite", "person"]}


def instances(path: Path, shown: dict[int, list[str]]) -> Path:
    rows = [(image, name, [1, 1, 2, 2]) for image, names in shown.items() for name in names]
    write_json(path, coco_content(shown.keys(), rows, NUMBERS, size=(9, 9)))
    return path


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "start.txt").write_text("1\n2\n4\n5\n")
    rows = [
        {"dataset": "coco", "image_id": f"coco:{image:012d}", "stage": stage, "action": action, "reason": ""}
        for image, stage, action in ((4, "manual", "remove"), (101, "candidate", "add_far"))
    ]
    (tmp_path / "decisions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return {
        "sources": [
            f"--source=coco-val2017={instances(tmp_path / 'val.json', VAL)}",
            f"--source=coco-train2017={instances(tmp_path / 'train.json', TRAIN)}",
        ],
        "list": f"--source=vos-coco-voc={tmp_path / 'start.txt'}",
        "decisions": f"--decisions={tmp_path / 'decisions.jsonl'}",
    }


def test_build_verify_and_export(given: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "m"
    sources = [*given["sources"], given["list"]]
    assert (
        main(["build", "findmeifyoucan", *sources, given["decisions"], "--set", "pools=coco", "--out", str(out)]) == 0
    )
    manifest = read_manifest(out)
    assert manifest.header.origin == "reviewed"
    assert manifest.ids("coco-near") == ("coco:000000000002",)
    assert manifest.ids("coco-far") == ("coco:000000000001", "coco:000000000101")
    assert main(["verify", str(out), *sources, "--rebuild", "--strict"]) == 0
    files = tmp_path / "files"
    assert main(["export", str(out), "--format", "findmeifyoucan", *sources, "--out", str(files)]) == 0
    far = json.loads((files / "far_coco_wrt_voc.json").read_text())
    assert [one["id"] for one in far["images"]] == [1, 101]
    assert {path.name for path in files.iterdir()} == {
        "_export.json",
        *(f"{one}_coco_wrt_voc.{suffix}" for one in ("near", "far") for suffix in ("json", "txt")),
    }


CONTRADICTORY = [
    (1, "manual", "to_near"),
    (1, "manual", "to_far"),
    (5, "manual", "to_near"),
    (101, "candidate", "add_near"),
    (101, "candidate", "add_far"),
]


def test_contradictory_verdicts_are_refused_or_replayed_and_told_in_every_format(
    given: dict[str, Any], tmp_path: Path, shell: Shell
) -> None:
    log, resolved = tmp_path / "log.jsonl", tmp_path / "resolved.jsonl"
    rows = [
        {"dataset": "coco", "image_id": f"coco:{image:012d}", "stage": stage, "action": action}
        for image, stage, action in CONTRADICTORY
    ]
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "selection.json").write_text(
        json.dumps({
            "UNFILTERED_IMAGES_TO_NEAR": {"coco": [1, 5]}, "UNFILTERED_IMAGES_TO_FAR": {"coco": [1]},
            "FROM_CANDIDATES": {"coco": [101], "coco_near": [101]},
        })
    )  # fmt: skip
    assert main(["review", "summary", str(log), "--on-error", "conflicts=keep", "--out", str(resolved)]) == 0
    build = ["build", "findmeifyoucan", *given["sources"], given["list"], "--set", "pools=coco"]
    assert "--on-error", "conflicts=keep" in " ".join(
        shell.err(*build, "--decisions", resolved, "--out", tmp_path / "x").split()
    )
    built = []
    keep = ["--on-error", "conflicts=keep"]
    for name, more in (("resolved.jsonl", keep), ("log.jsonl", keep), ("selection.json", [])):
        out = tmp_path / f"m-{name}"
        told = " ".join(shell.err(*build, "--decisions", tmp_path / name, *more, "--out", out, status=0).split())
        assert "warning: decisions contradict each other on 2 images, and all are replayed" in told
        assert "coco:000000000001 (coco, manual): to_far and to_near" in told
        built.append(read_manifest(out))
        assert any("contradict each other on 2 images" in note for note in built[-1].header.notes)
        assert main(["verify", str(out), *given["sources"], given["list"], "--rebuild"]) == 0
    assert len({one.digest for one in built}) == 1
    # By hand: pizza is removed by category, zebra near. 1 goes to near and back to far; 5 is in neither; 101 in both.
    assert built[0].ids("coco-near") == ("coco:000000000002", "coco:000000000101")
    assert built[0].ids("coco-far") == ("coco:000000000001", "coco:000000000004", "coco:000000000101")


def test_allowing_conflicts_needs_decisions(given: dict[str, Any], tmp_path: Path) -> None:
    build = ["build", "findmeifyoucan", *given["sources"], given["list"], "--on-error", "conflicts=keep"]
    assert main([*build, "--out", str(tmp_path / "x")]) == 2


def test_a_declared_manifest_takes_the_decisions_and_refuses_other_figures(
    given: dict[str, Any], tmp_path: Path, shell: Shell
) -> None:
    declared = tmp_path / "declared"
    assert main(["build", "findmeifyoucan", "--header-only", *given["sources"], "--out", str(declared)]) == 0
    command = ["build", str(declared), *given["sources"], given["list"], given["decisions"], "--json"]
    missed = {one["figure"] for one in shell.data(*command, "--out", tmp_path / "x", status=1)["missed"]}
    assert {"decisions", "coco-start.images", "coco-near.images"} <= missed
    assert not (tmp_path / "x").exists()


def test_other_protocols_take_no_decisions(given: dict[str, Any], tmp_path: Path) -> None:
    for words in (["owod"], ["findmeifyoucan", "--set", "decisions=[]"]):
        assert main(["build", *words, given["decisions"], "--out", str(tmp_path / "x")]) == 2
