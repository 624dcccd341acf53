"""`audit` and its report: tables for a notebook, data without loss, a page that is whole and free of other files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from curation.extensions.audit.report import Report
from curation.extensions.audit.rules import PUBLISHED_RULES, RULES
from curation.extensions.audit.run import audit, run_audit
from tests.extensions.audit.benchmark_world import LISTS, World, list_set


def test_a_manifest_and_its_sources_in_memory() -> None:
    world = World()
    report = audit(world.manifest, world.sources(), exemplars=1)
    assert not report.failed
    assert report.exit_status == 0
    assert report.digest == world.manifest.digest
    assert {name: report.verdict(name) for name in ("CO1", "TI3", "DS3")} == {
        "CO1": "pass",
        "TI3": "pass",
        "DS3": "undecidable",
    }


def test_a_report_is_tables_and_shows_itself_shortly(tmp_path: Path) -> None:
    lists = {name.replace("-", "_"): ids for name, ids in LISTS.items()} | {"t1_train": ["a1", "a2", "a3", "v3"]}
    list_set(tmp_path / "lists", lists)
    report = audit(tmp_path / "lists", rules="DS")
    assert repr(report) == "Report('lists': 1 fail, 2 undecidable, 2 pass)"
    assert [one.rule.name for one in report.results] == [rule.name for rule in RULES if rule.name[:2] == "DS"]
    broken = report.findings[report.findings["verdict"] == "fail"]
    assert list(broken["about"]) == ["t3_val in t1_train"]
    assert list(broken["count"]) == [1]
    shown = report._repr_html_()
    assert shown.startswith("<table")
    assert "DS2" in shown


@pytest.fixture
def broken() -> Report:
    world = World()
    world.lists["t1-train"].append("v3")
    return run_audit(world.target())


class Page(HTMLParser):
    """Collects tags, and checks that they close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_data_hold_every_statement_and_survive_json(broken: Report) -> None:
    data = json.loads(json.dumps(replace(broken, digest="sha256:x").data(), allow_nan=False))
    assert {one["rule"] for one in data["statements"]} == {rule.name for rule in RULES}
    [overlap] = [one for one in data["statements"] if one["gravity"] == "error"]
    assert (overlap["rule"], overlap["count"], data["digest"]) == ("DS2", 1, "sha256:x")
    assert (data["failed"], broken.tally()["fail"]) == (True, 1)
    assert {one["name"] for one in data["sources"]} == {"train", "test"}
    assert all(one["sha256"].startswith("sha256:") for one in data["lists"])


def test_the_page_is_whole_and_needs_nothing_else(broken: Report) -> None:
    text = replace(broken, digest="sha256:" + "0" * 64).html()
    page = Page(text)
    names = [tag for tag, _ in page.tags]
    assert "script" not in names
    assert not {"link", "img", "iframe", "object", "embed"} & set(names)
    assert not [attrs for _, attrs in page.tags if {"src", "href", "onclick", "onload"} & set(attrs)]
    assert "url(" not in text
    assert "@import" not in text
    for rule in RULES:
        assert rule.name in page.text
    assert "toy/open-world 1.0.0: t3-val in t1-train: " in page.text
    assert "(1 error, 0 warnings)" in page.text
    assert "toy:v3 (t1-train line 4; t3-val line 1)" in page.text
    assert "To fix it:" in page.text
    assert "Lists and their roles" in page.text
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


def test_no_sentence_of_a_rule_names_another_rule_by_its_code() -> None:
    for rule in (*RULES, *PUBLISHED_RULES):
        assert not re.search(r"\b[A-Z]{2}[0-9]+\b", " ".join((rule.subject, rule.definition, rule.fix, rule.not_shown)))


def test_hostile_names_are_text_on_the_page(broken: Report) -> None:
    name = "<script>alert(1)</script>\x1b[31m&\u202e"
    target = replace(
        broken.target,
        name=name,
        files=tuple(replace(one, name=name, whole=name) for one in broken.target.files),
        used=tuple(replace(one, name=name, whole=name, played=name, why=name) for one in broken.target.used),
        tasks=tuple(replace(one, name=name) for one in broken.target.tasks),
    )
    text = run_audit(target).html()
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    Page(text)
