"""PL, published lists: what names, sizes, labels and paths of somebody's lists say, held against what the lists hold.

A finding on names is never one on pixels. Each rule states what it does not show (`Rule.not_shown`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np

from curation.audit.id_vocabulary import TEXT
from curation.audit.lists import IdList, ListSet
from curation.audit.rule import Check, Finding, Outcome, joined, not_applicable, undecidable
from curation.audit.target import SHOWN_EXAMPLES, AuditedList, AuditTarget
from curation.sources.published_list import NO_LABEL, ListDigests
from curation.sources.source import Int32s, Int64s

ID_AND_OOD = "which lists are in-distribution and which out: --role LIST=id, --role LIST=ood"
MORE_GROUPS = (
    "which images come from one source: names with ten groups or more, none of them above a fifth of the images"
)
LEAST_COUNT = 100
LEAST_GROUPS = 10
LARGEST_GROUP = 0.2
_YEARS = range(1990, 2100)
_COUNT = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{2,8}(?![0-9A-Za-z])")
_NUMBER = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{0,8}(?![0-9A-Za-z])")
_TASK = re.compile(r"(?:^|[_-])(?:t|task)[_-]?[0-9]{1,2}(?:[_-]|$)", re.IGNORECASE)
_APART = ((("train", "finetune"), ("val",)), (("train", "finetune", "val"), ("test",)))
_MATCHED = 0.95
_PATTERNS = (
    ("source photo before .rf.", r"^(.+)\.rf\.[0-9a-f]{32}$"),
    ("text before the frame", r"(?i)^(.*[a-z].*?)[_-]?frame[_-]?[0-9]+$"),
    ("text before the number", r"(?i)^(.*[a-z].*?)[_-]?[0-9]{3,}$"),
)
_WNID = re.compile(r"n[0-9]{8}")
_CODE = (".py", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".ini")
_LARGEST_CODE = 1 << 20
_NAMED_LIST = re.compile(r"[\w./-]*[\w-]\.(?:txt|csv)\b")


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
            empty = [space for space in _spaces_named(_base(one.name)) if not counts.get(f"{space} ids", 0)]
            told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
            short = number - max(count for count in counts.values() if count <= number) if len(one) else number
            near = f"; it is short by {short:,}" if short > 0 and max(counts.values()) < number else ""
            text = f"the name differs from the list: {number:,} is neither of {told}{near}"
            if empty:
                text += f"; no id is of {joined(empty)}, which it names"
            yield Finding("fail" if empty else "warn", one.name, 1, text)
    if agreed:
        yield Finding("pass", "names", text=f"{agreed} counts in names agree with their lists")


def _counts_in(name: str) -> list[int]:
    """Return the numbers of a file name that can be counts: no year, no bound of a range such as ``20_40``."""
    return [number for text in _COUNT.findall(name) if (number := int(text)) >= LEAST_COUNT and number not in _YEARS]


def _counts(lists: ListSet, one: IdList) -> dict[str, int]:
    vocabulary = lists.vocabulary
    spaces, numbers = np.unique(vocabulary.namespace_codes[one.unique], return_counts=True)
    names = [vocabulary.namespace_names[code] for code in spaces.tolist()]
    counts = {"lines": len(one) + one.read.odd - one.read.unlabelled, "ids": len(one.unique)}
    return counts | {f"{name} ids": n for name, n in zip(names, numbers.tolist(), strict=True) if name}


def _spaces_named(name: str) -> list[str]:
    return [space for space in ("coco",) if re.search(rf"(?:^|[^a-z]){space}(?:[^a-z]|$)", name, re.IGNORECASE)]


def growing_lists_are_nested(target: AuditTarget) -> Iterator[Finding]:
    """PL2: of lists whose names differ in one count alone, each lies inside the next larger one."""
    lists = published_of(target)
    for numbered in _series(lists).values():
        for (_, small), (_, large) in pairwise(numbered):
            one, two = lists.lists[small], lists.lists[large]
            shared = _shared(one, two)
            if shared == len(one.unique):
                yield Finding("pass", f"{one.name} in {two.name}", text=f"all {shared:,} ids stand in the larger list")
                continue
            missing = np.setdiff1d(one.unique, two.unique)[:SHOWN_EXAMPLES]
            datasets = _by_dataset(lists, one, two)
            text = (
                f"the lists are not nested: of {len(one.unique):,} ids the larger one shares {shared:,}{datasets}; "
                f"it is short by {len(one.unique) - shared:,}"
            )
            examples = tuple(lists.vocabulary.ids(missing))
            yield Finding("warn", f"{one.name} and {two.name}", len(one.unique) - shared, text, examples)


def _series(lists: ListSet) -> dict[str, list[tuple[int, int]]]:
    """Return lists that grow with the one number in which their names differ: number and position, by template."""
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, one in enumerate(lists.lists):
        base = _base(one.name)
        numbers = list(_NUMBER.finditer(base))
        if len(numbers) == 1 and not _TASK.search(base) and int(numbers[0][0]) not in _YEARS:
            start, end = numbers[0].span()
            folder = one.name[: len(one.name) - len(base)]
            found[f"{folder}{base[:start]}N{base[end:]}"].append((int(numbers[0][0]), place))
    grown = {}
    for template, members in found.items():
        chosen = [(number, place) for number, place in sorted(members) if len(lists.lists[place])]
        sizes = [len(lists.lists[place].unique) for _, place in chosen]
        # A list that breaks its own name is told by PL1, and does not hide the others.
        rising = [pair for pair, size in zip(chosen, sizes, strict=True) if size >= pair[0] or pair[0] < LEAST_COUNT]
        sizes = [len(lists.lists[place].unique) for _, place in rising]
        if len(rising) > 1 and all(one < two for one, two in pairwise(sizes)):
            grown[template] = rising
    return grown


def _shared(one: IdList, two: IdList) -> int:
    return len(np.intersect1d(one.unique, two.unique, assume_unique=True))


def _by_dataset(lists: ListSet, one: IdList, two: IdList) -> str:
    """Return how many ids of each dataset two lists share, where there are several."""
    shared = np.intersect1d(one.unique, two.unique, assume_unique=True)
    spaces, counts = np.unique(lists.vocabulary.namespace_codes[shared], return_counts=True)
    names = [lists.vocabulary.namespace_names[code] or "no dataset" for code in spaces.tolist()]
    told = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts.tolist(), strict=True))
    return f" ({told})" if len(names) > 1 else ""


def groups_stand_on_one_side(target: AuditTarget) -> Outcome:
    """PL7: images of one source, told by their names, stand in train, in val or in test alone."""
    lists = published_of(target)
    found = {one.name: one for one in lists.lists}
    pairs = [pair for left, right in _APART for pair in product(target.with_role(*left), target.with_role(*right))]
    findings: list[Finding] = []
    groups = _Groups(lists)
    for first, second in pairs:
        if told := _told_groups(groups, found[first.file], found[second.file], (first, second)):
            findings.append(told)
    return Outcome(tuple(findings)) if findings else not_applicable("names tell no groups of images on two sides")


class _Groups:
    """The group of each id of a set of lists by the patterns of names, worked out once for all pairs."""

    def __init__(self, lists: ListSet) -> None:
        self.lists = lists
        self.first_text = int(np.searchsorted(lists.vocabulary.forms, TEXT))
        self.by_pattern: dict[str, tuple[Int32s, list[str]]] = {}

    def of(self, pattern: str) -> tuple[Int32s, list[str]]:
        """Return the group of each id as a position in the names of groups, -1 where a name tells none."""
        from pyarrow import compute

        if pattern not in self.by_pattern:
            texts = self.lists.vocabulary.texts
            fits = compute.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
            encoded = compute.replace_substring_regex(texts.filter(fits), pattern, r"\1").dictionary_encode()
            codes = np.full(len(self.lists.vocabulary), -1, np.int32)
            codes[self.first_text + np.flatnonzero(fits)] = encoded.indices.to_numpy()
            self.by_pattern[pattern] = codes, encoded.dictionary.to_pylist()
        return self.by_pattern[pattern]


def _told_groups(groups: _Groups, one: IdList, two: IdList, pair: tuple[AuditedList, AuditedList]) -> Finding | None:
    if not len(groups.lists.vocabulary.texts) or not len(one) or not len(two):
        return None
    for how, pattern in _PATTERNS:
        codes, names = groups.of(pattern)
        sides = [codes[pair[0].unique], codes[pair[1].unique]]
        if all(len(side) and (side >= 0).mean() >= _MATCHED for side in sides):
            return _judged_groups(how, names, [side[side >= 0] for side in sides], pair, folders=False)
    if not one.read.has_folders or not two.read.has_folders:
        return None
    folders = [np.array(_folders(side)) for side in (one, two)]
    texts, places = np.unique(np.concatenate(folders), return_inverse=True)
    codes = places.astype(np.int32)
    split = [codes[: len(folders[0])], codes[len(folders[0]) :]]
    return _judged_groups("folder", texts.tolist(), split, pair, folders=True)


def _folders(one: IdList) -> list[str]:
    return [path.rpartition(b"/")[0].decode() for path in one.read.parent_stems.split(b"\n")[:-1]]


def _judged_groups(
    how: str, names: Sequence[str], sides: Sequence[Int32s], pair: tuple[AuditedList, AuditedList], *, folders: bool
) -> Finding | None:
    counts = [np.bincount(side, minlength=len(names)) for side in sides]
    present = np.flatnonzero(counts[0] + counts[1])
    if len(present) < 2 or all(_WNID.fullmatch(_base(names[place])) for place in present[:50].tolist()):
        # One group is no grouping, and a class is none of the kind that is meant.
        return None
    both = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    images = int((counts[0] + counts[1])[both].sum())
    total = int(sum(count.sum() for count in counts))
    largest = int((counts[0] + counts[1]).max())
    about = f"{pair[1].name} against {pair[0].name}"
    text = (
        f"by {how}: {len(present):,} groups, the largest of {largest:,} of {total:,} images; "
        f"the lists share {len(both):,} groups with {images:,} images"
    )
    order = both[np.argsort(-(counts[0] + counts[1])[both], kind="stable")][:SHOWN_EXAMPLES]
    examples = tuple(f"{names[k]} ({counts[0][k]:,} and {counts[1][k]:,} images)" for k in order.tolist())
    if not len(both):
        return Finding("pass", about, text=text)
    if len(present) < LEAST_GROUPS or largest > LARGEST_GROUP * total:
        return undecidable(about, MORE_GROUPS, text, examples)
    if folders and 2 * len(both) > len(present):
        return undecidable(about, MORE_GROUPS, f"{text}: folders may be classes", examples)
    return Finding("warn", about, images, text, examples)


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
        per = _per_class(listed, lists.files[listed.file].form)
        if per is not None and len(per) > 1:
            text = f"{len(listed):,} images of {len(per):,} classes, {per.min():,} to {per.max():,} each"
            yield Finding("info", listed.name, len(listed), text)


def _per_class(one: IdList, form: str) -> Int64s | None:
    if one.read.group_of is not None and form == "json groups":
        return np.bincount(one.read.group_of)
    if one.read.labels is None or not len(one):
        return None
    _, counts = np.unique(one.read.labels[one.read.labels != NO_LABEL], return_counts=True)
    return counts if len(counts) > 1 and one.read.labels.min() >= 0 else None


def labels_fit_each_other(target: AuditTarget) -> Iterator[Finding]:
    """PL9: an image has one label: in its list, in every other list that labels it, and as its folder says."""
    lists = published_of(target)
    labelled = [one for one in lists.lists if _values(one) is not None]
    if not labelled:
        return
    sound = 0
    for one in labelled:
        values = _values(one)
        assert values is not None  # noqa: S101
        found = [*_two_labels(lists, one, values), *_against_folders(one)]
        yield from found
        sound += not found
    for one, two in combinations([one for one in labelled if one.read.labels is not None], 2):
        yield from _between(lists, one, two)
    if sound:
        yield Finding("pass", "lists", text=f"{sound} lists give each image one label")


def _values(one: IdList) -> Int32s | None:
    return one.read.labels if one.read.labels is not None else one.read.group_of


def _label_text(one: IdList, value: int) -> str:
    return repr(one.read.groups[value]) if one.read.labels is None else str(value)


def _two_labels(lists: ListSet, one: IdList, values: Int32s) -> Iterator[Finding]:
    order = np.lexsort((values, one.members))
    ids, labels = one.members[order], values[order]
    conflict = np.unique(ids[1:][(ids[1:] == ids[:-1]) & (labels[1:] != labels[:-1])])
    if len(conflict):
        examples = []
        for row in conflict[:SHOWN_EXAMPLES].tolist():
            told = dict.fromkeys(_label_text(one, value) for value in values[one.members == row].tolist())
            examples.append(f"{lists.vocabulary.ids([row])[0]}: {' and '.join(told)}")
        text = f"{len(conflict):,} images stand with two labels"
        yield Finding("warn", one.name, len(conflict), text, tuple(examples))


def _against_folders(one: IdList) -> Iterator[Finding]:
    """Yield the entries whose label differs from that of nearly all others of their folder."""
    if one.read.labels is None or not one.read.has_folders or len(np.unique(one.read.labels)) < 2:
        return
    names, folders = np.unique(np.array(_folders(one)), return_inverse=True)
    if len(names) < 2:
        return
    pairs, counts = np.unique(np.stack([folders, one.read.labels]), axis=1, return_counts=True)
    order = np.lexsort((counts, pairs[0]))
    last = np.append(pairs[0][order][1:] != pairs[0][order][:-1], True)
    usual = np.zeros(len(names), np.int64)
    usual[pairs[0][order][last]] = pairs[1][order][last]
    odd = np.flatnonzero(usual[folders] != one.read.labels)
    if 0 < len(odd) <= (1 - _MATCHED) * len(one):
        text = f"the label of {len(odd):,} of {len(one):,} entries differs from the others of their folder"
        examples = tuple(
            f"line {one.read.lines[row]}: {names[folders[row]]} has {usual[folders[row]]}, here {one.read.labels[row]}"
            for row in odd[:SHOWN_EXAMPLES].tolist()
        )
        yield Finding("warn", one.name, len(odd), text, examples)


def _between(lists: ListSet, one: IdList, two: IdList) -> Iterator[Finding]:
    assert one.read.labels is not None  # noqa: S101
    assert two.read.labels is not None  # noqa: S101
    shared, first, second = np.intersect1d(one.members, two.members, return_indices=True)
    left, right = one.read.labels[first], two.read.labels[second]
    # Labels that are one number throughout say what a list is for, not what its images show.
    if not len(shared) or len(np.unique(left)) < 2 or len(np.unique(right)) < 2:
        return
    rows = np.flatnonzero((left != right) & (left >= 0) & (right >= 0))
    about = f"{one.name} and {two.name}"
    if not len(rows):
        yield Finding("pass", about, text=f"the lists share {len(shared):,} images, each with one label")
        return
    examples = tuple(
        f"{text}: {left[row]} and {right[row]}"
        for text, row in zip(lists.vocabulary.ids(shared[rows[:SHOWN_EXAMPLES]]), rows.tolist(), strict=False)
    )
    text = f"the lists share {len(shared):,} images, and the label of {len(rows):,} differs"
    yield Finding("warn", about, len(rows), text, examples)


def stems_name_images(target: AuditTarget) -> Iterator[Finding]:
    """PL10: the stem of a file names one image of a list, whatever folder it stands in."""
    sound = 0
    for one in published_of(target).lists:
        if not one.read.has_folders:
            continue
        paths, names = (text.count(b"\n") for text in (one.read.distinct_parent_stems, one.read.distinct_stems))
        if names == paths:
            sound += 1
            continue
        how = "they are compared by whole path"
        text = f"stems repeat: {paths:,} paths have {names:,} distinct stems; {how}"
        yield Finding("warn", one.name, paths - names, text)
    if sound:
        yield Finding("pass", "lists", text=f"stems name the images of {sound} lists with folders")


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


def named_lists_are_there(target: AuditTarget) -> Iterator[Finding]:
    """PL12: every list that code or configuration in the folder names lies in the folder."""
    root = published_of(target).root
    present = {Path(name).name for name in (*published_of(target).files, *published_of(target).skipped)}
    below = sorted(root.rglob("*")) if published_of(target).whole else []
    code = [path for path in below if path.suffix in _CODE and path.is_file()]
    missing: dict[str, str] = {}
    for path in code:
        if path.is_symlink() or path.stat().st_size > _LARGEST_CODE:
            continue
        for name in _NAMED_LIST.findall(path.read_bytes().decode("utf-8", "ignore")):
            if Path(name).name not in present:
                missing.setdefault(name, path.relative_to(root).as_posix())
    if missing:
        examples = tuple(f"{name} (in {where})" for name, where in list(missing.items())[:SHOWN_EXAMPLES])
        text = f"the folder is short by {len(missing):,} lists that its code names"
        yield Finding("info", "lists", len(missing), text, examples)
    elif code:
        yield Finding("pass", "lists", text=f"{len(code)} files of code name no list that is not there")


CHECKS: dict[str, Check] = {
    "PL1": names_agree_with_counts,
    "PL2": growing_lists_are_nested,
    "PL7": groups_stand_on_one_side,
    "PL8": sizes_are_stated,
    "PL9": labels_fit_each_other,
    "PL10": stems_name_images,
    "PL11": lists_have_one_name,
    "PL12": named_lists_are_there,
}
