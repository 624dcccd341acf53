"""Verbs that write, on a small world of their inputs: what faults are injected into, and whose inputs are changed."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curation.cli import main
from tests.small_world import write_detections, write_small_world
from tests.sources.openimages_files import DESCRIPTIONS, HEADER, ROWS
from tests.sources.test_cub200 import TEXTS as CUB
from tests.sources.test_mtsd import PHOTOS as MTSD


@dataclass(frozen=True)
class Verb:
    """A command that writes; ``{in}`` is the folder of inputs, ``{out}`` that of outputs.

    Attributes
    ----------
    before : str
        A command whose output stands there already; of nothing else, the old state is nothing.
    whole : str
        A folder below the outputs that appears whole or not at all.
    again : int
        Exit status of a run after a finished one: 2 where a folder is never written twice.
    grows : bool
        Whether each run adds a line to its output.
    resumes : bool
        Whether the next run goes on with what a kill left.
    """

    words: str
    before: str = ""
    whole: str = ""
    again: int = 0
    grows: bool = False
    resumes: bool = False


COCO = "{in}/coco/annotations/instances_train2017.json"
_SOURCES = f"--source voc2007-test={{in}}/VOCdevkit/VOC2007 --source coco={COCO}"
_EVALUATE = (
    "evaluate elephant --truth closed={in}/closed.json --detections closed={in}/closed-results.json "
    "--truth wilderness={in}/wilderness.json --detections wilderness={in}/wilderness-results.json"
)
_APPEND = f"{_EVALUATE} --append {{out}}/board.jsonl --name"
_SCORES = "scores --test {in}/test.npz --train {in}/train.npz --out {out}/s.json --force"
_NEAR = "similarity neighbors --queries {in}/store --references {in}/store --out {out}/n --force"
_TRUTH = f"export {{in}}/manifest --format coco {_SOURCES} --out {{out}}/t.json --force"
_FOLDER = f"export {{in}}/manifest --part closed --format voc {_SOURCES} --out {{out}}/voc"
_PROPOSE = "review propose --classes {in}/id.txt --source coco={in}/wilderness.json --out {out}/p.jsonl"
_APPLY = f"review apply {{in}}/manifest --decisions {{in}}/decisions.jsonl --version 2.0.0 {_SOURCES} --out {{out}}/m"
_PUBLISH = f"publish {{in}}/manifest --repo lab/x {_SOURCES} --dry-run {{out}}/r"

VERBS = {
    "build": Verb(f"build elephant {_SOURCES} --out {{out}}/m", whole="m"),
    "apply": Verb(_APPLY, whole="m"),
    "export coco": Verb(f"{_TRUTH} --part closed", before=f"{_TRUTH} --part wilderness"),
    "export voc": Verb(_FOLDER, whole="voc", again=2),
    "evaluate": Verb(f"{_EVALUATE} --out {{out}}/scores", whole="scores", again=2),
    "evaluate --force": Verb(f"{_EVALUATE} --out {{out}} --force", before=f"{_EVALUATE} --variant all --out {{out}}"),
    "evaluate --append": Verb(f"{_APPEND} one", before=f"{_APPEND} zero", grows=True),
    "scores": Verb(_SCORES, before=f"{_SCORES} --method knn"),
    "embed": Verb("similarity embed --photos {in}/photos --encoder colour --out {out}/store", resumes=True),
    "neighbors": Verb(f"{_NEAR} -k 2", before=f"{_NEAR} -k 3"),
    "audit": Verb("audit {in}/manifest --out {out}/audit", whole="audit", again=2),
    "cut": Verb(f"cut {COCO} -k 2 --set restarts=2 --on-error components=cut --out {{out}}/cut", whole="cut", again=2),
    "init": Verb(f"init tasks --source {COCO} --n-tasks 2 --out {{out}}/tasks.toml --force"),
    "publish": Verb(_PUBLISH, whole="r", again=2),
}

_CUT = "-k 2 --on-error components=cut --set restarts=1"
READERS = {
    "table": f"cut {{in}}/table.csv --dataset custom --part train {_CUT}",
    "open images": f"cut {{in}}/openimages --dataset openimages --part train {_CUT}",
    "mtsd": f"cut {{in}}/mtsd --dataset mtsd --part train {_CUT}",
    "cub200": _PROPOSE.replace("coco={in}/wilderness.json", "cub200@train={in}/cub200"),
    "tasks": f"build {{in}}/tasks.toml --source train={COCO} --source test={{in}}/test.json --out {{out}}/m",
    "list of a benchmark": "identify {in}/list.txt",
    "lists": "audit {in}/lists",
    "selection": "review summary {in}/selection.yaml",
    "decisions, csv": "review summary {in}/decisions.csv",
    "edges": "hierarchy show root --edges {in}/edges.txt --leaves all",
    "image scores": "evaluate imagenet --scores {in}/scores.csv",
    "results": "inspect {in}/closed.json --detections {in}/closed-results.json",
    "renumbered": "inspect {in}/closed.json --json",
}
"""Commands that read files of further formats."""


def filled(words: str, inputs: Path, outputs: Path) -> list[str]:
    """Return the words of a command line with its folders."""
    return [word.replace("{in}", str(inputs)).replace("{out}", str(outputs)) for word in words.split()]


def write_world(folder: Path) -> None:
    """Write the inputs of all commands."""
    from tests.signals.similarity.clip_world import write_photos

    def run(words: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(filled(words, folder, folder)) == 0, words

    write_small_world(folder, n_closed=4, n_wilderness=8)
    run(f"build elephant {_SOURCES} --out {{out}}/manifest")
    for part in ("closed", "wilderness"):
        run(f"export {{in}}/manifest --part {part} --format coco {_SOURCES} --out {{out}}/{part}.json")
        write_detections(folder / f"{part}.json", folder / f"{part}-results.json")
    for name in ("one", "two"):
        run(f"{_EVALUATE} --append {{out}}/board.jsonl --name {name}")
    image = json.loads((folder / "wilderness.json").read_text())["images"][0]["file_name"].removesuffix(".jpg")
    row = {"image_id": f"coco:{image}", "dataset": "coco", "stage": "manual", "action": "remove", "reviewer": "Ann"}
    rng = np.random.default_rng(1)
    np.savez(folder / "test.npz", features=rng.normal(size=(6, 4)))
    np.savez(folder / "train.npz", features=rng.normal(size=(30, 4)), labels=np.arange(30) % 3)
    write_photos(folder / "photos", 5)
    run("similarity embed --photos {in}/photos --encoder colour --out {out}/store")
    run(f"init tasks --source {COCO} --n-tasks 2 --out {{out}}/tasks.toml")
    test = json.loads((folder / COCO.removeprefix("{in}/")).read_text())
    for image in test["images"]:
        image |= {"id": image["id"] + 10**6, "file_name": f"test-{image['file_name']}"}
    for box in test["annotations"]:
        box["image_id"] += 10**6
    texts = {
        "decisions.jsonl": json.dumps(row) + "\n",
        "decisions.csv": ",".join(row) + "\n" + ",".join(row.values()) + "\n",
        "id.txt": "horse\nsofa\n",
        "table.csv": "image,split,classes\na.jpg,train,cat;dog\nb.jpg,train,cat\nc.jpg,train,owl;dog\n",
        "openimages/train-annotations-bbox.csv": "\n".join((HEADER, *ROWS)) + "\n",
        "openimages/class-descriptions-boxable.csv": DESCRIPTIONS,
        "mtsd/splits/train.txt": "".join(f"{key}\n" for key in MTSD),
        **{f"mtsd/annotations/{key}.json": json.dumps(photo) for key, photo in MTSD.items()},
        **{f"cub200/{name}": text for name, text in CUB.items()},
        "list.txt": "".join(f"{97 * number:012d}\n" for number in range(1, 30)),
        "lists/train.txt": "000000000009\n000000000025\n",
        "lists/test.txt": "000000000030\n",
        "test.json": json.dumps(test),
        "selection.yaml": "FROM_CANDIDATES:\n  coco: [13159]\n  openimages_near: ['000a9c6e22a06877']\n",
        "edges.txt": "root\tcat\nroot\tdog\ndog\thound\n",
        "scores.csv": "image,class,label,score_0,score_1\na,cat,0,0.9,0.1\nb,dog,1,0.2,0.8\nc,owl,-1,0.5,0.5\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
