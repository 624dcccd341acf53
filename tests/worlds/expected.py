"""Expected values of the synthetic worlds: made by the references alone, committed as JSON, compared number by number.

``python -m tests.worlds.expected`` makes them again and says what differs; ``--write`` writes them; names of worlds
choose some. No module that makes an expectation imports the package (`test_expected.py` sees to it).
"""

import json
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.worlds import (
    coco,
    elephant,
    findmeifyoucan,
    graphs,
    imagenet,
    imagenet_lists,
    osod3,
    owod,
    photos,
    species,
    voc,
)

FOLDER = Path(__file__).resolve().parent / "expected"
WORLDS: dict[str, Callable[[], dict[str, Any]]] = {
    "elephant": elephant.expected,
    "owod": owod.expected,
    "osod3": osod3.expected,
    "imagenet": imagenet.expected,
    "findmeifyoucan": findmeifyoucan.expected,
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


def differences(ours: Any, theirs: Any, where: str = "", *, tolerance: float = 1e-11) -> list[str]:
    """Return every place of `theirs` at which `ours` says something else; what `ours` says beyond is its own.

    Numbers agree within `tolerance` of the larger of 1 and their size. Sums of at most ten thousand doubles round by
    less than 1e-11.
    """
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            return [f"{where}: {ours!r} for a mapping"]
        return [
            found
            for key, value in theirs.items()
            for found in (
                differences(ours[key], value, f"{where}/{key}", tolerance=tolerance)
                if key in ours
                else [f"{where}/{key}: missing"]
            )
        ]
    if isinstance(theirs, list):
        if not isinstance(ours, list | tuple) or len(ours) != len(theirs):
            return [f"{where}: {ours!r} for {theirs!r}"]
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [found for k, (a, b) in pairs for found in differences(a, b, f"{where}[{k}]", tolerance=tolerance)]
    if isinstance(theirs, float) or (isinstance(theirs, int) and not isinstance(theirs, bool)):
        same = isinstance(ours, int | float) and abs(ours - theirs) <= tolerance * max(1.0, abs(theirs))
    else:
        same = ours == theirs
    return [] if same else [f"{where}: {ours!r} for {theirs!r}"]


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
