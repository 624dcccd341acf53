"""Speed of the built-in WordNet against NLTK's reader, and of similarities against NLTK's pair by pair.

NLTK is measured where WordNet is at hand: set CURATION_WORDNET, or install Debian's wordnet-base.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.measured import measured

REPEATS = 5
PAIRS = 2000
_ROOT = Path(__file__).parents[2]


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, value, unit, what is required, and whether it is met."""
    del out
    whole = _fresh("from curation.hierarchy.wordnet import wordnet", "wordnet()")
    part = _fresh(
        "from curation.hierarchy.wordnet import wordnet; from curation.ilsvrc2012 import ilsvrc2012_classes as c",
        "wordnet(above=c())",
    )
    rows = [
        measured("all nouns as a graph, first time in a process", whole, "s"),
        measured("the part above ImageNet's classes, first time in a process", part, "s"),
        measured("the same, table loaded", _best(_above), "s", most=0.05),
    ]
    pairwise = _best(_all_pairs, repeats=1)
    rows.append(measured("Wu-Palmer of all pairs of 1,000 classes", pairwise, "s", most=10))
    if (folder := _wordnet()) is None:
        return rows
    reader = _best(lambda: _read_all(folder), repeats=3)
    each = _nltk_pairs(folder) / PAIRS
    return [
        *rows,
        measured("NLTK: reader and every noun", reader, "s"),
        measured("NLTK: one Wu-Palmer", each, "s"),
        measured("NLTK's reader / all nouns as a graph", reader / whole, "ratio", least=4),
        measured("NLTK pair by pair / Wu-Palmer of all pairs", each * 1_000_000 / pairwise, "ratio", least=50),
    ]


def _above() -> None:
    from curation.hierarchy.wordnet import wordnet
    from curation.ilsvrc2012 import ilsvrc2012_classes

    assert len(wordnet(above=ilsvrc2012_classes())) == 1860


def _all_pairs() -> None:
    from curation.hierarchy.related_classes import kinship, wu_palmer
    from curation.hierarchy.wordnet import imagenet_dag
    from curation.ilsvrc2012 import ilsvrc2012_classes

    classes = ilsvrc2012_classes()
    assert wu_palmer(kinship(imagenet_dag(), classes), classes, classes).shape == (1000, 1000)


def _read_all(folder: Path) -> None:
    from tests.hierarchy.nltk_oracle import nltk_reader

    with nltk_reader(folder) as reader:
        parents = [one.hypernyms() for one in reader.all_synsets("n")]
    assert len(parents) == 82_115


def _nltk_pairs(folder: Path) -> float:
    import random

    from curation.ilsvrc2012 import ilsvrc2012_classes
    from tests.hierarchy.nltk_oracle import nltk_reader

    generator = random.Random(7)
    with nltk_reader(folder) as reader:
        synsets = [reader.synset_from_pos_and_offset("n", int(one[1:])) for one in ilsvrc2012_classes()]
        pairs = [(generator.choice(synsets), generator.choice(synsets)) for _ in range(PAIRS)]
        synsets[0].wup_similarity(synsets[1])
        start = time.perf_counter()
        for one, other in pairs:
            one.wup_similarity(other)
        return time.perf_counter() - start


def _wordnet() -> Path | None:
    for named in (os.environ.get("CURATION_WORDNET"), "/usr/share/wordnet"):
        if named and Path(named).is_dir():
            return Path(named)
    return None


def _best(work: Callable[[], None], repeats: int = REPEATS) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _fresh(imports: str, work: str) -> float:
    """Return the median seconds of some work in fresh processes, networkx and numpy already imported."""
    code = (
        f"import time, networkx, numpy; {imports}; start = time.perf_counter(); {work}; "
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    found = [
        float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
        for _ in range(REPEATS)
    ]
    return statistics.median(found)
