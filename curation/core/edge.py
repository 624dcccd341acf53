r"""The edge of the process: what a shell, a terminal and the machine may do to a command, met here and nowhere else.

Nothing but the standard library is imported, and little of it, so that this is in force before anything large loads.

* What an encoding cannot express is written as an escape (``\u2191``), to both streams.
* A reader that goes away (``| head``) is no error. Any other answer that cannot be written is one line, status 2.
* What cannot be written to standard error is lost, and changes nothing.
* An interrupt waits until the import in progress is over, since compiled modules turn it into errors of their own; it
  comes again where it got lost; and it ends with one line and status 130, whatever it became on the way.
"""

from __future__ import annotations

import io
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, TextIO

INTERRUPTED = 130
_FAILED = 2
_IMPORT_SECONDS, _LOST_SECONDS = 0.01, 0.1
_UNUSUAL = "↑ \N{GRINNING FACE}"


def enter(program: str) -> int:
    """Run ``"MODULE:FUNCTION"`` as the whole of the process, and return its exit status.

    Parameters
    ----------
    program : str
        The function takes nothing and returns an exit status. Its module is imported here.
    """
    global _interrupted
    _interrupted = False
    status = _FAILED
    try:
        answers, _ = _mended_streams()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
            sys.unraisablehook = _unraisable
        status = _status_of(program)
        sys.stdout.flush()
    except BaseException:
        if not _interrupted:
            raise
        status = _say_interrupted()
    # What is left is the interpreter's own end: an interrupt can change nothing any more, and must not be told of.
    if signal.getsignal(signal.SIGINT) is _interrupt:
        _again(0)
        signal.signal(signal.SIGINT, lambda *_: os._exit(status))
    if answers.refused and status not in (_FAILED, INTERRUPTED):
        print(f"error: The answer cannot be written to standard output: {answers.refused}", file=sys.stderr)
        status = _FAILED
    return status


def _status_of(program: str) -> int:
    from importlib import import_module

    module, _, name = program.partition(":")
    try:
        status = getattr(import_module(module), name)()
    except SystemExit as leaving:  # argparse: help, or wrong use
        status = leaving.code
    if _interrupted and status not in (0, 1, INTERRUPTED):
        return _say_interrupted()
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
        known = error
    except BrokenPipeError:
        return 0
    except (OSError, MemoryError, RecursionError, UnicodeError) as error:
        known = of_the_machine(error)
    except KeyboardInterrupt:
        return _say_interrupted()
    if _interrupted:  # It became an error on its way: a failed import, a call of the system that broke off.
        return _say_interrupted()
    report(known)
    return known.exit_code


def _say_interrupted() -> int:
    if _interrupted:
        _again(0)
    print("interrupted; no partial output is left", file=sys.stderr)
    return INTERRUPTED


class _Descriptor(io.FileIO):
    """A standard stream that takes whatever is written: the first refusal of the system is kept, and not raised."""

    refused = ""

    def write(self, data: Any) -> int:
        try:
            written = super().write(data)
            if written is None:  # Another program made the terminal or the pipe one that does not wait.
                from select import select

                select([], [self], [])
            return written or 0
        except BrokenPipeError:
            pass
        except OSError as error:
            self.refused = self.refused or error.strerror or "refused"
        return len(data)


def _mended_streams() -> tuple[_Descriptor, _Descriptor]:
    """Put streams that never raise in the place of standard output and error, and return their descriptors."""
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            # Closed by the shell: the next file to be opened would become it. Reading alone lets what is written fail.
            opened = os.open(os.devnull, os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (a descriptor)
    output, errors = _Descriptor(1, "wb", closefd=False), _Descriptor(2, "wb", closefd=False)
    sys.stdout, sys.stderr = _writer(sys.stdout, output), _writer(sys.stderr, errors)
    return output, errors


def _writer(before: TextIO | None, descriptor: _Descriptor) -> io.TextIOWrapper:
    encoding, at_once = "utf-8", descriptor.fileno() != 1
    if isinstance(before, io.TextIOWrapper):
        before.flush()
        if os.name == "nt" and before.isatty():  # A console takes characters, not bytes.
            before.reconfigure(errors="backslashreplace")
            return before
        encoding, at_once = before.encoding, before.line_buffering or before.write_through
    try:
        _UNUSUAL.encode(encoding, "backslashreplace")
    except (UnicodeError, LookupError):
        encoding = "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(descriptor), encoding=encoding, errors="backslashreplace", line_buffering=at_once
    )


_interrupted = False


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt` once no import is in progress, and again if it got lost; a second Ctrl-C does not wait.

    It gets lost in a finalizer, in a callback of compiled code, or where a library takes every error for its own.
    """
    global _interrupted
    impatient, _interrupted = _interrupted and number == signal.SIGINT, True
    waits = _again(_IMPORT_SECONDS) and not impatient and (_is_importing(frame) or _is_clearing_up())
    if not waits:
        _again(_LOST_SECONDS)
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _is_clearing_up() -> bool:
    """Return whether an interrupt that was raised is on its way up, through what removes half-written files."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _again(seconds: float) -> bool:
    """Have the system call `_interrupt` once more after some seconds, 0 for never; return whether it can (POSIX)."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return True
    return False


def _unraisable(problem: Any) -> None:
    """Keep quiet of an interrupt that fell into a finalizer: it comes again."""
    if not issubclass(problem.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(problem)
