"""Files of scores: ``.npz``, ``.npy`` with a separate file of labels, CSV or Parquet, read as arrays or columns.

Files may be hostile: pickles are rejected, and sizes are checked before reading.
"""

from __future__ import annotations

import csv
import re
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.core.canonical import sha256_of_bytes, sha256_of_file
from curation.core.columns import largest_text, text_columns, values_in
from curation.core.errors import CurationError, MissingFileError, PredictionError, UsageError
from curation.core.files import missing_path, open_binary
from curation.core.reading import read_plain
from curation.evaluation.class_scores import (
    SOFTMAX_TWICE,
    Background,
    ClassScores,
    Kind,
    PartSamples,
    ProtocolClasses,
    are_probabilities,
    class_scores,
    labels_of_names,
    numbering_doubt,
    require_same_labels,
    rows_of_part,
    score_table,
)
from curation.evaluation.problem import Floats, Int64s, Stray

if TYPE_CHECKING:
    import pyarrow

Array = npt.NDArray[Any]

LARGEST = 16 << 30
"""Most bytes of an unpacked array or table: more than 1,281,167 samples of 1,000 scores as doubles need."""
_LARGEST_TEXTS = 2 << 30
"""Most bytes of the texts of a table: names of images."""
_LARGE, _HIGHEST_RATIO = 256 << 20, 100
"""An array of an archive with more bytes than the first may be the second times its packed size at most."""
_LONGEST_HEADER, _LONGEST_ARRAY_HEADER = 1 << 22, 10_000
_DOUBLE = np.dtype(np.float64)
# OSError: the directory of an archive has wrong offsets. MemoryError: a header is nested too deeply. Arrow raises these
# too, and some others.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, RuntimeError, OverflowError, SyntaxError, OSError,
    tokenize.TokenError, MemoryError, LookupError, csv.Error,
)  # fmt: skip


class Keys(NamedTuple):
    """Names of columns or arrays given by the user; None for the usual names."""

    scores: str | None = None
    labels: str | None = None
    images: str | None = None


USUAL = Keys()
LABELS = ("label", "labels", "gt", "target", "targets")
PREDICTIONS = ("prediction", "predictions", "pred", "preds")
IMAGES = ("image", "images", "image_id", "image_ids", "path", "paths", "file_name", "image_location")
"""Usual names of arrays and columns."""


class ScoreColumns(NamedTuple):
    """Names of the columns or arrays of a file of scores, and a function that reads them.

    Attributes
    ----------
    names : tuple of str
        Names of arrays or columns.
    kind : {"table", "arrays", "alone"}
        CSV or Parquet; named arrays; one array without a name, which is called ``scores``.
    read : callable
        Takes names of numbers and names of texts, and returns an array for each: numbers of a table as doubles, texts
        as they are stored.
    """

    names: tuple[str, ...]
    kind: Literal["table", "arrays", "alone"]
    read: Callable[[Sequence[str], Sequence[str]], dict[str, Any]]

    def first(self, names: Sequence[str]) -> str | None:
        """Return the first of the names that the file has."""
        return next((name for name in names if name in self.names), None)


def open_columns(path: Path, suffixes: Sequence[str]) -> ScoreColumns:
    """Open a file of scores: the names of its columns or arrays, and a function that reads them.

    Parameters
    ----------
    suffixes : sequence of str
        Accepted suffixes among ``.npz``, ``.npy``, ``.csv``, ``.parquet``.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        The file is of another kind or damaged; reading it may raise this error too.
    """
    suffix = path.suffix.lower()
    if not path.is_file():
        raise missing_path("The scores file does not exist", path)
    if suffix not in suffixes:
        raise PredictionError(
            "Unsupported extension of a scores file",
            where=str(path),
            expected=", ".join(suffixes),
            found=suffix[:20] or "no suffix",
        )
    if suffix == ".npy":
        return ScoreColumns(("scores",), "alone", lambda _, __: {"scores": read_npy(path)})
    with readable(path):
        if suffix == ".npz":
            names = tuple(keys_of_npz(path))
            return ScoreColumns(names, "arrays", lambda numbers, texts: read_npz(path, (*numbers, *texts)))
        return _csv(path) if suffix == ".csv" else _parquet(path)


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Turn the errors of libraries about a damaged scores file into a `PredictionError`."""
    try:
        yield
    except CurationError:
        raise
    except Exception as error:
        if not isinstance(error, _DAMAGE) and not type(error).__module__.startswith("pyarrow"):
            raise
        raise PredictionError(
            "The scores file cannot be read",
            where=str(path),
            expected="arrays as numpy.save and numpy.savez write them, without objects; tables of numbers",
            found=f"{type(error).__name__}: {error}"[:300],
        ) from None


def _csv(path: Path) -> ScoreColumns:
    data = read_plain(path, kind="scores file")
    line = data[:_LONGEST_HEADER].split(b"\n", 1)[0]
    names = [name.strip() for name in next(csv.reader([line.decode("utf-8").rstrip("\r\n")]), [])]
    _require_distinct(names, path)

    def read(numbers: Sequence[str], texts: Sequence[str]) -> dict[str, Any]:
        import pyarrow
        from pyarrow import csv as arrow_csv

        types = dict.fromkeys(numbers, pyarrow.float64()) | dict.fromkeys(texts, pyarrow.string())
        with readable(path):
            table = arrow_csv.read_csv(
                pyarrow.BufferReader(data),
                read_options=arrow_csv.ReadOptions(use_threads=False, column_names=names, skip_rows=1),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types, include_columns=list(types), strings_can_be_null=False, null_values=[""]
                ),
            )
            return _of_table(table, numbers, texts, path)

    return ScoreColumns(tuple(names), "table", read)


def _parquet(path: Path) -> ScoreColumns:
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    names = list(file.schema_arrow.names)
    _require_distinct(names, path)
    groups = range(file.metadata.num_row_groups)
    size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
    if size <= LARGEST:
        size = max(size, 8 * sum(values_in(file, group) for group in groups))
    texts = 0
    if size <= LARGEST:
        folded = parquet.ParquetFile(path, read_dictionary=text_columns(file))
        texts = sum(largest_text(folded, group, text_columns(file))[0] for group in groups)
    if size > LARGEST or texts > _LARGEST_TEXTS:
        raise _too_large(size, str(path), texts)

    def read(numbers: Sequence[str], texts: Sequence[str]) -> dict[str, Any]:
        with readable(path):
            return _of_table(file.read(columns=[*numbers, *texts], use_threads=False), numbers, texts, path)

    return ScoreColumns(tuple(names), "table", read)


def _require_distinct(names: Sequence[str], path: Path) -> None:
    if len(set(names)) < len(names) or not names:
        raise PredictionError(
            "Duplicate column names" if names else "The table is empty",
            where=f"{path}: header",
            found=", ".join(names)[:200] or None,
        )


def _too_large(size: int, where: str, texts: int = 0) -> PredictionError:
    return PredictionError(
        "The file unpacks to far more bytes than scores and names of images need",
        where=where,
        expected=f"at most {LARGEST:,} bytes, {_LARGEST_TEXTS:,} bytes of texts, and {_HIGHEST_RATIO} times the "
        "packed size of an array",
        found=f"{texts:,} bytes of texts" if texts else f"{size:,} bytes",
    )


def _of_table(table: pyarrow.Table, numbers: Sequence[str], texts: Sequence[str], path: Path) -> dict[str, Any]:
    values: dict[str, Any] = {name: _numbers(table.column(name).combine_chunks(), name, path) for name in numbers}
    for name in texts:
        values[name] = ["" if cell is None else str(cell) for cell in table.column(name).to_pylist()]
    return values


def _numbers(column: Any, name: str, path: Path) -> Array:
    """Return a column as float64, shape (N,)."""
    from pyarrow import float64, types

    where = f"{path}: column {name}"
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise PredictionError("A score is missing", where=f"{where}, row {row + 1} of the data")
    if not types.is_floating(column.type) and not types.is_integer(column.type):
        raise PredictionError(
            "A column of scores does not hold numbers",
            where=where,
            expected="a column of numbers for each class; arrays of several scores belong in .npz",
            found=str(column.type)[:80],
        )
    return np.asarray(column.cast(float64()).to_numpy(zero_copy_only=False))


def read_npy(path: Path) -> Array:
    """Return the array of a ``.npy`` file.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        The array does not hold numbers or texts, is truncated, or is larger than `LARGEST`.
    """
    with _opened(path) as stream, readable(path):
        return _array(stream, str(path))


def read_npz(path: Path, names: Iterable[str]) -> dict[str, Array]:
    """Return the requested arrays of a ``.npz`` file that exist; others are not read.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        It is not an archive of arrays, or a requested array is invalid (see `read_npy`), is encrypted, occurs twice,
        or unpacks to more than a hundred times its packed size.
    """
    with _opened(path) as stream, readable(path), zipfile.ZipFile(stream) as archive:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            key = info.filename.removesuffix(".npy")
            if key in members:
                raise PredictionError("The archive holds an array twice", where=str(path), found=repr(key[:80]))
            members[key] = info
        return {name: _member(archive, members[name], f"{path}: {name}") for name in names if name in members}


def keys_of_npz(path: Path) -> list[str]:
    """Return the keys of a ``.npz`` file, sorted (see `read_npz` for the errors)."""
    with _opened(path) as stream, readable(path), zipfile.ZipFile(stream) as archive:
        return sorted(name.removesuffix(".npy") for name in archive.namelist())


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_binary(path, kind="scores file")
    except FileNotFoundError:
        raise missing_path("The scores file does not exist", path) from None
    except OSError as error:
        raise MissingFileError(f"The scores file cannot be read: {error.strerror}", where=str(path)) from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> Array:
    # LZMA may allocate gibibytes before it returns a byte.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise PredictionError(
            "An array is compressed by a method that numpy.savez does not use",
            where=where,
            expected="stored or deflated",
            found=f"method {info.compress_type}",
        )
    if info.file_size > max(_LARGE, _HIGHEST_RATIO * info.compress_size):
        raise _too_large(info.file_size, where)
    with archive.open(info) as stream:
        return _array(stream, where)


def _array(stream: IO[bytes], where: str) -> Array:
    array: Array = np.lib.format.read_array(stream, allow_pickle=False, max_header_size=_LONGEST_ARRAY_HEADER)
    if stream.read(1):
        raise ValueError("there are more bytes than the header says")
    dtype = array.dtype
    too_exact = dtype.kind == "f" and dtype.itemsize > _DOUBLE.itemsize
    if dtype.kind not in "fiuU" or too_exact or array.ndim not in (1, 2):
        raise PredictionError(
            "The array does not hold labels, scores or names",
            where=where,
            expected="one or two dimensions of integers, floats of at most 64 bits, or texts; no objects",
            found=f"shape {array.shape}, {dtype}"[:200],
        )
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    if dtype.kind == "U" and array.size and array.ravel(order="K").view(np.uint32).max(initial=0) > sys.maxunicode:
        raise ValueError("a text holds an invalid character")
    return array


def unlike_precision(stored: Mapping[str, tuple[str, Floats]]) -> str:
    """Return a note on compared scores that are stored with different numbers of digits, or "".

    Parameters
    ----------
    stored : mapping of str to (str, ndarray of float64)
        By name, the type in the file, and the scores. Text counts as ``float64``.
    """
    rounded = {name: np.dtype(kind) for name, (kind, _) in stored.items() if np.dtype(kind).kind == "f"}
    fewest = min(rounded.values(), key=lambda dtype: dtype.itemsize, default=_DOUBLE)
    with np.errstate(over="ignore"):
        others = [
            name
            for name, (_, values) in stored.items()
            if not np.array_equal(values.astype(fewest).astype(np.float64), values, equal_nan=True)
        ]
    if not others:
        return ""
    few = ", ".join(name for name, kind in rounded.items() if kind == fewest)
    return (
        f"scores of {few} are stored as {fewest}, those of {', '.join(others)} with more digits: scores that were "
        "equal before rounding differ here, which changes AUROC, AUPR and FPR95; store all in one type"
    )


SCORE_ARRAYS = ("scores", "logits", "probabilities")
PREFIXES = ("score_", "logit_", "probability_", "")
_KINDS: dict[str, Kind] = dict.fromkeys(("logits", "logit_"), "logits")
_KINDS |= dict.fromkeys(("probabilities", "probability_"), "probabilities")


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Unchecked content of a file of scores.

    Attributes
    ----------
    scores : ndarray, shape (N, C)
        The column ``background`` of a table comes last.
    labels : ndarray, or None
    images : list of str, or None
    name : str
        Name of the array or score columns, which indicates their kind: ``logits``, ``score_``, a class.
    has_background : bool
        Whether a table has a column ``background``.
    unused : tuple of str
        Columns of a table that are not used.
    """

    scores: Array
    labels: Array | None = None
    images: list[str] | None = None
    name: str = ""
    has_background: bool = False
    unused: tuple[str, ...] = ()


def read_score_table(path: Path, keys: Keys, classes: Sequence[str] | None = None) -> ScoreTable:
    """Return the scores of a ``.npz``, ``.npy``, ``.csv`` or ``.parquet`` file.

    The scores are the array called ``scores``, ``logits`` or ``probabilities``. In a table they are the columns named
    after the `classes`, else columns that are numbered without a gap (``score_0``, ``logit_0``, ``probability_0`` or
    ``0``, …), and a column ``background``.

    Raises
    ------
    PredictionError
        The file cannot be read, has no such columns, or has empty cells or texts among the scores.
    """
    columns = open_columns(path, (".npz", ".npy", ".csv", ".parquet"))
    if columns.kind == "alone":
        keys = Keys()
    for key in (keys.labels, keys.images):
        if key is not None and key not in columns.names:
            raise _no_column(f"No column or array is named {key[:80]}", columns, path)
    label = keys.labels or columns.first((*LABELS, "class"))
    image = keys.images or columns.first(IMAGES)
    texts = [name for name in (label, image) if name is not None]
    rest = [name for name in columns.names if name not in texts]
    scores, kind = _score_columns(columns, rest, keys.scores, classes, path)
    background = ("background",) if columns.kind == "table" and "background" in rest else ()
    cells = columns.read((*scores, *background), texts)
    values = [cells[name] for name in (*scores, *background)]
    as_texts = {name: np.array(cells[name], np.str_) if columns.kind == "table" else cells[name] for name in texts}
    return ScoreTable(
        scores=np.column_stack(values) if columns.kind == "table" else values[0],
        labels=None if label is None else as_texts[label],
        images=None if image is None else list(map(str, np.asarray(cells[image]).tolist())),
        name=kind,
        has_background=bool(background),
        unused=() if columns.kind != "table" else tuple(name for name in rest if name not in {*scores, *background}),
    )


def _score_columns(
    columns: ScoreColumns, names: Sequence[str], requested: str | None, classes: Sequence[str] | None, path: Path
) -> tuple[tuple[str, ...], str]:
    """Return the columns or array of scores, and the name that indicates their kind."""
    if columns.kind != "table":
        array = next(
            (name for name in ((requested,) if requested is not None else SCORE_ARRAYS) if name in names), None
        )
        if array is None:
            raise _no_column("The file has no scores", columns, path)
        return (array,), array
    if requested is None and classes and set(classes) <= set(names):
        return tuple(classes), ""
    if requested is None and classes and (class_columns := [name for name in classes if name in names]):
        lacking = [name for name in classes if name not in names]
        raise _no_column(
            f"The file has columns of {len(class_columns)} of {len(classes)} known classes", columns, path, lacking
        )
    for prefix in (requested,) if requested is not None else PREFIXES:
        pattern = re.compile(re.escape(prefix) + r"(0|[1-9][0-9]{0,5})", re.ASCII)
        numbers = sorted(int(match.group(1)) for name in names if (match := pattern.fullmatch(name)))
        if numbers:
            if numbers != list(range(len(numbers))):
                gap = next(number for number in range(len(numbers) + 1) if number not in set(numbers))
                raise _no_column(f"The numbered columns of scores lack {prefix}{gap}", columns, path)
            return tuple(f"{prefix}{number}" for number in numbers), prefix
    raise _no_column("The file has no scores", columns, path)


def _no_column(message: str, columns: ScoreColumns, path: Path, lacking: Sequence[str] = ()) -> PredictionError:
    return PredictionError(
        message,
        where=str(path) if columns.kind != "table" else f"{path}: header",
        expected=f"columns {', '.join(lacking)} too"[:300]
        if lacking
        else f"an array {', '.join(SCORE_ARRAYS)}; columns score_0, score_1, ..., or one a class of a manifest",
        found=", ".join(columns.names)[:200] or "nothing",
        hint="--key score=NAME names the array of scores, or the prefix of its numbered columns",
    )


@dataclass(frozen=True, slots=True)
class ReadScores:
    """Scores of a classifier on a part, and the record of their file in a result."""

    scores: ClassScores
    file: dict[str, Any]


def read_scores(
    path: Path,
    *,
    kind: Kind | Literal["auto"] = "auto",
    background: Background = "none",
    keys: Keys = USUAL,
    stray: Stray = "error",
    labels: Path | None = None,
    classes: ProtocolClasses | None = None,
    part: PartSamples | None = None,
) -> ReadScores:
    """Return the scores of a file with their labels.

    Parameters
    ----------
    path : Path
        ``.npz`` with arrays ``gt`` and ``scores`` or ``logits``, as openset-imagenet writes them; ``.npy``; ``.csv`` or
        ``.parquet`` (see `curation.evaluation.score_files.read_score_table`).
    kind : {"auto", "logits", "probabilities", "real"}
        ``auto``: by the name of the array or column (``logits``, ``logit_0``, ``probabilities``); else probabilities
        if every row lies in [0, 1] and sums to 1; else an error.
    background : {"none", "last", "removed"}
        A table with a column ``background`` is read as ``last``.
    keys : Keys
        Names of arrays or columns, if they are not the usual ones.
    stray : {"error", "drop"}
        What to do with images that the part does not list.
    labels : Path, optional
        ``.npy`` of labels, in place of those in the file.
    classes : ProtocolClasses, optional
        Classes of a manifest: labels and columns may then be class names.
    part : PartSamples, optional
        Exactly the samples that the file must have. Rows with image names are sorted into its order; rows without names
        must have its order. Its labels are used; labels in the file must agree.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        The file is invalid, or does not fit labels, classes or part.
    UsageError
        Labels are missing.
    """
    classes = classes or (None if part is None else part.classes)
    raw = read_score_table(path, keys, None if classes is None else classes.known)
    if labels is not None:
        raw = replace(raw, labels=read_npy(labels))
    where = str(path)
    raw = replace(raw, scores=score_table(raw.scores, where))
    n = len(raw.scores)
    for subject, column in {"labels": raw.labels, "image names": raw.images}.items():
        if column is not None and np.shape(column) != (n,):
            message = f"The numbers of {subject} and of rows of scores differ"
            raise PredictionError(message, where=where, expected=f"shape ({n},)", found=f"shape {np.shape(column)}")
    rows, unmatched = (np.arange(n), 0)
    if part is not None:
        rows, unmatched = rows_of_part(raw.images, n, part, where, stray)
    table = raw.scores if np.array_equal(rows, np.arange(n)) else raw.scores[rows]
    numbers, labels_from = _labels(raw, rows, classes, part, where)
    scores = class_scores(
        numbers,
        table,
        kind=_kind(kind, raw, where),
        background="last" if raw.has_background else background,
        classes=None if classes is None else classes.known,
        where=where,
    )
    reported = {
        "left out: images that are not in the part": unmatched,
        "columns that play no part": len(raw.unused),
        **scores.reported,
    }
    file = {
        "name": path.name,
        "sha256": sha256_of_file(path),
        "rows": n,
        "kind": scores.kind,
        "labels_from": labels_from if labels is None or labels_from != "file" else labels.name,
        # Labels in the order of the samples: without a manifest, they alone identify the test set.
        "labels_sha256": sha256_of_bytes(scores.labels.astype("<i8").tobytes()),
        "reported": {reason: count for reason, count in reported.items() if count},
    }
    is_softmax = scores.kind == "logits" and are_probabilities(table)
    doubt = SOFTMAX_TWICE if is_softmax else numbering_doubt(scores.answer[scores.known], scores.labels[scores.known])
    return ReadScores(scores, file | ({"doubt": doubt} if doubt else {}))


def _labels(
    raw: ScoreTable, rows: Int64s, classes: ProtocolClasses | None, part: PartSamples | None, where: str
) -> tuple[Array, str]:
    """Return the label of each row, and where it comes from."""
    numbers = None if raw.labels is None else _parsed_labels(raw.labels[rows], classes, where)
    if part is not None and part.labels is not None:
        if numbers is not None:
            require_same_labels(numbers, part.labels, part.images, where, len(part.classes.known))
        return part.labels, f"part {part.name}"
    if numbers is None:
        raise UsageError(
            "The file has no labels",
            where=where,
            expected="a column or array of labels, or a part of a manifest with known classes",
            hint="--key label=NAME names them in the file; --labels FILE.npy; or "
            + ("--manifest MANIFEST " if classes is None else "")
            + "--part PART, with --truth PATH if the sources were moved since the manifest was built",
        )
    return numbers, "file"


def _parsed_labels(labels: Array, classes: ProtocolClasses | None, where: str) -> Array:
    """Return the labels of a file as numbers; they may be class names."""
    if labels.dtype.kind != "U":
        return labels
    texts = [str(text).strip() for text in labels.tolist()]
    if classes is not None and texts and all(text in classes.labels for text in texts):
        return labels_of_names(texts, classes, where)
    numbers = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        try:
            # Python would read 1_0 as ten.
            numbers[row] = float("" if "_" in text else text) if len(text) <= 20 else np.nan
        except ValueError:
            if classes is not None:
                labels_of_names(texts, classes, where)
            raise PredictionError(
                "A label is not a number",
                where=f"{where}: row {row}",
                expected="0, 1, ... for a known class, -1 (negative) or -2 (unknown)",
                found=repr(text[:80]),
                hint="--manifest MANIFEST gives each class name its label",
            ) from None
    return numbers


def _kind(requested: Kind | Literal["auto"], raw: ScoreTable, where: str) -> Kind:
    if requested != "auto":
        return requested
    if raw.name in _KINDS:
        return _KINDS[raw.name]
    if np.isnan(raw.scores).any():
        return "real"
    if are_probabilities(raw.scores):
        return "probabilities"
    raise PredictionError(
        "The file does not say what kind of scores it holds, and they are not probabilities that sum to 1",
        where=where,
        expected="--kind=logits, --kind=probabilities or --kind=real",
        hint="--kind logits applies softmax; --kind probabilities --background removed is for probabilities "
        "without their background column",
    )
