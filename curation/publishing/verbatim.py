"""Records of a COCO JSON file passed on as they are, but for the category."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from curation.errors import ExportError
from curation.json_keys import refuse_repeated_keys
from curation.manifest.header import ClassEntry, LabelView
from curation.manifest.manifest import Manifest
from curation.manifest.roles import UNKNOWN_ID
from curation.publishing.formats.content import Content
from curation.sources.source import Int64s, Source
from curation.storage import read_bytes


class _File(msgspec.Struct):
    """The two arrays that are passed on; every record stays the bytes it is."""

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]
    categories: list[_Category]


class _Category(msgspec.Struct):
    id: int
    name: str


class _ImageKey(msgspec.Struct, gc=False):
    id: int | str


class _AnnotationKey(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int
    iscrowd: int = 0


@dataclass(frozen=True, slots=True)
class Treatment:
    """What a category of the file becomes."""

    name: str
    category_id: int
    dropped: bool


@dataclass(frozen=True, slots=True)
class VerbatimRecords:
    """The records of a part, image by image in the order asked for, annotations in file order within an image."""

    image_records: list[msgspec.Raw]
    annotation_records: list[list[tuple[msgspec.Raw, Treatment]]]
    strict_layout: bool

    @property
    def n_annotations(self) -> int:
        """Number of annotations."""
        return sum(map(len, self.annotation_records))

    def images(self) -> Iterator[msgspec.Raw]:
        """Yield each image record, byte for byte."""
        yield from self.image_records

    def annotations(self) -> Iterator[dict[str, Any]]:
        """Yield each annotation with its values byte for byte, the category renamed, and the original one kept."""
        decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
        for records in self.annotation_records:
            for raw, treatment in records:
                record: dict[str, Any] = decode(raw)
                original = record["category_id"]
                record["category_id"] = treatment.category_id
                if not self.strict_layout:
                    record |= {"orig_category_id": original, "orig_category": treatment.name}
                yield record


def read_verbatim(
    manifest: Manifest,
    content: Content,
    source: Source,
    path: Path | None,
    *,
    order: Int64s,
    strict_layout: bool,
) -> VerbatimRecords:
    """Return the raw records of a part, read from the very file that the manifest was made from.

    The file lies in memory once (400 MB for train2017); records are views of it.

    Parameters
    ----------
    content : Content
        One part of one source.
    source : Source
        What was read from the file at `path`.
    order : ndarray of int64
        Places in the part's list, in the order of the output.

    Raises
    ------
    ExportError
        There is no JSON file, it is not the one that the manifest pins, or its records are not those of the part.
    """
    slot = content.slots[0]
    if path is None or not path.is_file():
        raise ExportError(
            "The authors' layout passes on the records of the COCO JSON file, and there is none",
            where=f"source {slot}",
            expected=f"--source {slot}=FILE.json",
            hint="--format coco writes the part from any source with boxes",
        )
    data = read_bytes(path, kind="annotation file")
    _require_pinned(manifest, slot, path, data)
    file = _decoded(data, path)
    treatments = _treatments(manifest.header.classes, content.parts[0].view, file.categories)
    records, wanted = _ranked_images(file, source, content, order, path)
    found = VerbatimRecords(
        image_records=records,
        annotation_records=_annotations(file, wanted, treatments, content),
        strict_layout=strict_layout,
    )
    if found.n_annotations != len(content.objects):
        raise ExportError(
            "The records of the file are not the objects of the part",
            where=f"{path.name}, part {content.parts[0].name}",
            expected=f"{len(content.objects)} annotations",
            found=f"{found.n_annotations}: was the source read under a policy that leaves boxes out?",
            hint="--format coco",
        )
    return found


def _require_pinned(manifest: Manifest, slot: str, path: Path, data: bytes) -> None:
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    pinned = {
        file.sha256 for source in manifest.header.sources if source.name == slot for file in source.files
    }
    if digest not in pinned:
        raise ExportError(
            "The annotation file is not the one that the manifest was made from",
            where=str(path),
            expected=", ".join(sorted(pinned)) or "a file that the manifest pins",
            found=digest,
            hint="--format coco accepts other files with the same images"
            if pinned
            else f"`curation build {manifest.header.name}@{manifest.header.version}` writes one that pins yours",
        )


def _decoded(data: bytes, path: Path) -> _File:
    refuse_repeated_keys(data, str(path), ExportError)
    try:
        return msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ExportError(
            "The annotation file is not COCO JSON", where=str(path), found=str(error)[:200]
        ) from None


def _treatments(
    classes: tuple[ClassEntry, ...], view: LabelView, categories: list[_Category]
) -> Mapping[int, Treatment]:
    by_name = {name: entry for entry in classes for name in (*entry.aliases, entry.name)}
    treatments = {}
    for category in categories:
        entry = by_name.get(category.name)
        if entry is not None:
            word = getattr(view, entry.role)
            number = UNKNOWN_ID if word == "rename:unknown" else entry.index
            treatments[category.id] = Treatment(category.name, number, word == "drop")
    return treatments


def _ranked_images(
    file: _File, source: Source, content: Content, order: Int64s, path: Path
) -> tuple[list[msgspec.Raw], dict[str, int]]:
    """Return the image records in the order of the output, and the rank of each of their ids there."""
    # A reader keeps the images of a file in file order, so the k-th record is the source's k-th image.
    if len(file.images) != len(source.images):
        raise ExportError(
            "The annotation file does not hold the images of its source",
            where=str(path),
            expected=f"{len(source.images)} images",
            found=str(len(file.images)),
        )
    decode = msgspec.json.Decoder(_ImageKey).decode
    position = {native: place for place, native in enumerate(source.images.native.tolist())}
    records = [file.images[position[native]] for native in content.images.native[order].tolist()]
    return records, {str(decode(raw).id): rank for rank, raw in enumerate(records)}


def _annotations(
    file: _File, wanted: Mapping[str, int], treatments: Mapping[int, Treatment], content: Content
) -> list[list[tuple[msgspec.Raw, Treatment]]]:
    from tqdm import tqdm

    drop_crowd = content.parts[0].view.crowd == "drop"
    decode = msgspec.json.Decoder(_AnnotationKey).decode
    records: list[list[tuple[msgspec.Raw, Treatment]]] = [[] for _ in wanted]
    for raw in tqdm(file.annotations, desc="records", unit=" annotations", disable=None):
        key = decode(raw)
        rank = wanted.get(str(key.image_id))
        if rank is None:
            continue
        treatment = treatments.get(key.category_id)
        if treatment is not None and not treatment.dropped and not (drop_crowd and key.iscrowd):
            records[rank].append((raw, treatment))
    return records
