"""A little of the torture: a few faults in a few verbs; ``make torture`` injects hundreds into all of them."""

from collections.abc import Iterator, Mapping
from random import Random

import pytest

from tests.torture.faults import KINDS, Case, Injection, Lab, bit_flips, spread, table
from tests.torture.forks import Forks
from tests.torture.verbs import VERBS


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CURATION_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Lab(tmp_path_factory.mktemp("lab"), "short", forks)


SHORT: Mapping[str, tuple[str, ...]] = {
    "build": ("at_steps", "denied"),
    "export txt": ("file_limits", "read_only"),
    "evaluate --append": ("two_at_once",),
    "embed": ("at_moments", "clock_jumps"),
    "evaluate": ("at_steps", "at_moments"),
    "apply": ("at_steps", "at_moments"),
}
"""Every kind of fault: in a folder, a file over another, several files, one that grows, and work that goes on."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_the_old_state_or_the_new_one(lab: Lab, name: str) -> None:
    faults = list(Injection(lab, steps=1, moments=1).of_verb(Case(lab, VERBS[name]), SHORT[name]))
    assert [fault for fault in faults if fault.wrong] == []
    assert faults
    assert name in table(faults)


def test_the_short_form_has_every_kind() -> None:
    assert set(KINDS) == {kind for kinds in SHORT.values() for kind in kinds}


@pytest.mark.slow
def test_a_flipped_bit_is_reported_or_changes_nothing(lab: Lab) -> None:
    assert [fault for fault in bit_flips(Injection(lab, steps=1, moments=1, flips=1)) if fault.wrong] == []


def test_a_case_sees_what_is_wrong(lab: Lab) -> None:
    """The judge itself: a torn file, a lost one, a leftover and a traceback are no old or new state."""
    case = Case(lab, VERBS["export coco"])
    path = lab.out / "t.json"
    path.write_bytes(case.new["t.json"][:-1])
    assert "neither the old file nor the new one" in case.wrong(2, "error: x")
    case.reset()
    path.unlink()
    assert "lost" in case.wrong_state()
    case.reset()
    assert "traceback" in case.wrong(2, "Traceback (most recent call last)")
    assert "without an error" in case.wrong(2, "")
    (lab.out / ".x.partial-1").write_bytes(b"")
    assert "left over" in case.wrong_after_all()
    assert {"open", "fsync", "os.rename"} <= {step.split()[0] for step in case.steps}


def test_steps_are_spread_and_the_last_ones_taken() -> None:
    assert spread(3, 4, Random(1)) == [1, 2, 3]
    assert spread(100, 6, Random(1))[-3:] == [98, 99, 100]
    assert len(spread(100, 6, Random(1))) == 6
