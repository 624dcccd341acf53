"""Which parts of a benchmark must not share images, and the check of a manifest or of files against this."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from curation.benchmarks.registry import benchmarks, recipes
from curation.core.errors import CurationWarning, ProtocolError
from curation.manifest.built_from import BuiltFrom
from curation.manifest.disjoint import DISJOINT, SHOWN, Overlap, manifest_overlaps, source_overlaps
from curation.manifest.header import Header
from curation.manifest.manifest import Manifest
from curation.sources.photos import CLASS_FOLDERS
from curation.sources.source import Source


def disjoint_of(header: Header) -> Sequence[tuple[str, str]]:
    """Return the sides that share no image, as the file of the manifest's benchmark states; by default, the roles."""
    name = header.name.partition("/")[0] if is_published(header) else header.rule.protocol
    declared = benchmarks()[name].disjoint if name in benchmarks() else ()
    return declared or DISJOINT


def is_published(header: Header) -> bool:
    """Return whether the authors of a benchmark published the lists, whose overlaps are then facts, not errors."""
    return header.origin == "as_published" and header.name in recipes()


def is_told_only(header: Header) -> bool:
    """Return whether shared images are notes, not errors: in published lists, or if the benchmark declares no sides."""
    benchmark = benchmarks().get(header.rule.protocol)
    return is_published(header) or (benchmark is not None and not benchmark.disjoint)


def overlaps_of(
    manifest: Manifest, sources: Mapping[str, Source], paths: BuiltFrom | None = None
) -> tuple[list[Overlap], tuple[str, ...]]:
    """Return the images that parts of a manifest share but should not, and the facts that were compared."""
    by_name = {name: Path(path) for name, path in paths.sources.items()} if paths else None
    return manifest_overlaps(manifest, sources, disjoint_of(manifest.header), by_name)


def published_text(header: Header) -> str:
    """Return a remark on the images that published lists share, with the counts of their benchmark if it has any."""
    shared = next(
        (benchmark.shared[header.name] for benchmark in benchmarks().values() if header.name in benchmark.shared), {}
    )
    counts = ", ".join(f"{images:,} in {part}" for part, images in shared.items())
    return f"; a fact of the published lists: {counts}" if counts else "; a fact of the published lists"


def require_disjoint(manifest: Manifest, sources: Mapping[str, Source], *, stacklevel: int = 3) -> None:
    """Raise `ProtocolError` if parts provably share images; warn of signs, and of overlaps of published lists."""
    for overlap in overlaps_of(manifest, sources, manifest.built_from)[0]:
        is_note = manifest.header.origin == "as_published" or is_told_only(manifest.header) or overlap.is_declared
        if overlap.proven and not is_note:
            slots = [part.sources for part in manifest.header.parts if part.name in (*overlap.left, *overlap.right)]
            names = list(dict.fromkeys(name for several in slots for name in several))
            _refuse(overlap, names, sources)
        text = overlap.summary(5) + (published_text(manifest.header) if is_published(manifest.header) else "")
        warnings.warn(text, CurationWarning, stacklevel=stacklevel)


def require_disjoint_sources(
    sources: Mapping[str, Source], paths: Mapping[str, Path] | None = None, *, warn: bool = False
) -> None:
    """Raise `ProtocolError` for images that two sources are proven to share; warn of signs if asked."""
    for overlap in source_overlaps(sources, paths=paths):
        if overlap.proven:
            _refuse(overlap, list(sources), sources)
        elif warn:
            warnings.warn(overlap.summary(5), CurationWarning, stacklevel=4)


def _refuse(overlap: Overlap, slots: Sequence[str], sources: Mapping[str, Source]) -> None:
    opened = [sources[name] for name in slots if name in sources]
    parts = list(dict.fromkeys(map(_list_of, opened)))
    first = next((source.origin for source in opened if source.origin is not None), None)
    divide = f"curation split {shlex.quote(str(first or 'FILE'))} --parts train=0.8,test=0.2 --out DIR"
    if all(_list_of(source) == CLASS_FOLDERS for source in opened):
        hint = "remove one of the two photos of each pair"
        if overlap.images.evidence == "id":
            hint += "; if they are different photos under equal names, give each of the [sources] a different dataset"
    elif overlap.images.evidence == "id":
        hint = "remove the shared ids from one of the two lists"
    elif len(slots) == 1:
        hint = f"{divide} --near-duplicates PHOTOS keeps images together whose photos look alike"
    elif len({frozenset(source.images.native.tolist()) for source in opened}) == 1:
        hint = f"they hold the same {len(opened[0].images):,} images: {divide}"
    elif len(parts) > 1 and overlap.columns.is_one_folder(opened):
        hint = f"remove the shared images from one of the two parts: {' or '.join(parts)}"
    elif overlap.images.evidence == "file":
        last = overlap.right[-1] if overlap.right[-1] in slots else slots[-1]
        hint = f"give another file, or of a folder another part: --source {last}=PATH, --source {last}@PART=PATH"
    else:
        hint = "remove the shared images from one of the two files, with their boxes; or give the right file"
    names = [f"source {name}" + (f": {_list_of(sources[name])}" if name in sources else "") for name in slots]
    raise ProtocolError(
        "The same images are used for two purposes, such as training and testing",
        where=" and ".join(names),
        expected=f"no image both in {', '.join(overlap.left[:3])} and in {', '.join(overlap.right[:3])}",
        found=overlap.summary(SHOWN),
        hint=hint,
    )


def _list_of(source: Source) -> str:
    """Return the input that determines the images of a source: its file, or an entry of a YOLO folder's YAML."""
    if not source.files:
        return source.title
    name = source.files[0].name
    return f"{source.part} of {name}" if name.lower().endswith((".yaml", ".yml")) else name
