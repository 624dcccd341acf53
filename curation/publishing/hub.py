"""A dataset repository on a hub: what it holds, and its files, through huggingface_hub alone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from curation.errors import MissingExtraError, PublicationMismatchError, PublishError, UsageError
from curation.publishing.hub_errors import shown_endpoint, status_of, telling
from curation.publishing.publication import MAX_RECORD_BYTES, RECORD_FILE, Publication, parse_record
from curation.publishing.repository import check_repository_name
from curation.storage import read_bytes

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PUBLIC_HUB = "https://huggingface.co"
KIND = "dataset"


class HubRepository:
    """One dataset repository of the hub that ``HF_ENDPOINT`` names, else of huggingface.co.

    The token is that of ``HF_TOKEN`` or of the hub's own login. It is sent in headers alone.

    Attributes
    ----------
    name, endpoint : str
    place : str
        Both, as messages show them.
    api : huggingface_hub.HfApi

    Raises
    ------
    MissingExtraError
        huggingface_hub is not installed.
    UsageError
        The name is not one of a repository, or ``HF_ENDPOINT`` is no address.
    """

    def __init__(self, name: str) -> None:
        check_repository_name(name)
        self.name = name
        self.endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or PUBLIC_HUB
        if not re.match(r"https?://[^/]", self.endpoint):
            raise UsageError("The hub's address is none", where="HF_ENDPOINT", expected="https://HOST")
        self.place = f"{shown_endpoint(self.endpoint)}: {name}"
        self.api = _client(self.endpoint)

    def require_token(self) -> None:
        """Raise `PublishError` where no token is at hand."""
        from huggingface_hub import get_token

        with telling("looking for a token", self.place):
            token = get_token()
        if token is None:
            raise PublishError(
                "Pushing needs a token of the hub, and there is none",
                where=self.place,
                hint="set HF_TOKEN, or log in: hf auth login; --dry-run DIR needs neither",
            )

    def info(self, revision: str | None = None, *, with_sizes: bool = False) -> Any:
        """Return what the hub says of a revision: ``sha``, ``private``, and ``siblings``, its files."""
        with telling(f"looking for {revision or 'the repository'}", self.place):
            return self.api.repo_info(self.name, repo_type=KIND, revision=revision, files_metadata=with_sizes)

    def info_or_none(self) -> Any:
        """Return what the hub says of the main branch, None where there is no such repository."""
        with telling("looking for the repository", self.place):
            try:
                return self.api.repo_info(self.name, repo_type=KIND)
            except Exception as error:
                if status_of(error) != 404:
                    raise
                return None

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag."""
        with telling("listing tags", self.place):
            refs = self.api.list_repo_refs(self.name, repo_type=KIND)
        return {one.name: one.target_commit for one in refs.tags}

    def record_at(self, commit: str) -> Publication:
        """Return the record of the publication that a commit holds (see `fetch_record`)."""
        with TemporaryDirectory(prefix="curation-record-") as folder:
            return self.fetch_record(self.info(commit, with_sizes=True), Path(folder))

    def fetch_record(self, info: Any, folder: Path) -> Publication:
        """Fetch the record of a publication into a folder, and return it.

        Parameters
        ----------
        info
            What the hub says of a commit, sizes included: a file too large to be a record is not fetched.

        Raises
        ------
        PublicationMismatchError
            The commit has none, or one that cannot be trusted.
        """
        where = f"{self.place}, {RECORD_FILE}"
        there = {one.rfilename: one.size for one in info.siblings or ()}
        if RECORD_FILE not in there:
            raise PublicationMismatchError(
                "The repository holds no publication",
                where=where,
                expected=f"a file {RECORD_FILE}",
                hint="curation pull fetches what curation publish pushed",
            )
        if (there[RECORD_FILE] or 0) > MAX_RECORD_BYTES:
            raise PublicationMismatchError(
                "The record of the publication is too large to be one", where=where
            )
        self.fetch(RECORD_FILE, info.sha, folder)
        return parse_record(read_bytes(folder / RECORD_FILE), where=where)

    def fetch(self, path: str, commit: str, folder: Path) -> None:
        """Fetch one file of a commit into a folder, under its path."""
        with telling(f"fetching {path}", self.place):
            self._download(path, commit, folder)

    def require_files(self, publication: Publication, info: Any) -> None:
        """Raise `PublicationMismatchError` unless a commit holds every file in its stated size.

        It says so before a file that the record does not announce fills the disk.
        """
        there = {one.rfilename: one.size for one in info.siblings or ()}
        for path, file in publication.files.items():
            if path not in there or there[path] not in (None, file.size):
                raise PublicationMismatchError(
                    "A file of the publication is missing or has another size",
                    where=f"{self.place}, commit {info.sha}, {path}",
                    expected=f"{file.size} bytes",
                    found=f"{there[path]} bytes" if path in there else "nothing",
                )

    def _download(self, path: str, commit: str, folder: Path) -> None:
        self.api.hf_hub_download(self.name, path, repo_type=KIND, revision=commit, local_dir=folder)


def _client(endpoint: str) -> HfApi:
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingExtraError(
            "Publishing and pulling need huggingface_hub", hint="pip install 'curation[publish]'"
        ) from None
    return HfApi(endpoint=endpoint, library_name="curation")
