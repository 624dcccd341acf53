"""Plain lists of a part: four forms of an id, in the order of the part."""

from __future__ import annotations

import pytest

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ExportError, ManifestError, MissingListError
from curation.manifest.manifest import Manifest
from curation.publishing.exporting import plan_lists
from curation.publishing.formats.plan import Plan
from curation.sources.source import Source


def contents(plan: Plan) -> dict[str, str]:
    return {file.name: b"".join(file.chunks()).decode() for file in plan.files}


def test_namespaced_ids_are_the_bytes_that_the_manifest_pins(manifest: Manifest) -> None:
    files = contents(plan_lists(manifest, ["closed", "wilderness"]))
    assert {name: sha256_of_bytes(text.encode()) for name, text in files.items()} == {
        f"{part.name}.txt": part.sha256 for part in manifest.header.parts
    }


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("native", "000000000009\n000000000100\n"),
        ("number", "9\n100\n"),
        ("file_name", "000000000009.jpg\n000000000100.jpg\n"),
    ],
)
def test_other_forms(form: str, expected: str, manifest: Manifest, sources: dict[str, Source]) -> None:
    assert contents(plan_lists(manifest, ["wilderness"], sources, form)) == {"wilderness.txt": expected}


@pytest.mark.parametrize("form", ["number", "file_name"])
def test_what_only_a_source_knows_needs_one(form: str, manifest: Manifest) -> None:
    with pytest.raises(ExportError, match="needs the sources") as caught:
        plan_lists(manifest, ["wilderness"], None, form)
    assert caught.value.expected == "--source coco=PATH"


def test_ids_must_exist_in_a_source_that_is_given(manifest: Manifest, sources: dict[str, Source]) -> None:
    manifest.lists["closed"] = ("voc2007:000009", "voc2007:999999")
    with pytest.raises(ManifestError, match="1 of the 2 images") as caught:
        plan_lists(manifest, ["closed"], sources)
    assert caught.value.expected == "voc2007:999999"


def test_missing_and_hostile_file_names_are_refused(manifest: Manifest, sources: dict[str, Source]) -> None:
    names = sources["voc"].images.file_names
    for bad in ("", "two\nlines.jpg", "../up.jpg"):
        names[0] = bad
        with pytest.raises(ExportError):
            plan_lists(manifest, ["closed"], sources, "file_name")


def test_unknown_repeated_and_declared_parts(manifest: Manifest) -> None:
    with pytest.raises(ManifestError, match="no such part"):
        plan_lists(manifest, ["closde"])
    with pytest.raises(ExportError, match="once"):
        plan_lists(manifest, ["closed", "closed"])
    with pytest.raises(ExportError, match="once"):
        plan_lists(manifest, [])
    declared = Manifest(manifest.header, {})
    with pytest.raises(MissingListError) as caught:
        plan_lists(declared, ["closed"])
    assert "curation build" in caught.value.hint
