"""The rule ``wilderness``: a closed test set, and images of other sources that show none of its classes.

After The Overlooked Elephant of Object Detection (WACV 2020). The parts are ``closed``; ``wilderness``, every image
without an annotation of a known class; and ``wrRATIO``, the first ``floor(RATIO * closed)`` wilderness images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args

import msgspec
import numpy as np
from msgspec import Meta

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import (
    Part,
    Selection,
    all_images,
    hash_rank,
    images_with,
    make_part,
    manifest_of_file,
    require_classes,
    require_images,
    showing,
    used_classes,
)
from curation.benchmarks.rules import set_order
from curation.benchmarks.rules.benchmark_file import (
    ROLES,
    BenchmarkFile,
    class_entries,
    decimal_text,
    require_named,
    stated_in,
    wrong_sources,
)
from curation.benchmarks.rules.starting import (
    StartOptions,
    absent_lines,
    alias_lines,
    by_class,
    draft,
    listed,
    object_counts,
    other_names,
    quoted,
    source_tables,
)
from curation.core.errors import ProtocolError, UsageError
from curation.manifest.header import ClassEntry, Header, LabelView, Paper
from curation.manifest.manifest import Manifest
from curation.sources.source import Bools, Int64s, Source, Texts

CLOSED, TRAIN = "closed", "train"
Order = Literal["hash", "id", "cpython_set", "cpython_set_as_listed"]
ORDERS: tuple[Order, ...] = get_args(Order)
_SET = "the iteration order of CPython's set of image numbers, set(coco.imgs) - known"
WORDS: Mapping[str, str] = {
    "closed": "All images of the closed source.",
    "wilderness": "Images without any annotation of a known class, whatever its size, crowd regions included; images "
    "without any annotation are in.",
    "training": "All images of the source.",
    "ratio": "The first floor({ratio} * N) = {size} wilderness images in {order}.",
    "hash": "the rank of sha256(salt + id)",
    "id": "ascending image id",
    "cpython_set": f"{_SET}, as the notebook takes it (emulated; CPython 3.7 to 3.13), the numbers entering in "
    "ascending order",
    "cpython_set_as_listed": f"{_SET}, the numbers entering in the order of the COCO file, which the notebook does",
    "filling": "At this size a cpython_set part depends on the order in which the set is filled: here by ascending id. "
    "The order of images in the file: cpython_set_as_listed.",
}
"""Selections, orders and notes in words; a packaged benchmark has others in its table ``[words]``."""
_NEED = "a closed source and at least one other"


class WildernessParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule.

    Attributes
    ----------
    ratios : tuple of Decimal
        Wilderness ratios: images of a part over images of the closed part.
    orders : tuple of {"hash", "id", "cpython_set", "cpython_set_as_listed"}
        Orders of the wilderness images: parts of the first are called ``wrRATIO``, of others ``wrRATIO-ORDER``.
        The set of CPython gives the order of the Elephant paper's notebook.
    salt : str
        Of the hash order; by default the name of the benchmark.
    strangers : {"refuse", "leave-out", "keep"}
        Treatment of closed images with a class that is not known: refuse them, leave them out, or keep them and
        count such objects as unknown.
    unannotated : {"keep", "leave-out"}
        Whether images without any annotation belong to the wilderness.
    levels : {"hash", "id"}
        Order of the images of the wilderness levels; by default the first of `orders` if it is one of these, else id.
    """

    ratios: Annotated[tuple[Decimal, ...], Meta(min_length=1)] = (Decimal(1),)
    orders: Annotated[tuple[Order, ...], Meta(min_length=1)] = ("hash",)
    salt: str = ""
    strangers: Literal["refuse", "leave-out", "keep"] = "refuse"
    unannotated: Literal["keep", "leave-out"] = "keep"
    levels: Literal["hash", "id"] | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for a ratio that is out of range, or too long for the name of a part."""
        if not all(
            ratio.is_finite() and Decimal("1e-6") <= ratio <= 1_000_000 and len(ratio.as_tuple().digits) <= 20
            for ratio in self.ratios
        ):
            raise ValueError("ratios are positive decimals from 0.000001 to 1000000, of at most 20 digits")


PARAMETERS = WildernessParameters
USUAL_SOURCES = (CLOSED, "wild")
PARTS = (
    ("closed", "the closed source"),
    ("wilderness", "all images of the other sources that show no known class"),
    ("wrRATIO, wrRATIO-ORDER", "the first of them: RATIO times as many images as the closed part has"),
    ("SOURCE", 'a source as = "train": all of its images'),
)
PAPER = fact("curation.benchmarks.elephant", "paper", Paper)


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a benchmark file of this rule.

    Parameters
    ----------
    sources : mapping of str to Source
        One in the role ``closed``, with boxes, and at least one other.
    parameters : mapping
        ``file``: the benchmark file as `read_benchmark_file` returns it.

    Raises
    ------
    ProtocolError
        The sources do not fit the file; the message says which class, source or ratio.
    """
    benchmark = stated_in(parameters["file"])
    roles = [benchmark.role(name) for name in sources]
    if roles.count(CLOSED) != 1 or not {*roles} - {CLOSED, TRAIN}:
        expected = '[sources.NAME] with as = "closed", or [sources.closed]; and another table'
        raise wrong_sources("wilderness", _NEED, expected, map(" as ".join, zip(sources, roles, strict=True)))
    known = benchmark.classes.of("known")
    for key in ("aliases", "absent"):
        require_named(benchmark, key, known)
    classes = class_entries(benchmark, used_classes(benchmark, sources.values()))
    for name, source in sources.items():
        require_classes(benchmark, known, name, source)
    made, depends_on_filling = wilderness_parts(benchmark, sources, classes)
    notes = [WORDS["filling"]] if depends_on_filling else []
    return manifest_of_file(benchmark, made, sources, classes, parameters, taxonomy="OSOD-I", notes=notes)


def wilderness_parts(
    benchmark: BenchmarkFile,
    sources: Mapping[str, Source],
    classes: Sequence[ClassEntry],
    words: Mapping[str, str] = WORDS,
    suffixes: Mapping[str, str] | None = None,
) -> tuple[list[Part], bool]:
    """Return the parts of a benchmark, and whether one depends on the order in which CPython's set is filled.

    Parameters
    ----------
    words : mapping of str to str
        Texts by key of `WORDS`.
    suffixes : mapping of str to str, optional
        Suffix of the part names by order; by default ``-ORDER``, and none for the first of the orders.

    Raises
    ------
    ProtocolError
        The sources do not fit the benchmark.
    PresenceOnlyError
        The closed source or a training source has no boxes.
    """
    settings = benchmark.parameters_as(WildernessParameters)
    view = benchmark.views.get("test", LabelView())
    [closed_name] = [name for name in sources if benchmark.role(name) == CLOSED]
    closed = closed_part(closed_name, sources[closed_name], classes, view, settings.strangers, words["closed"])
    shows: Sequence[str] = ROLES if settings.unannotated == "leave-out" else ()
    rule = words["wilderness"].replace("are in.", "are left out.") if shows else words["wilderness"]
    selected = [
        Selection(name, source, showing(source, classes, shows, ["known"]))
        for name, source in sources.items()
        if benchmark.role(name) not in (CLOSED, TRAIN)
    ]
    wilderness = wilderness_part(selected, classes, view, rule)
    made = [closed, wilderness]
    sizes = {ratio: ratio_size(ratio, closed, wilderness) for ratio in map(decimal_text, settings.ratios)}
    ends = np.cumsum([len(each.positions) for each in selected])[:-1]
    for order in dict.fromkeys(settings.orders):
        ranks = np.split(np.argsort(wilderness_order(selected, order, settings.salt or benchmark.name)), ends)
        suffix = suffixes[order] if suffixes else "" if order == settings.orders[0] else f"-{order}"
        for ratio, size in sizes.items():
            first = [
                Selection(each.slot, each.source, each.positions[rank < size])
                for each, rank in zip(selected, ranks, strict=True)
                if (rank < size).any()
            ]
            rule = words["ratio"].format(ratio=ratio, size=size, order=words[order])
            name = f"wr{ratio}{suffix}"
            made.append(make_part(name, "wilderness", first, classes, view=view, rule=rule, subset_of="wilderness"))
    view = benchmark.views.get("train", LabelView(unknown="drop"))
    for name in (name for name in sources if benchmark.role(name) == TRAIN):
        sources[name].require_objects("A training part")
        chosen = Selection(name, sources[name], all_images(sources[name]))
        made.append(make_part(name, "train", chosen, classes, view=view, rule=words["training"]))
    if {*settings.orders} <= {"hash", "id"}:
        return made, False
    as_listed = "cpython_set_as_listed" in settings.orders
    return made, set_order.depends_on_filling(*_numbered(selected), tuple(sizes.values()), as_listed=as_listed)


def score_words(header: Header) -> list[str]:
    """Return the options of `evaluate MANIFEST`: detections by source if the wilderness has several."""
    parts = {part.name: part for part in header.parts}
    sources = parts["wilderness"].sources
    names = (CLOSED, *(sources if len(sources) > 1 else ("wilderness",)))
    return [option for name in names for option in ("--detections", f"{name}=FILE")]


def orders_of(header: Header) -> tuple[str, ...]:
    """Return the orders of the ratio parts of a manifest, from its benchmark file or its parameters."""
    parameters: Mapping[str, Any] = header.rule.parameters
    parameters = stated_in(parameters["file"]).parameters if header.rule.protocol == "wilderness" else parameters
    return tuple(parameters.get("orders", ()))


def level_order(manifest: Manifest, ids: Sequence[str]) -> tuple[str, Int64s]:
    """Return a description of the order of the wilderness levels, and the positions of the ids in it."""
    benchmark = stated_in(str(manifest.header.rule.parameters["file"]))
    settings = benchmark.parameters_as(WildernessParameters)
    order = settings.levels or (settings.orders[0] if settings.orders[0] == "hash" else "id")
    return WORDS[order], _ranked(np.array(ids, object), order, settings.salt or benchmark.name)


def _ranked(ids: Texts, order: str, salt: str) -> Int64s:
    return hash_rank(ids.tolist(), salt) if order == "hash" else np.argsort(ids, kind="stable")


def wilderness_order(selected: Sequence[Selection], order: str, salt: str) -> Int64s:
    """Return the positions of the selected images, counted over all sources, in one of `ORDERS`."""
    if order in ("hash", "id"):
        return _ranked(np.concatenate([each.source.image_ids[each.positions] for each in selected]), order, salt)
    numbers, removed = _numbered(selected)
    as_listed = order == "cpython_set_as_listed"
    walk = set_order.difference_order(numbers, removed) if as_listed else set_order.ascending_order(numbers, removed)
    return np.searchsorted(selected[0].positions, walk)


def _numbered(selected: Sequence[Selection]) -> tuple[Int64s, Bools]:
    """Return the numbers of all images of the source, and whether each is not selected."""
    if len(selected) > 1:
        names = [each.slot for each in selected]
        raise wrong_sources("wilderness", "one searched source for CPython's set order", 'orders = ["hash"]', names)
    removed = np.ones(len(selected[0].source.images), np.bool_)
    removed[selected[0].positions] = False
    return set_order.image_numbers(selected[0].source), removed


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of a draft file: the classes of the closed source are known.

    If the other sources have no further class, the first half of the classes is known.

    Raises
    ------
    UsageError
        The source ``closed`` or a searched source is missing.
    """
    if CLOSED not in sources or not {*sources} - {CLOSED, TRAIN}:
        raise wrong_sources("wilderness", _NEED, "--source closed=PATH --source wild=PATH", sources, UsageError)
    sources[CLOSED].require_objects("The closed part")
    wild = {name: source for name, source in sources.items() if name not in (CLOSED, TRAIN)}
    in_closed, in_wild = object_counts({CLOSED: sources[CLOSED]}), object_counts(wild)
    known = used = [name for name, (objects, _) in in_closed.items() if objects]
    others = [name for name in in_wild if name not in used]
    renamed = other_names([name for name in used if name not in in_wild], others)
    strangers, note = "refuse", "Classes of the closed source."
    if not any(in_wild[name][0] for name in others if name not in renamed):
        known, strangers = used[: len(used) // 2], "leave-out"
        note = "The other sources have no further class: the first half of the classes is known, the rest unknown."
    if not known:
        message, expected = "No class would be unknown", "at least two classes"
        raise ProtocolError(message, where="source closed", expected=expected, found=", ".join(used) or "none")
    aliases = {name: each for name, each in by_class(renamed).items() if name in known}
    spellings = {*known, *(alias for each in aliases.values() for alias in each)}
    n_closed = int((~images_with(sources[CLOSED], {*used} - {*known})).sum())
    n_wild = sum(int((~images_with(source, spellings)).sum()) for source in wild.values())
    ratio = min(Fraction(1), Fraction(n_wild, n_closed or 1))
    classes = [
        f"# {note}",
        *listed("known", known, ["{:,} objects on {:,} images".format(*in_closed[name]) for name in known]),
        *absent_lines(known, aliases, sources),
        *alias_lines(aliases),
    ]
    parameters = [
        f"# Wilderness images over the {n_closed:,} closed ones; {n_wild:,} images show no known class.",
        f"ratios = [{float(int(ratio * 100) / 100)}]",
        "# Closed images with a class that is not known: refuse, leave-out, or keep.",
        f"strangers = {quoted(strangers)}",
    ]
    return draft("wilderness", options, source_tables(sources, options.name), classes, parameters)


def closed_part(
    name: str, source: Source, classes: Sequence[ClassEntry], view: LabelView, strangers: str, rule: str
) -> Part:
    """Return the closed test set: every image of its source, or those that show known classes alone.

    Raises
    ------
    ProtocolError
        The source shows no known class; or it shows another class, and `strangers` is ``refuse``.
    """
    source.require_objects("The closed part")
    known = [entry for entry in classes if entry.role == "known"]
    used = [source.categories.names[number] for number in np.unique(source.class_pairs()[1]).tolist()]
    others = [category for category in used if not any(category in (entry.name, *entry.aliases) for entry in known)]
    if len(others) == len(used) or (others and strangers == "refuse"):
        raise ProtocolError(
            "The closed source shows classes that are not known" if others else "The closed source has no objects",
            where=f"source {name}",
            expected=", ".join(entry.name for entry in known)[:200],
            found=", ".join(repr(name[:40]) for name in others[:5]) or f"{len(source.images)} images without objects",
            hint="are the sources swapped? If not, add the classes to known, or set strangers = "
            '"leave-out" or "keep" in [parameters].',
        )
    positions = all_images(source)
    if strangers == "leave-out":
        positions = showing(source, classes, (), [role for role in ROLES if role != "known"])
        rule = "Images of the closed source that show no other class than known ones."
    elif others:
        rule += " Objects of other classes are unknown."
    part = make_part(CLOSED, "test", Selection(name, source, positions), classes, view=view, rule=rule)
    require_images([part], {CLOSED: 'strangers = "keep" in [parameters]'})
    return part


def wilderness_part(chosen: Sequence[Selection], classes: Sequence[ClassEntry], view: LabelView, rule: str) -> Part:
    """Return the wilderness: the selected images of its sources, none of which shows a known class.

    Raises
    ------
    ProtocolError
        None of them shows an unknown class.
    """
    part = make_part("wilderness", "wilderness", chosen, classes, view=view, rule=rule)
    if not part.entry.annotated_images:
        raise ProtocolError(
            "No wilderness image shows an unknown class",
            where=", ".join(f"source {each.slot}" for each in chosen),
            expected="images with annotated classes, none of which is known",
            found=f"{len(part.ids)} images without a known class, none of them annotated",
            hint="are the closed source and the others swapped?",
        )
    return part


def ratio_size(ratio: str, closed: Part, wilderness: Part) -> int:
    """Return the number of wilderness images of a ratio.

    Raises
    ------
    ProtocolError
        The number is 0, or there are fewer images.
    """
    size, available = int(Fraction(ratio) * len(closed.ids)), len(wilderness.ids)
    if 1 <= size <= available:
        return size
    largest = Fraction(available, len(closed.ids))
    usable = int(largest * 10) / 10 or float(int(largest * 1000) / 1000)
    raise ProtocolError(
        f"There are not enough wilderness images for ratio {ratio}",
        where=f"[parameters] ratios; images of {', '.join(wilderness.entry.sources)}",
        expected=f"1 to {available} images: so many show no known class",
        found=f"floor({ratio} * {len(closed.ids)}) = {size} images",
        hint="more wilderness images"
        + f", or ratios = [{usable}] in [parameters], --set ratios={usable}" * (usable > 0),
    )
