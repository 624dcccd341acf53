"""`identify`: recognise files as published lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from curation.core.arguments import checked
from curation.core.errors import SourceError, UsageError
from curation.core.files import missing_path
from curation.core.tables import grouped
from curation.core.wording import counted
from curation.extensions.identify.index import Fingerprint, ListIndex, packaged_index, read_index
from curation.extensions.identify.matching import (
    HINT,
    LEAST_IMAGES,
    LEVELS,
    ListRelation,
    Match,
    References,
    matches,
    relations,
)
from curation.sources.entries import ListDigests, OddLine, PublishedFile, PublishedList
from curation.sources.long_lists import read_long
from curation.sources.published_list import list_files

StrPath = str | PathLike[str]
"""Path of a file or folder."""
Verdict = Literal["identified", "related", "hint", "unknown"]
SHOWN = 5
"""Maximum number of related lists in the text."""


@dataclass(frozen=True)
class Identified:
    """The answer for a list.

    Attributes
    ----------
    file, key : str
        Its file as passed by the caller, and its name in a file of several lists.
    form : str
        How the file is written (see `curation.sources.entries.Form`).
    listed : PublishedList, optional
        The list; None if the file is not a list of images.
    sha256 : str
        Hex digest of the file.
    images : int
        Distinct images: stems, with their folders if stems repeat.
    matches : tuple of Match
        Equal known lists, the best level first.
    relations : tuple of Relation
        Known lists that share images, largest share first (see `nearest`); for a list that equals a known one, only
        larger lists that contain it.
    findings : tuple of str
        Remarks, such as a misleading name, odd lines or defects.
    """

    file: str
    key: str
    form: str
    listed: PublishedList | None
    sha256: str
    images: int = 0
    matches: tuple[Match, ...] = ()
    relations: tuple[ListRelation, ...] = ()
    findings: tuple[str, ...] = ()

    @cached_property
    def digests(self) -> ListDigests | None:
        """Counts and digests of the list."""
        return None if self.listed is None else ListDigests.of(self.listed, self.sha256)

    @property
    def best(self) -> tuple[Match, ...]:
        """The matches of the best level."""
        return tuple(match for match in self.matches if match.level == self.matches[0].level)

    @property
    def nearest(self) -> tuple[ListRelation, ...]:
        """The known lists that share enough images to be reported."""
        return tuple(relation for relation in self.relations if relation.is_named)

    @property
    def verdict(self) -> Verdict:
        """Equal to a known list; part of, around or near one; a hint; or unknown."""
        if self.matches and self.matches[0].level < HINT:
            return "identified"
        kinds = {relation.kind for relation in self.nearest}
        if self.matches or kinds == {"named like"}:
            return "hint"
        return "related" if kinds - {"shares", "named like"} else "unknown"

    @property
    def name(self) -> str:
        """The file and the key of the list in it."""
        return f"{self.file}#{self.key}" if self.key else self.file

    def lines(self) -> Iterator[str]:
        """Yield the lines of the answer as text."""
        if self.listed is None:
            yield f"{self.name}: no list of images ({self.form})"
        else:
            labels = self.listed.label_range
            yield (
                f"{self.name}: {self.form}, {counted(len(self.listed), 'line')}, {counted(self.images, 'image')}"
                f"{f', labels {labels}' if labels else ''}"
            )
        for match in self.matches:
            yield from _match_lines(match, first=match is self.matches[0], best=match in self.best)
        if self.verdict == "unknown":
            yield "  unknown: no known list is equal to it, holds it, or lies in it"
        yield from self._relative_lines()
        yield from (f"  note: {text}" for text in self.findings)

    def _relative_lines(self) -> Iterator[str]:
        alike = grouped(self.nearest, lambda relation: relation.known.sha256_stems)
        for first, *others in list(alike.values())[:SHOWN]:
            yield f"  {'also ' if self.matches else ''}{_relation_text(first)}"
            if others:
                yield f"    the same images: {', '.join(other.known.name for other in others)}"
        if len(alike) > SHOWN:
            further = counted(len(alike) - SHOWN, "further list that shares", "further lists that share")
            yield f"  and {further} images"
        if few := sum(not (near.exact or near.is_named or near.may_be_chance) for near in self.relations):
            lists = counted(few, "further list")
            yield f"  it may share images with {lists}, too few for a sketch: --lists DIR counts them"

    def data(self) -> dict[str, Any]:
        """Return the answer as JSON data."""
        return {
            "file": self.file,
            "list": self.key,
            "form": self.form,
            "verdict": self.verdict,
            "digests": asdict(self.digests) if self.digests else None,
            "matches": [_data(match, _OF_MATCH) | {"meaning": LEVELS[match.level]} for match in self.matches],
            "relations": [_data(relation, _OF_RELATION) for relation in self.nearest],
            "findings": list(self.findings),
        }


@dataclass(frozen=True, repr=False)
class Identification:
    """The answers for several files.

    Attributes
    ----------
    lists : tuple of Identified
        One answer per list, in the order of the files.
    known : int
        Number of known lists in the comparison.
    passed_over : dict of str to str
        Files of folders, including folders of known lists, that are not lists or not declared, with the reason.
    """

    lists: tuple[Identified, ...]
    known: int
    passed_over: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether each list is identified, related to a known list, or has a hint."""
        return all(answer.verdict != "unknown" for answer in self.lists)

    def text(self) -> str:
        """Return the answer as text."""
        passed_over = [f"passed over: {name}: {why}" for name, why in self.passed_over.items()]
        return "\n".join([*(line for answer in self.lists for line in answer.lines()), *passed_over])

    def data(self) -> dict[str, Any]:
        """Return the answer as JSON data."""
        lists = [answer.data() for answer in self.lists]
        return {"known_lists": self.known, "lists": lists, "passed_over": dict(self.passed_over)}

    def __repr__(self) -> str:
        names = ", ".join(f"{Path(answer.file).name}: {_short(answer)}" for answer in self.lists[:SHOWN])
        return f"<Identification of {len(self.lists)}, {names}{', …' if len(self.lists) > SHOWN else ''}>"


@checked
def identify(*files: StrPath, lists: StrPath | Sequence[StrPath] = (), index: StrPath | None = None) -> Identification:
    """Return the published lists that files contain, recognised by content and not by name.

    Parameters
    ----------
    *files : str or path
        Lists of any published form; of a folder, every list below it.
    lists : str, path or sequence of them
        Folders of lists that are known in addition to the index; shared images are counted with these.
    index : str or path, optional
        An index to use instead of the one in this package (see `curation.extensions.identify.index.make_index`).

    Returns
    -------
    Identification

    Raises
    ------
    UsageError
        No file is given, or a folder holds no list.
    MissingFileError
        A file or folder does not exist.
    AnnotationFormatError
        A file is not a list.

    Examples
    --------
    >>> from curation.extensions.identify.run import identify
    >>> from curation.manifest.manifest import packaged_manifests
    >>> identify(packaged_manifests() / "elephant/val2017/1.0.0/ids/wr0.1-hash.txt")
    <Identification of 1, wr0.1-hash.txt: elephant/val2017@1.0.0#wr0.1-hash>
    """
    if not files:
        raise UsageError("No list is given", expected="files or folders of lists")
    known = read_index(Path(index) if index is not None else packaged_index())
    folders = [lists] if isinstance(lists, str | PathLike) else list(lists)
    references = References(known, tuple(Path(folder) for folder in folders))
    read, passed_over = _read(files)
    answers = [answer for name, file in read for answer in _identified(name, file, references)]
    return Identification(tuple(answers), len(references.index), references.passed_over | passed_over)


def _read(paths: Sequence[StrPath]) -> tuple[Iterator[tuple[str, PublishedFile]], dict[str, str]]:
    """Return an iterator of files, and a mapping of skipped files of folders that is filled during iteration."""
    passed_over: dict[str, str] = {}
    if absent := [path for path in paths if not Path(path).exists()]:
        raise missing_path("The list does not exist", Path(absent[0]))
    below = {folder: list_files(folder) for folder in map(Path, paths) if folder.is_dir()}
    if empty := [folder for folder, files in below.items() if not files]:
        raise UsageError("No list of images found", where=str(empty[0]), found="no file that may hold one")

    def reading() -> Iterator[tuple[str, PublishedFile]]:
        for source in paths:
            for path in below.get(Path(source), [Path(source)]):
                try:
                    yield str(path), read_long(path)
                except SourceError as error:
                    if Path(source) not in below:
                        raise
                    passed_over[str(path)] = error.what

    return reading(), passed_over


def _identified(name: str, file: PublishedFile, references: References) -> Iterator[Identified]:
    if not file.lists:
        words = "class names" if file.classes else "names"
        yield Identified(
            name, "", file.form, None, file.sha256, findings=(f"it holds {words}; known lists are lists of images",)
        )
    for listed in file.lists:
        query = Fingerprint(listed, file.sha256)
        index = references.index
        equal = matches(query, index)
        related = relations(query, index, references, equal=equal)
        findings = (
            *_readings(query, related, listed.odd, listed.odd_lines[:1]),
            *file.notes,
            *_name_findings(Path(name).stem if not listed.name else listed.name, equal, index),
        )
        yield Identified(
            file=name, key=listed.name, form=file.form, listed=query.listed, sha256=file.sha256,
            images=query.whole_paths, matches=equal, relations=related, findings=findings,
        )  # fmt: skip


def _readings(query: Fingerprint, related: Sequence[ListRelation], odd: int, first: Sequence[OddLine]) -> Iterator[str]:
    if query.namespaced:
        yield "the namespaces before its ids were removed"
    if query.folded:
        yield (
            f"{query.stems:,} stems name {query.parent_stems:,} images: a stem is not an id here, folder and stem are "
            "compared together"
        )
    if query.whole_paths > query.images:
        yield f"folder and stem name {query.images:,} of {query.whole_paths:,} paths: relations count these"
    for line in first:
        yield f"{counted(odd, 'line is', 'lines are')} odd; line {line.line}: {line.reason}: {line.text!r}"
    if any(relation.may_be_chance and relation.shared >= LEAST_IMAGES for relation in related) and not any(
        relation.is_named for relation in related
    ):
        yield "its names are bare numbers, which may equal those of other lists by chance: no such list is named"


def _name_findings(called: str, equal: Sequence[Match], index: ListIndex) -> Iterator[str]:
    """Yield a finding if the name of a list contradicts its content."""
    namesakes = [known for known in index.lists if known.called == called.lower()]
    certain = [match.known for match in equal if match.level < HINT]
    if not namesakes:
        return
    here = [known for known in namesakes if known in certain]
    # Several lists of a benchmark may have the same name: the name is right if the list is one of them.
    benchmarks = {known.benchmark for known in here}
    others = _titles(known for known in namesakes if known not in certain and known.benchmark not in benchmarks)
    if here and others:
        yield f"it is called {called}: it is the list of {_titles(here)}, not that of {others}"
    elif not here and certain:
        yield f"it is called {called} like a list of {others}, and is another: {_titles(certain)}"
    elif not here:
        yield f"it is called {called} like a list of {others}, and is not equal to it"


def _titles(known: Any) -> str:
    return " and ".join(dict.fromkeys(listed.benchmark for listed in known))


def _short(answer: Identified) -> str:
    if answer.matches:
        return " = ".join(match.known.name for match in answer.best[:3]) + (", …" if len(answer.best) > 3 else "")
    return f"{answer.nearest[0].kind} {answer.nearest[0].known.name}" if answer.verdict != "unknown" else "unknown"


_LABELS = {"same": "the same", "differ": "they differ", "only here": "the known list has none"}


def _match_lines(match: Match, *, first: bool, best: bool) -> Iterator[str]:
    known = match.known
    head = "is" if match.level < HINT else "may be" if match.level == HINT else "has the file names of"
    yield f"  {head if first else 'also'} {known.title} [{known.name}]: {LEVELS[match.level]}"
    if match.note:
        yield f"    {match.note}"
    if match.labels and match.level > 1:
        yield f"    labels: {_LABELS.get(match.labels) or f'none here, {known.labels} there'}"
    if not best:
        return
    facts = [text for text in (known.version, known.licence and f"licence {known.licence}") if text]
    if facts:
        yield f"    from {'; '.join(facts)}"
    # Defects are those of the published list, which may have repeats or lines that this list lacks.
    yield from (f"    known of the published list: {text}" for text in known.defects)
    if known.successor:
        yield f"    see {known.successor}"


_WORDS = {
    "part of": "is part of", "holds": "holds all of", "near": "is near", "mostly in": "is mostly in",
    "holds most of": "holds most of", "shares": "shares images with", "named like": "shares file names alone with",
}  # fmt: skip


def _relation_text(rel: ListRelation) -> str:
    about, here, there = "" if rel.exact else "about ", rel.shared + rel.extra, rel.known.images
    alone = rel.kind == "named like"
    size = counted(here, "name" if alone else "image")
    is_all = not rel.extra and (rel.exact or rel.most_wrong)
    share = f"{'all ' * (here > 1)}{size}" if is_all else f"{rel.shared:,} of {size}"
    rest = f"it has {there:,}" if rel.missing > rel.shared else f"{about}{rel.missing:,} of its {there:,} missing"
    rest = rest if rel.missing else f"{about}all of its {there:,}"
    lies = "of its images lie outside this list" if rel.extra else "of the images here lie outside it"
    parts = (
        f"{about}{share} here, {rest}",
        f"by sketch: at most {rel.most_wrong:.1%} {lies} (95 %)" if rel.most_wrong else "",
        "read as numbers without the zeros before them" if rel.as_numbers else "",
        "its folders are of other images, perhaps made from these" if alone else "",
        _some("missing", rel.missing_examples, rel.missing) if rel.missing <= rel.shared else "",
        _some("more", rel.extra_examples, rel.extra) if rel.extra <= rel.shared else "",
    )
    return f"{_WORDS[rel.kind]} {rel.known.title} [{rel.known.name}]: {'; '.join(filter(None, parts))}"


def _some(label: str, examples: Sequence[str], count: int) -> str:
    return f"{label}: {', '.join(examples)}{', …' if count > len(examples) else ''}" if examples else ""


_OF_KNOWN = ("name", "benchmark", "part", "version", "licence", "defects", "successor", "manifest")
_OF_MATCH = ("level", "labels", "note")
_OF_RELATION = (
    "kind", "shared", "missing", "extra", "exact", "most_wrong", "missing_examples", "extra_examples", "as_numbers",
)  # fmt: skip


def _data(match: Match | ListRelation, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(match.known, name) for name in _OF_KNOWN} | {name: getattr(match, name) for name in names}
