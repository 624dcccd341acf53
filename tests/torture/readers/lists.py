"""Published lists of images, and what identifies and audits them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.torture.readers.annotations import COCO
from tests.torture.readers.target import Target, command, json_bytes, reader

_PUBLISHED = "sources.published_list:read_published"
_NUMBERS = b"000000000009\n000000000025\n"
_DECLARATION = b"""manifests = []
[[source]]
name = "a"
benchmark = "B"
[[source.lists]]
file = "a.txt"
defects = ["x"]
"""


def _index() -> bytes:
    from curation.extensions.identify.index import index_bytes, make_index

    with tempfile.TemporaryDirectory() as place:
        # The index holds the name of the folder.
        folder = Path(place, "lists")
        folder.mkdir()
        (folder / "a.txt").write_text("".join(f"{n:012d}\n" for n in range(40)))
        (folder / "b.json").write_text(json.dumps({"near": [1, 2, 3], "far": [4, 5]}))
        return index_bytes(make_index(folder).index)


def targets() -> list[Target]:
    """Return the targets of this module."""
    imglist = b"cifar10/test/a/1.png 0\ncifar10/test/b/2.png -1\n"
    sets = json_bytes({"near": ["000000000009", "25"], "far": [30]})
    folder = {"train.txt": _NUMBERS, "test.txt": b"000000000030\n", "ids.json": json_bytes({"near": [139], "far": [9]})}
    prefixed = b"coco:000000000009\ncoco:000000000025\n"
    return [
        reader("published list, text", {"l.txt": _NUMBERS + b"000000000030\n"}, _PUBLISHED, weight=3),
        reader("published list, imglist", {"l.txt": imglist}, _PUBLISHED, weight=3),
        reader("published list, json", {"l.json": sets}, _PUBLISHED, weight=3),
        reader("published list, coco", {"l.json": json_bytes(COCO)}, _PUBLISHED),
        reader("listed source", {"l.txt": prefixed}, "sources.published_list:read_listed", dataset="coco", part="x"),
        reader("list of a command", {"l.txt": _NUMBERS}, "manifest.importing:PublishedFile.read"),
        reader("image list", {"l.txt": _NUMBERS}, "evaluation.truth:read_image_list"),
        reader("index of lists", {"i.index": _index()}, "extensions.identify.index:read_index"),
        reader(
            "declaration of lists",
            {"lists.toml": _DECLARATION, "a.txt": _NUMBERS},
            "extensions.identify.index:make_index",
        ),
        command("folder of lists, audited", folder, "audit @"),
    ]
