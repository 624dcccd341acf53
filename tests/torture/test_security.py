"""Hostile files under limits, and hostile names through every output: no terminal, page, table or figure obeys them."""

import contextlib
import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from defusedxml import ElementTree

from curation.cli import main
from tests.torture.forks import Forks
from tests.torture.security import CASES, Case, outcome

NAMES = (
    "<script>alert(1)</script>",
    '=HYPERLINK("http://x")',
    "</title><img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "\\input{/etc/passwd}",
    "`<img src=x onerror=alert(1)>`|*b*",
)
"""Names that a page, a spreadsheet, a card and LaTeX might obey."""
TERMINAL = ("\x1b[2Jred", "a\u202eb", "a\x07b", "x\ny", "a\x9b31mb")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_hostile_file_is_refused_in_little_memory(case: Case, tmp_path: Path, forks: Forks) -> None:
    found = outcome(case, tmp_path, forks)
    assert found.wrong == ""


def coco(path: Path, names: tuple[str, ...], first: int) -> Path:
    images = [{"id": first + k, "file_name": f"{first + k:012d}.jpg", "width": 64, "height": 64} for k in range(12)]
    boxes = [
        {"id": 99 * first + k, "image_id": first + k % 12, "category_id": 1 + (k + k // 12) % len(names),
         "bbox": [k, k, 9, 9], "area": 81, "iscrowd": 0}
        for k in range(36)
    ]  # fmt: skip
    categories = [{"id": number, "name": name} for number, name in enumerate(names, start=1)]
    path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    return path


def told(*words: object) -> str:
    """Return what a command that succeeds prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        assert main([str(word) for word in words]) == 0, out.getvalue()
    return out.getvalue()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Every kind of output of a benchmark whose classes are called so, and what was printed."""
    pytest.importorskip("mlcroissant")
    root = tmp_path_factory.mktemp("hostile")
    out = root / "out"
    sources = []
    for first, name in ((1, "train"), (100, "test")):
        sources += ["--source", f"{name}={coco(root / f'{name}.json', NAMES, first)}"]
    tasks = root / "tasks.toml"
    printed = [told("init", *sources, "--n-tasks", 2, "--out", tasks, "--no-cache")]
    manifest = out / "manifest"
    build = ["build", "owod", "--tasks", tasks, *sources, "--set", "val_size=2", "--no-cache", "--out", manifest]
    printed.append(told(*build))
    for form, name in (("coco", "truth.json"), ("voc", "voc"), ("yolo", "yolo"), ("owod", "owod")):
        export = ["export", manifest, "--part", "t1-test", "--format", form, *sources, "--no-cache"]
        printed.append(told(*export, "--out", out / name))
    truth = json.loads((out / "truth.json").read_text())
    rows = [
        {key: one[key] for key in ("image_id", "category_id", "bbox")} | {"score": 0.5} for one in truth["annotations"]
    ]
    (root / "detections.json").write_text(json.dumps(rows))
    scored = ["evaluate", "owod", "--manifest", manifest, "--task", "t1", "--truth", out / "truth.json", "--no-cache"]
    scored += ["--detections", root / "detections.json", "--out", out / "scores", "--figures"]
    board = root / "board.jsonl"
    printed.append(told(*scored, "--append", board, "--name", "<b onclick=alert(1)>one & two_3"))
    for form in ("text", "html", "markdown", "csv", "latex"):
        text = told("leaderboard", board, "--format", form)
        (out / f"board.{ {'markdown': 'md', 'latex': 'tex', 'text': 'txt'}.get(form, form) }").write_text(text)
    printed.append(told("audit", manifest, *sources, "--no-cache", "--out", out / "audit.html"))
    printed.append(
        told("publish", manifest, "--repo", "lab/x", *sources, "--no-cache", "--dry-run", out / "publication")
    )
    show = ["show", manifest, "--composition", *sources, "--no-cache", "--out", out / "d.csv"]
    printed.append(told(*show))
    return out, printed


class _Page(HTMLParser):
    """Collects what a page would run."""

    def __init__(self) -> None:
        super().__init__()
        self.obeyed: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name.startswith("on") or "javascript:" in (value or "").lower():
                self.obeyed.append(f"{tag} {name}={value}")
        if tag == "img" and ("src", "x") in attributes:
            self.obeyed.append("img")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def check_page(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    assert page.obeyed == []
    assert "alert(1)" not in "".join(re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL))
    return page


def test_no_page_obeys_a_name(outputs: tuple[Path, list[str]]) -> None:
    pages = list(outputs[0].rglob("*.html"))
    assert {path.name for path in pages} >= {"board.html", "audit.html"}
    texts = ["".join(check_page(path.read_text()).words) for path in pages]
    assert any("<b onclick=alert(1)>one & two_3" in text for text in texts)


def test_no_figure_obeys_a_name(outputs: tuple[Path, list[str]]) -> None:
    figures = sorted(outputs[0].rglob("*.svg"))
    assert figures
    for path in figures:
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
        assert not tags & {"script", "foreignObject", "image", "a"}


def test_no_card_obeys_a_name(outputs: tuple[Path, list[str]]) -> None:
    """As a renderer shows it that lets HTML pass; that of the hub lets little of it."""
    markdown = pytest.importorskip("markdown")
    for path in (outputs[0] / "publication/README.md", outputs[0] / "board.md"):
        text = path.read_text()
        check_page(markdown.markdown(text, extensions=["tables", "fenced_code"]))


def test_no_spreadsheet_and_no_latex_obeys_a_name(outputs: tuple[Path, list[str]]) -> None:
    cells = [
        cell
        for path in outputs[0].rglob("*.csv")
        for row in csv.reader(io.StringIO(path.read_text()))
        for cell in row
    ]  # fmt: skip
    assert [
        cell for cell in cells if cell[:1] in ("=", "+", "@", "\t") or (cell.startswith("-") and cell[1:2].isalpha())
    ] == []
    assert any("HYPERLINK" in cell for cell in cells)
    latex = (outputs[0] / "board.tex").read_text()
    assert "two\\_3" in latex
    assert "\\input" not in latex


def test_exports_hold_the_names_as_they_are(outputs: tuple[Path, list[str]]) -> None:
    out = outputs[0]
    names = {one["name"] for one in json.loads((out / "truth.json").read_text())["categories"]}
    assert set(NAMES[:3]) <= names
    found = {
        str(element.text)
        for path in out.glob("voc/Annotations/*.xml")
        for element in ElementTree.parse(path).iter("name")
    }
    assert found - {"unknown"} <= set(NAMES)


def test_no_terminal_obeys_a_name(outputs: tuple[Path, list[str]], tmp_path: Path) -> None:
    printed = list(outputs[1])
    for name in TERMINAL:
        path = coco(tmp_path / "t.json", (name, "cat"), 1)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            for words in (
                ["cut", path, "-k", "2"],
                ["init", "--source", path, "--out", tmp_path / f"{TERMINAL.index(name)}"],
            ):
                assert main([*map(str, words), "--no-cache"]) in (0, 1, 2)
        printed.append(out.getvalue())
    for text in printed:
        assert not [sign for sign in text if not (sign.isprintable() or sign in "\n\t")], ascii(text[:300])
