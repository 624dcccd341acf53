"""The rule ``split``: one source in disjoint parts, by hash rank; groups stay whole, classes may keep their shares."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from curation.benchmarks.parts import Part, Selection, hash_rank, make_part, manifest_of_file
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, class_entries, decimal_text, stated_in
from curation.benchmarks.rules.class_parts import quotas
from curation.benchmarks.rules.starting import StartOptions, beginning, quoted, source_tables
from curation.core.columns import distinct, text_array
from curation.core.errors import CurationWarning, ProtocolError, UsageError
from curation.core.patterns import captured, matches, require_group
from curation.core.wording import counted, examples
from curation.manifest.header import ClassEntry, LabelView, PartName, PartRole
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.image_columns import image_column, image_paths
from curation.sources.list_roles import read_role
from curation.sources.source import Int64s, Source

_ORDER: tuple[PartRole, ...] = ("train", "val", "test")
_NO_PART = -1
_SMALLEST, _DIGITS = Decimal("0.000001"), 12
Ids = dict[PartName, tuple[str, ...]]


class SplitParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    shares : dict of str to Decimal
        Share of the images of each part; they sum to 1. A name such as ``train`` or ``test`` says the role of a part.
    salt : str
        Of the hash rank; by default the name of the benchmark.
    group : str
        Images that stay together: a column of the table or a key of the image records; or a regular expression with
        one group, in parentheses, that is searched for in the paths of the images.
    stratify : bool
        Whether each class keeps its share in each part: images are cut by their rarest class.
    keep : str or dict of str to tuple of str
        An earlier manifest whose images stay in their parts: its name, or its folder. Or its ids by part.
    joined : tuple of tuple of str
        Ids of images that stay together, such as near-duplicates.
    fixed : dict of str to tuple of str
        Ids of images that are in a part whatever the shares say. A build with `keep` writes those that would move.
    """

    shares: dict[PartName, Decimal]
    salt: str = ""
    group: str = ""
    stratify: bool = False
    keep: str | Ids = {}
    joined: tuple[tuple[str, ...], ...] = ()
    fixed: Ids = {}

    def __post_init__(self) -> None:
        """Refuse shares that leave images out or use them twice."""
        usable = (_SMALLEST <= share < 1 and len(share.as_tuple().digits) <= _DIGITS for share in self.shares.values())
        if len(self.shares) < 2 or not all(share.is_finite() for share in self.shares.values()) or not all(usable):
            raise ValueError(f"shares are two or more numbers from {_SMALLEST} to 1, of at most {_DIGITS} digits")
        if (total := sum(self.shares.values())) != 1:
            raise ValueError(f"the shares sum to {decimal_text(Decimal(total))}, not to 1")

    @property
    def ordered(self) -> dict[str, Fraction]:
        """The shares by part: training parts, then validation, then tests, each by name."""
        names = sorted(self.shares, key=lambda name: (_ORDER.index(role_of(name)), name))
        return {name: Fraction(self.shares[name]) for name in names}


PARAMETERS = SplitParameters
USUAL_SOURCES = ("images",)
PARTS = (("PART", "a share of the images of the source"),)
PAPER = None


class Units(NamedTuple):
    """What stays together: single images, or groups of images.

    Attributes
    ----------
    names : sequence of str, length u
        By whose hash the units are ordered.
    of : ndarray of int64, shape (n,)
        The unit of each image.
    size : ndarray of int64, shape (u,)
        Images of each unit.
    """

    names: Sequence[str]
    of: Int64s
    size: Int64s


def role_of(name: str) -> PartRole:
    """Return the role that the name of a part says; ``train`` where it says none."""
    roles = read_role(name).roles
    return roles[0] if roles else "train"


def resolved(settings: SplitParameters, folder: Any) -> SplitParameters:
    """Return the parameters of a user's file with the ids of the earlier manifest in place of its name."""
    if not isinstance(settings.keep, str) or not settings.keep:
        return settings
    path = folder / settings.keep
    return msgspec.structs.replace(settings, keep=kept_ids(load_manifest(path if path.exists() else settings.keep)))


def kept_ids(manifest: Manifest) -> Ids:
    """Return the ids of the parts of a manifest."""
    return {name: manifest.ids(name) for name in manifest.parts}


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a benchmark file of this rule.

    Parameters
    ----------
    sources : mapping of str to Source
        One.
    parameters : mapping
        ``file``: the benchmark file as `read_benchmark_file` returns it.

    Raises
    ------
    ProtocolError
        A part gets no image, or the groups contradict the earlier split.
    """
    benchmark = stated_in(parameters["file"])
    settings = benchmark.parameters_as(SplitParameters)
    if len(sources) != 1:
        message, expected = "The rule split needs one source", "one table [sources.NAME]"
        raise ProtocolError(message, where="[sources]", expected=expected, found=", ".join(sources) or "none")
    ((name, source),) = sources.items()
    ids, shares = source.image_ids.tolist(), settings.ordered
    units = units_of(ids, _groups_in(source, settings.group), settings.joined)
    stratum = _of_units(units, rarest_class(source)) if settings.stratify else np.zeros(len(units.size), np.int64)
    keep = {} if isinstance(settings.keep, str) else settings.keep
    fixed = _by_unit(units, ids, shares, settings.fixed, "fixed")
    kept = _by_unit(units, ids, shares, keep, "keep")
    salt = settings.salt or benchmark.name
    part_of = plain = assign(units, shares, salt=salt, stratum=stratum)
    if (kept != _NO_PART).any():
        part_of = assign(units, shares, salt=salt, stratum=stratum, kept=kept)
    part_of = np.where(fixed == _NO_PART, part_of, fixed)
    _warn_of_large_groups(units, shares)
    if keep:
        # What the manifest states of the earlier split: the images that the shares alone would put elsewhere.
        moved = (part_of != plain)[units.of]
        place = part_of[units.of]
        pinned = {part: tuple(sorted(ids[row] for row in np.flatnonzero(moved & (place == number)).tolist()))
                  for number, part in enumerate(shares)}  # fmt: skip
        rest = {key: value for key, value in benchmark.parameters.items() if key not in ("keep", "fixed")}
        fixed_ids = {part: listed for part, listed in pinned.items() if listed}
        rest |= {"fixed": fixed_ids} if fixed_ids else {}
        text = json.dumps(json.loads(parameters["file"]) | {"parameters": rest}, sort_keys=True, separators=(",", ":"))
        parameters = {**parameters, "file": text}
    classes = _classes(benchmark, source)
    words = "Images in the order of sha256(salt + id)"
    words += ", groups whole" * (len(units.size) < len(ids)) + ", each class by its share" * settings.stratify
    made: list[Part] = []
    for number, part in enumerate(shares):
        rows = np.flatnonzero((part_of == number)[units.of])
        if not len(rows):
            raise ProtocolError(
                f"Part {part} gets no image",
                where="[parameters] shares",
                expected=f"at least one group of images for each of {', '.join(shares)}",
                found=f"{counted(len(ids), 'image')} in {counted(len(units.size), 'group')}",
                hint="fewer parts, a larger share, or smaller groups",
            )
        view = benchmark.views.get(part, LabelView())
        text = f"{words}: a share of {decimal_text(settings.shares[part])}."
        made.append(make_part(part, role_of(part), Selection(name, source, rows), classes, view=view, rule=text))
    return manifest_of_file(
        benchmark, made, sources, classes, parameters, taxonomy="closed-set", algorithm_version=1, after=PAPER
    )


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of a file to begin with: 70 % for training, 10 % for validation, 20 % for the test."""
    if len(sources) != 1:
        message = "The rule split needs one source"
        raise UsageError(message, expected="--source images=PATH", found=", ".join(sources))
    return [
        *beginning("split", options.name),
        *source_tables(sources, options.name),
        "",
        "[parameters]",
        "# Share of the images of each part; train, val or test in its name says its role.",
        "shares = { train = 0.7, val = 0.1, test = 0.2 }",
        "# Images that stay together: a column, or a regular expression with a group such as '(patient\\d+)'.",
        f"group = {quoted('')}",
        "# Whether each class keeps its share in each part.",
        f"stratify = {str(len(next(iter(sources.values())).categories) > 0).lower()}",
    ]


def units_of(ids: Sequence[str], groups: Sequence[str] | None, joined: Sequence[Sequence[str]] = ()) -> Units:
    """Return the images of each group, and those that are joined, as units; other images are units of their own.

    Parameters
    ----------
    groups : sequence of str, optional
        The group of each image, ``""`` for none.
    joined : sequence of sequence of str
        Ids of images that stay together, and with them their groups.
    """
    if groups is None and not joined:
        return Units(ids, np.arange(len(ids)), np.ones(len(ids), np.int64))
    names = list(ids) if groups is None else [group or image for group, image in zip(groups, ids, strict=True)]
    if joined:
        names = _with_joined(ids, names, joined)
    number: dict[str, int] = {}
    of = np.fromiter((number.setdefault(name, len(number)) for name in names), np.int64, len(names))
    return Units(list(number), of, np.bincount(of))


def _with_joined(ids: Sequence[str], names: list[str], joined: Sequence[Sequence[str]]) -> list[str]:
    """Return the unit of each image after the units of joined images became one: the first of their names."""
    row_of = {image: row for row, image in enumerate(ids)}
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while name in above:
            name = above[name]
        return name

    for images in joined:
        tops = sorted({top(names[row_of[image]]) for image in images if image in row_of})
        above |= dict.fromkeys(tops[1:], tops[0]) if tops else {}
    return [top(name) for name in names]


def assign(
    units: Units, shares: Mapping[str, Fraction], *, salt: str, stratum: Int64s, kept: Int64s | None = None
) -> Int64s:
    """Return the part of each unit: of every stratum, each part gets its share in the order of the hash rank.

    A unit is in the part in which its middle lies, so that a part differs from its share by less than one unit. Units
    that are larger than the smallest part come first, the largest before others. What rounding gives to a part in
    one stratum it loses in the next.

    Parameters
    ----------
    stratum : ndarray of int64, shape (u,)
    kept : ndarray of int64, shape (u,), optional
        Units that have a part already; others fill what these leave. -1 for none.

    Examples
    --------
    >>> shares = {"train": Fraction(3, 4), "test": Fraction(1, 4)}
    >>> units = units_of(["x:1", "x:2", "x:3", "x:4"], None)
    >>> assign(units, shares, salt="a", stratum=np.zeros(4, np.int64)).tolist()
    [0, 1, 0, 0]
    """
    part_of = np.full(len(units.size), _NO_PART) if kept is None else kept.copy()
    rank = hash_rank(units.names, salt)
    rank = rank[np.argsort(stratum[rank], kind="stable")]
    ends = np.flatnonzero(np.diff(stratum[rank])) + 1
    over = [Fraction(0)] * len(shares)
    for members in np.split(rank, ends) if len(rank) else ():
        size, total = units.size[members], int(units.size[members].sum())
        room = np.array(quotas(total, list(shares.values()), over))
        has_part = part_of[members] != _NO_PART
        if has_part.any():
            np.subtract.at(room, part_of[members][has_part], size[has_part])
            room = room.clip(0)
            if (left := int(size[~has_part].sum())) != room.sum():
                parts = [Fraction(int(n), int(room.sum())) for n in room] if room.sum() else list(shares.values())
                room = np.array(quotas(left, parts))
        free, size = members[~has_part], size[~has_part]
        large = size > min(room[room > 0], default=0)
        order = np.argsort(np.where(large, -size, 0), kind="stable")
        free, size = free[order], size[order]
        # Middles and bounds are doubled, to be whole numbers.
        middles = 2 * np.cumsum(size) - size
        part_of[free] = np.searchsorted(2 * np.cumsum(room), middles, side="right").clip(max=len(shares) - 1)
        obtained = np.zeros(len(shares), np.int64)
        np.add.at(obtained, part_of[members], units.size[members])
        over = [
            before + share * total - int(n) for before, share, n in zip(over, shares.values(), obtained, strict=True)
        ]
    return part_of


def rarest_class(source: Source) -> Int64s:
    """Return for each image the place of its rarest class, 0 for the rarest of all; images without any are last."""
    image, category = source.class_pairs()
    width = max(len(source.categories), 1)
    pairs = distinct(image.astype(np.int64) * width + category)
    counts = np.bincount(pairs % width, minlength=width)
    names = np.array(source.categories.names or ("",), np.str_)
    place = np.empty(width, np.int64)
    place[np.lexsort((names, counts))] = np.arange(width)
    rarest = np.full(len(source.images), width)
    np.minimum.at(rarest, pairs // width, place[pairs % width])
    return rarest


def _of_units(units: Units, stratum: Int64s) -> Int64s:
    """Return the smallest stratum of the images of each unit."""
    smallest = np.full(len(units.size), stratum.max(initial=0))
    np.minimum.at(smallest, units.of, stratum)
    return smallest


def _groups_in(source: Source, group: str) -> list[str] | None:
    """Return the group of each image that a column or a pattern states; images without any are counted in a warning."""
    if not group:
        return None
    where = "--group"
    if "(" not in group or group.startswith("column="):
        groups = image_column(source, group.removeprefix("column="))
    else:
        pattern, paths = require_group(group, where), text_array(image_paths(source))
        fits = matches(paths, pattern)
        groups = [
            text if fit else "" for text, fit in zip(captured(paths, pattern).to_pylist(), fits.tolist(), strict=True)
        ]
        if not any(groups):
            raise UsageError(
                "The pattern matches no path",
                where=f"{where} {group[:80]}",
                expected="a pattern that is found in the paths of the images",
                found=examples(paths.slice(0, 3).to_pylist()),
            )
    alone = [image for image, name in zip(source.image_ids.tolist(), groups, strict=True) if not name]
    if alone:
        text = f"{counted(len(alone), 'image')} without a group stay alone: {examples(alone)}"
        warnings.warn(text, CurationWarning, stacklevel=2)
    return groups


def _by_unit(
    units: Units, ids: Sequence[str], shares: Mapping[str, Fraction], ids_by_part: Ids, key: Literal["keep", "fixed"]
) -> Int64s:
    """Return the part of each unit by the ids of some of its images, -1 where none is listed."""
    part_of = np.full(len(units.size), _NO_PART)
    if unknown := [name for name in ids_by_part if name not in shares]:
        raise ProtocolError(
            "The earlier split has a part that this one lacks" if key == "keep" else "There is no such part",
            where=f"[parameters] {key}: {unknown[0]}",
            expected=f"the parts {', '.join(shares)}",
            hint=f"give {unknown[0]} a share, or split without --keep",
        )
    row_of = {image: row for row, image in enumerate(ids)} if ids_by_part else {}
    for number, part in enumerate(shares):
        rows = [row_of[image] for image in ids_by_part.get(part, ()) if image in row_of]
        numbers = units.of[rows]
        if (divided := (part_of[numbers] != _NO_PART) & (part_of[numbers] != number)).any():
            unit = int(numbers[np.flatnonzero(divided)[0]])
            other = list(shares)[part_of[unit]]
            raise ProtocolError(
                f"A group has images in two parts of {'the earlier split' if key == 'keep' else 'fixed'}",
                where=f"[parameters] {key}: group {units.names[unit]}"[:200],
                expected="all images of a group in one part",
                found=f"{ids[rows[int(np.flatnonzero(divided)[0])]]} in {part}, others in {other}",
                hint="split without --keep, or without the groups that the earlier split did not know",
            )
        part_of[numbers] = number
    if ids_by_part and not (part_of != _NO_PART).any():
        raise ProtocolError(
            "The earlier split holds no image of this source",
            where=f"[parameters] {key}",
            expected=f"ids such as {examples(ids)}",
            found=examples([image for listed in ids_by_part.values() for image in listed[:2]]),
            hint="the same --name, or the same NAME= before the source, gives the images the same ids",
        )
    return part_of


def _warn_of_large_groups(units: Units, shares: Mapping[str, Fraction]) -> None:
    smallest = min(shares, key=shares.__getitem__)
    room = int(shares[smallest] * len(units.of))
    large = np.flatnonzero((units.size > room) & (units.size > 1))
    if len(large):
        groups = [f"{units.names[unit]} ({units.size[unit]:,} images)" for unit in large[:4].tolist()]
        verb = "group is" if len(large) == 1 else "groups are"
        text = f"{len(large):,} {verb} larger than the share of part {smallest}, {room:,} images"
        warnings.warn(f"{text}: {examples(groups)}", CurationWarning, stacklevel=2)


def _classes(benchmark: BenchmarkFile, source: Source) -> tuple[ClassEntry, ...]:
    """Return the classes of the file, others unknown; by default every class of the source as a known one."""
    names = source.categories.names
    if benchmark.classes.known:
        return class_entries(benchmark, names)
    return tuple(ClassEntry(name=name, role="known", index=place) for place, name in enumerate(names, start=1))
