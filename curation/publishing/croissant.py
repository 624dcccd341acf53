"""The Croissant 1.1 description of a repository: files with digests, tables with fields, where all of it comes from."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from curation.errors import MissingExtraError, PublishError
from curation.publishing import rai
from curation.publishing.card import HUB, Configs, keywords, title_of
from curation.publishing.formats.plan import json_bytes
from curation.publishing.member import Member
from curation.publishing.tables import COLUMNS, IMAGE_URL

if TYPE_CHECKING:
    import pyarrow as pa

CROISSANT_FILE = "croissant.json"

_MEDIA_TYPES = {
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".cff": "application/yaml",
    ".png": "image/png",
}


@cache
def _context() -> dict[str, Any]:
    """Return the context of the specification, section "JSON-LD context", with PROV-O for provenance."""
    text = (Path(__file__).parent / "croissant_context.json").read_text(encoding="utf-8")
    context: dict[str, Any] = json.loads(text)
    return context


def croissant_bytes(
    repository: str,
    tag: str,
    members: Sequence[Member],
    configs: Configs,
    schemas: Mapping[str, pa.Schema],
    digests: Mapping[str, str],
    date: str = "",
    statements: Mapping[str, rai.Statement] | None = None,
) -> bytes:
    """Return the description as JSON-LD.

    Parameters
    ----------
    schemas : mapping of str to pyarrow.Schema
        Of each table, by path: the columns that hold anything.
    digests : mapping of str to str
        ``sha256:…`` of each file, by path.
    date : str
        Of publication, ISO 8601; ``""`` for none.
    statements : mapping of str to text, texts or bool, optional
        On responsible use (see `curation.publishing.rai`).
    """
    organization = {"@type": "sc:Organization", "name": repository.partition("/")[0]}
    data: dict[str, Any] = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": repository.partition("/")[2],
        "alternateName": title_of(members),
        "description": _description(members),
        "url": HUB + repository,
        "version": tag,
        "license": _licences(repository, members),
        "citeAs": "\n".join(dict.fromkeys(member.manifest.header.paper.bibtex for member in members)),
        "creator": organization,
        "publisher": organization,
        **({"datePublished": date} if date else {}),
        "isLiveDataset": False,
        "inLanguage": "en",
        "keywords": keywords(members),
        **rai.as_properties(statements or {}),
        "prov:wasDerivedFrom": rai.entities(members),
        "prov:wasGeneratedBy": rai.activities(members, date),
        "distribution": [_file(repository, tag, path, digest) for path, digest in sorted(digests.items())],
        "recordSet": [
            _record_set(f"{config}/{split}", path, schemas[path])
            for config, splits in configs.items()
            for split, path in splits.items()
        ],
    }
    return json_bytes(data)


_TEXTS = ("name", "description", "url", "version", "datePublished", "inLanguage")


def check_croissant(path: Path) -> tuple[str, ...]:
    """Return what mlcroissant warns of in a description, and what it lets pass; an error of it is a `PublishError`.

    Raises
    ------
    MissingExtraError
        mlcroissant is not installed.
    """
    return (*_library_warnings(path), *_let_pass(json.loads(path.read_bytes())))


def _let_pass(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the specification and its readers ask for, and mlcroissant does not look at."""
    for name in _TEXTS:
        if not (isinstance(data.get(name), str) and data[name].strip()):
            yield f"{name} is missing, or no text"
    for name in ("creator", "license", "keywords", "distribution"):
        if not data.get(name):
            yield f"{name} is missing"
    for one in data.get("distribution", ()):
        if not str(one.get("contentUrl", "")).startswith(("https://", "http://")):
            yield f"contentUrl of {one.get('name')} is not absolute: who is given this file alone cannot follow it"
    synthetic = data.get("rai:hasSyntheticData")
    if synthetic is not None and not isinstance(synthetic, bool):
        yield "rai:hasSyntheticData is neither true nor false"
    named = [name.removeprefix("rai:") for name in data if name.startswith("rai:")]
    if lacking := rai.missing(dict.fromkeys(named, "")):
        yield f"not stated, and asked for by data tracks: {', '.join(lacking)} (--rai-template FILE, then --rai FILE)"


def _library_warnings(path: Path) -> tuple[str, ...]:
    try:
        import mlcroissant
        from absl import logging
    except ImportError:
        raise MissingExtraError(
            "Publishing checks the Croissant file with mlcroissant", hint="pip install 'curation[publish]'"
        ) from None
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # The library's parser warns of its own deprecated parts.
            warnings.simplefilter("ignore", DeprecationWarning)
            issues = mlcroissant.Dataset(str(path)).metadata.ctx.issues
    except mlcroissant.ValidationError as error:
        raise PublishError(
            "The Croissant description is not valid", where=CROISSANT_FILE, found=str(error)[:500]
        ) from None
    finally:
        logging.set_verbosity(before)
    return tuple(sorted(str(one) for one in issues.warnings))


def _description(members: Sequence[Member]) -> str:
    headers = [member.manifest.header for member in members]
    named = "; ".join(f"{one.name} {one.version} ({' '.join(one.title.split())})" for one in headers)
    return (
        "Lists of images for open-set and out-of-distribution evaluation, with the role of every class, the rule that "
        f"made them, and digests: {named}."
    )


def _licences(repository: str, members: Sequence[Member]) -> list[str]:
    """Return the addresses of the terms of all sources, and of the card that says which is whose."""
    urls = {terms.url for member in members for terms in member.terms().values() if terms.url}
    return [HUB + repository, *sorted(urls)]


def _file(repository: str, tag: str, path: str, digest: str) -> dict[str, Any]:
    suffix = path[path.rfind(".") :]
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        # A checker is given this file alone, so that a relative address would lead nowhere.
        "contentUrl": f"{HUB}{repository}/resolve/{tag}/{quote(path)}",
        "encodingFormat": _MEDIA_TYPES.get(suffix, "application/octet-stream"),
        "sha256": digest.removeprefix("sha256:"),
    }


def _record_set(name: str, path: str, schema: pa.Schema) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [_field(name, path, field) for field in schema],
    }


def _field(record_set: str, path: str, field: pa.Field) -> dict[str, Any]:
    from pyarrow import types

    name = f"{record_set}/{field.name}"
    kind = field.type
    if types.is_list(kind) and types.is_struct(kind.value_type):
        inner = [_extracted(f"{name}/{one.name}", path, field.name, one, nested=True) for one in kind.value_type]
        head = {"@type": "cr:Field", "@id": name, "name": name, **_described(field.name)}
        return {**head, "repeated": True, "subField": inner}
    return _extracted(name, path, field.name, field)


def _extracted(name: str, path: str, column: str, field: pa.Field, *, nested: bool = False) -> dict[str, Any]:
    from pyarrow import types

    kind = field.type
    array = types.is_list(kind)
    source: dict[str, Any] = {"fileObject": {"@id": path}, "extract": {"column": column}}
    if nested:
        source["transform"] = {"jsonPath": field.name}
    shape = {"isArray": True, "arrayShape": "4" if field.name == "bbox" else "-1"} if array else {}
    return {
        "@type": "cr:Field",
        "@id": name,
        "name": name,
        **({} if nested else _described(column)),
        "dataType": "sc:URL" if column == IMAGE_URL else _data_type(kind.value_type if array else kind),
        **shape,
        "source": source,
    }


def _described(column: str) -> dict[str, str]:
    return {"description": COLUMNS[column]} if column in COLUMNS else {}


def _data_type(kind: pa.DataType) -> str:
    from pyarrow import types

    if types.is_struct(kind):
        return "sc:ImageObject"
    if types.is_boolean(kind):
        return "sc:Boolean"
    if types.is_integer(kind):
        return "cr:Int64" if kind.bit_width > 32 else "cr:Int32"
    return "cr:Float64" if types.is_floating(kind) else "sc:Text"
