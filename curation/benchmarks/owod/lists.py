"""Revisiting Open World Object Detection (Zhao et al., arXiv 2201.00471), and the benchmarks around it.

Classes become known task by task. In task t a detector is trained on images of the classes introduced in t, labelled
with these alone; it is finetuned on exemplars of all classes known by then, validated on known labels, and tested on
images where everything is labelled: known classes by name, all others as *unknown* (section 3).

Splits: ``reowod`` (the published lists), ``table2`` (the paper's Table 2 read literally), ``m-owodb`` (ORE),
``s-owodb`` (OW-DETR), and your own (``--tasks FILE``).

Selection is that of RE-OWOD's scripts ``create_t{1..4}_imageset.py``: go through the annotations in file order; an
image takes the place of its first annotation, and is selected if any of its annotations, crowd regions and the smallest
boxes included, is of a class of the task. An image without annotation is never selected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.owod.splits import (
    COCO_TRAIN,
    COCO_VAL,
    KNOWN_VIEW,
    OFFICIAL_IMAGES,
    PAPERS,
    TEST_VIEW,
    TRAIN_VIEW,
    VAL_LIST,
    Split,
    check_given,
    check_source,
    split_of,
)
from curation.benchmarks.owod.tasks import fitting_validation
from curation.benchmarks.parts import (
    Part,
    Selection,
    Shown,
    all_images,
    compared,
    hash_rank,
    make_part,
    manifest_of,
    rule_note,
    show_classes,
    source_entry,
)
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.header import Figure, LabelView, PartEntry, PartRole, TaskEntry, roles_at
from curation.manifest.manifest import Manifest
from curation.sources.source import Int64s, Source

ALGORITHM_VERSION = 1
_RULES = fact(__package__, "rules", dict[str, str])
_UNANNOTATED = {
    COCO_TRAIN: (1_021, "118,287 images of train2017 less 117,266 annotated ones"),
    COCO_VAL: (48, 'paper: "48 incompletely labeled images"; they are those of val2017 without annotation'),
}
_OF_SPLITS = fact(__package__, "notes", dict[str, str])
_LISTED = 100
"""Images without annotation are named one by one up to this number."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a build has to work with."""

    split: Split
    sources: Mapping[str, Source]
    parameters: Mapping[str, Any]

    def listed(self, role: PartRole = "train") -> bool:
        """Return whether the order of a part is that of the annotations."""
        return bool(self.parameters["test_order" if role == "test" else "order"] == "annotation")

    def labels(self, task: TaskEntry) -> list[int]:
        """Return the positions of the classes that a task introduces."""
        position = {entry.name: index for index, entry in enumerate(self.split.classes)}
        return [position[name] for name in task.introduced]

    def show(self, slot: str) -> Shown:
        """Return what the images of a source show, crowd regions as the parameters say."""
        crowd = self.parameters["crowd"] == "select"
        return show_classes(self.sources[slot], self.split.classes, crowd=crowd)

    def part(
        self,
        task: TaskEntry,
        role: PartRole,
        selected: Sequence[Selection],
        view: LabelView,
        rule: str,
        *,
        listed: bool | None = None,
    ) -> Part:
        """Return a part of a task, its list in the order that the parameters say unless `listed` is given."""
        return make_part(
            f"{task.name}-{role}",
            role,
            selected,
            roles_at(self.split.classes, self.split.tasks, task.name),
            view=view,
            rule=rule,
            order="listed" if (self.listed(role) if listed is None else listed) else "code_point",
            task=task.name,
        )


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
    inputs = Given(split, sources, parameters)
    for slot in split.slots:
        if slot in sources:
            check_source(split, slot, sources)
    check_given(split, sources, parameters)
    training, selected = _training(inputs) if split.train in sources else ({}, {})
    tested = _tests(inputs)
    train = sources.get(split.train)
    evidence = "none" if train is None else "boxes" if train.objects is not None else "presence"
    parts = [
        part
        for task in split.tasks
        for part in (*(training.get(task.name, ())), *(test for test in tested if test.entry.task == task.name))
    ]
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
        figures=_figures(inputs, parts, selected),
        notes=tuple(_notes_of(inputs, parts)),
        tasks=split.tasks,
    )


def _training(inputs: Given) -> tuple[dict[str, list[Part]], dict[str, int]]:
    """Return the training, finetuning and validation parts by task, and how many images each task selects."""
    split = inputs.split
    catalog = inputs.show(split.train)
    # M-OWODB's first classes are learnt from VOC: exemplars of them are there, COCO's images show some by chance.
    first = [inputs.show(slot) for slot in split.first_train]
    ranks = hash_ranks([*first, catalog], _salt(inputs, "finetune"))
    later_tasks = split.tasks[1:] if split.first_train else split.tasks
    selections = [catalog.of(inputs.labels(task)) for task in later_tasks]
    for task, selection in zip(later_tasks, selections, strict=True):
        if not len(selection):
            raise ProtocolError(
                "A task selects no training image",
                where=f"source {split.train}: task {task.name}",
                expected=f"an annotation of one of {', '.join(task.introduced)[:200]}",
                found="none",
            )
    validation = _validation(inputs, catalog, selections, later_tasks)
    held_out = np.zeros(len(catalog.source.images), np.bool_)
    for positions in validation:
        held_out[positions] = True
    trained = [selection[~held_out[selection]] for selection in selections]
    parts: dict[str, list[Part]] = {task.name: [] for task in split.tasks}
    published = split.validation_rule(inputs.parameters) == "published"
    for number, task in enumerate(split.tasks, start=1):
        rules = _rules(inputs, task, number)
        if split.first_train and number == 1:
            # M-OWODB: VOC2007 and VOC2012 trainval are taken whole.
            entire = [Selection(voc, inputs.sources[voc], all_images(inputs.sources[voc])) for voc in split.first_train]
            parts[task.name].append(inputs.part(task, "train", entire, TRAIN_VIEW, rules["train"]))
            continue
        index = later_tasks.index(task)
        selected = [Selection(split.train, catalog.source, trained[index])]
        parts[task.name].append(inputs.part(task, "train", selected, TRAIN_VIEW, rules["train"]))
        if "finetune" in rules:
            every = [*first, catalog]
            parts[task.name].append(_finetuning(inputs, task, every, trained[: index + 1], ranks, rules["finetune"]))
        if validation:
            positions = validation[index]
            rule = _val_rule(inputs, task, index + 1, len(positions))
            selected = [Selection(split.train, catalog.source, positions)]
            listed = inputs.listed() and published
            parts[task.name].append(inputs.part(task, "val", selected, KNOWN_VIEW, rule, listed=listed))
    sizes = {task.name: len(selection) for task, selection in zip(later_tasks, selections, strict=True)}
    return parts, sizes


def _validation(
    inputs: Given, catalog: Shown, selections: Sequence[Int64s], tasks: Sequence[TaskEntry]
) -> list[Int64s]:
    parameters, split = inputs.parameters, inputs.split
    rule = split.validation_rule(parameters)
    if rule == "hash":
        (rank,) = hash_ranks([catalog], _salt(inputs, "val"))
        return hash_validation(selections, rank, size=parameters["val_size"])
    if rule == "published":
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
    return []


def _finetuning(
    inputs: Given,
    task: TaskEntry,
    catalogs: Sequence[Shown],
    trained: Sequence[Int64s],
    ranks: Sequence[Int64s],
    rule: str,
) -> Part:
    """Return the finetuning part of a task: exemplars of all classes known by then, chosen from what was kept."""
    split, size = inputs.split, inputs.parameters["exemplars"]
    known = [label for earlier in split.tasks[: split.tasks.index(task) + 1] for label in inputs.labels(earlier)]
    *first, catalog = catalogs
    union = np.zeros(len(catalog.source.images), np.bool_)
    union[np.concatenate(trained)] = True
    pools = [*((pool, pool.order) for pool in first), (catalog, catalog.order[union[catalog.order]])]
    chosen, held = exemplars(pools, known, ranks, size=size)
    short = ", ".join(f"{split.classes[label].name} {n}" for label, n in sorted(held.items()) if n < size)
    slots = (*split.first_train, split.train)
    selected = [
        Selection(slot, pool.source, positions) for slot, pool, positions in zip(slots, catalogs, chosen, strict=True)
    ]
    return inputs.part(task, "finetune", selected, KNOWN_VIEW, rule + (f" Fewer: {short}." if short else ""))


def _tests(inputs: Given) -> list[Part]:
    """Return the test part of each task: one list, and each task's own view of it."""
    split = inputs.split
    source = inputs.sources[split.test]
    source.require_objects("A test part")
    if not split.first_test:
        catalog = show_classes(source, split.classes)
        rule = _RULES["test"].format(order=_order(inputs, "test"))
        selected = [Selection(split.test, source, catalog.order)]
        return [inputs.part(task, "test", selected, TEST_VIEW, rule) for task in split.tasks]
    if split.first_test not in inputs.sources:
        return []
    first = inputs.sources[split.first_test]
    catalog = inputs.show(split.test)
    keep = inputs.parameters["repeats"] == "keep"
    later = np.concatenate([catalog.of(inputs.labels(task)) for task in split.tasks[1:]])
    if not keep:
        later = later[np.sort(np.unique(later, return_index=True)[1])]
    mixed = [Selection(split.first_test, first, all_images(first)), Selection(split.test, source, later)]
    repeats = ": an image with classes of several tasks stands once for each" if keep else ", each image once"
    rule = _RULES["mixed_test"].format(
        first=split.first_test, second=split.test, repeats=repeats, order=_order(inputs, "test")
    )
    return [inputs.part(task, "test", mixed, TEST_VIEW, rule) for task in split.tasks]


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
    tested = {part.entry.task: part for part in _tests(inputs)}
    parts: list[Part | PartEntry] = []
    for number, task in enumerate(split.tasks, start=1):
        parts += split.declared_parts(task, number, published, _rules(inputs, task, number))
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
        figures=_figures(inputs, list(tested.values())),
        notes=(
            "Lists of images of train2017 need instances_train2017.json: `curation build` completes and checks them.",
            *_notes_of(inputs, list(tested.values())),
        ),
        tasks=split.tasks,
    )


def _rules(inputs: Given, task: TaskEntry, number: int) -> dict[PartRole, str]:
    """Return the rule of each training part of a task in words, before any list is available."""
    split, parameters = inputs.split, inputs.parameters
    if split.first_train and number == 1:
        return {"train": _RULES["first_train"].format(sources=" and ".join(split.first_train))}
    validation = split.validation_rule(parameters)
    rules: dict[PartRole, str] = {
        "train": _RULES["train"].format(
            task=task.name,
            script="" if split.declared else f" (create_t{number}_imageset.py)",
            crowd=", crowd regions included" if parameters["crowd"] == "select" else ", crowd regions apart",
            less=", less the validation images of all tasks" if validation != "none" else "",
            order=_order(inputs),
        )
    }
    if number > 1 and parameters["exemplars"]:
        salt = _salt(inputs, "finetune")
        rules["finetune"] = _RULES["finetune"].format(size=parameters["exemplars"], task=task.name, salt=salt)
    if validation != "none":
        rules["val"] = _val_rule(inputs, task, number, 1000)
    return rules


def _val_rule(inputs: Given, task: TaskEntry, number: int, size: int) -> str:
    first, last = (number - 1) * size + 1, number * size
    kind = inputs.split.validation_rule(inputs.parameters)
    rule = _RULES["val_listed" if inputs.split.declared and kind == "published" else f"val_{kind}"]
    return rule.format(size=size, task=task.name, salt=_salt(inputs, "val"), first=first, last=last)


def _salt(inputs: Given, purpose: str) -> str:
    return f"{inputs.parameters['salt']}/{purpose}/"


def _order(inputs: Given, role: PartRole = "train") -> str:
    return "in the order of their first annotation" if inputs.listed(role) else "sorted by id"


def _figures(inputs: Given, parts: Sequence[Part], selected: Mapping[str, int] | None = None) -> tuple[Figure, ...]:
    """Return the published figures with what was obtained and why it differs.

    Parameters
    ----------
    selected : mapping of str to int, optional
        Images that each task selects before validation images are taken out; None for a declared split, whose other
        figures are met on completion.
    """
    split, sources = inputs.split, inputs.sources
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
            without = len(_unannotated(sources[slot]))
            figures.append(compared(f"{slot}.unannotated_images", without, size, where, reason))
    return tuple(figures)


def _unannotated(source: Source) -> Int64s:
    """Return the images without annotation."""
    return np.flatnonzero(np.bincount(source.class_pairs()[0], minlength=len(source.images)) == 0)


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


def _notes_of(inputs: Given, parts: Sequence[Part]) -> Iterator[str]:
    """Yield what a reader of the manifest must know."""
    split, train = inputs.split, inputs.sources.get(inputs.split.train)
    if train is not None and train.objects is None:
        yield (
            "APPROXIMATE: the training lists come from a table of image and class, not from the annotations. An image "
            "is missing where the table misses its class."
        )
    if split.declared is not None:
        yield rule_note("tasks", PAPERS["reowod"])
    elif train is not None and not split.first_train and split.validation_rule(inputs.parameters) == "hash":
        yield (
            "The validation lists are this project's (hash rank): the authors' random ones have no stated seed. With "
            "others taken out, the training lists are others too; --set val=published takes the authors'."
        )
    test = inputs.sources[split.test]
    without = _unannotated(test)
    if not split.first_test and 0 < len(without) <= _LISTED:
        ids = ", ".join(sorted(test.images.native[without].tolist()))
        yield (
            f"{len(without)} images of the test source carry no annotation and are left out, so that false detections "
            f"on them go unpunished: {ids}."
        )
    if any(part.entry.repeats for part in parts):
        yield "The test list names images again, as published: an evaluation has to say what it does about that."
    yield from (text for name, text in _OF_SPLITS.items() if name == split.name)


def hash_ranks(sources: Sequence[Shown], salt: str) -> list[Int64s]:
    """Return, for each source, the place of its annotated images in the order of ``sha256(salt + id)`` of them all.

    One array a source, shape (n,); images without annotation come last.
    """
    ids = np.concatenate([catalog.source.image_ids[catalog.order] for catalog in sources]).tolist()
    positions = np.empty(len(ids), np.int64)
    positions[hash_rank(ids, salt)] = np.arange(len(ids))
    ranks = []
    ends = np.cumsum([len(catalog.order) for catalog in sources])[:-1]
    for catalog, mine in zip(sources, np.split(positions, ends), strict=True):
        rank = np.full(len(catalog.source.images), len(ids), np.int64)
        rank[catalog.order] = mine
        ranks.append(rank)
    return ranks


def hash_validation(selections: Sequence[Int64s], rank: Int64s, *, size: int) -> list[Int64s]:
    """Return a validation list a task: the first `size` of its selection by hash rank that no earlier task has taken.

    The authors drew theirs at random, without a stated seed and with a step that keeps the four apart which they do
    not publish. Ours are apart by construction and the same everywhere.

    Raises
    ------
    ProtocolError
        A task has fewer images left than asked for.
    """
    taken = np.zeros(len(rank), np.bool_)
    chosen = []
    fits = fitting_validation([len(selection) for selection in selections])
    for number, selection in enumerate(selections, start=1):
        left = selection[~taken[selection]]
        if len(left) < size:
            raise ProtocolError(
                "A task has too few images for its validation list",
                where=f"task {number}: --set val_size={size}",
                expected=f"at most {len(left)}",
                found=str(size),
                hint=(f"--set val_size={fits}, or " if fits else "") + "--set val=none; "
                f"in a task file validation = {fits}",
            )
        ranked = left[np.argsort(rank[left], kind="stable")]
        chosen.append(ranked[:size])
        taken[ranked[:size]] = True
    return chosen


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


def exemplars(
    pools: Sequence[tuple[Shown, Int64s]], labels: Sequence[int], ranks: Sequence[Int64s], *, size: int
) -> tuple[list[Int64s], dict[int, int]]:
    """Return images that show every class at least `size` times where the images allow it, and how many each has.

    Classes are served from the rarest to the most common; each takes, by hash rank, as many further images as it still
    lacks, so that an image which shows several rare classes serves them all. ORE's sampler (``balanced_ft.py``) may
    drop what it took; RE-OWOD's lists lost their balance when they were filled up with images of task 1.

    Parameters
    ----------
    pools : sequence of (Shown, ndarray of int64)
        For each source what its images show, and the positions of those to choose from.
    ranks : sequence of ndarray of int64
        For each source, see `hash_ranks`.

    Returns
    -------
    list of ndarray of int64
        Positions by source, in the order of its pool.
    dict of int to int
        Images among them by label.
    """
    rank = np.concatenate([ranks_of[images] for ranks_of, (_, images) in zip(ranks, pools, strict=True)])
    by_label = _places_by_label(pools, labels)
    taken = np.zeros(len(rank), np.bool_)
    for label in sorted(labels, key=lambda candidate: (len(by_label[candidate]), candidate)):
        candidates = by_label[label]
        lacking = size - int(taken[candidates].sum())
        if lacking > 0:
            free = candidates[~taken[candidates]]
            # Ranks are distinct, and a set is wanted: sorting all of them would be in vain.
            lowest = np.argpartition(rank[free], lacking - 1)[:lacking] if lacking < len(free) else slice(None)
            taken[free[lowest]] = True
    ends = np.cumsum([len(images) for _, images in pools])[:-1]
    chosen = [images[mine] for (_, images), mine in zip(pools, np.split(taken, ends), strict=True)]
    return chosen, {label: int(taken[by_label[label]].sum()) for label in labels}


def _places_by_label(pools: Sequence[tuple[Shown, Int64s]], labels: Sequence[int]) -> dict[int, Int64s]:
    """Return for each label the places, in the pools one after the other, of the images that show it."""
    by_label: dict[int, list[Int64s]] = {label: [np.empty(0, np.int64)] for label in labels}
    start = 0
    for catalog, images in pools:
        number = np.full(len(catalog.source.images), -1, np.int64)
        number[images] = np.arange(start, start + len(images))
        for label, shows in catalog.by_label(number >= 0).items():
            if label in by_label:
                by_label[label].append(number[shows])
        start += len(images)
    return {label: np.concatenate(several) for label, several in by_label.items()}
