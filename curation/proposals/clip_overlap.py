"""Evidence from embeddings: images near the prompt of an ID class, and images that look like ID images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from curation.canonical import sha256_of_lines
from curation.errors import ProposalError
from curation.proposals.id_classes import IdClass, name_key, owners
from curation.proposals.proposal import Evidence, decimal_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from curation.similarity.embeddings import Embeddings


@dataclass(frozen=True)
class Reference:
    """Embedded ID images with the similarity of each to its nearest other one.

    Attributes
    ----------
    embeddings : Embeddings
    images : int
        With another image to compare with.
    median, sigma : float or None
        Median m0 of these similarities, and 1.4826 times their median absolute deviation (spec 3.3, step 1); None with
        fewer than three images.
    """

    embeddings: Embeddings
    images: int
    median: float | None
    sigma: float | None

    def as_texts(self) -> dict[str, str]:
        """Return the figures as texts, for the header of a proposals file."""
        texts = {"images": str(self.images), "encoder": self.embeddings.encoder.digest}
        if self.median is not None and self.sigma is not None:
            texts |= {"median": decimal_text(self.median), "sigma": decimal_text(self.sigma)}
        return texts


def reference_of(embeddings: Embeddings) -> Reference:
    """Return the leave-one-out reference of an ID sample; an image is never its own neighbour."""
    from curation.similarity.set_similarity import reference_statistics

    found = reference_statistics(embeddings)
    return Reference(embeddings, found.n, found.median, found.sigma)


@dataclass(frozen=True, slots=True)
class Look:
    """The nearest ID image of each image: s_j of FindMeIfYouCan (Section 3.1 of its code's reading).

    Attributes
    ----------
    images : tuple of str, length n
        Image ids, unique, in the order of the embeddings.
    similarity : ndarray of float32, shape (n,)
        Cosine similarity to the nearest ID image; of an image embedded as several boxes, that of its nearest box.
    nearest : tuple of str, length n
        Id of that ID image.
    encoder : str
    """

    images: tuple[str, ...]
    similarity: npt.NDArray[np.float32]
    nearest: tuple[str, ...]
    encoder: str


def text_evidence(
    images: Embeddings, prompts: Embeddings, classes: Sequence[IdClass], *, margin: Decimal
) -> dict[str, Evidence]:
    """Return the images whose best ID prompt exceeds their best other prompt by a margin, by image id.

    Parameters
    ----------
    images : Embeddings
        Of the OOD images, or of boxes in them.
    prompts : Embeddings
        Of texts, by the name or alias of the class that each speaks of: ID classes and others; both must be there.
    margin : Decimal
        Least difference of cosine similarities, both rounded as printed.

    Raises
    ------
    ProposalError
        Images and prompts are of two encoders, or the prompts are of ID classes alone, or of none.
    """
    require_same_encoder(images.encoder.digest, prompts.encoder.digest, "the images", "the prompts")
    owner = {key: name for key, (name, _) in owners(classes).items()}
    is_id = np.array([name_key(name) in owner for name in prompts.ids], np.bool_)
    if not is_id.any() or is_id.all():
        raise ProposalError(
            "Needs prompts of both ID classes and other classes",
            where="the embedded texts",
            expected="some of each",
            found=f"{int(is_id.sum())} of ID classes, {int((~is_id).sum())} of others",
        )
    scores = images.normalised() @ prompts.normalised().T
    known = np.where(is_id, scores, -np.inf)
    others = np.where(is_id, -np.inf, scores)
    best_id, best_other = known.argmax(axis=1), others.argmax(axis=1)
    rows = np.arange(len(scores))
    differences = known[rows, best_id].astype(np.float64) - others[rows, best_other]
    found: dict[str, tuple[float, Evidence]] = {}
    for row in np.flatnonzero(differences >= float(margin) - 1e-4).tolist():
        text = decimal_text(differences[row])
        if Decimal(text) < margin:
            continue
        name = owner[name_key(prompts.ids[best_id[row]])]
        other = prompts.ids[best_other[row]]
        evidence = Evidence(
            kind="image_text",
            detail=f"{name} {scores[row, best_id[row]]:.4f}, next {other} {scores[row, best_other[row]]:.4f}",
            score=text,
            threshold=str(margin),
            id_class=name,
        )
        image = image_of(images.ids[row])
        if image not in found or differences[row] > found[image][0]:
            found[image] = (float(differences[row]), evidence)
    return {image: evidence for image, (_, evidence) in found.items()}


def look_at(images: Embeddings, references: Embeddings) -> Look:
    """Return the nearest ID image of every image.

    Raises
    ------
    ProposalError
        The two are of different encoders, or there is no reference.
    """
    from curation.similarity.neighbors import nearest

    require_same_encoder(images.encoder.digest, references.encoder.digest, "the OOD images", "the ID images")
    if not len(references.ids):
        raise ProposalError("There is no embedded ID image to compare with")
    indices, scores = nearest(images.normalised(), references.normalised(), 1)
    best: dict[str, int] = {}
    for row, image in enumerate(map(image_of, images.ids)):
        if image not in best or scores[row, 0] > scores[best[image], 0]:
            best[image] = row
    rows = list(best.values())
    return Look(
        images=tuple(best),
        similarity=scores[rows, 0],
        nearest=tuple(references.ids[int(indices[row, 0])] for row in rows),
        encoder=images.encoder.digest,
    )


def look_evidence(look: Look, *, median: float, sigma: float, sigmas: Decimal) -> dict[str, Evidence]:
    """Return the images that are as near to an ID image as ID images are to each other, by image id.

    Parameters
    ----------
    median, sigma : float
        m0 and sigma0 of the leave-one-out similarities inside the ID sample (spec 3.3, step 1).
    sigmas : Decimal
        The cut is ``median + sigmas * sigma``.
    """
    cut = Decimal(decimal_text(median + float(sigmas) * sigma))
    return {
        image: Evidence(
            kind="image_image",
            detail=_ITSELF if image == image_of(other) else f"{_LIKE}{other}",
            score=decimal_text(score),
            threshold=str(cut),
        )
        for image, score, other in zip(look.images, look.similarity.tolist(), look.nearest, strict=True)
        if Decimal(decimal_text(score)) >= cut
    }


_ITSELF, _LIKE = "is itself among the ID images", "looks like "


def nearest_id_image(image: str, evidence: Sequence[Evidence]) -> str:
    """Return the ID image that `look_evidence` names for an image, ``""`` where none of its evidence does."""
    for one in evidence:
        if one.kind == "image_image":
            return image if one.detail == _ITSELF else image_of(one.detail.removeprefix(_LIKE))
    return ""


def image_of(embedded: str) -> str:
    """Return the image of an embedded image or box: ``coco:000000000139`` of ``coco:000000000139#3``."""
    image, mark, number = embedded.rpartition("#")
    return image if mark and number.isascii() and number.isdigit() else embedded


def require_same_encoder(first: str, second: str, what: str, other: str) -> None:
    """Raise `ProposalError` unless two sets of embeddings come from one encoder."""
    if first != second:
        raise ProposalError(
            f"The embeddings of {what} and of {other} come from two encoders: their similarity means nothing",
            expected=first,
            found=second,
            hint="curation similarity embed … with the same --model and --pretrained for both",
        )


def digest_of(embeddings: Embeddings) -> str:
    """Return a digest of what was embedded, by which encoder: of ids, image digests and encoder, not of floats."""
    lines = (f"{one} {image}" for one, image in zip(embeddings.ids, embeddings.images, strict=True))
    return sha256_of_lines([embeddings.encoder.digest, *lines])
