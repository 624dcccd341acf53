"""Tables stay inside the line, wrap what is long, and print nothing that could steer a terminal."""

import json

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
