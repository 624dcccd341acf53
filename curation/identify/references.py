"""Where known lists are available themselves, so that images can be counted: sets of bits, manifests, folders."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from curation.errors import CurationError
from curation.identify.fingerprint import Fingerprint, Hashes, of_ids
from curation.identify.index import DECLARATION, KnownList, ListIndex, keys_of_bits, make_index
from curation.sources.entries import PublishedList
from curation.sources.published_list import read_published

_Key = tuple[str, str]


class Images(NamedTuple):
    """The images of a known list: distinct stems (with folder where stems repeat), a line feed after each; hashes."""

    keys: bytes
    hashes: Hashes


class References:
    """Known lists that can be read, by the digests of their images.

    Parameters
    ----------
    index : ListIndex
        Its lists that it holds as sets of bits, or that are parts of manifests of this package, are available.
    folders : tuple of Path
        Folders of lists; those that the index lacks are known beside it.

    Attributes
    ----------
    index : ListIndex
        With the lists of the folders.
    passed_over : dict of str to str
        Files of the folders that are not known, and why.
    """

    def __init__(self, index: ListIndex, folders: tuple[Path, ...] = ()) -> None:
        self._bits = {_key(one): one for one in index.lists if one.bits}
        self._manifests = {_key(one): one for one in index.lists if one.manifest}
        self._files: dict[_Key, tuple[Path, KnownList]] = {}
        self._images: dict[_Key, Images | None] = {}
        self.passed_over: dict[str, str] = {}
        for folder in folders:
            made = make_index(folder)
            beside = {**dict.fromkeys(made.undeclared, f"{DECLARATION} does not declare it"), **made.passed_over}
            self.passed_over |= {f"{folder}/{name}": why for name, why in beside.items()}
            for one in made.index.lists:
                if one.manifest:
                    self._manifests.setdefault(_key(one), one)
                else:
                    self._files.setdefault(_key(one), (folder / one.file, one))
            index = index.joined(made.index)
        self.index = index

    def has(self, known: KnownList) -> bool:
        """Return whether the images of a known list can be read."""
        return any(_key(known) in one for one in (self._bits, self._files, self._manifests))

    def images(self, known: KnownList) -> Images | None:
        """Return the images of a known list, read once; None where it is not available."""
        key = _key(known)
        if key not in self._images:
            found = self._read(known)
            keys = b"" if found is None else found.keys(folded=known.folded)
            self._images[key] = None if found is None else Images(keys, found.hashes(folded=known.folded))
        return self._images[key]

    def labels_that_differ(self, index: ListIndex, row: int, asked: Fingerprint) -> int | None:
        """Return how many images have another label in a known list; None where its file is not available."""
        known = index.lists[row]
        if _key(known) not in self._files:
            return None
        theirs = self._read(known)
        if theirs is None or theirs.folded != asked.folded:
            return None
        labels = dict(theirs.labelled())
        return sum(labels.get(key, label) != label for key, label in dict(asked.labelled()).items())

    def _read(self, known: KnownList) -> Fingerprint | None:
        key = _key(known)
        if key in self._bits:
            keys = keys_of_bits(self._bits[key], self.index.bits[known.sha256_stems])
            return Fingerprint(PublishedList("", keys, np.arange(1, keys.count(b"\n") + 1, dtype=np.int32)))
        try:
            if key in self._files:
                path, one = self._files[key]
                found = next(part for part in read_published(path).lists if part.name == one.key)
                return Fingerprint(found)
            if key in self._manifests:
                return _of_manifest(self._manifests[key].manifest, known)
        except (CurationError, StopIteration):
            # What changed since, or was never installed, is not available; the sketch still is.
            pass
        return None


def _of_manifest(name: str, known: KnownList) -> Fingerprint | None:
    from curation.manifest.manifest import packaged_manifests, read_manifest

    target, _, part = name.partition("#")
    found = of_ids(list(read_manifest(packaged_manifests() / target.replace("@", "/")).lists[part]))
    return found if found.sha256_stems == known.sha256_stems else None


def _key(known: KnownList) -> _Key:
    return known.sha256_stems, known.sha256_parent_stems if known.folded else ""
