"""What a message advises is run on the case that prints it: commands, options to add, and options to leave out."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from curation.review.decisions.review_folder import ReviewRecord, write_record
from curation.review.decisions.verdicts import VerdictBook
from tests.cli.test_first_hour import INIT, draw, results
from tests.fake_hub import Repository
from tests.shell import parsers
from tests.signals.similarity.clip_world import write_config, write_photos

VERBS = "compares|completes|computes|corrects|describes|finds|has|lists|looks|makes|mends|names|shows|writes"
COMMAND = re.compile(rf"(?<!of `)curation [a-z][^`;]*?(?= (?:{VERBS}) |; |, |`|$)")
ADDED = re.compile(r"(?:^|; |, or | or |, |then |did you mean )(--[a-z].*?)(?=; |, |:| or |\?|$)")
REPLACED = re.compile(r"(.*) in place of (--[a-z-]+)(?: \S+)?")
LEFT_OUT = re.compile(r"(?:leave out|drop) (--[a-z-]+)")
NEXT = (
    "error: The dataset of this review is not in the database",
    "error: The closed source shows classes that are not known",
    "error: The source lacks classes of the super-class",
    "error: 1 of the 1 published lists are missing",
)
"""Where an advised command ends in the world: no App has opened its reviews, and its data are not the papers'."""
PLACES = {
    "FILE.jsonl": "rows.jsonl",
    "RESOLVED.jsonl": "resolved.jsonl",
    "TRUTH.json": "truth.json",
    "MENDED.json": "mended.json",
    "NEW.json": "new.json",
    "MAJOR.MINOR.PATCH": "2.0.0",
    "ORG/NAME": "hub/new",
    "FILE.npy": "labels.npy",
    "STORE": "store",
    "NPZ": "logits.npz",
    "NAME=PATH": "train=train.json",
    "train=PATH": "train=train.json",
    "test=PATH": "test=test.json",
    "NAME=DIR": "test=photos",
    "MANIFEST": "shapes",
    "FOLDER": "'my review'",
    "DIR": "made",
    "CORPUS": "photos",
    "TRUTH": "test.json",
    "FILE": "d.json",
    "NAME": "eva",
    "PART": "t1-test",
    "RULE": "majority",
    "FORM": "xyxy",
    "WORD": "dog",
}
"""What a user writes in place of a word in capitals, unless a row says otherwise."""
FAULTS: dict[str, dict[str, object]] = {
    "stray": {"image_id": 999},
    "strange": {"category_id": 77},
    "negative": {"bbox": [9, 9, -3, 4]},
    "margins": {"score": 3.5},
    "named": {"category_id": "circle"},
    "unscored": {"score": None},
    "boxless": {"bbox": None},
}
"""What the first detection of a file is instead."""
FLAGS = {parser.prog.removeprefix("curation "): parser._option_string_actions for parser in parsers()}


@pytest.fixture(scope="module")
def first_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two files, the manifest ``shapes`` of them, results of its task t2, reviews and photos."""
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CURATION_CACHE", str(folder.with_name("cache")))
        draw(folder, 5, 4, 120)
        assert main([*INIT, "--name", "mylab/shapes", "--n-tasks", "2", "--exhaustive", "--out", "tasks.toml"]) == 0
        assert main(["build", "tasks.toml", *INIT[2:], "--out", "shapes"]) == 0
        results(folder)
    images = read_manifest(folder / "shapes").ids("t1-test")[:6]
    for name, other_decision in (("my review", "keep"), ("agreed", "remove"), ("new review", "")):
        record = ReviewRecord(dataset=name, stage="manual", manifest="", inputs="", batches={"0001": 4, "0002": 4})
        write_record(folder / name, record)
        book = VerdictBook(folder / name / "decisions.jsonl", stage="manual")
        for reviewer, decision in (("anna", "remove"), ("ben", other_decision)) if other_decision else ():
            book.record([(("t1-test", image), "0001") for image in images], decision, reason="", reviewer=reviewer)
    write_config(folder / "clip")
    (folder / "no rows.jsonl").touch()
    (folder / "names.txt").write_text("a cat\n")
    truth = json.loads((folder / "test.json").read_text())
    for image, photo in zip(truth["images"], write_photos(folder / "photos", 3), strict=False):
        photo.rename(photo.with_name(image["file_name"]))
    first, second, *others = truth["images"]
    one, two = first["file_name"], second["file_name"]
    for name, names in {"same names": (one, f"a/{one}"), "crossed names": (two, one)}.items():
        pair = [first | {"file_name": names[0]}, second | {"file_name": names[1]}]
        (folder / f"{name}.json").write_text(json.dumps(truth | {"images": [*pair, *others]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_faults(folder, truth)
        for line in MADE:
            assert main(shlex.split(line)) == 0
    rows = (folder / "other.jsonl").read_text()
    (folder / "old.jsonl").write_text(rows.replace('"schema_version":2', '"schema_version":1'))
    return folder


MADE = (
    "evaluate coco --truth test.json --detections d.json --append other.jsonl",
    "review summary 'my review' --rule senior --senior anna --out senior.jsonl",
    "review apply shapes --decisions 'my review' --rule senior --senior anna --version 1.1.0 --out reviewed",
    "similarity embed --photos photos --encoder colour --out store",
    "split kinds --parts train=0.75,test=0.25 --stratify --out parts",
    "build both.toml --source train=train.json --source test=one.json --source first-test=two.json --out both",
    "export shapes --part t1-val --format voc --out voc",
    "init wilderness --source closed=closed.json --source wild=wild.json --out wilderness.toml",
    "build wilderness.toml --source closed=closed.json --source wild=wild.json --out wilderness",
)
"""Commands that make the rest of the world."""


def write_faults(folder: Path, truth: dict[str, Any]) -> None:
    """Write predictions with a fault each, and the data that mend them."""
    rows, first = json.loads((folder / "d.json").read_text()), truth["images"][0]

    def cut(places: slice, categories: set[int]) -> dict[str, Any]:
        kept = {image["id"] for image in truth["images"][places]}
        shown = [one for one in truth["annotations"] if one["image_id"] in kept and one["category_id"] in categories]
        return truth | {"images": truth["images"][places], "annotations": shown}

    contents = {name: [rows[0] | change, *rows[1:]] for name, change in FAULTS.items()} | {
        "ood": [row | {"ood_score": row["score"]} for row in rows],
        "fewer": cut(slice(1, None), {1, 2, 3, 4}),
        "closed": cut(slice(20), {1, 2}) | {"categories": truth["categories"][:2]},
        "wild": cut(slice(20, None), {1, 3, 4}),
        "no stars": cut(slice(20), {1, 2}),
        "one": cut(slice(20), {1, 2, 3, 4}),
        "two": cut(slice(20, None), {1, 2, 3, 4}),
        "roles": {"tasks": [{"name": "t2", "prev": ["circle", "square"], "cur": ["triangle", "star"]}]},
        "known": {"known": ["circle"]},
        "stars": {"known": ["star"]},
        "squares": {"known": ["square"]},
        "osod": {"known": ["circle", "square", "triangle"], "unknown": ["star"]},
        "empty": {},
        "root/annotations/instances_train2017": truth,
        "root/annotations/instances_val2017": truth,
    }
    (folder / "root" / "annotations").mkdir(parents=True)
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "torn.jsonl").write_text("{")
    (folder / "twice.txt").write_text("".join(f"{image['file_name']}\n" for image in [*truth["images"], first]))
    (folder / "moved" / "a").mkdir(parents=True)
    shutil.copy(folder / "photos" / first["file_name"], folder / "moved" / "a" / f"of {first['file_name']}")
    renamed = truth | {"images": [first | {"file_name": f"of {first['file_name']}"}, *truth["images"][1:]]}
    (folder / "renamed.json").write_text(json.dumps(renamed))
    lines = ["image,cat,dog"]
    for photo in [f"{kind}/{number}.jpg" for kind in ("cat", "dog") for number in range(4)]:
        (folder / "kinds" / photo).parent.mkdir(parents=True, exist_ok=True)
        (folder / "kinds" / photo).write_text(photo)
        lines.append(f"{photo},1,0")
    (folder / "both parts.csv").write_text("\n".join(lines))
    scores, labels = np.eye(2), np.arange(2)
    np.save(folder / "labels.npy", labels)
    arrays: dict[str, dict[str, Any]] = {
        "unnamed": {"marks": scores, "gt": labels},
        "bare": {"scores": scores, "marks": labels},
        "halves": {"scores": scores / 2, "gt": labels},
        "three": {"scores": np.eye(2, 3), "gt": labels},
        "logits": {"logits": scores},
    }
    for name, columns in arrays.items():
        np.savez(folder / f"{name}.npz", **columns)
    tasks = (folder / "tasks.toml").read_text()
    (folder / "both.toml").write_text(tasks.replace("\ntest = ", '\nfirst-test = { dataset = "first" }\ntest = '))
    (folder / "named.csv").write_text("score_0,score_1,label\n1,0,cat\n0,1,dog\n")


def filled(text: str, fill: dict[str, str]) -> str:
    for word, value in [*fill.items(), *sorted(PLACES.items(), reverse=True)]:
        text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w.=])", value, text)
    return text


def option_of(command: list[str], name: str) -> argparse.Action:
    return next(FLAGS[key] for key in (" ".join(command[:2]), command[0]) if key in FLAGS)[name]


def without(command: list[str], name: str) -> list[str]:
    """Return a command without an option and its value."""
    if name not in command:
        return command
    place = command.index(name)
    return without(command[:place] + command[place + 1 + (option_of(command, name).nargs != 0) :], name)


def advised(command: list[str], text: str, fill: dict[str, str]) -> Iterator[list[str]]:
    """Yield every command that the last line of a message advises, as words behind ``curation``."""
    advice = re.split("try: |next: | is gone: ", text.rstrip().splitlines()[-1])[1]
    for match in COMMAND.finditer(advice):
        words = shlex.split(filled(match[0], fill))[1:]
        # A verb alone is a reference to its help.
        if " ".join(words) not in FLAGS.keys() - {"list"}:
            yield words
    rest = COMMAND.sub("", advice)
    for match in LEFT_OUT.finditer(rest):
        yield without(command, match[1])
    for match in ADDED.finditer(rest):
        added, changed = list[str](), command
        if replaced := REPLACED.fullmatch(match[1]):
            changed = without(command, replaced[2])
        words = shlex.split(filled(replaced[1] if replaced else match[1], fill))
        while words and words[0].startswith("--"):
            has_value = option_of(command, words[0]).nargs != 0
            key, equals, _ = words[1].partition("=") if has_value else ("", "", "")
            if equals:
                # Of KEY=VALUE the value alone is another: --set precision=float32.
                before = ["", *changed[:-1]]
                changed = [
                    word
                    for last, word in zip(before, changed, strict=True)
                    if last != words[0] or not word.startswith(f"{key}=")
                ]
                changed = [
                    word
                    for word, after in zip(changed, [*changed[1:], "--"], strict=True)
                    if word != words[0] or not after.startswith("--")
                ]
            else:
                changed = without(changed, words[0])
            added, words = [*added, *words[: 1 + has_value]], words[1 + has_value :]
        yield [*changed, *added]


def run(command: list[str]) -> int:
    if command[:2] in (["review", "start"], ["review", "adjudicate"]):
        command = [*without(command, "--no-app"), "--no-app"]
    try:
        return main(command)
    except SystemExit as ended:
        return int(str(ended.code))


CLIP = "similarity embed --model local-dir:clip --set random_weights=1 --out m"
COMPLETED = {"voc2007-test=PATH": "voc2007-test=test.json", "coco=PATH": "coco=train.json"}
SENIOR = {"--senior NAME": "--senior anna"}
STARTS = {"FOLDER": "r", "NAME=PATH": "test=test.json", "DIR": "photos"}
T2 = "evaluate owod --manifest shapes --task t2 --detections d.json"
T1 = f"{T2.replace('t2', 't1')} --part t1-val"
COCO = "evaluate coco --truth test.json --detections"
OOD = "evaluate findmeifyoucan --truth test.json --scores"
CLASSES = "evaluate imagenet --scores"
PROPOSE = "review propose --classes known.json --source"
ELEPHANT = "evaluate elephant --on-error stray=drop --on-error classes=drop --detections closed=d.json"
ELEPHANT += " --detections wilderness=d.json --truth wilderness=wild.json --truth"
VOC = {"PATH": "test.json", "FILE": "empty.json"}
PARTS = {"MANIFEST": "parts", "PART": "test"}
ROWS: list[tuple[str, dict[str, str]]] = [
    ("verify test.json", {}),
    ("audit d.json", {}),
    ("audit kinds", {}),
    ("audit shapes --rules DS22", {}),
    ("verify nothing", {}),
    ("build openood --out m", {}),
    (
        "evaluate owod --truth test.json --detections d.json --task t2 --classes tasks.toml",
        {"…": " ".join(INIT[2:]), "--manifest DIR": "--manifest shapes"},
    ),
    ("list nothing", {}),
    ("build nothing --out m", {}),
    ("evaluate nothing", {}),
    ("build tasks --out m", {}),
    ("evaluate coco --truth shapes --detections d.json", {}),
    ("inspect test.json --mend boxes=xyxy", {}),
    ("inspect test.json --mend scores=number --out m.json", {"…": "scores=percent --out m.json"}),
    ("evaluate coco --truth test.json --detections d.json --set boxes=xyxy", {}),
    ("build shapes --out m", {}),
    ("build owod --tasks tasks.toml --out m", {}),
    ("build tasks.toml --source train=train.json --out m", {}),
    ("init tasks --source train=test.json --source test=test.json --out new.toml", {}),
    ("evaluate coco --manifest shapes --part t1-test --truth train.json --detections d.json", {}),
    ("leaderboard scores/results.json", {"…": T2[9:]}),
    # Reviews.
    ("review export --folder 'new review' --out d.jsonl", {}),
    ("review export --folder nowhere --out d.jsonl", STARTS),
    ("review export --folder agreed --out d.jsonl --drops drops", {}),
    ("review summary 'my review' agreed", {}),
    ("review summary 'my review' --out r.jsonl", SENIOR),
    ("review summary agreed --rule senior", SENIOR),
    ("review apply shapes --decisions 'my review' --version 1.1.0 --out m", SENIOR),
    ("review apply shapes --decisions agreed --out m", {}),
    ("review apply shapes --decisions agreed --version 1.0.0 --out m", {}),
    ("review adjudicate --folder agreed --reviewer eva --no-app", {}),
    ("review adjudicate --folder 'my review' --reviewer anna --no-app", {}),
    ("review start --folder nothing --no-app", STARTS | {"FOLDER": "r2"}),
    ("review start shapes --folder r3 --photos tst=photos --no-app", {"DIR": "photos"}),
    # Truths that do not say which image is which.
    (f"{T2} --truth 'same names.json'", {"PART": "t2-test"}),
    (f"{T2} --truth 'crossed names.json'", {"PART": "t2-test"}),
    # Photos and embeddings.
    ("similarity neighbors --queries nowhere --references nowhere --out m", {"…": "--photos photos --encoder colour"}),
    ("similarity embed --source test=test.json --encoder colour --out m", {"DIR": "photos"}),
    ("similarity embed --photos photos --shard 1/2 --encoder colour --out m", {}),
    (f"{CLIP} --photos photos --set precision=float16", {}),
    (f"{CLIP} --photos photos --device cuda", {}),
    (f"{CLIP} --texts names.txt --set embedding=pooled", {}),
    (
        "similarity embed --texts names.txt --encoder colour --out m",
        {"ViT-B-32": "local-dir:clip", "--pretrained TAG": "--set random_weights=1"},
    ),
    (
        "similarity embed --photos photos --model local-dir:clip --out m",
        {"--pretrained TAG": "--set random_weights=2", "SEED": "1"},
    ),
    # The hub.
    ("publish shapes --repo lab/x", {"DIR": "out"}),
    ("publish shapes --repo lab/x --dry-run out --source train=test.json", {"NAME=PATH": "train=test.json"}),
    ("publish elephant/train2017 --repo lab/x --dry-run out --licence voc2007-test=MIT", {}),
    ("publish shapes --repo lab/x --dry-run out --results 'no rows.jsonl'", {"…": T2[9:]}),
    ("publish shapes --repo lab/x --dry-run out --results scores/results.json", {"…": T2[9:]}),
    ("publish shapes --repo lab/x --dry-run out --results other.jsonl", {"…": T2[9:]}),
    ("publish shapes --repo lab/x --dry-run out --licence train=CC-BY-NC-4.0 --source train=train.json", {}),
    (
        "publish reviewed --repo lab/x --dry-run out --decisions 'my review/decisions.jsonl'",
        SENIOR | {"FILE": "'my review'", "--out RESOLVED.jsonl": "--out new.jsonl", "RESOLVED.jsonl": "senior.jsonl"},
    ),
    ("publish elephant/wr1-prob-published --repo lab/x --dry-run out --source coco=train.json", {}),
    ("publish osod3/openimages-animal-1 --repo lab/x --dry-run out --source openimages-test=test.json", VOC),
    ("publish findmeifyoucan/voc --repo lab/x --dry-run out --layout findmeifyoucan", VOC),
    ("publish shapes --repo hub/public", {}),
    ("publish shapes --repo hub/weights", {}),
    ("publish shapes --repo hub/tagged", {}),
    # Exports.
    ("export shapes --part all --format coco --out all.json", {}),
    ("export shapes --part all --format txt --out all.txt", {}),
    ("export parts --part test --format coco --out made", {}),
    ("export shapes --part t2-test --format elephant-json --out made", {}),
    ("export wilderness --part closed --format owod --out made", {}),
    # Detections.
    (f"{COCO} stray.json", {}),
    (f"{COCO} strange.json", {"TRUTH": "test.json", "FILE": "strange.json"}),
    (f"{COCO} negative.json", {}),
    (f"{COCO} margins.json", {}),
    (f"{COCO} named.json", {"FILE": "named.json"}),
    (f"{COCO} unscored.json", {}),
    (f"{COCO} boxless.json", {"FILE": "boxless.json"}),
    (f"{COCO} d.json --append rows.jsonl --name ' '", {}),
    ("leaderboard old.jsonl", {"…": T2[9:]}),
    ("leaderboard torn.jsonl", {"…": T2[9:]}),
    ("verify shapes --part t1-test", {}),
    (f"{T2} --truth fewer.json", {"NAME=PATH": "test=test.json"}),
    ("evaluate owod --classes roles.json --task t2 --truth test.json --detections d.json --lists twice.txt", {}),
    (
        "evaluate owod --manifest elephant/train2017 --task t2 --truth test.json --detections d.json",
        {"FILE": "roles.json"},
    ),
    ("evaluate owod --truth test.json --detections d.json --task t2", {"FILE": "roles.json"}),
    ("evaluate owod --truth test.json --detections d.json --task tasks.toml", {"FILE": "roles.json", "NAME": "t2"}),
    ("evaluate owod --manifest shapes --detections d.json --on-error classes=drop --task tasks.toml", {}),
    ("evaluate owod --manifest shapes --detections d.json --on-error classes=drop", {}),
    ("evaluate owod --manifest both --task t2 --detections d.json", {"MANIFEST": "both", "FILE": "both.json"}),
    (f"{T1} --on-error stray=drop --truth voc --image-set t1-val --category-ids truth", {}),
    (f"{ELEPHANT} closed=closed.json", {"DIR": "wilderness"}),
    (f"{ELEPHANT} 'closed=no stars.json' --classes stars.json", {"FILE": "squares.json"}),
    ("evaluate owod --manifest shapes --task t1 --detections d.json", {"TRUTH": "test.json"}),
    (
        "evaluate osod3 --manifest shapes --truth test.json --detections d.json --on-error classes=drop",
        {"FILE": "osod.json"},
    ),
    (f"{OOD} d.json --detections ood.json", {}),
    (f"{OOD} d.json --detections ood.json --score energy --on-error shared-ids=report", {"FILE": "s.json"}),
    (f"{OOD} labels.npy --detections ood.json --set official_compat=yes --set id_classes=2", {}),
    # Scores of classes.
    (f"{CLASSES} unnamed.npz", {"NAME": "marks"}),
    (f"{CLASSES} bare.npz", PARTS | {"NAME": "marks"}),
    (f"{CLASSES} halves.npz", {}),
    (f"{CLASSES} three.npz --variant table2", {}),
    (f"{CLASSES} three.npz --manifest parts --part test", {}),
    (f"{CLASSES} bare.npz --manifest parts --part train", PARTS),
    (f"{CLASSES} 'both parts.csv' --manifest parts --part test", {}),
    (f"{CLASSES} named.csv", PARTS),
    # Proposals and leaks.
    (f"{PROPOSE} photos=test.json --embeddings store", {}),
    (f"{PROPOSE} test=test.json --detections d.json", {"FILE": "test.json"}),
    (f"{PROPOSE} coco=root", {}),
    (
        "review start shapes --folder r5 --photos test=photos --proposals d.json --no-app",
        {"…": PROPOSE[15:] + " a=test.json"},
    ),
    ("similarity leaks shapes --photos moved --corpus photos", {"NAME=PATH": "test=renamed.json"}),
    ("similarity leaks shapes --photos moved --corpus photos --source test=test.json", {"DIR": "photos"}),
    # Lists that are not here.
    ("import elephant/train2017 --lists shapes --out m", COMPLETED),
    ("export elephant/train2017 --part wilderness --format txt --out m", COMPLETED),
    ("build elephant/train2017 --out m", COMPLETED),
    (
        "build elephant/train2017 --set ratios=1 --out m",
        {"…": "--source voc2007-test=test.json --source coco=train.json"},
    ),
    ("export elephant/wr1-prob-published --part wr1 --format txt --out m", {"--lists DIR": "--lists shapes"}),
    ("build elephant/wr1-prob-published --out m", {"--lists DIR": "--lists shapes"}),
    ("verify scores", {}),
    # Class hierarchies.
    ("hierarchy show 'hunting dogs'", {}),
    ("hierarchy similarity cat dog", {}),
]


# The hub's client sends large files in a way that its own HTTP library calls deprecated.
@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
@pytest.mark.parametrize(("line", "fill"), ROWS)
def test_an_advised_command_runs(
    first_world: Path,
    tmp_path: Path,
    line: str,
    fill: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """With what the user puts in place of its words in capitals, on the case that printed it."""
    if line.startswith("review") and "propose" not in line:
        request.getfixturevalue("fiftyone")
    if "hub/" in line:
        commit, files = "0" * 40, {"weights.bin": b"1"}
        request.getfixturevalue("hub").repositories |= {
            "hub/public": Repository(False, [(commit, {})]),
            "hub/weights": Repository(True, [(commit, files)]),
            "hub/tagged": Repository(True, [(commit, {})], {"1.0.0": commit}),
        }

    def printed(command: list[str]) -> tuple[int, str]:
        """Return the status and the message of a command in a new copy of the world, whose name has a blank."""
        copy = tmp_path / f"{len(list(tmp_path.iterdir()))} my work"
        shutil.copytree(first_world, copy)
        monkeypatch.chdir(copy)
        capsys.readouterr()
        return run(command), capsys.readouterr().err

    monkeypatch.setenv("CURATION_CACHE", str(first_world.with_name("cache")))
    command = shlex.split(line)
    status, text = printed(command)
    assert status == 2
    followed = list(advised(command, text, fill))
    assert followed, text
    for words in followed:
        status, text = printed(words)
        # A check that was made and failed is an answer.
        assert (status in (0, 1) and "error: " not in text) or text.startswith(NEXT), f"{words}\n{text}"
