"""The order of images in the authors' wilderness files, where it is not that of our lists."""

from __future__ import annotations

import numpy as np

from curation.benchmarks.elephant.lists import known_images
from curation.benchmarks.elephant.walks import image_numbers
from curation.benchmarks.setorder import difference_order
from curation.manifest.manifest import Manifest
from curation.sources.source import Int64s, Source


def notebook_order(manifest: Manifest, part: str, source: Source) -> Int64s:
    """Return the places in a part's list, in the order in which the authors' file of that part holds them.

    Where the manifest's rule takes images in CPython's set order, a part that is the beginning of that order (all of
    the wilderness, or WR1) stands in it. Every other part stands in the order of its list.
    """
    ids = manifest.ids(part)
    as_listed = np.arange(len(ids))
    orders = manifest.header.rule.parameters.get("orders", ())
    if not isinstance(orders, tuple) or "cpython_set" not in orders:
        return as_listed
    shows_known = known_images(source, manifest.header.classes)
    walk = difference_order(image_numbers(source), shows_known)[: len(ids)]
    place = {image: position for position, image in enumerate(ids)}
    places = [place.get(image, -1) for image in source.image_ids[walk].tolist()]
    return as_listed if -1 in places or len(places) < len(ids) else np.array(places, np.int64)
