"""Copies of Elephant's WR1 that others published: which file is which part, and how it differs from the list itself.

The authors' own file is lost. `curation.manifest.importing.pin_lists` fills in digests and counts from the copy.
"""

from __future__ import annotations

from collections.abc import Callable

from curation.benchmarks.elephant.facts import CLOSED, COCO, PAPER, TEST_VIEW, WR1, class_entries
from curation.benchmarks.parts import unread_entry
from curation.manifest.header import SCHEMA_VERSION, Figure, Header, PartEntry, Rule
from curation.manifest.importing import LISTS, PROTOCOL

_FILE = "test_wr1.txt"


def wr1_of_prob() -> Header:
    """Return the draft of the copy in PROB's repository (Zohar et al., CVPR 2023)."""
    parts = (
        PartEntry(
            name="closed",
            role="test",
            sources=(CLOSED,),
            selection="All images of VOC2007 test, the last 4,952 lines.",
            view=TEST_VIEW,
            order="listed",
        ),
        PartEntry(
            name="wr1",
            role="wilderness",
            sources=(COCO,),
            selection=(
                "The first 4,716 lines, images of COCO train2017 in arbitrary order: WR1 less its 236 images without "
                "annotations."
            ),
            view=TEST_VIEW,
            order="listed",
        ),
    )
    return Header(
        schema_version=SCHEMA_VERSION,
        name="elephant/wr1-prob-published",
        version="1.0.0",
        title=f"{PAPER.title}: WR1 as PROB holds it",
        paper=PAPER,
        taxonomy="OSOD-I",
        origin="as_published",
        classes=class_entries(),
        parts=parts,
        sources=(
            unread_entry(
                LISTS,
                "prob_lists",
                "VOC2007",
                note="github.com/orrzohar/PROB (b1d7fe6), data/OWOD/ImageSets/VOC2007/test_wr1.txt",
            ),
            unread_entry(CLOSED, "voc2007", "test"),
            unread_entry(COCO, "coco", "train2017"),
        ),
        rule=Rule(
            protocol=PROTOCOL,
            algorithm_version=1,
            parameters={"closed": f"{_FILE}:4717-9668", "wr1": f"{_FILE}:1-4716"},
        ),
        figures=(
            Figure(name="closed.images", paper=4952, obtained=None, place="paper: VOC2007 test"),
            Figure(
                name="wr1.images",
                paper=WR1["images"],
                obtained=None,
                place="paper: WR1 has as many images as VOC2007 test (WR1_Mixed_Unknowns.json)",
                explanation="WR1 less its 236 images without annotations",
            ),
        ),
        notes=(
            "Finding: WR1 less its 236 images without annotations. WR1 itself is part wr1 of elephant/train2017 1.1.0; "
            "`curation diff` between the two shows the 236 (docs/wr1.md).",
        ),
    )


RECIPES: dict[str, Callable[[], Header]] = {"elephant/wr1-prob-published": wr1_of_prob}
"""Drafts by the name of the manifest that they make."""
