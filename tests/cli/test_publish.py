"""``curation publish`` and ``curation pull`` from the command line, up to a detector's file from what was pulled."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.locate import manifest_folders
from tests.fake_hub import FakeHub
from tests.publishing.published_world import files_below
from tests.real_files import real_files
from tests.shell import Shell
from tests.small_world import SmallWorld, write_elephant

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


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--repo", "nonsense"], "name of a dataset repository"),
        (["--repo", "lab/x", "--tag", "v1"], "Invalid version tag"),
        (["--repo", "lab/x", "--source", "mtsd=x"], "Unknown source"),
        (["--repo", "lab/x", "--licence", "coco=WTFPL"], "Unknown licence"),
        (["--repo", "lab/x", "--licence", "mine=CC-BY-4.0"], "Unknown source"),
        (["--repo", "lab/x", "--layout", "findmeifyoucan"], "near, far and farther"),
        (["--repo", "lab/x", "--date", "soon"], "Invalid date"),
    ],
)
def test_a_request_that_cannot_be_met_writes_nothing(
    manifest: Path, tmp_path: Path, shell: Shell, options: list[str], told: str
) -> None:
    out = tmp_path / "out"
    assert told in shell.err("publish", manifest, *options, "--dry-run", out)
    assert list(tmp_path.iterdir()) == []


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
