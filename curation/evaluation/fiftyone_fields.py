"""Outcomes of an evaluation as fields of a FiftyOne dataset: every detection with what became of it, counts, views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from curation.errors import UsageError
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
from curation.sources.fiftyone_view import (
    named_images,
    refuse_foreign_views,
    require_dataset,
    samples_of,
    told_name,
)

INFO_KEY = "curation_results"
"""Key of ``dataset.info``: by field, what its numbers rest on, and which fields and views are ours."""
COUNTS: dict[str, tuple[str, ...]] = {
    "true_positives": (TRUE_POSITIVE,),
    "false_positives": (OPEN_SET_ERROR, FALSE_POSITIVE, BACKGROUND),
    "open_set_errors": (OPEN_SET_ERROR,),
    "background": (BACKGROUND,),
    "ignored": (IGNORED,),
}
"""Fields of a sample that count detections, with the kinds that each counts."""
_A_OSE = "a_ose"
_STATES = {"unknown_found": FOUND, "unknown_called_known": CALLED_KNOWN, "unknown_missed": MISSED}
_OBJECTS = "objects"
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
    """Write outcomes into fields, and return what was written, summed over samples.

    Field `key` holds the detections, with ``outcome`` (one of `curation.evaluation.outcomes.KINDS`), ``iou``,
    ``matched`` (id of the object in the next field), ``matched_class``, ``on_unknown`` and ``kept_at``; ``KEY_objects``
    the objects that were scored, with ``role`` and ``outcome`` (one of `curation.evaluation.outcomes.STATES`); further
    fields count for each sample. See `curation.evaluation.result.Result.to_fiftyone`.
    """
    require_dataset(dataset)
    names = [*COUNTS, _A_OSE, *_STATES]
    fields = [key, f"{key}_{_OBJECTS}", *(f"{key}_{name}" for name in names)]
    views = [view_name(key, name) for name in _VIEWS]
    _make_room(dataset, key, fields, views)
    ids = [*dict.fromkeys(one for part in parts for one in part.truth.image_ids)]
    there = samples_of(dataset, ids, id_field)
    absent = [one for one in ids if one not in there]
    if absent and missing == "error":
        raise UsageError(
            "The dataset lacks images that were scored",
            where=told_name(dataset),
            expected=f"all {len(ids)} images",
            found=f"without {named_images(absent)}",
            hint="missing='skip' writes what became of the others; id_field=FIELD says what names the images",
        )
    info = dict(dataset.info.get(INFO_KEY, {}))
    dataset.info[INFO_KEY] = {**info, key: {**(about or {}), "fields": fields, "views": views}}
    dataset.save()
    return _write(dataset, parts, key, there)


def view_name(key: str, name: str) -> str:
    """Return the name of a saved view of a field."""
    return f"{key}: {name}"


def _make_room(dataset: Any, key: str, fields: Sequence[str], views: Sequence[str]) -> None:
    """Take away what an earlier call wrote under a key; refuse where something is there that is not ours."""
    said = dataset.info.get(INFO_KEY, {})
    before = said.get(key, {}) if isinstance(said, Mapping) else None
    schema = dataset.get_field_schema()
    foreign = [name for name in fields if name in schema and name not in (before or {}).get("fields", ())]
    if before is None or foreign:
        raise UsageError(
            "The dataset has a field of this name that is not ours",
            where=f"{told_name(dataset)}: {foreign[0] if foreign else f'info[{INFO_KEY!r}]'}"[:200],
            hint="key=NAME writes other fields",
        )
    refuse_foreign_views(dataset, views, before.get("views", ()))
    for name in before.get("views", ()):
        if name in dataset.list_saved_views():
            dataset.delete_saved_view(name)
    if ours := [name for name in before.get("fields", ()) if name in schema]:
        dataset.delete_sample_fields(ours)


def _write(dataset: Any, parts: Sequence[Outcomes], key: str, there: Mapping[str, str]) -> dict[str, int]:
    import fiftyone

    meanings = {
        key: "detections, with what became of each",
        f"{key}_{_OBJECTS}": "objects that were scored, with what became of each",
    }
    for name, meaning in meanings.items():
        dataset.add_sample_field(
            name, fiftyone.EmbeddedDocumentField, embedded_doc_type=fiftyone.Detections, description=meaning
        )
    counted = {f"{key}_{name}": f"detections: {', '.join(kinds)}" for name, kinds in COUNTS.items()}
    counted[f"{key}_{_A_OSE}"] = "A-OSE: detections of known classes on unknown objects"
    counted |= {f"{key}_{name}": f"unknown objects: {STATES[state]}" for name, state in _STATES.items()}
    for name, meaning in counted.items():
        dataset.add_sample_field(name, fiftyone.IntField, description=meaning)
    values: dict[str, dict[str, Any]] = {name: {} for name in (*meanings, *counted)}
    sizes = _sizes(dataset, there)
    totals = dict.fromkeys(counted, 0)
    for part in parts:
        for image, objects, detections, counts in _of_images(fiftyone, part, sizes):
            sample = there[image]
            for name, labels in ((f"{key}_{_OBJECTS}", objects), (key, detections)):
                held = values[name].setdefault(sample, fiftyone.Detections())
                held.detections.extend(labels)
            for name, count in counts.items():
                field = f"{key}_{name}"
                values[field][sample] = values[field].get(sample, 0) + count
                totals[field] += count
    for name, by_sample in values.items():
        dataset.set_values(name, by_sample, key_field="id", dynamic=name in meanings)
    _save_views(fiftyone, dataset, key)
    return {name.removeprefix(f"{key}_"): count for name, count in totals.items()}


def _sizes(dataset: Any, there: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return width and height of the photo of each image that the dataset holds."""
    columns = dataset.values(["id", "metadata.width", "metadata.height", "filepath"])
    found = {one: (width, height, path) for one, width, height, path in zip(*columns, strict=True)}
    sizes = {}
    for image, sample in there.items():
        width, height, path = found[sample]
        if not width or not height:
            raise UsageError(
                "A sample does not say how large its photo is", where=str(path)[:200], hint="dataset.compute_metadata()"
            )
        sizes[image] = (width, height)
    return sizes


def _of_images(
    fiftyone: Any, part: Outcomes, sizes: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, list[Any], list[Any], dict[str, int]]]:
    """Yield each image that the dataset holds: its objects, its detections, and how many there are of each kind."""
    truth, detections = part.truth, part.detections
    kinds, states = list(KINDS), list(STATES)
    rows_of = _grouped(detections.image, truth.n_images)
    objects_of = _grouped(truth.image, truth.n_images)
    for place, image in enumerate(truth.image_ids):
        if image not in sizes:
            continue
        size = np.array(sizes[image] * 2, np.float64)
        objects = {
            row: fiftyone.Detection(
                label=part.class_of(row),
                bounding_box=(truth.boxes[row] / size).tolist(),
                role="unknown" if part.unknown[row] else "known",
                outcome=states[part.state[row]],
            )
            for row in objects_of[place].tolist()
        }
        rows = rows_of[place].tolist()
        found = []
        for row in rows:
            matched = int(part.matched[row])
            found.append(
                fiftyone.Detection(
                    label=truth.classes[detections.label[row]],
                    bounding_box=(detections.boxes[row] / size).tolist(),
                    confidence=float(detections.scores[row]),
                    outcome=kinds[part.kind[row]],
                    iou=float(part.iou[row]),
                    matched=objects[matched].id if matched >= 0 else None,
                    matched_class=part.class_of(matched) if matched >= 0 else None,
                    on_unknown=bool(part.on_unknown[row]),
                    **({"kept_at": [at for at, kept in part.kept_at.items() if kept[row]]} if part.kept_at else {}),
                )
            )
        became = [kinds[one] for one in part.kind[rows].tolist()]
        counts = {name: sum(one in wanted for one in became) for name, wanted in COUNTS.items()}
        counts[_A_OSE] = int(part.on_unknown[rows].sum())
        own = [states[part.state[row]] for row in objects if part.unknown[row]]
        counts |= {name: own.count(state) for name, state in _STATES.items()}
        yield image, list(objects.values()), found, counts


def _grouped(image: Any, n_images: int) -> list[Any]:
    """Return the rows of each image, in their order."""
    order = np.argsort(image, kind="stable")
    return np.split(order, np.searchsorted(image[order], np.arange(1, n_images))) if n_images else []


def _save_views(fiftyone: Any, dataset: Any, key: str) -> None:
    of = fiftyone.ViewField
    for name, (count, kind, state) in _VIEWS.items():
        field = f"{key}_{count}"
        view = dataset.match(of(field) > 0)
        # Nothing else stands in the way of what is to be looked at.
        shown = of("outcome") == kind if kind else of("on_unknown")
        view = view.filter_labels(key, shown, only_matches=False)
        unknown = of("role") == "unknown"
        if state:
            unknown &= of("outcome") == state
        view = view.filter_labels(f"{key}_{_OBJECTS}", unknown, only_matches=False).sort_by(field, reverse=True)
        dataset.save_view(view_name(key, name), view, description=f"most {field} first")
