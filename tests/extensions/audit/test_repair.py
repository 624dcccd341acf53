"""`audit --repair`: planted leaks of every proven kind, repaired and audited again; forms, order, refusals."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.cli import main
from curation.core.errors import UsageError
from curation.extensions.audit.repair import RECORD
from curation.extensions.audit.run import audit
from tests.extensions.audit.planted import PLANTED, SOUND, Folder, Planted, write
from tests.extensions.audit.test_published_rules import laid
from tests.extensions.audit.test_statements import TEST, TRAIN, VAL

LEFT = {"PL5", "PL6", "PL9", "PL13", "PL15", "PL16", "PL17"}
"""Rules on what no line alone is guilty of."""
UNPROVEN = "bare names"


def files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != RECORD]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def is_proven(planted: Planted) -> bool:
    bad = [said.split()[0] for said in planted.said if {"error", "warning"} & {*said.split()[1].split("|")}]
    rules = {rule for names in bad for rule in names.split("|")}
    return bool(rules - LEFT) and planted.name not in (UNPROVEN, "one file, two numbers", "ids in other forms")


PROVEN = [planted for planted in PLANTED if is_proven(planted)]


@pytest.mark.parametrize("planted", PROVEN, ids=lambda planted: planted.name)
def test_a_planted_leak_is_repaired_and_the_folder_audits_clean(planted: Planted, tmp_path: Path) -> None:
    planted.plant(folder := SOUND[planted.folder]())
    report = audit(write(folder, tmp_path / "in"), **planted.options)
    record = report.repair(tmp_path / "out")
    assert sum(sum(file["removed"].values()) for file in record["files"]) > 0
    again = audit(tmp_path / "out", **planted.options)
    assert record["status"] == again.exit_status == 0
    assert {one.rule for one in again.statements if one.gravity in ("error", "warning")} <= LEFT
    # No image of a test list is lost, and the lines that stay keep their bytes and their order.
    for before in report.target.files:
        after = next((part for part in again.target.files if part.name == before.name), None)
        if before.role == "test":
            assert after is not None
            assert len(after.unique) == len(before.unique)
    for name, data in files(tmp_path / "out").items():
        if not name.endswith(".json"):
            lines = iter((tmp_path / "in" / name).read_bytes().split(b"\n"))
            assert all(line in lines for line in data.split(b"\n"))
    # The same bytes however often.
    report.repair(tmp_path / "same")
    again.repair(tmp_path / "twice")
    assert files(tmp_path / "same") == files(tmp_path / "out") == files(tmp_path / "twice")
    assert (tmp_path / "same" / RECORD).read_bytes() == (tmp_path / "out" / RECORD).read_bytes()


@pytest.mark.parametrize("made", SOUND.values(), ids=SOUND)
def test_a_sound_folder_keeps_its_bytes(made: object, tmp_path: Path) -> None:
    assert callable(made)
    folder: Folder = made()
    record = audit(write(folder, tmp_path / "in")).repair(tmp_path / "out")
    assert files(tmp_path / "in") == files(tmp_path / "out")
    assert not any(file["removed"] for file in record["files"])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_three_lists_share_nothing_once_repaired(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lists = {
        role: data.draw(st.lists(st.sampled_from(TRAIN[:30]), min_size=1, max_size=40))
        for role in ("train", "val", "test")
    }
    place = tmp_path_factory.mktemp("lists")
    record = audit(laid(place / "in", {f"{role}.txt": lines for role, lines in lists.items()})).repair(place / "out")
    assert record["status"] == 0
    test, val = set(lists["test"]), set(lists["val"])
    loses = {"test": set(), "val": test, "train": val | test}
    for role, lines in lists.items():
        expected = [line for line in dict.fromkeys(lines) if line not in loses[role]]
        path = place / "out" / f"{role}.txt"
        assert (path.read_text().split("\n")[:-1] if path.exists() else []) == expected
        [file] = [one for one in record["files"] if one["file"] == f"{role}.txt"]
        assert bool(file["sha256"]) == bool(expected)
        gone = Counter(lines) - Counter(expected)
        assert Counter(lines[number - 1] for number in file["removed_lines"]) == gone


def test_a_coco_json_loses_images_with_their_annotations(tmp_path: Path) -> None:
    next(one for one in PLANTED if one.name == "files in two folders").plant(folder := SOUND["robo"]())
    record = audit(write(folder, tmp_path / "in")).repair(tmp_path / "out")
    name = "train/_annotations.coco.json"
    before, after = (json.loads((tmp_path / place / name).read_text()) for place in ("in", "out"))
    gone = {image["id"] for image in before["images"]} - {image["id"] for image in after["images"]}
    assert len(gone) == sum(next(one for one in record["files"] if one["file"] == name)["removed"].values()) > 0
    assert after["annotations"] == [one for one in before["annotations"] if one["image_id"] not in gone]
    assert after["categories"] == before["categories"]


def test_a_table_keeps_rows_whose_cells_hold_line_breaks(tmp_path: Path) -> None:
    rows = [f'd/{n:03}x.jpg,"said ""{n}""\nand more",{"test" if n > 70 else "train"}' for n in range(100)]
    rows.append('d/080x.jpg,"again\n",train')
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "all.csv").write_text("\n".join(["file_name,note,split", *rows]) + "\n")
    assert audit(folder).exit_status == 1
    assert audit(folder).repair(tmp_path / "out")["status"] == 0
    assert (tmp_path / "out" / "all.csv").read_text() == "\n".join(["file_name,note,split", *rows[:-1]]) + "\n"


def test_groups_go_whole_unless_less_than_half_of_a_list_would_be_left(tmp_path: Path) -> None:
    def videos(*numbers: int) -> list[str]:
        return [f"video_{number:02}/{frame:05}.jpg" for number in numbers for frame in range(20)]

    one = {"train.txt": videos(*range(1, 9)), "test.txt": [*videos(11, 12), "video_03/90001.jpg"]}
    record = audit(laid(tmp_path / "one", one)).repair(tmp_path / "one_out")
    assert {file["file"]: file["removed"] for file in record["files"]} == {"test.txt": {}, "train.txt": {"groups": 20}}
    assert (tmp_path / "one_out" / "train.txt").read_text().split() == videos(1, 2, 4, 5, 6, 7, 8)
    most = {"train.txt": videos(1, 2, 3), "test.txt": [f"video_{n:02}/90001.jpg" for n in (1, 2)]}
    record = audit(laid(tmp_path / "most", most)).repair(tmp_path / "most_out")
    assert not any(file["removed"] for file in record["files"])
    assert "2 videos on both sides" in record["not_repaired"][0]


def test_equal_photos_go_from_the_training_side(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("imagehash")
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(8):
        image.effect_noise((64, 64), 80).save(photos / f"n{number}x.png")
    (photos / "n1x.png").write_bytes((photos / "n6x.png").read_bytes())
    lists = laid(
        tmp_path / "in", {"train.txt": [f"n{n}x.png" for n in range(5)], "test.txt": ["n5x.png", "n6x.png", "n7x.png"]}
    )
    report = audit(lists, photos={"mine": photos})
    assert report.exit_status == 1
    assert report.repair(tmp_path / "out")["status"] == 0
    assert (tmp_path / "out" / "train.txt").read_text().split() == ["n0x.png", "n2x.png", "n3x.png", "n4x.png"]


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("all.json", {"train": TRAIN, "test": [*TEST, TRAIN[0]]}, "json lists"),
        ("all.json", [{"file_name": name, "split": split} for name, split in [(TRAIN[3], "test"), (TRAIN[3], "train")]],
         "one JSON text of all lines"),
        ("split.json", {"train": [[name, 0] for name in TRAIN], "test": [[name, 0] for name in (*TEST, TRAIN[0])]},
         "one JSON text of all lines"),
        ("split.json", {"train": {"image_names": TRAIN, "image_labels": [0] * len(TRAIN)}, "test": {"image_names":
         [*TEST, TRAIN[0]], "image_labels": [0] * (len(TEST) + 1)}}, "one JSON text of all lines"),
    ],
)  # fmt: skip
def test_a_form_that_is_not_written_is_refused_by_name(name: str, content: object, form: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(json.dumps(content))
    with pytest.raises(UsageError) as refused:
        (report := audit(tmp_path / "in")).repair(tmp_path / "out")
    assert refused.value.found == form
    assert not report.next_text
    assert not (tmp_path / "out").exists()


def test_the_command_states_what_it_did_and_takes_the_status_of_the_repaired_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = str(laid(tmp_path / "in", {"train.txt": [*TRAIN, *TEST[:2]], "test.txt": TEST})), tmp_path / "out"
    assert main(["audit", folder]) == 1
    capsys.readouterr()
    assert main(["audit", folder, "--repair", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "repaired: train.txt loses 2 lines (images in two roles: 2)" in lines
    assert main(["audit", str(out)]) == 0
    capsys.readouterr()
    assert main(["audit", folder, "--repair", str(tmp_path / "json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["repair"] == json.loads((out / RECORD).read_text())
    capsys.readouterr()
    for place in (str(out), folder):
        assert main(["audit", folder, "--repair", place]) == 2
        assert "try: choose another name\n" in capsys.readouterr().err
    assert main(["audit", folder, "--repair", f"{folder}/out"]) == 2
    assert "is inside the audited folder" in capsys.readouterr().err
    assert main(["audit", "owod/reowod@1.0.0", "--repair", str(tmp_path / "manifest")]) == 2
    assert "A manifest cannot be repaired" in capsys.readouterr().err


def test_a_list_without_a_line_is_left_out_and_roles_that_were_said_stay(tmp_path: Path) -> None:
    folder = laid(tmp_path / "in", {"a.txt": TEST, "b.txt": [*TEST, *VAL]})
    record = audit(folder, roles={"a": "train", "b": "test"}).repair(tmp_path / "out")
    assert (record["status"], sorted(files(tmp_path / "out"))) == (0, ["b.txt"])
