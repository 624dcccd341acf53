"""``curation propose``: which images of an OOD source may hold an ID class, and how far the rest is from it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from curation.cli.output import emit, stage, steps, tell_wordnet
from curation.cli.outputs import OutputFile
from curation.cli.source_options import pairs
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph
    from curation.proposals.category_relations import ClassTree
    from curation.proposals.id_classes import IdClass
    from curation.proposals.proposal import Input
    from curation.proposals.propose import Lenses, OodPool
    from curation.proposals.set_distance import SetStatistics
    from curation.similarity.embeddings import Embeddings
    from curation.sources.source import Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation propose``."""
    classes = parser.add_mutually_exclusive_group(required=True)
    classes.add_argument(
        "--id-classes", type=Path, metavar="FILE", help="the ID classes: JSON, TOML, or one a line"
    )
    classes.add_argument("--manifest", metavar="M", help="the ID classes are the known ones of a manifest")
    _add_pool_options(parser)
    _add_lens_options(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a threshold: near_wup (0.82), text_margin (0.01), look_sigma (0), detector_score (0.5), agreeing (2), "
        "standard_errors (2), farther_below (none)",
    )
    parser.add_argument(
        "--wordnet",
        metavar="WHICH",
        help="in place of WordNet 3.0's nouns, which are built in: nltk[:CORPUS[:LANGUAGE]], a WordNet of NLTK's data, "
        "or a folder of WordNet 3.0; recorded among the inputs",
    )
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="other proposals, whose far sets these are held against (repeatable)",
    )
    parser.add_argument("--out", type=OutputFile(), metavar="FILE", help="write the proposals as JSON lines")
    parser.add_argument("--json", action="store_true", help="print header and counts as JSON")


def _add_pool_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ood",
        action="append",
        required=True,
        metavar="NAME[@PART]=PATH",
        help="an OOD source: root, annotation file, or table; NAME begins with its data set: coco, coco-val2017 "
        "(repeatable)",
    )
    parser.add_argument(
        "--bad-boxes",
        choices=("error", "drop"),
        default="error",
        help="what to do with boxes that are not finite, negative or beyond any image (dropped ones are counted)",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="parse annotation files again, and store nothing"
    )
    parser.add_argument(
        "--near-classes",
        action="append",
        default=[],
        metavar="NAME=A,B",
        help="categories that are near, by your word",
    )
    parser.add_argument(
        "--far-classes",
        action="append",
        default=[],
        metavar="NAME=A,B",
        help="categories that are far, by your word",
    )
    parser.add_argument(
        "--synset-map",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="synsets of an OOD source's categories, or of the ID classes (NAME id): CSV or TSV of name, n02084071; "
        "they go before the built-in maps of COCO, VOC and Open Images (repeatable)",
    )
    parser.add_argument(
        "--tree",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="class tree of a source as Open Images has it (bbox_labels_600_hierarchy.json), for kinds and parts; "
        "class-descriptions-boxable.csv is looked for beside it (repeatable)",
    )


def _add_lens_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embeddings-id", type=Path, metavar="STORE", help="embedded ID images (curation embed)"
    )
    parser.add_argument(
        "--embeddings-ood",
        action="append",
        default=[],
        metavar="[NAME=]STORE",
        help="embedded images of an OOD source (repeatable)",
    )
    parser.add_argument(
        "--texts", type=Path, metavar="STORE", help="embedded prompts of ID and other classes"
    )
    parser.add_argument(
        "--detections",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="COCO results of a detector of the ID classes on an OOD source (repeatable)",
    )
    parser.add_argument(
        "--detector-categories",
        type=Path,
        metavar="JSON",
        help="the detector's category numbers: an annotation file with categories (default: the numbers of the "
        "manifest's classes)",
    )


def run(options: argparse.Namespace) -> int:
    """Print what is proposed, and write it with ``--out``; always 0, since nothing here is true or false."""
    from curation.cli.propose_tables import proposal_data, proposal_lines
    from curation.hierarchy import open_wordnet
    from curation.proposals.files import write_proposals
    from curation.proposals.propose import propose
    from curation.proposals.thresholds import thresholds_from

    wordnet = open_wordnet(options.wordnet) if options.wordnet else None
    if wordnet is not None:
        tell_wordnet(wordnet)
    thresholds = thresholds_from(pairs(options.set, "--set"))
    classes, numbers, inputs = _classes(options)
    maps = _synset_maps(options, inputs)
    with stage("reading embeddings of the ID classes"):
        lenses = _lenses(options, inputs)
    made = propose(
        classes,
        _pools(options, classes, numbers, maps, inputs),
        lenses=lenses,
        thresholds=thresholds,
        id_synsets=maps.get("id", {}),
        compare=_compared(options, inputs),
        inputs=inputs,
        wordnet=wordnet,
    )
    if options.out:
        write_proposals(options.out, made)
    emit(proposal_data(made), proposal_lines(made, options.out), as_json=options.json)
    return 0


def _classes(options: argparse.Namespace) -> tuple[tuple[IdClass, ...], dict[int, str], list[Input]]:
    """Return the ID classes, the numbers a detector calls them by where that is known, and the inputs so far."""
    from curation.proposals.id_classes import classes_of, read_id_classes
    from curation.proposals.proposal import Input

    if options.id_classes:
        return read_id_classes(options.id_classes), {}, [_input("id_classes", options.id_classes)]
    from curation.manifest.locate import load_manifest

    manifest = load_manifest(options.manifest)
    header = manifest.header
    numbers = {one.index: one.name for one in header.classes if one.role == "known"}
    entry = Input(use="manifest", name=f"{header.name}@{header.version}", sha256=manifest.digest)
    return classes_of(header), numbers, [entry]


def _pools(
    options: argparse.Namespace,
    classes: tuple[IdClass, ...],
    numbers: dict[int, str],
    maps: Mapping[str, dict[str, str]],
    inputs: list[Input],
) -> list[OodPool]:
    from curation.proposals.category_judgement import Lists
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
                embeddings=_embeddings(Path(stores[name]), f"embeddings {name}", inputs)
                if name in stores
                else None,
                detections=Path(detections[name]) if name in detections else None,
                detector_classes=numbers,
            )
        )
    return pools


def _sources(options: argparse.Namespace) -> dict[str, Source]:
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
            raise UsageError(
                f"--ood may not name {name!r}" + (" twice" if name in found else ""), where=f"--ood {key}"
            )
        found[name] = open_source(
            Path(text), dataset=dataset, part=part, cache=not options.no_cache, bad_boxes=options.bad_boxes
        )
    return found


def _of_pools(
    texts: list[str], option: str, sources: Mapping[str, object], *, one_may_be_bare: bool = False
) -> dict[str, str]:
    if one_may_be_bare and len(texts) == len(sources) == 1 and texts[0].partition("=")[0] not in sources:
        return {next(iter(sources)): texts[0]}
    given = pairs(texts, option)
    for name in given:
        if name not in sources:
            raise UsageError(
                "There is no such OOD source", where=f"{option} {name[:80]}", expected=", ".join(sources)
            )
    return given


def _numbers(
    options: argparse.Namespace, classes: tuple[IdClass, ...], numbers: dict[int, str], inputs: list[Input]
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


def _synset_maps(options: argparse.Namespace, inputs: list[Input]) -> dict[str, dict[str, str]]:
    from curation.proposals.synsets import read_synset_map

    known = {"id", *(text.partition("=")[0].partition("@")[0] for text in options.ood)}
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
    from curation.proposals.category_relations import ClassTree

    beside = path.with_name("class-descriptions-boxable.csv")
    names = beside if beside.is_file() else None
    inputs += [_input(f"tree {name}", one) for one in (path, names) if one is not None]

    def read(*, parts: bool) -> Graph:
        return read_open_images(path, names, parts=parts)

    return ClassTree(read(parts=False), read(parts=True))


def _lenses(options: argparse.Namespace, inputs: list[Input]) -> Lenses:
    from curation.proposals.clip_overlap import prompts_of
    from curation.proposals.propose import Lenses
    from curation.proposals.reference import reference_of

    lenses = [name for name in ("embeddings_id", "texts") if getattr(options, name)]
    if bool(lenses) != bool(options.embeddings_ood):
        raise UsageError(
            "There is nothing to compare: the OOD images are not embedded"
            if lenses
            else "There is nothing to compare the embedded OOD images with",
            where=f"--{lenses[0].replace('_', '-')}" if lenses else "--embeddings-ood",
            hint="--embeddings-ood STORE, made by curation embed"
            if lenses
            else "--embeddings-id STORE or --texts STORE",
        )
    references = None
    if options.embeddings_id:
        references = reference_of(_embeddings(options.embeddings_id, "embeddings id", inputs))
    prompts = prompts_of(_embeddings(options.texts, "texts", inputs)) if options.texts else None
    return Lenses(references, prompts)


def _embeddings(path: Path, use: str, inputs: list[Input]) -> Embeddings:
    from curation.proposals.clip_overlap import digest_of
    from curation.proposals.proposal import Input
    from curation.similarity.store import open_embeddings

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


def _compared(options: argparse.Namespace, inputs: list[Input]) -> list[SetStatistics]:
    from curation.proposals.files import read_proposals
    from curation.proposals.set_distance import statistics_of

    found = []
    for path in options.compare:
        inputs.append(_input("compare", path))
        found += [statistics_of(one, str(path)) for one in read_proposals(path).sets if one.group == "far"]
    return found
