"""Split classes into disjoint parts, by hash or by a normalized cut; rotations of the parts; shares of images."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, zip_longest
from typing import Literal

import numpy as np

from curation.benchmarks.parts import hash_rank
from curation.core.errors import ProtocolError
from curation.manifest.header import ParameterValue
from curation.signals.cooccurrence.cut import SOLVER_VERSION, ComponentsPolicy, CutOptions, normalized_cut
from curation.signals.cooccurrence.graph import (
    UNIT,
    Cooccurrence,
    Partition,
    Weighting,
    class_graph,
    count_cooccurrence,
)
from curation.sources.source import Int64s, Source

Convention = Literal["part_known", "part_unknown"]


def split_classes(
    classes: Sequence[str], *, parts: int = 4, seed: int | str, uneven: Literal["refuse", "first"] = "refuse"
) -> tuple[tuple[str, ...], ...]:
    """Return disjoint parts of equal size, each sorted.

    *Rectifying Open-Set Object Detection* splits at random and publishes no generator: no split made here is the
    authors' own. The classes are put into the order of ``sha256("{seed}:{class}")`` and cut into consecutive runs.

    Parameters
    ----------
    uneven : {"refuse", "first"}
        If the parts cannot be equal: refuse, or give each of the first parts one more class.

    Raises
    ------
    ProtocolError
        The classes are fewer than the parts, or cannot be divided evenly.

    Examples
    --------
    >>> split_classes(["car", "bus", "van", "taxi", "tram"], parts=2, seed=100, uneven="first")
    (('bus', 'car', 'taxi'), ('tram', 'van'))
    """
    size, rest = divmod(len(classes), parts)
    if not size or (rest and uneven == "refuse"):
        raise ProtocolError(
            "The classes do not divide into equal parts",
            expected=f"a multiple of {parts}, such as {parts}",
            found=str(len(classes)),
        )
    shuffled = sorted(classes, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).hexdigest())
    ends = [number * size + min(number, rest) for number in range(parts + 1)]
    return tuple(tuple(sorted(shuffled[start:end])) for start, end in pairwise(ends))


def quotas(total: int, shares: Sequence[Decimal | Fraction], over: Sequence[Fraction] = ()) -> list[int]:
    """Return whole numbers with the given sum, close to the shares; those with the largest remainder are rounded up.

    Parameters
    ----------
    shares : sequence of Decimal or Fraction
        Shares that sum to 1.
    over : sequence of Fraction
        Remainder of each from earlier calls.

    Examples
    --------
    >>> quotas(12, [Decimal("0.7"), Decimal("0.1"), Decimal("0.2")])
    [9, 1, 2]
    """
    exact = [Fraction(share) * total for share in shares]
    counts = [int(each) for each in exact]
    missing = [each - count + before for each, count, before in zip_longest(exact, counts, over, fillvalue=0)]
    for part in sorted(range(len(counts)), key=lambda part: (-missing[part], part))[: total - sum(counts)]:
        counts[part] += 1
    return counts


def rotation(
    parts: Sequence[Sequence[str]], number: int, convention: Convention
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the known and the unknown classes of rotation `number` (from 1), in the order of the parts from it on.

    Under ``part_known`` part `number` is known, the others are unknown (the authors' t1..t4 of Open Images); under
    ``part_unknown`` it is unknown, the others are known (the authors' t1..t4 of CUB).
    """
    chosen = tuple(parts[number - 1])
    others = tuple(name for part in (*parts[number:], *parts[: number - 1]) for name in part)
    return (chosen, others) if convention == "part_known" else (others, chosen)


def split_share(source: Source, images: Int64s, share: float, salt: str, *, per_class: bool) -> tuple[Int64s, Int64s]:
    """Return a share of some images by hash rank, and the others, both in file order.

    Parameters
    ----------
    share : float
        From 0 to 0.5.
    salt : str
        Salt of the hash rank.
    per_class : bool
        Whether each class gives its share (for images with one object), or all images together.
    """
    ids = source.image_ids
    groups = [images]
    if per_class:
        image, category = source.class_pairs()
        of_image = np.full(len(source.images), -1, np.int64)
        of_image[image[::-1]] = category[::-1]
        groups = [images[of_image[images] == number] for number in np.unique(of_image[images]).tolist()]
    selected: list[int] = []
    for group in groups:
        # Rounded to the nearest image, but never all images of a class.
        size = min(int(share * len(group) + 0.5), max(0, len(group) - 1))
        ranked = hash_rank(ids[group].tolist(), salt)
        selected += group[ranked[:size]].tolist()
    chosen = np.zeros(len(source.images), np.bool_)
    chosen[selected] = True
    return images[chosen[images]], images[~chosen[images]]


def cut_classes(
    sources: Sequence[Source],
    names: Sequence[str],
    clusters: int,
    *,
    weighting: Weighting,
    components: ComponentsPolicy,
    aliases: Mapping[str, str] = {},
) -> tuple[Partition, dict[str, ParameterValue]]:
    """Return clusters of classes by the normalized cut of their co-occurrence, and the facts on it for a manifest.

    Parameters
    ----------
    sources : sequence of Source
        Sources whose images are counted; each may lack classes.
    names : sequence of str
        The classes.
    clusters : int
        Number of clusters; the largest comes first.
    aliases : mapping of str to str
        The class of a category by another name.

    Raises
    ------
    CutError
        The graph is disconnected, or has fewer classes than clusters.
    """
    names = sorted(names)
    number = {name: position for position, name in enumerate(names)}
    images, pairs, total = np.zeros(len(names), np.int64), np.zeros((len(names), len(names)), np.int64), 0
    # A class that a source lacks has no images there.
    for source in sources:
        spelled = {aliases.get(name, name) for name in source.categories.names}
        counts = count_cooccurrence(source, [name for name in names if name in spelled], aliases)
        at = np.array([number[name] for name in counts.names], np.int64)
        images[at] += counts.images
        pairs[np.ix_(at, at)] += counts.pairs
        total += counts.total
    graph = class_graph(Cooccurrence(tuple(names), images, pairs, total), weighting)
    cut = normalized_cut(graph, clusters, CutOptions(components=components))
    # Fractional weights are integer multiples of 1e-9, and so are sums of weights between clusters.
    unit = UNIT if weighting in ("jaccard", "pmi") else 1
    return cut.clusters, {
        "cut_solver_version": SOLVER_VERSION,
        "cut_ncut": f"{cut.value.numerator}/{cut.value.denominator}",
        "cut_lower_bound": f"{cut.lower_bound:.6f}",
        "cut_gap": f"{cut.gap:.6f}",
        "cut_certificate": cut.certificate,
        "cut_starts": len(cut.starts),
        "cut_starts_that_reached_it": cut.reached,
        "cut_between": ";".join(",".join(map(str, row)) for row in cut.between.tolist()),
        "cut_between_unit": f"1/{unit}",
        "cut_isolated": cut.isolated,
        "cut_apart": cut.apart,
    }
