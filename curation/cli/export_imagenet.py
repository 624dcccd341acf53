"""``curation export`` of image classification: the authors' CSV files, and folders of links by class."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import emit
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest
    from curation.sources.source import Source


def write_links(
    options: argparse.Namespace, manifest: Manifest, sources: Mapping[str, Source], summary: Mapping[str, Any]
) -> int:
    """Write ``--format imagefolder`` and report it; return the exit status."""
    from curation.benchmarks.imagenet.layout import labelled_images, write_imagefolder

    if len(options.images or ()) != 1:
        # A manifest about boxes is the likelier mistake, and has the better message.
        labelled_images(manifest, options.part[0], sources)
        raise UsageError(
            "--format imagefolder needs the folder of the photos", expected="--images ROOT, once"
        )
    root = Path(options.images[0])
    counts = write_imagefolder(manifest, options.part, sources, root, options.out, summary=summary)
    lines = [f"{count} links in {name}" for name, count in counts.items()]
    emit(
        {**summary, "counts": counts, "out": str(options.out)},
        [*lines, f"written to {options.out}"],
        as_json=options.json,
    )
    return 0
