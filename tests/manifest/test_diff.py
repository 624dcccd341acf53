"""The version step that each kind of change deserves, and an account of every id."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.manifest.diff import diff_manifests
from curation.manifest.header import ClassEntry, Figure, Header, LabelView
from curation.manifest.manifest import Manifest

Make = Callable[..., Manifest]
lists = st.dictionaries(
    st.sampled_from(["closed", "rest", "third"]),
    st.sets(st.sampled_from([f"toy:{number}" for number in range(9)])).map(lambda ids: tuple(sorted(ids))),
)


def altered(manifest: Manifest, change: Callable[[Header], Header]) -> Manifest:
    return Manifest(header=change(manifest.header), lists=manifest.lists)


def part_with(header: Header, **fields: object) -> Header:
    return msgspec.structs.replace(
        header, parts=(msgspec.structs.replace(header.parts[0], **fields), *header.parts[1:])
    )


def class_with(header: Header, place: int, **fields: object) -> Header:
    classes = list(header.classes)
    classes[place] = msgspec.structs.replace(classes[place], **fields)
    return msgspec.structs.replace(header, classes=tuple(classes))


def test_equal(manifest: Manifest) -> None:
    difference = diff_manifests(manifest, manifest)
    assert (difference.verdict, difference.changes, difference.stated_step) == ("none", (), "none")
    assert difference.reason == "equal digests"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda header: part_with(header, view=LabelView(difficult="keep")), "major"),
        (lambda header: part_with(header, role="val"), "major"),
        (lambda header: part_with(header, order="listed"), "major"),
        (lambda header: class_with(header, 0, role="negative"), "major"),
        (lambda header: class_with(header, 0, index=7), "major"),
        (lambda header: class_with(header, 1, aliases=()), "major"),
        (lambda header: msgspec.structs.replace(header, classes=header.classes[1:]), "major"),
        (lambda header: class_with(header, 1, aliases=("airplane", "plane")), "minor"),
        (
            lambda header: msgspec.structs.replace(
                header, classes=(*header.classes, ClassEntry(name="zebra", role="unknown", index=-1))
            ),
            "minor",
        ),
        (lambda header: part_with(header, selection="in other words"), "patch"),
        (lambda header: part_with(header, annotated_images=1), "patch"),
        (lambda header: msgspec.structs.replace(header, title="Another"), "patch"),
        (lambda header: msgspec.structs.replace(header, notes=("a",)), "patch"),
        (lambda header: msgspec.structs.replace(header, classes=header.classes[::-1]), "patch"),
        (lambda header: msgspec.structs.replace(header, sources=header.sources[:0]), "patch"),
        (lambda header: msgspec.structs.replace(header, parts=header.parts[::-1]), "patch"),
        (
            lambda header: msgspec.structs.replace(header, figures=(Figure(name="n", paper=1, obtained=1, place="p"),)),
            "patch",
        ),
        (
            lambda header: msgspec.structs.replace(
                header, rule=msgspec.structs.replace(header.rule, parameters={"ratio": "0.6"})
            ),
            "patch",
        ),
    ],
)
def test_verdicts(manifest: Manifest, change: Callable[[Header], Header], verdict: str) -> None:
    other = altered(manifest, change)
    assert other.digest != manifest.digest
    assert diff_manifests(manifest, other).verdict == verdict
    assert diff_manifests(manifest, other).reason


def test_ids_that_move_between_parts(make_manifest: Make) -> None:
    old = make_manifest({"closed": ("toy:1", "toy:2"), "rest": ("toy:3",)})
    new = make_manifest({"closed": ("toy:1", "toy:4"), "rest": ("toy:2", "toy:3")})
    closed, rest = diff_manifests(old, new).parts
    assert (closed.added, closed.removed, closed.moved_to) == (("toy:4",), ("toy:2",), {"rest": 1})
    assert (rest.added, rest.removed, rest.moved_to) == (("toy:2",), (), {})
    assert diff_manifests(old, new).verdict == "major"


def test_a_declared_part_that_gets_its_list(manifest: Manifest) -> None:
    blank = msgspec.structs.replace(manifest.header.parts[1], images=None, sha256=None)
    header = msgspec.structs.replace(manifest.header, parts=(manifest.header.parts[0], blank), origin="declared")
    declared = Manifest(header=header, lists={"closed": manifest.lists["closed"]})
    assert diff_manifests(declared, manifest).verdict == "minor"
    assert diff_manifests(manifest, declared).verdict == "major"


@pytest.mark.parametrize(
    ("old", "new", "step"),
    [("1.0.0", "1.0.1", "patch"), ("1.0.9", "1.1.0", "minor"), ("1.9.9", "2.0.0", "major"), ("2.0.0", "1.0.0", None)],
)
def test_stated_step(make_manifest: Make, old: str, new: str, step: str | None) -> None:
    difference = diff_manifests(make_manifest(version=old), make_manifest(version=new))
    assert difference.stated_step == step
    assert diff_manifests(make_manifest(), make_manifest(name="other")).stated_step is None


@given(lists, lists)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_id_is_accounted_for(
    make_manifest: Make, before: dict[str, tuple[str, ...]], after: dict[str, tuple[str, ...]]
) -> None:
    difference = diff_manifests(make_manifest(before), make_manifest(after))
    for part in difference.parts:
        assert (set(before[part.name]) - set(part.removed)) | set(part.added) == set(after[part.name])
    gone_or_changed = any(before[name] != after.get(name) for name in before)
    expected = "major" if gone_or_changed else "minor" if after.keys() - before.keys() else "none"
    assert difference.verdict == expected


def test_repeats_are_lines_of_their_own(make_manifest: Make) -> None:
    old = make_manifest({"closed": ("toy:1", "toy:2", "toy:1")})
    new = make_manifest({"closed": ("toy:1", "toy:2", "toy:2", "toy:2")})
    [part] = diff_manifests(old, new).parts
    assert (part.added, part.removed, part.reordered) == (("toy:2", "toy:2"), ("toy:1",), False)
    moved = make_manifest({"closed": ("toy:1", "toy:1", "toy:2")})
    [part] = diff_manifests(old, moved).parts
    assert (part.added, part.removed, part.reordered) == ((), (), True)


def test_lists_that_are_not_at_hand_differ_by_their_digest(make_manifest: Make) -> None:
    old, new = (
        Manifest(header=make_manifest({"closed": ids}, origin="as_published").header, lists={})
        for ids in (("toy:1",), ("toy:2",))
    )
    difference = diff_manifests(old, new)
    assert (difference.verdict, [change.subject for change in difference.changes]) == ("major", ["part closed"])
    completed = Manifest(header=old.header, lists={"closed": ("toy:1",)})
    assert diff_manifests(old, completed).verdict == "none"
