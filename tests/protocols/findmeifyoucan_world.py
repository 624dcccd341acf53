"""A small world for FindMeIfYouCan: COCO val and train, Open Images, published start lists, decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from curation.benchmarks.building import read_parameters
from curation.benchmarks.findmeifyoucan.lists import paper_file
from curation.benchmarks.registry import find_benchmark
from curation.benchmarks.rules.near_far import pair_of_file
from curation.manifest.manifest import Manifest
from curation.review.decisions.decision import Decision
from curation.review.decisions.files import read_decisions
from curation.review.decisions.resolution import recorded_form
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Source
from tests.made_source import as_table, image_rows, make_source

BENCHMARK = find_benchmark("findmeifyoucan")
VOC, BDD = (pair_of_file(paper_file(case)) for case in ("voc", "bdd"))

COCO_NAMES = [name for _, name, _ in COCO_CATEGORIES]
OI_NAMES = ["Person", "Woman", "Dog", "Fox", "Food", "Knife", "Coin", "Duck", "Flag", "Salad", "Bird"]


def source_of(
    dataset: str, part: str, shown: Mapping[str, Sequence[str]], names: Sequence[str], *, boxes: bool = True
) -> Source:
    """Return a source of native ids and the classes on them; the k-th annotation has the number k, from 0."""
    natives = list(shown)
    numeric = dataset.startswith("coco")
    box, area = [10.123456, 20.0, 30.005, 40.0], {"area": 7.5}
    pairs = [(image, name) for image, native in enumerate(natives) for name in shown[native]]
    source = make_source(
        dataset,
        "coco" if numeric else dataset,
        image_rows(natives, size=(640, 480), numbers=[int(one) for one in natives] if numeric else None),
        [(image, name, box, {"id": k, **area}) for k, (image, name) in enumerate(pairs)],
        dict(enumerate(names, 1)),
        part=part,
        file=f"{dataset}_{part}.json",
        licence="stated",
    )
    return source if boxes else as_table(source)


def coco(part: str, shown: Mapping[int, Sequence[str]]) -> Source:
    return source_of("coco", part, {f"{one:012d}": names for one, names in shown.items()}, COCO_NAMES)


def open_images(shown: Mapping[str, Sequence[str]]) -> Source:
    return source_of("openimages", "train", shown, OI_NAMES)


def listed(dataset: str, natives: Sequence[str]) -> Source:
    return source_of(dataset, "list", {one: [] for one in natives}, [], boxes=False)


def decided(pool: str, stage: str, action: str, *natives: int | str, reason: str = "") -> list[Decision]:
    """Return decisions of one kind on some images of ``coco`` (numbers) or another data set (texts)."""
    ids = [f"coco:{one:012d}" if isinstance(one, int) else f"{pool}:{one}" for one in natives]
    return [
        Decision(image_id=one, dataset=pool, stage=stage, action=action, reason=reason)  # type: ignore[arg-type]
        for one in ids
    ]


def build(sources: Mapping[str, Source], decisions: Sequence[Decision] = (), **settings: str) -> Manifest:
    recorded = {"decisions": recorded_form(decisions)} if decisions else {}
    return BENCHMARK.build(sources, read_parameters(BENCHMARK, {**recorded, **settings}))


def build_by_rule(
    folder: Path, case: str, sources: Mapping[str, Source], decisions: Sequence[Decision] = ()
) -> Manifest:
    """Return what a user's file that extends a case of the paper gives."""
    (folder / "mine.toml").write_text(f'extends = "findmeifyoucan/{case}"\nname = "mylab/{case}"\n')
    rule = find_benchmark("near-far")
    settings = {"file": str(folder / "mine.toml"), "decisions": recorded_form(decisions) if decisions else ""}
    return rule.make(sources, read_parameters(rule, settings))


def natives(manifest: Manifest, part: str) -> list[int | str]:
    texts = [one.partition(":")[2] for one in manifest.ids(part)]
    return [int(one) if one.isdigit() and len(one) == 12 else one for one in texts]


def decided_world() -> tuple[Manifest, dict[str, Source]]:
    """Return a manifest with one decided image, and its sources."""
    sources = {
        "coco-val2017": coco("val2017", {2: ["zebra", "kite"], 1: ["kite"], 3: []}),
        "coco-train2017": coco("train2017", {101: ["kite", "kite"]}),
        "vos-coco-voc": listed("coco", ["000000000001", "000000000002", "000000000003"]),
        "openimages": open_images({"bb02": ["Fox"], "aa01": ["Coin", "Flag"], "cc03": ["Fox", "Coin"]}),
        "vos-openimages-voc": listed("openimages", ["bb02", "aa01", "cc03"]),
    }
    return build(sources, decided("coco", "candidate", "add_far", 101)), sources


class OverlapCount(NamedTuple):
    """How many images a reviewer removed from an OOD set for a reason; `lines` counts repeats, as Table 4 does."""

    ood_set: str
    reason: str
    lines: int
    images: int


def overlap_counts(path: Path) -> list[OverlapCount]:
    """Return the manual removals from each OOD set of the paper's pairs by reason, as counted in the paper's Table 4.

    Its total, 106 + 142 + 4 = 252, is the sum of the lines: 199 of the sets of VOC, and those 53 under
    ``person``, which BDD100k's sets remove too. So person is 106, and all else is 146 = 142 + 4: the 134 lines under
    dining table and three lists of 4 (car and other of COCO, other of Open Images). Which two of them the paper counts
    as dining table, and which one as other, the decisions do not say.

    Parameters
    ----------
    path : Path
        The authors' selection, or decisions as .jsonl or .csv.
    """
    removals = [row for row in read_decisions(path).decisions if (row.stage, row.action) == ("manual", "remove")]
    counts = []
    for case, pair in {"voc": VOC, "bdd": BDD}.items():
        for pool in pair.pools:
            images = defaultdict[str, list[str]](list)
            for row in removals:
                if pool.concerns(row) and pool.counts(row):
                    images[row.reason].append(row.image_id)
            counts += [
                OverlapCount(f"{pool.name} ({case})", reason, len(several), len(set(several)))
                for reason, several in sorted(images.items())
            ]
    return counts
