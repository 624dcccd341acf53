"""The paper's two pairs of ID classes and OOD sources, and pairs that users declare in the earlier form.

A file of the rule ``near-far`` is the other way to declare a pair (`curation.benchmarks.rules.near_far`).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from curation.benchmarks.benchmark import benchmark_facts, read_declared
from curation.benchmarks.rules.ood_pools import OodPair, faults_of, is_counted, is_on
from curation.benchmarks.rules.ood_pools import read_decisions_file as read_decisions_file
from curation.benchmarks.rules.ood_pools import read_recorded as read_recorded
from curation.core.errors import ProtocolError
from curation.review.decisions.files import read_decisions


def _paper_pair(key: str) -> OodPair:
    """Return a pair of the paper; its tables hold the categories of each ID class."""
    facts = benchmark_facts(__package__)["pairs"][key]
    pools = [
        pool
        | {
            name: {category: owner for owner, categories in pool.get(name, {}).items() for category in categories}
            for name in ("remove", "near")
        }
        for pool in facts["pools"]
    ]
    return msgspec.convert(facts | {"pools": pools}, OodPair)


VOC, BDD = _paper_pair("voc"), _paper_pair("bdd")
PAIRS = {"voc": VOC, "bdd": BDD}
SLOTS = tuple({slot.name: slot for pair in PAIRS.values() for slot in pair.slots()}.values())

EXAMPLE = """name = "mylab/pets"
id_classes = ["cat", "dog"]
[aliases]
dog = ["puppy"]
[[pools]]
name = "zoo"
dataset = "zoo"
remove = { leash = "dog" }
near = { wolf = "dog", lynx = "cat" }"""


def read_pair(text: str) -> str:
    """Return ``voc``, ``bdd``, or the JSON of what a TOML or JSON file declares (a `OodPair`), checked.

    A manifest holds the declaration itself, so that it is built again without the file.

    Raises
    ------
    ProtocolError
        The text is neither of the two nor a file; the file is not such a declaration, or is inconsistent.
    """
    if text in PAIRS:
        return text
    missing = "No such pair of ID classes and OOD sources"
    expected = f"{', '.join(PAIRS)}, or a TOML or JSON file such as\n{EXAMPLE}"
    pair, where = read_declared(text, OodPair, "pair", missing, expected)
    complete = _with_sources(pair)
    own_name = [("name", "a name of your own", pair.name)] if pair.name in (VOC.name, BDD.name) else []
    for field, expected, value in (*own_name, *faults_of(complete)):
        message = "The declaration of the pair is inconsistent"
        raise ProtocolError(message, where=f"{where}: {field}", expected=expected, found=repr(value[:80]))
    # Category names are keys here, in any script: canonical JSON admits ASCII keys alone.
    return msgspec.json.encode(complete, order="deterministic").decode("utf-8")


def pair_of(text: str) -> OodPair:
    """Return the pair that a value of the parameter ``pair`` stands for."""
    return PAIRS[text] if text in PAIRS else msgspec.json.decode(text, type=OodPair)


def _with_sources(pair: OodPair) -> OodPair:
    """Return a declared pair whose pools name their sources: NAME, NAME-candidates, NAME-list."""
    defaults = {"start": "{}", "candidates": "{}-candidates", "published": "{}-list"}
    pools = (
        replace(pool, **{slot: getattr(pool, slot) or name.format(pool.name) for slot, name in defaults.items()})
        for pool in pair.pools
    )
    return replace(pair, pools=tuple(pools))


class OverlapCount(NamedTuple):
    """How many images a reviewer removed from an OOD set for a reason; `lines` counts repeats, as Table 4 does."""

    ood_set: str
    reason: str
    lines: int
    images: int


def overlap_counts(path: Path) -> list[OverlapCount]:
    """Return the removals by hand from each OOD set of the paper's pairs by reason: what Table 4 of the paper counts.

    Its total, 106 + 142 + 4 = 252, is the sum of the lines: 199 of the sets of VOC, and those 53 that stand under
    ``person``, which BDD100k's sets remove too. So person is 106, and all else is 146 = 142 + 4: the 134 lines under
    dining table and three lists of 4 (car and other of COCO, other of Open Images). Which two of them the paper counts
    as dining table, and which one as other, the decisions do not say.

    Parameters
    ----------
    path : Path
        The authors' selection, or decisions as .jsonl or .csv.
    """
    removals = [row for row in read_decisions(path).decisions if (row.stage, row.action) == ("manual", "remove")]
    counts = []
    for name, pair in PAIRS.items():
        for pool in pair.pools:
            images = defaultdict[str, list[str]](list)
            for row in removals:
                if is_on(row, pool) and is_counted(row, pool):
                    images[row.reason].append(row.image_id)
            counts += [
                OverlapCount(f"{pool.name} ({name})", reason, len(several), len(set(several)))
                for reason, several in sorted(images.items())
            ]
    return counts
