"""``curation export``: parts of a manifest in the formats that detectors read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from curation.cli.options import SourceOptions
from curation.cli.output import Answer, note, printable
from curation.cli.outputs import FileOrNewFolder
from curation.cli.signature import pairs
from curation.publishing.formats.options import FormatOptions

if TYPE_CHECKING:
    from curation.publishing.exporting import Exported
    from curation.publishing.formats.plan import Plan


@dataclass(frozen=True)
class Options(FormatOptions, SourceOptions):
    """Write parts as COCO JSON, VOC XML, YOLO, id lists, or in the layout of the authors' files.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
    part
        a part to write, a pattern such as 't*-test', or all; several go into one output (repeatable;
        owod takes all parts by default, findmeifyoucan all splits)
    each
        coco, voc, yolo: every part on its own, a file PART.json or a folder PART in --out
    format
        what to write
    out
        a new folder; for one file, a new file that ends in .json (coco, elephant-json) or .txt (txt)
    images
        yolo: folder of photos, to read sizes that the annotations lack; NAME is a source (repeatable);
        imagefolder: the folder that the links lead to
    """

    manifest: str
    _: KW_ONLY
    part: tuple[str, ...] = ()
    each: bool = False
    format: Literal[
        "coco",
        "voc",
        "yolo",
        "txt",
        "owod",
        "elephant-json",
        "imagenet-csv",
        "imagefolder",
        "findmeifyoucan",
        "openood-imglist",
    ]
    out: Annotated[Path, FileOrNewFolder(), "PATH"]
    images: tuple[Annotated[str, "[NAME=]ROOT"], ...] = ()


def run(options: Options) -> Answer:
    """Write the export and report what it holds, what was changed and what was left out."""
    from curation.interface import export
    from curation.manifest.locate import load_manifest

    manifest = load_manifest(options.manifest)
    photos = pairs(options.images, "--images", bare="", known=[slot.name for slot in manifest.slots])
    exported = export(
        manifest,
        options.part,
        options.format,
        options.out,
        sources=options.sources,
        each=options.each,
        photos={name: Path(root) for name, root in photos.items()},
        options=FormatOptions(**{one.name: getattr(options, one.name) for one in fields(FormatOptions)}),
        reading=options.reading,
    )
    for text in exported.notes:
        note(text)
    return Answer(exported.data, _lines(exported))


def _lines(exported: Exported) -> list[str]:
    plan = exported.plan
    if plan.links:
        lines = [f"{count} links in {name}" for name, count in plan.counts.items()]
    else:
        lines = [f"{part}: {line}" for part, one in plan.by_part.items() for line in _count_lines(one)]
        lines += [("in all: " if plan.by_part else "") + line for line in _count_lines(plan)]
    lines += [
        f"{printable(file.name)}  {file.sha256}" + (f"  {file.files} files" if file.files > 1 else "")
        for file in exported.files
    ]
    return [*lines, f"written to {exported.out}"]


def _count_lines(plan: Plan) -> list[str]:
    titles: Mapping[str, Mapping[str, int]] = {
        "": plan.counts,
        "changed: ": plan.changed,
        "left out: ": plan.left_out,
    }
    return [
        title + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        for title, counts in titles.items()
        if counts
    ]
