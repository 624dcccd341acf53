"""Proposals from files: ID classes, OOD sources, and whatever signals are given, read and put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from curation.core.arguments import checked
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import UsageError
from curation.core.files import read_bytes
from curation.core.process import stage, steps
from curation.manifest.locate import load_manifest
from curation.review.proposals.categories import Lists
from curation.review.proposals.evidence import digest_of, read_categories
from curation.review.proposals.id_classes import IdClass, classes_of, read_id_classes, read_synset_map
from curation.review.proposals.proposal import Input, ProposalSet, thresholds_from
from curation.review.proposals.propose import OodPool, propose
from curation.signals.similarity.embeddings import Embeddings, open_embeddings
from curation.sources.opening import as_source, parts_at
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes

NOTHING: Mapping[str, Any] = {}


@checked
def propose_from_files(
    *,
    id_classes: Path | None = None,
    manifest: Annotated[str | None, "M"] = None,
    ood: Annotated[Mapping[str, Path], "NAME[@PART]=PATH"],
    near_classes: Annotated[Mapping[str, str | Sequence[str]], "NAME=A,B"] = NOTHING,
    far_classes: Annotated[Mapping[str, str | Sequence[str]], "NAME=A,B"] = NOTHING,
    synset_map: Annotated[Mapping[str, Path], "NAME=FILE"] = NOTHING,
    embeddings_id: Annotated[Path | None, "STORE"] = None,
    embeddings_ood: Annotated[Mapping[str, Path] | Path, "[NAME=]STORE"] = NOTHING,
    texts: Annotated[Path | None, "STORE"] = None,
    detections: Annotated[Mapping[str, Path] | Path, "[NAME=]FILE"] = NOTHING,
    detector_categories: Annotated[Path | None, "JSON"] = None,
    thresholds: Annotated[Mapping[str, str], "--set KEY=VALUE"] = NOTHING,
    bad_boxes: BadBoxes = "error",
) -> ProposalSet:
    """Rank the images of an OOD source that may hold an ID class; near, far and farther, as proposals.

    Parameters
    ----------
    id_classes
        the ID classes: JSON, TOML, or one a line
    manifest
        the ID classes are the known ones of a manifest
    ood
        an OOD source: root, annotation file, or table; NAME begins with its data set: coco,
        coco-val2017
    near_classes
        categories that you declare near
    far_classes
        categories that you declare far
    synset_map
        synsets of an OOD source's categories, or of the ID classes (NAME id): CSV or TSV of name,
        n02084071; they go before the built-in maps of COCO, VOC and Open Images
    embeddings_id
        embedded ID images (curation similarity embed)
    embeddings_ood
        embedded images of an OOD source
    texts
        embedded prompts of ID and other classes
    detections
        COCO results of a detector of the ID classes on an OOD source
    detector_categories
        the detector's category numbers: an annotation file with categories (default: the numbers of the
        manifest's classes)
    thresholds
        a threshold: near_wup (0.82), text_margin (0.01), look_sigma (0), detector_score (0.5), agreeing
        (2), standard_errors (2)
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count

    Raises
    ------
    UsageError
        Something is named that is not there, or a signal lacks its other half.
    """
    limits = thresholds_from(thresholds)
    classes, numbers, inputs = _classes(id_classes, manifest)
    maps = {}
    for name, path in synset_map.items():
        known = {"id", *(key.partition("@")[0] for key in ood)}
        if name not in known:
            raise UsageError(
                "A synset map belongs to the ID classes or to an OOD source",
                where=f"--synset-map {name[:80]}",
                expected=", ".join(sorted(known)),
            )
        maps[name] = read_synset_map(path)
        inputs.append(_input(f"synset_map {name}", path))
    if embeddings_ood and not (embeddings_id or texts):
        message = "There is nothing to compare the embedded OOD images with"
        raise UsageError(message, where="--embeddings", hint="--embeddings id=STORE or --texts STORE")
    if (embeddings_id or texts) and not embeddings_ood:
        where = "--embeddings id=…" if embeddings_id else "--texts"
        hint = "--embeddings STORE, made by curation similarity embed"
        raise UsageError("There is nothing to compare: the OOD images are not embedded", where=where, hint=hint)
    with stage("reading embeddings of the ID classes"):
        known_images = _embeddings(embeddings_id, "embeddings id", inputs) if embeddings_id else None
        prompts = _embeddings(texts, "texts", inputs) if texts else None
    sources = _sources(ood, bad_boxes)
    near = _of_pools(near_classes, "--near", sources)
    far = _of_pools(far_classes, "--far", sources)
    stores = _of_pools(embeddings_ood, "--embeddings", sources)
    detection_files = _of_pools(detections, "--detections", sources)
    if detection_files and detector_categories is not None:
        inputs.append(_input("detector_categories", detector_categories))
        numbers = read_categories(detector_categories, classes)
    if detection_files and not numbers:
        raise UsageError(
            "Unknown category_id of the detections: no table says which class each is",
            where="--detections",
            hint="--detections categories=FILE, an annotation file that the detector was trained with",
        )
    pools = []
    for name, source in sources.items():
        inputs += [Input(use=f"ood {name}", name=file.name, sha256=file.sha256) for file in source.files]
        pools.append(
            OodPool(
                name=name,
                source=source,
                lists=Lists(_split(near.get(name, "")), _split(far.get(name, ""))),
                synsets=maps.get(name, {}),
                embeddings=_embeddings(stores[name], f"embeddings {name}", inputs) if name in stores else None,
                detections=detection_files.get(name),
                detector_classes=numbers,
            )
        )
    return propose(
        classes,
        pools,
        references=known_images,
        prompts=prompts,
        thresholds=limits,
        id_synsets=maps.get("id", {}),
        inputs=inputs,
    )


def _classes(id_classes: Path | None, manifest: str | None) -> tuple[tuple[IdClass, ...], dict[int, str], list[Input]]:
    """Return the ID classes, the numbers a detector calls them by where that is known, and the inputs so far."""
    if (id_classes is None) == (manifest is None):
        raise UsageError("Name the ID classes once", expected="either --classes FILE or --manifest M")
    if id_classes is not None:
        return read_id_classes(id_classes), {}, [_input("id_classes", id_classes)]
    locked = load_manifest(manifest or "")
    header = locked.header
    numbers = {known.index: known.name for known in header.classes if known.role == "known"}
    entry = Input(use="manifest", name=f"{header.name}@{header.version}", sha256=locked.digest)
    return classes_of(header), numbers, [entry]


def _sources(ood: Mapping[str, Path], bad_boxes: BadBoxes) -> dict[str, Source]:
    opened: dict[str, Source] = {}
    for key, path in steps(ood.items(), "reading OOD sources"):
        name, _, part = key.partition("@")
        dataset, _, name_part = name.partition("-")
        part = part or name_part
        if not part and path.is_dir():
            offered = parts_at(path, dataset)
            if len(offered) > 1:
                raise UsageError(
                    "The root offers several parts",
                    where=f"--source {key}={path}",
                    found=", ".join(offered),
                    hint=f"--source {name}@{offered[0]}={path}",
                )
            part = offered[0] if offered else ""
        if name in opened or name == "id":
            raise UsageError(
                f"--source may not name {name!r}" + (" twice" if name in opened else ""), where=f"--source {key}"
            )
        opened[name] = as_source(path, dataset=dataset, part=part, bad_boxes=bad_boxes)
    return opened


def _of_pools(values: Mapping[str, Any] | Path, option: str, sources: Mapping[str, object]) -> dict[str, Any]:
    """Return what is given of each source; with a single source, its name may be left out."""
    if isinstance(values, Path):
        if len(sources) == 1:
            return {next(iter(sources)): values}
        where, expected = f"{option} {values!s:.200}", ", ".join(f"{name}=…" for name in sources)
        raise UsageError(f"{option} needs NAME=VALUE where there are several sources", where=where, expected=expected)
    if unknown := [name for name in values if name not in sources]:
        raise UsageError("No such OOD source", where=f"{option} {unknown[0][:80]}", expected=", ".join(sources))
    return dict(values)


def _embeddings(path: Path, use: str, inputs: list[Input]) -> Embeddings:
    store = open_embeddings(path)
    inputs.append(Input(use=use, name=path.name, sha256=digest_of(store)))
    return store


def _split(names: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in (names.split(",") if isinstance(names, str) else names) if name.strip())


def _input(use: str, path: Path) -> Input:
    return Input(use=use, name=path.name, sha256=sha256_of_bytes(read_bytes(path)))
