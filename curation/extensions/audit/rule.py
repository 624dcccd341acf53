"""`Rule`: one machine-checkable principle with its exact check, and what to do when it is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from curation.extensions.audit.target import SHOWN_EXAMPLES

Severity = Literal["error", "warning", "info"]
Verdict = Literal["fail", "warn", "undecidable", "info", "pass", "not applicable"]

NOTHING: Verdict = "not applicable"

PRINCIPLES: Mapping[str, str] = {
    "CO": "Class openness",
    "TI": "Task increment",
    "AS": "Annotation specificity",
    "LI": "Label integrity",
    "DS": "Data specificity",
    "PL": "Published lists",
    "KI": "Kinship",
    "LK": "Leaks",
}
"""By the letters of their rules: Zhao et al., Revisiting Open World Object Detection, arXiv 2201.00471, section 3, but
for published lists, kinship and leaks, which are ours."""

VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "undecidable", "info", "pass", "not applicable")
"""Strongest first: the verdict of a rule is the strongest among those of its findings."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a rule for a list, a pair of lists, a task or a source.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    about : str
        Subject of the finding: ``t2-train``, ``val against train``.
    count : int
        Violations that are proven, or the number that an info rule reports. Where data are partly missing, the text
        says ``at least`` or ``at most``.
    text : str
        The result, a sentence without a final full stop.
    examples : tuple of str
        The first few violations with their place, sorted.
    need : str
        Undecidable findings alone: which data are missing and how to give them.
    of : int or None
        Total of which `count` is a part: lines, images or pairs.
    lists : tuple of str
        Names of the lists concerned.
    pairs : tuple of (str, str)
        Those of the pairs.
    asked : int
        Number of questions, one per rule and list or pair, that the finding covers; 0 for notes.
    like : str
        Common text of findings on many lists: three or more with the same text become one statement.
    brief : str
        Short subject, to tell such findings apart: ``art_painting``.
    hint : str
        How to fix it, if this differs from the hint of the rule.
    reason : str
        Of undecidable findings with `like`: why, by which many are counted in one sentence.
    """

    verdict: Verdict
    about: str
    count: int = 0
    text: str = ""
    examples: tuple[str, ...] = ()
    need: str = ""
    of: int | None = None
    lists: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    asked: int = 1
    like: str = ""
    brief: str = ""
    hint: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The findings of a rule and their verdict.

    Attributes
    ----------
    findings : tuple of Finding
    total : int or None
        Violations over all findings where these overlap and do not add up; None where they do.
    """

    findings: tuple[Finding, ...]
    total: int | None = None

    @property
    def verdict(self) -> Verdict:
        """The strongest verdict among the findings; ``not applicable`` where there are none."""
        present = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in VERDICTS if verdict in present), "not applicable")

    @property
    def count(self) -> int:
        """How many violations are behind the verdict; what a pass counted are none."""
        if self.verdict == "pass":
            return 0
        if self.total is not None:
            return self.total
        return sum(finding.count for finding in self.findings if finding.verdict == self.verdict)

    @property
    def examples(self) -> tuple[str, ...]:
        """The first few examples of the findings that make the verdict."""
        chosen = [text for finding in self.findings if finding.verdict == self.verdict for text in finding.examples]
        return tuple(dict.fromkeys(chosen))[:SHOWN_EXAMPLES]

    @property
    def needs(self) -> tuple[str, ...]:
        """Data missing for undecidable findings, without duplicates."""
        return tuple(dict.fromkeys(finding.need for finding in self.findings if finding.need))


Check = Callable[..., Outcome | Iterable[Finding]]
"""``check(target)`` or, of a rule that judges lists one by one, ``check(ListInTask)``
(`curation.extensions.audit.judgement`)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the audit.

    Attributes
    ----------
    name : str
        ``CO1`` to ``PL17``; the letters name the principle (see `PRINCIPLES`).
    subject : str
        What it asks about, a few words: *groups on both sides*.
    definition : str
        What a sound benchmark satisfies, one sentence.
    fix : str
        What to do when it is broken.
    check : callable
        It returns findings, or an `Outcome` where these overlap: pure.
    roles : tuple of str
        Roles of the lists that it judges: without a list of any of them it is undecidable, or does not apply.
    tasks : bool
        Whether it judges tasks, and is undecidable where they are not known.
    not_shown : str
        What its findings do not prove.
    each : bool
        Whether lists are judged one by one: ``check(ListInTask)`` for each in each of its tasks.
    """

    name: str
    subject: str
    definition: str
    fix: str
    check: Check
    roles: tuple[str, ...] = ()
    tasks: bool = True
    not_shown: str = ""
    each: bool = False

    @property
    def of_published_lists(self) -> bool:
        """Whether it judges the files of a folder; such rules apply to folders only."""
        return self.name.startswith("PL")


def undecidable(about: str, need: str, text: str = "", examples: tuple[str, ...] = ()) -> Finding:
    """Return the finding that data are missing, with the way to give them."""
    return Finding("undecidable", about, 0, text, examples, need)


def not_applicable(text: str) -> Outcome:
    """Return the outcome of a rule that has nothing to judge here."""
    return Outcome((Finding("not applicable", "", text=text),))


def joined(names: Sequence[str], shown: int = 6) -> str:
    """Return names in one text, the first few of a long list."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
