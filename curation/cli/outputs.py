"""Outputs of a command, declared as annotations of its options, and checked before any work.

An option annotated with an `Output` names a file or folder that the command writes; an option of paths names an input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from curation.core.errors import UsageError
from curation.core.writing import HEADER, check_output, refuse_input, require_new_folder


@dataclass(frozen=True, slots=True)
class Output:
    """The annotation of an option that names an output.

    Attributes
    ----------
    check : callable
        Raises a `curation.core.errors.CurationError` where the output may not be written.
    replaces : bool
        Whether files may be replaced there, so that ``--force`` is offered.
    """

    check: Callable[[Path], None]
    replaces: bool = True

    def __call__(self, text: str) -> Path:
        """Return the path that an argument names."""
        if not text:
            raise UsageError("An output needs a name", expected="a path; the working folder is '.'", found="''")
        return Path(text)


def _check_new_manifest(path: Path) -> None:
    if not (path / HEADER).is_file():
        require_new_folder(path)


def output_folder(main: str) -> Output:
    """Return the output of a folder that may hold other files; `main` is the file that the command always writes."""

    def check(path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise UsageError("Results go into a folder", where=str(path), expected="a folder", found="a file")
        check_output(path / main)

    return Output(check)


def output_file(*suffixes: str) -> Output:
    """Return the output of a file whose suffix, if it has one, names a format that the command writes."""

    def check(path: Path) -> None:
        check_output(path)
        if path.suffix and path.suffix.lower() not in suffixes:
            raise UsageError(
                "The command does not write a file of this format",
                where=str(path),
                expected=" or ".join(f"a name that ends in {suffix}" for suffix in suffixes),
                found=path.suffix,
                hint=f"the same command with {path.with_suffix(suffixes[0])}",
            )

    return Output(check)


OUTPUT_FILE = Output(check_output)
NEW_FOLDER = Output(require_new_folder, replaces=False)
"""A folder that appears whole, and is never replaced."""
NEW_MANIFEST = Output(_check_new_manifest, replaces=False)
"""Likewise; a manifest that is there already is compared later, and accepted where it is the very same."""
FILE_OR_NEW_FOLDER = Output(lambda path: (require_new_folder if path.is_dir() else check_output)(path))
KEPT = Output(refuse_input, replaces=False)
"""A file that lines are added to, or a folder that the command maintains: embeddings, a review, a result's rows."""
