"""Pairs of photos that may be the same photo: the file in which a person decides, and the results of the decisions.

``pairs.csv`` has a row per pair: the two images, their files and lists, the evidence, and an empty column ``decision``.
A person, or a review of the file, writes ``same``, ``different`` or ``unsure`` into it. Pairs with the decision
``same`` give the images that either side can drop; their share of all decided pairs is the precision of a kind of
evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from curation.core.errors import UsageError
from curation.core.files import read_bytes
from curation.core.tables import as_csv, cell_text, csv_rows
from curation.core.wording import counted
from curation.review.decisions.verdicts import Standing

PAIRS = "pairs.csv"
POOL = "pairs"
"""What decisions on pairs apply to."""
Decision = Literal["", "same", "different", "unsure"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)


@dataclass(frozen=True, slots=True)
class PhotoPair:
    """Two photos that may be the same photo.

    Attributes
    ----------
    left, right : str
        Images of a benchmark and of a corpus, or of a training and of a test list.
    left_path, right_path : str
        Their files; ``SHARD.tar!MEMBER`` for a photo in a shard, and empty for an unknown file.
    left_in, right_in : str
        The lists, roles or corpus that contain them.
    kind : str
        Evidence: ``same_pixels``, ``perceptual``, ``mirrored``, ``nearly_same``.
    value, threshold : int
        Number of bits in which the codes of the photos differ, and its maximum.
    decision : {"", "same", "different", "unsure"}
    """

    left: str
    right: str
    left_path: str
    right_path: str
    left_in: str
    right_in: str
    kind: str
    value: int
    threshold: int
    decision: Decision = ""

    @property
    def images(self) -> frozenset[str]:
        """Both images, the key of a decision."""
        return frozenset((self.left, self.right))


_COLUMNS = tuple(field.name for field in fields(PhotoPair))


def pairs_csv(pairs: Iterable[PhotoPair]) -> str:
    """Return pairs as the text of ``pairs.csv``."""
    return as_csv(_COLUMNS, map(astuple, pairs))


def read_pairs(path: Path | str) -> list[PhotoPair]:
    """Return the pairs of a ``pairs.csv``, with or without decisions.

    Raises
    ------
    UsageError
        A column is missing or added, a row is incomplete, a decision is another word, or a pair occurs twice.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pairs.csv")
    ...     pair = PhotoPair("a.jpg", "b.jpg", "", "", "train", "test", "nearly_same", 2, 4, "same")
    ...     _ = path.write_text(pairs_csv([pair]))
    ...     drop_lists(read_pairs(path))
    (['a.jpg'], ['b.jpg'])
    """
    where = str(path)
    header, *rows = csv_rows(
        read_bytes(path, kind="pairs file"), UsageError, "The pairs cannot be read", where=where
    ) or [[]]
    if tuple(header) != _COLUMNS:
        raise UsageError(
            "The columns are not those of a pairs file", where=where, expected=", ".join(_COLUMNS),
            found=", ".join(header)[:200],
        )  # fmt: skip
    pairs: dict[frozenset[str], PhotoPair] = {}
    for number, row in enumerate(rows, start=2):
        pair = _pair(row, f"{where}, row {number}")
        if pair.images in pairs:
            raise UsageError("A pair occurs twice", where=f"{where}, row {number}", found=f"{pair.left}, {pair.right}")
        pairs[pair.images] = pair
    return list(pairs.values())


def _pair(row: list[str], where: str) -> PhotoPair:
    if len(row) != len(_COLUMNS):
        raise UsageError("A row has another number of cells than the header", where=where, found=f"{len(row)}")
    cells: dict[str, Any] = dict(zip(_COLUMNS, map(cell_text, row), strict=True))
    cells["decision"] = cells["decision"].strip().lower()
    if cells["decision"] not in DECISIONS:
        raise UsageError(
            "Unknown decision", where=f"{where}: decision",
            expected="same, different, unsure, or nothing", found=ascii(cells["decision"])[:80],
        )  # fmt: skip
    for name in ("value", "threshold"):
        if not cells[name].isdecimal():
            raise UsageError("The number of bits is invalid", where=f"{where}: {name}", found=ascii(cells[name])[:80])
        cells[name] = int(cells[name])
    return PhotoPair(**cells)


def pair_id(pair: PhotoPair) -> str:
    """Return the image id of a pair in a review; the order of its two images has no effect."""
    return f"pair:{sha256(chr(10).join(sorted(pair.images)).encode()).hexdigest()[:16]}"


def reviewed_pairs(pairs: Iterable[PhotoPair], standing: Mapping[tuple[str, str], Standing]) -> list[PhotoPair]:
    """Return pairs with the decisions of a review; a pair on which reviewers differ is unsure."""
    words = {image: each.verdict for (_, image), each in standing.items()}
    known: dict[str, Decision] = {word: word for word in DECISIONS}
    return [
        replace(pair, decision=known.get(word, "unsure")) if (word := words.get(pair_id(pair))) else pair
        for pair in pairs
    ]


def drop_lists(pairs: Iterable[PhotoPair]) -> tuple[list[str], list[str]]:
    """Return the images of each side in pairs with the decision ``same``: dropping either list removes the leak."""
    same = [pair for pair in pairs if pair.decision == "same"]
    return sorted({pair.left for pair in same}), sorted({pair.right for pair in same})


def judged_data(pairs: Iterable[PhotoPair]) -> dict[str, Any]:
    """Return the decisions on pairs by kind of evidence, with the share of ``same``, or None without decisions."""
    pairs = list(pairs)
    kinds: dict[str, Any] = {}
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        counts = {word: sum(pair.kind == kind and pair.decision == word for pair in pairs) for word in DECISIONS}
        judged = counts["same"] + counts["different"]
        kinds[kind] = {
            "same": counts["same"], "different": counts["different"], "unsure": counts["unsure"],
            "unjudged": counts[""], "precision": counts["same"] / judged if judged else None,
        }  # fmt: skip
    return kinds


def judged_lines(kinds: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the decisions for each kind of evidence."""
    lines = []
    for kind, counts in kinds.items():
        judged = counts["same"] + counts["different"]
        share = "none was judged: no precision" if not judged else f"precision {counts['same'] / judged:.1%}"
        rest = f"{counts['unsure']:,} unsure, {counts['unjudged']:,} not judged"
        lines.append(f"judged {kind}: {counts['same']:,} the same of {counted(judged, 'pair')} ({share}); {rest}")
    return lines
