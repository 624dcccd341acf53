"""`run_audit`: every rule on one target, in the order of the principles."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from curation.audit.rule import VERDICTS, Outcome, Rule, Severity
from curation.audit.rules import annotation, class_openness, data, label_integrity, task_increment
from curation.audit.target import AuditTarget
from curation.errors import UsageError
from curation.short_repr import short_repr

RULES: tuple[Rule, ...] = (
    *class_openness.RULES,
    *task_increment.RULES,
    *annotation.RULES,
    *label_integrity.RULES,
    *data.RULES,
)
"""All rules by principle: class openness, task increment, annotation specificity, label and data integrity."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule with what it found."""

    __repr__ = short_repr

    rule: Rule
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Audit:
    """The results of all rules that were asked for."""

    __repr__ = short_repr

    target: AuditTarget
    results: tuple[RuleResult, ...]

    def verdict(self, name: str) -> str:
        """Return the verdict of a rule."""
        return next(one.outcome.verdict for one in self.results if one.rule.name == name)

    def failed(self, *, fail_on: Severity = "error") -> bool:
        """Return whether the audit failed: a rule was broken as an error, or with ``warning`` as a warning too."""
        bad = {"fail", "warn"} if fail_on == "warning" else {"fail"}
        return any(one.outcome.verdict in bad for one in self.results)

    def tally(self) -> dict[str, int]:
        """Return how many rules came to each verdict, strongest first, absent ones left out."""
        counts = Counter(one.outcome.verdict for one in self.results)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def run_audit(target: AuditTarget, rules: Sequence[Rule] = RULES) -> Audit:
    """Return what some rules say of a target."""
    from tqdm import tqdm

    progress = tqdm(rules, desc="rules", disable=None, leave=False)
    return Audit(target, tuple(RuleResult(rule, rule.check(target)) for rule in progress))


def chosen_rules(names: str) -> tuple[Rule, ...]:
    """Return the rules of a text such as ``CO1,DS2`` or ``DS``, in their own order.

    Raises
    ------
    UsageError
        There is no rule or principle of this name.
    """
    wanted = [name.strip().upper() for name in names.split(",") if name.strip()]
    for name in wanted:
        if not any(rule.name.startswith(name) for rule in RULES):
            every = [rule.name for rule in RULES]
            near = difflib.get_close_matches(name, every, cutoff=0.5)
            raise UsageError(
                "There is no such rule",
                where=f"--rules {name[:40]}",
                expected=", ".join(every),
                hint=f"did you mean {near[0]}?" if near else None,
            )
    return tuple(rule for rule in RULES if any(rule.name.startswith(name) for name in wanted))
