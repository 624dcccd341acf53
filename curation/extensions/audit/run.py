"""`audit`: check a manifest or a folder of lists against every rule."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from curation.benchmarks.parts import Selection, make_part, manifest_of, source_entry
from curation.benchmarks.rules.hierarchy import USES, RolePartition
from curation.core.arguments import checked
from curation.core.errors import CurationError, ManifestError, UsageError
from curation.core.ids import ImageId
from curation.core.reading import beginning
from curation.core.wording import slug
from curation.extensions.audit.classes import TaskClasses, read_tasks
from curation.extensions.audit.lists import names_of_list, read_lists
from curation.extensions.audit.repair import RECORD
from curation.extensions.audit.report import Report, RuleResult
from curation.extensions.audit.rule import NOTHING, Rule, judged
from curation.extensions.audit.rules import RULES, chosen_rules, rules_for
from curation.extensions.audit.target import (
    DEFAULT_EXEMPLARS,
    PRINCIPLE,
    AuditTarget,
    FolderOptions,
    folder_target,
    manifest_target,
)
from curation.manifest.built_from import BuiltFrom, built_from
from curation.manifest.header import LabelView
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import HEADER_FILE, Manifest
from curation.review.decisions.pairs import read_pairs
from curation.sources.class_folders import class_folder_parts, class_folders, part_of_images, read_class_folders
from curation.sources.datasets import is_known
from curation.sources.opening import open_slots
from curation.sources.photos import CLASS_FOLDERS, MOST_PHOTOS
from curation.sources.published_list import LIST_SUFFIXES, accompanies_lists
from curation.sources.source import Source
from curation.sources.source_specs import Reading, Sources, SourceSlot
from curation.sources.yolo import missing_yaml, yolo_file

StrPath = str | PathLike[str]
"""Path of a file or folder."""

_AUDITED = (
    "a folder of lists, photos with a data.yaml, class folders below train, val and test, or a manifest (its folder or "
    "name)"
)
_USUAL_PARTS = {"coco-train": "train2017", "coco-val": "val2017"}


@checked
def audit(
    target: Manifest | StrPath,
    sources: Sources | None = None,
    *,
    exhaustive: Annotated[Collection[str], "NAME"] = (),
    tasks: str | Sequence[TaskClasses] | None = None,
    namespace: Annotated[str | None, "NAME"] = None,
    roles: Annotated[Mapping[str, str] | None, "--role LIST=ROLE[:TASK]"] = None,
    views: Annotated[Mapping[str, str] | None, "--view ROLE=VIEW"] = None,
    photos: Annotated[Mapping[str, Annotated[StrPath, Path]] | None, "NAME=DIR"] = None,
    exemplars: Annotated[int, Meta(ge=1)] | None = None,
    groups: Annotated[Sequence[str], "--group REGEX"] = (),
    group_column: Annotated[str, "NAME"] = "",
    judged: Annotated[Path | None, "FILE"] = None,
    rules: Annotated[str | None, "NAMES"] = None,
    fail_on: Literal["error", "warning"] = "error",
    reading: Reading | None = None,
) -> Report:
    """Check lists against the rules of a sound benchmark.

    Parameters
    ----------
    target : Manifest, str or path
        a manifest (folder or NAME@VERSION), a folder of lists of images, or class folders below train, val and test
    sources : mapping of str to path or annotations, optional
        for a folder of lists any name; one such as coco-train2017 or voc2007-test says what it is. Rules without the
        data they need are undecidable
    exhaustive : collection of str
        every object of this source's classes is annotated (known of COCO and VOC annotation files; repeatable)
    tasks : str or sequence of TaskClasses, optional
        classes of each task, for a folder of lists: reowod, ore (m-owodb), s-owodb, a .json or .toml file, a manifest
    namespace : str, optional
        the dataset of ids that do not name one (default: that of the sources, where they share one)
    roles : mapping of str to str, optional
        role of a list of a folder: train, finetune, val, test, wilderness, id, ood or none (default: guessed from its
        name; repeatable)
    views : mapping of str to str, optional
        labels that lists of a role carry: those that the principle requires of the role train, finetune, val or test
    photos : mapping of str to path, optional
        the photos of a source, for the rule DS3
    exemplars : int, optional
        images of each known class that a finetuning list should hold (default: those of the build, else 50)
    groups : sequence of str
        what a group of images is, such as a patient: a pattern whose first capture group is searched for in the path,
        before the built-in patterns (repeatable, tried in order)
    group_column : str
        table column that holds such a group
    judged : Path, optional
        the pairs.csv of an earlier audit with photos, in which a person filled in the column decision (same, different,
        unsure): pairs that differ are not reported, and those that are the same are errors
    rules : str, optional
        only these rules or principles, such as CO1,DS2 or DS
    fail_on : {"error", "warning"}
        weakest verdict that makes the audit fail, with exit status 1
    reading : Reading, optional
        How annotation files are read.

    Returns
    -------
    Report

    Raises
    ------
    UsageError
        An unknown list, part, source, role, task, view or rule.
    MissingFileError
        A file or folder does not exist.

    Examples
    --------
    >>> from curation.extensions.audit.run import audit
    >>> audit("owod/reowod@1.0.0", rules="CO1,TI1")
    Report('owod/reowod 1.0.0': 2 pass)
    """
    reading = reading or Reading()
    chosen = chosen_rules(rules) if rules else None
    subject = target if isinstance(target, Manifest) else subject_of(target)
    slots = source_slots(subject, sources or {})
    _require_names(exhaustive, photos or {}, [slot.name for slot in slots])
    if isinstance(subject, Manifest):
        opened = subject.open_sources(sources or {}, reading)
    else:
        opened = open_slots(sources or {}, slots, reading)
    decisions = {pair.images: pair.decision for pair in read_pairs(judged)} if judged else {}
    folders = {name: _existing(name, Path(folder)) for name, folder in (photos or {}).items()}
    if isinstance(subject, Manifest):
        paths = _paths_of(subject, sources or {}, reading)
        folders = {**_class_folders(opened, paths), **folders}
        declared = {"tasks": tasks, "role": roles, "view": views, "namespace": namespace}
        for name, value in {**declared, "group": groups or group_column}.items():
            if value:
                raise UsageError(f"--{name} applies to a folder of lists, not to a manifest", where=f"--{name}")
        target_of_rules = manifest_target(
            subject,
            opened,
            complete=exhaustive,
            exemplars=exemplars or _stated_exemplars(subject),
            photos=folders,
            paths=paths | folders,
        )
        target_of_rules = replace(target_of_rules, judged=decisions)
        return replace(run_audit(target_of_rules, chosen), digest=subject.digest, fail_on=fail_on)
    # Bare ids belong to the sources if these have one namespace; otherwise their form decides.
    spaces = {source.namespace for source in opened.values()}
    task_files = [Path(tasks)] if isinstance(tasks, str) else []
    space = namespace or (spaces.pop() if len(spaces) == 1 else "")
    known = tuple(tasks or ()) if not isinstance(tasks, str) else read_tasks(tasks) if tasks else ()
    options = FolderOptions(
        roles=roles or {},
        views=_principles(views or {}),
        complete=exhaustive,
        exemplars=exemplars or DEFAULT_EXEMPLARS,
        photos=folders,
        patterns=groups,
        column=group_column,
    )

    def audit_folder(folder: Path, *, is_repaired: bool) -> Report:
        lists = read_lists(folder, namespace=space, but=[*task_files, folder / RECORD])
        roles = options.roles
        if is_repaired:
            # A repair omits lists without lines.
            roles = {key: role for key, role in roles.items() if not lists.index.keys().isdisjoint(names_of_list(key))}
        audited = folder_target(lists, tasks=known, sources=opened, options=replace(options, roles=roles))
        report = run_audit(replace(audited, judged=decisions), chosen)
        return replace(report, fail_on=fail_on, again=partial(audit_folder, is_repaired=True))

    return audit_folder(subject, is_repaired=False)


def run_audit(target: AuditTarget, rules: Sequence[Rule] | None = None) -> Report:
    """Return the report of some rules on a target, or of `curation.extensions.audit.rules.rules_for` by default."""
    from tqdm import tqdm

    chosen = rules_for(target) if rules is None else rules
    progress = tqdm(chosen, desc="rules", disable=None, leave=False)
    results = tuple(RuleResult(rule, judged(rule, target)) for rule in progress)
    if rules is not None:
        return Report(target, results)
    # Rules on published lists that have nothing to judge are not reported.
    relevant = tuple(
        result for result in results if not (result.rule.of_published_lists and result.outcome.verdict == NOTHING)
    )
    return Report(target, relevant, not_asked=tuple(rule.name for rule in RULES if rule not in chosen))


def subject_of(target: StrPath) -> Manifest | Path:
    """Return the manifest with a path or name, or the path of a folder of lists.

    Raises
    ------
    MissingFileError
        No file, folder or manifest has this name.
    """
    try:
        path = Path(target)
    except TypeError as error:
        text = f"{type(target).__name__} {ascii(target)[:80]}"
        raise UsageError(
            "Cannot audit this object", expected="a Manifest, its name, or a folder", found=text
        ) from error
    if path.is_dir() and not (path / HEADER_FILE).is_file():
        files = [entry for entry in path.iterdir() if entry.suffix.lower() in LIST_SUFFIXES[:-1]]
        # Folders that `curation publish` and `pull` write contain manifests, and tables that are not lists.
        if all(accompanies_lists(entry.name) or entry.name.lower().startswith("class") for entry in files) and (
            made := _folders_as_parts(path)
        ):
            return made
        if (files and (path / "publication.json") not in files) or not any(path.rglob(HEADER_FILE)):
            return path
    manifest_like = path.name == HEADER_FILE or not path.exists()
    if path.is_file() and not manifest_like:
        # Annotations are inspected; a list is audited with the other lists of its folder.
        verb, subject = ("inspect", path) if path.suffix == ".json" else ("audit", path.parent)
        is_detections = verb == "inspect" and beginning(path, 100).lstrip().startswith(b"[")
        hint = f"curation {verb} {'TRUTH --detections ' * is_detections}{shlex.quote(str(subject))}"
        message = "A file alone cannot be audited"
        raise UsageError(message, where=str(path), expected=_AUDITED, found="a file", hint=hint)
    try:
        return load_manifest(str(target))
    except ManifestError as error:
        if path.exists() or not error.what.startswith("No such"):
            raise
        raise ManifestError(
            "No file or folder of this name exists, and no manifest", where=error.where, expected=_AUDITED,
            hint=error.hint,
        ) from None  # fmt: skip


def _folders_as_parts(root: Path) -> Manifest | None:
    """Return class folders as a manifest whose parts are the folders train, val and test; None for another folder."""
    if yolo_file(root) or missing_yaml(root):
        return None
    with suppress(CurationError):
        folders = class_folders(root)
        if folders is None or len(class_folder_parts(folders)) < 2:
            return None
        source = read_class_folders(root, folders, dataset="photos", part="")
        parts_of_images = part_of_images(source)
        classes = RolePartition(source.categories.names, (), ()).entries({})
        parts = [
            make_part(part, part, Selection("photos", source, np.flatnonzero(parts_of_images == part)), classes,
                      view=LabelView(), rule=f"Photos of the folder {part}.")
            for part in USES if part in folders.parts
        ]  # fmt: skip
        manifest = manifest_of(
            parts, name=f"folders/{slug(root.resolve().name) or 'root'}", title=str(root), paper=None, taxonomy="OSC",
            classes=classes, sources=(source_entry("photos", source),), protocol="folders",
            parameters={}, notes=(), figures=(),
        )  # fmt: skip
        return replace(manifest, built_from=BuiltFrom({"photos": str(root.absolute())}))
    return None


def source_slots(subject: Manifest | Path, names: Collection[str]) -> tuple[SourceSlot, ...]:
    """Return the sources that an audit may read: those of a manifest, or for a folder those that the user names.

    A name such as ``coco-train2017`` or ``voc2007-test`` states dataset and part. Any other name is a dataset, so that
    ids of two datasets stay apart.
    """
    if isinstance(subject, Manifest):
        return subject.slots
    slots = []
    for key in names:
        name = key.partition("@")[0]
        dataset, _, part = name.partition("-")
        if not is_known(dataset):
            dataset, part = name.replace("-", "_"), ""
        ImageId(dataset, "0")
        slots.append(SourceSlot(name, dataset, _USUAL_PARTS.get(name, part), False, ""))
    return tuple(slots)


def _paths_of(manifest: Manifest, sources: Mapping[str, Any], reading: Reading) -> dict[str, Path]:
    """Return the paths of the sources of a manifest: those of the user, else those of the build."""
    known = built_from(sources, manifest.slots, reading) or manifest.built_from
    return {name: Path(path) for name, path in known.sources.items()} if known else {}


def _class_folders(sources: Mapping[str, Source], paths: Mapping[str, Path]) -> dict[str, Path]:
    """Return the sources that are class folders, which contain photos; large ones need ``--photos``."""
    return {
        name: paths[name]
        for name, source in sources.items()
        if name in paths and len(source.images) <= MOST_PHOTOS
        and any(file.name == CLASS_FOLDERS for file in source.files)
    }  # fmt: skip


def _stated_exemplars(manifest: Manifest) -> int:
    count = manifest.header.rule.parameters.get("exemplars")
    return count if isinstance(count, int) and count > 0 else DEFAULT_EXEMPLARS


def _require_names(exhaustive: Collection[str], photos: Collection[str], names: Sequence[str]) -> None:
    for option, keys in (("--exhaustive", exhaustive), ("--photos", photos)):
        for name in keys:
            # Without annotations, photos of a folder's lists may have any name.
            if name not in names and (names or option == "--exhaustive"):
                raise UsageError(
                    "Unknown source",
                    where=f"{option} {name[:80]}",
                    expected=", ".join(names) or "a name given with --source",
                )


def _principles(views: Mapping[str, str]) -> dict[str, LabelView]:
    for role, view in views.items():
        if not {role, view} <= PRINCIPLE.keys():
            where, names = f"--view {role}={view}"[:127], ", ".join(PRINCIPLE)
            raise UsageError("Unknown label view", where=where, expected=f"ROLE=VIEW, each of {names}")
    return {role: PRINCIPLE[view] for role, view in views.items()}


def _existing(name: str, folder: Path) -> Path:
    if not folder.is_dir():
        raise UsageError("The folder of photos does not exist", where=f"--photos {name}={folder}")
    return folder
