"""How the results of ``curation evaluate owod`` show themselves: as those of open-world detection do."""

from __future__ import annotations

from curation.evaluation.open_world.report import report_as

# 2: recalls of owdetr in floating point; --on-error repeats=keep: copies of an object that was found are no FN_u*.
# 3: WI of ore and owdetr reads a class without objects at its first detection.
REPORT = report_as("owod", algorithm=3)
