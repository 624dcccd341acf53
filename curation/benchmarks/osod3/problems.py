"""The problems of OSOD-III: what the paper fixes, what ``--set`` may choose, and how classes are cut into parts.

What the paper fixes is in ``facts.toml``: super-classes, sizes, views, names. The authors' own class lists are files
``category_t1.txt``, ``category_t2.txt``, ….
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import declared_parameters, fact, facts_of
from curation.core.canonical import canonical_json, sha256_of_bytes
from curation.core.errors import MissingFileError, ProtocolError
from curation.core.storage import inside, read_bytes
from curation.manifest.header import LabelView, Paper, PartRole
from curation.signals.hierarchy.class_trees import SUPERCLASS_RULES, superclass

_ROOM = __package__
FACTS = facts_of(_ROOM)
PAPER = fact(_ROOM, "paper", Paper)
TRAIN_VIEW, TEST_VIEW = fact(_ROOM, "views", dict[str, LabelView]).values()
CUB_IMAGES = fact(_ROOM, "cub_images", dict[str, int])
CUB_CLASSES, PARTS = 200, 4
MTSD_CLUSTERS = tuple(FACTS["mtsd_clusters"])


def _labels(table: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(f"/m/{word}" for word in words) for name, words in FACTS[table].items()}


SUPERCLASSES, INNER_NODES = _labels("superclasses"), _labels("inner_nodes")
"""Label names of the leaves of animal and vehicle in Open Images; the nodes between them and their leaves."""
NAMES = {f"/m/{key}": name for key, name in FACTS["names"].items()}
"""Key (MID) to name, of the leaves and inner nodes of both super-classes."""


class Selected(NamedTuple):
    """A part of the Open Images problems: source, roles of which an image shows a class, and the rule in words."""

    source: str
    shows: tuple[str, ...]
    rule: str


SELECTED: dict[PartRole, Selected] = {name: Selected(**facts) for name, facts in FACTS["open_images"].items()}

Convention = Literal["part_known", "part_unknown"]
Generator = Literal["hash", "python", "numpy"]
AUTHORS_SEED = 100
_FILE = re.compile(r"category_t([1-9])\.txt")
_LARGEST = 1 << 20
Text = Annotated[str, Meta(min_length=1)]


def read_superclass(text: str) -> str:
    """Return a super-class as a manifest holds it: a word, or the JSON list of its label names.

    ``animal`` or ``vehicle``; ``FILE#/m/02xwb`` for the node of an Open Images tree; ``FILE#/m/02xwb#RULE`` under
    another definition of sub-class (`curation.signals.hierarchy.class_trees.SUPERCLASS_RULES`); or the list itself.
    """
    if text in SUPERCLASSES:
        return text
    if text.startswith("["):
        return canonical_json(list(labels_of(text))).decode("utf-8")
    path, _, rest = text.partition("#")
    root, _, rule = rest.partition("#")
    if not root or rule not in ("", *SUPERCLASS_RULES):
        raise ProtocolError(
            "Unknown super-class",
            where=f"--set superclass={text[:80]}",
            expected=f"{', '.join(SUPERCLASSES)}, or FILE#LABEL with the label name of a node",
            hint="bbox_labels_600_hierarchy.json#/m/02xwb is fruit",
        )
    chosen: Any = rule or "leaves"
    return canonical_json(list(superclass(Path(path), root, chosen))).decode("utf-8")


def labels_of(text: str) -> tuple[str, ...]:
    """Return the label names of a super-class in the form of `read_superclass`."""
    if text in SUPERCLASSES:
        return SUPERCLASSES[text]
    try:
        return tuple(sorted(set(msgspec.json.decode(text, type=Annotated[list[Text], Meta(min_length=1)]))))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        expected = "a list of label names"
        raise ProtocolError(
            "The super-class cannot be read", where="--set superclass", expected=expected, found=text[:80]
        ) from None


class PublishedParts(msgspec.Struct, frozen=True):
    """Class names of each list in the order t1, t2, …, with the digest of its file.

    Raises
    ------
    ProtocolError
        A class is listed twice.
    """

    parts: Annotated[tuple[Annotated[tuple[Text, ...], Meta(min_length=1)], ...], Meta(min_length=3, max_length=4)]
    sha256: tuple[Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")], ...]

    def __post_init__(self) -> None:
        """Refuse a class in two lists, and lists without digests."""
        if len(self.sha256) != len(self.parts):
            raise ValueError
        seen: dict[str, int] = {}
        for number, part in enumerate(self.parts, 1):
            for name in part:
                if seen.setdefault(name, number) != number or part.count(name) > 1:
                    raise ProtocolError(
                        "A class is listed twice in the authors' lists",
                        where=f"category_t{seen[name]}.txt and category_t{number}.txt",
                        found=name[:80],
                        hint="each list holds one part alone, not the union of the others",
                    )


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
    published = published_parts(text) if text.startswith("{") else _read_folder(Path(text))
    return canonical_json(msgspec.json.decode(msgspec.json.encode(published))).decode("utf-8")


def published_parts(text: str) -> PublishedParts:
    """Return the lists of a text in the form of `read_published`."""
    try:
        return msgspec.json.decode(text, type=PublishedParts)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ProtocolError(
            "The authors' class lists cannot be read",
            where="--set published",
            expected="a folder with category_t1.txt, category_t2.txt, …",
            found=str(error)[:200],
        ) from None


def _read_folder(folder: Path) -> PublishedParts:
    if not folder.is_dir():
        raise MissingFileError("No such folder", where=f"--set published={folder}")
    names = {int(found[1]): path.name for path in folder.iterdir() if (found := _FILE.fullmatch(path.name))}
    if sorted(names) not in ([1, 2, 3, 4], [1, 2, 3]):
        raise MissingFileError(
            "The authors' class lists are not all there",
            where=str(folder),
            expected="category_t1.txt to category_t4.txt (MTSD: to category_t3.txt)",
            found=", ".join(names[number] for number in sorted(names)) or "none of them",
        )
    lists, digests = [], []
    for _, name in sorted(names.items()):
        content = read_bytes(inside(folder, name), kind="list of classes")
        try:
            text = content.decode("utf-8-sig") if len(content) <= _LARGEST else ""
        except UnicodeDecodeError:
            text = ""
        listed = tuple(line.strip() for line in text.splitlines() if line.strip())
        if not listed or not all(map(str.isprintable, listed)):
            raise ProtocolError(
                "A list of classes is empty or not text", where=f"{folder}/{name}", expected="one class a line, UTF-8"
            )
        lists.append(listed)
        digests.append(sha256_of_bytes(content))
    return PublishedParts(tuple(lists), tuple(digests))


_CONCERNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("superclass", "uneven", "inner_nodes", "group_of", "depiction"), ("openimages",)),
    **dict.fromkeys(("rotation", "generator"), ("openimages", "cub")),
    **dict.fromkeys(("case", "graph_images", "weighting", "components"), ("mtsd",)),
    **dict.fromkeys(("test_fraction", "cub_source"), ("cub",)),
    "val_fraction": ("cub", "mtsd"),
}


def check_effects(parameters: Mapping[str, Any]) -> None:
    """Raise `ProtocolError` if a parameter that has no effect was changed: the manifest would be another than meant."""
    unused = {
        name: f"problem={' or '.join(problems)}"
        for name, problems in _CONCERNS.items()
        if parameters["problem"] not in problems
    }
    if parameters["cub_source"] != "train_only":
        unused["test_fraction"] = "cub_source=train_only: the official test images test otherwise"
    if parameters["superclass"] not in SUPERCLASSES:
        unused["inner_nodes"] = f"superclass={' or '.join(SUPERCLASSES)}: of others the inner nodes are not known"
    if parameters["published"]:
        drawn = ("generator", "uneven", "graph_images", "weighting", "components")
        unused |= dict.fromkeys(drawn, "published alone: with the authors' lists nothing is split or cut")
    for param in declared_parameters(_ROOM):
        if param.name in unused and parameters[param.name] != param.read(param.default):
            raise ProtocolError(
                f"{param.name} has no effect on this problem",
                where=f"--set {param.name}={str(parameters[param.name])[:60]}",
                expected=unused[param.name],
                found=f"problem={parameters['problem']}",
            )


def split_classes(
    classes: Sequence[str],
    *,
    parts: int = 4,
    seed: int = AUTHORS_SEED,
    generator: Generator = "hash",
    uneven: Literal["refuse", "first"] = "refuse",
) -> tuple[tuple[str, ...], ...]:
    """Return disjoint parts of equal size, each sorted.

    *Rectifying Open-Set Object Detection* splits at random and publishes no generator: no split made here is the
    authors' own. The sorted classes are put into the order of a generator and cut into consecutive runs.

    Parameters
    ----------
    generator : {"hash", "python", "numpy"}
        Classes in the order of ``sha256("{seed}:{class}")``; ``random.Random(seed).shuffle``, or
        ``numpy.random.RandomState(seed).permutation``, of the sorted classes.
    uneven : {"refuse", "first"}
        A number of classes that the parts do not divide: refused, or the first parts get one more each.

    Raises
    ------
    ProtocolError
        They are fewer than the parts, or cannot be divided evenly.
    """
    ordered = sorted(classes)
    size, left = divmod(len(ordered), parts)
    if not size or (left and uneven == "refuse"):
        raise ProtocolError(
            "The classes do not divide into equal parts",
            expected=f"a multiple of {parts}, such as {parts}",
            found=str(len(ordered)),
            hint="--set uneven=first gives the first parts one more each" if size else None,
        )
    shuffled = _in_order(ordered, seed, generator)
    ends = np.cumsum([size + (number < left) for number in range(parts)]).tolist()
    return tuple(tuple(sorted(shuffled[start:end])) for start, end in zip([0, *ends[:-1]], ends, strict=True))


def rotation(
    parts: Sequence[Sequence[str]], number: int, convention: Convention
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the known and the unknown classes of rotation `number` (from 1), in the order of the parts from it on.

    Under ``part_known`` part `number` is known, the others are unknown (the authors' t1..t4 of Open Images); under
    ``part_unknown`` it is unknown, the others are known (the authors' t1..t4 of CUB).
    """
    chosen = tuple(parts[number - 1])
    others = tuple(name for part in (*parts[number:], *parts[: number - 1]) for name in part)
    return (chosen, others) if convention == "part_known" else (others, chosen)


def _in_order(ordered: list[str], seed: int, generator: Generator) -> list[str]:
    if generator == "hash":
        return sorted(ordered, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).hexdigest())
    if generator == "python":
        shuffled = list(ordered)
        random.Random(seed).shuffle(shuffled)  # noqa: S311 - reproducible, not secret
        return shuffled
    return [ordered[position] for position in np.random.RandomState(seed).permutation(len(ordered)).tolist()]
