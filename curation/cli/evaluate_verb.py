"""``curation evaluate``: score a detector's files against ground truth."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.category_id_options import add_category_ids, require_manifest_for_ids
from curation.cli.evaluate_append import Evaluated, add_append, append_result, check_append, report_result
from curation.cli.evaluate_files import WRITTEN
from curation.cli.evaluate_findmeifyoucan import add_findmeifyoucan, run_findmeifyoucan
from curation.cli.evaluate_imagenet import add_imagenet, run_imagenet
from curation.cli.evaluate_osod3 import add_osod3, run_osod3
from curation.cli.evaluate_owod import add_owod, run_owod
from curation.cli.output import emit, stage, steps
from curation.cli.outputs import OutputResult
from curation.cli.signature import add_arguments as declare_options
from curation.cli.signature import call, summary_of
from curation.errors import EvaluationError, UsageError

if TYPE_CHECKING:
    from curation.benchmarks.elephant.evaluation import ElephantOptions
    from curation.evaluation.detections import Policy, ReadDetections
    from curation.evaluation.truth import KnownClasses, Part
    from curation.manifest.manifest import Manifest
    from curation.sources.source import Source

PARTS = ("closed", "wilderness")
PROTOCOLS = {
    "voc": "curation.evaluation.voc",
    "coco": "curation.evaluation.coco_engine",
}
"""Where each protocol has its function ``evaluate``, which declares the options, and its ``REPORT``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation evaluate``: one sub-command a protocol."""
    protocols = parser.add_subparsers(dest="protocol", metavar="PROTOCOL", required=True)
    summaries = {
        "elephant": "wilderness impact and all else of the Elephant paper",
        "voc": "",
        "coco": "",
        "owod": "open-world metrics: UR, UDR, UDP, A-OSE, wilderness impact, mAP of previous and current classes",
        "osod3": "open-set detection with defined unknowns: AP of known and unknown, A-OSE and WI over the threshold",
        "findmeifyoucan": "out-of-distribution metrics: AUROC, AUPR, FPR95, nOSE, AOSE, P_U, R_U, AP_U",
        "imagenet": "open-set classification: OSCR, CCR at FPR, confidence, AUROC, open-set accuracy",
    }
    for name, summary in summaries.items():
        if name in PROTOCOLS:
            _add_protocol(protocols, name, PROTOCOLS[name])
            continue
        command = protocols.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if name == "imagenet":
            add_imagenet(command)
        elif name == "osod3":
            add_osod3(command)
        else:
            _add_inputs(command, name)
        if name == "elephant":
            _add_elephant(command)
        if name == "owod":
            add_owod(command)
        if name == "findmeifyoucan":
            add_findmeifyoucan(command)
        add_append(command)
        command.add_argument("--json", action="store_true", help="print the whole result as JSON")
        command.add_argument(
            "--out", type=WRITTEN[name], metavar="DIR", help="write results.json, CSV files and figures"
        )


def _add_protocol(protocols: Any, name: str, module: str) -> None:
    evaluate = import_module(module).evaluate
    summary = summary_of(evaluate)
    command = protocols.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    declare_options(command, evaluate)
    add_append(command)
    command.add_argument("--json", action="store_true", help="print the whole result as JSON")
    command.add_argument(
        "--out", type=OutputResult(module), metavar="DIR", help="write results.json, CSV files and figures"
    )


def _add_inputs(command: argparse.ArgumentParser, protocol: str) -> None:
    several = protocol == "elephant"
    prefix = {"elephant": "PART=", "owod": "[TASK=]", "findmeifyoucan": "[SPLIT=]"}.get(protocol, "")
    command.add_argument(
        "--truth",
        action="append",
        required=True,
        metavar=f"{prefix}FILE",
        help="COCO JSON, or a dataset root" + ("; once for closed=, once for wilderness=" if several else ""),
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


def _add_elephant(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--manifest",
        metavar="MANIFEST",
        help="take its classes, and of each truth only the images of its lists",
    )
    add_category_ids(command)
    command.add_argument(
        "--wilderness-part",
        default="wilderness",
        metavar="PART",
        help="part of the manifest (default: %(default)s)",
    )
    command.add_argument("--profile", choices=("paper", "official", "all"), default="paper")
    command.add_argument(
        "--difficult",
        choices=("ignore", "count"),
        default="ignore",
        help="difficult objects under the paper's profile",
    )
    command.add_argument(
        "--level-counts",
        choices=("integer", "float32"),
        default="integer",
        help="images of a wilderness level: floor(k*N/10), or the official code's product of a float32 ratio and N, as "
        "NumPy 1 computes it, in double (NumPy 2 has another) (default: %(default)s)",
    )
    command.add_argument(
        "--recalls", default="0.1,0.3,0.5", metavar="R,R", help="tenths (default: %(default)s)"
    )
    command.add_argument(
        "--fbeta-ratios",
        metavar="W,W",
        help="wilderness ratios (default: 0 to 4.25 in quarters, as far as images go)",
    )
    command.add_argument("--betas", default="0.5,1.0,1.5", metavar="B,B", help="default: %(default)s")
    command.add_argument(
        "--fbeta-formula",
        choices=("correct", "published"),
        default="correct",
        help="published: as Table 4 prints b = 0.5, without the denominator (default: %(default)s)",
    )
    command.add_argument("--similar", type=Path, metavar="FILE", help="JSON list of sets of similar classes")
    command.add_argument(
        "--bootstrap", type=int, default=0, metavar="N", help="replicates of confidence intervals"
    )
    command.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Evaluate, write what ``--out`` and ``--append`` ask for, and print; 0, or an error of the tree."""
    check_append(options)
    evaluate: dict[str, Callable[[argparse.Namespace], Evaluated]] = {
        "owod": lambda one: run_owod(one, _open),
        "osod3": lambda one: run_osod3(one, _open),
        "findmeifyoucan": lambda one: run_findmeifyoucan(one, _open),
        "imagenet": run_imagenet,
    }
    if options.protocol in PROTOCOLS:
        return report_result(call(import_module(PROTOCOLS[options.protocol]).evaluate, options), options)
    done = evaluate.get(options.protocol, _detection)(options)
    emit(done.shown, [*done.lines, *append_result(done.result, options)], as_json=options.json)
    return 0


def _detection(options: argparse.Namespace) -> Evaluated:
    from curation.cli.evaluate_files import write_results
    from curation.cli.evaluate_tables import lines_of

    result, curves = _elephant(options)
    with stage("writing"):
        written = write_results(result, curves, options.out) if options.out else []
    return Evaluated(result, result, [*lines_of(result), *(f"wrote {path}" for path in written)])


def _elephant(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    from curation.benchmarks.elephant.evaluation import evaluate_elephant
    from curation.evaluation.truth import check_closed, check_wilderness, ground_truth
    from curation.manifest.locate import load_manifest

    require_manifest_for_ids(options)
    truths, files = _by_part(options.truth, "--truth"), _by_part(options.detections, "--detections")
    manifest = load_manifest(options.manifest) if options.manifest else None
    sources = {part: _open(truths[part], options, part) for part in steps(PARTS, "reading ground truth")}
    known = _known(options, sources["closed"], manifest)
    lists = _lists(options, manifest)
    parts = {part: ground_truth(sources[part], known, lists.get(part)) for part in PARTS}
    check_closed(parts["closed"])
    check_wilderness(parts["wilderness"])
    read = {
        part: _detections(files[part], parts[part], options, parts[other])
        for part, other in steps(list(zip(PARTS, reversed(PARTS), strict=True)), "reading detections")
    }
    both = [(parts[part].truth, read[part].detections) for part in PARTS]
    result = evaluate_elephant(*both[0], *both[1], _options(options, known))
    about = _about(options, known, parts, read, manifest)
    return {**about, **result}, _curves(*both[0], options)


def _by_part(texts: Sequence[str], option: str) -> dict[str, Path]:
    """Return the path of each part from ``PART=PATH`` arguments."""
    found: dict[str, Path] = {}
    for text in texts:
        part, equals, path = text.partition("=")
        if not (equals and path) or part not in PARTS or part in found:
            raise UsageError(
                f"{option} names {part!r} twice"
                if part in found
                else f"{option} needs to say which part it is of",
                where=text[:200],
                expected=f"{option} closed=FILE {option} wilderness=FILE",
            )
        found[part] = Path(path)
    missing = [part for part in PARTS if part not in found]
    if missing:
        raise UsageError(
            f"{option} is missing for {' and '.join(missing)}",
            expected=f"{option} closed=FILE {option} wilderness=FILE",
        )
    return found


def _open(path: Path, options: argparse.Namespace, part: str) -> Source:
    from curation.sources.opening import open_source

    dataset = "coco"
    if path.is_dir() and not (path / "annotations").is_dir():
        dataset = "voc2012" if path.name.upper() == "VOC2012" else "voc2007"
    return open_source(
        path,
        dataset=dataset,
        part=options.image_set if path.is_dir() else part,
        cache=not options.no_cache,
        bad_boxes=options.bad_boxes,
    )


def _known(options: argparse.Namespace, source: Source, manifest: Manifest | None) -> KnownClasses:
    from curation.evaluation.truth import classes_of_file, classes_of_manifest, classes_of_source

    if options.classes is not None:
        return classes_of_file(options.classes, source)
    if manifest is None:
        return classes_of_source(source)
    return classes_of_manifest(manifest, source, options.category_ids)


def _lists(options: argparse.Namespace, manifest: Manifest | None) -> dict[str, tuple[str, ...]]:
    if manifest is None:
        if options.wilderness_part != "wilderness":
            raise UsageError(
                "--wilderness-part chooses a part of a manifest", expected="--manifest MANIFEST beside it"
            )
        return {}
    lists = {"closed": manifest.ids("closed"), "wilderness": manifest.ids(options.wilderness_part)}
    if options.wilderness_part == "wr1" and len(lists["wilderness"]) < len(lists["closed"]):
        raise EvaluationError(
            "There are fewer wilderness images than closed ones",
            where=f"part wr1 of {options.manifest}",
            expected=f"{len(lists['closed'])} images",
            found=str(len(lists["wilderness"])),
            hint="--wilderness-part wilderness takes all there are",
        )
    return lists


def _detections(
    path: Path, part: Part, options: argparse.Namespace, other: Part | None = None
) -> ReadDetections:
    from curation.evaluation.detections import Policy, read_coco_results
    from curation.evaluation.voc_results import is_voc_results, read_voc_results

    policy: Policy = Policy(
        stray=options.stray, negative_sizes=options.negative_sizes, any_scores=options.any_scores
    )
    if is_voc_results(path):
        return read_voc_results(path, part.truth, part.names, policy)
    others = None if other is None else other.truth.image_numbers
    return read_coco_results(path, part.truth, policy, others=others)


def _options(options: argparse.Namespace, known: KnownClasses) -> ElephantOptions:
    from curation.benchmarks.elephant.diagnosis import read_similar_sets
    from curation.benchmarks.elephant.evaluation import ElephantOptions

    ratios = options.fbeta_ratios
    return ElephantOptions(
        profile=options.profile,
        difficult=options.difficult,
        level_counts=options.level_counts,
        recalls_tenths=_tenths(options.recalls),
        ratios=None if ratios is None else tuple(ratios.split(",")),
        betas=tuple(options.betas.split(",")),
        fbeta_formula=options.fbeta_formula,
        similar=None if options.similar is None else read_similar_sets(options.similar, known.names),
        bootstrap=options.bootstrap,
        seed=options.seed,
    )


def _tenths(text: str) -> tuple[int, ...]:
    names = {f"{tenths // 10}.{tenths % 10}": tenths for tenths in range(1, 11)}
    given = text.split(",")
    if len(set(given)) != len(given) or not set(given) <= set(names):
        raise UsageError(
            "The recalls are not usable",
            where=f"--recalls {text}"[:200],
            expected="different ones of " + ", ".join(names),
        )
    return tuple(names[recall] for recall in given)


def _about(
    options: argparse.Namespace,
    known: KnownClasses,
    parts: Mapping[str, Part],
    read: Mapping[str, ReadDetections],
    manifest: Manifest | None,
) -> dict[str, Any]:
    """Return what the numbers rest on: version, digests of all inputs, and what was left out of them."""
    from curation import __version__
    from curation.canonical import sha256_of_file

    return {
        "protocol": options.protocol,
        "curation": __version__,
        "known_classes_from": known.origin,
        "category_ids": known.ids_from,
        "manifest": None
        if manifest is None
        else {
            "name": manifest.header.name,
            "version": manifest.header.version,
            "digest": manifest.digest,
            "wilderness_part": options.wilderness_part,
        },
        "option_files": {
            option: {"name": path.name, "sha256": sha256_of_file(path)}
            for option in ("classes", "similar")
            if (path := getattr(options, option, None)) is not None
        },
        "inputs": {part: {"truth": parts[part].file, "detections": read[part].file} for part in parts},
    }


def _curves(truth: Any, detections: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Return the precision-recall curve of each class on the closed set, for the figure."""
    if options.out is None:
        return {}
    from curation.evaluation.voc import precision_recall

    return precision_recall(truth, detections, difficult=getattr(options, "difficult", "ignore"))
