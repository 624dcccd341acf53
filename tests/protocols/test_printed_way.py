"""From a user's own data to a score, in every layout and by every rule, with printed commands alone."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from curation.benchmarks.registry import benchmarks
from curation.manifest.manifest import read_manifest
from curation.sources.datasets import is_listed
from tests.protocols.layouts import LAYOUTS, lay, write
from tests.protocols.layouts import photo as write_photo
from tests.protocols.osod3_world import SPECIES
from tests.shell import Shell
from tests.worlds import imagenet_lists, photos, species

KNOWN, OTHER = ("cat", "dog", "horse", "bolt"), ("zebra", "wolf", "teapot", "gear")
CLASS_LAYOUTS = ("folders", "folders with parts", "table")
SHARES = ("--parts", "train=0.6,val=0.2,test=0.2")


class World(NamedTuple):
    """Data on disk, and who predicts.

    `sources` are paths with the part, by name; `shown` the classes of each source's images; `predict` writes what a
    model of some classes predicts for some images.
    """

    sources: Mapping[str, str]
    shown: Mapping[str, Mapping[str, Sequence[str]]]
    predict: Callable[[Path, Mapping[str, Sequence[str]], Sequence[str]], None]


def _boxes(layout: str) -> World:
    """Lay out training and test images of known classes, and images that may show other classes too."""
    rng = random.Random(layout)
    names = [*KNOWN, *OTHER]
    val = "valid" if layout == "roboflow" else "val"
    roots = {
        "home": {"train": (60, KNOWN, 1), "test": (30, KNOWN, 1)},
        "mixed": {"train": (60, names, 1), "test": (40, names, 1), val: (40, OTHER, 0)},
    }
    shown: dict[str, dict[str, list[str]]] = {}
    sources = {}
    number = 100
    for root, parts in roots.items():
        drawn = {}
        for part, (count, classes, least) in parts.items():
            drawn[part] = {
                str(number + k): [rng.choice(classes) for _ in range(rng.randint(least, 3))] for k in range(count)
            }
            number += 100
        for part, path in lay(Path(root), layout, drawn, names).items():
            source = f"{root} {part.removesuffix('id')}"
            sources[source] = f"={root}/{path}" if layout == "coco" else f"@{part}={root}/{path}"
            shown[source] = drawn[part]
    first = 1 if layout == "coco" else 2
    numbers = {name: number for number, name in enumerate(names, first)} | {"unknown": -1}

    def predict(path: Path, images: Mapping[str, Sequence[str]], known: Sequence[str]) -> None:
        """Write detections in the form of the layout; of other classes they are a known one or unknown."""
        rng = random.Random(path.name)
        rows = [
            (image, label if label in known else rng.choice([*known, "unknown"]), 20 * k, round(rng.random(), 6))
            for image, labels in images.items()
            for k, label in enumerate(labels)
        ]
        rows = [row for row in rows if row[1] != "unknown" or len(known) < len(KNOWN)]
        if layout in ("coco", "roboflow") or path.stem in BOX_RULES["near-far"]:
            # An OOD score of a detection has a field in COCO results alone.
            records = [
                {
                    "image_id": image,
                    "category_id": numbers[label],
                    "bbox": [x, 5, 15, 15],
                    "score": score,
                    "ood_score": score,
                }
                for image, label, x, score in rows
            ]
            write(path, json.dumps(records))
            return
        files: dict[str, list[str]] = {}
        classes = [*known, "unknown"]
        for image, label, x, score in rows:
            if layout == "yolo":
                line = f"{classes.index(label)} {(x + 7.5) / 99} {12.5 / 99} {15 / 99} {15 / 99} {score}\n"
                files.setdefault(f"{image}.txt", []).append(line)
            else:
                line = f"{image} {score} {x + 1} 6 {x + 15} 20\n"
                files.setdefault(f"comp4_det_test_{label}.txt", []).append(line)
        for name, lines in files.items():
            write(path / name, "".join(lines))
        if layout == "yolo":
            write(path / "data.yaml", f"names: {json.dumps(classes)}\n")

    return World(sources, shown, predict)


def _classes(layout: str) -> World:
    """Lay out photos with one class each, of known and of other classes."""
    rng = random.Random(layout)
    shown = {f"{name}/{name}_{number:02}.png": name for name in (*KNOWN, *OTHER) for number in range(10)}
    if layout in ("folders with parts", "two folders"):
        both = [(path, name, rng.random() < 0.6 and name in KNOWN) for path, name in shown.items()]
        shown = {f"{'train' if is_train else 'test'}/{path}": name for path, name, is_train in both}
    for path in shown:
        write_photo(Path("photos", path))
    if layout == "table":
        write(Path("photos.csv"), "image,class\n" + "".join(f"{path},{name}\n" for path, name in shown.items()))
    sources = {"all": "=photos.csv" if layout == "table" else "=photos"}
    sources |= {part: f"=photos/{part}" for part in ("train", "test") if layout == "two folders"}

    def predict(path: Path, images: Mapping[str, Sequence[str]], known: Sequence[str]) -> None:
        rng = random.Random(path.name)
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["image", *known])
            for image in images:
                logits = [rng.random() for _ in known]
                rows.writerow([f"photos/{image}", *(each / sum(logits) for each in logits)])

    return World(sources, {"all": {path: [name] for path, name in shown.items()}}, predict)


BOX_RULES = {
    "wilderness": {"closed": "home test", "wild": "mixed test"},
    "tasks": {"train": "mixed train", "test": "mixed test"},
    "superclass": {"train": "mixed train", "test": "mixed test"},
    "near-far": {"id": "home test", "ood": "mixed val"},
    "lists": {"images": "mixed test"},
    "split": {"images": "mixed train"},
    "init split": {"images": "mixed train"},
}
CLASS_RULES = {rule: {"images": "all"} for rule in ("hierarchy", "lists", "split", "init split")}
WAYS = [(layout, rule, sources) for layout in LAYOUTS for rule, sources in BOX_RULES.items()]
WAYS += [(layout, rule, sources) for layout in CLASS_LAYOUTS for rule, sources in CLASS_RULES.items()]
WAYS += [("two folders", "hierarchy", {"train": "train", "test": "test"})]


def _first(rule: str, sources: Mapping[str, str]) -> list[str]:
    """Return the one command that a user writes unprompted: the rule, and where the data are."""
    texts = [use + path for use, path in sources.items()]
    if rule == "split":
        return ["split", *texts, *SHARES, "--out", "made"]
    folder = ["lists"] if rule == "lists" else []
    return ["init", rule.rpartition(" ")[2], *folder, *(word for text in texts for word in ("--source", text))]


def _lists(layout: str, images: Iterable[str]) -> None:
    """Write two lists of the images as a user has them: names of files, or paths."""
    suffix = {"yolo": ".png"}.get(layout, ".jpg" if layout in LAYOUTS else "")
    names = [image + suffix for image in images]
    random.Random(layout).shuffle(names)
    for part, lines in {"train": names[::2], "test": names[1::2]}.items():
        write(Path("lists", f"{part}.txt"), "".join(f"{line}\n" for line in lines))


def walk(shell: Shell, first: list[str], predict: Callable[[Path, str], Path]) -> tuple[list[str], Path, Path]:
    """Run a command and each one that is printed; return their verbs, and the folders of manifest and result.

    `predict` returns the file that takes the place of a ``FILE``: it gets the manifest's folder and the name before it.
    """
    waiting, verbs, made, scores = [first], [], Path(), Path()
    while waiting:
        words = waiting.pop(0)
        for place, word in enumerate(words):
            name, _, file = word.rpartition("=")
            if file in ("FILE", "ID_FILE"):
                words[place] = f"{name}={predict(made, name or file)}".removeprefix("=")
        text = shell.out(*words)
        waiting += [shlex.split(line)[2:] for line in text.splitlines() if line.startswith("next: curation ")]
        verbs.append(words[0])
        made = Path(words[-1]) if words[0] in ("build", "split") else made
        scores = Path(words[-1]) if words[0] == "evaluate" else scores
    return verbs, made, scores


@cache
def _claims() -> re.Pattern[str]:
    """Return what no result of a user's data may hold: titles and keys of papers, and sites of known datasets."""
    papers = [each.paper for each in benchmarks().values() if each.paper]
    words = {text for paper in papers for text in (paper.title, *re.findall(r"@\w+\{([^,]+)", paper.bibtex))}
    return re.compile("|".join(map(re.escape, {*words, "cocodataset", "Flickr", "robots.ox.ac.uk", "image-net.org"})))


def require_users_own(made: Path, scores: Path) -> None:
    """Check that a result has numbers, and that it and its manifest name no paper and no terms of others."""
    header = read_manifest(made).header
    assert header.paper is None
    # A file of CUB's class names is known by digest, and labels of MTSD stay closed.
    fixed = ("cub200", "mtsd")
    assert all(entry.licence == "not stated" for entry in header.sources if entry.dataset not in fixed)
    assert any(row["value"] is not None for row in json.loads((scores / "results.json").read_text())["measures"])
    for path in (made / "manifest.json", scores / "results.json"):
        assert not _claims().findall(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(("layout", "rule", "uses"), WAYS, ids=[f"{rule}, {layout}" for layout, rule, _ in WAYS])
def test_own_data_are_scored_by_printed_commands(
    layout: str, rule: str, uses: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    """Three commands at most lead to a number, each other printed one runs, and the result is the user's alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    world = (_boxes if layout in LAYOUTS else _classes)(layout)
    shown = {use: world.shown.get(source) or world.shown["all"] for use, source in uses.items()}
    if rule == "lists":
        _lists(layout, shown["images"])

    def predict(made: Path, name: str) -> Path:
        use = {"ID_FILE": "id", "FILE": [*uses][-1], "wilderness": "wild"}.get(name) or name.partition("-")[0]
        images = shown.get(use, {})
        manifest = read_manifest(made)
        classes = manifest.header.classes
        known = [entry.name for entry in classes if entry.role == "known"]
        known = [*manifest.header.tasks[0].introduced] if manifest.header.tasks else known
        if layout not in LAYOUTS:
            tested = {image.partition(":")[2] for image in manifest.ids("test")}
            names = {image: {image, Path(image).stem, image.partition("/")[2]} for image in images}
            images = {image: labels for image, labels in images.items() if not tested.isdisjoint(names[image])}
        path = Path(f"{use}.{'json' if layout in LAYOUTS else 'csv'}")
        if not path.exists():
            world.predict(path, images, known)
        return path

    verbs, made, scores = walk(shell, _first(rule, {use: world.sources[name] for use, name in uses.items()}), predict)
    assert len([verb for verb in verbs if verb in ("init", "build", "split", "evaluate")]) <= 3
    require_users_own(made, scores)
    manifest = read_manifest(made)
    assert not any(is_listed(entry.dataset) for entry in manifest.header.sources)
    namespaces = {image.partition(":")[0] for part in manifest.parts for image in manifest.ids(part)}
    assert namespaces <= {entry.namespace for entry in manifest.header.sources}


PAPERS: dict[str, tuple[str, dict[str, str], str]] = {
    # The drawn world, its files by source, and keys of the user's own file.
    "elephant": (
        "photos",
        {"voc2007-test": "voc2007-test", "coco": "coco-train2017"},
        "[parameters]\nratios = [0.5]\n",
    ),
    "elephant/val2017": ("photos", {"voc2007-test": "voc2007-test", "coco": "coco-val2017"}, ""),
    **{
        f"owod/{split}": (
            "photos",
            {name: name for name in photos.SIZES if split == "m-owodb" or "voc" not in name},
            "[parameters]\nvalidation = 0\nexemplars = 3\n",
        )
        for split in ("reowod", "table2", "m-owodb", "s-owodb")
    },
    "osod3/openimages-vehicle": (
        "species",
        {f"openimages-{part}": "openimages" for part in ("train", "validation", "test")},
        '[parameters]\nsalt = "mine"\n',
    ),
    "osod3/cub": ("species", {"cub-train": "cub", "cub-test": "cub"}, ""),
    "osod3/mtsd": ("species", {"mtsd-train": "mtsd", "mtsd-val": "mtsd"}, ""),
    "findmeifyoucan/voc": ("photos", {"coco-val2017": "coco-val2017"}, ""),
    "findmeifyoucan/bdd": ("photos", {"coco-val2017": "coco-val2017"}, ""),
    **{
        f"imagenet/{name}": ("imagenet", {name: name for name in ("imagenet-train", "imagenet-val")}, "")
        for name in ("p1", "p2", "p3")
    },
}


@pytest.mark.parametrize("paper", PAPERS)
def test_files_that_extend_a_paper_are_scored_by_printed_commands(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    """`build` prints what scores the benchmark; its name is the user's, and drawn data are nobody else's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    world, sources, lines = PAPERS[paper]
    files = {"photos": photos, "species": species, "imagenet": imagenet_lists}[world].files(tmp_path)
    if paper == "osod3/openimages-vehicle":
        sizes = "".join(f"{image},640,480\n" for image in species.open_images("test"))
        write(files["openimages"] / "test-image-sizes.csv", f"image_id,width,height\n{sizes}")
    if paper == "osod3/cub":
        write(files["cub"] / "classes.txt", "".join(f"{n} {name}\n" for n, name in enumerate(SPECIES, 1)))
    write(Path("mine.toml"), f'extends = "{paper}"\nname = "mylab/mine"\n{lines}')

    def predict(made: Path, name: str) -> Path:
        manifest = read_manifest(made)
        tests = [part.name for part in manifest.header.parts if part.role in ("test", "wilderness")]
        known = [entry.name for entry in manifest.header.classes if entry.role == "known"]
        images = [image.partition(":")[2] for image in manifest.ids(name if name in tests else tests[0])]
        if world == "imagenet":
            rows = [["image", *known], *([image, *[1 / len(known)] * len(known)] for image in images)]
            write(Path("FILE.csv"), "".join(",".join(map(str, row)) + "\n" for row in rows))
            return Path("FILE.csv")
        detection = {"category": known[0], "bbox": [10, 20, 30, 40], "score": 0.5, "ood_score": 0.5}
        # The ID images are of another dataset.
        images = [f"id {image}" for image in images] if name == "ID_FILE" else images
        write(Path(f"{name}.json"), json.dumps([{"image_id": image, **detection} for image in images]))
        return Path(f"{name}.json")

    words = [word for use, name in sources.items() for word in ("--source", f"{use}={files[name]}")]
    _, made, scores = walk(shell, ["build", "mine.toml", *words, "--out", "made"], predict)
    assert read_manifest(made).header.name == "mylab/mine"
    require_users_own(made, scores)
