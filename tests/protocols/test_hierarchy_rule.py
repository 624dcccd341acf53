"""The rule ``hierarchy`` on drawn class folders, beside lists and scores in plain Python; wrong files are one error."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import random
import shlex
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.benchmarks.imagenet import PROTOCOLS
from curation.benchmarks.registry import benchmark_of_rule
from curation.benchmarks.rules.benchmark_file import packaged_file, read_benchmark_file
from curation.benchmarks.rules.hierarchy import roles_of
from curation.benchmarks.rules.starting import start_benchmark
from curation.cli import main
from curation.core.errors import CurationError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.manifest import Manifest, read_manifest
from tests.protocols.test_wilderness_rule import require_error
from tests.shell import Shell

FILE = """\
rule = "hierarchy"
name = "mylab/pets"
[sources]
images = { dataset = "pets" }
[classes]
known = ["cat", "dog"]
negative = ["horse"]
unknown = ["car", "truck"]
[classes.synsets]
cat = "cat.n.01"
[parameters]
train = 0.6
val = "0.20"
test = 0.2
salt = "s"
"""
SIZES = {"cat": 20, "dog": 15, "horse": 11, "car": 10, "truck": 6, "tulip": 5}
ABOVE = {
    "cat": ["carnivore.n.01", "animal.n.01"],
    "lion": ["carnivore.n.01", "animal.n.01"],
    "horse": ["ungulate.n.01", "animal.n.01"],
    "zebra": ["ungulate.n.01", "animal.n.01"],
    "sparrow": ["bird.n.01", "animal.n.01"],
    "car": ["motor_vehicle.n.01", "artifact.n.01"],
    "truck": ["motor_vehicle.n.01", "artifact.n.01"],
    "chair": ["furniture.n.01", "artifact.n.01"],
}
"""Super-classes of some classes, the inner one first, as a dictionary has them."""


def draw(root: Path, sizes: Mapping[str, int], seed: int = 0) -> list[str]:
    """Write files with the names of photos into class folders; return their paths below the root."""
    rng = random.Random(seed)
    paths = []
    for name, n in sizes.items():
        (root / name).mkdir(parents=True)
        for number in rng.sample(range(1000), n):
            paths.append(f"{name}/{number:03}.png")
            (root / paths[-1]).write_text(f"{seed} {paths[-1]}")
    return paths


def ranked(paths: list[str], salt: str) -> list[str]:
    """Return ids of the namespace ``pets`` in the order of their hashes."""
    return sorted((f"pets:{path}" for path in paths), key=lambda name: hashlib.sha256((salt + name).encode()).digest())


def shares_of(ids: list[str], shares: list[str]) -> list[list[str]]:
    """Cut a list by shares, the largest remainders rounded up first."""
    exact = [Fraction(share) * len(ids) for share in shares]
    counts = [math.floor(part) for part in exact]
    while sum(counts) < len(ids):
        remainders = [part - count for part, count in zip(exact, counts, strict=True)]
        counts[remainders.index(max(remainders))] += 1
    return [ids[sum(counts[:place]) : sum(counts[: place + 1])] for place in range(len(counts))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with class folders and the benchmark file."""
    draw(tmp_path / "photos", SIZES)
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path


def build(folder: Path, text: str = FILE, **sources: Path) -> Manifest:
    """Build the benchmark file with a text."""
    (folder / "mine.toml").write_text(text)
    return curation.build(folder / "mine.toml", sources=sources or {"images": folder / "photos"})


@pytest.mark.parametrize("seed", range(12))
def test_lists_are_those_of_a_plain_selection(tmp_path: Path, seed: int) -> None:
    """Each class is cut by itself, in the order of its hashes; unknown classes are in the test part alone."""
    rng = random.Random(seed)
    names = rng.sample(["cat", "dog", "horse", "car", "truck", "tulip", "Äpfel", "a b", "n02084071"], 7)
    paths = draw(tmp_path / "photos", {name: rng.randint(3, 30) for name in names}, seed)
    roles = {"known": names[:2], "negative": names[2:3], "unknown": names[3:5], "ignored": names[5:6]}
    shares = rng.choice([["0.5", "0", "0.5"], ["0.34", "0.33", "0.33"], ["0.4", "0.2", "0.4"]])
    lines = [f"{role} = {json.dumps(listed, ensure_ascii=False)}" for role, listed in roles.items()]
    cut = [f"{part} = {share}" for part, share in zip(("train", "val", "test"), shares, strict=True)]
    head = FILE.partition("known")[0]
    made = build(tmp_path, "\n".join([head, *lines, "[parameters]", *cut]))
    expected: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    for name in names[:5]:
        own = ranked([path for path in paths if path.startswith(f"{name}/")], "mylab/pets")
        for part, ids in zip(expected, shares_of(own, shares), strict=True):
            expected[part] += ids if part == "test" or name in names[:3] else []
    assert {part: list(ids) for part, ids in made.lists.items()} == {
        part: sorted(ids) for part, ids in expected.items() if ids
    }
    entries = [(entry.name, entry.role, entry.index) for entry in made.header.classes]
    assert entries == [
        *((name, "known", place) for place, name in enumerate(sorted(names[:2]))),
        *((name, role, -1) for role in ("negative", "unknown") for name in sorted(roles[role])),
    ]
    assert (made.header.paper, made.header.rule.protocol, made.header.taxonomy) == (None, "hierarchy", "OSC")
    assert "Palechor" in made.header.notes[0]
    assert all(name in made.header.notes[-1] for name in names[5:])


@pytest.mark.parametrize("seed", range(12))
def test_a_super_class_takes_what_lies_below_it_and_the_inner_one_decides(tmp_path: Path, seed: int) -> None:
    """Classes of drawn super-classes are those that a dictionary of ancestors gives."""
    rng = random.Random(seed)
    draw(tmp_path / "photos", dict.fromkeys(ABOVE, 10))
    inner = rng.sample(sorted({above[0] for above in ABOVE.values()}), 3)
    role_of: dict[str, str] = {"animal.n.01": "known", "artifact.n.01": "unknown"}
    role_of |= {node: rng.choice(["known", "negative", "unknown"]) for node in inner}
    named = rng.choice(sorted(ABOVE))
    if len([1 for above in ABOVE.values() if above[0] == ABOVE[named][0]]) == 1:
        role_of.pop(ABOVE[named][0], None)
    listed = {**role_of, named: "negative"}
    lines = [
        f"{role} = {json.dumps([name for name, own in listed.items() if own == role])}"
        for role in ("known", "negative", "unknown")
    ]
    synsets = [f'{name} = "{name}.n.01"' for name in ABOVE if name != named]
    text = "\n".join([FILE.partition("known")[0], *lines, "[classes.synsets]", *synsets])
    made = build(tmp_path, text)
    expected = {
        name: "negative" if name == named else next(role_of[node] for node in above if node in role_of)
        for name, above in ABOVE.items()
    }
    assert {entry.name: entry.role for entry in made.header.classes} == expected


@pytest.mark.parametrize(("cut", "letters"), [("halves", "KKKNNN"), ("sixths", "KNKUKN"), ("KKNU", "KKNUKK")])
def test_a_group_is_cut_along_its_sorted_classes(tmp_path: Path, cut: str, letters: str) -> None:
    """The cuts are those of the paper; a class of its own is known."""
    draw(tmp_path / "photos", dict.fromkeys("bdfhjlz", 10))
    lines = ['known = ["all"]', 'unknown = ["z"]', 'groups = { all = ["l", "b", "d", "h", "f", "j"] }']
    made = build(tmp_path, "\n".join([FILE.partition("known")[0], *lines, f'[parameters]\ncut = "{cut}"']))
    roles = {"K": "known", "N": "negative", "U": "unknown"}
    assert {entry.name: entry.role for entry in made.header.classes} == {
        **{name: roles[letter] for name, letter in zip("bdfhjl", letters, strict=True)},
        "z": "unknown",
    }


def test_the_papers_super_classes_over_folders_of_imagenet(tmp_path: Path) -> None:
    """Folders named by wnids have their place in WordNet: P1's super-classes give the classes of ``hierarchy=dag``."""
    (tmp_path / "table.csv").write_text(
        "image_id,class\n" + "".join(f"{wnid}_{n},{wnid}\n" for wnid in ilsvrc2012_classes() for n in range(6))
    )
    lines = [
        f"{role} = {json.dumps(getattr(PROTOCOLS['p1'].classes, role))}" for role in ("known", "negative", "unknown")
    ]
    text = "\n".join([FILE.partition("known")[0], *lines])
    made = build(tmp_path, text, images=tmp_path / "table.csv")
    classes, _ = roles_of(packaged_file("imagenet/p1", tree="imagenet"), ilsvrc2012_classes())
    for role in ("known", "negative", "unknown"):
        assert tuple(entry.name for entry in made.header.classes if entry.role == role) == getattr(classes, role)


def test_spelling_does_not_change_the_digest_and_a_rebuild_is_equal(folder: Path) -> None:
    """``0.20`` and ``0.2`` are one share, a list in a file is that list; the stored file rebuilds the manifest."""
    digest = build(folder).digest
    (folder / "known.txt").write_text("cat\n\ndog\n")
    text = FILE.replace('"0.20"', "0.2").replace("0.6", '"0.600"').replace('["cat", "dog"]', '{ file = "known.txt" }')
    made = build(folder, text)
    assert made.digest == digest
    made.save(folder / "made")
    found = curation.verify(folder / "made", sources={"images": folder / "photos"}, rebuild=True)
    assert found.ok
    assert not [each for each in found.findings if each.outcome != "ok"]


@pytest.mark.parametrize("valid", ["valid", "val", ""])
@pytest.mark.parametrize("test", ["test", ""])
def test_a_source_may_keep_its_parts(tmp_path: Path, valid: str, test: str) -> None:
    """Without a test folder val is the test part; without a folder val, it is a share of the training images."""
    root = tmp_path / "photos"
    of_folder = {name: draw(root / name, SIZES, seed) for seed, name in enumerate(("train", valid, test)) if name}
    shares = "" if valid and test else "train = 0.8\nval = 0.2"
    text = FILE.partition("train")[0] + f'parts = "source"\n{shares}\n'
    if not (valid or test):
        with pytest.raises(CurationError, match="no parts to keep"):
            build(tmp_path, text)
        return
    made = build(tmp_path, text)
    seen, every = ("cat", "dog", "horse"), ("cat", "dog", "horse", "car", "truck")

    def ids(name: str, classes: tuple[str, ...]) -> list[str]:
        return [f"{name}/{path}" for path in of_folder[name] if path.partition("/")[0] in classes]

    expected = {"test": ids(test or valid, every), "train": ids("train", seen), "val": []}
    if valid and test:
        expected["val"] = ids(valid, seen)
    else:
        cuts = [shares_of(ranked(ids("train", (name,)), "mylab/pets"), ["0.8", "0.2"]) for name in seen]
        expected |= {
            part: [name.partition(":")[2] for cut in cuts for name in cut[place]]
            for place, part in enumerate(("train", "val"))
        }
    assert {part: [name.partition(":")[2] for name in names] for part, names in made.lists.items()} == {
        part: sorted(names) for part, names in expected.items()
    }


def test_training_and_test_sources_with_other_spellings(tmp_path: Path) -> None:
    """Two roots, whose class names differ, number their photos alike; each has its namespace."""
    train = draw(tmp_path / "a", {"cat": 10, "dog": 10, "car": 5}, 1)
    test = draw(tmp_path / "b", {"Cat": 4, "dog": 4, "car": 4}, 1)
    text = """
rule = "hierarchy"
name = "mylab/two"
[sources]
old = { as = "train", dataset = "old" }
new = { as = "test", dataset = "new" }
[classes]
known = ["cat", "dog"]
unknown = ["car"]
aliases = { cat = ["Cat"] }
"""
    made = build(tmp_path, text, old=tmp_path / "a", new=tmp_path / "b")
    assert sorted(made.ids("test")) == sorted(f"new:{path}" for path in test)
    seen = [f"old:{path}" for path in train if not path.startswith("car")]
    assert sorted([*made.ids("train"), *made.ids("val")]) == sorted(seen)
    assert len(made.ids("val")) == 4
    words = ['try: [classes.aliases] cat = ["Cat"]']
    require_error(lambda: build(tmp_path, text.replace("aliases", "#"), old=tmp_path / "a", new=tmp_path / "b"), words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"hierarchy"', '"hierarchie"', ["names no rule", 'rule = "hierarchy"']),
        ('"mylab/pets"', '"imagenet/mine"', ["belongs to a benchmark"]),
        ("known =", "knwon =", ["line 6", "[classes]", "did you mean known?"]),
        ("val =", "vall =", ["line 13", "[parameters]", "did you mean val?"]),
        ("0.6", "0.7", ["sum to 1", "train = 0.7"]),
        ("train = 0.6\n", "", ["shares", "val = 0.2, test = 0.2"]),
        ("0.6", "-1", ["line 11", "decimals from 0 to 1"]),
        ("0.6", '"half"', ["line 12", "train"]),
        ("train = 0.6", 'parts = "folders"\ntrain = 0.6', ["line 12", "parts"]),
        ("train = 0.6", 'parts = "source"\ntrain = 0.6', ["no parts to keep", 'parts = "shares"']),
        ("train = 0.6", 'cut = "thirds"\ntrain = 0.6', ["line 12", "cut", "halves"]),
        ('"cat", "dog"', '"cta", "dog"', ["[classes] known", "did you mean cat?"]),
        ('"cat", "dog"', '"cat", "dgo.n.01"', ["[classes] known", "dgo.n.01", "a synset such as dog.n.01"]),
        ('"horse"', '"horse", "cat"', ["listed twice", "cat"]),
        ('["car", "truck"]', "[]", ["No class is unknown", 'unknown = ["car", "truck", "tulip"]']),
        ('["cat", "dog"]', "[]", ["No class is known", "tulip"]),
        ('["horse"]', '["animal.n.01"]', ["[classes.synsets]", 'horse = "horse.n.01"', "ignored"]),
        ('["horse"]', '["horse", "cat.n.01"]', ["cat.n.01", "No unlisted class"]),
        ('"cat.n.01"', '"cat.n.99"', ["[classes.synsets] cat", "cat.n.99", "curation hierarchy find cat"]),
        ('cat = "cat.n.01"', 'caat = "cat.n.01"', ["[classes.synsets] caat", "did you mean cat?"]),
        ("[classes.synsets]", 'aliases = { lion = ["Lion"] }\n[classes.synsets]', ["[classes.aliases] lion"]),
        ('["horse"]', '["all"]\ngroups = { all = ["all"] }', ["contains itself"]),
        ("images = {", 'images = { as = "closed",', ["images as closed", "[sources.images]"]),
        ('"pets" }', '"coco" }', ["not read from class folders", 'dataset = "my_coco"']),
        ("[parameters]", '[views.test]\nunknown = "drop"\n[parameters]', ["[views]", "remove it"]),
        ("[parameters]", '[expect]\n"tests.images" = { value = 1 }\n[parameters]', ["[expect] tests.images"]),
        ('["horse"]', '["horse"]\nabsent = "horse"', ["absent"]),
    ],
)
def test_a_wrong_file_is_one_error_that_names_line_and_key(folder: Path, old: str, new: str, words: list[str]) -> None:
    """The error says where, and what would be right."""
    assert old in FILE
    require_error(lambda: build(folder, FILE.replace(old, new, 1)), words)


def test_a_class_that_is_too_small_is_named_and_the_hint_works(folder: Path) -> None:
    """A known class needs an image to train on and one to test on."""
    draw(folder / "photos", {"wasp": 1})
    text = FILE.replace('"dog"', '"dog", "wasp"')
    require_error(lambda: build(folder, text), ["no image in the part test", 'ignored = ["wasp"]'])
    assert build(folder, FILE.replace("[classes]", '[classes]\nignored = ["wasp"]')).ids("test")
    assert build(folder, text.replace("[classes]", '[classes]\nabsent = ["wasp"]')).ids("test")


def test_a_stored_file_is_checked_as_a_users_own(folder: Path) -> None:
    """What a foreign manifest states as its benchmark file ends in one error, never in a traceback."""
    text = str(build(folder).header.rule.parameters["file"])
    stored = json.loads(text)
    assert json.loads(read_benchmark_file(text)) == stored
    assert not {"parts", "cut", "title"} & {*stored, *stored["parameters"]}
    sources = {"images": curation.open_source("pets", folder / "photos")}
    for change in (
        {"parameters": {"train": "0"}},
        {"parameters": {"train": "nan"}},
        {"parameters": {"cut": "K" * 101}},
        {"classes": {"known": ["cat"], "unknown": ["../x"]}},
        {"classes": {"known": ["cat"], "unknown": ["dog"], "synsets": "nowhere"}},
        {"classes": {"known": {"file": "/etc/passwd"}}},
        {"sources": {"images": {"as": "wild"}}},
    ):
        with pytest.raises(CurationError):
            benchmark_of_rule("hierarchy").make(sources, {"file": read_benchmark_file(json.dumps(stored | change))})


def scores_of(manifest: Manifest, rng: random.Random) -> dict[str, list[float]]:
    """Return probabilities of the known classes for each test image."""
    known = [entry.name for entry in manifest.header.classes if entry.role == "known"]
    scores = {}
    for image in manifest.ids("test"):
        own = image.partition(":")[2].split("/")[-2]
        weights = [math.exp(rng.gauss(0, 1) + 2 * (name == own)) for name in known]
        scores[image] = [weight / sum(weights) for weight in weights]
    return scores


def plain_measures(manifest: Manifest, scores: Mapping[str, list[float]], rates: list[float]) -> list[float]:
    """Return CCR at some false positive rates, AUROC and gamma against unknown images, as in the paper."""
    entries = {entry.name: entry for entry in manifest.header.classes}
    known, unknown = [], []
    for image, row in scores.items():
        entry = entries[image.partition(":")[2].split("/")[-2]]
        if entry.role == "known":
            known.append((max(row), row.index(max(row)) == entry.index, row[entry.index]))
        elif entry.role == "unknown":
            unknown.append(max(row))
    ccr = [
        max(
            sum(high > limit and right for high, right, _ in known) / len(known)
            for limit in [-1.0, *unknown, *(high for high, _, _ in known)]
            if sum(high > limit for high in unknown) / len(unknown) <= rate
        )
        for rate in rates
    ]
    pairs = [(high > other) + (high == other) / 2 for high, _, _ in known for other in unknown]
    plus = sum(own for _, _, own in known) / len(known)
    minus = sum(1 - high + 1 / len(next(iter(scores.values()))) for high in unknown) / len(unknown)
    return [*ccr, sum(pairs) / len(pairs), (plus + minus) / 2]


@pytest.mark.parametrize("layout", ["folders", "parts", "table"])
def test_printed_commands_lead_from_photos_to_the_papers_measures(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """``init``, ``build`` and ``evaluate`` as printed; scores by path, by id or by short path give plain figures."""
    monkeypatch.chdir(tmp_path)
    sizes = {**SIZES, "chair": 9}
    for seed, part in enumerate(("train", "valid", "test") if layout == "parts" else ("",)):
        paths = draw(tmp_path / "photos" / part, sizes, seed)
    if layout == "table":
        rows = "".join(f"{path},{path.partition('/')[0]}\n" for path in paths)
        (tmp_path / "photos.csv").write_text("image,class\n" + rows)
    command = ["curation", "init", "hierarchy", "--source", "photos.csv" if layout == "table" else "photos"]
    (tmp_path / "photos/notes.txt").write_text("no photo")
    printed = shell.out(*command[1:])
    command = shlex.split(next(line for line in printed.splitlines() if line.startswith("next: "))[6:])
    printed = shell.out(*command[1:])
    commands = [shlex.split(line[6:]) for line in printed.splitlines() if line.startswith("next: ")]
    assert [each[1] for each in commands] == ["verify", "evaluate"]
    shell.out(*commands[0][1:], "--rebuild")
    made = read_manifest(tmp_path / "benchmark")
    scores = scores_of(made, random.Random(3))
    known = [entry.name for entry in made.header.classes if entry.role == "known"]
    assert known
    expected = plain_measures(made, scores, [0.001, 0.01, 0.1, 1.0])
    forms = ["{}", "/data/photos/{native}", "{native}"] + ["{short}"] * (layout == "parts")
    for form in forms:
        table = [
            [form.format(image, native=native, short=native.partition("/")[2]), *row[::-1]]
            for image, row in scores.items()
            for native in [image.partition(":")[2]]
        ]
        random.Random(4).shuffle(table)
        with (tmp_path / "scores.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["image", *known[::-1]], *table])
        words = [word.replace("FILE", "scores.csv") for word in commands[1][1:-2]]
        measures = {
            (each["measure"], each["parameters"].removeprefix("fpr=")): each["value"]
            for each in shell.data(*words, "--json")["measures"]
        }
        got = [measures["CCR", rate] for rate in ("0.001", "0.01", "0.1", "1")]
        got += [measures["AUROC", ""], measures["gamma", ""]]
        assert got == pytest.approx(expected, abs=1e-12)


def test_a_benchmark_named_after_its_photos_gets_another_folder(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed command writes no manifest into the folder of the photos."""
    monkeypatch.chdir(folder)
    printed = shell.out("init", "hierarchy", "--source", "photos", "--name", "my/photos", "--out", "new.toml")
    command = shlex.split(printed.rpartition("next: ")[2])
    shell.out(*command[1:])
    assert read_manifest(folder / "photos-manifest").header.name == "my/photos"


@pytest.mark.filterwarnings("ignore:names of classes that may be mistakes")
@pytest.mark.parametrize("seed", range(10))
def test_what_init_writes_builds_as_it_is(tmp_path: Path, seed: int) -> None:
    """Parts with some classes each, two in all of them; other classes are in some parts, or spelled otherwise."""
    rng = random.Random(seed)
    parts = rng.choice([[""], ["train", "test"], ["train", "val"], ["train", "valid", "test"]])
    words = ["dog", "car", "Äpfel", "a b", "n02084071", "chair", "0", "crane", "O'neil", 'q"t', "Cat", "DOG"]
    for number, part in enumerate(parts):
        sizes = {"wolf": 5, "tree": 4} | {word: rng.randint(1, 9) for word in rng.sample(words, 6)}
        draw(tmp_path / "photos" / part, sizes, number)
    sources = {"images": tmp_path / "photos"}
    (tmp_path / "mine.toml").write_text(start_benchmark("hierarchy", source=sources))
    made = curation.build(tmp_path / "mine.toml", sources=sources)
    assert {"train", "test"} <= {*made.lists} <= {"train", "val", "test"}
    roles = [entry.role for entry in made.header.classes]
    assert {"known", "unknown"} <= {*roles}


def test_exports_hold_paths_and_labels_and_boxes_are_refused(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of paths and labels names the photos as they lie; a format of boxes says what to take instead."""
    monkeypatch.chdir(folder)
    assert main(["build", "mine.toml", "--source", "images=photos", "--out", "made"]) == 0
    shell.out("export", "made", "--part", "test", "--format", "imagenet-csv", "--out", "lists")
    label_of = {"cat": 0, "dog": 1, "horse": -1, "car": -2, "truck": -2}
    ids = [name.partition(":")[2] for name in read_manifest(folder / "made").ids("test")]
    text = (folder / "lists/pets_test.csv").read_bytes().decode()
    assert text == "".join(f"{path},{label_of[path.partition('/')[0]]}\r\n" for path in ids)
    assert all((folder / "photos" / path).is_file() for path in ids)
    error = shell.err("export", "made", "--part", "test", "--format", "coco", "--out", "boxes")
    assert "--format imagenet-csv" in error
    assert "LI3" not in shell.data("audit", "made", "--json")["sums"]["undecidable"]


def test_scores_of_other_images_or_classes_are_refused(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A photo of the same class and number in another folder is another image; a missing column is named."""
    monkeypatch.chdir(folder)
    assert main(["build", "mine.toml", "--source", "images=photos", "--out", "made"]) == 0
    scores = scores_of(read_manifest(folder / "made"), random.Random(1))
    words = ("evaluate", "made", "--scores", "scores.csv", "--part", "test")

    def write(header: list[str], rows: list[list[Any]]) -> None:
        with (folder / "scores.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])

    names = [name.partition(":")[2] for name in scores]
    write(
        ["image", "cat", "dog"], [[f"{name[:-4]}x.png", *row] for name, row in zip(names, scores.values(), strict=True)]
    )
    assert "have no scores" in shell.err(*words)
    write(["image", "cat"], [[name, row[0]] for name, row in zip(names, scores.values(), strict=True)])
    assert "columns dog too" in shell.err(*words)
