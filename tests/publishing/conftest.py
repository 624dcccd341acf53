"""A hand-made manifest of two tiny sources whose integer ids collide: VOC 000009 and COCO 9."""

from __future__ import annotations

import pytest

from curation.manifest.manifest import Manifest
from curation.sources.source import Source
from tests.made_source import make_source
from tests.publishing.tiny_sources import make_manifest


@pytest.fixture
def sources() -> dict[str, Source]:
    voc = make_source(
        "voc2007",
        "voc2007",
        [("000009", 9, "000009.jpg", 50, 40), ("000012", 12, "000012.jpg", 60, 30)],
        [
            (1, "dog", (5, 6, 7, 8), {"id": 3}),
            (0, "cat", (0, 0, 50, 40), {"id": 4, "truncated": 1, "pose": "Left"}),
            (1, "cat", (10, 11, 12, 13), {"id": 5, "difficult": 1, "occluded": 1, "pose": "Frontal"}),
        ],
        {8: "cat", 12: "dog"},
    )
    coco = make_source(
        "coco",
        "coco",
        [
            ("000000000100", 100, "000000000100.jpg", 640, 480),
            ("000000000009", 9, "000000000009.jpg", 64, 48),
            ("000000000200", 200, "000000000200.jpg", 100, 100),
        ],
        [
            (0, "elephant", (0.1, 1 / 3, 10.25, 1e-3), {"id": 4, "area": 7.7}),
            (1, "elephant", (3, 4, 5, 6), {"id": 901, "crowd": 1, "area": 12.5}),
            (0, "elephant", (2.5, 3.5, 9, 9), {"id": 2}),
            (2, "cat", (1, 2, 3, 4), {"id": 9}),
        ],
        {22: "elephant", 17: "cat", 18: "hound"},
    )
    return {"voc": voc, "coco": coco}


@pytest.fixture
def manifest(sources: dict[str, Source]) -> Manifest:
    return make_manifest(
        {
            "closed": ("voc", ["voc2007:000009", "voc2007:000012"]),
            "wilderness": ("coco", ["coco:000000000009", "coco:000000000100"]),
        },
        sources,
        roles={"wilderness": "wilderness"},
    )
