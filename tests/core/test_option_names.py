"""Advice of the command line in the words of a function."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

import curation
from curation.core.arguments import annotations_of
from curation.core.option_names import in_python
from curation.sources.source_specs import Reading


def function(
    *,
    truth: Path | Mapping[str, Path],
    sources: Mapping[str, Path] | None = None,
    form: Annotated[Literal["coco", "yolo"], "--format FORM"] = "coco",
    stray: str = "error",
    any_scores: bool = False,
    each: bool = False,
    port: int = 0,
    reading: Reading | None = None,
) -> None:
    """A function with arguments of each kind."""


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ("--on-error stray=drop leaves them out", "stray='drop' leaves them out"),
        ("--on-error scores=keep allows margins", "any_scores=True allows margins"),
        ("--on-error boxes=drop", "reading=Reading(bad_boxes='drop')"),
        ("--format coco", "form='coco'"),
        (
            "--each writes every part on its own; or --format coco",
            "each=True writes every part on its own; or form='coco'",
        ),
        ("--port 0 takes a free one", "port=0 takes a free one"),
        ("--source NAME@val=roof", "sources={'NAME@val': 'roof'}"),
        ("is --truth FILE missing? --truth takes one", "is truth=FILE missing? truth takes one"),
        ("--truth roof --format yolo", "truth='roof', form='yolo'"),
        ("of --truth FOLDER: --format yolo", "of truth=FOLDER: form='yolo'"),
        ("another file (--source NAME=PATH)", "another file (sources={'NAME': PATH})"),
        ("curation export M --format coco; --format yolo", "curation export M --format coco; form='yolo'"),
        ("curation evaluate owod --help", "help(curation.evaluate.owod)"),
        ("--unheard-of FILE", "--unheard-of FILE"),
        ("a -- b, --", "a -- b, --"),
    ],
)
def test_options_become_arguments_where_the_function_has_them(shell: str, python: str) -> None:
    assert in_python(shell, inspect.signature(function), annotations_of(function, extras=True)) == python


@pytest.mark.parametrize("called", [curation.audit, curation.build, curation.evaluate.owod])
def test_what_is_written_can_be_called(called: Any) -> None:
    """Each written argument is one that the function has."""
    written = in_python("--source a=b, --tasks x, --on-error boxes=drop, --manifest m", inspect.signature(called), {})
    names = [text.partition("=")[0] for text in written.split(", ") if not text.startswith("--")]
    assert names
    assert set(names) <= inspect.signature(called).parameters.keys()
