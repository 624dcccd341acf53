"""PL, published lists: one image has one label and one value of a column, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.audit.id_vocabulary import column_of
from curation.audit.lists import AuditedList, ListSet
from curation.audit.roles import read_role
from curation.audit.rule import Check, Finding
from curation.audit.rules.published_lists import published_of
from curation.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.sources.entries import NO_LABEL
from curation.sources.source import Int32s, Int64s
from curation.wording import counted

_MATCHED = 0.95
_BY_DESIGN = 0.2
"""Share of images with several labels from which on these are the form of a list, a line a label."""
_FEW = 10
_LEAST_CLASSES = 3
_TABLES = {"csv", "json lines"}
_LABEL = "of labels"
"""What the column is called whose values are the labels of images."""


def labels_fit_each_other(target: AuditTarget) -> Iterator[Finding]:
    """PL9: an image has one label: in its list, in other lists of its family, and as its folder says."""
    lists = published_of(target)
    labelled = [one for one in lists.lists if _values(one) is not None]
    sound = []
    for one in labelled:
        found = [*_two_labels(lists, one), *_against_folders(one)]
        yield from found
        if not found:
            sound.append(one.name)
    for one, two in combinations(labelled, 2):
        yield from _between(lists, one, two)
    for pair in target.pairs:
        if min(pair.places) >= 0:
            yield from _shifted(*(lists.lists[place] for place in pair.places))
    if sound:
        text = f"{counted(len(sound), 'list')} with one label for each image"
        yield Finding("pass", "lists", text=text, lists=tuple(sound), asked=len(sound))


def _values(one: AuditedList) -> Int32s | None:
    if one.read.is_multilabel or one.read.pairs:
        return None
    return one.read.labels if one.read.labels is not None else one.read.group_of


def _labels(one: AuditedList, rows: Int32s | Int64s) -> npt.NDArray[Any]:
    """Return the labels of some entries, names as texts."""
    values = _values(one)
    assert values is not None  # noqa: S101
    return values[rows] if one.read.labels is not None else np.array(one.read.groups)[values[rows]]


def _two_labels(lists: ListSet, one: AuditedList) -> Iterator[Finding]:
    import pandas as pd

    pairs = pd.DataFrame({"image": one.members, "label": _values(one)}).drop_duplicates()
    conflict = np.unique(pairs["image"][pairs["image"].duplicated()])
    if not len(conflict):
        return
    examples = []
    for row in conflict[:SHOWN_EXAMPLES].tolist():
        rows = np.flatnonzero(one.members == row)
        told = dict.fromkeys(repr(str(label)) for label in _labels(one, rows).tolist())
        where = ", ".join(map(str, one.read.lines[rows][:4].tolist()))
        examples.append(f"{lists.vocabulary.ids([row])[0]}: {' and '.join(told)} (lines {where})")
    by_design = len(conflict) > max(_BY_DESIGN * len(one.unique), _FEW)
    text = f"{counted(len(conflict), 'image')} with two labels{': apparently one line per label' * by_design}"
    yield Finding(
        "info" if by_design else "warn", one.name, len(conflict), text, tuple(examples), of=len(one.unique),
        lists=(one.name,), asked=0,
    )  # fmt: skip


def _against_folders(one: AuditedList) -> Iterator[Finding]:
    """Yield the entries whose label differs from that of nearly all others of their folder."""
    if one.read.labels is None or not one.read.has_folders or len(np.unique(one.read.labels)) < 2:
        return
    names, folders = folders_of(one)
    if len(names) < 2:
        return
    pairs, counts = np.unique((folders.astype(np.int64) << 32) + one.read.labels - NO_LABEL, return_counts=True)
    # Of the labels of a folder, the most frequent comes last; of several such, the largest.
    usual = np.zeros(len(names), np.int64)
    order = np.argsort(counts, kind="stable")
    usual[pairs[order] >> 32] = (pairs[order] & 0xFFFFFFFF) + NO_LABEL
    odd = np.flatnonzero((usual[folders] != one.read.labels) & (one.read.labels != NO_LABEL))
    # Folders of patients or videos share their few labels, and differ within.
    are_classes = len(np.unique(usual)) >= _MATCHED * len(names)
    if are_classes and 0 < len(odd) <= (1 - _MATCHED) * len(one):
        text = f"a label unlike the others of its folder for {len(odd):,} of {counted(len(one), 'entry', 'entries')}"
        examples = tuple(
            f"line {one.read.lines[row]}: {names[folders[row]]} has {usual[folders[row]]}, here {one.read.labels[row]}"
            for row in odd[:SHOWN_EXAMPLES].tolist()
        )
        yield Finding("warn", one.name, len(odd), text, examples, of=len(one), lists=(one.name,))


def folders_of(one: AuditedList) -> tuple[list[str], Int32s]:
    """Return the last folders of the entries, each once, and that of each entry as a position among them."""
    from pyarrow import compute

    folders = compute.replace_substring_regex(column_of(one.read.parent_stems), "/?[^/]*$", "")
    encoded = folders.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def are_versions(first: str, second: str) -> bool:
    """Return whether the names of two lists say versions or folds, which may number and name classes otherwise."""
    one, two = read_role(first), read_role(second)
    return one.folder != two.folder or bool(one.family and two.family and one.family != two.family)


def _between(lists: ListSet, one: AuditedList, two: AuditedList) -> Iterator[Finding]:
    """Yield whether two lists label the images that they share alike, where both use numbers or both names."""
    if (one.read.labels is None) != (two.read.labels is None) or not lists.shared(one, two):
        return
    shared, rows = lists.images.in_both(lists.place[one.name], lists.place[two.name])
    left, right = (_labels(side, own) for side, own in zip((one, two), rows, strict=True))
    # Labels that are one throughout say what a list is for, not what its images show.
    if (left == left[0]).all() or (right == right[0]).all():
        return
    given = np.ones(len(left), np.bool_) if one.read.labels is None else (left >= 0) & (right >= 0)
    odd = np.flatnonzero((left != right) & given)
    about, names = f"{one.name} and {two.name}", (one.name, two.name)
    if not len(odd):
        text = f"both hold {counted(len(shared), 'image')}, each with one label"
        like = "images in both lists have one label"
        yield Finding("pass", about, text=text, lists=names, pairs=(names,), like=like)
    elif not are_versions(one.name, two.name):
        text = f"both hold {counted(len(shared), 'image')}, {len(odd):,} of them with different labels"
        yield _differing(lists, (one, two), text, odd, (left, right))


def _differing(
    lists: ListSet, pair: tuple[AuditedList, AuditedList], text: str, odd: Int64s, values: tuple[npt.NDArray[Any], ...]
) -> Finding:
    """Return the finding that two lists say other things of some of the images that both name."""
    names = (pair[0].name, pair[1].name)
    shared, rows = lists.images.in_both(lists.place[names[0]], lists.place[names[1]])
    told = [
        [f"{value[row]} ({side.file} line {side.read.lines[own[row]]})" for row in odd[:SHOWN_EXAMPLES].tolist()]
        for side, own, value in zip(pair, rows, values, strict=True)
    ]
    images = lists.vocabulary.ids(shared[odd[:SHOWN_EXAMPLES]])
    examples = tuple(f"{image}: {one} and {two}" for image, one, two in zip(images, *told, strict=True))
    about = f"{names[0]} and {names[1]}"
    return Finding("warn", about, len(odd), text, examples, of=len(shared), lists=names, pairs=(names,))


def _shifted(one: AuditedList, two: AuditedList) -> Iterator[Finding]:
    """Yield whether two lists number classes otherwise: by folder, or by a range that is moved by one."""
    if one.read.labels is None or two.read.labels is None:
        return
    sides = [np.unique(labels[labels != NO_LABEL]) for labels in (one.read.labels, two.read.labels)]
    if min(map(len, sides)) < _LEAST_CLASSES:
        return
    usual = [_usual(side) for side in (one, two)]
    both = sorted(usual[0].keys() & usual[1].keys())
    steps = {usual[1][name] - usual[0][name] for name in both}
    moved = [name for name in both if usual[0][name] != usual[1][name]]
    examples = tuple(f"{name}: {usual[0][name]} and {usual[1][name]}" for name in moved[:SHOWN_EXAMPLES])
    if len(both) < _LEAST_CLASSES:
        # Without folders that are classes, the whole range of labels has moved by one.
        examples = ()
        steps = {step for step in (1, -1) if np.array_equal(sides[0] + step, sides[1])}
    if not steps - {0}:
        return
    text = f"different labels for {len(moved):,} of {len(both):,} folders that both name"
    if len(steps) == 1:
        text = (
            f"classes are numbered {sides[1].min()} to {sides[1].max()} in {two.name} and {sides[0].min()} to "
            f"{sides[0].max()} in {one.name}: labels of the same class differ by {min(steps):+d}"
        )
    names = (one.name, two.name)
    yield Finding(
        "warn", f"{one.name} and {two.name}", len(moved) or len(sides[1]), text, examples, lists=names, pairs=(names,),
        asked=0, hint="number the classes alike in both lists",
    )  # fmt: skip


def _usual(one: AuditedList) -> dict[str, int]:
    """Return the label of each folder whose entries have one label alone, where folders are classes."""
    import pandas as pd

    if not one.read.has_folders:
        return {}
    names, folders = folders_of(one)
    labels = pd.DataFrame({"folder": folders, "label": one.read.labels}).drop_duplicates()
    alone = labels[~labels["folder"].duplicated(keep=False)].sort_values("folder")
    found = {names[folder]: label for folder, label in alone.itertuples(index=False)}
    return found if len(set(found.values())) == len(found) > 1 else {}


def tables_fit_each_other(target: AuditTarget) -> Iterator[Finding]:
    """PL16: two tables give an image that both name one value in a column of one name."""
    lists = published_of(target)
    for one, two in combinations(lists.lists, 2):
        columns = _columns_of_both(lists, one, two)
        if not columns or not lists.shared(one, two):
            continue
        shared, rows = lists.images.in_both(lists.place[one.name], lists.place[two.name])
        names = (one.name, two.name)
        for column in columns:
            left, right = (_cells(side, column, own) for side, own in zip((one, two), rows, strict=True))
            odd = np.flatnonzero((left != right) & (left != "") & (right != ""))
            if not len(odd):
                text = f"the column {column} agrees for {counted(len(shared), 'file')}"
                yield Finding("pass", f"{one.name} and {two.name}", text=text, lists=names, pairs=(names,))
                continue
            text = f"the column {column} differs for {len(odd):,} of {counted(len(shared), 'file')}"
            yield _differing(lists, (one, two), text, odd, (left, right))


def _columns_of_both(lists: ListSet, one: AuditedList, two: AuditedList) -> list[str]:
    """Return the columns that can be compared; that of labels where PL9 does not, in tables of another kind."""
    both = one.read.columns.keys() & two.read.columns.keys()
    columns = sorted(name for name in both if not (_numbers_rows(one, name) or _numbers_rows(two, name)))
    apart = are_versions(one.name, two.name)
    if apart and all(read_role(side.name).roles for side in (one, two)):
        return []
    tables = {lists.files[side.file].form for side in (one, two)} <= _TABLES
    named = one.read.group_of is not None and two.read.group_of is not None
    return [*columns, _LABEL] if apart and tables and named else columns


def _numbers_rows(one: AuditedList, column: str) -> bool:
    """Return whether a column is a number of the row, as an exported index is, and says nothing of the image."""
    values = one.read.columns[column].values
    return len(values) >= _MATCHED * len(one) and all(text.isdecimal() for text in values)


def _cells(one: AuditedList, column: str, rows: Int32s) -> npt.NDArray[Any]:
    """Return the values of a column in some entries, empty where there is none."""
    if column == _LABEL:
        return _labels(one, rows)
    return np.array([*one.read.columns[column].values, ""])[one.read.columns[column].of[rows]]


CHECKS: dict[str, Check] = {"PL9": labels_fit_each_other, "PL16": tables_fit_each_other}
