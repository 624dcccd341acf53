"""Parts of an ImageNet protocol as folders of links to the photos: ``PART/ROLE/WNID/NAME``.

``ImageFolder(out/train/known)`` then numbers the known classes as the protocol does; negative and unknown images stand
apart, since a loader would give them labels of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.errors import ExportError, MissingFileError
from curation.ledger import require_new_folder
from curation.manifest.manifest import Manifest
from curation.publishing.formats.plan import SUMMARY_FILE, json_bytes
from curation.publishing.imagenet_csv import LabelledImages, labelled_images
from curation.sources.imagenet import part_folder
from curation.sources.source import Source
from curation.storage import publishing_folder


def write_imagefolder(
    manifest: Manifest,
    parts: Sequence[str],
    sources: Mapping[str, Source],
    root: Path,
    out: Path,
    *,
    summary: Mapping[str, Any],
) -> dict[str, int]:
    """Write a tree of symbolic links and return how many there are by part and role.

    Parameters
    ----------
    root : Path
        ImageNet's root, or the folder of a part. No link leads outside it.
    out : Path
        A folder that does not exist or is empty.
    summary : mapping
        Goes into ``_export.json``.

    Raises
    ------
    ExportError
        A photo is not there, or is itself a link that leads outside the root; see also
        `curation.publishing.imagenet_csv.plan_imagenet_csv`.
    MissingFileError
        The root is no folder.
    UsageError
        Something stands at `out` already.
    """
    require_new_folder(out)
    if not root.is_dir():
        raise MissingFileError("The folder of the photos does not exist", where=str(root))
    images = {part: labelled_images(manifest, part, sources) for part in parts}
    targets = {part: _targets(one, root.resolve(), part) for part, one in images.items()}
    counts = _counts(images)
    with publishing_folder(out) as folder:
        for part, one in images.items():
            _link(folder / part, one, targets[part])
        (folder / SUMMARY_FILE).write_bytes(json_bytes({**summary, "counts": counts}))
    return counts


def _counts(images: Mapping[str, LabelledImages]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part, one in images.items():
        for role in one.roles:
            counts[f"{part}/{role}"] = counts.get(f"{part}/{role}", 0) + 1
    return counts


def _targets(images: LabelledImages, root: Path, part: str) -> list[str]:
    """Return the place of each photo below the root: in its class's folder, or in a flat one."""
    folder = str(part_folder(root, images.folder))
    found = []
    missing = []
    for wnid, name in zip(images.classes, images.names, strict=True):
        places = (f"{folder}/{wnid}/{name}", f"{folder}/{name}")
        place = next((one for one in places if os.path.isfile(one)), "")  # noqa: PTH113 (a million photos)
        if not place:
            missing.append(f"{wnid}/{name}")
        elif not os.path.realpath(place).startswith(f"{root}{os.sep}"):
            raise ExportError(
                "A photo is a link that leads outside the folder of the photos",
                where=place,
                expected=f"below {root}",
            )
        found.append(place)
    if missing:
        raise ExportError(
            f"{len(missing)} of the {len(found)} photos of part {part!r} are not there",
            where=folder,
            expected=missing[0],
            hint="--images ROOT: the folder that holds train and val",
        )
    return found


def _link(folder: Path, images: LabelledImages, targets: Sequence[str]) -> None:
    from tqdm import tqdm

    made: set[tuple[str, str]] = set()
    rows = zip(images.roles, images.classes, images.names, targets, strict=True)
    for role, wnid, name, target in tqdm(rows, total=len(targets), unit=" links", disable=None):
        if (role, wnid) not in made:
            made.add((role, wnid))
            (folder / role / wnid).mkdir(parents=True)
        os.symlink(target, f"{folder}/{role}/{wnid}/{name}")  # noqa: PTH211 (a million links)
