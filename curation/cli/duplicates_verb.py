"""``curation duplicates``: photos that are the same, or nearly, under different names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import OutputFolder
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.similarity.embeddings import Embeddings

_SHOWN = 30
Row = tuple[str, str, str, float]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Photos that are the same, or nearly, under different names.

    Attributes
    ----------
    images
        every photo below a folder
    against
        pairs of one photo here and one there alone
    distance
        of perceptual hashes ( of 64)
    embeddings
        by look, from a store of curation embed
    against_embeddings
        the same for --against
    threshold
        of --embeddings
    out
        write duplicates.csv
    """

    images: Annotated[Path | None, "DIR"] = None
    against: Annotated[Path | None, "DIR"] = None
    distance: Annotated[int, "BITS"] = 4
    embeddings: Annotated[Path | None, "STORE"] = None
    against_embeddings: Annotated[Path | None, "STORE"] = None
    threshold: Annotated[float, "COSINE"] = 0.95
    out: Annotated[Path | None, OutputFolder(("duplicates.csv",)), "DIR"] = None


def run(options: Options) -> Answer:
    """Compare, print, and write; 0 also where duplicates are found."""
    if (options.images is None) == (options.embeddings is None):
        raise UsageError("Nothing says what to compare", expected="--images DIR, or --embeddings STORE")
    if options.images is not None:
        rows, facts = _by_pixels(options.images, options)
    elif options.embeddings is not None:
        rows, facts = _by_look(options.embeddings, options)
    written = _write(options, rows)
    result = {
        **facts,
        "pairs": [dict(zip(("first", "second", "how", "value"), row, strict=True)) for row in rows],
    }
    table = Table(
        f"{len(rows):,} pairs of {facts['images']:,} photos",
        ("first", "second", "how", "value"),
        tuple((one, two, how, f"{value:g}") for one, two, how, value in rows[:_SHOWN]),
    )
    lines = table_lines(table)
    if len(rows) > _SHOWN:
        lines.append(f"… and {len(rows) - _SHOWN:,} more: --out DIR writes all")
    return Answer(result, [*lines, *(f"wrote {path}" for path in written)])


def _by_pixels(images: Path, options: Options) -> tuple[list[Row], dict[str, Any]]:
    """Return pairs of equal pixels, and of perceptual hashes that differ in a few bits."""
    from curation.similarity.near_duplicates import alike_photos, hash_photos

    folders = [images] if options.against is None else [images, options.against]
    photos: dict[str, Path] = {}
    for number, folder in enumerate(folders):
        photos |= {(f"{number}:{name}"): path for name, path in _photos(folder).items()}
    hashes = hash_photos(photos)
    if hashes.failures:
        first = next(iter(hashes.failures))
        warn(f"{len(hashes.failures)} photos cannot be read, such as {first[2:]}: {hashes.failures[first]}")
    alike = alike_photos(hashes, options.distance)
    rows: list[Row] = []
    for one, two, bits, same in zip(
        alike.first.tolist(),
        alike.second.tolist(),
        alike.distance.tolist(),
        alike.same_pixels.tolist(),
        strict=True,
    ):
        names = hashes.names[one], hashes.names[two]
        if options.against is None or names[0][0] != names[1][0]:
            rows.append((names[0][2:], names[1][2:], "same pixels" if same else "perceptual hash, bits", float(bits)))
    return rows, {"images": len(hashes.names), "unreadable": len(hashes.failures)}


def _photos(folder: Path) -> dict[str, Path]:
    from curation.sources.photos import PhotoFolder

    root = folder.absolute()
    found = {path.relative_to(root).as_posix(): path for path in map(Path.absolute, PhotoFolder(folder).paths)}
    if not found:
        raise UsageError("The folder holds no photos", where=str(folder), expected=".jpg, .png or .webp files")
    return found


def _by_look(store: Path, options: Options) -> tuple[list[Row], dict[str, Any]]:
    from curation.similarity.embeddings import open_embeddings
    from curation.similarity.near_duplicates import look_duplicates

    one = open_embeddings(store)
    other: Embeddings | None = open_embeddings(options.against_embeddings) if options.against_embeddings else None
    found = look_duplicates(one, other, options.threshold)
    count = len(one.ids) + (len(other.ids) if other is not None else 0)
    rows = [(first, second, "embedding, cosine", score) for first, second, score in found]
    return rows, {"images": count, "encoder": one.encoder.digest, "threshold": options.threshold}


def _write(options: Options, rows: list[Row]) -> list[Path]:
    from curation.csv_table import as_csv
    from curation.storage import write_text

    if options.out is None:
        return []
    path = options.out / "duplicates.csv"
    write_text(path, as_csv(("first", "second", "how", "value"), rows))
    return [path]
