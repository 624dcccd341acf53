"""`open_source`: the right reader for what lies at a path, and the cache around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from curation.errors import CurationError, MissingFileError, UsageError
from curation.sources.ahead import parsing_ahead
from curation.sources.cache import Cache, cache_key, default_folder
from curation.sources.coco import parse_coco
from curation.sources.content import FileContent
from curation.sources.datasets import family
from curation.sources.integrity import BadBoxes, check_policy
from curation.sources.memo import Stamp
from curation.sources.source import Source
from curation.sources.table import Split, parse_table
from curation.sources.table_cells import SUFFIXES
from curation.sources.voc import VocContent, locate_voc, parse_voc, voc_paths

_PARTS = ("train", "val", "test")
_LARGE = 100 << 20
Request = tuple[Path, str, str]


def open_source(
    path: Path,
    *,
    dataset: str,
    part: str,
    cache: bool | Path = True,
    bad_boxes: BadBoxes = "error",
    split: Split | None = None,
) -> Source:
    """Return the source at a path, parsed or from the cache: the same columns either way.

    Parameters
    ----------
    path : Path
        A COCO JSON file; a COCO root (``annotations/instances_PART.json``); a VOC root (``Annotations`` and
        ``ImageSets/Main``, or a folder with ``VOC2007`` or ``VOCdevkit/VOC2007`` below it); or a table (``.csv``,
        ``.tsv``, ``.parquet``).
    dataset, part : str
        For example ``voc2007`` and ``test``.
    cache : bool or Path
        Whether parsed sources are kept, and where; True is `curation.sources.cache.default_folder`.
    bad_boxes : {"error", "drop"}
    split : (str, str), optional
        Column and value that choose the rows of a table.

    Raises
    ------
    MissingFileError
        Nothing of the kind is at the path; the error lists what was tried.
    UsageError
        The path is a file of another kind.
    SourceError
        The files are not what they should be.
    """
    check_policy(bad_boxes)
    raw = _raw_files(path, dataset, part, bad_boxes, split)
    folder = _folder(cache)
    return raw.parse(raw.read()) if folder is None else _through(Cache(folder), raw)


def open_sources(
    requests: Sequence[Request], *, cache: bool | Path = True, bad_boxes: BadBoxes = "error"
) -> list[Source]:
    """Return several sources as `open_source` does one by one, a VOC folder beside a large JSON file at the same time.

    Parameters
    ----------
    requests : sequence of (Path, str, str)
        Path, dataset and part of each.
    cache : bool or Path
        Without a cache they are opened one after another.
    bad_boxes : {"error", "drop"}

    Raises
    ------
    CurationError
        As `open_source`, for the first source that cannot be opened.
    """
    folder = _folder(cache)
    kinds = [_raw_files(path, dataset, part, bad_boxes, None) for path, dataset, part in requests]
    found: dict[int, Source] = {}
    with ExitStack() as others:
        if folder is not None and _large_json_is_new(kinds, Cache(folder)):
            for (path, dataset, part), raw in zip(requests, kinds, strict=True):
                if raw.options["layout"] == "voc" and _is_new(raw, Cache(folder)):
                    others.enter_context(
                        parsing_ahead(path, dataset, part, cache=folder, bad_boxes=bad_boxes)
                    )
        for place, ((path, dataset, part), raw) in enumerate(zip(requests, kinds, strict=True)):
            if raw.options["layout"] != "voc":
                found[place] = open_source(path, dataset=dataset, part=part, cache=cache, bad_boxes=bad_boxes)
    for place, (path, dataset, part) in enumerate(requests):
        if place not in found:
            found[place] = open_source(path, dataset=dataset, part=part, cache=cache, bad_boxes=bad_boxes)
    return [found[place] for place in range(len(requests))]


def _folder(cache: bool | Path) -> Path | None:
    if isinstance(cache, Path):
        return cache
    return default_folder() if cache else None


def _large_json_is_new(kinds: Sequence[_RawFiles], cache: Cache) -> bool:
    """Return whether one of the sources is a file that takes longer to decode than a process takes to start."""
    return any(
        raw.options["layout"] == "coco" and raw.large() and _is_new(raw, cache)
        for raw in kinds
    )


def _is_new(raw: _RawFiles, cache: Cache) -> bool:
    try:
        stamp = _stamp(raw)
    except CurationError:
        return False
    return stamp is not None and cache.remembered(stamp) is None


def parts_at(path: Path, dataset: str) -> tuple[str, ...]:
    """Return the parts among train, val and test that a VOC or COCO root offers; none for a single file."""
    if not path.is_dir():
        return ()
    if (path / "annotations").is_dir():
        names = [entry.stem.removeprefix("instances_") for entry in path.glob("annotations/instances_*.json")]
        return tuple(sorted(names))
    root = locate_voc(path, dataset)
    return tuple(part for part in _PARTS if (root / "ImageSets" / "Main" / f"{part}.txt").is_file())


@dataclass(frozen=True, slots=True)
class _RawFiles:
    """Files with their reader: `paths` names them, `read` fetches their bytes, `parse` makes the source of these."""

    paths: Callable[[], list[str]]
    read: Callable[[], Any]
    parse: Callable[[Any], Source]
    options: dict[str, Any] = field(default_factory=dict)


def _through(cache: Cache, raw: _RawFiles) -> Source:
    stamp = _stamp(raw)
    known = cache.remembered(stamp) if stamp else None
    if known is not None:
        digest, size = known
        source = cache.load(cache_key(digest, raw.options), size)
        if source is not None:
            return source
    content = raw.read()
    # Waiting for the digest before parsing pays only where the cache may hold the answer; else both run at once.
    source = (
        cache.load(cache_key(content.sha256, raw.options), content.size)
        if cache.may_hold(content.size)
        else None
    )
    if source is None:
        source = raw.parse(content)
        cache.store(cache_key(content.sha256, raw.options), content.size, source)
    after = _stamp(raw)
    if stamp and after and stamp.listing == after.listing:
        cache.remember(stamp, content.sha256, content.size)
    return source


def _stamp(raw: _RawFiles) -> Stamp | None:
    try:
        return Stamp(raw.paths())
    except OSError:
        return None


def _raw_files(path: Path, dataset: str, part: str, bad_boxes: BadBoxes, split: Split | None) -> _RawFiles:
    options: dict[str, Any] = {"dataset": dataset, "part": part, "bad_boxes": bad_boxes}
    if path.is_dir():
        path, is_voc = _in_folder(path, dataset, part)
        if is_voc:
            return _RawFiles(
                partial(voc_paths, path, part),
                partial(VocContent, path, part),
                partial(parse_voc, dataset=dataset, bad_boxes=bad_boxes),
                {"layout": "voc", **options},
            )
    elif not path.exists():
        raise MissingFileError("The source does not exist", where=str(path), expected=_EXPECTED)
    absolute = str(path.absolute())
    read = partial(FileContent, path)
    if path.suffix.lower() in SUFFIXES:
        parse = partial(parse_table, dataset=dataset, part=part, split=split)
        layout = {"layout": "table", "name": path.name, "split": list(split or ())}
        return _RawFiles(lambda: [absolute], read, parse, layout | options)
    if path.suffix.lower() != ".json":
        raise UsageError("The file is of no known kind", where=str(path), expected=_EXPECTED)
    parse = partial(parse_coco, dataset=dataset, part=part, bad_boxes=bad_boxes)
    return _RawFiles(lambda: [absolute], read, parse, {"layout": "coco", "name": path.name} | options)


_EXPECTED = (
    "a COCO JSON file, a folder with annotations/instances_PART.json, a VOC folder (Annotations and ImageSets/Main), "
    "or a table (.csv, .tsv, .parquet)"
)


def _in_folder(folder: Path, dataset: str, part: str) -> tuple[Path, bool]:
    """Return the file or folder that holds a part, and whether it is a VOC folder."""
    instances = folder / "annotations" / f"instances_{part}.json"
    if instances.is_file():
        return instances, False
    if family(dataset) != "coco":
        return locate_voc(folder, dataset).absolute(), True
    offered = parts_at(folder, dataset) if (folder / "annotations").is_dir() else ()
    raise MissingFileError(
        f"The folder holds no annotations of {dataset} {part}".rstrip(),
        where=str(folder),
        expected=str(instances),
        found=f"annotations of {', '.join(offered)}" if offered else "no annotations/instances_*.json",
    )
