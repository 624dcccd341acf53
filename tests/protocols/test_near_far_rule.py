"""The rule ``near-far`` on drawn sources, beside a selection in plain Python; wrong files are one error each."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.benchmarks.building import rebuild
from curation.core.errors import CurationError
from curation.manifest.manifest import read_manifest
from tests.protocols.layouts import LAYOUTS, as_coco, lay, shown
from tests.shell import Shell

NAMES = ("wolf", "lynx", "teapot", "leash", "puppy", "dog", "Cat")
ROADS = ("kerb", "sky", "dog")
FILE = """\
rule = "near-far"
name = "mylab/pets"
[sources]
zoo = { as = "near-far", dataset = "zoo" }
roads = { as = "farther", dataset = "roads", required = false }
more = { as = "candidates", dataset = "zoo", required = false }
seen = { as = "start-list", dataset = "zoo", required = false }
[classes]
known = ["cat", "dog"]
[classes.aliases]
dog = ["puppy"]
cat = ["Cat"]
[parameters]
[parameters.near.zoo]
wolf = "dog"
lynx = "cat"
[parameters.remove.zoo]
leash = "dog"
[expect]
"zoo-rule.images" = { value = 1 }
"""
Boxes = dict[str, list[str]]


def draw(folder: Path, seed: int = 0) -> tuple[Boxes, Boxes]:
    rng = random.Random(seed)
    zoo, roads = shown(rng, NAMES, 80, "z", 2), shown(rng, ROADS, 30, "r", 2)
    (folder / "zoo.json").write_text(json.dumps(as_coco(zoo, NAMES)))
    (folder / "roads.json").write_text(json.dumps(as_coco(roads, ROADS)))
    (folder / "more.json").write_text(json.dumps(as_coco({f"m{n}": ["teapot"] for n in range(5)}, NAMES)))
    (folder / "mine.toml").write_text(FILE)
    return zoo, roads


def build(folder: Path, *names: str, **more: Any) -> Any:
    """Build the benchmark file from sources in its folder."""
    sources = {name: folder / f"{name}.json" for name in names or ("zoo", "roads")}
    return curation.build(folder / "mine.toml", sources=sources, **more)


def verdict(image: str, stage: str, action: str) -> dict[str, str]:
    return {"image_id": image, "dataset": "zoo", "stage": stage, "action": action, "reviewer": "anna"}


def write_verdicts(path: Path, *rows: dict[str, str]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("seed", range(12))
def test_lists_are_those_of_a_plain_selection(tmp_path: Path, seed: int) -> None:
    """Every list equals one in plain Python, before and after decisions."""
    zoo, roads = draw(tmp_path, seed)
    clean = {f"zoo:{image}": set(names) for image, names in zoo.items() if not {"dog", "puppy", "Cat"} & set(names)}
    near = {image for image, names in clean.items() if {"wolf", "lynx"} & names and "leash" not in names}
    removed = {image for image, names in clean.items() if "leash" in names}
    far = set(clean) - near - removed
    made = build(tmp_path)
    expected = {"zoo-rule": set(clean), "zoo-near": near, "zoo-far": far}
    expected["roads-rule"] = {f"roads:{image}" for image, names in roads.items() if "dog" not in names}
    expected["roads-farther"] = expected["roads-rule"]
    assert {name: set(ids) for name, ids in made.lists.items()} == expected
    assert (made.header.paper, made.header.rule.protocol, made.header.origin) == (None, "near-far", "regenerated")
    assert made.header.notes[0] == "Rule near-far (after Montoya et al. 2025); data: user."
    assert made.header.figures[0].obtained == len(clean)
    moved, gone, back = sorted(far)[0], sorted(far)[1], sorted(near)[0]
    verdicts = write_verdicts(tmp_path / "v.jsonl", verdict(moved, "manual", "to_near"), verdict("zoo:m1", "candidate",
        "add_far"), verdict(gone, "manual", "remove"), verdict(back, "manual", "to_far"))  # fmt: skip
    reviewed = build(tmp_path, "zoo", "more", decisions=verdicts)
    assert set(reviewed.ids("zoo-near")) == (near | {moved}) - {back}
    assert set(reviewed.ids("zoo-far")) == (far | {back, "zoo:m1"}) - {moved, gone}
    assert (reviewed.header.origin, reviewed.header.decisions is None) == ("reviewed", False)


def test_a_start_list_narrows_and_a_rebuild_is_equal(tmp_path: Path) -> None:
    """Splits lie in the list; spelling does not change the digest; a list of refused images is refused."""
    zoo, _ = draw(tmp_path)
    whole = build(tmp_path, "zoo")
    chosen = [image.partition(":")[2] for image in whole.ids("zoo-rule")][::2]
    (tmp_path / "seen.txt").write_text("\n".join(chosen) + "\n")
    sources = {"zoo": tmp_path / "zoo.json", "seen": tmp_path / "seen.txt"}
    made = curation.build(tmp_path / "mine.toml", sources=sources)
    assert {image.partition(":")[2] for image in made.ids("zoo-start")} == set(chosen)
    assert set(made.ids("zoo-near")) == set(whole.ids("zoo-near")) & set(made.ids("zoo-start"))
    made.save(tmp_path / "made")
    assert curation.verify(tmp_path / "made", sources=sources, rebuild=True).verdict == "verified"
    text = FILE.replace('wolf = "dog"\nlynx = "cat"', 'lynx = "cat"\nwolf = "dog"').replace('known = ["cat", "dog"]', (
        'known = ["pets"]\ngroups = { pets = ["cat", "dog"] }'))  # fmt: skip
    (tmp_path / "mine.toml").write_text(text)
    assert curation.build(tmp_path / "mine.toml", sources=sources).lists == made.lists
    (tmp_path / "mine.toml").write_text(FILE.replace('wolf = "dog"\nlynx = "cat"', 'lynx = "cat"\nwolf = "dog"'))
    assert curation.build(tmp_path / "mine.toml", sources=sources).digest == made.digest
    dogs = [image for image, names in zoo.items() if "dog" in names]
    (tmp_path / "seen.txt").write_text("\n".join([*chosen, dogs[0]]) + "\n")
    with pytest.raises(CurationError, match="start rule refuses") as caught:
        curation.build(tmp_path / "mine.toml", sources=sources)
    hint = str(caught.value.hint).partition(" in [parameters]")[0]
    (tmp_path / "mine.toml").write_text(
        FILE.replace("[parameters]\n", f"[parameters]\n{hint}\n").partition("[expect]")[0]
    )
    assert f"zoo:{dogs[0]}" in curation.build(tmp_path / "mine.toml", sources=sources).ids("zoo-start")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"near-far"', '"near-fat"', ["names no rule", 'rule = "near-far"']),
        ("[sources]", 'extends = "findmeifyoucan"\n[sources]', ["Name a case", "findmeifyoucan/voc"]),
        ('"mylab/pets"', '"findmeifyoucan/voc"', ["belongs to a benchmark"]),
        ('as = "farther"', 'as = "further"', ["[sources] roads", '"farther"', "as = 'further'"]),
        ('as = "near-far", ', "", ["[sources] zoo", "as = 'zoo'"]),
        ("zoo = { as", "my-zoo = { as", ["[sources] my-zoo", "digits and _"]),
        ('known = ["cat", "dog"]', "", ["ID classes", "no known class"]),
        ('known = ["cat", "dog"]', 'known = ["cat", "dog"]\nunknown = ["wolf"]', ["[classes] unknown"]),
        ("[parameters]", "[[classes.tasks]]\nname = 't1'\nclasses = ['wolf']\n[parameters]", ["[classes] tasks"]),
        ("[classes.aliases]", 'synsets = "cocos"\n[classes.aliases]', ["synsets", "coco, voc, openimages", "cocos"]),
        ("[classes.aliases]", 'synsets = { cat = "cat.n.01" }\n[classes.aliases]', ["synsets", "the name of a map"]),
        ('cat = ["Cat"]\n', "", ["spells an ID class", '[classes.aliases] cat = ["Cat"]']),
        ('dog = ["puppy"]', 'dogs = ["puppy"]', ["aliases", "dogs"]),
        ('dog = ["puppy"]', 'dog = ["cat"]', ["aliases", "cat twice"]),
        ('wolf = "dog"', 'wolff = "dog"', ["[parameters.near.zoo] wolff", "did you mean 'wolf'?"]),
        ('wolf = "dog"', 'wolf = "dogs"', ["[parameters.near.zoo] wolf", "did you mean 'dog'?"]),
        ('wolf = "dog"', "wolf = 1", ["line 14", "near"]),
        ('wolf = "dog"', '" wolf" = "dog"', ["names", "without outer blanks"]),
        ('dog = ["puppy"]', 'dog = ["\\u001b[31mpuppy"]', ["names", "printable"]),
        ("[parameters]\n", '[parameters]\npools = { zoo = "../zoo" }\n', ["pools", "wrong value"]),
        ("[parameters]\n", '[parameters]\npools = { zoo = "roads" }\n', ["pools", "roads twice"]),
        ("[parameters]\n", '[parameters]\nid_names = { zo = ["dog"] }\n', ["id_names", "did you mean 'zoo'?"]),
        ('leash = "dog"', 'leashes = "dog"', ["[parameters.remove.zoo] leashes", "did you mean 'leash'?"]),
        ("[parameters.near.zoo]", "[parameters.near.zo]", ["[parameters] near", "did you mean 'zoo'?"]),
        ("[parameters.near.zoo]", "[parameters.nears.zoo]", ["nears", "did you mean near?"]),
        ("[parameters.near.zoo]", "[parameters.near.roads]", ["pool roads: near", "farther as a whole"]),
        ('wolf = "dog"\nlynx = "cat"\n', "", ["No image is near", 'as = "farther"']),
        (
            '"candidates", dataset = "zoo"',
            '"candidates", dataset = "yard"',
            ["[sources] more", "the dataset of exactly one source"],
        ),
        (
            '"farther", dataset = "roads"',
            '"farther", dataset = "zoo"',
            ["[sources] more", "the dataset of exactly one source"],
        ),
        ("[parameters]\n", '[parameters]\nid_objects = "keep"\n', ["line 14", "id_objects"]),
        ("[parameters]\n", '[parameters]\nwhole = ["zooo"]\n', ["[parameters] whole", "did you mean 'zoo'?"]),
        ("[expect]", "[views.test]\n[expect]", ["[views]", "id_objects"]),
        ('"zoo-rule.images"', '"zoo-rules.images"', ["expects an unknown figure", "zoo-rule"]),
    ],
)
def test_a_wrong_file_is_one_error_that_names_line_and_key(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    """The error says where, and what would be right."""
    draw(tmp_path)
    assert old in FILE
    (tmp_path / "mine.toml").write_text(FILE.replace(old, new, 1))
    (tmp_path / "my-zoo.json").write_bytes((tmp_path / "zoo.json").read_bytes())
    with pytest.raises(CurationError) as caught:
        build(tmp_path, *(["my-zoo"] if "my-zoo" in new else ["zoo"]))
    assert all(word in str(caught.value) for word in words), caught.value


def test_decisions_that_need_what_is_not_given(tmp_path: Path) -> None:
    """Images that are added need their source; contradictory decisions are refused or replayed as asked."""
    zoo, _ = draw(tmp_path)
    added = write_verdicts(tmp_path / "v.jsonl", verdict("zoo:m1", "candidate", "add_far"))
    with pytest.raises(CurationError, match="not given") as caught:
        build(tmp_path, "zoo", decisions=added)
    assert "more" in str(caught.value.expected)
    (tmp_path / "mine.toml").write_text("".join(line for line in FILE.splitlines(True) if "more = " not in line))
    with pytest.raises(CurationError, match="images of zoo-far are not in the source"):
        build(tmp_path, "zoo", decisions=added)
    dog = next(f"zoo:{image}" for image, names in zoo.items() if "dog" in names)
    made = build(tmp_path, "zoo", decisions=write_verdicts(added, verdict(dog, "candidate", "add_far")))
    assert dog in made.ids("zoo-far")
    far = build(tmp_path, "zoo").ids("zoo-far")[0]
    both = write_verdicts(tmp_path / "b.jsonl", verdict(far, "manual", "to_near"),
                          verdict(far, "manual", "remove") | {"reviewer": "ben"})  # fmt: skip
    with pytest.raises(CurationError, match="contradict"):
        build(tmp_path, "zoo", decisions=both)
    with pytest.warns(match="contradict"):
        assert far not in build(tmp_path, "zoo", decisions=both, allow_conflicts=True).ids("zoo-far")


@pytest.mark.parametrize("change", [
    {"parameters": {"near": {"zoo": {"wolf": 1}}}}, {"parameters": {"x": 1}}, {"classes": {}}, {"sources": {"a": {}}},
    {"classes": {"known": ["g0"], "groups": {"g0": ["g0"]}}}, {"classes": {"known": {"file": "x"}}},
    {"classes": {"known": [" cat"]}}, {"classes": {"known": ["cat"], "synsets": "x"}}, {"name": "../x"},
])  # fmt: skip
def test_a_stored_file_is_checked_as_a_users_own(tmp_path: Path, change: dict[str, Any]) -> None:
    """What a foreign manifest states as its file or its decisions ends in one error, never in a traceback."""
    draw(tmp_path)
    build(tmp_path, "zoo").save(tmp_path / "made")
    text = (tmp_path / "made" / "manifest.json").read_text()
    sources = build(tmp_path, "zoo").open_sources({"zoo": tmp_path / "zoo.json"})
    for parameters in ({"file": change}, {"decisions": "[[1]]"}, {"decisions": f"sha256:{'0' * 64}"}):
        header = json.loads(text)
        stored = json.loads(header["rule"]["parameters"]["file"])
        parameters = {key: json.dumps(stored | value) if key == "file" else value for key, value in parameters.items()}
        header["rule"]["parameters"] |= parameters
        (tmp_path / "made" / "manifest.json").write_text(json.dumps(header))
        with pytest.raises(CurationError):
            rebuild(read_manifest(tmp_path / "made"), sources)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_own_data_to_a_score_by_the_commands_that_are_printed(
    tmp_path: Path, layout: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`init` finds kinds of ID classes, and what is near; the commands run as printed; AUROC is that of all pairs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    rng = random.Random(layout)
    names = ["Dog", "cat", "horse", "German shepherd", "zebra", "teapot", "spring"]
    parts = {"train": shown(rng, names[:3], 40, "a", 2), "test": shown(rng, names, 90, "b", 1)}
    given = lay(tmp_path, layout, parts, names)
    words = ["--source", f"id@train={given['train']}", "--source", f"zoo@test={given['test']}"]
    words = words if layout != "coco" else [word.replace("@train", "").replace("@test", "") for word in words]
    said = shell.out("init", "near-far", *words, "--name", "mylab/pets", "--out", "mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    assert '"German shepherd" = "Dog"  # is a kind of Dog' in text
    assert 'zebra = "horse"  # 0.' in text
    assert '#   "spring": a word of' in text
    (line,) = [line for line in said.splitlines() if line.startswith("next: ")]
    said = shell.out(*shlex.split(line.removeprefix("next: curation ")))
    lines = [line.removeprefix("next: curation ") for line in said.splitlines() if line.startswith("next: ")]
    assert [line.split()[0] for line in lines] == ["verify", "evaluate"]
    assert "verified" in shell.out(*shlex.split(lines[0]), "--rebuild")
    made = read_manifest(tmp_path / "pets")
    assert set(made.ids("zoo-near")) == {
        f"pets:{image}" for image, shows in parts["test"].items() if shows == ["zebra"]
    }
    far = {image for image, shows in parts["test"].items() if shows in ([], ["teapot"], ["spring"])}
    assert set(made.ids("zoo-far")) == {f"pets:{image}" for image in far}
    scores = {image: round(rng.random(), 3) for images in parts.values() for image in images}

    def detected(images: list[str]) -> str:
        box = {"category_id": 1, "bbox": [0, 5, 15, 15], "score": 0.9}
        return json.dumps([{"image_id": image, "ood_score": scores[image]} | box for image in images])

    # A detector that ran on the whole source serves both splits.
    (tmp_path / "FILE").write_text(detected([*parts["test"]]))
    (tmp_path / "ID_FILE").write_text(detected([*parts["train"]]))
    measures = shell.data(*shlex.split(lines[1]), "--json")["measures"]
    ids = np.array([scores[image] for image in parts["train"]])
    for split in ("zoo-near", "zoo-far"):
        oods = np.array([scores[image.partition(":")[2]] for image in made.ids(split)])
        differences = ids[:, None] - oods[None]
        auroc = ((differences > 0) + 0.5 * (differences == 0)).mean()
        asked = (split, "paper", "AUROC")
        (found,) = [row for row in measures if (row["split"], row["variant"], row["measure"]) == asked]
        assert found["value"] == pytest.approx(auroc, abs=1e-9)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--source", "zoo.json"], "at least one source of other images"),
        (["--source", "id=pets.json", "--source", "my-zoo=zoo.json"], "letters, digits and _"),
        (["--source", "id=pets.json", "--source", "zoo=pets.json"], "two purposes"),
        (["--source", "id=pets.json", "--source", "zoo=empty.json"], "No image without ID classes"),
        (["--source", "id=empty.json", "--source", "zoo=zoo.json"], "has no objects"),
        (["--source", "id=pets.json", "--source", "zoo=dogs.json"], "No image without ID classes"),
        (["--source", "id=pets.json", "--source", "zoo=table.csv"], "needs boxes"),
        (["--source", "id=pets.json", "--source", "zoo=zoo.json", "--name", "My Lab"], "lower-case"),
    ],
)
def test_init_refuses_what_cannot_be_built(
    tmp_path: Path, words: list[str], told: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written that `build` would refuse."""
    monkeypatch.chdir(tmp_path)
    draw(tmp_path)
    for name, images in (("pets", {"p": ["dog"]}), ("dogs", {"d": ["dog"]}), ("empty", {})):
        (tmp_path / f"{name}.json").write_text(json.dumps(as_coco(images, ["dog"])))
    (tmp_path / "table.csv").write_text("image_id,class\n1,dog\n")
    assert told in shell.err("init", "near-far", *words, "--out", "new.toml")
    assert not (tmp_path / "new.toml").exists()
