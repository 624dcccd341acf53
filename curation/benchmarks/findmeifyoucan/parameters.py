"""The parameters of FindMeIfYouCan, read from ``--set KEY=VALUE``."""

from __future__ import annotations

from curation.benchmarks.findmeifyoucan.decisions import read_recorded
from curation.benchmarks.findmeifyoucan.pairs import read_pair
from curation.benchmarks.findmeifyoucan.rules import SCANS
from curation.benchmarks.parameters import Parameter, choice, salt, whole, wordnet_parameter

START = {
    "published": "the published start list, where the pair has one; else the rule",
    "rule": "all that the rule lets in, a superset of the published list",
}
ID_OBJECTS = {
    "unknown": "objects of an ID class that are left in a split are unknown, as published",
    "ignore": "they are neither right nor wrong",
}

PARAMETERS = (
    Parameter(
        "pair",
        "voc",
        read_pair,
        "ID classes and OOD sources: voc (near and far), bdd (farther), or a TOML or JSON file of one's own",
    ),
    Parameter(
        "decisions",
        "",
        read_recorded,
        "file of recorded decisions (jsonl, csv, authors' manual_selection); empty for the automatic stage alone",
    ),
    Parameter("pools", "", str, "OOD sources to build, separated by commas; empty for all of the pair"),
    choice("start", START),
    choice(
        "shared",
        ("report", "refuse"),
        "an image that decisions put into the near and into the far split: report, or refuse",
    ),
    choice("id_objects", ID_OBJECTS),
    whole("candidates", 0, "images a split to show to a reviewer; 0 for no such lists"),
    choice("scan", SCANS, default="whole_image"),
    salt("findmeifyoucan", "salt of the hash ranks of candidates"),
    wordnet_parameter(),
)
