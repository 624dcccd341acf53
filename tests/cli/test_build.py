"""``curation build``: from raw files to a manifest, byte for byte the same each time, and refused where it must be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from tests.shell import Shell
from tests.small_world import SmallWorld

pytestmark = pytest.mark.usefixtures("cache")


def arguments(world: SmallWorld, out: Path, *more: str) -> list[str]:
    return ["build", "elephant", *world.arguments(), "--out", str(out), *more]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_lists_are_those_of_the_world(world: SmallWorld, tmp_path: Path, shell: Shell) -> None:
    printed = shell.out(*arguments(world, tmp_path / "m", "--set", "ratios=1.0,0.5"))
    assert "written to" in printed
    assert "curation verify" in printed
    manifest = read_manifest(tmp_path / "m")
    assert manifest.ids("closed") == tuple(sorted(f"voc2007:{stem}" for stem in world.closed))
    assert manifest.ids("wilderness") == tuple(sorted(f"coco:{number:012d}" for number in world.wilderness))
    assert len(manifest.ids("wr1")) == len(manifest.ids("wr1-hash")) == len(world.closed)
    assert len(manifest.ids("wr0.5")) == len(world.closed) // 2
    assert set(manifest.ids("wr0.5")) < set(manifest.ids("wr1")) < set(manifest.ids("wilderness"))


def test_the_same_bytes_with_and_without_cache_and_hash_seeds(world: SmallWorld, tmp_path: Path) -> None:
    assert main(arguments(world, tmp_path / "first")) == 0
    assert main(arguments(world, tmp_path / "cached")) == 0
    assert main(arguments(world, tmp_path / "uncached")) == 0
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "curation", *arguments(world, tmp_path / f"seed{seed}")]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed, "OPENBLAS_NUM_THREADS": seed}
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    expected = files_of(tmp_path / "first")
    for name in ("cached", "uncached", "seed1", "seed2"):
        assert files_of(tmp_path / name) == expected


def test_shuffled_input_gives_the_same_lists(world: SmallWorld, tmp_path: Path) -> None:
    content = json.loads(world.coco_json.read_text(encoding="utf-8"))
    for key in ("images", "annotations", "categories"):
        content[key] = content[key][::-1]
    shuffled = tmp_path / "instances_train2017.json"
    shuffled.write_text(json.dumps(content), encoding="utf-8")
    more = ("--set", "ratios=0.5,1", "--set", "orders=cpython_set,hash,id")
    assert main(arguments(world, tmp_path / "a", *more)) == 0
    other = SmallWorld(world.voc_root, shuffled, world.closed, world.wilderness, world.with_known)
    assert main(arguments(other, tmp_path / "b", *more)) == 0
    one, two = read_manifest(tmp_path / "a"), read_manifest(tmp_path / "b")
    assert one.lists == two.lists
    assert one.header.parts == two.header.parts
    assert one.header.classes == two.header.classes


def test_the_same_again_is_done_and_another_is_refused(world: SmallWorld, tmp_path: Path, shell: Shell) -> None:
    assert main(arguments(world, tmp_path / "m")) == 0
    assert main(arguments(world, tmp_path / "m")) == 0
    before = files_of(tmp_path / "m")
    assert "never edited" in shell.err(*arguments(world, tmp_path / "m", "--set", "ratios=0.5"))
    assert files_of(tmp_path / "m") == before


def test_a_root_stands_for_the_parts_it_offers(world: SmallWorld, tmp_path: Path) -> None:
    sources = ["--source", f"voc2007={world.voc_root}", "--source", f"coco={world.coco_json}"]
    assert main(["build", "elephant", *sources, "--out", str(tmp_path / "m")]) == 0
    assert [entry.name for entry in read_manifest(tmp_path / "m").header.sources] == ["voc2007-test", "coco"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["elefant"], "did you mean elephant?"),
        (["elephant", "--set", "ratio=1"], "did you mean ratios?"),
        (["elephant", "--set", "ratios=99"], "Not enough images"),
        (["elephant", "--set", "ratios"], "NAME=VALUE"),
        (["elephant", "--set", "ratios=1", "--set", "ratios=2"], "twice"),
        (["elephant", "--source", "voc=x"], "No such source"),
        (["elephant", "--source", "coco=x"], "twice"),
        (["elephant", "--name", "../x"], "inconsistent"),
        (["elephant", "--version", "1"], "inconsistent"),
    ],
)
def test_wrong_use(world: SmallWorld, tmp_path: Path, shell: Shell, change: list[str], message: str) -> None:
    given = arguments(world, tmp_path / "m", *change[1:])
    given[1] = change[0]
    assert message in shell.err(*given)
    assert not (tmp_path / "m").exists()


def test_missing_and_swapped_sources(
    world: SmallWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: Shell
) -> None:
    out = ["--out", str(tmp_path / "m")]
    assert "--source coco=PATH" in shell.err("build", "elephant", "--source", f"voc2007-test={world.voc_root}", *out)
    swapped = ["--source", f"voc2007-test={world.coco_json}", "--source", f"coco={world.coco_json}"]
    assert main(["build", "elephant", *swapped, *out, "--json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"] == "ProtocolError"
    assert "other way round" in captured.err
    assert not (tmp_path / "m").exists()


def test_declare_and_complete(world: SmallWorld, tmp_path: Path, shell: Shell) -> None:
    declared = tmp_path / "declared"
    closed = ["--source", f"voc2007-test={world.voc_root}"]
    assert main(["build", "elephant", "--header-only", *closed, "--out", str(declared)]) == 0
    manifest = read_manifest(declared)
    assert manifest.header.origin == "declared"
    assert set(manifest.lists) == {"closed"}
    # The small world is not COCO train2017: nothing is written, and the figures that are missed are told.
    complete = ["build", str(declared), *closed, "--source", f"coco={world.coco_json}", "--out", str(tmp_path / "m")]
    missed = {one["figure"]: one for one in shell.data(*complete, "--json", status=1)["missed"]}
    assert (missed["wilderness.images"]["paper"], missed["wilderness.images"]["obtained"]) == (23008, 60)
    assert not (tmp_path / "m").exists()
    assert main([*complete, "--set", "ratios=1"]) == 2
    assert main(arguments(world, tmp_path / "whole")) == 0
    assert "verify" in shell.err("build", tmp_path / "whole", *complete[2:])


def test_an_approximate_list_is_warned_of(world: SmallWorld, tmp_path: Path, shell: Shell) -> None:
    content = json.loads(world.coco_json.read_text(encoding="utf-8"))
    names = {category["id"]: category["name"] for category in content["categories"]}
    lines = {image["id"]: set() for image in content["images"]}
    for annotation in content["annotations"]:
        lines[annotation["image_id"]].add(names[annotation["category_id"]])
    table = tmp_path / "presence.csv"
    rows = [f"{image},{';'.join(sorted(shown))}" for image, shown in lines.items() if shown]
    table.write_text("image,classes\n" + "\n".join(rows) + "\n")
    world = SmallWorld(world.voc_root, table, world.closed, world.wilderness, world.with_known)
    assert "approximate" in shell.err(*arguments(world, tmp_path / "m"), status=0)
    manifest = read_manifest(tmp_path / "m")
    assert manifest.header.notes[0].startswith("APPROXIMATE")
    assert len(manifest.ids("wilderness")) < len(world.wilderness)


MANIFESTS = Path(__file__).parents[2] / "manifests"


@pytest.mark.parametrize(
    ("name", "given", "waits"),
    [
        (
            "owod/reowod/1.0.0",
            ["coco-val2017"],
            {"t1-train.images": "coco-train2017", "t2-selection.images": "coco-train2017"},
        ),
        (
            "owod/m-owodb/1.0.0",
            ["coco-val2017", "voc2007-test"],
            {
                "t1-train.images": "voc2007-trainval, voc2012-trainval",
                "t2-train.list": "coco-train2017",
                "t2-finetune.list": "voc2007-trainval, voc2012-trainval, coco-train2017",
            },
        ),
    ],
)
def test_unmet_figures_of_a_header_say_which_source_is_missing(
    name: str, given: list[str], waits: dict[str, str], world: SmallWorld, tmp_path: Path, shell: Shell
) -> None:
    paths = {"coco-val2017": world.coco_json, "voc2007-test": world.voc_root}
    sources = [text for one in given for text in ("--source", f"{one}={paths[one]}")]
    command = ["build", str(MANIFESTS / name), *sources, "--json", "--out", str(tmp_path / "m")]
    missed = {one["figure"]: one["explanation"] for one in shell.data(*command, status=1)["missed"]}
    for figure, needed in waits.items():
        assert missed[figure].startswith(f"needs {needed}, not given: --source "), figure
    assert not any(text in ("not computed", "no such part") for text in missed.values())
    # The test lists were computed: from which file, is told.
    assert "(from " in missed["t1-test.list"]
    assert "coco-val2017: instances_train2017.json" in missed["t1-test.list"]
    assert not (tmp_path / "m").exists()
