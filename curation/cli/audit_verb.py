"""``curation audit``: is this benchmark sound? Rules on a manifest, or on any folder of somebody's lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from curation.cli.options import Amount, SourceOptions
from curation.cli.output import Answer, table_lines, warn
from curation.cli.outputs import NewFolder, OutputFile
from curation.cli.signature import pairs
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.audit.forensics import Forensics
    from curation.audit.run import Audit
    from curation.audit.target import AuditTarget
    from curation.sources.slots import SourceSlot
    from curation.sources.source import Source

_FOLDER_ONLY = ("tasks", "role", "view", "namespace")
_USUAL_PARTS = {"coco-train": "train2017", "coco-val": "val2017"}


@dataclass(frozen=True)
class Options(SourceOptions, Amount):
    """Check a manifest, or any folder of lists, against the rules of a sound benchmark.

    Attributes
    ----------
    target
        a manifest (folder or NAME@VERSION), or a folder of .txt and .json lists
    exhaustive
        this source misses no object of any of its classes (known of COCO and VOC annotation files;
        repeatable)
    tasks
        classes of each task of a folder's lists: reowod, ore (m-owodb), s-owodb, a .json or .toml file,
        or a manifest
    namespace
        the dataset of ids whose form does not tell it (default: that of the sources, where they share
        one)
    role
        what a list of a folder is: train, finetune, val, test, or none; LIST[1-1000] for some lines
        (default: guessed from its name; repeatable)
    view
        the labels that lists of a role carry: as the principle says for train, finetune, val or test,
        or known=keep,previous=drop,unknown=rename:unknown (repeatable)
    labels
        the labels of a list as they were written out, COCO JSON (repeatable)
    photos
        the photos of a source (repeatable)
    exemplars
        images of each class in a finetuning list
    rules
        only these rules or principles, such as CO1,DS2 or DS
    fail_on
        what makes the exit status 1
    report
        write the report as one HTML page
    out
        write audit.json, report.html and the tables as CSV into a new folder
    """

    target: str
    _: KW_ONLY
    exhaustive: tuple[Annotated[str, "NAME"], ...] = ()
    tasks: Annotated[str | None, "TASKS"] = None
    namespace: Annotated[str | None, "NAME"] = None
    role: tuple[Annotated[str, "LIST=ROLE[:TASK]"], ...] = ()
    view: tuple[Annotated[str, "ROLE=VIEW"], ...] = ()
    labels: tuple[Annotated[str, "LIST[:TASK]=FILE"], ...] = ()
    photos: tuple[Annotated[str, "NAME=DIR"], ...] = ()
    exemplars: int = 50
    rules: Annotated[str | None, "NAMES"] = None
    fail_on: Literal["error", "warning"] = "error"
    report: Annotated[Path | None, OutputFile()] = None
    out: Annotated[Path | None, NewFolder(), "DIR"] = None


def run(options: Options) -> Answer:
    """Print what needs attention, or with ``--all`` what every rule found; 0 when none is broken, else 1."""
    from curation.audit.forensics_findings import forensics_data
    from curation.audit.needs import label_warnings
    from curation.audit.report import audit_data
    from curation.audit.run import RULES, chosen_rules, run_audit

    if options.exemplars < 1:
        raise UsageError("--exemplars needs a number of 1 or more", found=str(options.exemplars))
    rules = chosen_rules(options.rules) if options.rules else RULES
    is_folder = _is_folder_of_lists(options.target)
    target, digest, found = _folder(options) if is_folder else _manifest(options)
    audit = run_audit(target, rules)
    failed = audit.failed(fail_on=options.fail_on)
    data = {**audit_data(audit, digest=digest), "failed": failed}
    if found:
        data["forensics"] = forensics_data(found)
    _write(audit, data, digest, found, options)
    for text in label_warnings(target):
        warn(text)
    return Answer(data, _lines(audit, digest, found, options, failed=failed), int(failed))


def _is_folder_of_lists(text: str) -> bool:
    from curation.manifest.store import HEADER_FILE

    path = Path(text)
    if not path.is_dir() or (path / HEADER_FILE).is_file():
        return False
    lists = [entry for entry in path.iterdir() if entry.suffix.lower() in (".txt", ".json")]
    return bool(lists) or not any(path.rglob(HEADER_FILE))


def _manifest(options: Options) -> tuple[AuditTarget, str, None]:
    from curation.audit.manifest_target import manifest_target
    from curation.manifest.locate import load_manifest

    for name in _FOLDER_ONLY:
        if getattr(options, name):
            raise UsageError(
                f"A manifest says this itself, --{name} is for a folder of lists", where=f"--{name}"
            )
    manifest = load_manifest(options.target)
    _require_names(options, [entry.name for entry in manifest.header.sources])
    target = manifest_target(
        manifest,
        options.open(manifest.slots),
        labels=_labels(options),
        complete=options.exhaustive,
        exemplars=options.exemplars,
        photos=_photos(options),
    )
    return target, manifest.digest, None


def _folder(options: Options) -> tuple[AuditTarget, str, Forensics]:
    from curation.audit.folder_target import FolderOptions, folder_target
    from curation.audit.forensics import forensics
    from curation.audit.list_roles import read_view
    from curation.audit.lists import read_lists
    from curation.audit.task_classes import read_tasks

    slots = _slots(options)
    _require_names(options, [slot.name for slot in slots])
    sources = options.open(slots) if slots else {}
    lists = read_lists(Path(options.target), namespace=options.namespace or _own_namespace(sources))
    tasks = read_tasks(options.tasks) if options.tasks else ()
    said = FolderOptions(
        roles=pairs(options.role, "--role"),
        views={role: read_view(text, f"--view {role}={text}") for role, text in _views(options).items()},
        labels={**_labels_beside(lists.labels, bool(tasks), options), **_labels(options)},
        complete=options.exhaustive,
        exemplars=options.exemplars,
        photos=_photos(options),
    )
    target = folder_target(lists, tasks=tasks, sources=sources, options=said)
    return target, "", forensics(lists, sources)


def _own_namespace(sources: Mapping[str, Source]) -> str:
    """Return the namespace of bare ids: that of the sources where they share one; by the form of ids where not."""
    spaces = {source.namespace for source in sources.values()}
    return spaces.pop() if len(spaces) == 1 else ""


def _labels_beside(files: Mapping[str, Path], wanted: bool, options: Options) -> dict[str, Source]:
    """Return the label files that lie in the folder under the names of its lists; without tasks none is read."""
    given = {name.partition(":")[0] for name in pairs(options.labels, "--labels")}
    return {name: _open_labels(path, options) for name, path in files.items() if wanted and name not in given}


def _views(options: Options) -> dict[str, str]:
    from curation.audit.target import PRINCIPLE

    views: dict[str, str] = {}
    for text in options.view:
        role, equals, view = text.partition("=")
        if role not in PRINCIPLE or not equals or role in views:
            raise UsageError(
                "--view needs ROLE=VIEW, each role once",
                where=f"--view {text[:120]}",
                expected=f"a role of {', '.join(PRINCIPLE)}",
            )
        views[role] = view
    return views


def _slots(options: Options) -> list[SourceSlot]:
    """Return the sources of a folder's audit; a name such as ``coco-train2017`` or ``voc2007-test`` says what it is."""
    from curation.ids import ImageId
    from curation.sources.datasets import family
    from curation.sources.slots import SourceSlot

    slots = []
    for text in options.source:
        name = text.partition("=")[0].partition("@")[0]
        dataset, _, part = name.partition("-")
        if family(dataset) == dataset and family(dataset) != "coco":
            # Any other dataset: the whole name is its own, so that ids of two of them stay apart.
            dataset, part = name.replace("-", "_"), ""
        ImageId(dataset, "0")
        slots.append(SourceSlot(name, dataset, _USUAL_PARTS.get(name, part), False, ""))
    return slots


def _require_names(options: Options, names: list[str]) -> None:
    for option, given in (
        ("--exhaustive", options.exhaustive),
        ("--photos", pairs(options.photos, "--photos")),
    ):
        for name in given:
            # Photos of a folder's lists may be at hand without annotations: any name serves then.
            if name not in names and (names or option == "--exhaustive"):
                raise UsageError(
                    "There is no such source here",
                    where=f"{option} {name[:80]}",
                    expected=", ".join(names) or "a name given with --source",
                )


def _photos(options: Options) -> dict[str, Path]:
    folders = {name: Path(text) for name, text in pairs(options.photos, "--photos").items()}
    for name, folder in folders.items():
        if not folder.is_dir():
            raise UsageError("The folder of photos does not exist", where=f"--photos {name}={folder}")
    return folders


def _labels(options: Options) -> dict[str, Source]:
    return {
        name: _open_labels(Path(path), options) for name, path in pairs(options.labels, "--labels").items()
    }


def _open_labels(path: Path, options: Options) -> Source:
    from curation.sources.opening import open_source

    return open_source(
        path, dataset="labels", part="", cache=not options.no_cache, bad_boxes=options.bad_boxes
    )


def _write(
    audit: Audit, data: dict[str, object], digest: str, found: Forensics | None, options: Options
) -> None:
    import json

    from curation.audit import report
    from curation.audit.forensics_findings import forensics_tables
    from curation.audit.list_figures import MOST_LISTS, overlap_figure
    from curation.audit.report_html import report_html
    from curation.storage import publishing_folder, write_text

    if not (options.report or options.out):
        return
    page = report_html(audit, digest=digest, sections=forensics_tables(found) if found else ())
    if options.report:
        write_text(options.report, page)
    if options.out:
        with publishing_folder(options.out) as folder:
            (folder / "report.html").write_text(page, encoding="utf-8")
            text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
            (folder / "audit.json").write_text(text + "\n", encoding="utf-8")
            for name, table in (
                ("rules", report.rules_csv(audit)),
                ("findings", report.findings_csv(audit)),
                ("tasks", report.composition_csv(report.task_composition(audit.target))),
            ):
                (folder / f"{name}.csv").write_text(table, encoding="utf-8")
            if found and 1 < len(found.facts) <= MOST_LISTS:
                overlap_figure(found, folder / "overlap")


def _lines(
    audit: Audit, digest: str, found: Forensics | None, options: Options, *, failed: bool
) -> list[str]:
    from curation.cli.audit_tables import audit_tables

    tables = [] if options.quiet else audit_tables(audit, digest, found, whole=options.all)
    lines = [line for table in tables for line in table_lines(table)]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in audit.tally().items())
    return [*lines, f"{counts}: {'the audit failed' if failed else 'no rule is broken'}"]
