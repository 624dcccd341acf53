"""A dataset repository on a hub, pushed and pulled as a whole with huggingface_hub."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from urllib.parse import urlsplit

from curation.core.arguments import checked
from curation.core.errors import (
    CurationError,
    MissingExtraError,
    PublicationMismatchError,
    PublishError,
    UsageError,
    install_command,
)
from curation.core.files import read_bytes
from curation.core.writing import publishing_folder
from curation.manifest.header import DIGEST, VERSION
from curation.publishing.publication import (
    MAX_RECORD_BYTES,
    RECORD_FILE,
    Publication,
    check_repository_name,
    parse_record,
    verify_repository,
)

PUBLIC_HUB = "https://huggingface.co"
KIND = "dataset"


class HubRepository:
    """A dataset repository on the hub of ``HF_ENDPOINT``, by default huggingface.co.

    The token is that of ``HF_TOKEN`` or of the hub's login. It is sent only in headers.

    Attributes
    ----------
    name, endpoint : str
    where : str
        Both, for messages.
    api : huggingface_hub.HfApi

    Raises
    ------
    MissingExtraError
        huggingface_hub is not installed.
    UsageError
        The name of the repository or the address in ``HF_ENDPOINT`` is invalid.
    """

    def __init__(self, name: str) -> None:
        check_repository_name(name)
        self.name = name
        self.endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or PUBLIC_HUB
        if not re.match(r"https?://[^/]", self.endpoint):
            raise UsageError("Invalid hub address", where="HF_ENDPOINT", expected="https://HOST")
        self.where = f"{shown_endpoint(self.endpoint)}: {name}"
        try:
            from huggingface_hub import HfApi
        except ImportError:
            raise MissingExtraError(
                "Publishing and pulling need huggingface_hub", hint=install_command("publish")
            ) from None
        self.api = HfApi(endpoint=self.endpoint, library_name="curation")

    def require_token(self) -> None:
        """Raise `PublishError` if no token is available."""
        from huggingface_hub import get_token

        with translate_errors("looking for a token", self.where):
            token = get_token()
        if token is None:
            raise PublishError(
                "Pushing needs a hub token, and none was found",
                where=self.where,
                hint="set HF_TOKEN, or log in: hf auth login; --dry-run DIR needs no token",
            )

    def ask(self, doing: str, request: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Return the hub's answer to a request about this repository; errors are those of `translate_errors`."""
        with translate_errors(doing, self.where):
            return request(self.name, *arguments, repo_type=KIND, **options)

    def info(self, revision: str | None = None) -> Any:
        """Return the hub's record of a revision: ``sha``, ``private``, and ``siblings``, its files with sizes.

        The default revision is the main branch. None if the repository does not exist.
        """
        from huggingface_hub.constants import HF_HUB_ETAG_TIMEOUT

        def look(name: str, **options: Any) -> Any:
            try:
                # The client sets a time limit only for downloads.
                return self.api.repo_info(name, timeout=HF_HUB_ETAG_TIMEOUT, **options)
            except Exception as error:
                if revision is None and status_of(error) == 404:
                    return None
                raise

        return self.ask(f"looking for {revision or 'the repository'}", look, revision=revision, files_metadata=True)

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag."""
        refs = self.ask("listing tags", self.api.list_repo_refs)
        return {tag.name: tag.target_commit for tag in refs.tags}

    def record_at(self, commit: str) -> Publication:
        """Return the record of the publication in a commit (see `fetch_record`)."""
        with TemporaryDirectory(prefix="curation-record-") as folder:
            return self.fetch_record(self.info(commit), Path(folder))

    def fetch_record(self, info: Any, folder: Path) -> Publication:
        """Fetch the record of a publication into a folder, and return it.

        Parameters
        ----------
        info
            The hub's record of a commit, with sizes; a file that is too large for a record is not fetched.

        Raises
        ------
        PublicationMismatchError
            The commit has no record, or an invalid one.
        """
        where, sizes = f"{self.where}, {RECORD_FILE}", sizes_of(info)
        if RECORD_FILE not in sizes:
            raise PublicationMismatchError(
                "The repository has no publication",
                where=where,
                expected=f"a file {RECORD_FILE}",
                hint="curation pull fetches only publications that curation publish pushed",
            )
        if (sizes[RECORD_FILE] or 0) > MAX_RECORD_BYTES:
            raise PublicationMismatchError("The record of the publication is too large", where=where)
        self.fetch(RECORD_FILE, info.sha, folder)
        return parse_record(read_bytes(folder / RECORD_FILE), where=where)

    def fetch(self, path: str, commit: str, folder: Path) -> None:
        """Fetch one file of a commit into a folder, keeping its path."""
        self.ask(f"fetching {path}", self.api.hf_hub_download, path, revision=commit, local_dir=folder)

    def require_files(self, publication: Publication, info: Any) -> None:
        """Raise `PublicationMismatchError` if a commit lacks a file, or a file has another size than stated.

        The check precedes the download, so that an unexpected file cannot fill the disk.
        """
        sizes = sizes_of(info)
        for path, file in publication.files.items():
            if path not in sizes or sizes[path] not in (None, file.size):
                raise PublicationMismatchError(
                    "A file of the publication is missing or has another size",
                    where=f"{self.where}, commit {info.sha}, {path}",
                    expected=f"{file.size} bytes",
                    found=f"{sizes[path]} bytes" if path in sizes else "nothing",
                )


def sizes_of(info: Any) -> dict[str, int | None]:
    """Return the size of each file of a commit, or None if the hub does not state it."""
    return {sibling.rfilename: sibling.size for sibling in info.siblings or ()}


_NETWORK = {"httpcore", "httpcore2", "httpx", "httpx2", "requests", "urllib3", "hf_xet"}
_LOGIN = "set HF_TOKEN, or log in: hf auth login"
_SHORTEST_TOKEN = 8


@contextmanager
def translate_errors(doing: str, where: str) -> Iterator[None]:
    """Turn errors of the client into a `PublishError` that names the action and the repository.

    Errors of this program, and errors caused by neither the hub nor the network, are raised unchanged.
    """
    try:
        yield
    except CurationError:
        raise
    except Exception as error:
        if (translated := _translated(error, doing, where)) is None:
            raise
        raise translated from None


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status that caused an error, or None."""
    for cause in _chain(error):
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
    return None


def shown_endpoint(endpoint: str) -> str:
    """Return an endpoint without user, password and query."""
    try:
        parts = urlsplit(endpoint)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the endpoint of HF_ENDPOINT"
    return f"{parts.scheme}://{parts.hostname or ''}{port}"


def without_secrets(text: str) -> str:
    """Return a message without the token, texts that look like a token, and queries of addresses."""
    secrets = [os.environ.get(name, "") for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")]
    with suppress(ImportError):
        from huggingface_hub import get_token

        secrets.append(get_token() or "")
    for secret in [known for known in secrets if len(known) >= _SHORTEST_TOKEN]:
        text = text.replace(secret, "***")
    text = re.sub(r"\bhf_[A-Za-z0-9_]{4,}|[Bb]earer\s+\S+", "***", text)
    text = re.sub(r"(https?://)[^\s/@]*@", r"\1", text)
    return re.sub(r"(https?://[^\s?'\"]*)\?[^\s'\"]*", r"\1", text)


_STATUS = {
    401: ("The hub does not accept the token", f"{_LOGIN}; an expired token needs a new one"),
    403: ("The token does not allow this", "use a token that may write to this organization"),
    404: ("The hub has no such repository or version, or does not show it to this token", f"check the name; {_LOGIN}"),
    409: ("The hub reports a conflict", "try again"),
    412: ("Another push changed the repository at the same time", "try again"),
    413: ("The upload is too large for the hub", None),
    429: ("The hub received too many requests", "try again later"),
}


def _translated(error: Exception, doing: str, where: str) -> PublishError | None:
    """Return the error to report for a client's error, or None if neither the hub nor the network caused it."""
    chain = list(_chain(error))
    homes = {type(cause).__module__.partition(".")[0] for cause in chain}
    broken = [cause for cause in chain if isinstance(cause, OSError)]
    text = getattr(chain[-1], "server_message", None) or str(chain[-1]) or type(chain[-1]).__name__
    answer, hint = " ".join(without_secrets(str(text)).split())[:300], None
    if (status := status_of(error)) is not None:
        message, hint = _STATUS.get(status, ("The hub failed", "try again later"))
        message, answer = f"{message} ({doing})", f"HTTP {status}: {answer}"
    elif any(cause.filename for cause in broken):
        return None  # A local file, which the command line reports.
    elif broken or homes & _NETWORK:
        message = f"The hub cannot be reached, or broke off, while {doing}"
        hint = "try again: a publication is pushed or pulled completely or not at all; for a slow hub, set the "
        hint += "environment variables HF_HUB_ETAG_TIMEOUT=60 and HF_HUB_DOWNLOAD_TIMEOUT=60 (seconds)"
    elif isinstance(error, ValueError) or "huggingface_hub" in homes:
        message = f"The hub refused {doing}"
    else:
        return None
    return PublishError(message, where=where, found=answer, hint=hint)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# Files that the hub creates in a new repository.
_OF_THE_HUB = {".gitattributes", "README.md"}


@dataclass(frozen=True, slots=True)
class Pushed:
    """Result of a push.

    Attributes
    ----------
    commit : str
        The commit of the tag.
    address : str
    is_new : bool
        False if the tag existed with the same content, and nothing was pushed.
    private : bool
    """

    commit: str
    address: str
    is_new: bool
    private: bool


def push(hub: HubRepository, folder: Path, publication: Publication, *, public: bool = False) -> Pushed:
    """Push a folder as one commit and tag it; an existing tag with the same content is kept.

    The tag is set last, so that an interrupted push leaves no version: at most a commit, which the next try reuses. A
    new repository is private unless `public`.

    Raises
    ------
    PublishError
        The tag exists with other content; the repository has other files, or is public without `public`; the token is
        missing; or the hub refuses or cannot be reached.
    """
    hub.require_token()
    info = hub.info()
    if info is None:
        hub.ask("making the repository", hub.api.create_repo, private=not public, exist_ok=True)
        info = hub.info("main")
    if not info.private and not public:
        raise PublishError(
            "The repository is public, and --public was not given",
            where=hub.where,
            hint="--public, or --repo ORG/NAME of another",
        )
    tagged = hub.tags().get(publication.tag)
    commit = tagged or _committed(hub, folder, publication, info)
    _require_same(hub, commit, publication)
    if tagged is None:
        # A rule of the repository may have excluded a file from the commit.
        hub.require_files(publication, hub.info(commit))
        message = f"{publication.tag}, {publication.digest}"
        tag = hub.api.create_tag
        hub.ask("setting the tag", tag, tag=publication.tag, tag_message=message, revision=commit)
    address = f"{shown_endpoint(hub.endpoint)}/datasets/{hub.name}/tree/{publication.tag}"
    return Pushed(commit, address, tagged is None, info.private)


def _committed(hub: HubRepository, folder: Path, publication: Publication, info: Any) -> str:
    """Return a commit with the folder; the client makes none if the branch has the same content."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    paths = [*publication.files, RECORD_FILE]
    stale = sorted(_published_before(hub, set(sizes_of(info)), info.sha) - set(paths))
    operations: list[Any] = [CommitOperationDelete(path) for path in stale]
    operations += [CommitOperationAdd(path, str(folder / path)) for path in paths]
    commit = hub.ask(
        "pushing the commit",
        hub.api.create_commit,
        operations,
        commit_message=f"Publish {publication.tag}",
        commit_description=publication.digest,
        # The hub refuses the commit if another push came in between.
        parent_commit=info.sha,
    )
    return str(commit.oid)


def _published_before(hub: HubRepository, files: set[str], commit: str) -> set[str]:
    """Return the files of an earlier publication; a repository with other files is an error."""
    if RECORD_FILE in files:
        return files & set(hub.record_at(commit).files)
    if others := sorted(files - _OF_THE_HUB):
        raise PublishError(
            "The repository has other files than a publication",
            where=hub.where,
            expected=f"a new repository, or one with {RECORD_FILE}",
            found=ascii(", ".join(others[:5]))[1:-1],
            hint="--repo ORG/NAME of another repository",
        )
    return set()


def _require_same(hub: HubRepository, commit: str, publication: Publication) -> None:
    try:
        digest = hub.record_at(commit).digest
    except PublicationMismatchError as error:
        digest = error.what
    if digest != publication.digest:
        raise PublishError(
            f"Version {publication.tag} is published with different content, and a version is never edited",
            where=f"{hub.where}@{publication.tag}",
            expected=publication.digest,
            found=digest,
            hint="--tag MAJOR.MINOR.PATCH of a new version",
        )


_COMMIT = r"[0-9a-f]{40}"


@checked
def pull(
    publication: Annotated[str, "ORG/NAME@VERSION"],
    out: Annotated[Path, "--out DIR"],
    *,
    digest: Annotated[str, "SHA256"] = "",
) -> Publication:
    """Fetch a version of a repository into a new folder, which appears only after all its files were checked.

    Parameters
    ----------
    publication : str
        a dataset repository, and its tag (MAJOR.MINOR.PATCH) or a commit of 40 hex digits
    out : Path or str
        a new folder
    digest : str
        the digest that the publication must have

    Returns
    -------
    Publication
        The record; it names the original repository even if this one is a copy.

    Raises
    ------
    PublicationMismatchError, ManifestError
        The files on the hub do not agree with their record (see `verify_repository`), or have another digest.
    PublishError
        The version does not exist, or the hub refuses or cannot be reached.
    UsageError
        `publication` or `digest` is malformed, or `out` is not empty.

    Examples
    --------
    >>> import curation
    >>> curation.pull("mylab/elephant", "elephant")
    Traceback (most recent call last):
        ...
    curation.core.errors.UsageError: The version to pull is missing
      where: mylab/elephant
      expected: ORG/NAME@VERSION
    """
    name, at, version = publication.partition("@")
    if not at:
        raise UsageError("The version to pull is missing", where=name[:200], expected="ORG/NAME@VERSION")
    hub = HubRepository(name)
    if not re.fullmatch(f"{VERSION}|{_COMMIT}", version):
        raise UsageError(
            "Invalid version",
            where=f"{hub.name}@{ascii(version[:60])[1:-1]}",
            expected="a tag MAJOR.MINOR.PATCH, or a commit of 40 hex digits",
        )
    if digest and not re.fullmatch(DIGEST, digest):
        raise UsageError(
            "Invalid digest", where="--digest", expected="sha256: and 64 hex digits", found=ascii(digest[:100])[1:-1]
        )
    info = hub.info(version)
    source = f"{hub.where}@{version}"
    with publishing_folder(Path(out)) as new:
        record = hub.fetch_record(info, new)
        _require_asked(record, version, digest, source)
        hub.require_files(record, info)
        for path in record.files:
            hub.fetch(path, info.sha, new)
        # The client's records of its downloads.
        shutil.rmtree(new / ".cache", ignore_errors=True)
        return verify_repository(new)


def _require_asked(publication: Publication, version: str, digest: str, where: str) -> None:
    if re.fullmatch(VERSION, version) and publication.tag != version:
        raise PublicationMismatchError(
            "The tag points to another version", where=where, expected=version, found=publication.tag
        )
    if digest and publication.digest != digest:
        raise PublicationMismatchError(
            "The publication is not the requested one", where=where, expected=digest, found=publication.digest
        )
