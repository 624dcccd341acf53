"""What a verb writes, declared as the type of its options: one rule guards all outputs, before long work and after.

An option whose type is one of these classes is an output; every other path on the command line is an input. `guarded`
refuses at once what may not be written (see `curation.ledger.check_output`), and `add_force` offers ``--force``
wherever there is an output.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curation import ledger
from curation.errors import UsageError

FIGURE_SUFFIXES = (".png", ".svg", ".csv")


@dataclass(frozen=True, slots=True)
class Output:
    """The type of an option that names an output: the path of its text.

    Attributes
    ----------
    replaces : bool
        Whether files may be replaced there, so that ``--force`` is offered.
    """

    replaces: bool = field(default=True, kw_only=True)

    def __call__(self, text: str) -> Path:
        """Return the path that an argument names."""
        return Path(text)

    def check(self, path: Path) -> None:
        """Raise a `curation.errors.CurationError` where the output may not be written."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class OutputFile(Output):
    """One file."""

    def check(self, path: Path) -> None:
        """Check the file."""
        ledger.check_output(path)


@dataclass(frozen=True, slots=True)
class OutputFolder(Output):
    """A folder that may hold other files.

    Attributes
    ----------
    files : tuple of str
        What may be written there, as patterns of file names.
    figures : tuple of str
        Likewise, patterns of figures: each stands for three files.
    benchmark : str
        The report of this benchmark says what may be written there; it is read only when that is needed.
    """

    files: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    benchmark: str = ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns of all file names."""
        files, figures = self.files, self.figures
        if self.benchmark:
            from curation.benchmarks.registry import report_of

            report = report_of(self.benchmark)
            always = ("measures", "outcomes", "objects")
            files = ("results.json", *(f"{stem}.csv" for stem in (*always, *report.files)))
            figures = report.figures
        return (*files, *(f"{stem}{suffix}" for stem in figures for suffix in FIGURE_SUFFIXES))

    def check(self, path: Path) -> None:
        """Check that it can be a folder, and each file there whose name is one that may be written."""
        ledger.refuse_review(path)
        ledger.refuse_in_manifest(path / "measures.csv")
        if path.exists() and not path.is_dir():
            raise UsageError("Results go into a folder", where=str(path), expected="a folder", found="a file")
        for pattern in self.patterns if path.is_dir() else ():
            for file in sorted(path.glob(pattern)):
                # What a killed run left half written has a hidden name: it is removed when the file is written.
                if not file.name.startswith("."):
                    ledger.check_output(file)


@dataclass(frozen=True, slots=True)
class NewFolder(Output):
    """A folder that appears whole, and is never replaced.

    Attributes
    ----------
    unless : str
        A folder that holds a file of this name is compared later with what would be written.
    """

    unless: str = ""

    def check(self, path: Path) -> None:
        """Check that there is nothing yet."""
        if not (self.unless and (path / self.unless).is_file()):
            ledger.require_new_folder(path)


@dataclass(frozen=True, slots=True)
class FileOrNewFolder(Output):
    """One file, or a folder that appears whole."""

    def check(self, path: Path) -> None:
        """Check the file or folder that is there."""
        (ledger.require_new_folder if path.is_dir() else ledger.check_output)(path)


@dataclass(frozen=True, slots=True)
class Kept(Output):
    """A file that lines are added to, or a folder that the verb recognises: embeddings, a review, a result's rows."""

    replaces: bool = field(default=False, kw_only=True)

    def check(self, path: Path) -> None:
        """Check that the command does not read it, and that no review keeps it for itself."""
        ledger.refuse_input(path)
        ledger.refuse_review(path)


NEW_MANIFEST = NewFolder(unless="manifest.json")
"""A manifest that is there already is accepted where it is the very same."""


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force`` to a verb, or to each of its sub-commands, that has an output."""
    for action in list(parser._actions):
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                add_force(command)
    if any(isinstance(action.type, Output) and action.type.replaces for action in parser._actions):
        parser.add_argument(
            "--force",
            action="store_true",
            help="replace files that curation did not write; never an input of the command, never a whole folder",
        )


@contextmanager
def guarded(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[None]:
    """Refuse outputs that may not be written, then let the verb run under the same rule.

    Raises
    ------
    OverwriteError, UsageError
        See `curation.ledger.check_output` and `curation.ledger.require_new_folder`.
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
    with ledger.command(inputs=inputs, force=getattr(options, "force", False)):
        for action, path in outputs_of(parser, options):
            action.check(path)
        yield


def outputs_of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[tuple[Output, Path]]:
    """Yield what a command line says is to be written."""
    for action in _chosen_actions(parser, options):
        if isinstance(action.type, Output):
            given = getattr(options, action.dest, None)
            for path in given if isinstance(given, list) else [given]:
                if isinstance(path, Path):
                    yield action.type, path


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
        for one in value:
            yield from _paths(one)
    elif isinstance(value, str | Path):
        pieces = str(value).split("=")
        texts = ("=".join(pieces[start:]) for start in range(len(pieces)))
        yield from (Path(text) for text in texts if text and "\0" not in text)
