"""A pair of ID classes and OOD sources: what is ID, what is near, what is removed; the paper's two, or your own.

Checks say which ID classes are called near, here or in the authors' lists of categories, or annotated in an OOD split.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from curation.benchmarks.facts import facts_of
from curation.benchmarks.parameters import declared
from curation.decisions.authors_files import as_form, parse_tree
from curation.errors import CurationError, DecisionError, ProtocolError
from curation.hierarchy import Wordnet, open_wordnet
from curation.hierarchy.hierarchy import descendants
from curation.hierarchy.synset_maps import DATASETS, synset_map
from curation.input_files import read_plain
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
                (pool.published, f"published start list of {pool.name}: ids, one a line, or the authors' JSON"),
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
    for field, expected, found in _faults(complete):
        what = "The declaration of the pair is inconsistent"
        raise ProtocolError(what, where=f"{where}: {field}", expected=expected, found=repr(found[:80]))
    # Category names are keys here, in any script: canonical JSON admits ASCII keys alone.
    return msgspec.json.encode(complete, order="deterministic").decode("utf-8")


def pair_of(text: str) -> Pair:
    """Return the pair that a value of the parameter ``pair`` stands for."""
    return PAIRS[text] if text in PAIRS else msgspec.json.decode(text, type=Pair)


def _with_sources(pair: Pair) -> Pair:
    """Return a declared pair whose pools name their sources: NAME, NAME-candidates, NAME-list."""
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


def _faults(pair: Pair) -> Iterator[tuple[str, str, str]]:
    """Yield field, expectation and value of everything in a declaration that does not hold together."""
    names = [*pair.id_classes, *(one for several in pair.aliases.values() for one in several)]
    if not re.fullmatch(NAME, pair.name) or len(pair.name) > 100 or pair.name in (VOC.name, BDD.name):
        yield "name", "lower-case words joined by -, at most one /, none of the paper's", pair.name
    if not pair.id_classes or not pair.pools:
        yield "id_classes, pools", "at least one of each", "none"
    for name in sorted(set(pair.aliases) - set(pair.id_classes)):
        yield "aliases", "names of ID classes", name
    if pair.synsets and pair.synsets not in DATASETS:
        yield "synsets", ", ".join(DATASETS), pair.synsets
    yield from _unusable_names(names)
    listed = {"id_classes": pair.id_classes, "aliases": names, "pools: name": [pool.name for pool in pair.pools]}
    for field, values in listed.items():
        yield from ((field, "each once", f"{name} twice") for name, n in Counter(values).items() if n > 1)
    for pool in pair.pools:
        for field, expected, found in _faults_of_pool(pool):
            yield f"pool {pool.name[:40]}: {field}", expected, found


def _faults_of_pool(pool: Pool) -> Iterator[tuple[str, str, str]]:
    for name in (pool.name, pool.start, pool.candidates, pool.published):
        if not _POOL_NAME.fullmatch(name.replace("-", "_").replace(".", "_")) or "-" in pool.name:
            yield "name", "a lower-case word of up to 32 letters and digits", name
    if pool.distance not in ("far", "farther"):
        yield "distance", "far or farther", pool.distance
    if pool.distance == "farther" and (pool.near or pool.wanted_near):
        yield "near", "none in a pool that is farther as a whole", next(iter(pool.near), "wanted_near")
    try:
        namespace_of(pool.dataset)
    except CurationError:
        yield "dataset", "a lower-case word such as openimages", pool.dataset
    yield from _unusable_names([*pool.id_names, *pool.remove, *pool.near, *pool.remove.values(), *pool.near.values()])
    for field, wanted in (("wanted_near", pool.wanted_near), ("wanted_far", pool.wanted_far)):
        bounds = () if wanted is None else (wanted.more_than, wanted.less_than or 0)
        if any(not 0 <= bound <= _MOST for bound in bounds):
            yield field, f"whole numbers from 0 to {_MOST}", ", ".join(map(str, bounds))


def _unusable_names(names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for name in names:
        if not 0 < len(name) <= 200 or not name.isprintable() or name != name.strip():
            yield "names", "printable names of 1 to 200 characters without outer blanks", name


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


@dataclass(frozen=True, slots=True)
class CategoryLists:
    """Category names by data set: those of ID classes, those that remove an image, those that make it near."""

    id_names: Mapping[str, list[str]]
    removed: Mapping[str, list[str]]
    near: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True, order=True)
class CategoryFinding:
    """A category in the wrong list.

    Attributes
    ----------
    problem : {"id_class_is_near", "removed_and_near"}
        An ID class in the near list: such images show what the detector knows. Or a category in both lists: removal
        wins, so that it is near only where an override keeps the image.
    """

    problem: str
    dataset: str
    name: str

    def text(self) -> str:
        """Return this as one sentence."""
        if self.problem == "id_class_is_near":
            return f"{self.dataset}: the near list names {self.name!r}, an ID class."
        return f"{self.dataset}: {self.name!r} is to be removed and near; removal wins."


def read_category_lists(path: Path) -> CategoryLists:
    """Return the category lists of a ``.yaml`` or ``.json`` file of the authors; other keys are ignored.

    Raises
    ------
    MissingFileError
        There is no such file.
    DecisionError
        It is not such a file.
    """
    layout = "VOC_CLASSES or BDD_CLASSES, CATS_TO_REMOVE, CATS_TO_NEAR_OOD: each by data set, then names"
    tree = parse_tree(read_plain(path, kind="file of category lists"), path.name)
    lists = as_form(tree, dict[str, Any], path.name, layout)
    id_lists = [value for key, value in lists.items() if key.endswith("_CLASSES")]
    if len(id_lists) != 1:
        raise DecisionError("No category lists in the file", where=path.name, expected=layout)
    several = (id_lists[0], lists.get("CATS_TO_REMOVE", {}), lists.get("CATS_TO_NEAR_OOD", {}))
    found = [as_form(value, dict[str, list[str]], path.name, layout) for value in several]
    if not all(name.isprintable() for names in found for listed in names.values() for name in listed):
        raise DecisionError("A category is not a line of text", where=path.name, expected=layout)
    return CategoryLists(*found)


def check_categories(lists: CategoryLists) -> tuple[CategoryFinding, ...]:
    """Return what is odd about category lists, sorted by data set and name; case does not count."""
    others = {"id_class_is_near": lists.id_names, "removed_and_near": lists.removed}
    return tuple(
        sorted(
            CategoryFinding(problem, dataset, name)
            for dataset, near in lists.near.items()
            for name in near
            for problem, names in others.items()
            if name.casefold() in {one.casefold() for one in names.get(dataset, ())}
        )
    )
