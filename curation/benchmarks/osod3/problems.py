"""The problems of OSOD-III: what the paper fixes, what ``--set`` may choose, and the authors' own class lists.

What the paper fixes is in ``facts.toml``: super-classes, sizes, views, names. The authors' lists are files
``category_t1.txt``, ``category_t2.txt``, ….
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from curation.benchmarks.facts import fact, facts_of
from curation.benchmarks.parameters import LARGEST_SEED, Parameter, choice, share, whole
from curation.canonical import canonical_json, sha256_of_bytes
from curation.cooccurrence.graph import WEIGHTINGS
from curation.errors import MissingFileError, ProtocolError
from curation.hierarchy.class_trees import SUPERCLASS_RULES, superclass
from curation.manifest.header import LabelView, Paper, PartRole
from curation.storage import inside, read_bytes

_ROOM = __package__
_FACTS = facts_of(_ROOM)
PAPER = fact(_ROOM, "paper", Paper)
TRAIN_VIEW, TEST_VIEW = fact(_ROOM, "views", dict[str, LabelView]).values()
CASES = tuple(_FACTS["cases"])
CUB_IMAGES = fact(_ROOM, "cub_images", dict[str, int])
CUB_CLASSES, PARTS = 200, 4
MTSD_CLUSTERS = tuple(_FACTS["mtsd_clusters"])
OURS, AUTHORS = (_FACTS["notes"][key] for key in ("ours", "authors"))


def _labels(table: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(f"/m/{word}" for word in words) for name, words in _FACTS[table].items()}


SUPERCLASSES, INNER_NODES = _labels("superclasses"), _labels("inner_nodes")
"""Label names of the leaves of animal and vehicle in Open Images; the nodes between them and their leaves."""
NAMES = {f"/m/{key}": name for key, name in _FACTS["names"].items()}
"""Key (MID) to name, of the leaves and inner nodes of both super-classes."""


class Selected(NamedTuple):
    """A part of the Open Images problems: source, roles of which an image shows a class, and the rule in words."""

    source: str
    shows: tuple[str, ...]
    rule: str


SELECTED: dict[PartRole, Selected] = {name: Selected(**one) for name, one in _FACTS["open_images"].items()}

Generator = Literal["hash", "python", "numpy"]
GENERATORS: dict[str, str] = {
    "hash": 'classes in the order of sha256("{seed}:{class}")',
    "python": "random.Random(seed).shuffle of the sorted classes",
    "numpy": "numpy.random.RandomState(seed).permutation of the sorted classes",
}
PROBLEMS = ("openimages", "cub", "mtsd")
_FILE = re.compile(r"category_t([1-9])\.txt")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LARGEST = 1 << 20


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


@dataclass(frozen=True, slots=True)
class PublishedParts:
    """Class names of each list in the order t1, t2, …, with the digest of its file."""

    parts: tuple[tuple[str, ...], ...]
    digests: tuple[str, ...]


def read_published(text: str) -> str:
    """Return the authors' lists as a manifest holds them: the JSON of names and digests; "" for none.

    Parameters
    ----------
    text : str
        A folder that holds ``category_t1.txt`` to ``category_t4.txt`` (MTSD: to ``category_t3.txt``), one class a line;
        or that JSON itself.

    Raises
    ------
    ProtocolError
        The files are not numbered from 1 without a gap, are not text, are empty, or name a class twice.
    MissingFileError
        The folder is not there, or holds none of the files.
    """
    if not text:
        return ""
    if text.startswith("{"):
        return _as_text(published_parts(text))
    folder = Path(text)
    numbers = sorted(int(found[1]) for path in _entries(folder) if (found := _FILE.fullmatch(path.name)) is not None)
    if numbers not in ([1, 2, 3, 4], [1, 2, 3]):
        raise MissingFileError(
            "The authors' class lists are not all there",
            where=str(folder),
            expected=", ".join(f"category_t{number}.txt" for number in (1, 2, 3, 4)) + " (MTSD: without the last)",
            found=", ".join(f"category_t{number}.txt" for number in numbers) or "none of them",
        )
    contents = [read_bytes(inside(folder, f"category_t{number}.txt"), kind="list of classes") for number in numbers]
    lists = [
        _names(content, f"{folder}/category_t{number}.txt") for number, content in zip(numbers, contents, strict=True)
    ]
    published = PublishedParts(tuple(lists), tuple(sha256_of_bytes(content) for content in contents))
    _check_apart(published.parts)
    return _as_text(published)


def published_parts(text: str) -> PublishedParts:
    """Return the lists of a text in the form of `read_published`."""
    try:
        data = json.loads(text)
        parts = tuple(tuple(map(_text, one)) for one in data["parts"])
        digests = tuple(map(_text, data["sha256"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        parts, digests = (), ()
    usable = len(parts) in (3, 4) and len(digests) == len(parts) and all(parts)
    if not usable or not all(map(_DIGEST.fullmatch, digests)):
        raise ProtocolError(
            "The authors' class lists cannot be read",
            where="--set published",
            expected="a folder with category_t1.txt, category_t2.txt, …",
            found=repr(text[:60]),
        )
    _check_apart(parts)
    return PublishedParts(parts, digests)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _entries(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise MissingFileError("There is no such folder", where=f"--set published={folder}")
    return list(folder.iterdir())


def _names(content: bytes, where: str) -> tuple[str, ...]:
    try:
        text = content.decode("utf-8-sig") if len(content) <= _LARGEST else ""
    except UnicodeDecodeError:
        text = ""
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not names or not all(name.isprintable() for name in names):
        raise ProtocolError("A list of classes is empty or no text", where=where, expected="one class a line, UTF-8")
    return names


def _check_apart(parts: Sequence[Sequence[str]]) -> None:
    seen: dict[str, int] = {}
    for number, part in enumerate(parts, 1):
        for name in part:
            if name in seen:
                raise ProtocolError(
                    "A class stands in the authors' lists twice",
                    where=f"category_t{seen[name]}.txt and category_t{number}.txt",
                    found=name[:80],
                    hint="each list holds one part alone, not the union of the others",
                )
            seen[name] = number


def _as_text(published: PublishedParts) -> str:
    return canonical_json(
        {"parts": [list(part) for part in published.parts], "sha256": list(published.digests)}
    ).decode("utf-8")


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
