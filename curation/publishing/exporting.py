"""`write_export`: parts of a manifest in a format that detectors read, or in the layout of the authors' own files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ExportError, UsageError
from curation.core.files import read_bytes
from curation.manifest.header import Header, SourceEntry
from curation.manifest.manifest import Manifest
from curation.publishing.formats.coco import plan_coco
from curation.publishing.formats.content import ContentImages, gather_images
from curation.publishing.formats.plan import FormatOptions as FormatOptions
from curation.publishing.formats.plan import Plan, PlannedFile, WrittenFile, joined_plans, lines, safe_name, write_plan
from curation.publishing.formats.voc import plan_voc
from curation.publishing.formats.yolo import plan_yolo
from curation.publishing.photos import photo_sizes
from curation.sources.opening import open_slots
from curation.sources.source import Source
from curation.sources.source_specs import Reading


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What a format is asked to write.

    Attributes
    ----------
    manifest : Manifest
    parts : tuple of str
    sources : mapping of str to Source
        Those of the parts, by name; none where one of them is not given and the format needs none.
    options : FormatOptions
    photos : mapping of str to Path
        Folders of photos by source, that of all others under ``""``.
    """

    manifest: Manifest
    parts: tuple[str, ...]
    sources: Mapping[str, Source]
    options: FormatOptions
    photos: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Format:
    """One form in which parts are written.

    Attributes
    ----------
    name : str
    plan : callable
        Gives the plan of a request.
    options : tuple of str
        Fields of `FormatOptions` that belong to it; ``photos`` where it reads folders of photos.
    file : str
        Suffix of the one file that may be the output, ``""`` where it is always a folder.
    each : {"already", "file", "folder", "never"}
        How parts are written one by one: they are so anyway; each gets a file, or a folder;
        or all of them are one thing.
    usual_parts : callable or None
        Names the parts of a manifest that are written where none is chosen; None: one has to be.
    """

    name: str
    plan: Callable[[ExportRequest], Plan]
    options: tuple[str, ...] = ()
    file: str = ""
    each: Literal["already", "file", "folder", "never"] = "already"
    usual_parts: Callable[[Header], list[str]] | None = None


def _plan_yolo(request: ExportRequest) -> Plan:
    sizes = photo_sizes(request.manifest, request.parts, request.sources, request.photos) if request.photos else None
    return plan_yolo(
        request.manifest, request.parts, request.sources, unknown=request.options.unknown or "last", sizes=sizes
    )


IdForm = Literal["namespaced", "native", "file_name", "number"]
NEEDS_SOURCES = ("file_name", "number")


def plan_lists(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source] | None = None, form: IdForm = "namespaced"
) -> Plan:
    """Return the plan of a list for each part, in the order of the part; a line that names an image again is kept.

    Parameters
    ----------
    sources : mapping of str to Source, optional
        Only needed for ``file_name`` and ``number``; where given for another form, the ids must exist there.
    form : {"namespaced", "native", "file_name", "number"}
        ``coco:000000000139``, ``000000000139``, ``000000000139.jpg`` or ``139``.

    Raises
    ------
    ExportError
        The form needs a source; an image has no file name, or a hostile one; no part or one twice.
    ManifestError, MissingListError
        See `curation.manifest.views.locate_images`.
    """
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    if form in NEEDS_SOURCES and not sources:
        raise ExportError(
            f"The id form {form!r} needs the sources",
            where="--set id_form",
            expected=" ".join(f"--source {slot}=PATH" for slot in manifest.part(parts[0]).sources),
        )
    lists = {part: _list_lines(manifest, part, sources, form) for part in parts}
    return Plan(
        files=tuple(PlannedFile(f"{part}.txt", lines(texts)) for part, texts in lists.items()),
        records=sum(map(len, lists.values())),
        counts={"images": sum(map(len, lists.values()))},
    )


def _list_lines(manifest: Manifest, part: str, sources: Mapping[str, Source] | None, form: IdForm) -> Sequence[str]:
    ids = manifest.ids(part)
    images = gather_images(manifest, [part], sources) if sources else None
    if images is not None and form in NEEDS_SOURCES:
        names = _file_names(images) if form == "file_name" else map(str, images.numbers.tolist())
        text_of = dict(zip(images.ids, names, strict=True))
        return [text_of[image] for image in ids]
    return ids if form == "namespaced" else [image.partition(":")[2] for image in ids]


def _file_names(images: ContentImages) -> list[str]:
    names: list[str] = images.file_names.tolist()
    for name, image in zip(names, images.ids, strict=True):
        if not name:
            raise ExportError("The source gives no file name for an image", where=image, hint="--set id_form=native")
        safe_name(name, image)
    return names


COCO = Format(
    "coco",
    lambda request: plan_coco(request.manifest, request.parts, request.sources, request.options),
    ("category_ids", "unknown_id"),
    file=".json",
    each="file",
)
VOC = Format("voc", lambda request: plan_voc(request.manifest, request.parts, request.sources), each="folder")
YOLO = Format("yolo", _plan_yolo, ("unknown", "photos"), each="folder")
ID_LISTS = Format(
    "txt",
    lambda request: plan_lists(
        request.manifest, request.parts, request.sources, request.options.id_form or "namespaced"
    ),
    ("id_form",),
    file=".txt",
)
FORMATS: Mapping[str, Format] = {form.name: form for form in (COCO, VOC, YOLO, ID_LISTS)}
"""The formats that belong to no benchmark, by name."""


@dataclass(frozen=True, slots=True, repr=False)
class Exported:
    """What was written.

    Attributes
    ----------
    out : Path
    plan : Plan
        What the files hold, what was changed and what was left out.
    files : tuple of WrittenFile
    summary : dict
        As in ``_export.json``: what the files were made from.
    notes : tuple of str
        What to know of the sources and the files.
    """

    out: Path
    plan: Plan
    files: tuple[WrittenFile, ...]
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
    """Write parts of a manifest in a format, all files or none.

    Parameters
    ----------
    manifest : Manifest
    parts : sequence of str
        Names, patterns such as ``t*-test``, or ``all``; several go into one output.
    form : str
        A name in `formats`.
    sources : mapping of str to Any
        By ``NAME[@PART]``: see `curation.sources.opening.open_slots`. What the parts do not need is not read.
    out : Path
        A new folder; for one file, a new file that ends as the format says.
    each : bool
        Every part on its own, a file ``PART.json`` or a folder ``PART`` in `out`.
    options : FormatOptions, optional
    photos : mapping of str to Path, optional
        Folders of photos by source, that of all others under ``""``: to read sizes that annotations lack.
    reading : Reading, optional
    formats : mapping of str to Format
        Those of detectors, and with the authors' own `curation.benchmarks.registry.formats`.

    Returns
    -------
    Exported

    Raises
    ------
    UsageError
        An option, output or number of parts does not fit the format; a source of the parts is missing; no part fits.
    ExportError
        The parts cannot be written in this format.
    ManifestError, MissingListError, OverwriteError
        See `curation.manifest.manifest.Manifest` and `curation.core.writing`.
    """
    chosen, options, photos = find_format(form, formats), options or FormatOptions(), photos or {}
    parts = parts or (chosen.usual_parts(manifest.header) if chosen.usual_parts else [])
    single = bool(chosen.file) and chosen.file == out.suffix and not out.is_dir()
    _require_own_options(chosen, formats, options, photos)
    _require_output(chosen, formats, parts, out, each=each, single=single)
    names = [slot.name for slot in manifest.slots]
    if strange := [name for name in photos if name and name not in names]:
        raise UsageError(
            "--photos names no source of the manifest", where=ascii(strange[0][:80]), expected=", ".join(names)
        )
    parts = chosen_parts(manifest.header, parts)
    if single and len(parts) > 1 and (each or chosen.each == "already"):
        raise UsageError(
            "Several parts in this format are several files, and --out names one", where=str(out), hint="--out DIR"
        )
    opened, usable = _sources(chosen, manifest, parts, sources, options, reading or Reading())
    request = ExportRequest(manifest, tuple(parts), usable, options, photos)
    if each and chosen.each in ("file", "folder"):
        plans = {part: chosen.plan(dataclasses.replace(request, parts=(part,))) for part in parts}
        plan = joined_plans(plans, folders=chosen.each == "folder")
    else:
        plan = chosen.plan(request)
    summary = _summary(request, form, plan)
    written = write_plan(plan, out, single=single, summary=summary)
    notes = [note for entry in manifest.header.sources for note in _differences(entry, opened)]
    return Exported(out, plan, tuple(written), summary, (*notes, *plan.notes))


def find_format(name: str, formats: Mapping[str, Format]) -> Format:
    """Return a format by name; an unknown one is a `UsageError`."""
    if name not in formats:
        raise UsageError("Unknown format", where=ascii(name[:60]), expected=", ".join(formats))
    return formats[name]


def chosen_parts(header: Header, texts: Sequence[str]) -> list[str]:
    """Return the parts that some names and patterns select; those of a pattern in the order of the manifest.

    ``all`` selects every part. A pattern adds the parts that are not chosen yet.

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
            raise UsageError(f"--part {ascii(text[:80])[1:-1]} fits no part", expected=", ".join(names)[:300])
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
) -> tuple[dict[str, Source], dict[str, Source]]:
    """Return the sources that parts and category ids need, as far as given; then those, or none if a part lacks one."""
    needed = {slot for part in parts for slot in manifest.part(part).sources}
    for part in parts:
        manifest.ids(part)
    useful = set(needed)
    every = {slot for part in manifest.header.parts for slot in part.sources}
    datasets = {entry.dataset for entry in manifest.header.sources if entry.name in every}
    of_tasks = any(part.task for part in manifest.header.parts)
    if form is COCO and options.category_ids != "manifest" and of_tasks and len(datasets) > 1:
        # Tasks train on some files and test on others: one part's files do not tell whether classes have own ids.
        useful |= every
    chosen = [slot for slot in manifest.slots if slot.name in useful]
    names_needed = {name for slot in chosen for name in (slot.name, slot.dataset)}
    idle = {name for slot in manifest.slots for name in (slot.name, slot.dataset)} - names_needed
    useful_given = {key: value for key, value in raw_sources.items() if key.partition("@")[0] not in idle}
    optional = form is ID_LISTS and options.id_form not in NEEDS_SOURCES
    # Ids alone need no source: what a build remembers is not read for them.
    sources = (
        open_slots(useful_given, chosen, reading)
        if optional
        else manifest.open_sources(useful_given, reading, slots=chosen)
    )
    missing = needed - set(sources)
    if missing and not optional:
        raise UsageError(
            "A source of the chosen parts is missing",
            expected=" ".join(f"--source {name}=PATH" for name in sorted(needed)),
            found=", ".join(sources) or "none",
        )
    return sources, {} if missing else sources


def _differences(entry: SourceEntry, sources: Mapping[str, Source]) -> list[str]:
    """Return how a source differs from what the manifest was made from, and what its reader left out."""
    if entry.name not in sources:
        return []
    source, notes = sources[entry.name], []
    header_digests, read_digests = ({file.sha256 for file in files} for files in (entry.files, source.files))
    # A manifest made from lists, not from annotations, states no file of its images.
    if header_digests and header_digests != read_digests:
        notes.append(
            f"source {entry.name} is not the very file that the manifest was made from, so boxes may differ from its "
            f"counts (`curation verify` shows them): {', '.join(sorted(read_digests))} instead of "
            f"{', '.join(sorted(header_digests))}"
        )
    left_out = sorted(source.dropped.items())
    return notes + [f"source {entry.name}: the reader left out {count} {reason}" for reason, count in left_out if count]


def _summary(request: ExportRequest, form: str, plan: Plan) -> dict[str, Any]:
    header = request.manifest.header
    chosen = {name: value for name, value in _values(request.options).items() if value}
    # A file is stated by its digest: its path is this machine's.
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
    # The caller's record may have further fields.
    return {field.name: getattr(options, field.name) for field in dataclasses.fields(FormatOptions)}


def _counts(plan: Plan) -> dict[str, dict[str, int]]:
    return {"counts": dict(plan.counts), "changed": dict(plan.changed), "left_out": dict(plan.left_out)}
