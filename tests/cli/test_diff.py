"""``curation diff``: two manifests, what differs, and the version step."""

from pathlib import Path

import pytest

from curation.cli import main
from tests.shell import Shell
from tests.small_world import write_small_world


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    base = tmp_path_factory.mktemp("diff")
    world = write_small_world(base)
    sources = [*world.arguments()]
    for name, salt in (("a", "one"), ("b", "two")):
        assert main(["build", "elephant", *sources, "--set", f"salt={salt}", "--out", str(base / name)]) == 0
    return str(base / "a"), str(base / "b")


def test_nothing_differs(two: tuple[str, str], shell: Shell) -> None:
    assert "verdict: none" in shell.out("diff", two[0], two[0], "--strict")


def test_another_salt_changes_one_list(two: tuple[str, str], shell: Shell) -> None:
    data = shell.data("diff", *two, "--json", "--ids")
    assert (data["verdict"], data["stated_step"]) == ("major", "none")
    changed = {part["part"]: part for part in data["parts"] if part["added"] or part["removed"]}
    assert list(changed) == ["wr1-hash"]
    old, new = (Path(folder, "ids/wr1-hash.txt").read_text().split() for folder in two)
    assert changed["wr1-hash"]["added"] == sorted(set(new) - set(old))
    assert changed["wr1-hash"]["removed"] == sorted(set(old) - set(new))
    assert any("salt 'one' became 'two'" in one["what"] for one in data["changes"])


def test_text_and_exit_code(two: tuple[str, str], shell: Shell) -> None:
    text = shell.out("diff", *two, "--strict", status=1)
    assert "wr1-hash" in text
    assert "verdict: major" in text


def test_no_such_manifest(two: tuple[str, str], shell: Shell) -> None:
    assert "No such manifest" in shell.err("diff", two[0], "nowhere")
