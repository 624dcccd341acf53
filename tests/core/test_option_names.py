"""Advice of the command line in the words of a function."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import pytest

from curation.core.arguments import annotations_of
from curation.core.option_names import in_python, option_names_of
from curation.sources.source_specs import Reading


def function(
    *,
    truth: Path | Mapping[str, Path],
    sources: Mapping[str, Path] | None = None,
    form: Annotated[Literal["coco", "yolo"], "--format FORM"] = "coco",
    stray: str = "error",
    each: bool = False,
    port: int = 0,
    reading: Reading | None = None,
) -> None:
    """A function with arguments of each kind."""


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ("--on-error stray=drop leaves them out", "stray='drop' leaves them out"),
        ("--on-error boxes=drop", "reading=Reading(bad_boxes='drop')"),
        ("--port 0 takes a free one; or --each", "port=0 takes a free one; or each=True"),
        ("--source NAME@val=roof", "sources={'NAME@val': 'roof'}"),
        ("of --truth FOLDER: --format yolo", "of truth=FOLDER: form yolo"),
        ("curation export M --format coco; --format yolo", "curation export M --format coco; form yolo"),
        ("curation evaluate owod --help", "help(curation.evaluate.owod)"),
        ("--unheard-of FILE", "--unheard-of FILE"),
    ],
)
def test_options_become_arguments_where_the_function_has_them(shell: str, python: str) -> None:
    assert (
        in_python(shell, option_names_of(inspect.signature(function), annotations_of(function, extras=True))) == python
    )
