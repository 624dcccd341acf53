"""COCO's numbers as another evaluator gives them, beside ours. Its -1 stands for undefined, and is never a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from curation.arguments import shown
from curation.errors import EvaluationError
from curation.evaluation.measures import percent
from curation.input_files import InputFile

Given = Path | Mapping[str, Any] | Sequence[Any]
"""A JSON file, or what it would hold; values may be tensors or arrays."""

TORCHMETRICS = {
    "map": "AP",
    "map_50": "AP50",
    "map_75": "AP75",
    "map_small": "APs",
    "map_medium": "APm",
    "map_large": "APl",
    "mar_1": "AR1",
    "mar_10": "AR10",
    "mar_100": "AR100",
    "mar_small": "ARs",
    "mar_medium": "ARm",
    "mar_large": "ARl",
}
"""Our names of the numbers of torchmetrics' ``MeanAveragePrecision`` (1.9.0), in the order of COCO's summary."""
UNDEFINED = -1
_WHY = "the other evaluator says -1 or null: undefined"
_FORM = (
    "a JSON object of shares from 0 to 1, -1 where undefined: map, map_50, ..., map_per_class and classes as "
    "torchmetrics has them, or AP, AP50, ...; or COCOeval.stats, a list of twelve"
)


def compare_with_external(
    ours: Mapping[str, Any], given: Given, class_numbers: Mapping[int | None, str]
) -> dict[str, Any]:
    """Return the numbers of another evaluator beside ours.

    Parameters
    ----------
    ours : mapping
        What `curation.evaluation.coco_engine.coco_average_precision` returns.
    given : Path, mapping or sequence
        What torchmetrics' ``compute()`` returns, its tensors as they are or as numbers (``.tolist()``); an object of
        our names; or the twelve numbers of ``COCOeval.stats``.
    class_numbers : mapping of int or None to str
        Class of each category id, for ``map_per_class``.

    Returns
    -------
    dict
        ``file``: name and digest, None for what is in memory; ``passed_over``: what else there was; ``against``, a
        table in %: ``measure`` (``AP of CLASS`` of a class), ``ours``, ``theirs``, ``difference`` (theirs - ours), None
        where one is undefined, and ``undefined``, why the other evaluator's is.

    Raises
    ------
    MissingFileError, EvaluationError
        There is no such file, it does not hold such numbers, or one of them is no share.
    """
    where, record = "against", None
    if isinstance(given, Path):
        file = InputFile(given, kind="file of another evaluator's numbers")
        where, record = str(given), {"name": given.name, "sha256": file.sha256}
        try:
            given = msgspec.json.decode(file.data, type=dict[str, Any] | list[Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _error("The numbers of another evaluator cannot be read", where, str(error)) from None
    found = (
        dict(given)
        if isinstance(given, Mapping)
        else dict(zip(TORCHMETRICS.values(), _twelve(given, where), strict=True))
    )
    classes, values = (_several(found.pop(name, None)) for name in ("classes", "map_per_class"))
    names = {**TORCHMETRICS, **{name: name for name in TORCHMETRICS.values()}}
    numbers = {names[key]: _share(value, where, key) for key, value in found.items() if key in names}
    if len(numbers) < sum(key in names for key in found):
        raise _error("Another evaluator has a number twice, by its name and by ours", where, ", ".join(found))
    # Without class_metrics torchmetrics has one -1 for all classes.
    values = () if list(values) == [UNDEFINED] and len(classes) != 1 else values
    of_class = [_whole(one, where) for one in classes] if values else []
    if len(values) != len(of_class) or len(set(of_class)) < len(of_class):
        counts = f"{len(values)} in map_per_class, {len(set(of_class))} classes"
        raise _error("There is not one number for each class of another evaluator", where, counts)
    shares = dict(zip(of_class, [_share(value, where, "map_per_class") for value in values], strict=True))
    of_classes = [(class_numbers[one], value) for one, value in shares.items() if one in class_numbers]
    passed_over = sorted(str(key) for key in found if key not in names)
    passed_over += sorted(f"class {one}" for one in shares.keys() - class_numbers)
    if not numbers:
        raise _error("There is no number of COCO's summary", where, ", ".join(map(str, found)) or "nothing")
    rows = [(name, ours[name], value) for name, value in numbers.items()]
    rows += [(f"AP of {name}", ours["per_class"][name], value) for name, value in of_classes]
    gaps = [None if own is None or other is None else other - own for _, own, other in rows]
    against = {
        "measure": [name for name, *_ in rows],
        "ours": [percent(own) for _, own, _ in rows],
        "theirs": [percent(other) for *_, other in rows],
        "difference": list(map(percent, gaps)),
        "undefined": [_WHY if other is None else "" for *_, other in rows],
    }
    return {"file": record, "passed_over": passed_over, "against": against}


def _twelve(given: Any, where: str) -> Sequence[Any]:
    values = _several(given)
    if len(values) != len(TORCHMETRICS):
        raise _error("These are not the twelve numbers of COCO's summary", where, f"{len(values)} numbers")
    return values


def _several(value: Any) -> Sequence[Any]:
    """Return the members of a list or tensor; a number alone, as torchmetrics makes of one class, is a list of one."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if value is None:
        return ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _share(value: Any, where: str, key: str) -> float | None:
    value = value.tolist() if hasattr(value, "tolist") else value
    if value is None or value == UNDEFINED:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _error("A number of another evaluator is no share", f"{where}: {key}", shown(value))
    return float(value)


def _whole(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _error("A class of another evaluator is no category id", f"{where}: classes", shown(value))
    return value


def _error(what: str, where: str, found: str) -> EvaluationError:
    return EvaluationError(
        what,
        where=where,
        expected=_FORM,
        found=found[:300],
        hint="json.dump({key: value.tolist() for key, value in metric.compute().items()}, file)",
    )
