"""`Target`: a reader of users' files, with small valid files of its format; and such files as bytes."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

Files = dict[str, bytes]
Seal = Callable[[Files], Files]


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes
    ----------
    name : str
    files : mapping of str to bytes
        Valid files, by name below a folder.
    read : callable
        Reads them in a folder.
    seal : callable, optional
        Makes the digests of changed files right again, so that what lies behind the check of digests is met too.
    weight : int
        How many inputs it gets beside others.
    """

    name: str
    files: Mapping[str, bytes]
    read: Callable[[Path], Any]
    seal: Seal | None = None
    weight: int = 2


def call(place: str) -> Callable[..., Any]:
    """Return a function by ``MODULE:NAME`` below `curation`, imported when it is first called."""
    module, _, name = place.partition(":")

    def call(*arguments: Any, **named: Any) -> Any:
        return attrgetter(name)(importlib.import_module(f"curation.{module}"))(*arguments, **named)

    return call


def reader(
    name: str,
    files: Files,
    place: str,
    *arguments: Any,
    folder: bool = False,
    seal: Seal | None = None,
    weight: int = 2,
    **named: Any,
) -> Target:
    """Return the target of one function, whose first argument is the file; of several, or if so said, their folder.

    Further arguments that are functions are called when the file is read.
    """
    first = "" if folder or len(files) > 1 else next(iter(files))

    def read(where: Path) -> Any:
        made = (one() if callable(one) else one for one in arguments)
        return call(place)(where / first, *made, **named)

    return Target(name, files, read, seal, weight)


def opened(name: str, files: Files, dataset: str, part: str = "train", *, weight: int = 2) -> Target:
    """Return the target of a data set part that is opened."""
    return reader(name, files, "sources.opening:open_path", weight=weight, dataset=dataset, part=part, cache=False)


def command(name: str, files: Files, words: str, *, seal: Seal | None = None, weight: int = 1) -> Target:
    """Return the target of a whole command; ``@NAME`` is a file of the folder, ``@`` the folder."""

    def run(folder: Path) -> Any:
        from curation.cli import main

        given = [word.replace("@", f"{folder}/") for word in words.split()]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
            status = main(given)
        if status not in (0, 1, 2):
            raise AssertionError(f"exit status {status}: {told.getvalue()[:300]}")
        return status

    return Target(name, files, run, seal, weight)


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def json_lines(*values: Any) -> bytes:
    return b"".join(json_bytes(value) + b"\n" for value in values)


def written(write: Callable[[io.BytesIO], Any]) -> bytes:
    """Return what a function writes into a file."""
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def npz(**arrays: Any) -> bytes:
    return written(lambda out: np.savez(out, **arrays))


def npy(array: Any) -> bytes:
    return written(lambda out: np.save(out, array))


def parquet(**columns: Any) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    return written(lambda out: parquet.write_table(pa.table(columns), out))


def picture(form: str, mode: str = "RGB") -> bytes:
    from PIL import Image

    return written(lambda out: Image.linear_gradient("L").resize((24, 16)).convert(mode).save(out, form))
