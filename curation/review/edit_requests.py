"""An edit of drawn boxes as the App sends it, and what may stand between it and the database.

In Annotate mode the App saves each change by one HTTP request; FiftyOne calls no code of ours for it. So the server's
guard (`curation.review.guard`) reads the request, asks an `Edits` before it passes the request on, and tells it how
FiftyOne answered: a log that is written first can be complete and in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from curation.review.dataset import MISSING

_WHOLE = re.compile(r"/dataset/(?P<dataset>[^/]+)/sample/(?P<sample>[0-9a-f]{24})")
_LABEL = re.compile(_WHOLE.pattern + r"/(?P<field>[^/]+)/(?P<label>[^/]+)")
_PATCH_TYPE = "application/json-patch+json"
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
PARTS_OF_A_BOX = ("_cls", "_id", "bounding_box", "confidence", "id", "index", "label", "tags")
"""What a drawn box may hold: nothing that names a file, as a mask may, and nothing that FiftyOne stores unchecked."""
# FiftyOne follows a place through attributes of Python objects, `__globals__` included.
_IN_A_BOX = rf"(/({'|'.join(PARTS_OF_A_BOX)})|/(bounding_box|tags)/[^/]+)?"
_PLACE_IN_A_BOX = re.compile(_IN_A_BOX)
_PLACE = re.compile(rf"/{MISSING}(/detections(/(-|[0-9]+){_IN_A_BOX})?)?")
_MOST_OPERATIONS = 1000


@dataclass(frozen=True, slots=True)
class EditRequest:
    """One edit of the field `MISSING` of one sample, before FiftyOne saw it.

    Attributes
    ----------
    sample : str
        Id of the sample.
    label : str
        Id of the one box that `operations` speak of, their paths being within it; ``""`` where they speak of the
        sample, their paths beginning with ``/missing``.
    version : str
        What the App last saw of the sample (``If-Match``, base64 of its time of change), ``""`` where it says nothing.
        FiftyOne refuses an edit of what has changed since with status 412.
    operations : tuple of mappings
        JSON Patch (RFC 6902): ``op``, ``path``, ``value`` or ``from``.
    """

    sample: str
    label: str
    version: str
    operations: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not passed on: a sentence for the reviewer, and the HTTP status that it bears."""

    what: str
    hint: str = ""
    status: int = 403


_ELSEWHERE = Refusal(f"Only boxes of the field {MISSING!r} can be changed here", "verdicts are given by key or button")


class Edits(Protocol):
    """Who hears of every edit. Both calls are made outside the event loop, and never two at a time."""

    def begin(self, request: EditRequest) -> Refusal | int:
        """Take note of an edit before FiftyOne sees it; its number, or why it may not be made."""

    def end(self, number: int, status: int, body: bytes) -> None:
        """Take note of FiftyOne's answer: the edit is in the database where the status is below 300.

        Without this call nobody knows: the server ended in between. `body` is FiftyOne's answer, the sample as JSON
        where it went well.
        """


def read_edit(path: str, query: str, headers: Mapping[str, str], body: bytes, *, dataset: str) -> EditRequest | Refusal:
    """Return the edit that a PATCH request asks for, or why it may not pass.

    Parameters
    ----------
    path, query : str
        Decoded path of the request, and what follows its question mark.
    headers : mapping
        By lower-case name.
    dataset : str
        Id of the dataset under review.
    """
    found = _LABEL.fullmatch(path) or _WHOLE.fullmatch(path)
    if found is None or found["dataset"] != dataset:
        return Refusal("Not an image of this review")
    parts = found.groupdict()
    if query or parts.get("field", f"{MISSING}.detections") != f"{MISSING}.detections":
        return _ELSEWHERE
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _PATCH_TYPE:
        return Refusal("An edit is a JSON Patch", f"Content-Type: {_PATCH_TYPE}", 415)
    try:
        operations = json.loads(body)
    except (ValueError, RecursionError):
        operations = None
    if not isinstance(operations, list) or not 0 < len(operations) <= _MOST_OPERATIONS:
        return Refusal("The edit is not a list of JSON Patch operations", status=400)
    label = parts.get("label", "")
    place = _PLACE_IN_A_BOX if label else _PLACE
    if not all(_is_operation(one, place) for one in operations):
        return _ELSEWHERE
    return EditRequest(parts["sample"], label, headers.get("if-match", "").strip('"'), tuple(operations))


def _is_operation(one: Any, place: re.Pattern[str]) -> bool:
    """Return whether this is an operation, and each place that it names one of a drawn box."""
    if not isinstance(one, dict) or one.get("op") not in _OPERATIONS or "path" not in one:
        return False
    return all(isinstance(one[name], str) and place.fullmatch(one[name]) for name in ("path", "from") if name in one)
