"""`Leaks`: the outcome of a leak check as a `Result`, with its evidence as CSV and a page that shows the pairs."""

from __future__ import annotations

import json
import tomllib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from curation.core.arguments import checked
from curation.core.errors import UsageError
from curation.core.files import read_bytes
from curation.core.pages import page
from curation.core.wording import counted
from curation.core.writing import publishing_files, write_text
from curation.evaluation.measures import Data, Measure, Measured, Scored, Value
from curation.evaluation.result import Column, Report, Result, Table
from curation.extensions.leaks.step import KINDS, Evidence, thumbnail
from curation.sources.photos import BrokenPhotoError, read_photo

JSON, PAGE, LEAKED = "leaks.json", "leaks.html", "leaked.txt"
"""What `Leaks.save` writes."""
PAIRS_SHOWN = 60
"""Pairs of a kind that the page shows, those in doubt first."""
WHOLE = "benchmark"
"""Name of the entry for all parts together."""
_PROTOCOL = "leaks"
_LARGEST = 1 << 30
_FACTS = tomllib.loads(files(__package__).joinpath("facts.toml").read_text(encoding="utf-8"))
MEASURES = tuple(msgspec.convert(measure, Measure) for group in ("part", "check") for measure in _FACTS[group])


class Leaks(Result):
    """The outcome of a leak check: a `Result` that is saved with its evidence and a page of pairs.

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
    shard : str, optional
        The task of an array (``I/N``) whose blocks alone were read.
    """

    def __init__(
        self,
        data: Data,
        *,
        evidence: Sequence[Evidence],
        unreadable: Sequence[tuple[str, str]] = (),
        photos: Mapping[str, Path] | None = None,
        thumbnails: Mapping[str, bytes] | None = None,
        notes: Sequence[str] = (),
        shard: str | None = None,
    ) -> None:
        alone = [
            f"of shard {shard} of the corpus alone: after all tasks, the command without --shard reports on the whole"
        ]
        super().__init__(REPORT, data, scored=_scored(data), notes=[*notes, *(alone if shard else ())])
        self.shard = shard
        self.evidence = tuple(evidence)
        self.unreadable = tuple(unreadable)
        self._photos = photos or {}
        self._thumbnails = thumbnails or {}

    @property
    def leaked(self) -> tuple[str, ...]:
        """The benchmark images that are in the corpus, sorted."""
        return tuple(sorted({item.benchmark for item in self.evidence}))

    @checked
    def save(self, folder: Path | str, *, figures: bool = False, outcomes: bool = False) -> list[Path]:
        """Write ``leaks.json``, ``leaks.csv``, ``leaked.txt``, ``unreadable.csv`` and a page of pairs, together.

        There are no `figures` and no `outcomes`.

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
            content = json.dumps(self.json_data(), indent=1, ensure_ascii=False, allow_nan=False)
            write_text(new / JSON, content + "\n")
        return [folder / name for name in ("leaks.csv", "unreadable.csv", LEAKED, PAGE, JSON)]

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


def shown_pairs(evidence: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    """Return the pairs of each kind that the page shows, nearest to the threshold first: these need a look."""
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
    """Return what was found, in sentences."""
    total, corpus, planted = data["parts"][WHOLE], data["corpus"], data["planted"]
    leaked = total["leaked"]
    lines = [
        "No photo of the benchmark could be compared: nothing is known about leaks."
        if leaked is None
        else f"{leaked:,} of {total['compared']:,} benchmark images are in the corpus ({total['leaked_share']:.2%}); "
        f"{total['images'] - total['compared']:,} without a readable photo were not compared.",
        f"{counted(corpus['images'], 'image')} of the corpus read, {corpus['unreadable']:,} unreadable; "
        f"{corpus['plain']:,} too plain for a perceptual code: compared by pixels only.",
    ]
    if planted is None:
        lines.append("No copies were planted: what this check misses is unknown.")
    else:
        counts = ", ".join(
            f"{name} {record['found']} of {record['planted']} ({record['low']:.1%} to {record['high']:.1%})"
            for name, record in planted["alterations"].items()
            if record["planted"]
        )
        lines.append(
            f"Planted copies found, with 95 % intervals: {counts}; {planted['taken_for_another']} of "
            f"{planted['copies']:,} were also mistaken for another image."
        )
    return lines


def _scored(data: Data) -> Iterator[Scored]:
    for part, record in data["parts"].items():
        n = record["compared"]
        values = [Value(key, record[key], n=n) for key in ("leaked", "leaked_share")]
        values += [Value("leaked_by", count, {"kind": kind}, n) for kind, count in record["leaked_by"].items()]
        yield Scored(
            variant="",
            found=Measured(values + (_of_check(data) if part == WHOLE else []), {}),
            method=data["corpus"]["name"],
            truth={},
            predictions={},
            split=part,
            part=part,
            settings={key: str(value) for key, value in data["thresholds"].items()},
        )


def _of_check(data: Data) -> list[Value]:
    if (planted := data["planted"]) is None:
        return []
    ends = {"recall": "recall", "recall_low": "low", "recall_high": "high"}
    return [
        Value("taken_for_another", planted["share"], n=planted["copies"]),
        *(
            Value(key, record[name], {"alteration": alteration}, planted["images"])
            for alteration, record in planted["alterations"].items()
            for key, name in ends.items()
        ),
    ]


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
    if data["planted"] is not None:
        columns = (Column("copies"), Column("planted", "count"), Column("found", "count"), Column("recall", "share"),
                   Column("low", "share"), Column("high", "share"), *kinds)  # fmt: skip
        planted = [
            (name, *(record[column.name] for column in columns[1:]))
            for name, record in data["planted"]["alterations"].items()
        ]
        yield Table("planted", columns, planted, title="Planted copies, with 95 % intervals (Wilson)")


_SHOWN = 20
REPORT = Report(_PROTOCOL, MEASURES, _tables, files=("leaks", "unreadable"))


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
    """Fields of ``leaks.json`` that an audit needs."""

    protocol: str
    manifest: _Manifest
    corpus: _Corpus
    parts: dict[str, _Part]
    planted: _Copies | None = None

    @property
    def missed(self) -> str:
        """Text on leaks that the check misses, to be appended to a sentence."""
        if self.planted is None:
            return "; no copies were planted, so what was missed is unknown"
        counts = [
            f"{name} {copy.found} of {copy.planted}" for name, copy in self.planted.alterations.items() if copy.planted
        ]
        return f"; planted copies found: {', '.join(counts)}" if counts else ""


def read_leaks(target: Path) -> LeakFile:
    """Return the outcome of a leak check from its folder or its ``leaks.json``.

    Raises
    ------
    MissingFileError
        The file does not exist.
    UsageError
        The file is not the output of a leak check.
    """
    path = target / JSON if target.is_dir() else target
    hint = "curation similarity leaks MANIFEST --corpus SHARDS --photos DIR --out DIR writes it"
    try:
        outcome = msgspec.json.decode(read_bytes(path, kind="leak check", most=_LARGEST), type=LeakFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError("Not the output of a leak check", where=str(path), found=str(error)[:200], hint=hint) from None
    if outcome.protocol != _PROTOCOL or WHOLE not in outcome.parts:
        raise UsageError("Not the output of a leak check", where=str(path), found=outcome.protocol[:80], hint=hint)
    return outcome
