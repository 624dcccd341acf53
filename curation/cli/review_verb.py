"""``curation review``: look at images in the FiftyOne App, and record verdicts that can be replayed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, emit, table_lines, warn
from curation.cli.outputs import OutputFile, OwnFolder
from curation.cli.source_options import add_source_options, open_sources, slots_of
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.benchmarks.benchmark import SourceSlot
    from curation.manifest.manifest import Manifest
    from curation.review.images import ReviewImages
    from curation.review.progress import Progress
    from curation.review.session import Started
    from curation.similarity.embeddings import Embeddings
    from curation.sources.photos import PhotoFolder

_BUILD_ONLY = ("source", "part", "proposals", "embeddings")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation review start|status|export``."""
    actions = parser.add_subparsers(dest="action", metavar="start|status|export", required=True)
    start = actions.add_parser("start", help="make or continue a review and open the App", allow_abbrev=False)
    _add_start(start)
    status = actions.add_parser("status", help="progress and agreement, without database", allow_abbrev=False)
    export = actions.add_parser("export", help="the standing decisions as a file", allow_abbrev=False)
    for one in (start, status, export):
        one.add_argument(
            "--folder",
            type=OwnFolder(),
            required=True,
            metavar="DIR",
            help="folder of the review and its log",
        )
        one.add_argument("--json", action="store_true", help="print JSON")
    status.add_argument(
        "--also",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="decisions of another reviewer, taken from another review of the same images (repeatable)",
    )
    export.add_argument(
        "--out", type=OutputFile(), required=True, metavar="FILE", help="a .jsonl or .csv file"
    )


def _add_start(parser: argparse.ArgumentParser) -> None:
    from curation.review.serving import DEFAULT_PORT, LOOPBACK, NEXT, OPENS

    parser.add_argument(
        "manifest", nargs="?", help="a manifest, by folder or name; without one, all images of the sources"
    )
    add_source_options(parser)
    parser.add_argument(
        "--photos",
        action="append",
        default=[],
        metavar="[NAME=]DIR",
        help="the photos of a source, or of all (repeatable)",
    )
    parser.add_argument(
        "--part",
        action="append",
        default=[],
        metavar="PART",
        help="review this part only (repeatable; default: all)",
    )
    parser.add_argument("--proposals", type=Path, metavar="FILE", help="from `curation propose`")
    parser.add_argument(
        "--only-proposed", action="store_true", help="leave out images that nothing was proposed for"
    )
    parser.add_argument(
        "--embeddings", type=Path, metavar="DIR", help="from `curation embed`, to sort by similarity"
    )
    parser.add_argument(
        "--stage",
        choices=("manual", "candidate", "auto_override"),
        default="manual",
        help="what the verdicts are for: images of a split, candidates for one, or the automatic stage's exceptions",
    )
    parser.add_argument(
        "--pool", default="", metavar="NAME", help="what decisions speak of (default: the part)"
    )
    parser.add_argument(
        "--name", default="", help="name of the FiftyOne dataset (default: that of the folder)"
    )
    parser.add_argument(
        "--batch-size", type=int, default=100, metavar="N", help="images of a batch (default: 100)"
    )
    parser.add_argument(
        "--reviewer", default="", metavar="NAME", help="who reviews; the App lets one change it"
    )
    parser.add_argument("--rebuild", action="store_true", help="build the dataset anew and replay the log")
    parser.add_argument("--no-app", action="store_true", help="prepare the dataset and leave")
    parser.add_argument("--remote", action="store_true", help="serve the App without opening a browser here")
    parser.add_argument(
        "--port",
        metavar="N",
        help=f"port of the App, an error where something answers; {NEXT}: the first free one from the default on "
        f"(default: FiftyOne's, {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--address",
        metavar="HOST",
        help=f"listen at this address instead of {LOOPBACK}, which this machine alone reaches; CAUTION: {OPENS}",
    )


def run(options: argparse.Namespace) -> int:
    """Run one of the three actions."""
    return {"start": _start, "status": _status, "export": _export}[options.action](options)


def _start(options: argparse.Namespace) -> int:
    started = _resumed(options) if _names_nothing(options) else _built(options)
    data = {
        "dataset": started.record.dataset,
        "log": str(started.review.book.path),
        "images": started.record.images,
        "batches": len(started.record.batches),
        "left_out": started.record.left_out,
        "built": started.built,
        "replayed": started.replayed,
    }
    for reason, count in started.record.left_out.items():
        warn(f"{count} images are not shown: {reason}")
    emit(data, _start_lines(started), as_json=options.json)
    if not options.no_app:
        _serve(options, started)
    return 0


def _names_nothing(options: argparse.Namespace) -> bool:
    """Return whether only the folder is named: then a review is continued."""
    return not (options.manifest or options.photos or any(getattr(options, name) for name in _BUILD_ONLY))


def _resumed(options: argparse.Namespace) -> Started:
    from curation.review.session import resume_review

    return resume_review(options.folder, reviewer=options.reviewer)


def _built(options: argparse.Namespace) -> Started:
    from curation.manifest.locate import load_manifest
    from curation.review.serving import find_place
    from curation.review.session import start_review

    manifest = load_manifest(options.manifest) if options.manifest else None
    images = _images(options, manifest)
    if not options.no_app:
        # Said before minutes of building rather than after.
        find_place(options.address, options.port)
    return start_review(
        options.folder,
        options.name or options.folder.absolute().name,
        images,
        stage=options.stage,
        manifest=manifest.digest if manifest else "",
        embeddings=_embeddings(options),
        reviewer=options.reviewer,
        rebuild=options.rebuild,
    )


def _images(options: argparse.Namespace, manifest: Manifest | None) -> ReviewImages:
    from curation.proposals.files import read_proposals
    from curation.review.images import arranged, part_images, source_images

    proposals = read_proposals(options.proposals).proposals if options.proposals else ()
    if options.only_proposed and not options.proposals:
        raise UsageError("--only-proposed needs proposals", hint="--proposals FILE")
    photos = _photos(options)
    if manifest is not None:
        _require_names(photos, [entry.name for entry in manifest.header.sources])
        sources = open_sources(options, slots_of(manifest.header))
        images = part_images(manifest, options.part, sources, photos, pool=options.pool)
    else:
        if options.part or not options.source:
            raise UsageError(
                "There is nothing to review",
                where="--part needs a manifest" if options.part else None,
                expected="a manifest, or --source NAME=PATH",
                hint="curation list",
            )
        slots = _own_slots(options)
        _require_names(photos, [slot.name for slot in slots])
        sources = open_sources(options, slots)
        images = source_images(sources, photos, pool=options.pool)
    return arranged(images, proposals, batch_size=options.batch_size, only_proposed=options.only_proposed)


def _own_slots(options: argparse.Namespace) -> list[SourceSlot]:
    """Return the sources of a review without manifest: ``coco-val`` is of dataset ``coco``."""
    from curation.benchmarks.benchmark import SourceSlot
    from curation.ids import ImageId

    slots = []
    for text in options.source:
        name = text.partition("=")[0].partition("@")[0]
        dataset = name.partition("-")[0]
        ImageId(dataset, "0")
        slots.append(SourceSlot(name, dataset, "", False, ""))
    return slots


def _photos(options: argparse.Namespace) -> dict[str, PhotoFolder]:
    from curation.sources.photos import PhotoFolder

    folders: dict[str, PhotoFolder] = {}
    for text in options.photos:
        name, equals, folder = text.partition("=")
        name, folder = (name, folder) if equals else ("", text)
        if name in folders:
            raise UsageError("--photos names a source twice", where=f"--photos {text[:200]}")
        folders[name] = PhotoFolder(Path(folder))
    if not folders:
        raise UsageError(
            "A review needs the photos", expected="--photos NAME=DIR, or --photos DIR for all sources"
        )
    return folders


def _require_names(photos: Mapping[str, PhotoFolder], names: Sequence[str]) -> None:
    """Refuse photos of a source that there is not: every image would be left out for a slip of the pen."""
    for name in photos:
        if name and name not in names:
            raise UsageError(
                "--photos names a source that is not there",
                where=f"--photos {name[:80]}=…",
                expected=", ".join(names),
                hint="--photos DIR serves all sources",
            )


def _embeddings(options: argparse.Namespace) -> Embeddings | None:
    if not options.embeddings:
        return None
    from curation.similarity.store import open_embeddings

    return open_embeddings(options.embeddings)


def _start_lines(started: Started) -> list[str]:
    record = started.record
    how = "built" if started.built else "continued"
    progress = started.review.progress()
    return [
        f"Review {record.dataset!r} {how}: {record.images:,} images in {len(record.batches):,} batches, "
        f"{progress.decided:,} decided",
        f"Decisions log: {started.review.book.path}",
    ]


def _serve(options: argparse.Namespace, started: Started) -> None:
    """Keep the App open until Ctrl-C, or until the process is asked to terminate."""
    import signal
    import sys
    from contextlib import redirect_stdout

    from curation.review.serving import OPENS, find_place, launch

    # A shell without job control starts background programs with Ctrl-C ignored: SIGTERM ends them as cleanly.
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    place = find_place(options.address, options.port)
    if not place.is_local:
        warn(f"the App listens at {place.address}:{place.port}: {OPENS}")
    # FiftyOne prints of its connections where the result stands.
    with redirect_stdout(sys.stderr):
        session: Any = launch(started.review.dataset, place, remote=options.remote)
        print(f"The App is at {session.url}; Ctrl-C ends it, nothing is lost", file=sys.stderr)
        try:
            session.wait(-1)
        except KeyboardInterrupt:
            print("\nthe App is closed; every verdict is in the log", file=sys.stderr)
        finally:
            session.close()


def _status(options: argparse.Namespace) -> int:
    from curation.review.progress import folder_progress

    record, progress = folder_progress(options.folder, also=options.also)
    data = {
        "dataset": record.dataset,
        "stage": record.stage,
        "manifest": record.manifest,
        **progress.as_data(),
    }
    emit(data, _status_lines(progress), as_json=options.json)
    return 0


def _status_lines(progress: Progress) -> list[str]:
    from curation.review.progress import kappa_text

    verdicts = ", ".join(f"{word} {count}" for word, count in progress.verdicts.items())
    lines = [
        f"{progress.decided:,} of {progress.images:,} images decided{f': {verdicts}' if verdicts else ''}",
        "",
    ]
    reviewers = tuple(
        (
            one.reviewer or "unnamed",
            f"{one.images:,}",
            ", ".join(f"{word} {n}" for word, n in one.verdicts.items()),
        )
        for one in progress.reviewers
    )
    pairs = tuple(
        (f"{one.first}, {one.second}", f"{one.images:,}", f"{one.same:,}", kappa_text(one.kappa))
        for one in progress.agreement
    )
    waiting = tuple(
        (one.batch, f"{one.decided:,} of {one.images:,}", f"{one.conflicts:,}")
        for one in progress.batches
        if one.decided < one.images or one.conflicts
    )
    for title, columns, rows in (
        ("Reviewers", ("reviewer", "images", "verdicts"), reviewers),
        ("Agreement", ("reviewers", "both", "same", "Cohen's kappa"), pairs),
        ("Batches with work left", ("batch", "decided", "conflicts"), waiting),
    ):
        if rows:
            lines += table_lines(Table(title, columns, rows))
    if progress.fleiss:
        lines.append(f"Fleiss' kappa of all reviewers: {kappa_text(progress.fleiss)}")
    if progress.strangers:
        lines.append(f"{progress.strangers:,} decided images are not under review any more")
    return lines


def _export(options: argparse.Namespace) -> int:
    from curation.review.review_folder import LOG_FILE, export_decisions, read_record

    read_record(options.folder)
    written = export_decisions(options.folder / LOG_FILE, options.out)
    data = {"path": str(written.path), "rows": written.rows, "actions": written.actions, "log": written.log}
    actions = ", ".join(f"{action} {count}" for action, count in written.actions.items())
    emit(
        data,
        [f"{written.rows:,} decisions written to {written.path}: {actions or 'none stands'}"],
        as_json=options.json,
    )
    return 0
