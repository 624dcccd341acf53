"""Whatever lists a stranger has: only equal paths are one image, and nothing else about the names changes a verdict."""

from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import curation

Lists = dict[str, list[str]]
FOLDERS = (("ash", "beech", "oak"), tuple(f"video_{number:02}" for number in range(6)), ("",))
STEMS = ("pine", "fir", "yew", "elm", "box", "lime", "plum", "pear")
NAMES = ("train", "val", "test", "night_train", "night_test", "others/more")
WRITTEN = (str, lambda path: f"./{path}", lambda path: path.replace("/", "\\"), lambda path: path.replace("/", "//"))
"""Ways of writing one path."""
ROLES = {"train", "val", "test"}


@st.composite
def _lists(draw: st.DrawFn) -> Lists:
    folders = draw(st.sampled_from(FOLDERS))
    labelled = draw(st.booleans())
    paths = [f"{folder}/{stem}{end}".lstrip("/") for folder in folders for stem in STEMS for end in (".jpg", ".png")]
    rows = st.sampled_from(paths).map(
        lambda path: f"{path} {STEMS.index(path.split('/')[-1][:-4])}" if labelled else path
    )
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True))
    return {name: draw(st.lists(rows, min_size=2, max_size=14)) for name in names}


def _said(lists: Lists, ending: str = "\n") -> list[dict[str, Any]]:
    with TemporaryDirectory() as place:
        for name, rows in lists.items():
            file = Path(place) / f"{name}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes("".join(f"{row}{ending}" for row in rows).encode())
        return list(curation.audit(place).data()["statements"])


def _verdicts(lists: Lists) -> list[tuple[Any, ...]]:
    # The note on the folder that all paths begin with is of no list.
    said = [one for one in _said(lists) if (one["rule"], one["lists"]) != ("PL14", ())]
    return sorted((one["rule"], one["gravity"], sorted(one["lists"]), one["count"]) for one in said)


def _each(lists: Lists, change: Any) -> Lists:
    return {name: [change(row) for row in rows] for name, rows in lists.items()}


@given(lists=_lists(), data=st.data())
@settings(max_examples=60)
def test_an_error_stands_on_equal_paths_alone(lists: Lists, data: st.DataObject) -> None:
    paths = {name: [row.split()[0] for row in rows] for name, rows in lists.items()}
    written = _each(lists, lambda row: data.draw(st.sampled_from(WRITTEN))(row))
    statements = _said(written, data.draw(st.sampled_from(("\n", "\r\n", " \n"))))
    accused = [one for one in statements if one["gravity"] in ("error", "warning")]
    repeats = {name for one in accused if one["rule"] == "DS1" for name in one["lists"]}
    assert repeats == {name for name, rows in paths.items() if len(set(rows)) < len(rows)}
    overlaps = {frozenset(pair) for one in accused if one["rule"] in ("DS2", "DS4") for pair in _pairs(one)}
    shared = {frozenset(pair) for pair in combinations(paths, 2) if set(paths[pair[0]]) & set(paths[pair[1]])}
    assert overlaps <= shared
    # Of one folder and family: whatever is shared must be told.
    assert {pair for pair in shared if pair <= ROLES or pair == {"night_train", "night_test"}} <= overlaps


def _pairs(statement: dict[str, Any]) -> list[list[str]]:
    return list(statement["pairs"]) or [statement["lists"]]


@given(lists=_lists(), data=st.data())
@settings(max_examples=40)
def test_other_names_change_no_verdict(lists: Lists, data: st.DataObject) -> None:
    words = [word for words in (*FOLDERS[:2], STEMS) for word in words]
    other = [word for words in (*FOLDERS[:2], STEMS) for word in data.draw(st.permutations(words))]
    new = dict(zip(words, other, strict=True))

    def renamed(row: str) -> str:
        path, *label = row.split()
        folders, (stem, suffix) = path.split("/")[:-1], path.split("/")[-1].split(".")
        return " ".join(["/".join([*(new[one] for one in folders), f"{new[stem]}.{suffix}"]), *label])

    assert _verdicts(_each(lists, renamed)) == _verdicts(lists)


@given(lists=_lists(), data=st.data())
@settings(max_examples=40)
def test_the_order_of_lines_and_files_changes_nothing(lists: Lists, data: st.DataObject) -> None:
    shuffled = {name: data.draw(st.permutations(rows)) for name, rows in reversed(lists.items())}
    assert _verdicts(shuffled) == _verdicts(lists)


@given(lists=_lists(), root=st.sampled_from(("/home/me/data/", "images/", "/mnt/patient_12/video_3/", "D:\\sets\\")))
@settings(max_examples=40)
def test_a_folder_around_all_changes_nothing(lists: Lists, root: str) -> None:
    assert _verdicts(_each(lists, lambda row: f"{root}{row}")) == _verdicts(lists)
