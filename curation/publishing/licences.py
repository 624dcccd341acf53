"""What may be passed on: the terms of each dataset, as data, and the gate that labels and photos must pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from curation.errors import PublishError
from curation.manifest.header import Header, SourceEntry
from curation.sources.datasets import family

Permission = Literal["yes", "no", "unstated"]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one dataset.

    Attributes
    ----------
    annotations, media : str
        SPDX identifier of the licence, else its name.
    labels : {"yes", "no", "unstated"}
        Whether boxes and class labels may be passed on. ``unstated``: the owner names no licence for them; they are
        written where the publisher gives the source, and the card says so.
    photos : bool
        Whether the photos may be passed on.
    url : str
        Where the terms are stated.
    reason : str
        Why photos, or labels, may not be passed on.
    creator : str
        Whom the licence of the annotations asks to name, ``""`` where it asks for none.
    """

    annotations: str
    media: str
    labels: Permission
    photos: bool
    url: str
    reason: str
    creator: str = ""


_NO_LICENCE = "the authors state no licence for their lists"
TERMS: Mapping[str, Terms] = {
    "coco": Terms(
        annotations="CC-BY-4.0",
        media="Flickr terms of use, photo by photo",
        labels="yes",
        photos=False,
        url="https://cocodataset.org/#termsofuse",
        reason="the COCO consortium does not own the copyright of the photos, which stay under Flickr's terms",
        creator="COCO Consortium",
    ),
    "voc": Terms(
        annotations="not stated",
        media="Flickr terms of use, photo by photo",
        labels="unstated",
        photos=False,
        url="http://host.robots.ox.ac.uk/pascal/VOC/",
        reason="the photos are from Flickr and stay under its terms",
    ),
    "openimages": Terms(
        annotations="CC-BY-4.0",
        media="listed as CC-BY-2.0, not warranted",
        labels="yes",
        photos=False,
        url="https://storage.googleapis.com/openimages/web/factsfigures_v7.html",
        reason="the photos are listed as CC BY 2.0 without warranty: each is to be checked, and its author named",
        creator="Google LLC",
    ),
    "imagenet": Terms(
        annotations="file names and class labels are facts",
        media="ImageNet terms of access",
        labels="yes",
        photos=False,
        url="https://www.image-net.org/download.php",
        reason="the terms of access allow non-commercial research and education to those who were granted access",
    ),
    "cub200": Terms(
        annotations="not stated",
        media="non-commercial research and education",
        labels="unstated",
        photos=False,
        url="https://www.vision.caltech.edu/datasets/cub_200_2011/",
        reason="the photos may be used for non-commercial research and education alone, and are not the authors' own",
    ),
    "mtsd": Terms(
        annotations="CC-BY-NC-SA-4.0",
        media="CC-BY-NC-SA-4.0",
        labels="no",
        photos=False,
        url="https://www.mapillary.com/dataset/trafficsign",
        reason="CC BY-NC-SA 4.0 binds whoever passes the data on to non-commercial use and to the same licence",
    ),
    "bdd100k": Terms(
        annotations="BDD100K licence",
        media="BDD100K licence",
        labels="no",
        photos=False,
        url="https://doc.bdd100k.com/license.html",
        reason="the licence allows education, research and not-for-profit use alone",
    ),
    "objects365": Terms(
        annotations="CC-BY-4.0",
        media="Flickr terms of use, photo by photo",
        labels="yes",
        photos=False,
        url="https://www.objects365.org/download.html",
        reason="the Objects365 consortium does not own the copyright of the photos, which stay under Flickr's terms",
        creator="Objects365 Consortium",
    ),
    **{
        lists: Terms(
            annotations="not stated",
            media="none: image ids alone",
            labels="no",
            photos=False,
            url=url,
            reason=reason,
        )
        for lists, url, reason in (
            ("ore_lists", "https://github.com/JosephKJ/OWOD", _NO_LICENCE),
            ("reowod_lists", "https://github.com/RE-OWOD/RE-OWOD", _NO_LICENCE),
            ("ow_detr_lists", "https://github.com/akshitac8/OW-DETR", _NO_LICENCE),
            (
                "prob_lists",
                "https://github.com/orrzohar/PROB",
                "the licence of the repository, Apache-2.0, says nothing of the lists of other data sets' images",
            ),
        )
    },
}
"""By family of datasets (see `curation.sources.datasets.family`)."""

STATED: Mapping[str, bool] = {
    "Apache-2.0": True,
    "CC-BY-2.0": True,
    "CC-BY-3.0": True,
    "CC-BY-4.0": True,
    "CC-BY-NC-4.0": False,
    "CC-BY-NC-ND-4.0": False,
    "CC-BY-NC-SA-4.0": False,
    "CC-BY-ND-4.0": False,
    "CC-BY-SA-4.0": True,
    "CC0-1.0": True,
    "MIT": True,
    "ODC-By-1.0": True,
    "PDDL-1.0": True,
}
"""Licences that a publisher can state for data of his own, and whether they let it be passed on freely."""

_UNKNOWN = Terms("not stated", "not stated", "unstated", photos=False, url="", reason="no licence is stated")


def terms_of(entry: SourceEntry, stated: Mapping[str, str] | None = None) -> Terms:
    """Return the terms of a source: those of the table for a dataset, or an id namespace, that it knows.

    Parameters
    ----------
    stated : mapping of str to str, optional
        SPDX identifiers by the name of the source, for the publisher's own data. No statement changes the terms of a
        dataset of the table.

    Raises
    ------
    PublishError
        The table knows the dataset, or the licence is not one of `STATED`.
    """
    known = TERMS.get(family(entry.dataset)) or TERMS.get(family(entry.namespace))
    licence = (stated or {}).get(entry.name)
    if licence is None:
        return known or _UNKNOWN
    if known is not None:
        raise PublishError(
            "The terms of this dataset are its owner's to state",
            where=f"--licence {entry.name}={licence[:60]}",
            expected=f"annotations {known.annotations}, photos {known.media} ({known.url})",
        )
    if licence not in STATED:
        raise PublishError(
            "The licence is not one that this program knows",
            where=f"--licence {entry.name}",
            expected=", ".join(STATED),
            found=ascii(licence[:60]),
        )
    free = STATED[licence]
    return Terms(
        annotations=licence,
        media=licence,
        labels="yes" if free else "no",
        photos=free,
        url=f"https://spdx.org/licenses/{licence}.html",
        reason="" if free else f"{licence} forbids commercial use or changes",
    )


def require_labels(entry: SourceEntry, terms: Terms) -> None:
    """Raise `PublishError` where the labels of a source may not be passed on."""
    if terms.labels == "no":
        raise PublishError(
            "The annotations of this source may not be passed on, so no boxes and no labels of it are written",
            where=f"--source {entry.name} ({entry.dataset})",
            found=f"{terms.annotations}: {terms.reason} ({terms.url})",
            hint=f"leave out --source {entry.name}: the ids alone are published",
        )


def require_photos(header: Header, stated: Mapping[str, str] | None = None) -> None:
    """Raise `PublishError` unless the photos of every source of a manifest may be passed on."""
    refused = []
    for entry in header.sources:
        terms = terms_of(entry, stated)
        if not terms.photos:
            refused.append(f"{entry.name}: {terms.reason}" + (f" ({terms.url})" if terms.url else ""))
    if refused:
        raise PublishError(
            "Photos are published only where every source's licence allows it",
            where=f"{header.name} {header.version}",
            found="; ".join(refused),
            hint="leave out --media: whoever has the photos resolves the ids against them",
        )
