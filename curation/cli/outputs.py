"""What a verb writes, declared as the type of its options: one rule guards all outputs, before long work and after.

An option whose type is an `Output` is one; every other path on the command line is an input. `guarded` refuses at once
what may not be written (see `curation.core.writing.check_output`), and `add_force` offers ``--force`` wherever there is
an output.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.core.errors import UsageError
from curation.core.writing import HEADER, check_output, command, refuse_in_manifest, refuse_input, require_new_folder

FIGURE_SUFFIXES = (".png", ".svg", ".csv")


@dataclass(frozen=True, slots=True)
class Output:
    """The type of an option that names an output: the path of its text.

    Attributes
    ----------
    check : callable
        Raises a `curation.core.errors.CurationError` where the output may not be written.
    replaces : bool
        Whether files may be replaced there, so that ``--force`` is offered.
    patterns : callable, optional
        Of a folder that may hold other files: returns patterns of the names of all files that may be written.
    """

    check: Callable[[Path], None]
    replaces: bool = True
    patterns: Callable[[], tuple[str, ...]] | None = None

    def __call__(self, text: str) -> Path:
        """Return the path that an argument names."""
        if not text:
            raise UsageError("An output needs a name", expected="a path; the working folder is '.'", found="''")
        return Path(text)


def output_folder(files: tuple[str, ...] = (), figures: tuple[str, ...] = (), *, benchmark: str = "") -> Output:
    """Return the output of a folder that may hold other files.

    Parameters
    ----------
    files : tuple of str
        What may be written there, as patterns of file names.
    figures : tuple of str
        Likewise, patterns of figures: each stands for three files.
    benchmark : str
        The report of this benchmark says what may be written there; it is read only when that is needed.
    """

    def patterns() -> tuple[str, ...]:
        written, drawn = files, figures
        if benchmark:
            from curation.benchmarks.registry import report_of

            report = report_of(benchmark)
            stems = ("measures", *report.files)
            written, drawn = ("results.json", *(f"{stem}.csv" for stem in stems)), report.figures
        return (*written, *(f"{stem}{suffix}" for stem in drawn for suffix in FIGURE_SUFFIXES))

    def check(path: Path) -> None:
        refuse_in_manifest(path / "measures.csv")
        if path.exists() and not path.is_dir():
            raise UsageError("Results go into a folder", where=str(path), expected="a folder", found="a file")
        for pattern in patterns() if path.is_dir() else ():
            for file in sorted(path.glob(pattern)):
                # What a killed run left half written has a hidden name: it is removed when the file is written.
                if not file.name.startswith("."):
                    check_output(file)

    return Output(check, patterns=patterns)


def _check_new_manifest(path: Path) -> None:
    if not (path / HEADER).is_file():
        require_new_folder(path)


OUTPUT_FILE = Output(check_output)
NEW_FOLDER = Output(require_new_folder)
"""A folder that appears whole, and is never replaced."""
NEW_MANIFEST = Output(_check_new_manifest)
"""Likewise; a manifest that is there already is compared later, and accepted where it is the very same."""
FILE_OR_NEW_FOLDER = Output(lambda path: (require_new_folder if path.is_dir() else check_output)(path))
KEPT = Output(refuse_input, replaces=False)
"""A file that lines are added to, or a folder that the verb maintains itself: embeddings, a review, a result's rows."""


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force`` to a verb, or to each of its sub-commands, that has an output."""
    for leaf in commands_of(parser):
        if any(isinstance(action.type, Output) and action.type.replaces for action in leaf._actions):
            leaf.add_argument(
                "--force",
                action="store_true",
                help="replace files that exist; never an input of the command, a file of a manifest, or a whole folder",
            )


def commands_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of the commands of a verb, or of all verbs: those that have no further commands."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for leaf in dict.fromkeys(leaf for action in below for leaf in action.choices.values()):
        yield from commands_of(leaf)
    if not below:
        yield parser


@contextmanager
def guarded(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[None]:
    """Refuse outputs that may not be written, then let the verb run under the same rule.

    Raises
    ------
    OverwriteError, UsageError
        See `curation.core.writing.check_output` and `curation.core.writing.require_new_folder`.
    MissingFileError
        An input is a pipe, a device or a socket.
    """
    inputs = [
        path
        for action in _chosen_actions(parser, options)
        if not isinstance(action.type, Output) and action.choices is None
        if (value := getattr(options, action.dest, None)) != action.default
        for path in _paths(value)
    ]
    with command(inputs=inputs, force=getattr(options, "force", False)):
        for output, path in outputs_of(parser, options):
            output.check(path)
        yield


def outputs_of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[tuple[Output, Path]]:
    """Yield what a command line says is to be written."""
    for action in _chosen_actions(parser, options):
        output = action.type
        if isinstance(output, Output):
            value = getattr(options, action.dest, None)
            paths = value if isinstance(value, list) else [value]
            yield from ((output, path) for path in paths if path is not None)


def _chosen_actions(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[argparse.Action]:
    """Yield the options and arguments of a parser and of the sub-commands that were chosen."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            chosen = getattr(options, action.dest, None)
            if chosen in action.choices:
                yield from _chosen_actions(action.choices[chosen], options)
        else:
            yield action


def _paths(value: Any) -> Iterator[Path]:
    """Yield every path that a value may name: a text itself, and what follows each ``=`` of ``NAME=PATH``."""
    if isinstance(value, list | tuple):
        for member in value:
            yield from _paths(member)
    elif isinstance(value, str | Path):
        pieces = str(value).split("=")
        texts = ("=".join(pieces[start:]) for start in range(len(pieces)))
        yield from (Path(text) for text in texts if text and "\0" not in text)
