"""Reader of VOC folders with XML annotations and image sets: `read_voc`."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, NoReturn, TypeVar
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers.expat import ExpatError

import msgspec
import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from curation.core.errors import AnnotationFormatError, ForeignClassError, MissingFileError
from curation.core.files import inside, read_bytes
from curation.core.reading import beginning, utf8_text
from curation.core.wording import counted
from curation.sources.class_folders import class_folders
from curation.sources.datasets import VOC_NAMES, family, namespace_of
from curation.sources.identity import end_of, normalised_path, without_suffix
from curation.sources.integrity import SmallFiles, Where, check_image_name, check_unique, record_of_many, sound_objects
from curation.sources.source import POSES, Categories, Images, Objects, Source
from curation.sources.source_specs import BadBoxes
from curation.sources.yolo import missing_yaml

VOC_SETS = "ImageSets/Main"
_XML = "Annotations"
VOC_FOLDERS = ("JPEGImages", _XML)
"""Folders of a VOC root in which file names are image ids."""
_POSITION = {pose.lower(): position for position, pose in enumerate(POSES)}
_FLAGS = ("difficult", "truncated", "occluded")
_YEARS = ("VOC2007", "VOC2012")
_PARTS = ("train", "valid", "val", "test")
_ROOT = re.compile(rb"<annotation[\s>]")
_WORDS = {"true": "1", "yes": "1", "false": "0", "no": "0"}
_OF_OBJECT = frozenset(("name", "pose", "truncated", "difficult", "occluded", "xmin", "ymin", "xmax", "ymax"))
_LARGEST_XML = 16 << 20
_LONGEST_TEXT = 4096
_DEEPEST = 64
_Kind = TypeVar("_Kind")


def read_voc(root: Path, dataset: str, part: str, *, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source of an image set in a VOC folder, including difficult objects.

    Parameters
    ----------
    root : Path
        Folder with ``Annotations`` and ``ImageSets/Main``, or one that holds such a folder (``VOCdevkit/VOC2007``); or
        a folder of XML files without image sets (see `xml_folder`), which all belong to the part.
    dataset, part : str
        For example ``voc2007`` and ``test``. The datasets ``voc2007`` and ``voc2012`` have VOC's 20 classes, numbered 1
        to 20; any other has the names that occur in its files, sorted.
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, negative in size or beyond any image stops the reading or is left out and
        counted in `Source.dropped`.

    Raises
    ------
    MissingFileError
        The image set does not exist, or one of its images has no XML file.
    PathEscapeError
        An image set names a file outside ``Annotations``.
    AnnotationFormatError, DuplicateIdError, BoxError
        A file is malformed; the error names it.
    """
    from tqdm import tqdm

    namespace_of(dataset)
    unlisted = xml_folder(root, part)
    # FiftyOne, whose photos lie in data beside labels, writes corners of the continuous box; VOC counts pixels from 1.
    first = 0 if unlisted == root / "labels" and (root / "data").is_dir() else 1
    folder = unlisted or locate_voc(root, dataset)
    content = SmallFiles(folder, _xml_files(folder) if unlisted else _names(folder, part))
    listed, names = ("", [*content.data]) if unlisted else (next(iter(content.data)), [*content.data][1:])
    records = [
        decode_voc(content.data[name], name) for name in tqdm(names, "VOC XML", unit="file", leave=False, disable=None)
    ]
    images = [
        _converted({field: text for field, text in record.image.items() if text}, _Image, name)
        for name, record in zip(names, records, strict=True)
    ]
    rows_of = [(image, row) for image, record in enumerate(records) for row in range(len(record.objects))]

    def where(row: int) -> str:
        return f"{names[rows_of[row][0]]}: object[{rows_of[row][1]}]"

    rows = [
        _converted(_with_defaults(fields), _Object, where(row))
        for row, fields in enumerate(fields for record in records for fields in record.objects)
    ]
    categories = _categories([row.name for row in rows], dataset, where)
    number = categories.index()
    low_x, low_y, high_x, high_y = np.array([(row.xmin, row.ymin, row.xmax, row.ymax) for row in rows]).reshape(-1, 4).T
    objects = Objects.of(
        [image for image, _ in rows_of],
        [number[row.name] for row in rows],
        np.column_stack([low_x - first, low_y - first, high_x - low_x + first, high_y - low_y + first]),
        pose=np.array([_POSITION[row.pose] for row in rows], np.int8),
        **{flag: np.array([_is_set(getattr(row, flag)) for row in rows], np.bool_) for flag in _FLAGS},
    )
    sound, dropped = sound_objects(objects, bad_boxes, where)
    return Source.of(
        dataset,
        part,
        images=Images.of(
            [name.removeprefix(f"{_XML}/").removesuffix(".xml") for name in names],
            file_names=[image.filename for image in images],
            widths=np.array([image.width for image in images], np.int32),
            heights=np.array([image.height for image in images], np.int32),
        ),
        categories=categories,
        objects=sound,
        files=(
            *([content.record(listed, [listed], len(names))] if listed else []),
            record_of_many(
                "*.xml" if unlisted else f"{_XML}/*.xml", {name: content.data[name] for name in names}, len(objects)
            ),
        ),
        dropped=dropped,
    )


def xml_folder(root: Path, part: str = "") -> Path | None:
    """Return the folder of VOC's XML files without image sets, one per image; None if there is none.

    FiftyOne writes them to ``labels``, others to ``Annotations`` or beside the photos, Roboflow to one folder per part.
    """
    if any((root / year / VOC_SETS).is_dir() for year in (".", *_YEARS, *(f"VOCdevkit/{year}" for year in _YEARS))):
        return None
    names = (*((part,) if part in _PARTS else ()), _XML, _XML.lower(), "labels", ".")
    return next((root / name for name in names if _holds_xml(root / name)), None)


def only_2012(root: Path) -> bool:
    """Return whether a folder holds VOC2012 and not VOC2007."""
    years = [year for year in _YEARS if any((root / below / year).is_dir() for below in (".", "VOCdevkit"))]
    return years == ["VOC2012"]


def xml_parts(root: Path) -> tuple[str, ...]:
    """Return the parts that each have a folder of VOC's XML files."""
    return tuple(part for part in _PARTS if _holds_xml(root / part))


def _holds_xml(folder: Path) -> bool:
    first = next(iter(sorted(folder.glob("*.xml"))), None)
    return first is not None and _ROOT.search(beginning(first, 4096, kind="annotation file")) is not None


def _xml_files(folder: Path) -> list[str]:
    names = sorted(path.name for path in folder.glob("*.xml"))
    for name in names:
        check_image_name(name.removesuffix(".xml"), name)
    return names


def locate_voc(root: Path, dataset: str) -> Path:
    """Return the folder below `root`, or `root` itself, that has VOC's two folders.

    Raises
    ------
    MissingFileError
        Neither has them; the error lists the folders that were tried.
    """
    years = [dataset.upper()] if family(dataset) == "voc" else []
    tried = [root, *(folder for year in years for folder in (root / year, root / "VOCdevkit" / year))]
    for folder in tried:
        if (folder / _XML).is_dir() and (folder / VOC_SETS).is_dir():
            return folder
    expected = f"{_XML}/ and {VOC_SETS}/ in {', '.join(str(folder) for folder in tried)}"
    content, hint = what_else(root)
    if years:
        raise MissingFileError("VOC folder not found", where=str(root), expected=expected, found=content, hint=hint)
    raise MissingFileError(
        "The folder is not a dataset root",
        where=str(root),
        expected=f"annotations/instances_PART.json, class folders (CLASS/photo.jpg), or {expected}",
        found=content,
        hint=hint,
    )


def what_else(root: Path) -> tuple[str, str | None]:
    """Return the kind of a folder that is not the root of a dataset, and a hint on the path to use."""
    files = sorted(islice((file for form in ("*.json", "*/*.json") for file in root.glob(form)), 1000))
    if (root / "manifest.json") in files:
        return (
            "a manifest",
            f"give the annotations that the manifest was made from: curation show {shlex.quote(str(root))} lists them",
        )
    if yolo := missing_yaml(root):
        return yolo
    if files:
        return counted(len(files), "JSON file"), f"give the annotation file itself, such as {files[0]}"
    if any(file.suffix.lower() in (".jpg", ".jpeg", ".png") for file in islice(root.glob("*.*"), 1000)):
        return "photos without annotations", "give the folder above it that holds annotations or class folders"
    with suppress(AnnotationFormatError, MissingFileError):
        if path := next((path for path in sorted(root.glob("*/")) if class_folders(path)), None):
            return "no annotations", f"give the folder of the class folders: {path}"
    return "no annotations", None


def _names(root: Path, part: str) -> tuple[str, ...]:
    """Return the files of an image set's source: the list, then the XML file of each image."""
    where = f"{VOC_SETS}/{part}.txt"
    path = inside(root / VOC_SETS, f"{part}.txt")
    if not path.is_file():
        offered = sorted(entry.stem for entry in path.parent.glob("*.txt") if "_" not in entry.stem)
        raise MissingFileError(
            f"The VOC folder has no image set {part!r}",
            where=str(path),
            expected=f"one of {', '.join(offered[:20])}" if offered else "an image set",
            hint=f"--source NAME@{offered[0]}=FOLDER; of --truth FOLDER: --image-set={offered[0]}" if offered else None,
        )
    lines = utf8_text(read_bytes(path, kind="image set"), where, AnnotationFormatError, "The image set is not UTF-8")
    entries = (line.strip() for line in lines.split("\n") if line.strip())
    stems = tuple(_image_name(root, line) for line in entries)
    if not stems:
        _refuse("The image set is empty", where, "no image names")
    for row, stem in enumerate(stems):
        check_image_name(stem, f"{where}: line {row + 1}")
    check_unique(stems, "image name", lambda row: f"{where}: image {row + 1}")
    # Resolving links costs more than reading the file, so a name without a dot or separator is not resolved.
    for stem in stems:
        if not stem.replace("_", "a").isalnum():
            inside(root / _XML, f"{stem}.xml")
    return (where, *(f"{_XML}/{stem}.xml" for stem in stems))


def _image_name(root: Path, line: str) -> str:
    """Return the name of the image in a line; per-class lists add a flag (000005 -1), and some lists name the photo.

    A photo's path has a suffix, and may have folders: JPEGImages/000005.jpg.
    """
    first = line.split()[0]
    stem = without_suffix(first)
    if first == line == stem:
        return line
    # A name that is too long for a file is not an image name; this is not an error.
    written = (name for name in (line, stem) if os.path.isfile(root / _XML / f"{name}.xml"))  # noqa: PTH113
    return next(written, first if stem == first else end_of(normalised_path(stem), 0))


class VocRecord(NamedTuple):
    """The fields of an annotation file as texts; an absent element has no entry.

    Attributes
    ----------
    image : dict of str to str
        ``filename``, ``width``, ``height``.
    objects : list of dict of str to str
        One per ``object`` element: ``name``, ``pose``, ``truncated``, ``difficult``, ``occluded``, ``xmin``, ``ymin``,
        ``xmax``, ``ymax``. Fields below ``part`` (person layout) are left out.
    """

    image: dict[str, str]
    objects: list[dict[str, str]]


def _tree(data: bytes) -> Element:
    """Return the root of an XML document that declares no document type."""
    # defusedxml would build the tree in Python, 5,000 files in 0.27 s. Its parser only checks for a document type;
    # the C parser, which cannot reject it in time, then reads the file. Both take 0.17 s.
    guard = DefusedXMLParser(target=object(), forbid_dtd=True).parser
    guard.DefaultHandlerExpand = None
    guard.Parse(data, True)
    return fromstring(data)  # noqa: S314 - guarded above


def decode_voc(data: bytes, name: str) -> VocRecord:
    """Return the fields of a VOC annotation file.

    Raises
    ------
    AnnotationFormatError
        The file is not well-formed XML, declares a document type or an entity, or is not a VOC annotation.
    """
    if len(data) > _LARGEST_XML:
        _refuse("The annotation file is too large", name, f"{len(data):,}", f"at most {_LARGEST_XML:,} bytes")
    try:
        root = _tree(data)
    except DefusedXmlException as error:
        _refuse("The annotation file declares a document type or an entity", name, type(error).__name__, "plain XML")
    except (ExpatError, ParseError, ValueError, LookupError) as error:
        _refuse("The annotation file is not well-formed XML", name, str(error), "a complete VOC annotation")
    if root.tag != "annotation":
        _refuse("The file is not a VOC annotation", name, f"<{root.tag[:60]}>", "an element <annotation>")
    if data.count(b"/") >= _DEEPEST:
        _check_depth(root, name)
    sizes = (child for size in root.iterfind("size") for child in size)
    return VocRecord(
        _fields((*root, *sizes), ("filename", "width", "height"), name),
        [
            _fields((*element, *(corner for box in element.iterfind("bndbox") for corner in box)), _OF_OBJECT, name)
            for element in root.iterfind("object")
        ],
    )


def _check_depth(root: Element, name: str) -> None:
    level = list(root)
    for _ in range(_DEEPEST - 1):
        level = [child for element in level for child in element]
    if level:
        _refuse("The annotation file is nested too deeply", name, f"<{level[0].tag[:60]}>", f"{_DEEPEST} levels")


def _fields(elements: Iterable[Element], names: Collection[str], where: str) -> dict[str, str]:
    """Return the text of each child element in `names`, by element name."""
    fields: dict[str, str] = {}
    for element in elements:
        if element.tag in names:
            text = "".join(element.itertext()).strip() if len(element) else (element.text or "").strip()
            if element.tag in fields:
                _refuse(f"Duplicate element <{element.tag}>", where, text[:60], "each field once")
            if len(text) > _LONGEST_TEXT:
                expected = f"{_LONGEST_TEXT} characters"
                _refuse(f"The text of <{element.tag}> is too long", where, f"{len(text):,}", expected)
            fields[element.tag] = text
    return fields


_Pixels = Annotated[float, msgspec.Meta(ge=0, lt=10**9, multiple_of=1)]


class _Image(msgspec.Struct):
    filename: str = ""
    width: _Pixels = 0
    height: _Pixels = 0


class _Object(msgspec.Struct, kw_only=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    xmin: float
    ymin: float
    xmax: float
    ymax: float
    pose: str = ""
    difficult: Literal["0", "1"] = "0"
    truncated: str = ""
    occluded: str = ""


def _converted(fields: dict[str, str], kind: type[_Kind], where: str) -> _Kind:
    try:
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        _refuse("A field of the annotation file is malformed", where, str(error).replace("$.", ""))


def _with_defaults(fields: dict[str, str]) -> dict[str, str]:
    """Return the fields of an object; flags without text and poses that VOC does not have count as absent."""
    filled = {
        name: _WORDS.get(text.lower(), text) if name in _FLAGS else text
        for name, text in fields.items()
        if text or name not in _FLAGS
    }
    pose = fields.get("pose", "").lower()
    return filled | {"pose": pose if pose in _POSITION else ""}


def _is_set(text: str) -> bool:
    """Return whether a flag, or a share of the object that is cut off or hidden, is above zero."""
    try:
        return float(text) > 0
    except ValueError:
        return False


def _categories(names: Sequence[str], dataset: str, where: Where) -> Categories:
    known = VOC_NAMES if dataset in ("voc2007", "voc2012") else ()
    counts = Counter(names)
    strangers = sorted(set(counts) - set(known))
    if known and strangers:
        first = next(row for row, name in enumerate(names) if name in strangers)
        raise ForeignClassError(
            f"An object has a class that {dataset} does not have",
            where=where(first),
            expected=", ".join(known),
            found=", ".join(f"{name[:60]!r} ({counts[name]} objects)" for name in strangers[:10]),
        )
    return Categories.counted(known or strangers, numbering="known" if known else "none")


def _refuse(message: str, where: str, value: str, expected: str | None = None) -> NoReturn:
    raise AnnotationFormatError(message, where=where, expected=expected, found=value[:200])
