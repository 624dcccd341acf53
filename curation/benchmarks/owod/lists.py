"""Revisiting Open World Object Detection (Zhao et al., arXiv 2201.00471), and the benchmarks around it.

Classes become known task by task. In task t a detector is trained on images of the classes introduced in t, labelled
with these alone; it is finetuned on exemplars of all classes known by then, validated on known labels, and tested on
images where everything is labelled: known classes by name, all others as *unknown* (section 3).

Splits: ``reowod`` (the published lists), ``table2`` (the paper's Table 2 read literally), ``m-owodb`` (ORE) and
``s-owodb`` (OW-DETR), the cases of ``owod.toml``. Selection is that of RE-OWOD's scripts ``create_t{1..4}_imageset.py``
in the order of the annotation file, crowd regions included: the rule ``tasks``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curation.benchmarks.owod.splits import (
    OFFICIAL_IMAGES,
    PAPERS,
    PUBLISHED,
    SPLITS,
    PublishedSplit,
    exhaustive_classes,
    split_of,
)
from curation.benchmarks.parts import Part, compared, manifest_of, show_classes, source_entry, unread_entry
from curation.benchmarks.rules.task_lists import (
    TaskSplit,
    note_on_presence,
    note_on_unannotated,
    rules_in_words,
    task_parts,
    tested_parts,
    unannotated,
)
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.header import Figure, PartEntry, PartRole, SourceEntry, TaskEntry
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

_UNANNOTATED = {
    "coco-train2017": (1_021, "118,287 images of train2017 less 117,266 annotated ones"),
    "coco-val2017": (48, 'paper: "48 incompletely labeled images"; they are those of val2017 without annotation'),
}


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of all tasks of a split.

    Parameters
    ----------
    sources : mapping of str to Source
        The test source and, for all lists but the test's, the training source; for ``m-owodb`` VOC's too.
    parameters : mapping
        Parameters that ``owod.toml`` declares.

    Raises
    ------
    UsageError, ProtocolError
        The validation list is missing, or is given without being requested.
    ProtocolError, PresenceOnlyError
        See `task_parts`.
    """
    split = split_of(parameters, sources)
    is_published, is_listed = split.validation == "published", split.val_list in sources
    if is_published and split.train in sources and not is_listed:
        raise UsageError(
            "The published validation list is not given",
            where="--set val=published",
            expected=f"--source {split.val_list}=all_task_val.txt",
            hint="it is a file of the authors, drawn with an unknown seed: it cannot be drawn again",
        )
    if is_listed and not is_published:
        raise ProtocolError(
            "A validation list is given but not used",
            where=f"--source {split.val_list}",
            found=f"--set val={parameters['val']}",
            hint="--set val=published",
        )
    parts, selected, evidence = task_parts(split)
    published = PUBLISHED[parameters["split"]]
    return _manifest(
        split,
        published,
        parts,
        name=_manifest_name(split),
        sources=tuple(_source(split, slot) for slot in (*split.slots, split.val_list) if slot in sources),
        parameters={**parameters, "train_evidence": evidence},
        figures=_figures(split, published, parts, selected),
        notes=_notes_of(split, published, parts),
    )


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return a published split as a declared manifest: test lists are exact, others pinned by size, digest and rule.

    ``curation build`` completes it from the reader's own ``instances_train2017.json`` (and, for RE-OWOD, the published
    validation list), and refuses if a list or figure comes out otherwise.

    Parameters
    ----------
    sources : mapping of str to Source
        The test sources.
    parameters : mapping
        Only ``split`` has an effect; the order of the training lists is that of the published ones.
    """
    published = PUBLISHED[parameters["split"]]
    if not published.sizes:
        raise UsageError(
            "Only a published split can be declared",
            where=f"--set split={parameters['split']}",
            expected="reowod, m-owodb or s-owodb",
        )
    usual = SPLITS[parameters["split"]].validation
    fixed = {"order": "annotation", "test_order": "sorted", "val": "published" if usual == "hash" else "none"}
    parameters = {**parameters, **fixed, "repeats": "keep"}
    split = split_of(parameters, sources)
    tested = {part.entry.task: part for part in tested_parts(split)}
    parts: list[Part | PartEntry] = []
    for number, task in enumerate(split.tasks, start=1):
        rules = rules_in_words(split, task, number)
        parts += [_declared_part(split, published, task, role, rule) for role, rule in rules.items()]
        parts.append(tested[task.name])
    return _manifest(
        split,
        published,
        parts,
        name=split.file.name,
        origin="declared",
        sources=tuple(_source(split, slot) for slot in (*split.slots, split.val_list)),
        parameters={**parameters, "train_evidence": "boxes"},
        figures=_figures(split, published, list(tested.values())),
        notes=(
            "Lists of images of train2017 need instances_train2017.json: `curation build` completes and checks them.",
            *_notes_of(split, published, list(tested.values())),
        ),
    )


def _manifest(split: TaskSplit, published: PublishedSplit, parts: Sequence[Part | PartEntry], **facts: Any) -> Manifest:
    """Return the manifest of some parts; `facts` are further fields of its header."""
    return manifest_of(
        parts,
        title=published.title,
        paper=PAPERS[published.paper],
        taxonomy="OWOD",
        classes=split.classes,
        protocol="owod",
        tasks=split.tasks,
        **facts,
    )


def _manifest_name(split: TaskSplit) -> str:
    """Return the name of the manifest: that of a published benchmark only for the official files."""
    sources = split.sources
    name = split.file.name
    if split.train not in sources:
        name += "-test"
    elif sources[split.train].objects is None:
        return f"{name}-approximate"
    official = all(len(sources[slot].images) == size for slot, size in OFFICIAL_IMAGES.items() if slot in sources)
    return name if official else f"{name}-custom"


def _source(split: TaskSplit, slot: str) -> SourceEntry:
    """Return the record of a source, read or not."""
    exhaustive = exhaustive_classes(slot)
    if slot in split.sources:
        return source_entry(slot, split.sources[slot], exhaustive=exhaustive)
    file = "all_task_val.txt of the authors, " if slot == split.val_list else ""
    table = split.file.sources[slot]
    return unread_entry(slot, table.dataset, table.part, note=f"{file}from your own disk", exhaustive=exhaustive)


def _declared_part(
    split: TaskSplit, published: PublishedSplit, task: TaskEntry, role: PartRole, rule: str
) -> PartEntry:
    """Return a training part of a published split, pinned if the published lists pin it."""
    name = f"{task.name}-{role}"
    first = split.first_train if task == split.tasks[0] else ()
    return PartEntry(
        name=name,
        role=role,
        sources=first or (split.train_slots if role == "finetune" else (split.train,)),
        selection=rule,
        view=split.view(role),
        order="listed",
        images=published.sizes[name] if name in published.digests else None,
        sha256=published.digests.get(name),
        task=task.name,
    )


def _figures(
    split: TaskSplit, published: PublishedSplit, parts: Sequence[Part], selected: Mapping[str, int] | None = None
) -> tuple[Figure, ...]:
    """Return the published figures with the obtained numbers and the reasons of differences.

    Parameters
    ----------
    selected : mapping of str to int, optional
        Images that each task selects before validation images are removed; None for a declared split, whose other
        figures a build checks.
    """
    sources = split.sources
    obtained = {part.entry.name: len(part.ids) for part in parts}
    if split.first_test in sources:
        catalog = show_classes(sources[split.test], split.classes)
        added = [
            len(sources[split.first_test].images),
            *(len(catalog.showing(split.labels(task))) for task in split.tasks[1:]),
        ]
        obtained |= {f"{task.name}-test-selection": size for task, size in zip(split.tasks, added, strict=True)}
    obtained |= {f"{task}-selection": size for task, size in (selected or {}).items()}
    figures = [
        Figure(
            name=f"{name}.images",
            paper=size,
            obtained=obtained.get(name),
            place=published.place,
            explanation="to be computed from the training source"
            if name not in obtained
            else ""
            if selected is None or obtained[name] == size
            else _reason(split, name),
        )
        for name, size in published.sizes.items()
        if name in obtained or selected is None
    ]
    for slot, (size, where) in _UNANNOTATED.items():
        if slot in sources and sources[slot].objects is not None:
            reason = f"this file holds {len(sources[slot].images)} images"
            without = len(unannotated(sources[slot]))
            figures.append(compared(f"{slot}.unannotated_images", without, size, where, reason))
    return tuple(figures)


def _reason(split: TaskSplit, name: str) -> str:
    """Return the reason why a list differs in size from the published one."""
    train, official = split.sources.get(split.train), OFFICIAL_IMAGES["coco-train2017"]
    if "test" in name:
        return "another test file" + ("" if split.settings.repeats == "keep" else ", or each image once")
    if train is not None and train.objects is None:
        return "the table misses classes that are painted over by another, so that images are missing; none is extra"
    if train is not None and len(train.images) != official:
        return f"the training file holds {len(train.images)} images, not {official}"
    if name.endswith("-val"):
        return f"--set val_size={split.settings.validation}"
    return "other images are set apart for validation than the authors' own (--set val=published takes theirs)"


def _notes_of(split: TaskSplit, published: PublishedSplit, parts: Sequence[Part]) -> Iterator[str]:
    """Yield the notes for readers of the manifest."""
    yield from note_on_presence(split)
    if split.train in split.sources and not split.first_train and split.validation == "hash":
        yield (
            "The validation lists are this project's (hash rank): the authors' random ones have no stated seed. With "
            "others taken out, the training lists are others too; --set val=published takes the authors'."
        )
    yield from note_on_unannotated(split)
    if any(part.entry.repeats for part in parts):
        yield "The test list names images again, as published: an evaluation has to say what it does about that."
    if published.note:
        yield published.note
