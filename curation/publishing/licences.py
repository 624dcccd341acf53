"""What may be passed on: the terms of each dataset, as data, and the gate that labels must pass."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from curation.core.errors import PublishError
from curation.manifest.header import SourceEntry
from curation.manifest.manifest import HEADER_FILE, packaged_manifests, read_stated
from curation.sources.datasets import family

Permission = Literal["yes", "no", "unstated"]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a dataset.

    Attributes
    ----------
    annotations, media : str
        SPDX identifier of the licence, else its name.
    labels : {"yes", "no", "unstated"}
        Whether boxes and class labels may be passed on. ``unstated``: the owner names no licence for them; they are
        written where the publisher gives the source, and the card mentions it.
    url : str
        Where the terms are stated.
    reason : str
        Why labels may not be passed on, ``""`` where they may.
    creator : str
        Whom the licence of the annotations asks to name, ``""`` where it asks for none.
    annotators : tuple of str
        Who made the annotations, in the words of a hub's card (``crowdsourced``, ``expert-generated``, …); empty where
        that is not known.
    persons : str
        What of persons the photos show, where all of them are photos and none was generated; ``""`` where unknown.
    """

    annotations: str
    media: str
    labels: Permission
    url: str
    reason: str = ""
    creator: str = ""
    annotators: tuple[str, ...] = ()
    persons: str = ""


_DECLARED = tomllib.loads((Path(__file__).parent / "licences.toml").read_text(encoding="utf-8"))


TERMS = msgspec.convert(_DECLARED["terms"], dict[str, Terms])
"""By family of datasets (see `curation.sources.datasets.family`)."""
STATED: Mapping[str, bool] = _DECLARED["stated"]
"""Licences that a publisher can state for data of his own, and whether they let it be passed on freely."""

_UNKNOWN = Terms("not stated", "not stated", "unstated", url="")


def terms_of(entry: SourceEntry, licences: Mapping[str, str] | None = None) -> Terms:
    """Return the terms of a source: those of the table for a dataset that it knows by digest, exact name or namespace.

    Parameters
    ----------
    licences : mapping of str to str, optional
        SPDX identifiers by the name of the source, for the publisher's own data. They go before the table, unless the
        files of the source are those of a dataset of the table, or that dataset's labels may not be passed on.

    Raises
    ------
    PublishError
        The statement contradicts the licence of a known dataset, or the licence is not one of `STATED`.
    """
    proved = next((dataset for file in entry.files if (dataset := _packaged_files().get(file.sha256))), "")
    names = (proved, entry.dataset, entry.namespace)
    known = next((TERMS[family(name)] for name in names if family(name) in TERMS), None)
    licence = (licences or {}).get(entry.name)
    if licence is None or (known is not None and licence == known.annotations):
        return known or _UNKNOWN
    if known is not None and (proved or known.labels == "no"):
        proof = f"{proved}, proved by digest" if proved else f"the dataset is called {entry.dataset}"
        raise PublishError(
            f"The licence of this dataset is fixed ({proof})",
            where=f"--licence {entry.name}={licence[:60]}",
            expected=f"annotations {known.annotations}, photos {known.media} ({known.url})",
            hint=f"drop --licence {entry.name}={licence[:60]}"
            + ("" if proved else "; data of your own need a name of their own"),
        )
    if licence not in STATED:
        raise PublishError(
            "The licence is not one that this program knows",
            where=f"--licence {entry.name}",
            expected=", ".join(STATED),
            found=ascii(licence[:60]),
        )
    free = STATED[licence]
    return Terms(
        annotations=licence,
        media=licence,
        labels="yes" if free else "no",
        url=f"https://spdx.org/licenses/{licence}.html",
        reason="" if free else f"{licence} forbids commercial use or changes",
    )


@cache
def _packaged_files() -> Mapping[str, str]:
    """Return the dataset of each raw file that packaged manifests were made from, by its digest."""
    headers = (read_stated(path.parent) for path in sorted(packaged_manifests().rglob(HEADER_FILE)))
    return {file.sha256: entry.dataset for header in headers for entry in header.sources for file in entry.files}


def require_labels(entry: SourceEntry, terms: Terms) -> None:
    """Raise `PublishError` where the labels of a source may not be passed on."""
    if terms.labels == "no":
        raise PublishError(
            "The annotations of this source may not be passed on, so no boxes and no labels of it are written",
            where=f"--source {entry.name} ({entry.dataset})",
            found=f"{terms.annotations}: {terms.reason} ({terms.url})",
            hint=f"leave out --source {entry.name}: the ids alone are published",
        )
