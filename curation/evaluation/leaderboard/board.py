"""`leaderboard`: the rows of a file, ranked where they are comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.arguments import checked
from curation.errors import LeaderboardError
from curation.evaluation.leaderboard.files import read_rows
from curation.evaluation.leaderboard.html import leaderboard_html, shown_name
from curation.evaluation.leaderboard.ranking import Group, leaderboard_data, single_ranking
from curation.evaluation.leaderboard.ranking import leaderboard as ranked
from curation.short_repr import html_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Leaderboard:
    """Groups of comparable rows, the best first.

    Attributes
    ----------
    file : str
        Plain name of the file.
    digest : str
        ``sha256:<hex>`` of its bytes.
    torn : str
        The beginning of a last line that is cut off and was left out, ``""`` for none.
    groups : tuple of Group
    """

    file: str
    digest: str
    torn: str
    groups: tuple[Group, ...]

    def __repr__(self) -> str:
        rows = sum(len(group.standings) for group in self.groups)
        return f"<Leaderboard {self.file}, {len(self.groups)} groups, {rows} rows>"

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        cells = [[str(value) for value in row] for row in frame.itertuples(index=False)]
        return html_table([str(name) for name in frame.columns], cells, caption=self.file)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a method and number: group, protocol, part, variant, rank, method, measure, value, unit."""
        import pandas as pd

        columns = ["group", "protocol", "part", "variant", "rank", "method", "measure", "value", "unit"]
        rows = [
            (
                group.number,
                group.ground.protocol,
                group.ground.part,
                group.ground.profile,
                one.rank,
                shown_name(one),
                name,
                metric.value,
                metric.unit,
            )
            for group in self.groups
            for one in group.standings
            for name, metric in one.row.metrics.items()
        ]
        return pd.DataFrame(rows, columns=columns)

    def html(self) -> str:
        """Return all tables as one HTML page."""
        return leaderboard_html(list(self.groups), file=self.file, digest=self.digest)

    def as_data(self) -> dict[str, Any]:
        """Return the groups as plain data."""
        groups = leaderboard_data(list(self.groups))
        return {"file": self.file, "sha256": self.digest, "torn": self.torn, "groups": groups}


@checked
def leaderboard(
    path: Path | str, *, metric: str | None = None, groups: Sequence[int] | str | None = None
) -> Leaderboard:
    """Rank the rows of a file where they are comparable.

    Parameters
    ----------
    path : Path or str
        A ``.jsonl`` file that ``evaluate --append`` or `Result.rows` wrote.
    metric : str, optional
        By which to rank; by default the first of the protocol's.
    groups : sequence of int or "all", optional
        One ranking of these groups, refused with what differs.

    Raises
    ------
    MissingFileError, LeaderboardError
        There is no such file, or it is no leaderboard file.
    UsageError
        No row has the metric, or the groups cannot be one.

    Examples
    --------
    >>> import curation, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "results.jsonl"
    ...     _ = path.write_bytes(b"")
    ...     curation.leaderboard(path)
    <Leaderboard results.jsonl, 0 groups, 0 rows>
    """
    file = Path(path)
    read = read_rows(file)
    if read.torn and not read.rows:
        raise LeaderboardError(
            "The file holds no whole row",
            where=str(path),
            expected="one row a line",
            found=ascii(read.torn),
            hint="curation evaluate … --append FILE writes it",
        )
    found = ranked(read.rows, metric)
    if groups is not None:
        found = single_ranking(found, None if isinstance(groups, str) else groups)
    return Leaderboard(file.name, read.digest, read.torn, tuple(found))
