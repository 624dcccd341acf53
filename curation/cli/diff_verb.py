"""``curation diff``: two manifests as sets and roles, with the version step the difference deserves."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, counted_examples, emit, table_lines

if TYPE_CHECKING:
    from curation.manifest.diff import ManifestDiff
    from curation.manifest.manifest import Manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation diff``."""
    parser.add_argument("old", metavar="MANIFEST", help="the older manifest: a folder or NAME@VERSION")
    parser.add_argument("new", metavar="MANIFEST", help="the newer one")
    parser.add_argument(
        "--ids", action="store_true", help="with --json: every id added or removed, not only counts"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 where the two differ")
    parser.add_argument("--json", action="store_true", help="print the difference as JSON")


def run(options: argparse.Namespace) -> int:
    """Print what changed and the verdict: none, patch, minor or major."""
    from curation.manifest.diff import diff_manifests
    from curation.manifest.locate import load_manifest

    old, new = load_manifest(options.old), load_manifest(options.new)
    difference = diff_manifests(old, new)
    emit(
        _data(old, new, difference, with_ids=options.ids), _lines(old, new, difference), as_json=options.json
    )
    return int(options.exit_code and difference.verdict != "none")


def _data(old: Manifest, new: Manifest, difference: ManifestDiff, *, with_ids: bool) -> dict[str, Any]:
    return {
        "old": _identity(old),
        "new": _identity(new),
        "verdict": difference.verdict,
        "reason": difference.reason,
        "stated_step": difference.stated_step,
        "parts": [
            {
                "part": part.name,
                "added": list(part.added) if with_ids else len(part.added),
                "removed": list(part.removed) if with_ids else len(part.removed),
                "moved_to": part.moved_to,
                "reordered": part.reordered,
            }
            for part in difference.parts
        ],
        "changes": [
            {"step": one.step, "subject": one.subject, "what": one.what} for one in difference.changes
        ],
    }


def _lines(old: Manifest, new: Manifest, difference: ManifestDiff) -> list[str]:
    lines = [f"old  {' '.join(_identity(old).values())}", f"new  {' '.join(_identity(new).values())}", ""]
    changed = [part for part in difference.parts if part.added or part.removed or part.reordered]
    if changed:
        rows = tuple(
            (
                part.name,
                counted_examples(part.added),
                counted_examples(part.removed),
                ", ".join(f"{count} to {other}" for other, count in part.moved_to.items()),
            )
            for part in changed
        )
        lines += table_lines(Table("Lists", ("part", "added", "removed", "moved"), rows))
    if difference.changes:
        changes = tuple((one.step, one.subject, one.what) for one in difference.changes)
        lines += table_lines(Table("Changes", ("step", "of", "what"), changes))
    stated = f"; the version numbers say {difference.stated_step}" if difference.stated_step else ""
    return [*lines, f"verdict: {difference.verdict} ({difference.reason}){stated}"]


def _identity(manifest: Manifest) -> dict[str, str]:
    return {"name": manifest.header.name, "version": manifest.header.version, "digest": manifest.digest}
