"""``curation import``: an authors' published lists, held against the digests that a committed header pins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import NEW_MANIFEST
from curation.errors import CurationError

if TYPE_CHECKING:
    from curation.manifest.header import Header
    from curation.manifest.manifest import Manifest


@dataclass(frozen=True)
class Options:
    """Complete a manifest of published lists from the authors' files.

    Attributes
    ----------
    header
        a manifest of published lists without them: a folder, or NAME@VERSION of one at hand
    lists
        the authors' files, found by name, subfolders included
    out
        folder of the new manifest
    header_only
        make the header instead, digests and counts without ids; HEADER is then the name of a recipe,
        such as owod/reowod-published
    """

    header: str
    _: KW_ONLY
    lists: Annotated[Path, "DIR"]
    out: Annotated[Path, NEW_MANIFEST, "DIR"]
    header_only: bool = False


def run(options: Options) -> Answer:
    """Import, write and report; nothing is written unless every file and every list is the pinned one."""
    from curation.manifest.store import write_manifest

    manifest = _pinned(options) if options.header_only else _imported(options)
    write_manifest(manifest, options.out)
    return _answer(manifest, options)


def _pinned(options: Options) -> Manifest:
    from curation.benchmarks.registry import find_recipe
    from curation.manifest.importing import pin_lists
    from curation.manifest.manifest import Manifest

    draft = find_recipe(options.header)()
    return Manifest(header=pin_lists(draft, options.lists).header, lists={})


def _imported(options: Options) -> Manifest:
    from curation.manifest.importing import import_lists
    from curation.manifest.locate import load_manifest

    published = load_manifest(options.header)
    return import_lists(published.header, options.lists, others=_others(options.header))


def _others(target: str) -> Iterator[Header]:
    """Yield the headers of all manifests at hand, and of those beside the target."""
    from curation.manifest.locate import find_manifest, manifest_folders, manifest_roots
    from curation.manifest.store import read_manifest

    beside = find_manifest(target).resolve().parents[1]
    for folder in manifest_folders(manifest_roots([beside])).values():
        try:
            yield read_manifest(folder).header
        except CurationError:
            # A damaged manifest nearby is no reason to keep silent about the list that was asked for.
            continue


def _answer(manifest: Manifest, options: Options) -> Answer:
    from curation.cli.manifest_tables import figure_table, manifest_data

    header = manifest.header
    rows = tuple(
        (
            part.name,
            str(header.rule.parameters[part.name]),
            f"{part.images or 0:,}",
            f"{part.repeats:,}" if part.repeats else "-",
            (part.sha256 or "")[:19],
        )
        for part in header.parts
    )
    columns = ("part", "published list", "lines", "repeats", "digest")
    lines = [f"{header.name} {header.version}  {manifest.digest}", ""]
    lines += table_lines(Table("Lists", columns, rows))
    lines += table_lines(figure_table(header.figures)) if header.figures else []
    what = (
        "every file and every list is the one that the header pins" if manifest.lists else "the header alone"
    )
    lines += [f"written to {options.out}: {what}", f"next: curation verify {options.out} --source NAME=PATH"]
    data = {"folder": str(options.out), "lists": len(manifest.lists), **manifest_data(manifest)}
    return Answer(data, lines)
