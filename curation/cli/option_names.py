"""Help of options, and options of earlier versions (names of options: `curation.core.option_names`)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from curation.core.errors import UsageError


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
    "presence": "read the annotations as a source, or count rows of the table with pandas or pyarrow",
    "set seam": "leave it out: a sign across the seam of a panorama is left out and counted",
    "threshold": "curation similarity neighbors --queries STORE --references STORE lists cosines of embeddings",
    "set edits": "write the hierarchy's edges with the other parents to a file, and name it: --edges FILE",
    "set plant": "leave it out: docs/leaks.md states how many altered copies the check finds",
    "set threads": "leave it out: all cores are used; --workers N starts N processes with one core each",
    "set class_tree": "leave it out: a category has the number that its source gives it",
    "set class_names": "leave it out: a category has the number that its source gives it",
    "set strict_layout": "leave it out: the fields difficult, orig_category_id and orig_category are always written",
    "set wordnet": "leave it out: WordNet 3.0 is built in, and --edges reads another hierarchy",
    "against": "put the numbers side by side yourself: `evaluate` prints ours, --out writes them",
    "bootstrap": "leave it out: evaluate elephant and findmeifyoucan alone draw images again",
    "outcomes": "result.outcomes() in Python has each detection and object, and .frame() a table of them",
    "set boxes": "curation inspect TRUTH --detections FILE --mend boxes=FORM --out MENDED.json writes them as xywh",
    "without related": "--without NAME=LIST, with a list of the images of related classes",
    "rai-template": "leave it out: publish names the statements that are missing, and --rai FILE states them",
    "set unknown_id": "leave it out: unknown is -1, or beside indices with tasks the number of classes",
    "engine": "leave it out: hotcoco computes COCO AP where it is installed (pip install hotcoco), else pycocotools",
    "synset-map": "leave it out, and name the related categories by --near NAME=A,B",
    "only-proposed": "leave it out: images without a proposal come last",
    "lines": "leave it out: decisions apply to manifests, and `curation export` writes the parts of a manifest",
    "set text_margin": "leave it out: prompts are compared by `curation similarity neighbors`",
    "set standard_errors": "leave it out: sets are compared by `curation similarity neighbors`",
    "curation renumber": "curation inspect FILE --renumber NEW.json",
}
"""Options of earlier versions (without dashes), keys of them, and commands, with what to do instead."""


def refuse_retired(option: str, prog: str) -> None:
    """Raise for an option, or ``OPTION KEY``, of an earlier version that has no equivalent."""
    if advice := RETIRED.get(option):
        raise UsageError(f"--{option} of `{prog}` is gone: {advice}")


ABOUT: Mapping[str, str] = {
    "on-error": "what to do with unusable data",
    "set": "a setting",
    "key": "where a file has what it is read for",
    "part": "a part of the manifest",
    "labels": "labels of the images",
    "without": "the numbers once more without some images",
}
"""Help of an option that is keys alone."""
