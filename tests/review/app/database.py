"""A database of this session's own, for all tests that need FiftyOne."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.core.fiftyone_database import load_fiftyone

PLUGIN = Path(__file__).parents[3] / "curation" / "review" / "app" / "plugin"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def find_program() -> str | None:
    found = importlib.util.find_spec("fiftyone")
    if found is None or not found.submodule_search_locations:
        return None
    bundled = Path(next(iter(found.submodule_search_locations))) / "db" / "bin" / "mongod"
    return str(bundled) if bundled.is_file() else shutil.which("mongod")


@pytest.fixture(scope="session")
def database_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a mongod started by hand: it is up in a second, and its files vanish with the session."""
    if importlib.util.find_spec("fiftyone") is None:
        pytest.skip("FiftyOne is absent: pip install '.[review]'")
    program = find_program()
    if program is None:
        pytest.skip("no mongod is at hand: pip install '.[mongo]'")
    folder = tmp_path_factory.mktemp("mongod")
    port = free_port()
    options = ["--dbpath", str(folder), "--port", str(port), "--bind_ip", "127.0.0.1", "--quiet", "--nounixsocket"]
    process = subprocess.Popen(
        [program, *options, "--wiredTigerCacheSizeGB", "0.25"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        # An answer that never comes is asked for once more, or a failure of one test.
        yield f"mongodb://127.0.0.1:{port}/?socketTimeoutMS=30000"
    finally:
        process.terminate()
        process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(300):
        if process.poll() is not None:
            pytest.skip(f"mongod does not start here: exit status {process.returncode}")
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.skip("mongod does not answer within 30 s")


@pytest.fixture(scope="session")
def review_environment(database_uri: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of programs that use the session's database and no setting of this user's."""
    return {
        **os.environ,
        "FIFTYONE_DATABASE_URI": database_uri,
        "FIFTYONE_DATABASE_NAME": "curation_tests",
        "FIFTYONE_DO_NOT_TRACK": "true",
        "FIFTYONE_DATABASE_VALIDATION": "false",
        "FIFTYONE_SHOW_PROGRESS_BARS": "false",
        "FIFTYONE_PLUGINS_DIR": str(PLUGIN),
        "CURATION_REVIEWER": "anna",
        "HOME": str(tmp_path_factory.mktemp("home")),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(PLUGIN.parents[3]), *sys.path[:0], os.environ.get("PYTHONPATH", "")]),
    }


@pytest.fixture(scope="session")
def fiftyone(review_environment: dict[str, str]) -> Any:
    """The package, on the session's database; its settings are read when it is first imported."""
    os.environ.update({k: v for k, v in review_environment.items() if k.startswith(("FIFTYONE", "CURATION_REV"))})
    home, os.environ["HOME"] = os.environ.get("HOME", ""), review_environment["HOME"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")

            return load_fiftyone()
    finally:
        os.environ["HOME"] = home
