"""``curation review propose``: which images of an OOD source may hold an ID class, and how far the rest is from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Line, Table
from curation.cli.outputs import OUTPUT_FILE
from curation.review.proposals.from_files import propose_from_files
from curation.review.proposals.proposal import ProposalSet, write_proposals

_SHOWN = 12


def propose(
    made: Annotated[ProposalSet, propose_from_files], /, *, out: Annotated[Path | None, OUTPUT_FILE] = None
) -> Answer:
    """Rank the images of an OOD source that may hold an ID class; near, far and farther, as proposals.

    Always 0, since nothing here is true or false.

    Parameters
    ----------
    out
        write the proposals as JSON lines
    """
    if out:
        write_proposals(out, made)
    return Answer({**made.header(), "counts": made.counts(), "digest": made.digest}, _lines(made, out))


def _lines(made: ProposalSet, out: Path | None) -> list[Line]:
    """Return the lines that ``curation review propose`` prints; the last says that these are proposals."""
    tables = (_sets(made), _images(made))
    lines: list[Line] = [table for table in tables if table.rows]
    lines += [f"left out: {n} {reason}" for reason, n in made.left_out.items()]
    lines.append(", ".join(f"{n} {verdict}" for verdict, n in made.counts().items()))
    if out:
        lines.append(f"wrote {out}: {made.digest}")
    return [*lines, f"Each is {made.note}."]


def _sets(made: ProposalSet) -> Table:
    rows = tuple(
        (
            row.name,
            row.proposal,
            str(row.images),
            row.mean_similarity or "-",
            row.standard_error or "-",
            row.mean_kinship or "-",
            row.reason,
        )
        for row in made.sets
    )
    return Table("Sets", ("set", "proposal", "images", "mean s", "std. error", "kinship", "why"), rows)


def _images(made: ProposalSet) -> Table:
    rows = tuple(
        (str(row.rank), row.image_id, row.proposal, "; ".join(piece.detail for piece in row.evidence[:3]))
        for row in made.proposals[:_SHOWN]
    )
    return Table(f"First of {len(made.proposals)} images", ("rank", "image", "proposal", "evidence"), rows)
