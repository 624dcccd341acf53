"""A manifest on a FiftyOne dataset: a tag and a saved view a part, and back from tags to id lists.

What is ours is written down in ``dataset.info["curation"]`` before it is made: a write that was cut off is finished by
the next one, and whatever is not listed there is the user's own and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from curation.errors import ManifestError, UsageError
from curation.ids import NATIVE_FORMS, native_of
from curation.sources.fiftyone_view import (
    named_images,
    refuse_foreign_views,
    require_dataset,
    sample_ids,
    samples_of,
    told_name,
)

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest

INFO_KEY = "curation"
"""Key of ``dataset.info``: name, version and digest of the manifest, and the tags and views that are ours."""
Missing = Literal["error", "skip"]


class _Part(msgspec.Struct):
    part: str
    tag: str


class _Record(msgspec.Struct):
    name: str
    version: str
    digest: str
    id_field: str
    namespaces: list[str]
    parts: Annotated[list[_Part], msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class TaggedLists:
    """The id lists that the tags of a dataset make.

    Attributes
    ----------
    name, version, digest : str
        Of the manifest that was put onto the dataset.
    lists : mapping of str to tuple of str
        Ids of the samples with the tag of each part, sorted.
    """

    name: str
    version: str
    digest: str
    lists: Mapping[str, tuple[str, ...]]

    def differences(self, manifest: Manifest) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return the ids that a tag lacks and those that it has beyond the list, of each part where there are such.

        Raises
        ------
        ManifestError
            The tags are of another manifest.
        """
        if self.digest != manifest.digest:
            raise ManifestError(
                "The tags of the dataset are of another manifest",
                where=manifest.title,
                expected=manifest.digest,
                found=f"{self.name} {self.version}, {self.digest}"[:200],
            )
        found = {}
        for part, tagged in self.lists.items():
            ours, theirs = set(manifest.ids(part)), set(tagged)
            if ours != theirs:
                found[part] = tuple(sorted(ours - theirs)), tuple(sorted(theirs - ours))
        return found


def write_tags(
    manifest: Manifest,
    dataset: Any,
    parts: Sequence[str] | None = None,
    *,
    id_field: str = "",
    prefix: str = "",
    missing: Missing = "error",
    replace: bool = False,
) -> dict[str, int]:
    """Tag the samples of each part, save a view of each, and say in ``dataset.info["curation"]`` which manifest it is.

    See `curation.manifest.manifest.Manifest.to_fiftyone`.
    """
    require_dataset(dataset)
    chosen = [part.name for part in manifest.header.parts if part.name in manifest.lists] if parts is None else parts
    lists = {part: manifest.ids(part) for part in chosen}
    before = _ours(dataset)
    if before and before["digest"] != manifest.digest and not replace:
        raise UsageError(
            "The dataset has the tags of another manifest",
            where=told_name(dataset),
            expected=f"{manifest.title}, {manifest.digest[:19]}",
            found=f"{before['name']} {before['version']}, {str(before['digest'])[:19]}"[:200],
            hint="replace=True removes its tags and saved views, and writes these",
        )
    names = {part: f"{prefix}{part}" for part in lists}
    old = {one["tag"] for one in before.get("parts", [])}
    if foreign := sorted({*dataset.distinct("tags")} & {*names.values()} - old):
        what, where = "The dataset has a tag of this name that is not ours", f"{told_name(dataset)}: {foreign[0]}"[:200]
        raise UsageError(what, where=where, hint="prefix='NAME ' puts something before the names of the parts")
    refuse_foreign_views(dataset, [*names.values()], old)
    wanted = [*dict.fromkeys(one for ids in lists.values() for one in ids)]
    there = samples_of(dataset, wanted, id_field)
    absent = [one for one in wanted if one not in there]
    if absent and missing == "error":
        what, hint = "The dataset lacks images of the manifest", "missing='skip' tags the others; id_field=FIELD"
        expected, found = f"all {len(wanted)} images", f"without {named_images(absent)}"
        raise UsageError(what, where=told_name(dataset), expected=expected, found=found, hint=hint)
    record = {
        "name": manifest.header.name,
        "version": manifest.header.version,
        "digest": manifest.digest,
        "id_field": id_field,
        "namespaces": sorted({one.partition(":")[0] for one in wanted}),
        "parts": [{"part": part, "tag": tag} for part, tag in names.items()],
    }
    # What is to go stands there until it is gone.
    kept = [one for one in before.get("parts", []) if one["tag"] not in names.values()]
    _say(dataset, {**record, "parts": [*record["parts"], *kept]})
    for one in kept:
        _tag(dataset, one["tag"], ())
        if one["tag"] in dataset.list_saved_views():
            dataset.delete_saved_view(one["tag"])
    counts = {}
    for part, tag in names.items():
        samples = [there[one] for one in lists[part] if one in there]
        _tag(dataset, tag, samples)
        is_listed = manifest.part(part).order == "listed"
        view = dataset.select(samples, ordered=True) if is_listed else dataset.match_tags(tag)
        dataset.save_view(tag, view, description=manifest.digest, overwrite=True)
        counts[part] = len(samples)
    _say(dataset, record)
    return counts


def read_tags(dataset: Any, *, id_field: str = "") -> TaggedLists:
    """Return the id lists that the tags of a dataset make now, whoever changed them.

    Parameters
    ----------
    dataset : fiftyone.Dataset
        One that a manifest was put onto.
    id_field : str
        Field that names the images; by default the one by which the tags were written.

    Raises
    ------
    UsageError
        No manifest was put onto the dataset, or a tagged sample may be of several namespaces.
    """
    require_dataset(dataset)
    record = _ours(dataset)
    if not record:
        raise UsageError(
            "No manifest was put onto the dataset",
            where=told_name(dataset),
            expected=f"info[{INFO_KEY!r}]",
            hint="manifest.to_fiftyone(dataset)",
        )
    lists = {}
    for one in record["parts"]:
        tagged = dataset.match_tags(one["tag"])
        values = sample_ids(tagged, id_field or record["id_field"])
        lists[one["part"]] = tuple(sorted(_full_id(value, record["namespaces"], dataset) for value in values))
    return TaggedLists(record["name"], record["version"], record["digest"], lists)


def _full_id(value: Any, spaces: Sequence[str], dataset: Any) -> str:
    text = str(value)
    if ":" in text:
        return text
    natives = {space: native_of(text, space) for space in spaces}
    fitting = [space for space in spaces if re.fullmatch(NATIVE_FORMS.get(space, ".+"), natives[space])]
    # As it stands it may be of one alone: 000012 is VOC's, and COCO's only as a number.
    exact = [space for space in fitting if natives[space] == text]
    fitting = exact if len(exact) == 1 else fitting
    if len(fitting) != 1:
        raise UsageError(
            "A tagged sample may be an image of several datasets, or of none",
            where=f"{told_name(dataset)}: {text}"[:200],
            expected=f"one of {', '.join(spaces)}",
            hint="id_field=FIELD with ids such as coco:000000000139",
        )
    return f"{fitting[0]}:{natives[fitting[0]]}"


def _tag(dataset: Any, tag: str, samples: Iterable[str]) -> None:
    """Let exactly these samples have a tag."""
    wanted, there = set(samples), set(dataset.match_tags(tag).values("id"))
    if gone := there - wanted:
        dataset.select(sorted(gone)).untag_samples(tag)
    if new := wanted - there:
        dataset.select(sorted(new)).tag_samples(tag)


def _ours(dataset: Any) -> dict[str, Any]:
    """Return what the dataset says of the manifest on it, empty where there is none."""
    found = dataset.info.get(INFO_KEY)
    if found is None:
        return {}
    try:
        ours: dict[str, Any] = msgspec.to_builtins(msgspec.convert(dict(found), _Record))
        return ours
    except (msgspec.ValidationError, TypeError, ValueError):
        what, where = (
            "The dataset has information of this name that is not ours",
            f"{told_name(dataset)}: info[{INFO_KEY!r}]",
        )
        raise UsageError(what, where=where, hint="keep it under another name") from None


def _say(dataset: Any, record: Mapping[str, Any]) -> None:
    dataset.info[INFO_KEY] = dict(record)
    dataset.save()
