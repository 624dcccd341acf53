"""``--source NAME=PATH`` for every verb that reads raw datasets."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation.errors import MissingFileError, UsageError

if TYPE_CHECKING:
    from curation.benchmarks.benchmark import SourceSlot
    from curation.manifest.header import Header
    from curation.sources.source import Source


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--source``, ``--bad-boxes``, ``--seam`` and ``--no-cache`` to a verb."""
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME[@PART]=PATH",
        help="a raw dataset: its root, an annotation file, or a table; NAME is a source of the protocol, or a dataset "
        "whose root holds several of them; PART chooses among the parts of a root or table (repeatable)",
    )
    parser.add_argument(
        "--bad-boxes",
        choices=("error", "drop"),
        default="error",
        help="what to do with boxes that are not finite, negative or beyond any image (dropped ones are counted)",
    )
    parser.add_argument(
        "--seam",
        choices=("drop", "split", "widest"),
        default="drop",
        help="what becomes of MTSD's signs across the seam of a panorama: left out, two objects, the wider of the two",
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
            raise UsageError(
                f"{option} needs NAME=VALUE",
                where=f"{option} {text[:200]}",
                found="no name" if not name or not equals else "no value",
            )
        if name in given:
            raise UsageError(f"{option} names {name!r} twice", where=text[:200])
        given[name] = value
    return given


def slots_of(header: Header) -> tuple[SourceSlot, ...]:
    """Return the sources of a manifest as slots, none of them required."""
    from curation.benchmarks.benchmark import SourceSlot

    return tuple(
        SourceSlot(entry.name, entry.dataset, entry.part, False, entry.note) for entry in header.sources
    )


def open_sources(options: argparse.Namespace, slots: Sequence[SourceSlot]) -> dict[str, Source]:
    """Return the sources given on the command line, by slot name.

    A dataset's name stands for all its slots: of a root, those that it offers; of a file, the one that the file is.
    ``NAME@PART`` says which part of the dataset is meant, where the slot takes any: ``--source coco@val2017=ROOT``.

    Raises
    ------
    UsageError
        A name is neither a slot nor a dataset, or a part is not the one that the slot takes.
    """
    given = _parts_and_paths(options.source)
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
            opened[slot.name] = _open(options, slot, *given[slot.name])
    for dataset in datasets:
        if dataset in given and dataset not in names:
            of_dataset = [slot for slot in slots if slot.dataset == dataset and slot.name not in opened]
            opened |= _expand(options, of_dataset, *given[dataset])
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


def _parts_and_paths(texts: Sequence[str]) -> dict[str, tuple[str, Path]]:
    given: dict[str, tuple[str, Path]] = {}
    for key, path in pairs(texts, "--source").items():
        name, _, part = key.partition("@")
        if name in given:
            raise UsageError(f"--source names {name!r} twice", where=key[:200])
        given[name] = (part, Path(path))
    return given


def _expand(
    options: argparse.Namespace, slots: Sequence[SourceSlot], part: str, path: Path
) -> dict[str, Source]:
    if part or not path.is_dir():
        # One part is meant: that of the option, else that of the file's name, else the required or only one left.
        named = [slot for slot in slots if slot.part == (part or _part_in_name(path))]
        left = [slot for slot in slots if slot.required] or list(slots)
        if not part and not named and len(left) > 1:
            raise UsageError(
                "The file is one part of its dataset, and its name does not say which",
                where=f"--source {left[0].dataset}={path}",
                expected=" or ".join(f"--source {slot.name}=PATH" for slot in left),
                found=path.name,
            )
        slots = (named if part else named or left)[:1]
    found: dict[str, Source] = {}
    for slot in slots:
        try:
            found[slot.name] = _open(options, slot, part, path)
        except MissingFileError:
            if slot.required or len(slots) == 1:
                raise
    if not found:
        raise UsageError(
            "The dataset has no such part here", where=f"--source …@{part}={path}", hint="curation list"
        )
    return found


def _open(options: argparse.Namespace, slot: SourceSlot, part: str, path: Path) -> Source:
    from curation.sources.opening import open_source

    if part and slot.part and part != slot.part:
        raise UsageError(
            f"Source {slot.name} is another part of its dataset",
            where=f"--source {slot.name}@{part}",
            expected=slot.part,
            found=part,
        )
    return open_source(
        path,
        dataset=slot.dataset,
        part=part or slot.part or _part_of(slot, path),
        cache=not options.no_cache,
        bad_boxes=options.bad_boxes,
        seam=options.seam,
    )


def _part_of(slot: SourceSlot, path: Path) -> str:
    """Return the part that a path stands for: named by the file, or the usual or only one of a root."""
    from curation.sources.opening import parts_at

    if not path.is_dir():
        return _part_in_name(path)
    offered = parts_at(path, slot.dataset)
    if slot.usual_part in offered:
        return slot.usual_part
    if len(offered) > 1:
        raise UsageError(
            "The root offers several parts",
            where=f"--source {slot.name}={path}",
            expected="one of them",
            found=", ".join(offered),
            hint=f"--source {slot.name}@{offered[0]}={path}",
        )
    return offered[0] if offered else slot.usual_part


def _part_in_name(path: Path) -> str:
    named = re.search(r"(?:^|_)((?:train|val|test)20[0-9]{2})(?=[_.]|$)", path.name)
    return named[1] if named else ""
