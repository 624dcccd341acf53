"""Proposals as files, and their thresholds."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import ProposalError, UsageError
from curation.review.proposals.proposal import (
    NOTE,
    Evidence,
    Input,
    Proposal,
    ProposalSet,
    decimal_text,
    read_proposals,
    thresholds_from,
    write_proposals,
)

MADE = ProposalSet(
    id_classes=("dog", "naïve ☃"),
    thresholds={"near_wup": "0.82"},
    inputs=(Input(use="ood coco", name="a.json", sha256="sha256:0"),),
    proposals=tuple(
        Proposal(
            image_id=f"coco:{row:012d}",
            proposal="remove",
            reason="remove: dog",
            evidence=(Evidence(kind="label_name", detail="dog is dog", score="1.0000", id_class="dog"),),
            rank=row,
            pool="coco",
        )
        for row in (1, 2, 3)
    ),
)


def test_what_is_written_is_read_and_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write_proposals(tmp_path / name, MADE)
    assert read_proposals(tmp_path / "a.jsonl") == MADE
    assert read_proposals(tmp_path / "a.jsonl").digest == MADE.digest
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_every_file_says_that_it_holds_no_decisions(tmp_path: Path) -> None:
    write_proposals(tmp_path / "a.jsonl", MADE)
    head = json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert head["note"] == NOTE
    assert "a proposal, not a decision" in NOTE
    assert (head["format"], head["count"]) == ("curation-proposals", 3)


def test_a_file_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_proposals(path, MADE)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ProposalError):
            read_proposals(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version":2', '"version":1'),
        ('"rank":2', '"rank":3'),
        ('"image_id":"coco:000000000002"', '"image_id":"coco:000000000001"'),
        ('"image_id":"coco:000000000002"', '"image_id":"000000000002"'),
        ('"image_id":"coco:000000000002"', '"image_id":"../x"'),
        ('"proposal":"remove","rank":2', '"proposal":"true","rank":2'),
        ('"kind":"label_name"', '"kind":"hearsay"'),
        ('"rank":3', '"rank":3,"more":1'),
        ('"near_wup":"0.82"', '"near_wup":0.82'),
        ('"count":3', '"count":4'),
    ],
)
def test_a_changed_file_is_refused_by_line(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "a.jsonl"
    write_proposals(path, MADE)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ProposalError) as caught:
        read_proposals(path)
    assert "a.jsonl" in str(caught.value)


def test_what_is_set_comes_back_as_it_was_written() -> None:
    texts = thresholds_from({"near_wup": "0.900", "agreeing": "3", "look_sigma": "-0.25"}).as_texts()
    assert (texts["near_wup"], texts["agreeing"], texts["look_sigma"]) == ("0.900", "3", "-0.25")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("near_wup", "1.01"),
        ("near_wup", "-0.1"),
        ("near_wup", "nan"),
        ("near_wup", "inf"),
        ("near_wup", "near"),
        ("near_wup", ""),
        ("near_wup", "0." + "1" * 60),
        ("agreeing", "1.5"),
        ("agreeing", "0"),
        ("standard_errors", "1e9"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=name):
        thresholds_from({name: text})


def test_an_unknown_threshold_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        thresholds_from({"nearwup": "0.8"})
    assert "near_wup" in str(caught.value)


@given(st.floats(-1, 1))
def test_a_printed_number_is_the_number_to_four_places(value: float) -> None:
    text = decimal_text(value)
    assert abs(Decimal(text) - Decimal(value)) <= Decimal("0.00005000001")
    assert text != "-0.0000"
