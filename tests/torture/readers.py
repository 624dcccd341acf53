"""Every reader of users' files, with small valid files of its format: what fuzzing starts from.

A target reads what lies in a folder. It returns, or raises a `CurationError`: nothing else, whatever the files hold.
"""

from __future__ import annotations

import importlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.sources.openimages_files import DESCRIPTIONS, HEADER, ROWS
from tests.sources.test_bdd100k import ATTRIBUTES, NAMES, labels_2018
from tests.sources.test_cub200 import TEXTS as CUB
from tests.sources.test_mtsd import PHOTOS as MTSD

Files = dict[str, bytes]
Seal = Callable[[Files], Files]


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes
    ----------
    name : str
    files : mapping of str to bytes
        Valid files, by name below a folder.
    read : callable
        Reads them in a folder.
    changed : tuple of str
        Which of them fuzzing changes; all by default.
    seal : callable, optional
        Makes the digests of changed files right again, so that what lies behind the check of digests is met too.
    weight : int
        How many inputs it gets beside others.
    """

    name: str
    files: Mapping[str, bytes]
    read: Callable[[Path], Any]
    changed: tuple[str, ...] = ()
    seal: Seal | None = None
    weight: int = 2

    @property
    def changeable(self) -> tuple[str, ...]:
        """Names of the files that fuzzing changes."""
        return self.changed or tuple(self.files)


def _call(place: str) -> Callable[..., Any]:
    """Return a function by ``MODULE:NAME`` below `curation`, imported when it is first called."""
    module, _, name = place.partition(":")

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(f"curation.{module}"), name)(*arguments, **named)

    return call


def _seal_nouns(files: Files) -> Files:
    """State the offset of each line where it stands."""
    lines, place = [], 0
    for line in files["data.noun"].split(b"\n"):
        lines.append(b"%08d%s" % (place, line[8:]) if line[:8].isdigit() else line)
        place += len(line) + 1
    return {**files, "data.noun": b"\n".join(lines)}


def _reads(place: str, name: str = "", *arguments: Any, **named: Any) -> Callable[[Path], Any]:
    """Return a target's reading by one function, whose first argument is a file of the folder, or the folder."""
    read = _call(place)
    return lambda folder: read(folder / name, *arguments, **named)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _lines(*values: Any) -> bytes:
    return b"".join(_json(value) + b"\n" for value in values)


def _npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _parquet(**columns: Any) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return out.getvalue()


COCO = {
    "info": {"year": 2017},
    "images": [{"id": n, "file_name": f"{n:012d}.jpg", "width": 64, "height": 48} for n in (9, 25, 30, 139)],
    "annotations": [
        {"id": n + 1, "image_id": image, "category_id": kind, "bbox": [1.5, 2, 10 + n, 12], "area": 80.25,
         "iscrowd": n % 2,
         "segmentation": [[1, 2, 3, 4, 5, 6]]}
        for n, (image, kind) in enumerate(((9, 1), (9, 18), (25, 18), (139, 22)))
    ],
    "categories": [{"id": 1, "name": "person", "supercategory": "person"}, {"id": 18, "name": "dog"},
                   {"id": 22, "name": "elephant"}],
}  # fmt: skip
_RESULTS = [
    {"image_id": 9, "category_id": 1, "bbox": [1.5, 2, 10, 12], "score": 0.9, "background_score": 0.1},
    {"image_id": 25, "category_id": 18, "bbox": [1, 2, 10, 12.5], "score": 0.25},
]
_RECORDS = [
    {"image_id": 9, "bbox": [1, 2, 3, 4], "score": 0.5, "category_id": 1, "scores": {"energy": -1.5, "msp": 0.25}},
    {"image_id": "25", "bbox_xyxy": [1, 2, 3, 4], "score": 0.75, "category_id": 2, "scores": {"energy": 2, "msp": 0.5}},
]
_LOGITS = [
    {"image_id": 9, "bbox": [1, 2, 3, 4], "logits": [0.5, 1.5, -2]},
    {"image_id": 9, "bbox": [0, 0, 1, 1], "logits": [1, 2, 3]},
]
VOC = (
    b"<annotation><folder>VOC2007</folder><filename>000001.jpg</filename><size><width>50</width><height>40</height>"
    b"<depth>3</depth></size><object><name>dog</name><pose>Left</pose><truncated>0</truncated><difficult>1</difficult>"
    b"<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>20.5</xmax><ymax>30</ymax></bndbox></object><object><name>cat</name>"
    b"<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>20</xmax><ymax>30</ymax></bndbox><part><name>head</name></part></object>"
    b"</annotation>"
)
_DECISIONS = [
    {"image_id": "coco:000000000009", "dataset": "coco", "stage": "manual", "action": "remove", "reason": "a dog",
     "reviewer": "Ann",
     "date": "2025-03-01T01:02:03Z", "manifest": "sha256:" + "f" * 64, "batch": "b1"},
    {"image_id": "coco:000000000025", "dataset": "coco", "stage": "candidate", "action": "add_far"},
]  # fmt: skip
_SELECTION = {
    "FROM_CANDIDATES": {"coco": [13159], "coco_near": [4760], "openimages_near": ["000a9c6e22a06877"]},
    "KEEP_TO_NEAR_IDS": {"coco": [358427]}, "REMOVE_IDS": {"coco": [352900]},
    "UNFILTERED_IMAGES_TO_FAR": {"coco": {"Banana": [9]}},
    "UNFILTERED_IMAGES_TO_NEAR": {"openimages": {"Food/Kitchen": ["0010e23500000000"]}},
}  # fmt: skip
_YAML = b"""FROM_CANDIDATES:
  coco: [13159]
  coco_near: [4760, 4760]
  openimages_near: ['000a9c6e22a06877']
KEEP_TO_NEAR_IDS: {coco: [358427], openimages: ["057d2471d6724d66"]}
UNFILTERED_IMAGES_TO_FAR:
  coco: {Banana: [9]}
UNFILTERED_IMAGES_TO_NEAR:
  openimages: {Food/Kitchen: ['0010e23500000000']}
"""
_TASKS = b"""name = "my/benchmark"
title = "Mine"
dataset = "coco"
unknown = ["elephant"]
validation = 1
exemplars = 2
exhaustive = true
[aliases]
dog = ["hound"]
[[tasks]]
name = "t1"
classes = ["person"]
[[tasks]]
name = "t2"
classes = ["dog"]
"""
_NOUNS = (
    b"  1 This software\n00000018 03 n 01 entity 0 001 ~ 00000082 n 0000 | that which is\n"
    b"00000082 03 n 02 thing 0 object 1 001 @ 00000018 n 0000 | a thing\n"
)
_INDEX = b"entity n 1 1 ~ 1 0 00000018  \nobject n 1 1 @ 1 0 00000082  \nthing n 1 1 @ 1 0 00000082  \n"
_TREE = {
    "LabelName": "/m/0bl9f",
    "Subcategory": [{"LabelName": "/m/0bt9lr", "Part": [{"LabelName": "/m/01yrx"}]}, {"LabelName": "/m/01g317"}],
}


@cache
def _truth() -> Any:
    """Return the ground truth that predictions are held against."""
    return _call("evaluation.truth:ground_truth")(
        _source(), _call("evaluation.problem:classes_of_source")(_source())
    ).truth


@cache
def _source() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.json")
        path.write_bytes(_json(COCO))
        return _call("sources.coco:read_coco")(path, dataset="coco", part="val2017")


def _namespace(dataset: str) -> str:
    found: str = _call("sources.datasets:namespace_of")(dataset)
    return found


def _manifest() -> Files:
    from curation.manifest.header import ClassEntry
    from tests.toy_manifests import write_toy

    classes = (
        ClassEntry(name="dog", role="known", index=0, aliases=("hound",)),
        ClassEntry(name="elephant", role="unknown", index=-1),
    )
    lists = {"t1-test": ("coco:000000000009", "coco:000000000025"), "wild": ("coco:000000000030",)}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "m")
        write_toy(place, lists, classes, name="toy/one", taxonomy="OSC")
        return {
            str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*.*")) if path.is_file()
        }


def _seal_manifest(files: Files) -> Files:
    """Write a changed header again as the tool writes it, with the digests of the lists beside it."""
    import msgspec

    from curation.canonical import sha256_of_bytes
    from curation.manifest import manifest
    from curation.manifest.header import Header

    head = json.loads(files["manifest.json"])
    for part in head.get("parts", ()):
        data = files.get(f"ids/{part.get('name')}.txt")
        if data is not None and part.get("sha256"):
            part["sha256"] = sha256_of_bytes(data)
    stored = msgspec.json.decode(json.dumps(head).encode(), type=manifest._StoredHeader)
    made = manifest.Manifest(Header(**{name: getattr(stored, name) for name in Header.__struct_fields__}), {})
    return {**files, "manifest.json": manifest._header_bytes(made)}


def _store() -> Files:
    from curation.similarity.embeddings import EmbeddingStore, EncoderIdentity, Row, header_of

    identity = EncoderIdentity("colour", "none", "8x8", "float32")
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore(Path(folder, "s"), header_of(identity, 3, kind="images", batch=2))
        rows = [Row(f"coco:00000000000{n}", "sha256:" + str(n) * 64) for n in (1, 2)]
        store.add(rows, np.arange(6, dtype=np.float32).reshape(2, 3))
        store.finish(rows)
        return {path.name: path.read_bytes() for path in sorted(Path(folder, "s").iterdir()) if path.is_file()}


def _seal_store(files: Files) -> Files:
    """Name the array by the rows, and state its digest."""
    import hashlib

    from curation.similarity import embeddings

    listing = json.loads(files["rows.json"])
    name = next(one for one in files if one.endswith(".npy"))
    listing["sha256"] = "sha256:" + hashlib.sha256(files[name]).hexdigest()
    rows = [embeddings.Row(*row) for row in zip(listing["ids"], listing["images"], listing["boxes"], strict=True)]
    others = {one: data for one, data in files.items() if one != name}
    return {**others, f"vectors-{embeddings._name(rows)}.npy": files[name], "rows.json": json.dumps(listing).encode()}


def _proposals() -> bytes:
    from curation.proposals.proposal import write_proposals
    from tests.proposals.test_proposal_files import MADE

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p.jsonl")
        write_proposals(path, MADE)
        return path.read_bytes()


def _rows() -> bytes:
    from tests.evaluation.leaderboard_cases import row_data

    return _lines(row_data("one"), row_data("two", 0.25, variant="v"))


def _index() -> bytes:
    from curation.identify.index import index_bytes, make_index

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.txt").write_text("".join(f"{n:012d}\n" for n in range(40)))
        Path(folder, "b.json").write_text(json.dumps({"near": [1, 2, 3], "far": [4, 5]}))
        return index_bytes(make_index(Path(folder)).index)


def _publication() -> bytes:
    from curation.publishing import publication

    digest = "sha256:" + "a" * 64
    files = {
        name: publication.PublishedFile(digest, 12)
        for name in ("README.md", "manifests/a/manifest.json", "data/a/t1.parquet")
    }
    part = publication.PublishedPart(name="t1", split="t1", table="data/a/t1.parquet", images=2)
    one = publication.PublishedManifest(
        name="toy/a", version="1.0.0", digest=digest, folder="manifests/a", config="a", parts=(part,)
    )
    made = publication.Publication(
        schema_version=1, repository="o/r", tag="1.0.0", layout="curation", manifests=(one,), files=files
    )
    return publication.record_bytes(made)


def _seal_publication(files: Files) -> Files:
    import msgspec

    from curation.publishing import publication

    stored = msgspec.json.decode(files["publication.json"], type=publication._Stored)
    made = publication.Publication(
        **{name: getattr(stored, name) for name in publication.Publication.__struct_fields__}
    )
    return {"publication.json": publication.record_bytes(made)}


def _png(mode: str = "RGB") -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.linear_gradient("L").resize((24, 16)).convert(mode).save(out, "PNG", pnginfo=None)
    return out.getvalue()


def _jpeg() -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.linear_gradient("L").resize((24, 16)).convert("RGB").save(out, "JPEG")
    return out.getvalue()


def _bibtex(path: Path) -> Any:
    from curation.manifest.header import Paper
    from curation.publishing import papers

    text = path.read_bytes().decode("utf-8", "replace")
    return papers.reference(Paper(title=text, authors=text, year=2020, venue=text, bibtex=text))


def _photo(path: Path) -> Any:
    """Decode a photo; what cannot be is told by an error that its callers count."""
    from curation.sources import photos

    try:
        return photos.decode_photo(photos.read_photo(path))
    except photos.BrokenPhotoError:
        return None


def _command(*words: str) -> Callable[[Path], Any]:
    """Return a target that runs a whole command; ``@NAME`` is a file of the folder."""

    def run(folder: Path) -> Any:
        import contextlib

        from curation.cli import main

        given = [
            str(folder / word[1:]) if word.startswith("@") else word.replace("=@", f"={folder}/") for word in words
        ]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
            status = main(given)
        if status not in (0, 1, 2):
            raise AssertionError(f"exit status {status}: {told.getvalue()[:300]}")
        return status

    return run


def _read_nouns(folder: Path) -> Any:
    """Read WordNet's files but for their number of nouns, which no small file has."""
    from curation.hierarchy import noun_table

    lines = list(noun_table.read_noun_lines(folder))
    return noun_table.table_from(lines, [line.offset for line in lines], noun_table.read_senses(folder), str(folder))


def _read_verdicts(path: Path) -> Any:
    options = _call("decisions.verdict_tables:TableOptions")(
        columns=("image_id=image_location,action=decision",), codes=("o=keep,i=remove", "u=unsure"), blank="skip",
        dataset="textures", reviewer="N",
    )  # fmt: skip
    return _call("decisions.verdict_tables:read_verdicts")([path], options, _namespace)


def _voc_results(folder: Path) -> Any:
    return _call("evaluation.readers:read_voc_results")(folder, _truth())


def _corpus(path: Path) -> Any:
    return [list(block.tables()) for block in _call("sources.corpus:corpus_blocks")(path)]


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in (("a.png", _png()), ("a.json", b"{}"), ("b.jpg", _jpeg())):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _npz_scores(path: Path) -> Any:
    _call("evaluation.score_files:keys_of_npz")(path)
    return _call("evaluation.score_files:read_scores")(path)


def _openimages(**extra: str) -> Files:
    files = {
        "train-annotations-bbox.csv": "\n".join((HEADER, *ROWS)) + "\n",
        "class-descriptions-boxable.csv": DESCRIPTIONS,
    } | extra
    return {name: text.encode() for name, text in files.items()}


def _mtsd() -> Files:
    files = {f"annotations/{key}.json": _json(photo) for key, photo in MTSD.items()}
    return {"splits/train.txt": "".join(f"{key}\n" for key in MTSD).encode(), **files}


def _bdd() -> bytes:
    return _json(
        [
            {"name": f"{NAMES[0]}.jpg", "attributes": ATTRIBUTES, "timestamp": 10000, "labels": labels_2018()},
            {"name": f"{NAMES[1]}.jpg", "attributes": ATTRIBUTES, "timestamp": 10000, "labels": []},
        ]
    )


_SCORE_CSV = (
    b"image,label,score_0,score_1,background\na.jpg,0,0.25,0.5,0.25\nb.jpg,1,0.1,0.8,0.1\nc.jpg,-1,0.2,0.2,0.6\n"
)
_IMAGE_CSV = b"image,score,prediction,label\na/1.jpg,0.5,1,1\na/2.jpg,-1.5,0,-1\n"
_WNIDS = b"n02119022/n02119022_1.JPEG\nn02119022/n02119022_10.JPEG\nn02114367/n02114367_5.JPEG\n"


@cache
def targets() -> dict[str, Target]:
    """Return every target by name."""
    rng = np.random.default_rng(0)
    coco = _json(COCO)
    manifest = _manifest()
    store = _store()
    found = [
        Target(
            "coco",
            {"t.json": coco},
            _reads("sources.coco:read_coco", "t.json", dataset="coco", part="val2017"),
            weight=5,
        ),
        Target(
            "coco, boxes dropped",
            {"t.json": coco},
            _reads("sources.coco:read_coco", "t.json", dataset="custom", part="x", bad_boxes="drop"),
        ),
        Target("coco, renumbered", {"t.json": coco}, _reads("sources.renumbering:renumber", "t.json")),
        Target(
            "voc",
            {
                "Annotations/000001.xml": VOC,
                "Annotations/000002.xml": VOC,
                "ImageSets/Main/test.txt": b"000001\n000002 -1\n",
            },
            _reads("sources.voc:read_voc", "", "voc2007", "test"),
            weight=5,
        ),
        Target(
            "open images",
            _openimages(),
            _reads("sources.openimages:read_openimages", "", dataset="openimages", part="train"),
            weight=5,
        ),
        Target(
            "open images, with lists",
            _openimages(
                **{
                    "image_ids_and_rotation.csv": (
                        "ImageID,Subset,OriginalURL,OriginalLandingURL,License,AuthorProfileURL,Author,Title,O"
                        "riginalSize,OriginalMD5,Thumbnail300KURL,Rotation\n"
                        "000002b66c9c498e,train,u,u,l,a,A,T,1,m,t,0.0\n00166893b16a03ab,train,u,u,l,a,A,T,1,m,t,\n"
                    )
                }
            ),
            _reads("sources.openimages:read_openimages", "", dataset="openimages", part="train"),
        ),
        Target("mtsd", _mtsd(), _reads("sources.mtsd:read_mtsd", "", "train"), weight=3),
        Target(
            "bdd100k",
            {"labels/bdd100k_labels_images_val.json": _bdd()},
            _reads("sources.bdd100k:read_bdd100k", "", "val"),
            weight=3,
        ),
        Target(
            "cub200",
            {name: text.encode() for name, text in CUB.items()},
            _reads("sources.cub200:read_cub200", "", "train"),
            weight=3,
        ),
        Target(
            "imagenet, list", {"train.txt": _WNIDS}, _reads("sources.imagenet:read_imagenet", "train.txt", part="train")
        ),
        Target(
            "imagenet, json",
            {"train.json": _json({"n02119022": ["n02119022_1.JPEG"], "n02114367": ["n02114367_5.JPEG"]})},
            _reads("sources.imagenet:read_imagenet", "train.json", part="train"),
        ),
        Target(
            "imagenet, solution",
            {
                "LOC_val_solution.csv": (
                    b"ImageId,PredictionString\n"
                    b"ILSVRC2012_val_00000001,n02119022 1 2 3 4 \n"
                    b"ILSVRC2012_val_00000002,n02114367 1 2 3 4 \n"
                )
            },
            _reads("sources.imagenet:read_imagenet", "LOC_val_solution.csv", part="val"),
        ),
        Target(
            "table, csv",
            {"t.csv": b"image,split,classes\na.jpg,train,cat;dog\nb.jpg,train,\n"},
            _reads("sources.table:read_table", "t.csv", dataset="custom", part="train"),
        ),
        Target(
            "table, numbers",
            {"t.tsv": b"image_id\tcategory_ids\n9\t1 18\n25\t22\n"},
            _reads("sources.table:read_table", "t.tsv", dataset="coco", part="train2017"),
        ),
        Target(
            "table, parquet",
            {"t.parquet": _parquet(image=["a.jpg", "b.jpg"], classes=[["cat"], []])},
            _reads("sources.table:read_table", "t.parquet", dataset="custom", part="x"),
        ),
        Target(
            "published list, text",
            {"l.txt": b"000000000009\n000000000025\n000000000030\n"},
            _reads("sources.published_list:read_published", "l.txt"),
            weight=3,
        ),
        Target(
            "published list, imglist",
            {"l.txt": b"cifar10/test/a/1.png 0\ncifar10/test/b/2.png -1\n"},
            _reads("sources.published_list:read_published", "l.txt"),
            weight=3,
        ),
        Target(
            "published list, json",
            {"l.json": _json({"near": ["000000000009", "25"], "far": [30]})},
            _reads("sources.published_list:read_published", "l.json"),
            weight=3,
        ),
        Target("published list, coco", {"l.json": coco}, _reads("sources.published_list:read_published", "l.json")),
        Target(
            "listed source",
            {"l.txt": b"coco:000000000009\ncoco:000000000025\n"},
            _reads("sources.listed:read_listed", "l.txt", dataset="coco", part="x"),
        ),
        Target(
            "list of a command",
            {"l.txt": b"000000000009\n000000000025\n"},
            _reads("manifest.importing:read_published_file", "l.txt"),
        ),
        Target(
            "image list",
            {"l.txt": b"000000000009\n000000000025\n"},
            _reads("evaluation.truth:read_image_list", "l.txt"),
        ),
        Target("manifest", manifest, _reads("manifest.manifest:read_manifest", ""), seal=_seal_manifest, weight=6),
        Target("manifest, shown", manifest, _command("show", "@"), seal=_seal_manifest, weight=1),
        Target("manifest, audited", manifest, _command("audit", "@"), seal=_seal_manifest, weight=1),
        Target(
            "decisions, jsonl",
            {"d.jsonl": _lines(*_DECISIONS)},
            _reads("decisions.files:read_decisions", "d.jsonl"),
            weight=4,
        ),
        Target(
            "decisions, csv",
            {
                "d.csv": (
                    b"image_id,dataset,stage,action,reason,reviewer,date,manifest,batch\n"
                    b"coco:000000000009,coco,manual,remove,why,Ann,2025-03-01,,\n"
                )
            },
            _reads("decisions.files:read_decisions", "d.csv"),
            weight=3,
        ),
        Target("decisions, counted", {"d.jsonl": _lines(*_DECISIONS)}, _command("decisions", "@d.jsonl"), weight=1),
        Target("selection, yaml", {"m.yaml": _YAML}, _reads("decisions.files:read_decisions", "m.yaml"), weight=3),
        Target(
            "selection, json",
            {"m.json": _json(_SELECTION)},
            _reads("decisions.files:read_decisions", "m.json"),
            weight=3,
        ),
        Target(
            "category lists",
            {
                "c.json": _json(
                    {"VOC_CLASSES": {"coco": ["dog"]}, "VOC_REMOVED": {"coco": ["x"]}, "NEAR_COCO": ["zebra"]}
                )
            },
            _reads("decisions.authors_files:read_category_lists", "c.json"),
        ),
        Target(
            "category lists, yaml",
            {"c.yaml": b"VOC_CLASSES:\n  coco: [dog, cat]\n  openimages: [Dog]\n"},
            _reads("decisions.authors_files:read_category_lists", "c.yaml"),
        ),
        Target(
            "verdict table",
            {
                "textures.csv": (
                    b"index,image_location,decision\n"
                    b"0,t/images/banded/banded_0001.jpg,o\n"
                    b"1,t/images/banded/banded_0002.jpg,i\n"
                )
            },
            lambda f: _read_verdicts(f / "textures.csv"),
            weight=3,
        ),
        Target(
            "comp4",
            {
                "comp4_det_test_person.txt": b"000000000009 0.9 1 2 3 4\n000000000025 0.5 1.5 2 30 40\n",
                "comp4_det_test_unknown.txt": b"000000000009 0.9 1 2 3 4\n",
            },
            _voc_results,
            weight=3,
        ),
        Target(
            "detections",
            {"r.json": _json(_RESULTS)},
            lambda f: _call("evaluation.readers:read_coco_results")(f / "r.json", _truth()),
            weight=4,
        ),
        Target(
            "detections, lines",
            {"r.json": _lines(*_RESULTS)},
            lambda f: _call("evaluation.readers:read_coco_results")(f / "r.json", _truth()),
        ),
        Target(
            "ood detections",
            {"r.json": _json(_RECORDS)},
            lambda f: _call("evaluation.ood.detections:methods_of")(
                _call("evaluation.ood.detections:read_records")(f / "r.json")
            ),
            weight=3,
        ),
        Target(
            "ood detections, logits",
            {"r.json": _json(_LOGITS)},
            lambda f: _call("evaluation.ood.detections:logit_scores")(
                _call("evaluation.ood.detections:read_records")(f / "r.json")
            ),
        ),
        Target(
            "id scores, json",
            {"s.json": _json({"scores": {"msp": [0.5, 0.25]}, "image_ids": [9, "25"]})},
            _reads("evaluation.ood.id_scores:read_id_scores", "s.json"),
        ),
        Target(
            "id scores, csv",
            {"s.csv": b"image_id,msp,energy\n9,0.5,1\n25,0.25,-2.5\n"},
            _reads("evaluation.ood.id_scores:read_id_scores", "s.csv"),
        ),
        Target(
            "id scores, npy",
            {"s.npy": _npy(np.arange(5.0))},
            _reads("evaluation.ood.id_scores:read_id_scores", "s.npy"),
        ),
        Target(
            "class scores, npz",
            {"s.npz": _npz(gt=np.array([0, 1, -1]), logits=rng.random((3, 2)), images=np.array(["a", "b", "c"]))},
            lambda f: _npz_scores(f / "s.npz"),
            weight=4,
        ),
        Target(
            "class scores, npy",
            {"s.npy": _npy(rng.random((3, 2)))},
            _reads("evaluation.score_files:read_npy", "s.npy"),
            weight=3,
        ),
        Target(
            "class scores, csv", {"s.csv": _SCORE_CSV}, _reads("evaluation.score_files:read_scores", "s.csv"), weight=3
        ),
        Target(
            "class scores, parquet",
            {"s.parquet": _parquet(label=[0, 1], logits=[[0.5, 1.5], [2.0, 1.0]])},
            _reads("evaluation.score_files:read_scores", "s.parquet"),
        ),
        Target(
            "image scores, csv", {"s.csv": _IMAGE_CSV}, _reads("evaluation.image_ood.scores:read_image_scores", "s.csv")
        ),
        Target(
            "image scores, json",
            {"s.json": _json({"scores": [0.5, -1], "images": ["a", "b"], "labels": [0, 1]})},
            _reads("evaluation.image_ood.scores:read_image_scores", "s.json"),
        ),
        Target(
            "image scores, npz",
            {"s.npz": _npz(conf=np.array([0.5, 1.0]), pred=np.array([0, 1]), label=np.array([0, -1]))},
            _reads("evaluation.image_ood.scores:read_image_scores", "s.npz"),
        ),
        Target(
            "post-hoc inputs",
            {
                "t.npz": _npz(
                    logits=rng.random((3, 2)), features=rng.random((3, 4)), image_ids=np.array(["a", "b", "c"])
                ),
                "l.npz": _npz(weight=rng.random((2, 4)), bias=rng.random(2)),
            },
            lambda f: _call("evaluation.post_hoc.files:read_inputs")(f / "t.npz", None, f / "l.npz"),
            weight=3,
        ),
        Target(
            "score vectors",
            {
                "v.json": _json(
                    [
                        {
                            "image_id": 9,
                            "bbox": [1, 2, 3, 4],
                            "scores": [0.1, 0.9],
                            "background_score": 0.2,
                            "objectness": 0.5,
                            "region": 1,
                        }
                    ]
                )
            },
            _reads("baselines.score_vectors:read_score_vectors", "v.json"),
        ),
        Target(
            "confidence epochs",
            {"e.csv": b"epoch,gamma_plus,gamma_minus\n1,0.5,0.25\n2,0.75,0.5\n"},
            _reads("evaluation.confidence:read_epochs", "e.csv"),
        ),
        Target(
            "similar sets",
            {"s.json": _json([["person", "dog"], ["elephant", "dog"]])},
            lambda f: _call("benchmarks.elephant.diagnosis:read_similar_sets")(
                f / "s.json", ("person", "dog", "elephant")
            ),
        ),
        Target(
            "class file",
            {"c.json": _json({"known": ["person", "dog"], "unknown": ["elephant"]})},
            lambda f: _call("evaluation.problem:classes_of_file")(f / "c.json", _source()),
        ),
        Target(
            "task roles",
            {
                "t.json": _json(
                    {
                        "tasks": [
                            {"name": "t1", "prev": [], "cur": ["person"], "rest": ["dog"]},
                            {"name": "t2", "prev": ["person"], "cur": ["dog"]},
                        ]
                    }
                )
            },
            _reads("evaluation.problem:tasks_of_file", "t.json"),
        ),
        Target(
            "task file, toml",
            {"t.toml": _TASKS},
            _reads("benchmarks.owod.tasks:read_task_settings", "t.toml"),
            weight=4,
        ),
        Target(
            "task file, json",
            {
                "t.json": _json(
                    {
                        "name": "my/benchmark",
                        "dataset": "coco",
                        "tasks": [{"name": "t1", "classes": ["person"]}],
                        "unknown": ["dog"],
                    }
                )
            },
            _reads("benchmarks.owod.tasks:read_task_settings", "t.json"),
        ),
        Target(
            "id classes, toml",
            {"c.toml": b'known = ["dog", "cat"]\n[aliases]\ndog = ["hound"]\n'},
            _reads("proposals.id_classes:read_id_classes", "c.toml"),
        ),
        Target(
            "id classes, text",
            {"c.txt": b"dog = hound\ncat\n# no\nnaive\n"},
            _reads("proposals.id_classes:read_id_classes", "c.txt"),
        ),
        Target(
            "synset map",
            {"s.csv": b"name,synset\ndog,n02084071\ncat,n02121620\nnone,\n"},
            _reads("proposals.id_classes:read_synset_map", "s.csv"),
        ),
        Target(
            "proposals", {"p.jsonl": _proposals()}, _reads("proposals.proposal:read_proposals", "p.jsonl"), weight=3
        ),
        Target(
            "detector categories",
            {"c.json": coco},
            lambda f: _call("proposals.detector_overlap:read_categories")(
                f / "c.json", (_call("proposals.id_classes:IdClass")("dog", ()),)
            ),
        ),
        Target(
            "detector overlap",
            {"r.json": _json(_RESULTS)},
            lambda f: _call("proposals.detector_overlap:detector_evidence")(
                f / "r.json", _source(), {18: "dog", 1: "person"}, threshold=Decimal("0.1"), pool="p"
            ),
        ),
        Target("embeddings", store, _reads("similarity.embeddings:open_embeddings", ""), seal=_seal_store, weight=3),
        Target("texts", {"t.txt": b"a dog\na cat\n"}, _reads("similarity.from_files:_texts", "t.txt")),
        Target(
            "leaderboard", {"b.jsonl": _rows()}, _reads("evaluation.leaderboard.rows:read_rows", "b.jsonl"), weight=4
        ),
        Target("leaderboard, ranked", {"b.jsonl": _rows()}, _command("leaderboard", "@b.jsonl"), weight=2),
        Target(
            "class lists", {"c.txt": b"n02119022\nn02114367\n"}, _reads("hierarchy.class_lists:read_classes", "c.txt")
        ),
        Target(
            "class lists, roles",
            {"c.json": _json({"known_classes": ["dog", "cat"], "unknown_classes": {"Easy": ["zebra"]}})},
            _reads("hierarchy.class_lists:read_classes", "c.json"),
        ),
        Target(
            "edge list",
            {"e.txt": b"entity thing\nthing dog\nthing cat\n", "n.txt": b"dog\thound, Canis\ncat\tfeline\n"},
            lambda f: _call("hierarchy.class_trees:read_edge_list")(f / "e.txt", f / "n.txt"),
        ),
        Target(
            "open images tree",
            {"t.json": _json(_TREE), "n.csv": DESCRIPTIONS.encode()},
            lambda f: _call("hierarchy.class_trees:read_open_images")(f / "t.json", f / "n.csv", parts=True),
        ),
        Target(
            "hierarchy edits",
            {
                "e.toml": b'name = "mine"\nversion = "1"\nreason = "r"\nnew = ["cat"]\n'
                b'[parents]\ndog = ["thing"]\ncat = ["entity"]\n'
            },
            _reads("hierarchy.hierarchy:read_edits", "e.toml"),
        ),
        Target("wordnet", {"data.noun": _NOUNS, "index.noun": _INDEX}, _read_nouns, seal=_seal_nouns),
        Target("index of lists", {"i.index": _index()}, _reads("identify.index:read_index", "i.index")),
        Target(
            "declaration of lists",
            {
                "lists.toml": b'manifests = []\n[[source]]\nname = "a"\nbenchmark = "B"\n'
                b'[[source.lists]]\nfile = "a.txt"\ndefects = ["x"]\n',
                "a.txt": b"000000000009\n000000000025\n",
            },
            _reads("identify.index:make_index", ""),
        ),
        Target(
            "folder of lists, audited",
            {
                "train.txt": b"000000000009\n000000000025\n",
                "test.txt": b"000000000030\n",
                "ids.json": _json({"near": [139], "far": [9]}),
            },
            _command("audit", "@"),
            weight=1,
        ),
        Target(
            "publication",
            {"publication.json": _publication()},
            _reads("publishing.publication:read_publication", ""),
            seal=_seal_publication,
            weight=3,
        ),
        Target(
            "published parquet",
            {"p.parquet": _parquet(image_id=["coco:1", "coco:2"], n=[1, 2], labels=[[{"a": "x"}], []])},
            lambda f: _call("publishing.parquet:content_digest")(
                _call("publishing.parquet:read_parquet")(f / "p.parquet"),
                _call("publishing.parquet:schema_of")(f / "p.parquet"),
            ),
        ),
        Target(
            "review record",
            {
                "review.json": _json(
                    {
                        "version": 1,
                        "dataset": "d",
                        "stage": "manual",
                        "manifest": "",
                        "inputs": "sha256:" + "0" * 64,
                        "batches": {"b": 2},
                        "left_out": {"x": 1},
                    }
                )
            },
            _reads("review.review_folder:read_record", ""),
        ),
        Target(
            "overlay",
            {
                "overlay.jsonl": b'{"boxes":[{"box":["10.5","20","30","12.25"],'
                b'"label":"unknown","reviewers":["anna"]}],'
                b'"exhaustive":true,"image_id":"coco:000000000139"}\n'
            },
            lambda f: _call("manifest.overlay:parse_overlay")((f / "overlay.jsonl").read_bytes(), where="overlay"),
            weight=3,
        ),
        Target("corpus, tar", {"c.tar": _tar()}, lambda f: _corpus(f / "c.tar"), weight=3),
        Target(
            "corpus, parquet",
            {"c.parquet": _parquet(id=["a", "b"], path=["x/a.jpg", "b.jpg"])},
            lambda f: _corpus(f / "c.parquet"),
        ),
        Target(
            "leak check",
            {
                "leaks.json": _json(
                    {
                        "protocol": "leaks",
                        "manifest": {"name": "toy/one", "version": "1.0.0", "digest": "sha256:" + "0" * 64},
                        "corpus": {"name": "c", "images": 3, "unreadable": 0},
                        "parts": {
                            "benchmark": {
                                "images": 2,
                                "compared": 2,
                                "leaked": 1,
                                "leaked_by": {"pixels": 1},
                                "examples": ["a"],
                            }
                        },
                    }
                )
            },
            _reads("leaks.report:read_leaks", ""),
        ),
        Target(
            "audit for a card",
            {
                "audit.json": _json(
                    {
                        "digest": "sha256:" + "0" * 64,
                        "target": "toy/one 1.0.0",
                        "tally": {"fail": 1},
                        "rules": [
                            {
                                "rule": "CO1",
                                "severity": "error",
                                "verdict": "fail",
                                "definition": "d",
                                "count": 1,
                                "findings": [{"verdict": "fail", "about": "t1", "count": 1, "text": "x"}],
                            }
                        ],
                    }
                )
            },
            lambda f: _call("publishing.findings:read_audits")([f / "audit.json"], ["sha256:" + "0" * 64]),
        ),
        Target(
            "bibtex",
            {"p.bib": b'@a{k, author={G{\\"u}nther, M and B, A}, doi={10.1109/x.1}, eprint={2207.09775}}'},
            lambda f: _bibtex(f / "p.bib"),
        ),
        Target(
            "statements",
            {"r.toml": b'dataUseCases = "by hand"\nhasSyntheticData = false\ndataBiases = ["few", "old"]\n'},
            _reads("publishing.rai:read_statements", "r.toml"),
        ),
        Target("photo, png", {"p.png": _png()}, lambda f: _photo(f / "p.png"), weight=3),
        Target("photo, png of 16 bits", {"p.png": _png("I;16")}, lambda f: _photo(f / "p.png"), weight=1),
        Target("photo, jpeg", {"p.jpg": _jpeg()}, lambda f: _photo(f / "p.jpg"), weight=2),
        Target(
            "built",
            {
                "t.json": coco,
                "v.json": coco.replace(b"139", b"140")
                .replace(b"25", b"26")
                .replace(b"30", b"31")
                .replace(b": 9", b": 10"),
                "tasks.toml": _TASKS,
            },
            _command(
                "build",
                "owod",
                "--source",
                "train=@t.json",
                "--source",
                "test=@v.json",
                "--tasks",
                "@tasks.toml",
                "--no-cache",
                "--out",
                "@out",
            ),
            weight=1,
        ),
    ]
    return {one.name: one for one in found}
