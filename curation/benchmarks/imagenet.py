"""Large-Scale Open-Set Classification Protocols for ImageNet (Palechor, Bhoumik, Günther; WACV 2023): P1, P2, P3.

Superclasses of WordNet 3.0 say which of ImageNet's 1,000 classes are known, negative (shown in training as what is not
known) and unknown (section 3, Tables 3 to 5). Training images of known and negative classes are split 80/20 in train
and val; the validation images of all three are the test part.

The published lists are what scikit-learn's ``train_test_split(images, classes, train_size=0.8, stratify=classes,
random_state=42)`` returned, reproduced here to the file without scikit-learn. How a class's share is rounded depends on
the order of two floating-point operations: it is that of scikit-learn 1.0.2 to 1.9.1 at least.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import benchmark_facts, fact, read_declared
from curation.benchmarks.parts import (
    Part,
    Selection,
    compared,
    make_part,
    manifest_of,
    rule_note,
    source_entry,
    unread_entry,
)
from curation.benchmarks.rules.hierarchy import ROLES, Cut, RolePartition, partition_classes
from curation.core.canonical import canonical_json, sha256_of_lines
from curation.core.errors import ExportError, ProtocolError
from curation.core.ids import ilsvrc2012_classes
from curation.core.tables import Table
from curation.evaluation.class_scores import GROUPS
from curation.manifest.header import Figure, Header, LabelView, Paper, PartEntry, PartRole, SourceEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import locate_images
from curation.publishing.exporting import Format
from curation.publishing.formats.plan import Plan, PlannedFile, safe_name
from curation.signals.hierarchy.hierarchy import dropped_leaves, label, leaves_under
from curation.signals.hierarchy.wordnet import imagenet_dag, imagenet_tree, open_wordnet
from curation.sources.datasets import family
from curation.sources.imagenet import NO_NAMES, class_of_images
from curation.sources.source import Int64s, Source

if TYPE_CHECKING:
    from curation.signals.hierarchy.hierarchy import Graph


Overlap = Literal["each", "first"]


class ClassRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a protocol's classes follow from superclasses.

    Attributes
    ----------
    known, negative, unknown : tuple of str
        Superclasses by wnid. Those of `known` are cut; those of the other two are negative or unknown as a whole.
    cut : str
        ``whole``, ``halves``, ``sixths``, or a pattern such as ``KKNU``.
    """

    known: Annotated[tuple[str, ...], Meta(min_length=1)]
    negative: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    cut: Cut = "whole"


class Declaration(ClassRule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A protocol that a user declares.

    Attributes
    ----------
    name : str
        A lower-case word: the manifest is called ``imagenet/NAME``.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_.]{0,40}\Z")]


RULES = fact(__name__, "rules", dict[str, ClassRule])
"""P1, P2 and P3."""


def partition(
    rule: ClassRule, hierarchy: Graph, leaves: Collection[str], *, overlap: Overlap = "each"
) -> RolePartition:
    """Return the classes of a rule over some leaves.

    The cuts count places in the sorted list of leaves: with a class missing, all later ones change sides. Give the full
    list of classes, and leave out what a dataset lacks afterwards.

    Parameters
    ----------
    overlap : {"each", "first"}
        Where superclasses that are cut have a leaf in common, which only happens with several parents: ``each`` counts
        it in all of them, as the authors' code would; ``first`` leaves it to the superclass that the rule names first.

    Raises
    ------
    ProtocolError
        A class would be in two roles, or no class is known.
    HierarchyError
        A superclass is not in the hierarchy.
    """
    assigned: set[str] = set()
    known = []
    for node in rule.known:
        known.append([leaf for leaf in leaves_under(hierarchy, node, leaves) if leaf not in assigned])
        if overlap == "first":
            assigned.update(known[-1])
    negative, unknown = (
        [leaf for node in nodes for leaf in leaves_under(hierarchy, node, leaves)]
        for nodes in (rule.negative, rule.unknown)
    )
    hint = "in a hierarchy with several parents superclasses overlap: take its tree, or other superclasses"
    classes = partition_classes(known, negative, unknown, rule.cut, hint=hint)
    if not classes.known:
        raise ProtocolError("No class of the dataset lies below the known superclasses", found="0 known classes")
    return classes


def read_protocol(text: str) -> str:
    """Return ``p1``, ``p2``, ``p3``, or the canonical JSON of what a TOML or JSON file declares.

    A manifest holds the declaration itself, so that it is built again without the file.

    Raises
    ------
    ProtocolError
        The text is neither of the three nor a file; the file is not such a declaration, or names what cannot be
        superclasses.
    """
    if text in RULES:
        return text
    expected = f"{', '.join(RULES)}, or a TOML or JSON file"
    declaration, where = read_declared(text, Declaration, "protocol", "No such ImageNet protocol", expected)
    superclasses = [*declaration.known, *declaration.negative, *declaration.unknown]
    repeated = sorted({wnid for wnid in superclasses if superclasses.count(wnid) > 1})
    leaves = sorted(set(superclasses) & set(ilsvrc2012_classes()))
    if declaration.name in RULES or repeated or leaves:
        wrong = (
            f"{repeated[0][:40]!r} twice"
            if repeated
            else f"{leaves[0]}, which is a class"
            if leaves
            else declaration.name
        )
        raise ProtocolError(
            "The declaration of the protocol is inconsistent",
            where=where,
            expected=f"different superclasses, none of them a class, and a name other than {', '.join(RULES)}",
            found=wrong,
        )
    return canonical_json(msgspec.to_builtins(declaration)).decode("utf-8")


def declaration_of(text: str) -> Declaration:
    """Return the declaration that a value of the parameter ``protocol`` stands for."""
    if text in RULES:
        return Declaration(name=text, **msgspec.structs.asdict(RULES[text]))
    return msgspec.json.decode(text, type=Declaration)


_ROOM = __name__
_FACTS = benchmark_facts(_ROOM)
PAPER = fact(_ROOM, "paper", Paper)
FIGURES: tuple[str, ...] = tuple(_FACTS["figures"])
TABLE_1 = fact(_ROOM, "table_1", dict[str, tuple[int, ...]])
"""Published figures in the order of `FIGURES`."""
TRAIN_RULE, VAL_RULE, TEST_RULE = (_FACTS[key] for key in ("train_rule", "val_rule", "test_rule"))
DAG_NOTE: str = _FACTS["dag_note"]
PUBLISHED_NOTE: str = _FACTS["published_note"]

ALGORITHM_VERSION = 1
TRAIN, VAL = "imagenet-train", "imagenet-val"
VIEW = LabelView()
_RULES: dict[str, tuple[PartRole, str, str]] = {
    "train": ("train", TRAIN, TRAIN_RULE),
    "val": ("val", TRAIN, VAL_RULE),
    "test": ("test", VAL, TEST_RULE),
}


class ClassImages:
    """An index of a presence-only source of one class an image: which of its images show a class."""

    def __init__(self, source: Source) -> None:
        category, self.source = class_of_images(source), source
        order = np.argsort(category, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(category[order])) + 1) if len(order) else []
        self._positions: dict[str, Int64s] = {source.categories.names[category[rows[0]]]: rows for rows in groups}

    def of(self, name: str) -> Int64s:
        """Return the positions of a class's images, sorted by file name (code points); empty for none."""
        positions = self._positions.get(name, np.empty(0, np.int64))
        names = self.source.images.file_names[positions].tolist()
        return positions[np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)]

    def of_all(self, names: Sequence[str]) -> Int64s:
        """Return the positions of several classes' images one after the other."""
        return np.concatenate([np.empty(0, np.int64), *map(self.of, names)])

    def sizes(self, names: Sequence[str]) -> Int64s:
        """Return how many images each of some classes has."""
        return np.array([len(self._positions.get(name, ())) for name in names], np.int64)

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the classes of which the source has no image."""
        return [name for name in names if name not in self._positions]


def split_sizes(sizes: Int64s, *, train_size: float = 0.8, seed: int = 42) -> tuple[Int64s, Int64s]:
    """Return the positions of the training and of the validation items, in the order scikit-learn returns them.

    The items are grouped by class, the classes sorted.

    Parameters
    ----------
    sizes : ndarray of int64
        How many items each class has.
    train_size : float
        Share of the items for training, in (0, 1).
    seed : int

    Raises
    ------
    ProtocolError
        The share is not between 0 and 1; a class has one item, or a side would have fewer items than there are classes
        (scikit-learn refuses the same).
    """
    if not 0 < train_size < 1:
        raise ProtocolError("The share of the training items is not between 0 and 1", found=str(train_size))
    n = int(sizes.sum())
    n_train = int(np.floor(train_size * n))
    if not len(sizes) or sizes.min() < 2 or min(n_train, n - n_train) < len(sizes):
        raise ProtocolError(
            "These classes cannot be split by strata",
            expected="two items or more in every class, and on each side as many items as there are classes",
            found=f"{len(sizes)} classes, the smallest of {int(sizes.min()) if len(sizes) else 0} items; "
            f"{n_train} and {n - n_train} items",
        )
    # The generator, its calls and their order are part of the published lists.
    random = np.random.RandomState(seed)
    in_train = _allotted(sizes, n_train, random)
    in_val = _allotted(sizes - in_train, n - n_train, random)
    starts = np.cumsum(sizes) - sizes
    train, val = [], []
    for start, size, first, second in zip(
        starts.tolist(), sizes.tolist(), in_train.tolist(), in_val.tolist(), strict=True
    ):
        shuffled = start + random.permutation(size)
        train.append(shuffled[:first])
        val.append(shuffled[first : first + second])
    return (
        np.asarray(random.permutation(np.concatenate(train)), np.int64),
        np.asarray(random.permutation(np.concatenate(val)), np.int64),
    )


def _allotted(sizes: Int64s, draws: int, random: np.random.RandomState) -> Int64s:
    """Return how many of the draws fall to each class: scikit-learn's ``_approximate_mode``."""
    # The order of the two operations decides on the rounding of some classes.
    share = sizes / sizes.sum() * draws
    floored = np.floor(share)
    needed = int(draws - floored.sum())
    if needed > 0:
        remainder = share - floored
        for value in np.sort(np.unique(remainder))[::-1]:
            (tied,) = np.where(remainder == value)
            added = min(len(tied), needed)
            floored[random.choice(tied, size=added, replace=False)] += 1
            needed -= added
            if needed == 0:
                break
    return np.asarray(floored, np.int64)


@dataclass(frozen=True)
class _Given:
    """What a build has to work with."""

    sources: Mapping[str, Source]
    parameters: Mapping[str, Any]

    @cached_property
    def images(self) -> dict[str, ClassImages]:
        return {slot: ClassImages(source) for slot, source in self.sources.items()}

    @cached_property
    def classes(self) -> RolePartition:
        if self.parameters["missing"] != "restrict":
            return class_partition(self.parameters)
        if TRAIN not in self.sources:
            raise ProtocolError(
                "Classes are restricted to those of the training source, which is missing",
                where="--set missing=restrict",
                expected=f"--source {TRAIN}=PATH",
            )
        lacking = set(self.images[TRAIN].missing(ilsvrc2012_classes()))
        return class_partition(self.parameters, [name for name in ilsvrc2012_classes() if name not in lacking])

    def has_names(self, slot: str) -> bool:
        return slot in self.sources and NO_NAMES not in self.sources[slot].dropped

    def classes_in(self, part: str) -> tuple[str, ...]:
        seen = (*self.classes.known, *self.classes.negative)
        return (*seen, *self.classes.unknown) if part == "test" else seen


def class_partition(parameters: Mapping[str, Any], leaves: Sequence[str] | None = None) -> RolePartition:
    """Return the classes by role that some parameters ask for (no source is needed).

    Parameters
    ----------
    parameters : mapping
        ``protocol`` and ``hierarchy`` count.
    leaves : sequence of str, optional
        The classes to cut; all 1,000 by default.

    Raises
    ------
    ProtocolError
        See `partition`; or none of all 1,000 classes lies below the negative, or the unknown, superclasses.
    """
    published = parameters["hierarchy"] == "published"
    rule = declaration_of(parameters["protocol"])
    chosen = ilsvrc2012_classes() if leaves is None else leaves
    graph = imagenet_tree() if published else imagenet_dag()
    classes = partition(rule, graph, chosen, overlap="each" if published else "first")
    # A restricted data set may lack a role; a rule that can never fill one is a mistake.
    for role in ("negative", "unknown") if len(chosen) == len(ilsvrc2012_classes()) else ():
        if getattr(rule, role) and not getattr(classes, role):
            raise ProtocolError(
                f"No class lies below the {role} superclasses",
                where=", ".join(getattr(rule, role)[:5]),
                found=f"0 {role} classes",
                hint="the published tree drops classes (curation hierarchy dropped): --set hierarchy=dag keeps them",
            )
    return classes


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a protocol: parts train, val and test.

    Parameters
    ----------
    sources : mapping of str to Source
        ``imagenet-train``, ``imagenet-val``, or both. A part whose source is not given, or states counts alone, is
        declared: it has a rule and expected figures, and no list.
    parameters : mapping
        As ``imagenet.toml`` declares them.

    Raises
    ------
    ProtocolError
        No source is given; a class of the protocol has no image (unless ``missing`` says otherwise); classes would be
        in two roles; a class is too small to be split.
    """
    if not sources:
        raise ProtocolError("No source is given", expected=f"--source {TRAIN}=PATH, --source {VAL}=PATH, or both")
    inputs = _Given(sources, parameters)
    notes = _missing(inputs)
    names = imagenet_dag().nodes(data="name")
    aliases = {wnid: (names[wnid],) for wnid in inputs.classes.labels() if names[wnid]}
    entries = inputs.classes.entries(aliases)
    selected = _selected(inputs)
    parts: list[Part | PartEntry] = []
    for name, (role, slot, rule) in _RULES.items():
        if name in selected and inputs.has_names(slot):
            chosen = Selection(slot, sources[slot], selected[name])
            parts.append(make_part(name, role, chosen, entries, view=VIEW, rule=rule, order="listed"))
        else:
            parts.append(PartEntry(name=name, role=role, sources=(slot,), selection=rule, view=VIEW, order="listed"))
    rule_of = declaration_of(parameters["protocol"])
    # What a reader wants to compare at a glance: superclasses, cut, and a digest of the class lists.
    facts: dict[str, str | tuple[str, ...]] = {
        "cut": rule_of.cut,
        "superclasses_known": rule_of.known,
        "superclasses_negative": rule_of.negative,
        "superclasses_unknown": rule_of.unknown,
        "class_labels_sha256": sha256_of_lines(
            [f"{wnid} {number}" for wnid, number in sorted(inputs.classes.labels().items())]
        ),
    }
    variant = " over all hypernyms (a correction)" if parameters["hierarchy"] == "dag" else ""
    is_users = rule_of.name not in RULES
    title = rule_of.name if is_users else rule_of.name.upper()
    return manifest_of(
        parts,
        name=default_name(parameters),
        title=f"ImageNet open-set protocol {title}{variant}",
        paper=None if is_users else PAPER,
        taxonomy="OSC",
        origin="regenerated" if all(isinstance(part, Part) for part in parts) else "declared",
        classes=entries,
        sources=tuple(_source(slot, inputs) for slot in (TRAIN, VAL)),
        protocol="imagenet",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, **facts},
        figures=_figures(_obtained(inputs, selected), parameters, sources),
        notes=(*([rule_note("hierarchy", PAPER)] if is_users else ()), *_hierarchy_notes(rule_of, parameters), *notes),
    )


def class_table(header: Header) -> Table | None:
    """Return the classes as Tables 3 to 5 of the paper: by role and superclass, each with its wnid and names.

    None where the manifest names no superclasses, or other classes than ILSVRC-2012's.
    """
    parameters: Mapping[str, Any] = header.rule.parameters
    leaves = set(ilsvrc2012_classes())
    if not {entry.name for entry in header.classes} <= leaves or "superclasses_known" not in parameters:
        return None
    graph = imagenet_tree() if parameters["hierarchy"] == "published" else imagenet_dag()
    words = open_wordnet().words_of
    nodes = [node for role in ROLES for node in parameters.get(f"superclasses_{role}") or ()]
    inside = {node: set(leaves_under(graph, node, leaves)) for node in nodes}
    rows = []
    for role in ROLES:
        left = {entry.name for entry in header.classes if entry.role == role}
        # Classes of the known superclasses may have any role: these are cut.
        for node in nodes:
            listed = sorted(left & inside[node])
            left -= inside[node]
            head = f"{label(graph, node)} ({len(listed)})"
            rows += [
                ("" if row else role, "" if row else head, wnid, ", ".join(words(wnid)).replace("_", " "))
                for row, wnid in enumerate(listed)
            ]
        rows += [(role, "-", wnid, ", ".join(words(wnid)).replace("_", " ")) for wnid in sorted(left)]
    return Table("Classes", ("role", "superclass (classes)", "wnid", "names"), tuple(rows))


def default_name(parameters: Mapping[str, Any]) -> str:
    """Return the manifest's name: ``imagenet/p1``, and ``-dag``, ``-seed7``, … for what is not as published."""
    marks = {
        "-dag": parameters["hierarchy"] == "dag",
        f"-seed{parameters['seed']}": parameters["seed"] != 42,
        f"-{parameters['missing']}": parameters["missing"] != "refuse",
    }
    name = declaration_of(parameters["protocol"]).name
    return f"imagenet/{name}" + "".join(mark for mark, applies in marks.items() if applies)


def _selected(inputs: _Given) -> dict[str, Int64s]:
    """Return the positions of each part's images, in the order of the part."""
    selected: dict[str, Int64s] = {}
    if TRAIN in inputs.sources:
        # The split takes classes sorted, whatever the order in which they come.
        images = inputs.images[TRAIN]
        lacking = set(images.missing(inputs.classes_in("train")))
        classes = sorted(name for name in inputs.classes_in("train") if name not in lacking)
        positions, sizes = images.of_all(classes), images.sizes(classes)
        train, val = split_sizes(sizes, seed=inputs.parameters["seed"])
        selected |= {"train": positions[train], "val": positions[val]}
    if VAL in inputs.sources:
        selected["test"] = inputs.images[VAL].of_all(inputs.classes_in("test"))
    return selected


def _missing(inputs: _Given) -> tuple[str, ...]:
    """Return notes on classes without images and classes beyond the 1,000; refuse where that is asked for."""
    notes = []
    for slot, images in inputs.images.items():
        requested = inputs.classes_in("test" if slot == VAL else "train")
        if lost := images.missing(requested):
            if inputs.parameters["missing"] == "refuse":
                raise ProtocolError(
                    f"{len(lost)} classes of the protocol have no image in the data set",
                    where=f"source {slot}",
                    expected=f"all {len(requested)} of them",
                    found=", ".join(label(imagenet_dag(), wnid) for wnid in lost[:5]),
                    hint="--set missing=report leaves them out and keeps every other class where it is",
                )
            notes.append(f"Without an image in {slot}: {', '.join(lost)}.")
        if extra := sorted(set(images.source.categories.names) - set(ilsvrc2012_classes())):
            notes.append(f"Not of ILSVRC-2012, left out of {slot}: {', '.join(extra[:20])} ({len(extra)} classes).")
    return tuple(notes)


def _obtained(inputs: _Given, selected: Mapping[str, Int64s]) -> dict[str, int]:
    """Return the figures of Table 1 as they come out."""
    figures = {f"{role}.classes": len(getattr(inputs.classes, role)) for role in ROLES}
    for name, positions in selected.items():
        source = inputs.sources[_RULES[name][1]]
        names = np.array(source.categories.names, object)[source.class_pairs()[1][positions]]
        count = Counter(names.tolist())
        for role in ROLES[: 3 if name == "test" else 2]:
            figures[f"{name}.{role}_images"] = sum(count[wnid] for wnid in getattr(inputs.classes, role))
    return figures


def _source(slot: str, inputs: _Given) -> SourceEntry:
    if slot in inputs.sources:
        note = "" if inputs.has_names(slot) else "counts by class: figures follow from them, lists do not"
        return source_entry(slot, inputs.sources[slot], note=note)
    return unread_entry(slot, "imagenet", slot.partition("-")[2], note="from your own disk")


def _hierarchy_notes(rule: ClassRule, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    if parameters["hierarchy"] == "dag":
        return (DAG_NOTE,)
    nodes = (*rule.known, *rule.negative, *rule.unknown)
    lost = dropped_leaves(imagenet_dag(), imagenet_tree(), nodes, ilsvrc2012_classes())
    leaves = sorted({leaf for several in lost.values() for leaf in several})
    if not leaves:
        return ()
    examples = ", ".join(label(imagenet_dag(), leaf) for leaf in leaves[:3])
    return (PUBLISHED_NOTE.format(dropped=len(leaves), examples=examples),)


def _figures(
    obtained: Mapping[str, int], parameters: Mapping[str, Any], sources: Mapping[str, Source]
) -> tuple[Figure, ...]:
    """Return the figures of Table 1 beside those obtained; the paper has none of a variant or a user's protocol."""
    name = declaration_of(parameters["protocol"]).name
    of_paper = name in TABLE_1 and parameters["hierarchy"] == "published" and parameters["missing"] != "restrict"
    table: tuple[int | None, ...] = TABLE_1[name] if of_paper else (None,) * len(FIGURES)
    figures = []
    for figure, paper in zip(FIGURES, table, strict=True):
        value, (_, slot, _) = obtained.get(figure), _RULES.get(figure.partition(".")[0], ("", "", ""))
        if value is None:
            why = f"needs --source {slot}=PATH" if slot and slot not in sources else "not computed"
        elif paper is None:
            why = "not a protocol of the paper"
        else:
            why = "classes are missing from the data set" if parameters["missing"] == "report" else "other files"
        figures.append(compared(figure, value, paper, "Table 1" if of_paper else "not in the paper", why))
    return tuple(figures)


_ROWS = 10_000


def plan_imagenet_csv(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    r"""Return the plan of a file for each part, ``p2_train.csv``, in the authors' layout.

    No header; path and label, ``train/n02088632/n02088632_3640.JPEG,3``; lines that end in ``\r\n``. Of a user's images
    the path is that of the source.

    Raises
    ------
    ExportError
        The manifest is about boxes; a class has no role in it; a file or class name is hostile; no part or one twice.
    ManifestError, MissingListError
        See `curation.manifest.views.locate_images`.
    """
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    rows = {part: _labelled(manifest, part, sources) for part in parts}
    stem = manifest.header.name.rpartition("/")[2]
    return Plan(
        files=[PlannedFile(f"{stem}_{part}.csv", partial(_chunks, column)) for part, column in rows.items()],
        records=sum(-(-len(column) // _ROWS) for column in rows.values()),
        counts={"rows": sum(map(len, rows.values()))},
    )


def _labelled(manifest: Manifest, part: str, sources: Mapping[str, Source]) -> list[tuple[str, int]]:
    """Return path and label of the images of a part, in its order."""
    located = locate_images(manifest, part, sources)
    if len(located.sources) != 1 or located.sources[0].objects is not None:
        raise ExportError(
            "A list of images by class holds one label an image, and this manifest is about boxes",
            where=f"part {part}",
            expected="coco, voc, yolo or elephant-json for the boxes, txt for the images alone",
        )
    (source,) = located.sources
    category = class_of_images(source)[located.position].tolist()
    labels = {
        name: GROUPS.get(entry.role, entry.index)
        for entry in manifest.header.classes
        for name in (*entry.aliases, entry.name)
    }
    if lacking := [name for code in dict.fromkeys(category) if (name := source.categories.names[code]) not in labels]:
        raise ExportError(
            "An image of the part shows a class that has no role in the manifest",
            where=f"part {part}",
            found=lacking[0],
        )
    names = source.images.file_names[located.position].tolist()
    shown = [source.categories.names[code] for code in category]
    if family(source.dataset) != "imagenet":
        natives = source.images.native[located.position].tolist()
        names = [name or native for name, native in zip(names, natives, strict=True)]
    for name in (*dict.fromkeys(shown), *names):
        safe_name(name, f"part {part}")
    if family(source.dataset) == "imagenet":
        names = [f"{source.part}/{wnid}/{name}" for wnid, name in zip(shown, names, strict=True)]
    elif formula := next((name for name in names if name[0] in "=+-@"), None):
        expected = "a path that no spreadsheet takes for a formula"
        raise ExportError("A path begins like a formula", where=f"part {part}", expected=expected, found=formula[:80])
    return [(path, labels[name]) for path, name in zip(names, shown, strict=True)]


def _chunks(rows: Sequence[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the rows of a file, several thousand a chunk."""
    for start in range(0, len(rows), _ROWS):
        # The authors' layout, byte for byte: no cell is escaped, and none can be taken for a formula, since no path
        # begins like one and each label is a number.
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows[start : start + _ROWS])
        yield text.getvalue().encode("utf-8")


FORMATS = (Format("imagenet-csv", lambda request: plan_imagenet_csv(request.manifest, request.parts, request.sources)),)
