"""Figures that are made and not painted: painting takes most of the time of a command that draws."""

import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO
from unittest import mock


@contextlib.contextmanager
def unpainted() -> Iterator[None]:
    """Let every picture be a few bytes; all else of a command is as ever, the numbers behind a figure too."""
    from matplotlib.figure import Figure

    def paint(figure: Figure, stream: BinaryIO, **options: Any) -> None:
        stream.write(b"a picture")

    with mock.patch.object(Figure, "savefig", paint):
        yield
