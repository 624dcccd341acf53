"""Every evaluator, in every variant, on the synthetic worlds: each number through the command line."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from curation.benchmarks.elephant.evaluation import PROFILES as ELEPHANT_PROFILES
from curation.benchmarks.findmeifyoucan.measures import PROFILES as OOD_PROFILES
from curation.benchmarks.osod3.evaluation import PROFILES as OSOD3_PROFILES
from curation.benchmarks.osod3.truth import OUTSIDE
from curation.benchmarks.owod.outcomes import PROFILES as OWOD_PROFILES
from curation.cli import main
from curation.evaluation.oscr import GRIDS
from curation.evaluation.result import schema_text
from tests.worlds import coco, elephant, findmeifyoucan, imagenet, osod3, owod, voc
from tests.worlds.expected import committed, differences

Run = Callable[..., dict[str, Any]]
SCHEMA = json.loads(schema_text())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``curation evaluate`` and return the result that it prints."""

    def evaluate(*words: object) -> dict[str, Any]:
        assert main(["evaluate", *map(str, words), "--json"]) == 0
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        jsonschema.validate(result, SCHEMA)
        assert result["measures"]
        return result

    return evaluate


def elephant_words(paths: Mapping[str, Path]) -> list[str]:
    words = ["elephant", "--no-cache", "--fbeta-ratios", ",".join(elephant.RATIOS)]
    for part in ("closed", "wilderness"):
        words += ["--truth", f"{part}={paths[f'truth_{part}']}"]
        words += ["--detections", f"{part}={paths[f'detections_{part}']}"]
    return words


def test_elephant_in_every_variant(run: Run, tmp_path: Path) -> None:
    found = run(*elephant_words(elephant.files(tmp_path)), "--profile", "all")
    assert differences(found, committed("elephant")) == []


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "paper"),
        (("--difficult", "count"), "paper_difficult_counted"),
        (("--profile", "official"), "official"),
        (("--profile", "official", "--level-counts", "float32"), "official_float32_counts"),
    ],
)
def test_elephant_one_variant_alone(run: Run, tmp_path: Path, options: tuple[str, ...], name: str) -> None:
    expected = committed("elephant")
    found = run(*elephant_words(elephant.files(tmp_path)), *options)
    assert differences(found[name], expected[name]) == []
    variants = {one for one in expected if one.startswith(tuple(ELEPHANT_PROFILES))}
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
@pytest.mark.parametrize("profile", [*OWOD_PROFILES, "all"])
def test_owod(run: Run, tmp_path: Path, world: str, profile: str) -> None:
    paths = owod.files(tmp_path, *(owod.drawn() if world == "once" else owod.repeated()))
    words: list[object] = [
        "owod",
        "--no-cache",
        "--truth",
        paths["truth"],
        "--detections",
        paths["detections"],
    ]
    words += ["--classes", paths["classes"], "--profile", profile]
    if world == "repeated":
        words += ["--images", paths["images"], "--repeats", "keep"]
    found = run(*words)
    names = [f"t2/{one}" for one in OWOD_PROFILES] if profile == "all" else [f"t2/{profile}"]
    assert [name for name in found if "/" in name] == names
    expected = committed("owod")[world]
    assert set(expected) == {f"t2/{one}" for one in OWOD_PROFILES}
    assert differences(found, {name: expected[name] for name in names}) == []


def test_the_owod_world_tells_the_variants_apart() -> None:
    once, repeated = (committed("owod")[name] for name in ("once", "repeated"))
    for section in (once, repeated):
        clean, ore, detr = (section[f"t2/{name}"] for name in ("clean", "ore", "owdetr"))
        assert len({clean["mAP_both"], ore["mAP_both"], detr["mAP_both"]}) == 3
        assert clean["WI"] != ore["WI"]
        assert clean["num_unknown_gt"] != ore["num_unknown_gt"]
        assert ore["A_OSE_detections"] > ore["A_OSE_objects"]
    assert repeated["t2/ore"]["num_unknown_gt"] > once["t2/ore"]["num_unknown_gt"]


@pytest.mark.parametrize("engine", ["faster", "pycocotools"])
@pytest.mark.parametrize("outside", OUTSIDE)
def test_osod3(run: Run, tmp_path: Path, outside: str, engine: str) -> None:
    if engine == "faster":
        pytest.importorskip("faster_coco_eval", reason="faster-coco-eval is not installed")
    paths = osod3.files(tmp_path)
    words = ["osod3", "--no-cache", "--outside", outside, "--engine", engine, "--profile", "all"]
    words += ["--thetas", ",".join(osod3.THETAS)]
    for name in ("truth", "detections", "classes"):
        words += [f"--{name}", str(paths[name])]
    (found,) = run(*words)["cases"].values()
    expected = committed("osod3")[outside]
    assert set(expected["curves"]) == set(OSOD3_PROFILES)
    assert differences(found, expected) == []


def test_the_osod3_world_tells_the_variants_apart() -> None:
    delete, ignore = (committed("osod3")[name] for name in osod3.RULES)
    assert delete["AP_unk"] < ignore["AP_unk"]
    assert delete["curves"]["clean"] != delete["curves"]["voc"]
    assert (delete["AP_per_class"]["owl"], delete["AP_per_class"]["fox"]) == (None, 0)


def test_imagenet_on_every_grid(run: Run, tmp_path: Path) -> None:
    paths = imagenet.files(tmp_path)
    words = ["imagenet", "--grid", "all", "--queries", ",".join(imagenet.QUERIES)]
    words += ["--background", "background=last"]
    for name in imagenet.CLASSIFIERS:
        words += ["--scores", f"{name}={paths[f'{name}_test']}", "--val", f"{name}={paths[f'{name}_val']}"]
    expected = committed("imagenet")
    assert differences(run(*words)["classifiers"], expected) == []
    assert set(expected["background"]["oscr"]) == set(GRIDS)


def test_the_imagenet_world_tells_the_grids_apart() -> None:
    grids = committed("imagenet")["background"]["oscr"]
    rates = [tuple(grids[grid]["unknown"]["ccr_at_fpr"].values()) for grid in imagenet.GRIDS]
    assert len(set(rates)) == len(rates)


@pytest.mark.parametrize("rule", findmeifyoucan.THRESHOLDS)
@pytest.mark.parametrize("profile", [*OOD_PROFILES, "all"])
def test_findmeifyoucan(run: Run, tmp_path: Path, profile: str, rule: str) -> None:
    paths = findmeifyoucan.files(tmp_path)
    words: list[object] = ["findmeifyoucan", "--no-cache", "--profile", profile, "--threshold", rule]
    words += [
        "--truth",
        paths["truth"],
        "--detections",
        paths["detections"],
        "--id-scores",
        paths["id_scores"],
    ]
    expected = committed("findmeifyoucan")[rule]
    others = set(findmeifyoucan.MODES) - {profile} if profile != "all" else set()
    found = run(*words)
    assert differences(found, {key: value for key, value in expected.items() if key not in others}) == []
    assert not others & set(found)


def test_the_findmeifyoucan_world_tells_the_variants_apart() -> None:
    for section in committed("findmeifyoucan").values():
        for key in ("TP_U", "AOSE", "nOSE", "AP_U"):
            assert section["official"][key] != section["paper"][key]
    rules = committed("findmeifyoucan")["zscore"]
    assert len({rules[f"FPR95_{rule}"] for rule in ("first", "ood_positive")}) == 2


@pytest.mark.parametrize("form", ["json", "text"])
def test_voc_in_both_flavours(run: Run, tmp_path: Path, form: str) -> None:
    paths = voc.files(tmp_path)
    found = run("voc", "--no-cache", "--truth", paths["truth"], "--detections", paths[form])
    assert differences(found, committed("voc")) == []


@pytest.mark.parametrize("engine", ["faster", "pycocotools", "both"])
def test_coco(run: Run, tmp_path: Path, engine: str) -> None:
    pytest.importorskip("faster_coco_eval", reason="faster-coco-eval is not installed")
    paths = coco.files(tmp_path)
    words = ("coco", "--no-cache", "--truth", paths["truth"], "--detections", paths["detections"])
    assert differences(run(*words, "--engine", engine), committed("coco")) == []
