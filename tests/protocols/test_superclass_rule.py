"""The rule ``superclass`` on drawn sources, beside a selection in plain Python; wrong files are one error each."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.benchmarks.rules.benchmark_file import read_benchmark_file
from curation.benchmarks.rules.starting import start_benchmark
from curation.benchmarks.rules.superclass import build as build_rule
from curation.cli import main
from curation.core.errors import CurationError
from curation.manifest.manifest import Manifest
from curation.sources.opening import open_path
from tests.protocols.test_wilderness_rule import drawn, require_error
from tests.shell import Shell

TOOLS, FASTENERS = ["hammer", "saw", "drill", "wrench"], ["bolt", "nut", "screw", "washer"]
NAMES = [*TOOLS, *FASTENERS, "glove", "hand"]
FILE = """\
rule = "superclass"
name = "mylab/tools"
[sources]
train = { dataset = "tools" }
test = { dataset = "tools" }
[classes]
ignored = ["hand"]
[classes.aliases]
bolt = ["Bolt"]
[classes.groups]
thing = ["tool", "fastener"]
tool = ["hammer", "saw", "drill", "wrench"]
fastener = ["bolt", "nut", "screw", "washer"]
[parameters]
superclass = "thing"
rotation = 2
val = 0.2
[expect]
"test.images" = { value = 70, place = "our count" }
"""
CUT = FILE.replace('[classes.groups]\nthing = ["tool", "fastener"]\n', "").replace(
    'tool = ["hammer", "saw", "drill", "wrench"]\nfastener = ["bolt", "nut", "screw", "washer"]\n', ""
)
CUT = CUT.replace('superclass = "thing"\nrotation = 2', "cut = 2").replace(
    'ignored = ["hand"]', 'negative = ["hand", "glove"]'
)

PLAIN = FILE.replace("rotation = 2\n", "")
TASK = '[[classes.tasks]]\nname = "t"\nclasses = ["saw"]\n'


def write(folder: Path, seed: int = 3) -> None:
    """Write two sources, whose second one spells a class otherwise, and the benchmark file."""
    rng = random.Random(seed)
    (folder / "train.json").write_text(json.dumps(drawn(rng, 90, NAMES, 1, 4)))
    test = drawn(rng, 80, ["Bolt" if name == "bolt" else name for name in NAMES], 5000, 4)
    (folder / "test.json").write_text(json.dumps(test))
    (folder / "mine.toml").write_text(FILE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


def build(folder: Path, text: str = FILE) -> Manifest:
    """Build the benchmark file from the sources in its folder."""
    (folder / "mine.toml").write_text(text)
    return curation.build(folder / "mine.toml", sources=sources(folder))


def sources(folder: Path) -> dict[str, Path]:
    return {"train": folder / "train.json", "test": folder / "test.json"}


def shown(path: Path) -> dict[str, set[str]]:
    """Return the classes that each image of a file shows, by id."""
    coco = json.loads(path.read_text())
    names = {each["id"]: each["name"].lower() for each in coco["categories"]}
    classes: dict[str, set[str]] = {f"tools:{image['id']}": set() for image in coco["images"]}
    for each in coco["annotations"]:
        classes[f"tools:{each['image_id']}"].add(names[each["category_id"]])
    return classes


def roles(made: Manifest, role: str) -> list[str]:
    return [entry.name for entry in made.header.classes if entry.role == role]


def require_lists(folder: Path, made: Manifest, known: set[str], unknown: set[str], share: str, *, alone: bool) -> None:
    """Check every list of a manifest against a selection in plain Python."""
    train, test = shown(folder / "train.json"), shown(folder / "test.json")
    chosen = [name for name, classes in train.items() if classes & known and not (alone and classes & unknown)]
    ranked = sorted(chosen, key=lambda name: hashlib.sha256(f"mylab/tools/val/{name}".encode()).digest())
    size = int(Fraction(share) * len(chosen) + Fraction(1, 2))
    assert {*roles(made, "known")} == known
    assert {*roles(made, "unknown")} == unknown
    if size:
        assert made.ids("val") == tuple(sorted(ranked[:size]))
    assert made.ids("train") == tuple(sorted(ranked[size:]))
    assert made.ids("test") == tuple(sorted(name for name, classes in test.items() if classes & (known | unknown)))


@pytest.mark.parametrize("seed", range(12))
def test_lists_are_those_of_a_plain_selection(tmp_path: Path, seed: int) -> None:
    """The parts of the classes and every list equal those in plain Python, in each rotation and convention."""
    write(tmp_path, seed)
    number, n_parts, alone = seed % 3 + 1, (3, 4)[seed % 2], seed % 4 > 1
    convention, share = ("part_known", "part_unknown")[seed // 3 % 2], ("0.2", "0")[seed // 6]
    settings = f'rotation = {number}\nparts = {n_parts}\nuneven = "first"\nconvention = "{convention}"\n'
    settings += 'train_unknown = "leave-out"\n' if alone else ""
    made = build(tmp_path, FILE.replace("rotation = 2\n", settings).replace("val = 0.2", f"val = {share}"))
    things = [*TOOLS, *FASTENERS]
    ordered = sorted(things, key=lambda name: hashlib.sha256(f"mylab/tools:{name}".encode()).hexdigest())
    sizes = [8 // n_parts + (place < 8 % n_parts) for place in range(n_parts)]
    start = sum(sizes[: number - 1])
    part = set(ordered[start : start + sizes[number - 1]])
    known, unknown = part, {*things} - part
    if convention == "part_unknown":
        known, unknown = unknown, known
    require_lists(tmp_path, made, known, unknown, share, alone=alone)
    assert (roles(made, "ignored"), roles(made, "negative")) == (["hand"], ["glove"])
    parameters = made.header.rule.parameters
    assert parameters["superclass_members"] == tuple(sorted(things))
    assert parameters[f"part_{number}"] == tuple(sorted(part))
    assert (made.header.taxonomy, made.header.paper) == ("OSOD-III", None)
    assert made.header.notes == ("Rule superclass (after Hosoya et al. 2023); data: user.",)
    train = [classes for classes in shown(tmp_path / "train.json").values() if classes & part]
    figures = {figure.name: figure.obtained for figure in made.header.figures}
    assert figures[f"part_{number}.train_images"] == len(train)


@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_those_of_the_lowest_normalized_cut(tmp_path: Path, seed: int) -> None:
    """The cut equals the best of all divisions into two; an alias counts as its class, an outside class not at all."""
    write(tmp_path, seed)
    made = build(tmp_path, CUT)
    things = sorted([*TOOLS, *FASTENERS])
    weight = dict.fromkeys(itertools.product(things, things), 0)
    for classes in shown(tmp_path / "train.json").values():
        for pair in itertools.permutations(classes & {*things}, 2):
            weight[pair] += 1
    values = []
    for size in range(1, len(things)):
        for left in itertools.combinations(things, size):
            right = [name for name in things if name not in left]
            cut = sum(weight[pair] for pair in itertools.product(left, right))
            volumes = [sum(weight[pair] for pair in itertools.product(side, things)) for side in (left, right)]
            values += [(sum(Fraction(cut, volume) for volume in volumes), {*left})] if all(volumes) else []
    lowest = min(value for value, _ in values)
    parameters = made.header.rule.parameters
    assert Fraction(str(parameters["cut_ncut"])) == lowest
    known = {*roles(made, "known")}
    assert (lowest, known) in values
    assert len(known) >= 4
    require_lists(tmp_path, made, known, {*things} - known, "0.2", alone=False)


def test_stated_lists_and_a_source_of_validation_images(folder: Path) -> None:
    """Known classes may be listed; the rest of the super-class is unknown, less classes with another role."""
    (folder / "val.json").write_text(json.dumps(drawn(random.Random(9), 40, NAMES, 9000, 4)))
    text = FILE.replace("rotation = 2\nval = 0.2\n", "").replace("[classes]\n", '[classes]\nknown = ["tool"]\n')
    text = text.replace("test = {", 'check = { as = "val", dataset = "other" }\ntest = {').replace(
        'ignored = ["hand"]', 'ignored = ["hand", "nut"]'
    )
    (folder / "mine.toml").write_text(text)
    made = curation.build(folder / "mine.toml", sources={**sources(folder), "check": folder / "val.json"})
    assert (roles(made, "known"), roles(made, "unknown")) == (TOOLS, ["bolt", "screw", "washer"])
    expected = [name for name, classes in shown(folder / "val.json").items() if classes & {*TOOLS}]
    assert made.ids("val") == tuple(sorted(name.replace("tools", "other") for name in expected))
    assert made.header.rule.parameters["superclass_left_out"] == ("nut",)


def test_spelling_does_not_change_the_digest_and_a_rebuild_is_equal(folder: Path) -> None:
    """A default that is written out, a list in a file and ``0.20`` are the same benchmark; its file rebuilds it."""
    digest = build(folder).digest
    (folder / "ignored.txt").write_text("hand\n\n")
    text = FILE.replace("val = 0.2", 'val = "0.20"\nparts = 4\nuneven = "refuse"').replace(
        'ignored = ["hand"]', 'ignored = { file = "ignored.txt" }'
    )
    made = build(folder, text)
    assert made.digest == digest
    made.save(folder / "made")
    assert curation.verify(folder / "made", sources=sources(folder), rebuild=True).verdict == "verified"


def test_a_detector_is_scored_against_the_remembered_truth_as_by_pycocotools(folder: Path, shell: Shell) -> None:
    """AP of known and unknown equal those of pycocotools on truth and detections that were relabelled by hand."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    made, test, rng = build(folder), json.loads((folder / "test.json").read_text()), random.Random(2)
    known, unknown = roles(made, "known"), {*roles(made, "unknown")}
    names = {each["id"]: each["name"].lower() for each in test["categories"]}
    for each in test["annotations"]:
        each["bbox"] = [rng.randint(0, 30), rng.randint(0, 20), rng.randint(8, 30), rng.randint(8, 20)]
        each["area"], each["iscrowd"] = each["bbox"][2] * each["bbox"][3], 0
    (folder / "test.json").write_text(json.dumps(test))
    build(folder).save(folder / "again")
    label = {name: name for name in known} | dict.fromkeys([*unknown, "hand"], "unknown")
    rows = []
    for each in test["annotations"]:
        box = [value + rng.randint(-2, 2) for value in each["bbox"]]
        name = label.get(names[each["category_id"]], "unknown")
        rows.append({"image_id": each["image_id"], "category": name, "bbox": box, "score": round(rng.random(), 6)})
    (folder / "results.json").write_text(json.dumps(rows))
    told = shell.data("evaluate", str(folder / "again"), "--detections", str(folder / "results.json"), "--json")
    measures = {row["measure"]: row["value"] for row in told["measures"]}
    inside = {int(name.partition(":")[2]) for name in curation.load(folder / "again").ids("test")}
    numbers = {name: number for number, name in enumerate([*known, "unknown"], 1)}
    objects = [
        {
            **each,
            "category_id": numbers[label[names[each["category_id"]]]],
            "iscrowd": names[each["category_id"]] == "hand",
        }
        for each in test["annotations"]
        if each["image_id"] in inside and names[each["category_id"]] in label
    ]
    images = [image for image in test["images"] if image["id"] in inside]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {"images": images, "annotations": objects, "categories": [{"id": n} for n in numbers.values()]}
        truth.createIndex()
        scored = [{**row, "category_id": numbers[row["category"]]} for row in rows if row["image_id"] in inside]
        engine = COCOeval(truth, truth.loadRes(scored), "bbox")
        engine.evaluate()
        engine.accumulate()
    precision = engine.eval["precision"][:, :, :, 0, 2]
    average = [float(precision[:, :, place].mean()) for place in range(len(numbers))]
    assert measures["AP_unk"] / 100 == pytest.approx(average[-1], abs=1e-9)
    assert measures["AP_known"] / 100 == pytest.approx(sum(average[:-1]) / len(known), abs=1e-9)
    assert len(scored) < len(rows)
    (folder / "results.json").write_text(json.dumps([rows[0] | {"category": "glove"}]))
    refused = shell.err("evaluate", str(folder / "again"), "--detections", str(folder / "results.json"))
    assert "detections of unknown objects have the class unknown" in refused
    assert "task" not in refused


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        (FILE, '"superclass"\n', '"superclas"\n', ["names no rule", 'rule = "superclass"']),
        (FILE, "superclass = ", "superclas = ", ["line 15", "did you mean superclass?"]),
        (FILE, '"thing"\nrot', '"thin"\nrot', ["not a group", 'superclass = "thing"']),
        (FILE, 'superclass = "thing"\n', "", ["either a super-class or a cut", "neither"]),
        (FILE, "rotation = 2", "cut = 2", ["either a super-class or a cut", "both"]),
        (FILE, "rotation = 2", "rotation = 5", ["Unknown part", "1 to 4"]),
        (FILE, "rotation = 2", "parts = 3", ["equal parts", "a multiple of 3"]),
        (FILE, "rotation = 2", "parts = 1", ["line 16", "parts"]),
        (FILE, "val = 0.2", "val = 0.6", ["0 to 0.5"]),
        (FILE, "val = 0.2", "val = 0.001", ["Part val has no images", "val = 0 in [parameters]"]),
        (FILE, "val = 0.2", 'weighting = "pmi"', ["no effect", "weighting", "with cut"]),
        (FILE, "val = 0.2", 'weighting = "log"', ["line 17", "weighting"]),
        (FILE, "val = 0.2", 'train_unknown = "drop"', ["line 17", "train_unknown"]),
        (FILE, "test = {", "tset = {", ["Unknown source", "train, tset"]),
        (FILE, "test = {", 'test = { as = "train", ', ["test images", "test as train"]),
        (
            FILE.replace("rotation = 2", "parts = 3"),
            '"washer"]',
            '"washer", "gear"]',
            ["class gear", 'absent = ["gear"]'],
        ),
        (FILE, '[classes.aliases]\nbolt = ["Bolt"]', "", ["class bolt", '[classes.aliases] bolt = ["Bolt"]']),
        (FILE, 'bolt = ["Bolt"]', 'bolt = ["Bolt"]\nbolts = ["B"]', ["does not have", "[classes.aliases] bolts"]),
        (FILE, "[classes]\n", '[classes]\nabsent = ["gear"]\n', ["does not have", "absent: gear"]),
        (PLAIN, "[classes]\n", '[classes]\nknown = ["glove"]\n', ["does not belong", "glove"]),
        (FILE, "[classes]\n", '[classes]\nknown = ["tool"]\n', ["no effect", "rotation"]),
        (PLAIN, "[classes]\n", '[classes]\nknown = ["thing"]\n', ["has one role"]),
        (
            PLAIN,
            "[classes]\n",
            '[classes]\nknown = ["saw"]\nunknown = ["drill"]\n',
            ["has one role", "no role: hammer"],
        ),
        (FILE, 'thing = ["tool"', 'thing = ["thing"', ["contains itself"]),
        (FILE, 'ignored = ["hand"]', 'ignored = ["hand", "thing"]', ["equal parts", "0"]),
        (FILE, 'ignored = ["hand"]', 'ignored = ["hand"]\nnegative = ["hand"]', ["two roles", "hand"]),
        (FILE, "[expect]", "[views.tests]\n[expect]", ["no effect", "[views] tests", "train, test, val"]),
        (FILE, "[classes.aliases]", f"{TASK}[classes.aliases]", ["no effect", "tasks"]),
        (
            FILE.replace("rotation = 2", "parts = 3").replace('"washer"]', '"washer", "gear"]'),
            "[classes]\n",
            '[classes]\nabsent = ["gear"]\n',
            ["no category of a known class", 'negative = ["gear"]'],
        ),
        (FILE, '"test.images"', '"tests.images"', ["expects an unknown figure", "test"]),
        (CUT, "cut = 2", "cut = 9", ["number of clusters", "2 to 8", "superclass in [parameters]"]),
        (CUT, "cut = 2", "cut = 2\nparts = 3", ["no effect", "parts"]),
        (CUT, "cut = 2", "cut = 2\nrotation = 3", ["Unknown part", "1 to 2"]),
        (CUT, "[classes]\n", '[classes]\nknown = ["saw"]\n', ["no effect", "known"]),
        (CUT, "cut = 2", 'cut = 2\nsuperclass = "tool"', ["either a super-class or a cut", "both"]),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_error_that_names_line_and_key(
    folder: Path, text: str, old: str, new: str, words: list[str]
) -> None:
    """The error says where, and what would be right."""
    assert old in text
    require_error(lambda: build(folder, text.replace(old, new, 1)), words)


def test_sources_that_do_not_fit(folder: Path) -> None:
    """Image classes, classes that never meet, or a test set without unknown classes are one error, with what works."""
    for name in ("train", "test"):
        coco = json.loads((folder / f"{name}.json").read_text())
        spelled = {each["id"]: each["name"] for each in coco["categories"]}
        rows = {each["image_id"]: spelled[each["category_id"]] for each in coco["annotations"]}
        lines = [f"{image}.jpg,{label}\n" for image, label in rows.items()]
        (folder / f"{name}.csv").write_text("image,class\n" + "".join(lines))
        objects = {each["image_id"]: each for each in coco["annotations"]}
        (folder / f"{name}_alone.json").write_text(json.dumps({**coco, "annotations": [*objects.values()]}))
    (folder / "mine.toml").write_text(FILE)
    with pytest.raises(CurationError, match="needs boxes"):
        curation.build(folder / "mine.toml", sources={name: folder / f"{name}.csv" for name in ("train", "test")})
    (folder / "mine.toml").write_text(CUT)
    alone = {name: folder / f"{name}_alone.json" for name in ("train", "test")}
    with pytest.raises(CurationError, match=r"superclass in .parameters"):
        curation.build(folder / "mine.toml", sources=alone)
    coco = json.loads((folder / "train.json").read_text())
    halves = sorted(spelled)[::2], sorted(spelled)[1::2]
    pairs = [(image["id"], number) for row, image in enumerate(coco["images"]) for number in halves[row % 2]]
    box = {"bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0}
    coco["annotations"] = [
        {"id": row, "image_id": image, "category_id": number, **box} for row, (image, number) in enumerate(pairs, 1)
    ]
    (folder / "train_apart.json").write_text(json.dumps(coco))
    with pytest.raises(CurationError, match='components = "giant" in'):
        curation.build(folder / "mine.toml", sources=alone | {"train": folder / "train_apart.json"})
    coco = json.loads((folder / "test.json").read_text())
    numbers = {each["id"] for each in coco["categories"] if each["name"] in TOOLS}
    coco["annotations"] = [each for each in coco["annotations"] if each["category_id"] in numbers]
    (folder / "test.json").write_text(json.dumps(coco))
    text = PLAIN.replace("[classes]\n", '[classes]\nknown = ["tool"]\n')
    with pytest.raises(CurationError, match="No test image shows an unknown class"):
        build(folder, text)


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        (["dog", "cat", "horse", "zebra", "cow", "sheep", "tree"], ['superclass = "placental"', "parts = 3"]),
        (NAMES, ["cut = 3", 'components = "error"']),
    ],
)
def test_init_writes_a_file_that_builds_as_it_is(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, names: list[str], lines: list[str]
) -> None:
    """Groups come from WordNet where it has the names, else the classes are cut; four commands lead to a score."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(1)
    for first, part in ((1, "train"), (500, "test")):
        (tmp_path / f"{part}.json").write_text(json.dumps(drawn(rng, 60, names, first, 3)))
    given = ["--source", "train=train.json", "--source", "test=test.json"]
    assert main(["init", "superclass", *given, "--out", "mine.toml"]) == 0
    text = (tmp_path / "mine.toml").read_text()
    assert all(f"{line}\n" in text for line in lines), text
    assert main(["build", "mine.toml", *given, "--out", "made"]) == 0
    assert main(["verify", "made", "--rebuild"]) == 0
    made = curation.load(tmp_path / "made")
    known, image = roles(made, "known"), int(made.ids("test")[0].partition(":")[2])
    rows = [{"image_id": image, "category": known[0], "bbox": [1, 1, 9, 9], "score": 0.5}]
    (tmp_path / "results.json").write_text(json.dumps(rows))
    assert main(["evaluate", "made", "--detections", "results.json"]) == 0


def test_init_finds_a_file_for_classes_that_never_meet(tmp_path: Path) -> None:
    """Images of one object each have no co-occurrence: all classes are one super-class."""
    rng = random.Random(1)
    for first, part in ((1, "train"), (500, "test")):
        coco = drawn(rng, 40, FASTENERS, first, 3)
        objects = {each["image_id"]: each for each in coco["annotations"]}
        (tmp_path / f"{part}.json").write_text(json.dumps({**coco, "annotations": [*objects.values()]}))
    given = [f"--source={part}={tmp_path / part}.json" for part in ("train", "test")]
    assert main(["init", "superclass", *given, "--out", str(tmp_path / "mine.toml")]) == 0
    made = curation.build(tmp_path / "mine.toml", sources=sources(tmp_path))
    assert made.header.rule.parameters["superclass_members"] == tuple(sorted(FASTENERS))
    with pytest.raises(CurationError, match="source of training images"):
        start_benchmark("superclass", source=tmp_path / "train.json")


def test_a_stored_file_is_checked_as_a_users_own(folder: Path) -> None:
    """What a foreign manifest states as its benchmark file ends in one error, never in a traceback."""
    made = build(folder)
    stored = json.loads(str(made.header.rule.parameters["file"]))
    assert stored["parameters"] == {"rotation": 2, "superclass": "thing", "val": "0.2"}
    for change in (
        {"parameters": {"cut": -1}},
        {"parameters": {"val": "NaN"}},
        {"parameters": {"parts": "four"}},
        {"parameters": {"superclass": ["thing"]}},
        {"classes": {"ignored": {"file": "k"}}},
        {"classes": {"groups": {"thing": "saw"}}},
    ):
        with pytest.raises(CurationError):
            read_benchmark_file(json.dumps(stored | change))
    rings = {f"g{n}": [f"g{n + 1}", f"g{n + 1}"] for n in range(45)}
    changes: list[dict[str, Any]] = [
        {"parameters": {"superclass": "g0"}, "classes": {"groups": rings}},
        {"parameters": {"superclass": "thing", "rotation": 999}},
        {"sources": {"train": {"as": "test"}, "test": {}}},
        {"sources": {"train": {}}, "classes": {}},
    ]
    for other in changes:
        header = made.header.rule.parameters | {"file": json.dumps(stored | other)}
        opened = {name: open_path(path, dataset="tools", part="") for name, path in sources(folder).items()}
        with pytest.raises(CurationError):
            build_rule(opened, header)
