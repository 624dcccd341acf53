"""Revisiting Open World Object Detection (Zhao et al., arXiv 2201.00471), and the benchmarks around it.

Classes become known task by task. In task t a detector is trained on images of the classes introduced in t, labelled
with these alone; it is finetuned on exemplars of all classes known by then, validated on known labels, and tested on
images where everything is labelled: known classes by name, all others as *unknown* (section 3).

Splits: ``reowod`` (the published lists), ``table2`` (the paper's Table 2 read literally), ``m-owodb`` (ORE),
``s-owodb`` (OW-DETR), and your own (``--tasks FILE``).

Selection is that of RE-OWOD's scripts ``create_t{1..4}_imageset.py``, which the rule ``tasks`` takes over
(`curation.benchmarks.rules.task_lists`): in the order of the annotation file, crowd regions included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.owod.splits import (
    COCO_TRAIN,
    COCO_VAL,
    OFFICIAL_IMAGES,
    PAPERS,
    VAL_LIST,
    Split,
    check_given,
    split_of,
)
from curation.benchmarks.parts import Part, Shown, compared, manifest_of, rule_note, show_classes, source_entry
from curation.benchmarks.rules.task_lists import (
    Given,
    note_on_presence,
    note_on_unannotated,
    rules_in_words,
    task_parts,
    tested_parts,
    unannotated,
)
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.header import Figure, PartEntry, TaskEntry
from curation.manifest.manifest import Manifest
from curation.sources.source import Int64s, Source

ALGORITHM_VERSION = 1
_UNANNOTATED = {
    COCO_TRAIN: (1_021, "118,287 images of train2017 less 117,266 annotated ones"),
    COCO_VAL: (48, 'paper: "48 incompletely labeled images"; they are those of val2017 without annotation'),
}
_OF_SPLITS = fact(__package__, "notes", dict[str, str])


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of all tasks of a split.

    Parameters
    ----------
    sources : mapping of str to Source
        The test source and, for all lists but the test's, the training source; for ``m-owodb`` VOC's too.
    parameters : mapping
        As ``owod.toml`` declares them.

    Raises
    ------
    ProtocolError
        A source shows a class that the benchmark does not name, or none that it does; two sources share ids; a
        validation list is unavailable.
    PresenceOnlyError
        The test source has no boxes.
    """
    split = split_of(parameters)
    inputs = Given(split, sources, split.resolved(parameters))
    check_given(split, sources, parameters)
    parts, selected, evidence = task_parts(inputs, _published_validation)
    return manifest_of(
        parts,
        name=split.manifest_name(sources),
        title=split.title,
        paper=split.paper,
        taxonomy="OWOD",
        classes=split.classes,
        sources=tuple(
            source_entry(slot, sources[slot], exhaustive=split.exhaustive(slot))
            for slot in (*split.slots, VAL_LIST)
            if slot in sources
        ),
        protocol="owod",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, "train_evidence": evidence},
        figures=_figures(split, inputs, parts, selected),
        notes=tuple(_notes_of(split, inputs, parts)),
        tasks=split.tasks,
    )


def _published_validation(
    inputs: Given, catalog: Shown, selections: Sequence[Int64s], tasks: Sequence[TaskEntry]
) -> list[Int64s]:
    """Return the validation lists of the authors' own file."""
    if (listed := inputs.sources.get(VAL_LIST)) is None:
        raise UsageError(
            "The published validation list is not given",
            where="--set val=published",
            expected=f"--source {VAL_LIST}=all_task_val.txt",
            hint="it is the authors' own file, drawn without a stated seed: nobody can make it again",
        )
    segments = listed_validation(listed, catalog.source, len(selections))
    # A table of presence misses classes: of it the images cannot be asked for.
    if catalog.source.objects is not None:
        check_segments(listed, segments, selections, [task.name for task in tasks], catalog.source)
    return segments


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return a published split as a declared manifest: test lists exact, all others pinned by size, digest and rule.

    ``curation build`` completes it from the reader's own ``instances_train2017.json`` (and, for RE-OWOD, the published
    validation list), and refuses if a list or figure comes out otherwise.

    Parameters
    ----------
    sources : mapping of str to Source
        The test sources.
    parameters : mapping
        Their ``split`` counts; the order of the training lists is that of the published ones.
    """
    split = split_of(parameters)
    if not split.sizes:
        raise UsageError(
            "Only a published split can be declared",
            where=f"--set split={parameters['split']}",
            expected="reowod, m-owodb or s-owodb",
        )
    published = {
        **parameters,
        "order": "annotation",
        "test_order": "sorted",
        "val": "published" if split.has_validation else "none",
        "repeats": "keep",
    }
    inputs = Given(split, sources, published)
    tested = {part.entry.task: part for part in tested_parts(inputs)}
    parts: list[Part | PartEntry] = []
    for number, task in enumerate(split.tasks, start=1):
        parts += split.declared_parts(task, number, rules_in_words(inputs, task, number))
        parts.append(tested[task.name])
    return manifest_of(
        parts,
        name=f"owod/{split.name}",
        title=split.title,
        paper=split.paper,
        taxonomy="OWOD",
        origin="declared",
        classes=split.classes,
        sources=tuple(split.declared_source(slot, sources) for slot in (*split.slots, VAL_LIST)),
        protocol="owod",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**published, "train_evidence": "boxes"},
        figures=_figures(split, inputs, list(tested.values())),
        notes=(
            "Lists of images of train2017 need instances_train2017.json: `curation build` completes and checks them.",
            *_notes_of(split, inputs, list(tested.values())),
        ),
        tasks=split.tasks,
    )


def _figures(
    split: Split, inputs: Given, parts: Sequence[Part], selected: Mapping[str, int] | None = None
) -> tuple[Figure, ...]:
    """Return the published figures with what was obtained and why it differs.

    Parameters
    ----------
    selected : mapping of str to int, optional
        Images that each task selects before validation images are taken out; None for a declared split, whose other
        figures are met on completion.
    """
    sources = inputs.sources
    obtained = {part.entry.name: len(part.ids) for part in parts}
    if split.first_test in sources:
        catalog = show_classes(sources[split.test], split.classes)
        added = [
            len(sources[split.first_test].images),
            *(len(catalog.of(inputs.labels(task))) for task in split.tasks[1:]),
        ]
        obtained |= {f"{task.name}-test-selection": size for task, size in zip(split.tasks, added, strict=True)}
    obtained |= {f"{task}-selection": size for task, size in (selected or {}).items()}
    figures = [
        Figure(
            name=f"{name}.images",
            paper=size,
            obtained=obtained.get(name),
            place=split.place,
            explanation="to be computed from the training source"
            if name not in obtained
            else ""
            if selected is None or obtained[name] == size
            else _reason(inputs, name),
        )
        for name, size in split.sizes.items()
        if name in obtained or selected is None
    ]
    for slot, (size, where) in _UNANNOTATED.items():
        if slot in sources and sources[slot].objects is not None:
            reason = f"this file holds {len(sources[slot].images)} images"
            without = len(unannotated(sources[slot]))
            figures.append(compared(f"{slot}.unannotated_images", without, size, where, reason))
    return tuple(figures)


def _reason(inputs: Given, name: str) -> str:
    """Return why a list has another size than the published one."""
    parameters, train = inputs.parameters, inputs.sources.get(inputs.split.train)
    if "test" in name:
        return "another test file" if parameters["repeats"] == "keep" else "another test file, or each image once"
    if train is not None and train.objects is None:
        return "the table misses classes that are painted over by another, so that images are missing; none is extra"
    if train is not None and len(train.images) != OFFICIAL_IMAGES[COCO_TRAIN]:
        return f"the training file holds {len(train.images)} images, not {OFFICIAL_IMAGES[COCO_TRAIN]}"
    if name.endswith("-val"):
        return f"--set val_size={parameters['val_size']}"
    return "other images are set apart for validation than the authors' own (--set val=published takes theirs)"


def _notes_of(split: Split, inputs: Given, parts: Sequence[Part]) -> Iterator[str]:
    """Yield what a reader of the manifest must know."""
    yield from note_on_presence(inputs)
    if split.stated is not None:
        yield rule_note("tasks", PAPERS["reowod"])
    elif split.train in inputs.sources and not split.first_train and inputs.parameters["val"] == "hash":
        yield (
            "The validation lists are this project's (hash rank): the authors' random ones have no stated seed. With "
            "others taken out, the training lists are others too; --set val=published takes the authors'."
        )
    yield from note_on_unannotated(inputs)
    if any(part.entry.repeats for part in parts):
        yield "The test list names images again, as published: an evaluation has to say what it does about that."
    yield from (text for name, text in _OF_SPLITS.items() if name == split.name)


def listed_validation(listed: Source, source: Source, n_tasks: int) -> list[Int64s]:
    """Return the validation lists of a published file: equally many consecutive lines for each task.

    Raises
    ------
    ProtocolError
        An image of the list is not in the source, or the lines cannot be shared out evenly.
    """
    positions_of = {native: position for position, native in enumerate(source.images.native.tolist())}
    natives = listed.images.native.tolist()
    missing = [native for native in natives if native not in positions_of]
    if missing or not natives or len(natives) % n_tasks:
        raise ProtocolError(
            "The validation list does not belong to this training source"
            if missing
            else "The validation list cannot be shared out among the tasks",
            where=listed.files[0].name,
            expected=f"images of {source.files[0].name}" if missing else f"a multiple of {n_tasks} lines",
            found=f"{len(missing)} others, the first {missing[0]}" if missing else f"{len(natives)} lines",
        )
    positions = np.array([positions_of[native] for native in natives], np.int64)
    return np.split(positions, n_tasks)


def check_segments(
    listed: Source, segments: Sequence[Int64s], selections: Sequence[Int64s], names: Sequence[str], source: Source
) -> None:
    """Raise `ProtocolError` unless each task's lines of a validation list lie in its selection.

    A list in another order of tasks, or of another benchmark, has the right images and wrong lines.
    """
    for segment, selection, name in zip(segments, selections, names, strict=True):
        outside = np.flatnonzero(~np.isin(segment, selection))
        if len(outside):
            first = source.images.native[segment[outside[0]]]
            raise ProtocolError(
                f"{len(outside)} images of the validation list show no class of their task",
                where=f"{listed.files[0].name}: the lines of task {name}",
                expected=f"images with an annotation of a class that {name} introduces",
                found=f"{first} and others" if len(outside) > 1 else str(first),
                hint="is the list of another split, or does --set crowd=ignore leave its images out?",
            )
