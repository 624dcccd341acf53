"""``curation evaluate``: score predictions, by benchmark; the function ``evaluate`` of each declares the options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from curation.benchmarks.registry import evaluation_of, protocols, report_of
from curation.cli.option_names import Help
from curation.cli.output import emit, next_command
from curation.cli.outputs import KEPT, output_folder
from curation.cli.signature import add_arguments as declare_options
from curation.cli.signature import call, options_of, summary_of
from curation.core.errors import UsageError
from curation.core.grouping import grouped
from curation.core.progress import stage
from curation.core.writing import refuse_in_manifest

if TYPE_CHECKING:
    from curation.evaluation.result import Result


def add_arguments(parser: argparse.ArgumentParser, chosen: str = "") -> None:
    """Declare the arguments of ``curation evaluate``: one sub-command a benchmark; of a chosen one, its own alone.

    Benchmarks that take the same options, but for their variants, are one sub-command with several names.
    """
    commands = parser.add_subparsers(dest="protocol", metavar="BENCHMARK", required=True)
    names = protocols()
    if chosen:
        for name in names:
            _add_command(commands, [name], whole=name == chosen)
        return
    for options, alike in grouped(names, _options_or_error).items():
        if isinstance(options, UsageError):
            commands.add_parser(alike[0], help=f"cannot be loaded: {options.found}".replace("%", "%%"))
        else:
            _add_command(commands, alike)


def _options_or_error(name: str) -> tuple[tuple[str, str], ...] | UsageError:
    """Return the options of an evaluation, or why it cannot be loaded: it takes no other evaluation away."""
    try:
        return tuple((option.flag, option.key) for option in options_of(evaluation_of(name)))
    except UsageError as error:
        return error


def _add_command(commands: Any, names: Sequence[str], *, whole: bool = True) -> None:
    if not whole:
        commands.add_parser(names[0])
        return
    functions = [evaluation_of(name) for name in names]
    summary = "; ".join(dict.fromkeys(map(summary_of, functions)))
    command = commands.add_parser(
        names[0], aliases=names[1:], help=summary, description=f"{summary}.", formatter_class=Help, allow_abbrev=False
    )
    declare_options(command, functions[0])
    options = [option for function in functions for option in options_of(function) if option.dest == "variant"]
    for action in command._actions:
        if action.dest == "variant":
            action.choices = tuple(dict.fromkeys(word for option in options for word in option.choices or ()))
    _add_outputs(command, names[0])


def _add_outputs(command: argparse.ArgumentParser, protocol: str) -> None:
    command.add_argument(
        "--append",
        type=KEPT,
        metavar="FILE",
        help="add the ranked measures as rows to this .jsonl file, for `curation leaderboard`",
    )
    command.add_argument(
        "--name", metavar="NAME", help="name of the method in those rows (default: from the file of predictions)"
    )
    if report_of(protocol).tables is None:
        command.add_argument("--all", action="store_true", help="print every measure and table, not the ranked alone")
    command.add_argument("--json", action="store_true", help="print the whole result as JSON")
    command.add_argument(
        "--out", type=output_folder(benchmark=protocol), metavar="DIR", help="write results.json and CSV files"
    )
    command.add_argument("--figures", action="store_true", help="with --out, draw the figures too, as PNG and SVG")
    command.add_argument(
        "--outcomes", action="store_true", help="with --out, write what became of each detection and object too"
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate, write what ``--out`` and ``--append`` ask for, and print; 0, or an error of the tree."""
    _check_append(options)
    result: Result = call(evaluation_of(options.protocol), options)
    written = []
    if options.out:
        with stage("writing"):
            written = result.save(options.out, figures=options.figures, outcomes=options.outcomes)
    shown = result.lines(whole=getattr(options, "all", True))
    lines = [*shown, *(f"wrote {path}" for path in written), *_append(result, options)]
    emit(result.json_data(), lines, as_json=options.json)
    return 0


def _check_append(options: argparse.Namespace) -> None:
    """Refuse what ``--append`` could not do after a long evaluation: another file in its place, a name for nothing."""
    from curation.evaluation.leaderboard_rows import check_appendable, require_name

    for name in ("figures", "outcomes"):
        if getattr(options, name) and not options.out:
            raise UsageError(f"--{name} are files", expected="--out DIR beside it")
    if options.append is not None:
        refuse_in_manifest(options.append)
        check_appendable(options.append)
        if options.name is not None:
            require_name(options.name)
    elif options.name is not None:
        raise UsageError("--name names the rows that --append writes", expected="--append FILE beside it")


def _append(result: Result, options: argparse.Namespace) -> list[str]:
    """Add the rows of a result to the file that ``--append`` names, and return what to tell."""
    from curation.evaluation.leaderboard_rows import append_rows

    if options.append is None:
        return []
    rows = result.rows(options.name)
    recovered = append_rows(options.append, rows)
    mended = ["took away a line that an earlier run had not finished"] if recovered else []
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return [*mended, f"appended {count} to {options.append}", next_command("leaderboard", options.append)]
