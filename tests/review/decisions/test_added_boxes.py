"""Boxes of reviewers: agreement by hand, what each rule takes, and a manifest that names them, from end to end."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.cli import main
from curation.core.errors import DecisionConflictError, DecisionError, DigestMismatchError, ManifestError, UsageError
from curation.evaluation.leaderboard_rows import rows_of
from curation.manifest.added_boxes import AddedBoxes, parse_added_boxes
from curation.manifest.manifest import Manifest, read_manifest, write_manifest
from curation.manifest.verify import verify_lists, verify_sources
from curation.publishing.formats.content import gather
from curation.review.decisions.added_boxes import matched_pairs, resolve_boxes
from curation.review.decisions.box_edits import Replay
from tests.review.decisions.box_logs import Scribe, state, write_log
from tests.task_world import UNKNOWN, TaskWorld, write_task_world

A, B, C = (f"coco:{number:012d}" for number in (2001, 2002, 2003))
SIZE = (240, 240)


def two_reviewers() -> list[Scribe]:
    """Return what two drew: two objects of both and one of ben on A; one, called differently, on B; anna alone on C."""
    anna, ben = Scribe("anna", SIZE), Scribe("ben", SIZE)
    anna.add(A, 1, "0 0 10 10")
    anna.add(A, 2, "100 100 20 20", "pizza")
    anna.add(B, 3, "50 50 10 10", "pizza")
    anna.add(C, 4, "7.5 8 9 10.125")
    anna.complete(A, B, C)
    ben.add(B, 1, "50 50 10 10", "truck")
    ben.add(A, 2, "100 100 20 16", "pizza")
    ben.add(A, 3, "0 0 10 5")
    ben.add(A, 4, "200 200 10 10")
    ben.complete(A, B)
    return [anna, ben]


def replayed(people: list[Scribe]) -> Replay:
    return Replay.of(row for one in people for row in one.rows)


def test_pairs_are_one_to_one_and_the_best_goes_first() -> None:
    one = [state("0 0 10 10"), state("2 0 10 10")]
    other = [state("1 0 10 10"), state("2 0 10 10")]
    assert matched_pairs(one, other) == [(1, 1), (0, 0)]
    assert matched_pairs([], other) == []


def boxes_of(overlay: AddedBoxes) -> dict[str, list[tuple[str, str, str]]]:
    return {
        one.image_id: [(" ".join(box.box), box.label, "+".join(box.reviewers)) for box in one.boxes]
        for one in overlay.images
    }


def test_each_rule_takes_what_it_says() -> None:
    replay = replayed(two_reviewers())
    with pytest.raises(DecisionConflictError, match="coco:000000002001"):
        resolve_boxes(replay)
    union = resolve_boxes(replay, "union")
    assert boxes_of(union.overlay) == {
        A: [
            ("0 0 10 10", "unknown", "anna+ben"),
            ("100 100 20 20", "pizza", "anna+ben"),
            ("200 200 10 10", "unknown", "ben"),
        ],
        B: [("50 50 10 10", "pizza", "anna+ben")],
        C: [("7.5 8 9 10.125", "unknown", "anna")],
    }
    assert union.overlay.exhaustive == {A, B, C}
    assert [(one.image_id, one.unmatched, one.relabelled) for one in union.conflicts] == [(A, 1, 0), (B, 0, 1)]


def test_the_order_of_drawing_and_of_reviewers_decides_nothing() -> None:
    people = two_reviewers()
    again = Replay.of([*people[1].rows, *people[0].rows])
    one, other = resolve_boxes(replayed(people), "union"), resolve_boxes(again, "union")
    assert one.overlay.data == other.overlay.data
    assert one.log == other.log


@pytest.fixture
def world(tmp_path: Path) -> TaskWorld:
    return write_task_world(tmp_path / "raw")


def applied(world: TaskWorld, folder: Path, *more: str, sources: bool = True, version: str = "2.0.0") -> Manifest:
    """Apply the boxes of both reviewers to the manifest by the command, and return the new version."""
    if not (folder / "base").exists():
        write_manifest(world.manifest, folder / "base")
    log = write_log(folder / "boxes.jsonl", two_reviewers())
    given = world.arguments() if sources else []
    words = [
        "review",
        "apply",
        str(folder / "base"),
        "--added-boxes",
        str(log),
        "--rule",
        "boxes=union",
        "--version",
        version,
    ]
    assert main([*words, *given, *more, "--out", str(folder / "new")]) == 0
    return read_manifest(folder / "new")


def test_apply_makes_an_overlay_that_the_header_names(world: TaskWorld, tmp_path: Path) -> None:
    made = applied(world, tmp_path)
    entry = made.header.overlay
    assert entry is not None
    assert made.added_boxes is not None
    assert (entry.images, entry.boxes, entry.unnamed, entry.exhaustive_images, entry.rule) == (3, 5, 3, 3, "union")
    assert (tmp_path / "new" / "overlay.jsonl").read_bytes() == made.added_boxes.data
    assert entry.sha256 == made.added_boxes.digest
    assert entry.log == resolve_boxes(replayed(two_reviewers()), "union").log
    assert made.header.decisions is None
    assert made.header.supersedes is not None
    assert made.lists == world.manifest.lists
    assert made.digest != world.manifest.digest
    # Absent is absent: the bytes of a manifest without boxes are what they were.
    assert b"overlay" not in (tmp_path / "base" / "manifest.json").read_bytes()
    assert all(one.outcome == "ok" for one in verify_lists(made))
    assert not [one for one in verify_sources(made, world.sources) if one.outcome == "failure"]


def test_counts_hold_with_the_boxes_and_not_without(world: TaskWorld, tmp_path: Path) -> None:
    made = applied(world, tmp_path)
    before = gather(world.manifest, ["t1-test"], world.sources)
    after = gather(made, ["t1-test"], world.sources)
    assert len(after.objects) == len(before.objects) + 5
    assert made.part("t1-test").boxes["unknown"] == int(
        before.objects.unknown.sum() + after.objects.unknown.sum()
    ) - int(before.objects.unknown.sum())
    assert made.part("t3-test").boxes["unknown"] == 3
    assert made.part("t1-train").boxes == world.manifest.part("t1-train").boxes
    boxes = {tuple(one) for one in after.objects.boxes.tolist()}
    assert (7.5, 8.0, 9.0, 10.125) in boxes
    # unknown is the number of classes still: an added box has the id that detections use.
    assert after.unknown_id == UNKNOWN


def test_an_absent_or_changed_file_is_a_clear_error(world: TaskWorld, tmp_path: Path) -> None:
    made = applied(world, tmp_path)
    path = tmp_path / "new" / "overlay.jsonl"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"7.5"', b'"8.5"'))
    with pytest.raises(DigestMismatchError, match="added boxes"):
        curation.load(tmp_path / "new")
    path.unlink()
    with pytest.raises(ManifestError, match="added boxes is missing"):
        curation.load(tmp_path / "new")
    bare = Manifest(made.header, made.lists)
    with pytest.raises(ManifestError, match="lacks the boxes"):
        gather(bare, ["t1-test"], world.sources)
    with pytest.raises(ManifestError, match="lacks the boxes"):
        write_manifest(bare, tmp_path / "bare")
    assert [one.outcome for one in verify_lists(bare) if one.check == "overlay"] == ["failure"]


def test_only_the_one_form_of_a_file_is_read(world: TaskWorld, tmp_path: Path) -> None:
    overlay = applied(world, tmp_path).added_boxes
    assert overlay is not None
    assert parse_added_boxes(overlay.data, where="f").images == overlay.images
    lines = overlay.data.split(b"\n")
    for wrong in (
        b"\n".join([lines[1], lines[0], *lines[2:]]),
        b"\n".join([lines[0], *lines]),
        overlay.data.replace(b'"boxes":', b'"boxes": '),
        overlay.data.replace(b'"7.5"', b'"7.50"'),
        overlay.data.replace(b'"7.5"', b'"-7.5"'),
        overlay.data.replace(b'"exhaustive":true', b'"exhaustive":1'),
        overlay.data.replace(b"coco:000000002001", b"../../../../passwd"),
        overlay.data[:-20],
        b"\xff\xfe" + overlay.data,
        b"[" * 100_000,
    ):
        with pytest.raises(ManifestError):
            parse_added_boxes(wrong, where="f")


def test_show_and_diff_and_verify_tell_it(world: TaskWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    applied(world, tmp_path)
    capsys.readouterr()
    assert main(["show", str(tmp_path / "new")]) == 0
    assert "of reviewers: 5 boxes on 3 images, 3 of them exhaustive (rule union)" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["diff", str(tmp_path / "base"), str(tmp_path / "new"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "major"
    changes = [one for one in told["changes"] if one["subject"] == "overlay"]
    assert changes == [
        {"step": "major", "subject": "overlay", "what": "none became 5 boxes on 3 images, 3 of them exhaustive"}
    ]
    assert main(["diff", str(tmp_path / "new"), str(tmp_path / "base")]) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "new"), *world.arguments(), "--all"]) == 0
    assert "overlay.jsonl" in capsys.readouterr().out


def test_an_export_holds_the_boxes_and_scores_are_the_same_from_raw_and_exported_truth(
    world: TaskWorld, tmp_path: Path
) -> None:
    made = applied(world, tmp_path)
    curation.export(made, "t1-test", "coco", tmp_path / "truth.json", sources={"val": world.val_json})
    exported = json.loads((tmp_path / "truth.json").read_bytes())
    added = [one for one in exported["annotations"] if one["bbox"] == [7.5, 8, 9, 10.125]]
    assert len(added) == 1
    names = {one["id"]: one["name"] for one in exported["categories"]}
    assert names[added[0]["category_id"]] == "unknown"
    found = detections(world, added=[(2003, [7.5, 8, 9, 10.125])])
    results = {
        name: curation.evaluate.owod(manifest=made, task="t1", truth=truth, detections=found)
        for name, truth in (("raw", world.val_json), ("exported", tmp_path / "truth.json"))
    }
    base = curation.evaluate.owod(manifest=world.manifest, task="t1", truth=world.val_json, detections=found)
    raw, again = results["raw"], results["exported"]
    assert raw["num_unknown_gt"] == again["num_unknown_gt"] == base["num_unknown_gt"] + 5
    assert raw["TP_u"] == again["TP_u"] == base["TP_u"] + 1
    assert raw["P_unknown"] > base["P_unknown"]
    assert "unknown precision holds on these alone" in raw.notes[0]
    inputs = raw.data["inputs"]["t1"]["truth"]["files"]
    assert [one["name"] for one in inputs] == ["instances_val2017.json", "overlay.jsonl"]
    assert made.added_boxes is not None
    assert raw.data["manifest"]["overlay"] == made.added_boxes.digest
    assert "overlay" not in base.data["manifest"]


def detections(world: TaskWorld, added: list[tuple[int, list[float]]] = []) -> list[dict[str, Any]]:  # noqa: B006
    """Return a detector's results: each object of the file, shifted and named by turns, and what it is to find."""
    truth = json.loads(world.val_json.read_bytes())
    rows = [
        {
            "image_id": one["image_id"],
            "category_id": one["category_id"] if place % 3 and one["category_id"] in (1, 5, 17) else -1,
            "bbox": [one["bbox"][0] + 1, *one["bbox"][1:]],
            "score": 1 - place / 1000,
        }
        for place, one in enumerate(truth["annotations"])
    ]
    return [*rows, *({"image_id": n, "category_id": -1, "bbox": box, "score": 0.5} for n, box in added)]


def test_exhaustive_images_alone_can_be_scored(world: TaskWorld, tmp_path: Path) -> None:
    made = applied(world, tmp_path)
    found = detections(world)
    given = {"task": "t1", "truth": world.val_json, "detections": found}
    some = curation.evaluate.owod(manifest=made, **given, exhaustive_only=True)
    assert some.data["inputs"]["t1"]["truth"]["images"] == 3
    # A leaderboard must not rank these beside numbers of the whole list.
    assert [row.part for row in rows_of(some)] == ["t1-test, exhaustive images"]
    # Without a manifest the file of the boxes says which images.
    classes = tmp_path / "tasks.json"
    rest = ["truck", "elephant", "pizza"]
    classes.write_text(json.dumps({"tasks": [{"name": "t1", "cur": ["airplane", "cat", "person"], "rest": rest}]}))
    same = curation.evaluate.owod(
        classes=classes, **given, overlay=tmp_path / "new" / "overlay.jsonl", exhaustive_only=True
    )
    assert {key: value for key, value in some.numbers().items() if value} == {
        key: value for key, value in same.numbers().items() if value
    }
    with pytest.raises(UsageError, match="every unknown object is boxed"):
        curation.evaluate.owod(manifest=world.manifest, **given, exhaustive_only=True)


def test_without_sources_counts_are_dropped_and_told(
    world: TaskWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = applied(world, tmp_path)
    assert made.part("t1-test").boxes
    shutil.rmtree(tmp_path / "base")
    (tmp_path / "new").rename(tmp_path / "base")
    again = applied(world, tmp_path, version="3.0.0", sources=False)
    assert again.part("t1-test").boxes == {}
    assert "give --source for each of their sources" in " ".join(capsys.readouterr().out.split())
    assert again.added_boxes == made.added_boxes


def test_decisions_and_boxes_together(world: TaskWorld, tmp_path: Path) -> None:
    decisions = tmp_path / "decisions.csv"
    decisions.write_text(f"image_id,dataset,stage,action,reviewer\n{C},t1-test,manual,remove,anna\n")
    made = applied(world, tmp_path, "--decisions", str(decisions))
    assert C not in made.ids("t1-test")
    assert C in made.ids("t2-test")
    assert made.header.decisions is not None
    assert made.header.overlay is not None
    # A later version by decisions alone keeps the boxes.
    words = ["review", "apply", str(tmp_path / "new"), "--decisions", str(decisions), "--version", "3.0.0"]
    assert main([*words, *world.arguments(), "--out", str(tmp_path / "later")]) == 0
    later = read_manifest(tmp_path / "later")
    assert later.header.overlay == made.header.overlay
    assert later.added_boxes == made.added_boxes


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Nothing to apply"),
        (["--added-boxes", "LOG"], "drew different boxes"),
        (["--added-boxes", "LOG", "--added-boxes", "LOG", "--rule", "boxes=union"], "named twice"),
        (["--added-boxes", "LOG", "--rule", "boxes=union", "--cleaned", "minus-remove"], "new version"),
        (["--added-boxes", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--added-boxes", "boxes.csv"], "JSON Lines"),
    ],
)
def test_wrong_use_is_one_error(
    world: TaskWorld, tmp_path: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_manifest(world.manifest, tmp_path / "base")
    log = write_log(tmp_path / "boxes.jsonl", two_reviewers())
    given = [str(log) if one == "LOG" else one for one in words]
    out = ["--version", "2.0.0", "--out", str(tmp_path / "new")]
    assert main(["review", "apply", str(tmp_path / "base"), *given, *out]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "new").exists()


def test_a_label_must_be_a_class_of_the_manifest(world: TaskWorld, tmp_path: Path) -> None:
    anna = Scribe("anna", SIZE)
    anna.add(A, 1, "0 0 10 10", "dragon")
    log = write_log(tmp_path / "boxes.jsonl", [anna])
    write_manifest(world.manifest, tmp_path / "base")
    from curation.review.decisions.from_files import apply_from_files

    with pytest.raises(DecisionError, match="dragon"):
        apply_from_files(str(tmp_path / "base"), boxes=(log,), version="2.0.0")
    elsewhere = Scribe("anna", SIZE)
    elsewhere.add("coco:000000009999", 1, "0 0 10 10")
    write_log(log, [elsewhere])
    with pytest.raises(DecisionError, match="No box is on an image"):
        apply_from_files(str(tmp_path / "base"), boxes=(log,), version="2.0.0")
