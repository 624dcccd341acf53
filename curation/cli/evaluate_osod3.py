"""``curation evaluate osod3``: AP of known classes and of unknown, A-OSE and WI over the threshold, case by case."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.category_id_options import add_category_ids, require_manifest_for_ids
from curation.cli.evaluate_append import Evaluated
from curation.cli.output import stage, steps, warn
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.benchmarks.osod3.truth import OpenSetClasses, OpenSetTruth
    from curation.benchmarks.owod.detections import TaskDetections
    from curation.manifest.manifest import Manifest
    from curation.sources.source import Source

Open = Callable[[Path, argparse.Namespace, str], "Source"]
ONLY = "test"


def add_osod3(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation evaluate osod3``; ``CASE=`` tells rotations or cases apart."""
    for option, text in (
        ("--truth", "COCO JSON, or a dataset root"),
        ("--detections", "COCO results JSON: category_id or category, `unknown` included"),
    ):
        command.add_argument(option, action="append", required=True, metavar="[CASE=]FILE", help=text)
    command.add_argument(
        "--classes",
        action="append",
        default=[],
        metavar="[CASE=]FILE",
        help='{"known": [...], "unknown": [...]}',
    )
    command.add_argument(
        "--manifest",
        action="append",
        default=[],
        metavar="[CASE=]MANIFEST",
        help="take classes and images from it",
    )
    add_category_ids(command)
    command.add_argument(
        "--part", default=ONLY, metavar="PART", help="image list of the manifests (default: %(default)s)"
    )
    command.add_argument(
        "--outside",
        choices=("delete", "ignore"),
        default="delete",
        help="objects of other classes: removed as in the paper's code, or ignored regions (default: %(default)s)",
    )
    command.add_argument(
        "--profile", choices=("clean", "voc", "all"), default="clean", help="matching behind A-OSE and WI"
    )
    command.add_argument("--thetas", metavar="T,T", help="confidence thresholds (default: 0, 0.05, ... 1)")
    command.add_argument(
        "--engine", choices=("faster", "pycocotools", "both"), help="default: faster where installed"
    )
    command.add_argument("--stray", choices=("error", "drop"), default="error")
    command.add_argument("--negative-sizes", choices=("error", "empty"), default="error")
    command.add_argument("--bad-boxes", choices=("error", "drop"), default="error")
    command.add_argument(
        "--image-set", default="test", metavar="SET", help="of a dataset root given as truth"
    )
    command.add_argument(
        "--no-cache", action="store_true", help="parse annotation files again, and store nothing"
    )


def run_osod3(options: argparse.Namespace, open_truth: Open) -> Evaluated:
    """Evaluate, and write what ``--out`` asks for."""
    from curation.benchmarks.osod3.evaluation import THETAS, evaluate_osod3, over_cases
    from curation.cli.evaluate_osod3_files import osod3_lines, write_osod3

    inputs, manifests = _inputs(options, open_truth)
    profiles: Any = ("clean", "voc") if options.profile == "all" else (options.profile,)
    thetas = THETAS if options.thetas is None else tuple(text.strip() for text in options.thetas.split(","))
    cases = {
        case: evaluate_osod3(truth, read.detections, profiles=profiles, thetas=thetas, engine=options.engine)
        for case, (truth, read) in steps(inputs.items(), "evaluating cases")
    }
    for note in dict.fromkeys(note for case in cases.values() for note in case["notes"]):
        warn(note)
    about = _about(inputs, manifests, profiles, options.part)
    result = {**about, "cases": cases, "over_cases": over_cases(cases)}
    with stage("writing"):
        written = write_osod3(result, options.out) if options.out else []
    return Evaluated(result, result, [*osod3_lines(result), *(f"wrote {path}" for path in written)])


def _inputs(
    options: argparse.Namespace, open_truth: Open
) -> tuple[dict[str, tuple[OpenSetTruth, TaskDetections]], dict[str, Manifest]]:
    from curation.benchmarks.osod3.truth import open_set_truth
    from curation.benchmarks.osod3.view import truth_view
    from curation.benchmarks.owod.detections import read_task_detections
    from curation.evaluation.detections import Policy

    files = {case: Path(path) for case, path in _by_case(options.detections, "--detections", None).items()}
    truths = {case: Path(path) for case, path in _by_case(options.truth, "--truth", list(files)).items()}
    classes, manifests = _classes(options, list(files))
    # Scores are not bounded: the paper's unknown score is a sum of three.
    policy = Policy(stray=options.stray, negative_sizes=options.negative_sizes, any_scores=True)
    opened: dict[Path, Source] = {}
    inputs = {}
    for case, path in steps(files.items(), "reading cases"):
        if truths[case] not in opened:
            opened[truths[case]] = open_truth(truths[case], options, "test")
        source = opened[truths[case]]
        ids, view = None, None
        if case in manifests:
            ids, view = manifests[case].ids(options.part), truth_view(manifests[case], options.part)
        truth = open_set_truth(
            source, classes[case], ids, outside=options.outside, view=view, category_ids=options.category_ids
        )
        inputs[case] = truth, read_task_detections(path, truth.task, source, policy)
    return inputs, manifests


def _classes(
    options: argparse.Namespace, cases: list[str]
) -> tuple[dict[str, OpenSetClasses], dict[str, Manifest]]:
    from curation.benchmarks.osod3.truth import classes_of_file, classes_of_manifest
    from curation.manifest.locate import load_manifest

    require_manifest_for_ids(options)
    if bool(options.classes) == bool(options.manifest):
        raise UsageError(
            "Nothing says which classes are known and unknown"
            if not options.classes
            else "Two options name the classes",
            expected="--classes FILE, or --manifest MANIFEST",
        )
    if options.classes:
        paths = _by_case(options.classes, "--classes", cases)
        return {case: classes_of_file(Path(path), case) for case, path in paths.items()}, {}
    named = _by_case(options.manifest, "--manifest", cases)
    manifests = {case: load_manifest(name) for case, name in named.items()}
    return {case: classes_of_manifest(one, case) for case, one in manifests.items()}, manifests


def _by_case(texts: Sequence[str], option: str, cases: Sequence[str] | None) -> dict[str, str]:
    """Return a value for each case from ``CASE=VALUE``; one plain value serves all, or is the only case ``test``."""
    named: dict[str, str] = {}
    plain = []
    for text in texts:
        case, equals, value = text.partition("=")
        if not (equals and case and value and case.replace("-", "").replace("_", "").isalnum()):
            plain.append(text)
        elif case in named:
            raise UsageError(f"{option} is given twice for case {case}", where=text[:200])
        else:
            named[case] = value
    if len(plain) == 1 and not named:
        return dict.fromkeys(cases or [ONLY], plain[0])
    wanted = list(cases) if cases is not None else list(named)
    missing = [case for case in wanted if case not in named]
    strange = [case for case in named if case not in wanted]
    if plain or missing or strange:
        raise UsageError(
            f"{option} does not fit the cases",
            where=(plain or strange or missing)[0][:200],
            expected=" ".join(f"{option} {case}=FILE" for case in wanted[:4]) or f"{option} FILE",
            found=", ".join([*plain, *named])[:200],
        )
    return named


def _about(
    inputs: Mapping[str, tuple[OpenSetTruth, TaskDetections]],
    manifests: Mapping[str, Manifest],
    profiles: Sequence[str],
    part: str,
) -> dict[str, Any]:
    """Return what the numbers rest on: version, digests of all inputs, and the classes of each case."""
    from curation import __version__
    from curation.benchmarks.osod3.evaluation import PROFILES
    from curation.benchmarks.osod3.report import DEFINITIONS

    return {
        "protocol": "osod3",
        "curation": __version__,
        "manifests": {
            case: {
                "name": one.header.name,
                "version": one.header.version,
                "digest": one.digest,
                "part": part,
            }
            for case, one in manifests.items()
        },
        "inputs": {
            case: {"truth": truth.file, "detections": read.read.file}
            for case, (truth, read) in inputs.items()
        },
        "category_ids": {case: truth.task.task.ids_from for case, (truth, _) in inputs.items()},
        "classes": {
            case: {
                "known": list(truth.classes.known),
                "unknown": list(truth.classes.unknown),
                "from": truth.classes.origin,
            }
            for case, (truth, _) in inputs.items()
        },
        "profiles": {name: PROFILES[name] for name in profiles},
        "definitions": DEFINITIONS,
    }
