"""Patients, videos, drives, slides: groups of images by columns and names, and whether two lists share any.

Patterns are tried in a stated order; which one decided is part of every result. Where none fits, nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from curation.audit.identity import Images

Verdict = Literal["shared", "disjoint", "undecidable"]


@dataclass(frozen=True, slots=True)
class GroupExample:
    """A group on both sides, and its lines on each."""

    name: str
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What groups of images say of two lists.

    Attributes
    ----------
    verdict : {"shared", "disjoint", "undecidable"}
        Whether a group stands on both sides; *undecidable* where none can be read from these names.
    pattern : str
        Its name in reports: ``subject or patient``, ``drive, sequence or scene``, ``the column patient``; empty where
        none fits.
    noun : str
        What a group is called: ``patient``, ``drive``, ``video``, ``slide``, ``group``.
    both : int
        Groups on both sides.
    groups : (int, int)
        Groups of each list.
    lines : (int, int)
        Lines of each list in groups of both sides.
    of : (int, int)
        Lines of each list.
    without : (int, int)
        Lines of each list that have no group by this pattern.
    examples : tuple of GroupExample
        The first three, those with most lines first.
    tried : tuple of str
        Patterns that do not decide, and why: ``folder (fits 0 of 200 and 1,159 of 1,159 lines)``.
    also : tuple of str
        What further patterns and columns say, sentences.
    why : str
        Of *undecidable*: the reason where a pattern fits and decides nothing, such as groups that are classes.
    is_view : bool
        Whether a group is one instant from several sides (left and right): not the same image.
    """

    verdict: Verdict
    pattern: str = ""
    noun: str = "group"
    both: int = 0
    groups: tuple[int, int] = (0, 0)
    lines: tuple[int, int] = (0, 0)
    of: tuple[int, int] = (0, 0)
    without: tuple[int, int] = (0, 0)
    examples: tuple[GroupExample, ...] = ()
    tried: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    why: str = ""
    is_view: bool = False


class Groups:
    """The groups of a folder's images by every pattern, worked out once for all pairs of lists.

    Parameters
    ----------
    images : Images
    patterns : sequence of str
        Regular expressions of the user (``--group``), tried in order before all others: the first capture group is
        the group, searched in the path below `Images.root`.
    column : str
        Name of a column that is a group (``--group-column``), before all patterns.

    Raises
    ------
    UsageError
        A pattern is none, is too large, or has no capture group; no list has such a column.
    """

    def __init__(self, images: Images, patterns: Sequence[str] = (), column: str = "") -> None:
        self.images = images

    def compare(self, a: int, b: int, *, people_only: bool = False) -> GroupResult:
        """Return what groups say of two lists, by position.

        Parameters
        ----------
        people_only : bool
            Whether patients and subjects alone are asked for, as between parts of a benchmark.
        """
        raise NotImplementedError


def compare_groups(images: Images, a: int, b: int, patterns: Sequence[str] = (), column: str = "") -> GroupResult:
    """Return what groups say of two lists: `Groups.compare` of one pair."""
    return Groups(images, patterns, column).compare(a, b)
