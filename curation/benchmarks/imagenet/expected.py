"""Table 1 of the ImageNet protocols beside what is obtained, and what the protocols state in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.benchmarks.facts import fact, facts_of
from curation.manifest.header import Figure, Paper

_ROOM = __package__
_FACTS = facts_of(_ROOM)
PAPER = fact(_ROOM, "paper", Paper)
FIGURES: tuple[str, ...] = tuple(_FACTS["figures"])
TABLE_1 = fact(_ROOM, "table_1", dict[str, tuple[int, ...]])
"""Published figures in the order of `FIGURES`."""
TRAIN_RULE, VAL_RULE, TEST_RULE = (_FACTS[key] for key in ("train_rule", "val_rule", "test_rule"))
DAG_NOTE: str = _FACTS["dag_note"]
PUBLISHED_NOTE: str = _FACTS["published_note"]


def figures_of(
    obtained: Mapping[str, int], parameters: Mapping[str, Any], name: str, absent: Mapping[str, str]
) -> tuple[Figure, ...]:
    """Return the figures of Table 1 beside those obtained.

    Parameters
    ----------
    obtained : mapping of str to int
        By the names in `FIGURES`, as far as they are computed.
    parameters : mapping
        Of the protocol.
    name : str
        The protocol: a variant or one of a user's own has no figure in the paper.
    absent : mapping of str to str
        Why figures that begin with a part's name could not be computed.
    """
    of_paper = name in TABLE_1 and parameters["hierarchy"] == "published" and parameters["missing"] != "restrict"
    stated: tuple[int | None, ...] = TABLE_1[name] if of_paper else (None,) * len(FIGURES)
    figures = []
    for figure, paper in zip(FIGURES, stated, strict=True):
        found = obtained.get(figure)
        why = ""
        if found is None:
            why = absent.get(figure.partition(".")[0], "not computed")
        elif paper is None:
            why = "not a protocol of the paper"
        elif found != paper:
            why = "classes are missing from the data set" if parameters["missing"] == "report" else "other files"
        place = "Table 1" if of_paper else "not in the paper"
        figures.append(
            Figure(
                name=figure,
                paper=paper,
                obtained=found,
                place=place,
                explanation=why if found != paper else "",
            )
        )
    return tuple(figures)
