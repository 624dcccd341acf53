"""Attribution of manifests: the paper only for data that digests or counts prove to be the paper's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from curation.benchmarks.parts import rule_note
from curation.benchmarks.rules.benchmark_file import EVALUATORS, RULES
from curation.core.errors import ProtocolError
from curation.manifest.header import Header, SourceEntry
from curation.manifest.locate import packaged_files, packaged_lists
from curation.manifest.manifest import Manifest
from curation.publishing.member import TERMS
from curation.sources.datasets import NOT_STATED, family

_LARGE_COUNT = 1000
"""A count of this size does not equal that of the paper by accident."""


def attributed(manifest: Manifest, licences: Mapping[str, str] = MappingProxyType({})) -> Manifest:
    """Return a manifest that names the paper and licences only for sources that are proved to be the paper's.

    Other data are the user's: the manifest names the rule, and for each source the licence that its owner states.

    Parameters
    ----------
    licences : mapping of str to str
        Licences that the owner of the sources states.

    Raises
    ------
    ProtocolError
        A statement contradicts the licence of a dataset that is proved by digest.
    """
    header = manifest.header
    users = {entry.name for entry in header.sources if entry.files and not is_proved(header, entry)}
    sources = tuple(
        replace(entry, licence=_licence(entry, licences.get(entry.name, ""), is_users=entry.name in users))
        for entry in header.sources
    )
    changes: dict[str, Any] = {}
    # A user's benchmark file names the user's paper, if any.
    if users and header.paper is not None and header.rule.protocol not in RULES:
        rule = next((rule for rule, name in EVALUATORS.items() if name == header.rule.protocol), header.rule.protocol)
        changes = {
            "paper": None,
            # The authors of the paper did not publish these data.
            "origin": "regenerated" if header.origin == "as_published" else header.origin,
            "title": header.title.removeprefix(f"{header.paper.title}: "),
            "notes": (rule_note(rule, header.paper), *header.notes),
        }
    return dataclasses.replace(manifest, header=replace(header, sources=sources, **changes))


def _licence(entry: SourceEntry, licence: str, *, is_users: bool) -> str:
    """Return the licence of a source: the known one of files known by digest, else that of the owner."""
    proved = next((name for file in entry.files if (name := packaged_files().get(file.sha256))), "")
    known = TERMS.get(family(proved))
    if licence and known is not None and licence != known.annotations:
        raise ProtocolError(
            f"The licence of this dataset is fixed ({proved}, proved by digest)",
            where=f"[sources.{entry.name}] licence",
            expected=f"annotations {known.annotations}, photos {known.media} ({known.url})",
            found=licence[:80],
            hint="remove the key licence",
        )
    # If the labels of the dataset of this name may not be passed on, its licence applies whatever the data are.
    by_name = TERMS.get(family(entry.dataset))
    if known is None and not (by_name is not None and by_name.labels == "no"):
        return licence or (NOT_STATED if is_users else entry.licence)
    return entry.licence


def with_attribution_of(manifest: Manifest, header: Header) -> Manifest:
    """Return a rebuilt manifest with the attribution of a header that a user wrote."""
    if header.paper is not None and header.rule.protocol not in RULES:
        return manifest
    built = manifest.header
    licences = {entry.name: entry.licence for entry in header.sources}
    sources = tuple(replace(entry, licence=licences.get(entry.name, entry.licence)) for entry in built.sources)
    origin = header.origin if built.origin == "as_published" else built.origin
    return dataclasses.replace(manifest, header=replace(built, paper=header.paper, sources=sources, origin=origin))


def is_proved(header: Header, entry: SourceEntry) -> bool:
    """Return whether a source of a manifest contains the data of the dataset that it names.

    The proof: all of its files are known by digest; or a list of its images is that of a packaged manifest; or the
    source, or such a list, has a large count that the paper states.
    """
    datasets = [packaged_files().get(file.sha256, "") for file in entry.files]
    if all(family(name) == family(entry.dataset) or name.endswith("_lists") for name in datasets):
        return True
    parts = [part for part in header.parts if entry.name in part.sources]
    if any(part.images and part.sha256 in packaged_lists() for part in parts):
        return True
    subjects = {entry.name, *(part.name for part in parts)}
    return any(
        figure.paper == figure.obtained and (figure.paper or 0) >= _LARGE_COUNT
        for figure in header.figures
        if figure.name.partition(".")[0] in subjects
    )
