"""KI1: unknown classes that WordNet relates to known ones, in benchmarks whose classes are synsets."""

import json
from pathlib import Path

import msgspec
import pytest

from curation.cli import main
from curation.extensions.audit.run import audit
from curation.manifest.header import ClassEntry
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.signals.hierarchy.related_classes import NOT_PROVEN
from tests.extensions.benchmarks.test_ssb import of_imagenet

JAY, BLUE_JAY, BIRD, STONE = "n01580077", "n01580870", "n01503061", "n09416076"


def of_classes(*classes: tuple[str, str]) -> Manifest:
    """Return a committed header with other classes, each with its role."""
    manifest = load_manifest("imagenet/p1@1.0.0")
    entries = tuple(ClassEntry(name=name, role=role, index=-1) for name, role in classes)  # type: ignore[arg-type]
    return Manifest(header=msgspec.structs.replace(manifest.header, classes=entries), lists={})


def verdicts(*classes: tuple[str, str]) -> dict[str, int]:
    (found,) = audit(of_classes(*classes), rules="KI1").results
    return {one.verdict: one.count for one in found.outcome.findings}


def test_each_relation_has_its_verdict() -> None:
    known = (JAY, "known")
    assert verdicts(known, (STONE, "unknown")) == {"pass": 0}
    assert verdicts(known, (STONE, "unknown"), (BLUE_JAY, "unknown")) == {"warn": 1}
    assert verdicts(known, (BIRD, "unknown")) == {"info": 1}
    # The same synset under two names.
    assert verdicts(known, ("jay.n.02", "unknown")) == {"fail": 1}


def test_without_classes_it_is_undecidable() -> None:
    assert verdicts((JAY, "known")) == {"undecidable": 0}
    assert verdicts((BLUE_JAY, "unknown")) == {"undecidable": 0}
    # An id that the table lacks is not "no kin".
    assert verdicts((JAY, "known"), ("n99999999", "unknown")) == {"undecidable": 0}


def test_it_is_asked_of_synsets_alone() -> None:
    assert "KI1" in {one.rule.name for one in audit("imagenet/p1@1.0.0").results}
    assert "KI1" not in {one.rule.name for one in audit("owod/reowod@1.0.0").results}
    assert audit("imagenet/p1@1.0.0").verdict("KI1") == "pass"
    assert audit("ssb/hard-without-kin").verdict("KI1") == "pass"
    # 32 ancestors are left in.
    (left,) = audit("ssb/hard-without-descendants", rules="KI1").results
    assert (left.outcome.verdict, left.outcome.count) == ("info", 32)


def test_the_report_counts_images_and_says_what_is_not_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_imagenet(tmp_path, 2).save(tmp_path / "made")
    assert main(["audit", str(tmp_path / "made"), "--rules", "KI1", "--json"]) == 0
    below, above = json.loads(capsys.readouterr().out)["statements"]
    assert [(one["rule"], one["gravity"], one["count"]) for one in (below, above)] == [
        ("KI1", "warning", 160), ("KI1", "note", 166),
    ]  # fmt: skip
    assert "160 of 1,980 unknown classes, 320 images, are below a known class" in below["text"]
    assert "166 of 1,980 unknown classes, 332 images, are above a known class" in above["text"]
    assert all(text in below["text"] for text in NOT_PROVEN)
    assert "nearest" in below["examples"][0]
    assert "leak" not in json.dumps([below, above])


def test_a_folder_of_lists_with_tasks_of_synsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "t1_train.txt").write_text(f"{JAY}_1\n{JAY}_2\n", encoding="utf-8")
    (lists / "test.txt").write_text(f"{JAY}_3\n{BLUE_JAY}_1\n{BLUE_JAY}_2\n{STONE}_1\n", encoding="utf-8")
    tasks = tmp_path / "tasks.json"
    introduced = [{"name": "t1", "introduced": [JAY]}, {"name": "t2", "introduced": [BLUE_JAY, STONE]}]
    tasks.write_text(json.dumps({"tasks": introduced}), encoding="utf-8")
    assert main(["audit", str(lists), "--tasks", str(tasks), "--namespace", "imagenet", "--json"]) in (0, 1)
    (found,) = [one for one in json.loads(capsys.readouterr().out)["statements"] if one["rule"] == "KI1"]
    assert (found["gravity"], found["text"][:4], found["count"]) == ("warning", "t1: ", 1)
    assert "1 of 2 unknown classes, 2 images, are below a known class" in found["text"]
