"""Calls of an evaluation from Python: objects in memory become its inputs, and arguments its records of options."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from curation.core.arguments import alternatives, annotations_of, checked
from curation.core.errors import CurationError, UsageError
from curation.core.wording import did_you_mean
from curation.sources.source_specs import BadBoxes

if TYPE_CHECKING:
    from curation.evaluation.result import Result

_REQUIRED = object()


def python_function(function: Callable[..., Result], name: str) -> Callable[..., Result]:
    """Return the evaluation of a benchmark as a function that names every argument, fields of records included."""

    @partial(checked, called=f"evaluate.{name}", hint=f"help(curation.evaluate.{name})")
    def evaluation(**inputs: Any) -> Result:
        # Arguments that equal an empty default are left out.
        inputs = {key: value for key, value in inputs.items() if value is not defaults.get(key, _REQUIRED)}
        return _evaluated(function, name, inputs)

    parameters: list[inspect.Parameter] = []
    text, heading, examples = (inspect.getdoc(function) or "").replace("{benchmark}", name).partition("Examples\n")
    sections = [text.rstrip()]
    for key, parameter in inspect.signature(function).parameters.items():
        kind = annotations_of(function).get(key, Any)
        record = next((member for member in alternatives(kind) if dataclasses.is_dataclass(member)), None)
        if record is None or not all(field.kw_only for field in dataclasses.fields(record)):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))
            continue
        texts = [inspect.cleandoc(cls.__doc__) for cls in reversed(record.__mro__[:-1]) if cls.__doc__]  # type: ignore[union-attr]
        sections += [f"Arguments that `{key}` holds too.", *texts]
        for field_name, field in inspect.signature(record).parameters.items():  # type: ignore[arg-type]
            annotation = annotations_of(record).get(field_name, Any)  # type: ignore[arg-type]
            parameters.append(field.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation))
    unique = {parameter.name: parameter for parameter in reversed(parameters)}
    defaults = {key: parameter.default for key, parameter in unique.items() if not parameter.default}
    evaluation.__signature__ = inspect.Signature([*reversed(unique.values())])  # type: ignore[attr-defined]
    # Pickle looks the function up by these names.
    evaluation.__module__, evaluation.__name__, evaluation.__qualname__ = "curation.evaluate", name, name
    evaluation.__doc__ = "\n\n".join([*sections, f"{heading}{examples}"])
    return evaluation


def _evaluated(function: Callable[..., Result], name: str, inputs: dict[str, Any]) -> Result:
    """Call an evaluation; objects in memory become sources and temporary files."""
    with TemporaryDirectory(prefix="curation-") as folder:
        # Unusable boxes of a truth in memory are treated like those of a file.
        policy = inputs.get("bad_boxes", getattr(inputs.get("reading"), "bad_boxes", "error"))
        bad_boxes: BadBoxes = "drop" if policy == "drop" else "error"
        # Annotations given as detections are reported before rows of detections are read as a table of truth.
        keys = sorted(inputs, key=lambda key: key != "detections")
        arguments = {key: _usable(key, inputs[key], Path(folder), bad_boxes) for key in keys}
        try:
            return function(**_grouped(function, arguments, name))
        except CurationError as error:
            # The temporary folder exists during this call only: its path does not help the user.
            error.where = error.where and error.where.replace(f"{folder}{os.sep}", "")
            raise


def _usable(key: str, value: Any, folder: Path, bad_boxes: BadBoxes) -> Any:
    """Return an input as the functions take it: truth as a source, detections as a file."""
    if isinstance(value, str | os.PathLike) and key in ("truth", "detections", "against"):
        return value  # The evaluation converts it to a path.
    if isinstance(value, Mapping) and (key == "manifest" or (key == "truth" and "images" not in value)):
        return {part: _usable(key, file, folder, bad_boxes) for part, file in value.items()}
    if key == "truth":
        from curation.sources.opening import as_source

        return as_source(value, dataset="coco", part="test", bad_boxes=bad_boxes)
    if key == "manifest" and isinstance(value, os.PathLike):
        return str(value)
    if key == "detections":
        from curation.sources.in_memory import is_by_image

        if isinstance(value, Mapping) and {"images", "annotations"} <= value.keys():
            raise UsageError(
                "The detections are annotations, like the truth",
                expected="rows with image_id, category_id, bbox and score",
                found=f"a mapping of {', '.join(map(str, value))}"[:200],
                hint="truth takes annotations, detections the output of a detector: are they swapped?",
            )
        if isinstance(value, Mapping) and not {"bbox", "boxes"} & value.keys() and not is_by_image(value):
            parts = enumerate(value.items())
            return {part: _usable(key, file, folder / str(number), bad_boxes) for number, (part, file) in parts}
        return _written(value, folder)
    return value


def _written(value: Any, folder: Path) -> Path:
    """Write detections that are in memory as COCO results, so that one reader checks them, and return the file."""
    from curation.sources.fiftyone_view import is_view, results_of_view
    from curation.sources.in_memory import encoded_json, is_by_image, results_bytes, rows_by_image

    value = rows_by_image(value) if is_by_image(value) else value
    data = encoded_json(results_of_view(value)) if is_view(value) else results_bytes(value)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{type(value).__name__}.json"
    path.write_bytes(data)
    return path


def _grouped(function: Callable[..., Any], inputs: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return inputs with the fields of a record of options put into that record."""
    parameters = inspect.signature(function).parameters
    hints = annotations_of(function)
    records = {key: annotations_of(hints[key]) for key in parameters if dataclasses.is_dataclass(hints.get(key))}
    arguments = {key: _in_text(value, hints[key]) for key, value in inputs.items() if key in parameters}
    loose = {key: value for key, value in inputs.items() if key not in parameters}
    for key, kinds in records.items():
        fields = kinds.keys() & loose.keys()
        if fields and key in arguments:
            raise UsageError(
                f"{', '.join(sorted(fields))} and {key}, which holds {'it' if len(fields) == 1 else 'them'}, are given",
                expected=f"one of the two, for the evaluation {name}",
                hint=f"{key}={hints[key].__name__}({', '.join(f'{field}=...' for field in sorted(fields))})",
            )
        if fields:
            arguments[key] = hints[key](**{field: _in_text(loose.pop(field), kinds[field]) for field in fields})
    if loose:
        known = [*parameters, *(field for kinds in records.values() for field in kinds)]
        raise UsageError(
            f"The evaluation {name} takes no input of this name",
            found=", ".join(sorted(loose)),
            expected=", ".join(known),
            hint=did_you_mean(min(loose), known, f"help(curation.evaluate.{name})"),
        )
    missing = [key for key, param in parameters.items() if param.default is param.empty and key not in arguments]
    if missing:
        raise UsageError(
            f"The evaluation {name} lacks an input",
            expected=", ".join(missing),
            found=", ".join(arguments) or "none",
            hint=f"help(curation.evaluate.{name})",
        )
    return arguments


def _in_text(value: Any, kind: Any) -> Any:
    """Return a number as text if the parameter takes texts but no numbers: decimals stay exact as texts."""
    kinds = alternatives(kind)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return str(value) if is_number and str in kinds and not {int, float} & {*kinds} else value
