"""Every number that evaluations compute on the drawn worlds, as rows.

Run ``python -m tests.frozen.rows [--write] [BENCHMARK …]``.

A row: benchmark, world, variant, options, measure, value. Beside declared measures stand every other number of a
result's JSON by its path, and a digest of every column of its tables. Without ``--write`` what differs from the
committed rows is printed: nothing may, where a change is to keep all numbers.
"""

import gzip
import hashlib
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import curation
from tests.frozen.python_words import python_words
from tests.worlds import findmeifyoucan, image_ood, osod3, runs

ROWS = Path(__file__).parent / "rows.json.gz"
SKIP = {"versions", "curation", "notes", "note"}
NAMED = {"truth", "detections", "scores", "val", "background", "id_scores"}
Row = tuple[str, str, str, str, str, Any]


def given(words: Iterable[object]) -> tuple[dict[str, Any], str]:
    """CLI words as keyword arguments of `curation.evaluate`, and the options that are no paths, as a text."""
    kwargs, label, words = {}, [], list(map(str, words))
    while words:
        key = words.pop(0).removeprefix("--").replace("-", "_")
        value = words.pop(0)
        if key not in NAMED and "/" not in value:
            label.append(f"{key}={value}")
        if key == "background":
            kwargs[key] = (value,)
        elif key in NAMED and "=" in value.split("/")[0]:
            name, _, rest = value.partition("=")
            kwargs.setdefault(key, {})[name] = rest
        else:
            kwargs[key] = int(value) if key in ("bootstrap", "seed") else value
    return kwargs, " ".join(label)


def each_run(folder: Path) -> Iterator[tuple[str, runs.Run]]:
    """Yield a name and a drawn run for every benchmark, rule and choice of variants."""
    n = 0

    def place() -> Path:
        nonlocal n
        n += 1
        made = folder / str(n)
        made.mkdir()
        return made

    for o in (
        (),
        ("--variant", "paper"),
        ("--variant", "official"),
        ("--variant", "all"),
        ("--variant", "all", "--bootstrap", "15", "--bootstrap", "seed=3"),
        ("--set", "difficult=count", "--bootstrap", "8"),
        ("--variant", "all", "--set", "difficult=count"),
        ("--variant", "all", "--set", "level_counts=float32"),
        ("--variant", "official", "--set", "level_counts=float32"),
        ("--variant", "official", "--bootstrap", "8"),
        ("--set", "recalls=0.2,0.7,1.0", "--set", "betas=0.25,2", "--set", "fbeta_formula=published"),
    ):
        yield "elephant", runs.elephant_run(place(), *o)
    for form in ("json", "text"):
        yield "voc", runs.voc_run(place(), form)
    yield "coco", runs.coco_run(place())
    yield "ovcoco", runs.ovcoco_run(place())
    yield "ovcoco-without", runs.ovcoco_run(place())
    for rule in osod3.RULES:
        yield "osod3", runs.osod3_run(place(), rule)
    for world, name, profiles in (
        ("once", "owod", ("clean", "ore", "owdetr", "all")),
        ("repeated", "owod", ("clean", "ore", "owdetr", "all")),
        ("rwd", "rwd", ("all",)),
        ("nuowodb", "nuowodb", ("all",)),
    ):
        for profile in profiles:
            yield world, runs.owod_run(place(), world, profile, name)
    for rule in findmeifyoucan.THRESHOLDS:
        for profile in ("official", "paper", "all"):
            yield "findmeifyoucan", runs.findmeifyoucan_run(place(), profile, rule)
    for name in ("imagenet", "ssb"):
        yield "imagenet", runs.classifiers_run(place(), name)
    for name in image_ood.SETS:
        yield "image_ood", runs.image_ood_run(place(), name)


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float | None]]:
    """Yield every number below a tree, with its path."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in SKIP:
                yield from leaves(one, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for key, one in enumerate(value):
            yield from leaves(one, (*path, str(key)))
    elif value is None or isinstance(value, (int, float)):
        yield "/".join(path), value


def of(result: Any, folder: Path) -> Iterator[tuple[str, str, object]]:
    """Yield variant, measure, value."""
    for one in result.measures.astype(object).where(lambda f: f.notna(), None).to_dict("records"):
        labels = [str(one.get(k) or "") for k in ("part", "task", "split", "case", "method", "score", "variant")]
        name = f"{one['measure']}[{one['parameters']}]"
        yield "/".join(filter(None, labels)), name, one["value"]
        yield "/".join(filter(None, labels)), f"{name}.n", one["n"]
    for path, value in leaves(result.json_data()):
        yield "", f"json:{path}", value
    seen = Counter[str]()
    for table in result.tables:
        found = list(table.all_rows())
        for number, column in enumerate(table.columns):
            text = repr([row[number] for row in found]).replace(str(folder), "")
            digest = hashlib.sha256(text.encode()).hexdigest()[:20]
            yield "", f"table:{table.name}.{seen[table.name]}.{column.name}", f"{len(found)} rows {digest}"
        seen[table.name] += 1


def rows(wanted: Iterable[str] = ()) -> Iterator[Row]:
    """Yield benchmark, world, variant, options, measure and value of everything that is computed, or of some worlds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for world, run in each_run(folder):
            if wanted and run.protocol not in wanted:
                continue
            kwargs, options = given(python_words(run.protocol, run.words[1:]))
            result = getattr(curation.evaluate, run.protocol)(**kwargs)
            for variant, measure, value in of(result, folder):
                yield run.protocol, world, variant, options, measure, json.loads(json.dumps(value, default=float))
            print(run.protocol, world, options, file=sys.stderr, flush=True)


def indexed(found: Iterable[Any]) -> dict[tuple[Any, ...], Any]:
    """Return the value of each row by what names it; rows of one name are numbered."""
    count = Counter[tuple[Any, ...]]()
    made = {}
    for *key, value in found:
        count[tuple(key)] += 1
        made[(*key, count[tuple(key)])] = value
    return made


def differ(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return not math.isclose(one, other, rel_tol=1e-12)
    return json.dumps(one) != json.dumps(other)


def main(words: list[str]) -> int:
    wanted = [word for word in words if not word.startswith("--")]
    found = json.loads(json.dumps(list(rows(wanted))))
    if "--write" in words:
        ROWS.write_bytes(gzip.compress(json.dumps(found, indent=0).encode(), mtime=0))
        return 0
    committed = json.loads(gzip.decompress(ROWS.read_bytes()))
    committed = [row for row in committed if not wanted or row[0] in wanted]
    before, after = indexed(committed), indexed(found)
    told = [("gone", key) for key in before if key not in after] + [("new", key) for key in after if key not in before]
    told += [("differs", key) for key in before if key in after and differ(before[key], after[key])]
    for what, key in told[:200]:
        print(what, *key, before.get(key), after.get(key), sep=" | ")
    print(f"{len(before)} rows before, {len(after)} after; {len(told)} gone, new or different")
    return bool(told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
