"""A source drawn in memory: which image shows which classes."""

from collections.abc import Callable, Mapping, Sequence

from curation.core.ids import coco_native
from curation.sources.source import Source
from tests.made_source import as_table, image_rows, make_source

Draw = Callable[..., Source]


def drawn_source(
    dataset: str,
    part: str,
    shown: Mapping[int, Sequence[str]],
    *,
    names: Sequence[str] | None = None,
    flagged: Callable[[int, str], bool] = lambda image, name: False,
    presence: bool = False,
) -> Source:
    """Return images with their classes: ``{number: [class, …]}``; `flagged` ones are difficult, or crowd in COCO."""
    numbers = list(shown)
    namespace = "coco" if dataset.startswith("coco") else dataset
    natives = [coco_native(number) if namespace == "coco" else f"{number:06d}" for number in numbers]
    known = list(names) if names else sorted({name for classes in shown.values() for name in classes})
    flag = "crowd" if namespace == "coco" else "difficult"
    source = make_source(
        dataset,
        namespace,
        image_rows(natives, numbers=numbers),
        [
            (image, name, [1.0, 2.0, 30.0, 40.0], {flag: flagged(number, name)})
            for image, number in enumerate(numbers)
            for name in shown[number]
        ],
        dict(enumerate(known, 1)),
        part=part,
        file=f"{dataset}_{part}.json",
        licence="stated",
    )
    return as_table(source) if presence else source
