"""Papers as others cite them: links, and a reference of the Citation File Format."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.manifest.header import Paper
from curation.text_table import printable

_KNOWN: Mapping[str, Mapping[str, Any]] = tomllib.loads(
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


def reference(paper: Paper) -> dict[str, Any]:
    """Return a paper as a reference of the Citation File Format 1.2.0.

    Persons have family and given names where ``papers.toml`` knows the paper; else each name is given as it is.

    Examples
    --------
    >>> reference(Paper(title="t", authors="K J Joseph", year=2021, venue="CVPR", bibtex=""))
    {'type': 'article', 'title': 't', 'authors': [{'name': 'K J Joseph'}], 'year': 2021, 'journal': 'CVPR'}
    """
    known = _KNOWN.get(paper.title, {})
    pairs = [name.split(", ") for name in known.get("authors", ())]
    persons = [{"family-names": family, "given-names": given} for family, given in pairs]
    names = re.split(r", ?| and ", printable(paper.authors[:_LONGEST], " "))
    entities = [{"name": name.strip()} for name in names if name.strip()]
    venue = printable(paper.venue, " ").strip() or "unknown"
    if proceedings := known.get("proceedings"):
        published: dict[str, Any] = {"collection-title": proceedings, "conference": {"name": venue}}
    else:
        published = {"journal": venue}
    found = {label.partition(":")[0]: (label.partition(":")[2], address) for label, address in links(paper).items()}
    return {
        "type": "conference-paper" if proceedings else "article",
        "title": printable(paper.title, " ").strip() or "untitled",
        "authors": persons or entities or [{"name": "unknown"}],
        "year": paper.year,
        **published,
        **({"doi": found["doi"][0]} if "doi" in found else {}),
        **({"url": found["arXiv"][1]} if "arXiv" in found else {}),
    }
