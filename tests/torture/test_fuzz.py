"""Every command on inputs with a changed file: an answer, or an error of ours, and nothing written but outputs."""

import os
from pathlib import Path
from random import Random

import pytest

from tests.torture.forks import Forks
from tests.torture.mutations import mutated
from tests.torture.world import READERS, VERBS, filled

COMMANDS = {**READERS, **{name: verb.words for name, verb in VERBS.items()}}
COUNT = 3 * int(os.environ.get("TORTURE", "1"))
SEED = os.environ.get("TORTURE_SEED", "0")


def files_read(words: str, inputs: Path) -> list[Path]:
    """Return the files that a command line names, and those of its folders."""
    paths = [Path(word.rpartition("=")[2]) for word in filled(words, inputs, Path("/nowhere"))]
    named = [path for path in paths if path.is_relative_to(inputs)]
    return sorted({file for path in named for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()})


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_changed_file_is_read_or_refused(name: str, inputs: Path, forks: Forks, tmp_path: Path) -> None:
    def outcome(number: int) -> tuple[int, str]:
        out = tmp_path / f"{number}"
        out.mkdir()
        environment = {"CURATION_CACHE": str(out / "cache")}
        words = filled(COMMANDS[name], inputs, out)
        request = {"words": words, "told": str(tmp_path / "told"), "environment": environment, "seconds": 60}
        (status,) = forks.run(request)
        return status, (tmp_path / "told").read_text(errors="replace")

    status, told = outcome(-1)
    assert status in (0, 1), told
    before = {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()}
    rng = Random(f"{SEED}:{name}")
    for number in range(COUNT):
        path = rng.choice(files_read(COMMANDS[name], inputs))
        path.write_bytes(changed := mutated(path, before[path], rng))
        try:
            status, told = outcome(number)
        finally:
            path.write_bytes(before[path])
        where = f"{name}, {number}: {path.name}: {changed[:2000]!r}: {told[-2000:]}"
        assert status in (0, 1, 2), where
        assert "Traceback" not in told, where
        assert status != 2 or "error: " in told, where
        assert len(told) < 60_000, where
        assert all(sign.isprintable() or sign in "\n\r\t" for sign in told), where
    assert before == {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()}
