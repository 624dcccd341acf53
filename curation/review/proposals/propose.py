"""`propose`: ranked proposals for the images of OOD sources, from all signals, with every number recorded."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from curation.core.arguments import checked
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ProposalError, UsageError
from curation.core.files import read_bytes
from curation.core.process import stage, steps
from curation.manifest.locate import load_manifest
from curation.review.proposals.categories import (
    Lists,
    category_relations,
    category_table,
    judge_categories,
    label_evidence,
    nearest_classes,
)
from curation.review.proposals.evidence import detector_evidence, digest_of, look_cut, look_evidence, read_categories
from curation.review.proposals.id_classes import IdClass, classes_of, read_id_classes, synsets_of
from curation.review.proposals.proposal import (
    OVERLAPS,
    STRENGTH,
    SUSPICIONS,
    CategoryJudgement,
    Evidence,
    Input,
    Proposal,
    ProposalSet,
    Thresholds,
    Verdict,
    decimal_text,
    thresholds_from,
)
from curation.signals.similarity.embeddings import Embeddings, open_embeddings
from curation.signals.similarity.neighbors import reference_statistics, set_similarity
from curation.sources.datasets import family
from curation.sources.opening import as_source, parts_at
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes


@dataclass(frozen=True, slots=True)
class Suspect:
    """One image with its evidence."""

    pool: str
    image_id: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class _Suspicion:
    """The conclusion from the evidence on one image.

    Attributes
    ----------
    verdict : str
    reason : str
    urgency : int
        Position in the order of review: overlap by label, suspicions that agree, other suspicions, nothing known, near,
        far.
    """

    verdict: Verdict
    reason: str
    urgency: int


def finding(evidence: Sequence[Evidence], *, agreeing: int) -> _Suspicion:
    """Return the conclusion from the evidence on one image.

    1. An annotation that is an ID class by name, alias, synset or kind: *remove*.
    2. `agreeing` kinds of suspicion or more that may mean one ID class: *remove*. A piece that names none supports any.
    3. Fewer: *undecided*, whatever the categories say.
    4. Else a near category: *near*. Else an unjudged category, or no annotation: *undecided*. Else *far*.
    """
    strongest = ordered(evidence)
    if overlap := [piece for piece in strongest if piece.kind in OVERLAPS]:
        return _Suspicion("remove", f"remove: {overlap[0].id_class}", 0)
    if suspicions := [piece for piece in strongest if piece.kind in SUSPICIONS]:
        # The ID class that most kinds may mean; among equals that of the strongest evidence.
        names = list(dict.fromkeys(piece.id_class for piece in suspicions if piece.id_class)) or [""]
        support = {name: len({piece.kind for piece in suspicions if piece.id_class in ("", name)}) for name in names}
        name = max(names, key=lambda name: support[name])
        if support[name] >= agreeing:
            return _Suspicion("remove", f"remove: suspected {name or 'ID class'}", 1)
        return _Suspicion("undecided", f"suspected: {name or 'looks like ID'}", 2)
    if near := [piece for piece in strongest if piece.kind in ("near_listed", "near_kinship")]:
        return _Suspicion("near", f"near: {near[0].id_class or 'listed'}", 4)
    if not strongest or any(piece.kind == "unjudged" for piece in strongest):
        return _Suspicion("undecided", "undecided: nothing says how near", 3)
    return _Suspicion("far", "far", 5)


def combine(suspects: Sequence[Suspect], *, agreeing: int) -> tuple[Proposal, ...]:
    """Return a proposal for each image, ranked by urgency, number of kinds of evidence, strongest kind, score, and id.

    Parameters
    ----------
    suspects : sequence of Suspect
        Each image once.
    agreeing : int
        Kinds of suspicion that propose removal.

    Raises
    ------
    ProposalError
        An image is in two sources.
    """
    pool_of: dict[str, str] = {}
    rows = []
    for suspect in suspects:
        if suspect.image_id in pool_of:
            raise ProposalError(
                "An image is in two OOD sources",
                where=suspect.image_id,
                expected="sources that share no image, or one run for each",
                found=f"{pool_of[suspect.image_id]} and {suspect.pool}",
            )
        pool_of[suspect.image_id] = suspect.pool
        evidence = ordered(suspect.evidence)
        conclusion = finding(evidence, agreeing=agreeing)
        against = [piece for piece in evidence if piece.kind in OVERLAPS or piece.kind in SUSPICIONS]
        first = next(iter(against or evidence), None)
        strength, score = (STRENGTH[first.kind], _number(first.score)) if first else (len(STRENGTH), Decimal(0))
        kinds = len({piece.kind for piece in against})
        rows.append(((conclusion.urgency, -kinds, strength, -score, suspect.image_id), suspect, evidence, conclusion))
    return tuple(
        Proposal(
            image_id=suspect.image_id,
            proposal=conclusion.verdict,
            reason=conclusion.reason,
            evidence=evidence,
            rank=rank,
            pool=suspect.pool,
        )
        for rank, (_, suspect, evidence, conclusion) in enumerate(sorted(rows, key=lambda row: row[0]), 1)
    )


def ordered(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence sorted by kind, the strongest first, then by descending score and by detail."""
    return tuple(sorted(evidence, key=lambda piece: (STRENGTH[piece.kind], -_number(piece.score), piece.detail)))


def _number(score: str) -> Decimal:
    return Decimal(score) if score else Decimal(0)


@dataclass(frozen=True)
class CandidatePool:
    """One OOD source with further information on its images.

    Attributes
    ----------
    name : str
        Its name in decisions.
    source : Source
    lists : Lists
        Categories that the user declares near or far.
    embeddings : Embeddings or None
    detections : Path or None
        COCO results of a detector of the ID classes.
    detector_classes : mapping of int to str
        ID class of each of the detector's category numbers.
    """

    name: str
    source: Source
    lists: Lists = field(default_factory=Lists)
    embeddings: Embeddings | None = None
    detections: Path | None = None
    detector_classes: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Seen:
    """The categories, suspects, omissions and inputs of a pool."""

    categories: tuple[CategoryJudgement, ...]
    suspects: list[Suspect]
    left_out: dict[str, int]
    inputs: tuple[Input, ...]


def propose(
    classes: Sequence[IdClass],
    pools: Sequence[CandidatePool],
    *,
    references: Embeddings | None = None,
    thresholds: Thresholds | None = None,
    inputs: Iterable[Input] = (),
) -> ProposalSet:
    """Return ranked proposals for every image of the pools: proposals, not decisions (spec 3.3).

    Parameters
    ----------
    classes : sequence of IdClass
    pools : sequence of OodPool
        Pools with different names and without common images.
    references : Embeddings, optional
        Embeddings of ID images.
    thresholds : Thresholds, optional
    inputs : iterable of Input
        Files that the caller read.

    Raises
    ------
    ProposalError
        Two pools share a name or an image; a list or file does not fit.
    SimilarityError
        Embeddings come from different encoders.
    """
    from tqdm import tqdm

    chosen = thresholds or Thresholds()
    names = [pool.name for pool in pools]
    if not names or len(set(names)) < len(names):
        listed_names = ", ".join(names) or "none"
        raise ProposalError("Every OOD source needs a unique name", expected="one or more names", found=listed_names)
    known = synsets_of([entry.name for entry in classes])
    cut = None
    reference: dict[str, str] = {}
    if references:
        statistics = reference_statistics(references)
        reference = {"images": str(statistics.n), "encoder": references.encoder.digest}
        if statistics.median is not None and statistics.sigma is not None:
            reference |= {"median": decimal_text(statistics.median), "sigma": decimal_text(statistics.sigma)}
            cut = look_cut(statistics.median, statistics.sigma, chosen.look_sigma)
    seen = [
        _look_into(pool, classes, known, references, cut, chosen)
        for pool in tqdm(pools, desc="looking into OOD sources", disable=None, leave=False)
    ]
    left_out = {"ID classes without a synset": len(classes) - len(known)}
    left_out |= {key: n for pool in seen for key, n in pool.left_out.items()}
    return ProposalSet(
        id_classes=tuple(entry.name for entry in classes),
        thresholds=chosen.as_texts(),
        inputs=(*inputs, *(entry for pool in seen for entry in pool.inputs)),
        proposals=combine([suspect for pool in seen for suspect in pool.suspects], agreeing=chosen.agreeing),
        categories=tuple(row for pool in seen for row in pool.categories),
        reference=reference,
        left_out={key: n for key, n in left_out.items() if n},
    )


def _look_into(
    pool: CandidatePool,
    classes: Sequence[IdClass],
    id_synsets: Mapping[str, str],
    references: Embeddings | None,
    cut: Decimal | None,
    thresholds: Thresholds,
) -> _Seen:
    source, names = pool.source, pool.source.categories.names
    synsets = synsets_of(names, dataset=family(source.dataset))
    relations = category_relations(names, classes, synsets=synsets, id_synsets=id_synsets)
    near = nearest_classes(synsets, id_synsets)
    judged = judge_categories(names, relations, near, near_wup=thresholds.near_wup, lists=pool.lists)
    labels = label_evidence(source, judged, near_wup=thresholds.near_wup)
    evidence = dict(zip(source.image_ids.tolist(), labels, strict=True))
    embeddings, left_out = _embeddings_of(pool, evidence)
    inputs: list[Input] = []
    if embeddings and references and cut is not None:
        for image, piece in look_evidence(set_similarity(embeddings, references), cut).items():
            evidence[image] = (*evidence[image], piece)
    if pool.detections is not None:
        detector = detector_evidence(
            pool.detections, source, pool.detector_classes, threshold=thresholds.detector_score, pool=pool.name
        )
        for image, pieces in detector.by_image.items():
            evidence[image] = (*evidence[image], *pieces)
        left_out |= {f"{pool.name}: {reason}": n for reason, n in detector.left_out.items()}
        inputs.append(detector.file)
    suspects = [Suspect(pool.name, image, pieces) for image, pieces in evidence.items()]
    return _Seen(category_table(pool.name, judged, source, synsets), suspects, left_out, tuple(inputs))


def _embeddings_of(pool: CandidatePool, images: Collection[str]) -> tuple[Embeddings | None, dict[str, int]]:
    """Return the embeddings of the pool's images, and the numbers of images and embeddings without a counterpart."""
    if (embeddings := pool.embeddings) is None:
        return None, {}
    rows = [row for row, id_ in enumerate(embeddings.ids) if id_ in images]
    if not rows:
        raise ProposalError(
            "The embeddings hold none of the source's images",
            where=f"embeddings of {pool.name}",
            expected=f"ids such as {next(iter(images), '')}",
            found=", ".join(embeddings.ids[:3])[:200] or "nothing",
        )
    left_out = {
        f"{pool.name}: images without an embedding": len(images) - len(rows),
        f"{pool.name}: embeddings of other images": len(embeddings.ids) - len(rows),
    }
    return embeddings if len(rows) == len(embeddings) else embeddings.take(rows), left_out


NOTHING: Mapping[str, Any] = {}


@checked
def propose_from_files(
    *,
    id_classes: Path | None = None,
    manifest: Annotated[str | None, "M"] = None,
    ood: Annotated[Mapping[str, Path], "NAME[@PART]=PATH"],
    near_classes: Annotated[Mapping[str, str | Sequence[str]], "NAME=A,B"] = NOTHING,
    far_classes: Annotated[Mapping[str, str | Sequence[str]], "NAME=A,B"] = NOTHING,
    embeddings_id: Annotated[Path | None, "STORE"] = None,
    embeddings_ood: Annotated[Mapping[str, Path] | Path, "[NAME=]STORE"] = NOTHING,
    detections: Annotated[Mapping[str, Path] | Path, "[NAME=]FILE"] = NOTHING,
    detector_categories: Annotated[Path | None, "JSON"] = None,
    thresholds: Annotated[Mapping[str, str], "--set KEY=VALUE"] = NOTHING,
    bad_boxes: BadBoxes = "error",
) -> ProposalSet:
    """Rank the images of an OOD source that may hold an ID class; near and far, as proposals.

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
    embeddings_id
        embedded ID images (curation similarity embed)
    embeddings_ood
        embedded images of an OOD source
    detections
        COCO results of a detector of the ID classes on an OOD source
    detector_categories
        the detector's category numbers: an annotation file with categories (default: the numbers of the
        manifest's classes)
    thresholds
        a threshold: near_wup (0.82), look_sigma (0), detector_score (0.5), agreeing (2)
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count

    Raises
    ------
    UsageError
        A named input does not exist, or a signal lacks its second input.
    """
    limits = thresholds_from(thresholds)
    classes, numbers, inputs = _classes(id_classes, manifest)
    if bool(embeddings_ood) != bool(embeddings_id):
        message = "There is nothing to compare: ID and OOD images must both be embedded"
        raise UsageError(message, where="--embeddings", hint="--embeddings id=STORE --embeddings STORE")
    with stage("reading embeddings of the ID classes"):
        known_images = _embeddings(embeddings_id, "embeddings id", inputs) if embeddings_id else None
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
            CandidatePool(
                name=name,
                source=source,
                lists=Lists(_split(near.get(name, "")), _split(far.get(name, ""))),
                embeddings=_embeddings(stores[name], f"embeddings {name}", inputs) if name in stores else None,
                detections=detection_files.get(name),
                detector_classes=numbers,
            )
        )
    return propose(classes, pools, references=known_images, thresholds=limits, inputs=inputs)


def _classes(id_classes: Path | None, manifest: str | None) -> tuple[tuple[IdClass, ...], dict[int, str], list[Input]]:
    """Return the ID classes, their known numbers in a detector, and the inputs so far."""
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
                    hint=f"--source {name}@{offered[0]}={shlex.quote(str(path))} in place of --source {key}",
                )
            part = offered[0] if offered else ""
        if name in opened or name == "id":
            raise UsageError(
                f"--source may not name {name!r}" + (" twice" if name in opened else ""), where=f"--source {key}"
            )
        opened[name] = as_source(path, dataset=dataset, part=part, bad_boxes=bad_boxes)
    return opened


def _of_pools(values: Mapping[str, Any] | Path, option: str, sources: Mapping[str, object]) -> dict[str, Any]:
    """Return the value of an option for each source; a single source needs no name."""
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
