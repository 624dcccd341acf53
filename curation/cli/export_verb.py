"""``curation export``: parts of a manifest in the formats that detectors read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import emit, printable
from curation.cli.source_options import add_source_options, open_sources, pairs, slots_of
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.header import SourceEntry
    from curation.manifest.manifest import Manifest
    from curation.publishing.plan import Plan, WrittenFile
    from curation.sources.source import Source

FORMATS = ("coco", "voc", "yolo", "txt", "elephant-json", "imagenet-csv", "imagefolder")
_ONE_FILE = {"coco": ".json", "elephant-json": ".json", "txt": ".txt"}
_OWN_OPTIONS = {
    "renumber": "coco",
    "unknown_id": "coco",
    "unknown": "yolo",
    "images": "yolo",
    "id_form": "txt",
    "strict_layout": "elephant-json",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation export``."""
    parser.add_argument(
        "manifest", metavar="MANIFEST", help="a folder, or NAME@VERSION of a manifest at hand"
    )
    parser.add_argument(
        "--part",
        action="append",
        required=True,
        help="a part to write; several go into one output (repeatable)",
    )
    parser.add_argument("--format", choices=FORMATS, required=True, help="what to write")
    add_source_options(parser)
    parser.add_argument(
        "--out",
        type=Path,
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
        help="coco: new image ids 1..n; auto (default): only where ids of the sources collide",
    )
    parser.add_argument(
        "--unknown-id",
        metavar="ID",
        help="coco: category id of unknown; -1 (default), or next: after the last class",
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


def run(options: argparse.Namespace) -> int:
    """Write the export and report what it holds, what was changed and what was left out."""
    from curation.manifest.locate import load_manifest
    from curation.publishing.plan import as_data, require_absent, write_plan

    _require_fitting(options)
    require_absent(options.out)
    manifest = load_manifest(options.manifest)
    sources = _sources(options, manifest)
    if options.format == "imagefolder":
        from curation.cli.export_imagenet import write_links
        from curation.publishing.plan import Plan

        return write_links(options, manifest, sources, _summary(options, manifest, sources, Plan((), 0, {})))
    plan = _plan(options, manifest, sources)
    summary = _summary(options, manifest, sources, plan)
    single = _is_one_file(options)
    written = write_plan(plan, options.out, single=single, summary=summary)
    for note in plan.notes:
        _note(note)
    data = {**summary, "out": str(options.out), "files": [as_data(file) for file in written]}
    emit(data, _lines(options.out, plan, written), as_json=options.json)
    return 0


def _require_fitting(options: argparse.Namespace) -> None:
    """Refuse a format that does not fit, and options of another format."""
    for name, owner in _OWN_OPTIONS.items():
        if getattr(options, name) is not None and options.format != owner:
            if (name, options.format) == ("images", "imagefolder"):
                continue
            raise UsageError(f"--{name.replace('_', '-')} belongs to --format {owner}", found=options.format)
    if options.out.suffix in _ONE_FILE.values() and not (_is_one_file(options) or options.out.is_dir()):
        own = _ONE_FILE.get(options.format)
        raise UsageError(
            f"--out {options.out.suffix} does not fit --format {options.format}",
            where=str(options.out),
            expected="a folder" + (f", or a file that ends in {own}" if own else ""),
        )
    if _is_one_file(options) and len(options.part) > 1 and options.format != "coco":
        raise UsageError(
            "Several parts in this format are several files, and --out names one",
            where=str(options.out),
            hint="--out DIR",
        )


def _is_one_file(options: argparse.Namespace) -> bool:
    return _ONE_FILE.get(options.format) == options.out.suffix and not options.out.is_dir()


def _sources(options: argparse.Namespace, manifest: Manifest) -> dict[str, Source]:
    """Return the sources of the chosen parts, those given; what no part needs is not read."""
    needed = {slot for part in options.part for slot in manifest.part(part).sources}
    for part in options.part:
        manifest.ids(part)
    slots = slots_of(manifest.header)
    chosen = [slot for slot in slots if slot.name in needed]
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


def _note_other_bytes(entry: SourceEntry, source: Source) -> None:
    stated, given = ({file.sha256 for file in files} for files in (entry.files, source.files))
    if stated != given:
        _note(
            f"source {entry.name} is not the very file that the manifest was made from, so boxes may differ from its "
            f"counts (`curation verify` tells): {', '.join(sorted(given))} instead of {', '.join(sorted(stated))}"
        )
    for reason, count in sorted(source.dropped.items()):
        if count:
            _note(f"source {entry.name}: the reader left out {count} {reason}")


def _plan(options: argparse.Namespace, manifest: Manifest, sources: Mapping[str, Source]) -> Plan:
    parts: Sequence[str] = options.part
    if options.format == "coco":
        from curation.publishing.coco_json import plan_coco

        return plan_coco(manifest, parts, sources, _coco_options(options))
    if options.format == "voc":
        from curation.publishing.voc_xml import plan_voc

        return plan_voc(manifest, parts, sources)
    if options.format == "yolo":
        return _yolo_plan(options, manifest, sources)
    if options.format == "txt":
        from curation.publishing.id_lists import plan_lists

        return plan_lists(manifest, parts, sources, options.id_form or "namespaced")
    if options.format == "imagenet-csv":
        from curation.publishing.imagenet_csv import plan_imagenet_csv

        return plan_imagenet_csv(manifest, parts, sources)
    from curation.publishing.authors import plan_authors

    files = _annotation_files(options, manifest, sources)
    return plan_authors(manifest, parts, sources, files, strict_layout=bool(options.strict_layout))


def _coco_options(options: argparse.Namespace) -> Any:
    from curation.manifest.roles import UNKNOWN_ID
    from curation.publishing.coco_json import CocoOptions

    text = options.unknown_id
    if text is not None and text != "next" and not text.removeprefix("-").isdecimal():
        raise UsageError(
            "--unknown-id is not a number", expected="-1, next, or a whole number", found=text[:40]
        )
    unknown_id = UNKNOWN_ID if text is None else None if text == "next" else int(text)
    return CocoOptions(renumber=options.renumber or "auto", unknown_id=unknown_id)


def _yolo_plan(options: argparse.Namespace, manifest: Manifest, sources: Mapping[str, Source]) -> Plan:
    from curation.publishing.photo_sizes import photo_sizes
    from curation.publishing.yolo import plan_yolo

    sizes = None
    if options.images:
        roots = _photo_roots(options.images, list(sources))
        sizes = photo_sizes(manifest, options.part, sources, roots)
    return plan_yolo(manifest, options.part, sources, unknown=options.unknown or "last", sizes=sizes)


def _photo_roots(texts: Sequence[str], slots: Sequence[str]) -> dict[str, Path]:
    named = [text for text in texts if text.partition("=")[0] in slots and "=" in text]
    roots = {name: Path(path) for name, path in pairs(named, "--images").items()}
    others = [text for text in texts if text not in named]
    if len(others) > 1:
        raise UsageError(
            "--images names several folders for all sources",
            expected=" ".join(f"--images {slot}=ROOT" for slot in slots),
            found=", ".join(others)[:200],
        )
    return roots | ({"": Path(others[0])} if others else {})


def _annotation_files(
    options: argparse.Namespace, manifest: Manifest, sources: Mapping[str, Source]
) -> dict[str, Path]:
    """Return the annotation file of each source, where it is one file that can be found from ``--source``."""
    given = pairs(options.source, "--source")
    files: dict[str, Path] = {}
    for entry in manifest.header.sources:
        root = given.get(entry.name, given.get(entry.dataset))
        if root is None or entry.name not in sources:
            continue
        for record in sources[entry.name].files:
            candidates = [Path(root), Path(root) / record.name, Path(root) / "annotations" / record.name]
            found = [path for path in candidates if path.is_file()]
            if found:
                files[entry.name] = found[0]
    return files


def _summary(
    options: argparse.Namespace, manifest: Manifest, sources: Mapping[str, Source], plan: Plan
) -> dict[str, Any]:
    chosen = {name: getattr(options, name) for name in _OWN_OPTIONS if name != "images"}
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
        "counts": dict(plan.counts),
        "changed": dict(plan.changed),
        "left_out": dict(plan.left_out),
        "notes": list(plan.notes),
    }


def _lines(out: Path, plan: Plan, written: Sequence[WrittenFile]) -> list[str]:
    titles = {"": plan.counts, "changed: ": plan.changed, "left out: ": plan.left_out}
    lines = [
        title + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        for title, counts in titles.items()
        if counts
    ]
    lines += [
        f"{printable(file.name)}  {file.sha256}" + (f"  {file.files} files" if file.files > 1 else "")
        for file in written
    ]
    return [*lines, f"written to {out}"]


def _note(text: str) -> None:
    print(f"note: {printable(text)}", file=sys.stderr)
