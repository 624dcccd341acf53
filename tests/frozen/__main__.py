"""Tell what differs from what is frozen, or freeze anew: ``python -m tests.frozen [--write] [WORLD …]``.

Exit status 1 where something differs.
"""

import contextlib
import io
import sys

from tests.frozen.commands import WORLDS
from tests.frozen.frozen import committed, differences, frozen, write
from tests.frozen.outputs import written


def main(words: list[str]) -> int:
    """Run the commands of the worlds named, or of all, and print each difference or write what came out."""
    status = 0
    for world in [one for one in WORLDS if one in words] or WORLDS:
        # Worlds are drawn by commands too, and those print.
        with contextlib.redirect_stdout(io.StringIO()):
            found = frozen(written([world]))
        if "--write" in words:
            write(world, found)
            continue
        for told in differences(found, committed(world)):
            print(f"{world}: {told}", flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
