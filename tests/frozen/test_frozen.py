"""Every number, list and file that commands make of the drawn worlds is the one that is committed.

After a change that is meant, ``python -m tests.frozen --write`` commits what comes out now, and the changelog says why.
"""

import math
from itertools import islice

import pytest

from tests.frozen.commands import WORLDS
from tests.frozen.frozen import FOLDER, committed, differences, frozen, plain
from tests.frozen.outputs import written


@pytest.mark.parametrize("world", WORLDS)
def test_what_commands_make_of_a_world_stays(world: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = list(islice(differences(frozen(written([world])), committed(world)), 20))
    capsys.readouterr()
    assert told == []


def test_no_world_is_committed_that_is_not_drawn() -> None:
    assert {path.name.removesuffix(".json.gz") for path in FOLDER.iterdir()} == set(WORLDS)


def test_what_is_a_difference() -> None:
    def told(ours: object, theirs: object, command: str = "evaluate x") -> list[str]:
        found = differences({command: {"": {"json": ours}}}, {command: {"": {"json": theirs}}})
        return [one.partition("json")[2] for one in found]

    assert told({"a": 1, "b": 2}, {"a": 1}) == []
    assert told({"b": 2}, {"a": 1}) == [" / a: missing, was 1"]
    assert told([0.1 + 0.2], [0.3]) == []
    (one,) = told([math.nextafter(0.1 + 0.2, 1)], [0.3])
    assert one.endswith(", was 0.3")
    assert told(["0.30000000000000004"], ["0.3"]) == []
    assert told([1], [1.0]) == ["[0]: 1, was 1.0"]
    assert told(1, 2) == [": 1, was 2"]
    assert told(None, 0.0) == [": null, was 0.0"]
    assert told([1], [1, 2]) == [": [1], was [1, 2]"]
    assert told(1.0 + 1e-13, 1.0, "scores x") == []
    assert list(differences({}, {"evaluate x": {}})) == ["curation evaluate x: not run"]


def test_prose_and_versions_are_not_frozen() -> None:
    value = {"n": 1, "note": "a text of more than five words", "versions": {"numpy": "2"}, "class": "dining table"}
    assert plain(value) == {"n": 1, "class": "dining table"}
    assert plain(["a text of more than five words", 2]) == [None, 2]
