"""Messages name what was likely meant, and a file that is written has the format of its suffix."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.extensions.diagnosis.mistaken import world, written
from tests.shell import Shell


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with truth and detections, and files that people confuse with them."""
    monkeypatch.chdir(tmp_path)
    truth, rows = world(n_images=6)
    written(tmp_path, truth, rows)
    (tmp_path / "best.pt").write_bytes(b"PK\x03\x04")
    (tmp_path / "rows.csv").write_text("0001.jpg,car,1,2,3,4,0.5\n")
    (tmp_path / "preds").mkdir()
    (tmp_path / "preds" / f"{Path(truth['images'][0]['file_name']).stem}.txt").write_text("0 0.5 0.5 0.1 0.1 0.9\n")
    (tmp_path / "data.yaml").write_text(json.dumps({"names": ["class 1"]}))
    for name in ("t1.txt", "t2.txt"):
        (tmp_path / name).touch()
    tasks = [{"name": "t1", "cur": ["class 1"]}, {"name": "t2", "prev": ["class 1"], "cur": ["class 2"]}]
    (tmp_path / "tasks.json").write_text(json.dumps({"tasks": tasks}))
    return tmp_path


COCO = "evaluate coco --truth truth.json --detections"
OWOD = "evaluate owod --truth truth.json --detections detections.json --classes tasks.json --out o --task"


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (f"{OWOD} 2", "did you mean --task t2?"),
        (f"{OWOD} t2_test", "did you mean --task t2?"),
        (f"{OWOD} t1.txt t2.txt", "the shell wrote names of files in place of a pattern: --task 'PATTERN', in quotes"),
        (f"{COCO} detections.json --figure x", "did you mean --figures?"),
        (f"{COCO.replace('coco', 'COCO')} detections.json", "did you mean coco?"),
        ("init wilderness --source train truth.json", "did you mean --source train=truth.json?"),
        (f"{COCO} best.pt", "a file of weights or arrays"),
        (f"{COCO} rows.csv", "insert a line with the names of the columns before it"),
        (f"{COCO} preds", "copy the data.yaml of the detector's training into preds"),
        ("show elephant@1.0.0 --composition --out x.svg", "the same command with x.csv"),
        ("leaderboard rows.jsonl --out x.pdf", "the same command with x.html"),
        ("leaderboard rows.jsonl --format csv --out x.html", "--format and the suffix of --out differ"),
        ("inspect truth.json --renumber new.csv", "the same command with new.json"),
    ],
)
def test_a_message_names_what_was_likely_meant(command: str, hint: str, files: Path, shell: Shell) -> None:
    (files / "rows.jsonl").touch()
    assert hint in shell.err(*command.split())


def test_label_files_are_read_once_the_names_of_their_classes_are_beside_them(files: Path, shell: Shell) -> None:
    (files / "data.yaml").rename(files / "preds" / "data.yaml")
    assert shell.data(*COCO.split(), "preds", "--json")["inputs"]["test"]["detections"]["rows"] == 1


def test_the_list_says_required_of_what_a_build_asks_for(shell: Shell) -> None:
    """Under each value of a parameter on which sources depend; the command that the build suggests keeps the value."""
    depending = []
    for benchmark in shell.data("list", "--json")["benchmarks"]:
        sources = benchmark["sources"]
        conditions = [slot["only_with"].partition("=") for slot in sources if slot["only_with"]]
        depending += [benchmark["name"]] * bool(conditions)
        for value in sorted({value for _, _, values in conditions for value in values.split(",")}) or [""]:
            needed = [
                slot["name"]
                for slot in sources
                if slot["required"] and value in (slot["only_with"].partition("=")[2] or value).split(",")
            ]  # fmt: skip
            if needed:
                setting = ["--set", f"{conditions[0][0]}={value}"] if value else []
                said = shell.err("build", benchmark["name"], *setting, "--out", "made")
                [advice] = re.findall(r"(?m)^  try: curation (.*)$", said)
                words = [word for name in needed for word in ("--source", f"{name}=PATH")]
                assert shlex.split(advice) == ["build", benchmark["name"], *setting, *words, "--out", "DIR"]
    assert set(depending) == {"findmeifyoucan", "owod", "osod3", "ssb"}
    assert "required with split=m-owodb" in shell.out("list", "owod")
