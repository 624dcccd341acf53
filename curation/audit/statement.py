"""`Statement`: what an audit says in the end, each thing once, with its number, its base and what it does not show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from curation.audit.rule import Finding, Outcome, Rule, Verdict, joined
from curation.text_table import printable

Gravity = Literal["error", "warning", "undecidable", "note", "pass"]

GRAVITIES: Mapping[Verdict, Gravity] = {
    "fail": "error",
    "warn": "warning",
    "undecidable": "undecidable",
    "info": "note",
    "pass": "pass",
}
"""In the order of a report, by the verdict of a finding."""

SHOWN_EXAMPLES = 3
_ALIKE = 3
_SHOWN_ALIKE = 8


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule with what it found."""

    rule: Rule
    outcome: Outcome

    def __repr__(self) -> str:
        return f"RuleResult({self.rule.name}: {self.outcome.verdict})"


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that is said of some lists.

    Attributes
    ----------
    rule : str
    gravity : {"error", "warning", "undecidable", "note", "pass"}
    lists : tuple of str
    count, of : int, int or None
        What was counted, and of how many.
    text : str
        A sentence without a final full stop.
    examples : tuple of str
        The first few, each with its list and line.
    limits : str
        What it does not show.
    hint : str
        How to mend it, or how to make it decidable.
    pairs : tuple of (str, str)
    parts : tuple of dict
        Of like findings that are told in one sentence: what each is about, its count and text.
    """

    rule: str
    gravity: Gravity
    lists: tuple[str, ...]
    count: int
    of: int | None
    text: str
    examples: tuple[str, ...]
    limits: str
    hint: str
    pairs: tuple[tuple[str, str], ...] = ()
    parts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Sums:
    """How much an audit could decide, a question being a rule and a list or pair that it applies to."""

    decided: int
    questions: int
    errors: int
    warnings: int
    notes: int
    undecidable: Mapping[str, int]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def statements(results: Iterable[RuleResult], folder: str = "") -> tuple[Statement, ...]:
    """Return what rules found, gravest first, in the order of the rules.

    Parameters
    ----------
    folder : str
        That all lists are in, with its slash: sentences leave it out.
    """
    made = [one for result in results for one in _of_rule(result)]
    if folder:
        made = [
            replace(
                one,
                text=one.text.replace(folder, ""),
                examples=tuple(text.replace(folder, "") for text in one.examples),
                hint=one.hint.replace(folder, ""),
            )
            for one in made
        ]
    order = list(GRAVITIES.values())
    return tuple(sorted(made, key=lambda one: order.index(one.gravity)))


def by_need(told: Iterable[Statement]) -> list[Statement]:
    """Return statements, those that need the same to be decided as one: its rules are named together."""
    groups: dict[tuple[str, ...], list[Statement]] = {}
    for place, one in enumerate(told):
        key = (one.hint, one.text) if one.gravity == "undecidable" else (str(place),)
        groups.setdefault(key, []).append(one)
    return [replace(group[0], rule=", ".join(one.rule for one in group)) for group in groups.values()]


def sums_of(results: Sequence[RuleResult], told: Sequence[Statement]) -> Sums:
    """Return how many questions rules could decide, and what came out."""
    asked = {"decided": 0, "undecidable": 0}
    open_: dict[str, int] = {}
    for result in results:
        for one in result.outcome.findings:
            if one.verdict == "undecidable":
                open_[result.rule.name] = open_.get(result.rule.name, 0) + one.asked
            elif one.verdict in ("fail", "warn", "pass"):
                asked["decided"] += one.asked
    gravities = [one.gravity for one in told]
    return Sums(
        decided=asked["decided"],
        questions=asked["decided"] + sum(open_.values()),
        errors=gravities.count("error"),
        warnings=gravities.count("warning"),
        notes=gravities.count("note"),
        undecidable=open_,
    )


def _of_rule(result: RuleResult) -> Iterator[Statement]:
    rule, findings = result.rule, result.outcome.findings
    groups: dict[tuple[str, str], list[Finding]] = {}
    for place, one in enumerate(findings):
        if one.verdict in GRAVITIES:
            alike = one.need if one.verdict == "undecidable" else one.like
            groups.setdefault((one.verdict, alike or str(place)), []).append(one)
    asked = sum(one.asked for one in findings if one.verdict in ("fail", "warn", "pass", "undecidable"))
    for (verdict, _), group in groups.items():
        if verdict == "undecidable" or len(group) >= _ALIKE:
            yield _together(rule, group, asked)
        else:
            yield from (_alone(rule, one) for one in group)


def _alone(rule: Rule, one: Finding) -> Statement:
    broken = one.verdict in ("fail", "warn")
    return Statement(
        rule=rule.name,
        gravity=GRAVITIES[one.verdict],
        lists=one.lists,
        count=one.count,
        of=one.of,
        text=_sentence(one) or rule.definition,
        examples=tuple(map(printable, one.examples)),
        limits=rule.not_shown if one.verdict != "pass" or rule.of_published_lists else "",
        hint=one.need or one.hint or (rule.fix if broken else ""),
        pairs=one.pairs,
    )


def _sentence(one: Finding) -> str:
    return printable(": ".join(text for text in (one.about, one.text) if text))


def _by_reason(group: Sequence[Finding]) -> Iterator[str]:
    for reason, count in Counter(one.reason for one in group).most_common():
        own = [one.brief for one in group if one.reason == reason]
        yield f"{reason} ({count:,}: {joined(list(dict.fromkeys(own)), SHOWN_EXAMPLES)})"


def _together(rule: Rule, group: Sequence[Finding], asked: int) -> Statement:
    """Return like findings as one statement with a part each."""
    first = _alone(rule, group[0])
    pairs = tuple(pair for one in group for pair in one.pairs)
    lists = tuple(dict.fromkeys(name for one in group for name in one.lists))
    kind = group[0].verdict
    if kind != "undecidable":
        named = [f"{one.brief or one.about} ({one.count:,})" if one.count else one.brief or one.about for one in group]
        where = f"in {len(group)} of {asked:,} {'pairs' if pairs else 'lists'} " if kind in ("fail", "warn") else ""
        text = f"{where}{group[0].like}: {joined(named, _SHOWN_ALIKE)}"
    elif group[0].like:
        text = f"in {len(group):,} pairs {group[0].like}: {', '.join(_by_reason(group))}"
    elif len(texts := list(dict.fromkeys(one.text for one in group if one.text))) > 1:
        text = joined([_sentence(one) for one in group], SHOWN_EXAMPLES)
    else:
        text = ": ".join([joined(list(dict.fromkeys(one.about for one in group)), SHOWN_EXAMPLES), *texts])
    if len(group) == 1:
        text = first.text
    return Statement(
        rule=rule.name,
        gravity=first.gravity,
        lists=lists,
        count=sum(one.count for one in group),
        of=sum(one.of for one in group if one.of) or None,
        text=printable(text),
        examples=tuple(printable(text) for one in group[:SHOWN_EXAMPLES] for text in one.examples[:1])
        if len(group) > 1
        else first.examples,
        limits=first.limits,
        hint=first.hint,
        pairs=pairs,
        parts=tuple(
            {"about": one.about, "lists": list(one.lists), "count": one.count, "of": one.of, "text": one.text}
            for one in group
            if len(group) > 1
        ),
    )
