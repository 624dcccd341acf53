"""Where papers can be read: arXiv and DOI."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from curation.manifest.header import Paper

_KNOWN: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (Path(__file__).parent / "papers.toml").read_text(encoding="utf-8")
)
_ARXIV = re.compile(r"arxiv[\s:.]{1,3}(\d{4}\.\d{4,5})", re.IGNORECASE)
_DOI = re.compile(r"10\.\d{4,9}/[-._;:/A-Za-z0-9]{1,200}")
_LONGEST = 20_000


def links(paper: Paper) -> dict[str, str]:
    """Return the addresses of a paper by their labels: arXiv and DOI, where they are known or the paper states them.

    Examples
    --------
    >>> links(Paper(title="t", authors="a", year=2022, venue="arXiv 2201.00471", bibtex=""))
    {'arXiv:2201.00471': 'https://arxiv.org/abs/2201.00471'}
    """
    known, text = _KNOWN.get(paper.title, {}), f"{paper.venue} {paper.bibtex[:_LONGEST]}"
    stated = {"arxiv": _ARXIV.search(text), "doi": _DOI.search(text)}
    found = {kind: known.get(kind) or (match[match.re.groups] if match else "") for kind, match in stated.items()}
    addresses = {
        f"arXiv:{found['arxiv']}": f"https://arxiv.org/abs/{found['arxiv']}",
        f"doi:{found['doi']}": f"https://doi.org/{found['doi']}",
    }
    return {label: address for label, address in addresses.items() if not label.endswith(":")}
