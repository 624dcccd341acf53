"""Drawn worlds and the commands that are run on them: every protocol, variant, format and option that changes numbers.

A world is a function that draws into the working folder and yields command lines; what one command writes, later ones
may read. ``tests.frozen`` holds what comes out against numbers and digests that are committed; docs/portability.md
does so in many cells.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT
from tests.docs.worlds import (
    audited_lists,
    class_scores,
    ood_files,
    pair_of_ones_own,
    reviewed_manifest,
    shapes,
    voc_and_coco,
    write_coco,
    write_json,
    write_lines,
    write_results,
)
from tests.evaluation import osod3_world
from tests.small_world import write_detections
from tests.worlds import coco, elephant, findmeifyoucan, imagenet, imagenet_lists, osod3, owod, photos, species, voc
from tests.worlds.drawing import Draws
from tests.worlds.photo_classes import COCO

VOC_ROOT, COCO_FILE = "data/VOCdevkit/VOC2007", "data/coco/annotations/instances_train2017.json"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def exports_of_two_datasets(folder: Path) -> Iterator[str]:
    """Build the Elephant lists of a small VOC and COCO, and write every format in every form; score the exports."""
    voc_and_coco(folder)
    sources = f"--source voc2007-test={VOC_ROOT} --source coco={COCO_FILE}"
    yield f"build elephant {sources} --out m"
    for part, name, source in (("closed", "voc2007-test", VOC_ROOT), ("wilderness", "coco", COCO_FILE)):
        given = f"--part {part} --source {name}={source}"
        for form in ("coco", "yolo", "voc"):
            out = f"{form}/{part}.json" if form == "coco" else f"{form}/{part}"
            yield f"export m --format {form} {given} --out {out}"
        write_detections(folder / f"coco/{part}.json", folder / f"{part}-results.json")
        yield f"export m --format coco {given} --category-ids manifest --out indices/{part}"
        yield f"export m --format yolo {given} --set unknown=drop --out yolo-known/{part}"
        for form in ("namespaced", "native"):
            yield f"export m --format txt {given} --set id_form={form} --out txt/{part}-{form}.txt"
        yield f"export m --format elephant-json {given} --out authors/{part}.json"
    yield f"export m --format coco --part closed --part wr1 {sources} --out merged.json"
    yield f"export m --format coco --part all --each {sources} --out each"
    given = " ".join(
        f"--truth {part}=coco/{part}.json --detections {part}={part}-results.json" for part in ("closed", "wilderness")
    )
    yield f"evaluate elephant --manifest m {given} --variant all --bootstrap 200 --set fbeta_ratios=0,1 --json"
    wr1 = "--part wilderness=wr1 --on-error stray=drop --set fbeta_ratios=0,1"
    yield f"evaluate elephant --manifest m {given} {wr1} --json"
    for dataset in ("voc", "coco"):
        one = "--truth coco/closed.json --detections closed-results.json"
        yield f"evaluate {dataset} {one} --json"
    yield f"evaluate voc --truth {VOC_ROOT} --detections closed-results.json --on-error stray=drop --json"
    for weighting in ("counts", "binary", "jaccard", "pmi"):
        yield f"cut {COCO_FILE} -k 2 --on-error components=cut --set weighting={weighting} --out cut-{weighting} --json"
    yield f"cut {COCO_FILE} -k 2 --on-error components=giant --on-error isolated=drop --set restarts=5 --json"
    yield f"show m --composition {sources} --out composition.csv --json"
    yield "show m --json"
    yield f"verify m {sources} --rebuild --json"
    yield f"audit m {sources} --out audit --json"
    yield "publish m --repo me/m --date 2026-01-02 --dry-run published --json"


def wilderness(folder: Path) -> Iterator[str]:
    """Every variant and option of the Elephant evaluator on a world of ties, crowds and difficult objects."""
    elephant.files(folder)
    parts = ("closed", "wilderness")
    given = " ".join(f"--truth {part}=truth_{part}.json --detections {part}=detections_{part}.json" for part in parts)
    write_json(folder / "classes.json", {"known": elephant.CLASSES, "unknown": ["zebra"]})
    for place, options in enumerate(
        (
            "--variant all --bootstrap 20",
            "--variant paper",
            "--variant paper --set difficult=count --bootstrap 15 --bootstrap seed=3",
            "--variant official --bootstrap 15",
            "--variant official --set level_counts=float32",
            "--set recalls=0.2,0.7,1.0 --set fbeta_ratios=0,0.5,1.25 --set betas=0.25,2 --set fbeta_formula=published",
        )
    ):
        out = "" if place else "--out all"
        yield f"evaluate elephant {given} {options} {out} --append rows.jsonl --name m{place} --json"
    yield f"evaluate elephant {given} --classes classes.json --variant all --json"
    odd = read(folder / "detections_closed.json")
    odd += [{**odd[0], "image_id": 999_999}, {**odd[1], "bbox": [5, 5, -3, 4]}, {**odd[2], "score": 1.75}]
    write_json(folder / "odd.json", odd)
    bad = read(folder / "truth_closed.json")
    bad["annotations"][3]["bbox"] = [4, 4, -9, 3]
    write_json(folder / "bad.json", bad)
    lenient = "--on-error stray=drop --on-error sizes=empty --on-error scores=keep"
    one = f"evaluate elephant --truth closed=bad.json --detections closed=odd.json {lenient}"
    rest = "--truth wilderness=truth_wilderness.json --detections wilderness=detections_wilderness.json"
    yield f"{one} {rest} --on-error boxes=drop --variant all --json"
    write_json(folder / "none.json", [])
    none = " ".join(f"--truth {part}=truth_{part}.json --detections {part}=none.json" for part in parts)
    yield f"evaluate elephant {none} --variant all --json"
    for metric in ("", "--group 1", "--group 5 --metric mAP"):
        yield f"leaderboard rows.jsonl {metric} --json"


def average_precision(folder: Path) -> Iterator[str]:
    """Plain VOC and COCO precision: results as JSON and as VOC's text files."""
    voc.files(folder)
    one = "--truth truth_closed.json"
    yield f"evaluate voc {one} --detections detections_closed.json --out v --append rows.jsonl --json"
    yield f"evaluate voc {one} --detections results --json"
    write_json(folder / "classes.json", {"known": elephant.CLASSES, "unknown": ["zebra"]})
    yield f"evaluate voc {one} --detections detections_closed.json --classes classes.json --json"
    coco.files(folder)
    two = "--truth truth.json --detections detections.json --out c --append coco.jsonl --name hotcoco"
    yield f"evaluate coco {two} --json"
    yield "leaderboard coco.jsonl --metric AP50 --group 1 --out board.html --json"
    yield "leaderboard rows.jsonl --json"


TASKS = """rule = "tasks"
name = "mylab/shapes"
parameters = { validation = 10, exemplars = 5, salt = "owod" }
[sources]
train = { dataset = "shapes", exhaustive = true }
test = { dataset = "shapes", exhaustive = true }
[classes]
tasks = [{ name = "t1", classes = ["circle", "square"] }, { name = "t2", classes = ["triangle"] },
         { name = "t3", classes = ["star"] }]
"""


def open_world(folder: Path) -> Iterator[str]:
    """Build an open-world benchmark of one's own, export its views, and score them in every variant."""
    shapes(folder)
    (folder / "tasks.toml").write_text(TASKS)
    sources = "--source train=train.json --source test=test.json"
    yield f"build tasks.toml {sources} --out m"
    yield f"export m --part *-test --each --format coco {sources} --out views"
    for task in ("t1", "t2", "t3"):
        write_results(folder / f"views/{task}-test.json", folder / f"{task}.json")
        one = f"--truth views/{task}-test.json --detections {task}.json --task {task}"
        yield f"evaluate owod --manifest m {one} --variant all --json"
    yield f"export m --part t* --each --format coco {sources} --out each"
    yield f"export m --part t2-train --format coco --category-ids manifest {sources} --out t2"
    yield f"export m --format owod {sources} --out authors"
    yield "export m --part all --format txt --out lists"
    yield f"init tasks {sources} --n-tasks 2 --name my/own --exhaustive --out own.toml --json"
    yield f"build own.toml {sources} --out own --json"
    yield "diff m own --ids --json"
    for name in ("m", "own"):
        yield f"audit {name} {sources} --set exemplars=5 --out audit-{name} --json"
        yield f"show {name} --composition {sources} --out {name}.csv --json"
    licences = "--licence train=CC-BY-4.0 --licence test=CC-BY-4.0"
    yield f"publish m --repo me/shapes --date 2026-01-02 {licences} --dry-run out {sources} --json"


def open_world_measures(folder: Path) -> Iterator[str]:
    """Every variant of the open-world evaluator, with and without repeated lines."""
    for world, case in (("once", owod.drawn()), ("repeated", owod.repeated())):
        (folder / world).mkdir()
        owod.files(folder / world, *case)
        files = " ".join(f"--{name} {world}/{name}.json" for name in ("truth", "detections", "classes"))
        lists = "" if world == "once" else f"--lists {world}/images.txt"
        for repeats in ("keep", "drop") if lists else ("error",):
            for profile in ("clean", "ore", "owdetr", "all"):
                out = f"--append rows.jsonl --name {world}-{repeats}"
                if profile == "all" and repeats != "drop":
                    out += f" --out {world}"
                given = f"{files} {lists} --on-error repeats={repeats} --variant {profile} {out}"
                yield f"evaluate owod {given} --json"
    listed = (folder / "once/images.txt").read_text().split()
    write_lines(folder / "half.txt", listed[::2])
    files = "--truth once/truth.json --classes once/classes.json --lists half.txt --on-error stray=drop"
    yield f"evaluate owod {files} --detections once/detections.json --variant all --task t2 --json"
    two = read(folder / "once/classes.json")
    (task,) = two["tasks"]
    two["tasks"] = [{"name": "t1", "prev": [], "cur": task["prev"], "rest": [*task["cur"], *task["rest"]]}, task]
    write_json(folder / "tasks.json", two)
    found = read(folder / "once/detections.json")
    write_json(folder / "t1.json", [one for one in found if one["category"] not in task["cur"]])
    both = "--detections t1=t1.json --detections t2=once/detections.json --classes tasks.json"
    yield f"evaluate owod --truth once/truth.json {both} --variant all --out both --json"
    write_json(folder / "none.json", [])
    none = "--truth once/truth.json --detections none.json --classes once/classes.json"
    yield f"evaluate owod {none} --variant all --json"
    yield "leaderboard rows.jsonl --json"


def rectified(folder: Path) -> Iterator[str]:
    """Every variant of the evaluator of Rectifying Open-Set Object Detection."""
    osod3_world.write_world(folder)
    given = "--truth gt.json --detections detections.json --classes classes.json"
    yield f"evaluate osod3 {given} --variant all --json"
    yield f"evaluate osod3 {given} --variant all --on-error outside=ignore --json"
    (folder / "drawn").mkdir()
    osod3.files(folder / "drawn")
    files = " ".join(f"--{name} drawn/{name}.json" for name in ("truth", "detections", "classes"))
    for outside in ("delete", "ignore"):
        more = f"--on-error outside={outside} --set thetas={','.join(osod3.THETAS)}"
        rows = f"--append rows.jsonl --name {outside}"
        yield f"evaluate osod3 {files} {more} --variant all {rows} --json"
        for profile in ("clean", "voc"):
            yield f"evaluate osod3 {files} --on-error outside={outside} --variant {profile} --json"
    cases = " ".join(
        f"--{word} {case}={path}"
        for case, *files in (
            ("small", "gt.json", "detections.json", "classes.json"),
            ("drawn", "drawn/truth.json", "drawn/detections.json", "drawn/classes.json"),
        )
        for word, path in zip(("truth", "detections", "classes"), files, strict=True)
    )
    yield f"evaluate osod3 {cases} --variant all --out cases --json"
    yield "leaderboard rows.jsonl --group 1 --metric AP_unk --json"


def out_of_distribution(folder: Path) -> Iterator[str]:
    """Every post-hoc score, and every variant and rule of FindMeIfYouCan's evaluator."""
    ood_files(folder)
    yield "scores --test ood.npz --train train.npz --layer layer.npz --out code.json --json"
    yield "scores --test ood.npz --train train.npz --layer layer.npz --k 3 --out options.csv"
    yield "scores --test ood.npz --layer layer.npz --method energy --method gen --detections results.json --out s.json"
    given = "--truth split.json --detections split-results.json --scores id-results.json"
    for profile in ("paper", "official"):
        yield f"evaluate findmeifyoucan {given} --variant {profile} --bootstrap 100 --json"
    yield f"evaluate findmeifyoucan {given} --set threshold=quantile --set fpr=nearest --json"
    splits = " ".join(f"--truth {one}={one}.json --detections {one}={one}-results.json" for one in ("near", "far"))
    both = f"{splits} --scores voc-results.json"
    yield f"evaluate findmeifyoucan {both} --score energy --score knn --set t_star=0.39 --out splits --json"
    listed = "--manifest my-split --truth coco-far=instances.json --detections coco-far=r.json --scores scores.npy"
    yield f"evaluate findmeifyoucan {listed} --variant official --set threshold=quantile --set fpr=nearest --json"
    (folder / "drawn").mkdir()
    findmeifyoucan.files(folder / "drawn")
    files = "--truth drawn/truth.json --detections drawn/detections.json --scores drawn/id_scores.json"
    for rule in ("zscore", "quantile", "7.25"):
        for profile in ("official", "paper", "all"):
            more = f"--set threshold={rule} --variant {profile} --append rows.jsonl --name {rule}-{profile}"
            yield f"evaluate findmeifyoucan {files} {more} --json"
    for fpr in ("first", "nearest", "ood_positive"):
        more = f"--set fpr={fpr} --set t_star=0.3 --bootstrap 25 --bootstrap seed=2 --out {fpr}"
        yield f"evaluate findmeifyoucan {files} {more} --json"
    rows = read(folder / "drawn/detections.json")
    draws = Draws("logits")
    for row in rows:
        row["logits"] = [draws.below(9) / 2 for _ in range(4)]
    write_json(folder / "logits.json", rows)
    logits = files.replace("drawn/detections.json", "logits.json")
    for compat in ("", "--set official_compat=yes"):
        yield f"evaluate findmeifyoucan {logits} --set id_classes=3 {compat} --json"
    yield "leaderboard rows.jsonl --json"


def classifiers(folder: Path) -> Iterator[str]:
    """Every measure of a classifier on every grid: logits, probabilities, a background column, files of every kind."""
    class_scores(folder)
    both = "--scores S=s.npz --scores BG=bg.npz --background BG=last"
    yield f"evaluate imagenet {both} --variant all --json"
    yield "evaluate imagenet --scores test.npy --labels gt.npy --kind logits --json"
    yield "evaluate imagenet --scores test.npy --labels gt.npy --kind real --set queries=0.01,0.2 --json"
    yield "evaluate imagenet --scores bg.npz --background removed --json"
    (folder / "manifests").symlink_to(ROOT / "manifests")
    yield "evaluate imagenet --scores test.parquet --manifest imagenet/p2 --part test --truth val.txt --json"
    imagenet.files(folder)
    words = "--background background=last"
    for name in imagenet.CLASSIFIERS:
        words += f" --scores {name}={name}_test.csv --scores val:{name}={name}_val.csv"
    queries = ",".join(imagenet.QUERIES)
    more = f"--variant all --set queries={queries}"
    yield f"evaluate imagenet {words} {more} --out all --append rows.jsonl --json"
    for grid in ("exact", "paper", "comparison"):
        yield f"evaluate imagenet {words} --variant {grid} --json"
    yield "leaderboard rows.jsonl --json"


def lists_of_photos(folder: Path) -> Iterator[str]:
    """The lists of every protocol that selects from COCO and VOC, under every parameter, and the authors' layouts."""
    photos.files(folder)
    paths = {name: photos.FILES.get(name, f"{name}.json") for name in photos.SIZES}

    def given(*names: str, **slots: str) -> str:
        slots = dict(zip(names, names, strict=True)) | slots
        return " ".join(f"--source {slot}={paths[name]}" for slot, name in slots.items())

    two = given(**{"voc2007-test": "voc2007-test", "coco": "coco-train2017"})
    orders = "cpython_set,cpython_set_as_listed,hash,id"
    yield f"build elephant {two} --set ratios=0.5,1 --set orders={orders} --out elephant --json"
    yield f"build elephant {two} --set ratios=0.25 --set orders=hash --set salt=other --out elephant-salt --json"
    yield f"audit elephant {two} --json"
    yield "diff elephant elephant-salt --json"
    world = given("coco-train2017", "coco-val2017")
    sizes = f"--set val_size={photos.VAL_SIZE} --set exemplars={photos.EXEMPLARS}"
    for split in ("reowod", "table2"):
        yield f"build owod {world} --set split={split} {sizes} --out {split} --json"
    exemplars = f"--set exemplars={photos.EXEMPLARS}"
    yield f"build owod {world} --set split=s-owodb {exemplars} --out s-owodb --json"
    orders = "--set order=annotation --set test_order=annotation --set crowd=ignore --set salt=mine"
    yield f"build owod {world} --set split=reowod {orders} {sizes} --out orders --json"
    mixed = given(*photos.SIZES)
    yield f"build owod {mixed} --set split=m-owodb --set val=none {exemplars} --out m-owodb --json"
    yield f"build owod {mixed} --set split=m-owodb --set repeats=keep --set exemplars=0 --out repeats --json"
    for name, sources in (("reowod", world), ("m-owodb", mixed), ("repeats", mixed)):
        yield f"audit {name} {sources} --set exemplars={photos.EXEMPLARS} --json"
    yield f"export m-owodb --format owod {mixed} --out authors"
    yield f"show m-owodb --composition {mixed} --out composition.csv --json"
    yield f"verify reowod {world} --rebuild --json"
    one = given("coco-val2017")
    for pair in ("voc", "bdd"):
        rule = f"--set pair={pair} --set start=rule --set pools=coco"
        yield f"build findmeifyoucan {one} {rule} --out {pair} --json"
        yield f"build findmeifyoucan {one} {rule} --set id_objects=ignore --out {pair}-ignore --json"
        yield f"export {pair} --format coco --part all --each --category-ids manifest {one} --out {pair}-views"
        asked = f"publish {pair} --repo me/{pair} --layout findmeifyoucan --date 2026-01-02"
        yield f"{asked} {one} --dry-run {pair}-published --json"
        yield f"audit {pair} {one} --json"
    yield f"review propose --manifest voc --source coco={paths['coco-val2017']} --out near.jsonl --json"


def lists_of_species(folder: Path) -> Iterator[str]:
    """OSOD-III's lists of Open Images, CUB and MTSD, in every case and under every parameter."""
    roots = {name: path.name for name, path in species.files(folder).items()}
    slots = {
        "openimages": ("openimages-train", "openimages-validation", "openimages-test"),
        "cub": ("cub-train", "cub-test"),
        "mtsd": ("mtsd-train", "mtsd-val"),
    }

    def build(problem: str, out: str, *settings: str) -> str:
        sources = " ".join(f"--source {one}={roots[problem]}" for one in slots[problem])
        words = " ".join(f"--set {one}" for one in (f"problem={problem}", *settings))
        return f"build osod3 {sources} {words} --out {out} --json"

    vehicles = "superclass=vehicle"
    for rotation in (1, 2, 3, 4):
        yield build("openimages", f"vehicle-{rotation}", vehicles, f"rotation={rotation}")
        yield build("cub", f"cub-{rotation}", f"rotation={rotation}")
    rules = ("inner_nodes=ignore", "group_of=ignore", "depiction=drop")
    yield build("openimages", "vehicle-rules", vehicles, *rules)
    for case in ("unknown1", "unknown2", "unknown12"):
        yield build("mtsd", f"signs-{case}", f"case={case}")
    for weighting in ("binary", "jaccard", "pmi"):
        yield build("mtsd", f"signs-{weighting}", f"weighting={weighting}", "graph_images=train", "components=giant")
    for name, problem in (("vehicle-1", "openimages"), ("cub-2", "cub"), ("signs-unknown1", "mtsd")):
        sources = " ".join(f"--source {one}={roots[problem]}" for one in slots[problem])
        yield f"audit {name} {sources} --json"
        yield f"show {name} --composition {sources} --out {name}.csv --json"
        if problem != "openimages":
            yield f"export {name} --part test --format coco {sources} --out {name}-coco"
        yield f"export {name} --part all --format txt --out {name}-lists"


def lists_of_imagenet(folder: Path) -> Iterator[str]:
    """The three protocols, from names and from counts of photos, and a protocol of one's own."""
    paths = {slot: path.name for slot, path in imagenet_lists.files(folder).items()}
    sources = " ".join(f"--source {slot}={path}" for slot, path in paths.items())
    for protocol in imagenet_lists.PROTOCOLS:
        words = f"--set protocol={protocol} --set formula=sklearn-1.0"
        yield f"build imagenet {sources} {words} --out {protocol}-sklearn-1.0 --json"
    yield f"build imagenet {sources} --set protocol=p2 --set hierarchy=dag --set seed=7 --out dag --json"
    classes = 'known = ["n02127808"]\nnegative = []\nunknown = ["n02131653"]\n[parameters]\ncut = "KN"\n'
    (folder / "cats.toml").write_text(f'extends = "imagenet/p1"\nname = "my/cats"\n[classes]\n{classes}')
    yield f"build cats.toml {sources} --out cats --json"
    names = read(folder / paths["imagenet-train"])
    write_json(folder / "few.json", {wnid: listed for wnid, listed in names.items() if hash_free(wnid)})
    few = f"--source imagenet-train=few.json --source imagenet-val={paths['imagenet-val']}"
    for missing in ("report", "restrict"):
        yield f"build imagenet {few} --set protocol=p2 --set missing={missing} --out {missing} --json"
    write_json(folder / "counts.json", dict.fromkeys(imagenet_lists.classes(), 5))
    counts = f"--source imagenet-train=counts.json --source imagenet-val={paths['imagenet-val']}"
    for protocol in imagenet_lists.PROTOCOLS:
        yield f"build imagenet {counts} --set protocol={protocol} --out counted-{protocol}"
    for name in ("p2-sklearn-1.0", "cats"):
        parts = "--part train --part val --part test"
        yield f"export {name} {parts} --format imagenet-csv {sources} --out csv-{name}"
        yield f"audit {name} {sources} --json"
        yield f"show {name} --composition {sources} --json"


def hash_free(wnid: str) -> bool:
    """Return whether a class stays in the data set that lacks some."""
    return int(wnid[1:]) % 7 != 3


def kinship(folder: Path) -> Iterator[str]:
    """The built-in tree of nouns and a tree of one's own: what is below, near, found and dropped."""
    for pair in ("dog.n.01 cat.n.01", "horse.n.01 sofa.n.01", "n02084071 n02121620"):
        yield f"hierarchy similarity {pair} --json"
    for tree in ("published", "first", "last", "dag"):
        yield f"hierarchy show n02087122 --depth 2 --tree {tree} --json"
    yield "hierarchy dropped --json"
    yield "hierarchy dropped n02084071 --tree first --json"
    yield "hierarchy find crane --json"
    edges = "beast cat,beast dog,pet cat,pet fish,cat lion,thing beast,thing pet"
    write_lines(folder / "edges.txt", edges.split(","))
    write_lines(folder / "names.txt", ["cat\tcat, house cat", "dog\tdog", "beast\tbeast"])
    own = "--edges edges.txt --set names=names.txt"
    yield f"hierarchy similarity cat dog {own} --json"
    for tree in ("first", "last", "dag"):
        yield f"hierarchy show thing --tree {tree} {own} --leaves all --json"


def verdicts(folder: Path) -> Iterator[str]:
    """Decisions of two people: what they say, and what every rule makes of them."""
    reviewed_manifest(folder)
    for rule in ("majority", "senior --senior anna", "error --on-error conflicts=keep"):
        name = rule.split()[0]
        both = f"anna.jsonl ben.csv --manifest M --rule {rule}"
        yield f"review summary {both} --out {name}.csv --json"
        given = f"--decisions anna.jsonl --decisions ben.csv --rule {rule} --near ood-near --far ood-far"
        source = "--source coco=instances.json --source voc2007-test=data/VOCdevkit/VOC2007"
        yield f"review apply M {given} {source} --version 2.0.0 --note looked --out {name} --json"
        yield f"diff M {name} --ids --json"
        yield f"verify {name} {source} --rebuild --json"
    pair_of_ones_own(folder)
    yield "build zoo.toml --source zoo=zoo.json --decisions verdicts.jsonl --out pets --json"


def audits(folder: Path) -> Iterator[str]:
    """Folders of lists with every kind of knowledge about them."""
    (folder / "manifests").symlink_to(ROOT / "manifests")
    audited_lists(folder)
    own = "--tasks tasks.json --source mine=instances.json"
    for place, options in enumerate(
        (
            "",
            "--tasks ore --source coco-train2017=instances_train2017.json",
            "--role mine=test --role extra=val:1 --role t1_val=none",
            f"{own} --exhaustive mine",
            f"{own} --view train=train --view finetune=finetune --view val=test",
            "--rules DS --namespace coco",
        )
    ):
        yield f"audit lists/ {options} --out a{place} --json"
    yield "audit owod/reowod@1.0.0 --source coco-val2017=instances_val2017.json --json"


def signals(folder: Path) -> Iterator[str]:
    """Photos as vectors, their neighbours and duplicates, and proposals from every signal."""
    from tests.signals.similarity.clip_world import write_photos

    for name, count in (("id", 12), ("ood", 4), ("near", 3), ("far", 5)):
        write_photos(folder / f"{name}-photos", count)
        yield f"similarity embed --photos {name}-photos --encoder colour --out stores/{name} --json"
    yield "similarity neighbors --queries stores/ood --references stores/id -k 10 --out near --json"
    sets = "--queries near=stores/near --queries far=stores/far --references stores/id --set-similarity"
    yield f"similarity neighbors {sets} --out sets --json"
    yield f"similarity neighbors {sets} --set sample=all --json"
    yield "similarity duplicates --photos id-photos --out same --json"
    yield "similarity duplicates --photos id-photos --against far-photos --distance 8 --json"
    names = {name: number for number, name in COCO.items()}
    shown = {1: ["zebra"], 2: ["couch"], 3: ["laptop"], 4: [], 5: ["horse", "cup"], 6: ["cow"], 7: ["bowl", "bed"]}
    write_coco(folder / "ood.json", shown, names)
    write_lines(folder / "voc.txt", ["horse", "sofa", "dining table"])
    rows = [
        {"image_id": image, "category_id": 7, "score": score, "bbox": [0, 0, 9, 9]}
        for image, score in ((3, 0.9), (4, 0.5), (6, 0.4))
    ]
    write_json(folder / "detections.json", rows)
    write_json(folder / "detector.json", {"categories": [{"id": 7, "name": "horse"}]})
    given = "review propose --classes voc.txt --source coco=ood.json"
    yield f"{given} --out names.jsonl --json"
    yield f"{given} --set near_wup=0.7 --near coco=laptop --far coco=bowl --out words.jsonl --json"
    seen = "--detections detections.json --detections categories=detector.json"
    yield f"{given} {seen} --out seen.jsonl --json"
    yield f"{given} {seen} --set agreeing=1 --set detector_score=0.45 --out agreed.jsonl --json"


WORLDS: dict[str, Callable[[Path], Iterator[str]]] = {
    "exports": exports_of_two_datasets,
    "elephant": wilderness,
    "precision": average_precision,
    "owod": open_world,
    "owod_measures": open_world_measures,
    "osod3": rectified,
    "ood": out_of_distribution,
    "imagenet": classifiers,
    "photos": lists_of_photos,
    "species": lists_of_species,
    "imagenet_lists": lists_of_imagenet,
    "kinship": kinship,
    "decisions": verdicts,
    "audit": audits,
    "signals": signals,
}
