"""``curation renumber``: a COCO JSON file whose image ids repeat, with ids of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, printable
from curation.cli.outputs import OutputFile
from curation.sources.renumbering import Renumbered, renumber


def run(file: Annotated[Renumbered, renumber], /, *, out: Annotated[Path, OutputFile()]) -> Answer:
    """Give images and annotations of a COCO JSON file new ids, where exports were joined without.

    Parameters
    ----------
    out
        the new file
    """
    file.save(out)
    counts = file.counts
    lines = [
        f"{counts['images']:,} images had {counts['image_ids']:,} ids: {counts['repeated_ids']:,} ids of "
        f"{counts['images_concerned']:,} images stood for several",
        f"{counts['annotations']:,} annotations had {counts['annotation_ids']:,} ids; "
        f"{counts['annotations_concerned']:,} named an image id that stood for several",
        f"{file.runs} runs: every annotation names an image of its own run",
        f"written to {printable(str(out))}",
    ]
    return Answer({"file": str(out), "read": file.sha256, "runs": file.runs, **counts}, lines)
