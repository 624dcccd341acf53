"""How the readings of the Elephant paper assign detections to objects."""

from __future__ import annotations

import numpy as np

from curation.evaluation.variants import Rules

PAPER = Rules(
    name="paper",
    meaning="the paper's text: matching by class, fixed thresholds, WI = FP_o / (TP_c + FP_c)",
    average_precision="eleven_point",
    ties="grouped",
)
OFFICIAL = Rules(
    name="official",
    meaning="the published code: matching of any class, interpolated precision, ratio of class means",
    objects="any_class",
    order="input",
    difficult="count",
    crowd="pass_over",
    dtype=np.float32,
    average_precision="eleven_point",
)
OWOD = Rules(
    name="owod",
    meaning="voc_eval of the OWOD code: IoU > 0.5, scores to 3 and corners to 1 decimal, WI at the nearest recall",
    overlap=">",
    text=True,
)
