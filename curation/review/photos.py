"""Photos of a folder, found by the names that annotations give them; names from files open nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path, PurePosixPath

from curation.errors import MissingFileError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


class PhotoFolder:
    """The photos below a folder, listed once.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    MissingFileError
        There is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise MissingFileError("The folder of photos does not exist", where=str(folder))
        self.folder = folder

    def find(self, names: Iterable[str]) -> Path | None:
        """Return the photo that lies under one of some names, the first that does: path, file name, or stem."""
        for name in names:
            found = self._by_name.get(name) or self._by_name.get(PurePosixPath(name).name)
            if name and found is not None:
                return found
        return None

    @cached_property
    def _by_name(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        root = self.folder.absolute()
        for path in sorted(root.rglob("*")):
            if path.suffix.lower() in SUFFIXES and path.is_file():
                for name in (path.relative_to(root).as_posix(), path.name, path.stem):
                    found.setdefault(name, path)
        return found
