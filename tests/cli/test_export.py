"""``curation export`` from the command line: every format, every refusal, the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.benchmarks.building import read_parameters
from curation.benchmarks.elephant import lists as elephant
from curation.benchmarks.registry import find_benchmark
from curation.cli import main
from curation.manifest.manifest import write_manifest
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
        (["--format", "coco", "--photos", "x"], "--photos belongs to --format yolo"),
        (["--format", "coco", "--source", "vco=x"], "Unknown source"),
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
