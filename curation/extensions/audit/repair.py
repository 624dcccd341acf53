"""Write lists without the leaks that an audit found.

The findings of the audit state the lines to leave out (`Finding.drops`). This module writes the files without them and
audits the result, until no such line is left.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import compress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from curation.core.columns import distinct
from curation.core.errors import UsageError
from curation.core.wording import counted
from curation.core.writing import publishing_folder
from curation.extensions.audit.lists import AuditedList
from curation.extensions.audit.target import AuditTarget
from curation.sources.source import Bools, Int32s

RECORD = "audit-repair.json"
"""Name of the file with the record of a repair, beside the lists."""
RULE = (
    "Of two lists that share an image, the training list loses its line, and a validation list loses to a test list: "
    "no image leaves a test list. Groups (patients, videos, drives) that an audit finds on both sides leave the losing "
    "list whole, unless less than half of it would be left. Of repeated lines the first stays. The order of lines "
    "stays. A file without a line is left out."
)
_LEAST_LEFT = 0.5
_LINES = frozenset(
    ("imglist", "voc list", "id list", "two files", "file and labels", "file and label vector", "frames", "csv",
     "json lines")
)  # fmt: skip
_JSON = "coco json"
_AS_TEXT = "write the list as text, one image a line, and repair that folder"
_WRITTEN = "text lists, CSV, TSV, one JSON object a line, COCO JSON"


class Report(Protocol):
    """The part of `curation.extensions.audit.report.Report` that a repair reads."""

    @property
    def target(self) -> AuditTarget:
        """The lists that were audited."""

    @property
    def results(self) -> Sequence[Any]:
        """The result of each rule."""

    @property
    def statements(self) -> Sequence[Any]:
        """The statements of the report."""

    @property
    def again(self) -> Callable[[Path], Report] | None:
        """A function that audits another folder with the same options."""

    @property
    def exit_status(self) -> int:
        """The exit status of the command."""

    def lists(self) -> list[dict[str, Any]]:
        """Return each list with its role."""


@dataclass
class _File:
    """A file of a repair: form, digest, original numbers of the remaining lines, and lines that rules removed."""

    form: str
    before: str
    numbers: Int32s
    removed: Counter[str] = field(default_factory=Counter)
    removed_lines: list[int] = field(default_factory=list)


def repair(report: Report, folder: Path) -> dict[str, Any]:
    """Write the lists of an audited folder without the leaks that were found, and return the record of the repair.

    Files keep their form and order; files without leaks keep their bytes. Files that were not read are not written.

    Raises
    ------
    UsageError
        The audit is of a manifest, the output exists or is in the audited folder, or a file with leaks has a form that
        is not written.
    """
    published, again = report.target.published, report.again
    if published is None or again is None:
        raise UsageError(
            "A manifest cannot be repaired",
            where="--repair",
            expected="a folder of lists",
            found=report.target.name,
            hint="repair the lists that it was built from, and build it again",
        )
    name, first = next(iter(published.files.items()))
    root = first.path.absolute().parents[name.count("/")].resolve()
    if folder.resolve().is_relative_to(root):
        raise UsageError(
            "The output folder is inside the audited folder",
            where=f"--repair {folder}",
            expected="a folder elsewhere",
            hint="choose another folder",
        )
    files = dict[str, _File]()
    with publishing_folder(folder) as new:
        for name, file in published.files.items():
            if file.form == "data yaml" and file.lists:
                raise _not_written(name, "a data.yaml that names its lists")
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.path, new / name)
            numbers = _numbers(file.path.read_bytes(), file.form) if _is_written(name, file.form) else ()
            files[name] = _File(file.form, file.sha256, np.asarray(numbers, np.int32))
        while losses := _losses(report):
            for name, by_rule in losses.items():
                _take(new / name, files[name], by_rule)
                lines = np.concatenate(list(by_rule.values()))
                if all(np.isin(part.lines, lines).all() for part in report.target.files if part.file == name):
                    (new / name).unlink()
            before, report = report, again(new)
            _require_rest(before, report, losses)
        record = _record(report, files, new, [*published.unread])
        (new / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return record


def can_repair(report: Report) -> bool:
    """Return whether a repair would remove lines, and can write the files."""
    published = report.target.published
    if published is None or any(file.form == "data yaml" and file.lists for file in published.files.values()):
        return False
    try:
        return bool(_losses(report))
    # The folder may have been removed since.
    except (UsageError, OSError):
        return False


def repair_lines(record: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield a summary of a repair in sentences."""
    for file in record["files"]:
        if file["removed"]:
            reasons = ", ".join(f"{reason}: {count:,}" for reason, count in file["removed"].items())
            left = "" if file["sha256"] else "; no line is left, and the file is left out"
            yield f"repaired: {file['file']} loses {counted(len(file['removed_lines']), 'line')} ({reasons}){left}"
    if not any(file["removed"] for file in record["files"]):
        yield "repaired: no line was removed"
    yield from (f"not repaired: {text}" for text in record["not_repaired"])
    state = "no error" if record["status"] == 0 else f"exit status {record['status']}"
    yield f"{folder} was audited again: {state}; {RECORD} there states the rule and the lines"


def _losses(report: Report) -> dict[str, dict[str, Int32s]]:
    """Return the lines that each rule removes, by file and subject of the rule."""
    parts = {part.name: part for part in report.target.used}
    drops: dict[str, dict[str, list[Int32s]]] = {}
    writable = set[str]()
    for result in report.results:
        for finding in result.outcome.findings:
            for name, lines in finding.drops.items():
                # A list may be judged under two names.
                if (part := parts.get(name)) is None:
                    continue
                share = np.isin(part.lines, lines).mean() if len(part) else 0
                if share and (result.rule.name != "PL7" or share <= 1 - _LEAST_LEFT):
                    if name not in writable:
                        _require_form(report, part)
                        writable.add(name)
                    drops.setdefault(part.file, {}).setdefault(result.rule.subject, []).append(lines)
    return {
        file: {subject: distinct(np.concatenate(lines).astype(np.int32)) for subject, lines in by_rule.items()}
        for file, by_rule in drops.items()
    }


def _require_form(report: Report, part: AuditedList) -> None:
    """Raise `UsageError` if lines cannot be removed from a list in the form of its file."""
    published = report.target.published
    assert published is not None  # noqa: S101 - a repair is of a folder
    form: str = published.files[part.file].form
    labels = published.labels.get(part.name)
    if part.whole != part.name:
        form = "a file whose lines belong to several lists by their number"
    elif part.file.endswith(".gz"):
        form = "a compressed file"
    elif labels is not None and form != _JSON:
        form = f"a list beside {labels.name}, which holds its annotations"
    elif _is_written(part.file, form):
        data = published.files[part.file].path.read_bytes()
        is_document = form == "json lines" and _is_document(data)
        if not is_document and (form != "csv" or b"\r" not in data.replace(b"\r\n", b"")):
            return
        form = "one JSON text of all lines" if is_document else "a table whose lines end in a carriage return alone"
    raise _not_written(part.file, form)


def _is_document(data: bytes) -> bool:
    """Return whether a text is one JSON value, whose entries are not lines."""
    try:
        return bool(json.loads(data))
    except ValueError:
        return False


def _not_written(file: str, form: str) -> UsageError:
    return UsageError(
        "A repair cannot write this form of file", where=file, expected=_WRITTEN, found=form, hint=_AS_TEXT
    )


def _is_written(name: str, form: str) -> bool:
    return (form in _LINES or form == _JSON) and not name.endswith(".gz")


def _rows(data: bytes, form: str) -> list[tuple[int, bytes]]:
    """Return the lines of a text, with their line ends, and their numbers; a quoted row of a table may have several."""
    rows, row = list[tuple[int, bytes]](), b""
    for number, line in enumerate(data.split(b"\n"), start=1):
        row += line + b"\n"
        if form != "csv" or row.count(b'"') % 2 == 0:
            rows.append((number, row))
            row = b""
    rows += [(rows[-1][0] + 1 if rows else 1, row)] if row else []
    # The text after the last line feed is a line unless it is empty.
    last, text = rows.pop()
    return [*rows, (last, text[:-1])] if text != b"\n" else rows


def _numbers(data: bytes, form: str) -> list[int]:
    if form == _JSON:
        return list(range(1, len(json.loads(data)["images"]) + 1))
    return [number for number, _ in _rows(data, form)]


def _take(path: Path, file: _File, by_rule: Mapping[str, Int32s]) -> None:
    """Write a file without the lines that rules remove."""
    data = path.read_bytes()
    now = np.asarray(_numbers(data, file.form), np.int32)
    goes: Bools = np.isin(now, np.concatenate(list(by_rule.values())))
    counted_lines = np.zeros(len(now), np.bool_)
    for subject, lines in by_rule.items():
        # A line that two rules remove is counted once, for the first rule.
        of_subject = np.isin(now, lines) & ~counted_lines
        file.removed[subject] += int(of_subject.sum())
        counted_lines |= of_subject
    file.removed_lines += file.numbers[goes].tolist()
    file.numbers = file.numbers[~goes]
    if file.form == _JSON:
        path.write_bytes(_without_images(json.loads(data), goes))
    else:
        path.write_bytes(b"".join(row for _, row in compress(_rows(data, file.form), (~goes).tolist())))


def _without_images(document: dict[str, Any], goes: Bools) -> bytes:
    """Return a COCO JSON without some images and their annotations."""
    images = list(compress(document["images"], (~goes).tolist()))
    removed = {image.get("id") for image in document["images"]} - {image.get("id") for image in images}
    document = document | {"images": images}
    if "annotations" in document:
        document["annotations"] = [row for row in document["annotations"] if row.get("image_id") not in removed]
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _require_rest(before: Report, after: Report, losses: Mapping[str, Mapping[str, Int32s]]) -> None:
    """Raise `UsageError` if a repaired file is not read as the lines that should remain."""
    left = {part.name: len(part) for part in after.target.files}
    for part in before.target.files:
        taken = losses.get(part.file, {}).values()
        stays = int((~np.isin(part.lines, np.concatenate(list(taken)))).sum()) if taken else len(part)
        if left.get(part.name, 0) != stays:
            raise UsageError(
                "A file cannot be repaired: without the lines, it is read differently",
                where=part.file,
                expected=f"{counted(stays, 'line')} of {part.name}",
                found=f"{left.get(part.name, 0):,}",
                hint=_AS_TEXT,
            )


def _record(report: Report, files: Mapping[str, _File], new: Path, unread: list[str]) -> dict[str, Any]:
    """Return the record of a repair."""
    roles = {one["path"]: one["role"] for one in report.lists()}
    return {
        "rule": RULE,
        "files": [
            {
                "file": name,
                "form": file.form,
                "role": roles.get(name, ""),
                "sha256_before": f"sha256:{file.before}",
                "sha256": f"sha256:{sha256((new / name).read_bytes()).hexdigest()}" if (new / name).is_file() else "",
                "removed": {subject: count for subject, count in file.removed.items() if count},
                "removed_lines": sorted(file.removed_lines),
            }
            for name, file in sorted(files.items())
        ],
        "not_written": sorted(unread),
        "not_repaired": [one.sentence for one in report.statements if one.gravity in ("error", "warning")],
        "status": report.exit_status,
    }
