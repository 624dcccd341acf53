"""The rule ``tasks`` on drawn sources, beside a selection in plain Python; wrong files are one error each."""

from __future__ import annotations

import hashlib
import json
import random
import shlex
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.benchmarks.rules.benchmark_file import read_benchmark_file
from curation.core.errors import CurationError
from curation.manifest.manifest import read_manifest
from tests.evaluation.open_world_rows import of_result
from tests.protocols.layouts import LAYOUTS, as_coco, lay, shown
from tests.shell import Shell

NAMES = ("bolt", "nut", "gear", "Bolt", "dust", "cable")
TASKS = (("bolt", "gear"), ("nut",))
FILE = """\
rule = "tasks"
name = "mylab/parts"
[sources]
train = { dataset = "parts", exhaustive = true }
test = { dataset = "parts" }
[parameters]
validation = 4
exemplars = 6
[classes]
unknown = ["cable"]
ignored = ["dust"]
[classes.aliases]
bolt = ["Bolt"]
[[classes.tasks]]
name = "t1"
classes = ["bolt", "gear"]
[[classes.tasks]]
name = "t2"
classes = ["nut"]
[expect]
"t1-val.images" = { value = 4 }
"""


def draw(folder: Path, seed: int = 0) -> dict[str, dict[str, list[str]]]:
    rng = random.Random(seed)
    parts = {"train": shown(rng, NAMES, 90, "a"), "test": shown(rng, NAMES, 30, "b")}
    lay(folder, "coco", parts, NAMES)
    (folder / "mine.toml").write_text(FILE)
    return parts


def build(folder: Path, **more: Any) -> Any:
    """Build the benchmark file from the sources in its folder."""
    sources = {part: folder / f"{part}.json" for part in ("train", "test")}
    return curation.build(folder / "mine.toml", sources=sources, **more)


def by_rank(ids: set[str], salt: str) -> list[str]:
    return sorted(ids, key=lambda image: hashlib.sha256(f"{salt}{image}".encode()).digest())


def plain_lists(parts: dict[str, dict[str, list[str]]], validation: int, size: int) -> dict[str, list[str]]:
    """Return every list by the rule's words alone."""
    spelled = {part: {f"parts:{image}": {name.lower() for name in names} for image, names in images.items()}
               for part, images in parts.items()}  # fmt: skip
    train = spelled["train"]
    selected = [{image for image, names in train.items() if names & set(task)} for task in TASKS]
    held_out: set[str] = set()
    lists: dict[str, list[str]] = {}
    for number, images in enumerate(selected, 1):
        lists[f"t{number}-val"] = by_rank(images - held_out, "mylab/parts/val/")[:validation]
        held_out |= set(lists[f"t{number}-val"])
    kept = [images - held_out for images in selected]
    for number, images in enumerate(kept, 1):
        lists[f"t{number}-train"] = sorted(images)
        lists[f"t{number}-test"] = sorted(image for image, names in spelled["test"].items() if names)
    pool = kept[0] | kept[1]
    of_class = {name: {image for image in pool if name in train[image]} for name in ("bolt", "gear", "nut")}
    taken: set[str] = set()
    for name in sorted(of_class, key=lambda name: len(of_class[name])):
        lacking = max(0, size - len(taken & of_class[name]))
        taken |= set(by_rank(of_class[name] - taken, "mylab/parts/finetune/")[:lacking])
    lists["t2-finetune"] = sorted(taken)
    return {name: sorted(images) for name, images in lists.items()}


@pytest.mark.parametrize("seed", range(12))
def test_lists_are_those_of_a_plain_selection(tmp_path: Path, seed: int) -> None:
    """Every list equals one in plain Python; notes and facts are those of the user's own data."""
    parts = draw(tmp_path, seed)
    made = build(tmp_path)
    assert {name: list(ids) for name, ids in made.lists.items()} == plain_lists(parts, 4, 6)
    header = made.header
    assert (header.paper, header.rule.protocol, header.taxonomy) == (None, "tasks", "OWOD")
    assert header.notes[0] == "Rule tasks (after Zhao et al. 2022); data: user."
    assert [entry.exhaustive for entry in header.sources] == [("bolt", "gear", "nut", "cable", "dust"), ()]
    assert header.figures[0].obtained == 4


def test_spelling_does_not_change_the_digest_and_a_rebuild_is_equal(tmp_path: Path) -> None:
    """Another order of keys, a list in a file and a group are the same file; what is stored rebuilds the manifest."""
    draw(tmp_path)
    digest = build(tmp_path).digest
    (tmp_path / "dust.txt").write_text("\ndust\n")
    text = FILE.replace('ignored = ["dust"]', 'ignored = { file = "dust.txt" }')
    text = text.replace("validation = 4\nexemplars = 6", 'exemplars = 6\nvalidation = "4"')
    (tmp_path / "mine.toml").write_text(text)
    made = build(tmp_path)
    assert made.digest == digest
    assert "order" not in json.loads(made.header.rule.parameters["file"])["parameters"]
    made.save(tmp_path / "made")
    sources = {part: tmp_path / f"{part}.json" for part in ("train", "test")}
    assert curation.verify(tmp_path / "made", sources=sources, rebuild=True).verdict == "verified"
    grouped = FILE.replace('["bolt", "gear"]', '["metal"]').replace("[classes.aliases]", "[classes.groups]\nmetal = "
                           '["bolt", "gear"]\n[classes.aliases]')  # fmt: skip
    (tmp_path / "mine.toml").write_text(grouped)
    assert build(tmp_path).lists == made.lists


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('rule = "tasks"', 'rule = "task"', ["names no rule", 'rule = "tasks"']),
        ("validation = 4", "validations = 4", ["line 7", "[parameters]", "did you mean validation?"]),
        ("validation = 4", "validation = -1", ["line 7", "validation"]),
        ("validation = 4", "validation = 80", ["too few images", "validation = "]),
        ("exemplars = 6", 'exemplars = 6\norder = "random"', ["line 9", "order"]),
        ("exemplars = 6", "exemplars = 2.5", ["line 8", "exemplars"]),
        ("[classes]\n", '[classes]\nknown = ["bolt"]\n', ["[classes] known", "[[classes.tasks]]"]),
        ("[classes]\n", '[classes]\nnegative = ["bolt"]\n', ["[classes] negative"]),
        ("[expect]", "[views.training]\n[expect]", ["[views]", "train, known, test"]),
        ('name = "t2"', 'name = "t1"', ["t1 twice"]),
        ('name = "t2"', 'name = "T 2"', ["name"]),
        ('name = "t2"', f'name = "{"t" * 60}"', ["up to 55"]),
        ('["nut"]', '["bolt"]', ["bolt twice"]),
        ('["nut"]', '["Nut"]', ['"Nut" = ["nut"]', "aliases"]),
        ('["nut"]', "[]", ["classes"]),
        ('["nut"]', '["nut", "unknown"]', ["none of them 'unknown'"]),
        ('["nut"]', '["nut", "cog"]', ["names a class that no source has", "cog"]),
        ('["nut"]', '"nut"', ["classes", "a list"]),
        ('unknown = ["cable"]\n', "", ["'cable'", 'unknown = ["cable"]', 'ignored = ["cable"]']),
        ('bolt = ["Bolt"]', 'bolts = ["Bolt"]', ["aliases", "bolts"]),
        ('[classes.aliases]\nbolt = ["Bolt"]\n', "", ['"bolt" = ["Bolt"]']),
        ("train = {", 'train = { as = "training", ', ["[sources]", "train as training"]),
        ("test = {", 'val = { as = "train", required = false }\ntest = {', ["[sources]"]),
        ("train = {", 'train = { as = "first-train", ', ["[sources]", "beside train"]),
        ('name = "t1"', 'name = "t/1"', ["name"]),
        ('["nut"]', '[" nut"]', ["without outer blanks"]),
        ('"parts" }', '"Parts!" }', ["a to z"]),
        ("exhaustive = true", "exhaustive = 1", ["line 4", "exhaustive"]),
        ("exhaustive = true", "exhaustiv = true", ["line 4", "did you mean exhaustive?"]),
        ("[[classes.tasks]]", "[[tasks]]", ["tasks", "classes"]),
        ('"t1-val.images"', '"t1-valid.images"', ["expects an unknown figure", "t1-val"]),
        ('"mylab/parts"', '"owod/parts"', ["belongs to a benchmark"]),
    ],
)
def test_a_wrong_file_is_one_error_that_names_line_and_key(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    """The error says where, and what would be right."""
    draw(tmp_path)
    assert old in FILE
    (tmp_path / "mine.toml").write_text(FILE.replace(old, new, 1))
    with pytest.raises(CurationError) as caught:
        build(tmp_path)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_first_source_needs_a_second_task(tmp_path: Path) -> None:
    """Its images are those of the first task, or come before those of later tasks."""
    draw(tmp_path)
    file = FILE.replace("test = {", 'first = { as = "first-test", dataset = "other" }\ntest = {')
    one_task = file.replace('[[classes.tasks]]\nname = "t2"\nclasses = ["nut"]\n', "").replace("[expect]", "[other]")
    (tmp_path / "mine.toml").write_text(
        one_task.partition("[other]")[0].replace('["bolt", "gear"]', '["bolt", "gear", "nut"]')
    )
    sources = {name: tmp_path / f"{name}.json" for name in ("train", "test")} | {"first": tmp_path / "test.json"}
    with pytest.raises(CurationError, match="inconsistent") as caught:
        curation.build(tmp_path / "mine.toml", sources=sources)
    assert "second task" in str(caught.value)


def test_followed_hints_build(tmp_path: Path) -> None:
    """The number that an error about validation images names, and the table of aliases, are what helps."""
    draw(tmp_path)
    (tmp_path / "mine.toml").write_text(FILE.replace("validation = 4", "validation = 80"))
    with pytest.raises(CurationError) as caught:
        build(tmp_path)
    (tmp_path / "mine.toml").write_text(FILE.replace("validation = 4", str(caught.value.hint).partition(" in ")[0]))
    assert len(build(tmp_path).ids("t2-val")) > 0


@pytest.mark.parametrize("change", [
    {"parameters": {"validation": -1}}, {"parameters": {"x": 1}}, {"classes": {}}, {"sources": {"a": {}}},
    {"classes": {"tasks": [{"name": "t1", "classes": ["g0"]}], "groups": {"g0": ["g0"]}}},
    {"classes": {"tasks": [{"name": "t1", "classes": ["bolt"]}], "unknown": {"file": "x"}}},
    {"name": "../x"}, {"rule": "os"},
])  # fmt: skip
def test_a_stored_file_is_checked_as_a_users_own(tmp_path: Path, change: dict[str, Any]) -> None:
    """What a foreign manifest states as its benchmark file ends in one error, never in a traceback."""
    draw(tmp_path)
    made = build(tmp_path)
    made.save(tmp_path / "made")
    stored = json.loads(made.header.rule.parameters["file"])
    assert json.loads(read_benchmark_file(json.dumps(stored))) == stored
    header = json.loads((tmp_path / "made" / "manifest.json").read_text())
    header["rule"]["parameters"]["file"] = json.dumps(stored | change)
    (tmp_path / "made" / "manifest.json").write_text(json.dumps(header))
    sources = {part: tmp_path / f"{part}.json" for part in ("train", "test")}
    with pytest.raises(CurationError):
        curation.build(tmp_path / "made", sources=sources)
    with pytest.raises(CurationError):
        curation.benchmarks.building.rebuild(read_manifest(tmp_path / "made"), {})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_own_data_to_a_score_by_the_commands_that_are_printed(
    tmp_path: Path, layout: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`init`, `build`, `verify` and `evaluate` run as printed; U-Recall and A-OSE are those counted by hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    rng = random.Random(layout)
    names = ["bolt", "nut", "gear", "cable"]
    parts = {"train": shown(rng, names, 60, "a"), "test": shown(rng, names, 20, "b")}
    given = lay(tmp_path, layout, parts, names)
    sources = [word for part, path in given.items() for word in ("--source", f"{part}={path}")]
    said = shell.out("init", "tasks", *sources, "--name", "mylab/parts", "--n-tasks", "2", "--out", "mine.toml")
    (line,) = [line for line in said.splitlines() if line.startswith("next: ")]
    said = shell.out(*shlex.split(line.removeprefix("next: curation ")))
    lines = [line.removeprefix("next: curation ") for line in said.splitlines() if line.startswith("next: ")]
    assert [line.split()[0] for line in lines] == ["verify", "evaluate"]
    assert "verified" in shell.out(*shlex.split(lines[0]))
    assert "verified" in shell.out(*shlex.split(lines[0]), "--rebuild")
    assert "t1-train" in shell.out("show", "parts")
    assert "0 errors" in shell.out("audit", "parts")
    shell.out("export", "parts", "--part", "t1-test", "--format", "coco", "--out", "truth.json")
    numbers = {each["name"]: each["id"] for each in json.loads((tmp_path / "truth.json").read_text())["categories"]}
    made = read_manifest(tmp_path / "parts")
    known = made.header.tasks[0].introduced
    boxes = [(image, name, k) for image, shows in parts["test"].items() for k, name in enumerate(shows)]
    labels = [name if name in known else rng.choice([known[0], "unknown"]) for _, name, _ in boxes]
    rows = [
        {"image_id": image, "category_id": numbers[label], "bbox": [20 * k, 5, 15, 15], "score": 0.9}
        for (image, _, k), label in zip(boxes, labels, strict=True)
    ]
    (tmp_path / "FILE").write_text(json.dumps(rows))
    found = of_result(shell.data(*shlex.split(lines[1]), "--json"))["t1/clean"]
    objects = [label for (_, name, _), label in zip(boxes, labels, strict=True) if name not in known]
    assert found["UR"] == pytest.approx(100 * objects.count("unknown") / len(objects))
    assert found["AOSE_objects"] == objects.count(known[0])
    assert len(made.ids("t1-test")) == sum(map(bool, parts["test"].values()))


def test_a_source_without_annotations_is_refused(tmp_path: Path) -> None:
    """Nothing can be selected from it."""
    draw(tmp_path)
    empty = as_coco({"c1": []}, NAMES)
    (tmp_path / "train.json").write_text(json.dumps(empty))
    with pytest.raises(CurationError, match="has no objects"):
        build(tmp_path)
