"""docs/measures.md, which says of every measure what it is, made from the declarations.

``python -m tests.docs.measure_tables`` says whether the page is up to date; ``--write`` updates it.
"""

import sys

from curation.benchmarks.registry import report_of
from tests.docs.pages import ROOT, kept, with_tables

PAGE = ROOT / "docs/measures.md"
PROTOCOLS = ("elephant", "voc", "coco", "owod", "rwd", "osod3", "ovcoco", "findmeifyoucan", "imagenet", "openood")
BEGIN = "<!-- made by `python -m tests.docs.measure_tables --write` of the declarations in the program -->\n"


def table(protocol: str) -> str:
    """Return the section of one benchmark: ranked measures in bold; measures of which the same is said share a row."""
    shared = report_of("owod").measures if protocol == "rwd" else ()
    measures = [measure for measure in report_of(protocol).measures if measure not in shared]
    lines = [f"## {protocol}", ""]
    lines += ["Also the measures of [owod](#owod).", ""] if shared else []
    units = [measure.unit + {"higher": "↑", "lower": "↓", "": ""}[measure.better or ""] for measure in measures]
    lines += [f"Each in {units[0]}.", ""] if (alike := len(set(units)) == 1) else []
    rows: dict[str, list[str]] = {}
    reasons: dict[str, list[str]] = {}
    for measure, unit in zip(measures, units, strict=True):
        key = f"`{measure.key}`"
        text = ("" if alike else f" ({unit})") + f": {measure.formula}".replace("*", "\\*")
        rows.setdefault(text, []).append(f"**{key}**" if measure.ranked else key)
        if measure.undefined:
            reasons.setdefault(measure.undefined, []).append(key)
    lines += [f"* {', '.join(keys)}{text}" for text, keys in rows.items()]
    usual = max(reasons, key=lambda reason: len(reasons[reason]), default="")
    undefined = [f"{', '.join(keys)} if {reason}" for reason, keys in reasons.items() if reason != usual]
    undefined += [f"{'others' if undefined else ''} if {usual}".strip()] if usual else []
    lines += ["", f"Undefined: {'; '.join(undefined)}."] if undefined else []
    sources = dict.fromkeys(part for measure in measures for part in measure.source.split("; ") if part)
    return "\n".join([*lines, "", f"Sources: {'; '.join(sources)}.", ""])


def tables() -> str:
    """Return the sections of all benchmarks whose measures are their own."""
    return "\n".join(map(table, PROTOCOLS))


def page() -> str:
    """Return the page with the tables as they should be."""
    return with_tables(PAGE, BEGIN, tables())


if __name__ == "__main__":
    sys.exit(kept(PAGE, page(), sys.argv[1:]))
