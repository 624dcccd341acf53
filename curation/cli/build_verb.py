"""``curation build``: a manifest from raw datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.options import SourceOptions
from curation.cli.output import Answer, table_lines, tell_wordnet, warn
from curation.cli.outputs import NEW_MANIFEST
from curation.cli.signature import pairs
from curation.errors import ManifestError, UsageError

if TYPE_CHECKING:
    from curation.benchmarks.benchmark import Benchmark
    from curation.manifest.header import Figure
    from curation.manifest.manifest import Manifest
    from curation.sources.source import Source


@dataclass(frozen=True)
class Options(SourceOptions):
    """Make a manifest from raw datasets.

    Attributes
    ----------
    protocol
        a protocol, or a declared manifest to complete
    out
        folder of the new manifest
    set_
        a parameter of the protocol
    tasks
        TOML or JSON: tasks of one's own (protocol owod)
    wordnet
        a WordNet of NLTK's data in place of the built-in WordNet 3.0, as --set wordnet=… (protocols imagenet,
        findmeifyoucan)
    decisions
        recorded decisions to replay: jsonl, csv, or the authors' manual_selection (protocol
        findmeifyoucan)
    allow_conflicts
        replay all verdicts of --decisions that contradict each other, as the authors' code does
    name
        name of the manifest, such as elephant/val2017
    version
        its version, such as 1.0.0
    note
        a note for its readers (repeatable)
    source_note
        a note on one source (repeatable)
    declare
        write the paper's own version with the lists at hand, the rest declared
    """

    protocol: str
    _: KW_ONLY
    out: Annotated[Path, NEW_MANIFEST, "DIR"]
    set_: tuple[Annotated[str, "KEY=VALUE"], ...] = ()
    tasks: Path | None = None
    wordnet: Annotated[str | None, "nltk[:CORPUS]"] = None
    decisions: Path | None = None
    allow_conflicts: bool = False
    name: str | None = None
    version: Annotated[str | None, "VERSION"] = None
    note: tuple[str, ...] = ()
    source_note: tuple[Annotated[str, "NAME=TEXT"], ...] = ()
    declare: bool = False


def run(options: Options) -> Answer:
    """Build, write and report; 1 where a declared manifest's figures are not met (then nothing is written)."""
    from curation.benchmarks.registry import benchmarks
    from curation.manifest.store import write_manifest

    if options.allow_conflicts and options.decisions is None:
        raise UsageError("--allow-conflicts speaks of decisions", expected="--decisions FILE beside it")
    if options.protocol in benchmarks():
        manifest = _from_protocol(benchmarks()[options.protocol], options)
    else:
        manifest, missed = _from_declared(options)
        if missed:
            return _refuse(missed, options)
    manifest = _in_words(manifest, options)
    _keep_approximate_out(manifest, options.out)
    write_manifest(manifest, options.out)
    return _answer(manifest, options)


def _from_protocol(protocol: Benchmark, options: Options) -> Manifest:
    from curation.benchmarks.building import read_parameters
    from curation.benchmarks.parameters import wordnet_of

    settings = pairs(options.set_, "--set")
    if options.tasks is not None:
        settings = _task_settings(protocol, settings, options.tasks) | settings
    if options.decisions is not None:
        settings = settings | {"decisions": _decisions(protocol, settings, options)}
    if options.wordnet is not None:
        settings = settings | {"wordnet": options.wordnet}
    parameters = read_parameters(protocol, settings)
    if chosen := wordnet_of(parameters):
        tell_wordnet(chosen)
    if options.declare:
        if protocol.declare is None:
            raise UsageError(
                "The protocol has no version of its own to declare", where=f"--declare {protocol.name}"
            )
        return protocol.declare(_given(options, protocol, parameters, declared=True), parameters)
    return protocol.make(_given(options, protocol, parameters), parameters)


def _task_settings(protocol: Benchmark, settings: Mapping[str, str], path: Path) -> dict[str, str]:
    from curation.benchmarks.owod.tasks import read_task_file, settings_of

    if "tasks" not in (parameter.name for parameter in protocol.parameters):
        raise UsageError(
            "The protocol takes no task file", where=f"--tasks {path}", hint="curation build owod …"
        )
    if given := sorted({"split", "tasks"} & set(settings)):
        raise UsageError("--tasks FILE says which split it is", where=f"--set {given[0]}")
    return settings_of(read_task_file(path))


def _decisions(protocol: Benchmark, settings: Mapping[str, str], options: Options) -> str:
    """Return recorded decisions as the parameter of the protocol holds them; contradictory ones are told."""
    from curation.benchmarks.findmeifyoucan.decisions import contradictions, read_recorded

    path = options.decisions or Path()
    if "decisions" not in (parameter.name for parameter in protocol.parameters):
        raise UsageError(
            "The protocol replays no decisions",
            where=f"--decisions {path}",
            hint="curation apply MANIFEST --decisions FILE",
        )
    if "decisions" in settings:
        raise UsageError("--decisions FILE and --set decisions=… are the same", where=f"--decisions {path}")
    # A name such as sha256:… or [] would be taken for the decisions themselves.
    text = read_recorded(str(path.absolute()), allow_conflicts=options.allow_conflicts)
    if told := contradictions(text):
        shown = "; ".join(told[:3]) + ("; …" if len(told) > 3 else "")
        warn(f"verdicts contradict each other on {len(told)} images, and all are replayed: {shown}")
    return text


def _from_declared(options: Options) -> tuple[Manifest, tuple[Figure, ...]]:
    from curation.benchmarks.building import complete, parameters_of
    from curation.benchmarks.registry import find_benchmark

    declared = _declared(options.protocol)
    if options.set_ or options.tasks or options.declare or options.name or options.version:
        raise UsageError(
            "A declared manifest fixes its parameters, name and version",
            where=options.protocol,
            hint=f"curation build {declared.header.rule.protocol} … for other ones",
        )
    protocol = find_benchmark(declared.header.rule.protocol)
    sources = _given(options, protocol, parameters_of(declared.header))
    decisions = "" if options.decisions is None else _decisions(protocol, {}, options)
    return complete(declared, sources, decisions=decisions)


def _declared(target: str) -> Manifest:
    from curation.benchmarks.registry import find_benchmark
    from curation.manifest.locate import load_manifest

    try:
        declared = load_manifest(target)
    except ManifestError:
        # Names of manifests have a family before them: a single word was meant as a protocol.
        if not Path(target).exists() and not {"/", "@"} & set(target):
            find_benchmark(target)
        raise
    if declared.header.origin == "as_published":
        raise UsageError(
            "The manifest is of published lists, which no rule makes",
            where=target,
            hint=f"curation import {target} --lists DIR --out DIR",
        )
    if declared.header.origin != "declared":
        raise UsageError(
            "The manifest is complete already",
            where=target,
            hint=f"curation verify {target} --rebuild --source NAME=PATH",
        )
    return declared


def _given(
    options: Options,
    protocol: Benchmark,
    parameters: Mapping[str, Any],
    *,
    declared: bool = False,
) -> Mapping[str, Source]:
    from curation.publishing.formats.coco import disagreeing_ids
    from curation.sources.slots import require_slots

    slots = protocol.slots_for(parameters)
    sources = options.open(slots)
    needed = [slot for slot in slots if slot.part or not declared]
    require_slots(needed, sources, f"curation build {options.protocol}")
    for text in disagreeing_ids(sources):
        warn(text)
    return sources


def _in_words(manifest: Manifest, options: Options) -> Manifest:
    """Return the manifest with the name, version and notes of the command line."""
    import msgspec

    from curation.manifest.manifest import Manifest

    header = manifest.header
    words = pairs(options.source_note, "--source-note")
    if unknown := sorted(set(words) - {entry.name for entry in header.sources}):
        raise UsageError(
            "There is no such source in the manifest",
            where=f"--source-note {unknown[0]}",
            expected=", ".join(entry.name for entry in header.sources),
        )
    sources = tuple(
        msgspec.structs.replace(
            entry, note="; ".join(text for text in (entry.note, words.get(entry.name)) if text)
        )
        for entry in header.sources
    )
    return Manifest(
        header=msgspec.structs.replace(
            header,
            name=options.name or header.name,
            version=options.version or header.version,
            notes=(*header.notes, *options.note),
            sources=sources,
        ),
        lists=manifest.lists,
    )


def _keep_approximate_out(manifest: Manifest, out: Path) -> None:
    """Raise `UsageError` where an approximate list would land among the manifests that others trust."""
    from curation.benchmarks.building import is_approximate
    from curation.manifest.locate import manifest_roots

    trusted = [root for root in manifest_roots() if out.resolve().is_relative_to(root.resolve())]
    if trusted and is_approximate(manifest.header):
        raise UsageError(
            "An approximate list does not go among the trusted manifests",
            where=f"--out {out}",
            expected="annotations with boxes, or a folder elsewhere",
            found=f"a table of image and class, and a folder below {trusted[0]}",
        )


def _refuse(missed: tuple[Figure, ...], options: Options) -> Answer:
    from curation.cli.manifest_tables import figure_table

    table = figure_table(missed, "These figures are not met; nothing was written")
    data = {
        "written": False,
        "missed": [
            {"figure": one.name, "paper": one.paper, "obtained": one.obtained, "explanation": one.explanation}
            for one in missed
        ],
    }
    return Answer(data, table_lines(table), 1)


def _answer(manifest: Manifest, options: Options) -> Answer:
    from curation.benchmarks.building import is_approximate
    from curation.cli.manifest_tables import figure_table, manifest_data, part_table

    header = manifest.header
    if is_approximate(header):
        warn("the lists are approximate: they come from a table of image and class, not from the annotations")
    for entry in header.sources:
        if entry.dropped:
            warn(
                f"source {entry.name}: left out or changed: "
                f"{', '.join(f'{n} {reason}' for reason, n in entry.dropped.items())}"
            )
    lines = [f"{header.name} {header.version}  {manifest.digest}", ""]
    lines += table_lines(part_table(header))
    lines += table_lines(figure_table(header.figures)) if header.figures else []
    verb = f"verify {options.out}"
    if header.origin == "declared":
        verb = f"build {options.out}"
    sources = " ".join(f"--source {entry.name}=PATH" for entry in header.sources)
    pinned = str(header.rule.parameters.get("decisions", "")).startswith("sha256:")
    next_out = " --decisions FILE" if pinned else ""
    next_out += " --out DIR" if header.origin == "declared" else ""
    lines += [f"written to {options.out}", f"next: curation {verb} {sources}{next_out}"]
    return Answer({"folder": str(options.out), **manifest_data(manifest)}, lines)
