"""A little of the torture: some changed files for every reader; ``make torture`` runs a hundred thousand."""

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.torture.fuzzing import changed_files, fuzz, input_of, outcome, write_files
from tests.torture.readers import targets


@pytest.mark.parametrize("name", targets())
def test_valid_files_are_read(name: str, tmp_path: Path) -> None:
    """What fuzzing starts from is no error, or it would look no further than the first check."""
    target = targets()[name]
    write_files(target.files, tmp_path)
    assert outcome(target, tmp_path) == "read"


@pytest.mark.parametrize("name", [name for name, one in targets().items() if one.weight > 1])
@settings(max_examples=5)
@given(rng=st.randoms(use_true_random=False))
def test_changed_files_are_read_or_refused(name: str, rng: Random) -> None:
    target = targets()[name]
    with tempfile.TemporaryDirectory() as folder:
        write_files(changed_files(target, rng), Path(folder))
        outcome(target, Path(folder))


def test_an_input_is_the_same_bytes_by_its_name() -> None:
    target = targets()["coco"]
    assert input_of(target, "1", 7) == input_of(target, "1", 7) != input_of(target, "1", 8)
    made_again = targets.__wrapped__()
    assert [name for name, one in targets().items() if one.files != made_again[name].files] == []


def test_a_worker_counts_every_input() -> None:
    tally = fuzz("voc", "short", 60)
    assert (tally.inputs, tally.crashes) == (60, [])
    assert tally.read + tally.refused.total() == 60
    assert tally.read


def test_a_synset_without_a_word_is_refused(tmp_path: Path) -> None:
    target = targets()["wordnet"]
    nouns = target.files["data.noun"].replace(b"n 01 entity 0", b"n 00         ")
    write_files({**target.files, "data.noun": nouns}, tmp_path)
    assert outcome(target, tmp_path) == "HierarchyError"
