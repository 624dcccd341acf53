"""``curation review apply`` as a user runs it: a new version, warnings, refusals, and kills at any moment."""

from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from curation.review.decisions.decision import Decision
from curation.review.decisions.files import write_decisions
from tests.shell import Shell
from tests.small_world import SmallWorld, write_small_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SmallWorld:
    return write_small_world(tmp_path_factory.mktemp("apply"), n_closed=10, n_wilderness=20)


def sources(world: SmallWorld) -> list[str]:
    return [*world.arguments()]


@pytest.fixture(scope="module")
def base(world: SmallWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("base") / "m"
    assert main(["build", "elephant", *sources(world), "--out", str(out)]) == 0
    return out


def verdicts(base: Path, path: Path, *rows: tuple[int, str, str]) -> Path:
    """Write verdicts on images of the part wilderness: number in its list, action, reviewer."""
    images = read_manifest(base).ids("wilderness")
    write_decisions(
        path,
        [
            Decision(
                image_id=images[number],
                dataset="wilderness",
                stage="manual",
                action=action,
                reviewer=name,  # type: ignore[arg-type]
            )
            for number, action, name in rows
        ],
    )
    return path


def test_a_new_version_is_written_and_verified(base: Path, world: SmallWorld, tmp_path: Path, shell: Shell) -> None:
    file = verdicts(base, tmp_path / "d.jsonl", (0, "remove", "anna"), (1, "to_near", "anna"), (2, "keep", "anna"))
    command = ["review", "apply", str(base), "--decisions", str(file), "--near", "ood-near", "--far", "ood-far"]
    command += ["--version", "2.0.0", *sources(world), "--out", str(tmp_path / "new")]
    shown = shell.data(*command, "--json")
    made, old = read_manifest(tmp_path / "new"), read_manifest(base)
    assert (shown["digest"], shown["resolution"]["digest"]) == (made.digest, made.header.decisions)
    assert made.ids("ood-near") == (old.ids("wilderness")[1],)
    assert set(made.ids("wilderness")) == set(old.ids("wilderness")[2:])
    told = shell.out("verify", tmp_path / "new", *sources(world), "--rebuild")
    assert "curation review apply" in told
    # The same again changes no byte; other decisions never overwrite.
    assert main(command) == 0
    other = verdicts(base, tmp_path / "other.csv", (3, "remove", "anna"))
    rest = ["--version", "2.0.0", "--out", str(tmp_path / "new")]
    assert "never edited" in shell.err("review", "apply", base, "--decisions", other, *rest)


@pytest.mark.parametrize(
    "options",
    [["--near", "a=x", "--near", "a=y"], ["--near", "../x"], ["--note", "a\nb"], ["--decisions", "d.jsonl"]],
    ids=range(4),
)
def test_options_that_cannot_work(
    base: Path, tmp_path: Path, options: list[str], monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    verdicts(base, Path("d.jsonl"), (0, "remove", "anna"))
    command = ["review", "apply", str(base), "--decisions", "d.jsonl", "--version", "2.0.0", "--out", "m", *options]
    shell.err(*command)
    assert not Path("m").exists()
