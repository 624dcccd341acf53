"""Whose data a benchmark of this package was built from: the paper's, proved by digest or count, or the user's own."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from curation.benchmarks.parts import rule_note
from curation.benchmarks.rules.benchmark_file import EVALUATORS
from curation.manifest.header import Header, SourceEntry
from curation.manifest.locate import packaged_files, packaged_lists
from curation.manifest.manifest import Manifest
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
    sources = tuple(
        msgspec.structs.replace(entry, licence=NOT_STATED) if entry.name in users else entry for entry in header.sources
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

    All of its files are known by digest; or a list of its images alone is that of a packaged manifest; or it has a
    large count that the paper states.
    """
    known = packaged_files()
    if all(family(known.get(file.sha256, "")) == family(entry.dataset) for file in entry.files):
        return True
    own = [part for part in header.parts if part.sources == (entry.name,)]
    if any(part.images and part.sha256 in packaged_lists() for part in own):
        return True
    subjects = {entry.name, *(part.name for part in own)}
    return any(
        figure.paper == figure.obtained and (figure.paper or 0) >= _TELLING
        for figure in header.figures
        if figure.name.partition(".")[0] in subjects
    )
