"""Names of configs and splits."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import PublishError
from curation.manifest.header import PART_NAME
from curation.publishing.member import config_names, split_names
from tests.publishing.published_world import changed, tiny

MANIFEST = tiny()[0]


def configs(*names: tuple[str, str]) -> list[str]:
    return config_names([changed(MANIFEST, name=name, version=version).header for name, version in names])


def test_a_config_is_the_name_of_the_manifest() -> None:
    assert configs(("elephant/val2017", "1.0.0"), ("owod/reowod", "1.0.0")) == ["elephant-val2017", "owod-reowod"]


def test_versions_of_one_manifest_stand_side_by_side() -> None:
    assert configs(("a/b", "1.0.0"), ("a/b", "2.0.0"), ("c", "1.0.0")) == ["a-b-1.0.0", "a-b-2.0.0", "c"]


@pytest.mark.parametrize("names", [[("a/b", "1.0.0"), ("a/b", "1.0.0")], [("a/b", "1.0.0"), ("a-b", "1.0.0")]])
def test_two_manifests_never_share_a_config(names: list[tuple[str, str]]) -> None:
    with pytest.raises(PublishError, match="have the same config"):
        configs(*names)


@given(st.lists(st.from_regex(PART_NAME, fullmatch=True), unique=True, max_size=8))
def test_splits_are_words_and_apart(parts: list[str]) -> None:
    names = split_names(parts)
    assert list(names) == parts
    assert all(re.fullmatch(r"\w+", name) for name in names.values())
    assert len(set(names.values())) == len(parts)
    assert "all" not in names.values()


def test_splits_of_the_elephant_paper() -> None:
    assert split_names(["closed", "wr0.1-hash", "wr0-1.hash"]) == {
        "closed": "closed",
        "wr0.1-hash": "wr0_1_hash",
        "wr0-1.hash": "wr0_1_hash_2",
    }
