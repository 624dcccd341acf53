"""What a verb writes, declared as the type of its options: one rule guards all outputs, before long work and after.

An option whose type is one of these classes is an output; every other path on the command line is an input. `guarded`
refuses at once what may not be written (see `curation.ledger.check_output`), and `add_force` offers ``--force``
wherever there is an output.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation import ledger
from curation.errors import UsageError

FIGURE_SUFFIXES = (".png", ".svg", ".csv")


@dataclass(frozen=True, slots=True)
class Output:
    """The type of an option that names an output: the path of its text."""

    def __call__(self, text: str) -> Path:
        """Return the path that an argument names."""
        return Path(text)

    def check(self, path: Path) -> None:
        """Raise an error of the tree where the output may not be written."""


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
    """

    files: tuple[str, ...]
    figures: tuple[str, ...] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns of all file names."""
        return (*self.files, *(f"{stem}{suffix}" for stem in self.figures for suffix in FIGURE_SUFFIXES))

    def check(self, path: Path) -> None:
        """Check that it can be a folder, and each file there whose name is one that may be written."""
        ledger.refuse_review(path)
        if path.exists() and not path.is_dir():
            raise UsageError("Results go into a folder", where=str(path), expected="a folder", found="a file")
        for pattern in self.patterns if path.is_dir() else ():
            for file in sorted(path.glob(pattern)):
                # What a killed run left half written has a hidden name: it is removed when the file is written.
                if not file.name.startswith("."):
                    ledger.check_output(file)


@dataclass(frozen=True, slots=True)
class OutputResult(Output):
    """A folder that a result of one protocol is written to; it may hold other files.

    Attributes
    ----------
    protocol : str
        Its report says what may be written there; it is read only when that is needed.
    """

    protocol: str

    @property
    def folder(self) -> OutputFolder:
        """Return what may be written there."""
        from curation.benchmarks.registry import report_of

        report = report_of(self.protocol)
        return OutputFolder(("results.json", *(f"{stem}.csv" for stem in report.files)), report.figures)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns of all file names."""
        return self.folder.patterns

    def check(self, path: Path) -> None:
        """Check each file there whose name is one that may be written."""
        self.folder.check(path)


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
        """Check what stands there."""
        if path.is_dir():
            ledger.require_new_folder(path)
        else:
            ledger.check_output(path)


@dataclass(frozen=True, slots=True)
class AppendedFile(Output):
    """A file that lines are added to: it is kept, but may not be an input."""

    def check(self, path: Path) -> None:
        """Check that the command does not read it."""
        ledger.refuse_input(path)
        ledger.refuse_review(path)


@dataclass(frozen=True, slots=True)
class OwnFolder(Output):
    """A folder that the verb keeps for itself and recognises: embeddings, a review, manifests with their index."""

    def check(self, path: Path) -> None:
        """Check that no review keeps it for itself."""
        ledger.refuse_review(path)


@dataclass(frozen=True, slots=True)
class IndexedFolder(OwnFolder):
    """A folder of manifests whose index is written anew."""


_REPLACING = (IndexedFolder, OutputFile, OutputFolder, OutputResult, NewFolder, FileOrNewFolder)

NEW_MANIFEST = NewFolder(unless="manifest.json")
"""A manifest that stands there already is accepted where it is the very same."""


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force`` to a verb, or to each of its sub-commands, that has an output."""
    actions = list(parser._actions)
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                add_force(command)
    if any(isinstance(action.type, _REPLACING) for action in actions):
        parser.add_argument(
            "--force",
            action="store_true",
            help="replace files that this tool did not write; never an input of the command, never a whole folder",
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
    actions = list(_chosen_actions(parser, options))
    inputs = [
        path
        for action in actions
        if not isinstance(action.type, Output) and action.choices is None
        for path in _paths(_given(action, options))
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


def _given(action: argparse.Action, options: argparse.Namespace) -> Any:
    """Return the value of an option, None where it has its default."""
    value = getattr(options, action.dest, None)
    return None if value == action.default else value


def _paths(value: Any) -> Iterator[Path]:
    """Yield every path that a value may name: a text itself, and what stands behind each ``=`` of ``NAME=PATH``."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _paths(one)
    elif isinstance(value, Path):
        yield from _paths(str(value))
    elif isinstance(value, str):
        pieces = value.split("=")
        texts: Iterable[str] = ("=".join(pieces[place:]) for place in range(len(pieces)))
        yield from (Path(text) for text in texts if text and "\0" not in text)
