"""A review as a FiftyOne dataset: its fields, its samples, how the App shows them, and its saved views.

FiftyOne's own objects for samples and boxes cost 20 ms an image. So FiftyOne stores a single bare sample; its document
is the template for the documents of all images, which are inserted in batches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import numpy as np

from curation.core.errors import ReviewError
from curation.review.app.images import ReviewImages, box_slices
from curation.review.decisions.verdicts import CONFLICT
from curation.review.proposals.proposal import KINDS
from curation.review.proposals.proposal import Verdict as Proposed

if TYPE_CHECKING:
    from curation.signals.similarity.embeddings import Embeddings

KNOWN, UNKNOWN, OTHER = "known", "unknown", "other"
FIELD_OF_ROLE = {"known": KNOWN, "previous": KNOWN, "unknown": UNKNOWN}
"""The field of boxes by role: the App's grid colours whole fields only."""

BOX_FIELDS = {
    KNOWN: "boxes of ID classes: known to the detector, or known from a previous task",
    UNKNOWN: "boxes of classes that are unknown",
    OTHER: "boxes of negative or ignored classes, and of classes without a known role",
}

EMBEDDING_KEY = "look"
"""Brain key of the similarity index, and its name in the App's sort-by-similarity."""

INFO_KEY = "curation_review"
"""Key of `dataset.info` for the log and the manifest of a review dataset."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a sample: its name, kind (``text``, ``texts``, ``whole``, ``rows``) and meaning."""

    name: str
    kind: str
    meaning: str
    indexed: bool = False


EVIDENCE_FIELDS = (
    Field("image_id", "text", "namespaced id, such as coco:000000397133", indexed=True),
    Field("part", "text", "part of the manifest, or source, of the image"),
    Field("pool", "text", "what a decision on this image applies to: the part, or the named pool"),
    Field("classes", "texts", "classes that the annotations name, sorted"),
    Field("proposal", "text", "what is proposed, not decided: remove?, near?, far?, farther?, undecided?"),
    Field("reason", "text", "reason of the proposal", indexed=True),
    Field("rank", "whole", "place among the proposals, the most suspect first", indexed=True),
    Field("evidence_kinds", "texts", "kinds of the evidence, the strongest first", indexed=True),
    Field("evidence_rows", "rows", "each piece of evidence: kind, why, detail, score, threshold, id_class"),
    Field("id_classes", "texts", "ID classes that the evidence speaks of, sorted"),
    Field("nearest", "text", "ID image that looks most like this one, where that is evidence"),
    # The server sends only files of fields whose name ends in path.
    Field("nearest_path", "text", "photo of that ID image, where it was found"),
    Field("details", "texts", "of a pair of photos: both images with their lists, and the evidence"),
    Field("batch", "text", "batch that the image is reviewed in", indexed=True),
    Field("assigned_to", "texts", "reviewers who judge the image; empty: all"),
)
"""Fields that are written once, when the dataset is built."""

VERDICT_FIELDS = (
    Field("verdict", "text", "keep, remove, near, far, same, different, unsure; conflict where reviewers disagree"),
    Field("verdicts", "texts", "the current decision of each reviewer"),
    Field("decided_by", "texts", "reviewers with a current decision"),
)
"""Fields that each decision changes, after the log. They have no index: it would sort the saved views by them."""

FIELDS = EVIDENCE_FIELDS + VERDICT_FIELDS


_FIRST = ("image_id", "batch")
"""Fields that the sidebar shows after those on the tiles.

Each visible field costs the App time at every image. The other fields are in a closed group, and in the evidence panel.
"""
_INNER = ("evidence_rows", "nearest_path", "decided_by", "assigned_to")
"""Fields for the App alone, not for reviewers."""


def proposed(word: str) -> str:
    """Return the text of a proposal: ``remove?``, which does not look like a decision."""
    return f"{word}?"


# Okabe and Ito's palette, which colour-blind readers can distinguish.
VERDICT_COLOURS = {
    "keep": "#009e73",
    "remove": "#d55e00",
    "near": "#e69f00",
    "far": "#0072b2",
    "same": "#d55e00",
    "different": "#009e73",
    "unsure": "#999999",
    "conflict": "#cc79a7",
}
PROPOSAL_COLOURS = {
    proposed(word): colour
    for word, colour in {**VERDICT_COLOURS, "undecided": "#999999"}.items()
    if word in get_args(Proposed)
}
BOX_COLOURS = {KNOWN: "#d55e00", UNKNOWN: "#56b4e9", OTHER: "#999999"}
TAG_COLOURS = {"verdict": "#737e89", "proposal": "#737e89", "classes": "#737e89"}
"""Fields that tiles show as tags, in the order of the sidebar."""


def _arrange_app(fiftyone: Any, dataset: Any, images: ReviewImages) -> None:
    """Give the sidebar a group of the review's fields, show boxes and tags on tiles, and fix every colour."""
    config = dataset.app_config
    ours = [*TAG_COLOURS, *_FIRST]
    others = [*(field.name for field in FIELDS if field.name not in (*ours, *_INNER)), *_INNER]
    groups = fiftyone.DatasetAppConfig.default_sidebar_groups(dataset)
    for group in groups:
        group.paths = [path for path in group.paths if path not in (*ours, *others)]
        group.expanded = group.name == "labels"
    review = fiftyone.SidebarGroupDocument(name="review", paths=ours, expanded=True)
    more = fiftyone.SidebarGroupDocument(name="review, more", paths=others, expanded=False)
    config.sidebar_groups = [review, *groups, more]
    config.active_fields = fiftyone.core.odm.dataset.ActiveFields(paths=[*BOX_FIELDS, *TAG_COLOURS])
    # A tile shows a decision in the colour of its key; boxes have one colour per field.
    colours: dict[str, Mapping[str, str]] = {"verdict": VERDICT_COLOURS, "proposal": PROPOSAL_COLOURS}
    labels = sorted(set(zip(images.boxes.labels, images.boxes.roles, strict=True)))
    for field, colour in BOX_COLOURS.items():
        colours[field] = {label: colour for label, role in labels if FIELD_OF_ROLE.get(role, OTHER) == field}
    colours["classes"] = dict.fromkeys(sorted(set().union(*images.classes)), TAG_COLOURS["classes"])
    config.color_scheme = fiftyone.ColorScheme(
        color_by="value",
        color_pool=list(VERDICT_COLOURS.values()),
        fields=[
            {
                "path": path,
                "fieldColor": colour,
                "colorByAttribute": "label" if path in BOX_COLOURS else None,
                "valueColors": [{"value": value, "color": shown} for value, shown in colours[path].items()],
            }
            for path, colour in {**BOX_COLOURS, **TAG_COLOURS}.items()
        ],
    )
    dataset.save()


OPEN_VIEW, CONFLICT_VIEW = "to decide", "conflicts"


INSERTED_AT_ONCE = 2000
READY, BUILDING = "ready", "building"


def build_dataset(
    fiftyone: Any, name: str, images: ReviewImages, info: Mapping[str, Any], *, embeddings: Embeddings | None = None
) -> Any:
    """Return a new persistent dataset of the images, with fields, boxes, indexes, saved views and similarity.

    A killed build leaves a dataset with the state ``building``, which the next build replaces.

    Parameters
    ----------
    fiftyone : module
        From `curation.core.fiftyone_database.load_fiftyone`.
    info : mapping
        Stored in the dataset under `INFO_KEY`.
    embeddings : Embeddings, optional
        For sort-by-similarity; images without an embedding are not sorted.

    Raises
    ------
    ReviewError
        No image has an embedding.
    """
    dataset = fiftyone.Dataset(name, persistent=True)
    _declare(fiftyone, dataset)
    _say(dataset, {**info, "state": BUILDING})
    _insert(fiftyone, dataset, images)
    for field in FIELDS:
        if field.indexed:
            dataset.create_index(field.name)
    verdict = fiftyone.ViewField("verdict")
    dataset.save_view(OPEN_VIEW, dataset.match(verdict == None), description="no decision yet")  # noqa: E711
    dataset.save_view(CONFLICT_VIEW, dataset.match(verdict == CONFLICT), description="reviewers differ")
    _arrange_app(fiftyone, dataset, images)
    if embeddings is not None:
        _index_by_look(dataset, images, embeddings)
    _say(dataset, {**info, "state": READY})
    return dataset


def info_of(dataset: Any) -> dict[str, Any]:
    """Return what a dataset stores about its review, empty for other datasets."""
    info = dataset.info.get(INFO_KEY)
    return dict(info) if isinstance(info, Mapping) else {}


def _say(dataset: Any, info: Mapping[str, Any]) -> None:
    dataset.info[INFO_KEY] = dict(info)
    dataset.save()


def _declare(fiftyone: Any, dataset: Any) -> None:
    kinds = {
        "text": (fiftyone.StringField, None),
        "texts": (fiftyone.ListField, fiftyone.StringField),
        "whole": (fiftyone.IntField, None),
        "rows": (fiftyone.ListField, fiftyone.DictField),
    }
    create = fiftyone.core.odm.create_field
    fields = {}
    for field in FIELDS:
        kind, subfield = kinds[field.kind]
        fields[field.name] = create(field.name, kind, subfield=subfield, description=field.meaning)
    for name, meaning in BOX_FIELDS.items():
        fields[name] = create(
            name, fiftyone.EmbeddedDocumentField, embedded_doc_type=fiftyone.Detections, description=meaning
        )
    # All at once: FiftyOne loads the dataset anew after each call.
    dataset.add_dynamic_sample_fields(fields)


def _values(images: ReviewImages, row: int) -> dict[str, Any]:
    """Return the known evidence fields of an image."""
    values: dict[str, Any] = {
        "image_id": images.ids[row],
        "part": images.parts[row],
        "pool": images.pools[row],
        "classes": list(images.classes[row]),
        "batch": images.batches[row],
    }
    if images.assigned:
        values["assigned_to"] = list(images.assigned[row])
    if images.details:
        values["details"] = list(images.details[row])
    proposal = images.proposals[row]
    if proposal is not None:
        values |= {
            "proposal": proposed(proposal.proposal),
            "reason": proposal.reason,
            "rank": proposal.rank,
            "evidence_kinds": list(dict.fromkeys(e.kind for e in proposal.evidence)),
            # As the panel beside the image shows them.
            "evidence_rows": [
                {"kind": e.kind, "why": KINDS[e.kind], **msgspec.structs.asdict(e)} for e in proposal.evidence
            ],
            "id_classes": sorted({e.id_class for e in proposal.evidence if e.id_class}),
        }
        if images.nearest[row]:
            values["nearest"], path = images.nearest[row], images.nearest_paths[row]
            values |= {} if path is None else {"nearest_path": str(path)}
    return values


def _boxes(images: ReviewImages) -> Iterator[dict[str, Any]]:
    """Yield each image's boxes by field, as FiftyOne stores them: relative ``x, y, w, h``, and label."""
    from bson import ObjectId

    boxes = images.boxes
    relative = boxes.xywh / np.tile(np.maximum(images.sizes, 1), 2)[boxes.image]
    # Like those of ObjectId(), in a tenth of its time: the current second, and a random number.
    moment, random = int(time.time()).to_bytes(4, "big"), os.urandom(8 * len(boxes))
    ids = (ObjectId(moment + random[start : start + 8]) for start in range(0, len(random), 8))
    for among in box_slices(images):
        by_field: dict[str, Any] = {name: {"_cls": "Detections", "detections": []} for name in BOX_FIELDS}
        columns = zip(relative[among].tolist(), boxes.labels[among], boxes.roles[among], strict=True)
        for box, label, role in columns:
            detection = {"_id": next(ids), "_cls": "Detection", "attributes": {}, "tags": []}
            by_field[FIELD_OF_ROLE.get(role, OTHER)]["detections"].append(
                {**detection, "label": label, "bounding_box": box}
            )
        yield by_field


def _documents(images: ReviewImages, template: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each image as the document of a FiftyOne sample: the fields of the template, then those of the review."""
    for row, boxes in enumerate(_boxes(images)):
        document = {**template, "tags": [], "filepath": str(images.paths[row]), **_values(images, row), **boxes}
        width, height = images.sizes[row].tolist()
        if width and height:
            document["metadata"] = {"_cls": "ImageMetadata", "width": width, "height": height}
        yield document


def _insert(fiftyone: Any, dataset: Any, images: ReviewImages) -> None:
    from tqdm import tqdm

    dataset.add_sample(fiftyone.Sample(filepath=str(images.paths[0])), expand_schema=False)
    documents = _documents(images, dataset._sample_collection.find_one({}, {"_id": 0}))
    dataset.clear()
    insert = dataset._sample_collection.insert_many
    batches = iter(lambda: list(islice(documents, INSERTED_AT_ONCE)), [])
    bar = tqdm(total=len(images), desc="samples", unit=" images", disable=None)
    # The database stores a batch while the next one is made.
    with bar, ThreadPoolExecutor(1) as thread:
        inserted = thread.submit(insert, next(batches))
        for rows in batches:
            bar.update(len(inserted.result().inserted_ids))
            inserted = thread.submit(insert, rows)
        bar.update(len(inserted.result().inserted_ids))


def _index_by_look(dataset: Any, images: ReviewImages, embeddings: Embeddings) -> None:
    """Give the dataset a similarity index over the images that have an embedding, cosine distance."""
    import fiftyone.brain as brain

    row_of = {id_: row for row, id_ in enumerate(embeddings.ids)}
    rows = [(row, row_of[id_]) for row, id_ in enumerate(images.ids) if id_ in row_of]
    if not rows:
        raise ReviewError(
            "None of the images under review has an embedding",
            expected=f"ids such as {images.ids[0]}",
            found=embeddings.ids[0] if embeddings.ids else "an empty store",
        )
    ids = dataset.values("id")
    index = brain.compute_similarity(
        dataset, embeddings=False, brain_key=EMBEDDING_KEY, backend="sklearn", metric="cosine"
    )
    vectors = np.asarray(embeddings.vectors[[theirs for _, theirs in rows]], np.float32)
    index.add_to_index(vectors, np.array([ids[ours] for ours, _ in rows]), warn_existing=False)
    index.save()
