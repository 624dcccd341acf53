"""Parts as plain lists, one image a line: ``PART.txt``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from curation.core.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.publishing.formats.content import ContentImages, gather_images
from curation.publishing.formats.plan import Plan, PlannedFile, lines, safe_name
from curation.sources.source import Source

IdForm = Literal["namespaced", "native", "file_name", "number"]
NEEDS_SOURCES = ("file_name", "number")


def plan_lists(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source] | None = None, form: IdForm = "namespaced"
) -> Plan:
    """Return the plan of a list for each part, in the order of the part; a line that names an image again is kept.

    Parameters
    ----------
    sources : mapping of str to Source, optional
        Only needed for ``file_name`` and ``number``; where given for another form, the ids must exist there.
    form : {"namespaced", "native", "file_name", "number"}
        ``coco:000000000139``, ``000000000139``, ``000000000139.jpg`` or ``139``.

    Raises
    ------
    ExportError
        The form needs a source; an image has no file name, or a hostile one; no part or one twice.
    ManifestError, MissingListError
        See `curation.manifest.views.locate_images`.
    """
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    if form in NEEDS_SOURCES and not sources:
        raise ExportError(
            f"The id form {form!r} needs the sources",
            where="--set id_form",
            expected=" ".join(f"--source {slot}=PATH" for slot in manifest.part(parts[0]).sources),
        )
    lists = {part: _texts(manifest, part, sources, form) for part in parts}
    return Plan(
        files=tuple(PlannedFile(f"{part}.txt", lines(texts)) for part, texts in lists.items()),
        records=sum(map(len, lists.values())),
        counts={"images": sum(map(len, lists.values()))},
    )


def _texts(manifest: Manifest, part: str, sources: Mapping[str, Source] | None, form: IdForm) -> Sequence[str]:
    ids = manifest.ids(part)
    images = gather_images(manifest, [part], sources) if sources else None
    if images is not None and form in NEEDS_SOURCES:
        names = _file_names(images) if form == "file_name" else map(str, images.numbers.tolist())
        text_of = dict(zip(images.ids, names, strict=True))
        return [text_of[image] for image in ids]
    return ids if form == "namespaced" else [image.partition(":")[2] for image in ids]


def _file_names(images: ContentImages) -> list[str]:
    names: list[str] = images.file_names.tolist()
    for name, image in zip(names, images.ids, strict=True):
        if not name:
            raise ExportError("The source gives no file name for an image", where=image, hint="--set id_form=native")
        safe_name(name, image)
    return names
