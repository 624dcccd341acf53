"""`write_export`: parts of a manifest in a format of detectors, or in the layout of the authors' files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import numpy as np

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ExportError, PresenceOnlyError, UsageError
from curation.core.files import inside, read_bytes
from curation.manifest.header import Header, SourceEntry
from curation.manifest.manifest import Manifest
from curation.publishing.formats.coco import plan_coco
from curation.publishing.formats.content import gather_images, slots_of_parts
from curation.publishing.formats.plan import ExportedFile, Plan, PlannedFile, joined_plans, lines, write_plan
from curation.publishing.formats.plan import FormatOptions as FormatOptions
from curation.publishing.formats.voc import plan_voc
from curation.publishing.formats.yolo import plan_yolo
from curation.sources.photos import size_of_photo
from curation.sources.source import Int32s, Source
from curation.sources.source_specs import Reading


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The input of a format.

    Attributes
    ----------
    manifest : Manifest
    parts : tuple of str
    sources : mapping of str to Source
        Sources of the parts by name; empty if only ids are written.
    options : FormatOptions
    photos : mapping of str to Path
        Folders of photos by source; ``""`` for all other sources.
    """

    manifest: Manifest
    parts: tuple[str, ...]
    sources: Mapping[str, Source]
    options: FormatOptions
    photos: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Format:
    """A format in which parts are written.

    Attributes
    ----------
    name : str
    plan : callable
        Returns the plan of a request.
    options : tuple of str
        Fields of `FormatOptions` that it uses; ``photos`` if it reads folders of photos.
    file : str
        Suffix of the output if it may be a single file; ``""`` if it is always a folder.
    each : {"already", "file", "folder", "never"}
        Effect of ``--each``: parts are separate anyway; each part gets a file, or a folder; or parts cannot be
        separated.
    usual_parts : callable or None
        Returns the parts that are written by default; None if parts must be chosen.
    """

    name: str
    plan: Callable[[ExportRequest], Plan]
    options: tuple[str, ...] = ()
    file: str = ""
    each: Literal["already", "file", "folder", "never"] = "already"
    usual_parts: Callable[[Header], list[str]] | None = None


def photo_sizes(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source], roots: Mapping[str, Path]
) -> Int32s:
    """Return width and height of each image of some parts, shape (n, 2): from the source, else from the photo.

    Only the header of a photo is read. Its orientation tag is applied, because trainers rotate a photo before they use
    its labels.

    Parameters
    ----------
    roots : mapping of str to Path
        Folders of photos by source name; ``""`` for all other sources.

    Raises
    ------
    MissingExtraError
        Pillow is not installed.
    MissingFileError, ExportError, PathEscapeError
        A photo is missing or not an image, or its name leads out of the folder.
    """
    from tqdm import tqdm

    images = gather_images(manifest, parts, sources)
    slots = slots_of_parts(manifest, parts)
    sizes, names = images.sizes, images.photos
    lacking = np.flatnonzero((sizes <= 0).any(axis=1)).tolist()
    for row in tqdm(lacking, desc="photo sizes", unit=" photos", disable=None):
        root = roots.get(slots[images.slot[row]], roots.get(""))
        if root is not None:
            sizes[row] = size_of_photo(inside(root, names[row]), ExportError)
    return sizes


def _plan_yolo(request: ExportRequest) -> Plan:
    sizes = photo_sizes(request.manifest, request.parts, request.sources, request.photos) if request.photos else None
    return plan_yolo(
        request.manifest, request.parts, request.sources, unknown=request.options.unknown or "last", sizes=sizes
    )


def plan_lists(manifest: Manifest, parts: Sequence[str], *, native: bool = False) -> Plan:
    """Return the plan of a list for each part, in the order of the part and with its repeats.

    Parameters
    ----------
    native : bool
        Write ``000000000139`` instead of ``coco:000000000139``.

    Raises
    ------
    ExportError
        The manifest has no part, or a part is chosen twice.
    MissingListError
        See `curation.manifest.manifest.Manifest.ids`.
    """
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    lists = {part: [image.partition(":")[2] if native else image for image in manifest.ids(part)] for part in parts}
    images = sum(map(len, lists.values()))
    files = tuple(PlannedFile(f"{part}.txt", lines(texts)) for part, texts in lists.items())
    return Plan(files, records=images, counts={"images": images})


COCO = Format(
    "coco",
    lambda request: plan_coco(request.manifest, request.parts, request.sources, request.options),
    ("category_ids",),
    file=".json",
    each="file",
)
VOC = Format("voc", lambda request: plan_voc(request.manifest, request.parts, request.sources), each="folder")
YOLO = Format("yolo", _plan_yolo, ("unknown", "photos"), each="folder")
ID_LISTS = Format(
    "txt",
    lambda request: plan_lists(request.manifest, request.parts, native=request.options.id_form == "native"),
    ("id_form",),
    file=".txt",
)
FORMATS: Mapping[str, Format] = {form.name: form for form in (COCO, VOC, YOLO, ID_LISTS)}
"""The formats that do not belong to a benchmark, by name."""


@dataclass(frozen=True, slots=True, repr=False)
class Exported:
    """A written export.

    Attributes
    ----------
    out : Path
    plan : Plan
        Content of the files, changes, and records left out.
    files : tuple of ExportedFile
    summary : dict
        Content of ``_export.json``: the inputs of the export.
    notes : tuple of str
        Sentences about the sources and the files.
    """

    out: Path
    plan: Plan
    files: tuple[ExportedFile, ...]
    summary: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        made = ", ".join(f"{count:,} {name}" for name, count in self.plan.counts.items())
        return f"<Exported {self.summary['format']} of {self.summary['manifest']}: {made}; {self.out}>"

    @property
    def data(self) -> dict[str, Any]:
        """The summary with the output and the digests of its files, as plain data."""
        return {**self.summary, "out": str(self.out), "files": [dataclasses.asdict(file) for file in self.files]}


def write_export(
    manifest: Manifest,
    parts: Sequence[str],
    form: str,
    sources: Mapping[str, Any],
    out: Path,
    *,
    each: bool = False,
    options: FormatOptions | None = None,
    photos: Mapping[str, Path] | None = None,
    reading: Reading | None = None,
    formats: Mapping[str, Format] = FORMATS,
) -> Exported:
    """Write parts of a manifest in a format, completely or not at all.

    Parameters
    ----------
    manifest : Manifest
    parts : sequence of str
        Names, patterns such as ``t*-test``, or ``all``; several parts are written to one output.
    form : str
        A name in `formats`.
    sources : mapping of str to Any
        By ``NAME[@PART]``: see `curation.sources.opening.open_slots`. Only sources of the parts are read.
    out : Path
        A new folder; for a single file, a new file with the suffix of the format.
    each : bool
        Write every part separately: a file ``PART.json`` or a folder ``PART`` in `out`.
    options : FormatOptions, optional
    photos : mapping of str to Path, optional
        Folders of photos by source, ``""`` for all other sources; sizes that annotations lack are read from them.
    reading : Reading, optional
    formats : mapping of str to Format
        Formats by name; `curation.benchmarks.registry.formats` has the authors' layouts too.

    Returns
    -------
    Exported

    Raises
    ------
    UsageError
        An option, the output or the number of parts does not fit the format; a source is missing; no part matches.
    ExportError
        The parts cannot be written in this format.
    ManifestError, MissingListError, OverwriteError
        See `curation.manifest.manifest.Manifest` and `curation.core.writing`.
    """
    if form not in formats:
        raise UsageError("Unknown format", where=ascii(form[:60]), expected=", ".join(formats))
    chosen, options, photos = formats[form], options or FormatOptions(), photos or {}
    parts = parts or (chosen.usual_parts(manifest.header) if chosen.usual_parts else [])
    single = bool(chosen.file) and chosen.file == out.suffix and not out.is_dir()
    _require_own_options(chosen, formats, options, photos)
    _require_output(chosen, formats, parts, out, each=each, single=single)
    names = [slot.name for slot in manifest.slots]
    if strange := [name for name in photos if name and name not in names]:
        raise UsageError(
            "--photos names an unknown source of the manifest", where=ascii(strange[0][:80]), expected=", ".join(names)
        )
    parts = chosen_parts(manifest.header, parts)
    if single and len(parts) > 1 and (each or chosen.each == "already"):
        raise UsageError(
            "Several parts in this format need several files, and --out is one file", where=str(out), hint="--out DIR"
        )
    opened = _sources(chosen, manifest, parts, sources, options, reading or Reading())
    bare = [
        name
        for part in parts
        for name in manifest.part(part).sources
        if name in opened and opened[name].objects is None
    ]
    if bare and chosen in (COCO, VOC, YOLO):
        raise PresenceOnlyError(
            f"--format {form} needs boxes",
            where=f"source {bare[0]}",
            expected="annotations with boxes",
            found="only the classes of each image",
            hint="--format imagenet-csv writes path and class of each image, --format txt the ids",
        )
    request = ExportRequest(manifest, tuple(parts), opened, options, photos)
    if each and chosen.each in ("file", "folder"):
        plans = {part: chosen.plan(dataclasses.replace(request, parts=(part,))) for part in parts}
        plan = joined_plans(plans, folders=chosen.each == "folder")
    else:
        plan = chosen.plan(request)
    summary = _summary(request, form, plan)
    written = write_plan(plan, out, single=single, summary=summary)
    notes = [note for entry in manifest.header.sources for note in _differences(entry, opened)]
    return Exported(out, plan, tuple(written), summary, (*notes, *plan.notes))


def chosen_parts(header: Header, texts: Sequence[str]) -> list[str]:
    """Return the parts that names and patterns select; the parts of a pattern are in the order of the manifest.

    ``all`` selects every part. A pattern adds the parts that are not selected yet.

    Raises
    ------
    UsageError
        A pattern matches no part. (The manifest raises the error for an unknown name.)
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
            raise UsageError(f"--part {ascii(text[:80])[1:-1]} matches no part", expected=", ".join(names)[:300])
        chosen += [name for name in fitting if name not in chosen]
    return chosen


def _require_own_options(
    form: Format, formats: Mapping[str, Format], options: FormatOptions, photos: Mapping[str, Path]
) -> None:
    for name, value in {**_values(options), "photos": photos}.items():
        if value and name not in form.options:
            owner = next((offered.name for offered in formats.values() if name in offered.options), "another")
            raise UsageError(f"--{name.replace('_', '-')} belongs to --format {owner}", found=form.name)


def _require_output(
    form: Format, formats: Mapping[str, Format], parts: Sequence[str], out: Path, *, each: bool, single: bool
) -> None:
    if out.suffix in {offered.file for offered in formats.values() if offered.file} and not (single or out.is_dir()):
        raise UsageError(
            f"--out {out.suffix} does not fit --format {form.name}",
            where=str(out),
            expected="a folder" + (f", or a file that ends in {form.file}" if form.file else ""),
        )
    if not parts:
        raise UsageError(f"--format {form.name} needs --part", expected="--part PART, or --part all")
    if each and form.each == "never":
        raise UsageError(f"--format {form.name} writes one folder for all parts", found="--each")


def _sources(
    form: Format,
    manifest: Manifest,
    parts: Sequence[str],
    raw_sources: Mapping[str, Any],
    options: FormatOptions,
    reading: Reading,
) -> dict[str, Source]:
    """Return the sources that parts and category ids need; none for lists of ids."""
    if form is ID_LISTS:
        return {}
    needed = {slot for part in parts for slot in manifest.part(part).sources}
    for part in parts:
        manifest.ids(part)
    useful = set(needed)
    every = {slot for part in manifest.header.parts for slot in part.sources}
    datasets = {entry.dataset for entry in manifest.header.sources if entry.name in every}
    of_tasks = any(part.task for part in manifest.header.parts)
    if form is COCO and options.category_ids != "manifest" and of_tasks and len(datasets) > 1:
        # Tasks train on some files and test on others: whether classes have ids depends on the files of all parts.
        useful |= every
    chosen = [slot for slot in manifest.slots if slot.name in useful]
    sources = manifest.open_sources(raw_sources, reading, slots=chosen)
    if needed - set(sources):
        raise UsageError(
            "A source of the chosen parts is missing",
            expected=" ".join(f"--source {name}=PATH" for name in sorted(needed)),
            found=", ".join(sources) or "none",
        )
    return sources


def _differences(entry: SourceEntry, sources: Mapping[str, Source]) -> list[str]:
    """Return notes on how a source differs from that of the build, and on records that its reader left out."""
    if entry.name not in sources:
        return []
    source, notes = sources[entry.name], []
    header_digests, read_digests = ({file.sha256 for file in files} for files in (entry.files, source.files))
    # The header of a manifest made from lists has no annotation files.
    if header_digests and header_digests != read_digests:
        notes.append(
            f"source {entry.name} is not the file that the manifest was made from, so boxes may differ from its "
            f"counts (`curation verify` shows them): {', '.join(sorted(read_digests))} instead of "
            f"{', '.join(sorted(header_digests))}"
        )
    left_out = sorted(source.dropped.items())
    return notes + [f"source {entry.name}: the reader left out {count} {reason}" for reason, count in left_out if count]


def _summary(request: ExportRequest, form: str, plan: Plan) -> dict[str, Any]:
    header = request.manifest.header
    chosen = {name: value for name, value in _values(request.options).items() if value}
    # A file is recorded by its digest: its path is only valid on this machine.
    chosen |= {name: sha256_of_bytes(read_bytes(value)) for name, value in chosen.items() if isinstance(value, Path)}
    return {
        "manifest": f"{header.name} {header.version}",
        "manifest_digest": request.manifest.digest,
        "format": form,
        "parts": list(request.parts),
        "options": chosen,
        "sources": {
            name: [{"name": file.name, "sha256": file.sha256} for file in source.files]
            for name, source in sorted(request.sources.items())
        },
        **_counts(plan),
        "notes": list(plan.notes),
    } | ({"by_part": {part: _counts(planned) for part, planned in plan.by_part.items()}} if plan.by_part else {})


def _values(options: FormatOptions) -> dict[str, Any]:
    # The record of a caller may have more fields.
    return {field.name: getattr(options, field.name) for field in dataclasses.fields(FormatOptions)}


def _counts(plan: Plan) -> dict[str, dict[str, int]]:
    return {"counts": dict(plan.counts), "changed": dict(plan.changed), "left_out": dict(plan.left_out)}
