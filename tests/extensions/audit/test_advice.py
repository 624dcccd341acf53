"""What an audit advises, followed on the case that prints it: the finding is gone, or the question is decided."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from curation.cli import main
from curation.extensions.audit.report import Report, Statement
from curation.extensions.audit.run import audit
from tests.cli.test_audit import arguments, folder
from tests.extensions.audit.benchmark_world import TEST as TASK_TEST
from tests.extensions.audit.benchmark_world import TRAIN as TASK_TRAIN
from tests.extensions.audit.test_published_rules import laid
from tests.extensions.audit.test_statements import TEST, TRAIN, VAL, said

__all__ = ["folder"]
Lists = dict[str, list[str]]


def only(report: Report, rule: str) -> Statement:
    [statement] = [one for one in said(report, "error", "warning") if one.rule == rule]
    return statement


def files(lists: Mapping[str, list[str]]) -> dict[str, object]:
    return {f"{name}.txt": lines for name, lines in lists.items()}


@pytest.mark.parametrize(
    ("lists", "rule"),
    [
        ({"train": [*TRAIN, *TEST[:3]], "test": TEST}, "DS2"),
        ({"train": TRAIN, "val": [*VAL, *TEST[:3]], "test": TEST}, "DS2"),
        ({"train": [*TRAIN, *VAL[:3]], "val": VAL}, "DS4"),
        ({"train": [*TRAIN, *VAL], "val": VAL}, "DS4"),
        ({"t1_train": TRAIN[:50], "t2_train": [*TRAIN[50:], *TEST[:2]], "test": TEST}, "DS2"),
    ],
)
def test_shared_images_are_removed_from_the_list_that_is_named(lists: Lists, rule: str, tmp_path: Path) -> None:
    report = audit(laid(tmp_path / "lists", files(lists)))
    statement = only(report, rule)
    [name] = re.findall(r"remove the shared images from (\S+)", statement.hint)
    [other] = {*statement.lists} - {name}
    lists[name] = [line for line in lists[name] if line not in lists[other]]
    assert audit(laid(tmp_path / "mended", files(lists))).exit_status == 0


def test_validation_lists_of_two_tasks_are_to_be_drawn_again(tmp_path: Path) -> None:
    lists = {"t1_train": TRAIN[:90], "t2_train": TRAIN[90:], "t1_val": VAL[:20], "t2_val": VAL[15:35]}
    statement = only(audit(laid(tmp_path / "lists", files(lists))), "DS4")
    assert statement.lists == ("t1_val", "t2_val")
    assert statement.hint == "draw the validation lists again, without images drawn or trained on before"
    lists["t2_val"] = VAL[20:40]
    assert audit(laid(tmp_path / "mended", files(lists))).exit_status == 0


def test_repeats_a_list_that_is_one_twice_and_val_within_train(tmp_path: Path) -> None:
    lists = {"train": [*TRAIN, *TRAIN[:2]], "test": TEST}
    assert "keep the first line" in only(audit(laid(tmp_path / "repeats", files(lists))), "DS1").hint
    assert audit(laid(tmp_path / "repeats", files(lists | {"train": TRAIN}))).exit_status == 0
    twice = laid(tmp_path / "twice", files({"a_train": TRAIN, "a_test": TRAIN, "b_train": VAL, "b_test": TEST}))
    hint = only(audit(twice), "DS2").hint
    assert hint.startswith("remove one of them; if whole domains ")
    assert audit(twice, roles={"a_train": "none"}).exit_status == 0
    (twice / "a_train.txt").unlink()
    assert audit(twice).exit_status == 0
    inside = laid(tmp_path / "inside", files({"train": [*TRAIN, *VAL], "train_small": TRAIN, "val": VAL}))
    hint = only(audit(inside, rules="DS4"), "DS4").hint
    assert hint == "train on train_small, which is train without val"
    (inside / "train.txt").unlink()
    assert audit(inside).exit_status == 0


def test_names_alone_are_decided_by_folders_by_a_namespace_or_by_photos(tmp_path: Path) -> None:
    counts = {f"{role}/list.txt": [f"{n:04}.jpg" for n in range(20)] for role in ("train", "test")}
    lists = laid(tmp_path / "counts", counts)
    hint = next(one for one in said(audit(lists), "undecidable") if one.rule == "DS2").hint
    assert "written before each name, as in train/0001.jpg" in hint
    assert "--namespace NAME" in hint
    assert audit(lists, namespace="mine").exit_status == 1
    apart = {name: [f"{name.split('/')[0]}/{line}" for line in lines] for name, lines in counts.items()}
    assert said(audit(laid(tmp_path / "apart", apart)), "error", "warning") == []
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("imagehash")
    bare = {"train": [f"d/{n}x.png" for n in "abcdefghijkl"], "test": [f"{n}x.png" for n in "abcdefghijkl"]}
    lists = laid(tmp_path / "bare", files(bare))
    assert only(audit(lists), "DS2").hint == "compare the photos: --photos NAME=DIR"
    [needed] = said(audit(lists, rules="DS3"), "undecidable")
    assert needed.hint == "the photos of these images: --photos NAME=DIR"
    for name in {*bare["train"], *bare["test"]}:
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        image.effect_noise((64, 64), 80).save(tmp_path / "photos" / name)
    assert audit(lists, photos={"mine": tmp_path / "photos"}).verdict("DS3") == "pass"


def test_groups_are_told_by_a_pattern_or_a_column(tmp_path: Path) -> None:
    lists = laid(tmp_path / "lists", files({"train": TRAIN, "test": TEST}))
    report = audit(lists)
    assert next(one for one in said(report, "undecidable") if one.rule == "PL7").hint == (
        "what a group of images is: --group REGEX, or --group column=NAME"
    )
    assert audit(lists, groups=["(..)x"]).verdict("PL7") in ("pass", "warn")
    rows = [f"{name},{n % 7 if n < 300 else 9 + n % 5},{'train' if n < 300 else 'test'}"
            for n, name in enumerate([*TRAIN, *TEST])]  # fmt: skip
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "all.csv").write_text("\n".join(["file_name,farm,split", *rows]) + "\n")
    assert audit(tmp_path / "table").verdict("PL7") == "undecidable"
    assert main(["audit", str(tmp_path / "table"), "--group", "column=farm", "--fail-on", "warning"]) == 0


@pytest.mark.parametrize(
    ("rule", "without", "words"),
    [
        ("CO1", "--tasks", "the classes of each task: --tasks "),
        ("DS5", "--source", "the raw annotations of these images: --source NAME=PATH"),
        ("LI1", "--exhaustive", "whether every object of every class is annotated"),
        ("AS2", "--view", "the labels that these lists carry: --view ROLE=VIEW"),
    ],
)
def test_the_option_that_is_needed_decides(rule: str, without: str, words: str, folder: Path, tmp_path: Path,
                                           capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    views = [text for role in ("train", "finetune", "val", "test") for text in ("--view", f"{role}={role}")]
    whole = arguments(folder, *views)
    rest, at = [], 0
    while at < len(whole):
        drop = whole[at] == without or (without == "--source" and whole[at] == "--exhaustive")
        rest += [] if drop else whole[at : at + 1]
        at += 2 if drop else 1
    assert main([*rest, "--rules", rule]) in (0, 2)
    assert f"needed: {words}" in capsys.readouterr().out
    assert main([*whole, "--rules", rule]) == 0
    assert "needed: " not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rule", "words", "decided"),
    [
        ("AS1", "an annotation file with boxes instead of a table of image and class: --source ", ".json"),
        ("AS3", "an annotation file with boxes instead of a table of image and class: --source ", ".json"),
        ("LI3", "an annotation file with boxes instead of a table of image and class: --source ", ".json"),
        ("TI4", "an annotation file instead of a table of image and class, which may miss classes: ", ".json"),
        ("TI4", "an annotation file instead of a table of image and class, which may miss classes: ", ".csv"),
    ],
)
def test_a_table_of_classes_is_replaced_or_declared_whole(
    rule: str, words: str, decided: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, images in {"train": TASK_TRAIN, "test": TASK_TEST}.items():
        rows = [f"{image},{label.rstrip('*~')}" for image, labels in images.items() for label in labels]
        (folder.parent / f"{name}.csv").write_text("\n".join(["image_id,class", *rows]))

    def printed(suffix: str, *declared: str) -> str:
        command = [text.replace(".json", suffix) if "mine-" in text else text for text in arguments(folder)[:-4]]
        views = [text for role in ("train", "finetune", "val", "test") for text in ("--view", f"{role}={role}")]
        # The status 2 of an audit says that nothing could be checked; that of a refusal comes with an error.
        assert main([*command, *views, *declared, "--rules", rule]) in (0, 2)
        out, err = capsys.readouterr()
        assert "error: " not in err
        return out

    assert f"needed: {words}" in printed(".csv")
    assert "needed: " not in printed(decided, *(("--exhaustive", "mine-train") if decided == ".csv" else ()))


@pytest.mark.parametrize(
    ("rule", "names", "needed", "options"),
    [
        ("DS2", ("a", "b"), "the role of the lists: --role LIST=train, =val, =test", "a=train b=test"),
        ("PL8", ("a", "ood"), "which lists are in-distribution and which out: --role LIST=id, ", "a=id ood=ood"),
    ],
)
def test_a_role_that_is_needed_decides(
    rule: str, names: tuple[str, str], needed: str, options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", str(laid(tmp_path / "lists", files(dict(zip(names, (TRAIN, TEST), strict=True))))), "--rules"]
    assert main([*command, rule]) in (0, 2)
    assert f"needed: {needed}" in capsys.readouterr().out
    assert main([*command, rule, *(word for text in options.split() for word in ("--role", text))]) in (0, 2)
    out, err = capsys.readouterr()
    assert "needed: " not in out
    assert "error: " not in err


@pytest.mark.parametrize(
    ("names", "roles", "why"),
    [
        (("a", "b"), {"a": "train", "b": "test"}, "--role LIST=train, =val, =test sets them"),
        (("a_train", "b_test"), {"a_train": "train", "b_test": "test"}, "--role LIST=ROLE sets the roles of both"),
    ],
)
def test_roles_make_lists_comparable(names: tuple[str, str], roles: dict[str, str], why: str, tmp_path: Path) -> None:
    lists = laid(tmp_path / "lists", files(dict(zip(names, (TRAIN, TEST), strict=True))))
    assert why in audit(lists).nothing_compared
    assert why in audit(lists).verdict_text
    assert (audit(lists, roles=roles).nothing_compared, audit(lists, roles=roles).exit_status) == ("", 0)


def test_the_next_line_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = str(laid(tmp_path / "lists", files({"a": [*TRAIN, *TEST[:2]], "b": TEST})))
    command = ["audit", lists, "--role", "a=train", "--role", "b=test"]
    assert main(command) == 1
    assert "next: the same command with --repair DIR writes " in capsys.readouterr().out
    assert main([*command, "--repair", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["audit", str(tmp_path / "out"), "--role", "a=train", "--role", "b=test"]) == 0
    assert "next: " not in capsys.readouterr().out
    # A form that is not written is not advised to be repaired.
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "splits.json").write_text(f'{{"train": ["{TRAIN[0]}"], "test": ["{TRAIN[0]}"]}}')
    assert main(["audit", str(tmp_path / "json")]) == 1
    assert "next: " not in capsys.readouterr().out


def test_lists_are_identified_and_a_rule_leads_to_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = laid(tmp_path / "lists", {"photos_500_test.txt": TRAIN, "train.txt": VAL})
    assert "`curation identify`" in only(audit(lists), "PL1").hint
    assert main(["identify", str(lists)]) in (0, 1)
    capsys.readouterr()
    for rule in ("wilderness", "tasks", "superclass", "hierarchy", "near-far", "lists"):
        assert main(["build", rule, "--out", str(tmp_path / "made")]) == 2
        [advice] = re.findall(r"(?m)^  try: curation (.*)$", capsys.readouterr().err)
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(advice))
        assert ended.value.code == 0
        assert advice == f"init {rule} --help"
