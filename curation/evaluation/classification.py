"""Every measure of open-set classifiers: OSCR by variant, confidence, AUROC, open-set accuracy, classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

import numpy as np

from curation.arguments import Replicates, Seed
from curation.errors import UsageError
from curation.evaluation import confidence as confidences
from curation.evaluation.class_scores import (
    GROUPS,
    KINDS,
    Background,
    ClassScores,
    PartSamples,
    part_samples,
    protocol_classes,
)
from curation.evaluation.classification_report import DEFINITIONS, report_as
from curation.evaluation.confidence import read_epochs
from curation.evaluation.inputs import by_name, file_records, manifest_record
from curation.evaluation.kin import classifiers_without_kin
from curation.evaluation.oscr import (
    ACCURACY_RULES,
    QUERIES,
    VARIANTS,
    Variant,
    auroc_of,
    class_rates,
    margins_of,
    openset_accuracy,
    oscr,
    oscr_curve,
    point_at_fpr,
    read_query,
    shares_by_class,
)
from curation.evaluation.resample import class_bootstrap
from curation.evaluation.result import Report, Result
from curation.evaluation.score_files import Keys, ReadScores, ScoreOptions, read_scores
from curation.evaluation.variants import select
from curation.hierarchy.kinship import Kin
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.progress import stage, steps

NOTHING: Mapping[str, Path] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ClassificationOptions:
    """What to compute.

    Attributes
    ----------
    variants : tuple of str
        Of `curation.evaluation.oscr.VARIANTS`; ``table2`` is left out for a classifier without a background column.
    queries : tuple of str
        False positive rates, decimal texts.
    bootstrap : int
        Replicates; 0 for no intervals.
    seed : int
    confidence : str
        Of the intervals.
    """

    variants: tuple[Variant, ...] = ("exact",)
    queries: tuple[str, ...] = QUERIES
    bootstrap: int = 0
    seed: int = 0
    confidence: str = "0.95"


_KINDS = ("auto", *KINDS)
_BACKGROUNDS: tuple[str, ...] = get_args(Background)


def evaluation_as(report: Report) -> Callable[..., Result]:
    """Return the function that scores open-set classifiers for a benchmark; its signature declares the options.

    Parameters
    ----------
    report : Report
        As `curation.evaluation.classification_report.report_as` makes it.
    """

    def evaluate(
        *,
        scores: Annotated[Mapping[str, Path] | Path, "[NAME=]FILE"],
        val: Annotated[Mapping[str, Path] | Path, "[NAME=]FILE"] = NOTHING,
        labels: Annotated[Mapping[str, Path] | Path, "[NAME=]FILE.npy"] = NOTHING,
        val_labels: Annotated[Mapping[str, Path] | Path, "[NAME=]FILE.npy"] = NOTHING,
        manifest: Annotated[str | Manifest | None, "MANIFEST"] = None,
        part: Annotated[str | None, "PART"] = None,
        val_part: Annotated[str | None, "PART"] = None,
        truth: Annotated[Path | None, "PATH"] = None,
        epochs: Annotated[Mapping[str, Path] | Path, "[NAME=]FILE.csv"] = NOTHING,
        kind: Annotated[tuple[str, ...], "[NAME=]KIND"] = (),
        background: Annotated[tuple[str, ...], "[[NAME=]PLACE]"] = (),
        score_key: Annotated[str | None, "KEY"] = None,
        label_key: Annotated[str | None, "KEY"] = None,
        image_key: Annotated[str | None, "KEY"] = None,
        stray: Literal["error", "drop"] = "error",
        variant: Literal["exact", "paper", "comparison", "table2", "all"] | tuple[Variant, ...] = "exact",
        queries: Annotated[str, "Q,Q"] = "0.001,0.01,0.1,1",
        bootstrap: Replicates = 0,
        seed: Seed = 0,
        confidence: Annotated[str, "C"] = "0.95",
        without_kin: Kin | None = None,
    ) -> Result:
        """Score open-set classification: OSCR, CCR at FPR, confidence, AUROC, open-set accuracy.

        Parameters
        ----------
        scores : Path, or mapping of str to Path
            .npz (gt and scores or logits), .npy, .csv or .parquet; repeat to compare classifiers
        val : Path, or mapping of str to Path
            validation scores of the same classifier
        labels : Path, or mapping of str to Path
            labels of --scores, where apart
        val_labels : Path, or mapping of str to Path
            labels of --scores val=…, where apart
        manifest : str or Manifest, optional
            an ImageNet protocol: its classes, so that labels may be wnids
        part : str, optional
            of the manifest: its images exactly, by name or else in its order
        val_part : str, optional
            the same for --scores val=…
        truth : Path, optional
            dataset root, val.txt or other list that tells the class of each image of the part
        epochs : Path, or mapping of str to Path
            epoch, gamma_plus, gamma_minus of a training run, to choose the model and draw
        kind : sequence of str
            logits: softmax is applied; probabilities; real: any scores as they are, without confidence (default auto:
            by the name of the array, else probabilities where rows sum to 1)
        background : sequence of str
            last (also without a word): the last column is the background class; removed: it was taken away after
            softmax; none; of all classifiers, or of the one named
        score_key : str, optional
            array, list column, or prefix of numbered columns
        label_key : str, optional
            array or column of labels
        image_key : str, optional
            array or column of image names
        stray : {"error", "drop"}
            rows of images that the part lacks: refuse, or leave out and report
        variant : {"exact", "paper", "comparison", "table2", "all"}, or tuple of them
            which thresholds count: all scores (exact), or as one of the two official codes
        queries : str
            false positive rates at which CCR is read
        bootstrap : int
            replicates of confidence intervals over classes, paired over classifiers
        seed : int
            of the bootstrap
        confidence : str
            of the intervals
        without_kin : {"descendants", "all"}, optional
            each classifier once more without unknown images of classes below a known class in WordNet, or also of those
            above one; with --manifest and --part

        Raises
        ------
        UsageError, MissingFileError, EvaluationError, PredictionError
            Options do not fit together; a file is not there, or does not hold what it should.
        """
        if (part or val_part) and not manifest:
            raise UsageError("--part chooses a list of a manifest", expected="--manifest MANIFEST --part PART")
        if truth and not (part or val_part):
            raise UsageError("--truth tells the classes of a part's images", expected="--manifest MANIFEST --part PART")
        files: dict[str, Path] = by_name(scores, "--scores", "classifier", unnamed=_stem)
        names = list(files)
        more: dict[str, dict[str, Path]] = {
            option: by_name(given, f"--{option}", "classifier", names, unnamed=_stem)
            for option, given in (
                ("val", val),
                ("labels", labels),
                ("val-labels", val_labels),
                ("epochs", epochs),
            )
        }
        _require_validated(more["val"], more["val-labels"], val_part)
        taken = load_manifest(manifest) if isinstance(manifest, str) else manifest
        classes = None if taken is None else protocol_classes(taken)
        keys = Keys(score_key, label_key, image_key)
        kinds, places = (
            _chosen(kind, "--kind", _KINDS, names),
            _chosen(background, "--background", _BACKGROUNDS, names),
        )
        read = {
            what: {
                name: read_scores(
                    path,
                    ScoreOptions(kinds[name], places[name], keys, stray),
                    labels=apart.get(name),
                    classes=classes,
                    part=samples,
                )
                for name, path in steps(given.items(), "reading scores")
            }
            for what, given, apart, samples in (
                ("scores", files, more["labels"], _samples(taken, part, truth)),
                ("val", more["val"], more["val-labels"], _samples(taken, val_part, truth)),
            )
        }
        left = None
        if without_kin is not None:
            left = classifiers_without_kin(read["scores"], classes, without_kin)
            read["scores"] |= left.scores
            read["val"] |= {name: read["val"][whole] for name, whole in left.of.items() if whole in read["val"]}
        tests = {name: one.scores for name, one in read["scores"].items()}
        variants = select({one: one for one in get_args(Variant)}, variant)
        if variants == ("table2",) and all(one.background is None for one in tests.values()):
            raise UsageError(
                "The variant table2 counts the background column, and no classifier has one",
                expected="--background last, or NAME=last",
                hint="--variant paper takes the same thresholds for the others",
            )
        runs = {name: read_epochs(path) for name, path in more["epochs"].items()}
        options = ClassificationOptions(
            variants=variants,
            queries=tuple(query.strip() for query in queries.split(",")),
            bootstrap=bootstrap,
            seed=seed,
            confidence=confidence,
        )
        with stage("evaluating"):
            measured = evaluate_classifiers(tests, {name: one.scores for name, one in read["val"].items()}, options)
        told = _about(
            manifest_record(taken, parts={"scores": part, "val": val_part}),
            read,
            more,
            truth,
        )
        if left is not None:
            told["option_files"]["without_kin"] = dict.fromkeys(left.of, left.record)
        kept = {
            name: {"kept": None if run.chosen is None else run.epochs[run.chosen], "of": len(run.epochs)}
            for name, run in runs.items()
        }
        return Result(
            report,
            told,
            {"epochs": kept, **measured},
            columns={"scores": tests, "runs": runs},
            notes=() if left is None else left.notes,
        )

    return evaluate


def declared(protocol: str, table: Mapping[str, Any]) -> tuple[Callable[..., Result], Report]:
    """Return the evaluation of open-set classifiers for a benchmark, which declares nothing more, and its report."""
    report = report_as(protocol)
    return evaluation_as(report), report


def _stem(path: Path) -> str:
    """Return the name of a classifier that is given by its file alone."""
    return path.stem


def _require_validated(validated: Mapping[str, Path], labels: Mapping[str, Path], val_part: str | None) -> None:
    """Refuse what is said of validation scores that are not given: it would have no effect."""
    lacking = next((name for name in labels if name not in validated), None)
    if lacking is not None or (val_part and not validated):
        raise UsageError(
            "--labels val=FILE and --part val=PART need validation scores",
            where=lacking,
            expected="--scores val=FILE" if lacking is None else f"--scores val:{lacking}=FILE"[:200],
        )


def _samples(manifest: Manifest | None, part: str | None, truth: Path | None) -> PartSamples | None:
    if manifest is None or part is None:
        return None
    # Names of training images tell their class: the truth of another part is not needed for them.
    told = part_samples(manifest, part)
    return told if told.labels is not None else part_samples(manifest, part, truth)


def _chosen(texts: Sequence[str], option: str, choices: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return a choice by classifier from ``[NAME=]CHOICE`` texts; the first choice where nothing is said.

    An empty text is the second choice: ``--background`` alone says ``last``.
    """
    found = dict.fromkeys(names, choices[0])
    # What is said of one classifier goes before what is said of all, whatever the order.
    for text in sorted((one or choices[1] for one in texts), key=lambda one: "=" in one):
        name, equals, choice = text.rpartition("=")
        if choice not in choices or (equals and name not in names):
            expected = f"{option} {'|'.join(choices)}, or {option} NAME=... with NAME one of {', '.join(names)}"
            raise UsageError(f"{option} is not usable", expected=expected[:300], found=text[:80])
        found |= {name: choice} if equals else dict.fromkeys(names, choice)
    return found


def _about(
    manifest: Mapping[str, Any] | None,
    read: Mapping[str, Mapping[str, ReadScores]],
    more: Mapping[str, Mapping[str, Path]],
    truth: Path | None,
) -> dict[str, Any]:
    """Return what the numbers rest on: manifest, digests of all inputs, and what was left out of them."""
    files = {option: file_records(more[option]) for option in ("labels", "val-labels", "epochs")}
    if truth is not None and truth.is_file():
        files["truth"] = file_records({"": truth})
    tests, validations = read["scores"], read["val"]
    return {
        "manifest": manifest,
        "option_files": {option: named for option, named in files.items() if named},
        "inputs": {
            name: {"scores": tests[name].file, "val": validations[name].file if name in validations else None}
            for name in tests
        },
    }


def evaluate_classifiers(
    classifiers: Mapping[str, ClassScores],
    validations: Mapping[str, ClassScores] | None = None,
    options: ClassificationOptions | None = None,
) -> dict[str, Any]:
    """Return every measure of each classifier, with its definition.

    Parameters
    ----------
    classifiers : mapping of name to ClassScores
        Test scores.
    validations : mapping of name to ClassScores, optional
        Validation scores of some of them: confidence against negatives (by which the paper selects a model), and the
        thresholds of OOSA.

    Returns
    -------
    dict
        ``variants``, ``queries``, ``definitions``, ``classifiers`` by name (see `evaluate_classifier`), ``bootstrap``.

    Raises
    ------
    UsageError
        No classifier, an unknown variant, a query that is not a rate or given twice, a validation of no classifier.
    """
    options = options or ClassificationOptions()
    validations = validations or {}
    _check(classifiers, validations, options)
    return {
        "grids": {variant: VARIANTS[variant] for variant in options.variants},
        "queries": list(options.queries),
        "definitions": DEFINITIONS,
        "openset_accuracy_rules": ACCURACY_RULES,
        "classifiers": {
            name: evaluate_classifier(data, validations.get(name), options) for name, data in classifiers.items()
        },
        "bootstrap": None
        if not options.bootstrap
        else class_bootstrap(
            classifiers,
            replicates=options.bootstrap,
            seed=options.seed,
            confidence=options.confidence,
            queries=options.queries,
        ),
    }


def evaluate_classifier(
    test: ClassScores, validation: ClassScores | None, options: ClassificationOptions
) -> dict[str, Any]:
    """Return every measure of one classifier.

    Returns
    -------
    dict
        ``n`` by group, ``scores`` (what kind), ``accuracy``, ``macro_accuracy``; ``confidence``, ``auroc`` and
        ``openset_accuracy`` by group; ``oscr`` by variant and group; ``validation`` (None without); ``classes``: one
        record a known class with its accuracy, mean probability or score of its own class, and CCR at each query (exact
        variant). Undefined is None, with a ``reason``.
    """
    shares = shares_by_class(test, test.right)
    defined = [share for share in shares if share is not None]
    n_known = int(test.known.sum())
    result: dict[str, Any] = {
        "n": {"known": n_known, **{group: int(test.group(group).sum()) for group in GROUPS}},
        "scores": KINDS[test.kind],
        "background": "a column" if test.background is not None else "none" if test.sums_to_one else "removed",
        "accuracy": int((test.known & test.right).sum()) / n_known if n_known else None,
        "macro_accuracy": sum(defined) / len(defined) if defined else None,
        "confidence": {group: confidences.confidence(test, group) for group in GROUPS},
        "auroc": {group: auroc_of(test, group) for group in GROUPS},
        "oscr": {
            variant: {group: oscr(test, group, variant=variant, queries=options.queries) for group in GROUPS}
            for variant in options.variants
            if variant != "table2" or test.background is not None
        },
        "openset_accuracy": {
            group: {rule: openset_accuracy(test, group, validation, rule=rule) for rule in ("strict", "inclusive")}
            for group in GROUPS
        },
        "validation": None if validation is None else _validation(validation, options.queries),
        "classes": _classes(test, shares, options.queries),
    }
    return result if n_known else result | {"reason": "no sample of a known class"}


def _validation(data: ClassScores, queries: tuple[str, ...]) -> dict[str, Any]:
    """Return what the papers read from validation scores: gamma, and the sum of CCR, both against negatives."""
    curve = oscr(data, "negative", variant="exact", queries=queries)
    return {
        "n": {"known": int(data.known.sum()), **{group: int(data.group(group).sum()) for group in GROUPS}},
        "confidence": {"negative": confidences.confidence(data, "negative")},
        "oscr": {"exact": {"negative": curve}},
    }


def _classes(test: ClassScores, shares: list[float | None], queries: Sequence[str]) -> list[dict[str, Any]]:
    counts = np.bincount(test.labels[test.known], minlength=len(test.classes)).tolist()
    totals = np.bincount(test.labels[test.known], test.target[test.known], minlength=len(test.classes))
    rates = {}
    for group in GROUPS:
        curve = oscr_curve(margins_of(test, group))
        for query in queries:
            place = None if curve is None else point_at_fpr(curve, query)
            rates[f"{group}.{query}"] = class_rates(test, curve, place)
    return [
        {
            "class": name,
            "n": n,
            "accuracy": shares[number],
            "mean_score": total / n if n and np.isfinite(total) else None,
            "ccr_at_fpr": {key: found[number] for key, found in rates.items()},
        }
        for number, (name, n, total) in enumerate(zip(test.classes, counts, totals.tolist(), strict=True))
    ]


def _check(
    classifiers: Mapping[str, ClassScores],
    validations: Mapping[str, ClassScores],
    options: ClassificationOptions,
) -> None:
    if not classifiers or not options.queries or not options.variants:
        raise UsageError("There is nothing to evaluate", expected="a classifier, a variant and a query")
    if unknown := [variant for variant in options.variants if variant not in VARIANTS]:
        raise UsageError("There is no such variant", expected=", ".join(VARIANTS), found=str(unknown[0])[:40])
    if len({read_query(query) for query in options.queries}) < len(options.queries):
        raise UsageError("A false positive rate is asked for twice", found=",".join(options.queries)[:200])
    if unmatched := [name for name in validations if name not in classifiers]:
        raise UsageError(
            "Validation scores belong to no classifier",
            expected=f"one of {', '.join(classifiers)}"[:200],
            found=unmatched[0][:80],
        )
    for name, data in validations.items():
        if data.classes != classifiers[name].classes or data.kind != classifiers[name].kind:
            raise UsageError(
                "Validation and test scores are not of one classifier",
                where=name[:80],
                expected=f"{len(classifiers[name].classes)} classes, {classifiers[name].kind}",
                found=f"{len(data.classes)} classes, {data.kind}",
            )
