"""The dataset card: ``README.md`` with the configs for `datasets`, and what a reader must know, in words and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from curation.manifest.header import Header, ParameterValue, PartEntry, classes_in
from curation.pages import page
from curation.publishing.licences import STATED
from curation.publishing.member import PARTS_CONFIG, Member
from curation.sources.datasets import family

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LARGEST = "1M<n<10M"
HUB = "https://huggingface.co/datasets/"
"""The public address of a repository, whichever endpoint it was pushed to."""

Configs = Mapping[str, Mapping[str, str]]
"""Path of the table of each split, by config."""

_ORIGINS = {
    "regenerated": "The rule made the lists from the raw data.",
    "as_published": "The lists are the authors' own. Their digests are pinned here; the lists are not passed on, since "
    "no licence for them is stated: `curation import` completes the manifest from the authors' files.",
    "reviewed": "Recorded decisions of reviewers corrected the lists.",
    "declared": "Part of the lists is not at hand: the header pins the rule, the paper's figures and the digests that "
    "are known, and `curation build` completes it from your own raw data.",
}
_LONGEST_VALUE = 160


def card_text(repository: str, tag: str, members: Sequence[Member], configs: Configs) -> str:
    """Return the card of a repository.

    Parameters
    ----------
    configs : mapping of str to mapping of str to str
        By config and split, the path of the table; the first is the default.
    """
    data = yaml.safe_dump(
        card_data(repository, members, configs),
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
        "task_categories": tasks,
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
    lines = [f"curation pull {repository}@{tag} --out pulled"]
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
