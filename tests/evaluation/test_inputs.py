"""What an option gives by name of a task, case, split, part or classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curation.evaluation.inputs import by_name

A, B = Path("a.json"), Path("b.json")


@pytest.mark.parametrize(
    ("given", "options", "found"),
    [
        ({"t1": A, "t2": B}, {}, {"t1": A, "t2": B}),
        ({"t1": A, "t2": B}, {"names": ("t1", "t2"), "requested": ("t2",)}, {"t2": B}),
        (A, {"names": ("t1",)}, {"t1": A}),
        (A, {"names": ("t1", "t2"), "requested": ("t2",)}, {"t2": A}),
        (A, {"unnamed": "test"}, {"test": A}),
        ({"": A, "net": B}, {"unnamed": lambda path: path.stem}, {"a": A, "net": B}),
        (A, {"requested": ("t1", "t2"), "shared": True}, {"t1": A, "t2": A}),
        ({"": A, "t2": B}, {"requested": ("t1", "t2", "t3"), "shared": True}, {"t1": A, "t2": B, "t3": A}),
    ],
)
def test_each_has_its_own_or_the_one_that_names_none(
    given: Any, options: dict[str, Any], found: dict[str, Path]
) -> None:
    assert by_name(given, "--truth", "task", **options) == found
