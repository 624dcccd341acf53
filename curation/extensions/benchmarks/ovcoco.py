"""OV-COCO (OVR-CNN, CVPR 2021; classes of Bansal et al., ECCV 2018): images of base and novel classes.

The authors keep all annotations of the chosen classes, crowd included, then the images that still have an annotation
(ipynb/001 and 003). This gives three files of val2017: seen, unseen, and all, the union of both. The benchmark's
file has the classes and parts; this module has the check of a training file and a note on novel objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from curation.benchmarks.parts import images_with_roles
from curation.benchmarks.published import selected_lists
from curation.core.errors import ProtocolError
from curation.manifest.header import ClassEntry
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

TRAIN, SEEN_FILE = "train", "seen-file"


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the lists of a validation part and, if given, of a training part.

    Raises
    ------
    ProtocolError
        The file of base classes has objects of other classes, or no image shows a class.
    """
    made = selected_lists(__name__, sources, parameters)
    if SEEN_FILE in sources:
        _require_seen(sources[SEEN_FILE], made.header.classes)
    if TRAIN not in sources:
        return made
    shows = [images_with_roles(sources[TRAIN], made.header.classes, role) for role in ("known", "unknown")]
    note = f"{int((shows[0] & shows[1]).sum()):,} images of the part train show a novel object too, unlabelled: the "
    note += "ordinary case of the benchmark, no fault of the list."
    return replace(made, header=structs.replace(made.header, notes=(*made.header.notes, note)))


def _require_seen(source: Source, classes: Sequence[ClassEntry]) -> None:
    """Raise `ProtocolError` for a file of base classes with annotations of other classes."""
    counts = Counter(source.categories.names[category] for category in source.class_pairs()[1].tolist())
    role_of = {entry.name: entry.role for entry in classes}
    others = {name: counts[name] for name in source.categories.names if counts[name] and role_of.get(name) != "known"}
    if others:
        listed = ", ".join(f"{name} ({count:,})" for name, count in others.items())[:300]
        raise ProtocolError(
            "The file of base classes contains annotations of other classes",
            where=f"source {SEEN_FILE}: {source.files[0].name if source.files else source.dataset}",
            expected="annotations of the 48 base classes alone",
            found=f"{listed}; {[role_of.get(name) for name in others].count('unknown')} of them novel",
            hint="build the part train from instances_train2017.json and export it: its label view drops them",
        )
