"""`Member`: a manifest of a publication with its published data, and the licence terms of its sources."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from curation.core.errors import CurationError, PublishError
from curation.manifest.header import Header, SourceEntry
from curation.manifest.locate import packaged_files
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header
from curation.manifest.verify import same_bytes, verify_sources
from curation.review.decisions.decision import Decision, sort_key
from curation.review.decisions.resolution import Rule, decisions_digest, recorded_digest, recorded_form, resolve
from curation.sources.datasets import NOT_STATED, family
from curation.sources.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

Permission = Literal["yes", "no", "unstated"]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a dataset.

    Attributes
    ----------
    annotations, media : str
        SPDX identifier of the licence, else its name.
    labels : {"yes", "no", "unstated"}
        Whether boxes and class labels may be redistributed. ``unstated``: the owner states no licence for them; they
        are written if the publisher gives the source, and the card mentions it.
    url : str
        Address of the terms.
    reason : str
        Why labels may not be redistributed, ``""`` if they may.
    creator : str
        The creator that the licence of the annotations requires to be named, or ``""``.
    annotators : tuple of str
        Who made the annotations, in the terms of a hub's card (``crowdsourced``, ``expert-generated``, …); empty if not
        known.
    persons : str
        How persons appear in the photos, if all images are photos and none is generated; ``""`` if not known.
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
"""Terms by family of datasets (see `curation.sources.datasets.family`)."""
STATED: Mapping[str, bool] = _DECLARED["stated"]
"""Licences that publishers can state for their own data, and whether they allow free redistribution."""

_UNKNOWN = Terms("not stated", "not stated", "unstated", url="")


def terms_of(entry: SourceEntry, licences: Mapping[str, str] | None = None) -> Terms:
    """Return the terms of a source: from the table, if its dataset is known by digest, exact name or namespace.

    Parameters
    ----------
    licences : mapping of str to str, optional
        SPDX identifiers by the name of the source, for the publisher's own data. They override the table, unless the
        files of the source are those of a dataset in the table, or its labels may not be redistributed.

    Raises
    ------
    PublishError
        The statement contradicts the licence of a known dataset, or the licence is not one of `STATED`.
    """
    proved = next((dataset for file in entry.files if (dataset := packaged_files().get(file.sha256))), "")
    by_name = [TERMS[family(name)] for name in (entry.dataset, entry.namespace) if family(name) in TERMS]
    # A build states no licence for data that it does not recognise; only a ban on redistribution applies by name.
    terms_by_name = (terms for terms in by_name if entry.licence != NOT_STATED or terms.labels == "no")
    known = TERMS.get(family(proved)) or next(terms_by_name, None)
    # A benchmark file may state the licence too.
    licence = (licences or {}).get(entry.name) or (entry.licence if entry.licence in STATED else None)
    if licence is None or (known is not None and licence == known.annotations):
        return known or _UNKNOWN
    if known is not None and (proved or known.labels == "no"):
        proof = f"{proved}, proved by digest" if proved else f"the dataset is called {entry.dataset}"
        raise PublishError(
            f"The licence of this dataset is fixed ({proof})",
            where=f"--licence {entry.name}={licence[:60]}",
            expected=f"annotations {known.annotations}, photos {known.media} ({known.url})",
            hint=f"drop --licence {entry.name}={licence[:60]}"
            + ("" if proved else "; your own data need another name"),
        )
    if licence not in STATED:
        raise PublishError(
            "Unknown licence", where=f"--licence {entry.name}", expected=", ".join(STATED), found=ascii(licence[:60])
        )
    free = STATED[licence]
    return Terms(
        annotations=licence,
        media=licence,
        labels="yes" if free else "no",
        url=f"https://spdx.org/licenses/{licence}.html",
        reason="" if free else f"{licence} forbids commercial use or changes",
    )


def require_labels(entry: SourceEntry, terms: Terms) -> None:
    """Raise `PublishError` if the labels of a source may not be redistributed."""
    if terms.labels == "no":
        raise PublishError(
            "The annotations of this source may not be redistributed, so its boxes and labels cannot be published",
            where=f"--source {entry.name} ({entry.dataset})",
            found=f"{terms.annotations}: {terms.reason} ({terms.url})",
            hint=f"leave out --source {entry.name}: then only the ids are published",
        )


Statement = str | bool | tuple[str, ...]
"""A statement on responsible use."""

HUB = "https://huggingface.co/datasets/"
"""The public address of repositories, for any endpoint."""
Configs = Mapping[str, Mapping[str, str]]
"""Path of the table of each split, by config."""


def config_names(headers: Sequence[Header]) -> list[str]:
    """Return the config of each manifest: its name with ``-`` for ``/``, with its version if names coincide.

    Raises
    ------
    PublishError
        Two manifests have the same config.
    """
    plain = [header.name.replace("/", "-") for header in headers]
    times = Counter(plain)
    names = [
        name if times[name] == 1 else f"{name}-{header.version}" for name, header in zip(plain, headers, strict=True)
    ]
    occurrences = Counter(names)
    if repeated := [name for name in names if occurrences[name] > 1]:
        raise PublishError(
            "Two manifests have the same config",
            where=repeated[0],
            expected="manifests of different names, or versions",
            found=", ".join(f"{header.name} {header.version}" for header in headers)[:300],
        )
    return names


def split_names(parts: Sequence[str]) -> dict[str, str]:
    r"""Return the split of each part: ``\w+``, unique (``wr0.1-hash`` becomes ``wr0_1_hash``)."""
    names: dict[str, str] = {}
    for part in parts:
        plain = re.sub(r"[^a-z0-9]", "_", part)
        plain = "all_images" if plain == "all" else plain  # `datasets` takes "all" for every split together.
        name, number = plain, 2
        while name in names.values():
            name, number = f"{plain}_{number}", number + 1
        names[part] = name
    return names


EVIDENCE_FILE = "decisions.jsonl"


def decisions_behind(manifest: Manifest, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the decisions that made a manifest, sorted, each once.

    They are the given decisions, or these after resolution by the manifest's rule for conflicts.

    Raises
    ------
    PublishError
        The header has no digest of decisions, or the digest of others.
    """
    header = manifest.header
    where = f"{header.name} {header.version}"
    if header.decisions is None:
        raise PublishError("The manifest was not reviewed, so it has no evidence to publish", where=where)
    rows = tuple(decisions)
    digest, candidates = decisions_digest(rows), [rows]
    # A rule may need facts that are not known here (who is senior); the decisions must then be resolved.
    rule = cast("Rule", header.rule.parameters.get("review_rule", "error"))
    with suppress(CurationError):
        candidates.append(resolve(rows, rule, allow_conflicts=rule == "error").decisions)
    for candidate in candidates:
        if header.decisions in (decisions_digest(candidate), recorded_digest(recorded_form(candidate))):
            return tuple(sorted(set(candidate), key=sort_key))
    raise PublishError(
        "The decisions are not those of the manifest",
        where=where,
        expected=header.decisions,
        found=f"{len(rows)} decisions, {digest}",
        hint="curation review summary FILE --rule senior --senior NAME --out RESOLVED.jsonl; "
        "then --decisions RESOLVED.jsonl"
        if rule == "senior"
        else None,
    )


@dataclass(frozen=True)
class Member:
    """One manifest of a publication.

    Attributes
    ----------
    manifest : Manifest
        With the published lists; without lists if they are the authors', which are not redistributed.
    config : str
    sources : mapping of str to Source
        Sources of the labels.
    evidence : tuple of Decision or None
    licences : mapping of str to str
        SPDX identifiers that the publisher states for own data, by source.
    """

    manifest: Manifest
    config: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    evidence: tuple[Decision, ...] | None = None
    licences: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Folder of the manifest in the repository."""
        return f"manifests/{self.manifest.header.name}/{self.manifest.header.version}"

    @property
    def splits(self) -> dict[str, str]:
        """The split of each part whose list is published, in the order of the manifest."""
        names = split_names([part.name for part in self.manifest.header.parts])
        return {part: split for part, split in names.items() if part in self.manifest.lists}

    @property
    def labelled(self) -> tuple[str, ...]:
        """The published parts whose sources are all given."""
        parts = [part for part in self.manifest.header.parts if part.name in self.manifest.lists]
        return tuple(part.name for part in parts if set(part.sources) <= set(self.sources))

    def sources_of(self, part: str) -> Mapping[str, Source] | None:
        """Return the sources of a part, or None if a source is missing."""
        return self.sources if part in self.labelled else None

    def terms(self) -> dict[str, Terms]:
        """Return the terms of every source of the manifest."""
        return {entry.name: terms_of(entry, self.licences) for entry in self.manifest.header.sources}

    def other_bytes(self) -> tuple[SourceEntry, ...]:
        """Return the sources of labels whose files are not those that the manifest was made from."""
        entries = [entry for entry in self.manifest.header.sources if entry.name in self.sources]
        return tuple(entry for entry in entries if entry.files and not same_bytes(entry, self.sources[entry.name]))


@dataclass(frozen=True, slots=True)
class Results:
    """Results for a card: the bytes of the file of records, and its tables as Markdown."""

    data: bytes
    text: str


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table of a repository.

    Attributes
    ----------
    config, split : str
    schema : pyarrow.Schema
    rows : callable
        Returns the table in pieces.
    filled : tuple of str
        Columns with values.
    empty : bool
        Whether the table has no row: `datasets` cannot load a config with such a split, so it is in no config.
    """

    config: str
    split: str
    schema: pa.Schema
    rows: Callable[[], Iterable[pa.Table]]
    filled: tuple[str, ...]
    empty: bool = False

    @property
    def path(self) -> str:
        """Path of the table in the repository."""
        return f"data/{self.config}/{self.split}.parquet"

    def filled_schema(self) -> pa.Schema:
        """Return the columns with values."""
        import pyarrow as pa

        return pa.schema([field for field in self.schema if field.name in self.filled])


@dataclass(frozen=True)
class Request:
    """A request to publish manifests: their content, and the name and terms to publish under.

    Attributes
    ----------
    repository : str
        ``ORG/NAME``.
    tag : str
        ``MAJOR.MINOR.PATCH``.
    members : tuple of Member
    tables : tuple of PlannedTable
        Tables of their parts.
    layout : {"curation", "findmeifyoucan"}
        Benchmark whose columns these tables have.
    date : str
        Date of publication, ISO 8601; the identity of a publication does not depend on it.
    statements : mapping of str to text, texts or bool
        Statements on responsible use (see `curation.publishing.croissant`).
    results : Results or None
        Scores of these manifests.
    """

    repository: str
    tag: str
    members: tuple[Member, ...]
    tables: tuple[PlannedTable, ...]
    layout: str = "curation"
    date: str = ""
    statements: Mapping[str, Statement] = field(default_factory=dict)
    results: Results | None = None


def published_lists(manifest: Manifest) -> Manifest:
    """Return a manifest with the lists that may be published; of authors' lists only the digests are published."""
    return replace(manifest, lists={}) if manifest.header.origin == "as_published" else manifest


def check_member(member: Member) -> None:
    """Raise `PublishError` if the content of a manifest may not be published, or differs from the manifest.

    Raises
    ------
    PublishError
        The licence of a source forbids the publication of its labels; no published part needs a source; or a source
        does not have the counts in the header.
    """
    header = member.manifest.header
    where = f"{header.name} {header.version}"
    check_header(header, where=where)
    terms = member.terms()
    for entry in header.sources:
        if entry.name in member.sources:
            require_labels(entry, terms[entry.name])
    used = {source for part in member.labelled for source in member.manifest.part(part).sources}
    if idle := sorted(set(member.sources) - used):
        # Authors' lists are not published, complete or not.
        completion = "" if header.origin == "as_published" else member.manifest.completion()
        raise PublishError(
            "No published list uses the labels of a source",
            where=f"{where}: --source {idle[0]}",
            expected="all sources of a part, and a part with a list",
            hint=f"leave out --source {idle[0]}" + f", or complete the manifest first: {completion}" * bool(completion),
        )
    failures = [finding for finding in verify_sources(member.manifest, member.sources) if finding.outcome == "failure"]
    if member.sources and failures:
        first = failures[0]
        raise PublishError(
            f"The sources are not those of the manifest: {first.check} of {first.subject} differ",
            where=where,
            expected=first.expected or None,
            found=first.found,
            hint="curation verify MANIFEST --source NAME=PATH",
        )


def keywords(members: Sequence[Member]) -> list[str]:
    """Return the keywords of a publication: those of the field, its protocols, and its datasets."""
    headers = [member.manifest.header for member in members]
    protocols = sorted({header.rule.protocol for header in headers})
    data = sorted({family(entry.dataset) for header in headers for entry in header.sources})
    fixed = ("open-set", "out-of-distribution", "evaluation", "benchmark", "image", "croissant", "mlcroissant")
    return list(dict.fromkeys([*fixed, *protocols, *data]))


def title_of(members: Sequence[Member]) -> str:
    """Return the title of a publication: that of its manifest, or the number of manifests."""
    titles = [" ".join(member.manifest.header.title.split()) for member in members]
    return titles[0] if len(titles) == 1 else f"{len(titles)} protocols of open-set evaluation"
