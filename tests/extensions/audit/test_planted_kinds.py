"""Sixty folders: six kinds of facts planted in eleven forms of lists. Sets say what is planted, and the audit finds it.

No folder may hold an error or a warning on anything else: near paths and counters are planted to stay silent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

from curation.extensions.audit.run import audit
from tests.extensions.audit.list_forms import (
    clam,
    columns,
    folds,
    groups,
    labelled,
    lists,
    pairs,
    shards,
    split_column,
    tables,
    yolo,
)

Parts = dict[str, list[str]]
LEAST_FOUND = 57


SEVERAL_FILES = (lists, labelled, pairs, tables, shards)
ONE_FILE = (groups, split_column, folds, columns, clam)


def drawn(pick: random.Random) -> Parts:
    """Return names of a patient each; every patient is in one part."""
    patients = pick.sample(range(100, 1000), 48)
    names = [f"scans/patient{patient}_{pick.getrandbits(40):010x}.png" for patient in patients for _ in range(3)]
    return {"train": names[:96], "val": names[96:120], "test": names[120:]}


def shared(parts: Parts, pick: random.Random, to: str = "test") -> None:
    parts[to] += pick.sample(parts["train"], pick.randint(3, 9))


def repeated(parts: Parts, pick: random.Random) -> None:
    parts["train"] += pick.sample(parts["train"], pick.randint(2, 6))


def patients(parts: Parts, pick: random.Random) -> None:
    chosen = pick.sample(parts["train"], pick.randint(2, 6))
    parts["test"] += [f"{name[:16]}_{pick.getrandbits(40):010x}.png" for name in chosen]


def near(parts: Parts, pick: random.Random) -> None:
    """Names without patients that differ in case, folder or number from one of train."""
    for part, names in parts.items():
        parts[part] = [f"scans/{pick.getrandbits(48):012x}.png" for _ in names]
    a, b, c, d = pick.sample(parts["train"], 4)
    parts["test"] += [a.upper(), f"mirror/of/{b}", c.replace(".png", "0.png"), d.replace("scans/", "scans/0")]


def counters(parts: Parts, pick: random.Random) -> None:
    for part, names in parts.items():
        parts[part] = [f"{number:05}.png" for number in range(pick.randint(1, 3) + len(names))]


Plant = Callable[[Parts, random.Random], None]
PLANTS: dict[str, tuple[Plant, tuple[Callable[[Path, Parts], None], ...]]] = {
    "train in test": (shared, (*SEVERAL_FILES, *ONE_FILE, yolo)),
    "train in val": (lambda parts, pick: shared(parts, pick, "val"), (*SEVERAL_FILES, *ONE_FILE, yolo)),
    "repeated lines": (repeated, (*SEVERAL_FILES, *ONE_FILE)),
    "patients on both sides": (patients, (*SEVERAL_FILES, *ONE_FILE)),
    "near paths": (near, (*SEVERAL_FILES, groups, split_column, folds, columns)),
    "counters": (counters, (lists, labelled, tables, shards)),
    "nothing": (lambda parts, pick: None, (lists, split_column, folds, columns, yolo)),
}


def planted_facts(parts: Parts, kind: str, form: str) -> set[tuple[str, int]]:
    """Return the family of rules and the count of each fact, by sets of the names: no code of the audit is used."""
    facts = set[tuple[str, int]]()
    if kind == "counters":
        return facts
    for part in parts.values():
        if again := len(part) - len(set(part)):
            facts.add(("repeats", again))
    for one, two in combinations(parts.values(), 2):
        if images := len(set(one) & set(two)):
            facts.add(("shared", images))
        people = {name.split("_")[0] for name in one if "patient" in name} & {
            name.split("_")[0] for name in two if "patient" in name
        }
        if people and form != "yolo":
            facts.add(("groups", len(people)))
    return facts


_KINDS = {"DS1": "repeats", "DS2": "shared", "DS4": "shared", "PL7": "groups"}


def test_sixty_planted_folders(tmp_path: Path) -> None:
    cases = [(kind, plant, form) for kind, (plant, forms) in PLANTS.items() for form in forms]
    assert len(cases) == 60
    missed, false = list[str](), list[str]()
    for number, (kind, plant, form) in enumerate(cases):
        pick = random.Random(number)
        parts = drawn(pick)
        plant(parts, pick)
        folder = tmp_path / str(number)
        form(folder, parts)
        expected = planted_facts(parts, kind, form.__name__)
        report = audit(folder)
        facts = {
            (_KINDS.get(one.rule, one.rule), one.count)
            for one in report.statements
            if one.gravity in ("error", "warning")
        }
        name = f"{kind}, {form.__name__}: "
        missed += [name + str(fact) for fact in sorted(expected - facts)][:1]
        false += [name + str(fact) for fact in sorted(facts - expected)]
    assert not false, "\n".join(false + missed)
    assert len(cases) - len(missed) >= LEAST_FOUND, "\n".join(missed)
