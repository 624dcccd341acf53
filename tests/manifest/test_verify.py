"""Verification finds what was changed, and says when it could not look."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.manifest.manifest import Manifest
from curation.manifest.verify import Finding, compare_with_published, verify_lists, verify_sources
from curation.sources.source import FileRecord, Objects, Source

ids = st.lists(st.sampled_from([f"toy:{number}" for number in range(12)]))


def outcomes(findings: list[Finding]) -> dict[tuple[str, str], str]:
    return {(one.check, one.subject): one.outcome for one in findings}


def with_columns(objects: Objects, **columns: object) -> Objects:
    return Objects(**{**{name: getattr(objects, name) for name in Objects.__dataclass_fields__}, **columns})


def test_everything_right(manifest: Manifest, source: Source) -> None:
    findings = verify_lists(manifest) + verify_sources(manifest, {"toy": source}, strict=True)
    assert set(outcomes(findings).values()) == {"ok"}
    assert {one.check for one in findings} == {"list", "files", "images", "annotated_images", "boxes", "flags"}


def test_a_changed_list(manifest: Manifest) -> None:
    changed = Manifest(header=manifest.header, lists={**manifest.lists, "rest": ("toy:3",)})
    assert outcomes(verify_lists(changed)) == {("list", "closed"): "ok", ("list", "rest"): "failure"}


def test_other_bytes_are_a_note_and_a_failure_when_strict(manifest: Manifest, source: Source) -> None:
    other = Source(**{**vars(source), "files": (FileRecord("toy.json", "sha256:" + "2" * 64, 10, 6),)})
    assert outcomes(verify_sources(manifest, {"toy": other}))["files", "toy"] == "note"
    assert outcomes(verify_sources(manifest, {"toy": other}, strict=True))["files", "toy"] == "failure"
    moved = Source(**{**vars(source), "files": (FileRecord("elsewhere/x.json", "sha256:" + "1" * 64, 10, 6),)})
    assert outcomes(verify_sources(manifest, {"toy": moved}, strict=True))["files", "toy"] == "ok"


def test_a_source_that_lacks_an_image_or_an_object(manifest: Manifest, source: Source) -> None:
    assert source.objects is not None
    foreign = Source(**{**vars(source), "namespace": "zoo"})
    found = outcomes(verify_sources(manifest, {"toy": foreign}))
    assert found["namespace", "toy"] == found["images", "closed"] == "failure"
    fewer = Source(**{**vars(source), "objects": with_columns(source.objects, category=np.zeros(6, np.int32))})
    found = outcomes(verify_sources(manifest, {"toy": fewer}))
    assert found["boxes", "closed"] == "failure"
    assert found["annotated_images", "closed"] == found["flags", "closed"] == "ok"


def test_other_flags_are_a_note_only_in_another_file(manifest: Manifest, source: Source) -> None:
    assert source.objects is not None
    no_crowd = with_columns(source.objects, crowd=np.zeros(len(source.objects), np.bool_))
    same_file = Source(**{**vars(source), "objects": no_crowd})
    assert outcomes(verify_sources(manifest, {"toy": same_file}))["flags", "closed"] == "failure"
    other_file = Source(**{**vars(same_file), "files": (FileRecord("toy.json", "sha256:" + "2" * 64, 10, 6),)})
    found = outcomes(verify_sources(manifest, {"toy": other_file}))
    assert (found["flags", "closed"], found["boxes", "closed"], found["flags", "rest"]) == ("note", "ok", "ok")
    assert outcomes(verify_sources(manifest, {"toy": other_file}, strict=True))["flags", "closed"] == "failure"


def test_what_could_not_be_checked_is_noted(manifest: Manifest, source: Source) -> None:
    assert outcomes(verify_sources(manifest, {})) == {("source", "closed"): "note", ("source", "rest"): "note"}
    declared = Manifest(header=manifest.header, lists={})
    assert outcomes(verify_lists(declared)) == {("list", "closed"): "note", ("list", "rest"): "note"}
    assert source.objects is not None
    pairs = np.unique(np.stack([source.objects.image, source.objects.category], 1), axis=0).astype(np.int32)
    presence = Source(**{**vars(source), "objects": None, "presence": pairs})
    found = outcomes(verify_sources(manifest, {"toy": presence}))
    assert found["boxes", "closed"] == "note"
    assert found["annotated_images", "closed"] == found["annotated_images", "rest"] == "ok"


def test_published_list_by_hand() -> None:
    compared = compare_with_published(["a", "b", "c", "d"], ["c", "x", "b", "c"])
    assert (compared.shared, compared.missing, compared.extra) == (2, ("a", "d"), ("x",))
    assert compared.duplicates == compared.surplus == ("c",)
    assert not compared.same_order
    assert not compared.equal


@given(ids.map(lambda names: list(dict.fromkeys(names))), ids)
def test_published_list_accounts_for_every_id(ours: list[str], theirs: list[str]) -> None:
    compared = compare_with_published(ours, theirs)
    assert compared.shared + len(compared.missing) == len(ours)
    assert compared.shared + len(compared.extra) == len(set(theirs))
    assert compared.equal == (sorted(ours) == sorted(theirs))
    assert set(compared.duplicates) == {one for one in theirs if theirs.count(one) > 1}
    if ours == theirs:
        assert compared.same_order


def test_published_list_with_the_repeats_of_the_part() -> None:
    ours = ["b", "a", "b", "c", "b"]
    assert compare_with_published(ours, ours).equal
    assert compare_with_published(ours, ours).same_order
    fewer = compare_with_published(ours, ["b", "a", "c", "b"])
    assert (fewer.shared, fewer.missing, fewer.extra, fewer.duplicates, fewer.surplus) == (3, ("b",), (), ("b",), ())
    more = compare_with_published(ours, [*ours, "a"])
    # What the part repeats too is named twice all the same.
    assert (more.missing, more.extra, more.duplicates, more.surplus) == ((), (), ("a", "b"), ("a",))
    assert not more.equal
    assert compare_with_published(ours, ours).duplicates == ("b",)
    assert not compare_with_published(ours, ["a", "b", "b", "c", "b"]).same_order
