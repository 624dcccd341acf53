"""``curation export`` from the command line: every format, every refusal, the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from curation.benchmarks.building import read_parameters
from curation.benchmarks.elephant import lists as elephant
from curation.benchmarks.registry import find_benchmark
from curation.cli import main
from curation.manifest.manifest import Manifest, read_manifest, write_manifest
from curation.sources.coco import read_coco
from curation.sources.voc import read_voc
from tests.real_files import real_files
from tests.small_world import SmallWorld, write_elephant

pytestmark = pytest.mark.usefixtures("cache")

BENCHMARK = find_benchmark("elephant")

PARAMETERS = {"ratios": ("1",), "orders": ("cpython_set", "hash"), "salt": "test"}


@pytest.fixture(scope="module")
def manifest(world: SmallWorld) -> Path:
    return write_elephant(world, PARAMETERS)


def arguments(world: SmallWorld, manifest: Path, form: str, *parts: str) -> list[str]:
    chosen = [word for part in parts for word in ("--part", part)]
    return ["export", str(manifest), "--format", form, *chosen, *world.arguments()]


def test_coco_of_both_parts_has_unique_ids_and_read_coco_reads_it(
    world: SmallWorld, manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = arguments(world, manifest, "coco", "closed", "wilderness")
    assert main([*command, "--out", str(tmp_path / "out"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    path = tmp_path / "out" / "closed+wilderness.json"
    data = json.loads(path.read_bytes())
    assert len({one["id"] for one in data["images"]}) == len(data["images"]) == 100
    assert [one["id"] for one in data["annotations"]] == list(range(1, len(data["annotations"]) + 1))
    assert summary["counts"]["annotations"] == len(data["annotations"])
    assert summary["manifest_digest"] == read_manifest(manifest).digest == data["info"]["manifest_digest"]
    back = read_coco(path, dataset="coco", part="merged")
    assert len(back.images) == 100
    assert back.objects is not None
    assert back.objects.boxes.tolist() == [one["bbox"] for one in data["annotations"]]
    assert int(back.objects.difficult.sum()) == summary["counts"]["difficult"] > 0
    assert back.objects.original is not None
    assert set(back.objects.original.tolist()) >= {"elephant", "zebra", "pizza"}


def test_voc_round_trip(world: SmallWorld, manifest: Path, tmp_path: Path) -> None:
    assert main([*arguments(world, manifest, "voc", "closed"), "--out", str(tmp_path / "out")]) == 0
    first = read_voc(world.voc_root, "voc2007", "test")
    again = read_voc(tmp_path / "out", "voc2007", "closed")
    assert again.images.native.tolist() == first.images.native.tolist()
    assert again.images.file_names.tolist() == first.images.file_names.tolist()
    assert first.objects is not None
    assert again.objects is not None
    for column in ("image", "boxes", "difficult", "truncated", "occluded", "pose", "areas"):
        assert getattr(again.objects, column).tolist() == getattr(first.objects, column).tolist(), column
    names = [[one.categories.names[number] for number in one.objects.category] for one in (first, again) if one.objects]
    assert names[0] == names[1]


def test_unknown_objects_in_voc_layout_are_read_back(world: SmallWorld, manifest: Path, tmp_path: Path) -> None:
    assert main([*arguments(world, manifest, "voc", "wilderness"), "--out", str(tmp_path / "out")]) == 0
    again = read_voc(tmp_path / "out", "wild", "wilderness")
    first = read_coco(world.coco_json, dataset="coco", part="train2017")
    assert again.objects is not None
    assert first.objects is not None
    assert len(again.images) == 60
    assert again.categories.names == ("unknown",)
    rows = np.isin(first.images.numbers, world.wilderness)[first.objects.image]
    counts = np.bincount(first.objects.image[rows], minlength=len(first.images))
    expected = dict(zip(first.images.native.tolist(), counts.tolist(), strict=True))
    found = np.bincount(again.objects.image, minlength=60).tolist()
    assert found == [expected[native] for native in again.images.native.tolist()]


def test_yolo_and_lists_and_authors(world: SmallWorld, manifest: Path, tmp_path: Path) -> None:
    for form in ("yolo", "txt", "elephant-json"):
        assert main([*arguments(world, manifest, form, "closed", "wr1"), "--out", str(tmp_path / form)]) == 0
    assert len(list((tmp_path / "yolo" / "labels").iterdir())) == 80
    assert (tmp_path / "txt" / "wr1.txt").read_bytes() == (manifest / "ids" / "wr1.txt").read_bytes()
    assert sorted(path.name for path in (tmp_path / "elephant-json").iterdir()) == [
        "WR1_Mixed_Unknowns.json",
        "_export.json",
        "custom_voc_2007_test.json",
    ]


def test_one_file_and_lists_without_sources(world: SmallWorld, manifest: Path, tmp_path: Path) -> None:
    truth = tmp_path / "deep" / "closed.json"
    assert main([*arguments(world, manifest, "coco", "closed"), "--out", str(truth)]) == 0
    assert len(json.loads(truth.read_bytes())["images"]) == 40
    ids = tmp_path / "ids.txt"
    command = ["export", str(manifest), "--part", "closed", "--format", "txt", "--out", str(ids)]
    assert main([*command, "--set", "id_form=native"]) == 0
    assert ids.read_text().split() == world.closed
    assert main(command) == 2
    assert ids.read_text().split() == world.closed
    assert main([*command, "--force"]) == 0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--format", "imagenet-csv"], "txt for the images alone"),
        (["--format", "coco", "--part", "closde"], "no such part"),
        (["--format", "coco", "--set", "id_form=native"], "belongs to --format txt"),
        (["--format", "coco", "--photos", "x"], "--photos belongs to --format yolo"),
        (["--format", "txt", "--set", "strict_layout=yes"], "belongs to --format elephant-json"),
        (["--format", "coco", "--source", "vco=x"], "No such source"),
        (["--format", "voc", "--out", "x.json"], "a folder"),
        (["--format", "yolo", "--photos", "a", "--photos", "b"], "given twice for all"),
        (["--format", "coco", "--part", "wr1", "--part", "wilderness"], "share images"),
    ],
)
def test_refusals_are_one_error_and_leave_nothing(
    extra: list[str],
    message: str,
    world: SmallWorld,
    manifest: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual = [*arguments(world, manifest, "coco", "closed"), "--out", str(tmp_path / "out")]
    for option in {"--format", "--out"} & set(extra):
        place = usual.index(option)
        usual = usual[:place] + usual[place + 2 :]
    assert main([*usual, *extra]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_part_made_from_lists_states_no_file_to_differ_from(
    world: SmallWorld, manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = read_manifest(manifest)
    # As in elephant/train2017: the list of wr1 is here, and COCO's file was never read.
    header = msgspec.structs.replace(
        whole.header,
        origin="declared",
        sources=tuple(
            msgspec.structs.replace(entry, files=() if entry.name == "coco" else entry.files)
            for entry in whole.header.sources
        ),
    )
    write_manifest(Manifest(header=header, lists={"wr1": whole.ids("wr1")}), tmp_path / "m")
    command = arguments(world, tmp_path / "m", "coco", "wr1")
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "very file" not in capsys.readouterr().err
    command = arguments(world, tmp_path / "m", "elephant-json", "wr1")
    assert main([*command, "--out", str(tmp_path / "authors")]) == 2
    assert "curation build elephant/custom@1.0.0" in capsys.readouterr().err


def test_absent_ids_are_counted_and_other_bytes_noted(
    world: SmallWorld, manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(world.coco_json.read_bytes())
    other = tmp_path / "instances_train2017.json"
    other.write_text(json.dumps(data, indent=1))
    command = ["export", str(manifest), "--part", "wilderness", "--format", "coco"]
    assert main([*command, "--source", f"coco={other}", "--out", str(tmp_path / "whole")]) == 0
    assert "not the very file" in capsys.readouterr().err
    gone = set(sorted(world.wilderness)[:2])
    data["images"] = [one for one in data["images"] if one["id"] not in gone]
    data["annotations"] = [one for one in data["annotations"] if one["image_id"] not in gone]
    other.write_text(json.dumps(data))
    assert main([*command, "--source", f"coco={other}", "--out", str(tmp_path / "less")]) == 2
    error = capsys.readouterr().err
    assert "2 of the 60 images" in error
    assert f"coco:{min(gone):012d}" in error
    assert not (tmp_path / "less").exists()


def test_a_declared_part_names_the_command_that_completes_it(
    world: SmallWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = elephant.declare(
        {"voc2007-test": read_voc(world.voc_root, "voc2007", "test")}, read_parameters(BENCHMARK, {})
    )
    write_manifest(declared, tmp_path / "declared")
    command = arguments(world, tmp_path / "declared", "coco", "wr1")
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "curation build elephant" in capsys.readouterr().err


@real_files("coco_exports")
def check_real_closed_part_and_val2017_wilderness(shared: Path, tmp_path: Path) -> None:
    voc = shared / "data" / "voc2007" / "test_with_difficult.json"
    coco = shared / "data" / "coco" / "instances_val2017_rebuilt.json"
    sources = {
        "voc2007-test": read_coco(voc, dataset="voc2007", part="test"),
        "coco": read_coco(coco, dataset="coco", part="val2017"),
    }
    built = elephant.build(sources, {**PARAMETERS, "ratios": ("0.1",)})
    write_manifest(built, tmp_path / "manifest")
    command = ["export", str(tmp_path / "manifest"), "--format", "coco", "--part", "closed", "--part", "wilderness"]
    given = ["--source", f"voc2007-test={voc}", "--source", f"coco={coco}"]
    assert main([*command, *given, "--out", str(tmp_path / "both.json")]) == 0
    data = json.loads((tmp_path / "both.json").read_bytes())
    part = {one["id"]: one["part"] for one in data["images"]}
    assert len(part) == len(data["images"]) == 4952 + 969
    counts = {name: sum(part[one["image_id"]] == name for one in data["annotations"]) for name in set(part.values())}
    # Spec 1.1: 14976 objects; the wilderness' boxes are counted in the raw file.
    raw = json.loads(coco.read_bytes())
    numbers = {int(image.partition(":")[2]) for image in built.ids("wilderness")}
    assert counts == {"closed": 14976, "wilderness": sum(one["image_id"] in numbers for one in raw["annotations"])}
    assert len({one["id"] for one in data["annotations"]}) == len(data["annotations"])
    assert sum(one["difficult"] for one in data["annotations"]) == 2944


@real_files("coco_exports")
def check_real_closed_part_survives_the_voc_layout(shared: Path, tmp_path: Path) -> None:
    voc = shared / "data" / "voc2007" / "test_with_difficult.json"
    coco = shared / "data" / "coco" / "instances_val2017_rebuilt.json"
    first = read_coco(voc, dataset="voc2007", part="test")
    sources = {"voc2007-test": first, "coco": read_coco(coco, dataset="coco", part="val2017")}
    write_manifest(elephant.build(sources, {**PARAMETERS, "ratios": ("0.1",)}), tmp_path / "manifest")
    command = ["export", str(tmp_path / "manifest"), "--format", "voc", "--part", "closed"]
    assert main([*command, "--source", f"voc2007-test={voc}", "--out", str(tmp_path / "out")]) == 0
    again = read_voc(tmp_path / "out", "voc2007", "closed")
    assert again.images.native.tolist() == first.images.native.tolist()
    assert first.objects is not None
    assert again.objects is not None
    assert len(again.objects) == 14976
    # The JSON's annotations stand image by image, so the order is the same too.
    for column in ("image", "category", "boxes", "difficult"):
        assert np.array_equal(getattr(again.objects, column), getattr(first.objects, column)), column
