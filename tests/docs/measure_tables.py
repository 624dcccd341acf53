"""The tables of docs/metrics.md that say of every measure what it is, made of the declarations.

``python -m tests.docs.measure_tables`` says whether the page is as they say; ``--write`` makes it so.
"""

import sys

from curation.evaluation.measures import measure_table
from curation.evaluation.protocols import report_of
from tests.docs.pages import ROOT, kept, with_tables

PAGE = ROOT / "docs/metrics.md"
PROTOCOLS = ("elephant", "voc", "coco", "owod", "rwd", "osod3", "ovcoco", "findmeifyoucan", "imagenet", "openood")
BEGIN = "<!-- made by `python -m tests.docs.measure_tables --write` of the declarations in the program -->\n"


def tables() -> str:
    """Return the tables, one a protocol; a measure in bold is one that leaderboards rank by."""
    parts = []
    for protocol in PROTOCOLS:
        lines = measure_table(report_of(protocol).measures)
        parts.append("\n".join([f"### Measures of {protocol}", "", *lines, ""]))
    return "\n".join(parts)


def page() -> str:
    """Return the page with the tables as they should be."""
    return with_tables(PAGE, BEGIN, tables())


if __name__ == "__main__":
    sys.exit(kept(PAGE, page(), sys.argv[1:]))
