"""Rows of JSON Lines and CSV: hostile ones are refused with their line, and none is passed over in silence."""

import json

import pytest

from curation.core.errors import DecisionError
from curation.review.decisions.decision import Decision
from curation.review.decisions.files import parse_csv, parse_jsonl

ROW = {"image_id": "coco:000000000009", "dataset": "coco", "stage": "manual", "action": "remove"}
LINE = json.dumps(ROW)
HEAD = "image_id,dataset,stage,action"


def with_(**fields: object) -> str:
    return json.dumps(ROW | fields)


def test_blank_lines_crlf_and_byte_order_marks_pass() -> None:
    data = b"\xef\xbb\xbf" + f"{LINE}\r\n\r\n  \n{LINE}".encode()
    assert parse_jsonl(data, "f") == ([Decision(**ROW)] * 2, "")  # type: ignore[arg-type]
    text = f"\ufeff{HEAD}\r\n\r\n{','.join(ROW.values())}\r\n"
    assert parse_csv(text.encode(), "f") == [Decision(**ROW)]  # type: ignore[arg-type]


def test_bare_ids_are_completed_by_their_data_set() -> None:
    rows = [
        with_(image_id="139"),
        with_(image_id="000a", dataset="openimages"),
        with_(dataset="coco-far", image_id="7"),
    ]
    found, _ = parse_jsonl("\n".join(rows).encode(), "f")
    assert [one.image_id for one in found] == ["coco:000000000139", "openimages:000a", "coco:000000000007"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (with_(action="explode"), r"Malformed decision[^$]*keep, remove, keep_near, to_near"),
        (with_(stage="Manual"), r"Malformed decision[^$]*auto_override, manual, candidate"),
        (with_(action="add_far"), "malformed action"),
        (with_(reviewer=["anna", "ben"]), "Malformed decision"),
        (with_(reviewer="anna, ben"), "more than one reviewer"),
        (LINE[:-1] + ', "reviewer": "anna", "reviewer": "ben"}', "not JSON"),
        (with_(reviewers="anna"), "Malformed decision"),
        (with_(image_id=9), "Malformed decision"),
        (with_(image_id=None), "Malformed decision"),
        (with_(image_id=""), "no namespace"),
        (with_(image_id="coco:\x00"), "malformed"),
        (with_(reason="\x1b[2J"), "malformed reason"),
        (with_(date="01/03/2025"), "malformed date"),
        (with_(date="2025-02-30"), "malformed date"),
        (with_(date="2025-03-01T14:05+02:00"), "malformed date"),
        (with_(date="٢٠٢٥-03-01"), "malformed date"),
        (with_(dataset="../x"), "malformed dataset"),
        (with_(reason="x" * 1001), "malformed reason"),
        (with_(reviewer="x" * 101), "malformed reviewer"),
        (with_(reviewer="anna and ben"), "more than one reviewer"),
        (with_(batch="two\nlines"), "malformed batch"),
        (with_(manifest="abc"), "malformed manifest"),
        (with_(reason=float("nan")), "not JSON"),
        (with_(reason="\ud800"), "not JSON"),
        (json.dumps({k: v for k, v in ROW.items() if k != "stage"}), "Malformed decision"),
        ("[1]", "Malformed decision"),
        ("null", "Malformed decision"),
        (LINE + LINE, "not JSON"),
        ("[" * 60_000, "not JSON"),
        (with_(reason="x" * 70_000), "too long"),
        ("\ufeff" + LINE, "not JSON"),
    ],
    ids=range(31),
)
def test_a_bad_line_is_refused_with_its_number(line: str, message: str) -> None:
    data = f"{LINE}\n{line}\n{LINE}\n".encode()
    with pytest.raises(DecisionError, match=message) as caught:
        parse_jsonl(data, "log.jsonl")
    assert "log.jsonl, line 2" in str(caught.value.where)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("cut", range(1, len(LINE)))
def test_only_a_last_line_that_is_cut_off_is_left_out_and_told(cut: int) -> None:
    found, torn = parse_jsonl(f"{LINE}\n{LINE[:cut]}".encode(), "f")
    assert len(found) == 1
    assert torn == LINE[:cut].rstrip()[:60]
    with pytest.raises(DecisionError):
        parse_jsonl(f"{LINE[:cut]}\n{LINE}\n".encode(), "f")


@pytest.mark.parametrize(
    ("text", "message", "row"),
    [
        ("", "columns", 1),
        (f"{HEAD},colour\n", "columns", 1),
        (f"{HEAD},reviewer,reviewer\n", "columns", 1),
        ("image_id,dataset,stage\n", "columns", 1),
        (f"{HEAD}\n\n\na,b\n", "number of cells", 4),
        (f"{HEAD}\n1.00E+238,openimages,manual,remove\n", "spreadsheet", 2),
        (f"{HEAD}\n13159.0,coco,manual,remove\n", "spreadsheet", 2),
        (f"{HEAD}\n9,coco,manual,explode\n", "Malformed decision", 2),
        (f"{HEAD}\n9,coco,manual,remove\n\0,coco,manual,remove\n", "malformed", 3),
        (f"{HEAD},reason\n9,coco,manual,remove,\x1b[2J\n", "malformed reason", 2),
        (f'{HEAD}\n"9,coco,manual,remove\n', "not CSV", 0),
        (f"{HEAD}\n{'9' * 200_000},coco,manual,remove\n", "not CSV", 0),
        (f"{HEAD}\n\udcff", "not CSV", 0),
    ],
    ids=range(13),
)
def test_a_bad_table_is_refused_with_its_row(text: str, message: str, row: int) -> None:
    with pytest.raises(DecisionError, match=message) as caught:
        parse_csv(text.encode(errors="surrogateescape"), "f.csv")
    assert str(caught.value.where).split(":")[0] == (f"f.csv, row {row}" if row else "f.csv")
