"""``curation inspect``: what an annotation file holds and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.arguments import Workers
from curation.cli.output import Answer, first_rows
from curation.cli.outputs import OutputFile, OwnFolder
from curation.cli.signature import OneOf
from curation.engines.running import EngineName
from curation.errors import UsageError
from curation.sources.inspection import inspect
from curation.sources.presence import presence as scan
from curation.sources.renumbering import renumber as with_new_ids

_SHOWN = 30


def run(
    file: Annotated[str, "FILE"],
    /,
    *,
    presence: Annotated[Path | None, OwnFolder(), "DIR", OneOf("answer")] = None,
    renumber: Annotated[Path | None, OutputFile(), OneOf("answer")] = None,
    engine: EngineName = "local",
    workers: Workers | None = None,
) -> Answer:
    """Print what an annotation file holds: images, classes, boxes, crowds, repeated ids.

    Parameters
    ----------
    file
        COCO JSON; for --presence also box CSV (Open Images), Parquet with an image and a class a row, a folder of such
        files, or an address
    presence
        write which image shows which class into shards: image, class, boxes; the same command resumes after an
        interruption
    renumber
        write the file with new ids of images and annotations: mends files that were joined with repeated ids
    engine
        of --presence: processes of this machine, or Ray (RAY_ADDRESS names a cluster); the same digest
    workers
        of --presence (one a core)
    """
    if presence is None and (engine != "local" or workers is not None):
        raise UsageError("--engine and --workers belong to --presence", hint="curation inspect FILES --presence DIR")
    if presence is not None:
        return _presence(file, presence, engine, workers)
    if renumber is not None:
        return _renumbered(Path(file), renumber)
    found = inspect(Path(file))
    return Answer(found.data(), found.lines())


def _presence(files: str, out: Path, engine: EngineName, workers: int | None) -> Answer:
    found = scan(files, out=out, engine=engine, workers=workers)
    data = found.data()
    ranked = sorted(found.images, key=lambda name: (-found.images[name], name))
    title, columns = f"{data['rows']:,} pairs of image and class in {out}", ("class", "images", "boxes")
    rows = ((name, f"{found.images[name]:,}", f"{found.boxes[name]:,}") for name in ranked)
    lines = first_rows(title, columns, rows, len(ranked), _SHOWN, "--json prints all")
    return Answer(data, [*lines, data["digest"]])


def _renumbered(path: Path, out: Path) -> Answer:
    file = with_new_ids(path)
    file.save(out)
    counts = file.counts
    lines = [
        f"{counts['repeated_ids']:,} of {counts['image_ids']:,} image ids named several of {counts['images']:,} "
        f"images: {counts['images_concerned']:,} images had such an id",
        f"{counts['annotations_concerned']:,} of {counts['annotations']:,} annotations named such an id; "
        f"there were {counts['annotation_ids']:,} annotation ids",
        f"{file.runs} runs: every annotation names an image of its own run",
        f"written to {out}",
    ]
    return Answer({"file": str(out), "read": file.sha256, "runs": file.runs, **counts}, lines)
