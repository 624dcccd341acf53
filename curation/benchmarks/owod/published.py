"""RE-OWOD, M-OWODB and S-OWODB as their authors published them: which file is which part, and what it is for.

Each recipe is a draft header: `curation.manifest.importing.pin_lists` fills in digests and counts from the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from curation.benchmarks.owod.facts import (
    COCO_CLASSES,
    KNOWN_VIEW,
    M_OWODB_TASKS,
    ORE_PAPER,
    OW_DETR_PAPER,
    RE_OWOD_PAPER,
    S_OWODB_TASKS,
    TEST_VIEW,
    TRAIN_VIEW,
    VOC_CLASSES,
    class_entries,
)
from curation.benchmarks.parts import unread_entry
from curation.manifest.header import (
    SCHEMA_VERSION,
    Figure,
    Header,
    LabelView,
    Paper,
    PartEntry,
    PartRole,
    Rule,
    SourceEntry,
    TaskEntry,
)
from curation.manifest.importing import LISTS, PROTOCOL
from curation.sources.datasets import family

COCO_TRAIN, COCO_VAL = "coco-train2017", "coco-val2017"
VOC_TRAINING, VOC_TEST = ("voc2007-trainval", "voc2012-trainval"), "voc2007-test"

Listed = tuple[PartEntry, str]
"""A part with the file, or ``FILE:FIRST-LAST``, that it is."""

_VAL_FILE = "all_task_val.txt:{first}-{last}"
_TRAIN_RULE = (
    "Images of COCO train2017 with an annotation of a class of the task, in the order of their first "
    "annotation{but}."
)
_TEST_RULE = (
    "Images of COCO val2017 with any annotation: the 48 without one are left out. One list for all tasks."
)
_VAL_IN_CODE = (
    "The authors' code labels validation as it labels test, unknown objects included; the label view here is "
    "that one."
)
_WR1_RULE = (
    "VOC2007 test and 4,951 images of COCO train2017 without a class of task 1, 235 of them without any "
    "annotation: the mixture at wilderness ratio 1."
)


def reowod() -> Header:
    """Return the draft of RE-OWOD's lists (paper, Table 2; the repository's folder datasets/Main)."""
    coco = (COCO_TRAIN,)
    train = _TRAIN_RULE.format(but=", less all four validation segments")
    finetune = (
        "What ORE's list of this name shares with this benchmark's training lists, filled up to ORE's length "
        "with random images of t1-train: no longer balanced over the classes."
    )
    val = (
        "1,000 images drawn at random, without a stated seed, from the task's selection and apart from those of "
        "the other tasks. The labels are the paper's, known classes alone; the authors' code relabels "
        "validation as it does test."
    )
    return _draft(
        name="owod/reowod-published",
        title="RE-OWOD: the lists of its authors",
        paper=RE_OWOD_PAPER,
        tasks=M_OWODB_TASKS,
        listed=[
            *_listed("t{task}-train", "train", "t{task}_train.txt", TRAIN_VIEW, coco, train),
            *_listed(
                "t{task}-finetune", "finetune", "t{task}_ft.txt", KNOWN_VIEW, coco, finetune, of=(2, 3, 4)
            ),
            *_listed("t{task}-val", "val", _VAL_FILE, KNOWN_VIEW, coco, val),
            *_listed("t{task}-test", "test", "all_task_test.txt", TEST_VIEW, (COCO_VAL,), _TEST_RULE),
        ],
        figures=[
            *_sizes("train", (91_903, 43_684, 37_677, 38_446), "Table 2"),
            *_sizes("val", (1000,) * 4, "Table 2"),
            *_sizes("test", (4952,) * 4, "Table 2"),
        ],
        lists=_lists(
            "reowod_lists", "datasets/Main", "github.com/RE-OWOD/RE-OWOD (53d882f), folder datasets/Main"
        ),
        notes=(
            "The classes of the tasks are ORE's, not those of the row 'semantic split' of Table 2: the training "
            "lists of tasks 2 to 4 are ORE's less the validation images, in the same order.",
            "The folders OWOD_imagesets and coco17_voc_style of the same repository hold ORE's lists under the "
            "same file names. t1_train_with_unk.txt equals t1_train.txt and is no part.",
        ),
    )


def m_owodb() -> Header:
    """Return the draft of ORE's lists, called M-OWODB since OW-DETR (ORE paper, Table 1)."""
    coco, mixed = (COCO_TRAIN,), (*VOC_TRAINING, COCO_TRAIN)
    train = _TRAIN_RULE.format(but="")
    finetune = (
        "Exemplars of the classes known by the task, drawn by balanced_ft.py without a seed: at most 50 images a "
        "class."
    )
    val = (
        "1,000 images drawn at random from t{task}-train, where they stay: every one is a training image too. "
        + _VAL_IN_CODE
    )
    test = (
        "VOC2007 test, then the images of COCO val2017 with a class of task 2, of task 3, of task 4: an image "
        "with classes of several tasks is named once for each. One list for all tasks."
    )
    voc_train, voc_test = "VOC2007 trainval, then VOC2012 trainval.", "VOC2007 test."
    return _draft(
        name="owod/m-owodb-published",
        title="ORE (M-OWODB): the lists of its authors",
        paper=ORE_PAPER,
        tasks=M_OWODB_TASKS,
        listed=[
            *_listed("t1-train", "train", "t1_train.txt", TRAIN_VIEW, VOC_TRAINING, voc_train, of=(1,)),
            *_listed("t{task}-train", "train", "t{task}_train.txt", TRAIN_VIEW, coco, train, of=(2, 3, 4)),
            *_listed(
                "t{task}-finetune", "finetune", "t{task}_ft.txt", KNOWN_VIEW, mixed, finetune, of=(2, 3, 4)
            ),
            *_listed(
                "t{task}-val", "val", _VAL_FILE, TEST_VIEW, VOC_TRAINING, val, of=(1,), inside="t1-train"
            ),
            *_listed(
                "t{task}-val", "val", _VAL_FILE, TEST_VIEW, coco, val, of=(2, 3, 4), inside="t{task}-train"
            ),
            *_listed("t{task}-test", "test", "all_task_test.txt", TEST_VIEW, (VOC_TEST, COCO_VAL), test),
            *_with_unknown(1, "500 random images of each of tasks 2, 3 and 4", mixed),
            *_with_unknown(2, "1,000 random images of each of tasks 3 and 4", coco),
            *_with_unknown(3, "2,000 random images of task 4", coco),
            *_listed(
                "t1-known-test",
                "test",
                "t1_known_test.txt",
                TEST_VIEW,
                (VOC_TEST,),
                voc_test,
                of=(1,),
                inside="t1-test",
            ),
            *_listed("wr1", "wilderness", "wr1.txt", TEST_VIEW, (VOC_TEST, COCO_TRAIN), _WR1_RULE, of=(1,)),
        ],
        figures=_m_owodb_figures(),
        lists=_lists(
            "ore_lists",
            "M-OWODB",
            "github.com/JosephKJ/OWOD; github.com/RE-OWOD/RE-OWOD holds copies in datasets/OWOD_imagesets",
        ),
        notes=(
            "The test images of VOC2007 are annotated for 20 of the 80 classes: their unknown objects are missing from "
            "the ground truth.",
            "The with-unk lists are training lists and images of later tasks. The energy model is fitted on them "
            "through a dataset whose name holds 'val', so that objects of later tasks are labelled unknown: the "
            "label view here is that one.",
        ),
    )


def s_owodb() -> Header:
    """Return the draft of S-OWODB's lists (OW-DETR)."""
    coco, train = (COCO_TRAIN,), _TRAIN_RULE.format(but="")
    finetune = "Exemplars of the classes known by the task, drawn without a stated seed."
    return _draft(
        name="owod/s-owodb-published",
        title="S-OWODB (OW-DETR): the lists of its authors",
        paper=OW_DETR_PAPER,
        tasks=S_OWODB_TASKS,
        listed=[
            *_listed("t{task}-train", "train", "t{task}_train.txt", TRAIN_VIEW, coco, train),
            *_listed(
                "t{task}-finetune", "finetune", "t{task}_ft.txt", KNOWN_VIEW, coco, finetune, of=(2, 3, 4)
            ),
            *_listed("t{task}-test", "test", "test.txt", TEST_VIEW, (COCO_VAL,), _TEST_RULE),
        ],
        figures=_sizes("train", (89_490, 55_870, 39_402, 38_903), "table of the benchmark's composition"),
        lists=_lists(
            "ow_detr_lists", "S-OWODB", "github.com/akshitac8/OW-DETR (3515ff8), the lists of S-OWODB"
        ),
        notes=("There is no validation list.",),
    )


RECIPES: dict[str, Callable[[], Header]] = {
    "owod/reowod-published": reowod,
    "owod/m-owodb-published": m_owodb,
    "owod/s-owodb-published": s_owodb,
}
"""Drafts by the name of the manifest that they make."""


def _listed(
    name: str,
    role: PartRole,
    file: str,
    view: LabelView,
    sources: tuple[str, ...],
    selection: str,
    *,
    of: Sequence[int] = (1, 2, 3, 4),
    inside: str = "",
) -> list[Listed]:
    """Return one part a task; ``{task}`` stands for the task in its texts, ``{first}-{last}`` for its 1,000 lines."""
    listed = []
    for task in of:
        entry = PartEntry(
            name=name.format(task=task),
            role=role,
            sources=sources,
            selection=selection.format(task=task),
            view=view,
            order="listed",
            subset_of=inside.format(task=task),
            task=f"t{task}",
        )
        listed.append((entry, file.format(task=task, first=1000 * task - 999, last=1000 * task)))
    return listed


def _with_unknown(task: int, drawn: str, sources: tuple[str, ...]) -> list[Listed]:
    selection = f"t{task}-train and {drawn}, to fit the energy model on. {_VAL_IN_CODE}"
    file = "t{task}_train_with_unk.txt"
    return _listed("t{task}-train-with-unk", "train", file, TEST_VIEW, sources, selection, of=(task,))


def _sizes(kind: str, sizes: Sequence[int], place: str) -> list[Figure]:
    return [
        Figure(name=f"t{task}-{kind}.images", paper=size, obtained=None, place=place)
        for task, size in enumerate(sizes, start=1)
    ]


def _m_owodb_figures() -> list[Figure]:
    distinct = Figure(
        name="t1-test.distinct_images",
        paper=None,
        obtained=None,
        place="not stated",
        explanation="943 images stand twice in the list and 92 three times",
    )
    return [
        *_sizes("train", (16_551, 45_520, 39_402, 40_260), "Table 1"),
        *_sizes("test", (10_246,) * 4, "Table 1: 4,952 + 1,914 + 1,642 + 1,738"),
        distinct,
        Figure(name="t1-known-test.images", paper=4952, obtained=None, place="Table 1"),
    ]


def _draft(
    *,
    name: str,
    title: str,
    paper: Paper,
    tasks: tuple[TaskEntry, ...],
    listed: Sequence[Listed],
    figures: Sequence[Figure],
    lists: SourceEntry,
    notes: tuple[str, ...],
) -> Header:
    slots = dict.fromkeys(slot for part, _ in listed for slot in part.sources)
    return Header(
        schema_version=SCHEMA_VERSION,
        name=name,
        version="1.0.0",
        title=title,
        paper=paper,
        taxonomy="OWOD",
        origin="as_published",
        classes=class_entries(tasks),
        parts=tuple(part for part, _ in listed),
        sources=(lists, *(_images(slot) for slot in slots)),
        rule=Rule(
            protocol=PROTOCOL, algorithm_version=1, parameters={part.name: file for part, file in listed}
        ),
        figures=tuple(figures),
        notes=notes,
        tasks=tasks,
    )


def _lists(dataset: str, part: str, note: str) -> SourceEntry:
    return unread_entry(LISTS, dataset, part, note=note)


def _images(slot: str) -> SourceEntry:
    dataset, _, part = slot.partition("-")
    return unread_entry(
        slot, dataset, part, exhaustive=COCO_CLASSES if family(dataset) == "coco" else VOC_CLASSES
    )
