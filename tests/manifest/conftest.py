"""A small manifest and its source, written out by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from curation.core.canonical import sha256_of_lines
from curation.manifest.header import ClassEntry, FileEntry, Header, LabelView, Paper, PartEntry, Rule, SourceEntry
from curation.manifest.manifest import Manifest
from curation.sources.source import Source
from tests.made_source import image_rows, make_source

CLASSES = (
    ClassEntry(name="cat", role="known", index=1),
    ClassEntry(name="aeroplane", role="known", index=2, aliases=("airplane",)),
    ClassEntry(name="cow", role="negative", index=3),
    ClassEntry(name="elephant", role="unknown", index=-1),
    ClassEntry(name="smudge", role="ignored", index=4),
)
# (image, category, crowd, difficult), by native id: image "3" has no object.
OBJECTS = [
    ("1", "cat", 0, 0),
    ("2", "elephant", 0, 0),
    ("1", "airplane", 0, 1),
    ("2", "elephant", 1, 0),
    ("1", "cow", 0, 0),
    ("4", "smudge", 0, 0),
]


@pytest.fixture
def source() -> Source:
    natives = ["4", "2", "3", "1"]
    return make_source(
        "toy",
        "toy",
        image_rows(natives, size=(100, 80), numbers=[int(native) for native in natives]),
        [
            (natives.index(image), name, np.arange(4) + 4 * k + 1, {"crowd": crowd, "difficult": difficult})
            for k, (image, name, crowd, difficult) in enumerate(OBJECTS)
        ],
        dict(enumerate(("elephant", "cat", "airplane", "cow", "smudge"), 1)),
        part="all",
        file="toy.json",
        digit="1",
        file_size=10,
        licence="CC0",
    )


@pytest.fixture
def make_manifest() -> Callable[..., Manifest]:
    """Return a function ``make(lists, **fields of the header)``; the part ``closed`` is described in full."""

    def make(lists: dict[str, tuple[str, ...]] | None = None, **fields: object) -> Manifest:
        given = {"closed": ("toy:1", "toy:2"), "rest": ("toy:3", "toy:4")} if lists is None else lists
        parts = tuple(
            PartEntry(
                name=name,
                role="test",
                sources=("toy",),
                selection="by hand",
                view=LabelView(),
                images=len(ids),
                annotated_images={"closed": 2, "rest": 1}.get(name),
                boxes={
                    "closed": {"known": 2, "negative": 1, "unknown": 2, "difficult": 1, "crowd": 1},
                    "rest": {"ignored": 1, "difficult": 0, "crowd": 0},
                }.get(name, {}),
                sha256=sha256_of_lines(ids),
            )
            for name, ids in given.items()
        )
        header = Header(
            **{
                "schema_version": 1,
                "name": "toy/example",
                "version": "1.0.0",
                "title": "A toy: Größe “1”",
                "paper": Paper(title="T", authors="A", year=2020, venue="V", bibtex="@misc{t}"),
                "taxonomy": "OSOD-I",
                "origin": "regenerated",
                "classes": CLASSES,
                "parts": parts,
                "sources": (
                    SourceEntry(
                        name="toy",
                        dataset="toy",
                        part="all",
                        namespace="toy",
                        licence="CC0",
                        media_redistributable=False,
                        files=(FileEntry(name="toy.json", sha256="sha256:" + "1" * 64, size=10, rows=6),),
                    ),
                ),
                "rule": Rule(
                    protocol="toy",
                    algorithm_version=1,
                    parameters={"ratio": "0.5", "n": 3, "on": True, "none": None, "names": ("a", 1)},
                ),
                **fields,
            }
        )
        return Manifest(header=header, lists=dict(given))

    return make


@pytest.fixture
def manifest(make_manifest: Callable[..., Manifest]) -> Manifest:
    return make_manifest()
