"""The protocol on a small world: rule, automatic stage, overrides, manual stage, candidates, six splits."""

import random
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.building import complete, read_parameters, rebuild
from curation.benchmarks.registry import find_benchmark
from curation.core.errors import ProtocolError
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header, check_lists
from curation.manifest.views import view_objects
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import (
    BDD,
    COCO_NAMES,
    VOC,
    build,
    build_by_rule,
    coco,
    decided,
    listed,
    natives,
    open_images,
    source_of,
)

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
    with pytest.raises(ProtocolError, match="No source of start images"):
        build({})
    with pytest.raises(ProtocolError, match="no such pool"):
        build({}, pools="flickr")


@pytest.mark.parametrize("case", ["voc", "bdd"])
def test_a_file_that_extends_the_paper_gives_its_lists(tmp_path: Path, case: str) -> None:
    """With the published start lists and without them, before and after decisions, every list is that of the paper."""
    rng, pair = random.Random(case), {"voc": VOC, "bdd": BDD}[case]
    names = ["Coin", *dict.fromkeys([*VOC.pools[1].near, *VOC.pools[1].remove])]

    def show(names: list[str]) -> list[str]:
        return rng.sample(names, rng.randint(0, 2))

    val = {image: show(COCO_NAMES) for image in range(1, 300)}
    oi = {f"a{image:02d}": show(names) for image in range(90)}
    sources = {
        "coco-val2017": coco("val2017", val),
        "coco-train2017": coco("train2017", {1001: ["kite"], 1002: ["dog"]}),
        "openimages": source_of("openimages", "train", oi, names),
    }
    sources = {name: source for name, source in sources.items() if case == "voc" or name != "coco-train2017"}
    start = [image for image, shown in val.items() if not {*pair.pools[0].id_names} & {*shown}]
    lists = {
        f"vos-coco-{case}": listed("coco", [f"{image:012d}" for image in start[::2]]),
        f"vos-openimages-{case}": listed("openimages", [*oi][::2]),
    }
    decisions = [
        *decided("coco", "manual", "remove", *start[:9:2], reason="person"),
        *decided("coco", "auto_override", "keep_near", start[10]),
        *decided("coco", "candidate", "add_far", 1001),
        *decided("openimages", "candidate", "add_near", "a01"),
    ]
    for recorded in ([], decisions):
        paper = build({**sources, **lists}, recorded, pair=case)
        made = build_by_rule(tmp_path, case, {**sources, **lists}, recorded)
        assert sound(made).lists == paper.lists
        assert [part.boxes for part in made.header.parts] == [part.boxes for part in paper.header.parts]
        assert made.header.classes == paper.header.classes
        assert (made.header.name, made.header.title, made.header.paper) == (f"mylab/{case}", f"mylab/{case}", None)
        coco_alone = {name: source for name, source in sources.items() if name.startswith("coco")}
        by_rule = build(coco_alone, recorded, pair=case, start="rule", pools="coco")
        assert build_by_rule(tmp_path, case, coco_alone, recorded).lists == by_rule.lists
