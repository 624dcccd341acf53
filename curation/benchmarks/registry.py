"""Every protocol of this package, by name."""

from __future__ import annotations

import difflib

from curation.benchmarks.elephant import lists as elephant
from curation.benchmarks.findmeifyoucan import lists as findmeifyoucan
from curation.benchmarks.imagenet import lists as imagenet
from curation.benchmarks.opendet import lists as opendet
from curation.benchmarks.osod3 import lists as osod3
from curation.benchmarks.owod import lists as owod
from curation.benchmarks.protocol import Protocol
from curation.errors import UsageError

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
