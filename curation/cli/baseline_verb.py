"""``curation baseline``: reference methods of the papers, from saved predictions to COCO results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from curation.baselines.methods import METHODS, Applied
from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import OutputFolder
from curation.cli.signature import summary_of


def _command(name: str, method: Callable[..., Applied]) -> Callable[..., Answer]:
    def run(applied: Applied, /, *, out: Path) -> Answer:
        """Apply the method for every value of its parameter, write results, and score them where a truth is given."""
        result = applied.save(out)
        for note in applied.notes:
            warn(note)
        return Answer(result, [*_lines(result), *(f"wrote {out / name}" for name in result["written"])])

    folder = OutputFolder((f"{name}-*.json",), ("sweep",))
    run.__annotations__ = {"applied": Annotated[Applied, method], "out": Annotated[Path, folder, "DIR"]}
    run.__doc__ = f"{summary_of(method)}.\n\nParameters\n----------\nout\n    folder of results files\n"
    return run


METAVAR = "METHOD"
COMMANDS = {name: _command(name, method) for name, method in METHODS.items()}


def _lines(result: Mapping[str, Any]) -> list[str]:
    rows = tuple(
        (
            row["value"],
            f"{row['boxes']:,}",
            f"{row['unknown']:,}",
            *("-" if row.get(name) is None else f"{row[name]:.2f}" for name in ("AP_known", "AP_unk")),
        )
        for row in result["settings"]
    )
    return table_lines(Table(result["meaning"], ("setting", "boxes", "unknown", "AP_known", "AP_unk"), rows))
