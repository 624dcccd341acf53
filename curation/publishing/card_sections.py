"""What the card says of one manifest: its parts, how it was made, its figures beside the paper's, its sources."""

from __future__ import annotations

from collections import Counter

from curation.manifest.header import Header, ParameterValue, PartEntry
from curation.manifest.roles import classes_in
from curation.pages import code, count, link, plain, table
from curation.publishing.licences import STATED, Terms
from curation.publishing.member import Member

_ORIGINS = {
    "regenerated": "The rule made the lists from the raw data.",
    "as_published": "The lists are the authors' own. Their digests are pinned here; the lists are not passed on, since "
    "no licence for them is stated: `curation import` completes the manifest from the authors' files.",
    "reviewed": "Recorded decisions of reviewers corrected the lists.",
    "declared": "Part of the lists is not at hand: the header pins the rule, the paper's figures and the digests that "
    "are known, and `curation build` completes it from your own raw data.",
}
_LONGEST_VALUE = 160


def manifest_section(member: Member) -> list[str]:
    """Return the lines that the card gives to one manifest."""
    header = member.manifest.header
    return [
        f"## {plain(header.name)} {plain(header.version)}",
        "",
        f"{plain(header.title)}. Digest {code(member.manifest.digest)}, folder {code(member.folder)}.",
        "",
        *_parts(member),
        *_labels(member),
        *_making(member),
        *_figures(header),
        *_sources(member),
        *_notes(header),
    ]


def _parts(member: Member) -> list[str]:
    splits = member.splits
    parts = member.manifest.header.parts
    rows = [
        (
            _split(member, part),
            code(part.name),
            plain(part.role),
            _classes(member.manifest.header, part),
            count(part.images),
            _boxes(part),
            code((part.sha256 or "").removeprefix("sha256:")[:16]) or "not computed yet",
        )
        for part in parts
    ]
    absent = [part.name for part in parts if part.name not in splits]
    lines = [
        "### Parts",
        "",
        *table(("split", "part", "role", "classes", "images", "boxes", "SHA-256 of the list"), rows),
    ]
    if absent:
        lines += [
            f"Pinned only, and not among the files: {', '.join(code(name) for name in absent)}. The manifest states "
            "their rule, and their digest where it is known.",
            "",
        ]
    lines += [f"- {code(part.name)}: {plain(part.selection)}" for part in parts]
    if repeated := [part.name for part in parts if part.repeats and part.name in splits]:
        lines += ["", f"Images repeat, as published, in {', '.join(code(name) for name in repeated)}."]
    return [*lines, ""]


def _split(member: Member, part: PartEntry) -> str:
    if part.name not in member.splits:
        return "pinned only"
    return code(member.splits[part.name]) if member.manifest.lists[part.name] else "no image"


def _classes(header: Header, part: PartEntry) -> str:
    roles = Counter(one.role for one in classes_in(header, part))
    return ", ".join(f"{plain(role)} {number:,}" for role, number in roles.items()) or "-"


def _boxes(part: PartEntry) -> str:
    return ", ".join(f"{plain(role)} {number:,}" for role, number in part.boxes.items() if number) or "-"


def _labels(member: Member) -> list[str]:
    if not member.labelled:
        told = "The tables hold ids alone: file names, sizes and labels are null."
        return [told, ""] if member.splits else []
    told = (
        f"File names and labels, as the label view of the part leaves them, are in "
        f"{', '.join(code(member.splits[name]) for name in member.labelled)}."
    )
    rows = [
        (code(name), code(file.name), code(file.sha256))
        for name, source in sorted(member.sources.items())
        for file in source.files
    ]
    lines = [told, "", *table(("labels of", "read from", "SHA-256"), rows)]
    if other := member.other_bytes():
        names = ", ".join(code(entry.name) for entry in other)
        lines += [
            f"The files of {names} are not the very ones that the manifest was made from: counts agree, single boxes "
            "may differ.",
            "",
        ]
    return lines


def _making(member: Member) -> list[str]:
    header = member.manifest.header
    rule = header.rule
    rows = [(code(name), _value(value)) for name, value in rule.parameters.items()]
    lines = [
        "### How it was made",
        "",
        f"{_ORIGINS[header.origin]} Protocol {code(rule.protocol)}, algorithm version {rule.algorithm_version}, after "
        f"{plain(header.paper.authors)}: {plain(header.paper.title)}, {plain(header.paper.venue)} {header.paper.year}.",
        "",
        *table(("parameter", "value"), rows),
    ]
    if header.supersedes is not None:
        reason = plain(header.supersedes.reason)
        lines += [f"It replaces version {code(header.supersedes.version)}: {reason}.", ""]
    if header.decisions is not None:
        at_hand = (
            f"config {code(member.config + '-decisions')}"
            if member.evidence is not None
            else "not among the files"
        )
        lines += [f"Decisions of reviewers: {code(header.decisions)}, {at_hand}.", ""]
    return lines


def _value(value: ParameterValue) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
    return code(
        "none"
        if not text
        else text
        if len(text) <= _LONGEST_VALUE
        else f"{text[:_LONGEST_VALUE]}… ({len(text):,} characters)"
    )


def _figures(header: Header) -> list[str]:
    rows = [
        (
            code(one.name),
            count(one.paper),
            count(one.obtained),
            plain(one.place),
            plain(one.explanation) or "-",
        )
        for one in header.figures
    ]
    if not rows:
        return []
    columns = ("figure", "paper", "obtained", "where the paper states it", "why they differ")
    return ["### Figures beside the paper's", "", *table(columns, rows)]


def _sources(member: Member) -> list[str]:
    terms = member.terms()
    rows = [
        (
            code(entry.name),
            plain(f"{entry.dataset} {entry.part}".strip()),
            _licence(terms[entry.name]),
            plain(terms[entry.name].media),
            "yes" if terms[entry.name].photos else "no",
            link(terms[entry.name].url) or "-",
        )
        for entry in member.manifest.header.sources
    ]
    columns = (
        "source",
        "dataset",
        "licence of annotations",
        "licence of photos",
        "photos passed on",
        "terms",
    )
    files = [
        (code(entry.name), code(file.name), code(file.sha256), plain(entry.note) or "-")
        for entry in member.manifest.header.sources
        for file in entry.files
    ]
    lines = ["### Sources and licences", "", *table(columns, rows)]
    if files:
        lines += ["Files that the manifest was made from:", ""]
        lines += table(("source", "file", "SHA-256", "note"), files)
    return lines


def _licence(terms: Terms) -> str:
    """Return the licence of annotations with its text and with whom it asks to name."""
    named = f", {plain(terms.creator)}" if terms.creator else ""
    if terms.annotations not in STATED:
        return plain(terms.annotations) + named
    return f"[{terms.annotations}](https://spdx.org/licenses/{terms.annotations}.html){named}"


def _notes(header: Header) -> list[str]:
    if not header.notes:
        return []
    return ["### Notes", "", *(f"- {plain(note)}" for note in header.notes), ""]
