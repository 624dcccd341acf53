"""Small changes of valid files, each drawn from a `random.Random`: its structure where it has one, else its bytes.

Hypothesis hands in a `Random` of its own (``st.randoms``), whose draws it records and shortens; a run of thousands of
inputs hands in seeded ones.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

_RAW = "@raw%d@"
_RAWS: tuple[bytes, ...] = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e-999", b"9" * 5000, b"0x10", b"01", b"1.", b"tru", b"nulll", b"",
    b"," , b"}", b"[" * 3000, b'{"a":' * 3000, b"[" * 3000 + b"]" * 3000, b'"\\ud800"', b'"\xed\xa0\x80"',
    b'"\xff\xfe"',
    b'"\\u0000"', b'"a\nb"', b'{"a":1,"a":2}', b"'x'", b"/**/1", b"1 2",
)  # fmt: skip
"""JSON that no encoder writes."""

TEXTS: tuple[str, ...] = (
    "", " ", "\0", "\u00e9", "\ufeff", "\u202e", "\x1b[31m", "../../etc/passwd", "/etc/passwd", "..", "a/b", "a\\b",
    "C:\\x", "<script>alert(1)</script>", "=1+1", "a" * 70_000, "a\nb", "a\rb", "a,b", "a;b", 'a"b', "NaN", "inf",
    "-inf",
    "1e400", "0x1F", "1_000", "\u0661", "\u00b2", "-0", "+1", "--", "#", "%s%n", "{}", "null",
    "sha256:" + "0" * 64, "coco:1",
    "coco:", ":", "\ud800", "\U0001f600", "I\u0307", "\u2028",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 255, 2**15, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1,
    10**30, 10**400, 0.0, -0.0, 0.5, -0.5, 1e-320, 1e308, -1e308, 1e18, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_TOKEN = re.compile(rb"[+-]?\d+(?:\.\d+)?|[A-Za-z_]\w*|[^\w\s]")


def odd(rng: Random) -> Any:
    """Return a value that stands where another was meant."""
    match rng.randrange(8):
        case 0 | 1:
            return rng.choice(NUMBERS)
        case 2 | 3:
            return rng.choice(TEXTS)
        case 4:
            return rng.choice((None, True, False))
        case 5:
            return rng.choice(([], {}, [[]], [None], {"": None}, [[[[1]]]], {"id": {}}, [0, 1, 2, 3, 4, 5]))
        case 6:
            return _RAW % rng.randrange(len(_RAWS))
        case _:
            return [rng.choice(NUMBERS) for _ in range(rng.randrange(6))]


def _alike(value: Any, rng: Random) -> Any:
    """Return an odd value, more often than not of the kind that stood there: what lies behind the check of types."""
    kind = rng.random()
    if kind < 0.6 and isinstance(value, int | float) and not isinstance(value, bool):
        return rng.choice(NUMBERS)
    if kind < 0.6 and isinstance(value, str):
        return rng.choice(TEXTS)
    return odd(rng)


def _places(value: Any, most: int = 4000) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything inside a JSON value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < most:
        one = waiting.pop()
        inside = list(one.items()) if isinstance(one, dict) else list(enumerate(one)) if isinstance(one, list) else ()
        for key, below in inside:
            found.append((one, key))
            waiting.append(below)
    return found


def change_json(value: Any, rng: Random) -> Any:
    """Return a JSON value with one to three places changed; it may be changed itself."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _places(value)
        if not places or rng.random() < 0.02:
            value = odd(rng)
            continue
        inside, key = rng.choice(places)
        match rng.randrange(8):
            case 0 | 1 | 2:
                inside[key] = _alike(inside[key], rng)
            case 3:
                del inside[key]
            case 4 if isinstance(inside, dict):
                inside[rng.choice(TEXTS) if rng.random() < 0.5 else f"{key}x"] = inside.pop(key)
            case 5 if isinstance(inside, list):
                inside.insert(rng.randrange(len(inside) + 1), json.loads(json.dumps(inside[key])))
            case 6:
                other, place = rng.choice(places)
                if place in other if isinstance(other, dict) else place < len(other):
                    inside[key] = json.loads(json.dumps(other[place]))
            case _:
                inside[key] = [inside[key]] if rng.random() < 0.5 else {"a": inside[key]}
    return value


def json_bytes(value: Any, rng: Random) -> bytes:
    """Return JSON with what no encoder writes put in for its marks; now and then a key stands twice."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.7, indent=rng.choice((None, None, 1)))
    data = text.encode("utf-8", "surrogatepass")
    data = re.sub(rb'"@raw(\d+)@"', lambda mark: _RAWS[int(mark[1]) % len(_RAWS)], data)
    if rng.random() < 0.05 and (keys := re.findall(rb'"\w+": ', data)):
        key = rng.choice(keys)
        data = data.replace(key, key + b"1, " + key, 1)
    return data


def of_json(data: bytes, rng: Random) -> bytes:
    """Change the structure of a JSON text."""
    return json_bytes(change_json(json.loads(data), rng), rng)


def of_json_lines(data: bytes, rng: Random) -> bytes:
    """Change the structure of one JSON text a line, or the lines."""
    lines = data.split(b"\n")
    filled = [row for row, line in enumerate(lines) if line.startswith(b"{")]
    if not filled or rng.random() < 0.2:
        return of_lines(data, rng)
    row = rng.choice(filled)
    lines[row] = json_bytes(change_json(json.loads(lines[row]), rng), rng)
    return b"\n".join(lines)


def of_lines(data: bytes, rng: Random) -> bytes:
    """Take away, repeat, swap, join or empty lines."""
    lines = data.split(b"\n")
    row, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    one, two, added = lines[row], lines[other], _encoded(rng.choice(TEXTS))
    ends = rng.choice((b"\r\n", b"\r", b"\n\n", b"\0", b"\x0b", b"\xe2\x80\xa8"))
    changed = ([], [one, one], [two], [b""], [one * 300], [added, one], [one])[(kind := rng.randrange(7))]
    lines[row : row + 1] = changed
    return data.replace(b"\n", ends) if kind == 6 else b"\n".join(lines)


def of_cells(data: bytes, rng: Random) -> bytes:
    """Change one cell of a table, or add or take away one."""
    lines = data.split(b"\n")
    row = rng.randrange(len(lines))
    mark = next((one for one in (b",", b"\t", b";", b" ") if one in lines[row]), b",")
    cells = lines[row].split(mark)
    place = rng.randrange(len(cells))
    one = cells[place]
    quoted = b'"' + one + rng.choice((b'"', b"", b'""'))
    cells[place : place + 1] = ([], [one, one], [quoted], *[[_value(rng)]] * 3)[rng.randrange(6)]
    lines[row] = mark.join(cells)
    return b"\n".join(lines)


def _value(rng: Random) -> bytes:
    return _encoded(str(rng.choice(NUMBERS if rng.random() < 0.5 else TEXTS)))


def of_tokens(data: bytes, rng: Random) -> bytes:
    """Put another number, word or sign for one of a text."""
    tokens = list(_TOKEN.finditer(data[:200_000]))
    if not tokens:
        return rng.choice(TEXTS).encode("utf-8", "surrogatepass")
    one = rng.choice(tokens)
    if one[0][:1].isdigit() and rng.random() < 0.8:
        new = str(rng.choice(NUMBERS)).encode()
    elif rng.random() < 0.5:
        new = rng.choice(tokens)[0]
    else:
        new = rng.choice((*map(_encoded, TEXTS), *_RAWS))
    return data[: one.start()] + new + data[one.end() :]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_XML = (
    b'<!DOCTYPE a [<!ENTITY e "x">]>', b'<!DOCTYPE a SYSTEM "file:///etc/passwd">',
    b'<?xml version="1.0" encoding="utf-7"?>',
    b'<?xml version="1.0" encoding="idna"?>', b"<a>" * 3000, b"&e;", b"&#0;", b"&#xD800;", b"<![CDATA[x]]>",
    b"<!-- x -->",
    b"<object/>", b"<bndbox><xmin>1</xmin></bndbox>", b"<size/>", b"<part><name>x</name></part>", b'<a b="c" b="d"/>',
)  # fmt: skip


def of_xml(data: bytes, rng: Random) -> bytes:
    """Take away, repeat, rename or empty an element, or put something in."""
    elements = list(re.finditer(rb"<(\w+)>(.*?)</\1>", data, re.DOTALL))
    if not elements:
        return of_tokens(data, rng)
    one = rng.choice(elements)
    if rng.random() < 0.5 and (below := list(re.finditer(rb"<(\w+)>([^<]*)</\1>", data))):
        one = rng.choice(below)
    added = rng.choice(_XML)
    if rng.random() < 0.07:
        return added + data
    values = (
        one[0] + added,
        b"<%s>%s%s</%s>" % (one[1], one[2], added, one[1]),
        *[b"<%s>%s</%s>" % (one[1], _value(rng), one[1])] * 2,
    )
    new = rng.choice((b"", one[0] * rng.choice((2, 300)), one[0].replace(one[1], b"x", 1), *values))
    return data[: one.start()] + new + data[one.end() :]


def of_bytes(data: bytes, rng: Random) -> bytes:
    """Cut, flip, repeat, splice; a byte order mark; gzip, sound and not."""
    size = len(data)
    place, other = rng.randrange(size + 1), rng.randrange(size + 1)
    low, high = min(place, other), max(place, other)
    noise = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 12)))
    packed = gzip.compress(data, 1, mtime=0)
    cut = rng.randrange(len(packed))
    flipped = bytearray(data)
    for _ in range(min(size, rng.randrange(1, 8))):
        flipped[rng.randrange(size)] ^= 1 << rng.randrange(8)
    return rng.choice((
        data[:place], data[place:], bytes(flipped), bytes(flipped), data[:low] + data[high:],
        data[:high] + data[low:high] + data[high:], data[:place] + noise + data[place:],
        data[:low] + noise + data[low + len(noise) :], b"\xef\xbb\xbf" * rng.choice((1, 2)) + data,
        data.decode("latin-1").encode(rng.choice(("utf-16", "utf-32", "utf-16-le"))), packed, packed[:cut],
        packed + noise, packed[:cut] + noise + packed[cut:], b"\x1f\x8b" + noise, b"",
        data + rng.choice((b"\0" * 100, b"\n" * 100, noise, data)),
    ))  # fmt: skip


def of_zip(data: bytes, rng: Random) -> bytes:
    """Change a member of a ``.npz`` file, or the archive."""
    if rng.random() < 0.3:
        return of_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    row = rng.randrange(len(members))
    name, content = members[row]
    match rng.randrange(4):
        case 0:
            name = rng.choice(("", "../x.npy", "/x.npy", name + "x", "a\0b", *(one for one, _ in members)))
        case 1:
            members.append(members[row])
        case _:
            content = rng.choice((of_bytes, of_tokens))(content, rng)
    members[row] = name, content
    out = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(out, "w", method) as archive:
        for one, held in members:
            archive.writestr(zipfile.ZipInfo(one or "x", (2020, 1, 1, 0, 0, 0)), held, compress_type=method)
    packed = out.getvalue()
    return of_bytes(packed, rng) if rng.random() < 0.15 else packed


Change = Callable[[bytes, Random], bytes]
_TEXT: tuple[Change, ...] = (of_lines, of_tokens, of_bytes)
_CHANGES: dict[str, Sequence[Change]] = {
    ".json": (of_json, of_json, of_json, of_json, of_tokens, of_bytes),
    ".jsonl": (of_json_lines, of_json_lines, of_json_lines, *_TEXT),
    ".csv": (of_cells, of_cells, of_cells, *_TEXT),
    ".tsv": (of_cells, of_cells, of_cells, *_TEXT),
    ".txt": (of_cells, of_cells, *_TEXT),
    ".toml": (of_cells, of_tokens, of_tokens, of_lines, of_bytes),
    ".yaml": (of_cells, of_tokens, of_tokens, of_lines, of_bytes),
    ".xml": (of_xml, of_xml, of_xml, of_tokens, of_bytes),
    ".npz": (of_zip,),
    "": _TEXT,
}


def mutated(name: str, data: bytes, rng: Random) -> bytes:
    """Return the bytes of a file with one change or a few, by what its suffix says that it holds."""
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    changes = _CHANGES.get(suffix, (of_bytes,))
    for number in range(rng.choice((1, 1, 1, 1, 2, 3))):
        change = rng.choice(changes) if not number else of_bytes if rng.random() < 0.3 else rng.choice(changes)
        try:
            data = change(data, rng)
        except Exception:
            # What an earlier change broke has no structure any more; readers of structures raise almost anything.
            data = of_bytes(data, rng)
    return data
