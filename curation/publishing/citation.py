"""``CITATION.cff``: how to cite a repository, and the papers that its protocols come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from curation.manifest.header import Paper
from curation.publishing.card import HUB, title_of
from curation.publishing.member import Member

CITATION_FILE = "CITATION.cff"


def citation_text(repository: str, tag: str, members: Sequence[Member], date: str = "") -> str:
    """Return the file in the Citation File Format 1.2.0.

    Parameters
    ----------
    date : str
        Of publication, ISO 8601; ``""`` for none.
    """
    papers = dict.fromkeys(member.manifest.header.paper for member in members)
    digests = [member.manifest.digest for member in members]
    data: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "Please cite the papers of the protocols that you use, and this dataset by version and digest.",
        "type": "dataset",
        "title": title_of(members),
        "authors": [{"name": repository.partition("/")[0]}],
        "version": tag,
        **({"date-released": date} if date else {}),
        "url": HUB + repository,
        "identifiers": [{"type": "other", "value": one, "description": "manifest digest"} for one in digests],
        "references": [_reference(paper) for paper in papers],
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000)


def _reference(paper: Paper) -> dict[str, Any]:
    names = [name for name in re.split(r",\s*|\s+and\s+", paper.authors) if name.strip()]
    return {
        "type": "article",
        "title": paper.title or "untitled",
        "authors": [{"name": name.strip()} for name in names] or [{"name": "unknown"}],
        "year": paper.year,
        "collection-title": paper.venue or "unknown",
    }
