"""Label views on six objects whose fate is written out by hand."""

import dataclasses
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from curation.core.errors import ManifestError, MissingListError, PresenceOnlyError
from curation.manifest.header import LabelView
from curation.manifest.manifest import Manifest
from curation.manifest.views import ROLES, count_annotated, locate_images, select_objects, view_objects
from curation.sources.source import Source

Make = Callable[..., Manifest]


def rows(manifest: Manifest, part: str, source: Source) -> list[tuple[object, ...]]:
    """Return (id, class, role, category id, ignored) of each object in order."""
    objects = view_objects(manifest, part, {"toy": source})
    ids = manifest.ids(part)
    classes = manifest.header.classes
    return [
        (ids[image], classes[label].name, ROLES[role], category, ignore)
        for image, label, role, category, ignore in zip(
            objects.image.tolist(),
            objects.label.tolist(),
            objects.role.tolist(),
            objects.category_id.tolist(),
            objects.ignore.tolist(),
            strict=True,
        )
    ]


def with_view(manifest: Manifest, view: LabelView) -> Manifest:
    parts = tuple(msgspec.structs.replace(part, view=view) for part in manifest.header.parts)
    return Manifest(header=msgspec.structs.replace(manifest.header, parts=parts), lists=manifest.lists)


def test_default_view(manifest: Manifest, source: Source) -> None:
    assert rows(manifest, "closed", source) == [
        ("toy:1", "cat", "known", 1, False),
        ("toy:1", "aeroplane", "known", 2, True),  # by alias; difficult
        ("toy:1", "cow", "negative", 3, False),
        ("toy:2", "elephant", "unknown", -1, False),
        ("toy:2", "elephant", "unknown", -1, True),  # crowd
    ]
    assert rows(manifest, "rest", source) == [("toy:4", "smudge", "ignored", 4, True)]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (LabelView(known="drop"), [("cow", 3, False), ("elephant", -1, False), ("elephant", -1, True)]),
        (
            LabelView(unknown="drop", negative="rename:unknown", difficult="keep"),
            [("cat", 1, False), ("aeroplane", 2, False), ("cow", -1, False)],
        ),
        (
            LabelView(crowd="drop", difficult="drop", unknown="ignore"),
            [("cat", 1, False), ("cow", 3, False), ("elephant", -1, True)],
        ),
        (
            LabelView(crowd="keep", difficult="keep"),
            [
                ("cat", 1, False),
                ("aeroplane", 2, False),
                ("cow", 3, False),
                ("elephant", -1, False),
                ("elephant", -1, False),
            ],
        ),
    ],
)
def test_other_views(
    manifest: Manifest, source: Source, view: LabelView, expected: list[tuple[str, int, bool]]
) -> None:
    found = rows(with_view(manifest, view), "closed", source)
    assert [(name, category, ignore) for _, name, _, category, ignore in found] == expected


def test_order_of_annotations_changes_no_count(manifest: Manifest, source: Source) -> None:
    assert source.objects is not None
    order = np.array([5, 3, 0, 4, 1, 2])
    stated = {field.name: getattr(source.objects, field.name) for field in dataclasses.fields(source.objects)}
    columns = {name: column[order] for name, column in stated.items() if column is not None}
    shuffled = Source(**{**vars(source), "objects": type(source.objects)(**columns)})
    assert sorted(rows(manifest, "closed", shuffled)) == sorted(rows(manifest, "closed", source))


def test_two_sources_of_one_part(make_manifest: Make, source: Source) -> None:
    base = make_manifest({"both": ("toy:2", "zoo:2")})
    part = msgspec.structs.replace(base.header.parts[0], sources=("toy", "zoo"))
    merged = Manifest(header=msgspec.structs.replace(base.header, parts=(part,)), lists=base.lists)
    zoo = Source(**{**vars(source), "namespace": "zoo"})
    objects = view_objects(merged, "both", {"toy": source, "zoo": zoo})
    assert objects.image.tolist() == [0, 0, 1, 1]
    assert objects.source.tolist() == [0, 0, 1, 1]
    assert objects.index.tolist() == [1, 3, 1, 3]


def test_errors(manifest: Manifest, make_manifest: Make, source: Source) -> None:
    with pytest.raises(ManifestError, match="no such part"):
        view_objects(manifest, "open", {"toy": source})
    with pytest.raises(ManifestError, match="not given"):
        view_objects(manifest, "closed", {})
    with pytest.raises(ManifestError, match="2 of the 3 images") as caught:
        view_objects(make_manifest({"closed": ("toy:1", "toy:7", "zoo:1")}), "closed", {"toy": source})
    assert "toy:7" in str(caught.value)
    fewer = make_manifest(classes=manifest.header.classes[:3])
    with pytest.raises(ManifestError, match="without a role") as caught:
        view_objects(fewer, "closed", {"toy": source})
    assert "'elephant'" in str(caught.value)
    presence = Source(**{**vars(source), "objects": None, "presence": np.array([[0, 1]], np.int32)})
    with pytest.raises(PresenceOnlyError):
        view_objects(manifest, "closed", {"toy": presence})
    with pytest.raises(MissingListError, match="declared"):
        view_objects(Manifest(header=manifest.header, lists={}), "closed", {"toy": source})


def test_a_repeated_image_holds_its_objects_once_at_its_first_line(make_manifest: Make, source: Source) -> None:
    once = make_manifest({"closed": ("toy:2", "toy:1", "toy:3")})
    repeated = make_manifest({"closed": ("toy:2", "toy:1", "toy:2", "toy:3", "toy:1", "toy:1")})
    assert len(locate_images(repeated, "closed", {"toy": source})) == 6
    assert rows(repeated, "closed", source) == rows(once, "closed", source)
    objects = view_objects(repeated, "closed", {"toy": source})
    assert sorted(set(objects.image.tolist())) == [0, 1]
    assert objects.annotated_images() == 2
    images = [locate_images(one, "closed", {"toy": source}) for one in (once, repeated)]
    classes, view = once.header.classes, LabelView()
    once, repeated = (select_objects(classes, view, one) for one in images)
    assert (once.counts(), once.annotated_images()) == (repeated.counts(), repeated.annotated_images())
    assert [count_annotated(one) for one in images] == [2, 2]
