"""Reader of COCO JSON files: `read_coco`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import AnnotationFormatError, ImageIdError
from curation.ids import ImageId, check_native, coco_native
from curation.sources.coco_categories import COCO_CATEGORIES
from curation.sources.coco_records import (
    AnnotationRecord,
    CategoryRecord,
    ImageRecord,
    InstancesRecord,
    decode_instances,
    record_place,
)
from curation.sources.content import FileContent
from curation.sources.datasets import facts_of, family, namespace_of
from curation.sources.integrity import (
    BadBoxes,
    Ids,
    Where,
    check_policy,
    check_resolved,
    check_unique,
    positions,
    sound_boxes,
    texts,
)
from curation.sources.source import (
    POSES,
    Bools,
    Categories,
    FileRecord,
    Floats,
    Images,
    Int32s,
    Int64s,
    Objects,
    Source,
    Texts,
)

_MAX_PIXELS = 2**31 - 1


def read_coco(
    path: Path, *, dataset: str = "coco", part: str = "", namespace: str | None = None, bad_boxes: BadBoxes = "error"
) -> Source:
    """Return the source that a COCO instances file holds, crowd regions included, masks skipped.

    Fields beyond COCO's own are read where present: ``difficult`` and ``ignore`` (either makes an object difficult),
    ``truncated``, ``occluded``, ``pose``, and ``orig_category`` or ``orig_category_id``. A file without annotations
    is a source without objects.

    Parameters
    ----------
    path : Path
    dataset, part : str
        For example ``coco`` and ``train2017``. Native ids are COCO's twelve digits in the namespace ``coco``, the stem
        of the file name for a dataset ``voc…`` (``000001``, ``2008_000008``), else the id as it stands.
    namespace : str, optional
        Of the image ids; by default the dataset's own.
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, negative in size or beyond any image stops the reading or is left out and
        counted in `Source.dropped`.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        The file is not what it should be; the error names the record.
    """
    return parse_coco(FileContent(path), dataset=dataset, part=part, namespace=namespace, bad_boxes=bad_boxes)


def parse_coco(
    content: FileContent, *, dataset: str, part: str, namespace: str | None = None, bad_boxes: BadBoxes = "error"
) -> Source:
    """Return the source in a file that is in memory already (see `read_coco`)."""
    check_policy(bad_boxes)
    space = ImageId(namespace, "0").namespace if namespace else namespace_of(dataset)
    decoded = decode_instances(content.data, content.name)
    categories, category_ids = _categories(decoded.categories, content.name)
    images, image_ids = _images(decoded.images, content.name, dataset, space)
    objects, dropped = _objects(decoded, content.name, image_ids, category_ids, bad_boxes)
    objects = _with_originals(objects, decoded, categories, space) if not dropped else objects
    facts = facts_of(dataset)
    return Source(
        dataset=dataset,
        part=part,
        namespace=space,
        images=images,
        categories=categories,
        objects=objects,
        files=(FileRecord(content.name, content.sha256, content.size, len(decoded.annotations)),),
        licence=facts.licence,
        media_redistributable=facts.media_redistributable,
        dropped=dropped,
    )
