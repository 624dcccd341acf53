"""The real val2017 and the recorded decisions: what follows from them without the lists that are not at hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.building import complete, read_parameters
from curation.benchmarks.findmeifyoucan.lists import AUTHORS_DECISIONS, paper_file, read_recorded
from curation.benchmarks.registry import find_benchmark
from curation.manifest.manifest import Manifest
from curation.review.decisions.files import read_decisions
from curation.review.decisions.resolution import recorded_digest
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.protocols.findmeifyoucan_world import (
    BDD,
    OI_NAMES,
    VOC,
    build_by_rule,
    coco,
    listed,
    overlap_counts,
    source_of,
)
from tests.real_files import provided, real_files

BENCHMARK = find_benchmark("findmeifyoucan")

pytestmark = pytest.mark.shared
SHARED_IMAGE = "openimages:00166893b16a03ab"


@provided
def selection(shared: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        (shared / "data/findmeifyoucan/manual_selection.json").read_text(encoding="utf-8")
    )
    return content


@provided
def sources(shared: Path, selection: dict[str, Any]) -> dict[str, Source]:
    """Val2017 as it is; train2017 and Open Images with just the images that decisions speak of."""
    chosen = selection["FROM_CANDIDATES"]
    flat = [
        image
        for key in ("UNFILTERED_IMAGES_TO_FAR", "UNFILTERED_IMAGES_TO_REMOVE", "UNFILTERED_IMAGES_TO_NEAR")
        for several in selection[key]["openimages"].values()
        for image in several
    ]
    flat += [*selection["KEEP_TO_NEAR_IDS"]["openimages"], *selection["REMOVE_IDS"]["openimages"]]
    start = dict.fromkeys(sorted(set(flat)))
    every = start | dict.fromkeys(sorted({*chosen["openimages"], *chosen["openimages_near"]}))
    val = open_path(shared / "data/coco/instances_val2017_rebuilt.json", dataset="coco", part="val2017")
    return {
        "coco-val2017": val,
        "coco-train2017": coco("train2017", dict.fromkeys(sorted({*chosen["coco"], *chosen["coco_near"]}), ("kite",))),
        "openimages": source_of("openimages", "train", dict.fromkeys(every, ("Coin",)), OI_NAMES),
        "vos-openimages-voc": listed("openimages", list(start)),
        "vos-openimages-bdd": listed("openimages", list(start)),
    }


def built(shared: Path, sources: dict[str, Source], **settings: str) -> Manifest:
    decisions = str(shared / "data/findmeifyoucan/manual_selection.json")
    parameters = read_parameters(BENCHMARK, {"decisions": decisions, **settings})
    return BENCHMARK.build(sources, parameters)


@provided
def by_rule(shared: Path, sources: dict[str, Source]) -> Manifest:
    coco_alone = {name: one for name, one in sources.items() if name.startswith("coco")}
    return built(shared, coco_alone, start="rule", pools="coco")


@provided
def open_images(shared: Path, sources: dict[str, Source]) -> Manifest:
    return built(shared, sources, pools="openimages")


def figures(manifest: Manifest) -> dict[str, int | None]:
    return {one.name: one.obtained for one in manifest.header.figures}


@real_files("decisions")
def check_the_rule_of_vos_on_val2017_against_a_loop_over_the_file(
    shared: Path, sources: dict[str, Source], by_rule: Manifest
) -> None:
    content = json.loads((shared / "data/coco/instances_val2017_rebuilt.json").read_text())
    names = {one["id"]: one["name"] for one in content["categories"]}
    bad = {
        key: {one["image_id"] for one in content["annotations"] if names[one["category_id"]] in refused}
        for key, refused in (("voc", VOC.pools[0].id_names), ("bdd", BDD.pools[0].id_names))
    }
    for key, size, published in (("voc", 969, 930), ("bdd", 1914, 1880)):
        kept = sorted(f"coco:{one['id']:012d}" for one in content["images"] if one["id"] not in bad[key])
        manifest = by_rule if key == "voc" else built(shared, sources, pair="bdd", start="rule", pools="coco")
        assert list(manifest.ids("coco-rule")) == kept
        assert len(kept) == size
        # The rule alone is a superset of what is published, never less.
        assert size >= published == paper_file(key).expect["coco-start.images"].value


@real_files("decisions")
def check_a_file_that_extends_the_paper_gives_the_splits_of_val2017(
    shared: Path, tmp_path: Path, sources: dict[str, Source], by_rule: Manifest
) -> None:
    decisions = read_decisions(shared / "data/findmeifyoucan/manual_selection.json").decisions
    coco_alone = {name: source for name, source in sources.items() if name.startswith("coco")}
    assert build_by_rule(tmp_path, "voc", coco_alone, decisions).lists == by_rule.lists


@real_files("decisions")
def check_images_that_decisions_keep_or_move_pass_the_rule(by_rule: Manifest, selection: dict[str, Any]) -> None:
    kept = {int(one.partition(":")[2]) for one in by_rule.ids("coco-rule")}
    assert set(selection["KEEP_TO_NEAR_IDS"]["coco"]) <= kept
    for key in ("UNFILTERED_IMAGES_TO_FAR", "UNFILTERED_IMAGES_TO_NEAR"):
        for several in selection[key]["coco"].values():
            assert set(several) <= kept


@real_files("decisions")
def check_coco_splits_from_the_rule_hold_the_kept_parts_and_exactly_the_added_ones(by_rule: Manifest) -> None:
    obtained = figures(by_rule)
    assert (obtained["coco-near.added_images"], obtained["coco-far.added_images"]) == (878, 450)
    assert (obtained["coco-near.required_images"], obtained["coco-far.required_images"]) == (896, 450)
    assert (obtained["coco-near.excluded_images"], obtained["coco-far.excluded_images"]) == (0, 0)
    assert obtained["coco.near_and_far_images"] == 0
    # 39 images more to start from: kept parts are as large as the published ones or larger, by no more.
    near, far = obtained["coco-near.kept_images"], obtained["coco-far.kept_images"]
    assert near is not None
    assert far is not None
    assert near >= 296
    assert far >= 488
    assert (near - 296) + (far - 488) <= 39


@real_files("decisions")
def check_open_images_splits_hold_what_decisions_say(open_images: Manifest) -> None:
    obtained = figures(open_images)
    assert (obtained["openimages-near.added_images"], obtained["openimages-far.added_images"]) == (265, 320)
    assert obtained["openimages-near.required_images"] == 278
    assert obtained["openimages-far.required_images"] == 320
    assert obtained["openimages-near.excluded_images"] == 0
    assert obtained["openimages-far.excluded_images"] == 0
    assert obtained["openimages.near_and_far_images"] == 1
    near, far = set(open_images.ids("openimages-near")), set(open_images.ids("openimages-far"))
    assert near & far == {SHARED_IMAGE}
    assert any(SHARED_IMAGE in note for note in open_images.header.notes)


@real_files("decisions")
def check_farther_hears_45_and_8_removals_of_people(shared: Path, sources: dict[str, Source]) -> None:
    manifest = built(shared, sources, pair="bdd", start="published", pools="openimages")
    before, after = (set(manifest.ids(f"openimages-{one}")) for one in ("start", "farther"))
    assert len(before - after) == 45
    by_rule = built(shared, sources, pair="bdd", start="rule", pools="coco")
    # All eight pass the rule; the published list of 1,880 lacks one of them.
    assert len(by_rule.ids("coco-rule")) - len(by_rule.ids("coco-farther")) == 8


@real_files("decisions")
def check_the_decisions_have_the_pinned_digest(shared: Path) -> None:
    recorded = read_recorded(str(shared / "data/findmeifyoucan/manual_selection.json"))
    assert recorded_digest(recorded) == AUTHORS_DECISIONS
    assert read_recorded(recorded) == recorded


def completed(
    shared: Path, sources: dict[str, Source], pair: str, start: list[str], open_images: dict[str, tuple[str, ...]]
) -> tuple[Manifest, tuple[Any, ...]]:
    """Complete a declared manifest from start lists that have the published counts."""
    assert BENCHMARK.declare is not None
    given = {
        "coco-val2017": sources["coco-val2017"],
        "coco-train2017": sources["coco-train2017"],
        "openimages": source_of("openimages", "train", open_images, OI_NAMES),
        f"vos-coco-{pair}": listed("coco", [one.partition(":")[2] for one in start]),
        f"vos-openimages-{pair}": listed(
            "openimages", [native for native, names in open_images.items() if names != ("Salad",)]
        ),
    }
    declared = BENCHMARK.declare({"coco-val2017": given["coco-val2017"]}, read_parameters(BENCHMARK, {"pair": pair}))
    recorded = read_recorded(str(shared / "data/findmeifyoucan/manual_selection.json"))
    manifest, missed = complete(declared, given, decisions=recorded)
    assert manifest.header.completes == declared.digest
    return manifest, missed


def filled(ids: dict[str, tuple[str, ...]], **kinds: int) -> dict[str, tuple[str, ...]]:
    """Return images of Open Images with so many others that show one category each."""
    others = {f"f{name.lower()[:3]}{place:012x}": (name,) for name, n in kinds.items() for place in range(n)}
    return ids | others


@real_files("decisions")
def check_start_lists_with_the_published_counts_complete_the_voc_splits(
    shared: Path, sources: dict[str, Source], by_rule: Manifest, selection: dict[str, Any]
) -> None:
    # The published 930 are not at hand: take as many out of the rule's 969 as bring every part to its published size.
    train = set(sources["coco-train2017"].image_ids.tolist())
    named = {f"coco:{image:012d}" for key in ("KEEP_TO_NEAR_IDS", "REMOVE_IDS") for image in selection[key]["coco"]}
    near, far = (sorted(set(by_rule.ids(f"coco-{one}")) - train) for one in ("near", "far"))
    gone = sorted(set(by_rule.ids("coco-rule")) - set(near) - set(far))
    out = {*[one for one in near if one not in named][: len(near) - 296], *far[: len(far) - 488]}
    out |= set(gone[: len(gone) - 146])
    start = [one for one in by_rule.ids("coco-rule") if one not in out]
    assert len(start) == 930
    chosen = selection["FROM_CANDIDATES"]
    moved = {one for several in selection["UNFILTERED_IMAGES_TO_NEAR"]["openimages"].values() for one in several}
    removed = {one for several in selection["UNFILTERED_IMAGES_TO_REMOVE"]["openimages"].values() for one in several}
    kept, dropped = (set(selection[key]["openimages"]) for key in ("KEEP_TO_NEAR_IDS", "REMOVE_IDS"))
    (to_far,) = selection["UNFILTERED_IMAGES_TO_FAR"]["openimages"]["Other"]
    decided = dict.fromkeys(sorted(moved | removed | kept | dropped | {to_far}), ("Coin",))
    n_removed, n_near = len(removed | dropped), len(moved | kept)
    images = filled(decided, Person=259 - n_removed, Fox=643 - n_near, Flag=859 - 1)
    added = dict.fromkeys(sorted({*chosen["openimages"], *chosen["openimages_near"]}), ("Salad",))
    manifest, missed = completed(shared, sources, "voc", start, images | added)
    assert missed == ()
    assert manifest.header.origin == "reviewed"
    assert manifest.header.decisions == AUTHORS_DECISIONS
    sizes = {part.name: part.images for part in manifest.header.parts}
    assert [sizes[f"{pool}-{one}"] for pool in ("coco", "openimages") for one in ("near", "far")] == [
        1174,
        938,
        908,
        1179,
    ]
    # One image in both: 2,086 images of Open Images, not 2,087.
    assert len({*manifest.ids("openimages-near"), *manifest.ids("openimages-far")}) == 2086
    # COCO's added images are all of train2017, the kept ones all of val2017.
    assert len(set(manifest.ids("coco-near")) & train) == 878
    assert len(set(manifest.ids("coco-far")) & train) == 450


@real_files("decisions")
def check_start_lists_with_the_published_counts_complete_the_bdd_splits(
    shared: Path, sources: dict[str, Source], selection: dict[str, Any]
) -> None:
    by_rule = built(shared, sources, pair="bdd", start="rule", pools="coco").ids("coco-rule")
    people = [f"coco:{image:012d}" for image in selection["UNFILTERED_IMAGES_TO_REMOVE"]["coco"]["person"]]
    rest = [one for one in by_rule if one not in people]
    start = sorted([*people[:7], *rest[:1873]])
    persons = selection["UNFILTERED_IMAGES_TO_REMOVE"]["openimages"]["Person"]
    images = filled(dict.fromkeys(sorted(persons), ("Coin",)), Person=66 - 45, Bird=1695)
    manifest, missed = completed(shared, sources, "bdd", start, images)
    assert missed == ()
    assert [part.images for part in manifest.header.parts if part.name.endswith("-farther")] == [1873, 1695]
    wrong, missed = completed(shared, sources, "bdd", sorted([*people, *rest[:1872]]), images)
    assert {one.name for one in missed} == {"coco-farther.images", "coco-farther.kept_images", "coco.removed_images"}
    assert len(wrong.ids("coco-farther")) == 1872


@real_files("decisions")
def check_the_overlap_counts_of_table_4_as_far_as_the_decisions_say_them(shared: Path) -> None:
    counts = overlap_counts(shared / "data/findmeifyoucan/manual_selection.json")
    by_reason: dict[str, int] = {}
    for row in counts:
        by_reason[row.reason.lower()] = by_reason.get(row.reason.lower(), 0) + row.lines
    # Table 4: person 106, dining table 142, other 4.
    assert by_reason == {"person": 106, "dining table": 134, "car": 4, "other": 8}
    assert sum(by_reason.values()) == 106 + 142 + 4
    assert sum(row.lines for row in counts if row.ood_set.endswith("(bdd)")) == 53
    table = next(row for row in counts if row.reason == "Dining table")
    assert (table.lines, table.images) == (134, 132)
