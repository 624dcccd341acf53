"""``curation evaluate``: score predictions, by protocol."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.evaluate_append import add_append, append_result, check_append, report_result
from curation.cli.evaluate_files import WRITTEN
from curation.cli.evaluate_osod3 import add_osod3, run_osod3
from curation.cli.output import emit
from curation.cli.outputs import Output, OutputResult
from curation.cli.signature import add_arguments as declare_options
from curation.cli.signature import call, summary_of
from curation.evaluation.protocols import evaluation_of

if TYPE_CHECKING:
    from curation.sources.source import Source

PROTOCOLS = ("elephant", "voc", "coco", "owod", "findmeifyoucan", "imagenet")
"""Whose options come from the signature of their function ``evaluate``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation evaluate``: one sub-command a protocol."""
    protocols = parser.add_subparsers(dest="protocol", metavar="PROTOCOL", required=True)
    for name in PROTOCOLS:
        _add_protocol(protocols, name)
    summary = (
        "open-set detection with defined unknowns: AP of known and unknown, A-OSE and WI over the threshold"
    )
    command = protocols.add_parser("osod3", help=summary, description=summary, allow_abbrev=False)
    add_osod3(command)
    _add_outputs(command, WRITTEN["osod3"])


def _add_outputs(command: argparse.ArgumentParser, written: Output) -> None:
    add_append(command)
    command.add_argument("--json", action="store_true", help="print the whole result as JSON")
    command.add_argument(
        "--out", type=written, metavar="DIR", help="write results.json, CSV files and figures"
    )


def _add_protocol(protocols: Any, name: str) -> None:
    evaluate = evaluation_of(name)
    summary = summary_of(evaluate)
    command = protocols.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    declare_options(command, evaluate)
    _add_outputs(command, OutputResult(name))


def run(options: argparse.Namespace) -> int:
    """Evaluate, write what ``--out`` and ``--append`` ask for, and print; 0, or an error of the tree."""
    check_append(options)
    if options.protocol in PROTOCOLS:
        return report_result(call(evaluation_of(options.protocol), options), options)
    done = run_osod3(options, _open)
    emit(done.shown, [*done.lines, *append_result(done.result, options)], as_json=options.json)
    return 0


def _open(path: Path, options: argparse.Namespace, part: str) -> Source:
    from curation.evaluation.inputs import Reading

    reading = Reading(image_set=options.image_set, bad_boxes=options.bad_boxes, no_cache=options.no_cache)
    return reading.open(path, part)
