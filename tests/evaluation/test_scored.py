"""What a result says of part, profile, variant, settings and truth, for each protocol that has them."""

from collections.abc import Iterator
from typing import Any

import pytest

from curation.evaluation.protocols import report_of
from curation.evaluation.result import Scored

DIGEST = "sha256:" + "a" * 64


def measured(result: dict[str, Any]) -> Iterator[Scored]:
    yield from report_of(result["protocol"]).scored(result)


MANIFEST = {"name": "n", "version": "1.0.0", "digest": DIGEST}


def file(name: str) -> dict[str, Any]:
    return {"name": f"{name}.json", "sha256": DIGEST, "rows": 1, "reported": {}}


def truth(digit: str) -> dict[str, Any]:
    return {"files": [{"name": "t.json", "sha256": "sha256:" + digit * 64, "rows": 1}], "reported": {}}


def owod_result(manifest: dict[str, Any] | None) -> dict[str, Any]:
    section = {"settings": {"repeats": "error", "WI_recall": "0.8", "iou": ">= 0.5"}}
    return {
        "protocol": "owod",
        "manifest": manifest,
        "option_files": {},
        "profiles": {"clean": "", "ore": ""},
        "tasks": {"t1": {"unknown": None}, "t2": {"unknown": None}},
        "inputs": {task: {"truth": truth("b"), "detections": file(task)} for task in ("t1", "t2")},
        **{f"{task}/{profile}": section for task in ("t1", "t2") for profile in ("clean", "ore")},
    }


def test_each_task_and_profile_of_owod_is_one_record_on_the_part_that_was_scored() -> None:
    found = list(measured(owod_result({**MANIFEST, "parts": ["t1-test", "mine"]})))
    assert [(one.part, one.variant, one.method) for one in found] == [
        ("t1-test", "clean", "t1"), ("t1-test", "ore", "t1"), ("mine", "clean", "t2"), ("mine", "ore", "t2"),
    ]  # fmt: skip
    assert [one.part for one in measured(owod_result(None))] == ["t1", "t1", "t2", "t2"]


def test_other_classes_of_a_task_are_another_truth() -> None:
    result = owod_result(None)
    first, _, second, _ = measured(result)
    assert first.truth != second.truth  # files are equal, tasks are told apart by their parts
    result["tasks"]["t1"] = {"unknown": ["kite"]}
    assert next(measured(result)).truth != first.truth


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
        measured(
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
    (found,) = measured(
        {
            "protocol": "imagenet",
            "manifest": {**MANIFEST, "parts": {"scores": part, "val": None}},
            "inputs": {"EOS": {"scores": scores, "val": None}},
            "classifiers": {"EOS": {"background": "none", "oscr": {"exact": {"unknown": {}}}}},
        }
    )
    assert (found.method, found.part, found.pinned) == ("EOS", part or "", part is not None)
    assert found.truth == {"labels": DIGEST}
