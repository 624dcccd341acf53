"""Recognition of unsupported annotation formats, with the command that converts each of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from curation.core.errors import AnnotationFormatError
from curation.core.reading import beginning
from curation.core.wording import counted

_HEAD = 1 << 16
_SAMPLED = 50
_PATTERNS = ("*.txt", "*/*.txt", "*/*/*.txt", "*.xml", "*/*.xml", "*.json", "*/*.json")
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_OBJECT = r'sprintf("{\"bbox\":[%s,%s,%s,%s],\"category\":\"%s\"}",'
_ROW = r'printf "{\"file_name\":\"%s\",\"objects\":[%s]}\n",f,'
_NAME = r'function name(f){sub(/.*\//,"",f); sub(/\.txt$/,".jpg",f); return f} '
_ADD = 'f=name(FILENAME); o[f]=o[f] (o[f]==""?"":",") ' + _OBJECT
_END = "} END{for(i=1;i<ARGC;i++){f=name(ARGV[i]); " + _ROW + "o[f]}}"
_AROUND = "x=X=$1; y=Y=$2; for(i=3;i<9;i+=2){if($i<x)x=$i; if($i>X)X=$i; if($(i+1)<y)y=$(i+1); if($(i+1)>Y)Y=$(i+1)} "
_AWK = {
    "DOTA": _NAME + "NF>=9{" + _AROUND + _ADD + "x,y,X-x,Y-y,$9)" + _END,
    "KITTI": _NAME + '$1!="DontCare"{' + _ADD + "$5,$6,$7-$5,$8-$6,$1)" + _END,
    "VisDrone": _NAME + "$5!=0{" + _ADD + "$1,$2,$3,$4,$6)" + _END,
    "WIDER FACE": r'/\.(jpe?g|png)\r?$/{f=$1; getline n; o=""; for(i=0;i<(n>0?n:1);i++){getline; if(n>0) '
    + 'o=o (i?",":"") '
    + _OBJECT + '$1,$2,$3,$4,"face")} ' + _ROW + "o}",
}  # fmt: skip
"""awk programs that write rows of images and objects for `curation.sources.object_rows`."""


class _Lines(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    advice: str = ""


_OF_LINES = (
    _Lines("DOTA", re.compile(rf"(?:{_NUMBER} ){{8}}[^\s\d]\S*(?: \d)?"), "boxes around the oriented ones"),
    _Lines("KITTI", re.compile(rf"[A-Za-z_]+(?: {_NUMBER}){{14,15}}")),
    _Lines("VisDrone", re.compile(r"-?\d+(?:,-?\d+){7},?"), "classes keep VisDrone's numbers"),
)
_WIDER = re.compile(
    rb"[^\n]+\.(?:jpe?g|png)[ \t\r]*\n[ \t]*\d+[ \t\r]*\n[ \t]*(?:\d+ ){9}\d+[ \t\r]*(?:\n|\Z)", re.IGNORECASE
)
_HEADER_OF_DOTA = re.compile(r"(?:imagesource|gsd):")


def refuse_foreign(path: Path) -> None:
    """Raise `AnnotationFormatError` for a file, or a folder with files, in a recognised but unsupported format."""
    for file in _files(path):
        refuse_foreign_text(beginning(file, _HEAD, kind="annotation file"), file, path)


def refuse_foreign_text(data: bytes, file: Path, path: Path | None = None) -> None:
    """Raise `AnnotationFormatError` if the content of a file has a recognised but unsupported format.

    Parameters
    ----------
    path : Path, optional
        The path that the user passed: a folder, or by default the file.
    """
    for known in _KNOWN:
        if (match := known(data, file, path or file)) is not None:
            name, counts, hint = match
            raise AnnotationFormatError(
                f"Annotations of {name} are not read", where=str(file), found=counts,
                expected="COCO JSON, YOLO or VOC folders, or rows of images and objects", hint=hint,
            )  # fmt: skip


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return list(islice(chain.from_iterable(sorted(path.glob(pattern))[:2] for pattern in _PATTERNS), 8))


_Match = tuple[str, str, str]


def _lines(data: bytes, file: Path, path: Path) -> _Match | None:
    if file.suffix.lower() not in (".txt", ""):
        return None
    text = data[:_HEAD].decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines()[:_SAMPLED] if line.strip()]
    lines = [line for line in lines if not _HEADER_OF_DOTA.match(line)]
    files = "*.txt" if path.is_dir() else file.name
    for form in _OF_LINES:
        if lines and all(map(form.pattern.fullmatch, lines)):
            count = len(list(file.parent.glob("*.txt"))) if path.is_dir() else 1
            separator = "-F, " if form.name == "VisDrone" else ""
            about = f"; {form.advice}" if form.advice else ""
            return form.name, counted(count, "label file"), _command(form.name, separator, file.parent, files) + about
    if _WIDER.match(data):
        images = len(re.findall(rb"(?im)\.(?:jpe?g|png)[ \t\r]*$", data))
        more = " or more" if len(data) >= _HEAD else ""
        return "WIDER FACE", f"{counted(images, 'image')}{more}", _command("WIDER FACE", "", file.parent, file.name)
    return None


def _command(name: str, options: str, folder: Path, files: str) -> str:
    paths = f"{shlex.quote(str(folder))}/{files if files == '*.txt' else shlex.quote(files)}"
    return f"awk {options}{shlex.quote(_AWK[name])} {paths} > rows.jsonl writes what is read: give rows.jsonl"


def _cvat(data: bytes, file: Path, path: Path) -> _Match | None:
    if b"<annotations>" not in data[:_HEAD] or (b"<image " not in data and b"<meta>" not in data):
        return None
    content = data if len(data) < _HEAD else beginning(file, 1 << 30, kind="annotation file")
    lines, images = content.count(b"\n") + (not content.endswith(b"\n")), content.count(b"<image ")
    source = shlex.quote(str(file))
    command = (
        f"pip install globox; globox convert {source} OUT.json -f cvat -F coco --coco_auto_ids, then give OUT.json; or "
        "export the task from CVAT as COCO 1.0"
    )
    return "CVAT XML", f"{counted(lines, 'line')}, {counted(images, 'image')}", command


def _voc_xml(data: bytes, file: Path, path: Path) -> _Match | None:
    if path != file or re.search(rb"<annotation[\s>]", data[:_HEAD]) is None:
        return None
    return "one image in VOC XML", counted(data.count(b"<object>"), "object"), f"give the folder: {file.parent}"


def _labelme(data: bytes, file: Path, path: Path) -> _Match | None:
    if not (b'"shapes"' in data and (b'"imagePath"' in data or b'"version"' in data[:200])):
        return None
    folder = file.parent
    command = f"pip install labelme2coco; labelme2coco {shlex.quote(str(folder))} OUT, then give OUT/dataset.json"
    return "labelme", counted(len(list(folder.glob("*.json"))), "JSON file"), command


def _label_studio(data: bytes, file: Path, path: Path) -> _Match | None:
    if not (data.lstrip()[:1] == b"[" and b'"result"' in data and b'"original_width"' in data):
        return None
    command = (
        f"pip install label-studio-sdk; label-studio-converter export -i {shlex.quote(str(file))} -c CONFIG.xml -o OUT "
        "-f COCO, then give OUT/result.json (CONFIG.xml: the project's labelling interface); or export the project as "
        "COCO or YOLO"
    )
    return "Label Studio's own JSON", "tasks with results", command


def _darknet(data: bytes, file: Path, path: Path) -> _Match | None:
    if re.match(rb"\s*(?:#[^\n]*\n\s*)*\[net(?:work)?\]", data) is None:
        return None
    return "a darknet cfg, which describes a network", "a section [net]", "give the folder of its images and labels"


_KNOWN: tuple[Callable[[bytes, Path, Path], _Match | None], ...] = (
    _lines, _cvat, _voc_xml, _labelme, _label_studio, _darknet,
)  # fmt: skip
