"""PL, published lists: the classes that somebody's files name as known and unknown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from curation.audit.classes import fold, known_aliases
from curation.audit.rule import Check, Finding, Verdict, joined
from curation.audit.rules.coco_files import coco_facts
from curation.audit.rules.published_lists import published_of
from curation.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.entries import CLASS_FILE, PublishedFile
from curation.wording import counted

_UNKNOWN_FILE = re.compile(r"(?:^|[^a-z])(?:unknown|unseen|novel|ood)(?:[^a-z]|$)", re.IGNORECASE)
_KNOWN_FILE = re.compile(r"(?:^|[^a-z])(?:known|seen|base|id)(?:[^a-z]|$)", re.IGNORECASE)
_TRUTH = re.compile(r"ground.?truth|(?:^|[^a-z])gt(?:[^a-z]|$)", re.IGNORECASE)
_TASK = re.compile(r"(?:^|(?<=[^a-z]))(?:t|task)[_-]?[0-9]{1,2}(?=[^0-9]|$)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_-]+")
_NEARLY_ALL = 0.8


def _folder(name: str) -> str:
    return PurePosixPath(name).parent.as_posix()


def _roles(files: Mapping[str, PublishedFile]) -> Iterator[tuple[str, str, str, tuple[str, ...], bool]]:
    """Yield each list of classes with a role: scope, role, where it stands, names, and whether it is but a guess."""
    truths = {_folder(name) for name in files if _TRUTH.search(PurePosixPath(name).stem) and _UNKNOWN_FILE.search(name)}
    for name, file in files.items():
        stem = PurePosixPath(name).stem
        if file.form == "class roles":
            for role, names in file.classes.items():
                kind = role.partition("/")[0]
                if kind in ("known", "unknown"):
                    yield name, kind, f"{name}: {role}", names, False
        elif file.form == "class names" and CLASS_FILE.search(stem):
            # A list of guesses or prompts beside the true one is no role.
            guess = _folder(name) in truths and not _TRUTH.search(stem)
            if _UNKNOWN_FILE.search(stem):
                yield _folder(name), "unknown", name, file.classes[""], guess
            elif _KNOWN_FILE.search(stem):
                yield _folder(name), "known", name, file.classes[""], False


def no_class_is_known_and_unknown(target: AuditTarget) -> Iterator[Finding]:
    """PL3: no class is known and unknown, in any spelling."""
    by_scope: defaultdict[str, list[tuple[str, str, tuple[str, ...], bool]]] = defaultdict(list)
    for scope, role, where, names, guess in _roles(published_of(target).files):
        # What one task leaves unknown another may know: files are held together within a task.
        task = _TASK.search(where.partition(": ")[0])
        by_scope[f"{scope}, {task[0].strip('_-')}" if task else scope].append((role, where, names, guess))
    for scope, entries in by_scope.items():
        known = [(where, names) for role, where, names, _ in entries if role == "known"]
        unknown = [(where, names, guess) for role, where, names, guess in entries if role == "unknown"]
        found = False
        for where, names in known:
            for other, others, guess in unknown:
                for told in _alike(names, others, f"{other} against {where}", guess=guess):
                    found |= told.verdict != "info"
                    yield told
        if known and unknown and not found:
            count = len({name for _, names in known for name in names})
            text = f"{counted(count, 'known class', 'known classes')}, none of them unknown"
            yield Finding("pass", scope if scope != "." else "classes", text=text)


_SPELLINGS: tuple[tuple[str, Verdict], ...] = (
    ("with the same spelling", "fail"), ("in another letter case", "fail"), ("with other spacing or hyphens", "warn"),
    ("under an alias", "warn"),
)  # fmt: skip


def _forms(name: str) -> tuple[str, str, str, str]:
    plain = _SEPARATORS.sub("", fold(name))
    return name, fold(name), plain, min([plain, *(_SEPARATORS.sub("", other) for other in known_aliases(name))])


def _alike(known: Sequence[str], unknown: Sequence[str], about: str, *, guess: bool) -> Iterator[Finding]:
    told: set[str] = set()
    for level, (how, verdict) in enumerate(_SPELLINGS):
        forms = {_forms(name)[level]: name for name in known}
        pairs = [(forms[form], name) for name in unknown if (form := _forms(name)[level]) in forms and name not in told]
        told |= {name for _, name in pairs}
        if pairs:
            examples = tuple(f"{one} and {two}" if one != two else one for one, two in pairs[:SHOWN_EXAMPLES])
            text = f"the files share {counted(len(pairs), 'class', 'classes')} {how}"
            if guess:
                text += "; the second lists guesses or prompts, which are not a role"
            yield Finding("info" if guess else verdict, about, len(pairs), text, examples)


def roles_name_classes_of_the_data(target: AuditTarget) -> Iterator[Finding]:
    """PL4: every class with a role is in the list of classes, or in the categories of a JSON beside it."""
    lists = published_of(target)
    roles: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for scope, _, where, names, guess in _roles(lists.files):
        if not guess and scope != where.partition(": ")[0]:
            roles[scope].append((where, names))
    for scope, entries in roles.items():
        named = [name for _, names in entries for name in names]
        classes, of = _classes_of(target, scope, named)
        if not classes:
            continue
        everything = {fold(name) for name in classes} | {
            fold(other) for name in classes for other in known_aliases(name)
        }
        for where, names in entries:
            foreign = [name for name in names if fold(name) not in everything]
            if foreign:
                share = f"{len(foreign):,} of {counted(len(names), 'name')}"
                text = f"{share} not among the classes of {of}: {joined(foreign)}"
                yield Finding("warn", where, len(foreign), text)
            else:
                yield Finding("pass", where, text=f"{counted(len(names), 'name')}, all classes of {of}")
        rest = [name for name in classes if fold(name) not in {fold(other) for other in named}]
        if rest and of == "COCO":
            text = f"{counted(len(rest), 'class', 'classes')} of {of} without a role: {joined(rest, 20)}"
            yield Finding("info", scope if scope != "." else "classes", len(rest), text)


def _classes_of(target: AuditTarget, scope: str, named: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the classes of the data: of a list without a role, of a JSON, or COCO's where nearly all names are its."""
    lists = published_of(target)
    for name, file in lists.files.items():
        stem = PurePosixPath(name).stem
        has_role = _UNKNOWN_FILE.search(stem) or _KNOWN_FILE.search(stem)
        if _folder(name) == scope and file.form == "class names" and CLASS_FILE.search(stem) and not has_role:
            return file.classes[""], name
    for name in lists.files:
        facts = coco_facts(target).get(name) if _folder(name) == scope else None
        if facts and facts.categories:
            return tuple(facts.categories.values()), name
    coco = tuple(name for _, name, *_ in COCO_CATEGORIES)
    plain = {fold(name) for name in coco}
    hits = sum(fold(name) in plain for name in named)
    return (coco, "COCO") if named and hits >= _NEARLY_ALL * len(named) else ((), "")


CHECKS: dict[str, Check] = {"PL3": no_class_is_known_and_unknown, "PL4": roles_name_classes_of_the_data}
