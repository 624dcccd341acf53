"""WordNet database files drawn small, as a corpus of NLTK's data holds them."""

from collections.abc import Sequence
from pathlib import Path

Rows = Sequence[tuple[int, tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]]
HEAD = "  1 WordNet 3.1 Copyright 2011 by Princeton University.\n"

ENTITY, ANIMAL, DOMESTIC, CANINE, DOG, DOODLE, PHYSICIST, EINSTEIN = range(8)
SMALL = (
    (3, (("entity", 0),), ()),
    (3, (("animal", 0), ("animate_being", 0), ("beast", 0)), (("@", ENTITY),)),
    (5, (("domestic_animal", 0), ("domesticated_animal", 0)), (("@", ANIMAL),)),
    (5, (("canine", 1), ("canid", 0)), (("@", ANIMAL),)),
    # The parents stand in another order than in WordNet 3.0, and a lemma is new.
    (5, (("dog", 0), ("domestic_dog", 0), ("doggo", 0)), (("@", DOMESTIC), ("@", CANINE))),
    (5, (("labradoodle", 0),), (("@", DOG),)),
    (18, (("physicist", 0),), (("@", ENTITY),)),
    (18, (("Einstein", 0), ("Albert_Einstein", 0)), (("@i", PHYSICIST),)),
)
"""Of each synset its lexicographer's file, lemmas with their ids there, and pointers to other rows."""


def database(rows: Rows) -> tuple[str, str]:
    """Return ``data.noun`` and ``index.noun``: an offset has eight digits whatever it is, so lengths come first."""

    def line(row: int, offsets: Sequence[int]) -> str:
        lexicon, lemmas, pointers = rows[row]
        words = " ".join(f"{lemma} {number:x}" for lemma, number in lemmas)
        over = "".join(f" {symbol} {offsets[other]:08d} n 0000" for symbol, other in pointers)
        return f"{offsets[row]:08d} {lexicon:02d} n {len(lemmas):02x} {words} {len(pointers):03d}{over} | x\n"

    offsets, start, unknown = [], len(HEAD.encode()), [0] * len(rows)
    for row in range(len(rows)):
        offsets.append(start)
        start += len(line(row, unknown).encode())
    senses: dict[str, list[int]] = {}
    for row, (_, lemmas, _) in enumerate(rows):
        for lemma, _ in lemmas:
            senses.setdefault(lemma.lower(), []).append(offsets[row])
    index = "".join(
        f"{lemma} n {len(found)} 0 {len(found)} 0 {' '.join(f'{one:08d}' for one in found)}\n"
        for lemma, found in sorted(senses.items())
    )
    return HEAD + "".join(line(row, offsets) for row in range(len(rows))), HEAD + index


def written(folder: Path, files: tuple[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in zip(("data.noun", "index.noun"), files, strict=True):
        (folder / name).write_text(text, encoding="utf-8")
