"""`review_from_files` and `start_review`: make or continue the dataset of a review, and replay its log."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from curation.core.arguments import checked
from curation.core.canonical import sha256_of_value
from curation.core.errors import CurationWarning, ReviewError, UsageError
from curation.core.fiftyone_database import load_fiftyone
from curation.core.tables import grouped
from curation.core.wording import counted, examples
from curation.core.writing import write_bytes, write_text
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.review.app.dataset import FIELDS, READY, build_dataset, info_of
from curation.review.app.images import ReviewImages, arranged, known_names, part_images, source_images
from curation.review.app.live_review import REVIEWER_VARIABLE, LiveReview, offer_own_view, open_review
from curation.review.app.pair_images import pair_images
from curation.review.app.serving import find_port
from curation.review.decisions.decision import Decision, Stage
from curation.review.decisions.files import json_lines, read_decisions
from curation.review.decisions.guide import Guide, guide_in, read_guide
from curation.review.decisions.pairs import PAIRS, PhotoPair, pairs_csv, read_pairs
from curation.review.decisions.review_folder import (
    DATABASE,
    GOLD_FILE,
    LOG_FILE,
    REVIEW,
    ReviewRecord,
    folder_decisions,
    read_record,
    write_record,
)
from curation.review.decisions.sampling import Order
from curation.review.decisions.verdicts import checked_reviewer, differ
from curation.review.proposals.proposal import read_proposals
from curation.signals.similarity.embeddings import Embeddings, open_embeddings
from curation.sources.opening import open_slots
from curation.sources.photos import PhotoFolder
from curation.sources.source_specs import Reading, Sources, named_slots

FURTHER_PHOTOS = (".gif", ".bmp")
"""Suffixes of photos that browsers show, in addition to those that every command reads."""
_PLUGINS_VARIABLE = "FIFTYONE_PLUGINS_DIR"


@dataclass(frozen=True, kw_only=True)
class ReviewPlan:
    """Options of a review.

    Attributes
    ----------
    guide
        the question, the meaning of near, far and remove, and reasons on the keys 1 to 9: Markdown, or a benchmark file
        with a table [guide]
    blind
        hide the decisions of other reviewers
    order
        the most suspect image first, or a random order by hash rank; stratified: drawn from each kind of proposal
    sample
        number of images to draw by hash rank, which bounds the remaining errors: from those without a proposal; from
        all in a random order
    colleague
        another reviewer who shares the images (repeatable)
    overlap
        share of each batch that all reviewers judge; the rest is divided among them (default: 1)
    gold
        correct decisions: their images are shown to all reviewers
    """

    guide: Annotated[Path | None, "FILE"] = None
    blind: bool = False
    order: Order = "evidence"
    sample: Annotated[int | None, "N"] = None
    colleague: tuple[Annotated[str, "NAME"], ...] = ()
    overlap: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    gold: Annotated[Path | None, "FILE"] = None


@dataclass(frozen=True, slots=True)
class Started:
    """A review that is ready: whether its dataset was built now, and how many samples the log changed."""

    review: LiveReview
    record: ReviewRecord
    built: bool
    replayed: int


@checked
def review_from_files(
    manifest: str | None = None,
    /,
    *,
    folder: Path,
    sources: Sources | None = None,
    photos: Annotated[Mapping[str, Path] | Path | None, "[SOURCE=]DIR"] = None,
    id_photos: Annotated[Mapping[str, Path] | Path | None, "[NAMESPACE=]DIR"] = None,
    part: tuple[str, ...] = (),
    proposals: Path | None = None,
    pairs: Path | None = None,
    embeddings: Annotated[Path | None, "DIR"] = None,
    stage: Stage = "manual",
    pool: Annotated[str, "NAME"] = "",
    name: str = "",
    batch_size: int = 100,
    reviewer: Annotated[str, "NAME"] = "",
    rebuild: bool = False,
    no_app: bool = False,
    port: Annotated[str | None, "N"] = None,
    plan: ReviewPlan | None = None,
    reading: Reading | None = None,
) -> Started:
    """Make a review from files, or continue the review of a folder if no other input is named.

    Parameters
    ----------
    manifest
        a manifest, by folder or name; without one, all images of the sources
    folder
        folder of the review and its log
    sources
        with a manifest, sources that moved since it was built; without one, NAME begins with the name of its data set
    photos
        the photos of a source, or of all
    id_photos
        the photos of ID images, by namespace, to show the most similar one (repeatable; default: those of --photos)
    part
        review this part only (repeatable; default: all)
    proposals
        from `curation review propose`
    pairs
        pairs of photos that may be the same photo, shown side by side: the pairs.csv of `curation similarity leaks
        --out` or `curation audit --out`
    embeddings
        from `curation similarity embed`, to sort by similarity
    stage
        what the decisions are for: images of a part, candidates for one, exceptions to the automatic stage, or --pairs
    pool
        what decisions apply to (default: the part)
    name
        name of the FiftyOne dataset (default: the name of the folder)
    batch_size
        images of a batch (default: 100)
    reviewer
        your name, stored with every decision of this server
    rebuild
        build the dataset again and replay the log
    no_app
        prepare the dataset and exit
    port
        port of the App at 127.0.0.1, an error if it is in use; 0: any free port (default: FiftyOne's, 5151)

    Raises
    ------
    UsageError
        The reviewer's name, or another input that a review needs, is missing or does not fit the others.
    ReviewError
        See `start_review` and `resume_review`.
    """
    if not no_app:
        _require_name(reviewer)
        # Refuse before minutes of building, not after.
        find_port(port)
    plan = plan or ReviewPlan()
    if not (manifest or sources or photos or part or proposals or pairs or embeddings):
        if (plan.order, plan.sample, plan.colleague, plan.overlap, plan.gold) != ("evidence", None, (), 1.0, None):
            hint = "name the sources and photos again, with --rebuild: the decisions in the log are kept"
            raise UsageError("Order, sample, shares and gold are fixed when a review is built", hint=hint)
        if plan.guide or plan.blind:
            record = read_record(folder)
            guide = read_guide(plan.guide, record.stage) if plan.guide else record.guide
            write_record(folder, msgspec.structs.replace(record, guide=guide, blind=record.blind or plan.blind))
        return resume_review(folder, reviewer=reviewer)
    if pairs and (manifest or sources or photos or part or proposals or embeddings or plan.sample):
        hint = "leave out manifest, sources, photos, proposals, embeddings and sample"
        raise UsageError(
            "The file of pairs names its photos, and all its pairs are reviewed", where="--pairs", hint=hint
        )
    if stage == "pair" and not pairs:
        raise UsageError("A review of pairs needs a file of pairs", expected="--pairs pairs.csv")
    stage = "pair" if pairs else stage
    guide = read_guide(plan.guide, stage) if plan.guide else None
    gold = read_decisions(plan.gold).decisions if plan.gold else ()
    reviewers = [checked_reviewer(name) for name in dict.fromkeys((*([reviewer] if reviewer else ()), *plan.colleague))]
    if plan.overlap < 1 and len(reviewers) < 2:
        raise UsageError("An overlap needs several reviewers", where="--overlap", hint="--colleague NAME")
    reviewed = load_manifest(manifest) if manifest else None
    proposed = read_proposals(proposals) if proposals else None
    folders = _folders(photos)
    if not (folders or pairs):
        raise UsageError("A review needs the photos", expected="--photos NAME=DIR, or --photos DIR for all sources")
    listed = read_pairs(pairs) if pairs else []
    if pairs:
        images = pair_images(listed, folder)
    else:
        images = _images(reviewed, part, sources or {}, folders, pool, reading or Reading())
    embedded = open_embeddings(embeddings) if embeddings else None
    images = arranged(
        images,
        proposed.proposals if proposed else (),
        batch_size=batch_size,
        known=known_names(proposed) if proposed else (),
        id_photos=_folders(id_photos) or folders,
        order=plan.order,
        sample=plan.sample,
        gold=[row.image_id for row in gold],
        reviewers=reviewers if len(reviewers) > 1 else (),
        overlap=plan.overlap,
    )
    if gold and not {(row.dataset, row.image_id) for row in gold} & set(zip(images.pools, images.ids, strict=True)):
        expected = f"decisions on {images.pools[0]}, such as one on {images.ids[0]}"
        raise ReviewError("No gold decision is on an image of the review", where=str(plan.gold), expected=expected)
    return start_review(
        folder,
        name or folder.absolute().name,
        images,
        stage=stage,
        manifest=reviewed.digest if reviewed else "",
        embeddings=embedded,
        reviewer=reviewer,
        rebuild=rebuild,
        guide=guide or (guide_in(reviewed.header, stage) if reviewed else None),
        blind=plan.blind,
        gold=gold,
        pairs=listed,
    )


def _require_name(reviewer: str) -> None:
    if not reviewer.strip():
        hint = "each decision is stored with this name; a second reviewer starts a second server"
        raise UsageError("A review needs the name of its reviewer", expected="--reviewer NAME", hint=hint)


def _folders(photos: Mapping[str, Path] | Path | None) -> dict[str, PhotoFolder]:
    folders = {"": photos} if isinstance(photos, Path) else photos or {}
    return {name: PhotoFolder(folder, FURTHER_PHOTOS) for name, folder in folders.items()}


def _images(
    manifest: Manifest | None,
    parts: Sequence[str],
    sources: Mapping[str, Any],
    photos: Mapping[str, PhotoFolder],
    pool: str,
    reading: Reading,
) -> ReviewImages:
    if manifest is None and (parts or not sources):
        where = "--part needs a manifest" if parts else None
        expected = "a manifest, or --source NAME=PATH"
        raise UsageError("There is nothing to review", where=where, expected=expected, hint="curation list")
    slots = manifest.slots if manifest else named_slots(sources, parts=False)
    names = [entry.name for entry in manifest.header.sources] if manifest else [slot.name for slot in slots]
    # A misspelled name would leave out every image.
    if unknown := [name for name in photos if name and name not in names]:
        raise UsageError(
            "--photos names an unknown source",
            where=f"--photos {unknown[0][:80]}=…",
            expected=", ".join(names),
            hint="--photos DIR serves all sources",
        )
    if manifest is None:
        return source_images(open_slots(sources, slots, reading), photos, pool=pool)
    return part_images(manifest, parts, manifest.open_sources(sources, reading), photos, pool=pool)


def start_review(
    folder: Path,
    name: str,
    images: ReviewImages,
    *,
    stage: Stage = "manual",
    manifest: str = "",
    embeddings: Embeddings | None = None,
    reviewer: str = "",
    rebuild: bool = False,
    guide: Guide | None = None,
    blind: bool = False,
    gold: Sequence[Decision] = (),
    pairs: Sequence[PhotoPair] = (),
) -> Started:
    """Return a review whose dataset shows the images with every decision of the folder's log.

    A dataset of the same inputs is continued, with the user's tags; otherwise a new one is built.

    Parameters
    ----------
    folder : Path
        Folder for ``decisions.jsonl`` (the log), ``review.json``, ``database`` and exports; the only one written to.
    name : str
        Name of the FiftyOne dataset.
    images : ReviewImages
        From `curation.review.app.images.arranged`.
    manifest : str
        Digest of the manifest under review.
    reviewer : str
        Name of the reviewer, for everything that this process serves.
    rebuild : bool
        Replace a dataset of this name. The log is kept and replayed.
    guide : Guide, optional
        The question and the reasons.
    blind : bool
        Hide the decisions of other reviewers.
    gold : sequence of Decision
        Correct decisions on some images.
    pairs : sequence of PhotoPair
        The pairs that the images show, at stage ``pair``.

    Raises
    ------
    ReviewError
        The folder or the dataset belongs to another review and `rebuild` is False; or see `load_fiftyone`.
    """
    if not name or len(name) > 100 or not name.isprintable() or "/" in name:
        message, expected = "The name of the dataset is malformed", "1 to 100 characters without /"
        raise ReviewError(message, found=ascii(name)[:120], expected=expected)
    before = read_record(folder) if (folder / REVIEW).exists() else None
    classes: dict[str, list[str]] = {}
    for image, proposal in zip(images.ids, images.proposals, strict=True):
        for suspected in sorted({row.id_class for row in proposal.evidence if row.id_class} if proposal else ()):
            classes.setdefault(suspected, []).append(image)
    record = ReviewRecord(
        dataset=name,
        stage=stage,
        manifest=manifest,
        inputs=_digest(images, stage, manifest, embeddings),
        batches=dict(sorted(Counter(images.batches).items())),
        left_out=images.left_out,
        bad_photos=images.bad_photos,
        guide=guide or (before.guide if before else None),
        blind=blind or (before is not None and before.blind),
        adjudicators=before.adjudicators if before else (),
        sample=images.sample,
        classes={name: tuple(dict.fromkeys(ids)) for name, ids in sorted(classes.items())},
    )
    if before is not None and not rebuild:
        _require_same(folder, before, record)
    _prepare_app(reviewer)
    fiftyone = load_fiftyone(folder / DATABASE)
    log = (folder / LOG_FILE).absolute()
    info = {"log": str(log), "manifest": manifest, "stage": stage, "inputs": record.inputs}
    present = fiftyone.load_dataset(name) if fiftyone.dataset_exists(name) else None
    is_same = present is not None and info_of(present) == {**info, "state": READY}
    if present is not None and not is_same:
        _may_replace(info_of(present), name, log, rebuild=rebuild)
    if present is not None and (rebuild or not is_same):
        fiftyone.delete_dataset(name)
        present = None
    write_record(folder, record)
    if gold:
        write_bytes(folder / GOLD_FILE, json_lines(gold), guarded=False)
    if pairs:
        write_text(folder / PAIRS, pairs_csv(pairs), guarded=False)
    dataset = present if present is not None else build_dataset(fiftyone, name, images, info, embeddings=embeddings)
    return _started(dataset, record, built=present is None, reviewer=reviewer)


def resume_review(folder: Path, *, reviewer: str = "") -> Started:
    """Return the review of a folder whose dataset is still in the database, updated from its log.

    Raises
    ------
    MissingFileError
        The folder contains no review.
    ReviewError
        The dataset is not in this database, or unfinished: build it again from its sources.
    """
    record = read_record(folder)
    _prepare_app(reviewer)
    fiftyone = load_fiftyone(folder / DATABASE)
    name = record.dataset
    present: Any = fiftyone.load_dataset(name) if fiftyone.dataset_exists(name) else None
    info = {} if present is None else info_of(present)
    ours = {"state": READY, "inputs": record.inputs, "log": str((folder / LOG_FILE).absolute())}
    if not ours.items() <= info.items():
        raise ReviewError(
            "The dataset of this review is not in the database",
            where=f"dataset {name}",
            hint="restart it with its manifest, sources and photos: the decisions in the log are kept",
        )
    if gone := [path for path in present.values("filepath") if not Path(path).is_file()]:
        mend = "restart with the sources, --photos and --rebuild (the decisions are kept)"
        message = f"{len(gone):,} of {counted(record.images, 'photo')} not found: {examples(gone)}"
        warnings.warn(f"{message}; {mend}", CurationWarning, stacklevel=2)
    return _started(present, record, built=False, reviewer=reviewer)


@checked
def adjudicate_folder(
    *,
    folder: Path,
    reviewer: Annotated[str, "NAME"] = "",
    no_app: bool = False,
    port: Annotated[str | None, "N"] = None,
) -> Started:
    """Continue a review with a person whose decisions settle its conflicts, and who sees those of both sides.

    Parameters
    ----------
    folder
        folder of the review and its log
    reviewer
        name of the adjudicator: a person who has not judged yet
    no_app
        prepare the dataset and exit
    port
        port of the App at 127.0.0.1, an error if it is in use; 0: any free port (default: FiftyOne's, 5151)

    Raises
    ------
    ReviewError
        No conflict exists, or the person has already decided.
    """
    _require_name(reviewer)
    name = checked_reviewer(reviewer)
    if not no_app:
        find_port(port)
    held = folder_decisions(folder)
    record, rows = held.record, held.file.decisions
    if name not in record.adjudicators:
        if any(row.reviewer == name for row in rows):
            message, hint = "An adjudicator is a third person", "--reviewer NAME of a person who has not judged yet"
            raise ReviewError(message, found=f"{name} judged images of this review", hint=hint)
        if not any(differ(votes) for votes in grouped(rows, lambda row: (row.dataset, row.image_id)).values()):
            hint = f"curation review export --folder {shlex.quote(str(folder))} --out decisions.jsonl"
            raise ReviewError("There is no conflict to settle", where=str(folder), hint=hint)
        record = msgspec.structs.replace(record, adjudicators=(*record.adjudicators, name))
        write_record(folder, record)
    return resume_review(folder, reviewer=name)


def _started(dataset: Any, record: ReviewRecord, *, built: bool, reviewer: str) -> Started:
    """Return the review of a dataset after replaying its log."""
    review = open_review(dataset)
    if reviewer:
        offer_own_view(dataset, checked_reviewer(reviewer))
    return Started(review, record, built=built, replayed=review.replay())


def _prepare_app(reviewer: str) -> None:
    """Set the reviewer's name, and let the App load the plugin of the review and no other."""
    if reviewer:
        os.environ[REVIEWER_VARIABLE] = checked_reviewer(reviewer)
    os.environ[_PLUGINS_VARIABLE] = plugin = str(Path(__file__).parent / "plugin")
    # A source may have been read from FiftyOne already.
    if fiftyone := sys.modules.get("fiftyone"):
        fiftyone.config.plugins_dir = plugin


def _digest(images: ReviewImages, stage: Stage, manifest: str, embeddings: Embeddings | None) -> str:
    """Return the digest of everything that the dataset shows, with numbers as texts: floats are never hashed."""
    boxes = images.boxes
    return sha256_of_value(
        {
            "fields": [field.name for field in FIELDS],
            "stage": stage,
            "manifest": manifest,
            "images": [list(row) for row in zip(images.ids, images.parts, images.pools, images.batches, strict=True)],
            "paths": [str(path) for path in images.paths],
            "nearest": [str(path or "") for path in images.nearest_paths],
            "classes": [list(row) for row in images.classes],
            "proposals": msgspec.to_builtins(images.proposals),
            "boxes": [list(row) for row in zip(boxes.image.tolist(), boxes.labels, boxes.roles, strict=True)],
            "xywh": boxes.xywh.astype("<f8").tobytes().hex(),
            "embeddings": "" if embeddings is None else embeddings.encoder.digest,
            "assigned": [list(names) for names in images.assigned],
            "sample": msgspec.to_builtins(images.sample),
        }
    )


def _require_same(folder: Path, before: ReviewRecord, record: ReviewRecord) -> None:
    """Refuse to mix the decisions of two reviews in one log."""
    for field in ("dataset", "stage", "manifest"):
        if (theirs := getattr(before, field)) != (ours := getattr(record, field)):
            raise ReviewError(
                "The folder holds another review",
                where=f"{folder / REVIEW}: {field}",
                expected=theirs or "none",
                found=ours or "none",
                hint="another --folder, or --rebuild to continue with this log",
            )


def _may_replace(info: Mapping[str, Any], name: str, log: Path, *, rebuild: bool) -> None:
    if not info:
        message = "A dataset of this name exists that is not a review"
        raise ReviewError(message, where=name, hint="choose another --name")
    theirs = Path(str(info.get("log")))
    # A review whose folder was moved away may be replaced.
    if theirs != log and theirs.with_name(REVIEW).is_file():
        raise ReviewError(
            "A dataset of this name is the review of another folder",
            where=f"dataset {name}",
            expected=str(log.parent),
            found=str(theirs.parent),
            hint="choose another --name: --rebuild would delete that one",
        )
    if info.get("state") == READY and not rebuild:
        raise ReviewError(
            "The dataset of this name was built from other inputs",
            where=name,
            hint="--rebuild builds it again and replays the log; --name keeps both",
        )
