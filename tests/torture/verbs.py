"""Every verb that writes, on a small world: what faults are injected into.

Inputs lie in a folder that all share and none may change; outputs, and the cache of parsed sources, in one of its own.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curation.cli import main
from tests.cli.test_propose import coco as coco_of
from tests.extensions.leaks.leak_world import copies_of, jpeg, picture, write_benchmark, write_tar
from tests.small_world import write_detections, write_small_world


@dataclass(frozen=True)
class Verb:
    """A command that writes.

    Attributes
    ----------
    name : str
    words : str
        Its command line; ``{in}`` is the folder of inputs, ``{out}`` that of outputs.
    before : str
        A command whose output stands there already; of nothing else, the old state is nothing.
    whole : tuple of str
        Folders below the outputs that appear whole or not at all.
    again : int
        Exit status of a run after a finished one: 2 where a folder is never written twice.
    resumes : tuple of str
        Folders below the outputs in which what a kill leaves is gone on with: neither the old state nor the new one.
    grows : bool
        Whether each run adds to its output, so that a second one does not give the same bytes.
    done : int
        Exit status of an undisturbed run: 1 where what it found is no error.
    """

    name: str
    words: str
    before: str = ""
    whole: tuple[str, ...] = ()
    again: int = 0
    resumes: tuple[str, ...] = ()
    grows: bool = False
    done: int = 0


RECIPE = "owod/s-owodb-published"
_SOURCES = "--source voc2007-test={in}/VOCdevkit/VOC2007 --source coco={in}/coco/annotations/instances_train2017.json"
_BOXES = "{in}/coco/annotations/instances_train2017.json"
_PROPOSE = "review propose --classes {in}/id.txt --source coco={in}/ood.json --no-cache --out {out}/p.jsonl"
_EVALUATE = (
    "evaluate elephant --truth closed={in}/closed.json --detections closed={in}/closed-results.json "
    "--truth wilderness={in}/wilderness.json --detections wilderness={in}/wilderness-results.json"
)
_SCORES = "scores --test {in}/test.npz --train {in}/train.npz --out {out}/s.json"
_NEIGHBORS = "similarity neighbors --queries {in}/store --references {in}/store --out {out}/n"
_BOARD = "leaderboard {in}/board.jsonl --out {out}/board.html"
_TRUTH = f"export {{in}}/manifest --format coco {_SOURCES} --out {{out}}/t.json"
_IDS = "export {in}/manifest --format txt --out {out}/ids.txt"
_INIT = f"init --source {_BOXES} --out {{out}}/tasks.toml"
_APPLY = f"review apply {{in}}/manifest --decisions {{in}}/decisions.jsonl --version 2.0.0 {_SOURCES}"

CORPUS_VERBS = {
    "embed": "similarity embed --corpus {in}/shards --encoder colour --out {out}/made",
    "presence": "inspect {in}/shown --presence {out}/made",
    "duplicates": "similarity duplicates --photos {in}/shards --resume {out}/made --out {out}/pairs",
    "leaks": "similarity leaks {in}/benchmark/manifest --corpus {in}/shards --photos {in}/benchmark/photos "
    "--set plant=2 --resume {out}/made --out {out}/leaks",
}
"""Commands that run a step over the blocks of a corpus, on whichever engine, into the folder ``made``."""

VERBS: dict[str, Verb] = {
    one.name: one
    for one in (
        Verb("build", f"build elephant {_SOURCES} --out {{out}}/m", whole=("m",)),
        Verb("import", f"import {RECIPE} --lists {{in}}/lists --header-only --out {{out}}/m", whole=("m",)),
        Verb("apply", f"{_APPLY} --out {{out}}/m", whole=("m",)),
        Verb("export coco", f"{_TRUTH} --part closed", before=f"{_TRUTH} --part wilderness"),
        Verb(
            "export voc",
            f"export {{in}}/manifest --part closed --format voc {_SOURCES} --out {{out}}/voc",
            whole=("voc",),
            again=2,
        ),
        Verb("export txt", f"{_IDS} --part closed", before=f"{_IDS} --part wilderness"),
        Verb("evaluate", f"{_EVALUATE} --out {{out}}/scores"),
        Verb(
            "evaluate --append",
            f"{_EVALUATE} --append {{out}}/board.jsonl --name one",
            before=f"{_EVALUATE} --append {{out}}/board.jsonl --name zero",
            grows=True,
        ),
        Verb("leaderboard", _BOARD, before=f"{_BOARD} --metric mAP11"),
        Verb("decisions", "review summary {in}/decisions.jsonl --out {out}/d.csv"),
        Verb("scores", _SCORES, before=f"{_SCORES} --method knn"),
        Verb(
            "embed",
            "similarity embed --photos {in}/photos --encoder colour --set batch=2 --out {out}/store",
            resumes=("store",),
        ),
        Verb("embed --corpus", f"{CORPUS_VERBS['embed']} --workers 1", resumes=("made",)),
        Verb("presence", f"{CORPUS_VERBS['presence']} --workers 1", resumes=("made",)),
        Verb("duplicates", f"{CORPUS_VERBS['duplicates']} --workers 1", resumes=("made",)),
        Verb("leaks", f"{CORPUS_VERBS['leaks']} --workers 1", resumes=("made",), done=1),
        Verb("audit --each", "audit {in}/lists --each --workers 1 --out {out}/made", resumes=("made",)),
        Verb("neighbors", f"{_NEIGHBORS} -k 2", before=f"{_NEIGHBORS} -k 3"),
        Verb("propose", _PROPOSE, before=f"{_PROPOSE} --set near_wup=1"),
        Verb("audit", "audit {in}/manifest --out {out}/report.html --out {out}/audit", whole=("audit",), again=2),
        Verb("cut", f"cut {_BOXES} -k 2 --set restarts=2 --on-error components=cut --out {{out}}/cut"),
        Verb(
            "identify --make-index", "identify --make-index {in}/lists --out {out}/lists.index --out {out}/digests.csv"
        ),
        Verb("init", f"{_INIT} --n-tasks 2", before=_INIT),
        Verb("show --composition", f"show {{in}}/manifest --composition {_SOURCES} --out {{out}}/c.csv"),
        Verb(
            "publish --dry-run",
            f"publish {{in}}/manifest --repo lab/elephant {_SOURCES} --dry-run {{out}}/r",
            whole=("r",),
            again=2,
        ),
    )
}


def filled(words: str, inputs: Path, outputs: Path) -> list[str]:
    """Return the words of a command line with its folders."""
    return [word.replace("{in}", str(inputs)).replace("{out}", str(outputs)) for word in words.split()]


def write_world(folder: Path) -> Path:
    """Write the inputs of all verbs."""
    from curation.benchmarks.owod.splits import RECIPES
    from curation.manifest.importing import list_slices
    from tests.signals.similarity.clip_world import write_photos

    world = write_small_world(folder, n_closed=4, n_wilderness=8)
    _run(filled(f"build elephant {_SOURCES} --no-cache --out {{out}}/manifest", folder, folder))
    for part in ("closed", "wilderness"):
        words = f"export {{in}}/manifest --part {part} --format coco --no-cache {_SOURCES} --out {{out}}/{part}.json"
        _run(filled(words, folder, folder))
        write_detections(folder / f"{part}.json", folder / f"{part}-results.json")
    for name in ("one", "two"):
        _run([*filled(_EVALUATE, folder, folder), "--append", str(folder / "board.jsonl"), "--name", name])
    image = json.loads((folder / "wilderness.json").read_text())["images"][0]["file_name"].removesuffix(".jpg")
    row = {"image_id": f"coco:{image}", "dataset": "coco", "stage": "manual", "action": "remove", "reviewer": "Ann"}
    (folder / "decisions.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "id.txt").write_text("horse\nsofa\n")
    coco_of(folder / "ood.json", {1: ["zebra"], 2: ["couch"], 3: ["laptop"], 4: []})
    rng = np.random.default_rng(1)
    np.savez(folder / "test.npz", features=rng.normal(size=(6, 4)))
    np.savez(folder / "train.npz", features=rng.normal(size=(30, 4)), labels=np.arange(30) % 3)
    write_photos(folder / "photos", 5)
    _run(filled("similarity embed --photos {in}/photos --encoder colour --out {out}/store", folder, folder))
    write_corpus(folder, shards=2, photos=6, rows=40)
    for verb, name in (("presence", "scanned"), ("embed", "vectors")):
        _run([*filled(CORPUS_VERBS[verb].replace("{out}/made", f"{{out}}/{name}"), folder, folder), "--workers", "1"])
    lists = folder / "lists/Main"
    lists.mkdir(parents=True)
    for number, file in enumerate(
        sorted({one.file for one in list_slices(RECIPES["owod/s-owodb-published"]()).values()})
    ):
        (lists / file).write_text("".join(f"{97 * number + 13 * line:012d}\n" for line in (3, 1, 2)))
    shutil.rmtree(world.coco_json.parents[2] / "cache", ignore_errors=True)
    return folder


def write_corpus(folder: Path, *, shards: int, photos: int, rows: int) -> None:
    """Write what the verbs of a corpus read: a benchmark, tar shards that hold copies of it, and annotation files."""
    _, known = write_benchmark(folder / "benchmark", 4)
    for name in ("shards", "shown"):
        (folder / name).mkdir()
    copies = list(copies_of(known).items())
    for number in range(shards):
        members = [(f"{one}.jpg", jpeg(picture(1000 + photos * number + one))) for one in range(photos)]
        write_tar(folder / f"shards/{number:05d}.tar", [*members, *copies[number::shards]])
        lines = [f"{number:06x}{row // 3:010x},/m/{row * row % 7}\n" for row in range(rows)]
        (folder / f"shown/{number:05d}.csv").write_text("".join(("ImageID,LabelName\n", *lines)))


def _run(words: list[str]) -> None:
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()):
        if main(words):
            raise AssertionError(f"the world cannot be made: curation {' '.join(words)}")
