"""`verify`: a manifest against its digests, its sources, a rebuild or an authors' list; a result against its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.benchmarks.building import parameters_of
from curation.benchmarks.building import rebuild as rebuilt_now
from curation.benchmarks.registry import find_benchmark
from curation.benchmarks.rescoring import OPTIONS, ResultVerification, is_result, verify_result
from curation.benchmarks.roles import is_published, is_told_only, overlaps_of, published_text
from curation.core.arguments import checked
from curation.core.errors import ManifestError, ProtocolError, SourceError, UsageError
from curation.core.tables import html_table
from curation.manifest.built_from import BuiltFrom, built_from
from curation.manifest.disjoint import COMPARED
from curation.manifest.importing import read_published_ids
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.manifest.verify import (
    NOT_RECORDED,
    OTHER_DETAILS,
    Finding,
    Outcome,
    PublishedComparison,
    compare_with_published,
    verify_lists,
    verify_sources,
)
from curation.sources.source import Source
from curation.sources.source_specs import Reading, Sources, require_slots

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Verification:
    """Result of the verification of a manifest.

    Attributes
    ----------
    manifest : Manifest
    findings : tuple of Finding
        One for each check and subject, including those that agree.
    file, part : str
        The published list and the part that it was compared with, ``""`` for none.
    comparison : PublishedComparison or None
    compared : tuple of str
        Facts of images by which parts of different roles were compared, of `curation.manifest.disjoint.COMPARED`.
    """

    manifest: Manifest
    findings: tuple[Finding, ...]
    file: str = ""
    part: str = ""
    comparison: PublishedComparison | None = None
    compared: tuple[str, ...] = ()

    def __repr__(self) -> str:
        header = self.manifest.header
        failures = sum(finding.outcome == "failure" for finding in self.findings)
        state = "ok" + f", {self.doubt}" * bool(self.doubt) if self.ok else f"failed: {failures} failures"
        return f"<Verification of {header.name} {header.version}, {len(self.findings)} findings, {state}>"

    def _repr_html_(self) -> str:
        rows = [(row.outcome, row.check, row.subject, row.expected, row.found) for row in self.findings]
        return html_table(("outcome", "check", "of", "expected", "found"), rows, caption=repr(self)[1:-1])

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Facts that were not available for the comparison of parts, such as names, records and photos."""
        return tuple(name for name in COMPARED if self.compared and name not in self.compared)

    @property
    def published_agrees(self) -> bool:
        """Whether the published list equals that of the part, including its order if that is the authors'."""
        ordered = bool(self.part) and self.manifest.part(self.part).order == "listed"
        comparison = self.comparison
        return comparison is not None and comparison.equal and (comparison.same_order or not ordered)

    @property
    def ok(self) -> bool:
        """Whether no finding is a failure, and the published list, if any, agrees."""
        failed = any(finding.outcome == "failure" for finding in self.findings)
        return not failed and (self.comparison is None or self.published_agrees)

    @property
    def doubt(self) -> str:
        """Reason why equal counts do not prove that the sources are the same; ``""`` for none."""
        changed = {
            problem: ", ".join(row.subject for row in self.findings if row.found == problem)
            for problem in (NOT_RECORDED, OTHER_DETAILS)
        }
        texts = [
            f"counts by role agree, and these sources changed since the manifest was made: {changed[NOT_RECORDED]}",
            f"classes and boxes agree, and these sources have {OTHER_DETAILS}: {changed[OTHER_DETAILS]}",
        ]
        return "; ".join(text for text, names in zip(texts, changed.values(), strict=True) if names)

    @property
    def verdict(self) -> str:
        """Description of the outcome."""
        unchecked = sum(finding.found.startswith("not checked") for finding in self.findings)
        if not self.ok:
            return "the check failed"
        if self.doubt:
            return self.doubt + f"; {unchecked} not checked" * bool(unchecked)
        return f"verified but for {unchecked} not checked" if unchecked else "verified"

    def to_frame(self) -> pd.DataFrame:
        """Return the findings as a table: check, subject, outcome, expected, found."""
        import pandas as pd

        return pd.DataFrame(self.as_data()["findings"])

    def as_data(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        header, comparison = self.manifest.header, self.comparison
        data: dict[str, Any] = {
            "name": header.name,
            "version": header.version,
            "digest": self.manifest.digest,
            "ok": self.ok,
            "verdict": self.verdict,
            "findings": [asdict(finding) for finding in self.findings],
        }
        data["roles"] = {"compared": list(self.compared), "not_compared": list(self.not_compared)}
        if comparison is not None:
            names = ("shared", "missing", "extra", "duplicates", "surplus", "same_order", "equal")
            compared = {name: getattr(comparison, name) for name in names}
            data["published"] = {
                "file": self.file,
                "part": self.part,
                **{name: list(value) if isinstance(value, tuple) else value for name, value in compared.items()},
            }
        return data


@checked
def verify(
    manifest: Manifest | str | Path,
    sources: Sources | None = None,
    *,
    strict: bool = False,
    rebuild: bool = False,
    published: Path | None = None,
    part: str | None = None,
    detections: Annotated[Mapping[str, Path] | Path | None, "[NAME=]FILE"] = None,
    scores: Annotated[Mapping[str, Path] | Path | None, "[NAME=]FILE"] = None,
    truth: Annotated[Mapping[str, Path] | Path | None, "[NAME=]FILE"] = None,
    inputs: Annotated[Mapping[str, Path] | None, "--input OPTION=FILE"] = None,
    reading: Reading | None = None,
) -> Verification | ResultVerification:
    """Check a manifest against its digests and any other given data; or score a results.json again.

    Parameters
    ----------
    manifest : Manifest, str or Path
        a folder, NAME@VERSION of an available manifest, or results.json of an evaluation
    sources : mapping of str to path or annotations, optional
        every count is recomputed from them (default: the files that the build remembers)
    strict : bool
        other bytes of a source file are a failure, not a note
    rebuild : bool
        build again from the sources and compare
    published : Path or str, optional
        an authors' list: .txt or .json
    part : str, optional
        the part to compare the published list with
    detections, scores, truth : mapping of str to Path, or Path
        with results.json: the files that it was made from
    inputs : mapping of str to Path, optional
        with results.json: another file, by its option, such as classes=FILE
    reading : Reading, optional
        How the sources are read.

    Raises
    ------
    UsageError
        A published list without a part, or the reverse; a source that the manifest lacks; inputs without a result.

    Examples
    --------
    >>> import curation
    >>> curation.verify("elephant/val2017").ok
    True
    """
    if (part is None) != (published is None):
        raise UsageError(
            "--published FILE and --part PART need each other",
            expected="the list of a part: --published FILE --part PART",
            found="--published alone" if part is None else "--part alone",
            hint="`curation show MANIFEST` lists the parts; `curation import` checks a whole folder of lists",
        )
    files_of = {name: _by_name(files) for name, files in zip(OPTIONS, (detections, scores, truth), strict=True)}
    for key, file in (inputs or {}).items():
        option, _, name = key.partition(".")
        files_of.setdefault(option, {})[name] = file
    result = next(
        (path for path in (Path(str(manifest)), Path(str(manifest), "results.json")) if is_result(path)), None
    )
    if result is not None and not isinstance(manifest, Manifest):
        if sources or strict or rebuild or published:
            raise UsageError("A result is scored again: it accepts only its own inputs", where=str(result))
        return verify_result(result, files_of)
    if any(files_of.values()):
        raise UsageError("Predictions are verified with the result that was made from them", expected="results.json")
    loaded = manifest if isinstance(manifest, Manifest) else load_manifest(manifest)
    findings, opened = verify_lists(loaded), dict[str, Source]()
    if sources or rebuild or (loaded.built_from and loaded.built_from.sources):
        opened = loaded.open_sources(sources or {}, reading, allow_changed=True)
        findings += verify_sources(loaded, opened, strict=strict)
        if rebuild:
            findings += _rebuilt(loaded, opened, strict=strict)
    paths = built_from(sources or {}, loaded.slots, reading or Reading()) or loaded.built_from
    shared, compared = _disjoint(loaded, opened, paths)
    findings += shared
    comparison = None
    if published is not None and part is not None:
        ids = loaded.ids(part)
        comparison = compare_with_published(ids, read_published_ids(published, ids))
    return Verification(loaded, tuple(findings), str(published or ""), part or "", comparison, compared)


def _by_name(files: Mapping[str, Path] | Path | None) -> dict[str, Path]:
    return {} if files is None else {"": files} if isinstance(files, Path) else dict(files)


def _disjoint(
    manifest: Manifest, sources: Mapping[str, Source], paths: BuiltFrom | None
) -> tuple[list[Finding], tuple[str, ...]]:
    """Return the images shared by parts of two roles (a failure if proven and not published), and what was compared."""
    header, findings = manifest.header, []
    published, is_note = is_published(header), is_told_only(header)
    overlaps, compared = overlaps_of(manifest, sources, paths)
    for overlap in overlaps:
        outcome: Outcome = "failure" if overlap.proven and not (is_note or overlap.is_declared) else "note"
        text = overlap.summary(5) + (published_text(header) if published else "")
        findings.append(Finding("disjoint", overlap.subject, outcome, "no shared image", text))
    return findings, compared


def _rebuilt(manifest: Manifest, sources: Mapping[str, Source], *, strict: bool) -> list[Finding]:
    """Return findings on the digest and the lists that the benchmark makes from these sources now."""
    header, base = manifest.header, manifest.header.supersedes
    reason = ""
    if header.origin == "as_published":
        reason = "authors' lists: `curation import` checks them"
    elif header.rule.protocol == "lists":
        reason = "lists of files: `curation build FILE.toml` compares them with their digests"
    elif cleaned := header.rule.parameters.get("review_of"):
        reason = f"by `curation review apply --cleaned` from {' '.join(map(str, cleaned))} and its decisions"  # type: ignore[arg-type]
    elif header.origin == "declared":
        reason = "declared: `curation build` completes it"
    elif base is not None and "review_rule" in header.rule.parameters:
        reason = f"by `curation review apply` from version {base.version} ({base.digest}) and its decisions"
    if reason:
        return [Finding("rebuild", "manifest", "note", found=reason)]
    protocol = find_benchmark(header.rule.protocol)
    slots = protocol.slots_for(parameters_of(manifest.header))
    require_slots(slots, sources, "curation verify MANIFEST --rebuild")
    try:
        built = rebuilt_now(manifest, sources)
    except (ManifestError, ProtocolError, SourceError) as error:
        problem = f"cannot be built: {error.what} {error.found or ''}".strip()
        return [Finding("rebuild", "manifest", "failure", manifest.digest, problem)]
    differing = [name for name in manifest.lists if built.lists.get(name) != manifest.lists[name]]
    now = {part.name: part.sha256 or "" for part in built.header.parts}
    findings = []
    for name in manifest.lists:
        outcome: Outcome = "failure" if name in differing else "ok"
        expected = manifest.part(name).sha256 or ""
        findings.append(Finding("rebuild", name, outcome, expected, now.get(name, "no such part")))
    same = built.digest == manifest.digest
    other: Outcome = "failure" if strict or differing else "note"
    findings.append(Finding("rebuild", "manifest", "ok" if same else other, manifest.digest, built.digest))
    return findings
