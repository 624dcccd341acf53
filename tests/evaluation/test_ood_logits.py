import math
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.findmeifyoucan.detections import (
    ClassReading,
    ReadClasses,
    RecordFile,
    logits_of,
    method_scores,
    read_classes,
    read_records,
)
from curation.core.errors import UsageError
from tests.evaluation.ood_worlds import write

# Two classes and a background column that is highest: e^2, e^1, e^3.
BACKGROUND = [2.0, 1.0, 3.0]


def file(folder: Path, *rows: dict[str, Any]) -> RecordFile:
    return read_records(write(folder / "d.json", [{"image_id": 1, **row} for row in rows]))


def read(folder: Path, *rows: dict[str, Any], **reading: Any) -> ReadClasses:
    records = file(folder, *rows)
    return read_classes(records, logits_of(records), ClassReading(**reading))


def test_confidence_is_the_softmax_of_the_class(tmp_path: Path) -> None:
    total = sum(map(math.exp, BACKGROUND))
    every = read(tmp_path, {"logits": BACKGROUND})
    assert every.confidence[0] == pytest.approx(math.exp(3) / total)
    clean = read(tmp_path, {"logits": BACKGROUND}, n_classes=2)
    assert clean.confidence[0] == pytest.approx(math.exp(2) / total)
    assert not clean.background.any()


def test_background_becomes_unknown_only_as_the_code_has_it(tmp_path: Path) -> None:
    for k, compat, expected in ((2, True, True), (2, False, False), (3, True, False), (None, False, False)):
        found = read(tmp_path, {"logits": BACKGROUND}, n_classes=k, official_compat=compat)
        assert found.background.tolist() == [expected]


def test_the_quirk_is_one_of_index_k_and_needs_k() -> None:
    with pytest.raises(UsageError, match="number of ID classes"):
        ClassReading(official_compat=True)


def test_a_stated_score_wins_except_in_the_code(tmp_path: Path) -> None:
    row = {"logits": [0.0, 0.0], "score": 0.75}
    assert read(tmp_path, row).confidence[0] == 0.75
    assert read(tmp_path, row, official_compat=True, n_classes=2).confidence[0] == 0.5


def test_scores_of_logits(tmp_path: Path) -> None:
    records = file(tmp_path, {"logits": [0.0, 0.0]})
    found = method_scores(records, logits_of(records))
    assert found["msp"][0] == 0.5
    assert found["energy"][0] == pytest.approx(math.log(2))
    assert found["gen"][0] == pytest.approx(-2 * 0.25**0.1)
