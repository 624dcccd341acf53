"""The protocol on a small world: rule, automatic stage, overrides, manual stage, candidates, six splits."""

import json
import random
from typing import Any

import pytest

from curation.benchmarks.building import complete, read_parameters, rebuild
from curation.benchmarks.registry import find_benchmark
from curation.core.errors import ProtocolError
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header, check_lists
from curation.manifest.views import view_objects
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import build, coco, decided, listed, natives, open_images

BENCHMARK = find_benchmark("findmeifyoucan")

VAL = {
    1: ["kite"],
    2: ["kite", "zebra"],
    3: ["zebra", "pizza"],
    4: [],
    5: ["person", "kite"],
    6: ["spoon"],
    7: ["truck"],
    8: ["bear", "clock"],
    9: ["clock"],
    10: ["kite"],
}
TRAIN = {101: ["kite"], 102: ["zebra"], 103: ["clock", "dog"], 104: ["kite", "fork"]}
TRAIN_NEAR, TRAIN_FAR = 102, 101


@pytest.fixture
def sources() -> dict[str, Source]:
    kept = [f"{one:012d}" for one in (1, 2, 3, 4, 6, 7, 8, 9)]
    return {
        "coco-val2017": coco("val2017", VAL),
        "coco-train2017": coco("train2017", TRAIN),
        "vos-coco-voc": listed("coco", kept),
        "vos-coco-bdd": listed("coco", [f"{one:012d}" for one in (1, 2, 3)]),
    }


def figures(manifest: Manifest) -> dict[str, Any]:
    return {one.name: one.obtained for one in manifest.header.figures}


def sound(manifest: Manifest) -> Manifest:
    check_header(manifest.header, where="built")
    check_lists(manifest.header, manifest.lists, where="built")
    assert all(bool(figure.explanation) == (figure.paper != figure.obtained) for figure in manifest.header.figures)
    return manifest


def test_the_automatic_stage_removal_wins_over_near(sources: dict[str, Source]) -> None:
    manifest = sound(build(sources, pools="coco"))
    assert natives(manifest, "coco-rule") == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert natives(manifest, "coco-start") == [1, 2, 3, 4, 6, 7, 8, 9]
    assert natives(manifest, "coco-near") == [2, 8]
    assert natives(manifest, "coco-far") == [1, 4, 7, 9]
    assert manifest.header.origin == "regenerated"
    assert manifest.header.name == "findmeifyoucan/voc-coco-automatic"
    assert any("no judgement" in note for note in manifest.header.notes)
    assert figures(manifest)["coco.removed_images"] == 2


def test_overrides_then_remove_to_near_to_far_then_candidates(sources: dict[str, Source]) -> None:
    decisions = [
        *decided("coco", "auto_override", "keep_near", 3, 6),
        *decided("coco", "auto_override", "remove", 1),
        # Remove acts on far alone: 8 is near and stays.
        *decided("coco", "manual", "remove", 4, 8, reason="person"),
        *decided("coco", "manual", "to_near", 7),
        *decided("coco", "manual", "to_far", 2),
        *decided("coco", "candidate", "add_near", TRAIN_NEAR),
        *decided("coco", "candidate", "add_far", TRAIN_FAR),
    ]
    manifest = sound(build(sources, decisions, pools="coco"))
    assert natives(manifest, "coco-near") == [3, 6, 7, 8, 102]
    assert natives(manifest, "coco-far") == [2, 9, 101]
    assert manifest.header.origin == "reviewed"
    assert manifest.header.decisions is not None
    obtained = figures(manifest)
    assert (obtained["coco-near.kept_images"], obtained["coco-near.added_images"]) == (4, 1)
    assert (obtained["coco-near.required_images"], obtained["coco-near.excluded_images"]) == (3, 0)
    assert (obtained["coco-far.required_images"], obtained["coco-far.excluded_images"]) == (1, 0)
    assert rebuild(manifest, sources).digest == manifest.digest
    shuffled = decisions[::]
    random.Random(1).shuffle(shuffled)
    assert build(sources, [*shuffled, *decisions], pools="coco").digest == manifest.digest


def test_decisions_without_effect_are_told(sources: dict[str, Source]) -> None:
    decisions = [*decided("coco", "manual", "to_near", 999_999), *decided("elsewhere", "manual", "remove", "abc")]
    notes = " ".join(build(sources, decisions, pools="coco").header.notes)
    assert "999999" in notes
    assert "1 of 'elsewhere'" in notes


def test_bdd_hears_only_removals_of_people(sources: dict[str, Source]) -> None:
    decisions = [
        *decided("coco", "manual", "remove", 1, reason="person"),
        *decided("coco", "manual", "remove", 2, reason="car"),
        *decided("coco", "auto_override", "remove", 3),
        *decided("coco", "candidate", "add_far", TRAIN_FAR),
    ]
    manifest = sound(build(sources, decisions, pair="bdd", pools="coco"))
    assert natives(manifest, "coco-farther") == [2, 3]
    # Dogs may be far from a detector of traffic; trucks may not.
    assert natives(manifest, "coco-rule") == [1, 2, 3, 4, 6, 8, 9, 10]
    assert set(manifest.lists) == {"coco-rule", "coco-start", "coco-farther"}
    assert any(note.startswith("coco: 3 decisions do not count") for note in manifest.header.notes)


def test_a_published_list_outside_the_rule_is_an_error(sources: dict[str, Source]) -> None:
    for native, message in ((5, "start rule refuses"), (77, "not in the source")):
        wrong = {**sources, "vos-coco-voc": listed("coco", ["000000000001", f"{native:012d}"])}
        with pytest.raises(ProtocolError, match=message):
            build(wrong, pools="coco")


def test_without_the_published_list_only_the_rule_is_had(sources: dict[str, Source]) -> None:
    del sources["vos-coco-voc"]
    manifest = sound(build(sources, pools="coco"))
    assert manifest.header.origin == "declared"
    assert set(manifest.lists) == {"coco-rule"}
    by_rule = sound(build(sources, pools="coco", start="rule"))
    assert by_rule.header.name == "findmeifyoucan/voc-coco-rule-automatic"
    assert natives(by_rule, "coco-near") == [2, 8]
    assert natives(by_rule, "coco-far") == [1, 4, 7, 9, 10]


def test_added_images_need_their_source(sources: dict[str, Source]) -> None:
    decisions = decided("coco", "candidate", "add_near", TRAIN_NEAR)
    train = sources.pop("coco-train2017")
    manifest = sound(build(sources, decisions, pools="coco"))
    assert set(manifest.lists) == {"coco-rule", "coco-start", "coco-far"}
    assert figures(manifest)["coco-near.added_images"] == 1
    with pytest.raises(ProtocolError, match="images of coco-far are not in the source"):
        build({**sources, "coco-train2017": train}, decided("coco", "candidate", "add_far", 5), pools="coco")


def test_an_image_in_both_splits_is_reported() -> None:
    sources = {
        "openimages": open_images({"aa01": ["Coin"], "aa02": ["Fox"], "aa03": ["Flag"], "aa04": ["Person"]}),
        "vos-openimages-voc": listed("openimages", ["aa01", "aa02", "aa04"]),
    }
    decisions = [
        *decided("openimages", "candidate", "add_near", "aa03"),
        *decided("openimages", "candidate", "add_far", "aa03"),
    ]
    manifest = sound(build(sources, decisions, pools="openimages"))
    assert natives(manifest, "openimages-near") == ["aa02", "aa03"]
    assert natives(manifest, "openimages-far") == ["aa01", "aa03"]
    assert figures(manifest)["openimages.near_and_far_images"] == 1
    assert any("openimages:aa03" in note for note in manifest.header.notes)


def test_overlaps_stand_in_the_notes_and_in_the_counts() -> None:
    sources = {
        "openimages": open_images({"aa01": ["Duck", "Coin"], "aa02": ["Dog", "Food"], "aa03": ["Coin"]}),
        "vos-openimages-voc": listed("openimages", ["aa01", "aa02", "aa03"]),
    }
    manifest = sound(build(sources, pools="openimages"))
    notes = [note for note in manifest.header.notes if note.startswith("Overlap")]
    assert any("near list" in note and "'Dog'" in note for note in notes)
    assert any("openimages-near" in note and "'Dog' (1 objects)" in note for note in notes)
    assert any("openimages-far" in note and "'Duck' (1 objects) is a kind of" in note for note in notes)
    assert manifest.part("openimages-near").boxes["known"] == 1
    assert not view_objects(manifest, "openimages-near", sources).ignore.any()
    ignoring = build(sources, pools="openimages", id_objects="ignore")
    assert view_objects(ignoring, "openimages-near", sources).ignore.tolist() == [True, False]
    # The lists name what Open Images has not: it refuses nothing, and that is told.
    assert any("Potted plant" in note and "without effect" in note for note in manifest.header.notes)


def test_a_pair_of_ones_own_goes_the_same_way(sources: dict[str, Source]) -> None:
    pair = json.dumps(
        {
            "name": "lab/pets",
            "id_classes": ["dog"],
            "aliases": {"dog": ["bear"]},
            "pools": [{"name": "zoo", "dataset": "coco", "near": {"zebra": "dog"}, "remove": {"pizza": "dog"}}],
        }
    )
    own = {"zoo": coco("", VAL)}
    manifest = sound(build(own, decided("zoo", "manual", "to_near", 1), pair=pair))
    assert natives(manifest, "zoo-near") == [1, 2]
    assert natives(manifest, "zoo-far") == [4, 5, 6, 7, 9, 10]
    assert (manifest.header.name, manifest.header.origin) == ("lab/pets", "reviewed")
    assert [entry.name for entry in manifest.header.classes if entry.role == "known"] == ["dog"]
    assert rebuild(manifest, own).digest == manifest.digest
    narrowed = build({**own, "zoo-list": listed("coco", ["000000000002", "000000000004"])}, pair=pair)
    assert natives(narrowed, "zoo-start") == [2, 4]
    assert natives(narrowed, "zoo-far") == [4]
    # The user's lists are in no paper, and nobody published the start list.
    header = narrowed.header
    assert (header.paper, header.notes[0]) == (None, "Rule near-far (after Montoya et al. 2025); data: user.")
    assert not any("published" in part.selection for part in header.parts)
    assert header.parts[1].selection == "The start list zoo-list."


def test_a_decision_may_name_the_split_instead_of_the_pool(sources: dict[str, Source]) -> None:
    by_part = decided("coco-far", "manual", "remove", 1)
    assert natives(build(sources, by_part, pools="coco"), "coco-far") == [4, 7, 9]


def test_a_declared_manifest_is_completed_by_the_pinned_decisions_alone(sources: dict[str, Source]) -> None:
    declared = BENCHMARK.declare(sources, read_parameters(BENCHMARK, {"pools": "coco"}))  # type: ignore[misc]
    assert declared.header.origin == "declared"
    assert set(declared.lists) == {"coco-rule", "coco-start"}
    _, missed = complete(declared, sources, decisions='[["coco","manual","remove","",["coco:000000000001"]]]')
    assert {one.name for one in missed} >= {"decisions", "coco-near.images"}


def test_nothing_to_start_from_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="No images to start from"):
        build({})
    with pytest.raises(ProtocolError, match="no such pool"):
        build({}, pools="flickr")
