from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from curation.core.canonical import sha256_of_file
from curation.core.errors import PredictionError
from curation.evaluation.class_scores import part_samples, protocol_classes
from curation.evaluation.score_files import Keys, read_npy, read_scores
from tests.evaluation.open_set_manifests import LISTS, TEST_CLASSES, TEST_LABELS, WNIDS, open_set_manifest, write_truth

SCORES = np.array([[0.75, 0.25], [0.25, 0.75], [0.0, 1.0], [0.5, 0.5], [0.625, 0.375], [1.0, 0.0]])
NAMES = [one.partition(":")[2] for one in LISTS["test"]]


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def csv_text(labels: Any, images: Any = None) -> str:
    head = "label,score_0,score_1" + (",image" if images else "")
    lines = [
        f"{label},{one},{two}" + (f",{images[row]}" if images else "")
        for row, (label, (one, two)) in enumerate(zip(labels, SCORES.tolist(), strict=True))
    ]
    return "\n".join([head, *lines]) + "\n"


def test_every_format_gives_the_same(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", SCORES)
    np.save(tmp_path / "l.npy", np.array(TEST_LABELS))
    (tmp_path / "t.csv").write_text(csv_text(TEST_LABELS))
    columns = {"gt": TEST_LABELS, "score_0": SCORES[:, 0], "score_1": SCORES[:, 1]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    # As openset-imagenet writes it: labels as floats, softmax beside logits and features.
    official = npz(
        tmp_path / "o.npz", gt=np.array(TEST_LABELS, np.float32), logits=np.zeros((6, 2)), features=np.zeros((6, 9)),
        scores=SCORES,
    )  # fmt: skip
    found = [
        read_scores(tmp_path / "s.npy", labels=tmp_path / "l.npy"),
        *(read_scores(path) for path in (tmp_path / "t.csv", tmp_path / "t.parquet", official)),
    ]
    for read in found:
        assert read.scores.kind == "probabilities"
        assert read.scores.labels.tolist() == list(TEST_LABELS)
        assert read.scores.highest.tolist() == SCORES.max(axis=1).tolist()
    assert [read.file["labels_from"] for read in found] == ["l.npy", "file", "file", "file"]
    assert found[3].file["sha256"] == sha256_of_file(official)
    assert found[3].file["rows"] == 6


def test_the_kind_is_told_by_name_or_asked_for(tmp_path: Path) -> None:
    labels = np.array(TEST_LABELS)
    assert read_scores(npz(tmp_path / "a.npz", gt=labels, logits=SCORES)).scores.kind == "logits"
    with pytest.raises(PredictionError, match="what kind") as caught:
        read_scores(npz(tmp_path / "b.npz", gt=labels, scores=SCORES * 3))
    assert "--kind" in str(caught.value.expected)
    assert read_scores(tmp_path / "b.npz", kind="real").scores.highest.max() == 3
    chosen = Keys("mine", "y")
    read = read_scores(npz(tmp_path / "c.npz", y=labels, mine=SCORES, gt=labels * 0, scores=SCORES * 0), keys=chosen)
    assert read.scores.labels.tolist() == list(TEST_LABELS)


def test_probabilities_called_logits_are_doubted(tmp_path: Path) -> None:
    labels = np.array(TEST_LABELS)
    soft = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
    read = [
        read_scores(npz(tmp_path / f"{n}.npz", gt=labels, logits=table)) for n, table in enumerate((SCORES * 9, soft))
    ]
    assert ["softmax is applied twice" in found.file.get("doubt", "") for found in read] == [False, True]


def test_a_column_called_background_is_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,score_0,background\n0,.75,.25\n-1,0.25,.75\n")
    read = read_scores(tmp_path / "t.csv")
    assert read.scores.background is not None
    assert read.scores.background.tolist() == [0.25, 0.75]


def test_class_names_need_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(csv_text([WNIDS[one] for one in TEST_CLASSES]))
    read = read_scores(tmp_path / "t.csv", classes=protocol_classes(open_set_manifest()))
    assert read.scores.labels.tolist() == list(TEST_LABELS)
    assert read.scores.classes == WNIDS[:2]
    with pytest.raises(PredictionError, match="not a number") as caught:
        read_scores(tmp_path / "t.csv")
    assert "--manifest" in str(caught.value.hint)


def test_a_part_orders_rows_and_tells_labels(tmp_path: Path) -> None:
    part = part_samples(open_set_manifest(), "test", write_truth(tmp_path))
    order = [4, 2, 0, 5, 1, 3]
    images = np.array([f"val/{NAMES[k]}.JPEG" for k in order])
    read = read_scores(npz(tmp_path / "a.npz", scores=SCORES[order], images=images), part=part)
    assert read.scores.labels.tolist() == list(TEST_LABELS)
    assert read.scores.highest.tolist() == SCORES.max(axis=1).tolist()
    assert read.file["labels_from"] == "part test"
    stated = npz(tmp_path / "b.npz", scores=SCORES, gt=np.array(TEST_LABELS))
    assert read_scores(stated, part=part).scores.labels.tolist() == list(TEST_LABELS)
    wrong = npz(tmp_path / "c.npz", scores=SCORES, gt=np.array(TEST_LABELS)[::-1])
    with pytest.raises(PredictionError, match="differs from that of the list"):
        read_scores(wrong, part=part)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"gt": np.array(TEST_LABELS)}, "has no scores"),
        ({"scores": SCORES, "gt": np.array(TEST_LABELS)[:5]}, "numbers of labels"),
        ({"scores": SCORES, "gt": np.array(TEST_LABELS)[:, None]}, "numbers of labels"),
        ({"scores": SCORES[:, 0], "gt": np.array(TEST_LABELS)}, "must be a table"),
        ({"scores": SCORES[:0], "gt": np.array(TEST_LABELS)[:0]}, "must be a table"),
        ({"scores": SCORES[:, :0], "gt": np.array(TEST_LABELS)}, "must be a table"),
        ({"scores": SCORES, "gt": np.array(["0_1"] * 6)}, "not a number"),
        ({"scores": np.full((6, 2), np.nan), "gt": np.array(TEST_LABELS)}, "not a number"),
        ({"scores": SCORES.astype("U9"), "gt": np.array(TEST_LABELS)}, "table of numbers"),
        ({"scores": SCORES, "gt": np.array(["x"] * 6)}, "not a number"),
        ({"scores": SCORES, "gt": np.array([0, 0, 0, 0, 0, 2])}, "out of range"),
    ],
)
def test_archives_that_are_refused(tmp_path: Path, arrays: Any, message: str) -> None:
    with pytest.raises(PredictionError, match=message):
        read_scores(npz(tmp_path / "a.npz", **arrays))


def test_texts_of_what_is_no_character_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(["ab", "c"]))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data[:-16] + b"\xff" * 16)
    with pytest.raises(PredictionError, match="cannot be read"):
        read_npy(tmp_path / "a.npy")
