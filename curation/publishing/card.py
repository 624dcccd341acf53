"""The dataset card: ``README.md`` with the configs for `datasets`, and what a reader must know, in words and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from curation.errors import MissingExtraError, PublishError
from curation.manifest.diff import diff_manifests
from curation.manifest.header import Header, ParameterValue, PartEntry, classes_in
from curation.pages import page
from curation.publishing import rai
from curation.publishing.examples import ExamplePhoto, ExampleRow
from curation.publishing.findings import Audit
from curation.publishing.licences import STATED
from curation.publishing.member import PARTS_CONFIG, Member
from curation.publishing.papers import links
from curation.publishing.picture import ROLES, facts_of, picture_path
from curation.sources.datasets import family
from curation.text_table import tex

_SIZES = tuple(
    (10**place, name)
    for place, name in zip(
        range(3, 13),
        ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B",
         "10B<n<100B", "100B<n<1T"),
        strict=True,
    )
)  # fmt: skip
_LARGEST = "n>1T"
HUB = "https://huggingface.co/datasets/"
"""The public address of a repository, whichever endpoint it was pushed to."""

Configs = Mapping[str, Mapping[str, str]]
"""Path of the table of each split, by config."""

_ORIGINS = {
    "regenerated": "The rule made the lists from the raw data.",
    "as_published": "The lists are the authors' own. The manifest states their digests; the lists are not passed on, "
    "since no licence for them is stated: `curation import` completes the manifest from the authors' files.",
    "reviewed": "Recorded decisions of reviewers corrected the lists.",
    "declared": "Not every list is among the files: the manifest states the rule, the paper's figures and the digests "
    "that are known, and `curation build` completes it from your own raw data.",
}
_LONGEST_VALUE = 160
_FOLDED = 40
"""Names of classes from which on a list of them is folded."""
_MOST_CHANGES = 20
_NOT_FOR = (
    "Not for training or tuning on the parts for testing, for telling who or where somebody is, or for a claim on "
    "classes and images other than these. A score belongs to the manifest's digest, and to no other list of its name."
)


@dataclass(frozen=True, slots=True)
class Results:
    """Results that a card shows: the file of records as it is, and its tables as Markdown."""

    data: bytes
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """What a card tells beside its manifests.

    Attributes
    ----------
    statements : mapping of str to text, texts or bool
        On responsible use (see `curation.publishing.rai`).
    audits : mapping of str to Audit
        By the digest of a manifest.
    results : Results or None
    row : ExampleRow or None
    photos : mapping of str to sequence of ExamplePhoto
        By config.
    """

    statements: Mapping[str, rai.Statement] = field(default_factory=dict)
    audits: Mapping[str, Audit] = field(default_factory=dict)
    results: Results | None = None
    row: ExampleRow | None = None
    photos: Mapping[str, Sequence[ExamplePhoto]] = field(default_factory=dict)


def card_text(
    repository: str, tag: str, members: Sequence[Member], configs: Configs, told: Told | None = None, date: str = ""
) -> str:
    """Return the card of a repository.

    Parameters
    ----------
    configs : mapping of str to mapping of str to str
        By config and split, the path of the table; the first is the default.
    told : Told, optional
    date : str
        Of publication, ISO 8601; ``""`` for none.
    """
    told = told or Told()
    stated = {**rai.derived(members), **told.statements}
    head = card_data(repository, members, configs)
    check_card_data(head)
    data = yaml.safe_dump(
        head,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1000,
    )
    text = page(
        "card.md",
        data=data,
        title=title_of(members),
        repository=repository,
        tag=tag,
        members=members,
        loading=_loading(repository, tag, configs),
        commands="\n".join(_commands(repository, tag, members)),
        parts_config=PARTS_CONFIG,
        told=told,
        stated=lambda name: _texts(stated.get(name)),
        limits=_limits(members, _texts(stated.get("dataLimitations"))),
        differing=sum(one.paper != one.obtained for member in members for one in member.manifest.header.figures),
        not_for=_NOT_FOR,
        hub=HUB,
        papers={paper: links(paper) for paper in dict.fromkeys(one.manifest.header.paper for one in members)},
        picture_path=picture_path,
        alt=lambda header: facts_of(header).alt(),
        class_groups=_class_groups,
        folded=_FOLDED,
        changes=changes_of,
        most_changes=_MOST_CHANGES,
        own_bibtex=own_bibtex(repository, tag, members, date),
        origins=_ORIGINS,
        spdx=STATED,
        class_roles=_class_roles,
        shown=_shown,
    )
    return text.rstrip("\n") + "\n"


def card_data(repository: str, members: Sequence[Member], configs: Configs) -> dict[str, Any]:
    """Return the YAML header of the card as plain data."""
    kinds = {member.manifest.header.taxonomy == "OSC" for member in members}
    tasks = [name for name, wanted in (("object-detection", False), ("image-classification", True)) if wanted in kinds]
    return {
        "pretty_name": title_of(members),
        # The lists are facts; labels and photos have the terms of their sources, which no one identifier names.
        "license": "other",
        "license_name": "per-source",
        # A hub takes an address here, or a file called LICENSE.
        "license_link": HUB + repository,
        "language": ["en"],
        **_where_known("annotations_creators", (who for one in members for who in _annotators(one))),
        **_where_known(
            "source_datasets", (_plain_name(e.dataset) for one in members for e in one.manifest.header.sources)
        ),
        "task_categories": tasks,
        **({"task_ids": ["multi-class-image-classification"]} if True in kinds else {}),
        "tags": keywords(members),
        "size_categories": [_size(sum(len(ids) for one in members for ids in one.manifest.lists.values()))],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if place == 0 else {}),
                "data_files": [{"split": split, "path": path} for split, path in splits.items()],
            }
            for place, (name, splits) in enumerate(configs.items())
        ],
    }


def _where_known(key: str, values: Iterable[str]) -> dict[str, list[str]]:
    found = list(dict.fromkeys(one for one in values if one))
    return {key: found} if found else {}


def _annotators(member: Member) -> Iterator[str]:
    for terms in member.terms().values():
        yield from terms.annotators


def _plain_name(dataset: str) -> str:
    return dataset if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}", dataset) else ""


_CREATORS = ("crowdsourced", "found", "expert-generated", "machine-generated", "no-annotation", "other")
_LISTS = ("annotations_creators", "language", "source_datasets", "tags", "task_categories", "task_ids")
_KNOWN = ("pretty_name", "license", "license_name", "license_link", "size_categories", "configs", *_LISTS)
_ALLOWED: Mapping[str, Sequence[str]] = {
    "annotations_creators": _CREATORS,
    "task_categories": ("object-detection", "image-classification"),
    "task_ids": ("multi-class-image-classification",),
    "size_categories": (*(name for _, name in _SIZES), _LARGEST),
}


def check_card_data(data: Mapping[str, Any]) -> None:
    """Raise `PublishError` unless a hub reads the YAML header of a card as it is meant.

    The hub's client looks at types alone: what a hub does with a value that is none of its own is tell nobody.

    Raises
    ------
    MissingExtraError
        huggingface_hub is not installed.
    """
    try:
        from huggingface_hub import DatasetCardData
    except ImportError:
        raise MissingExtraError("Publishing needs huggingface_hub", hint="pip install 'curation[publish]'") from None
    wrong = [name for name in data if name not in _KNOWN]
    wrong += [name for name in ("pretty_name", "license", "task_categories", "tags") if not data.get(name)]
    wrong += [] if isinstance(data.get("configs"), list) else ["configs"]
    for name in _LISTS:
        values = data.get(name, [])
        if not (isinstance(values, list) and all(isinstance(one, str) and one for one in values)):
            wrong.append(name)
    wrong += [name for name, allowed in _ALLOWED.items() if set(data.get(name, ())) - set(allowed)]
    if data.get("license") == "other" and not (data.get("license_name") and data.get("license_link")):
        wrong.append("license_name, license_link")
    configs = data.get("configs") or []
    names = [one.get("config_name") for one in configs]
    if len(set(names)) < len(names) or sum(bool(one.get("default")) for one in configs) > 1:
        wrong.append("configs")
    if not wrong and _as_read(DatasetCardData(**data)) != dict(data):
        wrong.append("what the hub's client makes of it")
    if wrong:
        raise PublishError(
            "The header of the card is not one that a hub reads", where="README.md", found=", ".join(wrong)
        )


def _as_read(data: Any) -> Any:
    return data.to_dict()


def own_bibtex(repository: str, tag: str, members: Sequence[Member], date: str = "") -> str:
    """Return the BibTeX entry of a publication: version, address and the digests of its manifests."""
    owner, _, name = repository.partition("/")
    digests = [f"{m.manifest.header.name} {m.manifest.header.version}, {m.manifest.digest}" for m in members]
    fields = {
        "title": f"{{{tex(title_of(members))}}}",
        "author": f"{{{tex(owner)}}}",
        **({"year": date[:4]} if date else {}),
        "version": tag,
        "publisher": "Hugging Face",
        "url": f"{HUB}{repository}/tree/{tag}",
        "note": tex("; ".join(digests)),
    }
    key = re.sub(r"[^A-Za-z0-9]+", "_", f"{name}_{tag}")
    return "\n".join([f"@misc{{{key},", *(f"  {key} = {{{value}}}," for key, value in fields.items()), "}"])


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the version that a manifest replaces.

    Attributes
    ----------
    rows : list of (str, str, str, str, str)
        A part, its images before and now, and how many were added and removed (``?`` where a list is not available).
    told : list of (str, str)
        Other differences: what, and how it differs.
    """

    rows: list[tuple[str, str, str, str, str]]
    told: list[tuple[str, str]]


def changes_of(member: Member) -> Changes | None:
    """Return what changed since the version that a manifest replaces, None where that one is not available."""
    if member.previous is None:
        return None
    old, new = member.previous, member.manifest
    found = diff_manifests(old, new)
    moved = {one.name: (f"{len(one.added):,}", f"{len(one.removed):,}") for one in found.parts}
    before, after = ({part.name: part for part in one.header.parts} for one in (old, new))
    rows = []
    for name in dict.fromkeys((*after, *before)):
        same = name in before and name in after and before[name].sha256 == after[name].sha256 is not None
        added, removed = ("0", "0") if same else moved.get(name, ("?", "?"))
        if name not in before and name in new.lists:
            added, removed = f"{len(new.lists[name]):,}", "0"
        if name not in after and name in old.lists:
            added, removed = "0", f"{len(old.lists[name]):,}"
        rows.append((name, _images(before, name), _images(after, name), added, removed))
    # What the rows count is not told once more.
    told = [(one.subject, one.what) for one in found.changes if one.ids is None or one.ids.reordered]
    return Changes(rows, told)


def _images(parts: Mapping[str, PartEntry], name: str) -> str:
    if name not in parts:
        return "no such part"
    images = parts[name].images
    return "not computed" if images is None else f"{images:,}"


def _texts(value: rai.Statement | None) -> tuple[str, ...]:
    return () if value is None or isinstance(value, bool) else value if isinstance(value, tuple) else (value,)


def _limits(members: Sequence[Member], texts: Sequence[str]) -> list[str]:
    """Return the limits that the card does not tell elsewhere: notes have a section of their own, figures a table."""
    headers = [member.manifest.header for member in members]
    told = {f"{one.name} {one.version}: {note}" for one in headers for note in one.notes}
    figures = tuple(f"{one.name} {one.version}: {figure.name} is " for one in headers for figure in one.figures)
    return [text for text in texts if text not in told and not (figures and text.startswith(figures))]


def _class_groups(header: Header) -> list[tuple[str, list[str]]]:
    """Return the names of classes by role, or by the task that introduces them and then by role."""
    groups = [(f"introduced in {task.name}", list(task.introduced)) for task in header.tasks]
    of_tasks = {name for _, names in groups for name in names}
    rest = [one for one in header.classes if one.name not in of_tasks]
    return [*groups, *((role, names) for role in ROLES if (names := [one.name for one in rest if one.role == role]))]


def keywords(members: Sequence[Member]) -> list[str]:
    """Return the words that a publication is found by: the field's, its protocols, and its datasets."""
    headers = [member.manifest.header for member in members]
    protocols = sorted({header.rule.protocol for header in headers})
    data = sorted({family(entry.dataset) for header in headers for entry in header.sources})
    fixed = ("open-set", "out-of-distribution", "evaluation", "benchmark", "image", "croissant", "mlcroissant")
    return list(dict.fromkeys([*fixed, *protocols, *data]))


def title_of(members: Sequence[Member]) -> str:
    """Return the title of a publication: that of its manifest, or how many there are."""
    titles = [" ".join(member.manifest.header.title.split()) for member in members]
    return titles[0] if len(titles) == 1 else f"{len(titles)} protocols of open-set evaluation"


def _size(images: int) -> str:
    return next((name for limit, name in _SIZES if images < limit), _LARGEST)


def _loading(repository: str, tag: str, configs: Configs) -> str:
    """Return the lines of Python that load the first split, empty where no table has a row."""
    if not configs:
        return ""
    name, splits = next(iter(configs.items()))
    return (
        "from datasets import load_dataset\n\n"
        f'rows = load_dataset("{repository}", "{name}", split="{next(iter(splits))}", revision="{tag}")'
    )


def _class_roles(header: Header, part: PartEntry) -> Mapping[str, int]:
    return Counter(one.role for one in classes_in(header, part))


def _shown(value: ParameterValue) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
    if len(text) > _LONGEST_VALUE:
        return f"{text[:_LONGEST_VALUE]}… ({len(text):,} characters)"
    return text or "none"


def _commands(repository: str, tag: str, members: Sequence[Member]) -> list[str]:
    member = next((one for one in members if one.splits), members[0])
    header = member.manifest.header
    manifest = "pulled" if len(members) == 1 else f"pulled/{member.folder}"
    lines = ["pip install 'curation[publish]'", f"curation pull {repository}@{tag} --out pulled"]
    if not member.splits:
        # Without a list there is nothing yet to verify or to export.
        from_lists = f"import {manifest} --lists DIR"
        from_data = f"build {manifest}{_source_options(one.name for one in header.sources)}"
        made = from_lists if header.origin == "as_published" else from_data
        lines.append(f"curation {made} --out complete")
        manifest = "complete"
    used = {name for part in header.parts for name in part.sources}
    lines.append(f"curation verify {manifest}{_source_options(one.name for one in header.sources if one.name in used)}")
    for part in [one for one in header.parts if one.name in member.splits or not member.splits][:1]:
        options = f"--part {part.name} --format coco{_source_options(part.sources)} --out {part.name}.json"
        lines.append(f"curation export {manifest} {options}")
    return lines


def _source_options(names: Iterable[str]) -> str:
    return "".join(f" --source {name}=PATH" for name in names)
