"""Small sources for the tests of proposals."""

from collections.abc import Mapping, Sequence

from curation.sources.source import Source
from tests.made_source import as_table, image_rows, make_source


def source_of(
    images: Mapping[str, Sequence[str]], categories: Sequence[str], *, dataset: str = "coco", boxes: bool = True
) -> Source:
    """Return a source whose images show some categories: one object for each mention."""
    native = list(images)
    rows = [(row, name, [1.0, 2.0, 3.0, 4.0]) for row, one in enumerate(native) for name in images[one]]
    source = make_source(
        dataset,
        "coco" if dataset.startswith("coco") else dataset,
        image_rows(native, size=(100, 100)),
        rows,
        dict(enumerate(categories, 1)),
        part="val",
        file="instances.json",
        licence="none",
    )
    return source if boxes else as_table(source)
