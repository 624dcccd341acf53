"""Facts about datasets that their files do not state: namespace of ids, licence, class names (datasets.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from curation.core.ids import ImageId


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """Terms of a dataset.

    Attributes
    ----------
    licence : str
        Licence of the annotations, with its source.
    media_redistributable : bool
    """

    licence: str
    media_redistributable: bool


_STATED = tomllib.loads(resources.files("curation.sources").joinpath("datasets.toml").read_text(encoding="utf-8"))
_FAMILIES: Mapping[str, str] = {name: kind for kind, names in _STATED["families"].items() for name in names}
_FACTS = {name: DatasetFacts(licence, media_redistributable=False) for name, licence in _STATED["licences"].items()}
_FOLDERS: Mapping[str, int] = _STATED["folders_in_ids"]
_NAMESPACES: Mapping[str, str] = _STATED["namespaces"]
NOT_STATED = "not stated"
_OTHER = DatasetFacts(NOT_STATED, media_redistributable=False)

COCO_CATEGORIES: tuple[tuple[int, str, str], ...] = tuple(map(tuple, _STATED["coco"]["categories"]))
"""``(category id, name, supercategory)`` of COCO's 80 classes in the order of its files."""

VOC_NAMES: tuple[str, ...] = tuple(_STATED["voc"]["names"])
"""The 20 VOC classes in alphabetical order; the number of a class is its position, counted from 1."""

COCO_NAMES_OF_VOC: Mapping[str, str] = {name: _STATED["voc"]["in_coco"].get(name, name) for name in VOC_NAMES}
"""COCO's name of each VOC class, in VOC's order."""


NUMBERED_CLASSES: tuple[str, ...] = tuple(_STATED["numbered_classes"]["names"])
"""Datasets whose classes are identified by number, because names repeat."""

ILSVRC_LABELS: tuple[str, ...] = tuple(_STATED["ilsvrc_labels"]["names"])
"""Datasets whose lists label each image by the position of its class among ILSVRC's 1,000."""


def family(dataset: str) -> str:
    """Return ``coco`` for every COCO year, ``voc`` for every VOC year, and the name itself for other datasets.

    A dataset is recognised by its exact name, not by a prefix.

    >>> family("coco2014"), family("cocoa"), family("voc2012"), family("vocal_cords")
    ('coco', 'cocoa', 'voc', 'vocal_cords')
    """
    return _FAMILIES.get(dataset, dataset)


def named_by_file(dataset: str) -> bool:
    """Return whether COCO JSON of a dataset identifies images by file name rather than by number."""
    return family(dataset) in _STATED["named_by_file"]["names"]


def namespace_of(dataset: str) -> str:
    """Return the namespace of a dataset's image ids: COCO years share theirs, VOC years do not.

    An image set with its own name shares the ids of its dataset: *textures* has the ids of DTD.

    Raises
    ------
    ImageIdError
        The name of the dataset cannot be a namespace.
    """
    return ImageId("coco" if family(dataset) == "coco" else _NAMESPACES.get(dataset, dataset), "0").namespace


def is_listed(dataset: str) -> bool:
    """Return whether a dataset is read from published lists, in any form."""
    return dataset in _FOLDERS


def is_known(dataset: str) -> bool:
    """Return whether this package has facts about a dataset."""
    return family(dataset) in _FACTS or dataset in _FOLDERS


def users_name(word: str) -> str:
    """Return a name for a user's dataset: the word, with the prefix ``my_`` if a known dataset has that name.

    >>> users_name("parts"), users_name("coco")
    ('parts', 'my_coco')
    """
    is_reserved = is_known(word) or word in _NAMESPACES or named_by_file(word)
    return f"my_{word}" if is_reserved else word


def folders_in_ids(namespace: str) -> int:
    """Return the number of folders before the stem in an id, -1 for all: 1 for ``dtd:banded/banded_0002``."""
    return _FOLDERS.get(namespace, 0)


def licence_facts(dataset: str) -> DatasetFacts:
    """Return the terms of a dataset; for an unknown one ``not stated``, and its photos may not be redistributed."""
    return _FACTS.get(family(dataset), _OTHER)
