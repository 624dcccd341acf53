"""The dataset card: ``README.md`` with the configs for `datasets`, and what a reader must know, in words and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from curation.pages import block, code, plain, table
from curation.publishing.card_sections import manifest_section
from curation.publishing.member import PARTS_CONFIG, Member

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LARGEST = "1M<n<10M"
HUB = "https://huggingface.co/datasets/"
"""The public address of a repository, whichever endpoint it was pushed to."""

Configs = Mapping[str, Mapping[str, str]]
"""Path of the table of each split, by config."""


def card_text(repository: str, tag: str, members: Sequence[Member], configs: Configs) -> str:
    """Return the card of a repository.

    Parameters
    ----------
    configs : mapping of str to mapping of str to str
        By config and split, the path of the table; the first is the default.
    """
    header = yaml.safe_dump(
        card_data(repository, members, configs),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1000,
    )
    lines = [*_head(repository, tag, members), *_loading(repository, tag, configs)]
    for member in members:
        lines += manifest_section(member)
    lines += [*_verifying(repository, tag, members), *_citation(members)]
    return f"---\n{header}---\n\n" + "\n".join(lines).rstrip("\n") + "\n"


def card_data(repository: str, members: Sequence[Member], configs: Configs) -> dict[str, Any]:
    """Return the YAML header of the card as plain data."""
    kinds = {member.manifest.header.taxonomy == "OSC" for member in members}
    tasks = [
        name
        for name, wanted in (("object-detection", False), ("image-classification", True))
        if wanted in kinds
    ]
    return {
        "pretty_name": title_of(members),
        # The lists are facts; labels and photos have the terms of their sources, which no one identifier names.
        "license": "other",
        "license_name": "per-source",
        # A hub takes an address here, or a file called LICENSE.
        "license_link": HUB + repository,
        "task_categories": tasks,
        "tags": ["open-set", "out-of-distribution", "evaluation", "croissant"],
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


def title_of(members: Sequence[Member]) -> str:
    """Return the title of a publication: that of its manifest, or how many there are."""
    titles = [" ".join(member.manifest.header.title.split()) for member in members]
    return titles[0] if len(titles) == 1 else f"{len(titles)} protocols of open-set evaluation"


def _size(images: int) -> str:
    return next((name for limit, name in _SIZES if images < limit), _LARGEST)


def _head(repository: str, tag: str, members: Sequence[Member]) -> list[str]:
    rows = [
        (
            code(member.config),
            code(f"{one.name} {one.version}"),
            plain(one.title),
            plain(one.taxonomy),
            plain(one.origin),
        )
        for member in members
        for one in (member.manifest.header,)
    ]
    photos = (
        "Photos are in the tables."
        if any(member.photos is not None for member in members)
        else "There are no photos here: the ids lead to the photos of the datasets themselves, on your own disk."
    )
    return [
        f"# {plain(title_of(members))}",
        "",
        f"Lists of images for open-set and out-of-distribution evaluation: {code(repository)}, version {code(tag)}. A "
        "manifest says which images a part has, which role each class plays, the rule that made the lists, and the "
        f"digests of all of it. {photos}",
        "",
        *table(("config", "manifest", "title", "taxonomy", "origin"), rows),
    ]


def _loading(repository: str, tag: str, configs: Configs) -> list[str]:
    if not configs:
        return []
    name, splits = next(iter(configs.items()))
    split = next(iter(splits))
    lines = [
        "from datasets import load_dataset",
        "",
        f'rows = load_dataset("{repository}", "{name}", split="{split}", revision="{tag}")',
    ]
    return [
        "## Load",
        "",
        *block("\n".join(lines), "python"),
        f"The config {code(PARTS_CONFIG)} lists the parts of all manifests, also those whose lists are not here.",
        "",
    ]


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
    lines.append(
        f"curation verify {manifest}{_source_options(one.name for one in header.sources if one.name in used)}"
    )
    for part in [one for one in header.parts if one.name in member.splits or not member.splits][:1]:
        options = f"--part {part.name} --format coco{_source_options(part.sources)} --out {part.name}.json"
        lines.append(f"curation export {manifest} {options}")
    return lines


def _verifying(repository: str, tag: str, members: Sequence[Member]) -> list[str]:
    return [
        "## Verify and use",
        "",
        "`publication.json` has the SHA-256 of every file, `croissant.json` those of the tables and manifests, and "
        "each `manifest.json` the digests of its id lists. Pulling checks all of them; `verify` checks a manifest "
        "against your own raw data; `export` writes a part for a detector.",
        "",
        *block("\n".join(_commands(repository, tag, members)), "text"),
    ]


def _source_options(names: Iterable[str]) -> str:
    return "".join(f" --source {name}=PATH" for name in names)


def _citation(members: Sequence[Member]) -> list[str]:
    entries = dict.fromkeys(member.manifest.header.paper.bibtex for member in members)
    return ["## Citation", "", *(line for entry in entries for line in block(entry, "bibtex"))]
