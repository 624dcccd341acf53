"""Names of classes compared after folding of case and aliases: ``Aeroplane`` and ``airplane`` are one class."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from curation.manifest.header import ClassEntry
from curation.sources.datasets import COCO_NAMES_OF_VOC

UNKNOWN_NAME = "unknown"


class ClassNames:
    """The classes of a benchmark, found by any of their names.

    Parameters
    ----------
    classes : sequence of ClassEntry
        In the order of their positions. Aliases of an entry count, and the six names in which VOC and COCO differ.
    """

    def __init__(self, classes: Sequence[ClassEntry]) -> None:
        self._aliases = _aliases(classes)
        self._position: dict[str, int] = {}
        for position, entry in enumerate(classes):
            self._position.setdefault(self.folded(entry.name), position)

    def folded(self, name: str) -> str:
        """Return the one form of all spellings of a class."""
        plain = fold(name)
        return self._aliases.get(plain, plain)

    def position(self, name: str) -> int:
        """Return the position of the class of this name, -1 where there is none."""
        return self._position.get(self.folded(name), -1)

    def is_unknown(self, name: str) -> bool:
        """Return whether a name is the label of unknown objects and of no class."""
        return fold(name) == UNKNOWN_NAME and self.position(name) < 0

    def variants(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return the different spellings among some names, by their common form, in order."""
        groups: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            groups.setdefault(self.folded(name), []).append(name)
        return groups


def fold(name: str) -> str:
    """Return a name in lower case, with single blanks and none at the ends."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def known_aliases(name: str) -> tuple[str, ...]:
    """Return VOC's name of a COCO class, or COCO's of a VOC class, where the two differ."""
    plain = fold(name)
    pairs = [pair for pair in COCO_NAMES_OF_VOC.items() if pair[0] != pair[1] and plain in pair]
    return tuple(other for pair in pairs for other in pair if other != plain)


def _aliases(classes: Sequence[ClassEntry]) -> Mapping[str, str]:
    """Return the common form of each alias; an alias that is itself the name of a class of its own stays apart."""
    found = {fold(voc): fold(coco) for voc, coco in COCO_NAMES_OF_VOC.items()}
    for entry in classes:
        common = found.get(fold(entry.name), fold(entry.name))
        for alias in entry.aliases:
            found.setdefault(fold(alias), common)
    return found
