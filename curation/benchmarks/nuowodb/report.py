"""How the results of ``curation evaluate nuowodb`` show themselves: as those of open-world detection do."""

from __future__ import annotations

from curation.evaluation.open_world.report import report_as

# 2: yolo-uniow divides by the objects + 0.00001, and WI reads a class without objects at its first detection.
REPORT = report_as("nuowodb", algorithm=2)
