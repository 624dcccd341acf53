"""Files are whole or absent, folders too; none that exists is replaced without ``--force``, and no input ever."""

import ast
import os
import signal
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.core import writing
from curation.core.errors import CurationError, OverwriteError, UsageError
from curation.core.writing import PARTIAL, command, publishing_files, publishing_folder, write_bytes, write_text


class WriteFailedError(Exception):
    """Stands for whatever may go wrong while a file is written."""


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_exists_is_replaced_by_force_alone(tmp_path: Path) -> None:
    path = tmp_path / "a/b/c.txt"
    write_text(path, "one\r\ntwo\n")
    assert path.read_bytes() == b"one\r\ntwo\n"
    with pytest.raises(OverwriteError, match="exists already") as caught:
        write_bytes(path, b"new")
    assert caught.value.hint == "choose another name, or remove the file first"
    with command(), pytest.raises(OverwriteError) as caught:
        write_bytes(path, b"new")
    assert caught.value.hint == "choose another name, or --force to replace it"
    write_bytes(path, b"one\r\ntwo\n")  # The very same bytes take nothing away.
    with command(force=True):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert names_in(path.parent) == ["c.txt"]


def test_a_link_is_replaced_itself_unless_it_leads_to_an_input(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "thesis")
    (tmp_path / "dangling").symlink_to(tmp_path / "later")
    for name in ("link", "dangling"):
        with pytest.raises(OverwriteError, match="exists already"):
            write_bytes(tmp_path / name, b"new")
        assert (tmp_path / name).is_symlink()
    with command(inputs=[tmp_path / "thesis"], force=True), pytest.raises(OverwriteError, match="input"):
        write_bytes(tmp_path / "link", b"new")
    with command(force=True):
        write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "thesis").read_bytes() == b"mine"


def test_a_new_file_below_an_input_may_be_written_and_none_replaced(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_bytes(b"mine")
    with command(inputs=[tmp_path], force=True):
        write_bytes(tmp_path / "report.html", b"new")
        for name in ("train.json", "report.html"):
            with pytest.raises(OverwriteError, match="a folder that this command reads"):
                write_bytes(tmp_path / name, b"newer")


def test_what_a_killed_process_of_this_machine_left_is_removed(tmp_path: Path) -> None:
    finished = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (tmp_path / "m").mkdir()
    host, process = writing._host(), int(finished.stdout)
    for folder in (tmp_path, tmp_path / "m"):
        for owner in (f"{host}-{process}", f"{host}-{os.getppid()}", f"00000000-{process}"):
            (folder / f".m{PARTIAL}{owner}-aa").mkdir()
            (folder / f".m{PARTIAL}{owner}-aa" / "x").write_bytes(b"")
    with publishing_folder(tmp_path / "m") as partial:
        (partial / "a").write_bytes(b"1")
    write_bytes(tmp_path / "m.txt", b"1")
    for folder, name in ((tmp_path, "m.txt"), (tmp_path / "m", "a")):
        left = [f".m{PARTIAL}{host}-{os.getppid()}-aa", f".m{PARTIAL}00000000-{process}-aa"]
        assert names_in(folder) == sorted([*left, name, *(["m"] if name == "m.txt" else [])])


def test_two_that_make_one_folder_leave_the_first(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        with publishing_folder(folder) as mine:
            (mine / "a").write_bytes(b"mine")
            with publishing_folder(folder) as theirs:
                (theirs / "a").write_bytes(b"theirs")

    (tmp_path / "empty").mkdir()
    for name in ("empty", "new"):
        with pytest.raises(UsageError, match="exists already"):
            make(tmp_path / name)
        assert content(tmp_path / name) == {"a": b"theirs"}
    assert names_in(tmp_path) == ["empty", "new"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out/m"

    def fail() -> None:
        with publishing_folder(target) as partial:
            (partial / "a").write_bytes(b"1")
            assert not target.exists()
            raise WriteFailedError

    with pytest.raises(WriteFailedError):
        fail()
    assert names_in(tmp_path) == []
    with publishing_folder(target) as partial:
        (partial / "sub").mkdir()
        (partial / "sub/a").write_bytes(b"1")
    assert (target / "sub/a").read_bytes() == b"1"
    assert names_in(tmp_path / "out") == ["m"]


@pytest.mark.parametrize("name", [".", "folder"])
def test_a_folder_in_the_way_of_a_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="Expected a file, found a folder"):
        write_text(Path(name), "x")
    assert [one.name for one in tmp_path.rglob("*")] == ["folder"]


OLD = {"a.csv": b"1", "b.csv": b"2", "below/c.jpg": b"3", "old.csv": b"4"}
NEW = {"a.csv": b"5", "b.csv": b"2", "below/c.jpg": b"6", "new.csv": b"7"}


def put(folder: Path, files: dict[str, bytes], *inputs: Path, force: bool = True) -> None:
    with command(inputs=inputs, force=force), publishing_files(folder, ["old.csv"]) as new:
        for name, data in files.items():
            write_bytes(new / name, data)


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without what is not finished."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and PARTIAL not in str(path.relative_to(folder))
    }


STEPS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
"""Events that change a folder, and flags of an opening that does; what is read in between changes nothing."""


def killed_at(nth: int, folder: Path) -> bool:
    """Write the new files in a process that is killed at a step; return whether it was still alive there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of threads of pytest, which the child has no use for.
        child = os.fork()
    if child == 0:
        left = nth

        def step(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if event in STEPS or (event == "open" and arguments[2] & WRITING):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(step)
            put(folder, NEW)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return status != 0


@pytest.mark.parametrize("before", ["nothing", "an empty folder", "files"])
def test_wherever_a_kill_falls_files_are_old_or_new_and_the_next_run_ends_it(before: str, tmp_path: Path) -> None:
    states = set()
    for nth in range(1, 400):
        folder = tmp_path / f"{nth}" / "out"
        old = {"mine.txt": b"mine", "mine/too.txt": b"mine"}
        if before == "files":
            put(folder, {**OLD, **old})
        elif before == "an empty folder":
            folder.mkdir(parents=True)
        alive = killed_at(nth, folder)
        after = content(folder) if folder.exists() else {}
        if before == "nothing":  # A new folder appears whole.
            assert after in ({}, NEW), nth
        elif before == "files":
            assert {name: after.pop(name) for name in old} == old
        assert all(data in (OLD.get(name), NEW.get(name)) for name, data in after.items())
        states.add(tuple(sorted(after.items())))
        put(folder, NEW)
        assert content(folder) == {**NEW, **(old if before == "files" else {})}
        assert [path for path in folder.parent.rglob("*") if PARTIAL in path.name] == []
        if not alive:
            break
    assert not alive
    assert {tuple(sorted((OLD if before == "files" else {}).items())), tuple(sorted(NEW.items()))} <= states


def test_one_file_that_may_not_be_replaced_stops_all(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    for read in (tmp_path / "a.csv", tmp_path):
        with pytest.raises(OverwriteError, match=r"that this command reads|input of the same command"):
            put(tmp_path, NEW, read)
    with pytest.raises(OverwriteError, match="exists already"):
        put(tmp_path, NEW, force=False)
    put(tmp_path, OLD, force=False)  # The very same bytes may be written again.
    assert content(tmp_path) == OLD


@pytest.mark.parametrize("given", [".", "../out", "./."])
def test_the_working_folder_stays_the_one_it_is(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell works in it: renamed onto, it would be a folder that is no more."""
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    before = Path().stat().st_ino
    with publishing_folder(Path(given)) as new:
        (new / "ids").mkdir()
        (new / "ids" / "train.txt").write_bytes(b"1")
        (new / "manifest.json").write_bytes(b"2")
    assert content(Path()) == {"ids/train.txt": b"1", "manifest.json": b"2"}
    assert Path().stat().st_ino == before
    with pytest.raises(UsageError, match="that of a manifest"), publishing_folder(Path(given)):
        pass


"""The kernel refuses to let a file grow beyond 2 KiB, as it refuses on a full disk."""


def test_a_full_disk_names_the_output_and_leaves_no_folder(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (it takes the rights of the administrator)")
    try:
        with pytest.raises(CurationError, match="No space left") as caught:
            write_bytes(disk / "new/truth.json", bytes(1 << 20))
        assert caught.value.where == str(disk / "new/truth.json")

        def publish() -> None:
            with publishing_folder(disk / "a/manifest") as partial:
                (partial / "ids").mkdir()
                (partial / "ids/t1.txt").write_bytes(bytes(1 << 20))

        with pytest.raises(CurationError, match="No space left") as caught:
            publish()
        assert caught.value.where == str(disk / "a/manifest")
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_no_file_is_written_through_a_memory_map() -> None:
    """On a full disk, writing to a hole of a mapped file ends the program by a bus error."""
    for path in sorted(Path(curation.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("open_memmap", "memmap"):
                modes = [ast.unparse(word.value) for word in node.keywords if word.arg == "mode"]
                assert modes == ["'r'"], f"{path}:{node.lineno}"


def test_the_lists_of_a_manifest_stay_alone(tmp_path: Path) -> None:
    write_text(tmp_path / "manifest.json", "{}")
    (tmp_path / "ids").mkdir()
    with command(force=True), pytest.raises(UsageError, match="id lists of a manifest"):
        write_text(tmp_path / "ids/results.json", "{}")
    assert list((tmp_path / "ids").iterdir()) == []
    with pytest.raises(UsageError, match="holds a manifest: no other file may be added"):
        write_text(tmp_path / "results.json", "{}")


def test_names_of_the_system_are_not_replaced(tmp_path: Path) -> None:
    """Such as /dev/stdout where the output goes into a file."""
    code = "from pathlib import Path; from curation.core.writing import command, check_output\n"
    code += "with command(force=True): check_output(Path('/dev/stdout'))"
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run([sys.executable, "-c", code], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert "Output is not a regular file" in done.stderr
