"""What a label view says of group boxes, marked objects and ignored classes when open-set detection is scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from curation.manifest.manifest import Manifest

Crowd = Literal["ignore", "keep", "drop"]
CROWD: dict[Crowd, str] = {
    "ignore": "group boxes are ignored regions",
    "keep": "group boxes are ordinary objects",
    "drop": "group boxes are removed",
}


@dataclass(frozen=True, slots=True)
class TruthView:
    """How objects of a truth are treated beside their class's being known, unknown or outside.

    Attributes
    ----------
    crowd : {"ignore", "keep", "drop"}
        Group boxes; see `CROWD`.
    ignored : tuple of str
        Classes whose objects are ignored regions of unknown, whatever becomes of other outside classes: inner nodes.
    marked_ignored : bool
        Whether objects that the truth marks ``ignore`` or ``difficult`` are ignored regions of their class; else they
        are ordinary, as COCO knows no such mark. An exported truth marks so what its view ignores: drawings, say.
    """

    crowd: Crowd = "ignore"
    ignored: tuple[str, ...] = ()
    marked_ignored: bool = False


def truth_view(manifest: Manifest, part: str) -> TruthView:
    """Return the view of a manifest's part as the evaluation applies it."""
    view = manifest.part(part).view
    ignored = [entry.name for entry in manifest.header.classes if getattr(view, entry.role) == "ignore"]
    crowd: Crowd = "keep" if view.crowd == "keep" else "drop" if view.crowd == "drop" else "ignore"
    return TruthView(crowd, tuple(ignored), "ignore" in (view.difficult, view.depiction))
