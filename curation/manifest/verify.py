"""Checks of a manifest against its lists, its sources, and published lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from curation.core.canonical import sha256_of_bytes, sha256_of_lines
from curation.core.columns import distinct
from curation.core.errors import CurationError
from curation.core.wording import counted, examples, short_repr
from curation.manifest.built_from import SourceContent
from curation.manifest.disjoint import Hashes, scatter
from curation.manifest.header import PartEntry, SourceEntry, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.views import (
    FLAGS,
    ROLES,
    PartImages,
    class_positions,
    count_annotated,
    locate_images,
    select_objects,
)
from curation.sources.photos import without_folders
from curation.sources.source import FEDERATED, Source

Outcome = Literal["ok", "note", "failure"]
NOT_RECORDED = "other bytes, and the build recorded no images and boxes by class"
OTHER_DETAILS = "other image sizes, areas, crowd or difficult flags, or labels of images"
"""Findings about sources that may differ from those of the build."""
_SHOWN = 10
_FEW_CELLS = 1 << 26
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)
"""Odd factors of the four coordinates of a box in its hash."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Outcome of a check.

    Attributes
    ----------
    check : str
        What was compared: ``list``, ``images``, ``annotated_images``, ``boxes``, ``files``, ``classes``, ``disjoint``,
        ``rebuild``, …
    subject : str
        The part or source concerned.
    outcome : {"ok", "note", "failure"}
        A note is not a failure: a check that could not be made, or other bytes with the same content.
    """

    check: str
    subject: str
    outcome: Outcome
    expected: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """Comparison of an authors' list with a part.

    Attributes
    ----------
    shared : int
        Images in both.
    missing, extra : tuple of str
        Ids of the part that the published list lacks or repeats less often; and ids that the part lacks; sorted.
    duplicates : tuple of str
        Ids that occur more than once in the published list, sorted.
    surplus : tuple of str
        Shared ids that occur more often in the published list than in the part, which may repeat ids too.
    same_order : bool
        Whether the shared lines have the same order in both.
    """

    __repr__ = short_repr

    shared: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    duplicates: tuple[str, ...]
    surplus: tuple[str, ...]
    same_order: bool

    @property
    def equal(self) -> bool:
        """Whether both have the same images, equally often."""
        return not (self.missing or self.extra or self.surplus)


def verify_lists(manifest: Manifest) -> list[Finding]:
    """Return, for each part, whether its list has the stated digest and length."""
    return [_verify_list(manifest, part) for part in manifest.header.parts]


def verify_sources(manifest: Manifest, sources: Mapping[str, Source], *, strict: bool = False) -> list[Finding]:
    """Return whether the sources contain every image, and have the counts in the header.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names of the header's sources; checks that need other sources are notes.
    strict : bool
        Whether other bytes of a source file are a failure instead of a note; and other crowd and difficult flags in
        such a file, which rebuilt annotation files often lack.
    """
    findings = []
    for entry in manifest.header.sources:
        if entry.name in sources:
            findings += _verify_files(entry, sources[entry.name], strict=strict)
            findings += _verify_classes(manifest, entry, sources[entry.name], strict=strict)
    for part in manifest.header.parts:
        findings += _verify_part(manifest, part, sources, strict=strict)
    return findings


def compare_with_published(ids: Sequence[str], published: Sequence[str]) -> PublishedComparison:
    """Return how a published list, in file order, differs from the ids of a part."""
    part, listed = Counter(ids), Counter(published)
    return PublishedComparison(
        shared=len(part.keys() & listed.keys()),
        missing=tuple(sorted((part - listed).keys())),
        extra=tuple(sorted(listed.keys() - part.keys())),
        duplicates=tuple(sorted(image for image, times in listed.items() if times > 1)),
        surplus=tuple(sorted(image for image, times in listed.items() if times > max(part[image], 1))),
        same_order=_shared_lines(published, part) == _shared_lines(ids, listed),
    )


def _shared_lines(ids: Sequence[str], other: Mapping[str, int]) -> list[str]:
    """Return the lines of a list that another list has too, each at most as often as there."""
    seen: Counter[str] = Counter()
    shared = []
    for image in ids:
        seen[image] += 1
        if seen[image] <= other[image]:
            shared.append(image)
    return shared


def _equal(check: str, subject: str, expected: str, obtained: str, *, otherwise: Outcome = "failure") -> Finding:
    return Finding(check, subject, "ok" if expected == obtained else otherwise, expected, obtained)


def _verify_list(manifest: Manifest, part: PartEntry) -> Finding:
    if part.name not in manifest.lists:
        return Finding("list", part.name, "note", found="no list available")
    ids = manifest.lists[part.name]
    return _equal("list", part.name, f"{part.images} ids, {part.sha256}", f"{len(ids)} ids, {sha256_of_lines(ids)}")


def _verify_files(entry: SourceEntry, source: Source, *, strict: bool) -> list[Finding]:
    same = not entry.files or same_bytes(entry, source)
    outcome: Outcome = "ok" if same else "failure" if strict else "note"
    digests = ["; ".join(f"{file.name} {file.sha256}" for file in files) for files in (entry.files, source.files)]
    namespace = _equal("namespace", entry.name, entry.namespace, source.namespace)
    return [*([namespace] if namespace.outcome != "ok" else []), Finding("files", entry.name, outcome, *digests)]


def same_bytes(entry: SourceEntry, source: Source) -> bool:
    """Return whether a source was read from the files that a manifest was made from."""
    return sorted(file.sha256 for file in entry.files) == sorted(file.sha256 for file in source.files)


def source_content(manifest: Manifest, source: Source) -> SourceContent:
    """Return the content of a source for the classes and images of a manifest."""
    listed = set[str]().union(*manifest.lists.values())
    is_listed = np.fromiter(map(listed.__contains__, source.image_ids.tolist()), np.bool_, len(source.images))
    rows = np.flatnonzero(is_listed)
    rank = np.full(len(source.images), -1, np.int64)
    rank[rows[np.argsort(source.id_ranks[rows])]] = np.arange(len(rows))
    positions, categories = source.class_pairs()
    label, image = class_positions(manifest.header.classes, source)[categories], rank[positions]
    used = np.flatnonzero((label >= 0) & (image >= 0))
    label, image, n_images = label[used].astype(np.int64), image[used], max(len(rows), 1)
    cell = label * n_images + image
    hashes, boxes = cell.view(np.uint64), np.zeros(len(manifest.header.classes), np.int64)
    if source.objects is not None:
        # Tools round coordinates differently.
        steps = np.rint(source.objects.boxes[used] * (1e6 if source.unit_boxes else 100)).astype(np.int64)
        hashes = sum((steps[:, axis].view(np.uint64) * factor for axis, factor in enumerate(_FACTORS)), hashes)
        boxes = np.bincount(label, minlength=len(boxes))
    if len(boxes) * n_images <= _FEW_CELLS:
        # A table is several times faster than a search.
        cells = np.zeros(len(boxes) * n_images, np.bool_)
        cells[cell] = True
        images = np.count_nonzero(cells.reshape(len(boxes), n_images), axis=1)
    else:
        images = np.bincount(distinct(cell) // n_images, minlength=len(boxes))
    counts = zip(manifest.header.classes, zip(images.tolist(), boxes.tolist(), strict=True), strict=True)
    classes = {entry.name: pair for entry, pair in counts if pair[0]}
    ordered = rows[np.argsort(source.id_ranks[rows])]
    names = without_folders(source.images.file_names[ordered].tolist())
    sizes = np.stack([source.images.widths, source.images.heights])[:, ordered]
    columns = [sizes.astype("<i4").tobytes()]
    if source.objects is not None:
        flags = source.objects.crowd[used] + 2 * source.objects.difficult[used].astype(np.uint64)
        areas = np.rint(np.nan_to_num(source.objects.areas[used], nan=-1.0)).astype(np.int64).view(np.uint64)
        columns.append(_checksum(scatter(hashes) ^ scatter(areas * _FACTORS[0] + flags)).encode())
    if source.federated is not None:
        image, category, kind = source.federated.T.astype(np.int64)
        label = class_positions(manifest.header.classes, source)[category]
        seen = np.flatnonzero((label >= 0) & (rank[image] >= 0))
        cell = (label[seen] * n_images + rank[image[seen]]) * len(FEDERATED) + kind[seen]
        columns.append(_checksum(scatter(cell.view(np.uint64))).encode())
    return SourceContent(
        classes,
        _checksum(scatter(hashes)),
        sha256_of_lines(names)[-16:] if all(names) else "",
        sha256_of_bytes(b"".join(columns))[-16:],
    )


def _checksum(hashes: Hashes) -> str:
    return f"{int(hashes.sum(dtype=np.uint64)):016x}"


def _verify_classes(manifest: Manifest, entry: SourceEntry, source: Source, *, strict: bool) -> Iterator[Finding]:
    """Yield whether a source with other bytes has the images and boxes by class that the build recorded."""
    name, recorded = entry.name, manifest.built_from.contents.get(entry.name) if manifest.built_from else None
    if entry.files and same_bytes(entry, source):
        return
    if recorded is None:
        # A source of a published manifest may never have been read.
        if entry.files:
            yield Finding("classes", name, "note", found=NOT_RECORDED)
        return
    content = source_content(manifest, source)
    # Boxes are not compared with a table of image and class, which has none.
    has_boxes = source.objects is not None and any(boxes for _, boxes in recorded.classes.values())
    expected, counts = (
        {key: value if has_boxes else (value[0], 0) for key, value in side.classes.items()}
        for side in (recorded, content)
    )
    differing = [key for key in expected | counts if expected.get(key) != counts.get(key)]
    texts = [
        examples([_class_counts(key, *side.get(key, (0, 0))) for key in differing], _SHOWN, "; ")
        for side in (expected, counts)
    ]
    yield Finding("classes", name, "failure" if differing else "ok", *texts)
    if not differing and has_boxes == (source.objects is not None):
        same = recorded.checksum == content.checksum
        boxes_now = "the same" if same else "as many of each class, with other (or otherwise rounded) coordinates"
        yield Finding("annotations", name, "ok" if same else "failure", "the same", boxes_now)
    if recorded.names and content.names:
        yield _equal("file_names", name, recorded.names, content.names)
    if recorded.details != content.details:
        yield Finding("details", name, "failure" if strict else "note", found=OTHER_DETAILS)


def _class_counts(name: str, images: int, boxes: int) -> str:
    return f"{name} {counted(images, 'image')}" + (f", {counted(boxes, 'box', 'boxes')}" if boxes else "")


def _verify_part(manifest: Manifest, part: PartEntry, sources: Mapping[str, Source], *, strict: bool) -> list[Finding]:
    missing = " ".join(f"--source {name}=PATH" for name in part.sources if name not in sources)
    if missing or part.name not in manifest.lists:
        reason = f"needs {missing}" if part.name in manifest.lists else "no list available"
        return [Finding("source", part.name, "note", found=f"not checked: {reason}")]
    check = "images"
    try:
        images = locate_images(manifest, part.name, sources)
        check = "boxes"
        entries = [entry for entry in manifest.header.sources if entry.name in part.sources]
        lenient = not strict and not all(same_bytes(entry, sources[entry.name]) for entry in entries)
        counts = [*_counted(manifest, part, images, lenient=lenient)]
    except CurationError as error:
        problem = f"{error.what} {error.found or ''}".strip()
        return [Finding(check, part.name, "failure", error.expected or "", problem)]
    return [Finding("images", part.name, "ok", str(part.images), str(len(images))), *counts]


def _counted(manifest: Manifest, part: PartEntry, images: PartImages, *, lenient: bool) -> Iterator[Finding]:
    classes, boxed = classes_in(manifest.header, part), all(source.objects is not None for source in images.sources)
    objects = select_objects(classes, part.view, images) if boxed else None
    n_annotated = objects.annotated_images() if objects is not None else count_annotated(images)
    if part.annotated_images is None:
        yield Finding("annotated_images", part.name, "note", "not stated", str(n_annotated))
    else:
        yield _equal("annotated_images", part.name, str(part.annotated_images), str(n_annotated))
    listed = _counts(part.boxes, ROLES)
    if objects is None:
        yield Finding("boxes", part.name, "note" if part.boxes else "ok", listed, "not checked: a source has no boxes")
    elif not part.boxes:
        yield Finding("boxes", part.name, "note", "not stated", _counts(objects.counts(), ROLES))
    else:
        obtained = objects.counts()
        otherwise: Outcome = "note" if lenient else "failure"
        yield _equal("boxes", part.name, listed, _counts(obtained, ROLES))
        yield _equal("flags", part.name, _counts(part.boxes, FLAGS), _counts(obtained, FLAGS), otherwise=otherwise)


def _counts(boxes: Mapping[str, int], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {boxes[name]}" for name in names if boxes.get(name)) or "none"
