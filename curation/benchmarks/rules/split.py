"""`split` and the rule of the same name: divide one source into disjoint parts by hash rank.

Groups are never divided, and each class can have the same share in every part.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from curation.benchmarks.building import remembering, require_own_name
from curation.benchmarks.parts import Part, Selection, hash_rank, make_part, manifest_of_file
from curation.benchmarks.rules.benchmark_file import (
    BenchmarkFile,
    SourceTable,
    class_entries,
    decimal_text,
    parameter_text,
    stated_in,
)
from curation.benchmarks.rules.class_parts import quotas
from curation.benchmarks.rules.starting import StartOptions, beginning, namespace_word, quoted, source_tables
from curation.core.arguments import checked
from curation.core.columns import distinct, encoded, text_array
from curation.core.errors import CurationError, CurationWarning, MissingFileError, ProtocolError, UsageError
from curation.core.patterns import captured, match_mask, require_group
from curation.core.wording import counted, examples, slug
from curation.manifest.header import NAME, ClassEntry, LabelView, PartName, PartRole
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.image_columns import image_column, image_paths
from curation.sources.list_roles import read_role
from curation.sources.opening import open_slots
from curation.sources.photos import file_names, find_photos, photos_beside, without_folders
from curation.sources.source import Int64s, Source
from curation.sources.source_specs import BadBoxes, Reading, SourceSlot

_ORDER: tuple[PartRole, ...] = ("train", "val", "test")
_NO_PART = -1
_SMALLEST, _DIGITS = Decimal("0.000001"), 12
Ids = dict[PartName, tuple[str, ...]]


class SplitParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    shares : dict of str to Decimal
        Share of the images of each part; they sum to 1. A name such as ``train`` or ``test`` states the role of a part.
    salt : str
        Salt of the hash rank; by default the name of the benchmark.
    group : str
        Groups of images that stay together: a column of the table, a key of the image records, or a regular expression
        with one group in parentheses that is searched for in the paths of the images.
    stratify : bool
        Whether each class keeps its share in each part: images are cut by their rarest class.
    keep : str or dict of str to tuple of str
        An earlier manifest whose images stay in their parts: its name, its folder, or its ids by part.
    joined : tuple of tuple of str
        Ids of images that stay together, such as near-duplicates.
    fixed : dict of str to tuple of str
        Ids of images by part, regardless of the shares. A build with `keep` records here the images that would move.
    """

    shares: dict[PartName, Decimal]
    salt: str = ""
    group: str = ""
    stratify: bool = False
    keep: str | Ids = {}
    joined: tuple[tuple[str, ...], ...] = ()
    fixed: Ids = {}

    def __post_init__(self) -> None:
        """Raise `ValueError` for shares that leave images out or use them twice."""
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
    """Single images, or groups of images that stay together.

    Attributes
    ----------
    names : sequence of str, length u
        Names whose hash orders the units.
    unit_of_image : ndarray of int64, shape (n,)
    size : ndarray of int64, shape (u,)
        Number of images of each unit.
    """

    names: Sequence[str]
    unit_of_image: Int64s
    size: Int64s


def role_of(name: str) -> PartRole:
    """Return the role in the name of a part, by default ``train``."""
    roles = read_role(name).roles
    return roles[0] if roles else "train"


def resolved(settings: SplitParameters, folder: Any) -> SplitParameters:
    """Return the parameters of a user file with the name of the earlier manifest replaced by its ids."""
    if not isinstance(settings.keep, str) or not settings.keep:
        return settings
    path = folder / settings.keep
    return msgspec.structs.replace(settings, keep=ids_of_parts(load_manifest(path if path.exists() else settings.keep)))


def ids_of_parts(manifest: Manifest) -> Ids:
    """Return the ids of the parts of a manifest."""
    return {name: manifest.ids(name) for name in manifest.parts}


@checked
def split(
    source: Annotated[Mapping[str, Annotated[Any, Path]] | Path, "[NAME[@PART]=]PATH"],
    parts: Annotated[Mapping[str, str | float] | str, "--parts NAME=SHARE,..."],
    *,
    group: Annotated[str, "COLUMN|REGEX"] = "",
    stratify: bool = False,
    keep: Annotated[str | Path | Manifest | None, "MANIFEST"] = None,
    near_duplicates: Annotated[Path | None, "PHOTOS"] = None,
    name: str = "",
    salt: str = "",
    bad_boxes: BadBoxes = "error",
) -> Manifest:
    """Return a manifest that divides one source into disjoint parts.

    Images are assigned in the order of a hash of their ids, without a seed. The order of the file does not matter.

    Parameters
    ----------
    source
        your data: COCO JSON, a VOC or YOLO folder, a table, or a list of ids (.txt); NAME= before it is the dataset,
        the first word of the image ids, @PART which part of a folder it is
    parts
        the share of each part; they sum to 1, and train, val or test in its name states its role
    group
        images that stay together, such as those of a patient or a video: a column of the table, a key of COCO's image
        records, or a regular expression with one group that is searched for in the paths of the images
    stratify
        each class keeps its share in each part
    keep
        an earlier split whose images stay in their parts
    near_duplicates
        folder of the photos: those that look alike stay together
    name
        name of the manifest (default: my/ and the name of the file)
    salt
        other words give another split (default: the name)
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count

    Raises
    ------
    UsageError, ProtocolError
        The shares do not sum to 1, the column does not exist, or a part gets no image.

    Examples
    --------
    >>> import curation
    >>> images = [{"id": n, "file_name": f"{n}.jpg", "width": 9, "height": 9, "patient": n // 3} for n in range(9)]
    >>> shapes = {"images": images, "annotations": [], "categories": []}
    >>> made = curation.split({"shapes": shapes}, "train=0.7,test=0.3")
    >>> {part: len(made.ids(part)) for part in made.parts}
    {'train': 6, 'test': 3}
    """
    by_key = {"": source} if isinstance(source, Path) else dict(source)
    if len(by_key) != 1:
        raise UsageError("`split` takes one source", expected="[NAME[@PART]=]PATH", found=", ".join(by_key))
    ((key, annotations),) = by_key.items()
    dataset, _, part = key.partition("@")
    name = name or f"my/{_word(annotations, dataset)}"
    if re.fullmatch(NAME, name) is None or len(name) > 120:
        expected = "lower-case words joined by -, at most one /: mylab/parts"
        raise UsageError("Invalid name of a manifest", where="--name", expected=expected, found=name[:120])
    require_own_name(name, "--name")
    dataset = dataset or namespace_word(name)
    slot = SourceSlot(dataset, dataset, part, True, "images", part)
    reading = Reading(bad_boxes=bad_boxes)
    try:
        opened = open_slots({f"{dataset}@{part}" if part else dataset: annotations}, [slot], reading)
    except CurationError as error:
        # Here the source is an argument, not an option.
        error.hint, error.where = (text and text.replace("--source ", "") for text in (error.hint, error.where))
        # If a root has several parts, the training images are divided.
        if error.hint and not part and "train" in (error.found or "").split(", "):
            error.hint = f"{dataset}@train={annotations}"
        raise
    parameters: dict[str, Any] = {"shares": _shares(parts), "group": group, "stratify": stratify, "salt": salt}
    if keep is not None:
        parameters["keep"] = ids_of_parts(keep if isinstance(keep, Manifest) else load_manifest(keep))
    if near_duplicates is not None:
        parameters["joined"] = joined_photos(opened[dataset], near_duplicates)
    table = SourceTable(dataset=dataset, part=opened[dataset].part)
    file = BenchmarkFile(rule="split", name=name, sources={dataset: table}, parameters=parameters)
    try:
        text = parameter_text(file, SplitParameters)
    except msgspec.ValidationError as error:
        message, expected = "The shares of the parts cannot be used", "train=0.7,val=0.1,test=0.2"
        reason = "a name with characters other than a-z, 0-9, . _ and -" if "regex" in str(error) else str(error)[:200]
        raise UsageError(message, where="--parts", expected=expected, found=reason) from None
    made = build(opened, {"file": text})
    return remembering(made, opened, {dataset: annotations}, reading, compare=not _are_distinct(opened[dataset]))


def _are_distinct(source: Source) -> bool:
    """Return whether all images of a source are distinct: different names, and neither boxes nor photos."""
    names = "\n".join(filter(None, without_folders(file_names(source)))).lower().split("\n")
    return (
        source.objects is None
        and len(set(names)) == len(names)
        and not (source.origin is not None and any(photos_beside(source, source.origin)))
    )


def joined_photos(source: Source, photos: Path) -> tuple[tuple[str, ...], ...]:
    """Return groups of two or more ids of equal or nearly equal photos, sorted by the first id of each group.

    A warning counts missing and unreadable photos.
    """
    from curation.signals.similarity.near_duplicates import alike_photos, hash_photos

    ids = source.image_ids.tolist()
    path_of = find_photos(ids, photos, [source])
    if not path_of:
        raise MissingFileError(
            "The folder contains no photo of the source",
            where=str(photos),
            expected="photos under the file names of the annotations, or named by id",
            found=f"no {examples(ids)}",
        )
    hashes = hash_photos(path_of)
    if missing := [image for image in ids if image not in path_of or image in hashes.failures]:
        text = f"{counted(len(missing), 'photo')} not compared, missing or unreadable: {examples(missing)}"
        warnings.warn(text, CurationWarning, stacklevel=3)
    alike = alike_photos(hashes)
    pairs = zip(alike.first.tolist(), alike.second.tolist(), strict=True)
    units = units_of(hashes.names, None, [(hashes.names[a], hashes.names[b]) for a, b in pairs])
    members: dict[int, list[str]] = {}
    for image, unit in zip(hashes.names, units.unit_of_image.tolist(), strict=True):
        members.setdefault(unit, []).append(image)
    return tuple(sorted(tuple(sorted(images)) for images in members.values() if len(images) > 1))


def _shares(parts: str | Mapping[str, str | float]) -> dict[str, Decimal]:
    """Return the share of each part, as ``train=0.7,test=0.3`` states it."""
    text = parts if isinstance(parts, str) else ",".join(f"{name}={share}" for name, share in parts.items())
    shares: dict[str, Decimal] = {}
    for pair in text.split(","):
        name, _, value = (word.strip() for word in pair.partition("="))
        try:
            share = Decimal(value)
        except InvalidOperation:
            share = Decimal("nan")
        if name in shares or not share.is_finite():
            raise UsageError(
                "A part is named twice" if name in shares else "A part has no share",
                where="--parts",
                expected="train=0.7,val=0.1,test=0.2",
                found=pair[:80],
            )
        shares[name] = share
    return shares


def _word(annotations: Any, dataset: str) -> str:
    stem = annotations.name.partition(".")[0] if isinstance(annotations, Path) else ""
    stem = annotations.resolve().parent.name if stem == "_annotations" else stem
    return slug(dataset or stem, "-") or "split"


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
    earlier = _by_unit(units, ids, shares, keep, "keep")
    salt = settings.salt or benchmark.name
    part_of = plain = assign(units, shares, salt=salt, stratum=stratum)
    if (earlier != _NO_PART).any():
        part_of = assign(units, shares, salt=salt, stratum=stratum, earlier=earlier)
    part_of = np.where(fixed == _NO_PART, part_of, fixed)
    _warn_of_large_groups(units, shares)
    if keep:
        # The manifest records of the earlier split only the images that the shares would assign to another part.
        moved = (part_of != plain)[units.unit_of_image]
        part_of_image = part_of[units.unit_of_image]
        pinned = {part: tuple(sorted(ids[row] for row in np.flatnonzero(moved & (part_of_image == number)).tolist()))
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
        rows = np.flatnonzero((part_of == number)[units.unit_of_image])
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
    return manifest_of_file(benchmark, made, sources, classes, parameters, taxonomy="closed-set")


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of a draft file: 70 % for training, 10 % for validation, 20 % for the test."""
    if len(sources) != 1:
        message = "The rule split needs one source"
        raise UsageError(message, expected="--source images=PATH", found=", ".join(sources))
    return [
        *beginning("split", options.name),
        *source_tables(sources, options.name),
        "",
        "[parameters]",
        "# Share of the images of each part; train, val or test in its name states its role.",
        "shares = { train = 0.7, val = 0.1, test = 0.2 }",
        "# Images that stay together: a column, or a regular expression with a group such as '(patient\\d+)'.",
        f"group = {quoted('')}",
        "# Whether each class keeps its share in each part.",
        f"stratify = {str(len(next(iter(sources.values())).categories) > 0).lower()}",
    ]


def units_of(ids: Sequence[str], groups: Sequence[str] | None, joined: Sequence[Sequence[str]] = ()) -> Units:
    """Return units: the images of each group or joined images; every other image is one unit.

    Parameters
    ----------
    groups : sequence of str, optional
        The group of each image, ``""`` for none.
    joined : sequence of sequence of str
        Ids of images that stay together, as do their groups.
    """
    if groups is None and not joined:
        return Units(ids, np.arange(len(ids)), np.ones(len(ids), np.int64))
    names = list(ids) if groups is None else [group or image for group, image in zip(groups, ids, strict=True)]
    if joined:
        names = _with_joined(ids, names, joined)
    unit_of_image, units = encoded(text_array(names))
    return Units(units.to_pylist(), unit_of_image, np.bincount(unit_of_image))


def _with_joined(ids: Sequence[str], names: list[str], joined: Sequence[Sequence[str]]) -> list[str]:
    """Return the unit of each image after merging the units of joined images under the first of their names."""
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
    units: Units, shares: Mapping[str, Fraction], *, salt: str, stratum: Int64s, earlier: Int64s | None = None
) -> Int64s:
    """Return the part of each unit: each part gets its share of every stratum in the order of the hash rank.

    A unit belongs to the part that contains its middle, so that a part differs from its share by less than one unit.
    Units larger than the smallest part come first, in descending order. Rounding errors of a stratum are compensated in
    the next one.

    Parameters
    ----------
    stratum : ndarray of int64, shape (u,)
    earlier : ndarray of int64, shape (u,), optional
        Part of each unit that has one, -1 for the others; these fill the remaining shares.

    Examples
    --------
    >>> shares = {"train": Fraction(3, 4), "test": Fraction(1, 4)}
    >>> units = units_of(["x:1", "x:2", "x:3", "x:4"], None)
    >>> assign(units, shares, salt="a", stratum=np.zeros(4, np.int64)).tolist()
    [0, 1, 0, 0]
    """
    part_of = np.full(len(units.size), _NO_PART) if earlier is None else earlier.copy()
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
        # Middles and bounds are doubled so that they are integers.
        middles = 2 * np.cumsum(size) - size
        part_of[free] = np.searchsorted(2 * np.cumsum(room), middles, side="right").clip(max=len(shares) - 1)
        obtained = np.zeros(len(shares), np.int64)
        np.add.at(obtained, part_of[members], units.size[members])
        over = [
            before + share * total - int(n) for before, share, n in zip(over, shares.values(), obtained, strict=True)
        ]
    return part_of


def rarest_class(source: Source) -> Int64s:
    """Return the rank of each image's rarest class, 0 for the rarest of all; images without a class are last."""
    image, category = source.class_pairs()
    width = max(len(source.categories), 1)
    pairs = distinct(image.astype(np.int64) * width + category)
    counts = np.bincount(pairs % width, minlength=width)
    names = np.array(source.categories.names or ("",), np.str_)
    rank = np.empty(width, np.int64)
    rank[np.lexsort((names, counts))] = np.arange(width)
    rarest = np.full(len(source.images), width)
    np.minimum.at(rarest, pairs // width, rank[pairs % width])
    return rarest


def _of_units(units: Units, stratum: Int64s) -> Int64s:
    """Return the smallest stratum of the images of each unit."""
    smallest = np.full(len(units.size), stratum.max(initial=0))
    np.minimum.at(smallest, units.unit_of_image, stratum)
    return smallest


def _groups_in(source: Source, group: str) -> list[str] | None:
    """Return the group of each image from a column or pattern; a warning counts images without a group."""
    if not group:
        return None
    where = "--group"
    if "(" not in group or group.startswith("column="):
        groups = image_column(source, group.removeprefix("column="))
    else:
        pattern, paths = require_group(group, where), text_array(image_paths(source))
        fits = match_mask(paths, pattern)
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
    if not all(groups):
        alone = [image for image, name in zip(source.image_ids.tolist(), groups, strict=True) if not name]
        text = f"{counted(len(alone), 'image')} without a group stay alone: {examples(alone)}"
        warnings.warn(text, CurationWarning, stacklevel=2)
    return groups


def _by_unit(
    units: Units, ids: Sequence[str], shares: Mapping[str, Fraction], ids_by_part: Ids, key: Literal["keep", "fixed"]
) -> Int64s:
    """Return the part of each unit by the ids of its listed images, -1 for a unit without a listed image."""
    part_of = np.full(len(units.size), _NO_PART)
    if unknown := [name for name in ids_by_part if name not in shares]:
        raise ProtocolError(
            "The earlier split has a part that this one lacks" if key == "keep" else "Unknown part",
            where=f"[parameters] {key}: {unknown[0]}",
            expected=f"the parts {', '.join(shares)}",
            hint=f"give {unknown[0]} a share, or leave out {key}",
        )
    row_of = {image: row for row, image in enumerate(ids)} if ids_by_part else {}
    for number, part in enumerate(shares):
        rows = [row_of[image] for image in ids_by_part.get(part, ()) if image in row_of]
        numbers = units.unit_of_image[rows]
        if (divided := (part_of[numbers] != _NO_PART) & (part_of[numbers] != number)).any():
            unit = int(numbers[np.flatnonzero(divided)[0]])
            other = list(shares)[part_of[unit]]
            raise ProtocolError(
                f"A group has images in two parts of {'the earlier split' if key == 'keep' else 'fixed'}",
                where=f"[parameters] {key}: group {units.names[unit]}"[:200],
                expected="all images of a group in one part",
                found=f"{ids[rows[int(np.flatnonzero(divided)[0])]]} in {part}, others in {other}",
                hint=f"leave out {key}, or group the images as in the earlier split",
            )
        part_of[numbers] = number
    if ids_by_part and not (part_of != _NO_PART).any():
        raise ProtocolError(
            "The earlier split contains no image of this source",
            where=f"[parameters] {key}",
            expected=f"ids such as {examples(ids)}",
            found=examples([image for listed in ids_by_part.values() for image in listed[:2]]),
            hint="ids begin with the dataset: use the same --name or NAME= of the source, in a file the same dataset",
        )
    return part_of


def _warn_of_large_groups(units: Units, shares: Mapping[str, Fraction]) -> None:
    smallest = min(shares, key=shares.__getitem__)
    room = int(shares[smallest] * len(units.unit_of_image))
    large = np.flatnonzero((units.size > room) & (units.size > 1))
    if len(large):
        groups = [f"{units.names[unit]} ({units.size[unit]:,} images)" for unit in large[:4].tolist()]
        verb = "group is" if len(large) == 1 else "groups are"
        text = f"{len(large):,} {verb} larger than the share of part {smallest}, {room:,} images"
        warnings.warn(f"{text}: {examples(groups)}", CurationWarning, stacklevel=2)


def _classes(benchmark: BenchmarkFile, source: Source) -> tuple[ClassEntry, ...]:
    """Return the classes of the file and the others as unknown; by default every class of the source is known."""
    names = source.categories.names
    if benchmark.classes.known:
        return class_entries(benchmark, names)
    return tuple(ClassEntry(name=name, role="known", index=index) for index, name in enumerate(names, start=1))
