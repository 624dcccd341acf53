"""What an export holds: parts of several sources, in the order of the list."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from curation.core.canonical import sha256_of_lines
from curation.core.errors import PresenceOnlyError
from curation.manifest.header import LabelView
from curation.manifest.manifest import Manifest
from curation.publishing.formats.content import gather
from curation.sources.source import Source
from tests.publishing.tiny_sources import make_manifest


@pytest.fixture
def mixed(manifest: Manifest) -> Manifest:
    """One part of both sources, in an order of its own."""
    ids = ("coco:000000000200", "voc2007:000012", "coco:000000000009")
    part = msgspec.structs.replace(
        manifest.header.parts[0],
        name="mixed",
        sources=("voc", "coco"),
        order="listed",
        images=3,
        sha256=sha256_of_lines(ids),
    )
    return Manifest(msgspec.structs.replace(manifest.header, parts=(part,)), {"mixed": ids})


def test_a_part_of_two_sources_keeps_its_order(mixed: Manifest, sources: dict[str, Source]) -> None:
    content = gather(mixed, ["mixed"], sources)
    assert content.images.ids == ("coco:000000000200", "voc2007:000012", "coco:000000000009")
    assert content.images.native.tolist() == ["000000000200", "000012", "000000000009"]
    assert content.images.widths.tolist() == [100, 60, 64]
    assert [content.slots[slot] for slot in content.images.slot] == ["coco", "voc", "coco"]
    assert content.objects.image.tolist() == [0, 1, 1, 2]
    assert content.objects.original.tolist() == ["cat", "dog", "cat", "elephant"]
    assert content.objects.original_number.tolist() == [17, 12, 8, 22]
    assert content.objects.numbers.tolist() == [9, 3, 5, 901]
    assert content.objects.boxes[:, 0].tolist() == [1, 5, 10, 3]
    assert content.objects.crowd.tolist() == [False, False, False, True]


def test_a_class_that_was_renamed_before_keeps_its_first_name(manifest: Manifest, sources: dict[str, Source]) -> None:
    objects = sources["voc"].objects
    object.__setattr__(objects, "original", np.array(["wolf", "", ""], object))
    assert gather(manifest, ["closed"], sources).objects.original.tolist() == ["cat", "wolf", "cat"]


def test_categories_are_those_with_an_index_of_their_own(mixed: Manifest, sources: dict[str, Source]) -> None:
    cat, dog, elephant = mixed.header.classes
    named = msgspec.structs.replace(elephant, index=9)
    for view, expected in ((LabelView(), ["cat", "dog"]), (LabelView(unknown="keep"), ["cat", "dog", "elephant"])):
        part = msgspec.structs.replace(mixed.header.parts[0], view=view)
        header = msgspec.structs.replace(mixed.header, classes=(named, dog, cat), parts=(part,))
        content = gather(Manifest(header, mixed.lists), ["mixed"], sources)
        assert [entry.name for entry in content.classes] == expected


def test_an_empty_part_is_empty(sources: dict[str, Source]) -> None:
    content = gather(make_manifest({"none": ("voc", [])}, sources), ["none"], sources)
    assert (len(content.images), len(content.objects), content.dropped) == (0, 0, 0)


def test_a_table_of_classes_has_no_boxes_to_export(manifest: Manifest, sources: dict[str, Source]) -> None:
    object.__setattr__(sources["voc"], "objects", None)
    with pytest.raises(PresenceOnlyError):
        gather(manifest, ["closed"], sources)
