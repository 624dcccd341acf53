"""Blocks of a corpus: every photo once, read by the worker, and whatever is hostile refused with words."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from curation.core.errors import CurationWarning, MissingFileError, SourceError, UsageError
from curation.sources import corpus, photos
from curation.sources.corpus import corpus_blocks, photo_data
from curation.sources.photos import BrokenPhotoError, PhotoFolder


def found(place: str | Path, **named: str) -> dict[str, str]:
    """What every photo of a corpus holds, or why it cannot be read."""
    data = [one for block in corpus_blocks(place, **named) for table in block.tables() for one in photo_data(table)]
    assert len({name for name, _ in data}) == len(data)
    return {name: str(one) if isinstance(one, BrokenPhotoError) else one.decode() for name, one in data}


def tar_of(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def test_photos_below_a_folder_have_their_path_as_id(tmp_path: Path) -> None:
    for name in ("b.jpg", "a/z.PNG", "a/y.webp", "a.jpg", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    expected = ["a/y.webp", "a/z.PNG", "a.jpg", "b.jpg"]
    assert list(found(tmp_path)) == expected
    assert found(tmp_path) == {name: name for name in expected}
    for name in ("a/x.avif", "c.GIF"):
        (tmp_path / name).touch()
    with pytest.warns(CurationWarning, match=r"2 pictures below .* not read: a/x.avif, c.GIF. Formats read: .jpg, "):
        assert list(found(tmp_path)) == expected
    with pytest.warns(CurationWarning, match="2 pictures"):
        assert len(PhotoFolder(tmp_path).paths) == len(expected)


def test_shards_go_before_the_tables_and_captions_beside_them(tmp_path: Path) -> None:
    for shard in ("00", "01"):
        members = {f"{shard}7.jpg": b"one", f"{shard}7.json": b"{}", f"{shard}8.png": b"two"}
        (tmp_path / f"{shard}.tar").write_bytes(tar_of(members))
    expected = {"00.tar/007.jpg": "one", "00.tar/008.png": "two", "01.tar/017.jpg": "one", "01.tar/018.png": "two"}
    assert found(tmp_path) == expected
    assert list(found(tmp_path / "00.tar")) == ["00.tar/007.jpg", "00.tar/008.png"]


def test_hostile_members_are_rows_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, kind, link in (
            ("../up.jpg", tarfile.REGTYPE, ""),
            ("/etc/abs.jpg", tarfile.REGTYPE, ""),
            ("a\\..\\..\\b.jpg", tarfile.REGTYPE, ""),
            ("link.jpg", tarfile.SYMTYPE, "/etc/passwd"),
            ("hard.jpg", tarfile.LNKTYPE, "good.jpg"),
            ("pipe.jpg", tarfile.FIFOTYPE, ""),
            ("\udcff.jpg", tarfile.REGTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            archive.addfile(member)
        for name, data in (("huge.jpg", bytes(2000)), ("good.jpg", b"good")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    (tmp_path / "h.tar").write_bytes(stream.getvalue())
    monkeypatch.setattr(corpus, "LARGEST_FILE", 1024)
    outside, link = "its name leads outside the shard", "it is a link, a device or a sparse file"
    assert found(tmp_path / "h.tar") == {
        "h.tar/../up.jpg": outside,
        "h.tar//etc/abs.jpg": outside,
        "h.tar/a\\..\\..\\b.jpg": outside,
        "h.tar/link.jpg": link,
        "h.tar/hard.jpg": link,
        "h.tar/pipe.jpg": link,
        "h.tar/\N{REPLACEMENT CHARACTER}.jpg": "",
        "h.tar/huge.jpg": "it is larger than 0 MiB",
        "h.tar/good.jpg": "good",
    }


def test_shards_that_are_none_are_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tar_of({"a.jpg": bytes(5000), "b.jpg": bytes(5000)})
    (tmp_path / "cut.tar").write_bytes(whole[:8000])
    (tmp_path / "text.tar").write_bytes(b"no tar at all" * 100)
    with tarfile.open(tmp_path / "gz.tar", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.jpg"))
    # A header of extended attributes that claims more than any photo has.
    claiming = tarfile.TarInfo("x")
    claiming.type, claiming.size = tarfile.XHDTYPE, 8 << 30
    (tmp_path / "claims.tar").write_bytes(claiming.tobuf(tarfile.GNU_FORMAT) + whole)
    for name in ("cut.tar", "text.tar", "gz.tar", "claims.tar"):
        with pytest.raises(SourceError, match="tar shard cannot be read"):
            found(tmp_path / name)
    with pytest.raises(MissingFileError):
        found(tmp_path / "none.tar")


def test_places_that_cannot_be_opened_are_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no photos"):
        found(tmp_path)
    with pytest.raises(MissingFileError, match="folder of photos does not exist"):
        found(tmp_path / "none")
    with pytest.raises(UsageError, match="not read") as caught:
        found(tmp_path / "laion.parquet")
    assert "img2dataset" in str(caught.value)


def test_a_photo_too_large_to_be_one_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jpg").write_bytes(bytes(3 << 20))
    monkeypatch.setattr(corpus, "LARGEST_FILE", 1 << 20)
    monkeypatch.setattr(photos, "LARGEST_FILE", 1 << 20)
    assert found(tmp_path) == {"a.jpg": "it is larger than 1 MiB"}
