"""Scores, labels and image names from CSV and Parquet tables, a row a sample."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from curation.errors import PredictionError
from curation.storage import open_binary

if TYPE_CHECKING:
    import pyarrow

LABEL_COLUMNS = ("label", "labels", "gt", "target", "class")
ORIGIN_COLUMN = "origin"
IMAGE_COLUMNS = ("image", "image_id", "path", "file_name")
LIST_COLUMNS = ("scores", "logits", "probabilities")
PREFIXES = ("score_", "logit_", "probability_", "")
BACKGROUND_COLUMN = "background"

_LARGEST = 16 << 30
_LONGEST_HEADER = 1 << 22


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The columns of a table that matter.

    Attributes
    ----------
    scores : ndarray of float64, shape (N, C)
        A column called ``background`` stands last.
    labels, images, origins : list of str, or None
    name : str
        Of the score column or columns, for what it says of their kind: ``logits``, ``score_``, a class.
    has_background : bool
    unused : tuple of str
        Columns that play no part.
    """

    scores: npt.NDArray[np.float64]
    labels: list[str] | None
    images: list[str] | None
    origins: list[str] | None
    name: str
    has_background: bool
    unused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Roles:
    scores: tuple[str, ...]
    label: str | None
    image: str | None
    origin: str | None
    name: str
    has_background: bool

    @property
    def texts(self) -> list[str]:
        """Columns that are read as texts."""
        return [name for name in (self.label, self.image, self.origin) if name is not None]


@dataclass(frozen=True, slots=True)
class Keys:
    """Names of columns or arrays that the user gave; None for the usual ones."""

    scores: str | None = None
    labels: str | None = None
    images: str | None = None


def read_score_table(path: Path, keys: Keys, classes: Sequence[str] | None = None) -> ScoreTable:
    """Return the scores of a ``.csv`` or ``.parquet`` table.

    Score columns are those called like the `classes`; else one list column (Parquet) called ``scores``, ``logits`` or
    ``probabilities``; else numbered ones, ``score_0``, ``logit_0``, ``probability_0`` or ``0`` and so on without a gap;
    and ``background``. A column ``origin`` names each sample's original class, also of negative and unknown ones.

    Raises
    ------
    PredictionError
        The table cannot be read, has no such columns, or has empty cells or texts among the scores.
    """
    import pyarrow

    try:
        return (
            _parquet(path, keys, classes)
            if path.suffix.lower() == ".parquet"
            else _delimited(path, keys, classes)
        )
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise PredictionError(
            "The table of scores cannot be read",
            where=str(path),
            expected="numbers in every score column" if path.suffix.lower() == ".csv" else "a Parquet table",
            found=str(error)[:300],
        ) from None


def _delimited(path: Path, keys: Keys, classes: Sequence[str] | None) -> ScoreTable:
    import pyarrow
    from pyarrow import csv as arrow_csv

    with open_binary(path, kind="table of scores") as stream:
        line = stream.readline(_LONGEST_HEADER)
    names = next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")]), [])
    _require_distinct(names, path)
    roles = _roles(names, (), keys, classes, path)
    types = dict.fromkeys(roles.scores, pyarrow.float64())
    types |= dict.fromkeys(roles.texts, pyarrow.string())
    table = arrow_csv.read_csv(
        path,
        read_options=arrow_csv.ReadOptions(use_threads=False, column_names=names, skip_rows=1),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, include_columns=list(types), strings_can_be_null=False, null_values=[""]
        ),
    )
    return _built(table, names, roles, path)


def _parquet(path: Path, keys: Keys, classes: Sequence[str] | None) -> ScoreTable:
    from pyarrow import parquet, types

    file = parquet.ParquetFile(path)
    groups = range(file.metadata.num_row_groups)
    size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
    names = list(file.schema_arrow.names)
    _require_distinct(names, path)
    lists = tuple(
        field.name
        for field in file.schema_arrow
        if types.is_list(field.type)
        or types.is_large_list(field.type)
        or types.is_fixed_size_list(field.type)
    )
    roles = _roles(names, lists, keys, classes, path)
    if size > _LARGEST:
        raise PredictionError(
            "The table is too large",
            where=str(path),
            expected=f"at most {_LARGEST:,} bytes",
            found=f"{size:,}",
        )
    wanted = [*roles.scores, *roles.texts]
    return _built(file.read(columns=wanted, use_threads=False), names, roles, path)


def _built(table: pyarrow.Table, names: Sequence[str], roles: _Roles, path: Path) -> ScoreTable:
    used = {*roles.scores, *roles.texts}
    columns = [_numbers(table.column(name).combine_chunks(), name, path) for name in roles.scores]
    texts = {name: [_text(cell) for cell in table.column(name).to_pylist()] for name in roles.texts}
    return ScoreTable(
        scores=np.column_stack(columns),
        labels=None if roles.label is None else texts[roles.label],
        images=None if roles.image is None else texts[roles.image],
        origins=None if roles.origin is None else texts[roles.origin],
        name=roles.name,
        has_background=roles.has_background,
        unused=tuple(name for name in names if name not in used),
    )


def _numbers(column: Any, name: str, path: Path) -> npt.NDArray[np.float64]:
    """Return a column as float64, shape (N,), or (N, C) for a column of lists."""
    import pyarrow
    from pyarrow import compute, types

    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise PredictionError("A score is missing", where=f"{path}: column {name}, row {row + 1} of the data")
    if not (types.is_floating(column.type) or types.is_integer(column.type)):
        lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
        flat = column.flatten()
        if len(set(lengths.tolist())) > 1 or flat.null_count:
            raise PredictionError(
                "The rows of scores are not of one length",
                where=f"{path}: column {name}",
                found=", ".join(str(length) for length in sorted(set(lengths.tolist()))[:5]),
            )
        column = flat
        numbers = column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        return np.asarray(numbers.reshape(len(lengths), -1 if len(lengths) else 1))
    return np.asarray(column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False))


def _roles(
    names: Sequence[str], lists: Sequence[str], keys: Keys, classes: Sequence[str] | None, path: Path
) -> _Roles:
    label = _chosen(names, keys.labels, LABEL_COLUMNS, path)
    image = _chosen(names, keys.images, IMAGE_COLUMNS, path)
    origin = ORIGIN_COLUMN if ORIGIN_COLUMN in names and ORIGIN_COLUMN not in (label, image) else None
    rest = [name for name in names if name not in (label, image, origin)]
    background = (BACKGROUND_COLUMN,) if BACKGROUND_COLUMN in rest else ()
    if keys.scores is None and classes and set(classes) <= set(rest):
        return _Roles((*classes, *background), label, image, origin, "", bool(background))
    for name in (keys.scores,) if keys.scores is not None else LIST_COLUMNS:
        if name in lists:
            return _Roles((name, *background), label, image, origin, name, bool(background))
    for prefix in (keys.scores,) if keys.scores is not None else PREFIXES:
        numbered = _numbered(rest, prefix, path)
        if numbered:
            return _Roles((*numbered, *background), label, image, origin, prefix, bool(background))
    raise PredictionError(
        "The table has no columns of scores",
        where=f"{path}: header",
        expected="columns score_0, score_1, ...; columns called like the classes of a manifest; or one list column "
        + " or ".join(LIST_COLUMNS),
        found=", ".join(names)[:200],
    )


def _numbered(names: Sequence[str], prefix: str, path: Path) -> tuple[str, ...]:
    pattern = re.compile(re.escape(prefix) + r"(0|[1-9][0-9]{0,5})", re.ASCII)
    numbers = sorted(int(match.group(1)) for name in names if (match := pattern.fullmatch(name)))
    if numbers and numbers != list(range(len(numbers))):
        gap = next(number for number in range(len(numbers) + 1) if number not in set(numbers))
        raise PredictionError(
            "The columns of scores have a gap",
            where=f"{path}: header",
            expected=f"{prefix}0 to {prefix}{numbers[-1]}",
            found=f"no {prefix}{gap}",
        )
    return tuple(f"{prefix}{number}" for number in numbers)


def _chosen(names: Sequence[str], asked: str | None, usual: Sequence[str], path: Path) -> str | None:
    if asked is not None and asked not in names:
        raise PredictionError(
            "The table has no such column",
            where=f"{path}: header",
            expected=", ".join(names)[:200],
            found=asked[:80],
        )
    return asked if asked is not None else next((name for name in usual if name in names), None)


def _require_distinct(names: Sequence[str], path: Path) -> None:
    if len(set(names)) < len(names) or not names:
        raise PredictionError(
            "Two columns of the table have one name" if names else "The table is empty",
            where=f"{path}: header",
            found=", ".join(names)[:200] or None,
        )


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)
