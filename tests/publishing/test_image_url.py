"""Addresses of photos: read where a source states them, published after a check, shown by a hub and never copied."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.cli import main
from curation.manifest.manifest import Manifest, write_manifest
from curation.publishing.addresses import refusal
from curation.publishing.publication import verify_repository
from curation.sources.opening import open_source
from tests.publishing.published_world import changed, files_below, tiny

pytest.importorskip("mlcroissant")
URL = "http://images.example.org/val/000000000100.jpg"


def coco_file(folder: Path, *addresses: Any) -> Path:
    """Write the COCO source of the tiny world as a file whose images state addresses."""
    images: list[dict[str, Any]] = [
        {"id": 100, "file_name": "000000000100.jpg", "width": 640, "height": 480},
        {"id": 9},
    ]
    for image, address in zip(images, addresses, strict=False):
        image["coco_url"] = address
    boxes = [((0.1, 1 / 3, 10.25, 1e-3), {"id": 4, "area": 7.7}), ((3, 4, 5, 6), {"id": 901, "iscrowd": 1, "area": 12})]
    rows = [{"image_id": 100, "category_id": 22, "bbox": box, **more} for box, more in boxes]
    path = folder / f"instances{len(list(folder.iterdir()))}.json"
    content = {"images": images, "annotations": rows, "categories": [{"id": 22, "name": "elephant"}]}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def published(folder: Path, coco: Path, **options: Any) -> Any:
    manifest, sources = tiny()
    given = {"voc": sources["voc"], "coco": coco}
    return curation.publish(manifest, "lab/lists", dry_run=folder, sources=given, date="2026-01-02", **options)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (URL, ""),
        ("https://farm8.staticflickr.com/7580/15865399370_ae0b838f53_o.JPG", ""),
        ("https://example.org:8443/a.webp", ""),
        ("ftp://example.org/1.jpg", "neither"),
        ("javascript:alert(1)//.jpg", "neither"),
        ("file:///etc/1.jpg", "neither"),
        ("data:image/png;base64,x.jpg", "neither"),
        ("//example.org/1.jpg", "neither"),
        ("https://me:secret@example.org/1.jpg", "password"),
        ("https://me@example.org/1.jpg", "password"),
        ("https://example.org/1.jpg?X-Amz-Signature=0123", "key"),
        ("https://example.org/1.jpg?", "key"),
        ("https://example.org/1.jpg#top", "key"),
        ("https://example.org/photo?id=1.jpg", "key"),
        ("https://localhost/1.jpg", "host"),
        ("https://127.0.0.1/1.jpg", "host"),
        ("https://[::1]/1.jpg", "host"),
        ("https://10.0.0.7/1.jpg", "host"),
        ("https://2130706433/1.jpg", "host"),
        ("https://nas/1.jpg", "host"),
        ("https://photos.corp/1.jpg", "host"),
        ("https:///1.jpg", "host"),
        ("https://example.org:99999/1.jpg", "host"),
        ("https://[bad/1.jpg", "host"),
        ("https://example.org/", "picture"),
        ("https://example.org/a.jpg/b", "picture"),
        ("https://example.org/1.svg", "picture"),
        ("https://example.org/a b.jpg", "characters"),
        ("https://example.org/a\x1b[2J.jpg", "characters"),
        ("https://example.org/a\u202e.jpg", "characters"),
        ("https://example.org/a\n.jpg", "characters"),
        ('https://example.org/"><script>.jpg', "characters"),
        ("https://example.org\\@evil.org/1.jpg", "characters"),
        ("https://example.org/" + "a" * 2100 + ".jpg", "more than 2,048"),
    ],
)
def test_an_address_is_published_only_where_it_is_one_of_a_picture_for_everybody(address: str, why: str) -> None:
    found = refusal(address)
    assert (found == "") is (why == "")
    assert why in found


@pytest.mark.parametrize("address", [None, 7, ["x"], {"a": 1}, "", True])
def test_an_address_that_is_none_keeps_nobody_from_reading_the_file(tmp_path: Path, address: Any) -> None:
    path = coco_file(tmp_path, address)
    assert open_source(path, dataset="coco", part="", cache=False, addresses=True).images.addresses is None


def test_addresses_are_read_where_they_are_asked_for_and_kept_in_the_cache_apart(tmp_path: Path) -> None:
    path = coco_file(tmp_path, URL)
    read = partial(open_source, path, dataset="coco", part="", cache=tmp_path / "cache")
    for _ in range(2):
        assert read().images.addresses is None
        found = read(addresses=True).images.addresses
        assert found is not None
        assert found.tolist() == [URL, ""]


def test_open_images_states_addresses_in_its_list_of_images(tmp_path: Path) -> None:
    ids = ["00166893b16a03ab", "0016900e7bfca683"]
    head = (
        "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
    )
    box = f"{ids[1]},xclick,/m/0jbk,1,0.1,0.2,0.3,0.4,0,0,0,0,0"
    (tmp_path / "validation-annotations-bbox.csv").write_text(f"{head}\n{box}\n")
    rows = [f"{ids[0]},validation,https://c1.staticflickr.com/1/a_o.jpg,t", f"{ids[1]},validation,,t"]
    (tmp_path / "validation-images-with-rotation.csv").write_text(
        "\n".join(["ImageID,Subset,OriginalURL,Title", *rows]) + "\n"
    )
    source = open_source(tmp_path, dataset="openimages", part="validation", cache=False, addresses=True)
    assert source.images.addresses is not None
    assert dict(zip(source.images.native.tolist(), source.images.addresses.tolist(), strict=True)) == {
        ids[0]: "https://c1.staticflickr.com/1/a_o.jpg",
        ids[1]: "",
    }
    assert open_source(tmp_path, dataset="openimages", part="validation", cache=False).images.addresses is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("stated", [True, False])
def test_datasets_loads_and_croissant_describes_tables_with_and_without_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: bool
) -> None:
    import mlcroissant

    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    out = tmp_path / "out"
    made = published(out, coco_file(tmp_path, URL if stated else ""))
    verify_repository(out)
    loaded = datasets.load_dataset(str(out), "hand-made", cache_dir=str(tmp_path / "cache"))
    columns = loaded["wilderness"].column_names
    assert columns[:2] == (["image_id", "image_url"] if stated else ["image_id", "file_name"])
    if stated:
        # A hub tells a column of photos by the texts in it, and by their number among the first rows.
        assert list(loaded["wilderness"]["image_url"]) == [None, URL]
        assert list(loaded["closed"]["image_url"]) == [None, None]
        assert loaded["closed"].features == loaded["wilderness"].features
        assert str(loaded["closed"].features["image_url"].dtype) == "string"
    data = json.loads((out / "croissant.json").read_text(encoding="utf-8"))
    described = {one["@id"]: one for record in data["recordSet"] for one in record["field"]}
    assert ("hand-made/wilderness/image_url" in described) is stated
    assert "hand-made/closed/image_url" not in described
    dataset = mlcroissant.Dataset(data, mapping={one["@id"]: str(out / one["@id"]) for one in data["distribution"]})
    assert not dataset.metadata.ctx.issues.errors
    assert not dataset.metadata.ctx.issues.warnings
    for record in data["recordSet"]:
        assert len(list(dataset.records(record["@id"])))
    if stated:
        field = described["hand-made/wilderness/image_url"]
        assert field["dataType"] == "sc:URL"
        assert "as its dataset states it" in field["description"]
        assert "asked for by data tracks" in " ".join(made.written.remarks)
        rows = list(dataset.records("hand-made/wilderness"))
        assert URL in str(rows[1]["hand-made/wilderness/image_url"])


def test_without_addresses_every_byte_is_as_if_the_file_stated_none(tmp_path: Path) -> None:
    published(tmp_path / "none", coco_file(tmp_path, ""))
    for name, path, options in (
        ("off", coco_file(tmp_path, URL), {"image_url": False}),
        ("refused", coco_file(tmp_path, "https://localhost/1.jpg", "file:///1.jpg"), {}),
    ):
        published(tmp_path / name, path, **options)
        tables = {p: d for p, d in files_below(tmp_path / name).items() if p.endswith(".parquet")}
        assert tables == {p: d for p, d in files_below(tmp_path / "none").items() if p.endswith(".parquet")}


def test_what_is_refused_is_counted_named_and_nowhere(tmp_path: Path) -> None:
    made = published(tmp_path / "out", coco_file(tmp_path, "https://me:secret@example.org/1.jpg", URL))
    (told,) = [note for note in made.notes() if "addresses" in note]
    assert "coco: 1 of 2 addresses are not published: 1 with a user or a password in it" in told
    assert "coco:000000000100" in told
    assert "1 of 2 addresses are not published" in (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert not [path for path, data in files_below(tmp_path / "out").items() if b"secret" in data]


def test_photos_are_shown_by_address_and_none_is_copied(tmp_path: Path) -> None:
    published(tmp_path / "out", coco_file(tmp_path, URL))
    text = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert f'<img src="{URL}" alt="unknown" width="240">' in text
    assert not [path for path in files_below(tmp_path / "out") if path.endswith(".jpg")]
    assert "The column `image_url` says where their owners show them." in text


def test_the_command_line_can_leave_addresses_out(tmp_path: Path) -> None:
    manifest, _ = tiny()
    one = Manifest(
        changed(manifest, parts=manifest.header.parts[1:]).header, {"wilderness": manifest.ids("wilderness")}
    )
    write_manifest(one, tmp_path / "lists")
    command = [
        "publish",
        str(tmp_path / "lists"),
        "--repo",
        "lab/lists",
        "--source",
        f"coco={coco_file(tmp_path, URL)}",
    ]
    for option, there in (([], True), (["--no-image-url"], False)):
        out = tmp_path / f"out{there}"
        assert main([*command, *option, "--dry-run", str(out)]) == 0
        assert (URL in (out / "README.md").read_text(encoding="utf-8")) is there
