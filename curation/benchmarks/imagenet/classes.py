"""Known, negative and unknown classes of the ImageNet protocols P1, P2, P3: superclasses, cut by a rule.

Then the parameters that are read from ``--set KEY=VALUE``, and protocols that a user declares in a file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations, cycle
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from curation.benchmarks.facts import fact
from curation.benchmarks.parameters import LARGEST_SEED, Parameter, choice, declared, whole, wordnet_parameter
from curation.canonical import canonical_json
from curation.errors import ProtocolError
from curation.evaluation.class_scores import NEGATIVE, UNKNOWN
from curation.hierarchy.hierarchy import leaves_under
from curation.ilsvrc2012 import ilsvrc2012_classes

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph


Formula = Literal["sklearn-1.0", "sklearn-0.24"]
"""``sklearn-1.0``: versions 1.0.2 to 1.9.1 at least, ``size / total * draws``; ``-0.24``: ``draws * size / total``."""
Overlap = Literal["each", "first"]

CUTS = {
    "whole": "each superclass is wholly known, negative or unknown",
    "halves": "the sorted leaves of the known superclass: the first len // 2 are known, the rest negative",
    "sixths": "of each mixed superclass's sorted leaves, counted from 0: even places are known, odd multiples of 3 "
    "unknown, other odd ones negative (K N K U K N)",
}
"""Cuts by name. Any pattern of the letters K, N and U is a cut too, repeated along each superclass's sorted leaves."""

SIXTHS = "KNKUKN"


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
    cut: Annotated[str, Meta(pattern=rf"^({'|'.join(CUTS)}|[KNU]{{2,100}})\Z")] = "whole"


class Declaration(ClassRule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A protocol that a user declares.

    Attributes
    ----------
    name : str
        A lower-case word: the manifest is called ``imagenet/NAME``.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_.]{0,40}\Z")]


@dataclass(frozen=True, slots=True)
class Partition:
    """The classes by role, each sorted; a known class's label is its place, the others' `NEGATIVE` and `UNKNOWN`."""

    known: tuple[str, ...]
    negative: tuple[str, ...]
    unknown: tuple[str, ...]

    def labels(self) -> dict[str, int]:
        """Return the label of every class."""
        return (
            dict.fromkeys(self.negative, NEGATIVE)
            | dict.fromkeys(self.unknown, UNKNOWN)
            | {name: label for label, name in enumerate(self.known)}
        )


RULES = fact(__package__, "rules", dict[str, ClassRule])
"""P1, P2 and P3."""


def partition(rule: ClassRule, hierarchy: Graph, leaves: Collection[str], *, overlap: Overlap = "each") -> Partition:
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
        A class would be in two roles, or there is no known class.
    HierarchyError
        A superclass is not in the hierarchy.
    """
    found: dict[str, list[str]] = {"K": [], "N": [], "U": []}
    for letter, nodes in (("N", rule.negative), ("U", rule.unknown)):
        found[letter] = [leaf for node in nodes for leaf in leaves_under(hierarchy, node, leaves)]
    taken: set[str] = set()
    for node in rule.known:
        own = [leaf for leaf in leaves_under(hierarchy, node, leaves) if leaf not in taken]
        if overlap == "first":
            taken.update(own)
        half = len(own) // 2
        cuts = {"whole": "K", "halves": "K" * half + "N" * (len(own) - half), "sixths": SIXTHS}
        for leaf, letter in zip(own, cycle(cuts.get(rule.cut, rule.cut)), strict=False):
            found[letter].append(leaf)
    known, negative, unknown = (tuple(sorted(set(names))) for names in found.values())
    roles = {"known": known, "negative": negative, "unknown": unknown}
    for one, other in combinations(roles, 2):
        if both := sorted(set(roles[one]) & set(roles[other])):
            raise ProtocolError(
                f"Classes would be {one} and {other} at once",
                found=f"{len(both)}, the first {both[0]}",
                hint="in a hierarchy with several parents superclasses overlap: take its tree, or other superclasses",
            )
    if not known:
        raise ProtocolError("No class of the dataset lies below the known superclasses", found="0 known classes")
    return Partition(known, negative, unknown)


HIERARCHIES = {
    "published": "the one-parent tree of the published protocols",
    "dag": "all hypernyms of WordNet 3.0: 118 dogs",
}
MISSING = {
    "refuse": "a class of the protocol that the data set lacks is an error",
    "report": "it is left out and the notes say so; all other classes keep role and label",
    "restrict": "the classes are restricted to those of the training source before they are cut, as the authors' code "
    "does: classes change sides and labels",
}


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
    own, where = declared(text, Declaration, "protocol", "There is no such ImageNet protocol", expected)
    named = [*own.known, *own.negative, *own.unknown]
    repeated = sorted({one for one in named if named.count(one) > 1})
    leaves = sorted(set(named) & set(ilsvrc2012_classes()))
    if own.name in RULES or repeated or leaves:
        wrong = f"{repeated[0][:40]!r} twice" if repeated else f"{leaves[0]}, which is a class" if leaves else own.name
        raise ProtocolError(
            "The declaration of the protocol is inconsistent",
            where=where,
            expected=f"different superclasses, none of them a class, and a name other than {', '.join(RULES)}",
            found=wrong,
        )
    return canonical_json(msgspec.to_builtins(own)).decode("utf-8")


def declaration_of(text: str) -> Declaration:
    """Return the declaration that a value of the parameter ``protocol`` stands for."""
    if text in RULES:
        return Declaration(name=text, **msgspec.structs.asdict(RULES[text]))
    return msgspec.json.decode(text, type=Declaration)


PARAMETERS = (
    Parameter(
        "protocol",
        "p1",
        read_protocol,
        "p1, p2, p3, or a TOML or JSON file with name, known, negative, unknown (superclasses) and cut",
    ),
    choice("hierarchy", HIERARCHIES),
    whole("seed", 42, "of the split in train and val; published: 42", most=LARGEST_SEED),
    choice(
        "formula",
        get_args(Formula),
        "order of two floating-point operations in the split: that of scikit-learn 1.0 and later, or of 0.24",
    ),
    choice("missing", MISSING),
    wordnet_parameter(),
)
