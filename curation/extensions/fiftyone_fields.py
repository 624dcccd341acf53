"""Outcomes of an evaluation as fields of a FiftyOne dataset: the outcome of each detection, counts, saved views."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from curation.core.errors import UsageError
from curation.evaluation.outcomes import (
    BACKGROUND,
    CALLED_KNOWN,
    FALSE_POSITIVE,
    FOUND,
    IGNORED,
    KINDS,
    MISSED,
    OPEN_SET_ERROR,
    STATES,
    TRUE_POSITIVE,
    Outcomes,
)
from curation.sources.fiftyone_view import named_images, refuse_foreign_views, require_dataset, samples_of, shown_name

INFO_KEY = "curation_results"
"""Key of ``dataset.info``: for each field, the settings of its numbers, and the fields and views of this module."""
COUNTS: dict[str, tuple[str, ...]] = {
    "true_positives": (TRUE_POSITIVE,),
    "false_positives": (OPEN_SET_ERROR, FALSE_POSITIVE, BACKGROUND),
    "open_set_errors": (OPEN_SET_ERROR,),
    "background": (BACKGROUND,),
    "ignored": (IGNORED,),
}
"""Fields of a sample that count detections, with the kinds that each counts."""
_AOSE = "AOSE"
_STATES = {"unknown_found": FOUND, "unknown_called_known": CALLED_KNOWN, "unknown_missed": MISSED}
_OBJECTS = "objects"
# Okabe and Ito's vermilion and sky blue, which colour-blind readers can distinguish.
_KEY = re.compile("[A-Za-z][A-Za-z0-9_]*")
_COLOURS = ("#d55e00", "#56b4e9")
_CHANGED = "last_modified_at"
Data = dict[str, Any]
_VIEWS = {
    "open-set errors": ("open_set_errors", OPEN_SET_ERROR, ""),
    "unknown called known": ("unknown_called_known", OPEN_SET_ERROR, CALLED_KNOWN),
    "missed unknown": ("unknown_missed", "", MISSED),
    "found unknown": ("unknown_found", TRUE_POSITIVE, FOUND),
    "on background": ("background", BACKGROUND, ""),
}
"""Saved views: the count that sorts them, the kind of detections shown (``""``: those on unknown objects), the state of
unknown objects shown (``""``: any)."""


def write_fields(
    dataset: Any,
    parts: Sequence[Outcomes],
    key: str,
    *,
    id_field: str = "",
    missing: str = "error",
    about: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Write outcomes into fields, and return the sums over samples.

    Field `key` holds the detections, with ``outcome`` (one of `curation.evaluation.outcomes.KINDS`), ``iou``,
    ``matched`` (id of the object in the next field), ``matched_class``, ``on_unknown`` and ``kept_at``; ``KEY_objects``
    the objects that were scored, with ``role`` and ``outcome`` (one of `curation.evaluation.outcomes.STATES`); further
    fields are counts of each sample. See `curation.evaluation.result.Result.to_fiftyone`.
    """
    require_dataset(dataset)
    names = [*COUNTS, _AOSE, *_STATES]
    fields = [key, f"{key}_{_OBJECTS}", *(f"{key}_{name}" for name in names)]
    views = [view_name(key, name) for name in _VIEWS]
    _require_room(dataset, key, fields, views)
    ids = [image for part in parts for image in part.truth.image_ids]
    if twice := sorted(image for image, count in Counter(ids).items() if count > 1):
        raise UsageError(
            "Images of two parts have the same id",
            found=named_images(twice),
            hint="evaluate with manifest=MANIFEST: its ids are different in different parts",
        )
    samples = samples_of(dataset, ids, id_field)
    absent = [image for image in ids if image not in samples]
    if absent and missing == "error":
        raise UsageError(
            "The dataset lacks scored images",
            where=shown_name(dataset),
            expected=f"all {len(ids)} images",
            found=f"without {named_images(absent)}",
            hint="missing='skip' writes the outcomes of the others; id_field=FIELD names the field with the image ids",
        )
    sizes = _sizes(dataset, samples)
    # All checks are done: only now are the fields and views of an earlier call removed.
    before, schema = dataset.info.get(INFO_KEY, {}).get(key, {}), dataset.get_field_schema()
    for name in before.get("views", ()):
        if name in dataset.list_saved_views():
            dataset.delete_saved_view(name)
    if earlier_fields := [name for name in before.get("fields", ()) if name in schema]:
        dataset.delete_sample_fields(earlier_fields)
    info = dict(dataset.info.get(INFO_KEY, {}))
    dataset.info[INFO_KEY] = {**info, key: {**(about or {}), "fields": fields, "views": views}}
    dataset.save()
    return _write(dataset, parts, key, samples, sizes)


def view_name(key: str, name: str) -> str:
    """Return the name of a saved view of a field."""
    return f"{key}: {name}"


def _require_room(dataset: Any, key: str, fields: Sequence[str], views: Sequence[str]) -> None:
    """Refuse an invalid field name, and a field or saved view that this module did not write."""
    if not _KEY.fullmatch(key):
        raise UsageError(
            "Invalid name of a field", expected="letters, digits and _, a letter first", found=ascii(key)[:80]
        )
    records = dataset.info.get(INFO_KEY, {})
    before = records.get(key, {}) if isinstance(records, Mapping) else None
    schema = dataset.get_field_schema()
    foreign = [name for name in fields if name in schema and name not in (before or {}).get("fields", ())]
    if before is None or foreign:
        raise UsageError(
            "The dataset has a field of this name that curation did not write",
            where=f"{shown_name(dataset)}: {foreign[0] if foreign else f'info[{INFO_KEY!r}]'}"[:200],
            hint="key=NAME writes fields of another name",
        )
    refuse_foreign_views(dataset, views, before.get("views", ()))


def _write(
    dataset: Any, parts: Sequence[Outcomes], key: str, samples: Mapping[str, str], sizes: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    import fiftyone
    from bson import ObjectId
    from pymongo import UpdateOne

    counted = _declare(fiftyone, dataset, key, with_recalls=any(part.kept_at for part in parts))
    totals = dict.fromkeys(counted, 0)
    written_at = datetime.now(UTC)
    updates = []
    # FiftyOne's objects cost milliseconds for each detection; these are the documents that it stores for them.
    for part in parts:
        for image, objects, detections, counts in _of_images(part, sizes):
            values: dict[str, Any] = {f"{key}_{name}": count for name, count in counts.items()}
            for name, labels in ((key, detections), (f"{key}_{_OBJECTS}", objects)):
                values[name] = {"_cls": "Detections", "detections": labels}
            updates.append(UpdateOne({"_id": ObjectId(samples[image])}, {"$set": {**values, _CHANGED: written_at}}))
            for name, count in counts.items():
                totals[name] += count
    dataset._bulk_write(updates)
    # The new fields get colours in the App; fields of the user keep theirs.
    colours = {key: _COLOURS[0], f"{key}_{_OBJECTS}": _COLOURS[1]}
    scheme = dataset.app_config.color_scheme or fiftyone.ColorScheme()
    others = [field for field in scheme.fields or [] if field.get("path") not in colours]
    scheme.fields = [*others, *({"path": path, "fieldColor": colour} for path, colour in colours.items())]
    dataset.app_config.color_scheme = scheme
    dataset.save()
    _save_views(fiftyone, dataset, key)
    return totals


def _declare(fiftyone: Any, dataset: Any, key: str, *, with_recalls: bool) -> list[str]:
    """Declare the fields, so that the App can filter by them, and return the names of the counts of a sample."""
    text, number, flag = fiftyone.StringField, fiftyone.FloatField, fiftyone.BooleanField
    of_detections = {"outcome": text, "iou": number, "matched": text, "matched_class": text, "on_unknown": flag}
    boxed = (
        (key, "detections with their outcomes", of_detections),
        (f"{key}_{_OBJECTS}", "scored objects with their outcomes", {"role": text, "outcome": text}),
    )
    create, fields = fiftyone.core.odm.create_field, {}
    for name, meaning, attributes in boxed:
        fields[name] = create(
            name, fiftyone.EmbeddedDocumentField, embedded_doc_type=fiftyone.Detections, description=meaning
        )
        fields |= {f"{name}.detections.{attribute}": create(attribute, kind) for attribute, kind in attributes.items()}
    if with_recalls:
        fields[f"{key}.detections.kept_at"] = create("kept_at", fiftyone.ListField, subfield=text)
    counted = {name: f"detections: {', '.join(kinds)}" for name, kinds in COUNTS.items()}
    counted[_AOSE] = "A-OSE: detections of known classes on unknown objects"
    counted |= {name: f"unknown objects: {STATES[state]}" for name, state in _STATES.items()}
    for name, meaning in counted.items():
        fields[f"{key}_{name}"] = create(f"{key}_{name}", fiftyone.IntField, description=meaning)
    # In one call, because FiftyOne reloads the dataset after each call.
    dataset.add_dynamic_sample_fields(fields)
    return list(counted)


def _sizes(dataset: Any, samples: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return width and height of the photo of each image in the dataset."""
    columns = dataset.values(["id", "metadata.width", "metadata.height", "filepath"])
    photo_of = {sample_id: (width, height, path) for sample_id, width, height, path in zip(*columns, strict=True)}
    sizes = {}
    for image, sample in samples.items():
        width, height, path = photo_of[sample]
        if not width or not height:
            raise UsageError(
                "A sample has no width and height", where=str(path)[:200], hint="dataset.compute_metadata()"
            )
        sizes[image] = (width, height)
    return sizes


def _of_images(
    part: Outcomes, sizes: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, list[Data], list[Data], dict[str, int]]]:
    """Yield each image in the dataset: its objects, its detections, and the number of each kind."""
    truth, detections = part.truth, part.detections
    kinds, states = list(KINDS), list(STATES)
    rows_of = _grouped(detections.image, truth.n_images)
    objects_of = _grouped(truth.image, truth.n_images)
    for position, image in enumerate(truth.image_ids):
        if image not in sizes:
            continue
        size = np.array(sizes[image] * 2, np.float64)
        objects = {
            row: _label(
                part.class_of(row),
                truth.boxes[row] / size,
                role="unknown" if part.unknown[row] else "known",
                outcome=states[part.state[row]],
            )
            for row in objects_of[position].tolist()
        }
        rows = rows_of[position].tolist()
        labels = []
        for row in rows:
            matched = int(part.matched[row])
            attributes = {
                "confidence": float(detections.scores[row]),
                "outcome": kinds[part.kind[row]],
                "iou": float(part.iou[row]),
                "on_unknown": bool(part.on_unknown[row]),
            }
            if matched >= 0:
                attributes |= {"matched": str(objects[matched]["_id"]), "matched_class": part.class_of(matched)}
            if part.kept_at:
                attributes["kept_at"] = [recall for recall, is_kept in part.kept_at.items() if is_kept[row]]
            labels.append(_label(truth.classes[detections.label[row]], detections.boxes[row] / size, **attributes))
        row_kinds = [kinds[kind] for kind in part.kind[rows].tolist()]
        counts = {name: sum(kind in counted for kind in row_kinds) for name, counted in COUNTS.items()}
        counts[_AOSE] = int(part.on_unknown[rows].sum())
        unknown_states = [states[part.state[row]] for row in objects if part.unknown[row]]
        counts |= {name: unknown_states.count(state) for name, state in _STATES.items()}
        yield image, list(objects.values()), labels, counts


def _label(name: str, box: Any, **attributes: Any) -> Data:
    """Return a detection as a document of FiftyOne's database."""
    from bson import ObjectId

    plain = {"_id": ObjectId(), "_cls": "Detection", "attributes": {}, "tags": []}
    return {**plain, "label": name, "bounding_box": box.tolist(), **attributes}


def _grouped(image: Any, n_images: int) -> list[Any]:
    """Return the rows of each image, in their order."""
    order = np.argsort(image, kind="stable")
    return np.split(order, np.searchsorted(image[order], np.arange(1, n_images))) if n_images else []


def _save_views(fiftyone: Any, dataset: Any, key: str) -> None:
    field_value = fiftyone.ViewField
    for name, (count, kind, state) in _VIEWS.items():
        field = f"{key}_{count}"
        view = dataset.match(field_value(field) > 0)
        # The view shows only its own detections and objects.
        condition = field_value("outcome") == kind if kind else field_value("on_unknown") == True  # noqa: E712
        view = view.filter_labels(key, condition, only_matches=False)
        unknown = field_value("role") == "unknown"
        if state:
            unknown &= field_value("outcome") == state
        view = view.filter_labels(f"{key}_{_OBJECTS}", unknown, only_matches=False).sort_by(field, reverse=True)
        dataset.save_view(view_name(key, name), view, description=f"most {field} first")
