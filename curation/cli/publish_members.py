"""What ``curation publish`` publishes of each manifest: its sources, licences, photos, evidence, and tables."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation.cli.output import printable
from curation.cli.source_options import open_sources, pairs, slots_of
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.decisions.decision import Decision
    from curation.manifest.manifest import Manifest
    from curation.publishing.member import Member
    from curation.publishing.tables import PlannedTable
    from curation.sources.photos import PhotoFolder


def members_of(options: argparse.Namespace, manifests: Sequence[Manifest]) -> list[Member]:
    """Return what is published of each manifest, by the options of the command line."""
    from curation.publishing.member import Member, config_names, published_lists

    configs = config_names([manifest.header for manifest in manifests])
    known = {entry.name for manifest in manifests for entry in manifest.header.sources}
    licences = _of_sources(pairs(options.licence, "--licence"), known, "--licence")
    photos = _photo_folders(options, known)
    _require_known_sources(options.source, manifests)
    return [
        Member(
            manifest=published_lists(manifest),
            config=config,
            sources=open_sources(_own_sources(options, manifest), slots_of(manifest.header)),
            evidence=evidence,
            licences=licences,
            photos=photos,
        )
        for manifest, config, evidence in zip(manifests, configs, _evidence(options, manifests), strict=True)
    ]


def _own_sources(options: argparse.Namespace, manifest: Manifest) -> argparse.Namespace:
    """Return the options with those sources alone that a manifest knows."""
    names = {name for entry in manifest.header.sources for name in (entry.name, entry.dataset)}
    own = [text for text in options.source if _source_name(text) in names]
    return argparse.Namespace(**{**vars(options), "source": own})


def _require_known_sources(texts: Sequence[str], manifests: Sequence[Manifest]) -> None:
    entries = [entry for manifest in manifests for entry in manifest.header.sources]
    names = {name for entry in entries for name in (entry.name, entry.dataset)}
    for text in texts:
        if "=" in text and _source_name(text) not in names:
            raise UsageError(
                "There is no such source here",
                where=f"--source {printable(text[:100])}",
                expected=", ".join(dict.fromkeys(entry.name for entry in entries)),
            )


def _source_name(text: str) -> str:
    return text.partition("=")[0].partition("@")[0]


def _of_sources(given: Mapping[str, str], known: set[str], option: str) -> Mapping[str, str]:
    if strange := sorted(set(given) - known):
        raise UsageError(
            f"{option} names no source of these manifests",
            where=printable(strange[0][:80]),
            expected=", ".join(sorted(known)),
        )
    return given


def _photo_folders(options: argparse.Namespace, known: set[str]) -> dict[str, PhotoFolder] | None:
    from curation.sources.photos import PhotoFolder

    if options.media is None:
        return None
    texts = [text if text.partition("=")[0] in known else f"={text}" for text in options.media]
    folders = {text.partition("=")[0]: PhotoFolder(Path(text.partition("=")[2])) for text in texts}
    if len(folders) < len(texts):
        raise UsageError("--media names two folders for one source", found=", ".join(options.media)[:200])
    return folders


def _evidence(
    options: argparse.Namespace, manifests: Sequence[Manifest]
) -> list[tuple[Decision, ...] | None]:
    """Return the decisions behind each manifest, None where none are given; those given belong to one of them."""
    from curation.cli.decision_options import read_files
    from curation.errors import PublishError
    from curation.publishing.member import evidence_of

    if not options.decisions:
        return [None] * len(manifests)
    rows = [row for file in read_files(options.decisions) for row in file.decisions]
    found: list[tuple[Decision, ...] | None] = []
    refused: PublishError | None = None
    for manifest in manifests:
        try:
            found.append(evidence_of(manifest, rows))
        except PublishError as error:
            refused = error
            found.append(None)
    if refused is not None and not any(found):
        raise refused
    return found


def tables_of(options: argparse.Namespace, members: Sequence[Member]) -> list[PlannedTable]:
    """Return the tables of all parts, in the layout that was asked for."""
    given = (options.class_tree, options.class_names)
    if options.layout == "curation":
        if any(one is not None for one in given):
            raise UsageError("--class-tree and --class-names belong to --layout findmeifyoucan")
        from curation.publishing.tables import part_tables

        return [table for member in members for table in part_tables(member)]
    from curation.benchmarks.findmeifyoucan.categories import open_images_categories
    from curation.benchmarks.findmeifyoucan.layout import findmeifyoucan_tables

    if (given[0] is None) != (given[1] is None):
        raise UsageError("--class-tree FILE and --class-names FILE go together")
    categories = open_images_categories(*given) if given[0] is not None else ()
    return [table for member in members for table in findmeifyoucan_tables(member, categories)]
