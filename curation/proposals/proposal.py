"""`Proposal`: what is suspected of one image, and the evidence. A proposal, not a decision.

Nothing here is true because it stands here: membership in a split comes from replayed decisions alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import msgspec

from curation.canonical import sha256_of_bytes

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
        Name of the OOD source, ``--ood NAME=…``.
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
        Every number that was chosen, as decimal strings: see `curation.proposals.thresholds`.
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
        """``sha256:<hex>`` of the file that `curation.proposals.files.write_proposals` writes."""
        return sha256_of_bytes(b"\n".join([*self.lines(), b""]))

    def counts(self) -> dict[str, int]:
        """Return the number of proposals by verdict, in the order remove, near, far, farther, undecided."""
        tally = dict.fromkeys(("remove", "near", "far", "farther", "undecided"), 0)
        for one in self.proposals:
            tally[one.proposal] += 1
        return tally
