"""``python -m curation.demo --out FOLDER``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from curation.demo.run import DEFAULT_SIZES, run_demo
from curation.errors import CurationError


def main() -> int:
    """Run the demo and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m curation.demo", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output"), help="folder to write (default: %(default)s)"
    )
    parser.add_argument(
        "--images", type=int, nargs=3, default=DEFAULT_SIZES, metavar=("TRAIN", "TEST", "COCO")
    )
    options = parser.parse_args()
    try:
        run_demo(options.out, sizes=tuple(options.images))
    except CurationError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


raise SystemExit(main())
