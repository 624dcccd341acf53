"""`export`: parts of a manifest in the formats that detectors read, or in the layout of the authors' files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.canonical import sha256_of_bytes
from curation.errors import UsageError
from curation.key_value import pairs
from curation.manifest.header import Header, SourceEntry
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.publishing.formats.options import ExportOptions
from curation.publishing.formats.plan import Plan, WrittenFile, as_data, joined_plans, write_plan
from curation.sources.slots import Reading, open_slots
from curation.sources.source import Source
from curation.storage import read_bytes
from curation.text_table import printable

if TYPE_CHECKING:
    from curation.publishing.formats.coco import CocoOptions

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


@dataclass(frozen=True, kw_only=True)
class _Job(ExportOptions):
    """The options of one export, where it goes, what it reads, and who is told."""

    out: Path
    given: Mapping[str, Any]
    reading: Reading
    tell: Callable[[str], None]


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes
    ----------
    out : Path
    summary : mapping
        Manifest, format, parts, options, digests of the sources, counts, notes.
    plan : Plan
    files : tuple of WrittenFile
        None of a folder of links.
    links : mapping of str to int
        Links by folder, of ``imagefolder`` alone.
    """

    out: Path
    summary: Mapping[str, Any]
    plan: Plan
    files: tuple[WrittenFile, ...] = ()
    links: Mapping[str, int] | None = None

    def as_data(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        if self.links is not None:
            return {**self.summary, "counts": self.links, "out": str(self.out)}
        return {**self.summary, "out": str(self.out), "files": [as_data(file) for file in self.files]}


def export(
    manifest: Manifest | Path | str,
    out: Path | str,
    *,
    sources: Mapping[str, Any] | None = None,
    options: ExportOptions | None = None,
    reading: Reading | None = None,
    tell: Callable[[str], None] = warnings.warn,
    **more: Any,
) -> Exported:
    """Write parts of a manifest as COCO JSON, VOC XML, YOLO, id lists, or in the layout of the authors' files.

    Parameters
    ----------
    manifest : Manifest, Path or str
        Itself, its folder or its name.
    out : Path or str
        A new folder; for one file, one that ends in ``.json`` or ``.txt``.
    sources : mapping of str to path or annotations, optional
        By ``NAME[@PART]``: the sources of the parts.
    options : ExportOptions, optional
        What is written; or its fields as arguments: ``format="coco", part=["t2-test"]``.
    reading : Reading, optional
        How the sources are read.
    tell : callable
        Takes what a reader should know in words.
    **more
        Fields of `ExportOptions`.

    Raises
    ------
    UsageError
        Options do not fit together, or a source of the parts is missing.
    ExportError
        The format cannot hold what the parts are.

    Examples
    --------
    >>> import curation, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = curation.export("elephant/val2017", f"{folder}/ids.txt", format="txt", part=["wilderness"])
    ...     len(pathlib.Path(made.out).read_text().splitlines())
    969
    """
    said = options or ExportOptions(**{**more, "part": tuple(more.get("part", ()))})
    own = {field.name: getattr(said, field.name) for field in fields(ExportOptions)}
    job = _Job(**own, out=Path(out), given=sources or {}, reading=reading or Reading(), tell=tell)
    _require_fitting(job)
    held = manifest if isinstance(manifest, Manifest) else load_manifest(manifest)
    parts = chosen_parts(held.header, job.part or _usual_parts(job, held.header))
    job = replace(job, part=tuple(parts))
    _require_one_output(job)
    opened = _sources(job, held)
    if job.format == "imagefolder":
        return _links(job, held, opened)
    plan = _make_plan(job, held, opened)
    summary = _summary(job, held, opened, plan)
    written = write_plan(plan, job.out, single=_is_one_file(job), summary=summary)
    for text in plan.notes:
        tell(text)
    return Exported(job.out, summary, plan, tuple(written))


def _links(job: _Job, manifest: Manifest, sources: Mapping[str, Source]) -> Exported:
    """Write ``--format imagefolder``."""
    from curation.benchmarks.imagenet.layout import labelled_images, write_imagefolder

    if len(job.images) != 1:
        # A manifest about boxes is the likelier mistake, and has the better message.
        labelled_images(manifest, job.part[0], sources)
        raise UsageError(
            "--format imagefolder needs the folder of the photos", expected="--images ROOT, once"
        )
    nothing = Plan((), 0, {})
    summary = _summary(job, manifest, sources, nothing)
    root = Path(job.images[0])
    counts = write_imagefolder(manifest, job.part, sources, root, job.out, summary=summary)
    return Exported(job.out, summary, nothing, links=counts)


def _usual_parts(job: _Job, header: Header) -> list[str]:
    """Return what is written without --part: all parts, or the near, far and farther splits in that layout."""
    if job.format != "findmeifyoucan":
        return ["all"]
    from curation.benchmarks.findmeifyoucan.layout import split_parts

    return split_parts(header)


def _require_fitting(job: _Job) -> None:
    """Refuse a format that does not fit, and options of another format."""
    for name, owner in _OWN_OPTIONS.items():
        if (name, job.format) == ("images", "imagefolder"):
            continue
        if getattr(job, name) and job.format != owner:
            raise UsageError(f"--{name.replace('_', '-')} belongs to --format {owner}", found=job.format)
    if job.out.suffix in _ONE_FILE.values() and not (_is_one_file(job) or job.out.is_dir()):
        own = _ONE_FILE.get(job.format)
        raise UsageError(
            f"--out {job.out.suffix} does not fit --format {job.format}",
            where=str(job.out),
            expected="a folder" + (f", or a file that ends in {own}" if own else ""),
        )
    if not job.part and job.format not in ("owod", "findmeifyoucan"):
        raise UsageError(f"--format {job.format} needs --part", expected="--part PART, or --part all")
    if job.each and job.format == "owod":
        raise UsageError("--format owod writes one folder for all parts", found="--each")


def _require_one_output(job: _Job) -> None:
    """Refuse one file as the output of what takes several."""
    beside = "--sidecar" if job.sidecar else "--detectron2" if job.detectron2 else ""
    several = len(job.part) > 1 and (job.format != "coco" or job.each)
    if _is_one_file(job) and (several or beside):
        raise UsageError(
            f"{beside} writes a second file, and --out names one"
            if beside
            else "Several parts in this format are several files, and --out names one",
            where=str(job.out),
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


def _is_one_file(job: _Job) -> bool:
    return _ONE_FILE.get(job.format) == job.out.suffix and not job.out.is_dir()


def _sources(job: _Job, manifest: Manifest) -> dict[str, Source]:
    """Return the sources of the chosen parts, those given; what neither they nor the category ids need is not read."""
    needed = {slot for part in job.part for slot in manifest.part(part).sources}
    for part in job.part:
        manifest.ids(part)
    slots = manifest.slots
    chosen = [slot for slot in slots if slot.name in needed | _numbering(job, manifest)]
    wanted = {name for slot in chosen for name in (slot.name, slot.dataset)}
    idle = {name for slot in slots for name in (slot.name, slot.dataset)} - wanted
    given = {key: one for key, one in job.given.items() if key.partition("@")[0] not in idle}
    sources = open_slots(given, chosen, job.reading)
    missing = sorted(needed - set(sources))
    if missing and (job.format != "txt" or job.id_form in ("file_name", "number")):
        raise UsageError(
            "A source of the chosen parts is missing",
            expected=" ".join(f"--source {name}=PATH" for name in sorted(needed)),
            found=", ".join(sources) or "none",
        )
    for entry in manifest.header.sources:
        if entry.name in sources:
            _note_other_bytes(entry, sources[entry.name], job.tell)
    return {} if missing else sources


def _numbering(job: _Job, manifest: Manifest) -> set[str]:
    """Return the sources whose files say together whether the classes have ids of the dataset's own.

    Tasks train on some files and test on others: where these are of several datasets, one part's files do not tell.
    """
    parts = manifest.header.parts
    named = {entry.name: entry.dataset for entry in manifest.header.sources}
    slots = {slot for part in parts for slot in part.sources}
    apart = len({named[slot] for slot in slots}) > 1 and any(part.task for part in parts)
    return slots if job.format == "coco" and job.category_ids != "manifest" and apart else set()


def _note_other_bytes(entry: SourceEntry, source: Source, tell: Callable[[str], None]) -> None:
    stated, given = ({file.sha256 for file in files} for files in (entry.files, source.files))
    # A manifest made from lists, not from annotations, states no file of its images.
    if stated and stated != given:
        tell(
            f"source {entry.name} is not the very file that the manifest was made from, so boxes may differ from its "
            f"counts (`curation verify` tells): {', '.join(sorted(given))} instead of {', '.join(sorted(stated))}"
        )
    for reason, count in sorted(source.dropped.items()):
        if count:
            tell(f"source {entry.name}: the reader left out {count} {reason}")


def _summary(job: _Job, manifest: Manifest, sources: Mapping[str, Source], plan: Plan) -> dict[str, Any]:
    chosen = {name: _stated(getattr(job, name)) for name in _OWN_OPTIONS if name != "images"}
    return {
        "manifest": f"{manifest.header.name} {manifest.header.version}",
        "manifest_digest": manifest.digest,
        "format": job.format,
        "parts": list(job.part),
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


def _make_plan(job: _Job, manifest: Manifest, sources: Mapping[str, Source]) -> Plan:
    """Return the plan of the parts in ``job.part``, joined in one output or, with ``--each``, one by one."""
    if job.each and job.format in _JOINABLE:
        plans = {part: _plan(job, manifest, [part], sources) for part in job.part}
        return joined_plans(plans, folders=job.format != "coco")
    return _plan(job, manifest, job.part, sources)


def _plan(job: _Job, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    if job.format == "coco":
        from curation.publishing.formats.coco import plan_coco

        return plan_coco(manifest, parts, sources, _coco_options(job))
    if job.format == "voc":
        from curation.publishing.formats.voc import plan_voc

        return plan_voc(manifest, parts, sources)
    if job.format == "yolo":
        return _yolo_plan(job, manifest, parts, sources)
    if job.format == "txt":
        from curation.publishing.formats.id_lists import plan_lists

        return plan_lists(manifest, parts, sources, job.id_form or "namespaced")
    if job.format == "owod":
        from curation.benchmarks.owod.layout import plan_owod_layout

        return plan_owod_layout(manifest, parts, sources)
    if job.format == "imagenet-csv":
        from curation.benchmarks.imagenet.layout import plan_imagenet_csv

        return plan_imagenet_csv(manifest, parts, sources)
    if job.format == "findmeifyoucan":
        return _findmeifyoucan_plan(job, manifest, parts, sources)
    from curation.benchmarks.elephant.layout import plan_elephant_json

    files = _annotation_files(job, manifest, sources)
    return plan_elephant_json(manifest, parts, sources, files, strict_layout=bool(job.strict_layout))


def _coco_options(job: _Job) -> CocoOptions:
    from curation.publishing.formats.coco import CocoOptions

    text = job.unknown_id
    number = "" if text is None else text.removeprefix("-")
    # Longer texts are no id either, and Python refuses to read numbers of thousands of digits.
    if text is not None and text != "next" and not (number.isdecimal() and len(number) < 100):
        raise UsageError("--unknown-id is not a number", expected="next, or a whole number", found=text[:40])
    return CocoOptions(
        renumber=job.renumber or "auto",
        category_ids=job.category_ids or "auto",
        unknown_id="manifest" if text is None else "next" if text == "next" else int(text),
        sidecar=bool(job.sidecar),
        detectron2=bool(job.detectron2),
    )


def _yolo_plan(job: _Job, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    from curation.publishing.formats.yolo import plan_yolo
    from curation.publishing.photos import photo_sizes

    sizes = None
    if job.images:
        roots = _photo_roots(job.images, list(sources))
        sizes = photo_sizes(manifest, parts, sources, roots)
    return plan_yolo(manifest, parts, sources, unknown=job.unknown or "last", sizes=sizes)


def _findmeifyoucan_plan(
    job: _Job, manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]
) -> Plan:
    from curation.benchmarks.findmeifyoucan.categories import open_images_categories
    from curation.benchmarks.findmeifyoucan.layout import plan_findmeifyoucan

    tree, names = job.class_tree, job.class_names
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


def _annotation_files(job: _Job, manifest: Manifest, sources: Mapping[str, Source]) -> dict[str, Path]:
    """Return the annotation file of each source, where it is one file that can be found from ``--source``."""
    given = {key: one for key, one in job.given.items() if isinstance(one, str | Path)}
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
