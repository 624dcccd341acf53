"""Ids: images as ``namespace:native``, unique when datasets are merged, and the classes of ILSVRC-2012.

VOC and COCO ids collide as integers (VOC2007 ``000009`` and COCO ``9``); with the namespace they cannot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from curation.core.errors import ImageIdError

MAX_NATIVE_LENGTH = 255
_NAMESPACE = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")
_COCO_DIGITS = 12
_VOC_DIGITS, _VOC_YEAR_DIGITS = 6, 4
LONGEST_NUMBER = 19

NATIVE_FORMS: Mapping[str, str] = {"coco": "[0-9]{12}", "voc2007": "[0-9]{6}", "voc2012": "[0-9]{4}_[0-9]{6}"}
"""Regular expressions of the ids of a namespace in lists that mix several datasets."""


@dataclass(frozen=True, slots=True, order=True)
class ImageId:
    """An image of a dataset, ordered by code point of its text.

    Attributes
    ----------
    namespace : str
        The dataset whose ids are unique among themselves: ``coco``, ``voc2007``, ``openimages``, …
    native : str
        The id inside that dataset as its own documentation writes it (COCO: 12 digits).
    """

    namespace: str
    native: str

    def __post_init__(self) -> None:
        if not _NAMESPACE.match(self.namespace):
            raise ImageIdError(
                "The namespace of an image id is malformed",
                where=f"{self.namespace}:{self.native}"[:300],
                expected="a lower-case word such as coco, voc2007 or openimages",
                found=repr(self.namespace[:60]),
            )
        check_native(self.native)

    def __str__(self) -> str:
        return f"{self.namespace}:{self.native}"


def parse_image_id(text: str) -> ImageId:
    """Return the image id that a text such as ``coco:000000397133`` denotes.

    Raises
    ------
    ImageIdError
        The text has no namespace, or one of its halves is malformed.
    """
    namespace, colon, native = text.partition(":")
    if not colon:
        raise ImageIdError(
            "An image id has no namespace",
            where=repr(text[:80]),
            expected="namespace:native, for example coco:000000397133 or voc2007:000012",
        )
    return ImageId(namespace, native)


def is_native(text: str) -> bool:
    """Return whether a text can be a native id: 1 to 255 printable characters without outer blanks."""
    return 0 < len(text) <= MAX_NATIVE_LENGTH and text.isprintable() and text == text.strip()


def check_native(native: str) -> None:
    """Raise `ImageIdError` unless a text can be a native id (see `is_native`)."""
    if is_native(native):
        return
    raise ImageIdError(
        "A native image id is malformed",
        where=repr(native[:80]),
        expected=f"1 to {MAX_NATIVE_LENGTH} printable characters, no blanks at the ends",
        found=f"{len(native)} characters",
    )


def native_number(native: str) -> int | None:
    """Return a native id as a number, or None if it is not a number.

    >>> native_number("2008_000008")
    2008000008
    """
    digits = native.replace("_", "")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < LONGEST_NUMBER else None


def native_of(text: str, namespace: str) -> str:
    """Return the native id for a bare number of COCO or VOC; return any other text unchanged.

    >>> native_of("139", "coco"), native_of("12", "voc2007"), native_of("2008000008", "voc2012")
    ('000000000139', '000012', '2008_000008')
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _COCO_DIGITS):
        return text
    if namespace == "coco":
        return coco_native(int(text))
    if namespace == "voc2007":
        return text.zfill(_VOC_DIGITS)
    if namespace == "voc2012" and len(text) == _VOC_YEAR_DIGITS + _VOC_DIGITS:
        return f"{text[:_VOC_YEAR_DIGITS]}_{text[_VOC_YEAR_DIGITS:]}"
    return text


def coco_native(number: int) -> str:
    """Return the native form of a COCO image number: twelve digits, as in its file names.

    >>> coco_native(139)
    '000000000139'
    """
    if not 0 <= number < 10**_COCO_DIGITS:
        raise ImageIdError("A COCO image number is out of range", where=str(number), expected="0 to 999999999999")
    return f"{number:0{_COCO_DIGITS}d}"


@cache
def ilsvrc2012_classes() -> tuple[str, ...]:
    """Return the 1,000 wnids, sorted: the index of a class is its position."""
    return tuple(
        resources.files("curation.core").joinpath("ilsvrc2012_classes.txt").read_text(encoding="ascii").split()
    )
