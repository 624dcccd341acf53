"""Run benchmarks: ``python -m tests.benchmarks --out DIR [NAME …]``; exit status 1 where a bar is not met.

Works of a row take turns, each in a fresh process; medians of the rounds' ratios count, and of the peaks of memory.
What a work imports and prepares is not counted; of a command, all is.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from curation.core.writing import make_folder, write_text
from tests.benchmarks.own_process import Spent
from tests.benchmarks.rows import ROWS, Row

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
BEGIN, END = "<!-- make bench writes this table -->\n", "<!-- end of the table -->\n"


@dataclass(frozen=True)
class Result:
    """What a row has measured: ratio or seconds beside its bar, memory beside its bar, and which is missed."""

    name: str
    what: str
    peer: str
    time: str
    bar: str
    memory: str
    missed: tuple[str, ...]
    rounds: dict[str, list[tuple[float, float, float]]]


def measure(name: str, row: Row, folder: Path, *, cores: bool = False) -> Result:
    """Return what a row measures.

    Parameters
    ----------
    cores : bool
        Whether seconds of all cores are compared in every row, which other work on the machine disturbs less.

    Raises
    ------
    AssertionError
        The works found different numbers: a ratio of two different things would mean nothing.
    """
    if row.draw:
        row.draw.spent(folder)
    works = {"": row.ours} | {peer: work for peer, work in row.peers.items() if work.possible}
    rounds: dict[str, list[Spent]] = {peer: [] for peer in works}
    for _ in range(row.repeats):
        for peer, work in works.items():
            rounds[peer].append(work.spent(folder))
            if not row.agree(rounds[""][-1].found, rounds[peer][-1].found) and peer:
                raise AssertionError(f"{name}: we found {rounds[''][-1].found}, {peer} {rounds[peer][-1].found}")
    taken = {
        peer: [spent.cores if cores or row.cores else spent.seconds for spent in many] for peer, many in rounds.items()
    }
    peaks = {peer: median(spent.mib for spent in many) for peer, many in rounds.items()}
    peers = [peer for peer in works if peer]
    fastest = min(peers, key=lambda peer: median(taken[peer]), default="")
    missed, seconds = [], median(taken[""])
    if fastest:
        ratios = [ours / other / row.scale for ours, other in zip(taken[""], taken[fastest], strict=True)]
        value = 1 / median(ratios) if row.least is not None else median(ratios)
        time = f"{value:.2f} ({seconds:.2f} s)"
        bar = f"≥ {row.least:g}" if row.least is not None else f"≤ {row.most:g}" if row.most is not None else ""
        if (row.most is not None and value > row.most) or (row.least is not None and value < row.least):
            missed.append(f"{value:.2f}, the bar is {bar}")
    else:
        seconds /= row.scale
        time, bar = f"{seconds:.3g} s", ""
    if row.limit is not None:
        bar = f"{bar}, ≤ {row.limit:g} s".removeprefix(", ")
        if seconds > row.limit:
            missed.append(f"{seconds:.3g} s, the bar is ≤ {row.limit:g} s")
    memory = f"{peaks['']:.0f} MiB"
    if row.memory is not None and peers:
        share = peaks[""] / min(peaks[peer] for peer in peers)
        memory += f", {share:.2f} (≤ {row.memory:g})"
        if share > row.memory:
            missed.append(f"{share:.2f} of the leanest peer's memory, the bar is ≤ {row.memory:g}")
    if row.mib is not None:
        memory += f" (≤ {row.mib:g})"
        if peaks[""] > row.mib:
            missed.append(f"{peaks['']:.0f} MiB, the bar is ≤ {row.mib:g}")
    if not works[""].possible or (row.peers and not peers):
        missed.append("a package is not installed")
    numbers = {peer or "ours": [spent[:3] for spent in many] for peer, many in rounds.items()}
    return Result(name, row.what, fastest, time, bar, memory, tuple(missed), numbers)


def table(results: Sequence[Result]) -> str:
    """Return results as a Markdown table."""
    lines = ["| work | compared with | ratio (time) | limit | peak memory |", "|---|---|---|---|---|"]
    for result in results:
        mark = " **missed**" if result.missed else ""
        lines.append(f"| {result.what} | {result.peer} | {result.time} | {result.bar}{mark} | {result.memory} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named rows, or all; print each, what falls short, and write JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows; default all")
    parser.add_argument("--out", type=Path, metavar="DIR", help="generated files and results")
    parser.add_argument("--list", action="store_true", help="print the rows with their bars, and measure nothing")
    parser.add_argument("--cores", action="store_true", help="compare seconds of all cores: the machine is not quiet")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}; needs all rows")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{name:16} {row.what}" for name, row in ROWS.items()))
        return 0
    if strangers := [name for name in options.names if name not in ROWS]:
        parser.error(f"no row is called {', '.join(strangers)}: there are {', '.join(ROWS)}")
    if options.out is None or (options.write and options.names):
        parser.error("--out is missing" if options.out is None else "--write needs all rows")
    folder = options.out.resolve()
    make_folder(folder)
    began, results = monotonic(), list[Result]()
    for name in options.names or ROWS:
        try:
            result = measure(name, ROWS[name], folder, cores=options.cores)
        except (subprocess.CalledProcessError, AssertionError) as reason:
            # One row that fails costs no other row its figure.
            result = Result(name, ROWS[name].what, "", "failed", "", "", (f"failed: {reason}",), {})
        results.append(result)
        minutes = (monotonic() - began) / 60
        print(f"{minutes:5.1f} min  {name:16} {result.time:>18} {result.bar:8} {result.memory}", flush=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    content = {"machine": machine, "rows": [asdict(result) for result in results]}
    write_text(folder / "benchmarks.json", json.dumps(content, indent=1) + "\n", guarded=False)
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{table(results)}{END}{rest.partition(END)[2]}", encoding="utf-8")
    short = [result for result in results if result.missed]
    print(
        "\n".join(f"falls short: {result.what}: {'; '.join(result.missed)}" for result in short) or "every bar is met"
    )
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
