"""Reader of lists of images in any published form, for datasets that are known by their lists alone: DTD, NINCO, ….

An id is the stem of a file, behind as many folders as tell the images of its dataset apart (`folders_in_ids`):
``dtd:banded/banded_0002``, ``imagenet_r:n02607072/misc_46``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curation.errors import AnnotationFormatError
from curation.ids import ImageId, check_native, native_of
from curation.sources.datasets import folders_in_ids, is_known, namespace_of
from curation.sources.integrity import check_unique
from curation.sources.published_list import PublishedFile, PublishedList, read_published
from curation.sources.source import Categories, FileRecord, Images, Source
from curation.sources.stems import stems

FORMS = (".txt", ".csv", ".json")
_CLIMBING = re.compile(rb"^(?:/|.*(?:^|/)\.\.(?:/|$))", re.MULTILINE)


def read_listed(path: Path, *, dataset: str, part: str) -> Source:
    """Return the images of a list in file order, without boxes; classes are those of the list, else folders of ids.

    Raises
    ------
    MissingFileError, UsageError, AnnotationFormatError
        See `curation.sources.published_list.read_published` and `only_list`.
    DuplicateIdError
        An image stands twice.
    """
    file = read_published(path)
    one = only_list(file)
    natives = natives_of(one, namespace_of(dataset), str(path))
    check_unique(natives, "image", lambda row: f"{path}: entry {row + 1}")
    texts = one.paths.decode().split("\n")[:-1]
    if one.group_of is not None:
        classes = [one.groups[number] for number in one.group_of.tolist()]
    elif not folders_in_ids(dataset):
        classes = [""] * len(texts)
    else:
        classes = [text.replace("\\", "/").rpartition("/")[0].rpartition("/")[2] for text in texts]
    names = sorted(set(classes)) if all(classes) else []
    number = {name: place for place, name in enumerate(names)}
    presence = np.empty((len(natives) if names else 0, 2), np.int32)
    if names:
        presence[:, 0] = np.arange(len(natives))
        presence[:, 1] = [number[name] for name in classes]
    return Source.of(
        dataset,
        part,
        images=Images.of(natives, numbers=np.arange(len(natives), dtype=np.int64), file_names=texts),
        categories=Categories(tuple(range(len(names))), tuple(names), ("",) * len(names)),
        objects=None,
        presence=presence,
        files=(FileRecord(path.name, f"sha256:{file.sha256}", file.size, len(natives)),),
    )


def only_list(file: PublishedFile) -> PublishedList:
    """Return the one list of a file, every line of it an entry.

    Raises
    ------
    AnnotationFormatError
        It holds none or several, or a line is no entry as the others are.
    """
    if len(file.lists) == 1 and not file.lists[0].odd:
        return file.lists[0]
    odd = file.lists[0].odd_lines[0] if len(file.lists) == 1 else None
    raise AnnotationFormatError(
        "The file is not one list of images",
        where=str(file.path) if odd is None else f"{file.path}, line {odd.line}",
        expected="one image a line, all of one form",
        found=f"{len(file.lists)} lists ({file.form})" if odd is None else f"{odd.reason}: {odd.text!r}",
    )


def natives_of(one: PublishedList, namespace: str, where: str) -> Sequence[str]:
    """Return the id of each entry within a name space, in the order of the list.

    Raises
    ------
    AnnotationFormatError
        A path is absolute or climbs, lacks a folder of its id, or is none.
    """
    paths = _paths_below_root(one, where)
    folders = folders_in_ids(namespace)
    if not folders:
        natives = one.stems.decode().split("\n")[:-1]
    else:
        natives = one.parent_stems.decode().split("\n")[:-1]
        outer = paths
        for _ in range(folders - 1):
            outer = re.sub(rb"/[^/\n]*$", b"", outer, flags=re.MULTILINE)
            above = stems(outer, parents=1).decode().split("\n")[:-1]
            natives = [f"{folder.rpartition('/')[0]}/{native}" for folder, native in zip(above, natives, strict=True)]
    natives = [native.removeprefix(f"{namespace}:") for native in natives]
    for row, native in enumerate(natives):
        check_native(native)
        if native.count("/") != folders or native.startswith("/"):
            raise AnnotationFormatError(
                "A path of the list lacks the folder that belongs to its id",
                where=f"{where}, line {one.lines[row]}",
                expected=f"at least {folders} folders before the name of an image of {namespace}",
                found=repr(native[:80]),
            )
    return natives


def ids_of(one: PublishedList, namespace: str, where: str) -> list[str]:
    """Return the id of each entry, ``dtd:banded/banded_0002``, in the order of the list.

    Of a dataset that nothing is known of, an id keeps the last folder where there is one: stems may repeat.

    Raises
    ------
    AnnotationFormatError
        See `natives_of`.
    """
    if is_known(namespace):
        natives = [native_of(native, namespace) for native in natives_of(one, namespace, where)]
    else:
        _paths_below_root(one, where)
        natives = one.parent_stems.decode().split("\n")[:-1]
    return [str(ImageId(namespace, native)) for native in natives]


def _paths_below_root(one: PublishedList, where: str) -> bytes:
    paths = one.paths.replace(b"\\", b"/")
    if found := _CLIMBING.search(paths):
        row = paths.count(b"\n", 0, found.start())
        raise AnnotationFormatError(
            "A path of the list leaves its root",
            where=f"{where}, line {one.lines[row]}",
            expected="a path below the root of the dataset",
            found=ascii(paths[found.start() :].split(b"\n", 1)[0].decode("utf-8", "replace"))[:80],
        )
    return paths
