"""`audit`: every rule on a manifest or a folder of lists, in the order of the principles."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path

from curation.audit import (
    rules_annotation,
    rules_class_openness,
    rules_data,
    rules_label_integrity,
    rules_task_increment,
)
from curation.audit.classes import TaskClasses, read_tasks
from curation.audit.folder_target import FolderOptions, folder_target
from curation.audit.forensics import forensics
from curation.audit.judgement import judged
from curation.audit.list_roles import read_view
from curation.audit.lists import ListSet, read_lists
from curation.audit.manifest_target import manifest_target
from curation.audit.report import Report, RuleResult
from curation.audit.rule import Rule, Severity
from curation.audit.target import DEFAULT_EXEMPLARS, AuditTarget
from curation.errors import UsageError
from curation.manifest.header import LabelView
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.manifest.store import HEADER_FILE
from curation.sources.source import Source

RULES: tuple[Rule, ...] = (
    *rules_class_openness.RULES,
    *rules_task_increment.RULES,
    *rules_annotation.RULES,
    *rules_label_integrity.RULES,
    *rules_data.RULES,
)
"""All rules by principle: class openness, task increment, annotation specificity, label and data integrity."""


def run_audit(target: AuditTarget, rules: Sequence[Rule] = RULES) -> Report:
    """Return what some rules say of a target."""
    from tqdm import tqdm

    progress = tqdm(rules, desc="rules", disable=None, leave=False)
    return Report(target, tuple(RuleResult(rule, judged(rule, target)) for rule in progress))


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
