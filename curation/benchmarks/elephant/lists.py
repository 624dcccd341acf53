"""The Overlooked Elephant of Object Detection: Open Set (Dhamija, Günther, Ventura, Boult; WACV 2020).

A detector that knows the 20 VOC classes is tested on VOC2007 test (closed set) and on COCO train2017 images that show
none of the 20 (the *wilderness*). The paper gives 23,008 such images; its subset WR1 holds as many as the closed set,
4,952. Its rule is the notebook ``Protocol_Creator.ipynb`` of Vastlab/Elephant-of-object-detection, commit 645a4c3.

The notebook takes ``list(set(coco.imgs) - known)[:n]``: no seed and no shuffle, but the order in which
CPython 3.7 to 3.13 walks a set of ints (``Objects/setobject.c``). That order is a fact about one implementation, so
nothing here relies on the interpreter at hand: `difference_order` is the hash table itself, and its tests hold it
against the real one. ``hash(n) == n`` for every number admitted here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks import parts
from curation.benchmarks.benchmark import benchmark_facts, declared_parameters, fact, several
from curation.benchmarks.parts import (
    Part,
    Selection,
    all_images,
    compared,
    images_with_roles,
    source_entry,
    voc_classes,
)
from curation.benchmarks.rules.wilderness import RATIO_RULE, closed_part, ordered, ratio_size, wilderness_part
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.header import ClassEntry, Figure, LabelView, Paper, PartEntry, Supersedes
from curation.manifest.manifest import Manifest
from curation.sources.source import Bools, Int64s, Source

_FACTS = benchmark_facts(__package__)
PAPER = fact(__package__, "paper", Paper)
CLOSED, COCO = "voc2007-test", "coco"
TRAINING = ("voc2007-train", "voc2007-val", "voc2012-train", "voc2012-val")
TEST_VIEW = LabelView()
# The notebook deletes the difficult flag, so the paper's detectors were trained on difficult objects too.
TRAINING_VIEW = LabelView(difficult="keep")
WR1: dict[str, Any] = _FACTS["wr1"]
"""Part wr1 as a record: the size, the annotated images and the digest of its list."""
ORDER_RULES = fact(__package__, "orders", dict[str, str])
ORDER_SUFFIX = fact(__package__, "order_suffixes", dict[str, str])
FIGURES = fact(__package__, "figures", dict[str, dict[str, tuple[int, str]]])
"""Figures of the paper and of the authors' files, by group: value and place."""
OFFICIAL_FIGURES = fact(__package__, "official", dict[str, tuple[str, ...]])
"""Figures by which a file is known to be an official part of COCO."""
TRAINING_FIGURES = fact(__package__, "training", dict[str, tuple[int, int, int]])
"""Images, objects and persons of the authors' four training files."""
_SWAPPED = f"is it the other way round? --source {CLOSED}=VOC --source {COCO}=COCO"


def _ratio(word: str) -> str | None:
    """Return a positive decimal number in its shortest form."""
    matched = re.fullmatch(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?", word)
    if not matched or Fraction(word) == 0:
        return None
    decimals = (matched[2] or "").rstrip("0")
    return f"{int(matched[1])}.{decimals}" if decimals else str(int(matched[1]))


read_ratios = several("ratios", _ratio, "positive decimal numbers, for example 0.5,1.0,2")
read_orders = several("orders", lambda word: word if word in ORDER_RULES else None, f"some of {', '.join(ORDER_RULES)}")

_manifest_of = partial(parts.manifest_of, paper=PAPER, taxonomy="OSOD-I", protocol="elephant", algorithm_version=1)


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
    closed = _closed_part(sources[CLOSED], classes)
    shows_known = images_with_roles(coco, classes, "known")
    left = Selection(COCO, coco, np.flatnonzero(~shows_known))
    wilderness = wilderness_part([left], classes, TEST_VIEW, _FACTS["wilderness_rule"])
    hint = "a larger COCO part, such as train2017, or, where the manifest fixes no ratio, --set ratios={}"
    sizes = {
        ratio: ratio_size(ratio, closed, wilderness, f"source {COCO}: {_file_of(coco)}", hint)
        for ratio in parameters["ratios"]
    }
    walks, depends_on_file_order = walks_of(coco, shows_known, parameters, sorted(sizes.values()))
    selected = [
        parts.make_part(
            selected=Selection(COCO, coco, walks[order][:size]), classes=classes, **_ratio_part(ratio, size, order)
        )
        for order in parameters["orders"]
        for ratio, size in sizes.items()
    ]
    rule = _FACTS["training_rule"]
    training = []
    for slot in (slot for slot in TRAINING if slot in sources):
        sources[slot].require_objects("A training part")
        chosen = Selection(slot, sources[slot], all_images(sources[slot]))
        training.append(parts.make_part(slot, "train", chosen, classes, view=TRAINING_VIEW, rule=rule))
    made = {part.entry.name: part for part in (closed, wilderness, *selected, *training)}
    figures = elephant_figures(made, sources)
    met = {figure.name for figure in figures if figure.paper is not None and figure.obtained == figure.paper}
    official = next((part for part, names in OFFICIAL_FIGURES.items() if met.issuperset(names)), "")
    return _manifest_of(
        made.values(),
        name=elephant_manifest_name(coco, official),
        title=f"{PAPER.title}: wilderness of {f'COCO {official}' if official else 'a COCO file of your own'}",
        classes=classes,
        sources=tuple(source_entry(slot, sources[slot]) for slot in (CLOSED, COCO, *TRAINING) if slot in sources),
        parameters={
            **parameters,
            "levels": _FACTS["levels"],
            "wilderness_evidence": "boxes" if coco.objects is not None else "presence",
            "wr1_depends_on_file_order": depends_on_file_order,
        },
        figures=figures,
        notes=_notes(coco, depends_on_file_order),
    )


def _closed_part(source: Source, classes: Sequence[ClassEntry]) -> Part:
    """Return the closed test set: every image of VOC2007 test."""
    return closed_part(CLOSED, source, classes, TEST_VIEW, rule=_FACTS["closed_rule"], hint=_SWAPPED)


def _ratio_part(ratio: str, size: int, order: str) -> dict[str, Any]:
    """Return what says which wilderness images are those of a ratio, in one order."""
    return {
        "name": f"wr{ratio}{ORDER_SUFFIX[order]}",
        "role": "wilderness",
        "rule": RATIO_RULE.format(ratio=ratio, size=size, order=ORDER_RULES[order]),
        "view": TEST_VIEW,
        "subset_of": "wilderness",
    }


def elephant_manifest_name(coco: Source, official: str = "") -> str:
    """Return the manifest's name: ``elephant/val2017`` for an official part of COCO, recognised by its figures.

    A file name proves nothing: any other file gives ``elephant/custom``, or ``elephant/custom-PART`` where it calls
    itself otherwise than an official part. An approximate manifest ends in ``-approximate``.
    """
    word = re.sub(r"[^a-z0-9]+", "", coco.part.lower())[:40]
    custom_name = f"custom-{word}" if word and word not in OFFICIAL_FIGURES else "custom"
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
        The defaults: the paper's own version has no other.

    Raises
    ------
    UsageError
        A parameter is another.
    """
    if parameters != {param.name: param.read(param.default) for param in declared_parameters(__package__)}:
        raise UsageError("--header-only writes the paper's own version", where="--set", expected="no parameters")
    header_facts = _FACTS["header_only"]
    classes = voc_classes()
    closed = _closed_part(sources[CLOSED], classes)
    everything = {"name": "wilderness", "role": "wilderness", "rule": _FACTS["wilderness_rule"], "view": TEST_VIEW}
    wilderness = [
        everything,
        *(
            _ratio_part(ratio, int(Fraction(ratio) * len(closed.ids)), order)
            for order in parameters["orders"]
            for ratio in parameters["ratios"]
        ),
    ]
    entries = {facts["name"]: PartEntry(sources=(COCO,), selection=facts.pop("rule"), **facts) for facts in wilderness}
    if len(closed.ids) == WR1["images"]:
        entries["wr1"] = msgspec.structs.replace(entries["wr1"], **WR1)
    note = "instances_train2017.json of annotations_trainval2017.zip, from your own disk"
    figures = [
        *_beside("closed", _closed(closed), _CLOSED_REASON),
        *_beside(
            "wilderness", {"wr1.images": entries["wr1"].images}, "not computed yet: needs instances_train2017.json"
        ),
    ]
    return _manifest_of(
        [closed, *entries.values()],
        name="elephant/train2017",
        version=header_facts["version"],
        title=f"{PAPER.title}: wilderness of COCO train2017",
        origin="declared",
        classes=classes,
        sources=(source_entry(CLOSED, sources[CLOSED]), parts.unread_entry(COCO, "coco", "train2017", note=note)),
        parameters={**parameters, "levels": _FACTS["levels"], "wilderness_evidence": "boxes"},
        figures=figures,
        notes=header_facts["notes"],
        supersedes=Supersedes(**header_facts["before"]),
    )


def _notes(coco: Source, depends_on_file_order: bool) -> tuple[str, ...]:
    notes = []
    if coco.objects is None:
        notes.append(
            "APPROXIMATE: the wilderness comes from a table of image and class, not from the annotations. A class that "
            "the table misses lets an image in wrongly; images without annotation that it does not list are missing."
        )
    if coco.dropped:
        notes.append("The reader left out records of the wilderness source (see sources): check the lists.")
    if depends_on_file_order:
        notes.append(
            "At this size a cpython_set part depends on the order in which the set is filled: here by ascending id. "
            "The notebook fills it in the order of images in the file: --set orders=cpython_set_as_listed."
        )
    return tuple(notes)


def _file_of(source: Source) -> str:
    return source.files[0].name if source.files else source.dataset


_CLOSED_REASON = (
    "the closed source is not VOC2007 test, or a file of it that leaves out objects or their difficult flag"
)


def elephant_figures(made: Mapping[str, Part], sources: Mapping[str, Source]) -> tuple[Figure, ...]:
    """Return every figure of the paper that these sources bear on, with what was obtained and why it differs."""
    coco = sources[COCO]
    obtained = _wilderness(made, coco)
    figures = [
        *_beside("closed", _closed(made["closed"]), _CLOSED_REASON),
        *(
            compared(name, obtained[name], *stated, _wilderness_reason(name, obtained[name], coco))
            for name, stated in FIGURES["wilderness"].items()
        ),
    ]
    if coco.part == "val2017":
        counts = {"val2017.images": obtained["coco.images"], "val2017.wilderness_images": obtained["wilderness.images"]}
        figures += _beside("val2017", counts, "the source is not the official val2017")
    for slot, (images, boxes, persons) in TRAINING_FIGURES.items():
        if slot not in made:
            continue
        objects, names = sources[slot].require_objects("A training part"), sources[slot].categories.names
        n_persons = int((objects.category == names.index("person")).sum()) if "person" in names else 0
        size = "number of images of the split, as in the authors' custom_voc_*.json"
        file = f"annotations of the authors' file of {slot}"
        reason = "the source is not the official split, or leaves out its difficult objects"
        figures += [
            compared(f"{slot}.images", len(made[slot].ids), images, size, reason),
            compared(f"{slot}.boxes", len(objects), boxes, file, reason),
            compared(f"{slot}.persons", n_persons, persons, file, reason),
        ]
    return tuple(figures)


def _beside(group: str, obtained: Mapping[str, int | None], reason: str) -> list[Figure]:
    """Return the figures of a group of `FIGURES`, each with the reason where what was obtained differs."""
    return [compared(name, obtained.get(name), *stated, reason) for name, stated in FIGURES[group].items()]


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


def _wilderness(made: Mapping[str, Part], coco: Source) -> dict[str, int | None]:
    entry, wr1 = made["wilderness"].entry, made.get("wr1")
    images, annotated = entry.images or 0, entry.annotated_images or 0
    return {
        "coco.images": len(coco.images),
        "coco.annotated_images": int(np.count_nonzero(np.bincount(coco.class_pairs()[0]))),
        "wilderness.images": images,
        "wilderness.annotated_images": annotated,
        "wilderness.unannotated_images": images - annotated,
        "wilderness.levels": level_count(len(made["closed"].ids), images),
        "wr1.images": wr1.entry.images if wr1 else None,
        "wr1.non_crowd_boxes": wr1.non_crowd_boxes if wr1 else None,
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


_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd number: multiples of it modulo 2^64 put image numbers into an order that has nothing to do with theirs."""


def walks_of(
    coco: Source, shows_known: Bools, parameters: Mapping[str, Any], sizes: Sequence[int]
) -> tuple[dict[str, Int64s], bool]:
    """Return the wilderness images in each order, as positions, and whether the order of filling has a say.

    The notebook's set is filled in the order of images in the JSON. Collisions in the hash table only permute
    neighbours, so the first n are the same images from any filling order unless the cut falls among such neighbours.
    ``cpython_set`` fills it in ascending order, so that no shuffled file changes a list; ``cpython_set_as_listed``
    takes the file at its word.

    Whether the order of filling has a say is a question about every order there is. It is tried on two that follow
    from the numbers alone, so that the answer is the same for every shuffled file: descending, which exchanges any two
    images that collide, and a scrambled one. ``cpython_set_as_listed``, where asked for, is held against it too.
    True is proved: the set, filled in another order of the same images, begins with other images. False is evidence.
    """
    wilderness, native = np.flatnonzero(~shows_known), coco.images.native[~shows_known]
    ids = np.strings.add(f"{coco.namespace}:", native)
    walks = {
        order: wilderness[ordered(ids, order, parameters["salt"])]
        for order in ("hash", "id")
        if order in parameters["orders"]
    }
    if not {"cpython_set", "cpython_set_as_listed"} & set(parameters["orders"]):
        return walks, False
    numbers = image_numbers(coco)
    ascending = np.argsort(numbers, kind="stable")
    fillings = [ascending[::-1], np.argsort(numbers.astype(np.uint64) * _MIXER, kind="stable")]
    walks["cpython_set"] = walk = _set_walk(numbers, shows_known, ascending)
    if "cpython_set_as_listed" in parameters["orders"]:
        fillings.append(np.arange(len(numbers)))
        walks["cpython_set_as_listed"] = difference_order(numbers, shows_known)
    others = (_set_walk(numbers, shows_known, filling) for filling in fillings)
    return walks, any(
        not np.array_equal(np.sort(walk[:size]), np.sort(other[:size])) for other in others for size in sizes
    )


def _set_walk(numbers: Int64s, shows_known: Bools, filling: Int64s) -> Int64s:
    """Return the walk through the notebook's set when its numbers enter in the order of `filling`."""
    return filling[difference_order(numbers[filling], shows_known[filling])]


def image_numbers(coco: Source) -> Int64s:
    """Return the integer ids that the notebook's set held; text ids must be decimal numbers.

    Raises
    ------
    ProtocolError
        An id is not a number, so the notebook's set of integers does not exist.
    """
    numbers = coco.images.numbers
    if len(numbers) and not np.array_equal(numbers, np.arange(len(numbers))):
        return numbers
    # A reader numbers images 0..n-1 where the file's ids are texts.
    try:
        return coco.images.native.astype(np.int64)
    except (ValueError, OverflowError):
        raise ProtocolError(
            "CPython's set order needs image ids that are numbers",
            where=f"source coco: {coco.files[0].name if coco.files else coco.dataset}",
            found=repr(coco.images.native[0])[:80],
            hint="--set orders=hash",
        ) from None


_SMALLEST_TABLE = 8
_LINEAR_PROBES = 9
_PERTURB_SHIFT = 5
_LARGE_SET = 50_000
_LARGEST_PLAIN_HASH = 2**61 - 2


def difference_order(numbers: Int64s, removed: Bools) -> Int64s:
    """Return the positions of the elements of ``set(dict.fromkeys(numbers)) - set(numbers[removed])``, in its order.

    Parameters
    ----------
    numbers : ndarray of int64, shape (n,)
        Keys of the dict that the left set is made from (``coco.imgs``), in insertion order; unique, 0 to 2^61 - 2.
    removed : ndarray of bool, shape (n,)
        Which of them the right set holds; its own order has no influence.

    Returns
    -------
    ndarray of int64
        Positions in `numbers`: ``numbers[result]`` is the list that CPython makes.

    Raises
    ------
    ProtocolError
        A number is negative, or so large that its hash is another number.
    """
    walk = walk_of_dict(numbers)
    remaining = walk[~removed[walk]]
    # CPython copies the left set and deletes from the copy when the right one has fewer than a quarter of its
    # elements. The copy has the same slots, and so few deletions never make it shrink: the order stays.
    if len(numbers) >> 2 > int(removed.sum()):
        return remaining
    return remaining[walk_of_additions(numbers[remaining])]


def walk_of_dict(numbers: Int64s) -> Int64s:
    """Return the positions of a dict's keys in the order of ``set(d)``, whose table is sized once, above twice n."""
    _check(numbers)
    presized = len(numbers) * 5 >= (_SMALLEST_TABLE - 1) * 3
    return _walk(numbers, _size_above(2 * len(numbers)) if presized else _SMALLEST_TABLE)


def walk_of_additions(numbers: Int64s) -> Int64s:
    """Return the positions of numbers in the order of a set to which they were added one by one."""
    _check(numbers)
    size = _SMALLEST_TABLE
    limit = _fill_limit(size)
    arrivals = np.arange(min(limit, len(numbers)))
    walk = arrivals[_walk(numbers[arrivals], size)]
    while len(numbers) >= limit:
        # The grown table receives what the old one held, in slot order, and then the next additions.
        size = _size_above(limit * 2 if limit > _LARGE_SET else limit * 4)
        arrivals = np.concatenate([walk, np.arange(limit, min(_fill_limit(size), len(numbers)))])
        walk = arrivals[_walk(numbers[arrivals], size)]
        limit = _fill_limit(size)
    return walk


def _fill_limit(size: int) -> int:
    """Return the number of elements whose arrival makes a table grow: the least with ``fill * 5 >= mask * 3``."""
    return -(-3 * (size - 1) // 5)


def _size_above(least: int) -> int:
    size = _SMALLEST_TABLE
    while size <= least:
        size *= 2
    return size


def _walk(numbers: Int64s, size: int) -> Int64s:
    """Return the arrivals 0..n-1 in slot order after they entered a table of this size one after the other.

    Entering one by one, each taking the first free slot of its probe sequence, gives the same table as all proposing at
    once, each slot keeping its earliest arrival and turning the others away to their next probe: deferred acceptance
    with one priority common to all slots has one outcome. That form needs a few dozen array operations instead of a
    loop over images.
    """
    empty = len(numbers)
    table = np.full(size, empty, np.int64)
    start = numbers & (size - 1)
    probe = np.zeros(len(numbers), np.int64)
    perturb = numbers.copy()
    pending = np.arange(len(numbers))
    while len(pending):
        slot = start[pending] + probe[pending]
        holder = table[slot]
        earlier = pending < holder
        # Repeated slots keep the value assigned last: the earliest arrival, since `pending` ascends.
        table[slot[earlier][::-1]] = pending[earlier][::-1]
        waiting = np.zeros(empty + 1, np.bool_)
        waiting[holder[earlier]] = True
        waiting[pending] = table[slot] != pending
        pending = np.flatnonzero(waiting[:empty])
        # On to the next slot of each probe sequence: nine linear probes where they fit, then a jump.
        jump = probe[pending] >= np.where(start[pending] + _LINEAR_PROBES < size, _LINEAR_PROBES, 0)
        probe[pending] += 1
        jumping = pending[jump]
        perturb[jumping] >>= _PERTURB_SHIFT
        start[jumping] = (start[jumping] * 5 + 1 + perturb[jumping]) & (size - 1)
        probe[jumping] = 0
    return table[table < empty]


def _check(numbers: Int64s) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() <= _LARGEST_PLAIN_HASH):
        raise ProtocolError(
            "CPython's set order is only defined here for image numbers that are their own hash",
            expected=f"0 to {_LARGEST_PLAIN_HASH}",
            found=f"{numbers.min()} to {numbers.max()}",
            hint="--set orders=hash",
        )
