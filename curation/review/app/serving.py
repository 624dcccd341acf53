"""The server of a review: at 127.0.0.1, which only this machine reaches, at a free port.

It runs FiftyOne's own application behind `curation.review.app.guard`, in this process: one server per reviewer. It
opens its port itself, so a review never shows the pages of another program.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from curation.core.errors import ReviewError, UsageError
from curation.core.fiftyone_database import without_address
from curation.review.app.app_requests import Reviewed, restrict_stages
from curation.review.app.guard import TOKEN, Guard, real_files, redirection
from curation.review.app.live_review import answered, offer_own_view, reviewer_here

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 5151
ANY = "0"
"""Port number that stands for any free port."""

_PATIENCE = 2.0
_LARGEST_PORT = 65535
_PORT_OF_HTTP = 80
_WAITING = 100
_FAREWELL = 2.0
"""Seconds that open connections get at the end: each open page holds one."""


def find_port(port: str | None = None) -> int:
    """Return a port for the App, 0 for any free one.

    Parameters
    ----------
    port : str, optional
        A number; 0 for any free port. The default is FiftyOne's: 5151.

    Raises
    ------
    UsageError
        The text is not a port number.
    ReviewError
        Another program answers at the port.
    """
    text = str(DEFAULT_PORT) if port is None else port
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else -1
    if not 0 <= number <= _LARGEST_PORT:
        expected = f"a number up to {_LARGEST_PORT}; {ANY} takes a free one"
        raise UsageError("Not a port number", where=f"--port {ascii(text)[1:-1][:40]}", expected=expected)
    _open(number).close()
    return number


def serve(
    dataset: Any, port: int, *, at_work: Callable[[str], None] = lambda _address: None, browser: bool = False
) -> None:
    """Serve the App on a dataset until Ctrl-C, or until the process is asked to terminate.

    Parameters
    ----------
    dataset : fiftyone.Dataset
        The dataset under review, the only one that is shown.
    port : int
        A port from `find_port`.
    at_work : callable
        Called with the App's address once the server listens. The address contains the token: show it to the reviewer,
        and do not store it.
    browser : bool
        Open the App in the browser of this machine. Other users can read its command line. So it names a page that only
        this user can read, which leads to an address that opens the App once.

    Raises
    ------
    ReviewError
        Another program has taken the port meanwhile.
    """
    from fiftyone.core.utils import to_slug

    reviewer = reviewer_here()
    first = str(to_slug(offer_own_view(dataset, reviewer))) if reviewer else ""
    with _open(port) as listener:
        port = listener.getsockname()[1]
        hosts = [LOOPBACK, "localhost"] if port == _PORT_OF_HTTP else []
        guard = Guard(
            _fiftyone_app(port),
            hosts=[f"{LOOPBACK}:{port}", f"localhost:{port}", *hosts],
            port=port,
            reviewed=Reviewed(dataset.name, str(dataset._doc.id), first),
            files=lambda: real_files(dataset),
            judge=partial(answered, dataset),
        )
        address = f"http://{LOOPBACK}:{port}/?{TOKEN}="
        with _redirect_page(f"{address}{guard.ticket}") if browser else nullcontext() as page, without_address():

            def begin() -> None:
                at_work(f"{address}{guard.token}")
                if page is not None:
                    # A text browser stays in the foreground and waits for the server.
                    threading.Thread(target=webbrowser.open, args=(page.as_uri(), 2), daemon=True).start()

            asyncio.run(_run(guard, listener, begin))


@contextmanager
def _redirect_page(address: str) -> Iterator[Path]:
    """Yield a page that leads to an address, in a folder that only this user can enter, as Jupyter does."""
    with TemporaryDirectory(prefix="curation-review-", ignore_cleanup_errors=True) as folder:
        page = Path(folder, "review.html")
        page.touch(0o600, exist_ok=False)
        page.write_text(redirection(address), encoding="ascii")
        yield page


def _fiftyone_app(port: int) -> Any:
    """Return FiftyOne's application, set up as its own server does."""
    os.environ["FIFTYONE_SERVER"] = "1"
    import fiftyone

    # FiftyOne reads the variable only at its import. Other processes write to this database too.
    fiftyone.config.singleton_cache = False
    from fiftyone.server.app import app
    from fiftyone.server.events import set_port

    set_port(port)
    app.debug = False
    restrict_stages(fiftyone)
    _load_once(fiftyone)
    return app


def _load_once(fiftyone: Any) -> None:
    """Let FiftyOne's views share a loaded dataset until its stored record changes.

    FiftyOne loads the dataset for every request, which takes most of the time of an answer. The whole stored record is
    compared, because another process may change it at any moment.
    """
    from fiftyone.server import view

    make, datasets = view.get_view, fiftyone.core.odm.get_db_conn().datasets
    # As FiftyOne loads a dataset, and without the moment of the last load, which each load writes.
    parts = dict.fromkeys(("_media_sources", "_media_source_layouts", "last_loaded_at"), 0)
    latest: tuple[Any, Any] = (None, None)

    @wraps(make)
    def get_view(dataset: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal latest
        # Saved views are stored elsewhere.
        if isinstance(dataset, str) and not more.get("view_name"):
            loaded, stored = latest, datasets.find_one({"name": dataset}, parts)
            if stored is not None and loaded[0] != stored:
                latest = loaded = stored, fiftyone.load_dataset(dataset)
            dataset = dataset if stored is None else loaded[1]
        return make(dataset, *arguments, **more)

    view.get_view = get_view


async def _run(guard: Any, listener: socket.socket, at_work: Callable[[], None]) -> None:
    import hypercorn.asyncio
    import hypercorn.config

    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell without job control starts background programs with Ctrl-C ignored; this must stay so.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(ended.set))

    def report(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # At the end, connections of pages are cut.
        if not isinstance(context.get("exception"), asyncio.CancelledError):
            loop.default_exception_handler(context)

    loop.set_exception_handler(report)
    at_work()
    config = hypercorn.config.Config()
    # A copy, because the server closes its socket.
    config.bind = [f"fd://{listener.dup().detach()}"]
    config.loglevel = "WARNING"
    config.include_server_header = False
    config.graceful_timeout = _FAREWELL
    config.shutdown_timeout = _FAREWELL
    await hypercorn.asyncio.serve(guard, config, shutdown_trigger=ended.wait)


def _open(port: int) -> socket.socket:
    """Return a socket that listens at a free port of this machine; else raise `ReviewError`."""
    # Some systems allow a second listener at a port of another program that listens at all addresses.
    if port:
        with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=_PATIENCE):
            raise _port_error(port, "another program answers")
    listener = socket.socket()
    if os.name != "nt":
        # Accept a port that was just closed.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(_WAITING)
    except OSError:
        listener.close()
        raise _port_error(port, "no program answers, but this user may not listen there") from None
    return listener


def _port_error(port: int, reason: str) -> ReviewError:
    hint = f"--port {ANY} takes a free one; or end what listens at {port} (ss -ltnp, lsof -i :{port})"
    return ReviewError(f"Port {port} is not free", where=f"{LOOPBACK}:{port}", found=reason, hint=hint)
