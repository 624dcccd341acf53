"""Known, negative and unknown classes of the ImageNet protocols P1, P2, P3: superclasses, cut by a rule.

Then the parameters that are read from ``--set KEY=VALUE``, and protocols of one's own from a file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from curation.benchmarks.facts import fact
from curation.benchmarks.imagenet.images import Formula
from curation.benchmarks.parameters import LARGEST_SEED, Parameter, choice, declared, whole, wordnet_parameter
from curation.canonical import canonical_json
from curation.errors import ProtocolError
from curation.hierarchy.hierarchy import leaves_under
from curation.ilsvrc2012 import ilsvrc2012_classes

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph


Overlap = Literal["each", "first"]

CUTS: dict[str, str] = {
    "whole": "each superclass is wholly known, negative or unknown",
    "halves": "the sorted leaves of the known superclass: the first len // 2 are known, the rest negative",
    "sixths": "of each mixed superclass's sorted leaves, counted from 0: even places are known, odd multiples of 3 "
    "unknown, other odd ones negative (K N K U K N)",
}
"""Cuts by name. Any pattern of the letters K, N and U is a cut too, repeated along each superclass's sorted leaves."""

SIXTHS = "KNKUKN"
_PATTERN = re.compile(r"[KNU]{2,100}")


class ClassRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a protocol's classes follow from superclasses.

    Attributes
    ----------
    known, negative, unknown : tuple of str
        Superclasses by wnid. Those of `known` are cut; those of the other two are negative or unknown as a whole.
    cut : str
        ``whole``, ``halves``, ``sixths``, or a pattern such as ``KKNU``.
    """

    known: tuple[str, ...]
    negative: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    cut: str = "whole"


class Declaration(ClassRule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A protocol of one's own.

    Attributes
    ----------
    name : str
        A lower-case word: the manifest is called ``imagenet/NAME``.
    """

    name: str


NEGATIVE, UNKNOWN = -1, -2
"""Labels of the classes that are not known (repository AIML-IfI/openset-imagenet)."""


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


def is_cut(text: str) -> bool:
    """Return whether a text names a cut or is a pattern of one."""
    return text in CUTS or _PATTERN.fullmatch(text) is not None


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
    lists = [leaves_under(hierarchy, node, leaves) for node in rule.known]
    known, negative, unknown = _cut(rule, _apart(lists) if overlap == "first" else lists)
    found = Partition(
        known=_sorted(known),
        negative=_sorted([*negative, *_below(hierarchy, rule.negative, leaves)]),
        unknown=_sorted([*unknown, *_below(hierarchy, rule.unknown, leaves)]),
    )
    _require_sound(found)
    return found


def _apart(lists: Sequence[Sequence[str]]) -> list[list[str]]:
    taken: set[str] = set()
    apart = []
    for leaves in lists:
        apart.append([leaf for leaf in leaves if leaf not in taken])
        taken.update(leaves)
    return apart


def _cut(rule: ClassRule, lists: Sequence[Sequence[str]]) -> tuple[list[str], list[str], list[str]]:
    known: list[str] = []
    negative: list[str] = []
    unknown: list[str] = []
    for leaves in lists:
        if rule.cut == "whole":
            known += leaves
        elif rule.cut == "halves":
            known += leaves[: len(leaves) // 2]
            negative += leaves[len(leaves) // 2 :]
        else:
            for leaf, letter in zip(leaves, cycle(SIXTHS if rule.cut == "sixths" else rule.cut), strict=False):
                {"K": known, "N": negative, "U": unknown}[letter].append(leaf)
    return known, negative, unknown


def _below(hierarchy: Graph, nodes: Sequence[str], leaves: Collection[str]) -> list[str]:
    return [leaf for node in nodes for leaf in leaves_under(hierarchy, node, leaves)]


def _sorted(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _require_sound(found: Partition) -> None:
    pairs = (("known", "negative"), ("known", "unknown"), ("negative", "unknown"))
    for one, other in pairs:
        if both := sorted(set(getattr(found, one)) & set(getattr(found, other))):
            raise ProtocolError(
                f"Classes would be {one} and {other} at once",
                found=f"{len(both)}, the first {both[0]}",
                hint="in a hierarchy with several parents superclasses overlap: take its tree, or other superclasses",
            )
    if not found.known:
        raise ProtocolError("No class of the dataset lies below the known superclasses", found="0 known classes")


HIERARCHIES = {
    "published": "the one-parent tree of the published protocols",
    "dag": "all hypernyms of WordNet 3.0: 118 dogs",
}
MISSING = {
    "refuse": "a class of the protocol that the data set lacks is an error",
    "report": "it is left out and told in the notes; all other classes keep role and label",
    "restrict": "the classes are restricted to those of the training source before they are cut, as the authors' code "
    "does: classes change sides and labels",
}
_NAME = re.compile(r"[a-z0-9][a-z0-9_.]{0,40}")


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
    _check(own, where)
    return canonical_json(msgspec.to_builtins(own)).decode("utf-8")


def declaration_of(text: str) -> Declaration:
    """Return the declaration that a value of the parameter ``protocol`` stands for."""
    if text in RULES:
        return Declaration(name=text, **msgspec.structs.asdict(RULES[text]))
    return msgspec.json.decode(text, type=Declaration)


def _check(own: Declaration, where: str) -> None:
    named = [*own.known, *own.negative, *own.unknown]
    wrong = ""
    if not _NAME.fullmatch(own.name) or own.name in RULES:
        wrong = f"name {own.name[:40]!r}"
    elif not is_cut(own.cut):
        wrong = f"cut {own.cut[:40]!r}"
    elif not own.known:
        wrong = "no known superclass"
    elif repeated := sorted({one for one in named if named.count(one) > 1}):
        wrong = f"{repeated[0][:40]!r} twice"
    elif leaves := sorted(set(named) & set(ilsvrc2012_classes())):
        wrong = f"{leaves[0]}, which is a class and no superclass"
    if wrong:
        raise ProtocolError(
            "The protocol's declaration does not hold together",
            where=where,
            expected=f"a name of its own, different superclasses, a cut ({', '.join(CUTS)} or a pattern such as KKNU)",
            found=wrong,
        )


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
