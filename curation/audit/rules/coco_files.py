"""PL, published lists: COCO JSON by itself, beside a list of its name, and beside another JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

from curation.audit.lists import AuditedList
from curation.audit.rule import Check, Finding, Verdict, joined
from curation.audit.rules.agreement import are_versions
from curation.audit.rules.published_lists import published_of
from curation.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.sources.entries import PublishedFile
from curation.sources.inspection import CocoFacts, read_coco_facts
from curation.wording import counted

_SOURCE_NAME = re.compile(rb"\.rf\.[0-9a-f]{32}$", re.MULTILINE)
_ZEROS = re.compile(rb"^0+(?=[0-9]+$)", re.MULTILINE)


def coco_facts(target: AuditTarget) -> dict[str, CocoFacts]:
    """Return what the numbers of each COCO JSON of a folder say, by its path: read once for all rules."""
    if ("coco facts", "") not in target.cache:
        files = {name: file for name, file in published_of(target).files.items() if file.form == "coco json"}
        target.cache["coco facts", ""] = {name: read_coco_facts(file.path) for name, file in files.items()}
    facts: dict[str, CocoFacts] = target.cache["coco facts", ""]
    return facts


def lists_fit_their_json(target: AuditTarget) -> Iterator[Finding]:
    """PL5: a list and the COCO JSON of its name hold the same images."""
    lists = published_of(target)
    by_file = {one.file: one for one in lists.lists}
    for name, facts in coco_facts(target).items():
        text = PurePosixPath(name).with_suffix(".txt").as_posix()
        if text in by_file:
            yield _compared(by_file[text], lists.files[name], facts, f"{text} against {name}")


def _compared(one: AuditedList, file: PublishedFile, facts: CocoFacts, about: str) -> Finding:
    mine, theirs = (set(found.split(b"\n")[:-1]) for found in (one.read.stems, file.lists[0].stems))
    numbers = set(_ZEROS.sub(b"", one.read.stems).split(b"\n")[:-1])
    ids = {str(number).encode() for number in facts.images}
    if not mine & theirs and numbers & ids:
        # The numbers of the annotation file, as lists may name images.
        mine, theirs = numbers, ids
    shared = len(mine & theirs)
    text = f"they share {shared:,} of {len(mine):,} names of the list and {len(theirs):,} of the JSON"
    sources = [{_SOURCE_NAME.sub(b"", stem) for stem in side} for side in (mine, theirs)]
    if sources[0] != mine:
        both = len(sources[0] & sources[1])
        text += f"; by the name before .rf. {both:,} of {len(sources[0]):,} and {len(sources[1]):,}"
    if mine == theirs:
        return Finding("pass", about, text=text, lists=(one.name,))
    missing = sorted(theirs - mine) if shared else sorted(mine)
    examples = tuple(stem.decode() for stem in missing[:SHOWN_EXAMPLES])
    verdict: Verdict = "warn" if shared else "fail"
    return Finding(verdict, about, len(mine ^ theirs), text, examples, of=len(theirs), lists=(one.name,))


def json_ids_are_unique(target: AuditTarget) -> Iterator[Finding]:
    """PL6: image, annotation and category ids of a COCO JSON occur once."""
    for name, facts in coco_facts(target).items():
        twice, told = facts.repeated_images, list[str]()
        concerned = sum(map(len, twice.values()))
        if twice:
            told.append(
                f"{len(facts.images):,} images with {counted(len(set(facts.images)), 'id')}: "
                f"{counted(len(twice), 'repeated id')}, on {concerned:,} images with {facts.on_repeated:,} of "
                f"{counted(facts.annotations, 'annotation')}"
            )
        examples = [f"id {key}: {joined(twice[key], 3)}" for key in sorted(twice, key=str)[:SHOWN_EXAMPLES]]
        for what, on, size, repeated in (
            ("annotation", "on images", facts.annotations, facts.repeated_annotations),
            ("category", "as", len(facts.categories), facts.repeated_categories),
        ):
            again = sum(len(own) - 1 for own in repeated.values())
            size += again if what == "category" else 0
            if repeated:
                several = "categories" if what == "category" else "annotations"
                told.append(f"{size:,} {several} with {counted(size - again, 'id')}")
            examples += [
                f"{what} {key} occurs {len(own)} times, {on} {joined(list(map(str, own)), 3)}"
                for key, own in list(repeated.items())[:SHOWN_EXAMPLES]
            ]
        lists = (_list(name),)
        if told:
            yield Finding("fail", name, concerned or 1, "; ".join(told), tuple(examples), lists=lists)
        else:
            counts = counted(len(facts.images), "image"), counted(facts.annotations, "annotation")
            text = f"{' and '.join(counts)}, each with a unique id"
            yield Finding("pass", name, text=text, lists=lists)


def json_refers_to_what_it_holds(target: AuditTarget) -> Iterator[Finding]:
    """PL15: annotations are of images and categories of the JSON, files occur once, JSONs number classes alike."""
    numbers: dict[str, dict[str, int | str]] = {}
    for name, facts in coco_facts(target).items():
        numbers[name] = {text: number for number, text in facts.categories.items()}
        found = [*_broken(name, facts)]
        yield from found
        if not found:
            text = (
                f"{counted(len(facts.images), 'image')}, {counted(facts.annotations, 'annotation')}, "
                f"{counted(len(facts.categories), 'category', 'categories')}, {facts.used:,} with an annotation"
            )
            yield Finding("pass", name, text=text, lists=(_list(name),))
    for one, two in combinations(numbers, 2):
        if are_versions(_list(one), _list(two)):
            continue
        if told := _numbered_otherwise(numbers[one], numbers[two]):
            names = (_list(one), _list(two))
            categories = counted(len(told), "category", "categories")
            text = f"{categories} with different numbers: a model trained on one mislabels the other"
            yield Finding(
                "fail", f"{one} and {two}", len(told), text, tuple(told[:SHOWN_EXAMPLES]),
                of=len(numbers[one].keys() | numbers[two].keys()), lists=names, pairs=(names,),
            )  # fmt: skip


def _list(name: str) -> str:
    return PurePosixPath(name).with_suffix("").as_posix()


def _broken(name: str, facts: CocoFacts) -> Iterator[Finding]:
    of, lists = facts.annotations, (_list(name),)
    if facts.orphans:
        examples = [f"annotation {key}: image {image}" for key, image in facts.orphans[:SHOWN_EXAMPLES]]
        text = f"{len(facts.orphans):,} of {counted(of, 'annotation')} on images missing from the file"
        yield Finding("fail", name, len(facts.orphans), text, tuple(examples), of=of, lists=lists)
    if facts.undeclared and facts.categories:
        count = sum(facts.undeclared.values())
        examples = [f"category {key}: {n:,} annotations" for key, n in list(facts.undeclared.items())[:SHOWN_EXAMPLES]]
        text = f"{count:,} of {counted(of, 'annotation')} of undeclared categories"
        yield Finding("fail", name, count, text, tuple(examples), of=of, lists=lists)
    # An image that occurs twice under one id is reported by PL6.
    twice = {text: set(ids) for text, ids in facts.repeated_files.items() if len(set(ids)) > 1}
    if twice:
        examples = [f"{text}: ids {joined(sorted(map(str, twice[text])), 3)}" for text in list(twice)[:SHOWN_EXAMPLES]]
        text = f"{counted(len(twice), 'file')} under two or more ids"
        yield Finding("fail", name, len(twice), text, tuple(examples), of=len(facts.images), lists=lists)


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
