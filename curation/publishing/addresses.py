"""Where photos lie on the web, as sources state it and only after a check: the column ``image_url`` of a publication.

A hub shows the photos of such a column by their address, and no photo is passed on. What a source states is hostile
until it was checked: a password in an address, a key in its query, or the name of an inner host are not published.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from curation.manifest.manifest import Manifest
from curation.manifest.views import locate_images
from curation.sources.photos import SUFFIXES
from curation.sources.source import Source, Texts
from curation.text_table import printable

_LONGEST = 2048
# Printable ASCII but for signs that no address has and that mean something to HTML or Markdown.
_PLAIN = re.compile(r"[!-~]+")
_SIGNS = re.compile(r"[\"<>\\^`{|}]")
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z](?:[a-z0-9-]*[a-z0-9])?")
_OWN = re.compile(r"(?:.*\.)?(?:localhost|local|localdomain|internal|intranet|lan|home|corp|private|test|invalid|arpa)")


def refusal(address: str) -> str:
    """Return why an address is not published, ``""`` where it is.

    Examples
    --------
    >>> refusal("http://images.cocodataset.org/val2017/000000000139.jpg")
    ''
    >>> refusal("https://me:secret@example.org/1.jpg")
    'a user or a password in it'
    >>> refusal("file:///home/me/1.jpg")
    'neither http nor https'
    """
    if len(address) > _LONGEST:
        return f"more than {_LONGEST:,} characters"
    if not _PLAIN.fullmatch(address) or _SIGNS.search(address):
        return "characters that no address has"
    if not address.lower().startswith(("http://", "https://")):
        return "neither http nor https"
    try:
        parts = urlsplit(address)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "no host"
    if "@" in parts.netloc:
        return "a user or a password in it"
    if parts.query or parts.fragment or address.endswith(("?", "#")):
        return "a query or a fragment, which may hold a key"
    if not _HOST.fullmatch(host) or _OWN.fullmatch(host):
        return "a host that has no public name"
    if not parts.path.rpartition("/")[2].lower().endswith(SUFFIXES):
        return "no file name of a picture"
    return ""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of one source's images that are published, and what was refused.

    Attributes
    ----------
    values : ndarray of object, shape (n,)
        By the position of an image in the source; None where there is none.
    given : int
        Addresses that the source states of published images.
    refused : dict of str to int
        By reason.
    first : str
        The first image of which one is refused, ``""`` for none.
    """

    values: Texts
    given: int
    refused: Mapping[str, int]
    first: str

    @property
    def usable(self) -> int:
        """How many addresses are published."""
        return self.given - sum(self.refused.values())

    def told(self) -> str:
        """Return in words what was refused, without the addresses themselves; ``""`` where nothing was."""
        if not self.refused:
            return ""
        reasons = ", ".join(f"{count:,} with {reason}" for reason, count in self.refused.items())
        total = sum(self.refused.values())
        return f"{total:,} of {self.given:,} addresses are not published: {reasons} (first: {printable(self.first)})"


def published_addresses(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]
) -> dict[str, Addresses]:
    """Return the addresses of each source that states any, of the images of some parts, all of whose sources are given.

    A source has some only where it was opened with them (see `curation.sources.coerce.open_slots`).
    """
    wanted = {
        name: np.zeros(len(source.images), np.bool_)
        for name, source in sources.items()
        if source.images.addresses is not None
    }
    if not wanted:
        return {}
    for part in parts:
        located = locate_images(manifest, part, sources)
        for number, name in enumerate(manifest.part(part).sources):
            if name in wanted:
                wanted[name][located.position[located.source == number]] = True
    found = {name: _checked(sources[name], np.flatnonzero(mask).tolist()) for name, mask in wanted.items()}
    return {name: one for name, one in found.items() if one.given}


def _checked(source: Source, positions: Sequence[int]) -> Addresses:
    stated: Any = source.images.addresses
    values = np.full(len(source.images), None, object)
    refused: Counter[str] = Counter()
    given, first = 0, ""
    for place in positions:
        address = stated[place]
        if not address:
            continue
        given += 1
        if reason := refusal(address):
            refused[reason] += 1
            first = first or f"{source.namespace}:{source.images.native[place]}"
        else:
            values[place] = address
    return Addresses(values, given, dict(refused.most_common()), first)
