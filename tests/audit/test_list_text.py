"""Lines as ids: what stands around an id is understood and counted, what is none is named."""

import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.audit.identity import images_of
from curation.errors import AnnotationFormatError, CurationError
from curation.sources.entries import PublishedList
from curation.sources.published_list import read_published


def parsed(data: bytes) -> PublishedList:
    with TemporaryDirectory() as folder:
        path = Path(folder, "list.txt")
        path.write_bytes(data)
        [one] = read_published(path).lists
        return one


def ids(data: bytes | str) -> list[str]:
    one = parsed(data if isinstance(data, bytes) else data.encode())
    images = images_of([one])
    return images.texts(images.members[0])


@pytest.mark.parametrize(
    ("data", "traits"),
    [
        (b"000000000139\n000000000285\n", {}),
        (b"000000000139\n000000000285", {}),
        (b"\xef\xbb\xbf000000000139\n000000000285\n", {"byte order mark": 1}),
        (b"000000000139\r\n000000000285\r\n", {"lines ended by CR LF": 2}),
        (b" 000000000139\t\n000000000285  \r\n", {"lines ended by CR LF": 1, "ids with blanks around them": 2}),
        (
            b"images/000000000139.jpg\nC:\\x\\000000000285.PNG\n",
            {"ids with a folder before them": 2, "ids with the suffix of a photo": 2},
        ),
        (b"./a.b/000000000139\n000000000285\n", {"ids with a folder before them": 1}),
        (
            b"000000000139  1\n000000000285 -1\n",
            {"ids with a label -1 beside them": 1, "ids with a label 1 beside them": 1},
        ),
        (b"000000000139 0\n000000000285\t0\n", {"ids with a label 0 beside them": 2}),
    ],
)
def test_what_stands_around_an_id_is_understood_and_counted(data: bytes, traits: dict[str, int]) -> None:
    assert ids(data) == ["coco:000000000139", "coco:000000000285"]
    assert dict(parsed(data).understood) == traits


def test_lines_keep_their_numbers_where_some_are_empty() -> None:
    one = parsed(b"\na1\n \n\nb1\n")
    assert one.lines.tolist() == [2, 5]
    assert one.blank == 3


def test_odd_lines_are_left_out_and_named() -> None:
    long = "x" * 256
    one = parsed(f"a1\nb c\nd1\n{long}\ne1\nf\x1b[31m\ng1\nfolder/\nh1\ni\u200b\nj1\nk1".encode())
    assert one.lines.tolist() == [1, 3, 5, 7, 9, 11, 12]
    assert [(odd.line, odd.reason) for odd in one.odd_lines] == [
        (2, "it holds several words"),
        (4, "its name is longer than 255 characters"),
        (6, "it holds a control character"),
        (8, "it names a folder"),
        (10, "it is not printable"),
    ]
    assert one.odd == 5


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"How to use 7\n", "it holds several words; 1 such lines of 1"),
        (b"caf\xe9\n", "not UTF-8"),
        ("\ufeff1\n".encode("utf-16"), "not text"),
        (b"x" * 300, "longer than 255"),
        (b"000012 2\n", "several words"),
        (b"000012 x,y\n000013 x,y\na1\n", "2 such lines of 3"),
        (b"a1\rb1\rc1", "control character"),
    ],
)
def test_a_file_of_which_most_lines_are_no_ids_is_no_list(data: bytes, reason: str) -> None:
    with pytest.raises(AnnotationFormatError, match=re.escape(reason)):
        parsed(data)


def test_a_giant_line_is_odd_and_costs_no_time() -> None:
    start = time.process_time()
    one = parsed(b"a1\nb1\n" + b" " * 20_000_000 + b"\nc1\n" + b"d" * 20_000_000)
    assert one.odd_lines[0].reason == "the line is too long"
    assert one.lines.tolist() == [1, 2, 4]
    assert time.process_time() - start < 5


@given(st.binary(max_size=200))
def test_any_bytes_are_a_list_or_refused(data: bytes) -> None:
    try:
        one = parsed(b"0000000001\n0000000002\n" + data)
    except CurationError:
        return
    lines = data.count(b"\n") + bool(data and not data.endswith(b"\n")) + 2
    assert len(one) + one.blank + one.odd - one.unlabelled == lines
