"""``curation propose``: which images of an OOD source may hold an ID class, and how far the rest is from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.options import BoxOptions
from curation.cli.output import Answer, Table, printable, stage, steps, table_lines, tell_wordnet
from curation.cli.outputs import OutputFile
from curation.cli.signature import OneOf, pairs
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph
    from curation.proposals.categories import ClassTree
    from curation.proposals.id_classes import IdClass
    from curation.proposals.proposal import Input, ProposalSet
    from curation.proposals.propose import OodPool, Signals
    from curation.proposals.set_distance import SetStatistics
    from curation.similarity.embeddings import Embeddings
    from curation.sources.source import Source

_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Options(BoxOptions):
    """Rank the images of an OOD source that may hold an ID class; near, far and farther, as proposals.

    Attributes
    ----------
    id_classes
        the ID classes: JSON, TOML, or one a line
    manifest
        the ID classes are the known ones of a manifest
    ood
        an OOD source: root, annotation file, or table; NAME begins with its data set: coco,
        coco-val2017 (repeatable)
    near_classes
        categories that are near, by your word
    far_classes
        categories that are far, by your word
    synset_map
        synsets of an OOD source's categories, or of the ID classes (NAME id): CSV or TSV of name,
        n02084071; they go before the built-in maps of COCO, VOC and Open Images (repeatable)
    tree
        class tree of a source as Open Images has it (bbox_labels_600_hierarchy.json), for kinds and
        parts; class-descriptions-boxable.csv is looked for beside it (repeatable)
    embeddings_id
        embedded ID images (curation embed)
    embeddings_ood
        embedded images of an OOD source (repeatable)
    texts
        embedded prompts of ID and other classes
    detections
        COCO results of a detector of the ID classes on an OOD source (repeatable)
    detector_categories
        the detector's category numbers: an annotation file with categories (default: the numbers of the
        manifest's classes)
    set_
        a threshold: near_wup (0.82), text_margin (0.01), look_sigma (0), detector_score (0.5), agreeing
        (2), standard_errors (2), farther_below (none)
    wordnet
        in place of WordNet 3.0's nouns, which are built in: nltk[:CORPUS[:LANGUAGE]], a WordNet of NLTK's data, or a
        folder of WordNet 3.0; recorded among the inputs
    compare
        other proposals, whose far sets these are held against (repeatable)
    out
        write the proposals as JSON lines
    """

    id_classes: Annotated[Path | None, OneOf("classes", required=True)] = None
    manifest: Annotated[str | None, "M", OneOf("classes", required=True)] = None
    ood: tuple[Annotated[str, "NAME[@PART]=PATH"], ...]
    near_classes: tuple[Annotated[str, "NAME=A,B"], ...] = ()
    far_classes: tuple[Annotated[str, "NAME=A,B"], ...] = ()
    synset_map: tuple[Annotated[str, "NAME=FILE"], ...] = ()
    tree: tuple[Annotated[str, "NAME=JSON"], ...] = ()
    embeddings_id: Annotated[Path | None, "STORE"] = None
    embeddings_ood: tuple[Annotated[str, "[NAME=]STORE"], ...] = ()
    texts: Annotated[Path | None, "STORE"] = None
    detections: tuple[Annotated[str, "[NAME=]FILE"], ...] = ()
    detector_categories: Annotated[Path | None, "JSON"] = None
    set_: tuple[Annotated[str, "KEY=VALUE"], ...] = ()
    wordnet: Annotated[str | None, "WHICH"] = None
    compare: tuple[Path, ...] = ()
    out: Annotated[Path | None, OutputFile()] = None


def run(options: Options) -> Answer:
    """Print what is proposed, and write it with ``--out``; always 0, since nothing here is true or false."""
    from curation.hierarchy import open_wordnet
    from curation.proposals.proposal import thresholds_from, write_proposals
    from curation.proposals.propose import propose

    wordnet = open_wordnet(options.wordnet) if options.wordnet else None
    if wordnet is not None:
        tell_wordnet(wordnet)
    thresholds = thresholds_from(pairs(options.set_, "--set"))
    classes, numbers, inputs = _classes(options)
    maps = _synset_maps(options, inputs)
    with stage("reading embeddings of the ID classes"):
        signals = _signals(options, inputs)
    made = propose(
        classes,
        _pools(options, classes, numbers, maps, inputs),
        signals=signals,
        thresholds=thresholds,
        id_synsets=maps.get("id", {}),
        compare=_compared(options, inputs),
        inputs=inputs,
        wordnet=wordnet,
    )
    if options.out:
        write_proposals(options.out, made)
    return Answer(_data(made), _lines(made, options.out))


def _classes(options: Options) -> tuple[tuple[IdClass, ...], dict[int, str], list[Input]]:
    """Return the ID classes, the numbers a detector calls them by where that is known, and the inputs so far."""
    from curation.proposals.id_classes import classes_of, read_id_classes
    from curation.proposals.proposal import Input

    if options.id_classes:
        return read_id_classes(options.id_classes), {}, [_input("id_classes", options.id_classes)]
    from curation.manifest.locate import load_manifest

    manifest = load_manifest(options.manifest or "")
    header = manifest.header
    numbers = {one.index: one.name for one in header.classes if one.role == "known"}
    entry = Input(use="manifest", name=f"{header.name}@{header.version}", sha256=manifest.digest)
    return classes_of(header), numbers, [entry]


def _pools(
    options: Options,
    classes: tuple[IdClass, ...],
    numbers: dict[int, str],
    maps: Mapping[str, dict[str, str]],
    inputs: list[Input],
) -> list[OodPool]:
    from curation.proposals.categories import Lists
    from curation.proposals.proposal import Input
    from curation.proposals.propose import OodPool

    sources = _sources(options)
    near, far = (
        _of_pools(getattr(options, name), f"--{name.replace('_', '-')}", sources)
        for name in ("near_classes", "far_classes")
    )
    stores = _of_pools(options.embeddings_ood, "--embeddings-ood", sources, one_may_be_bare=True)
    detections = _of_pools(options.detections, "--detections", sources, one_may_be_bare=True)
    trees = _of_pools(options.tree, "--tree", sources)
    if detections:
        numbers = _numbers(options, classes, numbers, inputs)
    pools = []
    for name, source in sources.items():
        inputs += [Input(use=f"ood {name}", name=file.name, sha256=file.sha256) for file in source.files]
        pools.append(
            OodPool(
                name=name,
                source=source,
                lists=Lists(_split(near.get(name, "")), _split(far.get(name, ""))),
                synsets=maps.get(name, {}),
                tree=_tree(Path(trees[name]), name, inputs) if name in trees else None,
                embeddings=_embeddings(Path(stores[name]), f"embeddings {name}", inputs) if name in stores else None,
                detections=Path(detections[name]) if name in detections else None,
                detector_classes=numbers,
            )
        )
    return pools


def _sources(options: Options) -> dict[str, Source]:
    from curation.sources.opening import open_source, parts_at

    found: dict[str, Source] = {}
    for key, text in steps(pairs(options.ood, "--ood").items(), "reading OOD sources"):
        name, _, part = key.partition("@")
        dataset, _, named = name.partition("-")
        part = part or named
        if not part and Path(text).is_dir():
            offered = parts_at(Path(text), dataset)
            if len(offered) > 1:
                raise UsageError(
                    "The root offers several parts",
                    where=f"--ood {key}={text}",
                    found=", ".join(offered),
                    hint=f"--ood {name}@{offered[0]}={text}",
                )
            part = offered[0] if offered else ""
        if name in found or name == "id":
            raise UsageError(f"--ood may not name {name!r}" + (" twice" if name in found else ""), where=f"--ood {key}")
        found[name] = open_source(
            Path(text), dataset=dataset, part=part, cache=not options.no_cache, bad_boxes=options.bad_boxes
        )
    return found


def _of_pools(
    texts: Sequence[str], option: str, sources: Mapping[str, object], *, one_may_be_bare: bool = False
) -> dict[str, str]:
    if one_may_be_bare and len(texts) == len(sources) == 1 and texts[0].partition("=")[0] not in sources:
        return {next(iter(sources)): texts[0]}
    given = pairs(texts, option)
    for name in given:
        if name not in sources:
            raise UsageError("There is no such OOD source", where=f"{option} {name[:80]}", expected=", ".join(sources))
    return given


def _numbers(
    options: Options, classes: tuple[IdClass, ...], numbers: dict[int, str], inputs: list[Input]
) -> dict[int, str]:
    from curation.proposals.detector_overlap import read_categories

    if options.detector_categories:
        inputs.append(_input("detector_categories", options.detector_categories))
        return read_categories(options.detector_categories, classes)
    if not numbers:
        raise UsageError(
            "Nothing says which class each category_id of the detections is",
            where="--detections",
            hint="--detector-categories FILE, an annotation file that the detector was trained with",
        )
    return numbers


def _synset_maps(options: Options, inputs: list[Input]) -> dict[str, dict[str, str]]:
    from curation.proposals.id_classes import read_synset_map

    known = {"id", *(key.partition("@")[0] for key in pairs(options.ood, "--ood"))}
    maps = {}
    for name, text in pairs(options.synset_map, "--synset-map").items():
        if name not in known:
            raise UsageError(
                "A synset map is of the ID classes or of an OOD source",
                where=f"--synset-map {name[:80]}",
                expected=", ".join(sorted(known)),
            )
        maps[name] = read_synset_map(Path(text))
        inputs.append(_input(f"synset_map {name}", Path(text)))
    return maps


def _tree(path: Path, name: str, inputs: list[Input]) -> ClassTree:
    from curation.hierarchy.class_trees import read_open_images
    from curation.proposals.categories import ClassTree

    beside = path.with_name("class-descriptions-boxable.csv")
    names = beside if beside.is_file() else None
    inputs += [_input(f"tree {name}", one) for one in (path, names) if one is not None]

    def read(*, parts: bool) -> Graph:
        return read_open_images(path, names, parts=parts)

    return ClassTree(read(parts=False), read(parts=True))


def _signals(options: Options, inputs: list[Input]) -> Signals:
    from curation.proposals.clip_overlap import prompts_of, reference_of
    from curation.proposals.propose import Signals

    signals = [name for name in ("embeddings_id", "texts") if getattr(options, name)]
    if bool(signals) != bool(options.embeddings_ood):
        raise UsageError(
            "There is nothing to compare: the OOD images are not embedded"
            if signals
            else "There is nothing to compare the embedded OOD images with",
            where=f"--{signals[0].replace('_', '-')}" if signals else "--embeddings-ood",
            hint="--embeddings-ood STORE, made by curation embed"
            if signals
            else "--embeddings-id STORE or --texts STORE",
        )
    references = None
    if options.embeddings_id:
        references = reference_of(_embeddings(options.embeddings_id, "embeddings id", inputs))
    prompts = prompts_of(_embeddings(options.texts, "texts", inputs)) if options.texts else None
    return Signals(references, prompts)


def _embeddings(path: Path, use: str, inputs: list[Input]) -> Embeddings:
    from curation.proposals.clip_overlap import digest_of
    from curation.proposals.proposal import Input
    from curation.similarity.embeddings import open_embeddings

    found = open_embeddings(path)
    inputs.append(Input(use=use, name=path.name, sha256=digest_of(found)))
    return found


def _split(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _input(use: str, path: Path) -> Input:
    from curation.canonical import sha256_of_bytes
    from curation.proposals.proposal import Input
    from curation.storage import read_bytes

    return Input(use=use, name=path.name, sha256=sha256_of_bytes(read_bytes(path)))


def _compared(options: Options, inputs: list[Input]) -> list[SetStatistics]:
    from curation.proposals.proposal import read_proposals
    from curation.proposals.set_distance import statistics_of

    found = []
    for path in options.compare:
        inputs.append(_input("compare", path))
        found += [statistics_of(one, str(path)) for one in read_proposals(path).sets if one.group == "far"]
    return found


def _data(made: ProposalSet) -> dict[str, Any]:
    """Return header, counts by verdict and digest as plain data."""
    return {**made.header(), "counts": made.counts(), "digest": made.digest}


def _lines(made: ProposalSet, out: Path | None) -> list[str]:
    """Return the lines that ``curation propose`` prints; the last says that these are proposals."""
    tables = (_categories(made), _sets(made), _images(made))
    lines = [line for table in tables if table.rows for line in table_lines(table)]
    lines += [f"left out: {n} {printable(reason)}" for reason, n in made.left_out.items()]
    lines.append(", ".join(f"{n} {verdict}" for verdict, n in made.counts().items()))
    if out:
        lines.append(f"wrote {printable(str(out))}: {made.digest}")
    return [*lines, f"Each is {made.note}."]


def _categories(made: ProposalSet) -> Table:
    rows = tuple(
        (one.pool, one.category, str(one.images), one.judgement, one.kinship, one.reason)
        for one in made.categories
        if one.images and one.judgement != "far"
    )
    return Table(
        "Categories that are not simply far",
        ("source", "category", "images", "thought", "kinship", "why"),
        rows,
    )


def _sets(made: ProposalSet) -> Table:
    rows = tuple(
        (
            one.name,
            one.proposal,
            str(one.images),
            one.mean_similarity or "-",
            one.standard_error or "-",
            one.mean_kinship or "-",
            one.reason,
        )
        for one in made.sets
    )
    return Table("Sets", ("set", "proposal", "images", "mean s", "std. error", "kinship", "why"), rows)


def _images(made: ProposalSet) -> Table:
    rows = tuple(
        (str(one.rank), one.image_id, one.proposal, "; ".join(piece.detail for piece in one.evidence[:3]))
        for one in made.proposals[:_SHOWN]
    )
    return Table(f"First of {len(made.proposals)} images", ("rank", "image", "proposal", "evidence"), rows)
