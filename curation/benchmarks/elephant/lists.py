"""The Overlooked Elephant of Object Detection: Open Set (Dhamija, Günther, Ventura, Boult; WACV 2020).

A detector that knows the 20 VOC classes is tested on VOC2007 test (closed set) and on COCO train2017 images that show
none of the 20 (the *wilderness*). The paper gives 23,008 such images; its subset WR1 holds as many as the closed set,
4,952. Its rule is the notebook ``Protocol_Creator.ipynb`` of Vastlab/Elephant-of-object-detection, commit 645a4c3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.elephant.orders import Walks, walks_of
from curation.benchmarks.facts import fact, facts_of
from curation.benchmarks.parameters import Parameter, salt
from curation.benchmarks.parts import (
    KNOWN_OF_VOC,
    Part,
    Selection,
    all_images,
    compared,
    make_part,
    manifest_of,
    source_entry,
    unread_entry,
    voc_classes,
)
from curation.benchmarks.published import drafts
from curation.errors import ProtocolError, UsageError
from curation.manifest.header import (
    ClassEntry,
    Figure,
    LabelView,
    Paper,
    PartEntry,
    Supersedes,
)
from curation.manifest.manifest import Manifest
from curation.manifest.views import class_positions
from curation.sources.source import Bools, Source

_ROOM = __package__
_FACTS = facts_of(_ROOM)
PAPER = fact(_ROOM, "paper", Paper)
CLOSED, COCO = "voc2007-test", "coco"
TRAINING = ("voc2007-train", "voc2007-val", "voc2012-train", "voc2012-val")

TEST_VIEW = LabelView()
# The notebook deletes the difficult flag, so the paper's detectors were trained on difficult objects too.
TRAINING_VIEW = LabelView(difficult="keep")
CLOSED_RULE, WILDERNESS_RULE, TRAINING_RULE, LEVELS = (
    _FACTS[key] for key in ("closed_rule", "wilderness_rule", "training_rule", "levels")
)
WR1: dict[str, Any] = _FACTS["wr1"]
"""Part wr1 as a record: the size, the annotated images and the digest of its list."""

HEADER_ONLY_VERSION: str = _FACTS["header_only"]["version"]
HEADER_ONLY_NOTES = tuple(_FACTS["header_only"]["notes"])
HEADER_ONLY_BEFORE = Supersedes(**_FACTS["header_only"]["before"])
ORDER_RULES = fact(_ROOM, "orders", dict[str, str])
ORDER_SUFFIX = fact(_ROOM, "order_suffixes", dict[str, str])

FIGURES = fact(_ROOM, "figures", dict[str, dict[str, tuple[int, str]]])
"""Figures of the paper and of the authors' files, by group: value and place."""
OFFICIAL_FIGURES = fact(_ROOM, "official", dict[str, tuple[str, ...]])
"""Figures by which a file is known to be an official part of COCO."""
TRAINING_FIGURES = fact(_ROOM, "training", dict[str, tuple[int, int, int]])
"""Images, objects and persons of the authors' four training files."""

RECIPES = drafts(_ROOM, classes=voc_classes())
"""Drafts of lists that others published, by the name of the manifest that they make."""


def read_ratios(text: str) -> tuple[str, ...]:
    """Return the ratios of ``0.5,1.0`` in shortest decimal form, ``("0.5", "1")``; else raise `ProtocolError`."""
    ratios = []
    for word in text.split(","):
        matched = re.fullmatch(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?", word.strip())
        decimals = matched and (matched[2] or "").rstrip("0")
        ratio = matched and f"{int(matched[1])}{f'.{decimals}' if decimals else ''}"
        if not ratio or Fraction(ratio) == 0 or ratio in ratios:
            raise ProtocolError(
                "A wilderness ratio is not a positive decimal number, or stands twice",
                where="--set ratios",
                expected="for example 0.5,1.0,2",
                found=repr(word[:40]),
            )
        ratios.append(ratio)
    return tuple(ratios)


def read_orders(text: str) -> tuple[str, ...]:
    """Return the orders of ``cpython_set,hash``; an unknown or repeated one is a `ProtocolError`."""
    orders = tuple(word.strip() for word in text.split(","))
    for place, order in enumerate(orders):
        if order not in ORDER_RULES or order in orders[:place]:
            raise ProtocolError(
                "An order of selection is not known, or stands twice",
                where="--set orders",
                expected=f"some of {', '.join(ORDER_RULES)}",
                found=repr(order[:40]),
            )
    return orders


PARAMETERS = (
    Parameter(
        name="ratios",
        default="1.0",
        read=read_ratios,
        meaning="wilderness ratios, comma-separated decimals: parts wr1, wr0.5, … of floor(ratio * closed images)",
    ),
    Parameter(
        name="orders",
        default="cpython_set,hash",
        read=read_orders,
        meaning="orders the ratios are taken in: cpython_set (the notebook's; part wr1), hash (wr1-hash), id (wr1-id), "
        "cpython_set_as_listed (wr1-as-listed)",
    ),
    salt("elephant/wilderness-ratio", "salt of the hash order"),
)


ALGORITHM_VERSION = 1


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the Elephant manifest of these sources.

    Parameters
    ----------
    sources : mapping of str to Source
        ``voc2007-test`` with boxes and ``coco`` (any part); optionally the four training parts.
    parameters : mapping
        ``ratios``: wilderness ratios as decimal texts; ``orders``: names of `ORDER_RULES`; ``salt``: of the hash order.

    Raises
    ------
    ProtocolError
        The closed set shows no known class or an unknown one; nothing is left as wilderness, or nothing unknown in it
        (both happen when sources are swapped); a ratio asks for more images than the wilderness has.
    PresenceOnlyError
        A VOC source has no boxes.
    """
    coco = sources[COCO]
    classes = voc_classes(coco)
    closed = closed_part(sources[CLOSED], classes)
    shows_known = known_images(coco, classes)
    wilderness = wilderness_part(coco, shows_known, classes)
    walks, selected = wilderness_ratios(coco, shows_known, closed, wilderness, classes, parameters)
    training = [training_part(slot, sources[slot], classes) for slot in TRAINING if slot in sources]
    parts = [closed, wilderness, *selected, *training]
    given = [slot for slot in (CLOSED, COCO, *TRAINING) if slot in sources]
    rule_parameters = {
        **parameters,
        "levels": LEVELS,
        "wilderness_evidence": "boxes" if coco.objects is not None else "presence",
        "wr1_depends_on_file_order": walks.depends_on_file_order,
    }
    figures = figures_of({part.entry.name: part for part in parts}, sources)
    official = official_part(figures)
    return manifest_of(
        parts,
        name=default_name(coco, official),
        title=f"{PAPER.title}: wilderness of {f'COCO {official}' if official else 'a COCO file of your own'}",
        paper=PAPER,
        taxonomy="OSOD-I",
        classes=classes,
        sources=tuple(source_entry(slot, sources[slot]) for slot in given),
        protocol="elephant",
        algorithm_version=ALGORITHM_VERSION,
        parameters=rule_parameters,
        figures=figures,
        notes=_notes(coco, walks),
    )


def closed_part(source: Source, classes: Sequence[ClassEntry]) -> Part:
    """Return the closed test set: every image of VOC2007 test."""
    objects = source.require_objects("The closed part")
    used = np.unique(objects.category)
    names = [source.categories.names[category] for category in used.tolist()]
    known = {name for pair in KNOWN_OF_VOC for name in pair}
    strangers = [name for name in names if name not in known]
    if strangers or not names:
        nothing = f"{len(source.images)} images without objects"
        raise ProtocolError(
            f"The closed set shows {'classes other than the 20 known ones' if strangers else 'no known class'}",
            where=f"source {CLOSED}: {_file_of(source)}",
            expected="VOC2007 test with its 20 classes",
            found=", ".join(repr(name[:40]) for name in strangers[:5]) or nothing,
            hint=f"is it the other way round? --source {CLOSED}=VOC --source {COCO}=COCO",
        )
    return make_part(
        "closed",
        "test",
        Selection(CLOSED, source, all_images(source)),
        classes,
        view=TEST_VIEW,
        rule=CLOSED_RULE,
    )


def known_images(coco: Source, classes: Sequence[ClassEntry]) -> Bools:
    """Return for each image whether any annotation, crowd included, is of one of the 20 classes."""
    known = np.array([entry.role == "known" for entry in classes], np.bool_)
    image, category = coco.class_pairs()
    shows_known = np.zeros(len(coco.images), np.bool_)
    shows_known[image[known[class_positions(classes, coco)][category]]] = True
    return shows_known


def wilderness_part(coco: Source, shows_known: Bools, classes: Sequence[ClassEntry]) -> Part:
    """Return the full wilderness: every image that shows no known class (the paper's Mixed_Unknowns)."""
    positions = np.flatnonzero(~shows_known)
    part = make_part(
        "wilderness",
        "wilderness",
        Selection(COCO, coco, positions),
        classes,
        view=TEST_VIEW,
        rule=WILDERNESS_RULE,
    )
    if not part.entry.annotated_images:
        raise ProtocolError(
            "No image of the wilderness source shows an unknown class and no known one",
            where=f"source {COCO}: {_file_of(coco)}",
            expected="COCO instances: 80 classes, 60 of them unknown",
            found=f"{len(coco.images)} images, {int(shows_known.sum())} with a known class, {len(positions)} without",
            hint=f"is it the other way round? --source {CLOSED}=VOC --source {COCO}=COCO",
        )
    return part


def wilderness_ratios(
    coco: Source,
    shows_known: Bools,
    closed: Part,
    wilderness: Part,
    classes: Sequence[ClassEntry],
    parameters: Mapping[str, Any],
) -> tuple[Walks, list[Part]]:
    """Return, for each ratio r and order, the first floor(r * N) wilderness images, N the size of the closed part."""
    sizes = {ratio: int(Fraction(ratio) * len(closed.ids)) for ratio in parameters["ratios"]}
    for ratio, size in sizes.items():
        _require_size(ratio, size, len(closed.ids), len(wilderness.ids), _file_of(coco))
    walks = walks_of(coco, shows_known, parameters, sorted(sizes.values()))
    parts = [
        make_part(
            f"wr{ratio}{ORDER_SUFFIX[order]}",
            "wilderness",
            Selection(COCO, coco, walks.by_order[order][:size]),
            classes,
            view=TEST_VIEW,
            rule=_ratio_rule(ratio, size, order),
            subset_of="wilderness",
        )
        for order in parameters["orders"]
        for ratio, size in sizes.items()
    ]
    return walks, parts


def training_part(slot: str, source: Source, classes: Sequence[ClassEntry]) -> Part:
    """Return one of the four VOC parts that the paper's detectors were trained on."""
    source.require_objects("A training part")
    return make_part(
        slot,
        "train",
        Selection(slot, source, all_images(source)),
        classes,
        view=TRAINING_VIEW,
        rule=TRAINING_RULE,
    )


def default_name(coco: Source, official: str = "") -> str:
    """Return the manifest's name: ``elephant/val2017`` for an official part of COCO, told by its figures.

    A file name is no evidence: any other file gives ``elephant/custom``, or ``elephant/custom-PART`` where it calls
    itself otherwise than an official part. An approximate manifest says so.
    """
    word = re.sub(r"[^a-z0-9]+", "", coco.part.lower())[:40]
    own = f"custom-{word}" if word and word not in OFFICIAL_FIGURES else "custom"
    return f"elephant/{official or own}" + ("-approximate" if coco.objects is None else "")


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
        The defaults: the paper's own version has no other.

    Raises
    ------
    UsageError
        A parameter is another.
    """
    if parameters != {parameter.name: parameter.read(parameter.default) for parameter in PARAMETERS}:
        raise UsageError("--header-only writes the paper's own version", where="--set", expected="no parameters")
    classes = voc_classes()
    closed = closed_part(sources[CLOSED], classes)
    wilderness = PartEntry(
        name="wilderness", role="wilderness", sources=(COCO,), selection=WILDERNESS_RULE, view=TEST_VIEW
    )
    selected = [
        _declared_ratio(ratio, int(Fraction(ratio) * len(closed.ids)), order)
        for order in parameters["orders"]
        for ratio in parameters["ratios"]
    ]
    coco = unread_entry(
        COCO,
        "coco",
        "train2017",
        note="instances_train2017.json of annotations_trainval2017.zip, from your own disk",
    )
    return manifest_of(
        [closed, wilderness, *selected],
        name="elephant/train2017",
        version=HEADER_ONLY_VERSION,
        title=f"{PAPER.title}: wilderness of COCO train2017",
        paper=PAPER,
        taxonomy="OSOD-I",
        origin="declared",
        classes=classes,
        sources=(source_entry(CLOSED, sources[CLOSED]), coco),
        protocol="elephant",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, "levels": LEVELS, "wilderness_evidence": "boxes"},
        figures=declared_figures(closed, {part.name: part for part in selected}["wr1"]),
        notes=HEADER_ONLY_NOTES,
        supersedes=HEADER_ONLY_BEFORE,
    )


def _declared_ratio(ratio: str, size: int, order: str) -> PartEntry:
    entry = PartEntry(
        name=f"wr{ratio}{ORDER_SUFFIX[order]}",
        role="wilderness",
        sources=(COCO,),
        selection=_ratio_rule(ratio, size, order),
        view=TEST_VIEW,
        subset_of="wilderness",
    )
    is_wr1 = (entry.name, size) == ("wr1", WR1["images"])
    return msgspec.structs.replace(entry, **WR1) if is_wr1 else entry


def _notes(coco: Source, walks: Walks) -> tuple[str, ...]:
    notes = []
    if coco.objects is None:
        notes.append(
            "APPROXIMATE: the wilderness comes from a table of image and class, not from the annotations. A class that "
            "the table misses lets an image in wrongly; images without annotation that it does not list are missing."
        )
    if coco.dropped:
        notes.append("The reader left out records of the wilderness source (see sources): check the lists.")
    if walks.depends_on_file_order:
        notes.append(
            "At this size a cpython_set part depends on the order in which the set is filled: here by ascending id. "
            "The notebook fills it in the order of images in the file: --set orders=cpython_set_as_listed."
        )
    return tuple(notes)


def _require_size(ratio: str, size: int, closed: int, available: int, file: str) -> None:
    if size < 1 or size > available:
        largest = Fraction(available, closed)
        raise ProtocolError(
            f"Wilderness ratio {ratio} cannot be had from this source",
            where=f"source {COCO}: {file}",
            expected=f"1 to {available} images: the wilderness source has {available} images without a known class",
            found=f"floor({ratio} * {closed}) = {size} images",
            hint=f"a larger COCO part, such as train2017, or, where the manifest fixes no ratio, --set ratios="
            f"{int(largest * 10) / 10 or float(int(largest * 1000) / 1000)}",
        )


def _ratio_rule(ratio: str, size: int, order: str) -> str:
    return f"The first floor({ratio} * N) = {size} wilderness images in {ORDER_RULES[order]}."


def _file_of(source: Source) -> str:
    return source.files[0].name if source.files else source.dataset


_TRAIN_IMAGES = "number of images of the split, as in the authors' custom_voc_*.json"
_CLOSED_REASON = (
    "the closed source is not VOC2007 test, or a file of it that leaves out objects or their difficult flag"
)


def figures_of(parts: Mapping[str, Part], sources: Mapping[str, Source]) -> tuple[Figure, ...]:
    """Return every figure of the paper that these sources bear on, with what was obtained and why it differs."""
    coco = sources["coco"]
    obtained = {**_closed(parts["closed"]), **_wilderness(parts, coco)}
    figures = _beside("closed", obtained, lambda _: _CLOSED_REASON)
    figures += _beside("wilderness", obtained, lambda name: _wilderness_reason(name, obtained[name], coco))
    if coco.part == "val2017":
        counts = {
            "val2017.images": obtained["coco.images"],
            "val2017.wilderness_images": obtained["wilderness.images"],
        }
        figures += _beside("val2017", counts, lambda _: "the source is not the official val2017")
    return (*figures, *_training(parts, sources))


def _beside(group: str, obtained: Mapping[str, int | None], reason: Callable[[str], str]) -> list[Figure]:
    """Return the figures of a group of `FIGURES`, each with the reason where what was obtained differs."""
    return [compared(name, obtained.get(name), *stated, reason(name)) for name, stated in FIGURES[group].items()]


def official_part(figures: Sequence[Figure]) -> str:
    """Return the official part of COCO whose figures are all met, ``""`` where there is none."""
    met = {one.name for one in figures if one.paper is not None and one.obtained == one.paper}
    return next((part for part, names in OFFICIAL_FIGURES.items() if met.issuperset(names)), "")


def declared_figures(closed: Part, wr1: PartEntry) -> tuple[Figure, ...]:
    """Return the figures of a manifest whose wilderness is not available yet, but for WR1 where that is pinned."""
    obtained = {**_closed(closed), "wr1.images": wr1.images}
    waiting = "not computed yet: needs instances_train2017.json"
    return (
        *_beside("closed", obtained, lambda _: _CLOSED_REASON),
        *_beside("wilderness", obtained, lambda _: waiting),
    )


def level_count(closed: int, wilderness: int) -> int:
    """Return the number of levels k = 0, 1, … with ``k * closed // 10 <= wilderness``."""
    # k*N//10 <= W exactly when k*N <= 10*W + 9.
    return (10 * wilderness + 9) // closed + 1


def _closed(part: Part) -> dict[str, int | None]:
    boxes, difficult = part.boxes or 0, part.entry.boxes["difficult"]
    return {
        "closed.images": part.entry.images,
        "closed.boxes": boxes,
        "closed.non_difficult_boxes": boxes - difficult,
        "closed.difficult_boxes": difficult,
    }


def _wilderness(parts: Mapping[str, Part], coco: Source) -> dict[str, int | None]:
    entry = parts["wilderness"].entry
    images, annotated = entry.images or 0, entry.annotated_images or 0
    wr1 = parts.get("wr1")
    shown = np.zeros(len(coco.images), np.bool_)
    shown[coco.class_pairs()[0]] = True
    return {
        "coco.images": len(coco.images),
        "coco.annotated_images": int(shown.sum()),
        "wilderness.images": images,
        "wilderness.annotated_images": annotated,
        "wilderness.unannotated_images": images - annotated,
        "wilderness.levels": level_count(len(parts["closed"].ids), images),
        "wr1.images": None if wr1 is None else wr1.entry.images,
        "wr1.non_crowd_boxes": None if wr1 is None else wr1.non_crowd_boxes,
    }


def _wilderness_reason(name: str, obtained: int | None, coco: Source) -> str:
    if obtained is None:
        return "a presence-only source has no boxes" if coco.objects is None else "this part was not asked for"
    if coco.objects is None:
        return "a presence table: classes may be missed, images without annotation may be missing"
    if coco.part != "train2017":
        return f"counted in COCO {coco.part or 'data of another part'}; the paper's wilderness is train2017"
    if name.startswith("wr1") or name.endswith("levels"):
        return "follows from the wilderness or the closed part, which differ from the paper's"
    return "the source is not the official instances_train2017.json"


def _training(parts: Mapping[str, Part], sources: Mapping[str, Source]) -> list[Figure]:
    figures = []
    for slot, (images, boxes, persons) in TRAINING_FIGURES.items():
        if slot not in parts:
            continue
        objects = sources[slot].require_objects("A training part")
        names = sources[slot].categories.names
        n_persons = int((objects.category == names.index("person")).sum()) if "person" in names else 0
        reason = "the source is not the official split, or leaves out its difficult objects"
        figures += [
            compared(f"{slot}.images", len(parts[slot].ids), images, _TRAIN_IMAGES, reason),
            compared(f"{slot}.boxes", len(objects), boxes, f"annotations of the authors' file of {slot}", reason),
            compared(f"{slot}.persons", n_persons, persons, f"annotations of the authors' file of {slot}", reason),
        ]
    return figures
