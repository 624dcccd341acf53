"""`split`: one source in disjoint parts, as a manifest of the rule ``split``."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import msgspec

from curation.benchmarks.building import remembering, require_own_name
from curation.benchmarks.rules import split as rule
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, SourceTable, parameter_text
from curation.benchmarks.rules.starting import namespace_word
from curation.core.arguments import checked
from curation.core.errors import CurationError, CurationWarning, MissingFileError, UsageError
from curation.core.wording import counted, examples, slug
from curation.manifest.header import NAME
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.opening import open_slots
from curation.sources.photos import file_names, find_photos, photos_beside
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes, Reading, SourceSlot


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
    """Return the manifest of one source in disjoint parts.

    Images are taken in the order of a hash of their ids. The order of the file does not matter, and there is no seed.

    Parameters
    ----------
    source
        your data: COCO JSON, a VOC or YOLO folder, a table, or a list of ids (.txt); NAME= before it is the dataset,
        the first word of the image ids, @PART which part of a folder it is
    parts
        the share of each part; they sum to 1, and train, val or test in a name says its role
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
        The shares do not sum to 1, there is no such column, a part gets no image.

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
        # Training images are what one divides, where a root has several parts.
        if error.hint and not part and "train" in (error.found or "").split(", "):
            error.hint = f"{dataset}@train={annotations}"
        raise
    parameters: dict[str, Any] = {"shares": _shares(parts), "group": group, "stratify": stratify, "salt": salt}
    if keep is not None:
        parameters["keep"] = rule.kept_ids(keep if isinstance(keep, Manifest) else load_manifest(keep))
    if near_duplicates is not None:
        parameters["joined"] = joined_photos(opened[dataset], near_duplicates)
    table = SourceTable(dataset=dataset, part=opened[dataset].part)
    file = BenchmarkFile(rule="split", name=name, sources={dataset: table}, parameters=parameters)
    try:
        text = parameter_text(file, rule.SplitParameters)
    except msgspec.ValidationError as error:
        message, expected = "The shares of the parts cannot be used", "train=0.7,val=0.1,test=0.2"
        found = (
            "a name of other characters than a to z, 0 to 9, . _ and -" if "regex" in str(error) else str(error)[:200]
        )
        raise UsageError(message, where="--parts", expected=expected, found=found) from None
    made = rule.build(opened, {"file": text})
    return remembering(made, opened, {dataset: annotations}, reading, compare=not _are_distinct(opened[dataset]))


def _are_distinct(source: Source) -> bool:
    """Return whether no two images of a source can be one: they have other names, and neither boxes nor photos."""
    names = [name.rpartition("/")[2].lower() for name in file_names(source) if name]
    return (
        source.objects is None
        and len(set(names)) == len(names)
        and not (source.origin is not None and any(photos_beside(source, source.origin)))
    )


def joined_photos(source: Source, photos: Path) -> tuple[tuple[str, ...], ...]:
    """Return the ids of photos that are the same, or nearly the same: two or more a group, each group by its first id.

    Photos that are missing or unreadable are counted in a warning.
    """
    from curation.signals.similarity.near_duplicates import alike_photos, hash_photos

    ids = source.image_ids.tolist()
    path_of = find_photos(ids, photos, [source])
    if not path_of:
        raise MissingFileError(
            "The folder holds no photo of the source",
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
    units = rule.units_of(hashes.names, None, [(hashes.names[a], hashes.names[b]) for a, b in pairs])
    members: dict[int, list[str]] = {}
    for image, unit in zip(hashes.names, units.of.tolist(), strict=True):
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
