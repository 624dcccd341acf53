"""Hostile files under limits, and hostile names through every output: no terminal, page, table or figure obeys them."""

import contextlib
import csv
import gzip
import io
import json
import os
import pickle
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from defusedxml import ElementTree

from curation.cli import main
from curation.manifest.header import ClassEntry
from tests.torture.forks import Forks
from tests.toy_manifests import write_toy

MOST_MIB = 1536
"""Memory of a whole command, its libraries (up to 500 MiB) among it."""
_MARK = "touched"


class _Touch:
    """Unpickled, it would make a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {_MARK}",)


@dataclass(frozen=True)
class Case:
    """What a stranger hands over, the command that reads it from the folder ``{in}``, and what the error says."""

    name: str
    write: Callable[[Path], None]
    words: str
    statuses: tuple[int, ...] = (2,)
    told: str = ""


def _gzip_bomb(folder: Path) -> None:
    with gzip.open(folder / "coco.json.gz", "wb", 9) as stream:
        stream.write(b'{"images": [')
        for _ in range(80):
            stream.write(b" " * (1 << 20))


def _npz(folder: Path, claimed: int | None = None, method: int = zipfile.ZIP_DEFLATED) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (5 << 23, 1)})
    with (
        zipfile.ZipFile(folder / "s.npz", "w", method) as archive,
        archive.open("scores.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.getvalue())
        for _ in range(320 if claimed is None else claimed):
            member.write(bytes(1 << 20))


def _pickled(folder: Path) -> None:
    np.savez(folder / "s.npz", scores=np.array([_Touch()], dtype=object), gt=np.array([1]))
    (folder / "s.npy").write_bytes(pickle.dumps(_Touch()))


def _png(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, held: bytes) -> bytes:
        return struct.pack(">I", len(held)) + kind + held + struct.pack(">I", zlib.crc32(kind + held))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _png_bomb(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos/a.png").write_bytes(_png(60_000, 60_000, zlib.compress(bytes(1 << 20))))
    text = b"c\0\0" + zlib.compress(bytes(96 << 20), 6)
    data = _png(4, 4, zlib.compress(bytes(4 * 13)))
    held = struct.pack(">I", len(text)) + b"zTXt" + text + struct.pack(">I", zlib.crc32(b"zTXt" + text))
    (folder / "photos/b.png").write_bytes(data[:33] + held + data[33:])


def _parquet_bomb(folder: Path) -> None:
    """Write 12 GB of one long text, held once, beside classes and scores."""
    import pyarrow as pa
    from pyarrow import parquet

    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(40_000, np.int32)), pa.array(["x" * 300_000]))
    rest = {"class": "cat", "label": 0, "score_0": 0.5, "score_1": 0.5}
    columns = {"image": text, **{name: [one] * 40_000 for name, one in rest.items()}}
    parquet.write_table(pa.table(columns), folder / "t.parquet")


def _xml(folder: Path, head: str, body: str = "", listed: str = "000001") -> None:
    (folder / "Annotations").mkdir()
    (folder / "ImageSets/Main").mkdir(parents=True)
    (folder / "ImageSets/Main/test.txt").write_text(f"{listed}\n")
    text = f"{head}<annotation><filename>000001.jpg</filename>{body}</annotation>"
    (folder / "Annotations/000001.xml").write_text(text)


_LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)
)  # fmt: skip


def _tar(folder: Path, *, members: Sequence[tuple[str, bytes, bytes]]) -> None:
    with tarfile.open(folder / "c.tar", "w") as archive:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def _tar_bomb(folder: Path) -> None:
    lying = tarfile.TarInfo("a.jpg")
    lying.size = 1 << 45
    (folder / "c.tar").write_bytes(lying.tobuf(tarfile.GNU_FORMAT) + bytes(4096))


def _text(name: str, text: str | bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def _linked_photo(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos/a.png").symlink_to("/etc/passwd")


def _linked_list(folder: Path) -> None:
    lists = {"t1-test": ("coco:000000000009",), "wild": ("coco:000000000030",)}
    write_toy(folder / "m", lists, (ClassEntry(name="dog", role="known", index=0),), name="toy/one", taxonomy="OSC")
    (folder / "m/ids/wild.txt").rename(folder / "outside.txt")
    (folder / "m/ids/wild.txt").symlink_to(folder / "outside.txt")


def _deep_yaml() -> str:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{chr(98 + k)}: &{chr(98 + k)} [{', '.join([f'*{chr(97 + k)}'] * 9)}]" for k in range(9)]
    return "\n".join(rows)


_CUT = "cut {in}/coco.json.gz -k 2"
_SCORES = "evaluate imagenet --scores {in}/s.npz"
_EMBED = "similarity embed --photos {in}/photos --encoder colour --out {in}/out"
_VOC = "cut {in} --dataset voc2007 --part test -k 2"
_CORPUS = "similarity embed --corpus {in}/c.tar --encoder colour --out {in}/out"

CASES: tuple[Case, ...] = (
    Case("gzip bomb", _gzip_bomb, _CUT, told="unpacks to more"),
    Case("gzip bomb of bombs", lambda f: _text("coco.json.gz", gzip.compress(gzip.compress(bytes(64 << 20))))(f), _CUT),
    Case("zip bomb in npz", _npz, _SCORES, told="unpacks to far more"),
    Case("npz packed by LZMA", lambda f: _npz(f, 1, zipfile.ZIP_LZMA), _SCORES, told="compressed by a method"),
    Case("pickled npz", _pickled, _SCORES, told="without objects"),
    Case("pickle called npy", _pickled, "evaluate imagenet --scores {in}/s.npy", told="cannot be read"),
    Case("PNG bomb", _png_bomb, _EMBED, told="million pixels"),
    Case("Parquet bomb of scores", _parquet_bomb, "evaluate imagenet --scores {in}/t.parquet",
         told="12,000,000,000 bytes of texts"),
    Case("XML entities", lambda f: _xml(f, f"{_LAUGHS}]>", "&j;"), _VOC, told="document type"),
    Case("XML of a file", lambda f: _xml(f, '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>', "&e;"), _VOC,
         told="document type"),
    Case("XML without end", lambda f: _xml(f, "", "<object>" * 200_000), _VOC),
    Case("YAML of aliases", _text("d.yaml", _deep_yaml()), "review summary {in}/d.yaml"),
    Case("YAML of objects", _text("d.yaml", f"!!python/object/apply:os.system ['touch {_MARK}']"),
         "review summary {in}/d.yaml"),
    Case("JSON without end", _text("coco.json", b"[" * 2_000_000), "cut {in}/coco.json -k 2"),
    Case("numbers without end", _text("d.jsonl", b'{"image_id": ' + b"9" * 60_000 + b"}\n"),
         "review summary {in}/d.jsonl"),
    Case("TOML without end", _text("t.toml", b"a = " + b"[" * 200_000),
         "build {in}/t.toml --source train={in}/t.toml --source test={in}/t.toml --out {in}/out"),
    Case("tar of links and names that climb", lambda f: _tar(f, members=[
        ("../up.jpg", tarfile.REGTYPE, b"x"), ("/abs.jpg", tarfile.REGTYPE, b"x"),
        ("link.jpg", tarfile.SYMTYPE, b""), ("hard.jpg", tarfile.LNKTYPE, b""), ("pipe.jpg", tarfile.FIFOTYPE, b"")]),
        _CORPUS, statuses=(0, 2)),
    Case("tar bomb", _tar_bomb, _CORPUS),
    Case("photo that is a link", _linked_photo, _EMBED),
    Case("id list that is a link", _linked_list, "show {in}/m"),
    Case("image set that climbs", lambda f: _xml(f, "", listed="../../../etc/passwd"), _VOC),
    Case("escapes in a name", _text("d.csv", "image_id,dataset,stage,action\n\x1b[2J\x1b]0;x\x07,coco,manual,remove\n"),
         "review summary {in}/d.csv"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_hostile_file_is_refused_in_little_memory(case: Case, tmp_path: Path, forks: Forks) -> None:
    inputs, home, told = tmp_path / "in", tmp_path / "home", tmp_path / "told"
    inputs.mkdir()
    home.mkdir()
    case.write(inputs)
    words = [word.replace("{in}", str(inputs)) for word in case.words.split()]
    environment = {"CURATION_CACHE": str(inputs / "cache"), "COLUMNS": "80"}
    request = {"words": words, "told": str(told), "folder": str(home), "seconds": 60, "environment": environment}
    (status,) = forks.run(request)
    text = told.read_text(errors="replace")
    assert status in case.statuses, text
    assert "Traceback" not in text
    assert not status or "error: " in text
    assert ": see `curation" not in text
    assert "There is no `curation" not in text
    assert case.told in text
    assert all(sign.isprintable() or sign in "\n\r" for sign in text)
    assert int(Path(f"{told}.KiB").read_text()) < MOST_MIB << 10
    assert {path.name for path in tmp_path.iterdir()} == {"in", "home", "told", "told.KiB"}
    assert list(home.iterdir()) == []


NAMES = (
    "<script>alert(1)</script>",
    '=HYPERLINK("http://x")',
    "</title><img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "\\input{/etc/passwd}",
    "`<img src=x onerror=alert(1)>`|*b*",
)
"""Names that a page, a spreadsheet, a card and LaTeX might obey."""
TERMINAL = ("\x1b[2Jred", "a\u202eb", "a\x07b", "x\ny", "a\x9b31mb")


def coco(path: Path, names: tuple[str, ...], first: int) -> Path:
    images = [{"id": first + k, "file_name": f"{first + k:012d}.jpg", "width": 64, "height": 64} for k in range(12)]
    boxes = [
        {"id": 99 * first + k, "image_id": first + k % 12, "category_id": 1 + (k + k // 12) % len(names),
         "bbox": [k, k, 9, 9], "area": 81, "iscrowd": 0}
        for k in range(36)
    ]  # fmt: skip
    categories = [{"id": number, "name": name} for number, name in enumerate(names, start=1)]
    path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    return path


def told(*words: object) -> str:
    """Return what a command that succeeds prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        assert main([str(word) for word in words]) == 0, out.getvalue()
    return out.getvalue()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Every kind of output of a benchmark whose classes are called so, and what was printed."""
    pytest.importorskip("mlcroissant")
    root = tmp_path_factory.mktemp("hostile")
    out = root / "out"
    sources = []
    for first, name in ((1, "train"), (100, "test")):
        sources += ["--source", f"{name}={coco(root / f'{name}.json', NAMES, first)}"]
    tasks = root / "tasks.toml"
    printed = [told("init", "tasks", *sources, "--n-tasks", 2, "--out", tasks)]
    manifest = out / "manifest"
    build = ["build", tasks, *sources, "--out", manifest]
    printed.append(told(*build))
    for form, name in (("coco", "truth.json"), ("voc", "voc"), ("yolo", "yolo"), ("owod", "owod")):
        export = ["export", manifest, "--part", "t1-test", "--format", form, *sources]
        printed.append(told(*export, "--out", out / name))
    truth = json.loads((out / "truth.json").read_text())
    rows = [
        {key: one[key] for key in ("image_id", "category_id", "bbox")} | {"score": 0.5} for one in truth["annotations"]
    ]
    (root / "detections.json").write_text(json.dumps(rows))
    scored = ["evaluate", "owod", "--manifest", manifest, "--task", "t1", "--truth", out / "truth.json"]
    scored += ["--detections", root / "detections.json", "--out", out / "scores", "--figures"]
    board = root / "board.jsonl"
    printed.append(told(*scored, "--append", board, "--name", "<b onclick=alert(1)>one & two_3"))
    for form in ("text", "html", "markdown", "csv", "latex"):
        text = told("leaderboard", board, "--format", form)
        (out / f"board.{ {'markdown': 'md', 'latex': 'tex', 'text': 'txt'}.get(form, form) }").write_text(text)
    printed.append(told("audit", manifest, *sources, "--out", out / "audit.html"))
    printed.append(told("publish", manifest, "--repo", "lab/x", *sources, "--dry-run", out / "publication"))
    show = ["show", manifest, "--composition", *sources, "--out", out / "d.csv"]
    printed.append(told(*show))
    return out, printed


class _Page(HTMLParser):
    """Collects what a page would run."""

    def __init__(self) -> None:
        super().__init__()
        self.obeyed: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name.startswith("on") or "javascript:" in (value or "").lower():
                self.obeyed.append(f"{tag} {name}={value}")
        if tag == "img" and ("src", "x") in attributes:
            self.obeyed.append("img")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def check_page(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    assert page.obeyed == []
    assert "alert(1)" not in "".join(re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL))
    return page


def test_no_page_obeys_a_name(outputs: tuple[Path, list[str]]) -> None:
    pages = list(outputs[0].rglob("*.html"))
    assert {path.name for path in pages} >= {"board.html", "audit.html"}
    texts = ["".join(check_page(path.read_text()).words) for path in pages]
    assert any("<b onclick=alert(1)>one & two_3" in text for text in texts)


def test_no_figure_obeys_a_name(outputs: tuple[Path, list[str]]) -> None:
    figures = sorted(outputs[0].rglob("*.svg"))
    assert figures
    for path in figures:
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
        assert not tags & {"script", "foreignObject", "image", "a"}


def test_no_card_obeys_a_name(outputs: tuple[Path, list[str]]) -> None:
    """As a renderer shows it that lets HTML pass; that of the hub lets little of it."""
    markdown = pytest.importorskip("markdown")
    for path in (outputs[0] / "publication/README.md", outputs[0] / "board.md"):
        text = path.read_text()
        check_page(markdown.markdown(text, extensions=["tables", "fenced_code"]))


def test_no_spreadsheet_and_no_latex_obeys_a_name(outputs: tuple[Path, list[str]]) -> None:
    cells = [
        cell
        for path in outputs[0].rglob("*.csv")
        for row in csv.reader(io.StringIO(path.read_text()))
        for cell in row
    ]  # fmt: skip
    assert [
        cell for cell in cells if cell[:1] in ("=", "+", "@", "\t") or (cell.startswith("-") and cell[1:2].isalpha())
    ] == []
    assert any("HYPERLINK" in cell for cell in cells)
    latex = (outputs[0] / "board.tex").read_text()
    assert "two\\_3" in latex
    assert "\\input" not in latex


def test_no_terminal_obeys_a_name(outputs: tuple[Path, list[str]], tmp_path: Path) -> None:
    printed = list(outputs[1])
    for name in TERMINAL:
        path = coco(tmp_path / "t.json", (name, "cat"), 1)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            for words in (
                ["cut", path, "-k", "2"],
                ["init", "--source", path, "--out", tmp_path / f"{TERMINAL.index(name)}"],
            ):
                assert main([*map(str, words)]) in (0, 1, 2)
        printed.append(out.getvalue())
    for text in printed:
        assert not [sign for sign in text if not (sign.isprintable() or sign in "\n\t")], ascii(text[:300])
