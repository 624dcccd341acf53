"""Options that several verbs share, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from curation.cli.signature import OneOf


@dataclass(frozen=True, kw_only=True)
class Amount:
    """How much a check prints beside what needs attention.

    Attributes
    ----------
    all
        print everything, not only what needs attention
    quiet
        print the last line alone, the result
    """

    all: Annotated[bool, OneOf("amount")] = False
    quiet: Annotated[bool, OneOf("amount")] = False
