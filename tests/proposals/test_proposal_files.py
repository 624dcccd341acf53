import json
from pathlib import Path

import pytest

from curation.errors import MissingFileError, ProposalError
from curation.proposals.proposal import (
    NOTE,
    Evidence,
    Input,
    Proposal,
    ProposalSet,
    SetProposal,
    read_proposals,
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
    sets=(SetProposal(name="coco far", group="far", proposal="undecided", reason="alone", images=0),),
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


def test_the_digest_changes_with_any_proposal(tmp_path: Path) -> None:
    shorter = ProposalSet(
        id_classes=MADE.id_classes,
        thresholds=MADE.thresholds,
        inputs=MADE.inputs,
        proposals=MADE.proposals[:2],
        sets=MADE.sets,
    )
    assert shorter.digest != MADE.digest
    assert MADE.counts() == {"remove": 3, "near": 0, "far": 0, "farther": 0, "undecided": 0}


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
        ('"version":1', '"version":2'),
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


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\n")
    with pytest.raises(ProposalError):
        read_proposals(tmp_path / "x")
    with pytest.raises(MissingFileError):
        read_proposals(tmp_path / "absent")


def test_a_header_with_a_key_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_proposals(path, MADE)
    path.write_bytes(path.read_bytes().replace(b'"note":', b'"n\xf3te":', 1))
    with pytest.raises(ProposalError, match="header"):
        read_proposals(path)
