from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.leaderboard import Leaderboard, ranked_groups
from tests.evaluation.leaderboard_cases import MANIFEST, numbered, row_data

HOSTILE = '</td><script>alert(1)</script><img src=x onerror="a()">\'&amp;'


class Reader(HTMLParser):
    """Gathers tags, attributes and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page(tmp_path: Path, *rows: dict[str, object]) -> Reader:
    board = Leaderboard(HOSTILE, "sha256:" + "0" * 64, "", tuple(ranked_groups(numbered(tmp_path, *rows))))
    reader = Reader()
    reader.feed(board.html())
    reader.close()
    assert reader.open == []
    return reader


def test_hostile_texts_are_texts_and_nothing_else(tmp_path: Path) -> None:
    hostile = row_data(
        HOSTILE,
        score=HOSTILE,
        part=HOSTILE,
        variant=HOSTILE,
        manifest=MANIFEST | {"name": HOSTILE},
        settings={HOSTILE: HOSTILE},
        operating_point={HOSTILE: HOSTILE},
        evaluator={"curation": HOSTILE, "algorithm": 1},
        metrics={HOSTILE: {"value": 1, "unit": HOSTILE, "better": "lower"}},
        reported={HOSTILE: 1},
    )
    quiet = page(tmp_path, row_data("quiet"))
    loud = page(tmp_path, hostile)
    assert set(loud.tags) <= set(quiet.tags)
    assert loud.attributes == {"charset", "class", "content", "data-low", "data-value", "lang", "name"}
    assert f"{HOSTILE} ({HOSTILE})" in loud.texts
    assert f"Leaderboard of {HOSTILE}" in loud.texts


def test_nothing_comes_from_elsewhere(tmp_path: Path) -> None:
    page_text = Leaderboard("f", "d", "", tuple(ranked_groups(numbered(tmp_path, row_data("a"))))).html()
    assert not any(word in page_text for word in ("src=", "href=", "url(", "@import", "http", "fetch", "import("))


@pytest.mark.browser
def test_a_click_on_a_head_sorts_and_undefined_numbers_stay_last(tmp_path: Path, browser_page: Any) -> None:
    rows = [row_data("a", 0.25), row_data("b", None), row_data("c", 0.1), row_data("d", 10.0)]
    board = Leaderboard("f", "d", "", tuple(ranked_groups(numbered(tmp_path, *rows))))
    (tmp_path / "board.html").write_text(board.html(), encoding="utf-8")
    browser_page.goto((tmp_path / "board.html").as_uri())
    names = browser_page.locator("td.first")
    by_error = browser_page.get_by_role("button", name="AWI@0.3")
    by_error.click()
    assert names.all_inner_texts() == ["c", "a", "d", "b"]  # lower is better
    by_error.click()
    assert names.all_inner_texts() == ["d", "a", "c", "b"]
    browser_page.get_by_role("button", name="method").click()
    assert names.all_inner_texts() == ["a", "b", "c", "d"]
    for width in (420, 1200):
        browser_page.set_viewport_size({"width": width, "height": 800})
        assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
