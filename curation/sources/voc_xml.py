"""Decoding of one VOC annotation file: defusedxml's guarded parser with handlers that keep only what a source needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers.expat import ExpatError, XMLParserType

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from curation.errors import AnnotationFormatError

MAX_BYTES = 16 << 20
MAX_TEXT = 4096
_DEEPEST = 64


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


class _Element:
    """A kind of element, told by its place: which children matter, and whether its text is kept."""

    __slots__ = ("children", "field")

    def __init__(self, kept: str, children: dict[str, _Element]) -> None:
        self.field = kept
        self.children = children


def _element(*fields: str, **containers: _Element) -> _Element:
    return _Element("", {name: _Element(name, {}) for name in fields} | containers)


_OTHER = _element()
_OBJECT = _element(
    "name", "pose", "truncated", "difficult", "occluded", bndbox=_element("xmin", "ymin", "xmax", "ymax")
)
_ANNOTATION = _element("filename", size=_element("width", "height"), object=_OBJECT)
_DOCUMENT = _element(annotation=_ANNOTATION)


def decode_voc(data: bytes, name: str) -> VocRecord:
    """Return the fields of one VOC annotation file.

    Raises
    ------
    AnnotationFormatError
        The file is not well-formed XML, declares a document type or an entity, or is no VOC annotation.
    """
    if len(data) > MAX_BYTES:
        _refuse(name, "The annotation file is too large", f"at most {MAX_BYTES:,} bytes", f"{len(data):,}")
    # The guards are handlers of the expat parser inside; ours take the place of ElementTree's slower tree builder.
    parser = DefusedXMLParser(forbid_dtd=True, forbid_entities=True, forbid_external=True).parser
    record = VocRecord()
    try:
        _attach(parser, record, name)
        parser.Parse(data, True)
    except DefusedXmlException as error:
        _refuse(
            name,
            "The annotation file declares a document type or an entity",
            "plain XML",
            type(error).__name__,
        )
    except (ExpatError, ValueError, LookupError) as error:
        _refuse(name, "The annotation file is not well-formed XML", "a whole VOC annotation", str(error))
    return record


def _attach(parser: XMLParserType, record: VocRecord, name: str) -> None:
    """Set handlers that fill `record`; closures, since a method call an element would cost half the time again."""
    current, parents, into, chunks = _DOCUMENT, list[_Element](), record.image, list[str]()

    def start(tag: str, _attributes: object) -> None:
        nonlocal current, into
        parents.append(current)
        current = current.children.get(tag, _OTHER)
        if current.field:
            parser.CharacterDataHandler = chunks.append
        elif current is _OBJECT:
            into = {}
            record.objects.append(into)
        elif current is _OTHER:
            _check_place(name, tag, len(parents))

    def end(_tag: str) -> None:
        nonlocal current, into
        if current.field:
            parser.CharacterDataHandler = None
            if current.field in into:
                _refuse(name, f"<{current.field}> stands twice", "each field once", "".join(chunks)[:60])
            into[current.field] = _text(chunks, current.field, name)
            chunks.clear()
        elif current is _OBJECT:
            into = record.image
        current = parents.pop()

    # ElementTree's default handler would be called for every text that is not kept; it guards nothing.
    parser.DefaultHandlerExpand = None
    parser.CharacterDataHandler = None
    parser.StartElementHandler = start
    parser.EndElementHandler = end


def _check_place(name: str, tag: str, depth: int) -> None:
    if depth == 1:
        _refuse(name, "The file is not a VOC annotation", "an element <annotation>", f"<{tag[:60]}>")
    if depth > _DEEPEST:
        _refuse(name, "The annotation file is nested too deep", f"{_DEEPEST} levels", f"<{tag[:60]}>")


def _text(chunks: list[str], field_name: str, name: str) -> str:
    text = "".join(chunks).strip()
    if len(text) > MAX_TEXT:
        _refuse(name, f"The text of <{field_name}> is too long", f"{MAX_TEXT} characters", f"{len(text):,}")
    return text


def _refuse(where: str, what: str, expected: str, found: str) -> NoReturn:
    raise AnnotationFormatError(what, where=where, expected=expected, found=found[:200])
