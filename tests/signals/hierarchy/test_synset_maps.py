"""Synset maps of COCO, VOC and Open Images."""

import csv
from pathlib import Path
from typing import Any

import pytest

from curation.signals.hierarchy.class_lists import DATASETS, synset_choices, synset_map
from tests.real_files import real_files
from tests.signals.hierarchy.nltk_oracle import nltk_reader

CLASSES = {"coco": 80, "voc": 20, "openimages": 601}
# Each is looked up in WordNet by hand: what the data set annotates, and what the first sense is.
WRONG_FIRST_SENSES = {
    ("openimages", "Leopard"): ("leopard.n.02", "leopard.n.01"),
    ("openimages", "Plate"): ("plate.n.04", "home_plate.n.01"),
    ("openimages", "Tin can"): ("can.n.01", "tin_can.n.01"),
    ("openimages", "Shrimp"): ("shrimp.n.03", "runt.n.01"),
    ("openimages", "Taco"): ("taco.n.02", "greaser.n.01"),
    ("coco", "mouse"): ("mouse.n.04", "mouse.n.01"),
    ("coco", "hot dog"): ("hotdog.n.02", "hotdog.n.01"),
    ("coco", "toaster"): ("toaster.n.02", "toaster.n.01"),
    ("voc", "motorbike"): ("motorcycle.n.01", "minibike.n.01"),
}


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_class_is_mapped_or_says_why_not(dataset: str, nouns: Any) -> None:
    choices = synset_choices(dataset)
    assert len(choices) == CLASSES[dataset]
    graph = nouns
    for name, one in choices.items():
        assert one.synset is None or one.synset in graph, name
        assert one.first_sense is None or one.first_sense in graph, name
        assert bool(one.reason) == (one.synset != one.first_sense or one.synset is None), name


def test_coverage() -> None:
    assert {name: len(synset_map(name)) for name in DATASETS} == {"coco": 80, "voc": 20, "openimages": 599}
    openimages = synset_choices("openimages")
    unmapped = [name for name in openimages if name not in synset_map("openimages")]
    assert unmapped == ["Office supplies", "Bathroom accessory"]
    assert synset_choices("coco")["stop sign"].first_sense is None
    assert openimages["Leopard"].synset != openimages["Leopard"].first_sense


def test_wrong_first_senses(nouns: Any) -> None:
    name = nouns.nodes(data="name")
    for (dataset, one), (chosen, first) in WRONG_FIRST_SENSES.items():
        choice = synset_choices(dataset)[one]
        assert choice.synset is not None
        assert choice.first_sense is not None
        assert (name[choice.synset], name[choice.first_sense]) == (chosen, first)
    assert synset_map("openimages")["Leopard"] == "n02128385"


def test_voc_and_coco_agree() -> None:
    voc, coco = synset_map("voc"), synset_map("coco")
    for ours, theirs in {"aeroplane": "airplane", "sofa": "couch", "tvmonitor": "tv", "person": "person"}.items():
        assert voc[ours] == coco[theirs]


def test_first_senses_are_those_of_nltk(wordnet_folder: Path) -> None:
    reader = nltk_reader(wordnet_folder)
    for dataset in DATASETS:
        for name, one in synset_choices(dataset).items():
            found = reader.synsets(name.lower().replace(" ", "_"), pos="n")
            assert one.first_sense == (f"n{found[0].offset():08d}" if found else None), name


@real_files("openimages")
def check_the_names_are_those_of_open_images(shared: Path) -> None:
    with (shared / "data/openimages/class-descriptions-boxable.csv").open(encoding="utf-8") as stream:
        names = [row[1] for row in csv.reader(stream)]
    assert names == list(synset_choices("openimages"))
