"""Every evaluator, in every variant, on the synthetic worlds: each number through the command line."""

import json
import sys
from pathlib import Path

import pytest

from curation.benchmarks.elephant.evaluation import VARIANTS as ELEPHANT_VARIANTS
from curation.benchmarks.findmeifyoucan.measures import VARIANTS as OOD_VARIANTS
from curation.benchmarks.osod3.evaluation import VARIANTS as OSOD3_PROFILES
from curation.benchmarks.registry import variants_of
from curation.evaluation.oscr import VARIANTS
from tests.worlds import findmeifyoucan, imagenet, osod3
from tests.worlds.expected import committed, differences
from tests.worlds.runs import RUNS, elephant_run, findmeifyoucan_run, owod_run, voc_run

OWOD_PROFILES = [one.name for one in variants_of("owod")]


@pytest.mark.parametrize("name", RUNS)
def test_every_number_of_every_variant(tmp_path: Path, name: str) -> None:
    run = RUNS[name](tmp_path)
    assert differences(run.result(), run.expected) == []


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith(("coco", "ovcoco", "osod3"))])
def test_pycocotools_gives_every_number_where_hotcoco_is_missing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hotcoco", None)
    run = RUNS[name](tmp_path)
    assert differences(run.result(), run.expected) == []


def test_results_in_the_form_of_voc(tmp_path: Path) -> None:
    run = voc_run(tmp_path, form="text")
    assert differences(run.result(), run.expected) == []


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "paper"),
        (("--set", "difficult=count"), "paper_difficult_counted"),
        (("--variant", "official"), "official"),
        (("--variant", "official", "--set", "level_counts=float32"), "official_float32_counts"),
    ],
)
def test_elephant_one_variant_alone(tmp_path: Path, options: tuple[str, ...], name: str) -> None:
    run = elephant_run(tmp_path, *options)
    found, expected = run.result(), run.expected
    assert differences(found[name], expected[name]) == []
    variants = {one for one in expected if one.startswith(tuple(ELEPHANT_VARIANTS))}
    assert variants & set(found) == {name}


def test_the_elephant_world_tells_the_variants_apart() -> None:
    expected = committed("elephant")
    names = ("paper", "paper_difficult_counted", "official", "official_float32_counts")
    curves = [expected[name].get("mAP11", expected[name].get("mAP")) for name in names]
    assert all(one != two for k, one in enumerate(curves) for two in curves[:k])
    assert expected["paper"]["WI"]["0.3"]["ratio_of_mean_precision"] != expected["official"]["WI"]["0.3"]
    # Level 0.7: 29 of 42 closed images; 28 of the 40 that the published code does not take for wilderness; and
    # float32(0.7) * 40 is 27.99..., its 27 images for 28.
    assert [expected[name]["n_wild_images"][7] for name in names] == [29, 29, 28, 27]
    paper = expected["paper"]
    assert paper["mAP11"] != paper["mAP11_ties_in_input_order"]
    for reading in ("pooled", "ratio_of_mean_precision"):
        assert paper["WI"]["0.3"][reading] != paper["WI"]["0.3"]["macro"]


@pytest.mark.parametrize("world", ["once", "repeated"])
@pytest.mark.parametrize("profile", OWOD_PROFILES)
def test_owod_one_variant_alone(tmp_path: Path, world: str, profile: str) -> None:
    run = owod_run(tmp_path, world, profile)
    found, name = run.result(), f"t2/{profile}"
    assert [one for one in found if "/" in one] == [name]
    assert set(run.expected) == {f"t2/{one}" for one in OWOD_PROFILES}
    assert differences(found, {name: run.expected[name]}) == []


def test_their_variants_differ_from_those_of_other_code() -> None:
    expected = committed("owod")
    ore, fomo, uniow = (
        expected[world][f"t2/{name}"] for world, name in (("once", "ore"), ("rwd", "fomo"), ("nuowodb", "yolo-uniow"))
    )
    assert fomo["mAP_both"] == expected["once"]["t2/owdetr"]["mAP_both"] != ore["mAP_both"]
    assert uniow["mAP_both"] != ore["mAP_both"]
    assert uniow["AOSE"] != ore["AOSE"]


def test_the_owod_world_tells_the_variants_apart() -> None:
    once, repeated = (committed("owod")[name] for name in ("once", "repeated"))
    for section in (once, repeated):
        clean, ore, detr = (section[f"t2/{name}"] for name in ("clean", "ore", "owdetr"))
        assert len({clean["mAP_both"], ore["mAP_both"], detr["mAP_both"]}) == 3
        assert clean["WI"] != ore["WI"]
        assert clean["num_unknown_gt"] != ore["num_unknown_gt"]
        assert ore["AOSE"] > ore["AOSE_objects"]
    assert repeated["t2/ore"]["num_unknown_gt"] > once["t2/ore"]["num_unknown_gt"]


def test_the_osod3_world_tells_the_variants_apart() -> None:
    delete, ignore = (committed("osod3")[name] for name in osod3.RULES)
    assert set(delete["curves"]) == set(OSOD3_PROFILES)
    assert delete["AP_unk"] < ignore["AP_unk"]
    assert delete["curves"]["clean"] != delete["curves"]["voc"]
    assert (delete["AP_per_class"]["owl"], delete["AP_per_class"]["fox"]) == (None, 0)


def test_the_image_ood_world_tells_the_variants_apart() -> None:
    openood, ninco = (committed("image_ood")[name]["ood"] for name in ("openood", "ninco"))
    # Every score has as many ID as OOD images: steps are equal, and scikit-learn's ROC has few points.
    assert (openood["exact"]["textures"]["FPR95"], openood["openood"]["textures"]["FPR95"]) == (0.96, 1)
    assert ninco["exact"]["classes"]["FPR95"] != ninco["ninco"]["classes"]["FPR95"]
    assert ninco["exact"]["classes"]["AUROC"] != ninco["exact"]["ninco"]["AUROC"]


def test_in_the_ovcoco_world_images_without_a_novel_object_cannot_cost_precision() -> None:
    found = committed("ovcoco")
    assert found["constrained/ovr-cnn"]["AP50_novel"] > found["generalized/ovr-cnn"]["AP50_novel"]


def test_the_imagenet_world_tells_the_grids_apart() -> None:
    grids = committed("imagenet")["background"]["oscr"]
    assert set(grids) == set(VARIANTS)
    rates = [tuple(grids[grid]["unknown"]["ccr_at_fpr"].values()) for grid in imagenet.GRIDS]
    assert len(set(rates)) == len(rates)


@pytest.mark.parametrize("rule", findmeifyoucan.THRESHOLDS)
@pytest.mark.parametrize("profile", OOD_VARIANTS)
def test_findmeifyoucan_one_variant_alone(tmp_path: Path, profile: str, rule: str) -> None:
    run = findmeifyoucan_run(tmp_path, profile, rule)
    others = set(findmeifyoucan.MODES) - {profile}
    found = run.result()
    expected = {key: value for key, value in committed("findmeifyoucan")[rule].items() if key not in others}
    assert differences(found, expected) == []
    (section,) = found["results"].values()
    assert differences(section, expected) == []
    assert not others & set(found)


def test_the_findmeifyoucan_world_tells_the_variants_apart() -> None:
    for section in committed("findmeifyoucan").values():
        for key in ("TP_U", "AOSE", "nOSE", "AP_U"):
            assert section["official"][key] != section["paper"][key]
    rules = committed("findmeifyoucan")["zscore"]
    assert len({rules[f"FPR95_{rule}"] for rule in ("first", "ood_positive")}) == 2


@pytest.mark.parametrize("stem", ["{:07d}", "photo_{:07d}"], ids=["digits", "words"])
def test_every_evaluator_takes_images_named_by_the_stems_of_their_files(tmp_path: Path, stem: str) -> None:
    """As Ultralytics names them where ids are texts: ``photo_0000012`` by the stem, ``0000012`` by the number 12."""

    def named(image: int) -> int | str:
        text = stem.format(image)
        return int(text) if text.isnumeric() else text

    detector_runs = (
        "elephant", "voc", "coco", "owod once", "rwd", "nuowodb", "ovcoco", "osod3 delete",
        f"findmeifyoucan {next(iter(findmeifyoucan.THRESHOLDS))}",
    )  # fmt: skip
    for place, made in enumerate(detector_runs):
        (folder := tmp_path / str(place)).mkdir()
        run = RUNS[made](folder)
        files = [Path(word.rpartition("=")[2]) for word in map(str, run.words) if word.endswith(".json")]
        contents = {path: json.loads(path.read_text()) for path in files}
        truths = [one for one in contents.values() if isinstance(one, dict) and "annotations" in one]
        results = [one for one in contents.values() if isinstance(one, list) and one and "image_id" in one[0]]
        assert truths
        assert results, run.protocol
        # Ids in the order of the numbers, and no numbers: what a file of one's own may have.
        number = {key: n for n, key in enumerate(sorted(one["id"] for truth in truths for one in truth["images"]), 11)}
        for truth in truths:
            for one in truth["images"]:
                one |= {
                    "id": f"id-{number[one['id']]:09d}",
                    "file_name": f"photos/{stem.format(number[one['id']])}.jpg",
                }
            for one in truth["annotations"]:
                one["image_id"] = f"id-{number[one['image_id']]:09d}"
        for one in (one for found in results for one in found):
            image = number[one["image_id"]]
            # Beside a number, which is no id of this truth, Ultralytics writes the file name.
            one |= {"image_id": named(image), "file_name": f"{stem.format(image)}.jpg"}
        for path, content in contents.items():
            path.write_text(json.dumps(content))
        assert differences(run.result(), run.expected) == [], run.protocol
