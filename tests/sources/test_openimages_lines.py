"""Rows of a box CSV are what Python's own csv and float make of them, whatever the rows."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import AnnotationFormatError, BoxError, DanglingIdError
from curation.sources import openimages
from curation.sources.openimages import BoxRows, StreamedCsv, read_boxes
from tests.sources.openimages_files import HEADER, ROWS, write_boxes

KEYS = ("/m/01g317", "/m/0bt9lr", "/m/01yrx", "/m/0123456789abcdefgh", "/t/x")


def rows_of(folder: Path, text: str, labels: tuple[str, ...] | None = KEYS) -> BoxRows:
    path = folder / "train-annotations-bbox.csv"
    path.write_text(f"{HEADER}\n{text}", newline="")
    return read_boxes(StreamedCsv(path), labels, "error")


share = st.one_of(
    st.integers(0, 1_000_000).map(lambda number: f"{number / 1_000_000:.6f}"),
    st.floats(0, 1).map(repr),
    st.sampled_from(["0", "1", "0.5", "1e-3", "-0.000000", "0.1234567890123"]),
)
line = st.builds(
    lambda name, source, key, confidence, corners, flags: ",".join([name, source, key, confidence, *corners, *flags]),
    st.one_of(st.integers(0, 2).map(lambda number: f"{number:016x}"), st.just('"00166893b16a03ab"')),
    st.sampled_from(["", "xclick", "activemil", "freeform"]),
    st.sampled_from([*KEYS, '"/m/01yrx"']),
    st.sampled_from(["1", "0", "0.5", "1.0"]),
    st.lists(share, min_size=4, max_size=4).map(lambda one: [*sorted(one[:2], key=float), *sorted(one[2:], key=float)]),
    st.lists(st.sampled_from(["0", "1", "-1"]), min_size=5, max_size=5),
)


@given(st.lists(line, min_size=1, max_size=12), st.sampled_from(["\n", "\r\n", "\n\n"]), st.integers(160, 400))
def test_any_rows_are_what_python_reads_wherever_blocks_end(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, block: int
) -> None:
    text = "".join(f"{one}{end}" for one in lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openimages, "_CSV_BLOCK", block)
        found = rows_of(tmp_path_factory.mktemp("boxes"), text)
    cells = [row for row in csv.reader(io.StringIO(text)) if row]
    ids = list(dict.fromkeys(row[0] for row in cells))
    assert found.ids.to_pylist() == ids
    assert found.image.tolist() == [ids.index(row[0]) for row in cells]
    assert found.category.tolist() == [KEYS.index(row[2]) for row in cells]
    corners = [[float(cell) for cell in row[4:8]] for row in cells]
    assert found.boxes.tolist() == [[left, top, right - left, bottom - top] for left, right, top, bottom in corners]
    flags = [found.columns[name].tolist() for name in ("occluded", "truncated", "crowd", "depiction", "inside")]
    assert [list(row) for row in zip(*flags, strict=True)] == [[cell == "1" for cell in row[8:]] for row in cells]
    assert found.numbers.tolist() == list(range(1, len(cells) + 1))


@given(st.integers(0, 79), st.characters(max_codepoint=127, exclude_characters='\n\r"'))
def test_one_changed_character_is_refused_or_changes_its_cell_alone(
    tmp_path_factory: pytest.TempPathFactory, position: int, character: str
) -> None:
    changed = ROWS[0][:position] + character + ROWS[0][position + 1 :]
    try:
        found = rows_of(tmp_path_factory.mktemp("boxes"), f"{ROWS[3]}\n{changed}\n")
    except (AnnotationFormatError, BoxError, DanglingIdError):
        return
    row = changed.split(",")
    assert found.ids[int(found.image[1])].as_py() == row[0]
    assert found.boxes[1, :2].tolist() == [float(row[4]), float(row[6])]


@pytest.mark.parametrize("bad", [ROWS[0][:60], ROWS[0] + ",0", ROWS[0].replace("0.195312", "wide"), HEADER])
def test_a_refused_row_is_named_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    monkeypatch.setattr(openimages, "_CSV_BLOCK", 1000)
    rows = [ROWS[0]] * 1000
    rows[700] = bad
    path = write_boxes(tmp_path, rows)
    with pytest.raises(AnnotationFormatError, match="cannot be read") as caught:
        read_boxes(StreamedCsv(path), None, "error")
    assert caught.value.where == f"{path.name}: row 702"
