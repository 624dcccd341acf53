"""A small manifest and its source, written out by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from curation.canonical import sha256_of_lines
from curation.manifest.header import (
    ClassEntry,
    FileEntry,
    Header,
    LabelView,
    Paper,
    PartEntry,
    Rule,
    SourceEntry,
)
from curation.manifest.manifest import Manifest
from curation.sources.source import Categories, FileRecord, Images, Objects, Source

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
    names = ("elephant", "cat", "airplane", "cow", "smudge")
    m = len(OBJECTS)
    boxes = np.arange(4 * m, dtype=np.float64).reshape(m, 4) + 1
    return Source(
        dataset="toy",
        part="all",
        namespace="toy",
        images=Images(
            native=np.array(natives),
            numbers=np.array([int(native) for native in natives], np.int64),
            file_names=np.array([f"{native}.jpg" for native in natives], object),
            widths=np.full(4, 100, np.int32),
            heights=np.full(4, 80, np.int32),
        ),
        categories=Categories(numbers=(1, 2, 3, 4, 5), names=names, supercategories=("",) * 5),
        objects=Objects(
            image=np.array([natives.index(image) for image, *_ in OBJECTS], np.int32),
            category=np.array([names.index(name) for _, name, *_ in OBJECTS], np.int32),
            boxes=boxes,
            areas=boxes[:, 2] * boxes[:, 3],
            numbers=np.arange(1, m + 1),
            crowd=np.array([crowd for *_, crowd, _ in OBJECTS], np.bool_),
            difficult=np.array([difficult for *_, difficult in OBJECTS], np.bool_),
            truncated=np.zeros(m, np.bool_),
            occluded=np.zeros(m, np.bool_),
            pose=np.zeros(m, np.int8),
        ),
        files=(FileRecord("toy.json", "sha256:" + "1" * 64, 10, m),),
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
