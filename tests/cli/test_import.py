"""``curation import``: headers made and completed, and what is said when a list is not the right one."""

import json
import shutil
from pathlib import Path

import pytest

from curation.benchmarks.owod.splits import RECIPES
from curation.cli import main
from curation.manifest.importing import list_slices
from curation.manifest.manifest import read_manifest
from tests.real_files import real_files
from tests.shell import Shell

NAME = "owod/s-owodb-published"


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A folder with small drawn files under the names that the recipe asks for."""
    folder = tmp_path / "lists"
    (folder / "Main").mkdir(parents=True)
    files = sorted({one.file for one in list_slices(RECIPES[NAME]()).values()})
    for number, file in enumerate(files):
        lines = [f"{97 * number + 13 * line:012d}\n" for line in (3, 1, 2, *((1,) if file == "test.txt" else ()))]
        (folder / "Main" / file).write_text("".join(lines))
    return folder


@pytest.fixture
def header(lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a header of the drawn lists, at hand by name."""
    folder = tmp_path / "at-hand" / NAME / "1.0.0"
    assert main(["import", NAME, "--lists", str(lists), "--header-only", "--out", str(folder)]) == 0
    monkeypatch.setenv("CURATION_MANIFESTS", str(tmp_path / "at-hand"))
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_header_is_completed_by_name(header: Path, lists: Path, tmp_path: Path, shell: Shell) -> None:
    out = tmp_path / "out"
    data = json.loads(
        shell.out("import", f"{NAME}@1.0.0", "--lists", lists, "--out", out, "--json").partition("{")[2].join(["{", ""])
    )
    assert data["digest"] == read_manifest(header).digest == read_manifest(out).digest
    assert data["lists"] == len(data["parts"]) == 11
    assert read_manifest(out).part("t1-test").repeats == 1
    for verb in ("verify", "show"):
        assert main([verb, str(header)]) == 0
        assert main([verb, str(out)]) == 0
    assert main(["diff", str(header), str(out), "--strict"]) == 0


def test_a_header_is_completed_by_path_and_again(header: Path, lists: Path, tmp_path: Path) -> None:
    command = ["import", str(header), "--lists", str(lists), "--out", str(tmp_path / "out")]
    assert main(command) == main(command) == 0


def test_the_output_folder_is_taken(header: Path, lists: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert main(["import", NAME, "--lists", str(lists), "--out", str(tmp_path / "out")]) == 2
    assert main(["import", NAME, "--lists", str(lists), "--out", str(header)]) == 2
    assert not (header / "ids").exists()
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_the_header_that_comes_with_the_package_pins_the_authors_lists(
    lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CURATION_MANIFESTS", raising=False)
    assert f"is not the t1_train.txt of {NAME} 1.0.0" in shell.err(
        "import", NAME, "--lists", lists, "--out", tmp_path / "out", status=1
    )
    assert not (tmp_path / "out").exists()


@real_files("atlas_lists")
def check_published_lists_under_other_names_are_imported(shared: Path, tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    for number, name in enumerate(("t1_train", "t2_train", "t3_train", "test")):
        shutil.copy(shared / f"data/atlas/nuowodb/nuOWODB/{name}.txt", lists / f"split{number}.lst")
    out = tmp_path / "out"
    assert main(["import", "nuowodb/published", "--lists", str(lists), "--out", str(out)]) == 0
    assert len(read_manifest(out).lists["t1-train"]) == 53_850
