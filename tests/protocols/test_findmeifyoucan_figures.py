"""Figures of the paper beside those obtained."""

from curation.benchmarks.building import read_parameters
from curation.benchmarks.findmeifyoucan.lists import KEPT
from curation.benchmarks.registry import find_benchmark
from curation.manifest.header import Figure
from tests.protocols.findmeifyoucan_world import build, coco, decided, listed

BENCHMARK = find_benchmark("findmeifyoucan")


def declared(pair: str) -> dict[str, Figure]:
    assert BENCHMARK.declare is not None
    header = BENCHMARK.declare({}, read_parameters(BENCHMARK, {"pair": pair})).header
    return {one.name: one for one in header.figures}


def test_declared_manifests_state_the_six_sizes_and_what_each_needs() -> None:
    both = declared("voc") | {f"bdd {name}": one for name, one in declared("bdd").items()}
    sizes = [one.paper for name, one in both.items() if name.endswith((".images",)) and "start" not in name]
    assert sorted(size for size in sizes if size) == sorted([1174, 938, 908, 1179, 1873, 1695])
    starts = {name: one.paper for name, one in both.items() if name.endswith("-start.images")}
    assert sorted(starts.values()) == [930, 1761, 1761, 1880]  # type: ignore[type-var]
    assert all(one.obtained is None for one in both.values())
    assert both["coco-near.images"].explanation == "needs --source coco-val2017=PATH"
    assert both["openimages.near_and_far_images"].paper == 1
    assert "coco.near_and_far_images" in both
    assert "bdd coco.near_and_far_images" not in both


def test_kept_and_added_parts_stand_apart_and_add_up() -> None:
    found = declared("voc")
    for part in KEPT["voc"]:
        kept, added, size = (found[f"{part}.{name}"].paper for name in ("kept_images", "added_images", "images"))
        assert kept is not None
        assert added is not None
        assert kept + added == size


def test_a_difference_says_why() -> None:
    sources = {
        "coco-val2017": coco("val2017", {1: ["kite"], 2: ["zebra"]}),
        "vos-coco-voc": listed("coco", ["000000000001", "000000000002"]),
    }
    manifest = build(sources, pools="coco")
    why = {one.name: one.explanation for one in manifest.header.figures}
    assert why["coco-near.images"] == "the automatic stage alone: no decision was given"
    reviewed = build(sources, decided("coco", "manual", "remove", 1), pools="coco")
    why = {one.name: one.explanation for one in reviewed.header.figures}
    assert "other decisions" in why["coco-near.images"]
    assert why["coco-far.excluded_images"] == ""
