"""What a result says of part, profile, variant, settings and truth, for each protocol that has them."""

import json
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.errors import CurationError
from tests.evaluation.scored_rows import scored_of
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
            curation.evaluate("owod", **given)
        return
    found = curation.evaluate("owod", variants=("clean", "ore"), **given).scored
    assert [(one.part, one.task, one.variant, one.method) for one in found] == [
        ("t2", "t2", "clean", "detections"), ("t2", "t2", "ore", "detections"),
    ]  # fmt: skip
    # Other classes of a task are another truth.
    assert all(one.truth["task"]["unknown"] == list(rest) for one in found)


def test_each_score_of_a_split_is_a_variant_and_both_files_are_its_predictions() -> None:
    section = {
        "threshold_rule": "zscore",
        "threshold": 0.5,
        "official": {"AOSE": 3},
        "paper": None,
        "AUROC": 0.5,
    }
    inputs = {"truth": truth("b"), "detections": file("model"), "id_scores": file("id")}
    found = list(
        scored_of(
            {
                "protocol": "findmeifyoucan",
                "manifest": {**MANIFEST, "parts": ["near"]},
                "option_files": {},
                "settings": {
                    "profiles": {"official": "", "paper": ""}, "fpr": {"rule": "first"}, "official_compat": True,
                    "t_star": None,
                },
                "inputs": {"near": inputs},
                "results": {
                    "near/ood_score": {"split": "near", "method": "ood_score", **section},
                    "near/energy": {"split": "near", "method": "energy", **section},
                },
            }
        )
    )  # fmt: skip
    assert [(one.score, one.variant) for one in found] == [
        ("", "official"), ("", "paper"), ("energy", "official"), ("energy", "paper"),
    ]  # fmt: skip
    assert found[0].settings == {"threshold": "zscore", "fpr": "first", "official_compat": "true"}
    assert set(found[0].predictions) == {"detections", "id_scores"}
    assert (found[0].numbers["AOSE"], "AOSE" in found[1].numbers) == (3, False)


@pytest.mark.parametrize("part", ["test", None])
def test_only_a_named_part_pins_the_images_of_a_classifier(part: str | None) -> None:
    scores = {**file("s"), "kind": "logits", "labels_sha256": DIGEST}
    (found,) = scored_of(
        {
            "protocol": "imagenet",
            "manifest": {**MANIFEST, "parts": {"scores": part, "val": None}},
            "inputs": {"EOS": {"scores": scores, "val": None}},
            "classifiers": {"EOS": {"background": "none", "oscr": {"exact": {"unknown": {}}}}},
        }
    )
    assert (found.method, found.part, found.pinned) == ("EOS", part or "", part is not None)
    assert found.truth == {"labels": DIGEST}
