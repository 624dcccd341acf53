"""The variants of the open-world measures: what the paper says, and what three groups' code does."""

from __future__ import annotations

from dataclasses import replace

from curation.evaluation.open_world.measures import CLEAN, TEXT
from curation.evaluation.variants import Rules

ORE = replace(TEXT, name="ore", meaning=f"the code of ORE and RE-OWOD, {TEXT.meaning}, area AP")
OWDETR = replace(
    TEXT,
    name="owdetr",
    meaning=f"the code of OW-DETR and PROB, {TEXT.meaning}, 11-point AP at the recalls numpy.arange(0, 1.1, 0.1) in "
    "floating point: 0.3, 0.6 and 0.7 are a hair higher there",
    average_precision="eleven_point_in_floats",
)
PROFILES: dict[str, Rules] = {one.name: one for one in (CLEAN, ORE, OWDETR)}
