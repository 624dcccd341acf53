"""Manifests, what is laid over them, and publications of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.torture.readers.annotations import COCO
from tests.torture.readers.classes import TASKS
from tests.torture.readers.content import json_bytes, parquet
from tests.torture.readers.target import Files, Target, call, command, reads


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

    from curation.canonical import sha256_of_bytes
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


def targets() -> list[Target]:
    """Return the targets of this module."""
    coco = json_bytes(COCO)
    manifest = _manifest()
    return [
        Target("manifest", manifest, reads("manifest.manifest:read_manifest", ""), seal=_seal_manifest, weight=6),
        Target("manifest, shown", manifest, command("show", "@"), seal=_seal_manifest, weight=1),
        Target("manifest, audited", manifest, command("audit", "@"), seal=_seal_manifest, weight=1),
        Target(
            "publication",
            {"publication.json": _publication()},
            reads("publishing.publication:read_publication", ""),
            seal=_seal_publication,
            weight=3,
        ),
        Target(
            "published parquet",
            {"p.parquet": parquet(image_id=["coco:1", "coco:2"], n=[1, 2], labels=[[{"a": "x"}], []])},
            lambda f: call("publishing.parquet:content_digest")(
                call("publishing.parquet:read_parquet")(f / "p.parquet"),
                call("publishing.parquet:schema_of")(f / "p.parquet"),
            ),
        ),
        Target(
            "review record",
            {
                "review.json": json_bytes(
                    {
                        "version": 1,
                        "dataset": "d",
                        "stage": "manual",
                        "manifest": "",
                        "inputs": "sha256:" + "0" * 64,
                        "batches": {"b": 2},
                        "left_out": {"x": 1},
                    }
                )
            },
            reads("review.review_folder:read_record", ""),
        ),
        Target(
            "overlay",
            {
                "overlay.jsonl": b'{"boxes":[{"box":["10.5","20","30","12.25"],'
                b'"label":"unknown","reviewers":["anna"]}],'
                b'"exhaustive":true,"image_id":"coco:000000000139"}\n'
            },
            lambda f: call("manifest.added_boxes:parse_added_boxes")(
                (f / "overlay.jsonl").read_bytes(), where="overlay"
            ),
            weight=3,
        ),
        Target(
            "statements",
            {"r.toml": b'dataUseCases = "by hand"\nhasSyntheticData = false\ndataBiases = ["few", "old"]\n'},
            reads("publishing.croissant:read_statements", "r.toml"),
        ),
        Target(
            "built",
            {
                "t.json": coco,
                "v.json": coco.replace(b"139", b"140")
                .replace(b"25", b"26")
                .replace(b"30", b"31")
                .replace(b": 9", b": 10"),
                "tasks.toml": TASKS,
            },
            command(
                "build",
                "owod",
                "--source",
                "train=@t.json",
                "--source",
                "test=@v.json",
                "--tasks",
                "@tasks.toml",
                "--no-cache",
                "--out",
                "@out",
            ),
            weight=1,
        ),
    ]
