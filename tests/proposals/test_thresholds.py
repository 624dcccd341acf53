from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import UsageError
from curation.proposals.proposal import Thresholds, decimal_text, thresholds_from


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert Thresholds().as_texts() == {
        "near_wup": "0.82",
        "text_margin": "0.01",
        "look_sigma": "0",
        "detector_score": "0.5",
        "agreeing": "2",
        "standard_errors": "2",
    }


def test_what_is_set_comes_back_as_it_was_written() -> None:
    texts = thresholds_from({"near_wup": "0.900", "agreeing": "3", "look_sigma": "-0.25"}).as_texts()
    assert (texts["near_wup"], texts["agreeing"], texts["look_sigma"]) == ("0.900", "3", "-0.25")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("near_wup", "1.01"),
        ("near_wup", "-0.1"),
        ("near_wup", "nan"),
        ("near_wup", "inf"),
        ("near_wup", "near"),
        ("near_wup", ""),
        ("near_wup", "0." + "1" * 60),
        ("agreeing", "1.5"),
        ("agreeing", "0"),
        ("standard_errors", "1e9"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=name):
        thresholds_from({name: text})


def test_an_unknown_threshold_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        thresholds_from({"nearwup": "0.8"})
    assert "near_wup" in str(caught.value)


@given(st.floats(-1, 1))
def test_a_printed_number_is_the_number_to_four_places(value: float) -> None:
    text = decimal_text(value)
    assert abs(Decimal(text) - Decimal(value)) <= Decimal("0.00005000001")
    assert text != "-0.0000"
