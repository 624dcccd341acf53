"""A repository that lies on this disk, checked: every file, every manifest, every table against its list."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NoReturn

from curation.canonical import sha256_of_file
from curation.errors import CurationError, PublicationMismatchError
from curation.manifest.manifest import Manifest
from curation.manifest.store import read_manifest
from curation.publishing.parquet import content_digest, read_parquet, schema_of
from curation.publishing.publication import (
    MAX_RECORD_BYTES,
    RECORD_FILE,
    Publication,
    PublishedManifest,
    parse_record,
)
from curation.storage import inside, read_bytes


def read_publication(folder: Path) -> Publication:
    """Return the record of a repository on disk; see `curation.publishing.publication.parse_record` for the errors."""
    path = folder / RECORD_FILE
    if path.is_file() and path.stat().st_size > MAX_RECORD_BYTES:
        _refuse("The record is too large to be one", str(path), f"at most {MAX_RECORD_BYTES} bytes", "more")
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
        A manifest does not hold together (see `curation.manifest.store.read_manifest`).
    """
    publication = read_publication(folder)
    for path, file in publication.files.items():
        place = inside(folder, path)
        if not place.is_file():
            _refuse("A file of the publication is missing", path, file.sha256, "nothing")
        size, digest = place.stat().st_size, sha256_of_file(place)
        if (size, digest) != (file.size, file.sha256):
            _refuse(
                "A file is not the one that was published",
                path,
                f"{file.size} bytes, {file.sha256}",
                f"{size} bytes, {digest}",
            )
        if file.content and path.endswith(".parquet"):
            found = content_digest(read_parquet(place), schema_of(place))
            if found != file.content:
                _refuse("A table does not say what was published", path, file.content, found)
    for one in publication.manifests:
        _verify_manifest(folder, one)
    return publication


def _verify_manifest(folder: Path, stated: PublishedManifest) -> None:
    manifest = read_manifest(inside(folder, stated.folder))
    header = manifest.header
    found = (header.name, header.version, manifest.digest)
    if found != (stated.name, stated.version, stated.digest):
        _refuse(
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
        _refuse("A table belongs to a part without a list", table, part, error.what)
    for line, (expected, found) in enumerate(zip_longest(ids, _image_ids(inside(folder, table))), start=1):
        if expected != found:
            _refuse(f"Row {line} of a table is not line {line} of its list", table, f"{expected}", f"{found}")


def _image_ids(path: Path) -> Iterator[str]:
    columns = [f"{field.name}: {field.type}" for field in schema_of(path)]
    if "image_id: string" not in columns:
        _refuse("A table has no image ids", path.name, "a column image_id: string", ", ".join(columns))
    for piece in read_parquet(path, ["image_id"]):
        yield from piece.column("image_id").to_pylist()


def _refuse(what: str, where: str, expected: str, found: str) -> NoReturn:
    raise PublicationMismatchError(
        what,
        where=where,
        expected=expected[:200],
        found=ascii(found[:200])[1:-1],
        hint="pull it again; if that does not help, tell who published it",
    )
