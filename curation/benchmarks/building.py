"""Building by request: parameters from text, completion of a declared manifest, rebuilding of a finished one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import msgspec

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.registry import find_benchmark
from curation.errors import ManifestError, UsageError
from curation.manifest.header import Figure, Header
from curation.manifest.manifest import Manifest
from curation.sources.source import Source


def read_parameters(protocol: Benchmark, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return every parameter of a protocol, from ``--set`` where given and else its default.

    Raises
    ------
    UsageError
        The protocol has no such parameter.
    ProtocolError
        A value cannot be read.
    """
    names = [parameter.name for parameter in protocol.parameters]
    for name in settings:
        if name not in names:
            near = difflib.get_close_matches(name, names)
            raise UsageError(
                f"Protocol {protocol.name} has no such parameter",
                where=f"--set {name[:80]}",
                expected=", ".join(names),
                hint=f"did you mean {near[0]}?" if near else "curation list",
            )
    return {
        parameter.name: parameter.read(settings.get(parameter.name, parameter.default))
        for parameter in protocol.parameters
    }


def parameters_of(header: Header) -> dict[str, Any]:
    """Return the parameters that made a manifest, as its protocol reads them today.

    Raises
    ------
    ManifestError
        The header lacks one of them.
    """
    protocol = find_benchmark(header.rule.protocol)
    stored = header.rule.parameters
    stated = [one for one in protocol.parameters if not one.later or one.name in stored]
    if missing := [one.name for one in stated if one.name not in stored]:
        raise ManifestError(
            "The manifest does not state a parameter of its protocol",
            where=f"{header.name} {header.version}: rule.parameters",
            expected=", ".join(missing),
            found=", ".join(stored) or "none",
        )
    return {
        one.name: one.read(_as_text(stored[one.name]) if one in stated else one.default)
        for one in protocol.parameters
    }


def rebuild(manifest: Manifest, sources: Mapping[str, Source]) -> Manifest:
    """Return what the manifest's own protocol and parameters give from these sources now.

    What people added in words (name, version, title, notes, what it supersedes or completes) is taken over, so that the
    digests are equal exactly when lists, counts, figures and source files are.
    """
    header = manifest.header
    built = find_benchmark(header.rule.protocol).make(sources, parameters_of(header))
    words = {entry.name: entry.note for entry in header.sources}
    entries = tuple(
        msgspec.structs.replace(entry, note=words.get(entry.name, entry.note))
        for entry in built.header.sources
    )
    return Manifest(
        header=msgspec.structs.replace(
            built.header,
            name=header.name,
            version=header.version,
            title=header.title,
            notes=header.notes,
            supersedes=header.supersedes,
            completes=header.completes,
            sources=entries,
        ),
        lists=built.lists,
    )


def complete(
    declared: Manifest, sources: Mapping[str, Source], *, decisions: str = ""
) -> tuple[Manifest, tuple[Figure, ...]]:
    """Return the declared manifest with its lists, and every figure or pinned list that came out otherwise.

    Parameters
    ----------
    declared : Manifest
        A manifest of origin ``declared``: it fixes the parameters and the figures to be met.
    decisions : str
        The recorded decisions, as the protocol's parameter of that name reads them, of a manifest that pins them by
        their digest; other ones count as a figure that is not met.

    Returns
    -------
    Manifest
        Of the same name and version; its ``completes`` holds the declared one's digest.
    tuple of Figure
        Empty when every figure of the paper is met and every list already pinned is the same.
    """
    header = declared.header
    given = {"decisions": decisions} if decisions else {}
    built = find_benchmark(header.rule.protocol).make(sources, parameters_of(header) | given)
    completed = Manifest(
        header=msgspec.structs.replace(
            built.header,
            name=header.name,
            version=header.version,
            title=header.title,
            completes=declared.digest,
        ),
        lists=built.lists,
    )
    missed = (*_missed_figures(header, built.header), *_changed_lists(header, built.header))
    told = tuple(_with_sources(one, header, sources) for one in missed)
    return completed, (*told, *_other_decisions(header, built.header))


def is_approximate(header: Header) -> bool:
    """Return whether a list was selected by presence labels instead of annotations."""
    evidence = ("wilderness_evidence", "train_evidence")
    return any(header.rule.parameters.get(name) == "presence" for name in evidence)


def _missed_figures(declared: Header, built: Header) -> list[Figure]:
    obtained = {figure.name: figure for figure in built.figures}
    missed = []
    for figure in declared.figures:
        now = obtained.get(figure.name)
        if figure.paper is not None and (now is None or now.obtained != figure.paper):
            missed.append(now or msgspec.structs.replace(figure, obtained=None, explanation="not computed"))
    return missed


def _changed_lists(declared: Header, built: Header) -> list[Figure]:
    now = {part.name: part for part in built.parts}
    changed = []
    for part in declared.parts:
        other = now.get(part.name)
        if other is None or (part.sha256 is not None and other.sha256 != part.sha256):
            changed.append(
                Figure(
                    name=f"{part.name}.list",
                    paper=part.images,
                    obtained=other.images if other is not None else None,
                    place="id list pinned by the declared manifest",
                    explanation=f"digest {other.sha256}, not {part.sha256}"
                    if other is not None
                    else "no such part",
                )
            )
    return changed


def _with_sources(figure: Figure, declared: Header, sources: Mapping[str, Source]) -> Figure:
    """Return an unmet figure that says which source it waits for, or from which file it came out otherwise."""
    needed = _sources_behind(figure.name, declared)
    if missing := [name for name in needed if name not in sources]:
        given = " ".join(f"--source {name}=PATH" for name in missing)
        reason = f"needs {', '.join(missing)}, not given: {given}"
    else:
        files = "; ".join(
            f"{name}: {sources[name].files[0].name if sources[name].files else sources[name].dataset}"
            for name in needed
        )
        reason = f"{figure.explanation} (from {files})"
    return msgspec.structs.replace(figure, explanation=reason)


def _sources_behind(figure: str, declared: Header) -> tuple[str, ...]:
    """Return the sources that a figure such as ``t1-train.images`` or ``coco.images`` is counted in."""
    subject = figure.partition(".")[0]
    if any(entry.name == subject for entry in declared.sources):
        return (subject,)
    parts = [part for part in declared.parts if part.name == subject]
    # A selection that is no part, such as t2-selection, is drawn from what the task trains or tests on.
    parts = parts or [
        part
        for part in declared.parts
        if part.task
        and subject.startswith(f"{part.task}-")
        and part.role == ("test" if "test" in subject else "train")
    ]
    named = dict.fromkeys(name for part in parts for name in part.sources)
    return tuple(named) or tuple(entry.name for entry in declared.sources)


def _other_decisions(declared: Header, built: Header) -> list[Figure]:
    if declared.decisions in (None, built.decisions):
        return []
    explanation = f"digest {built.decisions}, not {declared.decisions}"
    return [
        Figure(
            name="decisions",
            paper=None,
            obtained=None,
            place="decisions pinned by the declared manifest",
            explanation=explanation,
        )
    ]


def _as_text(value: object) -> str:
    return ",".join(str(one) for one in value) if isinstance(value, list | tuple) else str(value)
