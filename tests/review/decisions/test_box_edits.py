"""The box log: what stands after its rows, what it refuses, and how pixels are made of shares."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import CurationError, DecisionError
from curation.review.decisions.box_edits import BoxLog, BoxRow, Replay, pixels, read_box_log, relative
from tests.review.decisions.box_logs import Scribe, state, write_log

A, B = "coco:000000000001", "coco:000000000002"


def test_edits_that_were_applied_stand_and_others_do_not() -> None:
    anna = Scribe("anna")
    anna.add(A, 1, "10 20 30 40")
    anna.edit(A, 1, state("10 20 30 40"), state("11 20 30 40"))
    anna.edit(A, 1, state("11 20 30 40"), state("11 20 30 40", "cat"))
    anna.add(A, 2, "1 1 5 5", outcome="refused")
    anna.add(A, 3, "1 1 5 5", outcome="unknown")
    anna.add(B, 4, "1 1 5 5", outcome=None)
    found = Replay.of(anna.rows)
    assert {key: list(boxes.values()) for key, boxes in found.boxes.items()} == {
        (A, "anna"): [state("11 20 30 40", "cat")]
    }
    assert [row.operation for row in anna.rows if row.row == "edit"] == ["add", "move", "relabel", "add", "add", "add"]
    assert (found.refused, found.unknown, len(found.pending)) == (1, 1, 1)
    assert found.next_number("anna") == 7
    assert found.next_number("ben") == 1


def test_a_later_edit_takes_the_declaration_back_and_only_that_of_its_reviewer() -> None:
    anna, ben = Scribe("anna"), Scribe("ben")
    anna.add(A, 1, "10 20 30 40")
    anna.complete(A, B)
    ben.complete(A)
    assert Replay.of([*anna.rows, *ben.rows]).complete == {(A, "anna"), (B, "anna"), (A, "ben")}
    anna.edit(A, 1, state("10 20 30 40"), None)
    anna.complete(B, row="reopen")
    found = Replay.of([*anna.rows, *ben.rows])
    assert found.complete == {(A, "ben")}
    assert found.boxes[A, "anna"] == {}
    assert found.reviewers_of(A) == ["anna", "ben"]


def test_rows_of_two_reviewers_with_the_same_numbers_stay_apart(tmp_path: Path) -> None:
    anna, ben = Scribe("anna"), Scribe("ben")
    anna.add(A, 1, "10 20 30 40", outcome=None)
    ben.add(A, 2, "10 20 30 40")
    rows = read_box_log(write_log(tmp_path / "boxes.jsonl", [anna, ben]))
    found = Replay.of(rows.rows)
    assert [one.reviewer for one in found.pending] == ["anna"]
    assert list(found.boxes) == [(A, "ben")]
    assert "have no outcome" in rows.notes()[0]


def test_a_line_that_a_kill_cut_off_is_left_out_and_told(tmp_path: Path) -> None:
    anna = Scribe("anna")
    anna.add(A, 1, "10 20 30 40")
    path = write_log(tmp_path / "boxes.jsonl", [anna])
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        found = read_box_log(path)
        assert len(found.rows) == sum(is_row(line) for line in whole[:cut].split(b"\n"))
    path.write_bytes(whole + b'{"row":"edit","nu')
    assert read_box_log(path).torn.startswith('{"row"')
    log = BoxLog(path)
    log.extend([msgspec.structs.replace(anna.rows[0], number=9)])
    assert path.read_bytes().startswith(whole + b'{"row":"edit","number":9')


def is_row(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=BoxRow)
    except msgspec.DecodeError:
        return False
    return True


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"box_id": "../../etc"}, "box_id"),
    ({"box_id": "0" * 23 + "G"}, "box_id"),
    ({"after": {"box": ["nan", "1", "2", "3"], "label": "unknown"}}, "decimal texts"),
    ({"after": {"box": ["1e3", "1", "2", "3"], "label": "unknown"}}, "decimal texts"),
    ({"after": {"box": ["-1", "1", "2", "3"], "label": "unknown"}}, "none below 0"),
    ({"after": {"box": ["1.50", "1", "2", "3"], "label": "unknown"}}, "decimal texts"),
    ({"after": {"box": ["1", "1", "0", "3"], "label": "unknown"}}, "a width and a height"),
    ({"after": {"box": ["600", "1", "41", "3"], "label": "unknown"}}, "inside the image"),
    ({"after": {"box": ["1", "1", "2", "480"], "label": "unknown"}}, "inside the image"),
    ({"after": {"box": [1, 2, 3, 4], "label": "unknown"}}, "Malformed row"),
    ({"after": {"box": ["1", "1", "2"], "label": "unknown"}}, "Malformed row"),
    ({"after": {"box": ["1", "1", "2", "3"], "label": "\x1b[31mred"}}, "label"),
    ({"after": {"box": ["1", "1", "2", "3"], "label": "x" * 201}}, "label"),
    ({"after": {"box": ["1", "1", "2", "3"], "label": ""}}, "label"),
    ({"after": None}, "operation"),
    ({"operation": "remove"}, "operation"),
    ({"size": [0, 480]}, "size"),
    ({"size": [10**9, 480]}, "size"),
    ({"size": [640]}, "Malformed row"),
    ({"image_id": "../x"}, "namespace"),
    ({"image_id": ""}, "image_id"),
    ({"reviewer": "anna and ben"}, "more than one reviewer"),
    ({"reviewer": ""}, "reviewer"),
    ({"date": "yesterday"}, "date"),
    ({"date": ""}, "date"),
    ({"number": 0}, "Malformed row"),
    ({"number": True}, "Malformed row"),
    ({"number": 2**53}, "Malformed row"),
    ({"row": "shell"}, "Malformed row"),
    ({"surprise": 1}, "Malformed row"),
    ({"row": "outcome"}, "outcome"),
]


@pytest.mark.parametrize(("change", "told"), HOSTILE, ids=lambda one: str(one)[:50])
def test_what_is_no_edit_is_refused_with_its_line(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    anna = Scribe("anna")
    fields = msgspec.to_builtins(anna.add(A, 1, "10 20 30 40")) | change
    path = tmp_path / "boxes.jsonl"
    path.write_bytes(msgspec.json.encode(fields) + b"\n")
    with pytest.raises(CurationError) as refused:
        read_box_log(path)
    assert "line 1" in str(refused.value)
    assert told in str(refused.value)


def test_a_new_box_has_a_class_of_the_review_and_nothing_is_written_else(tmp_path: Path) -> None:
    log = BoxLog(tmp_path / "boxes.jsonl", labels={"cat"})
    anna = Scribe("anna")
    log.extend([anna.add(A, 1, "1 1 5 5"), anna.add(A, 2, "1 1 5 5", "cat")])
    before = log.path.read_bytes()
    with pytest.raises(DecisionError, match="unknown, or one of cat"):
        log.extend([anna.add(A, 3, "1 1 5 5"), anna.add(A, 4, "1 1 5 5", "zebra")])
    assert log.path.read_bytes() == before


def test_no_numbers_are_no_box() -> None:
    for wrong in ([0.1, 0.2, float("nan"), 0.1], [0.1, 0.2, 0.3], [float("inf"), 0, 1, 1]):
        with pytest.raises(DecisionError):
            pixels(wrong, (640, 480))
    with pytest.raises(DecisionError, match="size"):
        pixels([0.1, 0.1, 0.1, 0.1], (0, 480))


def test_shares_become_pixels_by_exact_arithmetic() -> None:
    # 0.1 is a little more than a tenth in binary: 64.0000000000000036 pixels, to three places 64.
    assert pixels([0.1, 0.25, 0.5, 1 / 3], (640, 480)) == ("64", "120", "320", "160")
    assert pixels([0.0, 1e-9, 0.333333, 0.0005], (1000, 1000)) == ("0", "0", "333.333", "0.5")
    assert relative(("64", "120", "320", "160"), (640, 480)) == [0.1, 0.25, 0.5, 1 / 3]


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**4), st.integers(1, 10**4))
def test_pixels_survive_the_way_through_shares(x: int, y: int, width: int, height: int) -> None:
    box = tuple(_text(Decimal(one) / 1000) for one in (x, y, x + 1, y + 1))
    assert pixels(relative(box, (width, height)), (width, height)) == box  # type: ignore[arg-type]


def _text(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
