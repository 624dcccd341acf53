"""Images as integers and back: forms of COCO and VOC, written namespaces, other texts, digests as in a manifest."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.audit.id_vocabulary import NAMESPACES, TEXT, Vocabulary, keys_by_form, named, numbered_together
from curation.manifest.importing import namespaced_by_form


def vocabulary(*lists: list[str], namespace: str = "") -> tuple[Vocabulary, list[list[int]]]:
    by_form = namespace in ("", *NAMESPACES)
    texts = ["".join(f"{text}\n" for text in one).encode() for one in lists]
    keys = [keys_by_form(text, by_form=by_form, namespace=namespace) for text in texts]
    pairs = zip(keys, texts, strict=True)
    found, members = numbered_together([named(own, text, namespace) for own, text in pairs], namespace)
    return found, [one.tolist() for one in members]


def test_the_form_of_an_id_names_its_dataset() -> None:
    found, members = vocabulary(["000000000139", "000012", "2008_000008", "img_7", "0042"])
    assert found.ids(members[0]) == ["coco:000000000139", "000012", "voc2012:2008_000008", "img_7", "0042"]
    # Beside numbers of four digits, six digits are not VOC2007's; alone they are.
    alone, _ = vocabulary(["000012"])
    assert alone.ids() == ["voc2007:000012"]
    assert alone.natives.tolist() == ["000012"]


@given(st.from_regex(r"\A([0-9]{12}|00[0-8][0-9]{3}|[0-9]{4}_[0-9]{6}|[0-9]{7,11}|[a-z_]{1,8})\Z"))
def test_forms_are_those_that_published_lists_are_imported_by(text: str) -> None:
    assert vocabulary([text])[0].ids() == [namespaced_by_form(text, NAMESPACES) or text]


def test_six_digits_beyond_the_last_image_of_voc2007_are_of_another_dataset() -> None:
    assert vocabulary(["009963"])[0].ids() == ["voc2007:009963"]
    assert vocabulary(["009963", "009964"])[0].ids() == ["009963", "009964"]


def test_an_id_is_the_same_with_and_without_its_namespace() -> None:
    found, members = vocabulary(
        ["000000000139", "voc2012:2008_000008"], ["coco:000000000139", "2008_000008", "coco:139"]
    )
    assert members == [[0, 1], [0, 1, 0]]
    assert len(found) == 2


@pytest.mark.parametrize(
    ("namespace", "text", "written"),
    [
        ("coco", "139", "coco:000000000139"),
        ("voc2007", "12", "voc2007:000012"),
        ("voc2012", "2008000008", "voc2012:2008_000008"),
        ("openimages", "00166893b16a03ab", "openimages:00166893b16a03ab"),
        ("openimages", "coco:000000000139", "coco:000000000139"),
        ("coco", "mine:a", "mine:a"),
        ("mine", "mine:img_7", "mine:img_7"),
        ("", "mine:img_7", "mine:img_7"),
    ],
)
def test_bare_ids_take_the_namespace_that_the_user_names(namespace: str, text: str, written: str) -> None:
    assert vocabulary([text], namespace=namespace)[0].ids() == [written]


def test_the_own_namespace_is_taken_off_where_it_is_written() -> None:
    for text in ("7", "img_7", "x" * 14):
        found, members = vocabulary([text], [f"mine:{text}"], namespace="mine")
        assert members == [[0], [0]]
        assert found.natives.tolist() == [text]


def test_numbering_keeps_every_line_and_the_order_that_is_asked_for() -> None:
    lists = [["b", "a", "b"], [], ["a", "c"]]
    found, members = vocabulary(*lists)
    assert [found.ids(one) for one in members] == lists
    assert len(found) == 3
    mixed, [rows] = vocabulary(["b", "000000000002", "a", "000000000001"])
    assert mixed.ids(rows[::-1]) == ["coco:000000000001", "a", "coco:000000000002", "b"]
    assert mixed.ids() == ["coco:000000000001", "coco:000000000002", "a", "b"]


def test_namespaces_say_which_source_may_hold_an_image() -> None:
    found, _ = vocabulary(["000000000139", "a", "openimages:x"])
    assert [found.namespace_names[code] for code in found.namespace_codes] == ["coco", "", "openimages"]
    assert found.may_be_of("coco").tolist() == [True, True, False]
    assert found.may_be_of("openimages").tolist() == [True, True, True]
    own, _ = vocabulary(["a"], namespace="mine")
    assert own.may_be_of("mine").tolist() == [True]


FORMS = st.one_of(
    st.integers(0, 10**12 - 1).map(lambda n: f"{n:012}"),
    st.integers(0, 9_999).map(lambda n: f"{n:06}"),
    st.tuples(st.integers(0, 9999), st.integers(0, 999_999)).map(lambda p: f"{p[0]:04}_{p[1]:06}"),
    st.integers(0, 99).map(lambda n: f"coco:{n:012}"),
    st.text("0123456789", min_size=1, max_size=15),
    st.text("abé_-:", min_size=1, max_size=6),
)


@given(st.lists(FORMS, min_size=1, max_size=30))
def test_every_line_is_keyed_as_a_regular_expression_says(lines: list[str]) -> None:
    bare = [one for one in lines if re.fullmatch("[0-9]{1,6}", one)]
    is_voc = all(len(one) == 6 and int(one) <= 9_963 for one in bare)
    forms = [("(?:coco:)?[0-9]{12}|coco:[0-9]{1,12}", 0), ("[0-9]{6}" if is_voc else "-", 1), ("[0-9]{4}_[0-9]{6}", 2)]
    expected = [next((form for text, form in forms if re.fullmatch(text, one)), TEXT) for one in lines]
    found, [members] = vocabulary(lines)
    assert found.forms[members].tolist() == expected
    assert [text.removeprefix("coco:") for text in found.natives[members]] == [
        one.removeprefix("coco:")
        if form < TEXT
        else one.partition(":")[2]
        if re.match("[a-z][a-z0-9_]*:", one)
        else one
        for one, form in zip(lines, expected, strict=True)
    ]
