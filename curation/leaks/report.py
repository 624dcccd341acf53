"""`Leaks`: what a leak check found, as a `Result`; its evidence as CSV, and a page that shows the pairs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from curation.arguments import checked
from curation.errors import UsageError
from curation.evaluation.measures import Data, Measure, Scored
from curation.evaluation.result import Column, Report, Result, Table
from curation.leaks.evidence import KINDS, Evidence, thumbnail
from curation.pages import page
from curation.sources.photos import BrokenPhotoError, read_photo
from curation.storage import publishing_files, read_bytes, write_bytes, write_text

JSON, PAGE, THUMBNAILS, LEAKED = "leaks.json", "leaks.html", "thumbnails", "leaked.txt"
FILES = (JSON, PAGE, LEAKED, "leaks.csv", "unreadable.csv", f"{THUMBNAILS}/*.jpg")
"""What `Leaks.save` writes."""
PAIRS_SHOWN = 60
"""Pairs of a kind that the page shows, those in doubt first."""
WHOLE = "benchmark"
"""What stands for all parts together among them."""
_PROTOCOL = "leaks"
_LARGEST = 1 << 30
_OF_PART = (
    Measure(
        "leaked",
        "images of the benchmark in the corpus",
        "benchmark images with any evidence",
        unit="count",
        better="lower",
        undefined="no photo of these images could be compared",
        count=("compared",),
        ranked=True,
    ),
    Measure(
        "leaked_share",
        "share of the benchmark in the corpus",
        "leaked / compared images of the benchmark",
        unit="share",
        better="lower",
        undefined="no photo of these images could be compared",
        count=("compared",),
        ranked=True,
    ),
    Measure(
        "leaked_by@{kind}",
        "images whose strongest evidence is of this kind",
        "same pixels before the nearest perceptual or mirrored code before the embedding",
        unit="count",
        better="lower",
        undefined="no photo of these images could be compared",
        paths=(("leaked_by", "{kind}"),),
        count=("compared",),
    ),
)
_OF_CHECK = (
    *(
        Measure(
            f"recall{end}@{{alteration}}",
            f"{what}recall of planted copies",
            f"found / planted copies of this alteration{rule}",
            unit="share",
            better="higher",
            undefined="no copy was planted",
            paths=(("planted", "alterations", "{alteration}", key),),
            count=("planted", "images"),
        )
        for end, what, rule, key in (
            ("", "", "", "recall"),
            ("_low", "lower end of the ", ", Wilson's interval, 95 %", "low"),
            ("_high", "upper end of the ", ", Wilson's interval, 95 %", "high"),
        )
    ),
    Measure(
        "taken_for_another",
        "share of planted copies that are also taken for an unrelated benchmark image",
        "copies with evidence for an image that the unaltered photo is not like / copies",
        unit="share",
        better="lower",
        undefined="no copy was planted",
        paths=(("planted", "share"),),
        count=("planted", "copies"),
    ),
    Measure(
        "by_chance",
        "corpus images that are near a code by chance",
        "corpus images near a decoy: as many codes as the benchmark has, each mixed of eight pictures",
        unit="count",
        better="lower",
        source="decoys as in Elias and Gygi, Nature Methods 4, 2007",
        undefined="the benchmark has fewer than eight pictures to make decoys of",
        paths=(("decoys", "by_chance"),),
        count=("corpus", "images"),
    ),
    Measure(
        "by_chance_high",
        "upper end of by_chance",
        "Wilson's interval of its share of the corpus, 95 %",
        unit="ratio",
        better="lower",
        undefined="the benchmark has fewer than eight pictures to make decoys of, or the corpus is empty",
        paths=(("decoys", "by_chance_high"),),
        count=("corpus", "images"),
    ),
    Measure(
        "precision",
        "estimated precision of perceptual and mirrored evidence",
        "1 - by_chance / corpus images with such evidence, at least 0",
        unit="share",
        better="higher",
        undefined="no corpus image has such evidence, or there are no decoys",
        paths=(("decoys", "precision"),),
        count=("decoys", "matched"),
    ),
    Measure(
        "precision_low",
        "lower end of precision",
        "the same with by_chance_high",
        unit="share",
        better="higher",
        undefined="no corpus image has such evidence, or there are no decoys",
        paths=(("decoys", "precision_low"),),
        count=("decoys", "matched"),
    ),
)
MEASURES = (*_OF_PART, *_OF_CHECK)


class Leaks(Result):
    """What a leak check found: a `Result` that is also saved with its evidence and a page of pairs.

    Parameters
    ----------
    evidence : sequence of Evidence
        By benchmark image, then corpus image.
    unreadable : sequence of (str, str)
        Id and reason of corpus images that could not be read: the first of them.
    photos : mapping of str to Path
        The photos of the benchmark, for the page.
    thumbnails : mapping of str to bytes
        Small pictures of corpus images.
    """

    def __init__(
        self,
        about: Data,
        sections: Data,
        *,
        evidence: Sequence[Evidence],
        unreadable: Sequence[tuple[str, str]] = (),
        photos: Mapping[str, Path] | None = None,
        thumbnails: Mapping[str, bytes] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(REPORT, about, sections, notes=notes)
        self.evidence = tuple(evidence)
        self.unreadable = tuple(unreadable)
        self._photos = photos or {}
        self._thumbnails = thumbnails or {}

    @property
    def leaked(self) -> tuple[str, ...]:
        """The benchmark images that are in the corpus, sorted."""
        return tuple(sorted({one.benchmark for one in self.evidence}))

    @checked
    def save(self, folder: Path | str, *, figures: bool = False) -> list[Path]:
        """Write ``leaks.json``, ``leaks.csv``, ``leaked.txt``, ``unreadable.csv``, a page and its thumbnails, together.

        There are no `figures`.

        Returns
        -------
        list of Path
            All files written but thumbnails, ``leaks.json`` last.
        """
        folder = Path(folder)
        thumbnails = (folder / THUMBNAILS).glob("[0-9][0-9][0-9][0-9]-*.jpg")
        with publishing_files(folder, [f"{THUMBNAILS}/{one.name}" for one in thumbnails]) as new:
            for table in self.tables:
                if table.file:
                    write_text(new / f"{table.name}.csv", table.csv())
            write_text(new / LEAKED, "".join(f"{one}\n" for one in self.leaked))
            self._write_page(new)
            content = json.dumps(self.json_data(), indent=1, ensure_ascii=False, allow_nan=False)
            write_text(new / JSON, content + "\n")
        return [folder / name for name in ("leaks.csv", "unreadable.csv", LEAKED, PAGE, JSON)]

    def _write_page(self, folder: Path) -> None:
        groups = []
        number = 0
        for kind, chosen in shown_pairs(self.evidence).items():
            pairs = []
            for one in chosen:
                number += 1
                names = [f"{number:04d}-{side}.jpg" for side in ("benchmark", "corpus")]
                data = _small(self._photos.get(one.benchmark)), self._thumbnails.get(one.corpus)
                for name, picture in zip(names, data, strict=True):
                    if picture:
                        write_bytes(folder / THUMBNAILS / name, picture)
                links = [f"{THUMBNAILS}/{name}" if picture else "" for name, picture in zip(names, data, strict=True)]
                pairs.append({"evidence": one, "links": links, "value": _told(one)})
            total = sum(one.kind == kind for one in self.evidence)
            groups.append({"kind": kind, "title": TITLES[kind], "pairs": pairs, "total": total})
        write_text(folder / PAGE, page("leaks.html", data=self.data, groups=groups, lines=summary_lines(self.data)))


TITLES: Mapping[str, str] = {
    "same_pixels": "The same pixels",
    "perceptual": "Nearly the same, by perceptual hash",
    "mirrored": "Nearly the same, mirrored",
    "embedding": "Alike by embedding",
}


def shown_pairs(evidence: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    """Return the pairs of each kind that the page shows, nearest to the threshold first: these need a look."""
    found: dict[str, list[Evidence]] = {}
    for kind in KINDS:
        of_kind = [one for one in evidence if one.kind == kind]
        if of_kind:
            # Bits are counted from the same on, a cosine towards it.
            found[kind] = sorted(of_kind, key=lambda one: one.value, reverse=kind != "embedding")[:PAIRS_SHOWN]
    return found


def _small(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return thumbnail(read_photo(path))
    except BrokenPhotoError:
        return None


def _told(one: Evidence) -> str:
    if one.kind == "same_pixels":
        return "every pixel is equal"
    if one.kind == "embedding":
        return f"cosine {one.value:.4f}, bound {one.threshold:.4f}, {one.variant}"
    return f"{one.value:.0f} of 256 bits differ, bound {one.threshold:.0f}; {one.variant}"


def summary_lines(data: Data) -> list[str]:
    """Return what was found, in sentences."""
    whole, corpus, planted, decoys = data["parts"][WHOLE], data["corpus"], data["planted"], data["decoys"]
    leaked = whole["leaked"]
    lines = [
        "No photo of the benchmark could be compared: nothing is known of leaks."
        if leaked is None
        else f"{leaked:,} of {whole['compared']:,} benchmark images are in the corpus ({whole['leaked_share']:.2%}); "
        f"{whole['images'] - whole['compared']:,} were not compared, for want of a readable photo.",
        f"{corpus['images']:,} images of the corpus were read; {corpus['unreadable']:,} more could not be, and "
        f"{corpus['plain']:,} show so little that only their pixels were compared.",
    ]
    if planted is None:
        lines.append("No copy was planted: nothing is known of what this check misses.")
    else:
        told = ", ".join(
            f"{name} {one['found']} of {one['planted']} ({one['low']:.1%} to {one['high']:.1%})"
            for name, one in planted["alterations"].items()
            if one["planted"]
        )
        lines.append(
            f"Planted copies found, with 95 % intervals: {told}; {planted['taken_for_another']} of "
            f"{planted['copies']:,} were taken for another image too."
        )
    if decoys["by_chance"] is None:
        lines.append("The benchmark has fewer than eight pictures: chance was not estimated.")
    else:
        high = decoys["by_chance_high"]
        upper = "" if high is None else f" (at most {high:.1f}, 95 %)"
        lines.append(f"Corpus images near a decoy, which is chance: {decoys['by_chance']:,}{upper}.")
    return lines


def _scored(data: Data) -> Iterator[Scored]:
    for part, record in data["parts"].items():
        numbers = record if part != WHOLE else {**record, **{key: data[key] for key in ("planted", "decoys", "corpus")}}
        yield Scored(
            variant="", numbers=numbers, method=data["corpus"]["name"], truth={}, predictions={}, split=part,
            part=part, settings={key: str(value) for key, value in data["thresholds"].items()},
        )  # fmt: skip


def _tables(result: Result) -> Iterator[Table]:
    assert isinstance(result, Leaks)  # noqa: S101
    data = result.data
    kinds = [Column(kind, "count") for kind in KINDS]
    columns = (Column("part"), Column("images", "count"), Column("compared", "count"), Column("leaked", "count"),
               Column("leaked_share", "share", "share"), *kinds)  # fmt: skip
    rows = [
        (name, one["images"], one["compared"], one["leaked"], one["leaked_share"], *map(one["leaked_by"].get, KINDS))
        for name, one in data["parts"].items()
    ]
    yield Table("parts", columns, rows, title="Benchmark images in the corpus, by their strongest evidence")
    names = ("benchmark", "corpus", "kind", "variant", "value", "threshold")
    found = [tuple(getattr(one, name) for name in names) for one in result.evidence]
    shown = found[:_SHOWN]
    some = f": {len(shown)} of {len(found):,} pairs" if len(found) > len(shown) else ""
    yield Table(
        "leaks",
        tuple(Column(name, "score" if name in ("value", "threshold") else "") for name in names),
        found,
        title=f"Evidence{some}" if found else "",
        printed=shown,
        file=True,
    )
    yield Table("unreadable", tuple(map(Column, ("corpus", "reason"))), result.unreadable, file=True)
    if data["planted"] is not None:
        columns = (Column("copies"), Column("planted", "count"), Column("found", "count"), Column("recall", "share"),
                   Column("low", "share"), Column("high", "share"), *kinds)  # fmt: skip
        planted = [
            (name, *(one[column.name] for column in columns[1:]))
            for name, one in data["planted"]["alterations"].items()
        ]
        yield Table("planted", columns, planted, title="Planted copies, with 95 % intervals (Wilson)")


_SHOWN = 20
REPORT = Report(_PROTOCOL, MEASURES, _scored, _tables, files=("leaks", "unreadable"))


class _Manifest(msgspec.Struct, frozen=True):
    name: str
    version: str
    digest: str


class _Part(msgspec.Struct, frozen=True):
    images: int
    compared: int
    leaked: int | None
    leaked_by: dict[str, int | None]
    examples: tuple[str, ...]


class _Planted(msgspec.Struct, frozen=True):
    planted: int
    found: int
    low: float | None


class _Copies(msgspec.Struct, frozen=True):
    alterations: dict[str, _Planted]


class _Corpus(msgspec.Struct, frozen=True):
    name: str
    images: int
    unreadable: int


class LeakFile(msgspec.Struct, frozen=True):
    """What an audit needs of ``leaks.json``."""

    protocol: str
    manifest: _Manifest
    corpus: _Corpus
    parts: dict[str, _Part]
    planted: _Copies | None = None

    @property
    def whole(self) -> str:
        """The name of all parts together among the parts."""
        return WHOLE

    @property
    def missed(self) -> str:
        """What is known of leaks that the check does not find, to be put behind a sentence."""
        if self.planted is None:
            return "; no copy was planted, so that nothing is known of what was missed"
        told = [f"{name} {one.found} of {one.planted}" for name, one in self.planted.alterations.items() if one.planted]
        return f"; of planted copies were found: {', '.join(told)}" if told else ""


def read_leaks(place: Path) -> LeakFile:
    """Return what a leak check said, from its folder or its ``leaks.json``.

    Raises
    ------
    MissingFileError
        There is none.
    UsageError
        It is something else.
    """
    path = place / JSON if place.is_dir() else place
    hint = "curation similarity leaks MANIFEST --corpus SHARDS --photos DIR --out DIR writes it"
    try:
        found = msgspec.json.decode(read_bytes(path, kind="leak check", most=_LARGEST), type=LeakFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError("This is no leak check", where=str(path), found=str(error)[:200], hint=hint) from None
    if found.protocol != _PROTOCOL or WHOLE not in found.parts:
        raise UsageError("This is no leak check", where=str(path), found=found.protocol[:80], hint=hint)
    return found
