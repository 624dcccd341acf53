"""``curation export``: parts of a manifest in the formats that detectors read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.canonical import sha256_of_bytes
from curation.cli.options import SourceOptions
from curation.cli.output import Answer, note, printable
from curation.cli.outputs import FileOrNewFolder
from curation.cli.signature import pairs
from curation.errors import UsageError
from curation.storage import read_bytes

if TYPE_CHECKING:
    from curation.manifest.header import Header, SourceEntry
    from curation.manifest.manifest import Manifest
    from curation.publishing.formats.coco import CocoOptions
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
_JOINABLE = ("coco", "voc", "yolo")
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


@dataclass(frozen=True)
class Options(SourceOptions):
    """Write parts as COCO JSON, VOC XML, YOLO, id lists, or in the layout of the authors' files.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of a manifest at hand
    part
        a part to write, a pattern such as 't*-test', or all; several go into one output (repeatable;
        owod takes all parts by default, findmeifyoucan all splits)
    each
        coco, voc, yolo: every part on its own, a file PART.json or a folder PART in --out
    format
        what to write
    out
        a new folder; for one file, a new file that ends in .json (coco, elephant-json) or .txt (txt)
    renumber
        coco: new image ids 1..n, with tasks new annotation ids too; auto (default): only where ids of
        the sources collide
    category_ids
        coco: the dataset's own ids of classes, or their index in the manifest (0, 1, ... with tasks);
        auto (default): the dataset's own where all files of the manifest number classes alike
    unknown_id
        coco: category id of unknown; by default -1, or beside indices with tasks the number of classes;
        next: after the last class
    sidecar
        coco: also PART.original_categories.json with the class that each annotation had (never for a
        detector)
    detectron2
        coco: also PART.detectron2.py, which registers the file with detectron2; unknown then comes
        after the last class
    unknown
        yolo: unknown objects are the last class (default), or left out
    images
        yolo: folder of photos, to read sizes that the annotations lack; NAME is a source (repeatable);
        imagefolder: the folder that the links lead to
    id_form
        txt: coco:000000000139 (default), 000000000139, 000000000139.jpg or 139
    strict_layout
        elephant-json: only the authors' fields, without difficult flags and original classes
    class_tree
        findmeifyoucan: bbox_labels_600_hierarchy.json, to number Open Images' categories as published
    class_names
        findmeifyoucan: class-descriptions-boxable.csv
    """

    manifest: str
    _: KW_ONLY
    part: tuple[str, ...] = ()
    each: bool = False
    format: Literal[
        "coco", "voc", "yolo", "txt", "owod", "elephant-json", "imagenet-csv", "imagefolder", "findmeifyoucan"
    ]
    out: Annotated[Path, FileOrNewFolder(), "PATH"]
    renumber: Literal["always", "auto", "never"] | None = None
    category_ids: Literal["auto", "dataset", "manifest"] | None = None
    unknown_id: Annotated[str | None, "ID"] = None
    sidecar: bool = False
    detectron2: bool = False
    unknown: Literal["last", "drop"] | None = None
    images: tuple[Annotated[str, "[NAME=]ROOT"], ...] = ()
    id_form: Literal["namespaced", "native", "file_name", "number"] | None = None
    strict_layout: bool = False
    class_tree: Path | None = None
    class_names: Path | None = None


def run(options: Options) -> Answer:
    """Write the export and report what it holds, what was changed and what was left out."""
    from curation.manifest.locate import load_manifest
    from curation.publishing.formats.plan import as_data, write_plan

    _require_fitting(options)
    manifest = load_manifest(options.manifest)
    parts = chosen_parts(manifest.header, options.part or _usual_parts(options, manifest.header))
    options = replace(options, part=tuple(parts))
    _require_one_output(options)
    sources = _sources(options, manifest)
    if options.format == "imagefolder":
        from curation.publishing.formats.plan import Plan

        return _write_links(options, manifest, sources, _summary(options, manifest, sources, Plan((), 0, {})))
    plan = _make_plan(options, manifest, sources)
    summary = _summary(options, manifest, sources, plan)
    single = _is_one_file(options)
    written = write_plan(plan, options.out, single=single, summary=summary)
    for text in plan.notes:
        note(text)
    data = {**summary, "out": str(options.out), "files": [as_data(file) for file in written]}
    return Answer(data, _lines(options.out, plan, written))


def _usual_parts(options: Options, header: Header) -> list[str]:
    """Return what is written without --part: all parts, or the near, far and farther splits in that layout."""
    if options.format != "findmeifyoucan":
        return ["all"]
    from curation.benchmarks.findmeifyoucan.layout import split_parts

    return split_parts(header)


def _require_fitting(options: Options) -> None:
    """Refuse a format that does not fit, and options of another format."""
    for name, owner in _OWN_OPTIONS.items():
        if (name, options.format) == ("images", "imagefolder"):
            continue
        if getattr(options, name) and options.format != owner:
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


def _require_one_output(options: Options) -> None:
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


def _is_one_file(options: Options) -> bool:
    return _ONE_FILE.get(options.format) == options.out.suffix and not options.out.is_dir()


def _sources(options: Options, manifest: Manifest) -> dict[str, Source]:
    """Return the sources of the chosen parts, those given; what neither they nor the category ids need is not read."""
    needed = {slot for part in options.part for slot in manifest.part(part).sources}
    for part in options.part:
        manifest.ids(part)
    slots = manifest.slots
    chosen = [slot for slot in slots if slot.name in needed | _numbering(options, manifest)]
    wanted = {name for slot in chosen for name in (slot.name, slot.dataset)}
    idle = {name for slot in slots for name in (slot.name, slot.dataset)} - wanted
    sources = options.open(chosen, but=idle)
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


def _numbering(options: Options, manifest: Manifest) -> set[str]:
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
        note(
            f"source {entry.name} is not the very file that the manifest was made from, so boxes may differ from its "
            f"counts (`curation verify` tells): {', '.join(sorted(given))} instead of {', '.join(sorted(stated))}"
        )
    for reason, count in sorted(source.dropped.items()):
        if count:
            note(f"source {entry.name}: the reader left out {count} {reason}")


def _summary(
    options: Options, manifest: Manifest, sources: Mapping[str, Source], plan: Plan
) -> dict[str, Any]:
    chosen = {name: _stated(getattr(options, name)) for name in _OWN_OPTIONS if name != "images"}
    return {
        "manifest": f"{manifest.header.name} {manifest.header.version}",
        "manifest_digest": manifest.digest,
        "format": options.format,
        "parts": list(options.part),
        "options": {name: value for name, value in chosen.items() if value},
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


def _write_links(
    options: Options, manifest: Manifest, sources: Mapping[str, Source], summary: Mapping[str, Any]
) -> Answer:
    """Write ``--format imagefolder`` and report it."""
    from curation.benchmarks.imagenet.layout import labelled_images, write_imagefolder

    if len(options.images or ()) != 1:
        # A manifest about boxes is the likelier mistake, and has the better message.
        labelled_images(manifest, options.part[0], sources)
        raise UsageError(
            "--format imagefolder needs the folder of the photos", expected="--images ROOT, once"
        )
    root = Path(options.images[0])
    counts = write_imagefolder(manifest, options.part, sources, root, options.out, summary=summary)
    lines = [f"{count} links in {name}" for name, count in counts.items()]
    data = {**summary, "counts": counts, "out": str(options.out)}
    return Answer(data, [*lines, f"written to {options.out}"])


def _make_plan(options: Options, manifest: Manifest, sources: Mapping[str, Source]) -> Plan:
    """Return the plan of the parts in ``options.part``, joined in one output or, with ``--each``, one by one."""
    if options.each and options.format in _JOINABLE:
        from curation.publishing.formats.plan import joined_plans

        plans = {part: _plan(options, manifest, [part], sources) for part in options.part}
        return joined_plans(plans, folders=options.format != "coco")
    return _plan(options, manifest, options.part, sources)


def _plan(options: Options, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    if options.format == "coco":
        from curation.publishing.formats.coco import plan_coco

        return plan_coco(manifest, parts, sources, _coco_options(options))
    if options.format == "voc":
        from curation.publishing.formats.voc import plan_voc

        return plan_voc(manifest, parts, sources)
    if options.format == "yolo":
        return _yolo_plan(options, manifest, parts, sources)
    if options.format == "txt":
        from curation.publishing.formats.id_lists import plan_lists

        return plan_lists(manifest, parts, sources, options.id_form or "namespaced")
    if options.format == "owod":
        from curation.benchmarks.owod.layout import plan_owod_layout

        return plan_owod_layout(manifest, parts, sources)
    if options.format == "imagenet-csv":
        from curation.benchmarks.imagenet.layout import plan_imagenet_csv

        return plan_imagenet_csv(manifest, parts, sources)
    if options.format == "findmeifyoucan":
        return _findmeifyoucan_plan(options, manifest, parts, sources)
    from curation.benchmarks.elephant.layout import plan_elephant_json

    files = _annotation_files(options, manifest, sources)
    return plan_elephant_json(manifest, parts, sources, files, strict_layout=bool(options.strict_layout))


def _coco_options(options: Options) -> CocoOptions:
    from curation.publishing.formats.coco import CocoOptions

    text = options.unknown_id
    number = "" if text is None else text.removeprefix("-")
    # Longer texts are no id either, and Python refuses to read numbers of thousands of digits.
    if text is not None and text != "next" and not (number.isdecimal() and len(number) < 100):
        raise UsageError("--unknown-id is not a number", expected="next, or a whole number", found=text[:40])
    return CocoOptions(
        renumber=options.renumber or "auto",
        category_ids=options.category_ids or "auto",
        unknown_id="manifest" if text is None else "next" if text == "next" else int(text),
        sidecar=bool(options.sidecar),
        detectron2=bool(options.detectron2),
    )


def _yolo_plan(
    options: Options, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]
) -> Plan:
    from curation.publishing.formats.yolo import plan_yolo
    from curation.publishing.photos import photo_sizes

    sizes = None
    if options.images:
        roots = _photo_roots(options.images, list(sources))
        sizes = photo_sizes(manifest, parts, sources, roots)
    return plan_yolo(manifest, parts, sources, unknown=options.unknown or "last", sizes=sizes)


def _findmeifyoucan_plan(
    options: Options, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]
) -> Plan:
    from curation.benchmarks.findmeifyoucan.categories import open_images_categories
    from curation.benchmarks.findmeifyoucan.layout import plan_findmeifyoucan

    tree, names = options.class_tree, options.class_names
    if (tree is None) != (names is None):
        raise UsageError("--class-tree FILE and --class-names FILE go together")
    table = open_images_categories(tree, names) if tree and names else ()
    return plan_findmeifyoucan(manifest, parts, sources, table)


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


def _annotation_files(options: Options, manifest: Manifest, sources: Mapping[str, Source]) -> dict[str, Path]:
    """Return the annotation file of each source, where it is one file that can be found from ``--source``."""
    given = options.sources
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
