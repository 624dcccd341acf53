"""The rules of an audit, by principle.

Those of class openness, task increment, annotation specificity, label integrity and data specificity are from Zhao et
al., Revisiting Open World Object Detection, arXiv 2201.00471, section 3; those of published lists are ours.
"""

from __future__ import annotations

import difflib
import re
from inspect import isfunction

from curation.benchmarks.benchmark import benchmark_facts
from curation.core.errors import UsageError
from curation.extensions.audit.rule import Check, Rule
from curation.extensions.audit.rules import files, images, lists, photos, tasks
from curation.extensions.audit.target import AuditTarget

_CHECKS: dict[str, tuple[Check, str]] = {
    match[1]: (function, " ".join(match[2].split()))
    for module in (tasks, images, photos, lists, files)
    for function in vars(module).values()
    if isfunction(function)
    and (match := re.match(r"([A-Z]{2}[0-9]+): (.*?)\.(?:\n\n|\s*\Z)", function.__doc__ or "", re.DOTALL))
}
"""The check and the message of each rule: the first paragraph of its docstring, behind the code."""
_ALL: tuple[Rule, ...] = tuple(
    Rule(name=name, check=check, definition=definition, **facts | {"roles": tuple(facts.get("roles", ()))})
    for name, facts in benchmark_facts(__package__).items()
    for check, definition in [_CHECKS[name]]
)
PUBLISHED_RULES = tuple(rule for rule in _ALL if rule.of_published_lists)
"""Rules that compare names, sizes, labels and groups of the lists of a folder with their content."""
RULES = tuple(rule for rule in _ALL if not rule.of_published_lists)
"""The rules of every benchmark, in the order of a report; their texts are in ``audit/rules/facts.toml``."""
ON_TASKS = ("CO", "TI", "AS", "LI")


def rules_for(target: AuditTarget) -> tuple[Rule, ...]:
    """Return the rules for a target; published lists add rules.

    Rules on tasks and labels apply to a folder only if a name or an option mentions them, and rules on photos and
    sources only if these are given: twenty findings of missing data would hide the others.
    """
    if target.published is None:
        # File names reveal groups of images, and the sources of a manifest have file names too.
        return (*RULES, *(rule for rule in PUBLISHED_RULES if rule.name == "PL7" and target.sources))
    available = {"DS3": bool(target.photos), "DS5": bool(target.sources), "LI2": bool(target.sources)}
    available["LI3"] = available["LI2"]
    applicable = [
        rule for rule in RULES if target.expects_tasks or available.get(rule.name, not rule.name.startswith(ON_TASKS))
    ]
    return (*applicable, *PUBLISHED_RULES)


def chosen_rules(names: str) -> tuple[Rule, ...]:
    """Return the rules of a text such as ``CO1,DS2`` or ``DS``, in their own order.

    Raises
    ------
    UsageError
        No rule or principle has this name.
    """
    prefixes = [name.strip().upper() for name in names.split(",") if name.strip()]
    for name in prefixes:
        if not any(rule.name.startswith(name) for rule in _ALL):
            every = [rule.name for rule in _ALL]
            near = difflib.get_close_matches(name, every, cutoff=0.5)
            raise UsageError(
                "Unknown rule",
                where=f"--rules {name[:40]}",
                expected=", ".join(every),
                hint=f"did you mean --rules {near[0]}?" if near else None,
            )
    return tuple(rule for rule in _ALL if any(rule.name.startswith(name) for name in prefixes))
