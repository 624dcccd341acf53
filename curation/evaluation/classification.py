"""All measures of open-set classifiers: OSCR by variant, confidence, AUROC, open-set accuracy, classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

import numpy as np

from curation.core.errors import UsageError
from curation.core.process import stage, steps
from curation.evaluation.class_scores import (
    GROUPS,
    KINDS,
    Background,
    ClassScores,
    PartSamples,
    part_samples,
    protocol_classes,
)
from curation.evaluation.inputs import by_name, file_records, manifest_record
from curation.evaluation.measures import Measure, Measured, Scored, Value, facts_of, formulas, sum_in_order
from curation.evaluation.oscr import (
    ACCURACY_RULES,
    QUERIES,
    VARIANTS,
    Rule,
    Variant,
    auroc_of,
    confidence,
    curve_of,
    openset_accuracy,
    oscr,
    oscr_figure,
    read_query,
    score_histograms,
    shares_by_class,
)
from curation.evaluation.result import Column, Figure, Report, Result, Tidy
from curation.evaluation.score_files import Keys, read_scores
from curation.evaluation.variants import select
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest

NOTHING: Mapping[str, Path] = MappingProxyType({})


_FACTS = facts_of(__name__)
MEASURES = tuple(Measure(**row) for row in _FACTS["measures"])
_TEXTS: dict[str, str] = _FACTS["definitions"]
DEFINITIONS: dict[str, str] = {
    **formulas(MEASURES, "accuracy", "macro_accuracy"),
    "auroc": _TEXTS["auroc"],
    **formulas(MEASURES, "sum_ccr"),
    "confidence": _TEXTS["confidence"],
    "openset_accuracy": _TEXTS["openset_accuracy"],
}


_KINDS = ("auto", *KINDS)
_BACKGROUNDS: tuple[str, ...] = get_args(Background)


def evaluation_as(report: Report) -> Callable[..., Result]:
    """Return the function that scores open-set classifiers for a benchmark; its signature declares the options.

    Parameters
    ----------
    report : Report
        Result of `report_as`.
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
        kind: Annotated[tuple[str, ...], "[NAME=]KIND"] = (),
        background: Annotated[tuple[str, ...], "[[NAME=]PLACE]"] = (),
        score_key: Annotated[str | None, "KEY"] = None,
        label_key: Annotated[str | None, "KEY"] = None,
        image_key: Annotated[str | None, "KEY"] = None,
        stray: Literal["error", "drop"] = "error",
        variant: Literal["exact", "paper", "comparison", "table2", "all"] | tuple[Variant, ...] = "exact",
        queries: Annotated[str, "Q,Q"] = "0.001,0.01,0.1,1",
    ) -> Result:
        """Score open-set classification: OSCR, CCR at FPR, confidence, AUROC, open-set accuracy.

        Parameters
        ----------
        scores : Path, or mapping of str to Path
            .npz (gt and scores or logits), .npy, .csv or .parquet; repeat to compare classifiers
        val : Path, or mapping of str to Path
            validation scores of the same classifier
        labels : Path, or mapping of str to Path
            labels of --scores, if they are in a separate file
        val_labels : Path, or mapping of str to Path
            labels of --scores val=…, if they are in a separate file
        manifest : str or Manifest, optional
            an ImageNet protocol with the classes; labels may then be wnids
        part : str, optional
            part of the manifest with exactly the scored images, which are found by name or are in its order
        val_part : str, optional
            the same for --scores val=…
        truth : Path, optional
            dataset root, val.txt or other list with the class of each image of the part
        kind : sequence of str
            logits: softmax is applied; probabilities; real: any scores as they are, without confidence (default auto:
            by the name of the array, else probabilities where rows sum to 1)
        background : sequence of str
            last (also without a word): the last column is the background class; removed: it was removed after softmax;
            none; for all classifiers, or for the named one
        score_key : str, optional
            array of scores, or prefix of numbered columns
        label_key : str, optional
            array or column of labels
        image_key : str, optional
            array or column of image names
        stray : {"error", "drop"}
            rows of images that the part lacks: refuse, or leave out and report
        variant : {"exact", "paper", "comparison", "table2", "all"}, or tuple of them
            which thresholds count: all scores (exact), or those of an official code
        queries : str
            false positive rates at which CCR is read

        Raises
        ------
        UsageError, MissingFileError, EvaluationError, PredictionError
            Options do not fit together; or a file is missing or invalid.

        Examples
        --------
        >>> import curation, numpy, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scores = pathlib.Path(folder) / "scores.npz"
        ...     numpy.savez(scores, gt=[0, 1, -2], scores=[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
        ...     result = curation.evaluate.{benchmark}(scores=scores)
        >>> result["CCR@0.1"], result["AUROC"]
        (1.0, 1.0)
        """
        if (part or val_part) and not manifest:
            raise UsageError("--part requires a manifest", expected="--manifest MANIFEST --part PART")
        if truth and not (part or val_part):
            raise UsageError("--truth requires a part", expected="--manifest MANIFEST --part PART")
        files: dict[str, Path] = by_name(scores, "--scores", "classifier", unnamed=lambda path: path.stem)
        names = list(files)
        more: dict[str, dict[str, Path]] = {
            option: by_name(paths, f"--{option}", "classifier", names, unnamed=lambda path: path.stem)
            for option, paths in (("val", val), ("labels", labels), ("val-labels", val_labels))
        }
        lacking = next((name for name in more["val-labels"] if name not in more["val"]), None)
        if lacking is not None or (val_part and not more["val"]):
            raise UsageError(
                "--labels val=… and --part val=… require validation scores",
                where=lacking,
                expected="--scores val=FILE" if lacking is None else f"--scores val={lacking}=FILE"[:200],
            )
        opened = load_manifest(manifest) if isinstance(manifest, str) else manifest
        classes = None if opened is None else protocol_classes(opened)
        keys = Keys(score_key, label_key, image_key)
        kinds = _chosen(kind, "--kind", _KINDS, names)
        backgrounds = _chosen(background, "--background", _BACKGROUNDS, names)
        read = {
            purpose: {
                name: read_scores(
                    path,
                    kind=kinds[name],
                    background=backgrounds[name],
                    keys=keys,
                    stray=stray,
                    labels=apart.get(name),
                    classes=classes,
                    part=samples,
                )
                for name, path in steps(paths.items(), "reading scores")
            }
            for purpose, paths, apart, samples in (
                ("scores", files, more["labels"], _samples(opened, part, truth)),
                ("val", more["val"], more["val-labels"], _samples(opened, val_part, truth)),
            )
        }
        tests = {name: file.scores for name, file in read["scores"].items()}
        variants = select({name: name for name in get_args(Variant)}, variant)
        if variants == ("table2",) and all(test.background is None for test in tests.values()):
            raise UsageError(
                "The variant table2 requires a background column, and no classifier has one",
                expected="--background last, or NAME=last",
                hint="--variant paper takes the same thresholds for the others",
            )
        fpr_queries = tuple(query.strip() for query in queries.split(","))
        with stage("evaluating"):
            results = evaluate_classifiers(
                tests, {name: file.scores for name, file in read["val"].items()}, variants=variants, queries=fpr_queries
            )
        records = {option: file_records(more[option]) for option in ("labels", "val-labels")}
        if truth is not None and truth.is_file():
            records["truth"] = file_records({"": truth})
        about: dict[str, Any] = {
            "manifest": manifest_record(opened, parts={"scores": part, "val": val_part}),
            "known_classes_from": "the scores" if opened is None else f"manifest {opened.header.name}",
            "option_files": {option: record for option, record in records.items() if record},
            "inputs": {
                name: {purpose: scores[name].file for purpose, scores in read.items() if name in scores}
                for name in read["scores"]
            },
            "variants": {name: VARIANTS[name] for name in variants},
            "definitions": DEFINITIONS,
            "openset_accuracy_rules": ACCURACY_RULES,
        }
        scored = [
            Scored(
                part=part or "",
                variant=key,
                found=measured,
                truth={"labels": read["scores"][name].file["labels_sha256"]},
                predictions={name: read["scores"][name].file},
                operating_point={"scores": tests[name].kind, "background": _background(tests[name])},
                method=name,
                pinned=bool(part),
                of_several=True,
            )
            for name, of_variants in results.items()
            for key, measured in of_variants.items()
        ]
        notes = [f"{name} has no background column, and no number of the variant table2" for name in tests
                 if not results[name]]  # fmt: skip
        return Result(report, about, scored=scored, columns={"scores": tests}, notes=notes)

    return evaluate


def declared(protocol: str, facts: Mapping[str, Any]) -> tuple[Callable[..., Result], Report]:
    """Return the evaluation of open-set classifiers for a benchmark, and its report."""
    report = report_as(protocol)
    return evaluation_as(report), report


def _samples(manifest: Manifest | None, part: str | None, truth: Path | None) -> PartSamples | None:
    return None if manifest is None or part is None else part_samples(manifest, part, truth)


def _chosen(texts: Sequence[str], option: str, choices: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return a choice for each classifier from ``[NAME=]CHOICE`` texts; the first choice by default.

    An empty text is the second choice: ``--background`` alone means ``last``.
    """
    choices_by_name = dict.fromkeys(names, choices[0])
    # The choice for one classifier overrides that for all, in any order.
    for text in sorted((value or choices[1] for value in texts), key=lambda value: "=" in value):
        name, equals, choice = text.rpartition("=")
        if choice not in choices or (equals and name not in names):
            expected = f"{option} {'|'.join(choices)}, or {option} NAME=... with NAME one of {', '.join(names)}"
            raise UsageError(f"Invalid {option}", expected=expected[:300], found=text[:80])
        choices_by_name |= {name: choice} if equals else dict.fromkeys(names, choice)
    return choices_by_name


def evaluate_classifiers(
    classifiers: Mapping[str, ClassScores],
    validations: Mapping[str, ClassScores] | None = None,
    *,
    variants: Sequence[Variant] = ("exact",),
    queries: tuple[str, ...] = QUERIES,
) -> dict[str, dict[str, Measured]]:
    """Return the measurements of each classifier under each variant.

    Parameters
    ----------
    classifiers : mapping of name to ClassScores
        Test scores.
    validations : mapping of name to ClassScores, optional
        Validation scores of some of them: confidence against negatives (by which the paper selects a model), and the
        thresholds of OOSA.
    variants : sequence of str
        Keys of `curation.evaluation.oscr.VARIANTS`; ``table2`` skips classifiers without a background column.
    queries : tuple of str
        False positive rates, decimal texts.

    Raises
    ------
    UsageError
        No classifier is given; a variant is unknown; a query is not a rate or is given twice; or validation scores
        belong to no classifier.
    """
    validations = validations or {}
    if not classifiers or not queries:
        raise UsageError("There is nothing to evaluate", expected="a classifier and a query")
    select(VARIANTS, tuple(variants))
    if len({read_query(query) for query in queries}) < len(queries):
        raise UsageError("Duplicate false positive rate", found=",".join(queries)[:200])
    for name, data in validations.items():
        test = classifiers.get(name)
        if test is None or (data.classes, data.kind) != (test.classes, test.kind):
            raise UsageError(
                "Validation scores do not match the classifier",
                where=name[:80],
                expected=", ".join(classifiers)[:200] if test is None else f"{len(test.classes)} classes, {test.kind}",
                found=f"{len(data.classes)} classes, {data.kind}",
            )
    return {
        name: {
            variant: _measured(test, validations.get(name), variant, queries)
            for variant in variants
            if variant != "table2" or test.background is not None
        }
        for name, test in classifiers.items()
    }


def _measured(
    test: ClassScores, validation: ClassScores | None, variant: Variant, queries: tuple[str, ...]
) -> Measured:
    """Return the measurements of a classifier under a variant: values against unknown samples, and tables."""
    groups, rates = _by_group("test", test, variant, queries)
    accuracies = [
        {"group": group, "rule": rule, "reason": "", **openset_accuracy(test, group, validation, rule=rule)}
        for group in GROUPS
        for rule in get_args(Rule)
    ]
    unknown = next(row for row in groups if row["group"] == "unknown")
    best = next(row for row in accuracies if (row["group"], row["rule"]) == ("unknown", "strict"))
    unreached = next(row["undefined"] for row in rates if row["group"] == "unknown")
    shares = shares_by_class(test, test.right)
    defined = [share for share in shares if share is not None]
    n_known, n_unknown = int(test.known.sum()), unknown["n"]
    values = [
        Value(key, row[key], {"fpr": row["fpr"]}, n, row["undefined"])
        for key, n in (("CCR", n_known), ("macro_CCR", None))
        for row in rates
        if row["group"] == "unknown"
    ]
    values += [
        Value("accuracy", int((test.known & test.right).sum()) / n_known if n_known else None, n=n_known),
        Value("macro_accuracy", sum_in_order(defined) / len(defined) if defined else None),
        *(Value(key, unknown[key], n=n, undefined=reason if unknown[key] is None else "")
          for key, n, reason in (("AUROC", n_unknown, unreached), ("gamma", None, unknown["undefined"]),
                                 ("gamma_plus", n_known, ""), ("gamma_minus", n_unknown, unknown["undefined"]),
                                 ("sum_ccr", None, unreached))),
        *(Value(key, best[key], undefined=best["reason"].removeprefix("oosa: ") if best[key] is None else "")
          for key in ("iosa", "oosa")),
    ]  # fmt: skip
    class_rates = [
        {"class": name, "group": row["group"], "fpr": row["fpr"], "CCR": rate}
        for row in rates
        for name, rate in zip(test.classes, row["by_class"], strict=True)
    ]
    if validation is not None:
        more = _by_group("validation", validation, variant, queries)
        groups, rates = groups + more[0], rates + more[1]
    records = {
        "groups": groups,
        "rates": rates,
        "openset_accuracy": accuracies,
        "classes": _classes(test, shares),
        "class_rates": class_rates,
    }
    return Measured(
        values,
        {
            table.name: {column.name: [row.get(column.name) for row in records[table.name]] for column in table.columns}
            for table in TABLES
        },
    )


def _by_group(
    samples: str, data: ClassScores, variant: Variant, queries: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a row a group, and a row a group and false positive rate."""
    groups, rates = list[dict[str, Any]](), list[dict[str, Any]]()
    for group in GROUPS:
        rows = oscr(data, group, variant=variant, queries=queries)
        values = confidence(data, group)
        defined = [row["CCR"] for row in rows if row["CCR"] is not None]
        groups.append({
            "samples": samples, "group": group, "n": int(data.group(group).sum()), "n_known": int(data.known.sum()),
            **auroc_of(data, group), **values, "sum_ccr": sum_in_order(defined) if defined else None,
            "summed": len(defined), "smallest_fpr": rows[0]["smallest_fpr"],
            "undefined": values.get("reason", ""),
        })  # fmt: skip
        rates += [{"samples": samples, "group": group, **row} for row in rows]
    return groups, rates


def _classes(test: ClassScores, shares: Sequence[float | None]) -> list[dict[str, Any]]:
    labels = test.labels[test.known]
    counts = np.bincount(labels, minlength=len(test.classes)).tolist()
    totals = np.bincount(labels, test.target[test.known], minlength=len(test.classes)).tolist()
    return [
        {"class": name, "n": n, "accuracy": share, "mean_score": total / n if n and np.isfinite(total) else None}
        for name, n, share, total in zip(test.classes, counts, shares, totals, strict=True)
    ]


def _background(data: ClassScores) -> str:
    return "a column" if data.background is not None else "none" if data.sums_to_one else "removed"


TABLES = (
    Tidy("groups", (
        Column("samples"), Column("group"), Column("n", "count"), Column("n_known", "count", "known"),
        Column("AUROC", "share"), Column("AUROC_rest_as_known", "share", "rest known"),
        Column("gamma_plus", "share", "gamma+"), Column("gamma_minus", "share", "gamma-"), Column("gamma", "share"),
        *(Column(name, "share", text=False) for name in ("gamma_minus_table2", "gamma_table2")),
        Column("sum_ccr", "ratio", "sum of CCR"), Column("summed", "count", text=False),
        Column("smallest_fpr", "share", text=False), Column("undefined", text=False),
    ), title="Known samples against each group", printed=lambda row: row[2] > 0),
    Tidy("rates", (
        Column("samples"), Column("group"), Column("fpr"),
        *(Column(name, "share") for name in ("CCR", "macro_CCR")),
        *(Column(name, "share", text=False) for name in ("threshold", "reached_fpr")), Column("undefined"),
    ), title="CCR at FPR against negative samples",
        printed=lambda row: row[:2] == ("test", "negative") and "sample" not in row[-1]),
    Tidy("openset_accuracy", (
        Column("group"), Column("rule"),
        *(Column(name, "share") for name in ("iosa", "iosa_threshold", "oosa", "oosa_threshold")),
        Column("reason", text=False),
    )),
    Tidy("classes", (
        Column("class"), Column("n", "count"), Column("accuracy", "share"), Column("mean_score", "score"),
    )),
    Tidy("class_rates", (Column("class"), Column("group"), Column("fpr"), Column("CCR", "share"))),
)  # fmt: skip
"""Tables of a result besides its measures: a row for each group, false positive rate or class."""


def _drawings(result: Result) -> Iterator[Figure]:
    scores = result.columns["scores"]
    drawable = any(data.known.any() and not data.known.all() for data in scores.values())
    if not drawable:
        yield Figure("oscr", None, "no curves: they need known and other samples")
    for variant in result.data["variants"] if drawable else ():
        # The variants of the two codes have no threshold if all scores are equal.
        has_points = any(curve_of(data, group, variant) for data in scores.values() for group in GROUPS)
        is_scored = any(scored.variant == variant for scored in result.scored)
        missing = f"no curve of variant {variant}: it has no threshold" if is_scored and not has_points else ""
        yield Figure(f"oscr_{variant}", partial(oscr_figure, scores, variant=variant) if has_points else None, missing)
    yield Figure("scores", partial(score_histograms, scores))


def report_as(protocol: str) -> Report:
    """Return the report of open-set classification under the name of a benchmark."""
    return Report(
        protocol,
        MEASURES,
        drawings=_drawings,
        files=tuple(table.name for table in TABLES),
        figures=("oscr_*", "scores"),
        tidy=TABLES,
        places=("method", "variant"),
    )
