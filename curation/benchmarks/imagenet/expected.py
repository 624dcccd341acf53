"""Table 1 of the ImageNet protocols beside what is obtained, and what the protocols state in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.manifest.header import Figure, Paper

PAPER = Paper(
    title="Large-Scale Open-Set Classification Protocols for ImageNet",
    authors="Jesus Andres Palechor Anacona, Annesha Bhoumik, Manuel Günther",
    year=2023,
    venue="WACV",
    bibtex=(
        "@inproceedings{palechor2023protocols, "
        "title={Large-Scale Open-Set Classification Protocols for ImageNet}, "
        'author={Palechor, Andres and Bhoumik, Annesha and G{\\"u}nther, Manuel}, '
        "booktitle={Proceedings of the IEEE/CVF Winter Conference on Applications of Computer Vision (WACV)}, "
        "year={2023}}"
    ),
)

FIGURES = (
    "known.classes",
    "negative.classes",
    "unknown.classes",
    "train.known_images",
    "train.negative_images",
    "val.known_images",
    "val.negative_images",
    "test.known_images",
    "test.negative_images",
    "test.unknown_images",
)
TABLE_1: Mapping[str, tuple[int, ...]] = {
    "p1": (116, 67, 166, 116_218, 69_680, 29_055, 17_420, 5_800, 3_350, 8_300),
    "p2": (30, 31, 55, 28_895, 31_794, 7_224, 7_949, 1_500, 1_550, 2_750),
    "p3": (151, 97, 164, 154_522, 98_202, 38_633, 24_549, 7_550, 4_850, 8_200),
}
"""Published figures in the order of `FIGURES`. Those of classes stand in Tables 3 to 5 as well."""

TRAIN_RULE = (
    "Training images of known and negative classes, each class's sorted by file name; 80 % of them by scikit-learn's "
    "train_test_split stratified by class, in the order that it returns."
)
VAL_RULE = "The other 20 % of the training images of known and negative classes, in the order that the split returns."
TEST_RULE = (
    "ILSVRC-2012 validation images of known, then negative, then unknown classes, each sorted by class and file "
    "name."
)

DAG_NOTE = (
    "A correction, not the published protocol: every hypernym of WordNet 3.0 counts, so that Italian greyhound and "
    "whippet are dogs. A class below two superclasses that are cut belongs to the one named first (minivan is a car)."
)
PUBLISHED_NOTE = (
    "The published tree keeps one parent a synset: {dropped} of the 1,000 classes lie below a superclass in WordNet "
    "and not in this protocol, among them {examples}."
)


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
    of_paper = (
        name in TABLE_1 and parameters["hierarchy"] == "published" and parameters["missing"] != "restrict"
    )
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
            why = (
                "classes are missing from the data set"
                if parameters["missing"] == "report"
                else "other files"
            )
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
