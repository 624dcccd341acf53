"""`export`: parts of a manifest in a format of detectors, or in the layout of a benchmark's authors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from curation.core.arguments import checked
from curation.manifest.manifest import Manifest
from curation.publishing.formats.plan import FormatOptions
from curation.sources.source_specs import Reading, Sources

if TYPE_CHECKING:
    from curation.publishing.exporting import Exported

_Form = Literal["coco", "voc", "yolo", "txt", "owod", "elephant-json", "imagenet-csv"]


@checked
def export(
    manifest: str | Path | Manifest,
    part: Annotated[Sequence[str] | str, Meta(min_length=0)],
    form: Annotated[_Form | str, "--format"],
    out: Path,
    *,
    sources: Sources | None = None,
    each: bool = False,
    photos: Annotated[Mapping[str, Path] | Path | None, "[SOURCE=]ROOT"] = None,
    options: FormatOptions | None = None,
    reading: Reading | None = None,
) -> Exported:
    """Write parts as COCO JSON, VOC XML, YOLO, id lists, or in the layout of the authors' files.

    Parameters
    ----------
    manifest : str, Path or Manifest
        a folder, or NAME@VERSION of an available manifest
    part : str or sequence of str
        a part to write, a pattern such as 't*-test', or all; several go into one output (repeatable; owod takes all
        parts by default)
    form : str
        a format of detectors, or the layout of a benchmark's authors
    out : Path or str
        a new folder; for one file, a new file that ends in .json (coco, elephant-json) or .txt (txt)
    sources : mapping of str to path or annotations, optional
        ids alone need none
    each : bool
        coco, voc, yolo: each part separately, as a file PART.json or a folder PART in --out
    photos : path, or mapping of str to path, optional
        yolo: folder of photos, to read sizes that the annotations lack
    options, reading : optional
        See `curation.publishing.formats.plan.FormatOptions` and `curation.sources.source_specs.Reading`.

    Raises
    ------
    UsageError, ExportError, ManifestError
        See `curation.publishing.exporting.write_export`.

    Examples
    --------
    >>> import curation, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     curation.export("elephant/val2017", "closed", "txt", pathlib.Path(folder) / "closed.txt").plan.counts
    {'images': 4952}
    """
    from curation.benchmarks.registry import formats
    from curation.manifest.locate import load_manifest
    from curation.publishing.exporting import write_export as write

    loaded = manifest if isinstance(manifest, Manifest) else load_manifest(manifest)
    parts = [part] if isinstance(part, str) else part
    return write(
        loaded,
        parts,
        form,
        sources or {},
        out,
        each=each,
        photos={"": photos} if isinstance(photos, Path) else photos,
        options=options,
        reading=reading,
        formats=formats(),
    )
