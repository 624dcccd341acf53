"""Write the package's noun table from WordNet 3.0's database files.

``python -m curation.hierarchy.generate_wordnet DICT_FOLDER`` reads ``data.noun`` and ``index.noun`` (Princeton's
WNdb-3.0, or Debian's wordnet-base, which gives the same table) and writes the two streams beside this module. It prints
their digests, which stand in `curation.hierarchy.noun_table.DIGESTS`.
"""

from __future__ import annotations

import hashlib
import lzma
import sys
from pathlib import Path

from curation.errors import CurationError
from curation.hierarchy.noun_table import LEMMA_FILE, STRUCTURE_FILE, structure_bytes, table_of
from curation.storage import write_bytes


def main(arguments: list[str]) -> int:
    """Write both streams; return the exit status."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        table, lemmas = table_of(Path(arguments[0]))
    except CurationError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    folder = Path(arguments[1]) if len(arguments) == 2 else Path(__file__).parent
    for name, data in (
        (STRUCTURE_FILE, structure_bytes(table)),
        (LEMMA_FILE, "\n".join(lemmas).encode("ascii")),
    ):
        packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
        write_bytes(folder / name, packed)
        print(f"{name}  {hashlib.sha256(data).hexdigest()}  {len(data)} bytes, packed {len(packed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
