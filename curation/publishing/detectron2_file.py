"""The Python file beside a COCO export that makes it known to detectron2."""

from __future__ import annotations

import re
from collections.abc import Iterator

from curation.manifest.manifest import Manifest
from curation.publishing.plan import PlannedFile

NOTE = (
    "PART.detectron2.py registers the file with detectron2: import it, then call register(PHOTOS). Category ids are "
    "made contiguous there in ascending order, so `unknown` comes last."
)

_TEMPLATE = '''"""Registers {title} with detectron2."""

from pathlib import Path

from detectron2.data.datasets import register_coco_instances

NAME = "{name}"


def register(photos, name=NAME):
    """Register the annotations beside this file; `photos` is the folder of the images."""
    annotations = Path(__file__).resolve().with_name("{stem}.json")
    register_coco_instances(name, {{}}, str(annotations), str(photos))
    return name
'''


def plan_detectron2(manifest: Manifest, stem: str) -> PlannedFile:
    """Return the file ``STEM.detectron2.py``: one function, ``register(photos)``, that returns the dataset's name."""
    header = manifest.header
    text = _TEMPLATE.format(
        # Names, versions and parts of a manifest are plain words of letters, digits and a few signs.
        title=f"{header.name} {header.version}, {stem}",
        name=re.sub(r"[^a-z0-9]+", "_", f"{header.name}_{stem}".lower()),
        stem=stem,
    )

    def chunks() -> Iterator[bytes]:
        yield text.encode("utf-8")

    return PlannedFile(name=f"{stem}.detectron2.py", chunks=chunks)
