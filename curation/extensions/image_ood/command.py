"""``curation scores``: post-hoc out-of-distribution scores from logits, features and a last layer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, Table
from curation.cli.outputs import OUTPUT_FILE
from curation.extensions.image_ood.post_hoc import ScoredImages, score_files

GROUP = "Scores"
SUMMARY = "post-hoc OOD scores from logits, features and a last layer"


def run(*, out: Annotated[Path, OUTPUT_FILE], made: Annotated[ScoredImages, score_files]) -> Answer:
    """Post-hoc out-of-distribution scores from logits, features and a last layer.

    Exit status 1: a requested method is impossible.
    """
    about = made.about
    rows = [
        (name, about["methods"][name], *(f"{end(scores):.6g}" if scores else "-" for end in (min, max)))
        for name, scores in made.scores.items()
    ]
    rows += [(name, f"impossible: {reason}", "-", "-") for name, reason in about["impossible"].items()]
    title = f"Scores of {about['detections']} detections, higher is more ID"
    table = Table(title, ("score", "", "lowest", "highest"), tuple(rows))
    return Answer({**about, "written": str(out)}, [table], int(not made.complete), [out])
