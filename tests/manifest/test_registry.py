"""Chains of versions that supersede one another."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from curation.cli import main
from curation.core.errors import DigestMismatchError, ManifestError, VersionChainError
from curation.manifest.header import Header, Supersedes
from curation.manifest.locate import superseded_by
from curation.manifest.manifest import Manifest, manifest_files, write_manifest

Make = Callable[..., Manifest]


def versions(make: Make, *numbers: str) -> list[Manifest]:
    """Return manifests each of which supersedes the one before."""
    made: list[Manifest] = []
    for number in numbers:
        before = made[-1] if made else None
        link = before and Supersedes(version=before.header.version, digest=before.digest, reason="a fix")
        made.append(make(version=number, supersedes=link))
    return made


def by_name(manifests: list[Manifest]) -> dict[str, tuple[str, Header]]:
    return {f"{one.header.name}@{one.header.version}": (one.digest, one.header) for one in manifests}


def test_a_chain_is_followed_to_its_beginning(make_manifest: Make) -> None:
    made = versions(make_manifest, "1.0.0", "1.0.9", "1.0.10")
    chain = superseded_by(made[2].header, by_name(made))
    assert [(one.version, one.digest, one.at_hand) for one in chain] == [
        ("1.0.9", made[1].digest, True),
        ("1.0.0", made[0].digest, True),
    ]
    assert superseded_by(made[0].header, by_name(made)) == ()


def test_a_chain_ends_where_a_version_is_not_at_hand(make_manifest: Make) -> None:
    made = versions(make_manifest, "1.0.0", "1.1.0", "2.0.0")
    chain = superseded_by(made[2].header, by_name([made[0], made[2]]))
    assert [(one.version, one.at_hand) for one in chain] == [("1.1.0", False)]


@pytest.mark.parametrize("version", ["1.0.1", "1.0.2", "1.0.10"])
def test_a_version_supersedes_neither_itself_nor_a_later_one(make_manifest: Make, version: str) -> None:
    link = Supersedes(version=version, digest="sha256:" + "0" * 64, reason="")
    made = make_manifest(version="1.0.1", supersedes=link)
    with pytest.raises(ManifestError, match="supersedes itself"):
        superseded_by(made.header, by_name([made]))


def test_a_digest_of_another_version_is_refused_anywhere_in_the_chain(make_manifest: Make) -> None:
    first, second, third = versions(make_manifest, "1.0.0", "1.1.0", "2.0.0")
    other = make_manifest(version="1.0.0", title="another")
    with pytest.raises(DigestMismatchError) as found:
        superseded_by(third.header, by_name([other, second, third]))
    assert (found.value.expected, found.value.found) == (other.digest, first.digest)


def write_raw(root: Path, manifest: Manifest) -> Path:
    """Write a manifest that `write_manifest` would refuse, as somebody's editor might."""
    header = msgspec.structs.replace(manifest.header, supersedes=None)
    folder = root / header.name / header.version
    write_manifest(Manifest(header=header, lists=manifest.lists), folder)
    (folder / "manifest.json").write_bytes(manifest_files(manifest)["manifest.json"])
    return folder


def test_a_circle_of_versions_is_refused_wherever_it_is_read(
    make_manifest: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    link = Supersedes(version="2.0.0", digest="sha256:" + "0" * 64, reason="")
    first = make_manifest(version="1.0.0", supersedes=link)
    back = Supersedes(version="1.0.0", digest=first.digest, reason="a fix")
    second = make_manifest(version="2.0.0", supersedes=back)
    after = Supersedes(version="2.0.0", digest=second.digest, reason="a fix")
    third = make_manifest(version="3.0.0", supersedes=after)
    other = make_manifest(version="1.0.0", name="other/one")
    folders = [str(write_raw(Path("manifests"), one)) for one in (first, second, third, other)]
    for read in folders[:3]:
        for words in (
            ["show", read],
            ["diff", read, folders[3]],
            ["diff", folders[3], read],
            ["verify", read],
            ["audit", read],
            ["publish", read, "--repo", "a/b", "--dry-run", "out"],
            ["export", read, "--part", "all", "--format", "txt", "--out", "lists"],
        ):
            assert main(words) == 2
            told = capsys.readouterr().err
            assert "supersedes itself, or a version that is not earlier" in told
            assert folders[0] in told
            assert folders[1] in told or read == folders[0]
    assert main(["list"]) == 2
    assert "supersedes itself, or a version that is not earlier" in capsys.readouterr().err
    assert main(["show", folders[3]]) == 0
    assert not Path("out").exists()


def test_nothing_is_written_that_supersedes_a_later_version(make_manifest: Make, tmp_path: Path) -> None:
    link = Supersedes(version="1.0.0", digest="sha256:" + "0" * 64, reason="")
    with pytest.raises(VersionChainError):
        write_manifest(make_manifest(version="1.0.0", supersedes=link), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
