"""Decisions from files: a summary, and their application to a manifest."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from curation.core.arguments import checked
from curation.core.errors import CurationWarning, DecisionError, UsageError
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.review.decisions.agreement import ListCount, StageAgreement, agreement, count_lists
from curation.review.decisions.application import (
    UNJUDGED,
    Application,
    Coverage,
    Staleness,
    Variant,
    apply_decisions,
    coverage_on,
    find_stale,
    parts_spoken_of,
)
from curation.review.decisions.decision import is_line, namespace_of_pool
from curation.review.decisions.files import DecisionFile, read_decision_files, write_decisions
from curation.review.decisions.resolution import Resolution, refuse_conflicts, resolve, standing_verdicts
from curation.review.decisions.verdict_tables import TableOptions, read_verdicts
from curation.sources.source_specs import Reading, Sources

NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class ConflictRule:
    """How to treat conflicting decisions.

    Attributes
    ----------
    rule
        where reviewers differ: refuse (default), follow the majority, or the most senior reviewer
    senior
        a reviewer who overrules those named later (repeatable; with --rule senior)
    allow_conflicts
        with --rule error: replay all contradicting verdicts, as the authors' code does
    """

    rule: Literal["error", "majority", "senior"] = "error"
    senior: tuple[Annotated[str, "NAME"], ...] = ()
    allow_conflicts: bool = False


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """What some decisions files say."""

    files: Sequence[DecisionFile]
    lists: Sequence[ListCount]
    resolution: Resolution
    agreement: Sequence[StageAgreement]
    staleness: Staleness | None
    allowed: bool
    coverage: Sequence[Coverage] = ()

    def problems(self) -> list[str]:
        """Return what ``--strict`` does not let pass."""
        problems = [note for file in self.files for note in file.notes()]
        open_ones = self.resolution.undecided or (() if self.allowed else self.resolution.both)
        problems += [f"open conflict: {conflict.text()}" for conflict in open_ones]
        return problems + (self.staleness.notes() if self.staleness else [])

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        files = [msgspec.to_builtins(replace(file, decisions=())) for file in self.files]
        return {
            "files": [{name: value for name, value in file.items() if name != "decisions"} for file in files],
            "lists": msgspec.to_builtins(self.lists),
            "resolution": self.resolution.data(),
            "agreement": msgspec.to_builtins(self.agreement),
            "staleness": msgspec.to_builtins(self.staleness),
            "coverage": {"note": UNJUDGED, "parts": [part.data() for part in self.coverage]},
            "problems": self.problems(),
        }

    @checked
    def save(self, path: Path | str) -> None:
        """Write the resolved decisions: ``.jsonl`` or ``.csv``.

        Raises
        ------
        DecisionError
            Verdicts contradict each other, and conflicts are not allowed.
        """
        if not self.allowed:
            refuse_conflicts(self.resolution.both)
        write_decisions(Path(path), self.resolution.decisions)


@checked
def report_decisions(
    files: tuple[Path, ...],
    /,
    *,
    manifest: Annotated[str | None, "M"] = None,
    rule: ConflictRule | None = None,
    table: TableOptions | None = None,
) -> DecisionReport:
    """Return what decisions say: counts, repeats, conflicts, agreement of reviewers, staleness.

    Parameters
    ----------
    files
        .jsonl or .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json; with --key any table
    manifest
        report decisions that do not fit this manifest, and how many of its images were judged
    """
    rule = rule or ConflictRule()
    held = load_manifest(manifest) if manifest else None
    read = read_verdicts(files, table or TableOptions(), partial(_namespace_in, held))
    rows = [row for file in read for row in file.decisions]
    resolution = resolve(rows, rule.rule, seniors=rule.senior, allow_conflicts=True)
    return DecisionReport(
        files=read,
        lists=count_lists(rows),
        resolution=resolution,
        agreement=agreement(standing_verdicts(rows)),
        staleness=find_stale(held, resolution.decisions) if held else None,
        allowed=rule.allow_conflicts,
        coverage=coverage_on(held, resolution) if held else (),
    )


def _namespace_in(manifest: Manifest | None, dataset: str) -> str:
    """Return the name space of a data set's ids: that of the parts that it means, else its own."""
    if manifest is not None:
        slots = {name for part in parts_spoken_of(manifest.header, dataset) for name in manifest.part(part).sources}
        namespaces = {source.namespace for source in manifest.header.sources if source.name in slots}
        if len(namespaces) == 1:
            return namespaces.pop()
    return namespace_of_pool(dataset)


@checked
def apply_from_files(
    manifest: str,
    /,
    *,
    decisions: tuple[Path, ...] = (),
    near: Annotated[Mapping[str, str] | str, "[DATASET=]PART"] = NOTHING,
    far: Annotated[Mapping[str, str] | str, "[DATASET=]PART"] = NOTHING,
    version: Annotated[str | None, "V"] = None,
    variant: Variant | None = None,
    name: str = "",
    reason: Annotated[str, "TEXT"] = "",
    strict: bool = False,
    rule: ConflictRule | None = None,
    sources: Sources = NOTHING,
    reading: Reading | None = None,
) -> Application:
    """Apply decisions to a manifest: a new version that records their digest.

    Parameters
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
    decisions
        .jsonl, .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json
    near
        the near part, for decisions on DATASET or for all; created if it does not exist
    far
        the far part, for decisions on DATASET or for all; created if it does not exist
    version
        of the new manifest: MAJOR.MINOR.PATCH (default: 1.0.0 of a cleaned list)
    variant
        make a separate cleaned list rather than a new version: without images that decisions remove, without
        unsure ones too, or only images judged to stay; unjudged is not clean
    name
        of the cleaned list (default: from what is left out, such as textures-ninco-minus-72)
    reason
        why there is a new version
    strict
        refuse stale decisions, undecided images, images both near and far, and lines cut off
    sources
        to count objects anew
    """
    # Loaded when it is used: the readers of all formats cost the help of a command 0.04 s.
    from curation.sources.opening import open_slots

    rule = rule or ConflictRule()
    if not is_line(reason):
        raise UsageError("The reason must be a single line", where="--note")
    if not decisions:
        raise UsageError("Nothing to apply", expected="--decisions FILE")
    files = read_decision_files(decisions)
    torn = [note for file in files for note in file.notes()]
    if torn and strict:
        raise DecisionError("A file is truncated or incomplete", where=torn[0], hint="leave out --strict")
    rows = [row for file in files for row in file.decisions]
    base = load_manifest(manifest)
    if variant is None and (name or version is None):
        hint = "--version MAJOR.MINOR.PATCH; or --cleaned, for a separate cleaned list, with --name"
        raise UsageError("A new version of a manifest needs a version number, and keeps the name", hint=hint)
    resolution = resolve(rows, rule.rule, seniors=rule.senior, allow_conflicts=rule.allow_conflicts)
    opened = open_slots(sources, base.slots, reading or Reading()) if sources else None
    applied = apply_decisions(
        base,
        resolution,
        version=version or "1.0.0",
        variant=variant,
        name=name,
        near={"": near} if isinstance(near, str) else near,
        far={"": far} if isinstance(far, str) else far,
        sources=opened,
        reason=reason,
        strict=strict,
    )
    doubts = [*applied.staleness.notes(), *(row.text() for row in applied.ineffective)]
    if applied.shared:
        doubts.append(f"near and far share {len(applied.shared)} images, such as {applied.shared[0]}.")
    if not applied.changes:
        doubts.append("no list changed.")
    for note in (*torn, *doubts):
        warnings.warn(note, CurationWarning, stacklevel=3)
    return applied
