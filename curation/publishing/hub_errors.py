"""What a hub's client raises, told as one `PublishError` that never shows a token."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from curation.errors import CurationError, PublishError

_NETWORK = {"httpcore", "httpcore2", "httpx", "httpx2", "requests", "urllib3", "hf_xet"}
_LOGIN = "set HF_TOKEN, or log in: hf auth login"
_SHORTEST_TOKEN = 8


@contextmanager
def telling(doing: str, place: str) -> Iterator[None]:
    """Turn what the client raises into a `PublishError` that names what was done and where.

    Errors of this program pass through, and so does what neither the hub nor the network caused.
    """
    try:
        yield
    except CurationError:
        raise
    except Exception as error:
        told = _told(error, doing, place)
        if told is None:
            raise
        raise told from None


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status behind an error, None where there is none."""
    for one in _chain(error):
        status = getattr(getattr(one, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
    return None


def shown_endpoint(endpoint: str) -> str:
    """Return an endpoint without a user, password or query that it may hold."""
    try:
        parts = urlsplit(endpoint)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the endpoint of HF_ENDPOINT"
    return f"{parts.scheme}://{parts.hostname or ''}{port}"


def without_secrets(text: str) -> str:
    """Return a message without the token, anything that looks like one, and the queries of addresses."""
    secrets = [os.environ.get(name, "") for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")]
    for secret in [one for one in (*secrets, _saved_token()) if len(one) >= _SHORTEST_TOKEN]:
        text = text.replace(secret, "***")
    text = re.sub(r"\bhf_[A-Za-z0-9_]{4,}|[Bb]earer\s+\S+", "***", text)
    text = re.sub(r"(https?://)[^\s/@]*@", r"\1", text)
    return re.sub(r"(https?://[^\s?'\"]*)\?[^\s'\"]*", r"\1", text)


def _saved_token() -> str:
    try:
        from huggingface_hub import get_token
    except ImportError:
        return ""
    return get_token() or ""


def _told(error: Exception, doing: str, where: str) -> PublishError | None:
    status = status_of(error)
    if status is not None:
        return _refused(status, error, doing, where)
    homes = {type(one).__module__.partition(".")[0] for one in _chain(error)}
    broken = [one for one in _chain(error) if isinstance(one, OSError)]
    if any(one.filename for one in broken):
        return None  # A file of this machine: the command line reports it.
    if broken or homes & _NETWORK:
        return PublishError(
            f"The hub cannot be reached, or broke off, while {doing}",
            where=where,
            found=_message(error),
            hint="try again: nothing is published before it is whole, and what is there is not pushed twice",
        )
    if isinstance(error, ValueError):
        return PublishError(f"The hub refused {doing}", where=where, found=_message(error))
    if "huggingface_hub" in homes:
        return PublishError(f"The client of the hub gave up {doing}", where=where, found=_message(error))
    return None


def _refused(status: int, error: Exception, doing: str, where: str) -> PublishError:
    hints = {
        401: ("The hub does not accept the token", f"{_LOGIN}; an expired token needs a new one"),
        403: ("The token may not do this", "use a token that may write to this organization"),
        404: ("The hub has nothing here, or does not show it to this token", f"check the name; {_LOGIN}"),
        409: ("The hub reports a conflict", "try again"),
        412: ("Somebody else pushed at the same moment", "try again"),
        413: ("The hub finds it too large", None),
        429: ("The hub asks to wait: too many requests", "try again later"),
    }
    what, hint = hints.get(status, ("The hub failed", "try again later"))
    return PublishError(
        f"{what} ({doing})", where=where, found=f"HTTP {status}: {_message(error)}", hint=hint
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the causes behind it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _message(error: BaseException) -> str:
    deepest = list(_chain(error))[-1]
    text = getattr(error, "server_message", None) or str(deepest) or type(deepest).__name__
    return " ".join(without_secrets(str(text)).split())[:300]
