"""`Publication`: what a dataset repository holds, as ``publication.json`` with a digest, and its check on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import msgspec

from curation.canonical import sha256_of_file, sha256_of_value
from curation.errors import CanonicalFormError, CurationError, PublicationMismatchError
from curation.manifest.header import DIGEST, VERSION
from curation.manifest.manifest import Manifest, read_manifest
from curation.publishing.formats.plan import json_bytes
from curation.publishing.parquet import content_digest, read_parquet, schema_of
from curation.storage import inside, read_bytes

RECORD_FILE = "publication.json"
MAX_RECORD_BYTES = 64 << 20
MAX_FILES = 200_000
SCHEMA_VERSION = 1
_LONGEST_PATH = 1024


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable record; unknown fields in a file are an error."""


class PublishedFile(_Record, frozen=True):
    """One file of a repository.

    Attributes
    ----------
    sha256 : str
        Of the bytes.
    size : int
    content : str
        Digest of what the file says, where its bytes depend on the version of a library (Parquet); else ``""``.
    """

    sha256: str
    size: int
    content: str = ""

    @property
    def identity(self) -> str:
        """The digest that two publications of one content share."""
        return self.content or self.sha256


class PublishedPart(_Record, frozen=True):
    """One part: its split and table where its list is available, else what the manifest states."""

    name: str
    split: str = ""
    table: str = ""
    images: int | None = None
    labelled: bool = False


class PublishedManifest(_Record, frozen=True):
    """One manifest of a repository and where it lies."""

    name: str
    version: str
    digest: str
    folder: str
    config: str
    parts: tuple[PublishedPart, ...]


class Publication(_Record, frozen=True):
    """What a repository holds at one tag.

    Attributes
    ----------
    repository, tag : str
    manifests : tuple of PublishedManifest
    files : dict of str to PublishedFile
        By path, but for the record itself.
    """

    schema_version: int
    repository: str
    tag: str
    layout: str
    manifests: tuple[PublishedManifest, ...]
    files: dict[str, PublishedFile]

    @property
    def digest(self) -> str:
        """``sha256:…`` of the record with each file's `identity`: equal for equal content."""
        data = _without_defaults(self)
        data["files"] = {path: file.identity for path, file in self.files.items()}
        return sha256_of_value(data)


class _Stored(Publication, frozen=True, kw_only=True, forbid_unknown_fields=True):
    digest_: str = msgspec.field(name="digest")


def record_bytes(publication: Publication) -> bytes:
    """Return the bytes of ``publication.json``."""
    return json_bytes({"digest": publication.digest, **_without_defaults(publication)})


def parse_record(data: bytes, *, where: str) -> Publication:
    """Return the publication that a record states; its digest and the form of its paths are checked.

    Raises
    ------
    PublicationMismatchError
        It is no record, one of an unknown version, or not the one that its digest stands for.
    """
    if len(data) > MAX_RECORD_BYTES:
        _refuse(where, "the record is too large to be one", f"at most {MAX_RECORD_BYTES} bytes", str(len(data)))
    try:
        stored = msgspec.json.decode(data, type=_Stored)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse(where, "it is no record of a publication", "", str(error)[:300])
    publication = Publication(**{name: getattr(stored, name) for name in Publication.__struct_fields__})
    if publication.schema_version != SCHEMA_VERSION:
        _refuse(where, "the schema version is unknown", str(SCHEMA_VERSION), str(publication.schema_version))
    _check(publication, where)
    try:
        digest = publication.digest
    except CanonicalFormError as error:
        _refuse(where, error.what, error.expected or "", error.found or "")
    if stored.digest_ != digest:
        _refuse(where, "the record is not the one its digest stands for", stored.digest_[:100], digest)
    return publication


def is_safe_path(path: str) -> bool:
    """Return whether a path of a record is plain: relative, printable ASCII, without ``..`` and hidden names."""
    parts = path.split("/")
    plain = all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]*", part) for part in parts)
    return plain and len(path) <= _LONGEST_PATH


def _check(publication: Publication, where: str) -> None:
    # It is shown: no text of a record steers a terminal.
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,96}/[A-Za-z0-9._-]{1,96}", publication.repository):
        _refuse(where, "the repository has no name of one", "ORG/NAME", publication.repository[:200])
    if not re.fullmatch(VERSION, publication.tag):
        _refuse(where, "the tag is no version", "MAJOR.MINOR.PATCH", publication.tag[:60])
    if len(publication.files) > MAX_FILES:
        _refuse(where, "it names too many files", f"at most {MAX_FILES}", str(len(publication.files)))
    for path, file in publication.files.items():
        if not is_safe_path(path) or path == RECORD_FILE:
            _refuse(where, "a path is not one that a publication has", "", path[:200])
        if not re.fullmatch(DIGEST, file.sha256) or (file.content and not re.fullmatch(DIGEST, file.content)):
            _refuse(where, f"the digest of {path[:200]} is malformed", "sha256:…", file.sha256[:80])
        if file.size < 0:
            _refuse(where, f"the size of {path[:200]} is negative", "", str(file.size))
    lowered = {path.lower() for path in publication.files}
    if len(lowered) < len(publication.files):
        _refuse(where, "two paths differ in upper and lower case alone", "", "")
    folders = {str(folder) for path in lowered for folder in PurePosixPath(path).parents}
    if both := sorted(lowered & folders):
        _refuse(where, "a path is a file and a folder", "", both[0][:200])
    for one in publication.manifests:
        tables = [part.table for part in one.parts if part.table]
        for path in (f"{one.folder}/manifest.json", *tables):
            if path not in publication.files:
                _refuse(where, "a file that it speaks of is not among its files", "", path[:200])


def _without_defaults(publication: Publication) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(publication)
    data["files"] = {
        path: {name: value for name, value in file.items() if name != "content" or value}
        for path, file in _sorted(data["files"]).items()
    }
    return data


def _sorted(files: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(files.items()))


def _refuse(where: str, what: str, expected: str, found: str) -> NoReturn:
    raise PublicationMismatchError(
        f"The record of the publication cannot be trusted: {what}",
        where=where,
        expected=expected or None,
        found=ascii(found)[1:-1] if found else None,
        hint="fetch it again, or ask who published it",
    )


def read_publication(folder: Path) -> Publication:
    """Return the record of a repository on disk; see `curation.publishing.publication.parse_record` for the errors."""
    path = folder / RECORD_FILE
    if path.is_file() and path.stat().st_size > MAX_RECORD_BYTES:
        _refuse_copy("The record is too large to be one", str(path), f"at most {MAX_RECORD_BYTES} bytes", "more")
    return parse_record(read_bytes(path, kind="record of the publication"), where=str(path))


def verify_repository(folder: Path) -> Publication:
    """Return the record of a repository after everything in it was checked.

    The bytes of each file, and what each table says, have the stated digests; each manifest is whole and the one that
    is stated; the rows of each table are the lines of its list.

    Raises
    ------
    PublicationMismatchError
        Something is missing, or not as stated; the message names the file.
    ManifestError, DigestMismatchError
        A manifest does not hold together (see `curation.manifest.manifest.read_manifest`).
    """
    publication = read_publication(folder)
    for path, file in publication.files.items():
        place = inside(folder, path)
        if not place.is_file():
            _refuse_copy("A file of the publication is missing", path, file.sha256, "nothing")
        size, digest = place.stat().st_size, sha256_of_file(place)
        if (size, digest) != (file.size, file.sha256):
            _refuse_copy(
                "A file is not the one that was published",
                path,
                f"{file.size} bytes, {file.sha256}",
                f"{size} bytes, {digest}",
            )
        if file.content and path.endswith(".parquet"):
            found = content_digest(read_parquet(place), schema_of(place))
            if found != file.content:
                _refuse_copy("A table does not say what was published", path, file.content, found)
    for one in publication.manifests:
        _verify_manifest(folder, one)
    return publication


def _verify_manifest(folder: Path, stated: PublishedManifest) -> None:
    manifest = read_manifest(inside(folder, stated.folder))
    header = manifest.header
    found = (header.name, header.version, manifest.digest)
    if found != (stated.name, stated.version, stated.digest):
        _refuse_copy(
            "A manifest is not the one that was published",
            stated.folder,
            f"{stated.name} {stated.version} {stated.digest}",
            " ".join(found),
        )
    for part in stated.parts:
        if part.table:
            _verify_rows(folder, manifest, part.name, part.table)


def _verify_rows(folder: Path, manifest: Manifest, part: str, table: str) -> None:
    try:
        ids = manifest.ids(part)
    except CurationError as error:
        _refuse_copy("A table belongs to a part without a list", table, part, error.what)
    for line, (expected, found) in enumerate(zip_longest(ids, _image_ids(inside(folder, table))), start=1):
        if expected != found:
            _refuse_copy(f"Row {line} of a table is not line {line} of its list", table, f"{expected}", f"{found}")


def _image_ids(path: Path) -> Iterator[str]:
    columns = [f"{field.name}: {field.type}" for field in schema_of(path)]
    if "image_id: string" not in columns:
        _refuse_copy("A table has no image ids", path.name, "a column image_id: string", ", ".join(columns))
    for piece in read_parquet(path, ["image_id"]):
        yield from piece.column("image_id").to_pylist()


def _refuse_copy(what: str, where: str, expected: str, found: str) -> NoReturn:
    raise PublicationMismatchError(
        what,
        where=where,
        expected=expected[:200],
        found=ascii(found[:200])[1:-1],
        hint="pull it again; if that does not help, tell who published it",
    )
