"""`push`: a repository folder to a hub, as one commit and one tag, all of it or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.errors import PublicationMismatchError, PublishError
from curation.manifest.check import VERSION
from curation.publishing.hub import KIND, HubRepository
from curation.publishing.hub_errors import shown_endpoint, telling
from curation.publishing.publication import RECORD_FILE, Publication

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


def push(hub: HubRepository, folder: Path, publication: Publication, *, public: bool = False) -> Pushed:
    """Push a folder as one commit, and tag it; a tag that is there with the same content is left as it is.

    The tag comes last and names the commit, so that a push that breaks off leaves no version: at most a commit, which
    the next try takes up. A repository that is made is private unless `public`.

    Raises
    ------
    PublishError
        The tag is there with another content, or a later one is there; the repository holds something else, or is
        public and `public` was not asked for; there is no token, or the hub refuses it or cannot be reached.
    """
    hub.require_token()
    info = _ensured(hub, public=public)
    tags = hub.tags()
    tagged = tags.get(publication.tag)
    if tagged is None:
        _require_latest(hub, publication.tag, tags)
    commit = tagged or _committed(hub, folder, publication, info)
    _require_same(hub, commit, publication)
    if tagged is None:
        # A rule of the repository may have kept a file out of the commit.
        hub.require_files(publication, hub.info(commit, with_sizes=True))
        with telling("setting the tag", hub.place):
            message = f"{publication.tag}, {publication.digest}"
            hub.api.create_tag(
                hub.name, tag=publication.tag, tag_message=message, revision=commit, repo_type=KIND
            )
    if public and info.private:
        with telling("making the repository public", hub.place):
            hub.api.update_repo_settings(hub.name, private=False, repo_type=KIND)
    address = f"{shown_endpoint(hub.endpoint)}/datasets/{hub.name}/tree/{publication.tag}"
    return Pushed(commit, address, tagged is None, not public)


def _ensured(hub: HubRepository, *, public: bool) -> Any:
    """Return what the hub says of the repository, which is made where it is missing."""
    info = hub.info_or_none()
    if info is None:
        with telling("making the repository", hub.place):
            hub.api.create_repo(hub.name, repo_type=KIND, private=not public, exist_ok=True)
        info = hub.info()
    if not info.private and not public:
        raise PublishError(
            "The repository is public, and nothing is published to everybody unless that is asked for",
            where=hub.place,
            hint="--public, or another --repo",
        )
    return info


def _require_latest(hub: HubRepository, tag: str, tags: Iterable[str]) -> None:
    """Raise `PublishError` where a later version is published: whoever names no version would get the older one."""
    published = sorted((_numbers(one), one) for one in tags if re.fullmatch(VERSION, one))
    if published and published[-1][0] > _numbers(tag):
        raise PublishError(
            f"A later version than {tag} is published, and the main branch would go back behind it",
            where=hub.place,
            expected=f"a version after {published[-1][1]}",
            found=tag,
            hint="choose a later --tag, or another --repo",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _committed(hub: HubRepository, folder: Path, publication: Publication, info: Any) -> str:
    """Return a commit that holds the folder; the client makes none where the branch holds it already."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    there = {one.rfilename for one in info.siblings or ()}
    paths = [*publication.files, RECORD_FILE]
    stale = sorted(_published_before(hub, there, info.sha) - set(paths))
    operations: list[Any] = [CommitOperationDelete(path) for path in stale]
    operations += [CommitOperationAdd(path, str(folder / path)) for path in paths]
    with telling("pushing the commit", hub.place):
        made = hub.api.create_commit(
            hub.name,
            operations,
            commit_message=f"Publish {publication.tag}",
            commit_description=publication.digest,
            repo_type=KIND,
            # Whoever pushed in between is not overwritten: the hub refuses the commit.
            parent_commit=info.sha,
        )
    return str(made.oid)


def _published_before(hub: HubRepository, there: set[str], commit: str) -> set[str]:
    """Return the files of an earlier publication; a repository of something else is refused."""
    if RECORD_FILE in there:
        return there & set(hub.record_at(commit).files)
    if others := sorted(there - _OF_THE_HUB):
        raise PublishError(
            "The repository holds something else than a publication",
            where=hub.place,
            expected=f"a new repository, or one with {RECORD_FILE}",
            found=ascii(", ".join(others[:5]))[1:-1],
            hint="choose another --repo",
        )
    return set()


def _require_same(hub: HubRepository, commit: str, publication: Publication) -> None:
    try:
        found = hub.record_at(commit).digest
    except PublicationMismatchError as error:
        found = error.what
    if found != publication.digest:
        raise PublishError(
            f"Version {publication.tag} is published with another content, and a version is never edited",
            where=f"{hub.place}@{publication.tag}",
            expected=publication.digest,
            found=found,
            hint="choose another --tag, or give the manifest a new version",
        )
