"""How the results of ``curation evaluate owod`` show themselves: as those of open-world detection do."""

from __future__ import annotations

from curation.evaluation.open_world.report import report_as

# 2: recalls of owdetr in floating point; --repeats keep: copies of an object that was found are no FN_u*.
REPORT = report_as("owod", algorithm=2)
