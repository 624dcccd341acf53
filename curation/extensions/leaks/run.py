"""`leaks`: is any image of a benchmark in a corpus? The benchmark is held in memory, the corpus is streamed.

What a leak check misses cannot be seen in the corpus. So some images of the benchmark are resized, re-encoded, cropped
or mirrored, and looked for as if the corpus held them: the share that is found is the recall of each kind.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from curation.core.arguments import Workers, checked
from curation.core.engines.running import MERGE, EngineName, run_step
from curation.core.engines.shards import Shards
from curation.core.errors import MissingFileError, UsageError
from curation.core.wording import counted
from curation.evaluation.result import with_warnings
from curation.extensions.leaks.report import WHOLE, Leaks, shown_pairs
from curation.extensions.leaks.step import (
    KINDS,
    LARGEST_RADIUS,
    RADIUS,
    WINDOW,
    Evidence,
    FindLeaks,
    Fingerprints,
    fingerprints,
    pictures_of,
)
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.signals.similarity.embed import quiet, usual_threads
from curation.sources.corpus import corpus_blocks
from curation.sources.photos import FILE_NAMES, BrokenPhotoError, find_photos, read_photo
from curation.sources.source_specs import Sources

if TYPE_CHECKING:
    from PIL.Image import Image

_Z = 1.959963984540054
_AT_ONCE = 64
_QUALITY, _LOW_QUALITY = 85, 50


def resized(picture: Image, name: str) -> bytes:
    """Return the picture at half its width and height."""
    width, height = picture.size
    return _jpeg(picture.resize((max(1, width // 2), max(1, height // 2))))


def cropped(picture: Image, name: str) -> bytes:
    """Return 90 % of the width and of the height, at a place that the name decides."""
    sizes = [max(1, round(side * WINDOW)) for side in picture.size]
    digest = hashlib.sha256(f"leaks, crop of {name}".encode()).digest()
    left, top = (byte * (extent - size) // 255 for byte, extent, size in zip(digest, picture.size, sizes, strict=False))
    return _jpeg(picture.crop((left, top, left + sizes[0], top + sizes[1])))


def mirrored(picture: Image, name: str) -> bytes:
    """Return the picture with left and right exchanged."""
    from PIL.Image import Transpose

    return _jpeg(picture.transpose(Transpose.FLIP_LEFT_RIGHT))


def _jpeg(picture: Image, quality: int = _QUALITY) -> bytes:
    made = io.BytesIO()
    picture.save(made, "JPEG", quality=quality)
    return made.getvalue()


ALTERATIONS: Mapping[str, Callable[[Image, str], bytes]] = {
    "resized": resized,
    "re-encoded": lambda picture, name: _jpeg(picture, _LOW_QUALITY),
    "cropped": cropped,
    "mirrored": mirrored,
}


def planted(step: FindLeaks, photos: Mapping[str, Path], n: int) -> dict[str, Any]:
    """Return how many planted copies are found, by alteration, and how many are taken for another image.

    Parameters
    ----------
    photos : mapping of str to Path
        The benchmark's readable photos by id.
    n : int
        Images that are altered: those of lowest sha256 of their ids.

    Returns
    -------
    dict
        ``images``; ``alterations``: by name ``planted``, ``found``, ``recall`` with ``low`` and ``high`` (Wilson,
        95 %), and how often each kind of evidence found it; ``copies``; ``taken_for_another``: copies that are like a
        benchmark image which the unaltered one is not like; ``share``, ``low``, ``high`` of these.
    """
    from tqdm import tqdm

    chosen = sorted(photos, key=lambda name: (hashlib.sha256(f"leaks, planted {name}".encode()).digest(), name))[:n]
    rows: dict[str, dict[str, int]] = {name: dict.fromkeys(("planted", "found", *KINDS), 0) for name in ALTERATIONS}
    wrong = 0
    for start in tqdm(range(0, len(chosen), _AT_ONCE), desc="planted copies", disable=None, leave=False):
        copies = dict(_copies(chosen[start : start + _AT_ONCE], photos))
        seen = _matches(step, copies)
        for (how, name), kinds_of in seen.items():
            if not how:
                continue
            record, kinds = rows[how], kinds_of.get(name, set())
            record["planted"] += 1
            record["found"] += bool(kinds)
            for kind in kinds:
                record[kind] += 1
            wrong += bool(kinds_of.keys() - seen["", name].keys() - {name})
    copies_made = sum(row["planted"] for row in rows.values())
    return {
        "images": len(chosen),
        "alterations": {how: row | share_record("recall", row["found"], row["planted"]) for how, row in rows.items()},
        "copies": copies_made,
        "taken_for_another": wrong,
        **share_record("share", wrong, copies_made),
    }


def _copies(names: list[str], photos: Mapping[str, Path]) -> Iterator[tuple[tuple[str, str], bytes]]:
    for name in names:
        try:
            data = read_photo(photos[name])
            picture = pictures_of(data)[0]
        except BrokenPhotoError:
            # It was readable a moment ago: a photo that went away is planted in no kind.
            continue
        yield ("", name), data
        for how, alter in ALTERATIONS.items():
            yield (how, name), alter(picture, name)


def _matches(step: FindLeaks, copies: Mapping[tuple[str, str], bytes]) -> dict[tuple[str, str], dict[str, set[str]]]:
    """Return the benchmark images that match each copy, with the kinds of evidence."""
    import pyarrow

    keys = list(copies)
    numbers = [str(number) for number in range(len(keys))]
    nothing = pyarrow.nulls(len(keys), pyarrow.string())
    columns = (pyarrow.array(numbers), nothing, pyarrow.array(list(copies.values()), pyarrow.large_binary()), nothing)
    table = pyarrow.table(dict(zip(("id", "path", "data", "error"), columns, strict=True)))
    seen: dict[tuple[str, str], dict[str, set[str]]] = {key: {} for key in keys}
    for row in step(table).to_pylist():
        if row["kind"] in KINDS:
            seen[keys[int(row["corpus"])]].setdefault(row["benchmark"], set()).add(row["kind"])
    return seen


def share_record(name: str, count: int, n: int) -> dict[str, float | None]:
    """Return a share with its interval; None if `n` is 0.

    >>> share_record("recall", 10, 10)
    {'recall': 1.0, 'low': 0.7224672001371107, 'high': 1.0}
    """
    if not n:
        return {name: None, "low": None, "high": None}
    low, high = wilson(count, n)
    return {name: count / n, "low": low, "high": high}


def wilson(count: int, n: int) -> tuple[float, float]:
    """Return the interval of a share, 95 % (Wilson, Journal of the American Statistical Association 22, 1927)."""
    share, square = count / n, _Z**2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = _Z / (1 + square / n) * (share * (1 - share) / n + square / (4 * n * n)) ** 0.5
    return (0.0 if count == 0 else max(0.0, middle - half)), (1.0 if count == n else min(1.0, middle + half))


PLANTED = 100
MOST_PAIRS = 2_000_000
MOST_UNREADABLE = 10_000
_EXAMPLES = 5


@checked
@with_warnings
def leaks(
    manifest: Annotated[str | Path | Manifest, "MANIFEST"],
    *,
    corpus: Annotated[Sequence[str | Path] | str | Path, "SHARDS"],
    photos: Annotated[Mapping[str, Path] | Path, "[NAMESPACE=]DIR"],
    sources: Sources | None = None,
    part: Sequence[str] | str = (),
    radius: Annotated[int, Meta(ge=0, le=LARGEST_RADIUS), "BITS"] = RADIUS,
    plant: Annotated[int, Meta(ge=0, le=1 << 20)] = PLANTED,
    engine: EngineName = "local",
    workers: Workers | None = None,
    evidence: Annotated[Path | None, "DIR"] = None,
    shard: Annotated[str | None, "I/N|merge"] = None,
) -> Leaks:
    """Return which images of a benchmark are in a corpus, with the evidence and what the check may have missed.

    Parameters
    ----------
    manifest : str, Path or Manifest
        a folder, or NAME@VERSION of an available manifest
    corpus : str, Path, or a sequence of these
        tar shards of WebDataset, or folders of shards or of photos; paths, or addresses such as s3://…
    photos : Path, or mapping of str to Path
        the benchmark's photos: a folder, or one by the namespace of ids
    sources : mapping of str to path or annotations, optional
        finds photos by the file names of its annotations, where they are not named by id
    part : str or sequence of str
        only these parts of the benchmark (default: every part whose list is available; repeatable)
    radius : int
        most bits of 256 in which perceptual hashes of a photo and its copy differ
    plant : int
        benchmark images to resize, re-encode, crop and mirror and then look for, to measure what is missed
    engine : {"local", "ray"}
        processes of this machine, or Ray (RAY_ADDRESS names a cluster); the same evidence
    workers : int, optional
        of the engine (one per core)
    evidence : Path, optional
        keep what was found in each block: the same command resumes after an interruption
    shard : str, optional
        for a task of an array: every N-th block of the corpus from the I-th on, with --resume DIR of all tasks; after
        them, merge reports on the whole corpus

    Returns
    -------
    Leaks
        The result of a task covers only its blocks and has no planted copies.

    Raises
    ------
    UsageError
        An unknown part, a number out of range, a shard without a folder of evidence, or more than two million pairs.
    MissingListError, MissingFileError
        A list or a folder is missing, or no photo of the benchmark can be read: nothing would be compared.
    EngineError
        See `curation.core.engines.running.run_step`.

    Examples
    --------
    >>> import curation, tempfile, pathlib
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     photos = pathlib.Path(folder)
    ...     Image.effect_noise((64, 64), 80).save(photos / "000000000802.png")
    ...     found = curation.leaks("elephant/val2017", corpus=folder, photos=photos, part="wilderness", plant=0)
    >>> found.leaked
    ('coco:000000000802',)
    """
    if shard is not None and evidence is None:
        raise UsageError("--shard requires --resume DIR: a folder that all tasks of the array see", found=shard[:80])
    is_task = shard not in (None, MERGE)
    loaded = manifest if isinstance(manifest, Manifest) else load_manifest(str(manifest))
    lists = _lists(loaded, [part] if isinstance(part, str) else part)
    images = {image for ids in lists.values() for image in ids}
    corpora = [corpus] if isinstance(corpus, str | Path) else list(corpus)
    blocks = chain.from_iterable(corpus_blocks(path) for path in corpora)
    # A missing corpus is reported before the benchmark is read.
    first = list(islice(blocks, 1))
    paths = find_photos(sorted(images), photos, loaded.sources_of_photos(sources))
    prints, broken = _read(paths)
    if not prints:
        raise MissingFileError(
            "No image of the benchmark could be compared: nothing is known about leaks",
            where=", ".join(map(str, photos.values() if isinstance(photos, Mapping) else [photos]))[:300],
            expected=f"photos of {len(images):,} images, such as {min(images, default='none')}",
            found=f"{counted(len(broken), 'photo')}, none readable: {next(iter(broken.values()))}"
            if broken
            else "no photos",
            hint="--photos DIR is the folder of the benchmark's photos" if broken or sources else FILE_NAMES,
        )
    step = FindLeaks.of(prints, radius)
    with TemporaryDirectory(prefix="curation-leaks-") if evidence is None else nullcontext(evidence) as folder:
        shards = run_step(
            step, chain(first, blocks), out=Path(folder) / "blocks", engine=engine, workers=workers, shard=shard
        )
        seen = _Findings()
        seen.add(shards)
        thumbnails = _thumbnails(shards, seen.evidence)
    if seen.images == seen.n_unreadable and not is_task:
        raise MissingFileError(
            "No image of the corpus could be compared: nothing is known about leaks",
            where=_name(corpora),
            expected="images that can be read",
            found=f"{counted(seen.images, 'image')}, none readable",
            hint="; ".join(f"{name}: {why}" for name, why in seen.unreadable[:_EXAMPLES]) or None,
        )
    readable = {image: paths[image] for image in prints}
    data = {
        "manifest": {"name": loaded.header.name, "version": loaded.header.version, "digest": loaded.digest},
        "inputs": {
            "corpus": {
                "evidence": {
                    "name": _name(corpora),
                    "sha256": shards.digest,
                    "rows": seen.images,
                    "reported": {"unreadable": seen.n_unreadable, "plain": seen.plain},
                }
            }
        },
        "thresholds": {"radius": step.radius, "first_radius": step.first_radius},
        "corpus": {
            "name": _name(corpora), "images": seen.images - seen.n_unreadable, "unreadable": seen.n_unreadable,
            "plain": seen.plain,
        },
        "benchmark": {
            "without_photo": len(images - set(paths)),
            "unreadable": len(broken),
            "plain": sum(all(photo.plain) for photo in prints.values()),
        },
        "parts": _by_part(lists, readable, seen.evidence),
        "planted": planted(step, readable, plant) if plant and readable and not is_task else None,
    }  # fmt: skip
    return Leaks(
        data, evidence=seen.evidence, unreadable=seen.unreadable, photos=readable, thumbnails=thumbnails,
        notes=_notes(data, broken), shard=shard if is_task else None,
    )  # fmt: skip


def _lists(manifest: Manifest, parts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the requested parts, or of all parts with an available list."""
    if missing := [name for name in parts if name not in manifest.parts]:
        raise UsageError("Unknown part", where=f"--part {missing[0][:80]}", expected=", ".join(manifest.parts)[:400])
    names = parts or [name for name in manifest.parts if name in manifest.lists]
    # Requesting a list that is absent raises the error that says how to get it.
    return {name: tuple(manifest.ids(name)) for name in names or manifest.parts}


def _read(paths: Mapping[str, Path]) -> tuple[dict[str, Fingerprints], dict[str, str]]:
    """Return the fingerprints of the readable photos of the benchmark, and the reasons for unreadable ones."""
    from tqdm import tqdm

    def read(name: str) -> Fingerprints | str:
        try:
            return fingerprints(pictures_of(read_photo(paths[name])), variants=True)
        except BrokenPhotoError as error:
            return str(error)

    with quiet(), ThreadPoolExecutor(usual_threads()) as pool:
        done = tqdm(pool.map(read, paths), "benchmark", len(paths), unit=" photos", disable=None)
        read_ones = dict(zip(paths, done, strict=True))
    readable = {name: result for name, result in read_ones.items() if not isinstance(result, str)}
    return readable, {name: why for name, why in read_ones.items() if isinstance(why, str)}


class _Findings:
    """The evidence in shards, without thumbnails."""

    def __init__(self) -> None:
        self.images = self.plain = self.n_unreadable = 0
        self.evidence: list[Evidence] = []
        self.unreadable: list[tuple[str, str]] = []

    def add(self, shards: Shards) -> None:
        """Take in the output of a step, block by block."""
        for table in shards.tables(["kind", "benchmark", "corpus", "variant", "value", "threshold"]):
            for row in table.to_pylist():
                self._add(**row)
            if len(self.evidence) > MOST_PAIRS:
                raise UsageError(
                    "Too many pairs to list",
                    expected=f"at most {MOST_PAIRS:,}",
                    hint="a smaller --set radius=…, or leave drawings and forms out of the benchmark",
                )
        self.evidence.sort(key=lambda item: (item.benchmark, item.corpus, KINDS.index(item.kind)))

    def _add(self, kind: Any, benchmark: str, corpus: str, variant: str, value: float, threshold: float) -> None:
        if kind == "read":
            self.images += int(value)
        elif kind == "plain":
            self.plain += 1
        elif kind == "unreadable":
            self.n_unreadable += 1
            if len(self.unreadable) < MOST_UNREADABLE:
                self.unreadable.append((corpus, variant))
        else:
            self.evidence.append(Evidence(benchmark, corpus, kind, variant, value, threshold))


def _thumbnails(shards: Shards, evidence: Sequence[Evidence]) -> dict[str, bytes]:
    """Return the small pictures of the corpus images that the page shows."""
    image_ids = {item.corpus for chosen in shown_pairs(evidence).values() for item in chosen}
    thumbnails: dict[str, bytes] = {}
    for table in shards.tables(["corpus", "thumbnail"]) if image_ids else ():
        for row in table.to_pylist():
            if row["corpus"] in image_ids and row["thumbnail"]:
                thumbnails.setdefault(row["corpus"], row["thumbnail"])
    return thumbnails


def _by_part(
    lists: Mapping[str, Sequence[str]], comparable: Collection[str], evidence: Sequence[Evidence]
) -> dict[str, Any]:
    """Return leak counts of the whole benchmark (see `WHOLE`) and, if there are several parts, of each part."""
    strongest: dict[str, str] = {}
    for item in evidence:
        if item.benchmark not in strongest or KINDS.index(item.kind) < KINDS.index(strongest[item.benchmark]):
            strongest[item.benchmark] = item.kind
    parts = {}
    total = {WHOLE: [image for ids in lists.values() for image in ids]}
    for name, ids in (total | (dict(lists) if len(lists) > 1 else {}) | total).items():
        images = set(ids)
        compared = len(images.intersection(comparable))
        gone = sorted(images & strongest.keys())
        kinds = Counter(strongest[image] for image in gone)
        parts[name] = {
            "images": len(images),
            "compared": compared,
            "leaked": len(gone) if compared else None,
            "leaked_share": len(gone) / compared if compared else None,
            "leaked_by": {kind: kinds[kind] if compared else None for kind in KINDS},
            "examples": gone[:_EXAMPLES],
        }
    return parts


def _notes(data: Mapping[str, Any], broken: Mapping[str, str]) -> list[str]:
    notes = []
    benchmark, corpus = data["benchmark"], data["corpus"]
    if absent := benchmark["without_photo"]:
        notes.append(f"{counted(absent, 'benchmark image')} without a photo: not compared")
    if broken:
        first = next(iter(broken))
        notes.append(f"{counted(len(broken), 'benchmark photo')} cannot be read, such as {first}: {broken[first]}")
    if plain := benchmark["plain"]:
        notes.append(f"{counted(plain, 'benchmark photo')} too plain for a perceptual code: compared by pixels only")
    if unreadable := corpus["unreadable"]:
        notes.append(f"{counted(unreadable, 'image')} of the corpus cannot be read, listed in unreadable.csv")
    return notes


def _name(corpora: Sequence[str | Path]) -> str:
    names = [Path(str(corpus)).name or str(corpus) for corpus in corpora]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
