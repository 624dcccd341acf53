"""The role of a list (train, val, test), guessed from the names of its file and folders: `read_role`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

Role = Literal["train", "val", "test"]
ROLE_ORDER: tuple[Role, ...] = ("train", "val", "test")
_WORDS: dict[str, tuple[Role, ...]] = {
    **dict.fromkeys(("train", "training", "tr", "trn", "labeled", "labelled", "support"), ("train",)),
    **dict.fromkeys(("unlabeled", "unlabelled"), ("train",)),
    **dict.fromkeys(("val", "va", "valid", "validate", "validation", "dev", "minival", "holdout"), ("val",)),
    **dict.fromkeys(("test", "testing", "te", "tst", "eval", "query", "testdev"), ("test",)),
    "trainval": ("train", "val"),
    "valtest": ("val", "test"),
}
# Adjacent words that form one word in this order: compound roles, and COCO's test-dev.
_JOINED = {("train", "val"), ("val", "test"), ("test", "dev")}
_LIST_WORD = "lists?|splits?|set|files?|images|img|ids|annotations"
_ROLE_WORD = re.compile(rf"({'|'.join(sorted(_WORDS, key=len, reverse=True))})?(?:{_LIST_WORD})*")
_PART = re.compile(r"(?i)\D*(?:train|val|dev|test)\D*")
_MOST_PARTS = 12
_FOLD = re.compile(r"(?i)(?:cv[_-]?)?folds?=")
"""A value of a column of folds."""
_UNIT = re.compile(r"[^\W_]+")
_PIECES = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=\d)(?=\D)|(?<=\D)(?=\d)")
_NAMES = 1 << 13
_SUFFIX = re.compile(r"(?i)(?:-\d{5}-of-\d{5})?(?:\.(?:txt|list|lst|csv|tsv|jsonl?|odgt|ya?ml|parquet))?$")
"""Endings of a name without information on the role: the shard of a table, the suffix of a file."""


_OF_FOLD = "each fold is tested on in turn"


@dataclass(frozen=True, slots=True)
class RoleGuess:
    """Role of a list guessed from its path.

    Attributes
    ----------
    path : str
        As given.
    roles : tuple of {"train", "val", "test"}
        In this order; two for ``trainval`` and ``valtest``; empty if the name states no role or contradicts itself.
    family : tuple of str
        The remaining words of the name, in lower case: ``("midog", "1b")``.
    folder : str
        The folder in which families are compared, without a folder that states the role; ``""`` for the topmost.
    words : tuple of str
        The words that state `roles`, as written.
    why : str
        The reason, without full stop: ``the name says "train"``, ``its folder says "valid"``.
    unlabelled : bool
        Whether the list is for training without labels.
    """

    path: str
    roles: tuple[Role, ...]
    family: tuple[str, ...]
    folder: str
    words: tuple[str, ...] = ()
    why: str = ""
    unlabelled: bool = False

    @property
    def is_fold(self) -> bool:
        """Whether the list is a fold of a table: it tests what is trained on the other folds."""
        return not self.roles and self.why == _OF_FOLD

    @property
    def family_name(self) -> str:
        """The words of the family as one text, ``midog 1b``."""
        return " ".join(self.family)


@dataclass(frozen=True, slots=True)
class _Part:
    """Words of a component of a path: those that name roles (`hits`), and the remaining words."""

    hits: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def roles(self) -> tuple[Role, ...]:
        """The role that the words name, both roles of a compound, or no role if the words contradict each other."""
        words = [word.lower() for word in self.hits]
        roles = {role for word in words for role in _WORDS[word]}
        joined = [pair for pair in pairwise(words) if pair in _JOINED]
        if len(words) == 2 and joined:
            roles = {"test"} if words[1] == "dev" else roles
        elif len({_WORDS[word] for word in words}) > 1:
            return ()
        return tuple(role for role in ROLE_ORDER if role in roles)


def _part(text: str) -> _Part:
    hits, left = list[str](), list[str]()
    for unit in _UNIT.findall(text):
        rest = ""
        for piece in _PIECES.split(unit):
            match = _ROLE_WORD.fullmatch(piece.lower())
            if match is None:
                rest += piece.lower()
            elif match[1]:
                hits.append(piece[: len(match[1])])
        left += [rest] * bool(rest)
    return _Part(tuple(hits), tuple(left))


@lru_cache(_NAMES)
def read_role(path: str) -> RoleGuess:
    """Return the role and family of a list by its path below the folder, with or without suffix.

    The file name comes first, then the folders from the innermost outwards; JSON keys count as folders.
    """
    # A list of a table's column is named by file and value: meta.csv[split=train].
    *folders, name = _SUFFIX.sub("", path.replace("\\", "/").replace("[", "/").rstrip("]")).split("/")
    parts = [_part(name), *map(_part, reversed(folders))]
    rest = (" ".join(part.left) if part.hits else text for text, part in zip(reversed(folders), parts[1:], strict=True))
    folder = "/".join([text.lower() for text in rest if text][::-1])
    guess = RoleGuess(path, (), parts[0].left, folder, parts[0].hits, "no name says train, val or test")
    if parts[0].hits and not parts[0].roles:
        both = " and ".join(f'"{word}"' for word in dict.fromkeys(parts[0].hits))
        return replace(guess, why=f"the name says {both}: choose with --role")
    for depth, part in enumerate(parts):
        if part.roles:
            unlabelled = any(word.lower().startswith("unl") for word in part.hits)
            quoted = " and ".join(f'"{word}"' for word in dict.fromkeys(part.hits))
            why = (
                f"its folder says {quoted}" if depth else f"the name says {quoted}"
            ) + ": unlabelled training" * unlabelled
            return replace(guess, roles=part.roles, words=part.hits, why=why, unlabelled=unlabelled)
    return replace(guess, why=_OF_FOLD) if _FOLD.match(name) else guess


def are_parts(values: Sequence[str]) -> bool:
    """Return whether values beside images state roles, at least two: ``Training``, ``PublicTest``, ``PrivateTest``."""
    if len(values) > _MOST_PARTS or not all(map(_PART.fullmatch, values)):
        return False
    roles = {read_role(value).roles for value in values}
    return len(roles) > 1 and () not in roles
