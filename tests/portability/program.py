"""The numbers-and-digests program: whole commands on drawn worlds, all that they print and write, as one JSON document.

``python -m tests.portability.program`` prints it; `tests.portability.comparison` says how far two are apart.
"""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
import platform
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curation.cli import main
from curation.ledger import LEDGER
from curation.version import __version__
from tests.docs.pages import ROOT, blocks_of, commands_of
from tests.docs.worlds import draw_detections, lay
from tests.portability.commands import WORLDS
from tests.unpainted import unpainted

IDENTITY_VERBS = {
    "build",
    "publish",
    "import",
    "apply",
    "export",
    "show",
    "verify",
    "list",
    "summary",
    "diff",
}
"""What these print and write is an identity, or is counted: not a bit of it may differ anywhere."""
TELL_OF_FILES = ("leaderboard", "publish")
SINGLE_VERBS = {"neighbors", "duplicates"}
"""Cosines of float32 vectors: summed in another order, their last digits differ."""
PAGES = (
    "README.md",
    "docs/audit.md",
    "docs/decisions.md",
    "docs/findmeifyoucan.md",
    "docs/hierarchy.md",
    "docs/id_lists.md",
    "docs/leaderboard.md",
    "docs/owod_metrics.md",
    "docs/similarity.md",
)
"""Pages whose printed commands are run, each on its own drawn world."""
PICTURES = {".png", ".svg", ".parquet", ".gz"}
"""Files whose bytes are a library's and never an identity."""
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
class Output:
    """One file, or what one command printed.

    Attributes
    ----------
    name : str
        World, command and file.
    kind : {"identity", "double", "single"}
        Equal to the byte in every cell; or numbers in float64 or float32.
    sha256, skeleton : str
        Of all of it, and of what is left without its fractions.
    numbers : tuple of float
    """

    name: str
    kind: str
    sha256: str
    skeleton: str
    numbers: tuple[float, ...]


def of_page(page: str) -> Callable[[Path], Iterator[str]]:
    """Return the commands that a page prints, on the world that its test draws."""

    def commands(folder: Path) -> Iterator[str]:
        lay(page, folder)
        for block in blocks_of(page):
            for one in commands_of(block) if block.language == "bash" else ():
                draw_detections(one.text, folder)
                yield shlex.join(one.words()[1:])

    return commands


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

    @property
    def name(self) -> str:
        """World, command and file in one text."""
        return f"{self.world}: {self.command}" + (f": {self.path}" if self.path else " (printed)")

    @property
    def kind(self) -> str:
        """How near two machines have to come: ``identity``, ``double`` or ``single``."""
        verb = verb_of(self.command)
        return "identity" if verb in IDENTITY_VERBS else "single" if verb in SINGLE_VERBS else "double"

    def output(self) -> Output:
        """Return its digest and its numbers."""
        if self.path.endswith(".npy"):
            values = np.load(io.BytesIO(self.content), allow_pickle=False)
            if values.dtype.kind == "f":
                head = f"{values.dtype} {values.shape}".encode()
                kind = "single" if values.dtype == np.float32 else self.kind
                numbers = tuple(map(float, values.ravel()))
                return Output(self.name, kind, _sha256(self.content), _sha256(head), numbers)
        text = without_versions(self.content)
        if self.command.split()[0] in TELL_OF_FILES:
            # Digests and sizes of files: of rows and manifests, which are compared themselves, and of Parquet.
            text = re.sub('[0-9a-f]{64}|(?<="size": )[0-9]+', "…", text)
        skeleton = NUMBER.sub("#", text)
        numbers = tuple(map(float, NUMBER.findall(text)))
        return Output(self.name, self.kind, _sha256(_bytes(text)), _sha256(_bytes(skeleton)), numbers)


def run(worlds: Sequence[str] | None = None) -> list[Output]:
    """Return the outputs of the worlds named, or of all and the pages."""
    return [one.output() for one in written(worlds or [*WORLDS, *PAGES])]


def written(worlds: Iterable[str]) -> Iterator[Written]:
    """Run the commands of some worlds, each in a folder of its own, and yield what they print and write."""
    for name in worlds:
        draw = WORLDS[name] if name in WORLDS else of_page(name)
        # Short and of one length: where a line is broken must not depend on the folder.
        with tempfile.TemporaryDirectory(prefix="w") as folder:
            yield from _of_world(name, draw, Path(folder).resolve())


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
            with (
                unpainted(),
                contextlib.redirect_stdout(printed),
                contextlib.redirect_stderr(io.StringIO()) as said,
            ):
                status = _status(shlex.split(command))
            if status == 2:
                raise SystemExit(f"{name}: curation {command}\n{said.getvalue()}")
            text = f"{printed.getvalue()}exit status {status}\n".replace(str(folder), "WORLD")
            yield Written(name, command, "", text.encode())
            for path, stamp in sorted(_stamps(folder).items()):
                # What the ledger says is the digest of files that are compared themselves, and of pictures.
                if seen.get(path) != stamp and path.suffix not in PICTURES and path.name != LEDGER:
                    yield Written(name, command, path.relative_to(folder).as_posix(), path.read_bytes())
    finally:
        os.chdir(before)


def _status(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as stop:  # argparse leaves in this way
        return stop.code if isinstance(stop.code, int) else 2


def _stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            stat = path.stat()
            found[path] = (stat.st_size, stat.st_mtime_ns)
    return found


def without_versions(content: bytes) -> str:
    """Return a text without the versions of what made it."""
    text = content.decode("utf-8", "surrogateescape")
    for package, version in _VERSIONS.items():
        text = text.replace(f'"{package}": "{version}"', f'"{package}": "VERSION"')
    return text


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def kernels() -> dict[str, str]:
    """Return what the libraries really compute with here: the environment only asks for it."""
    from numpy._core import _multiarray_umath as umath
    from threadpoolctl import threadpool_info

    found = {"NumPy": " ".join(one for one in umath.__cpu_dispatch__ if umath.__cpu_features__[one]) or "baseline"}
    for one in threadpool_info():
        if one["internal_api"] == "openblas":
            found["OpenBLAS"] = f"{one['architecture']}, {one['num_threads']} threads"
    if importlib.util.find_spec("torch"):
        import torch

        found["torch"] = f"{torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"
    return found


def document(outputs: Sequence[Output]) -> dict[str, Any]:
    """Return what the program prints."""
    return {
        "versions": _VERSIONS,
        "kernels": kernels(),
        "outputs": [dataclasses.asdict(one) for one in outputs],
    }


if __name__ == "__main__":
    # Worlds are drawn by commands too, and those print.
    with contextlib.redirect_stdout(io.StringIO()):
        made = document(run(sys.argv[1:] or None))
    json.dump(made, sys.stdout, indent=0)
