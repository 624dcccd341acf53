"""The file beside an export that tells which class each annotation had before the label view renamed it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from curation.publishing.content import Content
from curation.publishing.plan import PlannedFile, joined
from curation.sources.source import Int64s

_encode = msgspec.json.Encoder().encode

WARNING = "It names the classes of unknown objects: it is for analysis, and must not be given to a detector."
NOTE = f"PART.original_categories.json holds the original category of every annotation. {WARNING}"


def plan_original_categories(content: Content, annotation_ids: Int64s, stem: str) -> PlannedFile:
    """Return the file ``STEM.original_categories.json``.

    Its ``annotations`` hold ``id``, ``category_id`` and ``name`` of every annotation of the export, in its order:
    category and name as the source itself gives them. The export does not hold them where the manifest has tasks: the
    test view of a task knows no class beyond it (annotation specificity of Revisiting Open World Object Detection).

    Parameters
    ----------
    annotation_ids : ndarray of int64, shape (m,)
        The id that each object of `content` has in the export.
    """
    objects = content.objects

    def records() -> Iterator[dict[str, int | str]]:
        columns = (annotation_ids, objects.original_number, objects.original)
        for own, category, original in zip(*(column.tolist() for column in columns), strict=True):
            yield {"id": own, "category_id": category, "name": original}

    def chunks() -> Iterator[bytes]:
        parts = [part.name for part in content.parts]
        yield b'{"info":' + _encode(
            {"description": "Original categories", "parts": parts, "warning": WARNING}
        )
        yield b',\n"annotations":[\n'
        yield from joined(records())
        yield b"]}\n"

    return PlannedFile(name=f"{stem}.original_categories.json", chunks=chunks)
