"""What is known of a dataset apart from its files: namespace of its ids, licence, whether photos may be passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from curation.ids import ImageId


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """Terms of a dataset.

    Attributes
    ----------
    licence : str
        Of the annotations, and where it is stated.
    media_redistributable : bool
    """

    licence: str
    media_redistributable: bool


_COCO = DatasetFacts(
    "annotations CC BY 4.0 (cocodataset.org/#termsofuse); photos under Flickr terms",
    media_redistributable=False,
)
_VOC = DatasetFacts(
    "no licence stated for annotations; photos under Flickr terms (host.robots.ox.ac.uk/pascal/VOC)",
    media_redistributable=False,
)
_IMAGENET = DatasetFacts(
    "file names and class labels are facts; photos under the terms of access of image-net.org",
    media_redistributable=False,
)
_OPEN_IMAGES = DatasetFacts(
    "annotations CC BY 4.0 (storage.googleapis.com/openimages); photos listed as CC BY 2.0, each to be checked",
    media_redistributable=False,
)
_CUB200 = DatasetFacts(
    "no licence stated for annotations; photos for non-commercial research and education (vision.caltech.edu)",
    media_redistributable=False,
)
_MTSD = DatasetFacts(
    "annotations and photos CC BY-NC-SA 4.0, not to be passed on here (mapillary.com/dataset/trafficsign)",
    media_redistributable=False,
)
_BDD100K = DatasetFacts(
    "annotations and photos for education, research and not-for-profit use (doc.bdd100k.com/license.html)",
    media_redistributable=False,
)
_OBJECTS365 = DatasetFacts(
    "annotations CC BY 4.0 (objects365.org); photos under Flickr terms",
    media_redistributable=False,
)
_OTHER = DatasetFacts("not stated", media_redistributable=False)
_BY_FAMILY = {
    "coco": _COCO,
    "voc": _VOC,
    "imagenet": _IMAGENET,
    "openimages": _OPEN_IMAGES,
    "cub200": _CUB200,
    "mtsd": _MTSD,
    "bdd100k": _BDD100K,
    "objects365": _OBJECTS365,
}

VOC_NAMES: tuple[str, ...] = (
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
)
"""The 20 VOC classes, alphabetical; a class's number is its place counted from 1."""

COCO_NAMES_OF_VOC: Mapping[str, str] = {name: name for name in VOC_NAMES} | {
    "aeroplane": "airplane",
    "diningtable": "dining table",
    "motorbike": "motorcycle",
    "pottedplant": "potted plant",
    "sofa": "couch",
    "tvmonitor": "tv",
}
"""COCO's name of each VOC class, in VOC's order."""


def family(dataset: str) -> str:
    """Return ``coco`` for every COCO year, ``voc`` for every VOC year, and any other dataset's own name."""
    return next((name for name in _BY_FAMILY if dataset.startswith(name)), dataset)


def namespace_of(dataset: str) -> str:
    """Return the namespace of a dataset's image ids: COCO years share theirs, VOC years do not.

    Raises
    ------
    ImageIdError
        The name of the dataset cannot be a namespace.
    """
    return ImageId("coco" if family(dataset) == "coco" else dataset, "0").namespace


def facts_of(dataset: str) -> DatasetFacts:
    """Return the terms of a dataset; those of an unknown one are ``not stated``, its photos not redistributable."""
    return _BY_FAMILY.get(family(dataset), _OTHER)
