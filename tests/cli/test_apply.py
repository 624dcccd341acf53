"""``curation review apply`` as a user runs it: a new version, warnings, refusals, and kills at any moment."""

import json
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


def test_reviewers_who_differ_need_a_rule(base: Path, tmp_path: Path, shell: Shell) -> None:
    one = verdicts(base, tmp_path / "anna.jsonl", (0, "remove", "anna"), (1, "remove", "anna"))
    two = verdicts(base, tmp_path / "ben.csv", (0, "keep", "ben"), (1, "keep", "ben"))
    six = verdicts(base, tmp_path / "cleo.csv", (1, "remove", "cleo"))
    command = ["review", "apply", str(base), *(f"--decisions={file}" for file in (one, two, six)), "--version", "2.0.0"]
    error = shell.err(*command, "--out", tmp_path / "a")
    assert "contradict each other on 2 images" in error
    assert "--rule majority" in error
    for name, options, removed in (
        ("majority", ["--rule", "majority"], [1]),
        ("senior", ["--rule", "senior", "--senior", "ben"], []),
        ("all", ["--on-error", "conflicts=keep"], [0, 1]),
    ):
        out = tmp_path / name
        assert main([*command, *options, "--out", str(out)]) == 0
        old, new = read_manifest(base).ids("wilderness"), read_manifest(out).ids("wilderness")
        assert [old.index(one) for one in old if one not in new] == removed
    assert main([*command, "--rule", "majority", "--strict", "--out", str(tmp_path / "strict")]) == 2
    assert main([*command, "--rule", "senior", "--out", str(tmp_path / "nobody")]) == 2
    assert not list(tmp_path.glob("strict*"))
    assert not list(tmp_path.glob("nobody*"))


def test_doubts_are_told_and_strict_refuses_them(base: Path, tmp_path: Path, shell: Shell) -> None:
    file = tmp_path / "d.jsonl"
    row = {"image_id": "coco:000000000000", "dataset": "wilderness", "stage": "manual", "action": "remove"}
    file.write_text(json.dumps(row | {"manifest": "sha256:" + "3" * 64}) + '\n{"image_id": "coco:0000')
    command = ["review", "apply", str(base), "--decisions", str(file), "--version", "1.0.1"]
    told = shell.err(*command, "--out", tmp_path / "m", status=0)
    for piece in ("cut off", "in no part", "1 decision made on another manifest, sha256:333", "no list changed"):
        assert piece in told
    assert "cut off" in shell.err(*command, "--strict", "--out", tmp_path / "s")
    file.write_text(json.dumps(row) + "\n")
    assert main([*command, "--strict", "--out", str(tmp_path / "s")]) == 2
    assert not (tmp_path / "s").exists()


def test_a_version_that_is_too_small_for_the_change_is_told(base: Path, tmp_path: Path, shell: Shell) -> None:
    file = verdicts(base, tmp_path / "d.jsonl", (0, "remove", "anna"))
    command = ["review", "apply", str(base), "--decisions", str(file), "--out", str(tmp_path / "m"), "--version"]
    assert "deserves a major version" in shell.err(*command, "1.0.1", status=0)
    for version in ("1.0.0", "two"):
        assert main([*command, version]) == 2


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
