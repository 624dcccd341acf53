"""``curation embed``: photos, boxes or texts as vectors, kept in a store."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, emit, table_lines, warn
from curation.cli.outputs import OwnFolder
from curation.cli.source_options import add_source_options, open_sources
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.benchmarks.benchmark import SourceSlot
    from curation.similarity.embed import EmbedResult
    from curation.similarity.encoder import Encoder
    from curation.similarity.items import Photo
    from curation.sources.photos import PhotoFolder

_SHOWN = 5
_OPEN_CLIP_ONLY = ("pretrained", "random_weights", "embedding", "precision")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation embed``."""
    add_source_options(parser)
    parser.add_argument(
        "--photos",
        action="append",
        default=[],
        metavar="[NAME=]DIR",
        help="the photos of a source, or of all (default: the source's own root; repeatable)",
    )
    parser.add_argument(
        "--images", type=Path, metavar="DIR", help="every photo below a folder, without annotations"
    )
    parser.add_argument(
        "--namespace",
        default="photos",
        metavar="NAME",
        help="of the ids of --images: NAME:PATH-BELOW-DIR (photos)",
    )
    parser.add_argument("--texts", type=Path, metavar="FILE", help="texts, one a line; ids are the texts")
    parser.add_argument(
        "--template", default="a photo of a {}", metavar="TEXT", help="prompt of a text ('a photo of a {}')"
    )
    parser.add_argument(
        "--boxes", action="store_true", help="every annotated box is an image of its own: ID#NUMBER"
    )
    _add_encoder_options(parser)
    parser.add_argument(
        "--out", type=OwnFolder(), required=True, metavar="DIR", help="the store; one begun is gone on with"
    )
    parser.add_argument(
        "--broken",
        choices=("skip", "refuse"),
        default="skip",
        help="photos that are missing or broken: left out, counted and listed in DIR/report.json, or the first one "
        "ends the work and no new store stays (skip)",
    )
    parser.add_argument("--batch", type=int, metavar="N", help="images encoded at a time (32)")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="that read, decode and, on a CPU, encode (one a core)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_encoder_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("encoder")
    group.add_argument(
        "--encoder",
        choices=("colour",),
        help="histograms of colours and edges: no weights, no torch, no texts (the default without --model)",
    )
    group.add_argument(
        "--model",
        metavar="NAME",
        help="of open_clip: a name such as ViT-B-32, a configuration file (.json), local-dir:DIR, hf-hub:ORG/NAME",
    )
    group.add_argument(
        "--pretrained", default="", metavar="TAG|FILE", help="weights: a tag of open_clip, or a file"
    )
    group.add_argument(
        "--random-weights", type=int, metavar="SEED", help="no weights: for tests and for measuring speed"
    )
    group.add_argument(
        "--embedding",
        choices=("projected", "pooled"),
        default="projected",
        help="projected: the space of images and texts; pooled: the class token before projection, as in "
        "FindMeIfYouCan (projected)",
    )
    group.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="(auto)")
    group.add_argument(
        "--precision",
        choices=("auto", "float32", "float16", "bfloat16"),
        default="auto",
        help="auto: float32 on a CPU, float16 on a GPU; images and texts to be compared need the same (auto)",
    )


def run(options: argparse.Namespace) -> int:
    """Embed what is named; 0 when done, also where broken photos were left out."""
    from curation.similarity.embed import embed_photos, embed_texts

    _check(options)
    if options.texts:
        texts = _texts(options.texts)
        encoder = _encoder(options)
        result = embed_texts(texts, encoder, options.out, template=options.template, batch=options.batch)
    else:
        # Photos come first: what is missing shows before a model is loaded.
        photos = _photos(options)
        encoder = _encoder(options)
        result = embed_photos(
            photos, encoder, options.out, batch=options.batch, threads=options.threads, broken=options.broken
        )
    reasons = Counter(one.reason for one in result.skipped)
    for reason, count in reasons.most_common(_SHOWN):
        warn(f"{count:,} left out: {reason}")
    data = _data(options, encoder, result, dict(sorted(reasons.items())))
    emit(data, _lines(data), as_json=options.json)
    return 0


def _check(options: argparse.Namespace) -> None:
    wanted = [name for name in ("source", "images", "texts") if getattr(options, name)]
    if len(wanted) != 1:
        raise UsageError(
            "One thing is embedded at a time",
            expected="--source NAME=PATH …, --images DIR or --texts FILE",
            found=", ".join(f"--{name}" for name in wanted) or "none",
        )
    if options.encoder and options.model:
        raise UsageError(
            "Two encoders are named", expected="--model NAME --pretrained TAG_OR_FILE, or --encoder colour"
        )
    # Without a model, what needs no weights and runs anywhere.
    options.encoder = options.encoder or ("" if options.model else "colour")
    if options.boxes and not options.source:
        raise UsageError("--boxes needs annotations", expected="--source NAME=PATH")
    if options.photos and not options.source:
        raise UsageError("--photos are those of a --source; a folder alone is --images DIR")
    for name in ("batch", "threads"):
        value = getattr(options, name)
        if value is not None and not 1 <= value <= 1 << 16:
            raise UsageError(f"--{name} needs a number from 1 to 65,536", found=str(value))
    for name in _OPEN_CLIP_ONLY:
        if options.encoder and getattr(options, name) not in ("", None, "projected", "auto"):
            raise UsageError(
                f"--{name.replace('_', '-')} is for --model", where=f"--encoder {options.encoder}"
            )


def _encoder(options: argparse.Namespace) -> Encoder:
    if options.encoder:
        from curation.similarity.colour_encoder import ColourEncoder

        return ColourEncoder()
    from curation.similarity.open_clip_encoder import open_clip_encoder

    return open_clip_encoder(
        options.model,
        options.pretrained,
        random_weights=options.random_weights,
        embedding=options.embedding,
        device=options.device,
        precision=options.precision,
    )


def _photos(options: argparse.Namespace) -> list[Photo]:
    from curation.similarity.items import photos_of_folder, photos_of_sources
    from curation.sources.photos import PhotoFolder

    if options.images:
        return photos_of_folder(PhotoFolder(options.images), options.namespace)
    slots = _slots(options.source)
    sources = open_sources(options, slots)
    return photos_of_sources(sources, _folders(options, list(sources)), boxes=options.boxes)


def _slots(texts: list[str]) -> list[SourceSlot]:
    """Return the sources to embed: ``coco-val2017`` and ``coco@val2017`` are of dataset ``coco``."""
    from curation.benchmarks.benchmark import SourceSlot
    from curation.ids import ImageId

    slots = []
    for text in texts:
        name = text.partition("=")[0].partition("@")[0]
        dataset, _, part = name.partition("-")
        ImageId(dataset, "0")
        slots.append(SourceSlot(name, dataset, part, False, ""))
    return slots


def _folders(options: argparse.Namespace, names: list[str]) -> dict[str, PhotoFolder]:
    """Return the folder of photos of each source: the one that is given, or else the root of the source."""
    from curation.sources.photos import PhotoFolder

    folders: dict[str, PhotoFolder] = {}
    for text in options.photos:
        name, equals, folder = text.partition("=")
        name, folder = (name, folder) if equals else ("", text)
        if name in folders or (name and name not in names):
            what = "names a source twice" if name in folders else "names no source that is embedded"
            raise UsageError(f"--photos {what}", where=f"--photos {text[:200]}", expected=", ".join(names))
        folders[name] = PhotoFolder(Path(folder))
    for text in options.source:
        name, _, path = text.partition("=")
        name = name.partition("@")[0]
        if name not in folders and "" not in folders and Path(path).is_dir():
            folders[name] = PhotoFolder(Path(path))
    return folders


def _texts(path: Path) -> list[str]:
    from curation.input_files import read_plain

    try:
        lines = read_plain(path, kind="file of texts").decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError("The texts are not UTF-8", where=str(path), found=str(error)[:200]) from None
    return [line.strip() for line in lines if line.strip()]


def _data(
    options: argparse.Namespace, encoder: Encoder, result: EmbedResult, reasons: dict[str, int]
) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "store": str(options.out),
        "kind": "texts" if options.texts else "boxes" if options.boxes else "images",
        "encoder": asdict(encoder.identity) | {"digest": encoder.identity.digest},
        "dimension": encoder.dimension,
        "embedded": result.embedded,
        "computed": result.computed,
        "reused": result.reused,
        "let_go": result.let_go,
        "skipped": reasons,
    }


def _lines(data: dict[str, Any]) -> list[str]:
    encoder = data["encoder"]
    rows = [
        ("model", f"{encoder['model']} ({encoder['embedding']}, {encoder['dtype']})"),
        ("weights", encoder["weights"]),
        ("vectors", f"{data['embedded']:,} of {data['dimension']} numbers"),
        (
            "computed",
            f"{data['computed']:,}; found in the store {data['reused']:,}; let go {data['let_go']:,}",
        ),
        (
            "left out",
            f"{sum(data['skipped'].values()):,} (report.json lists them)" if data["skipped"] else "0",
        ),
    ]
    return table_lines(Table(f"{data['store']}: {data['kind']}", ("", ""), tuple(rows)))
