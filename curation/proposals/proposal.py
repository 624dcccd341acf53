"""`Proposal`: what is suspected of one image, and the evidence. A proposal, not a decision.

Nothing here is true because it stands here: membership in a split comes from replayed decisions alone. Proposals are
kept as JSON lines: a header, then one proposal a line, by rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from curation.canonical import sha256_of_bytes
from curation.errors import ImageIdError, ProposalError, UsageError
from curation.ids import parse_image_id
from curation.storage import read_bytes, write_bytes

_PLACES = 4


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is chosen, not found: none of these numbers stands in the paper, which has no threshold at all.

    Attributes
    ----------
    near_wup : Decimal
        A category is near if its Wu-Palmer similarity to the nearest ID class is at least this (0 to 1).
    text_margin : Decimal
        An image is suspect if its cosine similarity to the best ID prompt exceeds that to the best other prompt by at
        least this (0 to 2).
    look_sigma : Decimal
        An image is suspect if its similarity to the nearest ID image is at least the median of ID images among
        themselves plus this many robust deviations (-100 to 100).
    detector_score : Decimal
        A detection of an ID class counts from this confidence.
    agreeing : int
        So many kinds of suspicion propose removal; fewer leave an image undecided.
    standard_errors : Decimal
        A set is farther only if its mean similarity is lower by more than this many standard errors.
    farther_below : Decimal or None
        A set is farther if its mean similarity is below this; None to compare with the lowest of other far sets.
    """

    near_wup: Decimal = Decimal("0.82")
    text_margin: Decimal = Decimal("0.01")
    look_sigma: Decimal = Decimal("0")
    detector_score: Decimal = Decimal("0.5")
    agreeing: int = 2
    standard_errors: Decimal = Decimal("2")
    farther_below: Decimal | None = None

    def as_texts(self) -> dict[str, str]:
        """Return every threshold as a decimal string; ``""`` where none is set."""
        return {name: "" if value is None else str(value) for name, value in asdict(self).items()}


_BOUNDS: dict[str, tuple[int, int]] = {
    "near_wup": (0, 1),
    "text_margin": (0, 2),
    "look_sigma": (-100, 100),
    "detector_score": (0, 1),
    "agreeing": (1, 5),
    "standard_errors": (0, 100),
    "farther_below": (-1, 1),
}


def thresholds_from(texts: Mapping[str, str]) -> Thresholds:
    """Return the thresholds that ``--set KEY=VALUE`` asks for, the others at their defaults.

    Raises
    ------
    UsageError
        There is no such threshold, or its value is no decimal number within its bounds.
    """
    known = [one.name for one in fields(Thresholds)]
    values: dict[str, Decimal | int] = {}
    for name, text in texts.items():
        if name not in known:
            raise UsageError("There is no such threshold", where=f"--set {name[:60]}", expected=", ".join(known))
        values[name] = _value(name, text)
    return Thresholds(**values)  # type: ignore[arg-type]


def decimal_text(value: float) -> str:
    """Return a measured number as a decimal string with four places, never a negative zero: ``"0.8235"``.

    Four places, since BLAS libraries differ in the seventh digit of a float32 product.
    """
    rounded = round(float(value), _PLACES) + 0.0
    return f"{rounded:.{_PLACES}f}"


def _value(name: str, text: str) -> Decimal | int:
    low, high = _BOUNDS[name]
    try:
        value = Decimal(text) if len(text) <= 20 else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    whole = name == "agreeing"
    if not value.is_finite() or not low <= value <= high or (whole and value != int(value)):
        raise UsageError(
            f"The threshold {name} is out of bounds",
            where=f"--set {name}={text[:40]}",
            expected=f"a {'whole' if whole else 'decimal'} number from {low} to {high}",
        )
    return int(value) if whole else value


NOTE = "a proposal, not a decision: membership comes from replayed human decisions alone"
"""Stands in every file, table and printed result that is made of proposals."""

FORMAT = "curation-proposals"
FORMAT_VERSION = 1

Verdict = Literal["remove", "near", "far", "farther", "undecided"]
Group = Literal["near", "far", "all"]
Kind = Literal[
    "label_name",
    "label_alias",
    "label_synonym",
    "label_kind",
    "label_part",
    "detector",
    "image_text",
    "image_image",
    "label_broader",
    "near_listed",
    "near_kinship",
    "far_listed",
    "far_kinship",
    "unjudged",
]

KINDS: dict[str, str] = {
    "label_name": "an annotation names an ID class",
    "label_alias": "an annotation names an ID class by an alias",
    "label_synonym": "an annotation's synset is that of an ID class",
    "label_kind": "an annotation is of a kind of an ID class",
    "label_part": "an annotation is of a part of an ID class",
    "detector": "a detector is confident of an ID class",
    "image_text": "the image is nearer to the prompt of an ID class than to that of any other class",
    "image_image": "the image looks as like an ID image as ID images look like each other",
    "label_broader": "an annotation is of a class that an ID class is a kind of",
    "near_listed": "an annotation is of a category listed as near",
    "near_kinship": "an annotation is of a category near to an ID class by Wu-Palmer similarity",
    "far_listed": "an annotation is of a category listed as far",
    "far_kinship": "no annotation is of a category near to an ID class",
    "unjudged": "nothing says how near the image is",
}
"""Every kind of evidence, the strongest first: the order in which evidence is listed and ranks are given."""
STRENGTH: dict[str, int] = {kind: place for place, kind in enumerate(KINDS)}

OVERLAPS = ("label_name", "label_alias", "label_synonym", "label_kind")
"""Kinds of which one is enough to propose that an image be removed."""
SUSPICIONS = ("label_part", "detector", "image_text", "image_image", "label_broader")
"""Kinds of which several must agree: each alone is wrong too often."""
SEEN_BY_MACHINE = ("detector", "image_text", "image_image")
"""Kinds that come from pixels, not from annotations."""


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable record; an unknown field in a file is an error."""


class Evidence(_Record, frozen=True):
    """One reason to look at an image.

    Attributes
    ----------
    kind : str
        A key of `KINDS`.
    detail : str
        What was seen, for a reader: ``"Human face (2 objects): part of person"``.
    score : str
        How strong, as a decimal string; ``""`` where the kind knows no degrees.
    threshold : str
        What the score was held against, as a decimal string; ``""`` for none.
    id_class : str
        The ID class concerned, ``""`` for none in particular.
    """

    kind: Kind
    detail: str
    score: str = ""
    threshold: str = ""
    id_class: str = ""


class Proposal(_Record, frozen=True):
    """What is proposed for one image: a proposal, not a decision.

    Attributes
    ----------
    image_id : str
        ``namespace:native``.
    proposal : {"remove", "near", "far", "farther", "undecided"}
    reason : str
        One short phrase, the same for images proposed for the same reason: ``"remove: cat"``. Review makes a view of
        each.
    evidence : tuple of Evidence
        The strongest first; never empty.
    rank : int
        1-based, the most suspect first: the order of review.
    pool : str
        Name of the OOD source, ``--source NAME=…``.
    """

    image_id: str
    proposal: Verdict
    reason: str
    evidence: tuple[Evidence, ...]
    rank: int
    pool: str = ""


class SetProposal(_Record, frozen=True):
    """How far a set of images lies from the ID images: a proposal, not a decision.

    Attributes
    ----------
    name : str
        ``POOL GROUP``.
    group : {"near", "far", "all"}
        The images that are near by their annotations, those that are far, or all that annotations do not propose for
        removal. What detector and embeddings say does not count here: it would make the sets what they measure.
    proposal : {"near", "far", "farther", "undecided"}
    reason : str
    images : int
        With an embedding.
    mean_similarity, standard_error : str or None
        Of the cosine similarity s_j of each image to its nearest ID image, decimal strings; the standard error is the
        sample deviation over the square root of the number. None without embeddings, or (error) with fewer than two.
    mean_kinship : str or None
        Mean over the set's annotated categories of the Wu-Palmer similarity to the nearest ID class; None where no
        category has a synset.
    encoder : str
        Digest of the encoder: only sets of one encoder may be compared. ``""`` without embeddings.
    """

    name: str
    group: Group
    proposal: Verdict
    reason: str
    images: int
    mean_similarity: str | None = None
    standard_error: str | None = None
    mean_kinship: str | None = None
    encoder: str = ""


class Input(_Record, frozen=True):
    """A file or store that proposals were made from.

    Attributes
    ----------
    use : str
        ``id_classes``, ``ood coco``, ``embeddings_id``, …
    name : str
        File name without its folder.
    sha256 : str
        ``sha256:<hex>`` of the bytes, or of the store's content.
    """

    use: str
    name: str
    sha256: str


class CategoryJudgement(_Record, frozen=True):
    """What is thought of one category of an OOD source: a proposal, not a decision.

    Attributes
    ----------
    pool, category : str
    images, objects : int
        With an annotation of the category, crowd included; objects are 0 for a presence-only source.
    judgement : {"overlap", "part", "broader", "near", "far", "unjudged"}
    reason : str
    id_class : str
        The ID class concerned or the nearest one, ``""`` for none.
    synset : str
        The category's noun synset in WordNet 3.0, ``""`` for none.
    kinship : str
        Wu-Palmer similarity to the nearest ID class, a decimal string: 1 for an ID class itself, ``""`` where there is
        none.
    """

    pool: str
    category: str
    images: int
    objects: int
    judgement: Literal["overlap", "part", "broader", "near", "far", "unjudged"]
    reason: str
    id_class: str = ""
    synset: str = ""
    kinship: str = ""


class ProposalSet(_Record, frozen=True, dict=True):
    """Proposals for the images of one or several OOD sources, with all that made them.

    Attributes
    ----------
    id_classes : tuple of str
    thresholds : dict of str to str
        Every number that was chosen, as decimal strings: see `curation.proposals.proposal`.
    inputs : tuple of Input
    categories : tuple of CategoryJudgement
    sets : tuple of SetProposal
    reference : dict of str to str
        Nearest-neighbour similarity of ID images among themselves: ``images``, ``median``, ``sigma``. Empty without
        embeddings.
    left_out : dict of str to int
        Records that were not used, by reason, with counts.
    proposals : tuple of Proposal
        By rank: 1, 2, 3, …
    note : str
        That these are proposals, not decisions.
    """

    id_classes: tuple[str, ...]
    thresholds: dict[str, str]
    inputs: tuple[Input, ...]
    proposals: tuple[Proposal, ...]
    categories: tuple[CategoryJudgement, ...] = ()
    sets: tuple[SetProposal, ...] = ()
    reference: dict[str, str] = {}
    left_out: dict[str, int] = {}
    note: str = NOTE

    def header(self) -> dict[str, Any]:
        """Return everything but the proposals as plain data: the first line of a file."""
        fields = (name for name in self.__struct_fields__ if name != "proposals")
        data = {name: msgspec.to_builtins(getattr(self, name)) for name in fields}
        return {"format": FORMAT, "version": FORMAT_VERSION, "count": len(self.proposals), **data}

    def lines(self) -> list[bytes]:
        """Return header and proposals as lines of JSON, keys sorted, without line feeds: the file's content."""
        encoder = msgspec.json.Encoder(order="sorted")
        return [encoder.encode(self.header()), *map(encoder.encode, self.proposals)]

    @cached_property
    def digest(self) -> str:
        """``sha256:<hex>`` of the file that `curation.proposals.proposal.write_proposals` writes."""
        return sha256_of_bytes(b"\n".join([*self.lines(), b""]))

    def counts(self) -> dict[str, int]:
        """Return the number of proposals by verdict, in the order remove, near, far, farther, undecided."""
        tally = dict.fromkeys(("remove", "near", "far", "farther", "undecided"), 0)
        for one in self.proposals:
            tally[one.proposal] += 1
        return tally


_LONGEST_LINE = 1 << 26
_HINT = "curation review propose … --out FILE"


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0
    count: int = -1


def write_proposals(path: Path, made: ProposalSet) -> None:
    """Write proposals as JSON lines (UTF-8, line feeds): the same proposals are the same bytes on every machine."""
    write_bytes(path, b"\n".join([*made.lines(), b""]))


def read_proposals(path: Path) -> ProposalSet:
    """Return the proposals of a file that `write_proposals` wrote.

    Raises
    ------
    MissingFileError
        There is no such file.
    ProposalError
        The file is no such file, is cut short, names an image twice, or its ranks are not 1, 2, 3, …; the message names
        the line.
    """
    data = read_bytes(path, kind="proposals file")
    if not data.endswith(b"\n"):
        raise ProposalError(
            "The proposals file ends within a line" if data else "The proposals file is empty",
            where=str(path),
            hint=_HINT,
        )
    head, *rows = data[:-1].split(b"\n")
    count = _check_head(head, path)
    if len(rows) != count:
        raise ProposalError(
            "The proposals file is cut short" if len(rows) < count else "The proposals file has lines too many",
            where=str(path),
            expected=f"{count} proposals, as its first line says",
            found=str(len(rows)),
            hint=_HINT,
        )
    proposals = tuple(_proposal(row, f"{path}: line {place}") for place, row in enumerate(rows, 2))
    _check_ids(proposals, path)
    return _with_header(head, proposals, path)


def _check_head(line: bytes, path: Path) -> int:
    try:
        head = msgspec.json.decode(line, type=_Head) if len(line) < _LONGEST_LINE else _Head()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = _Head()
    if head.format != FORMAT or head.version != FORMAT_VERSION:
        raise ProposalError(
            "The file does not hold proposals that this version reads",
            where=f"{path}: line 1",
            expected=f'a header with "format": "{FORMAT}" and "version": {FORMAT_VERSION}',
            found=repr(line[:60]),
            hint=_HINT,
        )
    return head.count


def _proposal(line: bytes, where: str) -> Proposal:
    try:
        one = msgspec.json.decode(line, type=Proposal)
        parse_image_id(one.image_id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ImageIdError) as error:
        what = error.what if isinstance(error, ImageIdError) else str(error)
        raise ProposalError("A line is no proposal", where=where, found=what[:200], hint=_HINT) from None
    if not one.evidence:
        raise ProposalError("A proposal carries no evidence", where=where, found=one.image_id, hint=_HINT)
    return one


def _check_ids(proposals: tuple[Proposal, ...], path: Path) -> None:
    repeated = [image for image, n in Counter(one.image_id for one in proposals).items() if n > 1]
    if repeated:
        raise ProposalError(
            f"{len(repeated)} images have two proposals",
            where=str(path),
            expected="one an image",
            found=", ".join(repeated[:3]),
        )
    wrong = next((place for place, one in enumerate(proposals, 1) if one.rank != place), None)
    if wrong is not None:
        raise ProposalError(
            "The proposals are not in the order of their ranks",
            where=f"{path}: line {wrong + 1}",
            expected=f"rank {wrong}",
            found=str(proposals[wrong - 1].rank),
        )


def _with_header(line: bytes, proposals: tuple[Proposal, ...], path: Path) -> ProposalSet:
    try:
        data = msgspec.json.decode(line)
        for name in ("format", "version", "count"):
            del data[name]
        return msgspec.convert({**data, "proposals": proposals}, ProposalSet)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProposalError(
            "The header of the proposals file is malformed", where=f"{path}: line 1", found=str(error)[:200]
        ) from None
