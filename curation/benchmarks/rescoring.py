"""Score the inputs of a ``results.json`` again, and compare every number and digest."""

from __future__ import annotations

import inspect
import json
import shlex
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.benchmarks.registry import evaluation_of
from curation.core.arguments import alternatives, annotations_of
from curation.core.errors import CurationWarning, EvaluationError, UsageError
from curation.core.json_text import decode_json
from curation.core.option_names import name_of
from curation.core.reading import beginning, read_plain
from curation.core.wording import counted, did_you_mean
from curation.evaluation.recorded_call import is_file_entry, is_options
from curation.evaluation.result import SCHEMA
from curation.version import __version__

OPTIONS = ("detections", "scores", "truth")
"""Inputs that have an option; others are given by ``--input OPTION=FILE``."""
_NOT_COMPARED = ("written", "curation", "call")


@dataclass(frozen=True)
class ResultVerification:
    """A stored result compared with the result that its files give now.

    Attributes
    ----------
    file : str
    protocol : str
    numbers : int
        Declared numbers of the file.
    differences : tuple of (str, str, str)
        Key, value of the file and value obtained now of each difference; digests and counts of inputs first.
    version : str
        Version of `curation` in the file.
    """

    file: str
    protocol: str
    numbers: int
    differences: tuple[tuple[str, str, str], ...]
    version: str

    @property
    def ok(self) -> bool:
        """Whether every number and every fact about the inputs is equal."""
        return not self.differences

    @property
    def verdict(self) -> str:
        """Description of the outcome."""
        version = f" (the file is of curation {self.version}, this is {__version__})"
        other = "" if self.version == __version__ else version
        if self.ok:
            return f"equal: {self.numbers} numbers, and the digests of their inputs{other}"
        return f"not equal: {counted(len(self.differences), 'value')} differ{'s' * (len(self.differences) == 1)}{other}"

    def as_data(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        differences = [dict(zip(("where", "expected", "found"), row, strict=True)) for row in self.differences]
        return {
            "file": self.file,
            "protocol": self.protocol,
            "numbers": self.numbers,
            "ok": self.ok,
            "verdict": self.verdict,
            "differences": differences,
        }


def is_result(path: Path) -> bool:
    """Return whether a file begins as `Result.save` writes a ``results.json``."""
    return path.suffix == ".json" and path.is_file() and b'"protocol"' in beginning(path, 64)


def verify_result(path: Path, inputs: Mapping[str, Mapping[str, Path]]) -> ResultVerification:
    """Score again with the settings that a ``results.json`` states, and compare.

    Parameters
    ----------
    path : Path
        File that `Result.save` wrote.
    inputs : mapping of str to mapping of str to Path
        Files by option and name: ``{"detections": {"closed": …}}``; the name is empty for an option with one file.

    Raises
    ------
    EvaluationError
        The file contains no result, or a result without its call.
    UsageError
        An input of the result is missing, or a file was not one of its inputs.
    """
    record = decode_json(
        read_plain(path, kind="result"), dict[str, Any], EvaluationError, "The result cannot be read", where=str(path)
    )
    call = record.get("call")
    if record.get("schema") != SCHEMA or not isinstance(call, dict) or not isinstance(record.get("protocol"), str):
        raise EvaluationError(
            "The file does not say how it was scored",
            where=str(path),
            expected=f"results.json of this version of curation ({__version__}), with a key call",
            hint="curation evaluate … --out DIR writes one",
        )
    evaluate = evaluation_of(record["protocol"])
    files_of = {option: dict(files) for option, files in inputs.items() if files}
    options = _arguments(call, evaluate, files_of, path)
    if unused := [
        f"{_option(option, name)}{file}" for option, files in files_of.items() for name, file in files.items()
    ]:
        raise UsageError(
            "The result was not made from this file",
            where=unused[0][:200],
            expected=", ".join(_files_of(call)) or "none",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurationWarning)
        result = evaluate(**options)
    now = json.loads(json.dumps(result.json_data()))
    before, after = ({key: each for key, each in data.items() if key not in _NOT_COMPARED} for data in (record, now))
    differences = sorted(_differences(before, after, ""), key=lambda row: not row[0].startswith("inputs"))
    measures = record.get("measures")
    return ResultVerification(
        str(path),
        record["protocol"],
        len(measures) if isinstance(measures, list) else 0,
        tuple(differences),
        str(record.get("curation", ""))[:40],
    )


def _files_of(call: Mapping[str, Any]) -> list[str]:
    """Return the options of `curation verify` for the files that an evaluation read."""
    texts = []
    for parameter, value in call.items():
        entries = {"": value} if is_file_entry(value) else value if isinstance(value, dict) else {}
        for name, entry in entries.items():
            if is_file_entry(entry):
                texts.append(f"{_option(*_option_and_name(parameter, name))}{shlex.quote(entry['file'])}")
    return texts


def _option_and_name(parameter: str, name: str) -> tuple[str, str]:
    """Return the option and the name on the command line for a file of a parameter."""
    known = name_of("evaluate", parameter)
    # A file that has a key and a name, such as the validation scores of a classifier, has no separate option.
    return (parameter, name) if known is None or (known.key and name) else (known.option, name or known.key)


def _option(option: str, name: str) -> str:
    """Return the option of `curation verify` that gives a file, up to its path."""
    if option in OPTIONS:
        return f"--{option} " + (f"{name}=" if name else "")
    return f"--input {option}{f'.{name}' if name else ''}="


def _arguments(
    call: Mapping[str, Any], evaluate: Any, inputs: dict[str, dict[str, Path]], path: Path
) -> dict[str, Any]:
    """Return the arguments of an evaluation: files are taken out of `inputs`, the others from the call."""
    parameters, kinds = inspect.signature(evaluate).parameters, annotations_of(evaluate)

    def require(name: str, known: Collection[str]) -> None:
        if name not in known:
            message, near = "The result states an option that this version does not have", did_you_mean(name, known)
            raise EvaluationError(message, where=str(path), found=name[:80], hint=near)

    def argument(parameter: str, value: Any, kind: Any) -> Any:
        if is_file_entry(value):
            return _file(parameter, "", value)
        record = next(filter(is_options, alternatives(kind)), None)
        if record is not None and isinstance(value, dict):
            fields = annotations_of(record)
            for name in value:
                require(name, fields)
            return record(**{name: argument(name, each, fields[name]) for name, each in value.items()})
        if isinstance(value, dict):
            return {name: _file(parameter, name, each) if is_file_entry(each) else each for name, each in value.items()}
        # The path of a file from another machine does not exist here.
        if isinstance(value, str) and (
            Path in alternatives(kind) or (parameter == "manifest" and Path(value).exists())
        ):
            return _file(parameter, "", {"file": value})
        return tuple(value) if isinstance(value, list) else value

    def _file(parameter: str, name: str, entry: Mapping[str, str]) -> Path | str:
        option, name = _option_and_name(parameter, name)
        files = inputs.get(option, {})
        if name not in files:
            missing = _files_of(call)
            raise UsageError(
                f"A file is missing: {entry['file']}"[:200],
                where=str(path),
                expected=" ".join(missing)[:400],
                hint=f"curation verify {shlex.quote(str(path))} {' '.join(missing)}",
            )
        return str(files.pop(name)) if option == "manifest" else files.pop(name)

    for option in call:
        require(option, parameters)
    return {option: argument(option, value, kinds.get(option, Any)) for option, value in call.items()}


def _differences(before: Any, now: Any, where: str) -> Iterator[tuple[str, str, str]]:
    """Yield where two values of JSON differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        # The name of a file may differ: its digest identifies it. Methods are named after their files.
        names = {"name", "method"} if "sha256" in before or "method" in before else set()
        for key in dict.fromkeys(each for each in (*before, *now) if each not in names):
            yield from _differences(before.get(key), now.get(key), f"{where}.{key}".lstrip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, pair in enumerate(zip(before, now, strict=True)):
            yield from _differences(*pair, f"{where}[{_name_of(pair[1], number)}]")
    elif before != now:
        yield where, json.dumps(before)[:80], json.dumps(now)[:80]


def _name_of(row: Any, number: int) -> str:
    """Return the measure of a row with its part, task and so on, or the number of the entry."""
    if isinstance(row, dict) and "measure" in row:
        parts = (row.get(name) for name in ("part", "task", "split", "case", "method", "score", "variant"))
        return "/".join(str(each) for each in (*parts, row["measure"], row.get("parameters")) if each)
    return str(number)
