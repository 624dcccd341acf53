"""Parts as OpenOOD's imglists, ``ninco/amphiuma_means/amphiuma_means_000_1.jpg -1``: path and label a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from curation.benchmarks.facts import fact
from curation.errors import ExportError
from curation.ilsvrc2012 import ilsvrc2012_classes
from curation.manifest.manifest import Manifest
from curation.publishing.exporting import Format
from curation.publishing.formats.plan import Plan, PlannedFile
from curation.sources.imagenet import class_of_images
from curation.sources.published_list import stems
from curation.sources.source import Source

_STATED = {name: tuple(one) for name, one in fact(__package__, "imglists", dict[str, list[str]]).items()}
_VAL, _NINCO = "imagenet-val", "ninco"
_LINES = 10_000


def plan_imglists(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    """Return the plan of one file a part, ``test_ninco.txt``: the lines of OpenOOD's list in the order of the part.

    Raises
    ------
    ExportError
        A part is none of OpenOOD's, or its paths and labels do not follow from ids and sources.
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
    if part not in _STATED:
        raise ExportError(
            "The list of this part does not follow from its ids: OpenOOD's own has folders or labels that they lack",
            where=f"part {part}",
            expected=", ".join(_STATED),
        )
    folder, suffix = _STATED[part]
    ids = manifest.ids(part)
    natives = [one.partition(":")[2] for one in ids]
    if part == "ssb_hard":
        paths = [f"{folder}/{native.partition('_')[0]}/{native}{suffix}" for native in natives]
    elif part == _NINCO:
        paths = [f"{folder}/{native}{end}" for native, end in zip(natives, _suffixes(ids, part, sources), strict=True)]
    else:
        paths = [f"{folder}/{native}{suffix}" for native in natives]
    label_of = _labels(part, sources)
    return [f"{path} {label_of(native)}\n" for path, native in zip(paths, natives, strict=True)]


def _labels(part: str, sources: Mapping[str, Source]) -> Callable[[str], int]:
    """Return what tells the label of an id: the place of its class, -1 of an OOD image."""
    if part == "imagenet_r":
        place = {wnid: number for number, wnid in enumerate(ilsvrc2012_classes())}
        return lambda native: place[native.partition("/")[0]]
    if part not in ("imagenet", "val_imagenet", "imagenet_c"):
        return lambda native: -1
    source = _needed(_VAL, part, sources)
    index = {wnid: number for number, wnid in enumerate(ilsvrc2012_classes())}
    classes = [index[source.categories.names[one]] for one in class_of_images(source).tolist()]
    label = {one.partition(":")[2]: number for one, number in zip(source.image_ids.tolist(), classes, strict=True)}
    return lambda native: label[native.rpartition("/")[2]]


def _suffixes(ids: Sequence[str], part: str, sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield the suffix of each file, as the source has it; blanks of its name are underscores in the id."""
    source = _needed(_NINCO, part, sources)
    names = source.images.file_names.tolist()
    suffix = {
        one: name.replace(" ", "_")[len(name) - _suffix_length(name) :]
        for one, name in zip(source.image_ids.tolist(), names, strict=True)
    }
    yield from (suffix[one] for one in ids)


def _suffix_length(name: str) -> int:
    file = name.rpartition("/")[2].encode()
    return len(file) - len(stems(file + b"\n").rstrip(b"\n"))


def _needed(slot: str, part: str, sources: Mapping[str, Source]) -> Source:
    if slot not in sources:
        raise ExportError(
            "A source is needed for paths or labels",
            where=f"part {part}",
            expected=f"--source {slot}=PATH",
        )
    return sources[slot]


def _chunks(lines: Sequence[str]) -> Iterator[bytes]:
    for start in range(0, len(lines), _LINES):
        yield "".join(lines[start : start + _LINES]).encode("utf-8")


FORMATS = (Format("openood-imglist", lambda one: plan_imglists(one.manifest, one.parts, one.sources)),)
