"""The parameters of the open-world protocol, read from ``--set KEY=VALUE``."""

from __future__ import annotations

from collections.abc import Callable

from curation.benchmarks.elephant.parameters import read_salt
from curation.benchmarks.owod.facts import SPLITS
from curation.benchmarks.owod.tasks import MOST_IMAGES, parse_tasks
from curation.benchmarks.protocol import Parameter
from curation.errors import ProtocolError

CUSTOM = "custom"
VAL_RULES = {
    "split": "hash for splits with validation lists, none for the others",
    "hash": "the first val_size images of each task by hash rank, apart from those of the other tasks",
    "published": "the lines of the source val-list, equally many a task",
    "none": "no validation lists",
}


def one_of(name: str, choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader that accepts one of some words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ProtocolError(
                f"The value of {name} is none of those there are",
                where=f"--set {name}",
                expected=", ".join(choices),
                found=repr(text[:40]),
            )
        return text

    return read


def count(name: str, least: int = 0) -> Callable[[str], int]:
    """Return a reader of whole numbers from the least one to a million."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 7 and least <= int(text) <= MOST_IMAGES):
            raise ProtocolError(
                f"The value of {name} cannot be used",
                where=f"--set {name}",
                expected=f"a whole number from {least} to {MOST_IMAGES}",
                found=repr(text[:40]),
            )
        return int(text)

    return read


def read_tasks(text: str) -> str:
    """Return the declaration of a task file, or ``""``; what is none is a `ProtocolError`."""
    if text:
        parse_tasks(text)
    return text


PARAMETERS = (
    Parameter(
        "split",
        "reowod",
        one_of("split", (*SPLITS, CUSTOM)),
        f"which classes belong to which task: {', '.join(SPLITS)}; custom: as --tasks FILE says",
    ),
    Parameter("tasks", "", read_tasks, "the declaration of --tasks FILE; empty for the published splits"),
    Parameter(
        "order",
        "sorted",
        one_of("order", ("sorted", "annotation")),
        "training lists. sorted: by id; annotation: by first annotation, as the published lists are",
    ),
    Parameter(
        "test_order",
        "sorted",
        one_of("test_order", ("sorted", "annotation")),
        "the same of the test lists",
    ),
    Parameter(
        "crowd",
        "select",
        one_of("crowd", ("select", "ignore")),
        "whether an image is selected for a crowd region alone, as in the published lists",
    ),
    Parameter(
        "val",
        "split",
        one_of("val", tuple(VAL_RULES)),
        "; ".join(f"{name}: {meaning}" for name, meaning in VAL_RULES.items()),
    ),
    Parameter("val_size", "1000", count("val_size", 1), "validation images a task under val=hash"),
    Parameter(
        "exemplars",
        "50",
        count("exemplars"),
        "finetuning lists: images of every class known by the task, where there are so many; 0 for no lists",
    ),
    Parameter(
        "repeats",
        "drop",
        one_of("repeats", ("drop", "keep")),
        "m-owodb's test list: an image with classes of several tasks once, or once a task as published",
    ),
    Parameter("salt", "owod", read_salt, "salt of the hash ranks"),
)
