"""Parts as OpenOOD's imglists, ``ninco/amphiuma_means/amphiuma_means_000_1.jpg -1``: path and label a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from curation.benchmarks.facts import fact
from curation.errors import ExportError
from curation.ilsvrc2012 import ilsvrc2012_classes
from curation.manifest.manifest import Manifest
from curation.manifest.views import locate_images
from curation.publishing.exporting import Format
from curation.publishing.formats.plan import Plan, PlannedFile
from curation.sources.imagenet import class_of_images
from curation.sources.source import Source
from curation.sources.stems import stems

FOLDERS = fact(__package__, "imglists", dict[str, str])
"""Where OpenOOD keeps the images of each part."""
_LINES = 10_000


def plan_imglists(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    """Return the plan of one file a part, ``test_ninco.txt``: the lines of OpenOOD's list in the order of the part.

    Raises
    ------
    ExportError
        A part is none of OpenOOD's, or its folders or labels do not follow from ids.
    ManifestError, MissingListError
        See `curation.manifest.views.locate_images`.
    """
    texts = {part: _lines(manifest, part, sources) for part in parts}
    return Plan(
        files=[
            PlannedFile(f"{part if part.startswith('val_') else f'test_{part}'}.txt", partial(_chunks, lines))
            for part, lines in texts.items()
        ],
        records=sum(-(-len(lines) // _LINES) for lines in texts.values()),
        counts={"lines": sum(map(len, texts.values()))},
    )


def _lines(manifest: Manifest, part: str, sources: Mapping[str, Source]) -> list[str]:
    if part not in FOLDERS:
        raise ExportError(
            "The list of this part does not follow from its ids: OpenOOD's own has folders or labels that they lack",
            where=f"part {part}",
            expected=", ".join(FOLDERS),
        )
    located = locate_images(manifest, part, sources)
    (source,) = located.sources
    natives = [one.partition(":")[2] for one in manifest.ids(part)]
    folders = [
        f"{FOLDERS[part]}/{native.partition('_')[0]}" if part == "ssb_hard" else FOLDERS[part] for native in natives
    ]
    suffixes = [_suffix(name) for name in source.images.file_names[located.position].tolist()]
    labels = _labels(part, natives, source, located.position)
    return [
        f"{folder}/{native}{suffix} {label}\n"
        for folder, native, suffix, label in zip(folders, natives, suffixes, labels, strict=True)
    ]


def _labels(part: str, natives: Sequence[str], source: Source, positions: Any) -> Sequence[int]:
    """Return the place of each image's class, -1 of an OOD image."""
    place = {wnid: number for number, wnid in enumerate(ilsvrc2012_classes())}
    if part == "imagenet_r":
        return [place[native.partition("/")[0]] for native in natives]
    if part not in ("imagenet", "val_imagenet"):
        return [-1] * len(natives)
    return [place[source.categories.names[one]] for one in class_of_images(source)[positions].tolist()]


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[len(stems(f"{name}\n".encode()).decode()) - 1 :]


def _chunks(lines: Sequence[str]) -> Iterator[bytes]:
    for start in range(0, len(lines), _LINES):
        yield "".join(lines[start : start + _LINES]).encode("utf-8")


FORMATS = (Format("openood-imglist", lambda one: plan_imglists(one.manifest, one.parts, one.sources)),)
