"""A step gives the same digests by processes and by Ray, however it was cut, interrupted or killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.core.engines.running import run_step
from curation.core.engines.shards import INDEX, SHARDS, STEP, SUMMARY, open_shards
from curation.core.errors import EngineError, MissingFileError, UsageError
from tests.core.engines.steps import Failing, Mortal, Rows, Squares, rows

BLOCKS = rows(2000, 100)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of all squares, made in this process alone."""
    return run_step(Squares(), BLOCKS, out=tmp_path_factory.mktemp("whole"), workers=1).digest


def test_the_output_is_in_the_order_of_the_blocks_and_opens_again(tmp_path: Path, whole: str) -> None:
    made = run_step(Squares(), iter(BLOCKS), out=tmp_path / "out", workers=1)
    assert (made.rows, made.computed, made.reused, made.digest) == (2000, 20, 0, whole)
    numbers = [n for table in open_shards(tmp_path / "out").tables(["n"]) for n in table.column("n").to_pylist()]
    assert numbers == list(range(2000))
    again = run_step(Squares(), BLOCKS, out=tmp_path / "out")
    assert (again.computed, again.reused, again.digest) == (0, 20, whole)
    assert {one.name for one in (tmp_path / "out").iterdir()} == {STEP, SHARDS, INDEX, SUMMARY}


def test_a_killed_process_ends_the_work_and_the_next_call_goes_on(tmp_path: Path, whole: str) -> None:
    mortal = Mortal(killing=1730, witness=tmp_path / "killed")
    with pytest.raises(EngineError, match="worker process was killed"):
        run_step(mortal, BLOCKS, out=tmp_path / "out", workers=2)
    assert (tmp_path / "killed").exists()
    made = run_step(mortal, BLOCKS, out=tmp_path / "out", workers=1)
    assert made.digest == whole
    assert made.reused > 0


@pytest.mark.ray
def test_ray_gives_the_same_a_worker_killed_too_and_finishes_what_was_begun_here(
    tmp_path: Path, whole: str, ray_session: None
) -> None:
    with pytest.raises(EngineError):
        run_step(Failing(at=730, mistake=True), BLOCKS, out=tmp_path / "out", workers=1)
    mortal = Mortal(killing=1230, witness=tmp_path / "killed")
    made = run_step(mortal, BLOCKS, out=tmp_path / "out", engine="ray")
    assert (tmp_path / "killed").exists()
    assert (made.digest, made.computed, made.reused) == (whole, 13, 7)
    with pytest.raises(EngineError, match="The number is bad") as error:
        run_step(Failing(at=730, mistake=True), BLOCKS, out=tmp_path / "ray", engine="ray")
    assert error.value.where == "block rows 700: row 7"
    made = run_step(Squares(), BLOCKS, out=tmp_path / "ray", workers=1)
    assert (made.digest, made.computed + made.reused) == (whole, 20)


@pytest.mark.ray
def test_ray_is_given_few_blocks_at_a_time(tmp_path: Path, whole: str, ray_session: None) -> None:
    waiting: list[int] = []

    def blocks() -> Iterator[Rows]:
        for number, block in enumerate(BLOCKS):
            waiting.append(number - len(list((tmp_path / SHARDS).glob("[!.]*.parquet"))))
            yield block

    assert run_step(Squares(), blocks(), out=tmp_path, engine="ray", workers=2).digest == whole
    assert max(waiting) < 2


@pytest.mark.ray
def test_a_block_that_kills_every_worker_of_ray_is_an_error(tmp_path: Path, ray_session: None) -> None:
    mortal = Mortal(killing=130, witness=tmp_path / "nowhere" / "killed")
    with pytest.raises(EngineError, match="worker process was killed") as error:
        run_step(mortal, rows(300, 100), out=tmp_path / "out", engine="ray")
    assert error.value.where == "block rows 100"


def test_tasks_of_an_array_in_any_order_give_the_same(tmp_path: Path, whole: str) -> None:
    for task in ("3/3", "1/3", "3/3"):
        made = run_step(Squares(), BLOCKS, out=tmp_path, workers=1, shard=task)
        assert [entry.block for entry in made.entries] == [block.name for block in BLOCKS[int(task[0]) - 1 :: 3]]
    assert (made.computed, made.reused) == (0, 6)
    with pytest.raises(MissingFileError, match="summary of shards"):
        open_shards(tmp_path)
    # A task that writes elsewhere at this moment has a file that is not whole yet: other tasks leave it alone.
    unfinished = tmp_path / SHARDS / f".x.partial-{2**22 + 1}-0.parquet"
    unfinished.touch()
    run_step(Squares(), BLOCKS[:5], out=tmp_path, workers=2, shard="2/3")
    assert unfinished.exists()
    merged = run_step(Squares(), BLOCKS, out=tmp_path, workers=1)
    assert (merged.digest, merged.computed, merged.reused) == (whole, 5, 15)
    assert open_shards(tmp_path).digest == whole
    assert {path.name for path in tmp_path.iterdir()} == {STEP, SHARDS, INDEX, SUMMARY}
    assert not unfinished.exists()


ARRAY = """
import sys
from pathlib import Path
from curation.core.engines.running import run_step
from tests.core.engines.steps import Squares, rows
run_step(Squares(), rows(2000, 100), out=Path(sys.argv[1]), workers=1, shard=sys.argv[2])
"""


def test_tasks_of_an_array_at_once_give_the_same(tmp_path: Path, whole: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    tasks = [
        subprocess.Popen([sys.executable, "-c", ARRAY, str(tmp_path / "out"), f"{number}/3"], env=environment)
        for number in (1, 2, 3)
    ]
    assert [task.wait(timeout=60) for task in tasks] == [0, 0, 0]
    merged = run_step(Squares(), BLOCKS, out=tmp_path / "out")
    assert (merged.digest, merged.computed) == (whole, 0)


KILLED = """
import os, signal, sys
from pathlib import Path
from curation.core.engines.running import run_step
from tests.core.engines.steps import Squares, rows

def blocks():
    yield from rows(2000, 100)
    os.kill(os.getpid(), signal.SIGKILL)

run_step(Squares(), blocks(), out=Path(sys.argv[1]), workers=2)
"""


def test_processes_end_with_the_one_that_started_them(tmp_path: Path, whole: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    # They hold its standard output: it is read to its end when the last of them is gone.
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=60)
    assert done.returncode == -signal.SIGKILL
    made = run_step(Squares(), BLOCKS, out=tmp_path, workers=1)
    assert made.digest == whole
    assert made.reused > 0


def test_a_failure_names_its_block_and_keeps_what_is_finished(tmp_path: Path, whole: str) -> None:
    with pytest.raises(EngineError, match="The number is bad") as error:
        run_step(Failing(at=730, mistake=True), BLOCKS, out=tmp_path, workers=1)
    assert (error.value.where, error.value.hint) == ("block rows 700: row 7", "choose another")
    with pytest.raises(EngineError, match="The step squares failed") as error:
        run_step(Failing(at=730, mistake=False), BLOCKS, out=tmp_path, workers=1)
    assert (error.value.where, error.value.found) == ("block rows 700", "ValueError: odd thing")
    with pytest.raises(MissingFileError, match="summary of shards"):
        open_shards(tmp_path)
    # A power cut may leave a file without its content.
    sorted((tmp_path / SHARDS).iterdir())[0].write_bytes(b"")
    made = run_step(Squares(), BLOCKS, out=tmp_path, workers=1)
    assert (made.digest, made.computed, made.reused) == (whole, 14, 6)


SCRIPT = """
import sys
from pathlib import Path
from curation.core.engines.running import run_step
from tests.core.engines.steps import Squares, rows
print(run_step(Squares(), rows(2000, 100), out=Path(sys.argv[1]), workers=2).digest)
"""


@pytest.mark.parametrize("given", ["file", "standard input"])
def test_a_script_needs_no_guard_of_its_main_part(given: str, tmp_path: Path, whole: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script) if given == "file" else "-", str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    text = SCRIPT if given != "file" else None
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (whole, "")


def test_what_has_changed_is_run_again_and_its_old_shard_goes(tmp_path: Path) -> None:
    before = run_step(Squares(), [Rows(0, 10), Rows(10, 20)], out=tmp_path, workers=1)
    after = run_step(Squares(), [Rows(0, 10), Rows(10, 25, key="new")], out=tmp_path, workers=1)
    assert (after.computed, after.reused, after.rows) == (1, 1, 25)
    assert after.digest != before.digest
    assert len(list((tmp_path / SHARDS).iterdir())) == 2


def test_folders_of_other_work_and_twofold_names_are_refused(tmp_path: Path) -> None:
    run_step(Squares(), rows(10, 10), out=tmp_path / "out")
    with pytest.raises(EngineError, match="another step"):
        run_step(Squares(power=3), rows(10, 10), out=tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(EngineError, match="not created by curation"):
        run_step(Squares(), rows(10, 10), out=tmp_path / "mine")
    with pytest.raises(EngineError, match="share a name"):
        run_step(Squares(), [Rows(0, 1), Rows(0, 2)], out=tmp_path / "twice", workers=1)
    shards = [{"shard": text} for text in ("0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/3 ", "", "all")]
    for wrong in ({"engine": "spark"}, {"workers": 0}, *shards):
        with pytest.raises(UsageError):
            run_step(Squares(), rows(10, 10), out=tmp_path / "new", **wrong)  # type: ignore[arg-type]


def test_damage_is_told_and_mended_by_running_again(tmp_path: Path) -> None:
    made = run_step(Squares(), rows(300, 100), out=tmp_path, workers=1)
    shard = sorted((tmp_path / SHARDS).iterdir())[1]
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    with pytest.raises(EngineError, match="missing or damaged"):
        list(open_shards(tmp_path).tables())
    shard.unlink()
    assert run_step(Squares(), rows(300, 100), out=tmp_path, workers=1).digest == made.digest
    assert sum(table.num_rows for table in open_shards(tmp_path).tables()) == 300
    summary = json.loads((tmp_path / SUMMARY).read_text())
    (tmp_path / SUMMARY).write_text(json.dumps(summary | {"digest": "sha256:0"}))
    with pytest.raises(EngineError, match="index of shards"):
        open_shards(tmp_path)


def test_a_step_is_known_by_its_parameters() -> None:
    assert Squares().digest == Squares(power=2).digest != Squares(power=3).digest
