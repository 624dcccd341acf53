"""Texts from files as Markdown: nothing in them means anything."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from curation.core import pages
from curation.core.pages import block, code, link, markdown_text, page

TEMPLATES = Path(pages.__file__).parent / "templates"
HOSTILE = "a|b\n# [x](javascript:1) <script>`*_~$\x1b[2J\x00"


def test_a_text_stays_in_its_cell() -> None:
    row = f"| {markdown_text(HOSTILE)} | {code(HOSTILE)} |"
    assert row.count("|") - row.count("\\|") == 3
    assert row.isprintable()
    for sign in "<[`":
        assert f"\\{sign}" in row


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("- a", "\\- a"),
        ("+ a", "\\+ a"),
        ("12. a", "12\\. a"),
        ("1) a", "1\\) a"),
        ("===", "\\==="),
        ("&lt;b&gt;", "\\&lt;b\\&gt;"),
        ("---", "\\---"),
        ("2.5 - 3", "2.5 - 3"),
    ],
)
def test_a_text_begins_no_list_and_holds_no_entity(text: str, shown: str) -> None:
    assert markdown_text(text) == shown


def test_an_address_of_our_own_stays_whole() -> None:
    assert link("https://a.org/x_200_y#z") == "<https://a.org/x_200_y#z>"
    assert link("") == ""


@given(st.text(max_size=60))
def test_code_ends_where_the_text_ends(text: str) -> None:
    told = code(text)
    assert told == "" or (told.count("`") == 2 and told[0] == told[-1] == "`" and "|" not in told)


@given(st.text(max_size=200))
def test_no_line_of_a_block_closes_it(text: str) -> None:
    lines = block(f"x{text}").split("\n")
    fence = lines[0]
    assert set(fence) == {"`"}
    assert len(fence) >= 3
    assert lines.index(fence, 1) == len(lines) - 3


def test_a_page_refuses_what_its_template_lacks() -> None:
    with pytest.raises(UndefinedError, match="file"):
        page("leaderboard.html", digest="", groups=[])


def test_one_stylesheet_stands_in_every_page() -> None:
    text = page("leaderboard.html", file="<b>", digest="", groups=[])
    assert "<h1>Leaderboard of &lt;b&gt;</h1>" in text
    assert (TEMPLATES / "style.css").read_text(encoding="utf-8") in text
