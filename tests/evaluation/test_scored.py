"""What a result says of part, profile, variant, settings and truth, for each protocol that has them."""

import json
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.core.errors import CurationError
from tests.evaluation.ood_reference import EXAMPLE
from tests.evaluation.ood_worlds import example_files, write
from tests.worlds import owod

DIGEST = "sha256:" + "a" * 64


MANIFEST = {"name": "n", "version": "1.0.0", "digest": DIGEST}


def file(name: str) -> dict[str, Any]:
    return {"name": f"{name}.json", "sha256": DIGEST, "rows": 1, "reported": {}}


def truth(digit: str) -> dict[str, Any]:
    return {"files": [{"name": "t.json", "sha256": "sha256:" + digit * 64, "rows": 1}], "reported": {}}


@pytest.mark.parametrize("rest", [owod.REST, ("cup", "kite")])
def test_each_task_and_profile_of_owod_is_one_record_on_the_part_that_was_scored(
    tmp_path: Path, rest: tuple[str, ...]
) -> None:
    paths = owod.files(tmp_path, *owod.drawn())
    task = {"prev": owod.PREVIOUS, "cur": owod.CURRENT, "rest": rest}
    paths["classes"].write_text(json.dumps({"tasks": [{"name": "t2", **task}]}))
    given = {key: paths[key] for key in ("truth", "detections", "classes")}
    if rest != owod.REST:
        with pytest.raises(CurationError, match="does not name"):
            curation.evaluate.owod(**given)
        return
    found = curation.evaluate.owod(variant=("clean", "ore"), **given).scored
    assert [(one.part, one.task, one.variant, one.method) for one in found] == [
        ("t2", "t2", "clean", "detections"), ("t2", "t2", "ore", "detections"),
    ]  # fmt: skip
    # Other classes of a task are another truth.
    assert all(one.truth["task"]["unknown"] == list(rest) for one in found)


def test_each_score_of_a_split_has_its_variants_and_both_files_are_its_predictions(tmp_path: Path) -> None:
    files = example_files(tmp_path)
    rows = [{**row, "scores": {"energy": 1.0}} for row in json.loads(files["detections"].read_bytes())]
    ids = dict.fromkeys(("ood_score", "energy"), EXAMPLE.ids)
    found = curation.evaluate.findmeifyoucan(
        truth=files["truth"],
        detections={"near": write(tmp_path / "d.json", rows)},
        id_scores=write(files["id"], {"scores": ids}),
        score=("ood_score", "energy"),
        classes=write(tmp_path / "k.json", {"known": ["a", "b"], "unknown": []}),
    ).scored
    assert [(one.split, one.score, one.variant) for one in found] == [
        ("near", score, variant) for score in ("", "energy") for variant in ("official", "paper")
    ]
    assert found[0].settings == {"threshold": "zscore", "fpr": "first", "official_compat": "false"}
    assert set(found[0].predictions) == {"detections", "id_scores"}
