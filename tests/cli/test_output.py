"""Tables stay inside the line, wrap what is long, and print nothing that could steer a terminal."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.cli.output import counted_examples, emit, warn
from curation.core.tables import Table, printable, table_lines

cells = st.text(st.characters(codec="ascii", categories=["L", "N", "Zs"]), max_size=60)


def test_a_table_by_hand() -> None:
    table = Table("Parts", ("part", "images"), (("closed", "4,952"), ("wr1", "12")))
    assert table_lines(table) == ["Parts", "  part    images", "  closed  4,952", "  wr1     12", ""]
    assert table_lines(Table("Notes", ("",), (("a",),))) == ["Notes", "  a", ""]
    assert table_lines(Table("None", (), ())) == ["None", ""]


@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=5))
def test_every_word_is_printed_inside_the_line(rows: list[tuple[str, str, str]]) -> None:
    lines = table_lines(Table("T", ("a", "b", "c"), tuple(rows)), width=80)
    assert all(len(line) <= 80 for line in lines)
    printed = "".join("".join(line.split()) for line in lines)
    for row in rows:
        for cell in row:
            assert all(word[:20] in printed for word in cell.split())


def test_many_short_columns_shrink_to_their_longest_words() -> None:
    heads = ("classifier", *(f"CCR@{number}" for number in (0.01, 0.05, 0.1, 0.2, 1)), "smallest FPR above 0")
    row = ("S", *("0.0200 (0.0200)",) * 5, "0.0020")
    lines = table_lines(Table("T", heads, (row,)), width=80)
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).split().count("(0.0200)") == 5
    assert " ".join(lines).split()[1:7] == ["classifier", "CCR@0.01", "CCR@0.05", "CCR@0.1", "CCR@0.2", "CCR@1"]


def test_tables_of_a_notebook_fit_its_column() -> None:
    notebooks = [
        json.loads(saved.read_text(encoding="utf-8"))
        for saved in (Path(__file__).parents[2] / "notebooks").glob("*.ipynb")
    ]
    outputs = [out for one in notebooks for cell in one["cells"] for out in cell.get("outputs", [])]
    lines = "".join("".join(out.get("text", "")) for out in outputs if out.get("name") == "stdout").splitlines()
    rows = [line for line in lines if re.match(r"  \S+(  +\S+){2}", line)]
    assert len(rows) > 40
    assert max(map(len, rows)) <= 100


def test_a_name_is_whole_where_the_line_has_room() -> None:
    name = "elephant/wr1-prob-published"
    row = (name, "1.0.0", "3b480da5e433", "as_published", "one, two, three, four, five, six, seven, eight", "", "here")
    lines = table_lines(Table("T", ("name", "", "", "", "parts", "", ""), (row,)), width=100)
    assert any(line.startswith(f"  {name}  1.0.0") for line in lines)
    assert max(map(len, lines)) <= 100


def test_control_characters() -> None:
    assert (
        printable("a\x1b[2Jb\u202ec\n")
        == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}"
    )


def test_examples() -> None:
    assert counted_examples(()) == "0"
    assert counted_examples(("a", "b")) == "2 (a, b)"
    assert counted_examples(tuple("abcd")) == "4 (a, b, c, …)"


def test_one_sink(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"a": "é"}, ["text"], as_json=True)
    emit({"a": "é"}, ["text"], as_json=False)
    warn("mind")
    captured = capsys.readouterr()
    json_part, _, text = captured.out.rpartition("}\n")
    assert json.loads(json_part + "}") == {"a": "é"}
    assert text == "text\n"
    assert captured.err == "warning: mind\n"
    with pytest.raises(ValueError, match="not JSON compliant"):
        emit({"a": float("nan")}, [], as_json=True)
