"""`pull`: a version of a repository from a hub into a folder that appears only when all of it is as published."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from curation.errors import PublicationMismatchError, UsageError
from curation.manifest.check import DIGEST, VERSION
from curation.publishing.hub import HubRepository
from curation.publishing.publication import Publication
from curation.publishing.pulled import verify_repository
from curation.storage import publishing_folder

_COMMIT = r"[0-9a-f]{40}"


def pull(hub: HubRepository, version: str, out: Path, *, digest: str = "") -> Publication:
    """Fetch a version into a new folder, which appears only after everything in it was checked.

    Parameters
    ----------
    version : str
        A tag ``MAJOR.MINOR.PATCH``, or a commit of 40 hex digits.
    digest : str
        The digest that the publication must have, ``""`` for any.

    Raises
    ------
    PublicationMismatchError, ManifestError
        What the hub holds is not what its record says (see `curation.publishing.pulled.verify_repository`), or has
        another digest.
    PublishError
        There is no such version, or the hub refuses or cannot be reached.
    UsageError
        `version` or `digest` is none; or `out` holds something.
    """
    if not re.fullmatch(f"{VERSION}|{_COMMIT}", version):
        raise UsageError(
            "This is no version",
            where=f"{hub.name}@{ascii(version[:60])[1:-1]}",
            expected="a tag MAJOR.MINOR.PATCH, or a commit of 40 hex digits",
        )
    if digest and not re.fullmatch(DIGEST, digest):
        raise UsageError(
            "This is no digest",
            where="--digest",
            expected="sha256: and 64 hex digits",
            found=ascii(digest[:100])[1:-1],
        )
    info = hub.info(version, with_sizes=True)
    place = f"{hub.place}@{version}"
    with publishing_folder(out) as partial:
        publication = hub.fetch_record(info, partial)
        _require_asked(publication, version, digest, place)
        hub.require_files(publication, info)
        for path in publication.files:
            hub.fetch(path, info.sha, partial)
        # The client's own notes on what it fetched.
        shutil.rmtree(partial / ".cache", ignore_errors=True)
        return verify_repository(partial)


def _require_asked(publication: Publication, version: str, digest: str, place: str) -> None:
    if re.fullmatch(VERSION, version) and publication.tag != version:
        raise PublicationMismatchError(
            "The tag leads to another version", where=place, expected=version, found=publication.tag
        )
    if digest and publication.digest != digest:
        raise PublicationMismatchError(
            "The publication is not the one that was asked for",
            where=place,
            expected=digest,
            found=publication.digest,
        )
