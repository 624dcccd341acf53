"""``curation publish`` and ``curation pull`` from the command line, up to a detector's file from what was pulled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.locate import load_manifest, manifest_folders
from curation.manifest.manifest import read_manifest
from curation.publishing.publication import verify_repository
from curation.review.app.images import part_images
from curation.sources.photos import PhotoFolder
from tests.fake_hub import WRITER, FakeHub
from tests.publishing.published_world import files_below
from tests.real_files import real_files
from tests.shell import Shell
from tests.small_world import SmallWorld, write_elephant

pytest.importorskip("mlcroissant")
pytestmark = [pytest.mark.usefixtures("cache"), pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")]

ROOT = Path(__file__).parents[2] / "manifests"
COMMITTED = manifest_folders([ROOT])
PARAMETERS = {"ratios": ("1",), "orders": ("hash",), "salt": "test"}


@pytest.fixture(scope="module")
def manifest(world: SmallWorld) -> Path:
    return write_elephant(world, PARAMETERS)


def test_a_dry_run_is_what_is_pushed_and_what_is_pulled_byte_for_byte(
    hub: FakeHub, world: SmallWorld, manifest: Path, tmp_path: Path, shell: Shell
) -> None:
    command = ["publish", str(manifest), "--repo", "lab/elephant", *world.arguments(), "--json"]
    dry, pulled = tmp_path / "dry", tmp_path / "pulled"
    planned = shell.data(*command, "--dry-run", dry)
    assert hub.requests == []
    pushed = shell.data(*command)
    assert pushed["digest"] == planned["digest"]
    assert (pushed["new"], pushed["private"]) == (True, True)
    assert main(["pull", "lab/elephant@1.0.0", "--out", str(pulled), "--digest", pushed["digest"]]) == 0
    assert files_below(pulled) == files_below(dry)
    assert shell.data(*command)["new"] is False


def test_a_missing_token_is_told_before_tables_are_written(
    hub: FakeHub, manifest: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written_in_vain(*given: object) -> None:
        raise AssertionError("tables were written for nothing")

    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("curation.publishing.repository.write_repository", written_in_vain)
    assert "needs a hub token" in shell.err("publish", manifest, "--repo", "lab/elephant")
    assert hub.requests == []


def test_a_pulled_manifest_does_what_any_manifest_does(
    hub: FakeHub, world: SmallWorld, manifest: Path, tmp_path: Path
) -> None:
    pulled = tmp_path / "pulled"
    assert main(["publish", str(manifest), "--repo", "lab/elephant"]) == 0
    assert main(["pull", "lab/elephant@1.0.0", "--out", str(pulled)]) == 0
    assert main(["verify", str(pulled), *world.arguments(), "--rebuild"]) == 0
    export = ["--part", "closed", "--format", "coco", *world.arguments(), "--out"]
    assert main(["export", str(manifest), *export, str(tmp_path / "own.json")]) == 0
    assert main(["export", str(pulled), *export, str(tmp_path / "theirs.json")]) == 0
    assert (tmp_path / "theirs.json").read_bytes() == (tmp_path / "own.json").read_bytes()
    # Review opens the folder as any other; only the App needs a database.
    image = pytest.importorskip("PIL.Image")
    photos = tmp_path / "photos"
    photos.mkdir()
    found = load_manifest(str(pulled))
    for one in found.ids("closed"):
        image.new("RGB", (8, 8)).save(photos / f"{one.partition(':')[2]}.png")
    images = part_images(found, ["closed"], {}, {"": PhotoFolder(photos)})
    assert images.ids == found.ids("closed")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--repo", "nonsense"], "name of a dataset repository"),
        (["--repo", "lab/x", "--tag", "v1"], "Invalid version tag"),
        (["--repo", "lab/x", "--source", "mtsd=x"], "Unknown source"),
        (["--repo", "lab/x", "--licence", "coco=WTFPL"], "not one that this program knows"),
        (["--repo", "lab/x", "--licence", "mine=CC-BY-4.0"], "Unknown source"),
        (["--repo", "lab/x", "--layout", "findmeifyoucan"], "near, far and farther"),
        (["--repo", "lab/x", "--set", "class_tree=x"], "belong to --layout findmeifyoucan"),
        (["--repo", "lab/x", "--date", "soon"], "Invalid date"),
    ],
)
def test_a_request_that_cannot_be_met_writes_nothing(
    manifest: Path, tmp_path: Path, shell: Shell, options: list[str], told: str
) -> None:
    out = tmp_path / "out"
    assert told in shell.err("publish", manifest, *options, "--dry-run", out)
    assert list(tmp_path.iterdir()) == []


def test_data_of_ones_own_in_the_slots_of_a_paper_get_the_owners_licence_and_no_word_of_the_dataset(
    manifest: Path, tmp_path: Path
) -> None:
    for name, options in (("given", ("voc2007-test=MIT", "coco=CC0-1.0")), ("silent", ())):
        words = [word for option in options for word in ("--licence", option)]
        assert main(["publish", str(manifest), "--repo", "lab/x", *words, "--dry-run", str(tmp_path / name)]) == 0
    card, silent = ((tmp_path / name / "README.md").read_text() for name in ("given", "silent"))
    croissant = json.loads((tmp_path / "given" / "croissant.json").read_text())
    assert "https://spdx.org/licenses/MIT.html" in card
    assert "https://spdx.org/licenses/CC0-1.0.html" in card
    assert ("COCO Consortium" in silent, "COCO Consortium" in card) == (True, False)
    assert ("photos from Flickr" in silent, "photos from Flickr" in card) == (True, False)
    assert "rai:personalSensitiveInformation" not in croissant


def test_decisions_are_published_with_the_manifest_that_they_made(
    world: SmallWorld, manifest: Path, tmp_path: Path, shell: Shell
) -> None:
    image = read_manifest(manifest).ids("wilderness")[0]
    rows = tmp_path / "decisions.jsonl"
    row = {"image_id": image, "dataset": "wilderness", "stage": "manual", "action": "remove", "reviewer": "anna"}
    rows.write_text(json.dumps(row) + "\n")
    reviewed, out = tmp_path / "reviewed", tmp_path / "out"
    decided = ["--decisions", str(rows)]
    assert main(["review", "apply", str(manifest), *decided, "--version", "2.0.0", "--out", str(reviewed)]) == 0
    command = ["publish", "--repo", "lab/x", *decided]
    assert "names of their reviewers" in shell.err(*command, reviewed, "--dry-run", out, status=0)
    verify_repository(out)
    (found,) = [path for path in files_below(out) if path.endswith("decisions.jsonl")]
    assert json.loads((out / found).read_text()).items() >= row.items()
    assert "not reviewed" in shell.err(*command, manifest, "--dry-run", tmp_path / "no")


def test_where_a_package_is_missing_the_extra_is_named(
    manifest: Path, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = ["publish", str(manifest), "--repo", "lab/x", "--dry-run", str(tmp_path / "out")]
    for package, command in (
        ("mlcroissant", dry),
        ("huggingface_hub", dry[:-2]),
        ("huggingface_hub", ["pull", "lab/x@1.0.0", "--out", str(tmp_path / "out")]),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            assert "pip install 'curation[publish]'" in shell.err(*command)
    assert list(tmp_path.iterdir()) == []


def test_the_endpoint_and_the_token_are_those_of_the_environment(hub: FakeHub, manifest: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "home")}
    environment.pop("HF_HUB_OFFLINE", None)

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "curation", *arguments],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=120,
            cwd=Path(__file__).parents[2],
        )

    publish = ("publish", str(manifest), "--repo", "lab/env")
    refused = run(*publish, **{"HF_TOKEN": "hf_expired_0123456789"})
    assert refused.returncode == 2
    assert "does not accept the token" in refused.stderr
    offline = run(*publish, HF_HUB_OFFLINE="1")
    assert (offline.returncode, "cannot be reached" in offline.stderr) == (2, True)
    assert hub.repositories == {}
    done = run(*publish)
    assert done.returncode == 0, done.stderr
    pulled = run("pull", "lab/env@1.0.0", "--out", str(tmp_path / "pulled"))
    assert pulled.returncode == 0, pulled.stderr
    for finished in (refused, offline, done, pulled):
        assert WRITER not in finished.stdout + finished.stderr
        assert "hf_expired" not in finished.stdout + finished.stderr
        assert "Traceback" not in finished.stderr


@real_files("coco_exports")
def check_real_annotations_give_the_counts_of_the_paper(shared: Path, tmp_path: Path) -> None:
    from pyarrow import parquet

    sources = {
        "voc2007-test": shared / "data/voc2007/test_with_difficult.json",
        "coco": shared / "data/coco/instances_val2017_rebuilt.json",
    }
    given = [f"--source={name}={path}" for name, path in sources.items()]
    folder = str(COMMITTED["elephant/val2017@1.0.0"])
    out = tmp_path / "out"
    assert main(["publish", folder, "--repo", "lab/x", *given, "--dry-run", str(out)]) == 0
    closed = parquet.read_table(out / "data/elephant-val2017/closed.parquet")["objects"].to_pylist()
    objects = [one for row in closed for one in row]
    assert (len(closed), len(objects), sum(one["difficult"] for one in objects)) == (4952, 14976, 2944)
    wilderness = parquet.read_table(out / "data/elephant-val2017/wilderness.parquet")
    assert (len(wilderness), sum(map(bool, wilderness["objects"].to_pylist()))) == (969, 921)
