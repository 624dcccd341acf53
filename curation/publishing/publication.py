"""`Publication`: the content of a dataset repository in ``publication.json``, with a digest, and its check."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NoReturn

import msgspec

from curation.core.canonical import sha256_of_file, sha256_of_value
from curation.core.errors import CanonicalFormError, PublicationMismatchError, UsageError
from curation.core.files import inside, read_bytes
from curation.manifest.header import DIGEST, Digest, Version
from curation.manifest.manifest import read_manifest
from curation.publishing.formats.plan import indented_json

RECORD_FILE = "publication.json"
MAX_RECORD_BYTES = 64 << 20
SCHEMA_VERSION = 1
_LONGEST_PATH = 1024
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_LONGEST_NAME = 96
_WORD = r"[A-Za-z0-9._-]{1,96}"
_STEP = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"


# Not `$`, which allows a final line feed.
DigestOrNone = Annotated[str, msgspec.Meta(pattern=rf"^(?:{DIGEST})?\Z")]
RepositoryName = Annotated[str, msgspec.Meta(pattern=rf"^{_WORD}/{_WORD}\Z")]


class RepositoryFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One file of a repository.

    Attributes
    ----------
    sha256 : str
        Digest of the bytes.
    size : int
    content : str
        Digest of the content, if the bytes depend on the version of a library (Parquet); else ``""``.
    """

    sha256: Digest
    size: Annotated[int, msgspec.Meta(ge=0)]
    content: DigestOrNone = ""

    @property
    def identity(self) -> str:
        """The digest that two publications with the same content share."""
        return self.content or self.sha256


class PublishedPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A published part, with its split and table if its list is available."""

    name: str
    split: str = ""
    table: str = ""
    images: int | None = None
    labelled: bool = False


class PublishedManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A manifest of a repository, with its folder."""

    name: str
    version: str
    digest: str
    folder: str
    config: str
    parts: tuple[PublishedPart, ...]


class Publication(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of a repository at a tag.

    Attributes
    ----------
    repository, tag : str
        Both are printed, so they contain no control characters.
    manifests : tuple of PublishedManifest
    files : dict of str to PublishedFile
        All files except the record, by path.
    """

    schema_version: Annotated[int, msgspec.Meta(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    repository: RepositoryName
    tag: Version
    layout: str
    manifests: tuple[PublishedManifest, ...]
    files: Annotated[dict[str, RepositoryFile], msgspec.Meta(max_length=200_000)]

    @property
    def digest(self) -> str:
        """``sha256:…`` of the record with the `identity` of each file; equal for equal content."""
        files = {path: file.identity for path, file in sorted(self.files.items())}
        return sha256_of_value({**msgspec.to_builtins(self), "files": files})


def check_repository_name(name: str) -> None:
    """Raise `UsageError` if a text is not a valid name of a dataset repository."""
    well_formed = re.fullmatch(f"{_NAME}/{_NAME}", name) and not re.search(r"--|\.\.|\.git$", name)
    if not well_formed or len(name) > _LONGEST_NAME:
        raise UsageError(
            "Invalid name of a dataset repository",
            expected="ORG/NAME of letters, digits, '-', '_' and '.', at most 96 characters",
            found=ascii(name[:100]),
        )


def record_bytes(publication: Publication) -> bytes:
    """Return the bytes of ``publication.json``."""
    data = msgspec.to_builtins(publication)
    return indented_json({"digest": publication.digest, **data, "files": dict(sorted(data["files"].items()))})


def parse_record(data: bytes, *, where: str) -> Publication:
    """Return the publication in a record, after checking its digest and paths.

    Raises
    ------
    PublicationMismatchError
        The data are not a record, have an unknown version, or do not match their digest.
    """
    if len(data) > MAX_RECORD_BYTES:
        _distrust(where, "the record is too large", f"at most {MAX_RECORD_BYTES} bytes", str(len(data)))
    try:
        content = msgspec.json.decode(data, type=dict[str, Any])
        stated_digest = content.pop("digest", None)
        publication = msgspec.convert(content, Publication)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _distrust(where, "it is not a record of a publication", "", str(error)[:300])
    _check_paths(publication, where)
    try:
        digest = publication.digest
    except CanonicalFormError as error:
        _distrust(where, error.what, error.expected or "", error.found or "")
    if stated_digest != digest:
        _distrust(where, "the record does not match its digest", str(stated_digest)[:100], digest)
    return publication


def _check_paths(publication: Publication, where: str) -> None:
    """Raise `PublicationMismatchError` if a path is not relative, printable ASCII, or has ``..`` or a hidden name."""
    for path in publication.files:
        if not re.fullmatch(f"{_STEP}(?:/{_STEP})*", path) or len(path) > _LONGEST_PATH or path == RECORD_FILE:
            _distrust(where, "invalid path", "", path[:200])
    lowered = {path.lower() for path in publication.files}
    if len(lowered) < len(publication.files):
        _distrust(where, "two paths differ only in upper and lower case", "", "")
    folders = {str(folder) for path in lowered for folder in PurePosixPath(path).parents}
    if both := sorted(lowered & folders):
        _distrust(where, "a path is a file and a folder", "", both[0][:200])
    for manifest in publication.manifests:
        for path in (f"{manifest.folder}/manifest.json", *(part.table for part in manifest.parts if part.table)):
            if path not in publication.files:
                _distrust(where, "a file of a manifest is not among its files", "", path[:200])


def _distrust(where: str, reason: str, expected: str, value: str) -> NoReturn:
    message = f"The record of the publication cannot be trusted: {reason}"
    _refuse(message, where, expected, value, "fetch it again, or ask the publisher")


def _refuse(
    message: str,
    where: str,
    expected: str,
    value: str,
    hint: str = "pull it again; if that does not help, report it to the publisher",
) -> NoReturn:
    raise PublicationMismatchError(
        message, where=where, expected=expected[:200] or None, found=ascii(value[:300])[1:-1] or None, hint=hint
    )


def read_publication(folder: Path) -> Publication:
    """Return the record of a repository on disk; see `curation.publishing.publication.parse_record` for the errors."""
    path = folder / RECORD_FILE
    kind = "record of the publication"
    return parse_record(
        read_bytes(path, kind=kind, most=MAX_RECORD_BYTES, error=PublicationMismatchError), where=str(path)
    )


def verify_repository(folder: Path) -> Publication:
    """Return the record of a repository after checking all its files and manifests against it.

    Raises
    ------
    PublicationMismatchError
        A file is missing, or differs from the record; the message names the file.
    ManifestError, DigestMismatchError
        A manifest is invalid (see `curation.manifest.manifest.read_manifest`).
    """
    publication = read_publication(folder)
    for path, file in publication.files.items():
        local = inside(folder, path)
        if not local.is_file():
            _refuse("A file of the publication is missing", path, file.sha256, "nothing")
        size, digest = local.stat().st_size, sha256_of_file(local)
        if (size, digest) != (file.size, file.sha256):
            _refuse(
                "A file is not the one that was published",
                path,
                f"{file.size} bytes, {file.sha256}",
                f"{size} bytes, {digest}",
            )
    for manifest in publication.manifests:
        _verify_manifest(folder, manifest)
    return publication


def _verify_manifest(folder: Path, record: PublishedManifest) -> None:
    manifest = read_manifest(inside(folder, record.folder))
    header = manifest.header
    identity = (header.name, header.version, manifest.digest)
    if identity != (record.name, record.version, record.digest):
        _refuse(
            "A manifest is not the one that was published",
            record.folder,
            f"{record.name} {record.version} {record.digest}",
            " ".join(identity),
        )
