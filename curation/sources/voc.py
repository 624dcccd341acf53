"""Reader of VOC folders, XML annotations with image sets: `read_voc`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers.expat import ExpatError

import numpy as np
import numpy.typing as npt
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from curation.canonical import sha256_of_bytes
from curation.errors import AnnotationFormatError, ImageIdError, MissingFileError
from curation.ids import check_native
from curation.sources.content import record_of_many
from curation.sources.datasets import VOC_NAMES, namespace_of
from curation.sources.integrity import check_policy, check_unique, sound_objects
from curation.sources.source import (
    POSES,
    Bools,
    Categories,
    FileRecord,
    Floats,
    Images,
    Int32s,
    Objects,
    Source,
)
from curation.sources.source_specs import BadBoxes
from curation.storage import inside, read_bytes

_SETS = "ImageSets/Main"
_XML = "Annotations"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+\Z")
_POSITION = {pose.lower(): position for position, pose in enumerate(POSES)}
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_OF_OBJECT = frozenset(("name", "pose", "truncated", "difficult", "occluded"))
_LARGEST_XML = 16 << 20
_LONGEST_TEXT = 4096
_DEEPEST = 64


def read_voc(root: Path, dataset: str, part: str, *, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source that a VOC folder holds for one image set, difficult objects included.

    Parameters
    ----------
    root : Path
        Folder with ``Annotations`` and ``ImageSets/Main``, or one that holds such a folder (``VOCdevkit/VOC2007``).
    dataset, part : str
        For example ``voc2007`` and ``test``. The datasets ``voc2007`` and ``voc2012`` have VOC's 20 classes, numbered 1
        to 20; any other has the names that occur in its files, sorted.
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, negative in size or beyond any image stops the reading or is left out and
        counted in `Source.dropped`.

    Raises
    ------
    MissingFileError
        The folder has no such image set, or an image of it has no XML file.
    PathEscapeError
        An image set names a file outside ``Annotations``.
    AnnotationFormatError, DuplicateIdError, BoxError
        A file is not what it should be; the error names it.
    """
    return parse_voc(VocContent(locate_voc(root, dataset), part), dataset=dataset, bad_boxes=bad_boxes)


def locate_voc(root: Path, dataset: str) -> Path:
    """Return the folder below `root`, or `root` itself, that has VOC's two folders.

    Raises
    ------
    MissingFileError
        Neither has them; the error lists what was tried.
    """
    year = f"VOC{dataset[3:]}"
    tried = [root, root / year, root / "VOCdevkit" / year]
    for folder in tried:
        if (folder / _XML).is_dir() and (folder / _SETS).is_dir():
            return folder
    raise MissingFileError(
        "No VOC folder is there",
        where=str(root),
        expected=f"{_XML}/ and {_SETS}/ in {', '.join(str(folder) for folder in tried)}",
    )


class VocContent:
    """One image set and the XML files it names, in memory.

    Attributes
    ----------
    part : str
    stems : tuple of str
        Image names in the order of the image set.
    documents : list of bytes
        One XML file a stem.
    files : tuple of FileRecord
        The image set, and all XML files taken together (rows still 0).
    """

    def __init__(self, root: Path, part: str) -> None:
        self.part = part
        listed, self.stems = _image_set(root, part)
        kind = "annotation file of a listed image"
        self.documents = [read_bytes(path, kind=kind) for path in _xml_paths(root, self.stems)]
        held = {f"{_XML}/{stem}.xml": data for stem, data in zip(self.stems, self.documents, strict=True)}
        self.files = (
            FileRecord(f"{_SETS}/{part}.txt", sha256_of_bytes(listed), len(listed), len(self.stems)),
            record_of_many(f"{_XML}/*.xml", held, 0),
        )

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` that changes with any of the files."""
        return sha256_of_bytes("\n".join(file.sha256 for file in self.files).encode("ascii"))


def voc_paths(root: Path, part: str) -> list[str]:
    """Return every file that an image set's source is read from: the list, then its XML files."""
    return [str(_set_path(root, part)), *_xml_paths(root, _image_set(root, part)[1])]


def _xml_paths(root: Path, stems: Sequence[str]) -> list[str]:
    """Return the XML path of each image; a name that leads outside ``Annotations`` is a `PathEscapeError`."""
    folder = root / _XML
    # Resolving links costs more than reading the file, so a name without a dot or separator is not resolved.
    return [f"{folder}/{stem}.xml" if _PLAIN_NAME.match(stem) else str(inside(folder, f"{stem}.xml")) for stem in stems]


def _set_path(root: Path, part: str) -> Path:
    return inside(root / _SETS, f"{part}.txt")


def _image_set(root: Path, part: str) -> tuple[bytes, tuple[str, ...]]:
    path = _set_path(root, part)
    where = f"{_SETS}/{part}.txt"
    if not path.is_file():
        offered = sorted(entry.stem for entry in path.parent.glob("*.txt") if "_" not in entry.stem)
        raise MissingFileError(
            f"The VOC folder has no image set {part!r}",
            where=str(path),
            expected=f"one of {', '.join(offered[:20])}" if offered else "an image set",
        )
    data = read_bytes(path, kind="image set")
    try:
        # Per-class lists add a flag to each name (000005 -1).
        stems = tuple(line.split()[0] for line in data.decode("utf-8").split("\n") if line.strip())
    except UnicodeDecodeError as error:
        _refuse("The image set is not UTF-8", where, str(error))
    if not stems:
        _refuse("The image set is empty", where, "no image names")
    for row, stem in enumerate(stems):
        try:
            check_native(stem)
        except ImageIdError as error:
            _refuse(error.what, f"{where}: line {row + 1}", stem[:80])
    check_unique(stems, "image name", lambda row: f"{where}: image {row + 1}")
    return data, stems


@dataclass(slots=True)
class VocRecord:
    """The fields of one annotation file as texts; an element that is absent has no entry.

    Attributes
    ----------
    image : dict of str to str
        ``filename``, ``width``, ``height``.
    objects : list of dict of str to str
        One an ``object`` element: ``name``, ``pose``, ``truncated``, ``difficult``, ``occluded``, ``xmin``, ``ymin``,
        ``xmax``, ``ymax``. What stands below ``part`` (person layout) is not among them.
    """

    image: dict[str, str] = field(default_factory=dict)
    objects: list[dict[str, str]] = field(default_factory=list)


def _tree(data: bytes) -> Element:
    """Return the root of an XML document that declares no document type."""
    # defusedxml would build the tree in Python, 5,000 files in 0.27 s: its parser looks for a document type alone, and
    # the one written in C, which cannot refuse it in time, reads what passed. Both take 0.17 s.
    guard = DefusedXMLParser(target=object(), forbid_dtd=True).parser
    guard.DefaultHandlerExpand = None
    guard.Parse(data, True)
    return fromstring(data)  # noqa: S314 - guarded above


def decode_voc(data: bytes, name: str) -> VocRecord:
    """Return the fields of one VOC annotation file.

    Raises
    ------
    AnnotationFormatError
        The file is not well-formed XML, declares a document type or an entity, or is no VOC annotation.
    """
    if len(data) > _LARGEST_XML:
        most = f"at most {_LARGEST_XML:,} bytes"
        _refuse("The annotation file is too large", name, f"{len(data):,}", most)
    try:
        root = _tree(data)
    except DefusedXmlException as error:
        what = "The annotation file declares a document type or an entity"
        _refuse(what, name, type(error).__name__, "plain XML")
    except (ExpatError, ParseError, ValueError, LookupError) as error:
        what = "The annotation file is not well-formed XML"
        _refuse(what, name, str(error), "a whole VOC annotation")
    if root.tag != "annotation":
        what = "The file is not a VOC annotation"
        _refuse(what, name, f"<{root.tag[:60]}>", "an element <annotation>")
    if data.count(b"/") >= _DEEPEST:
        _check_depth(root, name)
    record = VocRecord()
    for element in root:
        if element.tag == "object":
            fields: dict[str, str] = {}
            record.objects.append(fields)
            for child in element:
                if child.tag in _OF_OBJECT:
                    _take(child, fields, name)
                elif child.tag == "bndbox":
                    _take_each(child, _CORNERS, fields, name)
        elif element.tag == "size":
            _take_each(element, ("width", "height"), record.image, name)
        elif element.tag == "filename":
            _take(element, record.image, name)
    return record


def _check_depth(root: Element, name: str) -> None:
    level = list(root)
    for _ in range(_DEEPEST - 1):
        level = [child for element in level for child in element]
    if level:
        what = "The annotation file is nested too deep"
        _refuse(what, name, f"<{level[0].tag[:60]}>", f"{_DEEPEST} levels")


def _take_each(element: Element, names: Sequence[str], into: dict[str, str], where: str) -> None:
    for child in element:
        if child.tag in names:
            _take(child, into, where)


def _take(element: Element, into: dict[str, str], where: str) -> None:
    """Keep the text of an element under its tag."""
    text = "".join(element.itertext()).strip() if len(element) else (element.text or "").strip()
    if element.tag in into:
        _refuse(f"<{element.tag}> stands twice", where, text[:60], "each field once")
    if len(text) > _LONGEST_TEXT:
        what = f"The text of <{element.tag}> is too long"
        _refuse(what, where, f"{len(text):,}", f"{_LONGEST_TEXT} characters")
    into[element.tag] = text


@dataclass(frozen=True, slots=True)
class _Rows:
    """All objects of a part: the image each stands in, its place there, and its fields as texts."""

    stems: Sequence[str]
    image: list[int]
    place: list[int]
    fields: list[dict[str, str]]

    @classmethod
    def of(cls, stems: Sequence[str], records: Sequence[VocRecord]) -> _Rows:
        places = [(image, place) for image, record in enumerate(records) for place in range(len(record.objects))]
        fields = [entry for record in records for entry in record.objects]
        return cls(stems, [image for image, _ in places], [place for _, place in places], fields)

    def where(self, row: int) -> str:
        return f"{_XML}/{self.stems[self.image[row]]}.xml: object[{self.place[row]}]"

    def required(self, name: str) -> list[str]:
        values = [entry.get(name, "") for entry in self.fields]
        if "" in values:
            _refuse(f"An object lacks <{name}>", self.where(values.index("")), "nothing")
        return values


def parse_voc(content: VocContent, *, dataset: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source in files that are in memory already (see `read_voc`)."""
    from tqdm import tqdm

    check_policy(bad_boxes)
    namespace_of(dataset)
    pairs = tqdm(
        zip(content.stems, content.documents, strict=True),
        total=len(content.stems),
        desc="VOC XML",
        unit="file",
        leave=False,
        disable=None,
    )
    records = [decode_voc(data, f"{_XML}/{stem}.xml") for stem, data in pairs]
    rows = _Rows.of(content.stems, records)
    names = rows.required("name")
    categories = _categories(rows, names, dataset)
    objects = _objects(rows, names, categories.index())
    kept, dropped = sound_objects(objects, bad_boxes, rows.where)
    listed, annotated = content.files
    return Source.of(
        dataset,
        content.part,
        images=_images(content.stems, records),
        categories=categories,
        objects=kept,
        files=(
            listed,
            FileRecord(annotated.name, annotated.sha256, annotated.size, len(objects), annotated.files),
        ),
        dropped=dropped,
    )


def _images(stems: Sequence[str], records: Sequence[VocRecord]) -> Images:
    return Images.of(
        stems,
        file_names=[record.image.get("filename", "") for record in records],
        widths=_pixels(stems, records, "width"),
        heights=_pixels(stems, records, "height"),
    )


def _pixels(stems: Sequence[str], records: Sequence[VocRecord], field: str) -> Int32s:
    values = np.empty(len(records), np.int32)
    for row, (stem, record) in enumerate(zip(stems, records, strict=True)):
        text = record.image.get(field, "0")
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            _refuse(f"A <{field}> is not a whole number of pixels", f"{_XML}/{stem}.xml", text)
        values[row] = int(text)
    return values


def _categories(rows: _Rows, names: list[str], dataset: str) -> Categories:
    known = VOC_NAMES if dataset in ("voc2007", "voc2012") else ()
    found = Counter(names)
    strangers = sorted(set(found) - set(known))
    if known and strangers:
        first = next(row for row, name in enumerate(names) if name in strangers)
        raise AnnotationFormatError(
            f"An object has a class that {dataset} does not have",
            where=rows.where(first),
            expected=", ".join(known),
            found=", ".join(f"{name[:60]!r} ({found[name]} objects)" for name in strangers[:10]),
        )
    return Categories.counted(known or strangers)


def _objects(rows: _Rows, names: list[str], place: dict[str, int]) -> Objects:
    low_x, low_y, high_x, high_y = (_corner(rows, name) for name in _CORNERS)
    boxes = np.column_stack([low_x - 1, low_y - 1, high_x - low_x + 1, high_y - low_y + 1])
    return Objects.of(
        rows.image,
        [place[name] for name in names],
        boxes,
        difficult=_flags(rows, "difficult"),
        truncated=_flags(rows, "truncated"),
        occluded=_flags(rows, "occluded"),
        pose=_poses(rows),
    )


def _corner(rows: _Rows, name: str) -> Floats:
    values = np.empty(len(rows.fields), np.float64)
    for row, text in enumerate(rows.required(name)):
        try:
            values[row] = float(text)
        except ValueError:
            _refuse(f"A <{name}> is not a number", rows.where(row), text)
    return values


def _flags(rows: _Rows, name: str) -> Bools:
    values = [entry.get(name, "0") for entry in rows.fields]
    strange = set(values) - {"0", "1"}
    if strange:
        row = next(row for row, value in enumerate(values) if value in strange)
        _refuse(f"A <{name}> is neither 0 nor 1", rows.where(row), values[row])
    return np.array([value == "1" for value in values], np.bool_)


def _poses(rows: _Rows) -> npt.NDArray[np.int8]:
    values = [entry.get("pose", "").lower() for entry in rows.fields]
    strange = set(values) - _POSITION.keys()
    if strange:
        row = next(row for row, value in enumerate(values) if value in strange)
        _refuse("An object has an unknown <pose>", rows.where(row), values[row])
    return np.array([_POSITION[value] for value in values], np.int8)


def _refuse(what: str, where: str, found: str, expected: str | None = None) -> NoReturn:
    raise AnnotationFormatError(what, where=where, expected=expected, found=found[:200])
