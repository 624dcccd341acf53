"""The committed picture of the pipeline is what its module draws, and it names what there is."""

import re
from pathlib import Path

import matplotlib
import pytest

from curation.extensions.audit.rules import RULES
from tests.docs.pages import ROOT
from tests.docs.pipeline_figure import AUDIT, BOXES, STEM, write
from tests.shell import VERBS

PINNED = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("matplotlib==")
)


def test_the_committed_picture_is_what_is_drawn(tmp_path: Path) -> None:
    if matplotlib.__version__ != PINNED["matplotlib"]:
        pytest.skip(f"another matplotlib may write other paths: drawn with {PINNED['matplotlib']}")
    drawn = write(tmp_path / STEM.name)
    assert {path.name for path in drawn} == {"pipeline.png", "pipeline.svg"}
    assert (tmp_path / "pipeline.svg").read_bytes() == STEM.with_suffix(".svg").read_bytes()
    assert STEM.with_suffix(".png").exists()


def test_what_the_picture_names_exists() -> None:
    commands = {name.split()[0] for one in BOXES if one.kind == "command" for name in one.name.split(", ")}
    assert commands - {"signals"} <= VERBS
    assert re.findall(r"\d+", AUDIT.text) == [str(len(RULES))]
