"""Where the App is served: at this machine's own address unless asked otherwise, at a port that nobody else answers."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from curation.errors import ReviewError, UsageError
from curation.review.database import configuration

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 5151
NEXT = "next"
PORT_VARIABLE = "FIFTYONE_DEFAULT_APP_PORT"
OPENS = (
    "everybody who reaches that address can read every file that this user can read, and give verdicts: the App has no "
    "password"
)
"""What an address beyond this machine opens: FiftyOne serves any path that it is asked for."""

_EVERY = "0.0.0.0"  # noqa: S104  (compared with, never listened at unasked)
_PATIENCE = 2.0
_LARGEST_PORT = 65535
_LARGEST_ANSWER = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """An IPv4 address, and a port that was free when it was looked at."""

    address: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether this machine alone reaches it."""
        return _is_local(self.address)


def find_place(address: str | None = None, port: str | None = None) -> Place:
    """Return where the App can be served.

    Parameters
    ----------
    address : str, optional
        A name or an IPv4 address of this machine; 127.0.0.1 by default, whatever FiftyOne is configured for.
    port : str, optional
        A number, or ``next`` for the first free one from the default on. The default is FiftyOne's: 5151, or what
        its configuration says.

    Raises
    ------
    UsageError
        The port is no port.
    ReviewError
        Something answers at the port, or this machine has no such address.
    """
    first = DEFAULT_PORT if port in (None, NEXT) else _number(port, "--port")
    if port in (None, NEXT) and (named := _configured_port()):
        first = _number(named, PORT_VARIABLE)
    where = _resolved(LOOPBACK if address is None else address)
    if port != NEXT:
        _require_free(where, first)
        return Place(where, first)
    for number in range(first, _LARGEST_PORT + 1):
        if _is_free(where, number):
            return Place(where, number)
    raise ReviewError("No port is free", where=where, expected=f"one from {first} on")


def launch(dataset: Any, place: Place, *, remote: bool = False) -> Any:
    """Return the App's session on a dataset; what listens afterwards is looked at, not taken on trust.

    Raises
    ------
    ReviewError
        The server did not start, another program was faster, or FiftyOne opened more than was asked for.
    """
    import fiftyone
    from fiftyone.core.service import ServiceException

    try:
        # Without an address FiftyOne listens at all of them inside a container. A layout given here makes the page load
        # twice and lose its grid; the Review button opens the panel.
        session: Any = fiftyone.launch_app(dataset, remote=remote, port=place.port, address=place.address)
    except ServiceException as error:
        raise ReviewError(
            "The server of the App did not start",
            where=f"{place.address}:{place.port}",
            found=str(error)[:200],
            hint=f"again, where the machine is busy (FiftyOne waits a minute); or --port {NEXT}",
        ) from None
    if problem := _problem(place):
        session.close()
        raise problem
    return session


def _problem(place: Place) -> ReviewError | None:
    """Return what is wrong with what the programs started by this one listen at."""
    found = set(_listening())
    if not any(port == place.port for _, port in found):
        return _taken(place.address, place.port)
    beyond = sorted(f"{address}:{port}" for address, port in found if not _is_local(address))
    if place.is_local and beyond:
        return ReviewError(
            "FiftyOne listens at an address that was not asked for, and was stopped",
            expected=f"{place.address}:{place.port}",
            found=", ".join(beyond),
        )
    return None


def _listening() -> Iterator[tuple[str, int]]:
    """Yield address and port of every TCP socket that a descendant of this process listens at."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        try:
            # Releases of psutil before 6 know the older name alone.
            connections = getattr(child, "net_connections", None) or child.connections
            for one in connections(kind="tcp"):
                if one.status == psutil.CONN_LISTEN:
                    yield one.laddr[0], one.laddr[1]
        except psutil.Error:
            continue


def _number(text: str | None, where: str) -> int:
    number = int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 6 else 0
    if not 0 < number <= _LARGEST_PORT:
        raise UsageError(
            "This is no port",
            where=f"{where} {ascii(text)[1:-1][:40]}",
            expected=f"a number from 1 to {_LARGEST_PORT}, or {NEXT} for the first free one",
        )
    return number


def _configured_port() -> str:
    named = os.environ.get(PORT_VARIABLE) or configuration().get("default_app_port")
    return str(named) if named else ""


def _resolved(address: str) -> str:
    """Return the IPv4 address of a name; FiftyOne builds addresses of web pages that no IPv6 address fits into."""
    try:
        found = socket.getaddrinfo(address, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        found = []
    if not address or not found:
        raise _no_address(address)
    return str(found[0][4][0])


def _no_address(address: str) -> ReviewError:
    return ReviewError(
        "This machine has no such address",
        where=f"--address {ascii(address)[1:-1][:80]}",
        expected=f"an IPv4 address or a name of this machine; {LOOPBACK} without --address",
        hint="leave --address out, and reach the App through ssh -L from elsewhere",
    )


def _is_local(address: str) -> bool:
    # Some systems add the interface: fe80::1%eth0.
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _is_free(address: str, port: int) -> bool:
    """Return whether a server may listen at a port and nothing answers there."""
    with socket.socket() as one:
        if os.name != "nt":
            # As the server will: a port that somebody just left is free.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((address, port))
            one.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise _no_address(address) from None
            return False
    # Not every system minds that somebody listens at all addresses already.
    try:
        socket.create_connection((_reached(address), port), timeout=_PATIENCE).close()
    except OSError:
        return True
    return False


def _reached(address: str) -> str:
    return LOOPBACK if address == _EVERY else address


def _require_free(address: str, port: int) -> None:
    if not _is_free(address, port):
        raise _taken(address, port)


def _taken(address: str, port: int) -> ReviewError:
    return ReviewError(
        f"Port {port} is not free",
        where=f"{address}:{port}",
        found=_who(address, port),
        hint=f"--port {NEXT} takes the first free one; or end what listens at {port} (ss -ltnp, lsof -i :{port})",
    )


def _who(address: str, port: int) -> str:
    """Return who listens at a port, as far as an answer within two seconds tells."""
    try:
        one = socket.create_connection((_reached(address), port), timeout=_PATIENCE)
    except OSError:
        return "nobody answers, but this user may not listen there"
    answer, deadline = b"", time.monotonic() + _PATIENCE
    with one, suppress(OSError):
        one.sendall(b"GET /fiftyone HTTP/1.0\r\nHost: localhost\r\n\r\n")
        # A foreign program may answer without end, or one byte a second.
        while len(answer) < _LARGEST_ANSWER and (left := deadline - time.monotonic()) > 0:
            one.settimeout(left)
            if not (more := one.recv(_LARGEST_ANSWER)):
                break
            answer += more
    if b"200" in answer[:20] and b'"version"' in answer:
        return "a FiftyOne App: another review, or a session of your own"
    return "another program"
