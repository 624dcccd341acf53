"""Reader of FiftyOne datasets and views: original ids, boxes in pixels, classes with the ids that the dataset stores.

FiftyOne stores boxes as shares of the photo's size, and drops COCO's areas (of masks), polygons and licences. Its
exports renumber images; here the id of an image is the value of its id field, or the stem of its file.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from curation.core.errors import CurationWarning, SourceError, UsageError
from curation.core.fiftyone_database import load_fiftyone
from curation.core.ids import native_of
from curation.core.wording import examples
from curation.sources.source import Floats

PREFIX = "fiftyone:"
"""Prefix of a text that names a dataset of FiftyOne's database instead of a path: ``fiftyone:NAME[#VIEW]``."""
FILE_NAME = "fiftyone.json"
"""Name of the file that represents a dataset or view."""
STEMS = "filepath"
"""The id field that stands for the stems of the photos' file names."""
_FLAGS = ("iscrowd", "difficult", "ignore", "truncated", "occluded")
_USUAL_LABELS = ("ground_truth", "ground_truth_detections", "detections")
_DECIMALS = 6


def is_view(value: Any) -> bool:
    """Return whether an object is a FiftyOne dataset or view, without importing FiftyOne.

    Raises
    ------
    UsageError
        The dataset is deleted.
    """
    # For every other attribute of a deleted dataset, FiftyOne raises ValueError.
    kind = type(value)
    if not (hasattr(kind, "iter_samples") and hasattr(kind, "get_field_schema")):
        return False
    dataset = value if hasattr(kind, "deleted") else getattr(value, "_dataset", None)
    if getattr(dataset, "deleted", False):
        raise UsageError("The dataset of FiftyOne is deleted", where=str(getattr(dataset, "name", ""))[:200])
    return True


def is_named(path: Path | str) -> bool:
    """Return whether a text names a dataset of FiftyOne's database (``fiftyone:NAME[#VIEW]``), not an existing file."""
    return str(path).startswith(PREFIX) and not Path(path).exists()


def load_named(name: Path | str) -> Any:
    """Return the dataset, or its saved view, that ``fiftyone:NAME[#VIEW]`` names.

    Raises
    ------
    MissingExtraError, ReviewError
        FiftyOne is not installed, or its database does not answer.
    UsageError
        The dataset or saved view does not exist; the message lists the existing ones.
    """
    fiftyone = load_fiftyone()
    dataset, hash_sign, view = str(name).removeprefix(PREFIX).partition("#")
    names = fiftyone.list_datasets()
    if dataset not in names:
        raise UsageError(
            "FiftyOne's database has no such dataset",
            where=str(name)[:200],
            expected=", ".join(map(str, names))[:400] or "a dataset: the database is empty",
        )
    loaded = fiftyone.load_dataset(dataset)
    if not hash_sign:
        return loaded
    if view not in loaded.list_saved_views():
        raise UsageError(
            "The dataset has no such saved view",
            where=str(name)[:200],
            expected=", ".join(loaded.list_saved_views())[:400] or "a saved view: the dataset has none",
        )
    return loaded.load_saved_view(view)


def sample_ids(view: Any, id_field: str = "") -> list[Any]:
    """Return the image id that each sample states: a number, a text, or None.

    Parameters
    ----------
    id_field : str
        Field of numbers or texts; ``filepath`` for the stems of file names. By default the only field called
        ``coco_id``, ``…_coco_id`` (as FiftyOne's importer names it) or ``image_id``; where there is none, stems, with a
        warning.

    Raises
    ------
    UsageError
        The field does not exist, or several fields may hold the ids.
    """
    schema = view.get_field_schema()
    usual = [name for name in schema if name in ("coco_id", "image_id") or name.endswith("_coco_id")]
    if not id_field and len(usual) > 1:
        raise UsageError(
            "Several fields of the samples may name the image",
            where=shown_name(view),
            expected="id_field=FIELD",
            found=", ".join(usual),
        )
    if id_field and id_field not in schema:
        raise UsageError(
            "The samples have no such field",
            where=f"{shown_name(view)}: {id_field}"[:200],
            expected=", ".join(usual) or f"a field of ids, or {STEMS!r} for the stems of file names",
        )
    if not id_field and not usual:
        warnings.warn(
            f"{shown_name(view)}: the samples have no field coco_id or image_id: ids are the stems of their files",
            CurationWarning,
            stacklevel=4,
        )
    field = id_field or (usual or [STEMS])[0]
    values = view.values(field)
    if field == STEMS:
        return [PurePosixPath(_file_name(path)).stem for path in values]
    return list(values)


def samples_of(view: Any, ids: Sequence[str], id_field: str = "") -> dict[str, str]:
    """Return FiftyOne's sample id for each namespaced image id of a dataset or view.

    A sample that states a number or a native id without namespace is matched with the image in `ids` that has it.

    Raises
    ------
    UsageError
        A sample matches two images, or two samples match the same image.
    """
    requested_ids = set(ids)
    spaces = sorted({image.partition(":")[0] for image in ids})
    sample_of: dict[str, str] = {}
    for value, sample in zip(sample_ids(view, id_field), view.values("id"), strict=True):
        text = "" if value is None else str(value)
        plain = {text} | {f"{space}:{text}" for space in spaces}
        candidates = plain & requested_ids or {f"{space}:{native_of(text, space)}" for space in spaces} & requested_ids
        if len(candidates) > 1 or any(image in sample_of for image in candidates):
            raise UsageError(
                "A sample matches two images" if len(candidates) > 1 else "Two samples match the same image",
                where=f"{shown_name(view)}: {text}"[:200],
                found=", ".join(sorted(candidates)),
                hint="id_field=FIELD with ids such as coco:000000000139",
            )
        sample_of |= dict.fromkeys(candidates, sample)
    return sample_of


def require_dataset(dataset: Any) -> Any:
    """Return a FiftyOne dataset; raise `UsageError` for a view or another object."""
    if not (is_view(dataset) and hasattr(dataset, "save_view")):
        raise UsageError(
            "Fields, tags and views are written to a dataset of FiftyOne",
            expected="a fiftyone.Dataset",
            found=type(dataset).__name__,
            hint="of a view: fiftyone.load_dataset(view.dataset_name)" if is_view(dataset) else None,
        )
    return dataset


def refuse_foreign_views(dataset: Any, names: Sequence[str], ours: Collection[str]) -> None:
    """Raise `UsageError` if a saved view that we did not create has one of `names`, or its short form."""
    from fiftyone.core.utils import to_slug

    foreign = {to_slug(name): name for name in dataset.list_saved_views() if name not in ours}
    conflicts = [foreign[to_slug(name)] for name in names if to_slug(name) in foreign]
    if conflicts:
        raise UsageError(
            "The dataset has a saved view of this name that curation did not create",
            where=f"{shown_name(dataset)}: {conflicts[0]}"[:200],
            hint="rename or delete it (dataset.delete_saved_view), or choose other names",
        )


def named_images(ids: Sequence[str]) -> str:
    """Return a text about missing images for errors: their number and the first ones."""
    return f"{len(ids)} images: {examples(ids)}"


def shown_name(view: Any) -> str:
    """Return the name of a dataset or view for errors."""
    name = getattr(view, "dataset_name", None) or getattr(view, "name", "")
    return f"{PREFIX}{name}"[:200]


def coco_of_view(
    view: Any, *, namespace: str, id_field: str = "", label_field: str = "", predicted: bool = False
) -> dict[str, Any]:
    """Return a dataset or view as a COCO dictionary, images by ascending id.

    Parameters
    ----------
    namespace : str
        Namespace of the ids: ids that state a namespace must state this one.
    id_field : str
        See `sample_ids`.
    label_field : str
        Field of detections; by default ``ground_truth``, or the only one whose boxes have no confidence.
    predicted : bool
        Whether the field holds predictions; annotations have no confidence.

    Returns
    -------
    dict
        Boxes ``x, y, w, h`` in pixels, rounded to six decimals, which restores the boxes of an annotation file. Classes
        have the ids of ``dataset.info`` (`listed_categories`), else 1, 2, … by name, which no detection may use.
        ``area``, ``iscrowd``, ``difficult``, ``ignore``, ``truncated``, ``occluded`` and ``pose`` are those of the
        detections' attributes, where present.

    Raises
    ------
    UsageError
        No field or several fields may hold the boxes, or the field holds predictions; a sample has no id or does not
        state the size of its photo; the samples are not images.
    SourceError
        A detection has no label or box, or a class that ``dataset.info`` does not number.
    """
    if getattr(view, "media_type", "image") not in ("image", None):
        raise UsageError(
            "The samples are not images", where=shown_name(view), expected="images", found=str(view.media_type)
        )
    field = _label_field(view, label_field, predicted=predicted)
    ids = _own_ids(view, sample_ids(view, id_field), namespace)
    paths, widths, heights = (view.values(name) for name in ("filepath", "metadata.width", "metadata.height"))
    unsized = [path for path, w, h in zip(paths, widths, heights, strict=True) if not w or not h]
    if unsized:
        raise UsageError(
            "A sample does not state the size of its photo",
            where=str(unsized[0])[:200],
            found=f"{len(unsized)} such samples",
            hint="run dataset.compute_metadata()",
        )
    order = sorted(range(len(ids)), key=lambda at: ids[at])
    images = [
        {"id": ids[at], "file_name": _file_name(paths[at]), "width": int(widths[at]), "height": int(heights[at])}
        for at in order
    ]

    def attribute(name: str) -> list[Any]:
        values = view.values(f"{field}.detections.{name}")
        return [value for at in order for value in values[at] or ()]

    counts = [len(boxes or ()) for boxes in view.values(f"{field}.detections.bounding_box")]
    of_image = [image for image, at in zip(images, order, strict=True) for _ in range(counts[at])]
    names, shares = attribute("label"), attribute("bounding_box")
    _check_objects(view, names, shares, of_image)
    sizes = np.array([(image["width"], image["height"]) * 2 for image in of_image], np.float64).reshape(-1, 4)
    pixels = in_pixels(np.array(shares, np.float64).reshape(-1, 4), sizes)
    categories = _categories(view, names)
    number = {category["name"]: category["id"] for category in categories}
    columns = {name: attribute(name) for name in (*_FLAGS, "area", "pose")} | {"score": attribute("confidence")}
    annotation_ids = attribute("coco_id")
    if not all(isinstance(value, int) for value in annotation_ids) or len(set(annotation_ids)) < len(annotation_ids):
        annotation_ids = [*range(1, len(names) + 1)]
    annotations = [
        {
            "id": int(annotation_ids[row]),
            "image_id": image["id"],
            "category_id": number[names[row]],
            "bbox": box,
            **{key: _plain(column[row]) for key, column in columns.items() if column[row] is not None},
        }
        for row, (image, box) in enumerate(zip(of_image, pixels.tolist(), strict=True))
    ]
    return {"images": images, "annotations": annotations, "categories": categories}


def _file_name(path: Any) -> str:
    return PurePosixPath(str(path).replace("\\", "/")).name


def results_of_view(view: Any) -> list[dict[str, Any]]:
    """Return the detections of the field ``predictions`` as COCO results, with class names as ``category``.

    Raises
    ------
    UsageError, SourceError
        See `coco_of_view`; or a detection has no confidence.
    """
    coco = coco_of_view(view, namespace="", label_field="predictions", predicted=True)
    names = {category["id"]: category["name"] for category in coco["categories"]}
    unscored = [row for row in coco["annotations"] if "score" not in row]
    if unscored:
        raise SourceError(
            "A detection has no confidence",
            where=f"{shown_name(view)}: predictions, image {unscored[0]['image_id']}"[:200],
            found=f"{len(unscored)} of {len(coco['annotations'])} detections",
        )
    return [
        {key: row[key] for key in ("image_id", "bbox", "score")} | {"category": names[row["category_id"]]}
        for row in coco["annotations"]
    ]


def in_pixels(shares: Floats, sizes: Floats) -> Floats:
    """Return boxes in pixels from shares of the photo's size.

    Division and multiplication change the last digits; rounding restores those of annotation files.

    Parameters
    ----------
    shares, sizes : ndarray of float64, shape (n, 4)
        ``x, y, w, h`` from 0 to 1; width, height, width, height in pixels.
    """
    return np.round(shares * sizes, _DECIMALS)


def _label_field(view: Any, requested: str, *, predicted: bool) -> str:
    """Return the requested field of boxes, else the usual or only one. Boxes with a confidence are predictions.

    Parameters
    ----------
    predicted : bool
        Whether to return a field of predictions rather than ground truth.
    """
    schema = view.get_field_schema()
    kinds = {name: getattr(getattr(field, "document_type", None), "__name__", "") for name, field in schema.items()}
    boxed = [name for name, kind in kinds.items() if kind == "Detections"]
    scored = {} if predicted else {name: _count_confidences(view, name) for name in boxed}
    annotated = [name for name in boxed if not scored.get(name)]
    if not requested:
        usual = [name for name in _USUAL_LABELS if name in annotated]
        requested = (usual or (annotated if len(annotated) == 1 else [""]))[0]
    if requested not in boxed:
        raise UsageError(
            "The samples have no such field of boxes" if requested else "The field of the boxes is ambiguous",
            where=f"{shown_name(view)}: {requested}".removesuffix(": ")[:200],
            expected="label_field=" + (" or ".join(annotated) or "a field of Detections without confidence"),
            found=kinds.get(requested)
            or ", ".join(f"predictions in {name}" for name in boxed if scored.get(name))
            or None,
            hint="predictions go to --detections" if any(scored.values()) else None,
        )
    if requested not in annotated:
        raise UsageError(
            "The label field holds predictions, not ground truth",
            where=f"{shown_name(view)}: {requested}"[:200],
            expected="label_field=" + (" or ".join(annotated) or "a field of Detections without confidence"),
            found=f"{scored[requested]:,} boxes with a confidence",
            hint=f'view.set_field("{requested}.detections.confidence", None) makes annotations of checked predictions',
        )
    return requested


def _count_confidences(view: Any, field: str) -> int:
    values = view.values(f"{field}.detections.confidence")
    return sum(value is not None for of_sample in values for value in of_sample or ())


def _own_ids(view: Any, values: Sequence[Any], namespace: str) -> list[Any]:
    """Return ids as an annotation file of the dataset would state them: all numbers, or all texts without namespace."""
    odd = [
        row
        for row, value in enumerate(values)
        if not isinstance(value, int | str) or isinstance(value, bool) or value == ""
    ]
    if odd:
        raise UsageError(
            "A sample has no id",
            where=f"{shown_name(view)}: {view.values('filepath')[odd[0]]}"[:300],
            expected="a number or a text in the field of ids",
            found=f"{values[odd[0]]!r:.60}; {len(odd)} such samples",
            hint=f"id_field={STEMS!r} takes the stems of file names",
        )
    ids = [value if isinstance(value, str) else int(value) for value in values]
    for row, value in enumerate(ids):
        space, colon, native = str(value).partition(":")
        if not colon or isinstance(value, int):
            continue
        if namespace and space != namespace:
            raise UsageError(
                "A sample belongs to another dataset",
                where=f"{shown_name(view)}: {value}"[:200],
                expected=f"ids of {namespace}",
                hint="choose a view with samples of a single dataset",
            )
        ids[row] = native
    texts = [text for text in ids if isinstance(text, str)]
    if namespace == "coco" and all(text.isascii() and text.isdigit() for text in texts):
        return [int(value) for value in ids]
    if texts and len(texts) < len(ids):
        return [str(value) for value in ids]
    return [native_of(text, namespace) for text in texts] or ids


def _check_objects(
    view: Any, names: Sequence[Any], shares: Sequence[Any], of_image: Sequence[Mapping[str, Any]]
) -> None:
    for name, share, image in zip(names, shares, of_image, strict=True):
        if not isinstance(name, str) or not name or share is None or len(share) != 4 or None in share:
            raise SourceError(
                "A detection has no label or no box",
                where=f"{shown_name(view)}: image {image['id']}"[:200],
                expected="a label, and a box of four numbers",
                found=f"{name!r:.60}, {share!r:.80}",
            )


def listed_categories(view: Any) -> list[Mapping[str, Any]]:
    """Return the classes that ``dataset.info["categories"]`` lists with their ids; empty if it lists none."""
    listed = view.info.get("categories") if isinstance(view.info, Mapping) else None
    return [*listed] if isinstance(listed, list | tuple) and all(map(_is_category, listed)) else []


def _categories(view: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the classes that ``dataset.info`` lists with their ids, else those of the boxes, numbered by name."""
    listed = listed_categories(view)
    if not listed:
        return [{"id": number, "name": name} for number, name in enumerate(sorted(set(names)), 1)]
    categories = [
        {"id": entry["id"], "name": entry["name"]}
        | ({"supercategory": entry["supercategory"]} if isinstance(entry.get("supercategory"), str) else {})
        for entry in listed
    ]
    unlisted = sorted(set(names) - {category["name"] for category in categories})
    if unlisted:
        raise SourceError(
            "The boxes have a class that dataset.info does not number",
            where=f"{shown_name(view)}: info['categories']",
            found=", ".join(unlisted)[:200],
            hint="add it there, or remove the list: classes are then numbered by name",
        )
    return categories


def _is_category(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("id"), int) and isinstance(entry.get("name"), str)


def _plain(value: Any) -> Any:
    """Return a flag as a number, and a number of a database type as a Python number."""
    return int(value) if isinstance(value, int) else value
