"""`Given`: a benchmark with the sources and parameters of one build, and the parts that come of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.benchmarks.owod.setting import Setting
from curation.benchmarks.parts import Part, Selection, make_part
from curation.benchmarks.shown import Shown, shown
from curation.manifest.header import LabelView, PartRole, TaskEntry, roles_at
from curation.sources.source import Source


@dataclass(frozen=True, slots=True)
class Given:
    """What a build has to work with."""

    benchmark: Setting
    sources: Mapping[str, Source]
    parameters: Mapping[str, Any]

    def listed(self, role: PartRole = "train") -> bool:
        """Return whether the order of a part is that of the annotations."""
        return bool(self.parameters["test_order" if role == "test" else "order"] == "annotation")

    def labels(self, task: TaskEntry) -> list[int]:
        """Return the positions of the classes that a task introduces."""
        position = {entry.name: place for place, entry in enumerate(self.benchmark.classes)}
        return [position[name] for name in task.introduced]

    def show(self, slot: str) -> Shown:
        """Return what the images of a source show, crowd regions as the parameters say."""
        crowd = self.parameters["crowd"] == "select"
        return shown(self.sources[slot], self.benchmark.classes, crowd=crowd)

    def part(
        self,
        task: TaskEntry,
        role: PartRole,
        selected: Sequence[Selection],
        view: LabelView,
        rule: str,
        *,
        listed: bool | None = None,
    ) -> Part:
        """Return a part of a task, its list in the order that the parameters say unless told otherwise."""
        return make_part(
            f"{task.name}-{role}",
            role,
            selected,
            roles_at(self.benchmark.classes, self.benchmark.tasks, task.name),
            view=view,
            rule=rule,
            order="listed" if (self.listed(role) if listed is None else listed) else "code_point",
            task=task.name,
        )
