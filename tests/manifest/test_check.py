"""Every rule that types cannot express has a header that breaks it."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from curation.core.errors import ManifestError
from curation.manifest.header import ClassEntry, Header, Supersedes, TaskEntry
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header, check_lists

Make = Callable[..., Manifest]


def with_part(header: Header, **fields: object) -> Header:
    first = msgspec.structs.replace(header.parts[0], **fields)
    return msgspec.structs.replace(header, parts=(first, *header.parts[1:]))


def with_source(header: Header, **fields: object) -> Header:
    return msgspec.structs.replace(header, sources=(msgspec.structs.replace(header.sources[0], **fields),))


def with_task(header: Header, name: str = "t1", introduced: tuple[str, ...] = ("cat",)) -> Header:
    return msgspec.structs.replace(header, tasks=(TaskEntry(name=name, introduced=introduced),))


def with_classes(header: Header, *extra: ClassEntry) -> Header:
    return msgspec.structs.replace(header, classes=(*header.classes, *extra))


def test_the_example_is_sound(manifest: Manifest) -> None:
    check_header(manifest.header, where="here")
    check_lists(manifest.header, manifest.lists, where="here")


@pytest.mark.parametrize(
    "version", ["", "1", "1.0", "v1.0.0", "1.0.0-rc1", "01.0.0", "1.0.0\n", "1.0.1000000", "\uff11.0.0"]
)
def test_bad_versions(make_manifest: Make, version: str) -> None:
    with pytest.raises(ManifestError, match="inconsistent"):
        check_header(make_manifest(version=version).header, where="here")


@pytest.mark.parametrize(
    "name", ["", "..", ".hidden", "a/b", "../closed", "a\\b", "A", "a\0", "a" * 65, "c:", "closed\n"]
)
def test_part_names_are_no_paths(manifest: Manifest, name: str) -> None:
    with pytest.raises(ManifestError, match="inconsistent"):
        check_header(with_part(manifest.header, name=name), where="here")


@pytest.mark.parametrize(
    ("break_it", "field"),
    [
        (lambda header: msgspec.structs.replace(header, taxonomy="OSOD-IV"), "taxonomy"),
        (lambda header: msgspec.structs.replace(header, schema_version=2), "schema_version"),
        (lambda header: msgspec.structs.replace(header, decisions="md5:1"), "decisions"),
        (lambda header: msgspec.structs.replace(header, completes="sha256:" + "A" * 64), "completes"),
        (lambda header: with_task(header, introduced=("no such class",)), "introduced"),
        (lambda header: with_task(header, introduced=("cow",)), "introduced"),
        (lambda header: with_task(header, name="T 1"), "tasks"),
        (lambda header: with_part(header, task="t1"), "task"),
        (lambda header: with_classes(header, ClassEntry(name="x", role="previous", index=9)), "previous"),
        (lambda header: with_classes(header, ClassEntry(name="x", role="known", index=2**40)), "2147483646"),
        (
            lambda header: msgspec.structs.replace(
                header, supersedes=Supersedes(version="1", digest="sha256:" + "0" * 64, reason="")
            ),
            "supersedes",
        ),
        (
            lambda header: msgspec.structs.replace(
                header, supersedes=Supersedes(version="1.0.0", digest="sha256:" + "0" * 64, reason="")
            ),
            "supersedes itself",
        ),
        (lambda header: with_part(header, sha256=None), "images and sha256"),
        (lambda header: with_part(header, images=None, annotated_images=None), "images and sha256"),
        (lambda header: with_part(header, sha256=None, images=None, annotated_images=None), "origin"),
        (lambda header: with_part(header, images=-1), "images"),
        (lambda header: with_part(header, annotated_images=3), "annotated_images"),
        (lambda header: with_part(header, boxes={"known": -1}), "known"),
        (lambda header: with_part(header, boxes={"knwon": 1}), "knwon"),
        (lambda header: with_part(header, sources=("other",)), "sources"),
        (lambda header: with_part(header, sources=()), "sources"),
        (lambda header: with_part(header, subset_of="nothing"), "subset_of"),
        (lambda header: with_part(header, subset_of="closed"), "subset_of"),
        (lambda header: with_part(header, name="rest"), "rest twice"),
        (lambda header: with_source(header, name="To y"), "sources"),
        (lambda header: with_source(header, dropped={"box": -1}), "dropped"),
        (lambda header: with_classes(header, ClassEntry(name="cat", role="known", index=9)), "cat twice"),
        (lambda header: with_classes(header, ClassEntry(name="airplane", role="known", index=9)), "airplane twice"),
        (lambda header: with_classes(header, ClassEntry(name="x", role="unknown", index=1)), "1 twice"),
        (lambda header: with_classes(header, ClassEntry(name="x", role="known", index=-1)), "known class"),
        (lambda header: with_classes(header, ClassEntry(name="x", role="unknown", index=-2)), "-1 to"),
    ],
)
def test_broken_headers(manifest: Manifest, break_it: Callable[[Header], Header], field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        check_header(break_it(manifest.header), where="here")
    assert field in str(caught.value)
    assert "here" in str(caught.value)


def test_a_subset_must_be_inside(make_manifest: Make) -> None:
    base = make_manifest({"closed": ("toy:1", "toy:2"), "rest": ("toy:2", "toy:3")})
    rest = msgspec.structs.replace(base.header.parts[1], subset_of="closed")
    header = msgspec.structs.replace(base.header, parts=(base.header.parts[0], rest))
    with pytest.raises(ManifestError, match="not a subset") as caught:
        check_lists(header, base.lists, where="here")
    assert "toy:3" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "..", "a/..", "/etc/x", "a/b/c", "a\\..\\b", "A", "a b", "", "a\n", "x" * 121]
)
def test_a_manifest_whose_name_leads_out_of_its_folder_is_not_made(
    name: str, make_manifest: Callable[..., Manifest]
) -> None:
    made = make_manifest()
    with pytest.raises(ManifestError, match="inconsistent"):
        make_manifest(name=name)
    for header in (msgspec.structs.replace(made.header, name=name), msgspec.structs.replace(made.header, version=name)):
        with pytest.raises(ManifestError, match="inconsistent"):
            replace(made, header=header)
