"""Is a manifest true? Its lists, its sources, and the lists that authors published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from curation.core.canonical import sha256_of_lines
from curation.core.errors import CurationError
from curation.core.wording import short_repr
from curation.manifest.header import PartEntry, SourceEntry, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.views import FLAGS, ROLES, PartImages, count_annotated, locate_images, select_objects
from curation.sources.source import Source

Outcome = Literal["ok", "note", "failure"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Attributes
    ----------
    check : str
        What was compared: ``list``, ``images``, ``annotated_images``, ``boxes``, ``files``, ``disjoint``,
        ``rebuild``, …
    subject : str
        The part or source concerned.
    outcome : {"ok", "note", "failure"}
        A note is worth knowing and no failure: a check that could not be made, other bytes with the same content.
    """

    check: str
    subject: str
    outcome: Outcome
    expected: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """An authors' list held against a part.

    Attributes
    ----------
    shared : int
        Images in both.
    missing, extra : tuple of str
        Ids of the part that the published list lacks or repeats less often, and ids that the part lacks, sorted.
    duplicates : tuple of str
        Ids that the published list names more than once, sorted.
    surplus : tuple of str
        Those of them that it names more often than the part, whose own list may repeat ids too.
    same_order : bool
        Whether the shared lines stand in the same order in both.
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
        """Whether both name the same images, each as often."""
        return not (self.missing or self.extra or self.surplus)


def verify_lists(manifest: Manifest) -> list[Finding]:
    """Return, for each part, whether its list has the stated digest and length."""
    return [_verify_list(manifest, part) for part in manifest.header.parts]


def verify_sources(manifest: Manifest, sources: Mapping[str, Source], *, strict: bool = False) -> list[Finding]:
    """Return whether the sources hold every image, and give the counts that the header states.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names of the header's sources; what needs others is noted as unchecked.
    strict : bool
        Other bytes of a source file are a failure, not a note. So are other crowd and difficult flags in such a file:
        a rebuilt annotation file often lacks them.
    """
    findings = []
    for entry in manifest.header.sources:
        if entry.name in sources:
            findings += _verify_files(entry, sources[entry.name], strict=strict)
    for part in manifest.header.parts:
        findings += _verify_part(manifest, part, sources, strict=strict)
    return findings


def compare_with_published(ids: Sequence[str], published: Sequence[str]) -> PublishedComparison:
    """Return how a published list, in file order, differs from the ids of a part."""
    ours, theirs = Counter(ids), Counter(published)
    return PublishedComparison(
        shared=len(ours.keys() & theirs.keys()),
        missing=tuple(sorted((ours - theirs).keys())),
        extra=tuple(sorted(theirs.keys() - ours.keys())),
        duplicates=tuple(sorted(image for image, times in theirs.items() if times > 1)),
        surplus=tuple(sorted(image for image, times in theirs.items() if times > max(ours[image], 1))),
        same_order=_shared_lines(published, ours) == _shared_lines(ids, theirs),
    )


def _shared_lines(ids: Sequence[str], other: Mapping[str, int]) -> list[str]:
    """Return the lines of a list that another one has too; a line beyond the other's repeats is left out."""
    seen: Counter[str] = Counter()
    shared = []
    for image in ids:
        seen[image] += 1
        if seen[image] <= other[image]:
            shared.append(image)
    return shared


def _equal(check: str, subject: str, expected: str, found: str, *, otherwise: Outcome = "failure") -> Finding:
    return Finding(check, subject, "ok" if expected == found else otherwise, expected, found)


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
    """Return whether a source was read from the very files that a manifest was made from."""
    return sorted(file.sha256 for file in entry.files) == sorted(file.sha256 for file in source.files)


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
    stated = _counts(part.boxes, ROLES)
    if objects is None:
        yield Finding("boxes", part.name, "note" if part.boxes else "ok", stated, "not checked: a source has no boxes")
    elif not part.boxes:
        yield Finding("boxes", part.name, "note", "not stated", _counts(objects.counts(), ROLES))
    else:
        found = objects.counts()
        otherwise: Outcome = "note" if lenient else "failure"
        yield _equal("boxes", part.name, stated, _counts(found, ROLES))
        yield _equal("flags", part.name, _counts(part.boxes, FLAGS), _counts(found, FLAGS), otherwise=otherwise)


def _counts(boxes: Mapping[str, int], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {boxes[name]}" for name in names if boxes.get(name)) or "none"
