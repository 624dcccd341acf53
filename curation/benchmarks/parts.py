"""Selection of images by rules, and the parts and source records of the manifests made from selections."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.benchmarks.rules.benchmark_file import BenchmarkFile, Expected, entries_by_role, rule_module
from curation.core.canonical import sha256_of_lines
from curation.core.columns import distinct
from curation.core.errors import ProtocolError
from curation.core.wording import did_you_mean
from curation.manifest.header import (
    SCHEMA_VERSION,
    ClassEntry,
    Figure,
    FileEntry,
    Header,
    LabelView,
    Order,
    Origin,
    Paper,
    ParameterValue,
    PartEntry,
    PartRole,
    Rule,
    SourceEntry,
    Taxonomy,
)
from curation.manifest.manifest import Manifest
from curation.manifest.views import ROLES, PartImages, class_positions, count_annotated, select_objects
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC, licence_facts, namespace_of
from curation.sources.source import Bools, Int64s, Source


@dataclass(frozen=True, slots=True)
class Selection:
    """Some images of a source, before they become a part.

    Attributes
    ----------
    slot : str
        Name of the source in the benchmark.
    source : Source
    positions : ndarray of int64
        Positions in `source.images`; their order matters in a part whose order is ``listed``.
    """

    slot: str
    source: Source
    positions: Int64s


@dataclass(frozen=True, slots=True)
class Part:
    """A part with its ids in the order of its list."""

    entry: PartEntry
    ids: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int | None]:
        """Counts that ``[expect]`` may state, as in ``"closed.images"``; None for unknown ones."""
        images, annotated, by_role = self.entry.images, self.entry.annotated_images, self.entry.boxes
        bare = None if images is None or annotated is None else images - annotated
        boxes = sum(by_role.get(role, 0) for role in ROLES)
        crowd, difficult = (by_role.get(flag, 0) for flag in ("crowd", "difficult"))
        names = ("boxes", "non_crowd_boxes", "difficult_boxes", "non_difficult_boxes")
        box_counts = (boxes, boxes - crowd, difficult, boxes - difficult) if by_role else (None,) * 4
        counts = {"images": images, "annotated_images": annotated, "unannotated_images": bare}
        return {**counts, **dict(zip(names, box_counts, strict=True))}


def make_part(
    name: str,
    role: PartRole,
    selected: Selection | Sequence[Selection],
    classes: Sequence[ClassEntry],
    *,
    view: LabelView,
    rule: str,
    subset_of: str = "",
    order: Order = "code_point",
    task: str = "",
) -> Part:
    """Return the part of the selected images, with the digest of its list and its counts under the view.

    Parameters
    ----------
    selected : Selection or sequence of Selection
        Under the order ``listed`` they follow one another, and an image selected twice is listed twice.
    classes : sequence of ClassEntry
        Classes with their roles in this part.
    """
    several = (selected,) if isinstance(selected, Selection) else tuple(selected)
    ids, images = _gathered(several, order)
    presence = any(chosen.source.objects is None for chosen in several)
    objects = None if presence else select_objects(classes, view, images)
    boxes = {} if objects is None else objects.counts()
    annotated = count_annotated(images) if objects is None else objects.annotated_images()
    entry = PartEntry(
        name=name,
        role=role,
        sources=tuple(dict.fromkeys(chosen.slot for chosen in several)),
        selection=rule,
        view=view,
        order=order,
        images=len(ids),
        annotated_images=annotated,
        boxes=boxes,
        sha256=sha256_of_lines(ids),
        subset_of=subset_of,
        task=task,
        repeats=len(ids) - len(set(ids)),
    )
    return Part(entry=entry, ids=ids)


def _gathered(selected: Sequence[Selection], order: Order) -> tuple[tuple[str, ...], PartImages]:
    """Return the ids of all selections in order, and the source and position of each image."""
    by_slot = {chosen.slot: chosen.source for chosen in selected}
    number = {slot: index for index, slot in enumerate(by_slot)}
    ids = np.concatenate([chosen.source.image_ids[chosen.positions] for chosen in selected])
    source = np.concatenate([np.full(len(chosen.positions), number[chosen.slot], np.int32) for chosen in selected])
    position = np.concatenate([chosen.positions for chosen in selected]).astype(np.int32)
    if order == "code_point":
        # Whole numbers are compared many times faster than texts.
        by_rank = selected[0].source.id_ranks[position] if len(by_slot) == 1 else ids
        rank = np.argsort(by_rank, kind="stable")
        ids, source, position = ids[rank], source[rank], position[rank]
    images = PartImages(sources=tuple(by_slot.values()), source=source, position=position)
    return tuple(ids.tolist()), images


def manifest_of(
    parts: Iterable[Part | PartEntry],
    *,
    protocol: str,
    parameters: Mapping[str, ParameterValue],
    algorithm_version: int = 1,
    origin: Origin = "regenerated",
    version: str = "1.0.0",
    **facts: Any,
) -> Manifest:
    """Return the manifest of some parts.

    Parameters
    ----------
    parts : iterable of Part or PartEntry
        An entry alone is a part whose list is not available.
    protocol, parameters, algorithm_version
        The rule that made the lists.
    **facts
        The other fields of `curation.manifest.header.Header`; lists are converted to tuples.
    """
    several = tuple(parts)
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list | Iterator) else value for key, value in facts.items()
    }
    header = Header(
        schema_version=SCHEMA_VERSION,
        version=version,
        origin=origin,
        parts=tuple(part.entry if isinstance(part, Part) else part for part in several),
        rule=Rule(protocol=protocol, algorithm_version=algorithm_version, parameters=dict(parameters)),
        **fields,
    )
    return Manifest(header, {part.entry.name: part.ids for part in several if isinstance(part, Part)})


def rule_note(rule: str, paper: Paper | None) -> str:
    """Return the note of a benchmark from the user's data: its rule, and the paper that the rule follows.

    Such a manifest names no paper in its header: no paper contains its lists.
    """
    if paper is None:
        return f"Rule {rule}; data: user."
    author = re.findall(r"author ?= ?\{([^,}]+)", paper.bibtex)[0]
    return f"Rule {rule} (after {author} et al. {paper.year}); data: user."


def all_images(source: Source) -> Int64s:
    """Return the positions of all images of a source, in file order."""
    return np.arange(len(source.images))


def source_entry(
    slot: str, source: Source, *, note: str | None = None, exhaustive: tuple[str, ...] = ()
) -> SourceEntry:
    """Return the record of a source that was read: files with digests, licence, dropped records.

    Parameters
    ----------
    note : str, optional
        By default, a remark on a source without boxes.
    """
    if note is None and source.objects is None:
        note = "presence only: which classes an image shows, no boxes" if len(source.categories) else "a list of images"
    return SourceEntry(
        name=slot,
        dataset=source.dataset,
        part=source.part,
        namespace=source.namespace,
        licence=source.licence,
        media_redistributable=source.media_redistributable,
        files=tuple(
            FileEntry(name=file.name, sha256=file.sha256, size=file.size, rows=file.rows, files=file.files)
            for file in sorted(source.files, key=lambda file: file.name)
        ),
        dropped={reason: count for reason, count in sorted(source.dropped.items()) if count},
        note=note or "",
        exhaustive=exhaustive,
    )


def unread_entry(
    slot: str, dataset: str, part: str, *, note: str = "", exhaustive: tuple[str, ...] = ()
) -> SourceEntry:
    """Return the record of a source of which no file was read."""
    facts = licence_facts(dataset)
    return SourceEntry(
        name=slot,
        dataset=dataset,
        part=part,
        namespace=namespace_of(dataset),
        licence=facts.licence,
        media_redistributable=facts.media_redistributable,
        files=(),
        note=note,
        exhaustive=exhaustive,
    )


def compared(name: str, obtained: int | None, paper: int | None, origin: str, reason: str) -> Figure:
    """Return the obtained number with that of the paper, and with the reason if the two differ."""
    explanation = "" if obtained == paper else reason
    return Figure(name=name, paper=paper, obtained=obtained, place=origin, explanation=explanation)


@dataclass(frozen=True, slots=True)
class Shown:
    """Which class each image of a source shows, in the order in which images are selected.

    Attributes
    ----------
    source : Source
    order : ndarray of int64, shape (a,)
        Positions of the annotated images, by their first annotation.
    image, label : ndarray of int64, shape (p,)
        Pairs of image position and class position, each once; on request, without classes of crowd regions alone.
    """

    source: Source
    order: Int64s
    image: Int64s
    label: Int64s

    def showing(self, labels: Sequence[int]) -> Int64s:
        """Return the images that show any of the classes, in order."""
        shows = np.zeros(len(self.source.images), np.bool_)
        shows[self.image[np.isin(self.label, labels)]] = True
        return self.order[shows[self.order]]

    def by_label(self, usable: Bools) -> dict[int, Int64s]:
        """Return the usable images of each class; classes without such images are left out. `usable` has shape (n,)."""
        is_usable = usable[self.image]
        # Numbers of 16 bits are sorted digit by digit, larger ones by comparison.
        small = self.label.max(initial=0) < 1 << 15
        image, label = self.image[is_usable], self.label[is_usable].astype(np.int16 if small else np.int32)
        counts = np.bincount(label)
        grouped = np.split(image[np.argsort(label, kind="stable")], np.cumsum(counts)[:-1])
        return {number: images for number, images in enumerate(grouped) if len(images)}


def show_classes(source: Source, classes: Sequence[ClassEntry], *, crowd: bool = True) -> Shown:
    """Return the classes that the images of a source show.

    Parameters
    ----------
    classes : sequence of ClassEntry
        A source's category belongs to the class of its name or alias.
    crowd : bool
        Whether a crowd region shows its class, as in the published lists.
    """
    image, category = source.class_pairs()
    first = np.full(len(source.images), len(image), np.int64)
    np.minimum.at(first, image, np.arange(len(image)))
    annotated = np.flatnonzero(first < len(image))
    counted = slice(None) if crowd or source.objects is None else ~source.objects.crowd
    label = class_positions(classes, source)[category[counted]].astype(np.int64)
    # Sorting whole numbers is faster than sorting pairs.
    width = len(classes) + 1
    pairs = distinct(image[counted].astype(np.int64) * width + label + 1)
    return Shown(
        source=source,
        order=annotated[np.argsort(first[annotated], kind="stable")],
        image=pairs // width,
        label=pairs % width - 1,
    )


def images_with(source: Source, names: Collection[str]) -> Bools:
    """Return whether each image has an annotation (crowd included, or presence) of a category of the source."""
    chosen = {*names}
    return images_showing(source, np.array([name in chosen for name in source.categories.names], np.bool_))


def images_with_roles(source: Source, classes: Sequence[ClassEntry], *roles: str) -> Bools:
    """Return whether each image has an annotation, crowd included, of a class in any of the roles."""
    return images_showing(source, in_roles(source, classes, *roles))


def showing(source: Source, classes: Sequence[ClassEntry], shows: Sequence[str], never: Sequence[str] = ()) -> Int64s:
    """Return the positions of the images that show a class in one of the roles `shows`, and none in `never`.

    Without a role in `shows`, images without annotations are included.
    """
    chosen = ~images_with_roles(source, classes, *never)
    return np.flatnonzero(chosen & images_with_roles(source, classes, *shows) if shows else chosen)


def in_roles(source: Source, classes: Sequence[ClassEntry], *roles: str) -> Bools:
    """Return which categories of a source have any of the roles."""
    has_role = np.array([*(entry.role in roles for entry in classes), False], np.bool_)
    return has_role[class_positions(classes, source)]


def images_showing(source: Source, categories: Bools) -> Bools:
    """Return whether each image of a source has an annotation in any of the categories."""
    image, category = source.class_pairs()
    shows = np.zeros(len(source.images), np.bool_)
    shows[image[categories[category]]] = True
    return shows


def hash_rank(ids: Sequence[str], salt: str) -> Int64s:
    """Return the positions of the ids in the order of ``sha256(salt + id)``.

    The first n positions are a selection that every programming language reproduces, that is nested as n grows, and
    whose order does not change when images are added.

    Parameters
    ----------
    ids : sequence of str
        Namespaced ids, unique.
    salt : str
        Name of the selection, so that two benchmarks do not select the same images.
    """
    digests = b"".join([hashlib.sha256((salt + image).encode()).digest() for image in ids])
    columns = np.frombuffer(digests, ">u8").reshape(-1, 4).astype(np.uint64)
    order = np.argsort(columns[:, 0], kind="stable")
    first = columns[order, 0]
    # Two digests rarely agree in 64 bits; then the other bits decide.
    return order if (first[1:] != first[:-1]).all() else np.lexsort(columns.T[::-1])


def voc_classes() -> tuple[ClassEntry, ...]:
    """Return VOC's 20 classes as known ones with ids 1 to 20, then the 60 other classes of COCO as unknown, by name."""
    others = {name for _, name, _ in COCO_CATEGORIES}.difference(COCO_NAMES_OF_VOC.values())
    aliases = {voc: (coco,) for voc, coco in COCO_NAMES_OF_VOC.items() if voc != coco}
    return entries_by_role({"known": COCO_NAMES_OF_VOC, "unknown": sorted(others)}, aliases, 1)


def used_classes(benchmark: BenchmarkFile, sources: Iterable[Source]) -> tuple[str, ...]:
    """Return the classes that images of some sources show, by the names of the benchmark file, sorted."""
    aliases = {alias: name for name, others in benchmark.classes.aliases.items() for alias in others}
    used = {source.categories.names[number] for source in sources for number in np.unique(source.class_pairs()[1])}
    return tuple(sorted({aliases.get(name, name) for name in used}))


def require_classes(
    benchmark: BenchmarkFile, classes: Sequence[str], name: str, source: Source, *, scored: bool = False
) -> None:
    """Raise `ProtocolError` for a class without a category in a source, which may have it under another name.

    Parameters
    ----------
    name : str
        Name of the source.
    scored : bool
        Whether detections of the class are scored; then it cannot be absent.
    """
    where, otherwise = "absent", "if it has none"
    if scored:
        where, otherwise = "negative", "leaves it out: without a category of the test source it cannot be scored"
    there = source.categories.names
    lacking = [
        known
        for known in classes
        if not {known, *benchmark.classes.aliases.get(known, ())} & {*there}
        and (scored or known not in benchmark.classes.absent)
    ]
    listed = ", ".join(f'"{each}"' for each in (*(() if scored else benchmark.classes.absent), *lacking))
    for known in lacking:
        raise ProtocolError(
            "A source has no category of a known class",
            where=f"source {name}: class {known}",
            expected=f"one of the categories {', '.join(there)}"[:300],
            found="no category of this name",
            hint=did_you_mean(
                known, there, f"{where} = [{listed}] in [classes] {otherwise}", f'[classes.aliases] {known} = ["{{}}"]'
            ),
        )


def require_images(made: Iterable[Part], hints: Mapping[str, str] = {}) -> None:
    """Raise `ProtocolError` for a part without images, with a hint by its name."""
    for part in made:
        if not part.ids:
            raise ProtocolError(
                f"Part {part.entry.name} has no images",
                where=", ".join(f"source {name}" for name in part.entry.sources),
                expected=part.entry.selection,
                hint=hints.get(part.entry.name),
            )


def manifest_of_file(
    benchmark_file: BenchmarkFile,
    made: Sequence[Part],
    sources: Mapping[str, Source],
    classes: Sequence[ClassEntry],
    parameters: Mapping[str, Any],
    *,
    taxonomy: Taxonomy,
    figures: Sequence[Figure] = (),
    notes: Sequence[str] = (),
    **facts: Any,
) -> Manifest:
    """Return the manifest of a benchmark file; its paper is that of the file, not that of the rule.

    Parameters
    ----------
    taxonomy : str
        Taxonomy if the file states none.
    figures : sequence of Figure
        Counts of the rule, after those that the file expects.
    notes : sequence of str
        Sentences for readers, between the note on the rule and those of the file.
    **facts
        Further fields of the header.

    Raises
    ------
    ProtocolError
        The file expects a figure that does not exist.
    """
    by_name, rule = {part.entry.name: part for part in made}, benchmark_file.rule
    return manifest_of(
        made,
        name=benchmark_file.name,
        title=benchmark_file.title or benchmark_file.name,
        paper=benchmark_file.paper,
        taxonomy=benchmark_file.taxonomy or taxonomy,
        classes=tuple(classes),
        sources=tuple(
            source_entry(
                name,
                source,
                exhaustive=tuple(entry.name for entry in classes) if benchmark_file.sources[name].exhaustive else (),
            )
            for name, source in sources.items()
        ),
        protocol=rule,
        parameters=parameters,
        figures=(*(figure_of(name, expected, by_name) for name, expected in benchmark_file.expect.items()), *figures),
        notes=(rule_note(rule, rule_module(rule).PAPER), *notes, *benchmark_file.notes),
        **facts,
    )


def figure_of(name: str, expected: Expected, parts: Mapping[str, Part]) -> Figure:
    """Return the obtained number with a figure that a benchmark file expects; raise for an unknown figure."""
    part, _, count = name.rpartition(".")
    counts = parts[part].counts if part in parts else {}
    if count not in counts:
        names = next(iter(parts.values())).counts
        raise ProtocolError(
            "The benchmark file expects an unknown figure",
            where=f"[expect] {name}"[:200],
            expected=f"PART.COUNT of {', '.join(parts)} and {', '.join(names)}"[:300],
        )
    origin, because = expected.place or "the benchmark file", expected.because or "other data"
    return compared(name, counts[count], expected.value, origin, because)
