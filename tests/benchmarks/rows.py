"""What `make bench` measures, in one table: our work, those that it is compared with, and the bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.benchmarks import builds, coco_ap, commands, lists, open_set, scores, signals
from tests.benchmarks.own_process import Work


def same(ours: Any, theirs: Any) -> bool:
    """Return whether both found the same numbers; a work that tells none agrees."""
    return ours is None or theirs is None or bool(np.allclose(ours, theirs, rtol=1e-12, atol=1e-12))


def never_above(ours: Any, theirs: Any) -> bool:
    """Return whether ours is at most theirs: a value that is minimised."""
    return bool(ours <= theirs + 1e-12)


@dataclass(frozen=True)
class Row:
    """A comparison and its bar.

    Attributes
    ----------
    what : str
        Our work; a name of the peers says with what it is compared.
    peers : mapping of str to Work
        The fastest of those that can run counts.
    most, least : float, optional
        What our time over the peer's may be; or the peer's over ours.
    limit : float, optional
        What our time may be, in seconds.
    memory : float, optional
        What our peak over that of the leanest peer may be.
    mib : float, optional
        What our peak may be.
    cores : bool
        Whether seconds of all cores are compared, not those that pass.
    scale : float
        Our work is so many times the peer's; without a peer, so many times what the limit is of.
    draw : Work, optional
        Writes the input files, on first use.
    """

    what: str
    ours: Work
    peers: Mapping[str, Work] = field(default_factory=dict)
    most: float | None = None
    least: float | None = None
    limit: float | None = None
    memory: float | None = None
    mib: float | None = None
    cores: bool = False
    scale: float = 1.0
    repeats: int = 3
    draw: Work | None = None
    agree: Callable[[Any, Any], bool] = same


def _coco(size: str, what: str, most: float, **bars: Any) -> Row:
    peers = {
        "hotcoco": Work(coco_ap.hotcoco, (size,), "hotcoco"),
        "ultrafast-pycocotools": Work(coco_ap.ultrafast, (size,), "ultrafast_pycocotools"),
    }
    return Row(what, Work(coco_ap.ours, (size,)), peers, most, draw=Work(coco_ap.draw, (size,)), **bars)


def _build(benchmark: str, what: str, most: float) -> Row:
    work = Work(builds.build, (benchmark,))
    peer = "typed decode of the larger JSON file, nothing else"
    what += ": decoded, checked, digested, written"
    return Row(what, work, {peer: Work(builds.decode)}, most, mib=1536, draw=Work(builds.draw))


def _command(name: str) -> Row:
    peers = {"previous release": Work(commands.run, (name, commands.PREVIOUS))} if commands.PREVIOUS else {}
    work = Work(commands.run, (name, ""))
    return Row(f"command `{name}`", work, peers, most=1.05, cores=True, repeats=5, draw=Work(commands.draw))


_LOADED = {
    "hotcoco": Work(coco_ap.loaded_by_hotcoco, (), "hotcoco"),
    "ultrafast-pycocotools": Work(coco_ap.loaded_by_ultrafast, (), "ultrafast_pycocotools"),
}
_LISTS = Work(lists.draw)

ROWS: dict[str, Row] = {
    "coco-small": _coco("small", "COCO AP from files, 36,781 objects, 144,000 boxes", 1.1, mib=150, repeats=7),
    "coco-large": _coco("large", "COCO AP from files, 1.44 M boxes", 1.2, memory=1.2),
    "coco-lvis": _coco("lvis", "COCO AP from files, 1,203 classes, 600,000 boxes", 1.2, memory=1.2),
    "reading": Row(
        "reading 1.44 M detections",
        Work(coco_ap.read_detections),
        _LOADED,
        most=1.8,
        draw=Work(coco_ap.draw, ("large",)),
    ),
    "elephant": Row(
        "command `evaluate elephant`, 1.05 M detections, from the start of Python",
        Work(open_set.elephant),
        {"reading and one matching": Work(open_set.elephant_least)},
        most=2.5,
        draw=Work(open_set.draw),
    ),
    "first-build": _build("elephant", "first build of Elephant from 436 MB of JSON and VOC's XML", 1.5),
    "four-tasks": _build("owod", "first build of OWOD's four tasks from two JSON files", 1.7),
    "cut": Row(
        "normalized cut of 2,000 classes, seconds of all cores, value never worse",
        Work(signals.cut),
        {"scikit-learn's cluster_qr": Work(signals.cut_cluster_qr, (), "sklearn")},
        limit=3.0,
        cores=True,
        draw=Work(signals.draw_graph),
        agree=never_above,
    ),
    **{
        f"auroc-{dtype}": Row(
            f"AUROC of 10 M scores, {dtype}",
            Work(scores.auroc, (dtype,)),
            {"one np.sort": Work(scores.one_sort, (dtype,))},
            most=2.5,
            repeats=7,
        )
        for dtype in ("float64", "float32")
    },
    "oscr": Row(
        "OSCR of 100,000 samples, 1,000 classes",
        Work(scores.oscr),
        {"argmax and one sort": Work(scores.argmax_and_sort)},
        most=2.0,
    ),
    "image-ood": Row(
        "OpenOOD's numbers of 94,000 images",
        Work(scores.image_ood),
        {"scikit-learn's route": Work(scores.image_ood_sklearn, (), "sklearn")},
        least=5,
        agree=lambda ours, theirs: np.allclose(ours, theirs, rtol=0, atol=1e-12),
    ),
    "audit": Row("audit of 1 M lines", Work(lists.audit), limit=1.0, draw=_LISTS),
    "identify": Row(
        "command `identify`, 1 M lines, from the start of Python", Work(lists.identify), limit=2.0, draw=_LISTS
    ),
    "neighbors": Row(
        "50 nearest of 2,000 among 60,000",
        Work(signals.neighbors),
        {"faiss, exact": Work(signals.neighbors_faiss, (), "faiss")},
        most=2.5,
        agree=lambda ours, theirs: np.allclose(ours, theirs, rtol=0, atol=1e-5),
    ),
    **{f"command-{name}": _command(name) for name in commands.COMMANDS},
}
