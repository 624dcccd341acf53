"""docs/measures.md, which says of every measure what it is, made from the declarations.

``python -m tests.docs.measure_tables`` says whether the page is up to date; ``--write`` updates it.
"""

import sys

from curation.benchmarks.registry import report_of
from curation.evaluation.measures import Measure
from tests.docs.pages import ROOT, kept, with_tables

PAGE = ROOT / "docs/measures.md"
PROTOCOLS = ("elephant", "voc", "coco", "owod", "rwd", "osod3", "ovcoco", "findmeifyoucan", "imagenet", "openood")
BEGIN = "<!-- made by `python -m tests.docs.measure_tables --write` of the declarations in the program -->\n"


def table(protocol: str) -> str:
    """Return the section of one benchmark: ranked measures in bold; measures of which the same is said share a row."""
    shared = report_of("owod").measures if protocol == "rwd" else ()
    measures = [one for one in report_of(protocol).measures if one not in shared]
    usual = max((one.undefined for one in measures), key=[one.undefined for one in measures].count)
    lines = [f"## {protocol}", ""]
    lines += ["Also the measures of [owod](#owod).", ""] if shared else []

    def row(one: Measure) -> tuple[str, str]:
        special = f" (undefined if {one.undefined})" if one.undefined and one.undefined != usual else ""
        unit = f"{one.unit}, {one.better}" if one.better else one.unit
        return f"{one.formula}{special}".replace("*", "\\*"), unit

    rows: dict[tuple[str, str], list[Measure]] = {}
    for one in measures:
        rows.setdefault(row(one), []).append(one)
    for said, group in rows.items():
        keys = ", ".join(f"**`{one.key}`**" if one.ranked else f"`{one.key}`" for one in group)
        lines.append(f"* {keys} ({said[1]}): {said[0]}")
    sources = dict.fromkeys(one.source for one in measures if one.source)
    otherwise = f"Otherwise undefined if {usual}. " if usual else ""
    return "\n".join([*lines, "", f"{otherwise}Sources: {'; '.join(sources)}.", ""])


def tables() -> str:
    """Return the sections of all benchmarks whose measures are their own."""
    return "\n".join(map(table, PROTOCOLS))


def page() -> str:
    """Return the page with the tables as they should be."""
    return with_tables(PAGE, BEGIN, tables())


if __name__ == "__main__":
    sys.exit(kept(PAGE, page(), sys.argv[1:]))
