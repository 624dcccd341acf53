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
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
        error = error.__cause__ or error.__context__
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
    if isinstance(error, ValueError) and not _is_network(error):
        return PublishError(f"The hub refused {doing}", where=where, found=_message(error))
    if isinstance(error, OSError) and error.filename:
        return None  # A file of this machine: the command line reports it.
    if isinstance(error, OSError) or _is_network(error):
        return PublishError(
            f"The hub cannot be reached, or broke off, while {doing}",
            where=where,
            found=_message(error),
            hint="try again: nothing is published before it is whole, and what is there is not pushed twice",
        )
    if type(error).__module__.partition(".")[0] == "huggingface_hub":
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


def _is_network(error: BaseException | None) -> bool:
    while error is not None:
        if type(error).__module__.partition(".")[0] in _NETWORK:
            return True
        error = error.__cause__ or error.__context__
    return False


def _message(error: BaseException) -> str:
    text = getattr(error, "server_message", None) or _innermost(error)
    return " ".join(without_secrets(str(text)).split())[:300]


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
