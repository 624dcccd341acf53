"""The dataset card: ``README.md`` with the configs for `datasets`, tables, and facts for readers."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from curation.core.pages import page
from curation.manifest.header import Header, Paper, ParameterValue, classes_in
from curation.publishing.croissant import derived
from curation.publishing.member import (
    HUB,
    STATED,
    Configs,
    Member,
    PlannedTable,
    Request,
    Statement,
    keywords,
    title_of,
)
from curation.publishing.tables import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B",
          "10B<n<100B", "100B<n<1T", "n>1T")  # fmt: skip
_ORIGINS = {
    "regenerated": "The rule made the lists from the raw data.",
    "as_published": "The lists are the authors' own. The manifest states their digests; the lists are not passed on, "
    "since no licence for them is stated: `curation import` completes the manifest from the authors' files.",
    "reviewed": "Recorded decisions of reviewers corrected the lists.",
    "declared": "Not every list is among the files: the manifest states the rule, the paper's figures and the digests "
    "that are known, and `curation build` completes it from your own raw data.",
}
_PAPERS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (Path(__file__).parent / "papers.toml").read_text(encoding="utf-8")
)
_ARXIV = re.compile(r"arxiv[\s:.]{1,3}(\d{4}\.\d{4,5})", re.IGNORECASE)
_DOI = re.compile(r"10\.\d{4,9}/[-._;:/A-Za-z0-9]{1,200}")
_LONGEST_BIBTEX = 20_000
_LONGEST_VALUE = 160
_ROLES = ("known", "previous", "negative", "unknown", "ignored")
_NOT_FOR = (
    "Not for training or tuning on the parts for testing, for identifying or locating people, or for a claim on "
    "classes and images other than these. A score belongs to the manifest's digest, and to no other list of its name."
)


def card_text(request: Request, configs: Configs) -> str:
    """Return the card of a repository.

    Parameters
    ----------
    configs : mapping of str to mapping of str to str
        By config and split, the path of the table; the first is the default.
    """
    members, repository, tag = request.members, request.repository, request.tag
    statements = {**derived(members), **request.statements}
    text = page(
        "card.md",
        data=yaml.safe_dump(card_data(repository, members, configs), sort_keys=False, allow_unicode=True),
        title=title_of(members),
        repository=repository,
        tag=tag,
        members=members,
        loading=_loading(repository, tag, configs),
        columns=_columns(request.tables),
        results=request.results,
        stated=lambda name: _texts(statements.get(name)),
        limits=_limits(members, _texts(statements.get("dataLimitations"))),
        differing=sum(row.paper != row.obtained for member in members for row in member.manifest.header.figures),
        not_for=_NOT_FOR,
        hub=HUB,
        papers={paper: links(paper) for paper in papers_of(members)},
        class_groups=_class_groups,
        folded=40,
        origins=_ORIGINS,
        spdx=STATED,
        class_roles=lambda header, part: Counter(entry.role for entry in classes_in(header, part)),
        shown=_parameter_text,
    )
    return text.rstrip("\n") + "\n"


def papers_of(members: Sequence[Member]) -> list[Paper]:
    """Return the papers of some manifests, each once."""
    papers = [member.manifest.header.paper for member in members]
    return list(dict.fromkeys(paper for paper in papers if paper is not None))


def card_data(repository: str, members: Sequence[Member], configs: Configs) -> dict[str, Any]:
    """Return the YAML header of the card as plain data, in the form of `huggingface_hub.DatasetCardData`."""
    kinds = {member.manifest.header.taxonomy == "OSC" for member in members}
    images = sum(len(ids) for member in members for ids in member.manifest.lists.values())
    annotators = [who for member in members for terms in member.terms().values() for who in terms.annotators]
    datasets = [entry.dataset for member in members for entry in member.manifest.header.sources]
    data: dict[str, Any] = {
        "pretty_name": title_of(members),
        # Labels and photos have the terms of their sources, for which no single identifier exists.
        "license": "other",
        "license_name": "per-source",
        # The hub accepts an address here, or a file called LICENSE.
        "license_link": HUB + repository,
        "language": ["en"],
        "annotations_creators": list(dict.fromkeys(annotators)),
        "source_datasets": [
            dataset for dataset in dict.fromkeys(datasets) if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}", dataset)
        ],
        "task_categories": ["object-detection"] * (False in kinds) + ["image-classification"] * (True in kinds),
        "task_ids": ["multi-class-image-classification"] * (True in kinds),
        "tags": keywords(members),
        "size_categories": [_SIZES[bisect_right([10**power for power in range(3, 13)], images)]],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if position == 0 else {}),
                "data_files": [{"split": split, "path": path} for split, path in splits.items()],
            }
            for position, (name, splits) in enumerate(configs.items())
        ],
    }
    # Without a table, the hub would show the JSON files.
    data |= {} if configs else {"viewer": False}
    return {key: value for key, value in data.items() if value or key in ("task_categories", "viewer")}


def links(paper: Paper) -> dict[str, str]:
    """Return the known addresses of a paper by label: arXiv and DOI, from a table or from the paper's entry.

    >>> links(Paper(title="t", authors="a", year=2022, venue="arXiv 2201.00471", bibtex=""))
    {'arXiv:2201.00471': 'https://arxiv.org/abs/2201.00471'}
    """
    known, text = _PAPERS.get(paper.title, {}), f"{paper.venue} {paper.bibtex[:_LONGEST_BIBTEX]}"
    matches = {"arxiv": _ARXIV.search(text), "doi": _DOI.search(text)}
    numbers = {kind: known.get(kind) or (match[match.re.groups] if match else "") for kind, match in matches.items()}
    addresses = {
        f"arXiv:{numbers['arxiv']}": f"https://arxiv.org/abs/{numbers['arxiv']}",
        f"doi:{numbers['doi']}": f"https://doi.org/{numbers['doi']}",
    }
    return {label: address for label, address in addresses.items() if not label.endswith(":")}


def _texts(value: Statement | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ()


def _limits(members: Sequence[Member], texts: Sequence[str]) -> list[str]:
    """Return the limits without those in other sections of the card: notes and figures."""
    headers = [member.manifest.header for member in members]
    elsewhere = {f"{header.name} {header.version}: {note}" for header in headers for note in header.notes}
    figures = tuple(
        f"{header.name} {header.version}: {figure.name} is " for header in headers for figure in header.figures
    )
    return [text for text in texts if text not in elsewhere and not (figures and text.startswith(figures))]


def _class_groups(header: Header) -> list[tuple[str, list[str]]]:
    """Return the names of classes by role, or by the task that introduces them and then by role."""
    groups = [(f"introduced in {task.name}", list(task.introduced)) for task in header.tasks]
    of_tasks = {name for _, names in groups for name in names}
    rest = [entry for entry in header.classes if entry.name not in of_tasks]
    return [*groups, *((role, names) for role in _ROLES if (names := [cls.name for cls in rest if cls.role == role]))]


def _loading(repository: str, tag: str, configs: Configs) -> str:
    """Return the lines of Python that load the first split; ``""`` if no table has a row."""
    if not configs:
        return ""
    name, splits = next(iter(configs.items()))
    return (
        "from datasets import load_dataset\n\n"
        f'rows = load_dataset("{repository}", "{name}", split="{next(iter(splits))}", revision="{tag}")'
    )


def _parameter_text(value: ParameterValue) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
    if len(text) > _LONGEST_VALUE:
        return f"{text[:_LONGEST_VALUE]}… ({len(text):,} characters)"
    return text or "none"


def _columns(tables: Sequence[PlannedTable]) -> list[tuple[str, str, str]]:
    """Return name, type and meaning of each column of a part; empty if no table has a row."""
    table = next((candidate for candidate in tables if not candidate.empty), None)
    schema = () if table is None else table.schema
    return [(field.name, _kind(field.type), COLUMNS.get(field.name, "")) for field in schema]


def _kind(kind: pa.DataType) -> str:
    from pyarrow import types

    if types.is_list(kind):
        return "list of records" if types.is_struct(kind.value_type) else f"list of {_kind(kind.value_type)}s"
    if types.is_struct(kind):
        return "photo"
    return "text" if types.is_string(kind) else "number" if types.is_integer(kind) else str(kind)
