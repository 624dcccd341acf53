"""What the numbers of COCO JSON say of each other: annotations that repeat, or whose image or category is not there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from curation.errors import AnnotationFormatError, DamagedFileError
from curation.input_files import InputFile

_Id = int | str
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _Named(msgspec.Struct, frozen=True, gc=False):
    id: _Id = ""
    file_name: str = ""
    name: str = ""


class _Annotation(msgspec.Struct, frozen=True, gc=False):
    id: int | str | None = None
    image_id: int | str | None = None
    category_id: int | str | None = None


class _Coco(msgspec.Struct, frozen=True):
    images: list[_Named]
    annotations: list[_Annotation] = []
    categories: list[_Named] = []


@dataclass(frozen=True)
class CocoFacts:
    """What the numbers of one COCO JSON file say of each other.

    Attributes
    ----------
    images : tuple
        Number of each image, in the order of the file.
    annotations : int
        How many there are.
    categories : mapping of int or str to str
        Name of each category by its number.
    repeated_annotations : mapping of int or str to tuple
        Images of the annotations that have one number, by this number, in the order of the file.
    orphans : tuple
        Number of each annotation whose image is not there, with that image.
    undeclared : mapping
        Annotations of each category that is not declared.
    repeated_files : mapping of str to tuple
        Numbers of the images that have one file name.
    repeated_images : mapping of int or str to tuple of str
        File names of the images that have one number.
    on_repeated : int
        Annotations of such numbers.
    repeated_categories : mapping of int or str to tuple of str
        Names of the categories that have one number.
    used : int
        Declared categories with an annotation.
    """

    images: tuple[_Id, ...]
    annotations: int
    categories: Mapping[_Id, str]
    repeated_annotations: Mapping[_Id, tuple[_Id | None, ...]]
    orphans: tuple[tuple[_Id | None, _Id | None], ...]
    undeclared: Mapping[_Id, int]
    repeated_files: Mapping[str, tuple[_Id, ...]]
    repeated_images: Mapping[_Id, tuple[str, ...]]
    on_repeated: int
    repeated_categories: Mapping[_Id, tuple[str, ...]]
    used: int


def read_coco_facts(path: Path) -> CocoFacts:
    """Read what the numbers of COCO JSON say of each other.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    DamagedFileError
        It is no JSON.
    AnnotationFormatError
        It is no COCO JSON.
    """
    try:
        coco = msgspec.json.decode(InputFile(path, kind="annotation file").data, type=_Coco)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        kind = AnnotationFormatError if isinstance(error, msgspec.ValidationError) else DamagedFileError
        raise kind("The file is no COCO JSON", where=str(path), found=str(error)[:200]) from None
    images, declared = {one.id for one in coco.images}, {one.id: one.name for one in coco.categories}
    categories = Counter(one.category_id for one in coco.annotations if one.category_id is not None)
    repeated = _repeated((one.id, one.file_name) for one in coco.images)
    return CocoFacts(
        tuple(one.id for one in coco.images),
        len(coco.annotations),
        declared,
        _repeated((one.id, one.image_id) for one in coco.annotations if one.id is not None),
        tuple((one.id, one.image_id) for one in coco.annotations if one.image_id not in images),
        {number: count for number, count in categories.items() if number not in declared},
        _repeated((one.file_name, one.id) for one in coco.images if one.file_name),
        repeated,
        sum(one.image_id in repeated for one in coco.annotations),
        _repeated((one.id, one.name) for one in coco.categories),
        len(categories.keys() & declared.keys()),
    )


def _repeated(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, tuple[_Value, ...]]:
    pairs = list(pairs)
    counts = Counter(key for key, _ in pairs)
    found = defaultdict[_Key, list[_Value]](list)
    for key, value in pairs:
        if counts[key] > 1:
            found[key].append(value)
    return {key: tuple(values) for key, values in found.items()}
