"""``curation presence``: which images show which classes, out of annotation files of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import OwnFolder
from curation.sources.presence import Presence, presence

_SHOWN = 30


def run(*, out: Annotated[Path, OwnFolder(), "DIR"], found: Annotated[Presence, presence]) -> Answer:
    """Which images show which classes, out of annotation files of any size.

    Parameters
    ----------
    out
        shards of image, class and boxes; the same command goes on where it was interrupted
    """
    data = found.data()
    ranked = sorted(found.images, key=lambda name: (-found.images[name], name))
    table = Table(
        f"{data['rows']:,} pairs of image and class in {out}",
        ("class", "images", "boxes"),
        tuple((name, f"{found.images[name]:,}", f"{found.boxes[name]:,}") for name in ranked[:_SHOWN]),
    )
    more = [f"… and {len(ranked) - _SHOWN:,} more: --json tells all"] if len(ranked) > _SHOWN else []
    return Answer(data, [*table_lines(table), *more, data["digest"]])
