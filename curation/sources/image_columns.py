"""Further columns of images, read on demand from a source's file: a table column, a key of COCO's records, paths."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import msgspec
import numpy as np

from curation.core.columns import encoded, first_places
from curation.core.errors import AnnotationFormatError, SourceError, UsageError
from curation.core.reading import InputFile
from curation.sources.integrity import KIND
from curation.sources.photos import file_names
from curation.sources.published_list import only_list, read_published
from curation.sources.source import Source
from curation.sources.table import SUFFIXES, image_rows, texts_of_part


def image_paths(source: Source) -> list[str]:
    """Return the path of each image as the source states it, else its id, in file order."""
    names = file_names(source)
    if not any(names) and source.origin is not None and source.origin.suffix == ".txt":
        names = only_list(read_published(source.origin)).paths.decode().split("\n")[:-1]
    return [name or native for name, native in zip(names, source.images.native.tolist(), strict=True)]


def image_column(source: Source, name: str) -> list[str]:
    """Return the text of a column for each image, in file order; ``""`` for an image without one.

    Parameters
    ----------
    source : Source
        Read from a table, or from COCO JSON.
    name : str
        A column of the table, or a key of the records in ``images``.

    Raises
    ------
    UsageError
        The source has no such column.
    AnnotationFormatError
        Two rows of the table state different values for one image, or a value is neither text nor number.
    SourceError
        The file has changed since it was read.
    """
    where = f"source {source.title}: column {name}"[:200]
    suffixes = [] if source.origin is None else [suffix.lower() for suffix in source.origin.suffixes]
    if source.origin is None or not {".json", *SUFFIXES} & {*suffixes}:
        raise UsageError(
            "The source has no columns",
            where=where,
            expected="a table (.csv, .tsv), or a COCO JSON file whose images have this key",
            hint=r"give a regular expression with a group, which is matched with the paths of the images: (patient\d+)",
        )
    content = InputFile(source.origin, kind=KIND)
    if [file.sha256 for file in source.files] != [content.sha256]:
        raise SourceError("The file has changed since it was read", where=f"{where}: {source.origin}")
    values, columns = _of_json(content, name) if ".json" in suffixes else _of_table(content, source, name)
    if not any(values):
        near = get_close_matches(name, columns, 1)
        raise UsageError(
            "Unknown column",
            where=where,
            expected=", ".join(columns)[:300],
            found=name[:80],
            hint=f"did you mean {near[0]}?" if near else r"or a regular expression with a group: (patient\d+)",
        )
    return values


def _of_table(content: InputFile, source: Source, name: str) -> tuple[list[str], Sequence[str]]:
    table = texts_of_part(content, source.part)
    columns: list[str] = table.column_names
    if name not in columns:
        return [], columns
    if len(table) == len(source.images):
        return table[name].to_pylist(), columns
    rows = image_rows(content, source.dataset, source.part)
    image_of, images = encoded(rows.natives)
    value_of, values = encoded(rows.table[name])
    # Images are in the order of their first rows.
    value_of_image = value_of[first_places(image_of, len(images))]
    if len(differing := np.flatnonzero(value_of != value_of_image[image_of])):
        row = int(differing[0])
        raise AnnotationFormatError(
            "The rows of an image state different values",
            where=f"{content.name}: column {name}, image {rows.natives[row]}"[:200],
            expected="the same value in all rows of an image",
            found=f"{values[value_of_image[image_of[row]]].as_py()!r} and {values[value_of[row]].as_py()!r}"[:120],
        )
    return values.take(value_of_image).to_pylist(), columns


def _of_json(content: InputFile, name: str) -> tuple[list[str], Sequence[str]]:
    record = msgspec.defstruct("Record", [("value", Any, msgspec.field(name=name, default=None))], gc=False)
    file = msgspec.defstruct("File", [("images", list[record])], gc=False)  # type: ignore[valid-type]
    values = [each.value for each in msgspec.json.decode(content.data, type=file).images]  # type: ignore[attr-defined]
    for row, value in enumerate(values):
        if not (value is None or isinstance(value, str | int | float)):
            raise AnnotationFormatError(
                "A value of the column is neither text nor number",
                where=f"{content.name}: images[{row}].{name}"[:200],
                found=repr(value)[:80],
            )
    texts = ["" if value is None else str(value) for value in values]
    if any(texts):
        return texts, ()
    keys = msgspec.json.decode(content.data, type=msgspec.defstruct("File", [("images", list[dict[str, msgspec.Raw]])]))
    return texts, sorted({key for each in keys.images[:1000] for key in each})  # type: ignore[attr-defined]
