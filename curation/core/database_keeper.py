"""A process beside MongoDB that ends it after its last client has gone; run by `curation.core.private_database`.

Each client holds a shared lock on one file for as long as it lives. The system gives the lock back however a client
ends, ``kill -9`` included; then this process gets the file for itself, and ends the database. Nothing of the package,
and nothing beyond Python's own library, is imported here: it starts in a blink, and holds a few megabytes.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading

_PATIENCE = 60.0
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Make Linux end the database if this process is killed; runs between fork and exec."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(database: "subprocess.Popen[bytes]") -> None:
    database.terminate()
    try:
        database.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        database.kill()


def keep(clients: str, folder: str, command: list[str]) -> int:
    """Run a database until it ends or no process holds the file of its clients; return its exit status.

    Parameters
    ----------
    clients : str
        The file that each client holds a shared lock on.
    folder : str
        Key and socket lie in it, and nothing else: removed at the end.
    command : list of str
    """
    os.umask(0o077)
    database = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: database.terminate())
    # What tidies up /tmp passes over folders that are locked.
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    left = os.open(clients, os.O_RDWR)

    def wait_for_the_last() -> None:
        fcntl.flock(left, fcntl.LOCK_EX)
        _end(database)

    threading.Thread(target=wait_for_the_last, daemon=True).start()
    status = database.wait()
    shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    # A database that a signal ended has a negative status.
    sys.exit(min(abs(keep(sys.argv[1], sys.argv[2], sys.argv[3:])), 255))
