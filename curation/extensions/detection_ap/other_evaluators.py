"""Compare numbers of other evaluators, in their own formats, with ours; `NAMES` maps their names to our keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.core.arguments import shown
from curation.core.errors import EvaluationError
from curation.core.json_text import decode_json
from curation.core.reading import InputFile
from curation.evaluation.measures import percent
from curation.sources.table import read_texts

SUMMARY = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")
"""Keys of COCO's twelve numbers, in its order."""
TORCHMETRICS = dict(
    zip(
        (
            "map", "map_50", "map_75", "map_small", "map_medium", "map_large",
            "mar_1", "mar_10", "mar_100", "mar_small", "mar_medium", "mar_large",
        ),
        SUMMARY,
        strict=True,
    )
)  # fmt: skip
NAMES: dict[str, str] = {
    # torchmetrics 1.9: MeanAveragePrecision.compute().
    **TORCHMETRICS,
    # supervision 0.31: MeanAveragePrecisionResult, its attributes and the columns of to_pandas().
    "map50_95": "AP", "map50": "AP50", "map75": "AP75", "mAP@50:95": "AP", "mAP@50": "AP50", "mAP@75": "AP75",
    **{f"{size}_objects_mAP@50:95": f"AP{size[0]}" for size in ("small", "medium", "large")},
    # Ultralytics 8.4: results_dict, results.csv (a row an epoch), and summary() (a row a class).
    "metrics/mAP50-95(B)": "AP", "metrics/mAP50(B)": "AP50",
}  # fmt: skip
"""Our key for each name; LVISEval.results, and other sources that use our keys, need no entry."""
_OF_CLASS, _CLASS = "mAP50-95", "Class"
_UNDEFINED = -1
_WHY = "the other evaluator says -1 or null: undefined"
_FORMS = (
    "shares from 0 to 1, -1 where undefined: COCOeval.stats (a list of twelve), or a JSON object or CSV with names of "
    "torchmetrics (map, map_50, map_per_class, classes), supervision (mAP@50:95), Ultralytics (metrics/mAP50-95(B), or "
    "Class and mAP50-95) or LVIS (AP, APr)"
)
_LARGEST_KEY = 80


def compare_with_external(
    ours: Mapping[str, Any], given: Any, class_numbers: Mapping[int | None, str]
) -> dict[str, Any]:
    """Return the numbers of another evaluator beside ours. Its -1 always means undefined.

    Parameters
    ----------
    ours : mapping
        Our numbers by key, and ``per_class``, AP by class name, as fractions of 1; None where undefined.
    given : Path, mapping, sequence or object
        What pycocotools, torchmetrics, supervision, Ultralytics or LVIS return, tensors as they are or as numbers; or a
        JSON or CSV file of it. Of several rows without classes, such as epochs, the last counts.
    class_numbers : mapping of int or None to str
        Class of each category id, for numbers of classes that go by id; those that go by name need none.

    Returns
    -------
    dict
        ``file``: name and digest, None for what is in memory; ``passed_over``: what else there was; ``against``, a
        table in %: ``measure`` (``AP of CLASS`` of a class), ``ours``, ``theirs``, ``difference`` (theirs - ours), None
        where one is undefined, and ``undefined``, why the other evaluator's is.

    Raises
    ------
    MissingFileError, EvaluationError
        The file is missing, holds no such numbers, or a number is not a share.
    """
    where, record = "against", None
    if isinstance(given, Path):
        where = str(given)
        given, record = _read(given)
    numbers, classes, passed_over = _numbers(given, where)
    keys = {name: NAMES.get(name, name) for name in numbers}
    rows = [(key, ours[key], _share(numbers[name], where, name)) for name, key in keys.items() if _is_ours(key, ours)]
    if len({key for key, *_ in rows}) < len(rows) or not (rows or classes):
        problem = "Two numbers of another evaluator mean the same" if rows else "There is no number of COCO's summary"
        raise _no_numbers(problem, where, ", ".join(numbers) or "nothing")
    for number, value in classes.items():
        share = _share(value, where, f"class {number}")
        name = class_numbers.get(number, number)
        if name in ours["per_class"]:
            rows.append((f"AP of {name}", ours["per_class"][name], share))
        else:
            passed_over.append(f"class {number}")
    passed_over += [name for name, key in keys.items() if not _is_ours(key, ours)]
    gaps = [None if our_value is None or other is None else other - our_value for _, our_value, other in rows]
    against = {
        "measure": [name for name, *_ in rows],
        "ours": [percent(our_value) for _, our_value, _ in rows],
        "theirs": [percent(other) for *_, other in rows],
        "difference": list(map(percent, gaps)),
        "undefined": [_WHY if other is None else "" for *_, other in rows],
    }
    return {"file": record, "passed_over": sorted(passed_over), "against": against}


def _is_ours(key: str, ours: Mapping[str, Any]) -> bool:
    return key in ours and (ours[key] is None or isinstance(ours[key], float | int)) and key[:2] in ("AP", "AR")


def _read(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return the content of a JSON or CSV file, and its name and digest."""
    file = InputFile(path, kind="file of another evaluator's numbers")
    record = {"name": path.name, "sha256": file.sha256}
    if path.suffix.lower() != ".csv":
        form: Any = dict[str, Any] | list[Any]
        title = "The numbers of another evaluator cannot be read"
        return decode_json(file.data, form, EvaluationError, title, where=str(path)), record
    rows = read_texts(file, EvaluationError).to_dict("records")
    return [
        {name: cell if str(name).strip() == _CLASS else _cell(cell) for name, cell in row.items()} for row in rows
    ], record


def _cell(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _numbers(source: Any, where: str) -> tuple[dict[str, Any], dict[Any, Any], list[str]]:
    """Return numbers by their names, numbers of classes by id or name, and the names of ignored entries."""
    source = _of_object(source)
    if isinstance(source, Mapping):
        numbers = {str(name): value for name, value in source.items()}
        names, values = (_several(numbers.pop(name, None)) for name in ("classes", "map_per_class"))
        # Without class_metrics torchmetrics has one -1 for all classes.
        if values == [_UNDEFINED] and len(names) != 1:
            values = []
        return numbers, _by_class(names if values else [], values, where), []
    rows = _several(source)
    if rows and all(isinstance(row, Mapping) for row in rows):
        rows = [{str(name).strip(): value for name, value in row.items()} for row in rows]
        if all(_CLASS in row and _OF_CLASS in row for row in rows):
            others = dict.fromkeys(name for row in rows for name in row if name not in (_CLASS, _OF_CLASS))
            return {}, _by_class([row[_CLASS] for row in rows], [row[_OF_CLASS] for row in rows], where), [*others]
        return rows[-1], {}, [f"{len(rows) - 1} rows before the last"] if rows[1:] else []
    if len(rows) != len(SUMMARY):
        raise _no_numbers("These are not the twelve numbers of COCO's summary", where, f"{len(rows)} numbers")
    return dict(zip(SUMMARY, rows, strict=True)), {}, []


def _of_object(result: Any) -> Any:
    """Return the numbers of a result object of another library; mappings and sequences are returned unchanged."""
    if hasattr(result, "results_dict"):  # Ultralytics
        classes = {"classes": [result.names[number] for number in result.ap_class_index]} if result.names else {}
        of_class = [result.maps[number] for number in result.ap_class_index]
        return result.results_dict | (classes | {"map_per_class": of_class} if classes else {})
    if hasattr(result, "map50_95"):  # supervision
        numbers = {name: getattr(result, name) for name in ("map50_95", "map50", "map75")}
        sizes = {name: getattr(result, name.partition("_mAP")[0]) for name in NAMES if "_objects_" in name}
        numbers |= {name: size.map50_95 for name, size in sizes.items() if size is not None}
        rows = [float(row.mean()) if (row >= 0).all() else _UNDEFINED for row in result.ap_per_class]
        return numbers | {"classes": list(map(int, result.matched_classes)), "map_per_class": rows}
    if hasattr(result, "stats"):  # COCOeval
        return result.stats
    return getattr(result, "results", result)  # LVISEval


def _by_class(names: Sequence[Any], values: Sequence[Any], where: str) -> dict[Any, Any]:
    if len(values) != len(names) or len(set(map(str, names))) < len(names):
        counts = f"{len(values)} numbers, classes {names}"
        raise _no_numbers("There is not one number for each class of another evaluator", where, counts)
    return dict(zip((name if isinstance(name, int) else str(name) for name in names), values, strict=True))


def _several(value: Any) -> list[Any]:
    """Return the members of a list or tensor; wrap a single number, as torchmetrics gives for one class, in a list."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _share(value: Any, where: str, key: str) -> float | None:
    value = value.tolist() if hasattr(value, "tolist") else value
    # DataFrame.to_json() with a single row.
    value = next(iter(value.values())) if isinstance(value, Mapping) and len(value) == 1 else value
    if value is None or value == _UNDEFINED:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _no_numbers("Another evaluator's number is not a share", f"{where}: {key[:_LARGEST_KEY]}", shown(value))
    return float(value)


def _no_numbers(problem: str, where: str, actual: str) -> EvaluationError:
    hint = "json.dump({key: value.tolist() for key, value in metric.compute().items()}, file)"
    return EvaluationError(problem, where=where, expected=_FORMS, found=actual[:300], hint=hint)
