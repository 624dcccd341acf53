"""What boxes of reviewers change: every number of an evaluation without and with them, and a paired interval.

Any evaluation that takes truth and detections is run as it is: once on the truth without the boxes, once with them,
and both again on each replicate of a bootstrap over images, so that a difference is that of paired values.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from curation.arguments import Replicates, Seed, checked
from curation.errors import CurationError, PredictionError, UsageError
from curation.evaluation.inputs import READING, Reading, places_in
from curation.evaluation.problem import Floats, Int64s
from curation.evaluation.readers import is_voc_results
from curation.evaluation.resample import GENERATOR, Resampled, resample, tail_of
from curation.evaluation.result import Column, Result, Table
from curation.input_files import InputFile, json_rows
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.manifest.overlay import Overlay, overlaid, taken_objects, without_overlay
from curation.sources.source import Images, Source, texts

DEFINITION = (
    "Percentile bootstrap over images. Each replicate draws as many images as there are, with replacement; parts whose "
    "truths share no image apart; an image drawn twice counts twice, under another id. The whole evaluation is made on "
    "the replicate without and with the boxes of reviewers, so that a difference is that of paired values. A replicate "
    "in which a number is undefined is counted, and left out of its interval."
)
REPLICATES = 200
_MAX_BYTES = 4 << 30
_WHICH = ("before", "after", "difference")


@checked
def compared(
    evaluate: Callable[..., Result], *, replicates: Replicates, seed: Seed = 0, confidence: str = "0.95"
) -> Any:
    """Return an evaluation that also tells its numbers without the boxes of reviewers, with the same signature.

    Its result is that with the boxes; its table ``overlay`` has a row a number: before, after, difference, interval.

    Parameters
    ----------
    replicates : int
        0 for no interval.

    Raises
    ------
    UsageError
        By the function made: there are no boxes of reviewers; or the evaluation takes no truth with boxes, or images by
        an option of its own.
    """
    tail = tail_of(confidence)

    @functools.wraps(evaluate)
    def both(**inputs: Any) -> Result:
        missing = {"truth", "detections", "reading"} - set(inspect.signature(evaluate).parameters)
        if missing or inputs.get("images"):
            raise UsageError(
                "The evaluation cannot be compared without and with boxes of reviewers",
                where="--images" if not missing else None,
                expected="an evaluation of detections, whose images a manifest or the truth names",
            )
        case = _Case.of(inputs)
        before, after = (evaluate(**case.inputs(which)) for which in _WHICH[:2])
        rows = _rows(before, after)
        intervals: Mapping[str, Any] = {}
        if replicates:
            with TemporaryDirectory(prefix="curation-") as folder:
                drawn = _Draws.of(case, Path(folder))
                found = resample(
                    lambda places: _statistics(evaluate, drawn, places, rows),
                    drawn.sizes,
                    replicates=replicates,
                    seed=seed,
                    label="bootstrap",
                )
            exact = Resampled({key: _cells(*rows[key]) for key in rows}, found.samples)
            intervals = {key: exact.intervals(key, tail).tolist() for key in rows}
        told = {
            "definition": DEFINITION,
            "generator": GENERATOR.format("image count"),
            "replicates": replicates,
            "seed": seed,
            "confidence": confidence,
            "overlays": [_summary(one) for one in case.overlays],
            "measures": {
                key: {"before": values[0], "after": values[1], "intervals": intervals.get(key)}
                for key, values in rows.items()
            },
        }
        return _with_table(after, told)

    return checked(both, called="The comparison", hint="curation evaluate --help")


def _rows(before: Result, after: Result) -> dict[str, tuple[float | None, float | None]]:
    first, second = before.numbers(), after.numbers()
    return {key: (_number(first.get(key)), _number(second.get(key))) for key in second}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _cells(before: float | None, after: float | None) -> Floats:
    one, other = (np.nan if value is None else value for value in (before, after))
    return np.array([one, other, other - one])


def _statistics(
    evaluate: Callable[..., Result], drawn: _Draws, places: Sequence[Int64s], keys: Iterable[str]
) -> dict[str, Floats]:
    found = []
    for inputs in drawn.inputs(places):
        try:
            found.append(evaluate(**inputs).numbers())
        except CurationError:
            # A replicate without any object of the known classes, say: none of its numbers is defined.
            found.append({})
    return {key: _cells(*(_number(one.get(key)) for one in found)) for key in keys}


def _summary(overlay: Overlay) -> dict[str, Any]:
    entry = overlay.entry()
    return {
        "sha256": entry.sha256,
        "images": entry.images,
        "boxes": entry.boxes,
        "exhaustive_images": entry.exhaustive_images,
    }


def _with_table(after: Result, told: Mapping[str, Any]) -> Result:
    """Return the result with the boxes, and one table more."""
    report = after.report
    table = _table(told)
    extended = replace(report, tables=lambda result: [*report.tables(result), table])
    return Result(
        extended,
        {**after.about, "overlay_effect": told},
        after.sections,
        columns=lambda: after.columns,
        notes=after.notes,
    )


def _table(told: Mapping[str, Any]) -> Table:
    rows = []
    for key, one in told["measures"].items():
        values = one["before"], one["after"]
        difference = None if None in values else values[1] - values[0]
        interval = one["intervals"][2] if one["intervals"] else {"low": None, "high": None, "undefined": None}
        rows.append((key, *values, difference, interval["low"], interval["high"], interval["undefined"]))
    changed = [row for row in rows if row[1] != row[2]]
    percent = f"{100 * (1 - 2 * tail_of(told['confidence'])):g} %"
    columns = (
        Column("measure"),
        *(Column(name, show=".4g") for name in _WHICH),
        Column("low", head=f"{percent} from", show=".4g"),
        Column("high", head="to", show=".4g"),
        Column("undefined", head="undefined in"),
    )
    title = (
        f"Without and with boxes of reviewers; {len(rows) - len(changed)} of {len(rows)} numbers are the same; "
        f"intervals of the paired difference, {told['replicates']} replicates"
    )
    return Table("overlay", columns, rows, title=title, printed=changed, file=True)


@dataclass(frozen=True)
class _Case:
    """The inputs of an evaluation, with truths that hold no box of a reviewer.

    Attributes
    ----------
    given : mapping
        As they were given.
    truths : mapping of str to Source
        ``""`` for one that has no name.
    manifests : mapping of str to Manifest
        Likewise.
    """

    given: Mapping[str, Any]
    reading: Reading
    truths: Mapping[str, Source]
    manifests: Mapping[str, Manifest]

    @classmethod
    def of(cls, inputs: Mapping[str, Any]) -> _Case:
        reading: Reading = inputs.get("reading") or READING
        manifests = {
            name: load_manifest(one) if isinstance(one, str) else one
            for name, one in _named(inputs.get("manifest")).items()
        }
        overlays = _overlays(reading, manifests)
        if not overlays:
            raise UsageError(
                "There are no boxes of reviewers to compare without and with",
                expected="--overlay FILE, or a manifest with an overlay",
                hint="curation apply MANIFEST --boxes boxes.jsonl",
            )
        opening = reading.opener()
        stripped: dict[int, Source] = {}
        truths = {}
        for name, one in _named(inputs["truth"]).items():
            source = opening(one)
            if id(source) not in stripped:
                bare = source
                for overlay in overlays:
                    bare = without_overlay(bare, overlay, places_in(bare, [image.image_id for image in overlay.images]))
                stripped[id(source)] = bare
            truths[name] = stripped[id(source)]
        return cls(inputs, reading, truths, manifests)

    @property
    def overlays(self) -> list[Overlay]:
        return _overlays(self.reading, self.manifests)

    def inputs(self, which: str) -> dict[str, Any]:
        """Return the inputs before, without boxes, or after, with them; what is exhaustive is so in both."""
        named = replace(self.reading, exhaustive_only=False).added()
        return self.changed(
            truths=self.truths,
            reading=replace(self.reading, overlay=_as(which, named)),
            manifests={
                name: replace(one, overlay=_as(which, one.require_overlay())) for name, one in self.manifests.items()
            },
        )

    def changed(
        self,
        *,
        truths: Mapping[str, Source],
        reading: Reading,
        manifests: Mapping[str, Manifest],
        detections: Mapping[str, Path] | None = None,
    ) -> dict[str, Any]:
        """Return the inputs with others in the places of those that were given."""
        found = dict(self.given) | {"truth": _unnamed(truths), "reading": reading}
        if manifests:
            found["manifest"] = _unnamed(manifests)
        return found | ({} if detections is None else {"detections": _unnamed(detections)})


def _named(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) else {"": given}


def _unnamed(given: Mapping[str, Any]) -> Any:
    return given[""] if list(given) == [""] else dict(given)


def _overlays(reading: Reading, manifests: Mapping[str, Manifest]) -> list[Overlay]:
    every = [replace(reading, exhaustive_only=False).added(one) for one in manifests.values() or (None,)]
    return list({one.digest: one for one in every if one is not None}.values())


def _as(which: str, overlay: Overlay | None) -> Overlay | None:
    if overlay is None or which == "after":
        return overlay
    return Overlay(tuple(msgspec.structs.replace(one, boxes=()) for one in overlay.images))


@dataclass(frozen=True)
class _Draws:
    """What a replicate is made of.

    Attributes
    ----------
    units : sequence of sequence of str
        The images of each set, drawn apart, by id.
    places : mapping of str to list of mapping
        For each truth and set, the place of each unit in the source, -1 where it is not there.
    """

    case: _Case
    folder: Path
    units: Sequence[Sequence[str]]
    before: Mapping[str, _Gathered]
    after: Mapping[str, _Gathered]
    places: Mapping[str, Sequence[Int64s]]
    detections: Mapping[str, tuple[str, Sequence[Mapping[str, list[bytes]]]]]

    @classmethod
    def of(cls, case: _Case, folder: Path) -> _Draws:
        listed = [image for one in case.manifests.values() for ids in one.lists.values() for image in ids]
        chosen = _wanted(case, listed)
        held: dict[str, dict[str, int]] = {}
        for name, source in case.truths.items():
            ids = source.image_ids.tolist() if not listed else list(dict.fromkeys(listed))
            at = zip(ids, places_in(source, ids).tolist(), strict=True)
            held[name] = {image: place for image, place in at if place >= 0 and (chosen is None or image in chosen)}
        units = _sets([set(one) for one in held.values()])
        places = {
            name: [np.array([at.get(image, -1) for image in one], np.int64) for one in units]
            for name, at in held.items()
        }
        return cls(
            case,
            folder,
            units,
            {name: _Gathered.of(source) for name, source in case.truths.items()},
            {name: _Gathered.of(_boxed(case, source)) for name, source in case.truths.items()},
            places,
            _grouped_detections(case, held, units),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(one) for one in self.units)

    def inputs(self, drawn: Sequence[Int64s]) -> Iterator[dict[str, Any]]:
        """Yield the inputs before and after of one replicate, whose images have ids of their own."""
        reading = replace(self.case.reading, overlay=None, exhaustive_only=False)
        files = {name: self._write(name, drawn) for name in self.detections}
        manifests = {name: self._listed(one, drawn) for name, one in self.case.manifests.items()}
        for gathered in (self.before, self.after):
            truths = {
                name: gathered[name].drawn([(at[rows], start) for at, rows, start in self._each(name, drawn)])
                for name in gathered
            }
            yield self.case.changed(truths=truths, reading=reading, manifests=manifests, detections=files)

    def _each(self, name: str, drawn: Sequence[Int64s]) -> Iterator[tuple[Int64s, Int64s, int]]:
        yield from zip(self.places[name], drawn, self._starts, strict=True)

    @property
    def _starts(self) -> list[int]:
        return [1 + sum(self.sizes[:place]) for place in range(len(self.sizes))]

    def _listed(self, manifest: Manifest, drawn: Sequence[Int64s]) -> Manifest:
        """Return the manifest with the images of the replicate, each as often as its list names it."""
        lists = {}
        for part, ids in manifest.lists.items():
            times: dict[str, int] = {}
            for image in ids:
                times[image] = times.get(image, 0) + 1
            lists[part] = tuple(
                f"{units[row].partition(':')[0]}:{start + place:012d}"
                for units, rows, start in zip(self.units, drawn, self._starts, strict=True)
                for place, row in enumerate(rows.tolist())
                for _ in range(times.get(units[row], 0))
            )
        return Manifest(msgspec.structs.replace(manifest.header, overlay=None), lists)

    def _write(self, name: str, drawn: Sequence[Int64s]) -> Path:
        stem, of_set = self.detections[name]
        folder = self.folder / (name or "all")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{stem}.json"
        rows = [
            b'{"image_id":%d,%b' % (start + place, rest)
            for units, found, chosen, start in zip(self.units, of_set, drawn, self._starts, strict=True)
            for place, row in enumerate(chosen.tolist())
            for rest in found.get(units[row], ())
        ]
        path.write_bytes(b"[" + b",".join(rows) + b"]")
        return path


def _wanted(case: _Case, listed: Sequence[str]) -> set[str] | None:
    if not case.reading.exhaustive_only:
        return None
    return {image for overlay in case.overlays for image in overlay.exhaustive}


def _boxed(case: _Case, source: Source) -> Source:
    classes = next((one.header.classes for one in case.manifests.values()), ())
    for overlay in case.overlays:
        source, _ = overlaid(source, overlay, places_in(source, [one.image_id for one in overlay.images]), classes)
    return source


def _sets(held: Sequence[set[str]]) -> list[list[str]]:
    """Return the images of truths that share some as one set, sorted."""
    sets: list[set[str]] = []
    for images in held:
        joined = set(images)
        apart = []
        for one in sets:
            if one & joined:
                joined |= one
            else:
                apart.append(one)
        sets = [*apart, joined]
    return [sorted(one) for one in sets if one]


@dataclass(frozen=True)
class _Gathered:
    """A source whose objects are grouped by image, so that images can be drawn from it."""

    source: Source
    order: Int64s
    start: Int64s
    count: Int64s

    @classmethod
    def of(cls, source: Source) -> _Gathered:
        image = source.require_objects("An evaluation").image
        count = np.bincount(image, minlength=len(source.images)).astype(np.int64)
        return cls(source, np.argsort(image, kind="stable"), np.cumsum(count) - count, count)

    def drawn(self, chosen: Sequence[tuple[Int64s, int]]) -> Source:
        """Return a source of the images at some places, -1 for those of others; numbered from a start on."""
        places = np.concatenate([at for at, _ in chosen])
        numbers = np.concatenate([start + np.arange(len(at)) for at, start in chosen])
        numbers, places = numbers[places >= 0], places[places >= 0]
        counts = self.count[places]
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        rows = self.order[np.repeat(self.start[places], counts) + within]
        natives = [f"{number:012d}" for number in numbers.tolist()]
        images = self.source.images
        objects = taken_objects(self.source.require_objects("An evaluation"), rows)
        return replace(
            self.source,
            images=Images(
                native=np.array(natives, np.str_),
                numbers=numbers.astype(np.int64),
                file_names=texts([f"{one}.jpg" for one in natives]),
                widths=images.widths[places],
                heights=images.heights[places],
            ),
            objects=replace(objects, image=np.repeat(np.arange(len(places), dtype=np.int32), counts)),
        )


def _grouped_detections(
    case: _Case, held: Mapping[str, Mapping[str, int]], units: Sequence[Sequence[str]]
) -> dict[str, tuple[str, list[dict[str, list[bytes]]]]]:
    """Return for each file of detections its stem, and the records of each image of each set, ids aside."""
    found = {}
    for name, path in _named(case.given["detections"]).items():
        if is_voc_results(path):
            raise UsageError(
                "Intervals of the difference need detections as COCO results",
                where=str(path),
                expected="a .json or .jsonl file",
                hint="--compare-overlay 0 tells the numbers without intervals",
            )
        of = name if name in case.truths else next(iter(case.truths))
        source = case.truths[of]
        spelled = _spellings(source, held[of])
        rows: dict[str, list[bytes]] = {}
        for row in _records(path):
            image = spelled.get(str(row.pop("image_id", None)))
            if image is not None:
                rows.setdefault(image, []).append(msgspec.json.encode(row)[1:])
        stem = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
        found[name] = stem, [{image: rows[image] for image in one if image in rows} for one in units]
    return found


def _spellings(source: Source, held: Mapping[str, int]) -> dict[str, str]:
    """Return the image that detections mean by a number, an id, or the stem of a file."""
    found = {}
    for image, place in held.items():
        stem = str(source.images.file_names[place]).replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
        for text in (stem, str(source.images.native[place]), str(source.images.numbers[place])):
            found[text] = image
    return found


def _records(path: Path) -> list[dict[str, Any]]:
    """Return the records of COCO results; the evaluation itself has read and checked them before."""
    data = InputFile(path, kind="detections", most=_MAX_BYTES, error=PredictionError).data
    return json_rows(data, dict[str, Any])
