"""`score_files`: post-hoc scores of the rows of ``.npz`` files, as a file of scores or beside the detections."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from curation.arguments import checked
from curation.csv_table import as_csv
from curation.errors import CurationError, PredictionError, UsageError
from curation.evaluation.ood.detections import records_of
from curation.evaluation.post_hoc.files import PostHocInputs, read_inputs
from curation.evaluation.post_hoc.methods import METHODS, NEIGHBOURS, compute_all, possible
from curation.input_files import InputFile, is_json_lines
from curation.storage import write_text
from curation.version import __version__


@dataclass(frozen=True, slots=True)
class Scored:
    """Post-hoc scores, and what they were made of.

    Attributes
    ----------
    asked : tuple of str
        Methods that were asked for by name.
    scores : mapping of str to list of float
        By method; one score a row.
    about : dict
        Version, settings, methods, those that were impossible and why, doubts, and digests of the inputs.
    """

    asked: tuple[str, ...]
    scores: Mapping[str, list[float]]
    about: Mapping[str, Any]

    @property
    def complete(self) -> bool:
        """Whether no method that was asked for was impossible."""
        return not any(name in self.asked for name in self.about["impossible"])


@checked
def score_files(
    *,
    test: Annotated[Path, "NPZ"],
    train: Annotated[Path | None, "NPZ"] = None,
    layer: Annotated[Path | None, "NPZ"] = None,
    method: tuple[Annotated[str, "NAME"], ...] = (),
    detections: Path | None = None,
    k: Annotated[int, Meta(ge=1)] = NEIGHBOURS,
    out: Path,
) -> Scored:
    """Write post-hoc out-of-distribution scores from logits, features and a last layer, as FMIYC's code.

    Parameters
    ----------
    test
        logits (n, K) and features (n, D), a row a detection
    train
        features (N, D) and labels (N,) of the training set
    layer
        weight (K, D) and bias (K,) of the last layer
    method
        msp, energy, gen, knn, mahalanobis, ddu, ash, dice, react, dice_react, vim; may be repeated (default: all that
        the files allow; one that is impossible is told, and leaves the others standing)
    detections
        put the scores into the records of this file, whose order is that of the rows
    k
        of kNN: 10 as for Faster R-CNN; 12 for RT-DETR
    out
        .json or .csv of scores, or .json of detections

    Raises
    ------
    UsageError
        The suffix of `out` does not fit, or the files allow no method.
    CurationError
        No method that was asked for could be computed.
    """
    suffix = out.suffix.lower()
    if suffix not in (".json", ".csv") or (detections and suffix != ".json"):
        raise UsageError(
            "--out has a suffix that says nothing",
            where=str(out),
            expected=".json with --detections; else .json or .csv",
        )
    inputs = read_inputs(test, train, layer)
    names = tuple(dict.fromkeys(method or possible(inputs)))
    if not names:
        raise UsageError(
            "No score can be computed from these files",
            where=str(test),
            expected="logits, or features with --train or --layer",
        )
    found = compute_all(inputs, names, k=k)
    if not found.values:
        raise next(iter(found.impossible.values()))
    scores = {name: values.tolist() for name, values in found.values.items()}
    about = {
        "curation": __version__,
        "settings": {"k": k},
        "methods": {name: METHODS[name].meaning for name in scores},
        "impossible": {name: _reason(error) for name, error in found.impossible.items()},
        "doubts": found.doubts,
        "inputs": dict(inputs.files or {}),
        "detections": len(inputs),
    }
    write_text(out, _content(out, detections, inputs, scores, about))
    return Scored(method, scores, about)


def _reason(error: CurationError) -> str:
    return "; ".join(text for text in (error.what, error.where, error.found, error.hint) if text)


def _content(
    out: Path,
    detections: Path | None,
    inputs: PostHocInputs,
    scores: Mapping[str, list[float]],
    about: Mapping[str, Any],
) -> str:
    if detections:
        return json.dumps(_with_scores(detections, scores, len(inputs)), allow_nan=False) + "\n"
    if out.suffix.lower() == ".csv":
        named = {} if inputs.images is None else {"image_id": inputs.images}
        columns = {**named, **scores}
        return as_csv(tuple(columns), zip(*columns.values(), strict=True))
    images = {} if inputs.images is None else {"image_ids": list(inputs.images)}
    return json.dumps({"scores": scores, **images, "about": about}, ensure_ascii=False, allow_nan=False) + "\n"


def _with_scores(path: Path, scores: Mapping[str, list[float]], n: int) -> Any:
    """Return the content of a detections file with the scores in its records, everything else as it was."""
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
