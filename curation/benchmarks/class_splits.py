"""A set of classes cut into equal parts, and the rotations in which each part is known (or unknown) in turn."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Literal

import numpy as np

from curation.errors import ProtocolError

Generator = Literal["hash", "python", "numpy"]
GENERATORS: dict[str, str] = {
    "hash": 'classes in the order of sha256("{seed}:{class}")',
    "python": "random.Random(seed).shuffle of the sorted classes",
    "numpy": "numpy.random.RandomState(seed).permutation of the sorted classes",
}
Convention = Literal["part_known", "part_unknown"]
AUTHORS_SEED = 100


def split_classes(
    classes: Sequence[str],
    *,
    parts: int = 4,
    seed: int = AUTHORS_SEED,
    generator: Generator = "hash",
    uneven: Literal["refuse", "first"] = "refuse",
) -> tuple[tuple[str, ...], ...]:
    """Return disjoint parts of equal size, each sorted.

    *Rectifying Open-Set Object Detection* splits at random and publishes no generator: no split made here is the
    authors' own. The sorted classes are put into the order of a generator and cut into consecutive runs.

    Parameters
    ----------
    uneven : {"refuse", "first"}
        A number of classes that the parts do not divide: refused, or the first parts get one more each.

    Raises
    ------
    ProtocolError
        Classes repeat, are fewer than the parts, or cannot be divided evenly.
    """
    ordered = sorted(classes)
    if len(set(ordered)) < len(ordered) or parts < 2 or len(ordered) < parts:
        raise ProtocolError(
            "The classes cannot be split",
            expected=f"at least {max(parts, 2)} different classes",
            found=f"{len(ordered)} classes, {len(set(ordered))} different, {parts} parts",
        )
    size, left = divmod(len(ordered), parts)
    if left and uneven == "refuse":
        raise ProtocolError(
            "The classes do not divide into equal parts",
            expected=f"a multiple of {parts}",
            found=str(len(ordered)),
            hint="--set uneven=first gives the first parts one more each",
        )
    shuffled = _in_order(ordered, seed, generator)
    ends = np.cumsum([size + (place < left) for place in range(parts)]).tolist()
    return tuple(tuple(sorted(shuffled[start:end])) for start, end in zip([0, *ends[:-1]], ends, strict=True))


def rotation(
    parts: Sequence[Sequence[str]], number: int, convention: Convention
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the known and the unknown classes of rotation `number` (from 1), in the order of the parts from it on.

    Parameters
    ----------
    convention : {"part_known", "part_unknown"}
        ``part_known``: part `number` is known, the others are unknown (the authors' t1..t4 of Open Images).
        ``part_unknown``: part `number` is unknown, the others are known (the authors' t1..t4 of CUB).

    Raises
    ------
    ProtocolError
        There is no such rotation.
    """
    if not 1 <= number <= len(parts):
        raise ProtocolError("There is no such rotation", expected=f"1 to {len(parts)}", found=str(number))
    chosen = tuple(parts[number - 1])
    later = [parts[(number - 1 + step) % len(parts)] for step in range(1, len(parts))]
    others = tuple(name for part in later for name in part)
    return (chosen, others) if convention == "part_known" else (others, chosen)


def _in_order(ordered: list[str], seed: int, generator: Generator) -> list[str]:
    if generator == "hash":
        return sorted(ordered, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).hexdigest())
    if generator == "python":
        shuffled = list(ordered)
        random.Random(seed).shuffle(shuffled)  # noqa: S311 - reproducible, not secret
        return shuffled
    if generator == "numpy":
        return [ordered[place] for place in np.random.RandomState(seed).permutation(len(ordered)).tolist()]
    raise ProtocolError("Unknown generator", expected=", ".join(GENERATORS), found=repr(generator)[:80])
