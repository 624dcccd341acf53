"""Blocks that threads read ahead are the file's rows in its order, wherever the blocks end."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import AnnotationFormatError
from curation.sources.openimages import boxes, streamed_csv
from curation.sources.openimages.boxes import BoxBlock, read_blocks
from curation.sources.openimages.keys import id_text
from curation.sources.openimages.rows import Labels
from curation.sources.openimages.streamed_csv import StreamedCsv
from tests.sources.openimages_files import ROWS, write_boxes


def blocks_of(path: Path, labels: Labels, *, block: int, threads: int) -> list[BoxBlock]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed_csv, "_LINES", block)
        patch.setattr(boxes, "_THREADS", threads)
        return list(read_blocks(StreamedCsv(path), labels))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), min_size=1, max_size=40),
    st.integers(60, 1000),
    st.sampled_from([1, 4]),
)
def test_keys_and_rows_do_not_depend_on_blocks_or_threads(
    tmp_path_factory: pytest.TempPathFactory, picked: list[tuple[int, int]], block: int, threads: int
) -> None:
    """Two of the lines have the usual form, two go through pyarrow; each key is met first in any of them."""
    keys = [f"/m/0{key:02d}" for _, key in picked]
    rows = [
        ",".join([*(cells := ROWS[form].split(","))[:2], key, *cells[3:]])
        for (form, _), key in zip(picked, keys, strict=True)
    ]
    labels = Labels(None)
    path = write_boxes(tmp_path_factory.mktemp("boxes"), rows)
    found = blocks_of(path, labels, block=block, threads=threads)
    assert list(labels.place) == list(dict.fromkeys(keys))
    places = np.concatenate([one.rows.category for one in found]).tolist()
    assert [list(labels.place)[place] for place in places] == keys
    ids = [id_text(one.rows.ids, row) for one in found for row in range(len(one.rows))]
    assert ids == [row[:16] for row in rows]
    left = np.concatenate([one.boxes[:, 0] for one in found]).tolist()
    assert left == [float(row.split(",")[4]) for row in rows]
    assert all(one.is_sound for one in found)


def test_what_is_to_be_checked_is_told_of_each_block(tmp_path: Path) -> None:
    rows = [
        ROWS[0],
        ROWS[1],
        ROWS[0].replace("0.195312", "1.000001"),
        ROWS[0].replace(",xclick", ",freeform"),
    ]
    path = write_boxes(tmp_path, rows)
    found = blocks_of(path, Labels(["/m/01g317"]), block=len(rows[0]) + 1, threads=2)
    by_row = {one.rows.corners[0, 1]: one for one in found if len(one.rows) == 1}
    assert not by_row[1.000001].is_sound
    assert by_row[0.195312].is_sound
    assert not by_row[0.276563].is_stated
    assert not by_row[0.276563].set_flags.any()
    assert by_row[1.000001].set_flags[:, 0].tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_refused_row_has_its_number_in_the_file(tmp_path: Path, threads: int) -> None:
    rows = [ROWS[0]] * 5000
    rows[3456] = ROWS[0].replace("0.195312", "wide")
    rows[4000] = ROWS[0][:30]
    path = write_boxes(tmp_path, rows)
    with pytest.raises(AnnotationFormatError, match="cannot be read") as caught:
        blocks_of(path, Labels(None), block=1000, threads=threads)
    assert caught.value.where == f"{path.name}: row 3458"
