"""All that whole commands print and write on drawn worlds."""

import contextlib
import dataclasses
import importlib.metadata
import io
import os
import platform
import re
import shlex
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from curation.cli import main
from curation.version import __version__
from tests.docs.pages import ROOT
from tests.frozen.commands import WORLDS
from tests.unpainted import unpainted

PICTURES = {".png", ".svg", ".parquet", ".gz"}
"""Files whose bytes are a library's and never an identity."""
_BYTES = re.compile(
    r'((?:[.-]parquet|croissant\.json)"[:,]\s+(?:"sha256": )?)"(?:sha256:)?[0-9a-f]{64}"'
    r'|"sha256": "sha256:[0-9a-f]{64}",\s+"size": \d+(?=,\s+"content": )'
)
"""Digests of Parquet, whose bytes are other ones by another version of the library that writes it, and of
``croissant.json``, which states them; in the record of a publication, digest and size of all that has a ``content``."""
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])")
"""A number with a fraction or an exponent. Whole numbers are counts, and counts are text: they have to be equal."""


def verb_of(command: str) -> str:
    """Return the verb of a command; of ``review apply`` and the like, the second word."""
    first, second = [*command.split(), ""][:2]
    return second if first in ("review", "similarity", "hierarchy") else first


def versions() -> dict[str, str]:
    """Return the versions of Python and of the direct dependencies that are installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(one for extra in extras for one in extra)]
    found = {"python": platform.python_version()}
    for requirement in wanted:
        name = re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return dict(sorted(found.items()))


_VERSIONS = versions() | {"curation": __version__}
"""Results say which versions made them; that is no difference between cells."""


@dataclasses.dataclass(frozen=True)
class Written:
    """What one command printed, or one file that it wrote.

    Attributes
    ----------
    world, command : str
    path : str
        Of the file, below the world's folder; ``""`` for what was printed.
    content : bytes
    """

    world: str
    command: str
    path: str
    content: bytes


def written(worlds: Iterable[str]) -> Iterator[Written]:
    """Run the commands of some worlds, each in a folder of its own, and yield what they print and write."""
    for name in worlds:
        # Short and of one length: where a line is broken must not depend on the folder.
        with tempfile.TemporaryDirectory(prefix="w") as folder:
            yield from _of_world(name, WORLDS[name], Path(folder).resolve())


def _of_world(name: str, draw: Callable[[Path], Iterator[str]], root: Path) -> Iterator[Written]:
    os.environ["CURATION_CACHE"] = str(root / "cache")
    folder = root / "world"
    folder.mkdir()
    before = Path.cwd()
    os.chdir(folder)
    try:
        for command in draw(folder):
            seen = _stamps(folder)
            printed = io.StringIO()
            with unpainted(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as said:
                status = _status(shlex.split(command))
            if status == 2:
                raise SystemExit(f"{name}: curation {command}\n{said.getvalue()}")
            text = f"{printed.getvalue()}exit status {status}\n".replace(str(folder), "WORLD")
            yield Written(name, command, "", text.encode())
            for path in map(Path, sorted(dict(_stamps(folder).items() - seen.items()))):
                if path.suffix not in PICTURES:
                    yield Written(name, command, path.relative_to(folder).as_posix(), path.read_bytes())
    finally:
        os.chdir(before)


def _status(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as stop:  # argparse leaves in this way
        return stop.code if isinstance(stop.code, int) else 2


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for below, _, names in os.walk(folder):
        for name in names:
            path = f"{below}{os.sep}{name}"
            state = os.lstat(path)
            if stat.S_ISREG(state.st_mode):
                found[path] = (state.st_size, state.st_mtime_ns)
    return found


def without_libraries(content: bytes) -> str:
    """Return a text without the versions of what made it, and without digests of the bytes that a library wrote."""
    text = content.decode("utf-8", "surrogateescape")
    for package, version in _VERSIONS.items():
        text = text.replace(f'"{package}": "{version}"', f'"{package}": "VERSION"')
    return _BYTES.sub(r'\1"BYTES"', text)
