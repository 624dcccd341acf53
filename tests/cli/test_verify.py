"""``curation verify``: true manifests pass, each kind of untruth fails with 1, wrong use with 2."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.manifest.built_from import BUILT_FROM_FILE
from curation.manifest.manifest import read_manifest
from tests.real_files import real_files
from tests.shell import Shell
from tests.small_world import SmallWorld


@pytest.fixture(scope="module")
def folder(world: SmallWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "m"
    assert main(["build", "elephant", *sources_of(world), "--out", str(out)]) == 0
    # What is not given here is not there: tests/cli/test_first_hour.py has what a build remembers.
    (out / BUILT_FROM_FILE).unlink()
    return out


def sources_of(world: SmallWorld) -> list[str]:
    return [*world.arguments()]


def verified(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["verify", *arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_sources_and_rebuild(world: SmallWorld, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, data = verified(capsys, str(folder), *sources_of(world), "--strict", "--rebuild")
    assert (status, data["ok"]) == (0, True)
    assert {one["outcome"] for one in data["findings"]} == {"ok"}
    rebuilt = next(one for one in data["findings"] if (one["check"], one["subject"]) == ("rebuild", "manifest"))
    assert rebuilt["found"] == read_manifest(folder).digest


def test_published_lists(
    world: SmallWorld, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: Shell
) -> None:
    published = tmp_path / "test.txt"
    published.write_text("".join(f"{stem}\n" for stem in world.closed))
    status, data = verified(capsys, str(folder), "--published", str(published), "--part", "closed")
    assert status == 0
    assert data["published"]["shared"] == len(world.closed)
    assert data["published"]["same_order"]
    published.write_text("".join(f"{stem}\n" for stem in [*world.closed[1:], world.closed[5], "999999"]))
    status, data = verified(capsys, str(folder), "--published", str(published), "--part", "closed")
    assert status == 1
    assert data["published"]["missing"] == [f"voc2007:{world.closed[0]}"]
    assert data["published"]["extra"] == ["voc2007:999999"]
    assert data["published"]["duplicates"] == [f"voc2007:{world.closed[5]}"]
    assert "the published list differs from part closed: the check failed" in shell.out(
        "verify", folder, "--published", published, "--part", "closed", status=1
    )
    published.write_text("999999\n")
    assert "nothing is shared" in shell.out("verify", folder, "--published", published, "--part", "closed", status=1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--published", "x.txt"], "need each other"),
        (["--part", "closed"], "need each other"),
        (["--published", "no-such-file.txt", "--part", "closed"], "published list"),
        (["--published", "no-such-file.txt", "--part", "open"], "no such part"),
        (["--source", "voc=x"], "Unknown source"),
        (["--rebuild"], "A source is missing"),
    ],
)
def test_wrong_use(folder: Path, shell: Shell, more: list[str], message: str) -> None:
    assert message in shell.err("verify", folder, *more)


def test_what_passed_is_counted_in_one_line(
    world: SmallWorld, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: Shell
) -> None:
    other = tmp_path / "instances_train2017.json"
    other.write_text(json.dumps(json.loads(world.coco_json.read_text(encoding="utf-8")), indent=1))
    given = ["verify", str(folder), "--source", f"coco={other}"]
    outcomes = [one["outcome"] for one in shell.data(*given, "--json")["findings"]]
    notes = outcomes.count("note")
    # The closed part needs VOC2007, which was not given: nobody may take it for checked.
    last = f"{notes} note, {outcomes.count('ok')} ok: verified but for 1 not checked"
    short = shell.out(*given).splitlines()
    assert sum(line.startswith("  note ") for line in short) == notes > 0
    assert not any(line.startswith("  ok ") for line in short)
    assert short[-1] == last
    # Nor for compared: of closed and wilderness images only the ids are known.
    assert short[-2] == "images in two roles: names, records and photos: not compared"
    assert main([*given, "--all"]) == 0
    assert sum(line.startswith("  ok ") for line in capsys.readouterr().out.splitlines()) == outcomes.count("ok")
    assert shell.out(*given, "--quiet").splitlines() == [last]


@real_files("owod_lists")
def check_ids_that_a_published_list_repeats_are_counted(shared: Path, shell: Shell) -> None:
    published = str(shared / "data/owod/published/ore/all_task_test.txt")
    command = ["verify", "owod/m-owodb", "--published", published, "--part", "t1-test"]
    lines = [line.split() for line in shell.out(*command).splitlines()]
    assert next(line[4] for line in lines if line[:4] == ["repeated", "in", "the", "file"]) == "1035"
    assert ["more", "often", "in", "the", "file", "0"] in lines
