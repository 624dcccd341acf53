"""A part of a manifest scored by ``coco`` and ``voc``: its images alone, under its label view."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.core.errors import CurationError
from curation.manifest.header import LabelView
from curation.sources.source import Source
from tests.extensions.audit.benchmark_world import World

KNOWN = ["person", "dog", "truck", "bench"]


def world() -> World:
    made = World()
    made.test = {
        **made.test,
        "e1": ["person", "truck", "bench", "dog~"],
        "e2": ["dog", "kite", "cup*", "truck*"],
        "e5": ["person", "kite"],
    }
    made.lists["t2-test"] = ["e4", "e1", "e2"]
    return made


def found_on(source: Source) -> list[dict[str, Any]]:
    """Return a detection near each object, every third of them far off, scores falling."""
    rows, objects = [], source.require_objects("a test")
    for n, (image, category, box) in enumerate(zip(objects.image, objects.category, objects.boxes, strict=True)):
        name = source.categories.names[category]
        shift = 200 if n % 3 == 2 else 2
        box = [float(box[0]) + shift, *map(float, box[1:])]
        native = str(source.images.native[image])
        rows.append(
            {"image_id": native, "category": name if name in KNOWN else "person", "bbox": box, "score": 1 - n / 50}
        )
    return rows


def by_hand(source: Source, images: list[str], ignored: tuple[str, ...] = ("crowd", "difficult")) -> dict[str, Any]:
    """Return what the part should be as a COCO dictionary: known objects of its images, what is ignored as crowd."""
    objects = source.require_objects("a test")
    flags = np.any([getattr(objects, name) for name in ignored], axis=0) if ignored else np.zeros(len(objects), bool)
    rows = [*zip(objects.image.tolist(), objects.category.tolist(), objects.boxes.tolist(), flags, strict=True)]
    natives, names = source.images.native.tolist(), source.categories.names
    return {
        "images": [{"id": one, "width": 640, "height": 480, "file_name": f"{one}.jpg"} for one in sorted(images)],
        "annotations": [
            {
                "id": n,
                "image_id": natives[image],
                "category_id": KNOWN.index(names[category]) + 1,
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": int(ignore),
            }
            for n, (image, category, box, ignore) in enumerate(rows, 1)
            if natives[image] in images and names[category] in KNOWN
        ],
        "categories": [{"id": n, "name": name} for n, name in enumerate(KNOWN, 1)],
    }


@pytest.mark.parametrize("protocol", ["coco", "voc"])
@pytest.mark.parametrize(
    ("view", "ignored"),
    [({}, ("crowd", "difficult")), ({"difficult": "keep"}, ("crowd",)), ({"difficult": "keep", "crowd": "keep"}, ())],
)
def test_the_images_and_the_view_of_a_part_alone_count(
    protocol: str, view: dict[str, Any], ignored: tuple[str, ...]
) -> None:
    made = world()
    made.views["t2-test"] = LabelView(**{"known": "keep", "previous": "keep", **view})
    source, images = made.test_source, made.lists["t2-test"]
    found = [one for one in found_on(source) if one["image_id"] in images]
    evaluate = getattr(curation.evaluate, protocol)
    expected = evaluate(truth=by_hand(source, images, ignored), detections=found)
    shown = evaluate(truth=source, detections=found, manifest=made.manifest, part="t2-test")
    assert [*shown.measures["value"]] == pytest.approx([*expected.measures["value"]], nan_ok=True)
    assert 0 < shown.measures["value"].max() < 100
    # A detector that ran on the whole file, and one that ran on other images alone.
    more = evaluate(truth=source, detections=found_on(source), manifest=made.manifest, part="t2-test")
    assert more.measures["value"].equals(shown.measures["value"])
    elsewhere = [one for one in found_on(source) if one["image_id"] not in images]
    with pytest.raises(CurationError, match="not in the ground truth"):
        evaluate(truth=source, detections=elsewhere, manifest=made.manifest, part="t2-test", stray="error")


def test_objects_that_the_view_drops_are_not_missed() -> None:
    made = world()
    made.views["t2-test"] = LabelView(known="keep", previous="drop")
    found = [one for one in found_on(made.test_source) if one["image_id"] in made.lists["t2-test"]]
    shown = curation.evaluate.voc(truth=made.test_source, detections=found, manifest=made.manifest, part="t2-test")
    objects = shown.table("average_precision").set_index("class")["objects"]
    assert (objects["person"], objects["truck"]) == (0, 2)
    reported = shown.json_data()["inputs"]["test"]["truth"]["reported"]
    assert reported == {
        "left out by the label view: objects": 3,
        "neither right nor wrong by the label view: objects": 3,
    }


@pytest.mark.parametrize("variant", ["coco", "score-free"])
def test_an_exported_part_gives_the_same_numbers(
    variant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A COCO file that was written under the view says the same, with the manifest or without it."""
    made = world()
    made.test = {name: [one.rstrip("~") for one in shown] for name, shown in made.test.items()}
    manifest = made.manifest.save(tmp_path / "manifest")
    exported = tmp_path / "t2.json"
    curation.export(made.manifest, "t2-test", "coco", exported, sources={"test": made.test_source})
    found = [one for one in found_on(made.test_source) if one["image_id"] in made.lists["t2-test"]]
    (tmp_path / "found.json").write_text(json.dumps(found))
    words = ["evaluate", "coco", "--truth", str(exported), "--detections", str(tmp_path / "found.json"), "--json"]
    words += ["--variant", variant]
    told = []
    for more in ([], ["--manifest", str(manifest), "--part", "t2-test"]):
        assert main([*words, *more]) == 0
        result = json.loads(capsys.readouterr().out)
        told.append([(one["measure"], one["value"]) for one in result["measures"]])
    assert told[0] == told[1]
    assert result["manifest"] == {
        "name": "toy/open-world", "version": "1.0.0", "digest": made.manifest.digest, "part": "t2-test",
    }  # fmt: skip


def test_the_ids_of_the_manifest_may_number_the_classes() -> None:
    made = world()
    found = [one for one in found_on(made.test_source) if one["image_id"] in made.lists["t2-test"]]
    numbered = [{**one, "category_id": made.order.index(one["category"])} for one in found]
    for one in numbered:
        del one["category"]
    results = [
        curation.evaluate.voc(
            truth=made.test_source, detections=rows, manifest=made.manifest, part="t2-test", category_ids=ids
        )
        for rows, ids in ((found, None), (numbered, "manifest"))
    ]
    assert results[0].measures.equals(results[1].measures)


def called(name: str) -> Any:
    """Return what gives a class of a truth another name."""

    def rename(source: Source) -> Source:
        names = tuple("wolf" if one == name else one for one in source.categories.names)
        return replace(source, categories=replace(source.categories, names=names))

    return rename
