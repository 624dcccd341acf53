"""What is written is read back; one changed byte anywhere is an error that names the file."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import CurationError, DigestMismatchError, ManifestError, MissingListError, UsageError
from curation.manifest import manifest as store
from curation.manifest.manifest import Manifest, manifest_files, read_manifest, write_manifest

Make = Callable[..., Manifest]


@pytest.fixture
def folder(manifest: Manifest, tmp_path: Path) -> Path:
    write_manifest(manifest, tmp_path / "m")
    return tmp_path / "m"


def rewrite(folder: Path, manifest: Manifest) -> None:
    """Write a manifest without any check, as an attacker with a good digest would."""
    for path in [*(folder / "ids").iterdir(), folder / "manifest.json"]:
        path.unlink()
    for name, data in manifest_files(manifest).items():
        (folder / name).write_bytes(data)


def test_round_trip(manifest: Manifest, folder: Path) -> None:
    assert read_manifest(folder) == manifest
    assert read_manifest(folder / "manifest.json") == manifest
    assert (folder / "ids/closed.txt").read_bytes() == b"toy:1\ntoy:2\n"
    assert sorted(path.name for path in folder.rglob("*")) == ["closed.txt", "ids", "manifest.json", "rest.txt"]


def test_digest_is_that_of_the_canonical_header(manifest: Manifest, folder: Path) -> None:
    stored = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    claimed = stored.pop("digest")
    canonical = json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert claimed == sha256_of_bytes(canonical) == manifest.digest


def test_writing_the_same_again_changes_nothing_and_another_is_refused(
    manifest: Manifest, make_manifest: Make, folder: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    write_manifest(manifest, folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    with pytest.raises(UsageError, match="never edited"):
        write_manifest(make_manifest(notes=("other",)), folder)
    assert read_manifest(folder) == manifest


def test_an_inconsistent_manifest_is_not_written(make_manifest: Make, tmp_path: Path) -> None:
    wrong = Manifest(header=make_manifest().header, lists={"closed": ("toy:1", "toy:9"), "rest": ("toy:3", "toy:4")})
    with pytest.raises(DigestMismatchError, match="does not agree with its digest in the manifest"):
        write_manifest(wrong, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_single_byte_counts(data: st.DataObject, folder: Path) -> None:
    path = data.draw(st.sampled_from(sorted(path for path in folder.rglob("*") if path.is_file())))
    original = path.read_bytes()
    place = data.draw(st.integers(0, len(original)))
    byte = data.draw(st.binary(min_size=0, max_size=1))
    changed = original[:place] + byte + original[place + 1 :]
    if changed == original:
        return
    path.write_bytes(changed)
    try:
        with pytest.raises(ManifestError) as caught:
            read_manifest(folder)
        assert path.name in str(caught.value)
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("ids/closed.txt", lambda data: data.replace(b"\n", b"\r\n"), "CRLF"),
        ("ids/closed.txt", lambda data: data[:-1], "An id list does not match its digest in the manifest"),
        ("manifest.json", lambda data: data.replace(b"\n", b"\r\n"), "CRLF"),
        ("manifest.json", lambda data: data + b"\n", "The manifest is not in canonical form"),
        ("manifest.json", lambda data: data.replace(b'"1.0.0"', b'"1.0.1"'), "does not match its digest"),
        ("manifest.json", lambda data: data[:200], "not readable JSON"),
        ("manifest.json", lambda data: b"", "not readable JSON"),
        ("manifest.json", lambda data: b"\xff\xfe", "not readable JSON"),
        ("manifest.json", lambda data: b"[" * 200_000, "not readable JSON"),
        ("manifest.json", lambda data: data.replace(b'"schema_version": 1', b'"schema_version": 2'), "schema version"),
        ("manifest.json", lambda data: data.replace(b'"title"', b'"tilte"'), "Malformed manifest"),
    ],
)
def test_damage_is_told_by_file(folder: Path, name: str, damage: Callable[[bytes], bytes], message: str) -> None:
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ManifestError, match=message) as caught:
        read_manifest(folder)
    assert str(path) in str(caught.value)


def test_missing_superfluous_and_linked_lists(folder: Path, tmp_path: Path) -> None:
    extra = folder / "ids/more.txt"
    extra.write_bytes(b"toy:1\n")
    with pytest.raises(ManifestError, match="does not name"):
        read_manifest(folder)
    extra.unlink()
    outside = tmp_path / "outside.txt"
    (folder / "ids/rest.txt").rename(outside)
    with pytest.raises(ManifestError, match="missing"):
        read_manifest(folder)
    (folder / "ids/rest.txt").symlink_to(outside)
    with pytest.raises(CurationError, match="outside"):
        read_manifest(folder)


def test_large_files_are_refused_unread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_LIST_BYTES", 5)
    with pytest.raises(ManifestError, match="too large"):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("ids", "order", "message"),
    [
        (("toy:2", "toy:1"), "code_point", "not sorted"),
        (("toy:1", "toy:1"), "code_point", "twice"),
        (("toy:2", "toy:2"), "listed", "twice"),
        (("1", "2"), "code_point", "no namespace"),
        (("Toy:1", "toy:2"), "code_point", "namespace"),
        (("toy:", "toy:2"), "code_point", "malformed"),
        (("toy:1 ", "toy:2"), "code_point", "malformed"),
        (("toy:1\x1b[2J", "toy:2"), "code_point", "malformed"),
        (("toy:1\r", "toy:2\r"), "code_point", "carriage"),
    ],
)
def test_lists_with_a_good_digest_and_bad_content(
    make_manifest: Make, folder: Path, ids: tuple[str, ...], order: str, message: str
) -> None:
    base = make_manifest({"closed": ids})
    part = msgspec.structs.replace(base.header.parts[0], order=order)
    rewrite(folder, Manifest(header=msgspec.structs.replace(base.header, parts=(part,)), lists=base.lists))
    with pytest.raises(ManifestError, match=message):
        read_manifest(folder)


def published(make_manifest: Make, ids: tuple[str, ...], repeats: int) -> Manifest:
    base = make_manifest({"t1-test": ids}, origin="as_published")
    part = msgspec.structs.replace(base.header.parts[0], order="listed", repeats=repeats)
    return Manifest(header=msgspec.structs.replace(base.header, parts=(part,)), lists=base.lists)


def test_an_authors_manifest_may_stand_without_its_lists(make_manifest: Make, tmp_path: Path) -> None:
    whole = published(make_manifest, ("toy:2", "toy:1", "toy:2"), 1)
    write_manifest(whole, tmp_path / "whole")
    write_manifest(Manifest(header=whole.header, lists={}), tmp_path / "header")
    assert read_manifest(tmp_path / "whole") == whole
    alone = read_manifest(tmp_path / "header")
    assert alone.digest == whole.digest
    assert not alone.lists
    with pytest.raises(MissingListError, match="authors' list") as caught:
        alone.ids("t1-test")
    assert "curation import toy/example@1.0.0" in str(caught.value)


@pytest.mark.parametrize("repeats", [0, 2])
def test_repeated_lines_are_counted(make_manifest: Make, tmp_path: Path, repeats: int) -> None:
    with pytest.raises(ManifestError):
        write_manifest(published(make_manifest, ("toy:2", "toy:1", "toy:2"), repeats), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_declared_list_may_be_pinned_and_absent(make_manifest: Make, tmp_path: Path) -> None:
    manifest = make_manifest(origin="declared")
    partial = Manifest(header=manifest.header, lists={"rest": manifest.lists["rest"]})
    write_manifest(partial, tmp_path / "m")
    assert read_manifest(tmp_path / "m") == partial
    with pytest.raises(MissingListError, match="needs your raw data"):
        partial.ids("closed")
