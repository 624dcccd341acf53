"""Sets of images while decisions act: which parts a removal reaches, where a move takes from, the order of lists."""

import msgspec
import pytest

from curation.core.canonical import sha256_of_lines
from curation.manifest.manifest import Manifest
from curation.review.decisions.application import PartSets
from curation.review.decisions.decision import Decision


def decided(dataset: str, action: str, *images: str, stage: str = "manual") -> list[Decision]:
    return [
        Decision(image_id=one, dataset=dataset, stage=stage, action=action)
        for one in images  # type: ignore[arg-type]
    ]


@pytest.fixture
def pool(base: Manifest) -> Manifest:
    """Return a pool of three parts: all start images, near, far; far in an order that carries meaning."""
    images = base.ids("wilderness")
    entry = msgspec.structs.replace(base.part("wilderness"), subset_of="")
    lists = {"zoo-start": images, "zoo-near": images[:4], "zoo-far": tuple(reversed(images[4:12]))}
    parts = tuple(
        msgspec.structs.replace(
            entry,
            name=name,
            images=len(ids),
            sha256=sha256_of_lines(ids),
            order="listed" if name == "zoo-far" else "code_point",
        )
        for name, ids in lists.items()
    )
    return Manifest(msgspec.structs.replace(base.header, parts=parts, figures=()), lists)


def sets(pool: Manifest, near: str = "zoo-near", far: str = "zoo-far") -> PartSets:
    named = ({"": near} if near else {}), ({"": far} if far else {})
    return PartSets(pool, *named, {})


def test_a_removal_of_a_pool_reaches_near_and_far_and_not_the_start_list(pool: Manifest) -> None:
    near, far = pool.ids("zoo-near")[0], pool.ids("zoo-far")[0]
    work = sets(pool)
    work.replay(decided("zoo", "remove", near, far))
    assert [(one.part, one.removed) for one in work.changes()] == [("zoo-near", (near,)), ("zoo-far", (far,))]
    everywhere = sets(pool, "", "")
    everywhere.replay(decided("zoo", "remove", near))
    assert [one.part for one in everywhere.changes()] == ["zoo-start", "zoo-near"]
    in_all = sets(pool)
    in_all.replay(decided("", "remove", near))
    assert [one.part for one in in_all.changes()] == ["zoo-start", "zoo-near"]


def test_a_move_takes_from_the_opposite_part_and_leaves_the_start_list(pool: Manifest) -> None:
    near, far = pool.ids("zoo-near"), pool.ids("zoo-far")
    work = sets(pool)
    work.replay([*decided("zoo", "to_near", far[0], near[0]), *decided("zoo", "to_far", near[1], near[0])])
    assert work.now["zoo-near"] == {far[0], *near[2:]}
    assert work.now["zoo-far"] == {*far[1:], near[0], near[1]}
    assert work.now["zoo-start"] == set(pool.ids("zoo-start"))
    assert work.ineffective == []


def test_a_list_whose_order_carries_meaning_keeps_it_and_grows_at_its_end(pool: Manifest) -> None:
    near, far = pool.ids("zoo-near"), pool.ids("zoo-far")
    work = sets(pool)
    work.replay([*decided("zoo", "to_far", *near[1:]), *decided("zoo", "remove", far[2])])
    assert work.ordered("zoo-far") == (*far[:2], *far[3:], *sorted(near[1:]))
    assert work.ordered("zoo-near") == (near[0],)


def test_a_new_part_needs_a_part_to_be_made_like(pool: Manifest) -> None:
    work = sets(pool, near="fresh")
    work.replay(decided("zoo", "add_near", "zoo:1", stage="candidate"))
    assert "fresh" not in work.entries
    work.replay(decided("zoo", "add_near", pool.ids("zoo-start")[0], stage="candidate"))
    assert work.entries["fresh"].selection == "By decision, from zoo-start."
    assert work.ordered("fresh") == pool.ids("zoo-start")[:1]
