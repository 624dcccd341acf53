"""How the results of ``curation evaluate nuowodb`` show themselves: as those of open-world detection do."""

from __future__ import annotations

from curation.evaluation.open_world.report import report_as

REPORT = report_as("nuowodb")
