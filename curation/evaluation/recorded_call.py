"""The call of an evaluation as its result stores it: its warnings, and its arguments as plain data."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from curation.core.errors import CurationWarning, ResultWarning, warn_caller
from curation.evaluation.result import Result

Given = ParamSpec("Given")
Evaluated = TypeVar("Evaluated", bound=Result)


def with_warnings(evaluate: Callable[Given, Evaluated], *, states_call: bool = False) -> Callable[Given, Evaluated]:
    """Return an evaluation that raises each of its warnings once, and stores them in its result.

    Parameters
    ----------
    states_call : bool
        Whether the result stores the arguments of the call (see `stated_call`).
    """
    signature = inspect.signature(evaluate)

    @wraps(evaluate)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Evaluated:
        records: list[warnings.WarningMessage] = []
        texts: dict[str, type[CurationWarning]] = {}
        try:
            with warnings.catch_warnings(record=True) as records:
                warnings.simplefilter("always", CurationWarning)
                result = evaluate(*args, **kwargs)
        finally:
            for record in records:
                if issubclass(record.category, CurationWarning):
                    texts[str(record.message)] = record.category
                else:
                    warnings.warn_explicit(record.message, record.category, record.filename, record.lineno)
            for text, category in texts.items():
                warn_caller(text, category)
        if states_call:
            result.call = stated_call(signature, signature.bind(*args, **kwargs).arguments)
        result.warnings = (*texts, *(note for note in result.notes if note not in texts))
        for text in result.warnings[len(texts) :]:
            warn_caller(text, ResultWarning)
        return result

    return call


def stated_call(signature: inspect.Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an evaluation as plain data, without defaults; a file is represented by its name.

    Examples
    --------
    >>> def evaluate(truth, detections, variant="clean", task=None): ...
    >>> arguments = {"truth": Path("data/val.json"), "detections": {"t1": Path("t1.json")}, "variant": "all"}
    >>> call = stated_call(inspect.signature(evaluate), arguments)
    >>> call["truth"], call["detections"], call["variant"]
    ({'file': 'val.json'}, {'t1': {'file': 't1.json'}}, 'all')
    """
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    return {
        name: _plain(Path(value) if name == "manifest" and isinstance(value, str) and Path(value).exists() else value)
        for name, value in arguments.items()
        if value is not defaults[name] and value not in ((), {}) and value != defaults[name]
    }


def _plain(value: Any) -> Any:
    """Return an argument as plain data; an object in memory is represented by the name of its class."""
    if isinstance(value, Path):
        return {"file": value.name}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if is_options(type(value)):
        usual = {each.name: each.default for each in fields(value)}
        options = {name: getattr(value, name) for name in usual if getattr(value, name) != usual[name]}
        return {name: _plain(each) for name, each in options.items()}
    if isinstance(value, bool | int | float | str | None):
        return value
    header = getattr(value, "header", None)
    return f"{header.name}@{header.version}" if header else {"file": f"({type(value).__name__})"}


def is_options(kind: Any) -> bool:
    """Return whether a class is a record of options: a dataclass with only keyword fields."""
    return is_dataclass(kind) and all(field.kw_only for field in fields(kind))


def is_file_entry(value: Any) -> bool:
    """Return whether a value of `stated_call` stands for a file."""
    return isinstance(value, dict) and [*value] == ["file"] and isinstance(value["file"], str)
