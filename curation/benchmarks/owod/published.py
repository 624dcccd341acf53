"""RE-OWOD, M-OWODB and S-OWODB as their authors published them: drafts by the name of the manifest that they make."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from curation.benchmarks.facts import facts_of
from curation.benchmarks.owod.facts import COCO_CLASSES, TASKS, VOC_CLASSES, class_entries
from curation.benchmarks.published import draft
from curation.manifest.header import Header

_ROOM = __package__
_EXHAUSTIVE = {
    **dict.fromkeys(("coco-train2017", "coco-val2017"), COCO_CLASSES),
    **dict.fromkeys(("voc2007-trainval", "voc2012-trainval", "voc2007-test"), VOC_CLASSES),
}


def _draft(key: str) -> Header:
    tasks = TASKS[facts_of(_ROOM)["published"][key]["tasks"]]
    return draft(_ROOM, key, classes=class_entries(tasks), tasks=tasks, exhaustive=_EXHAUSTIVE)


RECIPES: dict[str, Callable[[], Header]] = {
    stated["name"]: partial(_draft, key) for key, stated in facts_of(_ROOM)["published"].items()
}
