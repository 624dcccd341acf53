"""What of the outputs of a command is frozen, and how far another run may be from it.

Of JSON every number, mark and short text is frozen, at its path; of CSV every cell, by its column; of exports, lists,
manifests and all other files the bytes. Further keys and columns are no difference. Not frozen are prose, the look of
pages and pictures, what is printed for people, versions, and the bytes of Parquet, whose content a publication states.
"""

import csv
import gzip
import hashlib
import io
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.frozen.outputs import NUMBER, Written, verb_of, without_libraries
from tests.rounding import cosine_error

FOLDER = Path(__file__).resolve().parent / "expected"
PAGES = (".html", ".toml")
"""Written for people."""
PRINTED = {"results.json", "audit.json", "cut.json"}
"""What ``--json`` prints as well."""
TABLES = {"evaluate", "leaderboard", "audit", "show", "cut", "scores", "neighbors", "duplicates", "propose"}
"""Verbs whose files hold results: JSON and CSV that may gain keys and columns. Files of all others are bytes."""
LOOSE = {"scores": 1e-12, "cut": 1e-12} | dict.fromkeys(("neighbors", "duplicates"), cosine_error(352))
"""Verbs whose last digits depend on the processor, and the relative difference that passes (docs/portability.md)."""
WORDS = 5
"""A text of so many words or more is prose."""
GONE = {"audit": {"composition", "class_files", "rules", "tally"}}
"""Keys of JSON that a verb no longer prints: the statements hold what they said."""
VERSIONS = {"versions", "curation", "tool"}
PROSE = object()
Frozen = dict[str, dict[str, Any]]
"""Command, then file (``""`` for what was printed), to what is frozen of it."""


def frozen(outputs: Iterable[Written]) -> Frozen:
    """Return what is frozen of the outputs of a world."""
    found: Frozen = {}
    for one in outputs:
        kept = _of(one)
        if kept is not None:
            found.setdefault(one.command, {})[one.path] = kept
    return found


def _of(one: Written) -> Any:
    verb, content = verb_of(one.command), without_libraries(one.content)
    if not one.path:
        text, _, status = content.rpartition("exit status ")
        # The header that `build` prints is the file that it writes.
        printed = json.loads(text) if " --json" in one.command and verb != "build" else None
        return {"exit status": int(status), "json": plain(printed)}
    # Digests of a store are of Parquet's bytes, which are those of a version of pyarrow.
    if one.path.endswith((*PAGES, "/index.jsonl", "/shards.json")) or (
        Path(one.path).name in PRINTED and " --json" in one.command
    ):
        return None
    if verb in TABLES and one.path.endswith((".json", ".jsonl")):
        lines = content.splitlines() if one.path.endswith(".jsonl") else [content]
        return {"json": plain([json.loads(line) for line in lines])}
    if verb in TABLES and one.path.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(content)))
        return {
            "rows": len(rows) - 1,
            "columns": dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=False)),
        }
    return {"sha256": hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()[:24]}


def plain(value: Any) -> Any:
    """Return a JSON value without prose, versions and what is empty then."""
    if isinstance(value, dict):
        kept = {key: plain(one) for key, one in value.items() if key not in VERSIONS}
        return {key: one for key, one in kept.items() if one is not PROSE}
    if isinstance(value, list):
        return [None if (kept := plain(one)) is PROSE else kept for one in value]
    return PROSE if isinstance(value, str) and len(value.split()) >= WORDS else value


def committed(world: str) -> Frozen:
    found: Frozen = json.loads(gzip.decompress((FOLDER / f"{world}.json.gz").read_bytes()))
    return found


def write(world: str, found: Frozen) -> None:
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=True) + "\n"
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{world}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def differences(ours: Frozen, theirs: Frozen) -> Iterator[str]:
    """Yield every place of `theirs`, which is committed, at which `ours` says something else or nothing.

    Floats agree within one unit in the last place, `LOOSE` verbs aside; all else is equal.
    """
    for command, files in theirs.items():
        if command not in ours:
            yield f"curation {command}: not run"
            continue
        tolerance, gone = LOOSE.get(verb_of(command), 0.0), GONE.get(verb_of(command), set())
        for path, kept in files.items():
            if gone and isinstance(kept.get("json"), dict):
                kept = kept | {"json": {key: one for key, one in kept["json"].items() if key not in gone}}
            where = f"curation {command}: {path or 'printed'}"
            if path not in ours[command]:
                yield f"{where}: not written"
            else:
                yield from _differences(ours[command][path], kept, where, tolerance)


def _differences(ours: Any, theirs: Any, where: str, tolerance: float) -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key, value in theirs.items():
            if key in ours:
                yield from _differences(ours[key], value, f"{where} / {key}", tolerance)
            else:
                yield f"{where} / {key}: missing, was {_short(value)}"
    elif isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(one, other, f"{where}[{place}]", tolerance)
    elif not _same(ours, theirs, tolerance):
        yield f"{where}: {_short(ours)}, was {_short(theirs)}"


def _same(one: Any, other: Any, tolerance: float) -> bool:
    if one == other:
        return type(one) is type(other)
    one, other = _number(one), _number(other)
    if one is None or other is None:
        return False
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    allowed = max(math.ulp(other), tolerance * max(1.0, abs(other)) if tolerance else 0.0)
    return abs(one - other) <= allowed


def _number(value: Any) -> float | None:
    """Return a number with a fraction; as CSV has it too. Whole numbers are counts, and counts are equal or not."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return float(value)
    return value if isinstance(value, float) else None


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
