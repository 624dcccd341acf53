"""Expected values of the synthetic worlds: made by the references alone, committed as JSON, compared number by number.

``python -m tests.worlds.expected`` makes them again and says what differs; ``--write`` writes them; names of worlds
choose some. No module that makes an expectation imports the package (`test_expected.py` sees to it).
"""

import json
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from tests.worlds import (
    coco,
    elephant,
    findmeifyoucan,
    graphs,
    image_ood,
    imagenet,
    imagenet_lists,
    osod3,
    ovcoco,
    owod,
    photos,
    species,
    voc,
)

FOLDER = Path(__file__).resolve().parent / "expected"
WORLDS: dict[str, Callable[[], dict[str, Any]]] = {
    "elephant": elephant.expected,
    "ovcoco": ovcoco.expected,
    "owod": owod.expected,
    "osod3": osod3.expected,
    "imagenet": imagenet.expected,
    "findmeifyoucan": findmeifyoucan.expected,
    "image_ood": image_ood.expected,
    "voc": voc.expected,
    "coco": coco.expected,
    "graphs": graphs.expected,
    "photos": photos.expected,
    "species": species.expected,
    "imagenet_lists": imagenet_lists.expected,
}


def plain(value: Any) -> Any:
    """Return the value as JSON has it: exact fractions become the nearest double."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return float(value) if isinstance(value, Fraction | Decimal) else value


def made(name: str) -> Any:
    """Return the expectations of one world, made now."""
    return json.loads(json.dumps(plain(WORLDS[name]()), allow_nan=False))


def committed(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


Step = str | int


class Compared(NamedTuple):
    """One number of an expectation (or text, or null) and what a result says in its place; no steps lead to the top."""

    steps: tuple[Step, ...]
    ours: Any
    theirs: Any
    same: bool

    @property
    def is_number(self) -> bool:
        return isinstance(self.theirs, int | float) and not isinstance(self.theirs, bool)

    def told(self, where: str = "") -> str:
        place = "".join(f"[{step}]" if isinstance(step, int) else f"/{step}" for step in self.steps)
        what = "missing" if self.ours is MISSING else f"{self.ours!r} for {self.theirs!r}"
        return f"{where}{place}: {what}"


MISSING = object()


def compared(ours: Any, theirs: Any, steps: tuple[Step, ...] = (), *, tolerance: float = 1e-11) -> Iterator[Compared]:
    """Yield every number of `theirs` with what `ours` says there; what `ours` says beyond is its own.

    Numbers agree within `tolerance` of the larger of 1 and their size. Sums of at most ten thousand doubles round by
    less than 1e-11. What is absent or of another shape is one that differs.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key, value in theirs.items():
            yield from compared(ours.get(key, MISSING), value, (*steps, key), tolerance=tolerance)
    elif isinstance(theirs, list) and isinstance(ours, list | tuple) and len(ours) == len(theirs):
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from compared(a, b, (*steps, k), tolerance=tolerance)
    elif isinstance(theirs, float) or (isinstance(theirs, int) and not isinstance(theirs, bool)):
        same = isinstance(ours, int | float) and abs(ours - theirs) <= tolerance * max(1.0, abs(theirs))
        yield Compared(steps, ours, theirs, same)
    else:
        yield Compared(steps, ours, theirs, not isinstance(theirs, dict | list) and bool(ours == theirs))


def differences(ours: Any, theirs: Any, where: str = "", *, tolerance: float = 1e-11) -> list[str]:
    """Return every place of `theirs` at which `ours` says something else."""
    return [one.told(where) for one in compared(ours, theirs, tolerance=tolerance) if not one.same]


def main(words: list[str]) -> int:
    status = 0
    for name in [one for one in WORLDS if one in words] or WORLDS:
        text = json.dumps(made(name), indent=1, sort_keys=True) + "\n"
        path = FOLDER / f"{name}.json"
        if "--write" in words:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or differences(json.loads(text), committed(name)):
            print(f"{name}: differs from {path}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
