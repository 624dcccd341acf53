"""The index of known lists: publisher, digests, counts and a sketch of each list, without the list itself.

`make_index` makes one from a folder of lists and a small file that declares them; `read_index` reads it. The file has a
line with the format, a line of JSON, the sketches as big-endian numbers, and bit sets for some lists whose names are
numbers, of which every image is known. The same lists give the same bytes.

A list is recognised by its `Fingerprint`: digests from strictest to loosest, and hashes of images. A hash is the
first eight bytes of the SHA-256 of a stem, read as a big-endian number. The smallest 1,024 of a list are its *sketch*:
the share of a sketch that is in another list estimates the share of the images that is in it.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from curation.core.columns import arrow_of, values_of
from curation.core.errors import MissingFileError, SourceError, UsageError
from curation.core.files import inside, missing_path, read_bytes
from curation.core.reading import utf8_text
from curation.core.tables import grouped
from curation.sources.entries import NO_LABEL, Form, PackedText, PublishedList
from curation.sources.published_list import list_files, read_published
from curation.sources.stems import DistinctLines, blocks_of, cells_of, match_pattern, stems, text_of

Hashes = npt.NDArray[np.uint64]
SKETCH = 1024
_NAMESPACED = re.compile(rb"^[a-z0-9][a-z0-9_.-]*:(?=[^/\\:\n]*$)", re.MULTILINE)
_ZEROS = re.compile(rb"^0+(?=[0-9]+$)", re.MULTILINE)
_BARE = "^[0-9]{1,18}$"
_OF_VAL = b"ILSVRC2012_val_"
_WNID = re.compile(r"/?n\d{8}$")
_OF_ORIGINALS = re.compile(r"(?:(?:imagenet|ilsvrc|1k|2012|img|val|valid|validation|data|images?|photos?)[-_]?)*", re.I)
_NAMES_DATA = re.compile(r"imagenet|ilsvrc", re.I)


class _BareNumbers(NamedTuple):
    """The stems of a list that are bare numbers; with reach and spread if they are most of its stems."""

    size: int
    lengths: frozenset[int]
    reach: int = 0
    spread: float = 0.0


class Fingerprint:
    """Fingerprint of an image list; each digest is computed on first use.

    Attributes
    ----------
    sha256 : str
        Hex digest of the bytes of its file; empty without a file.
    key : str
        Name of the list within its file.
    listed : PublishedList
    namespaced : bool
        Whether a namespace, such as ``coco:`` in lists of this package, was removed from the entries.
    """

    def __init__(self, listed: PublishedList, sha256: str = "") -> None:
        self.sha256 = sha256
        self.key = listed.name
        self.listed = listed
        self._hashes: dict[bool, Hashes] = {}
        self.namespaced = all(
            b":" in block and len(_NAMESPACED.findall(block)) == block.count(b"\n") for block in listed.blocks()
        )
        if self.namespaced:
            packed = PackedText(_NAMESPACED.sub(b"", block) for block in listed.blocks())
            self.listed = PublishedList(listed.name, b"", listed.lines, listed.labels, odd=listed.odd, packed=packed)

    @property
    def lines(self) -> int:
        """Entries, repeats counted."""
        return len(self.listed)

    @cached_property
    def stems(self) -> int:
        """Distinct stems."""
        return len(self.listed.distinct_stems)

    @cached_property
    def parent_stems(self) -> int:
        """Distinct pairs of folder and stem."""
        if self.stems == self.lines:
            return self.lines
        return len(self.listed.distinct_parent_stems)

    @property
    def folded(self) -> bool:
        """Whether images of several folders share a stem, so that an image is identified by folder and stem."""
        return self.stems < self.parent_stems

    @property
    def images(self) -> int:
        """Distinct images."""
        return self.parent_stems if self.folded else self.stems

    @cached_property
    def sequence(self) -> str:
        """Digest of the stems in their order."""
        return _hex(self.listed.stem_blocks())

    @cached_property
    def repeats(self) -> str:
        """Digest of the sorted stems, repeats kept."""
        if self.lines == self.stems:
            return self.sha256_stems
        stems = b"".join(self.listed.stem_blocks()).split(b"\n")[:-1]
        return _hex([b"\n".join(sorted(stems)), b"\n"])

    @property
    def sha256_stems(self) -> str:
        """Digest of the distinct stems, sorted (S1)."""
        return self.listed.distinct_stems.sha256

    @property
    def sha256_parent_stems(self) -> str:
        """Digest of the distinct pairs of folder and stem, sorted (S2)."""
        return self.listed.distinct_parent_stems.sha256

    @cached_property
    def sha256_numbers(self) -> str:
        """Digest of the distinct stems without leading zeros; empty if no stem is a number."""
        return self._numbers.sha256 if self._bare.lengths else ""

    @cached_property
    def numbers(self) -> int:
        """Distinct stems without leading zeros; fewer than the stems if numbers of different length are equal."""
        return len(self._numbers) if self.mixes_lengths else self.stems

    @cached_property
    def _numbers(self) -> DistinctLines:
        return DistinctLines(lambda: (_ZEROS.sub(b"", block) for block in self.listed.distinct_stems.blocks()))

    @property
    def mixes_lengths(self) -> bool:
        """Whether number stems differ in length: numbers of several datasets may be equal by chance."""
        return len(self._bare.lengths) > 1

    @cached_property
    def _bare(self) -> _BareNumbers:
        """Return the stems that consist of at most 18 digits."""
        from pyarrow import compute

        numbers, lengths = [np.empty(0, np.int64)], set[int]()
        for block in self.listed.distinct_stems.blocks():
            cells = cells_of(block)
            bare = cells.filter(arrow_of(match_pattern(cells, _BARE)))
            lengths |= set(compute.binary_length(bare).unique().to_pylist())
            numbers.append(values_of(bare.cast("int64")))
        column = np.concatenate(numbers)
        if 2 * len(column) <= self.stems:
            return _BareNumbers(len(column), frozenset(lengths))
        reach = int(column.max()) + 1
        low, high = np.quantile(column, (_FAR, 1 - _FAR), overwrite_input=True)
        return _BareNumbers(len(column), frozenset(lengths), reach, float(high - low) / (1 - 2 * _FAR) + 1)

    @property
    def counters(self) -> tuple[int, int]:
        """The number of stems that are bare numbers, and one more than the highest; (0, 0) if they are few."""
        return (self._bare.size, self._bare.reach) if self._bare.reach else (0, 0)

    @property
    def spread(self) -> float:
        """Length of the range of the bare numbers, without outliers."""
        return self._bare.spread

    @cached_property
    def whole_paths(self) -> int:
        """Distinct full paths; several may end in the same folder and stem."""
        if self.images == self.lines or not self.listed.has_folders:
            return self.images
        return max(self.images, len(DistinctLines(self.listed.image_blocks)))

    @cached_property
    def filled_up(self) -> Fingerprint | None:
        """The list with its numbers padded to COCO's 12 digits; None if some entries are not shorter numbers."""
        from pyarrow import compute

        if self._bare.size < self.stems or max(self._bare.lengths) > 11:
            return None
        padded = (text_of(compute.ascii_lpad(cells_of(block), 12, "0")) for block in self.listed.stem_blocks())
        return Fingerprint(PublishedList(self.key, b"", self.listed.lines, are_stems=True, packed=PackedText(padded)))

    @cached_property
    def foreign_folder(self) -> str:
        """First folder of ILSVRC's validation images that is not ILSVRC's; empty if there is none.

        Derived images keep their names: ``fog/3/n01440764/ILSVRC2012_val_00000293.JPEG`` in ImageNet-C.
        """
        if not self.listed.has_folders:
            return ""
        lines = (block.replace(b"\\", b"/").split(b"\n") for block in self.listed.blocks() if _OF_VAL in block)
        paths = (path for block in lines for path in block if _OF_VAL in path)
        for folder in dict.fromkeys(path.decode().rpartition("/")[0] for path in paths):
            *above, last = _WNID.sub("", folder.rstrip("/")).split("/")
            if not all(map(_OF_ORIGINALS.fullmatch, [*filter(_NAMES_DATA.search, above), last])):
                return folder
        return ""

    @cached_property
    def sha256_labels(self) -> str:
        """Digest of the sorted pairs of folder, stem and label; empty if the list has no labels."""
        if self.listed.labels is None:
            return ""
        return _hex([b"\n".join(sorted(b"%s %d" % pair for pair in set(self.labelled())))])

    def labelled(self) -> list[tuple[bytes, int]]:
        """Return the stem (with its folder if stems repeat) and label of each entry with a label."""
        if self.listed.labels is None:
            return []
        keys = b"".join(self.listed.stem_blocks(parents=int(self.folded))).split(b"\n")
        return [pair for pair in zip(keys, self.listed.labels.tolist(), strict=False) if pair[1] != NO_LABEL]

    def keys(self, *, folded: bool) -> DistinctLines:
        """Return the distinct stems, with their folders if stems repeat."""
        return self.listed.distinct_parent_stems if folded else self.listed.distinct_stems

    def hashes(self, *, folded: bool) -> Hashes:
        """Return the hashes of its keys, ascending."""
        folded = folded and self.listed.has_folders
        if folded not in self._hashes:
            keys, start = self.keys(folded=folded), 0
            hashes = np.empty(len(keys), np.uint64)
            for block in keys.blocks():
                part = hashes_in_order(block)
                hashes[start : start + len(part)] = part
                start += len(part)
            if len(hashes) > _KEPT:
                keys.release()
            hashes.sort()
            self._hashes[folded] = hashes
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
    digests = b"".join([sha256(key).digest()[:8] for key in keys.split(b"\n")[:-1]])
    return np.frombuffer(digests, ">u8").astype(np.uint64)


def of_ids(ids: list[str], name: str = "") -> Fingerprint:
    """Return the fingerprint of a manifest's ids, such as ``coco:000000397133``, without their namespaces."""
    natives = "".join(f"{image.partition(':')[2]}\n" for image in ids).encode()
    return Fingerprint(PublishedList(name, natives, np.arange(1, len(ids) + 1, dtype=np.int32)))


def _hex(blocks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


MAGIC = b"curation-lists 2\n"
DECLARATION = "lists.toml"
_FAR = 0.1
_HEAD = 1 << 12
_KEPT = 2_000_000
"""Number of names that remain sorted in memory; a longer list is sorted again for each use."""
_MOST_DIGITS, _LARGEST_NUMBER = 18, 1 << 27
_OF_FINGERPRINT = (
    "key", "lines", "stems", "parent_stems", "numbers", "sha256", "sequence", "repeats", "sha256_stems",
    "sha256_parent_stems", "sha256_numbers", "sha256_labels", "hash_sum",
)  # fmt: skip


class KnownList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One list of the index.

    Attributes
    ----------
    name : str
        ``openood/test_ssb_hard``: the short name of its source and its file without suffix.
    benchmark, part, version, licence : str
        The benchmark that published it, the part, the repository and commit, and the terms.
    defects : tuple of str
        Known defects.
    successor : str
        A list to use instead or in addition.
    manifest : str
        ``NAME@VERSION#PART`` of the manifest of this package that holds the list.
    file, key, form : str
        Path of its file, its name within the file, and how the file is written.
    lines, stems, parent_stems, numbers : int
        Entries; distinct stems; distinct pairs of folder and stem; distinct stems without zeros before numbers.
    labels : str
        Lowest and highest label, ``0..999``.
    sha256, sequence, repeats, sha256_stems, sha256_parent_stems, sha256_numbers, sha256_labels : str
        As `curation.extensions.identify.index.Fingerprint` has them.
    hash_sum : int
    range : int
        One more than the highest number if all names are bare numbers; else 0.
    prefix, digits, bits : str, int, int
        For a list that the index stores as a bit set: the text before each number, its number of digits, and the bytes
        of the set.
    """

    name: str
    benchmark: str
    part: str = ""
    version: str = ""
    licence: str = ""
    defects: tuple[str, ...] = ()
    successor: str = ""
    manifest: str = ""
    file: str = ""
    key: str = ""
    form: Form = "id list"
    lines: int
    stems: int
    parent_stems: int
    numbers: int
    labels: str = ""
    sha256: str = ""
    sequence: str
    repeats: str
    sha256_stems: str
    sha256_parent_stems: str
    sha256_numbers: str = ""
    sha256_labels: str = ""
    hash_sum: int
    range: int = 0
    prefix: str = ""
    digits: Annotated[int, msgspec.Meta(ge=0, le=_MOST_DIGITS)] = 0
    bits: Annotated[int, msgspec.Meta(ge=0)] = 0

    @property
    def folded(self) -> bool:
        """Whether images of several folders share a stem."""
        return self.stems < self.parent_stems

    @property
    def called(self) -> str:
        """The published name of the list, in lower case; empty for a part of a manifest."""
        suffix = PurePosixPath(self.file).suffix
        return "" if self.manifest else (self.key or PurePosixPath(self.name).name.removesuffix(suffix)).lower()

    @property
    def images(self) -> int:
        """Distinct images."""
        return max(self.stems, self.parent_stems) if self.folded else self.stems

    @property
    def title(self) -> str:
        """Benchmark and part."""
        return f"{self.benchmark}, {self.part}" if self.part else self.benchmark


@dataclass(frozen=True)
class ListIndex:
    """Known lists with their sketches, in the order of the index, and bit sets by the digests of stems."""

    lists: tuple[KnownList, ...]
    sketches: tuple[Hashes, ...]
    bits: Mapping[str, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lists)

    def joined(self, other: ListIndex) -> ListIndex:
        """Return this index joined with another one; lists with the same bytes appear once."""
        known = {(listed.sha256, listed.key) for listed in self.lists if listed.sha256}
        more = [row for row, added in enumerate(other.lists) if (added.sha256, added.key) not in known]
        lists = (*self.lists, *(other.lists[row] for row in more))
        sketches = (*self.sketches, *(other.sketches[row] for row in more))
        return ListIndex(lists, sketches, {**self.bits, **other.bits})


def may_be_known(listed: PublishedList, images: int, index: ListIndex) -> bool:
    """Return whether a list may equal a known one: no hash of its first lines contradicts the sketch of that one."""
    head, hashes = next(blocks_of(listed.paths, _HEAD)), dict[bool, Hashes]()
    for known, sketch in zip(index.lists, index.sketches, strict=True):
        if images in (known.stems, known.parent_stems):
            if known.folded not in hashes:
                hashes[known.folded] = hashes_in_order(stems(head, parents=int(known.folded)))
            below = hashes[known.folded][hashes[known.folded] <= sketch[-1]]
            if np.isin(below, sketch).all():
                return True
    return False


class _Head(msgspec.Struct, frozen=True):
    tail_sha256: str
    lists: tuple[KnownList, ...]


def packaged_index() -> Path:
    """Return the index that is part of this package."""
    return Path(__file__).with_name("published.index")


def read_index(path: Path) -> ListIndex:
    """Return the index in a file.

    Raises
    ------
    MissingFileError
        The file does not exist.
    SourceError
        The file is not an index, or is damaged.
    """
    data = read_bytes(path, kind="index")
    hint = "make it again with index_bytes(make_index(FOLDER).index)"
    if not data.startswith(MAGIC):
        raise SourceError(
            "The file is not an index of lists", where=str(path), expected=MAGIC.decode().strip(),
            found=ascii(data[: len(MAGIC)])[1:], hint=hint,
        )  # fmt: skip
    end = data.find(b"\n", len(MAGIC))
    try:
        head = msgspec.json.decode(data[len(MAGIC) : end], type=_Head)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise SourceError("The index is damaged", where=str(path), found=str(error)[:200], hint=hint) from None
    tail = memoryview(data)[end + 1 :]
    sizes = [min(SKETCH, known.images) for known in head.lists]
    start = 8 * sum(sizes)
    n_bytes = start + sum(known.bits for known in head.lists)
    if hashlib.sha256(tail).hexdigest() != head.tail_sha256 or len(tail) != n_bytes:
        raise SourceError(
            "The index is damaged", where=str(path), expected=f"{n_bytes:,} bytes of sketches and bits",
            found=f"{len(tail):,} bytes of another digest", hint=hint,
        )  # fmt: skip
    numbers = np.frombuffer(tail[:start], ">u8").astype(np.uint64)
    bits = {}
    for known in head.lists:
        if known.bits:
            bits[known.sha256_stems] = bytes(tail[start : start + known.bits])
            start += known.bits
    return ListIndex(head.lists, tuple(np.split(numbers, np.cumsum(sizes)[:-1])) if sizes else (), bits)


def index_bytes(index: ListIndex) -> bytes:
    """Return the bytes of an index, which are the same for the same lists; lists are sorted by name."""
    order = sorted(range(len(index)), key=lambda row: (index.lists[row].name, index.lists[row].key))
    bits = [index.bits[index.lists[row].sha256_stems] for row in order if index.lists[row].bits]
    tail = b"".join([*(index.sketches[row].astype(">u8").tobytes() for row in order), *bits])
    head = _Head(hashlib.sha256(tail).hexdigest(), tuple(index.lists[row] for row in order))
    return MAGIC + msgspec.json.encode(head) + b"\n" + tail


def keys_of_bits(known: KnownList, bits: bytes) -> bytes:
    """Return the sorted stems of a list that the index stores as a bit set, a line feed after each."""
    numbers = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8))).tolist()
    return "".join([f"{known.prefix}{number:0{known.digits}d}\n" for number in numbers]).encode()


def _as_bits(stems: bytes, where: Path) -> tuple[str, int, bytes]:
    """Return the common prefix of stems, the number of digits after it, and the numbers as a bit set."""
    lines = stems.decode().splitlines()
    prefix = lines[0].rstrip("0123456789")
    texts = [line.removeprefix(prefix) for line in lines]
    digits = len(texts[0])
    if not (0 < digits <= _MOST_DIGITS and set(map(len, lines)) == {len(lines[0])} and all(map(str.isdecimal, texts))):
        raise UsageError("The names of a numbered list do not end in numbers of the same length", where=str(where))
    numbers = np.array(texts, np.int64)
    if numbers.max() >= _LARGEST_NUMBER:
        raise UsageError(
            "The numbers of a list are too large to be held as bits", where=str(where),
            expected=f"below {_LARGEST_NUMBER:,}", found=f"{numbers.max():,}",
        )  # fmt: skip
    is_there = np.zeros(int(numbers.max()) + 1, np.bool_)
    is_there[numbers] = True
    return prefix, digits, np.packbits(is_there).tobytes()


@dataclass(frozen=True)
class MadeIndex:
    """An index just made from a folder.

    Attributes
    ----------
    index : ListIndex
    undeclared : tuple of str
        Files of the folder that the declaration does not name.
    passed_over : mapping of str to str
        Files that are not image lists, with the reason.
    """

    index: ListIndex
    undeclared: tuple[str, ...] = ()
    passed_over: Mapping[str, str] = field(default_factory=dict)


_Finding = str | dict[str, str]
"""A text, or a text by the name of its kind, with the command that shows it as `BY`."""
BY = "by"


class _Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    measured: str
    command: str
    does_not_show: str = ""
    rule: str = ""


class _Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    defects: tuple[_Finding, ...] = ()
    findings: tuple[_Finding, ...] = ()
    successor: str = ""


class _Declared(_Known, frozen=True, forbid_unknown_fields=True, kw_only=True):
    file: str
    name: str = ""
    part: str = ""


class _Source(_Known, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    benchmark: str
    version: str = ""
    licence: str = ""
    folder: str = ""
    numbered: bool = False
    lists: tuple[_Declared, ...] = ()


class _Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: tuple[_Source, ...] = ()
    manifests: tuple[str, ...] = ()
    kinds: dict[str, _Kind] = {}


def make_index(folder: Path, declaration: Path | None = None) -> MadeIndex:
    """Return an index of the lists below a folder.

    Parameters
    ----------
    declaration : Path, optional
        A TOML file (docs/identify.md); by default ``lists.toml`` in the folder. Without it, every list below the folder
        is added under its path.

    Raises
    ------
    MissingFileError
        The folder, the declaration, or a declared file does not exist.
    UsageError
        The declaration is malformed, two lists have the same name, or no list is found.
    PathEscapeError
        A declared file lies outside the folder.
    AnnotationFormatError
        A declared file is not a list.
    """
    if not folder.is_dir():
        raise missing_path("The folder of lists does not exist", folder)
    if declaration is None and (folder / DECLARATION).is_file():
        declaration = folder / DECLARATION
    made = _Making(folder)
    if declaration is None:
        made.take_all()
    else:
        made.take(_declared(declaration), declaration)
    if not made.lists:
        raise UsageError(
            "No list of images found", where=str(folder), expected="lists in a form that docs/identify.md names",
            found="; ".join(f"{name}: {why}" for name, why in list(made.passed_over.items())[:3]) or "no such file",
        )  # fmt: skip
    return made.result()


def _texts(findings: tuple[_Finding, ...]) -> tuple[str, ...]:
    return tuple(finding if isinstance(finding, str) else finding[_kind(finding)] for finding in findings)


def _kind(finding: dict[str, str]) -> str:
    return next(name for name in finding if name != BY)


def _declared(path: Path) -> _Declaration:
    try:
        data = read_bytes(path, kind="declaration")
        text = utf8_text(data, str(path), UsageError, "The declaration is not UTF-8 text")
        content = msgspec.convert(tomllib.loads(text), _Declaration)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            "The declaration of lists is malformed", where=str(path), found=str(error)[:200],
            expected="[[source]] tables, see docs/identify.md",
        ) from None  # fmt: skip
    tables: list[_Known] = [table for source in content.source for table in (source, *source.lists)]
    for finding in (entry for table in tables for entry in table.defects + table.findings):
        if not isinstance(finding, str) and (len(finding.keys() - {BY}) != 1 or _kind(finding) not in content.kinds):
            raise UsageError(
                "A finding has no kind that is declared", where=str(path), found=str(finding)[:200],
                expected=f"a text, or one text under {', '.join(content.kinds) or '[kinds.NAME]'}",
            )  # fmt: skip
    return content


class _Making:
    """Collects the lists of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lists: dict[tuple[str, str], tuple[KnownList, Hashes]] = {}
        self.bits: dict[str, bytes] = {}
        self.undeclared: tuple[str, ...] = ()
        self.passed_over: dict[str, str] = {}

    def take_all(self) -> None:
        for path in list_files(self.folder):
            name = path.relative_to(self.folder).as_posix()
            try:
                self._take_file(path, name, name, declared=False, benchmark=self.folder.resolve().name)
            except SourceError as error:
                self.passed_over[name] = error.what

    def take(self, declared: _Declaration, where: Path) -> None:
        paths: set[Path] = set()
        for source in declared.source:
            for entry in source.lists:
                for path in self._files(source, entry, where):
                    paths.add(path)
                    below = path.relative_to(self.folder / source.folder).as_posix().removesuffix(".txt")
                    self._take_file(
                        path, f"{source.name}/{entry.name or below}", path.relative_to(self.folder).as_posix(),
                        benchmark=source.benchmark, part=entry.part.replace("{stem}", path.stem),
                        version=source.version, licence=source.licence, defects=_texts(entry.defects + source.defects),
                        successor=entry.successor or source.successor, numbered=source.numbered,
                    )  # fmt: skip
        for name in declared.manifests:
            self._take_manifest(name)
        others = [path for path in list_files(self.folder) if path not in paths]
        self.undeclared = tuple(path.relative_to(self.folder).as_posix() for path in others)

    def _files(self, source: _Source, declared: _Declared, where: Path) -> list[Path]:
        home = inside(self.folder, source.folder) if source.folder else self.folder
        pattern = "*" in declared.file
        # A pattern may contain .. like a path, and may match a link that leads outside.
        paths = [inside(home, declared.file)]
        if pattern and home.is_dir():
            paths = [inside(home, path.relative_to(home).as_posix()) for path in sorted(home.glob(declared.file))]
        try:
            there = bool(paths) and all(path.is_file() for path in paths)
        except OSError:
            # The name is not valid for a file.
            there = False
        if not there:
            name = f"{source.folder}/{declared.file}".removeprefix("/")[:200]
            raise MissingFileError("A declared list does not exist", where=f"{where}: {source.name}", found=name)
        return paths

    def _take_file(
        self, path: Path, name: str, file: str, *, declared: bool = True, numbered: bool = False, **facts: object
    ) -> None:
        read = read_published(path)
        if not read.lists:
            if declared:
                raise UsageError("A declared file is not a list of images", where=str(path), found=read.form)
            self.passed_over[file] = f"it holds {read.form}, no list of images"
        for listed in read.lists:
            label = f"{name}#{listed.name}" if listed.name else name
            fingerprint = Fingerprint(listed, read.sha256)
            if numbered:
                prefix, digits, bits = _as_bits(b"".join(listed.distinct_stems.blocks()), path)
                facts |= {"prefix": prefix, "digits": digits, "bits": len(bits)}
                self.bits[fingerprint.sha256_stems] = bits
            self._add(label, fingerprint, {**facts, "file": file, "form": read.form})

    def _take_manifest(self, name: str) -> None:
        from curation.manifest.locate import load_manifest

        manifest = load_manifest(name)
        header = manifest.header
        present = (part.name for part in header.parts if part.name in manifest.lists)
        for ids, names in grouped(present, lambda name: tuple(manifest.lists[name])).items():
            title = f"{header.name}@{header.version}#{names[0]}"
            facts = {"benchmark": header.name, "part": ", ".join(names), "version": header.version, "manifest": title}
            self._add(title, of_ids(list(ids)), facts)

    def _add(self, name: str, fingerprint: Fingerprint, facts: Mapping[str, object]) -> None:
        if (name, fingerprint.key) in self.lists:
            raise UsageError("Two lists of the index have one name", where=str(self.folder), found=name)
        entry = KnownList(
            name=name, labels=fingerprint.listed.label_range,
            range=fingerprint.counters[1] if fingerprint.counters[0] == fingerprint.stems else 0,
            **{field: getattr(fingerprint, field) for field in _OF_FINGERPRINT},
            **facts,  # type: ignore[arg-type]
        )  # fmt: skip
        self.lists[name, fingerprint.key] = (entry, fingerprint.sketch)

    def result(self) -> MadeIndex:
        entries = [self.lists[name] for name in sorted(self.lists)]
        index = ListIndex(tuple(entry for entry, _ in entries), tuple(sketch for _, sketch in entries), self.bits)
        return MadeIndex(index, self.undeclared, dict(self.passed_over))
