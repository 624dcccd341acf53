"""docs/conformance.md: which numbers agree with independent references, by measure and variant.

``python -m tests.docs.conformance`` says whether the page is what the declarations and the comparisons say; ``--write``
makes it so. The comparisons are those of `tests.worlds.test_evaluators`.
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from curation.benchmarks.registry import protocols, report_of
from curation.evaluation.measures import Scored
from tests.docs.pages import ROOT, kept
from tests.evaluation.scored_rows import scored_of
from tests.worlds.expected import Compared, compared
from tests.worlds.runs import Run, every_run

PAGE = ROOT / "docs/conformance.md"
NONE, ABSENT = "no independent reference", "-"
HEAD = f"""\
# Conformance: numbers that independent references confirm

<!-- made by `python -m tests.docs.conformance --write`: edit that, not this -->

`python -m tests.docs.conformance` runs each evaluator as a command on a small synthetic dataset (`tests/worlds`), in
every variant, and compares the numbers with a reference: plain loops, written from the specification without the
package. Integers must be equal; other numbers x may differ by 1e-11 · max(1, |x|).

A cell is the number of values on which both agree: `6` means all 6, `5 of 6` all but one. *{NONE}*: nothing here
confirms the value. `{ABSENT}`: the variant has no such value on this dataset. *Other numbers* belong to single classes,
thresholds and groups. A few dozen images prove little: `tests/evaluation` uses many more, and the authors' files.
"""


class Vouched(float):
    """A number of a result that a comparison has seen."""

    comparison: Compared


@dataclass
class Column:
    """What one variant has: for each measure, its comparisons and how many numbers have none."""

    cases: dict[str, list[Compared]] = field(default_factory=dict)
    alone: dict[str, int] = field(default_factory=dict)

    def cell(self, key: str) -> str:
        found, alone = self.cases.get(key, []), self.alone.get(key, 0)
        if found and alone:
            return f"{share(found)}; {alone} more: {NONE}"
        return share(found) if found else NONE if alone else ABSENT


def share(found: list[Compared]) -> str:
    right = sum(one.same for one in found)
    return str(right) if right == len(found) else f"{right} of {len(found)}"


def vouched(result: dict[str, Any], comparisons: Iterable[Compared]) -> None:
    """Put each comparison beside the number of the result that it is of."""
    for one in comparisons:
        # An absent number has no place in a result, and stays among the other numbers of its protocol.
        if isinstance(one.ours, int | float):
            below: Any = result
            for step in one.steps[:-1]:
                below = below[step]
            below[one.steps[-1]] = number = Vouched(one.ours)
            number.comparison = one


def numbers_of(value: Any) -> Iterator[float]:
    """Yield the numbers of a measure: one, or those by its parameters or by class."""
    if isinstance(value, Mapping):
        for below in value.values():
            yield from numbers_of(below)
    elif isinstance(value, int | float):
        yield value


def of_rows(result: Mapping[str, Any], scored: Scored) -> Mapping[str, Any]:
    """Return what the expectations say of something scored whose numbers are rows."""
    if "classifiers" in result:
        one = result["classifiers"][scored.method]
        rates, accuracy = one["oscr"][scored.variant]["unknown"], one["openset_accuracy"]["unknown"]["strict"]
        return {**one, **one["confidence"]["unknown"], **accuracy, "AUROC": one["auroc"]["unknown"]["auroc"],
                "CCR": rates["ccr_at_fpr"], "macro_CCR": rates["macro_ccr_at_fpr"],
                "sum_ccr": rates["sum_ccr"]["value"]}  # fmt: skip
    if "runs" in result:
        run: Mapping[str, Any] = result["runs"][scored.method][scored.split or "published"]
        rows: Mapping[str, Any] = run[scored.task][scored.variant]
        return dict(rows[scored.case])
    if "results" in result:
        of_split: Mapping[str, Any] = next(iter(result["results"].values()))
        return {**of_split, **(of_split.get(scored.variant) or {})}
    if "a_ose" in result:
        return of_elephant(result, result[scored.label])
    if "cases" not in result:
        found: Mapping[str, Any] = result.get(scored.label, result)
        return found
    case = result["cases"][scored.case]
    points = case["curves"][scored.variant]
    return case | next(point for point in points if f"{point['theta']:g}" == scored.settings["theta"])


def of_elephant(result: Mapping[str, Any], section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same of one variant of Elephant: its first level, and what all variants share."""
    errors, owod = {key: one for key, one in result["a_ose"].items() if isinstance(one, dict)}, result["owod"]
    averages = {recall: one.get("macro", one) for recall, one in section["AWI"].items()}
    return {
        **{name: found[0] for name, found in section.items() if name.startswith("mAP") and isinstance(found, list)},
        **{name: found for name, found in section.items() if name.endswith("_open")},
        "AWI": {recall: one["excl_level0"] for recall, one in averages.items()},
        "AOSE": {recall: one["total"] for recall, one in errors.items()},
        "AOSE_objects": {recall: one["instances"] for recall, one in errors.items()},
        "WI_owod": owod["WI"],
        "AOSE_owod": owod["AOSE_total"],
        "AOSE_objects_owod": owod["AOSE_instances"],
    }


def columns_of(runs: Iterable[Run], columns: dict[str, Column]) -> list[Compared]:
    """Fill the columns of one protocol; return the comparisons that are of no declared measure."""
    others: list[Compared] = []
    for run in runs:
        result = run.result()
        comparisons = [one for one in compared(result, run.expected) if one.is_number]
        vouched(result, comparisons)
        used = set()
        report = report_of(run.protocol)
        # Two parts of one variant share a section.
        sections = {(scored.label, *scored.settings.items()): scored for scored in scored_of(result)}
        for scored in sections.values():
            column = columns.setdefault(f"`{scored.variant}`", Column())
            for measure in report.measures:
                for number in numbers_of(of_rows(result, scored).get(measure.base)):
                    if isinstance(number, Vouched):
                        column.cases.setdefault(measure.key, []).append(number.comparison)
                        used.add(number.comparison.steps)
                    else:
                        column.alone[measure.key] = column.alone.get(measure.key, 0) + 1
        others += [one for one in comparisons if one.steps not in used]
    return others


def references(world: str) -> str:
    """Return links to the world and to the references that it calls: modules whose name says so."""
    module = import_module(f"tests.worlds.{world}")
    names = {getattr(one, "__module__", getattr(one, "__name__", "")) for one in vars(module).values()}
    named = sorted(one for one in names if one and one.endswith(("reference", "oscr_cases")))
    return ", ".join(f"[{name}](../{name.replace('.', '/')}.py)" for name in (module.__name__, *named))


def section(protocol: str, runs: list[Run]) -> str:
    """Return the table of one protocol: a line a measure, a column a variant."""
    columns: dict[str, Column] = {}
    others = columns_of(runs, columns)
    lines = [f"## {protocol}", ""]
    lines += [f"Dataset, reference: {references(world)}." for world in dict.fromkeys(run.world for run in runs)]
    lines += ["", f"| measure | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    rows: dict[tuple[str, ...], list[str]] = {}
    for measure in report_of(protocol).measures:
        cells = tuple(column.cell(measure.key) for column in columns.values())
        rows.setdefault(cells, []).append(f"`{measure.key}`")
    lines += [f"| {', '.join(keys)} | {' | '.join(cells)} |" for cells, keys in rows.items()]
    if others:
        lines += ["", f"Other numbers: {share(others)}."]
    return "\n".join([*lines, ""])


def page() -> str:
    """Return the page as declarations and comparisons have it now."""
    with tempfile.TemporaryDirectory() as folder:
        runs = list(every_run(Path(folder)))
        compared_names = {run.protocol for run in runs}
        tables = [
            section(name, [run for run in runs if run.protocol == name])
            for name in protocols()
            if name in compared_names
        ]
    alone = ", ".join(f"`{name}`" for name in protocols() if name not in compared_names)
    return "\n".join([HEAD, f"These evaluators have no independent reference: {alone}.", "", *tables])


if __name__ == "__main__":
    sys.exit(kept(PAGE, page(), sys.argv[1:]))
