"""`leaks`: search a corpus for images of a benchmark; the outcome is a `Result` with a page that shows the pairs.

The benchmark is held in memory, the corpus is streamed.
"""

from __future__ import annotations

import json
import tomllib
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from curation.core.arguments import Workers, checked
from curation.core.engines.running import EngineName, cores, run_step
from curation.core.engines.shards import Shards
from curation.core.errors import MissingFileError, UsageError
from curation.core.pages import page
from curation.core.wording import counted
from curation.core.writing import publishing_files, write_text
from curation.evaluation.measures import Data, Measure, Measured, Scored, Value
from curation.evaluation.recorded_call import with_warnings
from curation.evaluation.result import Column, Report, Result, Table
from curation.extensions.leaks.step import (
    KINDS,
    LARGEST_RADIUS,
    RADIUS,
    FindLeaks,
    Fingerprints,
    LeakEvidence,
    fingerprints,
    pictures_of,
    thumbnail,
)
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.review.decisions.pairs import (
    PAIRS,
    PhotoPair,
    drop_lists,
    judged_data,
    judged_lines,
    pairs_csv,
    read_pairs,
)
from curation.signals.similarity.embed import quiet
from curation.sources.corpus import corpus_blocks
from curation.sources.photos import FILE_NAMES, BrokenPhotoError, find_photos, read_photo
from curation.sources.source_specs import Sources

JSON, PAGE, LEAKED = "leaks.json", "leaks.html", "leaked.txt"
DROPS = ("drop-benchmark.txt", "drop-corpus.txt")
"""Files of the images that each side can drop: pairs with the decision ``same``."""
FILES = (JSON, PAGE, LEAKED, "leaks.csv", "unreadable.csv", PAIRS)
"""Files that `Leaks.save` writes."""
PAIRS_SHOWN = 60
"""Number of pairs of a kind on the page, the most doubtful first."""
WHOLE = "benchmark"
"""Name of the entry for all parts together."""
_PROTOCOL = "leaks"
_FACTS = tomllib.loads(files(__package__).joinpath("facts.toml").read_text(encoding="utf-8"))
MEASURES = tuple(msgspec.convert(measure, Measure) for measure in _FACTS["part"])


class Leaks(Result):
    """The result of a leak check, which is saved with its evidence and a page of pairs.

    Parameters
    ----------
    evidence : sequence of Evidence
        By benchmark image, then corpus image.
    unreadable : sequence of (str, str)
        Id and reason of the first corpus images that could not be read.
    photos : mapping of str to Path
        The photos of the benchmark, for the page.
    thumbnails : mapping of str to bytes
        Small pictures of corpus images.
    shard : str, optional
        The task of an array (``I/N``) whose blocks alone were read.
    pairs : sequence of PhotoPair
        The evidence as pairs of photos, with a person's decisions.
    """

    def __init__(
        self,
        data: Data,
        *,
        evidence: Sequence[LeakEvidence],
        unreadable: Sequence[tuple[str, str]] = (),
        photos: Mapping[str, Path] | None = None,
        thumbnails: Mapping[str, bytes] | None = None,
        notes: Sequence[str] = (),
        shard: str | None = None,
        pairs: Sequence[PhotoPair] = (),
    ) -> None:
        alone = [
            f"of shard {shard} of the corpus alone: after all tasks, the command without --shard reports on the whole"
        ]
        super().__init__(REPORT, data, scored=_scored(data), notes=[*notes, *(alone if shard else ())])
        self.shard = shard
        self.evidence = tuple(evidence)
        self.unreadable = tuple(unreadable)
        self.pairs = tuple(pairs)
        self._photos = photos or {}
        self._thumbnails = thumbnails or {}

    @property
    def leaked(self) -> tuple[str, ...]:
        """The benchmark images that are in the corpus, sorted."""
        return tuple(sorted({item.benchmark for item in self.evidence}))

    @checked
    def save(self, folder: Path | str, *, figures: bool = False, outcomes: bool = False) -> list[Path]:
        """Write ``leaks.json``, ``leaks.csv``, ``leaked.txt``, ``unreadable.csv``, ``pairs.csv`` and a page.

        If pairs have the decision ``same``, two more files hold the images that each side can drop. `figures` and
        `outcomes` are not available.

        Returns
        -------
        list of Path
            The files written, ``leaks.json`` last.
        """
        folder = Path(folder)
        with publishing_files(folder) as new:
            for table in self.tables:
                if table.file:
                    write_text(new / f"{table.name}.csv", table.csv())
            write_text(new / LEAKED, "".join(f"{image}\n" for image in self.leaked))
            write_text(new / PAGE, self._page())
            write_text(new / PAIRS, pairs_csv(self.pairs))
            drops = dict(zip(DROPS, drop_lists(self.pairs), strict=True)) if self.data.get("judged") else {}
            for name, images in drops.items():
                write_text(new / name, "".join(f"{image}\n" for image in images))
            content = json.dumps(self.json_data(), indent=1, ensure_ascii=False, allow_nan=False)
            write_text(new / JSON, content + "\n")
        return [folder / name for name in ("leaks.csv", "unreadable.csv", LEAKED, PAIRS, *drops, PAGE, JSON)]

    def _page(self) -> str:
        groups = []
        for kind, chosen in shown_pairs(self.evidence).items():
            pairs = [
                {
                    "value": f"{pair.value:.0f} of 256 bits differ, bound {pair.threshold:.0f}; {pair.variant}",
                    "sides": [
                        ("benchmark", pair.benchmark, _link(self._photos.get(pair.benchmark))),
                        ("corpus", pair.corpus, _link(self._thumbnails.get(pair.corpus))),
                    ],
                }
                for pair in chosen
            ]
            total = sum(item.kind == kind for item in self.evidence)
            groups.append({"title": TITLES[kind], "pairs": pairs, "total": total})
        return page("leaks.html", __package__, data=self.data, groups=groups, lines=summary_lines(self.data))


TITLES: Mapping[str, str] = {
    "same_pixels": "The same pixels",
    "perceptual": "Nearly the same, by perceptual hash",
    "mirrored": "Nearly the same, mirrored",
}


def shown_pairs(evidence: Sequence[LeakEvidence]) -> dict[str, list[LeakEvidence]]:
    """Return the pairs of each kind on the page; those nearest to the threshold, which need review, come first."""
    ranked = sorted(evidence, key=lambda pair: -pair.value)
    by_kind = {kind: [pair for pair in ranked if pair.kind == kind][:PAIRS_SHOWN] for kind in KINDS}
    return {kind: chosen for kind, chosen in by_kind.items() if chosen}


def _link(picture: bytes | Path | None) -> str:
    try:
        data = thumbnail(read_photo(picture)) if isinstance(picture, Path) else picture
    except BrokenPhotoError:
        return ""
    return f"data:image/jpeg;base64,{b64encode(data).decode()}" if data else ""


def summary_lines(data: Data) -> list[str]:
    """Return the result as sentences."""
    total, corpus = data["parts"][WHOLE], data["corpus"]
    leaked = total["leaked"]
    return [
        "No photo of the benchmark could be compared: nothing is known about leaks."
        if leaked is None
        else f"{leaked:,} of {total['compared']:,} benchmark images are in the corpus ({total['leaked_share']:.2%}); "
        f"{total['images'] - total['compared']:,} without a readable photo were not compared.",
        f"{counted(corpus['images'], 'image')} of the corpus read, {corpus['unreadable']:,} unreadable; "
        f"{corpus['plain']:,} too plain for a perceptual code: compared by pixels only.",
        *judged_lines(data.get("judged", {})),
    ]


def _scored(data: Data) -> Iterator[Scored]:
    for part, record in data["parts"].items():
        n = record["compared"]
        values = [Value(key, record[key], n=n) for key in ("leaked", "leaked_share")]
        values += [Value("leaked_by", count, {"kind": kind}, n) for kind, count in record["leaked_by"].items()]
        yield Scored(
            variant="",
            found=Measured(values, {}),
            method=data["corpus"]["name"],
            truth={},
            predictions={},
            split=part,
            part=part,
            settings={key: str(value) for key, value in data["thresholds"].items()},
        )


def _tables(result: Result) -> Iterator[Table]:
    assert isinstance(result, Leaks)  # noqa: S101
    data = result.data
    kinds = [Column(kind, "count") for kind in KINDS]
    columns = (Column("part"), Column("images", "count"), Column("compared", "count"), Column("leaked", "count"),
               Column("leaked_share", "share", "share"), *kinds)  # fmt: skip
    rows = [
        (name, *(record[column.name] for column in columns[1:5]), *map(record["leaked_by"].get, KINDS))
        for name, record in data["parts"].items()
    ]
    yield Table("parts", columns, rows, title="Benchmark images in the corpus, by their strongest evidence")
    names = ("benchmark", "corpus", "kind", "variant", "value", "threshold")
    evidence = [tuple(getattr(item, name) for name in names) for item in result.evidence]
    printed = evidence[:_SHOWN]
    some = f": {len(printed)} of {len(evidence):,} pairs" if len(evidence) > len(printed) else ""
    yield Table(
        "leaks",
        tuple(Column(name, "score" if name in ("value", "threshold") else "") for name in names),
        evidence,
        title=f"Evidence{some}" if evidence else "",
        printed=printed,
        file=True,
    )
    yield Table("unreadable", tuple(map(Column, ("corpus", "reason"))), result.unreadable, file=True)


_SHOWN = 20
REPORT = Report(_PROTOCOL, MEASURES, _tables, files=("leaks", "unreadable"))


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
    engine: EngineName = "local",
    workers: Workers | None = None,
    evidence: Annotated[Path | None, "DIR"] = None,
    shard: Annotated[str | None, "I/N"] = None,
    judged: Annotated[Path | None, "FILE"] = None,
) -> Leaks:
    """Return which images of a benchmark are in a corpus, with the evidence.

    Parameters
    ----------
    manifest : str, Path or Manifest
        a folder, or NAME@VERSION of an available manifest
    corpus : str, Path, or a sequence of these
        tar shards of WebDataset, or folders of shards or of photos
    photos : Path, or mapping of str to Path
        the benchmark's photos: a folder, or one by the namespace of ids
    sources : mapping of str to path or annotations, optional
        finds photos by the file names of its annotations, where they are not named by id
    part : str or sequence of str
        only these parts of the benchmark (default: every part whose list is available; repeatable)
    radius : int
        most bits of 256 in which perceptual hashes of a photo and its copy differ
    engine : {"local", "ray"}
        processes of this machine, or Ray (RAY_ADDRESS names a cluster); the same evidence
    workers : int, optional
        of the engine (one per core)
    evidence : Path, optional
        keep what was found in each block: the same command resumes after an interruption
    shard : str, optional
        for a task of an array: every N-th block of the corpus from the I-th on, with --resume DIR of all tasks; after
        them, the same command without --shard reports on the whole corpus
    judged : Path, optional
        the pairs.csv of an earlier run, in which a person filled in the column decision (same, different, unsure):
        different pairs no longer count as evidence, and the precision of each kind is reported

    Returns
    -------
    Leaks
        The result of a task covers only its blocks.

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
    ...     found = curation.leaks("elephant/val2017", corpus=folder, photos=photos, part="wilderness")
    >>> found.leaked
    ('coco:000000000802',)
    """
    if shard is not None and evidence is None:
        raise UsageError("--shard requires --resume DIR: a folder that all tasks of the array see", found=shard[:80])
    loaded = manifest if isinstance(manifest, Manifest) else load_manifest(str(manifest))
    lists = _lists(loaded, [part] if isinstance(part, str) else part)
    decisions = {pair.images: pair.decision for pair in read_pairs(judged)} if judged else {}
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
            hint="--photos DIR with the photos of the benchmark" if broken or sources else FILE_NAMES,
        )
    step = FindLeaks.of_photos(prints, radius)
    with TemporaryDirectory(prefix="curation-leaks-") if evidence is None else nullcontext(evidence) as folder:
        shards = run_step(
            step, chain(first, blocks), out=Path(folder) / "blocks", engine=engine, workers=workers, shard=shard
        )
        seen = _Findings()
        seen.add(shards)
        pairs = _pairs(seen.evidence, lists, paths, corpora, decisions)
        refuted = {pair.images for pair in pairs if pair.decision == "different"}
        seen.evidence = [item for item in seen.evidence if frozenset((item.benchmark, item.corpus)) not in refuted]
        thumbnails = _thumbnails(shards, seen.evidence)
    if seen.images == seen.n_unreadable and shard is None:
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
    }  # fmt: skip
    if judged:
        data["judged"] = judged_data(pairs)
    return Leaks(
        data, evidence=seen.evidence, unreadable=seen.unreadable, photos=readable, thumbnails=thumbnails,
        notes=_notes(data, broken), shard=shard, pairs=pairs,
    )  # fmt: skip


def _pairs(
    evidence: Sequence[LeakEvidence], lists: Mapping[str, Sequence[str]], photos: Mapping[str, Path],
    corpora: Sequence[str | Path], decisions: Mapping[frozenset[str], Any],
) -> list[PhotoPair]:  # fmt: skip
    """Return the evidence as pairs of photos, each with the person's decision."""
    parts = {image: name for name, ids in reversed([*lists.items()]) for image in ids}
    return [
        PhotoPair(
            left=item.benchmark, right=item.corpus, left_path=str(photos[item.benchmark]),
            right_path=_corpus_path(item.corpus, corpora), left_in=parts[item.benchmark], right_in=_name(corpora),
            kind=item.kind, value=int(item.value), threshold=int(item.threshold),
            decision=decisions.get(frozenset((item.benchmark, item.corpus)), ""),
        )
        for item in evidence
    ]  # fmt: skip


def _corpus_path(image: str, corpora: Sequence[str | Path]) -> str:
    """Return the file of a corpus image, by its id: below a folder of photos, or a member of a shard."""
    shard, mark, member = image.partition(".tar/")
    for corpus in map(Path, corpora):
        if (corpus / image).is_file():
            return str(corpus / image)
        for path in (corpus, corpus / f"{shard}.tar"):
            if mark and path.name == PurePosixPath(f"{shard}.tar").name and path.is_file():
                return f"{path}!{member}"
    return ""


def _lists(manifest: Manifest, parts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the requested parts, or of all parts with an available list."""
    if missing := [name for name in parts if name not in manifest.parts]:
        raise UsageError("Unknown part", where=f"--part {missing[0][:80]}", expected=", ".join(manifest.parts)[:400])
    names = parts or [name for name in manifest.parts if name in manifest.lists]
    # The request for an absent list raises an error that says how to get it.
    return {name: tuple(manifest.ids(name)) for name in names or manifest.parts}


def _read(paths: Mapping[str, Path]) -> tuple[dict[str, Fingerprints], dict[str, str]]:
    """Return the fingerprints of the readable photos of the benchmark, and the reasons for unreadable ones."""
    from tqdm import tqdm

    def read(name: str) -> Fingerprints | str:
        try:
            return fingerprints(pictures_of(read_photo(paths[name])), variants=True)
        except BrokenPhotoError as error:
            return str(error)

    with quiet(), ThreadPoolExecutor(cores()) as pool:
        done = tqdm(pool.map(read, paths), "benchmark", len(paths), unit=" photos", disable=None)
        results = dict(zip(paths, done, strict=True))
    readable = {name: result for name, result in results.items() if not isinstance(result, str)}
    return readable, {name: why for name, why in results.items() if isinstance(why, str)}


class _Findings:
    """The evidence in shards, without thumbnails."""

    def __init__(self) -> None:
        self.images = self.plain = self.n_unreadable = 0
        self.evidence: list[LeakEvidence] = []
        self.unreadable: list[tuple[str, str]] = []

    def add(self, shards: Shards) -> None:
        """Add the output of a step, block by block."""
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
            self.evidence.append(LeakEvidence(benchmark, corpus, kind, variant, value, threshold))


def _thumbnails(shards: Shards, evidence: Sequence[LeakEvidence]) -> dict[str, bytes]:
    """Return the small pictures of the corpus images that the page shows."""
    image_ids = {item.corpus for chosen in shown_pairs(evidence).values() for item in chosen}
    thumbnails: dict[str, bytes] = {}
    for table in shards.tables(["corpus", "thumbnail"]) if image_ids else ():
        for row in table.to_pylist():
            if row["corpus"] in image_ids and row["thumbnail"]:
                thumbnails.setdefault(row["corpus"], row["thumbnail"])
    return thumbnails


def _by_part(
    lists: Mapping[str, Sequence[str]], comparable: Collection[str], evidence: Sequence[LeakEvidence]
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
        leaked = sorted(images & strongest.keys())
        kinds = Counter(strongest[image] for image in leaked)
        parts[name] = {
            "images": len(images),
            "compared": compared,
            "leaked": len(leaked) if compared else None,
            "leaked_share": len(leaked) / compared if compared else None,
            "leaked_by": {kind: kinds[kind] if compared else None for kind in KINDS},
            "examples": leaked[:_EXAMPLES],
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
