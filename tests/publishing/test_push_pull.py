"""Push and pull against a hub on this machine, through the real client: whole or not at all, and never twice."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from curation.core.errors import DigestMismatchError, PublicationMismatchError, PublishError, UsageError
from curation.manifest.manifest import Manifest, read_manifest
from curation.publishing.hub import HubRepository, pull, push
from curation.publishing.publication import RECORD_FILE, Publication, parse_record, record_bytes, verify_repository
from tests.fake_hub import READER, WRITER, FakeHub
from tests.publishing.published_world import REPOSITORY, changed, files_below, request_of, tiny, write

# The hub's client sends large files in a way that its own HTTP library calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Publication]:
    folder = tmp_path_factory.mktemp("built") / "repository"
    manifest, sources = tiny()
    return folder, write(folder, request_of(manifest, sources=sources))


@pytest.fixture
def written(tmp_path: Path, built: tuple[Path, Publication]) -> tuple[Path, Publication]:
    shutil.copytree(built[0], tmp_path / "written")
    return tmp_path / "written", built[1]


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return tiny()[0]


def pushed_files(hub: FakeHub, revision: str = "1.0.0") -> dict[str, bytes]:
    files = hub.repositories[REPOSITORY].files(revision)
    assert files is not None
    return {path: data for path, data in files.items() if path != ".gitattributes"}


def test_a_push_is_one_commit_and_one_tag_of_exactly_the_folder(
    hub: FakeHub, written: tuple[Path, Publication]
) -> None:
    pushed = push(HubRepository(REPOSITORY), *written)
    repository = hub.repositories[REPOSITORY]
    assert (pushed.is_new, pushed.private, repository.private) == (True, True, True)
    assert len(repository.commits) == 2  # the hub's own, and ours
    assert repository.tags == {"1.0.0": pushed.commit}
    assert pushed_files(hub) == files_below(written[0])
    assert hub.count("upload") == 2  # the two tables went the way of large files


def test_what_is_pulled_is_what_was_pushed_and_a_manifest_like_any_other(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path, manifest: Manifest
) -> None:
    push(HubRepository(REPOSITORY), *written)
    out = tmp_path / "out" / "pulled"
    publication = pull(f"{REPOSITORY}@1.0.0", out, digest=written[1].digest)
    assert publication == written[1]
    assert files_below(out) == files_below(written[0])
    assert read_manifest(out / "manifests/hand/made/1.0.0").digest == manifest.digest
    assert [path.name for path in out.parent.iterdir()] == ["pulled"]


def test_a_commit_can_be_pulled_too(hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path) -> None:
    commit = push(HubRepository(REPOSITORY), *written).commit
    assert pull(f"{REPOSITORY}@{commit}", tmp_path / "out") == written[1]


def test_pushing_the_same_again_changes_nothing(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path
) -> None:
    first = push(HubRepository(REPOSITORY), *written)
    writes = [hub.count(name) for name in ("commit", "upload", "tag")]
    again = tmp_path / "again"
    manifest, sources = tiny()
    second = push(HubRepository(REPOSITORY), again, write(again, request_of(manifest, sources=sources)))
    assert (second.commit, second.is_new) == (first.commit, False)
    assert [hub.count(name) for name in ("commit", "upload", "tag")] == writes


def test_a_version_with_another_content_is_refused(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path, manifest: Manifest
) -> None:
    push(HubRepository(REPOSITORY), *written)
    before = pushed_files(hub)
    other = tmp_path / "other"
    publication = write(other, request_of(changed(manifest, title="Another title")))
    with pytest.raises(PublishError, match="different content") as refused:
        push(HubRepository(REPOSITORY), other, publication)
    assert (refused.value.expected, refused.value.found) == (publication.digest, written[1].digest)
    assert (hub.commits(REPOSITORY), pushed_files(hub)) == (2, before)


def test_the_next_version_takes_away_what_it_does_not_have(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path, manifest: Manifest
) -> None:
    push(HubRepository(REPOSITORY), *written)
    second = tmp_path / "second"
    publication = write(second, request_of(changed(manifest, version="2.0.0"), tag="2.0.0"))
    push(HubRepository(REPOSITORY), second, publication)
    assert pushed_files(hub, "2.0.0") == files_below(second)
    assert "manifests/hand/made/1.0.0/manifest.json" in pushed_files(hub, "1.0.0")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("route", ["create", "info", "validate", "preupload", "batch", "commit", "tag", "resolve"])
def test_a_connection_that_breaks_leaves_no_version_and_the_next_try_succeeds(
    hub: FakeHub, written: tuple[Path, Publication], monkeypatch: pytest.MonkeyPatch, route: str, after: bool
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)  # the client waits before it tries again
    # The answer of a tag that was set gets lost: all the rest is whole, and the version stands.
    stands = route == "tag" and after
    hub.break_at, hub.break_after, hub.breaks = route, after, 100
    with pytest.raises(PublishError, match="cannot be reached, or broke off") as refused:
        push(HubRepository(REPOSITORY), *written)
    assert WRITER not in str(refused.value)
    there = hub.repositories.get(REPOSITORY)
    assert bool(there and there.tags) == stands
    hub.breaks = 0
    assert push(HubRepository(REPOSITORY), *written).is_new != stands
    assert pushed_files(hub) == files_below(written[0])
    assert hub.commits(REPOSITORY) == 2


def test_a_file_that_the_repository_keeps_out_is_noticed(hub: FakeHub, written: tuple[Path, Publication]) -> None:
    hub.ignored = "croissant.json"
    with pytest.raises(PublishError, match="missing or has another size"):
        push(HubRepository(REPOSITORY), *written)
    assert hub.repositories[REPOSITORY].tags == {}


@pytest.mark.parametrize(
    ("token", "status", "told"),
    [("hf_expired_0123456789", 401, "does not accept the token"), (READER, 403, "does not allow this")],
)
def test_a_token_that_is_refused_is_told_and_not_shown(
    hub: FakeHub, written: tuple[Path, Publication], monkeypatch: pytest.MonkeyPatch, token: str, status: int, told: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(PublishError, match=told) as refused:
        push(HubRepository(REPOSITORY), *written)
    assert f"HTTP {status}" in str(refused.value)
    assert token not in json.dumps(refused.value.as_dict())
    assert hub.repositories == {}


def test_without_a_token_nothing_is_asked_of_the_hub(
    hub: FakeHub, written: tuple[Path, Publication], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(PublishError, match="needs a hub token") as refused:
        push(HubRepository(REPOSITORY), *written)
    assert "HF_TOKEN" in (refused.value.hint or "")
    assert hub.requests == []


def test_a_hub_that_is_not_there_is_told(
    hub: FakeHub, written: tuple[Path, Publication], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://user:password@127.0.0.1:9")
    for attempt in (
        lambda: push(HubRepository(REPOSITORY), *written),
        lambda: pull(f"{REPOSITORY}@1.0.0", tmp_path / "out"),
    ):
        with pytest.raises(PublishError, match="cannot be reached") as refused:
            attempt()
        assert "http://127.0.0.1:9" in str(refused.value)
        assert "password" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_public_repository_needs_the_word_public(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path, manifest: Manifest
) -> None:
    public = push(HubRepository(REPOSITORY), *written, public=True)
    assert (public.private, hub.repositories[REPOSITORY].private) == (False, False)
    second = tmp_path / "second"
    publication = write(second, request_of(changed(manifest, version="2.0.0"), tag="2.0.0"))
    with pytest.raises(PublishError, match="is public"):
        push(HubRepository(REPOSITORY), second, publication)
    assert push(HubRepository(REPOSITORY), second, publication, public=True).is_new


def test_a_repository_of_something_else_is_left_alone(hub: FakeHub, written: tuple[Path, Publication]) -> None:
    hub_repository = HubRepository(REPOSITORY)
    hub_repository.api.create_repo(REPOSITORY, repo_type="dataset", private=True)
    hub.repositories[REPOSITORY].commits[-1][1]["weights.bin"] = b"precious"
    with pytest.raises(PublishError, match="other files than a publication") as refused:
        push(hub_repository, *written)
    assert refused.value.found == "weights.bin"
    assert hub.commits(REPOSITORY) == 1


@pytest.mark.parametrize(
    ("name", "version", "told"), [("lab/lists", "9.9.9", "HTTP 404"), ("lab/absent", "1.0.0", "HTTP 404")]
)
def test_what_is_not_there_cannot_be_pulled(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path, name: str, version: str, told: str
) -> None:
    push(HubRepository(REPOSITORY), *written)
    with pytest.raises(PublishError) as refused:
        pull(f"{name}@{version}", tmp_path / "out")
    assert told in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("version", ["@main", "@../../x", "@1.0", "@1.0.0\x1b[2J", "@", ""])
def test_a_version_is_a_tag_or_a_commit(hub: FakeHub, tmp_path: Path, version: str) -> None:
    with pytest.raises(UsageError, match="Invalid version" if version else "The version to pull is missing") as refused:
        pull(f"{REPOSITORY}{version}", tmp_path / "out")
    assert "\x1b" not in str(refused.value)
    assert hub.requests == []


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "data/hand-made/closed.parquet",
        "manifests/hand/made/1.0.0/ids/closed.txt",
        "manifests/hand/made/1.0.0/manifest.json",
        "croissant.json",
    ],
)
def test_a_byte_that_changed_on_the_hub_is_found(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path, path: str
) -> None:
    push(HubRepository(REPOSITORY), *written)
    files = hub.repositories[REPOSITORY].commits[-1][1]
    data = bytearray(files[path])
    data[len(data) // 2] ^= 1
    files[path] = bytes(data)
    with pytest.raises(PublicationMismatchError, match="not the one that was published") as refused:
        pull(f"{REPOSITORY}@1.0.0", tmp_path / "out")
    assert refused.value.where == path
    assert list(tmp_path.glob("out*")) + list(tmp_path.glob(".out*")) == []


def test_a_file_that_is_gone_or_larger_than_announced_is_not_fetched(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path
) -> None:
    push(HubRepository(REPOSITORY), *written)
    files = hub.repositories[REPOSITORY].commits[-1][1]
    citation = files.pop("croissant.json")
    for content in (None, citation * 1000):
        if content is not None:
            files["croissant.json"] = content
        asked = hub.count("resolve")
        with pytest.raises(PublicationMismatchError, match="missing or has another size"):
            pull(f"{REPOSITORY}@1.0.0", tmp_path / "out")
        # The record alone was fetched: its head, and its bytes.
        assert hub.count("resolve") - asked <= 2


def test_a_record_too_large_to_be_one_is_not_fetched(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(HubRepository(REPOSITORY), *written)
    monkeypatch.setattr("curation.publishing.hub.MAX_RECORD_BYTES", 10)
    asked = hub.count("resolve")
    with pytest.raises(PublicationMismatchError, match="too large"):
        pull(f"{REPOSITORY}@1.0.0", tmp_path / "out")
    assert hub.count("resolve") == asked


def rewritten(publication: Publication, **fields: object) -> bytes:
    data = {name: getattr(publication, name) for name in publication.__struct_fields__} | fields
    return record_bytes(Publication(**data))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path",
    ["../escape.txt", "/etc/passwd", "a/../../b", "a\\..\\b", ".git/config", "a//b", "C:/x", "a/\x1b[2J", "é.txt"],
)
def test_a_record_that_leads_outside_is_refused_before_anything_is_fetched(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path, path: str
) -> None:
    push(HubRepository(REPOSITORY), *written)
    files = {**written[1].files, "x.txt": written[1].files["README.md"]}
    data = rewritten(written[1], files=files).replace(b'"x.txt"', json.dumps(path).encode())
    hub.repositories[REPOSITORY].commits[-1][1][RECORD_FILE] = data
    with pytest.raises(PublicationMismatchError, match="cannot be trusted") as refused:
        pull(f"{REPOSITORY}@1.0.0", tmp_path / "deep" / "out")
    assert "\x1b" not in str(refused.value)
    assert files_below(tmp_path / "deep") == {}


@pytest.mark.parametrize("path", ["README.md/x.txt", "readme.MD/deep/x.txt"])
def test_a_path_is_a_file_or_a_folder(written: tuple[Path, Publication], path: str) -> None:
    files = {**written[1].files, path: written[1].files["README.md"]}
    with pytest.raises(PublicationMismatchError, match="a file and a folder"):
        parse_record(rewritten(written[1], files=files), where="here")


@pytest.mark.parametrize("name", ["lab/\x1b[2J", "lab\nlists", "", "lists", "a/b/c"])
def test_a_record_is_of_a_repository_that_can_be_shown(written: tuple[Path, Publication], name: str) -> None:
    with pytest.raises(PublicationMismatchError, match="repository") as refused:
        parse_record(rewritten(written[1], repository=name), where="here")
    assert "\x1b" not in str(refused.value)


def test_a_record_says_what_its_digest_stands_for(written: tuple[Path, Publication]) -> None:
    data = record_bytes(written[1])
    assert parse_record(data, where="here") == written[1]
    for old, new in ((b'"lab/lists"', b'"lab/other"'), (b'"labelled": true', b'"labelled": false')):
        assert old in data
        with pytest.raises(PublicationMismatchError, match="does not match its digest"):
            parse_record(data.replace(old, new, 1), where="here")


def test_another_digest_than_the_one_asked_for_is_refused(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path
) -> None:
    push(HubRepository(REPOSITORY), *written)
    with pytest.raises(PublicationMismatchError, match="not the requested one"):
        pull(f"{REPOSITORY}@1.0.0", tmp_path / "out", digest="sha256:" + "0" * 64)


@pytest.mark.parametrize("digest", ["nonsense", "0" * 64, "sha256:" + "0" * 63, "sha256:\x1b[2J"])
def test_what_is_no_digest_is_told_before_the_hub_is_asked(hub: FakeHub, tmp_path: Path, digest: str) -> None:
    with pytest.raises(UsageError, match="Invalid digest") as refused:
        pull(f"{REPOSITORY}@1.0.0", tmp_path / "out", digest=digest)
    assert "\x1b" not in str(refused.value)
    assert hub.requests == []


@pytest.mark.parametrize("endpoint", ["nonsense", "ftp://hub", "https://", "user:hf_secret0@hub"])
def test_an_endpoint_is_an_address(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(UsageError, match="Invalid hub address") as refused:
        HubRepository(REPOSITORY)
    assert "secret" not in str(refused.value)


def test_a_tag_that_leads_to_another_version_is_refused(
    hub: FakeHub, written: tuple[Path, Publication], tmp_path: Path
) -> None:
    commit = push(HubRepository(REPOSITORY), *written).commit
    hub.repositories[REPOSITORY].tags["2.0.0"] = commit
    with pytest.raises(PublicationMismatchError, match="another version"):
        pull(f"{REPOSITORY}@2.0.0", tmp_path / "out")


def test_a_repository_without_a_record_is_no_publication(hub: FakeHub, tmp_path: Path) -> None:
    hub_repository = HubRepository(REPOSITORY)
    hub_repository.api.create_repo(REPOSITORY, repo_type="dataset", private=True)
    with pytest.raises(PublicationMismatchError, match="has no publication"):
        pull(f"{REPOSITORY}@{hub.repositories[REPOSITORY].head}", tmp_path / "out")


def test_a_list_that_is_not_the_pinned_one_is_found(written: tuple[Path, Publication]) -> None:
    folder, publication = written
    name = "manifests/hand/made/1.0.0/ids/closed.txt"
    data = b"voc2007:000009\nvoc2007:000013\n"
    (folder / name).write_bytes(data)
    file = type(publication.files[name])(sha256=f"sha256:{hashlib.sha256(data).hexdigest()}", size=len(data))
    (folder / RECORD_FILE).write_bytes(rewritten(publication, files={**publication.files, name: file}))
    with pytest.raises(DigestMismatchError, match="id list"):
        verify_repository(folder)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "not a record"),
        (b"[" * 100_000, "not a record"),
        (b'{"digest": 3}', "not a record"),
        (b"\xff\xfe", "not a record"),
        (b"null", "not a record"),
    ],
)
def test_what_is_no_record_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(PublicationMismatchError, match=told):
        parse_record(data, where="here")


def test_somebody_who_pushed_in_between_is_not_overwritten(
    hub: FakeHub, written: tuple[Path, Publication], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_repository = HubRepository(REPOSITORY)
    looked = hub_repository.tags

    def meanwhile() -> dict[str, str]:
        found = looked()
        repository = hub.repositories[REPOSITORY]
        repository.commits.append(("f" * 40, {**repository.commits[-1][1], "other.txt": b"theirs"}))
        return found

    monkeypatch.setattr(hub_repository, "tags", meanwhile)
    with pytest.raises(PublishError, match="Another push changed the repository"):
        push(hub_repository, *written)
    assert hub.repositories[REPOSITORY].head == "f" * 40
