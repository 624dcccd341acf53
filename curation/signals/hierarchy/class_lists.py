"""Classes and their roles as files and manifests list them, and their noun synsets in WordNet.

The classes of a list of images are its groups, or the wnids of its folders or file names. Such folders need not be the
classes that the images show: a folder of ImageNet-O is the class that a network predicted.

The classes of COCO-80, VOC-20 and Open Images-601 have synsets chosen by hand, in two readings. ``curated``: each name
checked by hand, with the reason wherever the first sense is not what the data set annotates. ``first_sense``: what
``wordnet.synsets(name)[0]`` returns, which makes a leopard a fur.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from curation.core.errors import UsageError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.header import Header, roles_at
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.signals.hierarchy.hierarchy import above, ancestors, descendants
from curation.signals.hierarchy.wordnet import Wordnet, open_wordnet
from curation.sources.datasets import family
from curation.sources.entries import MOST_CLASS_NAMES, PublishedFile, PublishedList
from curation.sources.published_list import read_published
from curation.sources.stems import stems

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph


DATASETS = ("coco", "voc", "openimages")
_FILE = "synset_maps.tsv"
_ID = re.compile(r"n[0-9]{8,9}")


@dataclass(frozen=True, slots=True)
class SynsetChoice:
    """The synset of a class name.

    Attributes
    ----------
    synset : str or None
        Chosen by hand; None if WordNet has no fitting synset.
    first_sense : str or None
        The first noun sense of the name in WordNet's order; None if the name is not a lemma.
    reason : str
        Why the two differ, or why a synset is missing; ``""`` if the first sense is right.
    """

    synset: str | None
    first_sense: str | None
    reason: str


@cache
def synset_choices(dataset: str) -> dict[str, SynsetChoice]:
    """Return the choice of each class of a data set (``coco``, ``voc``, ``openimages``), in the data set's order.

    Raises
    ------
    UsageError
        The data set has no map.
    """
    if dataset not in DATASETS:
        raise UsageError("No synset map for this dataset", expected=", ".join(DATASETS), found=repr(dataset[:40]))
    lines = resources.files("curation.signals.hierarchy").joinpath(_FILE).read_text(encoding="ascii").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {
        name: SynsetChoice(synset or None, first or None, reason)
        for owner, name, synset, first, reason in rows
        if owner == dataset
    }


def synset_map(dataset: str) -> dict[str, str]:
    """Return the synset chosen by hand of each class that has one, in the data set's order."""
    return {name: choice.synset for name, choice in synset_choices(dataset).items() if choice.synset is not None}


@dataclass(frozen=True, slots=True)
class Placed:
    """Classes in a hierarchy.

    Attributes
    ----------
    names : tuple of str
        The name of every class, once.
    nodes : dict of str to str
        The node of each class that has one.
    absent : dict of str to str
        Why the others have none.
    """

    names: tuple[str, ...]
    nodes: dict[str, str]
    absent: dict[str, str]


def placed(
    within: Wordnet | Graph, lists: Sequence[Sequence[str]], datasets: Sequence[str] = ()
) -> tuple[Graph, tuple[Placed, ...]]:
    """Return the part of a hierarchy that lists of classes need, and the node of each class.

    A class is found by its id; by the hand-made map of a data set; by a unique name such as ``dog.n.01``; or by a
    lemma of a single node, ignoring case. A word of several nodes is not resolved.

    Parameters
    ----------
    within : Wordnet or networkx.DiGraph
    lists : sequence of sequences of str
    datasets : sequence of str
        Keys of `DATASETS`: their maps are used in this order.
    """
    by_hand = {name: choice for dataset in reversed(datasets) for name, choice in synset_choices(dataset).items()}
    names = dict.fromkeys(name for listed in lists for name in listed)
    synsets = {name: choice.synset for name in names if (choice := by_hand.get(name)) is not None}
    if isinstance(within, Wordnet):
        ids = {key for key in (*names, *filter(None, synsets.values())) if key in within}
        by_word = [name for name in names if not (name in synsets or _ID.fullmatch(name))]
        graph = within.all_nouns() if by_word else within.nouns(ids)
    else:
        graph, by_word = within, [name for name in names if name not in within]
    bearing = _bearing(graph) if by_word else {}
    nodes: dict[str, str] = {}
    absent: dict[str, str] = {}
    for name in names:
        if name in graph:
            nodes[name] = name
        elif (synset := synsets.get(name)) is not None and synset in graph:
            nodes[name] = synset
        elif name in synsets:
            absent[name] = by_hand[name].reason or f"not in the table of {graph.graph['origin']}"
        elif len(several := bearing.get(name.strip().lower().replace(" ", "_"), [])) == 1:
            nodes[name] = several[0]
        elif several:
            absent[name] = f"a word of {len(several)} synsets: {', '.join(several[:4])}"
        else:
            absent[name] = f"not in the table of {graph.graph['origin']}"
    once = (tuple(dict.fromkeys(listed)) for listed in lists)
    return graph, tuple(
        Placed(listed, *({name: of_name[name] for name in listed if name in of_name} for of_name in (nodes, absent)))
        for listed in once
    )


def _bearing(graph: Graph) -> dict[str, list[str]]:
    """Return the nodes of each lemma or unique name."""
    nodes_of: dict[str, list[str]] = {}
    for node, data in graph.nodes(data=True):
        for word in {str(data.get("name", "")).lower(), *str(data.get("lemmas", "")).lower().split(" ")}:
            nodes_of.setdefault(word, []).append(node)
    return nodes_of


_SPECIFIC = 7
"""Minimum number of synsets above a super-class: lower ones hold classes that look alike, such as vehicles."""
_FEWEST = 4


def wordnet_groups(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the super-classes that WordNet has for class names, each with its classes and smaller groups.

    A class that has others below it is in no group. General super-classes such as *artifact*, and those of fewer than
    four classes, are left out. The largest group comes first.

    Examples
    --------
    >>> wordnet_groups(["dog", "cat", "horse", "zebra", "bird", "truck", "bolt"])
    {'vertebrate': ('bird', 'placental'), 'placental': ('cat', 'dog', 'horse', 'zebra')}
    """
    graph, (placement,) = placed(open_wordnet(), [names], DATASETS)
    names_of: dict[str, list[str]] = {}
    for name, node in placement.nodes.items():
        names_of.setdefault(node, []).append(name)
    tree = above(graph, names_of)
    leaves = {node for node in names_of if not (descendants(tree, [node]) - {node}) & names_of.keys()}
    below = {node: frozenset(descendants(tree, [node]) & leaves) for node in sorted(tree)}
    # Among nodes with the same classes, the lowest one has the most nodes above it.
    by_depth = sorted(tree, key=lambda node: (-len(ancestors(tree, [node])), node))
    nodes: dict[frozenset[str], str] = {}
    for node in by_depth:
        if len(ancestors(tree, [node])) > _SPECIFIC and sum(len(names_of[leaf]) for leaf in below[node]) >= _FEWEST:
            nodes.setdefault(below[node], node)
    labels: dict[frozenset[str], str] = {}
    for classes, node in nodes.items():
        word = tree.nodes[node]["lemmas"].split(" ")[0].replace("_", " ").lower()
        labels[classes] = tree.nodes[node]["name"] if word in {*names, *labels.values()} else word
    groups = {}
    for classes in sorted(nodes, key=lambda classes: (-len(classes), labels[classes])):
        inner = [other for other in nodes if other < classes]
        inner = [other for other in inner if not any(other < between for between in inner)]
        alone = classes.difference(*inner)
        direct = [name for leaf in alone for name in names_of[leaf]]
        groups[labels[classes]] = (*sorted(direct), *sorted(labels[other] for other in inner))
    return groups


ILSVRC = "ilsvrc2012"
"""Name of the 1,000 classes of ILSVRC-2012, accepted in place of a file of classes."""
_WNID = re.compile(r"(?:.*/)?(n[0-9]{8})(?:/|_|\Z)[^/]*")
_LEADING = re.compile(r"(n[0-9]{8})[\s,:]")


@dataclass(frozen=True, slots=True)
class ClassSet:
    """One list of classes.

    Attributes
    ----------
    name : str
        Name of its file, or of the role or task in it.
    classes : tuple of str
    known : tuple of str, or None
        The known classes, where the file lists them.
    images : mapping of str to int, or None
        Images of each class, where the file states them.
    filed : bool
        Whether the classes are those of files' folders or names.
    datasets : tuple of str
        Data sets whose hand-made maps give the synsets of names.
    """

    name: str
    classes: tuple[str, ...]
    known: tuple[str, ...] | None = None
    images: Mapping[str, int] | None = None
    filed: bool = False
    datasets: tuple[str, ...] = ()


def read_class_sets(target: Manifest | Path | str, *, part: str = "") -> tuple[ClassSet, ...]:
    """Return the lists of classes in a file or manifest: the unknown classes if it has roles.

    Parameters
    ----------
    target : Manifest, Path or str
        A manifest or its name; a file of classes, of roles (SSB's ``known_classes`` and ``unknown_classes``), or of
        images whose folders are classes; or `ILSVRC`.
    part : str
        Part of a manifest: only the classes in the names of its images, with their number.

    Raises
    ------
    UsageError
        It names no class, or the manifest has no such part.
    MissingFileError, AnnotationFormatError
        The file cannot be read, or its form is unknown.
    """
    if isinstance(target, Manifest):
        return tuple(_of_manifest(target, part))
    if str(target) == ILSVRC:
        return (ClassSet(ILSVRC, ilsvrc2012_classes()),)
    path = Path(target)
    if not path.is_file() or path.name == "manifest.json":
        return tuple(_of_manifest(load_manifest(target), part))
    if part:
        raise UsageError("--part applies only to a manifest", where=f"--part {part[:60]}", found=str(path))
    return tuple(_of_file(read_published(path)))


def class_in(path: str) -> str:
    """Return the wnid of a file's folder, or the wnid at the beginning of its name; ``""`` if there is none.

    Examples
    --------
    >>> class_in("ssb_hard/n01580870/n01580870_12.JPEG"), class_in("n01580870_12"), class_in("banded/banded_1.jpg")
    ('n01580870', 'n01580870', '')
    """
    match = _WNID.fullmatch(path)
    return match[1] if match else ""


def _of_manifest(manifest: Manifest, part: str) -> Iterator[ClassSet]:
    header = manifest.header
    if part and part not in manifest.parts:
        raise UsageError(
            "No such part", where=f"--part {part[:60]}", expected=", ".join(manifest.parts),
            found=f"{header.name} {header.version}",
        )  # fmt: skip
    part_names = [part] if part else [entry.name for entry in header.parts if entry.role in ("test", "wilderness")]
    ids = {image for name in part_names for image in manifest.lists.get(name, ())}
    if part and not ids:
        raise UsageError("The list of the part is not available", where=f"{header.name} {header.version}: {part}")
    images = Counter(class_in(image.partition(":")[2]) for image in sorted(ids))
    counted = {name: count for name, count in images.items() if name}
    families = (name for source in header.sources if (name := family(source.dataset)) in DATASETS)
    datasets = tuple(dict.fromkeys(families))
    for task in [entry.name for entry in header.tasks] or [""]:
        roles = _roles(header, task)
        unknown = tuple(name for name in roles["unknown"] if not part or name in counted)
        if unknown or not task:
            known = roles["known"]
            counts = {name: counted[name] for name in unknown if name in counted} or None
            yield ClassSet(task or part or "unknown", unknown, known, counts, datasets=datasets)


def _roles(header: Header, task: str) -> dict[str, tuple[str, ...]]:
    names_of: dict[str, list[str]] = {"known": [], "unknown": []}
    for entry in roles_at(header.classes, header.tasks, task):
        role = "known" if entry.role == "previous" else entry.role
        names_of.setdefault(role, []).append(entry.name)
    return {role: tuple(names) for role, names in names_of.items()}


def _of_file(file: PublishedFile) -> Iterator[ClassSet]:
    if file.form == "map":
        raise UsageError("The file renames classes and is not a list of classes", where=str(file.path))
    known = file.classes.get("known")
    for role, names in file.classes.items():
        if role != "known" or len(file.classes) == 1:
            yield ClassSet(role or file.path.stem, tuple(dict.fromkeys(map(_bare, names))), known)
    for listed in file.lists:
        name = listed.name or file.path.stem
        counts = dict(_counted(listed, str(file.path), groups=file.form == "json groups"))
        yield ClassSet(name, tuple(counts), None, counts, filed=file.form != "json groups")


def _bare(name: str) -> str:
    """Return the wnid of ``n01440764 tench, Tinca tinca``; other names are unchanged."""
    match = _LEADING.match(name)
    return match[1] if match else name


def _counted(listed: PublishedList, where: str, *, groups: bool) -> Iterable[tuple[str, int]]:
    """Return the classes of a list of images, in its order, with the number of images."""
    if groups and listed.group_of is not None:
        return ((listed.groups[number], count) for number, count in Counter(listed.group_of.tolist()).items())
    lines = (line[:-1].decode() for line in io.BytesIO(stems(listed.paths, parents=1)))
    counts: Counter[str] = Counter()
    for line in lines:
        # A wnid takes precedence over the name of the last folder.
        counts[class_in(line) or line.rpartition("/")[0]] += 1
        if len(counts) > MOST_CLASS_NAMES:
            break
    if not 0 < len(counts) <= MOST_CLASS_NAMES or not all(counts):
        raise UsageError(
            "The list does not state the class of each image", where=where,
            expected="folders or names of files with a class, n01580870/n01580870_12.JPEG, or a list of classes",
            found=f"more than {MOST_CLASS_NAMES:,} folders" if len(counts) > MOST_CLASS_NAMES
            else f"{counts['']:,} of {counts.total():,} files are in no folder",
        )  # fmt: skip
    return counts.items()
