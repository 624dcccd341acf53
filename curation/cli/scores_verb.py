"""``curation scores``: post-hoc out-of-distribution scores from logits, features and a last layer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import OutputFile
from curation.errors import CurationError, PredictionError, UsageError

if TYPE_CHECKING:
    from curation.evaluation.post_hoc.files import PostHocInputs
    from curation.evaluation.post_hoc.methods import Settings


@dataclass(frozen=True, kw_only=True)
class Options:
    """Post-hoc out-of-distribution scores from logits, features and a last layer.

    Attributes
    ----------
    test
        logits (n, K) and features (n, D), a row a detection
    train
        features (N, D) and labels (N,) of the training set
    layer
        weight (K, D) and bias (K,) of the last layer
    method
        msp, energy, gen, knn, mahalanobis, ddu, ash, dice, react, dice_react, vim; may be repeated
        (default: all that the files allow; one that is impossible is told, and leaves the others
        standing)
    detections
        put the scores into the records of this file, whose order is that of the rows
    percentile
        of ASH, DICE and ReAct
    k
        of kNN
    knn_distance
        , as the code
    gamma
        of GEN
    top
        of GEN (default: all classes)
    dimension
        of ViM's principal subspace
    class_weights
        DDU with class weights (the paper, not the code)
    out
        .json or .csv of scores, or .json of detections
    """

    test: Annotated[Path, "NPZ"]
    train: Annotated[Path | None, "NPZ"] = None
    layer: Annotated[Path | None, "NPZ"] = None
    method: tuple[Annotated[str, "NAME"], ...] = ()
    engine: Literal["code", "pytorch-ood"] = "code"
    detections: Path | None = None
    percentile: float = 90.0
    k: int = 10
    knn_distance: Literal["squared", "plain"] = "squared"
    gamma: float = 0.1
    top: Annotated[int | None, "M"] = None
    dimension: Annotated[int | None, "D"] = None
    class_weights: bool = False
    out: Annotated[Path, OutputFile()]


def run(options: Options) -> Answer:
    """Compute the scores, write them, and print what was done; 1 where a method that was asked for is impossible."""
    from curation.evaluation.post_hoc.files import read_inputs
    from curation.evaluation.post_hoc.methods import ENGINES, METHODS, compute_all, possible
    from curation.storage import write_text
    from curation.version import __version__

    _check(options)
    inputs = read_inputs(options.test, options.train, options.layer)
    names = tuple(dict.fromkeys(options.method or possible(inputs)))
    if not names:
        raise UsageError(
            "No score can be computed from these files",
            where=str(options.test),
            expected="logits, or features with --train or --layer",
        )
    settings = _settings(options)
    found = compute_all(inputs, names, settings, engine=options.engine)
    if not found.values:
        raise next(iter(found.impossible.values()))
    scores = {name: values.tolist() for name, values in found.values.items()}
    reasons = {name: _reason(error) for name, error in found.impossible.items()}
    about = {
        "curation": __version__,
        "engine": f"{options.engine}: {ENGINES[options.engine]}",
        "settings": {name: getattr(settings, name) for name in type(settings).__dataclass_fields__},
        "methods": {name: METHODS[name].meaning for name in scores},
        "impossible": reasons,
        "doubts": found.doubts,
        "inputs": dict(inputs.files or {}),
        "detections": len(inputs),
    }
    write_text(options.out, _content(options, inputs, scores, about))
    rows = tuple((name, METHODS[name].meaning, f"{min(v):.6g}", f"{max(v):.6g}") if (v := scores[name]) else
                 (name, METHODS[name].meaning, "-", "-") for name in scores)  # fmt: skip
    rows += tuple((name, f"impossible: {reason}", "-", "-") for name, reason in reasons.items())
    for name, reason in reasons.items():
        warn(f"{name} is left out: {reason}")
    for name, doubt in found.doubts.items():
        warn(f"{name}: {doubt}")
    table = Table(f"Scores of {len(inputs)} detections, higher is more ID", ("score", "", "lowest", "highest"), rows)
    return Answer(
        {**about, "written": str(options.out)},
        [*table_lines(table), f"wrote {options.out}"],
        int(any(name in (options.method or ()) for name in reasons)),
    )


def _reason(error: CurationError) -> str:
    return "; ".join(text for text in (error.what, error.where, error.found, error.hint) if text)


def _check(options: Options) -> None:
    suffix = options.out.suffix.lower()
    if suffix not in (".json", ".csv") or (options.detections and suffix != ".json"):
        raise UsageError(
            "--out has a suffix that says nothing",
            where=str(options.out),
            expected=".json with --detections; else .json or .csv",
        )


def _settings(options: Options) -> Settings:
    from curation.evaluation.post_hoc.methods import Settings

    return Settings(
        percentile=options.percentile,
        k=options.k,
        squared=options.knn_distance == "squared",
        gamma=options.gamma,
        top=options.top,
        dimension=options.dimension,
        weighted=options.class_weights,
    )


def _content(
    options: Options,
    inputs: PostHocInputs,
    scores: Mapping[str, list[float]],
    about: Mapping[str, Any],
) -> str:
    if options.detections:
        return json.dumps(_with_scores(options.detections, scores, len(inputs)), allow_nan=False) + "\n"
    if options.out.suffix.lower() == ".csv":
        from curation.csv_table import as_csv

        named = {} if inputs.images is None else {"image_id": inputs.images}
        columns = {**named, **scores}
        return as_csv(tuple(columns), zip(*columns.values(), strict=True))
    images = {} if inputs.images is None else {"image_ids": list(inputs.images)}
    return json.dumps({"scores": scores, **images, "about": about}, ensure_ascii=False, allow_nan=False) + "\n"


def _with_scores(path: Path, scores: Mapping[str, list[float]], n: int) -> Any:
    """Return the content of a detections file with the scores in its records, everything else as it was."""
    from curation.evaluation.ood.detections import records_of
    from curation.input_files import InputFile, is_json_lines

    given = InputFile(path, kind="detections file")
    found = len(records_of(given, path).records)
    if found != n:
        raise PredictionError(
            "The rows of the arrays are not those of the detections file",
            where=str(path),
            expected=f"{n} records, in the order of the rows",
            found=str(found),
        )
    lines = given.data.split(b"\n") if is_json_lines(given.data) else []
    content = [json.loads(line) for line in lines if line.strip()] if lines else json.loads(given.data)
    records = content if isinstance(content, list) else [one for rows in content["images"].values() for one in rows]
    for row, record in enumerate(records):
        record["scores"] = {**(record.get("scores") or {}), **{name: scores[name][row] for name in scores}}
    return content
