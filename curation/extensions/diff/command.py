"""``curation diff``: two manifests as sets and roles, with the version step; or two results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.output import Answer, Line, Table, counted_examples

if TYPE_CHECKING:
    from curation.manifest.diff import ManifestDiff
    from curation.manifest.manifest import Manifest


GROUP = "Lists"
SUMMARY = "compare two manifests, or two results"


def run(
    old: Annotated[str, "OLD"], new: Annotated[str, "NEW"], /, *, ids: bool = False, exit_code: bool = False
) -> Answer:
    """Print what differs: of two manifests (none, patch, minor or major), or of two results.

    Parameters
    ----------
    old
        the older manifest: a folder or NAME@VERSION; a result: the folder of --out, or its results.json
    new
        the newer one
    ids
        with --json: every id added or removed, not only counts
    exit_code
        exit with 1 where the two differ
    """
    from curation.extensions.diff.results import are_results, diff_results
    from curation.manifest.diff import diff_manifests
    from curation.manifest.locate import load_manifest

    if are_results(old, new):
        result = diff_results(old, new)
        return Answer(result.data, result.lines(), int(exit_code and result.changed > 0))
    before, after = load_manifest(old), load_manifest(new)
    difference = diff_manifests(before, after)
    status = int(exit_code and difference.verdict != "none")
    return Answer(_data(before, after, difference, with_ids=ids), _lines(before, after, difference), status)


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
        "changes": [{"step": row.step, "subject": row.subject, "what": row.what} for row in difference.changes],
    }


def _lines(old: Manifest, new: Manifest, difference: ManifestDiff) -> list[Line]:
    lines: list[Line] = [f"old  {' '.join(_identity(old).values())}", f"new  {' '.join(_identity(new).values())}", ""]
    changed = [part for part in difference.parts if part.added or part.removed or part.reordered]
    if changed:
        rows = tuple(
            (
                part.name,
                counted_examples(part.added),
                counted_examples(part.removed),
                ", ".join(f"{count} to {target}" for target, count in part.moved_to.items()),
            )
            for part in changed
        )
        lines += [Table("Lists", ("part", "added", "removed", "moved"), rows)]
    if difference.changes:
        changes = tuple((row.step, row.subject, row.what) for row in difference.changes)
        lines += [Table("Changes", ("step", "of", "what"), changes)]
    step = f"; the version numbers say {difference.stated_step}" if difference.stated_step else ""
    return [*lines, f"verdict: {difference.verdict} ({difference.reason}){step}"]


def _identity(manifest: Manifest) -> dict[str, str]:
    return {"name": manifest.header.name, "version": manifest.header.version, "digest": manifest.digest}
