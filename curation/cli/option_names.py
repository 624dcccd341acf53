"""Help of options, and options that are given once (their names: `curation.core.option_names`)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping


class Help(argparse.HelpFormatter):
    """Help that keeps the line breaks of a text: each key of an option has a separate line."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        first, *keys = text.split("\n")
        lines = super()._split_lines(first, width)
        for key in keys:
            head, *rest = super()._split_lines(key, width - 2)
            lines += [f"  {head}", *(f"    {line}" for line in rest)]
        return lines


_CORRECTED = "correct the annotations in FiftyOne or another tool, and give that COCO JSON file as --source or --truth"
RETIRED: Mapping[str, str] = {
    "root": "leave it out: a corpus is a folder of photos or of tar shards (img2dataset writes them)",
    "no-cache": "leave it out: annotation files are read anew each time",
    "added-boxes": _CORRECTED,
    "exhaustive-only": _CORRECTED,
    "set seam": "leave it out: a sign across the seam of a panorama is left out and counted",
    "set wordnet": "leave it out: WordNet 3.0 is built in, and --edges reads another hierarchy",
    "engine": "leave it out: hotcoco computes COCO AP where it is installed (pip install 'curation[fast]'), else "
    "pycocotools",
}
"""Options of earlier versions, or keys of them, that have no equivalent, without dashes, and what to do instead."""

ABOUT: Mapping[str, str] = {
    "on-error": "what to do about data that cannot be used as it is",
    "set": "a setting",
    "key": "where a file has what it is read for",
    "part": "a part of the manifest",
    "labels": "labels of the images",
    "without": "the numbers once more without some images",
}
"""Help of an option that is keys alone."""
