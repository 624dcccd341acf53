"""Findings in words: gravest first, complete, plain enough to act on, and the same as data."""

import json
from pathlib import Path

import pytest

from curation.audit.forensics import ListFinding, forensics, forensics_data, forensics_tables, list_findings
from curation.audit.lists import read_lists
from tests.audit.benchmark_world import list_set, make_source
from tests.real_files import real_files


def findings(folder: Path, lists: dict[str, list[str]]) -> list[ListFinding]:
    return list_findings(forensics(list_set(folder, lists)))


def test_two_different_lists_of_one_name_and_length(tmp_path: Path) -> None:
    [first, *rest] = findings(tmp_path, {"x/ft": ["a1", "b1", "c1"], "y/ft": ["b1", "c1", "d1"]})
    assert first.gravity == "error"
    assert first.text == "ft.txt in x/ and y/ have both 3 lines, but share only 2 ids"
    assert first.count == 2
    # The pair is told once.
    assert [one.kind for one in rest] == ["no namespace", "no namespace"]


def test_repeats_are_counted_by_multiplicity_with_their_lines(tmp_path: Path) -> None:
    found = findings(tmp_path, {"l": ["a1", "b1", "a1", "c1", "b1", "a1"]})
    assert found[0].text == "l.txt repeats ids: 6 lines, 3 ids; 1 twice, 1 three times"
    assert found[0].examples == ("a1 (lines 1, 3, 6)", "b1 (lines 2, 5)")


def test_a_sound_list_says_nothing(tmp_path: Path) -> None:
    assert findings(tmp_path, {"train": ["000000000001"], "val": ["000000000002", "000000000003"]}) == []


def test_findings_stand_by_gravity(tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text("000000000001\n000000000002 x\n")
    (tmp_path / "readme.txt").write_text("how to\n")
    (tmp_path / "cat_train.txt").write_text("000000000001 -1\n000000000002  1\n")
    sources = {"coco": make_source({"000000000001": ["dog"]}, dataset="coco", namespace="coco")}
    found = list_findings(forensics(read_lists(tmp_path), sources))
    assert [(one.gravity, one.kind) for one in found] == [
        ("error", "odd lines"),
        ("error", "unknown ids"),
        ("warning", "no list"),
        ("info", "subset"),
        ("info", "labels"),
    ]
    assert found[0].examples == ("line 2: it holds several words: '000000000002 x'",)
    assert found[1].text == "1 of 2 ids of cat_train.txt are in none of the sources"


@pytest.mark.parametrize(
    ("lists", "kind"),
    [
        ({"a": ["x1", "y1"], "b": ["y1", "x1"]}, "same ids"),
        ({"a": ["x1", "y1"], "b": ["x1", "y1"]}, "same bytes"),
        ({"a": ["x1"], "b": ["x1", "y1"]}, "subset"),
        ({"a": ["x1", "y1"], "b": ["x1", "z1"]}, "equal counts"),
        ({"a": ["000005"], "b": ["000000000005", "000000000006"]}, "equal numbers"),
    ],
)
def test_each_relation_is_told_once_and_by_its_kind(tmp_path: Path, lists: dict[str, list[str]], kind: str) -> None:
    found = [one for one in findings(tmp_path, lists) if one.kind != "no namespace"]
    assert [one.kind for one in found] == [kind]


def test_the_data_hold_everything_and_survive_json(tmp_path: Path) -> None:
    lists = {"x/ft": ["a1", "b1", "b1"], "y/ft": ["b1", "c1", "d1"], "z1": ["000005", "000000000005"]}
    found = forensics(list_set(tmp_path, lists))
    data = forensics_data(found)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["overlap"] == found.overlap.tolist()
    assert [one["lines"] for one in data["lists"]] == [3, 3, 2]
    assert data["same_names"] == [{"lists": ["x/ft", "y/ft"], "shared": 1}]
    assert data["collisions"][0]["lists"] == {"z1": 1}
    assert [one["text"] for one in data["findings"]] == [one.text for one in list_findings(found)]


def test_tables_are_rectangles_of_texts(tmp_path: Path) -> None:
    lists = {"a": ["x1", "x1", "000001"], "b": ["2008_000001"], "empty": []}
    for _, columns, rows in forensics_tables(forensics(list_set(tmp_path, lists))):
        assert rows
        assert all(len(row) == len(columns) and all(isinstance(cell, str) for cell in row) for row in rows)


@real_files("owod_audits")
def check_the_published_lists_speak_for_themselves(shared: Path) -> None:
    found = list_findings(forensics(read_lists(shared / "data" / "owod" / "published")))
    told = {one.text: one.gravity for one in found}
    assert told["t2_ft.txt in ore/ and reowod/ have both 1,743 lines, but share only 1,276 ids"] == "error"
    assert told["ore/all_task_test.txt repeats ids: 10,246 lines, 9,119 ids; 943 twice, 92 three times"] == "error"
    assert told["reowod/t1_train, reowod/t1_train_with_unk are the same bytes (91,903 ids)"] == "info"
    gravity = [one.gravity for one in found]
    assert gravity == sorted(gravity, key=["error", "warning", "info"].index)
