"""Every protocol of this package, by name."""

from __future__ import annotations

import difflib

from curation.errors import UsageError
from curation.protocols import elephant, findmeifyoucan, imagenet, opendet, osod3, owod
from curation.protocols.protocol import Protocol

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        elephant.PROTOCOL,
        owod.PROTOCOL,
        opendet.PROTOCOL,
        imagenet.PROTOCOL,
        findmeifyoucan.PROTOCOL,
        osod3.PROTOCOL,
    )
}


def find_protocol(name: str) -> Protocol:
    """Return the protocol of this name; an unknown one is a `UsageError` with the nearest names."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    near = difflib.get_close_matches(name, PROTOCOLS, cutoff=0.5)
    raise UsageError(
        "There is no such protocol",
        where=name[:200],
        expected=", ".join(PROTOCOLS),
        hint=f"did you mean {near[0]}?" if near else "curation list",
    )
