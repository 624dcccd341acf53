"""`load`: a manifest from this disk, or from the hub."""

from __future__ import annotations

import os
import re
from pathlib import Path

from curation.core.arguments import checked
from curation.core.errors import ManifestError, MissingExtraError, PublishError, UsageError
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest, read_manifest

_PUBLISHED = re.compile(r"[\w.-]+/[\w.-]+@[0-9]+\.[0-9]+\.[0-9]+")


@checked
def load(target: str | Path) -> Manifest:
    """Return a manifest, every digest checked.

    Parameters
    ----------
    target : str or Path
        Its folder, its name (``elephant/val2017``, ``NAME@VERSION``), or ``ORG/NAME@VERSION`` of a publication with one
        manifest on the hub, which is pulled into the cache.

    Raises
    ------
    ManifestError
        There is none, or the files are not those that the digests stand for.

    Examples
    --------
    >>> import curation
    >>> curation.load("elephant/val2017")
    <Manifest elephant/val2017 1.0.0, regenerated, 3 parts, 3 with lists, sha256:343e1b28cb1d>
    """
    try:
        return load_manifest(target)
    except ManifestError:
        if Path(str(target)).exists() or not _PUBLISHED.fullmatch(str(target)):
            raise
        manifest = _from_hub(str(target))
        if manifest is None:
            raise
        return manifest


def cache_folder() -> Path | None:
    """Return ``$CURATION_CACHE``, else the user's place for caches; None without a home.

    On Linux that is ``curation`` below ``$XDG_CACHE_HOME`` or ``~/.cache``; elsewhere what `platformdirs` says.
    """
    if folder_name := os.environ.get("CURATION_CACHE"):
        return Path(folder_name)
    from platformdirs import user_cache_path

    folder = user_cache_path("curation", appauthor=False)
    return folder if folder.is_absolute() else None


def _from_hub(target: str) -> Manifest | None:
    """Return the manifest of a publication, None if the hub does not answer or does not have it."""
    from curation.publishing.hub import pull

    name, _, version = target.partition("@")
    cache = cache_folder()
    if cache is None:
        return None
    folder = cache / "publications" / name.replace("/", "--") / version
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            pull(target, folder)
    except (MissingExtraError, PublishError):
        return None
    headers = sorted(folder.glob("**/manifest.json"))
    if len(headers) != 1:
        raise UsageError(
            "The publication does not hold one manifest",
            where=target,
            found=f"{len(headers)}",
            hint=f"curation pull {target} --out DIR",
        )
    return read_manifest(headers[0])
