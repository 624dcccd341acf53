"""Many folders of lists audited at once: each folder is a block, and its report a row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.core.arguments import Workers, checked
from curation.core.canonical import sha256_of_lines
from curation.core.engines.running import run_step
from curation.core.engines.shards import Block, Shards, Step
from curation.core.errors import CurationError, UsageError
from curation.core.files import files_below, missing_path
from curation.extensions.audit.run import audit
from curation.sources.published_list import LIST_SUFFIXES

if TYPE_CHECKING:
    import pyarrow

_FILES = (*(suffix for suffix in LIST_SUFFIXES if suffix), ".yaml", ".yml", ".gz", ".xml")


@dataclass(frozen=True)
class AuditFolders(Step):
    """The report of `audit` on each folder of a table, or why it cannot be audited."""

    name = "audit"
    version = 2
    rules: str = ""
    fail_on: Literal["error", "warning"] = "error"

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return a row a folder: folder, verdict, report (JSON), error: why it was not read or compared."""
        import pyarrow

        rows = [self._row(*pair) for pair in zip(*table.to_pydict().values(), strict=True)]
        kinds = ("folder", "verdict", "report", "error")
        return pyarrow.table(
            {name: pyarrow.array([row[index] for row in rows], pyarrow.string()) for index, name in enumerate(kinds)}
        )

    def _row(self, name: str, folder: str) -> tuple[str, str, str | None, str | None]:
        try:
            report = audit(folder, rules=self.rules or None, fail_on=self.fail_on)
        except CurationError as error:
            return name, "error", None, " ".join(str(error).replace(folder, name).split())
        text = json.dumps(report.data(), sort_keys=True, ensure_ascii=False, allow_nan=False)
        reasons = {
            "damaged": f"cannot be read: {', '.join(report.damaged)}",
            "nothing compared": report.nothing_compared,
        }
        verdict = "error" if report.status == "damaged" else report.status
        return name, verdict, text, reasons.get(report.status, "")[:400] or None


@dataclass(frozen=True)
class _Folder:
    name: str
    path: str
    key: str

    def tables(self) -> Iterator[pyarrow.Table]:
        import pyarrow

        yield pyarrow.table({"folder": [self.name], "path": [self.path]})


@dataclass(frozen=True)
class Audits:
    """Verdicts of `audits` by folder, and the shards of reports.

    A verdict is ``pass``, ``fail``, ``error`` (the folder or a list could not be read), ``nothing compared`` or
    ``mostly unread``.
    """

    shards: Shards
    verdicts: dict[str, str]

    @property
    def failed(self) -> bool:
        """Whether a folder breaks a rule, or cannot be audited."""
        return self.exit_status > 0

    @property
    def exit_status(self) -> int:
        """1 if a folder breaks a rule or cannot be read, else 2 if one was not compared, else 0."""
        verdicts = set(self.verdicts.values())
        return 1 if verdicts & {"fail", "error"} else 2 if verdicts - {"pass"} else 0

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        counts = dict(sorted(Counter(self.verdicts.values()).items()))
        shards = self.shards
        return {"out": str(shards.folder), "digest": shards.digest, "counts": counts, "folders": self.verdicts}


@checked
def audits(
    folder: Annotated[Path, "FOLDER"],
    *,
    out: Annotated[Path, "DIR"],
    rules: Annotated[str, "NAMES"] = "",
    fail_on: Literal["error", "warning"] = "error",
    workers: Workers | None = None,
) -> Audits:
    """Audit every folder of lists below a folder, many at once.

    Parameters
    ----------
    folder
        whose folders hold the lists, one benchmark each
    out
        shards of a report a folder (JSON); the same command resumes after an interruption
    rules
        only these rules or principles, such as CO1,DS2 or DS
    fail_on
        what makes an audit fail
    workers
        processes (one a core)

    Raises
    ------
    MissingFileError
        No such folder.
    UsageError
        It has no folders with files of lists.
    """
    if not folder.is_dir():
        raise missing_path("The folder does not exist", folder, expected="a folder of folders")
    shards = run_step(AuditFolders(rules, fail_on), _folders(folder), out=out, workers=workers)
    verdicts: dict[str, str] = {}
    for table in shards.tables(["folder", "verdict"]):
        verdicts |= dict(zip(*table.to_pydict().values(), strict=True))
    return Audits(shards, verdicts)


def _folders(folder: Path) -> Iterator[Block]:
    has_lists = False
    for path in sorted(folder.absolute().iterdir()):
        files = [*files_below(str(path), _FILES)] if path.is_dir() and not path.name.startswith(".") else []
        if files:
            has_lists = True
            yield _Folder(path.name, str(path), sha256_of_lines(f"{name}\t{stamp}" for _, name, stamp in files))
    if not has_lists:
        raise UsageError("No folder of lists found", where=str(folder), expected="folders, one benchmark each")
