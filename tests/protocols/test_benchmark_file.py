"""Benchmark files: what a file inherits, its cases, the JSON Schema of each rule and its page in the terminal."""

from __future__ import annotations

import json
import random
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

import curation
from curation.benchmarks.rules.benchmark_file import (
    RULES,
    Classes,
    ListedPart,
    SourceTable,
    WrittenFile,
    file_schema,
    read_benchmark_file,
    rule_module,
)
from curation.core.errors import CurationError
from tests.protocols.test_hierarchy_rule import draw as hierarchy_photos
from tests.protocols.test_lists_rule import FILE as LISTS
from tests.protocols.test_wilderness_rule import FILE, drawn
from tests.shell import Shell

SPLIT = 'rule = "split"\nname = "mylab/split"\n[sources]\nimages = {}\n[parameters]\nshares = { a = 0.5, b = "0.5" }\n'
CASE = '\n[cases.small]\nparameters = { ratios = [0.5] }\n[cases.other]\nname = "mylab/other"\n[cases.other.classes]\n'
CASE += 'known = { file = "known.txt" }\n'


def stored(path: Path | str) -> dict[str, Any]:
    """Return a benchmark file as a manifest holds it."""
    data: dict[str, Any] = json.loads(read_benchmark_file(str(path)))
    return data


def test_a_file_inherits_all_but_what_is_its_own(tmp_path: Path) -> None:
    """Keys are laid over those of the other file, tables key by key; name, expect and paper are never inherited."""
    (tmp_path / "base.toml").write_text(FILE)
    (tmp_path / "mine.toml").write_text(
        'extends = "base.toml"\nname = "mylab/mine"\n[sources]\nyard = { dataset = "garden" }\n'
        '[parameters]\nratios = ["2.0"]\n'
    )
    base, mine = stored(tmp_path / "base.toml"), stored(tmp_path / "mine.toml")
    assert "expect" in base
    expected = {key: value for key, value in base.items() if key != "expect"} | {"name": "mylab/mine"}
    expected["parameters"] = {**base["parameters"], "ratios": ["2"]}
    expected["sources"] = {**base["sources"], "yard": {"required": False, "dataset": "garden"}}
    assert mine == expected
    (tmp_path / "mine.toml").write_text('extends = "base.toml"\n')
    with pytest.raises(CurationError, match="name"):
        stored(tmp_path / "mine.toml")


def test_a_file_extends_the_file_that_a_manifest_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A colleague's manifest is enough to build the same benchmark of other data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(drawn(random.Random(1), 40, ["bolt"], 1, 2)))
    (tmp_path / "split.toml").write_text(SPLIT)
    curation.build("split.toml", {"images": "a.json"}).save(tmp_path / "manifests/mylab/split/1.0.0")
    (tmp_path / "mine.toml").write_text('extends = "mylab/split"\nname = "mylab/mine"\n[parameters]\nsalt = "x"\n')
    base = stored("split.toml")
    assert stored("mine.toml") == base | {"name": "mylab/mine", "parameters": {**base["parameters"], "salt": "x"}}
    made = curation.build("mine.toml", {"images": "a.json"})
    assert made.parts == ("a", "b")
    (tmp_path / "mine.toml").write_text('extends = "elephant/train2017"\nname = "mylab/mine"\n')
    with pytest.raises(CurationError, match="contains no benchmark file"):
        stored("mine.toml")


def test_a_case_is_laid_over_its_file(tmp_path: Path, shell: Shell) -> None:
    """``FILE.toml/KEY`` builds a case: its name is NAME-KEY where it states none, its figures are its own."""
    (tmp_path / "known.txt").write_text("nut\n")
    (tmp_path / "mine.toml").write_text(FILE + CASE)
    (tmp_path / "plain.toml").write_text(FILE)
    assert stored(tmp_path / "mine.toml") == stored(tmp_path / "plain.toml")
    small, other = stored(tmp_path / "mine.toml/small"), stored(tmp_path / "mine.toml/other")
    base = {key: value for key, value in stored(tmp_path / "plain.toml").items() if key != "expect"}
    assert small == base | {"name": "mylab/parts-small", "parameters": {**base["parameters"], "ratios": ["0.5"]}}
    assert (other["name"], other["classes"]["known"]) == ("mylab/other", ["nut"])
    rng = random.Random(5)
    (tmp_path / "parts.json").write_text(json.dumps(drawn(rng, 20, ["bolt", "nut"], 1000, 3)))
    (tmp_path / "factory.json").write_text(json.dumps(drawn(rng, 60, ["Bolt", "nut", "cable", "tool"], 5, 2)))
    words = ["--source", f"closed={tmp_path}/parts.json", "--source", f"wild={tmp_path}/factory.json"]
    shell.out("build", tmp_path / "mine.toml" / "small", *words, "--out", tmp_path / "made")
    assert curation.load(tmp_path / "made").header.name == "mylab/parts-small"
    assert curation.verify(tmp_path / "made", rebuild=True).ok
    (tmp_path / "next.toml").write_text('extends = "mine.toml/other"\nname = "mylab/next"\n')
    assert stored(tmp_path / "next.toml") == other | {"name": "mylab/next"}


@pytest.mark.parametrize(
    ("text", "case", "words"),
    [
        ('extends = "mine.toml"\nname = "a"\n', "", "extends itself"),
        ('extends = "nowhere.toml"\nname = "a"\n', "", "does not exist"),
        ('extends = "../other.toml"\nname = "a"\n', "", "other.toml"),
        ('extends = "/etc/other.toml"\nname = "a"\n', "", "other.toml"),
        ('extends = ["base.toml"]\nname = "a"\n', "", "Invalid value of extends"),
        ('extends = ""\nname = "a"\n', "", "Invalid value of extends"),
        ('extends = "no/manifest"\nname = "a"\n', "", "No such manifest"),
        ('extend = "base.toml"\nrule = "split"\nname = "a"\n[sources.a]\n', "", "did you mean extends?"),
        ('known = ["nut"]\n' + FILE, "", "did you mean known in [classes]?"),
        (FILE.replace("[parameters]", '[parameters]\nstrangers = "drop"'), "", "one of refuse, leave-out, keep"),
        (FILE.replace('orders = ["hash", "id"]', 'orders = "hash"'), "", "expected: a list"),
        (FILE.replace('"nut"]', '"nut", 3]'), "", "expected: text"),
        (FILE + '[views.wr1]\nknown = "drp"\n', "", "a wrong value: known"),
        (FILE + CASE, "smal", "did you mean"),
        (FILE, "small", "no such case"),
        (FILE + '[cases.small]\nextends = "base.toml"\n', "small", "cannot have this key"),
        (FILE + "[cases.small]\nparameter = {}\n", "small", "did you mean parameters?"),
        ('cases = "x"\n' + FILE, "small", "no such case"),
    ],
)
def test_wrong_files_are_one_error(tmp_path: Path, text: str, case: str, words: str) -> None:
    """Each says what is wrong, and the nearest that would be right."""
    (tmp_path / "base.toml").write_text(FILE)
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(CurationError) as caught:
        stored(f"{tmp_path}/mine.toml" + f"/{case}" * bool(case))
    assert words in str(caught.value)


NEAR = """rule = "near-far"
name = "mylab/near"
[sources]
zoo = { as = "near-far", dataset = "zoo" }
[classes]
known = ["bolt", "nut"]
[parameters.near.zoo]
cable = "bolt"
[parameters.remove.zoo]
tool = "nut"
"""
PETS = """rule = "hierarchy"
name = "mylab/pets"
[sources]
images = { dataset = "pets" }
[classes]
known = ["cat", "dog"]
absent = ["dog"]
negative = [
  "horse",
]
unknown = ["car"]
[classes.synsets]
cat = "cat.n.01"
[parameters]
train = 0.5
val = 0.25
test = 0.25
parts = "shares"
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "words"),
    [
        (FILE, 'rule = "wilderness"', 'rule = "wildernes"', 1, 'rule = "wilderness"'),
        (FILE, "closed = {", "close = {", 3, "expected: close"),
        (FILE, '"nut"]', '"nut", "gear"]', 8, 'absent = ["gear"]'),
        (FILE, "orders =", "order =", 13, "did you mean orders?"),
        (FILE, "orders =", "orders.a =", 13, "expected: a list"),
        (FILE, '"hash", "id"', '"hahs", "id"', 13, "did you mean hash?"),
        (FILE, "ratios = [0.5", "ratios = [-0.5", 12, "a wrong value: ratios"),
        (FILE, "ratios = [0.5", 'ratios = ["half"', 12, "expected: a number"),
        (FILE, "ratios = [0.5", "ratios = [true", 12, "a wrong value: ratios"),
        (FILE, "[classes]", '[classes]\nabsent = ["nutt"]', 8, "did you mean nut?"),
        (FILE, "[classes.aliases]", "[classes.alias]", 9, "did you mean aliases?"),
        (FILE, "bolt = [", "bold = [", 10, "did you mean bolt?"),
        (FILE, "[parameters]", "[parameter]", 11, "did you mean parameters?"),
        (NEAR, '"near-far", d', '"nearfar", d', 4, "did you mean 'near-far'?"),
        (NEAR, "dataset", "datasets", 4, "did you mean dataset?"),
        (NEAR, '"zoo"', '"Zoo"', 4, "expected: a to z"),
        (NEAR, '["bolt", "nut"]', '"bolt"', 6, "expected: a table or a list"),
        (NEAR, "near.zoo", "near.zo", 7, "did you mean 'zoo'?"),
        (NEAR, "[parameters.near.zoo]", "[parameters.nears.zoo]", 7, "did you mean near?"),
        (NEAR, "cable =", "cabel =", 8, "did you mean 'cable'?"),
        (NEAR, '= "bolt"', '= "blot"', 8, "did you mean 'bolt'?"),
        (
            NEAR,
            "[parameters.remove.zoo]",
            "[parameters]\nremoved = 1\n[parameters.remove.zoo]",
            10,
            "did you mean remove?",
        ),
        (NEAR, '= "nut"', "= 3", 9, "expected: text"),
        (PETS, "negative =", "negatives =", 8, "did you mean negative?"),
        (PETS, '"horse"', '"hrose"', 8, "did you mean horse?"),
        (PETS, '["car"]', '["car", "cat"]', 11, "listed twice"),
        (PETS, 'absent = ["dog"]', 'absent = ["dgo"]', 7, "did you mean dog?"),
        (PETS, 'cat = "', 'cta = "', 13, "did you mean cat?"),
        (PETS, "cat.n.01", "cat.n.99", 13, "curation hierarchy find cat"),
        (PETS, "train =", "training =", 15, "did you mean train?"),
        (PETS, "val = 0.25", "val = 0.5", 15, "shares that sum to 1"),
        (PETS, '"shares"', '"share"', 18, "did you mean shares?"),
        (PETS, 'parts = "shares"', 'cut = "half"', 18, "expected: whole, halves, sixths"),
    ],
)
def test_a_wrong_file_is_told_by_its_line_and_what_was_likely_meant(
    text: str, old: str, new: str, line: int, words: str, tmp_path: Path
) -> None:
    """The file builds with what it advises; an error of the rule, found in the sources, names the line too."""
    rng = random.Random(5)
    parts = json.dumps(drawn(rng, 20, ["bolt", "nut"], 1000, 3))
    others = json.dumps(drawn(rng, 400, ["Bolt", "nut", "cable", "tool"], 5, 2))
    contents = {"closed": parts, "wild": others, "zoo": others.replace("Bolt", "bolt")}
    sources: dict[str, Any] = {}
    for name in [name for name in tomllib.loads(text)["sources"] if name != "yard"]:
        sources[name] = tmp_path / (f"{name}.json" if name in contents else name)
        if name in contents:
            sources[name].write_text(contents[name])
        else:
            hierarchy_photos(sources[name], dict.fromkeys(("cat", "dog", "horse", "car"), 8))
    path = tmp_path / "mine.toml"
    text = text.partition("[expect]")[0]
    path.write_text(text)
    curation.build(path, sources)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(CurationError) as caught:
        curation.build(path, sources)
    assert f"{path}, line {line}" in str(caught.value)
    assert words in str(caught.value)


def test_a_stored_file_extends_nothing() -> None:
    """A foreign manifest cannot name further files."""
    text = '{"rule":"split","name":"a","sources":{"a":{}},"extends":"b.toml"}'
    with pytest.raises(CurationError):
        read_benchmark_file(text)


@pytest.mark.parametrize("rule", RULES)
def test_the_schema_of_a_rule_accepts_its_files_and_no_other_key(rule: str) -> None:
    """The schema that ``curation list RULE --json`` prints is one, and is as strict as the reader."""
    schema = file_schema(rule)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    page = (Path(__file__).parents[2] / "docs/own_benchmark.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if f'rule = "{rule}"' in block]
    texts = [*blocks, *(text for text in (FILE + CASE, LISTS, SPLIT) if f'rule = "{rule}"' in text)]
    assert texts
    for text in texts:
        assert not [*validator.iter_errors(tomllib.loads(text))]
        for wrong in (
            'knwon = ["a"]\n' + text,
            text.replace(f'"{rule}"', '"other"'),
            text.replace("sources", "source"),
        ):
            assert [*validator.iter_errors(tomllib.loads(wrong))]


@pytest.mark.parametrize("rule", RULES)
def test_the_page_of_a_rule_explains_every_key(rule: str, shell: Shell) -> None:
    """Every key of the file, of its sources and classes and every parameter has a line with a meaning."""
    page = shell.out("list", rule)
    records = [
        rule_module(rule).PARAMETERS,
        SourceTable,
        Classes,
        WrittenFile,
        *([ListedPart] if rule == "lists" else []),
    ]
    for record in records:
        for field in msgspec.structs.fields(record):
            lines = [line.split() for line in page.splitlines() if line.startswith(f"  {field.encode_name}")]
            assert any(words[0] == field.encode_name and len(words) > 1 for words in lines), field.encode_name
    for part, _ in rule_module(rule).PARTS:
        assert part in page
    assert shell.data("list", rule, "--json")["schema"] == file_schema(rule)


def test_benchmarks_are_listed_by_rule_the_papers_first(shell: Shell) -> None:
    """The first five are those of the papers, and each rule of a file of one's own has a line."""
    names = [each["name"] for each in shell.data("list", "benchmarks", "--json")["benchmarks"]]
    assert names[:5] == ["elephant", "owod", "osod3", "imagenet", "findmeifyoucan"]
    page = shell.out("list", "benchmarks")
    assert all(f"\n  {rule} " in page for rule in RULES)
