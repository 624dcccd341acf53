"""Scores of images from files, matched with the images of a set; and lists of images to leave out."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from curation.core.canonical import sha256_of_file
from curation.core.errors import CurationWarning, EvaluationError, MissingFileError, PredictionError, UsageError
from curation.core.reading import beginning
from curation.evaluation.class_scores import numbering_doubt, require_same_labels, rows_by_name
from curation.evaluation.problem import Bools, Floats, Int64s, Stray
from curation.evaluation.score_files import IMAGES, LABELS, PREDICTIONS, Keys, open_columns
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.review.decisions.application import judged_counts
from curation.review.decisions.files import read_decisions
from curation.review.decisions.resolution import standing_verdicts
from curation.sources.entries import LONGEST_LINE
from curation.sources.published_list import read_published
from curation.sources.stems import stems

SCORES = ("score", "scores", "conf", "confidence")
SUFFIXES = (".csv", ".npz", ".npy")
_KEYS = "--key score=NAME, --key label=NAME and --key image=NAME name columns or arrays"
_FORMS = "a .csv with a column score; an .npz with an array score or conf; a one-dimensional .npy"


@dataclass(frozen=True, slots=True)
class ImageScores:
    """Scores of images, read from a file: one row per image, higher is more ID.

    Attributes
    ----------
    scores : ndarray of float64, shape (n,)
        May hold NaN and infinities.
    images : tuple of str, length n, or None
        Ids, names or paths, as in the file.
    predictions, labels : ndarray of int64, shape (n,), or None
    file : dict
        Name, digest, rows, and what was left out.
    path : Path
    """

    scores: Floats
    images: tuple[str, ...] | None
    predictions: Int64s | None
    labels: Int64s | None
    file: dict[str, Any]
    path: Path


def read_image_scores(path: Path, keys: Keys | None = None) -> ImageScores:
    """Return the scores in a file, with names, predictions and labels if it has them.

    Parameters
    ----------
    path : Path
        ``.csv`` with columns such as ``image``, ``score``, ``prediction``, ``label``; ``.npz`` with arrays of these
        names, or ``conf``, ``pred``, ``label`` as OpenOOD saves them; ``.npy`` of shape (n,).
    keys : Keys, optional
        Names of columns or arrays, if they are not the usual ones.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        The file has another format, or its columns differ in length.
    """
    columns = open_columns(path, SUFFIXES)
    names = keys or Keys()
    usual_keys = {
        "scores": SCORES if names.scores is None or columns.kind == "alone" else (names.scores,),
        "predictions": PREDICTIONS,
        "labels": LABELS if names.labels is None else (names.labels,),
        "images": IMAGES if names.images is None else (names.images,),
    }
    chosen = {role: key for role, usual in usual_keys.items() if (key := columns.first(usual)) is not None}
    if "scores" not in chosen:
        makes = (
            f"curation scores --test {shlex.quote(str(path))} --out FILE.csv makes them; --key score=energy reads one"
        )
        hint = makes if "logits" in columns.names else _KEYS
        _refuse(path, f"no {' or '.join(usual_keys['scores'])} in {', '.join(columns.names)}"[:200], hint)
    read = columns.read([chosen[role] for role in chosen if role != "images"], [*filter(None, [chosen.get("images")])])
    arrays = {role: np.asarray(read[key]) if role != "images" else read[key] for role, key in chosen.items()}
    scores = arrays["scores"]
    if scores.ndim != 1 or scores.dtype.kind not in "fiu" or not len(scores):
        _refuse(path, f"scores of {scores.dtype}, shape {scores.shape}")
    for role, column in arrays.items():
        if len(column) != len(scores):
            _refuse(path, f"{len(scores)} scores and {len(column)} {role}")
    images = tuple(map(str, np.asarray(arrays["images"]).tolist())) if "images" in arrays else None
    # Arrays of names are as wide as their longest name.
    if images is not None and (max(map(len, images)) > LONGEST_LINE or "" in images):
        _refuse(path, f"an image name of {'no' if '' in images else f'{max(map(len, images)):,}'} characters")
    file = {"name": path.name, "sha256": sha256_of_file(path), "rows": len(scores), "stored": str(scores.dtype)}
    predictions, labels = (_integers(arrays.get(role), role, path) for role in ("predictions", "labels"))
    return ImageScores(scores.astype(np.float64), images, predictions, labels, {**file, "reported": {}}, path)


def _integers(values: Any, role: str, path: Path) -> Int64s | None:
    if values is None:
        return None
    if values.ndim != 1 or values.dtype.kind not in "fiu" or not np.array_equal(values, np.round(values)):
        _refuse(path, f"{role} that are not whole numbers, one an image")
    return np.asarray(values, np.int64)


def _refuse(path: Path, problem: str, hint: str | None = None) -> NoReturn:
    raise PredictionError(
        "The scores of images cannot be read", where=str(path), expected=_FORMS, found=problem, hint=hint
    )


UNJUDGED = "unjudged is not clean: {judged:,} of {images:,} images of {set} were judged, {removed:,} are left out"
_HEAD = 4096
_LIST_SUFFIXES = (".txt", ".csv", ".json")


@dataclass(frozen=True)
class Images:
    """Names of images: the stem of a file, with its last folder if stems repeat, or its whole path if those repeat.

    Attributes
    ----------
    paths : tuple of str
        Ids with or without namespace, names or paths, in the order of their list.
    """

    paths: tuple[str, ...]

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Stem of each path."""
        return self._names(0)

    @cached_property
    def with_folder(self) -> tuple[str, ...]:
        """Last folder and stem of each path."""
        return self._names(1)

    @cached_property
    def by_folder(self) -> int:
        """Which folders are needed to distinguish the images: none (0), the last one (1), or all (-1)."""
        return next((n for n in (0, 1) if len(set(self.keys(by_folder=n))) == len(self.paths)), -1)

    def keys(self, *, by_folder: int) -> tuple[str, ...]:
        """Return the key of each image."""
        return {0: self.stems, 1: self.with_folder}[by_folder] if by_folder >= 0 else self._names(-1)

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """Last folder of each path, ``""`` for none."""
        return tuple(name.rpartition("/")[0] for name in self.with_folder)

    def _names(self, parents: int) -> tuple[str, ...]:
        # The part of an id before the colon is the name of a dataset.
        bare = "".join(f"{path.partition(':')[2] or path}\n" for path in self.paths)
        return tuple(stems(bare.encode(), parents=parents).decode().split("\n")[:-1])


@dataclass(frozen=True, slots=True)
class ListedSet:
    """The images of a set, from a part of a manifest or from an imglist.

    Attributes
    ----------
    images : Images
    labels : ndarray of int64, shape (n,), or None
    ordered : bool
        Whether rows without names are in its order.
    where : str
        Its name in messages.
    """

    images: Images
    labels: Int64s | None
    ordered: bool
    where: str


@dataclass(frozen=True)
class ScoredSet:
    """One set with its scores.

    Attributes
    ----------
    name : str
    scores : ndarray of float64, shape (n,)
        Higher is more ID.
    right : ndarray of bool, shape (n,), or None
        Whether the prediction is the label; None if predictions or labels are missing, or a label is negative (no
        class).
    images : Images or None
        None if the images have no names.
    file : dict
        Facts about the input file for the result.
    """

    name: str
    scores: Floats
    right: Bools | None
    images: Images | None
    file: dict[str, Any]

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def classes(self) -> tuple[str, ...]:
        """The class of each image, which is the name of its folder."""
        if self.images is None or not all(self.images.folders):
            raise EvaluationError(
                "The class of each image is unknown",
                where=f"{self.file['name']}: set {self.name}",
                expected="names with the folder of their class, or a manifest or list that has them",
                hint="--manifest MANIFEST, or --lists DIR",
            )
        return self.images.folders


@dataclass(frozen=True)
class LeftOut:
    """Images that a user's list leaves out.

    Attributes
    ----------
    name : str
    removed : Images
        Images removed from every OOD set.
    of_sets : mapping of str to Images
        Images removed from one OOD or ID set only, by set.
    retained : mapping of str to Images
        Images that a cleaned manifest retains, by set. All images of other sets stay.
    judged : Images or None
        Reviewed images; None if the list does not come from decisions.
    judged_of : mapping of str to int
        Number of reviewed images in a cleaned manifest, by set.
    file : dict
        Name and digest.
    """

    name: str
    removed: Images
    of_sets: Mapping[str, Images] = field(default_factory=dict)
    retained: Mapping[str, Images] = field(default_factory=dict)
    judged: Images | None = None
    judged_of: Mapping[str, int] = field(default_factory=dict)
    file: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, path: Path, sets: Collection[str]) -> LeftOut:
        """Return the images that a list leaves out.

        Parameters
        ----------
        path : Path
            A list of images in any published form; decisions (``.jsonl`` or ``.csv``), whose action ``remove`` counts;
            or the folder of a cleaned manifest.
        sets : collection of str
            Sets that decisions may name.
        """
        if path.is_dir():
            manifest = load_manifest(str(path))
            return cls(
                name,
                Images(()),
                retained={part: Images(manifest.ids(part)) for part in manifest.parts if part in sets},
                judged=Images(()) if manifest.header.decisions else None,
                judged_of=judged_counts(manifest.header),
                file={"name": path.name, "sha256": manifest.digest},
            )
        if path.suffix.lower() == ".jsonl" or _is_decisions(path, name):
            return cls._of_decisions(name, path, sets)
        paths = tuple(path for entry in read_published(path).lists for path in entry.paths.decode().split("\n")[:-1])
        if not paths:
            raise UsageError("The list names no images", where=f"--without {name}={path}")
        return cls(name, Images(paths), file={"name": path.name, "sha256": sha256_of_file(path)})

    @classmethod
    def _of_decisions(cls, name: str, path: Path, sets: Collection[str]) -> LeftOut:
        read = read_decisions(path)
        for note in read.notes():
            warnings.warn(note, CurationWarning, stacklevel=2)
        of_sets: dict[str, set[str]] = {}
        for decision in standing_verdicts(read.decisions):
            if decision.action == "remove":
                of_sets.setdefault(decision.dataset if decision.dataset in sets else "", set()).add(decision.image_id)
        images_by_set = {key: Images(tuple(sorted(images))) for key, images in of_sets.items()}
        return cls(
            name,
            images_by_set.pop("", Images(())),
            of_sets=images_by_set,
            judged=Images(tuple(sorted({decision.image_id for decision in read.decisions}))),
            file={"name": path.name, "sha256": read.sha256},
        )

    def kept_rows(self, scored: ScoredSet, *, is_ood: bool) -> Bools:
        """Return which images of a set are not left out, shape (n,)."""
        removed = [images for images in (self.removed if is_ood else None, self.of_sets.get(scored.name)) if images]
        retained = self.retained.get(scored.name)
        if retained is None and not any(images.paths for images in removed):
            return np.ones(len(scored), np.bool_)
        if scored.images is None:
            raise UsageError(
                "Images are left out by name, but the images of a set have no names",
                where=f"--without {self.name}: set {scored.name}",
                expected="a column or array of image names, --manifest MANIFEST, or --lists DIR",
            )
        by_folder = scored.images.by_folder
        removed_keys = {key for images in removed for key in images.keys(by_folder=by_folder)}
        retained_keys = None if retained is None else set(retained.keys(by_folder=by_folder))
        keys = scored.images.keys(by_folder=by_folder)
        return np.array(
            [key not in removed_keys and (retained_keys is None or key in retained_keys) for key in keys], np.bool_
        )

    def judged_in(self, scored: ScoredSet) -> int:
        """Return how many images of a set were judged; 0 if the list does not come from decisions."""
        if scored.name in self.judged_of:
            return self.judged_of[scored.name]
        if self.judged is None or scored.images is None:
            return 0
        by_folder = scored.images.by_folder
        return len(set(self.judged.keys(by_folder=by_folder)) & set(scored.images.keys(by_folder=by_folder)))


def _is_decisions(path: Path, name: str) -> bool:
    """Return whether a table contains decisions; a table of codes is an error."""
    if path.suffix.lower() != ".csv":
        return False
    first = beginning(path, _HEAD, kind="list").split(b"\n", 1)[0].decode("utf-8", "replace")
    columns = {column.strip().strip('"') for column in first.split(",")}
    if "decision" in columns:
        raise UsageError(
            "The table has codes whose meaning is not stated",
            where=f"--without {name}={path}",
            expected="decisions, or a list of the images to leave out",
            found=ascii(first.strip())[:120],
            hint=f"curation review summary {shlex.quote(str(path))} --key image_id=COLUMN,action=decision "
            "--codes CODE=ACTION --out FILE.jsonl",
        )
    return columns >= {"image_id", "action"}


def listed_set(name: str, manifest: Manifest | None, lists: Path | None) -> ListedSet | None:
    """Return the images of a set: from an imglist, else from the manifest's part of its name, else None.

    Raises
    ------
    EvaluationError
        Both exist and list different images.
    """
    part = _of_manifest(name, manifest)
    listed = None if lists is None else _of_lists(name, lists)
    if part is None or listed is None:
        return listed or part
    by_folder = part.images.by_folder
    part_keys, others = (set(side.images.keys(by_folder=by_folder)) for side in (part, listed))
    if part_keys != others:
        raise EvaluationError(
            "The list of a set differs from the part of the manifest",
            where=listed.where,
            expected=f"the {len(part_keys):,} images of {part.where}",
            found=f"{len(others):,}, {len(part_keys & others):,} of them shared",
        )
    return listed


def _of_manifest(name: str, manifest: Manifest | None) -> ListedSet | None:
    if manifest is None or name not in manifest.parts:
        return None
    entry = manifest.part(name)
    return ListedSet(Images(manifest.ids(name)), None, entry.order == "listed", f"part {name}")


def _of_lists(name: str, folder: Path) -> ListedSet | None:
    if not folder.is_dir():
        raise MissingFileError("The folder of the lists does not exist", where=f"--lists {folder}")
    stems_of = (f"test_{name}", name)
    files = (folder / f"{stem}{suffix}" for stem in stems_of for suffix in _LIST_SUFFIXES)
    path = next((file for file in files if file.is_file()), None)
    if path is None:
        return None
    entries = read_published(path).lists
    if len(entries) != 1 or entries[0].odd:
        odd = entries[0].odd_lines[0] if len(entries) == 1 else None
        raise EvaluationError(
            "The file is not one list of images",
            where=str(path) if odd is None else f"{path}, line {odd.line}",
            found=f"{len(entries)} lists" if odd is None else odd.reason,
        )
    labels = None if entries[0].labels is None else entries[0].labels.astype(np.int64)
    return ListedSet(Images(tuple(entries[0].paths.decode().split("\n")[:-1])), labels, ordered=True, where=str(path))


def scored_set(name: str, table: ImageScores, listed: ListedSet | None, stray: Stray) -> ScoredSet:
    """Return the scores of a set; with a list, one score for each of its images in that order.

    Raises
    ------
    PredictionError
        An image is repeated, has no score, or is not in the set; or rows without names do not match the images.
    """
    scores, predictions, labels, file = table.scores, table.predictions, table.labels, table.file
    if listed is None:
        images = None if table.images is None else Images(table.images)
        if images is not None:
            # Each name must occur once.
            rows_by_name(images.with_folder, list(dict.fromkeys(images.with_folder)), str(table.path), name, stray)
    else:
        images = listed.images
        rows, strangers = _rows(table, listed, stray)
        labels = listed.labels if labels is None else labels[rows]
        if labels is not None and listed.labels is not None:
            require_same_labels(labels, listed.labels, images.paths, str(table.path))
        scores, predictions = scores[rows], None if predictions is None else predictions[rows]
        file = {**file, "reported": {"left out: images that are not in the set": strangers} if strangers else {}}
    # A negative label names no class. In an ID list with only -1, no prediction would be right.
    if predictions is None or labels is None or (labels < 0).any():
        return ScoredSet(name, scores, None, images, file)
    doubt = numbering_doubt(predictions, labels)
    return ScoredSet(name, scores, predictions == labels, images, file | ({"doubt": doubt} if doubt else {}))


def _rows(table: ImageScores, listed: ListedSet, stray: Stray) -> tuple[Int64s, int]:
    n = len(listed.images.paths)
    if table.images is None:
        if len(table.scores) != n or not listed.ordered:
            raise PredictionError(
                "Rows without names do not match the list",
                where=str(table.path),
                expected=f"{n:,} rows in the order of {listed.where}"
                if listed.ordered
                else f"names: {listed.where} is sorted, and not in the order of a published list",
                found=f"{len(table.scores):,} rows",
                hint="add image names (column or array 'image'), or --lists DIR with the imglists that were scored",
            )
        return np.arange(n), 0
    by_folder = listed.images.by_folder
    keys, listed_keys = (images.keys(by_folder=by_folder) for images in (Images(table.images), listed.images))
    return rows_by_name(keys, listed_keys, str(table.path), listed.where, stray)
