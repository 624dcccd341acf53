"""The folder of a review, read without a database: adjudication, gold, notes of the manifest."""

from pathlib import Path

import msgspec
import pytest

from curation.core.errors import CurationError
from curation.manifest.header import ClassEntry
from curation.manifest.manifest import write_manifest
from curation.publishing.member import decisions_behind
from curation.review.decisions.decision import Decision
from curation.review.decisions.files import json_lines, read_decisions
from curation.review.decisions.from_files import apply_from_files, report_decisions
from curation.review.decisions.guide import Guide
from curation.review.decisions.resolution import resolve, settled
from curation.review.decisions.review_folder import (
    GOLD_FILE,
    LOG_FILE,
    ReviewRecord,
    export_decisions,
    folder_progress,
    read_record,
    write_record,
)
from curation.review.decisions.sampling import Stratum
from curation.review.decisions.verdicts import VerdictBook
from tests.worlds.listed_manifest import manifest_of_lists

IMAGES = [f"coco:{number:012d}" for number in range(6)]
KEYS = [(("far", image), "0001") for image in IMAGES]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six images of which anna and ben differ on two, and cleo has settled one."""
    path = tmp_path / "review"
    record = ReviewRecord(
        dataset="d",
        stage="manual",
        manifest="",
        inputs="",
        batches={"0001": 6},
        guide=Guide(question="Is it a horse?", near="a", far="b", remove="c"),
        blind=True,
        adjudicators=("cleo",),
        sample=(Stratum(name="all", images=100, drawn=tuple(IMAGES)),),
        classes={"horse": (IMAGES[4], IMAGES[5])},
    )
    write_record(path, record)
    book = VerdictBook(path / LOG_FILE, stage="manual")
    book.record(KEYS, "keep", reason="", reviewer="anna")
    book.record(KEYS[:4], "keep", reason="", reviewer="ben")
    book.record(KEYS[4:], "remove", reason="mirror image", reviewer="ben")
    book.record(KEYS[4:5], "remove", reason="seen", reviewer="cleo")
    gold = [Decision(image_id=IMAGES[5], dataset="far", stage="manual", action="remove")]
    (path / GOLD_FILE).write_bytes(json_lines(gold))
    return path


def test_an_adjudicator_settles_and_is_no_rater(folder: Path) -> None:
    report = report_decisions((folder,))
    (stage,) = report.agreement
    assert [(pair.first, pair.second, pair.images, pair.same) for pair in stage.pairs] == [("anna", "ben", 6, 4)]
    settled_one, open_one = report.resolution.conflicts
    assert (settled_one.image_id, settled_one.outcome) == (IMAGES[4], "remove")
    assert report.resolution.both == (open_one,)
    assert open_one.text() == f"{IMAGES[5]} (far, manual): keep by anna; remove by ben (mirror image)"
    assert [(one.reviewer, one.same) for one in report.accuracy] == [("anna", 0), ("ben", 1)]
    _, progress = folder_progress(folder)
    assert progress.verdicts == {"keep": 4, "remove": 1, "conflict": 1}


def test_an_export_applies_once_all_conflicts_are_settled(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CurationError, match="contradict each other on 1 image"):
        resolve(read_decisions(_exported(folder, tmp_path / "open.jsonl")).decisions)
    VerdictBook(folder / LOG_FILE, stage="manual").record(KEYS[5:], "keep", reason="", reviewer="cleo")
    rows = read_decisions(_exported(folder, tmp_path / "settled.jsonl")).decisions
    assert {(row.image_id, row.action) for row in rows if row.image_id in IMAGES[4:]} == {
        (IMAGES[4], "remove"),
        (IMAGES[5], "keep"),
    }
    assert resolve(rows).conflicts == ()


def _exported(folder: Path, path: Path) -> Path:
    return export_decisions(folder, path).path


def test_a_manifest_says_who_judged_what_was_asked_and_what_remains(folder: Path, tmp_path: Path) -> None:
    VerdictBook(folder / LOG_FILE, stage="manual").record(KEYS[5:], "keep", reason="", reviewer="cleo")
    classes = (ClassEntry(name="horse", role="known", index=0),)
    base = manifest_of_lists({"far": IMAGES}, name="pair", source="coco", namespace="coco", classes=classes)
    write_manifest(base, tmp_path / "m")
    applied = apply_from_files(str(tmp_path / "m"), decisions=(folder,), version="1.1.0")
    assert applied.manifest.lists["far"] == (*IMAGES[:4], IMAGES[5])
    question, reviewers, kappa, left = applied.manifest.header.notes[-4:]
    assert question == "Question to the reviewers: Is it a horse?"
    assert reviewers == (
        "Reviewers: anna (6 images), ben (6 images), each without the decisions of others; conflicts settled by cleo."
    )
    assert kappa == "Agreement at stage manual: Cohen's kappa 0.000 on 6 images."
    assert left.startswith("6 of 100 images were drawn by hash rank and judged; 1 of them are in-distribution")
    # The exported file is what is behind the digest, and alone adds no note.
    rows = read_decisions(_exported(folder, tmp_path / "x.jsonl")).decisions
    assert decisions_behind(applied.manifest, rows)
    plain = apply_from_files(str(tmp_path / "m"), decisions=(tmp_path / "x.jsonl",), version="1.1.0")
    assert plain.manifest.header.decisions == applied.manifest.header.decisions
    assert len(plain.manifest.header.notes) == len(base.header.notes) + 1


def test_unsure_settles_nothing() -> None:
    fields = {"image_id": IMAGES[0], "dataset": "far", "stage": "manual"}
    rows = [
        Decision(**fields, action=action, reviewer=name)  # type: ignore[arg-type]
        for name, action in (("anna", "keep"), ("ben", "remove"), ("cleo", "unsure"))
    ]
    assert settled(rows, ["cleo"]) == rows
    assert len(settled([*rows[:2], replace_action(rows[2], "keep")], ["cleo"])) == 2


def replace_action(row: Decision, action: str) -> Decision:
    return msgspec.structs.replace(row, action=action)


def test_a_record_of_an_earlier_version_is_read(folder: Path) -> None:
    (folder / "review.json").write_text(
        '{"version": 2, "dataset": "d", "stage": "manual", "manifest": "", "inputs": "", "batches": {"0001": 6}}'
    )
    record = read_record(folder)
    assert (record.guide, record.hides_verdicts, record.sample) == (None, False, ())


def test_time_left_is_the_median_of_single_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = VerdictBook(tmp_path / LOG_FILE, stage="manual")
    moments = iter(["00", "04", "10", "14"])
    monkeypatch.setattr("curation.review.decisions.verdicts.now", lambda: f"2025-03-01T10:00:{next(moments)}.000000Z")
    for count, key in enumerate(KEYS[:3]):
        assert book.seconds_each("anna") is None, count
        book.record([key], "keep", reason="", reviewer="anna")
    assert book.seconds_each("anna") == 5
    # A decision on several images at once is no single one.
    book.record(KEYS[3:], "keep", reason="", reviewer="anna")
    assert book.seconds_each("anna") == 5
    assert book.seconds_each("ben") is None
    assert [row.image_id for row in book.latest("anna", 10)][3:] == [IMAGES[2], IMAGES[1], IMAGES[0]]
