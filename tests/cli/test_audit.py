"""``curation audit`` as a user runs it: exit codes, roles, reports, refusals."""

import json
import re
from pathlib import Path

import pytest

import curation
from curation.cli import main
from curation.manifest.manifest import write_manifest
from tests.extensions.audit.benchmark_world import LISTS, TASKS, TEST, TRAIN, World
from tests.worlds.coco_file import coco_content, write_json

NUMBERS = {name: number for number, name in enumerate([n for names in TASKS.values() for n in names], start=1)}


def coco(path: Path, images: dict[str, list[str]]) -> None:
    """Write the images of a small benchmark as COCO JSON."""
    rows = [
        (k, text.rstrip("*~"), [10.25 + 40 * place, 9.5, 30, 20.5], {"iscrowd": int(text.endswith("*"))})
        for k, texts in enumerate(images.values(), 1)
        for place, text in enumerate(texts)
    ]
    names = {k: f"{native}.jpg" for k, native in enumerate(images, 1)}
    write_json(path, coco_content(names, rows, NUMBERS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of lists, two annotation files beside it, and the task file."""
    lists = tmp_path / "lists"
    lists.mkdir()
    for name, ids in LISTS.items():
        (lists / f"{name.replace('-', '_')}.txt").write_text("".join(f"{one}\n" for one in ids))
    coco(tmp_path / "train.json", TRAIN)
    coco(tmp_path / "test.json", TEST)
    tasks = {"tasks": [{"name": name, "introduced": names} for name, names in TASKS.items()]}
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    return lists


def arguments(folder: Path, *more: str) -> list[str]:
    beside = folder.parent
    given = ["audit", str(folder), "--tasks", str(beside / "tasks.json"), "--set", "exemplars=1"]
    given += ["--source", f"mine-train={beside / 'train.json'}", "--source", f"mine-test={beside / 'test.json'}"]
    given += ["--exhaustive", "mine-train", "--exhaustive", "mine-test"]
    return [*given, *more]


def verdicts(text: str) -> dict[str, str]:
    """The strongest gravity of each rule: statements stand gravest first."""
    return {one["rule"]: one["gravity"] for one in reversed(json.loads(text)["statements"])}


def test_a_sound_folder_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared = [text for role in ("train", "finetune", "val", "test") for text in ("--view", f"{role}={role}")]
    assert main(arguments(folder, *declared, "--json")) == 0
    found = verdicts(capsys.readouterr().out)
    assert {name for name, verdict in found.items() if verdict == "undecidable"} == {"DS3", "PL7"}
    assert not {"error", "warning"} & set(found.values())


def test_a_breach_fails_and_is_told_with_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t1_train.txt").write_text("a1\na2\na3\nv3\n")
    assert main(arguments(folder)) == 1
    text = capsys.readouterr().out
    assert "t3_val in t1_train" in text
    assert "v3 (t1_train line 4; t3_val line 1)" in text
    assert "remove the shared images" in text
    assert text.startswith("lists: 1 error, 0 warnings on ")
    assert "1 error, 0 warnings" in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("t1-val.txt", b"000000000139\n0000\0\n", "a zero byte"),
        ("t1-val.txt", b"000000000139\n\xff\xfe\n", "not UTF-8"),
        ("t1-val.json", b'["000000000139", "00000', "truncated"),
    ],
)
def test_a_list_that_cannot_be_read_is_said_first_and_is_no_pass(
    folder: Path, name: str, data: bytes, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder)) == 0
    (folder / name).write_bytes(data)
    capsys.readouterr()
    assert main(arguments(folder)) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"warning: {name} could not be read")
    assert reason in told.err
    assert told.out.splitlines()[-1].endswith("; 1 list could not be read")
    assert curation.audit(folder).exit_status == 2
    # What is no list, and whole, is no fault.
    (folder / name).write_bytes(b'{"a": 1}')
    assert main(arguments(folder)) == 0


def test_only_asked_rules_are_run_and_warnings_fail_on_request(folder: Path) -> None:
    (folder / "t2_train.txt").write_text("a1\nb1\nb2\n")
    assert main(arguments(folder, "--rules", "TI4")) == 0
    assert main(arguments(folder, "--rules", "TI4", "--fail-on", "warning")) == 1
    assert main(arguments(folder, "--rules", "TI4,nothing")) == 2


def test_a_folder_alone_is_undecidable_and_says_what_is_needed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "--tasks reowod|ore|s-owodb" in text
    assert re.search(r"t1_train +3 +train of task 1 +guessed from the name", text)
    assert main(["audit", str(folder), "--json"]) == 0
    found = verdicts(capsys.readouterr().out)
    assert {name for name, verdict in found.items() if verdict in ("pass", "note") and name[:2] == "DS"} == {
        "DS1",
        "DS2",
        "DS4",
    }


def test_label_files_beside_the_lists_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coco(folder / "t1_train.json", {native: TRAIN[native] for native in LISTS["t1-train"]})
    assert main(arguments(folder, "--json")) == 1
    found = verdicts(capsys.readouterr().out)
    assert found["CO2"] == "error"


def test_reports_are_written_whole(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, out = tmp_path / "page.html", tmp_path / "out"
    assert main(arguments(folder, "--out", str(page), "--out", str(out))) == 0
    assert {path.name for path in out.iterdir()} >= {"audit.json", "report.html"}
    assert page.read_text() == (out / "report.html").read_text()
    assert json.loads((out / "audit.json").read_text())["statements"]
    capsys.readouterr()
    assert main(arguments(folder, "--out", str(out))) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_manifest_is_audited_by_what_it_says_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    write_manifest(world.manifest, tmp_path / "manifest")
    assert main(["audit", str(tmp_path / "manifest"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["digest"] == world.manifest.digest
    assert main(["audit", str(tmp_path / "manifest"), "--tasks", "ore"]) == 2
    assert "a manifest states this itself" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more",
    [
        ["--role", "nothing=train:1"],
        ["--role", "t1_train"],
        ["--view", "train"],
        ["--view", "train=train", "--view", "train=val"],
        ["--view", "tests=test"],
        ["--labels", "t1_train=/no/such/file.json"],
        ["--exhaustive", "other"],
        ["--photos", "mine-train=/no/such/folder"],
        ["--set", "exemplars=0"],
        ["--source", "Mine=/no/such/file.json"],
    ],
)
def test_wrong_use_is_told(folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(folder, *more)) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_hostile_file_names_do_not_steer_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a\x1b[31m.txt").write_text("1\n1\n")
    assert main(["audit", str(folder)]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_a_label_file_of_another_list_is_warned_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = folder.parent / "other.json"
    coco(other, {native: TRAIN[native] for native in LISTS["t3-train"]})
    assert main(arguments(folder, "--labels", f"t1_val={other}")) == 0
    said = capsys.readouterr()
    assert "warning: t1_val: label file other.json lacks its only image;" in said.err
    assert "lacks its only image;" in said.out
    assert main(arguments(folder, "--labels", f"t1_val={other}", "--json")) == 0
    data = json.loads(capsys.readouterr().out)
    assert verdicts(json.dumps(data))["AS2"] == "undecidable"
    assert len(data["warnings"]) == 1


def test_what_needs_attention_is_printed_and_the_rest_is_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "t2_train.txt").write_text("a1\nb1\nb2\n")
    assert main(arguments(folder)) == 0
    short = capsys.readouterr().out
    shown = [line for line in short.splitlines() if re.match(r"  [A-Z]{2}[0-9]", line)]
    rules = {name for line in shown for name in re.findall(r"\b[A-Z]{2}[0-9]+\b", line)}
    assert {"TI4", "DS3"} <= rules
    assert not {"CO1", "DS1", "LI1", "CO5"} & rules
    assert short.splitlines()[0].startswith("lists: 0 errors, 1 warning on ")
    assert "questions could be decided: 0 errors, 1 warning, " in short.splitlines()[-1]
    assert main(arguments(folder, "--all")) == 0
    whole = capsys.readouterr().out
    assert len(whole.splitlines()) > len(short.splitlines())
    assert {"CO1", "DS1", "LI1", "CO5"} <= {line.split()[0] for line in whole.splitlines() if line.split()}
    assert main(arguments(folder, "--quiet")) == 0
    assert capsys.readouterr().out.splitlines() == [short.splitlines()[-1]]
