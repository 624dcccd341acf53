from pathlib import Path
from typing import Any

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
