"""A bill of materials of an installation: ``python -m tests.sbom --out FILE`` writes CycloneDX 1.5 as JSON.

It lists what the installed package needs, extras and their needs among it, as `importlib.metadata` tells: name,
version, package URL, licence, and what needs what. The same installation gives the same bytes: there is no clock in it.
Known vulnerabilities are not asked for: that takes a network (``pip-audit``, or the file uploaded to a tracker).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = "curation"


def needs(found: Distribution, extras: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield name and extras of what a distribution needs on this machine, with some of its own extras."""
    for text in found.requires or ():
        try:
            one = Requirement(text)
        except InvalidRequirement:
            continue
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(one.name), tuple(sorted(one.extras))


def installed(root: str = ROOT) -> dict[str, tuple[Distribution, list[str]]]:
    """Return everything that a package and all its extras need, as far as it is installed, and what each needs."""
    top = distribution(root)
    waiting = [(canonicalize_name(root), tuple(top.metadata.get_all("Provides-Extra") or ()))]
    found: dict[str, tuple[Distribution, list[str]]] = {}
    asked: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in asked:
            continue
        asked.add((name, extras))
        try:
            one = distribution(name)
        except PackageNotFoundError:
            continue
        below = list(needs(one, extras))
        waiting += below
        known = found.setdefault(name, (one, []))[1]
        known += [other for other, _ in below if other not in known and other != name]
    return dict(sorted(found.items()))


def licence_of(found: Distribution) -> str:
    """Return what a distribution says of its licence in a line: an expression, a classifier, or a short text."""
    about = found.metadata
    stated = about.get("License-Expression") or ""
    classes = [one.rpartition(" :: ")[2] for one in about.get_all("Classifier") or () if one.startswith("License ::")]
    text = (about.get("License") or "").strip().split("\n")[0]
    return stated or " AND ".join(sorted(set(classes))) or text[:80] or "not stated"


def bill(root: str = ROOT) -> dict[str, Any]:
    """Return the bill of materials as data."""
    found = installed(root)
    address = {name: f"pkg:pypi/{name}@{one.version}" for name, (one, _) in found.items()}
    rows = [
        {
            "type": "library",
            "bom-ref": address[name],
            "name": one.metadata["Name"],
            "version": one.version,
            "purl": address[name],
            "licenses": [{"license": {"name": licence_of(one)}}],
        }
        for name, (one, _) in found.items()
    ]
    top = canonicalize_name(root)
    edges = [
        {"ref": address[name], "dependsOn": sorted(address[other] for other in below if other in address)}
        for name, (_, below) in found.items()
    ]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([rows, edges], sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": next({**row, "type": "application"} for row in rows if row["bom-ref"] == address[top])
        },
        "components": [row for row in rows if row["bom-ref"] != address[top]],
        "dependencies": edges,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the bill of materials, and tell how many packages bear which licence."""
    parser = argparse.ArgumentParser(prog="python -m tests.sbom", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("sbom.json"), metavar="FILE")
    options = parser.parse_args(arguments)
    made = bill()
    options.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    counts = Counter(one["licenses"][0]["license"]["name"] for one in made["components"])
    for licence, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        print(f"{count:>4}  {re.sub(r'[^ -~]', '?', licence)}")
    print(f"{len(made['components'])} packages: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
