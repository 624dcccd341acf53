"""`build`: parameters from text, a benchmark's rule on sources, completion and rebuilding of a manifest."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from curation.benchmarks.attribution import attributed, with_attribution_of
from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.registry import benchmarks, find_benchmark, find_recipe, recipes
from curation.benchmarks.roles import require_disjoint
from curation.benchmarks.rules.benchmark_file import (
    RULES,
    file_and_case,
    located,
    read_benchmark_file,
    rule_of,
    stated_in,
)
from curation.benchmarks.rules.lists import build_lists, published_key, read_lists
from curation.core.arguments import checked
from curation.core.errors import CurationWarning, ManifestError, UsageError
from curation.core.wording import did_you_mean, examples
from curation.manifest import importing
from curation.manifest.built_from import built_from
from curation.manifest.header import Figure, Header
from curation.manifest.importing import LISTS, pin_lists
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.manifest.manifest import is_approximate as is_approximate
from curation.manifest.verify import source_content
from curation.sources.opening import open_slots
from curation.sources.source import Source
from curation.sources.source_specs import Reading, Sources, require_slots

Setting = str | bool | int | float | Path | Sequence[str | int | float]
"""A parameter of a benchmark: the text of an option, or an equivalent Python value."""


@checked
def build(
    benchmark: Annotated[str | Path | Manifest, "BENCHMARK"],
    sources: Sources | None = None,
    *,
    parameters: Annotated[Mapping[str, Annotated[Setting, str]] | None, "--set KEY=VALUE"] = None,
    decisions: Path | None = None,
    allow_conflicts: bool = False,
    name: str = "",
    version: str = "",
    notes: Annotated[Sequence[str], "--note NOTE"] = (),
    source_notes: Annotated[Mapping[str, str] | None, "--source-note NAME=TEXT"] = None,
    declare: bool = False,
    reading: Reading | None = None,
    **more: Setting,
) -> Manifest:
    """Return the manifest that the rule of a benchmark makes from raw datasets, or complete a header-only one.

    Parameters
    ----------
    benchmark : str, Path or Manifest
        a benchmark, a header-only manifest to complete, or a .toml that declares published lists
    sources : mapping of str to path or annotations
        ``curation list BENCHMARK`` names those of a benchmark
    parameters : mapping of str to str
        a parameter of the benchmark
    decisions : Path or str, optional
        recorded decisions to replay: jsonl, csv, or the authors' manual_selection (findmeifyoucan)
    allow_conflicts : bool
        replay all verdicts of --decisions that contradict each other, as the authors' code does
    name : str
        name of the manifest, such as elephant/val2017
    version : str
        its version, such as 1.0.0
    notes : sequence of str
        a note for its readers
    source_notes : mapping of str to str, optional
        a note on one source
    declare : bool
        write the paper's own version with the lists at hand, the rest header-only
    reading : Reading, optional
        How the sources are read.
    **more
        Parameters of the benchmark, as ``curation list NAME`` prints them.

    Raises
    ------
    UsageError
        A benchmark, parameter or source does not exist or is missing.
    FiguresNotMetError
        A header-only manifest was not completed: figures or lists differ.
    ProtocolError
        Parts of different roles are proven to share images (see `curation.manifest.disjoint`).

    Examples
    --------
    >>> import curation
    >>> images = [{"id": n, "file_name": f"{n}.jpg", "width": 9, "height": 9} for n in (1, 2)]
    >>> box = {"bbox": [0, 0, 5, 5], "area": 25, "iscrowd": 0}
    >>> boxes = [{"id": n, "image_id": n, "category_id": n, **box} for n in (1, 2)]
    >>> classes = [{"id": 1, "name": "aeroplane"}, {"id": 2, "name": "zebra"}]
    >>> coco = {"images": images, "annotations": boxes, "categories": classes}
    >>> voc = {**coco, "images": images[:1], "annotations": boxes[:1]}
    >>> made = curation.build("elephant", sources={"voc2007-test": voc, "coco": coco}, ratios="1")
    >>> made.ids("wilderness")
    ('coco:000000000002',)
    """
    if allow_conflicts and decisions is None:
        raise UsageError("--on-error conflicts=keep requires --decisions FILE")
    known = find_benchmark(benchmark) if isinstance(benchmark, str) and benchmark in benchmarks() else None
    settings = _settings(parameters or {}, more)
    chosen = "".join(f" --set {name}={shlex.quote(value)}" for name, value in settings.items())
    toml, _ = file_and_case("" if isinstance(benchmark, Manifest) else str(benchmark))
    is_file = toml.suffix.lower() == ".toml"
    key = published_key(str(benchmark)) if is_file else ""
    rule = "lists" if key else rule_of(str(benchmark)) if is_file else ""
    if rule and (settings or declare or (decisions and rule == "lists")):
        raise UsageError(
            "A benchmark file holds its own parameters",
            where=str(benchmark),
            expected="no --set or --header-only" + ", and for lists no --decisions" * (rule == "lists"),
            hint="write them into [parameters] of the file",
        )
    if rule == "lists":
        draft, expect = read_lists(str(benchmark), key)
        if not key:
            require_own_name(draft.name, f"{benchmark}: name")
        images = {name: path for name, path in (sources or {}).items() if name.partition("@")[0] != LISTS}
        slots = [slot for slot in Manifest(draft, {}).slots if slot.name != LISTS]
        opened: Mapping[str, Source] = open_slots(images, slots, reading or Reading())
        listed = build_lists(draft, Path(str((sources or {}).get(LISTS, toml.parent))), opened, expect)
        return _described(remembering(listed, opened, images, reading), name, version, notes, source_notes or {})
    if rule:
        known, settings = find_benchmark(rule), {"file": read_benchmark_file(str(benchmark))}
        require_own_name(stated_in(settings["file"]).name, f"{benchmark}: name")
    declared = None
    if known is None:
        declared = _header_only(benchmark)
        if settings or declare or name or version:
            raise UsageError(
                "A header-only manifest has its own parameters, name and version",
                where=_target_name(benchmark),
                hint=f"curation build {declared.header.rule.protocol} … --out DIR makes other ones",
            )
        known = find_benchmark(declared.header.rule.protocol)
    replayed = "" if decisions is None else _replayed(known, settings, decisions, allow_conflicts)
    if declared is not None:
        opened = _opened(known, sources, parameters_of(declared.header), _target_name(benchmark), reading)
        made, missed = complete(declared, opened, decisions=replayed)
        if missed:
            raise FiguresNotMetError(declared, missed)
    else:
        settings |= {"decisions": replayed} if replayed else {}
        values = read_parameters(known, settings)
        if declare and known.declare is None:
            raise UsageError("The benchmark has no header-only version", where=f"--header-only {known.name}")
        target = str(benchmark) if is_file else known.name
        with located(toml) if is_file else nullcontext():
            opened = _opened(known, sources, values, f"{shlex.quote(target)}{chosen}", reading, declared=declare)
            made = known.declare(opened, values) if declare and known.declare else known.make(opened, values)
        tables = stated_in(values["file"]).sources if known.name in RULES else {}
        made = attributed(made, {source: table.licence for source, table in tables.items()})
    return _described(remembering(made, opened, sources or {}, reading), name, version, notes, source_notes or {})


def require_own_name(name: str, where: str) -> None:
    """Raise `UsageError` for a name whose family is that of a benchmark of this package."""
    if name.partition("/")[0] in benchmarks():
        message, expected = "The name belongs to a benchmark of this package", "a family of your own: mylab/parts"
        raise UsageError(message, where=where, expected=expected, found=name)


def remembering(
    made: Manifest,
    opened: Mapping[str, Source],
    paths: Mapping[str, Any],
    reading: Reading | None,
    *,
    compare: bool = True,
) -> Manifest:
    """Return a manifest that remembers its sources; raise `ProtocolError` if its parts share images by mistake."""
    slots = [slot for slot in made.slots if slot.name in opened]
    contents = {slot.name: source_content(made, opened[slot.name]) for slot in slots} if made.lists else None
    made = replace(made, built_from=built_from(paths, slots, reading or Reading(), contents))
    if compare:
        require_disjoint(made, opened)
    return made


@checked
def import_lists(header: str | Path, lists: Annotated[Path, "--lists DIR"], *, header_only: bool = False) -> Manifest:
    """Complete a manifest of published lists with the authors' files, each checked against its pinned digest.

    Parameters
    ----------
    header : str or Path
        a manifest of published lists without them: a folder, or NAME@VERSION of an available one; or one of
        findmeifyoucan, to be compared with the published dataset
    lists : Path or str
        the authors' files, found by name, subfolders included; or the published dataset
    header_only : bool
        make the header instead, digests and counts without ids; HEADER is then the name of a recipe, such as
        owod/reowod-published

    Raises
    ------
    MissingFileError, DigestMismatchError
        A file does not exist, or is not the pinned one.

    Examples
    --------
    >>> import curation
    >>> curation.import_lists("owod/reowod-published", "nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    curation.core.errors.MissingFileError: ...
    """
    if header_only:
        draft = find_recipe(str(header))()
        return Manifest(header=pin_lists(draft, lists).header, lists={})
    recipe = recipes().get(str(header))
    if recipe is not None and any(source.files for source in recipe().sources):
        # The benchmark's file pins lists that were not available: no header states the digests of their ids.
        imported = pin_lists(recipe(), lists)
        require_disjoint(imported, {})
        return imported
    loaded = load_manifest(header)
    known = benchmarks().get(loaded.header.rule.protocol)
    if known and known.import_published:
        imported = known.import_published(loaded, lists)
    else:
        imported = importing.complete_lists(loaded.header, lists)
    require_disjoint(imported, {})
    return imported


class FiguresNotMetError(ManifestError):
    """A header-only manifest was not completed: figures of the paper, or lists that it pins, differ.

    Attributes
    ----------
    missed : tuple of Figure
    """

    exit_code = 1

    def __init__(self, declared: Manifest, missed: tuple[Figure, ...]) -> None:
        self.missed = missed
        super().__init__(
            "The manifest is not completed: figures are not met",
            where=f"{declared.header.name} {declared.header.version}",
            expected=", ".join(f"{figure.name} {figure.paper}" for figure in missed)[:300],
            found=", ".join(f"{figure.name} {figure.obtained}: {figure.explanation}" for figure in missed)[:600],
        )


def _settings(*mappings: Mapping[str, Setting]) -> dict[str, str]:
    """Return parameters as the texts of their options; raise `UsageError` for one that is given twice."""
    settings: dict[str, str] = {}
    for key, value in (pair for mapping in mappings for pair in mapping.items()):
        if key in settings:
            raise UsageError(f"The parameter {key} is given twice", found=f"{settings[key]}, {value}"[:200])
        settings[key] = str(value).lower() if isinstance(value, bool) else _as_text(value)
    return settings


def _target_name(benchmark: str | Path | Manifest) -> str:
    if isinstance(benchmark, Manifest):
        return f"{benchmark.header.name}@{benchmark.header.version}"
    return str(benchmark)


def _header_only(benchmark: str | Path | Manifest) -> Manifest:
    target = _target_name(benchmark)
    try:
        declared = benchmark if isinstance(benchmark, Manifest) else load_manifest(target)
    except ManifestError:
        # Names of manifests contain a family: a single word is the name of a benchmark.
        if not Path(target).exists() and not {"/", "@"} & set(target):
            if target in RULES:
                raise UsageError(
                    "A rule needs a benchmark file", where=target, expected="FILE.toml",
                    hint=f"curation init {target} --help",
                ) from None  # fmt: skip
            find_benchmark(target)
        raise
    if declared.header.origin == "as_published":
        raise UsageError(
            "Published lists are imported, not built",
            where=target,
            hint=f"curation import {shlex.quote(target)} --lists DIR --out DIR",
        )
    if declared.header.origin != "declared":
        raise UsageError(
            "The manifest is already complete",
            where=target,
            hint=f"curation verify {shlex.quote(target)} --rebuild --source NAME=PATH",
        )
    return declared


def _replayed(protocol: Benchmark, settings: Mapping[str, str], path: Path, allow_conflicts: bool) -> str:
    """Return recorded decisions in the form of the benchmark's parameter; warn of contradictory ones."""
    where = f"--decisions {path}"
    if protocol.recorded_decisions is None:
        hint = "curation review apply MANIFEST --decisions FILE"
        raise UsageError("The benchmark replays no decisions", where=where, hint=hint)
    if "decisions" in settings:
        raise UsageError("--decisions FILE and --set decisions=… are the same", where=where)
    text, conflicts = protocol.recorded_decisions(path, allow_conflicts)
    if conflicts:
        listed = examples(conflicts, joint="; ")
        note = f"decisions contradict each other on {len(conflicts)} images, and all are replayed: {listed}"
        warnings.warn(note, CurationWarning, stacklevel=4)
    return text


def _opened(
    protocol: Benchmark,
    raw_sources: Mapping[str, Any] | None,
    parameters: Mapping[str, Any],
    target: str,
    reading: Reading | None,
    *,
    declared: bool = False,
) -> Mapping[str, Source]:
    from curation.publishing.formats.coco import disagreeing_ids

    slots = protocol.slots_for(parameters)
    is_packaged = protocol.rule and protocol.name not in RULES
    hint = f"curation list {protocol.name}" + f"; your own data: `curation init {protocol.rule}`" * bool(is_packaged)
    sources = open_slots(raw_sources or {}, slots, reading or Reading(), hint=hint)
    needed = [slot for slot in slots if slot.part or not declared]
    require_slots(needed, sources, f"curation build {target}", "--out DIR")
    for text in disagreeing_ids(sources):
        warnings.warn(text, CurationWarning, stacklevel=4)
    return sources


def _described(
    manifest: Manifest, name: str, version: str, notes: Sequence[str], source_notes: Mapping[str, str]
) -> Manifest:
    """Return the manifest with the requested name, version and notes."""
    header = manifest.header
    if unknown := sorted(set(source_notes) - {entry.name for entry in header.sources}):
        raise UsageError(
            "Unknown source of the manifest",
            where=f"--source-note {unknown[0]}",
            expected=", ".join(entry.name for entry in header.sources),
        )
    sources = tuple(
        msgspec.structs.replace(entry, note="; ".join(filter(None, (entry.note, source_notes.get(entry.name)))))
        for entry in header.sources
    )
    texts = {"name": name or header.name, "version": version or header.version, "notes": (*header.notes, *notes)}
    return replace(manifest, header=msgspec.structs.replace(header, sources=sources, **texts))


def read_parameters(protocol: Benchmark, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return every parameter of a benchmark: the setting, else the default.

    Raises
    ------
    UsageError
        The benchmark has no such parameter.
    ProtocolError
        A value is invalid.
    """
    names = [parameter.name for parameter in protocol.parameters]
    for name in settings:
        if name not in names:
            raise UsageError(
                f"Unknown parameter of {protocol.name}",
                where=f"--set {name[:80]}",
                expected=", ".join(names),
                hint=did_you_mean(name, names, f"curation list {protocol.name}"),
            )
    return {
        parameter.name: parameter.read(settings.get(parameter.name, parameter.default))
        for parameter in protocol.parameters
    }


def parameters_of(header: Header) -> dict[str, Any]:
    """Return the parameters that made a manifest, as its benchmark reads them today.

    Raises
    ------
    ManifestError
        The header lacks one of them.
    """
    protocol = find_benchmark(header.rule.protocol)
    stored = header.rule.parameters
    required = [param for param in protocol.parameters if not param.later or param.name in stored]
    if missing := [param.name for param in required if param.name not in stored]:
        raise ManifestError(
            "The manifest lacks a parameter of its benchmark",
            where=f"{header.name} {header.version}: rule.parameters",
            expected=", ".join(missing),
            found=", ".join(stored) or "none",
        )
    return {
        param.name: param.read(_as_text(stored[param.name]) if param in required else param.default)
        for param in protocol.parameters
    }


def rebuild(manifest: Manifest, sources: Mapping[str, Source]) -> Manifest:
    """Return the manifest that its benchmark and parameters make from these sources now.

    Texts (name, version, title, notes, what it supersedes or completes) are taken from the manifest, so that the
    digests are equal exactly if lists, counts, figures and source files are.
    """
    header, built = manifest.header, _made_again(manifest.header, sources)
    notes = {entry.name: entry.note for entry in header.sources}
    entries = tuple(
        msgspec.structs.replace(entry, note=notes.get(entry.name, entry.note)) for entry in built.header.sources
    )
    identity = {key: getattr(header, key) for key in ("name", "version", "title", "notes", "supersedes", "completes")}
    return Manifest(header=msgspec.structs.replace(built.header, sources=entries, **identity), lists=built.lists)


def _made_again(header: Header, sources: Mapping[str, Source], **recorded: str) -> Manifest:
    built = find_benchmark(header.rule.protocol).make(sources, parameters_of(header) | recorded)
    return with_attribution_of(built, header)


def complete(
    declared: Manifest, sources: Mapping[str, Source], *, decisions: str = ""
) -> tuple[Manifest, tuple[Figure, ...]]:
    """Return the declared manifest with its lists, and every figure or pinned list that differs.

    Parameters
    ----------
    declared : Manifest
        A manifest of origin ``declared``: it fixes the parameters and the expected figures.
    decisions : str
        The recorded decisions in the form of the parameter, for a manifest that pins their digest; decisions with
        another digest count as a figure that is not met.

    Returns
    -------
    Manifest
        Manifest of the same name and version; its ``completes`` is the digest of the declared manifest.
    tuple of Figure
        Empty if every figure of the paper is met and every pinned list is the same.
    """
    header = declared.header
    built = _made_again(header, sources, **({"decisions": decisions} if decisions else {}))
    completed = Manifest(
        header=msgspec.structs.replace(
            built.header, name=header.name, version=header.version, title=header.title, completes=declared.digest
        ),
        lists=built.lists,
    )
    missed = [_with_sources(figure, header, sources) for figure in _unmet(header, built.header)]
    if header.decisions not in (None, built.header.decisions):
        explanation = f"digest {built.header.decisions}, not {header.decisions}"
        locked = "decisions pinned by the declared manifest"
        missed.append(Figure(name="decisions", paper=None, obtained=None, place=locked, explanation=explanation))
    return completed, tuple(missed)


def _unmet(declared: Header, built: Header) -> Iterator[Figure]:
    """Yield the figures of the paper and the pinned lists that differ."""
    obtained = {figure.name: figure for figure in built.figures}
    for figure in declared.figures:
        now = obtained.get(figure.name)
        if figure.paper is not None and (now is None or now.obtained != figure.paper):
            yield now or msgspec.structs.replace(figure, obtained=None, explanation="not computed")
    parts = {part.name: part for part in built.parts}
    for part in declared.parts:
        other = parts.get(part.name)
        if other is None or (part.sha256 is not None and other.sha256 != part.sha256):
            yield Figure(
                name=f"{part.name}.list",
                paper=part.images,
                obtained=other.images if other is not None else None,
                place="id list pinned by the declared manifest",
                explanation=f"digest {other.sha256}, not {part.sha256}" if other is not None else "no such part",
            )


def _with_sources(figure: Figure, declared: Header, sources: Mapping[str, Source]) -> Figure:
    """Return an unmet figure with the source that is missing, or the file that gave another number."""
    needed = _sources_behind(figure.name, declared)
    if missing := [name for name in needed if name not in sources]:
        reason = f"needs {', '.join(missing)}, not given: {' '.join(f'--source {name}=PATH' for name in missing)}"
    else:
        read = {name: sources[name].files for name in needed}
        files = (f"{name}: {records[0].name if records else sources[name].dataset}" for name, records in read.items())
        reason = f"{figure.explanation} (from {'; '.join(files)})"
    return msgspec.structs.replace(figure, explanation=reason)


def _sources_behind(figure: str, declared: Header) -> tuple[str, ...]:
    """Return the sources of a figure such as ``t1-train.images`` or ``coco.images``."""
    subject = figure.partition(".")[0]
    if any(entry.name == subject for entry in declared.sources):
        return (subject,)
    parts = [part for part in declared.parts if part.name == subject]
    # A selection such as t2-selection is not a part: it is drawn from the training or test images of the task.
    role = "test" if "test" in subject else "train"
    of_task = [part for part in declared.parts if part.task and subject.startswith(f"{part.task}-")]
    sources = dict.fromkeys(
        name for part in parts or [entry for entry in of_task if entry.role == role] for name in part.sources
    )
    return tuple(sources) or tuple(entry.name for entry in declared.sources)


def _as_text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
