"""The few numbers of each protocol that a leaderboard shows: place in a result, which way is better, unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from curation.evaluation import coco_engine, voc
from curation.evaluation.measures import Better, Measure, ranked

Result = Mapping[str, Any]
EACH = "*"
"""In a path: every key at this place; in a name: that key."""


@dataclass(frozen=True, slots=True)
class Headline:
    """One number of a protocol.

    Attributes
    ----------
    name : str
        ``*`` stands for the key that ``*`` of the path met.
    path : tuple of str or int
        Keys from the section of a result down to the number.
    better : {"higher", "lower"}
    unit : {"share", "%", "ratio", "count"}
        ``share`` lies in [0, 1].
    """

    name: str
    path: tuple[str | int, ...]
    better: Better
    unit: str


def _paths(better: Better, unit: str, **paths: tuple[str | int, ...]) -> tuple[Headline, ...]:
    return tuple(Headline(name, path, better, unit) for name, path in paths.items())


def _plain(better: Better, unit: str, *names: str) -> tuple[Headline, ...]:
    return tuple(Headline(name, (name,), better, unit) for name in names)


def _declared(measures: Iterable[Measure]) -> tuple[Headline, ...]:
    return tuple(
        Headline(
            one.key.partition("{")[0] + EACH * bool(one.parameters),
            tuple(EACH if str(step).startswith("{") else step for step in path),
            one.better or "higher",
            one.unit,
        )
        for one in ranked(measures)
        for path in one.paths or ((one.key,),)
    )


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "elephant": (
        *_paths("higher", "share", mAP11=("mAP11", 0), mAP_area=("mAP_area", 0), mAP=("mAP", 0)),
        # The paper's reading names its average over classes; the official code has but one.
        Headline("AWI@*", ("AWI", EACH, "macro", "excl_level0"), "lower", "ratio"),
        Headline("AWI@*", ("AWI", EACH, "excl_level0"), "lower", "ratio"),
    ),
    "voc": _declared(voc.MEASURES),
    "coco": _declared(coco_engine.MEASURES),
    "owod": (
        *_plain("higher", "%", "mAP_both", "mAP_prev", "mAP_cur", "UR", "UDR", "UDP"),
        *_plain("lower", "count", "A_OSE_objects", "A_OSE_detections"),
        *_plain("lower", "ratio", "WI"),
    ),
    "osod3": (
        *_plain("higher", "%", "AP_unk", "AP_known"),
        *_plain("lower", "count", "A_OSE"),
        *_plain("lower", "ratio", "WI"),
    ),
    "findmeifyoucan": (
        *_plain("higher", "share", "AUROC", "AUPR_trapezoid"),
        *_paths("lower", "share", FPR95=("FPR95", "value")),
        *_plain("lower", "%", "nOSE"),
        *_plain("lower", "count", "AOSE"),
        *_plain("higher", "%", "AP_U", "P_U", "R_U"),
    ),
    "imagenet": (
        Headline("CCR@*", ("rates", "ccr_at_fpr", EACH), "higher", "share"),
        *_paths("higher", "share", AUROC=("auroc", "unknown", "auroc")),
        *_paths("higher", "share", gamma=("confidence", "unknown", "gamma")),
        *_plain("higher", "share", "accuracy"),
    ),
}
"""Protocol to its numbers; the first that a group of rows holds is the one that they are ranked by."""

EVALUATORS: dict[str, int] = {
    **dict.fromkeys(HEADLINES, 1),
    # official: closed images without annotation leave N.
    "elephant": 2,
    # owdetr: recalls in floating point; --repeats keep: copies of an object that was found are no FN_u*.
    "owod": 2,
    # P_U is undefined without objects.
    "findmeifyoucan": 2,
}
"""Version of each evaluator: raised when a number of the same inputs may change."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One reading of one method on one part, out of a result.

    Attributes
    ----------
    part, profile : str
    variant : str
        Which of the method's scores, ``""`` where there is but one.
    numbers : mapping
        What the paths of `HEADLINES` lead into.
    truth : mapping
        What names the ground truth: digests, and what was left out of it.
    predictions : mapping of str to mapping
        Records of the files that hold the predictions: ``sha256`` and ``reported``.
    settings : dict of str to str
        Choices that change the numbers: rows that differ here are not comparable.
    operating_point : dict of str to str
        What belongs to the method, or tells where it was read; rows may differ here.
    pinned : bool
        Whether manifest and part say which images were scored.
    manifest : mapping or None
        Name, version and digest, where a result has one for each case; else the result's own.
    name : str
        Of the method, as the result has it.
    """

    part: str
    profile: str
    numbers: Result
    truth: Result
    predictions: Mapping[str, Result]
    settings: dict[str, str]
    operating_point: dict[str, str]
    name: str
    variant: str = ""
    pinned: bool = True
    manifest: Result | None = None


def headline_numbers(protocol: str, numbers: Result) -> Iterator[tuple[str, Headline, int | float | None]]:
    """Yield name, definition and value of each number that a section holds; None where it is undefined."""
    for headline in HEADLINES[protocol]:
        yield from ((name, headline, value) for name, value in _found(numbers, headline.path, headline.name))


def headline_of(protocol: str, name: str) -> Headline | None:
    """Return the definition of a number by its name, ``AWI@0.3``; None for a name that is none of a protocol's."""
    return next((one for one in HEADLINES.get(protocol, ()) if _is_called(one, name)), None)


def place_of(protocol: str, name: str) -> tuple[int, str]:
    """Return where a number stands among those of its protocol; one that it does not know stands behind, by name."""
    headlines = HEADLINES.get(protocol, ())
    place = next((place for place, one in enumerate(headlines) if _is_called(one, name)), len(headlines))
    return place, name


def _is_called(headline: Headline, name: str) -> bool:
    start, star, _ = headline.name.partition(EACH)
    return name.startswith(start) and len(name) > len(start) if star else name == start


def _found(value: Any, path: tuple[str | int, ...], name: str) -> Iterator[tuple[str, int | float | None]]:
    if not path:
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield name, value
        return
    key, rest = path[0], path[1:]
    values: Mapping[Any, Any]
    if isinstance(key, int):
        values = {key: value[key]} if isinstance(value, list) and key < len(value) else {}
    elif isinstance(value, Mapping):
        values = value if key == EACH else {key: value[key]} if key in value else {}
    else:
        values = {}
    for one, below in values.items():
        yield from _found(below, rest, name.replace(EACH, str(one)) if key == EACH else name)
