"""Fingerprints of lists: digests from the strictest to the loosest, and hashes of images.

A hash is the first eight bytes of the SHA-256 of a stem, read as a big-endian number. The smallest 1,024 of a list are
its *sketch*: the share of a sketch that lies in another list estimates how much of the one the other holds. The sum of
all hashes, modulo 2^64, tells a union of lists that share nothing.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property

import numpy as np
import numpy.typing as npt

from curation.sources.entries import NO_LABEL, PublishedList
from curation.sources.stems import blocks_of, distinct_lines

Hashes = npt.NDArray[np.uint64]
SKETCH = 1024
_NAMESPACED = re.compile(rb"^[a-z0-9][a-z0-9_.-]*:(?=[^/\\:\n]*$)", re.MULTILINE)
_ZEROS = re.compile(rb"^0+(?=[0-9]+$)", re.MULTILINE)
_BARE = re.compile(rb"^[0-9]{1,18}$", re.MULTILINE)
_OF_VAL = b"ILSVRC2012_val_"
_WNID = re.compile(r"/?n\d{8}$")
_OF_ORIGINALS = re.compile(r"(?:(?:imagenet|ilsvrc|1k|2012|img|val|valid|validation|data|images?|photos?)[-_]?)*", re.I)
_NAMES_DATA = re.compile(r"imagenet|ilsvrc", re.I)


class Fingerprint:
    """Fingerprint of a list of images; each digest is computed on first use.

    Attributes
    ----------
    sha256 : str
        Hex digest of the bytes of its file; empty without a file.
    key : str
        Name of the list within its file.
    listed : PublishedList
    namespaced : bool
        Whether its entries had a namespace such as ``coco:``, which is removed: only this package writes namespaces.
    """

    def __init__(self, listed: PublishedList, sha256: str = "") -> None:
        self.sha256 = sha256
        self.key = listed.name
        self.listed = listed
        self._hashes: dict[bool, Hashes] = {}
        self.namespaced = b":" in listed.paths and len(_NAMESPACED.findall(listed.paths)) == len(listed)
        if self.namespaced:
            bare = _NAMESPACED.sub(b"", listed.paths)
            self.listed = PublishedList(listed.name, bare, listed.lines, listed.labels, odd=listed.odd)

    @property
    def lines(self) -> int:
        """Entries, repeats counted."""
        return len(self.listed)

    @cached_property
    def stems(self) -> int:
        """Distinct stems."""
        return self.listed.distinct_stems.count(b"\n")

    @cached_property
    def parent_stems(self) -> int:
        """Distinct pairs of folder and stem."""
        if self.stems == self.lines:
            return self.lines
        return self.listed.distinct_parent_stems.count(b"\n")

    @property
    def folded(self) -> bool:
        """Whether images of several folders share a stem, so that only both together name one."""
        return self.stems < self.parent_stems

    @property
    def images(self) -> int:
        """Distinct images."""
        return self.parent_stems if self.folded else self.stems

    @cached_property
    def sequence(self) -> str:
        """Digest of the stems in their order."""
        return _hex(self.listed.stems)

    @cached_property
    def repeats(self) -> str:
        """Digest of the sorted stems, repeats kept."""
        if self.lines == self.stems:
            return self.sha256_stems
        return _hex(b"\n".join(sorted(self.listed.stems.split(b"\n")[:-1])) + b"\n")

    @cached_property
    def sha256_stems(self) -> str:
        """Digest of the distinct stems, sorted (S1)."""
        return _hex(self.listed.distinct_stems)

    @cached_property
    def sha256_parent_stems(self) -> str:
        """Digest of the distinct pairs of folder and stem, sorted (S2)."""
        return _hex(self.listed.distinct_parent_stems)

    @cached_property
    def sha256_numbers(self) -> str:
        """Digest of the distinct stems without the zeros before numbers; empty where no stem is a number."""
        return _hex(self._numbers) if self._number_lengths else ""

    @cached_property
    def numbers(self) -> int:
        """Distinct stems without the zeros before numbers; fewer than stems where numbers of two lengths are equal."""
        return self._numbers.count(b"\n") if self.mixes_lengths else self.stems

    @cached_property
    def _numbers(self) -> bytes:
        return distinct_lines(_ZEROS.sub(b"", self.listed.distinct_stems))

    @property
    def mixes_lengths(self) -> bool:
        """Whether stems that are numbers have several lengths: numbers of several data sets may be equal by chance."""
        return len(self._number_lengths) > 1

    @cached_property
    def _number_lengths(self) -> frozenset[int]:
        """Return the lengths of the stems that consist of digits only."""
        return frozenset(map(len, self._bare))

    @cached_property
    def _bare(self) -> list[bytes]:
        return _BARE.findall(self.listed.distinct_stems)

    @cached_property
    def counters(self) -> tuple[int, int]:
        """How many stems are bare numbers, and the length of the range from 0 that they lie in; (0, 0) if few are."""
        return (len(self._bare), max(map(int, self._bare)) + 1) if 2 * len(self._bare) > self.stems else (0, 0)

    @cached_property
    def filled_up(self) -> Fingerprint | None:
        """The list with its numbers as COCO writes them, 12 digits, where they are shorter; None where some are not."""
        if len(self._bare) < self.stems or max(self._number_lengths) > 11:
            return None
        texts = b"".join(b"%012d\n" % int(number) for number in self.listed.stems.split())
        return Fingerprint(PublishedList(self.key, texts, self.listed.lines, are_stems=True))

    @cached_property
    def foreign_folder(self) -> str:
        """First folder around names of ILSVRC's validation images that is not theirs; images made from them keep names.

        ImageNet-C's paths are ``fog/3/n01440764/ILSVRC2012_val_00000293.JPEG``.
        """
        if not self.listed.has_folders or _OF_VAL not in self.listed.paths:
            return ""
        paths = self.listed.paths.replace(b"\\", b"/").split(b"\n")
        for folder in dict.fromkeys(path.decode().rpartition("/")[0] for path in paths if _OF_VAL in path):
            *above, last = _WNID.sub("", folder.rstrip("/")).split("/")
            if not all(map(_OF_ORIGINALS.fullmatch, [*filter(_NAMES_DATA.search, above), last])):
                return folder
        return ""

    @cached_property
    def sha256_labels(self) -> str:
        """Digest of the sorted pairs of folder, stem and label; empty where the list has no labels."""
        if self.listed.labels is None:
            return ""
        return _hex(b"\n".join(sorted(b"%s %d" % pair for pair in set(self.labelled()))))

    def labelled(self) -> list[tuple[bytes, int]]:
        """Return stem (with its folder where stems repeat) and label of each entry that has one."""
        if self.listed.labels is None:
            return []
        keys = (self.listed.parent_stems if self.folded else self.listed.stems).split(b"\n")
        return [pair for pair in zip(keys, self.listed.labels.tolist(), strict=False) if pair[1] != NO_LABEL]

    def keys(self, *, folded: bool) -> bytes:
        """Return the distinct stems, or such with their folder, a line feed after each."""
        return self.listed.distinct_parent_stems if folded else self.listed.distinct_stems

    def hashes(self, *, folded: bool) -> Hashes:
        """Return the hashes of its keys, ascending."""
        folded = folded and self.listed.parent_stems != self.listed.stems
        if folded not in self._hashes:
            self._hashes[folded] = np.sort(hashes_in_order(self.keys(folded=folded)))
        return self._hashes[folded]

    @property
    def sketch(self) -> Hashes:
        """The smallest hashes of its images."""
        return self.hashes(folded=self.folded)[:SKETCH]

    @property
    def hash_sum(self) -> int:
        """Sum of the hashes of its images, modulo 2^64."""
        return int(self.hashes(folded=self.folded).sum(dtype=np.uint64))


def hashes_in_order(keys: bytes) -> Hashes:
    """Return the hash of each line of a text."""
    sha256 = hashlib.sha256
    pieces = [b"".join([sha256(key).digest()[:8] for key in block.split(b"\n")[:-1]]) for block in blocks_of(keys)]
    return np.frombuffer(b"".join(pieces), ">u8").astype(np.uint64)


def of_ids(ids: list[str], name: str = "") -> Fingerprint:
    """Return the fingerprint of ids of a manifest, ``coco:000000397133``, whose namespaces are taken off."""
    natives = "".join(f"{image.partition(':')[2]}\n" for image in ids).encode()
    return Fingerprint(PublishedList(name, natives, np.arange(1, len(ids) + 1, dtype=np.int32)))


def _hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
