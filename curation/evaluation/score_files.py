"""Files of class scores: ``.npz``, ``.npy`` with labels beside it, CSV, Parquet.

Files may be hostile: there are no pickles, and sizes are checked before anything is read.
"""

from __future__ import annotations

import csv
import math
import re
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from curation.canonical import sha256_of_bytes, sha256_of_file
from curation.errors import MissingFileError, PredictionError, UsageError
from curation.evaluation.class_scores import (
    ROW_SUM_TOLERANCE,
    Background,
    ClassScores,
    Kind,
    PartSamples,
    ProtocolClasses,
    class_scores,
    labels_of_names,
    require_same_labels,
    rows_of_part,
)
from curation.evaluation.precision import read_delimited
from curation.evaluation.problem import Floats, Int64s, Stray
from curation.input_files import read_plain
from curation.parquet_limits import largest_text, text_columns, values_in
from curation.storage import open_binary

if TYPE_CHECKING:
    import pyarrow

Array = npt.NDArray[Any]

LARGEST = 8 << 30
"""Bytes of one array: twice 1,281,167 samples of 1,000 float16 scores, and less than what would exhaust a machine."""
_LARGE = 256 << 20
_HIGHEST_RATIO = 100
_LONGEST_NPY_HEADER = 10_000
_LAST_SIGN = 0x10FFFF
# OSError: a directory that lies about where its members begin. MemoryError: a header too deep to parse.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, RuntimeError, OverflowError, SyntaxError, OSError,
    tokenize.TokenError, MemoryError,
)  # fmt: skip


def read_npy(path: Path) -> Array:
    """Return the array of a ``.npy`` file.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is no array of numbers or texts, is truncated, or is larger than `LARGEST`.
    """
    with _opened(path) as stream:
        try:
            return _array(stream, path.stat().st_size, str(path))
        except _DAMAGE as error:
            _refuse(str(path), error)


def read_npz(path: Path, keys: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, Array]]:
    """Return the arrays of a ``.npz`` file that are asked for; others are not read.

    Parameters
    ----------
    keys : mapping of what to the keys it may have, in order of preference

    Returns
    -------
    dict
        What to (key, array), for what the file holds.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is no archive of arrays, or one of the arrays wanted is not as in `read_npy`, is encrypted, is there twice,
        or unpacks to a hundred times its packed size.
    """
    with _opened(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                members = _members(archive, path)
                found = {}
                for what, names in keys.items():
                    key = next((name for name in names if name in members), None)
                    if key is not None:
                        found[what] = key, _member(archive, members[key], f"{path}: {key}")
                return found
        except _DAMAGE as error:
            _refuse(str(path), error)


def keys_of_npz(path: Path) -> list[str]:
    """Return the keys of a ``.npz`` file, for messages."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(name.removesuffix(".npy") for name in archive.namelist())
    except _DAMAGE:
        return []


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_binary(path, kind="scores file")
    except FileNotFoundError:
        raise MissingFileError("The scores file does not exist", where=str(path)) from None
    except OSError as error:
        raise MissingFileError(f"The scores file cannot be read: {error.strerror}", where=str(path)) from None


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in members:
            raise PredictionError("The archive holds an array twice", where=str(path), found=repr(key[:80]))
        members[key] = info
    return members


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> Array:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # LZMA may ask for gibibytes before it gives out a byte.
        raise PredictionError(
            "An array is packed in a way that numpy.savez does not",
            where=where,
            expected="stored or deflated",
            found=f"method {info.compress_type}",
        )
    if info.file_size > _LARGE and info.file_size > _HIGHEST_RATIO * max(info.compress_size, 1):
        raise PredictionError(
            "An array unpacks to far more than scores would",
            where=where,
            expected=f"at most {_HIGHEST_RATIO} times its packed size",
            found=f"{info.compress_size:,} bytes that claim to be {info.file_size:,}",
        )
    with archive.open(info) as stream:
        return _array(stream, info.file_size, where)


def _array(stream: IO[bytes], size: int, where: str) -> Array:
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"format version {version}")
    shape, fortran, dtype = readers[version](stream, max_header_size=_LONGEST_NPY_HEADER)
    if dtype.hasobject or dtype.kind not in "fiuU" or len(shape) not in (1, 2):
        raise PredictionError(
            "The array does not hold labels, scores or names",
            where=where,
            expected="one or two dimensions of integers, floats or texts (objects are never unpickled)",
            found=f"shape {shape}, {dtype}"[:200],
        )
    declared = math.prod(shape) * dtype.itemsize
    present = size - stream.tell()
    if declared > LARGEST or declared != present:
        raise PredictionError(
            "The array is too large" if declared > LARGEST else "The array's size is not what its header says",
            where=where,
            expected=f"{declared:,} bytes" if declared <= LARGEST else f"at most {LARGEST:,} bytes",
            found=f"{present:,} bytes" if declared <= LARGEST else f"{declared:,} bytes",
        )
    data = stream.read(declared)
    # One byte beyond makes the archive check its checksum.
    if len(data) != declared or stream.read(1):
        raise EOFError("the array ends early")
    if dtype.kind == "U" and declared:
        # One number a character, in the order of bytes of the texts.
        codes = np.frombuffer(data, np.dtype("u4").newbyteorder(dtype.byteorder))
        if codes.max() > _LAST_SIGN:
            raise ValueError("a text holds what is no character")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _refuse(where: str, error: Exception) -> NoReturn:
    raise PredictionError(
        "The scores file cannot be read",
        where=where,
        expected="a .npy or .npz file as numpy.save and numpy.savez write them, without objects",
        found=f"{type(error).__name__}: {error}"[:200],
    ) from None


LABEL_COLUMNS = ("label", "labels", "gt", "target", "class")
ORIGIN_COLUMN = "origin"
IMAGE_COLUMNS = ("image", "image_id", "path", "file_name")
LIST_COLUMNS = ("scores", "logits", "probabilities")
PREFIXES = ("score_", "logit_", "probability_", "")
BACKGROUND_COLUMN = "background"

_LARGEST = 16 << 30
_LARGEST_TEXTS = 2 << 30
_MOST_VALUES = 1 << 31
"""A table of 1,281,167 images with 1,000 scores each, and room."""
_LONGEST_HEADER = 1 << 22


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """What a file holds, unchecked.

    Attributes
    ----------
    scores : ndarray, shape (N, C)
        A table's column called ``background`` stands last.
    labels, origins : ndarray, or None
    images : list of str, or None
    name : str
        Of the array, the score column or columns, for what it says of their kind: ``logits``, ``score_``, a class.
    has_background : bool
        Whether a table has such a column.
    unused : tuple of str
        Columns of a table that play no part.
    """

    scores: Array
    labels: Array | None = None
    images: list[str] | None = None
    origins: Array | None = None
    name: str = ""
    has_background: bool = False
    unused: tuple[str, ...] = ()


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
        return _parquet(path, keys, classes) if path.suffix.lower() == ".parquet" else _delimited(path, keys, classes)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise PredictionError(
            "The table of scores cannot be read",
            where=str(path),
            expected="numbers in every score column" if path.suffix.lower() == ".csv" else "a Parquet table",
            found=str(error)[:300],
        ) from None


def _delimited(path: Path, keys: Keys, classes: Sequence[str] | None) -> ScoreTable:
    data = read_plain(path, kind="table of scores")
    line = data[:_LONGEST_HEADER].split(b"\n", 1)[0]
    names = next(csv.reader([line.decode("utf-8").rstrip("\r\n")]), [])
    _require_distinct(names, path)
    roles = _roles(names, (), keys, classes, path)
    return _built(read_delimited(data, names, roles.scores, tuple(roles.texts), str(path)), names, roles, path)


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
        if types.is_list(field.type) or types.is_large_list(field.type) or types.is_fixed_size_list(field.type)
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
    folded = parquet.ParquetFile(path, read_dictionary=text_columns(file))
    values = sum(values_in(file, group) for group in groups)
    unfolded = (
        sum(largest_text(folded, group, text_columns(file))[0] for group in groups) if values <= _MOST_VALUES else 0
    )
    if values > _MOST_VALUES or unfolded > _LARGEST_TEXTS:
        raise PredictionError(
            "The table unfolds to more than scores and names of images do",
            where=str(path),
            expected=f"at most {_MOST_VALUES:,} values, and texts of {_LARGEST_TEXTS:,} bytes",
            found=f"{unfolded:,} bytes of texts" if unfolded else f"{values:,} values",
        )
    return _built(file.read(columns=wanted, use_threads=False), names, roles, path)


def _built(table: pyarrow.Table, names: Sequence[str], roles: _Roles, path: Path) -> ScoreTable:
    used = {*roles.scores, *roles.texts}
    columns = [_numbers(table.column(name).combine_chunks(), name, path) for name in roles.scores]

    def texts(name: str | None) -> list[str] | None:
        return None if name is None else [_text(cell) for cell in table.column(name).to_pylist()]

    labels, origins = texts(roles.label), texts(roles.origin)
    return ScoreTable(
        scores=np.column_stack(columns),
        labels=None if labels is None else np.array(labels, np.str_),
        images=texts(roles.image),
        origins=None if origins is None else np.array(origins, np.str_),
        name=roles.name,
        has_background=roles.has_background,
        unused=tuple(name for name in names if name not in used),
    )


def _numbers(column: Any, name: str, path: Path) -> Floats:
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


def _roles(names: Sequence[str], lists: Sequence[str], keys: Keys, classes: Sequence[str] | None, path: Path) -> _Roles:
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


SCORE_KEYS = ("scores", "probabilities", "logits")
LABEL_KEYS = ("gt", "labels", "label", "targets")
ORIGIN_KEYS = ("origin",)
IMAGE_KEYS = ("images", "image", "image_ids", "paths")
_KINDS: dict[str, Kind] = {
    "logits": "logits",
    "logit_": "logits",
    "probabilities": "probabilities",
    "probability_": "probabilities",
}


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """How to read score files.

    Attributes
    ----------
    kind : {"auto", "logits", "probabilities", "real"}
        ``auto``: what the array's or column's name says (``logits``, ``logit_0``, ``probabilities``); probabilities
        where every row lies in [0, 1] and sums to 1; else an error that asks.
    background : {"none", "last", "removed"}
        A table's column called ``background`` says ``last`` by itself.
    keys : Keys
        Names of arrays or columns, where they are not the usual ones.
    stray : {"error", "drop"}
        For images that the part does not list.
    """

    kind: Kind | Literal["auto"] = "auto"
    background: Background = "none"
    keys: Keys = field(default_factory=Keys)
    stray: Stray = "error"


@dataclass(frozen=True, slots=True)
class ReadScores:
    """Scores of one classifier on one part, with what is to be told about their file."""

    scores: ClassScores
    name: str
    sha256: str
    rows: int
    labels_from: str
    reported: dict[str, int]

    @property
    def file(self) -> dict[str, Any]:
        """What a result says about this input."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "rows": self.rows,
            "kind": self.scores.kind,
            "labels_from": self.labels_from,
            # Of the labels in the order of the samples: without a manifest, the only name that the test set has.
            "labels_sha256": sha256_of_bytes(self.scores.labels.astype("<i8").tobytes()),
            "reported": self.reported,
        }


def read_scores(
    path: Path,
    options: ScoreOptions | None = None,
    *,
    labels: Path | None = None,
    classes: ProtocolClasses | None = None,
    part: PartSamples | None = None,
) -> ReadScores:
    """Return the scores of a file with their labels.

    Parameters
    ----------
    path : Path
        ``.npz`` with arrays ``gt`` and ``scores`` or ``logits``, as openset-imagenet writes them, and where
        told ``origin``, each sample's original class; ``.npy``; ``.csv`` or ``.parquet`` (see
        `curation.evaluation.score_files.read_score_table`).
    labels : Path, optional
        ``.npy`` of labels, in place of those in the file.
    classes : ProtocolClasses, optional
        Of a manifest: labels may then be class names, and columns too.
    part : PartSamples, optional
        The samples that there must be, no more and no less. Rows with image names are brought into its order, others
        must stand in it. Its labels are taken; labels in the file must agree.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        The file is not what it should be, or does not fit to labels, classes or part.
    UsageError
        Labels are wanted and nothing tells them.
    """
    options = options or ScoreOptions()
    classes = classes or (None if part is None else part.classes)
    raw = _read(path, options, classes)
    if labels is not None:
        raw = replace(raw, labels=read_npy(labels))
    where = str(path)
    if raw.scores.ndim != 2 or not raw.scores.size:
        raise PredictionError(
            "The scores are no table with a row for each sample",
            where=where,
            expected="shape (N, C), N and C at least 1",
            found=f"shape {raw.scores.shape}",
        )
    _require_lengths(raw, where)
    rows, unmatched = (np.arange(len(raw.scores)), 0)
    if part is not None:
        rows, unmatched = rows_of_part(raw.images, len(raw.scores), part, where, options.stray)
    table = raw.scores if np.array_equal(rows, np.arange(len(raw.scores))) else raw.scores[rows]
    numbers, origin, told_by = _labels(raw, rows, classes, part, where)
    scores = class_scores(
        numbers,
        table,
        kind=_kind(options.kind, raw, where),
        background="last" if raw.has_background else options.background,
        classes=None if classes is None else classes.known,
        origin=origin,
        where=where,
    )
    reported = {
        "left out: images that are not in the part": unmatched,
        "columns that play no part": len(raw.unused),
        **scores.reported,
    }
    return ReadScores(
        scores,
        path.name,
        sha256_of_file(path),
        len(raw.scores),
        told_by if labels is None or told_by != "file" else labels.name,
        {reason: count for reason, count in reported.items() if count},
    )


def _read(path: Path, options: ScoreOptions, classes: ProtocolClasses | None) -> ScoreTable:
    if not path.is_file():
        raise MissingFileError("The scores file does not exist", where=str(path))
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _from_npz(path, options.keys)
    if suffix == ".npy":
        return ScoreTable(read_npy(path))
    if suffix in (".csv", ".parquet"):
        return read_score_table(path, options.keys, None if classes is None else classes.known)
    raise PredictionError(
        "Scores are not read from this kind of file",
        where=str(path),
        expected=".npz, .npy, .csv or .parquet",
        found=suffix[:20] or "no suffix",
    )


def _from_npz(path: Path, keys: Keys) -> ScoreTable:
    wanted = {
        "scores": SCORE_KEYS if keys.scores is None else (keys.scores,),
        "labels": LABEL_KEYS if keys.labels is None else (keys.labels,),
        "images": IMAGE_KEYS if keys.images is None else (keys.images,),
        "origins": ORIGIN_KEYS,
    }
    found = read_npz(path, wanted)
    for what, asked in (("scores", "scores"), ("labels", keys.labels), ("images", keys.images)):
        if asked is not None and what not in found:
            raise PredictionError(
                f"The archive has no array of {what}",
                where=str(path),
                expected=" or ".join(wanted[what]),
                found=", ".join(keys_of_npz(path))[:200] or "nothing",
                hint="--key score=NAME, --key label=NAME and --key image=NAME name the arrays",
            )
    name, scores = found.pop("scores")
    arrays = {what: array for what, (_, array) in found.items()}
    images = list(map(str, arrays["images"].tolist())) if "images" in arrays else None
    return ScoreTable(scores, arrays.get("labels"), images, arrays.get("origins"), name)


def _require_lengths(raw: ScoreTable, where: str) -> None:
    n = len(raw.scores)
    columns = {"labels": raw.labels, "image names": raw.images, "original classes": raw.origins}
    for what, column in columns.items():
        if column is not None and (len(column) != n or np.ndim(column) != 1):
            raise PredictionError(
                f"There are not as many {what} as rows of scores",
                where=where,
                expected=f"shape ({n},)",
                found=f"shape {np.shape(column)}",
            )


def _labels(
    raw: ScoreTable,
    rows: Int64s,
    classes: ProtocolClasses | None,
    part: PartSamples | None,
    where: str,
) -> tuple[Array, Int64s | None, str]:
    """Return label and original class of each row, and who tells them."""
    numbers, origin = None, None
    if raw.labels is not None:
        numbers, origin = _stated(raw.labels[rows], classes, where)
    if raw.origins is not None:
        origin = np.unique(raw.origins[rows], return_inverse=True)[1].astype(np.int64)
    if part is not None and part.labels is not None:
        if numbers is not None:
            require_same_labels(numbers, part, rows, where)
        return part.labels, part.origin, f"part {part.name}"
    if numbers is None:
        raise UsageError(
            "Nothing tells the labels of the samples",
            where=where,
            expected="a column or array of labels, or a part of a manifest whose classes are told",
            hint="--labels FILE.npy; or --manifest MANIFEST --part PART --truth PATH",
        )
    return numbers, origin, "file"


def _stated(labels: Array, classes: ProtocolClasses | None, where: str) -> tuple[Array, Int64s | None]:
    """Return the labels that a file states, as numbers or as class names."""
    if labels.dtype.kind != "U":
        return labels, None
    texts = [str(text).strip() for text in labels.tolist()]
    if classes is not None and texts and all(text in classes.labels for text in texts):
        return (*labels_of_names(texts, classes, where),)
    numbers = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        try:
            # Python would read 1_0 as ten.
            numbers[row] = float("" if "_" in text else text) if len(text) <= 20 else np.nan
        except ValueError:
            if classes is not None:
                labels_of_names(texts, classes, where)
            raise PredictionError(
                "A label is no number",
                where=f"{where}: row {row}",
                expected="0, 1, ... for a known class, -1 (negative) or -2 (unknown)",
                found=repr(text[:80]),
                hint="--manifest MANIFEST tells which label a class name has",
            ) from None
    return numbers, None


def _kind(asked: Kind | Literal["auto"], raw: ScoreTable, where: str) -> Kind:
    if asked != "auto":
        return asked
    if raw.name in _KINDS:
        return _KINDS[raw.name]
    if raw.scores.dtype.kind not in "fiu":
        return "real"
    totals = raw.scores.sum(axis=1, dtype=np.float64)
    if np.isnan(totals).any():
        return "real"
    if raw.scores.min() >= 0 and np.abs(totals - 1).max() <= ROW_SUM_TOLERANCE:
        return "probabilities"
    raise PredictionError(
        "The file does not say what kind of scores it holds, and they are no probabilities that sum to 1",
        where=where,
        expected="--kind logits, --kind probabilities or --kind real",
        hint="--kind logits applies softmax; with the background column taken away: --kind probabilities "
        "--background removed",
    )
