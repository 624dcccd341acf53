"""Run benchmarks: ``python -m tests.benchmarks --out DIR [NAME …]``; exit status 1 where a requirement is not met."""

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curation.storage import make_folder, write_text

COLUMNS = ("benchmark", "what", "value", "unit", "required", "met", "note")


def names() -> list[str]:
    """Return the benchmarks: modules of this folder that have a function ``run(out) -> rows``."""
    folder = Path(__file__).parent
    return sorted(path.stem for path in folder.glob("*.py") if "\ndef run(" in path.read_text(encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all; print a table and write it as CSV and JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names())}; default all")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="generated files and results")
    options = parser.parse_args(arguments)
    if strangers := sorted(set(options.names) - set(names())):
        parser.error(f"no benchmark is called {', '.join(strangers)}: there are {', '.join(names())}")
    make_folder(options.out)
    rows: list[dict[str, Any]] = []
    for name in options.names or names():
        found = importlib.import_module(f"tests.benchmarks.{name}").run(options.out)
        rows += [{"benchmark": name} | row for row in found]
        print("\n".join(_lines(name, found)), flush=True)
    write_text(options.out / "benchmarks.csv", _csv(rows))
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    write_text(options.out / "benchmarks.json", json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    print(f"written: {options.out / 'benchmarks.csv'}, {options.out / 'benchmarks.json'}")
    return 1 if any(row["met"] is False for row in rows) else 0


def _lines(name: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    width = max(len(row["what"]) for row in rows)
    lines = [name]
    for row in rows:
        verdict = {True: "met", False: "NOT MET", None: ""}[row["met"]]
        lines.append(
            f"  {row['what']:<{width}}  {row['value']:>10.3f} {row['unit']:<5}  {row['required']:<12} {verdict}"
        )
    return lines


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


if __name__ == "__main__":
    sys.exit(main())
