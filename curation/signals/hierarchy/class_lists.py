"""Classes and their roles as files and manifests state them: what two lists are compared by.

A list of images states classes too: by its groups, or by the folder or name of each file, where these are wnids. That
is how a list was filed, not what its images show: ImageNet-O is in folders of the classes that a network took its
images for.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from curation.core.errors import UsageError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.header import Header, roles_at
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.signals.hierarchy.synset_maps import DATASETS
from curation.sources.datasets import family
from curation.sources.entries import MOST_CLASS_NAMES, PublishedFile, PublishedList
from curation.sources.published_list import read_published
from curation.sources.stems import stems

ILSVRC = "ilsvrc2012"
"""Stands for the 1,000 classes of ILSVRC-2012 wherever a file of classes may."""
_WNID = re.compile(r"(?:.*/)?(n[0-9]{8})(?:/|_|\Z)[^/]*")
_LEADING = re.compile(r"(n[0-9]{8})[\s,:]")


@dataclass(frozen=True, slots=True)
class ClassSet:
    """One list of classes.

    Attributes
    ----------
    name : str
        Of its file, or role or task in it.
    classes : tuple of str
    known : tuple of str, or None
        The classes that are known beside them, where their file says so.
    images : mapping of str to int, or None
        Images of each class, where the file states them.
    filed : bool
        Whether the classes are those of files' folders or names.
    datasets : tuple of str
        Data sets whose hand-made maps say what a name means.
    """

    name: str
    classes: tuple[str, ...]
    known: tuple[str, ...] | None = None
    images: Mapping[str, int] | None = None
    filed: bool = False
    datasets: tuple[str, ...] = ()


def read_classes(target: Manifest | Path | str, *, part: str = "") -> tuple[ClassSet, ...]:
    """Return the lists of classes that a file or manifest holds: the unknown ones where it has roles.

    Parameters
    ----------
    target : Manifest, Path or str
        A manifest or its name; a file of classes, of roles (SSB's ``known_classes`` and ``unknown_classes``), or of
        images whose folders are classes; or `ILSVRC`.
    part : str
        Of a manifest: only the classes that the names of this part's images tell, with their number.

    Raises
    ------
    UsageError
        It names no class, or the manifest has no such part.
    MissingFileError, AnnotationFormatError
        The file cannot be read, or is of no known form.
    """
    if isinstance(target, Manifest):
        return tuple(_of_manifest(target, part))
    if str(target) == ILSVRC:
        return (ClassSet(ILSVRC, ilsvrc2012_classes()),)
    path = Path(target)
    if not path.is_file() or path.name == "manifest.json":
        return tuple(_of_manifest(load_manifest(target), part))
    if part:
        raise UsageError("--part names a list of a manifest", where=f"--part {part[:60]}", found=str(path))
    return tuple(_of_file(read_published(path)))


def class_in(path: str) -> str:
    """Return the wnid of the folder that a file is in, or that its name begins with; ``""`` where there is none.

    Examples
    --------
    >>> class_in("ssb_hard/n01580870/n01580870_12.JPEG"), class_in("n01580870_12"), class_in("banded/banded_1.jpg")
    ('n01580870', 'n01580870', '')
    """
    found = _WNID.fullmatch(path)
    return found[1] if found else ""


def _of_manifest(manifest: Manifest, part: str) -> Iterator[ClassSet]:
    header = manifest.header
    if part and part not in manifest.parts:
        raise UsageError(
            "No such part", where=f"--part {part[:60]}", expected=", ".join(manifest.parts),
            found=f"{header.name} {header.version}",
        )  # fmt: skip
    wanted = [part] if part else [entry.name for entry in header.parts if entry.role in ("test", "wilderness")]
    ids = {image for name in wanted for image in manifest.lists.get(name, ())}
    if part and not ids:
        raise UsageError("The list of the part is not available", where=f"{header.name} {header.version}: {part}")
    images = Counter(class_in(image.partition(":")[2]) for image in sorted(ids))
    counted = {name: count for name, count in images.items() if name}
    named = (name for source in header.sources if (name := family(source.dataset)) in DATASETS)
    datasets = tuple(dict.fromkeys(named))
    for task in [entry.name for entry in header.tasks] or [""]:
        roles = _roles(header, task)
        unknown = tuple(name for name in roles["unknown"] if not part or name in counted)
        if unknown or not task:
            known = roles["known"]
            counts = {name: counted[name] for name in unknown if name in counted} or None
            yield ClassSet(task or part or "unknown", unknown, known, counts, datasets=datasets)


def _roles(header: Header, task: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {"known": [], "unknown": []}
    for entry in roles_at(header.classes, header.tasks, task):
        role = "known" if entry.role == "previous" else entry.role
        found.setdefault(role, []).append(entry.name)
    return {role: tuple(names) for role, names in found.items()}


def _of_file(given: PublishedFile) -> Iterator[ClassSet]:
    if given.form == "map":
        raise UsageError("The file renames classes and is not a list of classes", where=str(given.path))
    known = given.classes.get("known")
    for role, names in given.classes.items():
        if role != "known" or len(given.classes) == 1:
            yield ClassSet(role or given.path.stem, tuple(dict.fromkeys(map(_bare, names))), known)
    for listed in given.lists:
        name = listed.name or given.path.stem
        counts = dict(_counted(listed, str(given.path), groups=given.form == "json groups"))
        yield ClassSet(name, tuple(counts), None, counts, filed=given.form != "json groups")


def _bare(name: str) -> str:
    """Return the wnid of ``n01440764 tench, Tinca tinca``; else the name as it is."""
    found = _LEADING.match(name)
    return found[1] if found else name


def _counted(listed: PublishedList, where: str, *, groups: bool) -> Iterable[tuple[str, int]]:
    """Return the classes of a list of images, in its order, with the number of images."""
    if groups and listed.group_of is not None:
        return ((listed.groups[number], count) for number, count in Counter(listed.group_of.tolist()).items())
    lines = (line[:-1].decode() for line in io.BytesIO(stems(listed.paths, parents=1)))
    found: Counter[str] = Counter()
    for line in lines:
        # A wnid goes before any other folder: names of classes may occur in the names of folders, but need not.
        found[class_in(line) or line.rpartition("/")[0]] += 1
        if len(found) > MOST_CLASS_NAMES:
            break
    if not 0 < len(found) <= MOST_CLASS_NAMES or not all(found):
        raise UsageError(
            "The list does not state the class of each image", where=where,
            expected="folders or names of files with a class, n01580870/n01580870_12.JPEG, or a list of classes",
            found=f"more than {MOST_CLASS_NAMES:,} folders" if len(found) > MOST_CLASS_NAMES
            else f"{found['']:,} of {found.total():,} files are in no folder",
        )  # fmt: skip
    return found.items()
