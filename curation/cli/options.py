"""Options that several verbs share, declared once: a verb's record of options has them as its bases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from curation.cli.signature import OneOf, pairs

if TYPE_CHECKING:
    from curation.sources.photos import PhotoFolder
    from curation.sources.slots import Reading, SourceSlot
    from curation.sources.source import Source


@dataclass(frozen=True, kw_only=True)
class CacheOption:
    """Whether parsed annotation files are kept.

    Attributes
    ----------
    no_cache
        parse annotation files again, and store nothing
    """

    no_cache: bool = False


@dataclass(frozen=True, kw_only=True)
class BoxOptions(CacheOption):
    """How annotation files are read.

    Attributes
    ----------
    bad_boxes
        what to do with boxes that are not finite, negative or beyond any image (dropped ones are counted)
    """

    bad_boxes: Literal["error", "drop"] = "error"


@dataclass(frozen=True, kw_only=True)
class SourceOptions(BoxOptions):
    """The raw datasets that a verb reads.

    Attributes
    ----------
    source
        a raw dataset: its root, an annotation file, or a table; NAME is a source of the protocol, or a dataset whose
        root holds several of them; PART chooses among the parts of a root or table (repeatable)
    seam
        what becomes of MTSD's signs across the seam of a panorama: left out, two objects, the wider of the two
    """

    source: tuple[Annotated[str, "NAME[@PART]=PATH"], ...] = ()
    seam: Literal["drop", "split", "widest"] = "drop"

    @property
    def sources(self) -> dict[str, str]:
        """The paths by ``NAME[@PART]``."""
        return pairs(self.source, "--source")

    @property
    def reading(self) -> Reading:
        """How the files are read."""
        from curation.sources.slots import Reading

        return Reading(cache=not self.no_cache, bad_boxes=self.bad_boxes, seam=self.seam)

    def open(self, slots: Sequence[SourceSlot], *, but: Collection[str] = ()) -> dict[str, Source]:
        """Return the sources that are given, by slot name, all `but` those of some names."""
        from curation.sources.given import open_slots

        given = {key: path for key, path in self.sources.items() if key.partition("@")[0] not in but}
        return open_slots(given, slots, self.reading)


@dataclass(frozen=True, kw_only=True)
class Amount:
    """How much a check prints beside what needs attention.

    Attributes
    ----------
    all
        print everything, not only what needs attention
    quiet
        print the last line alone, the result
    """

    all: Annotated[bool, OneOf("amount")] = False
    quiet: Annotated[bool, OneOf("amount")] = False


def photo_folders(texts: Sequence[str], option: str, *, known: Collection[str] | None = None) -> dict[str, PhotoFolder]:
    """Return the folders of ``[NAME=]DIR`` by the name of a source, that of all others under ``""``."""
    from curation.sources.photos import PhotoFolder

    given = pairs(texts, option, bare="", known=known)
    return {name: PhotoFolder(Path(folder)) for name, folder in given.items()}
