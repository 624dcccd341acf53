"""``curation evaluate``: score predictions, by protocol."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.evaluate_append import Evaluated, add_append, append_result, check_append, report_result
from curation.cli.evaluate_files import WRITTEN
from curation.cli.evaluate_findmeifyoucan import add_findmeifyoucan, run_findmeifyoucan
from curation.cli.evaluate_imagenet import add_imagenet, run_imagenet
from curation.cli.output import emit
from curation.cli.outputs import Output, OutputResult
from curation.cli.signature import add_arguments as declare_options
from curation.cli.signature import call, summary_of
from curation.evaluation.protocols import evaluation_of

if TYPE_CHECKING:
    from curation.sources.source import Source

PROTOCOLS = ("elephant", "voc", "coco", "owod", "osod3")
"""Whose options come from the signature of their function ``evaluate``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation evaluate``: one sub-command a protocol."""
    protocols = parser.add_subparsers(dest="protocol", metavar="PROTOCOL", required=True)
    for name in PROTOCOLS:
        _add_protocol(protocols, name)
    summaries = {
        "findmeifyoucan": "out-of-distribution metrics: AUROC, AUPR, FPR95, nOSE, AOSE, P_U, R_U, AP_U",
        "imagenet": "open-set classification: OSCR, CCR at FPR, confidence, AUROC, open-set accuracy",
    }
    for name, summary in summaries.items():
        command = protocols.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if name == "imagenet":
            add_imagenet(command)
        else:
            _add_inputs(command, name)
        if name == "findmeifyoucan":
            add_findmeifyoucan(command)
        _add_outputs(command, name, WRITTEN[name])


def _add_outputs(command: argparse.ArgumentParser, protocol: str, written: Output) -> None:
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
    _add_outputs(command, name, OutputResult(name))


def _add_inputs(command: argparse.ArgumentParser, protocol: str) -> None:
    prefix = "[SPLIT=]"
    command.add_argument(
        "--truth",
        action="append",
        required=True,
        metavar=f"{prefix}FILE",
        help="COCO JSON, or a dataset root",
    )
    command.add_argument(
        "--detections",
        action="append",
        required=True,
        metavar=f"{prefix}FILE",
        help="COCO results JSON with ood_score, or records by image"
        if protocol == "findmeifyoucan"
        else "COCO results, as a JSON list or one record a line, or a folder of VOC results "
        "(comp4_det_test_CLASS.txt); may be compressed by gzip",
    )
    form = '{"known": [...], "unknown": [...]}'
    if protocol == "owod":
        form = '{"tasks": [{"name": "t1", "prev": [...], "cur": [...], "rest": [...]}]}'
    command.add_argument("--classes", type=Path, metavar="FILE", help=form)
    command.add_argument(
        "--stray",
        choices=("error", "drop"),
        default="error",
        help="detections on images that the ground truth lacks"
        + (", or of classes that are unknown in the task" if protocol == "owod" else "")
        + ": refuse, or leave out and report (default: %(default)s)",
    )
    command.add_argument(
        "--negative-sizes",
        choices=("error", "empty"),
        default="error",
        help="detected boxes of negative size: refuse, or take as empty and report (default: %(default)s)",
    )
    command.add_argument("--any-scores", action="store_true", help="allow scores outside [0, 1]")
    command.add_argument(
        "--image-set",
        default="test",
        metavar="SET",
        help="of a dataset root given as truth (default: %(default)s)",
    )
    command.add_argument(
        "--bad-boxes", choices=("error", "drop"), default="error", help="unusable boxes of the ground truth"
    )
    command.add_argument(
        "--no-cache", action="store_true", help="parse annotation files again, and store nothing"
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate, write what ``--out`` and ``--append`` ask for, and print; 0, or an error of the tree."""
    check_append(options)
    evaluate: dict[str, Callable[[argparse.Namespace], Evaluated]] = {
        "findmeifyoucan": lambda one: run_findmeifyoucan(one, _open),
        "imagenet": run_imagenet,
    }
    if options.protocol in PROTOCOLS:
        return report_result(call(evaluation_of(options.protocol), options), options)
    done = evaluate[options.protocol](options)
    emit(done.shown, [*done.lines, *append_result(done.result, options)], as_json=options.json)
    return 0


def _open(path: Path, options: argparse.Namespace, part: str) -> Source:
    from curation.evaluation.inputs import Reading

    reading = Reading(image_set=options.image_set, bad_boxes=options.bad_boxes, no_cache=options.no_cache)
    return reading.open(path, part)
