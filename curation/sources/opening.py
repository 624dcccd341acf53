"""`open_source`: the right reader for what lies at a path, and the cache around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from curation.core.arguments import checked
from curation.core.errors import MissingFileError, UsageError
from curation.core.reading import missing_path
from curation.core.writing import add_input
from curation.sources.cache import Cache, Stamp, cache_key, default_folder, frozen
from curation.sources.coco import parse_coco
from curation.sources.content import FileContent, SmallFiles, paths_below
from curation.sources.cub200 import FILES as CUB200_FILES
from curation.sources.cub200 import PARTS as CUB200_PARTS
from curation.sources.cub200 import locate_cub200, parse_cub200
from curation.sources.datasets import family, is_listed
from curation.sources.imagenet import read_imagenet
from curation.sources.mtsd import locate_mtsd, mtsd_names, mtsd_parts, parse_mtsd
from curation.sources.openimages import parse_openimages
from curation.sources.openimages.files import OpenImagesContent, is_box_file, locate_openimages, offered_parts
from curation.sources.published_list import read_listed
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes
from curation.sources.table import SUFFIXES, parse_table
from curation.sources.voc import locate_voc, parse_voc, voc_names, what_else
from curation.sources.yolo import read_yolo, yolo_file, yolo_parts

_PARTS = ("train", "trainval", "val", "test")
_LARGE = 100 << 20
_WRITERS: dict[str, Thread] = {}


@checked
def open_source(
    path: Path, *, dataset: str, part: str, cache: bool | Path = True, bad_boxes: BadBoxes = "error"
) -> Source:
    """Return the source at a path, parsed or from the cache: the same columns either way.

    Parameters
    ----------
    path : Path
        A COCO JSON file; a COCO root (``annotations/instances_PART.json``); a VOC root (``Annotations`` and
        ``ImageSets/Main``, or a folder with ``VOC2007`` or ``VOCdevkit/VOC2007`` below it); one of ImageNet's layouts
        (see `curation.sources.imagenet`); the layouts of Open Images, CUB-200-2011 and MTSD (see the modules
        of these names); a YOLO folder (``data.yaml``, see `curation.sources.yolo.read_yolo`); a table (``.csv``,
        ``.tsv``); or a list of ids (``.txt``), which says nothing of its images. A single file may be compressed by
        gzip and begin with a byte order mark.
    dataset, part : str
        For example ``voc2007`` and ``test``.
    cache : bool or Path
        Whether parsed sources are kept, and where; True is `curation.sources.cache.default_folder`.
    bad_boxes : {"error", "drop"}

    Raises
    ------
    MissingFileError
        Nothing of the kind is at the path; the error lists what was tried.
    UsageError
        The path is a file of another kind.
    SourceError
        The files are not what they should be.
    """
    add_input(path)
    if yolo_file(path) and not (path / "annotations" / f"instances_{part}.json").is_file():
        return frozen(read_yolo(path, dataset, part, bad_boxes=bad_boxes))
    if _is_list(path, dataset):
        return frozen(read_listed(path, dataset=dataset, part=part))
    if family(dataset) == "imagenet" and path.exists():
        # A million names are listed anew each time: to know that a folder is unchanged is to list it.
        return frozen(read_imagenet(path, dataset=dataset, part=part))
    own = _own_layout(path, dataset, part, bad_boxes)
    return _open(own or _raw_files(path, dataset, part, bad_boxes), _cache(cache))


def _is_list(path: Path, dataset: str) -> bool:
    """Return whether a file names images alone: any text, and tables and JSON of datasets that are known by lists."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if not path.is_file() or (family(dataset) == "imagenet" and not is_listed(dataset)):
        return False
    return suffix == ".txt" or (is_listed(dataset) and family(dataset) != "openimages" and suffix in (".csv", ".json"))


def parts_at(path: Path, dataset: str) -> tuple[str, ...]:
    """Return the parts that a root or ``data.yaml`` offers; of VOC, those of `_PARTS`; none for other files."""
    if (path / "annotations").is_dir():
        names = [entry.stem.removeprefix("instances_") for entry in path.glob("annotations/instances_*.json")]
        if names or family(dataset) not in _PARTS_OF:
            return tuple(sorted(names))
    if found := yolo_file(path):
        return yolo_parts(found)
    if not path.is_dir():
        return ()
    if family(dataset) in _PARTS_OF:
        return _PARTS_OF[family(dataset)](path)
    root = locate_voc(path, dataset)
    return tuple(part for part in _PARTS if (root / "ImageSets" / "Main" / f"{part}.txt").is_file())


@dataclass(frozen=True, slots=True)
class _RawFiles:
    """Files with their reader: `paths` names them, `read` fetches their bytes, `parse` makes the source of these."""

    paths: Callable[[], list[str]]
    read: Callable[[], Any]
    parse: Callable[..., Source]
    options: dict[str, Any] = field(default_factory=dict)


def _many_files(
    root: Path, names: Callable[[], Sequence[str]], parse: Callable[..., Source], **options: Any
) -> _RawFiles:
    """Return files below a root, whose names are asked for anew each time."""
    return _RawFiles(lambda: paths_below(root, names()), lambda: SmallFiles(root, names()), parse, options)


def _cache(cache: bool | Path) -> Cache | None:
    folder = cache if isinstance(cache, Path) else default_folder() if cache else None
    if folder is None:
        return None
    kept = Cache(folder)
    kept.sweep()
    return kept


def _open(raw: _RawFiles, cache: Cache | None) -> Source:
    # A file that is opened twice in one program shall find what its first opening is still writing. Layouts of many
    # small files, which take time to list, are written before they are handed out.
    if raw.options["layout"] not in ("voc", "mtsd") and (writer := _WRITERS.pop(raw.paths()[0], None)):
        writer.join()
    return frozen(raw.parse(raw.read()) if cache is None else _through(cache, raw))


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
    source = cache.load(cache_key(content.sha256, raw.options), content.size) if cache.may_hold(content.size) else None
    is_new = source is None
    source = raw.parse(content) if source is None else source
    keep = partial(_keep, cache, raw, stamp, content.sha256, content.size, source if is_new else None)
    if content.size > _LARGE:
        # The caller has its source now; writing tens of megabytes need not keep it waiting. The program's end waits.
        writer = _WRITERS[raw.paths()[0]] = Thread(target=keep, name="cache")
        writer.start()
    else:
        keep()
    return source


def _keep(cache: Cache, raw: _RawFiles, stamp: Stamp | None, digest: str, size: int, made: Source | None) -> None:
    """Write a source that was made, and remember the digest of its files unless they changed meanwhile."""
    if made is not None:
        cache.store(cache_key(digest, raw.options), size, made)
    after = _stamp(raw)
    if stamp and after and stamp.listing == after.listing:
        cache.remember(stamp, digest, size)


def _stamp(raw: _RawFiles) -> Stamp | None:
    try:
        return Stamp(raw.paths())
    except OSError:
        return None


def _raw_files(path: Path, dataset: str, part: str, bad_boxes: BadBoxes) -> _RawFiles:
    options: dict[str, Any] = {"dataset": dataset, "part": part, "bad_boxes": bad_boxes}
    if path.is_dir():
        path, is_voc = _in_folder(path, dataset, part)
        if is_voc:
            read = partial(parse_voc, dataset=dataset, part=part, bad_boxes=bad_boxes)
            return _many_files(path, lambda: voc_names(path, part), read, layout="voc", **options)
    elif not path.exists():
        error = missing_path("The source does not exist", path, expected=_EXPECTED)
        root, _, word = str(path).rpartition("@")
        if root and Path(root).is_dir():
            offered = parts_at(Path(root), dataset)
            chosen = word if word in offered or not offered else offered[0]
            error.hint = f"--source NAME@{chosen}={root}; of --truth: --truth {root} --image-set {chosen}"
        raise error
    absolute = str(path.absolute())
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    parse: Callable[[Any], Source]
    if suffix in SUFFIXES:
        layout, parse = "table", partial(parse_table, dataset=dataset, part=part)
    elif suffix == ".json":
        layout, parse = "coco", partial(parse_coco, dataset=dataset, part=part, bad_boxes=bad_boxes)
    else:
        raise UsageError("Unknown file type", where=str(path), expected=_EXPECTED)
    options |= {"layout": layout, "name": path.name}
    return _RawFiles(lambda: [absolute], partial(FileContent, path), parse, options)


_EXPECTED = (
    "a COCO JSON file, a folder with annotations/instances_PART.json, a VOC folder (Annotations and ImageSets/Main), "
    "a YOLO folder (data.yaml), a table (.csv, .tsv), or a list of ids (.txt); each may be compressed by gzip"
)


_PARTS_OF: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "openimages": offered_parts,
    "cub200": lambda root: CUB200_PARTS if locate_cub200(root) else (),
    "mtsd": lambda root: mtsd_parts(locate_mtsd(root)),
}


def _own_layout(path: Path, dataset: str, part: str, bad_boxes: BadBoxes) -> _RawFiles | None:
    """Return the files of a dataset with a layout of its own, None where the path holds another layout."""
    # A part that was converted to COCO's layout is read as such.
    is_root = path.is_dir() and not (path / "annotations" / f"instances_{part}.json").is_file()
    kind = family(dataset)
    options: dict[str, Any] = {"dataset": dataset, "bad_boxes": bad_boxes}
    keyed = options | {"layout": kind, "part": part}
    if kind == "openimages" and (is_root or is_box_file(path)):
        paths = locate_openimages(path, part)
        return _RawFiles(
            lambda: [str(file.absolute()) for file in locate_openimages(path, part).given().values()],
            partial(OpenImagesContent, paths),
            partial(parse_openimages, **options),
            keyed | {"names": [file.name for file in paths.given().values()]},
        )
    if kind == "cub200" and is_root:
        parse = partial(parse_cub200, part=part, **options)
        return _many_files(locate_cub200(path).absolute(), lambda: CUB200_FILES, parse, **keyed)
    if kind == "mtsd" and is_root:
        root = locate_mtsd(path).absolute()
        parse = partial(parse_mtsd, part=part, **options)
        return _many_files(root, lambda: mtsd_names(root, part), parse, **keyed)
    return None


def _in_folder(folder: Path, dataset: str, part: str) -> tuple[Path, bool]:
    """Return the file or folder that holds a part, and whether it is a VOC folder."""
    instances = folder / "annotations" / f"instances_{part}.json"
    if instances.is_file():
        return instances, False
    if family(dataset) != "coco":
        return locate_voc(folder, dataset).absolute(), True
    offered = parts_at(folder, dataset) if (folder / "annotations").is_dir() else ()
    found, hint = (f"annotations of {', '.join(offered)}", None) if offered else what_else(folder)
    raise MissingFileError(
        f"The folder holds no annotations of {dataset} {part}".rstrip(),
        where=str(folder),
        expected=f"{instances}, or data.yaml of a YOLO folder",
        found=found,
        hint=hint,
    )
