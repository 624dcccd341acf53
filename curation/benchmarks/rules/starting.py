"""A first benchmark file made from a user's sources: the output of ``curation init RULE``."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from curation.benchmarks.roles import require_disjoint_sources
from curation.benchmarks.rules.benchmark_file import RuleName, rule_module
from curation.core.arguments import checked
from curation.core.columns import distinct
from curation.core.errors import CurationWarning, ProtocolError, UsageError
from curation.core.wording import odd_names_text, plain_name, slug
from curation.manifest.header import NAME
from curation.sources.datasets import users_name
from curation.sources.opening import open_slots
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes, Reading, SourceSlot

if TYPE_CHECKING:
    from curation.signals.hierarchy.related_classes import ClassKin

_LONGEST_NAME = 200
NAMES_ARE = f"printable names of 1 to {_LONGEST_NAME} characters without outer blanks, none of them 'unknown'"
Given = Annotated[Mapping[str, Path] | Path, "[NAME[@PART]=]PATH"]


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a draft of a benchmark file.

    Attributes
    ----------
    name : str
        Name of the benchmark.
    n_tasks : int
        Number of tasks among which the rule ``tasks`` divides the classes.
    exhaustive : bool
        Whether every object of every class is annotated on every image.
    """

    name: str
    n_tasks: int = 4
    exhaustive: bool = False


@checked
def start_benchmark(
    rule: RuleName,
    folder: Path | None = None,
    source: Given | None = None,
    *,
    name: str = "my/benchmark",
    n_tasks: Annotated[int, msgspec.Meta(ge=1)] = 4,
    exhaustive: bool = False,
    bad_boxes: BadBoxes = "error",
) -> str:
    """Return a benchmark file to begin with, made from the user's own sources.

    Parameters
    ----------
    rule
        how the parts of the benchmark are selected
    folder
        rule lists: your lists of images
    source
        your data: COCO JSON, a VOC or YOLO folder, class folders or a table; NAME= before it names the source,
        @PART which part of a folder it is (repeatable)
    name
        name of the benchmark
    n_tasks
        rule tasks: groups into which the classes are cut in the order of the file
    exhaustive
        every object of every class is annotated on every image
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count
    """
    if not re.fullmatch(NAME, name) or len(name) > 100:
        expected = "lower-case words joined by -, at most one /"
        raise UsageError("Invalid name of a benchmark", where=f"--name {name[:80]}", expected=expected)
    module = rule_module(rule)
    usual: tuple[str, ...] = module.USUAL_SOURCES
    if rule == "lists":
        names = {use.partition("@")[0] or "images" for use in source} if isinstance(source, Mapping) else {"images"}
        if folder is None or not names <= {"images"}:
            expected = "curation init lists FOLDER, with --source images=PATH for the images"
            raise UsageError("The rule lists needs a folder of lists", expected=expected)
        return "\n".join(module.start_of_folder(folder, name)) + "\n"
    if folder is not None or not source:
        raise UsageError(f"The rule {rule} needs sources", expected=f"curation init {rule} --source {usual[0]}=PATH")
    paths = {"": source} if isinstance(source, Path) else dict(source)
    if {"", usual[0]} <= paths.keys():
        raise UsageError(f"--source names {usual[0]!r} twice", where=f"--source {paths['']!s:.200}")
    paths = {use or usual[0]: path for use, path in paths.items()}
    slots = [SourceSlot(use.partition("@")[0], "custom", usual_part=use.partition("@")[0]) for use in paths]
    sources = open_slots(paths, slots, Reading(bad_boxes=bad_boxes))
    # The comparison comes before the sources get different namespaces.
    require_disjoint_sources(sources, {use.partition("@")[0]: path for use, path in paths.items()}, warn=True)
    if odd := odd_names_text(sum((each.boxes_by_class() for each in sources.values()), Counter[str]())):
        text = f"names of classes that may be mistakes, with their boxes: {odd}"
        warnings.warn(text, CurationWarning, stacklevel=3)
    options = StartOptions(name=name, n_tasks=n_tasks, exhaustive=exhaustive)
    return "\n".join(module.start(sources, options)).rstrip("\n") + "\n"


def source_tables(
    sources: Mapping[str, Source],
    name: str,
    roles: Mapping[str, str] = {},
    *,
    later_sources: Sequence[str] = (),
    exhaustive: bool | None = None,
) -> list[str]:
    """Return the lines of ``[sources]``; sources whose images have the same numbers get a namespace each.

    Parameters
    ----------
    sources : mapping of str to Source
    name : str
        Name of the benchmark; its last word is the namespace of the image ids.
    roles : mapping of str to str
        Key ``as`` of the sources whose name is not their role.
    later_sources : sequence of str
        Names of sources that the file needs even if they are not in `sources`.
    exhaustive : bool, optional
        Whether every object of every class is annotated; None if the rule does not need to know.
    """
    namespace = namespace_word(name)
    seen: set[Any] = set()
    later = [key for key in later_sources if key not in sources]
    is_shared = bool(later)
    for source in sources.values():
        natives = set(source.images.native.tolist())
        is_shared |= not seen.isdisjoint(natives)
        seen |= natives
    lines = ["# The sources of `--source NAME=PATH`; dataset is the first word of their image ids."]
    if later:
        lines.append("# Their names differ, because their images may have the same numbers.")
    elif is_shared:
        lines.append("# Their images have the same numbers: different names keep the images apart.")
    if exhaustive is not None:
        lines.append("# exhaustive: whether every object of every class is annotated; the audit cannot find out.")
    lines.append("[sources]")
    for key in (*sources, *later):
        dataset = f"{namespace}_{slug(key)}"[:32].replace("-", "_") if is_shared else namespace
        texts = {"as": roles.get(key, ""), "dataset": dataset, "part": sources[key].part if key in sources else ""}
        fields = [f"{field} = {quoted(text)}" for field, text in texts.items() if text]
        fields += [] if exhaustive is None else [f"exhaustive = {str(exhaustive).lower()}"]
        lines.append(f"{quoted_key(key)} = {{ {', '.join(fields)} }}")
    return lines


def namespace_word(name: str) -> str:
    """Return the namespace of a benchmark's image ids: ``my_coco`` of ``lab/coco``."""
    word = slug(name.rpartition("/")[2])[:24].replace("-", "_")
    return users_name(word) if word[:1].isalpha() else "custom"


def object_counts(sources: Mapping[str, Source]) -> dict[str, tuple[int, int]]:
    """Return the number of objects of each class, and of images that show it, in the order of the files.

    In a source without boxes, an image that shows the class counts as an object.
    """
    counts: dict[str, tuple[int, int]] = {}
    for source in sources.values():
        names = source.categories.names
        width = len(names)
        image, category = source.class_pairs()
        objects = np.bincount(category, minlength=width)
        images = np.bincount(distinct(image.astype(np.int64) * width + category) % width, minlength=width)
        for label, n_objects, n_images in zip(names, objects.tolist(), images.tolist(), strict=True):
            before = counts.get(label, (0, 0))
            counts[label] = before[0] + n_objects, before[1] + n_images
    return counts


def other_names(known: Sequence[str], others: Sequence[str], kin: ClassKin | None = None) -> dict[str, str]:
    """Return the known class of each category that is one under another name, by case or by WordNet.

    Examples
    --------
    >>> other_names(["aeroplane", "sofa", "cat"], ["airplane", "couch", "Cat", "dog"])
    {'airplane': 'aeroplane', 'couch': 'sofa', 'Cat': 'cat'}
    """
    if not known or not others:
        return {}
    if kin is None:
        # WordNet is read only if a name is missing.
        from curation.signals.hierarchy.class_lists import DATASETS
        from curation.signals.hierarchy.related_classes import class_kin

        kin = class_kin(others, known, datasets=DATASETS)
    folded = {name.casefold(): name for name in known}
    by_case = {name: folded[name.casefold()] for name in kin.unknown.names if name.casefold() in folded}
    return {name: owner for name, owner in (kin.renamed | by_case).items() if name not in known}


def beginning(rule: str, name: str) -> list[str]:
    """Return the first lines of a benchmark file."""
    return [
        f"# A first benchmark file: `curation list {rule}` explains its keys. Change what does not fit.",
        f"rule = {quoted(rule)}",
        "# Lower-case words joined by -, at most one /.",
        f"name = {quoted(name)}",
        "",
    ]


def draft(
    rule: str, options: StartOptions, sources: Sequence[str], classes: Sequence[str], parameters: Sequence[str]
) -> list[str]:
    """Return the lines of a benchmark file from those of its tables."""
    head = [*beginning(rule, options.name), *sources, ""]
    return [*head, "[classes]", *classes, "", "[parameters]", *parameters]


def listed(field: str, names: Sequence[str], remarks: Sequence[str] | str) -> list[str]:
    """Return the lines of a list of names, each with a comment."""
    if not names:
        return [f"{field} = []"]
    comments = [remarks] * len(names) if isinstance(remarks, str) else remarks
    rows = [f"  {quoted(name)},  # {remark}" for name, remark in zip(names, comments, strict=True)]
    return [f"{field} = [", *rows, "]"]


def array(names: Iterable[str]) -> str:
    """Return a TOML array of names."""
    return f"[{', '.join(map(quoted, names))}]"


def other_spellings(names: Iterable[str], others: Iterable[str]) -> dict[str, str]:
    """Return for each class the other names that differ from it only in case or blanks."""
    by_plain_name = {plain_name(name): name for name in names}
    apart = [other for other in others if other not in by_plain_name.values()]
    return {by_plain_name[plain]: other for other in apart if (plain := plain_name(other)) in by_plain_name}


def by_class(renamed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the other names of each class, from a mapping of other name to class."""
    aliases: dict[str, list[str]] = {}
    for alias, name in renamed.items():
        aliases.setdefault(name, []).append(alias)
    return aliases


def alias_lines(aliases: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the lines of ``[classes.aliases]``."""
    rows = [f"{quoted_key(name)} = {array(several)}" for name, several in aliases.items()]
    return ["# Other names of a class in the sources.", "[classes.aliases]", *rows]


def absent_lines(
    names: Iterable[str], aliases: Mapping[str, Sequence[str]], sources: Mapping[str, Source]
) -> list[str]:
    """Return the lines of ``absent``: the classes that a source has no category for."""
    categories = [{*source.categories.names} for source in sources.values()]
    absent = [name for name in names if any({name, *aliases.get(name, ())}.isdisjoint(there) for there in categories)]
    return [
        "# Classes that a source has no category for; if it has one under another name, add that name below.",
        f"absent = {array(absent)}",
    ]


def quoted(text: str) -> str:
    """Return a TOML string: its escapes are those of JSON for every printable text."""
    return json.dumps(text, ensure_ascii=False)


def quoted_key(text: str) -> str:
    """Return a TOML key, quoted if necessary."""
    return text if text.replace("-", "").replace("_", "").isalnum() and text.isascii() else quoted(text)


def is_usable(name: str) -> bool:
    """Return whether a class may have this name in a benchmark file."""
    as_written = name.isprintable() and name == name.strip()
    return as_written and 0 < len(name) <= _LONGEST_NAME and name.casefold() != "unknown"


def require_usable(labels: Iterable[str], files: str) -> None:
    """Raise `ProtocolError` for a class whose name a file cannot hold, and for two that differ only in case."""
    first: dict[str, str] = {}
    for label in labels:
        other = "" if (earlier := first.setdefault(label.casefold(), label)) == label else earlier
        if other or not is_usable(label):
            raise ProtocolError(
                "A benchmark file cannot hold the name of a class of the annotation file",
                where=files,
                expected=f"{NAMES_ARE}, each once, whatever its case",
                found=repr(label[:80]) + (f" beside {other[:80]!r}" if other else ""),
                hint="rename the category in the annotation file",
            )
