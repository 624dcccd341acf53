"""Which list trains, validates and tests, by the names of files and folders, and which lists may be held together.

A name gives roles and a *family*: what is left of it without the words of roles and lists. Lists are compared as roles
within one folder and family alone (kind ``family``): folds, versions and protocols share images by design.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from curation.sources.source import Int64s

Role = Literal["train", "val", "test"]
Kind = Literal["family", "parts", "between"]


@dataclass(frozen=True, slots=True)
class RoleGuess:
    """What the path of a list says of its role.

    Attributes
    ----------
    path : str
        As given.
    roles : tuple of {"train", "val", "test"}
        In this order; two for ``trainval`` and ``valtest``; none where the name says none, or contradicts itself.
    family : tuple of str
        Words that are left, in lower case: ``("midog", "1b")``.
    folder : str
        The folder in which the family is compared, without a folder that said the role; ``""`` for the uppermost.
    words : tuple of str
        Those that led to `roles`, as written.
    why : str
        A sentence without full stop: ``the name says "train"``, ``its folder "valid" says so``.
    unlabelled : bool
        Whether it is training without labels.
    """

    path: str
    roles: tuple[Role, ...]
    family: tuple[str, ...]
    folder: str
    words: tuple[str, ...] = ()
    why: str = ""
    unlabelled: bool = False

    @property
    def family_name(self) -> str:
        """The words of the family as one text, ``midog 1b``."""
        return " ".join(self.family)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two lists that are held together.

    Attributes
    ----------
    a, b : int
        Positions of the lists: the one that comes first as train, val, test is `a`.
    roles : (str, str)
        The roles in which they are compared; empty texts where none is (kinds ``parts`` and ``between``).
    kind : {"family", "parts", "between"}
        ``family``: roles that exclude each other, errors. ``parts``: the family of one is the beginning of the
        other's, in no such roles; patients and subjects are told as notes. ``between``: other families that share
        images, notes.
    """

    a: int
    b: int
    roles: tuple[Role | Literal[""], Role | Literal[""]] = ("", "")
    kind: Kind = "family"


def read_role(path: str) -> RoleGuess:
    """Return the role and family of a list by its path below the folder, with or without suffix, keys of JSON as folders.

    Looks at the file name first, then at the folders from the inside out.
    """
    raise NotImplementedError


def said_role(path: str, roles: Sequence[Role]) -> RoleGuess:
    """Return the guess of a list whose roles the user says (none for ``none``); its family is that of its name."""
    raise NotImplementedError


def comparisons(guesses: Sequence[RoleGuess], lines: Sequence[int]) -> list[Pair]:
    """Return the pairs of lists of kind ``family``, then those of kind ``parts``, each by position.

    Parameters
    ----------
    guesses : sequence of RoleGuess
    lines : sequence of int
        Of each list; empty lists are held against none.
    """
    raise NotImplementedError


def between_families(guesses: Sequence[RoleGuess], overlaps: Int64s, compared: Sequence[Pair]) -> list[Pair]:
    """Return pairs of kind ``between``: lists that share an image and are not compared as roles.

    Parameters
    ----------
    overlaps : ndarray of int64, shape (n, n)
        Of `curation.audit.identity.Images.overlaps`.
    compared : sequence of Pair
        What `comparisons` returned.
    """
    raise NotImplementedError
