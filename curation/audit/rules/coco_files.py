"""PL, published lists: COCO JSON by itself, beside a list of its name, and beside another JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from curation.audit.lists import IdList, ListSet
from curation.audit.rule import Check, Finding, Verdict, counted, joined
from curation.audit.rules.agreement import are_versions
from curation.audit.rules.published_lists import published_of
from curation.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.input_files import read_plain
from curation.sources.published_list import PublishedFile

_SOURCE_NAME = re.compile(rb"\.rf\.[0-9a-f]{32}$", re.MULTILINE)
_ZEROS = re.compile(rb"^0+(?=[0-9]+$)", re.MULTILINE)


class _Image(msgspec.Struct, frozen=True, gc=False):
    id: int | str = ""
    file_name: str = ""


class _Annotation(msgspec.Struct, frozen=True, gc=False):
    id: int | str = ""
    image_id: int | str = ""
    category_id: int | str = ""


class _Category(msgspec.Struct, frozen=True, gc=False):
    id: int | str = ""
    name: str = ""


class Coco(msgspec.Struct, frozen=True):
    """The ids of a COCO JSON."""

    images: list[_Image] = []
    annotations: list[_Annotation] = []
    categories: list[_Category] = []


def coco_of(path: Path) -> Coco:
    """Return the ids of a COCO JSON; nothing where it cannot be read as one."""
    try:
        return msgspec.json.decode(read_plain(path, kind="list"), type=Coco)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Coco()


def _files(lists: ListSet) -> dict[str, PublishedFile]:
    return {name: file for name, file in lists.files.items() if file.form == "coco json"}


def lists_fit_their_json(target: AuditTarget) -> Iterator[Finding]:
    """PL5: a list and the COCO JSON of its name hold the same images."""
    lists = published_of(target)
    by_file = {one.file: one for one in lists.lists}
    for name, file in _files(lists).items():
        text = PurePosixPath(name).with_suffix(".txt").as_posix()
        if text in by_file:
            yield _compared(by_file[text], file, f"{text} against {name}")


def _compared(one: IdList, file: PublishedFile, about: str) -> Finding:
    mine, theirs = (set(found.split(b"\n")[:-1]) for found in (one.read.stems, file.lists[0].stems))
    numbers = set(_ZEROS.sub(b"", one.read.stems).split(b"\n")[:-1])
    ids = {str(image.id).encode() for image in coco_of(file.path).images}
    if not mine & theirs and numbers & ids:
        # The numbers of the annotation file, as lists may name images.
        mine, theirs = numbers, ids
    shared = len(mine & theirs)
    text = f"they share {shared:,} of {len(mine):,} names of the list and {len(theirs):,} of the JSON"
    sources = [{_SOURCE_NAME.sub(b"", stem) for stem in side} for side in (mine, theirs)]
    if sources[0] != mine:
        both = len(sources[0] & sources[1])
        text += f"; by the source photo before .rf. {both:,} of {len(sources[0]):,} and {len(sources[1]):,}"
    if mine == theirs:
        return Finding("pass", about, text=text, lists=(one.name,))
    missing = sorted(theirs - mine) if shared else sorted(mine)
    examples = tuple(stem.decode() for stem in missing[:SHOWN_EXAMPLES])
    verdict: Verdict = "warn" if shared else "fail"
    return Finding(verdict, about, len(mine ^ theirs), text, examples, of=len(theirs), lists=(one.name,))


def json_ids_are_unique(target: AuditTarget) -> Iterator[Finding]:
    """PL6: image, annotation and category ids of a COCO JSON stand once."""
    for name, file in _files(published_of(target)).items():
        coco = coco_of(file.path)
        images = Counter(image.id for image in coco.images)
        twice = {key for key, count in images.items() if count > 1}
        concerned = sum(images[key] for key in twice)
        boxes = sum(one.image_id in twice for one in coco.annotations)
        told, examples = [], list[str]()
        if twice:
            told.append(
                f"{len(coco.images):,} images have {len(images):,} ids: {len(twice):,} ids stand twice or more, on "
                f"{concerned:,} images with {boxes:,} of {len(coco.annotations):,} annotations"
            )
            examples += [
                f"id {key}: {joined([image.file_name for image in coco.images if image.id == key], 3)}"
                for key in sorted(twice, key=str)[:SHOWN_EXAMPLES]
            ]
        for what, rows in (("annotations", coco.annotations), ("categories", coco.categories)):
            times = Counter(one.id for one in rows)
            if len(times) == len(rows) or list(times) == [""]:
                continue
            told.append(f"{len(rows):,} {what} have {len(times):,} ids")
            for key in [key for key, count in times.items() if count > 1][:SHOWN_EXAMPLES]:
                where = [str(getattr(one, "image_id", "")) for one in rows if one.id == key]
                on = f", on images {' and '.join(where[:3])}" if what == "annotations" else ""
                examples.append(f"{what[:-1].replace('ie', 'y')} {key} stands {len(where)} times{on}")
        lists = (PurePosixPath(name).with_suffix("").as_posix(),)
        if told:
            yield Finding("fail", name, concerned or 1, "; ".join(told), tuple(examples), lists=lists)
        else:
            text = f"{len(coco.images):,} images and {len(coco.annotations):,} annotations, each with an id of its own"
            yield Finding("pass", name, text=text, lists=lists)


def json_refers_to_what_it_holds(target: AuditTarget) -> Iterator[Finding]:
    """PL15: annotations are of images and categories of the JSON, files stand once, JSONs number classes alike."""
    numbers: dict[str, dict[str, int | str]] = {}
    for name, file in _files(published_of(target)).items():
        coco = coco_of(file.path)
        images, categories = {one.id for one in coco.images}, {one.id: one.name for one in coco.categories}
        numbers[name] = {text: number for number, text in categories.items()}
        orphans = [one for one in coco.annotations if one.image_id not in images]
        foreign = [one for one in coco.annotations if one.category_id not in categories]
        times = Counter(one.file_name for one in coco.images if one.file_name)
        twice = [text for text, count in times.items() if count > 1]
        of = len(coco.annotations)
        found = [
            *_missing(name, orphans, of, "are of images that the file does not hold", "image_id"),
            *_missing(
                name, foreign if categories else (), of, "are of categories that it does not declare", "category_id"
            ),
        ]
        if twice:
            examples = tuple(
                f"{text}: ids {joined([str(one.id) for one in coco.images if one.file_name == text], 3)}"
                for text in twice[:SHOWN_EXAMPLES]
            )
            text = f"{counted(len(twice), 'file')} stand under two ids or more"
            found.append(Finding("fail", name, len(twice), text, examples, of=len(times), lists=(_list(name),)))
        yield from found
        if not found:
            used = len({one.category_id for one in coco.annotations} & categories.keys())
            text = (
                f"{len(coco.images):,} images, {of:,} annotations, {len(categories):,} categories, {used:,} of them with "
                "an annotation"
            )
            yield Finding("pass", name, text=text, lists=(_list(name),))
    for one, two in combinations(numbers, 2):
        if are_versions(_list(one), _list(two)):
            continue
        if told := _numbered_otherwise(numbers[one], numbers[two]):
            names = (_list(one), _list(two))
            text = f"{counted(len(told), 'category')} have another number: a model trained on one names them otherwise"
            text = text.replace("categorys", "categories")
            yield Finding(
                "fail", f"{one} and {two}", len(told), text, tuple(told[:SHOWN_EXAMPLES]),
                of=len(numbers[one].keys() | numbers[two].keys()), lists=names, pairs=(names,),
            )  # fmt: skip


def _list(name: str) -> str:
    return PurePosixPath(name).with_suffix("").as_posix()


def _missing(name: str, rows: Collection[_Annotation], of: int, what: str, key: str) -> Iterator[Finding]:
    if rows:
        examples = tuple(f"annotation {row.id}: {key} {getattr(row, key)}" for row in [*rows][:SHOWN_EXAMPLES])
        text = f"{len(rows):,} of {of:,} annotations {what}"
        yield Finding("fail", name, len(rows), text, examples, of=of, lists=(_list(name),))


def _numbered_otherwise(one: dict[str, Any], two: dict[str, Any]) -> list[str]:
    """Return the classes that two files both name and number differently, and the numbers of two classes."""
    moved = [f"{name!r} is {one[name]} and {two[name]}" for name in one if name in two and one[name] != two[name]]
    if moved or not one.keys() & two.keys():
        return moved
    other = {number: name for name, number in two.items()}
    return [
        f"{number} is {name!r} and {other[number]!r}" for name, number in one.items() if other.get(number, name) != name
    ]


CHECKS: dict[str, Check] = {
    "PL5": lists_fit_their_json,
    "PL6": json_ids_are_unique,
    "PL15": json_refers_to_what_it_holds,
}
