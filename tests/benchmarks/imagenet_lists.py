"""Speed of P1, P2 and P3 from 1,281,167 names in no order, against the time to sort these names once."""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.measured import measured

REPEATS = 5
IMAGES = 1_281_167


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, value, unit, what is required, and whether it is met."""
    from curation.benchmarks.imagenet import TRAIN, build
    from curation.benchmarks.registry import declared
    from curation.sources.imagenet import read_imagenet

    path = names_file(out)
    start = time.perf_counter()
    source = read_imagenet(path, part="train")
    reading = time.perf_counter() - start
    names = source.images.file_names.tolist()
    values = {
        name: {
            one.name: one.read(name if one.name == "protocol" else one.default)
            for one in declared("imagenet").parameters
        }
        for name in ("p1", "p2", "p3")
    }
    build({TRAIN: source}, values["p2"])
    sorting, building = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        sorted(names)
        sorting.append(time.perf_counter() - start)
        start = time.perf_counter()
        lists = [build({TRAIN: source}, one).lists for one in values.values()]
        building.append(time.perf_counter() - start)
    assert [len(one["train"]) + len(one["val"]) for one in lists] == [_of(source, one) for one in values.values()]
    ratio = statistics.median(many / one for many, one in zip(building, sorting, strict=True))
    return [
        measured(f"read a list of {IMAGES:,} names", reading, "s"),
        measured("sort the names once", statistics.median(sorting), "s"),
        measured("P1, P2, P3: manifests with lists and digests", statistics.median(building), "s"),
        measured("P1, P2, P3 / sort", ratio, "ratio", most=1.3),
        *_split_rows(source),
    ]


def names_file(folder: Path) -> Path:
    """Return a list of generated training names in no order, written on first use and kept in `folder`."""
    from curation.ilsvrc2012 import ilsvrc2012_classes
    from curation.storage import replacing

    path = folder / "imagenet_train_names.txt"
    if not path.exists():
        generator = random.Random(2012)
        # 895 classes of 1,300 images and the rest spread between 732 and 1,299, as in the real set.
        sizes = [1300] * 895 + [732 + place * 5 for place in range(105)]
        sizes[-1] += IMAGES - sum(sizes)
        names = [
            f"{wnid}_{number}.JPEG\n"
            for wnid, size in zip(ilsvrc2012_classes(), sizes, strict=True)
            for number in generator.sample(range(30_000), size)
        ]
        generator.shuffle(names)
        with replacing(path) as partial:
            partial.write_text("".join(names), encoding="ascii")
    return path


def _of(source: Any, values: dict[str, Any]) -> int:
    from curation.benchmarks.imagenet import ClassImages, class_partition

    classes = class_partition(values)
    return len(ClassImages(source).of_all([*classes.known, *classes.negative]))


def _split_rows(source: Any) -> list[dict[str, Any]]:
    """Return the seconds of the split of P3's images, and of scikit-learn's where it is installed."""
    from curation.benchmarks.imagenet import ClassImages, class_partition
    from curation.benchmarks.registry import declared
    from tests.protocols.stratified_items import stratified_split

    values = {
        one.name: one.read("p3" if one.name == "protocol" else one.default) for one in declared("imagenet").parameters
    }
    found = class_partition(values)
    wnids = [*found.known, *found.negative]
    positions = ClassImages(source).of_all(wnids)
    sizes = ClassImages(source).sizes(wnids).tolist()
    classes = [wnid for wnid, size in zip(wnids, sizes, strict=True) for _ in range(size)]
    ours = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        train, _val = stratified_split(classes)
        ours.append(time.perf_counter() - start)
    rows = [measured(f"split of P3's {len(classes):,} images", statistics.median(ours), "s")]
    try:
        from sklearn.model_selection import train_test_split
    except ImportError:
        return rows
    theirs = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        expected, _ = train_test_split(positions, train_size=0.8, stratify=classes, random_state=42)
        theirs.append(time.perf_counter() - start)
    assert positions[train].tolist() == expected.tolist()
    return [
        *rows,
        measured("scikit-learn's", statistics.median(theirs), "s"),
        measured(
            "scikit-learn's / split",
            statistics.median(one / other for one, other in zip(theirs, ours, strict=True)),
            "ratio",
            least=1,
        ),
    ]
