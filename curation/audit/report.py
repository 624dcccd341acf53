"""What an audit found, as plain data and as tables of comma-separated values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.audit.labels import raw_labels
from curation.audit.needs import label_warnings
from curation.audit.run import Audit
from curation.audit.target import AuditedList, AuditTarget
from curation.csv_table import as_csv


@dataclass(frozen=True, slots=True)
class TaskComposition:
    """What one task consists of; None where no list plays the role, or no source says what its images show.

    Attributes
    ----------
    introduced, known, unknown : int
        Numbers of classes.
    train, finetune, val, test : int or None
        Numbers of distinct images.
    hiding : int or None
        Train images that show objects of classes still unknown (rule CO5).
    hiding_at_least : bool
        Whether more may do so: some images are in no source, in a table that may miss classes, or of a dataset that
        does not annotate all of these.
    """

    task: str
    introduced: int
    known: int
    unknown: int
    train: int | None
    finetune: int | None
    val: int | None
    test: int | None
    hiding: int | None
    hiding_at_least: bool = False


def task_composition(target: AuditTarget) -> list[TaskComposition]:
    """Return what each task consists of."""
    return [_composition(target, number) for number in range(len(target.tasks))]


def _composition(target: AuditTarget, number: int) -> TaskComposition:
    task = target.tasks[number]
    images = {
        role: _images(target, target.with_role(role, task=number))
        for role in ("train", "finetune", "val", "test")
    }
    trains = target.with_role("train", task=number)
    hiding = _hiding(target, trains, number)
    trained = np.flatnonzero(target.mask(trains)).astype(np.int32)
    silent = target.unannotated(trained, target.introduced_in > number)
    return TaskComposition(
        task=task.name,
        introduced=len(task.introduced),
        known=len(task.known),
        unknown=len(task.unknown),
        **images,
        hiding=hiding,
        hiding_at_least=bool(hiding is not None and task.unknown and silent.any()),
    )


def _images(target: AuditTarget, lists: list[AuditedList]) -> int | None:
    return int(target.mask(lists).sum()) if lists and all(one.at_hand for one in lists) else None


def _hiding(target: AuditTarget, lists: list[AuditedList], task: int) -> int | None:
    located = [one for one in lists if (target.home[one.unique] >= 0).any()]
    if not located:
        return None
    later = np.append(target.introduced_in > task, [True, False])
    shown = np.zeros(len(target.ids), np.bool_)
    for one in located:
        labels = raw_labels(target, one)
        shown[labels.image[later[labels.label]]] = True
    return int(shown.sum())


def audit_data(audit: Audit, *, digest: str = "") -> dict[str, Any]:
    """Return an audit as plain data: what was judged, from which files, and what every rule found.

    Parameters
    ----------
    digest : str
        Of the manifest, ``""`` for a folder.
    """
    target = audit.target
    return {
        "target": target.name,
        "kind": target.kind,
        **({"digest": digest} if digest else {}),
        "failed": audit.failed(),
        "tally": audit.tally(),
        "lists": [_list_data(target, one) for one in target.files],
        "roles": [_role_data(target, one) for one in target.lists],
        "sources": [
            {
                "name": source.name,
                "dataset": source.raw.dataset,
                "part": source.raw.part,
                "unit": source.unit,
                "files": [{"name": f.name, "sha256": f.sha256, "rows": f.rows} for f in source.raw.files],
            }
            for source in target.sources
        ],
        "remarks": list(target.remarks),
        "warnings": label_warnings(target),
        "rules": [_rule_data(one.rule.name, audit) for one in audit.results],
        "composition": [
            {name: getattr(one, name) for name in TaskComposition.__slots__}
            for one in task_composition(target)
        ],
    }


def _list_data(target: AuditTarget, one: AuditedList) -> dict[str, Any]:
    return {
        "name": one.name,
        "lines": len(one.members) if one.at_hand else None,
        "images": len(one.unique) if one.at_hand else None,
        "sha256": target.digests.get(one.name),
    }


def _role_data(target: AuditTarget, one: AuditedList) -> dict[str, Any]:
    return {
        "list": one.name,
        "role": one.role,
        "tasks": [target.tasks[n].name if n < len(target.tasks) else f"task {n + 1}" for n in one.tasks],
        "said_by": one.said_by,
        "view_declared": one.view_declared,
        "label_files": sorted({file.name for file in one.labels.values()}),
    }


def _rule_data(name: str, audit: Audit) -> dict[str, Any]:
    result = next(one for one in audit.results if one.rule.name == name)
    rule, outcome = result.rule, result.outcome
    return {
        "rule": rule.name,
        "severity": rule.severity,
        "verdict": outcome.verdict,
        "count": outcome.count,
        "definition": rule.definition,
        "data_needed": rule.needs,
        "missing": list(outcome.needs),
        "examples": list(outcome.examples),
        "fix": rule.fix,
        "findings": [
            {
                "verdict": one.verdict,
                "about": one.about,
                "count": one.count,
                "text": one.text,
                "examples": list(one.examples),
                "missing": one.need,
            }
            for one in outcome.findings
        ],
    }


def rules_csv(audit: Audit) -> str:
    """Return one row a rule: name, severity, verdict, count, definition, examples, missing data, how to fix."""
    header = ("rule", "severity", "verdict", "count", "definition", "examples", "missing", "fix")
    rows = (
        (
            one.rule.name,
            one.rule.severity,
            one.outcome.verdict,
            one.outcome.count,
            one.rule.definition,
            "; ".join(one.outcome.examples),
            "; ".join(one.outcome.needs),
            one.rule.fix,
        )
        for one in audit.results
    )
    return as_csv(header, rows)


def findings_csv(audit: Audit) -> str:
    """Return one row a finding: rule, verdict, what it is about, count, text, examples, missing data."""
    header = ("rule", "verdict", "about", "count", "text", "examples", "missing")
    rows = (
        (one.rule.name, f.verdict, f.about, f.count, f.text, "; ".join(f.examples), f.need)
        for one in audit.results
        for f in one.outcome.findings
    )
    return as_csv(header, rows)


def composition_csv(compositions: Iterable[TaskComposition]) -> str:
    """Return one row a task; an empty cell where a number is not known."""
    names = TaskComposition.__slots__
    return as_csv(names, ([getattr(one, name) for name in names] for one in compositions))
