"""Plain lists of a part: two forms of an id, in the order of the part."""

from __future__ import annotations

import pytest

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ExportError, ManifestError, MissingListError
from curation.manifest.manifest import Manifest
from curation.publishing.exporting import plan_lists
from curation.publishing.formats.plan import Plan


def contents(plan: Plan) -> dict[str, str]:
    return {file.name: b"".join(file.chunks()).decode() for file in plan.files}


def test_namespaced_ids_are_the_bytes_that_the_manifest_pins(manifest: Manifest) -> None:
    files = contents(plan_lists(manifest, ["closed", "wilderness"]))
    assert {name: sha256_of_bytes(text.encode()) for name, text in files.items()} == {
        f"{part.name}.txt": part.sha256 for part in manifest.header.parts
    }
    native = contents(plan_lists(manifest, ["wilderness"], native=True))
    assert native == {"wilderness.txt": "000000000009\n000000000100\n"}


def test_unknown_repeated_and_declared_parts(manifest: Manifest) -> None:
    with pytest.raises(ManifestError, match="no such part"):
        plan_lists(manifest, ["closde"])
    for parts in (["closed", "closed"], []):
        with pytest.raises(ExportError, match="once"):
            plan_lists(manifest, parts)
    with pytest.raises(MissingListError) as caught:
        plan_lists(Manifest(manifest.header, {}), ["closed"])
    assert "curation build" in caught.value.hint
