"""Files are whole or absent, folders too; none is replaced that is somebody else's; no name leads outside its root."""

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.core import storage
from curation.core.errors import CurationError, MissingFileError, OverwriteError, PathEscapeError, UsageError
from curation.core.ledger import LEDGER, check_output, command
from curation.core.storage import (
    inside,
    make_folder,
    publishing_files,
    publishing_folder,
    read_bytes,
    replacing,
    write_bytes,
    write_text,
)


class WriteFailedError(Exception):
    """Stands for whatever may go wrong while a file is written."""


def names(folder: Path) -> list[str]:
    """Return the names in a folder, without the ledger of what was written."""
    return sorted(path.name for path in folder.iterdir() if path.name != LEDGER)


def test_write_creates_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a/b/c.txt"
    write_text(path, "one\r\ntwo\n")
    assert path.read_bytes() == b"one\r\ntwo\n"
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["c.txt"]


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    write_bytes(path, b"old")

    def fail() -> None:
        with replacing(path) as partial:
            assert partial.suffix == ".csv"
            partial.write_bytes(b"half")
            raise WriteFailedError

    with pytest.raises(WriteFailedError):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["c.csv"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out/m"

    def fail() -> None:
        with publishing_folder(target) as partial:
            (partial / "a").write_bytes(b"1")
            assert not target.exists()
            raise WriteFailedError

    with pytest.raises(WriteFailedError):
        fail()
    assert names(tmp_path) == []
    with publishing_folder(target) as partial:
        (partial / "sub").mkdir()
        (partial / "sub/a").write_bytes(b"1")
    assert (target / "sub/a").read_bytes() == b"1"
    assert names(tmp_path / "out") == ["m"]


def test_an_empty_folder_may_be_filled_and_a_full_one_not(tmp_path: Path) -> None:
    target = tmp_path / "m"
    target.mkdir()
    with publishing_folder(target) as partial:
        (partial / "a").write_bytes(b"1")

    def again() -> None:
        with publishing_folder(target):
            raise AssertionError("must not be entered")

    with pytest.raises(UsageError, match="exists already"):
        again()
    (tmp_path / "file").write_bytes(b"")
    target = tmp_path / "file"
    with pytest.raises(UsageError, match="exists already"):
        again()


def test_what_a_killed_process_left_is_removed_and_a_living_one_is_not(tmp_path: Path) -> None:
    finished = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    dead = tmp_path / f".m.partial-{finished.stdout.decode().strip()}-aaaa"
    living = tmp_path / f".m.partial-{os.getppid()}-bbbb"
    for folder in (dead, living):
        folder.mkdir()
        (folder / "x").write_bytes(b"")
    with publishing_folder(tmp_path / "m") as partial:
        (partial / "a").write_bytes(b"1")
    assert names(tmp_path) == [living.name, "m"]


def test_a_file_in_the_way_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file/below"):
        with pytest.raises(UsageError, match="Expected a folder, found"):
            make_folder(folder)


@pytest.mark.parametrize("name", [".", "folder"])
def test_a_folder_in_the_way_of_a_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="Expected a file, found a folder"):
        write_text(Path(name), "x")
    assert [one.name for one in tmp_path.rglob("*")] == ["folder"]


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="The id list does not exist"):
        read_bytes(tmp_path / "no", kind="id list")
    with pytest.raises(MissingFileError, match="is a folder"):
        read_bytes(tmp_path)
    (tmp_path / "yes").write_bytes(b"1")
    with pytest.raises(MissingFileError, match="cannot be read"):
        read_bytes(tmp_path / "yes/below")
    assert read_bytes(tmp_path / "yes") == b"1"


@pytest.mark.parametrize("name", ["a.txt", "a/b.txt", "./a", "a//b", "a b", "a..b", "..a"])
def test_names_inside(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name).resolve().is_relative_to(tmp_path.resolve())


@pytest.mark.parametrize(
    "name", ["../a", "a/../../b", "/etc/passwd", "..", "a/..\\..\\b", "\\\\host\\x", "C:\\x", "C:/x", "a\0b", "link/x"]
)
def test_names_that_lead_outside(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(PathEscapeError):
        inside(root, name)


def test_only_what_this_tool_wrote_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"mine")
    with pytest.raises(OverwriteError, match="did not write"):
        write_bytes(path, b"theirs")
    assert path.read_bytes() == b"mine"
    # The very same bytes take nothing away.
    write_bytes(path, b"mine")
    with pytest.raises(OverwriteError):
        write_bytes(path, b"theirs")
    with command(force=True):
        write_bytes(path, b"theirs")
    write_bytes(path, b"and again")
    path.write_bytes(b"edited")
    with pytest.raises(OverwriteError) as caught:
        write_bytes(path, b"theirs")
    assert caught.value.found == "a file that was changed since"
    assert "--force" in str(caught.value)
    assert names(tmp_path) == ["table.csv"]


def test_what_was_written_is_known_in_another_place_too(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a/one.txt", b"1")
    write_bytes(tmp_path / "a/two.txt", b"2")
    (tmp_path / "a").rename(tmp_path / "b")
    write_bytes(tmp_path / "b/one.txt", b"3")
    # Under another name it is somebody's copy.
    (tmp_path / "b/two.txt").rename(tmp_path / "b/three.txt")
    with pytest.raises(OverwriteError):
        write_bytes(tmp_path / "b/three.txt", b"4")


def test_a_ledger_that_is_damaged_protects_everything(tmp_path: Path) -> None:
    write_bytes(tmp_path / "one.txt", b"1")
    for content in (b"", b"\xff\xfe", b"0" * 64 + b" one.txt\n", b"{}"):
        (tmp_path / LEDGER).write_bytes(content)
        with pytest.raises(OverwriteError):
            write_bytes(tmp_path / "one.txt", b"2")
    (tmp_path / LEDGER).unlink()
    (tmp_path / LEDGER).mkdir()
    with pytest.raises(OverwriteError):
        write_bytes(tmp_path / "one.txt", b"2")


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "thesis")
    (tmp_path / "dangling").symlink_to(tmp_path / "later")
    for name in ("link", "dangling"):
        with pytest.raises(OverwriteError):
            write_bytes(tmp_path / name, b"theirs")
        assert (tmp_path / name).is_symlink()
    with command(inputs=[tmp_path / "thesis"], force=True), pytest.raises(OverwriteError, match="input"):
        write_bytes(tmp_path / "link", b"theirs")


def test_what_a_command_has_read_it_does_not_replace(tmp_path: Path) -> None:
    write_bytes(tmp_path / "rows.txt", b"1")
    with command(force=True):
        assert read_bytes(tmp_path / "rows.txt") == b"1"
        with pytest.raises(OverwriteError, match="input of the same command"):
            write_bytes(tmp_path / "rows.txt", b"2")
    write_bytes(tmp_path / "rows.txt", b"2")


def test_a_file_below_an_input_is_an_input_unless_this_tool_wrote_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_bytes(data / "report.html", b"1")
    (data / "train.json").write_bytes(b"mine")
    with command(inputs=[data], force=True):
        write_bytes(data / "report.html", b"2")
        write_bytes(data / "other.html", b"new")
        with pytest.raises(OverwriteError, match="a folder that this command reads"):
            write_bytes(data / "train.json", b"theirs")


def test_only_what_this_tool_wrote_is_removed(tmp_path: Path) -> None:
    write_bytes(tmp_path / "old.csv", b"1")
    write_bytes(tmp_path / "edited.csv", b"1")
    (tmp_path / "edited.csv").write_bytes(b"2")
    (tmp_path / "mine.csv").write_bytes(b"3")
    with publishing_files(tmp_path, ["old.csv", "edited.csv", "mine.csv", "none.csv"]) as new:
        write_bytes(new / "new.csv", b"4")
    assert names(tmp_path) == ["edited.csv", "mine.csv", "new.csv"]


OLD = {"a.csv": b"1", "b.csv": b"2", "below/c.jpg": b"3", "old.csv": b"4"}
NEW = {"a.csv": b"5", "b.csv": b"2", "below/c.jpg": b"6", "new.csv": b"7"}


def put(folder: Path, files: dict[str, bytes]) -> None:
    with publishing_files(folder, ["old.csv"]) as new:
        for name, data in files.items():
            write_bytes(new / name, data)


def held(folder: Path) -> dict[str, bytes]:
    """Return what a folder holds, without what is not finished."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != LEDGER and ".partial-" not in str(path.relative_to(folder))
    }


STEPS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
"""Events that change a folder, and flags of an opening that does; what is read in between changes nothing."""


def killed_at(nth: int, folder: Path) -> bool:
    """Write the new files in a process that is killed at a step; return whether it was still alive there.

    Steps are opening to write, renaming and removing, and the moments before and after two folders are exchanged.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of threads of pytest, which the child has no use for.
        child = os.fork()
    if child == 0:
        left = nth
        real = storage._exchange

        def step(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if event in STEPS or (event == "open" and arguments[2] & WRITING):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        def exchange(*folders: Path) -> bool:
            step("os.rename", ())
            done = real(*folders)
            step("os.rename", ())
            return done

        storage._exchange = exchange
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


@pytest.mark.parametrize("before", ["nothing", "empty", "own"])
def test_files_appear_together_wherever_a_kill_falls(before: str, tmp_path: Path) -> None:
    seen = set()
    for nth in range(1, 400):
        folder = tmp_path / f"{nth}" / "out"
        if before == "own":
            put(folder, OLD)
        elif before == "empty":
            folder.mkdir(parents=True)
        alive = killed_at(nth, folder)
        found = held(folder) if folder.exists() else {}
        assert found in ((OLD if before == "own" else {}), NEW), nth
        seen.add(found == NEW)
        put(folder, NEW)
        assert held(folder) == NEW
        assert [one.name for one in folder.parent.iterdir()] == ["out"]
        for name in NEW:
            check_output(folder / name)
        if not alive:
            break
    assert not alive
    assert seen == {False, True}


def test_beside_files_of_the_user_each_is_old_or_new_and_theirs_stay(tmp_path: Path) -> None:
    after = set()
    for nth in range(1, 400, 2):
        folder = tmp_path / f"{nth}" / "out"
        put(folder, OLD)
        (folder / "mine.txt").write_bytes(b"mine")
        (folder / "mine").mkdir()
        alive = killed_at(nth, folder)
        found = held(folder)
        assert found.pop("mine.txt") == b"mine"
        assert (folder / "mine").is_dir()
        assert all(data in (OLD.get(name), NEW.get(name)) for name, data in found.items())
        after.add(tuple(sorted(found.items())))
        put(folder, NEW)
        assert held(folder) == {**NEW, "mine.txt": b"mine"}
        assert sorted(one.name for one in folder.iterdir() if one.name != LEDGER) == sorted(
            {one.partition("/")[0] for one in NEW} | {"mine", "mine.txt"}
        )
        if not alive:
            break
    assert {tuple(sorted(OLD.items())), tuple(sorted(NEW.items()))} <= after


def test_one_file_that_may_not_be_replaced_stops_all(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    (tmp_path / "b.csv").write_bytes(b"edited")
    with pytest.raises(OverwriteError):
        put(tmp_path, NEW)
    assert held(tmp_path) == {**OLD, "b.csv": b"edited"}
    with command(force=True):
        put(tmp_path, NEW)
    assert held(tmp_path) == NEW


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
    assert held(Path()) == {"ids/train.txt": b"1", "manifest.json": b"2"}
    assert Path().stat().st_ino == before
    with pytest.raises(UsageError, match="that of a manifest"), publishing_folder(Path(given)):
        pass


def test_what_a_kill_left_in_the_working_folder_is_no_content(tmp_path: Path) -> None:
    finished = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (tmp_path / f".out.partial-{int(finished.stdout)}-aa").mkdir()
    with publishing_folder(tmp_path) as new:
        (new / "a").write_bytes(b"1")
    assert names(tmp_path) == ["a"]


def test_what_comes_into_a_folder_while_it_is_exchanged_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    put(folder, OLD)
    real = storage._exchange

    def exchange(one: Path, other: Path) -> bool:
        (other / "notes").mkdir()
        (other / "notes" / "mine.txt").write_bytes(b"mine")
        return real(one, other)

    monkeypatch.setattr(storage, "_exchange", exchange)
    put(folder, NEW)
    assert held(folder) == {**NEW, "notes/mine.txt": b"mine"}


def test_a_folder_keeps_its_rights(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    put(folder, OLD)
    folder.chmod(0o2750)
    put(folder, NEW)
    assert held(folder) == NEW
    assert folder.stat().st_mode & 0o7777 == 0o2750


def test_writers_of_one_folder_at_once_leave_the_files_of_one(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    code = (
        "import sys; from pathlib import Path; from curation.core.storage import publishing_files, write_bytes\n"
        "for n in range(12):\n"
        "    with publishing_files(Path(sys.argv[1])) as new:\n"
        "        for name in 'abc': write_bytes(new / name, f'{sys.argv[2]} {n}'.encode())"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, folder, name]) for name in "xyz"]
    seen = 0
    while any(one.poll() is None for one in writers):
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            found = {Path(f"/proc/self/fd/{handle}/{name}").read_bytes() for name in "abc"}
        except FileNotFoundError:
            found = set()  # It was exchanged and removed since.
        finally:
            os.close(handle)
        assert len(found) <= 1
        seen += bool(found)
    assert [one.wait() for one in writers] == [0, 0, 0]
    assert seen
    assert names(tmp_path) == ["out"]
    assert len(set(held(folder).values())) == 1


def test_many_writers_of_one_folder_lose_no_line_of_the_ledger(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from curation.core.storage import write_bytes\n"
        "for n in range(20): write_bytes(Path(sys.argv[1]) / f'{sys.argv[2]}-{n}.txt', b'x')"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, tmp_path, name]) for name in "abc"]
    assert [one.wait(timeout=120) for one in writers] == [0, 0, 0]
    for path in tmp_path.glob("*.txt"):
        check_output(path)
    assert len(names(tmp_path)) == 60


def test_a_kill_between_record_and_rename_leaves_both_recognised(tmp_path: Path) -> None:
    """The ledger lists the new bytes before the file has them: killed there, the old file is still this tool's own."""
    path = tmp_path / "a.txt"
    write_bytes(path, b"old")
    code = (
        "import os, sys; from pathlib import Path; from curation.core import storage\n"
        "real = Path.replace\n"
        "def kill(self, target):\n"
        "    if Path(target).name == 'a.txt': os.kill(os.getpid(), 9)\n"
        "    return real(self, target)\n"
        "Path.replace = kill\n"
        "storage.write_bytes(Path(sys.argv[1]), b'new')"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    assert path.read_bytes() == b"old"
    write_bytes(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert len((tmp_path / LEDGER).read_text().splitlines()) == 1
    assert names(tmp_path) == ["a.txt"]


def test_a_kill_before_the_old_digest_is_struck_out_leaves_it_to_the_next_run(tmp_path: Path) -> None:
    """Killed between rename and the second record, the ledger states two digests; the same bytes again strike one."""
    path = tmp_path / "a.txt"
    write_bytes(path, b"old")
    before = (tmp_path / LEDGER).read_text()
    write_bytes(path, b"new")
    after = (tmp_path / LEDGER).read_text()
    (tmp_path / LEDGER).write_text(before + after)
    write_bytes(path, b"new")
    assert (tmp_path / LEDGER).read_text() == after


LIMITED = """
import json, resource, sys
from curation.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
raise SystemExit(main(json.loads(sys.argv[1])))
"""
"""The kernel refuses to let a file grow beyond 2 KiB, as it refuses on a full disk."""


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    """A COCO file of 90 classes in three images."""
    path = tmp_path / "shapes.json"
    content = {
        "images": [{"id": n, "file_name": f"{n}.jpg", "width": 50, "height": 50} for n in range(3)],
        "annotations": [
            {"id": n, "image_id": n % 3, "category_id": n, "bbox": [1, 1, 5, 5], "area": 25, "iscrowd": 0}
            for n in range(90)
        ],
        "categories": [{"id": n, "name": f"class {n}"} for n in range(90)],
    }
    path.write_text(json.dumps(content))
    return path


def test_a_disk_that_refuses_names_the_file_and_leaves_no_folder(shapes: Path, tmp_path: Path) -> None:
    command_line = ["cut", str(shapes), "-k", "2", "--no-cache", "--set", "restarts=0", "--on-error", "components=cut"]
    command_line += ["--out", str(tmp_path / "new/deep"), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, json.dumps(command_line)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert str(tmp_path / "new/deep/") in done.stderr
    assert "too large" in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert names(tmp_path) == ["shapes.json"]


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


def test_the_loser_of_two_that_make_one_folder_says_so(tmp_path: Path) -> None:
    def lose() -> None:
        with publishing_folder(tmp_path / "m") as mine:
            (mine / "a").write_bytes(b"mine")
            with publishing_folder(tmp_path / "m") as theirs:
                (theirs / "a").write_bytes(b"theirs")

    with pytest.raises(UsageError, match="Another process"):
        lose()
    assert (tmp_path / "m/a").read_bytes() == b"theirs"
    assert names(tmp_path) == ["m"]


@pytest.mark.parametrize("what", ["pipe", "/dev/zero", "socket"])
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(MissingFileError) as caught:
            read_bytes(tmp_path / what)
    assert caught.value.expected == "a regular file"
    assert caught.value.hint == "write it to a file first: COMMAND > FILE, then name FILE"


def test_the_lists_of_a_manifest_stay_alone(tmp_path: Path) -> None:
    write_text(tmp_path / "manifest.json", "{}")
    (tmp_path / "ids").mkdir()
    with command(force=True), pytest.raises(UsageError, match="id lists of a manifest"):
        write_text(tmp_path / "ids/results.json", "{}")
    assert list((tmp_path / "ids").iterdir()) == []
    with pytest.raises(UsageError, match="holds a manifest, which no other file may join"):
        write_text(tmp_path / "results.json", "{}")


def test_names_of_the_system_are_not_replaced(tmp_path: Path) -> None:
    """Such as /dev/stdout where the output goes into a file."""
    code = "from pathlib import Path; from curation.core.ledger import command, check_output\n"
    code += "with command(force=True): check_output(Path('/dev/stdout'))"
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run([sys.executable, "-c", code], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert "Output is not a regular file" in done.stderr


def test_where_nothing_is_at_a_path_the_name_most_like_it_is_asked_for(tmp_path: Path) -> None:
    for name in ("train.json", "test.json", "photos"):
        (tmp_path / name).touch()
    for name, meant in (("trian.json", "train.json"), ("photo", "photos")):
        assert storage.missing_path("Gone", tmp_path / name).hint == f"did you mean {tmp_path / meant}?"
    for name in ("annotations.csv", "none/train.json", "train.json", "nope.json", "a\0b", "x" * 300):
        assert storage.missing_path("Gone", tmp_path / name).hint is None, name


def test_a_folder_of_many_names_is_not_searched(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"{number}.json").touch()
    assert storage.missing_path("Gone", tmp_path / "1000.json").hint == f"did you mean {tmp_path / '100.json'}?"
    (tmp_path / "1001.json").touch()
    assert storage.missing_path("Gone", tmp_path / "1000.json").hint is None
