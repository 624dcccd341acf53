"""A dataset repository on a hub: pushed as one commit with one tag, and fetched back."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import (
    CurationError,
    MissingExtraError,
    PublicationMismatchError,
    PublishError,
    UsageError,
)
from curation.manifest.check import VERSION
from curation.publishing.hub_errors import shown_endpoint, status_of, telling
from curation.publishing.publication import (
    MAX_RECORD_BYTES,
    RECORD_FILE,
    Publication,
    parse_record,
)
from curation.publishing.pulled import verify_repository
from curation.publishing.repository import check_repository_name
from curation.storage import publishing_folder, read_bytes

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PUBLIC_HUB = "https://huggingface.co"
_TYPE = "dataset"
_COMMIT = r"[0-9a-f]{40}"
# What a hub puts into a new repository by itself.
_OF_THE_HUB = {".gitattributes", "README.md"}


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did.

    Attributes
    ----------
    commit : str
        The commit that the tag names.
    address : str
    is_new : bool
        False where the tag was there with the same content, and nothing was pushed.
    private : bool
    """

    commit: str
    address: str
    is_new: bool
    private: bool


class HubRepository:
    """One dataset repository of the hub that ``HF_ENDPOINT`` names, else of huggingface.co.

    The token is that of ``HF_TOKEN`` or of the hub's own login. It is sent in headers alone.

    Raises
    ------
    MissingExtraError
        huggingface_hub is not installed.
    UsageError
        The name is not one of a repository.
    """

    def __init__(self, name: str) -> None:
        check_repository_name(name)
        self.name = name
        self.endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or PUBLIC_HUB
        self._api = _client(self.endpoint)

    def push(self, folder: Path, publication: Publication, *, public: bool = False) -> Pushed:
        """Push a folder as one commit, and tag it; a tag that is there with the same content is left as it is.

        The tag comes last, and names the commit. A push that breaks off leaves no tag, and at most a commit, which the
        next try takes up. A repository that is made is private unless `public`.

        Raises
        ------
        PublishError
            The tag is there with another content; the repository holds something else, or is public and `public` was
            not asked for; there is no token, or the hub refuses it or cannot be reached.
        """
        self._require_token()
        info = self._ensure_repository(public=public)
        tagged = self._tags().get(publication.tag)
        if tagged is not None:
            self._require_same(tagged, publication)
        commit = tagged or self._commit(folder, publication, info)
        if tagged is None:
            self._require_same(commit, publication)
            with telling("setting the tag", self.name, self.endpoint):
                message = f"{publication.tag}, {publication.digest}"
                self._api.create_tag(
                    self.name, tag=publication.tag, tag_message=message, revision=commit, repo_type=_TYPE
                )
        if public and info.private:
            with telling("making the repository public", self.name, self.endpoint):
                self._api.update_repo_settings(self.name, private=False, repo_type=_TYPE)
        address = f"{shown_endpoint(self.endpoint)}/datasets/{self.name}/tree/{publication.tag}"
        return Pushed(commit, address, tagged is None, not public)

    def pull(self, version: str, out: Path, *, digest: str = "") -> Publication:
        """Fetch a version into a new folder, which appears only after everything in it was checked.

        Parameters
        ----------
        version : str
            A tag ``MAJOR.MINOR.PATCH``, or a commit of 40 hex digits.
        digest : str
            The digest that the publication must have, ``""`` for any.

        Raises
        ------
        PublicationMismatchError
            What the hub holds is not what its record says, or has another digest.
        PublishError
            There is no such version, or the hub refuses or cannot be reached.
        """
        if not re.fullmatch(f"{VERSION}|{_COMMIT}", version):
            raise UsageError(
                "This is no version",
                where=f"{self.name}@{version[:60]}",
                expected="a tag MAJOR.MINOR.PATCH, or a commit of 40 hex digits",
            )
        info = self._info(version, with_sizes=True)
        with publishing_folder(out) as partial:
            publication = self._fetch_record(info.sha, partial)
            self._require_asked(publication, version, digest)
            self._require_sizes(publication, info)
            for path in publication.files:
                self._fetch(path, info.sha, partial)
            shutil.rmtree(partial / ".cache", ignore_errors=True)
            return verify_repository(partial)

    def _require_token(self) -> None:
        from huggingface_hub import get_token

        if get_token() is None:
            raise PublishError(
                "Pushing needs a token of the hub, and there is none",
                where=f"{shown_endpoint(self.endpoint)}: {self.name}",
                hint="set HF_TOKEN, or log in: hf auth login; --dry-run DIR needs neither",
            )

    def _info(self, revision: str | None = None, *, with_sizes: bool = False) -> Any:
        with telling(f"looking for version {revision or 'main'}", self.name, self.endpoint):
            return self._api.repo_info(
                self.name, repo_type=_TYPE, revision=revision, files_metadata=with_sizes
            )

    def _ensure_repository(self, *, public: bool) -> Any:
        with telling("looking for the repository", self.name, self.endpoint):
            try:
                info = self._api.repo_info(self.name, repo_type=_TYPE)
            except Exception as error:
                if status_of(error) != 404:
                    raise
                self._api.create_repo(self.name, repo_type=_TYPE, private=not public, exist_ok=True)
                info = self._api.repo_info(self.name, repo_type=_TYPE)
        if not info.private and not public:
            raise PublishError(
                "The repository is public, and nothing is published to everybody unless that is asked for",
                where=f"{shown_endpoint(self.endpoint)}: {self.name}",
                hint="--public, or another --repo",
            )
        return info

    def _tags(self) -> dict[str, str]:
        with telling("listing tags", self.name, self.endpoint):
            refs = self._api.list_repo_refs(self.name, repo_type=_TYPE)
        return {one.name: one.target_commit for one in refs.tags}

    def _commit(self, folder: Path, publication: Publication, info: Any) -> str:
        """Return the commit that holds exactly the folder; the client makes none where nothing has changed."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        there = {one.rfilename for one in info.siblings or ()}
        paths = [*publication.files, RECORD_FILE]
        stale = sorted(self._published_before(there, info.sha) - set(paths))
        operations: list[Any] = [CommitOperationDelete(path) for path in stale]
        operations += [CommitOperationAdd(path, str(folder / path)) for path in paths]
        with telling("pushing the commit", self.name, self.endpoint):
            made = self._api.create_commit(
                self.name,
                operations,
                commit_message=f"Publish {publication.tag}",
                commit_description=publication.digest,
                repo_type=_TYPE,
                parent_commit=info.sha,
            )
        return str(made.oid)

    def _published_before(self, there: set[str], commit: str) -> set[str]:
        """Return the files of an earlier publication; a repository of something else is refused."""
        if RECORD_FILE in there:
            return there & set(self._record_at(commit).files)
        if others := sorted(there - _OF_THE_HUB):
            raise PublishError(
                "The repository holds something else than a publication",
                where=f"{shown_endpoint(self.endpoint)}: {self.name}",
                expected=f"a new repository, or one with {RECORD_FILE}",
                found=ascii(", ".join(others[:5]))[1:-1],
                hint="choose another --repo",
            )
        return set()

    def _require_same(self, commit: str, publication: Publication) -> None:
        try:
            found = self._record_at(commit).digest
        except PublicationMismatchError as error:
            found = error.what
        if found != publication.digest:
            raise PublishError(
                f"Version {publication.tag} is published with another content, and a version is never edited",
                where=f"{shown_endpoint(self.endpoint)}: {self.name}@{publication.tag}",
                expected=publication.digest,
                found=found,
                hint="choose another --tag, or give the manifest a new version",
            )

    def _record_at(self, commit: str) -> Publication:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            return self._fetch_record(commit, Path(folder))

    def _fetch_record(self, commit: str, folder: Path) -> Publication:
        where = f"{shown_endpoint(self.endpoint)}: {self.name}, {RECORD_FILE}"
        try:
            self._fetch(RECORD_FILE, commit, folder)
        except CurationError as error:
            if "HTTP 404" in (error.found or ""):
                raise PublicationMismatchError(
                    "The repository holds no publication",
                    where=where,
                    expected=f"a file {RECORD_FILE}",
                    hint="curation pull fetches what curation publish pushed",
                ) from None
            raise
        path = folder / RECORD_FILE
        if path.stat().st_size > MAX_RECORD_BYTES:
            raise PublicationMismatchError(
                "The record of the publication is too large to be one", where=where
            )
        return parse_record(read_bytes(path), where=where)

    def _fetch(self, path: str, commit: str, folder: Path) -> None:
        with telling(f"fetching {path}", self.name, self.endpoint):
            self._api.hf_hub_download(self.name, path, repo_type=_TYPE, revision=commit, local_dir=folder)

    def _require_asked(self, publication: Publication, version: str, digest: str) -> None:
        where = f"{shown_endpoint(self.endpoint)}: {self.name}@{version}"
        if re.fullmatch(VERSION, version) and publication.tag != version:
            raise PublicationMismatchError(
                "The tag leads to another version", where=where, expected=version, found=publication.tag
            )
        if digest and publication.digest != digest:
            raise PublicationMismatchError(
                "The publication is not the one that was asked for",
                where=where,
                expected=digest,
                found=publication.digest,
            )

    def _require_sizes(self, publication: Publication, info: Any) -> None:
        """Refuse what the record does not announce before it fills the disk."""
        there = {one.rfilename: one.size for one in info.siblings or ()}
        for path, file in publication.files.items():
            if path not in there or there[path] not in (None, file.size):
                raise PublicationMismatchError(
                    "A file of the publication is missing or has another size",
                    where=f"{shown_endpoint(self.endpoint)}: {self.name}, {path}",
                    expected=f"{file.size} bytes",
                    found=f"{there[path]} bytes" if path in there else "nothing",
                )


def _client(endpoint: str) -> HfApi:
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingExtraError(
            "Publishing and pulling need huggingface_hub", hint="pip install 'curation[publish]'"
        ) from None
    return HfApi(endpoint=endpoint, library_name="curation")
