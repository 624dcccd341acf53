"""Forensics: facts of each list and relations between them, against Python sets and the published lists."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.audit.forensics import Forensics, forensics, overlap_matrix
from curation.audit.lists import read_lists
from curation.canonical import sha256_of_lines
from tests.audit.benchmark_world import list_set, make_source
from tests.real_files import provided, real_files


def facts_of(found: Forensics, name: str) -> object:
    return found.facts[found.names.index(name)]


IDS = st.sampled_from([*(f"{n:012}" for n in range(6)), *(f"{n:06}" for n in range(6)), "a1", "b1", "2008_000001"])


@given(st.lists(st.lists(IDS, max_size=12), min_size=1, max_size=5))
def test_every_count_is_that_of_python_s_sets(lists: list[list[str]]) -> None:
    names = [f"l{n}" for n in range(len(lists))]
    with TemporaryDirectory() as folder:
        read = list_set(Path(folder), dict(zip(names, lists, strict=True)))
        found = forensics(read)
    sets = [set(one) for one in lists]
    assert found.n_ids == len(set().union(*sets))
    assert found.overlap.tolist() == [[len(one & two) for two in sets] for one in sets]
    for one, ids, own in zip(found.facts, lists, read.lists, strict=True):
        times = Counter(Counter(ids).values())
        assert (one.entries, one.unique) == (len(ids), len(set(ids)))
        assert one.multiplicity == {k: n for k, n in times.items() if k > 1}
        assert one.repeated == sum((k - 1) * n for k, n in times.items())
        assert one.ids_sha256 == sha256_of_lines(sorted(set(read.vocabulary.ids(own.members))))
        assert sum(one.namespaces.values()) == len(set(ids))
        for repeat in one.repeats:
            assert all(ids[line - 1] == repeat.id.rpartition(":")[2] for line in repeat.lines)
    pairs = [(i, j) for i in range(len(lists)) for j in range(len(lists))]
    assert set(found.subsets) == {(i, j) for i, j in pairs if sets[i] and sets[i] < sets[j]}
    together = {(i, j) for group in found.same_ids for i in group for j in group}
    assert together == {(i, j) for i, j in pairs if sets[i] == sets[j] and sum(s == sets[i] for s in sets) > 1}
    lines = {(i, j) for group in found.same_sequence for i in group for j in group}
    assert lines == {(i, j) for i, j in pairs if lists[i] == lists[j] and lists.count(lists[i]) > 1}
    counted = {one.lines for one in found.equal_counts}
    expected = {len(lists[i]) for i, j in pairs if lists[i] and len(lists[i]) == len(lists[j]) and sets[i] != sets[j]}
    assert counted == expected


@given(st.lists(st.sets(st.integers(0, 199), max_size=80), min_size=1, max_size=6))
def test_overlaps_of_any_positions(sets: list[set[int]]) -> None:
    members = [np.array(sorted(one), np.int32) for one in sets]
    assert overlap_matrix(members, 200).tolist() == [[len(one & two) for two in sets] for one in sets]


def test_relations_between_files(tmp_path: Path) -> None:
    for name, data in {
        "a.txt": b"1\n2\n3\n",
        "copy.txt": b"1\n2\n3\n",
        "crlf.txt": b"1\r\n2\r\n3\r\n",
        "turned.txt": b"3\n2\n1\n",
        "part.txt": b"2\n",
        "x/part.txt": b"9\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found = forensics(read_lists(tmp_path))

    def groups(rows: tuple[tuple[int, ...], ...]) -> list[list[str]]:
        return [[found.names[row] for row in group] for group in rows]

    assert groups(found.same_bytes) == [["a", "copy"]]
    assert groups(found.same_sequence) == [["a", "copy", "crlf"]]
    assert groups(found.same_ids) == [["a", "copy", "crlf", "turned"]]
    assert groups(found.same_names) == [["part", "x/part"]]
    assert {found.names[large] for small, large in found.subsets if found.names[small] == "part"} == {
        "a",
        "copy",
        "crlf",
        "turned",
    }
    assert [one.lines for one in found.equal_counts] == [1]
    assert [one.order for one in found.facts] == ["ascending", "ascending", "ascending", "", "descending", ""]
    assert [one.consecutive for one in found.facts] == [True, True, True, False, False, False]


def test_lists_of_one_json_file_are_not_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "splits.json").write_text('{"train": [1, 2], "val": [3]}')
    assert forensics(read_lists(tmp_path)).same_bytes == ()


def test_a_number_of_two_datasets_is_a_collision_and_of_one_is_none(tmp_path: Path) -> None:
    lists = {"coco": ["000000000005", "000000000009"], "voc": ["000005", "000007"], "mixed": ["2008_000008"]}
    [one] = forensics(list_set(tmp_path, lists)).collisions
    assert (one.namespaces, one.count) == (("coco", "voc2007"), 1)
    assert one.examples == (("coco:000000000005", "voc2007:000005"),)
    assert one.lists == ()
    both = forensics(list_set(tmp_path, lists | {"mixed": ["000005", "000000000005"]}))
    assert both.collisions[0].lists == (("mixed", 1),)


def test_ids_are_looked_up_in_the_sources(tmp_path: Path) -> None:
    sources = {
        "coco-train": make_source({"000000000005": ["person"]}, dataset="coco", namespace="coco"),
        "voc2007-test": make_source({"000007": ["dog"]}, dataset="voc2007", namespace="voc2007"),
    }
    lists = list_set(tmp_path, {"l": ["000000000005", "000007", "000005", "000007", "000008"]})
    [one] = forensics(lists, sources).facts
    assert one.in_sources == {"coco-train": 1, "voc2007-test": 1}
    assert one.unknown == 2
    assert one.unknown_ids == ("voc2007:000005", "voc2007:000008")
    [without] = forensics(lists).facts
    assert without.unknown is None


@provided
def published(shared: Path) -> Forensics:
    return forensics(read_lists(shared / "data" / "owod" / "published"))


def shared_ids(found: Forensics, one: str, two: str) -> int:
    return int(found.overlap[found.names.index(one), found.names.index(two)])


@real_files("owod_audits")
def check_the_published_test_list_of_ore_repeats_images(published: Forensics) -> None:
    one = published.facts[published.names.index("ore/all_task_test")]
    assert (one.entries, one.unique, one.repeated) == (10_246, 9_119, 1_127)
    assert one.multiplicity == {2: 943, 3: 92}
    assert one.namespaces == {"coco": 9_119 - 4_952, "voc2007": 4_952}


@real_files("owod_audits")
def check_two_lists_of_one_name_and_one_length_are_told_apart_without_being_told(
    published: Forensics,
) -> None:
    pairs = {(published.names[one], published.names[two]) for one, two in published.same_names}
    assert ("ore/t2_ft", "reowod/t2_ft") in pairs
    assert shared_ids(published, "ore/t2_ft", "reowod/t2_ft") == 1_276
    counts = {one.lines: len(one.contents) for one in published.equal_counts}
    assert counts[1_743] == 2
    # The trap of 4,952: COCO's annotated validation images twice, VOC2007's test images once.
    assert counts[4_952] == 2


@real_files("owod_audits")
def check_relations_that_the_specification_states(published: Forensics) -> None:
    names = published.names
    assert ("reowod/t1_train", "reowod/t1_train_with_unk") in [
        tuple(names[row] for row in group) for group in published.same_bytes
    ]
    assert shared_ids(published, "reowod/t1_train", "reowod/t2_train") == 32_380
    assert published.facts[names.index("reowod/all_task_val")].unique == 4_000
    assert published.facts[names.index("ore/all_task_val")].unique == 3_978
    assert shared_ids(published, "reowod/t3_ft", "reowod/t4_train") > 0
    subsets = {(names[small], names[large]) for small, large in published.subsets}
    for task in (2, 3, 4):
        assert (f"reowod/t{task}_train", f"ore/t{task}_train") in subsets
    assert ["owdetr/test", "reowod/all_task_test"] in [[names[row] for row in group] for group in published.same_ids]
