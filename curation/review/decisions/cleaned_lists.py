"""Lists that verdicts clean: how many images of each were judged, and three ways of leaving images out.

Unjudged is not clean. Of 5,160 images a reviewer judged 373 and removed 72: without these 72 the list is
shorter, and of its 5,088 images 4,787 are still unjudged. The name of a list states what was left out.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import msgspec

from curation.core.canonical import sha256_of_lines
from curation.core.errors import UsageError
from curation.core.reading import InputFile
from curation.core.tables import grouped
from curation.core.wording import slug
from curation.manifest.header import (
    SCHEMA_VERSION,
    FileEntry,
    Header,
    LabelView,
    Paper,
    ParameterValue,
    PartEntry,
    Rule,
    SourceEntry,
)
from curation.manifest.manifest import Manifest
from curation.review.decisions.decision import Decision
from curation.review.decisions.resolution import Resolution
from curation.sources.datasets import licence_facts, namespace_of
from curation.sources.published_list import listed_image_ids, only_list, read_published

Variant = Literal["minus-remove", "minus-remove-and-unsure", "judged-keep-only"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

UNJUDGED = "Unjudged is not clean"
"""Said wherever verdicts have left images out."""
FOR_WHOM = "A verdict holds for the ID classes that its reviewer had in mind, not for others."
LIST_SUFFIXES = (".txt", ".csv", ".json", ".gz")


@dataclass(frozen=True, slots=True)
class Coverage:
    """The verdicts on the images of a part, each image once.

    Attributes
    ----------
    judged : dict of str to list of str
        Images by action, in the order of the part: ``remove`` if a valid verdict removes the image, else ``unsure`` if
        verdicts differ and no rule decides, else the action.
    """

    part: str
    images: int
    judged: Mapping[str, list[str]]

    def of(self, action: str) -> int:
        """Return how many images have an action."""
        return len(self.judged.get(action, ()))

    @property
    def total(self) -> int:
        """Judged images."""
        return sum(map(len, self.judged.values()))

    @property
    def unjudged(self) -> int:
        """The others."""
        return self.images - self.total

    def left(self, variant: Variant) -> int:
        """Return how many images a variant of the list has."""
        if variant == "judged-keep-only":
            return self.of("keep")
        unsure = self.of("unsure") if variant == "minus-remove-and-unsure" else 0
        return self.images - self.of("remove") - unsure

    def data(self) -> dict[str, str | int]:
        """Return it as plain data: counts alone."""
        return {
            "part": self.part,
            "images": self.images,
            "judged": self.total,
            "unjudged": self.unjudged,
            **{action: self.of(action) for action in ("keep", "remove", "unsure")},
            **{variant: self.left(variant) for variant in VARIANTS},
        }

    def text(self) -> str:
        """Return it as one sentence."""
        counts = ", ".join(f"{len(images):,} {action}" for action, images in sorted(self.judged.items()))
        return (
            f"{UNJUDGED}: {self.total:,} of {self.images:,} images of {self.part} were judged ({counts or 'none'}), "
            f"{self.unjudged:,} were not."
        )


def parts_spoken_of(header: Header, dataset: str) -> tuple[str, ...]:
    """Return the parts that a decision's `dataset` refers to, in the order of the header.

    The part of that name; else the parts of a pool (``coco-near`` and ``coco-far`` of ``coco``); else those with a
    source of that data set or namespace. ``""`` means all.
    """
    names = tuple(part.name for part in header.parts)
    if dataset in names:
        return (dataset,)
    if not dataset:
        return names
    if pool := tuple(name for name in names if name.startswith(f"{dataset}-")):
        return pool
    slots = {source.name for source in header.sources if dataset in (source.dataset, source.namespace)}
    return tuple(part.name for part in header.parts if slots & set(part.sources))


def coverage_on(manifest: Manifest, resolution: Resolution) -> tuple[Coverage, ...]:
    """Return how far verdicts cover each part of a manifest that they apply to, candidates for addition aside."""
    datasets = {row.dataset for row in resolution.decisions} | {row.dataset for row in resolution.undecided}
    spoken = {dataset: parts_spoken_of(manifest.header, dataset) for dataset in datasets}
    unsure = [(row.dataset, row.image_id, "unsure") for row in resolution.undecided]
    decided = [(row.dataset, row.image_id, row.action) for row in resolution.decisions if row.stage != "candidate"]
    # The last word counts: a verdict before an open question, and a removal before any other verdict.
    action_of = {
        (part, image): action
        for dataset, image, action in [*unsure, *sorted(decided, key=lambda row: row[2] == "remove")]
        for part in spoken[dataset]
    }
    coverage = []
    for part, ids in manifest.lists.items():
        if any(part in parts for parts in spoken.values()):
            images = dict.fromkeys(ids)
            judged = grouped((id_ for id_ in images if (part, id_) in action_of), lambda id_: action_of[part, id_])  # noqa: B023
            coverage.append(Coverage(part, len(images), judged))
    return tuple(coverage)


def left_out_by(variant: Variant, coverage: Coverage, now: Collection[str]) -> set[str]:
    """Return what a variant leaves out of a part beyond the images that decisions remove."""
    if variant == "minus-remove":
        return set()
    if variant == "minus-remove-and-unsure":
        return set(coverage.judged.get("unsure", ()))
    return set(now) - set(coverage.judged.get("keep", ()))


def as_cleaned(
    made: Manifest,
    base: Manifest,
    coverage: Sequence[Coverage],
    variant: Variant,
    *,
    name: str,
    reviewers: Sequence[str],
) -> Manifest:
    """Return a reviewed manifest as a separate list: a name that says what was left out, and what was judged.

    Parameters
    ----------
    made : Manifest
        With the images left out.
    base : Manifest
        The one that was cleaned: it stays, and is not superseded.
    name : str
        ``""``: made from that of `base`, the reviewer and what is left out, ``textures-ninco-minus-72``.
    """
    header = made.header
    review_parameters: dict[str, ParameterValue] = {
        "review_variant": variant,
        "review_of": (f"{base.header.name}@{base.header.version}", base.digest),
        "review_judged": tuple(f"{row.part}={row.total}" for row in coverage),
        "review_unjudged": tuple(f"{row.part}={row.unjudged}" for row in coverage),
    }
    removed, unsure, to_keep = (sum(row.of(action) for row in coverage) for action in ("remove", "unsure", "keep"))
    without = f"without {removed:,} images removed"
    ending, words = {
        "minus-remove": (f"minus-{removed}", without),
        "minus-remove-and-unsure": (f"minus-{removed}-and-{unsure}-unsure", f"{without} and {unsure:,} unsure ones"),
        "judged-keep-only": (f"judged-keep-{to_keep}", f"the {to_keep:,} images judged to stay"),
    }[variant]
    meaning = "This list is not clean: what the verdicts remove is gone, and images that nobody judged are in it."
    if variant == "judged-keep-only":
        meaning = (
            "Every image left in a judged part was judged to stay: it is clean by these verdicts, and by no others."
        )
    who = ", ".join(reviewers) or "reviewers who are not named"
    by = slug(reviewers[0], "-") if len(reviewers) == 1 else ""
    return Manifest(
        msgspec.structs.replace(
            header,
            name=name or f"{base.header.name}-{by or 'reviewed'}-{ending}",
            title=f"{header.title}: {words} by verdicts of {who}",
            rule=msgspec.structs.replace(header.rule, parameters=header.rule.parameters | review_parameters),
            notes=(*header.notes, *(row.text() for row in coverage), meaning, FOR_WHOM),
            supersedes=None,
        ),
        made.lists,
    )


def judged_counts(header: Header) -> dict[str, int]:
    """Return how many images of each part were judged, as a cleaned list says; nothing for other manifests."""
    entries = header.rule.parameters.get("review_judged")
    texts = [str(text).rpartition("=") for text in entries] if isinstance(entries, tuple) else []
    return {part: int(count) for part, _, count in texts if count.isascii() and count.isdigit() and len(count) < 19}


def is_list_file(target: str) -> bool:
    """Return whether a text names a published list, and not a manifest."""
    path = Path(target)
    return path.name != "manifest.json" and path.suffix.lower() in LIST_SUFFIXES and path.is_file()


def manifest_of_list(path: Path, decisions: Sequence[Decision]) -> Manifest:
    """Return a published list as a manifest with one part, its ids in the name space of the decisions on it.

    Parameters
    ----------
    decisions : sequence of Decision
        What they speak of says which data set the list is of; of several, the one that the list's name tells.

    Raises
    ------
    UsageError
        Decisions are missing, or the data set of the list does not follow from them.
    AnnotationFormatError
        See `curation.sources.published_list.only_list` and `natives_of`.
    """
    file = read_published(path)
    listed = only_list(file)
    part = slug(path.name.removesuffix(".gz").rpartition(".")[0].removeprefix("test_"), "_") or "list"
    namespace, dataset = _dataset_of(part, decisions, path)
    ids, facts = tuple(listed_image_ids(listed, namespace, str(path))), licence_facts(namespace)
    source = SourceEntry(
        name=part,
        dataset=dataset,
        part="list",
        namespace=namespace,
        licence=facts.licence,
        media_redistributable=facts.media_redistributable,
        files=(FileEntry(name=path.name, sha256=f"sha256:{file.sha256}", size=file.size, rows=len(listed)),),
    )
    entry = PartEntry(
        name=part,
        role="test",
        sources=(part,),
        selection=f"The published list {path.name}, in its order.",
        view=LabelView(),
        order="listed",
        images=len(ids),
        sha256=sha256_of_lines(ids),
        repeats=len(ids) - len(set(ids)),
    )
    header = Header(
        schema_version=SCHEMA_VERSION,
        name=slug(part, "-"),
        version="1.0.0",
        title=f"The list {path.name}",
        paper=Paper(title=f"The list {path.name}", authors="not stated", year=0, venue="not stated", bibtex=""),
        taxonomy="OSC",
        origin="as_published",
        classes=(),
        parts=(entry,),
        sources=(source,),
        rule=Rule(protocol="as_published", algorithm_version=1, parameters={part: path.name}),
    )
    return Manifest(header, {part: ids})


def _dataset_of(part: str, decisions: Sequence[Decision], path: Path) -> tuple[str, str]:
    """Return the name space of a list, and the data set as decisions call it."""
    called: dict[str, set[str]] = defaultdict(set)
    for row in decisions:
        called[row.image_id.partition(":")[0]].add(row.dataset)
    part_namespace = namespace_of(part) if re.fullmatch(r"[a-z][a-z0-9_]{0,31}", part) else ""
    namespace = (
        part_namespace if part_namespace in called or not called else next(iter(called)) if len(called) == 1 else ""
    )
    if not namespace:
        raise UsageError(
            "The decisions are on several data sets, and the name of the list matches none",
            where=str(path),
            expected=f"decisions on one data set, or a list whose name is one of: {', '.join(sorted(called))[:200]}",
            hint="curation review summary FILE of this list only, --out FILE.jsonl",
        )
    names = called[namespace]
    return namespace, names.pop() if len(names) == 1 and "" not in names else namespace


def lines_left(path: Path, made: Manifest) -> bytes:
    """Return a list of lines without those whose images a cleaned manifest lacks; all others as they are.

    Raises
    ------
    UsageError
        The list is JSON.
    """
    file = read_published(path)
    listed = only_list(file)
    if file.form.startswith(("json", "coco")):
        raise UsageError("Only a list of lines can be rewritten", where=str(path), found=file.form)
    (entry,) = made.header.parts
    (source,) = made.header.sources
    remaining = set(made.ids(entry.name))
    ids = listed_image_ids(listed, source.namespace, str(path))
    gone = {line for line, image in zip(listed.lines.tolist(), ids, strict=True) if image not in remaining}
    lines = io.BytesIO(InputFile(path, kind="list").data)
    return b"".join(line for number, line in enumerate(lines, start=1) if number not in gone)
