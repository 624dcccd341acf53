"""Lines as ids: what stands around an id is understood, what is none is named."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import CurationError
from curation.extensions.audit.identity import images_of
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
    return images.ids(images.members[0])


@pytest.mark.parametrize(
    "data",
    [
        b"000000000139\n000000000285\n",
        b"000000000139\n000000000285",
        b"\xef\xbb\xbf000000000139\n000000000285\n",
        b"000000000139\r\n000000000285\r\n",
        b" 000000000139\t\n000000000285  \r\n",
        b"images/000000000139.jpg\nC:\\x\\000000000285.PNG\n",
        b"./a.b/000000000139\n000000000285\n",
        b"000000000139  1\n000000000285 -1\n",
        b"000000000139 0\n000000000285\t0\n",
        b"# two images\n000000000139 0\n#label: 0\n000000000285 0\n#\n",
    ],
)
def test_what_stands_around_an_id_is_understood(data: bytes) -> None:
    assert ids(data) == ["coco:000000000139", "coco:000000000285"]


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
    lines = [b"1", b"2", *data.split(b"\n")]
    filled = [line for line in lines if line.strip(b" \t\r")]
    comments = [line for line in filled if line.strip(b" \t\r").startswith(b"#")]
    assert len(filled) - len(comments) <= len(one) + one.odd - one.unlabelled <= len(filled)
