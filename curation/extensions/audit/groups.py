"""Groups of images (patients, videos, drives, slides) by columns and names, and the groups that two lists share.

Patterns are tried in a fixed order, and every result names the pattern that decided. If no pattern fits, the result is
undecidable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from curation.core.columns import arrow_of, distinct, encoded, text_array, values_of
from curation.core.errors import UsageError
from curation.core.patterns import captured, match_mask, require_group
from curation.extensions.audit.identity import IMAGE_SUFFIX, Images
from curation.sources.entries import NO_LABEL
from curation.sources.source import Int32s, Int64s

if TYPE_CHECKING:
    import pyarrow as pa

Verdict = Literal["shared", "disjoint", "undecidable"]

SHARE = 0.9
"""Least share of the lines of each list that have a group by a pattern that fits."""
LEAST_GROUPS = 10
LARGEST_GROUP = 0.2
"""Fewer groups, or a group with a larger share of all lines, may be classes if the name does not state their kind."""
GROUP_COLUMNS = (
    "patient", "subject", "case", "study", "lesion", "video", "clip", "sequence", "scene", "slide",
    "drive", "session", "recording", "speaker", "site", "location", "group", "source_id", "user", "client",
    "participant", "src_file", "source_file",
)  # fmt: skip
"""Names of columns of groups; ``patient_id`` and ``PatientID`` are read as ``patient``."""
_SHOWN = 3
_SAMPLE = 200
_GROUPS_A_LABEL = 3
_FOLLOWING = 0.9
"""Least share of lines with the most frequent label of their group for which groups follow the labels."""
_ROLE_FOLDER = r"(^|/)(?i:train|training|trainval|val|valid|validation|dev|test|testing)(?:20\d\d)?/"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A pattern of groups in paths below the root; the joined capture groups are the name of a group.

    The kind of group is the first of `nouns` in the names, else the first noun. With `few`, two groups suffice, as the
    name states their kind; with `sure`, they cannot be classes either. If names of groups begin with folders
    (`in_folders`), the folders train, val and test are removed, so that a slide has one name in all of them.
    """

    name: str
    nouns: tuple[str, ...]
    regex: str
    few: bool = True
    sure: bool = True
    in_folders: bool = False
    is_view: bool = False


_END = f"(?:{IMAGE_SUFFIX.removesuffix('$')})?$"
_COUNTER = r"^((?:.*?[^A-Za-z])??(?i:{})[_-]?{})"
"""The first word with a number in a path, with its folders: videos 3 of two folders are two videos."""
_MORE = r"[^.\d]"
"""The number is followed by more text: a file that is one clip is not a group, but a patient may have one image."""
_SLIDE = "slide|region|roi|scan|section|biopsy|tissue|wsi|tumou?r|core"
_MADE = "aug|augmented|augmentation|copy|[hv]flip|flipped|fliplr|flipud"
_COPY = rf"^(.*[^/ _-])(?:[ _-]+(?i:{_MADE})(?:[ _-]?\(?\d+\)?)?)+{_END}"
"""Names of images made from another image: ``a_augmented_3.jpg``, ``a_hflip.jpg``, ``a - Copy (2).jpg``."""
_YEAR = re.compile(r"(?:^|\D)(?:19|20)\d\d$")
_CLASS_FOLDER = r"^\D*$|^n\d{8}$|^\d{1,4}(?:[._ -]*[A-Za-z].*)?$|^(?i:c|cls|class|cat|category|label|id)[._ -]?\d+$"
"""Names of folders that may be classes: words, a WordNet id, a number."""
_FRAMES = "text before the frame"
_NEAR = 0.5
"""Least share of lines of the smaller list next to a frame of the other list for which both show the same video."""
_FEWEST_FRAMES = 10
_DIGITS, _GROUP_BITS = 12, 40
"""Numbers with fewer digits are read; they fit into so many bits, and the bits above are the group."""
_PATTERNS = (
    _Pattern("Roboflow source", ("source photo",), r"([^/]+)\.rf\.[0-9a-f]{32}"),
    _Pattern(
        "subject or patient",
        ("subject", "patient"),
        r"(OAS\d{5})|(TCGA-\w\w-\w{4})|(LIDC-IDRI-\d{4})|(ANON\d+)|(?:^|/)(00\d{6})_\d{3}(?:\D|$)",
    ),
    _Pattern(
        "subject or patient",
        ("subject", "patient", "case"),
        _COUNTER.format("patient|subject|subj|case|pid", r"\d+") + "|^((?:.*?[^A-Za-z])??sub-[A-Za-z0-9]+)",
        in_folders=True,
    ),
    _Pattern(
        "drive, sequence or scene",
        ("sequence", "drive"),
        r"(\d{4}_\d\d_\d\d_drive_\d{4})|(?:^|/)([a-z-]+_\d{6})_\d{6}_",
    ),
    _Pattern(
        "drive, sequence or scene",
        ("sequence", "drive", "scene", "route", "trip"),
        "|".join(
            _COUNTER.format(*words) + _MORE
            for words in (("seq|sequence|drive|route|trip|log", r"\d+"), ("scene", r"\d{4}"))
        ),
        in_folders=True,
    ),
    _Pattern("recording", ("recording",), r"(?:^|/)\d-(\d+)-[A-Z]-\d+\.wav$|(?:^|/)(\d+)-\d+-\d+-\d+\.wav$"),
    _Pattern("video", ("video", "clip"), r"(v_\w+_g\d\d)|(?:^|/)(MVI_\d+)/"),
    _Pattern("video", ("video", "clip"), _COUNTER.format("video|vid|clip", r"\d+") + _MORE, in_folders=True),
    _Pattern(
        _FRAMES, ("video",), r"^((?:.*/)?[^/]*[^/_-])[_-]?(?i:frame)[_-]?\d+|^()(?i:frame)[_-]?\d+", in_folders=True
    ),
    _Pattern(
        "slide or crop",
        ("slide", "scan"),
        r"^(.*[^/_-])[_-](?i:patch|slice|tile|crop)[_-]?\d[^/]*$"
        rf"|^((?:.*/)?[^/]*(?i:{_SLIDE})[^/]*?[_-]?\d+)(?:[_-]\d+){{1,2}}{_END}"
        # Two numbers after a numbered folder; other numbers are dates, or a car and its sensor.
        rf"|^((?:.*/)?(?:0\d+|\d{{1,3}})/(?:0\d+|\d{{1,3}}))[_-]\d+[_-]\d+{_END}",
        sure=False,
        in_folders=True,
    ),
    _Pattern(
        "companion",
        ("instant",),
        r"^(|.*/)(?:image_0?[0-3]|left|right|images|masks|labels|annotations|rgb|depth|leftImg8bit|rightImg8bit)"
        rf"(/.*?){_END}|^(.*)_(?:left|right)(?:Img8bit)?{_END}|^(.*/)[lr]$",
        in_folders=True,
        is_view=True,
    ),
    _Pattern("folder", ("folder",), rf"^(.*)/[^/]*\d{_END}", few=False, sure=False, in_folders=True),
    _Pattern(
        "text before the number",
        ("group",),
        rf"^((?:.*/)?[^/]*[A-Za-z][^/]*?)[_-]?\d{{3,}}{_END}",
        few=False,
        sure=False,
        in_folders=True,
    ),
)
_PEOPLE = _PATTERNS[1:3]


@dataclass(frozen=True, slots=True)
class _Sides:
    """The group of each line of two lists as a position in `names`, -1 for none."""

    codes: tuple[Int32s, Int32s]
    names: pa.LargeStringArray

    @property
    def fitting(self) -> tuple[int, int]:
        """Number of lines of each list that have a group."""
        return int((self.codes[0] >= 0).sum()), int((self.codes[1] >= 0).sum())


@dataclass(frozen=True, slots=True)
class GroupExample:
    """A group on both sides, and its lines on each."""

    name: str
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Groups of images compared between two lists.

    Attributes
    ----------
    verdict : {"shared", "disjoint", "undecidable"}
        Whether a group is on both sides; *undecidable* if no group can be read from the names.
    pattern : str
        Its name in reports: ``subject or patient``, ``drive, sequence or scene``, ``the column patient``; empty if none
        fits.
    noun : str
        Kind of group: ``patient``, ``drive``, ``video``, ``slide``, ``group``.
    both : int
        Groups on both sides.
    groups : (int, int)
        Groups of each list.
    lines : (int, int)
        Lines of each list in groups of both sides.
    of : (int, int)
        Lines of each list.
    without : (int, int)
        Lines of each list that have no group by this pattern.
    examples : tuple of GroupExample
        The first three, those with most lines first.
    tried : tuple of str
        Patterns that do not decide, with reasons: ``folder (fits 0 of 200 and 1,159 of 1,159 lines)``.
    why : str
        If *undecidable*: the reason why a pattern that fits does not decide, such as groups that may be classes.
    is_view : bool
        Whether a group is one instant in several views (left and right), which are not the same image.
    rows : (ndarray of int64, ndarray of int64)
        Rows of each list in groups of both sides.
    """

    verdict: Verdict
    pattern: str = ""
    noun: str = "group"
    both: int = 0
    groups: tuple[int, int] = (0, 0)
    lines: tuple[int, int] = (0, 0)
    of: tuple[int, int] = (0, 0)
    without: tuple[int, int] = (0, 0)
    examples: tuple[GroupExample, ...] = ()
    tried: tuple[str, ...] = ()
    why: str = ""
    is_view: bool = False
    rows: tuple[Int64s, ...] = field(default=(), compare=False, repr=False)


class Groups:
    """The groups of a folder's images by every pattern, computed once for all pairs of lists.

    Parameters
    ----------
    images : Images
    patterns : sequence of str
        Regular expressions of the user (``--group``), tried in order before all others: the first capture group is
        the group, searched in the path below `Images.root`.
    column : str
        Name of a column that is a group (``--group column=…``), before all patterns.

    Raises
    ------
    UsageError
        A pattern is invalid, too large, or has no capture group; no list has such a column.
    """

    def __init__(self, images: Images, patterns: Sequence[str] = (), column: str = "") -> None:
        self.images = images
        self.user_patterns = tuple(
            _Pattern(f"--group {text}", ("group",), require_group(text, "--group")) for text in patterns
        )
        self.column = _column(column)
        self._by_pattern: dict[tuple[int, _Pattern], tuple[Int32s, pa.LargeStringArray]] = {}
        self._by_original: dict[int, tuple[Int32s, pa.LargeStringArray, pa.LargeStringArray]] = {}
        present = sorted({name for listed in images.lists for name in listed.columns})
        if column and self.column not in set(map(_column, present)):
            raise UsageError(
                "Unknown column",
                where=f"--group column={column[:80]}",
                expected=", ".join(present)[:400] or "a table with columns beside its images",
            )

    def compare(self, a: int, b: int, *, people_only: bool = False, sure_only: bool = False) -> GroupResult:
        """Return whether two lists, given by position, share groups of images.

        Parameters
        ----------
        sure_only : bool
            Whether to leave out patterns whose groups may be classes: lists of a manifest have no labels to check that.
        people_only : bool
            Whether to compare patients and subjects only, as between parts of a benchmark.
        """
        of = len(self.images.members[a]), len(self.images.members[b])
        tried, why = list[str](), ""
        if not people_only and not self.user_patterns and (copies := self._copies(a, b)) is not None:
            return copies
        for pattern, sides in self._groupings(a, b, people_only=people_only):
            if sure_only and not pattern.sure:
                continue
            fitting = sides.fitting
            of_column = _column(pattern.name.removeprefix("the column ")) == (self.column or None)
            forced = pattern in self.user_patterns or of_column
            described = f"{pattern.name} (fits {fitting[0]:,} of {of[0]:,} and {fitting[1]:,} of {of[1]:,} lines)"
            fits = all(fitting) if forced else all(n >= SHARE * m > 0 for n, m in zip(fitting, of, strict=True))
            if not fits:
                tried.append(described if any(fitting) or forced else pattern.name)
                continue
            if pattern.is_view:
                sides = self._without_common(sides, (a, b))
            result = _judged(pattern, sides)
            doubt = "" if forced else self._doubt(pattern, sides, result, (a, b))
            if not doubt:
                return replace(result, tried=tuple(text for text in tried if text.startswith("--group")))
            tried.append(f"{pattern.name} ({doubt})")
            why = why or doubt
        return GroupResult("undecidable", of=of, why=why, tried=tuple(dict.fromkeys(tried)))

    def _groupings(self, a: int, b: int, *, people_only: bool) -> Iterator[tuple[_Pattern, _Sides]]:
        """Yield columns and patterns in the order of trial, with the groups of two lists."""
        columns = [{_column(name): (name, col) for name, col in self.images.lists[at].columns.items()} for at in (a, b)]
        for name in ([self.column] * bool(self.column)) + ([] if people_only else list(GROUP_COLUMNS)):
            if name in columns[0] and name in columns[1]:
                sides = [(side[name][1].of, text_array(side[name][1].values)) for side in columns]
                written = f"the column {columns[0][name][0]}"
                yield _Pattern(written, (name.removesuffix("_id"),), ""), _joined(*sides)
        for pattern in (*self.user_patterns, *(_PEOPLE if people_only else _PATTERNS)):
            yield pattern, _joined(self._groups_of(a, pattern), self._groups_of(b, pattern))

    def _groups_of(self, at: int, pattern: _Pattern) -> tuple[Int32s, pa.LargeStringArray]:
        """Return the group of each line of a list as a position in the names of groups, -1 for none."""
        from pyarrow import compute

        if (at, pattern) not in self._by_pattern:
            unique = self.images.uniques[at]
            ids = int(np.searchsorted(unique, self.images.n_ids))
            rows = unique[ids:]
            codes, names = np.full(len(self.images.members[at]), -1, np.int32), text_array(())
            # Patterns that do not fit a sample of the lines are rejected; those of the user are applied to all lines.
            few = rows if pattern in self.user_patterns else rows[:: max(len(rows) // _SAMPLE, 1)]
            hits, has_root = match_mask(self._paths(few), pattern.regex), False
            if pattern in self.user_patterns and self.images.root:
                root_hits = match_mask(self._paths(few, whole=True), pattern.regex)
                has_root = root_hits.sum() > hits.sum()
                hits = root_hits if has_root else hits
            if len(rows) and 2 * hits.sum() >= len(few) * (pattern not in self.user_patterns) and hits.any():
                texts = self._paths(rows, whole=has_root)
                fits = match_mask(texts, pattern.regex)
                texts = texts.filter(arrow_of(fits))
                if pattern.in_folders:
                    texts = compute.replace_substring_regex(texts, _ROLE_FOLDER, r"\1")
                captures = 1 if pattern in self.user_patterns else re.compile(pattern.regex).groups
                of_images = np.full(len(unique), -1, np.int32)
                of_images[ids + np.flatnonzero(fits)], names = encoded(captured(texts, pattern.regex, captures))
                codes = of_images[np.searchsorted(unique, self.images.members[at])]
            self._by_pattern[at, pattern] = codes, names
        return self._by_pattern[at, pattern]

    def _paths(self, rows: Int32s, *, whole: bool = False) -> pa.LargeStringArray:
        """Return the paths of some images below the root, or whole."""
        from pyarrow import compute

        texts = self.images.texts.take(arrow_of(rows))
        return compute.binary_replace_slice(texts, 0, 0, f"{self.images.root}/") if whole else texts

    def _originals(self, at: int) -> tuple[Int32s, pa.LargeStringArray, pa.LargeStringArray]:
        """Return the original of each line of a list by its name, the originals, and the originals with a copy."""
        from pyarrow import compute

        if at not in self._by_original:
            unique = self.images.uniques[at]
            texts = self._paths(unique)
            names = compute.replace_substring_regex(texts, f"(?:{IMAGE_SUFFIX})|{_COPY}", r"\1")
            names = compute.replace_substring_regex(names, _ROLE_FOLDER, r"\1")
            codes, originals = encoded(names)
            copied = names.filter(compute.match_substring_regex(texts, _COPY)).unique()
            lines = codes[np.searchsorted(unique, self.images.members[at])].astype(np.int32)
            self._by_original[at] = lines, originals, copied
        return self._by_original[at]

    @cached_property
    def _has_copies(self) -> bool:
        return bool(match_mask(self.images.texts, _COPY).any())

    def _copies(self, a: int, b: int) -> GroupResult | None:
        """Return the groups of images made from one photo, by their names; None if the lists share no such group."""
        import pyarrow as pa
        from pyarrow import compute

        if not self._has_copies:
            return None
        left, right = self._originals(a), self._originals(b)
        copied = pa.concat_arrays([left[2], right[2]])
        if not len(copied):
            return None
        sides = _joined(left[:2], right[:2])
        is_copied = values_of(compute.is_in(sides.names, copied))
        here, there = (np.where(is_copied[codes], codes, -1).astype(np.int32) for codes in sides.codes)
        sides = self._without_common(_Sides((here, there), sides.names), (a, b))
        pattern = _Pattern("the name of the original (aug, copy, hflip)", ("source photo",), _COPY)
        result = replace(_judged(pattern, sides), without=(0, 0))
        # A name of many images is a word of theirs, as in carbon_copy_12; aug after a year is a month.
        most = max((sum(example.lines) for example in result.examples), default=0)
        if most > max(LEAST_GROUPS, LARGEST_GROUP * sum(result.of)) or all(
            _YEAR.search(e.name) for e in result.examples
        ):
            return None
        return None if self._numbered_anew(sides, (a, b)) else result

    def _without_common(self, sides: _Sides, pair: tuple[int, int]) -> _Sides:
        """Return groups without those that two lists share only by equal paths, which are the same images."""
        common = self.images.in_both(*pair)[0]
        differ = [
            codes[(codes >= 0) & ~np.isin(self.images.members[at], common)]
            for at, codes in zip(pair, sides.codes, strict=True)
        ]
        remaining = distinct(np.concatenate(differ))
        here, there = (np.where(np.isin(codes, remaining), codes, -1).astype(np.int32) for codes in sides.codes)
        return _Sides((here, there), sides.names)

    def _doubt(self, pattern: _Pattern, sides: _Sides, result: GroupResult, pair: tuple[int, int]) -> str:
        """Return the reason why the groups of a pattern are inconclusive; empty if they decide."""
        counts = np.bincount(np.concatenate([codes[codes >= 0] for codes in sides.codes]), minlength=len(sides.names))
        present = int((counts > 0).sum())
        if present < 2:
            near, _ = self._neighbours(pair, sides)
            if near >= _NEAR and pattern.name == _FRAMES:
                return ""
            next_to = f": {near:.0%} of the numbers of one list come next to one of the other, as frames of a video do"
            return "one group holds all lines" + next_to * (near >= _NEAR)
        if pattern.is_view and not result.both:
            return "no companion of an image is in the other list"
        # Hospitals, age groups and topics are attributes of images, which any draw has on both sides.
        is_attribute = not pattern.regex and present < LEAST_GROUPS and 2 * result.both > present
        if is_attribute and not match_mask(sides.names.filter(arrow_of(counts > 0)), r"\d").any():
            return f"the values of {pattern.name} may be classes: {result.both} of {present} are on both sides"
        # The values of a column are classes if they are the labels, as of speakers to be recognised.
        most = _GROUPS_A_LABEL if pattern.regex else 1
        follows = [self._follow_labels(at, codes, most) for at, codes in zip(pair, sides.codes, strict=True)]
        if not (pattern.sure and pattern.regex) and True in follows and False not in follows:
            return f"each {pattern.nouns[0]} holds one label"
        if pattern.in_folders:
            folders = [_folders(sides.names.take(arrow_of(distinct(codes[codes >= 0])))) for codes in sides.codes]
            if folders[0].isdisjoint(folders[1]):
                return "the folders of the two lists differ"
        if result.both and pattern.in_folders and self._numbered_anew(sides, pair):
            return "names are numbered from scratch below the folders of train and test"
        if pattern.name == "folder" and self._are_classes(sides):
            return "the folders may be classes, by their names"
        if not pattern.sure and 2 * present > counts.sum():
            return f"{present:,} groups of {counts.sum():,} lines: almost none holds two"
        if not pattern.few and (present < LEAST_GROUPS or counts.max() > LARGEST_GROUP * counts.sum()):
            near, is_sparse = self._neighbours(pair, sides)
            if near >= _NEAR and is_sparse:
                return f"neighbouring frames may be on both sides: {near:.0%} of one list come next to one of the other"
            return f"the groups may be classes: {present:,}, the largest of {counts.max():,} of {counts.sum():,} lines"
        if not pattern.few and False not in follows and 2 * result.both > present:
            return f"the groups may be classes: {result.both:,} of {present:,} are on both sides"
        return ""

    def _are_classes(self, sides: _Sides) -> bool:
        """Return whether most folders have names that classes have."""
        from pyarrow import compute

        last = compute.replace_substring_regex(sides.names, "^.*/", "")
        return 2 * int(match_mask(last, _CLASS_FOLDER).sum()) > len(last)

    @cached_property
    def _numbers(self) -> Int64s:
        """The last number in the name of each image, -1 for no number or a very long one."""
        from pyarrow import compute

        last = self.images.texts
        for pattern in (IMAGE_SUFFIX, r"\D+$", r"^(?s:.*\D)"):
            last = compute.replace_substring_regex(last, pattern, "")
        length, numbers = values_of(compute.utf8_length(last)), np.full(len(last), -1, np.int64)
        fits = (length > 0) & (length < _DIGITS)
        numbers[fits] = values_of(last.filter(arrow_of(fits)).cast("int64"))
        return numbers

    def _neighbours(self, pair: tuple[int, int], sides: _Sides) -> tuple[float, bool]:
        """Return the share of the smaller list next to a number of the other in a group, and whether numbers have gaps.

        Without gaps, any two draws have numbers next to each other.
        """
        frames = list[Int64s]()
        for at, codes in zip(pair, sides.codes, strict=True):
            number, of_group = self._numbers[self.images.uniques[at]], codes[self.images.first_rows[at]]
            fits = (number >= 0) & (of_group >= 0)
            frames.append(distinct((of_group[fits].astype(np.int64) << _GROUP_BITS) + number[fits]))
        few, many = sorted(frames, key=len)
        if len(few) < _FEWEST_FRAMES:
            return 0.0, False
        both = distinct(np.concatenate(frames))
        ends = np.flatnonzero(np.diff(both >> _GROUP_BITS, prepend=-1, append=-1))
        span = (both[ends[1:] - 1] - both[ends[:-1]] + 1).sum()
        near = np.isin(few - 1, many, assume_unique=True) | np.isin(few + 1, many, assume_unique=True)
        return float(near.mean()), bool(2 * len(both) <= span)

    def _numbered_anew(self, sides: _Sides, pair: tuple[int, int]) -> bool:
        """Return whether names of other images in shared groups are equal below the folders train and test."""
        from pyarrow import compute

        here, there = (distinct(codes[codes >= 0]) for codes in sides.codes)
        shared = np.intersect1d(here, there, assume_unique=True)
        rows = [
            distinct(self.images.members[at][np.isin(codes, shared)])
            for at, codes in zip(pair, sides.codes, strict=True)
        ]
        texts = [
            compute.replace_substring_regex(self._paths(np.setdiff1d(rows_here, other)), _ROLE_FOLDER, r"\1")
            for rows_here, other in (rows, rows[::-1])
        ]
        return all(map(len, texts)) and bool(10 * compute.sum(compute.is_in(*texts)).as_py() > min(map(len, texts)))

    def _follow_labels(self, at: int, codes: Int32s, most: int) -> bool | None:
        """Return whether groups of a list hold one label each, and labels at most some groups; None without labels."""
        listed = self.images.lists[at]
        labels = listed.labels if listed.labels is not None else listed.group_of
        if labels is None:
            return None
        rows = (codes >= 0) & (labels != NO_LABEL)
        values, groups = len(distinct(labels[rows])), len(distinct(codes[rows]))
        pairs, counts = np.unique((codes[rows].astype(np.int64) << 32) + labels[rows] - NO_LABEL, return_counts=True)
        usual = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
        np.maximum.at(usual, pairs >> 32, counts)
        # Some labels may be wrong.
        follows = usual.sum() >= _FOLLOWING * rows.sum() and groups <= most * values
        return bool(follows) if values > 1 else None


def _column(name: str) -> str:
    """Return the normalised name of a column."""
    short = re.sub(r"[_ -]?id$", "", name.lower())
    return short if short in GROUP_COLUMNS else name.lower()


def _folders(names: pa.LargeStringArray) -> set[str]:
    """Return the folders of groups with masked numbers, as each slide may have a folder."""
    from pyarrow import compute

    folders = compute.replace_substring_regex(names, r"(?s)(?:^|/)[^/]*$", "").unique()
    return set(compute.replace_substring_regex(folders, r"\p{Nd}+", "0").to_pylist())


def _joined(a: tuple[Int32s, pa.LargeStringArray], b: tuple[Int32s, pa.LargeStringArray]) -> _Sides:
    """Return the groups of two lists with common names."""
    import pyarrow as pa

    if not len(a[1]) and not len(b[1]):
        return _Sides((a[0], b[0]), a[1])
    numbers, names = encoded(pa.concat_arrays([a[1], b[1]]))
    # The last entry maps -1 to itself.
    codes = np.append(numbers, -1).astype(np.int32)
    right = np.where(b[0] < 0, -1, b[0] + len(a[1]))
    return _Sides((codes[a[0]], codes[right]), names)


def _judged(pattern: _Pattern, sides: _Sides) -> GroupResult:
    counts = [np.bincount(codes[codes >= 0], minlength=len(sides.names)) for codes in sides.codes]
    both = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    names = sides.names.take(arrow_of(both)).to_pylist()
    order = sorted(range(len(both)), key=lambda row: (-int(counts[0][both[row]] + counts[1][both[row]]), names[row]))
    examples = [GroupExample(names[row], tuple(int(count[both[row]]) for count in counts)) for row in order[:_SHOWN]]  # type: ignore[arg-type]
    text = " ".join(sides.names.slice(0, 1).to_pylist()).lower()
    return GroupResult(
        "shared" if len(both) else "disjoint",
        pattern=pattern.name,
        noun=next((noun for noun in pattern.nouns if noun in text), pattern.nouns[0]),
        both=len(both),
        groups=(int((counts[0] > 0).sum()), int((counts[1] > 0).sum())),
        lines=(int(counts[0][both].sum()), int(counts[1][both].sum())),
        of=(len(sides.codes[0]), len(sides.codes[1])),
        without=(len(sides.codes[0]) - sides.fitting[0], len(sides.codes[1]) - sides.fitting[1]),
        examples=tuple(examples),
        is_view=pattern.is_view,
        rows=tuple(np.flatnonzero(np.isin(codes, both)) for codes in sides.codes),
    )
