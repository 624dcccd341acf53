"""``curation review propose``: rank images of an OOD source that may show an ID class; propose near and far."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Line, Table
from curation.cli.outputs import output_file
from curation.review.proposals.proposal import ProposalSet, write_proposals
from curation.review.proposals.propose import propose_from_files

_SHOWN = 12


def propose(
    made: Annotated[ProposalSet, propose_from_files], /, *, out: Annotated[Path | None, output_file(".jsonl")] = None
) -> Answer:
    """Rank the images of an OOD source that may hold an ID class; near and far, as proposals.

    The exit status is always 0.

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
    tables = (_categories(made), _images(made))
    lines: list[Line] = [table for table in tables if table.rows]
    lines += [f"left out: {n} {reason}" for reason, n in made.left_out.items()]
    lines.append(", ".join(f"{n} {verdict}" for verdict, n in made.counts().items()))
    if out:
        lines.append(f"wrote {out}: {made.digest}")
    return [*lines, f"Each is {made.note}."]


def _categories(made: ProposalSet) -> Table:
    rows = tuple(
        (row.pool, row.category, str(row.images), row.judgement, row.kinship, row.reason)
        for row in made.categories
        if row.images and row.judgement != "far"
    )
    return Table(
        "Categories that are not simply far", ("source", "category", "images", "judgement", "kinship", "why"), rows
    )


def _images(made: ProposalSet) -> Table:
    rows = tuple(
        (str(row.rank), row.image_id, row.proposal, "; ".join(piece.detail for piece in row.evidence[:3]))
        for row in made.proposals[:_SHOWN]
    )
    return Table(f"First of {len(made.proposals)} images", ("rank", "image", "proposal", "evidence"), rows)
