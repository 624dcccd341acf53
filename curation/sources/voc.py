"""Reader of VOC folders, XML annotations with image sets: `read_voc`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers.expat import ExpatError

import numpy as np
import numpy.typing as npt
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from curation.errors import AnnotationFormatError, MissingFileError
from curation.input_files import utf8_text
from curation.sources.content import SmallFiles, check_name, record_of_many
from curation.sources.datasets import VOC_NAMES, namespace_of
from curation.sources.integrity import check_policy, check_unique, sound_objects
from curation.sources.source import POSES, Categories, Floats, Images, Int32s, Objects, Source
from curation.sources.source_specs import BadBoxes
from curation.storage import inside, read_bytes

_SETS = "ImageSets/Main"
_XML = "Annotations"
_POSITION = {pose.lower(): position for position, pose in enumerate(POSES)}
_FLAG = {"": 0, "0": 0, "1": 1}
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
    folder = locate_voc(root, dataset)
    files = SmallFiles(folder, voc_names(folder, part))
    return parse_voc(files, dataset=dataset, part=part, bad_boxes=bad_boxes)


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
        "VOC folder not found",
        where=str(root),
        expected=f"{_XML}/ and {_SETS}/ in {', '.join(str(folder) for folder in tried)}",
    )


def voc_names(root: Path, part: str) -> tuple[str, ...]:
    """Return the files that an image set's source is read from: the list, then an XML file for each image."""
    where = f"{_SETS}/{part}.txt"
    path = inside(root / _SETS, f"{part}.txt")
    if not path.is_file():
        offered = sorted(entry.stem for entry in path.parent.glob("*.txt") if "_" not in entry.stem)
        raise MissingFileError(
            f"The VOC folder has no image set {part!r}",
            where=str(path),
            expected=f"one of {', '.join(offered[:20])}" if offered else "an image set",
        )
    lines = utf8_text(read_bytes(path, kind="image set"), where, AnnotationFormatError, "The image set is not UTF-8")
    # Per-class lists add a flag to each name (000005 -1).
    stems = tuple(line.split()[0] for line in lines.split("\n") if line.strip())
    if not stems:
        _refuse("The image set is empty", where, "no image names")
    for row, stem in enumerate(stems):
        check_name(stem, f"{where}: line {row + 1}")
    check_unique(stems, "image name", lambda row: f"{where}: image {row + 1}")
    # Resolving links costs more than reading the file, so a name without a dot or separator is not resolved.
    for stem in stems:
        if not stem.replace("_", "a").isalnum():
            inside(root / _XML, f"{stem}.xml")
    return (where, *(f"{_XML}/{stem}.xml" for stem in stems))


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

    names: Sequence[str]
    image: list[int]
    place: list[int]
    fields: list[dict[str, str]]

    @classmethod
    def of(cls, names: Sequence[str], records: Sequence[VocRecord]) -> _Rows:
        places = [(image, place) for image, record in enumerate(records) for place in range(len(record.objects))]
        fields = [entry for record in records for entry in record.objects]
        return cls(names, [image for image, _ in places], [place for _, place in places], fields)

    def where(self, row: int) -> str:
        return f"{self.names[self.image[row]]}: object[{self.place[row]}]"

    def required(self, name: str) -> list[str]:
        values = [entry.get(name, "") for entry in self.fields]
        if "" in values:
            _refuse(f"An object lacks <{name}>", self.where(values.index("")), "nothing")
        return values

    def coded(self, name: str, known: Mapping[str, int]) -> npt.NDArray[np.int8]:
        """Return the number of each object's text in a field, in any case; ``""`` where it has none."""
        values = [entry.get(name, "").lower() for entry in self.fields]
        if strange := set(values) - known.keys():
            row = next(row for row, value in enumerate(values) if value in strange)
            _refuse(f"An object has an unknown <{name}>", self.where(row), values[row], ", ".join(filter(None, known)))
        return np.array([known[value] for value in values], np.int8)


def parse_voc(content: SmallFiles, *, dataset: str, part: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source in files that are in memory already (see `read_voc`)."""
    from tqdm import tqdm

    check_policy(bad_boxes)
    namespace_of(dataset)
    listed, *names = content.data
    records = [
        decode_voc(content.data[name], name) for name in tqdm(names, "VOC XML", unit="file", leave=False, disable=None)
    ]
    rows = _Rows.of(names, records)
    labels = rows.required("name")
    categories = _categories(rows, labels, dataset)
    objects = _objects(rows, labels, categories.index())
    kept, dropped = sound_objects(objects, bad_boxes, rows.where)
    return Source.of(
        dataset,
        part,
        images=Images.of(
            [name.removeprefix(f"{_XML}/").removesuffix(".xml") for name in names],
            file_names=[record.image.get("filename", "") for record in records],
            widths=_pixels(names, records, "width"),
            heights=_pixels(names, records, "height"),
        ),
        categories=categories,
        objects=kept,
        files=(
            content.record(listed, [listed], len(names)),
            record_of_many(f"{_XML}/*.xml", {name: content.data[name] for name in names}, len(objects)),
        ),
        dropped=dropped,
    )


def _pixels(names: Sequence[str], records: Sequence[VocRecord], field: str) -> Int32s:
    texts = [record.image.get(field, "0") for record in records]
    for name, text in zip(names, texts, strict=True):
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            _refuse(f"A <{field}> is not a whole number of pixels", name, text)
    return np.array(texts, np.int64).astype(np.int32)


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
        pose=rows.coded("pose", _POSITION),
        **{flag: rows.coded(flag, _FLAG) > 0 for flag in ("difficult", "truncated", "occluded")},
    )


def _corner(rows: _Rows, name: str) -> Floats:
    values = np.empty(len(rows.fields), np.float64)
    for row, text in enumerate(rows.required(name)):
        try:
            values[row] = float(text)
        except ValueError:
            _refuse(f"A <{name}> is not a number", rows.where(row), text)
    return values


def _refuse(what: str, where: str, found: str, expected: str | None = None) -> NoReturn:
    raise AnnotationFormatError(what, where=where, expected=expected, found=found[:200])
