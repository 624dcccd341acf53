"""What is one image: its whole path as written, or an id whose form tells its dataset; and how surely two lists share it.

Paths are compared as they are normalised by the reader (`PublishedList.images`), never by file name or last folder
alone: the frame ``0000000105`` of two drives are two images. Only `Shared` of strength *exact* or *bytes* may carry an
error; *likely* carries a warning, *hint* a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from curation.audit.id_vocabulary import Vocabulary
from curation.sources.published_list import PublishedList
from curation.sources.source import Int32s, Int64s

Strength = Literal["exact", "bytes", "likely", "hint", "none"]
Equal = Literal["sequence", "lines", "images", ""]


@dataclass(frozen=True, slots=True)
class Example:
    """An image that stands in two lists.

    Attributes
    ----------
    texts : (str, str)
        As each list writes it, normalised; equal unless the strength is *likely* or *hint*.
    lines : (int, int)
        The first line of each list that names it.
    """

    texts: tuple[str, str]
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shared:
    """What two lists have in common.

    Attributes
    ----------
    strength : {"exact", "bytes", "likely", "hint", "none"}
        *bytes*: the same lines, in the same or another order. *none*: nothing that can be told.
    images : int
        Distinct images in both.
    lines : (int, int)
        Lines of each list that name one of them.
    of : (int, int)
        Lines of each list.
    distinct : (int, int)
        Distinct images of each list.
    equal : {"sequence", "lines", "images", ""}
        The same images line by line, in another order, or with other repeats; empty where one list has more.
    examples : tuple of Example
        The first few by line of the second list.
    why : str
        Of *likely* and *hint*: what agrees, ``the last 2 folders and the name``, ``without leading zeros``.
    """

    strength: Strength
    images: int
    lines: tuple[int, int]
    of: tuple[int, int]
    distinct: tuple[int, int]
    equal: Equal = ""
    examples: tuple[Example, ...] = ()
    why: str = ""

    @property
    def inside(self) -> tuple[bool, bool]:
        """Whether all images of the first stand in the second, and of the second in the first."""
        return self.images == self.distinct[0] > 0, self.images == self.distinct[1] > 0


@dataclass(frozen=True)
class Images:
    """Every image that the lists of a folder name, once, and each list as positions among them.

    Attributes
    ----------
    vocabulary : Vocabulary
        The images: ids of COCO and VOC by their number, all others by their path below `root`.
    members : tuple of ndarray of int32
        Of each list, the position of each entry's image.
    lists : tuple of PublishedList
        The lists, in the same order.
    root : str
        The folders that all paths of all lists begin with, without final slash; empty where there are none.
    climbing : int
        Entries with a part ``..``, which stays as it is written.
    """

    vocabulary: Vocabulary
    members: tuple[Int32s, ...]
    lists: tuple[PublishedList, ...]
    root: str = ""
    climbing: int = 0

    @cached_property
    def uniques(self) -> tuple[Int32s, ...]:
        """Of each list, the positions of its images, each once, ascending."""
        raise NotImplementedError

    @cached_property
    def overlaps(self) -> Int64s:
        """Distinct images that two lists share (exact), shape (lists, lists); on the diagonal, how many each has."""
        raise NotImplementedError

    def texts(self, rows: Int32s | Int64s | Sequence[int]) -> list[str]:
        """Return images as they are told to the user: the path below `root`, or the id with its dataset."""
        return self.vocabulary.ids(rows)

    def exact(self, a: int, b: int, shown: int = 3) -> Shared:
        """Return what two lists share by whole path or by id: strength *exact*, *bytes* or *none*."""
        raise NotImplementedError

    def strength(self, a: int, b: int, shown: int = 3) -> Shared:
        """Return what two lists share, by the strongest sign that there is (`exact` first).

        Costs a look at every path: for pairs that are compared, not for all.
        """
        raise NotImplementedError


def images_of(lists: Sequence[PublishedList], namespace: str = "") -> Images:
    """Return the images of the lists of one folder.

    Parameters
    ----------
    lists : sequence of PublishedList
    namespace : str
        Of ids whose form tells no dataset; ``coco`` makes bare numbers of any width COCO's. A namespace other than
        COCO's and VOC's holds for all entries that have none written.
    """
    raise NotImplementedError
