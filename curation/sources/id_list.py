"""Reader of plain lists of images, one id a line: a source that says which images there are, and nothing of them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec
import numpy as np

from curation.errors import AnnotationFormatError, ImageIdError
from curation.ids import check_native, native_number, native_of
from curation.input_files import filled_lines
from curation.sources.content import FileContent
from curation.sources.datasets import family, namespace_of
from curation.sources.integrity import check_unique
from curation.sources.source import Categories, FileRecord, Images, Source

PHOTO_SUFFIX = r"\.(?:jpe?g|png)"
_SUFFIX = re.compile(rf"{PHOTO_SUFFIX}\Z", re.IGNORECASE)


class ListedImage(msgspec.Struct, frozen=True):
    """One entry of ``images`` in a COCO file that serves as a list."""

    id: int | str
    file_name: str = ""


class ListedImages(msgspec.Struct, frozen=True):
    """What a list needs of a COCO file."""

    images: list[ListedImage]


def bare_id(text: str) -> str:
    """Return an id without the folder before it and the suffix of a photo behind it.

    >>> bare_id("JPEGImages/2008_000008.jpg")
    '2008_000008'
    """
    return _SUFFIX.sub("", PurePosixPath(text).name)


def parse_id_list(content: FileContent, *, dataset: str, part: str) -> Source:
    """Return the images of a list in file order, as a presence-only source without classes.

    A line is an id, with or without its namespace and the suffix of a photo. COCO's numbers get their zeros.

    Raises
    ------
    AnnotationFormatError
        The file is not UTF-8, or a line is no id of the dataset.
    DuplicateIdError
        An image stands twice.
    """
    namespace = namespace_of(dataset)
    lines = filled_lines(content.data, content.name, AnnotationFormatError, "The list is not UTF-8 text")
    natives = [_native(line, namespace, f"{content.name}, line {number}") for number, line in lines]
    check_unique(natives, "image", lambda row: f"{content.name}, line {lines[row][0]}")
    return Source.of(
        dataset,
        part,
        images=Images.of(natives),
        categories=Categories(numbers=(), names=(), supercategories=()),
        objects=None,
        presence=np.empty((0, 2), np.int32),
        files=(FileRecord(content.name, content.sha256, content.size, len(natives)),),
    )


def _native(line: str, namespace: str, where: str) -> str:
    text = line.removeprefix(f"{namespace}:")
    native = native_of(bare_id(text), namespace)
    try:
        check_native(native)
    except ImageIdError:
        native = ""
    numbered = family(namespace) in ("coco", "voc")
    if not native or ":" in native or " " in native or (numbered and native_number(native) is None):
        raise AnnotationFormatError(
            "A line of the list is no image id",
            where=where,
            expected=f"one id of {namespace} a line",
            found=repr(line[:80]),
        )
    return native
