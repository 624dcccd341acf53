"""``curation build``: a manifest from raw datasets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from curation.cli.options import SourceOptions
from curation.cli.output import Answer, table_lines, warn
from curation.cli.outputs import NEW_MANIFEST
from curation.cli.signature import pairs

if TYPE_CHECKING:
    from curation.manifest.header import Figure
    from curation.manifest.manifest import Manifest


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
        write the paper's own version with the available lists, the rest declared
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
    from curation.benchmarks.building import FiguresNotMetError, build

    wordnet = {} if options.wordnet is None else {"wordnet": options.wordnet}
    try:
        manifest = build(
            options.protocol,
            options.sources,
            tasks=options.tasks,
            decisions=options.decisions,
            allow_conflicts=options.allow_conflicts,
            declare=options.declare,
            name=options.name or "",
            version=options.version or "",
            notes=options.note,
            source_notes=pairs(options.source_note, "--source-note"),
            reading=options.reading,
            tell=warn,
            parameters=pairs(options.set_, "--set") | wordnet,
        )
    except FiguresNotMetError as error:
        return _refuse(error.missed)
    manifest.save(options.out)
    return _answer(manifest, options)


def _refuse(missed: tuple[Figure, ...]) -> Answer:
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
