"""OV-COCO: its lists from drawn images and from val2017, what it refuses, and what is left out of a score."""

import csv
import json
import re
from pathlib import Path

import pytest

from curation.benchmarks.benchmark import benchmark_facts
from curation.benchmarks.building import read_parameters
from curation.benchmarks.registry import declared_benchmark, evaluation
from curation.core.errors import PredictionError, ProtocolError
from curation.extensions.detection_ap.open_vocabulary import OUTSIDE
from curation.manifest.header import PartEntry
from curation.manifest.manifest import Manifest
from curation.sources.coco import read_coco
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Source
from tests.real_files import provided, real_files
from tests.worlds import ovcoco
from tests.worlds.coco_file import coco_content, write_json
from tests.worlds.runs import ovcoco_run

SHOWN = {1: ["toilet"], 2: ["cat"], 3: ["cat", "horse"], 4: ["wine glass"], 5: [], 6: ["dog"], 7: ["dog"]}
CROWDED = 7
BENCHMARK = declared_benchmark("ovcoco")
FACTS = benchmark_facts("curation.extensions.benchmarks.ovcoco")
BASE, NOVEL, LEFT_OUT = (tuple(FACTS["classes"]["coco"][role]) for role in ("known", "unknown", "ignored"))
evaluate = evaluation("ovcoco").evaluate
LISTS = {"seen": [1, 3], "unseen": [2, 3, 6, 7], "all": [1, 2, 3, 6, 7]}


def source(folder: Path, shown: dict[int, list[str]], part: str = "val2017") -> Source:
    rows = [
        (image, name, (1, 1, 9, 9), {"iscrowd": int(image == CROWDED)})
        for image, names in shown.items()
        for name in names
    ]
    path = write_json(folder / f"{part}.json", coco_content([*shown], rows, ovcoco.categories()))
    return read_coco(path, dataset="coco", part=part)


def built(**sources: Source) -> Manifest:
    given = {name.replace("_", "-"): one for name, one in sources.items()}
    return BENCHMARK.make(given, read_parameters(BENCHMARK, {}))


def parts(manifest: Manifest) -> dict[str, PartEntry]:
    return {part.name: part for part in manifest.header.parts}


def test_the_classes_are_48_17_and_15_of_coco() -> None:
    assert (len(BASE), len(NOVEL), len(LEFT_OUT)) == (48, 17, 15)
    assert {*BASE, *NOVEL, *LEFT_OUT} == {name for _, name, _ in COCO_CATEGORIES}
    assert LEFT_OUT == (
        "traffic light", "fire hydrant", "stop sign", "parking meter", "sports ball", "baseball bat", "baseball glove",
        "tennis racket", "wine glass", "hot dog", "potted plant", "dining table", "cell phone", "teddy bear",
        "hair drier",
    )  # fmt: skip


def test_an_image_with_one_annotation_of_a_class_is_in_its_list_crowd_included(tmp_path: Path) -> None:
    manifest = built(val=source(tmp_path, SHOWN))
    assert {part.name: manifest.ids(part.name) for part in manifest.header.parts} == {
        name: tuple(f"coco:{image:012d}" for image in images) for name, images in LISTS.items()
    }
    assert all("another part" in figure.explanation for figure in manifest.header.figures)


def test_novel_objects_in_view_of_the_training_list_are_told_and_no_fault(tmp_path: Path) -> None:
    train = source(tmp_path, {8: ["toilet"], 9: ["toilet", "cat"], 10: ["cat"]}, "train2017")
    manifest = built(val=source(tmp_path, SHOWN), train=train)
    part = parts(manifest)["train"]
    assert manifest.ids("train") == ("coco:000000000008", "coco:000000000009")
    assert (part.boxes["known"], part.boxes.get("unknown", 0), part.view.unknown) == (2, 0, "drop")
    assert any(note.startswith("1 images of the part train show a novel object") for note in manifest.header.notes)


def test_a_seen_file_with_novel_labels_is_refused(tmp_path: Path) -> None:
    val = source(tmp_path, SHOWN)
    clean = source(tmp_path, {8: ["toilet"]}, "train2017")
    assert built(val=val, seen_file=clean).ids("seen-file") == ("coco:000000000008",)
    with pytest.raises(ProtocolError, match="annotations of other classes") as caught:
        built(val=val, seen_file=source(tmp_path, {8: ["toilet"], 9: ["cat", "wine glass"]}, "train2017"))
    assert "cat (1)" in str(caught.value)
    assert "1 of them novel" in str(caught.value)


def test_detections_of_classes_left_out_are_refused_or_reported(tmp_path: Path) -> None:
    paths = ovcoco.files(tmp_path)
    with pytest.raises(PredictionError, match="neither base nor novel") as caught:
        evaluate(truth=paths["truth"], detections=paths["with_others"])
    assert "teddy bear (1)" in str(caught.value)
    assert "--on-error outside=drop" in str(caught.value)
    run = ovcoco_run(tmp_path, "--on-error", "outside=drop", detections="with_others")
    found = run.result()
    assert found["inputs"]["test"]["detections"]["reported"] == {OUTSIDE: 1}
    assert found["generalized/ovr-cnn"]["AP50_all"] == pytest.approx(run.expected["generalized/ovr-cnn"]["AP50_all"])


def test_a_number_is_of_the_class_that_the_truth_gives_it_to(tmp_path: Path) -> None:
    """Of a file with numbers of its own COCO's number for a class that it lacks is another class's, or nobody's."""
    paths = ovcoco.files(tmp_path)
    truth, found = (json.loads(paths[name].read_bytes()) for name in ("truth", "detections"))
    expected = evaluate(truth=paths["truth"], detections=paths["detections"], variant="all")
    names = {one["id"]: one["name"] for one in truth["categories"]}
    number = {name: place for place, name in enumerate((*BASE, *NOVEL), 1)}
    truth["categories"] = [{"id": place, "name": name} for name, place in number.items()]
    truth["annotations"] = [
        one | {"category_id": number[names[one["category_id"]]]}
        for one in truth["annotations"]
        if names[one["category_id"]] in number
    ]
    found = [one | {"category_id": number[names[one["category_id"]]]} for one in found]
    assert {one["category_id"] for one in found} & {n for n, name, _ in COCO_CATEGORIES if name in LEFT_OUT}
    own = write_json(tmp_path / "own.json", truth)
    numbered = evaluate(truth=own, detections=write_json(tmp_path / "d.json", found), variant="all")
    assert expected.table("average_precision").equals(numbered.table("average_precision"))
    assert expected.numbers() == numbered.numbers()
    # A class without a number goes by its name; a number that the truth does not give is of no class, 90 of COCO's too.
    box = {"image_id": 1, "bbox": [1, 1, 5, 5], "score": 0.5}
    teddy = write_json(tmp_path / "teddy.json", [*found, box | {"category": "teddy bear"}])
    with pytest.raises(PredictionError, match="neither base nor novel"):
        evaluate(truth=own, detections=teddy)
    dropped = evaluate(truth=own, detections=teddy, outside="drop", variant="all")
    assert dropped.numbers() == numbered.numbers()
    with pytest.raises(PredictionError, match="a category that is not known"):
        evaluate(truth=own, detections=write_json(tmp_path / "s.json", [box | {"category_id": 90}]), outside="drop")


def test_the_means_of_detic_are_undefined_where_a_class_has_no_object(tmp_path: Path) -> None:
    paths = ovcoco.files(tmp_path)
    result = evaluate(truth=paths["truth"], detections=paths["detections"], variant="detic")
    assert result["AP50_novel"] is None
    assert "airplane" in result.measures.set_index("measure")["undefined"]["AP50_novel"]


def test_a_result_names_the_lists_by_the_digests_of_the_manifest(tmp_path: Path) -> None:
    paths = ovcoco.files(tmp_path)
    result = evaluate(truth=paths["truth"], detections=paths["detections"], setting="all")
    manifest = built(val=read_coco(paths["truth"], dataset="coco", part="val2017"))
    assert dict(result.table("lists")[["list", "sha256"]].to_numpy().tolist()) == {
        part.name: part.sha256 for part in manifest.header.parts
    }


@provided
def val2017(shared: Path) -> Source:
    return read_coco(shared / "data/coco/instances_val2017_rebuilt.json", dataset="coco", part="val2017")


@real_files("coco")
def check_the_lists_of_val2017(val2017: Source) -> None:
    manifest = built(val=val2017)
    sizes = {part.name: part.images for part in manifest.header.parts}
    assert sizes == {"seen": 4533, "unseen": 2064, "all": 4836}
    assert all(figure.obtained == figure.paper for figure in manifest.header.figures)
    seen, unseen, both = (set(manifest.ids(name)) for name in ("seen", "unseen", "all"))
    assert len(seen & unseen) == 1761
    assert seen | unseen == both
    boxes = parts(manifest)["all"].boxes
    assert (boxes["known"], boxes["unknown"]) == (28_538, 4614)
    annotated = val2017.image_ids[sorted(set(val2017.class_pairs()[0].tolist()))]
    assert (len(set(annotated.tolist()) - both), 5000 - len(annotated)) == (116, 48)


@real_files("atlas_lists")
def check_the_class_files_of_ovr_cnn(shared: Path) -> None:
    folder = shared / "data/atlas/ovcoco"
    seen, unseen = (json.loads((folder / f"mscoco_{name}_classes.json").read_bytes()) for name in ("seen", "unseen"))
    assert (len(seen), set(seen) - {"background"}) == (49, set(BASE))
    assert set(unseen) == set(NOVEL)


@real_files("atlas_lists")
def check_how_many_images_of_train2017_show_base_and_novel_classes(shared: Path) -> None:
    names = {str(number): name for number, name, _ in COCO_CATEGORIES}
    with (shared / "data/coco/presence_2014_2017.csv").open() as file:
        shown = [
            {names[one] for one in re.findall(r"\d+", row["category_ids_91"])}
            for row in csv.DictReader(file)
            if row["split2017"] == "train2017"
        ]
    base, novel = ([bool(one & set(names)) for one in shown] for names in (BASE, NOVEL))
    # Lower bounds: the table misses classes that another one paints over.
    both = sum(one and two for one, two in zip(base, novel, strict=True))
    assert (len(shown), sum(base), sum(novel), both) == (117_266, 107_323, 48_197, 41_210)


@real_files("coco")
def check_objects_as_detections_score_fully(val2017: Source, shared: Path, tmp_path: Path) -> None:
    content = json.loads((shared / "data/coco/instances_val2017_rebuilt.json").read_bytes())
    left_out = {one["id"] for one in content["categories"] if one["name"] in LEFT_OUT}
    found = [
        {"image_id": one["image_id"], "category_id": one["category_id"], "bbox": one["bbox"], "score": 1}
        for one in content["annotations"]
        if one["category_id"] not in left_out
    ]
    detections = write_json(tmp_path / "d.json", found)
    result = evaluate(truth=val2017, detections=detections, setting="all", variant="all")
    assert min(filter(None, result.numbers().values())) > 95
    for setting in ("generalized", "constrained"):
        # Every class has objects on val2017: the two means are one.
        assert result[f"{setting}/ovr-cnn/AP50_novel"] == result[f"{setting}/detic/AP50_novel"]
    images = dict(result.table("lists")[["list", "images"]].to_numpy().tolist())
    assert images == {"seen": 4533, "unseen": 2064, "all": 4836}
