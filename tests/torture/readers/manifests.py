"""Manifests, what is laid over them, and publications of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.torture.readers.annotations import COCO
from tests.torture.readers.classes import TASKS
from tests.torture.readers.target import Files, Target, call, command, json_bytes, parquet, reader


def _manifest() -> Files:
    from curation.manifest.header import ClassEntry
    from tests.toy_manifests import write_toy

    classes = (
        ClassEntry(name="dog", role="known", index=0, aliases=("hound",)),
        ClassEntry(name="elephant", role="unknown", index=-1),
    )
    lists = {"t1-test": ("coco:000000000009", "coco:000000000025"), "wild": ("coco:000000000030",)}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "m")
        write_toy(place, lists, classes, name="toy/one", taxonomy="OSC")
        return {
            str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*.*")) if path.is_file()
        }


def _seal_manifest(files: Files) -> Files:
    """Write a changed header again as the tool writes it, with the digests of the lists beside it."""
    import msgspec

    from curation.core.canonical import sha256_of_bytes
    from curation.manifest import manifest
    from curation.manifest.header import Header

    head = json.loads(files["manifest.json"])
    for part in head.get("parts", ()):
        data = files.get(f"ids/{part.get('name')}.txt")
        if data is not None and part.get("sha256"):
            part["sha256"] = sha256_of_bytes(data)
    stored = msgspec.json.decode(json.dumps(head).encode(), type=manifest.StoredHeader)
    made = manifest.Manifest(Header(**{name: getattr(stored, name) for name in Header.__struct_fields__}), {})
    return {**files, "manifest.json": manifest.header_bytes(made)}


def _publication() -> bytes:
    from curation.publishing import publication

    digest = "sha256:" + "a" * 64
    files = {
        name: publication.PublishedFile(sha256=digest, size=12)
        for name in ("README.md", "manifests/a/manifest.json", "data/a/t1.parquet")
    }
    part = publication.PublishedPart(name="t1", split="t1", table="data/a/t1.parquet", images=2)
    one = publication.PublishedManifest(
        name="toy/a", version="1.0.0", digest=digest, folder="manifests/a", config="a", parts=(part,)
    )
    made = publication.Publication(
        schema_version=1, repository="o/r", tag="1.0.0", layout="curation", manifests=(one,), files=files
    )
    return publication.record_bytes(made)


def _seal_publication(files: Files) -> Files:
    import msgspec

    from curation.publishing import publication

    stored = json.loads(files["publication.json"])
    stored.pop("digest", None)
    made = msgspec.convert(stored, publication.Publication)
    return {"publication.json": publication.record_bytes(made)}


_REVIEW = {
    "version": 1, "dataset": "d", "stage": "manual", "manifest": "", "inputs": "sha256:" + "0" * 64,
    "batches": {"b": 2}, "left_out": {"x": 1},
}  # fmt: skip
_STATEMENTS = b'dataUseCases = "by hand"\nhasSyntheticData = false\ndataBiases = ["few", "old"]\n'


def _content(folder: Path) -> Any:
    read, schema = call("publishing.parquet:read_parquet"), call("publishing.parquet:schema_of")
    return call("publishing.parquet:content_digest")(read(folder / "p.parquet"), schema(folder / "p.parquet"))


def targets() -> list[Target]:
    """Return the targets of this module."""
    manifest, publication, coco = _manifest(), {"publication.json": _publication()}, json_bytes(COCO)
    other = coco
    for old, new in ((b"139", b"140"), (b"25", b"26"), (b"30", b"31"), (b": 9", b": 10")):
        other = other.replace(old, new)
    published = parquet(image_id=["coco:1", "coco:2"], n=[1, 2], labels=[[{"a": "x"}], []])
    read, seal = "publishing.publication:read_publication", _seal_publication
    sources = {"t.json": coco, "v.json": other, "tasks.toml": TASKS}
    build = "build owod --source train=@t.json --source test=@v.json --tasks @tasks.toml --no-cache --out @out"
    return [
        reader("manifest", manifest, "manifest.manifest:read_manifest", seal=_seal_manifest, weight=6),
        command("manifest, shown", manifest, "show @", seal=_seal_manifest),
        command("manifest, audited", manifest, "audit @", seal=_seal_manifest),
        reader("publication", publication, read, seal=seal, weight=3, folder=True),
        Target("published parquet", {"p.parquet": published}, _content),
        reader(
            "review record", {"review.json": json_bytes(_REVIEW)}, "review.app.review_folder:read_record", folder=True
        ),
        reader("statements", {"r.toml": _STATEMENTS}, "publishing.croissant:read_statements"),
        command("built", sources, build),
    ]
