"""Small changes of valid files, each drawn from a `random.Random`: of their structure where they have one, or bytes."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from random import Random
from typing import Any

_RAW = "@raw%d@"
_RAWS = (
    b"NaN", b"Infinity", b"1e999", b"9" * 5000, b"0x10", b"01", b"tru", b"", b",", b"}", b"[" * 3000, b'{"a":' * 3000,
    b'"\\ud800"', b'"\xed\xa0\x80"', b'"\xff\xfe"', b'"\\u0000"', b'"a\nb"', b'{"a":1,"a":2}', b"'x'", b"1 2",
)  # fmt: skip
"""JSON that no encoder writes."""
TEXTS = (
    "", " ", "\0", "\u00e9", "\ufeff", "\u202e", "\x1b[31m", "../../etc/passwd", "/etc/passwd", "..", "a\\b", "C:\\x",
    "<script>", "=1+1", "a" * 70_000, "a\nb", "a\rb", "a,b", 'a"b', "NaN", "inf", "1e400", "0x1F", "1_000", "\u0661",
    "-0", "+1", "--", "#", "%s%n", "{}", "null", "sha256:" + "0" * 64, "coco:1", ":", "\ud800", "\U0001f600", "\u2028",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 255, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400, -0.0, 0.5, -0.5, 1e-320, 1e308,
    -1e308, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_TOKEN = re.compile(rb"[+-]?\d+(?:\.\d+)?|[A-Za-z_]\w*|[^\w\s]")


def _odd(value: Any, rng: Random) -> Any:
    """Return an odd value, more often than not of the kind that stood there: what lies behind the check of types."""
    same_kind = rng.random() < 0.6
    if same_kind and isinstance(value, int | float):
        return rng.choice(NUMBERS)
    if same_kind and isinstance(value, str):
        return rng.choice(TEXTS)
    raw = _RAW % rng.randrange(len(_RAWS))
    return rng.choice((rng.choice(NUMBERS), rng.choice(TEXTS), None, True, [], {}, [None], {"": None}, [value], raw))


def _changed_json(value: Any, rng: Random) -> Any:
    for _ in range(rng.choice((1, 1, 2, 3))):
        parent: Any = None
        key: Any = None
        child = value
        # Deep places are as likely as shallow ones of a large file.
        while isinstance(child, dict | list) and child and (parent is None or rng.random() < 0.8):
            parent, key = child, rng.choice(list(child) if isinstance(child, dict) else range(len(child)))
            child = parent[key]
        if parent is None:
            return _odd(value, rng)
        change = rng.randrange(5)
        if change == 0:
            del parent[key]
        elif change == 1 and isinstance(parent, dict):
            parent[rng.choice((*TEXTS, f"{key}x"))] = parent.pop(key)
        elif change == 1:
            parent.insert(key, json.loads(json.dumps(child)))
        else:
            parent[key] = _odd(child, rng)
    return value


def of_json(data: bytes, rng: Random) -> bytes:
    """Change the structure of a JSON text; now and then a key stands twice."""
    text = json.dumps(_changed_json(json.loads(data), rng), ensure_ascii=rng.random() < 0.7)
    data = re.sub(rb'"@raw(\d+)@"', lambda mark: _RAWS[int(mark[1])], text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.05 and (keys := re.findall(rb'"\w+": ', data)):
        key = rng.choice(keys)
        data = data.replace(key, key + b"1, " + key, 1)
    return data


def of_lines(data: bytes, rng: Random) -> bytes:
    """Change one line: as JSON, as cells, or whole."""
    lines = data.split(b"\n")
    row = rng.randrange(len(lines))
    line, added = lines[row], str(rng.choice((*NUMBERS[:-3], *TEXTS))).encode("utf-8", "surrogatepass")[:70_000]
    if line.startswith(b"{") and rng.random() < 0.6:
        lines[row] = of_json(line, rng)
    elif rng.random() < 0.6:
        mark = next((mark for mark in (b",", b"\t", b"<", b" ") if mark in line), b",")
        cells = line.split(mark)
        column = rng.randrange(len(cells))
        cells[column : column + 1] = rng.choice(([], [cells[column]] * 2, [b'"' + cells[column]], [added], [added]))
        lines[row] = mark.join(cells)
    else:
        lines[row : row + 1] = rng.choice(([], [line, line], [b""], [line * 300], [added, line]))
    return b"\n".join(lines)


def of_tokens(data: bytes, rng: Random) -> bytes:
    """Replace one number, word or sign of a text."""
    tokens = list(_TOKEN.finditer(data[: 1 << 16]))
    if not tokens:
        return of_bytes(data, rng)
    token, other = rng.choice(tokens), rng.choice(tokens)
    new = rng.choice((b"", other[0], token[0] * 2, str(rng.choice(NUMBERS[:-3])).encode()[:5000]))
    return data[: token.start()] + new + data[token.end() :]


def of_bytes(data: bytes, rng: Random) -> bytes:
    """Flip, cut, repeat or pack bytes, or write them in another encoding."""
    start, stop = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    noise, packed = rng.randbytes(rng.choice((1, 2, 8))), gzip.compress(data)
    return rng.choice((
        data[:start] + noise + data[start + len(noise) :], data[:start], data[:start] + data[stop:],
        data[:stop] + data[start:], b"\xef\xbb\xbf" + data, data.decode("latin-1").encode("utf-16"), packed,
        packed[: len(packed) // 2], packed + noise, b"", b"\x1f\x8b" + noise, data + b"\0" * 100,
    ))  # fmt: skip


_BINARY = {".npz", ".npy", ".jpg", ".png", ".parquet", ".tar"}


def mutated(path: Path, data: bytes, rng: Random) -> bytes:
    """Return the bytes of a file with one change or a few."""
    changes = [of_bytes] if path.suffix in _BINARY else [of_lines, of_lines, of_tokens, of_bytes]
    if path.suffix == ".json":
        changes = [of_json, of_json, of_json, *changes]
    for _ in range(rng.choice((1, 1, 1, 2))):
        try:
            data = rng.choice(changes)(data, rng)
        except (ValueError, RecursionError, LookupError, TypeError):  # An earlier change broke the structure.
            data = of_bytes(data, rng)
    return data
