"""Whose data a benchmark of this package was built from: the paper's, proved by digest or count, or the user's own."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from curation.benchmarks.parts import rule_note
from curation.benchmarks.rules.benchmark_file import EVALUATORS
from curation.manifest.header import Header, SourceEntry
from curation.manifest.locate import packaged_files, packaged_lists
from curation.manifest.manifest import Manifest
from curation.publishing.member import TERMS
from curation.sources.datasets import NOT_STATED, family

_TELLING = 1000
"""A count of the paper that is as large does not come out by accident."""


def attributed(manifest: Manifest) -> Manifest:
    """Return a manifest that names the paper and licences only where its sources are proved to be the paper's.

    Other data are the user's: the manifest names the rule, and no licence of a source that is not proved.
    """
    header = manifest.header
    users = {entry.name for entry in header.sources if entry.files and not is_proved(header, entry)}
    if not users or header.paper is None or header.origin == "as_published":
        return manifest
    rule = next((rule for rule, name in EVALUATORS.items() if name == header.rule.protocol), header.rule.protocol)
    # Data under a name whose labels may not be passed on keep that licence: no name is a way around it.
    bound = {name for name, terms in TERMS.items() if terms.labels == "no"}
    sources = tuple(
        msgspec.structs.replace(entry, licence=NOT_STATED)
        if entry.name in users and family(entry.dataset) not in bound
        else entry
        for entry in header.sources
    )
    words = {
        "title": header.title.removeprefix(f"{header.paper.title}: "),
        "notes": (rule_note(rule, header.paper), *header.notes),
    }
    return replace(manifest, header=msgspec.structs.replace(header, paper=None, sources=sources, **words))


def with_attribution_of(manifest: Manifest, header: Header) -> Manifest:
    """Return a manifest that was built again, with the user's data named as in a header without a paper."""
    if header.paper is not None:
        return manifest
    licences = {entry.name: entry.licence for entry in header.sources}
    sources = tuple(
        msgspec.structs.replace(entry, licence=licences.get(entry.name, entry.licence))
        for entry in manifest.header.sources
    )
    return replace(manifest, header=msgspec.structs.replace(manifest.header, paper=None, sources=sources))


def is_proved(header: Header, entry: SourceEntry) -> bool:
    """Return whether a source of a manifest holds the data of the dataset whose name it bears.

    All of its files are known by digest; or a list with its images is that of a packaged manifest; or the source, or
    such a list, has a large count that the paper states.
    """
    datasets = [packaged_files().get(file.sha256, "") for file in entry.files]
    if all(family(name) == family(entry.dataset) or name.endswith("_lists") for name in datasets):
        return True
    parts = [part for part in header.parts if entry.name in part.sources]
    if any(part.images and part.sha256 in packaged_lists() for part in parts):
        return True
    subjects = {entry.name, *(part.name for part in parts)}
    return any(
        figure.paper == figure.obtained and (figure.paper or 0) >= _TELLING
        for figure in header.figures
        if figure.name.partition(".")[0] in subjects
    )
