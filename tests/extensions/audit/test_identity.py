"""What is one image: whole paths, shared roots, suffixes, ids by their form; and how surely two lists share images."""

import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.ids import NATIVE_FORMS
from curation.extensions.audit.identity import Images, ids_of, images_of
from curation.manifest.importing import namespaced_by_form
from curation.sources.entries import PublishedList
from curation.sources.published_list import read_published


def images(folder: Path, *lists: list[str] | str, namespace: str = "") -> Images:
    read = list[PublishedList]()
    for place, one in enumerate(lists):
        path = folder / f"{place}.txt"
        path.write_bytes(one.encode() if isinstance(one, str) else "".join(f"{line}\n" for line in one).encode())
        read += read_published(path).lists
    return images_of(read, namespace)


def shared(folder: Path, one: list[str] | str, two: list[str] | str) -> tuple[str, int]:
    """How surely two lists share images, and how many."""
    found = images(folder, one, two)
    if count := int(found.overlaps[0, 1]):
        return "exact", count
    alike = found.alike(0, 1)
    return ("likely", alike.images) if alike else ("none", 0)


NUMBERED = [f"{n:03}" for n in range(31)]


@pytest.mark.parametrize(
    ("one", "two", "strength", "count"),
    [
        (["x/a.jpg", "x/b.jpg"], ["x/a.jpg", "x/c.jpg"], "exact", 1),
        (["x/a.jpg", "x/b.jpg"], ["x/b.jpg", "x/a.jpg"], "exact", 2),
        ("x/a.jpg\nx/b.jpg\n", "./x//b.jpg\r\nx\\a.jpg\r\n", "exact", 2),
        (["x/a.jpg 0", "x/b.jpg 1"], ["x/b.jpg 3", "x/a.jpg 2"], "exact", 2),
        (["x/a.jpg", "x/A.jpg"], ["X/a.jpg", "x/c.jpg"], "none", 0),
        # The same names in other folders are other images; with bare names they may be the same.
        ([f"p/{n}.jpg" for n in NUMBERED], [f"q/{n}.png" for n in NUMBERED], "none", 0),
        ([f"p/{n}.jpg" for n in NUMBERED], [f"{n}.jpg" for n in NUMBERED], "likely", 31),
        ([f"p/{n}.jpg" for n in NUMBERED], [f"{n}" for n in NUMBERED[:30]] + ["x", "y"], "likely", 30),
        ([f"p/{n}.jpg" for n in NUMBERED], [f"{n}.jpg" for n in NUMBERED[:5]] + ["x.jpg"], "none", 0),
        ([f"p/{n}.jpg" for n in NUMBERED] + ["q/001.jpg"], [f"{n}.jpg" for n in NUMBERED], "none", 0),
        # A list without suffixes means any.
        (["k/p.jpg", "k/q.png"], ["k/p", "k/q"], "exact", 2),
        (["000000000139", "000000000285"], ["val2014/COCO_val2014_000000000139.jpg"], "exact", 1),
        (["VOC2007/JPEGImages/000012.jpg"], ["000012"], "exact", 1),
    ],
)
def test_how_surely_two_lists_share_images(
    one: list[str] | str, two: list[str] | str, strength: str, count: int, tmp_path: Path
) -> None:
    assert shared(tmp_path, one, two) == (strength, count)


def test_only_folders_that_all_lists_share_are_stripped(tmp_path: Path) -> None:
    found = images(tmp_path, ["/data/x/full/0/imgs_1.jpg", "/data/x/full/1/imgs_1.jpg"], ["/data/x/test/0/imgs_1.jpg"])
    assert found.root == "/data/x"
    assert found.ids(found.members[0]) == ["full/0/imgs_1.jpg", "full/1/imgs_1.jpg"]
    assert found.overlaps.tolist() == [[2, 0], [0, 1]]
    assert images(tmp_path, ["ab/1.jpg"], ["ac/1.jpg"]).root == ""


def test_parts_that_climb_stay_and_are_counted(tmp_path: Path) -> None:
    found = images(tmp_path, ["../x/a.jpg", "y/../x/a.jpg", "x/a..b.jpg"])
    assert (found.climbing, len(found)) == (2, 3)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        # Frames of two videos, patches of two batches: numbers that are in several folders are counters, and no ids.
        ([f"video_{v}/{n:012}.jpg" for v in range(2) for n in range(20)], 40),
        ([f"batch_{v}/{n:06}.jpg" for v in range(2) for n in range(20)], 40),
        # One file of many in another folder is the image that it is.
        ([f"train2017/{n:012}.jpg" for n in range(40)] + ["val2017/000000000007.jpg"], 40),
        # The form counts where nearly all lines have it.
        ([f"x/{n:012}.jpg" for n in range(10)] + [f"y/img_{n}.jpg" for n in range(10)] + ["z/000000000007.jpg"], 21),
    ],
)
def test_an_id_is_told_by_its_form_where_lines_agree(lines: list[str], count: int, tmp_path: Path) -> None:
    assert len(images(tmp_path, lines)) == count


PATHS = st.sampled_from([f"{a}/{b}{c}" for a in ("p", "q/r") for b in ("1", "01", "n") for c in (".jpg", ".png")])


@given(st.lists(st.lists(PATHS, min_size=1, max_size=8), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_overlaps_are_those_of_sets_of_paths_whatever_the_order_and_the_root(
    tmp_path_factory: pytest.TempPathFactory, lists: list[list[str]], chance: random.Random
) -> None:
    expected = [[len(set(one) & set(two)) for two in lists] for one in lists]
    folder = tmp_path_factory.mktemp("lists")
    found = images(folder, *lists)
    assert found.overlaps.tolist() == expected
    shuffled = [chance.sample(one, len(one)) for one in lists]
    assert images(folder, *([f"/above/all/{path}" for path in one] for one in shuffled)).overlaps.tolist() == expected


def ids(*lines: str) -> list[str | None]:
    """The id of each line by its form, None where it has none."""
    return ids_of(pa.array(lines), NATIVE_FORMS.items()).to_pylist()


def of_lines(*lists: list[str], namespace: str = "") -> Images:
    texts = ["".join(f"{line}\n" for line in one).encode() for one in lists]
    lines = [np.arange(1, len(one) + 1, dtype=np.int32) for one in lists]
    return images_of([PublishedList("", *one) for one in zip(texts, lines, strict=True)], namespace)


def test_six_digits_are_voc_s_where_none_is_beyond_its_last_image_or_shorter() -> None:
    assert of_lines(["000012", "009963"]).ids() == ["voc2007:000012", "voc2007:009963"]
    assert of_lines(["009963", "009964"]).ids() == ["009963", "009964"]
    assert of_lines(["000012", *(f"{n:06}" for n in range(50, 99)), "0042"]).ids()[:2] == ["000012", "000050"]


@pytest.mark.parametrize("namespace", ["", "coco", "voc2007"])
def test_six_digits_in_folders_are_frames_unless_the_path_says_voc(namespace: str) -> None:
    frames = of_lines(["a/000001.jpg", "a/000002.jpg"], ["b/000001.jpg", "b/000002.jpg"], namespace=namespace)
    assert frames.n_ids == 0
    assert frames.overlaps.tolist() == [[2, 0], [0, 2]]
    voc = of_lines(["VOC2007/JPEGImages/000001.jpg"], ["000001"], namespace=namespace)
    assert voc.overlaps.tolist() == [[1, 1], [1, 1]]


def test_a_written_id_among_paths_is_that_of_a_list_of_ids_and_a_path_where_there_is_none() -> None:
    few = [*(f"x/img_{n}.jpg" for n in range(9)), "coco:000000000139"]
    assert of_lines(few, ["000000000139"]).overlaps[0, 1] == 1
    alone = of_lines(few)
    assert (alone.n_ids, alone.root) == (0, "")
    assert "coco:000000000139" in alone.ids()


def test_bare_numbers_of_a_dataset_that_the_user_names_are_no_ids_of_coco() -> None:
    few = ["mine:a", "000000000139", "mine:000000000285"]
    found = of_lines(few, ["coco:000000000139", "coco:000000000285"], namespace="mine")
    assert found.overlaps[0, 1] == 0
    assert found.ids(found.members[0]) == ["mine:a", "mine:000000000139", "mine:000000000285"]


@given(st.from_regex(r"\A([0-9]{12}|00[0-8][0-9]{3}|[0-9]{4}_[0-9]{6}|[0-9]{7,11}|[a-z_]{1,8})\Z"))
def test_forms_are_those_that_published_lists_are_imported_by(text: str) -> None:
    assert ids(text) == [namespaced_by_form(text, tuple(NATIVE_FORMS))]


@pytest.mark.parametrize(
    ("namespace", "text", "written"),
    [
        ("coco", "139", "coco:000000000139"),
        ("coco", "coco:139", "coco:000000000139"),
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
    found = of_lines([text], namespace=namespace)
    assert found.ids() == [written]
    assert found.natives.to_pylist() == [written.partition(":")[2]]


def test_namespaces_say_which_source_may_hold_an_image() -> None:
    found = of_lines(["000000000139"], ["a.jpg", "openimages:x.jpg"])
    assert found.datasets(np.arange(3, dtype=np.int32)) == {"coco": 1, "": 1, "openimages": 1}
    assert found.may_be_of("coco").tolist() == [True, True, False]
    assert found.may_be_of("openimages").tolist() == [True, True, True]
    assert of_lines(["a.jpg"], namespace="mine").may_be_of("mine").tolist() == [True]


FORMS = st.one_of(
    st.integers(0, 10**12 - 1).map(lambda n: f"{n:012}"),
    st.integers(0, 9_999).map(lambda n: f"{n:06}"),
    st.tuples(st.integers(0, 9999), st.integers(0, 999_999)).map(lambda p: f"{p[0]:04}_{p[1]:06}"),
    st.integers(0, 99).map(lambda n: f"coco:{n:012}"),
    st.text("0123456789", min_size=1, max_size=15),
    st.text("abé_-:", min_size=1, max_size=6),
)


@given(st.lists(FORMS, min_size=1, max_size=30))
def test_every_line_has_the_id_that_a_regular_expression_says(lines: list[str]) -> None:
    forms = {"coco": "[0-9]{12}", "voc2007": "[0-9]{6}", "voc2012": "[0-9]{4}_[0-9]{6}"}
    fitting = [[space for space, form in forms.items() if re.fullmatch(form, one)] for one in lines]
    assert ids(*lines) == [f"{own[0]}:{one}" if own else None for own, one in zip(fitting, lines, strict=True)]
