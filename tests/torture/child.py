"""A process that forks commands with a fault in them: everything is imported once, and each command dies alone.

It reads one JSON request a line and answers with one JSON line. A request is a list of children that run side by side,
each a dictionary: ``words`` (of the command line) or ``call`` (``MODULE:NAME`` of a function that takes `arguments`),
``told`` (the file of its output), ``root`` (steps are counted below it), ``fault`` (see `Fault`), ``after`` (seconds
until it is killed), ``humble`` (whether permissions hold for it, as for users), ``most`` (bytes of a file),
``clock`` (a seed: its clock jumps), ``environment``, ``folder`` (where it works), ``seconds`` (of processor time; what
it took of that and of memory is then told in a file beside its output).
"""

from __future__ import annotations

import errno
import importlib
import io
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

_PATIENCE = 120.0
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_STEPS = frozenset(
    ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "shutil.rmtree")
)  # fmt: skip


class Fault:
    """What happens at one of the steps by which a command writes.

    Steps are what the interpreter announces to audit hooks (opening for writing, renaming, removing, folders) and the
    calls ``fsync`` and ``write``. At the step `at` the process is killed (``kill``), killed with the file that was to
    be synced cut in half (``torn``), or the system refuses with an error (``ENOSPC`` …).
    """

    def __init__(self, root: str, at: int, action: str, log: Path | None) -> None:
        self.root, self.at, self.action, self.log = os.path.realpath(root), at, action, log
        self.steps: list[str] = []
        self.real = os.fsync, os.write, os.pwrite, os.sync

    def install(self) -> None:
        """Look at every step from now on."""
        sys.addaudithook(self._audit)
        fsync, write, pwrite, sync = self.real

        def synced(fd: Any) -> None:
            self._step("fsync", _path_of(fd))
            fsync(fd)

        def written(descriptor: int, data: Any) -> int:
            path = _path_of(descriptor)
            if self._is_below(path) and self.action == "torn" and len(self.steps) + 1 == self.at:
                write(descriptor, bytes(data)[: len(data) // 2])
            self._step("write", path)
            return write(descriptor, data)

        def written_at(descriptor: int, data: Any, offset: int) -> int:
            self._step("write", _path_of(descriptor))
            return pwrite(descriptor, data, offset)

        def synced_all() -> None:
            self._step("sync", self.root)
            sync()

        os.fsync, os.write, os.pwrite, os.sync = synced, written, written_at, synced_all

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITING:
                self._step(event, arguments[0])
        elif event in _STEPS:
            self._step(event, arguments[1] if event in ("os.rename", "os.link") else arguments[0])

    def _is_below(self, path: Any) -> bool:
        if isinstance(path, int):
            path = _path_of(path)
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        place = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (links stay: what is renamed is the link)
        return place.startswith(f"{self.root}/") or place == self.root

    def _step(self, event: str, path: Any) -> None:
        if not self._is_below(path):
            return
        self.steps.append(f"{event} {os.fspath(path) if not isinstance(path, int) else path}")
        if self.log is not None:
            self.log.write_text("\n".join(self.steps))
        if len(self.steps) != self.at:
            return
        if self.action == "torn" and event == "fsync" and Path(path).is_file():
            os.truncate(path, Path(path).stat().st_size // 2)
        if self.action in ("kill", "torn"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.action:
            code = getattr(errno, self.action)
            # A refused write or sync names no file, as the system's own errors.
            raise OSError(code, os.strerror(code), *(() if event in ("fsync", "write", "sync") else (os.fspath(path),)))


def be_humble() -> None:
    """Give up the capabilities by which an administrator passes over permissions; a user has none to give up."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    held = (ctypes.c_uint32 * 6)()
    if libc.capget(head, held):
        return
    for place in (0, 1):  # effective and permitted; bits 1 and 2 are CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
        held[place] &= ~0b110 & 0xFFFFFFFF
    libc.capset(head, held)


def _path_of(descriptor: Any) -> str:
    try:
        return str(Path(f"/proc/self/fd/{int(descriptor)}").readlink())
    except (OSError, ValueError, TypeError):
        return ""


def jumping_clock(seed: int) -> None:
    """Let every look at the clock of the day be years before or after the one before."""
    from random import Random

    rng = Random(seed)
    real, real_ns = time.time, time.time_ns
    years = 365 * 86_400
    time.time = lambda: max(0.0, real() + rng.choice((-40, -10, -1, 0, 1, 10)) * years)
    time.time_ns = lambda: max(0, real_ns() + rng.choice((-40, -10, -1, 0, 1, 10)) * years * 10**9)


def _live(request: dict[str, Any]) -> int:
    """Be a child: run the command, and return the exit status."""
    out = os.open(request["told"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(out, descriptor)
    if request.get("humble"):
        be_humble()
    told = io.StringIO()
    if most := request.get("most"):
        # What is told goes into a file too: it is kept until the limit is taken back.
        sys.stdout = sys.stderr = told
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    os.environ.update(request.get("environment", {}))
    os.chdir(request.get("folder", "."))
    if seconds := request.get("seconds"):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    if (clock := request.get("clock")) is not None:
        jumping_clock(clock)
    if fault := request.get("fault"):
        log = Path(request["told"] + ".steps") if fault["action"] == "" else None
        Fault(request["root"], fault["at"], fault["action"], log).install()
    try:
        if "call" in request:
            module, _, name = request["call"].partition(":")
            return int(getattr(importlib.import_module(module), name)(*request["arguments"]) or 0)
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
            Path(f"{request['told']}.spent").write_text(f"{_peak()} {time.process_time()}")


def _peak() -> float:
    """Return the MiB that this process took at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(one.split()[1]) for one in lines if one.startswith("VmHWM")) / 1024


def _fork(request: dict[str, Any]) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = _live(request)
        finally:
            os._exit(status)
    return child


def run(requests: list[dict[str, Any]]) -> list[int]:
    """Fork all children, kill those that are to be killed, wait, and return statuses, negative for a signal."""
    began = time.monotonic()
    children = [_fork(request) for request in requests]
    waiting = {
        place: request["after"] for place, request in enumerate(requests) if request.get("after") is not None
    }  # fmt: skip
    statuses: dict[int, int] = {}
    while len(statuses) < len(children):
        for place, child in enumerate(children):
            if place not in statuses:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    statuses[place] = os.waitstatus_to_exitcode(status)
                elif time.monotonic() - began > waiting.get(place, _PATIENCE):
                    os.kill(child, signal.SIGKILL)
                    if place not in waiting:
                        with Path(requests[place]["told"]).open("a") as told:
                            told.write(f"killed, since it was not done after {_PATIENCE:.0f} s\n")
                    waiting[place] = float("inf")
        time.sleep(0.001)
    return [statuses[place] for place in range(len(children))]


def main() -> None:
    """Answer requests until there are no more."""
    from tests.unpainted import unpainted

    for name in sys.argv[1:]:
        importlib.import_module(name)
    with unpainted():
        for line in sys.stdin:
            print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
