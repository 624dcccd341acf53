"""PL, published lists: labels and columns of images, COCO JSON files with lists, files that name classes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.core.columns import distinct
from curation.core.wording import counted
from curation.extensions.audit.classes import fold, known_aliases
from curation.extensions.audit.lists import AuditedList, ListSet, list_of
from curation.extensions.audit.rule import Finding, Verdict, joined, list_finding, pair_finding
from curation.extensions.audit.rules.images import may_count_anew
from curation.extensions.audit.rules.lists import published_of
from curation.extensions.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.extensions.diagnosis.inspection import CocoFacts, read_coco_facts
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.entries import CLASS_FILE, NO_LABEL, PublishedFile
from curation.sources.list_roles import read_role
from curation.sources.source import Int32s, Int64s

_MATCHED = 0.95
_BY_DESIGN = 0.2
"""Share of images with several labels above which a list has one line per label."""
_FEW = 10
_LEAST_CLASSES = 3
_TABLES = {"csv", "json lines", "parquet"}
_LABEL = "of labels"
"""Name of the column of labels in messages."""


def labels_fit_each_other(target: AuditTarget) -> Iterator[Finding]:
    """PL9: An image has one label: in a list, and in the lists of its family."""
    lists = published_of(target)
    labelled = [listed for listed in lists.lists if _values(listed) is not None]
    sound = []
    for listed in labelled:
        yield from (findings := [*_two_labels(lists, listed)])
        if not findings:
            sound.append(listed.name)
    for first, second in combinations(labelled, 2):
        if lists.shared(first, second) and not _count_anew(target, first, second):
            yield from _between(lists, first, second)
    for pair in target.pairs:
        if min(pair.places) >= 0:
            yield from _shifted(*(lists.lists[index] for index in pair.places))
    if sound:
        text = f"{counted(len(sound), 'list')} with one label for each image"
        yield Finding("pass", "lists", text=text, lists=tuple(sound), asked=len(sound))


def _count_anew(target: AuditTarget, first: AuditedList, second: AuditedList) -> bool:
    """Return whether two lists have two roles, and equal names may be other images, as DS2 and DS4 say."""
    if ("compared", "") not in target.cache:
        target.cache["compared", ""] = {frozenset(pair.names): pair for pair in target.pairs}
    pair = target.cache["compared", ""].get(frozenset((first.name, second.name)))
    return pair is not None and may_count_anew(target, pair)


def _values(listed: AuditedList) -> Int32s | None:
    if listed.read.is_multilabel:
        return None
    return listed.read.labels if listed.read.labels is not None else listed.read.group_of


def _labels(listed: AuditedList, rows: Int32s | Int64s) -> npt.NDArray[Any]:
    """Return the labels of some entries, names as texts."""
    values = _values(listed)
    assert values is not None  # noqa: S101
    return values[rows] if listed.read.labels is not None else np.array(listed.read.groups)[values[rows]]


def _two_labels(lists: ListSet, listed: AuditedList) -> Iterator[Finding]:
    values = _values(listed)
    assert values is not None  # noqa: S101 - lists with labels are compared
    pairs = distinct((listed.members.astype(np.int64) << 32) + values)
    images = (pairs - NO_LABEL) >> 32
    conflict = distinct(images[1:][images[1:] == images[:-1]])
    if not len(conflict):
        return
    examples = []
    for row in conflict[:SHOWN_EXAMPLES].tolist():
        rows = np.flatnonzero(listed.members == row)
        labels = dict.fromkeys(repr(str(label)) for label in _labels(listed, rows).tolist())
        where = ", ".join(map(str, listed.read.lines[rows][:4].tolist()))
        examples.append(f"{lists.images.ids([row])[0]}: {' and '.join(labels)} (lines {where})")
    by_design = len(conflict) > max(_BY_DESIGN * len(listed.unique), _FEW)
    text = f"{counted(len(conflict), 'image')} with two labels{': apparently one line per label' * by_design}"
    verdict: Verdict = "info" if by_design else "warn"
    yield list_finding(verdict, listed, len(conflict), text, examples, of=len(listed.unique), asked=0)


def are_versions(first: str, second: str) -> bool:
    """Return whether two lists are versions or folds by their names; such lists may label images otherwise."""
    a, b = read_role(first), read_role(second)
    return a.folder != b.folder or bool(a.family and b.family and a.family != b.family)


def _between(lists: ListSet, first: AuditedList, second: AuditedList) -> Iterator[Finding]:
    """Yield whether two lists, both with numbers or both with names, give the images of both the same labels."""
    if (first.read.labels is None) != (second.read.labels is None):
        return
    shared, rows = lists.images.in_both(lists.index[first.name], lists.index[second.name])
    left, right = (_labels(side, index) for side, index in zip((first, second), rows, strict=True))
    # A label that is equal on all lines describes the list, not its images.
    if (left == left[0]).all() or (right == right[0]).all():
        return
    labelled = np.ones(len(left), np.bool_) if first.read.labels is None else (left >= 0) & (right >= 0)
    odd = np.flatnonzero((left != right) & labelled)
    names = (first.name, second.name)
    if not len(odd):
        text = f"both hold {counted(len(shared), 'image')}, each with one label"
        yield pair_finding("pass", names, 0, text, like="images in both lists have one label")
    elif not are_versions(first.name, second.name):
        text = f"both hold {counted(len(shared), 'image')}, {len(odd):,} of them with different labels"
        finding = _differing(lists, (first, second), text, odd, (left, right))
        yield replace(finding, like="images of both lists have different labels")


def _differing(
    lists: ListSet, pair: tuple[AuditedList, AuditedList], text: str, odd: Int64s, values: tuple[npt.NDArray[Any], ...]
) -> Finding:
    """Return the finding that two lists have different values for some shared images."""
    names = (pair[0].name, pair[1].name)
    shared, rows = lists.images.in_both(lists.index[names[0]], lists.index[names[1]])
    cited = [
        [f"{value[row]} ({side.file} line {side.read.lines[index[row]]})" for row in odd[:SHOWN_EXAMPLES].tolist()]
        for side, index, value in zip(pair, rows, values, strict=True)
    ]
    images = lists.images.ids(shared[odd[:SHOWN_EXAMPLES]])
    examples = tuple(f"{image}: {left} and {right}" for image, left, right in zip(images, *cited, strict=True))
    return pair_finding("warn", names, len(odd), text, examples, of=len(shared))


def _shifted(a: AuditedList, b: AuditedList) -> Iterator[Finding]:
    """Yield the finding that one list numbers the classes from 0 and the other from 1."""
    if a.read.labels is None or b.read.labels is None:
        return
    first, second = (np.unique(labels[labels != NO_LABEL]) for labels in (a.read.labels, b.read.labels))
    step = next((step for step in (1, -1) if np.array_equal(first + step, second)), 0)
    if step and len(first) >= _LEAST_CLASSES:
        text = (
            f"classes are numbered {second[0]} to {second[-1]} in {b.name} and {first[0]} to {first[-1]} in {a.name}: "
            f"labels of the same class differ by {step:+d}"
        )
        hint = "number the classes alike in both lists"
        like = "the classes are numbered from another start"
        yield pair_finding("warn", (a.name, b.name), len(second), text, asked=0, hint=hint, like=like)


def tables_fit_each_other(target: AuditTarget) -> Iterator[Finding]:
    """PL16: Two tables of a folder agree on the value of an image in a column of the same name."""
    lists = published_of(target)
    for first, second in combinations(lists.lists, 2):
        columns = _columns_of_both(lists, first, second)
        if not columns or not lists.shared(first, second) or _count_anew(target, first, second):
            continue
        shared, rows = lists.images.in_both(lists.index[first.name], lists.index[second.name])
        names = (first.name, second.name)
        for column in columns:
            left, right = (_cells(side, column, index) for side, index in zip((first, second), rows, strict=True))
            odd = np.flatnonzero((left != right) & (left != "") & (right != ""))
            if not len(odd):
                text = f"the column {column} agrees for {counted(len(shared), 'file')}"
                yield pair_finding("pass", names, 0, text)
                continue
            text = f"the column {column} differs for {len(odd):,} of {counted(len(shared), 'file')}"
            yield _differing(lists, (first, second), text, odd, (left, right))


def _columns_of_both(lists: ListSet, first: AuditedList, second: AuditedList) -> list[str]:
    """Return the columns that can be compared, including labels of tables whose labels PL9 does not compare."""
    both = first.read.columns.keys() & second.read.columns.keys()
    columns = sorted(name for name in both if _is_fact(first, name) and _is_fact(second, name))
    apart = are_versions(first.name, second.name)
    if apart and all(read_role(side.name).roles for side in (first, second)):
        return []
    tables = {lists.files[side.file].form for side in (first, second)} <= _TABLES
    has_groups = first.read.group_of is not None and second.read.group_of is not None
    return [*columns, _LABEL] if apart and tables and has_groups else columns


def _is_fact(listed: AuditedList, column: str) -> bool:
    """Return whether a column has one value per image and is not a row number."""
    values, codes = listed.read.columns[column].values, listed.read.columns[column].of
    if len(values) >= _MATCHED * len(listed) and all(text.isdecimal() for text in values):
        return False
    return bool((codes == codes[listed.first_rows][np.searchsorted(listed.unique, listed.members)]).all())


def _cells(listed: AuditedList, column: str, rows: Int32s) -> npt.NDArray[Any]:
    """Return the values of a column in some entries, empty for missing values."""
    if column == _LABEL:
        return _labels(listed, rows)
    return np.array([*listed.read.columns[column].values, ""])[listed.read.columns[column].of[rows]]


_SOURCE_NAME = re.compile(rb"\.rf\.[0-9a-f]{32}$", re.MULTILINE)
_ZEROS = re.compile(rb"^0+(?=[0-9]+$)", re.MULTILINE)


def coco_facts(target: AuditTarget) -> dict[str, CocoFacts]:
    """Return the facts of each COCO JSON of a folder by its path; each file is read once for all rules."""
    if ("coco facts", "") not in target.cache:
        files = {name: file for name, file in published_of(target).files.items() if file.form == "coco json"}
        target.cache["coco facts", ""] = {name: read_coco_facts(file.path) for name, file in files.items()}
    facts: dict[str, CocoFacts] = target.cache["coco facts", ""]
    return facts


def lists_fit_their_json(target: AuditTarget) -> Iterator[Finding]:
    """PL5: A list and the COCO JSON of its name hold the same images (none shared: error; some: warning)."""
    lists = published_of(target)
    by_file = {listed.file: listed for listed in lists.lists}
    for name, facts in coco_facts(target).items():
        text = PurePosixPath(name).with_suffix(".txt").as_posix()
        if text in by_file:
            yield _compared(by_file[text], lists.files[name], facts, f"{text} against {name}")


def _compared(listed: AuditedList, file: PublishedFile, facts: CocoFacts, about: str) -> Finding:
    in_list, in_json = (set(names.split(b"\n")[:-1]) for names in (listed.read.stems, file.lists[0].stems))
    numbers = set(_ZEROS.sub(b"", listed.read.stems).split(b"\n")[:-1])
    ids = {str(number).encode() for number in facts.images}
    if not in_list & in_json and numbers & ids:
        # Lists may name images by their numbers in the annotation file.
        in_list, in_json = numbers, ids
    shared = len(in_list & in_json)
    text = f"they share {shared:,} of {len(in_list):,} names of the list and {len(in_json):,} of the JSON"
    sources = [{_SOURCE_NAME.sub(b"", stem) for stem in side} for side in (in_list, in_json)]
    if sources[0] != in_list:
        both = len(sources[0] & sources[1])
        text += f"; by the name before .rf. {both:,} of {len(sources[0]):,} and {len(sources[1]):,}"
    if in_list == in_json:
        return Finding("pass", about, text=text, lists=(listed.name,))
    missing = sorted(in_json - in_list) if shared else sorted(in_list)
    examples = tuple(stem.decode() for stem in missing[:SHOWN_EXAMPLES])
    verdict: Verdict = "warn" if shared else "fail"
    return Finding(verdict, about, len(in_list ^ in_json), text, examples, of=len(in_json), lists=(listed.name,))


def json_ids_are_unique(target: AuditTarget) -> Iterator[Finding]:
    """PL6: Image, annotation and category ids of a COCO JSON occur once."""
    for name, facts in coco_facts(target).items():
        twice, texts = facts.repeated_images, list[str]()
        concerned = sum(map(len, twice.values()))
        if twice:
            texts.append(
                f"{len(facts.images):,} images with {counted(len(set(facts.images)), 'id')}: "
                f"{counted(len(twice), 'repeated id')}, on {concerned:,} images with {facts.on_repeated:,} of "
                f"{counted(facts.annotations, 'annotation')}"
            )
        examples = [f"id {key}: {joined(twice[key], 3)}" for key in sorted(twice, key=str)[:SHOWN_EXAMPLES]]
        for kind, on, size, repeated in (
            ("annotation", "on images", facts.annotations, facts.repeated_annotations),
            ("category", "as", len(facts.categories), facts.repeated_categories),
        ):
            again = sum(len(records) - 1 for records in repeated.values())
            size += again if kind == "category" else 0
            if repeated:
                several = "categories" if kind == "category" else "annotations"
                texts.append(f"{size:,} {several} with {counted(size - again, 'id')}")
            examples += [
                f"{kind} {key} occurs {len(records)} times, {on} {joined(list(map(str, records)), 3)}"
                for key, records in list(repeated.items())[:SHOWN_EXAMPLES]
            ]
        lists = (list_of(name),)
        if texts:
            yield Finding("fail", name, concerned or 1, "; ".join(texts), tuple(examples), lists=lists)
        else:
            counts = counted(len(facts.images), "image"), counted(facts.annotations, "annotation")
            text = f"{' and '.join(counts)}, each with a unique id"
            yield Finding("pass", name, text=text, lists=lists)


def json_refers_to_what_it_holds(target: AuditTarget) -> Iterator[Finding]:
    """PL15: Annotations of a COCO JSON refer to its images and categories, each file occurs once, and JSONs number
    classes alike.
    """
    numbers: dict[str, dict[str, int | str]] = {}
    for name, facts in coco_facts(target).items():
        numbers[name] = {text: number for number, text in facts.categories.items()}
        findings = [*_broken(name, facts)]
        yield from findings
        if not findings:
            text = (
                f"{counted(len(facts.images), 'image')}, {counted(facts.annotations, 'annotation')}, "
                f"{counted(len(facts.categories), 'category', 'categories')}, {facts.used:,} with an annotation"
            )
            yield Finding("pass", name, text=text, lists=(list_of(name),))
    for first, second in combinations(numbers, 2):
        if are_versions(list_of(first), list_of(second)):
            continue
        if moved := _numbered_otherwise(numbers[first], numbers[second]):
            names = (list_of(first), list_of(second))
            categories = counted(len(moved), "category", "categories")
            text = f"{categories} with different numbers: a model trained on one mislabels the other"
            every, about = numbers[first].keys() | numbers[second].keys(), f"{first} and {second}"
            shown, like = moved[:SHOWN_EXAMPLES], "categories have different numbers"
            yield pair_finding("fail", names, len(moved), text, shown, of=len(every), about=about, like=like)


def _broken(name: str, facts: CocoFacts) -> Iterator[Finding]:
    total, lists = facts.annotations, (list_of(name),)
    if facts.orphans:
        examples = [f"annotation {key}: image {image}" for key, image in facts.orphans[:SHOWN_EXAMPLES]]
        text = f"{len(facts.orphans):,} of {counted(total, 'annotation')} on images missing from the file"
        hint = "add the images to the file, or remove these annotations"
        yield Finding("fail", name, len(facts.orphans), text, tuple(examples), of=total, lists=lists, hint=hint)
    if facts.undeclared and facts.categories:
        count = sum(facts.undeclared.values())
        examples = [f"category {key}: {n:,} annotations" for key, n in list(facts.undeclared.items())[:SHOWN_EXAMPLES]]
        text = f"{count:,} of {counted(total, 'annotation')} of undeclared categories"
        hint = "add the categories to the file, or remove these annotations"
        yield Finding("fail", name, count, text, tuple(examples), of=total, lists=lists, hint=hint)
    # An image that occurs twice under one id is reported by PL6.
    twice = {text: set(ids) for text, ids in facts.repeated_files.items() if len(set(ids)) > 1}
    if twice:
        examples = [f"{text}: ids {joined(sorted(map(str, twice[text])), 3)}" for text in list(twice)[:SHOWN_EXAMPLES]]
        text = f"{counted(len(twice), 'file')} under two or more ids"
        hint = "keep one record of each file, with the annotations of all"
        yield Finding("fail", name, len(twice), text, tuple(examples), of=len(facts.images), lists=lists, hint=hint)


def _numbered_otherwise(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Return the classes with different numbers in two files; without any, the numbers with different classes."""
    moved = [f"{name!r} is {a[name]} and {b[name]}" for name in a if name in b and a[name] != b[name]]
    if moved or not a.keys() & b.keys():
        return moved
    other = {number: name for name, number in b.items()}
    return [
        f"{number} is {name!r} and {other[number]!r}" for name, number in a.items() if other.get(number, name) != name
    ]


_ROLE_KEY = re.compile(r"(?:(.*)/)??((?:un)?known)(?:/|\Z)")
"""Keys of JSON: ``known``, ``unknown/Hard``, ``seed1/known``."""
_UNKNOWN_FILE = re.compile(r"(?:^|[^a-z])(?:unknown|unseen|novel|ood)(?:[^a-z]|$)", re.IGNORECASE)
_KNOWN_FILE = re.compile(r"(?:^|[^a-z])(?:known|seen|base|id)(?:[^a-z]|$)", re.IGNORECASE)
_TRUTH = re.compile(r"ground.?truth|(?:^|[^a-z])gt(?:[^a-z]|$)", re.IGNORECASE)
_TASK = re.compile(r"(?:^|(?<=[^a-z]))(?:t|task)[_-]?[0-9]{1,2}(?=[^0-9]|$)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_-]+")
_NEARLY_ALL = 0.8


def _folder(name: str) -> str:
    return PurePosixPath(name).parent.as_posix()


def _class_roles(files: Mapping[str, PublishedFile]) -> Iterator[tuple[str, str, str, tuple[str, ...], bool]]:
    """Yield each list of classes with a role: scope, role, location, names, and whether it only holds guesses."""
    truths = {_folder(name) for name in files if _TRUTH.search(PurePosixPath(name).stem) and _UNKNOWN_FILE.search(name)}
    for name, file in files.items():
        stem = PurePosixPath(name).stem
        if file.form == "class roles":
            for role, names in file.classes.items():
                if match := _ROLE_KEY.match(role):
                    yield f"{name}: {match[1]}" if match[1] else name, match[2], f"{name}: {role}", names, False
        elif file.form == "class names" and CLASS_FILE.search(stem):
            # A list of guesses or prompts next to the ground truth has no role.
            guess = _folder(name) in truths and not _TRUTH.search(stem)
            if _UNKNOWN_FILE.search(stem):
                yield _folder(name), "unknown", name, file.classes[""], guess
            elif _KNOWN_FILE.search(stem):
                yield _folder(name), "known", name, file.classes[""], False


def no_class_is_known_and_unknown(target: AuditTarget) -> Iterator[Finding]:
    """PL3: No class is known and unknown at once (same spelling or other letter case: error; other spacing, hyphens or
    an alias: warning).
    """
    by_scope: defaultdict[str, list[tuple[str, str, tuple[str, ...], bool]]] = defaultdict(list)
    for scope, role, where, names, guess in _class_roles(published_of(target).files):
        # A class may be unknown in one task and known in another: files are compared within a task.
        task = _TASK.search(where.partition(": ")[0])
        by_scope[f"{scope}, {task[0].strip('_-')}" if task else scope].append((role, where, names, guess))
    for scope, entries in by_scope.items():
        known = [(where, names) for role, where, names, _ in entries if role == "known"]
        unknown = [(where, names, guess) for role, where, names, guess in entries if role == "unknown"]
        is_violated = False
        for where, names in known:
            for other, others, guess in unknown:
                for finding in _alike(names, others, f"{other} against {where}", guess=guess):
                    is_violated |= finding.verdict != "info"
                    yield finding
        if known and unknown and not is_violated:
            count = len({name for _, names in known for name in names})
            text = f"{counted(count, 'known class', 'known classes')}, none of them unknown"
            yield Finding("pass", scope if scope != "." else "classes", text=text)


_SPELLINGS: tuple[tuple[str, Verdict], ...] = (
    ("with the same spelling", "fail"), ("in another letter case", "fail"), ("with other spacing or hyphens", "warn"),
    ("under an alias", "warn"),
)  # fmt: skip


def _forms(name: str) -> tuple[str, str, str, str]:
    plain = _SEPARATORS.sub("", fold(name))
    return name, fold(name), plain, min([plain, *(_SEPARATORS.sub("", other) for other in known_aliases(name))])


def _alike(known: Sequence[str], unknown: Sequence[str], about: str, *, guess: bool) -> Iterator[Finding]:
    done: set[str] = set()
    for level, (how, verdict) in enumerate(_SPELLINGS):
        forms = {_forms(name)[level]: name for name in known}
        pairs = [(forms[form], name) for name in unknown if (form := _forms(name)[level]) in forms and name not in done]
        done |= {name for _, name in pairs}
        if pairs:
            examples = tuple(f"{left} and {right}" if left != right else left for left, right in pairs[:SHOWN_EXAMPLES])
            text = f"the files share {counted(len(pairs), 'class', 'classes')} {how}"
            if guess:
                text += "; the second lists guesses or prompts, which are not a role"
            yield Finding("info" if guess else verdict, about, len(pairs), text, examples)


def roles_name_classes_of_the_data(target: AuditTarget) -> Iterator[Finding]:
    """PL4: Every name in a list of roles is a class of the data."""
    lists = published_of(target)
    roles: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for scope, _, where, names, guess in _class_roles(lists.files):
        if not guess and ": " not in where:
            roles[scope].append((where, names))
    for scope, entries in roles.items():
        all_names = [name for _, names in entries for name in names]
        classes, dataset = _classes_of(target, scope, all_names)
        if not classes:
            continue
        everything = {fold(name) for name in classes} | {
            fold(other) for name in classes for other in known_aliases(name)
        }
        for where, names in entries:
            foreign = [name for name in names if fold(name) not in everything]
            if foreign:
                share = f"{len(foreign):,} of {counted(len(names), 'name')}"
                text = f"{share} not among the classes of {dataset}: {joined(foreign)}"
                yield Finding("warn", where, len(foreign), text)
            else:
                yield Finding("pass", where, text=f"{counted(len(names), 'name')}, all classes of {dataset}")
        rest = [name for name in classes if fold(name) not in {fold(other) for other in all_names}]
        if rest and dataset == "COCO":
            text = f"{counted(len(rest), 'class', 'classes')} of {dataset} without a role: {joined(rest, 20)}"
            yield Finding("info", scope if scope != "." else "classes", len(rest), text)


def _classes_of(target: AuditTarget, scope: str, names: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the classes of the data and their place: a list, a JSON, or COCO if nearly all names are COCO's."""
    files = {name: file for name, file in published_of(target).files.items() if _folder(name) == scope}
    for name, file in files.items():
        stem = PurePosixPath(name).stem
        has_role = _UNKNOWN_FILE.search(stem) or _KNOWN_FILE.search(stem)
        if file.form == "class names" and CLASS_FILE.search(stem) and not has_role:
            return file.classes[""], name
    for name in files:
        facts = coco_facts(target).get(name)
        if facts and facts.categories:
            return tuple(facts.categories.values()), name
    coco = tuple(name for _, name, *_ in COCO_CATEGORIES)
    plain = {fold(name) for name in coco}
    hits = sum(fold(name) in plain for name in names)
    return (coco, "COCO") if names and hits >= _NEARLY_ALL * len(names) else ((), "")
