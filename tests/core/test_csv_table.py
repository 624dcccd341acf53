"""Cells of CSV files: no text is a formula, numbers stay, and every text can be read back."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.cli import main
from curation.core.tables import as_csv, cell_text

FORMULA = "=cmd|' /C calc'!A0"
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.builds("{}{}".format, st.sampled_from(["", "=", "+", "-", "@", "\t", "\r", "'", "1"]), TEXTS)))
def test_texts_are_read_back_and_begin_with_no_sign_of_a_formula(texts: list[str]) -> None:
    written = as_csv(("name", "after"), [(text, "") for text in texts])
    cells = [row[0] for row in csv.reader(io.StringIO(written, newline=""))][1:]
    assert [cell_text(cell) for cell in cells] == texts
    for cell in cells:
        try:
            float(cell)
        except ValueError:
            assert cell[:1] not in tuple("=+-@\t\r")


@pytest.mark.parametrize("number", [-1, -0.5, 1e-300, float("-inf"), "-1", "-0.5", "+3", "-1e-05", "-.5"])
def test_numbers_stay_as_they_are(number: float | str) -> None:
    assert as_csv(("n",), [(number,)]) == f"n\n{number}\n"


@pytest.mark.parametrize("text", ["-1+1", "+1|a", "-", "--1", "-1e", "-1-1", "+1 2"])
def test_what_only_begins_like_a_number_does_not(text: str) -> None:
    assert as_csv(("n",), [(text,)]) == f"n\n'{text}\n"


def test_a_class_whose_name_is_a_formula(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [FORMULA, "@SUM(A1)", "cat", "'tis"]
    content = {
        "images": [{"id": n, "file_name": f"{n}.jpg", "width": 50, "height": 50} for n in (1, 2)],
        "annotations": [
            {"id": n, "image_id": 1 + n % 2, "category_id": n, "bbox": [1, 1, 5, 5], "area": 25, "iscrowd": 0}
            for n in range(4)
        ],
        "categories": [{"id": n, "name": name} for n, name in enumerate(names)],
    }
    (tmp_path / "truth.json").write_text(json.dumps(content))
    words = ["cut", str(tmp_path / "truth.json"), "-k", "2", "--on-error", "components=cut"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    with (tmp_path / "out/clusters.csv").open(newline="") as stream:
        cells = [row["class"] for row in csv.DictReader(stream)]
    assert sorted(cells) == sorted(["'" + FORMULA, "'@SUM(A1)", "cat", "''tis"])
    for path in (tmp_path / "out").glob("*.csv"):
        for line in csv.reader(io.StringIO(path.read_text(), newline="")):
            assert not any(cell.startswith(("=", "@")) for cell in line)
