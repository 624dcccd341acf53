"""A sound open-world benchmark of three tasks, small enough to read, to be broken one rule at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from curation.core.canonical import sha256_of_lines
from curation.extensions.audit.lists import ListSet, read_lists
from curation.extensions.audit.report import Report
from curation.extensions.audit.rule import Finding
from curation.extensions.audit.target import AuditTarget, manifest_target
from curation.manifest.header import (
    ClassEntry,
    FileEntry,
    Header,
    LabelView,
    Paper,
    PartEntry,
    Rule,
    SourceEntry,
    TaskEntry,
)
from curation.manifest.manifest import Manifest
from curation.sources.source import Source
from tests import made_source
from tests.made_source import as_table, image_rows

WIDTH, HEIGHT = 640, 480

TASKS = {"t1": ["person", "dog"], "t2": ["truck", "bench"], "t3": ["kite", "cup"]}

TRAIN = {
    "a1": ["person", "truck"],
    "a2": ["dog"],
    "a3": ["person", "dog", "kite"],
    "b1": ["truck", "bench"],
    "b2": ["bench", "cup"],
    "b3": ["truck"],
    "c1": ["kite"],
    "c2": ["cup", "kite"],
    "c3": ["cup"],
    "v1": ["person", "truck"],
    "v2": ["bench"],
    "v3": ["kite", "dog"],
}
TEST = {
    "e1": ["person", "truck", "bench"],
    "e2": ["dog", "kite", "cup*"],
    "e3": ["person", "cup"],
    "e4": ["truck", "kite~"],
}
"""Classes of the objects of each image; ``*`` marks a crowd region, ``~`` a difficult object."""

LISTS = {
    "t1-train": ["a1", "a2", "a3"],
    "t1-val": ["v1"],
    "t1-test": ["e1", "e2", "e3", "e4"],
    "t2-train": ["a1", "b1", "b2", "b3"],
    "t2-finetune": ["a1", "a2", "b1"],
    "t2-val": ["v2"],
    "t2-test": ["e1", "e2", "e3", "e4"],
    "t3-train": ["a3", "b2", "c1", "c2", "c3"],
    "t3-finetune": ["a3", "b1", "c2"],
    "t3-val": ["v3"],
    "t3-test": ["e1", "e2", "e3", "e4"],
}

VIEWS = {
    "train": LabelView(known="keep", previous="drop", unknown="drop"),
    "finetune": LabelView(known="keep", previous="keep", unknown="drop"),
    "val": LabelView(known="keep", previous="keep", unknown="drop"),
    "test": LabelView(known="keep", previous="keep", unknown="rename:unknown"),
}


@dataclass
class World:
    """What the benchmark is made of; tests change it before `target` is called."""

    tasks: dict[str, list[str]] = field(default_factory=lambda: {k: list(v) for k, v in TASKS.items()})
    order: list[str] = field(default_factory=lambda: [name for names in TASKS.values() for name in names])
    train: dict[str, list[str]] = field(default_factory=lambda: {k: list(v) for k, v in TRAIN.items()})
    test: dict[str, list[str]] = field(default_factory=lambda: {k: list(v) for k, v in TEST.items()})
    lists: dict[str, list[str]] = field(default_factory=lambda: {k: list(v) for k, v in LISTS.items()})
    views: dict[str, LabelView] = field(default_factory=dict)
    exhaustive: dict[str, list[str]] = field(default_factory=dict)
    namespace: str = "toy"
    test_namespace: str = "toy"
    test_dataset: str = "toy"
    boxes: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    photos: dict[str, Path] = field(default_factory=dict)

    @property
    def train_source(self) -> Source:
        return make_source(self.train, dataset="toy", part="train", namespace=self.namespace, boxes=self.boxes)

    @property
    def test_source(self) -> Source:
        return make_source(
            self.test, dataset=self.test_dataset, part="test", namespace=self.test_namespace, boxes=self.boxes
        )

    @property
    def manifest(self) -> Manifest:
        lists = {name: tuple(self._id(name, native) for native in ids) for name, ids in self.lists.items()}
        return Manifest(header=self._header(lists), lists=lists)

    def sources(self) -> dict[str, Source]:
        return {"train": self.train_source, "test": self.test_source}

    def target(self, *without: str, lists: bool = True, **options: object) -> AuditTarget:
        """The benchmark for an audit, without some sources, or without its lists."""
        manifest = self.manifest
        if not lists:
            manifest = Manifest(header=manifest.header, lists={})
        given = {name: source for name, source in self.sources().items() if name not in without}
        chosen = {"exemplars": 1, "photos": self.photos, **options}
        return manifest_target(manifest, given, **chosen)  # type: ignore[arg-type]

    def with_tables(self, **options: object) -> AuditTarget:
        """The benchmark with tables of image and class in place of boxes."""
        tables = {name: make_table(images, part=name) for name, images in (("train", self.train), ("test", self.test))}
        return manifest_target(self.manifest, tables, exemplars=1, **options)  # type: ignore[arg-type]

    def _id(self, part: str, native: str) -> str:
        space = self.test_namespace if part.endswith("test") else self.namespace
        return f"{space}:{native}"

    def _header(self, lists: Mapping[str, tuple[str, ...]]) -> Header:
        return Header(
            schema_version=1,
            name="toy/open-world",
            version="1.0.0",
            title="Three tasks",
            paper=Paper(title="T", authors="A", year=2022, venue="V", bibtex="@misc{t}"),
            taxonomy="OWOD",
            origin="as_published",
            classes=tuple(ClassEntry(name=name, role="known", index=index) for index, name in enumerate(self.order)),
            parts=tuple(self._part(name, ids) for name, ids in lists.items()),
            sources=tuple(self._source_entry(name) for name in ("train", "test")),
            rule=Rule(protocol="toy", algorithm_version=1, parameters={}),
            tasks=tuple(TaskEntry(name=name, introduced=tuple(new)) for name, new in self.tasks.items()),
        )

    def _part(self, name: str, ids: tuple[str, ...]) -> PartEntry:
        task, role = name.split("-")
        return PartEntry(
            name=name,
            role=role,  # type: ignore[arg-type]
            sources=("test",) if role == "test" else ("train",),
            selection="by hand",
            view=self.views.get(name, VIEWS[role]),
            order="listed",
            images=len(ids),
            sha256=sha256_of_lines(ids),
            task=task,
            repeats=len(ids) - len(set(ids)),
        )

    def _source_entry(self, name: str) -> SourceEntry:
        return SourceEntry(
            name=name,
            dataset=self.test_dataset if name == "test" else "toy",
            part=name,
            namespace=self.test_namespace if name == "test" else self.namespace,
            licence="CC0",
            media_redistributable=False,
            files=(FileEntry(name=f"{name}.json", sha256="sha256:" + "1" * 64, size=10, rows=6),),
            exhaustive=tuple(self.exhaustive.get(name, self.order)),
        )


def make_source(
    images: Mapping[str, list[str]],
    *,
    dataset: str = "toy",
    part: str = "",
    namespace: str = "toy",
    boxes: Mapping[tuple[str, int], list[float]] | None = None,
    sized: bool = True,
) -> Source:
    """A source of these images; object k of an image lies at a place of its own unless `boxes` says otherwise."""
    natives = list(images)
    rows = [(row, place, text) for row, native in enumerate(natives) for place, text in enumerate(images[native])]
    names = dict.fromkeys(text.rstrip("*~") for _, _, text in rows)

    def box(row: int, place: int) -> list[float]:
        native = natives[row]
        return (boxes or {}).get((native, place), [10.25 + 40 * place, 7.5 + len(native), 30.0, 20.5])

    return made_source.make_source(
        dataset,
        namespace,
        image_rows(natives, size=(WIDTH * sized, HEIGHT * sized), numbers=list(range(1, len(natives) + 1))),
        [
            (row, text.rstrip("*~"), box(row, place), {"crowd": text.endswith("*"), "difficult": text.endswith("~")})
            for row, place, text in rows
        ],
        dict(enumerate(names, 1)),
        part=part,
        file=f"{part or 'labels'}.json",
        digit="1",
        file_size=10,
        licence="CC0",
    )


def make_table(images: Mapping[str, list[str]], *, part: str = "") -> Source:
    """The same as a table of image and class, without boxes."""
    return as_table(make_source(images, part=part))


def findings(report: Report, rule: str, about: str = "") -> list[Finding]:
    """What a rule found of the lists whose name begins so."""
    [outcome] = [one.outcome for one in report.results if one.rule.name == rule]
    return [one for one in outcome.findings if one.about.startswith(about)]


def count(report: Report, rule: str) -> int:
    """How many violations are behind the verdict of a rule."""
    return next(one.outcome.count for one in report.results if one.rule.name == rule)


def list_set(folder: Path, lists: Mapping[str, list[str]]) -> ListSet:
    """Lists as they are read from a folder."""
    for name, ids in lists.items():
        path = folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{one}\n" for one in ids), encoding="utf-8")
    return read_lists(folder)
