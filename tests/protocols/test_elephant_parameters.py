"""What ``--set`` may say, and what it may not."""

import pytest

from curation.benchmarks.elephant.lists import PARAMETERS
from curation.errors import ProtocolError

read_ratios, read_orders = (one.read for one in PARAMETERS[:2])


@pytest.mark.parametrize(
    ("text", "ratios"),
    [("1.0", ("1",)), ("0.50,1,2.25", ("0.5", "1", "2.25")), ("007", ("7",)), ("4.600", ("4.6",)), ("10", ("10",))],
)
def test_ratios(text: str, ratios: tuple[str, ...]) -> None:
    assert read_ratios(text) == ratios
    assert read_ratios(",".join(ratios)) == ratios


@pytest.mark.parametrize(
    "text", ["", "0", "0.0", "-1", "1e3", "nan", "1,", "1,1.0", ".5", "1.", "1/2", "\u0661", "9999999", "1 2"]
)
def test_bad_ratios(text: str) -> None:
    with pytest.raises(ProtocolError, match="ratio"):
        read_ratios(text)


def test_orders() -> None:
    assert read_orders("hash, id") == ("hash", "id")
    for text in ("", "set", "hash,hash", "id,,hash"):
        with pytest.raises(ProtocolError, match="order"):
            read_orders(text)


def test_salt() -> None:
    read_salt = PARAMETERS[-1].read
    assert read_salt("a b") == "a b"
    for text in ("", "x" * 101, "a\nb"):
        with pytest.raises(ProtocolError, match="salt"):
            read_salt(text)


def test_defaults_can_be_read() -> None:
    assert {one.name: one.read(one.default) for one in PARAMETERS} == {
        "ratios": ("1",),
        "orders": ("cpython_set", "hash"),
        "salt": "elephant/wilderness-ratio",
    }
