"""The Overlooked Elephant of Object Detection: Open Set (Dhamija, Günther, Ventura, Boult; WACV 2020).

A detector that knows the 20 VOC classes is tested on VOC2007 test (closed set) and on COCO train2017 images that show
none of the 20 (the *wilderness*). The paper gives 23,008 such images; its subset WR1 holds as many as the closed set,
4,952. ``elephant.toml`` is a file of the rule ``wilderness``, which selects all parts. This module names the manifest
and its parts, compares the paper's figures, and declares the paper's own version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.benchmark import benchmark_facts, declared_parameters, fact
from curation.benchmarks.parts import Part, compared, manifest_of, source_entry, unread_entry
from curation.benchmarks.rules import wilderness
from curation.benchmarks.rules.benchmark_file import class_entries, decimal_text, packaged_file
from curation.core.errors import ProtocolError, UsageError
from curation.evaluation.open_set import wilderness_levels
from curation.manifest.header import ClassEntry, Figure, LabelView, PartEntry, Supersedes
from curation.manifest.manifest import Manifest
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Source

FILE = packaged_file("elephant")
"""The paper's file: what ``extends = "elephant"`` inherits, and the figures."""
PAPER = wilderness.PAPER
CLOSED, COCO, *TRAINING = FILE.sources
WORDS: Mapping[str, str] = {**wilderness.WORDS, **fact(__package__, "words", dict[str, str])}
ORDER_SUFFIX = fact(__package__, "order_suffixes", dict[str, str])
OFFICIAL_FIGURES = fact(__package__, "official", dict[str, tuple[str, ...]])
"""Figures by which a file is known to be an official part of COCO."""
_DIFFERS = fact(__package__, "differs", dict[str, str])


def _read(name: str, expected: str, text: str) -> tuple[str, ...]:
    """Return different values, separated by commas, as the rule reads them from a file."""
    values: tuple[Any, ...] = tuple(map(str.strip, text.split(",")))
    try:
        values = getattr(msgspec.convert({name: values}, wilderness.PARAMETERS, strict=False), name)
    except msgspec.ValidationError:
        values = ()
    texts = tuple(decimal_text(value) if isinstance(value, Decimal) else value for value in values)
    if not texts or len({*texts}) < len(texts):
        message = f"One of the {name} is invalid, or appears twice"
        raise ProtocolError(message, where=f"--set {name}", expected=expected, found=repr(text[:80]))
    return texts


read_ratios = partial(_read, "ratios", "positive decimal numbers, for example 0.5,1.0,2")
read_orders = partial(_read, "orders", f"some of {', '.join(wilderness.ORDERS)}")


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the Elephant manifest of these sources.

    Parameters
    ----------
    sources : mapping of str to Source
        ``voc2007-test`` with boxes and ``coco`` (any part); optionally the four training parts.
    parameters : mapping
        ``ratios``: wilderness ratios as decimal texts; ``orders``: names of orders of the rule; ``salt``: of the hash
        order.

    Raises
    ------
    ProtocolError, PresenceOnlyError
        The sources do not fit the rule (see `curation.benchmarks.rules.wilderness.wilderness_parts`).
    """
    coco, used = sources[COCO], {name: sources[name] for name in FILE.sources if name in sources}
    benchmark = msgspec.structs.replace(FILE, parameters={**FILE.parameters, **parameters})
    classes = _classes(coco.categories.names)
    made, depends_on_filling = wilderness.wilderness_parts(benchmark, used, classes, WORDS, ORDER_SUFFIX)
    figures = _figures({part.entry.name: part for part in made}, used)
    equal = {figure.name for figure in figures if figure.obtained == figure.paper}
    official = next((part for part, names in OFFICIAL_FIGURES.items() if equal.issuperset(names)), "")
    conditions = {"presence": coco.objects is None, "dropped": coco.dropped, "filling": depends_on_filling}
    return _manifest(
        made,
        name=elephant_manifest_name(coco, official),
        title=f"{PAPER.title}: wilderness of {f'COCO {official}' if official else 'a COCO file of your own'}",
        classes=classes,
        sources=tuple(source_entry(name, source) for name, source in used.items()),
        parameters={
            **parameters,
            "levels": WORDS["levels"],
            "wilderness_evidence": "boxes" if coco.objects is not None else "presence",
            "wr1_depends_on_file_order": depends_on_filling,
        },
        figures=figures,
        notes=[WORDS[key] for key, holds in conditions.items() if holds],
    )


def _manifest(made: Iterable[Part | PartEntry], **facts: Any) -> Manifest:
    return manifest_of(made, paper=PAPER, taxonomy="OSOD-I", protocol="elephant", **facts)


def _classes(category_names: Iterable[str] = ()) -> tuple[ClassEntry, ...]:
    """Return VOC's 20 classes as known ones, then every other class of COCO and of a file as unknown, by name."""
    aliases = {alias for names in FILE.classes.aliases.values() for alias in names}
    names = {name for _, name, _ in COCO_CATEGORIES}.union(category_names) - aliases
    return class_entries(FILE, tuple(sorted(names)))


def elephant_manifest_name(coco: Source, official: str = "") -> str:
    """Return the manifest's name: ``elephant/val2017`` for an official part of COCO, recognised by its figures.

    A file name proves nothing: any other file gives ``elephant/custom``, or ``elephant/custom-PART`` for a part with
    another name than an official one. An approximate manifest ends in ``-approximate``.
    """
    part = re.sub(r"[^a-z0-9]+", "", coco.part.lower())[:40]
    custom_name = f"custom-{part}" if part and part not in OFFICIAL_FIGURES else "custom"
    return f"elephant/{official or custom_name}" + ("-approximate" if coco.objects is None else "")


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the declared manifest of the paper's own version, wilderness of train2017.

    The closed part is exact. WR1 is pinned by the digest of its list. The other wilderness parts have no lists: they
    pin the rule and the paper's figures, which ``curation build`` checks once the reader's own
    ``instances_train2017.json`` is given.

    Parameters
    ----------
    sources : mapping of str to Source
        ``voc2007-test``.
    parameters : mapping
        The defaults, which are those of the paper's version.

    Raises
    ------
    UsageError
        A parameter differs from its default.
    """
    if parameters != {param.name: param.read(param.default) for param in declared_parameters(__package__)}:
        raise UsageError("--header-only writes the paper's version", where="--set", expected="no parameters")
    facts = benchmark_facts(__package__)
    declared, wr1 = facts["header_only"], facts["wr1"]
    classes, view = _classes(), LabelView()
    closed = wilderness.closed_part(CLOSED, sources[CLOSED], classes, view, "refuse", WORDS["closed"])
    n_closed = len(closed.ids)
    everything = PartEntry(
        name="wilderness", role="wilderness", sources=(COCO,), selection=WORDS["wilderness"], view=view
    )
    ratio_parts = [
        msgspec.structs.replace(
            everything,
            name=f"wr1{ORDER_SUFFIX[order]}",
            selection=WORDS["ratio"].format(ratio="1", size=n_closed, order=WORDS[order]),
            subset_of="wilderness",
            **(wr1 if order == "cpython_set" and n_closed == wr1["images"] else {}),
        )
        for order in parameters["orders"]
    ]
    obtained = {**_counts({"closed": closed}), "wr1.images": ratio_parts[0].images}
    figures = [
        compared(name, obtained.get(name), figure.value, figure.place, _DIFFERS.get(subject, _DIFFERS["declared"]))
        for name, figure in FILE.expect.items()
        if (subject := name.partition(".")[0]) in ("closed", COCO, "wilderness", "wr1")
    ]
    note = "instances_train2017.json of annotations_trainval2017.zip, from your own disk"
    return _manifest(
        [closed, everything, *ratio_parts],
        name="elephant/train2017",
        version=declared["version"],
        title=f"{PAPER.title}: wilderness of COCO train2017",
        origin="declared",
        classes=classes,
        sources=(source_entry(CLOSED, sources[CLOSED]), unread_entry(COCO, "coco", "train2017", note=note)),
        parameters={**parameters, "levels": WORDS["levels"], "wilderness_evidence": "boxes"},
        figures=figures,
        notes=declared["notes"],
        supersedes=Supersedes(**declared["before"]),
    )


def _figures(made: Mapping[str, Part], sources: Mapping[str, Source]) -> list[Figure]:
    """Return every figure of the paper on these sources, with the obtained number and the reason for a difference."""
    coco = sources[COCO]
    obtained = _counts(made)
    images = obtained["wilderness.images"] or 0
    obtained |= {
        "coco.images": len(coco.images),
        "coco.annotated_images": int(np.count_nonzero(np.bincount(coco.class_pairs()[0]))),
        "wilderness.levels": len(wilderness_levels(len(made["closed"].ids), images)),
        "val2017.images": len(coco.images),
        "val2017.wilderness_images": images,
    }
    training = [name for name in TRAINING if name in made]
    for name in training:
        objects, names = sources[name].require_objects("A training part"), sources[name].categories.names
        obtained[f"{name}.persons"] = int((objects.category == names.index("person")).sum()) if "person" in names else 0
    subjects = ["closed", COCO, "wilderness", "wr1", *["val2017"] * (coco.part == "val2017"), *training]
    return [
        compared(name, obtained.get(name), figure.value, figure.place, _reason(name, obtained.get(name), coco))
        for name, figure in FILE.expect.items()
        if name.partition(".")[0] in subjects
    ]


def _counts(made: Mapping[str, Part]) -> dict[str, int | None]:
    return {f"{name}.{kind}": count for name, part in made.items() for kind, count in part.counts.items()}


def _reason(name: str, obtained: int | None, coco: Source) -> str:
    """Return why a figure differs from the paper's."""
    subject = name.partition(".")[0]
    if reason := _DIFFERS.get("training" if subject in TRAINING else subject):
        return reason
    if obtained is None:
        return "a presence-only source has no boxes" if coco.objects is None else "this part was not asked for"
    if coco.objects is None:
        return "a presence table: classes may be missed, images without annotation may be missing"
    if coco.part != "train2017":
        return f"counted in COCO {coco.part or 'data of another part'}; the paper's wilderness is train2017"
    if name.startswith("wr1") or name.endswith("levels"):
        return "follows from the wilderness or the closed part, which differ from the paper's"
    return "the source is not the official instances_train2017.json"
