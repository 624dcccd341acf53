"""Evidence from pixels: images that look like ID images, and detections of ID classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from curation.core.canonical import sha256_of_lines
from curation.core.errors import ProposalError
from curation.core.files import read_bytes
from curation.core.ids import native_of
from curation.core.json_text import decode_json, json_rows
from curation.core.reading import InputFile
from curation.core.wording import counted
from curation.review.proposals.id_classes import IdClass, name_key, owners
from curation.review.proposals.proposal import Evidence, Input, decimal_text
from curation.signals.similarity.embeddings import Embeddings

if TYPE_CHECKING:
    from curation.signals.similarity.neighbors import SetSimilarity
    from curation.sources.source import Source


def look_cut(median: float, sigma: float, sigmas: Decimal) -> Decimal:
    """Return the similarity to an ID image that makes an image suspect: ``median + sigmas * sigma``, as printed.

    Parameters
    ----------
    median, sigma : float
        m0 and sigma0 of the leave-one-out similarities inside the ID sample (spec 3.3, step 1).
    """
    return Decimal(decimal_text(median + float(sigmas) * sigma))


def look_evidence(look: SetSimilarity, cut: Decimal) -> dict[str, Evidence]:
    """Return evidence, by image id, on images that are as similar to an ID image as ID images are to each other.

    Parameters
    ----------
    look : SetSimilarity
        The nearest ID image of each: s_j of FindMeIfYouCan (Section 3.1).
    cut : Decimal
        See `look_cut`.
    """
    return {
        image: Evidence(
            kind="image_image",
            detail=_ITSELF if image == other else f"{_LIKE}{other}",
            score=decimal_text(score),
            threshold=str(cut),
        )
        for image, score, other in zip(look.ids, look.similarity.tolist(), look.nearest, strict=True)
        if Decimal(decimal_text(score)) >= cut
    }


_ITSELF, _LIKE = "is itself among the ID images", "looks like "


def nearest_id_image(image: str, evidence: Sequence[Evidence]) -> str:
    """Return the ID image that `look_evidence` names for an image, ``""`` without such evidence."""
    for piece in evidence:
        if piece.kind == "image_image":
            return image if piece.detail == _ITSELF else piece.detail.removeprefix(_LIKE)
    return ""


def digest_of(embeddings: Embeddings) -> str:
    """Return the digest of the ids, image digests and encoder of embeddings; floats are not part of it."""
    lines = (f"{id_} {image}" for id_, image in zip(embeddings.ids, embeddings.images, strict=True))
    return sha256_of_lines([embeddings.encoder.digest, *lines])


_HINT = "the results of the detector on the images of this source, as COCO results JSON"


class _Row(msgspec.Struct, gc=False):
    image_id: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | str
    category_id: int
    score: Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Category(msgspec.Struct):
    id: int
    name: str


class _Table(msgspec.Struct):
    categories: tuple[_Category, ...]


@dataclass(frozen=True, slots=True)
class DetectorEvidence:
    """The evidence of a detector.

    Attributes
    ----------
    by_image : dict of str to tuple of Evidence
        Evidence by image id: one piece for each ID class with a confident detection, the most confident first.
    left_out : dict of str to int
        Number of unused detections by reason.
    file : Input
    """

    by_image: dict[str, tuple[Evidence, ...]]
    left_out: dict[str, int]
    file: Input


def read_categories(path: Path, classes: Sequence[IdClass]) -> dict[int, str]:
    """Return the ID class of each category id of a detector that means an ID class.

    Parameters
    ----------
    path : Path
        JSON with ``categories`` of ``id`` and ``name``: the annotation file that the detector was trained with.

    Raises
    ------
    MissingFileError
        No such file.
    ProposalError
        The file has no such table, repeats an id, or no category is an ID class.
    """
    data, message = read_bytes(path, kind="category table"), "The category table cannot be read"
    table = decode_json(data, _Table, ProposalError, message, where=str(path)).categories
    if len({row.id for row in table}) < len(table):
        raise ProposalError("Duplicate category id", where=str(path))
    by_name = owners(classes)
    class_of = {row.id: by_name[key][0] for row in table if (key := name_key(row.name)) in by_name}
    if not class_of:
        raise ProposalError(
            "No category of the detector is an ID class",
            where=str(path),
            expected=", ".join(entry.name for entry in classes[:5]),
            found=", ".join(row.name for row in table[:5])[:200],
        )
    return class_of


def detector_evidence(
    path: Path, source: Source, classes: Mapping[int, str], *, threshold: Decimal, pool: str
) -> DetectorEvidence:
    """Return the confident detections of ID classes on the images of a source.

    Parameters
    ----------
    path : Path
        COCO results JSON; only ``image_id``, ``category_id`` and ``score`` are read.
    classes : mapping of int to str
        ID class of each category number; detections of other numbers are left out and counted.
    threshold : Decimal
        Detections of lower confidence are left out and counted.

    Raises
    ------
    MissingFileError
        No such file.
    ProposalError
        The file is malformed, a score is not in [0, 1], or no image of the file is in the source.
    """
    file = InputFile(path, kind="detections file")
    try:
        rows = json_rows(file.data, _Row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProposalError(
            "The detections file is malformed",
            where=str(path),
            expected='[{"image_id": …, "category_id": …, "bbox": […], "score": …}, …] with scores in [0, 1]',
            found=str(error)[:200],
            hint=_HINT,
        ) from None
    known = dict(zip(source.images.native.tolist(), source.image_ids.tolist(), strict=True))
    scores: dict[str, dict[str, list[float]]] = {}
    left_out = {"on other images": 0, "of other classes": 0, "below the threshold": 0}
    for row in rows:
        image = known.get(native_of(str(row.image_id), source.namespace))
        if image is None:
            left_out["on other images"] += 1
        elif row.category_id not in classes:
            left_out["of other classes"] += 1
        elif Decimal(repr(row.score)) < threshold:
            left_out["below the threshold"] += 1
        else:
            scores.setdefault(image, {}).setdefault(classes[row.category_id], []).append(row.score)
    if rows and left_out["on other images"] == len(rows):
        raise ProposalError(
            "No detection is on an image of the source",
            where=str(path),
            expected=f"ids such as {next(iter(known), '')}",
            found=str(rows[0].image_id)[:80],
            hint=_HINT,
        )
    return DetectorEvidence(
        {image: _evidence(by_class, threshold) for image, by_class in scores.items()},
        {f"detections {reason}": n for reason, n in left_out.items() if n},
        Input(use=f"detections {pool}", name=path.name, sha256=file.sha256),
    )


def _evidence(scores: Mapping[str, Sequence[float]], threshold: Decimal) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            kind="detector",
            detail=f"{counted(len(several), 'detection')} of {name}",
            score=decimal_text(max(several)),
            threshold=str(threshold),
            id_class=name,
        )
        for name, several in sorted(scores.items(), key=lambda item: (-max(item[1]), item[0]))
    )
