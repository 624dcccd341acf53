"""``curation build`` and ``curation import``: a manifest from raw datasets, or from lists that authors published."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Annotated, Any

from curation.benchmarks.building import FiguresNotMetError, build, import_lists, is_approximate
from curation.cli.output import Answer, Line, Table, next_command, score_commands, source_words, warn
from curation.cli.outputs import NEW_MANIFEST
from curation.manifest.header import Figure
from curation.manifest.manifest import Manifest


@wraps(build)
def _built(*args: Any, **kwargs: Any) -> Manifest | FiguresNotMetError:
    try:
        return build(*args, **kwargs)
    except FiguresNotMetError as error:
        return error


def run(
    made: Annotated[Manifest | FiguresNotMetError, _built], /, *, out: Annotated[Path, NEW_MANIFEST, "DIR"]
) -> Answer:
    """Make a manifest from raw datasets.

    The exit status is 1 if a declared manifest's figures are not met; then nothing is written.

    Parameters
    ----------
    out
        folder of the new manifest
    """
    if isinstance(made, FiguresNotMetError):
        return _refuse(made.missed)
    made.save(out)
    return _answer(made, out)


def _refuse(missed: tuple[Figure, ...]) -> Answer:
    from curation.manifest.tables import figure_table

    table = figure_table(missed, "These figures are not met; nothing was written")
    data = {
        "written": False,
        "missed": [
            {"figure": row.name, "paper": row.paper, "obtained": row.obtained, "explanation": row.explanation}
            for row in missed
        ],
    }
    return Answer(data, [table], 1)


def _answer(manifest: Manifest, out: Path) -> Answer:
    from curation.manifest.tables import figure_table, manifest_data, part_table

    header = manifest.header
    if is_approximate(header):
        warn("the lists are approximate: they come from a table of image and class, not from the annotations")
    for entry in header.sources:
        if entry.dropped:
            warn(
                f"source {entry.name}: left out or changed: "
                f"{', '.join(f'{n} {reason}' for reason, n in entry.dropped.items())}"
            )
    lines: list[Line] = [f"{header.name} {header.version}  {manifest.digest}", ""]
    lines += [part_table(header)]
    lines += [figure_table(header.figures)] if header.figures else []
    remembered = manifest.built_from.sources if manifest.built_from and header.origin != "declared" else {}
    unread = {entry.name for entry in header.sources if header.rule.protocol == "lists"}
    words = source_words(entry.name for entry in header.sources if entry.name not in {*remembered, *unread})
    verb = "verify"
    if header.origin == "declared":
        verb = "build"
        pinned = str(header.rule.parameters.get("decisions", "")).startswith("sha256:")
        words += [*(["--decisions", "FILE"] if pinned else []), "--out", "DIR"]
    lines += [f"written to {out}", next_command(verb, out, *words)]
    lines += [next_command(*command[1:]) for command in score_commands(manifest, out)]
    return Answer({"folder": str(out), **manifest_data(manifest)}, lines)


def run_import(manifest: Annotated[Manifest, import_lists], /, *, out: Annotated[Path, NEW_MANIFEST, "DIR"]) -> Answer:
    """Complete a manifest of published lists from the authors' files.

    Nothing is written unless every file and every list is the pinned one.

    Parameters
    ----------
    out
        folder of the new manifest
    """
    from curation.manifest.tables import figure_table, manifest_data

    manifest.save(out)
    header = manifest.header
    rows = tuple(
        (
            part.name,
            str(header.rule.parameters[part.name]),
            f"{part.images or 0:,}",
            f"{part.repeats:,}" if part.repeats else "-",
            (part.sha256 or "")[:19],
        )
        for part in header.parts
    )
    columns = ("part", "published list", "lines", "repeats", "digest")
    lines: list[Line] = [f"{header.name} {header.version}  {manifest.digest}", ""]
    lines += [Table("Lists", columns, rows)]
    lines += [figure_table(header.figures)] if header.figures else []
    lines += [f"  {note}" for note in header.notes]
    checked = "no file and no list differs from a stated digest" if manifest.lists else "the header alone"
    words = source_words(entry.name for entry in header.sources)
    lines += [f"written to {out}: {checked}", next_command("verify", out, *words)]
    data = {"folder": str(out), "lists": len(manifest.lists), **manifest_data(manifest)}
    return Answer(data, lines)
