from html.parser import HTMLParser
from pathlib import Path

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
    assert loud.attributes == {"charset", "class", "content", "lang", "name"}
    assert f"{HOSTILE} ({HOSTILE})" in loud.texts
    assert f"Leaderboard of {HOSTILE}" in loud.texts


def test_nothing_comes_from_elsewhere(tmp_path: Path) -> None:
    page_text = Leaderboard("f", "d", "", tuple(ranked_groups(numbered(tmp_path, row_data("a"))))).html()
    assert not any(word in page_text for word in ("src=", "href=", "url(", "@import", "http", "fetch", "import("))


def test_long_names_break_at_underscores(tmp_path: Path) -> None:
    page_text = Leaderboard("f", "d", "", tuple(ranked_groups(numbered(tmp_path, row_data("r_50<b"))))).html()
    assert "r_<wbr>50&lt;b</td>" in page_text
