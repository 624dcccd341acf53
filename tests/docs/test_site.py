"""The documentation site builds strictly, contains every page, fits a phone, and its search finds the right pages."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.shell import VERBS

QUERIES = {
    "WI": "metrics.html",
    "owdetr": "owod_metrics.html",
    "t2_ft": "identify.html",
    "FPR95": "ood_metrics.html",
    "wilderness": "elephant.html",
    "unknown recall": "howto.html",
}
"""Search terms, and the page that must be among the first results."""


class _Lines(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name Python objects, as plain data."""


_Lines.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def pages(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry if isinstance(entry, list) else entry.values():
            yield from pages(below)


def test_every_page_stands_in_the_table_of_contents() -> None:
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=_Lines)  # noqa: S506
    listed = list(pages(config["nav"]))
    assert len(listed) == len(set(listed))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= set(listed)
    assert {f"commands/{verb}.md" for verb in VERBS} == {page for page in listed if page.startswith("commands/")}
    assert {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")} <= set(listed)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("mkdocs", reason="mkdocs is absent: pip install mkdocs-material 'mkdocstrings[python]'")
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.browser
def test_search_finds_pages(site: str, browser_page: Any) -> None:
    browser_page.goto(f"{site}/index.html")
    browser_page.keyboard.press("/")
    for query, page in QUERIES.items():
        box = browser_page.locator("input.md-search__input")
        box.fill("")
        box.type(query)
        found = browser_page.locator(f'.md-search-result__link[href*="{page}"]')
        found.first.wait_for()
        if folder := os.environ.get("CURATION_SCREENSHOTS"):
            browser_page.wait_for_timeout(500)
            browser_page.screenshot(path=str(Path(folder) / f"search-{query}.png"))


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_the_screen_and_code_is_not_cut_beside_the_table_of_contents(
    site: str, browser_page: Any, width: int
) -> None:
    browser_page.set_viewport_size({"width": width, "height": 900})
    cut = "[...document.querySelectorAll('pre > code')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    for name in ("index", "metrics", "osod3", "commands/evaluate-owod", "notebooks/owod", "audits/m-owodb-published"):
        browser_page.goto(f"{site}/{name}.html")
        assert browser_page.evaluate("document.scrollingElement.scrollWidth") <= width, name
        assert width == 390 or not browser_page.evaluate(cut), name


@pytest.mark.slow
def test_notebooks_show_tables_and_photos_and_models_find_the_pages(site: str) -> None:
    def text(name: str) -> str:
        with urlopen(f"{site}/{name}") as answer:  # noqa: S310
            return str(answer.read().decode())

    notebooks = [text(f"notebooks/{path.stem}.html") for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert not [page for page in notebooks if "IPython.core.display" in page]
    assert any('<div class="output">' in page for page in notebooks)
    assert "<title>curation audit: Check lists" in text("commands/audit.html")
    assert "<title>Open-set evaluation data you can trust: train/test splits" in text("index.html")
    listed = re.findall(r"\((\w+\.html)\)", text("llms.txt"))
    assert {"own_benchmark.html", "review.html"} <= {*listed}
    assert all(text(name).lstrip().startswith("<!doctype html>") for name in listed)
