"""`Forks`: runs commands in children of one process that has imported everything; each child may have a fault in it.

A request is a dictionary: ``words`` (of the command line), ``told`` (the file of its output), ``root`` and ``fault``
(the step below a folder at which a fault strikes, and which: see `Fault`), ``after`` (seconds until it is killed),
``humble`` (whether permissions hold for it, as for users), ``most`` (bytes of a file), ``environment``, ``folder``
(where it works) and ``seconds`` (of processor time; the memory that it took is then told in a file beside its output).
"""

from __future__ import annotations

import errno
import importlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PATIENCE = 120.0
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_STEPS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "shutil.rmtree"}
_MODULES = (
    "curation.cli.output",
    "curation.cli.signature",
    "curation.benchmarks.calls",
    "curation.evaluation.leaderboard_rows",
    "curation.publishing.exporting",
    "curation.signals.similarity.near_duplicates",
    "curation.sources.opening",
    "filelock",
    "matplotlib.figure",
    "PIL.JpegImagePlugin",
    "pyarrow.parquet",
    "tqdm",
)


class Forks:
    """A process that forks commands, until it is closed; `folder` is its working directory."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        command = [sys.executable, "-m", "tests.torture.forks"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
        )

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def run(self, *requests: Mapping[str, Any]) -> list[int]:
        """Run children side by side, and return their statuses, negative for a signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(requests) + "\n")
        self._process.stdin.flush()
        statuses: list[int] = json.loads(self._process.stdout.readline())
        return statuses


class Fault:
    """What happens at one of the steps by which a command writes below a folder.

    Steps are what the interpreter announces to audit hooks (opening for writing, renaming, removing, folders) and the
    calls of ``fsync``. At the step `at` the process is killed (``kill``), killed with the file that was to be synced
    cut in half (``torn``), or the system refuses with an error (``ENOSPC`` …).
    """

    def __init__(self, root: str, at: int, action: str, log: Path | None) -> None:
        self.root, self.at, self.action, self.log = os.path.realpath(root), at, action, log
        self.steps: list[str] = []
        self.fsync = os.fsync
        os.fsync = self._synced  # type: ignore[assignment]
        sys.addaudithook(self._audit)

    def _synced(self, handle: Any) -> None:
        self._step("fsync", str(Path(f"/proc/self/fd/{int(handle)}").readlink()))
        self.fsync(handle)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            self._step(event, arguments[0])
        elif event in _STEPS:
            self._step(event, arguments[1] if event in ("os.rename", "os.link") else arguments[0])

    def _step(self, event: str, path: Any) -> None:
        if not isinstance(path, str | os.PathLike) or not Path(path).absolute().is_relative_to(self.root):
            return
        self.steps.append(f"{event} {path}")
        if self.log is not None:
            self.log.write_text("\n".join(self.steps))
        if len(self.steps) != self.at or not self.action:
            return
        if self.action == "torn" and event == "fsync" and Path(path).is_file():
            os.truncate(path, Path(path).stat().st_size // 2)
        if self.action in ("kill", "torn"):
            os.kill(os.getpid(), signal.SIGKILL)
        code = getattr(errno, self.action)
        # A refused sync names no file, as the system's own errors.
        raise OSError(code, os.strerror(code), *(() if event == "fsync" else (os.fspath(path),)))


def be_humble() -> None:
    """Give up the capabilities by which an administrator passes over permissions; a user has none to give up."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    head, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if library.capget(head, sets):
        return
    for index in (0, 1):  # effective and permitted; bits 1 and 2 are CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
        sets[index] &= ~0b110 & 0xFFFFFFFF
    library.capset(head, sets)


def _live(request: dict[str, Any]) -> int:
    """Be a child: run the command, and return the exit status."""
    output = os.open(request["told"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if request.get("humble"):
        be_humble()
    told = io.StringIO()
    if most := request.get("most"):
        # What is told goes into a file too: it is held until the limit is taken back.
        sys.stdout = sys.stderr = told
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    os.environ.update(request.get("environment", {}))
    os.chdir(request.get("folder", "."))
    if seconds := request.get("seconds"):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    if fault := request.get("fault"):
        log = None if fault["action"] else Path(request["told"] + ".steps")
        Fault(request["root"], fault["at"], fault["action"], log)
    try:
        from curation.cli import main

        return main(request["words"])
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 2
    except BaseException:
        traceback.print_exc()
        return 99
    finally:
        if most:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            os.write(1, told.getvalue().encode("utf-8", "replace"))
        sys.stdout.flush()
        sys.stderr.flush()
        if seconds:
            lines = Path("/proc/self/status").read_text().splitlines()
            peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
            Path(f"{request['told']}.KiB").write_text(peak)


def _forked(request: dict[str, Any]) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = _live(request)
        finally:
            os._exit(status)
    return child


def _statuses(requests: list[dict[str, Any]]) -> list[int]:
    """Fork all children, kill those that are to be killed, and wait."""
    began = time.monotonic()
    ends = {_forked(request): request.get("after", _PATIENCE) for request in requests}
    statuses: dict[int, int] = {}
    while len(statuses) < len(ends):
        for child, after in ends.items():
            if child not in statuses:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    statuses[child] = os.waitstatus_to_exitcode(status)
                elif time.monotonic() - began > after:
                    os.kill(child, signal.SIGKILL)
        time.sleep(0.001)
    return [statuses[child] for child in ends]


def main() -> None:
    """Answer requests until there are no more."""
    from tests.unpainted import unpainted

    for name in _MODULES:
        importlib.import_module(name)
    with unpainted():
        for line in sys.stdin:
            print(json.dumps(_statuses(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
