"""Reader of class folders, ``CLASS/photo.jpg`` or ``PART/CLASS/photo.jpg``: ImageFolder, Ultralytics, Roboflow.

The class of an image is the folder that holds it. Its id is its path below the root, with the folder of its part:
``train/cat/000.png`` and ``test/cat/000.png`` are two images. Photos are not opened.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from curation.core.errors import AnnotationFormatError, MissingFileError
from curation.core.files import stays_below
from curation.sources.integrity import check_image_name, check_label
from curation.sources.photos import CLASS_FOLDERS, PICTURES
from curation.sources.source import FileRecord, Images, Source, Texts, texts
from curation.sources.yolo import are_labelled_beside

PARTS = ("train", "val", "test")
_PART = re.compile(r"(?:(train|training)|(val|valid|validation)|(test|testing))(?:20[0-9]{2})?", re.IGNORECASE)
_OTHER_LAYOUTS = {"annotations", "imagesets", "jpegimages", "labels", "images"}
"""Folders of the layouts of COCO, VOC and YOLO, in lower case."""
_SAMPLED = 50
_PHOTOS = re.compile(r"images?|imgs?|rgb|photos?|inputs?|a", re.IGNORECASE)
_MASKS = re.compile(
    r"masks?|labels?|gts?|ground[ _-]?truths?|annotations?|seg(?:mentation)?s?|depths?|out", re.IGNORECASE
)
"""Folders of photos, and folders of their masks or depth maps, which are not classes."""


class ClassFolders(NamedTuple):
    """The photos of a root.

    Attributes
    ----------
    paths : list of str
        Below the root, with ``/``, sorted.
    parts : list of str
        Part of each photo; ``""`` where the root has no folders of parts.
    dropped : dict of str to int
        Number of files and folders that are left out, by reason.
    """

    paths: list[str]
    parts: list[str]
    dropped: dict[str, int]


def part_of_folder(name: str) -> str:
    """Return ``train``, ``val`` or ``test`` for the name of a folder of that part, else ``""``.

    >>> part_of_folder("valid"), part_of_folder("Train"), part_of_folder("train2017"), part_of_folder("trains")
    ('val', 'train', 'train', '')
    """
    match = _PART.fullmatch(name)
    return PARTS[[bool(group) for group in match.groups()].index(True)] if match else ""


def class_folders(root: Path) -> ClassFolders | None:
    """Return the photos in the class folders of a root; None if the root has no class folders.

    Hidden files, other files, photos beside the class folders, masks of photos and links that
    lead out of the root are left out and counted.

    Raises
    ------
    AnnotationFormatError
        A photo lies deeper than in a class folder.
    MissingFileError
        A folder cannot be read.
    """
    try:
        with os.scandir(root) as entries:
            listed = [(entry.name, entry.is_dir()) for entry in entries]
    except OSError as error:
        raise MissingFileError(f"The folder cannot be read: {error.strerror}", where=str(root)) from None
    folders = [name for name, is_folder in listed if is_folder and not _is_hidden(name)]
    has_json = any(name.lower().endswith(".json") for name, _ in listed)
    if {name.lower() for name in folders} & _OTHER_LAYOUTS or (has_json and len(folders) == 1):
        return None
    dropped = Counter[str]()
    paths = [*_photos_below(root, dropped)]
    if are_labelled_beside(root, paths[:_SAMPLED]):
        return None
    photos = [tuple(name.split("/")) for name in paths]
    has_parts = any(len(names) > 2 and part_of_folder(names[0]) for names in photos)
    depth = 3 if has_parts else 2
    usable = [names for names in photos if not has_parts or part_of_folder(names[0])]
    masks = _folders_of_masks(usable)
    dropped["masks beside photos"] = sum(names[:-1] in masks for names in usable)
    usable = [names for names in usable if names[:-1] not in masks]
    labelled = [names for names in usable if len(names) == depth]
    if deeper := [names for names in usable if len(names) > depth]:
        if any(name.lower() in _OTHER_LAYOUTS for name in deeper[0]):
            return None
        raise AnnotationFormatError(
            "A photo lies deeper than in a class folder",
            where=str(root),
            expected="CLASS/photo, or PART/CLASS/photo with the parts train, val (or valid) and test",
            found=f"{'/'.join(deeper[0])}; such photos: {len(deeper)}"[:300],
            hint="move it up into its class folder"
            if labelled
            else f"give the folder that holds the class folders, such as {root.joinpath(*_above_parts(deeper, depth))}",
        )
    # Folders of photos that are named like parts hold images of all classes. A single one is a class: a train.
    named_like_parts = {names[0] for names in labelled if not has_parts and part_of_folder(names[0])}
    if len(named_like_parts) > 1 or named_like_parts == {names[0] for names in labelled}:
        return None
    dropped["photos outside the class folders"] = len(photos) - len(labelled) - dropped["masks beside photos"]
    parts = [part_of_folder(names[0]) if has_parts else "" for names in labelled]
    return ClassFolders(["/".join(names) for names in labelled], parts, dict(+dropped))


def _folders_of_masks(photos: list[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return the folders of masks or depth maps: their file names equal those of a folder of photos beside them."""
    stems = defaultdict[tuple[str, ...], set[str]](set)
    for path in photos:
        stems[path[:-1]].add(path[-1].rpartition(".")[0])
    photo_names = defaultdict[tuple[str, ...], set[str]](set)
    for folder, names in stems.items():
        if folder and _PHOTOS.fullmatch(folder[-1]):
            photo_names[folder[:-1]] |= names
    return {
        folder for folder, names in stems.items()
        if folder and _MASKS.fullmatch(folder[-1]) and names <= photo_names[folder[:-1]]
    }  # fmt: skip


def _above_parts(photos: list[tuple[str, ...]], depth: int) -> tuple[str, ...]:
    """Return the folders above the first folder of a part, else above the class folder of the first photo."""
    above = (names[:at] for names in photos for at, name in enumerate(names[:-2]) if part_of_folder(name))
    return next(above, photos[0][:-depth])


def class_folder_parts(folders: ClassFolders) -> tuple[str, ...]:
    """Return the parts of class folders in the order train, val, test; empty if the root has no folders of parts."""
    return tuple(part for part in PARTS if part in folders.parts)


def read_class_folders(root: Path, folders: ClassFolders, *, dataset: str, part: str) -> Source:
    """Return the presence-only source of class folders.

    Parameters
    ----------
    folders : ClassFolders
        The photos of the root.
    dataset, part : str
        If the root has folders of parts, the part chooses one of them; ``""`` means all of them.

    Raises
    ------
    MissingFileError
        The root has no such part.
    AnnotationFormatError
        The path of a photo cannot be an image id, or the name of a folder cannot be a class name.
    """
    offered = class_folder_parts(folders)
    if part and offered and part not in offered:
        raise MissingFileError(
            f"The class folders have no part {part}", where=str(root), expected=" or ".join(offered), found=part
        )
    pairs = zip(folders.paths, folders.parts, strict=True)
    paths = [path for path, folder_part in pairs if not (part and folder_part) or folder_part == part]
    labels = [path.rsplit("/", 2)[-2] for path in paths]
    for path in paths:
        check_image_name(path, str(root))
    for label in sorted(set(labels)):
        check_label(label, str(root))
    listing = "".join(f"{path}\n" for path in paths).encode()
    digest = f"sha256:{hashlib.sha256(listing).hexdigest()}"
    record = FileRecord(CLASS_FOLDERS, digest, len(listing), len(paths), len(paths))
    images = Images.of(paths, text_ids=texts(paths), file_names=paths)
    return Source.of_labels(dataset, part, images, labels, record, dropped=folders.dropped)


def part_of_images(source: Source) -> Texts:
    """Return the part that contains each image according to its folder, shape (n,); ``""`` for none."""
    is_read_here = any(file.name == CLASS_FOLDERS for file in source.files)
    levels = [name.split("/") for name in source.images.native.tolist()]
    parts = [part_of_folder(names[0]) if is_read_here and len(names) > 2 else "" for names in levels]
    return np.array(parts, object)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _photos_below(root: Path, dropped: Counter[str]) -> Iterator[str]:
    """Yield the path of each photo below a root, sorted; count the files and folders that are skipped."""
    top, real = str(root), os.path.realpath(root)

    def refuse(error: OSError) -> None:
        message = f"The folder cannot be read: {error.strerror}"
        raise MissingFileError(message, where=str(error.filename)) from None

    paths: list[str] = []
    for folder, folders, files in os.walk(top, onerror=refuse):
        dropped["hidden files and folders"] += sum(map(_is_hidden, (*folders, *files)))
        links = [name for name in folders if not _is_hidden(name) and Path(folder, name).is_symlink()]
        dropped["links to folders"] += len(links)
        folders[:] = [name for name in folders if not _is_hidden(name) and name not in links]
        below = os.path.relpath(folder, top)
        prefix = "" if below == "." else below.replace(os.sep, "/") + "/"
        for name in files:
            if _is_hidden(name):
                continue
            if not name.lower().endswith(PICTURES):
                dropped["files that are no photos"] += 1
            elif Path(folder, name).is_symlink() and not stays_below(str(Path(folder, name)), real):
                dropped["links that lead out of the folder"] += 1
            else:
                paths.append(f"{prefix}{name}")
    yield from sorted(paths)
