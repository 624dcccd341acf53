"""``--source NAME=PATH`` for every verb that reads raw datasets."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation.errors import MissingFileError, UsageError

if TYPE_CHECKING:
    from curation.manifest.header import Header
    from curation.protocols.protocol import SourceSlot
    from curation.sources.source import Source


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--source``, ``--bad-boxes`` and ``--no-cache`` to a verb."""
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="a raw dataset: its root, an annotation file, or a table; NAME is a source of the protocol, or a dataset "
        "whose root holds several of them (repeatable)",
    )
    parser.add_argument(
        "--bad-boxes",
        choices=("error", "drop"),
        default="error",
        help="what to do with boxes that are not finite, negative or beyond any image (dropped ones are counted)",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="parse annotation files again, and store nothing"
    )


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return the ``NAME=VALUE`` arguments of an option by name; a malformed or repeated one is a `UsageError`."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} needs NAME=VALUE", where=text[:200])
        if name in given:
            raise UsageError(f"{option} names {name!r} twice", where=text[:200])
        given[name] = value
    return given


def slots_of(header: Header) -> tuple[SourceSlot, ...]:
    """Return the sources of a manifest as slots, none of them required."""
    from curation.protocols.protocol import SourceSlot

    return tuple(
        SourceSlot(entry.name, entry.dataset, entry.part, False, entry.note) for entry in header.sources
    )


def open_sources(options: argparse.Namespace, slots: Sequence[SourceSlot]) -> dict[str, Source]:
    """Return the sources given on the command line, by slot name.

    A dataset's name stands for all its slots: of a root, those that it offers; of a file, the one that the file is.

    Raises
    ------
    UsageError
        A name is neither a slot nor a dataset.
    """
    given = pairs(options.source, "--source")
    names = [slot.name for slot in slots]
    datasets = list(dict.fromkeys(slot.dataset for slot in slots))
    for name in given:
        if name not in (*names, *datasets):
            raise UsageError(
                "There is no such source here",
                where=f"--source {name}",
                expected=", ".join(names),
                hint="curation list",
            )
    opened: dict[str, Source] = {}
    for slot in slots:
        if slot.name in given:
            opened[slot.name] = _open(options, slot, given[slot.name])
    for dataset in datasets:
        if dataset in given and dataset not in names:
            opened |= _expand(
                options, [slot for slot in slots if slot.dataset == dataset], given[dataset], opened
            )
    return opened


def require(slots: Sequence[SourceSlot], opened: Mapping[str, Source], command: str) -> None:
    """Raise `UsageError` with the whole command line when a required source is not given."""
    missing = [slot for slot in slots if slot.required and slot.name not in opened]
    if missing:
        needed = " ".join(f"--source {slot.name}=PATH" for slot in slots if slot.required)
        raise UsageError(
            f"A source is missing: {', '.join(f'{slot.name} ({slot.meaning})' for slot in missing)}",
            expected=needed,
            found=", ".join(opened) or "none",
            hint=f"{command} {needed} --out DIR",
        )


def _expand(
    options: argparse.Namespace, slots: Sequence[SourceSlot], path: str, opened: Mapping[str, Source]
) -> dict[str, Source]:
    free = [slot for slot in slots if slot.name not in opened]
    if not Path(path).is_dir():
        # A file is one part: the required one, or the only one that is left.
        free = [slot for slot in free if slot.required][:1] or free[:1]
    found: dict[str, Source] = {}
    for slot in free:
        try:
            found[slot.name] = _open(options, slot, path)
        except MissingFileError:
            if slot.required or len(free) == 1:
                raise
    return found


def _open(options: argparse.Namespace, slot: SourceSlot, path: str) -> Source:
    from curation.sources.opening import open_source

    return open_source(
        Path(path),
        dataset=slot.dataset,
        part=slot.part,
        cache=not options.no_cache,
        bad_boxes=options.bad_boxes,
    )
