"""``curation evaluate imagenet``: open-set classifiers by their class scores, several side by side."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.evaluate_append import Evaluated
from curation.cli.output import stage, steps
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.benchmarks.imagenet.evaluation import ImagenetOptions
    from curation.evaluation.class_scores import PartSamples, ProtocolClasses
    from curation.evaluation.score_files import ReadScores, ScoreOptions
    from curation.manifest.manifest import Manifest

GRID_CHOICES = ("exact", "paper", "comparison", "table2", "all")
KIND_CHOICES = ("auto", "logits", "probabilities", "real")
BACKGROUND_CHOICES = ("none", "last", "removed")


def add_imagenet(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation evaluate imagenet``."""
    _add_files(command)
    _add_reading(command)
    command.add_argument(
        "--grid",
        choices=GRID_CHOICES,
        default="exact",
        help="which thresholds count: all scores (exact), or as one of the two official codes (default: %(default)s)",
    )
    command.add_argument(
        "--queries",
        default="0.001,0.01,0.1,1",
        metavar="Q,Q",
        help="false positive rates at which CCR is read (default: %(default)s)",
    )
    command.add_argument(
        "--bootstrap",
        type=int,
        default=0,
        metavar="N",
        help="replicates of confidence intervals over classes, paired over classifiers",
    )
    command.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: %(default)s)")
    command.add_argument(
        "--confidence", default="0.95", metavar="C", help="of the intervals (default: %(default)s)"
    )


def _add_files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--scores",
        action="append",
        required=True,
        metavar="[NAME=]FILE",
        help=".npz (gt and scores or logits), .npy, .csv or .parquet; repeat to compare classifiers",
    )
    command.add_argument(
        "--val",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="validation scores of the same classifier",
    )
    command.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="[NAME=]FILE.npy",
        help="labels of --scores, where apart",
    )
    command.add_argument(
        "--val-labels",
        action="append",
        default=[],
        metavar="[NAME=]FILE.npy",
        help="labels of --val, where apart",
    )
    command.add_argument(
        "--manifest",
        metavar="MANIFEST",
        help="an ImageNet protocol: its classes, so that labels may be wnids",
    )
    command.add_argument(
        "--part", metavar="PART", help="of the manifest: its images exactly, by name or else in its order"
    )
    command.add_argument("--val-part", metavar="PART", help="the same for --val")
    command.add_argument(
        "--truth",
        type=Path,
        metavar="PATH",
        help="dataset root, val.txt or other list that tells the class of each image of the part",
    )
    command.add_argument(
        "--epochs",
        action="append",
        default=[],
        metavar="[NAME=]FILE.csv",
        help="epoch, gamma_plus, gamma_minus of a training run, to choose the model and draw",
    )


def _add_reading(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="[NAME=]KIND",
        help="logits: softmax is applied; probabilities; real: any scores as they are, without confidence (default "
        "auto: by the name of the array, else probabilities where rows sum to 1)",
    )
    command.add_argument(
        "--background",
        action="append",
        nargs="?",
        const="last",
        default=[],
        metavar="[NAME=]PLACE",
        help="last (also without a word): the last column is the background class; removed: it was taken away after "
        "softmax; none; of all classifiers, or of the one named",
    )
    command.add_argument(
        "--score-key", metavar="KEY", help="array, list column, or prefix of numbered columns"
    )
    command.add_argument("--label-key", metavar="KEY", help="array or column of labels")
    command.add_argument("--image-key", metavar="KEY", help="array or column of image names")
    command.add_argument(
        "--stray",
        choices=("error", "drop"),
        default="error",
        help="rows of images that the part lacks: refuse, or leave out and report (default: %(default)s)",
    )


def run_imagenet(options: argparse.Namespace) -> Evaluated:
    """Evaluate, and write what ``--out`` asks for."""
    from curation.benchmarks.imagenet.evaluation import evaluate_imagenet
    from curation.cli.evaluate_imagenet_tables import imagenet_lines, write_imagenet
    from curation.evaluation.confidence import read_epochs

    manifest, tests, validations = _inputs(options)
    scores = {name: read.scores for name, read in tests.items()}
    chosen = _options(options)
    if options.grid == "table2" and all(read.background is None for read in scores.values()):
        raise UsageError(
            "The grid table2 counts the background column, and no classifier has one",
            expected="--background last, or NAME=last",
            hint="--grid paper is the same grid for the others",
        )
    runs = {name: read_epochs(path) for name, path in _named(options.epochs, "--epochs", list(tests)).items()}
    with stage("evaluating"):
        measured = evaluate_imagenet(
            scores, {name: read.scores for name, read in validations.items()}, chosen
        )
    result = {
        **_about(options, manifest, tests, validations),
        "epochs": {
            name: {"kept": None if run.chosen is None else run.epochs[run.chosen], "of": len(run.epochs)}
            for name, run in runs.items()
        },
        **measured,
    }
    with stage("writing"):
        written = write_imagenet(result, scores, runs, options.out) if options.out else []
    return Evaluated(result, result, [*imagenet_lines(result), *(f"wrote {path}" for path in written)])


def _inputs(
    options: argparse.Namespace,
) -> tuple[Manifest | None, dict[str, ReadScores], dict[str, ReadScores]]:
    from curation.evaluation.class_scores import protocol_classes
    from curation.manifest.locate import load_manifest

    _check(options)
    files = _named(options.scores, "--scores", [])
    names = list(files)
    validated = _named(options.val, "--val", names)
    validation_labels = _named(options.val_labels, "--val-labels", names)
    _require_validated(options, validated, validation_labels)
    manifest = load_manifest(options.manifest) if options.manifest else None
    classes = None if manifest is None else protocol_classes(manifest)
    reading = _reading(options, names)
    tests = _read(
        files,
        _named(options.labels, "--labels", names),
        reading,
        classes,
        _part(options, manifest, options.part),
    )
    validations = _read(
        validated,
        validation_labels,
        reading,
        classes,
        _part(options, manifest, options.val_part),
    )
    return manifest, tests, validations


def _check(options: argparse.Namespace) -> None:
    if (options.part or options.val_part) and not options.manifest:
        raise UsageError("--part chooses a list of a manifest", expected="--manifest MANIFEST --part PART")
    if options.truth and not (options.part or options.val_part):
        raise UsageError(
            "--truth tells the classes of a part's images", expected="--manifest MANIFEST --part PART"
        )


def _require_validated(
    options: argparse.Namespace, validated: Mapping[str, Path], labels: Mapping[str, Path]
) -> None:
    """Refuse what is said of validation scores that are not given: it would have no effect."""
    lacking = next((name for name in labels if name not in validated), None)
    if lacking is not None or (options.val_part and not validated):
        raise UsageError(
            "--val-labels and --val-part tell about validation scores, and there are none",
            where=lacking,
            expected="--val FILE" if lacking is None else f"--val {lacking}=FILE"[:200],
        )


def _named(texts: Sequence[str], option: str, known: Sequence[str]) -> dict[str, Path]:
    """Return the path by classifier from ``NAME=PATH`` arguments; a bare path goes by its stem, or is of the only one.

    Parameters
    ----------
    known : sequence of str
        Names that there are; empty when this option makes them.
    """
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or Path(text).is_file():
            name, path = (known[0] if len(known) == 1 else Path(text).stem), text
        if not name or not path or (known and name not in known):
            raise UsageError(
                f"{option} is not of a classifier that has --scores",
                where=text[:200],
                expected=" or ".join(f"{option} {one}=FILE" for one in known[:4]) or f"{option} NAME=FILE",
            )
        if name in found:
            raise UsageError(
                f"{option} is given twice for one classifier",
                where=text[:200],
                expected=f"{option} NAME=FILE",
            )
        found[name] = Path(path)
    return found


def _read(
    files: Mapping[str, Path],
    labels: Mapping[str, Path],
    reading: Mapping[str, ScoreOptions],
    classes: ProtocolClasses | None,
    part: PartSamples | None,
) -> dict[str, ReadScores]:
    from curation.evaluation.score_files import read_scores

    return {
        name: read_scores(path, reading[name], labels=labels.get(name), classes=classes, part=part)
        for name, path in steps(files.items(), "reading scores")
    }


def _part(options: argparse.Namespace, manifest: Manifest | None, part: str | None) -> PartSamples | None:
    from curation.evaluation.class_scores import part_samples

    if manifest is None or part is None:
        return None
    # Names of training images tell their class: the truth of another part is not needed for them.
    told = part_samples(manifest, part)
    return told if told.labels is not None else part_samples(manifest, part, options.truth)


def _reading(options: argparse.Namespace, names: Sequence[str]) -> dict[str, ScoreOptions]:
    from curation.evaluation.score_files import Keys, ScoreOptions

    keys = Keys(options.score_key, options.label_key, options.image_key)
    kinds = _chosen(options.kind, "--kind", KIND_CHOICES, names)
    backgrounds = _chosen(options.background, "--background", BACKGROUND_CHOICES, names)
    return {name: ScoreOptions(kinds[name], backgrounds[name], keys, options.stray) for name in names}


def _chosen(
    texts: Sequence[str], option: str, choices: Sequence[str], names: Sequence[str]
) -> dict[str, Any]:
    """Return a choice by classifier from ``[NAME=]CHOICE`` arguments; the first choice where nothing is said."""
    found = dict.fromkeys(names, choices[0])
    # What is said of one classifier goes before what is said of all, whatever the order.
    for text in sorted(texts, key=lambda one: "=" in one):
        name, equals, choice = text.rpartition("=")
        if choice not in choices or (equals and name not in names):
            raise UsageError(
                f"{option} is not usable",
                expected=f"{option} {'|'.join(choices)}, or {option} NAME=... with NAME one of {', '.join(names)}"[
                    :300
                ],
                found=text[:80],
            )
        found |= {name: choice} if equals else dict.fromkeys(names, choice)
    return found


def _options(options: argparse.Namespace) -> ImagenetOptions:
    from curation.benchmarks.imagenet.evaluation import ImagenetOptions
    from curation.evaluation.oscr import GRIDS

    grids: Any = tuple(GRIDS) if options.grid == "all" else (options.grid,)
    return ImagenetOptions(
        grids=grids,
        queries=tuple(query.strip() for query in options.queries.split(",")),
        bootstrap=options.bootstrap,
        seed=options.seed,
        confidence=options.confidence,
    )


def _about(
    options: argparse.Namespace,
    manifest: Manifest | None,
    tests: Mapping[str, ReadScores],
    validations: Mapping[str, ReadScores],
) -> dict[str, Any]:
    """Return what the numbers rest on: version, manifest, digests of all inputs, and what was left out of them."""
    from curation import __version__
    from curation.canonical import sha256_of_file

    files = {
        option: {
            name: {"name": path.name, "sha256": sha256_of_file(path)}
            for name, path in _named(texts, f"--{option}", list(tests)).items()
        }
        for option, texts in (
            ("labels", options.labels), ("val-labels", options.val_labels), ("epochs", options.epochs),
        )
    }  # fmt: skip
    if options.truth is not None and options.truth.is_file():
        files["truth"] = {"": {"name": options.truth.name, "sha256": sha256_of_file(options.truth)}}
    return {
        "protocol": "imagenet",
        "curation": __version__,
        "manifest": None
        if manifest is None
        else {
            "name": manifest.header.name,
            "version": manifest.header.version,
            "digest": manifest.digest,
            "parts": {"scores": options.part, "val": options.val_part},
        },
        "option_files": {option: named for option, named in files.items() if named},
        "inputs": {
            name: {"scores": tests[name].file, "val": validations[name].file if name in validations else None}
            for name in tests
        },
    }
