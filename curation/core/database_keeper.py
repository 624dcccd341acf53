"""A process that ends MongoDB after its last client has ended; run by `curation.core.private_database`.

Each client holds a shared lock on one file while it runs. The system releases the lock however the client ends,
``kill -9`` included; then this process acquires the exclusive lock and ends the database. Only Python's standard
library is imported here, so that the process starts quickly and uses a few megabytes.
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
        Holds only the key and the socket; removed at the end.
    command : list of str
    """
    os.umask(0o077)
    database = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: database.terminate())
    # Programs that clean up /tmp skip locked folders.
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH)
    clients_lock = os.open(clients, os.O_RDWR)

    def end_after_last_client() -> None:
        fcntl.flock(clients_lock, fcntl.LOCK_EX)
        _end(database)

    threading.Thread(target=end_after_last_client, daemon=True).start()
    status = database.wait()
    shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    # The status is negative if a signal ended the database.
    sys.exit(min(abs(keep(sys.argv[1], sys.argv[2], sys.argv[3:])), 255))
