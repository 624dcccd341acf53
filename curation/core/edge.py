"""The edge of the process: exit statuses, Ctrl-C, and a reader that goes away (``| head``).

Nothing but the standard library is imported, and little of it, so that this is in force before anything large loads.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

INTERRUPTED = 130
_FAILED = 2


def enter(program: str) -> int:
    """Run ``"MODULE:FUNCTION"`` as the whole of the process, and return its exit status.

    Parameters
    ----------
    program : str
        The function takes nothing and returns an exit status. Its module is imported here.
    """
    from importlib import import_module

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # Closed by the shell.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 (until the process ends)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    status: Any = _FAILED
    try:
        module, _, name = program.partition(":")
        status = getattr(import_module(module), name)()
    except SystemExit as leaving:  # argparse: help, or wrong use
        status = leaving.code
    except KeyboardInterrupt:
        status = _interrupted()
    try:
        sys.stdout.flush()
    except OSError as error:
        # What is not written yet would be tried again at the end of the interpreter.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if status != _FAILED and not isinstance(error, BrokenPipeError):
            print(f"error: The answer cannot be written to standard output: {error.strerror}", file=sys.stderr)
            status = _FAILED
    return status if isinstance(status, int) else 0 if status is None else _FAILED


def outcome(call: Callable[[], int], report: Callable[[Any], None]) -> int:
    """Return the exit status of a command: 0 done, 1 the check failed, 2 wrong use or input, 130 interrupted.

    Parameters
    ----------
    call : callable
        Does the work and returns 0 or 1.
    report : callable
        Prints a `CurationError`.
    """
    from curation.core.errors import CurationError, of_the_machine

    try:
        return call()
    except CurationError as error:
        problem = error
    except (OSError, MemoryError, RecursionError, UnicodeError) as error:
        problem = of_the_machine(error)
    except KeyboardInterrupt:
        return _interrupted()
    with suppress(OSError):  # Nobody reads it.
        report(problem)
    return problem.exit_code


def _interrupted() -> int:
    print("interrupted; no partial output is left", file=sys.stderr)
    return INTERRUPTED
