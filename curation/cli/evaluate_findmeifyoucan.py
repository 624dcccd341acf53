"""``curation evaluate findmeifyoucan``: out-of-distribution and open-set metrics of one detector, split by split."""

from __future__ import annotations

import argparse
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.evaluate_append import Evaluated
from curation.cli.output import stage, steps, warn
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.benchmarks.findmeifyoucan.evaluation import OodOptions
    from curation.evaluation.ood.detections import ClassReading, ReadOodDetections
    from curation.evaluation.ood.id_scores import IdScores
    from curation.evaluation.truth import Part
    from curation.manifest.manifest import Manifest
    from curation.sources.source import Source

Open = Callable[[Path, argparse.Namespace, str], "Source"]
ONLY = "ood"
"""Name of a split that the command line does not name."""


@dataclass(frozen=True, slots=True)
class _Split:
    """The inputs of one split."""

    part: Part
    read: ReadOodDetections
    id_scores: IdScores
    methods: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def file(self) -> dict[str, Any]:
        return {"truth": self.part.file, "detections": self.read.file, "id_scores": self.id_scores.file}


def add_findmeifyoucan(command: argparse.ArgumentParser) -> None:
    """Declare what ``curation evaluate findmeifyoucan`` takes beyond the arguments of every protocol."""
    command.add_argument(
        "--id-scores",
        action="append",
        required=True,
        metavar="[SPLIT=]FILE",
        help="OOD scores of the detections on the ID test set: JSON, .npy, .csv, or their detections file",
    )
    command.add_argument(
        "--manifest", metavar="MANIFEST", help="of each truth take the images of part SPLIT of this manifest"
    )
    command.add_argument(
        "--score",
        action="append",
        metavar="NAME",
        help="evaluate this OOD score; may be repeated (default: ood_score, else all that both files give)",
    )
    command.add_argument("--profile", choices=("official", "paper", "all"), default="all")
    command.add_argument(
        "--threshold",
        default="zscore",
        metavar="RULE",
        help="zscore (the code), quantile (the paper), or a number; unknown: score < threshold (default: %(default)s)",
    )
    command.add_argument(
        "--fpr",
        choices=("first", "nearest", "ood_positive"),
        default="first",
        help="rule behind FPR95; the result holds all three (default: %(default)s)",
    )
    command.add_argument(
        "--id-classes",
        type=int,
        metavar="K",
        help="ID classes: logits of length K + 1 end with a background column",
    )
    command.add_argument(
        "--official-compat",
        action="store_true",
        help="as the code: class and confidence from all logits, and the background (index K) is unknown",
    )
    command.add_argument(
        "--t-star",
        default="",
        metavar="T",
        help="the detector's confidence cut: written to the result, and detections below it are left out",
    )
    command.add_argument(
        "--shared-ids",
        choices=("error", "report"),
        default="error",
        help="image ids that the ID file and the OOD file share (default: %(default)s)",
    )
    command.add_argument(
        "--bootstrap", type=int, default=0, metavar="N", help="replicates of confidence intervals"
    )
    command.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: %(default)s)")


def run_findmeifyoucan(options: argparse.Namespace, open_truth: Open) -> Evaluated:
    """Evaluate, and write what ``--out`` asks for."""
    from curation.benchmarks.findmeifyoucan.evaluation import evaluate_split
    from curation.cli.evaluate_findmeifyoucan_files import write_findmeifyoucan
    from curation.cli.evaluate_findmeifyoucan_tables import findmeifyoucan_lines

    settings = _settings(options)
    manifest, splits = _splits(options, open_truth)
    results: dict[str, Any] = {}
    for name, split in splits.items():
        for method in steps(split.methods, f"evaluating {name}"):
            key = name if len(split.methods) == 1 else f"{name}/{method}"
            section = evaluate_split(
                split.part.truth, split.read.detections, split.id_scores, method, settings
            )
            results[key] = {"split": name, **section, "notes": list(split.notes)}
    result = {**_about(options, manifest, splits), **_only(results), "results": results}
    for note in dict.fromkeys(note for split in splits.values() for note in split.notes):
        warn(note)
    with stage("writing"):
        written = write_findmeifyoucan(result, _scores_of(splits), options.out) if options.out else []
    return Evaluated(result, result, [*findmeifyoucan_lines(result), *(f"wrote {path}" for path in written)])


def _scores_of(splits: Mapping[str, _Split]) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Return the ID and the OOD scores of each split and method, for the histograms."""
    return {
        (name, method): (split.id_scores.scores[method], split.read.detections.scores[method])
        for name, split in splits.items()
        for method in split.methods
    }


def _only(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of the only result, for the top level too: one file in, one flat result out."""
    return dict(next(iter(results.values()))) if len(results) == 1 else {}


def _settings(options: argparse.Namespace) -> OodOptions:
    from curation.benchmarks.findmeifyoucan.evaluation import OodOptions

    if options.bootstrap < 0:
        raise UsageError("--bootstrap is negative", expected="0 or more", found=str(options.bootstrap))
    return OodOptions(
        profile=options.profile,
        threshold=options.threshold,
        fpr=options.fpr,
        t_star=options.t_star,
        bootstrap=options.bootstrap,
        seed=options.seed,
    )


def _splits(options: argparse.Namespace, open_truth: Open) -> tuple[Manifest | None, dict[str, _Split]]:
    from curation.benchmarks.findmeifyoucan.evaluation import NO_KNOWN, check_apart, choose_methods, paired
    from curation.evaluation.ood.detections import read_ood_detections
    from curation.evaluation.ood.id_scores import read_id_scores
    from curation.evaluation.readers import Policy
    from curation.evaluation.truth import ground_truth
    from curation.manifest.locate import load_manifest

    manifest = load_manifest(options.manifest) if options.manifest else None
    parts = () if manifest is None else tuple(part.name for part in manifest.header.parts)
    files = _by_split(options.detections, "--detections", parts)
    names = tuple(files)
    truths = _shared(_by_split(options.truth, "--truth", parts), names, "--truth", parts)
    id_files = _shared(_by_split(options.id_scores, "--id-scores", parts), names, "--id-scores", names)
    policy = Policy(stray=options.stray, negative_sizes=options.negative_sizes, any_scores=options.any_scores)
    t_star, classes = _t_star(options.t_star), _classes(options)
    splits = {}
    for name in steps(names, "reading splits"):
        source = open_truth(truths[name], options, "test")
        part = ground_truth(source, NO_KNOWN, None if manifest is None else manifest.ids(name))
        read = read_ood_detections(files[name], part.truth, policy, classes=classes, t_star=t_star)
        read, ids = paired(read, read_id_scores(id_files[name], t_star=t_star, classes=classes))
        told = check_apart(read, ids, shared=options.shared_ids)
        methods = choose_methods(read, ids, tuple(options.score) if options.score else None)
        splits[name] = _Split(part, read, ids, methods, (*read.notes, *ids.notes, *told))
    return manifest, splits


def _by_split(texts: Sequence[str], option: str, parts: Sequence[str]) -> dict[str, Path]:
    """Return the path of each split from ``SPLIT=PATH`` arguments, or of the only one from a plain path.

    A text is ``SPLIT=PATH`` where the word before the sign is a part of the manifest, or, without a manifest, no path.
    """
    found: dict[str, Path] = {}
    for text in texts:
        split, equals, path = text.partition("=")
        named = bool(equals and path and split) and (
            split in parts if parts else "/" not in split and not Path(text).exists()
        )
        split, path = (split, path) if named else (parts[0] if len(parts) == 1 else ONLY, text)
        if split in found:
            raise UsageError(
                f"{option} is given twice for one split",
                where=text[:200],
                expected=f"{option} SPLIT=FILE, each split once",
            )
        found[split] = Path(path)
    if len(parts) > 1 and ONLY in found and option == "--detections":
        raise UsageError(
            f"{option} does not say which split it is of",
            where=str(found[ONLY])[:200],
            expected=f"{option} SPLIT=FILE with SPLIT one of {', '.join(parts)}"[:300],
        )
    return found


def _shared(
    found: dict[str, Path], names: Sequence[str], option: str, known: Sequence[str]
) -> dict[str, Path]:
    """Return a path for each split: its own, or the one plain path that serves all."""
    plain = found.get(ONLY)
    missing = [name for name in names if name not in found]
    strangers = [name for name in found if name not in names and name != ONLY and name not in known]
    if strangers or (missing and plain is None):
        raise UsageError(
            f"{option} is missing for split {missing[0]}"
            if missing
            else f"{option} names a split without detections",
            expected=" ".join(f"{option} {name}=FILE" for name in names[:4]),
            found=", ".join(found)[:200],
        )
    return {name: found.get(name, plain) or Path() for name in names}


def _t_star(text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text) if len(text) <= 40 else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError("--t-star is no number", expected="a confidence such as 0.39", found=text[:80])
    return value


def _classes(options: argparse.Namespace) -> ClassReading:
    from curation.evaluation.ood.detections import ClassReading

    k = options.id_classes
    if options.classes is not None:
        from curation.evaluation.problem import class_names

        listed = len(class_names(options.classes))
        if k not in (None, listed):
            raise UsageError(
                "--id-classes and --classes disagree", expected=f"{listed} classes", found=str(k)
            )
        k = listed
    if k is not None and k < 1:
        raise UsageError("--id-classes is not usable", expected="1 or more", found=str(k))
    return ClassReading(k, options.official_compat)


def _about(
    options: argparse.Namespace, manifest: Manifest | None, splits: Mapping[str, _Split]
) -> dict[str, Any]:
    """Return what the numbers rest on: versions, rules, digests of all inputs, and what was left out."""
    import numpy as np

    from curation import __version__
    from curation.benchmarks.findmeifyoucan.measures import profiles_of
    from curation.benchmarks.findmeifyoucan.report import DEFINITIONS
    from curation.canonical import sha256_of_file
    from curation.evaluation.ood.separability import FPR_RULES, THRESHOLD_RULES, UNKNOWN_IF

    rule = options.threshold if options.threshold in THRESHOLD_RULES else "given"
    return {
        "protocol": "findmeifyoucan",
        "curation": __version__,
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "manifest": None
        if manifest is None
        else {
            "name": manifest.header.name,
            "version": manifest.header.version,
            "digest": manifest.digest,
            "parts": list(splits),
        },
        "option_files": {
            option: {"name": path.name, "sha256": sha256_of_file(path)}
            for option in ("classes",)
            if (path := getattr(options, option)) is not None
        },
        "inputs": {name: split.file for name, split in splits.items()},
        "settings": {
            "profiles": {one.name: one.meaning for one in profiles_of(options.profile)},
            "positive_class": "ID (higher score = ID), except in FPR95_ood_positive",
            "threshold": {"rule": rule, "meaning": THRESHOLD_RULES[rule], "unknown": UNKNOWN_IF},
            "fpr": {"rule": options.fpr, "meaning": FPR_RULES[options.fpr]},
            "t_star": options.t_star or None,
            "t_star_reason": None if options.t_star else "not stated: the files are taken as cut already",
            "id_classes": _classes(options).n_classes,
            "official_compat": options.official_compat,
            "ties": "equal confidence: by image id, then file order",
            "shared_ids": options.shared_ids,
        },
        "definitions": DEFINITIONS,
    }
