"""Steps and blocks of the tests: importable, so that worker processes find them."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from curation.core.engines.shards import Step
from curation.core.errors import UsageError


@dataclass(frozen=True)
class Rows:
    """Numbers from `start` to `stop`, in pieces of 50."""

    start: int
    stop: int
    key: str = ""

    @property
    def name(self) -> str:
        return f"rows {self.start}"

    def tables(self) -> Iterator[Any]:
        for start in range(self.start, self.stop, 50):
            yield pyarrow.table({"n": np.arange(start, min(start + 50, self.stop))})


def rows(total: int, each: int) -> list[Rows]:
    return [Rows(start, min(start + each, total)) for start in range(0, total, each)]


@dataclass(frozen=True)
class Squares(Step):
    """Squares as numbers, texts and lists; numbers divisible by seven have none."""

    name = "squares"
    version = 1
    power: int = 2

    def __call__(self, table: Any) -> Any:
        numbers = table.column("n").to_pylist()
        found = [None if n % 7 == 0 else n**self.power for n in numbers]
        return pyarrow.table(
            {
                "n": table.column("n"),
                "square": pyarrow.array(found, pyarrow.int64()),
                "text": pyarrow.array([None if one is None else f"²{one}" for one in found], pyarrow.string()),
                "parts": pyarrow.array([[float(n)] * (n % 3) for n in numbers], pyarrow.list_(pyarrow.float32())),
            }
        )


class _AsSquares(Step):
    """Known as squares, so that each goes on with the output of the other."""

    name = "squares"
    version = 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {"power": 2}


@dataclass(frozen=True)
class Mortal(_AsSquares):
    """Squares, but the worker that first meets `killing` is killed."""

    killing: int
    witness: Path

    def __call__(self, table: Any) -> Any:
        if self.killing in table.column("n").to_pylist() and not self.witness.exists():
            if self.witness.parent.is_dir():
                self.witness.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Squares()(table)


@dataclass(frozen=True)
class Failing(_AsSquares):
    """Fails of one number: as a user's mistake, or as a defect."""

    at: int
    mistake: bool

    def __call__(self, table: Any) -> Any:
        if self.at in table.column("n").to_pylist():
            if self.mistake:
                raise UsageError("The number is bad", where="row 7", expected="another", hint="choose another")
            raise ValueError("odd\n  thing")
        return Squares()(table)
