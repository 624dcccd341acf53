"""``curation evaluate``: score predictions, by benchmark; the function ``evaluate`` of each declares the options."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from curation.benchmarks.registry import evaluation_of, protocols, report_of, summary_of_protocol
from curation.benchmarks.roles import is_published
from curation.cli.output import Answer, next_command, score_commands
from curation.cli.outputs import KEPT, output_folder
from curation.core.errors import UsageError
from curation.core.process import stage
from curation.core.writing import refuse_in_manifest

METAVAR = "BENCHMARK"
SUMMARIES = {name: summary_of_protocol(name) for name in protocols()}


def evaluator_of(manifest: str) -> str:
    """Return the name of the evaluation by which a manifest is scored."""
    from curation.benchmarks.rules.benchmark_file import EVALUATORS, RULES
    from curation.manifest.locate import load_manifest

    loaded = load_manifest(manifest)
    protocol = loaded.header.rule.protocol
    evaluator = EVALUATORS.get(
        protocol, loaded.header.name.partition("/")[0] if is_published(loaded.header) else protocol
    )
    if evaluator not in SUMMARIES:
        command = "; then ".join(map(shlex.join, score_commands(loaded, manifest)))
        raise UsageError(
            "No evaluation scores manifests of this rule",
            where=manifest,
            hint=command
            or (
                "build it with --source NAME=PATH for its images: their boxes or classes are scored"
                if protocol in RULES
                else None
            ),
            expected=f"curation evaluate BENCHMARK --manifest {manifest}; BENCHMARK is one of {', '.join(SUMMARIES)}",
            found=f"a manifest of the rule {protocol}",
        )
    return evaluator


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of a leaderboard that a result adds.

    Attributes
    ----------
    append
        add the ranked measures as rows to this .jsonl file, for `curation leaderboard`
    name
        name of the method in those rows (default: from the file of predictions)
    """

    append: Annotated[Path | None, KEPT] = None
    name: Annotated[str | None, "NAME"] = None

    def __post_init__(self) -> None:
        """Raise before a long evaluation for requests that would fail after it: an existing file, an unused name."""
        if self.append is None:
            if self.name is not None:
                raise UsageError("--name names the rows that --append writes", expected="--append FILE beside it")
            return
        from curation.evaluation.leaderboard_rows import check_appendable, require_name

        refuse_in_manifest(self.append)
        check_appendable(self.append)
        if self.name is not None:
            require_name(self.name)

    def add(self, result: Any) -> list[str]:
        """Add the rows of a result to the leaderboard, and return the lines to print."""
        if self.append is None:
            return []
        from curation.evaluation.leaderboard_rows import append_rows

        rows = result.rows(self.name)
        recovered = append_rows(self.append, rows)
        mended = ["removed an unfinished line of an earlier run"] if recovered else []
        count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
        return [*mended, f"appended {count} to {self.append}", next_command("leaderboard", self.append)]


@dataclass(frozen=True, kw_only=True)
class ResultFiles:
    """The files of a result, and the lines to print.

    Attributes
    ----------
    out
        write results.json and CSV files
    figures
        with --out, draw the figures too, as PNG and SVG
    all
        print every measure and table, not the ranked alone
    """

    out: Annotated[Path | None, output_folder("results.json"), "DIR"] = None
    figures: bool = False
    all: bool = False

    def __post_init__(self) -> None:
        """Refuse files without a folder."""
        if self.figures and not self.out:
            raise UsageError("--figures are files", expected="--out DIR beside it")


def command_of(protocol: str) -> Callable[..., Answer]:
    """Return the command of a benchmark."""
    score, has_tables = evaluation_of(protocol), report_of(protocol).tables is not None

    # `signature.call` calls `score` with its options, and `run` with what it returns.
    def run(result: Annotated[Any, score], /, *, rows: Rows, report: ResultFiles) -> Answer:
        written = []
        if report.out:
            with stage("writing"):
                written = result.save(report.out, figures=report.figures)
        lines = [
            *result.lines(with_tables=report.all or has_tables),
            *(f"wrote {path}" for path in written),
            *rows.add(result),
        ]
        return Answer(result.json_data, lines)

    run.__doc__ = score.__doc__
    return run
