"""What an audit says of strangers' folders: each thing once, with its base; silence where nothing is known."""

import html
import json
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.cli import main
from curation.core.errors import UsageError
from curation.extensions.audit.report import Report, Statement
from curation.extensions.audit.run import audit
from curation.sources.text_lines import box_line
from tests.extensions.audit.test_published_rules import laid


def said(report: Report, *gravities: str) -> list[Statement]:
    return [one for one in report.statements if not gravities or one.gravity in gravities]


def bad(folder: Path, files: Mapping[str, object], **options: object) -> list[tuple[str, str]]:
    """Rule and gravity of all errors and warnings."""
    report = audit(laid(folder, files), **options)  # type: ignore[arg-type]
    return [(one.rule, one.gravity) for one in said(report, "error", "warning")]


def photos(folder: str, first: int, last: int, *, suffix: str = ".jpg") -> list[str]:
    """Names that tell no group: no number of three digits, no folder of frames."""
    return [
        f"{folder}/{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}x{suffix}" for n in range(first, last)
    ]


TRAIN, VAL, TEST = photos("d", 0, 300), photos("d", 300, 340), photos("d", 340, 400)


def test_a_sound_folder_says_what_was_checked_and_what_was_not(tmp_path: Path) -> None:
    report = audit(laid(tmp_path / "sound", {"train.txt": TRAIN, "val.txt": VAL, "test.txt": TEST}))
    assert said(report, "error", "warning") == []
    assert report.exit_status == 0
    assert (report.sums.decided, report.sums.questions) == (6, 9)
    assert report.verdict_text == "sound: no error and no warning on 400 lines in 3 lists"
    assert report.checked_text == "checked: 400 lines in 3 lists"
    assert report.sums_text == (
        "6 of 9 questions could be decided: 0 errors, 0 warnings, 1 note; undecidable: groups (PL7, 3)"
    )
    assert len(report.not_asked) == 19


def test_pairs_whose_groups_cannot_be_read_are_one_sentence_with_counts_by_reason(tmp_path: Path) -> None:
    lists = {f"{name}_{role}.txt": [f"{role}{first}/{line}" for line in lines] for name, first in (("a", 1), ("b", 2))
             for role, lines in (("train", TRAIN), ("test", TEST))}  # fmt: skip
    lists |= {
        f"c_{role}.txt": [f"{chr(97 + c)}x/img_{n:04}.jpg {c}" for c in range(20) for n in range(first, first + 9)]
        for role, first in (("train", 0), ("test", 9))
    }
    [groups] = [one for one in said(audit(laid(tmp_path, lists)), "undecidable") if one.rule == "PL7"]
    assert groups.text == (
        "in 3 pairs no group could be read from the names: none mentions a patient, drive, video or the like "
        "(2: a, b), each folder holds one label (1: c)"
    )
    assert ["tried: " in part["text"] for part in groups.parts] == [True, True, True]


def test_nothing_checked_is_no_pass(tmp_path: Path) -> None:
    report = audit(laid(tmp_path, {"known_classnames.txt": ["gizmo", "gadget"]}))
    assert (report.sums.decided, report.exit_status) == (0, 2)
    assert "nothing could be checked" in report.verdict_text
    assert report.sums_text.startswith("nothing could be checked")


@pytest.mark.parametrize(
    ("test", "told"),
    [
        (TRAIN, "the same list twice (300 lines, byte for byte)"),
        (TRAIN[::-1], "the same list twice (300 lines, in another order)"),
        ([f"./{one}\r" for one in TRAIN], "the same list twice (300 lines, line for line)"),
        ([*TEST, *TRAIN[:7]], "7 images, on 7 of 67 and 7 of 300"),
    ],
)
def test_train_and_test_that_share_images(tmp_path: Path, test: list[str], told: str) -> None:
    report = audit(laid(tmp_path, {"a_train.txt": TRAIN, "a_test.txt": test}))
    [error] = said(report, "error")
    assert (error.rule, error.lists) == ("DS2", ("a_train", "a_test"))
    assert told in error.text
    assert error.examples[0].startswith(f"{TRAIN[0].partition('/')[2]} (a_train line 1; a_test line ")
    assert report.exit_status == 1


def test_like_statements_are_one_with_a_table(tmp_path: Path) -> None:
    names = ("amazon", "dslr", "photo", "webcam")
    files = {f"{name}_{role}.txt": photos(name, 0, 40) for name in names for role in ("train", "test")}
    files |= {"sun_train.txt": photos("sun", 0, 40), "sun_test.txt": photos("sun", 40, 60)}
    [error] = said(audit(laid(tmp_path, files)), "error")
    assert error.text == (
        "in 4 of 5 pairs train and test are the same list twice, byte for byte: amazon (40), dslr (40), photo (40), "
        "webcam (40)"
    )
    assert len(error.pairs) == len(error.parts) == 4
    assert "--role LIST=none" in error.hint
    said_none = audit(tmp_path, roles={f"{name}_train": "none" for name in names})
    assert said(said_none, "error") == []


def test_val_in_train_names_the_list_to_use(tmp_path: Path) -> None:
    files = {"train.txt": [*TRAIN, *VAL], "train_small.txt": TRAIN, "val.txt": VAL}
    [error] = said(audit(laid(tmp_path, files), rules="DS4"), "error")
    assert "train holds all 40 images of val" in error.text
    assert error.hint == "train on train_small, which is train without val"
    unlabelled = {"labeled.txt": TRAIN, "unlabeled.txt": [*TEST, *VAL[:3]], "val.txt": VAL}
    assert bad(tmp_path / "semi", unlabelled) == [("DS4", "warning")]


def test_an_image_with_other_labels_is_no_repeat(tmp_path: Path) -> None:
    lines = [f"{one} {n % 3}" for n, one in enumerate(TRAIN)]
    assert bad(tmp_path / "labels", {"train.txt": [*lines, f"{TRAIN[0]} 1"]}) == [("PL9", "warning")]
    assert bad(tmp_path / "again", {"train.txt": [*lines, lines[0]]}) == [("DS1", "error")]
    report = audit(tmp_path / "again")
    assert said(report, "error")[0].examples == ("aaax.jpg (train lines 1, 301)",)
    assert "sort -u" not in json.dumps(report.data())


def coco(names: Mapping[int, str], *, categories: Mapping[int, str] | None = None) -> dict[str, object]:
    return {
        "images": [{"id": number, "file_name": name} for number, name in names.items()],
        "annotations": [{"id": n, "image_id": number, "category_id": 1} for n, number in enumerate(names)],
        "categories": [{"id": number, "name": name} for number, name in (categories or {1: "cat", 2: "dog"}).items()],
    }


def test_the_verdict_is_first_and_notes_wait(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path = tmp_path / "lists"
    files = {"train.txt": [*TRAIN, *TRAIN[:3]], "part.txt": TRAIN[:30], "test.txt": [*TEST, TRAIN[0]]}
    laid(tmp_path, files | {"odd.txt": b"\0\0"})
    assert main(["audit", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    # What lists share comes before what is wrong in one of them.
    assert lines[:2] == [
        "lists: test and train: both hold 1 image, on 1 of 61 and 2 of 303 lines "
        "(2 errors, 0 warnings; 1 of 4 files could not be read)",
        "checked: 394 lines in 3 lists; 1 of 4 files could not be read; 1 list without a role",
    ]
    assert lines.index("Errors:") < lines.index("Undecidable, and what is missing:")
    assert "3 notes: see --all" in lines
    assert not any("PL14" in line or line.startswith("Not applied") for line in lines)
    assert main(["audit", str(tmp_path), "--all"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  relations of lists (PL14): part (30 images) is contained in train" in lines
    [not_applied] = [line for line in lines if line.startswith("Not applied")]
    assert "for lack of photos (--photos): photos in two roles (DS3)" in not_applied
    assert not re.search(r"(?<!\()\b(?:CO|TI|AS|LI|DS|PL)\d+\b(?!\)|, \d+\))", "\n".join(lines))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_first_line_is_short_whatever_there_is_to_say(data: st.DataObject) -> None:
    roles = ("train", "val", "test", "x" * data.draw(st.integers(1, 60)))
    with TemporaryDirectory(prefix="n" * data.draw(st.integers(1, 60))) as folder:
        for family in data.draw(st.lists(st.text("abc", min_size=1, max_size=40), min_size=1, max_size=4, unique=True)):
            for role in roles:
                rows = data.draw(st.lists(st.sampled_from(TRAIN[:40]), max_size=30))
                Path(folder, f"{family}_{role}.txt").write_text("".join(f"{row}\n" for row in rows))
        report = audit(folder)
    assert len(report.verdict_text) <= 160
    assert report.verdict_text.isprintable()
    assert report.verdict_text in (report.data()["verdict"], html.unescape(report.html()))
    shares = [one for one in said(report, "error") if one.rule in ("DS2", "DS4")]
    assert not shares or said(report, "error")[0] in shares


_YOLO = ["0 0.5 0.41 0.1 0.2", "2 0.1 0.2 0.3 0.1"]
_BOXES = {
    "yolo": _YOLO,
    "yolo polygon": ["0 0.1 0.2 0.3 0.2 0.3 0.4"],
    "visdrone": ["684,8,273,116,0,0,0,0", "406,119,265,70,1,4,1,1"],
    "visdrone with a last comma": ["684,8,273,116,0,0,0,0,", "406,119,265,70,1,4,1,1,"],
    "mot": ["1,1,912,484,97,109,0,7,1", "2,1,912,484,97,109,0,7,1"],
    "kitti": ["Car 0.00 0 -1.57 614.24 181.78 727.31 284.77 1.57 1.73 4.15 1.00 1.75 13.22"],
    "dota": ["imagesource:GoogleEarth", "gsd:0.14"] + 4 * ["2753 2408 2861 2385 2888 2468 2805 2502 plane 0"],
    "wider": ["0--Parade/0_Parade_7.jpg", "2", "449 330 122 149 0 0 0 0 0 0", "361 98 263 339 0 0 0 0 0 0"],
    "voc results": ["000012 0.93 12.0 8.5 100.0 200.0", "000013 0.21 1.0 2.0 30.0 40.0"],
}


@pytest.mark.parametrize("lines", _BOXES.values(), ids=_BOXES)
def test_files_of_boxes_are_no_lists(lines: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No list of images found") as refused:
        audit(laid(tmp_path / "boxes", {f"{number:06}.txt": lines for number in range(4)}))
    assert "such as the boxes of an image" in str(refused.value)
    files = {f"labels/{number:06}.txt": lines for number in range(4)}
    report = audit(laid(tmp_path / "beside", {"train.txt": TRAIN, "test.txt": TEST, **files}))
    assert (report.coverage.unread, report.coverage.others, report.coverage.compared) == (0, 4, 1)
    assert report.verdict_text.startswith("beside: no error")
    assert "4 files of other kinds not opened (label files)" in report.checked_text
    assert (report.status, report.exit_status) == ("pass", 0)


@pytest.mark.parametrize(
    "lines",
    [
        ["a.jpg 0 1 0 1 1", "b.jpg 0 0 0 0 1"],
        ["000012 0 1 0 1 1", "000013 0 0 0 0 1"],
        ["Aaron_Eckhart 1 Zico 3", "Zico 1 Aaron_Eckhart 2", "Bo_X 1 2"],
        ["drive_0001/0000000012 5 l", "drive_0001/0000000013 5 l"],
        ["12", "13", "14"],
        ["x/a.jpg 7 1.5 2.5 0.3 9", "x/b.jpg 7 1.5 2.5 0.3 9"],
    ],
)
def test_lines_that_name_images_beside_numbers_are_no_boxes(lines: list[str]) -> None:
    assert box_line("\n".join(lines).encode()) is None


def nothing_compared(report: Report, why: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Python, the command, JSON and the page say the same."""
    assert (report.status, report.exit_status) == ("nothing compared", 2)
    assert why in report.nothing_compared
    assert f"nothing was compared on {sum(map(len, report.target.files)):,} line" in report.verdict_text
    assert "no error and no warning" not in report.verdict_text + report.html()
    assert "nothing was compared" in report.html()
    assert report.sums_text.startswith("nothing was compared; ")
    assert main(["audit", str(folder), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["status"] == "nothing compared"


@pytest.mark.parametrize(
    ("lists", "why"),
    [
        ({"train.txt": [], "test.txt": []}, "every list is empty"),
        ({"train.txt": [], "test.txt": TEST}, "the only list of a role is empty"),
        ({"train.txt": TRAIN, "more.txt": TEST}, "roles: train"),
        ({"a.txt": TRAIN, "b.txt": TEST}, "roles: none"),
        ({"train.txt": TRAIN, "1.txt": _YOLO}, "one list alone could be read"),
        ({"a_train.txt": TRAIN, "b_test.txt": TEST}, "in one family"),
    ],
)
def test_an_audit_that_compared_nothing_is_no_pass(
    lists: dict[str, list[str]], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = laid(tmp_path / "lists", lists)
    nothing_compared(audit(folder), why, folder, capsys)


def test_a_file_of_no_bytes_that_has_to_hold_something_is_damaged(tmp_path: Path) -> None:
    folder = laid(tmp_path, {"test.txt": TEST, "val.txt": VAL})
    (folder / "train.json").write_bytes(b"")
    report = audit(folder)
    assert report.damaged == {"train.json": "the file is empty"}
    assert (report.status, report.exit_status, report.coverage.compared) == ("damaged", 2, 1)


def test_lists_of_two_families_are_compared_when_the_user_says_their_roles(tmp_path: Path) -> None:
    lists = {"a_train.txt": TRAIN, "a_test.txt": TEST, "b_train.txt": VAL, "b_test.txt": [*TRAIN[:50], "d/other.jpg"]}
    folder = laid(tmp_path, lists)
    assert said(audit(folder), "error") == []
    assert audit(folder).coverage.pairs == 4
    report = audit(folder, roles={"a_train": "train", "b_test": "test"})
    assert [(one.count, one.lists) for one in said(report, "error")] == [(50, ("a_train", "b_test"))]
    # Folds, of which the user says every role, share images by design.
    every = {"a_train": "train", "a_test": "test", "b_train": "train", "b_test": "test"}
    assert said(audit(folder, roles=every), "error") == []


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_what_is_shared_by_lists_that_the_user_gives_roles_is_told_to_the_image(data: st.DataObject) -> None:
    sides = {role: data.draw(st.sets(st.integers(0, 40), min_size=1)) for role in ("train", "val", "test")}
    names = data.draw(st.permutations(["north", "south_b", "east9"]))
    with TemporaryDirectory() as folder:
        for name, members in zip(names, sides.values(), strict=True):
            Path(folder, f"{name}.txt").write_text("".join(f"{TRAIN[n]}\n" for n in sorted(members)))
        report = audit(folder, roles=dict(zip(names, sides, strict=True)))
    shared = {
        frozenset((names[a], names[b])): len(x & y)
        for (a, x), (b, y) in combinations(enumerate(sides.values()), 2)
        if x & y
    }
    told = [pair for one in said(report, "error") for pair in one.parts or ({"lists": one.lists, "count": one.count},)]
    assert {frozenset(pair["lists"]): pair["count"] for pair in told} == shared
    assert report.coverage.compared == report.coverage.pairs == 3


@pytest.mark.parametrize("header", ["image,saliency", "left,other"])
def test_tables_of_an_image_and_a_map_are_compared_by_their_images(
    header: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Images 4 to 599 stand in both tables; of each training image there are two maps, and no map stands in both.
    (tmp_path / "l").mkdir()
    for name, first, maps in (("train", 0, 2), ("test", 4, 1)):
        rows = [f"i/{n:05}.jpg,m/{name}_{n}_{k}.png" for n in range(first, 600) for k in range(maps)]
        (tmp_path / "l" / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n")
    report = audit(tmp_path / "l")
    assert [(one.rule, one.count) for one in said(report, "error")] == [("DS2", 596)]
    doubtful = header == "left,other"
    assert main(["audit", str(tmp_path / "l")]) == 1
    assert capsys.readouterr().out.splitlines()[2].startswith("doubtful: test.csv: ") == doubtful
    assert bool(report.data()["warnings"]) == doubtful
