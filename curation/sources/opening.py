"""Open annotations of any form as sources: `open_source`, `as_source`, `open_path`; several by name: `open_slots`.

Annotations are a path, a COCO dictionary, a DataFrame, a FiftyOne dataset or view, or a `Source`. Annotations in memory
are converted to the bytes of a COCO file (`curation.sources.in_memory`): the same reader checks them, and their digest
is that of the file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

from curation.core.arguments import checked
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import CurationError, MissingFileError, UsageError
from curation.core.files import missing_path
from curation.core.reading import InputFile
from curation.core.writing import add_input
from curation.sources.bdd100k import is_frames, read_frames
from curation.sources.class_folders import ClassFolders, class_folder_parts, class_folders, read_class_folders
from curation.sources.coco import parse_coco
from curation.sources.cub200 import PARTS as CUB200_PARTS
from curation.sources.cub200 import locate_cub200, read_cub200
from curation.sources.datasets import family, is_known, is_listed, namespace_of, users_name
from curation.sources.fiftyone_view import FILE_NAME, coco_of_view, is_named, is_view, listed_categories, load_named
from curation.sources.foreign_forms import refuse_foreign
from curation.sources.imagenet import imagenet_parts, is_own_list, read_imagenet
from curation.sources.in_memory import coco_bytes, encoded_json
from curation.sources.integrity import KIND
from curation.sources.mtsd import locate_mtsd, mtsd_parts, read_mtsd
from curation.sources.object_rows import SUFFIXES as ROW_SUFFIXES
from curation.sources.object_rows import read_object_rows, row_files
from curation.sources.openimages import is_box_file, openimages_parts, read_openimages
from curation.sources.published_list import read_listed
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes, Reading, SourceSlot
from curation.sources.table import SUFFIXES, parse_table
from curation.sources.voc import locate_voc, read_voc, what_else, xml_folder, xml_parts
from curation.sources.yolo import read_yolo, yolo_file, yolo_parts

_PARTS = ("train", "trainval", "val", "test")


@checked
def open_path(path: Path, *, dataset: str, part: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source at a path.

    Parameters
    ----------
    path : Path
        A COCO JSON file, or BDD100K's JSON; a COCO root (``annotations/instances_PART.json``); a VOC root
        (``Annotations`` and ``ImageSets/Main``, or a folder with ``VOC2007`` or ``VOCdevkit/VOC2007`` below it) or
        VOC's XML files alone (see `curation.sources.voc.xml_folder`); one of ImageNet's layouts
        (see `curation.sources.imagenet`); the layouts of Open Images, CUB-200-2011 and MTSD (see the modules
        of these names); a YOLO folder (``data.yaml``, see `curation.sources.yolo.read_yolo`); your own class
        folders (see `curation.sources.class_folders`); rows of images and their objects (``.parquet``, ``.jsonl``) or a
        folder of them (see `curation.sources.object_rows`); a table (``.csv``, ``.tsv``); or a list of ids (``.txt``),
        without boxes or classes. A single file may be compressed by gzip and begin with a byte order mark.
    dataset, part : str
        For example ``voc2007`` and ``test``.
    bad_boxes : {"error", "drop"}

    Raises
    ------
    MissingFileError
        The path has no readable annotations; the error lists the paths that were tried.
    UsageError
        The path is a file of an unknown type.
    SourceError
        The files are malformed.
    """
    add_input(path)
    kind = family(dataset)
    if instances := coco_file(path, part):
        path = instances
    elif yolo_file(path):
        return read_yolo(path, dataset, part, bad_boxes=bad_boxes)
    if path.is_file() and path.suffix.lower() in _MAY_BE_FOREIGN:
        refuse_foreign(path)
    if _is_list(path, dataset):
        return replace(read_listed(path, dataset=dataset, part=part), origin=path)
    if kind == "imagenet" and path.exists():
        return read_imagenet(path, dataset=dataset, part=part)
    if row_files(path) or (path.is_file() and _suffix(path) in ROW_SUFFIXES):
        return read_object_rows(path, dataset=dataset, part=part, bad_boxes=bad_boxes)
    if kind == "openimages" and (path.is_dir() or is_box_file(path)):
        return read_openimages(path, dataset=dataset, part=part, bad_boxes=bad_boxes)
    if path.is_dir():
        if kind in _FOLDERS:
            return _FOLDERS[kind](path, dataset=dataset, part=part, bad_boxes=bad_boxes)
        if kind != "voc" and xml_folder(path, part):
            return read_voc(path, dataset, part, bad_boxes=bad_boxes)
        refuse_foreign(path)
        if kind == "coco":
            raise _without_annotations(path, dataset, part)
        if folders := _class_folders(path, dataset):
            return read_class_folders(path, folders, dataset=dataset, part=part)
        return read_voc(path, dataset, part, bad_boxes=bad_boxes)
    if not path.exists():
        raise _missing(path, dataset)
    suffix = _suffix(path)
    if suffix in SUFFIXES:
        return replace(parse_table(InputFile(path, kind=KIND), dataset=dataset, part=part), origin=path)
    if suffix == ".json":
        content = InputFile(path, kind=KIND)
        read = read_frames if is_frames(content.data) else parse_coco
        return replace(read(content, dataset=dataset, part=part, bad_boxes=bad_boxes), origin=path)
    raise UsageError("Unknown file type", where=str(path), expected=_EXPECTED)


ROBOFLOW = "_annotations.coco.json"
"""The annotation file in each folder of a Roboflow export: ``train``, ``valid``, ``test``."""


FIFTYONE = "labels.json"
"""The annotation file beside the folder ``data`` of a FiftyOne export."""


def coco_file(root: Path, part: str) -> Path | None:
    """Return the COCO JSON of a part in a folder with the layout of COCO, or of a Roboflow or FiftyOne export."""
    names = [root / "annotations" / f"instances_{part}.json", root / part / ROBOFLOW, root / ROBOFLOW]
    names += [root / FIFTYONE] if (root / "data").is_dir() else []
    return next((file for file in names if file.is_file()), None)


_MAY_BE_FOREIGN = (".txt", ".xml", ".json", ".cfg")
_FOLDERS: dict[str, Callable[..., Source]] = {"cub200": read_cub200, "mtsd": read_mtsd}
_EXPECTED = (
    "a COCO JSON file, a folder with annotations/instances_PART.json or PART/_annotations.coco.json, a VOC folder "
    "(Annotations and ImageSets/Main, or XML files alone), a YOLO folder (data.yaml), class folders (CLASS/photo.jpg), "
    "rows of images and objects (.parquet, metadata.jsonl), a table (.csv, .tsv), or a list of ids (.txt); text may be "
    "compressed by gzip"
)


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _is_list(path: Path, dataset: str) -> bool:
    """Return whether a file is a list of images: any text, or a table or JSON of a dataset that is read from lists."""
    suffix = _suffix(path)
    if not path.is_file() or (family(dataset) == "imagenet" and not is_listed(dataset)):
        return False
    return suffix == ".txt" or (is_listed(dataset) and family(dataset) != "openimages" and suffix in (".csv", ".json"))


def _missing(path: Path, dataset: str) -> MissingFileError:
    error = missing_path("The source does not exist", path, expected=_EXPECTED)
    root, _, word = str(path).rpartition("@")
    if root and Path(root).is_dir():
        offered = parts_at(Path(root), dataset)
        chosen = word if word in offered or not offered else offered[0]
        quoted = shlex.quote(root)
        error.hint = f"--source NAME@{chosen}={quoted}; of --truth: --truth {quoted} --image-set={chosen}; "
        error.hint += f"of split: NAME@{chosen}={quoted}"
    return error


def parts_at(path: Path, dataset: str) -> tuple[str, ...]:
    """Return the parts that a root or ``data.yaml`` offers (VOC: those of `_PARTS`); empty for other files."""
    exported = sorted(file.parent.name for file in path.glob(f"*/{ROBOFLOW}"))
    if exported or coco_file(path, ""):
        return tuple(exported)
    if (path / "annotations").is_dir():
        names = [entry.stem.removeprefix("instances_") for entry in path.glob("annotations/instances_*.json")]
        if names or family(dataset) not in _PARTS_OF:
            return tuple(sorted(names))
    if yaml_file := yolo_file(path):
        return yolo_parts(yaml_file)
    if not path.is_dir():
        return ()
    if family(dataset) != "imagenet" and (rows := row_files(path)):
        return tuple(rows)
    if family(dataset) in _PARTS_OF:
        return _PARTS_OF[family(dataset)](path)
    if folders := _class_folders(path, dataset):
        return class_folder_parts(folders)
    if xml_folder(path) or xml_parts(path):
        return xml_parts(path)
    root = locate_voc(path, dataset)
    return tuple(part for part in _PARTS if (root / "ImageSets" / "Main" / f"{part}.txt").is_file())


def native_dataset(path: Path) -> str:
    """Return the dataset whose published layout is at a path, such as ``cub200``; ``""`` for other layouts."""
    if is_box_file(path):
        return "openimages"
    if path.is_file():
        return "imagenet" if _suffix(path) in (".txt", ".csv", ".json") and is_own_list(path) else ""
    for dataset, parts in _PARTS_OF.items():
        with suppress(CurationError):
            if parts(path) and not any(path.glob("annotations/instances_*.json")):
                return dataset
    return ""


def _class_folders(path: Path, dataset: str) -> ClassFolders | None:
    """Return the class folders at the path of a user dataset; None for another layout."""
    folders = None if family(dataset) == "voc" else class_folders(path)
    if folders and is_known(dataset):
        raise UsageError(
            f"The dataset {dataset} is not read from class folders",
            where=str(path),
            expected="a new dataset name: class folders are a user dataset",
            found=f"{len(folders.paths)} photos in class folders",
            hint=f"in a benchmark file: dataset = {users_name(dataset)!r}".replace("'", '"'),
        )
    return folders


_PARTS_OF: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "openimages": openimages_parts,
    "cub200": lambda root: CUB200_PARTS if locate_cub200(root) else (),
    "mtsd": lambda root: mtsd_parts(locate_mtsd(root)),
    "imagenet": imagenet_parts,
}


def _without_annotations(folder: Path, dataset: str, part: str) -> MissingFileError:
    offered = parts_at(folder, dataset) if (folder / "annotations").is_dir() else ()
    content, hint = (f"annotations of {', '.join(offered)}", None) if offered else what_else(folder)
    return MissingFileError(
        f"The folder holds no annotations of {dataset} {part}".rstrip(),
        where=str(folder),
        expected=f"{folder / 'annotations' / f'instances_{part}.json'}, or data.yaml of a YOLO folder",
        found=content,
        hint=hint,
    )


@dataclass(frozen=True)
class _Written:
    """The bytes of a COCO file in memory, with the attributes of `curation.core.reading.InputFile`."""

    name: str
    data: bytes

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(self.data)

    @cached_property
    def sha256(self) -> str:
        """``sha256:<hex>`` of these bytes."""
        return sha256_of_bytes(self.data)


@checked
def open_source(dataset: str, annotations: Annotated[Any, Path], *, part: str = "", **reading: Any) -> Source:
    """Return one part of a raw dataset as columns: its images, classes and boxes.

    Parameters
    ----------
    dataset : str
        Dataset of the image ids: ``coco``, ``voc2007``, ``openimages``, or a new name.
    annotations : path, mapping, DataFrame, FiftyOne dataset or view, or Source
        See `as_source`.
    part : str
        Part of a root with several parts, such as ``val2017``.
    **reading
        ``bad_boxes`` (see `curation.sources.opening.open_path`); for FiftyOne, ``id_field`` and ``label_field``.

    Examples
    --------
    >>> import curation
    >>> image = {"id": 1, "file_name": "1.jpg", "width": 64, "height": 48}
    >>> box = {"id": 1, "image_id": 1, "category_id": 7, "bbox": [2, 3, 10, 20]}
    >>> shapes = {"images": [image], "annotations": [box], "categories": [{"id": 7, "name": "circle"}]}
    >>> source = curation.open_source("shapes", shapes)
    >>> len(source.images), source.categories.names
    (1, ('circle',))
    """
    return as_source(annotations, dataset=dataset, part=part, **reading)


@partial(checked, called="open_source", hint="help(curation.open_source)")
def as_source(
    annotations: Annotated[Any, Path],
    *,
    dataset: str,
    part: str,
    bad_boxes: BadBoxes = "error",
    id_field: str = "",
    label_field: str = "",
) -> Source:
    """Return the source of annotations in any supported form.

    Parameters
    ----------
    annotations : path, mapping, DataFrame, several mappings, FiftyOne dataset or view, or Source
        A path: see `curation.sources.opening.open_path`. A mapping: a COCO dictionary. A DataFrame or several mappings:
        a row for each box, or a mapping for each image (see `curation.sources.in_memory.coco_bytes`). A FiftyOne
        dataset or view, or ``fiftyone:NAME[#VIEW]`` in its database: the detections of its samples; sizes come from
        the metadata.
    dataset, part : str
    bad_boxes
        See `open_path`.
    id_field, label_field : str
        For a FiftyOne dataset or view: the field of the image ids, and that of the boxes (see
        `curation.sources.fiftyone_view.coco_of_view`).

    Raises
    ------
    UsageError
        The annotations have another type, or a column of a DataFrame is missing or repeated.
    CurationError
        The reader rejects the annotations.
    """
    if isinstance(annotations, Source):
        return annotations
    if isinstance(annotations, str | Path) and is_named(annotations):
        annotations = load_named(annotations)
    if is_view(annotations):
        coco = coco_of_view(annotations, namespace=namespace_of(dataset), id_field=id_field, label_field=label_field)
        return _parsed(encoded_json(coco), bool(listed_categories(annotations)), FILE_NAME, dataset, part, bad_boxes)
    if id_field or label_field:
        raise UsageError(
            "id_field and label_field are for FiftyOne datasets and views", found=type(annotations).__name__
        )
    if isinstance(annotations, str | Path):
        return open_path(Path(annotations), dataset=dataset, part=part, bad_boxes=bad_boxes)
    return _parsed(*coco_bytes(annotations), f"{type(annotations).__name__}.json", dataset, part, bad_boxes)


def _parsed(data: bytes, has_category_ids: bool, name: str, dataset: str, part: str, bad_boxes: BadBoxes) -> Source:
    content: Any = _Written(name, data)
    source = parse_coco(content, dataset=dataset, part=part, bad_boxes=bad_boxes)
    if has_category_ids:
        return source
    return replace(source, categories=replace(source.categories, numbering="none"))


def open_slots(
    sources: Mapping[str, Any],
    slots: Sequence[SourceSlot],
    reading: Reading | None = None,
    *,
    hint: str = "curation list",
) -> dict[str, Source]:
    """Return the requested sources by slot name.

    The name of a dataset stands for all its slots: those that a root offers, or the one that matches a file.
    ``NAME@PART`` chooses the part of the dataset, if the slot accepts any part: ``--source coco@val2017=ROOT``.

    Parameters
    ----------
    sources : mapping of str to path or annotations
        See `as_source` for the forms of annotations.
    slots : sequence of SourceSlot
    reading : Reading, optional
    hint : str
        The hint of the error for an unknown name.

    Raises
    ------
    UsageError
        A name is neither a slot nor a dataset, or the slot requires another part.
    """
    read = partial(_open_slot, reading or Reading())
    by_name = _parts_by_name(sources)
    names = [slot.name for slot in slots]
    datasets = list(dict.fromkeys(slot.dataset for slot in slots))
    for name in by_name:
        if name not in (*names, *datasets):
            raise UsageError("Unknown source", where=f"--source {name[:100]}", expected=", ".join(names), hint=hint)
    opened: dict[str, Source] = {}
    for slot in slots:
        if slot.name in by_name:
            opened[slot.name] = read(slot, *by_name[slot.name])
    for dataset in datasets:
        if dataset in by_name and dataset not in names:
            of_dataset = [slot for slot in slots if slot.dataset == dataset and slot.name not in opened]
            opened |= _expand(read, of_dataset, *by_name[dataset])
    return opened


def _parts_by_name(sources: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    by_name: dict[str, tuple[str, Any]] = {}
    for key, value in sources.items():
        name, _, part = key.partition("@")
        if name in by_name:
            raise UsageError(f"--source names {name!r} twice", where=key[:200])
        by_name[name] = (part, Path(value) if isinstance(value, str) else value)
    return by_name


def _expand(read: Callable[..., Source], slots: Sequence[SourceSlot], part: str, path: Any) -> dict[str, Source]:
    if part or not (isinstance(path, Path) and path.is_dir()):
        # A path is one part: that of the option, else of the file name, else the only candidate.
        matching = [slot for slot in slots if slot.part == (part or _part_in_name(path))]
        candidates = [slot for slot in slots if slot.required] or list(slots)
        if not part and not matching and len(candidates) > 1:
            raise UsageError(
                "The file name does not state the part of the dataset",
                where=f"--source {candidates[0].dataset}={path}",
                expected=" or ".join(f"--source {slot.name}=PATH" for slot in candidates),
                found=getattr(path, "name", type(path).__name__),
            )
        slots = (matching if part else matching or candidates)[:1]
    opened: dict[str, Source] = {}
    for slot in slots:
        try:
            opened[slot.name] = read(slot, part, path)
        except MissingFileError:
            if slot.required or len(slots) == 1:
                raise
    if not opened:
        raise UsageError("The dataset has no such part", where=f"--source …@{part}={path}", hint="curation list")
    return opened


def _open_slot(reading: Reading, slot: SourceSlot, part: str, path: Any) -> Source:
    if part and slot.part and part != slot.part:
        raise UsageError(
            f"Source {slot.name} is another part of its dataset",
            where=f"--source {slot.name}@{part}",
            expected=slot.part,
            found=part,
            hint=f"--source {slot.name}={shlex.quote(str(path))}; or state the other part in the benchmark file",
        )
    return as_source(
        path, dataset=slot.dataset, part=part or slot.part or _part_of(slot, path), bad_boxes=reading.bad_boxes
    )


def _part_of(slot: SourceSlot, path: Any) -> str:
    """Return the part of a path: the one in the file name, or the usual or only part of a root."""
    if not isinstance(path, Path):
        return slot.usual_part
    offered = parts_at(path, slot.dataset)
    if not offered and not path.is_dir():
        return _part_in_name(path)
    if slot.usual_part in offered:
        return slot.usual_part
    usual = slot.usual_part or slot.name
    # A source without a part in its name is a complete root of class folders, whose ids distinguish the parts.
    if path.is_dir() and not _use_of(usual) and not is_known(slot.dataset) and class_folders(path):
        return ""
    if len(offered) > 1:
        likely = min(offered, key=lambda part: (not part.startswith(usual), part.startswith("train")))
        raise UsageError(
            "The root offers several parts",
            where=f"--source {slot.name}={path}",
            expected="one of them",
            found=", ".join(offered),
            hint=f"--source {slot.name}@{likely}={shlex.quote(str(path))}",
        )
    # A part named after another use is read only on request; otherwise it could serve for both uses.
    if offered and {usual, _use_of(offered[0])} in ({"train", "val"}, {"train", "test"}):
        raise UsageError(
            f"The root has no {usual} part",
            where=f"--source {slot.name}={path}",
            expected=f"a part such as {usual}",
            found=offered[0],
            hint=f"--source {slot.name}=PATH of another file or folder, or if you mean this part: "
            f"--source {slot.name}@{offered[0]}={shlex.quote(str(path))}",
        )
    return offered[0] if offered else slot.usual_part


def _use_of(part: str) -> str:
    """Return ``train``, ``val`` or ``test`` if the name of a part begins with it, else ``""``: trainval is train."""
    return next((use for use in ("train", "val", "test") if part.startswith(use)), "")


def _part_in_name(path: Any) -> str:
    """Return the part in a file's name, or ``""``: ``instances_val2017.json`` is val2017."""
    if not isinstance(path, Path):
        return ""
    match = re.search(r"(?:^|_)((?:train|val|test)20[0-9]{2})(?=[_.]|$)", path.name)
    return match[1] if match else ""
