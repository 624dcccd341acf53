"""Class names of COCO-80, VOC-20 and Open Images-601 as noun synsets of WordNet 3.0.

Two readings, by name. ``curated``: each name looked at by hand, with the reason wherever the first sense is not what
the data set annotates. ``first_sense``: what ``wordnet.synsets(name)[0]`` returns, which makes a leopard a fur.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from curation.errors import UsageError

Reading = Literal["curated", "first_sense"]
DATASETS = ("coco", "voc", "openimages")
_FILE = "synset_maps.tsv"


@dataclass(frozen=True, slots=True)
class SynsetChoice:
    """What a class name stands for.

    Attributes
    ----------
    synset : str or None
        Chosen by hand; None where WordNet has nothing that fits.
    first_sense : str or None
        The first noun sense of the name in WordNet's own order; None where the name is no lemma.
    reason : str
        Why the two differ, or why there is no synset; ``""`` where the first sense is right.
    """

    synset: str | None
    first_sense: str | None
    reason: str


@cache
def synset_choices(dataset: str) -> dict[str, SynsetChoice]:
    """Return the choice of each class of a data set (``coco``, ``voc``, ``openimages``), in the data set's order.

    Raises
    ------
    UsageError
        There is no map of this data set.
    """
    if dataset not in DATASETS:
        raise UsageError(
            "There is no synset map of this data set", expected=", ".join(DATASETS), found=repr(dataset[:40])
        )
    lines = resources.files("curation.hierarchy").joinpath(_FILE).read_text(encoding="ascii").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {
        name: SynsetChoice(synset or None, first or None, reason)
        for owner, name, synset, first, reason in rows
        if owner == dataset
    }


def synset_map(dataset: str, reading: Reading = "curated") -> dict[str, str]:
    """Return the synset of each class that has one under a reading, in the data set's order."""
    chosen = {
        name: one.synset if reading == "curated" else one.first_sense for name, one in synset_choices(dataset).items()
    }
    return {name: synset for name, synset in chosen.items() if synset is not None}
