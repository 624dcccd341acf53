"""The heat map of overlaps: its table is the matrix, its files are the same on every run, odd names do no harm."""

import csv
from pathlib import Path

import pytest

from curation.audit.forensics import forensics
from curation.audit.overlap_figure import MOST_LISTS, overlap_figure
from curation.errors import UsageError
from tests.audit.benchmark_world import list_set

LISTS = {"x/a": ["1", "2", "3"], "x/b": ["2", "3"], "y/$c^{": ["9"], "y/empty": []}


def test_the_table_holds_every_pair(tmp_path: Path) -> None:
    found = forensics(list_set(tmp_path / "lists", LISTS))
    paths = overlap_figure(found, tmp_path / "overlap")
    assert [path.suffix for path in paths] == [".png", ".svg", ".csv"]
    rows = list(csv.DictReader(paths[2].read_text(encoding="utf-8").splitlines()))
    sets = {name: set(ids) for name, ids in LISTS.items()}
    assert len(rows) == 16
    for row in rows:
        one, two = sets[row["list"]], sets[row["other"]]
        assert (int(row["ids"]), int(row["ids_of_other"])) == (len(one), len(two))
        assert int(row["shared"]) == len(one & two)
        assert row["share_of_list"] == (str(len(one & two) / len(one)) if one else "")


def test_files_are_the_same_on_every_run(tmp_path: Path) -> None:
    found = forensics(list_set(tmp_path / "lists", LISTS))
    first = [path.read_bytes() for path in overlap_figure(found, tmp_path / "one" / "o")]
    assert first == [path.read_bytes() for path in overlap_figure(found, tmp_path / "two" / "o")]


def test_lists_can_be_chosen_and_must_be_there(tmp_path: Path) -> None:
    found = forensics(list_set(tmp_path / "lists", LISTS))
    table = overlap_figure(found, tmp_path / "o", lists=["x/b", "x/a"])[2]
    assert [line.split(",")[:2] for line in table.read_text().splitlines()[1:]] == [
        ["x/b", "x/b"],
        ["x/b", "x/a"],
        ["x/a", "x/b"],
        ["x/a", "x/a"],
    ]
    with pytest.raises(UsageError, match="no such list"):
        overlap_figure(found, tmp_path / "o", lists=["x/z"])
    for lists in ([], ["x/a"] * (MOST_LISTS + 1)):
        with pytest.raises(UsageError, match="cannot show"):
            overlap_figure(found, tmp_path / "o", lists=lists)
