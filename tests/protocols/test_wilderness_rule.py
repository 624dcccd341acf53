"""The rule ``wilderness`` on drawn sources, beside a selection in plain Python; wrong files are one error each."""

from __future__ import annotations

import hashlib
import json
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.benchmarks.rules.benchmark_file import read_benchmark_file, stated_in
from curation.cli import main
from curation.core.errors import CurationError
from curation.manifest.manifest import read_manifest
from tests.shell import Shell

FILE = """\
rule = "wilderness"
name = "mylab/parts"
[sources]
closed = { dataset = "parts" }
wild = { dataset = "factory" }
yard = { required = false, dataset = "yard" }
[classes]
known = ["bolt", "nut"]
[classes.aliases]
bolt = ["Bolt"]
[parameters]
ratios = [0.5, "1.00"]
orders = ["hash", "id"]
[expect]
"closed.images" = { value = 20, place = "our count" }
"""


def drawn(rng: random.Random, images: int, names: list[str], first: int, most: int) -> dict[str, Any]:
    """Return COCO annotations with up to `most` objects an image, its images in no order."""
    records = [{"id": first + 7 * n, "file_name": f"{first}_{n}.jpg", "width": 64, "height": 48} for n in range(images)]
    rng.shuffle(records)
    boxes = [(image["id"], rng.randrange(len(names))) for image in records for _ in range(rng.randint(0, most))]
    return {
        "images": records,
        "annotations": [
            {
                "id": n,
                "image_id": image,
                "category_id": 3 * k + 1,
                "bbox": [1, 1, 9, 9],
                "area": 81,
                "iscrowd": n % 9 == 0,
            }
            for n, (image, k) in enumerate(boxes, 1)
        ],
        "categories": [{"id": 3 * k + 1, "name": name} for k, name in enumerate(names)],
    }


def without(coco: dict[str, Any], names: set[str], dataset: str) -> list[str]:
    """Return the ids of the images that show none of some classes."""
    numbers = {each["id"] for each in coco["categories"] if each["name"] in names}
    shown = {each["image_id"] for each in coco["annotations"] if each["category_id"] in numbers}
    return [f"{dataset}:{image['id']}" for image in coco["images"] if image["id"] not in shown]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with three sources and the benchmark file."""
    rng = random.Random(5)
    (tmp_path / "parts.json").write_text(json.dumps(drawn(rng, 20, ["bolt", "nut"], 1000, 3)))
    (tmp_path / "factory.json").write_text(json.dumps(drawn(rng, 60, ["Bolt", "nut", "cable", "tool"], 5, 2)))
    (tmp_path / "yard.json").write_text(json.dumps(drawn(rng, 40, ["leaf", "nut", "bolt"], 5, 2)))
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path


def require_error(make: Callable[[], Any], words: Iterable[str]) -> None:
    """Check that a call is refused with an error that has some words."""
    with pytest.raises(CurationError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def build(folder: Path, **more: Path) -> Any:
    """Build the benchmark file from the sources in its folder."""
    return curation.build(
        folder / "mine.toml", sources={"closed": folder / "parts.json", "wild": folder / "factory.json", **more}
    )


@pytest.mark.parametrize("rule", ["wilderness", "tasks", "superclass"])
def test_init_proposes_other_names_of_a_class_in_the_other_source(rule: str, tmp_path: Path, shell: Shell) -> None:
    """VOC's names are found among COCO's: no airplane is in the wilderness, and none is unknown in a test."""
    rng = random.Random(8)
    for name, first, classes in (
        ("voc", 1, ["aeroplane", "sofa", "cat"]),
        ("coco", 9000, ["couch", "airplane", "cat", "kite"]),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(drawn(rng, 90, classes, first, 2)))
    uses = ("closed", "wild") if rule == "wilderness" else ("train", "test")
    sources = {use: tmp_path / f"{name}.json" for use, name in zip(uses, ("voc", "coco"), strict=True)}
    words = [word for use, path in sources.items() for word in ("--source", f"{use}={path}")]
    shell.out("init", rule, *words, "--out", tmp_path / "mine.toml")
    written = tomllib.loads((tmp_path / "mine.toml").read_text())
    assert written["classes"]["aliases"] == {"aeroplane": ["airplane"], "sofa": ["couch"]}
    made = curation.build(tmp_path / "mine.toml", sources=sources)
    assert not {"airplane", "couch"} & {entry.name for entry in made.header.classes}
    if rule == "wilderness":
        read = json.loads(sources["wild"].read_text())
        native = {name.rpartition(":")[2] for name in made.ids("wilderness")}
        plain = without(read, {"couch", "airplane", "cat"}, "x")
        assert native == {name.rpartition(":")[2] for name in plain}


@pytest.mark.parametrize("several", [False, True])
def test_lists_are_those_of_a_plain_selection(folder: Path, several: bool) -> None:
    """Every list equals one in plain Python, in both orders; a source of the file may be left out."""
    made = build(folder, **({"yard": folder / "yard.json"} if several else {}))
    read = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("parts", "factory", "yard")}
    known = {"bolt", "Bolt", "nut"}
    wilderness = without(read["factory"], known, "factory") + (without(read["yard"], known, "yard") if several else [])
    by_hash = sorted(wilderness, key=lambda name: hashlib.sha256(f"mylab/parts{name}".encode()).digest())
    assert sorted(made.ids("closed")) == sorted(f"parts:{image['id']}" for image in read["parts"]["images"])
    assert made.ids("wilderness") == tuple(sorted(wilderness))
    for ratio in ("0.5", "1"):
        size = int(Fraction(ratio) * 20)
        assert made.ids(f"wr{ratio}") == tuple(sorted(by_hash[:size]))
        assert made.ids(f"wr{ratio}-id") == tuple(sorted(wilderness)[:size])
    assert made.header.figures[0].obtained == 20
    assert (made.header.paper, made.header.rule.protocol) == (None, "wilderness")
    assert "Dhamija" in made.header.notes[0]


def test_spelling_does_not_change_the_digest_and_a_rebuild_is_equal(folder: Path) -> None:
    """``1.00`` and ``1`` are one ratio, a list in a file is that list; the stored file rebuilds the manifest."""
    digest = build(folder).digest
    (folder / "known.txt").write_text("bolt\n\nnut\n")
    text = FILE.replace('"1.00"', "1").replace('known = ["bolt", "nut"]', 'known = { file = "known.txt" }')
    (folder / "mine.toml").write_text(text)
    made = build(folder)
    assert made.digest == digest
    made.save(folder / "made")
    assert (
        curation.verify(
            folder / "made", sources={"closed": folder / "parts.json", "wild": folder / "factory.json"}, rebuild=True
        ).verdict
        == "verified"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"wilderness"', '"wildernes"', ["names no rule", 'rule = "wilderness"']),
        ('rule = "wilderness"\n', "", ["names no rule", "no key rule"]),
        ('"mylab/parts"', '"MyLab"', ["line 2", "lower-case"]),
        ('"mylab/parts"', '"elephant/mine"', ["belongs to a benchmark"]),
        ("known =", "knwon =", ["line 8", "[classes]", "did you mean known?"]),
        ('{ dataset = "parts" }', '{ datset = "parts" }', ["line 4", "did you mean dataset?"]),
        ("ratios =", "ratio =", ["line 12", "[parameters]", "did you mean ratios?"]),
        ("[0.5,", "[0,", ["positive decimals"]),
        ("[0.5,", '["half",', ["line 12", "ratios"]),
        ("[0.5,", "[500,", ["not enough", "floor(500 * 20)", "ratios = ["]),
        ('"hash", "id"', '"random"', ["line 13", "random"]),
        ("[classes]", "[classes", ["not TOML", "line 7"]),
        ('bolt = ["Bolt"]', 'bolts = ["Bolt"]', ["[classes.aliases] bolts", "did you mean bolt?"]),
        ('[classes.aliases]\nbolt = ["Bolt"]', "", ["class bolt", '[classes.aliases] bolt = ["Bolt"]']),
        ('"nut"]', '"nut", "gear"]', ["class gear", 'absent = ["gear"]']),
        ('"bolt", "nut"]', '"bolt"]', ["'nut'", "strangers"]),
        ("known =", 'unknown = ["nut"]\nknown =', ["two roles", "nut"]),
        ("closed = {", "test = {", ["source closed", "test, wild"]),
        ('"closed.images"', '"close.images"', ["expects an unknown figure", "closed"]),
        ("value = 20", 'value = "x"', ["line 15", "value"]),
        ('"factory"', '"Factory"', ["lines 4, 5, 6", "dataset"]),
        ('known = ["bolt", "nut"]', 'known = "bolt"', ["line 8", "known"]),
        ('known = ["bolt", "nut"]', 'known = { file = "no.txt" }', ["no.txt"]),
        ('known = ["bolt", "nut"]', 'known = ["all"]\ngroups = { all = ["all"] }', ["contains itself"]),
        ("[sources]", 'code = "os:system"\n[sources]', ["unknown key", "code"]),
    ],
)
def test_a_wrong_file_is_one_error_that_names_line_and_key(folder: Path, old: str, new: str, words: list[str]) -> None:
    """The error says where, and what would be right."""
    assert old in FILE
    (folder / "mine.toml").write_text(FILE.replace(old, new, 1))
    require_error(lambda: build(folder), words)


def test_strangers_and_unannotated_images(folder: Path) -> None:
    """Closed images with other classes are left out or kept, images without annotations are left out, as stated."""
    text = FILE.replace('"bolt", "nut"]', '"bolt"]')
    read = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("parts", "factory")}
    annotated = {each["image_id"] for each in read["factory"]["annotations"]}
    for strangers, closed in (("keep", 20), ("leave-out", len(without(read["parts"], {"nut"}, "parts")))):
        settings = f'strangers = "{strangers}"\nunannotated = "leave-out"\n'
        (folder / "mine.toml").write_text(text.replace('ratios = [0.5, "1.00"]', f"{settings}ratios = [0.5]"))
        made = build(folder)
        assert len(made.ids("closed")) == closed
        expected = [n for n in without(read["factory"], {"Bolt"}, "factory") if int(n.partition(":")[2]) in annotated]
        assert made.ids("wilderness") == tuple(sorted(expected))


def test_a_training_source_is_a_part_without_boxes_of_unknown_classes(folder: Path) -> None:
    """It is searched for no wilderness; all of its images are in, labelled with known classes unless a view says so."""
    training = drawn(random.Random(2), 12, ["bolt", "nut", "cable"], 70_000, 3)
    (folder / "train.json").write_text(json.dumps(training))
    known, wilderness = (
        sum(each["category_id"] < 7 for each in training["annotations"]),
        build(folder).ids("wilderness"),
    )
    for view, unknown in (("", 0), ('[views.train]\nunknown = "keep"\n', len(training["annotations"]) - known)):
        (folder / "mine.toml").write_text(FILE.replace("[classes]", f"train = {{}}\n{view}[classes]", 1))
        made = build(folder, train=folder / "train.json")
        part = made.part("train")
        assert (part.role, len(made.ids("train")), made.ids("wilderness")) == ("train", 12, wilderness)
        assert (part.boxes["known"], part.boxes.get("unknown", 0)) == (known, unknown)


def test_the_same_images_in_two_sources_are_refused(folder: Path) -> None:
    """One file as closed set and as wilderness is no open-set benchmark."""
    text = FILE.replace('dataset = "factory"', 'dataset = "parts"')
    (folder / "mine.toml").write_text(text)
    shared = json.loads((folder / "parts.json").read_text())
    shared["categories"].append({"id": 99, "name": "gear"})
    shared["annotations"] = [each | {"category_id": 99} for each in shared["annotations"]]
    (folder / "other.json").write_text(json.dumps(shared))
    with pytest.raises(CurationError, match="same images"):
        curation.build(folder / "mine.toml", sources={"closed": folder / "parts.json", "wild": folder / "other.json"})


def results(coco: dict[str, Any], rng: random.Random, chosen: set[int]) -> list[dict[str, Any]]:
    """Return detections of the classes 1 and 4 on some images."""
    images = [image["id"] for image in coco["images"] if image["id"] in chosen]
    box = {"bbox": [1, 1, 9, 9]}
    return [
        {"image_id": image, "category_id": rng.choice([1, 4]), "score": round(rng.random(), 4), **box}
        for image in images
        for _ in range(2)
    ]


def test_a_manifest_is_scored_by_its_rule_and_detections_outside_its_part_are_left_out(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A detector that ran on the whole source gives the numbers of one that ran on the part."""
    monkeypatch.chdir(folder)
    words = ["build", "mine.toml", "--source", "closed=parts.json", "--source", "wild=factory.json", "--out", "made"]
    assert main(words) == 0
    closed, wild = (json.loads((folder / f"{name}.json").read_text()) for name in ("parts", "factory"))
    rng = random.Random(1)
    inside = {int(name.partition(":")[2]) for name in read_manifest(folder / "made").ids("wilderness")}
    everywhere = results(wild, rng, {image["id"] for image in wild["images"]})
    files = {
        "closed": results(closed, rng, {image["id"] for image in closed["images"]}),
        "whole": everywhere,
        "part": [row for row in everywhere if row["image_id"] in inside],
        "outside": [row for row in everywhere if row["image_id"] not in inside],
    }
    for name, rows in files.items():
        (folder / f"{name}.json").write_text(json.dumps(rows))
    told = {}
    for name in ("whole", "part"):
        given = ["--detections", "closed=closed.json", "--detections", f"wilderness={name}.json", "--json"]
        told[name] = shell.data("evaluate", "made", *given)
        assert told[name]["measures"] == shell.data("evaluate", "elephant", "--manifest", "made", *given)["measures"]
    assert told["whole"]["measures"] == told["part"]["measures"]
    reported = told["whole"]["inputs"]["wilderness"]["detections"]["reported"]
    assert list(reported.values()) == [len(files["outside"])]
    command = ["evaluate", "made", "--detections", "closed=closed.json", "--detections", "wilderness=outside.json"]
    assert "not in the ground truth" in shell.err(*command)


def impact_of(
    closed: dict[str, Any], inside: list[dict[str, Any]], outside: list[dict[str, Any]], tenths: int
) -> float | None:
    """Return FP_o / (TP + FP) at a recall, averaged over the classes 1 and 4, in plain Python.

    Every box is one and the same: the first detection finds the object of its class that its image has.
    """
    impacts = []
    for number in (1, 4):
        objects = [each for each in closed["annotations"] if each["category_id"] == number]
        free = Counter(each["image_id"] for each in objects)
        n, right, wrong = sum(free.values()), 0, 0
        for row in sorted((row for row in inside if row["category_id"] == number), key=lambda row: -row["score"]):
            if free[row["image_id"]]:
                right, free[row["image_id"]] = right + 1, free[row["image_id"]] - 1
            else:
                wrong += 1
            if 10 * right >= tenths * n:
                threshold = row["score"]
                break
        else:
            continue
        opened = sum(row["category_id"] == number and row["score"] >= threshold for row in outside)
        impacts.append(Fraction(opened, right + wrong))
    return float(sum(impacts) / len(impacts)) if impacts else None


@pytest.mark.parametrize("seed", range(8))
def test_wilderness_impact_is_that_of_plain_python(folder: Path, seed: int) -> None:
    """Of levels in the first order, of every list of a ratio, and their average, over two sources."""
    rng = random.Random(seed)
    order = ("hash", "id")[seed % 2]
    text = FILE.replace('["hash", "id"]', f'["{order}", "{"id" if order == "hash" else "hash"}"]')
    (folder / "mine.toml").write_text(text)
    parts = json.loads((folder / "parts.json").read_text())
    # Two objects of a class on one place would leave open which of them a second detection finds.
    once = {(each["image_id"], each["category_id"]): each | {"iscrowd": 0} for each in parts["annotations"]}
    parts["annotations"] = list(once.values())
    (folder / "parts.json").write_text(json.dumps(parts))
    made = build(folder, yard=folder / "yard.json")
    read = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("parts", "factory", "yard")}
    found = {}
    for name, coco in read.items():
        found[name] = results(coco, rng, {image["id"] for image in coco["images"]})
        for row in found[name]:
            row["score"] = rng.random()
        (folder / f"{name}_found.json").write_text(json.dumps(found[name]))
    named = [row | {"name": f"{name}:{row['image_id']}"} for name in ("factory", "yard") for row in found[name]]
    files = {"closed": "parts", "wild": "factory", "yard": "yard"}
    result = curation.evaluate.elephant(
        manifest=made,
        truth={name: folder / f"{file}.json" for name, file in files.items()},
        detections={name: folder / f"{file}_found.json" for name, file in files.items()},
    )
    ids = made.ids("wilderness")
    by_hash = sorted(ids, key=lambda name: hashlib.sha256(f"mylab/parts{name}".encode()).digest())
    ranked = by_hash if order == "hash" else sorted(ids)
    n_closed = len(made.ids("closed"))
    lists = {f"{k / 10:.1f}": ranked[: k * n_closed // 10] for k in range(100) if k * n_closed // 10 <= len(ids)}
    levels = list(lists)
    lists |= {part.name: made.ids(part.name) for part in made.header.parts if part.subset_of}
    assert {"wr0.5", "wr1"} < set(lists)
    rows = {
        (row["recall"], row["ratio"]): row["WI"]
        for row in result.table("impact").to_dict("records")
        if row["over_classes"] == "macro"
    }
    average = {
        row["recall"]: row["excl_level0"]
        for row in result.table("average_impact").to_dict("records")
        if row["over_classes"] == "macro"
    }
    assert len(rows) == 3 * len(lists)
    for recall in ("0.1", "0.3", "0.5"):
        expected = {
            name: impact_of(
                read["parts"], found["parts"], [row for row in named if row["name"] in set(listed)], int(recall[2:])
            )
            for name, listed in lists.items()
        }
        for name, value in expected.items():
            assert rows[recall, name] == (None if value is None else pytest.approx(value, abs=1e-12)), (recall, name)
        steps = [expected[name] for name in levels[1:]]
        assert average[recall] == pytest.approx(sum(steps) / len(steps), abs=1e-12)  # type: ignore[arg-type]


def test_a_stored_file_is_checked_as_a_users_own(folder: Path) -> None:
    """What a foreign manifest states as its benchmark file ends in one error, never in a traceback."""
    text = build(folder).header.rule.parameters["file"]
    stored = json.loads(text)
    rings = {f"g{n}": [f"g{n + 1}", f"h{n + 1}"] for n in range(40)} | {
        f"h{n}": [f"g{n + 1}", f"h{n + 1}"] for n in range(40)
    }
    assert json.loads(read_benchmark_file(text)) == stored
    assert set(stated_in(json.dumps(stored | {"classes": {"known": ["g0"], "groups": rings}})).classes.of("known")) == {
        "g40",
        "h40",
    }
    for change in (
        {"parameters": {"ratios": ["0"]}},
        {"parameters": {"x": 1}},
        {"classes": {"known": {"file": "k"}}},
        {"rule": "os"},
    ):
        with pytest.raises(CurationError):
            read_benchmark_file(json.dumps(stored | change))
    deep = {f"g{n}": [f"g{n + 1}"] for n in range(2000)}
    with pytest.raises(CurationError, match="too deeply"):
        stated_in(json.dumps(stored | {"classes": {"known": ["g0"], "groups": deep}})).classes.of("known")


def test_a_closed_set_without_an_image_left_and_lists_that_are_no_text(folder: Path) -> None:
    """Both are one error."""
    closed = json.loads((folder / "parts.json").read_text())
    closed["categories"].append({"id": 7, "name": "gear"})
    first = {"bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0, "category_id": 7}
    closed["annotations"] += [first | {"id": 500 + n, "image_id": one["id"]} for n, one in enumerate(closed["images"])]
    (folder / "parts.json").write_text(json.dumps(closed))
    (folder / "mine.toml").write_text(FILE.replace("orders =", 'strangers = "leave-out"\norders ='))
    with pytest.raises(CurationError, match="Part closed has no images"):
        build(folder)
    (folder / "known.txt").write_bytes(b"\xff\xfe")
    for name in ("known.txt", "../known.txt"):
        (folder / "mine.toml").write_text(FILE.replace('known = ["bolt", "nut"]', f'known = {{ file = "{name}" }}'))
        with pytest.raises(CurationError):
            build(folder)
