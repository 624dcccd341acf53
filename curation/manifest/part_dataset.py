"""A part as pictures with their targets: a dataset for PyTorch's data loaders, and one of Hugging Face."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from curation.core.errors import CurationWarning, ManifestError, MissingExtraError, MissingFileError, install_command
from curation.core.wording import counted
from curation.manifest.header import UNKNOWN_ID, ClassEntry, PartEntry, classes_in
from curation.manifest.views import Listing, PartImages, locate_images, picked, raw_column, stated_pairs, view_objects
from curation.sources.photos import BrokenPhotoError, decode_photo, photos_of_ids, read_photo
from curation.sources.source import Int32s, Int64s, Source

if TYPE_CHECKING:
    import datasets
    from PIL.Image import Image

Target = Literal["boxes", "coco", "label", "id"]
Columns = Mapping[str, Any]
"""Columns of the objects of a part, by name; the m rows are grouped by image, in the order of the list."""


@dataclass(frozen=True)
class PartDataset:
    """The photos of a part with their targets, as a map-style dataset that the workers of a data loader can use.

    Attributes
    ----------
    ids : tuple of str
        The image of each item.
    paths : mapping of str to Path
        The photo of each image.
    target : {"boxes", "coco", "label", "id"}
        Content of an item beside its picture: see `curation.Manifest.dataset`.
    transforms : callable or None
    sizes : ndarray of int32, shape (n, 2), or None
        Width and height of each item in pixels, 0 if the source does not state them.
    numbers : ndarray of int64, shape (n,), or None
        Integer ids of the images; for ``label`` the class of each image.
    objects : mapping of str to ndarray
        Columns of the m objects: ``boxes`` (``x, y, w, h``), ``labels``, ``area``, ``iscrowd``, ``ignore``.
    starts : mapping of str to (int, int)
        Start and end of the objects of each image.
    """

    ids: tuple[str, ...]
    paths: Mapping[str, Path]
    target: Target
    transforms: Callable[..., Any] | None = None
    sizes: Int32s | None = None
    numbers: Int64s | None = None
    objects: Columns = field(default_factory=dict)
    starts: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"PartDataset({len(self):,} photos, target={self.target!r})"

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Any:
        """Return picture and target of an item, after the transforms.

        Raises
        ------
        MissingFileError
            The photo cannot be read, or has another size than its annotations state.
        """
        pair = self._picture(index), self._target(index)
        return pair if self.transforms is None else self.transforms(*pair)

    def _picture(self, index: int) -> Image:
        path = self.paths[self.ids[index]]
        try:
            picture = decode_photo(read_photo(path))
        except BrokenPhotoError as error:
            raise MissingFileError(f"A photo cannot be used: {error}", where=str(path)) from None
        annotated_size = (0, 0) if self.sizes is None else tuple(self.sizes[index].tolist())
        if all(annotated_size) and picture.size != annotated_size:
            from PIL import ImageOps

            # Some annotations belong to the photo after its EXIF rotation.
            stored_size, picture = picture.size, ImageOps.exif_transpose(picture)
            if picture.size != annotated_size:
                message = "The size of a photo differs from that in its annotations, so boxes do not fit"
                sizes = ("{} x {}".format(*size) for size in (annotated_size, stored_size))
                raise MissingFileError(message, where=str(path), expected=next(sizes), found=next(sizes))
        return picture

    def _target(self, index: int) -> Any:
        image_id = self.ids[index]
        if self.numbers is None:
            return image_id
        number = int(self.numbers[index])
        if self.target == "label":
            return number
        objects = self.objects_of(image_id)
        if self.target == "coco":
            names = {"boxes": "bbox", "labels": "category_id"}
            columns = {names.get(name, name): column.tolist() for name, column in objects.items()}
            rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
            annotations = [{"image_id": number, **row, "iscrowd": int(row["iscrowd"])} for row in rows]
            return {"image_id": number, "curation_id": image_id, "annotations": annotations}
        import torch

        boxes = objects["boxes"].copy()
        boxes[:, 2:] += boxes[:, :2]
        columns = {**objects, "boxes": boxes.astype(np.float32), "area": objects["area"].astype(np.float32)}
        columns |= {name: objects[name].astype(np.int64) for name in ("labels", "iscrowd")}
        return {"image_id": image_id, **{name: torch.from_numpy(column) for name, column in columns.items()}}

    def objects_of(self, image_id: str) -> dict[str, Any]:
        """Return the columns of the objects of an image, in file order."""
        start, end = self.starts[image_id]
        return {name: column[start:end].copy() for name, column in self.objects.items()}


def part_dataset(
    manifest: Listing,
    part: str,
    root: Path | str | Mapping[str, Path],
    sources: Mapping[str, Source],
    target: Target | None = None,
    transforms: Callable[..., Any] | None = None,
    *,
    items: bool = True,
) -> PartDataset:
    """Return the photos of a part with targets from its sources (see `curation.Manifest.dataset`).

    Parameters
    ----------
    items : bool
        Whether items are used: tensors then need PyTorch, and a warning reports integer ids that are not those of the
        sources.
    """
    located, ids, entry = locate_images(manifest, part, sources), manifest.ids(part), manifest.part(part)
    sizes = np.stack([picked(located, name) for name in ("widths", "heights")], axis=1)
    if target is None:
        target = "boxes" if all(source.objects is not None for source in located.sources) else "label"
    if target == "boxes" and items:
        try:
            import torch  # noqa: F401
        except ImportError:
            message = "Targets with boxes are tensors of PyTorch, which is not installed"
            raise MissingExtraError(message, hint="pip install torch; or target='coco' for plain numbers") from None
    objects: dict[str, Any] = {}
    starts: dict[str, tuple[int, int]] = {}
    if target == "label":
        numbers = _class_labels(classes_in(manifest.header, entry), entry, ids, located)
    else:
        viewed = view_objects(manifest, part, sources)
        subject = "A dataset of boxes"
        objects["boxes"] = raw_column(viewed, lambda _, columns: columns.boxes, subject)
        objects["labels"] = viewed.category_id
        objects["area"] = raw_column(viewed, lambda _, columns: columns.areas, subject)
        objects |= {"iscrowd": viewed.crowd, "ignore": viewed.ignore}
        bounds = np.searchsorted(viewed.image, np.arange(len(ids) + 1)).tolist()
        for line, image_id in enumerate(ids):
            # Only the first line of a repeated image has its objects.
            starts.setdefault(image_id, (bounds[line], bounds[line + 1]))
        numbers = _integer_ids(ids, located, warn=items and target == "coco")
    paths = photos_of_ids(ids, root, located.sources)
    return PartDataset(ids, paths, target, transforms, sizes, numbers, objects, starts)


def _class_labels(classes: Sequence[ClassEntry], entry: PartEntry, ids: Sequence[str], located: PartImages) -> Int64s:
    """Return the class index of each image after the label view, -1 for unknown."""
    treatments = [getattr(entry.view, cls.role) for cls in classes]
    index = [UNKNOWN_ID if how == "rename:unknown" else cls.index for how, cls in zip(treatments, classes, strict=True)]
    indices_of: dict[str, dict[int, str]] = {image: {} for image in ids}
    for line, label in zip(*(column.tolist() for column in stated_pairs(classes, located)), strict=True):
        if label < 0:
            raise ManifestError("An image shows a class that has no role in the manifest", where=ids[line])
        if treatments[label] != "drop":
            indices_of[ids[line]].setdefault(index[label], classes[label].name)
    for image, names in indices_of.items():
        if len(names) != 1:
            raise ManifestError(
                f"An image of part {entry.name!r} shows {counted(len(names), 'class', 'classes')}, so it has no label",
                where=image,
                expected="one class an image",
                found=", ".join(map(repr, list(names.values())[:5])) or "none",
                hint="manifest.dataset(part, root, target='id') gives pictures without labels",
            )
    return np.array([next(iter(indices_of[image])) for image in ids], np.int64)


def _integer_ids(ids: Sequence[str], located: PartImages, *, warn: bool) -> Int64s:
    """Return the image ids of the annotation files; if they are not unique numbers, positions in the list from 1."""
    numbers: Int64s = picked(located, "numbers")
    are_numbers = all(source.images.text_ids is None for source in located.sources)
    if are_numbers and len(set(numbers.tolist())) == len(set(ids)):
        return numbers
    if warn:
        message = "image_id counts the images of the part from 1, because the ids of its sources are not unique numbers"
        warnings.warn(f"{message}: name images by curation_id in detections", CurationWarning, stacklevel=5)
    number_of = {image: number for number, image in enumerate(dict.fromkeys(ids), 1)}
    return np.array([number_of[image] for image in ids], np.int64)


def to_huggingface(dataset: PartDataset, classes: Sequence[ClassEntry]) -> datasets.Dataset:
    """Return a dataset of Hugging Face with the photos and targets of a part (see `curation.Manifest.to_datasets`)."""
    try:
        from datasets import ClassLabel, Dataset, Features, Image, Sequence, Value
    except ImportError:
        message, hint = "The package datasets is not installed", f"{install_command('publish')} pillow"
        raise MissingExtraError(message, hint=hint) from None
    # If classes count from 1, class 0 is the background.
    names = {0: "background"} | {cls.index: cls.name for cls in classes if cls.index >= 0}
    ordered_names = [names[index] for index in sorted(names)]
    category = ClassLabel(names=ordered_names) if max(names) < len(names) else Value("int64")
    features: dict[str, Any] = {"image": Image(), "image_id": Value("string")}
    columns: dict[str, Any] = {
        "image": [str(dataset.paths[image]) for image in dataset.ids],
        "image_id": list(dataset.ids),
    }
    if dataset.target == "label":
        features["label"], columns["label"] = category, dataset.numbers
    else:
        box, number, flag = Sequence(Value("float32"), length=4), Value("float32"), Value("bool")
        kinds = {"bbox": box, "category": category, "area": number, "iscrowd": flag, "ignore": flag}
        features["objects"] = {name: Sequence(kind) for name, kind in kinds.items()}
        rows = (dataset.objects_of(image).values() for image in dataset.ids)
        columns["objects"] = [dict(zip(kinds, (column.tolist() for column in row), strict=True)) for row in rows]
    return Dataset.from_dict(columns, features=Features(features))
