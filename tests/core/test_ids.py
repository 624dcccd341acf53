"""Image ids: what parses, what does not, and their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import ImageIdError
from curation.core.ids import ImageId, coco_native, native_number, native_of, parse_image_id

namespaces = st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True)
natives = st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable() and text == text.strip())


@given(namespaces, natives)
def test_format_and_parse_are_inverse(namespace: str, native: str) -> None:
    image = ImageId(namespace, native)
    assert str(image) == f"{namespace}:{native}"
    assert parse_image_id(str(image)) == image


@given(st.lists(st.tuples(namespaces, natives), min_size=2, max_size=6))
def test_ids_of_one_namespace_sort_as_their_text(pairs: list[tuple[str, str]]) -> None:
    namespace = pairs[0][0]
    images = sorted(ImageId(namespace, native) for _, native in pairs)
    assert [str(image) for image in images] == sorted(str(image) for image in images)


@pytest.mark.parametrize(
    "text",
    [
        "coco:000000397133",
        "voc2007:000012",
        "voc2012:2008_000008",
        "openimages:00166893b16a03ab",
        "imagenet:ILSVRC2012_val_00001049",
        "cub200:001.Black_footed_Albatross/Black_Footed_Albatross_0009_34",
        "x:a:b",
    ],
)
def test_ids_of_the_design(text: str) -> None:
    assert str(parse_image_id(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "000012", ":000012", "coco:", "COCO:1", "1coco:1", "co co:1", "coco: 1", "coco:1 ", "coco:a\nb", "coco:\x00",
     "coco:\u2028", "coco:" + "1" * 256, "c" * 33 + ":1", "ко:1", "coco\n:1"],
)  # fmt: skip
def test_texts_that_are_no_ids(text: str) -> None:
    with pytest.raises(ImageIdError):
        parse_image_id(text)


def test_coco_numbers() -> None:
    assert coco_native(9) == "000000000009"
    assert coco_native(999_999_999_999) == "999999999999"
    for number in (-1, 10**12):
        with pytest.raises(ImageIdError, match="out of range"):
            coco_native(number)


def test_voc_and_coco_stay_apart() -> None:
    assert parse_image_id("voc2007:000009") != parse_image_id("coco:000000000009")


@pytest.mark.parametrize(
    ("text", "namespace", "native"),
    [
        ("139", "coco", "000000000139"),
        ("000000000139", "coco", "000000000139"),
        ("12", "voc2007", "000012"),
        ("000012", "voc2007", "000012"),
        ("2008000008", "voc2012", "2008_000008"),
        ("2008_000008", "voc2012", "2008_000008"),
        ("12", "voc2012", "12"),
        ("12", "openimages", "12"),
        ("1234567890123", "coco", "1234567890123"),
        ("\u0661", "coco", "\u0661"),
        ("abc", "coco", "abc"),
        ("", "coco", ""),
    ],
)
def test_what_a_bare_number_stands_for(text: str, namespace: str, native: str) -> None:
    assert native_of(text, namespace) == native


@pytest.mark.parametrize(
    ("native", "number"),
    [
        ("000012", 12),
        ("2008_000008", 2_008_000_008),
        ("000000397133", 397_133),
        ("0", 0),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("a1", None),
        ("_", None),
        ("-1", None),
        ("\u0661", None),
    ],
)
def test_the_number_of_a_native_id(native: str, number: int | None) -> None:
    assert native_number(native) == number
