from html.parser import HTMLParser
from pathlib import Path

from curation.benchmarks.leaderboard import Leaderboard, ranked_groups, shown_value
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


def test_rank_and_numbers_stand_in_the_row_of_their_method(tmp_path: Path) -> None:
    texts = page(tmp_path, row_data("a", 0.25), row_data("b", None)).texts
    start = texts.index("a")
    assert texts[start - 1] == "1"
    assert texts[start + 1 : start + 3] == ["0.50", "0.2500"]
    assert texts[texts.index("b") + 2] == "-"


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    assert "The file holds no row." in page(tmp_path).texts


def test_numbers_are_shown_by_unit() -> None:
    assert [shown_value(*one) for one in ((50.0, "%"), (0.5, "share"), (7, "count"), (None, "%"))] == [
        "50.00", "0.5000", "7", "-",
    ]  # fmt: skip


def test_what_an_evaluation_reported_is_said_in_its_own_words(tmp_path: Path) -> None:
    reported = {"left out: strays": 3, "taken as empty: boxes": 2}
    texts = page(tmp_path, row_data("a", operating_point={}, reported=reported)).texts
    assert "left out: strays: 3; taken as empty: boxes: 2" in texts
