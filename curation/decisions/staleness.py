"""Stale decisions: those made on another version of a manifest, or on images that it no longer lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from curation.decisions.decision import Decision
from curation.manifest.header import Header
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Staleness:
    """What of some decisions does not fit a manifest. Images are sorted, each once.

    Attributes
    ----------
    gone : tuple of str
        Images that stand in no part that the decision speaks of, nor, for candidates, in any part or source at hand.
    unheard : dict of str to int
        Decisions by data set that speak of no part of the manifest.
    other_manifests : dict of str to int
        Decisions by the digest of the manifest that they were made on, where it is another one.
    """

    gone: tuple[str, ...]
    unheard: dict[str, int]
    other_manifests: dict[str, int]

    def __bool__(self) -> bool:
        """Whether anything is stale."""
        return bool(self.gone or self.unheard or self.other_manifests)

    def notes(self) -> list[str]:
        """Return one sentence for each kind of staleness."""
        told = []
        if self.gone:
            more = ", …" if len(self.gone) > _SHOWN else ""
            first = ", ".join(self.gone[:_SHOWN])
            told.append(
                f"{len(self.gone)} images are in no part that their decisions speak of: {first}{more}."
            )
        told += [f"{n} decisions speak of {name!r}, which is no part." for name, n in self.unheard.items()]
        told += [f"{n} decisions were made on {digest}." for digest, n in self.other_manifests.items()]
        return told


def find_stale(
    manifest: Manifest, decisions: Iterable[Decision], sources: Mapping[str, Source] | None = None
) -> Staleness:
    """Return which decisions are stale on a manifest.

    Parameters
    ----------
    sources : mapping of str to Source, optional
        Where candidates that stand in no part may be.
    """
    rows = list(decisions)
    listed = {name: set(ids) for name, ids in manifest.lists.items()}
    anywhere = set().union(*listed.values())
    spoken = {dataset: parts_spoken_of(manifest.header, dataset) for dataset in {one.dataset for one in rows}}
    gone = set()
    for one in rows:
        places = [listed.get(part, set()) for part in spoken[one.dataset]]
        is_candidate = one.stage == "candidate" and one.image_id in anywhere
        if spoken[one.dataset] and not is_candidate and not any(one.image_id in place for place in places):
            gone.add(one)
    found = images_in(sources or {}, {one.image_id for one in gone if one.stage == "candidate"})
    unheard = Counter(one.dataset for one in rows if not spoken[one.dataset])
    others = Counter(one.manifest for one in rows if one.manifest not in ("", manifest.digest))
    return Staleness(
        gone=tuple(sorted({one.image_id for one in gone} - set(found))),
        unheard=dict(sorted(unheard.items())),
        other_manifests=dict(sorted(others.items())),
    )


def parts_spoken_of(header: Header, dataset: str) -> tuple[str, ...]:
    """Return the parts that a decision's `dataset` means, in the order of the header.

    The part of that name; else the parts of a pool (``coco-near`` and ``coco-far`` of ``coco``); else those with a
    source of that data set or namespace. ``""`` means all.
    """
    names = [part.name for part in header.parts]
    if dataset in names:
        return (dataset,)
    if not dataset:
        return tuple(names)
    if pool := [name for name in names if name.startswith(f"{dataset}-")]:
        return tuple(pool)
    slots = {one.name for one in header.sources if dataset in (one.dataset, one.namespace)}
    return tuple(part.name for part in header.parts if slots & set(part.sources))


def images_in(sources: Mapping[str, Source], images: Iterable[str]) -> dict[str, str]:
    """Return for those of some images that a source holds the name of the first that does."""
    asked = set(images)
    found: dict[str, str] = {}
    for name, source in sources.items():
        prefix = f"{source.namespace}:"
        if any(image.startswith(prefix) for image in asked):
            held = asked.intersection(f"{prefix}{native}" for native in source.images.native.tolist())
            found |= {image: name for image in sorted(held) if image not in found}
    return found
