"""`Proposal`: the suspicion on an image, and its evidence. A proposal is not a decision.

Membership in a split comes from replayed decisions alone. A file of proposals is JSON lines: a header, then one
proposal per line, by rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ImageIdError, ProposalError, UsageError
from curation.core.files import read_bytes
from curation.core.ids import parse_image_id
from curation.core.writing import write_bytes


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds chosen by this project; the paper states none.

    Attributes
    ----------
    near_wup : Decimal
        A category is near if its Wu-Palmer similarity to the nearest ID class is at least this (0 to 1).
    look_sigma : Decimal
        An image is suspect if its similarity to the nearest ID image is at least the median of ID images among
        themselves plus this many robust deviations (-100 to 100).
    detector_score : Decimal
        A detection of an ID class counts from this confidence.
    agreeing : int
        Number of kinds of suspicion that propose removal; fewer leave an image undecided.
    """

    near_wup: Decimal = Decimal("0.82")
    look_sigma: Decimal = Decimal("0")
    detector_score: Decimal = Decimal("0.5")
    agreeing: int = 2

    def as_texts(self) -> dict[str, str]:
        """Return every threshold as a decimal string."""
        return {name: str(value) for name, value in asdict(self).items()}


_BOUNDS: dict[str, tuple[int, int]] = {
    "near_wup": (0, 1),
    "look_sigma": (-100, 100),
    "detector_score": (0, 1),
    "agreeing": (1, 4),
}


def thresholds_from(texts: Mapping[str, str]) -> Thresholds:
    """Return the thresholds of ``--set KEY=VALUE``, with defaults for the others.

    Raises
    ------
    UsageError
        No such threshold, or its value is not a decimal number within its bounds.
    """
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in _BOUNDS:
            raise UsageError("No such threshold", where=f"--set {name[:60]}", expected=", ".join(_BOUNDS))
        (low, high), is_whole = _BOUNDS[name], name == "agreeing"
        try:
            value = Decimal(text if len(text) <= 20 else "NaN")
        except InvalidOperation:
            value = Decimal("NaN")
        if not (value.is_finite() and low <= value <= high) or (is_whole and value != int(value)):
            raise UsageError(
                f"The threshold {name} is out of bounds",
                where=f"--set {name}={text[:40]}",
                expected=f"a {'whole' if is_whole else 'decimal'} number from {low} to {high}",
            )
        values[name] = int(value) if is_whole else value
    return Thresholds(**values)


def decimal_text(value: float) -> str:
    """Return a measured number as a decimal string with four places, never a negative zero: ``"0.8235"``.

    Four places, since BLAS libraries differ in the seventh digit of a float32 product.
    """
    return f"{round(float(value), 4) + 0.0:.4f}"


NOTE = "a proposal, not a decision: membership comes from replayed human decisions alone"
"""Part of every file, table and printed result that is made of proposals."""

_HINT = "curation review propose … --out FILE.jsonl"
Form = TypeVar("Form")

Verdict = Literal["remove", "near", "far", "undecided"]
Judgement = Literal["overlap", "part", "broader", "near", "far", "unjudged"]

KINDS: dict[str, str] = {
    "label_name": "an annotation names an ID class",
    "label_alias": "an annotation names an ID class by an alias",
    "label_synonym": "an annotation's synset is that of an ID class",
    "label_kind": "an annotation is of a kind of an ID class",
    "label_part": "an annotation is of a part of an ID class",
    "detector": "a detector is confident of an ID class",
    "image_image": "the image looks as like an ID image as ID images look like each other",
    "label_broader": "an annotation is of a class that an ID class is a kind of",
    "near_listed": "an annotation is of a category listed as near",
    "near_kinship": "an annotation is of a category near to an ID class by Wu-Palmer similarity",
    "far_listed": "an annotation is of a category listed as far",
    "far_kinship": "no annotation is of a category near to an ID class",
    "unjudged": "nothing says how near the image is",
}
"""Every kind of evidence, the strongest first: the order of evidence and of ranks."""
Kind = Annotated[str, msgspec.Meta(pattern=rf"^(?:{'|'.join(KINDS)})\Z")]
STRENGTH: dict[str, int] = {kind: number for number, kind in enumerate(KINDS)}

OVERLAPS = ("label_name", "label_alias", "label_synonym", "label_kind")
"""Kinds of evidence of which one is enough to propose the removal of an image."""
SUSPICIONS = ("label_part", "detector", "image_image", "label_broader")
"""Kinds of evidence of which several must agree, because each alone is wrong too often."""


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable record; an unknown field in a file is an error."""


class Evidence(_Record, frozen=True):
    """One reason to look at an image.

    Attributes
    ----------
    kind : str
        A key of `KINDS`.
    detail : str
        The observation as text: ``"Human face (2 objects): part of person"``.
    score : str
        Strength as a decimal string; ``""`` for kinds without a score.
    threshold : str
        Threshold of the score as a decimal string; ``""`` for none.
    id_class : str
        The ID class concerned, ``""`` for none in particular.
    """

    kind: Kind
    detail: str
    score: str = ""
    threshold: str = ""
    id_class: str = ""


class Proposal(_Record, frozen=True):
    """A proposal for one image, not a decision.

    Attributes
    ----------
    image_id : str
        ``namespace:native``.
    proposal : {"remove", "near", "far", "undecided"}
    reason : str
        One short phrase, the same for images proposed for the same reason: ``"remove: cat"``. Review shows a view for
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
    evidence: Annotated[tuple[Evidence, ...], msgspec.Meta(min_length=1)]
    rank: int
    pool: str = ""


class Input(_Record, frozen=True):
    """A file or store from which proposals were made.

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
    """The judgement of a category of an OOD source: a proposal, not a decision.

    Attributes
    ----------
    pool, category : str
    images : int
        Number of images with an annotation of the category, including crowd.
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
    judgement: Judgement
    reason: str
    id_class: str = ""
    synset: str = ""
    kinship: str = ""


class _Made(_Record, frozen=True, kw_only=True):
    id_classes: tuple[str, ...]
    thresholds: dict[str, str]
    inputs: tuple[Input, ...]
    categories: tuple[CategoryJudgement, ...] = ()
    reference: dict[str, str] = {}
    left_out: dict[str, int] = {}
    note: str = NOTE


class _Head(_Made, frozen=True, kw_only=True):
    format: Literal["curation-proposals"]
    version: Literal[2]
    count: int


class ProposalSet(_Made, frozen=True, kw_only=True, dict=True):
    """Proposals for the images of OOD sources, with their inputs and settings.

    Attributes
    ----------
    id_classes : tuple of str
    thresholds : dict of str to str
        Chosen thresholds as decimal strings: see `Thresholds`.
    inputs : tuple of Input
    categories : tuple of CategoryJudgement
    reference : dict of str to str
        Nearest-neighbour similarity of ID images among themselves: ``images``, ``median``, ``sigma``. Empty without
        embeddings.
    left_out : dict of str to int
        Number of unused records by reason.
    note : str
        States that these are proposals, not decisions.
    proposals : tuple of Proposal
        By rank: 1, 2, 3, …
    """

    proposals: tuple[Proposal, ...]

    def header(self) -> dict[str, Any]:
        """Return everything but the proposals as plain data: the first line of a file."""
        data = {name: msgspec.to_builtins(getattr(self, name)) for name in _Made.__struct_fields__}
        return {"format": "curation-proposals", "version": 2, "count": len(self.proposals), **data}

    def lines(self) -> list[bytes]:
        """Return header and proposals as lines of JSON, keys sorted, without line feeds: the file's content."""
        encoder = msgspec.json.Encoder(order="sorted")
        return [encoder.encode(self.header()), *map(encoder.encode, self.proposals)]

    @cached_property
    def digest(self) -> str:
        """``sha256:<hex>`` of the file that `write_proposals` writes."""
        return sha256_of_bytes(b"\n".join([*self.lines(), b""]))

    def counts(self) -> dict[str, int]:
        """Return the number of proposals by verdict, in the order remove, near, far, undecided."""
        counts = Counter(proposal.proposal for proposal in self.proposals)
        return {verdict: counts[verdict] for verdict in get_args(Verdict)}


def write_proposals(path: Path, made: ProposalSet) -> None:
    """Write proposals as JSON lines (UTF-8, line feeds): the same proposals are the same bytes on every machine."""
    write_bytes(path, b"\n".join([*made.lines(), b""]))


def read_proposals(path: Path) -> ProposalSet:
    """Return the proposals of a file that `write_proposals` wrote.

    Raises
    ------
    MissingFileError
        No such file.
    ProposalError
        The file is malformed or incomplete, repeats an image, or its ranks are not 1, 2, 3, …; the message names the
        line.
    """
    data = read_bytes(path, kind="proposals file")
    first, *rows = data.split(b"\n")
    head = _decoded(first, _Head, "The header of the proposals file is malformed", f"{path}: line 1")
    if not data.endswith(b"\n") or len(rows) - 1 != head.count:
        raise ProposalError(
            "The proposals file is not complete, or has extra lines",
            where=str(path),
            expected=f"{head.count} proposals, as its first line says",
            found=str(len(rows) - 1) if data.endswith(b"\n") else "a line that is cut off",
            hint=_HINT,
        )
    proposals, seen = [], set[str]()
    for rank, row in enumerate(rows[:-1], 1):
        where = f"{path}: line {rank + 1}"
        proposal = _decoded(row, Proposal, "Malformed proposal", where)
        try:
            parse_image_id(proposal.image_id)
        except ImageIdError as error:
            raise ProposalError(error.what, where=where, expected=error.expected, found=error.found) from None
        if proposal.image_id in seen or proposal.rank != rank:
            raise ProposalError(
                "The image already has a proposal"
                if proposal.image_id in seen
                else "The proposals are not sorted by rank",
                where=where,
                expected=f"rank {rank}, each image once",
                found=f"rank {proposal.rank}, {proposal.image_id}",
            )
        seen.add(proposal.image_id)
        proposals.append(proposal)
    return ProposalSet(proposals=tuple(proposals), **{name: getattr(head, name) for name in _Made.__struct_fields__})


def _decoded(line: bytes, form: type[Form], message: str, where: str) -> Form:
    try:
        return msgspec.json.decode(line, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProposalError(message, where=where, found=str(error)[:200], hint=_HINT) from None
