"""Patients, videos, drives and slides by columns and names: which pattern decides, and what none does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from curation.core.errors import UsageError
from curation.extensions.audit.groups import GroupResult, Groups
from curation.extensions.audit.identity import Images, images_of
from curation.sources.published_list import read_published


def images(folder: Path, one: list[str], two: list[str], suffix: str = "txt") -> Images:
    for name, lines in (("one", one), ("two", two)):
        (folder / f"{name}.{suffix}").write_text("".join(f"{line}\n" for line in lines))
    return images_of([read_published(folder / f"{name}.{suffix}").lists[0] for name in ("one", "two")])


def result(folder: Path, one: list[str], two: list[str], *patterns: str) -> GroupResult:
    return Groups(images(folder, one, two), patterns).compare(0, 1)


def told(found: GroupResult) -> tuple[str, str, int]:
    return found.verdict, found.pattern, found.both


@pytest.mark.parametrize(
    ("name", "pattern", "noun"),
    [
        (lambda g, n: f"photo{g}_jpg.rf.{n:032x}.jpg", "Roboflow source", "source photo"),
        (lambda g, n: f"{n % 7}/OAS3{g:04}/OAS3{g:04}_MR_d{n}/x.nii.gz", "subject or patient", "subject"),
        (lambda g, n: f"sub-{g:02}/ses-{n}/anat/sub-{g:02}_T1w.nii.gz", "subject or patient", "subject"),
        (lambda g, n: f"00{g:06}_{n - 1000:03}.png", "subject or patient", "subject"),
        (lambda g, n: f"x/Patient_{g}/{n}.dcm", "subject or patient", "patient"),
        (lambda g, n: f"a{n % 3}/TCGA-AB-{g:04}-{n}.png", "subject or patient", "subject"),
        (
            lambda g, n: f"2011_09_26/2011_09_26_drive_{g:04}_sync/image_02/data/{n:010}.jpg",
            "drive, sequence or scene",
            "drive",
        ),
        (lambda g, n: f"2011_09_26/2011_09_26_drive_{g:04}_sync {n} l", "the column sequence", "sequence"),
        (lambda g, n: f"x/bonn_{g:06}_{n:06}_leftImg8bit.png", "drive, sequence or scene", "sequence"),
        (lambda g, n: f"seq_{g:02}/{n:06}.png", "drive, sequence or scene", "sequence"),
        (lambda g, n: f"scans/scene{g:04}_00/color/{n}.jpg", "drive, sequence or scene", "scene"),
        (lambda g, n: f"Video_{g:02}/Video_{g:02}_Frames/frame_{n}_0.png", "video", "video"),
        (lambda g, n: f"v_Archery_g{g:02}_c{n:02}.avi", "video", "video"),
        (lambda g, n: f"walk{g}_frame_{n:05}.jpg", "text before the frame", "video"),
        (lambda g, n: f"x/tumour{g}_patch_{n}.png", "slide or crop", "slide"),
        (lambda g, n: f"1a/{g:03}/{g:03}_{n}_2.tiff", "slide or crop", "slide"),
        (lambda g, n: f"region_{g}_{n}.png", "slide or crop", "slide"),
        (lambda g, n: f"flight{g:02}/dji_{n}.jpg", "folder", "folder"),
        (lambda g, n: f"site{chr(97 + g)}x-{n:04}.png", "text before the number", "group"),
    ],
)
def test_names_tell_groups_by_a_pattern(
    name: Callable[[int, int], str], pattern: str, noun: str, tmp_path: Path
) -> None:
    one = [name(g, n) for g in range(12) for n in range(1000, 1006)]
    apart = [name(g, n) for g in range(12, 24) for n in range(1000, 1003)]
    clean = result(tmp_path, one, apart)
    assert told(clean) == ("disjoint", pattern, 0)
    assert (clean.noun, clean.of) == (noun, (72, 36))
    both = result(tmp_path, one, [*apart, *(name(g, n) for g in (3, 5) for n in range(1006, 1012))])
    assert (both.verdict, both.pattern) == ("shared", pattern)
    assert both.lines[1] == 12
    assert sum(one.lines[1] for one in both.examples) <= 12


@pytest.mark.parametrize(
    ("one", "two", "why"),
    [
        # Folders that follow the label are classes; so are two folders alone.
        (
            [f"{c}/img_{n:04}.jpg {c}" for c in range(20) for n in range(9)],
            [f"{c}/img_{n:04}.jpg {c}" for c in range(20) for n in range(9, 12)],
            "each folder holds one label",
        ),
        ([f"cat/{n}.jpg" for n in range(9)], [f"dog/{n}.jpg" for n in range(9)], "may be classes"),
        (
            [f"c{c}/{n}.jpg" for c in range(20) for n in range(9)],
            [f"c{c}/{n}.jpg" for c in range(20) for n in range(9, 12)],
            "may be classes",
        ),
        # The second video of one dataset is not that of another.
        (
            [f"own/video_{v}/{n}.jpg" for v in range(4) for n in range(9)],
            [f"near/video_{v}/{n}.jpg" for v in range(4) for n in range(9)],
            "the folders of the two lists differ",
        ),
        (["a/frame_0001.jpg", "a/frame_0002.jpg"], ["a/frame_0003.jpg"], "one group"),
    ],
)
def test_groups_that_decide_nothing_say_why(one: list[str], two: list[str], why: str, tmp_path: Path) -> None:
    found = result(tmp_path, one, two)
    assert found.verdict == "undecidable"
    assert why in found.why


def test_a_companion_on_the_other_side_is_another_view_and_its_absence_says_nothing(tmp_path: Path) -> None:
    left = [f"image_2/{chr(97 + n)}q.png" for n in range(12)]
    right = [f"image_3/{chr(97 + n)}q.png" for n in range(8, 20)]
    found = result(tmp_path, left, right)
    assert (told(found), found.is_view) == (("shared", "companion", 4), True)
    assert result(tmp_path, left[:4], right).verdict == "undecidable"


@pytest.mark.parametrize(
    ("gap", "why"), [(900, "neighbouring frames may be on both sides: 100%"), (0, "the groups may be")]
)
def test_numbers_next_to_each_other_are_frames_only_where_most_numbers_are_absent(
    tmp_path: Path, gap: int, why: str
) -> None:
    numbers = {burst * gap + n for burst in range(4) for n in range(40)}
    names = [f"mouse_{who}_f{n:06}.png" for who in "ABC" for n in sorted(numbers)]
    assert why in result(tmp_path, names[::2], names[1::2]).why


def table(header: str, rows: list[str]) -> list[str]:
    return [header, *rows]


def test_a_column_that_says_a_group_goes_before_names(tmp_path: Path) -> None:
    one = table("path,patient_id", [f"video_{n}/x.png,p{n % 5}" for n in range(20)])
    two = table("path,patient_id", [f"video_{n}/x.png,p{n % 3 + 4}" for n in range(20, 29)])
    found = Groups(images(tmp_path, one, two, "csv")).compare(0, 1)
    assert (told(found), found.noun, found.lines) == (("shared", "the column patient_id", 1), "patient", (4, 3))


def test_a_pattern_of_the_user_goes_before_all_and_is_believed(tmp_path: Path) -> None:
    one = [f"video_{n}/cat-{n}.jpg 0" for n in range(9)] + [f"video_{n}/dog-{n}.jpg 1" for n in range(9)]
    two = [f"video_{n}/cat-{n}.jpg 0" for n in range(9, 12)]
    assert told(result(tmp_path, one, two)) == ("disjoint", "video", 0)
    found = result(tmp_path, one, two, r"/([a-z]+)-")
    assert (told(found), found.groups, found.lines) == (("shared", r"--group /([a-z]+)-", 1), (2, 1), (9, 3))
    part = result(tmp_path, one, two, r"(dog|cat)-1")
    assert (part.without, part.lines) == ((16, 1), (1, 2))


@pytest.mark.parametrize(
    ("pattern", "match"),
    [
        ("patient", "no capture group"),
        ("(?:patient)", "no capture group"),
        ("(patient", "Unsupported regular expression"),
        (r"(?=x)(a)", "Unsupported regular expression"),
        (r"(a)\1", "Unsupported regular expression"),
        ("((a{1000}){1000})", "Unsupported regular expression"),
        ("(a)" * 400, "too long"),
    ],
)
def test_patterns_that_cannot_be_searched_for_are_refused_with_their_place(
    pattern: str, match: str, tmp_path: Path
) -> None:
    both = images(tmp_path, ["x1.jpg"], ["x2.jpg"])
    with pytest.raises(UsageError, match=match) as refused:
        Groups(both, [pattern])
    assert refused.value.where.startswith("--group ")


@pytest.mark.timeout(20)
def test_a_pattern_that_backtracks_without_end_elsewhere_takes_no_time(tmp_path: Path) -> None:
    lines = [f"{'a' * 200}{n}!" for n in range(2000)]
    found = result(tmp_path, [f"{line}.jpg" for line in lines], ["b.jpg"], r"((?:a+)+)$")
    assert found.verdict == "undecidable"


def test_a_column_that_the_user_names_is_a_group(tmp_path: Path) -> None:
    one = table("path,device", [f"{chr(97 + n)}.png,d{n % 3}" for n in range(12)])
    mixed = table("path,device", [f"{chr(110 + n)}.png,d{n % 4}" for n in range(12)])
    both = images(tmp_path, one, mixed, "csv")
    assert Groups(both).compare(0, 1).verdict == "undecidable"
    assert told(Groups(both, column="Device").compare(0, 1)) == ("shared", "the column device", 3)
    with pytest.raises(UsageError, match="column"):
        Groups(both, column="camera")
