"""One verdict: what is well formed, and what is refused with its field."""

import msgspec
import pytest

from curation.core.errors import DecisionError
from curation.review.decisions.decision import Decision, check_decision

GOOD = Decision(
    image_id="coco:000000000009",
    dataset="coco",
    stage="manual",
    action="remove",
    reason="Bäume / trees",
    reviewer="Anna B.",
    date="2025-03-01T14:05:00.123456Z",
    manifest="sha256:" + "0" * 64,
    batch="1",
)


def test_a_whole_row_and_a_bare_one_are_well_formed() -> None:
    check_decision(GOOD, where="here")
    check_decision(Decision(image_id="a:b", dataset="", stage="candidate", action="reject"), where="here")


@pytest.mark.parametrize(
    "changes",
    [
        {"image_id": "9"},
        {"image_id": "coco:a\x1b[2J"},
        {"image_id": "coco:" + "9" * 300},
        {"dataset": "COCO"},
        {"dataset": "../x"},
        {"action": "explode"},
        {"action": "add_near"},
        {"stage": "auto_override", "action": "to_far"},
        {"stage": "candidate", "action": "remove"},
        {"stage": "elsewhere"},
        {"reason": "two\nlines"},
        {"reason": "\x1b]0;title\x07"},
        {"reason": "x" * 1001},
        {"batch": "\0"},
        {"reviewer": "x" * 101},
        {"manifest": "abc"},
        {"date": "yesterday"},
        {"date": "2025-02-30"},
        {"date": "2025-03-01T14:05:00"[:-3] + "+02:00"},
        {"date": "2025-03-01T25:00:00Z"},
        {"date": "٢٠٢٥-03-01"},
    ],
    ids=str,
)
def test_a_malformed_field_is_named(changes: dict[str, str]) -> None:
    decision = msgspec.structs.replace(GOOD, **changes)
    with pytest.raises(DecisionError) as caught:
        check_decision(decision, where="f.jsonl, line 3")
    field = next(iter(changes)) if changes.keys() != {"stage"} else "action"
    assert caught.value.where is not None
    assert caught.value.where.startswith("f.jsonl, line 3: ")
    assert field in ("stage", *caught.value.where.split())
    assert str(caught.value).isprintable() or "\x1b" not in str(caught.value)


@pytest.mark.parametrize("name", ["anna, ben", "anna;ben", "anna & ben", "anna and ben", "anna/ben", "a|b", "a+b"])
def test_two_reviewers_on_one_line_are_refused(name: str) -> None:
    with pytest.raises(DecisionError, match="more than one reviewer"):
        check_decision(msgspec.structs.replace(GOOD, reviewer=name), where="here")
