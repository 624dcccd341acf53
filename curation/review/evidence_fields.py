"""The fields of a review dataset's samples: what is shown of an image, and what was decided on it."""

from __future__ import annotations

from dataclasses import dataclass

GROUND_TRUTH = "ground_truth"
EMBEDDING_KEY = "look"
"""Brain key of the similarity index: the App's sort-by-similarity offers it by this name."""

INFO_KEY = "curation_review"
"""Key of `dataset.info` under which a review dataset says which log and manifest it belongs to."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a sample: its name, its kind (``text``, ``texts``, ``whole``), its meaning."""

    name: str
    kind: str
    meaning: str
    indexed: bool = False


EVIDENCE_FIELDS = (
    Field("image_id", "text", "namespaced id, such as coco:000000397133", indexed=True),
    Field("part", "text", "part of the manifest, or source, that the image stands in"),
    Field("pool", "text", "what a decision on this image speaks of: the part, or the pool that was named"),
    Field("classes", "texts", "classes that the annotations name, sorted"),
    Field("proposal", "text", "what is proposed, not decided: remove?, near?, far?, farther?, undecided?"),
    Field("reason", "text", "reason of the proposal", indexed=True),
    Field("rank", "whole", "place among the proposals, the most suspect first", indexed=True),
    Field("evidence", "texts", "each piece of evidence: kind, detail, score and threshold"),
    Field("evidence_kinds", "texts", "kinds of the evidence, the strongest first"),
    Field("id_classes", "texts", "ID classes that the evidence speaks of, sorted"),
    Field("batch", "text", "batch that the image is reviewed in", indexed=True),
)
"""Written once, when the dataset is built."""

VERDICT_FIELDS = (
    Field(
        "verdict", "text", "keep, remove, near, far, unsure; conflict where reviewers disagree", indexed=True
    ),
    Field("verdict_reason", "text", "reason of the last verdict"),
    Field("reviewer", "text", "who gave the last verdict"),
    Field("verdicts", "texts", "the standing verdict of each reviewer"),
)
"""Written with each verdict, after the log."""

FIELDS = EVIDENCE_FIELDS + VERDICT_FIELDS


def proposed(word: str) -> str:
    """Return how a proposal is shown: ``remove?``, so that nobody takes it for a verdict."""
    return f"{word}?"
