"""`audit`: the rules of a sound benchmark on a manifest, or on any folder of somebody's lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.audit import report
from curation.audit.folder_target import FolderOptions, folder_target
from curation.audit.forensics import Forensics, forensics
from curation.audit.forensics_findings import forensics_data, forensics_tables
from curation.audit.list_figures import MOST_LISTS, overlap_figure
from curation.audit.list_roles import read_view
from curation.audit.lists import read_lists
from curation.audit.manifest_target import manifest_target
from curation.audit.needs import label_warnings
from curation.audit.report_html import report_html
from curation.audit.rule import Severity
from curation.audit.run import RULES, Audit, chosen_rules, run_audit
from curation.audit.target import PRINCIPLE, AuditTarget
from curation.audit.task_classes import read_tasks
from curation.errors import UsageError
from curation.ids import ImageId
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.manifest.store import HEADER_FILE
from curation.short_repr import html_table
from curation.sources.datasets import family
from curation.sources.given import as_source
from curation.sources.slots import Reading, SourceSlot, open_slots
from curation.sources.source import Source
from curation.storage import publishing_folder

if TYPE_CHECKING:
    import pandas as pd

_USUAL_PARTS = {"coco-train": "train2017", "coco-val": "val2017"}


@dataclass(frozen=True)
class AuditReport:
    """What the rules say.

    Attributes
    ----------
    audit : Audit
    digest : str
        Of the manifest, ``""`` for a folder of lists.
    lists : Forensics or None
        What the lists of a folder tell by themselves.
    fail_on : {"error", "warning"}
        What makes it fail.
    """

    audit: Audit
    digest: str = ""
    lists: Forensics | None = None
    fail_on: Severity = "error"

    def __repr__(self) -> str:
        tally = ", ".join(f"{count} {verdict}" for verdict, count in self.audit.tally().items())
        return f"<AuditReport of {self.audit.target.name}: {tally}>"

    def _repr_html_(self) -> str:
        rows = [
            (one.rule.name, one.outcome.verdict, str(one.outcome.count or ""), one.rule.definition)
            for one in self.audit.results
        ]
        return html_table(
            ("rule", "verdict", "count", "a sound benchmark"), rows, caption=repr(self)[1:-1], shown=len(rows)
        )

    @property
    def failed(self) -> bool:
        """Whether a rule is broken."""
        return self.audit.failed(fail_on=self.fail_on)

    def warnings(self) -> list[str]:
        """Return what is doubtful about the labels that were read."""
        return label_warnings(self.audit.target)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a finding: rule, verdict of the rule, verdict, about, text; a rule without any has one row."""
        import pandas as pd

        nothing: list[tuple[str, str, str]] = [("", "", "")]
        rows = [
            (one.rule.name, one.outcome.verdict, *finding)
            for one in self.audit.results
            for finding in ([(str(f.verdict), f.about, f.text) for f in one.outcome.findings] or nothing)
        ]
        return pd.DataFrame(rows, columns=["rule", "outcome", "verdict", "about", "text"])

    def as_data(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        data = {**report.audit_data(self.audit, digest=self.digest), "failed": self.failed}
        return data | ({"forensics": forensics_data(self.lists)} if self.lists else {})

    def html(self) -> str:
        """Return it as one HTML page."""
        sections = forensics_tables(self.lists) if self.lists else ()
        return report_html(self.audit, digest=self.digest, sections=sections)

    def save(self, out: Path) -> None:
        """Write audit.json, report.html, the tables as CSV, and of a folder's lists a figure, into a new folder."""
        with publishing_folder(out) as folder:
            text = json.dumps(self.as_data(), indent=1, ensure_ascii=False, allow_nan=False)
            for name, content in (
                ("report.html", self.html()),
                ("audit.json", text + "\n"),
                ("rules.csv", report.rules_csv(self.audit)),
                ("findings.csv", report.findings_csv(self.audit)),
                ("tasks.csv", report.composition_csv(report.task_composition(self.audit.target))),
            ):
                (folder / name).write_text(content, encoding="utf-8")
            if self.lists and 1 < len(self.lists.facts) <= MOST_LISTS:
                overlap_figure(self.lists, folder / "overlap")


def audit(
    target: Manifest | Path | str,
    sources: Mapping[str, Any] | None = None,
    *,
    exhaustive: Sequence[str] = (),
    tasks: str | None = None,
    namespace: str | None = None,
    roles: Mapping[str, str] | None = None,
    views: Mapping[str, str] | None = None,
    labels: Mapping[str, Any] | None = None,
    photos: Mapping[str, Path] | None = None,
    exemplars: int = 50,
    rules: str | None = None,
    fail_on: Severity = "error",
    reading: Reading | None = None,
) -> AuditReport:
    """Hold a manifest, or a folder of lists, against the rules of a sound benchmark.

    Parameters
    ----------
    target : Manifest, Path or str
        A manifest (itself, its folder or name), or a folder of ``.txt`` and ``.json`` lists.
    sources : mapping of str to path or annotations, optional
        By ``NAME[@PART]``.
    exhaustive : sequence of str
        Sources that miss no object of any of their classes.
    tasks : str, optional
        Classes of each task of a folder's lists: ``reowod``, ``ore``, ``s-owodb``, a file, or a manifest.
    namespace : str, optional
        The dataset of ids whose form does not tell it.
    roles : mapping of str to str, optional
        What a list of a folder is: ``train``, ``finetune``, ``val``, ``test`` or ``none``, ``:TASK`` behind it.
    views : mapping of str to str, optional
        The labels that lists of a role carry.
    labels : mapping of str to path or annotations, optional
        The labels of a list as they were written out.
    photos : mapping of str to Path, optional
        The photos of a source.
    exemplars : int
        Images of each class in a finetuning list.
    rules : str, optional
        Only these rules or principles, such as ``CO1,DS2`` or ``DS``.
    fail_on : {"error", "warning"}
        What makes it fail.
    reading : Reading, optional
        How the sources are read.

    Raises
    ------
    UsageError
        An option does not fit the target, or names a source that there is not.

    Examples
    --------
    >>> import curation
    >>> curation.audit("elephant/val2017", rules="DS1")
    <AuditReport of elephant/val2017 1.0.0: 1 pass>
    """
    if exemplars < 1:
        raise UsageError("--exemplars needs a number of 1 or more", found=str(exemplars))
    chosen = chosen_rules(rules) if rules else RULES
    reading = reading or Reading()
    for name, folder in (photos or {}).items():
        if not Path(folder).is_dir():
            raise UsageError("The folder of photos does not exist", where=f"--photos {name}={folder}")
    given = {key: _opened(one, reading) for key, one in (labels or {}).items()}
    common: dict[str, Any] = {"complete": exhaustive, "exemplars": exemplars, "photos": dict(photos or {})}
    if isinstance(target, Manifest) or not _is_folder_of_lists(Path(target)):
        for option, value in (("tasks", tasks), ("role", roles), ("view", views), ("namespace", namespace)):
            if value:
                raise UsageError(
                    f"A manifest says this itself, --{option} is for a folder of lists", where=f"--{option}"
                )
        manifest = target if isinstance(target, Manifest) else load_manifest(target)
        _require_names(exhaustive, photos or {}, [entry.name for entry in manifest.header.sources])
        opened = open_slots(sources or {}, manifest.slots, reading)
        held = manifest_target(manifest, opened, labels=given, **common)
        return AuditReport(run_audit(held, chosen), manifest.digest, fail_on=fail_on)
    slots = _slots(sources or {})
    _require_names(exhaustive, photos or {}, [slot.name for slot in slots])
    opened = open_slots(sources or {}, slots, reading) if slots else {}
    lists = read_lists(Path(target), namespace=namespace or _own_namespace(opened))
    classes = read_tasks(tasks) if tasks else ()
    named = {key.partition(":")[0] for key in given}
    # Label files that lie in the folder under the names of its lists; without tasks none is read.
    beside = {
        name: _opened(path, reading) for name, path in lists.labels.items() if classes and name not in named
    }
    said = FolderOptions(roles=roles or {}, views=_views(views or {}), labels={**beside, **given}, **common)
    of_folder: AuditTarget = folder_target(lists, tasks=classes, sources=opened, options=said)
    return AuditReport(run_audit(of_folder, chosen), "", forensics(lists, opened), fail_on)


def _is_folder_of_lists(path: Path) -> bool:
    if not path.is_dir() or (path / HEADER_FILE).is_file():
        return False
    lists = [entry for entry in path.iterdir() if entry.suffix.lower() in (".txt", ".json")]
    return bool(lists) or not any(path.rglob(HEADER_FILE))


def _own_namespace(sources: Mapping[str, Source]) -> str:
    """Return the namespace of bare ids: that of the sources where they share one; by the form of ids where not."""
    spaces = {source.namespace for source in sources.values()}
    return spaces.pop() if len(spaces) == 1 else ""


def _views(given: Mapping[str, str]) -> dict[str, Any]:
    for role, text in given.items():
        if role not in PRINCIPLE:
            raise UsageError(
                "--view needs ROLE=VIEW, each role once",
                where=f"--view {role[:60]}={text[:60]}",
                expected=f"a role of {', '.join(PRINCIPLE)}",
            )
    return {role: read_view(text, f"--view {role}={text}") for role, text in given.items()}


def _slots(names: Mapping[str, Any]) -> list[SourceSlot]:
    """Return the sources of a folder's audit; a name such as ``coco-train2017`` or ``voc2007-test`` says what it is."""
    slots = []
    for key in names:
        name = key.partition("@")[0]
        dataset, _, part = name.partition("-")
        if family(dataset) == dataset and family(dataset) != "coco":
            # Any other dataset: the whole name is its own, so that ids of two of them stay apart.
            dataset, part = name.replace("-", "_"), ""
        ImageId(dataset, "0")
        slots.append(SourceSlot(name, dataset, _USUAL_PARTS.get(name, part), False, ""))
    return slots


def _require_names(exhaustive: Sequence[str], photos: Mapping[str, Path], names: Sequence[str]) -> None:
    for option, given in (("--exhaustive", exhaustive), ("--photos", photos)):
        for name in given:
            # There may be photos of a folder's lists without annotations: any name serves then.
            if name not in names and (names or option == "--exhaustive"):
                raise UsageError(
                    "There is no such source here",
                    where=f"{option} {name[:80]}",
                    expected=", ".join(names) or "a name given with --source",
                )


def _opened(labels: Any, reading: Reading) -> Source:
    return as_source(labels, dataset="labels", part="", cache=reading.cache, bad_boxes=reading.bad_boxes)
