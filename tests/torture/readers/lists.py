"""Published lists of images, and what identifies and audits them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.torture.readers.annotations import COCO
from tests.torture.readers.content import json_bytes
from tests.torture.readers.target import Target, command, reads


def _index() -> bytes:
    from curation.identify.index import index_bytes, make_index

    with tempfile.TemporaryDirectory() as place:
        # The index holds the name of the folder.
        folder = Path(place, "lists")
        folder.mkdir()
        (folder / "a.txt").write_text("".join(f"{n:012d}\n" for n in range(40)))
        (folder / "b.json").write_text(json.dumps({"near": [1, 2, 3], "far": [4, 5]}))
        return index_bytes(make_index(folder).index)


def targets() -> list[Target]:
    """Return the targets of this module."""
    coco = json_bytes(COCO)
    return [
        Target(
            "published list, text",
            {"l.txt": b"000000000009\n000000000025\n000000000030\n"},
            reads("sources.published_list:read_published", "l.txt"),
            weight=3,
        ),
        Target(
            "published list, imglist",
            {"l.txt": b"cifar10/test/a/1.png 0\ncifar10/test/b/2.png -1\n"},
            reads("sources.published_list:read_published", "l.txt"),
            weight=3,
        ),
        Target(
            "published list, json",
            {"l.json": json_bytes({"near": ["000000000009", "25"], "far": [30]})},
            reads("sources.published_list:read_published", "l.json"),
            weight=3,
        ),
        Target("published list, coco", {"l.json": coco}, reads("sources.published_list:read_published", "l.json")),
        Target(
            "listed source",
            {"l.txt": b"coco:000000000009\ncoco:000000000025\n"},
            reads("sources.published_list:read_listed", "l.txt", dataset="coco", part="x"),
        ),
        Target(
            "list of a command",
            {"l.txt": b"000000000009\n000000000025\n"},
            reads("manifest.importing:PublishedFile", "l.txt"),
        ),
        Target(
            "image list", {"l.txt": b"000000000009\n000000000025\n"}, reads("evaluation.truth:read_image_list", "l.txt")
        ),
        Target("index of lists", {"i.index": _index()}, reads("identify.index:read_index", "i.index")),
        Target(
            "declaration of lists",
            {
                "lists.toml": b'manifests = []\n[[source]]\nname = "a"\nbenchmark = "B"\n'
                b'[[source.lists]]\nfile = "a.txt"\ndefects = ["x"]\n',
                "a.txt": b"000000000009\n000000000025\n",
            },
            reads("identify.index:make_index", ""),
        ),
        Target(
            "folder of lists, audited",
            {
                "train.txt": b"000000000009\n000000000025\n",
                "test.txt": b"000000000030\n",
                "ids.json": json_bytes({"near": [139], "far": [9]}),
            },
            command("audit", "@"),
            weight=1,
        ),
    ]
