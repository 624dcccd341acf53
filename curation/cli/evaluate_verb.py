"""``curation evaluate``: score predictions, by protocol."""

from __future__ import annotations

import argparse

from curation.cli.evaluate_append import add_append, check_append, report_result
from curation.cli.outputs import OutputResult
from curation.cli.signature import add_arguments as declare_options
from curation.cli.signature import call, summary_of
from curation.evaluation.protocols import evaluation_of, protocols


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation evaluate``: one sub-command a protocol."""
    commands = parser.add_subparsers(dest="protocol", metavar="PROTOCOL", required=True)
    for name in protocols():
        evaluate = evaluation_of(name)
        summary = summary_of(evaluate)
        command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        declare_options(command, evaluate)
        add_append(command)
        command.add_argument("--json", action="store_true", help="print the whole result as JSON")
        command.add_argument(
            "--out", type=OutputResult(name), metavar="DIR", help="write results.json, CSV files and figures"
        )


def run(options: argparse.Namespace) -> int:
    """Evaluate, write what ``--out`` and ``--append`` ask for, and print; 0, or an error of the tree."""
    check_append(options)
    return report_result(call(evaluation_of(options.protocol), options), options)
