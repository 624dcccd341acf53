"""PL, published lists: what names, sizes, labels and paths of somebody's lists say, held against what the lists hold.

A finding on names is never one on pixels. Each rule states what it does not show (`Rule.not_shown`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

import numpy as np

from curation.audit.lists import AuditedList, ListSet
from curation.audit.rule import Check, Finding, Verdict, joined, undecidable
from curation.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.sources.entries import NO_LABEL, ListDigests, OddLine
from curation.sources.source import Int64s
from curation.wording import counted

ID_AND_OOD = "which lists are in-distribution and which out: --role LIST=id, --role LIST=ood"
LEAST_COUNT = 100
_YEARS = range(1990, 2100)
_COUNT = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{2,8}(?![0-9A-Za-z])")
_COCO = re.compile(r"(?:^|[^a-z])coco(?:[^a-z]|$)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{0,8}(?![0-9A-Za-z])")


def published_of(target: AuditTarget) -> ListSet:
    """Return the lists of a folder as they were read."""
    assert target.published is not None  # noqa: S101 - rules of this principle are asked of folders alone
    return target.published


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def names_agree_with_counts(target: AuditTarget) -> Iterator[Finding]:
    """PL1: a count in a file name is that of lines, distinct ids, or ids of one dataset."""
    lists = published_of(target)
    agreed = 0
    for one in lists.lists:
        for number in _counts_in(_base(one.name)):
            counts = _counts(lists, one)
            if number in counts.values():
                agreed += 1
                continue
            told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
            short = number - max(count for count in counts.values() if count <= number) if len(one) else number
            near = f"; {short:,} are missing" if short > 0 and max(counts.values()) < number else ""
            text = f"the name does not match the list: {number:,} is none of {told}{near}"
            by_dataset = {what: count for what, count in counts.items() if what not in ("lines", "ids")}
            empty = _COCO.search(_base(one.name)) and "coco ids" not in counts
            empty = empty and sum(by_dataset.values()) == counts["ids"]
            if empty:
                text += "; it names coco, but no id is from there"
            # Far from every count, a number is no count: 640 is a size.
            near_one = any(number <= 2 * count <= 4 * number for count in counts.values())
            verdict: Verdict = "fail" if empty else "warn" if near_one else "info"
            yield Finding(verdict, one.name, 1, text, lists=(one.name,))
    if agreed:
        yield Finding("pass", "names", text=f"{counted(agreed, 'count')} in names, each that of its list", asked=agreed)


def _counts_in(name: str) -> list[int]:
    """Return the numbers of a file name that can be counts: no year, no bound of a range such as ``20_40``."""
    return [number for text in _COUNT.findall(name) if (number := int(text)) >= LEAST_COUNT and number not in _YEARS]


def _counts(lists: ListSet, one: AuditedList) -> dict[str, int]:
    vocabulary = lists.vocabulary
    spaces, numbers = np.unique(vocabulary.namespace_codes[one.unique], return_counts=True)
    names = [vocabulary.namespace_names[code] for code in spaces.tolist()]
    counts = {"lines": len(one) + one.read.odd - one.read.unlabelled, "ids": len(one.unique)}
    return counts | {f"{name} ids": n for name, n in zip(names, numbers.tolist(), strict=True) if name}


def growing_lists_are_nested(target: AuditTarget) -> Iterator[Finding]:
    """PL2: of lists whose names differ in one count alone, each lies inside the next larger one."""
    lists = published_of(target)
    for rising in _series(lists):
        for one, two in pairwise(rising):
            shared = lists.shared(one, two)
            if shared == len(one.unique):
                yield Finding(
                    "pass", f"{one.name} in {two.name}", text=f"the larger list holds all {counted(shared, 'id')}"
                )
                continue
            missing = np.setdiff1d(one.unique, two.unique)[:SHOWN_EXAMPLES]
            datasets = _by_dataset(lists, one, two)
            text = (
                f"the lists are not nested: the larger one holds {shared:,} of {len(one.unique):,} ids{datasets}; "
                f"{len(one.unique) - shared:,} are missing"
            )
            examples = tuple(lists.vocabulary.ids(missing))
            yield Finding("warn", f"{one.name} and {two.name}", len(one.unique) - shared, text, examples)


def _series(lists: ListSet) -> Iterator[list[AuditedList]]:
    """Yield lists that grow with the one number in which their names differ."""
    found: defaultdict[tuple[str, str], list[tuple[int, AuditedList]]] = defaultdict(list)
    for one in lists.lists:
        folder, _, base = one.name.rpartition("/")
        numbers = [int(text) for text in _NUMBER.findall(base)]
        # Smaller numbers are folds and versions, which promise nothing.
        if len(one) and len(numbers) == 1 and LEAST_COUNT <= numbers[0] not in _YEARS:
            found[folder, _NUMBER.sub("N", base)].append((numbers[0], one))
    for members in found.values():
        # A list that breaks its own name is told by PL1, and does not hide the others.
        rising = [one for number, one in sorted(members, key=itemgetter(0)) if len(one.unique) >= number]
        if len(rising) > 1 and all(len(one.unique) < len(two.unique) for one, two in pairwise(rising)):
            yield rising


def _by_dataset(lists: ListSet, one: AuditedList, two: AuditedList) -> str:
    """Return how many ids of each dataset two lists share, where there are several."""
    shared, _ = lists.images.in_both(lists.place[one.name], lists.place[two.name])
    spaces, counts = np.unique(lists.vocabulary.namespace_codes[shared], return_counts=True)
    names = [lists.vocabulary.namespace_names[code] or "no dataset" for code in spaces.tolist()]
    told = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts.tolist(), strict=True))
    return f" ({told})" if len(names) > 1 else ""


def sizes_are_stated(target: AuditTarget) -> Iterator[Finding]:
    """PL8: the ratio of in- to out-of-distribution images of each set, and images of each label."""
    lists = published_of(target)
    inside, outside = target.with_role("id"), target.with_role("ood")
    if inside and outside:
        total = len(target.mask(inside).nonzero()[0])
        for one in outside:
            ratio = total / max(len(one.unique), 1)
            text = f"ID : OOD {ratio:.2f} ({total:,} and {len(one.unique):,} images)"
            yield Finding("info", one.name, len(one.unique), text)
    elif any(re.search(r"ood|out.of", one.name, re.IGNORECASE) for one in lists.lists) or inside or outside:
        yield undecidable("lists", ID_AND_OOD)
    for listed in lists.lists:
        if told := _beside(listed):
            yield Finding("info", listed.name, 0, told, lists=(listed.name,), asked=0)
        per = _per_class(listed, lists.files[listed.file].form)
        if per is not None and len(per) > 1:
            text = f"{len(listed):,} images in {len(per):,} classes, {per.min():,} to {per.max():,} each"
            brief = f"{listed.name}: {len(per):,} classes of {per.min():,} to {per.max():,}"
            yield Finding(
                "info", listed.name, len(listed), text, lists=(listed.name,), asked=0, like="sizes", brief=brief
            )


def _beside(one: AuditedList) -> str:
    """Return what stands beside the images of a list: how many labels, and how many values of each column."""
    told, counts = list[str](), one.read.label_counts
    if counts is not None:
        several, none = int((counts > 1).sum()), int((counts == 0).sum())
        told.append(f"of {counted(len(one), 'image')}, {several:,} with two or more labels and {none:,} with none")
    for name, column in one.read.columns.items():
        # The values of a table that is split are those of all its parts.
        values, lacking = np.unique(column.of[column.of >= 0]), int((column.of < 0).sum())
        blank = int(np.isin(column.of, [row for row in values.tolist() if " " in column.values[row]]).sum())
        more = f", missing on {counted(lacking, 'line')}" if lacking else ""
        more += f", with a blank on {counted(blank, 'line')}" if blank else ""
        told.append(f"the column {name} has {counted(len(values), 'value')}{more}")
    return "; ".join(told)


def _per_class(one: AuditedList, form: str) -> Int64s | None:
    if one.read.group_of is not None and form == "json groups":
        return np.bincount(one.read.group_of)
    if one.read.labels is None or not len(one):
        return None
    _, counts = np.unique(one.read.labels[one.read.labels != NO_LABEL], return_counts=True)
    return counts if len(counts) > 1 and one.read.labels.min() >= 0 else None


def lists_have_one_name(target: AuditTarget) -> Iterator[Finding]:
    """PL11: which lists of the index these are, equal by bytes or by their images."""
    from curation.identify.index import packaged_index, read_index

    index = read_index(packaged_index()).lists
    counts = {one.stems for one in index} | {one.parent_stems for one in index}
    for one in published_of(target).lists:
        equal = [known for known in index if f"sha256:{known.sha256}" == one.sha256 and known.key == one.read.name]
        how = "the same bytes as"
        if not equal and len(one.unique) in counts and len(one) >= LEAST_COUNT:
            how, digests = "the same images as", ListDigests.of(one.read, "")
            equal = [
                known
                for known in index
                if (known.sha256_parent_stems == digests.sha256_parent_stems and known.folded)
                or (known.sha256_stems == digests.sha256_stems and not known.folded)
            ]
        if equal:
            titles = list(dict.fromkeys(known.title for known in equal))
            called = {known.called for known in equal}
            name = "" if _base(one.name).lower() in called else ", under another name"
            yield Finding("info", one.name, len(one.unique), f"it has {how} {joined(titles, 4)}{name}")


def lines_are_whole(target: AuditTarget) -> Iterator[Finding]:
    """PL13: every line can be read, and none is cut or lacks a column that nearly all others have."""
    for one in published_of(target).lists:
        read = one.read
        if short := max(read.short, read.unlabelled):
            lines = read.short_lines or tuple(odd for odd in read.odd_lines if "label" in odd.reason)
            text = f"{counted(short, 'line')} of {one.file} truncated or without a column"
            yield _lines(one, "fail", short, text, lines, "lines are truncated or lack a column")
        short_of = {odd.line for odd in read.short_lines}
        other = [odd for odd in read.odd_lines if odd.line not in short_of and "label" not in odd.reason]
        left_out = read.odd - short
        if left_out > 0 and not all(odd.text.startswith("#") for odd in other):
            text = f"{counted(left_out, 'line')} of {one.file} without an image"
            yield _lines(one, "warn", left_out, text, other, "lines name no image")


def _lines(one: AuditedList, verdict: Verdict, count: int, text: str, lines: Sequence[OddLine], like: str) -> Finding:
    examples = tuple(f"line {odd.line}: {odd.reason}: {odd.text!r}" for odd in lines[:SHOWN_EXAMPLES])
    of = len(one) + one.read.odd
    return Finding(verdict, "", count, text, examples, of=of, lists=(one.name,), like=like)


CHECKS: dict[str, Check] = {
    "PL1": names_agree_with_counts,
    "PL2": growing_lists_are_nested,
    "PL8": sizes_are_stated,
    "PL11": lists_have_one_name,
    "PL13": lines_are_whole,
}
