"""`Source`: one part of a raw dataset as columns, with the facts of its files only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from curation.core.columns import distinct
from curation.core.errors import PresenceOnlyError, UnitBoxesError
from curation.core.ids import LONGEST_NUMBER, native_number
from curation.core.wording import short_repr
from curation.sources.datasets import licence_facts, namespace_of
from curation.sources.identity import ImageIndex

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Texts = npt.NDArray[Any]

POSES = ("", "Unspecified", "Frontal", "Rear", "Left", "Right")
"""VOC poses; `Objects.pose` indexes this tuple, 0 if the file states no pose."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    r"""The record of an input: a file, or a folder of small files as one.

    Attributes
    ----------
    name : str
        Path below the dataset root with ``/``, or the plain file name. A folder of XML files is one record
        named ``Annotations/*.xml``.
    sha256 : str
        ``sha256:<hex>`` of the bytes; for several files, of the sorted lines ``<hex>  <name>\n``.
    size : int
        Bytes.
    rows : int
        Records read (annotations for COCO JSON, objects for XML, lines for lists and tables).
    files : int
        Number of files in the record.
    """

    name: str
    sha256: str
    size: int
    rows: int
    files: int = 1


_BLANK: dict[str, Callable[[int], Any]] = {
    "numbers": lambda n: np.arange(1, n + 1, dtype=np.int64),
    **dict.fromkeys(("crowd", "difficult", "truncated", "occluded"), lambda n: np.zeros(n, np.bool_)),
    "pose": lambda n: np.zeros(n, np.int8),
}
"""Default values of the columns of `Objects` that a format lacks."""

FEDERATED = ("absent", "partly boxed")
"""Federated labels of an image and a class: the class is absent, or not all of its objects have boxes."""


def _equal(record: Any, other: Any) -> bool:
    """Return whether two records are equal, comparing arrays value by value."""
    if type(record) is not type(other):
        return False
    pairs = [[getattr(each, column.name) for each in (record, other)] for column in fields(record) if column.compare]
    return all(np.array_equal(*pair) if np.ndarray in map(type, pair) else pair[0] == pair[1] for pair in pairs)


@dataclass(frozen=True, slots=True)
class Images:
    """Columns of the images of a source, in file order; all arrays have the same length n.

    Attributes
    ----------
    native : ndarray of str, shape (n,)
        Native ids, unique (``000000397133``, ``2008_000008``).
    numbers : ndarray of int64, shape (n,)
        The integer ids of the annotation file; if its ids are texts, the position 0..n-1.
    text_ids : ndarray of str or object, shape (n,), or None
        The ids as the annotation file writes them, if they are texts.
    file_names : ndarray of object, shape (n,)
        File names as the annotation file writes them, ``""`` where absent.
    widths, heights : ndarray of int32, shape (n,)
        Pixels; 0 if the file does not state them.
    listed : ndarray of object, shape (n,), or None
        Namespaced ids by which a manifest lists the images, as an export states them (``curation_id``).
    """

    __repr__, __eq__ = short_repr, _equal

    native: Texts
    numbers: Int64s
    file_names: Texts
    widths: Int32s
    heights: Int32s
    listed: Texts | None = None
    text_ids: Texts | None = None

    def __len__(self) -> int:
        return len(self.native)

    @classmethod
    def of(cls, natives: Sequence[str] | Texts, **columns: Any) -> Images:
        """Return the columns of images; by default the ids are the native ids, as numbers if all are numbers."""
        n, native = len(natives), np.asarray(natives, np.str_)
        blank: dict[str, Any] = {name: np.zeros(n, np.int32) for name in ("widths", "heights")}
        blank |= {"file_names": [""] * n} | columns
        if "numbers" not in blank:
            numbers = None if "text_ids" in blank else native_numbers(natives)
            blank["numbers"] = np.arange(n, dtype=np.int64) if numbers is None else numbers
            if numbers is None:
                blank.setdefault("text_ids", texts(native.tolist()))
        return cls(native=native, **blank | {"file_names": texts(blank["file_names"])})


Numbering = Literal["file", "yolo", "known", "none"]


@dataclass(frozen=True, slots=True)
class Categories:
    """The classes of a source in file order.

    Attributes
    ----------
    numbers : tuple of int
        Category ids of the file (COCO: 1..90 with gaps).
    names, supercategories : tuple of str
        Names as the file writes them; ``""`` where a supercategory is absent.
    keys : tuple of str
        The dataset's own keys of its classes (Open Images: ``/m/0jbk``); empty if the names are the keys.
    frequencies : tuple of str
        How often its training images show each class (LVIS: ``r``, ``c``, ``f``); empty if the file does not state it.
    numbering : {"file", "yolo", "known", "none"}
        Origin of the class numbers: the annotation file; YOLO's data.yaml, from 0; the conventional order (VOC's 20
        classes, from 1), which the files do not state; or none: `numbers` then only count the classes, and detections
        cannot use them.
    """

    __repr__ = short_repr

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    supercategories: tuple[str, ...]
    keys: tuple[str, ...] = ()
    frequencies: tuple[str, ...] = ()
    numbering: Numbering = "file"

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def counted(cls, names: Sequence[str], keys: Sequence[str] = (), *, numbering: Numbering = "none") -> Categories:
        """Return classes without ids, numbered from 1."""
        return cls(tuple(range(1, len(names) + 1)), tuple(names), ("",) * len(names), tuple(keys), numbering=numbering)

    @property
    def category_ids(self) -> tuple[int | None, ...]:
        """Return the category id of each class, or None if the classes have no numbers."""
        return self.numbers if self.numbering != "none" else (None,) * len(self.numbers)

    def index(self) -> dict[str, int]:
        """Return the position of each name."""
        return {name: position for position, name in enumerate(self.names)}


_UNSTATED: dict[str, Callable[[int], Any]] = {
    "original": lambda n: texts([""] * n),
    "depiction": lambda n: np.zeros(n, np.bool_),
    "inside": lambda n: np.zeros(n, np.bool_),
}


@dataclass(frozen=True, slots=True)
class Objects:
    """Columns of the annotated objects, in file order; all arrays have the same length m.

    Attributes
    ----------
    image, category : ndarray of int32, shape (m,)
        Positions in `Source.images` and `Source.categories`.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left, continuous (VOC's 1-based inclusive corners are converted to
        ``xmin-1, ymin-1, xmax-xmin+1, ymax-ymin+1``). `Source.unit_boxes` describes the exception.
    areas : ndarray of float64, shape (m,)
        The file's area (COCO: of the mask), or ``w*h`` if absent.
    numbers : ndarray of int64, shape (m,)
        Annotation ids of the file; 1..m if it has none.
    crowd, difficult, truncated, occluded : ndarray of bool, shape (m,)
        Flags; False if the format lacks the flag.
    pose : ndarray of int8, shape (m,)
        Positions in `POSES`.
    original : ndarray of object, shape (m,), or None
        The class of an object before a protocol renamed it (``orig_category`` of a JSON file), ``""`` if not stated.
    depiction, inside : ndarray of bool, shape (m,), or None
        Open Images: a drawing rather than a real object; an object seen from its inside. None: the column is absent.
    """

    __repr__, __eq__ = short_repr, _equal

    image: Int32s
    category: Int32s
    boxes: Floats
    areas: Floats
    numbers: Int64s
    crowd: Bools
    difficult: Bools
    truncated: Bools
    occluded: Bools
    pose: npt.NDArray[np.int8]
    original: Texts | None = None
    depiction: Bools | None = None
    inside: Bools | None = None

    def __len__(self) -> int:
        return len(self.image)

    @classmethod
    def of(cls, image: npt.ArrayLike, category: npt.ArrayLike, boxes: Floats, **columns: Any) -> Objects:
        """Return the columns of objects; missing columns get their default values.

        Areas are ``w*h``, numbers count from 1, flags are False and poses 0.
        """
        absent: dict[str, Any] = {"areas": boxes[:, 2] * boxes[:, 3]}
        absent |= {name: blank(len(boxes)) for name, blank in _BLANK.items()}
        return cls(
            image=np.asarray(image, np.int32), category=np.asarray(category, np.int32), boxes=boxes, **absent | columns
        )

    @classmethod
    def joined(cls, tables: Sequence[Objects]) -> Objects:
        """Return the concatenated objects; a column that a table lacks is blank for its objects."""
        columns: dict[str, Any] = {}
        for name in cls.__slots__:
            parts = [getattr(table, name) for table in tables]
            if any(column is not None for column in parts):
                filled = [
                    _UNSTATED[name](len(table)) if column is None else column
                    for table, column in zip(tables, parts, strict=True)
                ]
                columns[name] = np.concatenate(filled) if len(filled) > 1 else filled[0]
        return cls(**columns)


@dataclass(frozen=True)
class Source:
    """A part of a raw dataset.

    Attributes
    ----------
    dataset, part : str
        For example ``coco`` and ``train2017``.
    namespace : str
        The namespace of its image ids; parts that share ids share it (all COCO years: ``coco``).
    images, categories : Images, Categories
    objects : Objects or None
        None for a presence-only source, which states the classes of images but no boxes.
    presence : ndarray of int32, shape (p, 2), or None
        ``(image position, category position)`` pairs of a presence-only source, sorted, unique.
    files : tuple of FileRecord
    licence : str
        Licence of the annotations.
    media_redistributable : bool
        Whether the photos themselves may be passed on.
    dropped : dict
        Number of records that the reader left out under a policy, by reason; empty if none.
    federated : ndarray of int32, shape (p, 3), or None
        For a dataset that labels each image only for some classes (LVIS): image position, category position, and a
        position in `FEDERATED`. None: every image is labelled for every class.
    unit_boxes : bool
        Whether the file gives boxes as shares of the image. Boxes and areas of an image without a known size (width 0)
        are then such shares, from 0 to 1; `require_pixels` rejects them for computations in pixels.
    origin : Path or None
        The file, if it was a single one, for further columns of its images (`curation.sources.image_columns`).

    Examples
    --------
    >>> import curation
    >>> box = {"image_id": 7, "category": "owl", "bbox": [0, 0, 9, 6], "width": 60, "height": 40}
    >>> source = curation.open_source("birds", [box], part="val")
    >>> source.images.widths, source.categories.names, source.objects.boxes
    (array([60], dtype=int32), ('owl',), array([[0., 0., 9., 6.]]))
    """

    __repr__, __eq__ = short_repr, _equal

    dataset: str
    part: str
    namespace: str
    images: Images
    categories: Categories
    objects: Objects | None
    files: tuple[FileRecord, ...]
    licence: str
    media_redistributable: bool = False
    presence: Int32s | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    unit_boxes: bool = False
    federated: Int32s | None = None
    origin: Path | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, dataset: str, part: str, *, namespace: str | None = None, **facts: Any) -> Source:
        """Return a source with the terms of its dataset.

        Parameters
        ----------
        namespace : str, optional
            Namespace of the image ids; by default that of the dataset.
        **facts
            The other attributes, without the licence and `media_redistributable`.

        Examples
        --------
        >>> from curation.sources.source import Categories, Images, Source
        >>> columns = {"images": Images.of(["7", "9"]), "categories": Categories.counted(["owl"]), "objects": None}
        >>> coco = Source.of("coco2017", "val2017", files=(), **columns)
        >>> coco.namespace, coco.image_ids.tolist()
        ('coco', ['coco:7', 'coco:9'])
        """
        terms = licence_facts(dataset)
        space = namespace or namespace_of(dataset)
        return cls(
            dataset, part, space, licence=terms.licence, media_redistributable=terms.media_redistributable, **facts
        )

    @classmethod
    def of_labels(
        cls, dataset: str, part: str, images: Images, labels: Sequence[str], file: FileRecord, **facts: Any
    ) -> Source:
        """Return a presence-only source of images with one class each, or without classes if `labels` is empty.

        Classes are the labels that occur, sorted and numbered from 0.

        Examples
        --------
        >>> from curation.sources.source import FileRecord, Images, Source
        >>> record = FileRecord("classes.csv", "sha256:…", size=40, rows=2)
        >>> labelled = Source.of_labels("birds", "val", Images.of(["7", "9"]), ["wren", "owl"], record)
        >>> labelled.categories.names, labelled.presence.tolist()
        (('owl', 'wren'), [[0, 1], [1, 0]])
        """
        names = sorted(set(labels))
        number = {name: position for position, name in enumerate(names)}
        class_of = np.fromiter(map(number.__getitem__, labels), np.int32, len(labels))
        return cls.of(
            dataset,
            part,
            images=images,
            categories=Categories(tuple(range(len(names))), tuple(names), ("",) * len(names), numbering="none"),
            objects=None,
            presence=np.stack([np.arange(len(labels), dtype=np.int32), class_of], axis=1),
            files=(file,),
            **facts,
        )

    @property
    def title(self) -> str:
        """Dataset and part.

        Examples
        --------
        >>> source.title
        'birds val'
        """
        return f"{self.dataset} {self.part}".strip()

    @cached_property
    def image_ids(self) -> Texts:
        """Namespaced ids of all images in file order, shape (n,).

        Examples
        --------
        >>> source.image_ids.tolist()
        ['birds:7']
        """
        return np.strings.add(self.namespace + ":", self.images.native)

    @cached_property
    def image_index(self) -> ImageIndex:
        """Index that finds images by id, path, file name or stem.

        Examples
        --------
        >>> source.image_index.resolve([7, 8]).position.tolist()  # 8 is the id of no image
        [0, -1]
        """
        listed = () if self.images.listed is None else self.images.listed.tolist()
        ids = self.images.numbers if self.images.text_ids is None else self.images.text_ids.tolist()
        return ImageIndex(ids, self.images.file_names.tolist(), listed, self.image_ids.tolist())

    @cached_property
    def id_ranks(self) -> Int64s:
        """Rank of each image among the ids sorted by code point, shape (n,).

        Examples
        --------
        >>> boxes = [{"image_id": image, "category": "owl", "bbox": [0, 0, 9, 6]} for image in (7, 12)]
        >>> curation.open_source("birds", boxes).id_ranks.tolist()
        [1, 0]
        """
        ranks = np.empty(len(self.images), np.int64)
        ranks[np.argsort(self.images.native, kind="stable")] = np.arange(len(self.images))
        return ranks

    @property
    def has_category_ids(self) -> bool:
        """Whether the dataset defines `Categories.numbers` (COCO JSON, YOLO, CUB-200); if not, they count the names.

        Examples
        --------
        >>> source.has_category_ids
        False
        """
        return self.categories.numbering in ("file", "yolo")

    def require_objects(self, purpose: str) -> Objects:
        """Return the objects.

        Parameters
        ----------
        purpose : str
            The computation that needs boxes, as the first words of the message.

        Raises
        ------
        PresenceOnlyError
            The source states only the classes of images.

        Examples
        --------
        >>> source.require_objects("An evaluation").areas
        array([54.])
        """
        if self.objects is None:
            raise PresenceOnlyError(
                f"{purpose} needs boxes",
                where=self._location(),
                expected="annotations with boxes: COCO JSON, YOLO or VOC",
                found="a class for each image",
                hint="for images with classes and without boxes: curation init hierarchy",
            )
        return self.objects

    def require_pixels(self, purpose: str, images: Int32s | Int64s | None = None) -> Objects:
        """Return the objects, whose boxes are in pixels.

        Parameters
        ----------
        purpose : str
            The computation that needs pixels, as the first words of the message.
        images : ndarray of int, optional
            Positions of the images to check; all by default.

        Raises
        ------
        PresenceOnlyError
            The source states only the classes of images.
        UnitBoxesError
            Boxes of these images are shares of an unknown size.

        Examples
        --------
        >>> source.require_pixels("An evaluation").boxes.tolist()
        [[0.0, 0.0, 9.0, 6.0]]
        """
        objects = self.require_objects(purpose)
        if not self.unit_boxes:
            return objects
        is_needed = np.zeros(len(self.images), np.bool_)
        is_needed[slice(None) if images is None else images] = True
        unsized = distinct(objects.image[(is_needed & (self.images.widths == 0))[objects.image]])
        if len(unsized):
            raise UnitBoxesError(
                f"{purpose} needs boxes in pixels",
                where=self._location(),
                expected="the width and height of every image with boxes",
                found=f"{len(unsized)} images of unknown size, the first {self.images.native[unsized[0]]}",
                hint="put a table image_id,width,height beside the boxes, named "
                f"{self.part or 'PART'}-image-sizes.csv (docs/openimages.md: it can be made from the photos)",
            )
        return objects

    def _location(self) -> str:
        return f"source {self.title}: {self.files[0].name if self.files else ''}"

    def class_pairs(self) -> tuple[Int32s, Int32s]:
        """Return the image and category positions of every object, crowd included; without boxes, of every class label.

        Pairs repeat if an image shows several objects of a class.

        Examples
        --------
        >>> boxes = [{"image_id": image, "category": "owl", "bbox": [0, 0, 9, 6]} for image in (7, 7, 9)]
        >>> image, category = curation.open_source("birds", boxes).class_pairs()
        >>> image.tolist(), category.tolist()
        ([0, 0, 1], [0, 0, 0])
        """
        if self.objects is not None:
            return self.objects.image, self.objects.category
        presence = np.empty((0, 2), np.int32) if self.presence is None else self.presence
        return presence[:, 0], presence[:, 1]

    def boxes_by_class(self) -> Counter[str]:
        """Return the number of boxes of each class that has any; in a source without boxes, the number of images.

        Examples
        --------
        >>> boxes = [{"image_id": 7, "category": name, "bbox": [0, 0, 9, 6]} for name in ("owl", "owl", "wren")]
        >>> curation.open_source("birds", boxes).boxes_by_class()
        Counter({'owl': 2, 'wren': 1})
        """
        names = self.categories.names
        numbers, counts = np.unique(self.class_pairs()[1], return_counts=True)
        return Counter({names[number]: count for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)})


def texts(values: Sequence[str]) -> npt.NDArray[np.object_]:
    """Return texts as an array of objects, shape (n,), which needs no padding."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def native_numbers(natives: Sequence[str] | Texts) -> Int64s | None:
    """Return native ids as numbers (``2008_000008``: 2008000008), or None if they are not distinct numbers."""
    values = natives if isinstance(natives, Sequence) else natives.tolist()
    joined = "".join(values)
    # One test for all texts: only digits, and none empty or too long.
    if joined.isascii() and joined.isdigit() and 0 < min(map(len, values)) <= max(map(len, values)) < LONGEST_NUMBER:
        numbers = [*map(int, values)]
    else:
        numbers = []
        for native in values:
            if (number := native_number(native)) is None:
                return None
            numbers.append(number)
    return None if len(set(numbers)) < len(numbers) else np.array(numbers, np.int64)
