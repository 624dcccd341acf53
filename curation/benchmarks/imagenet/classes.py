"""Known, negative and unknown classes of the ImageNet protocols P1, P2, P3: superclasses, cut by a rule."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Literal

from curation.benchmarks.facts import fact
from curation.errors import ProtocolError
from curation.hierarchy.hierarchy import leaves_under

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


@dataclass(frozen=True, slots=True)
class ClassRule:
    """How a protocol's classes follow from superclasses.

    Attributes
    ----------
    cut : str
        ``whole``, ``halves``, ``sixths``, or a pattern such as ``KKNU``.
    known, negative, unknown : tuple of str
        Superclasses by wnid. Those of `known` are cut; those of the other two are negative or unknown as a whole.
    """

    cut: str
    known: tuple[str, ...]
    negative: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Partition:
    """The classes by role, each sorted; a known class's label is its place, negative is -1, unknown -2."""

    known: tuple[str, ...]
    negative: tuple[str, ...]
    unknown: tuple[str, ...]

    def labels(self) -> dict[str, int]:
        """Return the label of every class."""
        return (
            dict.fromkeys(self.negative, -1)
            | dict.fromkeys(self.unknown, -2)
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
