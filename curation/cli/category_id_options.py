"""``--category-ids``: whose numbering of the classes detections use, the truth file's or the manifest's."""

from __future__ import annotations

import argparse

from curation.errors import UsageError


def add_category_ids(command: argparse.ArgumentParser) -> None:
    """Declare ``--category-ids``."""
    command.add_argument(
        "--category-ids",
        choices=("truth", "manifest"),
        help="with --manifest, whose category ids detections use: the truth file's (default where it has ids), or the "
        "manifest's indices",
    )


def require_manifest_for_ids(options: argparse.Namespace) -> None:
    """Refuse ``--category-ids`` where nothing but the truth numbers the classes."""
    if options.category_ids and (not options.manifest or options.classes):
        raise UsageError(
            "--category-ids chooses between the ids of a manifest and of the truth",
            expected="--manifest MANIFEST, without --classes, beside it",
        )
