"""The parameters of the Elephant protocol, read from ``--set KEY=VALUE``."""

from __future__ import annotations

import re
from fractions import Fraction

from curation.benchmarks.elephant.facts import ORDER_RULES
from curation.benchmarks.parameters import Parameter, salt
from curation.errors import ProtocolError


def read_ratios(text: str) -> tuple[str, ...]:
    """Return the ratios of ``0.5,1.0`` in shortest decimal form, ``("0.5", "1")``; else raise `ProtocolError`."""
    ratios = []
    for word in text.split(","):
        matched = re.fullmatch(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?", word.strip())
        decimals = matched and (matched[2] or "").rstrip("0")
        ratio = matched and f"{int(matched[1])}{f'.{decimals}' if decimals else ''}"
        if not ratio or Fraction(ratio) == 0 or ratio in ratios:
            raise ProtocolError(
                "A wilderness ratio is not a positive decimal number, or stands twice",
                where="--set ratios",
                expected="for example 0.5,1.0,2",
                found=repr(word[:40]),
            )
        ratios.append(ratio)
    return tuple(ratios)


def read_orders(text: str) -> tuple[str, ...]:
    """Return the orders of ``cpython_set,hash``; an unknown or repeated one is a `ProtocolError`."""
    orders = tuple(word.strip() for word in text.split(","))
    for place, order in enumerate(orders):
        if order not in ORDER_RULES or order in orders[:place]:
            raise ProtocolError(
                "An order of selection is not known, or stands twice",
                where="--set orders",
                expected=f"some of {', '.join(ORDER_RULES)}",
                found=repr(order[:40]),
            )
    return orders


PARAMETERS = (
    Parameter(
        name="ratios",
        default="1.0",
        read=read_ratios,
        meaning="wilderness ratios, comma-separated decimals: parts wr1, wr0.5, … of floor(ratio * closed images)",
    ),
    Parameter(
        name="orders",
        default="cpython_set,hash",
        read=read_orders,
        meaning="orders the ratios are taken in: cpython_set (the notebook's; part wr1), hash (wr1-hash), id (wr1-id), "
        "cpython_set_as_listed (wr1-as-listed)",
    ),
    salt("elephant/wilderness-ratio", "salt of the hash order"),
)
