"""Declaration of measures: each number with its formula, unit, direction and source.

The measures of a benchmark are a tuple of `Measure`; leaderboards rank by the first. Definitions in results, the tables
of docs/measures.md, units, and the direction and order of leaderboard rows follow from it. The key of a measure
contains its parameters, ``AWI@{recall}``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib.resources import files
from math import inf
from operator import add
from typing import Any, Literal, NamedTuple

Better = Literal["higher", "lower"]
Unit = Literal["share", "%", "ratio", "count", "score"]
UNITS: dict[Unit, str] = {
    "share": "in [0, 1]",
    "%": "in [0, 100]",
    "ratio": "a quotient without an upper bound",
    "count": "an integer",
    "score": "in the unit of the scores",
}
Number = int | float
RANGES: dict[str, tuple[float, float]] = {"share": (0, 1), "%": (0, 100), "ratio": (-1, inf), "count": (0, inf)}
"""Range of the numbers of a unit, ends included; a ratio may be a quotient minus 1, and other units have no limits."""
Data = Mapping[str, Any]
"""A result, or a section of it, as in its JSON."""
_PARAMETER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Measure:
    """The declaration of a number.

    Attributes
    ----------
    key : str
        Name in results, with parameters in braces: ``UR``, ``AWI@{recall}``.
    name : str
        Name in words.
    formula : str
        Computation in words.
    unit : {"share", "%", "ratio", "count", "score"}
        See `UNITS`.
    better : {"higher", "lower"} or None
    source : str
        Paper with section, equation or table; or code.
    undefined : str
        When the number is undefined.
    ranked : bool
        Whether leaderboards show it.
    bounds : tuple of float, optional
        Range of its numbers, if it is not that of its unit (`RANGES`).
    """

    key: str
    name: str
    formula: str
    unit: Unit
    better: Better | None = None
    source: str = ""
    undefined: str = ""
    ranked: bool = False
    bounds: tuple[float, float] | None = None

    @property
    def base(self) -> str:
        """Return the key without its parameters."""
        return _PARAMETER.sub("", self.key).rstrip("@")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return tuple(_PARAMETER.findall(self.key))

    def matches(self, key: str) -> bool:
        """Return whether a key such as ``AWI@0.3`` belongs to this measure."""
        pattern = _PARAMETER.sub("\0", self.key)
        return re.fullmatch(re.escape(pattern).replace("\0", ".+"), key, re.DOTALL) is not None

    def key_of(self, parameters: Mapping[str, str]) -> str:
        """Return the key with values of its parameters."""
        return _PARAMETER.sub(lambda match: parameters[match[1]], self.key)


def facts_of(module: str) -> dict[str, Any]:
    """Return the facts in the file ``NAME.toml`` beside a module."""
    package, _, name = module.rpartition(".")
    return tomllib.loads(files(package).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def range_of(unit: str, measure: Measure | None = None) -> tuple[float, float]:
    """Return the range of the numbers of a measure, else of a unit."""
    return measure.bounds if measure and measure.bounds else RANGES.get(unit, (-inf, inf))


class Value(NamedTuple):
    """A measured number: a row of a result.

    Attributes
    ----------
    measure : str
        Key of its declaration, without parameters.
    value : int or float or None
    parameters : mapping of str to str
    n : int, optional
        Number of samples behind the value.
    undefined : str
        Why the value is missing; by default the reason in the declaration.
    """

    measure: str
    value: Number | None
    parameters: Mapping[str, str] = {}
    n: Number | None = None
    undefined: str = ""


class Measured(NamedTuple):
    """Values and tables of a variant on a part.

    Attributes
    ----------
    values : sequence of Value
    tables : mapping of str to mapping
        Further tables by name, each with equally long columns by name.
    notes : sequence of str
        Sentences for the reader of the numbers.
    """

    values: Sequence[Value]
    tables: Mapping[str, Mapping[str, Sequence[Any]]]
    notes: Sequence[str] = ()

    def value(self, key: str) -> Number | None:
        """Return the value of a measure without parameters, by its key."""
        return next(row.value for row in self.values if row.measure == key and not row.parameters)


def percent(value: Number | None) -> Number | None:
    """Return a fraction in percent, or None for None."""
    return None if value is None else 100 * value


def sum_in_order(values: Sequence[float]) -> float:
    """Return the sum of numbers added one by one: `sum` compensates from Python 3.12 on and gives other last digits."""
    return reduce(add, values, 0.0)


def ranked(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Return the measures that leaderboards show, in their order."""
    return tuple(measure for measure in measures if measure.ranked)


def measure_of(measures: Sequence[Measure], key: str) -> Measure | None:
    """Return the measure of a key such as ``AWI@0.3``, or None if no measure matches."""
    return next((measure for measure in measures if measure.matches(key)), None)


def place_of(measures: Sequence[Measure], key: str) -> tuple[int, str]:
    """Return the sort key of a measure's key: the order of the measures, then unknown keys by name."""
    return next((position for position, measure in enumerate(measures) if measure.matches(key)), len(measures)), key


def formulas(measures: Sequence[Measure], *keys: str) -> dict[str, str]:
    """Return the formulas of measures by key, for the definitions of a result."""
    by_key = {measure.base: measure.formula for measure in measures}
    return {key: by_key[key] for key in keys}


def definitions(measures: Iterable[Measure], **rules: str) -> dict[str, str]:
    """Return the definitions in a result: `rules`, then the formula of each measure by its base key."""
    return {**rules, **{measure.base: measure.formula for measure in measures}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Numbers of a method on a part under a variant, with the facts that make other numbers comparable.

    Attributes
    ----------
    variant : str
    found : Measured
        Its numbers.
    method : str
        Its name, by default that of the file of its predictions.
    score : str
        Which of the scores of the method; ``""`` if there is only one.
    part, task, split, case : str
        Names of the scored part, task, split and case; ``""`` if the protocol has no such level.
    truth : mapping
        Identity of the ground truth: digests, and the numbers of records left out.
    predictions : mapping of str to mapping
        Records of the files of predictions: ``sha256`` and ``reported``.
    settings : dict of str to str
        Choices that change the numbers: rows with different settings are not comparable.
    operating_point : dict of str to str
        Settings of the method, or the point at which it was measured; rows may differ in them.
    pinned : bool
        Whether manifest and part identify the scored images.
    manifest : mapping or None
        Name, version and digest, if each case of a result has its own manifest; None for that of the result.
    of_several : bool
        Whether a result may have several methods, whose names are then part of the labels.
    """

    variant: str
    method: str
    truth: Data
    predictions: Mapping[str, Data]
    found: Measured
    part: str = ""
    task: str = ""
    split: str = ""
    case: str = ""
    score: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    operating_point: dict[str, str] = field(default_factory=dict)
    pinned: bool = True
    manifest: Data | None = None
    of_several: bool = False

    @property
    def label(self) -> str:
        """Return the label that identifies this entry in its result, such as ``t1/clean``."""
        method = self.method if self.of_several else ""
        return "/".join(filter(None, (self.task, self.split, self.case, method, self.score, self.variant)))


def declared_values(scored: Scored, measures: Iterable[Measure]) -> Iterator[tuple[Measure, Value]]:
    """Yield each declared measure with its number, in the order of the declarations."""
    rows: dict[str, list[Value]] = {}
    for row in scored.found.values:
        rows.setdefault(row.measure, []).append(row)
    for measure in measures:
        for row in rows.get(measure.base, ()):
            undefined = "" if row.value is not None else row.undefined or measure.undefined
            yield measure, row._replace(undefined=undefined)
