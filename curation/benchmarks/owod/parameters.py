"""The parameters of the open-world protocol, read from ``--set KEY=VALUE``."""

from __future__ import annotations

from curation.benchmarks.owod.facts import SPLITS
from curation.benchmarks.owod.tasks import parse_tasks
from curation.benchmarks.parameters import Parameter, choice, salt, whole

CUSTOM = "custom"
VAL_RULES = {
    "split": "hash for splits with validation lists, none for the others",
    "hash": "the first val_size images of each task by hash rank, apart from those of the other tasks",
    "published": "the lines of the source val-list, equally many a task",
    "none": "no validation lists",
}


def read_tasks(text: str) -> str:
    """Return the declaration of a task file, or ``""``; what is none is a `ProtocolError`."""
    if text:
        parse_tasks(text)
    return text


PARAMETERS = (
    choice(
        "split",
        (*SPLITS, CUSTOM),
        f"which classes belong to which task: {', '.join(SPLITS)}; custom: as --tasks FILE says",
    ),
    Parameter("tasks", "", read_tasks, "the declaration of --tasks FILE; empty for the published splits"),
    choice(
        "order",
        ("sorted", "annotation"),
        "training lists. sorted: by id; annotation: by first annotation, as the published lists are",
    ),
    choice("test_order", ("sorted", "annotation"), "the same of the test lists"),
    choice(
        "crowd",
        ("select", "ignore"),
        "whether an image is selected for a crowd region alone, as in the published lists",
    ),
    choice("val", VAL_RULES),
    whole("val_size", 1000, "validation images a task under val=hash", least=1),
    whole(
        "exemplars",
        50,
        "finetuning lists: images of every class known by the task, where there are so many; 0 for no lists",
    ),
    choice(
        "repeats",
        ("drop", "keep"),
        "m-owodb's test list: an image with classes of several tasks once, or once a task as published",
    ),
    salt("owod", "salt of the hash ranks"),
)
