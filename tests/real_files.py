"""Checks on real annotation files: each stands beside what it checks, and each set of files is one test.

A check is a function ``check_…`` with `real_files` above it. It takes by name ``shared`` (the folder of real files),
``tmp_path``, ``capsys``, other fixtures of ``tests/conftest.py``, or what a `provided` function of its module makes.
`pytest.mark.parametrize` works as on a test. ``tests/test_real_files.py`` runs all checks of a set and tells all
failures.

What a check states of real files, a test beside it or a synthetic world (``tests/worlds``) states without them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., None])
Provider = TypeVar("Provider", bound=Callable[..., Any])

SETS: dict[str, str] = {
    "coco": "instances_val2017_rebuilt.json, alone or with VOC2007: what selects, evaluates and counts its boxes",
    "coco_exports": "the same: exported and published",
    "coco_manifests": "the same: committed manifests, built again",
    "coco_table": "presence_2014_2017.csv and mini/: images, photos and masks of COCO",
    "voc2007": "boxes, image sets and detections of VOC2007",
    "imagenet": "file names and class lists of ILSVRC2012",
    "imagenet_manifests": "the same: committed manifests, built again",
    "cub200_and_signs": "CUB-200-2011 and the labels of MTSD",
    "openimages": "class hierarchy and names of Open Images",
    "owod_lists": "published lists of the open-world benchmarks",
    "atlas_lists": "published lists of ten further benchmarks: read, normalised, identified",
    "owod_audits": "the same, audited",
    "strangers": "split lists of eight repositories of other fields",
    "decisions": "recorded decisions and category lists of FindMeIfYouCan",
    "verdicts": "NINCO's verdict files and the lists of OpenOOD that they judge",
    "cases": "files that users of other tools reported, each with its right value",
    "held": "answers of every evaluator, and of cuts, class lists and splits, held outside the repository",
}


@dataclass(frozen=True)
class Check:
    """A check with the arguments of one case."""

    name: str
    function: Callable[..., None]
    case: dict[str, Any]


CHECKS: dict[str, list[Callable[..., None]]] = {name: [] for name in SETS}
PROVIDERS: dict[tuple[str, str], Callable[..., Any]] = {}
"""What checks of a module take by name, made once a set: module and name."""


def real_files(name: str) -> Callable[[Function], Function]:
    """Register a check of one set of files."""

    def register(function: Function) -> Function:
        CHECKS[name].append(function)
        return function

    return register


def provided(function: Provider) -> Provider:
    """Let the checks of this module take what the function returns, by its name; it may take the same as they."""
    PROVIDERS[function.__module__, function.__name__] = function
    return function


def checks_of(name: str) -> Iterator[Check]:
    """Return the checks of one set, a parametrized one once a case."""
    for function in CHECKS[name]:
        cases: list[dict[str, Any]] = [{}]
        for mark in [one for one in getattr(function, "pytestmark", []) if one.name == "parametrize"]:
            names, values = mark.args
            keys = [key.strip() for key in names.split(",")] if isinstance(names, str) else list(names)
            rows = [value if len(keys) > 1 else (value,) for value in values]
            cases = [{**case, **dict(zip(keys, row, strict=True))} for case in cases for row in rows]
        for case in cases:
            told = "".join(f"[{value}]" for value in case.values())
            yield Check(f"{function.__module__}.{function.__name__}{told}", function, case)
