"""What ``curation evaluate --out`` writes: figures, CSV tables, and the whole result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.cli.outputs import Output, OutputFolder

WRITTEN: dict[str, Output] = {
    "osod3": OutputFolder(("results.json", "average_precision.csv", "thresholds.csv"), ("open_set_error_*",)),
}
"""What each protocol may write into ``--out``: looked at before an evaluation begins."""

Result = Mapping[str, Any]


def finish(result: Result, written: Sequence[Path], folder: Path) -> list[Path]:
    """Write ``results.json``, which names its files, and remove those of an earlier run that this one did not write.

    Only what the earlier ``results.json`` calls its own, and nobody changed since, is removed.
    """
    from curation.storage import remove_written, write_text

    path = folder / "results.json"
    names = [one.name for one in written]
    for name in _written_before(path):
        if name not in names:
            remove_written(folder / name)
    content = {**result, "written": names}
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [*written, path]


def _written_before(path: Path) -> list[str]:
    """Return the plain names of figures and tables that an earlier result says it wrote; none if it is unreadable."""
    try:
        names = json.loads(path.read_bytes())["written"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    suffixes = (".png", ".svg", ".csv")
    return [
        name
        for name in (names if isinstance(names, list) else [])
        if isinstance(name, str) and name.endswith(suffixes) and Path(name).name == name
    ]
