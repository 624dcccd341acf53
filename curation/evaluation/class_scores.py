"""Labels and class scores of an open-set classifier: checked, and matched with the samples of a manifest's part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from curation.core.errors import PredictionError, UsageError
from curation.evaluation.problem import LARGEST_SCORE, Bools, Floats, Int64s, Stray
from curation.sources.identity import ImageIndex
from curation.sources.imagenet import class_of_images, is_wnid, stem

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest
    from curation.sources.source import Source

NEGATIVE, UNKNOWN = -1, -2
"""Labels of samples without a known class: seen as negatives in training, or never seen."""

GROUPS: dict[str, int] = {"negative": NEGATIVE, "unknown": UNKNOWN}

Kind = Literal["logits", "probabilities", "real"]
KINDS: dict[str, str] = {
    "logits": "softmax over all columns is computed (in float64) and scored",
    "probabilities": "softmax outputs, scored as they are",
    "real": "any real scores (maximum logit, OpenMax, ...), scored as they are; confidence is undefined",
}
Background = Literal["none", "last", "removed"]
"""Whether the last column is the background class, or was removed after softmax."""

ROW_SUM_TOLERANCE = 0.01
_ROWS = 4096
"""Rows of a chunk, which limits the memory of a float64 copy."""
_FEWEST = 10
"""Fewest samples, in all and for an answer, from which the numbering of classes is guessed."""
_FLOATS = (np.float16, np.float32, np.float64)

Table = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Columns of the scores of N samples over K known classes, from which every measure is computed.

    Attributes
    ----------
    labels : ndarray of int64, shape (N,)
        0 to K-1 for a known class, -1 negative, -2 unknown.
    answer : ndarray of int64, shape (N,)
        Known class of the highest score; of equal ones the lowest.
    highest, target : ndarray of float64, shape (N,)
        Score of `answer`, and of the sample's own class (NaN where that is not known). Probabilities where `kind` is
        ``logits`` or ``probabilities``.
    background : ndarray of float64, shape (N,), or None
        Score of the background class.
    classes : tuple of str, length K
    kind : {"logits", "probabilities", "real"}
        Kind of the input scores.
    sums_to_one : bool
        Whether the scores of the known classes alone are a softmax (C = K): no background class, present or removed.
    reported : dict of str to int
        Changes on reading, with counts.
    """

    labels: Int64s
    answer: Int64s
    highest: Floats
    target: Floats
    background: Floats | None
    classes: tuple[str, ...]
    kind: Kind
    sums_to_one: bool
    reported: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def known(self) -> Bools:
        """Which samples are of a known class, shape (N,)."""
        return np.asarray(self.labels >= 0)

    @property
    def right(self) -> Bools:
        """Which samples have their own class as the answer, shape (N,)."""
        return np.asarray(self.answer == self.labels)

    def group(self, name: str) -> Bools:
        """Return which samples are ``negative`` or ``unknown``, shape (N,)."""
        return np.asarray(self.labels == GROUPS[name])


def class_scores(
    labels: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    kind: Kind = "real",
    background: Background = "none",
    classes: tuple[str, ...] | None = None,
    where: str = "scores",
) -> ClassScores:
    """Return checked labels and scores.

    Parameters
    ----------
    labels : array_like, shape (N,)
        Integers, or floats that are integers: 0 to K-1, -1, -2. With ``background="last"`` K is a negative too, as the
        official training code numbers it; such labels are counted in `ClassScores.reported`.
    scores : array_like, shape (N, C)
        C = K + 1 with ``background="last"``, else K.
    kind : {"real", "logits", "probabilities"}
        See `KINDS`.
    background : {"none", "last", "removed"}
    classes : tuple of str, length K, optional
        Default ``("0", "1", ...)``.
    where : str
        Name of the input in messages.

    Raises
    ------
    PredictionError
        Shapes do not match; a score is NaN or not of its kind; a label is not an integer or out of range.
    """
    table = score_table(scores, where)
    n_classes = table.shape[1] - (background == "last")
    label_array = np.asarray(labels)
    if label_array.shape != (len(table),) or n_classes < 1 or len(classes or range(n_classes)) != n_classes:
        n_columns = "at least one column" if classes is None else f"{len(classes)} columns"
        raise PredictionError(
            "Labels, classes and scores do not fit together",
            where=where,
            expected=f"{len(table)} labels, {n_columns}" + (" and the background" if background == "last" else ""),
            found=f"labels of shape {label_array.shape}, {table.shape[1]} columns",
            hint="--background last: the last column is the background class"
            if classes and table.shape[1] == len(classes) + 1
            else "keep a column for each known class, in the order of the labels",
        )
    numbers, renamed = _checked_labels(label_array, n_classes, background, where)
    answer = table[:, :n_classes].argmax(axis=1)
    rows = np.arange(len(table))
    columns = {
        "highest": table[rows, answer].astype(np.float64),
        "target": table[rows, np.maximum(numbers, 0)].astype(np.float64),
    }
    if background == "last":
        columns["background"] = table[:, -1].astype(np.float64)
    for message, wrong, expected, values, hint in _faults(table, columns, kind, background):
        if wrong.any():
            row = int(np.argmax(wrong))
            example = f"{float(values[row]):.4g}; such rows: {int(wrong.sum())}"
            raise PredictionError(message, where=f"{where}: row {row}", expected=expected, found=example, hint=hint)
    if kind == "logits":
        columns = _softmax(table, columns)
    columns["target"][numbers < 0] = np.nan
    return ClassScores(
        labels=numbers,
        answer=answer.astype(np.int64),
        highest=columns["highest"],
        target=columns["target"],
        background=columns.get("background"),
        classes=classes or tuple(str(number) for number in range(n_classes)),
        kind=kind,
        sums_to_one=background == "none",
        reported={"labels K taken as negative (the background's number)": renamed} if renamed else {},
    )


def score_table(scores: npt.ArrayLike, where: str) -> Table:
    """Return scores as a table of floats, a row a sample; raise `PredictionError` for anything else."""
    try:
        table = np.asarray(scores)
    except ValueError:
        table = np.empty(0, object)
    if table.ndim != 2 or table.dtype.kind not in "fiu" or not table.size:
        raise PredictionError(
            "Scores must be a table of numbers, a row a sample, a column a class",
            where=where,
            expected="shape (N, C), at least one row and column",
            found=f"shape {table.shape}, {table.dtype}",
        )
    return table if table.dtype in _FLOATS else table.astype(np.float64)


SOFTMAX_TWICE = "the logits are probabilities already (each row lies in [0, 1] and sums to 1): softmax is applied twice"


def are_probabilities(scores: npt.NDArray[Any]) -> bool:
    """Return whether every row of several columns lies in [0, 1] and sums to 1, as softmax leaves it."""
    return bool(scores.min() >= 0 and np.abs(scores.sum(axis=1, dtype=np.float64) - 1).max() <= ROW_SUM_TOLERANCE)


def _checked_labels(labels: npt.NDArray[Any], n_classes: int, background: Background, where: str) -> tuple[Int64s, int]:
    numbers = labels.astype(np.float64) if labels.dtype.kind in "fiu" else np.full(labels.shape, np.nan)
    as_background = np.asarray((numbers == n_classes) & (background == "last"))
    numbers = np.where(as_background, NEGATIVE, numbers)
    wrong = ~((numbers == np.floor(numbers)) & (numbers >= UNKNOWN) & (numbers < n_classes))
    if wrong.any():
        row = int(np.argmax(wrong))
        hint = "no label is 0: they seem to count from 1"
        if (numbers == 0).any():
            hint = "the label of the background class is -1, where the scores have no column of it"
        raise PredictionError(
            "Label out of range",
            where=f"{where}: row {row}",
            expected=f"0 to {n_classes - 1}, -1 (negative) or -2 (unknown)",
            found=str(labels[row])[:40],
            hint=hint if numbers[row] == n_classes else None,
        )
    return numbers.astype(np.int64), int(as_background.sum())


def _faults(
    table: Table, columns: dict[str, Floats], kind: Kind, background: Background
) -> Iterator[tuple[str, Bools, str, Any, str | None]]:
    """Yield the message of each possible problem of scores, its rows, the expected and actual values, and a hint."""
    highest = columns["highest"]
    last = columns.get("background", highest)
    # argmax stops at the first NaN of a row: the highest score is NaN wherever the row holds one.
    yield "A score is not a number", np.isnan(highest) | np.isnan(last), "numbers in every column", highest, None
    endless = ~np.isfinite(highest) | (last == np.inf)
    yield "The highest score of a sample is infinite", endless, "a finite number", highest, None
    if kind == "real":
        beyond = np.any([(np.abs(column) > LARGEST_SCORE) & (column != -np.inf) for column in columns.values()], axis=0)
        hint = "minus infinity excludes a class"
        yield "A score is too large", beyond, f"-{LARGEST_SCORE:g} to {LARGEST_SCORE:g}", highest, hint
    if kind == "probabilities":
        hint = "--kind=logits applies softmax; --kind=real takes any scores, without confidence"
        lowest = table.min(axis=1)
        outside = (highest > 1 + 1e-6) | (last > 1 + 1e-6) | (lowest < 0)
        yield "A probability lies outside [0, 1]", outside, "0 to 1", np.where(lowest < 0, lowest, highest), hint
        totals = table.sum(axis=1, dtype=np.float64)
        wrong = totals > 1 + ROW_SUM_TOLERANCE
        if background != "removed":
            wrong |= totals < 1 - ROW_SUM_TOLERANCE
            hint += "; --background=removed: a background column was removed after softmax"
        limit = "at most 1" if background == "removed" else "1"
        yield "The probabilities of a sample do not sum to 1", wrong, f"sums of {limit}", totals, hint


def _softmax(table: Table, columns: dict[str, Floats]) -> dict[str, Floats]:
    """Return the softmax of some entries of each row, over all columns of the table."""
    peak = np.maximum(columns["highest"], columns.get("background", columns["highest"]))
    total = np.empty(len(table))
    # A gap beyond the largest float is minus infinity, whose exponential is the 0 that it should be.
    with np.errstate(over="ignore"):
        for start in range(0, len(table), _ROWS):
            rows = slice(start, start + _ROWS)
            total[rows] = np.exp(table[rows].astype(np.float64) - peak[rows, None]).sum(axis=1)
        return {name: np.exp(column - peak) / total for name, column in columns.items()}


@dataclass(frozen=True, slots=True)
class ProtocolClasses:
    """The classes of a protocol.

    Attributes
    ----------
    known : tuple of str
        In label order.
    labels : mapping of str to int
        Label of each class by name, -1 for negative, -2 for unknown ones.
    """

    known: tuple[str, ...]
    labels: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PartSamples:
    """The samples of a part in list order.

    Attributes
    ----------
    name : str
    images : tuple of str
        Ids without namespace.
    classes : ProtocolClasses
    labels : ndarray of int64, shape (N,), or None
        None if neither the names of images nor the truth have the classes.
    """

    name: str
    images: tuple[str, ...]
    classes: ProtocolClasses
    labels: Int64s | None


def protocol_classes(manifest: Manifest) -> ProtocolClasses:
    """Return the classes of a manifest of open-set classification; other roles of classes are a `UsageError`."""
    entries = manifest.header.classes
    others = [entry for entry in entries if entry.role not in ("known", *GROUPS)]
    known = sorted((entry for entry in entries if entry.role == "known"), key=lambda entry: entry.index)
    first = known[0].index if known else 0
    if others or not known or [entry.index - first for entry in known] != list(range(len(known))):
        raise UsageError(
            "Not a manifest of open-set classification",
            where=f"{manifest.header.name} {manifest.header.version}",
            expected="classes known (numbered one after another), negative and unknown",
            found=", ".join(f"{entry.name} {entry.role} {entry.index}" for entry in (others or known)[:3]),
        )
    return ProtocolClasses(
        known=tuple(entry.name for entry in known),
        labels={entry.name: entry.index - first if entry.role == "known" else GROUPS[entry.role] for entry in entries},
    )


def part_samples(manifest: Manifest, part: str, truth: Path | None = None) -> PartSamples:
    """Return the samples of a part.

    Parameters
    ----------
    truth : Path, optional
        A dataset root or a file with the class of each image (see `curation.sources.opening.open_path`); not needed
        if all images have names such as ``n02088632_3640``, which contain their class, or if the manifest remembers its
        sources.

    Raises
    ------
    ManifestError, MissingListError, SourceError
        See `curation.manifest.views.locate_images` and `curation.sources.opening.open_path`.
    UsageError
        The manifest is not one of open-set classification.
    PredictionError
        The class of an image is not in the manifest.
    """
    classes = protocol_classes(manifest)
    images = tuple(image.partition(":")[2] for image in manifest.ids(part))
    # Training images are named after their class.
    names = _classes_by_name(images)
    if names is None:
        names = _classes_by_truth(manifest, part, truth) if truth is not None else _classes_remembered(manifest, part)
    if names is None:
        return PartSamples(part, images, classes, None)
    return PartSamples(part, images, classes, labels_of_names(names, classes, f"part {part}"))


def labels_of_names(names: Sequence[str], classes: ProtocolClasses, where: str) -> Int64s:
    """Return the label of each sample from the name of its class."""
    for row, name in enumerate(names):
        if name not in classes.labels:
            raise PredictionError(
                "Unknown class of a sample",
                where=f"{where}: row {row}",
                expected=f"one of its {len(classes.labels)} classes",
                found=repr(name[:80]),
            )
    return np.array([classes.labels[name] for name in names], np.int64)


def rows_of_part(
    images: Sequence[str] | None, n: int, part: PartSamples, where: str, stray: Stray = "error"
) -> tuple[Int64s, int]:
    """Return the row of each image of a part in a file, and the number of rows that belong to no image of it.

    Parameters
    ----------
    images : sequence of str, length n, or None
        Ids, file names or paths; without them, the rows have the part's order.

    Raises
    ------
    PredictionError
        See `rows_by_name`; or, without names, the number of rows is not that of the images.
    """
    if images is None:
        if n != len(part.images):
            raise PredictionError(
                "Wrong number of rows for the part",
                where=where,
                expected=f"{len(part.images)} rows, in the order of part {part.name}",
                found=str(n),
                hint="add image names (column or array 'image'), or --part PART of these images",
            )
        return np.arange(n), 0
    names = [native_name(text) for text in images]
    if any("/" in image for image in part.images):
        # If ids are paths, the shorter path is the end of the longer one.
        paths = [re.sub(r"^[a-z][a-z0-9_]+:", "", text) for text in images]
        positions = ImageIndex(part.images, part.images).resolve(names=paths).position.tolist()
        names = [part.images[row] if row >= 0 else path for row, path in zip(positions, paths, strict=True)]
    return rows_by_name(names, part.images, where, f"part {part.name}", stray)


def rows_by_name(
    file_names: Sequence[str], list_names: Sequence[str], where: str, owner: str, stray: Stray
) -> tuple[Int64s, int]:
    """Return the row of a file for each name of a list, and the number of rows that the list does not name.

    Parameters
    ----------
    owner : str
        The owner of the list, for messages.

    Raises
    ------
    PredictionError
        The file has a listed name twice or lacks it; or it has another name, unless `stray` drops it.
    """
    matched = set(list_names)
    row_of: dict[str, int] = {}
    strangers = [row for row, name in enumerate(file_names) if name not in matched]
    for row, name in enumerate(file_names):
        if name in matched and row_of.setdefault(name, row) != row:
            raise PredictionError("Duplicate image", where=f"{where}: rows {row_of[name]} and {row}", found=name[:120])
    rows = np.array([row_of.get(name, -1) for name in list_names], np.int64)
    expected = f"the {len(rows):,} images of {owner}"
    if (missing := rows < 0).any():
        first = list_names[int(np.argmax(missing))][:120]
        others = f"; {len(strangers):,} others, first {file_names[strangers[0]][:120]}" if strangers else ""
        raise PredictionError(
            "Images have no scores",
            where=where,
            expected=expected,
            found=f"{int(missing.sum()):,} missing, first {first}{others}",
        )
    if strangers and stray == "error":
        raise PredictionError(
            "Images are not in the list",
            where=f"{where}: row {strangers[0]}, {file_names[strangers[0]][:120]}",
            expected=expected,
            found=f"{len(strangers):,} other images",
            hint="--on-error stray=drop leaves them out and reports their number",
        )
    return rows, len(strangers)


def require_same_labels(
    file_labels: npt.NDArray[Any], list_labels: Int64s, images: Sequence[str], where: str, n_known: int | None = None
) -> None:
    """Raise `PredictionError` if labels of a file differ from those of the list; the number of classes is -1."""
    wrong: Bools = np.asarray((file_labels != list_labels) & ~((file_labels == n_known) & (list_labels == NEGATIVE)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise PredictionError(
            "A label differs from that of the list",
            where=f"{where}: image {images[row]}"[:200],
            expected=str(int(list_labels[row])),
            found=f"{file_labels[row]}; such rows: {int(wrong.sum())}"[:80],
            hint="the file numbers the classes differently: leave its labels out, and those of the list are used"
            if wrong[list_labels >= 0].all()
            else "rows without image names must be in the order of the list",
        )


def numbering_doubt(answers: Int64s, labels: Int64s) -> str:
    """Return a warning if the data suggest that answers and labels number the classes differently, else "".

    >>> numbering_doubt(np.arange(20), np.arange(20) + 1)[:34]
    '20 of 20 labels are the answer +1,'
    """
    n, right = len(labels), int((answers == labels).sum())
    if n < _FEWEST or 2 * right >= n:
        return ""
    base = int(labels.max()) + 1
    pairs, counts = np.unique(answers * base + labels, return_counts=True)
    answer, label = np.divmod(pairs, base)
    # The most frequent label of each answer. A dominant label or few answers prove nothing.
    order = np.lexsort((counts, answer))
    best = order[np.append(np.diff(answer[order]) > 0, True)]
    if len(best) <= 2 or len(np.unique(label[best])) < len(best):
        return ""
    matches = {f"answer {shift:+d}": int((answers + shift == labels).sum()) for shift in (1, -1)}
    if n >= _FEWEST * len(best):
        matches["one that goes with the answer most often"] = int(counts[best].sum())
    rule, hits = max(matches.items(), key=lambda item: item[1])
    if hits <= max(n / 2, 2 * right):
        return ""
    return (
        f"{hits:,} of {n:,} labels are the {rule}, {right:,} are the answer itself: labels and answers seem to number "
        "the classes differently"
    )


def native_name(text: str) -> str:
    """Return the id without its namespace for an id, a file name or a path.

    >>> native_name("train/n02088632/n02088632_3640.JPEG"), native_name("imagenet:ILSVRC2012_val_00000077")
    ('n02088632_3640', 'ILSVRC2012_val_00000077')
    """
    return stem(text.replace("\\", "/").rpartition("/")[2].rpartition(":")[2])


def _classes_by_name(images: Sequence[str]) -> list[str] | None:
    names = [image.partition("_")[0] for image in images]
    return names if all(is_wnid(name) for name in names) else None


def _classes_by_truth(manifest: Manifest, part: str, truth: Path) -> list[str]:
    """Return the class of each image: from its name (``n02088632_3640``), else from the truth."""
    from curation.sources.opening import open_path

    by_name = {entry.name: entry for entry in manifest.header.sources if entry.name in manifest.part(part).sources}
    ids = manifest.ids(part)
    names = [image.partition(":")[2].partition("_")[0] for image in ids]
    # Training images of ImageNet are named after their class; lists of other parts do not contain them.
    others = [name for name, entry in by_name.items() if (entry.dataset, entry.part) != ("imagenet", "train")]
    sources = {name: open_path(truth, dataset=by_name[name].dataset, part=by_name[name].part) for name in others}
    if len(others) < len(by_name):
        class_at = {
            image: source.categories.names[category]
            for source in sources.values()
            for image, category in zip(source.image_ids.tolist(), class_of_images(source).tolist(), strict=True)
        }
        return [name if is_wnid(name) else class_at.get(image, "") for name, image in zip(names, ids, strict=True)]
    return _classes_in(manifest, part, sources)


def _classes_remembered(manifest: Manifest, part: str) -> list[str] | None:
    """Return the class of each image in the remembered sources of the build; None if these do not exist."""
    names, stored = manifest.part(part).sources, manifest.built_from
    if stored is None or not all(name in stored.sources and Path(stored.sources[name]).exists() for name in names):
        return None
    return _classes_in(
        manifest, part, manifest.open_sources({}, slots=[slot for slot in manifest.slots if slot.name in names])
    )


def _classes_in(manifest: Manifest, part: str, sources: Mapping[str, Source]) -> list[str]:
    """Return the class of each image of a part in its sources, by its name in the manifest."""
    from curation.manifest.views import class_positions, locate_images

    located, entries = locate_images(manifest, part, sources), manifest.header.classes
    names = np.empty(len(located), object)
    for number, source in enumerate(located.sources):
        positions = class_positions(entries, source).tolist()
        pairs = zip(positions, source.categories.names, strict=True)
        labels = np.array([entries[position].name if position >= 0 else name for position, name in pairs], object)
        rows = located.source == number
        names[rows] = labels[class_of_images(source)[located.position[rows]]]
    return names.tolist()
