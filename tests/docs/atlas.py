"""The table of docs/atlas.md: every finding that `curation/identify/lists.toml` declares.

``python -m tests.docs.atlas`` says whether the page is as they say; ``--write`` makes it so.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from curation.audit.rules import PUBLISHED_RULES
from tests.docs.pages import ROOT, kept, with_tables

PAGE = ROOT / "docs/atlas.md"
DECLARATION = ROOT / "curation/identify/lists.toml"
SHORT = 12
"""A file name below this says too little: its folder is shown too."""
NOT_SHOWN = {rule.name: rule.not_shown for rule in PUBLISHED_RULES}
BEGIN = "<!-- made by `python -m tests.docs.atlas --write` of the declarations in the program -->\n"


class Finding(NamedTuple):
    """One row of the table."""

    source: str
    benchmark: str
    file: str
    measured: str
    found: str
    does_not_show: str
    command: str


def findings() -> list[Finding]:
    """Return all findings, those of one benchmark together."""
    declared = tomllib.loads(DECLARATION.read_text(encoding="utf-8"))
    rows: dict[str, list[Finding]] = {}
    for source in declared["source"]:
        rows.setdefault(source["benchmark"], []).extend(_of_source(source, declared["kinds"]))
    return [row for group in rows.values() for row in dict.fromkeys(group)]


def _of_source(source: dict[str, Any], kinds: dict[str, dict[str, str]]) -> Iterator[Finding]:
    folder = PurePosixPath(source.get("folder", ""))
    for one in (source, *source.get("lists", ())):
        path = PurePosixPath(one.get("file", ""))
        file = f"{one['name']}.txt" if "file" in one and "name" in one else str(path) if "file" in one else ""
        above = path.parent.name or folder.name
        for said in (*one.get("defects", ()), *one.get("findings", ())):
            (kind,) = said.keys() - {"by"}
            command = said.get("by", kinds[kind]["command"])
            name = PurePosixPath(file)
            filled = command.replace("{file}", name.name).replace("{list}", name.stem).replace("{folder}", f"{above}/")
            measured, not_shown = kinds[kind]["measured"], kinds[kind].get("does_not_show", "")
            if rule := kinds[kind].get("rule"):
                measured, not_shown = f"{measured} ({rule})", NOT_SHOWN[rule]
            yield Finding(
                source["name"], source["benchmark"], file, measured, said[kind], not_shown, filled,
            )  # fmt: skip


def tables() -> str:
    """Return the table, a benchmark after the other."""
    rows = findings()
    lines = [
        f"{len(rows)} findings.", "",
        "| list | measured | found | what it does not show | shown by |", "|---|---|---|---|---|",
    ]  # fmt: skip
    before = ""
    for row in rows:
        if row.benchmark != before:
            lines.append(f"| {_linked(row)} | | | | |")
            before = row.benchmark
        name = PurePosixPath(row.file)
        shown = f"`{'/'.join(name.parts[-2:]) if len(name.name) < SHORT else name.name}`" if row.file else "all"
        lines.append(f"| {shown} | {row.measured} | {row.found} | {row.does_not_show} | `{row.command}` |")
    return "\n".join([*lines, ""])


def _linked(row: Finding) -> str:
    page = f"{row.source}.md"
    return f"[**{row.benchmark}**]({page})" if (PAGE.parent / page).is_file() else f"**{row.benchmark}**"


def page() -> str:
    """Return the page with the tables as they should be."""
    return with_tables(PAGE, BEGIN, tables())


if __name__ == "__main__":
    sys.exit(kept(PAGE, page(), sys.argv[1:]))
