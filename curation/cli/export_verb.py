"""``curation export``: parts of a manifest in the formats that detectors read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.canonical import sha256_of_bytes
from curation.cli.output import emit, printable
from curation.cli.outputs import FileOrNewFolder
from curation.cli.source_options import add_source_options, open_sources, slots_of
from curation.errors import UsageError
from curation.storage import read_bytes

if TYPE_CHECKING:
    from curation.manifest.header import Header, SourceEntry
    from curation.manifest.manifest import Manifest
    from curation.publishing.formats.plan import Plan, WrittenFile
    from curation.sources.source import Source

FORMATS = (
    "coco",
    "voc",
    "yolo",
    "txt",
    "owod",
    "elephant-json",
    "imagenet-csv",
    "imagefolder",
    "findmeifyoucan",
)
_ONE_FILE = {"coco": ".json", "elephant-json": ".json", "txt": ".txt"}
_OWN_OPTIONS = {
    "renumber": "coco",
    "category_ids": "coco",
    "unknown_id": "coco",
    "sidecar": "coco",
    "detectron2": "coco",
    "unknown": "yolo",
    "images": "yolo",
    "id_form": "txt",
    "strict_layout": "elephant-json",
    "class_tree": "findmeifyoucan",
    "class_names": "findmeifyoucan",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation export``."""
    parser.add_argument(
        "manifest", metavar="MANIFEST", help="a folder, or NAME@VERSION of a manifest at hand"
    )
    parser.add_argument(
        "--part",
        action="append",
        help="a part to write, a pattern such as 't*-test', or all; several go into one output (repeatable; owod "
        "takes all parts by default, findmeifyoucan all splits)",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="coco, voc, yolo: every part on its own, a file PART.json or a folder PART in --out",
    )
    parser.add_argument("--format", choices=FORMATS, required=True, help="what to write")
    add_source_options(parser)
    parser.add_argument(
        "--out",
        type=FileOrNewFolder(),
        required=True,
        metavar="PATH",
        help="a new folder; for one file, a new file that ends in .json (coco, elephant-json) or .txt (txt)",
    )
    _add_format_options(parser)
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")


def _add_format_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--renumber",
        choices=("always", "auto", "never"),
        help="coco: new image ids 1..n, with tasks new annotation ids too; auto (default): only where ids of the "
        "sources collide",
    )
    parser.add_argument(
        "--category-ids",
        choices=("auto", "dataset", "manifest"),
        help="coco: the dataset's own ids of classes, or their index in the manifest (0, 1, ... with tasks); auto "
        "(default): the dataset's own where all files of the manifest number classes alike",
    )
    parser.add_argument(
        "--unknown-id",
        metavar="ID",
        help="coco: category id of unknown; by default -1, or beside indices with tasks the number of classes; next: "
        "after the last class",
    )
    parser.add_argument(
        "--sidecar",
        action="store_true",
        default=None,
        help="coco: also PART.original_categories.json with the class that each annotation had (never for a detector)",
    )
    parser.add_argument(
        "--detectron2",
        action="store_true",
        default=None,
        help="coco: also PART.detectron2.py, which registers the file with detectron2; unknown then comes after the "
        "last class",
    )
    parser.add_argument(
        "--unknown",
        choices=("last", "drop"),
        help="yolo: unknown objects are the last class (default), or left out",
    )
    parser.add_argument(
        "--images",
        action="append",
        metavar="[NAME=]ROOT",
        help="yolo: folder of photos, to read sizes that the annotations lack; NAME is a source (repeatable); "
        "imagefolder: the folder that the links lead to",
    )
    parser.add_argument(
        "--id-form",
        choices=("namespaced", "native", "file_name", "number"),
        help="txt: coco:000000000139 (default), 000000000139, 000000000139.jpg or 139",
    )
    parser.add_argument(
        "--strict-layout",
        action="store_true",
        default=None,
        help="elephant-json: only the authors' fields, without difficult flags and original classes",
    )
    parser.add_argument(
        "--class-tree",
        type=Path,
        metavar="FILE",
        help="findmeifyoucan: bbox_labels_600_hierarchy.json, to number Open Images' categories as published",
    )
    parser.add_argument(
        "--class-names", type=Path, metavar="FILE", help="findmeifyoucan: class-descriptions-boxable.csv"
    )


def run(options: argparse.Namespace) -> int:
    """Write the export and report what it holds, what was changed and what was left out."""
    from curation.cli.export_plans import make_plan
    from curation.manifest.locate import load_manifest
    from curation.publishing.formats.plan import as_data, write_plan

    _require_fitting(options)
    manifest = load_manifest(options.manifest)
    options.part = chosen_parts(manifest.header, options.part or _usual_parts(options, manifest.header))
    _require_one_output(options)
    sources = _sources(options, manifest)
    if options.format == "imagefolder":
        from curation.cli.export_imagenet import write_links
        from curation.publishing.formats.plan import Plan

        return write_links(options, manifest, sources, _summary(options, manifest, sources, Plan((), 0, {})))
    plan = make_plan(options, manifest, sources)
    summary = _summary(options, manifest, sources, plan)
    single = _is_one_file(options)
    written = write_plan(plan, options.out, single=single, summary=summary)
    for note in plan.notes:
        _note(note)
    data = {**summary, "out": str(options.out), "files": [as_data(file) for file in written]}
    emit(data, _lines(options.out, plan, written), as_json=options.json)
    return 0


def _usual_parts(options: argparse.Namespace, header: Header) -> list[str]:
    """Return what is written without --part: all parts, or the near, far and farther splits in that layout."""
    if options.format != "findmeifyoucan":
        return ["all"]
    from curation.benchmarks.findmeifyoucan.layout import split_parts

    return split_parts(header)


def _require_fitting(options: argparse.Namespace) -> None:
    """Refuse a format that does not fit, and options of another format."""
    for name, owner in _OWN_OPTIONS.items():
        if (name, options.format) == ("images", "imagefolder"):
            continue
        if getattr(options, name) is not None and options.format != owner:
            raise UsageError(f"--{name.replace('_', '-')} belongs to --format {owner}", found=options.format)
    if options.out.suffix in _ONE_FILE.values() and not (_is_one_file(options) or options.out.is_dir()):
        own = _ONE_FILE.get(options.format)
        raise UsageError(
            f"--out {options.out.suffix} does not fit --format {options.format}",
            where=str(options.out),
            expected="a folder" + (f", or a file that ends in {own}" if own else ""),
        )
    if not options.part and options.format not in ("owod", "findmeifyoucan"):
        raise UsageError(f"--format {options.format} needs --part", expected="--part PART, or --part all")
    if options.each and options.format == "owod":
        raise UsageError("--format owod writes one folder for all parts", found="--each")


def _require_one_output(options: argparse.Namespace) -> None:
    """Refuse one file as the output of what takes several."""
    beside = "--sidecar" if options.sidecar else "--detectron2" if options.detectron2 else ""
    several = len(options.part) > 1 and (options.format != "coco" or options.each)
    if _is_one_file(options) and (several or beside):
        raise UsageError(
            f"{beside} writes a second file, and --out names one"
            if beside
            else "Several parts in this format are several files, and --out names one",
            where=str(options.out),
            hint="--out DIR",
        )


def chosen_parts(header: Header, texts: Sequence[str]) -> list[str]:
    """Return the parts that some names and patterns stand for; those of a pattern in the order of the manifest.

    ``all`` stands for every part. A pattern adds the parts that are not chosen yet.

    Raises
    ------
    UsageError
        A pattern fits no part. (That a plain name is none is for the manifest to say.)
    """
    names = [part.name for part in header.parts]
    chosen: list[str] = []
    for text in texts:
        pattern = "*" if text == "all" else text
        if text in names or not any(sign in pattern for sign in "*?["):
            chosen.append(text)
            continue
        fitting = [name for name in names if fnmatchcase(name, pattern)]
        if not fitting:
            raise UsageError(f"--part {printable(text[:80])} fits no part", expected=", ".join(names)[:300])
        chosen += [name for name in fitting if name not in chosen]
    return chosen


def _is_one_file(options: argparse.Namespace) -> bool:
    return _ONE_FILE.get(options.format) == options.out.suffix and not options.out.is_dir()


def _sources(options: argparse.Namespace, manifest: Manifest) -> dict[str, Source]:
    """Return the sources of the chosen parts, those given; what neither they nor the category ids need is not read."""
    needed = {slot for part in options.part for slot in manifest.part(part).sources}
    for part in options.part:
        manifest.ids(part)
    slots = slots_of(manifest.header)
    chosen = [slot for slot in slots if slot.name in needed | _numbering(options, manifest)]
    wanted = {name for slot in chosen for name in (slot.name, slot.dataset)}
    idle = {name for slot in slots for name in (slot.name, slot.dataset)} - wanted
    used = [text for text in options.source if text.partition("=")[0] not in idle]
    sources = open_sources(argparse.Namespace(**{**vars(options), "source": used}), chosen)
    missing = sorted(needed - set(sources))
    if missing and (options.format != "txt" or options.id_form in ("file_name", "number")):
        raise UsageError(
            "A source of the chosen parts is missing",
            expected=" ".join(f"--source {name}=PATH" for name in sorted(needed)),
            found=", ".join(sources) or "none",
        )
    for entry in manifest.header.sources:
        if entry.name in sources:
            _note_other_bytes(entry, sources[entry.name])
    return {} if missing else sources


def _numbering(options: argparse.Namespace, manifest: Manifest) -> set[str]:
    """Return the sources whose files say together whether the classes have ids of the dataset's own.

    Tasks train on some files and test on others: where these are of several datasets, one part's files do not tell.
    """
    parts = manifest.header.parts
    named = {entry.name: entry.dataset for entry in manifest.header.sources}
    slots = {slot for part in parts for slot in part.sources}
    apart = len({named[slot] for slot in slots}) > 1 and any(part.task for part in parts)
    return slots if options.format == "coco" and options.category_ids != "manifest" and apart else set()


def _note_other_bytes(entry: SourceEntry, source: Source) -> None:
    stated, given = ({file.sha256 for file in files} for files in (entry.files, source.files))
    # A manifest made from lists, not from annotations, states no file of its images.
    if stated and stated != given:
        _note(
            f"source {entry.name} is not the very file that the manifest was made from, so boxes may differ from its "
            f"counts (`curation verify` tells): {', '.join(sorted(given))} instead of {', '.join(sorted(stated))}"
        )
    for reason, count in sorted(source.dropped.items()):
        if count:
            _note(f"source {entry.name}: the reader left out {count} {reason}")


def _summary(
    options: argparse.Namespace, manifest: Manifest, sources: Mapping[str, Source], plan: Plan
) -> dict[str, Any]:
    chosen = {name: _stated(getattr(options, name)) for name in _OWN_OPTIONS if name != "images"}
    return {
        "manifest": f"{manifest.header.name} {manifest.header.version}",
        "manifest_digest": manifest.digest,
        "format": options.format,
        "parts": list(options.part),
        "options": {name: value for name, value in chosen.items() if value is not None},
        "sources": {
            name: [{"name": file.name, "sha256": file.sha256} for file in source.files]
            for name, source in sorted(sources.items())
        },
        **_counts(plan),
        "notes": list(plan.notes),
    } | ({"by_part": {part: _counts(one) for part, one in plan.by_part.items()}} if plan.by_part else {})


def _stated(value: object) -> object:
    """Return an option as the summary states it: a file by its digest, since its path is this machine's."""
    return sha256_of_bytes(read_bytes(value)) if isinstance(value, Path) else value


def _counts(plan: Plan) -> dict[str, dict[str, int]]:
    return {"counts": dict(plan.counts), "changed": dict(plan.changed), "left_out": dict(plan.left_out)}


def _lines(out: Path, plan: Plan, written: Sequence[WrittenFile]) -> list[str]:
    lines = [f"{part}: {line}" for part, one in plan.by_part.items() for line in _count_lines(one)]
    lines += [("in all: " if plan.by_part else "") + line for line in _count_lines(plan)]
    lines += [
        f"{printable(file.name)}  {file.sha256}" + (f"  {file.files} files" if file.files > 1 else "")
        for file in written
    ]
    return [*lines, f"written to {out}"]


def _count_lines(plan: Plan) -> list[str]:
    titles = {"": plan.counts, "changed: ": plan.changed, "left out: ": plan.left_out}
    return [
        title + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        for title, counts in titles.items()
        if counts
    ]


def _note(text: str) -> None:
    print(f"note: {printable(text)}", file=sys.stderr)
