"""A small open-set manifest: two known classes, a negative and an unknown one, and the files that belong to it."""

from pathlib import Path

from curation.core.canonical import sha256_of_lines
from curation.manifest.header import ClassEntry, FileEntry, Header, LabelView, Paper, PartEntry, Rule, SourceEntry
from curation.manifest.manifest import Manifest

WNIDS = ("n00000001", "n00000002", "n00000003", "n00000004")
ROLES = ("known", "known", "negative", "unknown")
LISTS = {
    "test": tuple(f"imagenet:ILSVRC2012_val_{number:08d}" for number in (3, 1, 2, 5, 4, 8)),
    "val": tuple(f"imagenet:{wnid}_{number}" for number, wnid in ((7, WNIDS[1]), (70, WNIDS[0]), (9, WNIDS[2]))),
}
TEST_CLASSES = (0, 0, 1, 2, 3, 3)
TEST_LABELS = (0, 0, 1, -1, -2, -2)
VAL_LABELS = (1, 0, -1)


def open_set_manifest() -> Manifest:
    entries = tuple(
        ClassEntry(name=name, role=role, index=number if role == "known" else -1)
        for number, (name, role) in enumerate(zip(WNIDS, ROLES, strict=True))
    )
    header = Header(
        schema_version=1,
        name="small/open-set",
        version="1.0.0",
        title="Small open-set protocol",
        paper=Paper(title="t", authors="a", year=2023, venue="v", bibtex="@misc{t}"),
        taxonomy="OSC",
        origin="regenerated",
        classes=entries,
        parts=tuple(_part(name, ids) for name, ids in LISTS.items()),
        sources=tuple(_source(part) for part in ("train", "val")),
        rule=Rule(protocol="imagenet", algorithm_version=1, parameters={}),
    )
    return Manifest(header, LISTS)


def write_truth(folder: Path) -> Path:
    """A list of validation images and classes, with two images that no part has."""
    told = {int(one[-8:]): WNIDS[c] for one, c in zip(LISTS["test"], TEST_CLASSES, strict=True)}
    path = folder / "truth.csv"
    lines = [f"ILSVRC2012_val_{n:08d}.JPEG,{told.get(n, WNIDS[0])}" for n in range(1, 9)]
    path.write_text("image,class\n" + "\n".join(lines) + "\n")
    return path


def _part(name: str, ids: tuple[str, ...]) -> PartEntry:
    return PartEntry(
        name=name,
        role="test" if name == "test" else "val",
        sources=("imagenet-val" if name == "test" else "imagenet-train",),
        selection="some",
        view=LabelView(unknown="rename:unknown"),
        order="listed",
        images=len(ids),
        annotated_images=len(ids),
        boxes={},
        sha256=sha256_of_lines(ids),
    )


def _source(part: str) -> SourceEntry:
    return SourceEntry(
        name=f"imagenet-{part}",
        dataset="imagenet",
        part=part,
        namespace="imagenet",
        licence="facts",
        media_redistributable=False,
        files=(FileEntry(name="list.txt", sha256="sha256:" + "0" * 64, size=1, rows=1),),
    )
