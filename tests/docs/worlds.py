"""Small worlds laid out as the pages of the docs expect them, so that their commands run as printed."""

import json
import random
import shlex
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import curation
from curation.cli import main
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.manifest import read_manifest
from curation.sources.datasets import COCO_CATEGORIES
from tests.docs.pages import ROOT, blocks_of
from tests.evaluation.ood_reference import EXAMPLE
from tests.evaluation.ood_worlds import example_files, results_content
from tests.evaluation.oscr_cases import BACKGROUND, LABELS, SOFTMAX, table
from tests.extensions.image_ood.post_hoc_cases import drawn
from tests.small_world import write_detections, write_small_world
from tests.worlds.coco_file import coco_content, write_json
from tests.worlds.verdicts import lay as lay_verdicts

COCO_NUMBERS = {name: number for number, name, _ in COCO_CATEGORIES}
Shown = Mapping[Any, Sequence[str]]


def write_coco(path: Path, shown: Shown, numbers: Mapping[str, int]) -> Path:
    """Write a COCO file in which each image shows some classes, side by side."""
    rows = [(one, name, [20 * k, 5, 15, 15]) for one, names in shown.items() for k, name in enumerate(names)]
    return write_json(path, coco_content(shown.keys(), rows, numbers, size=(99, 99)))


def write_results(truth: Path, results: Path, **changed: int) -> None:
    """Write every object of a COCO file as a detection; classes may be given another number."""
    content = json.loads(truth.read_text())
    names = {one["id"]: one["name"] for one in content["categories"]}
    rows = [
        {"image_id": row["image_id"], "bbox": row["bbox"], "score": 0.9,
         "category_id": changed.get(names[row["category_id"]], row["category_id"])}
        for row in content["annotations"]
    ]  # fmt: skip
    write_json(results, rows)


def write_lines(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def data_of(page: str, language: str) -> list[str]:
    return [block.text for block in blocks_of(page) if block.language == language]


def run(text: str) -> int:
    return main(shlex.split(text)[1:])


def voc_and_coco(folder: Path) -> None:
    """Draw VOC2007 test and COCO train2017 in their layouts, and the user's own shapes."""
    write_small_world(folder / "data", n_closed=30, n_wilderness=70)
    shapes(folder)


def shapes_with_tasks(folder: Path) -> None:
    """Draw the user's own shapes, and the task file that the page prints."""
    shapes(folder)
    (folder / "tasks.toml").write_text(data_of("README.md", "toml")[0])


def shapes_in_fiftyone(folder: Path) -> None:
    """Draw the user's own shapes, and put them into FiftyOne's database with a detector's predictions."""
    import fiftyone

    shapes_with_tasks(folder)
    if fiftyone.dataset_exists("shapes"):
        fiftyone.delete_dataset("shapes")
    dataset = fiftyone.Dataset("shapes", persistent=True)
    for part in ("train", "test"):
        samples = []
        content = json.loads((folder / f"{part}.json").read_text())
        names = {one["id"]: one["name"] for one in content["categories"]}
        dataset.info["categories"] = content["categories"]
        boxes: dict[str, list[dict[str, Any]]] = {}
        for one in content["annotations"]:
            boxes.setdefault(one["image_id"], []).append(one)
        for image in content["images"]:
            size = (image["width"], image["height"]) * 2
            own = [
                (names[one["category_id"]], [a / b for a, b in zip(one["bbox"], size, strict=True)])
                for one in boxes.get(image["id"], ())
            ]
            fields: dict[str, list[Any]] = {
                "ground_truth": [fiftyone.Detection(label=a, bounding_box=b) for a, b in own]
            }
            if part == "test":
                fields["predictions"] = [
                    # It knows no star, and takes it for a circle.
                    fiftyone.Detection(label="circle" if name == "star" else name, bounding_box=box, confidence=0.9)
                    for name, box in own
                ]
            samples.append(
                fiftyone.Sample(
                    filepath=str(folder / image["file_name"]),
                    tags=[part],
                    metadata=fiftyone.ImageMetadata(width=image["width"], height=image["height"]),
                    coco_id=image["id"],
                    **{name: fiftyone.Detections(detections=held) for name, held in fields.items()},
                )
            )
        dataset.add_samples(samples, progress=False)
        dataset.save_view(part, dataset.match_tags(part))
    dataset.save()


def shapes(folder: Path) -> None:
    rng = random.Random(5)
    names = ("circle", "square", "triangle", "star")
    for part, n in (("train", 200), ("test", 40)):
        shown = {f"{part}-{k}": [rng.choice(names) for _ in range(rng.randint(1, 4))] for k in range(n)}
        write_coco(folder / f"{part}.json", shown, {name: k for k, name in enumerate(names, start=1)})


def audited_lists(folder: Path) -> None:
    """Draw a folder of lists, the sources that they come from, and the page's task file."""
    rng = random.Random(2)
    tasks = ("person", "dog"), ("truck", "bench")
    shown = {number: [rng.choice(tasks[number % 2])] for number in range(1, 701)}
    for name in ("instances.json", "instances_train2017.json"):
        write_coco(folder / name, shown, COCO_NUMBERS)
    lists = {
        "t1_train": range(2, 100, 2), "t2_train": range(1, 100, 2), "t2_ft": range(1, 30), "t1_val": range(40, 80),
        "test": range(200, 260), "mine": range(300, 340), "extra": range(100, 700),
    }  # fmt: skip
    for name, numbers in lists.items():
        write_lines(folder / "lists" / f"{name}.txt", [f"{number:012d}" for number in numbers])
    (folder / "tasks.json").write_text(data_of("docs/audit.md", "json")[0])
    write_coco(folder / "instances_val2017.json", val2017(), COCO_NUMBERS)


def val2017() -> dict[int, list[str]]:
    """Return the images of RE-OWOD's test list, each with one object."""
    (folder,) = (ROOT / "manifests/owod/reowod").iterdir()
    names = list(COCO_NUMBERS)
    ids = read_manifest(folder).ids("t1-test")
    return {int(one.partition(":")[2]): [names[place % len(names)]] for place, one in enumerate(ids)}


def reviewed_manifest(folder: Path) -> None:
    """Draw a manifest M and the verdicts of two reviewers on it; and the authors' selection of three images."""
    world = write_small_world(folder / "data", n_closed=10, n_wilderness=20)
    (folder / "instances.json").write_bytes(world.coco_json.read_bytes())
    given = f"--source=voc2007-test={world.voc_root} --source=coco={folder / 'instances.json'}"
    assert run(f"curation build elephant {given} --name mine/m --out M") == 0
    images = [f"coco:{number:012d}" for number in sorted(world.wilderness)[:3]]
    for reviewer, chosen in (("anna", images), ("ben", images[:2])):
        rows = [
            {"image_id": image, "dataset": "wilderness", "stage": "manual", "action": "remove", "reviewer": reviewer}
            for image in chosen
        ]
        if reviewer == "anna":
            write_lines(folder / "anna.jsonl", [json.dumps(row) for row in rows])
        else:
            cells = [",".join(row.values()) for row in rows]
            write_lines(folder / "ben.csv", [",".join(rows[0]), *cells])
    (folder / "manual_selection.yaml").write_text("UNFILTERED_IMAGES_TO_NEAR:\n  coco: {Banana: [3]}\n")


def verdicts_of_two_and_of_others(folder: Path) -> None:
    """Draw a reviewed manifest, and a published list with a table of verdicts on it and scores."""
    reviewed_manifest(folder)
    lay_verdicts(folder)


def pair_of_ones_own(folder: Path) -> None:
    names = {name: k for k, name in enumerate(("leash", "wolf", "lynx", "teapot", "puppy"), start=1)}
    shown = {"a": ["wolf"], "b": ["teapot"], "c": ["leash"], "d": ["lynx"], "e": [], "f": ["teapot"]}
    write_coco(folder / "zoo.json", shown, names)
    (folder / "zoo.toml").write_text(data_of("docs/findmeifyoucan.md", "toml")[0])
    row = {"image_id": "zoo:b", "dataset": "zoo", "stage": "manual", "action": "to_near", "reviewer": "anna"}
    write_lines(folder / "decisions.jsonl", [json.dumps(row)])


def lists_alone(folder: Path) -> None:
    for name, numbers in (("train", range(1, 40)), ("val", range(20, 50)), ("old/train", range(2, 41))):
        write_lines(folder / "lists" / f"{name}.txt", [f"{number:012d}" for number in numbers])


def ilsvrc2012(folder: Path) -> None:
    """Draw ImageNet's layout with a few empty photos a class, the same as counts, and a protocol of one's own."""
    root = folder / "ROOT"
    wnids = list(ilsvrc2012_classes())
    for wnid in wnids:
        below = root / "train" / wnid
        below.mkdir(parents=True)
        for number in range(5):
            (below / f"{wnid}_{number}.JPEG").touch()
    names = [f"ILSVRC2012_val_{place:08d}.JPEG" for place in range(1, 2001)]
    (root / "val").mkdir()
    for name in names:
        (root / "val" / name).touch()
    lines = [f"{name} {place % 1000}" for place, name in enumerate(names)]
    write_lines(root / "val" / "val.txt", lines)
    write_lines(folder / "val.txt", lines)
    write_json(folder / "train_counts.json", dict.fromkeys(wnids, 5))
    (folder / "cats.toml").write_text(data_of("docs/imagenet.md", "toml")[0])


def ood_files(folder: Path) -> None:
    """Draw OOD splits, detections with scores of two methods, and features for post-hoc scores."""
    files = example_files(folder)
    records = results_content(EXAMPLE)
    named = [
        {**{key: value for key, value in row.items() if key != "ood_score"},
         "scores": {"energy": row["ood_score"], "knn": -row["ood_score"]}}
        for row in records
    ]  # fmt: skip
    for name in ("split.json", "near.json", "far.json", "instances.json"):
        (folder / name).write_bytes(files["truth"].read_bytes())
    for name in ("split-results.json", "r.json", "results.json"):
        write_json(folder / name, records)
    for name in ("near-results.json", "far-results.json"):
        write_json(folder / name, named)
    scores = [0.1 * place for place in range(30)]
    write_json(folder / "id-results.json", {"scores": scores})
    write_json(folder / "voc-results.json", {"scores": {"energy": scores, "knn": scores}})
    np.save(folder / "scores.npy", np.array(scores))
    case = drawn(len(records))
    assert case.layer is not None
    np.savez(folder / "ood.npz", features=case.features)
    np.savez(folder / "train.npz", features=case.train, labels=case.labels)
    np.savez(folder / "layer.npz", weight=case.layer.weight, bias=case.layer.bias)
    own_split(folder)


def own_split(folder: Path) -> None:
    """Build a manifest whose part ``coco-far`` lists the images of the drawn split."""
    given = "--set pools=coco --set start=rule --source coco-val2017=instances.json --name my/split --out my-split"
    assert run(f"curation build findmeifyoucan {given}") == 0


def class_scores(folder: Path) -> None:
    """Draw scores of three classifiers in the formats of the page, and those of P2's test part."""
    import pandas as pd

    soft = {"gt": np.array(LABELS, float), "scores": np.array(table(SOFTMAX))}
    for name in ("eos", "eos_val", "s"):
        np.savez(folder / f"{name}.npz", **soft)
    np.savez(folder / "bg.npz", gt=np.array(LABELS, float), scores=np.array(table(BACKGROUND)))
    np.save(folder / "test.npy", np.log(np.array(table(SOFTMAX)) + 0.01))
    np.save(folder / "gt.npy", np.array(LABELS))
    (manifest,) = (read_manifest(one) for one in (ROOT / "manifests/imagenet/p2").iterdir())
    images = [one.partition(":")[2] for one in manifest.ids("test")]
    wnids = [one.name for one in manifest.header.classes]
    places = {wnid: place for place, wnid in enumerate(ilsvrc2012_classes())}
    truth = [f"{image}.JPEG {places[wnids[row % len(wnids)]]}" for row, image in enumerate(images)]
    write_lines(folder / "val.txt", truth)
    known = [one.index for one in manifest.header.classes if one.role == "known"]
    shares = np.random.default_rng(1).dirichlet(np.ones(len(known)), len(images))
    columns = {f"score_{k}": shares[:, k] for k in range(len(known))}
    pd.DataFrame({"image": images, **columns}).to_parquet(folder / "test.parquet")


def open_world_files(folder: Path) -> None:
    """Draw one truth for two tasks, the exported view of the first, detections, and a folder of VOC results."""
    names = {"person": 1, "dog": 2, "truck": 3, "kite": 4}
    shown = {number: ["person", "dog", "truck", "kite"][: 1 + number % 4] for number in range(1, 30)}
    truth = write_coco(folder / "instances.json", shown, names)
    write_results(truth, folder / "t1.json", truck=-1, kite=-1)
    write_results(truth, folder / "t2.json", kite=-1)
    tasks = [
        {"name": "t1", "prev": [], "cur": ["person", "dog"], "rest": ["truck", "kite"]},
        {"name": "t2", "prev": ["person", "dog"], "cur": ["truck"], "rest": ["kite"]},
    ]
    write_json(folder / "tasks.json", {"tasks": tasks})
    view = {image: [one if names[one] < 3 else "unknown" for one in classes] for image, classes in shown.items()}
    write_coco(folder / "t1_test_view.json", view, {"person": 1, "dog": 2, "unknown": -1})
    images = val2017()
    write_coco(folder / "instances_val2017.json", images, COCO_NUMBERS)
    for name in ("person", "truck", "unknown"):
        lines = [f"{image:012d} 0.9 1 6 15 20" for image in list(images)[:5]]
        write_lines(folder / "comp4" / f"comp4_det_test_{name}.txt", lines)


def suspects(folder: Path) -> None:
    write_lines(folder / "voc.txt", ["horse", "sofa"])
    write_coco(folder / "instances_val2017.json", {1: ["zebra"], 2: ["couch"], 3: []}, COCO_NUMBERS)


def photos(folder: Path) -> None:
    """Draw photos, and the stores of three sets of them."""
    from tests.signals.similarity.clip_world import write_photos

    for name, count in (("photos", 6), ("train", 5), ("test", 4)):
        write_photos(folder / name, count)
    for name, count in (("id", 12), ("ood", 4), ("near", 3), ("far", 5)):
        write_photos(folder / f"{name}-photos", count)
        assert run(f"curation similarity embed --photos {name}-photos --encoder colour --out stores/{name}") == 0


def benchmark_and_corpus(folder: Path) -> None:
    """Draw a benchmark, and shards of a corpus that holds none of it."""
    from tests.extensions.leaks.leak_world import jpeg, picture, write_benchmark, write_tar

    write_benchmark(folder, 12)
    (folder / "manifest").rename(folder / "my-benchmark")
    (folder / "shards").mkdir()
    for shard in range(2):
        numbers = range(100 + 20 * shard, 120 + 20 * shard)
        write_tar(folder / "shards" / f"{shard}.tar", [(f"{number}.jpg", jpeg(picture(number))) for number in numbers])


def corpus_in_shards(folder: Path) -> None:
    """Draw shards of photos, a store of a benchmark, a box CSV, and folders of sound lists."""
    from tests.extensions.leaks.leak_world import jpeg, picture, write_tar
    from tests.signals.similarity.clip_world import write_photos

    (folder / "shards").mkdir()
    for shard in range(2):
        numbers = range(10 * shard, 10 * shard + 10)
        write_tar(folder / "shards" / f"{shard}.tar", [(f"{number}.jpg", jpeg(picture(number))) for number in numbers])
    write_photos(folder / "photos", 4)
    assert run("curation similarity embed --photos photos --encoder colour --out stores/benchmark") == 0
    write_lines(folder / "boxes.csv", ["ImageID,LabelName", *(f"{k // 3:016x},/m/{k % 5}" for k in range(30))])
    for name in ("mine", "theirs"):
        for part, first in (("train", 0), ("test", 20)):
            write_lines(folder / "benchmarks" / name / f"{part}.txt", [f"{k:012d}" for k in range(first, first + 20)])


def photos_without_sizes(folder: Path) -> None:
    from PIL import Image

    (folder / "photos/train").mkdir(parents=True)
    Image.new("RGB", (40, 30)).save(folder / "photos/train/00166893b16a03ab.jpg")
    (folder / "openimages").mkdir()


def rows_of_a_leaderboard(folder: Path) -> None:
    names = {"cat": 1, "dog": 2}
    truth = write_coco(folder / "truth.json", {number: ["cat", "dog"] for number in range(1, 9)}, names)
    write_results(truth, folder / "ours.json")
    write_results(truth, folder / "theirs.json", dog=1)


def manifests_of_ones_own(folder: Path) -> None:
    shutil.copytree(ROOT / "manifests/elephant", folder / "mine/elephant")


def publication_and_photos(folder: Path) -> None:
    """Write what a pull of `elephant/val2017` brings, and a dot for each photo of its wilderness."""
    from PIL import Image

    manifest = ROOT / "manifests/elephant/val2017/1.0.0"
    assert main(["publish", str(manifest), "--repo", "me/elephant", "--dry-run", str(folder / "pulled")]) == 0
    (folder / "val2017").mkdir()
    for one in (manifest / "ids/wilderness.txt").read_text().split():
        Image.new("RGB", (1, 1)).save(folder / "val2017" / f"{one.partition(':')[2]}.jpg")


def review_without_a_database(folder: Path) -> None:
    """Draw the folder of a review with verdicts of two people."""
    from curation.review.decisions.review_folder import ReviewRecord, write_record
    from curation.review.decisions.verdicts import VerdictBook

    keys = [(("pool", f"coco:{number:012d}"), "0001") for number in range(4)]
    record = ReviewRecord(dataset="d", stage="manual", manifest="", inputs="", batches={"0001": len(keys)})
    write_record(folder / "my-review", record)
    for reviewer in ("anna", "ben"):
        book = VerdictBook(folder / "my-review" / "decisions.jsonl", stage="manual")
        book.record(keys, "near", reason="stripes", reviewer=reviewer)
    (folder / "other").mkdir()
    corrected_annotations(folder)


def corrected_annotations(folder: Path) -> None:
    """Draw a manifest of tasks with its sources, detections, and a truth file that one more unknown object is in."""
    from curation.manifest.manifest import write_manifest
    from tests.task_world import NUMBERS, with_boxes, write_task_world

    world = write_task_world(folder / "raw")
    write_manifest(world.manifest, folder / "M")
    box = [(2003, NUMBERS["pizza"], [7, 8, 9, 10])]
    (folder / "corrected.json").write_text(json.dumps(with_boxes(world.val_json, box)))
    results = [{"image_id": 2003, "category_id": -1, "bbox": [7, 8, 9, 10], "score": 0.5}]
    (folder / "results.json").write_text(json.dumps(results))
    world.train_json.rename(folder / "train.json")
    world.val_json.rename(folder / "val.json")


def openood_files(folder: Path) -> None:
    """Draw the files of OpenOOD's makers, scores of two runs on the sets that they make, and verdicts."""
    from tests.worlds.openood import lay

    names = {"imagenet-val": "val.txt", "ssb": "imagenet_21k_val_files.json", "ninco": "NINCO_OOD_classes.csv",
             "inaturalist": "OOD_iNaturalist_MOS_labels.csv", "textures": "texture.txt"}  # fmt: skip
    for name, path in lay(folder).items():
        path.rename(folder / names.get(name, f"{name}.txt"))
    sets = {
        "imagenet": [f"ILSVRC2012_val_{n:08}" for n in range(12) if n not in (2, 5)],
        "textures": ["banded/banded_0002", "banded/banded_0004"],
        "ninco": ["high heels/high heels_001_a", "owl/owl_002_b"],
    }
    for seed, run in enumerate(("scores", "more")):
        rng = random.Random(seed)
        (folder / run).mkdir()
        for name, images in sets.items():
            rows = "".join(f"{image}.jpg,{rng.random()},0,0\n" for image in images)
            (folder / run / f"{name}.csv").write_text(f"image,score,label,prediction\n{rows}")
    verdict = {"image_id": "dtd:banded/banded_0002", "dataset": "textures", "stage": "manual", "action": "remove"}
    (folder / "decisions.jsonl").write_text(json.dumps(verdict) + "\n")
    rows = [f"{n},textures/images/banded/banded_000{n}.jpg,{code}" for n, code in ((2, "i"), (4, "o"))]
    write_lines(folder / "textures.csv", ["index,image_location,decision", *rows])


def classes_and_one_list(folder: Path) -> None:
    """Draw scores of ImageNet's images and of two OOD sets, and lists that name these."""
    rng = random.Random(4)
    names = {"imagenet": 40, "ninco": 30, "imagenetood": 30}
    for below in ("scores", "lists"):
        (folder / below).mkdir()
    for name, n in names.items():
        paths = [f"{name}/n{number % 3:08}/{name}_{number}.jpg" for number in range(n)]
        if name != "imagenet":
            (folder / "lists" / f"{name}.txt").write_text("".join(f"{path} -1\n" for path in paths))
        rows = "".join(f"{path},{rng.random()}\n" for path in paths)
        (folder / "scores" / f"{name}.csv").write_text(f"image,score\n{rows}")


def known_lists(folder: Path) -> None:
    """Draw a folder of lists with the page's declaration, and a list that is short by two images."""
    train = [f"shape_{number:05d}.png" for number in range(300)]
    write_lines(folder / "known" / "train.txt", train)
    write_lines(folder / "known" / "test.txt", [f"test_{number:04d}.png" for number in range(80)])
    write_lines(folder / "mine.txt", train[2:])
    (folder / "known" / "lists.toml").write_text(data_of("docs/identify.md", "toml")[0])


def lists_of_others(folder: Path) -> None:
    """Draw known lists, a file of classes, and two published lists with verdicts on one and scores of both."""
    from tests.cli.test_verdicts import lay

    known_lists(folder)
    lay(folder)
    write_lines(folder / "unknown.txt", ["n01580870", "n02419796", "n04322801"])


def benchmarks_of_ones_own(folder: Path) -> None:
    """Write every benchmark file of the page, and draw its sources and predictions."""
    for text in data_of("docs/own_benchmark.md", "toml"):
        if (own := tomllib.loads(text)).get("rule"):
            (folder / f"{own['name'].rpartition('/')[2]}.toml").write_text(text)
    for draw in (parts_of_ones_own, shapes_of_ones_own, livestock_of_ones_own, pets_of_ones_own, zoo_of_ones_own):
        draw(folder)


def parts_of_ones_own(folder: Path) -> None:
    """Draw a closed set, images of a factory, and detections on both."""
    known, others = {"bolt": 1, "nut": 2}, {"Bolt": 1, "nut": 2, "cable": 3, "tool": 4}
    write_coco(folder / "parts.json", {n: [("bolt", "nut")[n % 2]] for n in range(1, 121)}, known)
    shown = {n: [[*others][n % 4], "cable"] for n in range(1, 301)}
    write_coco(folder / "factory.json", shown, others)
    write_results(folder / "parts.json", folder / "closed_results.json")
    write_results(folder / "factory.json", folder / "wild_results.json", cable=1, tool=2)


def livestock_of_ones_own(folder: Path) -> None:
    """Draw animals for training and testing, and detections."""
    livestock = {
        name: number for number, name in enumerate(("cow", "sheep", "goat", "hen", "duck", "goose", "animal"), 1)
    }
    for name, first in (("farm_train", 0), ("farm_test", 500)):
        shown = {first + n: [[*livestock][n % 7], [*livestock][n % 5]] for n in range(1, 101)}
        write_coco(folder / f"{name}.json", shown, livestock)
    unknown = [name for name in livestock if name not in ("duck", "sheep")]
    write_results(folder / "farm_test.json", folder / "farm_results.json", **dict.fromkeys(unknown, -1))


def shapes_of_ones_own(folder: Path) -> None:
    """Draw shapes, and detections."""
    shapes(folder)
    write_results(folder / "test.json", folder / "results.json", triangle=2, star=-1)


def zoo_of_ones_own(folder: Path) -> None:
    """Draw OOD images, decisions on them, and detections with scores."""
    pair_of_ones_own(folder)
    for name, images in (("zoo", "abcdef"), ("id", "xyz")):
        box = {"category_id": 1, "bbox": [0, 5, 15, 15], "score": 0.9}
        rows = [{"image_id": image, "ood_score": n / 10, **box} for n, image in enumerate(images)]
        write_json(folder / f"{name}_results.json", rows)


def pets_of_ones_own(folder: Path) -> None:
    """Draw class folders, and scores of a classifier."""
    classes = ("cat", "dog", "horse", "car", "truck", "chair")
    for photo in (folder / "photos" / name / f"{n:03}.jpg" for name in classes for n in range(10)):
        photo.parent.mkdir(parents=True, exist_ok=True)
        photo.write_text(str(photo))
    made = curation.build(folder / "pets.toml", sources={"images": folder / "photos"})
    rows = [
        f"{image},{0.6 if '/cat' in image else 0.3},{0.4 if '/cat' in image else 0.7}" for image in made.ids("test")
    ]
    write_lines(folder / "scores.csv", ["image,cat,dog", *rows])


WORLDS: dict[str, Callable[[Path], None]] = {
    "README.md": voc_and_coco,
    "docs/atlas.md": lists_of_others,
    "docs/audit.md": audited_lists,
    "docs/decisions.md": verdicts_of_two_and_of_others,
    "docs/elephant.md": voc_and_coco,
    "docs/findmeifyoucan.md": pair_of_ones_own,
    # Commands of these pages ask what is known in any folder.
    "docs/hierarchy.md": lambda folder: None,
    "docs/howto.md": lambda folder: None,
    "docs/id_lists.md": lists_alone,
    "docs/identify.md": known_lists,
    "docs/fiftyone.md": shapes_in_fiftyone,
    "docs/imagenet.md": ilsvrc2012,
    "docs/imagenetood.md": classes_and_one_list,
    "docs/leaderboard.md": rows_of_a_leaderboard,
    "docs/leaks.md": benchmark_and_corpus,
    "docs/manifests.md": manifests_of_ones_own,
    "docs/ninco.md": classes_and_one_list,
    "docs/ood_metrics.md": ood_files,
    "docs/openood.md": openood_files,
    "docs/openimages.md": photos_without_sizes,
    "docs/oscr.md": class_scores,
    "docs/own_benchmark.md": benchmarks_of_ones_own,
    "docs/owod.md": shapes_with_tasks,
    "docs/owod_metrics.md": open_world_files,
    "docs/proposals.md": suspects,
    "docs/publishing.md": publication_and_photos,
    "docs/python.md": shapes_with_tasks,
    "docs/review.md": review_without_a_database,
    "docs/scale.md": corpus_in_shards,
    "docs/similarity.md": photos,
}
"""Every page with a block that runs."""


def lay(page: str, folder: Path) -> None:
    """Draw the world of a page in the working folder, with the manifests of this repository at hand."""
    (folder / "manifests").symlink_to(ROOT / "manifests")
    WORLDS[page](folder)


def draw_detections(command: str, folder: Path) -> None:
    """Write the detector's files that a command names, once the manifest that they belong to is there."""
    if "t2-results.json" in command:
        write_results(folder / "test.json", folder / "t2-results.json", star=-1)
    elif "wilderness-results.json" in command and (folder / "my-elephant").is_dir():
        for part in ("closed", "wilderness"):
            results, truth = folder / f"{part}-results.json", folder / "drawn" / f"{part}.json"
            truth.parent.mkdir(exist_ok=True)
            curation.export(folder / "my-elephant", part, "coco", truth)
            write_detections(truth, results)
            # VOC numbers no classes, so that detections name them.
            names = {one["id"]: one["name"] for one in json.loads(truth.read_text())["categories"]}
            rows = json.loads(results.read_text())
            write_json(results, [row | {"category": names[row.pop("category_id")]} for row in rows])
