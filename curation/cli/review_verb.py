"""``curation review``: look at images in the FiftyOne App, and record verdicts that can be replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.cli.options import SourceOptions, photo_folders
from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import OutputFile, OwnFolder
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest
    from curation.review.images import ReviewImages
    from curation.review.progress import Progress
    from curation.review.session import Started
    from curation.similarity.embeddings import Embeddings
    from curation.sources.photos import PhotoFolder

_BUILD_ONLY = ("source", "part", "proposals", "embeddings")


Folder = Annotated[Path, OwnFolder(), "DIR"]


@dataclass(frozen=True)
class Options(SourceOptions):
    """What is reviewed, and how.

    Attributes
    ----------
    manifest
        a manifest, by folder or name; without one, all images of the sources
    photos
        the photos of a source, or of all (repeatable)
    part
        review this part only (repeatable; default: all)
    proposals
        from `curation propose`
    only_proposed
        leave out images that nothing was proposed for
    embeddings
        from `curation embed`, to sort by similarity
    stage
        what the verdicts are for: images of a split, candidates for one, or the automatic stage's
        exceptions
    pool
        what decisions speak of (default: the part)
    name
        name of the FiftyOne dataset (default: that of the folder)
    batch_size
        images of a batch (default: 100)
    reviewer
        who reviews; the App lets one change it
    rebuild
        build the dataset anew and replay the log
    no_app
        prepare the dataset and leave
    remote
        serve the App without opening a browser here
    port
        port of the App, an error where something answers; next: the first free one from the default on
        (default: FiftyOne's, 5151)
    folder
        folder of the review and its log
    address
        listen at this address instead of 127.0.0.1, which this machine alone reaches; CAUTION:
        everybody who reaches that address can read every file that this user can read, and give
        verdicts: the App has no password
    """

    manifest: str | None = None
    _: KW_ONLY
    folder: Folder
    photos: tuple[Annotated[str, "[NAME=]DIR"], ...] = ()
    part: tuple[Annotated[str, "PART"], ...] = ()
    proposals: Path | None = None
    only_proposed: bool = False
    embeddings: Annotated[Path | None, "DIR"] = None
    stage: Literal["manual", "candidate", "auto_override"] = "manual"
    pool: Annotated[str, "NAME"] = ""
    name: str = ""
    batch_size: int = 100
    reviewer: Annotated[str, "NAME"] = ""
    rebuild: bool = False
    no_app: bool = False
    remote: bool = False
    port: Annotated[str | None, "N"] = None
    address: Annotated[str | None, "HOST"] = None


def start(options: Options) -> Answer:
    """Make or continue a review and open the App."""
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
    serve = None if options.no_app else partial(_serve, options, started)
    return Answer(data, _start_lines(started), then=serve)


def _names_nothing(options: Options) -> bool:
    """Return whether only the folder is named: then a review is continued."""
    return not (options.manifest or options.photos or any(getattr(options, name) for name in _BUILD_ONLY))


def _resumed(options: Options) -> Started:
    from curation.review.session import resume_review

    return resume_review(options.folder, reviewer=options.reviewer)


def _built(options: Options) -> Started:
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


def _images(options: Options, manifest: Manifest | None) -> ReviewImages:
    from curation.proposals.proposal import read_proposals
    from curation.review.images import arranged, part_images, source_images
    from curation.sources.slots import named_slots

    proposals = read_proposals(options.proposals).proposals if options.proposals else ()
    if options.only_proposed and not options.proposals:
        raise UsageError("--only-proposed needs proposals", hint="--proposals FILE")
    photos = photo_folders(options.photos, "--photos")
    if not photos:
        raise UsageError("A review needs the photos", expected="--photos NAME=DIR, or --photos DIR for all sources")
    if manifest is not None:
        _require_names(photos, [entry.name for entry in manifest.header.sources])
        sources = options.open(manifest.slots)
        images = part_images(manifest, options.part, sources, photos, pool=options.pool)
    else:
        if options.part or not options.source:
            raise UsageError(
                "There is nothing to review",
                where="--part needs a manifest" if options.part else None,
                expected="a manifest, or --source NAME=PATH",
                hint="curation list",
            )
        slots = named_slots(options.sources, parts=False)
        _require_names(photos, [slot.name for slot in slots])
        sources = options.open(slots)
        images = source_images(sources, photos, pool=options.pool)
    return arranged(images, proposals, batch_size=options.batch_size, only_proposed=options.only_proposed)


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


def _embeddings(options: Options) -> Embeddings | None:
    if not options.embeddings:
        return None
    from curation.similarity.embeddings import open_embeddings

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


def _serve(options: Options, started: Started) -> None:
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


def status(*, folder: Folder, also: tuple[Path, ...] = ()) -> Answer:
    """Tell progress and agreement, without a database.

    Parameters
    ----------
    folder
        folder of the review and its log
    also
        decisions of another reviewer, taken from another review of the same images (repeatable)
    """
    from curation.review.progress import folder_progress

    record, progress = folder_progress(folder, also=also)
    data = {
        "dataset": record.dataset,
        "stage": record.stage,
        "manifest": record.manifest,
        **progress.as_data(),
    }
    return Answer(data, _status_lines(progress))


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


def export(*, folder: Folder, out: Annotated[Path, OutputFile()]) -> Answer:
    """Write the standing decisions as a file.

    Parameters
    ----------
    folder
        folder of the review and its log
    out
        a .jsonl or .csv file
    """
    from curation.review.review_folder import LOG_FILE, export_decisions, read_record

    read_record(folder)
    written = export_decisions(folder / LOG_FILE, out)
    data = {"path": str(written.path), "rows": written.rows, "actions": written.actions, "log": written.log}
    actions = ", ".join(f"{action} {count}" for action, count in written.actions.items())
    return Answer(data, [f"{written.rows:,} decisions written to {written.path}: {actions or 'none stands'}"])


METAVAR = "start|status|export"
COMMANDS = {"start": start, "status": status, "export": export}
