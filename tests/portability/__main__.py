"""Run the matrix: ``python -m tests.portability [--cells NAME …] [--write]``; exit status 1 where a test fails."""

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

from tests.docs.pages import ROOT
from tests.portability.cells import CELLS, Cell, NotHereError, environment, python_of, require

PAGE = ROOT / "docs" / "portability.md"
BEGIN, END = "<!-- cells: begin -->", "<!-- cells: end -->"
TESTS = (
    "tests/frozen",
    "tests/core/test_canonical.py",
    "tests/manifest/test_published.py",
    "tests/extensions/image_ood/test_post_hoc_pytorch_ood.py",
    "tests/signals/similarity/test_open_clip_encoder.py",
    "tests/signals/similarity/test_set_similarity.py",
    "tests/review/proposals/test_evidence.py",
    "tests/signals/cooccurrence/test_objective.py",
    "tests/protocols/test_losses.py",
)
"""Committed numbers and digests of all worlds, and tests against something outside that take seconds."""
LIMIT = 3600


@dataclass
class Run:
    """What came of a cell: why it did not run, or its kernels and tests."""

    cell: Cell
    absent: str = ""
    kernels: Mapping[str, str] = field(default_factory=dict)
    tests: str = "not run"
    failed: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells, print the table, and return 1 where a test fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.portability", description=__doc__)
    parser.add_argument("--cells", nargs="+", choices=[cell.name for cell in CELLS], metavar="NAME", help="these alone")
    parser.add_argument("--list", action="store_true", help="print the names of the cells and stop")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "portability", help="of virtual environments")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells at once (default: cores)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/portability.md")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(cell.name for cell in CELLS))
        return 0
    chosen = [cell for cell in CELLS if not given.cells or cell.name in given.cells]
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = list(pool.map(lambda cell: run_cell(cell, given.folder), chosen))
    text = table(runs)
    print(text)
    if given.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return int(any(run.failed for run in runs))


def run_cell(cell: Cell, folder: Path) -> Run:
    """Run the tests of one cell in fresh processes, and say so on stderr."""
    run, started = Run(cell), time.monotonic()
    try:
        require(cell)
        python = python_of(cell, folder)
    except NotHereError as reason:
        run.absent = str(reason)
        print(f"{cell.name}: not run: {reason}", file=sys.stderr, flush=True)
        return run
    run_here = {"cwd": ROOT, "env": environment(cell, python), "capture_output": True, "text": True}
    asked = "import json; from tests.portability.cells import kernels; print(json.dumps(kernels()))"
    libraries = subprocess.run([python, "-c", asked], check=True, **run_here)  # type: ignore[call-overload]
    run.kernels = json.loads(libraries.stdout)
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *TESTS]
    if cell.versions == "floor":
        # What an old release of a library calls in a newer one of another is for neither of us to mend.
        pytest += ["-W", "ignore::DeprecationWarning"]
    done = subprocess.run(pytest, timeout=LIMIT, **run_here)  # type: ignore[call-overload]
    counts = re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout[-400:])
    run.failed = done.returncode != 0
    run.tests = ", ".join(f"{n} {what}" for n, what in counts) or f"exit status {done.returncode}"
    if run.failed:
        print(f"{cell.name}:\n{done.stdout[-4000:]}{done.stderr[-2000:]}", file=sys.stderr, flush=True)
    print(f"{cell.name}: {run.tests}; {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return run


def table(runs: Sequence[Run]) -> str:
    """Return the cells as a table in Markdown."""
    rows = ["| cell | kernels in use | tests |", "|---|---|---|"]
    for run in runs:
        usual = {} if run is runs[0] else runs[0].kernels
        new = "; ".join(f"{name} {what}" for name, what in run.kernels.items() if usual.get(name) != what)
        rows.append(
            f"| {run.cell.name} | {f'not run: {run.absent}' if run.absent else new or 'the same'} | {run.tests} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
