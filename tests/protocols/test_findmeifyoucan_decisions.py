"""Decisions as a parameter: one form for any order and repeats, and hostile texts refused."""

import json
import random
from pathlib import Path

import pytest

from curation.benchmarks.findmeifyoucan.pairs import (
    BDD,
    VOC,
    decisions_of,
    disregarded,
    is_pinned_only,
    read_recorded,
    unmatched_datasets,
)
from curation.cli import main
from curation.decisions.files import write_decisions
from curation.decisions.resolution import recorded_digest, recorded_form
from curation.errors import CurationError, DecisionConflictError, DecisionError, ProtocolError
from tests.protocols.findmeifyoucan_world import decided

DECISIONS = [
    *decided("coco", "manual", "remove", 7, 3, reason="person"),
    *decided("coco", "manual", "remove", 3, reason="car"),
    *decided("coco-far", "manual", "to_near", 9),
    *decided("openimages", "candidate", "add_far", "00ab"),
]


def test_order_and_repeats_change_nothing_and_reasons_stay_apart() -> None:
    text = recorded_form(DECISIONS)
    shuffled = [*DECISIONS, *DECISIONS]
    random.Random(3).shuffle(shuffled)
    assert recorded_form(shuffled) == text
    assert read_recorded(text) == text
    assert json.loads(text)[0] == ["coco", "manual", "remove", "car", ["coco:000000000003"]]
    assert sorted(map(str, decisions_of(text, VOC.pools[0]))) == sorted(map(str, DECISIONS[:4]))


def test_a_pool_with_reasons_hears_its_removals_alone() -> None:
    heard = decisions_of(recorded_form(DECISIONS), BDD.pools[0])
    assert {(one.image_id, one.reason) for one in heard} == {
        ("coco:000000000003", "person"),
        ("coco:000000000007", "person"),
    }
    assert disregarded(recorded_form(DECISIONS), BDD.pools[0]) == 1
    assert disregarded(recorded_form(DECISIONS), VOC.pools[0]) == 0


def test_a_file_that_is_cut_off_or_contradicts_itself_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    near, far = decided("coco", "manual", "to_near", 9), decided("coco", "manual", "to_far", 9)
    log, whole = tmp_path / "log.jsonl", tmp_path / "whole.jsonl"
    write_decisions(log, near)
    log.write_bytes(log.read_bytes() + b'{"image_id": "coc')
    with pytest.raises(DecisionError, match="cut off") as caught:
        read_recorded(str(log))
    assert "curation review summary log.jsonl --rule error --out" in str(caught.value.hint)
    assert main(["review", "summary", str(log), "--rule", "error", "--out", str(whole)]) == 0
    assert read_recorded(str(whole)) == recorded_form(near)
    both = tmp_path / "both.jsonl"
    write_decisions(both, [*near, *far])
    with pytest.raises(DecisionConflictError) as refused:
        read_recorded(str(both))
    assert "--rule majority --out" in str(refused.value.hint)


def test_what_no_pool_hears_is_counted() -> None:
    text = recorded_form(DECISIONS)
    assert unmatched_datasets(text, VOC.pools) == {}
    assert unmatched_datasets(text, VOC.pools[:1]) == {"openimages": 1}
    assert unmatched_datasets("", VOC.pools) == {}


def test_a_digest_stands_for_decisions_that_are_not_at_hand() -> None:
    pinned = recorded_digest(recorded_form(DECISIONS))
    assert pinned is not None
    assert is_pinned_only(pinned)
    assert read_recorded(pinned) == recorded_digest(pinned) == pinned
    assert decisions_of(pinned, VOC.pools[0]) == ()
    assert recorded_digest("") is None
    assert not is_pinned_only("")


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[1]",
        '[["coco"]]',
        '[["coco","manual","explode","",["coco:000000000001"]]]',
        '[["coco","manual","remove","",[1]]]',
        '[["coco","manual","remove",NaN,[]]]',
        "[" * 100_000,
    ],
    ids=range(7),
)
def test_what_is_no_recorded_form_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="not in the form"):
        read_recorded(text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CurationError):
        read_recorded(str(tmp_path / "nowhere.jsonl"))
