"""The lists of OpenOOD 1.5's ImageNet-1K part, as far as rules define them (Zhang et al., arXiv 2306.09301).

A classifier of the 1,000 ILSVRC classes is tested on ILSVRC's validation images, and on images of other classes: *near*
ones, of the Semantic Shift Benchmark's hard classes and of NINCO; *far* ones, of iNaturalist, DTD and Open Images. Each
set follows from the files of its authors. Two sets are split into a part for the choice of hyper-parameters and the
rest; only the list of that part determines this split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from curation.benchmarks.benchmark import benchmark_facts, fact
from curation.benchmarks.published import classes_in_roles, selected_lists
from curation.core.canonical import sha256_of_lines
from curation.core.errors import ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

_CUT = {"val_imagenet": "imagenet-val", "val_openimage_o": "openimage_o"}
"""Sources of the parts for hyper-parameters, and of the sets that contain them."""
_HARD = "curation.extensions.benchmarks.ssb"


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the sets that the sources determine, each compared with the published set.

    Raises
    ------
    ProtocolError
        No source is given, or a list for hyper-parameters is given without its set or has images outside of it.
    """
    for cut in filter(sources.__contains__, _CUT):
        if _CUT[cut] not in sources:
            raise ProtocolError("A source is missing", where=f"source {cut}", expected=f"--source {_CUT[cut]}=PATH")
        cut_ids = sources[cut].image_ids
        if len(strays := cut_ids[~np.isin(cut_ids, sources[_CUT[cut]].image_ids)]):
            raise ProtocolError(
                "A list for hyper-parameters has images that its set lacks",
                where=f"source {cut}",
                expected=f"images of source {_CUT[cut]}",
                found=str(strays[0]),
            )
    classes = classes_in_roles({"known": ilsvrc2012_classes(), "unknown": _unknown(sources)})
    made = selected_lists(__name__, sources, parameters, classes)
    published_sets = fact(__name__, "sets", dict[str, str])
    compared = [name for name in made.parts if name in published_sets]
    equal = [name for name in compared if sha256_of_lines(sorted(made.ids(name))) == published_sets[name]]
    differing = sorted({*compared} - {*equal})
    notes = [f"Equal to OpenOOD's published list as a set: {', '.join(equal)}."] * bool(equal)
    notes += [f"Differs from OpenOOD's published list: {', '.join(differing)}."] * bool(differing)
    return replace(made, header=structs.replace(made.header, notes=tuple(notes)))


def _unknown(sources: Mapping[str, Source]) -> list[str]:
    """Return the distinct classes of the OOD sources; for SSB, the hard ones."""
    names = {name for slot in ("ninco", "textures") if slot in sources for name in sources[slot].categories.names}
    return sorted(names | (set(hard_classes()) if "ssb" in sources else set()))


def hard_classes() -> list[str]:
    """Return the wnids of SSB's 980 hard classes."""
    names: list[str] = benchmark_facts(_HARD)["problems"]["imagenet"]["classes"]["hard"]
    return names
