"""The guard in front of FiftyOne's server: which requests pass, and which files of the disk are sent.

FiftyOne's server has no password, answers under any host name, accepts commands from any page in the same browser, and
sends any file of the disk. The guard passes a request if its ``Host`` is this server, it comes from no other page, it
has the token of this start, and a review needs it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from curation.review.app.app_requests import (
    JUDGE,
    MEDIA,
    Refusal,
    Reviewed,
    parameters,
    refuse,
    refuse_body,
    refuse_values,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Judge = Callable[[Mapping[str, Any]], Mapping[str, Any]]

TOKEN = "token"  # noqa: S105  (the name of a parameter)
KNOWN_BY = "This is a curation review"
"""The beginning of every refusal."""

_LARGEST_BODY = 16 << 20
_PAGE = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; frame-ancestors 'none'; form-action 'self'; "
    "base-uri 'self'"
)
_FILE = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Without a referrer, browsers send "Origin: null" to the page's own server.
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_STATUS_OF_NONE = 421
_log = logging.getLogger(__name__)


class Guard:
    """An ASGI application that passes only the reviewer's requests, and only those that a review needs.

    Parameters
    ----------
    app : ASGI application
        FiftyOne's application.
    hosts : collection of str
        Accepted values of the header ``Host``, with their port.
    port : int
        Part of the cookie's name: browsers do not separate cookies by port.
    reviewed : Reviewed
        The dataset.
    files : callable
        Returns the real paths of all files that `/media` may send; called once, at the first request of a file.
    judge : callable, optional
        Answers the request of a key, outside the event loop; without it, decisions are refused.
    """

    def __init__(
        self,
        app: App,
        *,
        hosts: Collection[str],
        port: int,
        reviewed: Reviewed,
        files: Callable[[], Collection[str]],
        judge: Judge | None = None,
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self.ticket = secrets.token_urlsafe(32)
        """A token that opens the App once, for the page that the browser of this machine opens first."""
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in hosts)
        self._cookie = f"curation_review_{port}"
        self._reviewed = reviewed
        self._find_files = files
        self._files: frozenset[str] | None = None
        self._judge = judge
        self._finding = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _Answered(scope, send))
        else:
            # FiftyOne's page needs no websocket.
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: _Answered) -> None:
        headers = _headers(scope)
        refusal = self._stranger(scope, headers)
        if refusal is None and TOKEN in parameters(scope["query_string"]) and scope["method"] in ("GET", "HEAD"):
            is_page = headers.get("sec-fetch-site") == "cross-site"
            await send.redirect(_without_token(scope, self._reviewed), f"{self._cookie}={self.token}", is_page=is_page)
            return
        if refusal is None:
            refusal = refuse(scope["method"], scope["path"], self._reviewed)
        if refusal is None:
            query_values = parameters(scope["query_string"]).items()
            refusal = refuse_values(
                [{name: value} for name, values in query_values for value in values], self._reviewed
            )
        if refusal is not None:
            await send.refuse(refusal)
            return
        if scope["path"] == "/":
            await send.redirect(_page(self._reviewed))
            return
        if scope["path"] == MEDIA:
            refusal = await self._foreign_file(scope)
        body = b""
        if refusal is None and scope["method"] == "POST":
            content = await _body(receive)
            if isinstance(content, Refusal):
                refusal = content
            else:
                refusal, body = refuse_body(scope["path"], content, self._reviewed), content
                receive = _again(body, receive)
        if refusal is not None:
            await send.refuse(refusal)
            return
        if scope["path"] == JUDGE:
            await self._judged(body, send)
            return
        try:
            await self._app(scope, receive, send)
        except Exception:
            # The terminal shows the error, not the browser.
            _log.exception("The App's server failed at %s %s", scope["method"], scope["path"])
            await send.fail()

    async def _judged(self, body: bytes, send: _Answered) -> None:
        """Answer a key directly: an operator of FiftyOne would load the dataset first."""
        if self._judge is None:
            await send.refuse(Refusal("This server takes no decisions"))
            return
        try:
            answer = await asyncio.to_thread(self._judge, json.loads(body or b"{}"))
        except Exception:
            _log.exception("A decision could not be recorded")
            await send.fail()
            return
        await send.say(200, json.dumps(answer).encode(), {"content-type": "application/json"})

    def _stranger(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        """Return why the sender of a request is refused, or None."""
        if headers.get("host") not in self._hosts:
            here = ", ".join(sorted(self._hosts))
            return Refusal(
                f"Wrong host: this server is {here}", "a tunnel has the same port at both ends", _STATUS_OF_NONE
            )
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            return Refusal("Requests from other pages are refused")
        # Images and scripts of another page have no Origin; a followed link may come from anywhere.
        is_link = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_link:
            return Refusal("Requests from other pages are refused")
        tokens = parameters(scope["query_string"]).get(TOKEN, [])
        cookies = (cookie.strip().partition("=") for cookie in headers.get("cookie", "").split(";"))
        tokens += [value for name, _, value in cookies if name == self._cookie]
        if any(_same(token, self.token) for token in tokens):
            return None
        if self.ticket and any(_same(ticket, self.ticket) for ticket in tokens):
            self.ticket = ""
            return None
        hint = "open the address that `curation review start` printed, with all that follows ?token="
        return Refusal("The address has no token, or the token of an earlier start", hint, 401)

    async def _foreign_file(self, scope: Scope) -> Refusal | None:
        """Return why a file is refused, or None: its real path must be that of a file of the dataset."""
        paths = parameters(scope["query_string"]).get("filepath", [])
        async with self._finding:
            if self._files is None:
                self._files = frozenset(await asyncio.to_thread(self._find_files))
        if len(paths) == 1 and await asyncio.to_thread(_real, paths[0]) in self._files:
            return None
        return Refusal("Only files of the dataset under review are handed out")


class _Answered:
    """Sends an answer with the guard's headers; an internal error is sent without its details."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._is_read = scope["method"] in ("GET", "HEAD")
        self._is_head = scope["method"] == "HEAD"
        self._policy = _FILE if scope["path"] == MEDIA else _PAGE
        self._has_begun = self._is_over = False
        self.plain = send

    async def __call__(self, message: Message) -> None:
        """Pass on what the application sends."""
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            if message["status"] >= 500:
                await self.fail()
                return
            self._has_begun = True
            ours = {**_HEADERS, "content-security-policy": self._policy}
            others = [(name, value) for name, value in message["headers"] if name.decode("latin-1").lower() not in ours]
            message = {**message, "headers": [*others, *((k.encode(), v.encode()) for k, v in ours.items())]}
        await self.plain(message)

    async def fail(self) -> None:
        """Send an error without details; an answer that has begun stays truncated."""
        if not self._has_begun:
            await self.refuse(Refusal("The server failed", "the terminal of the review says more", 500))
        self._is_over = True

    async def refuse(self, refusal: Refusal) -> None:
        """Send why a request is refused: text to a reader, JSON to the App."""
        message = f"{KNOWN_BY}. {refusal.what}{f' ({refusal.hint})' if refusal.hint else ''}."
        kind, text = "text/plain; charset=utf-8", f"{message}\n"
        if not self._is_read:
            kind, text = "application/json", json.dumps({"error": {"message": message}, "message": message})
        await self.say(refusal.status, text.encode(), {"content-type": kind})

    async def redirect(self, address: str, cookie: str = "", *, is_page: bool = False) -> None:
        """Redirect the browser to an address of this server, with a cookie that no script and no other page can use.

        A browser that comes from another page, such as a local file, gets a page that redirects it: browsers do not
        send the cookie with a redirected request of another page.
        """
        headers = {"location": address}
        if cookie:
            headers["set-cookie"] = f"{cookie}; Path=/; HttpOnly; SameSite=Strict"
        if is_page:
            del headers["location"]
            headers["content-type"] = "text/html; charset=utf-8"
        await self.say(200 if is_page else 303, redirection(address).encode() if is_page else b"", headers)

    async def say(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a complete answer of the guard."""
        self._has_begun = self._is_over = True
        all_headers = {**_HEADERS, "content-security-policy": self._policy, "cache-control": "no-store", **headers}
        all_headers["content-length"] = str(len(body))
        start = {"type": "http.response.start", "status": status}
        await self.plain({**start, "headers": [(k.encode(), v.encode("latin-1")) for k, v in all_headers.items()]})
        await self.plain({"type": "http.response.body", "body": b"" if self._is_head else body})


def redirection(address: str) -> str:
    """Return a page that leads to an address."""
    target = escape(address, quote=True)
    return (
        '<!DOCTYPE html><html><head><meta charset="utf-8"><title>Review</title>'
        f'<meta http-equiv="refresh" content="0;url={target}"></head>'
        f'<body><a href="{target}">Open the review</a></body></html>\n'
    )


def real_files(dataset: Any) -> frozenset[str]:
    """Return the real paths of all files of a dataset: its photos, and fields whose name ends in ``path``."""
    path_fields = [name for name in dataset.get_field_schema(flat=True) if name.endswith("path")]
    paths: set[Any] = set()
    for name in path_fields:
        # Boxes may name files, but few do.
        paths.update(dataset.distinct(name) if "." in name else dataset.values(name))
    return frozenset(_real(value) for value in paths if isinstance(value, str))


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return ""


def _same(token: str, other: str) -> bool:
    return hmac.compare_digest(token.encode(errors="replace"), other.encode())


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers by name; repeated headers are joined to a value that is not valid."""
    by_name: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        by_name[key] = f"{by_name[key]}; {text}" if key in by_name else text
    return by_name


def _page(reviewed: Reviewed) -> str:
    view = f"?view={quote(reviewed.view, safe='')}" if reviewed.view else ""
    return f"/datasets/{quote(reviewed.name, safe='')}{view}"


def _without_token(scope: Scope, reviewed: Reviewed) -> str:
    if scope["path"] == "/":
        return _page(reviewed)
    rest = {name: values for name, values in parameters(scope["query_string"]).items() if name != TOKEN}
    # A path that begins with two slashes leads to another host.
    path = "/" + quote(scope["path"].lstrip("/\\"))
    return f"{path}?{urlencode(rest, doseq=True)}" if rest else path


async def _body(receive: Receive) -> bytes | Refusal:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return Refusal("Incomplete request", status=400)
        body += message.get("body", b"")
        if len(body) > _LARGEST_BODY:
            return Refusal(f"The request is longer than {_LARGEST_BODY:,} bytes", status=413)
        if not message.get("more_body"):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that repeats a body that was read already, and then continues."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message
