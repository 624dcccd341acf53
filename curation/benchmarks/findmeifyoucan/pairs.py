"""A pair of ID classes and OOD sources: what is ID, what is near, what is removed; the paper's two, or one's own.

The linter of overlaps says which ID classes are called near, or annotated in an OOD split, by name, alias or kinship.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from curation.benchmarks.facts import facts_of
from curation.benchmarks.parameters import declared
from curation.errors import CurationError, ProtocolError
from curation.hierarchy import Wordnet, open_wordnet
from curation.hierarchy.hierarchy import descendants
from curation.hierarchy.synset_maps import DATASETS, synset_map
from curation.hierarchy.synset_maps import DATASETS as SYNSET_MAPS
from curation.manifest.header import NAME
from curation.sources.datasets import family, namespace_of
from curation.sources.source_specs import SourceSlot

_POOL_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,31}")
_MOST = 10_000_000
_COCO_PARTS = ("coco-val2017", "coco-train2017")


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which categories a split wants more of: those with a number of annotations between two bounds, both excluded.

    Attributes
    ----------
    more_than : int
    less_than : int or None
        None for no upper bound.
    """

    more_than: int
    less_than: int | None = None

    def __contains__(self, count: int) -> bool:
        """Whether a category with so many annotations is wanted."""
        return self.more_than < count and (self.less_than is None or count < self.less_than)


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One OOD source of a pair, from which a near and a far split come.

    Attributes
    ----------
    name : str
        What decisions call it (`dataset`), and the first word of its parts: ``coco-near``, ``coco-far``.
    dataset : str
        Of its images; gives the namespace of their ids.
    start, candidates, published : str
        Names of the sources: images to start from, images to add from (``""`` for none; may be the former), and the
        published list of start images.
    rule : bool
        Whether an image may start only if it has no annotation of an ID class (crowd included).
    id_names : tuple of str
        Names of ID classes in this source, for the rule and for candidates; empty for all names and aliases of the
        pair's classes.
    remove, near : dict of str to str
        Categories whose images are removed, or near, each with the reason: the ID class concerned. Removal wins.
    distance : {"far", "farther"}
        What the rest is called.
    reasons : tuple of str
        Where given, only removals of the manual stage for one of these reasons count among the decisions.
    wanted_near, wanted_far : Wanted or None
        Categories to look for among the candidates; None for none.
    """

    name: str
    dataset: str
    start: str = ""
    candidates: str = ""
    published: str = ""
    rule: bool = True
    id_names: tuple[str, ...] = ()
    remove: dict[str, str] = {}
    near: dict[str, str] = {}
    distance: str = "far"
    reasons: tuple[str, ...] = ()
    wanted_near: Wanted | None = None
    wanted_far: Wanted | None = None

    @property
    def near_part(self) -> str:
        """Name of the near split."""
        return f"{self.name}-near"

    @property
    def far_part(self) -> str:
        """Name of the split that is not near."""
        return f"{self.name}-{self.distance}"

    @property
    def has_near(self) -> bool:
        """Whether there is a near split; of a pool that is farther as a whole there is none."""
        return self.distance != "farther"

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the splits."""
        return (self.near_part, self.far_part) if self.has_near else (self.far_part,)


class Pair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ID classes of a detector, and the pools that are to be out of distribution for it.

    Attributes
    ----------
    name, title : str
        Of the manifest.
    id_classes : tuple of str
        In the order of their index.
    aliases : dict of str to tuple of str
        Other names of a class in the annotation files.
    synsets : str
        Synset map that knows the names of the ID classes (``voc``, ``coco``, ``openimages``), for overlap by hierarchy.
    pools : tuple of Pool
    """

    name: str
    id_classes: tuple[str, ...]
    pools: tuple[Pool, ...]
    title: str = ""
    aliases: dict[str, tuple[str, ...]] = {}
    synsets: str = ""

    def names(self) -> dict[str, str]:
        """Return every name of an ID class, aliases included, with the class."""
        own = {name: name for name in self.id_classes}
        return own | {alias: name for name in self.id_classes for alias in self.aliases.get(name, ())}

    def id_names(self, pool: Pool) -> tuple[str, ...]:
        """Return the names that mean an ID class in a pool."""
        return pool.id_names or tuple(self.names())

    def slots(self) -> tuple[SourceSlot, ...]:
        """Return the sources that a build may read; those of several pools once."""
        slots: dict[str, SourceSlot] = {}
        for pool in self.pools:
            for name, meaning in (
                (pool.start, f"images that {pool.name} starts from: COCO JSON or a root"),
                (pool.candidates, f"images that {pool.name} may gain by decision"),
                (
                    pool.published,
                    f"published start list of {pool.name}: ids, one a line, or the authors' JSON",
                ),
            ):
                if name and name not in slots:
                    slots[name] = SourceSlot(name, pool.dataset, _part(name, pool), False, meaning)
        return tuple(slots.values())


def _part(slot: str, pool: Pool) -> str:
    if slot == pool.published:
        return slot
    return slot.partition("-")[2] if slot in _COCO_PARTS else ""


def _stated(key: str) -> Pair:
    """Return a pair of the paper; its tables hold the categories of each ID class."""
    stated = facts_of(__package__)["pairs"][key]
    pools = [
        pool
        | {
            name: {category: owner for owner, categories in pool.get(name, {}).items() for category in categories}
            for name in ("remove", "near")
        }
        for pool in stated["pools"]
    ]
    return msgspec.convert(stated | {"pools": pools}, Pair)


VOC, BDD = _stated("voc"), _stated("bdd")
PAIRS = {"voc": VOC, "bdd": BDD}
SLOTS = tuple({slot.name: slot for pair in PAIRS.values() for slot in pair.slots()}.values())

EXAMPLE = """name = "mylab/pets"
id_classes = ["cat", "dog"]
[aliases]
dog = ["puppy"]
[[pools]]
name = "zoo"
dataset = "zoo"
remove = { leash = "dog" }
near = { wolf = "dog", lynx = "cat" }"""


def read_pair(text: str) -> str:
    """Return ``voc``, ``bdd``, or the JSON of what a TOML or JSON file declares (a `Pair`), checked.

    A manifest holds the declaration itself, so that it is built again without the file.

    Raises
    ------
    ProtocolError
        The text is neither of the two nor a file; the file is no such declaration, or does not hold together.
    """
    if text in PAIRS:
        return text
    missing = "There is no such pair of ID classes and OOD sources"
    expected = f"{', '.join(PAIRS)}, or a TOML or JSON file such as\n{EXAMPLE}"
    pair, where = declared(text, Pair, "pair", missing, expected)
    complete = _with_sources(pair)
    _check(complete, where)
    # Category names are keys here, in any script: canonical JSON admits ASCII keys alone.
    return msgspec.json.encode(complete, order="deterministic").decode("utf-8")


def pair_of(text: str) -> Pair:
    """Return the pair that a value of the parameter ``pair`` stands for."""
    return PAIRS[text] if text in PAIRS else msgspec.json.decode(text, type=Pair)


def _with_sources(pair: Pair) -> Pair:
    """Return a pair of one's own whose pools name their sources: NAME, NAME-candidates, NAME-list."""
    return msgspec.structs.replace(
        pair,
        pools=tuple(
            msgspec.structs.replace(
                pool,
                start=pool.start or pool.name,
                candidates=pool.candidates or f"{pool.name}-candidates",
                published=pool.published or f"{pool.name}-list",
            )
            for pool in pair.pools
        ),
    )


def _check(pair: Pair, where: str) -> None:
    if not re.fullmatch(NAME, pair.name) or len(pair.name) > 100 or pair.name in (VOC.name, BDD.name):
        _refuse(where, "name", "lower-case words joined by -, at most one /, none of the paper's", pair.name)
    if not pair.id_classes or not pair.pools:
        _refuse(where, "id_classes, pools", "at least one of each", "none")
    if stray := sorted(set(pair.aliases) - set(pair.id_classes)):
        _refuse(where, "aliases", "names of ID classes", stray[0])
    if pair.synsets and pair.synsets not in SYNSET_MAPS:
        _refuse(where, "synsets", ", ".join(SYNSET_MAPS), pair.synsets)
    _check_names([*pair.id_classes, *(one for several in pair.aliases.values() for one in several)], where)
    _once(pair.id_classes, where, "id_classes")
    _once([*pair.id_classes, *(one for several in pair.aliases.values() for one in several)], where, "aliases")
    _once((pool.name for pool in pair.pools), where, "pools: name")
    for pool in pair.pools:
        _check_pool(pool, f"{where}: pool {pool.name[:40]}")


def _check_pool(pool: Pool, where: str) -> None:
    for slot in (pool.name, pool.start, pool.candidates, pool.published):
        if not _POOL_NAME.fullmatch(slot.replace("-", "_").replace(".", "_")) or "-" in pool.name:
            _refuse(where, "name", "a lower-case word of up to 32 letters and digits", slot)
    if pool.distance not in ("far", "farther"):
        _refuse(where, "distance", "far or farther", pool.distance)
    if pool.distance == "farther" and (pool.near or pool.wanted_near):
        _refuse(where, "near", "none in a pool that is farther as a whole", next(iter(pool.near), "wanted_near"))
    try:
        namespace_of(pool.dataset)
    except CurationError:
        _refuse(where, "dataset", "a lower-case word such as openimages", pool.dataset)
    _check_names([*pool.id_names, *pool.remove, *pool.near, *pool.remove.values(), *pool.near.values()], where)
    for field, wanted in (("wanted_near", pool.wanted_near), ("wanted_far", pool.wanted_far)):
        bounds = () if wanted is None else (wanted.more_than, wanted.less_than or 0)
        if any(not 0 <= bound <= _MOST for bound in bounds):
            _refuse(where, field, f"whole numbers from 0 to {_MOST}", ", ".join(map(str, bounds)))


def _check_names(names: Iterable[str], where: str) -> None:
    for name in names:
        if not 0 < len(name) <= 200 or not name.isprintable() or name != name.strip():
            _refuse(where, "names", "printable names of 1 to 200 characters without outer blanks", name)


def _once(values: Iterable[str], where: str, field: str) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            _refuse(where, field, "each once", f"{value} twice")
        seen.add(value)


def _refuse(where: str, field: str, expected: str, found: str) -> None:
    raise ProtocolError(
        "The declaration of the pair does not hold together",
        where=f"{where}: {field}",
        expected=expected,
        found=repr(found[:80]),
    )


How = Literal["name", "alias", "kind"]
NEAR_LIST = "near list"


@dataclass(frozen=True, slots=True, order=True)
class Overlap:
    """One category of an OOD source that is an ID class.

    Attributes
    ----------
    pool : str
    place : str
        `NEAR_LIST`, or the part whose images are annotated with it.
    category, id_class : str
    how : {"name", "alias", "kind"}
        Letter by letter but for case; by an alias; or because WordNet has its synset below that of the ID class.
    objects : int
        Annotations of the category in the part; 0 for the near list.
    """

    pool: str
    place: str
    category: str
    id_class: str
    how: How
    objects: int = 0

    def __str__(self) -> str:
        """Return the finding as a sentence."""
        how = {"name": "is", "alias": "is another name of", "kind": "is a kind of"}[self.how]
        seen = f" ({self.objects} objects)" if self.place != NEAR_LIST else ""
        return f"{self.pool}, {self.place}: {self.category!r}{seen} {how} the ID class {self.id_class!r}."


def id_class_of(
    pair: Pair, pool: Pool, categories: Iterable[str], wordnet: Wordnet | None = None
) -> dict[str, tuple[str, How]]:
    """Return for each category that is an ID class which one, and how it is known; others are left out.

    Parameters
    ----------
    categories : iterable of str
        Names in the pool's source. Kinship is looked up only where the pair names the synset map of its ID classes and
        there is one of the pool's data set.
    wordnet : Wordnet, optional
        Says what is a kind of what; the built-in one by default.
    """
    by_name = {name.casefold(): name for name in pair.id_classes}
    by_alias = {alias.casefold(): owner for alias, owner in pair.names().items()}
    kinds = _kinds(pair, pool, wordnet or open_wordnet())
    found: dict[str, tuple[str, How]] = {}
    for category in categories:
        folded = category.casefold()
        if folded in by_name:
            found[category] = (by_name[folded], "name")
        elif folded in by_alias:
            found[category] = (by_alias[folded], "alias")
        elif category in kinds:
            found[category] = (kinds[category], "kind")
    return found


def near_list_overlaps(pair: Pair, wordnet: Wordnet | None = None) -> tuple[Overlap, ...]:
    """Return every ID class that stands in a near list: FindMeIfYouCan's code calls "Dog" near a VOC class."""
    return tuple(
        Overlap(pool.name, NEAR_LIST, category, owner, how)
        for pool in pair.pools
        for category, (owner, how) in id_class_of(pair, pool, pool.near, wordnet).items()
    )


def annotated_overlaps(
    pair: Pair, pool: Pool, part: str, counts: Mapping[str, int], wordnet: Wordnet | None = None
) -> tuple[Overlap, ...]:
    """Return every category with objects in a part that is an ID class, most objects first.

    Parameters
    ----------
    counts : mapping of str to int
        Objects of the part by category.
    """
    present = [name for name, n in counts.items() if n]
    found = [
        Overlap(pool.name, part, category, owner, how, counts[category])
        for category, (owner, how) in id_class_of(pair, pool, present, wordnet).items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.objects, one.category)))


def _kinds(pair: Pair, pool: Pool, wordnet: Wordnet) -> dict[str, str]:
    """Return the categories of the pool's data set whose synset lies at or below that of an ID class."""
    dataset = next((name for name in DATASETS if name == family(pool.dataset)), None)
    if not pair.synsets or dataset is None:
        return {}
    of_id, of_ood = (
        {name: synset for name, synset in synset_map(one).items() if synset in wordnet}
        for one in (pair.synsets, dataset)
    )
    # Only what lies above the two maps' synsets: the whole of WordNet takes seconds.
    graph = wordnet.nouns({*of_id.values(), *of_ood.values()})
    kinds: dict[str, str] = {}
    for name in (one for one in pair.id_classes if one in of_id):
        below = descendants(graph, [of_id[name]]) | {of_id[name]}
        for category, synset in of_ood.items():
            if synset in below:
                kinds.setdefault(category, name)
    return kinds
