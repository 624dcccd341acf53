"""The lists of docs/atlas.md: every finding that `curation/extensions/identify/lists.toml` declares.

``python -m tests.docs.atlas`` says whether the page is as they say; ``--write`` makes it so. ``--index DATA`` makes the
index of `identify` again from the published files below a folder.
"""

import sys
import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from curation.extensions.audit.rules import PUBLISHED_RULES
from curation.extensions.identify.index import index_bytes, make_index, packaged_index
from tests.docs.pages import ROOT, kept, with_tables

PAGE = ROOT / "docs/atlas.md"
DECLARATION = ROOT / "curation/extensions/identify/lists.toml"
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
    kind: str
    by: bool
    """Whether its command is another than that of its kind."""


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
                source["name"], source["benchmark"], file, measured, said[kind], not_shown, filled, kind, "by" in said,
            )  # fmt: skip


def usual(kind: dict[str, str]) -> str:
    """Return the command that shows the findings of a kind, with words in capitals for what each finding names."""
    return kind["command"].format(file="FILE", list="LIST", folder="FOLDER")


def tables() -> str:
    """Return what each kind of finding measures, by the command that shows it, then the findings of each benchmark."""
    rows = findings()
    kinds = tomllib.loads(DECLARATION.read_text(encoding="utf-8"))["kinds"]
    seen = {row.kind for row in rows}
    by_command: dict[str, list[str]] = {}
    for kind in (kind for kind in kinds if kind in seen):
        rule, not_shown = kinds[kind].get("rule"), kinds[kind].get("does_not_show")
        end = f". Not shown: {not_shown}." if not_shown else f" ([{rule}](audit.md#published-lists))."
        text = f"    * **{kind}**: {kinds[kind]['measured']}{end}"
        by_command.setdefault(usual(kinds[kind]), []).append(text)
    lines = [line for command, texts in by_command.items() for line in (f"* `{command}`", *texts)]
    lines += [
        "",
        "## All findings",
        "",
        f"{len(rows)} findings, each with its kind, and its command if it differs from that of the kind.",
        "",
    ]
    for benchmark, group in groupby(rows, key=lambda row: row.benchmark):
        alike: dict[tuple[str, str], list[str]] = {}
        for row in group:
            by = f": `{row.command}`" if row.by else ""
            alike.setdefault((row.found, f"{row.kind}{by}"), []).append(_shown(row.file))
            page = f"{row.source}.md"
        lines += [
            f"### {benchmark}",
            "",
            *([f"See [{page[:-3]}]({page}).", ""] if (PAGE.parent / page).is_file() else []),
        ]
        for files, found in groupby(alike, key=lambda key: ", ".join(filter(None, alike[key]))):
            said = [f"{text} ({kind})" for text, kind in found]
            if files and len(said) > 1:
                lines += [f"* {files}:", *(f"    * {text}" for text in said)]
            else:
                lines += [f"* {files}: {text}" if files else f"* {text}" for text in said]
        lines.append("")
    return "\n".join(lines)


def _shown(file: str) -> str:
    name = PurePosixPath(file)
    return f"`{'/'.join(name.parts[-2:]) if len(name.name) < SHORT else name.name}`" if file else ""


def page() -> str:
    """Return the page with the tables as they should be."""
    return with_tables(PAGE, BEGIN, tables())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--index"]:
        packaged_index().write_bytes(index_bytes(make_index(Path(sys.argv[2]), DECLARATION).index))
        sys.exit()
    sys.exit(kept(PAGE, page(), sys.argv[1:]))
