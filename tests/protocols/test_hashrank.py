"""Hash-ranked selection is what ``sha256sum`` says, in any input order, and nested."""

import hashlib
import random

from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.parts import hash_rank

ids = st.lists(st.text(min_size=1, max_size=12), unique=True, max_size=40)


def ranked(names: list[str], salt: str) -> list[str]:
    return [names[place] for place in hash_rank(names, salt).tolist()]


@given(ids, st.text(max_size=5), st.randoms(use_true_random=False))
def test_rank_is_that_of_the_digest_and_input_order_has_no_part_in_it(
    names: list[str], salt: str, rng: random.Random
) -> None:
    expected = sorted(names, key=lambda name: hashlib.sha256((salt + name).encode()).hexdigest())
    assert ranked(names, salt) == expected
    shuffled = names.copy()
    rng.shuffle(shuffled)
    assert ranked(shuffled, salt) == expected


@given(ids, ids)
def test_a_new_image_moves_no_other(names: list[str], more: list[str]) -> None:
    grown = ranked(sorted({*names, *more}), "s")
    assert [name for name in grown if name in set(names)] == ranked(names, "s")


def test_published_digests() -> None:
    # FIPS 180-4: sha256("abc") = ba7816bf..., sha256("") = e3b0c442...
    assert ranked(["", "abc"], "") == ["abc", ""]
    assert ranked(["", "bc"], "a") == ["bc", ""]  # sha256("a") = ca978112...
