"""The Open Images problems of OSOD-III as declared manifests: classes and rules exactly, images from your own disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from curation.benchmarks.osod3.classes import open_images_roles
from curation.benchmarks.osod3.facts import (
    INNER_NODES,
    NAMES,
    OURS,
    PAPER,
    SELECTED,
    SUPERCLASSES,
    TEST_VIEW,
    TRAIN_VIEW,
)
from curation.benchmarks.osod3.lists import ALGORITHM_VERSION, SLOTS
from curation.benchmarks.parts import manifest_of, unread_entry
from curation.errors import UsageError
from curation.manifest.header import PartEntry, SourceEntry
from curation.manifest.manifest import Manifest
from curation.sources.datasets import facts_of
from curation.sources.source import Categories, Images, Source


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return a rotation's manifest without lists: classes of each role, views and rules, as the parameters say.

    ``curation build`` completes it from the reader's own box files. Classes outside the super-class are not listed;
    the completed manifest has all 601.

    Parameters
    ----------
    sources : mapping of str to Source
        None is read.
    parameters : mapping
        Of ``problem=openimages``, with ``superclass`` animal or vehicle.

    Raises
    ------
    UsageError
        Another problem or super-class: its classes are known from its sources alone.
    """
    superclass = parameters["superclass"]
    if parameters["problem"] != "openimages" or superclass not in SUPERCLASSES:
        raise UsageError(
            "Only Open Images animals and vehicles are known without their sources",
            where=f"--set problem={parameters['problem']}",
            expected=f"problem=openimages, superclass={' or '.join(SUPERCLASSES)}",
            found=str(superclass)[:80],
        )
    roles = open_images_roles(_classes_alone(superclass), parameters)
    views = {"train": TRAIN_VIEW, "val": TEST_VIEW, "test": TEST_VIEW}
    parts: Any = [
        PartEntry(name=name, role=name, sources=(slot,), selection=rule, view=views[name])
        for name, (slot, _, rule) in SELECTED.items()
    ]
    return manifest_of(
        parts,
        name=roles.name,
        title=roles.title,
        paper=PAPER,
        taxonomy="OSOD-III",
        origin="declared",
        classes=roles.entries,
        sources=tuple(_source(slot.name, slot.part) for slot in SLOTS if slot.dataset == "openimages"),
        protocol="osod3",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, **roles.recorded},
        figures=roles.figures,
        notes=(OURS, "The lists need the box files of Open Images: `curation build` completes them."),
    )


def _classes_alone(superclass: str) -> Source:
    keys = (*SUPERCLASSES[superclass], *INNER_NODES[superclass])
    none, texts = np.empty(0, np.int32), np.empty(0, np.str_)
    facts = facts_of("openimages")
    return Source(
        dataset="openimages",
        part="",
        namespace="openimages",
        images=Images(native=texts, numbers=none.astype(np.int64), file_names=texts, widths=none, heights=none),
        categories=Categories(
            tuple(range(1, len(keys) + 1)), tuple(NAMES[key] for key in keys), ("",) * len(keys), keys
        ),
        objects=None,
        presence=np.empty((0, 2), np.int32),
        files=(),
        licence=facts.licence,
        media_redistributable=facts.media_redistributable,
    )


def _source(name: str, part: str) -> SourceEntry:
    note = f"{part}-annotations-bbox.csv and class-descriptions-boxable.csv, from your own disk"
    return unread_entry(name, "openimages", part, note=note)
