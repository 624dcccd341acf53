"""The one place where results are printed: tables for people, or one JSON document with ``--json``."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.core.errors import CurationWarning
from curation.core.tables import Table as Table
from curation.core.tables import printable, table_lines
from curation.core.wording import examples

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest

Data = Mapping[str, Any] | Sequence[Any]
Line = str | Table
"""What is printed for people: a line, in which no character steers the terminal, or a table."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a command: data, lines to print and exit status.

    Attributes
    ----------
    data : mapping or sequence, or a function that makes it
        Data for ``--json``; made only then.
    lines : iterable of str or Table
        Lines to print otherwise; a table is printed as its lines.
    status : int
        The exit status: 0 done, 1 the check failed.
    written : sequence of Path
        Files, a line each at the end.
    then : callable, optional
        Action after the answer is printed.
    """

    data: Data | Callable[[], Data]
    lines: Iterable[Line]
    status: int = 0
    written: Sequence[Path] = ()
    then: Callable[[], None] | None = None


@dataclass(frozen=True, kw_only=True)
class Amount:
    """How much a check prints besides the findings that need attention.

    Attributes
    ----------
    all
        print everything, not only what needs attention
    quiet
        print the last line alone, the result, whatever else is asked
    """

    all: bool = False
    quiet: bool = False


def emit(data: Data | Callable[[], Data], lines: Iterable[Line], *, as_json: bool) -> None:
    """Print a result, the data as JSON or the lines, until the reader closes the pipe (``| head``)."""
    with suppress(BrokenPipeError):
        if as_json:
            # JSON escapes characters that the encoding lacks; the stream's own escapes would not be JSON.
            escaped = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
            print(json.dumps(data() if callable(data) else data, indent=1, ensure_ascii=escaped, allow_nan=False))
            return
        for line in lines:
            print(*(table_lines(line) if isinstance(line, Table) else [printable(line)]), sep="\n")


def warn(text: str) -> None:
    """Print a warning to standard error."""
    print(f"warning: {printable(text)}", file=sys.stderr)


def note(text: str) -> None:
    """Print a note to standard error."""
    print(f"note: {printable(text)}", file=sys.stderr)


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Print the warnings of the package when they occur; other warnings are left to Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", CurationWarning)
        usual = warnings.showwarning

        printed = set[str]()

        def show(message: Warning | str, category: type[Warning], *location: Any, **more: Any) -> None:
            # One truth may be read for several tasks.
            if issubclass(category, CurationWarning) and str(message) in printed:
                return
            if issubclass(category, CurationWarning):
                printed.add(str(message))
                warn(str(message))
            else:
                usual(message, category, *location, **more)

        warnings.showwarning = show
        yield


def first_rows(
    title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], count: int, limit: int, rest: str
) -> list[Line]:
    """Return a table of the first rows and, if there are more, their number and the option that prints them."""
    more = [f"… and {count - limit:,} more: {rest}"] if count > limit else []
    return [Table(title, columns, tuple(islice(rows, limit))), *more]


def next_command(*words: str | Path) -> str:
    """Return the line that names the next command, quoted for a shell."""
    return f"next: {shlex.join(['curation', *map(str, words)])}"


def score_commands(manifest: Manifest, folder: str | Path) -> list[list[str]]:
    """Return the commands that score a manifest of a rule: by its evaluation, else boxes by COCO AP, classes by OSCR.

    The truth of a part whose images are of several sources is exported first. There are none for another manifest, and
    for images of which nothing is known.
    """
    from curation.benchmarks.rules.benchmark_file import EVALUATORS, RULES, rule_module

    header, name = manifest.header, Path(folder).name
    rule, scores = header.rule.protocol, ["--out", f"{name}-scores"]
    tests = [part for part in header.parts if part.annotated_images and part.role == "test"]
    if rule not in RULES or not (tests or rule in EVALUATORS):
        return []
    exports = []
    truth: list[str] = []
    if tests and len(tests[0].sources) > 1 and tests[0].boxes:
        truth = ["--truth", f"{name}-{tests[0].name}.json"]
        exports = [["export", str(folder), "--part", tests[0].name, "--format", "coco", "--out", truth[1]]]
    if rule in EVALUATORS:
        words = ["evaluate", str(folder), *rule_module(rule).score_words(header), *truth]
        return [["curation", *each] for each in (*exports, [*words, *scores])]
    part = ["--manifest", str(folder), "--part", tests[0].name]
    if not tests[0].boxes:
        return [["curation", "evaluate", "imagenet", *part, "--scores", "FILE", *scores]]
    if not truth:
        remembered = manifest.built_from.sources if manifest.built_from else {}
        source = next(entry for entry in header.sources if entry.name == tests[0].sources[0])
        path = remembered.get(source.name, "FILE")
        truth = ["--truth", path, *(["--image-set", source.part] if source.part and Path(path).is_dir() else [])]
    words = ["evaluate", "coco", *truth, *part, "--detections", "FILE", *scores]
    return [["curation", *each] for each in (*exports, words)]


def source_words(names: Iterable[str]) -> list[str]:
    """Return ``--source NAME=PATH`` for each source that a command still needs."""
    return [word for name in names for word in ("--source", f"{name}=PATH")]


def counted_examples(ids: Sequence[str], limit: int = 3) -> str:
    """Return ``12 (a, b, c, …)``: a number and its first ids."""
    return f"{len(ids)} ({examples(ids, limit)})" if ids else "0"
