"""Lines parsed by words and by pyarrow say the same, whatever the lines."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import AnnotationFormatError
from curation.sources.openimages.keys import id_text, runs_of
from curation.sources.openimages.rows import EMPTY, Labels, RowBlock, rows_by_words, rows_of, scan_lines
from curation.sources.openimages.streamed_csv import StreamedCsv
from tests.sources.openimages_files import HEADER, ROWS, write_boxes

KEYS = ("/m/01g317", "/m/0bt9lr", "/m/01yrx", "/m/0h8l4fh", "/m/0123456789abcdefgh", "/t/x")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> StreamedCsv:
    return StreamedCsv(write_boxes(tmp_path_factory.mktemp("boxes"), []))


def parse_rows(lines: bytes, file: StreamedCsv, labels: Labels, row: int) -> RowBlock:
    return rows_of(scan_lines(lines, file, labels), file, labels, row)


def by_hand(lines: str, keys: tuple[str, ...]) -> list[tuple[object, ...]]:
    """What Python's own csv and float make of the lines."""
    place = {key: number for number, key in enumerate(keys)}
    origins = {"": 0, "xclick": 1, "activemil": 2}
    return [
        (
            row[0],
            place.get(row[2], -1),
            *(float(cell) for cell in row[4:8]),
            *(int(cell) for cell in row[8:]),
            float(np.float32(row[3])),
            origins.get(row[1], -1),
        )
        for row in csv.reader(io.StringIO(lines))
        if row
    ]


def told(block: RowBlock) -> list[tuple[object, ...]]:
    return [
        (
            id_text(block.ids, row),
            int(block.category[row]),
            *block.corners[row].tolist(),
            *block.flags[row].tolist(),
            float(block.confidence[row]),
            int(block.origin[row]),
        )
        for row in range(len(block))
    ]


share = st.integers(0, 1_000_000).map(lambda number: f"{number / 1_000_000:.6f}")
odd_share = st.one_of(
    st.floats(0, 1).map(repr),
    st.sampled_from(["0", "1", "0.5", "1e-3", "9.999999", "-0.000000", "0.1234567890123"]),
)
usual = st.builds(
    lambda number, source, key, corners, flags: f"{number:016x},{source},{key},1,{','.join(corners + flags)}",
    st.integers(0, 2**64 - 1),
    st.sampled_from(["xclick", "activemil"]),
    st.sampled_from(KEYS),
    st.lists(share, min_size=4, max_size=4),
    st.one_of(st.lists(st.sampled_from("01"), min_size=5, max_size=5), st.just(["-1"] * 5)),
)
odd = st.builds(
    lambda name, source, key, confidence, corners, flags: ",".join([name, source, key, confidence, *corners, *flags]),
    st.sampled_from(["00166893b16a03ab", "0123456789ABCDEF", "short", '"00166893b16a03ab"']),
    st.sampled_from(["xclick", "activemil", "freeform", "", "activemix", "xclicks"]),
    st.sampled_from([*KEYS, "/m/none", "m/01g317", '"/m/01yrx"', "/m/01g317/m/01g317"]),
    st.sampled_from(["1", "0", "0.5", "1.0"]),
    st.lists(st.one_of(share, odd_share), min_size=4, max_size=4),
    st.lists(st.sampled_from(["0", "1", "-1", "7"]), min_size=5, max_size=5),
)


@given(st.lists(st.one_of(usual, usual, odd), min_size=1, max_size=12), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_any_mixture_of_lines_is_what_python_reads(file: StreamedCsv, lines: list[str], end: str) -> None:
    text = "".join(f"{line}{end}" for line in lines)
    assert told(parse_rows(text.encode(), file, Labels(KEYS), 2)) == by_hand(text, KEYS)


@given(st.lists(usual, min_size=1, max_size=12))
def test_usual_lines_do_not_need_pyarrow(file: StreamedCsv, lines: list[str]) -> None:
    short = [line for line in lines if KEYS[4] not in line]
    text = "".join(f"{line}\n" for line in short).encode()
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    if len(ends):
        block, found = rows_by_words(text, starts, ends, Labels(KEYS))
        assert found.all()
        assert told(block) == by_hand(text.decode(), KEYS)


@given(st.integers(0, 79), st.characters(max_codepoint=127, exclude_characters='\n\r"'))
def test_one_changed_character_never_changes_what_pyarrow_would_say(
    file: StreamedCsv, place: int, character: str
) -> None:
    changed = ROWS[0][:place] + character + ROWS[0][place + 1 :]
    text = f"{ROWS[3]}\n{changed}\n"
    try:
        expected = by_hand(text, KEYS)
        assert {len(row) for row in expected} == {13}
    except (ValueError, AssertionError, OverflowError):
        if place < 16 and character == ",":
            # Where a comma stands among the sixteen digits the line keeps its form; the digits are looked at later.
            assert runs_of(parse_rows(text.encode(), file, Labels(KEYS), 2).ids)[2] == 1
            return
        with pytest.raises(AnnotationFormatError, match="cannot be read"):
            parse_rows(text.encode(), file, Labels(KEYS), 2)
        return
    try:
        assert told(parse_rows(text.encode(), file, Labels(KEYS), 2)) == expected
    except AnnotationFormatError:
        # Python's int and float also take blanks and underscores, which no number of a file has; flags are small.
        assert character in " _\t\x0b\x0c\x1c\x1d\x1e\x1f+" or not character.isdigit() or place > 70


def test_keys_are_learned_in_the_order_of_their_rows(file: StreamedCsv) -> None:
    labels = Labels(None)
    text = "".join(f"{ROWS[row]}\n" for row in (2, 0, 3, 1, 2)).encode()
    for _ in range(2):
        assert parse_rows(text, file, labels, 2).category.tolist() == [0, 1, 2, 1, 0]
    assert list(labels.place) == ["/m/0bt9lr", "/m/01g317", "/m/01yrx"]


def test_a_key_with_a_nul_is_not_the_key_without(file: StreamedCsv) -> None:
    labels = Labels(("/m/01g31",))
    text = f"{ROWS[0]}\n".replace("/m/01g317", "/m/01g31\0").encode()
    assert parse_rows(text, file, labels, 2).category.tolist() == [-1]


@pytest.mark.parametrize("key", ["/m/a,b", "/m/a", '/m/a"b'])
def test_a_key_that_was_quoted_does_not_make_its_bytes_a_cell(file: StreamedCsv, key: str) -> None:
    labels = Labels(None)
    quoted = '"' + key.replace('"', '""') + '"'
    assert parse_rows(f"{ROWS[0]}\n".replace("/m/01g317", quoted).encode(), file, labels, 2).category == [0]
    assert list(labels.place) == [key]
    bare = f"{ROWS[0]}\n".replace("/m/01g317", key)
    if "," not in key:
        assert parse_rows(bare.encode(), file, labels, 3).category == [0]
    else:
        with pytest.raises(AnnotationFormatError, match="cannot be read"):
            parse_rows(bare.encode(), file, labels, 3)


def test_a_refused_row_is_named(file: StreamedCsv) -> None:
    lines = [f"{ROWS[0]}\n"] * 1000
    lines[700] = f"{ROWS[0]}".replace("0.195312", "wide") + "\n"
    with pytest.raises(AnnotationFormatError) as caught:
        parse_rows("".join(lines).encode(), file, Labels(KEYS), 5002)
    assert caught.value.where == f"{file.name}: row 5702"
    assert "wide" in str(caught.value.found)


@pytest.mark.parametrize("bad", [ROWS[0][:60], ROWS[0] + ",0", f'"{ROWS[0]}', HEADER])
def test_a_row_that_is_cut_or_quoted_wrongly_is_refused(file: StreamedCsv, bad: str) -> None:
    with pytest.raises(AnnotationFormatError, match="cannot be read") as caught:
        parse_rows(f"{ROWS[2]}\n{bad}\n".encode(), file, Labels(KEYS), 2)
    assert caught.value.where == f"{file.name}: row 3"


def test_a_row_that_is_cut_before_its_last_flag_is_no_zero(file: StreamedCsv) -> None:
    assert parse_rows(f"{ROWS[0][:-1]}\n".encode(), file, Labels(KEYS), 2).flags[0, 4] == EMPTY
