"""``python -m curation.demo --out FOLDER``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from curation.demo.run import DEFAULT_SIZES, run_demo
from curation.errors import CurationError


def main() -> int:
    """Run the demo and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m curation.demo",
        description="Draw a small world, detect in it, and score two detectors.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write (default: %(default)s)")
    parser.add_argument(
        "--images",
        type=int,
        nargs=3,
        default=DEFAULT_SIZES,
        metavar=("TRAIN", "TEST", "COCO"),
        help="how many of each to draw (default: {} {} {})".format(*DEFAULT_SIZES),
    )
    options = parser.parse_args()
    try:
        run_demo(options.out, sizes=tuple(options.images))
    except CurationError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: The machine refused: {error.strerror}\n  where: {error.filename}", file=sys.stderr)
        return CurationError.exit_code
    except KeyboardInterrupt:
        print("interrupted; run it again whenever you like", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
