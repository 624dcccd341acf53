"""The server of a review: at this machine's own address unless asked otherwise, at a port that nobody else answers.

FiftyOne's own application is run behind `curation.review.guard`, in this process: one server is one reviewer. A port is
taken by opening it, so no review ever shows what another program serves.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from curation.errors import ReviewError, UsageError
from curation.fiftyone_database import configuration
from curation.review.app_requests import Reviewed, restrict_stages
from curation.review.edit_requests import Edits
from curation.review.guard import KNOWN_BY, TOKEN, Guard, real_files
from curation.review.judging import answered, reviewer_here
from curation.review.live_review import offer_own_view

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 5151
ANY = "0"
"""The port of whoever takes a free one."""
PORT_VARIABLE = "FIFTYONE_DEFAULT_APP_PORT"
OPENS = (
    "everybody who reaches that address and learns the token (it travels unencrypted) can see the photos under review "
    "and judge in your name"
)
"""What an address beyond this machine opens."""

_EVERY = "0.0.0.0"  # noqa: S104  (compared with, never listened at unasked)
_PATIENCE = 2.0
_LARGEST_PORT = 65535
_LARGEST_ANSWER = 4096
_PORT_OF_HTTP = 80
_WAITING = 100
_FAREWELL = 2.0
"""Seconds that what still runs gets at the end; pages hold a connection open for as long as they are shown."""


@dataclass(frozen=True, slots=True)
class Place:
    """An IPv4 address, the name it was asked for by, and a port that was free when it was looked at; 0 for any."""

    address: str
    port: int
    name: str = ""

    @property
    def is_local(self) -> bool:
        """Whether this machine alone reaches it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may call a server here: ``localhost:5151``.

        At all addresses of the machine that is any name which the machine itself goes by.
        """
        names = {self.name, self.address}
        if self.is_local or self.address == _EVERY:
            names |= {LOOPBACK, "localhost"}
        if self.address == _EVERY:
            import psutil

            names |= {socket.gethostname(), socket.getfqdn()}
            names |= {one.address for found in psutil.net_if_addrs().values() for one in found}
            names.remove(_EVERY)
        bare = names if self.port == _PORT_OF_HTTP else set()
        return frozenset({f"{one}:{self.port}".lower() for one in names if one} | bare)


def find_place(address: str | None = None, port: str | None = None) -> Place:
    """Return where the App can be served.

    Parameters
    ----------
    address : str, optional
        A name or an IPv4 address of this machine; 127.0.0.1 by default, whatever FiftyOne is configured for.
    port : str, optional
        A number, 0 for any that is free. The default is FiftyOne's: 5151, or what its configuration says.

    Raises
    ------
    UsageError
        The port is not a number of a port.
    ReviewError
        Something answers at the port, or this machine has no such address.
    """
    configured = os.environ.get(PORT_VARIABLE) or configuration().get("default_app_port") or DEFAULT_PORT
    number = _number(str(configured), PORT_VARIABLE) if port is None else _number(port, "--port")
    place = Place(_resolved(LOOPBACK if address is None else address), number, address or "")
    _open(place).close()
    return place


def serve(
    dataset: Any,
    place: Place,
    *,
    edits: Edits | None = None,
    at_work: Callable[[str, str], None] = lambda _address, _once: None,
) -> None:
    """Serve the App on a dataset until Ctrl-C, or until the process is asked to terminate.

    Parameters
    ----------
    dataset : fiftyone.Dataset
        Under review: the only one that is shown.
    place : Place
        From `find_place`.
    edits : Edits, optional
        Hears of every edit of drawn boxes; without it there are none.
    at_work : callable
        Called once the server listens, with the App's address, and with one that opens it a single time: for the
        command line of a browser, which other users of the machine can read. Both hold the token: show the first to
        the reviewer, and write neither anywhere.

    Raises
    ------
    ReviewError
        Another program was faster at the port.
    """
    with _open(place) as listener:
        there = Place(place.address, listener.getsockname()[1], place.name)
        app = _fiftyone_app(there.port)
        guard = Guard(
            app,
            hosts=there.hosts,
            port=there.port,
            reviewed=Reviewed(dataset.name, str(dataset._doc.id), _first_view(dataset)),
            files=lambda: real_files(dataset),
            edits=edits,
            judge=partial(answered, dataset),
        )
        name = place.name if place.address != _EVERY else ""
        shown = f"http://{name or _reached(place.address)}:{there.port}/?{TOKEN}="
        asyncio.run(_run(guard, listener, lambda: at_work(f"{shown}{guard.token}", f"{shown}{guard.ticket}")))


def _fiftyone_app(port: int) -> Any:
    """Return FiftyOne's application, set up as its own server does."""
    os.environ["FIFTYONE_SERVER"] = "1"
    import fiftyone

    # The variable alone speaks to a FiftyOne that is not imported yet. Other processes write to this database too.
    fiftyone.config.singleton_cache = False
    from fiftyone.server.app import app
    from fiftyone.server.events import set_port

    set_port(port)
    app.debug = False
    restrict_stages(fiftyone)
    _load_once(fiftyone)
    return app


def _first_view(dataset: Any) -> str:
    """Return the saved view of what waits for this server's reviewer, as an address names it; ``""`` without one."""
    from fiftyone.core.utils import to_slug

    reviewer = reviewer_here()
    return str(to_slug(offer_own_view(dataset, reviewer))) if reviewer else ""


def _load_once(fiftyone: Any) -> None:
    """Let FiftyOne's views of a dataset share what was loaded of it, until what is stored of the dataset is another.

    It loads a dataset for every question of a page, which is most of the work of an answer. What is stored is compared
    whole: another process may change it at any moment.
    """
    from fiftyone.server import view

    make, datasets = view.get_view, fiftyone.core.odm.get_db_conn().datasets
    # As FiftyOne loads a dataset, and without the moment of the last load, which each load writes.
    parts = dict.fromkeys(("_media_sources", "_media_source_layouts", "last_loaded_at"), 0)
    kept: tuple[Any, Any] = (None, None)

    @wraps(make)
    def get_view(dataset: Any, *given: Any, **more: Any) -> Any:
        nonlocal kept
        # What a saved view holds is stored elsewhere.
        if isinstance(dataset, str) and not more.get("view_name"):
            found, stored = kept, datasets.find_one({"name": dataset}, parts)
            if stored is not None and found[0] != stored:
                kept = found = stored, fiftyone.load_dataset(dataset)
            dataset = dataset if stored is None else found[1]
        return make(dataset, *given, **more)

    view.get_view = get_view


def _tell_but_the_end(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what went wrong in the background, unless it is a page's connection that is cut at the end."""
    if not isinstance(context.get("exception"), asyncio.CancelledError):
        loop.default_exception_handler(context)


async def _run(guard: Any, listener: socket.socket, at_work: Callable[[], None]) -> None:
    import hypercorn.asyncio
    import hypercorn.config

    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        # A shell without job control starts background programs with Ctrl-C ignored: it ends something else then.
        if signal.getsignal(one) != signal.SIG_IGN:
            signal.signal(one, lambda _number, _frame: loop.call_soon_threadsafe(ended.set))
    loop.set_exception_handler(_tell_but_the_end)
    at_work()
    config = hypercorn.config.Config()
    # Its own copy: the server closes what it is given.
    config.bind = [f"fd://{listener.dup().detach()}"]
    config.loglevel = "WARNING"
    config.include_server_header = False
    config.graceful_timeout = _FAREWELL
    config.shutdown_timeout = _FAREWELL
    await hypercorn.asyncio.serve(guard, config, shutdown_trigger=ended.wait)


def _number(text: str, where: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else -1
    if not 0 <= number <= _LARGEST_PORT:
        expected = f"a number up to {_LARGEST_PORT}; {ANY} takes a free one"
        raise UsageError("Not a port", where=f"{where} {ascii(text)[1:-1][:40]}", expected=expected)
    return number


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


def _open(place: Place) -> socket.socket:
    """Return a socket that listens at a place where nobody answered.

    Raises
    ------
    ReviewError
        Something listens there, or this machine has no such address.
    """
    one = socket.socket()
    if os.name != "nt":
        # A port that somebody just left is free.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        with socket.socket() as probe:
            # Another machine may answer at its address.
            probe.bind((place.address, 0))
        # Not every system minds that somebody listens at all addresses already.
        if place.port and (who := _listener(place)):
            raise _taken(place, who)
        one.bind((place.address, place.port))
        one.listen(_WAITING)
    except OSError as error:
        one.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _no_address(place.name) from None
        raise _taken(place, "nobody answers, but this user may not listen there") from None
    except ReviewError:
        one.close()
        raise
    return one


def _reached(address: str) -> str:
    return LOOPBACK if address == _EVERY else address


def _taken(place: Place, who: str) -> ReviewError:
    port = place.port
    hint = f"--port {ANY} takes a free one; or end what listens at {port} (ss -ltnp, lsof -i :{port})"
    return ReviewError(f"Port {port} is not free", where=f"{place.address}:{port}", found=who, hint=hint)


def _listener(place: Place) -> str:
    """Return who listens at a port, as far as an answer within two seconds shows; ``""`` where nobody does."""
    try:
        one = socket.create_connection((_reached(place.address), place.port), timeout=_PATIENCE)
    except OSError:
        return ""
    answer, deadline = b"", time.monotonic() + _PATIENCE
    with one, suppress(OSError):
        one.sendall(f"GET /fiftyone HTTP/1.0\r\nHost: {LOOPBACK}:{place.port}\r\n\r\n".encode())
        # A foreign program may answer without end, or one byte a second.
        while len(answer) < _LARGEST_ANSWER and (left := deadline - time.monotonic()) > 0:
            one.settimeout(left)
            if not (more := one.recv(_LARGEST_ANSWER)):
                break
            answer += more
    if KNOWN_BY.encode() in answer:
        return "the App of another review"
    is_fiftyone = b"200" in answer[:20] and b'"version"' in answer
    return "a FiftyOne App outside of curation" if is_fiftyone else "another program"
