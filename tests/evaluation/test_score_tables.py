from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from curation.core.errors import PredictionError
from curation.evaluation.score_files import Keys, read_score_table

NUMBERED = "image,label,score_0,score_1\na,0,.75,.25\nb,-1,1,0\n"


def write(folder: Path, content: "str | bytes | dict[str, Any]") -> Path:
    path = folder / ("t.parquet" if isinstance(content, dict) else "t.csv")
    if isinstance(content, dict):
        parquet.write_table(pa.table(content), path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        NUMBERED,
        "\ufeff" + NUMBERED.replace("\n", "\r\n"),
        "score_1,gt,image_id,score_0\n.25,0,a,.75\n0,-1,b,1\n",
        "image,label,0,1\na,0,.75,.25\nb,-1,1,0\n",
        {"image": ["a", "b"], "label": [0, -1], "score_0": [0.75, 1.0], "score_1": pa.array([0.25, 0], "f4")},
        {"image": ["a", "b"], "gt": ["0", "-1"], "logit_0": [0.75, 1], "logit_1": pa.array([0.25, 0], "f4")},
    ],
)  # fmt: skip
def test_layouts_that_say_the_same(tmp_path: Path, content: Any) -> None:
    table = read_score_table(write(tmp_path, content), Keys())
    assert table.scores.tolist() == [[0.75, 0.25], [1, 0]]
    assert table.labels is not None
    assert (table.labels.tolist(), table.images, table.has_background) == (["0", "-1"], ["a", "b"], False)


def test_columns_called_like_classes_come_in_their_order(tmp_path: Path) -> None:
    path = write(tmp_path, "class,background,n02,n01,note\nn01,.125,.25,.625,x\n")
    table = read_score_table(path, Keys(), ["n01", "n02"])
    assert table.scores.tolist() == [[0.625, 0.25, 0.125]]
    assert table.has_background
    assert table.unused == ("note",)
    assert table.labels is not None
    assert table.labels.tolist() == ["n01"]
    assert table.images is None


def test_more_than_ten_columns_are_in_number_order(tmp_path: Path) -> None:
    names = [f"logit_{number}" for number in range(12)]
    path = write(tmp_path, ",".join(sorted(names)) + "\n" + ",".join(n[6:] for n in sorted(names)) + "\n")
    table = read_score_table(path, Keys())
    assert table.scores.tolist() == [list(range(12))]
    assert table.name == "logit_"


def test_keys_choose_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "y,file,p0,p1,score_0\n0,a,1,2,3\n")
    table = read_score_table(path, Keys("p", "y", "file"))
    assert table.labels is not None
    assert (table.scores.tolist(), table.labels.tolist(), table.images) == ([[1, 2]], ["0"], ["a"])
    for keys in (Keys("q"), Keys("p", "z"), Keys("p", "y", "z")):
        with pytest.raises(PredictionError):
            read_score_table(path, keys)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n",
        "a,b\n1,2\n",
        "label,score_0,score_2\n0,1,2\n",
        "label,score_0,score_0\n0,1,2\n",
        "label,score_0,score_1\n0,1,x\n",
        "label,score_0,score_1\n0,1,\n",
        "label,score_0,score_1\n0,1\n",
        b"label,score_0\n0,\xff\n",
        b"\xff\xfe,score_0\n0,1\n",
        {"label": [0], "scores": [[1.0, 0.5]]},
        {"label": [0], "score_0": [[1.0, 0.5]]},
        {"label": [0], "score_0": ["x"]},
        {"label": [0], "score_0": [None]},
    ],
    ids=range(14),
)
def test_tables_that_are_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(PredictionError) as caught:
        read_score_table(write(tmp_path, content), Keys())
    assert str(tmp_path) in str(caught.value.where)


def test_what_is_no_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1" + b"\0" * 40 + b"PAR1")
    with pytest.raises(PredictionError, match="cannot be read"):
        read_score_table(path, Keys())


def test_nan_reaches_the_check_of_scores(tmp_path: Path) -> None:
    table = read_score_table(write(tmp_path, "label,score_0\n0,nan\n0,-inf\n"), Keys())
    assert np.isnan(table.scores[0, 0])
    assert table.scores[1, 0] == -np.inf
