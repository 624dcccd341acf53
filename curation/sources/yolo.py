"""Reader of YOLO folders: a YAML, photos and their label files, located by the rules of Ultralytics."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from curation.core.errors import AnnotationFormatError, CurationError, MissingFileError, PathEscapeError
from curation.core.files import files_below
from curation.core.ids import native_of
from curation.core.reading import InputFile, beginning, filled_lines
from curation.sources.datasets import namespace_of
from curation.sources.integrity import (
    SmallFiles,
    check_image_name,
    check_label,
    check_unique,
    record_of_many,
    sound_objects,
)
from curation.sources.photos import SUFFIXES, size_of_photo
from curation.sources.published_list import YAML_NAMES, safe_yaml
from curation.sources.source import Categories, FileRecord, Images, Objects, Source
from curation.sources.source_specs import BadBoxes
from curation.sources.stems import label_of

CLASS_NAMES = "classes.txt"
"""Files that labelling tools write beside the label files."""
_PARTS = ("train", "val", "test")
_YAML_SUFFIXES = (".yaml", ".yml")
_SUFFIXES = (*SUFFIXES, ".bmp", ".tif", ".tiff")
_LINE = "class cx cy w h, or class and the corners of a polygon, in shares of the image, 0 to 1"
_LABEL = re.compile(rb"\s*\d+(?:[ \t]+[-+.\de]+){4,}\s")
_BOX_FIELDS, _POLYGON_FIELDS, _ORIENTED_FIELDS = 5, 7, 9
_MOST_PHOTOS = 1000
_LONGEST_NUMBER = 64


def yolo_file(path: Path) -> Path | None:
    """Return the YAML of a YOLO folder, or the path itself if it is a YAML file; None for another path.

    As in Ultralytics, a YAML with another name than `YAML_NAMES` counts if only it has class names, or if it has the
    name of the folder.
    """
    if path.suffix.lower() in _YAML_SUFFIXES and path.is_file():
        return path
    if usual := next((path / name for name in YAML_NAMES if (path / name).is_file()), None):
        return usual
    if not any((path / name).is_dir() for name in ("images", "labels")):
        return None
    files = [file for suffix in _YAML_SUFFIXES for file in sorted(path.glob(f"*{suffix}")) if _names_classes(file)]
    candidates = [file for file in files if len(files) == 1 or file.stem == path.name]
    return candidates[0] if len(candidates) == 1 else None


def _names_classes(path: Path) -> bool:
    try:
        return bool(safe_yaml(InputFile(path, kind="YAML").data, str(path)).get("names"))
    except CurationError:
        return False


def are_labelled_beside(root: Path, photos: Sequence[str]) -> bool:
    """Return whether some photos have label files beside them, as in darknet's layout."""
    labels = ((root / photo).with_suffix(".txt") for photo in photos)
    return any(_LABEL.match(beginning(label, 1 << 9) + b"\n") for label in labels if label.is_file())


def missing_yaml(folder: Path) -> tuple[str, str] | None:
    """Return a description of a YOLO folder without a YAML and a hint on how to write one; None for another folder."""
    listed = islice(files_below(str(folder), _SUFFIXES), _MOST_PHOTOS) if folder.is_dir() else ()
    photos = (photo for _, photo, _ in listed)
    labelled = next((photo for photo in photos if (folder / label_of(photo)).is_file()), None)
    if labelled is None:
        if next(folder.glob("labels/**/*.txt"), None) is None:
            return None
        return "label files of YOLO, no data.yaml, and none of their photos", "put images/ and data.yaml beside labels/"
    lists = [file for form in (CLASS_NAMES, f"labels/{CLASS_NAMES}", "*.names") for file in sorted(folder.glob(form))]
    text = lists[0].read_text(encoding="utf-8", errors="replace") if lists else "cat\ndog"
    names = json.dumps([line.strip() for line in text.splitlines() if line.strip()], ensure_ascii=False)
    top = PurePosixPath(labelled).parts[0] if "/" in labelled else "."
    content = f"{shlex.quote(f'names: {names}')} {shlex.quote(f'val: {top}')}"
    command = f"printf '%s\\n' {content} > {shlex.quote(str(folder / YAML_NAMES[0]))}"
    about = "" if lists else "; with your classes, in the order of their numbers"
    return "a YOLO folder, and no data.yaml, which names its classes", command + about


def yolo_parts(path: Path) -> tuple[str, ...]:
    """Return the parts for which a ``data.yaml`` names photos."""
    content = safe_yaml(InputFile(path, kind="data.yaml").data, str(path))
    return tuple(part for part in _PARTS if content.get(part))


def yolo_names(data: bytes, where: str, error: type[CurationError] = AnnotationFormatError) -> tuple[str, ...]:
    """Return the names of the classes that a ``data.yaml`` numbers from 0."""
    names_entry = safe_yaml(data, where, error).get("names")
    names = (
        # JSON writes keys as texts.
        [names_entry.get(number, names_entry.get(str(number))) for number in range(len(names_entry))]
        if isinstance(names_entry, dict)
        else names_entry
    )
    if not isinstance(names, list) or not names or not all(isinstance(name, str | int) for name in names):
        expected = "names: a list, or a mapping of 0, 1, 2, … to a name each"
        raise error("The YAML does not name the classes", where=where, expected=expected, found=f"{names_entry!r:.100}")
    texts = tuple(map(str, names))
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise error("Two classes have the same name", where=where, expected="each name once", found=f"{twice!r:.80}")
    return texts


def label_lines(
    data: bytes, where: str, error: type[CurationError], expected: str
) -> Iterator[tuple[int, Sequence[float]]]:
    """Yield the number and values of each non-blank line of a label file: an integer class, then shares."""
    for number, line in filled_lines(data, where, error, "The label file is not UTF-8 text"):
        fields = line.split()
        try:
            if max(map(len, fields)) > _LONGEST_NUMBER:
                raise ValueError
            values = [float(field) for field in fields]
            if not all(map(math.isfinite, values)) or not values[0].is_integer():
                raise ValueError
        except ValueError:
            message, line_text = "A line of a label file cannot be read", repr(line[:80])
            raise error(message, where=f"{where}: line {number}", expected=expected, found=line_text) from None
        yield number, values


def placeholder(number: int) -> str:
    """Return the placeholder name of a number without a class: YOLO numbers classes without gaps."""
    return f"unused_{number}"


def names_from_zero(categories: Categories) -> tuple[str, ...]:
    """Return the class names of a source's YAML by number, with placeholders for missing numbers."""
    name_of = dict(zip(categories.numbers, categories.names, strict=True))
    return tuple(name_of.get(number, placeholder(number)) for number in range(max(name_of, default=-1) + 1))


def read_yolo(path: Path, dataset: str, part: str, *, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source of a part of a YOLO folder.

    The photos of the part are its images, and their sizes (as displayed, after the orientation tag) convert shares into
    pixels. The label file of ``…/images/…/STEM.jpg`` is ``…/labels/…/STEM.txt``, or it is beside the
    photo. An image without a label file shows no object. A polygon becomes the box around it, and keypoints
    (``kpt_shape``) are skipped. Ids are the stems. An unused placeholder name (see `placeholder`) is not a class.

    Parameters
    ----------
    path : Path
        A folder with ``data.yaml`` or ``dataset.yaml``, or that file: its ``train``, ``val`` and ``test`` are folders
        of photos, or lists of photos (``.txt``), below the folder; ``names`` are the classes, numbered from 0.
    dataset, part : str
        The part may be ``""`` if the file names only one.
    bad_boxes : {"error", "drop"}

    Raises
    ------
    MissingFileError
        The part or a photo is missing, or all label files are missing; the error lists the paths that were tried.
    MissingExtraError
        Pillow is not installed.
    PathEscapeError
        The file names a path outside its folder.
    AnnotationFormatError, DuplicateIdError, BoxError
        A file is malformed (the error names the line), or the labels are oriented boxes.
    """
    from tqdm import tqdm

    yaml_path = yolo_file(path)
    if yaml_path is None:
        raise MissingFileError("The folder holds no data.yaml", where=str(path), expected=" or ".join(YAML_NAMES))
    yaml = InputFile(yaml_path, kind="data.yaml")
    content, names = safe_yaml(yaml.data, str(yaml_path)), yolo_names(yaml.data, str(yaml_path))
    for name in names:
        check_label(name, str(yaml_path))
    if isinstance(count := content.get("nc"), int) and count != len(names):
        message, count_text = "The YAML names another number of classes than it states", f"{len(names)} names"
        raise AnnotationFormatError(message, where=str(yaml_path), expected=f"nc: {count}", found=count_text)
    n_keypoint_values = keypoint_values(yaml.data, str(yaml_path))
    root = Path(os.path.normpath(yaml_path.absolute())).parent
    photos = _photos(content, yaml_path, root, part)
    labels = {photo: label_of(photo) for photo in photos}
    files = SmallFiles(root, [label for label in labels.values() if (root / label).is_file()])
    if not files.data:
        expected = f"such as {next(iter(labels.values()))}, for {len(photos):,} photos"
        hint = "labels/ lies beside images/, and has the same folders and stems"
        raise MissingFileError(
            "No photo of the part has a label file", where=str(yaml_path), expected=expected, hint=hint
        )
    natives = [native_of(PurePosixPath(photo).stem, namespace_of(dataset)) for photo in photos]
    check_unique(natives, "stem", lambda row: photos[row])
    for native, photo in zip(natives, photos, strict=True):
        check_image_name(native, photo)
    progress = tqdm(photos, "photo sizes", leave=False, disable=None)
    sizes = np.array([size_of_photo(root / photo) for photo in progress], np.int32).reshape(-1, 2)
    written = [
        (image, f"{label}: line {number}", values)
        for image, label in enumerate(labels.values())
        for number, values in label_lines(files.data.get(label, b""), label, AnnotationFormatError, _LINE)
    ]
    # Repeated lines are one object, as in Ultralytics.
    distinct: dict[tuple[float, ...], tuple[int, str, Sequence[float]]] = {}
    for line in written:
        distinct.setdefault((line[0], *line[2]), line)
    lines = list(distinct.values())
    boxes = np.array(
        [_box(values, len(names), n_keypoint_values, where) for _, where, values in lines], np.float64
    ).reshape(-1, 4)
    image = np.array([image for image, _, _ in lines], np.int32)
    # All polygons have four corners only if they are oriented boxes.
    has_corners = bool(lines) and not n_keypoint_values and {len(values) for *_, values in lines} == {_ORIENTED_FIELDS}
    if content.get("task") == "obb" or (has_corners and content.get("task") != "segment"):
        raise AnnotationFormatError(
            "The label files hold oriented boxes (OBB)",
            where=str(yaml_path),
            expected=_LINE,
            found=f"class and four corners in all {len(lines):,} lines",
            hint="only upright boxes are measured; task: segment in the YAML reads the boxes around the corners",
        )
    used = [int(values[0]) for _, _, values in lines]
    labelled = {*used}
    numbers = [number for number, name in enumerate(names) if name != placeholder(number) or number in labelled]
    category_of = {number: category for category, number in enumerate(numbers)}
    objects = Objects.of(image, [category_of[number] for number in used], boxes * np.tile(sizes, 2)[image])
    sound, dropped = sound_objects(objects, bad_boxes, lambda row: lines[row][1])
    if len(written) > len(lines):
        dropped = dropped | {"repeated lines of label files": len(written) - len(lines)}
    if ".txt" not in str(content.get(part)) and (spare := _without_photo(root, labels)):
        dropped = dropped | {"label files without a photo": spare}
    listing = "".join(f"{w} {h} {photo}\n" for (w, h), photo in zip(sizes, photos, strict=True)).encode()
    return Source.of(
        dataset,
        part,
        images=Images.of(natives, file_names=photos, widths=sizes[:, 0], heights=sizes[:, 1]),
        categories=Categories(
            tuple(numbers), tuple(names[number] for number in numbers), ("",) * len(numbers), numbering="yolo"
        ),
        objects=sound,
        files=(
            FileRecord(yaml_path.name, yaml.sha256, yaml.size, len(names)),
            record_of_many("labels/*.txt", files.data, len(lines)),
            record_of_many("widths and heights of the photos", {"sizes": listing}, len(photos)),
        ),
        dropped=dropped,
    )


def _photos(content: Mapping[str, Any], yaml_path: Path, root: Path, part: str) -> list[str]:
    """Return the photos of a part, as paths below the root, in the order of folders and lists."""
    offered = [key for key in _PARTS if content.get(key)]
    part = part or (offered[0] if len(offered) == 1 else "")
    if part not in offered:
        raise MissingFileError(
            f"The YAML names no photos of part {part!r}" if part else "The YAML names several parts",
            where=str(yaml_path),
            expected=f"one of {', '.join(offered)}" if offered else "train, val or test: a folder of photos",
            found=f"keys {', '.join(map(str, content))}"[:200],
            hint=f"--source NAME@{offered[0]}=FOLDER; of --truth FOLDER: --image-set={offered[0]}" if offered else None,
        )
    value = content[part]
    photos: list[str] = []
    for entry in value if isinstance(value, list) else [value]:
        path = _listed_path(content, yaml_path, root, str(entry), part)
        name = path.relative_to(root).as_posix()
        if path.is_dir():
            photos += [str(PurePosixPath(name) / photo) for _, photo, _ in files_below(str(path), _SUFFIXES)]
        else:
            photos += _listed_photos(root, path)
    if not photos:
        message, expected = f"No photos of part {part!r}", f"files *{', *'.join(_SUFFIXES)}"
        raise MissingFileError(
            message, where=f"{yaml_path}: {part}", expected=expected, found=f"none below {value}"[:200]
        )
    return photos


def _listed_photos(root: Path, path: Path) -> list[str]:
    """Return the photos of a list, as paths below the root.

    Tools write paths of other machines. If none of the photos exists, leading folders are removed from every line until
    all photos exist.
    """
    data = InputFile(path, kind="list of photos").data
    lines = filled_lines(data, str(path), AnnotationFormatError, "The list is not UTF-8")
    names = [line.removeprefix("./") for _, line in lines]
    if not any((root / name).is_file() for name in names):
        parts = [PurePosixPath(name).parts for name in names]
        for count in range(1, min(map(len, parts), default=0)):
            shorter = [str(PurePosixPath(*folders[count:])) for folders in parts]
            if all((root / name).is_file() for name in shorter):
                names = shorter
                break
    return [_below(root, name, f"{path}: line {number}") for name, (number, _) in zip(names, lines, strict=True)]


def _listed_path(content: Mapping[str, Any], yaml_path: Path, root: Path, entry: str, part: str) -> Path:
    """Return the folder or list of an entry: below ``path``, or below the folder of the file.

    Tools write paths of the training machine, and ``../train/images`` for a folder below that of the file.
    """
    inner = re.sub(r"\A(?:\.\./)+", "", entry)
    tried = dict.fromkeys(
        os.path.normpath(root / relative) for relative in (Path(str(content.get("path") or "")) / entry, entry, inner)
    )
    below = [Path(name) for name in tried if Path(name).is_relative_to(root)]
    existing = next((path for path in below if path.exists() and (path != root or entry in (".", "./"))), None)
    if existing is None:
        raise MissingFileError(
            f"The photos of part {part!r} are not below the folder of the YAML",
            where=f"{yaml_path}: {part}: {entry}"[:300],
            expected=" or ".join(map(str, below))[:300] or f"a folder of photos below {root}",
            hint="data.yaml lies in the folder that holds images/ and labels/; leave out path: or write path: .",
        )
    return existing


def _below(root: Path, name: str, where: str) -> str:
    """Return the path of a listed photo below the root. Links are followed, since only the size of a photo is read."""
    path = Path(os.path.normpath(root / name))
    if not path.is_relative_to(root) or "\0" in name:
        message = "A path leads outside its folder"
        raise PathEscapeError(message, where=where, expected="a path below it", found=name[:200])
    return path.relative_to(root).as_posix()


def _without_photo(root: Path, labels: Mapping[str, str]) -> int:
    """Return the number of label files without a photo, for folders that hold only the labels of the part."""
    folders = {PurePosixPath(label).parent for label in labels.values()}
    present = {str(folder / file.name) for folder in folders for file in (root / folder).glob("*.txt")}
    return len({label for label in present - {*labels.values()} if PurePosixPath(label).name != CLASS_NAMES})


def keypoint_values(data: bytes, where: str, error: type[CurationError] = AnnotationFormatError) -> int:
    """Return the number of keypoint values after each box: the product of ``kpt_shape`` in a YAML, 0 without it."""
    shape = safe_yaml(data, where, error).get("kpt_shape")
    if shape is None:
        return 0
    if not (isinstance(shape, list) and [*map(type, shape)] == [int, int] and shape[0] > 0 and shape[1] in (2, 3)):
        raise error(
            "The YAML does not state the shape of keypoints",
            where=where,
            expected="kpt_shape: [number of keypoints, 2 or 3]",
            found=f"{shape!r:.100}",
        )
    return math.prod(shape)


def _box(
    values: Sequence[float], n_classes: int, n_keypoint_values: int, where: str
) -> tuple[float, float, float, float]:
    """Return the box of a line as ``x, y, w, h`` in shares."""
    is_box = len(values) == _BOX_FIELDS + n_keypoint_values
    shares = values[1:_BOX_FIELDS] if is_box else values[1:]
    wrong, expected = "", _LINE
    if n_keypoint_values:
        expected = f"class cx cy w h, and {n_keypoint_values} values of keypoints, as kpt_shape in the YAML states"
    if not is_box and (n_keypoint_values or len(values) < _POLYGON_FIELDS or len(values) % 2 == 0):
        wrong = "has another number of values"
    elif not 0 <= values[0] < n_classes:
        wrong = f"has a class number outside 0 to {n_classes - 1}, the classes of the YAML"
    elif not all(0 <= share <= 1 + 1e-6 for share in shares):
        wrong = "is not in shares of the image"
    if wrong:
        hint = None
        if len(values) == _BOX_FIELDS + 1:
            hint = "a sixth number is a confidence: these are predictions, and go to --detections"
        elif len(values) > _BOX_FIELDS and not n_keypoint_values:
            hint = "labels with keypoints need kpt_shape: [number of keypoints, 2 or 3] in the YAML"
        raise AnnotationFormatError(
            f"A line of a label file {wrong}",
            where=where,
            expected=expected,
            found=" ".join(f"{value:g}" for value in values)[:100],
            hint=hint,
        )
    if is_box:
        cx, cy, w, h = shares
        return cx - w / 2, cy - h / 2, w, h
    low = min(shares[::2]), min(shares[1::2])
    return *low, max(shares[::2]) - low[0], max(shares[1::2]) - low[1]
