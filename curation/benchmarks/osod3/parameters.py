"""Parameters of the OSOD-III protocol, from text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.benchmarks.class_splits import GENERATORS
from curation.benchmarks.osod3.facts import CASES, SUPERCLASSES
from curation.benchmarks.osod3.published import read_published
from curation.benchmarks.parameters import LARGEST_SEED, Parameter, choice, share, whole
from curation.canonical import canonical_json
from curation.cooccurrence.graph import WEIGHTINGS
from curation.errors import ProtocolError
from curation.hierarchy.class_trees import SUPERCLASS_RULES, superclass

PROBLEMS = ("openimages", "cub", "mtsd")


def read_superclass(text: str) -> str:
    """Return a super-class as a manifest holds it: a word, or the JSON list of its label names.

    ``animal`` or ``vehicle``; ``FILE#/m/02xwb`` for the node of an Open Images tree; ``FILE#/m/02xwb#RULE`` under
    another reading of sub-class (`curation.hierarchy.class_trees.SUPERCLASS_RULES`); or the list itself.
    """
    if text in SUPERCLASSES:
        return text
    if text.startswith("["):
        return canonical_json(list(_listed(text))).decode("utf-8")
    path, _, rest = text.partition("#")
    root, _, rule = rest.partition("#")
    if not root or rule not in ("", *SUPERCLASS_RULES):
        raise ProtocolError(
            "There is no such super-class",
            where=f"--set superclass={text[:80]}",
            expected=f"{', '.join(SUPERCLASSES)}, or FILE#LABEL with the label name of a node",
            hint="bbox_labels_600_hierarchy.json#/m/02xwb is fruit",
        )
    chosen: Any = rule or "leaves"
    return canonical_json(list(superclass(Path(path), root, chosen))).decode("utf-8")


def labels_of(text: str) -> tuple[str, ...]:
    """Return the label names of a super-class in the form of `read_superclass`."""
    return SUPERCLASSES[text] if text in SUPERCLASSES else _listed(text)


def _listed(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(one, str) and one for one in found):
        raise ProtocolError("The super-class is no list of label names", where="--set superclass", found=text[:80])
    return tuple(sorted(set(found)))


PARAMETERS = (
    choice("problem", PROBLEMS, "data set: openimages, cub or mtsd"),
    Parameter("superclass", "animal", read_superclass, "openimages: animal, vehicle, or FILE#LABEL of a class tree"),
    whole("rotation", 1, "openimages: the known part; cub: the unknown part", least=1, most=4),
    choice("case", tuple(CASES), "mtsd: which clusters are unknown", default="unknown12"),
    whole("seed", 100, "of the class split and of validation images", most=LARGEST_SEED),
    choice(
        "generator",
        tuple(GENERATORS),
        "order of the classes before they are cut: hash, python (random.Random) or numpy (RandomState)",
    ),
    choice("uneven", ("refuse", "first"), "classes that do not divide by four"),
    choice(
        "inner_nodes",
        ("drop", "ignore"),
        "openimages: boxes of inner nodes such as plain Car: dropped as in the paper, or ignored regions",
    ),
    choice(
        "group_of",
        ("keep", "ignore", "drop"),
        "openimages: boxes around groups: ordinary as in the authors' code, ignored regions, or dropped",
    ),
    choice(
        "depiction",
        ("keep", "ignore", "drop"),
        "openimages: drawings of an object: ordinary as in the authors' code, ignored regions, or dropped",
    ),
    Parameter(
        "published",
        "",
        read_published,
        "folder with the authors' category_t1.txt, category_t2.txt, …: their classes in place of a split or cut",
    ),
    share("val_fraction", "0.1", "cub, mtsd: share of training images that validate"),
    share("test_fraction", "0.2", "cub, with cub_source=train_only: share of training images that test"),
    choice(
        "graph_images",
        ("all", "train"),
        "mtsd: images whose signs are counted for the cut: all annotated ones, or training images",
    ),
    choice("weighting", tuple(WEIGHTINGS), "mtsd: what an edge of the graph weighs", default="counts"),
    choice(
        "components",
        ("error", "giant", "cut"),
        "mtsd: a graph that falls apart: refused, its largest component cut and the rest added to the largest cluster, "
        "or cut as it is",
    ),
    choice(
        "cub_source",
        ("train_and_test", "train_only"),
        "cub: the official test images test, or a share of the official training images does",
    ),
)

_CONCERNS: dict[str, tuple[str, ...]] = {
    "superclass": ("openimages",),
    "rotation": ("openimages", "cub"),
    "case": ("mtsd",),
    "generator": ("openimages", "cub"),
    "uneven": ("openimages",),
    "inner_nodes": ("openimages",),
    "group_of": ("openimages",),
    "depiction": ("openimages",),
    "val_fraction": ("cub", "mtsd"),
    "test_fraction": ("cub",),
    "graph_images": ("mtsd",),
    "weighting": ("mtsd",),
    "components": ("mtsd",),
    "cub_source": ("cub",),
}


def check_effects(parameters: Mapping[str, Any]) -> None:
    """Raise `ProtocolError` if a parameter that has no effect was changed: the manifest would be another than meant."""
    changed = {one.name for one in PARAMETERS if parameters[one.name] != one.read(one.default)}
    problem = parameters["problem"]
    for name, problems in _CONCERNS.items():
        if name in changed and problem not in problems:
            raise ProtocolError(
                f"{name} has no effect on this problem",
                where=f"--set {name}={str(parameters[name])[:60]}",
                expected=f"problem={' or '.join(problems)}",
                found=f"problem={problem}",
            )
    if "test_fraction" in changed and parameters["cub_source"] != "train_only":
        raise ProtocolError(
            "test_fraction has no effect on this problem",
            where=f"--set test_fraction={parameters['test_fraction']}",
            expected="cub_source=train_only",
            found=f"cub_source={parameters['cub_source']}: the official test images test",
        )
    if "inner_nodes" in changed and parameters["superclass"] not in SUPERCLASSES:
        raise ProtocolError(
            "The inner nodes of a super-class of your own are not known",
            where=f"--set inner_nodes={parameters['inner_nodes']}",
            expected=f"superclass={' or '.join(SUPERCLASSES)}",
        )
    unused = sorted(changed & {"generator", "uneven", "graph_images", "weighting", "components"})
    if parameters["published"] and unused:
        raise ProtocolError(
            f"{unused[0]} has no effect where the authors' lists are given",
            where=f"--set {unused[0]}={parameters[unused[0]]}",
            expected="published alone: nothing is split or cut",
        )
