"""``curation embed``: photos, boxes or texts as vectors, kept in a store."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.cli.options import SourceOptions, photo_folders
from curation.cli.output import Answer, Table, table_lines, warn
from curation.cli.outputs import OwnFolder
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.similarity.embed import EmbedResult, Photo
    from curation.similarity.encoder import Encoder
    from curation.sources.photos import PhotoFolder

_SHOWN = 5
_OPEN_CLIP_ONLY = ("pretrained", "random_weights", "embedding", "precision")


@dataclass(frozen=True, kw_only=True)
class Options(SourceOptions):
    """Photos, boxes or texts as vectors of an encoder, kept in a store that resumes.

    Attributes
    ----------
    photos
        the photos of a source, or of all (default: the source's own root; repeatable)
    images
        every photo below a folder, without annotations
    namespace
        of the ids of --images: NAME:PATH-BELOW-DIR
    texts
        texts, one a line; ids are the texts
    template
        prompt of a text ('a photo of a {}')
    boxes
        every annotated box is an image of its own: ID#NUMBER
    encoder
        histograms of colours and edges: no weights, no torch, no texts (the default without --model)
    model
        of open_clip: a name such as ViT-B-32, a configuration file (.json), local-dir:DIR, hf-
        hub:ORG/NAME
    pretrained
        weights: a tag of open_clip, or a file
    random_weights
        no weights: for tests and for measuring speed
    embedding
        projected: the space of images and texts; pooled: the class token before projection, as in
        FindMeIfYouCan
    device
        (auto)
    precision
        auto: float32 on a CPU, float16 on a GPU; images and texts to be compared need the same
    out
        the store; one begun is gone on with
    broken
        photos that are missing or broken: left out, counted and listed in DIR/report.json, or the first
        one ends the work and no new store stays
    batch
        images encoded at a time (32)
    threads
        that read, decode and, on a CPU, encode (one a core)
    """

    photos: tuple[Annotated[str, "[NAME=]DIR"], ...] = ()
    images: Annotated[Path | None, "DIR"] = None
    namespace: Annotated[str, "NAME"] = "photos"
    texts: Path | None = None
    template: Annotated[str, "TEXT"] = "a photo of a {}"
    boxes: bool = False
    encoder: Literal["colour"] | None = None
    model: Annotated[str | None, "NAME"] = None
    pretrained: Annotated[str, "TAG|FILE"] = ""
    random_weights: Annotated[int | None, "SEED"] = None
    embedding: Literal["projected", "pooled"] = "projected"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    out: Annotated[Path, OwnFolder(), "DIR"]
    broken: Literal["skip", "refuse"] = "skip"
    batch: int | None = None
    threads: int | None = None


def run(options: Options) -> Answer:
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
    return Answer(data, _lines(data))


def _check(options: Options) -> None:
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
    if options.boxes and not options.source:
        raise UsageError("--boxes needs annotations", expected="--source NAME=PATH")
    if options.photos and not options.source:
        raise UsageError("--photos are those of a --source; a folder alone is --images DIR")
    for name in ("batch", "threads"):
        value = getattr(options, name)
        if value is not None and not 1 <= value <= 1 << 16:
            raise UsageError(f"--{name} needs a number from 1 to 65,536", found=str(value))
    for name in _OPEN_CLIP_ONLY:
        if not options.model and getattr(options, name) not in ("", None, "projected", "auto"):
            raise UsageError(f"--{name.replace('_', '-')} is for --model", where="--encoder colour")


def _encoder(options: Options) -> Encoder:
    if not options.model:
        # What needs no weights and runs anywhere.
        from curation.similarity.encoder import ColourEncoder

        return ColourEncoder()
    from curation.similarity.open_clip import open_clip_encoder

    return open_clip_encoder(
        options.model,
        options.pretrained,
        random_weights=options.random_weights,
        embedding=options.embedding,
        device=options.device,
        precision=options.precision,
    )


def _photos(options: Options) -> list[Photo]:
    from curation.similarity.embed import photos_of_folder, photos_of_sources
    from curation.sources.photos import PhotoFolder
    from curation.sources.slots import named_slots

    if options.images:
        return photos_of_folder(PhotoFolder(options.images), options.namespace)
    sources = options.open(named_slots(options.sources))
    return photos_of_sources(sources, _folders(options, list(sources)), boxes=options.boxes)


def _folders(options: Options, names: list[str]) -> dict[str, PhotoFolder]:
    """Return the folder of photos of each source: the one that is given, or else the root of the source."""
    from curation.sources.photos import PhotoFolder

    folders = photo_folders(options.photos, "--photos")
    if strange := [name for name in folders if name and name not in names]:
        raise UsageError(
            "--photos names no source that is embedded",
            where=f"--photos {strange[0][:200]}",
            expected=", ".join(names),
        )
    for key, path in options.sources.items():
        name = key.partition("@")[0]
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


def _data(options: Options, encoder: Encoder, result: EmbedResult, reasons: dict[str, int]) -> dict[str, Any]:

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
