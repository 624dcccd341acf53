"""Torture: ``python -m tests.torture [faults|fuzz|security] [--count N] [--seed S] [--only NAME]``.

Exit status 1 where a fault left what it may not leave, or an input did what no input may do.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence

KINDS = ("faults", "fuzz", "security")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one kind of torture, or all, and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"one of {', '.join(KINDS)}; default all")
    parser.add_argument("--count", type=int, help="inputs to fuzz (100,000), or faults to inject (all of them)")
    parser.add_argument("--seed", default="0", help="another seed draws other inputs and other moments")
    parser.add_argument("--only", default="", metavar="NAME", help="what has this text in its name")
    parser.add_argument("--input", type=int, metavar="N", help="of fuzz with --only: run input N alone, and show it")
    options = parser.parse_args(arguments)
    if strange := sorted(set(options.kinds) - set(KINDS)):
        parser.error(f"there is no {', '.join(strange)}: {', '.join(KINDS)}")
    failures = 0
    for kind in options.kinds or KINDS:
        began = time.monotonic()
        module = importlib.import_module(f"tests.torture.{ {'fuzz': 'fuzzing'}.get(kind, kind) }")
        failures += module.run(options)
        print(f"{kind}: {time.monotonic() - began:,.0f} s\n", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
