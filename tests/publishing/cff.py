"""What the schema of the Citation File Format 1.2.0 says of the fields that a publication writes, written down from it.

Like the schema it allows no other field of a person, entity, identifier or reference.
"""

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_DATE = {"type": "string", "pattern": r"^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$"}
_DOI = {"type": "string", "pattern": r"^10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-\.\(\)\[\]\\]+$"}
_URL = {"type": "string", "pattern": r"^(https|http|ftp|sftp)://.+"}
_PLACE = "address alias city country email fax orcid post-code region tel website"
_PERSON = {
    "type": "object",
    "additionalProperties": False,
    "properties": dict.fromkeys(
        f"{_PLACE} affiliation family-names given-names name-particle name-suffix".split(), _TEXT
    ),
}
_ENTITY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": dict.fromkeys(f"{_PLACE} name date-end date-start location".split(), _TEXT),
}
_AUTHORS = {"type": "array", "minItems": 1, "items": {"anyOf": [_PERSON, _ENTITY]}}
_IDENTIFIER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "value"],
    "properties": {"type": {"enum": ["doi", "url", "swh", "other"]}, "value": _TEXT, "description": _TEXT},
}
_IDENTIFIERS = {"type": "array", "minItems": 1, "items": _IDENTIFIER}
_REFERENCE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["authors", "title", "type"],
    "properties": {
        "authors": _AUTHORS,
        "title": _TEXT,
        "type": {"enum": ["article", "book", "conference", "conference-paper", "data", "dataset", "generic", "manual",
                          "pamphlet", "proceedings", "report", "software", "thesis", "unpublished", "website"]},
        "collection-title": _TEXT,
        "collection-type": _TEXT,
        "conference": _ENTITY,
        "doi": _DOI,
        "identifiers": _IDENTIFIERS,
        "journal": _TEXT,
        "url": _URL,
        "year": {"type": ["integer", "string"]},
    },
}  # fmt: skip
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["authors", "cff-version", "message", "title"],
    "properties": {
        "cff-version": {"const": "1.2.0"},
        "message": _TEXT,
        "type": {"enum": ["dataset", "software"]},
        "title": _TEXT,
        "authors": _AUTHORS,
        "version": _TEXT,
        "date-released": _DATE,
        "url": _URL,
        "repository-code": _URL,
        "license": _TEXT,
        "abstract": _TEXT,
        "keywords": {"type": "array", "minItems": 1, "items": _TEXT},
        "identifiers": _IDENTIFIERS,
        "references": {"type": "array", "items": _REFERENCE},
    },
}
