"""`Manifest`: a header and its id lists, the frozen result of a rule.

A manifest is written completely or not at all, and is read only if every byte agrees with its digest.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from curation.core.arguments import checked, shown
from curation.core.canonical import canonical_json, sha256_of_bytes
from curation.core.errors import (
    CurationWarning,
    DigestMismatchError,
    ManifestError,
    MissingFileError,
    MissingListError,
    SourceError,
    UsageError,
)
from curation.core.files import inside, read_bytes
from curation.core.reading import utf8_text
from curation.core.tables import html_table
from curation.core.wording import cut
from curation.core.writing import publishing_folder, write_bytes
from curation.manifest.built_from import BuiltFrom, open_remembered, read_built_from
from curation.manifest.header import SCHEMA_VERSION, Header, PartEntry, header_as_data
from curation.manifest.validation import check_header, check_lists, check_manifest_name
from curation.sources.source_specs import Reading, Sources, SourceSlot

if TYPE_CHECKING:
    import datasets
    import pandas as pd

    from curation.manifest.part_dataset import PartDataset
    from curation.sources.source import Source


HEADER_FILE = "manifest.json"
LIST_FOLDER = "ids"
MAX_HEADER_BYTES = 16 << 20
MAX_LIST_BYTES = 512 << 20
VARIABLE = "CURATION_MANIFESTS"


class _Lists(dict[str, tuple[str, ...]]):
    """Ids by part; the representation has their numbers."""

    def __repr__(self) -> str:
        return cut(f"{{{', '.join(f'{name!r}: {len(ids):,} ids' for name, ids in self.items())}}}", 240)


@dataclass(frozen=True)
class Manifest:
    """A header and the id lists of its parts.

    Attributes
    ----------
    header : Header
    lists : mapping of str to tuple of str
        Ids of each available part, in file order. A declared part has none.
    built_from : BuiltFrom or None
        Paths and contents of the sources that it was built from; not part of the digest.

    Examples
    --------
    The examples of the methods continue this one.

    >>> import curation
    >>> manifest = curation.load("elephant/val2017")
    >>> manifest.parts
    ('closed', 'wilderness', 'wr0.1-hash')
    >>> manifest.digest[:19]
    'sha256:343e1b28cb1d'
    """

    header: Header
    lists: Mapping[str, tuple[str, ...]]
    built_from: BuiltFrom | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Raise an error for an invalid header, invalid lists, or a name that cannot be the name of a folder.

        Raises
        ------
        ManifestError
        """
        if not isinstance(self.header, Header) or not isinstance(self.lists, Mapping):
            raise ManifestError(
                "A manifest needs a header, and ids by part",
                expected="a Header and a mapping; curation.load reads a manifest, curation.build makes one",
                found=f"{shown(self.header)}; {shown(self.lists)}",
            )
        check_manifest_name(self.header)
        object.__setattr__(self, "lists", _Lists(self.lists))

    def __repr__(self) -> str:
        header = self.header
        parts = len(header.parts)
        return (
            f"<Manifest {cut(header.name, 80)} {cut(header.version, 20)}, {header.origin}, {parts} "
            f"{'part' if parts == 1 else 'parts'}, {len(self.lists)} with lists, {self.digest[:19]}>"
        )

    def _repr_html_(self) -> str:
        """Return a small table for a notebook: each part with its role, images and the start of its digest."""
        header, columns = self.header, ("part", "role", "task", "images", "digest", "list available")
        rows = []
        for part in header.parts:
            images = "" if part.images is None else f"{part.images:,}"
            at_hand = "yes" if part.name in self.lists else "no"
            rows.append((part.name, part.role, part.task, images, (part.sha256 or "no list")[:19], at_hand))
        words = (header.name, header.version, header.title, header.origin, self.digest[:19])
        return html_table(columns, rows, caption=" · ".join(cut(word, 160) for word in words))

    @cached_property
    def digest(self) -> str:
        """``sha256:<hex>`` of the canonical header, which contains the digest of every list."""
        return sha256_of_bytes(canonical_json(header_as_data(self.header)))

    @property
    def slots(self) -> tuple[SourceSlot, ...]:
        """The sources that the manifest was made from, as slots for `open_slots`; none is required."""
        entries = self.header.sources
        return tuple(SourceSlot(entry.name, entry.dataset, entry.part, False, entry.note) for entry in entries)

    def open_sources(
        self,
        given: Mapping[str, Any],
        reading: Reading | None = None,
        *,
        slots: Sequence[SourceSlot] | None = None,
        allow_changed: bool = False,
    ) -> dict[str, Source]:
        """Return the given sources, and the remembered sources of the build for all others.

        Parameters
        ----------
        given : mapping of str to path or annotations
            See `curation.sources.opening.open_slots`.
        reading : Reading, optional
            How given sources are read; the others are read as in the build.
        slots : sequence of SourceSlot, optional
            Required sources, by default all; values for other sources are ignored.
        allow_changed : bool
            Remembered files may have other bytes than in the build.

        Raises
        ------
        SourceError
            A remembered file was moved, cannot be read, or was changed.

        Examples
        --------
        >>> coco = {"images": [{"id": 1, "width": 9, "height": 9}], "annotations": [], "categories": []}
        >>> manifest.open_sources({"coco": coco}, slots=manifest.slots[1:])["coco"].image_ids.tolist()
        ['coco:000000000001']
        """
        needed, how = self.slots if slots is None else slots, reading or Reading()
        idle, used = ({name for slot in some for name in (slot.name, slot.dataset)} for some in (self.slots, needed))
        values = {key: value for key, value in given.items() if key.partition("@")[0] not in idle - used}
        return open_remembered(self.built_from, self.header, needed, values, how, allow_changed=allow_changed)

    @checked
    def part(self, name: str) -> PartEntry:
        """Return the header's entry of a part.

        Raises
        ------
        ManifestError
            The manifest has no such part; the message lists the parts.

        Examples
        --------
        >>> manifest.part("closed").role, manifest.part("closed").images
        ('test', 4952)
        """
        if name not in self.parts:
            expected, text = ", ".join(self.parts), repr(name[:80])
            raise ManifestError("The manifest has no such part", where=self.title, expected=expected, found=text)
        return self.header.parts[self.parts.index(name)]

    @checked
    def ids(self, name: str) -> tuple[str, ...]:
        """Return the image ids of a part.

        Raises
        ------
        ManifestError
            The manifest has no such part.
        MissingListError
            The manifest has only the header of this part; the message has the command that adds the list.

        Examples
        --------
        >>> manifest.ids("wilderness")[:2]
        ('coco:000000000285', 'coco:000000000776')
        """
        if self.part(name).name in self.lists:
            return self.lists[name]
        reason = "it is declared, and needs your raw data"
        if self.header.origin == "as_published":
            reason = "the authors' list is not passed on, only its digest"
        raise MissingListError(
            f"The list of part {name!r} is not in this manifest: {reason}",
            where=self.title,
            hint=self.completion() or None,
        )

    def completion(self) -> str:
        """Return the command that adds missing lists; ``""`` if no reader supports the data.

        Examples
        --------
        >>> curation.load("elephant/wr1-prob-published").completion()
        'curation import elephant/wr1-prob-published@1.0.0 --lists DIR --out DIR'
        """
        target, header = self.title.replace(" ", "@"), self.header
        if header.origin == "as_published":
            return f"curation import {target} --lists DIR --out DIR"
        if any(entry.note.startswith("no reader") for entry in header.sources):
            return ""
        words = [f"--source {entry.name}=PATH" for entry in header.sources]
        words += ["--decisions FILE"] * str(header.rule.parameters.get("decisions", "")).startswith("sha256:")
        return f"curation build {target} {' '.join(words)} --out DIR"

    @checked
    def frame(self, name: str | None = None) -> pd.DataFrame:
        """Return a table of the images of a part, or of every part with a list, a row for each image.

        Columns are ``part``, ``role``, ``task``, ``image_id`` and ``native``, the id without its namespace.

        Raises
        ------
        ManifestError, MissingListError
            See `ids`.

        Examples
        --------
        >>> manifest.frame("wilderness")[["part", "image_id", "native"]].head(2)
                 part           image_id        native
        0  wilderness  coco:000000000285  000000000285
        1  wilderness  coco:000000000776  000000000776
        """
        import pandas as pd

        rows = [
            (part, self.part(part).role, self.part(part).task, image, image.partition(":")[2])
            for part in (self.lists if name is None else [name])
            for image in self.ids(part)
        ]
        return pd.DataFrame(rows, columns=["part", "role", "task", "image_id", "native"])

    @checked
    def photos(
        self, name: str, root: Path | str | Mapping[str, Path], sources: Sources | None = None
    ) -> dict[str, Path]:
        """Return the path of the photo of each image of a part, by image id.

        A photo may be anywhere below the folder. Its name is the file name in the sources, or the image id without
        its namespace.

        Parameters
        ----------
        root : Path, or mapping of str to Path
            Folder of the photos, or a folder for each namespace.
        sources : mapping of str to path or annotations, optional
            The raw datasets, needed if the photos have other names than their ids and the manifest does not remember
            its sources.

        Raises
        ------
        MissingFileError
            A folder does not exist, or a photo is missing.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> for native in manifest.frame("wilderness")["native"]:
        ...     (folder / f"{native}.jpg").touch()
        >>> manifest.photos("wilderness", folder)["coco:000000000285"].name
        '000000000285.jpg'
        """
        from curation.sources.photos import photos_of_ids

        return photos_of_ids(self.ids(name), root, self.sources_of_photos(sources))

    @checked
    def dataset(
        self,
        part: str,
        root: Path | str | Mapping[str, Path],
        sources: Sources | None = None,
        *,
        target: Literal["boxes", "coco", "label", "id"] | None = None,
        transforms: Callable[..., Any] | None = None,
    ) -> PartDataset:
        """Return the photos of a part with their targets, as a map-style dataset for PyTorch's ``DataLoader``.

        An item is a picture (``PIL.Image``, RGB) and its target, in the order of the list. Targets come from the
        sources, after the label view of the part; a class is its index in the manifest, -1 if it is unknown.

        Parameters
        ----------
        root : Path, or mapping of str to Path
            Folder of the photos, or a folder for each namespace (see `photos`).
        sources : mapping of str to path or annotations, optional
            The raw datasets; the remembered sources of the build by default.
        target : {"boxes", "coco", "label", "id"}, optional
            ``boxes``, the default where the sources have boxes: a dictionary as torchvision's detectors take it, with
            tensors ``boxes`` (float32, shape (n, 4), ``x1, y1, x2, y2`` in pixels), ``labels`` (int64), ``area``,
            ``iscrowd`` and ``ignore``, and the text ``image_id``. ``coco``: a dictionary with ``image_id`` and
            ``annotations``, as detectors of Hugging Face take it. ``label``, the default for sources without boxes:
            the class of the image. ``id``: the image id, which needs no source.
        transforms : callable, optional
            Takes picture and target, and returns the item. ``torchvision.transforms.v2`` moves only boxes that are
            ``tv_tensors.BoundingBoxes``: wrap ``target["boxes"]`` first.

        Raises
        ------
        ManifestError
            A source of the part is missing; or the target is a label, and an image has no class or several.
        MissingFileError
            A folder does not exist, or a photo is missing.
        MissingExtraError
            PyTorch is not installed, and the targets are tensors.

        Examples
        --------
        >>> images = [{"id": n, "file_name": f"{n}.jpg", "width": 9, "height": 9} for n in (1, 2)]
        >>> box = {"bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}
        >>> boxes = [{"id": n, "image_id": n, "category_id": n, **box} for n in (1, 2)]
        >>> classes = [{"id": 1, "name": "cat"}, {"id": 2, "name": "zebra"}]
        >>> coco = {"images": images, "annotations": boxes, "categories": classes}
        >>> sources = {"voc2007-test": {**coco, "images": images[:1], "annotations": boxes[:1]}, "coco": coco}
        >>> drawn = curation.build("elephant", sources, ratios="1")
        >>> from PIL import Image
        >>> folder = mkdtemp()
        >>> Image.new("RGB", (9, 9)).save(f"{folder}/1.jpg")
        >>> picture, target = drawn.dataset("closed", folder, sources)[0]
        >>> target["boxes"], target["labels"]
        (tensor([[1., 2., 4., 6.]]), tensor([8]))
        """
        from curation.manifest.part_dataset import PartDataset, part_dataset

        if target == "id":
            ids = self.ids(part)
            return PartDataset(ids, self.photos(part, root, sources), target, transforms)
        return part_dataset(self, part, root, self._sources_of(part, sources), target, transforms)

    @checked
    def to_datasets(
        self, part: str, root: Path | str | Mapping[str, Path], sources: Sources | None = None
    ) -> datasets.Dataset:
        """Return a part as a dataset of Hugging Face: pictures, which are read when they are used, and their labels.

        Columns are ``image``, ``image_id`` and, if the sources have boxes, ``objects``: ``bbox`` (``x, y, w, h`` in
        pixels), ``category`` (the index of the class, -1 if it is unknown), ``area``, ``iscrowd`` and ``ignore``;
        else ``label``, the class of the image. The package ``datasets`` rotates photos as their EXIF data says.

        Parameters
        ----------
        root, sources
            See `dataset`.

        Raises
        ------
        ManifestError, MissingFileError
            See `dataset`.
        MissingExtraError
            The package ``datasets`` is not installed.

        Examples
        --------
        The manifest, the photo and the sources are those of the example of `dataset`.

        >>> drawn.to_datasets("closed", folder, sources)[0]["objects"]["bbox"]
        [[1.0, 2.0, 3.0, 4.0]]
        """
        from curation.manifest.part_dataset import part_dataset, to_huggingface

        opened = self._sources_of(part, sources)
        return to_huggingface(part_dataset(self, part, root, opened, items=False), self.header.classes)

    def _sources_of(self, part: str, sources: Sources | None) -> dict[str, Source]:
        self.ids(part)
        names = self.part(part).sources
        return self.open_sources(sources or {}, slots=[slot for slot in self.slots if slot.name in names])

    def sources_of_photos(self, sources: Sources | None) -> tuple[Source, ...]:
        """Return the raw datasets, which name the photo files: the given ones, else the remembered ones of the build.

        Examples
        --------
        >>> curation.load("elephant/val2017").sources_of_photos(None)
        ()
        """
        try:
            return tuple(self.open_sources(sources or {}).values())
        except SourceError as error:
            if sources:
                raise
            warning = f"{error.what} ({error.where}): photos are looked up by id, not by the file names of the source"
            warnings.warn(warning, CurationWarning, stacklevel=4)
            return ()

    @checked
    def save(self, folder: Path | str) -> Path:
        """Write the manifest to a folder, completely or not at all, and return the folder (see `write_manifest`).

        Raises
        ------
        UsageError
            The folder holds another manifest.

        Examples
        --------
        >>> copy = curation.load(manifest.save(Path(mkdtemp()) / "copy"))
        >>> copy.digest == manifest.digest
        True
        """
        write_manifest(self, Path(folder))
        return Path(folder)

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.header.name} {self.header.version}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its parts."""
        return tuple(part.name for part in self.header.parts)


class StoredHeader(Header, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The header in a file, with the digest that the file states."""

    digest: str


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write a manifest to a folder, completely or not at all: ``manifest.json`` and ``ids/PART.txt``.

    Writing the same manifest to the same place again does nothing.

    Raises
    ------
    ManifestError
        The manifest is inconsistent: see `check_header` and `check_lists`.
    UsageError
        The folder holds another manifest: a published manifest is never edited.
    """
    where = str(folder)
    check_header(manifest.header, where=where)
    check_lists(manifest.header, manifest.lists, where=where)
    remembered = {} if manifest.built_from is None else manifest.built_from.stored(folder)
    if (folder / HEADER_FILE).exists():
        _require_same(manifest, folder)
        for name, data in remembered.items():
            write_bytes(folder / name, data, guarded=False)
        return
    with publishing_folder(folder) as partial:
        for name, data in (manifest_files(manifest) | remembered).items():
            path = partial / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)


def _require_same(manifest: Manifest, folder: Path) -> None:
    remedy, hint = "remove it, or choose another --out", "choose another --out; `curation diff` compares the two"
    try:
        present = read_manifest(folder)
    except (ManifestError, MissingFileError) as error:
        message = "The output folder holds a damaged manifest"
        raise UsageError(message, where=str(folder), found=error.what, hint=remedy) from error
    if present.digest != manifest.digest:
        message = "The output folder holds another manifest, and a published manifest is never edited"
        present_state = f"{present.title}, {present.digest}"
        raise UsageError(message, where=str(folder), expected=manifest.digest, found=present_state, hint=hint)
    if present.lists.keys() != manifest.lists.keys():
        message = "The output folder holds the same manifest with other lists available"
        expected, present_state = f"{len(manifest.lists)} lists", f"{len(present.lists)} lists"
        raise UsageError(message, where=str(folder), expected=expected, found=present_state, hint=hint)


def manifest_data(manifest: Manifest) -> dict[str, Any]:
    """Return the header as plain data with its digest first, as ``manifest.json`` holds it."""
    return {"digest": manifest.digest, **header_as_data(manifest.header)}


def header_bytes(manifest: Manifest) -> bytes:
    """Return the bytes of ``manifest.json``."""
    return (json.dumps(manifest_data(manifest), indent=1, ensure_ascii=False) + "\n").encode()


def manifest_files(manifest: Manifest) -> dict[str, bytes]:
    """Return the bytes of every file of a manifest's folder, by relative name."""
    files = {HEADER_FILE: header_bytes(manifest)}
    for name in sorted(manifest.lists):
        files[f"{LIST_FOLDER}/{name}.txt"] = "".join(f"{line}\n" for line in manifest.lists[name]).encode()
    return files


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a folder (or of its ``manifest.json``), after checking every digest.

    Raises
    ------
    MissingFileError
        The folder holds no manifest.
    VersionChainError
        It supersedes itself or a later version.
    ManifestError
        The header is not JSON, has other fields or types than the schema, or is inconsistent; a list is missing,
        superfluous, malformed, unsorted, or names an image twice.
    DigestMismatchError
        The header or a list does not agree with its digest. The message names the file.
    """
    folder = path.parent if path.name == HEADER_FILE else path
    header = _read_header(folder / HEADER_FILE)
    check_header(header, where=str(folder / HEADER_FILE))
    at_hand = _lists_at_hand(header, folder)
    lists = {part.name: _read_list(folder, part) for part in header.parts if part.name in at_hand}
    check_lists(header, lists, where=str(folder))
    return Manifest(header, lists, read_built_from(folder))


def read_stated(folder: Path) -> StoredHeader:
    """Return the content of a manifest's header with its stated digest, without checking it.

    Raises
    ------
    MissingFileError
        The folder holds no manifest.
    ManifestError
        The header is not JSON, or has other fields or types than the schema.
    """
    path = folder / HEADER_FILE
    data = read_bytes(path, kind="manifest", most=MAX_HEADER_BYTES, error=ManifestError)
    return _stored(data, str(path))


def _stored(data: bytes, where: str) -> StoredHeader:
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError("The manifest is not readable JSON", where=where, found=str(error)[:300]) from None
    version = fields.get("schema_version", b"none")
    if bytes(version) != b"%d" % SCHEMA_VERSION:
        message, hint = "Unsupported schema version of the manifest", "install a newer curation"
        raise ManifestError(
            message, where=where, expected=str(SCHEMA_VERSION), found=bytes(version)[:20].decode(), hint=hint
        )
    try:
        return msgspec.json.decode(data, type=StoredHeader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message, expected = ("Malformed manifest", "the fields of curation.manifest.header.Header")
        raise ManifestError(message, where=where, expected=expected, found=str(error)[:300]) from None


def _read_header(path: Path) -> Header:
    """Return the header in a file; its bytes must be exactly those that curation writes."""
    data = read_bytes(path, kind="manifest", most=MAX_HEADER_BYTES, error=ManifestError)
    where = str(path)
    stored = _stored(data, where)
    header = Header(**{name: getattr(stored, name) for name in Header.__struct_fields__})
    manifest = Manifest(header, {})
    if stored.digest != manifest.digest:
        raise DigestMismatchError(
            "The header of the manifest does not match its digest",
            where=where,
            expected=stored.digest[:100],
            found=manifest.digest,
            hint="fetch the file again; a changed header needs a new version",
        )
    # A manifest has one byte string: a repeated key, a missing default or an additional space is refused.
    message = "The manifest is not in canonical form"
    _require_bytes(data, sha256_of_bytes(header_bytes(manifest)), where, message)
    return header


def _require_bytes(data: bytes, digest: str | None, where: str, message: str) -> None:
    if (computed := sha256_of_bytes(data)) != digest:
        ends = " (it has CRLF line ends)" if b"\r\n" in data else ""
        hint = "fetch the file again; a changed one needs a new version"
        raise DigestMismatchError(message, where=where, expected=digest, found=computed + ends, hint=hint)


def _lists_at_hand(header: Header, folder: Path) -> set[str]:
    """Return the parts whose id files are in the folder; a file of no part is an error."""
    expected = {f"{part.name}.txt" for part in header.parts if part.sha256 is not None}
    lists = folder / LIST_FOLDER
    present = {entry.name for entry in lists.iterdir()} if lists.is_dir() else set()
    if extra := sorted(present - expected):
        message = "The id folder holds a file that the manifest does not name"
        list_names = ", ".join(sorted(expected)) or "no file"
        raise ManifestError(message, where=str(lists), expected=list_names, found=repr(extra[0][:100]))
    return {name.removesuffix(".txt") for name in present}


def _read_list(folder: Path, part: PartEntry) -> tuple[str, ...]:
    path = inside(folder, f"{LIST_FOLDER}/{part.name}.txt")
    data = read_bytes(path, kind="id list", most=MAX_LIST_BYTES, error=ManifestError)
    message = "An id list does not match its digest in the manifest"
    _require_bytes(data, part.sha256, str(path), message)
    text = utf8_text(data, str(path), ManifestError, "An id list is not UTF-8", encoding="utf-8")
    if text and not text.endswith("\n"):
        raise ManifestError("An id list has no final line feed", where=str(path), found=repr(text[-40:]))
    if "\r" in text:
        raise ManifestError("An id list has carriage returns", where=str(path), expected="line feeds alone")
    return tuple(text.split("\n")[:-1])


def packaged_manifests() -> Path:
    """Return the folder of the packaged manifests: in the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "manifests"
    return installed if installed.is_dir() else package.parent / "manifests"


def manifest_roots(more: Iterable[Path] = ()) -> list[Path]:
    """Return the folders that are searched for a manifest by name, in this order.

    They are ``./manifests``, the folders in ``$CURATION_MANIFESTS``, `more`, and the packaged manifests.
    """
    from_variable = [Path(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    return [Path("manifests"), *from_variable, *more, packaged_manifests()]


def is_approximate(header: Header) -> bool:
    """Return whether a list was selected by presence labels instead of annotations."""
    evidence = ("wilderness_evidence", "train_evidence")
    return any(header.rule.parameters.get(name) == "presence" for name in evidence)
