"""Run the matrix: ``python -m tests.portability [--cells NAME …] [--write]``; exit status 1 where cells differ."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT
from tests.portability.cells import CELLS, Cell, NotHereError, environment, python_of, require
from tests.portability.comparison import Comparison, compare
from tests.portability.requirements import floors

PAGE = ROOT / "docs" / "portability.md"
BEGIN, END = "<!-- cells: begin -->", "<!-- cells: end -->"
TESTS = (
    "tests/test_canonical.py",
    "tests/manifest/test_published.py",
    "tests/protocols/test_hashrank.py",
    "tests/protocols/test_elephant.py",
    "tests/evaluation/test_class_scores.py",
    "tests/evaluation/test_post_hoc.py",
    "tests/evaluation/test_post_hoc_layers.py",
    "tests/evaluation/test_post_hoc_pytorch_ood.py",
    "tests/similarity/test_colour_encoder.py",
    "tests/similarity/test_embeddings.py",
    "tests/similarity/test_neighbors.py",
    "tests/similarity/test_open_clip_encoder.py",
    "tests/similarity/test_set_similarity.py",
    "tests/proposals/test_clip_overlap.py",
    "tests/proposals/test_reference.py",
    "tests/proposals/test_set_distance.py",
    "tests/cooccurrence/test_objective.py",
    "tests/baselines/test_losses.py",
)
"""Tests that hold numbers and digests against something outside, and take seconds."""
LIMIT = 1800


@dataclass
class Run:
    """What came of a cell: why it did not run, or its versions, outputs, tests and comparison."""

    cell: Cell
    absent: str = ""
    made: dict[str, Any] = field(default_factory=dict)
    tests: str = "not run"
    failed: bool = False
    comparison: Comparison | None = None
    seconds: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells, print the table, and return 1 where a cell differs or a test fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.portability", description=__doc__)
    parser.add_argument("--cells", nargs="+", default=[], metavar="NAME", help="these alone, beside the first")
    parser.add_argument("--list", action="store_true", help="print the names of the cells and stop")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "portability", help="of virtual environments")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at once (default: cores)")
    parser.add_argument("--no-tests", action="store_true", help="the program of numbers and digests alone")
    parser.add_argument("--write", action="store_true", help="put the table into docs/portability.md")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(one.name for one in CELLS))
        return 0
    unknown = set(given.cells) - {one.name for one in CELLS}
    if unknown:
        parser.error(f"no such cell: {', '.join(sorted(unknown))}; --list names them")
    chosen = [one for one in CELLS if one is CELLS[0] or not given.cells or one.name in given.cells]
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = list(pool.map(lambda cell: run_cell(cell, given.folder, with_tests=not given.no_tests), chosen))
    for one in runs:
        if not one.absent and not one.failed:
            one.comparison = compare(runs[0].made["outputs"], one.made["outputs"])
    text = table(runs)
    print(text)
    if given.write:
        write(text)
    return int(any(one.failed or (one.comparison is not None and not one.comparison.passed) for one in runs))


def run_cell(cell: Cell, folder: Path, *, with_tests: bool) -> Run:
    """Run the program and the tests of one cell, each in a fresh process, and say so on stderr."""
    run, started = Run(cell), time.monotonic()
    try:
        require(cell)
        python = python_of(cell, folder)
    except NotHereError as reason:
        run.absent = str(reason)
        print(f"{cell.name}: not run: {reason}", file=sys.stderr, flush=True)
        return run
    given = environment(cell, python)
    program = [python, "-m", "tests.portability.program"]
    done = subprocess.run(program, cwd=ROOT, env=given, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        run.failed, run.tests = True, "the program failed"
        print(f"{cell.name}: {done.stderr[-2000:]}", file=sys.stderr, flush=True)
        return run
    run.made = json.loads(done.stdout)
    print(f"{cell.name}: program {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if with_tests:
        pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *TESTS]
        done = subprocess.run(pytest, cwd=ROOT, env=given, capture_output=True, text=True, timeout=LIMIT)
        counts = re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout[-400:])
        run.failed = done.returncode != 0
        run.tests = ", ".join(f"{n} {what}" for n, what in counts) or f"exit status {done.returncode}"
        if run.failed:
            print(f"{cell.name}:\n{done.stdout[-4000:]}{done.stderr[-2000:]}", file=sys.stderr, flush=True)
    run.seconds = time.monotonic() - started
    print(f"{cell.name}: {run.tests}; {run.seconds:.0f} s", file=sys.stderr, flush=True)
    return run


def table(runs: Sequence[Run]) -> str:
    """Return two tables in Markdown: the cells, and the versions that they ran with."""
    rows = ["| cell | kernels in use | tests | equal to the byte | greatest difference |", "|---|---|---|---|---|"]
    usual = runs[0].made.get("kernels", {})
    rows += [_row(one, {} if one is runs[0] else usual) for one in runs]
    sets: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for one in runs:
        if one.made:
            shown = {"python", "torch", "open-clip-torch", "pytorch-ood", *floors()}
            versions = tuple((name, version) for name, version in one.made["versions"].items() if name in shown)
            sets.setdefault(versions, []).append(one.cell.name)
    rows += ["", "| cells | versions, after the first row those that differ from it |", "|---|---|"]
    first: set[tuple[str, str]] = set()
    for found, names in sets.items():
        named = ", ".join(f"{name} {version}" for name, version in found if (name, version) not in first)
        rows.append(f"| {names[0] if len(names) == 1 else f'{names[0]} to {names[-1]}'} | {named} |")
        first = first or set(found)
    return "\n".join(rows) + "\n"


def _row(run: Run, usual: Mapping[str, str]) -> str:
    head = f"| {run.cell.name} |"
    if run.absent:
        return f"{head} not run: {run.absent} | | | |"
    found = run.made.get("kernels", {})
    kernels = "; ".join(f"{name} {what}" for name, what in found.items() if usual.get(name) != what) or "the same"
    if run.comparison is None:
        return f"{head} {kernels} | {run.tests} | | |"
    beside = run.comparison
    differ = [f"{kind} {value:.1e} in `{_verb(name)}`" for kind, (value, name) in sorted(beside.greatest.items())]
    wrong = [f"**differs: `{name}`**" for name in beside.wrong[:3]]
    return (
        f"{head} {kernels} | {run.tests} | {beside.equal} of {beside.total} | {'; '.join(wrong + differ) or 'none'} |"
    )


def _verb(output: str) -> str:
    """Return the command's verb of the name of an output, ``WORLD: VERB … : FILE``."""
    return output.partition(": ")[2].split()[0]


def write(text: str) -> None:
    """Put the tables between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
