"""`report_decisions` and `apply_from_files`: summarise decisions from files, or apply them to a manifest."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from curation.core.arguments import checked
from curation.core.errors import CurationWarning, DecisionError, UsageError
from curation.core.wording import counted
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.review.decisions.agreement import Accuracy, ListCount, StageAgreement, accuracy, agreement, count_lists
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
from curation.review.decisions.files import DecisionFile, read_decision_files, read_decisions, write_decisions
from curation.review.decisions.resolution import Resolution, refuse_conflicts, resolve, settled, standing_verdicts
from curation.review.decisions.review_folder import FolderDecisions, folder_decisions
from curation.review.decisions.sampling import Remainder, remainder
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
    """A summary of decisions files."""

    files: Sequence[DecisionFile]
    lists: Sequence[ListCount]
    resolution: Resolution
    agreement: Sequence[StageAgreement]
    staleness: Staleness | None
    allowed: bool
    coverage: Sequence[Coverage] = ()
    accuracy: Sequence[Accuracy] = ()
    remainder: Remainder | None = None

    def problems(self) -> list[str]:
        """Return the problems that ``--strict`` refuses."""
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
            "accuracy": msgspec.to_builtins(self.accuracy),
            "remainder": msgspec.to_builtins(self.remainder),
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
    gold: Annotated[Path | None, "FILE"] = None,
    rule: ConflictRule | None = None,
    table: TableOptions | None = None,
) -> DecisionReport:
    """Summarise decisions: counts, repeats, conflicts, agreement of reviewers, staleness, remaining errors.

    Parameters
    ----------
    files
        the folder of a review; .jsonl or .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json; with
        --key any table
    manifest
        report decisions that do not fit this manifest, and the number of its judged images
    gold
        correct decisions, to count how often each reviewer agrees with them (default: those of the review)
    """
    rule = rule or ConflictRule()
    held = load_manifest(manifest) if manifest else None
    read_files = partial(read_verdicts, options=table or TableOptions(), namespaces=partial(_namespace_in, held))
    read, reviewed = _read(files, read_files)
    rows = [row for file in read for row in file.decisions]
    adjudicators = () if reviewed is None else reviewed.record.adjudicators
    resolution = resolve(rows, rule.rule, seniors=rule.senior, allow_conflicts=True, adjudicators=adjudicators)
    standing = standing_verdicts(rows)
    known = read_decisions(gold).decisions if gold else () if reviewed is None else reviewed.gold
    judges = [row for row in standing if row.reviewer not in adjudicators]
    return DecisionReport(
        files=read,
        lists=count_lists(rows),
        resolution=resolution,
        agreement=agreement(judges, None if reviewed is None else reviewed.record.classes),
        accuracy=accuracy(judges, known),
        remainder=None if reviewed is None else remainder(reviewed.record.sample, settled(standing, adjudicators)),
        staleness=find_stale(held, resolution.decisions) if held else None,
        allowed=rule.allow_conflicts,
        coverage=coverage_on(held, resolution) if held else (),
    )


def _read(
    paths: Sequence[Path], read: Callable[[Sequence[Path]], list[DecisionFile]]
) -> tuple[list[DecisionFile], FolderDecisions | None]:
    """Return the decisions of some files, or of a single review folder, which is read alone."""
    folders = [path for path in paths if path.is_dir()]
    if not folders:
        return read(paths), None
    if len(paths) > 1:
        hint = f"curation review export --folder {shlex.quote(str(folders[0]))} --out decisions.jsonl writes a file"
        raise UsageError("The folder of a review is read alone", where=str(folders[0]), hint=hint)
    reviewed = folder_decisions(folders[0])
    return [reviewed.file], reviewed


def review_notes(reviewed: FolderDecisions) -> tuple[str, ...]:
    """Return the notes of a manifest on its review: the question, the reviewers, their agreement, and what remains."""
    record, standing = reviewed.record, reviewed.file.decisions
    judges = [row for row in standing if row.reviewer not in record.adjudicators]
    counts = Counter(row.reviewer or "unnamed" for row in judges)
    who = [f"{name} ({counted(n, 'image')})" for name, n in sorted(counts.items())]
    notes = [f"Question to the reviewers: {record.guide.question}"] if record.guide else []
    notes.append(
        f"Reviewers: {', '.join(who)}"
        f"{', each without the decisions of others' if record.blind else ''}"
        f"{'; conflicts settled by ' + ', '.join(record.adjudicators) if record.adjudicators else ''}."
    )
    for stage in agreement(judges):
        which, kappa = ("Fleiss'", stage.fleiss) if stage.fleiss else ("Cohen's", stage.pairs[0].kappa)
        notes.append(
            f"Agreement at stage {stage.stage}: {which} kappa {kappa.text()} on {counted(kappa.items, 'image')}."
        )
    left = remainder(record.sample, settled(standing, record.adjudicators))
    return (*notes, *([left.text()] if left else []))


def _namespace_in(manifest: Manifest | None, dataset: str) -> str:
    """Return the namespace of the ids of a data set: that of the parts it refers to, or else its own."""
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
        the folder of a review; .jsonl, .csv, or the FindMeIfYouCan authors' manual_selection as .yaml or .json
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
    files, reviewed = _read(decisions, read_decision_files)
    torn = [note for file in files for note in file.notes()]
    if torn and strict:
        raise DecisionError("A file is truncated or incomplete", where=torn[0], hint="leave out --strict")
    rows = [row for file in files for row in file.decisions]
    if any(row.stage == "pair" for row in rows):
        hint = "curation review export --folder FOLDER --out pairs.csv --drops DIR"
        raise UsageError("Decisions on pairs change no manifest", where=str(decisions[0]), hint=hint)
    base = load_manifest(manifest)
    if variant is None and (name or version is None):
        hint = "--version MAJOR.MINOR.PATCH; or --cleaned minus-remove, for a separate cleaned list"
        raise UsageError("A new version of a manifest needs a version number, and keeps the name", hint=hint)
    resolution = resolve(
        rows,
        rule.rule,
        seniors=rule.senior,
        allow_conflicts=rule.allow_conflicts,
        adjudicators=() if reviewed is None else reviewed.record.adjudicators,
    )
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
        notes=() if reviewed is None else review_notes(reviewed),
    )
    doubts = [*applied.staleness.notes(), *(row.text() for row in applied.ineffective)]
    if applied.shared:
        doubts.append(f"near and far share {len(applied.shared)} images, such as {applied.shared[0]}.")
    if not applied.changes:
        doubts.append("no list changed.")
    for note in (*torn, *doubts):
        warnings.warn(note, CurationWarning, stacklevel=3)
    return applied
